/*
 * corrupt_digital.c - brightness, contrast, saturation, pixelation.
 *
 * Hue, saturation and value are never computed. With V = max(r, g, b) and S = (V - min) / V, a change of V at
 * constant hue and saturation scales the pixel by V' / V, and a change of S at constant hue and value scales
 * the distances to V by S' / S. A grey pixel has no hue; the convention is red (as in colorsys and skimage),
 * so it gets (V, V - V S', V - V S'). A grey image is its own value, and has no saturation to change.
 */
#include "distort/corrupt_int.h"

#include <math.h>

/* ---- brightness ---- */

rt_status rt_corrupt_prepare_brightness(rt_distortion *d) {
    d->scratch = 0;
    return RT_OK;
}

rt_status rt_corrupt_run_brightness(const rt_distortion *d, const rt_canvas *v) {
    const int64_t plane = v->h * v->w;
    const float add = (float)d->p[0];
    float *r = v->x, *g = v->x + plane, *b = v->x + 2 * plane;
    if (v->c == 1) {
        for (int64_t i = 0; i < plane; i++)
            r[i] += add;
        return RT_OK;
    }
    for (int64_t i = 0; i < plane; i++) {
        const float value = RT_MAX(r[i], RT_MAX(g[i], b[i])), raised = RT_MIN(value + add, 1.0f);
        if (value > 0.0f) {
            const float scale = raised / value;
            r[i] *= scale;
            g[i] *= scale;
            b[i] *= scale;
        } else {
            r[i] = g[i] = b[i] = raised;
        }
    }
    return RT_OK;
}

/* ---- contrast ---- */

rt_status rt_corrupt_prepare_contrast(rt_distortion *d) {
    d->scratch = 0;
    return RT_OK;
}

rt_status rt_corrupt_run_contrast(const rt_distortion *d, const rt_canvas *v) {
    const int64_t plane = v->h * v->w;
    const float c = (float)d->p[0];
    for (int64_t k = 0; k < v->c; k++) {
        float *x = v->x + k * plane;
        double sum = 0;
        for (int64_t i = 0; i < plane; i++)
            sum += (double)x[i];
        const float mean = (float)(sum / (double)plane);
        for (int64_t i = 0; i < plane; i++)
            x[i] = (x[i] - mean) * c + mean;
    }
    return RT_OK;
}

/* ---- saturation ---- */

rt_status rt_corrupt_prepare_saturate(rt_distortion *d) {
    d->scratch = 0;
    return RT_OK;
}

rt_status rt_corrupt_run_saturate(const rt_distortion *d, const rt_canvas *v) {
    const int64_t plane = v->h * v->w;
    const float scale = (float)d->p[0], add = (float)d->p[1];
    float *r = v->x, *g = v->x + plane, *b = v->x + 2 * plane;
    if (v->c == 1)
        return RT_OK;
    for (int64_t i = 0; i < plane; i++) {
        const float value = RT_MAX(r[i], RT_MAX(g[i], b[i])), least = RT_MIN(r[i], RT_MIN(g[i], b[i]));
        const float saturation = value > 0.0f ? (value - least) / value : 0.0f;
        const float changed = rt_clip01(scale * saturation + add);
        if (saturation > 0.0f) {
            const float by = changed / saturation;
            r[i] = value - (value - r[i]) * by;
            g[i] = value - (value - g[i]) * by;
            b[i] = value - (value - b[i]) * by;
        } else {
            g[i] = b[i] = value - value * changed;
        }
    }
    return RT_OK;
}

/* ---- pixelation ---- */

/* Shrinking and growing along one axis. A small pixel is the mean of the pixels whose centres it covers; a
 * pixel of the result is the small pixel that covers its centre. Both are rounded to bytes, as Pillow does.
 */
typedef struct boxes {
    int64_t small_h, small_w;
    int32_t *first_y, *last_y, *back_y, *first_x, *last_x, *back_x;
    float storage[]; /* of the six */
} boxes;

/* A box is open on the left; which side rounding puts a centre on its border is Pillow's arithmetic, too. */
static bool box_covers(int32_t pixel, double centre, double scale) {
    const double place = ((double)pixel - centre + 0.5) * (1.0 / scale);
    return place > -0.5 && place <= 0.5;
}

static void boxes_axis(int32_t *first, int32_t *last, int32_t *back, int64_t n, int64_t small) {
    const double scale = (double)n / (double)small;
    for (int64_t i = 0; i < small; i++) {
        const double centre = ((double)i + 0.5) * scale;
        first[i] = (int32_t)RT_MAX((int64_t)(centre - 0.5 * scale + 0.5), 0);
        last[i] = (int32_t)RT_MIN((int64_t)(centre + 0.5 * scale + 0.5), n) - 1;
        while (first[i] < last[i] && !box_covers(first[i], centre, scale))
            first[i]++;
        while (first[i] < last[i] && !box_covers(last[i], centre, scale))
            last[i]--;
    }
    for (int64_t i = 0; i < n; i++)
        back[i] = (int32_t)RT_MIN((int64_t)(((double)i + 0.5) / scale), small - 1);
}

rt_status rt_corrupt_prepare_pixelate(rt_distortion *d) {
    const int64_t small_h = (int64_t)((double)d->h * d->p[0]), small_w = (int64_t)((double)d->w * d->p[0]);
    RT_TRY(rt_distort_state(d, sizeof(boxes), 3 * (d->h + d->w)));
    boxes *s = d->state;
    int32_t *at = (int32_t *)s->storage;
    s->small_h = small_h;
    s->small_w = small_w;
    s->first_y = at;
    s->last_y = at + d->h;
    s->back_y = at + 2 * d->h;
    s->first_x = at + 3 * d->h;
    s->last_x = s->first_x + d->w;
    s->back_x = s->last_x + d->w;
    boxes_axis(s->first_y, s->last_y, s->back_y, d->h, small_h);
    boxes_axis(s->first_x, s->last_x, s->back_x, d->w, small_w);
    d->scratch = 2 * d->h * d->w;
    return RT_OK;
}

static float round_byte(float sum, int32_t count) {
    return (float)(int)(sum / (float)count + 0.5f);
}

rt_status rt_corrupt_run_pixelate(const rt_distortion *d, const rt_canvas *v) {
    const boxes *s = d->state;
    float *narrow = v->scratch, *small = narrow + v->h * v->w; /* (h, small_w), (small_h, small_w), bytes */
    for (int64_t c = 0; c < v->c; c++) {
        float *x = v->x + c * v->h * v->w;
        for (int64_t y = 0; y < v->h; y++)
            for (int64_t i = 0; i < s->small_w; i++) {
                float sum = 0.0f;
                for (int32_t k = s->first_x[i]; k <= s->last_x[i]; k++)
                    sum += 255.0f * x[y * v->w + k];
                narrow[y * s->small_w + i] = round_byte(sum, s->last_x[i] - s->first_x[i] + 1);
            }
        for (int64_t y = 0; y < s->small_h; y++)
            for (int64_t i = 0; i < s->small_w; i++) {
                float sum = 0.0f;
                for (int32_t k = s->first_y[y]; k <= s->last_y[y]; k++)
                    sum += narrow[k * s->small_w + i];
                small[y * s->small_w + i] = round_byte(sum, s->last_y[y] - s->first_y[y] + 1);
            }
        for (int64_t y = 0; y < v->h; y++)
            for (int64_t i = 0; i < v->w; i++)
                x[y * v->w + i] = small[s->back_y[y] * s->small_w + s->back_x[i]] * (1.0f / 255.0f);
    }
    return RT_OK;
}
