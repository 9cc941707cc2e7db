/*
 * png_guard.h - what reading and writing PNG share: libpng's errors and memory become ours.
 *
 * libpng reports errors by jumping. The text is kept in a guard, which is the error and the memory pointer of a
 * png_structp; allocation goes through base/alloc, so that it is counted and can be made to fail.
 */
#ifndef RT_DATA_PNG_GUARD_H
#define RT_DATA_PNG_GUARD_H

#include "base/alloc.h"
#include <png.h>
#include <setjmp.h>
#include <stdio.h>

typedef struct png_guard {
    bool no_memory;
    char message[200];
} png_guard;

static inline void png_guard_error(png_structp png, png_const_charp text) {
    png_guard *g = png_get_error_ptr(png);
    snprintf(g->message, sizeof g->message, "%s", text);
    longjmp(png_jmpbuf(png), 1);
}
static inline void png_guard_warning(png_structp png, png_const_charp text) {
    (void)png;
    (void)text;
}
static inline png_voidp png_guard_take(png_structp png, png_alloc_size_t n) {
    png_guard *g = png_get_mem_ptr(png);
    void *p = NULL;
    if (rt_alloc(&p, n) != RT_OK)
        g->no_memory = true;
    return p;
}
static inline void png_guard_give(png_structp png, png_voidp p) {
    (void)png;
    rt_free(p);
}

#endif
