/*
 * vec_optim.c - what happens between two steps of training: sums over slices, and the optimisers, each in one
 * pass over memory.
 *
 * The tree over sources is ((0 + 1) + (2 + 3)) + ..., an odd one out passing up: a sum of n splits at the
 * largest power of two below n. Every element is computed by the same vector operations wherever it stands,
 * in the last vector too (masked loads), so that results do not depend on how workers share the range.
 *
 * SGD (as PyTorch): d = gscale g + lambda (w - centre); m = momentum m + d; w -= lr m, with Nesterov w -= lr
 * (d + momentum m). Adam: g' = gscale g + lambda (w - centre); m = beta1 m + (1 - beta1) g'; v = beta2 v + (1
 * - beta2) g'^2; w -= lr decoupled (w - centre); w -= lr (m / bias1) / (sqrt(v / bias2) + eps).
 */
#include "kern/kern_vec.h"
#include "kern/vec/simd.h"

enum { TREE_DEPTH = 32 };

/* The tree as a binary counter: equal-sized sums merge as they appear, the rest from the right. */
#define TREE(name, vec, scalar, load)                                                                        \
    RT_INLINE vec name(const scalar *const *src, int n, int64_t i) {                                         \
        vec stack[TREE_DEPTH];                                                                               \
        int depth = 0;                                                                                       \
        for (int s = 0; s < n; s++) {                                                                        \
            vec x = load(src[s] + i);                                                                        \
            for (int bit = s; bit & 1; bit >>= 1)                                                            \
                x = stack[--depth] + x;                                                                      \
            stack[depth++] = x;                                                                              \
        }                                                                                                    \
        vec sum = stack[--depth];                                                                            \
        while (depth > 0)                                                                                    \
            sum = stack[--depth] + sum;                                                                      \
        return sum;                                                                                          \
    }
RT_INLINE float load_f32(const float *p) {
    return *p;
}
RT_INLINE double load_f64(const double *p) {
    return *p;
}
TREE(tree_vf, vf, float, v_load)
TREE(tree_f32, float, float, load_f32)
TREE(tree_vd, vd, double, vd_load)
TREE(tree_f64, double, double, load_f64)

void RT_V(rt_k_tree_sum_f32)(float *dst, const float *const *src, int nsrc, int64_t lo, int64_t hi) {
    if (nsrc == 1) {
        if (dst != src[0])
            memcpy(dst + lo, src[0] + lo, (size_t)(hi - lo) * sizeof(float));
        return;
    }
    int64_t i = lo;
    if (nsrc == 2) /* the common counts as straight code */
        for (; i + V_W <= hi; i += V_W)
            v_store(dst + i, v_load(src[0] + i) + v_load(src[1] + i));
    else if (nsrc == 4)
        for (; i + V_W <= hi; i += V_W)
            v_store(dst + i,
                    (v_load(src[0] + i) + v_load(src[1] + i)) + (v_load(src[2] + i) + v_load(src[3] + i)));
    else
        for (; i + V_W <= hi; i += V_W)
            v_store(dst + i, tree_vf(src, nsrc, i));
    for (; i < hi; i++)
        dst[i] = tree_f32(src, nsrc, i);
}

void RT_V(rt_k_tree_sum_f64)(double *dst, const double *const *src, int nsrc, int64_t lo, int64_t hi) {
    int64_t i = lo;
    for (; i + V_W / 2 <= hi; i += V_W / 2)
        vd_store(dst + i, tree_vd(src, nsrc, i));
    for (; i < hi; i++)
        dst[i] = tree_f64(src, nsrc, i);
}

void RT_V(rt_k_sgd_f32)(float *w, const float *g, float *m, int64_t n, rt_k_sgd o) {
    const vf lr = v_set(-o.lr), momentum = v_set(o.momentum), lambda = v_set(o.lambda),
             gscale = v_set(o.gscale);
    for (int64_t i = 0; i < n; i += V_W) {
        const int64_t left = n - i;
        const vf vw = v_load_part(w + i, left);
        vf d = v_fma(lambda, vw - o.centre, gscale * v_load_part(g + i, left));
        if (o.momentum != 0.0f) {
            const vf vm = v_fma(momentum, v_load_part(m + i, left), d);
            v_store_part(m + i, vm, left);
            d = o.nesterov ? v_fma(momentum, vm, d) : vm;
        }
        v_store_part(w + i, v_fma(lr, d, vw), left);
    }
}

void RT_V(rt_k_adam_f32)(float *w, const float *g, float *m, float *v, int64_t n, rt_k_adam o) {
    const vf beta1 = v_set(o.beta1), beta2 = v_set(o.beta2), lambda = v_set(o.lambda),
             gscale = v_set(o.gscale);
    const vf rest1 = v_set(1.0f - o.beta1), rest2 = v_set(1.0f - o.beta2),
             decay = v_set(1.0f - o.lr * o.decoupled), shift = v_set(o.lr * o.decoupled * o.centre);
    const vf lr = v_set(-o.lr / o.bias1), bias2 = v_set(1.0f / o.bias2), eps = v_set(o.eps);
    for (int64_t i = 0; i < n; i += V_W) {
        const int64_t left = n - i;
        const vf vw = v_load_part(w + i, left);
        const vf d = v_fma(lambda, vw - o.centre, gscale * v_load_part(g + i, left));
        const vf vm = v_fma(beta1, v_load_part(m + i, left), rest1 * d);
        const vf vv = v_fma(beta2, v_load_part(v + i, left), rest2 * d * d);
        v_store_part(m + i, vm, left);
        v_store_part(v + i, vv, left);
        v_store_part(w + i, v_fma(lr, vm / (v_sqrt(vv * bias2) + eps), v_fma(decay, vw, shift)), left);
    }
}

double RT_V(rt_k_sum_squares_f32)(const float *x, int64_t n) {
    v_wide a = {0};
    int64_t i = 0;
    for (; i + V_W <= n; i += V_W)
        v_wide_add_product(&a, v_load(x + i), v_load(x + i));
    double sum = v_wide_sum(a);
    for (; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum;
}
