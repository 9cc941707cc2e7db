/*
 * perturb_ods.c - output diversified sampling (Tashiro et al. 2020; for distillation Nam et al. 2021).
 *
 *     g = grad_x <w, softmax(z_Ti(x) / T)>,   w uniform in [-1, 1)^K per image
 *
 * A step that changes what one teacher says, in a random way. The teacher i is drawn per batch.
 */
#include "perturb/perturb_int.h"

static rt_val build(const rt_perturb_in *in) {
    const rt_val p = rt_perturb_teacher(in);
    return rt_perturb_move(in, rt_perturb_step(in, rt_perturb_ods_gradient(in, p)));
}

const rt_perturb rt_perturb_ods = {"ods",
                                   "along the gradient of a random mixture of a teacher's probabilities",
                                   RT_NEEDS_TEACHER_I | RT_NEEDS_CLASSES, build};
