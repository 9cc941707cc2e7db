/*
 * corrupt_noise.c - noise: Gaussian, shot, impulse, speckle.
 *
 * Shot noise draws from Poisson(c x), where x takes the 256 values of a byte (other values are rounded to
 * them). So the distributions are tabulated once: for each of the 256 the cumulated probabilities of a window
 * of counts around the mean (it leaves out less than 2^-33), and a guide that says, for each 64th of [0, 1),
 * where in the window to begin. A draw is one uniform number, one look into the guide and a step or two.
 */
#include "distort/corrupt_int.h"

#include <math.h>

rt_status rt_corrupt_prepare_gaussian_noise(rt_distortion *d) {
    d->scratch = d->c * d->h * d->w;
    return RT_OK;
}

rt_status rt_corrupt_run_gaussian_noise(const rt_distortion *d, const rt_canvas *v) {
    const int64_t n = v->c * v->h * v->w;
    const float c = (float)d->p[0];
    float *z = v->scratch;
    rt_draw_normal(v->rng, 0, z, n);
    for (int64_t i = 0; i < n; i++)
        v->x[i] += c * z[i];
    return RT_OK;
}

rt_status rt_corrupt_prepare_speckle_noise(rt_distortion *d) {
    d->scratch = d->c * d->h * d->w;
    return RT_OK;
}

rt_status rt_corrupt_run_speckle_noise(const rt_distortion *d, const rt_canvas *v) {
    const int64_t n = v->c * v->h * v->w;
    const float c = (float)d->p[0];
    float *z = v->scratch;
    rt_draw_normal(v->rng, 0, z, n);
    for (int64_t i = 0; i < n; i++)
        v->x[i] += v->x[i] * (c * z[i]);
    return RT_OK;
}

rt_status rt_corrupt_prepare_impulse_noise(rt_distortion *d) {
    d->scratch = d->c * d->h * d->w;
    return RT_OK;
}

/* Of a word, 24 bits choose whether, and another one which. */
rt_status rt_corrupt_run_impulse_noise(const rt_distortion *d, const rt_canvas *v) {
    const int64_t n = v->c * v->h * v->w;
    const uint32_t below = (uint32_t)(d->p[0] * 0x1p24);
    uint32_t *word = (uint32_t *)v->scratch;
    rt_draw_bits(v->rng, 0, word, n);
    for (int64_t i = 0; i < n; i++)
        v->x[i] = word[i] >> 8 < below ? (float)(word[i] & 1) : v->x[i];
    return RT_OK;
}

/* ---- shot noise ---- */

enum { LEVELS = 256, GUIDE = 64 };
typedef struct shot {
    float scale; /* 1 / c */
    struct {
        int32_t first;         /* count of the window's first entry */
        int32_t at;            /* where its cumulated probabilities are */
        uint16_t guide[GUIDE]; /* the first entry that may be the answer */
    } level[LEVELS];
    float cumulated[];
} shot;

static int64_t shot_half_width(double mean) {
    return (int64_t)(7.0 * sqrt(mean)) + 12;
}

/* Cumulated probabilities of counts first .. first + n - 1, by the recurrence p(k + 1) = p(k) mean / (k + 1)
 * from the most likely count on both sides. What is left out of the window belongs to its last entry. */
static void shot_level(float *cumulated, double *p, int64_t first, int64_t n, double mean) {
    const int64_t mode = RT_MIN(RT_MAX((int64_t)mean - first, 0), n - 1);
    double sum = 0, run = 0;
    p[mode] = 1;
    for (int64_t k = mode + 1; k < n; k++)
        p[k] = p[k - 1] * mean / (double)(first + k);
    for (int64_t k = mode - 1; k >= 0; k--)
        p[k] = p[k + 1] * (double)(first + k + 1) / mean;
    for (int64_t k = 0; k < n; k++)
        sum += p[k];
    for (int64_t k = 0; k < n; k++) {
        run += p[k] / sum;
        cumulated[k] = (float)run;
    }
    cumulated[n - 1] = 2.0f; /* ends every search */
}

rt_status rt_corrupt_prepare_shot_noise(rt_distortion *d) {
    const double c = d->p[0];
    const int64_t widest = 2 * shot_half_width(c) + 1;
    double p[2048];
    int64_t at = 0;
    d->scratch = d->c * d->h * d->w;
    RT_ASSERT(widest <= RT_COUNT(p));
    RT_TRY(rt_distort_state(d, sizeof(shot), LEVELS * widest));
    shot *s = d->state;
    s->scale = (float)(1.0 / c);
    for (int k = 0; k < LEVELS; k++) {
        const double mean = c * k / 255.0;
        const int64_t half = shot_half_width(mean), first = RT_MAX((int64_t)mean - half, 0);
        const int64_t n = k == 0 ? 1 : (int64_t)mean + half - first + 1;
        float *cumulated = s->cumulated + at;
        s->level[k].first = (int32_t)first;
        s->level[k].at = (int32_t)at;
        shot_level(cumulated, p, first, n, mean);
        for (int64_t g = 0, entry = 0; g < GUIDE; g++) {
            while (cumulated[entry] <= (float)g / GUIDE)
                entry++;
            s->level[k].guide[g] = (uint16_t)entry;
        }
        at += n;
    }
    return RT_OK;
}

rt_status rt_corrupt_run_shot_noise(const rt_distortion *d, const rt_canvas *v) {
    const int64_t n = v->c * v->h * v->w;
    const shot *s = d->state;
    float *u = v->scratch;
    rt_draw_uniform(v->rng, 0, u, n);
    for (int64_t i = 0; i < n; i++) {
        const int level = (int)(v->x[i] * 255.0f + 0.5f);
        const float *cumulated = s->cumulated + s->level[level].at;
        int32_t entry = s->level[level].guide[(int)(u[i] * GUIDE)];
        while (cumulated[entry] <= u[i])
            entry++;
        v->x[i] = (float)(s->level[level].first + entry) * s->scale;
    }
    return RT_OK;
}
