/*
 * predictor.h - networks in evaluation mode over many rows.
 */
#ifndef RT_MODEL_PREDICTOR_H
#define RT_MODEL_PREDICTOR_H

#include "base/pool.h"
#include "data/data.h"
#include "dist/dist.h"
#include "distill/distill.h"
#include <signal.h>

typedef struct rt_predictor rt_predictor;
/* Outputs of one network for rows [row, row + n) of the set: student member s of row r is at y + s *
 * stride + r * outputs. */
typedef void (*rt_predictor_take)(void *user, int network, int64_t row, int64_t n, const float *y,
                                  int64_t stride);
rt_status rt_predictor_create(rt_predictor **out, const rt_student *student, rt_params *params, int64_t batch,
                              int networks, rt_pool *pool) RT_MUST_CHECK;
/* By some ranks: each predicts a part, and all get everything. The other form is by all ranks. */
rt_status rt_predictor_create_team(rt_predictor **out, const rt_student *student, rt_params *params,
                                   int64_t batch, int networks, rt_pool *pool, rt_ranks team) RT_MUST_CHECK;
void rt_predictor_destroy(rt_predictor **p);
/* Whether to keep the weights of so many networks as their kernels want them, or one after the other. */
bool rt_keep_networks(const rt_params *p, int networks);
/* A promise: from now on the same block means the same numbers in it, from call to call. */
void rt_predictor_keep_blocks(rt_predictor *p);
rt_status rt_predictor_run(rt_predictor *p, const rt_subset *set, const float *const *blocks, int members,
                           rt_predictor_take take, void *user,
                           const volatile sig_atomic_t *stop) RT_MUST_CHECK;

#endif
