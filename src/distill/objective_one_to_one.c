/*
 * objective_one_to_one.c - member m of the student imitates teacher m (Mariet et al. 2021, Nam et al. 2022,
 * Tran et al. 2020).
 *
 *     L = T^2 mean_m mean over rows of CE(softmax(z_Tm / T), softmax(z_Sm / T))
 *
 * What the teachers disagree about stays in the student's members.
 */
#include "distill/distill_int.h"

static rt_val build(const rt_objective_in *in) {
    rt_graph *g = in->g;
    const rt_val target = rt_softmax(g, rt_over_temperature(in, in->teacher)); // (M n, K)
    const rt_val ce = rt_ce_dist(g, rt_over_temperature(in, in->student), target);
    return rt_mix_labels(in, rt_times_temperature2(in, rt_batch_mean(g, ce)));
}

const rt_objective rt_objective_one_to_one = {.name = "one-to-one",
                                              .meaning = "cross-entropy of member m to teacher m",
                                              .needs = RT_OBJ_TEACHER | RT_OBJ_PAIRED | RT_OBJ_CLASSIFICATION,
                                              .build = build};
