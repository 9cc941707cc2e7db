/*
 * wino.h - the one-dimensional transforms of Winograd's convolution F(4, 3), V_W channels at a time.
 *
 * Four outputs of a filter with three taps cost six products instead of twelve (Lavin and Gray, "Fast
 * algorithms for convolutional neural networks", points 0, +-1, +-2 and infinity):
 *
 *     y = A' ((G g) . (B' d))                d: 6 inputs, g: 3 taps, y: 4 outputs, . element by element
 *     in two dimensions  Y = A' ((G g G') . (B' D B)) A
 *     and its adjoint in g  dg = G' ((B' D B) . (A dY A')) G
 *
 * A two-dimensional transform is the one-dimensional one on columns, then on rows.
 */
#ifndef RT_KERN_VEC_WINO_H
#define RT_KERN_VEC_WINO_H

#include "kern/vec/simd.h"

enum { WINO_IN = 6, WINO_OUT = 4, WINO_TAPS = 3, WINO_POS = 36, WINO_BLOCK = 16 };

/* A pixel of the data, which are C8, has 8 floats in a row: a vector of 8 channels, or two of 4. A vector of 16 is a
 * pixel of two neighbouring blocks, `apart` floats from one to the other. Where data pass through memory of ours
 * (strips, rows that are kept) the channels of a vector are together: there a pixel has WINO_PIXEL floats. */
enum { WINO_C8 = 8, WINO_PIXEL = V_W > WINO_C8 ? V_W : WINO_C8 };
RT_INLINE vf wino_load(const float *p, int64_t apart) {
#if V_W > 8
    return (vf)_mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(p)), _mm256_loadu_ps(p + apart), 1);
#else
    (void)apart;
    return v_load(p);
#endif
}
RT_INLINE void wino_store(float *p, int64_t apart, vf x) {
#if V_W > 8
    _mm256_storeu_ps(p, _mm512_castps512_ps256((__m512)x));
    _mm256_storeu_ps(p + apart, _mm512_extractf32x8_ps((__m512)x, 1));
#else
    (void)apart;
    v_store(p, x);
#endif
}

RT_INLINE void wino_input(vf t[6], const vf d[6]) { /* B' */
    const vf four = v_set(4.0f), minus_four = v_set(-4.0f), minus_five = v_set(-5.0f), two = v_set(2.0f);
    const vf a = v_fma(minus_four, d[2], d[4]), b = v_fma(minus_four, d[1], d[3]);
    const vf c = d[4] - d[2], e = two * (d[3] - d[1]);
    t[0] = v_fma(four, d[0], v_fma(minus_five, d[2], d[4]));
    t[1] = a + b;
    t[2] = a - b;
    t[3] = c + e;
    t[4] = c - e;
    t[5] = v_fma(four, d[1], v_fma(minus_five, d[3], d[5]));
}

RT_INLINE void wino_output(vf y[4], const vf m[6]) { /* A' */
    const vf p = m[1] + m[2], q = m[1] - m[2], r = m[3] + m[4], s = m[3] - m[4];
    y[0] = m[0] + p + r;
    y[1] = v_fma(v_set(2.0f), s, q);
    y[2] = v_fma(v_set(4.0f), r, p);
    y[3] = v_fma(v_set(8.0f), s, q) + m[5];
}

RT_INLINE void wino_output_adjoint(vf z[6], const vf y[4]) { /* A */
    const vf p = y[0] + y[2], q = y[1] + y[3];
    const vf r = v_fma(v_set(4.0f), y[2], y[0]), s = v_fma(v_set(8.0f), y[3], v_set(2.0f) * y[1]);
    z[0] = y[0];
    z[1] = p + q;
    z[2] = p - q;
    z[3] = r + s;
    z[4] = r - s;
    z[5] = y[3];
}

RT_INLINE void wino_taps(vf u[6], const vf g[3]) { /* G */
    const vf s = v_set(-1.0f / 6) * (g[0] + g[2]), a = v_set(1.0f / 6) * g[1];
    const vf r = v_fma(v_set(1.0f / 24), g[0], v_set(1.0f / 6) * g[2]), b = v_set(1.0f / 12) * g[1];
    u[0] = v_set(0.25f) * g[0];
    u[1] = s - a;
    u[2] = s + a;
    u[3] = r + b;
    u[4] = r - b;
    u[5] = g[2];
}

RT_INLINE void wino_taps_adjoint(vf g[3], const vf u[6]) { /* G' */
    const vf p = u[1] + u[2], q = u[2] - u[1], r = u[3] + u[4], s = u[3] - u[4];
    const vf sixth = v_set(1.0f / 6);
    g[0] = v_fma(v_set(0.25f), u[0], v_fma(v_set(1.0f / 24), r, v_set(-1.0f / 6) * p));
    g[1] = v_fma(sixth, q, v_set(1.0f / 12) * s);
    g[2] = v_fma(sixth, r - p, u[5]);
}

#endif
