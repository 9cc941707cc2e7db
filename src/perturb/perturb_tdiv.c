/*
 * perturb_tdiv.c - towards inputs on which two teachers disagree (Nam et al. 2022, without the student's
 * part).
 *
 *     g = grad_x CE(stop(p_Tj), p_Ti)     at temperature 1; the pair i != j is drawn per batch
 */
#include "perturb/perturb_int.h"

static rt_val build(const rt_perturb_in *in) {
    const rt_val g = rt_perturb_pair_gradient(in, RT_WHO_TEACHER_I, RT_WHO_TEACHER_J);
    return rt_perturb_move(in, rt_perturb_step(in, g));
}

const rt_perturb rt_perturb_tdiv = {"tdiv", "to where two teachers disagree",
                                    RT_NEEDS_TEACHER_I | RT_NEEDS_TEACHER_J | RT_NEEDS_CLASSES, build};
