/*
 * gemm.h - the matrix product of this directory, for the kernels that are products: MATMUL and BMM.
 */
#ifndef RT_KERN_VEC_GEMM_H
#define RT_KERN_VEC_GEMM_H

#include "kern/kern_gemm.h"
#include "kern/vec/simd.h"

/* What becomes of an element as it is stored: x + bias[column], then a ReLU of slope alpha below zero, or the
 * adjoint of one, whose mask is the sign of another matrix like C. The common ones are known by name. */
typedef enum rt_gemm_end_kind {
    RT_END_NONE,
    RT_END_BIAS,
    RT_END_BIAS_RELU,
    RT_END_MASK,
    RT_END_ANY,
    RT_END_COUNT
} rt_gemm_end_kind;
typedef struct rt_gemm_end {
    rt_gemm_end_kind kind;
    const float *bias, *mask; /* NULL: none */
    bool relu;
    float alpha;
} rt_gemm_end;

/* One vector; bias and mask at it, lanes from n on hold anything. kind is a constant. */
RT_INLINE vf gemm_finish(const int kind, const rt_gemm_end *e, vf x, const float *bias, const float *mask,
                         int64_t n) {
    if (kind == RT_END_BIAS)
        return x + v_load_part(bias, n);
    if (kind == RT_END_BIAS_RELU)
        return v_max(v_set(0.0f), x + v_load_part(bias, n)); /* in this order a NaN stays */
    if (kind == RT_END_MASK)
        return v_and(v_load_part(mask, n) > 0.0f, x);
    if (e->bias != NULL)
        x += v_load_part(bias, n);
    if (e->relu)
        x = v_select(x > 0.0f, x, e->alpha * x);
    if (e->mask != NULL)
        x = v_select(v_load_part(mask, n) > 0.0f, x, e->alpha * x);
    return x;
}

int64_t RT_V(rt_vec_gemm_scratch)(const rt_gemm *g); /* floats */
/* One product of g, stored as `end` says (not NULL), which is nothing if A is transposed; c overlaps none of the
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
