// Convolutions 3 x 3 of pictures, f16 in and out, sums in f32, with bias, PReLU and, at the end of a network,
// the pixel shuffle and the picture itself fused.
//
// Pictures lie as [height + 2][channels / 8][pitch][8] f16, pixel x of a row at x + LEFT, with a border of zeros, which
// nothing ever writes: a row of 8 channels is one run of 16-byte pixels, so every tap is the same rows from another
// start, and no border is special. Weights: [9 taps][channels / 8][64 outputs][8]; of 8 channels a tenth tap of zeros.

// Rows of pixels begin at multiples of 128 bytes, so that stores fill whole lines.
enum { LEFT = 8 };

struct ConvArgs {
    const u16* in;
    const u16* weights;
    const float* bias;   // [64]
    const float* slopes; // [64]; 1 where nothing is activated
    u16* out;            // a picture of 64 channels, or with LAST [3][scale height][scale width] f16
    const u16* base;     // LAST: picture of 8 channels whose first three are added
    int height, width, pitch; // pitch: pixels of a row with its border
    int scale;           // LAST: 2 or 4; there are 3 scale^2 outputs
    int parts;           // of a strip, one a block; 0: strips end to end are divided among the blocks
};

__device__ __forceinline__ float prelu(float v, float slope) { return fmaxf(v, 0.f) + slope * fminf(v, 0.f); }

enum { LAST_OUTPUTS = 48 }; // the most

// The end of a network: out[c][s y + i][s x + j] = sums[c s s + s i + j] + base[c]. sums: [3 s s][width of the tile]
template <int S>
__device__ __forceinline__ void shuffle(const ConvArgs& a, const float* sums, int tile, int y, int x0, int thread, int threads) {
    for (int p = thread; p < tile; p += threads) {
        int x = x0 + p;
        if (x >= a.width) break;
        const u32* base = (const u32*)(a.base + ((u64)(y + 1) * a.pitch + x + LEFT) * 8);
        u32 rg = base[0], b = base[1];
        float rgb[3] = {half_lo(rg), half_hi(rg), half_lo(b)};
#pragma unroll
        for (int c = 0; c < 3; c++)
#pragma unroll
            for (int i = 0; i < S; i++) {
                u32* to = (u32*)(a.out + ((u64)(c * S * a.height + S * y + i) * S * a.width + S * x));
#pragma unroll
                for (int j = 0; j < S; j += 2) {
                    int at = c * S * S + S * i + j;
                    to[j / 2] = to_half2(sums[at * tile + p] + rgb[c], sums[(at + 1) * tile + p] + rgb[c]);
                }
            }
    }
}

#if HAS_WGMMA
// ---- Hopper: the picture streams past weights that stay in shared memory. Outputs are the rows of the product and
// pixels its columns, so both operands are read as they lie. A block walks down a strip of 128 pixels: one warp
// fetches rows ahead by the copy engine, two groups of four warps take rows in turn.

enum { STRIP = 128, SLOT_PX = STRIP + 2 };

__device__ __forceinline__ void wgmma_m64n128k16(float* c, u64 a, u64 b, int more) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %66, 0; "
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "%64, %65, p, 1, 1, 0, 0; }"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),
          "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]),
          "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
          "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]),
          "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]),
          "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]),
          "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]),
          "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
        : "l"(a), "l"(b), "r"(more));
}
// CHUNKS: input channels / 8. The segment of rows of all strips that a block takes is [first, last) of strips * height.
template <int CHUNKS, bool LAST, int SLOTS>
__device__ __forceinline__ void conv_strips(const ConvArgs& a) {
    extern __shared__ __align__(128) u8 shared[];
    constexpr u32 WEIGHTS = (CHUNKS > 1 ? 9 * CHUNKS : 10) * 64 * 16, SLOT = CHUNKS * SLOT_PX * 16, STAGE = LAST ? LAST_OUTPUTS * STRIP * 4 : 8 * STRIP * 16;
    u32 weights = smem_at(shared), slots = weights + WEIGHTS, stages = slots + SLOTS * SLOT, barriers = stages + 2 * STAGE;
    u32 full = barriers, done = barriers + 8 * SLOTS, ready = barriers + 16 * SLOTS;
    int thread = threadIdx.x, warp = thread >> 5, lane = thread & 31;
    int strips = (a.width + STRIP - 1) / STRIP;
    int first, last;
    if (a.parts) {
        int strip = blockIdx.x / a.parts, part = blockIdx.x % a.parts;
        first = strip * a.height + part * a.height / a.parts;
        last = strip * a.height + (part + 1) * a.height / a.parts;
    } else {
        first = (int)((long long)blockIdx.x * strips * a.height / gridDim.x);
        last = (int)((long long)(blockIdx.x + 1) * strips * a.height / gridDim.x);
    }
    if (thread == 0) {
        for (int s = 0; s < SLOTS; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(done + 8 * s, 1);
        }
        barrier_init(ready, 1);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        barrier_expect(ready, WEIGHTS);
        for (u32 at = 0; at < WEIGHTS; at += 8192) bulk_load(weights + at, (const u8*)a.weights + at, min(8192u, WEIGHTS - at), ready);
    }
    __syncthreads();
    EARLY_START;
    WAIT_PREVIOUS;
    if (warp == 8) {
        if (lane == 0) {
            u32 m = 0;
            for (int at = first; at < last;) {
                int strip = at / a.height, y0 = at % a.height, rows = min(last - at, a.height - y0);
                for (int r = 0; r < rows + 2; r++, m++) {
                    // The slot's row was last read by the output that began with it; a strip's last two rows begin none.
                    if (m >= SLOTS) barrier_wait(done + 8 * (m % SLOTS), (m / SLOTS - 1) & 1);
                    u32 slot = slots + (m % SLOTS) * SLOT, barrier = full + 8 * (m % SLOTS);
                    barrier_expect(barrier, SLOT);
                    const u16* row = a.in + ((u64)(y0 + r) * CHUNKS * a.pitch + strip * STRIP + LEFT - 1) * 8;
                    for (int c = 0; c < CHUNKS; c++) bulk_load(slot + c * SLOT_PX * 16, row + (u64)c * a.pitch * 8, SLOT_PX * 16, barrier);
                }
                at += rows;
            }
        }
        return;
    }
    int group = warp >> 2, w = warp & 3;
    float bias_low = a.bias[16 * w + (lane >> 2)], bias_high = a.bias[16 * w + (lane >> 2) + 8];
    float slope_low = a.slopes[16 * w + (lane >> 2)], slope_high = a.slopes[16 * w + (lane >> 2) + 8];
    u32 stage = stages + group * STAGE;
    bool leader = (thread & 127) == 0;
    barrier_wait(ready, 0);
    u32 m = 0, turn = 0;
    for (int at = first; at < last;) {
        int strip = at / a.height, y0 = at % a.height, rows = min(last - at, a.height - y0);
        int x0 = strip * STRIP;
        for (int r = 0; r < rows; r++, turn ^= 1) {
            if ((int)turn != group) continue;
#pragma unroll
            for (int d = 0; d < 3; d++) barrier_wait(full + 8 * ((m + r + d) % SLOTS), ((m + r + d) / SLOTS) & 1);
            float c[64];
#pragma unroll
            for (int i = 0; i < 64; i++) c[i] = 0.f;
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            if (CHUNKS > 1) {
#pragma unroll
                for (int tap = 0; tap < 9; tap++) {
                    u32 slot = slots + ((m + r + tap / 3) % SLOTS) * SLOT + (tap % 3) * 16;
#pragma unroll
                    for (int k = 0; k < CHUNKS / 2; k++)
                        wgmma_m64n128k16(c, matrix_at(weights + (tap * CHUNKS + 2 * k) * 1024, 1024, 128),
                                         matrix_at(slot + 2 * k * SLOT_PX * 16, SLOT_PX * 16, 128), tap + k > 0);
                }
            } else {
                // Two taps are the halves of k: 0 with 1, and 2 with a tenth tap whose weights are zero.
#pragma unroll
                for (int dy = 0; dy < 3; dy++) {
                    u32 slot = slots + ((m + r + dy) % SLOTS) * SLOT, taps = weights + dy * 3 * 1024;
                    wgmma_m64n128k16(c, matrix_at(taps, 1024, 128), matrix_at(slot, 16, 128), dy > 0);
                    wgmma_m64n128k16(c, matrix_at(taps + 2048, (9 - (3 * dy + 2)) * 1024, 128), matrix_at(slot + 32, 0, 128), 1);
                }
            }
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            hold<64>(c);
            // Both groups' warps are past their reads once each has arrived here.
            asm volatile("bar.sync %0, 128;" :: "r"(group + 1) : "memory");
            if (leader) {
                barrier_arrive(done + 8 * ((m + r) % SLOTS));
                // The two rows below a segment begin no output: they are free with its last one, or the last but one.
                if (r == rows - 1) {
                    barrier_arrive(done + 8 * ((m + r + 1) % SLOTS));
                    barrier_arrive(done + 8 * ((m + r + 2) % SLOTS));
                }
            }
            int y = y0 + r;
            if (LAST) {
                float* sums = (float*)(shared + (stage - weights));
                if (w < LAST_OUTPUTS / 16) {
#pragma unroll
                    for (int i = 0; i < 16; i++) {
                        int p = 8 * i + 2 * (lane & 3), ch = 16 * w + (lane >> 2);
                        sums[ch * STRIP + p] = c[4 * i] + bias_low;
                        sums[ch * STRIP + p + 1] = c[4 * i + 1] + bias_low;
                        sums[(ch + 8) * STRIP + p] = c[4 * i + 2] + bias_high;
                        sums[(ch + 8) * STRIP + p + 1] = c[4 * i + 3] + bias_high;
                    }
                }
                asm volatile("bar.sync %0, 128;" :: "r"(group + 1) : "memory");
                if (a.scale == 2) shuffle<2>(a, sums, STRIP, y, x0, thread & 127, 128);
                else shuffle<4>(a, sums, STRIP, y, x0, thread & 127, 128);
                asm volatile("bar.sync %0, 128;" :: "r"(group + 1) : "memory");
                continue;
            }
            // What the copy engine still reads of the stage must not be overwritten.
            if (leader) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            asm volatile("bar.sync %0, 128;" :: "r"(group + 1) : "memory");
            u32 to = stage + ((2 * w + (lane >> 4)) * STRIP + ((lane >> 3) & 1) * 8 + (lane & 7)) * 16;
#pragma unroll
            for (int i = 0; i < 16; i += 2) {
                u32 v[4];
                v[0] = to_half2(prelu(c[4 * i] + bias_low, slope_low), prelu(c[4 * i + 1] + bias_low, slope_low));
                v[1] = to_half2(prelu(c[4 * i + 4] + bias_low, slope_low), prelu(c[4 * i + 5] + bias_low, slope_low));
                v[2] = to_half2(prelu(c[4 * i + 2] + bias_high, slope_high), prelu(c[4 * i + 3] + bias_high, slope_high));
                v[3] = to_half2(prelu(c[4 * i + 6] + bias_high, slope_high), prelu(c[4 * i + 7] + bias_high, slope_high));
                asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" :: "r"(to + i * 128), "r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]) : "memory");
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            asm volatile("bar.sync %0, 128;" :: "r"(group + 1) : "memory");
            if (leader) {
                u32 bytes = min((int)STRIP, a.width - x0) * 16;
                for (int ch = 0; ch < 8; ch++)
                    bulk_store(a.out + (((u64)(y + 1) * 8 + ch) * a.pitch + x0 + LEFT) * 8, stage + ch * STRIP * 16, bytes);
                asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            }
        }
        m += rows + 2;
        at += rows;
    }
    if (leader) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
#define CONV(NAME, CHUNKS, LAST) \
    extern "C" __global__ void __launch_bounds__(288, 1) NAME(const __grid_constant__ ConvArgs a) { conv_strips<CHUNKS, LAST, LAST ? 6 : 7>(a); }
#else
#define CONV(NAME, CHUNKS, LAST)
#endif
CONV(conv_strips_3, 1, false)
CONV(conv_strips_64, 8, false)
CONV(conv_strips_64_last, 8, true)

// ---- any target: tiles of 64 pixels of a row by mma.sync; fits 99 KB of shared memory ----
enum { TILE = 64, TILE_PX = TILE + 2 };

template <int CHUNKS, bool LAST>
__device__ __forceinline__ void conv_tiles(const ConvArgs& a) {
    extern __shared__ __align__(128) u8 shared[];
    constexpr u32 WEIGHTS = 9 * CHUNKS * 64 * 16;
    u32 weights = smem_at(shared), rows = weights + WEIGHTS;
    int thread = threadIdx.x, warp = thread >> 5, lane = thread & 31;
    for (u32 i = thread; i < WEIGHTS / 16; i += blockDim.x) copy16_async(weights + i * 16, (const u8*)a.weights + i * 16, true);
    copies_commit();
    EARLY_START;
    WAIT_PREVIOUS;
    int across = (a.width + TILE - 1) / TILE;
    for (int tile = blockIdx.x; tile < across * a.height; tile += gridDim.x) {
        int y = tile / across, x0 = tile % across * TILE;
        __syncthreads();
        for (int i = thread; i < 3 * CHUNKS * TILE_PX; i += blockDim.x) {
            int p = i % TILE_PX, c = i / TILE_PX % CHUNKS, r = i / TILE_PX / CHUNKS;
            int x = x0 + p + LEFT - 1;
            bool real = x < a.pitch;
            copy16_async(rows + i * 16, a.in + (((u64)(y + r) * CHUNKS + c) * a.pitch + (real ? x : 0)) * 8, real);
        }
        copies_commit();
        copies_wait<0>();
        __syncthreads();
        // A warp takes 16 pixels and all outputs.
        float acc[4][2][4];
#pragma unroll
        for (int i = 0; i < 32; i++) (&acc[0][0][0])[i] = 0.f;
#pragma unroll
        for (int tap = 0; tap < 9; tap++) {
#pragma unroll
            for (int k = 0; k < (CHUNKS + 1) / 2; k++) {
                // Cores: pixels 0-7 and 8-15 of the lower chunk, then of the upper one.
                int upper = CHUNKS > 1 ? 2 * k + (lane >> 4) : 0;
                u32 b[4];
                ldmatrix4(b, rows + (((tap / 3) * CHUNKS + upper) * TILE_PX + warp * 16 + ((lane >> 3) & 1) * 8 + (lane & 7) + tap % 3) * 16);
                if (CHUNKS == 1) b[2] = b[3] = 0;
#pragma unroll
                for (int m = 0; m < 4; m++) {
                    u32 w[4];
                    ldmatrix4(w, weights + ((tap * CHUNKS + upper) * 64 + m * 16 + ((lane >> 3) & 1) * 8 + (lane & 7)) * 16);
                    mma_half(acc[m][0], w[0], w[1], w[2], w[3], b[0], b[2]);
                    mma_half(acc[m][1], w[0], w[1], w[2], w[3], b[1], b[3]);
                }
            }
        }
        __syncthreads();
        // Sums go through the rows' memory to lie as pixels.
        if (LAST) {
            float* sums = (float*)(shared + WEIGHTS);
#pragma unroll
            for (int m = 0; m < LAST_OUTPUTS / 16; m++)
#pragma unroll
                for (int n = 0; n < 2; n++)
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        int ch = m * 16 + (lane >> 2) + 8 * (i >> 1), p = warp * 16 + n * 8 + 2 * (lane & 3) + (i & 1);
                        sums[ch * TILE + p] = acc[m][n][i] + a.bias[ch];
                    }
            __syncthreads();
            if (a.scale == 2) shuffle<2>(a, sums, TILE, y, x0, thread, blockDim.x);
            else shuffle<4>(a, sums, TILE, y, x0, thread, blockDim.x);
        } else {
            u16* stage = (u16*)(shared + WEIGHTS);
#pragma unroll
            for (int m = 0; m < 4; m++)
#pragma unroll
                for (int n = 0; n < 2; n++)
#pragma unroll
                    for (int i = 0; i < 4; i++) {
                        int ch = m * 16 + (lane >> 2) + 8 * (i >> 1), p = warp * 16 + n * 8 + 2 * (lane & 3) + (i & 1);
                        stage[((ch >> 3) * TILE + p) * 8 + (ch & 7)] = (u16)(to_half2(prelu(acc[m][n][i] + a.bias[ch], a.slopes[ch]), 0.f) & 0xffffu);
                    }
            __syncthreads();
            for (int i = thread; i < 8 * TILE; i += blockDim.x) {
                int p = i % TILE, c = i / TILE;
                if (x0 + p < a.width) ((V4*)a.out)[((u64)(y + 1) * 8 + c) * a.pitch + x0 + p + LEFT] = ((const V4*)stage)[c * TILE + p];
            }
        }
    }
}
extern "C" __global__ void __launch_bounds__(128) conv_tiles_3(const __grid_constant__ ConvArgs a) { conv_tiles<1, false>(a); }
extern "C" __global__ void __launch_bounds__(128) conv_tiles_64(const __grid_constant__ ConvArgs a) { conv_tiles<8, false>(a); }
extern "C" __global__ void __launch_bounds__(128) conv_tiles_64_last(const __grid_constant__ ConvArgs a) { conv_tiles<8, true>(a); }

// rgb: [3][height][width] f16 to the inside of a picture of 8 channels.
extern "C" __global__ void picture_pack_rgb(const u16* rgb, u16* out, int height, int width, int pitch) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    u64 plane = (u64)height * width, at = (u64)y * width + x;
    V4 v = {(u32)rgb[at] | ((u32)rgb[plane + at] << 16), (u32)rgb[2 * plane + at], 0, 0};
    ((V4*)out)[(u64)(y + 1) * pitch + x + LEFT] = v;
}

// [3][height][width] to [3][height / 2][width / 2], f16, by cubic convolution with a = -3/4: a pixel of the half lies in the
// middle of four, so the weights along a side are two. Rows are weighted first, sums in f32; beyond an edge is the edge.
__device__ __forceinline__ float between(float a, float b, float c, float d) { return fmaf(b + c, 0.59375f, (a + d) * -0.09375f); }
extern "C" __global__ void __launch_bounds__(256) halve_bicubic_half(const u16* in, u16* out, int height, int width) {
    int x = (blockIdx.x * blockDim.x + threadIdx.x) * 4, y = blockIdx.y, half = width / 2;
    const u16* plane = in + (u64)blockIdx.z * height * width;
    if (x >= half) return;
    WAIT_PREVIOUS;
    float column[10];
    float rows[4][10];
#pragma unroll
    for (int r = 0; r < 4; r++) {
        const u16* row = plane + (u64)min(max(2 * y + r - 1, 0), height - 1) * width;
        int first = 2 * x;
        if (width % 8 == 0) {
            V4 v = *(const V4*)(row + first);
            rows[r][1] = half_lo(v.x); rows[r][2] = half_hi(v.x); rows[r][3] = half_lo(v.y); rows[r][4] = half_hi(v.y);
            rows[r][5] = half_lo(v.z); rows[r][6] = half_hi(v.z); rows[r][7] = half_lo(v.w); rows[r][8] = half_hi(v.w);
            rows[r][0] = half_lo(row[max(first - 1, 0)]);
            rows[r][9] = half_lo(row[min(first + 8, width - 1)]);
        } else {
#pragma unroll
            for (int i = 0; i < 10; i++) rows[r][i] = half_lo(row[min(max(first + i - 1, 0), width - 1)]);
        }
    }
#pragma unroll
    for (int i = 0; i < 10; i++) column[i] = between(rows[0][i], rows[1][i], rows[2][i], rows[3][i]);
    u16* to = out + ((u64)blockIdx.z * (height / 2) + y) * half + x;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (x + i < half) to[i] = (u16)(to_half2(between(column[2 * i], column[2 * i + 1], column[2 * i + 2], column[2 * i + 3]), 0.f) & 0xffffu);
}
