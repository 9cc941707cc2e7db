/*
 * corrupt_frost.c - frost: a x + b ice.
 *
 * The benchmark lays photographs of frozen windows over the images. Here the ice is drawn: a square texture,
 * periodic in both directions so that an image may be cut from it anywhere. It is made once per seed, of
 *
 *     grains     a jittered grid of points; a pixel belongs to the nearest one (Voronoi cells, warped by
 *                noise), and the borders of grains, where the nearest two are equally far, are bright
 *     needles    in each grain a stem through its point and barbs at 60 degrees to it, as ice grows
 *     rime       ridged noise of four octaves: 1 - |2 n - 1|, sharp where the noise crosses its middle
 */
#include "data/corrupt_int.h"

#include <math.h>

enum { SIZE = 256, GRID = 8, CELL = SIZE / GRID, OCTAVES = 4, CHANNELS = 3 };

typedef struct frost {
    float ice[CHANNELS][SIZE * SIZE];
} frost;

typedef struct grain {
    double x, y, cosine, sine, light;
} grain;

/* Noise in [0, 1) on a lattice of `side` points around the torus, interpolated smoothly. */
static double lattice(rt_rng r, uint64_t use, int64_t side, double x, double y) {
    const double scale = (double)side / SIZE;
    const double px = x * scale, py = y * scale, fx = px - floor(px), fy = py - floor(py);
    const int64_t x0 = (int64_t)floor(px), y0 = (int64_t)floor(py);
    const double sx = fx * fx * (3 - 2 * fx), sy = fy * fy * (3 - 2 * fy);
    double corner[2][2];
    for (int64_t j = 0; j < 2; j++)
        for (int64_t i = 0; i < 2; i++) {
            const int64_t u = ((x0 + i) % side + side) % side, v = ((y0 + j) % side + side) % side;
            corner[j][i] = rt_rng_uniform(r, (use << 32) + (uint64_t)(v * side + u));
        }
    const double top = corner[0][0] + sx * (corner[0][1] - corner[0][0]);
    const double bottom = corner[1][0] + sx * (corner[1][1] - corner[1][0]);
    return top + sy * (bottom - top);
}

static double rime(rt_rng r, double x, double y) {
    double sum = 0, weight = 0.5;
    for (uint64_t k = 0; k < OCTAVES; k++, weight *= 0.5) {
        const double n = lattice(r, 10 + k, (int64_t)16 << k, x, y);
        sum += weight * (1 - fabs(2 * n - 1));
    }
    return sum / (1 - 2 * weight);
}

/* Stem and barbs at (u, v) of a grain: u along the stem. */
static double needles(double u, double v) {
    const double stem = exp(-v * v / 1.5);
    const double phase = (u - 0.577 * fabs(v)) / 5.0, saw = 1 - fabs(2 * (phase - floor(phase)) - 1);
    const double reach = exp(-fabs(v) / 11.0);
    return RT_MAX(stem, saw * saw * reach);
}

static double wrap(double d) {
    return d - SIZE * floor(d / SIZE + 0.5);
}

static double ice_at(rt_rng r, const grain grains[GRID][GRID], double x, double y) {
    const double wx = x + 10 * (lattice(r, 1, 16, x, y) - 0.5), wy = y + 10 * (lattice(r, 2, 16, x, y) - 0.5);
    const int64_t cx = (int64_t)floor(wx / CELL), cy = (int64_t)floor(wy / CELL);
    double first = 1e9, second = 1e9, u = 0, v = 0, light = 0;
    for (int64_t j = cy - 1; j <= cy + 1; j++)
        for (int64_t i = cx - 1; i <= cx + 1; i++) {
            const grain *g = &grains[(j + GRID) % GRID][(i + GRID) % GRID];
            const double dx = wrap(wx - g->x), dy = wrap(wy - g->y), far = sqrt(dx * dx + dy * dy);
            if (far >= first) {
                second = RT_MIN(second, far);
                continue;
            }
            second = first;
            first = far;
            u = dx * g->cosine + dy * g->sine;
            v = dy * g->cosine - dx * g->sine;
            light = g->light;
        }
    const double border = exp(-(second - first) / 1.5), crust = rime(r, x, y);
    const double value = 0.05 + 0.65 * light * needles(u, v) + 0.9 * crust * crust * crust + 0.2 * border;
    return RT_MIN(value, 1.0);
}

rt_status rt_corrupt_prepare_frost(rt_distortion *d) {
    static const double tint[CHANNELS] = {0.88, 0.95, 1.0};
    const rt_rng r = rt_rng_make(d->seed, RT_RNG_CORRUPT, UINT64_MAX, 0);
    grain grains[GRID][GRID];
    RT_TRY(rt_distort_state(d, sizeof(frost), 0));
    frost *s = d->state;
    for (int64_t j = 0; j < GRID; j++)
        for (int64_t i = 0; i < GRID; i++) {
            const uint64_t at = (uint64_t)(4 * (j * GRID + i));
            const double angle = 3.14159265358979 * rt_rng_uniform(r, at + 2);
            grains[j][i] = (grain){
                .x = CELL * ((double)i + rt_rng_uniform(r, at)),
                .y = CELL * ((double)j + rt_rng_uniform(r, at + 1)),
                .cosine = cos(angle),
                .sine = sin(angle),
                .light = 0.5 + rt_rng_uniform(r, at + 3),
            };
        }
    for (int64_t y = 0; y < SIZE; y++)
        for (int64_t x = 0; x < SIZE; x++) {
            const double value = ice_at(r, (const grain(*)[GRID])grains, (double)x, (double)y);
            for (int c = 0; c < CHANNELS; c++) /* the tint fades where ice is thick */
                s->ice[c][y * SIZE + x] = (float)(value * (tint[c] + (1 - tint[c]) * value));
        }
    return RT_OK;
}

rt_status rt_corrupt_run_frost(const rt_distortion *d, const rt_canvas *v) {
    const frost *s = d->state;
    const float a = (float)d->p[0], b = (float)d->p[1];
    const int64_t left = (int64_t)rt_draw_one(v->rng, 0, 0, SIZE),
                  top = (int64_t)rt_draw_one(v->rng, 1, 0, SIZE);
    for (int64_t c = 0; c < v->c; c++)
        for (int64_t y = 0; y < v->h; y++) {
            const float *ice = s->ice[v->c == 1 ? 1 : c] + (top + y) % SIZE * SIZE;
            float *x = v->x + (c * v->h + y) * v->w;
            for (int64_t i = 0; i < v->w; i++)
                x[i] = a * x[i] + b * ice[(left + i) % SIZE];
        }
    return RT_OK;
}
