/*
 * corrupt_draw.c - random numbers by the thousand.
 *
 * An image needs a draw per value, so all four words of a Philox block are used here, where rt_rng_uniform
 * and rt_rng_normal spend a block on one number. Normal numbers are Box-Muller in single precision, in pairs:
 *
 *     r = sqrt(-2 ln u),  r cos(2 pi v),  r sin(2 pi v),      u in (0, 1], v in [0, 1), 24 bits each
 *
 * (so none is beyond 5.8). ln, cos and sin are short series of + - * /, hence the same on every machine,
 * without branches, so that the compiler makes vectors of the loop.
 */
#include "distort/corrupt_int.h"

#include <math.h>
#include <string.h>

enum { LANES = 64 }; /* words at a time */

/* Words [4 block, 4 block + LANES) of a use. */
static void draw_lanes(rt_rng r, uint64_t use, uint64_t block, uint32_t out[LANES]) {
    for (uint64_t b = 0; b < LANES / 4; b++)
        rt_rng_block(r, (use << 40) + block + b, out + 4 * b);
}

void rt_draw_bits(rt_rng r, uint64_t use, uint32_t *dst, int64_t n) {
    uint32_t word[LANES];
    for (int64_t i = 0; i < n; i += LANES) {
        draw_lanes(r, use, (uint64_t)i / 4, word);
        memcpy(dst + i, word, (size_t)RT_MIN(n - i, LANES) * sizeof *dst);
    }
}

void rt_draw_uniform(rt_rng r, uint64_t use, float *dst, int64_t n) {
    uint32_t word[LANES];
    float u[LANES];
    for (int64_t i = 0; i < n; i += LANES) {
        draw_lanes(r, use, (uint64_t)i / 4, word);
        for (int k = 0; k < LANES; k++)
            u[k] = (float)(int32_t)(word[k] >> 8) * 0x1p-24f;
        memcpy(dst + i, u, (size_t)RT_MIN(n - i, LANES) * sizeof *dst);
    }
}

/* -2 ln u: u = m 2^e with m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh((m - 1) / (m + 1)). */
static inline float minus_2_log(float u) {
    uint32_t bits;
    float m;
    memcpy(&bits, &u, sizeof bits);
    const uint32_t up = bits - UINT32_C(0x3f3504f3); /* sqrt(1/2) goes to an exponent of its own */
    const int32_t e = (int32_t)up >> 23;
    bits = (up & UINT32_C(0x007fffff)) + UINT32_C(0x3f3504f3);
    memcpy(&m, &bits, sizeof m);
    const float s = (m - 1.0f) / (m + 1.0f), t = s * s;
    const float series = 1.0f + t * (1.0f / 3 + t * (1.0f / 5 + t * (1.0f / 7 + t * (1.0f / 9))));
    return -2.0f * ((float)e * 0.69314718f + 2.0f * s * series);
}

/* cos and sin of v turns; whole quarters are taken off exactly. */
static inline void cos_sin_turns(float v, float *cosine, float *sine) {
    const int32_t quarter = (int32_t)(v * 4.0f + 0.5f);
    const float x = (v - (float)quarter * 0.25f) * 6.28318531f, t = x * x;
    const float s = x * (1.0f + t * (-1.0f / 6 + t * (1.0f / 120 + t * (-1.0f / 5040))));
    const float c = 1.0f + t * (-1.0f / 2 + t * (1.0f / 24 + t * (-1.0f / 720 + t * (1.0f / 40320))));
    const float a = quarter & 1 ? s : c, b = quarter & 1 ? c : s;
    *cosine = (quarter + 1) & 2 ? -a : a;
    *sine = quarter & 2 ? -b : b;
}

void rt_draw_normal(rt_rng r, uint64_t use, float *dst, int64_t n) {
    uint32_t word[LANES];
    float z[LANES];
    for (int64_t i = 0; i < n; i += LANES) {
        draw_lanes(r, use, (uint64_t)i / 4, word);
        for (int k = 0; k < LANES / 2; k++) {
            const float u = (float)(int32_t)((word[k] >> 8) + 1) * 0x1p-24f;
            const float v = (float)(int32_t)(word[LANES / 2 + k] >> 8) * 0x1p-24f;
            const float radius = sqrtf(minus_2_log(u));
            float c, s;
            cos_sin_turns(v, &c, &s);
            z[k] = radius * c;
            z[LANES / 2 + k] = radius * s;
        }
        memcpy(dst + i, z, (size_t)RT_MIN(n - i, LANES) * sizeof *dst);
    }
}

double rt_draw_one(rt_rng r, uint64_t k, double low, double high) {
    return low + (high - low) * rt_rng_uniform(r, (UINT64_C(0xffff) << 40) + k);
}
