/*
 * net_layers.c - what a network consists of: one line per layer with its output, parameters and work.
 *
 * The list is read off the graph for one sample instead of being kept beside the builders, so it cannot
 * disagree with what is computed. A node belongs to the layer whose parameters it reads ("conv1.weight",
 * "conv1.bias" -> "conv1"); pools and the standardisation are layers of their own; any other node
 * (activation, sum with the shortcut) belongs to the layer that made its first operand.
 */
#include "base/alloc.h"
#include "nn/nn_int.h"
#include <stdio.h>
#include <string.h>

typedef struct rt_walk {
    const rt_graph *g;
    const rt_params *params;
    rt_layer_info *layer;
    int *of; /* layer of a value, -1: none */
    int n, pools;
} rt_walk;

/* Length of "a.b" in "a.b.weight". */
static size_t layer_len(const char *param) {
    const char *dot = strrchr(param, '.');
    return dot ? (size_t)(dot - param) : strlen(param);
}

static int layer_named(rt_walk *w, const char *name, size_t len) {
    rt_layer_info *l;
    len = RT_MIN(len, sizeof l->name - 1);
    for (int i = w->n - 1; i >= 0; i--)
        if (strlen(w->layer[i].name) == len && memcmp(w->layer[i].name, name, len) == 0)
            return i;
    l = &w->layer[w->n];
    memset(l, 0, sizeof *l);
    memcpy(l->name, name, len);
    return w->n++;
}

static const char *kind_of_op(rt_op op) {
    switch (op) {
    case RT_OP_CONV2D:
        return "conv";
    case RT_OP_MATMUL:
        return "linear";
    case RT_OP_BN_APPLY:
        return "bn";
    case RT_OP_MAXPOOL:
    case RT_OP_GLOBAL_AVGPOOL:
        return "pool";
    default:
        return NULL;
    }
}

static int pick_layer(rt_walk *w, const rt_node *node) {
    for (int i = 0; i < node->nin; i++) {
        const rt_node *in = rt_graph_node(w->g, node->in[i]);
        if (in->leaf == RT_LEAF_PARAM)
            return layer_named(w, in->name, layer_len(in->name));
        if (in->leaf == RT_LEAF_CONST && w->n == 0) {
            int l = layer_named(w, "standardise", 11);
            snprintf(w->layer[l].kind, sizeof w->layer[l].kind, "scale");
            return l;
        }
    }
    if (node->op == RT_OP_BN_APPLY)
        return w->of[node->in[1]];
    if (node->op == RT_OP_MAXPOOL || node->op == RT_OP_GLOBAL_AVGPOOL) {
        char name[24];
        snprintf(name, sizeof name, "pool%d", ++w->pools);
        return layer_named(w, name, strlen(name));
    }
    return w->of[node->in[0]];
}

static void visit(rt_walk *w, rt_val v) {
    const rt_node *node = rt_graph_node(w->g, v);
    w->of[v] = -1;
    if (node->op == RT_OP_NONE)
        return;
    int l = w->of[v] = pick_layer(w, node);
    if (l < 0 || node->type.groups == 0)
        return;
    rt_type in[RT_OP_MAX_IN];
    for (int i = 0; i < node->nin; i++)
        in[i] = rt_graph_node(w->g, node->in[i])->type;
    double flops, bytes;
    rt_op_cost(&flops, &bytes, node->op, &node->attr, &node->type, in, node->nin);
    rt_layer_info *info = &w->layer[l];
    info->flops += flops;
    if (kind_of_op(node->op) && !info->kind[0])
        snprintf(info->kind, sizeof info->kind, "%s", kind_of_op(node->op));
    if (node->op == RT_OP_RESHAPE)
        return;
    info->out = node->type.shape;
    info->out.rank--;
    memmove(info->out.d, info->out.d + 1, (size_t)info->out.rank * sizeof info->out.d[0]);
}

static void count_params(rt_walk *w) {
    for (int i = 0; i < rt_params_count(w->params); i++) {
        const rt_param *p = rt_params_get(w->params, i);
        if (p->role != RT_ROLE_STATE)
            w->layer[layer_named(w, p->name, layer_len(p->name))].params += p->count;
    }
}

rt_status rt_net_layers(const rt_net *net, rt_layer_info **out, int *n) {
    rt_walk w = {0};
    rt_graph *g = NULL;
    rt_params *params = NULL;
    rt_status st;
    *out = NULL;
    *n = 0;
    RT_TRY_GOTO(rt_graph_create(&g, 1, RT_DTYPE_F32));
    RT_TRY_GOTO(rt_params_create(&params));
    rt_build b = {.g = g, .params = params, .declare = true, .prefix = ""};
    rt_net_forward(net, &b, rt_graph_input(g, "x", RT_DTYPE_F32, net->config.input, 1));
    st = rt_graph_status(g);
    if (st != RT_OK) {
        st = rt_error_prefix(st, "architecture %s", net->config.spec);
        goto done;
    }
    size_t values = (size_t)rt_graph_count(g);
    w.g = g;
    w.params = params;
    RT_TRY_GOTO(rt_calloc(&w.of, values, sizeof *w.of));
    RT_TRY_GOTO(rt_calloc(&w.layer, values + (size_t)rt_params_count(params), sizeof *w.layer));
    for (rt_val v = 1; v < values; v++)
        visit(&w, v);
    count_params(&w);
    *out = w.layer;
    *n = w.n;
    w.layer = NULL;
done:
    rt_free(w.layer);
    rt_free(w.of);
    rt_params_destroy(&params);
    rt_graph_destroy(&g);
    return st;
}
