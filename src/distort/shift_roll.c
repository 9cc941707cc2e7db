/*
 * shift_roll.c - cyclic roll along the width: x'(y, i) = x(y, i - k mod w), as numpy.roll.
 */
#include "distort/corrupt_int.h"

#include <math.h>
#include <string.h>

rt_status rt_shift_prepare_roll(rt_distortion *d) {
    RT_FAIL_IF(d->amount != rint(d->amount), RT_E_USAGE, "roll by %g pixels: wanted a whole number",
               d->amount);
    d->scratch = d->w;
    return RT_OK;
}

rt_status rt_shift_run_roll(const rt_distortion *d, const rt_canvas *v) {
    const int64_t w = v->w, by = (((int64_t)d->amount % w) + w) % w;
    for (int64_t r = 0; r < v->c * v->h; r++) {
        float *row = v->x + r * w;
        memcpy(v->scratch, row, (size_t)w * sizeof *row);
        memcpy(row + by, v->scratch, (size_t)(w - by) * sizeof *row);
        memcpy(row, v->scratch + w - by, (size_t)by * sizeof *row);
    }
    return RT_OK;
}
