/*
 * perturb_gaussian.c - white noise: x~ = clip(x + size z, 0, 1), z standard normal. The control experiment: a
 * step of about the length of the others, in no direction.
 */
#include "perturb/perturb_int.h"

static rt_val build(const rt_perturb_in *in) {
    const rt_val z = rt_random(in->g, in->x, true, in->stream);
    return rt_perturb_move(in, rt_scale(in->g, z, in->size, 0));
}

const rt_perturb rt_perturb_gaussian = {"gaussian", "white noise", 0, build};
