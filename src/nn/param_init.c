/*
 * param_init.c - first values of parameters.
 *
 * Every draw is a pure function of (seed, name of the parameter, element): a network keeps its values when
 * layers are added to another part of it, two heads differ because their names do, and the order of
 * declaration does not matter.
 *
 *     TORCH    U(-a, a), a = 1 / sqrt(fan_in): what nn.Linear and nn.Conv2d do, weights and biases alike
 *              (kaiming_uniform with a = sqrt 5)
 *     HE       N(0, 2 / fan), He et al. 2015
 *     GAIN1    N(0, 1 / fan_in)
 *     GLOROT   U(-a, a), a = sqrt(6 / (fan_in + fan_out))
 */
#include "base/rng.h"
#include "nn/nn_int.h"
#include <math.h>
#include <string.h>

/* FNV-1a, 64 bits: names are few and not hostile, and the value is part of reproducibility. */
static uint64_t name_hash(const char *s) {
    uint64_t h = 14695981039346656037ULL;
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 1099511628211ULL;
    return h;
}

static void fill(float *w, int64_t n, float v) {
    for (int64_t i = 0; i < n; i++)
        w[i] = v;
}

static void uniform(float *w, int64_t n, rt_rng r, double a) {
    for (int64_t i = 0; i < n; i++)
        w[i] = (float)(a * (2 * rt_rng_uniform(r, (uint64_t)i) - 1));
}

static void normal(float *w, int64_t n, rt_rng r, double mean, double std) {
    for (int64_t i = 0; i < n; i++)
        w[i] = (float)(mean + std * rt_rng_normal(r, (uint64_t)i));
}

static void sign(float *w, int64_t n, rt_rng r, double p_plus) {
    for (int64_t i = 0; i < n; i++)
        w[i] = rt_rng_uniform(r, (uint64_t)i) < p_plus ? 1.0f : -1.0f;
}

static void init_one(const rt_param *p, float *w, uint64_t seed) {
    rt_rng r = rt_rng_make(seed, RT_RNG_INIT, name_hash(p->name), 0);
    double in = (double)RT_MAX(p->fan_in, 1), out = (double)RT_MAX(p->fan_out, 1);
    int64_t n = p->count;
    switch (p->init) {
    case RT_INIT_ZERO:
        fill(w, n, 0);
        break;
    case RT_INIT_ONE:
        fill(w, n, 1);
        break;
    case RT_INIT_DEFAULT:
    case RT_INIT_TORCH:
        uniform(w, n, r, 1 / sqrt(in));
        break;
    case RT_INIT_HE_FAN_OUT:
        normal(w, n, r, 0, sqrt(2 / out));
        break;
    case RT_INIT_HE_FAN_IN:
        normal(w, n, r, 0, sqrt(2 / in));
        break;
    case RT_INIT_KAIMING_GAIN1:
        normal(w, n, r, 0, 1 / sqrt(in));
        break;
    case RT_INIT_GLOROT:
        uniform(w, n, r, sqrt(6 / (in + out)));
        break;
    case RT_INIT_NORMAL_AROUND_ONE:
        normal(w, n, r, 1, p->init_scale);
        break;
    case RT_INIT_RANDOM_SIGN:
        sign(w, n, r, p->init_scale > 0 ? p->init_scale : 0.5);
        break;
    }
}

void rt_params_init(const rt_params *p, float *block, uint64_t seed) {
    memset(block, 0, (size_t)rt_params_floats(p) * sizeof *block);
    for (int i = 0; i < rt_params_count(p); i++) {
        const rt_param *line = rt_params_get(p, i);
        init_one(line, block + line->offset, seed);
    }
}
