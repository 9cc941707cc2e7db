/*
 * objective_end2.c - ensemble distribution distillation (Malinin et al. 2020): the likelihood of the
 * teachers' distributions under a Dirichlet.
 *
 *     pi_mc = (1 - g) softmax(z_Tm / T)_c + g / K,   g = 1e-4
 *     a_c   = e^(z_c / T) + offset
 *     L     = T^2 mean over rows of { sum_c lnG(a_c) - lnG(a_0) - sum_c (a_c - 1) mean_m ln pi_mc }
 *
 * A density, so the loss may be negative. Smoothing keeps ln pi finite where a teacher is certain. The
 * offset, 0 in the paper, is that of the student's own reading of its outputs.
 */
#include "distill/distill_int.h"

/* mean_m ln pi_m: (M n, K) -> (n, K) */
static rt_val mean_log(const rt_objective_in *in) {
    rt_graph *g = in->g;
    const rt_val z = rt_over_temperature(in, in->teacher);
    const double gamma = in->teacher_smoothing;
    if (z == 0 || gamma == 0)
        return rt_mean_members(g, rt_log_softmax(g, z));
    const double k = (double)rt_graph_node(g, z)->type.shape.d[1];
    return rt_mean_members(g, rt_unary(g, RT_OP_LOG, rt_scale(g, rt_softmax(g, z), 1 - gamma, gamma / k)));
}

static rt_val build(const rt_objective_in *in) {
    rt_graph *g = in->g;
    const rt_val target = rt_tile_members(g, mean_log(in), rt_groups(g, in->student));
    const rt_val nll =
        rt_dirichlet_nll(g, rt_over_temperature(in, in->student), target, in->dirichlet_offset);
    return rt_mix_labels(in, rt_times_temperature2(in, rt_batch_mean(g, nll)));
}

const rt_objective rt_objective_end2 = {"end2", "likelihood of the teachers under a Dirichlet",
                                        RT_OBJ_TEACHER | RT_OBJ_DIRICHLET | RT_OBJ_CLASSIFICATION, build};
