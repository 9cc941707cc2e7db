/*
 * plan.c - from graph to plan: the table of passes, in order, and the choice of slices.
 */
#include "base/alloc.h"
#include "plan/plan_int.h"

static const struct {
    const char *name, *meaning;
} PASSES[RT_PASS_COUNT] = {
    [RT_PASS_SIMPLIFY] = {"simplify", "remove identities, merge scalings and reshapes"},
    [RT_PASS_FAST] = {"fast", "take the gradients of a BatchEnsemble from one gradient of weights per member"},
    [RT_PASS_FUSE] = {"fuse", "turn runs of element-wise operations into chains"},
    [RT_PASS_REMAT] = {"remat",
                       "recompute cheap forward chains in the backward half instead of keeping them"},
    [RT_PASS_FUSE_CONV] = {"fuse_conv",
                           "move chains and statistics into the loads and stores of convolutions"},
    [RT_PASS_FUSE_DENSE] = {"fuse_dense", "move biases, ReLUs and their masks into the stores of products"},
    [RT_PASS_LAYOUT] = {"layout", "give values the memory layout their kernels like, insert reorders"},
    [RT_PASS_SELECT] = {"select",
                        "choose and prepare the kernel of each node; without it, reference kernels"},
    [RT_PASS_SCHEDULE] = {"schedule", "move global work as late as its readers allow"},
    [RT_PASS_JOIN] = {"join", "let one run of a kernel solve two problems that share operands"},
    [RT_PASS_MEMORY] = {"memory", "let values that are never alive together share memory"},
};

const char *rt_pass_name(rt_pass p) {
    return PASSES[p].name;
}
const char *rt_pass_meaning(rt_pass p) {
    return PASSES[p].meaning;
}

/*
 * Samples per slice. A slice should be worth waking a worker for (20 MFLOP), and there should be enough
 * slices to share, but not so many that their partial gradients cost more than they bring: at most 8. Slices
 * that sum up nothing (inference) can be as small as they are worth waking for, if the weights stay as they are
 * and in the caches: then so do the values of a slice. The result is a divisor of the batch. It depends on graph and batch
 * alone.
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

static void count_leaves(rt_plan *p) {
    for (rt_val v = 1; v < (rt_val)rt_graph_count(p->g); v++) {
        const rt_node *d = rt_graph_node(p->g, v);
        int *n = d->leaf == RT_LEAF_INPUT   ? &p->ninputs
                 : d->leaf == RT_LEAF_FEED  ? &p->nfeeds
                 : d->leaf == RT_LEAF_PARAM ? &p->nslots
                                            : NULL;
        if (n != NULL)
            *n = RT_MAX(*n, d->slot + 1);
    }
    p->noutputs = rt_graph_outputs(p->g);
}

static rt_status rewrite(rt_graph **g, unsigned skip, rt_choice choice) {
#define WANTED(pass) ((skip & (1u << (pass))) == 0)
    if (WANTED(RT_PASS_SIMPLIFY))
        RT_TRY(rt_pass_simplify(g));
    if (WANTED(RT_PASS_FAST) && WANTED(RT_PASS_LAYOUT) && WANTED(RT_PASS_SELECT))
        RT_TRY(rt_pass_fast(g, choice));
    if (WANTED(RT_PASS_FUSE))
        RT_TRY(rt_pass_fuse(g));
    if (WANTED(RT_PASS_FUSE) && WANTED(RT_PASS_REMAT))
        RT_TRY(rt_pass_remat(g));
    if (WANTED(RT_PASS_FUSE) && WANTED(RT_PASS_FUSE_CONV) && WANTED(RT_PASS_LAYOUT) && WANTED(RT_PASS_SELECT))
        RT_TRY(rt_pass_fuse_conv(g, choice));
    if (WANTED(RT_PASS_FUSE) && WANTED(RT_PASS_FUSE_DENSE) && WANTED(RT_PASS_SELECT))
        RT_TRY(rt_pass_fuse_dense(g, choice));
    if (WANTED(RT_PASS_LAYOUT) && WANTED(RT_PASS_SELECT))
        RT_TRY(rt_pass_layout(g, choice));
#ifdef RT_DEBUG
    RT_TRY(rt_graph_verify(*g));
#endif
    return RT_OK;
}

rt_status rt_plan_compile(rt_plan **out, const rt_graph *g, rt_plan_options o) {
    rt_plan *p = NULL;
    rt_vinfo *vi = NULL;
    rt_status st = RT_OK;
    *out = NULL;
    RT_TRY(rt_graph_status(g));
    const bool select = (o.skip & (1u << RT_PASS_SELECT)) == 0;
    if (o.v3)
        RT_TRY(rt_isa_check_v3());
    const unsigned mask = o.v3 ? (unsigned)RT_KERN_V3 : (unsigned)RT_KERN_ALL & ~o.forbid;
    const rt_choice choice = {.mask = select ? mask : 0, .frozen = o.frozen};
    RT_TRY(rt_calloc(&p, 1, sizeof *p));
    rt_arena_init(&p->arena);
    p->opt = o;
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
    RT_TRY_GOTO(rewrite(&p->g, o.skip, choice));
    count_leaves(p);
    RT_TRY_GOTO(rt_calloc(&vi, (size_t)rt_graph_count(p->g), sizeof *vi));
    RT_TRY_GOTO(rt_pass_select(p, vi, choice));
    RT_TRY_GOTO(rt_pass_schedule(p, vi));
    if ((o.skip & (1u << RT_PASS_JOIN)) == 0)
        rt_pass_join(p);
    RT_TRY_GOTO(rt_pass_memory(p, vi, (o.skip & (1u << RT_PASS_MEMORY)) == 0));
    rt_plan_number(p);
    *out = p;
    p = NULL;
done:
    rt_free(vi);
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
    for (int i = 0; i < p->phases && p->section != NULL; i++) {
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
    return p->slice_bytes * (size_t)p->slices + p->global_bytes + p->kept_bytes;
}
size_t rt_plan_kept_bytes(const rt_plan *p) {
    return p->kept_bytes;
}
int64_t rt_plan_slices(const rt_plan *p) {
    return p->slices;
}
double rt_plan_flops(const rt_plan *p) {
    return p->flops;
}
