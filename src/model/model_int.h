/*
 * model_int.h - what a model is, for the files that read, write and run it.
 */
#ifndef RT_MODEL_MODEL_INT_H
#define RT_MODEL_MODEL_INT_H

#include "base/arena.h"
#include "model/model.h"
#include "model/run.h"
#include "step/step.h"

struct rt_model {
    rt_arena arena; /* texts */
    rt_params *params;
    rt_student *student; /* what each network is */
    rt_task task;
    int64_t nclasses;
    const char **classes;
    rt_target target;   /* regression */
    bool bytes;         /* inputs were bytes / 255 */
    const char *resize; /* how pictures were brought to size; NULL: not known */
    const char *table;  /* what the columns of a table become; NULL: not a table */
    int networks;       /* trained side by side, one file each */
    int64_t floats;
    float *blocks;      /* (networks, floats) */
    const float **list; /* (networks) where each begins */
    int64_t batch;      /* rows per run of the predictions; 0: the default */
    rt_decision decision;
    const rt_st_meta *meta;
    int64_t nmeta;
};
rt_status rt_model_list_blocks(rt_model *m) RT_MUST_CHECK;
rt_status rt_model_write_network(const rt_model *m, rt_str *out) RT_MUST_CHECK; /* model_network.c */
rt_status rt_model_read_decision(rt_model *m) RT_MUST_CHECK; /* from its metadata; none is fine */
rt_status rt_model_set_unit(rt_model *m, const char *unit) RT_MUST_CHECK; /* a copy; NULL: not said */

#endif
