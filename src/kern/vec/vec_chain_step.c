/*
 * vec_chain_step.c - the loops behind the steps of a chain: one tight pass over a tile each.
 *
 * The affine maps of batch normalisation are what a residual network spends its memory time on; their
 * coefficients are patterns in the blocked layouts, so those loops keep them in registers. The other loops
 * are generated from an expression.
 */
#include "base/special.h"
#include "kern/vec/vec_chain.h"
#include "kern/vec/vmath.h"

#define PARAMS float *dst, const float *x, const chain_stream *s, int64_t groups, const chain_par *par

/* One operand: `v` is the value, alpha and beta are vectors. */
#define UNARY(name, EXPR)                                                                                    \
    static void step_##name(PARAMS) {                                                                        \
        (void)s;                                                                                             \
        const vf alpha = v_set(par->alpha), beta = v_set(par->beta);                                         \
        (void)alpha;                                                                                         \
        (void)beta;                                                                                          \
        for (int64_t i = 0; i < groups * V_GROUP; i += V_W) {                                                \
            const vf v = v_load(x + i);                                                                      \
            v_store(dst + i, (EXPR));                                                                        \
        }                                                                                                    \
    }
/* Two operands: `v` and `a`. */
#define BINARY(name, EXPR)                                                                                   \
    static void step_##name(PARAMS) {                                                                        \
        const vf alpha = v_set(par->alpha), beta = v_set(par->beta);                                         \
        (void)alpha;                                                                                         \
        (void)beta;                                                                                          \
        const float *pa = s[0].p;                                                                            \
        const int64_t step = s[0].step;                                                                      \
        for (int64_t g = 0; g < groups; g++, x += V_GROUP, dst += V_GROUP, pa += step)                       \
            for (int u = 0; u < V_GROUP; u += V_W) {                                                         \
                const vf v = v_load(x + u), a = v_load(pa + u);                                              \
                v_store(dst + u, (EXPR));                                                                    \
            }                                                                                                \
    }
/* By a scalar function in double. */
#define SCALAR(name, fn)                                                                                     \
    static void step_##name(PARAMS) {                                                                        \
        (void)s;                                                                                             \
        (void)par;                                                                                           \
        for (int64_t i = 0; i < groups * V_GROUP; i++)                                                       \
            dst[i] = (float)fn((double)x[i]);                                                                \
    }

RT_INLINE vf relu(vf x, vf alpha) {
    return v_select(x > 0.0f, x, alpha * x);
}
RT_INLINE vf clip_bwd(vf dy, vf x, vf lo, vf hi) {
    return v_and((x >= lo) & (x <= hi), dy);
}

static void step_copy(PARAMS) {
    (void)s;
    (void)par;
    memmove(dst, x, (size_t)groups * V_GROUP * sizeof(float));
}
BINARY(add, v + a)
BINARY(sub, v - a)
BINARY(rsub, a - v)
BINARY(mul, v *a)
BINARY(div, v / a)
BINARY(rdiv, a / v)
BINARY(add_relu, relu(v + a, alpha))
UNARY(scale, v_fma(alpha, v, beta))
UNARY(relu, relu(v, alpha))
BINARY(relu_bwd, v_select(a > 0.0f, v, alpha *v))
BINARY(rrelu_bwd, v_select(v > 0.0f, a, alpha *a))
UNARY(exp, v_exp(v))
UNARY(log, v_log(v))
UNARY(sqrt, v_sqrt(v))
UNARY(square, v *v)
UNARY(recip, 1.0f / v)
UNARY(xlogx, v_select(v == 0.0f, v_set(0.0f), v *v_log(v)))
UNARY(sigmoid, v_sigmoid(v))
UNARY(tanh, v_tanh(v))
UNARY(softplus, v_softplus(v))
UNARY(clip, v_min(beta, v_max(alpha, v)))
BINARY(clip_bwd, clip_bwd(v, a, alpha, beta))
BINARY(rclip_bwd, clip_bwd(a, v, alpha, beta))
SCALAR(lgamma, rt_lgamma)
SCALAR(digamma, rt_digamma)
SCALAR(trigamma, rt_trigamma)

/* alpha: 1 / (1 - p). Bits are compared as unsigned numbers: with their top bit flipped, as signed ones. */
static void step_dropout(PARAMS) {
    const float *bits = s[0].p;
    const vi threshold = vi_set((int32_t)(par->threshold ^ 0x80000000u));
    const vf alpha = v_set(par->alpha);
    for (int64_t i = 0; i < groups * V_GROUP; i += V_W) {
        const vi b = *(const vi_any *)(bits + i) ^ INT32_MIN;
        v_store(dst + i, v_and(~(b < threshold), alpha * v_load(x + i)));
    }
}

/* ---- affine maps per channel. `vary`: coefficients advance with x ((rows, C) values), else they are
 * patterns ---- */

typedef struct coef {
    vf v[V_U];
} coef;
RT_INLINE coef coef_load(const float *p) {
    coef c;
    for (int u = 0; u < V_U; u++)
        c.v[u] = v_load(p + u * V_W);
    return c;
}

enum { PLAIN_AFFINE, WITH_RELU, WITH_RELU_MUL };
RT_INLINE void affine(PARAMS, int kind, bool vary) {
    const vf alpha = v_set(par->alpha);
    const chain_stream last = kind == WITH_RELU_MUL ? s[2] : s[0];
    coef a = coef_load(s[0].p), b = coef_load(s[1].p), c = coef_load(last.p);
    for (int64_t g = 0; g < groups; g++) {
        if (vary) {
            a = coef_load(s[0].p + g * s[0].step);
            b = coef_load(s[1].p + g * s[1].step);
            c = coef_load(last.p + g * last.step);
        }
        for (int u = 0; u < V_U; u++) {
            const int64_t i = g * V_GROUP + u * V_W;
            vf y = v_fma(a.v[u], v_load(x + i), b.v[u]);
            if (kind != PLAIN_AFFINE)
                y = relu(y, alpha);
            if (kind == WITH_RELU_MUL)
                y *= c.v[u];
            v_store(dst + i, y);
        }
    }
}
RT_INLINE void gapply(PARAMS, bool add, bool vary) {
    (void)par;
    coef k0 = coef_load(s[1].p), k1 = coef_load(s[2].p), k2 = coef_load(s[3].p);
    for (int64_t g = 0; g < groups; g++) {
        if (vary) {
            k0 = coef_load(s[1].p + g * s[1].step);
            k1 = coef_load(s[2].p + g * s[2].step);
            k2 = coef_load(s[3].p + g * s[3].step);
        }
        for (int u = 0; u < V_U; u++) {
            const int64_t i = g * V_GROUP + u * V_W;
            vf y = v_fma(k1.v[u], v_load(s[0].p + i), k2.v[u]);
            y = v_fma(k0.v[u], v_load(x + i), y);
            if (add)
                y += v_load(s[4].p + i);
            v_store(dst + i, y);
        }
    }
}
static void step_affine(PARAMS) {
    if (s[0].step == 0)
        affine(dst, x, s, groups, par, PLAIN_AFFINE, false);
    else
        affine(dst, x, s, groups, par, PLAIN_AFFINE, true);
}
static void step_affine_relu(PARAMS) {
    if (s[0].step == 0)
        affine(dst, x, s, groups, par, WITH_RELU, false);
    else
        affine(dst, x, s, groups, par, WITH_RELU, true);
}
static void step_affine_relu_mul(PARAMS) {
    if (s[0].step == 0 && s[2].step == 0)
        affine(dst, x, s, groups, par, WITH_RELU_MUL, false);
    else
        affine(dst, x, s, groups, par, WITH_RELU_MUL, true);
}
static void step_gapply(PARAMS) {
    if (s[1].step == 0)
        gapply(dst, x, s, groups, par, false, false);
    else
        gapply(dst, x, s, groups, par, false, true);
}
static void step_gapply_add(PARAMS) {
    if (s[1].step == 0)
        gapply(dst, x, s, groups, par, true, false);
    else
        gapply(dst, x, s, groups, par, true, true);
}

chain_fn *const RT_V(rt_k_chain_fns)[STEP_COUNT] = {
    [STEP_COPY] = step_copy,
    [STEP_ADD] = step_add,
    [STEP_SUB] = step_sub,
    [STEP_RSUB] = step_rsub,
    [STEP_MUL] = step_mul,
    [STEP_DIV] = step_div,
    [STEP_RDIV] = step_rdiv,
    [STEP_ADD_RELU] = step_add_relu,
    [STEP_SCALE] = step_scale,
    [STEP_RELU] = step_relu,
    [STEP_RELU_BWD] = step_relu_bwd,
    [STEP_RRELU_BWD] = step_rrelu_bwd,
    [STEP_EXP] = step_exp,
    [STEP_LOG] = step_log,
    [STEP_SQRT] = step_sqrt,
    [STEP_SQUARE] = step_square,
    [STEP_RECIP] = step_recip,
    [STEP_XLOGX] = step_xlogx,
    [STEP_SIGMOID] = step_sigmoid,
    [STEP_TANH] = step_tanh,
    [STEP_SOFTPLUS] = step_softplus,
    [STEP_CLIP] = step_clip,
    [STEP_CLIP_BWD] = step_clip_bwd,
    [STEP_RCLIP_BWD] = step_rclip_bwd,
    [STEP_LGAMMA] = step_lgamma,
    [STEP_DIGAMMA] = step_digamma,
    [STEP_TRIGAMMA] = step_trigamma,
    [STEP_DROPOUT] = step_dropout,
    [STEP_AFFINE] = step_affine,
    [STEP_AFFINE_RELU] = step_affine_relu,
    [STEP_AFFINE_RELU_MUL] = step_affine_relu_mul,
    [STEP_GAPPLY] = step_gapply,
    [STEP_GAPPLY_ADD] = step_gapply_add,
};
