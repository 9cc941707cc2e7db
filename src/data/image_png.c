/*
 * image_png.c - PNG by libpng, from memory, to 8-bit planes.
 *
 * Palettes, 1, 2, 4 and 16 bits become 8; transparency is dropped. Before a pixel is decoded the size is
 * checked against the pixel limit and against the file: a large picture that expands more than 200:1 is blank, or a
 * trap (deflate reaches 1032:1). Ancillary chunks (profiles, texts) are discarded unread: they only ever carried
 * attacks. libpng leaves by longjmp; every resource lives in one struct outside the jump, so nothing is lost.
 */
#include "data/data_int.h"

#include "data/png_guard.h"

#include <string.h>

enum { PNG_RATIO = 200, PNG_SLACK = 16 << 20 };

typedef struct png_job {
    png_structp png;
    png_infop info;
    const uint8_t *src;
    size_t n, at;
    const char *name;
    uint8_t *pixels; /* (h, w, c) */
    png_bytep *rows;
    int64_t c, h, w;
    png_guard guard;
} png_job;

static void png_on_read(png_structp png, png_bytep to, size_t n) {
    png_job *j = png_get_io_ptr(png);
    if (n > j->n - j->at)
        png_error(png, "file is truncated");
    memcpy(to, j->src + j->at, n);
    j->at += n;
}

/* Everything that may jump. Returns false with j->guard.message set. */
static bool png_run(png_job *j) {
    if (setjmp(png_jmpbuf(j->png)))
        return false;
    png_structp png = j->png;
    png_set_read_fn(png, j, png_on_read);
    png_set_user_limits(png, 1000000, 1000000);
    png_set_chunk_malloc_max(png, 1 << 20);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(png, j->info);
    j->w = png_get_image_width(png, j->info);
    j->h = png_get_image_height(png, j->info);
    if (j->w * j->h > rt_image_pixels_max)
        png_error(png, "more than 64 million pixels");
    size_t raw = (size_t)png_get_rowbytes(png, j->info) * (size_t)j->h;
    if (raw > PNG_SLACK && raw / PNG_RATIO > j->n)
        png_error(png, "the size in its header is too much for so short a file");
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, j->info);
    j->c = png_get_channels(png, j->info);
    size_t stride = png_get_rowbytes(png, j->info);
    if ((j->c != 1 && j->c != 3) || stride != (size_t)(j->w * j->c))
        png_error(png, "neither grey nor RGB");
    j->guard.no_memory = rt_alloc(&j->pixels, stride * (size_t)j->h) != RT_OK ||
                         rt_calloc(&j->rows, (size_t)j->h, sizeof *j->rows) != RT_OK;
    if (j->guard.no_memory)
        png_error(png, "out of memory");
    for (int64_t y = 0; y < j->h; y++)
        j->rows[y] = j->pixels + (size_t)y * stride;
    png_read_image(png, j->rows);
    png_read_end(png, NULL);
    return true;
}

rt_status rt_png_decode(rt_picture *out, const uint8_t *src, size_t n, const char *name) {
    *out = (rt_picture){.data = NULL};
    RT_FAIL_IF(n < 8 || png_sig_cmp(src, 0, 8) != 0, RT_E_INPUT, "%s: not a PNG file", name);
    png_job j = {.src = src, .n = n, .name = name};
    rt_status st = RT_OK;
    j.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &j.guard, png_guard_error, png_guard_warning,
                                     &j.guard, png_guard_take, png_guard_give);
    j.info = j.png ? png_create_info_struct(j.png) : NULL;
    if (j.info == NULL)
        RT_FAIL_GOTO(RT_E_MEMORY, "%s: no memory to decode", name);
    if (!png_run(&j))
        RT_FAIL_GOTO(j.guard.no_memory ? RT_E_MEMORY : RT_E_INPUT, "%s: bad PNG: %s", name, j.guard.message);
    st = rt_picture_from_pixels(out, j.pixels, j.c, j.h, j.w);
done:
    png_destroy_read_struct(&j.png, &j.info, NULL);
    rt_free(j.pixels);
    rt_free(j.rows);
    return st;
}
