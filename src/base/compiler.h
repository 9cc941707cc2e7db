/*
 * compiler.h - the one place where compiler extensions are spelled.
 *
 * Everything outside this header is C11. RT_ASSERT guards against our own mistakes, never against input:
 * it is compiled out of release builds, so that the library can neither abort nor exit.
 */
#ifndef RT_BASE_COMPILER_H
#define RT_BASE_COMPILER_H

#if defined(__GNUC__) || defined(__clang__)
#define RT_MUST_CHECK __attribute__((warn_unused_result))
#define RT_PRINTF(fmt_index, first_arg) __attribute__((format(printf, fmt_index, first_arg)))
#define RT_LIKELY(x) __builtin_expect(!!(x), 1)
#define RT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define RT_INLINE static inline __attribute__((always_inline))
#define RT_NOINLINE __attribute__((noinline))
#define RT_UNUSED __attribute__((unused))
#define RT_ALIGNED(n) __attribute__((aligned(n)))
#define RT_TARGET(isa) __attribute__((target(isa)))
#define RT_PRAGMA(text) _Pragma(#text)
#define RT_UNROLL(n) RT_PRAGMA(GCC unroll n)
#else
#define RT_MUST_CHECK
#define RT_PRINTF(fmt_index, first_arg)
#define RT_LIKELY(x) (x)
#define RT_UNLIKELY(x) (x)
#define RT_INLINE static inline
#define RT_NOINLINE
#define RT_UNUSED
#define RT_ALIGNED(n) _Alignas(n)
#define RT_TARGET(isa)
#define RT_UNROLL(n)
#endif

#ifdef RT_DEBUG
#include <assert.h>
#define RT_ASSERT(x) assert(x)
#else
#define RT_ASSERT(x) ((void)sizeof((x) ? 1 : 0))
#endif

#define RT_COUNT(a) ((int64_t)(sizeof(a) / sizeof((a)[0])))
#define RT_MIN(a, b) ((a) < (b) ? (a) : (b))
#define RT_MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
