/*
 * corrupt_jpeg.c - a round trip through JPEG in memory, with libjpeg's defaults: baseline, colours at half
 * the resolution (4:2:0), exact integer transforms.
 *
 * The compressed bytes go to the scratch memory of the image; they are far shorter than it at any quality
 * used here (a header of 623 bytes, then a few bits per pixel), but the destination is checked all the same.
 * libjpeg leaves by longjmp; both of its structs live outside the jump.
 */
#include "distort/corrupt_int.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

enum { JPEG_HEADER = 4096 }; /* floats */

typedef struct jpeg_trip {
    struct jpeg_compress_struct to;
    struct jpeg_decompress_struct from;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr sink;
    jmp_buf leave;
    uint8_t *pixels; /* (h, w, c) */
    uint8_t *bytes;
    size_t room, used;
    const rt_canvas *v;
    int quality;
    char message[JMSG_LENGTH_MAX];
} jpeg_trip;

static void trip_on_error(j_common_ptr j) {
    jpeg_trip *t = j->client_data;
    j->err->format_message(j, t->message);
    longjmp(t->leave, 1);
}
static void trip_on_message(j_common_ptr j, int level) {
    (void)j;
    (void)level;
}
static void sink_begin(j_compress_ptr j) {
    jpeg_trip *t = j->client_data;
    t->sink.next_output_byte = t->bytes;
    t->sink.free_in_buffer = t->room;
}
static boolean sink_full(j_compress_ptr j) {
    jpeg_trip *t = j->client_data;
    snprintf(t->message, sizeof t->message, "no room for the compressed picture");
    longjmp(t->leave, 1);
    return FALSE;
}
static void sink_end(j_compress_ptr j) {
    jpeg_trip *t = j->client_data;
    t->used = t->room - t->sink.free_in_buffer;
}

static void trip_compress(jpeg_trip *t) {
    jpeg_create_compress(&t->to);
    t->sink = (struct jpeg_destination_mgr){
        .init_destination = sink_begin, .empty_output_buffer = sink_full, .term_destination = sink_end};
    t->to.dest = &t->sink;
    t->to.image_width = (JDIMENSION)t->v->w;
    t->to.image_height = (JDIMENSION)t->v->h;
    t->to.input_components = (int)t->v->c;
    t->to.in_color_space = t->v->c == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&t->to);
    jpeg_set_quality(&t->to, t->quality, TRUE);
    jpeg_start_compress(&t->to, TRUE);
    while (t->to.next_scanline < t->to.image_height) {
        JSAMPROW row = t->pixels + (size_t)t->to.next_scanline * (size_t)(t->v->w * t->v->c);
        jpeg_write_scanlines(&t->to, &row, 1);
    }
    jpeg_finish_compress(&t->to);
}

static void trip_decompress(jpeg_trip *t) {
    jpeg_create_decompress(&t->from);
    jpeg_mem_src(&t->from, t->bytes, (unsigned long)t->used);
    jpeg_read_header(&t->from, TRUE);
    jpeg_start_decompress(&t->from);
    while (t->from.output_scanline < t->from.output_height) {
        JSAMPROW row = t->pixels + (size_t)t->from.output_scanline * (size_t)(t->v->w * t->v->c);
        jpeg_read_scanlines(&t->from, &row, 1);
    }
    jpeg_finish_decompress(&t->from);
}

/* Everything that may jump. */
static bool trip_run(jpeg_trip *t) {
    t->to.err = t->from.err = jpeg_std_error(&t->errors);
    t->errors.error_exit = trip_on_error;
    t->errors.emit_message = trip_on_message;
    t->to.client_data = t->from.client_data = t;
    if (setjmp(t->leave))
        return false;
    trip_compress(t);
    trip_decompress(t);
    return true;
}

rt_status rt_corrupt_prepare_jpeg_compression(rt_distortion *d) {
    RT_FAIL_IF(d->h > JPEG_MAX_DIMENSION || d->w > JPEG_MAX_DIMENSION, RT_E_USAGE,
               "jpeg_compression: images of %lld x %lld, wanted at most %ld x %ld", (long long)d->w,
               (long long)d->h, JPEG_MAX_DIMENSION, JPEG_MAX_DIMENSION);
    d->scratch = d->c * d->h * d->w * 2 + JPEG_HEADER;
    return RT_OK;
}

rt_status rt_corrupt_run_jpeg_compression(const rt_distortion *d, const rt_canvas *v) {
    const int64_t plane = v->h * v->w, n = v->c * plane;
    jpeg_trip t = {.v = v,
                   .quality = (int)d->p[0],
                   .pixels = (uint8_t *)v->scratch,
                   .bytes = (uint8_t *)v->scratch + n,
                   .room = (size_t)d->scratch * sizeof(float) - (size_t)n};
    for (int64_t c = 0; c < v->c; c++)
        for (int64_t i = 0; i < plane; i++)
            t.pixels[i * v->c + c] = (uint8_t)rt_to_byte(v->x[c * plane + i]);
    const bool done = trip_run(&t);
    jpeg_destroy_compress(&t.to);
    jpeg_destroy_decompress(&t.from);
    RT_FAIL_IF(!done, RT_E_FAILED, "jpeg_compression: %s", t.message);
    for (int64_t c = 0; c < v->c; c++)
        for (int64_t i = 0; i < plane; i++)
            v->x[c * plane + i] = (float)t.pixels[i * v->c + c] * (1.0f / 255.0f);
    return RT_OK;
}
