/* stop.c - the process-wide stop request; see stop.h. */
#include "base/stop.h"
#include <stdatomic.h>

static _Atomic(const volatile sig_atomic_t *) watched;

void rt_stop_watch(const volatile sig_atomic_t *flag) {
    atomic_store(&watched, flag);
}

bool rt_stop_wanted(void) {
    const volatile sig_atomic_t *flag = atomic_load_explicit(&watched, memory_order_relaxed);
    return flag && *flag;
}

rt_status rt_stop_check(const char *doing, const char *what) {
    RT_FAIL_IF(rt_stop_wanted(), RT_E_INTERRUPTED, "interrupted while %s %s", doing, what);
    return RT_OK;
}
