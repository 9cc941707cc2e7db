/*
 * op_int.h - what the shape rules share.
 *
 * A rule looks at the attributes and input types of one query, refuses them with a message that says what was
 * wanted, or makes the result by one of the three constructors below. rt_op_infer has already checked arity,
 * input shapes and groups.
 */
#ifndef RT_OP_OP_INT_H
#define RT_OP_OP_INT_H

#include "base/size.h"
#include "op/op.h"

typedef struct rt_infer {
    rt_op op;
    const rt_attr *attr;
    const rt_type *in;
    int nin;
    int64_t n;
    rt_type *out;
} rt_infer;

typedef rt_status rt_infer_fn(const rt_infer *q);
#define RT_OP(ID, name, arity, infer, grad, flags, meaning) rt_infer_fn rt_infer_##infer;
#include "op/op.def"
#undef RT_OP

/* "conv2d(f32 [1x] 8x3x32x32, f32 16x4x3x3) stride=1: <text>" */
rt_status rt_infer_fail(const rt_infer *q, const char *file, int line, const char *fmt, ...) RT_PRINTF(4, 5);
#define RT_INFER_FAIL_IF(cond, ...)                                                                          \
    do {                                                                                                     \
        if (RT_UNLIKELY(cond))                                                                               \
            return rt_infer_fail(q, __FILE__, __LINE__, __VA_ARGS__);                                        \
    } while (0)

/* Results. `inner` is the shape of one row. A global result of batched inputs is a sum over the batch. */
rt_status rt_infer_rows(const rt_infer *q, rt_dtype t, int32_t groups, const rt_shape *inner) RT_MUST_CHECK;
rt_status rt_infer_global(const rt_infer *q, rt_dtype t, rt_shape s) RT_MUST_CHECK;
rt_status rt_infer_like(const rt_infer *q, const rt_type *t) RT_MUST_CHECK;

/* Checks that many rules make. */
rt_status rt_infer_need_float(const rt_infer *q) RT_MUST_CHECK; /* all inputs, of one floating type */
rt_status rt_infer_need_batched(const rt_infer *q, int i) RT_MUST_CHECK;
rt_status rt_infer_need_global(const rt_infer *q, int i) RT_MUST_CHECK;
rt_status rt_infer_need_same(const rt_infer *q, int i, int j) RT_MUST_CHECK; /* type, shape and groups */
rt_status rt_infer_need_chan(const rt_infer *q, int i) RT_MUST_CHECK; /* (rows, C) or (rows, C, h, w) */

bool rt_type_is_float(const rt_type *t);
rt_shape rt_type_tail(const rt_type *t);  /* the shape without axis 0 */
int64_t rt_attr_groups(const rt_attr *a); /* attr.members, where 0 means 1 */

#endif
