/*
 * onnx_warp.c - back from a transformed target (eval/warp.c) to its own units, as ONNX nodes.
 *
 * The closed forms of warp.c subtract numbers of like size, which floats do not bear, and need erfc, which ONNX has
 * not. So the moments of y = g(mu + s z) are integrals by Gauss and Legendre over each piece, where g is smooth:
 *
 *     E y^k = sum over pieces, nodes x_l in (0, 1) with weights w_l   (z_1 - z_0) w_l phi(z) g(mu + s z)^k
 *     z = z_0 + (z_1 - z_0) x_l, the ends of the piece in z, cut to [-8.5, 8.5]
 *
 * All terms are positive multiples of values, and the variance is taken about the mean: nothing cancels.
 */
#include "export/export_int.h"
#include <math.h>

enum { NODES = 28 };
static const double REACH = 8.5;

/* Nodes and weights on (0, 1): Newton's steps to the roots of Legendre's polynomial. */
static void gauss_legendre(float x[NODES], float w[NODES]) {
    const double pi = 3.14159265358979323846;
    for (int i = 0; i < NODES; i++) {
        double z = cos(pi * (i + 0.75) / (NODES + 0.5)), slope = 1;
        for (int step = 0; step < 50; step++) {
            double p = 1, before = 0;
            for (int j = 0; j < NODES; j++) {
                const double older = before;
                before = p;
                p = ((2 * j + 1) * z * before - j * older) / (j + 1);
            }
            slope = NODES * (z * p - before) / (z * z - 1);
            z -= p / slope;
        }
        x[i] = (float)(0.5 * (1 - z));
        w[i] = (float)(1 / ((1 - z * z) * slope * slope));
    }
}

/* Of each piece: its ends, a point on its line, and its slope. */
typedef struct pieces {
    rt_onnx_val lower, upper, u, y, slope; /* (pieces, 1) */
} pieces;

static rt_onnx_val column(rt_onnx *o, const char *name, const float *v, int n) {
    const rt_shape s = rt_shape2(n, 1);
    return rt_onnx_tensor(o, name, &s, v);
}

static pieces pieces_of(rt_onnx *o, const rt_warp *w) {
    const int n = w->knots + 1;
    float *v = rt_onnx_floats(o, 5 * n);
    pieces p = {0};
    if (v == NULL)
        return p;
    for (int i = 0; i < n; i++) {
        const int at = i == 0 ? 0 : i - 1, a = i == 0 ? 0 : RT_MIN(i, w->knots - 1) - 1;
        v[i] = i == 0 ? -1e30F : (float)w->u[i - 1];
        v[n + i] = i == w->knots ? 1e30F : (float)w->u[i];
        v[2 * n + i] = (float)w->u[at];
        v[3 * n + i] = (float)w->y[at];
        v[4 * n + i] = (float)((w->y[a + 1] - w->y[a]) / (w->u[a + 1] - w->u[a]));
    }
    p.lower = column(o, "target.lower", v, n);
    p.upper = column(o, "target.upper", v + n, n);
    p.u = column(o, "target.u", v + 2 * n, n);
    p.y = column(o, "target.y", v + 3 * n, n);
    p.slope = column(o, "target.slope", v + 4 * n, n);
    return p;
}

/* e^u between the knots, its tangents outside. */
static rt_onnx_val exponential(rt_onnx *o, const rt_warp *w, rt_onnx_val u) {
    const rt_onnx_val zero = rt_onnx_scalar(o, 0);
    const rt_onnx_val below = rt_onnx_binary(o, "Min", rt_onnx_affine(o, u, 1, -w->u[0]), zero),
                      above = rt_onnx_binary(o, "Max", rt_onnx_affine(o, u, 1, -w->u[1]), zero);
    const rt_onnx_val tails =
        rt_onnx_add(o, rt_onnx_affine(o, below, w->y[0], 0), rt_onnx_affine(o, above, w->y[1], 0));
    return rt_onnx_add(o, rt_onnx_unary(o, "Exp", rt_onnx_clip(o, u, w->u[0], w->u[1])), tails);
}

/* The line of each piece at u, which has the axis of pieces or one of length 1 in its place. */
static rt_onnx_val lines(rt_onnx *o, const pieces *p, rt_onnx_val u) {
    return rt_onnx_add(o, rt_onnx_mul(o, rt_onnx_sub(o, u, p->u), p->slope), p->y);
}

rt_onnx_val rt_onnx_warp_invert(rt_onnx *o, const rt_warp *w, rt_onnx_val u) {
    if (w->kind == RT_WARP_LOG)
        return exponential(o, w, u);
    const int64_t rows[] = {-1, 1, 1}, flat[] = {-1};
    const pieces p = pieces_of(o, w);
    const rt_onnx_val x = rt_onnx_reshape(o, u, rows, 3); // (N, 1, 1)
    const rt_onnx_val in = rt_onnx_binary(o, "And", rt_onnx_binary(o, "LessOrEqual", p.lower, x),
                                          rt_onnx_binary(o, "Less", x, p.upper));
    const rt_onnx_val y = rt_onnx_where(o, in, lines(o, &p, x), rt_onnx_scalar(o, 0));
    return rt_onnx_reshape(o, rt_onnx_sum(o, y, 1, false), flat, 1);
}

void rt_onnx_warp_moments(rt_onnx *o, const rt_warp *w, int members, rt_onnx_val *mean,
                          rt_onnx_val *variance) {
    const int64_t spread[] = {members, -1, 1, 1}, lots[] = {members, -1, (int64_t)(w->knots + 1) * NODES};
    const rt_shape nodes = rt_shape1(NODES);
    float *x = rt_onnx_floats(o, NODES), *weight = rt_onnx_floats(o, NODES);
    if (x == NULL || weight == NULL)
        return;
    gauss_legendre(x, weight);
    const pieces p = pieces_of(o, w);
    const rt_onnx_val mu = rt_onnx_reshape(o, *mean, spread, 4), // (M, N, 1, 1)
        s = rt_onnx_unary(o, "Sqrt", rt_onnx_reshape(o, *variance, spread, 4));
    const rt_onnx_val from = rt_onnx_clip(o, rt_onnx_div(o, rt_onnx_sub(o, p.lower, mu), s), -REACH, REACH),
                      to = rt_onnx_clip(o, rt_onnx_div(o, rt_onnx_sub(o, p.upper, mu), s), -REACH, REACH),
                      width = rt_onnx_sub(o, to, from); // (M, N, pieces, 1)
    const rt_onnx_val z =
        rt_onnx_add(o, from, rt_onnx_mul(o, width, rt_onnx_tensor(o, "target.nodes", &nodes, x)));
    const rt_onnx_val bell = rt_onnx_unary(o, "Exp", rt_onnx_affine(o, rt_onnx_mul(o, z, z), -0.5, 0));
    const rt_onnx_val u = rt_onnx_add(o, mu, rt_onnx_mul(o, s, z)); // (M, N, pieces, nodes)
    const rt_onnx_val part =
        rt_onnx_mul(o, rt_onnx_mul(o, bell, width), rt_onnx_tensor(o, "target.weights", &nodes, weight));
    const rt_onnx_val share = rt_onnx_reshape(o, part, lots, 3),
                      y = rt_onnx_reshape(o, w->kind == RT_WARP_LOG ? exponential(o, w, u) : lines(o, &p, u),
                                          lots, 3);
    const rt_onnx_val all = rt_onnx_sum(o, share, -1, true);
    const rt_onnx_val m = rt_onnx_div(o, rt_onnx_sum(o, rt_onnx_mul(o, share, y), -1, true),
                                      all), // (M, N, 1)
        d = rt_onnx_sub(o, y, m),
                      square = rt_onnx_sum(o, rt_onnx_mul(o, share, rt_onnx_mul(o, d, d)), -1, true);
    *mean = rt_onnx_sum(o, m, -1, false);
    *variance = rt_onnx_sum(o, rt_onnx_div(o, square, all), -1, false);
}
