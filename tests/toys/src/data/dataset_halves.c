/*
 * dataset_halves.c - random points of the unit square; the class says which half they lie in.
 */
#include "base/rng.h"
#include "data/data_int.h"

static rt_status halves_part(rt_dataset *d, rt_part *out, int64_t n, rt_rng r) {
    float *x;
    int32_t *label;
    RT_TRY(rt_dataset_points(d, n, &x, &label));
    for (int64_t i = 0; i < 2 * n; i++)
        x[i] = (float)rt_rng_uniform(r, (uint64_t)i);
    for (int64_t i = 0; i < n; i++)
        label[i] = x[2 * i] > 0.5f;
    *out = (rt_part){.n = n, .f32 = x, .label = label};
    return RT_OK;
}

rt_status rt_load_halves(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    static const char *const keys[] = {"n"};
    int64_t n = 100;
    RT_TRY(rt_spec_check(s, 0, 0, keys, RT_COUNT(keys)));
    RT_TRY(rt_spec_get_i64(s, "n", 1, 10000000, &n));
    d->row = rt_shape1(2);
    d->classes = 2;
    if (!o.test_only)
        RT_TRY(halves_part(d, &d->train, n, rt_rng_make(o.seed, RT_RNG_DATA, 0, 0)));
    return halves_part(d, &d->test, n, rt_rng_make(o.seed, RT_RNG_DATA, 1, 0));
}
