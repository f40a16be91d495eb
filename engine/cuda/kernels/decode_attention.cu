// One decode step of attention: rope (and norms) of the new query and key, the key and value into their page,
// softmax(q k^T * scale) v over all positions up to the new one.
//
// Keys and values: [pages, kv_heads, 64, D] bf16. A block takes one page of one row and one head of keys; the
// last block of a row's head to finish adds the pages up in their order. Pages lie at absolute positions and
// the order of additions is fixed: bits do not depend on how many rows a call has.

enum { PAGE = 64 };

struct DecodeArgs {
    const float* qkv;     // [rows, heads * D + 2 * kv_heads * D]
    const float* q_norm;  // [D] or null
    const float* k_norm;
    const float* turns;   // [positions, D]: D/2 cosines, then as many sines
    const int* positions; // [rows]
    const int* pages;     // [rows, max_pages]
    u16* keys;
    u16* values;
    float* partial;       // [rows, heads, max_pages, D + 2]
    u32* counters;        // [rows, kv_heads], zero
    u16* out;             // [rows, heads * D] bf16
    int heads, kv_heads, max_pages, neighbours;
    float scale, epsilon;
};

// One head, normed and turned, by one warp. from: f32 [D] in global memory, to: shared.
template <int D>
__device__ __forceinline__ void turn_head(const float* from, const float* norm, const float* turn, float* to,
                                          float times, float epsilon, int neighbours) {
    int lane = threadIdx.x & 31;
    float scale = 1.f;
    if (norm) {
        float squares = 0.f;
        for (int i = lane; i < D; i += 32) squares = fmaf(from[i], from[i], squares);
        scale = rsqrtf(warp_sum(squares) / (float)D + epsilon);
    }
    for (int i = lane; i < D / 2; i += 32) {
        int a = neighbours ? 2 * i : i, b = neighbours ? 2 * i + 1 : i + D / 2;
        float p = from[a] * scale * (norm ? norm[a] : 1.f), q = from[b] * scale * (norm ? norm[b] : 1.f);
        to[a] = (p * turn[i] - q * turn[D / 2 + i]) * times;
        to[b] = (p * turn[D / 2 + i] + q * turn[i]) * times;
    }
}

__device__ __forceinline__ float dot_eight(V4 k, const float* x) {
    float s = bf_lo(k.x) * x[0];
    s = fmaf(bf_hi(k.x), x[1], s); s = fmaf(bf_lo(k.y), x[2], s); s = fmaf(bf_hi(k.y), x[3], s);
    s = fmaf(bf_lo(k.z), x[4], s); s = fmaf(bf_hi(k.z), x[5], s); s = fmaf(bf_lo(k.w), x[6], s);
    return fmaf(bf_hi(k.w), x[7], s);
}
__device__ __forceinline__ V4 to_eight(const float* x) {
    V4 v = {to_bf2(x[0], x[1]), to_bf2(x[2], x[3]), to_bf2(x[4], x[5]), to_bf2(x[6], x[7])};
    return v;
}

template <int D, int GROUP>
__device__ __forceinline__ void decode_attention(const DecodeArgs& a) {
    constexpr int LANES = D / 8, AT_ONCE = 32 / LANES, WARPS = D >= 64 ? 8 : 4, STRIDE = WARPS * AT_ONCE, TIMES = PAGE / STRIDE;
    __shared__ float q[GROUP][D];
    __shared__ float fresh[D];
    __shared__ float weights[GROUP][PAGE];
    __shared__ float mixed[WARPS][GROUP][D];
    __shared__ float extent[GROUP][2];
    __shared__ bool is_last;
    EARLY_START;
    int head = blockIdx.x, page = blockIdx.y, row = blockIdx.z;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, part = lane % LANES, of = lane / LANES;
    u64 base = ((u64)a.pages[row * a.max_pages + page] * a.kv_heads + head) * PAGE * D;
    u16 *keys = a.keys + base, *values = a.values + base;
    WAIT_PREVIOUS;
    int position = a.positions[row], pages = position / PAGE + 1;
    if (position < 0 || page >= pages || pages > a.max_pages) return;
    int count = min(PAGE, position + 1 - page * PAGE), newest = page == pages - 1 ? count - 1 : PAGE;
    // All of the page is asked for at once; LANES lanes share a position.
    V4 k[TIMES], v[TIMES];
#pragma unroll
    for (int i = 0; i < TIMES; i++) {
        int p = warp * AT_ONCE + of + i * STRIDE;
        bool kept = p < count && p != newest;
        k[i] = kept ? *(const V4*)(keys + p * D + part * 8) : V4{0, 0, 0, 0};
        v[i] = kept ? *(const V4*)(values + p * D + part * 8) : V4{0, 0, 0, 0};
    }
    const float* qkv = a.qkv + (u64)row * (a.heads + 2 * a.kv_heads) * D;
    const float* turn = a.turns + (u64)position * D;
    for (int h = warp; h <= GROUP; h += WARPS) {
        if (h < GROUP) turn_head<D>(qkv + (head * GROUP + h) * D, a.q_norm, turn, q[h], a.scale, a.epsilon, a.neighbours);
        else if (newest < PAGE) turn_head<D>(qkv + (a.heads + head) * D, a.k_norm, turn, fresh, 1.f, a.epsilon, a.neighbours);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TIMES; i++) {
        int p = warp * AT_ONCE + of + i * STRIDE;
        if (p == newest) {
            k[i] = to_eight(fresh + part * 8);
            v[i] = to_eight(qkv + (a.heads + a.kv_heads + head) * D + part * 8);
            *(V4*)(keys + p * D + part * 8) = k[i];
            *(V4*)(values + p * D + part * 8) = v[i];
        }
    }
#pragma unroll
    for (int i = 0; i < TIMES; i++) {
        int p = warp * AT_ONCE + of + i * STRIDE;
#pragma unroll
        for (int h = 0; h < GROUP; h++) {
            float s = dot_eight(k[i], q[h] + part * 8);
#pragma unroll
            for (int o = LANES / 2; o; o >>= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
            if (part == 0) weights[h][p] = p < count ? s : -INF;
        }
    }
    __syncthreads();
    for (int h = warp; h < GROUP; h += WARPS) {
        float s0 = weights[h][lane], s1 = weights[h][lane + 32], most = fmaxf(s0, s1);
#pragma unroll
        for (int o = 16; o; o >>= 1) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, o));
        float e0 = __expf(s0 - most), e1 = __expf(s1 - most), sum = warp_sum(e0 + e1);
        weights[h][lane] = e0;
        weights[h][lane + 32] = e1;
        if (lane == 0) {
            extent[h][0] = most;
            extent[h][1] = sum;
        }
    }
    __syncthreads();
    float acc[GROUP][8];
#pragma unroll
    for (int h = 0; h < GROUP; h++)
#pragma unroll
        for (int i = 0; i < 8; i++) acc[h][i] = 0.f;
#pragma unroll
    for (int i = 0; i < TIMES; i++) {
        int p = warp * AT_ONCE + of + i * STRIDE;
#pragma unroll
        for (int h = 0; h < GROUP; h++) {
            float e = weights[h][p];
            acc[h][0] = fmaf(e, bf_lo(v[i].x), acc[h][0]); acc[h][1] = fmaf(e, bf_hi(v[i].x), acc[h][1]);
            acc[h][2] = fmaf(e, bf_lo(v[i].y), acc[h][2]); acc[h][3] = fmaf(e, bf_hi(v[i].y), acc[h][3]);
            acc[h][4] = fmaf(e, bf_lo(v[i].z), acc[h][4]); acc[h][5] = fmaf(e, bf_hi(v[i].z), acc[h][5]);
            acc[h][6] = fmaf(e, bf_lo(v[i].w), acc[h][6]); acc[h][7] = fmaf(e, bf_hi(v[i].w), acc[h][7]);
        }
    }
#pragma unroll
    for (int h = 0; h < GROUP; h++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float s = acc[h][i];
#pragma unroll
            for (int o = LANES; o < 32; o <<= 1) s += __shfl_xor_sync(0xffffffffu, s, o);
            if (of == 0) mixed[warp][h][part * 8 + i] = s;
        }
    __syncthreads();
    auto summed = [&](int h, int d) {
        float s = mixed[0][h][d];
#pragma unroll
        for (int w = 1; w < WARPS; w++) s += mixed[w][h][d];
        return s;
    };
    u16* out = a.out + (u64)row * a.heads * D + head * GROUP * D;
    if (pages == 1) {
        for (int i = threadIdx.x; i < GROUP * D; i += blockDim.x) {
            int h = i / D, d = i % D;
            out[i] = to_bf(summed(h, d) / extent[h][1]);
        }
        return;
    }
    float* mine = a.partial + ((u64)(row * a.heads + head * GROUP) * a.max_pages + page) * (D + 2);
    for (int i = threadIdx.x; i < GROUP * D; i += blockDim.x) {
        int h = i / D, d = i % D;
        mine[(u64)h * a.max_pages * (D + 2) + d] = summed(h, d);
    }
    if (threadIdx.x < 2 * GROUP) mine[(u64)(threadIdx.x / 2) * a.max_pages * (D + 2) + D + (threadIdx.x & 1)] = extent[threadIdx.x / 2][threadIdx.x & 1];
    __syncthreads();
    if (threadIdx.x == 0) {
        // Releases what the block wrote, and sees what the blocks before it wrote.
        u32 before;
        asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(a.counters + row * a.kv_heads + head) : "memory");
        is_last = before == (u32)pages - 1;
    }
    __syncthreads();
    if (!is_last) return;
    const float* all = a.partial + (u64)(row * a.heads + head * GROUP) * a.max_pages * (D + 2);
    for (int i = threadIdx.x; i < GROUP * D; i += blockDim.x) {
        int h = i / D, d = i % D;
        const float* from = all + (u64)h * a.max_pages * (D + 2);
        float most = -INF, sum = 0.f, total = 0.f;
#pragma unroll 4
        for (int p = 0; p < pages; p++, from += D + 2) {
            float m = __ldcg(from + D), t = __ldcg(from + D + 1), v = __ldcg(from + d), now = fmaxf(most, m);
            float old = __expf(most - now), fresh_share = __expf(m - now);
            sum = fmaf(sum, old, v * fresh_share);
            total = fmaf(total, old, t * fresh_share);
            most = now;
        }
        out[i] = to_bf(sum / total);
    }
    if (threadIdx.x == 0) a.counters[row * a.kv_heads + head] = 0;
}

#define DECODE(D, G) \
    extern "C" __global__ void __launch_bounds__(D >= 64 ? 256 : 128) decode_attention_d##D##_g##G(const __grid_constant__ DecodeArgs a) { decode_attention<D, G>(a); }
DECODE(16, 1) DECODE(16, 2) DECODE(16, 4)
DECODE(32, 1) DECODE(32, 2) DECODE(32, 4)
DECODE(64, 1) DECODE(64, 2) DECODE(64, 3) DECODE(64, 4) DECODE(64, 8)
DECODE(128, 1) DECODE(128, 2) DECODE(128, 4) DECODE(128, 8)

// The step's beginning: the token that the last step chose (or that was given), its row of the table as f32
// into the residual stream, the position moved on, the choice cleared. One block a row.
struct BeginArgs {
    const u16* table;   // [vocab, hidden] bf16
    u64* best;          // [rows]
    int* positions;     // [rows]; the position of the last token
    u32* tokens;        // [rows, tokens_cap]; token i at i, what is given lies before its turn
    const int* given;   // [rows]; how many tokens were given
    float* x;           // [rows, hidden]
    int hidden, vocab, tokens_cap;
};
extern "C" __global__ void __launch_bounds__(256) decode_begin(const __grid_constant__ BeginArgs a) {
    __shared__ u32 chosen;
    WAIT_PREVIOUS;
    int row = blockIdx.x;
    if (threadIdx.x == 0) {
        int at = a.positions[row] + 1;
        u32* tokens = a.tokens + (u64)row * a.tokens_cap;
        if (at >= a.given[row] && at < a.tokens_cap) tokens[at] = ~(u32)a.best[row];
        u32 token = tokens[min(at, a.tokens_cap - 1)];
        chosen = token < (u32)a.vocab ? token : 0u;
        a.best[row] = 0;
        a.positions[row] = at;
    }
    __syncthreads();
    EARLY_START;
    const u16* from = a.table + (u64)chosen * a.hidden;
    for (int i = threadIdx.x; i < a.hidden; i += blockDim.x) a.x[(u64)row * a.hidden + i] = bf_one(from[i]);
}
