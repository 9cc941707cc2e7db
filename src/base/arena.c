/*
 * arena.c - bump allocation from a list of chunks.
 *
 * `used` and `cap` describe the newest chunk, the only one that is filled. Chunks double up to a megabyte,
 * so that a small graph costs one small chunk and a large one few. A block larger than a chunk gets a chunk
 * of its own behind the head, which keeps the half-filled head in use.
 */
#include "base/arena.h"
#include "base/alloc.h"
#include "base/size.h"
#include <string.h>

enum { ARENA_ALIGN = 16, CHUNK_MIN = 4096, CHUNK_MAX = 1 << 20 };

typedef struct rt_arena_chunk {
    struct rt_arena_chunk *next;
    uint64_t pad; /* data starts 16-byte aligned */
} rt_arena_chunk;

static rt_status chunk_create(rt_arena_chunk **out, size_t bytes) {
    *out = NULL;
    size_t total;
    RT_FAIL_IF(!rt_size_add(bytes, sizeof(rt_arena_chunk), &total), RT_E_MEMORY,
               "out of memory: %zu bytes wanted", bytes);
    void *p;
    RT_TRY(rt_alloc(&p, total));
    memset(p, 0, total);
    *out = p;
    return RT_OK;
}

void rt_arena_init(rt_arena *a) {
    memset(a, 0, sizeof *a);
}

void rt_arena_deinit(rt_arena *a) {
    rt_arena_chunk *c = a->head;
    while (c) {
        rt_arena_chunk *next = c->next;
        rt_free(c);
        c = next;
    }
    rt_arena_init(a);
}

rt_status rt_arena_alloc(rt_arena *a, void *out_pp, size_t bytes) {
    void **out = out_pp;
    *out = NULL;
    size_t size;
    RT_FAIL_IF(!rt_size_align_up(bytes, ARENA_ALIGN, &size), RT_E_MEMORY, "out of memory: %zu bytes wanted",
               bytes);
    if (size > a->cap - a->used) {
        rt_arena_chunk *c;
        if (size > CHUNK_MAX / 4 && a->head) {
            RT_TRY(chunk_create(&c, size));
            c->next = a->head->next;
            a->head->next = c;
            *out = c + 1;
            return RT_OK;
        }
        size_t cap = a->cap ? RT_MIN(a->cap * 2, (size_t)CHUNK_MAX) : (size_t)CHUNK_MIN;
        cap = RT_MAX(cap, size);
        RT_TRY(chunk_create(&c, cap));
        c->next = a->head;
        a->head = c;
        a->cap = cap;
        a->used = 0;
    }
    *out = (unsigned char *)(a->head + 1) + a->used;
    a->used += size;
    return RT_OK;
}

rt_status rt_arena_strdup(rt_arena *a, const char **out, const char *s) {
    *out = NULL;
    size_t n = strlen(s) + 1;
    char *p;
    RT_TRY(rt_arena_alloc(a, &p, n));
    memcpy(p, s, n);
    *out = p;
    return RT_OK;
}

rt_status rt_arena_text(rt_arena *a, const char **out, const rt_str *s) {
    RT_TRY(rt_str_get(s, out));
    return rt_arena_strdup(a, out, *out);
}
