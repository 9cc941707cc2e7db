/*
 * exec_int.h - an exec, and how its slices are shared by ranks.
 */
#ifndef RT_PLAN_EXEC_INT_H
#define RT_PLAN_EXEC_INT_H

#include "plan/plan_int.h"
#include <pthread.h>
#include <stdatomic.h>

/* What is made of parameters alone. Execs that share it may run at the same time: the first makes it under the lock,
 * the others wait for that and then only read. */
struct rt_packed {
    uint8_t *mem;
    pthread_mutex_t lock;
    atomic_bool made; /* at least once */
};

typedef struct rt_exec_ranks rt_exec_ranks;
struct rt_exec {
    const rt_plan *p;
    uint8_t *slice_mem, *global_mem; /* one block */
    uint8_t *block;
    int64_t rooms;           /* slice workspaces: one per slice, or, if slices are independent, per worker */
    rt_share slices;         /* of the plan: those of this rank */
    rt_exec_ranks *ranks;    /* NULL: it has them all */
    rt_packed *packed, *own; /* own: NULL if it shares those of others */
    void **param;
    const void **input, **feed;
    void **output;
    atomic_bool cut; /* a worker of this run has seen the stop request */
};

enum { RT_REDUCE_CHUNK = 16384, RT_SLICES_MAX = 1024 };

void *rt_exec_part(const rt_exec *e, const rt_action *a, int64_t slice); /* of a sum */
void *rt_exec_sum(const rt_exec *e, const rt_action *a);                 /* where it goes */

/* exec_ranks.c */
rt_status rt_exec_ranks_create(rt_exec_ranks **out, const rt_plan *p, rt_ranks team) RT_MUST_CHECK;
void rt_exec_ranks_destroy(rt_exec_ranks **x);
/* Sums [lo, hi) of a section, over the slices of all ranks; then the rows that slices gave out. */
void rt_exec_ranks_sum(rt_exec *e, const rt_actions *l, int64_t lo, int64_t hi, rt_pool *pool);
void rt_exec_ranks_rows(rt_exec *e);

#endif
