/*
 * ref_int.h - small helpers the reference kernels share: sizes of rows and channels, stable softmax pieces,
 * LU, quadratic programs.
 */
#ifndef RT_KERN_REF_REF_INT_H
#define RT_KERN_REF_REF_INT_H

#include "kern/kern_ref.h"

/* A value seen as (rows, channels, positions); a vector is (rows, 1, 1), a scalar (1, 1, 1). */
typedef struct ref_dims {
    int64_t rows, c, hw;
} ref_dims;

RT_INLINE ref_dims ref_dims_of(const rt_desc *d) {
    ref_dims r = {1, 1, 1};
    if (d->shape.rank > 0)
        r.rows = d->shape.d[0];
    if (d->shape.rank > 1)
        r.c = d->shape.d[1];
    for (int i = 2; i < d->shape.rank; i++)
        r.hw *= d->shape.d[i];
    return r;
}

RT_INLINE int64_t ref_elems(const rt_desc *d) {
    return rt_shape_elems(&d->shape);
}

/* Extent of the last axis; 1 for a scalar. */
RT_INLINE int64_t ref_last(const rt_desc *d) {
    return d->shape.rank > 0 ? d->shape.d[d->shape.rank - 1] : 1;
}

/* In-place LU factors of a row-major n x n matrix with partial pivoting: perm[i] is the row that step i
 * exchanged with i. False: a pivot is exactly zero (the factors then hold infinities where they are used,
 * never wrong finite numbers). */
bool ref_lu(double *a, int64_t *perm, int64_t n);
/* b <- A^-1 b, or A^-T b, for one right-hand side. */
void ref_lu_solve(const double *lu, const int64_t *perm, int64_t n, bool transposed, double *b);

/* w (m) minimises w' g w, g (m, m) the products of m vectors, under sum w = 1, 0 <= w <= cap; a cap
 * below 1/m counts as 1/m. gw (m) is working space. */
void ref_qp_simplex(double *w, double *gw, const double *g, int64_t m, double cap);

#endif
