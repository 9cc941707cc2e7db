/*
 * dispatch.c - sends the kernels outside the graph (sums over slices, optimisers) to the best instruction set
 * of this CPU.
 */
#include "kern/kern_vec.h"

#if defined(RT_WITH_X86) && RT_WITH_X86
#define PICK(name)                                                                                           \
    (rt_cpu_isa() == RT_ISA_AVX512 ? name##__avx512                                                          \
     : rt_cpu_isa() == RT_ISA_AVX2 ? name##__avx2                                                            \
                                   : name##__plain)
#else
#define PICK(name) (name##__plain)
#endif

void rt_k_tree_sum_f32(float *dst, const float *const *src, int nsrc, int64_t lo, int64_t hi) {
    PICK(rt_k_tree_sum_f32)(dst, src, nsrc, lo, hi);
}

void rt_k_tree_sum_f64(double *dst, const double *const *src, int nsrc, int64_t lo, int64_t hi) {
    PICK(rt_k_tree_sum_f64)(dst, src, nsrc, lo, hi);
}

void rt_k_sgd_f32(float *w, const float *g, float *m, int64_t n, rt_k_sgd o) {
    PICK(rt_k_sgd_f32)(w, g, m, n, o);
}

void rt_k_adam_f32(float *w, const float *g, float *m, float *v, int64_t n, rt_k_adam o) {
    PICK(rt_k_adam_f32)(w, g, m, v, n, o);
}

double rt_k_sum_squares_f32(const float *x, int64_t n, bool v3) {
#if defined(RT_WITH_X86) && RT_WITH_X86
    if (v3 && rt_cpu_isa() >= RT_ISA_AVX2)
        return rt_k_sum_squares_f32__avx2(x, n);
#endif
    (void)v3;
    return PICK(rt_k_sum_squares_f32)(x, n);
}
