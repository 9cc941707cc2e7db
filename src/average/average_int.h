/*
 * average_int.h - what the files of this module share: sums over training rows of values inside a network.
 */
#ifndef RT_AVERAGE_AVERAGE_INT_H
#define RT_AVERAGE_AVERAGE_INT_H

#include "average/average.h"
#include "base/json.h"
#include "plan/plan.h"

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
    const char *what; /* the stage, for progress; all its runs over the batches */
    int64_t runs, run;
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

/* Opens the data of the runs, and finds the rows that they trained on and held out. */
rt_status rt_average_find_rows(rt_average *a, const char *const *runs) RT_MUST_CHECK;

/* Repair and statistics of what a method left in out; one model needs neither. */
rt_status rt_average_mend(rt_average *a) RT_MUST_CHECK;

/* The "average" object of metrics.json; pictures go below dir. */
rt_status rt_average_diagnose(rt_average *a, rt_json *j, const char *dir) RT_MUST_CHECK;

#endif
