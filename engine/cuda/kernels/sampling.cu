// The largest of many values, with their indices: of equals the smaller index comes first.

__device__ __forceinline__ u64 key_of(float v, u32 index) {
    u32 bits = __float_as_uint(v);
    bits = (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
    return v != v ? 0ull : ((u64)bits << 32) | (u32)~index;
}
__device__ __forceinline__ float value_of(u64 key) {
    u32 bits = (u32)(key >> 32);
    return __uint_as_float((bits & 0x80000000u) ? bits & 0x7fffffffu : ~bits);
}

// values: [rows, n]; best: [rows] index, or -1 where nothing is a number. One block a row.
extern "C" __global__ void __launch_bounds__(1024) argmax_f32(const float* values, int* best, int n) {
    __shared__ u64 keys[32];
    const float* row = values + (u64)blockIdx.x * n;
    u64 most = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        u64 key = key_of(row[i], (u32)i);
        if (key > most) most = key;
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) {
        u64 other = __shfl_xor_sync(0xffffffffu, most, o);
        if (other > most) most = other;
    }
    if ((threadIdx.x & 31) == 0) keys[threadIdx.x >> 5] = most;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (u32 w = 1; w < blockDim.x / 32; w++)
            if (keys[w] > most) most = keys[w];
        best[blockIdx.x] = most ? (int)~(u32)most : -1;
    }
}

// values: [rows, n]; out_values, out_indices: [rows, k], largest first; k <= 256, k <= n. One block a row. Values that are
// no numbers come last. Keys are all different, so the k-th largest is found byte by byte and is exact.
extern "C" __global__ void __launch_bounds__(1024) top_k_f32(const float* values, float* out_values, int* out_indices, int n, int k) {
    __shared__ u32 counts[256];
    __shared__ u64 kept[256];
    __shared__ u32 filled, digit, left;
    const float* row = values + (u64)blockIdx.x * n;
    u64 prefix = 0, mask = 0;
    if (threadIdx.x == 0) left = (u32)k;
    for (int shift = 56; shift >= 0; shift -= 8) {
        if (threadIdx.x < 256) counts[threadIdx.x] = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            float v = row[i];
            u64 key = v != v ? (u64)(u32)~i : key_of(v, (u32)i);
            if ((key & mask) == prefix) atomicAdd(&counts[(key >> shift) & 255], 1u);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            u32 d = 255, want = left;
            while (d > 0 && counts[d] < want) want -= counts[d--];
            digit = d;
            left = want;
        }
        __syncthreads();
        prefix |= (u64)digit << shift;
        mask |= 255ull << shift;
        __syncthreads();
    }
    if (threadIdx.x == 0) filled = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        float v = row[i];
        u64 key = v != v ? (u64)(u32)~i : key_of(v, (u32)i);
        if (key >= prefix) {
            u32 at = atomicAdd(&filled, 1u);
            if (at < 256) kept[at] = key;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += blockDim.x) {
        u64 key = kept[i];
        int rank = 0;
        for (int j = 0; j < k; j++) rank += kept[j] > key;
        u32 index = ~(u32)key;
        out_values[(u64)blockIdx.x * k + rank] = row[index];
        out_indices[(u64)blockIdx.x * k + rank] = (int)index;
    }
}
