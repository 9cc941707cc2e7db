/*
 * layer_param.c - how a layer gets its parameters: by name from the table, as a leaf of the graph.
 *
 * In declare mode a name that is not in the table is added; otherwise it must be there with the shape the
 * layer wants, so that a network built on the parameters of another architecture fails by name instead of
 * reading the wrong numbers.
 */
#include "nn/nn_int.h"
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 256 };

rt_shape rt_nn_row(const rt_build *b, rt_val x) {
    rt_shape s = rt_shape0();
    if (!x)
        return s;
    const rt_shape *full = &rt_graph_node(b->g, x)->type.shape;
    if (full->rank < 1)
        return s;
    s.rank = full->rank - 1;
    memcpy(s.d, full->d + 1, (size_t)s.rank * sizeof s.d[0]);
    return s;
}

static rt_status check_shape(const rt_param *have, const rt_param *want) {
    if (rt_shape_equal(&have->shape, &want->shape))
        return RT_OK;
    rt_str a, c;
    rt_str_init(&a);
    rt_str_init(&c);
    rt_shape_print(&have->shape, &a);
    rt_shape_print(&want->shape, &c);
    rt_status st =
        rt_error_set(RT_E_USAGE, __FILE__, __LINE__, "parameter %s: has shape %s, the layer wants %s",
                     have->name, rt_str_text(&a), rt_str_text(&c));
    rt_str_deinit(&a);
    rt_str_deinit(&c);
    return st;
}

rt_val rt_nn_param(rt_build *b, rt_param spec) {
    char full[NAME_MAX_BYTES];
    int len = snprintf(full, sizeof full, "%s%s", b->prefix ? b->prefix : "", spec.name);
    if (len < 0 || (size_t)len >= sizeof full)
        RT_NN_FAIL(b, RT_E_USAGE, "parameter %.40s...: name longer than %d bytes", full, NAME_MAX_BYTES - 1);
    spec.name = full;
    spec.group = b->group;
    int slot = rt_params_find(b->params, full);
    if (slot < 0) {
        if (!b->declare)
            RT_NN_FAIL(b, RT_E_USAGE, "parameter %s: not in the table", full);
        rt_status st = rt_params_add(b->params, spec, &slot);
        if (st != RT_OK) {
            rt_graph_set_error(b->g, st);
            return 0;
        }
    } else {
        rt_status st = check_shape(rt_params_get(b->params, slot), &spec);
        if (st != RT_OK) {
            rt_graph_set_error(b->g, st);
            return 0;
        }
    }
    if (b->values && b->values[slot])
        return b->values[slot];
    const rt_param *line = rt_params_get(b->params, slot);
    return rt_graph_param(b->g, b->slot_base + slot, line->name, line->shape);
}

rt_val rt_nn_field(rt_build *b, const char *layer, const char *field, rt_param spec) {
    char name[NAME_MAX_BYTES];
    int len = snprintf(name, sizeof name, "%s.%s", layer, field);
    if (len < 0 || (size_t)len >= sizeof name)
        RT_NN_FAIL(b, RT_E_USAGE, "layer %.40s...: name longer than %d bytes", name, NAME_MAX_BYTES - 1);
    spec.name = name;
    return rt_nn_param(b, spec);
}

rt_val rt_nn_dropout(rt_build *b, rt_val x, double p) {
    if (!b->train || p <= 0)
        return x;
    return rt_dropout(b->g, x, p, b->dropout_stream++);
}
