/*
 * dnn_gemm.c - MATMUL and BMM by dnnl_sgemm: row-major, no state, faster than OpenBLAS for the small products
 * of training. The thread that runs it must have gone through rt_kern_thread_init, or OpenMP would split the
 * product.
 */
#include "kern/kern_gemm.h"
#include "kern/onednn/onednn_int.h"

static bool supports(const rt_problem *p) {
    rt_gemm g;
    return rt_gemm_get(&g, p, RT_DTYPE_F32);
}

static void layouts(const rt_problem *p, rt_layout *in, rt_layout *out) {
    (void)p;
    in[0] = in[1] = *out = RT_LAYOUT_PLAIN;
}

static void run(const void *state, const rt_problem *p, void *out, const void *const *in,
                const rt_kern_ctx *ctx) {
    (void)state, (void)ctx;
    rt_gemm g;
    if (!rt_gemm_get(&g, p, RT_DTYPE_F32))
        return;
    const float *a = in[0], *b = in[1];
    float *c = out;
    for (int64_t i = 0; i < g.count; i++) {
        dnnl_status_t e = dnnl_sgemm(g.ta ? 'T' : 'N', g.tb ? 'T' : 'N', g.m, g.n, g.k, 1.0f, a + i * g.sa,
                                     g.lda, b + i * g.sb, g.ldb, 0.0f, c + i * g.sc, g.n);
        RT_ASSERT(e == dnnl_success);
        (void)e;
    }
}

const rt_kern rt_k_matmul_f32__onednn = {
    .impl = "onednn", .supports = supports, .layouts = layouts, .run = run};
const rt_kern rt_k_bmm_f32__onednn = {.impl = "onednn", .supports = supports, .layouts = layouts, .run = run};
