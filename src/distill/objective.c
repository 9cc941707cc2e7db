/*
 * objective.c - objectives by name, and the pieces several of them share.
 */
#include "distill/distill_int.h"
#include <string.h>

#define RT_OBJECTIVE(id) &rt_objective_##id,
static const rt_objective *const objectives[] = {
#include "distill/objectives.def"
};
#undef RT_OBJECTIVE

int rt_objective_list(const rt_objective *const **out) {
    *out = objectives;
    return (int)RT_COUNT(objectives);
}

const rt_objective *rt_objective_find(const char *name) {
    for (int64_t i = 0; i < RT_COUNT(objectives); i++)
        if (strcmp(objectives[i]->name, name) == 0)
            return objectives[i];
    return NULL;
}

rt_status rt_objective_unknown(const char *name) {
    const char *names[RT_COUNT(objectives)];
    for (int64_t i = 0; i < RT_COUNT(objectives); i++)
        names[i] = objectives[i]->name;
    RT_FAIL_UNKNOWN(RT_E_USAGE, name, names, RT_COUNT(names), "--objective: unknown");
}

int rt_groups(const rt_graph *g, rt_val v) {
    return v != 0 ? rt_graph_node(g, v)->type.groups : 0;
}

rt_val rt_over_temperature(const rt_objective_in *in, rt_val logits) {
    return rt_mul_scalar(in->g, logits, rt_unary(in->g, RT_OP_RECIP, in->temperature));
}

rt_val rt_times_temperature2(const rt_objective_in *in, rt_val loss) {
    return rt_mul(in->g, loss, rt_unary(in->g, RT_OP_SQUARE, in->temperature));
}

rt_val rt_mix_labels(const rt_objective_in *in, rt_val distilled) {
    if (in->alpha == 1.0)
        return distilled;
    return rt_add(in->g, rt_scale(in->g, distilled, in->alpha, 0),
                  rt_scale(in->g, rt_labels_loss(in), 1.0 - in->alpha, 0));
}
