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

int rt_ece_bin(double confidence, int bins) {
    int b = (int)ceil(confidence * bins) - 1;
    b = RT_MIN(RT_MAX(b, 0), bins - 1);
    while (b > 0 && confidence <= (double)b / bins)
        b--;
    while (b < bins - 1 && confidence > (double)(b + 1) / bins)
        b++;
    return b;
}

rt_status rt_eval_reliability(const rt_eval_input *in, rt_reliability *out) {
    rt_row r;
    *out = (rt_reliability){0};
    RT_FAIL_IF(rt_eval_regression(in) || !in->label, RT_E_USAGE,
               "reliability needs a classification with labels");
    RT_TRY(rt_eval_check(in));
    RT_TRY(rt_row_init(&r, in->how));
    for (int64_t i = 0; i < in->n; i++) {
        if (!rt_row_read(&r, rt_eval_row(in, i)))
            continue;
        const double confidence = r.p[r.top];
        const int b = rt_ece_bin(confidence, RT_ECE_BINS);
        out->count[b]++;
        out->confidence[b] += confidence;
        out->accuracy[b] += r.top == in->label[i];
    }
    for (int b = 0; b < RT_ECE_BINS; b++) { /* 0/0 is NaN */
        out->confidence[b] /= (double)out->count[b];
        out->accuracy[b] /= (double)out->count[b];
    }
    rt_row_deinit(&r);
    return RT_OK;
}
