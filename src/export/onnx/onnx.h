/*
 * onnx.h - an ONNX model under construction, and one that was read back.
 *
 * Nodes are added in order; a value is the name of a tensor. Like a graph of ours the model keeps its first
 * error and answers NULL from then on, so that a computation reads as maths:
 *
 *     rt_onnx_val p = rt_onnx_softmax(o, z);
 *     rt_onnx_val h = rt_onnx_neg(o, rt_onnx_sum_last(o, rt_onnx_mul(o, p, rt_onnx_log(o, p))));
 *
 * The structures are those that protobuf-c makes of onnx.proto; nothing outside this module sees them.
 */
#ifndef RT_EXPORT_ONNX_H
#define RT_EXPORT_ONNX_H

#include "base/str.h"
#include "tensor/tensor.h"

enum { RT_ONNX_EXP = 80 }; /* exponentials of outputs end here on both sides: floats have no room for more */

typedef struct rt_onnx rt_onnx;
typedef const char *rt_onnx_val; /* name of a tensor; NULL: absent, or after an error */

typedef struct rt_onnx_attr {
    const char *name; /* NULL ends a list */
    enum { RT_ONNX_INT = 1, RT_ONNX_FLOAT, RT_ONNX_INTS } kind;
    int64_t i;
    float f;
    const int64_t *ints;
    int n;
} rt_onnx_attr;
#define RT_ONNX_I(name, value)                                                                               \
    { name, RT_ONNX_INT, value, 0, NULL, 0 }
#define RT_ONNX_F(name, value)                                                                               \
    { name, RT_ONNX_FLOAT, 0, value, NULL, 0 }
#define RT_ONNX_IS(name, values, count)                                                                      \
    { name, RT_ONNX_INTS, 0, 0, values, count }

rt_status rt_onnx_create(rt_onnx **out, int opset) RT_MUST_CHECK;
void rt_onnx_destroy(rt_onnx **o);
rt_status rt_onnx_status(const rt_onnx *o) RT_MUST_CHECK; /* the first error, recorded again on this thread */
void rt_onnx_fail(rt_onnx *o, rt_status st); /* takes the thread's error record as the model's first error */
int rt_onnx_opset(const rt_onnx *o);
/* Tensors and nodes named from now on begin with this, copied; NULL ends it. */
void rt_onnx_scope(rt_onnx *o, const char *scope);

/* A node with one output, named after the operator. attrs: NULL or a list that ends with {0}. */
rt_onnx_val rt_onnx_node(rt_onnx *o, const char *op, const rt_onnx_val *in, int nin,
                         const rt_onnx_attr *attrs);
/* A tensor of the file. The floats are read when the model is packed and must live until then; the name is
 * kept (made unique if it is taken). */
rt_onnx_val rt_onnx_tensor(rt_onnx *o, const char *name, const rt_shape *s, const float *data);
rt_onnx_val rt_onnx_ints(rt_onnx *o, const int64_t *v, int n); /* (n) int64; equal lists are shared */
rt_onnx_val rt_onnx_scalar(rt_onnx *o, double v);              /* float, rank 0; equal numbers are shared */
/* Memory that lives as long as the model: for numbers that are made for the file. NULL after an error. */
float *rt_onnx_floats(rt_onnx *o, int64_t n);

/* x of (N, row...), raw rows. with_default: a scalar input that may be left out (the tensor of that name). */
rt_onnx_val rt_onnx_input(rt_onnx *o, const char *name, const rt_shape *row);
rt_onnx_val rt_onnx_input_scalar(rt_onnx *o, const char *name, double with_default);
/* v under its own name in the interface; shape of a row ("N" comes first). */
typedef enum rt_onnx_type { RT_ONNX_F32 = 1, RT_ONNX_I64 = 7, RT_ONNX_BOOL = 9 } rt_onnx_type;
void rt_onnx_output(rt_onnx *o, const char *name, rt_onnx_val v, rt_onnx_type type, const rt_shape *row);
void rt_onnx_meta(rt_onnx *o, const char *key, const char *value);

/* The bytes of the file, rt_alloc'ed. When the tensors pass 2 GB less a margin they are written to PATH.data
 * instead; *outside is then their size. path NULL: again, after more metadata; what is outside is there already. */
rt_status rt_onnx_pack(rt_onnx *o, const char *path, uint8_t **bytes, size_t *n,
                       int64_t *outside) RT_MUST_CHECK;

/* ---- maths (onnx_math.c); element-wise with broadcasting ---- */
rt_onnx_val rt_onnx_unary(rt_onnx *o, const char *op, rt_onnx_val x);
rt_onnx_val rt_onnx_binary(rt_onnx *o, const char *op, rt_onnx_val a, rt_onnx_val b);
rt_onnx_val rt_onnx_add(rt_onnx *o, rt_onnx_val a, rt_onnx_val b);
rt_onnx_val rt_onnx_sub(rt_onnx *o, rt_onnx_val a, rt_onnx_val b);
rt_onnx_val rt_onnx_mul(rt_onnx *o, rt_onnx_val a, rt_onnx_val b);
rt_onnx_val rt_onnx_div(rt_onnx *o, rt_onnx_val a, rt_onnx_val b);
rt_onnx_val rt_onnx_affine(rt_onnx *o, rt_onnx_val x, double a, double b); /* a x + b */
rt_onnx_val rt_onnx_clip(rt_onnx *o, rt_onnx_val x, double lo, double hi);
rt_onnx_val rt_onnx_where(rt_onnx *o, rt_onnx_val condition, rt_onnx_val a, rt_onnx_val b);
rt_onnx_val rt_onnx_poly(rt_onnx *o, rt_onnx_val x, const double *c, int n); /* c[0] + c[1] x + ... */
rt_onnx_val rt_onnx_sum(rt_onnx *o, rt_onnx_val x, int axis, bool keep);
rt_onnx_val rt_onnx_mean(rt_onnx *o, rt_onnx_val x, int axis, bool keep);
rt_onnx_val rt_onnx_max(rt_onnx *o, rt_onnx_val x, int axis, bool keep);
rt_onnx_val rt_onnx_softmax(rt_onnx *o, rt_onnx_val x, bool log); /* over the last axis */
rt_onnx_val rt_onnx_reshape(rt_onnx *o, rt_onnx_val x, const int64_t *dims, int n);
rt_onnx_val rt_onnx_transpose(rt_onnx *o, rt_onnx_val x, const int64_t *perm, int n);
rt_onnx_val rt_onnx_gather(rt_onnx *o, rt_onnx_val x, int64_t index, int axis); /* one slice; the axis goes */
rt_onnx_val rt_onnx_concat(rt_onnx *o, const rt_onnx_val *x, int n, int axis);

#endif
