/*
 * temperature.c - the temperature that calibrates a classifier (Guo et al. 2017), for the mean prediction p
 * of an ensemble: with b = 1/tau it minimises
 *
 *     f(b) = mean of  ln sum_c e^(b l_c) - b l_y,      l = ln p
 *     f'   = mean of  E_q[l] - l_y,                    q = softmax(b l)
 *     f''  = mean of  Var_q[l]  >= 0
 *
 * f is convex, so f' has one zero: Newton's method, and a bisection in ln b whenever it leaves the bracket or
 * is slow. Where all rows are right f falls for ever; tau then ends at the border e^-4, and at e^4 where
 * probabilities are worse than none. If f is flat (p uniform everywhere) tau is 1.
 *
 * The same for each member's logits before the mean, where q_m = softmax(b l_m), w_m = q_my / sum_j q_jy:
 *
 *     f(b) = mean of  -ln (1/M) sum_m q_my
 *     f'   = mean of  E_w[g],  g_m = E_qm[l] - l_my
 *     f''  = mean of  E_w[Var_qm[l]] - Var_w[g]
 *
 * which for one member is the above. Of several f need not be convex: a look at 33 points comes first.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "eval/eval_int.h"
#include <math.h>

static const double LN_TAU_MAX = 4;
enum { STEPS_MAX = 100, LOOKS = 16 }; /* on either side of 1 */

typedef struct logits {
    double *l; /* (n, m, k), the label's subtracted: l_y = 0 */
    int64_t n, m, k;
} logits;

typedef struct slope {
    double value, first, second;
} slope;

/* Mean and variance of l under softmax(b l) in first and second, -ln of the label's probability in value. */
static slope of_member(const double *l, int64_t k, double b) {
    double top = l[0], sum = 0, mean = 0, square = 0;
    for (int64_t c = 1; c < k; c++)
        top = l[c] > top ? l[c] : top;
    for (int64_t c = 0; c < k; c++) {
        const double q = exp(b * (l[c] - top));
        sum += q;
        mean += q * l[c];
        square += q * l[c] * l[c];
    }
    mean /= sum;
    return (slope){b * top + log(sum), mean, square / sum - mean * mean};
}

/* Weights are relative to the largest so far. */
static slope of_row(const double *l, int64_t m, int64_t k, double b) {
    double least = INFINITY, all = 0, mean = 0, own = 0, between = 0;
    for (int64_t j = 0; j < m; j++) {
        const slope s = of_member(l + j * k, k, b);
        const double lower = fmin(least, s.value), fade = exp(lower - least), w = exp(lower - s.value);
        const double far = s.first - mean;
        least = lower;
        all = all * fade + w;
        mean += far * w / all;
        own = own * fade + w * s.second;
        between = between * fade + w * far * (s.first - mean);
    }
    return (slope){least - log(all / (double)m), mean, (own - between) / all};
}

static slope slope_at(const logits *x, double b) {
    slope s = {0, 0, 0};
    for (int64_t i = 0; i < x->n; i++) {
        const slope r = of_row(x->l + i * x->m * x->k, x->m, x->k, b);
        s.value += r.value;
        s.first += r.first;
        s.second += r.second;
    }
    s.first /= (double)x->n;
    s.second /= (double)x->n;
    return s;
}

/* The best of many points, and its neighbours. */
static void look(const logits *x, double *lo, double *b, double *hi) {
    const double step = LN_TAU_MAX / LOOKS;
    double least = INFINITY;
    int best = 0;
    for (int i = -LOOKS; i <= LOOKS; i++) {
        const double value = slope_at(x, exp(i * step)).value;
        best = value <= least ? i : best;
        least = fmin(value, least);
    }
    *lo = exp(RT_MAX(best - 1, -LOOKS) * step);
    *b = exp(best * step);
    *hi = exp(RT_MIN(best + 1, +LOOKS) * step);
}

static double solve(const logits *x) {
    double lo = exp(-LN_TAU_MAX), hi = exp(LN_TAU_MAX), b = 1;
    if (slope_at(x, lo).first >= 0 && slope_at(x, hi).first <= 0)
        return 1;
    if (x->m > 1)
        look(x, &lo, &b, &hi);
    if (slope_at(x, hi).first <= 0)
        return 1 / hi;
    if (slope_at(x, lo).first >= 0)
        return 1 / lo;
    for (int step = 0; step < STEPS_MAX; step++) {
        const slope s = slope_at(x, b);
        if (s.first == 0)
            break;
        *(s.first < 0 ? &lo : &hi) = b;
        double next = s.second > 0 ? b - s.first / s.second : 0;
        if (!(next > lo && next < hi))
            next = sqrt(lo * hi);
        const bool done = fabs(next - b) <= 1e-12 * b || hi - lo <= 1e-14 * hi;
        b = next;
        if (done)
            break;
    }
    return 1 / b;
}

static rt_status collect(const rt_eval_input *in, const logits *x, bool *bad) {
    const int64_t k = x->k;
    rt_row r;
    RT_TRY(rt_row_init(&r, in->how));
    const double *from = x->m > 1 ? r.member_ln : r.ln_p;
    for (int64_t i = 0; i < x->n && !*bad; i++) {
        *bad = !rt_row_read(&r, rt_eval_row(in, i));
        for (int64_t c = 0; c < x->m * k && !*bad; c++)
            x->l[i * x->m * k + c] = from[c] - from[c / k * k + in->label[i]];
    }
    rt_row_deinit(&r);
    return RT_OK;
}

/* m: of the members, or 1: of their mean. */
static rt_status fit(const rt_eval_input *valid, int64_t m, double *tau, const char **reason) {
    logits x = {.n = valid->n, .m = m, .k = valid->how.k};
    bool bad = false;
    rt_status st;
    size_t all;
    *tau = NAN;
    *reason = rt_eval_regression(valid) ? "for classification only"
              : valid->n < 1            ? "no validation rows"
              : !valid->label           ? "no labels"
                                        : NULL;
    if (*reason)
        return RT_OK;
    RT_TRY(rt_eval_check(valid));
    RT_FAIL_IF(!rt_size_mul((size_t)valid->n, (size_t)(m * x.k), &all), RT_E_MEMORY,
               "temperature: too many predictions to address");
    RT_TRY_GOTO(rt_calloc(&x.l, all, sizeof *x.l));
    RT_TRY_GOTO(collect(valid, &x, &bad));
    if (bad)
        *reason = rt_reason_bad;
    else
        *tau = solve(&x);
done:
    rt_free(x.l);
    return st;
}

rt_status rt_eval_temperature(const rt_eval_input *valid, double *tau, const char **reason) {
    return fit(valid, 1, tau, reason);
}

rt_status rt_eval_member_temperature(const rt_eval_input *valid, double *tau, const char **reason) {
    RT_FAIL_IF(valid->how.kind == RT_OUTPUT_DIRICHLET, RT_E_USAGE, "temperature of members: of logits only");
    return fit(valid, valid->how.m, tau, reason);
}
