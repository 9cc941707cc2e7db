/*
 * corrupt_int.h - what the files of corruptions and shifts share.
 *
 * A corruption is two functions. `prepare` makes its tables (in one block, d->state) and says how many floats
 * of scratch a run needs; `run` changes one image in place, as floats, nominally in [0, 1]: clipping and the
 * way back to 8 bits are the caller's. A shift is the same, without randomness.
 */
#ifndef RT_DISTORT_CORRUPT_INT_H
#define RT_DISTORT_CORRUPT_INT_H

#include "base/rng.h"
#include "data/picture.h"
#include "distort/distort.h"

enum { RT_CORRUPT_PARAMS = 7 };

/* One image at work. */
typedef struct rt_canvas {
    int64_t c, h, w;
    float *x;       /* (c, h, w) */
    rt_rng rng;     /* of this row */
    float *scratch; /* d->scratch floats */
} rt_canvas;

typedef struct rt_distort_ops {
    rt_status (*prepare)(rt_distortion *d);
    rt_status (*run)(const rt_distortion *d, const rt_canvas *v);
} rt_distort_ops;

struct rt_distortion {
    rt_distort_ops ops;
    bool shift;            /* leaves as floats */
    const double *p;       /* parameters of a corruption at its severity */
    double amount;         /* of a shift */
    uint64_t seed, stream; /* of the draws */
    int64_t c, h, w;
    void *state;     /* rt_alloc'ed by prepare */
    int64_t scratch; /* floats, set by prepare */
};
/* A zeroed block of a struct and n floats behind it, as d->state. */
rt_status rt_distort_state(rt_distortion *d, size_t head, int64_t n) RT_MUST_CHECK;

#define RT_CORRUPTION(name, benchmark, meaning, ...)                                                         \
    rt_status rt_corrupt_prepare_##name(rt_distortion *d) RT_MUST_CHECK;                                     \
    rt_status rt_corrupt_run_##name(const rt_distortion *d, const rt_canvas *v) RT_MUST_CHECK;
#include "distort/corruptions.def"
#undef RT_CORRUPTION
#define RT_SHIFT(name, unit, first, last, step, meaning)                                                     \
    rt_status rt_shift_prepare_##name(rt_distortion *d) RT_MUST_CHECK;                                       \
    rt_status rt_shift_run_##name(const rt_distortion *d, const rt_canvas *v) RT_MUST_CHECK;
#include "distort/shifts.def"
#undef RT_SHIFT

/* ---- draws in bulk (corrupt_draw.c): a pure function of (rng, use, position) ---- */
void rt_draw_bits(rt_rng r, uint64_t use, uint32_t *dst, int64_t n);
void rt_draw_uniform(rt_rng r, uint64_t use, float *dst, int64_t n); /* [0, 1), multiples of 2^-24 */
void rt_draw_normal(rt_rng r, uint64_t use, float *dst, int64_t n);
double rt_draw_one(rt_rng r, uint64_t k, double low, double high); /* single draws, apart from all uses */

/* ---- filters (corrupt_filter.c) ---- */
typedef enum rt_border {
    RT_BORDER_EDGE,    /* a a | a b c d | d d */
    RT_BORDER_REFLECT, /* b a | a b c d | d c */
    RT_BORDER_MIRROR,  /* c b | a b c d | c b */
} rt_border;
int64_t rt_border_index(int64_t i, int64_t n, rt_border b); /* of any i, in [0, n) */
/* (h + 2 py, w + 2 px) */
void rt_plane_pad(float *restrict dst, const float *restrict src, int64_t h, int64_t w, int64_t py,
                  int64_t px, rt_border b);

/* A Gaussian of 2 radius + 1 taps, its sum 1. */
int64_t rt_gauss_radius(double sigma, double truncate);
void rt_gauss_taps(float *taps, int64_t radius, double sigma);
int64_t rt_gauss_scratch(int64_t h, int64_t w, int64_t radius);
void rt_plane_gauss(float *x, int64_t h, int64_t w, const float *taps, int64_t radius, rt_border b,
                    float *scratch);

/* Blur along a line: x(p) <- sum_i taps[i] x(p + i (cos, sin)), edges extended; values cut off to 8 bits. */
int64_t rt_line_taps(float *taps, double radius, double sigma); /* how many; at most RT_LINE_MAX */
enum { RT_LINE_MAX = 64 };
int64_t rt_line_scratch(int64_t h, int64_t w, int64_t n);
void rt_plane_line(float *x, int64_t h, int64_t w, const float *taps, int64_t n, double degrees,
                   float *scratch);

/* Zoom by a factor >= 1 about the centre, along one axis: output i lies at fraction f[i] between at[i] and
 * at[i] + 1. */
void rt_zoom_axis(int32_t *at, float *f, int64_t n, double zoom);
/* dst += zoomed src (dst and src differ); row: w floats of scratch. */
void rt_plane_zoom_add(float *restrict dst, const float *restrict src, int64_t h, int64_t w,
                       const int32_t *ay, const float *fy, const int32_t *ax, const float *fx,
                       float *restrict row);

RT_INLINE float rt_clip01(float v) {
    return v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
}
/* Multiples of 1/255, from below as numpy's cast does; the nudge keeps whole numbers whole in spite of
 * rounding. */
RT_INLINE int rt_to_byte(float v) {
    return (int)(rt_clip01(v) * 255.0f + 0x1p-10f);
}

#endif
