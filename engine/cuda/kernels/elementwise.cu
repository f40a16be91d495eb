// Norms, rope, gates, sums, random weights. x and out: [rows, cols] unless said otherwise.

// out = x / sqrt(mean(x^2) + epsilon) * weight; one block a row. Rows of whole fours are read as such; as many as fit a
// thread's registers are kept there between the two passes.
template <bool ADD, bool HALF_OUT>
__device__ __forceinline__ void rms_norm_row(float* x, const float* add, const float* weight,
                                             void* out, int cols, float epsilon) {
    constexpr int KEPT = 4;
    __shared__ float shared[32];
    WAIT_PREVIOUS;
    EARLY_START;
    u64 start = (u64)blockIdx.x * cols;
    float squares = 0.f;
    if (cols % 4 == 0) {
        float4 kept[KEPT];
        float4* row = (float4*)(x + start);
        int fours = cols / 4;
        auto take = [&](int i) {
            float4 v = row[i];
            if (ADD) {
                float4 more = ((const float4*)(add + start))[i];
                v.x += more.x;
                v.y += more.y;
                v.z += more.z;
                v.w += more.w;
                row[i] = v;
            }
            squares = fmaf(v.x, v.x, squares);
            squares = fmaf(v.y, v.y, squares);
            squares = fmaf(v.z, v.z, squares);
            squares = fmaf(v.w, v.w, squares);
            return v;
        };
#pragma unroll
        for (int u = 0; u < KEPT; u++) {
            int i = threadIdx.x + u * blockDim.x;
            if (i < fours) kept[u] = take(i);
        }
        for (int i = threadIdx.x + KEPT * blockDim.x; i < fours; i += blockDim.x) take(i);
        float scale = rsqrtf(block_sum(squares, shared) / (float)cols + epsilon);
        auto give = [&](int i, float4 v) {
            float4 w = ((const float4*)weight)[i];
            v.x = v.x * scale * w.x;
            v.y = v.y * scale * w.y;
            v.z = v.z * scale * w.z;
            v.w = v.w * scale * w.w;
            if (HALF_OUT) ((uint2*)((u16*)out + start))[i] = uint2{to_bf2(v.x, v.y), to_bf2(v.z, v.w)};
            else ((float4*)((float*)out + start))[i] = v;
        };
#pragma unroll
        for (int u = 0; u < KEPT; u++) {
            int i = threadIdx.x + u * blockDim.x;
            if (i < fours) give(i, kept[u]);
        }
        for (int i = threadIdx.x + KEPT * blockDim.x; i < fours; i += blockDim.x) give(i, row[i]);
        return;
    }
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        float v = x[start + i];
        if (ADD) {
            v += add[start + i];
            x[start + i] = v;
        }
        squares = fmaf(v, v, squares);
    }
    float scale = rsqrtf(block_sum(squares, shared) / (float)cols + epsilon);
    for (int i = threadIdx.x; i < cols; i += blockDim.x) {
        float v = x[start + i] * scale * weight[i];
        if (HALF_OUT) ((u16*)out)[start + i] = to_bf(v);
        else ((float*)out)[start + i] = v;
    }
}
extern "C" __global__ void __launch_bounds__(256) rms_norm_f32(float* x, const float* w, float* out, int cols, float e) {
    rms_norm_row<false, false>(x, nullptr, w, out, cols, e);
}
extern "C" __global__ void __launch_bounds__(256) rms_norm_bf16(float* x, const float* w, u16* out, int cols, float e) {
    rms_norm_row<false, true>(x, nullptr, w, out, cols, e);
}
// x += add, then the norm of x.
extern "C" __global__ void __launch_bounds__(256) add_rms_norm_f32(float* x, const float* add, const float* w, float* out, int cols, float e) {
    rms_norm_row<true, false>(x, add, w, out, cols, e);
}
extern "C" __global__ void __launch_bounds__(256) add_rms_norm_bf16(float* x, const float* add, const float* w, u16* out, int cols, float e) {
    rms_norm_row<true, true>(x, add, w, out, cols, e);
}

// x: [rows, heads, head_dim] in place; turns: [positions, dims] as dims/2 cosines, then as many sines.
extern "C" __global__ void rope_f32(float* x, const float* turns, const int* positions, int heads, int head_dim, int dims, int neighbours, int table_positions) {
    int row = blockIdx.x, half = dims / 2, position = positions[row];
    if (position < 0 || position >= table_positions) return;
    const float* turn = turns + (u64)position * dims;
    for (int i = threadIdx.x; i < heads * half; i += blockDim.x) {
        int head = i / half, pair = i % half;
        float* h = x + ((u64)row * heads + head) * head_dim;
        int a = neighbours ? 2 * pair : pair, b = neighbours ? 2 * pair + 1 : pair + half;
        float p = h[a], q = h[b], c = turn[pair], s = turn[half + pair];
        h[a] = p * c - q * s;
        h[b] = p * s + q * c;
    }
}

__device__ __forceinline__ float silu(float v) { return v / (1.f + __expf(-v)); }
extern "C" __global__ void silu_mul_f32(float* gate, const float* up, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float v = gate[i];
        gate[i] = v / (1.f + expf(-v)) * up[i];
    }
}
// gate_up: [rows, 2, inner] bf16; out: [rows, inner] bf16. inner % 8 == 0.
extern "C" __global__ void silu_mul_bf16(const u16* gate_up, u16* out, int inner, u64 n8) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n8) return;
    u64 row = i / (inner / 8), at = i % (inner / 8);
    V4 g = ((const V4*)(gate_up + row * 2 * inner))[at];
    V4 u = ((const V4*)(gate_up + row * 2 * inner + inner))[at];
    V4 r;
    r.x = to_bf2(silu(bf_lo(g.x)) * bf_lo(u.x), silu(bf_hi(g.x)) * bf_hi(u.x));
    r.y = to_bf2(silu(bf_lo(g.y)) * bf_lo(u.y), silu(bf_hi(g.y)) * bf_hi(u.y));
    r.z = to_bf2(silu(bf_lo(g.z)) * bf_lo(u.z), silu(bf_hi(g.z)) * bf_hi(u.z));
    r.w = to_bf2(silu(bf_lo(g.w)) * bf_lo(u.w), silu(bf_hi(g.w)) * bf_hi(u.w));
    ((V4*)out)[i] = r;
}
// x[row] = table[ids[row]]; table: [vocab, hidden] bf16, x: f32. One block a row.
extern "C" __global__ void embed_rows(const u16* table, const u32* ids, float* x, int hidden, int vocab) {
    u32 id = ids[blockIdx.x];
    const u16* from = table + (u64)(id < (u32)vocab ? id : 0u) * hidden;
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) x[(u64)blockIdx.x * hidden + i] = bf_one(from[i]);
}
extern "C" __global__ void add_f32(float* x, const float* y, u64 n) {
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += y[i];
}

// Random weights made on the device: uniform in -amplitude to amplitude, two bf16 a word.
extern "C" __global__ void fill_bf16(u32* p, u64 pairs, u32 seed, float amplitude) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += (u64)gridDim.x * blockDim.x) {
        u32 h = scatter_bits((u32)i * 0x9E3779B1u + (u32)(i >> 32) * 0x85ebca6bu + seed), g = scatter_bits(h + 0x1234567u);
        p[i] = to_bf2((float)(int)h * (amplitude / 2147483648.f), (float)(int)g * (amplitude / 2147483648.f));
    }
}
extern "C" __global__ void fill_half(u32* p, u64 pairs, u32 seed, float amplitude) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < pairs; i += (u64)gridDim.x * blockDim.x) {
        u32 h = scatter_bits((u32)i * 0x9E3779B1u + (u32)(i >> 32) * 0x85ebca6bu + seed), g = scatter_bits(h + 0x1234567u);
        p[i] = to_half2((float)(int)h * (amplitude / 2147483648.f), (float)(int)g * (amplitude / 2147483648.f));
    }
}
extern "C" __global__ void fill_words(u32* p, u64 n, u32 seed) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x)
        p[i] = scatter_bits((u32)i * 0x9E3779B1u + (u32)(i >> 32) * 0x85ebca6bu + seed);
}
// Reads 16 bytes a lane, eight in flight: the ceiling that products of one row are held against.
extern "C" __global__ void __launch_bounds__(512) read_all(const V4* a, u32* out) {
    u64 base = (u64)blockIdx.x * blockDim.x * 8 + threadIdx.x;
    V4 v[8];
    u32 s = 0;
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] = load_stream(a + base + j * blockDim.x);
#pragma unroll
    for (int j = 0; j < 8; j++) s ^= v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
    if (s == 0x12345678u) out[0] = s;
}
