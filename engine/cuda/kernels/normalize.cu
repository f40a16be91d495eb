// Norms of groups of channels of bf16 pictures, and what attention over pixels needs beside products.
//
// Pictures lie as in conv3x3.cu. A group has 4, 8 or 16 channels: one, two or four halves of eights.

enum { LEFT = 8 };

// Sums and sums of squares of the halves of eights of channels: [chunks][2][bands][2], a block each eight and band of rows.
extern "C" __global__ void __launch_bounds__(256) group_sums(const u16* in, float* sums, int height, int width, int stride, int pitch, int rows) {
    __shared__ float shared[32];
    WAIT_PREVIOUS;
    int band = blockIdx.x, chunk = blockIdx.y, bands = gridDim.x;
    int first = band * rows, last = min(first + rows, height);
    float s[4] = {0.f, 0.f, 0.f, 0.f};
    const V4* from = (const V4*)in + (u64)chunk * pitch + LEFT;
    for (int y = first; y < last; y++)
        for (int x = threadIdx.x; x < width; x += blockDim.x) {
            V4 v = from[(u64)(y + 1) * stride + x];
            u32 w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float a = bf_lo(w[i]), b = bf_hi(w[i]);
                s[i / 2 * 2] += a + b;
                s[i / 2 * 2 + 1] = fmaf(a, a, fmaf(b, b, s[i / 2 * 2 + 1]));
            }
        }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float total = block_sum(s[i], shared);
        if (threadIdx.x == 0) sums[(((u64)chunk * 2 + i / 2) * bands + band) * 2 + i % 2] = total;
    }
}

// factors: [2][channels], so that the norm is value * factor + other. A block of one warp for each group.
extern "C" __global__ void group_factors(const float* sums, const float* weight, const float* bias, float* factors, int channels, int bands, float count, float epsilon) {
    WAIT_PREVIOUS;
    int group = blockIdx.x, size = channels / gridDim.x, lane = threadIdx.x;
    int parts = size / 4 * bands;
    const float* from = sums + (u64)group * parts * 2;
    double s = 0., q = 0.;
    for (int i = lane; i < parts; i += 32) {
        s += from[2 * i];
        q += from[2 * i + 1];
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) {
        s += __shfl_xor_sync(0xffffffffu, s, o);
        q += __shfl_xor_sync(0xffffffffu, q, o);
    }
    double mean = s / count, variance = q / count - mean * mean;
    float root = rsqrtf((float)(variance > 0. ? variance : 0.) + epsilon);
    if (lane < size) {
        int c = group * size + lane;
        float factor = weight[c] * root;
        factors[c] = factor;
        factors[channels + c] = bias[c] - (float)mean * factor;
    }
}

// Eight channels of a pixel, normed, and with SILU activated.
template <bool SILU> __device__ __forceinline__ V4 normed(V4 v, const float* factor, const float* other) {
    u32 w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float a = fmaf(bf_lo(w[i]), factor[2 * i], other[2 * i]), b = fmaf(bf_hi(w[i]), factor[2 * i + 1], other[2 * i + 1]);
        if (SILU) {
            a = __fdividef(a, 1.f + __expf(-a));
            b = __fdividef(b, 1.f + __expf(-b));
        }
        w[i] = to_bf2(a, b);
    }
    V4 r = {w[0], w[1], w[2], w[3]};
    return r;
}

// TOKENS: to [height * width][channels] instead of a picture.
template <bool TOKENS>
__device__ __forceinline__ void group_apply(const u16* in, const float* factors, u16* out, int channels, int height, int width, int stride, int pitch, int out_stride) {
    WAIT_PREVIOUS;
    int y = blockIdx.y, chunk = blockIdx.z;
    float factor[8], other[8];
#pragma unroll
    for (int i = 0; i < 8; i++) {
        factor[i] = factors[chunk * 8 + i];
        other[i] = factors[channels + chunk * 8 + i];
    }
    const V4* from = (const V4*)in + (u64)(y + 1) * stride + (u64)chunk * pitch + LEFT;
    for (int i = 0; i < 4; i++) {
        int x = (blockIdx.x * 4 + i) * blockDim.x + threadIdx.x;
        if (x >= width) return;
        V4 v = normed<!TOKENS>(from[x], factor, other);
        if (TOKENS) *(V4*)(out + ((u64)y * width + x) * channels + chunk * 8) = v;
        else ((V4*)out)[(u64)(y + 1) * out_stride + (u64)chunk * pitch + LEFT + x] = v;
    }
}
extern "C" __global__ void __launch_bounds__(128) group_apply_silu(const u16* in, const float* factors, u16* out, int channels, int height, int width, int stride, int pitch, int out_stride) {
    group_apply<false>(in, factors, out, channels, height, width, stride, pitch, out_stride);
}
extern "C" __global__ void __launch_bounds__(128) group_apply_tokens(const u16* in, const float* factors, u16* out, int channels, int height, int width, int stride, int pitch, int out_stride) {
    group_apply<true>(in, factors, out, channels, height, width, stride, pitch, out_stride);
}

// picture += tokens + bias; tokens: [height * width][channels] bf16.
extern "C" __global__ void __launch_bounds__(128) add_tokens(const u16* tokens, const float* bias, u16* picture, int channels, int height, int width, int stride, int pitch) {
    WAIT_PREVIOUS;
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, chunk = blockIdx.z;
    if (x >= width) return;
    V4* at = (V4*)picture + (u64)(y + 1) * stride + (u64)chunk * pitch + LEFT + x;
    V4 v = *at, t = *(const V4*)(tokens + ((u64)y * width + x) * channels + chunk * 8);
    u32 a[4] = {v.x, v.y, v.z, v.w}, b[4] = {t.x, t.y, t.z, t.w};
#pragma unroll
    for (int i = 0; i < 4; i++)
        a[i] = to_bf2(bf_lo(a[i]) + bf_lo(b[i]) + bias[chunk * 8 + 2 * i], bf_hi(a[i]) + bf_hi(b[i]) + bias[chunk * 8 + 2 * i + 1]);
    V4 r = {a[0], a[1], a[2], a[3]};
    *at = r;
}

// rows: [count][n] bf16 += bias[n]; n is even.
extern "C" __global__ void __launch_bounds__(256) add_bias_bf(u32* rows, const float* bias, u64 pairs, int n) {
    WAIT_PREVIOUS;
    u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= pairs) return;
    int c = (int)(2 * at % n);
    u32 v = rows[at];
    rows[at] = to_bf2(bf_lo(v) + bias[c], bf_hi(v) + bias[c + 1]);
}

// out = softmax(scale * row), bf16; a block for each row of n f32, n a multiple of 4.
extern "C" __global__ void __launch_bounds__(512) softmax_rows(const float* in, u16* out, int n, float scale) {
    __shared__ float shared[32];
    WAIT_PREVIOUS;
    const float4* row = (const float4*)(in + (u64)blockIdx.x * n);
    u64* to = (u64*)(out + (u64)blockIdx.x * n);
    int quads = n / 4;
    float most = -INF;
    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
        float4 v = row[i];
        most = fmaxf(most, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, o));
    if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = most;
    __syncthreads();
    for (int w = 0; w < (blockDim.x >> 5); w++) most = fmaxf(most, shared[w]);
    scale *= 1.44269504f;
    float shift = -most * scale, sum = 0.f;
    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
        float4 v = row[i];
        sum += power_of_two(fmaf(v.x, scale, shift)) + power_of_two(fmaf(v.y, scale, shift)) + power_of_two(fmaf(v.z, scale, shift)) + power_of_two(fmaf(v.w, scale, shift));
    }
    float factor = 1.f / block_sum(sum, shared);
    for (int i = threadIdx.x; i < quads; i += blockDim.x) {
        float4 v = row[i];
        u32 a = to_bf2(factor * power_of_two(fmaf(v.x, scale, shift)), factor * power_of_two(fmaf(v.y, scale, shift)));
        u32 b = to_bf2(factor * power_of_two(fmaf(v.z, scale, shift)), factor * power_of_two(fmaf(v.w, scale, shift)));
        to[i] = (u64)a | ((u64)b << 32);
    }
}
