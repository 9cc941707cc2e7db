/*
 * vec_dense.c - MATMUL, BMM and FUSED_MATMUL by the product of vec_gemm.c.
 *
 * One thread on Zen 3 (peak 103.7 GFLOP/s), the products of dense layers 784-200-200-10 and 2-100-100-3 at
 * batch 128, GFLOP/s, best of many:
 *
 *     m x n x k                 this   dnnl_sgemm   cblas_sgemm
 *     128x200x784   x W^T        91        93            87
 *     128x200x200   x W^T        96        96            84
 *     128x200x200   dy W         97       100            86
 *     200x200x128   dy^T x       96        95            83
 *     200x784x128   dy^T x       95        95            84
 *     128x100x100   x W^T        93        88            72
 *     128x100x100   dy W         94        89            74
 *     100x100x128   dy^T x       93        86            76
 *     128x50x50     x W^T        84        63
 *     128x10x200    x W^T        76        52            42
 *     128x200x10    dy W         75        69            32
 *     10x200x128    dy^T x       92        90            41
 *     128x3x100     x W^T        61        21            14
 *     128x100x3     dy W         50        32            13
 *     128x100x2     x W^T        39        25             9
 *     100x2x128     dy^T x       45        14            17
 *
 * So dnnl_sgemm is the first choice for large products, this one for small ones, and for layers next to few
 * inputs or outputs. A bias with a ReLU, or the mask of one, adds 3 % to 128x100x100 in the store; as a pass of
 * its own it takes 5 %.
 */
#include "base/alloc.h"
#include "kern/vec/gemm.h"

enum { FEW = 12, THIN = 16, SMALL_COLUMNS = 256, SMALL_PRODUCT = 1 << 18, FUSED_DEPTH = 200 };

/* A tall product with a transposed A and few columns is turned on its side: C^T = B^T A needs no packing at
 * all. */
static bool sideways(const rt_gemm *g) {
    return g->ta && !g->tb && g->n > RT_GEMM_THIN && g->n <= FEW && g->m >= 2 * g->n;
}
static rt_gemm turned(const rt_gemm *g) {
    rt_gemm t = *g;
    t.m = g->n;
    t.n = g->m;
    t.lda = g->ldb;
    t.ldb = g->lda;
    return t;
}

static bool supports(const rt_problem *p) {
    rt_gemm g;
    return rt_gemm_get(&g, p, RT_DTYPE_F32);
}

/* Rows of B a multiple of 2 KiB apart collide in the caches unless B is packed. */
static bool collides(const rt_gemm *g) {
    return !g->tb && g->n % 512 == 0 && g->k >= 32;
}

/* Small products, by what others spend on columns that fill no vector, or on getting started at all. */
static bool small(const rt_gemm *g) {
    return (g->n <= SMALL_COLUMNS && g->n % V_W != 0) || g->m * g->n <= SMALL_PRODUCT / g->k;
}

static void rule_special(rt_str *out) {
    rt_str_appendf(
        out,
        "products with a side of %d or less, of %d multiply-adds or fewer, of up to %d columns that fill no "
        "vector, or with rows a multiple of 2 KiB apart",
        THIN, SMALL_PRODUCT, SMALL_COLUMNS);
}

static bool supports_special(const rt_problem *p) {
    rt_gemm g;
    return rt_gemm_get(&g, p, RT_DTYPE_F32) &&
           (RT_MIN(g.m, RT_MIN(g.n, g.k)) <= THIN || sideways(&g) || collides(&g) || small(&g));
}

static rt_status prepare(const rt_problem *p, void **state, size_t *scratch) {
    rt_gemm g;
    *state = NULL;
    RT_FAIL_IF(!rt_gemm_get(&g, p, RT_DTYPE_F32), RT_E_UNSUPPORTED,
               "matmul: not a problem this kernel supports");
    const rt_gemm t = turned(&g);
    const int64_t floats =
        sideways(&g) ? RT_V(rt_vec_gemm_scratch)(&t) + t.m * t.n : RT_V(rt_vec_gemm_scratch)(&g);
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
    const rt_gemm_end none = {.kind = RT_END_NONE};
    float *side = ctx->scratch, *scratch = turn ? side + t.m * t.n : side;
    for (int64_t i = 0; i < g.count; i++) {
        float *c = (float *)out + i * g.sc;
        const float *a = (const float *)in[0] + i * g.sa, *b = (const float *)in[1] + i * g.sb;
        if (!turn) {
            RT_V(rt_vec_gemm)(&g, &none, c, a, b, scratch);
            continue;
        }
        RT_V(rt_vec_gemm)(&t, &none, side, b, a, scratch);
        for (int64_t r = 0; r < g.m; r++)
            for (int64_t j = 0; j < g.n; j++)
                c[r * g.n + j] = side[j * g.m + r];
    }
}

/* ---- with what stands behind them ---- */

/* Operands of `end` in the problem, 0: none. */
typedef struct fused {
    rt_gemm g;
    rt_gemm_end end;
    int b, bias, mask;
} fused;

/* A bias and a ReLU, one of them, or the mask of a ReLU. */
static bool fused_step(fused *f, const rt_problem *p, const rt_chain_step *s) {
    const int in = s->arg[0];
    if (s->swap || f->mask > 0 || f->end.relu)
        return false;
    f->end.alpha = (float)s->attr.alpha;
    switch (s->op) {
    case RT_OP_ADD_CHAN:
        f->bias = in;
        return p->chain->step + 1 == s && rt_desc_elems(&p->in[in]) == f->g.n;
    case RT_OP_RELU:
        f->end.relu = true;
        return true;
    case RT_OP_RELU_BWD:
        f->mask = in;
        return f->bias == 0 && rt_desc_equal(&p->in[in], &p->out);
    default:
        return false;
    }
}

static bool fused_get(fused *f, const rt_problem *p) {
    *f = (fused){0};
    if (p->chain == NULL || p->chain->n < 2 || p->chain->step[0].op != RT_OP_MATMUL)
        return false;
    f->b = p->chain->step[0].arg[0];
    const rt_desc desc[2] = {p->in[0], p->in[f->b]};
    const int32_t groups[2] = {p->in_groups[0], p->in_groups[f->b]};
    const rt_problem product = {.op = RT_OP_MATMUL,
                                .attr = p->chain->step[0].attr,
                                .nin = 2,
                                .in = desc,
                                .in_groups = groups,
                                .out = p->out,
                                .out_groups = p->out_groups,
                                .n = p->n,
                                .kind = p->kind};
    bool fits = rt_gemm_get(&f->g, &product, RT_DTYPE_F32) && !f->g.ta;
    for (int i = 1; i < p->chain->n && fits; i++)
        fits = fused_step(f, p, &p->chain->step[i]);
    f->end.kind = f->end.alpha != 0 ? RT_END_ANY
                  : f->mask > 0     ? RT_END_MASK
                  : f->bias == 0    ? RT_END_ANY
                  : f->end.relu     ? RT_END_BIAS_RELU
                                    : RT_END_BIAS;
    return fits;
}

/* While a pass over C costs more than other kernels would save. */
static void rule_fused(rt_str *out) {
    rt_str_appendf(out, "products with bias, ReLU or its mask, up to a depth of %d", FUSED_DEPTH);
}
static bool supports_fused(const rt_problem *p) {
    fused f;
    return fused_get(&f, p) && f.g.k <= FUSED_DEPTH;
}

static rt_status prepare_fused(const rt_problem *p, void **state, size_t *scratch) {
    fused *f;
    RT_TRY(rt_alloc(&f, sizeof *f));
    if (!fused_get(f, p)) {
        rt_free(f);
        RT_FAIL(RT_E_UNSUPPORTED, "fused matmul: not a problem this kernel supports");
    }
    *scratch = (size_t)RT_V(rt_vec_gemm_scratch)(&f->g) * sizeof(float);
    *state = f;
    return RT_OK;
}

static void run_fused(const void *state, const rt_problem *p, void *out, const void *const *in,
                      const rt_kern_ctx *ctx) {
    (void)p;
    const fused *f = state;
    rt_gemm_end end = f->end;
    end.bias = f->bias > 0 ? in[f->bias] : NULL;
    end.mask = f->mask > 0 ? in[f->mask] : NULL;
    RT_V(rt_vec_gemm)(&f->g, &end, out, in[0], in[f->b], ctx->scratch);
}

const rt_kern RT_V(rt_k_fused_matmul_f32) = {.impl = RT_V_IMPL,
                                             .supports = supports_fused,
                                             .rule = rule_fused,
                                             .prepare = prepare_fused,
                                             .release = rt_free,
                                             .run = run_fused};

#define REGISTER(name, which, when)                                                                          \
    const rt_kern RT_V(rt_k_##name##_f32) = {                                                                \
        .impl = RT_V_IMPL, .supports = which, .rule = when, .prepare = prepare, .run = run};
REGISTER(matmul, supports, NULL)
REGISTER(bmm, supports, NULL)
REGISTER(matmul_special, supports_special, rule_special)
REGISTER(bmm_special, supports_special, rule_special)
