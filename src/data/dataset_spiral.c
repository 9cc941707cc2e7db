/*
 * dataset_spiral.c - the toy problem of Malinin et al. 2020: intertwined noisy arms in the plane.
 *
 *     u ~ U(0,1), t = 6 pi sqrt(u), phi = 2 pi k / arms
 *     x = -cos(t + phi) t^2 + noise t^1.5 N(0,1)        y = sin(t + phi) t^2 + noise t^1.5 N(0,1)
 *
 * n points per arm in the training part and as many in the test part, from separate streams; arms take turns,
 * so any prefix is balanced. The paper does not state the noise; 0.4 gives its error rates (the Bayes error
 * is then 11.9 %). Coordinates reach +-400 and are not scaled here.
 */
#include "data/data_int.h"

#include "base/rng.h"
#include "base/size.h"

#include <math.h>

static const double spiral_pi = 3.14159265358979323846;

static rt_status spiral_part(rt_dataset *d, rt_part *out, int64_t n, int64_t arms, double noise,
                             uint64_t seed, uint64_t stream) {
    int64_t rows = n * arms;
    float *x;
    int32_t *label;
    RT_TRY(rt_dataset_points(d, rows, &x, &label));
    for (int64_t k = 0; k < arms; k++) {
        rt_rng r = rt_rng_make(seed, RT_RNG_DATA, stream, (uint64_t)k);
        double phi = 2 * spiral_pi * (double)k / (double)arms;
        for (int64_t i = 0; i < n; i++) {
            uint64_t draw = 3 * (uint64_t)i;
            double t = 6 * spiral_pi * sqrt(rt_rng_uniform(r, draw)), spread = noise * t * sqrt(t);
            int64_t row = i * arms + k;
            x[2 * row] = (float)(-cos(t + phi) * t * t + spread * rt_rng_normal(r, draw + 1));
            x[2 * row + 1] = (float)(sin(t + phi) * t * t + spread * rt_rng_normal(r, draw + 2));
            label[row] = (int32_t)k;
        }
    }
    *out = (rt_part){.n = rows, .f32 = x, .label = label};
    return RT_OK;
}

rt_status rt_load_spiral(rt_dataset *d, const rt_spec *s, rt_data_options o) {
    static const char *const keys[] = {"n", "noise", "arms", "seed"};
    int64_t n = 1000, arms = 3;
    double noise = 0.4;
    uint64_t seed = o.seed;
    RT_TRY(rt_spec_check(s, 0, 0, keys, RT_COUNT(keys)));
    RT_TRY(rt_spec_get_i64(s, "n", 1, 10000000, &n));
    RT_TRY(rt_spec_get_i64(s, "arms", 1, 100, &arms));
    RT_TRY(rt_spec_get_f64(s, "noise", 0, 1000, &noise));
    RT_TRY(rt_spec_get_u64(s, "seed", &seed));
    d->ordered = true;
    d->row = rt_shape1(2);
    d->classes = arms;
    if (!o.test_only)
        RT_TRY(spiral_part(d, &d->train, n, arms, noise, seed, 0));
    return spiral_part(d, &d->test, n, arms, noise, seed, 1);
}
