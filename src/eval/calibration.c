/*
 * calibration.c - does a confidence of 80% mean right in 80 of 100 cases (Guo et al. 2017)?
 *
 *     ECE = sum_b (n_b / n) |accuracy_b - mean confidence_b|
 *
 * Bins are equal and closed on the right, (b/B, (b+1)/B]; a confidence of 1 falls into the last, one of 0
 * into the first. The bin of a confidence is found by a product and then compared with the true borders, so
 * that rounding cannot put it beside its bin.
 */
#include "eval/eval_int.h"
#include <math.h>

enum { BINS_MAX = 1000 };

static int bin_of(double conf, int bins) {
    int b = (int)ceil(conf * bins) - 1;
    b = RT_MIN(RT_MAX(b, 0), bins - 1);
    while (b > 0 && conf <= (double)b / bins)
        b--;
    while (b < bins - 1 && conf > (double)(b + 1) / bins)
        b++;
    return b;
}

double rt_eval_ece(const float *p, const int32_t *y, int64_t n, int64_t k, int bins) {
    double gap[BINS_MAX] = {0}; /* sum of right - confidence */
    if (bins < 1 || bins > BINS_MAX)
        return NAN;
    for (int64_t i = 0; i < n; i++) {
        int64_t top = rt_argmax(p + i * k, k);
        double conf = (double)p[i * k + top];
        if (!(conf >= 0 && conf <= 2))
            return NAN;
        gap[bin_of(conf, bins)] += (top == y[i] ? 1 : 0) - conf;
    }
    double sum = 0;
    for (int b = 0; b < bins; b++)
        sum += fabs(gap[b]);
    return sum / (double)n;
}

double rt_metric_ece(const rt_metric_ctx *c, const char **reason) {
    (void)reason;
    return rt_eval_ece(c->p, c->in->label, c->in->n, c->in->k, RT_ECE_BINS);
}
