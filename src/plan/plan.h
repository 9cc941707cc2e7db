/*
 * plan.h - a graph compiled for fast, repeatable execution.
 *
 * Slices: the batch is cut into equal slices whose number is a property of the plan, never of the threads.
 * A slice runs single-threaded. What crosses slices (gradients, BN statistics, losses) is computed per
 * slice and summed by a fixed tree. Hence the same bits for any number of workers. A plan is immutable; an
 * rt_exec holds one workspace and the bindings of one member; an ensemble is one plan and many execs.
 *
 *     graph --simplify--fuse--remat--fuse_conv--fuse_dense--layout--select--schedule--join--memory--> plan --rt_exec_create--> exec --rt_exec_run--> results
 */
#ifndef RT_PLAN_PLAN_H
#define RT_PLAN_PLAN_H

#include "base/pool.h"
#include "dist/dist.h"
#include "graph/graph.h"
#include <signal.h>

typedef struct rt_plan rt_plan;
typedef struct rt_exec rt_exec;

typedef enum rt_pass {
#define RT_PASS(id, name, needs, required, meaning) RT_PASS_##id,
#include "plan/passes.def"
#undef RT_PASS
    RT_PASS_COUNT
} rt_pass;
const char *rt_pass_name(rt_pass p);
const char *rt_pass_meaning(rt_pass p);

typedef struct rt_plan_options {
    /* Samples per slice; 0: chosen from the batch and the work per sample. Rounded to a divisor of the batch. */
    int64_t slice;
    bool whole_batch; /* one slice: for members that run one per worker */
    /* Bit p set: leave out pass p (select falls back to reference kernels, memory to no reuse). */
    unsigned skip;
    unsigned forbid; /* RT_KERN_* families not to use */
    /* Only kernels that give the same bits on every x86-64-v3 processor; else whatever is fastest here. */
    bool v3;
    /* Parameters stay as they are for many runs (inference): what is made of them alone may take its time. */
    bool frozen;
} rt_plan_options;

rt_status rt_plan_compile(rt_plan **out, const rt_graph *g, rt_plan_options o) RT_MUST_CHECK;
void rt_plan_destroy(rt_plan **p);
void rt_plan_print(const rt_plan *p, rt_str *out); /* steps, kernels, layouts, laps, offsets, memory */
size_t rt_plan_bytes(const rt_plan *p);            /* workspace of one exec at most, with packed weights */
size_t rt_plan_packed_bytes(const rt_plan *p);     /* of it, what is made of parameters alone */
int64_t rt_plan_slices(const rt_plan *p);
double rt_plan_flops(const rt_plan *p); /* of one run over the whole batch */

/* What one action of a plan (a kernel, a sum over slices, a copy) costs in one run over the whole batch. */
typedef struct rt_action_cost {
    const char *kind;   /* "convolution, data gradient", "element-wise chain", "sum over slices", ... */
    const char *kernel; /* its implementation: "wino", "onednn", ...; "-" where there is no choice */
    rt_shape shape;     /* of the result, in one slice */
    double flops;       /* counted as direct convolutions and products */
    double bytes;       /* operands and results, each once per slice */
} rt_action_cost;
int64_t rt_plan_actions(const rt_plan *p);
rt_action_cost rt_plan_action_cost(const rt_plan *p, int64_t i);

/* What a plan makes of parameters alone: weights in the layouts of their kernels. Execs of one plan can share
 * it if their parameters are the same, and an exec can change between several, one per network. */
typedef struct rt_packed rt_packed;
rt_status rt_packed_create(rt_packed **out, const rt_plan *p) RT_MUST_CHECK; /* the plan outlives it */
void rt_packed_destroy(rt_packed **k);

rt_status rt_exec_create(rt_exec **out, const rt_plan *p,
                         rt_pool *pool) RT_MUST_CHECK; /* plan and pool outlive it */
/* The same without one of its own: rt_exec_bind_packed comes before the first run. */
rt_status rt_exec_create_sharing(rt_exec **out, const rt_plan *p, rt_pool *pool) RT_MUST_CHECK;
/* The slices are shared by ranks: each runs its own, and all of them run it at the same time, by rt_exec_run. What a
 * run leaves behind, all have; if a rank fails, it is cut. A plan that sums up nothing is not for this. */
rt_status rt_exec_create_team(rt_exec **out, const rt_plan *p, rt_pool *pool, rt_ranks team) RT_MUST_CHECK;
void rt_exec_destroy(rt_exec **e);
void rt_exec_bind_packed(rt_exec *e, rt_packed *k);
/* Packs the weights of the parameters bound to e, so that any number of execs that share them can run at once,
 * all with params_unchanged. */
void rt_exec_prepare(rt_exec *e, rt_pool *pool);
/* Bindings stay until changed. Data is borrowed. Inputs: groups * batch rows, row-major. By the graph's
 * slot numbers. */
void rt_exec_bind_param(rt_exec *e, int slot, void *data);
/* Parameters first, first + 1, ... stand in a block of floats, at offset[0], offset[1], ... (n of them): a block that is
 * only read, of parameters that the plan does not update, or one that its updates are written to as well. */
void rt_exec_bind_block(rt_exec *e, int first, const float *block, const int64_t *offset, int n);
void rt_exec_bind_own_block(rt_exec *e, int first, float *block, const int64_t *offset, int n);
void rt_exec_bind_input(rt_exec *e, int slot, const void *data);
void rt_exec_bind_feed(rt_exec *e, int slot, const void *data);
/* Where output i of the graph goes (row-major, whole batch); NULL drops it. Outputs of parameter updates
 * need none. */
void rt_exec_bind_output(rt_exec *e, int i, void *data);

typedef struct rt_run {
    uint64_t seed, step;
    bool
        params_unchanged; /* since the weights this exec has bound were packed: they are not packed again (inference) */
    double *
        profile; /* NULL, or the seconds of every action of the plan, which the run adds to; one worker only */
    /* What the caller reads next, or NULL: if a second-level cache has room for it beside the workspace, a part
     * of it is prefetched before every action. */
    const float *soon;
    int64_t soon_floats;
    /* NULL, or a flag: once it is set the run does nothing more, unless all slices are through (rt_exec_is_cut). */
    const volatile sig_atomic_t *stop;
} rt_run;
/* Runs several execs (members) of any plans at once over the pool. */
void rt_exec_run(rt_exec *const *e, const rt_run *run, int n, rt_pool *pool);
/* Was the last run cut short? Then no parameter was changed, and the outputs hold nothing. */
bool rt_exec_is_cut(const rt_exec *e);
/* One exec from beginning to end on the calling worker: for jobs that have more to do than run it. */
void rt_exec_run_here(rt_exec *e, const rt_run *run, int worker);

/* The reference: every node in order by reference kernels on the whole batch, f32 or f64. Allocates; for
 * tests and oracles. */
rt_status rt_interp_run(const rt_graph *g, const void *const *params, const void *const *inputs,
                        const void *const *feeds, void *const *outputs, rt_run run) RT_MUST_CHECK;
/* The same, keeping every value: values[v] are rt_alloc'ed buffers, freed with rt_interp_free. */
rt_status rt_interp_values(const rt_graph *g, const void *const *params, const void *const *inputs,
                           const void *const *feeds, void ***values, rt_run run) RT_MUST_CHECK;
void rt_interp_free(const rt_graph *g, void **values);

#endif
