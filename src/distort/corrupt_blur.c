/*
 * corrupt_blur.c - blurs: defocus, glass, motion, zoom, Gaussian.
 *
 * Glass: the published code means to swap each pixel with a neighbour, but swaps views of one array: the
 * second assignment writes a pixel onto itself. What it does, and what is done here, is copying the
 * neighbour, in the order of rows and columns from the end, so that copies travel. Zoom: the steps of the
 * published code are numpy.arange(1, 1.06, 0.01), which in floating point has 7 elements (and 12, 16, 21, 26
 * for the rest).
 */
#include "distort/corrupt_int.h"

#include <math.h>
#include <string.h>

/* ---- Gaussian ---- */

typedef struct gauss {
    int64_t radius;
    float taps[];
} gauss;

rt_status rt_corrupt_prepare_gaussian_blur(rt_distortion *d) {
    const int64_t radius = rt_gauss_radius(d->p[0], 4.0);
    RT_TRY(rt_distort_state(d, sizeof(gauss), 2 * radius + 1));
    gauss *s = d->state;
    s->radius = radius;
    rt_gauss_taps(s->taps, radius, d->p[0]);
    d->scratch = rt_gauss_scratch(d->h, d->w, radius);
    return RT_OK;
}

rt_status rt_corrupt_run_gaussian_blur(const rt_distortion *d, const rt_canvas *v) {
    const gauss *s = d->state;
    for (int64_t c = 0; c < v->c; c++)
        rt_plane_gauss(v->x + c * v->h * v->w, v->h, v->w, s->taps, s->radius, RT_BORDER_EDGE, v->scratch);
    return RT_OK;
}

/* ---- defocus ---- */

enum { DISK = 17, DISK_HALF = 8 };
typedef struct disk {
    int64_t n, reach;
    struct {
        int32_t dy, dx;
        float weight;
    } tap[DISK * DISK];
} disk;

rt_status rt_corrupt_prepare_defocus_blur(rt_distortion *d) {
    double flat[DISK + 2][DISK + 2] = {{0}}, count = 0, side = exp(-0.5 / (d->p[1] * d->p[1]));
    RT_TRY(rt_distort_state(d, sizeof(disk), 0));
    disk *s = d->state;
    for (int y = -DISK_HALF; y <= DISK_HALF; y++)
        for (int x = -DISK_HALF; x <= DISK_HALF; x++)
            if (y * y + x * x <= d->p[0] * d->p[0]) {
                flat[y + DISK_HALF + 1][x + DISK_HALF + 1] = 1;
                count++;
            }
    const double edge[3] = {side / (1 + 2 * side), 1 / (1 + 2 * side), side / (1 + 2 * side)};
    for (int y = -DISK_HALF; y <= DISK_HALF; y++)
        for (int x = -DISK_HALF; x <= DISK_HALF; x++) {
            double sum = 0;
            for (int k = 0; k < 9; k++)
                sum += edge[k / 3] * edge[k % 3] * flat[y + DISK_HALF + k / 3][x + DISK_HALF + k % 3] / count;
            if (sum < 1e-8)
                continue;
            s->tap[s->n].dy = y;
            s->tap[s->n].dx = x;
            s->tap[s->n].weight = (float)sum;
            s->n++;
            s->reach = RT_MAX(s->reach, RT_MAX(RT_MAX(y, -y), RT_MAX(x, -x)));
        }
    d->scratch = (d->h + 2 * s->reach) * (d->w + 2 * s->reach);
    return RT_OK;
}

static void add_row(float *restrict dst, const float *restrict src, float weight, int64_t w) {
    for (int64_t x = 0; x < w; x++)
        dst[x] += weight * src[x];
}

rt_status rt_corrupt_run_defocus_blur(const rt_distortion *d, const rt_canvas *v) {
    const disk *s = d->state;
    const int64_t stride = v->w + 2 * s->reach;
    for (int64_t c = 0; c < v->c; c++) {
        float *x = v->x + c * v->h * v->w;
        rt_plane_pad(v->scratch, x, v->h, v->w, s->reach, s->reach, RT_BORDER_MIRROR);
        memset(x, 0, (size_t)(v->h * v->w) * sizeof *x);
        for (int64_t y = 0; y < v->h; y++)
            for (int64_t k = 0; k < s->n; k++)
                add_row(x + y * v->w,
                        v->scratch + (y + s->reach + s->tap[k].dy) * stride + s->reach + s->tap[k].dx,
                        s->tap[k].weight, v->w);
    }
    return RT_OK;
}

/* ---- glass ---- */

rt_status rt_corrupt_prepare_glass_blur(rt_distortion *d) {
    RT_TRY(rt_corrupt_prepare_gaussian_blur(d));
    d->scratch = RT_MAX(d->scratch, (d->h * d->w + 15) / 16);
    return RT_OK;
}

rt_status rt_corrupt_run_glass_blur(const rt_distortion *d, const rt_canvas *v) {
    const int64_t plane = v->h * v->w, n = v->c * plane;
    uint32_t *word = (uint32_t *)v->scratch;
    RT_TRY(rt_corrupt_run_gaussian_blur(d, v));
    for (int64_t i = 0; i < n; i++)
        v->x[i] = (float)rt_to_byte(v->x[i]) * (1.0f / 255.0f);
    for (int round = 0; round < (int)d->p[1]; round++) {
        rt_draw_bits(v->rng, (uint64_t)round, word, (plane + 15) / 16);
        for (int64_t y = v->h - 1; y > 1; y--)
            for (int64_t x = v->w - 1; x > 1; x--) {
                const int64_t i = y * v->w + x;
                const uint32_t bits = word[i / 16] >> (i % 16 * 2);
                const int64_t from = i - (int64_t)(bits & 1) - (int64_t)(bits >> 1 & 1) * v->w;
                for (int64_t c = 0; c < v->c; c++)
                    v->x[c * plane + i] = v->x[c * plane + from];
            }
    }
    return rt_corrupt_run_gaussian_blur(d, v);
}

/* ---- motion ---- */

typedef struct line {
    int64_t n;
    float taps[RT_LINE_MAX];
} line;

rt_status rt_corrupt_prepare_motion_blur(rt_distortion *d) {
    RT_TRY(rt_distort_state(d, sizeof(line), 0));
    line *s = d->state;
    s->n = rt_line_taps(s->taps, d->p[0], d->p[1]);
    d->scratch = rt_line_scratch(d->h, d->w, s->n);
    return RT_OK;
}

rt_status rt_corrupt_run_motion_blur(const rt_distortion *d, const rt_canvas *v) {
    const line *s = d->state;
    const double angle = rt_draw_one(v->rng, 0, -45, 45);
    for (int64_t c = 0; c < v->c; c++)
        rt_plane_line(v->x + c * v->h * v->w, v->h, v->w, s->taps, s->n, angle, v->scratch);
    return RT_OK;
}

/* ---- zoom ---- */

typedef struct zooms {
    int64_t n;       /* without the first, which is the image itself */
    float *f;        /* (n, h + w) */
    int32_t *at;     /* (n, h + w) */
    float storage[]; /* of both */
} zooms;

rt_status rt_corrupt_prepare_zoom_blur(rt_distortion *d) {
    const int64_t n = (int64_t)d->p[0] - 1, axes = d->h + d->w;
    const double step = (1.0 + 0.01) - 1.0; /* as arange has it: sizes are rounded, the last bit matters */
    RT_TRY(rt_distort_state(d, sizeof(zooms), 2 * n * axes));
    zooms *s = d->state;
    s->n = n;
    s->f = s->storage;
    s->at = (int32_t *)(s->storage + n * axes);
    for (int64_t k = 0; k < n; k++) {
        const double zoom = 1.0 + step * (double)(k + 1);
        rt_zoom_axis(s->at + k * axes, s->f + k * axes, d->h, zoom);
        rt_zoom_axis(s->at + k * axes + d->h, s->f + k * axes + d->h, d->w, zoom);
    }
    d->scratch = d->h * d->w + d->w;
    return RT_OK;
}

rt_status rt_corrupt_run_zoom_blur(const rt_distortion *d, const rt_canvas *v) {
    const zooms *s = d->state;
    const int64_t plane = v->h * v->w, axes = v->h + v->w;
    float *sum = v->scratch, *row = v->scratch + plane;
    const float share = 1.0f / (float)(s->n + 2);
    for (int64_t c = 0; c < v->c; c++) {
        float *x = v->x + c * plane;
        for (int64_t i = 0; i < plane; i++)
            sum[i] = 2.0f * x[i];
        for (int64_t k = 0; k < s->n; k++)
            rt_plane_zoom_add(sum, x, v->h, v->w, s->at + k * axes, s->f + k * axes, s->at + k * axes + v->h,
                              s->f + k * axes + v->h, row);
        for (int64_t i = 0; i < plane; i++)
            x[i] = sum[i] * share;
    }
    return RT_OK;
}
