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
 */
#include "eval/eval_int.h"
#include <math.h>

static const double LN_2PI = 1.8378770664093454835606594728112;

bool rt_gauss_row_read(rt_gauss_row *r, const rt_eval_input *in, int64_t i) {
    const float *mu = in->mu + i * in->m, *var = in->var + i * in->m; // (m)
    const double m = (double)in->m;
    *r = (rt_gauss_row){0};
    for (int64_t j = 0; j < in->m; j++) {
        if (!isfinite(mu[j]) || !isfinite(var[j]) || var[j] <= 0)
            return false;
        r->mean += (double)mu[j] / m;
        r->data += (double)var[j] / m;
    }
    for (int64_t j = 0; j < in->m; j++)
        r->knowledge += ((double)mu[j] - r->mean) * ((double)mu[j] - r->mean) / m;
    r->total = r->data + r->knowledge;
    return true;
}

static double log_normal(double mu, double var, double y) {
    double d = y - mu;
    return -0.5 * (LN_2PI + log(var) + d * d / var);
}

double rt_gauss_row_nll(const rt_eval_input *in, int64_t i) {
    const float *mu = in->mu + i * in->m, *var = in->var + i * in->m; // (m)
    const double y = (double)in->target[i];
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < in->m; j++)
        top = fmax(top, log_normal((double)mu[j], (double)var[j], y));
    for (int64_t j = 0; j < in->m; j++)
        sum += exp(log_normal((double)mu[j], (double)var[j], y) - top);
    return -(top + log(sum / (double)in->m));
}

double rt_gauss_row_cdf(const rt_eval_input *in, int64_t i) {
    const float *mu = in->mu + i * in->m, *var = in->var + i * in->m; // (m)
    double sum = 0;
    for (int64_t j = 0; j < in->m; j++)
        sum += 0.5 * erfc(((double)mu[j] - (double)in->target[i]) / sqrt(2 * (double)var[j]));
    return sum / (double)in->m;
}

const double rt_interval_levels[RT_INTERVAL_LEVELS] = {.1, .2, .3, .4, .5, .6, .7, .8, .9, .95};

rt_status rt_eval_coverage(const rt_eval_input *in, const double *level, int levels, double *coverage) {
    rt_gauss_row row;
    RT_FAIL_IF(!in->regression || !in->target, RT_E_USAGE, "coverage needs a regression with targets");
    for (int l = 0; l < levels; l++)
        coverage[l] = 0;
    for (int64_t i = 0; i < in->n; i++) {
        const bool good = rt_gauss_row_read(&row, in, i);
        const double far = good ? 2 * fabs(rt_gauss_row_cdf(in, i) - 0.5) : NAN;
        for (int l = 0; l < levels; l++)
            coverage[l] += isnan(far) ? NAN : far <= level[l];
    }
    for (int l = 0; l < levels; l++)
        coverage[l] /= (double)in->n;
    return RT_OK;
}
