/*
 * perturb_conf_ods.c - ODS scaled by confidence (Nam et al. 2021): the step of ODS times max_k
 * softmax_k(z_Ti(x) / T), at the clean image. Images the teacher is unsure of move less.
 */
#include "perturb/perturb_int.h"

static rt_val build(const rt_perturb_in *in) {
    const rt_val p = rt_perturb_teacher(in);
    const rt_val step = rt_perturb_step(in, rt_perturb_ods_gradient(in, p));
    return rt_perturb_move(in, step != 0 ? rt_mul_row(in->g, step, rt_row_max(in->g, p)) : 0);
}

const rt_perturb rt_perturb_conf_ods = {"conf-ods", "ods, shorter where the teacher is unsure",
                                        RT_NEEDS_TEACHER_I | RT_NEEDS_CLASSES, build};
