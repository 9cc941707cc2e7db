/*
 * symmetry.c - which axes of which parameters may be renumbered together, read off the network's graph.
 *
 * Every axis of every value (but the rows of a batch) starts as a class of its own, "places that can be
 * permuted". Walking the graph, an operation says which axes must move together, and their classes are
 * united:
 *
 *     y = x w^T          x's features ~ w's axis 1,  y's features ~ w's axis 0
 *     y = conv(x, w)     x's channels ~ w's axis 1,  y's channels ~ w's axis 0;  height and width cannot move
 *     y = x + b, BN      channels of x, y ~ b, gamma, beta, running mean and variance
 *     y = a + b          a ~ b ~ y, axis by axis: a residual stream becomes one class
 *     flatten (c, h, w)  y's features ~ c with a repeat: a channel is h w consecutive features
 *
 * Axes of inputs, outputs and constants cannot move, nor can those that meet an operation unknown here: their
 * class is fixed, with a reason. What is left free and belongs to a parameter is a bundle. There is no table
 * of architectures; a new one works as soon as its operations are known.
 *
 * Union-find with weights: a class is a root with n places, or `up` consecutive places of it are one of its
 * parent's. Uniting places that are blocks of the other side's keeps the coarser ones: whole blocks then
 * move.
 */
#include "align/align.h"
#include "base/alloc.h"
#include <stdio.h>
#include <string.h>

typedef struct axis_class {
    int parent; /* itself: a root */
    int64_t up; /* places of this class that are one place of the parent's */
    int64_t n;
    bool fixed, natural; /* natural: of inputs, outputs and space, nothing to tell */
    const char *reason;
} axis_class;

/* A place of class `of` is `repeat` consecutive elements of the axis. of -1: the rows of a batch. */
typedef struct label {
    int of;
    int64_t repeat;
} label;

typedef struct walk {
    const rt_graph *g;
    axis_class *class;
    int count;
    label *label; /* (values, RT_MAX_RANK) */
} walk;

static label *at(const walk *w, rt_val v, int axis) {
    return &w->label[(int64_t)v * RT_MAX_RANK + axis];
}

/* The root of a label, and how many elements one of its places is. */
static label root_of(const walk *w, label l) {
    while (w->class[l.of].parent != l.of) {
        l.repeat *= w->class[l.of].up;
        l.of = w->class[l.of].parent;
    }
    return l;
}

static void fix(const walk *w, label l, const char *reason) {
    if (l.of < 0)
        return;
    axis_class *c = &w->class[root_of(w, l).of];
    c->fixed = true;
    c->natural = c->natural || reason == NULL;
    if (reason && !c->reason)
        c->reason = reason;
}

/* child's places become blocks of parent's. */
static void attach(const walk *w, label child, label parent) {
    axis_class *c = &w->class[child.of], *p = &w->class[parent.of];
    c->parent = parent.of;
    c->up = parent.repeat / child.repeat;
    p->fixed = p->fixed || c->fixed;
    p->natural = p->natural || c->natural;
    p->reason = p->reason ? p->reason : c->reason;
}

static void unite(const walk *w, label a, label b) {
    if (a.of < 0 || b.of < 0)
        return;
    a = root_of(w, a);
    b = root_of(w, b);
    if (a.of == b.of) {
        if (a.repeat != b.repeat)
            fix(w, a, "its units meet in blocks of different sizes");
    } else if (a.repeat % b.repeat == 0) {
        attach(w, b, a);
    } else if (b.repeat % a.repeat == 0) {
        attach(w, a, b);
    } else {
        fix(w, a, "its units meet others in blocks that do not fit");
        fix(w, b, "its units meet others in blocks that do not fit");
    }
}

static void fix_value(const walk *w, rt_val v, int first, const char *reason) {
    for (int i = first; i < rt_graph_node(w->g, v)->type.shape.rank; i++)
        fix(w, *at(w, v, i), reason);
}

/* ---- one rule per kind of operation; the labels of the result exist already ---- */

static void rule_same(const walk *w, rt_val v, const rt_node *node, int inputs) {
    for (int k = 0; k < inputs; k++)
        for (int i = 0; i < node->type.shape.rank; i++)
            unite(w, *at(w, v, i), *at(w, node->in[k], i));
}

/* A per-channel operand (C) beside x. */
static void rule_channel(const walk *w, rt_val v, const rt_node *node) {
    rule_same(w, v, node, 1);
    if (rt_graph_node(w->g, node->in[1])->type.shape.rank == 1)
        unite(w, *at(w, v, 1), *at(w, node->in[1], 0));
    else
        fix(w, *at(w, v, 1), "values per member");
}

static void rule_matmul(const walk *w, rt_val v, const rt_node *node) {
    const int ta = node->attr.ta, tb = node->attr.tb;
    unite(w, *at(w, v, 0), *at(w, node->in[0], ta ? 1 : 0));
    unite(w, *at(w, node->in[0], ta ? 0 : 1), *at(w, node->in[1], tb ? 1 : 0));
    unite(w, *at(w, v, 1), *at(w, node->in[1], tb ? 0 : 1));
}

static void rule_conv(const walk *w, rt_val v, const rt_node *node) {
    unite(w, *at(w, node->in[0], 1), *at(w, node->in[1], 1));
    unite(w, *at(w, v, 1), *at(w, node->in[1], 0));
    fix_value(w, node->in[0], 2, NULL);
    fix_value(w, node->in[1], 2, NULL);
    fix_value(w, v, 2, NULL);
}

static void rule_pool(const walk *w, rt_val v, const rt_node *node) {
    unite(w, *at(w, v, 1), *at(w, node->in[0], 1));
    fix_value(w, node->in[0], 2, NULL);
    fix_value(w, v, 2, NULL);
}

static void rule_bn_coef(const walk *w, rt_val v, const rt_node *node) {
    fix(w, *at(w, v, 0), NULL);
    for (int k = 0; k < node->nin; k++) {
        if (rt_graph_node(w->g, node->in[k])->type.shape.rank == 1)
            unite(w, *at(w, v, 1), *at(w, node->in[k], 0));
        else
            fix_value(w, node->in[k], 0, "values per member");
    }
}

/* Only flattening is followed: the first axis of a row, with the others behind it. */
static void rule_reshape(const walk *w, rt_val v, const rt_node *node) {
    const rt_type *from = &rt_graph_node(w->g, node->in[0])->type, *to = &node->type;
    if (rt_shape_equal(&from->shape, &to->shape)) {
        rule_same(w, v, node, 1);
    } else if (from->groups > 0 && to->shape.rank == 2) {
        label first = *at(w, node->in[0], 1);
        first.repeat *= to->shape.d[1] / from->shape.d[1];
        unite(w, *at(w, v, 1), first);
        fix_value(w, node->in[0], 2, NULL);
    } else {
        fix_value(w, node->in[0], 0, "a reshape that is not flattening");
        fix_value(w, v, 0, "a reshape that is not flattening");
    }
}

static void rule_unknown(const walk *w, rt_val v, const rt_node *node) {
    const char *name = rt_op_get(node->op)->name;
    fix_value(w, v, 0, name);
    for (int k = 0; k < node->nin; k++)
        fix_value(w, node->in[k], 0, name);
}

static bool is_plain_eltwise(const walk *w, const rt_node *node) {
    if (!(rt_op_get(node->op)->flags & RT_OP_ELTWISE) || node->op == RT_OP_DROPOUT)
        return false;
    for (int k = 0; k < node->nin; k++)
        if (!rt_shape_equal(&rt_graph_node(w->g, node->in[k])->type.shape, &node->type.shape))
            return false;
    return true;
}

static void visit_op(const walk *w, rt_val v, const rt_node *node) {
    switch (node->op) {
    case RT_OP_MATMUL:
        rule_matmul(w, v, node);
        break;
    case RT_OP_CONV2D:
        rule_conv(w, v, node);
        break;
    case RT_OP_MAXPOOL:
    case RT_OP_GLOBAL_AVGPOOL:
        rule_pool(w, v, node);
        break;
    case RT_OP_ADD_CHAN:
    case RT_OP_MUL_CHAN:
        rule_channel(w, v, node);
        break;
    case RT_OP_MUL_SCALAR:
        rule_same(w, v, node, 1);
        break;
    case RT_OP_BN_COEF_EVAL:
        rule_bn_coef(w, v, node);
        break;
    case RT_OP_BN_APPLY:
        rule_same(w, v, node, 1);
        unite(w, *at(w, v, 1), *at(w, node->in[1], 1));
        break;
    case RT_OP_RESHAPE:
        rule_reshape(w, v, node);
        break;
    default:
        if (is_plain_eltwise(w, node))
            rule_same(w, v, node, node->nin);
        else
            rule_unknown(w, v, node);
    }
}

static void visit(walk *w, rt_val v) {
    const rt_node *node = rt_graph_node(w->g, v);
    for (int i = 0; i < node->type.shape.rank; i++) {
        *at(w, v, i) = (label){-1, 1};
        if (i == 0 && node->type.groups > 0)
            continue;
        w->class[w->count] = (axis_class){.parent = w->count, .up = 1, .n = node->type.shape.d[i]};
        at(w, v, i)->of = w->count++;
    }
    if (node->leaf == RT_LEAF_NONE)
        visit_op(w, v, node);
    else if (node->leaf != RT_LEAF_PARAM)
        fix_value(w, v, 0, NULL);
}

/* ---- from classes to bundles ---- */

static void layer_name(char out[64], const char *param) {
    const char *dot = strrchr(param, '.');
    snprintf(out, 64, "%.*s", dot ? (int)RT_MIN(dot - param, 63) : 63, param);
}

/* What a class is called: after the first parameter that writes it. */
static void name_class(const walk *w, const rt_params *params, const rt_val *leaf, int class, char out[64]) {
    const rt_param *name = NULL;
    for (int axis = 0; axis < 2 && !name; axis++)
        for (int slot = 0; slot < rt_params_count(params) && !name; slot++) {
            const rt_param *p = rt_params_get(params, slot);
            if (leaf[slot] && p->shape.rank > axis && root_of(w, *at(w, leaf[slot], axis)).of == class)
                name = p;
        }
    layer_name(out, name ? name->name : "");
}

static rt_status collect(rt_symmetry *s, const walk *w, const rt_params *params, const rt_val *leaf) {
    int *bundle = NULL; /* of a class: 1 + bundle, -1 - fixed, 0: not seen */
    rt_status st;
    RT_TRY(rt_calloc(&bundle, (size_t)w->count + 1, sizeof *bundle));
    s->slots = rt_params_count(params);
    RT_TRY_GOTO(rt_calloc(&s->axis, (size_t)s->slots * RT_MAX_RANK + 1, sizeof *s->axis));
    RT_TRY_GOTO(rt_calloc(&s->bundle, (size_t)s->slots * RT_MAX_RANK + 1, sizeof *s->bundle));
    RT_TRY_GOTO(rt_calloc(&s->fixed, (size_t)s->slots * RT_MAX_RANK + 1, sizeof *s->fixed));
    for (int k = 0; k < s->slots * RT_MAX_RANK; k++) {
        const int slot = k / RT_MAX_RANK, axis = k % RT_MAX_RANK;
        s->axis[k] = (rt_sym_axis){-1, 1};
        if (!leaf[slot] || axis >= rt_params_get(params, slot)->shape.rank)
            continue;
        const label l = root_of(w, *at(w, leaf[slot], axis));
        const axis_class *c = &w->class[l.of];
        if (c->n < 2 || (c->fixed && c->natural))
            continue;
        if (c->fixed) {
            if (bundle[l.of] == 0) {
                rt_sym_fixed *f = &s->fixed[s->nfixed++];
                f->n = c->n;
                name_class(w, params, leaf, l.of, f->name);
                snprintf(f->reason, sizeof f->reason, "%s", c->reason);
                bundle[l.of] = -1;
            }
            continue;
        }
        if (bundle[l.of] == 0) {
            rt_sym_bundle *g = &s->bundle[s->bundles++];
            g->n = c->n;
            g->offset = s->total;
            s->total += c->n;
            name_class(w, params, leaf, l.of, g->name);
            bundle[l.of] = s->bundles;
        }
        s->axis[k] = (rt_sym_axis){bundle[l.of] - 1, l.repeat};
    }
done:
    rt_free(bundle);
    return st;
}

rt_status rt_symmetry_of(rt_symmetry *out, const rt_graph *g, const rt_params *params, rt_val y) {
    walk w = {.g = g};
    rt_val *leaf = NULL;
    const rt_val count = (rt_val)rt_graph_count(g);
    rt_status st;
    memset(out, 0, sizeof *out);
    RT_TRY_GOTO(rt_calloc(&leaf, (size_t)rt_params_count(params) + 1, sizeof *leaf));
    RT_TRY_GOTO(rt_calloc(&w.class, (size_t)count * RT_MAX_RANK, sizeof *w.class));
    RT_TRY_GOTO(rt_calloc(&w.label, (size_t)count * RT_MAX_RANK, sizeof *w.label));
    for (rt_val v = 1; v < count; v++) {
        visit(&w, v);
        if (rt_graph_node(g, v)->leaf == RT_LEAF_PARAM)
            leaf[rt_graph_node(g, v)->slot] = v;
    }
    fix_value(&w, y, 0, NULL);
    st = collect(out, &w, params, leaf);
    if (st != RT_OK)
        rt_symmetry_deinit(out);
done:
    rt_free(leaf);
    rt_free(w.class);
    rt_free(w.label);
    return st;
}

rt_status rt_symmetry_find(rt_symmetry *out, const rt_net *net, rt_params *params) {
    rt_graph *g = NULL;
    rt_status st;
    memset(out, 0, sizeof *out);
    RT_TRY(rt_graph_create(&g, 1, RT_DTYPE_F32));
    rt_build b = {.g = g, .params = params};
    const rt_val y =
        rt_net_forward(net, &b, rt_graph_input(g, "x", RT_DTYPE_F32, rt_net_config(net)->input, 1));
    RT_TRY_GOTO(rt_graph_status(g));
    st = rt_symmetry_of(out, g, params, y);
done:
    rt_graph_destroy(&g);
    return st;
}

void rt_symmetry_deinit(rt_symmetry *s) {
    rt_free(s->bundle);
    rt_free(s->axis);
    rt_free(s->fixed);
    memset(s, 0, sizeof *s);
}

void rt_symmetry_print(const rt_symmetry *s, const rt_params *params, rt_str *out) {
    for (int g = 0; g < s->bundles; g++) {
        rt_str_appendf(out, "%s (%lld):", s->bundle[g].name, (long long)s->bundle[g].n);
        for (int k = 0; k < s->slots * RT_MAX_RANK; k++) {
            if (s->axis[k].bundle != g)
                continue;
            rt_str_appendf(out, " %s[%d]", rt_params_get(params, k / RT_MAX_RANK)->name, k % RT_MAX_RANK);
            if (s->axis[k].repeat > 1)
                rt_str_appendf(out, "x%lld", (long long)s->axis[k].repeat);
        }
        rt_str_append_char(out, '\n');
    }
    for (int i = 0; i < s->nfixed; i++)
        rt_str_appendf(out, "%s (%lld): cannot move: %s\n", s->fixed[i].name, (long long)s->fixed[i].n,
                       s->fixed[i].reason);
}
