/*
 * taps.c - the network run over training rows, for the sake of values inside it.
 *
 * A tap is the pair (sum x, sum x^2) per channel of some value; the operation is the one batch normalisation
 * has for its own statistics. Rows come in a fixed shuffled order (files may be sorted by class), in whole
 * batches, augmented as the models saw them: statistics of plain images are others.
 */
#include "base/alloc.h"
#include "model/taps.h"
#include <stdio.h>
#include <string.h>

enum { TAP_BATCH = 128 };

static rt_status add_tap(rt_taps *t, rt_val stats, int64_t count, int first, int second) {
    char name[32];
    RT_TRY(rt_realloc(&t->tap, (size_t)t->n * sizeof *t->tap, (size_t)(t->n + 1) * sizeof *t->tap));
    rt_tap *tap = &t->tap[t->n++];
    *tap = (rt_tap){.first = first, .second = second, .count = count};
    tap->channels = rt_params_get(t->in.params, second)->count;
    tap->output = rt_graph_outputs(t->g);
    snprintf(name, sizeof name, "tap%d", t->n);
    rt_graph_output(t->g, name, stats);
    return rt_calloc(&tap->sums, (size_t)tap->channels, 2 * sizeof(double));
}

static rt_status begin(rt_taps *t, const rt_taps_input *in, bool train) {
    const int64_t n = in->rows > 0 ? RT_MIN(in->rows, in->set->n) : in->set->n;
    *t = (rt_taps){.in = *in};
    t->spec = (rt_batch_spec){.set = in->set,
                              .row = rt_net_config(rt_student_net(in->student))->input,
                              .batch = RT_MIN((int64_t)TAP_BATCH, n),
                              .shuffle = true,
                              .drop_last = true,
                              .augment = in->augment};
    t->batches = n / t->spec.batch;
    RT_TRY(rt_calloc(&t->order, (size_t)in->set->n, sizeof *t->order));
    rt_batch_order(&t->spec, in->seed, 0, t->order);
    RT_TRY(rt_calloc(&t->x, (size_t)(t->spec.batch * rt_shape_elems(&t->spec.row)), sizeof *t->x));
    RT_TRY(rt_calloc(&t->block, (size_t)rt_params_floats(in->params), sizeof *t->block));
    RT_TRY(rt_graph_create(&t->g, t->spec.batch, RT_DTYPE_F32));
    rt_build b = {.g = t->g, .params = in->params, .train = train};
    rt_student_forward(in->student, &b, rt_graph_input(t->g, "x", RT_DTYPE_F32, t->spec.row, 1));
    return rt_graph_status(t->g);
}

static rt_status finish(rt_taps *t) {
    RT_TRY(rt_graph_status(t->g));
    if (t->n == 0)
        return RT_OK;
    RT_TRY(rt_plan_compile(&t->plan, t->g, (rt_plan_options){.v3 = rt_params_v3(t->in.params)}));
    RT_TRY(rt_exec_create(&t->exec, t->plan, t->in.pool));
    rt_exec_bind_own_block(t->exec, 0, t->block, rt_params_offsets(t->in.params),
                           rt_params_count(t->in.params));
    rt_exec_bind_input(t->exec, 0, t->x);
    for (int i = 0; i < t->n; i++)
        rt_exec_bind_output(t->exec, t->tap[i].output, t->tap[i].sums);
    return RT_OK;
}

void rt_taps_close(rt_taps *t) {
    rt_exec_destroy(&t->exec);
    rt_plan_destroy(&t->plan);
    rt_graph_destroy(&t->g);
    for (int i = 0; i < t->n; i++)
        rt_free(t->tap[i].sums);
    rt_free(t->tap);
    rt_free(t->order);
    rt_free(t->x);
    rt_free(t->block);
    memset(t, 0, sizeof *t);
}

static rt_status open_taps(rt_taps *t, const rt_taps_input *in, bool train, rt_status (*find)(rt_taps *t)) {
    rt_status st = begin(t, in, train);
    if (st == RT_OK)
        st = find(t);
    if (st == RT_OK)
        st = finish(t);
    if (st != RT_OK)
        rt_taps_close(t);
    return st;
}

/* A pair of updates, of the running mean and then the variance, has its statistics in common. */
static rt_status find_norms(rt_taps *t) {
    const int updates = rt_graph_outputs(t->g);
    for (int i = 0; i + 1 < updates; i += 2) {
        const rt_graph_out *mean = rt_graph_get_output(t->g, i), *var = rt_graph_get_output(t->g, i + 1);
        const rt_node *a = rt_graph_node(t->g, mean->v), *b = rt_graph_node(t->g, var->v);
        RT_FAIL_IF(a->op != RT_OP_BN_RUNNING || b->op != RT_OP_BN_RUNNING || a->in[0] != b->in[0] ||
                       a->attr.index != 0 || b->attr.index != 1,
                   RT_E_UNSUPPORTED, "%s: its updates are not those of batch normalisation", mean->name);
        RT_TRY(add_tap(t, a->in[0], a->attr.n, mean->update_slot, var->update_slot));
    }
    return RT_OK;
}

rt_status rt_taps_of_norms(rt_taps *t, const rt_taps_input *in) {
    return open_taps(t, in, true, find_norms);
}

static bool is_activation(rt_op op) {
    return op == RT_OP_RELU || op == RT_OP_SOFTPLUS || op == RT_OP_TANH || op == RT_OP_SIGMOID;
}

/* v = (x w) + b, both parameters; then their slots. */
static bool is_layer(const rt_graph *g, rt_val v, int *weight, int *bias) {
    const rt_node *add = rt_graph_node(g, v);
    if (add->op != RT_OP_ADD_CHAN)
        return false;
    const rt_node *b = rt_graph_node(g, add->in[1]), *product = rt_graph_node(g, add->in[0]);
    if (b->leaf != RT_LEAF_PARAM || (product->op != RT_OP_MATMUL && product->op != RT_OP_CONV2D))
        return false;
    const rt_node *w = rt_graph_node(g, product->in[1]);
    *weight = w->slot;
    *bias = b->slot;
    return w->leaf == RT_LEAF_PARAM;
}

static rt_status find_units(rt_taps *t) {
    const rt_val count = (rt_val)rt_graph_count(t->g);
    for (rt_val v = 1; v < count; v++) {
        const rt_node *node = rt_graph_node(t->g, v);
        int weight, bias;
        if (!is_activation(node->op) || !is_layer(t->g, node->in[0], &weight, &bias))
            continue;
        const rt_val x = node->in[0];
        const rt_shape s = rt_graph_node(t->g, x)->type.shape;
        rt_val stats = rt_graph_op(t->g, RT_OP_BN_STATS, (rt_attr){0}, &x, 1);
        RT_TRY(add_tap(t, stats, rt_shape_elems(&s) / s.d[1], weight, bias));
    }
    return RT_OK;
}

rt_status rt_taps_of_units(rt_taps *t, const rt_taps_input *in) {
    return open_taps(t, in, false, find_units);
}

rt_status rt_taps_run(rt_taps *t, const float *block, void (*each)(void *user, const rt_taps *t),
                      void *user) {
    const double all = (double)(t->batches * RT_MAX(t->runs, 1)), from = (double)(t->batches * t->run++);
    memcpy(t->block, block, (size_t)rt_params_floats(t->in.params) * sizeof *block);
    for (int64_t i = 0; i < t->batches && t->n > 0; i++) {
        if (t->in.tell)
            RT_TRY(t->in.tell(t->in.user, (from + (double)i) / all));
        rt_batch_fill(&t->spec, t->in.seed, 0, i, t->order, t->x, NULL, NULL, NULL);
        rt_exec_run(&t->exec, &(rt_run){.step = (uint64_t)i}, 1, t->in.pool);
        each(user, t);
    }
    return RT_OK;
}
