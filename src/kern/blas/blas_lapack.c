/*
 * blas_lapack.c - MATINV and SOLVE of global square matrices by LAPACK's LU factorisation, always in double.
 *
 * LAPACK is column-major, so it sees the transpose of a row-major A. For the inverse that is all the same:
 * (A^T)^-1 read back row-major is A^-1. For A X = B the factors are those of A^T, solved with 'T' (with 'N'
 * for A^T X = B), and B is turned once on its way into scratch. A singular matrix gives NaN: a kernel cannot
 * fail, and the trap for numbers that are not finite finds it.
 *
 *     scratch: A, n x n doubles | B^T, m x n doubles, or work of MATINV | n pivots
 */
#include "base/size.h"
#include "kern/kern.h"
#include <lapacke.h>
#include <limits.h>
#include <math.h>

enum { WORK_COLUMNS = 64 }; /* block size of dgetri */

typedef struct square {
    int64_t n, m; /* order; columns of B or of the work array */
    bool solve;
    size_t a_bytes, b_bytes, bytes;
} square;

static bool square_get(square *q, const rt_problem *p, rt_dtype dtype) {
    q->solve = p->op == RT_OP_SOLVE;
    if (p->nin != (q->solve ? 2 : 1) || p->out.dtype != dtype || p->out.layout != RT_LAYOUT_PLAIN)
        return false;
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].dtype != dtype || p->in[i].layout != RT_LAYOUT_PLAIN || p->in[i].shape.rank != 2)
            return false;
    const rt_shape *a = &p->in[0].shape;
    q->n = a->d[0];
    q->m = q->solve ? p->in[1].shape.d[1] : WORK_COLUMNS;
    if (q->n <= 0 || q->m <= 0 || q->n > INT_MAX / WORK_COLUMNS || q->m > INT_MAX || a->d[1] != q->n)
        return false;
    if (!rt_shape_equal(&p->out.shape, &p->in[p->nin - 1].shape) || (q->solve && p->in[1].shape.d[0] != q->n))
        return false;
    const size_t n = (size_t)q->n, m = (size_t)q->m;
    return rt_size_mul(n * sizeof(double), n, &q->a_bytes) &&
           rt_size_mul(n * sizeof(double), m, &q->b_bytes) &&
           rt_size_add(q->a_bytes, q->b_bytes, &q->bytes) &&
           rt_size_add(q->bytes, n * sizeof(lapack_int), &q->bytes);
}

static void layouts(const rt_problem *p, rt_layout *in, rt_layout *out) {
    for (int i = 0; i < p->nin; i++)
        in[i] = RT_LAYOUT_PLAIN;
    *out = RT_LAYOUT_PLAIN;
}

/* Factorises and solves in scratch; false if A is singular. */
static bool compute(const square *q, bool transposed, double *a, double *b, lapack_int *pivot) {
    const lapack_int n = (lapack_int)q->n, m = (lapack_int)q->m;
    if (LAPACKE_dgetrf_work(LAPACK_COL_MAJOR, n, n, a, n, pivot) != 0)
        return false;
    if (q->solve)
        return LAPACKE_dgetrs_work(LAPACK_COL_MAJOR, transposed ? 'N' : 'T', n, m, a, n, pivot, b, n) == 0;
    return LAPACKE_dgetri_work(LAPACK_COL_MAJOR, n, a, n, pivot, b, n * m) == 0;
}

#define LAPACK_KERNEL(T, dtype, DTYPE)                                                                       \
    static bool supports_##dtype(const rt_problem *p) {                                                      \
        square q;                                                                                            \
        return square_get(&q, p, DTYPE);                                                                     \
    }                                                                                                        \
    static rt_status prepare_##dtype(const rt_problem *p, void **state, size_t *scratch) {                   \
        square q;                                                                                            \
        RT_FAIL_IF(!square_get(&q, p, DTYPE), RT_E_UNSUPPORTED, "LAPACK: %s: shapes or types do not fit",    \
                   rt_op_get(p->op)->name);                                                                  \
        *state = NULL;                                                                                       \
        *scratch = q.bytes;                                                                                  \
        return RT_OK;                                                                                        \
    }                                                                                                        \
    static void run_##dtype(const void *state, const rt_problem *p, void *out, const void *const *in,        \
                            const rt_kern_ctx *ctx) {                                                        \
        (void)state;                                                                                         \
        square q;                                                                                            \
        if (!square_get(&q, p, DTYPE))                                                                       \
            return;                                                                                          \
        double *a = ctx->scratch, *b = a + q.n * q.n;                                                        \
        lapack_int *pivot = (lapack_int *)(void *)(b + q.n * q.m);                                           \
        const T *src = in[0];                                                                                \
        for (int64_t i = 0; i < q.n * q.n; i++)                                                              \
            a[i] = (double)src[i];                                                                           \
        if (q.solve) {                                                                                       \
            src = in[1];                                                                                     \
            for (int64_t i = 0; i < q.n; i++)                                                                \
                for (int64_t j = 0; j < q.m; j++)                                                            \
                    b[j * q.n + i] = (double)src[i * q.m + j];                                               \
        }                                                                                                    \
        const bool ok = compute(&q, p->attr.ta, a, b, pivot);                                                \
        const int64_t cols = q.solve ? q.m : q.n;                                                            \
        T *dst = out;                                                                                        \
        for (int64_t i = 0; i < q.n; i++)                                                                    \
            for (int64_t j = 0; j < cols; j++)                                                               \
                dst[i * cols + j] = (T)(!ok ? NAN : q.solve ? b[j * q.n + i] : a[i * q.n + j]);              \
    }                                                                                                        \
    const rt_kern rt_k_matinv_##dtype##__blas = {.impl = "blas",                                             \
                                                 .supports = supports_##dtype,                               \
                                                 .layouts = layouts,                                         \
                                                 .prepare = prepare_##dtype,                                 \
                                                 .run = run_##dtype};                                        \
    const rt_kern rt_k_solve_##dtype##__blas = {.impl = "blas",                                              \
                                                .supports = supports_##dtype,                                \
                                                .layouts = layouts,                                          \
                                                .prepare = prepare_##dtype,                                  \
                                                .run = run_##dtype};

LAPACK_KERNEL(float, f32, RT_DTYPE_F32)
LAPACK_KERNEL(double, f64, RT_DTYPE_F64)
