/*
 * image_png_write.c - PNG by libpng, through the durable writer.
 *
 * libpng writes into rt_writer, so a picture appears whole or not at all and tests can fail any of its system
 * calls. It leaves by longjmp; every resource lives in one struct outside the jump.
 */
#include "data/data_int.h"

#include "base/file.h"
#include "data/png_guard.h"

typedef struct png_out {
    png_structp png;
    png_infop info;
    rt_writer *writer;
    const uint8_t *pixels; /* (h, w, channels) */
    int64_t h, w;
    int channels;
    bool write_failed; /* the error record has the reason */
    png_guard guard;
} png_out;

static void png_out_write(png_structp png, png_bytep data, size_t n) {
    png_out *o = png_get_io_ptr(png);
    if (rt_writer_write(o->writer, data, n) != RT_OK) {
        o->write_failed = true;
        png_error(png, "cannot write");
    }
}
static void png_out_flush(png_structp png) {
    (void)png;
}

/* Everything that may jump. */
static bool png_out_run(png_out *o) {
    if (setjmp(png_jmpbuf(o->png)))
        return false;
    png_set_write_fn(o->png, o, png_out_write, png_out_flush);
    png_set_IHDR(o->png, o->info, (png_uint_32)o->w, (png_uint_32)o->h, 8,
                 o->channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(o->png, o->info);
    for (int64_t y = 0; y < o->h; y++)
        png_write_row(o->png, o->pixels + y * o->w * o->channels);
    png_write_end(o->png, NULL);
    return true;
}

rt_status rt_image_write_png(const char *path, const uint8_t *pixels, int64_t h, int64_t w, int channels) {
    RT_FAIL_IF(channels != 1 && channels != 3, RT_E_USAGE, "%s: a picture of %d channels, wanted 1 or 3",
               path, channels);
    RT_FAIL_IF(h < 1 || w < 1 || h > 1000000 || w > 1000000 || h * w > rt_image_pixels_max, RT_E_USAGE,
               "%s: a picture of %lld x %lld pixels, wanted 1 to 64 million", path, (long long)w,
               (long long)h);
    png_out o = {.pixels = pixels, .h = h, .w = w, .channels = channels};
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_writer_open(&o.writer, path));
    o.png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &o.guard, png_guard_error, png_guard_warning,
                                      &o.guard, png_guard_take, png_guard_give);
    o.info = o.png ? png_create_info_struct(o.png) : NULL;
    if (o.info == NULL)
        RT_FAIL_GOTO(RT_E_MEMORY, "%s: no memory to write a picture", path);
    if (!png_out_run(&o)) {
        st = o.write_failed ? rt_error_last()->code
                            : rt_error_set(o.guard.no_memory ? RT_E_MEMORY : RT_E_FAILED, __FILE__, __LINE__,
                                           "%s: cannot make a PNG: %s", path, o.guard.message);
        goto done;
    }
    st = rt_writer_commit(&o.writer);
done:
    png_destroy_write_struct(&o.png, &o.info);
    rt_writer_abandon(&o.writer);
    return st;
}
