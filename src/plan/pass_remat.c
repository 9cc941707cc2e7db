/*
 * pass_remat.c - recompute instead of remember. A chain of the forward half (say ReLU of BN of a
 * convolution's output) that the backward half reads again is computed a second time there, when all it
 * reads is kept for the backward half anyway. Then only raw convolution outputs live from forward to
 * backward, which halves the memory of a convolutional network for one more pass over it.
 *
 * The second copy is marked (attr.n = 1 in its first step) so that the graph does not share it with the
 * first; schedule runs it as late as it can.
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

rt_status rt_pass_remat(rt_graph **g) {
    const rt_graph *f = *g;
    const rt_val n = (rt_val)rt_graph_count(f);
    rt_val *last = NULL, *copy = NULL;
    rt_rewrite w = {0};
    rt_graph *out = NULL;
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_calloc(&last, n, sizeof *last));
    RT_TRY_GOTO(rt_calloc(&copy, n, sizeof *copy));
    RT_TRY_GOTO(rt_rewrite_begin(&w, f));
    rt_val border = n; /* first node of the backward half */
    for (rt_val v = 1; v < n; v++) {
        const rt_node *d = rt_graph_node(f, v);
        if (d->leaf == RT_LEAF_NONE && is_backward(d->op) && v < border)
            border = v;
        for (int i = 0; i < d->nin; i++)
            last[d->in[i]] = v;
    }
    for (rt_val v = 1; v < n; v++) {
        const rt_node *d = rt_graph_node(f, v);
        /* operands of a backward node that are forward chains over values that live on anyway: read the
         * second copy */
        for (int i = 0; v >= border && i < d->nin; i++) {
            const rt_val u = d->in[i];
            const rt_node *c = rt_graph_node(f, u);
            if (u >= border || c->op != RT_OP_CHAIN || c->type.kind != RT_KIND_ROWS ||
                c->type.shape.rank != 4)
                continue;
            if (copy[u] == 0) {
                bool free_to_recompute = true;
                for (int k = 0; k < c->nin; k++) {
                    const rt_node *x = rt_graph_node(f, c->in[k]);
                    const bool kept =
                        x->leaf != RT_LEAF_NONE || x->type.groups == 0 || last[c->in[k]] >= last[u];
                    free_to_recompute = free_to_recompute && kept;
                }
                if (!free_to_recompute)
                    continue;
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
    RT_TRY_GOTO(rt_rewrite_end(&w, &out));
    rt_graph_destroy(g);
    *g = out;
done:
    rt_rewrite_abandon(&w);
    rt_free(last);
    rt_free(copy);
    return st;
}
