/*
 * augment.c - random flips, crops, shifts and rotations of images, as a pure function of (seed, epoch, row
 * number).
 *
 * In order: rotate about the centre (bicubic, zeros outside), shift (zeros shifted in), pad and crop back to
 * the same size, flip. The last three are whole-pixel moves that act on each axis alone, so together they are
 * one index table per axis, dst pixel (y, x) <- pixel (Y[y], X[x]), with -1 for a pixel from outside. No
 * scratch image is needed, whatever is combined: an image leaves in one pass, through a table from bytes to
 * floats.
 *
 * Draws for row r: index 8 r + {0 crop y, 1 crop x, 2 flip, 3 shift y, 4 shift x, 5 angle} of the epoch's
 * stream. They do not depend on the batch, its size or its order.
 */
#include "data/data_int.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

enum { DRAW_CROP_Y, DRAW_CROP_X, DRAW_FLIP, DRAW_SHIFT_Y, DRAW_SHIFT_X, DRAW_ANGLE, DRAWS = 8 };
enum { COLUMNS = 256 }; /* columns mapped at a time */

/* ---- bytes to floats ---- */

#define P1(i) (float)(i) / 255.0f
#define P4(i) P1(i), P1((i) + 1), P1((i) + 2), P1((i) + 3)
#define P16(i) P4(i), P4((i) + 4), P4((i) + 8), P4((i) + 12)
#define P64(i) P16(i), P16((i) + 16), P16((i) + 32), P16((i) + 48)
static const float pixel_table[256] = {P64(0), P64(64), P64(128), P64(192)};

const float *rt_pixel_table(void) {
    return pixel_table;
}

void rt_pixels_to_f32(float *dst, const uint8_t *src, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        dst[i] = pixel_table[src[i]];
}

/* ---- one axis ---- */

typedef struct axis {
    int64_t size, shift, crop; /* offsets of the source */
    bool reflect, flip;
} axis;

/* Mirror without repeating the edge: ... 2 1 | 0 1 2 ... n-1 | n-2 ... */
static int64_t axis_reflect(int64_t i, int64_t n) {
    if (n == 1)
        return 0;
    int64_t period = 2 * (n - 1), r = i % period;
    if (r < 0)
        r += period;
    return r < n ? r : period - r;
}

/* Where pixel i comes from, -1 for outside. */
static int64_t axis_source(const axis *a, int64_t i) {
    if (a->flip)
        i = a->size - 1 - i;
    i += a->crop;
    if (i < 0 || i >= a->size) {
        if (!a->reflect)
            return -1;
        i = axis_reflect(i, a->size);
    }
    i += a->shift;
    return i < 0 || i >= a->size ? -1 : i;
}

static int64_t draw_offset(rt_rng r, int64_t source, int what, int64_t reach) {
    if (reach <= 0)
        return 0;
    return (int64_t)rt_rng_below(r, (uint64_t)source * DRAWS + (uint64_t)what, (uint64_t)(2 * reach + 1)) -
           reach;
}

/* ---- images ---- */

typedef struct turn {
    bool on;
    double cos_a, sin_a, cy, cx;
} turn;

/* One plane of the source, bytes or floats. */
typedef struct plane {
    const uint8_t *u8;
    const float *f32;
    int64_t h, w;
} plane;

static float plane_at(const plane *p, int64_t y, int64_t x) {
    if (y < 0 || y >= p->h || x < 0 || x >= p->w)
        return 0;
    return p->u8 ? pixel_table[p->u8[y * p->w + x]] : p->f32[y * p->w + x];
}

/* Where a pixel of the rotated picture lies in the source: the corner above left of it, and the weights of the four
 * rows and columns around it. */
typedef struct place {
    int64_t y, x;
    float wy[4], wx[4];
    bool inside; /* all sixteen are in the picture */
} place;

/* Keys's cubic convolution, a = -1/2: exact for polynomials up to the second degree. */
static void cubic(float w[4], double t) {
    w[0] = (float)(((-0.5 * t + 1) * t - 0.5) * t);
    w[1] = (float)((1.5 * t - 2.5) * t * t + 1);
    w[2] = (float)(((-1.5 * t + 2) * t + 0.5) * t);
    w[3] = (float)((0.5 * t - 0.5) * t * t);
}

static place turn_back(const turn *t, int64_t h, int64_t w, int64_t y, int64_t x) {
    double dy = (double)y - t->cy, dx = (double)x - t->cx;
    double sy = t->cy + t->cos_a * dy + t->sin_a * dx, sx = t->cx - t->sin_a * dy + t->cos_a * dx;
    place p = {.y = (int64_t)sy, .x = (int64_t)sx};
    p.y -= sy < (double)p.y; /* floor, without a call per pixel */
    p.x -= sx < (double)p.x;
    cubic(p.wy, sy - (double)p.y);
    cubic(p.wx, sx - (double)p.x);
    p.inside = p.y >= 1 && p.y + 2 < h && p.x >= 1 && p.x + 2 < w;
    return p;
}

/* Bytes stay within theirs: a cubic overshoots at edges. */
static float plane_bicubic(const plane *p, const place *q) {
    float sum = 0;
    for (int64_t j = 0; j < 4; j++) {
        float line = 0;
        if (q->inside && p->u8) {
            const uint8_t *at = p->u8 + (q->y + j - 1) * p->w + q->x - 1;
            for (int64_t i = 0; i < 4; i++)
                line += q->wx[i] * pixel_table[at[i]];
        } else {
            for (int64_t i = 0; i < 4; i++)
                line += q->wx[i] * plane_at(p, q->y + j - 1, q->x + i - 1);
        }
        sum += q->wy[j] * line;
    }
    return p->u8 ? RT_MIN(1.0f, RT_MAX(0.0f, sum)) : sum;
}

static plane plane_of(rt_shape row, const uint8_t *u8, const float *f32, int64_t c) {
    int64_t h = row.d[1], w = row.d[2];
    return (plane){.u8 = u8 ? u8 + c * h * w : NULL, .f32 = f32 ? f32 + c * h * w : NULL, .h = h, .w = w};
}

/* Columns [x0, x0 + n) of all planes of a rotated picture; a place is worked out once for all channels. */
static void turned_columns(float *dst, rt_shape row, const uint8_t *u8, const float *f32, const turn *t,
                           const axis *ay, int64_t x0, int64_t n, const int64_t *map) {
    int64_t h = row.d[1], w = row.d[2];
    for (int64_t y = 0; y < h; y++) {
        int64_t sy = axis_source(ay, y);
        for (int64_t x = 0; x < n; x++) {
            bool outside = sy < 0 || map[x] < 0;
            place q = outside ? (place){.y = 0} : turn_back(t, h, w, sy, map[x]);
            for (int64_t c = 0; c < row.d[0]; c++) {
                plane p = plane_of(row, u8, f32, c);
                dst[(c * h + y) * w + x0 + x] = outside ? 0 : plane_bicubic(&p, &q);
            }
        }
    }
}

/* Columns [x0, x0 + n) of one plane moved by whole pixels; map gives their sources. */
static void plane_columns(float *dst, const plane *p, const axis *ay, int64_t x0, int64_t n,
                          const int64_t *map) {
    int64_t first = 0, last = n; /* most columns from outside are at the ends */
    while (first < n && map[first] < 0)
        first++;
    while (last > first && map[last - 1] < 0)
        last--;
    for (int64_t y = 0; y < p->h; y++) {
        float *to = dst + y * p->w + x0;
        int64_t sy = axis_source(ay, y);
        if (sy < 0) {
            memset(to, 0, (size_t)n * sizeof *to);
            continue;
        }
        memset(to, 0, (size_t)first * sizeof *to);
        memset(to + last, 0, (size_t)(n - last) * sizeof *to);
        if (p->u8) {
            const uint8_t *from = p->u8 + sy * p->w;
            for (int64_t x = first; x < last; x++)
                to[x] = map[x] < 0 ? 0 : pixel_table[from[map[x]]];
        } else {
            const float *from = p->f32 + sy * p->w;
            for (int64_t x = first; x < last; x++)
                to[x] = map[x] < 0 ? 0 : from[map[x]];
        }
    }
}

bool rt_augment_any(const rt_augment *a) {
    return a->flip || a->crop_pad > 0 || a->shift > 0 || a->rotate > 0;
}

void rt_augment_image(const rt_augment *a, uint64_t seed, int64_t epoch, int64_t source, rt_shape row,
                      const uint8_t *u8, const float *f32, float *dst) {
    int64_t h = row.d[1], w = row.d[2], map[COLUMNS];
    rt_rng r = rt_rng_make(seed, RT_RNG_AUGMENT, (uint64_t)epoch, 0);
    uint64_t base = (uint64_t)source * DRAWS;
    axis ay = {.size = h, .reflect = a->reflect};
    axis ax = {.size = w, .reflect = a->reflect};
    ay.crop = draw_offset(r, source, DRAW_CROP_Y, a->crop_pad);
    ax.crop = draw_offset(r, source, DRAW_CROP_X, a->crop_pad);
    ay.shift = draw_offset(r, source, DRAW_SHIFT_Y, a->shift);
    ax.shift = draw_offset(r, source, DRAW_SHIFT_X, a->shift);
    ax.flip = a->flip && rt_rng_below(r, base + DRAW_FLIP, 2) == 1;
    turn t = {.on = a->rotate > 0, .cy = (double)(h - 1) / 2, .cx = (double)(w - 1) / 2};
    if (t.on) {
        double degrees = a->rotate * (2 * rt_rng_uniform(r, base + DRAW_ANGLE) - 1);
        t.cos_a = cos(degrees * (3.14159265358979323846 / 180));
        t.sin_a = sin(degrees * (3.14159265358979323846 / 180));
    }
    for (int64_t x0 = 0; x0 < w; x0 += COLUMNS) {
        int64_t n = RT_MIN(w - x0, (int64_t)COLUMNS);
        for (int64_t x = 0; x < n; x++)
            map[x] = axis_source(&ax, x0 + x);
        if (t.on) {
            turned_columns(dst, row, u8, f32, &t, &ay, x0, n, map);
            continue;
        }
        for (int64_t c = 0; c < row.d[0]; c++) {
            plane p = plane_of(row, u8, f32, c);
            plane_columns(dst + c * h * w, &p, &ay, x0, n, map);
        }
    }
}

/* ---- "flip,crop:4,reflect,shift:2,rotate:15" ---- */

static rt_status augment_item(rt_augment *out, const char *item, size_t n, const char *text) {
    static const char *const names[] = {"flip", "crop", "reflect", "shift", "rotate", "none"};
    const char *colon = memchr(item, ':', n);
    size_t name_n = colon ? (size_t)(colon - item) : n;
    char name[32] = "";
    memcpy(name, item, RT_MIN(name_n, sizeof name - 1));
    int64_t whole = 0;
    const int64_t which = rt_str_find(name, names, RT_COUNT(names));
    double value = 0;
    if (which < 0)
        RT_FAIL_UNKNOWN(RT_E_USAGE, name, names, RT_COUNT(names), "augmentation '%s': unknown", text);
    bool wants_value = which == 1 || which == 3 || which == 4;
    RT_FAIL_IF(wants_value != (colon != NULL), RT_E_USAGE, "augmentation '%s': %s %s", text, name,
               wants_value ? "wants a number: name:N" : "takes no number");
    if (which == 1 || which == 3)
        RT_FAIL_IF(!rt_parse_i64(colon + 1, n - name_n - 1, &whole) || whole < 1 || whole > 1024, RT_E_USAGE,
                   "augmentation '%s': %s wants a whole number from 1 to 1024", text, name);
    if (which == 4)
        RT_FAIL_IF(!rt_parse_f64(colon + 1, n - name_n - 1, false, &value) || !(value > 0 && value <= 180),
                   RT_E_USAGE, "augmentation '%s': rotate wants degrees above 0, up to 180", text);
    if (which == 0)
        out->flip = true;
    else if (which == 1)
        out->crop_pad = whole;
    else if (which == 2)
        out->reflect = true;
    else if (which == 3)
        out->shift = whole;
    else if (which == 4)
        out->rotate = value;
    return RT_OK;
}

rt_status rt_augment_parse(rt_augment *out, const char *text) {
    *out = (rt_augment){.flip = false};
    for (const char *p = text; *p;) {
        const char *comma = strchr(p, ',');
        size_t n = comma ? (size_t)(comma - p) : strlen(p);
        RT_TRY(augment_item(out, p, n, text));
        p += n + (comma != NULL);
    }
    RT_FAIL_IF(strcmp(text, "none") != 0 && strstr(text, "none") != NULL, RT_E_USAGE,
               "augmentation '%s': none stands alone", text);
    RT_FAIL_IF(out->reflect && out->crop_pad == 0, RT_E_USAGE, "augmentation '%s': reflect goes with crop:N",
               text);
    return RT_OK;
}
