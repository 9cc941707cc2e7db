/*
 * infer_cube.c - the shape rule of x^3: that of x.
 */
#include "op/op_int.h"

rt_status rt_infer_cube(const rt_infer *q) {
    RT_TRY(rt_infer_need_float(q));
    return rt_infer_like(q, &q->in[0]);
}
