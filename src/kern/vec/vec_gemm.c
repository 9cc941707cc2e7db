/*
 * vec_gemm.c - C = op(A) op(B), row-major, one thread.
 *
 * The register tile is MR x 2 vectors: each step of k loads two vectors of B, broadcasts MR numbers of A,
 * and does 2 MR multiply-adds, as many as the FMA units take meanwhile. B is packed into panels [k][2 V_W] of
 * at most KC rows, so that a panel stays in the first-level cache while A passes by; A is read where it is,
 * or packed into [k][MR] if it is transposed. Blocks of MC x KC and KC x NC stay in the second level.
 *
 *     for NC columns | for KC of k | for MC rows: (pack A) | for panel: (pack it) | for MR rows: tile
 *
 * Edges keep the units busy, too: the last rows are shared evenly by two tiles, a last panel of one vector
 * meets 2 MR rows at a time, and last columns that would leave half of a vector empty are vec_gemm_thin.c's. A
 * panel has whole vectors; lanes beyond the last column hold copies of it, or zeros, and are never stored.
 */
#include "kern/vec/gemm.h"

#if V_W == 16
enum { MR = 14 };
#else
enum { MR = 6 };
#endif
enum { NR = 2 * V_W, MC = 252, KC = 256, NC = 256, IN_PLACE_ROWS = 128 };

/* Left to itself, the compiler computes an offset for every row and step of an unrolled loop, mixes the
 * steps, and has not the registers for it. */
#define KEEP_POINTER(p) __asm__("" : "+r"(p))
#define KEEP_ORDER() __asm__ volatile("" ::: "memory")

/* s += a b, in the register where s is: the compiler's own choice among the forms of the instruction moves
 * accumulators about until it has to spill them. */
RT_INLINE void add_product(vf *s, vf a, vf b) {
#if defined(__AVX512F__)
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(*s) : "v"(a), "v"(b));
#elif defined(__AVX2__)
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(*s) : "x"(a), "x"(b));
#else
    *s = v_fma(a, b, *s);
#endif
}

typedef struct operand {
    const float *p;
    int64_t row, col; /* strides of op(X) */
} operand;

/* ---- a tile ---- */

typedef struct tile_job {
    float *c;
    int64_t ldc;
    const float *a;
    int64_t arow; /* A as it is: from row to row. Packed: from one panel of MR rows to the next */
    const float *b;
    int64_t bstep, k, width;
    bool add;              /* to what C holds: the sum over the parts of k before this one */
    rt_gemm_end_kind kind; /* of end, with the last part of k; else NONE */
    const rt_gemm_end *end;
    const float *bias, *mask; /* at c; anything if there are none */
} tile_job;

#define EACH_ROW _Pragma("GCC unroll 32") for (int i = 0; i < rows; i++)
#define EACH_VECTOR _Pragma("GCC unroll 2") for (int v = 0; v < vecs; v++)

RT_INLINE void store_whole(const tile_job *t, vf (*acc)[2], const int rows, const int vecs, const int kind) {
    EACH_ROW {
        EACH_VECTOR {
            const int64_t at = i * t->ldc + v * V_W;
            vf x = acc[i][v];
            if (kind != RT_END_NONE)
                x = gemm_finish(kind, t->end, x, t->bias + v * V_W, t->mask + at, V_W);
            v_store(t->c + at, x);
        }
    }
}

/* The store of a tile that is added to what is there, or not as wide as its vectors. */
RT_INLINE void store_part(const tile_job *t, vf (*acc)[2], const int rows, const int vecs) {
    EACH_VECTOR {
        const int64_t left = t->width - v * V_W;
        EACH_ROW {
            const int64_t at = i * t->ldc + v * V_W;
            vf x = acc[i][v];
            if (t->add)
                x += v_load_part(t->c + at, left);
            if (t->kind != RT_END_NONE)
                x = gemm_finish(RT_END_ANY, t->end, x, t->bias + v * V_W, t->mask + at, left);
            v_store_part(t->c + at, x, left);
        }
    }
}

/* One step of k, on to the next. a[i / 3] is at row i of A, or a[i / MR] in its panel. */
RT_INLINE void tile_step(vf acc[2 * MR][2], const float **a, const int na, int64_t arow, const float **b,
                         int64_t bstep, const int rows, const int vecs, const bool packed) {
    vf y[2];
#pragma GCC unroll 2
    for (int v = 0; v < vecs; v++)
        y[v] = v_load(*b + v * V_W);
#pragma GCC unroll 32
    for (int i = 0; i < rows; i++) {
        const vf x = v_set(packed ? a[i / MR][i % MR] : a[i / 3][i % 3 * arow]);
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++)
            add_product(&acc[i][v], x, y[v]);
    }
    *b += bstep;
#pragma GCC unroll 16
    for (int i = 0; i < na; i++) {
        a[i] += packed ? MR : 1;
        KEEP_POINTER(a[i]);
    }
    KEEP_ORDER();
}

RT_INLINE void tile(const tile_job *t, const int rows, const int vecs, const bool packed) {
    enum { A_MAX = (2 * MR + 2) / 3 };
    vf acc[2 * MR][2];
    const int na = packed ? (rows + MR - 1) / MR : (rows + 2) / 3;
    const int64_t arow = t->arow, bstep = t->bstep, k = t->k;
    const float *a[A_MAX], *b = t->b;
#pragma GCC unroll 16
    for (int i = 0; i < na; i++)
        a[i] = t->a + (packed ? i : 3 * i) * t->arow;
    EACH_ROW __builtin_prefetch(t->c + i * t->ldc, 1);
    EACH_ROW {
        EACH_VECTOR acc[i][v] = v_set(0.0f);
    }
    int64_t left = k;
    for (; left >= 4; left -= 4) {
#pragma GCC unroll 4
        for (int u = 0; u < 4; u++)
            tile_step(acc, a, na, arow, &b, bstep, rows, vecs, packed);
    }
    for (; left > 0; left--)
        tile_step(acc, a, na, arow, &b, bstep, rows, vecs, packed);
    if (t->width < vecs * V_W || t->add || t->kind == RT_END_ANY)
        store_part(t, acc, rows, vecs);
    else if (packed || t->kind == RT_END_NONE)
        store_whole(t, acc, rows, vecs, RT_END_NONE);
    else if (t->kind == RT_END_BIAS)
        store_whole(t, acc, rows, vecs, RT_END_BIAS);
    else if (t->kind == RT_END_BIAS_RELU)
        store_whole(t, acc, rows, vecs, RT_END_BIAS_RELU);
    else
        store_whole(t, acc, rows, vecs, RT_END_MASK);
}

typedef void tile_fn(const tile_job *t);
#define TILE(rows)                                                                                           \
    static void tile_##rows##_1(const tile_job *t) {                                                         \
        tile(t, rows, 1, false);                                                                             \
    }                                                                                                        \
    static void tile_##rows##_2(const tile_job *t) {                                                         \
        tile(t, rows, 2, false);                                                                             \
    }                                                                                                        \
    static void packed_##rows##_1(const tile_job *t) {                                                       \
        tile(t, rows, 1, true);                                                                              \
    }                                                                                                        \
    static void packed_##rows##_2(const tile_job *t) {                                                       \
        tile(t, rows, 2, true);                                                                              \
    }
#if V_W == 16
#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#else
#define ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#endif
ROWS(TILE)
static void tile_pair(const tile_job *t) {
    tile(t, 2 * MR, 1, false);
}
static void packed_pair(const tile_job *t) {
    tile(t, 2 * MR, 1, true);
}
#define ENTRY(rows) {{tile_##rows##_1, tile_##rows##_2}, {packed_##rows##_1, packed_##rows##_2}},
static tile_fn *const tiles[MR][2][2] = {ROWS(ENTRY)}; /* by rows - 1, packed, vectors - 1 */

/* ---- packing ---- */

/* Functions of their own: inlined into one, their loops run out of registers. */
#define PACK static RT_NOINLINE void

/* k rows of n <= 2 V_W floats. */
PACK pack_copy(float *dst, int64_t step, const float *src, int64_t row, int64_t k, int64_t n) {
    if (n == NR)
        for (int64_t l = 0; l < k; l++, src += row, dst += step) {
            v_store(dst, v_load(src));
            v_store(dst + V_W, v_load(src + V_W));
        }
    else
        for (int64_t l = 0; l < k; l++, src += row, dst += step)
            for (int64_t j = 0; j < n; j += V_W)
                v_store(dst + j, v_load_part(src + j, n - j));
}

/* n <= V_W columns of op(B), which are rows in memory: transposed in squares, the last one overlapping. */
PACK pack_turn(float *dst, int64_t step, const float *src, int64_t row, int64_t k, int64_t n) {
    for (int64_t l = 0; l < k && k < V_W; l++)
        for (int64_t i = 0; i < V_W; i++)
            dst[l * step + i] = src[RT_MIN(i, n - 1) * row + l];
    for (int64_t l = 0; l < k && k >= V_W; l += V_W) {
        const int64_t at = RT_MIN(l, k - V_W);
        if (n == V_W)
            v_transpose_tile(dst + at * step, step, src + at, row);
        else
            v_transpose_rows(dst + at * step, step, src + at, row, n);
    }
}

/* One panel of op(B): k rows of `step` floats, `width` columns of them real. */
static void pack_panel(float *dst, operand b, int64_t k, int64_t width, int64_t step) {
    if (b.col == 1)
        pack_copy(dst, step, b.p, b.row, k, width);
    else
        for (int64_t j = 0; j < width; j += V_W)
            pack_turn(dst + j, step, b.p + j * b.col, b.col, k, RT_MIN(V_W, width - j));
}

/* Rows of tiles: MR, but the last ones are shared by two. */
RT_INLINE int64_t tile_rows(int64_t left) {
    return left <= MR ? left : left < 2 * MR ? (left + 1) / 2 : MR;
}

/* Rows of a transposed A, a panel [k][MR] per tile; lanes that are no rows of the tile hold anything. */
PACK pack_rows(float *dst, const float *src, int64_t step, int64_t rows, int64_t k) {
    for (int64_t i = 0; i < rows; i += tile_rows(rows - i), dst += k * MR) {
        const float *from = src + i;
        const int64_t left = rows - i;
        if (left >= (MR + V_W - 1) / V_W * V_W) /* no vector reaches beyond the rows */
            for (int64_t l = 0; l < k; l++, from += step)
                for (int64_t j = 0; j < MR; j += V_W)
                    v_store(dst + l * MR + j, v_load(from + j));
        else
            for (int64_t l = 0; l < k; l++, from += step)
                for (int64_t j = 0; j < RT_MIN(MR, left); j += V_W)
                    v_store(dst + l * MR + j, v_load_part(from + j, left - j));
    }
}

/* ---- the product ---- */

/* k in equal parts of at most KC, whole squares of the transposition. */
static int64_t k_part(int64_t k) {
    const int64_t parts = (k + KC - 1) / KC, part = (k + parts - 1) / parts;
    return parts == 1 ? part : (part + V_W - 1) / V_W * V_W;
}

/* Columns of whole vectors; a last vector that is mostly empty is left to vec_gemm_thin.c. */
static int64_t wide_columns(const rt_gemm *g) {
    const int64_t rest = g->n % V_W;
    return rest <= RT_GEMM_THIN && rest < V_W ? g->n - rest : g->n;
}

/* B is read where it is if few tiles use it, or if a panel of it stays in the first-level cache as it is: few
 * rows, of two lines each if they begin anywhere, and not at distances that collide. */
static bool b_in_place(const rt_gemm *g) {
    return !g->tb && (g->m <= 4 * MR || (g->k <= IN_PLACE_ROWS && g->ldb % 64 != 0));
}

/* Panels are packed as they are needed if all rows of A meet them at once. */
static bool one_panel(const rt_gemm *g) {
    return g->m <= MC;
}

static int64_t packed_rows(const rt_gemm *g) {
    return g->ta ? (RT_MIN(g->m, MC) + MR - 1) / MR * MR : 0;
}

static int64_t packed_columns(const rt_gemm *g) {
    return one_panel(g) ? NR : (RT_MIN(wide_columns(g), NC) + NR - 1) / NR * NR;
}

static bool is_short(const rt_gemm *g) {
    return !g->ta && g->k <= RT_GEMM_SHORT && g->n > RT_GEMM_THIN;
}

int64_t RT_V(rt_vec_gemm_scratch)(const rt_gemm *g) {
    const int64_t wide = k_part(g->k) * (packed_columns(g) + packed_rows(g));
    return RT_MAX(RT_MAX(wide, RT_V(rt_vec_gemm_thin_scratch)(g)), RT_V(rt_vec_gemm_short_scratch)(g)) +
           2 * V_GROUP;
}

/* All rows of a block of A against one panel. */
static void tile_column(tile_job t, int64_t m, bool packed) {
    const int vecs = t.width > V_W ? 2 : 1;
    for (int64_t i = 0, rows; i < m; i += rows) {
        rows = tile_rows(m - i);
        int64_t panels = 1;
        if (vecs == 1 && m - i >= 2 * MR && tile_rows(m - i - MR) == MR) {
            rows = 2 * MR;
            panels = 2;
            (packed ? packed_pair : tile_pair)(&t);
        } else {
            tiles[rows - 1][packed][vecs - 1](&t);
        }
        t.a += packed ? panels * t.arow : rows * t.arow;
        t.c += rows * t.ldc;
        t.mask += rows * t.ldc;
    }
}

/* Columns j0 .. j0 + nc from k0 .. k0 + k. */
static void column_block(const rt_gemm *g, tile_job t, operand a, operand b, int64_t j0, int64_t nc,
                         float *packed_b, float *packed_a) {
    const bool in_place = b_in_place(g), lazy = one_panel(g);
    float *c = t.c;
    for (int64_t i0 = 0; i0 < g->m; i0 += MC) {
        const int64_t mc = RT_MIN(MC, g->m - i0);
        const float *block = a.p + i0 * a.row;
        if (g->ta)
            pack_rows(packed_a, block, a.col, mc, t.k);
        t.a = g->ta ? packed_a : block;
        t.arow = g->ta ? t.k * MR : a.row;
        for (int64_t j = 0; j < nc; j += NR) {
            t.width = RT_MIN(NR, nc - j);
            const int64_t step = t.width > V_W ? NR : V_W;
            const operand part = {b.p + (j0 + j) * b.col, b.row, b.col};
            if (in_place && t.width == NR) {
                t.b = part.p;
                t.bstep = b.row;
            } else {
                float *panel = lazy ? packed_b : packed_b + j * t.k;
                if (lazy || i0 == 0)
                    pack_panel(panel, part, t.k, t.width, step);
                t.b = panel;
                t.bstep = step;
            }
            t.c = c + i0 * t.ldc + j0 + j;
            t.bias = t.end->bias != NULL ? t.end->bias + j0 + j : t.c;
            t.mask = t.end->mask != NULL ? t.end->mask + (t.c - c) : t.c;
            tile_column(t, mc, g->ta);
        }
    }
}

void RT_V(rt_vec_gemm)(const rt_gemm *g, const rt_gemm_end *end, float *c, const float *pa, const float *pb,
                       float *scratch) {
    const operand a = g->ta ? (operand){pa, 1, g->lda} : (operand){pa, g->lda, 1};
    const operand b = g->tb ? (operand){pb, 1, g->ldb} : (operand){pb, g->ldb, 1};
    const int64_t kc = k_part(g->k), wide = wide_columns(g);
    float *rows = scratch + kc * packed_columns(g);
    if (is_short(g)) {
        RT_V(rt_vec_gemm_short)(g, end, c, pa, pb, scratch);
        return;
    }
    for (int64_t j0 = 0; j0 < wide; j0 += NC)
        for (int64_t k0 = 0; k0 < g->k; k0 += kc) {
            const int64_t k = RT_MIN(kc, g->k - k0);
            const tile_job t = {.c = c,
                                .ldc = g->n,
                                .k = k,
                                .add = k0 > 0,
                                .kind = k0 + k == g->k ? end->kind : RT_END_NONE,
                                .end = end};
            column_block(g, t, (operand){pa + k0 * a.col, a.row, a.col},
                         (operand){pb + k0 * b.row, b.row, b.col}, j0, RT_MIN(NC, wide - j0), scratch, rows);
        }
    if (wide < g->n)
        RT_V(rt_vec_gemm_thin)(g, end, wide, c, pa, pb, scratch);
}
