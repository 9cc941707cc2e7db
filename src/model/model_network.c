/*
 * model_network.c - the network of a model written down, so that someone without this program can compute it: every
 * operation in evaluation mode, in order, as JSON in the metadata under `network`.
 *
 *     [["conv2d", [0, "conv1.weight"], {"stride": 1, "pad": 1}],
 *      ["batch_norm", [1, "bn.running_mean", "bn.running_var", "bn.weight", "bn.bias"], {"eps": 1e-05}], ...]
 *
 * Step i (from 1) is [operation, inputs, attributes]; an input is the number of an earlier step, 0 for the standardised
 * input, or the name of a tensor of the file. The last step gives the outputs. It is read off the graph that
 * predictions run, so shortcuts, poolings and constants are those of the program. docs/formats/model.md has the
 * operations.
 */
#include "base/alloc.h"
#include "base/json.h"
#include "model/model_int.h"

typedef struct listing {
    const rt_graph *g;
    rt_json j;
    int64_t *step; /* by value: its number */
    bool *raw;     /* by value: the input, perhaps repeated for members and standardised */
    int64_t steps;
} listing;

static void put_inputs(listing *l, const rt_node *n) {
    for (int i = 0; i < n->nin; i++) {
        const rt_node *from = rt_graph_node(l->g, n->in[i]);
        if (from->op == RT_OP_BN_COEF_EVAL)
            put_inputs(l, from);
        else if (from->leaf == RT_LEAF_PARAM)
            rt_json_str(&l->j, NULL, from->name);
        else
            rt_json_i64(&l->j, NULL, l->step[n->in[i]]);
    }
}

static void put_attributes(listing *l, const rt_node *n) {
    rt_json *j = &l->j;
    const rt_attr *a = &n->attr;
    switch ((int)n->op) {
    case RT_OP_CONV2D:
    case RT_OP_MAXPOOL:
        if (n->op == RT_OP_MAXPOOL)
            rt_json_i64s(j, "kernel", (int64_t[]){a->kh, a->kw}, 2);
        rt_json_i64(j, "stride", a->stride);
        rt_json_i64(j, "pad", a->pad);
        break;
    case RT_OP_BN_APPLY:
        rt_json_f64(j, "eps", rt_graph_node(l->g, n->in[1])->attr.alpha);
        break;
    case RT_OP_RELU:
        rt_json_f64(j, "slope", a->alpha);
        break;
    case RT_OP_SCALE:
        rt_json_f64(j, "by", a->alpha);
        rt_json_f64(j, "plus", a->beta);
        break;
    case RT_OP_MATMUL:
        rt_json_bool(j, "transpose_a", a->ta);
        rt_json_bool(j, "transpose_b", a->tb);
        break;
    case RT_OP_RESHAPE:
        rt_json_i64s(j, "row", n->type.shape.d + 1, n->type.shape.rank - 1);
        break;
    case RT_OP_TILE_MEMBERS:
        rt_json_i64(j, "times", a->members);
        break;
    default:
        break;
    }
}

static bool is_constant(const listing *l, const rt_node *n) {
    for (int i = 0; i < n->nin; i++)
        if (rt_graph_node(l->g, n->in[i])->leaf == RT_LEAF_CONST)
            return true;
    return false;
}

static rt_status put_step(listing *l, rt_val v) {
    const rt_node *n = rt_graph_node(l->g, v);
    if (n->op == RT_OP_NONE || n->op == RT_OP_BN_COEF_EVAL)
        return RT_OK;
    l->raw[v] = l->raw[n->in[0]] && (n->op == RT_OP_TILE_MEMBERS || is_constant(l, n));
    if (is_constant(
            l,
            n)) { /* the standardisation, which `preprocessing` has: before or behind a repetition is the same */
        RT_FAIL_IF(!l->raw[v], RT_E_UNSUPPORTED, "a network with constants inside has no written form");
        l->step[v] = l->step[n->in[0]];
        return RT_OK;
    }
    rt_json_array_begin(&l->j, NULL);
    rt_json_str(&l->j, NULL, n->op == RT_OP_BN_APPLY ? "batch_norm" : rt_op_get(n->op)->name);
    rt_json_array_begin(&l->j, NULL);
    put_inputs(l, n);
    rt_json_array_end(&l->j);
    rt_json_object_begin(&l->j, NULL);
    put_attributes(l, n);
    rt_json_object_end(&l->j);
    rt_json_array_end(&l->j);
    l->step[v] = ++l->steps;
    return RT_OK;
}

rt_status rt_model_write_network(const rt_model *m, rt_str *out) {
    rt_graph *g = NULL;
    listing l = {0};
    rt_status st;
    RT_TRY_GOTO(rt_graph_create(&g, 1, RT_DTYPE_F32));
    rt_build b = {.g = g, .params = m->params}; /* nothing is declared: all parameters are there */
    const rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_model_input(m), 1),
                 z = rt_student_forward(m->student, &b, x);
    RT_TRY_GOTO(rt_graph_status(g));
    l.g = g;
    RT_TRY_GOTO(rt_calloc(&l.step, (size_t)rt_graph_count(g), sizeof *l.step));
    RT_TRY_GOTO(rt_calloc(&l.raw, (size_t)rt_graph_count(g), sizeof *l.raw));
    l.raw[x] = true;
    rt_json_init(&l.j, out, false);
    rt_json_array_begin(&l.j, NULL);
    for (rt_val v = 1; v < (rt_val)rt_graph_count(g); v++)
        RT_TRY_GOTO(put_step(&l, v));
    rt_json_array_end(&l.j);
    RT_ASSERT(l.step[z] == l.steps);
    (void)z;
    st = rt_str_status(out);
done:
    rt_free(l.step);
    rt_free(l.raw);
    rt_graph_destroy(&g);
    return st;
}
