/*
 * corrupt_filter.c - filters of one plane that several corruptions share: borders, Gaussian, line, zoom.
 *
 * All are sums of shifted copies, written so that the inner loop runs along a row with one weight.
 */
#include "distort/corrupt_int.h"

#include <math.h>
#include <string.h>

int64_t rt_border_index(int64_t i, int64_t n, rt_border b) {
    if (i >= 0 && i < n)
        return i;
    if (b == RT_BORDER_EDGE)
        return i < 0 ? 0 : n - 1;
    const int64_t period = b == RT_BORDER_REFLECT ? 2 * n : 2 * n - 2;
    i %= period;
    if (i < 0)
        i += period;
    return i < n ? i : (b == RT_BORDER_REFLECT ? period - 1 : period) - i;
}

static void row_pad(float *restrict dst, const float *restrict src, int64_t w, int64_t px, rt_border b) {
    memcpy(dst + px, src, (size_t)w * sizeof *dst);
    for (int64_t k = 1; k <= px; k++) {
        dst[px - k] = src[rt_border_index(-k, w, b)];
        dst[px + w - 1 + k] = src[rt_border_index(w - 1 + k, w, b)];
    }
}

void rt_plane_pad(float *restrict dst, const float *restrict src, int64_t h, int64_t w, int64_t py,
                  int64_t px, rt_border b) {
    for (int64_t y = 0; y < h + 2 * py; y++)
        row_pad(dst + y * (w + 2 * px), src + rt_border_index(y - py, h, b) * w, w, px, b);
}

static void row_add(float *restrict dst, const float *restrict src, float weight, int64_t w) {
    for (int64_t x = 0; x < w; x++)
        dst[x] += weight * src[x];
}

/* ---- Gaussian ---- */

int64_t rt_gauss_radius(double sigma, double truncate) {
    return (int64_t)(truncate * sigma + 0.5);
}

void rt_gauss_taps(float *taps, int64_t radius, double sigma) {
    double sum = 0;
    for (int64_t k = -radius; k <= radius; k++)
        sum += k ? exp(-0.5 * (double)(k * k) / (sigma * sigma)) : 1.0;
    for (int64_t k = -radius; k <= radius; k++)
        taps[k + radius] = (float)((k ? exp(-0.5 * (double)(k * k) / (sigma * sigma)) : 1.0) / sum);
}

int64_t rt_gauss_scratch(int64_t h, int64_t w, int64_t radius) {
    return h * w + w + 2 * radius;
}

void rt_plane_gauss(float *x, int64_t h, int64_t w, const float *taps, int64_t radius, rt_border b,
                    float *scratch) {
    float *plane = scratch, *row = scratch + h * w;
    if (radius == 0)
        return;
    memset(plane, 0, (size_t)(h * w) * sizeof *plane);
    for (int64_t y = 0; y < h; y++)
        for (int64_t k = -radius; k <= radius; k++)
            row_add(plane + y * w, x + rt_border_index(y + k, h, b) * w, taps[k + radius], w);
    memset(x, 0, (size_t)(h * w) * sizeof *x);
    for (int64_t y = 0; y < h; y++) {
        row_pad(row, plane + y * w, w, radius, b);
        for (int64_t k = 0; k <= 2 * radius; k++)
            row_add(x + y * w, row + k, taps[k], w);
    }
}

/* ---- line ---- */

/* Half a Gaussian over 2 radius + 1 pixels; the tail that cannot move a byte is left out, and the rest sums up to 1:
 * what is even stays as it is, though values are cut off. */
int64_t rt_line_taps(float *taps, double radius, double sigma) {
    const int64_t n = RT_MIN(2 * (int64_t)ceil(radius) + 1, RT_LINE_MAX);
    double sum = 0;
    int64_t used = 0;
    for (int64_t i = 0; i < n; i++)
        sum += exp(-0.5 * (double)(i * i) / (sigma * sigma));
    for (; used < n; used++) {
        taps[used] = (float)(exp(-0.5 * (double)(used * used) / (sigma * sigma)) / sum);
        if (taps[used] < 1e-5f)
            break;
    }
    sum = 0;
    for (int64_t i = 0; i < used; i++)
        sum += (double)taps[i];
    for (int64_t i = 0; i < used; i++)
        taps[i] = (float)((double)taps[i] / sum);
    return used;
}

int64_t rt_line_scratch(int64_t h, int64_t w, int64_t n) {
    return (h + 2 * n) * (w + 2 * n);
}

void rt_plane_line(float *x, int64_t h, int64_t w, const float *taps, int64_t n, double degrees,
                   float *scratch) {
    const double turn = degrees * 0.017453292519943295, cosine = cos(turn), sine = sin(turn);
    const int64_t reach = n - 1, stride = w + 2 * reach;
    rt_plane_pad(scratch, x, h, w, reach, reach, RT_BORDER_EDGE);
    memset(x, 0, (size_t)(h * w) * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        const int64_t dx = (int64_t)ceil((double)i * cosine - 0.5),
                      dy = (int64_t)ceil((double)i * sine - 0.5);
        for (int64_t y = 0; y < h; y++)
            row_add(x + y * w, scratch + (y + reach + dy) * stride + reach + dx, taps[i], w);
    }
    for (int64_t i = 0; i < h * w; i++) /* 16 bits, rounded, then 8, cut off */
        x[i] = (float)((int)(x[i] * 65535.0f + 0.5f) / 257) * (1.0f / 255.0f);
}

/* ---- zoom ---- */

/* The middle ceil(n / zoom) pixels are stretched to round(... zoom), end to end, and trimmed to n: what
 * scipy.ndimage.zoom does to a crop. */
void rt_zoom_axis(int32_t *at, float *f, int64_t n, double zoom) {
    const int64_t crop = (int64_t)ceil((double)n / zoom), top = (n - crop) / 2;
    const int64_t size = (int64_t)rint((double)crop * zoom), trim = (size - n) / 2;
    for (int64_t i = 0; i < n; i++) {
        const double place = (double)(i + trim) * ((double)(crop - 1) / (double)(size - 1));
        const int64_t whole = RT_MIN((int64_t)place, crop - 2);
        at[i] = (int32_t)(top + whole);
        f[i] = (float)(place - (double)whole);
    }
}

void rt_plane_zoom_add(float *restrict dst, const float *restrict src, int64_t h, int64_t w,
                       const int32_t *ay, const float *fy, const int32_t *ax, const float *fx,
                       float *restrict row) {
    const int64_t first = ax[0], last = ax[w - 1] + 2;
    for (int64_t y = 0; y < h; y++) {
        const float *top = src + ay[y] * w, *bottom = top + w;
        const float f = fy[y];
        for (int64_t x = first; x < last; x++)
            row[x] = top[x] + f * (bottom[x] - top[x]);
        for (int64_t x = 0; x < w; x++)
            dst[y * w + x] += row[ax[x]] + fx[x] * (row[ax[x] + 1] - row[ax[x]]);
    }
}
