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
 * A target that the network sees through a monotone function t needs these four functions and no others: y
 * becomes t(y), the NLL gains -ln t'(y), F stays what it is.
 */
#include "eval/eval_int.h"
#include <math.h>

static const double LN_2PI = 1.8378770664093454835606594728112;

bool rt_row_read_gaussians(rt_row *r) {
    const float *y = r->y; // (m, 2)
    const int64_t members = r->how.m;
    const double m = (double)members;
    r->mean = r->data = r->knowledge = 0;
    for (int64_t j = 0; j < members; j++) {
        if (y[2 * j + 1] <= 0)
            return false;
        r->mean += (double)y[2 * j] / m;
        r->data += (double)y[2 * j + 1] / m;
    }
    for (int64_t j = 0; j < members; j++)
        r->knowledge += ((double)y[2 * j] - r->mean) * ((double)y[2 * j] - r->mean) / m;
    r->total = r->data + r->knowledge;
    return true;
}

static double log_normal(const float *y, double target) {
    const double d = target - (double)y[0], var = (double)y[1];
    return -0.5 * (LN_2PI + log(var) + d * d / var);
}

double rt_row_gaussian_nll(const rt_row *r, double target) {
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < r->how.m; j++)
        top = fmax(top, log_normal(r->y + 2 * j, target));
    for (int64_t j = 0; j < r->how.m; j++)
        sum += exp(log_normal(r->y + 2 * j, target) - top);
    return -(top + log(sum / (double)r->how.m));
}

double rt_row_cdf(const rt_row *r, double target) {
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
