/*
 * corrupt_elastic.c - elastic transform.
 *
 * With S the shorter side of the image: three points (centre + s, + s), (+ s, - s), (- s, - s), s = S / 3,
 * move by U(-affine S, affine S) each; the affine map that moves them so moves the image (bilinear, mirrored
 * border). Then every pixel is fetched from its place plus alpha S G * U(-1, 1), G a Gaussian of deviation
 * sigma S cut at three deviations, drawn for x and for y (bilinear, reflected border).
 */
#include "distort/corrupt_int.h"

#include <string.h>

typedef struct elastic {
    double alpha, sigma, affine, third; /* in pixels */
    int64_t radius;
    float taps[];
} elastic;

rt_status rt_corrupt_prepare_elastic_transform(rt_distortion *d) {
    const double side = (double)RT_MIN(d->h, d->w);
    const int64_t radius = rt_gauss_radius(d->p[1] * side, 3.0);
    RT_TRY(rt_distort_state(d, sizeof(elastic), 2 * radius + 1));
    elastic *s = d->state;
    s->alpha = d->p[0] * side;
    s->sigma = d->p[1] * side;
    s->affine = d->p[2] * side;
    s->third = (double)(RT_MIN(d->h, d->w) / 3);
    s->radius = radius;
    rt_gauss_taps(s->taps, radius, s->sigma);
    d->scratch = 3 * d->h * d->w + rt_gauss_scratch(d->h, d->w, radius);
    return RT_OK;
}

/* The inverse of the map that takes three points to their moved places, as x = m[0] X + m[1] Y + m[2], y =
 * m[3] ... */
static void affine_inverse(const elastic *s, const rt_canvas *v, double m[6]) {
    const double cx = (double)(v->w / 2), cy = (double)(v->h / 2), t = s->third;
    const double x[3] = {cx + t, cx + t, cx - t}, y[3] = {cy + t, cy - t, cy - t};
    double X[3], Y[3];
    for (uint64_t k = 0; k < 3; k++) {
        X[k] = x[k] + rt_draw_one(v->rng, 2 * k, -s->affine, s->affine);
        Y[k] = y[k] + rt_draw_one(v->rng, 2 * k + 1, -s->affine, s->affine);
    }
    /* Differences to the first point; Cramer's rule on two equations for each row. */
    const double ax = X[1] - X[0], ay = Y[1] - Y[0], bx = X[2] - X[0], by = Y[2] - Y[0];
    const double det = ax * by - ay * bx;
    const double *from[2] = {x, y};
    for (int r = 0; r < 2; r++) {
        const double p = from[r][1] - from[r][0], q = from[r][2] - from[r][0];
        m[3 * r] = (p * by - q * ay) / det;
        m[3 * r + 1] = (q * ax - p * bx) / det;
        m[3 * r + 2] = from[r][0] - m[3 * r] * X[0] - m[3 * r + 1] * Y[0];
    }
}

/* Bilinear value of a plane at (x, y), any place. */
static float fetch(const float *p, int64_t h, int64_t w, float x, float y, rt_border b) {
    const int64_t x0 = (int64_t)x - (x < (float)(int64_t)x), y0 = (int64_t)y - (y < (float)(int64_t)y);
    const float fx = x - (float)x0, fy = y - (float)y0;
    int64_t xa = x0, xb = x0 + 1, ya = y0, yb = y0 + 1;
    if (xa < 0 || xb >= w || ya < 0 || yb >= h) {
        xa = rt_border_index(xa, w, b);
        xb = rt_border_index(xb, w, b);
        ya = rt_border_index(ya, h, b);
        yb = rt_border_index(yb, h, b);
    }
    const float top = p[ya * w + xa] + fx * (p[ya * w + xb] - p[ya * w + xa]);
    const float bottom = p[yb * w + xa] + fx * (p[yb * w + xb] - p[yb * w + xa]);
    return top + fy * (bottom - top);
}

static void move_plane(float *x, float *copy, const float *px, const float *py, int64_t h, int64_t w,
                       rt_border b) {
    memcpy(copy, x, (size_t)(h * w) * sizeof *copy);
    for (int64_t i = 0; i < h * w; i++)
        x[i] = fetch(copy, h, w, px[i], py[i], b);
}

rt_status rt_corrupt_run_elastic_transform(const rt_distortion *d, const rt_canvas *v) {
    const elastic *s = d->state;
    const int64_t plane = v->h * v->w;
    float *px = v->scratch, *py = px + plane, *copy = py + plane, *rest = copy + plane;
    double m[6];
    affine_inverse(s, v, m);
    for (int64_t y = 0; y < v->h; y++)
        for (int64_t x = 0; x < v->w; x++) {
            px[y * v->w + x] = (float)(m[0] * (double)x + m[1] * (double)y + m[2]);
            py[y * v->w + x] = (float)(m[3] * (double)x + m[4] * (double)y + m[5]);
        }
    for (int64_t c = 0; c < v->c; c++)
        move_plane(v->x + c * plane, copy, px, py, v->h, v->w, RT_BORDER_MIRROR);
    if (s->alpha <= 0)
        return RT_OK;
    rt_draw_uniform(v->rng, 0, px, plane);
    rt_draw_uniform(v->rng, 1, py, plane);
    rt_plane_gauss(px, v->h, v->w, s->taps, s->radius, RT_BORDER_REFLECT, rest);
    rt_plane_gauss(py, v->h, v->w, s->taps, s->radius, RT_BORDER_REFLECT, rest);
    const float scale = (float)s->alpha;
    for (int64_t y = 0; y < v->h; y++)
        for (int64_t x = 0; x < v->w; x++) {
            const int64_t i = y * v->w + x;
            px[i] = (float)x + scale * (2.0f * px[i] - 1.0f);
            py[i] = (float)y + scale * (2.0f * py[i] - 1.0f);
        }
    for (int64_t c = 0; c < v->c; c++)
        move_plane(v->x + c * plane, copy, px, py, v->h, v->w, RT_BORDER_REFLECT);
    return RT_OK;
}
