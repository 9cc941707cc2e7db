/*
 * perturb_int.h - pieces that perturbations share: a direction, a step along it, the moved inputs.
 */
#ifndef RT_PERTURB_PERTURB_INT_H
#define RT_PERTURB_PERTURB_INT_H

#include "perturb/perturb.h"

#define RT_PERTURB(id) extern const rt_perturb rt_perturb_##id;
#include "perturb/perturbs.def"
#undef RT_PERTURB

/* Every row of a gradient scaled to the L2 norm size * sqrt(elements of a row); a row shorter than 1e-12 has
 * no direction and stays that short. */
rt_val rt_perturb_step(const rt_perturb_in *in, rt_val gradient);
/* x + step within [0, 1], without gradient; step 0, no value: x. */
rt_val rt_perturb_move(const rt_perturb_in *in, rt_val step);
/* Gradient of <y, dy> with respect to x; 0 if x does not matter. */
rt_val rt_perturb_gradient(const rt_perturb_in *in, rt_val y, rt_val dy);
/* Of the teacher drawn as i: softmax of its logits at the temperature, (n, K). */
rt_val rt_perturb_teacher(const rt_perturb_in *in);
/* ODS: the gradient of a random mixture w of the probabilities p, and of the cross-entropy of model i to
 * model j. */
rt_val rt_perturb_ods_gradient(const rt_perturb_in *in, rt_val p);
rt_val rt_perturb_pair_gradient(const rt_perturb_in *in, int i, int j);

#endif
