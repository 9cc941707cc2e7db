/*
 * classes.c - how a classifier does class by class: its confusion matrix, and of every class c
 *
 *     recall      share of the rows of c that are called c           (its accuracy)
 *     precision   share of the rows called c that are of c
 *     confidence  mean of max p over the rows called c; a calibrated model has its precision
 *     ece         expected calibration error of the rows called c, 15 equal bins
 *
 * A class without rows, or never predicted, has NaN where there is nothing to share.
 */
#include "base/alloc.h"
#include "eval/eval_int.h"
#include <math.h>

typedef struct bins {
    double gap[RT_ECE_BINS]; /* right - confidence, summed */
} bins;

static void finish(rt_class_stats *s, const bins *b) {
    double gap = 0;
    for (int i = 0; i < RT_ECE_BINS; i++)
        gap += fabs(b->gap[i]);
    s->recall /= (double)s->rows; /* 0/0 is NaN */
    s->precision /= (double)s->predicted;
    s->confidence /= (double)s->predicted;
    s->ece = gap / (double)s->predicted;
}

rt_status rt_eval_per_class(const rt_eval_input *in, rt_class_stats *out, int64_t *confusion) {
    const int64_t k = in->how.k;
    rt_row r = {0};
    bins *b = NULL;
    rt_status st;
    RT_FAIL_IF(rt_eval_regression(in) || !in->label, RT_E_USAGE, "classes need a classification with labels");
    RT_TRY(rt_eval_check(in));
    RT_TRY_GOTO(rt_row_init(&r, in->how));
    RT_TRY_GOTO(rt_calloc(&b, (size_t)k, sizeof *b));
    for (int64_t c = 0; c < k; c++)
        out[c] = (rt_class_stats){0};
    for (int64_t i = 0; confusion && i < k * k; i++)
        confusion[i] = 0;
    for (int64_t i = 0; i < in->n; i++) {
        if (!rt_row_read(&r, rt_eval_row(in, i)))
            continue;
        const int32_t y = in->label[i];
        const double right = r.top == y, confidence = r.p[r.top];
        out[y].rows++;
        out[y].recall += right;
        out[r.top].predicted++;
        out[r.top].precision += right;
        out[r.top].confidence += confidence;
        b[r.top].gap[rt_ece_bin(confidence, RT_ECE_BINS)] += right - confidence;
        if (confusion)
            confusion[y * k + r.top]++;
    }
    for (int64_t c = 0; c < k; c++)
        finish(&out[c], &b[c]);
done:
    rt_free(b);
    rt_row_deinit(&r);
    return st;
}
