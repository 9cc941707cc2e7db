/*
 * onnx_answers.c - what a model says of a row, from the raw outputs of its members, as elementary ONNX nodes.
 *
 * Probabilities of members p_m = softmax(z_m), their mean q and its logarithm by log-mean-exp. With temperature
 * T the answer is softmax(ln q / T); uncertainties are those of the members as they are. All is in float, so
 * nothing small may be the difference of large numbers; as in eval/row.c, with d_mc = p_mc / q_c - 1:
 *
 *     mutual information   mean_m sum_c q_c f(d_mc)         f(d) = (1 + d) ln(1 + d) - d, near 0 its series
 *     EPKL                 sum_c cov_m(p_mc, ln p_mc)
 *
 * Of a Dirichlet with concentrations a_c = e^z_c + offset, pi = a / a_0:
 *
 *     mutual information   sum_c pi_c (g(a_c) - g(a_0))     g(x) = psi(x + 1) - ln x, which falls
 *     EPKL                 (K - 1) / a_0
 *
 * The differences are taken as D(a, r) = g(a) - g(a + r), r the sum of the other concentrations, every term of which
 * has the factor r; so sure rows keep their digits. ln a_c and pi come from the outputs themselves: concentrations as
 * such end at e^+-80, where floats do, and what is computed of them has nothing left to tell by then. Several
 * Dirichlets add what lies between them: the information of their means, and cov_m(pi_mc, psi(a_mc) - psi(a_m0)); g
 * by its asymptotic series from 8 on, else by the recurrence psi(x + 1) = psi(x + 9) - sum 1 / (x + i).
 *
 * Regression: each member (mu, ln v) in standardised units; the answer is the moments of the mixture. Those of a
 * transformed target are in onnx_warp.c.
 */
#include "export/export_int.h"
#include <math.h>
#include <string.h>

typedef struct answers {
    rt_onnx *o;
    const rt_model *m;
    rt_output_kind kind;
    double offset;
    int members;
    int64_t k;
    rt_onnx_val z;                      /* (M, N, outputs) */
    rt_decision decision;               /* `retort calibrate`'s */
    rt_onnx_val temperature, threshold; /* scalars */
    /* made when first wanted */
    rt_onnx_val logp, p;            /* (M, N, K) of members */
    rt_onnx_val logq, q;            /* (N, K) of their mean, at temperature 1 */
    rt_onnx_val log_answer, answer; /* (N, K) at the temperature */
    rt_onnx_val log_alpha;          /* (M, N, K) */
    rt_onnx_val alpha, alpha0;      /* (M, N, K), (M, N, 1) */
    rt_onnx_val within;             /* (N) of Dirichlets */
    rt_onnx_val mu, var, mean;      /* (M, N), (M, N), (N) */
    rt_onnx_val said_mu, said_var;  /* the same of the target as the networks see it */
} answers;

/* ---- distributions ---- */

/* ln(e^z + offset), of any z: the larger of both, and what the other adds. */
static rt_onnx_val log_alpha(answers *a) {
    if (a->log_alpha == NULL && a->offset == 0)
        a->log_alpha = a->z;
    if (a->log_alpha == NULL) {
        const rt_onnx_val ln = rt_onnx_scalar(a->o, log(a->offset));
        const rt_onnx_val apart = rt_onnx_unary(a->o, "Abs", rt_onnx_sub(a->o, a->z, ln));
        const rt_onnx_val less = rt_onnx_unary(a->o, "Exp", rt_onnx_unary(a->o, "Neg", apart));
        a->log_alpha = rt_onnx_add(a->o, rt_onnx_binary(a->o, "Max", a->z, ln),
                                   rt_onnx_unary(a->o, "Log", rt_onnx_affine(a->o, less, 1, 1)));
    }
    return a->log_alpha;
}

static rt_onnx_val alpha(answers *a) {
    if (a->alpha == NULL)
        a->alpha = rt_onnx_affine(
            a->o, rt_onnx_unary(a->o, "Exp", rt_onnx_clip(a->o, a->z, -RT_ONNX_EXP, RT_ONNX_EXP)), 1,
            a->offset);
    return a->alpha;
}

static rt_onnx_val alpha0(answers *a) {
    if (a->alpha0 == NULL)
        a->alpha0 = rt_onnx_sum(a->o, alpha(a), -1, true);
    return a->alpha0;
}

/* What the members' probabilities are the softmax of; the mean of a Dirichlet is a / a_0. */
static rt_onnx_val logits(answers *a) {
    return a->kind == RT_OUTPUT_DIRICHLET ? log_alpha(a) : a->z;
}

static rt_onnx_val members_log(answers *a) {
    if (a->logp == NULL)
        a->logp = rt_onnx_softmax(a->o, logits(a), true);
    return a->logp;
}

static rt_onnx_val members(answers *a) {
    if (a->p == NULL)
        a->p = rt_onnx_softmax(a->o, logits(a), false);
    return a->p;
}

/* ln mean_m p_m */
static rt_onnx_val mean_log(answers *a) {
    if (a->logq == NULL && a->members == 1) /* OpenCV knows Reshape, but not the Squeeze of opset 13 */
        a->logq = rt_onnx_reshape(a->o, members_log(a), (int64_t[]){-1, a->k}, 2);
    if (a->logq == NULL) {
        const rt_onnx_val top = rt_onnx_max(a->o, members_log(a), 0, true);
        const rt_onnx_val e = rt_onnx_unary(a->o, "Exp", rt_onnx_sub(a->o, members_log(a), top));
        const rt_onnx_val sum =
            rt_onnx_add(a->o, rt_onnx_unary(a->o, "Log", rt_onnx_mean(a->o, e, 0, true)), top);
        a->logq = rt_onnx_gather(a->o, sum, 0, 0);
    }
    return a->logq;
}

static rt_onnx_val mean(answers *a) {
    if (a->q == NULL)
        a->q = rt_onnx_mean(a->o, members(a), 0, false);
    return a->q;
}

static rt_onnx_val log_answer(answers *a) {
    if (a->log_answer == NULL && a->decision.of_members)
        a->log_answer = mean_log(a);
    if (a->log_answer == NULL)
        a->log_answer = rt_onnx_softmax(a->o, rt_onnx_div(a->o, mean_log(a), a->temperature), true);
    return a->log_answer;
}

static rt_onnx_val probs(answers *a) {
    if (a->answer == NULL)
        a->answer = rt_onnx_unary(a->o, "Exp", log_answer(a));
    return a->answer;
}

/* -sum p ln p over the last axis */
static rt_onnx_val entropy_of(answers *a, rt_onnx_val p, rt_onnx_val logp) {
    return rt_onnx_unary(a->o, "Neg", rt_onnx_sum(a->o, rt_onnx_mul(a->o, p, logp), -1, false));
}

/* ---- stable forms ---- */

static rt_onnx_val near_zero(rt_onnx *o, rt_onnx_val x, double within) {
    return rt_onnx_binary(o, "Less", rt_onnx_unary(o, "Abs", x), rt_onnx_scalar(o, within));
}

/* f(d) = (1 + d) ln(1 + d) - d = d^2 (1/2 - d/6 + d^2/12 - ... (-1)^i d^i / ((i+1)(i+2))) */
static rt_onnx_val f_of(rt_onnx *o, rt_onnx_val d) {
    double c[10];
    for (int i = 0; i < 10; i++)
        c[i] = (i % 2 ? -1.0 : 1.0) / ((i + 1) * (i + 2));
    const rt_onnx_val series = rt_onnx_mul(o, rt_onnx_mul(o, d, d), rt_onnx_poly(o, d, c, 10));
    const rt_onnx_val one = rt_onnx_affine(o, d, 1, 1);
    const rt_onnx_val safe = rt_onnx_binary(o, "Max", one, rt_onnx_scalar(o, 1e-37));
    const rt_onnx_val direct = rt_onnx_sub(o, rt_onnx_mul(o, one, rt_onnx_unary(o, "Log", safe)), d);
    return rt_onnx_where(o, near_zero(o, d, 0.2), series, direct);
}

/* mean_m sum_c q_c x_mc */
static rt_onnx_val under_mean(answers *a, rt_onnx_val x) {
    return rt_onnx_mean(a->o, rt_onnx_sum(a->o, rt_onnx_mul(a->o, x, mean(a)), -1, false), 0, false);
}

static rt_onnx_val between_members(answers *a) {
    const rt_onnx_val q = rt_onnx_binary(a->o, "Max", mean(a), rt_onnx_scalar(a->o, 1e-37));
    const rt_onnx_val d = rt_onnx_div(a->o, rt_onnx_sub(a->o, members(a), mean(a)), q);
    return under_mean(a, f_of(a->o, d));
}

/* sum_c cov_m(p_mc, l_mc) */
static rt_onnx_val covariance(answers *a, rt_onnx_val l) {
    const rt_onnx_val dp = rt_onnx_sub(a->o, members(a), mean(a)),
                      dl = rt_onnx_sub(a->o, l, rt_onnx_mean(a->o, l, 0, true));
    return rt_onnx_mean(a->o, rt_onnx_sum(a->o, rt_onnx_mul(a->o, dp, dl), -1, false), 0, false);
}

/* g(x) = psi(x + 1) - ln x ~ 1/(2x) - 1/(12x^2) + 1/(120x^4) - 1/(252x^6) + 1/(240x^8) - 1/(132x^10) */
static rt_onnx_val g_series(rt_onnx *o, rt_onnx_val x) {
    static const double c[] = {-1.0 / 12, 1.0 / 120, -1.0 / 252, 1.0 / 240, -1.0 / 132};
    const rt_onnx_val u = rt_onnx_unary(o, "Reciprocal", x), u2 = rt_onnx_mul(o, u, u);
    const rt_onnx_val tail = rt_onnx_mul(o, u2, rt_onnx_poly(o, u2, c, 5));
    return rt_onnx_add(o, rt_onnx_affine(o, u, 0.5, 0), tail);
}

static rt_onnx_val g_of(rt_onnx *o, rt_onnx_val x) {
    enum { SHIFT = 8 };
    /* psi(x + 1) = psi(x + 1 + 8) - sum_{i=1..8} 1/(x + i), and psi(y + 1) = g(y) + ln y with y = x + 8 */
    const rt_onnx_val y = rt_onnx_affine(o, x, 1, SHIFT);
    rt_onnx_val v = rt_onnx_add(o, g_series(o, y), rt_onnx_unary(o, "Log", rt_onnx_div(o, y, x)));
    for (int i = 1; i <= SHIFT; i++)
        v = rt_onnx_sub(o, v, rt_onnx_unary(o, "Reciprocal", rt_onnx_affine(o, x, 1, i)));
    const rt_onnx_val large = rt_onnx_binary(o, "Max", x, rt_onnx_scalar(o, SHIFT));
    return rt_onnx_where(o, rt_onnx_binary(o, "Less", x, rt_onnx_scalar(o, SHIFT)), v, g_series(o, large));
}

/* psi(x) = g(x) + ln x - 1/x */
static rt_onnx_val digamma_of(rt_onnx *o, rt_onnx_val x) {
    const rt_onnx_val u = rt_onnx_sub(o, rt_onnx_unary(o, "Log", x), rt_onnx_unary(o, "Reciprocal", x));
    return rt_onnx_add(o, g_of(o, x), u);
}

/* ln(1 + x), x >= 0: with s = x / (2 + x) it is 2 (s + s^3/3 + s^5/5 + ...), below 1/2; above, as it is. */
static rt_onnx_val log1p_of(rt_onnx *o, rt_onnx_val x) {
    static const double c[] = {2, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9};
    const rt_onnx_val half = rt_onnx_scalar(o, 0.5), small = rt_onnx_binary(o, "Min", x, half);
    const rt_onnx_val s = rt_onnx_div(o, small, rt_onnx_affine(o, small, 1, 2));
    const rt_onnx_val series = rt_onnx_mul(o, s, rt_onnx_poly(o, rt_onnx_mul(o, s, s), c, 5));
    return rt_onnx_where(o, rt_onnx_binary(o, "Less", x, half), series,
                         rt_onnx_unary(o, "Log", rt_onnx_affine(o, x, 1, 1)));
}

/*
 * D(a, r) = g(a) - g(a + r). With y = a + 8 and psi(a + 1) = psi(y + 1) - sum_{i=1..8} 1/(a + i),
 *
 *     D = ln(1 + 8 r / (a (y + r))) - sum_i r / ((a + i)(a + r + i)) + (G(y) - G(y + r))
 *
 * where G is g's series, and with u = 1/y, w = 1/(y + r), u - w = r u w
 *
 *     G(y) - G(y + r) = (u - w) (1/2 - (u + w) (1/12 - (u^2 + w^2)/120 + (u^4 + u^2 w^2 + w^4)/252)).
 */
static rt_onnx_val g_difference(rt_onnx *o, rt_onnx_val a, rt_onnx_val r) {
    enum { SHIFT = 8 };
    const rt_onnx_val y = rt_onnx_affine(o, a, 1, SHIFT), end = rt_onnx_add(o, y, r);
    const rt_onnx_val share = rt_onnx_div(o, r, end); /* before dividing by a: no product of large numbers */
    rt_onnx_val d = log1p_of(o, rt_onnx_affine(o, rt_onnx_div(o, share, a), SHIFT, 0));
    for (int i = 1; i <= SHIFT; i++) {
        const rt_onnx_val from = rt_onnx_affine(o, a, 1, i);
        d = rt_onnx_sub(o, d, rt_onnx_div(o, rt_onnx_div(o, r, rt_onnx_add(o, from, r)), from));
    }
    const rt_onnx_val u = rt_onnx_unary(o, "Reciprocal", y), w = rt_onnx_unary(o, "Reciprocal", end);
    const rt_onnx_val u2 = rt_onnx_mul(o, u, u), w2 = rt_onnx_mul(o, w, w), both = rt_onnx_add(o, u2, w2);
    const rt_onnx_val fourth = rt_onnx_sub(o, rt_onnx_mul(o, both, both), rt_onnx_mul(o, u2, w2));
    const rt_onnx_val inner = rt_onnx_add(o, rt_onnx_affine(o, both, -1.0 / 120, 1.0 / 12),
                                          rt_onnx_affine(o, fourth, 1.0 / 252, 0));
    const rt_onnx_val outer = rt_onnx_affine(o, rt_onnx_mul(o, rt_onnx_add(o, u, w), inner), -1, 0.5);
    return rt_onnx_add(o, d, rt_onnx_mul(o, rt_onnx_mul(o, share, u), outer));
}

/* The sum of the others of each: all less itself, but for the largest, of which too little would be left. */
static rt_onnx_val others_of(rt_onnx *o, rt_onnx_val x) {
    const rt_onnx_attr to_float[] = {RT_ONNX_I("to", RT_ONNX_F32), {0}};
    const rt_onnx_val most = rt_onnx_max(o, x, -1, true);
    const rt_onnx_val less = rt_onnx_binary(o, "Less", x, most);
    const rt_onnx_val is_less = rt_onnx_node(o, "Cast", &less, 1, to_float);
    const rt_onnx_val tops = rt_onnx_sum(o, rt_onnx_affine(o, is_less, -1, 1), -1, true);
    const rt_onnx_val of_top = rt_onnx_add(o, rt_onnx_sum(o, rt_onnx_mul(o, x, is_less), -1, true),
                                           rt_onnx_mul(o, rt_onnx_affine(o, tops, 1, -1), most));
    return rt_onnx_where(o, less, rt_onnx_sub(o, rt_onnx_sum(o, x, -1, true), x), of_top);
}

/* Concentrations, those of a row multiplied where all are below e^-60: there the information is that of pi alone. */
static rt_onnx_val raised_alpha(answers *a) {
    rt_onnx *o = a->o;
    if (a->offset != 0)
        return alpha(a);
    const rt_onnx_val lack = rt_onnx_affine(o, rt_onnx_max(o, a->z, -1, true), -1, -60);
    const rt_onnx_val z = rt_onnx_add(o, a->z, rt_onnx_binary(o, "Max", lack, rt_onnx_scalar(o, 0)));
    return rt_onnx_unary(o, "Exp", rt_onnx_clip(o, z, -RT_ONNX_EXP, RT_ONNX_EXP));
}

/* Knowledge uncertainty within each member, mean over members: what the width of a Dirichlet tells. */
static rt_onnx_val within_members(answers *a) {
    if (a->within == NULL) {
        const rt_onnx_val raised = raised_alpha(a);
        const rt_onnx_val d = g_difference(a->o, raised, others_of(a->o, raised));
        a->within =
            rt_onnx_mean(a->o, rt_onnx_sum(a->o, rt_onnx_mul(a->o, members(a), d), -1, false), 0, false);
    }
    return a->within;
}

/* ---- answers of classifiers ---- */

static rt_onnx_val put_probs(answers *a) {
    return probs(a);
}

static rt_onnx_val put_label(answers *a) {
    const rt_onnx_attr attrs[] = {RT_ONNX_I("axis", -1), RT_ONNX_I("keepdims", 0), {0}};
    const rt_onnx_val x = log_answer(a);
    return rt_onnx_node(a->o, "ArgMax", &x, 1, attrs);
}

static rt_onnx_val put_confidence(answers *a) {
    return rt_onnx_max(a->o, probs(a), -1, false);
}

static rt_onnx_val put_entropy(answers *a) {
    return entropy_of(a, mean(a), mean_log(a));
}

static rt_onnx_val put_expected_entropy(answers *a) {
    const rt_onnx_val each = rt_onnx_mean(a->o, entropy_of(a, members(a), members_log(a)), 0, false);
    return a->kind == RT_OUTPUT_DIRICHLET ? rt_onnx_sub(a->o, each, within_members(a)) : each;
}

static rt_onnx_val put_mutual_information(answers *a) {
    if (a->kind != RT_OUTPUT_DIRICHLET)
        return between_members(a);
    const rt_onnx_val own = within_members(a);
    return a->members > 1 ? rt_onnx_add(a->o, own, between_members(a)) : own;
}

static rt_onnx_val put_epkl(answers *a) {
    if (a->kind != RT_OUTPUT_DIRICHLET)
        return covariance(a, members_log(a));
    const rt_onnx_val each =
        rt_onnx_div(a->o, rt_onnx_scalar(a->o, (double)a->k - 1), rt_onnx_sum(a->o, alpha(a), -1, false));
    const rt_onnx_val own = rt_onnx_mean(a->o, each, 0, false);
    if (a->members == 1)
        return own;
    return rt_onnx_add(
        a->o, own, covariance(a, rt_onnx_sub(a->o, digamma_of(a->o, alpha(a)), digamma_of(a->o, alpha0(a)))));
}

static rt_onnx_val put_alpha(answers *a) {
    return rt_onnx_gather(a->o, alpha(a), 0, 0);
}

static rt_onnx_val put_member_probs(answers *a) {
    return rt_onnx_transpose(a->o, members(a), (int64_t[]){1, 0, 2}, 3);
}

/* ---- answers of regressions ---- */

static void moments(answers *a) {
    if (a->mu != NULL)
        return;
    const rt_target *t = rt_model_target(a->m);
    const double scale = t->std;
    a->mu = rt_onnx_affine(a->o, rt_onnx_gather(a->o, a->z, 0, 2), scale, t->mean);
    a->var = rt_onnx_affine(
        a->o,
        rt_onnx_unary(a->o, "Exp",
                      rt_onnx_clip(a->o, rt_onnx_gather(a->o, a->z, 1, 2), -RT_LOGVAR_MAX, RT_LOGVAR_MAX)),
        scale * scale, 0);
    a->said_mu = a->mu;
    a->said_var = a->var;
    if (t->warp.kind != RT_WARP_NONE)
        rt_onnx_warp_moments(a->o, &t->warp, a->members, &a->mu, &a->var);
    a->mean = rt_onnx_mean(a->o, a->mu, 0, false);
}

static rt_onnx_val put_mean(answers *a) {
    moments(a);
    return a->mean;
}

static rt_onnx_val put_data_variance(answers *a) {
    moments(a);
    return rt_onnx_mean(a->o, a->var, 0, false);
}

static rt_onnx_val put_knowledge_variance(answers *a) {
    moments(a);
    const rt_onnx_val d = rt_onnx_sub(a->o, a->mu, a->mean);
    return rt_onnx_mean(a->o, rt_onnx_mul(a->o, d, d), 0, false);
}

static rt_onnx_val put_variance(answers *a) {
    return rt_onnx_add(a->o, put_data_variance(a), put_knowledge_variance(a));
}

/* ---- decisions ---- */

static rt_onnx_val put_reject(answers *a);

/* {c : 1 - p_c <= q}, or by the probability of the classes down to c (eval/decision.c). */
static rt_onnx_val put_set(answers *a) {
    rt_onnx *o = a->o;
    const double q = RT_MIN(a->decision.quantile, 2.0);
    const rt_onnx_val p = probs(a);
    if (a->decision.conformal == RT_CONFORMAL_LAC)
        return rt_onnx_binary(o, "LessOrEqual", rt_onnx_affine(o, p, -1, 1), rt_onnx_scalar(o, q));
    const int64_t column[3] = {-1, a->k, 1}, row[3] = {-1, 1, a->k};
    const rt_onnx_val pc = rt_onnx_reshape(o, p, column, 3), pj = rt_onnx_reshape(o, p, row, 3);
    float *lower = rt_onnx_floats(o, a->k * a->k); /* 1 where j <= c */
    for (int64_t i = 0; lower != NULL && i < a->k * a->k; i++)
        lower[i] = i % a->k <= i / a->k;
    const rt_shape square = rt_shape2(a->k, a->k);
    const rt_onnx_attr to_float[] = {RT_ONNX_I("to", RT_ONNX_F32), {0}};
    const rt_onnx_val more = rt_onnx_binary(o, "Greater", pj, pc), same = rt_onnx_binary(o, "Equal", pj, pc);
    const rt_onnx_val ties = rt_onnx_mul(o, rt_onnx_node(o, "Cast", &same, 1, to_float),
                                         rt_onnx_tensor(o, "set.order", &square, lower));
    const rt_onnx_val counted = rt_onnx_add(o, rt_onnx_node(o, "Cast", &more, 1, to_float), ties);
    const rt_onnx_val down = rt_onnx_sum(o, rt_onnx_mul(o, counted, pj), -1, false);
    /* the top class is always in: no other is counted with it */
    const rt_onnx_val top =
        rt_onnx_binary(o, "Less", rt_onnx_sum(o, counted, -1, false), rt_onnx_scalar(o, 1.5));
    return rt_onnx_binary(o, "Or", top, rt_onnx_binary(o, "LessOrEqual", down, rt_onnx_scalar(o, q)));
}

/* centre -+ q sqrt(spread) of the target as the networks see it, taken back. */
static rt_onnx_val end_of_interval(answers *a, double sign) {
    const rt_warp *w = &rt_model_target(a->m)->warp;
    moments(a);
    const rt_onnx_val centre = rt_onnx_mean(a->o, a->said_mu, 0, true),
                      d = rt_onnx_sub(a->o, a->said_mu, centre);
    const rt_onnx_val spread =
        rt_onnx_mean(a->o, rt_onnx_add(a->o, a->said_var, rt_onnx_mul(a->o, d, d)), 0, true);
    const rt_onnx_val half =
        rt_onnx_affine(a->o, rt_onnx_unary(a->o, "Sqrt", spread), sign * a->decision.quantile, 0);
    const rt_onnx_val end = rt_onnx_gather(a->o, rt_onnx_add(a->o, centre, half), 0, 0);
    return w->kind == RT_WARP_NONE ? end : rt_onnx_warp_invert(a->o, w, end);
}

static rt_onnx_val put_lower(answers *a) {
    return end_of_interval(a, -1);
}

static rt_onnx_val put_upper(answers *a) {
    return end_of_interval(a, 1);
}

/* ---- the table: names as in retort.h ---- */

typedef struct answer {
    const char *name;
    int needs;
    rt_onnx_type type;
    int rank; /* of a row: 0; 1, classes; 2, members and classes */
    rt_onnx_val (*put)(answers *a);
} answer;

enum { CLASSES = 1, NUMBERS = 2, KNOWS = 4, SEVERAL = 8, DIRICHLET = 16, ONE = 32, REJECTS = 64, SETS = 128 };

static const answer k_answers[] = {
    {"probs", CLASSES, RT_ONNX_F32, 1, put_probs},
    {"label", CLASSES, RT_ONNX_I64, 0, put_label},
    {"confidence", CLASSES, RT_ONNX_F32, 0, put_confidence},
    {"entropy", CLASSES, RT_ONNX_F32, 0, put_entropy},
    {"expected_entropy", CLASSES | KNOWS, RT_ONNX_F32, 0, put_expected_entropy},
    {"mutual_information", CLASSES | KNOWS, RT_ONNX_F32, 0, put_mutual_information},
    {"epkl", CLASSES | KNOWS, RT_ONNX_F32, 0, put_epkl},
    {"alpha", CLASSES | DIRICHLET | ONE, RT_ONNX_F32, 1, put_alpha},
    {"member_probs", CLASSES | SEVERAL, RT_ONNX_F32, 2, put_member_probs},
    {"set", CLASSES | SETS, RT_ONNX_BOOL, 1, put_set},
    {"mean", NUMBERS, RT_ONNX_F32, 0, put_mean},
    {"variance", NUMBERS, RT_ONNX_F32, 0, put_variance},
    {"data_variance", NUMBERS, RT_ONNX_F32, 0, put_data_variance},
    {"knowledge_variance", NUMBERS | SEVERAL, RT_ONNX_F32, 0, put_knowledge_variance},
    {"lower", NUMBERS | SETS, RT_ONNX_F32, 0, put_lower},
    {"upper", NUMBERS | SETS, RT_ONNX_F32, 0, put_upper},
    {"reject", REJECTS, RT_ONNX_BOOL, 0, put_reject},
};

const char *rt_onnx_answer(int i) {
    return i < (int)RT_COUNT(k_answers) ? k_answers[i].name : NULL;
}

/* The answer that a measure of uncertainty is. */
static const struct {
    const char *measure;
    rt_onnx_val (*put)(answers *a);
} k_measures[] = {{"confidence", put_confidence},
                  {"entropy", put_entropy},
                  {"expected_entropy", put_expected_entropy},
                  {"mutual_information", put_mutual_information},
                  {"epkl", put_epkl},
                  {"total_variance", put_variance},
                  {"data_variance", put_data_variance},
                  {"knowledge_variance", put_knowledge_variance}};

static rt_onnx_val put_reject(answers *a) {
    const rt_measure_info *all;
    (void)rt_measure_list(&all);
    const char *name = all[a->decision.measure].name;
    for (size_t i = 0; i < RT_COUNT(k_measures); i++)
        if (strcmp(k_measures[i].measure, name) == 0)
            return rt_onnx_binary(a->o, all[a->decision.measure].certainty ? "Less" : "Greater",
                                  k_measures[i].put(a), a->threshold);
    rt_onnx_fail(a->o, rt_error_set(RT_E_UNSUPPORTED, __FILE__, __LINE__,
                                    "the model rejects by %s, which has no form in ONNX here", name));
    return NULL;
}

/* Why the model has no such answer; NULL: it has. */
static const char *why_not(const answer *t, const rt_reading *how, const rt_decision *d) {
    const bool numbers = how->kind == RT_OUTPUT_GAUSSIAN, dirichlet = how->kind == RT_OUTPUT_DIRICHLET;
    if ((t->needs & CLASSES) && numbers)
        return "the model is a regression";
    if ((t->needs & NUMBERS) && !numbers)
        return "the model is a classifier";
    if ((t->needs & DIRICHLET) && !dirichlet)
        return "the model has no Dirichlet outputs";
    if ((t->needs & ONE) && how->m > 1)
        return "the model has several members, each with concentrations of its own";
    if ((t->needs & KNOWS) && !rt_reading_knows(how))
        return "a single network has no knowledge uncertainty";
    if ((t->needs & SEVERAL) && how->m < 2)
        return "the model has one member";
    if ((t->needs & REJECTS) && d->measure < 0)
        return "the model has no reject rule ('retort calibrate --reject')";
    if ((t->needs & SETS) && d->conformal == RT_CONFORMAL_NONE)
        return "the model has no conformal rule ('retort calibrate --conformal')";
    return NULL;
}

static const answer *find_answer(const char *name, size_t len) {
    for (size_t i = 0; i < RT_COUNT(k_answers); i++)
        if (strlen(k_answers[i].name) == len && memcmp(k_answers[i].name, name, len) == 0)
            return &k_answers[i];
    return NULL;
}

static rt_status no_answer(const char *name, int len, const rt_reading *how, const rt_decision *d) {
    rt_str names;
    rt_str_init(&names);
    for (size_t i = 0; i < RT_COUNT(k_answers); i++)
        if (why_not(&k_answers[i], how, d) == NULL)
            rt_str_appendf(&names, "%s%s", names.len > 0 ? ", " : "", k_answers[i].name);
    const rt_status st =
        rt_error_set(RT_E_USAGE, __FILE__, __LINE__, "--outputs: \"%.*s\" is not known; this model has %s",
                     len, name, rt_str_text(&names));
    rt_str_deinit(&names);
    return st;
}

static void put_one(answers *a, const answer *t) {
    rt_shape row = rt_shape0();
    if (t->rank == 1)
        row = rt_shape1(a->k);
    else if (t->rank == 2)
        row = rt_shape2(a->members, a->k);
    rt_onnx_scope(a->o, t->name);
    rt_onnx_output(a->o, t->name, t->put(a), t->type, &row);
    rt_onnx_scope(a->o, NULL);
}

static rt_status put_chosen(answers *a, const rt_reading *how, const char *chosen, rt_str *list) {
    for (const char *p = chosen; *p != '\0';) {
        const size_t len = strcspn(p, ",");
        const answer *t = find_answer(p, len);
        if (t == NULL)
            return no_answer(p, (int)RT_MIN(len, (size_t)60), how, &a->decision);
        RT_FAIL_IF(why_not(t, how, &a->decision) != NULL, RT_E_UNSUPPORTED, "--outputs: there is no %s: %s",
                   t->name, why_not(t, how, &a->decision));
        put_one(a, t);
        rt_str_appendf(list, "%s%s", list->len > 0 ? "," : "", t->name);
        p += len + (p[len] == ',');
    }
    return RT_OK;
}

/* Temperature and threshold are inputs with defaults, so that they can be changed without the file. */
static void put_inputs(answers *a) {
    const rt_decision *d = &a->decision;
    if (a->kind != RT_OUTPUT_GAUSSIAN)
        a->temperature = rt_onnx_input_scalar(a->o, "temperature", d->temperature > 0 ? d->temperature : 1);
    if (d->of_members)
        a->z = rt_onnx_div(a->o, a->z, a->temperature);
    if (d->measure >= 0)
        a->threshold = rt_onnx_input_scalar(a->o, "threshold", rt_measure_shown(d->measure, d->threshold));
}

rt_status rt_onnx_answers(rt_onnx *o, const rt_model *m, rt_onnx_val z, const char *chosen, bool raw,
                          rt_str *list) {
    const rt_reading how = rt_model_reading(m);
    answers a = {.o = o,
                 .m = m,
                 .kind = how.kind,
                 .offset = how.offset,
                 .members = (int)how.m,
                 .k = how.k,
                 .z = z,
                 .decision = raw ? (rt_decision){.measure = -1} : *rt_model_decision(m)};
    put_inputs(&a);
    if (chosen != NULL)
        RT_TRY(put_chosen(&a, &how, chosen, list));
    for (size_t i = 0; chosen == NULL && i < RT_COUNT(k_answers); i++)
        if (why_not(&k_answers[i], &how, &a.decision) == NULL) {
            put_one(&a, &k_answers[i]);
            rt_str_appendf(list, "%s%s", list->len > 0 ? "," : "", k_answers[i].name);
        }
    RT_TRY(rt_str_status(list));
    return rt_onnx_status(o);
}
