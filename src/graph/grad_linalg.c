/*
 * grad_linalg.c - gradient rules of linear algebra.
 *
 *     Y = A^-1        dA = -Y^T dY Y^T
 *     X = A^-1 B      dB = A^-T dX,  dA = -dB X^T
 *     X = A^-T B      dB = A^-1 dX,  dA = -X dB^T
 */
#include "graph/graph_int.h"

RT_GRAD_RULE(matinv) {
    rt_val left = rt_matmul(c->g, y, dy, true, false);
    rt_grad_give(c, nd->in[0], rt_neg(c->g, rt_matmul(c->g, left, y, false, true)));
}

RT_GRAD_RULE(solve) {
    rt_val a = nd->in[0], b = nd->in[1];
    rt_val db = rt_solve(c->g, a, dy, !nd->attr.ta);
    rt_grad_give(c, b, db);
    if (rt_grad_wants(c, a)) {
        rt_val p = nd->attr.ta ? rt_matmul(c->g, y, db, false, true) : rt_matmul(c->g, db, y, false, true);
        rt_grad_give(c, a, rt_neg(c->g, p));
    }
}

RT_GRAD_RULE(sinkhorn) {
    rt_grad_give(c, nd->in[0], rt_op3(c->g, RT_OP_SINKHORN_BWD, nd->attr, dy, y, nd->in[0]));
}
