/*
 * log.c - one callback, set by the program before work starts. Without it the text is not even formatted.
 */
#include "base/log.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static _Atomic(rt_log_fn) log_fn;
static _Atomic(void *) log_user;

void rt_log_set(rt_log_fn fn, void *user) {
    atomic_store_explicit(&log_user, user, memory_order_relaxed);
    atomic_store_explicit(&log_fn, fn, memory_order_release);
}

void rt_log(rt_log_level level, const char *fmt, ...) {
    rt_log_fn fn = atomic_load_explicit(&log_fn, memory_order_acquire);
    if (!fn)
        return;
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n >= 0)
        fn(atomic_load_explicit(&log_user, memory_order_relaxed), level, text);
}
