/*
 * member_mix.c - members of a BatchEnsemble as plain networks, and mixtures of them in weight space: with
 * weights v_m that add up to V,
 *
 *     W = theta o (1/V) sum_m v_m s_m r_m^T          b = (1/V) sum_m v_m b_m
 *
 * where b_m is the member's own bias, or the shared one times s_m. All v_m alike is the mean that LatentBE
 * collapses to; one of them 1 and the others 0 is that member; (1 - a, a) is a point on the line between two.
 */
#include "distill/distill_int.h"
#include <string.h>

typedef struct mix {
    const rt_student *s;
    const double *weight; /* NULL: all 1 */
    double all;
} mix;

static double weight_of(const mix *x, int m) {
    return x->weight ? x->weight[m] : 1;
}

/* Values of a factor of the layer that the parameter belongs to, or NULL. */
static const float *factor(const rt_params *p, const float *block, const char *name, const char *field) {
    const rt_param *line = rt_params_beside(p, name, field);
    return line != NULL ? block + line->offset : NULL;
}

/* The mean of s_mo r_mi for one pair of channels. */
static double pair_mean(const mix *x, const float *sv, const float *rv, int64_t o, int64_t i, int64_t out,
                        int64_t in) {
    double both = 0, ms = 0, mr = 0;
    for (int m = 0; m < x->s->members; m++) {
        const double w = weight_of(x, m);
        both += w * ((double)sv[m * out + o] * (double)rv[m * in + i]);
        ms += w * (double)sv[m * out + o];
        mr += w * (double)rv[m * in + i];
    }
    return x->s->config.product_of_means && !x->weight ? ms * mr / (x->all * x->all) : both / x->all;
}

static void mix_weight(const mix *x, const rt_param *w, const float *src, const float *sv, const float *rv,
                       float *dst) {
    const int64_t out = w->shape.d[0], in = w->shape.d[1], window = w->count / (out * in);
    for (int64_t o = 0; o < out; o++)
        for (int64_t i = 0; i < in; i++) {
            const double f = pair_mean(x, sv, rv, o, i, out, in);
            for (int64_t k = 0; k < window; k++)
                dst[(o * in + i) * window + k] = (float)((double)src[(o * in + i) * window + k] * f);
        }
}

static void mix_rows(const mix *x, const float *src, int64_t n, float *dst) {
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int m = 0; m < x->s->members; m++)
            sum += weight_of(x, m) * (double)src[m * n + i];
        dst[i] = (float)(sum / x->all);
    }
}

bool rt_student_mixes(const rt_student *s) {
    return s->kind->mixes && s->members > 1;
}

rt_status rt_student_mix(const rt_student *s, const rt_params *params, const float *block,
                         const double *weight, const rt_params *to, float *dst) {
    mix x = {.s = s, .weight = weight, .all = 0};
    for (int m = 0; m < s->members; m++)
        x.all += weight_of(&x, m);
    for (int slot = 0; slot < rt_params_count(to); slot++) {
        const rt_param *t = rt_params_get(to, slot);
        const int from = rt_params_find(params, t->name);
        RT_FAIL_IF(from < 0, RT_E_INPUT, "collapse: the student has no parameter %s", t->name);
        const rt_param *f = rt_params_get(params, from);
        const float *src = block + f->offset;
        float *out = dst + t->offset;
        const float *sv = factor(params, block, t->name, "s"), *rv = factor(params, block, t->name, "r");
        if (t->role == RT_ROLE_WEIGHT && sv != NULL && rv != NULL) {
            mix_weight(&x, t, src, sv, rv, out);
        } else if (t->role == RT_ROLE_BIAS && sv != NULL && f->count == t->count) { /* shared */
            mix_rows(&x, sv, t->count, out);
            for (int64_t i = 0; i < t->count; i++)
                out[i] *= src[i];
        } else if (f->count == t->count) {
            memcpy(out, src, (size_t)t->count * sizeof *out);
        } else { /* one set per member: biases, BN */
            mix_rows(&x, src, t->count, out);
        }
    }
    return RT_OK;
}
