// Products of 1 to 16 rows with matrices of weights: out[r, n] = sum_k x[r, k] w[n, k].
//
// A block takes 16 outputs; its 8 warps split k in steps of 32 and add up in the order of warps. All rows
// share one tile of the matrix units whose columns never meet, and the split depends on k alone: an
// output's bits depend on its own row of x and row of w, not on how many rows a call has.
//
// The matrix units may take k in any order as long as both sides agree: lane t of a quad reads 8 neighbours
// of k, which are its elements of two mma steps.

enum { PLAIN = 0, NORM = 1 };                                // what x is: bf16, or f32 to be normed
enum { STORE = 0, ADD = 1, GATE = 2, BEST = 3, STORE_BF16 = 4 }; // what follows the sum

struct GemvArgs {
    const void* w;        // weights
    const void* w2;       // GATE: the rows that are multiplied by silu of w's; packed: scales
    const void* x;        // [rows, k] bf16 (f16 with packed weights), NORM: f32
    const float* norm;    // NORM: [k]
    const float* bias;    // [n] or null
    void* out;            // [rows, n] f32; GATE, STORE_BF16: bf16
    u64* best;            // BEST: [rows], largest logit with its index
    int rows, n, k;
    float epsilon;
};

__device__ __forceinline__ V4 zero4() { V4 v = {0, 0, 0, 0}; return v; }

// 8 elements of row r of x from k on, as bf16; with NORM times the norm's weight.
template <int PRO> __device__ __forceinline__ V4 x_eight(const GemvArgs& a, int r, int k) {
    if (PRO == PLAIN) return *(const V4*)((const u16*)a.x + (u64)r * a.k + k);
    const float* x = (const float*)a.x + (u64)r * a.k + k;
    float4 p = *(const float4*)x, q = *(const float4*)(x + 4);
    float4 m = *(const float4*)(a.norm + k), n = *(const float4*)(a.norm + k + 4);
    V4 v = {to_bf2(p.x * m.x, p.y * m.y), to_bf2(p.z * m.z, p.w * m.w), to_bf2(q.x * n.x, q.y * n.y), to_bf2(q.z * n.z, q.w * n.w)};
    return v;
}

// The squares of a warp's part of each row of x, and where they are kept the row's elements as bf16 times the norm's
// weight, rows 64 bytes apart from multiples of 128 so that quads of lanes meet other banks. 16 elements a lane are asked
// for at a time.
template <bool KEEP>
__device__ __forceinline__ void norm_part(const GemvArgs& a, int first, int last, u16* kept, int stride, float* squares, int columns) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int r = 0; r < a.rows; r++) {
        const float* x = (const float*)a.x + (u64)r * a.k;
        float square = 0.f;
        for (int k = first * 32 + lane * 4; k < last * 32; k += 512) {
            float4 v[4], m[4];
#pragma unroll
            for (int u = 0; u < 4; u++) {
                bool real = k + 128 * u < last * 32;
                v[u] = real ? *(const float4*)(x + k + 128 * u) : float4{0.f, 0.f, 0.f, 0.f};
                if (KEEP) m[u] = real ? *(const float4*)(a.norm + k + 128 * u) : float4{0.f, 0.f, 0.f, 0.f};
            }
#pragma unroll
            for (int u = 0; u < 4; u++) {
                square = fmaf(v[u].x, v[u].x, square);
                square = fmaf(v[u].y, v[u].y, square);
                square = fmaf(v[u].z, v[u].z, square);
                square = fmaf(v[u].w, v[u].w, square);
                if (KEEP && k + 128 * u < last * 32) {
                    uint2 e = {to_bf2(v[u].x * m[u].x, v[u].y * m[u].y), to_bf2(v[u].z * m[u].z, v[u].w * m[u].w)};
                    *(uint2*)(kept + r * stride + k + 128 * u) = e;
                }
            }
        }
        square = warp_sum(square);
        if (lane == 0) squares[warp * columns + r] = square;
    }
    __syncwarp();
}

// Ordered so that larger floats are larger numbers, and of equals the smaller index wins.
__device__ __forceinline__ u64 best_key(float v, u32 index) {
    u32 bits = __float_as_uint(v);
    bits = (bits & 0x80000000u) ? ~bits : bits | 0x80000000u;
    return v != v ? 0ull : ((u64)bits << 32) | (u32)~index;
}

// sums: [8 warps][16 outputs][8 * TILES columns], squares: [8][8 * TILES]
template <int PRO, int EPI, int TILES>
__device__ __forceinline__ void finish_by(const GemvArgs& a, const float* sums, const float* squares, int tile, int thread, int threads) {
    constexpr int COLS = 8 * TILES;
    if (EPI == GATE) {
        for (int i = thread; i < 8 * a.rows; i += threads) {
            int g = i & 7, r = i >> 3, n = tile * 8 + g;
            float gate = 0.f, up = 0.f, square = 0.f;
            for (int w = 0; w < 8; w++) {
                gate += sums[(w * 16 + g) * COLS + r];
                up += sums[(w * 16 + g + 8) * COLS + r];
                if (PRO == NORM) square += squares[w * COLS + r];
            }
            if (PRO == NORM) {
                float scale = rsqrtf(square / (float)a.k + a.epsilon);
                gate *= scale;
                up *= scale;
            }
            if (n < a.n) ((u16*)a.out)[(u64)r * a.n + n] = to_bf(gate / (1.f + __expf(-gate)) * up);
        }
        return;
    }
    u64 best = 0;
    for (int i = thread; i < 16 * a.rows; i += threads) {
        int g = i & 15, r = i >> 4, n = tile * 16 + g;
        float sum = 0.f, square = 0.f;
        for (int w = 0; w < 8; w++) {
            sum += sums[(w * 16 + g) * COLS + r];
            if (PRO == NORM) square += squares[w * COLS + r];
        }
        if (PRO == NORM) sum *= rsqrtf(square / (float)a.k + a.epsilon);
        if (n < a.n) {
            if (a.bias) sum += a.bias[n];
            u64 at = (u64)r * a.n + n;
            if (EPI == ADD) sum += ((float*)a.out)[at];
            if (EPI == STORE_BF16) ((u16*)a.out)[at] = to_bf(sum);
            else ((float*)a.out)[at] = sum;
        }
        if (EPI == BEST) {
            best = n < a.n ? best_key(sum, (u32)n) : 0ull;
            // 16 neighbouring lanes hold one row.
#pragma unroll
            for (int o = 8; o; o >>= 1) {
                u64 other = __shfl_xor_sync(__activemask(), best, o, 16);
                if (other > best) best = other;
            }
            if (g == 0) atomicMax((unsigned long long*)&a.best[r], best);
        }
    }
}

template <int PRO, int EPI, int TILES>
__device__ __forceinline__ void finish(const GemvArgs& a, float* sums, float* squares, int tile) {
    __syncthreads();
    finish_by<PRO, EPI, TILES>(a, sums, squares, tile, threadIdx.x, blockDim.x);
}

// KEEP: x lies in shared memory, as far as each warp needs it.
template <int PRO, int EPI, int TILES, int UNROLL, bool KEEP>
__device__ __forceinline__ void gemv_bf16(const GemvArgs& a) {
    constexpr int COLS = 8 * TILES;
    __shared__ float sums[8 * 16 * COLS];
    __shared__ float squares[8 * COLS];
    extern __shared__ __align__(16) u16 kept[];
    EARLY_START;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
    int steps = a.k / 32, per = (steps + 7) / 8, first = warp * per, last = min(first + per, steps);
    int tile = blockIdx.x;
    int low = EPI == GATE ? tile * 8 + g : tile * 16 + g, high = EPI == GATE ? low : low + 8;
    const u16* w = (const u16*)a.w;
    const u16* w_low = w + (u64)min(low, a.n - 1) * a.k + 8 * t;
    const u16* w_high = (EPI == GATE ? (const u16*)a.w2 : w) + (u64)min(high, a.n - 1) * a.k + 8 * t;
    V4 p[UNROLL], q[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        bool real = first + u < last;
        p[u] = real ? load_stream(w_low + (first + u) * 32) : zero4();
        q[u] = real ? load_stream(w_high + (first + u) * 32) : zero4();
    }
    // Weights never depend on the launch before.
    WAIT_PREVIOUS;
    if (PRO == NORM) norm_part<KEEP>(a, first, last, kept, a.k + 32, squares, COLS);
    float acc[TILES][4];
#pragma unroll
    for (int c = 0; c < TILES; c++)
#pragma unroll
        for (int i = 0; i < 4; i++) acc[c][i] = 0.f;
    for (int s = first; s < last; s += UNROLL) {
        V4 x[UNROLL][TILES];
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int c = 0; c < TILES; c++)
            {
                int k = (s + u) * 32 + 8 * t;
                if (8 * c + g >= a.rows || s + u >= last) x[u][c] = zero4();
                else if (KEEP) x[u][c] = *(const V4*)(kept + g * (a.k + 32) + k);
                else x[u][c] = x_eight<PRO>(a, 8 * c + g, k);
            }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            V4 lo = p[u], hi = q[u];
            bool real = s + UNROLL + u < last;
            p[u] = real ? load_stream(w_low + (s + UNROLL + u) * 32) : zero4();
            q[u] = real ? load_stream(w_high + (s + UNROLL + u) * 32) : zero4();
#pragma unroll
            for (int c = 0; c < TILES; c++) {
                mma_bf16(acc[c], lo.x, hi.x, lo.y, hi.y, x[u][c].x, x[u][c].y);
                mma_bf16(acc[c], lo.z, hi.z, lo.w, hi.w, x[u][c].z, x[u][c].w);
            }
        }
    }
#pragma unroll
    for (int c = 0; c < TILES; c++) {
        float* s = sums + (warp * 16 + g) * COLS + 8 * c + 2 * t;
        s[0] = acc[c][0];
        s[1] = acc[c][1];
        s[8 * COLS] = acc[c][2];
        s[8 * COLS + 1] = acc[c][3];
    }
    finish<PRO, EPI, TILES>(a, sums, squares, tile);
}

#define GEMV(NAME, PRO, EPI) \
    extern "C" __global__ void __launch_bounds__(256, PRO == NORM ? 3 : 2) NAME(const __grid_constant__ GemvArgs a) { gemv_bf16<PRO, EPI, 1, 4, PRO == NORM>(a); } \
    extern "C" __global__ void __launch_bounds__(256, 2) NAME##_16(const __grid_constant__ GemvArgs a) { gemv_bf16<PRO, EPI, 2, 4, false>(a); }
GEMV(gemv_store, PLAIN, STORE)
GEMV(gemv_add, PLAIN, ADD)
GEMV(gemv_norm_store, NORM, STORE)
GEMV(gemv_norm_gate, NORM, GATE)
GEMV(gemv_norm_best, NORM, BEST)

// ---- packed weights ----
// 8 bits: codes [n][k] (two's complement), scales [n][k / 32] f16.
// 4 bits: tiles of 16 outputs by 128 of k: [n / 16][k / 128][2][32 lanes][4 words], zeros beyond n and k. Lane 4 g + t has
// of outputs g (first) and g + 8 elements 32 j + 8 t to 32 j + 8 t + 7 in word j; of these eight, element 2 i + h is bits
// 16 h + 4 i + 3 to 16 h + 4 i + 6, going round. Scales: per group of 32 or 64 a scale and a minimum, f16 each:
// [n / 16][k / 128][8][2][128 / group], the outputs g and g + 8; weight = scale * nibble + minimum.
// Codes become exact floats by their place in the significand: of 8 bits of 1024, of 4 bits of 16.

__device__ __forceinline__ u32 half_sub(u32 a, u32 b) { u32 r; asm("sub.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b)); return r; }
// Bytes 2i, 2i + 1 of codes, as f16.
__device__ __forceinline__ u32 codes_half(u32 codes, u32 pick) {
    return half_sub(__byte_perm(codes ^ 0x80808080u, 0x64646464u, pick), 0x64806480u);
}
// 16 + nibble of elements 2 i and 2 i + 1, as f16 or bf16.
template <bool BF> __device__ __forceinline__ u32 nibbles(u32 word, int i) {
    u32 r, v = __funnelshift_r(word, word, BF ? 4 * i : (4 * i + 29) & 31);
    if (BF) asm("lop3.b32 %0, %1, 0x00780078, 0x41804180, 0xea;" : "=r"(r) : "r"(v));
    else asm("lop3.b32 %0, %1, 0x03c003c0, 0x4c004c00, 0xea;" : "=r"(r) : "r"(v));
    return r;
}
template <bool BF> __device__ __forceinline__ void mma(float* c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    if (BF) mma_bf16(c, a0, a1, a2, a3, b0, b1);
    else mma_half(c, a0, a1, a2, a3, b0, b1);
}

template <int EPI, int TILES, int UNROLL>
__device__ __forceinline__ void gemv_q8(const GemvArgs& a) {
    constexpr int COLS = 8 * TILES;
    __shared__ float sums[8 * 16 * COLS];
    EARLY_START;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
    int steps = a.k / 32, per = (steps + 7) / 8, first = warp * per, last = min(first + per, steps);
    u64 low = min((int)blockIdx.x * 16 + g, a.n - 1), high = min((int)blockIdx.x * 16 + g + 8, a.n - 1);
    const i8* w_low = (const i8*)a.w + low * a.k + 8 * t;
    const i8* w_high = (const i8*)a.w + high * a.k + 8 * t;
    const u16* s_low = (const u16*)a.w2 + low * steps;
    const u16* s_high = (const u16*)a.w2 + high * steps;
    WAIT_PREVIOUS;
    float acc[TILES][4];
#pragma unroll
    for (int c = 0; c < TILES; c++)
#pragma unroll
        for (int i = 0; i < 4; i++) acc[c][i] = 0.f;
    for (int s = first; s < last; s += UNROLL) {
        uint2 p[UNROLL], q[UNROLL];
        u32 scale[UNROLL];
        V4 x[UNROLL][TILES];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            int at = min(s + u, last - 1);
            p[u] = __ldcs((const uint2*)(w_low + at * 32));
            q[u] = __ldcs((const uint2*)(w_high + at * 32));
            scale[u] = (u32)s_low[at] | ((u32)s_high[at] << 16);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int c = 0; c < TILES; c++)
                x[u][c] = (8 * c + g < a.rows && s + u < last) ? *(const V4*)((const u16*)a.x + (u64)(8 * c + g) * a.k + (s + u) * 32 + 8 * t) : zero4();
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            if (s + u >= last) break;
            u32 l0 = codes_half(p[u].x, 0x4140), l1 = codes_half(p[u].x, 0x4342), l2 = codes_half(p[u].y, 0x4140), l3 = codes_half(p[u].y, 0x4342);
            u32 h0 = codes_half(q[u].x, 0x4140), h1 = codes_half(q[u].x, 0x4342), h2 = codes_half(q[u].y, 0x4140), h3 = codes_half(q[u].y, 0x4342);
            float sl = half_lo(scale[u]), sh = half_hi(scale[u]);
#pragma unroll
            for (int c = 0; c < TILES; c++) {
                float d[4] = {0.f, 0.f, 0.f, 0.f};
                mma_half(d, l0, h0, l1, h1, x[u][c].x, x[u][c].y);
                mma_half(d, l2, h2, l3, h3, x[u][c].z, x[u][c].w);
                acc[c][0] = fmaf(sl, d[0], acc[c][0]);
                acc[c][1] = fmaf(sl, d[1], acc[c][1]);
                acc[c][2] = fmaf(sh, d[2], acc[c][2]);
                acc[c][3] = fmaf(sh, d[3], acc[c][3]);
            }
        }
    }
#pragma unroll
    for (int c = 0; c < TILES; c++) {
        float* s = sums + (warp * 16 + g) * COLS + 8 * c + 2 * t;
        s[0] = acc[c][0];
        s[1] = acc[c][1];
        s[8 * COLS] = acc[c][2];
        s[8 * COLS + 1] = acc[c][3];
    }
    finish<PLAIN, EPI, TILES>(a, sums, sums, blockIdx.x);
}

// A step is a tile of 128 of k; a warp asks for AHEAD of them before it needs the first. x: bf16 (BF) or f16. KEEP: x lies
// in shared memory. MANY: a block takes outputs in turn, so that x is made ready once, asks ahead also for the next of
// them, and a ninth warp finishes what eight have summed; the sums of x of each group lie after it: [groups][8 rows].
__device__ __forceinline__ void meet(int barrier) { asm volatile("bar.sync %0, 288;" :: "r"(barrier) : "memory"); }
__device__ __forceinline__ void pass(int barrier) { asm volatile("bar.arrive %0, 288;" :: "r"(barrier) : "memory"); }

template <int GROUP, int PRO, int EPI, int TILES, bool BF, int AHEAD, bool KEEP, bool MANY>
__device__ __forceinline__ void gemv_q4(const GemvArgs& a) {
    constexpr int COLS = 8 * TILES, PARTS = 128 / GROUP, WORDS = GROUP / 32;
    __shared__ float sums[MANY ? 2 : 1][8 * 16 * COLS];
    __shared__ float squares[8 * COLS];
    extern __shared__ __align__(16) u16 kept[];
    EARLY_START;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
    int steps = (a.k + 127) / 128, per = (steps + 7) / 8, first = min(warp * per, steps), last = min(first + per, steps);
    int end = first + (last - first + AHEAD - 1) / AHEAD * AHEAD;
    int tiles = EPI == GATE ? (a.n + 7) / 8 : (a.n + 15) / 16;
    int stride = steps * 128 + 32;
    float* of_groups = (float*)(kept + a.rows * stride);
    if (MANY && warp == 8) {
        // Barriers 1 and 2: sums are there; 3 and 4: they were read.
        WAIT_PREVIOUS;
        int turn = 0;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, turn ^= 1) {
            meet(1 + turn);
            finish_by<PRO, EPI, TILES>(a, sums[turn], squares, tile, lane, 32);
            if (tile + 2 * gridDim.x < tiles) pass(3 + turn);
        }
        return;
    }
    V4 p[AHEAD], q[AHEAD], scale[AHEAD][PARTS / 2];
    auto ask = [&](int u, int tile, int s) {
        if (s >= last || tile >= tiles) return;
        u64 at = (u64)tile * steps + s;
        const u8* w = (const u8*)a.w + at * 1024 + lane * 16;
        const u8* scales = (const u8*)a.w2 + (at * 8 + g) * (8 * PARTS);
        p[u] = load_stream(w);
        q[u] = load_stream(w + 512);
#pragma unroll
        for (int i = 0; i < PARTS / 2; i++) scale[u][i] = load_stream(scales + 16 * i);
    };
#pragma unroll
    for (int u = 0; u < AHEAD; u++) ask(u, blockIdx.x, first + u);
    // Weights never depend on the launch before.
    WAIT_PREVIOUS;
    if (PRO == NORM) norm_part<KEEP>(a, first * 4, min(last * 4, a.k / 32), kept, stride, squares, COLS);
    if (KEEP) {
        for (int r = 0; r < a.rows; r++)
            for (int from = first * 128 + lane * 8; from < last * 128; from += 8 * 256) {
                // All is asked for before any of it is kept.
                V4 v[8];
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    int k = from + i * 256;
                    v[i] = PRO == PLAIN && k < last * 128 && k < a.k ? *(const V4*)((const u16*)a.x + (u64)r * a.k + k) : zero4();
                }
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    int k = from + i * 256;
                    if (k < last * 128 && (PRO == PLAIN || k >= a.k)) *(V4*)(kept + r * stride + k) = v[i];
                }
            }
        __syncwarp();
    }
    // 8 elements of a column from k on.
    auto x_of = [&](int c, int k) {
        int r = 8 * c + g;
        if (r >= a.rows) return zero4();
        if (KEEP) return *(const V4*)(kept + r * stride + k);
        return k < a.k ? x_eight<PRO>(a, r, k) : zero4();
    };
    const u32 ones = BF ? 0x3f803f80u : 0x3c003c00u;
    auto add_up = [&](float* o, const V4& x) {
        mma<BF>(o, ones, ones, ones, ones, x.x, x.y);
        mma<BF>(o, ones, ones, ones, ones, x.z, x.w);
    };
    if (MANY) {
#pragma unroll 4
        for (int group = first * PARTS; group < last * PARTS; group++) {
            float o[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll
            for (int j = 0; j < WORDS; j++) add_up(o, x_of(0, group * GROUP + 32 * j + 8 * t));
            if (g == 0) *(float2*)(of_groups + group * 8 + 2 * t) = float2{o[0], o[1]};
        }
        __syncwarp();
    }
    int turn = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, turn ^= 1) {
        float acc[TILES][4];
#pragma unroll
        for (int c = 0; c < TILES; c++)
#pragma unroll
            for (int i = 0; i < 4; i++) acc[c][i] = 0.f;
        for (int step = first; step < end; step += AHEAD)
#pragma unroll
        for (int u = 0; u < AHEAD; u++) {
            int s = step + u;
            if (s < last) {
                u32 lo[4] = {p[u].x, p[u].y, p[u].z, p[u].w}, hi[4] = {q[u].x, q[u].y, q[u].z, q[u].w};
#pragma unroll
                for (int part = 0; part < PARTS; part++) {
                    // Words of a lane: the scales of output g, then those of g + 8.
                    const V4& low = scale[u][0];
                    const V4& high = scale[u][PARTS / 2 - 1];
                    u32 sl = part == 0 ? low.x : part == 1 ? low.y : part == 2 ? low.z : low.w;
                    u32 sh = PARTS == 2 ? (part == 0 ? high.z : high.w) : (part == 0 ? high.x : part == 1 ? high.y : part == 2 ? high.z : high.w);
                    float d[TILES][4], o[TILES][4];
#pragma unroll
                    for (int c = 0; c < TILES; c++)
#pragma unroll
                        for (int i = 0; i < 4; i++) d[c][i] = o[c][i] = 0.f;
#pragma unroll
                    for (int j = part * WORDS; j < (part + 1) * WORDS; j++) {
                        u32 l0 = nibbles<BF>(lo[j], 0), l1 = nibbles<BF>(lo[j], 1), l2 = nibbles<BF>(lo[j], 2), l3 = nibbles<BF>(lo[j], 3);
                        u32 h0 = nibbles<BF>(hi[j], 0), h1 = nibbles<BF>(hi[j], 1), h2 = nibbles<BF>(hi[j], 2), h3 = nibbles<BF>(hi[j], 3);
#pragma unroll
                        for (int c = 0; c < TILES; c++) {
                            V4 x = x_of(c, s * 128 + 32 * j + 8 * t);
                            mma<BF>(d[c], l0, h0, l1, h1, x.x, x.y);
                            mma<BF>(d[c], l2, h2, l3, h3, x.z, x.w);
                            if (!MANY) add_up(o[c], x);
                        }
                    }
                    if (MANY) {
                        float2 both = *(const float2*)(of_groups + (s * PARTS + part) * 8 + 2 * t);
                        o[0][0] = o[0][2] = both.x;
                        o[0][1] = o[0][3] = both.y;
                    }
                    float s_low = half_lo(sl), s_high = half_lo(sh), m_low = fmaf(-16.f, s_low, half_hi(sl)), m_high = fmaf(-16.f, s_high, half_hi(sh));
#pragma unroll
                    for (int c = 0; c < TILES; c++) {
                        acc[c][0] = fmaf(s_low, d[c][0], fmaf(m_low, o[c][0], acc[c][0]));
                        acc[c][1] = fmaf(s_low, d[c][1], fmaf(m_low, o[c][1], acc[c][1]));
                        acc[c][2] = fmaf(s_high, d[c][2], fmaf(m_high, o[c][2], acc[c][2]));
                        acc[c][3] = fmaf(s_high, d[c][3], fmaf(m_high, o[c][3], acc[c][3]));
                    }
                }
            }
            int over = s + AHEAD - end;
            if (over < 0) ask(u, tile, s + AHEAD);
            else if (MANY) ask(u, tile + gridDim.x, first + over);
        }
        if (MANY && tile >= blockIdx.x + 2 * gridDim.x) meet(3 + turn);
        float* to = sums[MANY ? turn : 0];
#pragma unroll
        for (int c = 0; c < TILES; c++) {
            float* s = to + (warp * 16 + g) * COLS + 8 * c + 2 * t;
            s[0] = acc[c][0];
            s[1] = acc[c][1];
            s[8 * COLS] = acc[c][2];
            s[8 * COLS + 1] = acc[c][3];
        }
        if (MANY) pass(1 + turn);
        else finish<PRO, EPI, TILES>(a, to, squares, tile);
    }
}

// The same product with weights that the copy engine brings: each of eight warps has a ring of shared memory of its own for
// its part of k and asks for what follows as soon as it has read a piece, over the bounds of outputs too, so that no
// register holds what is on its way. A piece is PIECE tiles of 128 of k; the ring is as deep as the block's memory allows.
// Bits are those of gemv_q4.
enum { PIECE = 2, DEEPEST = 8 };
template <int GROUP, int PRO, int EPI, bool BF>
__device__ __forceinline__ void gemv_q4_ring(const GemvArgs& a) {
    constexpr int PARTS = 128 / GROUP, WORDS = GROUP / 32, SCALES = 64 * PARTS, ROOM = PIECE * (1024 + SCALES);
    __shared__ float sums[2][8 * 16 * 8];
    __shared__ float squares[8 * 8];
    __shared__ __align__(8) u64 full[8 * DEEPEST];
    extern __shared__ __align__(128) u8 rings[];
    EARLY_START;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
    int steps = (a.k + 127) / 128, per = (steps + 7) / 8, first = min(warp * per, steps), last = min(first + per, steps);
    int tiles = EPI == GATE ? (a.n + 7) / 8 : (a.n + 15) / 16;
    int stride = steps * 128 + 32;
    u32 bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    int depth = min(((int)bytes - 2 * a.rows * stride - 32 * PARTS * steps) / (8 * ROOM), (int)DEEPEST);
    u16* kept = (u16*)(rings + 8 * ROOM * depth);
    float* of_groups = (float*)(kept + a.rows * stride);
    if (warp == 8) {
        WAIT_PREVIOUS;
        int turn = 0;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, turn ^= 1) {
            meet(1 + turn);
            finish_by<PRO, EPI, 1>(a, sums[turn], squares, tile, lane, 32);
            if (tile + 2 * gridDim.x < tiles) pass(3 + turn);
        }
        return;
    }
    const u8* ring = rings + warp * ROOM * depth;
    u32 ring_at = smem_at(ring), full_at = smem_at(full + warp * DEEPEST);
    int ask_tile = last > first ? blockIdx.x : tiles, ask_step = first;
    auto ask = [&](int slot) {
        if (ask_tile >= tiles) return;
        int count = min((int)PIECE, last - ask_step);
        u64 at = (u64)ask_tile * steps + ask_step;
        u32 to = ring_at + slot * ROOM, barrier = full_at + 8 * slot;
        barrier_expect(barrier, count * (1024 + SCALES));
        bulk_load(to, (const u8*)a.w + at * 1024, count * 1024, barrier);
        bulk_load(to + PIECE * 1024, (const u8*)a.w2 + at * SCALES, count * SCALES, barrier);
        ask_step += PIECE;
        if (ask_step >= last) {
            ask_step = first;
            ask_tile += gridDim.x;
        }
    };
    if (lane == 0) {
        for (int slot = 0; slot < depth; slot++) barrier_init(full_at + 8 * slot, 1);
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        for (int slot = 0; slot < depth; slot++) ask(slot);
    }
    __syncwarp();
    if (PRO == NORM) {
        // The norm's weights do not depend on the launch before, and are long gone from the cache.
        for (int k = first * 128 + lane * 32; k < min(last * 128, a.k); k += 1024)
            asm volatile("prefetch.global.L2 [%0];" :: "l"(a.norm + k));
    }
    WAIT_PREVIOUS;
    if (PRO == NORM) norm_part<true>(a, first * 4, min(last * 4, a.k / 32), kept, stride, squares, 8);
    for (int r = 0; r < a.rows; r++)
        for (int from = first * 128 + lane * 8; from < last * 128; from += 8 * 256) {
            V4 v[8];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                int k = from + i * 256;
                v[i] = PRO == PLAIN && k < last * 128 && k < a.k ? *(const V4*)((const u16*)a.x + (u64)r * a.k + k) : zero4();
            }
#pragma unroll
            for (int i = 0; i < 8; i++) {
                int k = from + i * 256;
                if (k < last * 128 && (PRO == PLAIN || k >= a.k)) *(V4*)(kept + r * stride + k) = v[i];
            }
        }
    __syncwarp();
    // Columns do not meet: those beyond the rows may hold the last row again.
    const u16* row = kept + min(g, a.rows - 1) * stride + 8 * t;
    const u32 ones = BF ? 0x3f803f80u : 0x3c003c00u;
#pragma unroll 4
    for (int group = first * PARTS; group < last * PARTS; group++) {
        float o[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll
        for (int j = 0; j < WORDS; j++) {
            V4 x = *(const V4*)(row + group * GROUP + 32 * j);
            mma<BF>(o, ones, ones, ones, ones, x.x, x.y);
            mma<BF>(o, ones, ones, ones, ones, x.z, x.w);
        }
        if (g == 0) *(float2*)(of_groups + group * 8 + 2 * t) = float2{o[0], o[1]};
    }
    __syncwarp();
    int turn = 0, slot = 0;
    u32 parity = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, turn ^= 1) {
        float acc[4] = {0.f, 0.f, 0.f, 0.f};
        for (int step = first; step < last; step += PIECE) {
            barrier_wait(full_at + 8 * slot, parity);
            const u8* piece = ring + slot * ROOM;
#pragma unroll
            for (int u = 0; u < PIECE; u++) {
                int s = step + u;
                if (s >= last) break;
                V4 p = *(const V4*)(piece + u * 1024 + lane * 16), q = *(const V4*)(piece + u * 1024 + 512 + lane * 16);
                const u8* scales = piece + PIECE * 1024 + u * SCALES + g * 8 * PARTS;
                V4 low = *(const V4*)scales, high = PARTS == 2 ? low : *(const V4*)(scales + 8 * PARTS - 16);
                u32 lo[4] = {p.x, p.y, p.z, p.w}, hi[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
                for (int part = 0; part < PARTS; part++) {
                    u32 sl = part == 0 ? low.x : part == 1 ? low.y : part == 2 ? low.z : low.w;
                    u32 sh = PARTS == 2 ? (part == 0 ? high.z : high.w) : (part == 0 ? high.x : part == 1 ? high.y : part == 2 ? high.z : high.w);
                    float d[4] = {0.f, 0.f, 0.f, 0.f};
#pragma unroll
                    for (int j = part * WORDS; j < (part + 1) * WORDS; j++) {
                        V4 x = *(const V4*)(row + s * 128 + 32 * j);
                        mma<BF>(d, nibbles<BF>(lo[j], 0), nibbles<BF>(hi[j], 0), nibbles<BF>(lo[j], 1), nibbles<BF>(hi[j], 1), x.x, x.y);
                        mma<BF>(d, nibbles<BF>(lo[j], 2), nibbles<BF>(hi[j], 2), nibbles<BF>(lo[j], 3), nibbles<BF>(hi[j], 3), x.z, x.w);
                    }
                    float2 o = *(const float2*)(of_groups + (s * PARTS + part) * 8 + 2 * t);
                    float s_low = half_lo(sl), s_high = half_lo(sh), m_low = fmaf(-16.f, s_low, half_hi(sl)), m_high = fmaf(-16.f, s_high, half_hi(sh));
                    acc[0] = fmaf(s_low, d[0], fmaf(m_low, o.x, acc[0]));
                    acc[1] = fmaf(s_low, d[1], fmaf(m_low, o.y, acc[1]));
                    acc[2] = fmaf(s_high, d[2], fmaf(m_high, o.x, acc[2]));
                    acc[3] = fmaf(s_high, d[3], fmaf(m_high, o.y, acc[3]));
                }
            }
            // All lanes have read the piece.
            __syncwarp();
            if (lane == 0) ask(slot);
            if (++slot == depth) {
                slot = 0;
                parity ^= 1;
            }
        }
        if (tile >= blockIdx.x + 2 * gridDim.x) meet(3 + turn);
        float* to = sums[turn] + (warp * 16 + g) * 8 + 2 * t;
        *(float2*)to = float2{acc[0], acc[1]};
        *(float2*)(to + 64) = float2{acc[2], acc[3]};
        pass(1 + turn);
    }
}

extern "C" __global__ void __launch_bounds__(256, 3) gemv_q8_store(const __grid_constant__ GemvArgs a) { gemv_q8<STORE, 1, 4>(a); }
extern "C" __global__ void __launch_bounds__(256, 2) gemv_q8_store_16(const __grid_constant__ GemvArgs a) { gemv_q8<STORE, 2, 4>(a); }
// Few rows are kept in shared memory; more, or long ones, are read where they lie.
#define Q4(NAME, GROUP, PRO, EPI, BF) \
    extern "C" __global__ void __launch_bounds__(256, PRO == NORM ? 3 : 2) NAME(const __grid_constant__ GemvArgs a) { gemv_q4<GROUP, PRO, EPI, 1, BF, PRO == NORM ? 2 : 4, true, false>(a); } \
    extern "C" __global__ void __launch_bounds__(256, 1) NAME##_16(const __grid_constant__ GemvArgs a) { gemv_q4<GROUP, PRO, EPI, 2, BF, 2, false, false>(a); }
#define Q4_MANY(NAME, GROUP, PRO, EPI, BF) Q4(NAME, GROUP, PRO, EPI, BF) \
    extern "C" __global__ void __launch_bounds__(288, 3) NAME##_many(const __grid_constant__ GemvArgs a) { gemv_q4<GROUP, PRO, EPI, 1, BF, 2, true, true>(a); }
#define Q4_GROUP(GROUP) \
    Q4(gemv_q4_g##GROUP##_store, GROUP, PLAIN, STORE, false) \
    Q4(gemv_q4_g##GROUP##_add, GROUP, PLAIN, ADD, true) \
    Q4_MANY(gemv_q4_g##GROUP##_norm_store, GROUP, NORM, STORE, true) \
    Q4_MANY(gemv_q4_g##GROUP##_norm_gate, GROUP, NORM, GATE, true) \
    Q4_MANY(gemv_q4_g##GROUP##_norm_best, GROUP, NORM, BEST, true)
Q4_GROUP(32)
Q4_GROUP(64)
#define Q4_RING(NAME, GROUP, PRO, EPI) \
    extern "C" __global__ void __launch_bounds__(288, 3) NAME##_ring(const __grid_constant__ GemvArgs a) { gemv_q4_ring<GROUP, PRO, EPI, true>(a); }
#define Q4_RINGS(GROUP) \
    Q4_RING(gemv_q4_g##GROUP##_add, GROUP, PLAIN, ADD) \
    Q4_RING(gemv_q4_g##GROUP##_norm_store, GROUP, NORM, STORE) \
    Q4_RING(gemv_q4_g##GROUP##_norm_gate, GROUP, NORM, GATE) \
    Q4_RING(gemv_q4_g##GROUP##_norm_best, GROUP, NORM, BEST)
Q4_RINGS(32)
Q4_RINGS(64)
