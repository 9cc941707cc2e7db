/*
 * grad_cube.c - d x^3 = 3 x^2 dx
 */
#include "graph/graph_int.h"

RT_GRAD_RULE(cube) {
    const rt_val x2 = rt_unary(c->g, RT_OP_SQUARE, nd->in[0]);
    rt_grad_give(c, nd->in[0], rt_mul(c->g, dy, rt_scale(c->g, x2, 3, 0)));
}
