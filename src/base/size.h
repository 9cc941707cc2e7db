/*
 * size.h - checked size arithmetic. Every size that comes from a file, a flag or a shape goes through here.
 * Each function returns false on overflow and leaves *out untouched.
 */
#ifndef RT_BASE_SIZE_H
#define RT_BASE_SIZE_H

#include "base/compiler.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

RT_INLINE bool rt_size_add(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}
RT_INLINE bool rt_size_mul(size_t a, size_t b, size_t *out) {
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}
/* Rounds up to a multiple of `align`, a power of two. */
RT_INLINE bool rt_size_align_up(size_t a, size_t align, size_t *out) {
    size_t r;
    if (!rt_size_add(a, align - 1, &r))
        return false;
    *out = r & ~(align - 1);
    return true;
}
RT_INLINE bool rt_i64_add(int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}
RT_INLINE bool rt_i64_mul(int64_t a, int64_t b, int64_t *out) {
    int64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *out = r;
    return true;
}

#endif
