/*
 * ref_lu.c - LU with partial pivoting, in double, and the scratch it needs.
 *
 *     P A = L U,  L unit lower, U upper, both in A's place
 *     A x = b:    L y = P b, U x = y
 *     A^T x = b:  U^T z = b, L^T P x = z
 *
 * Matrices of permutation layers are a few hundred rows at most where the reference is used; no blocking.
 */
#include "kern/ref/ref_int.h"

#include "base/size.h"
#include <math.h>

bool ref_lu(double *a, int64_t *perm, int64_t n) {
    bool regular = true;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[best * n + k]))
                best = i;
        perm[k] = best;
        for (int64_t j = 0; best != k && j < n; j++) {
            const double t = a[k * n + j];
            a[k * n + j] = a[best * n + j];
            a[best * n + j] = t;
        }
        if (a[k * n + k] == 0) {
            regular = false;
            continue;
        }
        for (int64_t i = k + 1; i < n; i++) {
            const double f = a[i * n + k] / a[k * n + k];
            a[i * n + k] = f;
            for (int64_t j = k + 1; j < n; j++)
                a[i * n + j] -= f * a[k * n + j];
        }
    }
    return regular;
}

static void exchange(double *b, int64_t i, int64_t j) {
    const double t = b[i];
    b[i] = b[j];
    b[j] = t;
}

void ref_lu_solve(const double *lu, const int64_t *perm, int64_t n, bool transposed, double *b) {
    if (!transposed) {
        for (int64_t i = 0; i < n; i++)
            exchange(b, i, perm[i]);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < i; j++)
                b[i] -= lu[i * n + j] * b[j];
        for (int64_t i = n - 1; i >= 0; i--) {
            for (int64_t j = i + 1; j < n; j++)
                b[i] -= lu[i * n + j] * b[j];
            b[i] /= lu[i * n + i];
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++)
            b[i] -= lu[j * n + i] * b[j];
        b[i] /= lu[i * n + i];
    }
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t j = i + 1; j < n; j++)
            b[i] -= lu[j * n + i] * b[j];
    for (int64_t i = n - 1; i >= 0; i--)
        exchange(b, i, perm[i]);
}

int rt_ref_conv_step(const rt_chain *chain) {
    int i = 0;
    while (chain->step[i].op != RT_OP_CONV2D && chain->step[i].op != RT_OP_CONV2D_BWD_DATA &&
           chain->step[i].op != RT_OP_CONV2D_BWD_WEIGHTS)
        i++;
    return i;
}

bool rt_ref_scratch(const rt_problem *p, size_t *bytes) {
    *bytes = 0;
    if (p->op == RT_OP_FUSED_CONV) { /* copies of the operands */
        const rt_desc *other = &p->in[p->chain->step[rt_ref_conv_step(p->chain)].arg[0]];
        return rt_size_add(rt_desc_bytes(&p->in[0]), rt_desc_bytes(other), bytes);
    }
    if (p->op == RT_OP_DIRICHLET_PROXY) { /* a number per member and one per class */
        const size_t count = (size_t)p->in_groups[0] + (size_t)p->in[0].shape.d[1];
        return rt_size_mul(count, sizeof(double), bytes);
    }
    if (p->op == RT_OP_QP_SIMPLEX) { /* one matrix, and two vectors */
        const size_t m = p->in_groups[0] > 0 ? (size_t)p->in_groups[0] : (size_t)p->in[0].shape.d[0];
        size_t all;
        return rt_size_mul(m, m + 2, &all) && rt_size_mul(all, sizeof(double), bytes);
    }
    if (p->op != RT_OP_MATINV && p->op != RT_OP_SOLVE && p->op != RT_OP_SINKHORN &&
        p->op != RT_OP_SINKHORN_BWD)
        return true;
    /* one matrix, and six vectors of double or int64; an unrolled Sinkhorn keeps all its scalings, and two
     * matrices */
    const size_t n = (size_t)p->in[0].shape.d[0];
    size_t rows, vectors = 6, count;
    if (p->op == RT_OP_SINKHORN_BWD && p->attr.index != RT_SINKHORN_IMPLICIT &&
        (!rt_size_mul((size_t)p->attr.count, 2, &vectors) || !rt_size_add(vectors, n + 6, &vectors)))
        return false;
    return rt_size_add(n, vectors, &rows) && rt_size_mul(n, rows, &count) &&
           rt_size_mul(count, sizeof(double), bytes);
}
