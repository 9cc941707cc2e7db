/*
 * op.h - the vocabulary: operations, their attributes, shape rules and cost.
 *
 * A value is either *batched*: axis 0 holds groups x n rows, member-major, where n is the batch (or the
 * slice of it that is being computed), or *global*: parameters, statistics, scalars. rt_op_infer derives
 * type, shape and kind of an operation's result. The kind tells how the result relates to the batch, and is
 * all that slicing needs to know:
 *
 *     ROWS     batched; row r depends on rows r of the batched inputs (of any group) and on global values
 *     SUM      global; the sum, over the samples, of what each would give alone
 *     GLOBAL   global; computed from global values only
 */
#ifndef RT_OP_OP_H
#define RT_OP_OP_H

#include "tensor/tensor.h"

typedef enum rt_op {
    RT_OP_NONE,
#define RT_OP(ID, name, arity, infer, grad, flags, meaning) RT_OP_##ID,
#include "op/op.def"
#undef RT_OP
    RT_OP_COUNT
} rt_op;

enum { RT_VARIADIC = -1, RT_OP_MAX_IN = 128 };
enum { RT_OP_ELTWISE = 1, RT_OP_INTERNAL = 2 };

/* attr.index of SINKHORN and SINKHORN_BWD: which gradient. AUTO takes the implicit one of every P whose row
 * sums are 1 to within BALANCED (column sums are exact), else the unrolled. */
enum { RT_SINKHORN_AUTO, RT_SINKHORN_IMPLICIT, RT_SINKHORN_UNROLLED };
#define RT_SINKHORN_BALANCED 0.05

/* All-zero is the default of every field. op.def says which operation reads which. */
typedef struct rt_attr {
    double alpha, beta;
    bool ta, tb;
    int32_t members, index;
    int64_t start, count, n;
    int32_t kh, kw, stride, pad;
    int64_t h, w;
    uint64_t stream;
    rt_shape shape;
} rt_attr;

typedef enum rt_kind { RT_KIND_GLOBAL, RT_KIND_ROWS, RT_KIND_SUM } rt_kind;

/* What a value is. groups = 0: global. Otherwise shape.d[0] == groups * n. */
typedef struct rt_type {
    rt_dtype dtype;
    rt_kind kind; /* of the operation that makes it; leaves: ROWS or GLOBAL */
    int32_t groups;
    rt_shape shape;
} rt_type;

typedef struct rt_op_info {
    const char *name;
    int arity;
    unsigned flags;
    const char *meaning;
} rt_op_info;
const rt_op_info *rt_op_get(rt_op op);
bool rt_op_find(rt_op *out, const char *name);
void rt_attr_print(const rt_attr *a, rt_str *out); /* fields that are not zero */
bool rt_attr_equal(const rt_attr *a, const rt_attr *b);

/* Type of the result; fails with RT_E_USAGE naming operation and shapes when they do not fit. n is the
 * batch the types are for. */
rt_status rt_op_infer(rt_type *out, rt_op op, const rt_attr *attr, const rt_type *in, int nin,
                      int64_t n) RT_MUST_CHECK;
/* Floating-point operations (multiply and add count one each) and bytes read and written, for given types. */
void rt_op_cost(double *flops, double *bytes, rt_op op, const rt_attr *attr, const rt_type *out,
                const rt_type *in, int nin);

/*
 * A fused chain: acc = in[0]; for each step acc = op(acc, in[arg[0]], in[arg[1]]); out = acc. With `swap`,
 * acc is the second operand and in[arg[0]] the first (a third stays in[arg[1]]). Steps are ELTWISE
 * operations; acc is always in[0] of the operation otherwise.
 *
 * In a fused product (FUSED_MATMUL) the first step is MATMUL: acc = op(in[0], in[arg[0]]).
 *
 * In a fused convolution (FUSED_CONV) one step is CONV2D or one of its adjoints: acc = op(acc, in[arg[0]]).
 * Steps before it marked `second` act on that operand instead of acc. The last step may be BN_STATS or
 * BN_GSTATS: acc stays as it is, but the node that takes these statistics of the result may be computed
 * together with it.
 */
enum { RT_CHAIN_MAX = 16 };
typedef struct rt_chain_step {
    rt_op op;
    rt_attr attr;
    int16_t arg[2];
    bool swap, second;
} rt_chain_step;
typedef struct rt_chain {
    int n;
    rt_chain_step step[RT_CHAIN_MAX];
} rt_chain;

#endif
