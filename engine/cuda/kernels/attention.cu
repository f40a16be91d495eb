// Attention of many queries: out = softmax(q k^T * scale) v, causal or over all keys, grouped heads, by blocks of
// 128 queries that stream past the keys (Dao, arXiv 2307.08691), with mma.sync.
//
// The order of additions of a query depends on its position and on nothing else.

struct AttentionArgs {
    const u16* q; // [queries][q_stride], head h at h * D; bf16
    const u16* k; // [keys][kv_stride], head at h * D
    const u16* v;
    u16* out;     // [queries][out_stride], head h at h * D
    u64 q_stride, kv_stride, out_stride; // in elements, multiples of 8
    int queries, keys, group, causal;    // group: heads of queries for each of keys; causal: query i sees keys - queries + i
    float scale_log2; // scale / ln 2
};

template <int D>
__device__ __forceinline__ u32 place(u32 base, int row, int chunk) {
    return base + row * (D * 2) + ((chunk ^ (row & 7)) << 4);
}

template <int D, int WARPS>
__device__ __forceinline__ void attention(const AttentionArgs& a) {
    constexpr int ROWS = 16 * WARPS, KEYS = 64, CHUNKS = D / 8, THREADS = 32 * WARPS;
    extern __shared__ __align__(1024) u8 shared[];
    u32 queries = smem_at(shared), keys = queries + ROWS * D * 2, values = keys + 2 * KEYS * D * 2;
    int thread = threadIdx.x, warp = thread >> 5, lane = thread & 31;
    int block = a.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x; // the longest first
    int head = blockIdx.y, first = block * ROWS, ahead = a.keys - a.queries;
    const u16* q = a.q + head * D;
    const u16* k = a.k + head / a.group * D;
    const u16* v = a.v + head / a.group * D;
    int end = a.causal ? min(a.keys, first + ROWS + ahead) : a.keys, tiles = (end + KEYS - 1) / KEYS;
    WAIT_PREVIOUS;
    auto fetch = [&](const u16* from, u32 to, int tile) {
        for (int i = thread; i < KEYS * CHUNKS; i += THREADS) {
            int r = i / CHUNKS, c = i % CHUNKS, at = tile * KEYS + r;
            copy16_async(place<D>(to, r, c), from + (u64)min(at, a.keys - 1) * a.kv_stride + c * 8, at < a.keys);
        }
    };
    for (int i = thread; i < ROWS * CHUNKS; i += THREADS) {
        int r = i / CHUNKS, c = i % CHUNKS, at = first + r;
        copy16_async(place<D>(queries, r, c), q + (u64)min(at, a.queries - 1) * a.q_stride + c * 8, at < a.queries);
    }
    fetch(k, keys, 0);
    copies_commit();
    fetch(v, values, 0);
    copies_commit();
    float out[D / 8][4];
#pragma unroll
    for (int i = 0; i < D / 8; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) out[i][j] = 0.f;
    float most[2] = {-INF, -INF}, total[2] = {0.f, 0.f};
    u32 held[D / 16][4];
    for (int tile = 0; tile < tiles; tile++) {
        u32 k_now = keys + (tile & 1) * KEYS * D * 2, v_now = values + (tile & 1) * KEYS * D * 2;
        copies_wait<1>();
        __syncthreads();
        if (tile == 0) {
#pragma unroll
            for (int kk = 0; kk < D / 16; kk++)
                ldmatrix4(held[kk], place<D>(queries, warp * 16 + (lane & 15), 2 * kk + (lane >> 4)));
        }
        if (tile + 1 < tiles) fetch(k, keys + ((tile + 1) & 1) * KEYS * D * 2, tile + 1);
        copies_commit();
        float s[KEYS / 8][4];
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int j = 0; j < 4; j++) s[n][j] = 0.f;
#pragma unroll
        for (int kk = 0; kk < D / 16; kk++)
#pragma unroll
            for (int n = 0; n < KEYS / 16; n++) {
                u32 b[4];
                ldmatrix4(b, place<D>(k_now, n * 16 + (lane & 7) + ((lane >> 4) << 3), 2 * kk + ((lane >> 3) & 1)));
                mma_bf16(s[2 * n], held[kk][0], held[kk][1], held[kk][2], held[kk][3], b[0], b[1]);
                mma_bf16(s[2 * n + 1], held[kk][0], held[kk][1], held[kk][2], held[kk][3], b[2], b[3]);
            }
        int row = first + warp * 16 + (lane >> 2), key = tile * KEYS + 2 * (lane & 3);
        bool edge = tile * KEYS + KEYS > a.keys || (a.causal && tile * KEYS + KEYS > first + warp * 16 + ahead + 1);
        if (edge) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    int at = key + 8 * n + (j & 1), seen = a.causal ? min(a.keys - 1, row + 8 * (j >> 1) + ahead) : a.keys - 1;
                    if (at > seen) s[n][j] = -INF;
                }
        }
        float scale[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float m = most[half];
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++) m = fmaxf(m, fmaxf(s[n][2 * half], s[n][2 * half + 1]));
            m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 1));
            m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 2));
            // A row that has seen nothing yet stays empty.
            float base = m == -INF ? 0.f : m * a.scale_log2;
            scale[half] = power_of_two(most[half] * a.scale_log2 - base);
            most[half] = m;
            float sum = 0.f;
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int j = 2 * half; j < 2 * half + 2; j++) {
                    float e = power_of_two(fmaf(s[n][j], a.scale_log2, -base));
                    s[n][j] = e;
                    sum += e;
                }
            total[half] = total[half] * scale[half] + sum;
        }
#pragma unroll
        for (int i = 0; i < D / 8; i++) {
            out[i][0] *= scale[0];
            out[i][1] *= scale[0];
            out[i][2] *= scale[1];
            out[i][3] *= scale[1];
        }
        copies_wait<1>();
        __syncthreads();
        if (tile + 1 < tiles) fetch(v, values + ((tile + 1) & 1) * KEYS * D * 2, tile + 1);
        copies_commit();
#pragma unroll
        for (int n = 0; n < KEYS / 16; n++) {
            u32 p0 = to_bf2(s[2 * n][0], s[2 * n][1]), p1 = to_bf2(s[2 * n][2], s[2 * n][3]);
            u32 p2 = to_bf2(s[2 * n + 1][0], s[2 * n + 1][1]), p3 = to_bf2(s[2 * n + 1][2], s[2 * n + 1][3]);
#pragma unroll
            for (int d = 0; d < D / 16; d++) {
                u32 b[4];
                ldmatrix4_trans(b, place<D>(v_now, n * 16 + (lane & 15), 2 * d + (lane >> 4)));
                mma_bf16(out[2 * d], p0, p1, p2, p3, b[0], b[1]);
                mma_bf16(out[2 * d + 1], p0, p1, p2, p3, b[2], b[3]);
            }
        }
    }
    copies_wait<0>();
#pragma unroll
    for (int half = 0; half < 2; half++) {
        total[half] += __shfl_xor_sync(0xffffffffu, total[half], 1);
        total[half] += __shfl_xor_sync(0xffffffffu, total[half], 2);
        float inverse = total[half] > 0.f ? 1.f / total[half] : 0.f;
        int row = first + warp * 16 + (lane >> 2) + 8 * half;
        if (row >= a.queries) continue;
        u32* to = (u32*)(a.out + (u64)row * a.out_stride + head * D);
#pragma unroll
        for (int i = 0; i < D / 8; i++) to[4 * i + (lane & 3)] = to_bf2(out[i][2 * half] * inverse, out[i][2 * half + 1] * inverse);
    }
}
extern "C" __global__ void __launch_bounds__(256, 1) attention_d128(const __grid_constant__ AttentionArgs a) { attention<128, 8>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) attention_d64(const __grid_constant__ AttentionArgs a) { attention<64, 8>(a); }

#if HAS_WGMMA
// ---- Hopper, heads of 128: four warps fetch, two groups of four take 64 queries each. A group asks for the scores of the
// next keys and for the last keys' sums before it turns scores to weights, and the groups take turns at asking, so that
// the matrix units have work while weights are made (Shah et al., arXiv 2407.08608). Tiles lie in rows of 128 bytes whose
// 16-byte parts are swapped by their row.

__device__ __forceinline__ void wgmma_scores(float* c, u64 a, u64 b, int more) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %66, 0; "
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
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
// a: weights in registers; b: [keys][128], transposed.
__device__ __forceinline__ void wgmma_sums(float* c, u32 a0, u32 a1, u32 a2, u32 a3, u64 b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
        "{%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),
          "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]), "+f"(c[15]),
          "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]), "+f"(c[22]), "+f"(c[23]),
          "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]), "+f"(c[29]), "+f"(c[30]), "+f"(c[31]),
          "+f"(c[32]), "+f"(c[33]), "+f"(c[34]), "+f"(c[35]), "+f"(c[36]), "+f"(c[37]), "+f"(c[38]), "+f"(c[39]),
          "+f"(c[40]), "+f"(c[41]), "+f"(c[42]), "+f"(c[43]), "+f"(c[44]), "+f"(c[45]), "+f"(c[46]), "+f"(c[47]),
          "+f"(c[48]), "+f"(c[49]), "+f"(c[50]), "+f"(c[51]), "+f"(c[52]), "+f"(c[53]), "+f"(c[54]), "+f"(c[55]),
          "+f"(c[56]), "+f"(c[57]), "+f"(c[58]), "+f"(c[59]), "+f"(c[60]), "+f"(c[61]), "+f"(c[62]), "+f"(c[63])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b));
}
__device__ __forceinline__ u64 swapped_at(u32 at, u32 along_columns, u32 along_rows) {
    return (u64)((at & 0x3ffff) >> 4) | ((u64)(along_columns >> 4) << 16) | ((u64)(along_rows >> 4) << 32) | (1ull << 62);
}
__device__ __forceinline__ void mark_init(u32 at, u32 count) { asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(at), "r"(count) : "memory"); }
__device__ __forceinline__ void mark_arrive(u32 at) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(at) : "memory"); }
__device__ __forceinline__ void mark_wait(u32 at, u32 parity) {
    u32 done;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at), "r"(parity) : "memory");
    } while (!done);
}

enum { H_ROWS = 128, H_KEYS = 128, H_TILE = H_KEYS * 256, H_STAGES = 3 };

// 128 rows of 256 bytes as two halves of 128 rows of 128 bytes, by 64 threads. A thread keeps its column and takes every
// fourth row, so that addresses are sums: with more arithmetic a copy, fetching was what everything waited for.
__device__ __forceinline__ void fetch_tile(u32 to, const u16* from, u64 stride, int first, int count, int one) {
    int c = one & 15, r = one >> 4;
    u32 base = to + (c >> 3) * 16384 + r * 128, even = base + (((c & 7) ^ r) << 4), odd = base + (((c & 7) ^ (r + 4)) << 4);
    const u16* p = from + (u64)(first + r) * stride + c * 8;
    u64 step = 4 * stride;
    if (first + 128 <= count) {
#pragma unroll
        for (int n = 0; n < 32; n++, p += step)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((n & 1 ? odd : even) + n * 512), "l"(p));
    } else {
        const u16* column = from + c * 8;
        for (int n = 0; n < 32; n++) {
            int at = first + r + 4 * n;
            copy16_async((n & 1 ? odd : even) + n * 512, column + (u64)min(at, count - 1) * stride, at < count);
        }
    }
    copies_commit();
}

// Scores to weights: the new greatest scores, the factor for what was summed before, weights as pairs of bf16.
__device__ __forceinline__ void weigh(float* s, float* most, float* total, float* scale, float scale_log2) {
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float m = most[half];
#pragma unroll
        for (int n = 0; n < 16; n++) m = fmaxf(m, fmaxf(s[4 * n + 2 * half], s[4 * n + 2 * half + 1]));
        m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 1));
        m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 2));
        float base = m == -INF ? 0.f : m * scale_log2, sum = 0.f;
        scale[half] = power_of_two(fmaf(most[half], scale_log2, -base));
        most[half] = m;
#pragma unroll
        for (int n = 0; n < 16; n++)
#pragma unroll
            for (int j = 4 * n + 2 * half; j < 4 * n + 2 * half + 2; j++) {
                s[j] = power_of_two(fmaf(s[j], scale_log2, -base));
                sum += s[j];
            }
        total[half] = total[half] * scale[half] + sum;
    }
}
__device__ __forceinline__ void hide(float* s, const AttentionArgs& a, int row, int key, int ahead) {
#pragma unroll
    for (int n = 0; n < 16; n++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int seen = a.causal ? min(a.keys - 1, row + 8 * (j >> 1) + ahead) : a.keys - 1;
            if (key + 8 * n + (j & 1) > seen) s[4 * n + j] = -INF;
        }
}

extern "C" __global__ void __launch_bounds__(384, 1) attention_hopper_d128(const __grid_constant__ AttentionArgs a) {
    extern __shared__ __align__(1024) u8 shared_hopper[];
    __shared__ __align__(8) u64 marks[4 * H_STAGES];
    u32 q_tile = (smem_at(shared_hopper) + 1023) & ~1023u, k_tiles = q_tile + H_TILE, v_tiles = k_tiles + H_STAGES * H_TILE, full = smem_at(marks), empty = full + 16 * H_STAGES;
    int thread = threadIdx.x & 127, role = threadIdx.x >> 7, lane = thread & 31, warp = thread >> 5;
    int block = a.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x, head = blockIdx.y;
    int first = block * H_ROWS, ahead = a.keys - a.queries;
    int end = a.causal ? min(a.keys, first + H_ROWS + ahead) : a.keys, tiles = (end + H_KEYS - 1) / H_KEYS;
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * H_STAGES; i++) {
            mark_init(full + 8 * i, 64); // those of keys, then those of values
            mark_init(empty + 8 * i, 8); // every warp of both groups
        }
    }
    __syncthreads();
    WAIT_PREVIOUS;
    if (role == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        // Two warps fetch keys, two values: neither waits for what the other's readers hold.
        int is_v = thread >> 6, one = thread & 63;
        const u16* from = (is_v ? a.v : a.k) + head / a.group * 128;
        u32 to = is_v ? v_tiles : k_tiles, there = full + 8 * H_STAGES * is_v, free = empty + 8 * H_STAGES * is_v;
        if (!is_v) fetch_tile(q_tile, a.q + head * 128, a.q_stride, first, a.queries, one);
        for (int tile = 0; tile <= tiles; tile++) {
            if (tile < tiles) {
                if (tile >= H_STAGES) mark_wait(free + 8 * (tile % H_STAGES), (tile / H_STAGES - 1) & 1);
                fetch_tile(to + (tile % H_STAGES) * H_TILE, from, a.kv_stride, tile * H_KEYS, a.keys, one);
            } else {
                copies_commit();
            }
            if (tile > 0) {
                copies_wait<1>();
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                mark_arrive(there + 8 * ((tile - 1) % H_STAGES));
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        int group = role - 1, row = first + group * 64 + warp * 16 + (lane >> 2), column = 2 * (lane & 3);
        float out[64], s[64], most[2] = {-INF, -INF}, total[2] = {0.f, 0.f}, scale[2];
        u32 p[32];
#pragma unroll
        for (int i = 0; i < 64; i++) out[i] = s[i] = 0.f;
        u32 q_rows = q_tile + group * 8192;
        // Tiles that every query of the block sees whole: the others are looked at key by key, in code of their own,
        // because the compiler gives up overlap where it cannot tell which sums are awaited.
        int whole = min(tiles, a.keys / H_KEYS);
        if (a.causal) whole = min(whole, max(0, first + ahead + 1) / H_KEYS);
        auto ask_scores = [&](int tile) {
            u32 keys = k_tiles + tile % H_STAGES * H_TILE;
#pragma unroll
            for (int k = 0; k < 8; k++)
                wgmma_scores(s, swapped_at(q_rows + (k >> 2) * 16384 + (k & 3) * 32, 16, 1024), swapped_at(keys + (k >> 2) * 16384 + (k & 3) * 32, 16, 1024), k > 0);
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        };
        auto ask_sums = [&](int tile) {
            u32 values = v_tiles + tile % H_STAGES * H_TILE;
#pragma unroll
            for (int k = 0; k < 8; k++) wgmma_sums(out, p[4 * k], p[4 * k + 1], p[4 * k + 2], p[4 * k + 3], swapped_at(values + k * 2048, 16384, 1024));
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        };
        auto pack_weights = [&]() {
#pragma unroll
            for (int i = 0; i < 32; i++) p[i] = to_bf2(s[2 * i], s[2 * i + 1]);
        };
        auto step = [&](bool seen_whole, int tile) {
            int before = tile - 1;
            mark_wait(full + 8 * (tile % H_STAGES), (tile / H_STAGES) & 1);
            mark_wait(full + 8 * (H_STAGES + before % H_STAGES), (before / H_STAGES) & 1);
            asm volatile("bar.sync %0, 256;" :: "r"(2 + group) : "memory");
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            ask_scores(tile);
            ask_sums(before);
            asm volatile("bar.arrive %0, 256;" :: "r"(3 - group) : "memory");
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            hold<64>(s);
            if (lane == 0) mark_arrive(empty + 8 * (tile % H_STAGES));
            if (!seen_whole) hide(s, a, row, tile * H_KEYS + column, ahead);
            weigh(s, most, total, scale, a.scale_log2);
            // Weights are made while the matrix units add up the last tile's. The assembler would wait first; it keeps a
            // store where it is, and this one, which never happens, needs all weights.
            asm volatile("{ .reg .pred p; setp.lt.f32 p, %0, 0f00000000; @p st.shared.f32 [%1], %0; }" :: "f"(total[0] + total[1]), "r"(q_tile) : "memory");
            hold<64>(s);
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
            hold<64>(out);
            if (lane == 0) mark_arrive(empty + 8 * (H_STAGES + before % H_STAGES));
#pragma unroll
            for (int i = 0; i < 64; i++) out[i] *= scale[(i >> 1) & 1];
            pack_weights();
        };
        // Group 0 asks first.
        if (group == 1) asm volatile("bar.arrive 2, 256;" ::: "memory");
        mark_wait(full, 0);
        asm volatile("bar.sync %0, 256;" :: "r"(2 + group) : "memory");
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        ask_scores(0);
        asm volatile("bar.arrive %0, 256;" :: "r"(3 - group) : "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        hold<64>(s);
        if (lane == 0) mark_arrive(empty);
        if (whole == 0) hide(s, a, row, column, ahead);
        weigh(s, most, total, scale, a.scale_log2);
        pack_weights();
        int tile = 1;
        for (; tile < whole; tile++) step(true, tile);
        for (; tile < tiles; tile++) step(false, tile);
        int old = (tiles - 1) % H_STAGES;
        mark_wait(full + 8 * (H_STAGES + old), ((tiles - 1) / H_STAGES) & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int k = 0; k < 8; k++) wgmma_sums(out, p[4 * k], p[4 * k + 1], p[4 * k + 2], p[4 * k + 3], swapped_at(v_tiles + old * H_TILE + k * 2048, 16384, 1024));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        hold<64>(out);
        // Both groups leave with the barriers even.
        if (group == 0) asm volatile("bar.sync 2, 256;" ::: "memory");
#pragma unroll
        for (int half = 0; half < 2; half++) {
            total[half] += __shfl_xor_sync(0xffffffffu, total[half], 1);
            total[half] += __shfl_xor_sync(0xffffffffu, total[half], 2);
            float inverse = total[half] > 0.f ? 1.f / total[half] : 0.f;
            int r = row + 8 * half;
            if (r < a.queries) {
                u32* to = (u32*)(a.out + (u64)r * a.out_stride + head * 128 + column);
#pragma unroll
                for (int n = 0; n < 16; n++) to[4 * n] = to_bf2(out[4 * n + 2 * half] * inverse, out[4 * n + 2 * half + 1] * inverse);
            }
        }
    }
}
#endif

// For prefill: rope (and norms) of queries and keys in place, keys and values into their pages.
// qkv: [tokens, heads * D + 2 * kv_heads * D] bf16 of positions start to start + tokens - 1. One warp a head of a token.
struct PrefillArgs {
    u16* qkv;
    const float* q_norm;
    const float* k_norm;
    const float* turns; // [positions, D]
    const int* pages;   // [max_pages]
    u16* keys;          // [pages, kv_heads, 64, D]
    u16* values;
    int heads, kv_heads, start, tokens, head_dim, neighbours;
    float epsilon;
};
extern "C" __global__ void __launch_bounds__(128) prefill_heads(const __grid_constant__ PrefillArgs a) {
    WAIT_PREVIOUS;
    int lane = threadIdx.x & 31, all = a.heads + 2 * a.kv_heads, d = a.head_dim;
    u64 job = (u64)blockIdx.x * 4 + (threadIdx.x >> 5);
    if (job >= (u64)a.tokens * all) return;
    int token = (int)(job / all), head = (int)(job % all), position = a.start + token;
    u16* at = a.qkv + (u64)token * all * d + head * d;
    u64 page = a.pages ? (u64)a.pages[position / 64] : 0;
    if (head >= a.heads + a.kv_heads) {
        if (!a.values) return;
        u16* to = a.values + ((page * a.kv_heads + head - a.heads - a.kv_heads) * 64 + position % 64) * d;
        for (int i = lane; i < d / 2; i += 32) ((u32*)to)[i] = ((const u32*)at)[i];
        return;
    }
    bool is_key = head >= a.heads;
    const float* norm = is_key ? a.k_norm : a.q_norm;
    float scale = 1.f;
    if (norm) {
        float squares = 0.f;
        for (int i = lane; i < d; i += 32) squares = fmaf(bf_one(at[i]), bf_one(at[i]), squares);
        scale = rsqrtf(warp_sum(squares) / (float)d + a.epsilon);
    }
    u16* to = is_key && a.keys ? a.keys + ((page * a.kv_heads + head - a.heads) * 64 + position % 64) * d : nullptr;
    const float* turn = a.turns + (u64)position * d;
    if (!a.neighbours && d % 4 == 0) {
        // Two pairs at a time: words of the lower and the upper half.
        for (int i = 2 * lane; i < d / 2; i += 64) {
            u32 lower = *(const u32*)(at + i), upper = *(const u32*)(at + i + d / 2);
            float2 c = *(const float2*)(turn + i), s = *(const float2*)(turn + d / 2 + i);
            float p0 = bf_lo(lower) * scale, p1 = bf_hi(lower) * scale, q0 = bf_lo(upper) * scale, q1 = bf_hi(upper) * scale;
            if (norm) {
                p0 *= norm[i];
                p1 *= norm[i + 1];
                q0 *= norm[i + d / 2];
                q1 *= norm[i + d / 2 + 1];
            }
            lower = to_bf2(p0 * c.x - q0 * s.x, p1 * c.y - q1 * s.y);
            upper = to_bf2(p0 * s.x + q0 * c.x, p1 * s.y + q1 * c.y);
            *(u32*)(at + i) = lower;
            *(u32*)(at + i + d / 2) = upper;
            if (to) {
                *(u32*)(to + i) = lower;
                *(u32*)(to + i + d / 2) = upper;
            }
        }
        return;
    }
    for (int i = lane; i < d / 2; i += 32) {
        int x = a.neighbours ? 2 * i : i, y = a.neighbours ? 2 * i + 1 : i + d / 2;
        float p = bf_one(at[x]) * scale * (norm ? norm[x] : 1.f), q = bf_one(at[y]) * scale * (norm ? norm[y] : 1.f);
        u16 r = to_bf(p * turn[i] - q * turn[d / 2 + i]), s = to_bf(p * turn[d / 2 + i] + q * turn[i]);
        at[x] = r;
        at[y] = s;
        if (to) {
            to[x] = r;
            to[y] = s;
        }
    }
}
