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
 */
#include "base/alloc.h"
#include "base/size.h"
#include "eval/eval_int.h"
#include <math.h>

static const double LN_TAU_MAX = 4;
enum { STEPS_MAX = 100 };

typedef struct slope {
    double first, second;
} slope;

/* l (n, k), the label's first subtracted: l_y = 0. */
static slope slope_at(const double *l, int64_t n, int64_t k, double b) {
    slope s = {0, 0};
    for (int64_t i = 0; i < n; i++) {
        const double *a = l + i * k;
        double top = a[0], sum = 0, mean = 0, square = 0;
        for (int64_t c = 1; c < k; c++)
            top = a[c] > top ? a[c] : top;
        for (int64_t c = 0; c < k; c++) {
            const double q = exp(b * (a[c] - top));
            sum += q;
            mean += q * a[c];
            square += q * a[c] * a[c];
        }
        mean /= sum;
        s.first += mean;
        s.second += square / sum - mean * mean;
    }
    s.first /= (double)n;
    s.second /= (double)n;
    return s;
}

static double solve(const double *l, int64_t n, int64_t k) {
    double lo = exp(-LN_TAU_MAX), hi = exp(LN_TAU_MAX), b = 1;
    const double at_lo = slope_at(l, n, k, lo).first, at_hi = slope_at(l, n, k, hi).first;
    if (at_lo >= 0)
        return at_hi > 0 ? 1 / lo : 1;
    if (at_hi <= 0)
        return 1 / hi;
    for (int step = 0; step < STEPS_MAX; step++) {
        const slope s = slope_at(l, n, k, b);
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

static rt_status collect(const rt_eval_input *in, double *l, bool *bad) {
    rt_row r;
    RT_TRY(rt_row_init(&r, in->how));
    for (int64_t i = 0; i < in->n && !*bad; i++) {
        *bad = !rt_row_read(&r, rt_eval_row(in, i));
        for (int64_t c = 0; c < in->how.k && !*bad; c++)
            l[i * in->how.k + c] = r.ln_p[c] - r.ln_p[in->label[i]];
    }
    rt_row_deinit(&r);
    return RT_OK;
}

rt_status rt_eval_temperature(const rt_eval_input *valid, double *tau, const char **reason) {
    double *l = NULL;
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
    RT_FAIL_IF(!rt_size_mul((size_t)valid->n, (size_t)valid->how.k, &all), RT_E_MEMORY,
               "temperature: too many predictions to address");
    RT_TRY_GOTO(rt_calloc(&l, all, sizeof *l));
    RT_TRY_GOTO(collect(valid, l, &bad));
    if (bad)
        *reason = rt_reason_bad;
    else
        *tau = solve(l, valid->n, valid->how.k);
done:
    rt_free(l);
    return st;
}
