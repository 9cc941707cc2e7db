/*
 * eval_int.h - what the metric files share: the row of metrics.def as a function of one prepared input.
 */
#ifndef RT_EVAL_EVAL_INT_H
#define RT_EVAL_EVAL_INT_H

#include "eval/eval.h"

typedef struct rt_metric_ctx {
    const rt_eval_input *in;
    const float *p;        /* classification (n, k): mean probabilities */
    const float *member_p; /* (n, m, k) */
    double knowledge;      /* Dirichlet outputs: mean over rows and members of their own */
} rt_metric_ctx;

/* NaN with *reason set where the metric is not defined. */
#define RT_METRIC(id, name, higher, regression, meaning)                                                     \
    double rt_metric_##id(const rt_metric_ctx *c, const char **reason);
#include "eval/metrics.def"
#undef RT_METRIC

/* First of the largest entries. */
RT_INLINE int64_t rt_argmax(const float *p, int64_t k) {
    int64_t best = 0;
    for (int64_t c = 1; c < k; c++)
        if (p[c] > p[best])
            best = c;
    return best;
}

#endif
