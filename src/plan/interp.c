/*
 * interp.c - the reference way to run a graph: every node in order, by its reference kernel, on the whole
 * batch, in the graph's own precision. What plans compute is compared with this.
 */
#include "base/alloc.h"
#include "kern/kern.h"
#include "plan/plan_int.h"
#include <string.h>

static rt_status constant(void **out, const rt_node *d) {
    const int64_t n = rt_shape_elems(&d->type.shape);
    RT_TRY(rt_alloc(out, (size_t)n * rt_dtype_size(d->type.dtype)));
    for (int64_t i = 0; i < n; i++) {
        if (d->type.dtype == RT_DTYPE_F64)
            ((double *)*out)[i] = d->data[i];
        else if (d->type.dtype == RT_DTYPE_F32)
            ((float *)*out)[i] = (float)d->data[i];
        else
            ((int32_t *)*out)[i] = (int32_t)d->data[i];
    }
    return RT_OK;
}

static rt_status leaf(void **out, const rt_node *d, const void *data) {
    const rt_desc desc = rt_desc_make(d->type.dtype, d->type.shape, RT_LAYOUT_PLAIN);
    RT_FAIL_IF(data == NULL, RT_E_USAGE, "interp: '%s' is not bound", d->name);
    RT_TRY(rt_alloc(out, rt_desc_bytes(&desc)));
    memcpy(*out, data, rt_desc_bytes(&desc));
    return RT_OK;
}

static rt_status compute(void **values, const rt_graph *g, rt_val v, rt_arena *arena, rt_run run) {
    const rt_node *d = rt_graph_node(g, v);
    rt_problem p;
    RT_TRY(rt_problem_make(&p, arena, g, v, NULL, d->layout));
    const rt_kern *k = rt_kern_ref(d->op, rt_graph_dtype(g));
    RT_FAIL_IF(k == NULL, RT_E_UNSUPPORTED, "interp: %s has no reference kernel", rt_op_get(d->op)->name);
    void *state = NULL, *scratch = NULL;
    size_t bytes = 0;
    rt_status st = RT_OK;
    if (k->prepare != NULL)
        RT_TRY(k->prepare(&p, &state, &bytes));
    if (bytes > 0)
        RT_TRY_GOTO(rt_alloc(&scratch, bytes));
    RT_TRY_GOTO(rt_alloc(&values[v], rt_desc_bytes(&p.out)));
    const void *in[RT_OP_MAX_IN];
    for (int i = 0; i < d->nin; i++)
        in[i] = values[d->in[i]];
    const rt_kern_ctx ctx = {
        .scratch = scratch, .seed = run.seed, .step = run.step, .batch = rt_graph_batch(g)};
    k->run(state, &p, values[v], in, &ctx);
done:
    rt_free(scratch);
    if (k->release != NULL)
        k->release(state);
    return st;
}

rt_status rt_interp_values(const rt_graph *g, const void *const *params, const void *const *inputs,
                           const void *const *feeds, void ***values, rt_run run) {
    rt_arena arena;
    rt_status st = RT_OK;
    void **val = NULL;
    *values = NULL;
    rt_arena_init(&arena);
    RT_TRY_GOTO(rt_graph_status(g));
    RT_TRY_GOTO(rt_calloc(&val, (size_t)rt_graph_count(g), sizeof *val));
    for (rt_val v = 1; v < (rt_val)rt_graph_count(g); v++) {
        const rt_node *d = rt_graph_node(g, v);
        switch (d->leaf) {
        case RT_LEAF_INPUT:
            RT_TRY_GOTO(leaf(&val[v], d, inputs[d->slot]));
            break;
        case RT_LEAF_FEED:
            RT_TRY_GOTO(leaf(&val[v], d, feeds[d->slot]));
            break;
        case RT_LEAF_PARAM:
            RT_TRY_GOTO(leaf(&val[v], d, params[d->slot]));
            break;
        case RT_LEAF_CONST:
            RT_TRY_GOTO(constant(&val[v], d));
            break;
        case RT_LEAF_NONE:
            RT_TRY_GOTO(compute(val, g, v, &arena, run));
            break;
        }
    }
    *values = val;
    val = NULL;
done:
    rt_interp_free(g, val);
    rt_arena_deinit(&arena);
    return st;
}

void rt_interp_free(const rt_graph *g, void **values) {
    for (int64_t v = 0; values != NULL && v < rt_graph_count(g); v++)
        rt_free(values[v]);
    rt_free(values);
}

rt_status rt_interp_run(const rt_graph *g, const void *const *params, const void *const *inputs,
                        const void *const *feeds, void *const *outputs, rt_run run) {
    void **values = NULL;
    RT_TRY(rt_interp_values(g, params, inputs, feeds, &values, run));
    int k = 0;
    for (int i = 0; i < rt_graph_outputs(g); i++) {
        const rt_graph_out *o = rt_graph_get_output(g, i);
        const rt_node *d = rt_graph_node(g, o->v);
        const rt_desc desc = rt_desc_make(d->type.dtype, d->type.shape, RT_LAYOUT_PLAIN);
        if (outputs[k] != NULL)
            memcpy(outputs[k], values[o->v], rt_desc_bytes(&desc));
        k++;
    }
    rt_interp_free(g, values);
    return RT_OK;
}
