/*
 * norms.c - running statistics of batch normalisation, estimated anew.
 *
 * They do not belong to weights that were averaged or interpolated: activations of averaged weights are smaller
 * than the mean of the models' running variances says, and a network normalised by the old numbers fades layer by
 * layer (Jordan et al. 2023). So the network is run in train mode, each layer normalised by its batch, and
 *
 *     mean = (1/B) sum_b mean_b          variance = (1/B) sum_b var_b (unbiased)
 *
 * over the batches replace the running statistics: PyTorch's cumulative mean (momentum None).
 */
#include "base/alloc.h"
#include "model/taps.h"

static void add_batch(void *user, const rt_taps *t) {
    double *sum = user; /* (taps, 2, channels), one after the other */
    for (int i = 0; i < t->n; i++) {
        const rt_tap *tap = &t->tap[i];
        const double n = (double)tap->count;
        for (int64_t c = 0; c < tap->channels; c++) {
            const double mean = tap->sums[c] / n, square = tap->sums[tap->channels + c] / n;
            const double var = RT_MAX(square - mean * mean, 0.0);
            sum[c] += mean;
            sum[tap->channels + c] += n > 1 ? var * n / (n - 1) : var;
        }
        sum += 2 * tap->channels;
    }
}

bool rt_norms_any(const rt_params *p) {
    for (int i = 0; i < rt_params_count(p); i++)
        if (rt_params_get(p, i)->role == RT_ROLE_STATE)
            return true;
    return false;
}

rt_status rt_norms_estimate(rt_taps *t, float *block) {
    double *sum = NULL;
    int64_t total = 0;
    rt_status st;
    for (int i = 0; i < t->n; i++)
        total += 2 * t->tap[i].channels;
    RT_TRY_GOTO(rt_calloc(&sum, (size_t)total + 1, sizeof *sum));
    RT_TRY_GOTO(rt_taps_run(t, block, add_batch, sum));
    const double *from = sum;
    for (int i = 0; i < t->n; i++) {
        float *mean = block + rt_params_get(t->in.params, t->tap[i].first)->offset;
        float *var = block + rt_params_get(t->in.params, t->tap[i].second)->offset;
        for (int64_t c = 0; c < t->tap[i].channels; c++) {
            mean[c] = (float)(from[c] / (double)t->batches);
            var[c] = (float)(from[t->tap[i].channels + c] / (double)t->batches);
        }
        from += 2 * t->tap[i].channels;
    }
done:
    rt_free(sum);
    return st;
}
