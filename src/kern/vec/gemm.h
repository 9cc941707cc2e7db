/*
 * gemm.h - the matrix product of this directory, for the kernels that are products: MATMUL and BMM.
 */
#ifndef RT_KERN_VEC_GEMM_H
#define RT_KERN_VEC_GEMM_H

#include "kern/kern_gemm.h"
#include "kern/vec/simd.h"

int64_t RT_V(rt_vec_gemm_scratch)(const rt_gemm *g); /* floats */
/* One product of g; c overlaps none of the others. */
void RT_V(rt_vec_gemm)(const rt_gemm *g, float *c, const float *a, const float *b, float *scratch);

/* Its columns from j0, at most RT_GEMM_THIN (vec_gemm_thin.c). */
enum { RT_GEMM_THIN = 4 };
int64_t RT_V(rt_vec_gemm_thin_scratch)(const rt_gemm *g); /* floats */
void RT_V(rt_vec_gemm_thin)(const rt_gemm *g, int64_t j0, float *c, const float *a, const float *b,
                            float *scratch);

#endif
