/*
 * plan_cost.c - what each action of a plan has to do: its arithmetic and its traffic, for rooflines.
 *
 *     least time of an action = max(flops / peak, bytes / bandwidth)
 *
 * Arithmetic is nominal: convolutions are counted as direct ones, whatever the kernel does, and every
 * element-wise operation as one per element. Traffic is the stored size of each operand and result, once per
 * slice: a kernel that reads an array twice, or needs scratch that leaves the cache, moves more; one that
 * finds its operands in a cache moves less through memory. A step computed together with another
 * (statistics behind a convolution, both gradients of one) belongs to the action of that other one.
 */
#include "plan/plan_int.h"

void rt_plan_number(rt_plan *p) {
    p->nactions = 0;
    for (int64_t i = 0; i < p->prologue.n; i++)
        p->prologue.a[i].id = p->nactions++;
    for (int ph = 0; ph < p->laps; ph++) {
        for (int64_t i = 0; i < p->slice_actions[ph].n; i++)
            p->slice_actions[ph].a[i].id = p->nactions++;
        for (int64_t i = 0; i < p->section[ph].n; i++)
            p->section[ph].a[i].id = p->nactions++;
    }
}

int64_t rt_plan_actions(const rt_plan *p) {
    return p->nactions;
}

/* ids follow the order of the lists */
static const rt_action *find(const rt_plan *p, int64_t id, bool *sliced) {
    *sliced = false;
    if (id < p->prologue.n)
        return &p->prologue.a[id];
    id -= p->prologue.n;
    for (int ph = 0; ph < p->laps; id -= p->section[ph++].n) {
        *sliced = true;
        if (id < p->slice_actions[ph].n)
            return &p->slice_actions[ph].a[id];
        id -= p->slice_actions[ph].n;
        *sliced = false;
        if (id < p->section[ph].n)
            return &p->section[ph].a[id];
    }
    return NULL;
}

static bool is_conv(rt_op op) {
    return op == RT_OP_CONV2D || op == RT_OP_CONV2D_BWD_DATA || op == RT_OP_CONV2D_BWD_WEIGHTS;
}

/* The convolution or product inside a fused one. */
static const rt_chain_step *find_product(const rt_chain *c) {
    for (int i = 0; i < c->n; i++)
        if (is_conv(c->step[i].op) || c->step[i].op == RT_OP_MATMUL)
            return &c->step[i];
    return NULL;
}

/* A layer multiplies by w transposed, its data gradient by w, its weight gradient sums over the batch. */
static const char *product_kind(const rt_node *d) {
    const bool tb = d->op == RT_OP_FUSED_MATMUL ? d->chain->step[0].attr.tb : d->attr.tb;
    return d->type.kind == RT_KIND_SUM ? "dense, weight gradient" : tb ? "dense" : "dense, data gradient";
}

static const char *kind_of(const rt_node *d) {
    switch (d->op == RT_OP_FUSED_CONV ? find_product(d->chain)->op : d->op) {
    case RT_OP_CONV2D:
        return "convolution";
    case RT_OP_CONV2D_BWD_DATA:
        return "convolution, data gradient";
    case RT_OP_CONV2D_BWD_WEIGHTS:
        return "convolution, weight gradient";
    case RT_OP_MATMUL:
    case RT_OP_FUSED_MATMUL:
    case RT_OP_BMM:
        return product_kind(d);
    case RT_OP_CHAIN:
        return "element-wise chain";
    case RT_OP_BN_STATS:
    case RT_OP_BN_GSTATS:
        return "BN statistics";
    case RT_OP_BN_COEF:
    case RT_OP_BN_GCOEF:
    case RT_OP_BN_GPARAM:
    case RT_OP_BN_RUNNING:
        return "BN coefficients";
    default:
        return rt_op_get(d->op)->name;
    }
}

static double elems(const rt_node *d) {
    return (double)rt_shape_elems(&d->type.shape);
}

static double node_flops(const rt_graph *g, const rt_node *d) {
    rt_type in[RT_OP_MAX_IN];
    double flops = 0, bytes = 0;
    for (int i = 0; i < d->nin; i++)
        in[i] = rt_graph_node(g, d->in[i])->type;
    if (d->op != RT_OP_FUSED_CONV && d->op != RT_OP_FUSED_MATMUL) {
        rt_op_cost(&flops, &bytes, d->op, &d->attr, &d->type, in, d->nin);
        return flops;
    }
    const rt_chain_step *product = find_product(d->chain);
    const rt_node *x = rt_graph_node(g, d->in[0]), *w = rt_graph_node(g, d->in[product->arg[0]]);
    rt_op_cost(&flops, &bytes, product->op, &product->attr, &d->type, (rt_type[]){x->type, w->type}, 2);
    for (const rt_chain_step *s = d->chain->step; s < d->chain->step + d->chain->n; s++)
        if (s != product)
            flops += s > product ? elems(d) : elems(s->second ? w : x);
    return flops;
}

static bool is_repeated(const rt_node *d, int i) {
    for (int k = 0; k < i; k++)
        if (d->in[k] == d->in[i])
            return true;
    return false;
}

static bool is_read(const rt_node *d, rt_val v) {
    for (int i = 0; i < d->nin; i++)
        if (d->in[i] == v)
            return true;
    return false;
}

/* What is solved together with node d; what both read counts once. */
static void add_with(rt_action_cost *c, const rt_plan *p, const rt_node *d, const rt_pstep *with) {
    const rt_node *w = rt_graph_node(p->g, with->v);
    c->kind = "convolution, both gradients";
    c->flops += node_flops(p->g, w);
    c->bytes += (double)rt_desc_bytes(&with->p.out);
    for (int i = 0; i < with->p.nin; i++)
        if (!is_repeated(w, i) && !is_read(d, w->in[i]))
            c->bytes += (double)rt_desc_bytes(&with->p.in[i]);
}

static rt_action_cost step_cost(const rt_plan *p, const rt_pstep *s) {
    const rt_node *d = rt_graph_node(p->g, s->v);
    rt_action_cost c = {.kind = kind_of(d),
                        .kernel = s->kern->impl,
                        .shape = d->type.shape,
                        .flops = node_flops(p->g, d),
                        .bytes = (double)rt_desc_bytes(&s->p.out)};
    for (int i = 0; i < s->p.nin; i++)
        if (!is_repeated(d, i))
            c.bytes += (double)rt_desc_bytes(&s->p.in[i]);
    if (s->side > 0)
        c.bytes += (double)rt_desc_bytes(&p->step[s->side].p.out);
    if (s->with != NULL)
        add_with(&c, p, d, s->with);
    return c;
}

rt_action_cost rt_plan_action_cost(const rt_plan *p, int64_t i) {
    bool sliced;
    const rt_action *a = find(p, i, &sliced);
    rt_action_cost c = {.kind = "copy", .kernel = "-", .shape = a->desc.shape};
    if (a->kind == RT_ACT_STEP) {
        c = step_cost(p, &p->step[a->index]);
    } else if (a->kind == RT_ACT_REDUCE) {
        c.kind = "sum over slices";
        c.flops = (double)((p->slices - 1) * rt_desc_elems(&a->desc));
        c.bytes = (double)(p->slices + 1) * (double)rt_desc_bytes(&a->desc);
    } else {
        c.bytes = 2 * (double)rt_desc_bytes(&a->desc);
    }
    c.flops *= sliced ? (double)p->slices : 1;
    c.bytes *= sliced ? (double)p->slices : 1;
    return c;
}
