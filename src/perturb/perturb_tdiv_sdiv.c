/*
 * perturb_tdiv_sdiv.c - towards inputs on which two teachers disagree and the same two members of the student
 * do not (Nam et al. 2022).
 *
 *     g = grad_x [ CE(stop(p_Tj), p_Ti) - CE(stop(p_Sj), p_Si) ]     at temperature 1, student in eval mode
 *
 * These are the inputs from which the student has most diversity to learn. While the members are equal, at
 * the first step of LatentBE, their part is exactly zero.
 */
#include "perturb/perturb_int.h"

static rt_val build(const rt_perturb_in *in) {
    const rt_val t = rt_perturb_pair_gradient(in, RT_WHO_TEACHER_I, RT_WHO_TEACHER_J);
    const rt_val s = rt_perturb_pair_gradient(in, RT_WHO_STUDENT_I, RT_WHO_STUDENT_J);
    const rt_val g = t != 0 && s != 0 ? rt_sub(in->g, t, s) : t;
    return rt_perturb_move(in, rt_perturb_step(in, g));
}

const rt_perturb rt_perturb_tdiv_sdiv = {
    "tdiv-sdiv", "to where two teachers disagree and the student's members do not",
    RT_NEEDS_TEACHER_I | RT_NEEDS_TEACHER_J | RT_NEEDS_STUDENT_PAIR | RT_NEEDS_CLASSES, build};
