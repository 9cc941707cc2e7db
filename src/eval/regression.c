/*
 * regression.c - a mixture of Gaussians, (1/M) sum_m N(mu_m, var_m), in the target's own units.
 *
 *     mean = mean_m mu_m
 *     variance: total = data + knowledge,  data = mean_m var_m,  knowledge = mean_m (mu_m - mean)^2
 *     NLL  = -ln (1/M) sum_m N(y; mu_m, var_m)      by log-sum-exp: far targets underflow otherwise
 *     F(y) = (1/M) sum_m Phi((y - mu_m) / sqrt(var_m))
 *
 * The central interval of level l holds the mixture's quantiles (1 - l)/2 to (1 + l)/2, so y is inside it
 * when |F(y) - 1/2| <= l/2: no quantile has to be searched. A calibrated model has a share l of its targets
 * inside.
 *
 * Members may see the target through a rising function, u = t(y) (warp.c). Their Gaussians are then of u: mu_m and
 * var_m above become the mean and variance of t^-1(u), the NLL gains -ln t'(y), F(y) is that of u at t(y), and central
 * intervals are those of u, taken back.
 */
#include "eval/eval_int.h"
#include <math.h>

static const double LN_2PI = 1.8378770664093454835606594728112;

/* Mean and variance of a mixture of members (mean, variance) by its parts. */
static void mix(rt_row *r, double (*member)(const rt_row *r, int64_t j, double *variance)) {
    const int64_t members = r->how.m;
    const double m = (double)members;
    double variance;
    r->mean = r->data = r->knowledge = 0;
    for (int64_t j = 0; j < members; j++) {
        r->mean += member(r, j, &variance) / m;
        r->data += variance / m;
    }
    for (int64_t j = 0; j < members; j++) {
        const double d = member(r, j, &variance) - r->mean;
        r->knowledge += d * d / m;
    }
    r->total = r->data + r->knowledge;
}

static double as_said(const rt_row *r, int64_t j, double *variance) {
    *variance = (double)r->y[2 * j + 1];
    return (double)r->y[2 * j];
}

static double taken_back(const rt_row *r, int64_t j, double *variance) {
    double mean;
    rt_warp_moments(r->how.warp, (double)r->y[2 * j], (double)r->y[2 * j + 1], &mean, variance);
    return mean;
}

bool rt_row_read_gaussians(rt_row *r) {
    for (int64_t j = 0; j < r->how.m; j++)
        if (r->y[2 * j + 1] <= 0)
            return false;
    mix(r, as_said);
    r->centre = r->mean;
    r->spread = r->total;
    if (r->how.warp)
        mix(r, taken_back);
    return true;
}

static double log_normal(double mean, double variance, double target) {
    const double d = target - mean;
    return -0.5 * (LN_2PI + log(variance) + d * d / variance);
}

static double log_member(const rt_row *r, int64_t j, double target) {
    return log_normal((double)r->y[2 * j], (double)r->y[2 * j + 1], target);
}

double rt_row_gaussian_nll(const rt_row *r, double y) {
    const double target = r->how.warp ? rt_warp_apply(r->how.warp, y) : y;
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < r->how.m; j++)
        top = fmax(top, log_member(r, j, target));
    for (int64_t j = 0; j < r->how.m; j++)
        sum += exp(log_member(r, j, target) - top);
    const double nll = -(top + log(sum / (double)r->how.m));
    return r->how.warp ? nll - rt_warp_log_slope(r->how.warp, y) : nll;
}

double rt_gaussian_nll(double mean, double variance, const rt_warp *warp, double y) {
    return -log_normal(mean, variance, rt_warp_apply(warp, y)) - rt_warp_log_slope(warp, y);
}

double rt_row_cdf(const rt_row *r, double y) {
    const double target = r->how.warp ? rt_warp_apply(r->how.warp, y) : y;
    double sum = 0;
    for (int64_t j = 0; j < r->how.m; j++)
        sum += 0.5 * erfc(((double)r->y[2 * j] - target) / sqrt(2 * (double)r->y[2 * j + 1]));
    return sum / (double)r->how.m;
}

const double rt_interval_levels[RT_INTERVAL_LEVELS] = {.1, .2, .3, .4, .5, .6, .7, .8, .9, .95};

rt_status rt_eval_coverage(const rt_eval_input *in, const double *level, int levels, double *coverage) {
    rt_row row = {.how = in->how};
    RT_FAIL_IF(!rt_eval_regression(in) || !in->target, RT_E_USAGE,
               "coverage needs a regression with targets");
    for (int l = 0; l < levels; l++)
        coverage[l] = 0;
    for (int64_t i = 0; i < in->n; i++) {
        const bool good = rt_row_read(&row, rt_eval_row(in, i));
        const double far = good ? 2 * fabs(rt_row_cdf(&row, (double)in->target[i]) - 0.5) : NAN;
        for (int l = 0; l < levels; l++)
            coverage[l] += isnan(far) ? NAN : far <= level[l];
    }
    for (int l = 0; l < levels; l++)
        coverage[l] /= (double)in->n;
    return RT_OK;
}
