/*
 * perturb_brighter.c - x~ = clip(x + size, 0, 1)
 */
#include "perturb/perturb_int.h"

static rt_val build(const rt_perturb_in *in) {
    return rt_perturb_move(in, rt_scale(in->g, in->x, 0, in->size));
}

const rt_perturb rt_perturb_brighter = {"brighter", "a little brighter everywhere", 0, build};
