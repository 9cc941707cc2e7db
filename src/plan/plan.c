/*
 * plan.c - from graph to plan: the table of passes, in order, and the choice of slices.
 */
#include "base/alloc.h"
#include "plan/plan_int.h"

typedef struct pass {
    const char *name, *meaning;
    rt_status (*run)(rt_compile *k);
    unsigned needs; /* bits: must not be switched off either */
    bool required;
} pass;

static const pass passes[RT_PASS_COUNT] = {
#define NEEDS(id) (1u << RT_PASS_##id)
#define RT_PASS(id, name, needs, required, meaning) {#name, meaning, rt_pass_##name, needs, required},
#include "plan/passes.def"
#undef RT_PASS
#undef NEEDS
};

const char *rt_pass_name(rt_pass p) {
    return passes[p].name;
}
const char *rt_pass_meaning(rt_pass p) {
    return passes[p].meaning;
}

/*
 * Samples per slice. A slice should be worth waking a worker for (20 MFLOP), and there should be enough slices to
 * share, but not so many that their partial gradients cost more than they bring: at most 8. Slices that sum up nothing
 * (inference) can be as small as they are worth waking for, if the weights stay as they are and in the caches: then so
 * do the values of a slice. The result is a divisor of the batch. It depends on graph and batch alone.
 */
enum { SLICES_MAX = 8, INDEPENDENT_MAX = 256, INDEPENDENT_ROWS = 2 };
#define CACHED_WEIGHTS 1e6 /* floats, four times as many in Winograd's domain */

static bool is_independent(const rt_graph *g) {
    for (rt_val v = 1; v < (rt_val)rt_graph_count(g); v++)
        if (rt_graph_node(g, v)->type.kind == RT_KIND_SUM)
            return false;
    return true;
}

static double count_weights(const rt_graph *g) {
    double n = 0;
    for (rt_val v = 1; v < (rt_val)rt_graph_count(g); v++) {
        const rt_node *d = rt_graph_node(g, v);
        n += d->leaf == RT_LEAF_PARAM ? (double)rt_shape_elems(&d->type.shape) : 0;
    }
    return n;
}

static int64_t choose_slice(const rt_graph *g, const rt_plan_options *o, double flops) {
    const int64_t batch = rt_graph_batch(g);
    int64_t want = o->slice;
    if (o->whole_batch)
        want = batch;
    if (want <= 0) {
        const double per_sample = flops / (double)batch + 1.0;
        const double rows = 20e6 / per_sample;
        want = rows >= (double)batch ? batch : (int64_t)rows + 1;
        const bool small = o->frozen && is_independent(g) && count_weights(g) <= CACHED_WEIGHTS;
        const int64_t slices = small ? INDEPENDENT_MAX : SLICES_MAX;
        want = RT_MAX(want, (batch + slices - 1) / slices);
        want = small ? RT_MAX(want, INDEPENDENT_ROWS) : want;
    }
    want = RT_MIN(want, batch);
    while (batch % want != 0)
        want++;
    return want;
}

static double graph_flops(const rt_graph *g) {
    double total = 0;
    for (rt_val v = 1; v < (rt_val)rt_graph_count(g); v++) {
        const rt_node *d = rt_graph_node(g, v);
        if (d->leaf != RT_LEAF_NONE)
            continue;
        rt_type in[RT_OP_MAX_IN];
        for (int i = 0; i < d->nin; i++)
            in[i] = rt_graph_node(g, d->in[i])->type;
        double flops = 0, bytes = 0;
        rt_op_cost(&flops, &bytes, d->op, &d->attr, &d->type, in, d->nin);
        total += flops;
    }
    return total;
}

static rt_status run_passes(rt_compile *k) {
    const unsigned skip = k->p->opt.skip;
    for (unsigned i = 0; i < RT_PASS_COUNT; i++) {
        if (!passes[i].required && (skip & (passes[i].needs | 1u << i)) != 0)
            continue;
        RT_TRY(passes[i].run(k));
#ifdef RT_DEBUG
        const rt_status st = rt_graph_verify(k->p->g);
        if (st != RT_OK)
            return rt_error_prefix(st, "after pass %s", passes[i].name);
#endif
    }
    return RT_OK;
}

rt_status rt_plan_compile(rt_plan **out, const rt_graph *g, rt_plan_options o) {
    rt_plan *p = NULL;
    rt_compile k = {0};
    rt_status st = RT_OK;
    *out = NULL;
    RT_TRY(rt_graph_status(g));
    if (o.v3)
        RT_TRY(rt_isa_check_v3());
    const unsigned mask = o.v3 ? (unsigned)RT_KERN_V3 : (unsigned)RT_KERN_ALL & ~o.forbid;
    RT_TRY(rt_calloc(&p, 1, sizeof *p));
    rt_arena_init(&p->arena);
    p->opt = o;
    k.p = p;
    k.choice = (rt_choice){.mask = rt_pass_wanted(p, RT_PASS_SELECT) ? mask : 0, .frozen = o.frozen};
    p->batch = rt_graph_batch(g);
    RT_TRY_GOTO(rt_graph_rebatch(&p->g, g, p->batch, true, NULL));
    p->flops = graph_flops(p->g);
    p->independent = is_independent(p->g);
    p->slice = choose_slice(p->g, &o, p->flops);
    p->slices = p->batch / p->slice;
    rt_graph *whole = p->g;
    p->g = NULL;
    st = rt_graph_rebatch(&p->g, whole, p->slice, true, NULL);
    rt_graph_destroy(&whole);
    if (st != RT_OK)
        goto done;
    RT_TRY_GOTO(run_passes(&k));
    rt_plan_number(p);
    *out = p;
    p = NULL;
done:
    rt_free(k.vi);
    rt_plan_destroy(&p);
    return st;
}

void rt_plan_destroy(rt_plan **pp) {
    rt_plan *p = *pp;
    if (p == NULL)
        return;
    for (int64_t i = 0; i < p->nstep; i++)
        if (p->step[i].kern != NULL && p->step[i].kern->release != NULL)
            p->step[i].kern->release(p->step[i].state);
    for (int i = 0; i < p->laps && p->section != NULL; i++) {
        rt_free(p->slice_actions[i].a);
        rt_free(p->section[i].a);
    }
    rt_free(p->prologue.a);
    rt_free(p->consts);
    rt_graph_destroy(&p->g);
    rt_arena_deinit(&p->arena);
    rt_free(p);
    *pp = NULL;
}

size_t rt_plan_bytes(const rt_plan *p) {
    return p->slice_bytes * (size_t)p->slices + p->global_bytes + p->packed_bytes;
}
size_t rt_plan_packed_bytes(const rt_plan *p) {
    return p->packed_bytes;
}
int64_t rt_plan_slices(const rt_plan *p) {
    return p->slices;
}
double rt_plan_flops(const rt_plan *p) {
    return p->flops;
}
