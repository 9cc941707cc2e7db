/*
 * blas_gemm.c - MATMUL and BMM by cblas_sgemm and cblas_dgemm, one product after the other.
 */
#include "kern/kern_gemm.h"
#include <cblas.h>
#include <limits.h>

/* BLAS counts in int. */
static bool fits(const rt_problem *p, rt_dtype dtype) {
    rt_gemm g;
    return rt_gemm_get(&g, p, dtype) && g.m <= INT_MAX && g.n <= INT_MAX && g.k <= INT_MAX &&
           g.lda <= INT_MAX && g.ldb <= INT_MAX;
}

static void layouts(const rt_problem *p, rt_layout *in, rt_layout *out) {
    (void)p;
    in[0] = in[1] = *out = RT_LAYOUT_PLAIN;
}

#define GEMM_KERNEL(T, dtype, DTYPE, gemm)                                                                   \
    static bool supports_##dtype(const rt_problem *p) {                                                      \
        return fits(p, DTYPE);                                                                               \
    }                                                                                                        \
    static void run_##dtype(const void *state, const rt_problem *p, void *out, const void *const *in,        \
                            const rt_kern_ctx *ctx) {                                                        \
        (void)state, (void)ctx;                                                                              \
        rt_gemm g;                                                                                           \
        if (!rt_gemm_get(&g, p, DTYPE))                                                                      \
            return;                                                                                          \
        const T *a = in[0], *b = in[1];                                                                      \
        T *c = out;                                                                                          \
        for (int64_t i = 0; i < g.count; i++)                                                                \
            gemm(CblasRowMajor, g.ta ? CblasTrans : CblasNoTrans, g.tb ? CblasTrans : CblasNoTrans,          \
                 (int)g.m, (int)g.n, (int)g.k, 1, a + i * g.sa, (int)g.lda, b + i * g.sb, (int)g.ldb, 0,     \
                 c + i * g.sc, (int)g.n);                                                                    \
    }                                                                                                        \
    const rt_kern rt_k_matmul_##dtype##__blas = {                                                            \
        .impl = "blas", .supports = supports_##dtype, .layouts = layouts, .run = run_##dtype};               \
    const rt_kern rt_k_bmm_##dtype##__blas = {                                                               \
        .impl = "blas", .supports = supports_##dtype, .layouts = layouts, .run = run_##dtype};

GEMM_KERNEL(float, f32, RT_DTYPE_F32, cblas_sgemm)
GEMM_KERNEL(double, f64, RT_DTYPE_F64, cblas_dgemm)
