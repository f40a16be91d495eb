// Convolutions of pictures with many channels: weights and pixels stream through shared memory, sixteen channels at a
// time. 16-bit floats in and out, sums in f32; bias, the slope below zero and up to two pictures that are added are fused.
//
// Pictures lie as in conv3x3.cu: [height + 2][channels / 8][pitch][8] with a border of zeros. One that is written may have
// more channels than are written, and one that is read more than are read: what grows is never copied.
//
// A tile is 64 rows of the product by 128 pixels for each of four groups of warps. Rows are 64 outputs of one row of
// pixels; or with TWO 32 outputs of a row and of the one below it, which share the rows they read. At twice the size each of
// the four kinds of pixels sees 2 x 2 pixels of the input through sums of the weights, so nothing is made larger first.
//
// Weights: [kinds][groups of outputs][channels / 16][taps][2][64][8].

enum { LEFT = 8, STRIP = 128, GROUPS = 4 };
enum { TO_PICTURE = 0, TO_DOUBLE = 1, TO_PLANES = 2 };

struct StreamArgs {
    const u16* in;
    const u16* weights;
    const float* bias;    // [groups of outputs][64]
    const u16* first;     // pictures that are added, or null; their channels begin with those of the outputs
    const u16* second;
    u16* out;             // TO_PLANES: [3][height][width] f16
    float slope, own, of_first, of_second; // out = own * activated + of_first * first + of_second * second
    int height, width;    // of the input
    int in_stride, in_pitch;  // 16-byte units of a row of all channels, and of eight
    int pairs, groups;        // input channels / 16, outputs / 64
    int out_stride, out_pitch;
    int out_chunk, first_stride; // where the outputs begin, in eights of channels
    int second_stride, unused;
};

template <bool BF> __device__ __forceinline__ u32 two(float lo, float hi) { return BF ? to_bf2(lo, hi) : to_half2(lo, hi); }
template <bool BF> __device__ __forceinline__ float low(u32 v) { return BF ? bf_lo(v) : half_lo(v); }
template <bool BF> __device__ __forceinline__ float high(u32 v) { return BF ? bf_hi(v) : half_hi(v); }
__device__ __forceinline__ u32 turned(u32 v) {
    u32 r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(v));
    return r;
}

// Taps of a kind of pixels, and where the first lies.
template <int ROW_TAPS, int COL_TAPS, int ROWS_, bool BF_, int END_>
struct Shape {
    static constexpr int ROWS = ROWS_, END = END_, ROW = ROW_TAPS, COL = COL_TAPS, TAPS = ROW_TAPS * COL_TAPS;
    static constexpr bool BF = BF_;
    static __device__ __forceinline__ int first_row(int parity) { return END == TO_DOUBLE ? parity >> 1 : (ROW == 1 ? 1 : 0); }
    static __device__ __forceinline__ int first_col(int parity) { return END == TO_DOUBLE ? LEFT - 1 + (parity & 1) : (COL == 1 ? LEFT : LEFT - 1); }
};

// Eight outputs of eight pixels from x on: the lane has those of output 8 chunk + lane / 4 of the 64 at pixels x +
// 2 (lane % 4) and the next. They change places so that 16 bytes of a pixel lie in four neighbouring lanes.
template <class S>
__device__ __forceinline__ void put_eight(const StreamArgs& a, int group, int parity, int y, int x, int chunk, float v0, float v1) {
    int lane = threadIdx.x & 31;
    if (S::END == TO_PLANES) {
        int c = lane >> 2;
        if (chunk > 0 || c > 2 || y >= a.height) return;
        x += 2 * (lane & 3);
        u16* to = a.out + ((u64)c * a.height + y) * a.width + x;
        u32 v = to_half2(v0, v1);
        if (x < a.width) to[0] = (u16)(v & 0xffffu);
        if (x + 1 < a.width) to[1] = (u16)(v >> 16);
        return;
    }
    if (S::ROWS == 2) {
        y += chunk >> 2;
        chunk &= 3;
    }
    if (y >= a.height) return;
    v0 = a.own * (fmaxf(v0, 0.f) + a.slope * fminf(v0, 0.f));
    v1 = a.own * (fmaxf(v1, 0.f) + a.slope * fminf(v1, 0.f));
    bool inside = x + (lane >> 2) < a.width;
    x += lane >> 2;
    if (S::END == TO_DOUBLE) {
        y = 2 * y + (parity >> 1);
        x = 2 * x + (parity & 1);
    }
    u64 column = (u64)(group * 8 + chunk) * a.out_pitch + x + LEFT;
    u32 part = lane & 3;
    // Beyond the width is the border or what fills a row up: it may be read, not written.
    if (S::END == TO_PICTURE && a.first) {
        u32 r = turned(((const u32*)a.first)[((u64)(y + 1) * a.first_stride + column) * 4 + part]);
        v0 = fmaf(a.of_first, low<S::BF>(r), v0);
        v1 = fmaf(a.of_first, high<S::BF>(r), v1);
    }
    if (S::END == TO_PICTURE && a.second) {
        u32 r = turned(((const u32*)a.second)[((u64)(y + 1) * a.second_stride + column) * 4 + part]);
        v0 = fmaf(a.of_second, low<S::BF>(r), v0);
        v1 = fmaf(a.of_second, high<S::BF>(r), v1);
    }
    u32 r = turned(two<S::BF>(v0, v1));
    if (inside) ((u32*)a.out)[((u64)(y + 1) * a.out_stride + (u64)a.out_chunk * a.out_pitch + column) * 4 + part] = r;
}

#if HAS_WGMMA
#define PRODUCT(NAME, KIND) \
    __device__ __forceinline__ void NAME(float* c, u64 a, u64 b, int more) { \
        asm volatile( \
            "{ .reg .pred p; setp.ne.b32 p, %66, 0; " \
            "wgmma.mma_async.sync.aligned.m64n128k16.f32." KIND " {" \
            "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
            "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
            "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
            "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, " \
            "%64, %65, p, 1, 1, 0, 0; }" \
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]), \
              "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]), \
              "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]), \
              "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]), \
              "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]), \
              "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]), \
              "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]), \
              "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63]) \
            : "l"(a), "l"(b), "r"(more)); \
    }
PRODUCT(product_half, "f16.f16")
PRODUCT(product_bf, "bf16.bf16")

// One warp fetches, four groups of four multiply. SLOTS: stages of sixteen channels that shared memory holds.
template <class S, int SLOTS>
__device__ __forceinline__ void stream_fast(const StreamArgs& a) {
    extern __shared__ __align__(128) u8 shared[];
    constexpr int SPAN = STRIP + S::COL - 1, LINES = S::ROWS * (GROUPS - 1) + S::ROW, BAND = S::ROWS * GROUPS;
    constexpr u32 WEIGHTS = S::TAPS * 2048, LINE = SPAN * 16, SLOT = (WEIGHTS + LINES * 2 * LINE + 127) / 128 * 128;
    u32 slots = smem_at(shared), full = slots + SLOTS * SLOT, done = full + 8 * SLOTS;
    int thread = threadIdx.x, warp = thread >> 5, lane = thread & 31;
    int strips = (a.width + STRIP - 1) / STRIP, bands = (a.height + BAND - 1) / BAND;
    int kinds = a.groups * (S::END == TO_DOUBLE ? 4 : 1), tiles = strips * bands * kinds;
    if (thread == 0) {
        for (int s = 0; s < SLOTS; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(done + 8 * s, 4 * GROUPS);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    EARLY_START;
    WAIT_PREVIOUS;
    u32 m = 0;
    if (warp == 4 * GROUPS) {
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            int kind = tile % kinds, place = tile / kinds, x0 = place % strips * STRIP, y0 = place / strips * BAND;
            int parity = kind / a.groups, row0 = y0 + S::first_row(parity), col0 = x0 + S::first_col(parity);
            for (int p = 0; p < a.pairs; p++, m++) {
                u32 s = m % SLOTS, slot = slots + s * SLOT, barrier = full + 8 * s;
                if (m >= SLOTS) barrier_wait(done + 8 * s, (m / SLOTS - 1) & 1);
                if (lane == 0) barrier_expect(barrier, WEIGHTS + LINES * 2 * LINE);
                __syncwarp();
                if (lane == 0) bulk_load(slot, a.weights + ((u64)kind * a.pairs + p) * (S::TAPS * 1024), WEIGHTS, barrier);
                if (lane > 0 && lane <= 2 * LINES) {
                    int line = (lane - 1) >> 1, c = (lane - 1) & 1, row = min(row0 + line, a.height + 1);
                    bulk_load(slot + WEIGHTS + (lane - 1) * LINE, a.in + ((u64)row * a.in_stride + (u64)(2 * p + c) * a.in_pitch + col0) * 8, LINE, barrier);
                }
            }
        }
        return;
    }
    int g = warp >> 2, w = warp & 3;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        int kind = tile % kinds, place = tile / kinds, x0 = place % strips * STRIP, y0 = place / strips * BAND;
        int parity = kind / a.groups, group = kind % a.groups;
        float c[64];
#pragma unroll
        for (int i = 0; i < 64; i++) c[i] = 0.f;
        for (int p = 0; p < a.pairs; p++, m++) {
            u32 s = m % SLOTS, slot = slots + s * SLOT;
            barrier_wait(full + 8 * s, (m / SLOTS) & 1);
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int tap = 0; tap < S::TAPS; tap++) {
                u64 weights = matrix_at(slot + tap * 2048, 1024, 128);
                u64 pixels = matrix_at(slot + WEIGHTS + (S::ROWS * g + tap / S::COL) * 2 * LINE + (tap % S::COL) * 16, LINE, 128);
                if (S::BF) product_bf(c, weights, pixels, p + tap > 0);
                else product_half(c, weights, pixels, p + tap > 0);
            }
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            // The other groups' products keep the units busy.
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            hold<64>(c);
            if (lane == 0) barrier_arrive(done + 8 * s);
        }
        float bias_low = a.bias[group * 64 + 16 * w + (lane >> 2)], bias_high = a.bias[group * 64 + 16 * w + (lane >> 2) + 8];
        int y = y0 + S::ROWS * g;
#pragma unroll
        for (int i = 0; i < 16; i++) {
            if (x0 + 8 * i >= a.width) break;
            put_eight<S>(a, group, parity, y, x0 + 8 * i, 2 * w, c[4 * i] + bias_low, c[4 * i + 1] + bias_low);
            put_eight<S>(a, group, parity, y, x0 + 8 * i, 2 * w + 1, c[4 * i + 2] + bias_high, c[4 * i + 3] + bias_high);
        }
    }
}
#define FAST(NAME, SLOTS, ...) \
    extern "C" __global__ void __launch_bounds__(544, 1) NAME(const __grid_constant__ StreamArgs a) { stream_fast<Shape<__VA_ARGS__>, SLOTS>(a); }
#else
#define FAST(NAME, SLOTS, ...)
#endif

// Any target: a block takes 64 rows of the product by 64 pixels, by mma.sync; two stages.
enum { TILE = 64 };
template <class S>
__device__ __forceinline__ void stream_any(const StreamArgs& a) {
    extern __shared__ __align__(128) u8 shared[];
    constexpr int SPAN = TILE + S::COL - 1;
    constexpr u32 WEIGHTS = S::TAPS * 2048, LINE = SPAN * 16, SLOT = WEIGHTS + S::ROW * 2 * LINE;
    u32 slots = smem_at(shared);
    int thread = threadIdx.x, warp = thread >> 5, lane = thread & 31;
    int across = (a.width + TILE - 1) / TILE, down = (a.height + S::ROWS - 1) / S::ROWS;
    int kinds = a.groups * (S::END == TO_DOUBLE ? 4 : 1);
    EARLY_START;
    WAIT_PREVIOUS;
    for (int tile = blockIdx.x; tile < across * down * kinds; tile += gridDim.x) {
        int kind = tile % kinds, place = tile / kinds, x0 = place % across * TILE, y0 = place / across * S::ROWS;
        int parity = kind / a.groups, group = kind % a.groups, row0 = y0 + S::first_row(parity), col0 = x0 + S::first_col(parity);
        auto ask = [&](int p) {
            u32 slot = slots + (p & 1) * SLOT;
            const u8* from = (const u8*)(a.weights + ((u64)kind * a.pairs + p) * (S::TAPS * 1024));
            for (u32 i = thread; i < WEIGHTS / 16; i += blockDim.x) copy16_async(slot + i * 16, from + i * 16, true);
            for (int i = thread; i < S::ROW * 2 * SPAN; i += blockDim.x) {
                int x = i % SPAN, c = i / SPAN % 2, row = min(row0 + i / SPAN / 2, a.height + 1);
                bool real = col0 + x < a.in_pitch;
                copy16_async(slot + WEIGHTS + i * 16, a.in + ((u64)row * a.in_stride + (u64)(2 * p + c) * a.in_pitch + (real ? col0 + x : 0)) * 8, real);
            }
            copies_commit();
        };
        float acc[4][2][4];
#pragma unroll
        for (int i = 0; i < 32; i++) (&acc[0][0][0])[i] = 0.f;
        ask(0);
        for (int p = 0; p < a.pairs; p++) {
            if (p + 1 < a.pairs) {
                ask(p + 1);
                copies_wait<1>();
            } else copies_wait<0>();
            __syncthreads();
            u32 slot = slots + (p & 1) * SLOT;
#pragma unroll
            for (int tap = 0; tap < S::TAPS; tap++) {
                // Cores: pixels 0-7 and 8-15 of the lower eight channels, then of the upper ones.
                u32 b[4];
                ldmatrix4(b, slot + WEIGHTS + ((tap / S::COL) * 2 + (lane >> 4)) * LINE + (warp * 16 + ((lane >> 3) & 1) * 8 + (lane & 7) + tap % S::COL) * 16);
#pragma unroll
                for (int m = 0; m < 4; m++) {
                    u32 w[4];
                    ldmatrix4(w, slot + tap * 2048 + (lane >> 4) * 1024 + (m * 16 + ((lane >> 3) & 1) * 8 + (lane & 7)) * 16);
                    if (S::BF) {
                        mma_bf16(acc[m][0], w[0], w[1], w[2], w[3], b[0], b[2]);
                        mma_bf16(acc[m][1], w[0], w[1], w[2], w[3], b[1], b[3]);
                    } else {
                        mma_half(acc[m][0], w[0], w[1], w[2], w[3], b[0], b[2]);
                        mma_half(acc[m][1], w[0], w[1], w[2], w[3], b[1], b[3]);
                    }
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (int m = 0; m < 4; m++)
#pragma unroll
            for (int n = 0; n < 2; n++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    float bias = a.bias[group * 64 + m * 16 + 8 * h + (lane >> 2)];
                    int x = x0 + warp * 16 + n * 8;
                    if (x < a.width) put_eight<S>(a, group, parity, y0, x, 2 * m + h, acc[m][n][2 * h] + bias, acc[m][n][2 * h + 1] + bias);
                }
    }
}
#define ANY(NAME, ...) \
    extern "C" __global__ void __launch_bounds__(128) NAME(const __grid_constant__ StreamArgs a) { stream_any<Shape<__VA_ARGS__>>(a); }

#define BOTH(NAME, SLOTS, ROW, COL, ROWS, END) \
    FAST(NAME##_half, SLOTS, ROW, COL, ROWS, false, END) FAST(NAME##_bf, SLOTS, ROW, COL, ROWS, true, END) \
    ANY(NAME##_half_any, ROW, COL, ROWS, false, END) ANY(NAME##_bf_any, ROW, COL, ROWS, true, END)
BOTH(stream_3x3, 5, 3, 3, 1, TO_PICTURE)
BOTH(stream_3x3_two_rows, 3, 4, 3, 2, TO_PICTURE)
BOTH(stream_1x1, 6, 1, 1, 1, TO_PICTURE)
BOTH(stream_double, 5, 2, 2, 1, TO_DOUBLE)
BOTH(stream_planes, 5, 3, 3, 1, TO_PLANES)

// rgb: [3][height][width] f16 to the inside of a picture whose channels are c side^2 + side i + j of pixels (side y + i, side x + j).
extern "C" __global__ void picture_unshuffle(const u16* rgb, u16* out, int height, int width, int stride, int pitch, int side) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, chunk = blockIdx.z;
    if (x >= width) return;
    u16 v[8];
#pragma unroll
    for (int e = 0; e < 8; e++) {
        int at = chunk * 8 + e, c = at / (side * side), i = at / side % side, j = at % side;
        v[e] = c < 3 ? rgb[((u64)c * side * height + side * y + i) * side * width + side * x + j] : (u16)0;
    }
    V4 packed = {(u32)v[0] | ((u32)v[1] << 16), (u32)v[2] | ((u32)v[3] << 16), (u32)v[4] | ((u32)v[5] << 16), (u32)v[6] | ((u32)v[7] << 16)};
    ((V4*)out)[(u64)(y + 1) * stride + (u64)chunk * pitch + x + LEFT] = packed;
}

// Pictures as files have them, [height][width][3] of 8 or 16 bits, to [3][rows][columns] f16 of the part from (x0, y0) on; beyond
// an edge is the mirror image, which repeats neither the edge nor, of one pixel, anything else.
__device__ __forceinline__ int mirrored(int at, int len) {
    if (len == 1) return 0;
    int period = 2 * (len - 1);
    at = (at % period + period) % period;
    return min(at, period - at);
}
template <typename T>
__device__ __forceinline__ void raster_to_planes(const T* in, u16* out, int height, int width, int x0, int y0, int rows, int columns, float most) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= columns) return;
    const T* from = in + ((u64)mirrored(y0 + y, height) * width + mirrored(x0 + x, width)) * 3;
#pragma unroll
    for (int c = 0; c < 3; c++) out[((u64)c * rows + y) * columns + x] = (u16)(to_half2((float)from[c] / most, 0.f) & 0xffffu);
}
extern "C" __global__ void raster_to_planes_8(const u8* in, u16* out, int height, int width, int x0, int y0, int rows, int columns) {
    raster_to_planes(in, out, height, width, x0, y0, rows, columns, 255.f);
}
extern "C" __global__ void raster_to_planes_16(const u16* in, u16* out, int height, int width, int x0, int y0, int rows, int columns) {
    raster_to_planes(in, out, height, width, x0, y0, rows, columns, 65535.f);
}
// And back: [height][width][3] from the pixel (x0, y0) of the planes on, nearest, no number as zero.
template <typename T>
__device__ __forceinline__ void planes_to_raster(const u16* in, T* out, int height, int width, int x0, int y0, int rows, int columns, float most) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
#pragma unroll
    for (int c = 0; c < 3; c++) {
        float v = half_lo(in[((u64)c * rows + y0 + y) * columns + x0 + x]) * most;
        out[((u64)y * width + x) * 3 + c] = (T)floorf(fminf(fmaxf(v, 0.f), most) + 0.5f);
    }
}
extern "C" __global__ void planes_to_raster_8(const u16* in, u8* out, int height, int width, int x0, int y0, int rows, int columns) {
    planes_to_raster(in, out, height, width, x0, y0, rows, columns, 255.f);
}
extern "C" __global__ void planes_to_raster_16(const u16* in, u16* out, int height, int width, int x0, int y0, int rows, int columns) {
    planes_to_raster(in, out, height, width, x0, y0, rows, columns, 65535.f);
}
