/*
 * image_jpeg.c - JPEG by libjpeg, from memory, to 8-bit planes.
 *
 * libjpeg's own error handler ends the process and its warnings mean damaged data that it fills with grey: here both
 * are errors. Two kinds of malicious files are refused before they cost time or memory: a tiny file with a huge size in
 * its header (the size is compared with the file: even an empty picture needs a bit or two per block of 64 pixels), and
 * a progressive file with thousands of scans (at most 100). Decoding uses the exact integer transform, so that results
 * do not depend on the machine's instructions.
 */
#include "data/data_int.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

enum {
    JPEG_SCANS_MAX = 100,
    JPEG_PIXELS_PER_BYTE = 1000,
    JPEG_PIXELS_SLACK = 65536,
    JPEG_RATIO = 200,
    JPEG_SLACK = 16 << 20
};

typedef struct jpeg_job {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf leave;
    uint8_t *pixels; /* (h, w, c) */
    const uint8_t *src;
    size_t n;
    bool no_memory;
    char message[JMSG_LENGTH_MAX];
} jpeg_job;

static void jpeg_leave(jpeg_job *j, const char *text) {
    snprintf(j->message, sizeof j->message, "%s", text);
    longjmp(j->leave, 1);
}

static void jpeg_on_error(j_common_ptr d) {
    jpeg_job *j = d->client_data;
    char text[JMSG_LENGTH_MAX];
    d->err->format_message(d, text);
    jpeg_leave(j, text);
}
static void jpeg_on_message(j_common_ptr d, int level) {
    if (level < 0) /* a warning: data is damaged */
        jpeg_on_error(d);
}
static void jpeg_on_output(j_common_ptr d) {
    (void)d;
}
static void jpeg_on_progress(j_common_ptr d) {
    if (d->is_decompressor && ((j_decompress_ptr)d)->input_scan_number > JPEG_SCANS_MAX)
        jpeg_leave(d->client_data, "more than 100 scans");
}

/* Everything that may jump. Returns false with j->message set. */
static bool jpeg_run(jpeg_job *j) {
    j->d.err = jpeg_std_error(&j->errors);
    j->errors.error_exit = jpeg_on_error;
    j->errors.emit_message = jpeg_on_message;
    j->errors.output_message = jpeg_on_output;
    j->d.client_data = j;
    if (setjmp(j->leave))
        return false;
    jpeg_create_decompress(&j->d);
    j->progress.progress_monitor = jpeg_on_progress;
    j->d.progress = &j->progress;
    jpeg_mem_src(&j->d, j->src, (unsigned long)j->n);
    jpeg_read_header(&j->d, TRUE);
    int64_t pixels = (int64_t)j->d.image_width * (int64_t)j->d.image_height;
    if (pixels > rt_image_pixels_max)
        jpeg_leave(j, "more than 64 million pixels");
    if (3 * pixels > JPEG_SLACK && 3 * pixels / JPEG_RATIO > (int64_t)j->n)
        jpeg_leave(j, "the size in its header is too much for so short a file");
    if (pixels / JPEG_PIXELS_PER_BYTE > (int64_t)j->n + JPEG_PIXELS_SLACK / JPEG_PIXELS_PER_BYTE)
        jpeg_leave(j, "the size in its header cannot come from so short a file");
    if (j->d.jpeg_color_space == JCS_CMYK || j->d.jpeg_color_space == JCS_YCCK)
        jpeg_leave(j, "CMYK colours, wanted grey or RGB");
    j->d.out_color_space = j->d.jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    j->d.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&j->d);
    size_t stride = (size_t)j->d.output_width * (size_t)j->d.output_components;
    j->no_memory = rt_alloc(&j->pixels, stride * j->d.output_height) != RT_OK;
    if (j->no_memory)
        jpeg_leave(j, "out of memory");
    while (j->d.output_scanline < j->d.output_height) {
        JSAMPROW row = j->pixels + stride * j->d.output_scanline;
        jpeg_read_scanlines(&j->d, &row, 1);
    }
    jpeg_finish_decompress(&j->d);
    return true;
}

rt_status rt_jpeg_decode(rt_picture *out, const uint8_t *src, size_t n, const char *name) {
    *out = (rt_picture){.data = NULL};
    RT_FAIL_IF(n < 3 || src[0] != 0xff || src[1] != 0xd8 || src[2] != 0xff, RT_E_INPUT, "%s: not a JPEG file",
               name);
    jpeg_job *j = NULL;
    rt_status st = RT_OK;
    RT_TRY(rt_calloc(&j, 1, sizeof *j));
    j->src = src;
    j->n = n;
    if (jpeg_run(j))
        st = rt_picture_from_pixels(out, j->pixels, j->d.output_components, j->d.output_height,
                                    j->d.output_width);
    else
        st = rt_error_set(j->no_memory ? RT_E_MEMORY : RT_E_INPUT, __FILE__, __LINE__, "%s: bad JPEG: %s",
                          name, j->message);
    jpeg_destroy_decompress(&j->d);
    rt_free(j->pixels);
    rt_free(j);
    return st;
}
