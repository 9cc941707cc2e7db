/*
 * fail_alloc.c - preloaded into the program, it makes the n-th block of base/alloc fail (all of them come from
 * aligned_alloc), once or from then on, and counts them.
 *
 *   RT_FAIL_AT=n [RT_FAIL_ALL=1] LD_PRELOAD=fail_alloc.so retort ...
 *   RT_FAIL_COUNT=FILE            the number of blocks goes there when the program ends
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_long calls;

void *aligned_alloc(size_t align, size_t size) {
    static void *(*_Atomic real)(size_t, size_t);
    static atomic_long first = -1;
    static atomic_int all;
    if (first < 0) {
        const char *at = getenv("RT_FAIL_AT"), *more = getenv("RT_FAIL_ALL");
        *(void **)&real = dlsym(RTLD_NEXT, "aligned_alloc");
        all = more && *more;
        first = at ? atol(at) : 0;
    }
    const long n = ++calls;
    return first > 0 && (all ? n >= first : n == first) ? NULL : real(align, size);
}

__attribute__((destructor)) static void tell(void) {
    const char *path = getenv("RT_FAIL_COUNT");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (f) {
        fprintf(f, "%ld\n", (long)calls);
        fclose(f);
    }
}
