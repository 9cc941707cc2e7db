/*
 * budget.c - refusing work that cannot fit before it starts, rather than being killed in the middle of it.
 */
#include "base/alloc.h"
#include "base/timer.h"
#include "step/step.h"

rt_status rt_memory_check(size_t more, const char *what) {
    rt_alloc_stats now;
    rt_alloc_get_stats(&now);
    uint64_t total = rt_memory_total(), limit = rt_alloc_limit();
    if (limit > 0 && (limit < total || total == 0))
        total = limit;
    double need = (double)now.live_bytes + (double)more;
    RT_FAIL_IF(total > 0 && need > (double)total, RT_E_MEMORY,
               "%s would need %.1f GiB in all, and this process may use %.1f GiB; fewer --members, train "
               "--at-once N for fewer at a time, or a smaller --batch may fit",
               what, need / 1073741824.0, (double)total / 1073741824.0);
    return RT_OK;
}
