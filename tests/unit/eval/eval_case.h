/*
 * eval_case.h - what the tests of eval share: a metric or measure by its name, and
 * random predictions.
 */
#ifndef RT_TESTS_EVAL_CASE_H
#define RT_TESTS_EVAL_CASE_H

#include "base/rng.h"
#include "eval/eval.h"
#include "support/check.h"
#include <math.h>
#include <string.h>

/* A value that is defined. */
static inline double metric(const rt_eval_input *in, const char *name) {
    double v[RT_METRICS_MAX];
    const char *why[RT_METRICS_MAX];
    const int i = rt_metric_find(name, rt_eval_regression(in));
    if (i < 0)
        fail_msg("no metric %s", name);
    assert_int_equal(rt_eval_all(in, v, why), RT_OK);
    if (why[i])
        fail_msg("%s: %s", name, why[i]);
    return v[i];
}

/* One that is not: the reason why. */
static inline const char *undefined_metric(const rt_eval_input *in, const char *name) {
    double v[RT_METRICS_MAX];
    const char *why[RT_METRICS_MAX];
    const int i = rt_metric_find(name, rt_eval_regression(in));
    if (i < 0)
        fail_msg("no metric %s", name);
    assert_int_equal(rt_eval_all(in, v, why), RT_OK);
    if (!isnan(v[i]) || !why[i])
        fail_msg("%s is %g, wanted NaN and a reason", name, v[i]);
    return why[i];
}

enum { N = 97, M = 5, K = 7 };
typedef struct random_case {
    float logits[N * M * K], gaussian[N * M * 2], target[N];
    int32_t y[N];
} random_case;

static inline void make_case(random_case *c, uint64_t seed, double sharp) {
    rt_rng r = rt_rng_make(seed, RT_RNG_TEST, 0, 0);
    uint64_t at = 0;
    for (int i = 0; i < N * M * K; i++)
        c->logits[i] = (float)(sharp * rt_rng_normal(r, at++));
    for (int i = 0; i < N * M; i++) {
        c->gaussian[2 * i] = (float)rt_rng_normal(r, at++);
        c->gaussian[2 * i + 1] = (float)(0.05 + rt_rng_uniform(r, at++));
    }
    for (int i = 0; i < N; i++) {
        c->target[i] = (float)rt_rng_normal(r, at++);
        c->y[i] = (int32_t)rt_rng_below(r, at++, K);
        if (i % 2) /* half of the rows lean to the label */
            for (int m = 0; m < M; m++)
                c->logits[(i * M + m) * K + c->y[i]] += (float)(2 * sharp);
    }
}

static inline rt_eval_input classes_of(const random_case *c) {
    return (rt_eval_input){.n = N, .how = {.m = M, .k = K}, .y = c->logits, .label = c->y};
}

static inline rt_eval_input gaussians_of(const random_case *c) {
    return (rt_eval_input){
        .n = N, .how = {.kind = RT_OUTPUT_GAUSSIAN, .m = M, .k = 2}, .y = c->gaussian, .target = c->target};
}

#endif
