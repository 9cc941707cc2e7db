/*
 * perturb.c - perturbations by name, and the pieces they share.
 *
 * All but the random one move an image along a gradient: x~ = clip(x + size sqrt(D) g / |g|, 0, 1), D
 * elements. With the papers' size of 1/255 the step of an image of 3072 numbers has the length 0.21735, of
 * 784 numbers 0.10980, before pixels at the ends of the range lose their part of it.
 */
#include "perturb/perturb_int.h"
#include <math.h>
#include <string.h>

#define RT_PERTURB(id) &rt_perturb_##id,
static const rt_perturb *const perturbs[] = {
#include "perturb/perturbs.def"
};
#undef RT_PERTURB

int rt_perturb_list(const rt_perturb *const **out) {
    *out = perturbs;
    return (int)RT_COUNT(perturbs);
}

const rt_perturb *rt_perturb_find(const char *name) {
    for (int64_t i = 0; i < RT_COUNT(perturbs); i++)
        if (strcmp(perturbs[i]->name, name) == 0)
            return perturbs[i];
    return NULL;
}

rt_status rt_perturb_parse(const rt_perturb **out, const char *name) {
    const char *names[RT_COUNT(perturbs) + 1] = {"none"};
    for (int64_t i = 0; i < RT_COUNT(perturbs); i++)
        names[i + 1] = perturbs[i]->name;
    const int64_t at = rt_str_find(name, names, RT_COUNT(names));
    if (at < 0)
        RT_FAIL_UNKNOWN(RT_E_USAGE, name, names, RT_COUNT(names), "--perturb: unknown");
    *out = at > 0 ? perturbs[at - 1] : NULL;
    return RT_OK;
}

rt_val rt_perturb_step(const rt_perturb_in *in, rt_val gradient) {
    rt_graph *g = in->g;
    if (gradient == 0)
        return 0;
    const rt_shape s = rt_graph_node(g, gradient)->type.shape;
    const double length = in->size * sqrt((double)(rt_shape_elems(&s) / s.d[0]));
    const rt_val norm = rt_row_norm(g, gradient, 1e-12); // (n)
    return rt_mul_row(g, gradient, rt_scale(g, rt_unary(g, RT_OP_RECIP, norm), length, 0));
}

rt_val rt_perturb_move(const rt_perturb_in *in, rt_val step) {
    const rt_val moved = step != 0 ? rt_add(in->g, in->x, step) : in->x;
    return rt_stop_grad(in->g, rt_clip(in->g, moved, 0, 1));
}

rt_val rt_perturb_gradient(const rt_perturb_in *in, rt_val y, rt_val dy) {
    rt_val dx = 0;
    const rt_status st = rt_graph_grad_from(in->g, y, dy, &in->x, 1, &dx);
    if (st != RT_OK)
        rt_graph_set_error(in->g, st);
    return st == RT_OK ? dx : 0;
}

rt_val rt_perturb_teacher(const rt_perturb_in *in) {
    const rt_val z = in->forward(in->user, RT_WHO_TEACHER_I, in->x);
    return rt_softmax(in->g, rt_mul_scalar(in->g, z, rt_unary(in->g, RT_OP_RECIP, in->temperature)));
}

rt_val rt_perturb_ods_gradient(const rt_perturb_in *in, rt_val p) {
    return rt_perturb_gradient(in, p, rt_random(in->g, p, false, in->stream));
}

/* CE(stop(p_j), p_i) has the gradient p_i - p_j with respect to the logits of i. Written out, it is exactly
 * zero where the two models agree, and j needs no backward. */
rt_val rt_perturb_pair_gradient(const rt_perturb_in *in, int i, int j) {
    const rt_val zi = in->forward(in->user, i, in->x), zj = in->forward(in->user, j, in->x);
    const rt_val dz = rt_sub(in->g, rt_softmax(in->g, zi), rt_softmax(in->g, zj));
    return rt_perturb_gradient(in, zi, dz);
}
