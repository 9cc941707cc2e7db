/*
 * decision.c - decisions about a row, and the numbers behind them.
 *
 * Conformal prediction: with scores s_1..s_n of rows the model has not seen, and q the ceil((n + 1)(1 - alpha))-th
 * smallest, a new row drawn like them has s <= q with probability at least 1 - alpha, whatever the model. So
 *
 *     LAC        s = 1 - p_y                                 {c : 1 - p_c <= q}
 *     APS        s = sum of p_c over classes no less likely  {c : that sum down to c <= q}, and the top class
 *     INTERVAL   s = |y - mean| / sqrt(total variance)       mean -+ q sqrt(total variance)
 *
 * An INTERVAL of a target that the members see transformed (warp.c) is that of the transformed one, taken back.
 * Ties in APS go to the lower class, as the top class does. Shift breaks the promise: the new rows are then not
 * drawn like the old ones.
 */
#include "eval/decision.h"
#include "eval/eval_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const k_names[] = {"none", "lac", "aps", "interval"};

const char *rt_conformal_name(rt_conformal c) {
    return k_names[c];
}

rt_conformal rt_conformal_find(const char *name) {
    for (int i = 1; i < (int)RT_COUNT(k_names); i++)
        if (strcmp(k_names[i], name) == 0)
            return (rt_conformal)i;
    return RT_CONFORMAL_NONE;
}

/* ---- deciding ---- */

bool rt_decision_rejects(const rt_decision *d, const rt_row *r) {
    return d->measure >= 0 && rt_measure_of(d->measure, r) > d->threshold;
}

/* Probability of the classes that are no less likely than c, c included. */
static double down_to(const rt_row *r, int64_t c) {
    double sum = 0;
    for (int64_t j = 0; j < r->how.k; j++)
        if (r->p[j] > r->p[c] || (r->p[j] == r->p[c] && j <= c))
            sum += r->p[j];
    return sum;
}

bool rt_decision_contains(const rt_decision *d, const rt_row *r, int64_t c) {
    if (d->conformal == RT_CONFORMAL_APS)
        return c == r->top || down_to(r, c) <= d->quantile;
    return rt_conformal_score(d->conformal, r, (double)c) <= d->quantile;
}

void rt_decision_interval(const rt_decision *d, const rt_row *r, double *lower, double *upper) {
    const double half = d->quantile * sqrt(r->spread);
    *lower = r->centre - half;
    *upper = r->centre + half;
    if (r->how.warp) {
        *lower = rt_warp_invert(r->how.warp, *lower);
        *upper = rt_warp_invert(r->how.warp, *upper);
    }
}

/* ---- conformal scores ---- */

double rt_conformal_score(rt_conformal c, const rt_row *r, double truth) {
    const int64_t y = (int64_t)truth;
    if (c == RT_CONFORMAL_INTERVAL)
        return fabs((r->how.warp ? rt_warp_apply(r->how.warp, truth) : truth) - r->centre) / sqrt(r->spread);
    if (c == RT_CONFORMAL_APS)
        return down_to(r, y);
    return y == r->top ? r->rest : 1 - r->p[y];
}

int rt_by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The ceil((n + 1) share)-th smallest. */
static double order_statistic(double *v, int64_t n, double share) {
    /* the product can be a hair above an integer that it is meant to be */
    const int64_t rank = (int64_t)ceil((double)(n + 1) * share - 1e-9);
    if (rank > n)
        return INFINITY;
    qsort(v, (size_t)n, sizeof *v, rt_by_size);
    return v[RT_MAX(rank, (int64_t)1) - 1];
}

double rt_conformal_quantile(double *score, int64_t n, double alpha) {
    return order_statistic(score, n, 1 - alpha);
}

double rt_reject_by_coverage(double *measure, int64_t n, double coverage) {
    return order_statistic(measure, n, coverage);
}

/* ---- binomial bounds ---- */

/* ln of C(n, k) p^k (1 - p)^(n - k) */
static double ln_binomial(int64_t k, int64_t n, double p) {
    int sign;
    const double ln_choose = lgamma_r((double)n + 1, &sign) - lgamma_r((double)k + 1, &sign) -
                             lgamma_r((double)(n - k) + 1, &sign);
    return ln_choose + (double)k * log(p) + (double)(n - k) * log1p(-p);
}

/* P(X <= k) of n draws, 0 < p < 1. */
static double at_most(int64_t k, int64_t n, double p) {
    double sum = 0;
    for (int64_t i = 0; i <= k; i++)
        sum += exp(ln_binomial(i, n, p));
    return RT_MIN(sum, 1.0);
}

double rt_binomial_upper(int64_t k, int64_t n, double delta) {
    if (k >= n)
        return 1;
    double lo = (double)k / (double)n, hi = 1;
    for (int i = 0; i < 60; i++) { /* P(X <= k) falls with p; the bound is where it is delta */
        const double mid = 0.5 * (lo + hi);
        *(at_most(k, n, mid) > delta ? &lo : &hi) = mid;
    }
    return hi;
}

double rt_binomial_lower(int64_t k, int64_t n, double delta) {
    return k <= 0 ? 0 : 1 - rt_binomial_upper(n - k, n, delta);
}

/* ---- a threshold by risk ---- */

static void sort_rows(const double *measure, int64_t *order, int64_t n) {
    /* heap sort: stable order of equal measures does not matter, they are never cut apart */
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t end = n, start = n / 2; end > 1;) {
        if (start > 0) {
            start--;
        } else {
            end--;
            const int64_t t = order[0];
            order[0] = order[end];
            order[end] = t;
        }
        for (int64_t root = start, child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && measure[order[child + 1]] > measure[order[child]])
                child++;
            if (measure[order[root]] >= measure[order[child]])
                break;
            const int64_t t = order[root];
            order[root] = order[child];
            order[child] = t;
        }
    }
}

bool rt_reject_by_risk(const double *measure, const uint8_t *wrong, int64_t n, double risk, double delta,
                       int64_t *order, double *threshold) {
    bool found = false;
    int steps = 1;
    while ((int64_t)1 << steps <= n)
        steps++;
    sort_rows(measure, order, n);
    int64_t lo = 0, hi = n; /* lo rows pass (or none), more than hi do not */
    for (int s = 0; s < steps && lo < hi; s++) {
        int64_t take = (lo + hi + 1) / 2, errors = 0;
        while (take < n && measure[order[take]] == measure[order[take - 1]])
            take++; /* equal measures are answered together */
        for (int64_t i = 0; i < take; i++)
            errors += wrong[order[i]];
        if (rt_binomial_upper(errors, take, delta / steps) <= risk) {
            *threshold = measure[order[take - 1]];
            found = true;
            lo = take;
        } else {
            hi = (lo + hi + 1) / 2 - 1;
        }
    }
    return found;
}
