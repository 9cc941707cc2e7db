/*
 * status.h - how failure travels.
 *
 * Every function that can fail returns rt_status. The place that notices the failure writes the message
 * once, with RT_FAIL; everybody above only forwards with RT_TRY. The message lives in a thread-local
 * record until the next failure on that thread. A worker hands its record to the thread that joins it
 * (rt_error_save / rt_error_restore).
 *
 *     RT_FAIL_IF(n < 0, RT_E_INPUT, "%s: %lld rows, wanted at least 1", path, (long long)n);
 *
 * A message names the object (file, flag, tensor), the place in it, what was found and what was wanted.
 */
#ifndef RT_BASE_STATUS_H
#define RT_BASE_STATUS_H

#include "base/compiler.h"
#include <retort.h> /* rt_status, and what else users and modules both name */
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RT_ERROR_TEXT_MAX = 1024 };

typedef struct rt_error {
    rt_status code;
    const char *file; /* source file of the failure site, static string */
    int line;
    char text[RT_ERROR_TEXT_MAX];
} rt_error;

/* Records a failure and returns `code`. Use the macros. */
rt_status rt_error_set(rt_status code, const char *file, int line, const char *fmt, ...) RT_PRINTF(4, 5);
/* Puts "prefix: " in front of the recorded message (to add a file name a lower layer did not know). */
rt_status rt_error_prefix(rt_status code, const char *fmt, ...) RT_PRINTF(2, 3);
const rt_error *rt_error_last(void);
const char *rt_error_text(void);
void rt_error_clear(void);
void rt_error_save(rt_error *dst);
void rt_error_restore(const rt_error *src);

const char *rt_status_name(rt_status s);
int rt_status_exit_code(rt_status s);

#define RT_FAIL(code, ...) return rt_error_set((code), __FILE__, __LINE__, __VA_ARGS__)
#define RT_FAIL_IF(cond, code, ...)                                                                          \
    do {                                                                                                     \
        if (RT_UNLIKELY(cond))                                                                               \
            return rt_error_set((code), __FILE__, __LINE__, __VA_ARGS__);                                    \
    } while (0)
/* Forward a failure. */
#define RT_TRY(expr)                                                                                         \
    do {                                                                                                     \
        rt_status rt_try_status_ = (expr);                                                                   \
        if (RT_UNLIKELY(rt_try_status_ != RT_OK))                                                            \
            return rt_try_status_;                                                                           \
    } while (0)
/* Forward a failure to the label `done` of a function that holds resources; needs `rt_status st`. */
#define RT_TRY_GOTO(expr)                                                                                    \
    do {                                                                                                     \
        st = (expr);                                                                                         \
        if (RT_UNLIKELY(st != RT_OK))                                                                        \
            goto done;                                                                                       \
    } while (0)
#define RT_FAIL_GOTO(code, ...)                                                                              \
    do {                                                                                                     \
        st = rt_error_set((code), __FILE__, __LINE__, __VA_ARGS__);                                          \
        goto done;                                                                                           \
    } while (0)

#endif
