/*
 * alloc.c - aligned blocks with a size prefix, counters and a fault hook.
 *
 *     | 64 bytes: size of the block, unused | the block, 64-byte aligned ... |
 *
 * The prefix is a whole cache line so that the block keeps its alignment; it lets rt_free account for the
 * bytes without being told. Counters are atomic because workers may allocate; they are statistics and order
 * nothing.
 *
 * Blocks of LARGE bytes or more begin at a page of HUGE and ask the system for such pages, as far as they are filled
 * whole: transforms that store to 36 places at once likely wait for the addresses of small pages (training of wrn:16,1
 * by two threads is a tenth faster with large ones).
 */
#include "base/alloc.h"
#include "base/size.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGN = 64, PREFIX = 64, HUGE = 2 << 20, LARGE = 2 * HUGE };

static atomic_uint_fast64_t max_bytes;
static atomic_uint_fast64_t live_blocks, live_bytes, peak_bytes, total_calls;
static _Atomic(rt_alloc_hook) hook_fn;
static _Atomic(void *) hook_user;

static void count_up(size_t bytes) {
    atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    uint64_t now = atomic_fetch_add_explicit(&live_bytes, bytes, memory_order_relaxed) + bytes;
    uint_fast64_t peak = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    while (now > peak && !atomic_compare_exchange_weak_explicit(&peak_bytes, &peak, now, memory_order_relaxed,
                                                                memory_order_relaxed))
        ;
}

/* A block of `total` bytes with its prefix; NULL: none is to be had. */
static unsigned char *take(size_t total) {
    const size_t align = total < LARGE ? ALIGN : HUGE;
    size_t rounded;
    /* No object is larger than PTRDIFF_MAX; sanitizers' allocators end the process when asked for one. */
    if (!rt_size_align_up(total, align, &rounded) || rounded > PTRDIFF_MAX)
        return NULL;
    unsigned char *p = aligned_alloc(align, rounded);
#ifdef MADV_HUGEPAGE
    if (p && align == HUGE) /* a wish: without it all is the same, but slower */
        (void)madvise(p, total / HUGE * HUGE, MADV_HUGEPAGE);
#endif
    return p;
}

rt_status rt_alloc(void *out_pp, size_t bytes) {
    void **out = out_pp;
    *out = NULL;
    uint64_t call = atomic_fetch_add_explicit(&total_calls, 1, memory_order_relaxed) + 1;
    rt_alloc_hook hook = atomic_load_explicit(&hook_fn, memory_order_acquire);
    bool allowed = !hook || hook(atomic_load_explicit(&hook_user, memory_order_relaxed), call, bytes);

    const uint64_t limit = rt_alloc_limit(), live = atomic_load_explicit(&live_bytes, memory_order_relaxed);
    RT_FAIL_IF(limit > 0 && (bytes > limit || live > limit - bytes), RT_E_MEMORY,
               "out of memory: %zu bytes wanted, %llu in use, and the limit is %llu (--max-memory)", bytes,
               (unsigned long long)live, (unsigned long long)limit);
    size_t total;
    unsigned char *p = NULL;
    if (allowed && rt_size_add(bytes, PREFIX, &total))
        p = take(total);
    RT_FAIL_IF(!p, RT_E_MEMORY, "out of memory: %zu bytes wanted", bytes);
    memcpy(p, &bytes, sizeof bytes);
    count_up(bytes);
    *out = p + PREFIX;
    return RT_OK;
}

rt_status rt_calloc(void *out_pp, size_t count, size_t size) {
    void **out = out_pp;
    *out = NULL;
    size_t bytes;
    RT_FAIL_IF(!rt_size_mul(count, size, &bytes), RT_E_MEMORY, "out of memory: %zu times %zu bytes wanted",
               count, size);
    RT_TRY(rt_alloc(out_pp, bytes));
    memset(*out, 0, bytes);
    return RT_OK;
}

rt_status rt_realloc(void *inout_pp, size_t old_bytes, size_t new_bytes) {
    void **inout = inout_pp;
    void *fresh;
    RT_TRY(rt_alloc(&fresh, new_bytes));
    if (*inout)
        memcpy(fresh, *inout, RT_MIN(old_bytes, new_bytes));
    rt_free(*inout);
    *inout = fresh;
    return RT_OK;
}

void rt_free(void *p) {
    if (!p)
        return;
    unsigned char *block = (unsigned char *)p - PREFIX;
    size_t bytes;
    memcpy(&bytes, block, sizeof bytes);
    atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&live_bytes, bytes, memory_order_relaxed);
    free(block);
}

void rt_alloc_get_stats(rt_alloc_stats *out) {
    out->live_blocks = atomic_load_explicit(&live_blocks, memory_order_relaxed);
    out->live_bytes = atomic_load_explicit(&live_bytes, memory_order_relaxed);
    out->peak_bytes = atomic_load_explicit(&peak_bytes, memory_order_relaxed);
    out->total_calls = atomic_load_explicit(&total_calls, memory_order_relaxed);
}

void rt_alloc_set_hook(rt_alloc_hook hook, void *user) {
    atomic_store_explicit(&hook_user, user, memory_order_relaxed);
    atomic_store_explicit(&hook_fn, hook, memory_order_release);
}

void rt_alloc_set_limit(uint64_t bytes) {
    atomic_store_explicit(&max_bytes, bytes, memory_order_relaxed);
}

uint64_t rt_alloc_limit(void) {
    return atomic_load_explicit(&max_bytes, memory_order_relaxed);
}
