/*
 * agreement.c - how faithful a student is to its teacher on the same rows, each taken as one predictor:
 *
 *     KL(teacher || student) = sum_c p_t ln(p_t / p_s),  |H_t - H_s|,  |MI_t - MI_s|,  equal top classes
 *
 * Regression: the KL of mixtures has no closed form, so each stands for the Gaussian with its mean and
 * variance, ln(s_s / s_t) + (s_t^2 + (m_t - m_s)^2) / (2 s_s^2) - 1/2; total variance takes the place of
 * entropy, knowledge variance that of mutual information.
 */
#include "eval/eval_int.h"
#include <math.h>

static double classes_kl(const rt_row *t, const rt_row *s) {
    double kl = 0;
    for (int64_t c = 0; c < s->how.k; c++)
        kl += t->p[c] * (t->ln_p[c] - s->ln_p[c]);
    return RT_MAX(kl, 0.0);
}

static double gaussian_kl(const rt_row *t, const rt_row *s) {
    const double d = t->mean - s->mean;
    return 0.5 * (log(s->total / t->total) + (t->total + d * d) / s->total - 1);
}

static rt_status compare(const rt_eval_input *s, const rt_eval_input *t, rt_agreement *a, bool *bad) {
    rt_row rs = {0}, rt = {0};
    rt_status st;
    RT_TRY_GOTO(rt_row_init(&rs, s->how));
    RT_TRY_GOTO(rt_row_init(&rt, t->how));
    for (int64_t i = 0; i < s->n && !*bad; i++) {
        *bad = !rt_row_read(&rs, rt_eval_row(s, i)) || !rt_row_read(&rt, rt_eval_row(t, i));
        if (*bad)
            break;
        a->kl += rt_eval_regression(s) ? gaussian_kl(&rt, &rs) : classes_kl(&rt, &rs);
        a->entropy_difference += fabs(rs.total - rt.total);
        a->mutual_information_difference += fabs(rs.knowledge - rt.knowledge);
        a->agreement += rs.top == rt.top;
    }
done:
    rt_row_deinit(&rs);
    rt_row_deinit(&rt);
    return st;
}

static void finish(double *value, const char **reason, int64_t n, const char *why) {
    *reason = why;
    *value = why ? NAN : *value / (double)n;
}

rt_status rt_eval_agreement(const rt_eval_input *s, const rt_eval_input *t, rt_agreement *out) {
    bool bad = false;
    *out = (rt_agreement){0};
    const bool regression = rt_eval_regression(s);
    RT_FAIL_IF(s->n != t->n || regression != rt_eval_regression(t) || s->how.k != t->how.k, RT_E_INPUT,
               "agreement: the student has %lld rows and %lld outputs, the teacher %lld and %lld",
               (long long)s->n, (long long)s->how.k, (long long)t->n, (long long)t->how.k);
    RT_TRY(rt_eval_check(s));
    RT_TRY(rt_eval_check(t));
    RT_TRY(compare(s, t, out, &bad));
    const char *why = bad ? rt_reason_bad : NULL;
    const char *blind = !rt_reading_knows(&s->how)   ? "the student has no knowledge uncertainty"
                        : !rt_reading_knows(&t->how) ? "the teacher has no knowledge uncertainty"
                                                     : why;
    finish(&out->kl, &out->kl_reason, s->n, why);
    finish(&out->entropy_difference, &out->entropy_difference_reason, s->n, why);
    finish(&out->mutual_information_difference, &out->mutual_information_difference_reason, s->n, blind);
    finish(&out->agreement, &out->agreement_reason, s->n, regression ? "for classification only" : why);
    return RT_OK;
}
