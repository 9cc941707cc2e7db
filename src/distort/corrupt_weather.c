/*
 * corrupt_weather.c - snow and fog.
 *
 * Snow:  flakes = N(loc, scale) zoomed, what is below the threshold 0, blurred along a line that falls
 *        x <- mix x + (1 - mix) max(x, 1.5 grey + 0.5);   x + flakes + flakes turned by 180 degrees
 *
 * Fog:   x <- (x + c plasma) max x / (max x + c)
 *
 * The plasma is the diamond-square fractal on a torus, rescaled to [0, 1]: a point in the middle of four is
 * their mean plus a random number of amplitude wibble^2 (the published code multiplies by wibble twice),
 * wibble being 100 and divided by the decay from level to level.
 *
 *     squares       diamonds
 *     a . b         . n .
 *     . x .         w x e
 *     c . d         . s .
 */
#include "distort/corrupt_int.h"

#include <math.h>
#include <string.h>

/* ---- snow ---- */

typedef struct snow {
    int64_t taps;
    float tap[RT_LINE_MAX];
    bool zoomed;
    float *f;        /* (h + w) */
    int32_t *at;     /* (h + w) */
    float storage[]; /* of both */
} snow;

rt_status rt_corrupt_prepare_snow(rt_distortion *d) {
    const int64_t axes = d->h + d->w;
    RT_TRY(rt_distort_state(d, sizeof(snow), 2 * axes));
    snow *s = d->state;
    s->taps = rt_line_taps(s->tap, d->p[4], d->p[5]);
    s->zoomed = d->p[2] > 1;
    s->f = s->storage;
    s->at = (int32_t *)(s->storage + axes);
    rt_zoom_axis(s->at, s->f, d->h, d->p[2]);
    rt_zoom_axis(s->at + d->h, s->f + d->h, d->w, d->p[2]);
    d->scratch = 2 * d->h * d->w + d->w + rt_line_scratch(d->h, d->w, s->taps);
    return RT_OK;
}

static void snow_flakes(const rt_distortion *d, const rt_canvas *v, float *flakes, float *scratch) {
    const snow *s = d->state;
    const int64_t plane = v->h * v->w;
    const float loc = (float)d->p[0], scale = (float)d->p[1], threshold = (float)d->p[3];
    float *raw = s->zoomed ? scratch : flakes;
    rt_draw_normal(v->rng, 0, raw, plane);
    for (int64_t i = 0; i < plane; i++)
        raw[i] = loc + scale * raw[i];
    if (s->zoomed) {
        memset(flakes, 0, (size_t)plane * sizeof *flakes);
        rt_plane_zoom_add(flakes, raw, v->h, v->w, s->at, s->f, s->at + v->h, s->f + v->h, scratch + plane);
    }
    for (int64_t i = 0; i < plane; i++)
        flakes[i] = flakes[i] < threshold ? 0.0f : (float)rt_to_byte(flakes[i]) * (1.0f / 255.0f);
    rt_plane_line(flakes, v->h, v->w, s->tap, s->taps, rt_draw_one(v->rng, 0, -135, -45),
                  scratch + plane + v->w);
}

rt_status rt_corrupt_run_snow(const rt_distortion *d, const rt_canvas *v) {
    const int64_t plane = v->h * v->w;
    const float mix = (float)d->p[6];
    float *flakes = v->scratch, *white = flakes + plane, *x = v->x;
    snow_flakes(d, v, flakes, flakes + plane);
    for (int64_t i = 0; i < plane; i++) {
        const float grey =
            v->c == 3 ? 0.299f * x[i] + 0.587f * x[plane + i] + 0.114f * x[2 * plane + i] : x[i];
        white[i] = 1.5f * grey + 0.5f;
    }
    for (int64_t c = 0; c < v->c; c++, x += plane)
        for (int64_t i = 0; i < plane; i++)
            x[i] = mix * x[i] + (1.0f - mix) * (x[i] > white[i] ? x[i] : white[i]) + flakes[i] +
                   flakes[plane - 1 - i];
    return RT_OK;
}

/* ---- fog ---- */

static int64_t fog_size(const rt_distortion *d) {
    int64_t n = 2;
    while (n < d->h || n < d->w)
        n *= 2;
    return n;
}

rt_status rt_corrupt_prepare_fog(rt_distortion *d) {
    const int64_t n = fog_size(d);
    d->scratch = 2 * n * n;
    return RT_OK;
}

/* m (n, n), n a power of two. A level draws its squares, then its diamonds on rows and on columns. */
static void plasma(float *m, int64_t n, double decay, rt_rng rng, float *noise) {
    double wibble = 100.0;
    uint64_t use = 0;
    m[0] = 0.0f;
    for (int64_t step = n; step >= 2; step /= 2, wibble /= decay) {
        const int64_t half = step / 2, side = n / step, mask = n - 1;
        const float amplitude = (float)(wibble * wibble);
        const float *u = noise;
        rt_draw_uniform(rng, use++, noise, 3 * side * side);
        for (int64_t y = 0; y < n; y += step)
            for (int64_t x = 0; x < n; x += step)
                m[(y + half) * n + x + half] =
                    0.25f * (m[y * n + x] + m[y * n + ((x + step) & mask)] + m[((y + step) & mask) * n + x] +
                             m[((y + step) & mask) * n + ((x + step) & mask)]) +
                    amplitude * (2.0f * *u++ - 1.0f);
        for (int64_t y = 0; y < n; y += step)
            for (int64_t x = 0; x < n; x += step) {
                const float corner = m[y * n + x], middle = m[(y + half) * n + x + half];
                m[y * n + x + half] = 0.25f * (corner + m[y * n + ((x + step) & mask)] + middle +
                                               m[((y - half) & mask) * n + x + half]) +
                                      amplitude * (2.0f * *u++ - 1.0f);
                m[(y + half) * n + x] = 0.25f * (corner + m[((y + step) & mask) * n + x] + middle +
                                                 m[(y + half) * n + ((x - half) & mask)]) +
                                        amplitude * (2.0f * *u++ - 1.0f);
            }
    }
}

rt_status rt_corrupt_run_fog(const rt_distortion *d, const rt_canvas *v) {
    const int64_t n = fog_size(d), pixels = v->c * v->h * v->w;
    float *m = v->scratch, low, high, brightest = 0.0f;
    plasma(m, n, d->p[1], v->rng, m + n * n);
    low = high = m[0];
    for (int64_t i = 1; i < n * n; i++) {
        low = RT_MIN(low, m[i]);
        high = RT_MAX(high, m[i]);
    }
    for (int64_t i = 0; i < pixels; i++)
        brightest = RT_MAX(brightest, v->x[i]);
    const float c = (float)d->p[0], scale = c / (high - low), fade = brightest / (brightest + c);
    for (int64_t k = 0; k < v->c; k++)
        for (int64_t y = 0; y < v->h; y++) {
            float *x = v->x + (k * v->h + y) * v->w;
            for (int64_t i = 0; i < v->w; i++)
                x[i] = (x[i] + (m[y * n + i] - low) * scale) * fade;
        }
    return RT_OK;
}
