/*
 * kern_gemm.c - reads a GEMM out of a MATMUL or BMM problem; the shape rules are op/infer_matmul.c's, checked
 * again only as far as a wrong reading could touch memory that is not there.
 */
#include "kern/kern_gemm.h"

/* The matrices stored in one operand: count of them, each (rows, cols). */
typedef struct stack {
    int64_t count, rows, cols;
} stack;

static bool stack_get(stack *s, const rt_desc *d, int32_t groups, rt_op op, rt_dtype dtype) {
    if (d->dtype != dtype || d->layout != RT_LAYOUT_PLAIN)
        return false;
    const int64_t *x = d->shape.d;
    if (op == RT_OP_BMM && groups == 0) {
        if (d->shape.rank != 3)
            return false;
        *s = (stack){x[0], x[1], x[2]};
    } else {
        if (d->shape.rank != 2)
            return false;
        int64_t count = op == RT_OP_BMM ? groups : 1;
        if (x[0] % count != 0)
            return false;
        *s = (stack){count, x[0] / count, x[1]};
    }
    return s->count > 0 && s->rows > 0 && s->cols > 0;
}

bool rt_gemm_get(rt_gemm *g, const rt_problem *p, rt_dtype dtype) {
    stack a, b, c;
    if (p->nin != 2 || !stack_get(&a, &p->in[0], p->in_groups[0], p->op, dtype) ||
        !stack_get(&b, &p->in[1], p->in_groups[1], p->op, dtype) ||
        !stack_get(&c, &p->out, p->out_groups, p->op, dtype))
        return false;
    const bool ta = p->attr.ta, tb = p->attr.tb;
    *g = (rt_gemm){.count = c.count,
                   .ta = ta,
                   .tb = tb,
                   .m = c.rows,
                   .n = c.cols,
                   .k = ta ? a.rows : a.cols,
                   .lda = a.cols,
                   .ldb = b.cols,
                   .sa = a.rows * a.cols,
                   .sb = b.rows * b.cols,
                   .sc = c.rows * c.cols};
    return a.count == c.count && b.count == c.count && (ta ? a.cols : a.rows) == g->m &&
           (tb ? b.rows : b.cols) == g->n && (tb ? b.cols : b.rows) == g->k;
}
