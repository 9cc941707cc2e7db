/*
 * graph_print.c - a graph as text, one value per line:
 *
 *     %1 = input 0 'x' : f32 [1x] 128x3x32x32
 *     %7 = param 0 'conv1.weight' : f32 16x3x3x3
 *     %12 = conv2d(%1, %7) stride=1 pad=1 : f32 [1x] 128x16x32x32  stem
 *     output 'loss' = %40
 *
 * "[4x]" are the groups of a batched value; a layout other than plain follows the shape; the scope ends the
 * line.
 */
#include "graph/graph_int.h"

void rt_type_print(const rt_type *t, rt_str *out) {
    rt_str_appendf(out, "%s ", rt_dtype_name(t->dtype));
    if (t->groups > 0)
        rt_str_appendf(out, "[%dx] ", (int)t->groups);
    rt_shape_print(&t->shape, out);
}

static void print_const(const rt_node *nd, rt_str *out) {
    int64_t n = rt_shape_elems(&nd->type.shape), shown = RT_MIN(n, 8);
    rt_str_append(out, "const");
    for (int64_t i = 0; i < shown; i++) {
        char buf[40];
        rt_format_f64(buf, nd->data[i]);
        rt_str_appendf(out, " %s", buf);
    }
    if (shown < n)
        rt_str_append(out, " ...");
}

static void print_attr(const rt_attr *a, rt_str *out) {
    size_t before = out->len;
    rt_str_append_char(out, ' ');
    rt_attr_print(a, out);
    if (out->len == before + 1 && out->st == RT_OK)
        out->p[--out->len] = '\0';
}

/* {add_chan(., 1) relu sub(2, .)}: the dot is the running value, numbers are inputs of the chain. */
static void print_chain(const rt_chain *chain, rt_str *out) {
    rt_str_append(out, " {");
    for (int i = 0; i < chain->n; i++) {
        const rt_chain_step *s = &chain->step[i];
        const rt_op_info *info = rt_op_get(s->op);
        rt_str_appendf(out, "%s%s", i > 0 ? "; " : "", info->name);
        if (info->arity == 2)
            rt_str_appendf(out, s->swap ? "(%d, .)" : "(., %d)", (int)s->arg[0]);
        else if (info->arity == 3)
            rt_str_appendf(out, s->swap ? "(%d, ., %d)" : "(., %d, %d)", (int)s->arg[0], (int)s->arg[1]);
        print_attr(&s->attr, out);
    }
    rt_str_append_char(out, '}');
}

static void print_op(const rt_node *nd, rt_str *out) {
    rt_str_appendf(out, "%s(", rt_op_get(nd->op)->name);
    for (int i = 0; i < nd->nin; i++)
        rt_str_appendf(out, "%s%%%u", i > 0 ? ", " : "", (unsigned)nd->in[i]);
    rt_str_append_char(out, ')');
    if (nd->chain != NULL)
        print_chain(nd->chain, out);
    else
        print_attr(&nd->attr, out);
}

static void print_node(const rt_node *nd, rt_str *out) {
    switch (nd->leaf) {
    case RT_LEAF_INPUT:
        rt_str_appendf(out, "input %d '%s'", (int)nd->slot, nd->name);
        break;
    case RT_LEAF_FEED:
        rt_str_appendf(out, "feed %d '%s'", (int)nd->slot, nd->name);
        break;
    case RT_LEAF_PARAM:
        rt_str_appendf(out, "param %d '%s'", (int)nd->slot, nd->name);
        break;
    case RT_LEAF_CONST:
        print_const(nd, out);
        break;
    case RT_LEAF_NONE:
        print_op(nd, out);
        break;
    }
    rt_str_append(out, " : ");
    rt_type_print(&nd->type, out);
    if (nd->layout != RT_LAYOUT_PLAIN)
        rt_str_appendf(out, " %s", rt_layout_name(nd->layout));
    if (nd->leaf == RT_LEAF_NONE && nd->name != NULL)
        rt_str_appendf(out, "  %s", nd->name);
    rt_str_append_char(out, '\n');
}

void rt_graph_print(const rt_graph *g, rt_str *out) {
    for (int64_t v = 1; v < g->count; v++) {
        rt_str_appendf(out, "%%%lld = ", (long long)v);
        print_node(&g->nodes[v], out);
    }
    for (int i = 0; i < g->nouts; i++) {
        const rt_graph_out *o = &g->outs[i];
        if (o->update_slot >= 0)
            rt_str_appendf(out, "update %d '%s' = %%%u\n", (int)o->update_slot, o->name, (unsigned)o->v);
        else
            rt_str_appendf(out, "output '%s' = %%%u\n", o->name, (unsigned)o->v);
    }
    if (g->st != RT_OK)
        rt_str_appendf(out, "error: %s\n", g->err.text);
}
