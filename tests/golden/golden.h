/*
 * golden.h - numbers that both sides of a comparison with PyTorch can compute: a hash of (name, index). parity.py has
 * the same.
 */
#ifndef RT_TESTS_GOLDEN_H
#define RT_TESTS_GOLDEN_H

#include <stdint.h>

static inline uint32_t fnv1a(const char *s) {
    uint32_t h = 0x811c9dc5u;
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 0x01000193u;
    return h;
}

static inline uint32_t bits(uint32_t key, uint32_t i) {
    uint32_t x = i * 0x9e3779b1u + key;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* In [-0.5, 0.5). */
static inline double uniform(uint32_t key, int64_t i) {
    return (double)(bits(key, (uint32_t)i) >> 8) / 16777216.0 - 0.5;
}

#endif
