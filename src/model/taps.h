/*
 * taps.h - a network run over rows of data, for the sake of values inside it: running statistics of batch
 * normalisation (norms.c), and what enters activations.
 */
#ifndef RT_MODEL_TAPS_H
#define RT_MODEL_TAPS_H

#include "base/pool.h"
#include "data/data.h"
#include "distill/distill.h"
#include "plan/plan.h"

/* A value whose sums per channel are taken. */
typedef struct rt_tap {
    int first, second; /* parameter slots it belongs to: running mean and variance, or weight and bias */
    int64_t channels;
    int64_t count; /* elements per channel in a batch */
    int output;    /* of the graph */
    double *sums;  /* (2, channels): sum x, sum x^2 of the last batch */
} rt_tap;

/* What runs, over which rows; all of it is borrowed. */
typedef struct rt_taps_input {
    const rt_student *student; /* without dropout */
    rt_params *params;
    const rt_subset *set;
    int64_t rows; /* at most so many of them; 0: all */
    rt_augment augment;
    uint64_t seed;
    rt_pool *pool;
    /* Before each batch: which it is of all runs. Anything but RT_OK ends the run. */
    rt_status (*tell)(void *user, double done);
    void *user;
} rt_taps_input;

typedef struct rt_taps {
    rt_taps_input in;
    int n;
    rt_tap *tap;
    int64_t batches;
    int64_t runs, run; /* over all batches, for tell: how many there will be (0: one), and were */
    rt_batch_spec spec;
    int64_t *order;
    float *x, *block; /* one batch; the weights that run */
    rt_graph *g;
    rt_plan *plan;
    rt_exec *exec;
} rt_taps;

/* Batch normalisations of the network in train mode: first and second are the running mean and variance. */
rt_status rt_taps_of_norms(rt_taps *t, const rt_taps_input *in) RT_MUST_CHECK;
/* What enters the activation of layers without BN, in evaluation mode and in order: first and second are
 * weight and bias. */
rt_status rt_taps_of_units(rt_taps *t, const rt_taps_input *in) RT_MUST_CHECK;
void rt_taps_close(rt_taps *t);
/* Runs the weights over all batches; each is called with the sums of every one. */
rt_status rt_taps_run(rt_taps *t, const float *block, void (*each)(void *user, const rt_taps *t),
                      void *user) RT_MUST_CHECK;

/* Has the network batch normalisation? */
bool rt_norms_any(const rt_params *p);
/* Estimates the running statistics in a block anew; t: rt_taps_of_norms. */
rt_status rt_norms_estimate(rt_taps *t, float *block) RT_MUST_CHECK;

#endif
