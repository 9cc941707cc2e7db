/*
 * objective_kd.c - knowledge distillation (Hinton et al. 2015; EnD in Malinin et al. 2020; Mariet et al.
 * 2021).
 *
 *     L = T^2 mean over rows of CE(mean_m softmax(z_Tm / T), softmax(z_S / T))
 *
 * Rows are those of all members of the student, each against the same mean teacher. T^2 keeps the size of the
 * gradient, which is T (p_S - p_T) / rows, comparable with that of labels. With teacher_logits the target is
 * softmax(mean_m z_Tm / T), the normalised geometric mean of the teachers, as Norris Mitchell (2021) has it.
 */
#include "distill/distill_int.h"

static rt_val build(const rt_objective_in *in) {
    rt_graph *g = in->g;
    const rt_val z = rt_over_temperature(in, in->teacher);                     // (M n, K)
    const rt_val p = in->teacher_logits ? rt_softmax(g, rt_mean_members(g, z)) // (n, K)
                                        : rt_mean_members(g, rt_softmax(g, z));
    const rt_val target = rt_tile_members(g, p, rt_groups(g, in->student));
    const rt_val ce = rt_ce_dist(g, rt_over_temperature(in, in->student), target);
    return rt_mix_labels(in, rt_times_temperature2(in, rt_batch_mean(g, ce)));
}

const rt_objective rt_objective_kd = {.name = "kd",
                                      .meaning = "cross-entropy to the mean of the teachers",
                                      .needs = RT_OBJ_TEACHER | RT_OBJ_MEAN | RT_OBJ_CLASSIFICATION,
                                      .build = build};
