/*
 * picture_size.c - width, height and colours of a picture from its header alone, so that the size that all pictures are
 * brought to is known before the first is decoded.
 *
 *     PNG    signature (8), then the chunk IHDR: length, name, width, height (u32 big-endian), bits, colour type
 *     JPEG   ff d8, then segments ff XX length ...; the frame (c0 to cf but c4, c8, cc) has bits, height, width (u16),
 *            components
 *
 * A header that cannot be read is no error here: decoding tells what is wrong.
 */
#include "data/data_int.h"

#include <string.h>

static int64_t big(const uint8_t *p, int bytes) {
    int64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

static bool png_size(rt_picture *out, const uint8_t *p, size_t n) {
    static const uint8_t signature[] = {0x89, 'P', 'N', 'G', 13, 10, 26, 10};
    if (n < 26 || memcmp(p, signature, 8) != 0 || memcmp(p + 12, "IHDR", 4) != 0)
        return false;
    *out = (rt_picture){.w = big(p + 16, 4),
                        .h = big(p + 20, 4),
                        .c = (p[25] & 2) != 0 ? 3 : 1,
                        .palette = (p[25] & 1) != 0,
                        .alpha = (p[25] & 4) != 0,
                        .deep = p[24] == 16};
    return true;
}

static bool jpeg_size(rt_picture *out, const uint8_t *p, size_t n) {
    if (n < 4 || p[0] != 0xff || p[1] != 0xd8)
        return false;
    for (size_t at = 2; at + 10 < n;) {
        if (p[at] != 0xff)
            return false;
        const uint8_t mark = p[at + 1];
        if (mark == 0xff || (mark >= 0xd0 && mark <= 0xd8) ||
            mark == 1) { /* filling, and marks without a length */
            at += mark == 0xff ? 1 : 2;
            continue;
        }
        if (mark >= 0xc0 && mark <= 0xcf && mark != 0xc4 && mark != 0xc8 && mark != 0xcc) {
            *out =
                (rt_picture){.h = big(p + at + 5, 2), .w = big(p + at + 7, 2), .c = p[at + 9] == 1 ? 1 : 3};
            return true;
        }
        at += 2 + (size_t)big(p + at + 2, 2);
    }
    return false;
}

bool rt_picture_size(rt_picture *out, const uint8_t *src, size_t n) {
    *out = (rt_picture){.data = NULL};
    return (png_size(out, src, n) || jpeg_size(out, src, n)) && out->h > 0 && out->w > 0 &&
           out->h <= rt_image_pixels_max / out->w;
}
