/*
 * v16.h - products of matrices over blocks of 16 channels, whatever the vectors of the file that includes it.
 *
 * A v16 is one register where there are such, elsewhere two or four. The product's rows of 16 stay in registers
 * while its depth goes by: V16_ROWS of them, enough to hide the latency of multiply-adds. With 32 registers of 16 a
 * product has rows of V16_BLOCKS such blocks, V16_WIDE_ROWS of them, so that a number of the left matrix is loaded for
 * two multiply-adds; where there is one block only, and all distances are constants, V16_LONG_ROWS of it. Parts of
 * V16_ROWS rows or more have no fewer than V16_ROWS themselves, so that no body of fewer is needed there.
 */
#ifndef RT_KERN_VEC_V16_H
#define RT_KERN_VEC_V16_H

#include "kern/vec/simd.h"

#if defined(__AVX512F__)

enum { V16_ROWS = 12, V16_BLOCKS = 2, V16_WIDE_ROWS = 14, V16_LONG_ROWS = 24 };
#define V16_CASES(call)                                                                                      \
    V16_CASE(1, call)                                                                                        \
    V16_CASE(2, call)                                                                                        \
    V16_CASE(3, call)                                                                                        \
    V16_CASE(4, call)                                                                                        \
    V16_CASE(5, call)                                                                                        \
    V16_CASE(6, call)                                                                                        \
    V16_CASE(7, call)                                                                                        \
    V16_CASE(8, call) V16_CASE(9, call) V16_CASE(10, call) V16_CASE(11, call) V16_CASE(12, call)
#define V16_WIDE_CASES(call) V16_CASES(call) V16_CASE(13, call) V16_CASE(14, call)
#define V16_LONG_CASES(call)                                                                                 \
    V16_CASE(12, call)                                                                                       \
    V16_CASE(13, call)                                                                                       \
    V16_CASE(14, call)                                                                                       \
    V16_CASE(15, call)                                                                                       \
    V16_CASE(16, call)                                                                                       \
    V16_CASE(17, call)                                                                                       \
    V16_CASE(18, call)                                                                                       \
    V16_CASE(19, call)                                                                                       \
    V16_CASE(20, call) V16_CASE(21, call) V16_CASE(22, call) V16_CASE(23, call) V16_CASE(24, call)
typedef float v16 __attribute__((vector_size(64)));

RT_INLINE v16 v16_zero(void) {
    return (v16)_mm512_setzero_ps();
}
RT_INLINE v16 v16_load(const float *p) {
    return (v16)_mm512_loadu_ps(p);
}
RT_INLINE void v16_store_halves(float *lo, float *hi, v16 x) {
    _mm256_storeu_ps(lo, _mm512_castps512_ps256((__m512)x));
    _mm256_storeu_ps(hi, _mm512_extractf32x8_ps((__m512)x, 1));
}
RT_INLINE void v16_store(float *p, v16 x) {
    _mm512_storeu_ps(p, (__m512)x);
}
RT_INLINE v16 v16_scale(float a, v16 x) {
    return (v16)_mm512_mul_ps(_mm512_set1_ps(a), (__m512)x);
}
RT_INLINE v16 v16_fma(float a, v16 x, v16 y) { /* a x + y */
    return (v16)_mm512_fmadd_ps(_mm512_set1_ps(a), (__m512)x, (__m512)y);
}

#else

#if V_W == 8 || defined(__aarch64__) /* which has 32 registers of 4 */
enum { V16_ROWS = 6, V16_BLOCKS = 1, V16_WIDE_ROWS = 6, V16_LONG_ROWS = 6 };
#define V16_CASES(call)                                                                                      \
    V16_CASE(1, call)                                                                                        \
    V16_CASE(2, call) V16_CASE(3, call) V16_CASE(4, call) V16_CASE(5, call) V16_CASE(6, call)
#else
enum { V16_ROWS = 3, V16_BLOCKS = 1, V16_WIDE_ROWS = 3, V16_LONG_ROWS = 3 };
#define V16_CASES(call) V16_CASE(1, call) V16_CASE(2, call) V16_CASE(3, call)
#endif
#define V16_WIDE_CASES V16_CASES
#define V16_LONG_CASES V16_CASES
enum { V16_PARTS_EACH = 16 / V_W };
typedef struct v16 {
    vf part[V16_PARTS_EACH];
} v16;
#define V16_EACH(i) _Pragma("GCC unroll 4") for (int i = 0; i < V16_PARTS_EACH; i++)

RT_INLINE v16 v16_zero(void) {
    v16 x;
    V16_EACH(i) x.part[i] = v_set(0.0f);
    return x;
}
RT_INLINE v16 v16_load(const float *p) {
    v16 x;
    V16_EACH(i) x.part[i] = v_load(p + i * V_W);
    return x;
}
RT_INLINE void v16_store_halves(float *lo, float *hi, v16 x) {
    V16_EACH(i) v_store(i * V_W < 8 ? lo + i * V_W : hi + i * V_W - 8, x.part[i]);
}
RT_INLINE void v16_store(float *p, v16 x) {
    v16_store_halves(p, p + 8, x);
}
RT_INLINE v16 v16_scale(float a, v16 x) {
    V16_EACH(i) x.part[i] = v_set(a) * x.part[i];
    return x;
}
RT_INLINE v16 v16_fma(float a, v16 x, v16 y) { /* a x + y */
    V16_EACH(i) y.part[i] = v_fma(v_set(a), x.part[i], y.part[i]);
    return y;
}

#endif

/* `count` rows in equal parts of at most `most`: call(n), a body for each n of the cases, with `at` the first row of
 * n. */
#define V16_PARTS_OF(count, most) (((count) + (most)-1) / (most))
#define V16_CASE(n, call)                                                                                    \
    case n:                                                                                                  \
        call(n);                                                                                             \
        break;
#define V16_SPLIT(count, most, at, cases, call)                                                              \
    do {                                                                                                     \
        const int64_t parts_ = V16_PARTS_OF(count, most);                                                    \
        for (int64_t i_ = 0; i_ < parts_; i_++) {                                                            \
            const int64_t at = i_ * (count) / parts_;                                                        \
            switch ((i_ + 1) * (count) / parts_ - at) { cases(call) }                                        \
        }                                                                                                    \
    } while (0)
#define V16_PARTS(count, at, call) V16_SPLIT(count, V16_ROWS, at, V16_CASES, call)

#endif
