/*
 * corrupt_negative.c - towards the negative: x + c (1 - 2 x)
 */
#include "distort/corrupt_int.h"

rt_status rt_corrupt_prepare_negative(rt_distortion *d) {
    d->scratch = 0;
    return RT_OK;
}

rt_status rt_corrupt_run_negative(const rt_distortion *d, const rt_canvas *v) {
    const float c = (float)d->p[0];
    for (int64_t i = 0; i < v->c * v->h * v->w; i++)
        v->x[i] += c * (1 - 2 * v->x[i]);
    return RT_OK;
}
