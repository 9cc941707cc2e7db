/*
 * dataset_ring.c - inputs around the spirals: the auxiliary data of Malinin et al. 2020, Figure 2b.
 *
 *     x = radius e + sigma N(0, I_2),   e a random direction
 *
 * They have no meaning of their own, so all of them are of one class. The paper shows the ring and gives no numbers;
 * radius 800 and sigma 100 look like its figure.
 */
#include "base/rng.h"
#include "data/data_int.h"
#include <math.h>

static rt_status ring_part(rt_dataset *d, rt_part *out, int64_t n, double radius, double sigma, rt_rng r) {
    float *x;
    int32_t *label;
    RT_TRY(rt_dataset_points(d, n, &x, &label));
    for (int64_t i = 0; i < n; i++) {
        const uint64_t draw = 3 * (uint64_t)i;
        const double angle = 2 * 3.14159265358979323846 * rt_rng_uniform(r, draw);
        x[2 * i] = (float)(radius * cos(angle) + sigma * rt_rng_normal(r, draw + 1));
        x[2 * i + 1] = (float)(radius * sin(angle) + sigma * rt_rng_normal(r, draw + 2));
    }
    *out = (rt_part){.n = n, .f32 = x, .label = label};
    return RT_OK;
}

rt_status rt_load_ring(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    static const char *const keys[] = {"n", "radius", "sigma", "seed"};
    int64_t n = 3000;
    double radius = 800, sigma = 100;
    uint64_t seed = o.seed;
    RT_TRY(rt_spec_check(s, 0, 0, keys, RT_COUNT(keys)));
    RT_TRY(rt_spec_get_i64(s, "n", 1, 10000000, &n));
    RT_TRY(rt_spec_get_f64(s, "radius", 0, 1e9, &radius));
    RT_TRY(rt_spec_get_f64(s, "sigma", 0, 1e9, &sigma));
    RT_TRY(rt_spec_get_u64(s, "seed", &seed));
    d->row = rt_shape1(2);
    d->classes = 1;
    if (!o.test_only)
        RT_TRY(ring_part(d, &d->train, n, radius, sigma, rt_rng_make(seed, RT_RNG_DATA, 0, 0)));
    return ring_part(d, &d->test, n, radius, sigma, rt_rng_make(seed, RT_RNG_DATA, 1, 0));
}
