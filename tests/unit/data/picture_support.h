/* picture_support.h - PNG and JPEG files made in memory by the libraries' own writers. */
#ifndef RT_TESTS_PICTURE_SUPPORT_H
#define RT_TESTS_PICTURE_SUPPORT_H

#include "unit/data/data_support.h"

#include <jpeglib.h>
#include <png.h>

static inline void picture_png_write(png_structp png, png_bytep data, size_t n) {
    rt_str_append_n(png_get_io_ptr(png), (const char *)data, n);
}
static inline void picture_png_flush(png_structp png) {
    (void)png;
}

/* Pixel bytes are (y * 37 + x * 11 + byte * 5) % 256 in the file's own row format. */
static inline void make_png(rt_str *out, unsigned w, unsigned h, int depth, int colour, int interlace) {
    rt_str_init(out);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    assert_non_null(info);
    png_set_write_fn(png, out, picture_png_write, picture_png_flush);
    png_set_IHDR(png, info, w, h, depth, colour, interlace, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_color palette[4] = {{10, 20, 30}, {40, 50, 60}, {70, 80, 90}, {100, 110, 120}};
    png_byte alpha[4] = {0, 255, 128, 7};
    if (colour == PNG_COLOR_TYPE_PALETTE) {
        png_set_PLTE(png, info, palette, depth == 1 ? 2 : 4);
        png_set_tRNS(png, info, alpha, depth == 1 ? 2 : 4, NULL);
    }
    png_write_info(png, info);
    size_t stride = png_get_rowbytes(png, info);
    uint8_t *pixels = malloc(stride * h);
    png_bytep *rows = malloc(h * sizeof *rows);
    for (unsigned y = 0; y < h; y++) {
        rows[y] = pixels + y * stride;
        for (size_t i = 0; i < stride; i++)
            rows[y][i] = colour == PNG_COLOR_TYPE_PALETTE && depth == 8 ? (uint8_t)((y + i) % 4)
                                                                        : (uint8_t)(y * 37 + i * 5);
    }
    png_write_image(png, rows);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    free(rows);
    free(pixels);
    assert_ok(rt_str_status(out));
}

typedef enum jpeg_style { JPEG_PLAIN, JPEG_PROGRESSIVE, JPEG_MANY_SCANS } jpeg_style;

static inline void make_jpeg(rt_str *out, unsigned w, unsigned h, int channels, jpeg_style style) {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long n = 0;
    memset(&c, 0, sizeof c);
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &data, &n);
    c.image_width = w;
    c.image_height = h;
    c.input_components = channels;
    c.in_color_space = channels == 1 ? JCS_GRAYSCALE : channels == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 95, TRUE);
    jpeg_scan_info scans[1 + 63 * 3];
    if (style == JPEG_PROGRESSIVE)
        jpeg_simple_progression(&c);
    if (style == JPEG_MANY_SCANS) { /* one scan per coefficient and channel */
        int k = 0;
        memset(scans, 0, sizeof scans);
        scans[k].comps_in_scan = channels;
        for (int i = 0; i < channels; i++)
            scans[k].component_index[i] = i;
        for (k = 1; k <= 63 * channels; k++) {
            scans[k].comps_in_scan = 1;
            scans[k].component_index[0] = (k - 1) / 63;
            scans[k].Ss = scans[k].Se = (k - 1) % 63 + 1;
        }
        c.scan_info = scans;
        c.num_scans = k;
    }
    jpeg_start_compress(&c, TRUE);
    uint8_t *row = malloc((size_t)w * (size_t)channels);
    while (c.next_scanline < h) {
        for (size_t i = 0; i < (size_t)w * (size_t)channels; i++)
            row[i] = (uint8_t)(60 + c.next_scanline * 4 + i);
        JSAMPROW rows[1] = {row};
        jpeg_write_scanlines(&c, rows, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    rt_str_init(out);
    rt_str_append_n(out, (const char *)data, n);
    assert_ok(rt_str_status(out));
    free(data);
    free(row);
}

#endif
