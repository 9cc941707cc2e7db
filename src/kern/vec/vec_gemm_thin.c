/*
 * vec_gemm_thin.c - a few columns of C = op(A) op(B): those that a product leaves over when it is cut into
 * whole vectors, or all there are.
 *
 * With vectors along the columns three of four lanes would be idle. The other directions are full:
 *
 *     A as it is    along k: each element of C is a vector of partial sums, added up at the end; tiles of
 *                   ROWS x COLS elements. Columns of B are read along k, copied there if they are not
 *     A transposed  along the rows of C, which lie side by side in A: tiles of VECS vectors x COLS columns,
 *                   turned as they are stored
 *
 * A tile has at most 12 accumulators, and loads 7 vectors for 12 multiply-adds.
 */
#include "kern/vec/gemm.h"

enum { COLS = RT_GEMM_THIN, ROWS = 3, VECS = 3 };

typedef struct thin_job {
    float *c;
    const float *a, *b;
    int64_t ldc, lda;   /* from row to row as stored */
    int64_t brow, bcol; /* strides of op(B) */
    int64_t m, k;
    rt_gemm_end end; /* from the first of these columns on */
} thin_job;

/* ---- along k ---- */

/* A vector along k, or n of it. A column of B at a time: 12 accumulators leave four registers. */
RT_INLINE void dot_step(vf acc[ROWS][COLS], const float *a, int64_t lda, const float *b, int64_t ldb,
                        int64_t n, const int rows, const int cols) {
    vf x[ROWS];
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
        x[i] = v_load_part(a + i * lda, n);
#pragma GCC unroll 4
    for (int j = 0; j < cols; j++) {
        const vf y = v_load_part(b + j * ldb, n);
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            acc[i][j] = v_fma(x[i], y, acc[i][j]);
    }
}

/* As gemm_finish, on four lanes. */
RT_INLINE vq finish(const rt_gemm_end *e, vq x, int64_t at, const int cols) {
    if (e->bias != NULL)
        x += vq_load(e->bias, cols);
    if (e->relu)
        x = vq_select(x > 0.0f, x, e->alpha * x);
    if (e->mask != NULL)
        x = vq_select(vq_load(e->mask + at, cols) > 0.0f, x, e->alpha * x);
    return x;
}

/* Rows from i0 of C. */
RT_INLINE void dot_tile(const thin_job *t, int64_t i0, const int rows, const int cols, const bool end) {
    const float *a = t->a + i0 * t->lda, *b = t->b;
    const int64_t lda = t->lda, ldb = t->bcol, k = t->k;
    vf acc[ROWS][COLS];
    int64_t l = 0;
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < COLS; j++)
            acc[i][j] = v_set(0.0f);
    for (; l + V_W <= k; l += V_W)
        dot_step(acc, a + l, lda, b + l, ldb, V_W, rows, cols);
    if (l < k)
        dot_step(acc, a + l, lda, b + l, ldb, k - l, rows, cols);
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        const int64_t at = (i0 + i) * t->ldc;
        vq sum = v_sum4(acc[i]);
        if (end)
            sum = finish(&t->end, sum, at, cols);
        vq_store(t->c + at, sum, cols);
    }
}

RT_INLINE void dots(const thin_job *t, const int cols, const bool end) {
    int64_t i = 0;
    for (; i + ROWS <= t->m; i += ROWS)
        dot_tile(t, i, ROWS, cols, end);
    if (i + 2 == t->m)
        dot_tile(t, i, 2, cols, end);
    else if (i + 1 == t->m)
        dot_tile(t, i, 1, cols, end);
}

/* ---- along rows ---- */

/* Rows from i0 of C: V_W * vecs, or `left` of them if there is not even a vector. */
RT_INLINE void row_tile(const thin_job *t, int64_t i0, int64_t left, const int vecs, const int cols) {
    const float *a = t->a + i0, *b = t->b;
    float *c = t->c + i0 * t->ldc;
    const int64_t lda = t->lda, ldc = t->ldc, brow = t->brow, bcol = t->bcol;
    vf acc[VECS][COLS];
#pragma GCC unroll 4
    for (int v = 0; v < vecs; v++)
#pragma GCC unroll 4
        for (int j = 0; j < cols; j++)
            acc[v][j] = v_set(0.0f);
    for (int64_t l = 0; l < t->k; l++, a += lda, b += brow) {
        vf x[VECS];
#pragma GCC unroll 4
        for (int v = 0; v < vecs; v++)
            x[v] = v_load_part(a + v * V_W, left);
#pragma GCC unroll 4
        for (int j = 0; j < cols; j++) {
            const vf y = v_set(b[j * bcol]);
#pragma GCC unroll 4
            for (int v = 0; v < vecs; v++)
                acc[v][j] = v_fma(x[v], y, acc[v][j]);
        }
    }
    for (int v = 0; v < vecs; v++) {
        float turn[COLS][V_W];
#pragma GCC unroll 4
        for (int j = 0; j < cols; j++)
            v_store(turn[j], acc[v][j]);
        for (int64_t i = 0; i < RT_MIN(left, V_W); i++, c += ldc)
#pragma GCC unroll 4
            for (int j = 0; j < cols; j++)
                c[j] = turn[j][i];
    }
}

/* The last vector reaches back over rows that are done, and computes them again. */
RT_INLINE void rows(const thin_job *t, const int cols) {
    int64_t i = 0;
    for (; i + VECS * V_W <= t->m; i += VECS * V_W)
        row_tile(t, i, V_W, VECS, cols);
    if (i + 2 * V_W <= t->m) {
        row_tile(t, i, V_W, 2, cols);
        i += 2 * V_W;
    }
    for (; i < t->m; i += V_W) {
        const int64_t at = RT_MAX(0, RT_MIN(i, t->m - V_W));
        row_tile(t, at, t->m - at, 1, cols);
    }
}

/* ---- the columns ---- */

typedef void thin_fn(const thin_job *t);
#define THIN(cols)                                                                                           \
    static void dots_##cols(const thin_job *t) {                                                             \
        dots(t, cols, false);                                                                                \
    }                                                                                                        \
    static void dots_end_##cols(const thin_job *t) {                                                         \
        dots(t, cols, true);                                                                                 \
    }                                                                                                        \
    static void rows_##cols(const thin_job *t) {                                                             \
        rows(t, cols);                                                                                       \
    }
THIN(1)
THIN(2)
THIN(3)
THIN(4)
#define ENTRY(cols)                                                                                          \
    { dots_##cols, dots_end_##cols, rows_##cols }
static thin_fn *const thin_fns[COLS][3] = {ENTRY(1), ENTRY(2), ENTRY(3), ENTRY(4)};

int64_t RT_V(rt_vec_gemm_thin_scratch)(const rt_gemm *g) {
    return g->ta || g->tb ? 0 : COLS * g->k;
}

void RT_V(rt_vec_gemm_thin)(const rt_gemm *g, const rt_gemm_end *end, int64_t j0, float *c, const float *a,
                            const float *b, float *scratch) {
    const int64_t cols = g->n - j0;
    thin_job t = {.c = c + j0,
                  .a = a,
                  .ldc = g->n,
                  .lda = g->lda,
                  .brow = g->tb ? 1 : g->ldb,
                  .bcol = g->tb ? g->ldb : 1,
                  .m = g->m,
                  .k = g->k};
    t.b = b + j0 * t.bcol;
    t.end = *end;
    t.end.bias += end->bias != NULL ? j0 : 0;
    t.end.mask += end->mask != NULL ? j0 : 0;
    if (!g->ta && !g->tb) {
        for (int64_t l = 0; l < g->k; l++)
            for (int64_t j = 0; j < cols; j++)
                scratch[j * g->k + l] = t.b[l * t.brow + j];
        t.b = scratch;
        t.bcol = g->k;
    }
    thin_fns[cols - 1][g->ta ? 2 : end->kind != RT_END_NONE ? 1 : 0](&t);
}
