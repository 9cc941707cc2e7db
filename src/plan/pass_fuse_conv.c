/*
 * pass_fuse_conv.c - what stands around a convolution moves into its loads and stores.
 *
 * A kernel that transforms its data anyway (Winograd) can apply a chain of element-wise operations on the
 * way in and on the way out, and take sums of what it stores, without a pass over memory of its own. Three
 * patterns, in forward and backward halves alike:
 *
 *     load    conv(chain(x), w)                    a chain that only such convolutions read, or chains in their
 *             bwd_weights(chain(x), chain(dy))     loads, is never stored: BN and ReLU of the input, BN's gradient of
 *                                                  dy, BatchEnsemble's r and s
 *     store   chain(conv(x, w))                    a residual, a bias, ReLU's mask behind bwd_data
 *     sums    bn_stats(conv), bn_gstats(conv, x, coef)
 *
 * all of which become one node
 *
 *     fused_conv[bn_apply relu conv2d add bn_stats](x, coef, w, residual)
 *
 * while the statistics keep their own node, computed together with it (pass_select.c). A mask that is
 * relu(bn_apply(x)) is taken from x, which the sums read anyway; then no step is left that reads the
 * normalised value. Only what a kernel other than the reference accepts is fused: it is asked.
 */
#include "base/alloc.h"
#include "plan/plan_int.h"

enum { LOADS = 1, STORE = 2 }; /* what to put into a convolution */

typedef struct fuse {
    rt_rewrite w;
    rt_arena arena;
    const rt_kern *kern;
    bool frozen;
    bool *wanted;     /* convolution: the kernel would take it */
    rt_val *reader;   /* some reader */
    rt_val *store;    /* convolution -> chain behind it that goes into its store, or 0 */
    rt_val *store_of; /* and back */
    rt_val *stats;    /* value -> statistics of it, or 0 */
    int32_t *taken;   /* chain: how many of its readers can do without it */
} fuse;

static bool is_conv(rt_op op) {
    return op == RT_OP_CONV2D || op == RT_OP_CONV2D_BWD_DATA || op == RT_OP_CONV2D_BWD_WEIGHTS;
}

static bool is_rows_chain(const rt_node *d) {
    return d->op == RT_OP_CHAIN && d->type.kind == RT_KIND_ROWS && d->type.shape.rank == 4;
}

static bool is_plain_relu(const rt_chain_step *s) {
    return s->op == RT_OP_RELU && s->attr.alpha == 0;
}

/* relu(bn_apply(x, coef)) */
static bool is_bn_relu(const rt_node *d) {
    return is_rows_chain(d) && d->chain->n == 2 && d->chain->step[0].op == RT_OP_BN_APPLY &&
           is_plain_relu(&d->chain->step[1]);
}

/* Whether step s of chain u is the mask of a ReLU behind batch normalisation; c gets that value. */
static bool is_bn_mask(const fuse *f, const rt_node *u, const rt_chain_step *s, rt_val *c) {
    if (s->op != RT_OP_RELU_BWD || s->swap || s->attr.alpha != 0)
        return false;
    *c = u->in[s->arg[0]];
    return f->store_of[*c] == 0 && is_bn_relu(rt_graph_node(f->w.from, *c));
}

/* Whether the kernel would compute node v. */
static rt_status suits(bool *yes, fuse *f, const rt_graph *g, rt_val v) {
    rt_problem p;
    rt_layout in[RT_OP_MAX_IN], out;
    RT_TRY(rt_problem_make(&p, &f->arena, g, v, NULL, RT_LAYOUT_PLAIN));
    p.frozen = f->frozen;
    *yes = rt_problem_suits(f->kern, &p, in, &out);
    return RT_OK;
}

/* ---- what can be fused ---- */

/* The chain behind convolution v begins with it, or with a sum of something else and it. */
static bool can_store(const rt_graph *g, rt_val v, rt_val u) {
    const rt_node *d = rt_graph_node(g, u);
    if (!is_rows_chain(d))
        return false;
    int at = -1, reads = 0;
    for (int i = 0; i < d->nin; i++)
        if (d->in[i] == v)
            at = i;
    for (int i = 0; i < d->chain->n; i++)
        for (int k = 0; k < rt_op_get(d->chain->step[i].op)->arity - 1; k++)
            reads += d->chain->step[i].arg[k] == at;
    return at == 0 ? reads == 0
                   : reads == 1 && d->chain->step[0].op == RT_OP_ADD && d->chain->step[0].arg[0] == at;
}

static void take(fuse *f, rt_val c) {
    if (is_rows_chain(rt_graph_node(f->w.from, c)))
        f->taken[c]++;
}

/* The chain that the chain v goes on from, or 0. */
static rt_val inner(const fuse *f, rt_val v) {
    const rt_node *d = rt_graph_node(f->w.from, v);
    if (!is_rows_chain(d) || f->store_of[v] != 0 || f->store_of[d->in[0]] != 0 ||
        !is_rows_chain(rt_graph_node(f->w.from, d->in[0])))
        return 0;
    for (int i = 0; i < d->chain->n; i++)
        if (d->chain->step[i].arg[0] == 0 || d->chain->step[i].arg[1] == 0)
            return 0;
    return d->in[0];
}

static rt_status analyse(fuse *f) {
    const rt_graph *g = f->w.from;
    const rt_val n = (rt_val)rt_graph_count(g);
    for (rt_val v = 1; v < n; v++) {
        const rt_node *d = rt_graph_node(g, v);
        for (int i = 0; i < d->nin; i++)
            f->reader[d->in[i]] = v;
        if (d->op == RT_OP_BN_STATS || d->op == RT_OP_BN_GSTATS)
            f->stats[d->in[0]] = v;
        if (is_conv(d->op))
            RT_TRY(suits(&f->wanted[v], f, g, v));
    }
    for (rt_val v = 1; v < n; v++) {
        const rt_node *d = rt_graph_node(g, v);
        if (!f->wanted[v])
            continue;
        take(f, d->in[0]);
        if (d->op == RT_OP_CONV2D_BWD_WEIGHTS) {
            take(f, d->in[1]);
            continue;
        }
        const rt_val u = f->reader[v];
        if (f->w.uses[v] != 1 || u == 0 || f->store_of[u] != 0 || !can_store(g, v, u))
            continue;
        f->store[v] = u;
        f->store_of[u] = v;
        const rt_node *ud = rt_graph_node(g, u);
        for (int i = 0; i < ud->chain->n; i++) {
            rt_val c;
            if (is_bn_mask(f, ud, &ud->chain->step[i], &c))
                f->taken[c]++;
        }
    }
    for (rt_val v = n - 1; v > 0; v--) { /* readers of a chain have been seen before it */
        const rt_val c = inner(f, v);
        if (c != 0 && f->taken[v] > 0 && f->taken[v] == f->w.uses[v])
            f->taken[c]++;
    }
    return RT_OK;
}

/* ---- putting a fused convolution together ---- */

typedef struct parts {
    rt_chain chain;
    rt_val in[RT_OP_MAX_IN];
    int nin;
    bool full; /* more steps than a chain has room for */
} parts;

static int16_t operand(parts *p, rt_val v) {
    for (int i = 0; i < p->nin; i++)
        if (p->in[i] == v)
            return (int16_t)i;
    p->in[p->nin] = v;
    return (int16_t)p->nin++;
}

/* Appends a step with these operands besides the running value (0: none). */
static rt_chain_step *add_step(parts *p, rt_op op, rt_attr attr, rt_val first, rt_val second) {
    if (p->chain.n == RT_CHAIN_MAX || p->nin + 2 > RT_OP_MAX_IN) {
        p->full = true;
        p->chain.n = 0;
    }
    rt_chain_step *s = &p->chain.step[p->chain.n++];
    *s = (rt_chain_step){.op = op, .attr = attr, .arg = {-1, -1}};
    if (first != 0)
        s->arg[0] = operand(p, first);
    if (second != 0)
        s->arg[1] = operand(p, second);
    return s;
}

/* Steps [first, n) of chain d of the old graph. */
static void add_chain(parts *p, const fuse *f, const rt_node *d, int first, bool second) {
    for (int i = first; i < d->chain->n; i++) {
        const rt_chain_step *s = &d->chain->step[i];
        rt_attr attr = s->attr;
        rt_val c;
        if (i == 0)
            attr.n = 0; /* the mark of remat: nothing is left to share */
        if (!second && is_bn_mask(f, d, s, &c)) {
            const rt_node *b = rt_graph_node(f->w.from, c);
            add_step(p, RT_OP_BN_RELU_BWD, (rt_attr){.members = b->chain->step[0].attr.members},
                     f->w.map[b->in[0]], f->w.map[b->in[b->chain->step[0].arg[0]]]);
            continue;
        }
        rt_chain_step *to = add_step(p, s->op, attr, s->arg[0] >= 0 ? f->w.map[d->in[s->arg[0]]] : 0,
                                     s->arg[1] >= 0 ? f->w.map[d->in[s->arg[1]]] : 0);
        to->swap = s->swap;
        to->second = second;
    }
}

/* Whether value c is a chain that all of its readers compute in their loads, and none before it in its store. */
static bool is_load(const fuse *f, rt_val c) {
    return f->store_of[c] == 0 && f->taken[c] > 0 && f->taken[c] == f->w.uses[c];
}

/* The chains that make operand i of convolution d and go into its load, last first; and what they begin with. */
enum { NESTED = 2 };
static int load_chains(const fuse *f, const rt_node *d, int i, int what, const rt_node *load[NESTED],
                       rt_val *root) {
    int n = 0;
    *root = d->in[i];
    if ((what & LOADS) == 0 || (i == 1 && d->op != RT_OP_CONV2D_BWD_WEIGHTS))
        return 0;
    for (rt_val c = *root; n < NESTED && c != 0 && is_load(f, c); c = inner(f, c)) {
        load[n++] = rt_graph_node(f->w.from, c);
        *root = load[n - 1]->in[0];
    }
    return n;
}

/* Convolution v with its loads, the chain u behind it (u == v: none) and sums, as `what` says. */
static void assemble(parts *p, const fuse *f, rt_val v, rt_val u, int what) {
    const rt_graph *g = f->w.from;
    const rt_node *d = rt_graph_node(g, v), *load[2][NESTED];
    rt_val root[2];
    int loads[2];
    for (int i = 0; i < 2; i++) {
        loads[i] = load_chains(f, d, i, what, load[i], &root[i]);
        root[i] = f->w.map[root[i]];
    }
    *p = (parts){0};
    operand(p, root[0]);
    for (int i = 0; i < 2; i++)
        for (int k = loads[i] - 1; k >= 0; k--)
            add_chain(p, f, load[i][k], 0, i == 1);
    add_step(p, d->op, d->attr, root[1], 0);
    const bool store = u != v && (what & STORE) != 0;
    if (store) {
        const rt_node *ud = rt_graph_node(g, u);
        const bool begins = ud->in[0] == v;
        if (!begins) /* other + conv */
            add_step(p, RT_OP_ADD, (rt_attr){0}, f->w.map[ud->in[0]], 0);
        add_chain(p, f, ud, begins ? 0 : 1, false);
    }
    const rt_val s = f->stats[store ? u : v];
    const rt_node *sd = s != 0 ? rt_graph_node(g, s) : NULL;
    if (sd == NULL || d->op == RT_OP_CONV2D_BWD_WEIGHTS)
        return;
    if (sd->op == RT_OP_BN_STATS)
        add_step(p, sd->op, sd->attr, 0, 0);
    else if (f->w.map[sd->in[1]] != 0 && f->w.map[sd->in[2]] != 0)
        add_step(p, sd->op, sd->attr, f->w.map[sd->in[1]], f->w.map[sd->in[2]]);
}

/* Emits convolution v and the chain u behind it, fused as far as the kernel goes. */
static rt_status emit(fuse *f, rt_val v, rt_val u) {
    static const int TRIES[] = {LOADS | STORE, STORE, LOADS};
    parts p;
    for (int i = 0; i < 3; i++) {
        assemble(&p, f, v, u, TRIES[i]);
        if (p.full || p.chain.n < 2)
            continue;
        rt_graph_scope(f->w.to, rt_graph_node(f->w.from, u)->name);
        const rt_val c = rt_graph_chain(f->w.to, &p.chain, p.in, p.nin);
        RT_TRY(rt_graph_status(f->w.to));
        bool yes = false;
        RT_TRY(suits(&yes, f, f->w.to, c));
        if (!yes)
            continue;
        f->w.map[(TRIES[i] & STORE) != 0 ? u : v] = c;
        if ((TRIES[i] & STORE) == 0 && u != v)
            rt_rewrite_copy(&f->w, u);
        return RT_OK;
    }
    rt_rewrite_copy(&f->w, v);
    if (u != v)
        rt_rewrite_copy(&f->w, u);
    return RT_OK;
}

rt_status rt_pass_fuse_conv(rt_compile *k) {
    rt_graph **g = &k->p->g;
    const rt_choice c = k->choice;
    fuse f = {.frozen = c.frozen};
    rt_status st = RT_OK;
    const rt_kern *list[16];
    int kernels = 0;
    const size_t n = (size_t)rt_graph_count(*g);
    RT_TRY(rt_kern_list(RT_OP_FUSED_CONV, rt_graph_dtype(*g), c.mask, list, 16, &kernels));
    if (kernels < 2) /* the reference alone: nothing to gain */
        return RT_OK;
    f.kern = list[0];
    rt_arena_init(&f.arena);
    RT_TRY_GOTO(rt_rewrite_begin(&f.w, *g));
    RT_TRY_GOTO(rt_calloc(&f.wanted, n, sizeof *f.wanted));
    RT_TRY_GOTO(rt_calloc(&f.reader, n, sizeof *f.reader));
    RT_TRY_GOTO(rt_calloc(&f.store, n, sizeof *f.store));
    RT_TRY_GOTO(rt_calloc(&f.store_of, n, sizeof *f.store_of));
    RT_TRY_GOTO(rt_calloc(&f.stats, n, sizeof *f.stats));
    RT_TRY_GOTO(rt_calloc(&f.taken, n, sizeof *f.taken));
    RT_TRY_GOTO(analyse(&f));
    for (rt_val v = 1; v < (rt_val)n; v++) {
        if (f.store[v] != 0)
            continue; /* with the chain behind it */
        if (f.store_of[v] != 0)
            RT_TRY_GOTO(emit(&f, f.store_of[v], v));
        else if (f.wanted[v])
            RT_TRY_GOTO(emit(&f, v, v));
        else
            rt_rewrite_copy(&f.w, v);
    }
    RT_TRY_GOTO(rt_rewrite_end(&f.w, g));
done:
    rt_rewrite_abandon(&f.w);
    rt_arena_deinit(&f.arena);
    rt_free(f.wanted);
    rt_free(f.reader);
    rt_free(f.store);
    rt_free(f.store_of);
    rt_free(f.stats);
    rt_free(f.taken);
    return st;
}
