/*
 * objective_prior_net.c - Prior Networks by reverse KL (Malinin and Gales 2019), the baseline of Malinin et
 * al. 2020.
 *
 *     L = [ mean KL(Dir(a) || Dir(1 + B onehot(y))) + g mean over OOD of KL(Dir(a') || Dir(1)) ] / B
 *     a = e^z + offset,   B = 100,   g = 1
 *
 * Sharp on known inputs, flat on foreign ones; no teacher. Division by B keeps the loss of the order of 1.
 */
#include "distill/distill_int.h"

/* B onehot(y) + 1, for every member: (Ms n, K) */
static rt_val sharp(const rt_objective_in *in, int64_t classes) {
    const rt_val y = rt_tile_members(in->g, in->label, rt_groups(in->g, in->student));
    return rt_scale(in->g, rt_one_hot(in->g, y, classes), in->prior_beta, 1);
}

/* All ones, as many rows as z */
static rt_val flat(rt_graph *g, rt_val z, int64_t classes) {
    const rt_attr a = {.members = rt_groups(g, z), .shape = rt_shape1(classes)};
    return rt_graph_op(g, RT_OP_EXPAND_TOTAL, a, &(rt_val){rt_graph_scalar(g, 1)}, 1);
}

static rt_val build(const rt_objective_in *in) {
    rt_graph *g = in->g;
    if (in->student == 0)
        return 0;
    const int64_t k = rt_graph_node(g, in->student)->type.shape.d[1];
    const rt_val known =
        rt_batch_mean(g, rt_dirichlet_kl(g, in->student, sharp(in, k), in->dirichlet_offset));
    const rt_val foreign = rt_batch_mean(
        g, rt_dirichlet_kl(g, in->ood_student, flat(g, in->ood_student, k), in->dirichlet_offset));
    const rt_val sum = rt_add(g, known, rt_scale(g, foreign, in->ood_weight, 0));
    return rt_mix_labels(in, rt_scale(g, sum, 1 / in->prior_beta, 0));
}

const rt_objective rt_objective_prior_net = {
    .name = "prior-net",
    .meaning = "reverse KL to a sharp Dirichlet in, a flat one out of distribution",
    .needs = RT_OBJ_LABELS | RT_OBJ_DIRICHLET | RT_OBJ_OOD | RT_OBJ_CLASSIFICATION,
    .build = build,
    .optimiser = {"adam", 5e-4, "one-cycle", 10, 0}};
