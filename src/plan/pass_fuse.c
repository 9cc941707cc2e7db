/*
 * pass_fuse.c - element-wise operations become chains: one pass over memory for as many of them as follow
 * each other.
 *
 * Every element-wise node turns into a chain of length one, appended to the chain that makes one of its
 * operands when no other node reads that operand. Example, BN and ReLU before a convolution, with
 * BatchEnsemble's r:
 *
 *     bn_apply(x, coef) -> relu -> mul_chan(r)      becomes      chain[bn_apply #1, relu, mul_chan #2](x, coef, r)
 *
 * Further patterns (a chain inside a convolution's load, statistics in its store) are added as rules on the
 * result of this pass.
 */
#include "plan/plan_int.h"
#include <string.h>

/* Can node u of the new graph take one more step, given that its only reader is the node at hand? */
static bool can_extend(const rt_graph *g, rt_val u) {
    const rt_node *d = rt_graph_node(g, u);
    return d->op == RT_OP_CHAIN && d->chain->n < RT_CHAIN_MAX && d->nin + 2 <= RT_OP_MAX_IN;
}

static int16_t operand(rt_val *in, int *nin, rt_val v) {
    for (int i = 0; i < *nin; i++)
        if (in[i] == v)
            return (int16_t)i;
    in[*nin] = v;
    return (int16_t)(*nin)++;
}

static bool is_two_operand(rt_op op) {
    return op == RT_OP_ADD || op == RT_OP_SUB || op == RT_OP_MUL || op == RT_OP_DIV;
}

static void fuse_node(rt_rewrite *w, rt_val v) {
    const rt_node *d = rt_graph_node(w->from, v);
    int main_operand = -1;
    /* operands that may be the accumulator: in[0], or the second of a two-operand operation */
    for (int i = 0; i < (is_two_operand(d->op) ? 2 : 1) && main_operand < 0; i++)
        if (w->uses[d->in[i]] == 1 && can_extend(w->to, w->map[d->in[i]]))
            main_operand = i;
    rt_chain chain = {0};
    rt_val in[RT_OP_MAX_IN];
    int nin = 0;
    if (main_operand >= 0) {
        const rt_node *u = rt_graph_node(w->to, w->map[d->in[main_operand]]);
        chain = *u->chain;
        nin = u->nin;
        memcpy(in, u->in, (size_t)nin * sizeof *in);
    } else {
        main_operand = 0;
        in[nin++] = w->map[d->in[0]];
    }
    rt_chain_step *s = &chain.step[chain.n++];
    *s = (rt_chain_step){.op = d->op, .attr = d->attr, .arg = {-1, -1}, .swap = main_operand == 1};
    int k = 0;
    for (int i = 0; i < d->nin; i++)
        if (i != main_operand)
            s->arg[k++] = operand(in, &nin, w->map[d->in[i]]);
    rt_graph_scope(w->to, d->name);
    w->map[v] = rt_graph_chain(w->to, &chain, in, nin);
}

rt_status rt_pass_fuse(rt_compile *k) {
    rt_graph **g = &k->p->g;
    rt_rewrite w;
    RT_TRY(rt_rewrite_begin(&w, *g));
    for (rt_val v = 1; v < (rt_val)rt_graph_count(*g); v++) {
        const rt_node *d = rt_graph_node(*g, v);
        const bool eltwise = d->op != RT_OP_NONE && (rt_op_get(d->op)->flags & RT_OP_ELTWISE) != 0 &&
                             (d->type.dtype == RT_DTYPE_F32 || d->type.dtype == RT_DTYPE_F64);
        if (eltwise && rt_graph_status(w.to) == RT_OK)
            fuse_node(&w, v);
        else
            rt_rewrite_copy(&w, v);
    }
    return rt_rewrite_end(&w, g);
}
