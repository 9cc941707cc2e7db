/*
 * cost.c - work and traffic of one operation, for slicing, scheduling and reports.
 *
 * Multiply and add count one each: a dot product of length k is 2 k. Element-wise work counts one per element
 * (and step of a chain), transcendental functions too: they are limited by memory. Bytes are the inputs and
 * the output, each once.
 */
#include "op/op_int.h"

static double elems(const rt_type *t) {
    double n = 1;
    for (int i = 0; i < t->shape.rank; i++)
        n *= (double)t->shape.d[i];
    return n;
}

/* 2 x output pixels x the window over the input channels, whichever of the three arrays is the result. */
static double conv_flops(const rt_type *y, const rt_type *w) {
    return 2 * elems(y) * (double)w->shape.d[1] * (double)w->shape.d[2] * (double)w->shape.d[3];
}

/* Contracted length of a product: the size of axis k of op(a); rows per group for a sum over the batch. */
static double matmul_flops(const rt_attr *attr, const rt_type *out, const rt_type *a) {
    double k = (double)a->shape.d[a->shape.rank - (attr->ta ? 2 : 1)];
    if (a->groups > 0 && attr->ta && out->shape.rank == 3)
        k /= (double)a->groups;
    return 2 * elems(out) * k;
}

static double flops_of(rt_op op, const rt_attr *attr, const rt_type *out, const rt_type *in) {
    double n0 = elems(&in[0]), dim = in[0].shape.rank > 0 ? (double)in[0].shape.d[0] : 1;
    switch (op) {
    case RT_OP_MATMUL:
    case RT_OP_BMM:
        return matmul_flops(attr, out, &in[0]);
    case RT_OP_CONV2D:
        return conv_flops(out, &in[1]);
    case RT_OP_CONV2D_BWD_DATA:
        return conv_flops(&in[0], &in[1]);
    case RT_OP_CONV2D_BWD_WEIGHTS:
        return conv_flops(&in[1], out);
    case RT_OP_MAXPOOL:
        return elems(out) * attr->kh * attr->kw;
    case RT_OP_MAXPOOL_BWD:
        return n0 * attr->kh * attr->kw;
    case RT_OP_CHAIN:
        return elems(out) * (double)RT_MAX(attr->count, 1);
    case RT_OP_RESHAPE:
    case RT_OP_TRANSPOSE:
    case RT_OP_REORDER:
    case RT_OP_STOP_GRAD:
    case RT_OP_TILE_MEMBERS:
    case RT_OP_MEMBER_GET:
    case RT_OP_MEMBER_PUT:
    case RT_OP_MEMBER_RANGE:
    case RT_OP_MEMBER_PLACE:
    case RT_OP_CONCAT_MEMBERS:
    case RT_OP_SLICE_LAST:
    case RT_OP_PAD_LAST:
    case RT_OP_ONE_HOT:
    case RT_OP_EXPAND_ROW:
    case RT_OP_EXPAND_CHAN:
    case RT_OP_EXPAND_TOTAL:
    case RT_OP_EXPAND_BATCH:
        return 0;
    case RT_OP_SUM_MEMBERS:
    case RT_OP_ROW_SUM:
    case RT_OP_ROW_MAX:
    case RT_OP_CHAN_SUM:
    case RT_OP_TOTAL_SUM:
    case RT_OP_BATCH_SUM:
    case RT_OP_GLOBAL_AVGPOOL:
        return n0;
    case RT_OP_ROW_DOT:
    case RT_OP_CHAN_DOT:
    case RT_OP_TOTAL_DOT:
    case RT_OP_BN_APPLY:
        return 2 * n0;
    case RT_OP_BN_STATS:
        return 3 * n0;
    case RT_OP_BN_GSTATS:
    case RT_OP_BN_GAPPLY:
    case RT_OP_SOFTMAX:
    case RT_OP_SOFTMAX_BWD:
    case RT_OP_LOG_SOFTMAX:
    case RT_OP_LOG_SOFTMAX_BWD:
    case RT_OP_CE_LABEL:
    case RT_OP_CE_DIST:
    case RT_OP_DIRICHLET_NLL:
    case RT_OP_DIRICHLET_KL:
    case RT_OP_DIRICHLET_PROXY:
        return 4 * n0;
    case RT_OP_CE_LABEL_BWD:
    case RT_OP_CE_DIST_BWD:
    case RT_OP_DIRICHLET_NLL_BWD:
    case RT_OP_DIRICHLET_KL_BWD:
        return 4 * elems(out);
    case RT_OP_QP_SIMPLEX: /* the products of all pairs */
        return 2 * n0 * (in[0].groups > 0 ? (double)in[0].groups : dim);
    case RT_OP_MATINV:
        return 2 * n0 * dim;
    case RT_OP_RANK1_BWD:
        return 3 * n0;
    case RT_OP_SOLVE:
        return n0 * dim * 2 / 3 + 2 * n0 * (double)out->shape.d[1];
    case RT_OP_SINKHORN: /* an iteration is a product with a vector and one with its transpose */
    case RT_OP_SINKHORN_BWD:
        return 4 * n0 * (double)attr->count;
    default:
        return elems(out);
    }
}

void rt_op_cost(double *flops, double *bytes, rt_op op, const rt_attr *attr, const rt_type *out,
                const rt_type *in, int nin) {
    double b = elems(out) * (double)rt_dtype_size(out->dtype);
    for (int i = 0; i < nin; i++)
        b += elems(&in[i]) * (double)rt_dtype_size(in[i].dtype);
    *bytes = b;
    *flops = nin > 0 ? flops_of(op, attr, out, in) : 0;
}
