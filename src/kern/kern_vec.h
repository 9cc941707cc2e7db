/*
 * kern_vec.h - vector kernels outside the graph, one set per instruction set; dispatch.c chooses. kern.h says
 * what they do.
 */
#ifndef RT_KERN_KERN_VEC_H
#define RT_KERN_KERN_VEC_H

#include "kern/kern.h"

#define RT_KERN_VEC_DECLARE(isa)                                                                             \
    void rt_k_tree_sum_f32__##isa(float *dst, const float *const *src, int nsrc, int64_t lo, int64_t hi);    \
    void rt_k_tree_sum_f64__##isa(double *dst, const double *const *src, int nsrc, int64_t lo, int64_t hi);  \
    void rt_k_sgd_f32__##isa(float *w, const float *g, float *m, int64_t n, rt_k_sgd o);                     \
    void rt_k_adam_f32__##isa(float *w, const float *g, float *m, float *v, int64_t n, rt_k_adam o);         \
    double rt_k_sum_squares_f32__##isa(const float *x, int64_t n);
RT_KERN_VEC_DECLARE(plain)
#if defined(RT_WITH_X86) && RT_WITH_X86
RT_KERN_VEC_DECLARE(avx2)
RT_KERN_VEC_DECLARE(avx512)
#endif

#endif
