/*
 * vmath.h - e^x, ln x and their relatives on vectors of floats, to about two units in the last place.
 *
 * e^x: x = n ln 2 + r, |r| <= ln 2 / 2; e^r = 1 + r + r^2 P(r), P of degree 4 fitted in the relative error of
 * e^r; times 2^n in two factors, so that results below the smallest normal number come out rounded, not zero.
 * ln x: x = 2^e (1 + t), sqrt(1/2) <= 1 + t < sqrt 2; ln(1 + t) = t - t^2 / 2 + t^3 Q(t). The coefficients
 * are weighted least squares at Chebyshev points, computed in 40 digits. Infinities and NaNs behave as in
 * libm.
 */
#ifndef RT_KERN_VEC_VMATH_H
#define RT_KERN_VEC_VMATH_H

#include "kern/vec/simd.h"

RT_INLINE vf v_exp(vf x) {
    const vf magic = v_set(12582912.0f); /* 1.5 2^23: adding it rounds to an integer */
    x = v_min(v_set(89.0f), v_max(v_set(-104.0f), x));
    const vf shifted = v_fma(x, v_set(1.44269504f), magic);
    const vf n = shifted - magic;
    vf r = v_fma(n, v_set(-0.693359375f), x); /* ln 2 in two parts, the first exact in few bits */
    r = v_fma(n, v_set(2.12194440e-4f), r);
    vf p = v_fma(r, v_set(0.0013946561375632882f), v_set(0.008369223214685917f));
    p = v_fma(p, r, v_set(0.04166626185178757f));
    p = v_fma(p, r, v_set(0.16666515171527863f));
    p = v_fma(p, r, v_set(0.5f));
    p = v_fma(p, r * r, r) + 1.0f;
    const vi e = (vi)shifted - (vi)magic, half = e >> 1;
    return p * (vf)((half + 127) << 23) * (vf)((e - half + 127) << 23);
}

RT_INLINE vf v_log(vf x) {
    const vi tiny = x < 1.17549435e-38f;
    const vf y = v_select(tiny, x * 8388608.0f, x);
    const vi bits = (vi)y, e = (bits - 0x3f3504f3) >> 23; /* 0x3f3504f3: sqrt(1/2) */
    const vf t = (vf)(bits - (e << 23)) - 1.0f;
    const vf n = __builtin_convertvector(e - (tiny & 23), vf);
    vf q = v_fma(t, v_set(0.06800912320613861f), v_set(-0.11726605147123337f));
    q = v_fma(q, t, v_set(0.11890989542007446f));
    q = v_fma(q, t, v_set(-0.12396445125341415f));
    q = v_fma(q, t, v_set(0.14217762649059296f));
    q = v_fma(q, t, v_set(-0.16668511927127838f));
    q = v_fma(q, t, v_set(0.20002245903015137f));
    q = v_fma(q, t, v_set(-0.25f));
    q = v_fma(q, t, v_set(0.3333331048488617f));
    const vf t2 = t * t;
    vf s = v_fma(q * t, t2, n * -2.12194440e-4f); /* small terms first */
    s = v_fma(t2, v_set(-0.5f), s);
    vf y_ln = v_fma(n, v_set(0.693359375f), s + t);
    const vf inf = v_set(__builtin_inff());
    y_ln = v_select(x < inf, y_ln, x); /* inf and NaN stay */
    y_ln = v_select(x == 0.0f, -inf, y_ln);
    return v_select(x < 0.0f, v_set(__builtin_nanf("")), y_ln);
}

RT_INLINE vf v_sigmoid(vf x) {
    const vf e = v_exp(-v_abs(x));
    return v_select(x < 0.0f, e, v_set(1.0f)) / (e + 1.0f);
}

/* max(x, 0) + ln(1 + e^-|x|), the rounding of 1 + e put back. */
RT_INLINE vf v_softplus(vf x) {
    const vf e = v_exp(-v_abs(x)), u = e + 1.0f;
    const vf l = v_log(u) + (e - (u - 1.0f)) / u;
    return v_max(v_set(0.0f), x) + l;
}

RT_INLINE vf v_tanh(vf x) {
    const vf a = v_abs(x), z = x * x;
    vf p = v_fma(z, v_set(-0.005704042501747608f), v_set(0.020637862384319305f));
    p = v_fma(p, z, v_set(-0.05373915657401085f));
    p = v_fma(p, z, v_set(0.133314311504364f));
    p = v_fma(p, z, v_set(-0.3333328068256378f));
    const vf small = v_fma(p * z, x, x);
    const vf big = 1.0f - 2.0f / (v_exp(a + a) + 1.0f);
    const vf signed_big = (vf)((vi)big | ((vi)x & vi_set(INT32_MIN)));
    return v_select(a < 0.625f, small, signed_big);
}

#endif
