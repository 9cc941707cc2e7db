/*
 * student_latent_be.c - LatentBE (Nam et al. 2022): a BatchEnsemble that is trained to be averaged.
 *
 * r = s = 1 at the start, and decay pulls them back to one. The loss is a mean over members, so the shared
 * weights get the mean gradient (1/M) sum_m; the factors get their member's full gradient, i.e. M times what
 * the mean gives them. After training the members collapse to
 *
 *     W = theta o (1/M) sum_m s_m r_m^T          b = (1/M) sum_m b_m, the effective member biases: b o mean_m
 * s_m
 *
 * the exact mean of member weights (Eq. 5), or, with product_of_means, theta o (mean s)(mean r)^T as the
 * authors' code evaluates. BN is shared already.
 */
#include "distill/distill_int.h"
#include <string.h>

static void latent_prepare(const rt_student *s, rt_build *b) {
    b->members = s->members;
    b->fast_init = RT_INIT_ONE;
    b->member_bn = s->config.member_bn;
    b->shared_bias = true;
}

static rt_val latent_forward(const rt_student *s, rt_build *b, rt_val x) {
    return rt_net_forward(s->net, b, s->members > 1 ? rt_tile_members(b->g, x, s->members) : x);
}

static rt_val latent_member(const rt_student *s, rt_build *b, rt_val x, rt_val index) {
    b->pick = index;
    return rt_net_forward(s->net, b, x);
}

static rt_rule latent_rule(const rt_student *s, rt_role role) {
    if (role == RT_ROLE_FAST)
        return (rt_rule){.grad_scale = s->members, .lr_scale = 1, .decay = -1, .centre = 1};
    return (rt_rule){.grad_scale = 1, .lr_scale = 1, .decay = -1};
}

/* Values of a factor of the layer that the parameter belongs to, or NULL. */
static const float *factor(const rt_params *p, const float *block, const char *name, const char *field) {
    const rt_param *line = rt_params_beside(p, name, field);
    return line != NULL ? block + line->offset : NULL;
}

/* mean_m s_mo r_mi for one pair of channels. */
static double pair_mean(const rt_student *s, const float *sv, const float *rv, int64_t o, int64_t i,
                        int64_t out, int64_t in) {
    double both = 0, ms = 0, mr = 0;
    for (int m = 0; m < s->members; m++) {
        both += (double)sv[m * out + o] * (double)rv[m * in + i];
        ms += (double)sv[m * out + o];
        mr += (double)rv[m * in + i];
    }
    const double n = s->members;
    return s->config.product_of_means ? ms * mr / (n * n) : both / n;
}

static void merge_weight(const rt_student *s, const rt_param *w, const float *src, const float *sv,
                         const float *rv, float *dst) {
    const int64_t out = w->shape.d[0], in = w->shape.d[1], window = w->count / (out * in);
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++) {
            const double f = pair_mean(s, sv, rv, o, i, out, in);
            for (int64_t k = 0; k < window; k++)
                dst[(o * in + i) * window + k] = (float)((double)src[(o * in + i) * window + k] * f);
        }
}

static void merge_rows(const rt_student *s, const float *src, int64_t n, float *dst) {
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int m = 0; m < s->members; m++)
            sum += (double)src[m * n + i];
        dst[i] = (float)(sum / s->members);
    }
}

static rt_status latent_collapse(const rt_student *s, const rt_params *params, const float *block,
                                 const rt_params *to, float *dst) {
    for (int slot = 0; slot < rt_params_count(to); slot++) {
        const rt_param *t = rt_params_get(to, slot);
        const int from = rt_params_find(params, t->name);
        RT_FAIL_IF(from < 0, RT_E_INPUT, "collapse: the student has no parameter %s", t->name);
        const rt_param *f = rt_params_get(params, from);
        const float *src = block + f->offset;
        float *out = dst + t->offset;
        const float *sv = factor(params, block, t->name, "s"), *rv = factor(params, block, t->name, "r");
        if (t->role == RT_ROLE_WEIGHT && sv != NULL && rv != NULL) {
            merge_weight(s, t, src, sv, rv, out);
        } else if (t->role == RT_ROLE_BIAS && sv != NULL) {
            merge_rows(s, sv, t->count, out);
            for (int64_t i = 0; i < t->count; i++)
                out[i] *= src[i];
        } else if (f->count == t->count) {
            memcpy(out, src, (size_t)t->count * sizeof *out);
        } else { /* one set per member: BN of each */
            merge_rows(s, src, t->count, out);
        }
    }
    return RT_OK;
}

const rt_student_kind rt_student_latent_be = {
    .name = "latent-be",
    .form = "latent-be:M",
    .meaning = "batch-ensemble near r = s = 1 that collapses to one network",
    .many = true,
    .prepare = latent_prepare,
    .forward = latent_forward,
    .member = latent_member,
    .rule = latent_rule,
    .collapse = latent_collapse};
