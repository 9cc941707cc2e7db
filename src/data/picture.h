/*
 * picture.h - pictures as planes of bytes: decoded from files, brought to size.
 */
#ifndef RT_DATA_PICTURE_H
#define RT_DATA_PICTURE_H

#include "base/status.h"

static const int64_t rt_image_pixels_max = 64000000;
static const size_t rt_picture_file_max = (size_t)1 << 28; /* bytes */

/* A decoded picture: c (1 or 3), h, w planes. */
typedef struct rt_picture {
    int64_t c, h, w;
    bool alpha, palette, deep; /* by its header: what decoding drops or converts (deep: 16 bits) */
    uint8_t *data;             /* rt_alloc'ed */
} rt_picture;
rt_status rt_png_decode(rt_picture *out, const uint8_t *src, size_t n, const char *name) RT_MUST_CHECK;
rt_status rt_jpeg_decode(rt_picture *out, const uint8_t *src, size_t n, const char *name) RT_MUST_CHECK;
bool rt_picture_size(rt_picture *out, const uint8_t *src, size_t n); /* without the data; false: no header */
rt_status rt_picture_read(rt_picture *out,
                          const char *path) RT_MUST_CHECK; /* by its ending: PNG, else JPEG */
bool rt_picture_is_file(const char *name);                 /* by its ending */
bool rt_picture_is_png(const char *name);
/* Interleaved pixels to planes: (h, w, c) -> (c, h, w). */
rt_status rt_picture_from_pixels(rt_picture *out, const uint8_t *pixels, int64_t c, int64_t h,
                                 int64_t w) RT_MUST_CHECK;

/* Bilinear, pixel centres aligned at half; a shrink by whole factors averages boxes. dst and src differ. */
void rt_plane_resize(float *dst, int64_t dh, int64_t dw, const float *src, int64_t sh, int64_t sw);
void rt_pixels_to_f32(float *dst, const uint8_t *src, int64_t n); /* bytes to [0, 1] */
const float *rt_pixel_table(void);                                /* what each byte becomes */

#endif
