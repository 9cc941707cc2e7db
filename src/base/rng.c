/*
 * rng.c - Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 *
 *     key     = (seed low, seed high)
 *     counter = (index low, index high, stream low, stream high)
 *
 * Ten rounds; each multiplies two of the four words by fixed odd constants and mixes high and low halves
 * crosswise with the key, which grows by Weyl constants from round to round.
 *
 * Normal numbers are Box-Muller: sqrt(-2 ln u) cos(2 pi v). ln and cos of libm differ in the last bit
 * between libraries and between machines with and without fused multiply-add; the ones below use + - * /
 * only (and sqrt, which IEEE 754 rounds correctly), hence the same weights are initialised on every
 * machine.
 */
#include "base/rng.h"
#include <math.h>
#include <string.h>

static uint64_t mix64(uint64_t z) {
    z ^= z >> 30;
    z *= UINT64_C(0xbf58476d1ce4e5b9);
    z ^= z >> 27;
    z *= UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Each number passes the mixer before the next is added, so (a, b) and (b, a) are unrelated. */
uint64_t rt_rng_stream(rt_rng_purpose purpose, uint64_t a, uint64_t b) {
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t h = mix64((uint64_t)purpose * golden + golden);
    h = mix64((h ^ a) + golden);
    return mix64((h ^ b) + golden);
}

rt_rng rt_rng_make(uint64_t seed, rt_rng_purpose purpose, uint64_t a, uint64_t b) {
    return (rt_rng){.seed = seed, .stream = rt_rng_stream(purpose, a, b)};
}

uint64_t rt_rng_member_seed(uint64_t seed, int64_t member) {
    if (member == 0)
        return seed;
    return mix64(seed ^ mix64((uint64_t)member + UINT64_C(0xd1b54a32d192ed03)));
}

void rt_rng_block(rt_rng r, uint64_t index, uint32_t out[4]) {
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32);
    uint32_t c2 = (uint32_t)r.stream, c3 = (uint32_t)(r.stream >> 32);
    uint32_t k0 = (uint32_t)r.seed, k1 = (uint32_t)(r.seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)c0 * UINT32_C(0xD2511F53);
        uint64_t p1 = (uint64_t)c2 * UINT32_C(0xCD9E8D57);
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

static uint64_t word64(const uint32_t *w) {
    return (uint64_t)w[0] | (uint64_t)w[1] << 32;
}

uint64_t rt_rng_u64(rt_rng r, uint64_t index) {
    uint32_t w[4];
    rt_rng_block(r, index, w);
    return word64(w);
}

double rt_rng_uniform(rt_rng r, uint64_t index) {
    return (double)(rt_rng_u64(r, index) >> 11) * 0x1p-53;
}

float rt_rng_uniform_f32(rt_rng r, uint64_t index) {
    uint32_t w[4];
    rt_rng_block(r, index, w);
    return (float)(w[0] >> 8) * 0x1p-24f;
}

/*
 * ln x for positive normal x: x = m 2^e with m in [sqrt(1/2), sqrt(2)), then ln m = 2 artanh(s) with s =
 * (m-1)/(m+1), |s| < 0.172, eleven terms of the series.
 */
static double own_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3ff0000000000000);
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.41421356237309504880) {
        m *= 0.5;
        e++;
    }
    double s = (m - 1.0) / (m + 1.0), t = s * s, sum = 0.0;
    for (int k = 11; k >= 0; k--)
        sum = sum * t + 1.0 / (double)(2 * k + 1);
    return (double)e * 0.69314718055994530942 + 2.0 * s * sum;
}

/* cos(2 pi v), v in [0, 1): whole quarter turns are taken off exactly, the rest goes into a Taylor series. */
static double own_cos_turns(double v) {
    static const double sin_c[] = {1.0,
                                   -1.0 / 6,
                                   1.0 / 120,
                                   -1.0 / 5040,
                                   1.0 / 362880,
                                   -1.0 / 39916800,
                                   1.0 / 6227020800.0,
                                   -1.0 / 1307674368000.0,
                                   1.0 / 355687428096000.0};
    static const double cos_c[] = {1.0,
                                   -1.0 / 2,
                                   1.0 / 24,
                                   -1.0 / 720,
                                   1.0 / 40320,
                                   -1.0 / 3628800,
                                   1.0 / 479001600,
                                   -1.0 / 87178291200.0,
                                   1.0 / 20922789888000.0};
    int quarter = (int)(v * 4.0 + 0.5);
    double x = (v - (double)quarter * 0.25) * 6.28318530717958647693, t = x * x, s = 0.0, c = 0.0;
    for (int k = 8; k >= 0; k--) {
        s = s * t + sin_c[k];
        c = c * t + cos_c[k];
    }
    s *= x;
    switch (quarter & 3) {
    case 0:
        return c;
    case 1:
        return -s;
    case 2:
        return -c;
    default:
        return s;
    }
}

double rt_rng_normal(rt_rng r, uint64_t index) {
    uint32_t w[4];
    rt_rng_block(r, index, w);
    double u = (double)((word64(w) >> 11) + 1) * 0x1p-53; /* (0,1]: ln is finite */
    double v = (double)(word64(w + 2) >> 11) * 0x1p-53;
    return sqrt(-2.0 * own_log(u)) * own_cos_turns(v);
}

/* High half of the 128-bit product: n equal pieces of the 64-bit range, each off by at most one value. */
uint64_t rt_rng_below(rt_rng r, uint64_t index, uint64_t n) {
    uint64_t x = rt_rng_u64(r, index);
    uint64_t x0 = (uint32_t)x, x1 = x >> 32, n0 = (uint32_t)n, n1 = n >> 32;
    uint64_t mid = x1 * n0 + ((x0 * n0) >> 32);
    uint64_t low_mid = x0 * n1 + (uint32_t)mid;
    return x1 * n1 + (mid >> 32) + (low_mid >> 32);
}

void rt_rng_permutation(rt_rng r, int64_t *perm, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        perm[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = (int64_t)rt_rng_below(r, (uint64_t)i, (uint64_t)i + 1);
        int64_t t = perm[i];
        perm[i] = perm[j];
        perm[j] = t;
    }
}
