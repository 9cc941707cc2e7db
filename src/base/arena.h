/*
 * arena.h - many small blocks with one lifetime. Freed together; no single free.
 */
#ifndef RT_BASE_ARENA_H
#define RT_BASE_ARENA_H

#include "base/str.h"

typedef struct rt_arena {
    struct rt_arena_chunk *head;
    size_t used, cap;
} rt_arena;

void rt_arena_init(rt_arena *a);
void rt_arena_deinit(rt_arena *a);
rt_status rt_arena_alloc(rt_arena *a, void *out_pp, size_t bytes) RT_MUST_CHECK; /* zeroed, 16-byte aligned */
rt_status rt_arena_strdup(rt_arena *a, const char **out, const char *s) RT_MUST_CHECK;
rt_status rt_arena_text(rt_arena *a, const char **out, const rt_str *s) RT_MUST_CHECK; /* or its failure */

#endif
