/*
 * onnx_math.c - elementary functions of tensors as ONNX nodes, one line each where they are used.
 *
 * Reductions take their axes as an attribute up to some opset and as an input from another on: ReduceSum from
 * 13, ReduceMean and ReduceMax from 18. Files are written for 13 to 17.
 */
#include "export/onnx/onnx.h"

rt_onnx_val rt_onnx_unary(rt_onnx *o, const char *op, rt_onnx_val x) {
    return rt_onnx_node(o, op, &x, 1, NULL);
}

rt_onnx_val rt_onnx_binary(rt_onnx *o, const char *op, rt_onnx_val a, rt_onnx_val b) {
    return rt_onnx_node(o, op, (rt_onnx_val[]){a, b}, 2, NULL);
}

rt_onnx_val rt_onnx_add(rt_onnx *o, rt_onnx_val a, rt_onnx_val b) {
    return rt_onnx_binary(o, "Add", a, b);
}

rt_onnx_val rt_onnx_sub(rt_onnx *o, rt_onnx_val a, rt_onnx_val b) {
    return rt_onnx_binary(o, "Sub", a, b);
}

rt_onnx_val rt_onnx_mul(rt_onnx *o, rt_onnx_val a, rt_onnx_val b) {
    return rt_onnx_binary(o, "Mul", a, b);
}

rt_onnx_val rt_onnx_div(rt_onnx *o, rt_onnx_val a, rt_onnx_val b) {
    return rt_onnx_binary(o, "Div", a, b);
}

rt_onnx_val rt_onnx_affine(rt_onnx *o, rt_onnx_val x, double a, double b) {
    if (a != 1)
        x = rt_onnx_mul(o, x, rt_onnx_scalar(o, a));
    return b != 0 ? rt_onnx_add(o, x, rt_onnx_scalar(o, b)) : x;
}

rt_onnx_val rt_onnx_clip(rt_onnx *o, rt_onnx_val x, double lo, double hi) {
    return rt_onnx_node(o, "Clip", (rt_onnx_val[]){x, rt_onnx_scalar(o, lo), rt_onnx_scalar(o, hi)}, 3, NULL);
}

rt_onnx_val rt_onnx_where(rt_onnx *o, rt_onnx_val condition, rt_onnx_val a, rt_onnx_val b) {
    return rt_onnx_node(o, "Where", (rt_onnx_val[]){condition, a, b}, 3, NULL);
}

rt_onnx_val rt_onnx_poly(rt_onnx *o, rt_onnx_val x, const double *c, int n) {
    rt_onnx_val y = rt_onnx_affine(o, x, c[n - 1], c[n - 2]);
    for (int i = n - 3; i >= 0; i--)
        y = rt_onnx_affine(o, rt_onnx_mul(o, y, x), 1, c[i]);
    return y;
}

rt_onnx_val rt_onnx_sum(rt_onnx *o, rt_onnx_val x, int axis, bool keep) {
    const int64_t a = axis;
    const rt_onnx_attr attrs[] = {RT_ONNX_I("keepdims", keep), {0}};
    return rt_onnx_node(o, "ReduceSum", (rt_onnx_val[]){x, rt_onnx_ints(o, &a, 1)}, 2, attrs);
}

static rt_onnx_val reduce(rt_onnx *o, const char *op, rt_onnx_val x, int axis, bool keep) {
    const int64_t a = axis;
    const rt_onnx_attr attrs[] = {RT_ONNX_IS("axes", &a, 1), RT_ONNX_I("keepdims", keep), {0}};
    return rt_onnx_node(o, op, &x, 1, attrs);
}

rt_onnx_val rt_onnx_mean(rt_onnx *o, rt_onnx_val x, int axis, bool keep) {
    return reduce(o, "ReduceMean", x, axis, keep);
}

rt_onnx_val rt_onnx_max(rt_onnx *o, rt_onnx_val x, int axis, bool keep) {
    return reduce(o, "ReduceMax", x, axis, keep);
}

rt_onnx_val rt_onnx_softmax(rt_onnx *o, rt_onnx_val x, bool log) {
    const rt_onnx_attr attrs[] = {RT_ONNX_I("axis", -1), {0}};
    return rt_onnx_node(o, log ? "LogSoftmax" : "Softmax", &x, 1, attrs);
}

rt_onnx_val rt_onnx_reshape(rt_onnx *o, rt_onnx_val x, const int64_t *dims, int n) {
    return rt_onnx_binary(o, "Reshape", x, rt_onnx_ints(o, dims, n));
}

rt_onnx_val rt_onnx_transpose(rt_onnx *o, rt_onnx_val x, const int64_t *perm, int n) {
    const rt_onnx_attr attrs[] = {RT_ONNX_IS("perm", perm, n), {0}};
    return rt_onnx_node(o, "Transpose", &x, 1, attrs);
}

rt_onnx_val rt_onnx_gather(rt_onnx *o, rt_onnx_val x, int64_t index, int axis) {
    const int64_t a = axis;
    const rt_onnx_attr attrs[] = {RT_ONNX_I("axis", axis), {0}};
    const rt_onnx_val kept =
        rt_onnx_node(o, "Gather", (rt_onnx_val[]){x, rt_onnx_ints(o, &index, 1)}, 2, attrs);
    return rt_onnx_binary(o, "Squeeze", kept, rt_onnx_ints(o, &a, 1));
}

rt_onnx_val rt_onnx_concat(rt_onnx *o, const rt_onnx_val *x, int n, int axis) {
    const rt_onnx_attr attrs[] = {RT_ONNX_I("axis", axis), {0}};
    return n == 1 ? x[0] : rt_onnx_node(o, "Concat", x, n, attrs);
}
