/*
 * objective_end2.c - ensemble distribution distillation (Malinin et al. 2020): the likelihood of the
 * teachers' distributions under a Dirichlet.
 *
 *     pi_mc = (1 - g) softmax(z_Tm / T)_c + g / K,   g = 1e-4
 *     a_c   = e^u_c + offset,   u_c = (z_c - m) / T + m + 2 ln T,   m = mean_c z_c
 *     L     = T^2 mean over rows of { sum_c lnG(a_c) - lnG(a_0) - sum_c (a_c - 1) mean_m ln pi_mc }
 *
 * The paper has u = z / T (temper_mean). At T = 1 both are z. But distributions of a temperature T lie T times closer
 * to each other, so their Dirichlet is T^2 times as concentrated: with u = z / T the mean of the logits is about T (ln
 * a + 2 ln T), 70 at T = 10 where 5 is wanted in the end, and has to fall with T faster than a short training can
 * follow. Here the mean stays where it belongs, and only differences between classes are softened.
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

/* u: (n, K) */
static rt_val tempered(const rt_objective_in *in) {
    rt_graph *g = in->g;
    if (in->temper_mean || in->student == 0)
        return rt_over_temperature(in, in->student);
    const double k = (double)rt_graph_node(g, in->student)->type.shape.d[1];
    const rt_val mean = rt_scale(g, rt_row_sum(g, in->student), 1 / k, 0); // (n)
    const rt_val ln_t2 = rt_scale(g, rt_unary(g, RT_OP_LOG, in->temperature), 2, 0);
    const rt_val up = rt_add(g, mean, rt_mul_scalar(g, rt_scale(g, mean, 0, 1), ln_t2));
    return rt_add_row(g, rt_over_temperature(in, rt_add_row(g, in->student, rt_neg(g, mean))), up);
}

static rt_val build(const rt_objective_in *in) {
    rt_graph *g = in->g;
    const rt_val target = rt_tile_members(g, mean_log(in), rt_groups(g, in->student));
    const rt_val nll = rt_dirichlet_nll(g, tempered(in), target, in->dirichlet_offset);
    return rt_mix_labels(in, rt_times_temperature2(in, rt_batch_mean(g, nll)));
}

/* Malinin et al. 2020, Table 6: Adam and a cycle of the rate; gradients are shortened in their program. */
const rt_objective rt_objective_end2 = {.name = "end2",
                                        .meaning = "likelihood of the teachers under a Dirichlet",
                                        .needs = RT_OBJ_TEACHER | RT_OBJ_DIRICHLET | RT_OBJ_CLASSIFICATION,
                                        .build = build,
                                        .optimiser = {"adam", 1e-3, "one-cycle", 10, 0}};
