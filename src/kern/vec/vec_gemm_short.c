/*
 * vec_gemm_short.c - C = A op(B) with so few columns of A that C is little more than written: the layer behind
 * two inputs, the gradient before three outputs.
 *
 * Two rows of A stay in registers, as k broadcast numbers each, while all vectors of op(B) pass by. The last
 * vector of a row reaches back over elements that are done, and computes them again.
 */
#include "kern/vec/gemm.h"

typedef struct short_job {
    float *c;
    const float *a, *b; /* op(B): k rows, ldb apart */
    int64_t lda, ldb, n;
    const rt_gemm_end *end;
    const float *bias, *mask; /* anything if there are none */
} short_job;

RT_INLINE void short_vector(const short_job *t, vf (*x)[RT_GEMM_SHORT], int64_t j, int64_t left,
                            const int rows, const int k, const int kind) {
    vf y[RT_GEMM_SHORT];
#pragma GCC unroll 4
    for (int l = 0; l < k; l++)
        y[l] = v_load_part(t->b + l * t->ldb + j, left);
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++) {
        const int64_t at = i * t->n + j;
        vf sum = x[i][0] * y[0];
#pragma GCC unroll 4
        for (int l = 1; l < k; l++)
            sum = v_fma(x[i][l], y[l], sum);
        if (kind != RT_END_NONE)
            sum = gemm_finish(kind, t->end, sum, t->bias + j, t->mask + at, left);
        v_store_part(t->c + at, sum, left);
    }
}

RT_INLINE void short_rows(const short_job *t, const int rows, const int k, const int kind) {
    vf x[2][RT_GEMM_SHORT];
#pragma GCC unroll 2
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int l = 0; l < k; l++)
            x[i][l] = v_set(t->a[i * t->lda + l]);
    int64_t j = 0;
    for (; j + V_W <= t->n; j += V_W)
        short_vector(t, x, j, V_W, rows, k, kind);
    if (j < t->n && t->n >= V_W)
        short_vector(t, x, t->n - V_W, V_W, rows, k, kind);
    else if (j < t->n)
        short_vector(t, x, 0, t->n, rows, k, kind);
}

RT_INLINE void short_product(short_job t, int64_t m, const int k, const int kind) {
    for (; m > 0; m -= 2) {
        if (m == 1)
            short_rows(&t, 1, k, kind);
        else
            short_rows(&t, 2, k, kind);
        t.a += 2 * t.lda;
        t.c += 2 * t.n;
        t.mask += 2 * t.n;
    }
}

typedef void short_fn(short_job t, int64_t m);
#define SHORT_KIND(k, kind)                                                                                  \
    static void short_##k##_##kind(short_job t, int64_t m) {                                                 \
        short_product(t, m, k, RT_END_##kind);                                                               \
    }
#define SHORT(k)                                                                                             \
    SHORT_KIND(k, NONE) SHORT_KIND(k, BIAS) SHORT_KIND(k, BIAS_RELU) SHORT_KIND(k, MASK) SHORT_KIND(k, ANY)
SHORT(1)
SHORT(2)
SHORT(3)
SHORT(4)
#define ENTRY(k)                                                                                             \
    { short_##k##_NONE, short_##k##_BIAS, short_##k##_BIAS_RELU, short_##k##_MASK, short_##k##_ANY }
static short_fn *const short_fns[RT_GEMM_SHORT][RT_END_COUNT] = {ENTRY(1), ENTRY(2), ENTRY(3), ENTRY(4)};

int64_t RT_V(rt_vec_gemm_short_scratch)(const rt_gemm *g) {
    return g->tb ? g->k * g->n : 0;
}

void RT_V(rt_vec_gemm_short)(const rt_gemm *g, const rt_gemm_end *end, float *c, const float *a,
                             const float *b, float *scratch) {
    short_job t = {.c = c, .a = a, .b = b, .lda = g->lda, .ldb = g->ldb, .n = g->n, .end = end};
    t.bias = end->bias != NULL ? end->bias : c;
    t.mask = end->mask != NULL ? end->mask : c;
    if (g->tb) {
        for (int64_t j = 0; j < g->n; j++)
            for (int64_t l = 0; l < g->k; l++)
                scratch[l * g->n + j] = b[j * g->ldb + l];
        t.b = scratch;
        t.ldb = g->n;
    }
    short_fns[g->k - 1][end->kind](t, g->m);
}
