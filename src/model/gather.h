/*
 * gather.h - members trained apart, as one run.
 */
#ifndef RT_MODEL_GATHER_H
#define RT_MODEL_GATHER_H

#include "model/model.h"

/* Copies the networks of n finished runs, in this order, to out/member-000.safetensors and so on, byte for byte. */
rt_status rt_gather_run(const char *const *runs, int64_t n, const char *out, bool force,
                        int *members) RT_MUST_CHECK;

#endif
