/*
 * gemm.h - the matrix product of this directory, for the kernels that are products: MATMUL and BMM.
 */
#ifndef RT_KERN_VEC_GEMM_H
#define RT_KERN_VEC_GEMM_H

#include "kern/kern_gemm.h"
#include "kern/vec/simd.h"

/* What becomes of an element as it is stored: x + bias[column], then a ReLU of slope alpha below zero, or the
 * adjoint of one, whose mask is the sign of another matrix like C. */
typedef struct rt_gemm_end {
    const float *bias, *mask; /* NULL: none */
    bool relu;
    float alpha;
} rt_gemm_end;

/* At column j; mask: of this element on, if there is one. Lanes from n on hold anything. */
RT_INLINE vf gemm_finish(const rt_gemm_end *e, vf x, int64_t j, const float *mask, int64_t n) {
    if (e->bias != NULL)
        x += v_load_part(e->bias + j, n);
    if (e->relu)
        x = v_select(x > 0.0f, x, e->alpha * x);
    if (e->mask != NULL)
        x = v_select(v_load_part(mask, n) > 0.0f, x, e->alpha * x);
    return x;
}

int64_t RT_V(rt_vec_gemm_scratch)(const rt_gemm *g); /* floats */
/* One product of g, stored as `end` says if that is not NULL, which wants A as it is; c overlaps none of the
 * others. */
void RT_V(rt_vec_gemm)(const rt_gemm *g, const rt_gemm_end *end, float *c, const float *a, const float *b,
                       float *scratch);

/* Its columns from j0, at most RT_GEMM_THIN (vec_gemm_thin.c). */
enum { RT_GEMM_THIN = 4 };
int64_t RT_V(rt_vec_gemm_thin_scratch)(const rt_gemm *g); /* floats */
void RT_V(rt_vec_gemm_thin)(const rt_gemm *g, const rt_gemm_end *end, int64_t j0, float *c, const float *a,
                            const float *b, float *scratch);

/* A product with A as it is and k of at most RT_GEMM_SHORT (vec_gemm_short.c). */
enum { RT_GEMM_SHORT = 4 };
int64_t RT_V(rt_vec_gemm_short_scratch)(const rt_gemm *g); /* floats */
void RT_V(rt_vec_gemm_short)(const rt_gemm *g, const rt_gemm_end *end, float *c, const float *a,
                             const float *b, float *scratch);

#endif
