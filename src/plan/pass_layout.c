/*
 * pass_layout.c - every value gets the memory layout its kernels like, and reorder nodes stand where two of
 * them disagree.
 *
 * Nodes are visited in order. Each asks its kernels, best first: a kernel either names the layouts it wants
 * (convolutions want channel-blocked data and their own weight blocks), or it is indifferent and follows
 * its operands: 4-D operands take the first blocked layout among them, and a 4-D result without 4-D
 * operands takes the layout that the network's convolutions use. The first kernel that supports the outcome
 * decides. One reorder per value and layout: the graph shares equal nodes. Parameters are reordered once
 * per step, in the prologue. Outputs are plain.
 */
#include "plan/plan_int.h"

typedef struct layouts {
    rt_layout in[RT_OP_MAX_IN], out;
} layouts;

static rt_layout first_blocked(const rt_problem *p) {
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].shape.rank == 4 && rt_layout_block(p->in[i].layout) > 1)
            return p->in[i].layout;
    return RT_LAYOUT_PLAIN;
}

/* What an indifferent kernel gets: `l` on all 4-D batched operands and results, plain elsewhere. */
static void follow(layouts *x, const rt_problem *p, rt_layout l) {
    for (int i = 0; i < p->nin; i++)
        x->in[i] = p->in[i].shape.rank == 4 && p->in_groups[i] > 0 ? l : RT_LAYOUT_PLAIN;
    x->out = p->out.shape.rank == 4 && p->out_groups > 0 ? l : RT_LAYOUT_PLAIN;
}

static bool accepts(const rt_kern *k, rt_problem p, const layouts *x, rt_desc *scratch) {
    for (int i = 0; i < p.nin; i++) {
        scratch[i] = p.in[i];
        scratch[i].layout = x->in[i];
    }
    p.in = scratch;
    p.out.layout = x->out;
    return k->supports == NULL || k->supports(&p);
}

/* Layouts of the best kernel for a problem whose descs carry the operands' present layouts. */
static rt_status choose(layouts *x, const rt_problem *p, rt_dtype dtype, unsigned mask, rt_layout common) {
    const rt_kern *list[16];
    int n = 0;
    rt_desc scratch[RT_OP_MAX_IN];
    RT_TRY(rt_kern_list(p->op, dtype, mask, list, 16, &n));
    const rt_layout blocked = first_blocked(p);
    for (int i = 0; i < n; i++) {
        if (list[i]->layouts != NULL) {
            if (rt_problem_suits(list[i], p, x->in, &x->out))
                return RT_OK;
            continue;
        }
        const rt_layout want[] = {blocked != RT_LAYOUT_PLAIN ? blocked : common, RT_LAYOUT_PLAIN};
        /* a 4-D result from a plain 4-D operand stays plain: the kernel that needs it blocked will say so */
        const bool has_plain4 = blocked == RT_LAYOUT_PLAIN && p->nin > 0 && p->in[0].shape.rank == 4;
        for (int k = has_plain4 ? 1 : 0; k < 2; k++) {
            follow(x, p, want[k]);
            if (accepts(list[i], *p, x, scratch))
                return RT_OK;
        }
    }
    RT_FAIL(RT_E_UNSUPPORTED, "no kernel for %s", rt_op_get(p->op)->name);
}

rt_status rt_pass_layout(rt_compile *k) {
    rt_graph **g = &k->p->g;
    const rt_choice how = k->choice;
    rt_rewrite w;
    rt_arena arena;
    rt_status st = RT_OK;
    rt_layout common = RT_LAYOUT_PLAIN;
    rt_arena_init(&arena);
    RT_TRY_GOTO(rt_rewrite_begin(&w, *g));
    for (rt_val v = 1; v < (rt_val)rt_graph_count(*g); v++) {
        rt_rewrite_copy(&w, v);
        RT_TRY_GOTO(rt_graph_status(w.to));
        const rt_node *d = rt_graph_node(*g, v);
        if (d->leaf != RT_LEAF_NONE || d->op == RT_OP_REORDER)
            continue;
        /* the copy has its operands in their present layouts: ask, then make the node anew on reordered
         * operands */
        const rt_val c = w.map[v];
        rt_problem p;
        RT_TRY_GOTO(rt_problem_make(&p, &arena, w.to, c, NULL, RT_LAYOUT_PLAIN));
        p.frozen = how.frozen;
        layouts x;
        RT_TRY_GOTO(choose(&x, &p, rt_graph_dtype(*g), how.mask, common));
        rt_val in[RT_OP_MAX_IN];
        bool moved = false;
        for (int i = 0; i < d->nin; i++) {
            in[i] = w.map[d->in[i]];
            if (rt_graph_node(w.to, in[i])->layout != x.in[i]) {
                in[i] = rt_graph_reorder(w.to, in[i], x.in[i]);
                moved = true;
            }
        }
        rt_graph_scope(w.to, d->name);
        if (moved)
            w.map[v] = d->chain != NULL ? rt_graph_chain(w.to, d->chain, in, d->nin)
                                        : rt_graph_op(w.to, d->op, d->attr, in, d->nin);
        RT_TRY_GOTO(rt_graph_status(w.to));
        rt_graph_set_layout(w.to, w.map[v], x.out);
        if (rt_layout_block(x.out) > 1 && x.out <= RT_LAYOUT_C16)
            common = x.out;
    }
    for (int i = 0; i < rt_graph_outputs(*g); i++) {
        const rt_val o = rt_graph_get_output(*g, i)->v;
        if (rt_graph_node(w.to, w.map[o])->layout != RT_LAYOUT_PLAIN)
            w.map[o] = rt_graph_reorder(w.to, w.map[o], RT_LAYOUT_PLAIN);
    }
    RT_TRY_GOTO(rt_rewrite_end(&w, g));
done:
    rt_rewrite_abandon(&w);
    rt_arena_deinit(&arena);
    return st;
}
