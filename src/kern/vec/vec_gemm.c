/*
 * vec_gemm.c - MATMUL and BMM: C = op(A) op(B), row-major, one thread.
 *
 * The register tile is MR x 2 vectors: each step of k loads two vectors of B, broadcasts MR numbers of A, and
 * does 2 MR multiply-adds. B is packed into panels [k][2 V_W] of at most KC rows, padded with zeros, so that
 * a panel stays in the first-level cache while A passes by; A is read where it is, or packed into [k][MR] if
 * it is transposed. Blocks of MC x KC and KC x NC stay in the second level.
 *
 *     for NC columns | for KC of k: pack B | for MC rows: (pack A) | for panel | for MR rows: tile
 *
 * Tiles at the right edge store through masks, those at the bottom are instances with fewer rows. Products
 * too small for packing to pay read a B that is not transposed where it is, except for the last, partial
 * panel.
 */
#include "kern/kern_gemm.h"
#include "kern/vec/simd.h"

#if V_W == 16
enum { MR = 14, MC = 252, KC = 256, NC = 256 };
#else
enum { MR = 6, MC = 252, KC = 256, NC = 256 };
#endif
enum { NR = 2 * V_W, FEW = 12 };

typedef struct operand {
    const float *p;
    int64_t row, col; /* strides of op(X) */
} operand;

/* rows x (vecs V_W) of C from k steps; `width` columns are real. first: overwrite C, else add to it. */
RT_INLINE void tile(float *c, int64_t ldc, const float *a, int64_t arow, int64_t acol, const float *b,
                    int64_t bstep, int64_t k, int64_t width, bool first, const int rows, const int vecs) {
    vf acc[MR][2];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++)
            acc[i][v] = v_set(0.0f);
    for (int64_t l = 0; l < k; l++, b += bstep, a += acol) {
        vf y[2];
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++)
            y[v] = v_load(b + v * V_W);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            const vf x = v_set(a[i * arow]);
#pragma GCC unroll 2
            for (int v = 0; v < vecs; v++)
                acc[i][v] = v_fma(x, y[v], acc[i][v]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int v = 0; v < vecs; v++) {
            float *to = c + i * ldc + v * V_W;
            const int64_t left = width - v * V_W;
            if (left >= V_W)
                v_store(to, first ? acc[i][v] : v_load(to) + acc[i][v]);
            else if (left > 0)
                v_store_n(to, first ? acc[i][v] : v_load_n(to, left) + acc[i][v], left);
        }
}

#define TILE_ARGS                                                                                            \
    float *c, int64_t ldc, const float *a, int64_t arow, int64_t acol, const float *b, int64_t bstep,        \
        int64_t k, int64_t width, bool first
typedef void tile_fn(TILE_ARGS);

/* Rows of A contiguous in k (acol 1), or packed (arow 1). */
#define TILE_ROWS(n)                                                                                         \
    static void tile_##n(TILE_ARGS) {                                                                        \
        if (width > V_W) {                                                                                   \
            if (acol == 1)                                                                                   \
                tile(c, ldc, a, arow, 1, b, bstep, k, width, first, n, 2);                                   \
            else                                                                                             \
                tile(c, ldc, a, 1, acol, b, bstep, k, width, first, n, 2);                                   \
        } else {                                                                                             \
            if (acol == 1)                                                                                   \
                tile(c, ldc, a, arow, 1, b, bstep, k, width, first, n, 1);                                   \
            else                                                                                             \
                tile(c, ldc, a, 1, acol, b, bstep, k, width, first, n, 1);                                   \
        }                                                                                                    \
    }
TILE_ROWS(1)
TILE_ROWS(2)
TILE_ROWS(3)
TILE_ROWS(4)
TILE_ROWS(5)
TILE_ROWS(6)
#if V_W == 16
TILE_ROWS(7)
TILE_ROWS(8)
TILE_ROWS(9)
TILE_ROWS(10)
TILE_ROWS(11)
TILE_ROWS(12)
TILE_ROWS(13)
TILE_ROWS(14)
#endif
static tile_fn *const tiles[MR + 1] = {
    NULL,   tile_1, tile_2, tile_3,  tile_4,  tile_5,  tile_6,
#if V_W == 16
    tile_7, tile_8, tile_9, tile_10, tile_11, tile_12, tile_13, tile_14,
#endif
};

/* ---- packing ---- */

/* One panel: k rows of NR floats, `width` of them real. */
static void pack_panel(float *dst, operand b, int64_t k, int64_t width) {
    if (b.col == 1 && width == NR) {
        for (int64_t l = 0; l < k; l++, dst += NR)
            memcpy(dst, b.p + l * b.row, NR * sizeof(float));
    } else if (b.col == 1) {
        for (int64_t l = 0; l < k; l++, dst += NR) {
            memset(dst, 0, NR * sizeof(float));
            memcpy(dst, b.p + l * b.row, (size_t)width * sizeof(float));
        }
    } else { /* columns of op(B) are contiguous: transposed in squares */
        int64_t j = 0;
        for (; j + V_W <= width; j += V_W) {
            const float *src = b.p + j * b.col;
            int64_t l = 0;
            for (; l + V_W <= k; l += V_W)
                v_transpose_tile(dst + l * NR + j, NR, src + l, b.col);
            for (; l < k; l++)
                for (int64_t i = 0; i < V_W; i++)
                    dst[l * NR + j + i] = src[i * b.col + l];
        }
        for (; j < NR; j++)
            for (int64_t l = 0; l < k; l++)
                dst[l * NR + j] = j < width ? b.p[j * b.col + l] : 0.0f;
    }
}

/* Rows of a transposed A, MR at a time: [rows / MR][k][MR]; a last panel with fewer rows is as narrow as it
 * is. */
static void pack_rows(float *dst, operand a, int64_t rows, int64_t k) {
    for (int64_t i = 0; i < rows; i += MR) {
        const int64_t n = RT_MIN(MR, rows - i);
        for (int64_t l = 0; l < k; l++)
            for (int64_t r = 0; r < n; r++)
                *dst++ = a.p[(i + r) + l * a.col];
    }
}

/* ---- the product ---- */

/* k in equal parts of at most KC. */
static int64_t k_part(int64_t k) {
    const int64_t parts = (k + KC - 1) / KC;
    return (k + parts - 1) / parts;
}

/* A B that is used by few tiles is read where it is. */
static bool b_in_place(const rt_gemm *g) {
    return !g->tb && g->m <= 4 * MR;
}

static int64_t scratch_floats(const rt_gemm *g) {
    const int64_t panels = (RT_MIN(g->n, NC) + NR - 1) / NR * NR;
    return k_part(g->k) * (panels + (g->ta ? RT_MIN(g->m, MC) : 0)) + 64;
}

/* All rows of a block of A against one panel. */
static void tile_column(float *c, int64_t ldc, operand a, int64_t m, const float *panel, int64_t bstep,
                        int64_t k, int64_t width, bool first, bool packed) {
    for (int64_t i = 0; i < m; i += MR) {
        const int64_t rows = RT_MIN(MR, m - i);
        if (packed)
            tiles[rows](c + i * ldc, ldc, a.p + i * k, 1, rows, panel, bstep, k, width, first);
        else
            tiles[rows](c + i * ldc, ldc, a.p + i * a.row, a.row, 1, panel, bstep, k, width, first);
    }
}

static void product(const rt_gemm *g, float *c, const float *pa, const float *pb, float *scratch) {
    const operand a = g->ta ? (operand){pa, 1, g->lda} : (operand){pa, g->lda, 1};
    const operand b = g->tb ? (operand){pb, 1, g->ldb} : (operand){pb, g->ldb, 1};
    const int64_t kc = k_part(g->k);
    const bool in_place = b_in_place(g);
    for (int64_t j0 = 0; j0 < g->n; j0 += NC) {
        const int64_t nc = RT_MIN(NC, g->n - j0);
        for (int64_t k0 = 0; k0 < g->k; k0 += kc) {
            const int64_t k = RT_MIN(kc, g->k - k0);
            float *packed_b = scratch, *packed_a = scratch + k * ((nc + NR - 1) / NR * NR);
            for (int64_t j = 0; j < nc; j += NR) {
                const operand part = {b.p + k0 * b.row + (j0 + j) * b.col, b.row, b.col};
                if (!in_place || nc - j < NR)
                    pack_panel(packed_b + j * k, part, k, RT_MIN(NR, nc - j));
            }
            for (int64_t i0 = 0; i0 < g->m; i0 += MC) {
                const int64_t mc = RT_MIN(MC, g->m - i0);
                const float *block = a.p + i0 * a.row + k0 * a.col;
                if (g->ta)
                    pack_rows(packed_a, (operand){block, a.row, a.col}, mc, k);
                const operand rows_a = g->ta ? (operand){packed_a, 1, 0} : (operand){block, a.row, 1};
                for (int64_t j = 0; j < nc; j += NR) {
                    const int64_t width = RT_MIN(NR, nc - j);
                    const bool direct = in_place && width == NR;
                    const float *panel = direct ? b.p + k0 * b.row + j0 + j : packed_b + j * k;
                    tile_column(c + i0 * g->n + j0 + j, g->n, rows_a, mc, panel, direct ? b.row : NR, k,
                                width, k0 == 0, g->ta);
                }
            }
        }
    }
}

/* A tall product with a transposed A and few columns is turned on its side: C^T = B^T A needs no packing at
 * all. */
static bool sideways(const rt_gemm *g) {
    return g->ta && !g->tb && g->n <= FEW && g->m >= 2 * g->n;
}
static rt_gemm turned(const rt_gemm *g) {
    rt_gemm t = *g;
    t.m = g->n;
    t.n = g->m;
    t.lda = g->ldb;
    t.ldb = g->lda;
    return t;
}

/* ---- registration ---- */

static bool supports(const rt_problem *p) {
    rt_gemm g;
    return rt_gemm_get(&g, p, RT_DTYPE_F32);
}

/* Where this beats oneDNN's product (measured on AVX2): few columns of a tall one; and rows of B a multiple
 * of 2 KiB apart, which collide in the caches unless B is packed. */
static bool supports_special(const rt_problem *p) {
    rt_gemm g;
    return rt_gemm_get(&g, p, RT_DTYPE_F32) && (sideways(&g) || (!g.tb && g.n % 512 == 0 && g.k >= 32));
}

static rt_status prepare(const rt_problem *p, void **state, size_t *scratch) {
    rt_gemm g;
    *state = NULL;
    RT_FAIL_IF(!rt_gemm_get(&g, p, RT_DTYPE_F32), RT_E_UNSUPPORTED,
               "matmul: not a problem this kernel supports");
    const rt_gemm t = turned(&g);
    const int64_t floats = sideways(&g) ? scratch_floats(&t) + t.m * t.n : scratch_floats(&g);
    *scratch = (size_t)floats * sizeof(float);
    return RT_OK;
}

static void run(const void *state, const rt_problem *p, void *out, const void *const *in,
                const rt_kern_ctx *ctx) {
    (void)state;
    rt_gemm g;
    if (!rt_gemm_get(&g, p, RT_DTYPE_F32))
        return;
    const bool turn = sideways(&g);
    const rt_gemm t = turned(&g);
    float *side = ctx->scratch, *scratch = turn ? side + t.m * t.n : side;
    for (int64_t i = 0; i < g.count; i++) {
        float *c = (float *)out + i * g.sc;
        const float *a = (const float *)in[0] + i * g.sa, *b = (const float *)in[1] + i * g.sb;
        if (!turn) {
            product(&g, c, a, b, scratch);
            continue;
        }
        product(&t, side, b, a, scratch);
        for (int64_t r = 0; r < g.m; r++)
            for (int64_t j = 0; j < g.n; j++)
                c[r * g.n + j] = side[j * g.m + r];
    }
}

#define REGISTER(name, which)                                                                                \
    const rt_kern RT_V(rt_k_##name##_f32) = {                                                                \
        .impl = RT_V_IMPL, .supports = which, .prepare = prepare, .run = run};
REGISTER(matmul, supports)
REGISTER(bmm, supports)
REGISTER(matmul_special, supports_special)
REGISTER(bmm_special, supports_special)
