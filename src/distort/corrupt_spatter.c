/*
 * corrupt_spatter.c - drops of water (severities 1 to 3) or stains of mud (4, 5).
 *
 * Both begin with a liquid: N(loc, scale), blurred, nothing below the threshold. Mud is the liquid's smoothed
 * shape, in brown. Water gets relief from the distance to the nearest edge of the liquid:
 *
 *     edges (Canny, 50, 150) -> distance, at most 20 -> 3x3 mean -> equalised histogram -> emboss -> 3x3 mean
 *     m = strength liquid relief / max(liquid relief);   x + m turquoise
 *
 * These are the steps and the 8-bit roundings of the OpenCV functions that the published code chains.
 */
#include "distort/corrupt_int.h"

#include <math.h>
#include <string.h>

typedef struct spatter {
    int64_t radius, mud_radius;
    float *mud_taps;
    float taps[];
} spatter;

rt_status rt_corrupt_prepare_spatter(rt_distortion *d) {
    const int64_t radius = rt_gauss_radius(d->p[2], 4.0), mud = rt_gauss_radius(d->p[4], 4.0);
    RT_TRY(rt_distort_state(d, sizeof(spatter), 2 * radius + 1 + 2 * mud + 1));
    spatter *s = d->state;
    s->radius = radius;
    s->mud_radius = mud;
    s->mud_taps = s->taps + 2 * radius + 1;
    rt_gauss_taps(s->taps, radius, d->p[2]);
    rt_gauss_taps(s->mud_taps, mud, d->p[4]);
    d->scratch = 3 * d->h * d->w + RT_MAX(rt_gauss_scratch(d->h, d->w, RT_MAX(radius, mud)),
                                          2 * d->h * d->w + (d->h + 2) * (d->w + 2));
    return RT_OK;
}

/* ---- edges ---- */

/* Sobel gradient at a pixel of a plane padded by one, rows `stride` apart. */
static inline void sobel(const float *p, int64_t stride, float *gx, float *gy) {
    const float *a = p - stride, *b = p, *c = p + stride;
    *gx = (a[1] + 2 * b[1] + c[1]) - (a[-1] + 2 * b[-1] + c[-1]);
    *gy = (c[-1] + 2 * c[0] + c[1]) - (a[-1] + 2 * a[0] + a[1]);
}

/* Canny: mark[i] is 2 on edges. Gradients that are largest along their direction are weak edges above 50 and
 * strong ones above 150; weak edges count where they touch strong ones. pad: the plane, padded by one. */
static void canny(const float *pad, int64_t h, int64_t w, float *size, uint8_t *mark, int32_t *stack) {
    const int64_t stride = w + 2;
    int64_t top = 0;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            float gx, gy;
            sobel(pad + (y + 1) * stride + x + 1, stride, &gx, &gy);
            size[y * w + x] = fabsf(gx) + fabsf(gy);
        }
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const int64_t i = y * w + x;
            const float m = size[i];
            float gx, gy;
            int64_t dx = 1, dy = 1;
            mark[i] = 0;
            if (m <= 50.0f)
                continue;
            sobel(pad + (y + 1) * stride + x + 1, stride, &gx, &gy);
            if (fabsf(gy) < 0.41421356f * fabsf(gx))
                dy = 0;
            else if (fabsf(gy) > 2.41421356f * fabsf(gx))
                dx = 0;
            else if ((gx < 0) != (gy < 0))
                dx = -1;
            const bool before = y - dy >= 0 && x - dx >= 0 && x - dx < w;
            const bool after = y + dy < h && x + dx < w && x + dx >= 0;
            const float low = before ? size[i - dy * w - dx] : 0.0f,
                        high = after ? size[i + dy * w + dx] : 0.0f;
            if (m > low && (dx && dy ? m > high : m >= high))
                mark[i] = 1;
            if (mark[i] && m > 150.0f) {
                mark[i] = 2;
                stack[top++] = (int32_t)i;
            }
        }
    while (top > 0) {
        const int64_t i = stack[--top], y = i / w, x = i % w;
        for (int64_t v = RT_MAX(y - 1, 0); v <= RT_MIN(y + 1, h - 1); v++)
            for (int64_t u = RT_MAX(x - 1, 0); u <= RT_MIN(x + 1, w - 1); u++)
                if (mark[v * w + u] == 1) {
                    mark[v * w + u] = 2;
                    stack[top++] = (int32_t)(v * w + u);
                }
    }
}

/* ---- relief ---- */

/* Distance to the nearest mark by two sweeps with steps 1, 1.4 and 2.1969 (the knight's), at most 20. A sweep
 * looks at the pixels behind it; within a margin of two pixels they may be missing. */
static void distance(const uint8_t *mark, int64_t h, int64_t w, float *dist) {
    static const struct {
        int8_t dy, dx;
        float step;
    } behind[] = {{0, -1, 1.0f},     {-1, 0, 1.0f},    {-1, -1, 1.4f},    {-1, 1, 1.4f},
                  {-1, -2, 2.1969f}, {-1, 2, 2.1969f}, {-2, -1, 2.1969f}, {-2, 1, 2.1969f}};
    for (int64_t i = 0; i < h * w; i++)
        dist[i] = mark[i] == 2 ? 0.0f : 20.0f;
    for (int sign = 1; sign >= -1; sign -= 2)
        for (int64_t k = 0; k < h * w; k++) {
            const int64_t i = sign > 0 ? k : h * w - 1 - k, y = i / w, x = i % w;
            const bool inside = y >= 2 && y < h - 2 && x >= 2 && x < w - 2;
            float best = dist[i];
            for (int64_t b = 0; b < RT_COUNT(behind); b++) {
                const int64_t v = y + sign * behind[b].dy, u = x + sign * behind[b].dx;
                if (inside || (v >= 0 && v < h && u >= 0 && u < w))
                    best = RT_MIN(best, dist[v * w + u] + behind[b].step);
            }
            dist[i] = best;
        }
}

/* Correlation with 3x3 weights, mirrored border; pad: scratch for the padded plane. */
static void filter3(float *dst, const float *src, int64_t h, int64_t w, const float weight[9], float *pad) {
    const int64_t stride = w + 2;
    rt_plane_pad(pad, src, h, w, 1, 1, RT_BORDER_MIRROR);
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const float *a = pad + y * stride + x, *b = a + stride, *c = b + stride;
            dst[y * w + x] = weight[0] * a[0] + weight[1] * a[1] + weight[2] * a[2] + weight[3] * b[0] +
                             weight[4] * b[1] + weight[5] * b[2] + weight[6] * c[0] + weight[7] * c[1] +
                             weight[8] * c[2];
        }
}

/* Spreads whole values 0..255 so that their cumulated histogram is straight. */
static void equalise(float *p, int64_t n) {
    int64_t count[256] = {0}, first = 0, below = 0;
    float table[256] = {0};
    for (int64_t i = 0; i < n; i++)
        count[(int)p[i]]++;
    while (count[first] == 0)
        first++;
    if (count[first] == n)
        return;
    const float scale = 255.0f / (float)(n - count[first]);
    for (int64_t k = first + 1; k < 256; k++) {
        below += count[k];
        table[k] = floorf((float)below * scale + 0.5f);
    }
    for (int64_t i = 0; i < n; i++)
        p[i] = table[(int)p[i]];
}

static float byte_range(float v) {
    return v < 0.0f ? 0.0f : v > 255.0f ? 255.0f : v;
}

/* liquid in bytes -> relief; a, b and the rest are planes of scratch. */
static void water_relief(const float *liquid, int64_t h, int64_t w, float *relief, float *b, float *rest) {
    static const float mean[9] = {1.0f / 9, 1.0f / 9, 1.0f / 9, 1.0f / 9, 1.0f / 9,
                                  1.0f / 9, 1.0f / 9, 1.0f / 9, 1.0f / 9};
    static const float emboss[9] = {-2, -1, 0, -1, 1, 1, 0, 1, 2};
    const int64_t n = h * w;
    float *pad = rest + n + (n + 3) / 4;
    uint8_t *mark = (uint8_t *)(rest + n);
    rt_plane_pad(pad, liquid, h, w, 1, 1, RT_BORDER_EDGE);
    canny(pad, h, w, b, mark, (int32_t *)rest);
    distance(mark, h, w, b);
    filter3(relief, b, h, w, mean, pad);
    for (int64_t i = 0; i < n; i++)
        relief[i] = floorf(relief[i] + 1e-4f);
    equalise(relief, n);
    filter3(b, relief, h, w, emboss, pad);
    for (int64_t i = 0; i < n; i++)
        b[i] = byte_range(b[i]);
    filter3(relief, b, h, w, mean, pad);
    for (int64_t i = 0; i < n; i++)
        relief[i] = floorf(relief[i] + 0.5f);
}

/* ---- both ---- */

static float channel_of(const float colour[3], int64_t channels, int64_t c) {
    return (channels == 3 ? colour[c] : 0.299f * colour[0] + 0.587f * colour[1] + 0.114f * colour[2]) /
           255.0f;
}

static void water(const rt_distortion *d, const rt_canvas *v, float *liquid, float *scratch) {
    static const float turquoise[3] = {175, 238, 238};
    const int64_t plane = v->h * v->w;
    float *relief = scratch, most = 0.0f;
    for (int64_t i = 0; i < plane; i++)
        liquid[i] = (float)((int)(liquid[i] * 255.0f) & 255);
    water_relief(liquid, v->h, v->w, relief, scratch + plane, scratch + 2 * plane);
    for (int64_t i = 0; i < plane; i++) {
        liquid[i] *= relief[i];
        most = RT_MAX(most, liquid[i]);
    }
    if (most <= 0.0f)
        return; /* a dry image */
    const float scale = (float)d->p[4] / most;
    for (int64_t c = 0; c < v->c; c++) {
        const float colour = scale * channel_of(turquoise, v->c, c);
        float *x = v->x + c * plane;
        for (int64_t i = 0; i < plane; i++)
            x[i] += liquid[i] * colour;
    }
}

static void mud(const rt_distortion *d, const rt_canvas *v, float *liquid, float *scratch) {
    static const float brown[3] = {63, 42, 20};
    const spatter *s = d->state;
    const int64_t plane = v->h * v->w;
    for (int64_t i = 0; i < plane; i++)
        liquid[i] = liquid[i] > (float)d->p[3] ? 1.0f : 0.0f;
    rt_plane_gauss(liquid, v->h, v->w, s->mud_taps, s->mud_radius, RT_BORDER_EDGE, scratch);
    for (int64_t c = 0; c < v->c; c++) {
        const float colour = channel_of(brown, v->c, c);
        float *x = v->x + c * plane;
        for (int64_t i = 0; i < plane; i++) {
            const float m = liquid[i] < 0.8f ? 0.0f : liquid[i];
            x[i] += m * (colour - x[i]);
        }
    }
}

rt_status rt_corrupt_run_spatter(const rt_distortion *d, const rt_canvas *v) {
    const spatter *s = d->state;
    const int64_t plane = v->h * v->w;
    const float loc = (float)d->p[0], scale = (float)d->p[1], threshold = (float)d->p[3];
    float *liquid = v->scratch, *rest = liquid + plane;
    rt_draw_normal(v->rng, 0, liquid, plane);
    for (int64_t i = 0; i < plane; i++)
        liquid[i] = loc + scale * liquid[i];
    rt_plane_gauss(liquid, v->h, v->w, s->taps, s->radius, RT_BORDER_EDGE, rest);
    for (int64_t i = 0; i < plane; i++)
        liquid[i] = liquid[i] < threshold ? 0.0f : liquid[i];
    if (d->p[5] > 0)
        mud(d, v, liquid, rest);
    else
        water(d, v, liquid, rest);
    return RT_OK;
}
