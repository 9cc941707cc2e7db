/*
 * shift_rotate.c - rotation about the centre by cubic B-splines: what scipy.ndimage.rotate(x, degrees) gives
 * with its defaults, cut in the middle to the size of the image.
 *
 *     place = R (out - out centre) + in centre,     R = (cos, sin; -sin, cos) on (y, x)
 *     value = sum over 4 x 4 neighbours of B3(distance) c,     0 where the place is outside the image
 *
 * The coefficients c are those for which the spline goes through the pixels: a causal and an anticausal
 * recursion with the pole z = sqrt(3) - 2 along each axis, the image mirrored at its borders (Unser 1999,
 * "Splines: a perfect fit for signal and image processing"). The rotated image is first laid on a canvas that
 * holds it whole, whose size is rounded; its centre, hence every place, depends on that rounding. Places and
 * weights are the same for all images: they are tabulated.
 */
#include "distort/corrupt_int.h"

#include <math.h>

enum { TAPS = 4 };
typedef struct place {
    bool inside;
    int32_t y[TAPS], x[TAPS]; /* offsets of rows (times w) and columns */
    float wy[TAPS], wx[TAPS];
} place;
typedef struct rotation {
    int64_t n;
    place at[];
} rotation;

/* cos and sin of degrees, exact at quarter turns. */
static void turn(double degrees, double *cosine, double *sine) {
    const double quarters = rint(degrees / 90.0), rest = (degrees - 90.0 * quarters) * 0.017453292519943295;
    const double c = cos(rest), s = sin(rest);
    switch ((int64_t)quarters & 3) {
    case 0:
        *cosine = c, *sine = s;
        break;
    case 1:
        *cosine = -s, *sine = c;
        break;
    case 2:
        *cosine = -c, *sine = -s;
        break;
    default:
        *cosine = s, *sine = -c;
    }
}

/* Neighbours and weights of one coordinate within [0, n - 1]. */
static void axis_taps(double at, int64_t n, int64_t stride, int32_t index[TAPS], float weight[TAPS]) {
    const double whole = floor(at), t = at - whole, u = 1 - t;
    const double b[TAPS] = {u * u * u / 6, (t * t * (t - 2) * 3 + 4) / 6, (u * u * (u - 2) * 3 + 4) / 6,
                            t * t * t / 6};
    for (int64_t k = 0; k < TAPS; k++) {
        index[k] = (int32_t)(rt_border_index((int64_t)whole + k - 1, n, RT_BORDER_MIRROR) * stride);
        weight[k] = (float)b[k];
    }
}

/* Extent of the rotated image along one axis, as scipy rounds it. */
static int64_t canvas_size(double along, double across) {
    return (int64_t)(fabs(along) + fabs(across) + 0.5);
}

rt_status rt_shift_prepare_rotate(rt_distortion *d) {
    const int64_t h = d->h, w = d->w;
    double c, s;
    turn(d->amount, &c, &s);
    const int64_t big_h = canvas_size(c * (double)h, s * (double)w),
                  big_w = canvas_size(s * (double)h, c * (double)w);
    const int64_t top = (int64_t)floor((double)(big_h - h) / 2),
                  left = (int64_t)floor((double)(big_w - w) / 2);
    const double ey = 1e-9 * (double)h, ex = 1e-9 * (double)w;
    RT_FAIL_IF(h * w > INT32_MAX / 64, RT_E_USAGE, "rotate: images of %lld x %lld are too large",
               (long long)w, (long long)h);
    RT_TRY(rt_distort_state(d, sizeof(rotation) + (size_t)(h * w) * sizeof(place), 0));
    rotation *r = d->state;
    r->n = h * w;
    for (int64_t i = 0; i < h * w; i++) {
        const double y = (double)(i / w + top) - 0.5 * (double)(big_h - 1);
        const double x = (double)(i % w + left) - 0.5 * (double)(big_w - 1);
        double py = c * y + s * x + 0.5 * (double)(h - 1), px = c * x - s * y + 0.5 * (double)(w - 1);
        place *p = &r->at[i];
        p->inside = py >= -ey && py <= (double)(h - 1) + ey && px >= -ex && px <= (double)(w - 1) + ex;
        if (!p->inside)
            continue;
        axis_taps(fmin(fmax(py, 0), (double)(h - 1)), h, w, p->y, p->wy);
        axis_taps(fmin(fmax(px, 0), (double)(w - 1)), w, 1, p->x, p->wx);
    }
    d->scratch = h * w;
    return RT_OK;
}

/* Spline coefficients of n values, stride apart, in place. */
static void spline_coefficients(float *x, int64_t n, int64_t stride) {
    const double z = -0.26794919243112270647; /* sqrt(3) - 2 */
    const double far = pow(z, (double)(n - 1));
    double power = z, sum = (double)x[0] + far * (double)x[(n - 1) * stride];
    for (int64_t i = 1; i < n - 1 && fabs(power) > 1e-18; i++, power *= z)
        sum += power * ((double)x[i * stride] + far * (double)x[(n - 1 - i) * stride]);
    double c = 6 * sum / (1 - far * far);
    x[0] = (float)c;
    for (int64_t i = 1; i < n; i++) {
        c = 6 * (double)x[i * stride] + z * c;
        x[i * stride] = (float)c;
    }
    c = (z * (double)x[(n - 2) * stride] + c) * z / (z * z - 1);
    x[(n - 1) * stride] = (float)c;
    for (int64_t i = n - 2; i >= 0; i--) {
        c = z * (c - (double)x[i * stride]);
        x[i * stride] = (float)c;
    }
}

rt_status rt_shift_run_rotate(const rt_distortion *d, const rt_canvas *v) {
    const rotation *r = d->state;
    float *copy = v->scratch;
    for (int64_t c = 0; c < v->c; c++) {
        float *x = v->x + c * r->n;
        for (int64_t k = 0; k < v->w; k++)
            spline_coefficients(x + k, v->h, v->w);
        for (int64_t k = 0; k < v->h; k++)
            spline_coefficients(x + k * v->w, v->w, 1);
        for (int64_t i = 0; i < r->n; i++) {
            const place *p = &r->at[i];
            float sum = 0.0f;
            for (int j = 0; j < TAPS && p->inside; j++) {
                const float *row = x + p->y[j];
                sum += p->wy[j] * (p->wx[0] * row[p->x[0]] + p->wx[1] * row[p->x[1]] +
                                   p->wx[2] * row[p->x[2]] + p->wx[3] * row[p->x[3]]);
            }
            copy[i] = sum;
        }
        for (int64_t i = 0; i < r->n; i++)
            x[i] = copy[i];
    }
    return RT_OK;
}
