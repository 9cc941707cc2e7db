/*
 * infer_matmul.c - shape rules of matrix products.
 *
 *     a                      b                       result
 *     rows (R, k)            global (k, f) [tb f,k]  rows (R, f)
 *     rows (R, k), ta        rows (R, f)             global (k, f), a sum over the batch
 *     global, any ta         global, any tb          global
 *
 * Other mixtures would need rows on an inner axis, which no value has: they are refused. BMM is the same with
 * one matrix per member: rows of group m meet matrix m of a global (M, ., .).
 */
#include "op/op_int.h"

/* (i, j) of the last two axes, after transposition. */
static void matrix_dims(const rt_shape *s, bool t, int64_t *i, int64_t *j) {
    *i = s->d[s->rank - (t ? 1 : 2)];
    *j = s->d[s->rank - (t ? 2 : 1)];
}

static rt_status product(const rt_infer *q, bool per_member) {
    const rt_type *a = &q->in[0], *b = &q->in[1];
    const rt_attr *at = q->attr;
    int global_rank = per_member ? 3 : 2;
    int64_t i, k, kb, j;
    RT_TRY(rt_infer_need_float(q));
    for (int s = 0; s < 2; s++) {
        int want = q->in[s].groups > 0 ? 2 : global_rank;
        RT_INFER_FAIL_IF(q->in[s].shape.rank != want, "input %d must have rank %d", s, want);
    }
    RT_INFER_FAIL_IF(a->groups == 0 && b->groups > 0, "a global matrix times rows is not possible: "
                                                      "rows come first, or use ta with both batched");
    matrix_dims(&a->shape, at->ta, &i, &k);
    matrix_dims(&b->shape, at->tb, &kb, &j);

    if (a->groups > 0 && b->groups > 0) {
        RT_INFER_FAIL_IF(!at->ta || at->tb, "two batched inputs need ta and no tb (a sum over the rows)");
        RT_INFER_FAIL_IF(a->groups != b->groups, "inputs must have the same groups");
        return rt_infer_global(q, a->dtype, per_member ? rt_shape3(a->groups, i, j) : rt_shape2(i, j));
    }
    RT_INFER_FAIL_IF(a->groups > 0 && at->ta, "batched input 0 with ta needs a batched input 1");
    RT_INFER_FAIL_IF(k != kb, "inner dimensions %lld and %lld differ", (long long)k, (long long)kb);
    if (a->groups > 0) {
        RT_INFER_FAIL_IF(per_member && b->shape.d[0] != a->groups, "input 1 must have %d matrices, has %lld",
                         (int)a->groups, (long long)b->shape.d[0]);
        rt_shape row = rt_shape1(j);
        return rt_infer_rows(q, a->dtype, a->groups, &row);
    }
    RT_INFER_FAIL_IF(per_member && a->shape.d[0] != b->shape.d[0],
                     "inputs must have the same number of matrices");
    return rt_infer_global(q, a->dtype, per_member ? rt_shape3(a->shape.d[0], i, j) : rt_shape2(i, j));
}

rt_status rt_infer_matmul(const rt_infer *q) {
    return product(q, false);
}

rt_status rt_infer_bmm(const rt_infer *q) {
    return product(q, true);
}
