/*
 * regression.c - scores of a mixture of Gaussians, (1/M) sum_m N(mu_m, var_m), in the target's own units.
 *
 *     RMSE = sqrt((1/n) sum (mean_m mu_m - y)^2)
 *     NLL  = (1/n) sum -ln (1/M) sum_m N(y; mu_m, var_m)        by log-sum-exp: far targets underflow
 * otherwise
 */
#include "eval/eval_int.h"
#include <math.h>

static const double LN_2PI = 1.8378770664093454835606594728112;

double rt_eval_rmse(const float *mu, const float *y, int64_t n, int64_t m) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double mean = 0;
        for (int64_t j = 0; j < m; j++)
            mean += (double)mu[i * m + j];
        double d = mean / (double)m - (double)y[i];
        sum += d * d;
    }
    return sqrt(sum / (double)n);
}

static double log_normal(double mu, double var, double y) {
    double d = y - mu;
    return -0.5 * (LN_2PI + log(var) + d * d / var);
}

double rt_eval_gaussian_nll(const float *mu, const float *var, const float *y, int64_t n, int64_t m) {
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *a = mu + i * m, *v = var + i * m; // (m)
        double top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < m; j++)
            top = fmax(top, log_normal((double)a[j], (double)v[j], (double)y[i]));
        for (int64_t j = 0; j < m; j++)
            sum += exp(log_normal((double)a[j], (double)v[j], (double)y[i]) - top);
        total -= top + log(sum / (double)m);
    }
    return total / (double)n;
}

double rt_metric_gaussian_nll(const rt_metric_ctx *c, const char **reason) {
    (void)reason;
    return rt_eval_gaussian_nll(c->in->mu, c->in->var, c->in->target, c->in->n, c->in->m);
}

double rt_metric_rmse(const rt_metric_ctx *c, const char **reason) {
    (void)reason;
    return rt_eval_rmse(c->in->mu, c->in->target, c->in->n, c->in->m);
}
