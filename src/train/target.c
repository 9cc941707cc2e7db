/*
 * target.c - the scale in which networks see the target of a regression: u = t(y) by a transform (eval/warp.c), then
 * (u - mean) / std, all by the training rows alone.
 *
 * A squared error of prices over seven orders of magnitude is that of the dearest ten houses; in their logarithms every
 * house counts. So by default targets with heavy tails are transformed (rt_warp_choose); a student sees the target as
 * its teacher does.
 */
#include "base/alloc.h"
#include "train/train_int.h"
#include <math.h>
#include <string.h>

enum { UNIT_MAX = 60 }; /* bytes */

/* Mean and deviation of u, as rt_subset_moments takes them: in two passes. */
static void take_moments(rt_target *t, const double *y, int64_t n) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++)
        mean += rt_warp_apply(&t->warp, y[i]) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        const double d = rt_warp_apply(&t->warp, y[i]) - mean;
        square += d * d / (double)n;
    }
    t->mean = mean;
    t->std = square > 0 ? sqrt(square) : 1;
}

rt_status rt_target_fit(rt_target *t, const rt_subset *rows, const char *transform) {
    rt_warp_kind kind = RT_WARP_NONE;
    const bool choose = !transform || strcmp(transform, "auto") == 0;
    double *y;
    RT_TRY(rt_calloc(&y, (size_t)rows->n + 1, sizeof *y));
    for (int64_t i = 0; i < rows->n; i++)
        y[i] = rt_subset_target(rows, i);
    if (choose)
        kind = rt_warp_choose(y, rows->n);
    else if (!rt_warp_find(transform, &kind))
        RT_ASSERT(!"params.def and warp.c name the same transforms");
    const rt_status st = rt_warp_fit(&t->warp, kind, y, rows->n);
    if (st == RT_OK && kind != RT_WARP_NONE)
        take_moments(t, y, rows->n);
    rt_free(y);
    return st;
}

rt_status rt_target_follow(rt_target *t, const rt_model *teacher, const char *transform) {
    const char *theirs = rt_warp_name(rt_model_target(teacher)->warp.kind);
    RT_FAIL_IF(transform && strcmp(transform, "auto") != 0 && strcmp(transform, theirs) != 0, RT_E_USAGE,
               "--target-transform %s: the teacher sees the target by %s, and its students do, too",
               transform, theirs);
    *t = *rt_model_target(teacher);
    return RT_OK;
}

rt_status rt_target_name_unit(rt_target *t, const char *unit) {
    RT_FAIL_IF(unit && (*unit == 0 || strlen(unit) > UNIT_MAX), RT_E_USAGE,
               "--unit: %zu bytes, wanted 1 to %d, such as MPa", strlen(unit), UNIT_MAX);
    RT_FAIL_IF(unit && t->unit && strcmp(unit, t->unit) != 0, RT_E_USAGE,
               "--unit %s: the teacher answers in %.60s, and its students do, too", unit, t->unit);
    t->unit = unit ? unit : t->unit;
    return RT_OK;
}

void rt_train_tell_target(const rt_train_hooks *hooks, int64_t epochs, const rt_target *t) {
    static const char *const how[RT_WARP_KINDS] = {
        [RT_WARP_LOG] = "target  learned by its logarithm, answered in its own units",
        [RT_WARP_QUANTILE] = "target  learned by its quantiles, answered in its own units"};
    if (how[t->warp.kind])
        rt_train_tell(hooks, epochs, how[t->warp.kind]);
}
