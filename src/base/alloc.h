/*
 * alloc.h - all memory of the library comes from here.
 *
 * Blocks are 64-byte aligned. A hook can replace or fail allocations (fault injection); counters tell
 * how many blocks and bytes are live and how many allocations were ever made, so that a test can
 * prove that training steps allocate nothing.
 *
 * rt_alloc fails with RT_E_MEMORY and a message; *out is then NULL.
 */
#ifndef RT_BASE_ALLOC_H
#define RT_BASE_ALLOC_H

#include "base/status.h"

rt_status rt_alloc(void *out_pp, size_t bytes) RT_MUST_CHECK; /* uninitialised; out_pp is a T** */
rt_status rt_calloc(void *out_pp, size_t count, size_t size) RT_MUST_CHECK; /* zeroed, checked product */
rt_status rt_realloc(void *inout_pp, size_t old_bytes,
                     size_t new_bytes) RT_MUST_CHECK; /* keeps old block on failure */
void rt_free(void *p);                                /* NULL is fine */

typedef struct rt_alloc_stats {
    uint64_t live_blocks, live_bytes, peak_bytes, total_calls;
} rt_alloc_stats;
void rt_alloc_get_stats(rt_alloc_stats *out);

/* Most bytes that may be live at once; what would exceed it fails before anything is taken. 0: no limit. */
void rt_alloc_set_limit(uint64_t bytes);
uint64_t rt_alloc_limit(void);

/* Called before every allocation with its running number (from 1); returning false makes it fail. NULL
 * removes. */
typedef bool (*rt_alloc_hook)(void *user, uint64_t call, size_t bytes);
void rt_alloc_set_hook(rt_alloc_hook hook, void *user);

#endif
