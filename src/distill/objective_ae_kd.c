/*
 * objective_ae_kd.c - adaptive ensemble knowledge distillation (Du et al. 2020): kd with weighted teachers.
 *
 *     v_m = mean over the batch of p_S - p_Tm               the gradient teacher m asks for, at temperature T
 *     w   = argmin |sum_m w_m v_m|^2,  sum w = 1,  0 <= w_m <= C
 *     L   = T^2 mean over the batch of CE(sum_m w_m p_Tm, p_S)
 *
 * The weights give the shortest common descent direction, hence none that a teacher (within C) would object
 * to; they are constants of the step. C = 1/M is plain kd. The paper's Eq. 28 as quoted by Nam et al. has one
 * w per sample: ae_per_sample. The sum over the batch stands for the mean: the scale of v does not change w.
 */
#include "distill/distill_int.h"

/* sum_m w_m p_m: (M n, K) -> (n, K), v the vectors of each member and sample */
static rt_val mixture(const rt_objective_in *in, rt_val p, rt_val v) {
    rt_graph *g = in->g;
    if (in->ae_per_sample)
        return rt_sum_members(g, rt_mul_row(g, p, rt_qp_simplex(g, v, in->ae_c)));
    const rt_type t = rt_graph_node(g, p)->type;
    const rt_val sums =
        rt_reshape(g, rt_chan_sum(g, v, t.groups), rt_shape2(t.groups, t.shape.d[1]));            // (M, K)
    const rt_val w = rt_expand_row(g, rt_qp_simplex(g, sums, in->ae_c), rt_shape1(t.shape.d[1])); // (M, K)
    return rt_sum_members(g, rt_mul_chan(g, p, w));
}

static rt_val build(const rt_objective_in *in) {
    rt_graph *g = in->g;
    const rt_val z = rt_over_temperature(in, in->student);
    const rt_val p = rt_softmax(g, rt_over_temperature(in, in->teacher)); // (M n, K)
    if (p == 0 || z == 0)
        return 0;
    const rt_val ps = rt_tile_members(g, rt_stop_grad(g, rt_softmax(g, z)), rt_groups(g, p));
    const rt_val target = rt_stop_grad(g, mixture(in, p, rt_sub(g, ps, p)));
    return rt_mix_labels(in, rt_times_temperature2(in, rt_batch_mean(g, rt_ce_dist(g, z, target))));
}

const rt_objective rt_objective_ae_kd = {
    .name = "ae-kd",
    .meaning = "cross-entropy to teachers weighted so that no gradient is opposed",
    .needs = RT_OBJ_TEACHER | RT_OBJ_SINGLE | RT_OBJ_CLASSIFICATION,
    .build = build};
