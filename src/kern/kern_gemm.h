/*
 * kern_gemm.h - MATMUL and BMM as what a GEMM library wants: count matrices of op(A) op(B) = C, row-major, a
 * fixed stride apart.
 *
 * A batched operand of BMM, (M n, k), is M matrices (n, k); a global one, (M, i, j), M matrices (i, j).
 * MATMUL is one product: rows of all groups are rows of one matrix.
 */
#ifndef RT_KERN_KERN_GEMM_H
#define RT_KERN_KERN_GEMM_H

#include "kern/kern.h"

typedef struct rt_gemm {
    int64_t count;
    bool ta, tb;
    int64_t m, n, k;    /* op(A) is (m, k), op(B) (k, n) */
    int64_t lda, ldb;   /* columns as stored; C has n */
    int64_t sa, sb, sc; /* elements from one matrix to the next */
} rt_gemm;

/* False if an operand is not PLAIN and of type dtype, a dimension is zero, or the shapes do not fit. */
bool rt_gemm_get(rt_gemm *g, const rt_problem *p, rt_dtype dtype);

#endif
