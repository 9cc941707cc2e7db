/*
 * pass_rank1.c - the gradients of a BatchEnsemble's convolution from one gradient of weights per member.
 *
 * y_m = s_m o conv(r_m o a_m, w), differentiated operation by operation, reads its data again and again: ds takes
 * products of dy and the raw convolution, dr of a and the gradient that comes out of the convolution. So these
 * have to exist in memory, r and s stand between them and what is behind, and nothing can move into the
 * convolution's loads and stores. But the convolution is linear in r, w and s, and with
 *
 *     d_m = bwd_weights(a_m, dy_m)
 *
 * all three gradients are sums over d_m times two of r_m, w and s_m (RANK1_BWD), of a size that does not grow with
 * batch and image:
 *
 *     bwd_weights(r o a, s o dy)                  =>  rank1_bwd[w](d, w, r, s)
 *     chan_dot(bwd_data(s o dy, w), a)            =>  rank1_bwd[r](d, w, r, s)
 *     chan_dot(dy, conv(r o a, w))                =>  rank1_bwd[s](d, w, r, s)
 *
 * What is left of r and s is applied to values that no other step reads. A gradient per member and slice is M times
 * as large as the one it replaces: the pass leaves layers alone in which it is larger than the data of the slice.
 */
#include "base/alloc.h"
#include "plan/plan_int.h"

enum { OF_W, OF_R, OF_S }; /* RANK1_BWD's index */

/* What stands for a value: one of the gradients of a convolution. */
typedef struct part {
    rt_val a, dy, w, r, s; /* a = 0: none */
    rt_attr attr;          /* of bwd_weights, per member */
    int32_t of;
} part;

static const rt_type *type_of(const rt_graph *g, rt_val v) {
    return &rt_graph_node(g, v)->type;
}

/* x o numbers of each member. */
static bool is_fast(const rt_graph *g, rt_val v, int32_t members) {
    const rt_node *d = rt_graph_node(g, v);
    if (d->op != RT_OP_MUL_CHAN)
        return false;
    const rt_shape *s = &type_of(g, d->in[1])->shape;
    return s->rank == 2 && s->d[0] == members;
}

/* The value op(x, y), or op(x, anything) if y is 0; 0 if there is none. */
static rt_val find(const rt_graph *g, rt_op op, rt_val x, rt_val y) {
    for (rt_val v = RT_MAX(x, y) + 1; x != 0 && v < (rt_val)rt_graph_count(g); v++) {
        const rt_node *d = rt_graph_node(g, v);
        if (d->op == op && d->in[0] == x && (y == 0 || d->in[1] == y))
            return v;
    }
    return 0;
}

static rt_val find_dot(const rt_graph *g, rt_val x, rt_val y, int32_t members) {
    const rt_val v = y != 0 ? find(g, RT_OP_CHAN_DOT, x, y) : 0;
    return v != 0 && rt_graph_node(g, v)->attr.members == members ? v : 0;
}

/* Whether gradients per member are small enough, and a kernel other than the reference makes them. */
static rt_status worthwhile(bool *yes, const rt_graph *g, const part *p, rt_choice c) {
    const rt_kern *list[16];
    rt_layout in[RT_OP_MAX_IN], out;
    int n = 0;
    const rt_type *t[2] = {type_of(g, p->a), type_of(g, p->dy)};
    rt_shape each = type_of(g, p->w)->shape;
    each.d[0] *= p->attr.members;
    *yes = false;
    if (rt_shape_elems(&each) > rt_shape_elems(&t[0]->shape) + rt_shape_elems(&t[1]->shape))
        return RT_OK;
    const rt_dtype dtype = rt_graph_dtype(g);
    const rt_desc desc[2] = {rt_desc_make(dtype, t[0]->shape, RT_LAYOUT_PLAIN),
                             rt_desc_make(dtype, t[1]->shape, RT_LAYOUT_PLAIN)};
    const rt_problem q = {.op = RT_OP_CONV2D_BWD_WEIGHTS,
                          .attr = p->attr,
                          .nin = 2,
                          .in = desc,
                          .in_groups = (const int32_t[]){t[0]->groups, t[1]->groups},
                          .out = rt_desc_make(dtype, each, RT_LAYOUT_PLAIN),
                          .n = rt_graph_batch(g),
                          .kind = RT_KIND_SUM,
                          .frozen = c.frozen};
    RT_TRY(rt_kern_list(q.op, dtype, c.mask, list, 16, &n));
    for (int i = 0; i < n - 1 && !*yes; i++)
        *yes = rt_problem_suits(list[i], &q, in, &out);
    return RT_OK;
}

/* Finds the gradients of the convolution whose weights' gradient is v. */
static rt_status match(part *parts, const rt_graph *g, rt_val v, rt_choice c) {
    const rt_node *d = rt_graph_node(g, v);
    if (d->op != RT_OP_CONV2D_BWD_WEIGHTS)
        return RT_OK;
    const rt_val scaled = d->in[0], dz = d->in[1]; /* r o a and s o dy */
    const int32_t members = type_of(g, scaled)->groups;
    if (members < 2 || d->attr.members > 1 || !is_fast(g, scaled, members) || !is_fast(g, dz, members))
        return RT_OK;
    const rt_val z = find(g, RT_OP_CONV2D, scaled, 0);
    if (z == 0)
        return RT_OK;
    const rt_node *conv = rt_graph_node(g, z), *x = rt_graph_node(g, scaled), *y = rt_graph_node(g, dz);
    part p = {.a = x->in[0], .r = x->in[1], .dy = y->in[0], .s = y->in[1], .w = conv->in[1], .attr = d->attr};
    p.attr.members = members;
    const rt_val back = find(g, RT_OP_CONV2D_BWD_DATA, dz, p.w);
    const rt_val of[3] = {v, back != 0 ? find_dot(g, back, p.a, members) : 0, find_dot(g, p.dy, z, members)};
    if (conv->attr.stride != d->attr.stride || conv->attr.pad != d->attr.pad ||
        !rt_shape_equal(&d->type.shape, &type_of(g, p.w)->shape) || (of[OF_R] == 0 && of[OF_S] == 0))
        return RT_OK;
    bool yes = false;
    RT_TRY(worthwhile(&yes, g, &p, c));
    for (p.of = 0; p.of < 3 && yes; p.of++)
        parts[of[p.of]] = p; /* that of value 0 is never read */
    return RT_OK;
}

static void emit(rt_rewrite *w, rt_val v, const part *p) {
    rt_graph_scope(w->to, rt_graph_node(w->from, v)->name);
    const rt_val data[2] = {w->map[p->a], w->map[p->dy]};
    const rt_val d = rt_graph_op(w->to, RT_OP_CONV2D_BWD_WEIGHTS, p->attr, data, 2);
    const rt_val in[4] = {d, w->map[p->w], w->map[p->r], w->map[p->s]};
    w->map[v] = rt_graph_op(w->to, RT_OP_RANK1_BWD, (rt_attr){.index = p->of}, in, 4);
}

rt_status rt_pass_rank1(rt_compile *k) {
    rt_graph **g = &k->p->g;
    const rt_choice c = k->choice;
    rt_rewrite w;
    part *parts = NULL;
    rt_status st = RT_OK;
    const rt_val n = (rt_val)rt_graph_count(*g);
    RT_TRY(rt_rewrite_begin(&w, *g));
    RT_TRY_GOTO(rt_calloc(&parts, n, sizeof *parts));
    for (rt_val v = 1; v < n; v++)
        RT_TRY_GOTO(match(parts, *g, v, c));
    for (rt_val v = 1; v < n; v++)
        if (parts[v].a != 0)
            emit(&w, v, &parts[v]);
        else
            rt_rewrite_copy(&w, v);
    RT_TRY_GOTO(rt_rewrite_end(&w, g));
done:
    rt_rewrite_abandon(&w);
    rt_free(parts);
    return st;
}
