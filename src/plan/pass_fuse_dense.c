/*
 * pass_fuse_dense.c - what stands behind a product of matrices moves into its store:
 *
 *     chain[add_chan #1, relu](matmul(x, w), b)     becomes     fused_matmul[matmul #1, add_chan #2, relu](x, w, b)
 *
 * and likewise the mask of a ReLU behind a data gradient. The product of a small layer takes little longer than
 * a pass over its result; of a large one, the fastest kernel fuses nothing. So the kernels are asked: only what
 * one of them other than the reference accepts is fused.
 */
#include "base/alloc.h"
#include "plan/plan_int.h"

typedef struct fuse {
    rt_rewrite w;
    rt_arena arena;
    const rt_kern *list[16];
    int kernels;      /* the last is the reference */
    rt_val *store_of; /* chain -> the product that it begins with, whose only reader it is; else 0 */
    bool *fused;      /* product: part of the chain behind it */
} fuse;

/* The product that chain u begins with and nothing else reads, neither other nodes nor u's later steps; or 0. */
static rt_val product_of(const fuse *f, rt_val u) {
    const rt_node *d = rt_graph_node(f->w.from, u);
    if (d->op != RT_OP_CHAIN || d->chain->n == RT_CHAIN_MAX || d->nin == RT_OP_MAX_IN)
        return 0;
    const rt_val v = d->in[0];
    const rt_node *x = rt_graph_node(f->w.from, v);
    if (x->op != RT_OP_MATMUL || x->type.kind != RT_KIND_ROWS || f->w.uses[v] != 1)
        return 0;
    for (int i = 0; i < d->chain->n; i++)
        for (int k = 0; k < rt_op_get(d->chain->step[i].op)->arity - 1; k++)
            if (d->chain->step[i].arg[k] == 0)
                return 0;
    return v;
}

/* The chain u and its product v as one node of the new graph, or 0 if no kernel takes it. */
static rt_status join(rt_val *out, fuse *f, rt_val v, rt_val u) {
    const rt_node *product = rt_graph_node(f->w.from, v), *d = rt_graph_node(f->w.from, u);
    rt_chain chain = {.n = d->chain->n + 1};
    rt_val in[RT_OP_MAX_IN] = {f->w.map[product->in[0]], f->w.map[product->in[1]]};
    *out = 0;
    chain.step[0] = (rt_chain_step){.op = product->op, .attr = product->attr, .arg = {1, -1}};
    for (int i = 0; i < d->chain->n; i++) {
        rt_chain_step *s = &chain.step[i + 1];
        *s = d->chain->step[i];
        for (int k = 0; k < 2; k++) /* operand 0 of the chain is now operands 0 and 1 */
            s->arg[k] = (int16_t)(s->arg[k] > 0 ? s->arg[k] + 1 : s->arg[k]);
    }
    for (int i = 1; i < d->nin; i++)
        in[i + 1] = f->w.map[d->in[i]];
    rt_graph_scope(f->w.to, d->name);
    const rt_val c = rt_graph_chain(f->w.to, &chain, in, d->nin + 1);
    RT_TRY(rt_graph_status(f->w.to));
    rt_problem p;
    RT_TRY(rt_problem_make(&p, &f->arena, f->w.to, c, NULL, RT_LAYOUT_PLAIN));
    for (int i = 0; i < f->kernels - 1 && *out == 0; i++)
        if (f->list[i]->supports(&p))
            *out = c;
    return RT_OK;
}

rt_status rt_pass_fuse_dense(rt_compile *k) {
    rt_graph **g = &k->p->g;
    const rt_choice choice = k->choice;
    fuse f = {0};
    rt_status st = RT_OK;
    const rt_val n = (rt_val)rt_graph_count(*g);
    RT_TRY(rt_kern_list(RT_OP_FUSED_MATMUL, rt_graph_dtype(*g), choice.mask, f.list, 16, &f.kernels));
    if (f.kernels < 2)
        return RT_OK;
    rt_arena_init(&f.arena);
    RT_TRY_GOTO(rt_rewrite_begin(&f.w, *g));
    RT_TRY_GOTO(rt_calloc(&f.store_of, n, sizeof *f.store_of));
    RT_TRY_GOTO(rt_calloc(&f.fused, n, sizeof *f.fused));
    for (rt_val v = 1; v < n; v++) {
        f.store_of[v] = product_of(&f, v);
        f.fused[f.store_of[v]] = true;
    }
    f.fused[0] = false;
    for (rt_val v = 1; v < n; v++) {
        rt_val joined = 0;
        if (f.fused[v])
            continue; /* with the chain behind it */
        if (f.store_of[v] != 0) {
            RT_TRY_GOTO(join(&joined, &f, f.store_of[v], v));
            if (joined == 0)
                rt_rewrite_copy(&f.w, f.store_of[v]);
        }
        if (joined != 0)
            f.w.map[v] = joined;
        else
            rt_rewrite_copy(&f.w, v);
    }
    RT_TRY_GOTO(rt_rewrite_end(&f.w, g));
done:
    rt_rewrite_abandon(&f.w);
    rt_arena_deinit(&f.arena);
    rt_free(f.store_of);
    rt_free(f.fused);
    return st;
}
