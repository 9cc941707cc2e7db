/*
 * average_int.h - what the files of this module share: sums over training rows of values inside a network.
 */
#ifndef RT_AVERAGE_AVERAGE_INT_H
#define RT_AVERAGE_AVERAGE_INT_H

#include "average/average.h"
#include "base/json.h"

/* A value whose sums per channel are taken. */
typedef struct rt_tap {
    int first, second; /* parameter slots it belongs to: running mean and variance, or weight and bias */
    int64_t channels;
    int64_t count; /* elements per channel in a batch */
    int output;    /* of the graph */
    double *sums;  /* (2, channels): sum x, sum x^2 of the last batch */
} rt_tap;

typedef struct rt_taps {
    const rt_average *a;
    int n;
    rt_tap *tap;
    int64_t batches;
    rt_batch_spec spec;
    int64_t *order;
    float *x, *block; /* one batch; the weights that run */
    rt_graph *g;
    rt_plan *plan;
    rt_exec *exec;
} rt_taps;

/* Batch normalisations of the network in train mode: first and second are the running mean and variance. */
rt_status rt_taps_of_norms(rt_taps *t, const rt_average *a, int64_t rows) RT_MUST_CHECK;
/* What enters the activation of layers without BN, in evaluation mode and in order: first and second are
 * weight and bias. */
rt_status rt_taps_of_units(rt_taps *t, const rt_average *a, int64_t rows) RT_MUST_CHECK;
void rt_taps_close(rt_taps *t);
/* Runs the weights over all batches; each is called with the sums of every one. */
rt_status rt_taps_run(rt_taps *t, const float *block, void (*each)(void *user, const rt_taps *t),
                      void *user) RT_MUST_CHECK;

/* Permutations of `source` (starting from perm) that bring it nearest to target: weight matching. */
typedef struct rt_matcher rt_matcher;
rt_status rt_matcher_create(rt_matcher **out, const rt_symmetry *s, const rt_params *params,
                            rt_pool *pool) RT_MUST_CHECK;
void rt_matcher_destroy(rt_matcher **m);
/* perm in and out; *gain (may be NULL): how much <target, permuted source> rose. seed: of the order of
 * visits. */
rt_status rt_matcher_run(rt_matcher *m, const float *target, const float *source, int64_t *perm,
                         uint64_t seed, double *gain) RT_MUST_CHECK;
/* Every model to the mean of the others, or to the mean of those before it, as perms (models, total); the
 * first keeps its numbers. */
rt_status rt_matcher_many(rt_matcher *m, const float *const *blocks, int models, bool running, int64_t *perms,
                          uint64_t seed, rt_status (*progress)(void *user, int round, int model),
                          void *user) RT_MUST_CHECK;

/* The "average" object of metrics.json; pictures go below dir. */
rt_status rt_average_diagnose(rt_average *a, rt_json *j, const char *dir) RT_MUST_CHECK;

#endif
