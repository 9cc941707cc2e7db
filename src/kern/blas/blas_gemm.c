/*
 * blas_gemm.c - MATMUL and BMM by cblas_sgemm and cblas_dgemm, one product after the other.
 *
 * dnnl_sgemm is faster for most products of training and stands before these in kern.def, with one exception,
 * listed before it: it reads B in place, and rows of B a multiple of 2 KiB apart collide in the cache.
 * Measured with one thread on Zen 3, GFLOP/s:
 *
 *     m x n x k      dnnl_sgemm   cblas_sgemm
 *     128x512x512        65           88
 *     32x1024x1024       43           75
 *     512x512x512        55           83
 *     128x1536x512       52           84
 *     32x512x128         68           71        short k: equal
 *     1x512x512          28            7        few rows: the other way round
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

/* Where cblas_sgemm is clearly faster. */
enum { PAGE_FLOATS = 512, MIN_DEPTH = 128, MIN_ROWS = 8 };
static bool collides(const rt_problem *p) {
    rt_gemm g;
    return fits(p, RT_DTYPE_F32) && rt_gemm_get(&g, p, RT_DTYPE_F32) && !g.tb && g.ldb % PAGE_FLOATS == 0 &&
           g.k >= MIN_DEPTH && g.m >= MIN_ROWS;
}
static void rule_strided(rt_str *out) {
    rt_str_appendf(out, "products with rows a multiple of %d floats apart, %d or more, of depth %d or more",
                   PAGE_FLOATS, MIN_ROWS, MIN_DEPTH);
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
const rt_kern rt_k_matmul_f32__blas_strided = {
    .impl = "blas", .supports = collides, .rule = rule_strided, .layouts = layouts, .run = run_f32};
