/*
 * pass_remat.c - recompute instead of remember. A chain of the forward half (say ReLU of BN of a
 * convolution's output) that the backward half reads again is computed a second time there, when all it
 * reads is kept for the backward half anyway. Then only raw convolution outputs live from forward to
 * backward, which halves the memory of a convolutional network for one more pass over it.
 *
 * The second copy is marked (attr.n = 1 in its first step) so that the graph does not share it with the
 * first; schedule runs it as late as it can.
 *
 * What a recomputed chain reads must itself be kept, not recomputed: of the chained outputs of post-activation
 * blocks, y = relu(bn(x) + previous y), every second one is kept and gives the one behind it.
 */
#include "base/alloc.h"
#include "plan/plan_int.h"

static bool is_backward(rt_op op) {
    switch (op) {
    case RT_OP_RELU_BWD:
    case RT_OP_CLIP_BWD:
    case RT_OP_CONV2D_BWD_DATA:
    case RT_OP_CONV2D_BWD_WEIGHTS:
    case RT_OP_MAXPOOL_BWD:
    case RT_OP_GLOBAL_AVGPOOL_BWD:
    case RT_OP_BN_GSTATS:
    case RT_OP_SOFTMAX_BWD:
    case RT_OP_LOG_SOFTMAX_BWD:
    case RT_OP_CE_LABEL_BWD:
    case RT_OP_CE_DIST_BWD:
        return true;
    default:
        return false;
    }
}

/* Whether v is such a chain; again[] says it of what stands before it. */
static bool is_cheap(const rt_graph *g, rt_val v, rt_val border, const rt_val *last, const bool *again) {
    const rt_node *c = rt_graph_node(g, v);
    if (v >= border || last[v] < border || c->op != RT_OP_CHAIN || c->type.kind != RT_KIND_ROWS ||
        c->type.shape.rank != 4)
        return false;
    for (int k = 0; k < c->nin; k++) {
        const rt_val u = c->in[k];
        const rt_node *x = rt_graph_node(g, u);
        if (x->leaf == RT_LEAF_NONE && x->type.groups != 0 && (last[u] < last[v] || again[u]))
            return false;
    }
    return true;
}

rt_status rt_pass_remat(rt_compile *made) {
    rt_graph **g = &made->p->g;
    const rt_graph *f = *g;
    const rt_val n = (rt_val)rt_graph_count(f);
    rt_val *last = NULL, *copy = NULL;
    bool *again = NULL;
    rt_rewrite w = {0};
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_calloc(&last, n, sizeof *last));
    RT_TRY_GOTO(rt_calloc(&copy, n, sizeof *copy));
    RT_TRY_GOTO(rt_calloc(&again, n, sizeof *again));
    RT_TRY_GOTO(rt_rewrite_begin(&w, f));
    rt_val border = n; /* first node of the backward half */
    for (rt_val v = 1; v < n; v++) {
        const rt_node *d = rt_graph_node(f, v);
        if (d->leaf == RT_LEAF_NONE && is_backward(d->op) && v < border)
            border = v;
        for (int i = 0; i < d->nin; i++)
            last[d->in[i]] = v;
    }
    for (rt_val v = 1; v < n; v++)
        again[v] = is_cheap(f, v, border, last, again);
    for (rt_val v = 1; v < n; v++) {
        const rt_node *d = rt_graph_node(f, v);
        /* backward nodes read the second copy */
        for (int i = 0; v >= border && i < d->nin; i++) {
            const rt_val u = d->in[i];
            const rt_node *c = rt_graph_node(f, u);
            if (!again[u])
                continue;
            if (copy[u] == 0) {
                rt_chain chain = *c->chain;
                rt_val in[RT_OP_MAX_IN];
                for (int k = 0; k < c->nin; k++)
                    in[k] = w.map[c->in[k]];
                chain.step[0].attr.n = 1;
                copy[u] = rt_graph_chain(w.to, &chain, in, c->nin);
            }
            w.map[u] = copy[u]; /* later readers are backward readers, too */
        }
        rt_rewrite_copy(&w, v);
    }
    RT_TRY_GOTO(rt_rewrite_end(&w, g));
done:
    rt_rewrite_abandon(&w);
    rt_free(last);
    rt_free(copy);
    rt_free(again);
    return st;
}
