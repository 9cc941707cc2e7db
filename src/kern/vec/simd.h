/*
 * simd.h - one vector of V_W floats, whatever the machine.
 *
 * Files of this directory are compiled once per instruction set (RT_ISA = plain, avx2, avx512) with the flags
 * of that set. They are written once, in the compiler's generic vectors: V_W is 4, 8 or 16. Kernels that walk
 * memory do so in groups of V_GROUP = 16 floats, V_U vectors each, so that patterns of 8 or 16 channels look
 * the same at every width. Only what generic vectors cannot say (fused multiply-add, minimum, selection,
 * masks, wide products) is spelled in intrinsics, below. A file whose data are blocks of 8 defines V_MOST as 8
 * before it includes this one: then no vector is wider than such a block.
 *
 * Everything a file shows to others carries the suffix of its instruction set: RT_V(name).
 */
#ifndef RT_KERN_VEC_SIMD_H
#define RT_KERN_VEC_SIMD_H

#include "base/compiler.h"
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define RT_V_CAT_(name, isa) name##__##isa
#define RT_V_CAT(name, isa) RT_V_CAT_(name, isa)
#define RT_V(name) RT_V_CAT(name, RT_ISA)
#define RT_V_STR_(x) #x
#define RT_V_STR(x) RT_V_STR_(x)
#define RT_V_IMPL RT_V_STR(RT_ISA)

#if defined(__AVX512F__) && (!defined(V_MOST) || V_MOST >= 16)
#define V_512 /* what intrinsics there are for vectors of this width */
#define V_W 16
#elif defined(__AVX2__)
#define V_256
#define V_W 8
#else
#if defined(__SSE2__)
#define V_128
#endif
#define V_W 4
#endif
#define V_GROUP 16
#define V_U (V_GROUP / V_W)

typedef float vf __attribute__((vector_size(4 * V_W)));
typedef int32_t vi __attribute__((vector_size(4 * V_W)));
typedef uint32_t vu __attribute__((vector_size(4 * V_W)));
typedef double vd __attribute__((vector_size(4 * V_W))); /* V_W / 2 doubles */
typedef float vf_any __attribute__((vector_size(4 * V_W), aligned(4), may_alias));
typedef int32_t vi_any __attribute__((vector_size(4 * V_W), aligned(4), may_alias));
typedef double vd_any __attribute__((vector_size(4 * V_W), aligned(8), may_alias));

RT_INLINE vf v_load(const float *p) {
    return *(const vf_any *)p;
}
RT_INLINE void v_store(float *p, vf x) {
    *(vf_any *)p = x;
}
RT_INLINE vd vd_load(const double *p) {
    return *(const vd_any *)p;
}
RT_INLINE void vd_store(double *p, vd x) {
    *(vd_any *)p = x;
}
RT_INLINE vf v_set(float x) {
    return x - (vf){0};
}
RT_INLINE vi vi_set(int32_t x) {
    return x - (vi){0};
}
RT_INLINE vd vd_set(double x) {
    return x - (vd){0};
}

RT_INLINE vf v_fma(vf a, vf b, vf c) { /* a b + c */
#if defined(V_512)
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(V_256)
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}
/* Of a NaN and a number both give b. */
RT_INLINE vf v_max(vf a, vf b) { /* a > b ? a : b */
#if defined(V_512)
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(V_256)
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif defined(V_128)
    return (vf)_mm_max_ps((__m128)a, (__m128)b);
#else
    vi m = a > b;
    return (vf)((m & (vi)a) | (~m & (vi)b));
#endif
}
RT_INLINE vf v_min(vf a, vf b) { /* a < b ? a : b */
#if defined(V_512)
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif defined(V_256)
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#elif defined(V_128)
    return (vf)_mm_min_ps((__m128)a, (__m128)b);
#else
    vi m = a < b;
    return (vf)((m & (vi)a) | (~m & (vi)b));
#endif
}
/* m is all ones or all zeros in each lane, as comparisons give. */
RT_INLINE vf v_select(vi m, vf yes, vf no) {
#if defined(V_256)
    return (vf)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)m);
#else
    return (vf)((m & (vi)yes) | (~m & (vi)no));
#endif
}
RT_INLINE vf v_and(vi m, vf x) {
    return (vf)(m & (vi)x);
}
RT_INLINE vf v_abs(vf x) {
    return (vf)((vi)x & 0x7fffffff);
}
RT_INLINE vf v_sqrt(vf x) {
#if defined(V_512)
    return (vf)_mm512_sqrt_ps((__m512)x);
#elif defined(V_256)
    return (vf)_mm256_sqrt_ps((__m256)x);
#elif defined(V_128)
    return (vf)_mm_sqrt_ps((__m128)x);
#else
    for (int i = 0; i < V_W; i++)
        x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
}

/* The first n < V_W elements; the other lanes read as zero, are not written. */
RT_INLINE vf v_load_n(const float *p, int64_t n) {
#if defined(V_512)
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1u), p);
#elif defined(V_256)
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return (vf)_mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane));
#else
    vf x = {0};
    for (int i = 0; i < n; i++)
        x[i] = p[i];
    return x;
#endif
}
RT_INLINE void v_store_n(float *p, vf x, int64_t n) {
#if defined(V_512)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1u), (__m512)x);
#elif defined(V_256) /* masked stores take a dozen cycles and more on AMD */
    __m128 q = _mm256_castps256_ps128((__m256)x);
    if (n & 4) {
        _mm_storeu_ps(p, q);
        q = _mm256_extractf128_ps((__m256)x, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)p, q);
        q = _mm_movehl_ps(q, q);
        p += 2;
    }
    if (n & 1)
        _mm_store_ss(p, q);
#else
    for (int i = 0; i < n; i++)
        p[i] = x[i];
#endif
}
/* All ones in the first n lanes. */
RT_INLINE vi v_mask_n(int64_t n) {
#if V_W == 16
    const vi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#elif V_W == 8
    const vi lane = {0, 1, 2, 3, 4, 5, 6, 7};
#else
    const vi lane = {0, 1, 2, 3};
#endif
    return lane < (int32_t)n;
}

/* Sums in a fixed order: halves folded onto each other. */
RT_INLINE float v_sum(vf x) {
    float t[V_W];
    memcpy(t, &x, sizeof(t));
    for (int w = V_W / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++)
            t[i] += t[i + w];
    return t[0];
}
/* Four lanes, whatever V_W: the first n <= 4, a constant, are loaded and stored. */
typedef float vq __attribute__((vector_size(16)));
typedef int32_t vqi __attribute__((vector_size(16)));
RT_INLINE vq vq_load(const float *p, const int n) {
    vq x;
    if (n < 4) /* not by way of memory, where the parts of a vector are waited for */
        return (vq){p[0], n > 1 ? p[1] : 0.0f, n > 2 ? p[2] : 0.0f, 0.0f};
    memcpy(&x, p, sizeof x);
    return x;
}
RT_INLINE void vq_store(float *p, vq x, const int n) {
    memcpy(p, &x, (size_t)n * sizeof(float));
}
RT_INLINE vq vq_select(vqi m, vq yes, vq no) {
    return (vq)((m & (vqi)yes) | (~m & (vqi)no));
}
/* The sums of four vectors; in a fixed order, too. */
RT_INLINE vq v_sum4(const vf *x) {
#if defined(V_256)
    const __m256 ab = _mm256_hadd_ps((__m256)x[0], (__m256)x[1]),
                 cd = _mm256_hadd_ps((__m256)x[2], (__m256)x[3]), s = _mm256_hadd_ps(ab, cd);
    return (vq)_mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
#else
    return (vq){v_sum(x[0]), v_sum(x[1]), v_sum(x[2]), v_sum(x[3])};
#endif
}
RT_INLINE float v_hmax(vf x) { /* greatest lane; NaN if one is NaN is not promised */
    float t[V_W];
    memcpy(t, &x, sizeof(t));
    for (int w = V_W / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++)
            t[i] = t[i] > t[i + w] ? t[i] : t[i + w];
    return t[0];
}
RT_INLINE double vd_sum(vd x) {
    double t[V_W / 2];
    memcpy(t, &x, sizeof(t));
    for (int w = V_W / 4; w > 0; w /= 2)
        for (int i = 0; i < w; i++)
            t[i] += t[i + w];
    return t[0];
}

/* Lanes of a and b by turns: a0 b0 a1 b1 ..., the first and the second half of that. */
#if V_W == 16
#define V_ZIP_LO 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define V_ZIP_HI 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif V_W == 8
#define V_ZIP_LO 0, 8, 1, 9, 2, 10, 3, 11
#define V_ZIP_HI 4, 12, 5, 13, 6, 14, 7, 15
#else
#define V_ZIP_LO 0, 4, 1, 5
#define V_ZIP_HI 2, 6, 3, 7
#endif
#if defined(__clang__)
#define V_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define V_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (vi){__VA_ARGS__})
#endif
RT_INLINE vi vi_zip_lo(vi a, vi b) {
    return V_SHUFFLE(a, b, V_ZIP_LO);
}
RT_INLINE vi vi_zip_hi(vi a, vi b) {
    return V_SHUFFLE(a, b, V_ZIP_HI);
}
/* r[i][j] <-> r[j][i]: log2(V_W) rounds of zipping row i with row i + V_W / 2. */
RT_INLINE void v_transpose(vf r[V_W]) {
#pragma GCC unroll 4
    for (int round = 1; round < V_W; round *= 2) {
        vf t[V_W];
#pragma GCC unroll 8
        for (int i = 0; i < V_W / 2; i++) {
            t[2 * i] = (vf)vi_zip_lo((vi)r[i], (vi)r[i + V_W / 2]);
            t[2 * i + 1] = (vf)vi_zip_hi((vi)r[i], (vi)r[i + V_W / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < V_W; i++)
            r[i] = t[i];
    }
}
/* dst[j][i] = src[i][j] for V_W x V_W floats; strides of their rows. */
RT_INLINE void v_transpose_tile(float *dst, int64_t dst_row, const float *src, int64_t src_row) {
    vf r[V_W];
#if defined(V_256)
    /* quarters of rows i and i + 4 side by side as they are loaded: two rounds instead of three */
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m256 q[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            q[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(src + i * src_row + 4 * h)),
                                        _mm_loadu_ps(src + (i + 4) * src_row + 4 * h), 1);
        const __m256 a = _mm256_unpacklo_ps(q[0], q[1]), b = _mm256_unpackhi_ps(q[0], q[1]),
                     c = _mm256_unpacklo_ps(q[2], q[3]), d = _mm256_unpackhi_ps(q[2], q[3]);
        r[4 * h] = (vf)_mm256_shuffle_ps(a, c, 0x44);
        r[4 * h + 1] = (vf)_mm256_shuffle_ps(a, c, 0xee);
        r[4 * h + 2] = (vf)_mm256_shuffle_ps(b, d, 0x44);
        r[4 * h + 3] = (vf)_mm256_shuffle_ps(b, d, 0xee);
    }
#else
#pragma GCC unroll 16
    for (int i = 0; i < V_W; i++)
        r[i] = v_load(src + i * src_row);
    v_transpose(r);
#endif
#pragma GCC unroll 16
    for (int i = 0; i < V_W; i++)
        v_store(dst + i * dst_row, r[i]);
}
/* The same with n <= V_W rows of src; the other columns of dst get copies of the last. */
RT_INLINE void v_transpose_rows(float *dst, int64_t dst_row, const float *src, int64_t src_row, int64_t n) {
    vf r[V_W];
#pragma GCC unroll 16
    for (int i = 0; i < V_W; i++)
        r[i] = v_load(src + (i < n ? i : n - 1) * src_row);
    v_transpose(r);
#pragma GCC unroll 16
    for (int i = 0; i < V_W; i++)
        v_store(dst + i * dst_row, r[i]);
}

/* The first n elements, n of any size: a whole vector where there is one. */
RT_INLINE vf v_load_part(const float *p, int64_t n) {
    return n >= V_W ? v_load(p) : v_load_n(p, n);
}
RT_INLINE void v_store_part(float *p, vf x, int64_t n) {
    if (n >= V_W)
        v_store(p, x);
    else
        v_store_n(p, x, n);
}

/* Sums of floats in double: two vectors of half the lanes. */
typedef struct v_wide {
    vd lo, hi;
} v_wide;
RT_INLINE vd v_widen_lo(vf x) {
#if defined(V_512)
    return (vd)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)x));
#elif defined(V_256)
    return (vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)x));
#else
    return (vd){(double)x[0], (double)x[1]};
#endif
}
RT_INLINE vd v_widen_hi(vf x) {
#if defined(V_512)
    return (vd)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)x, 1));
#elif defined(V_256)
    return (vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)x, 1));
#else
    return (vd){(double)x[2], (double)x[3]};
#endif
}
RT_INLINE void v_wide_add(v_wide *a, vf x) {
    a->lo += v_widen_lo(x);
    a->hi += v_widen_hi(x);
}
RT_INLINE void v_wide_add_product(v_wide *a, vf x, vf y) {
    a->lo += v_widen_lo(x) * v_widen_lo(y);
    a->hi += v_widen_hi(x) * v_widen_hi(y);
}
RT_INLINE double v_wide_sum(v_wide a) {
    return vd_sum(a.lo + a.hi);
}

/* High and low halves of the 32 x 32 bit products a m, lane by lane. */
RT_INLINE void v_mul_wide(vu a, uint32_t m, vu *hi, vu *lo) {
#if defined(V_512)
    const __m512i b = _mm512_set1_epi32((int)m);
    const __m512i even = _mm512_mul_epu32((__m512i)a, b),
                  odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)a, 32), b);
    *hi = (vu)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
    *lo = (vu)_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
#elif defined(V_256)
    const __m256i b = _mm256_set1_epi32((int)m);
    const __m256i even = _mm256_mul_epu32((__m256i)a, b),
                  odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)a, 32), b);
    *hi = (vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    *lo = (vu)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
#else
    for (int i = 0; i < V_W; i++) {
        const uint64_t p = (uint64_t)a[i] * m;
        (*hi)[i] = (uint32_t)(p >> 32);
        (*lo)[i] = (uint32_t)p;
    }
#endif
}

#endif
