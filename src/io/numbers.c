/*
 * numbers.c - numbers as files store them, little-endian at any alignment, as floats.
 *
 *     kind   f floating point of 2, 4 or 8 bytes   b bfloat16: the upper half of a float; of 1 byte: true or false
 *            u, i whole number of 1, 2, 4 or 8 bytes, without and with a sign
 *
 * A half has 1 sign, 5 exponent and 10 fraction bits; a subnormal is fraction * 2^-24.
 */
#include "io/io.h"

#include <string.h>

static float of_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float of_half(uint32_t h) {
    uint32_t sign = (h & 0x8000u) << 16, exponent = (h >> 10) & 0x1f, fraction = h & 0x3ff;
    if (exponent == 0) {
        float f = (float)fraction * 0x1p-24f;
        return sign ? -f : f;
    }
    if (exponent == 31)
        return of_bits(sign | 0x7f800000u | (fraction << 13));
    return of_bits(sign | ((exponent + 112) << 23) | (fraction << 13));
}

static uint64_t load(const uint8_t *p, int size) {
    uint64_t v = 0;
    for (int i = 0; i < size; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

double rt_number_get(const uint8_t *p, char kind, int size) {
    const uint64_t bits = load(p, size);
    double wide;
    switch (kind) {
    case 'b':
        return size == 1 ? bits != 0 : (double)of_bits((uint32_t)bits << 16);
    case 'f':
        memcpy(&wide, &bits, sizeof wide);
        return size == 8 ? wide : (double)(size == 4 ? of_bits((uint32_t)bits) : of_half((uint32_t)bits));
    case 'i':
        return (double)((int64_t)(bits << (64 - 8 * size)) >> (64 - 8 * size));
    default:
        return (double)bits;
    }
}

void rt_numbers_to_f32(float *dst, const uint8_t *src, char kind, int size, int64_t n) {
    if (kind == 'f' && size == 4) {
        memcpy(dst, src, (size_t)n * sizeof *dst); /* this library runs on little-endian machines */
        return;
    }
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)rt_number_get(src + i * size, kind, size);
}
