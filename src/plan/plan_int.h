/*
 * plan_int.h - what the files of plan share.
 *
 * Compilation rewrites one graph, for the slice's batch, into another (simplify, fuse, remat, layout), then
 * describes each node as a step (select), gives it a time (schedule) and a place (memory).
 *
 *   time:  prologue | lap 0: slice steps, all slices | section 0: sums over slices, global steps | lap 1 | section 1 | ...
 *   place: slice workspace (one per slice; one per worker if slices are independent): batched values, parts of
 *          sums, scratch | global workspace: sums and global values | packed: what the prologue
 *          makes of parameters alone
 */
#ifndef RT_PLAN_PLAN_INT_H
#define RT_PLAN_PLAN_INT_H

#include "base/arena.h"
#include "kern/kern.h"
#include "plan/plan.h"

typedef enum rt_place {
    RT_PLACE_NONE,
    RT_PLACE_SLICE,  /* offset in the slice workspace */
    RT_PLACE_GLOBAL, /* offset in the global workspace */
    RT_PLACE_PACKED, /* offset in the packed weights */
    RT_PLACE_PARAM,  /* slot */
    RT_PLACE_INPUT,  /* slot; rows of the slice, one group */
    RT_PLACE_FEED,   /* slot */
    RT_PLACE_CONST,  /* offset in the constant block */
    RT_PLACE_OUTPUT, /* index of a global output; offset in the global workspace when it is not bound */
} rt_place;

typedef struct rt_ref {
    rt_place place;
    int32_t slot;
    size_t offset;
    size_t row_bytes; /* INPUT: bytes of a sample */
} rt_ref;

/* One computed node. */
typedef struct rt_pstep {
    rt_val v;
    rt_problem p;
    const rt_kern *kern;
    void *state;
    size_t scratch;
    rt_ref *in;
    rt_ref out; /* SUM: the slice's part */
    rt_ref scratch_ref;
    int32_t side;          /* a step computed together with this one (statistics of a FUSED_CONV); 0: none */
    struct rt_pstep *with; /* another problem that its kernel solves in the same run; NULL: none */
    bool rides;            /* computed together with another step: no action of its own */
} rt_pstep;

typedef enum rt_action_kind {
    RT_ACT_STEP,   /* run a kernel */
    RT_ACT_GATHER, /* copy the slice's rows of an input with several groups into the slice workspace */
    RT_ACT_EMIT,   /* copy rows of a slice to a bound output */
    RT_ACT_REDUCE, /* tree sum over slices */
    RT_ACT_COPY,   /* global value to a bound output */
    RT_ACT_UPDATE, /* global value to a parameter slot */
} rt_action_kind;

typedef struct rt_action {
    rt_action_kind kind;
    int32_t index;    /* step, input slot, output, or parameter slot */
    int32_t level;    /* within a section: actions of one level are independent */
    bool params_only; /* prologue: depends on parameters alone */
    int32_t id;       /* place in the plan, from 0 (rt_plan_number) */
    rt_ref src, dst;
    rt_desc desc;
    int32_t groups;
} rt_action;

typedef struct rt_actions {
    rt_action *a;
    int64_t n, cap;
} rt_actions;

struct rt_plan {
    rt_arena arena;
    rt_graph *g; /* rewritten, slice shapes */
    rt_plan_options opt;
    int64_t batch, slices, slice;
    bool independent; /* slices leave nothing behind but outputs (inference): nothing is summed over them */
    double flops;
    rt_pstep *step;
    int64_t nstep;
    int laps;
    rt_actions prologue;       /* first what depends on parameters alone */
    int64_t npacked;           /* so many actions */
    rt_actions *slice_actions; /* per lap */
    rt_actions *section;       /* per lap */
    size_t slice_bytes, global_bytes, packed_bytes, const_bytes;
    uint8_t *consts;
    int ninputs, nfeeds, nslots, noutputs;
    int32_t nactions;
};

/* Per value of the rewritten graph; made by schedule, used by memory and lower. */
typedef struct rt_vinfo {
    int32_t step;    /* index, -1 for leaves and views */
    int32_t lap;     /* slice steps: lap; global: section (-1: prologue) */
    int32_t section; /* sums over the batch: section that completes them; otherwise as lap */
    rt_val view_of;  /* RESHAPE in place of another value, else 0 */
    int32_t output;  /* first global output that is this value, else -1 */
    bool params_only;
} rt_vinfo;

/* ---- graph rewriting: nodes of `from` replayed into `to` ---- */
typedef struct rt_rewrite {
    const rt_graph *from;
    rt_graph *to;
    rt_val *map;   /* from -> to */
    int32_t *uses; /* in `from`: readers and outputs */
} rt_rewrite;
rt_status rt_rewrite_begin(rt_rewrite *w, const rt_graph *from) RT_MUST_CHECK;
void rt_rewrite_copy(rt_rewrite *w, rt_val v); /* v as it is, inputs mapped */
/* Outputs, dead nodes dropped; the result takes the place of *g, which is `from`; frees w. */
rt_status rt_rewrite_end(rt_rewrite *w, rt_graph **g) RT_MUST_CHECK;
void rt_rewrite_abandon(rt_rewrite *w);

/* Which kernels may be chosen, and for what. */
typedef struct rt_choice {
    unsigned mask; /* RT_KERN_* families */
    bool frozen;   /* as in rt_plan_options */
} rt_choice;

/* A plan in the making. Passes up to layout rewrite p->g; the later ones fill in p. */
typedef struct rt_compile {
    rt_plan *p;
    rt_vinfo *vi; /* by value; from select on */
    rt_choice choice;
} rt_compile;
#define RT_PASS(id, name, needs, required, meaning) rt_status rt_pass_##name(rt_compile *k) RT_MUST_CHECK;
#include "plan/passes.def"
#undef RT_PASS
RT_INLINE bool rt_pass_wanted(const rt_plan *p, rt_pass pass) {
    return (p->opt.skip & (1u << pass)) == 0;
}

/* Problem of a node for the given layouts of its operands (NULL: as in the graph); arrays from the arena. */
rt_status rt_problem_make(rt_problem *out, rt_arena *a, const rt_graph *g, rt_val v, const rt_layout *in,
                          rt_layout outl) RT_MUST_CHECK;
/* Whether k solves p (of at most RT_OP_MAX_IN inputs) with the layouts it asks for, which in and out get. k->layouts is not NULL. */
bool rt_problem_suits(const rt_kern *k, const rt_problem *p, rt_layout *in, rt_layout *out);
void rt_plan_number(rt_plan *p); /* gives its actions their ids */
rt_status rt_actions_add(rt_actions *l, rt_action a) RT_MUST_CHECK;
bool rt_is_view(const rt_graph *g, rt_val v);

#endif
