/*
 * shift_fade.c - x (1 - amount / 100)
 */
#include "distort/corrupt_int.h"

rt_status rt_shift_prepare_fade(rt_distortion *d) {
    d->scratch = 0;
    return RT_OK;
}

rt_status rt_shift_run_fade(const rt_distortion *d, const rt_canvas *v) {
    for (int64_t i = 0; i < v->c * v->h * v->w; i++)
        v->x[i] *= 1 - (float)d->amount / 100;
    return RT_OK;
}
