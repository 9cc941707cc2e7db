/*
 * corrupt_frost.c - frost: a x + b ice.
 *
 * The benchmark lays photographs of frozen windows over the images, one pixel in five of them. Such photographs can be
 * given as a directory (rt_distortion_photographs). Otherwise the ice is drawn: a square texture, periodic in both
 * directions so that an image may be cut from it anywhere. It is made once per seed, of
 *
 *     grains     a jittered grid of points; a pixel belongs to the nearest one (Voronoi cells, warped by
 *                noise), and the borders of grains, where the nearest two are equally far, are bright
 *     needles    in each grain a stem through its point and barbs at 60 degrees to it, as ice grows
 *     rime       ridged noise of four octaves: 1 - |2 n - 1|, sharp where the noise crosses its middle
 *     thickness  smooth noise: some parts of a window are white, others nearly clear
 *
 * Detail (the first three, less their mean over a window of WINDOW pixels) and thickness are then mixed so that crops
 * of WINDOW x WINDOW pixels have the brightness, the contrast within a crop and that between crops of the photographs.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "distort/corrupt_int.h"

#include <math.h>

enum { SIZE = 256, GRID = 8, CELL = SIZE / GRID, OCTAVES = 4, CHANNELS = 3, PLANE = SIZE * SIZE };
enum { WINDOW = 32, THICKNESS = 5, ROUNDS = 8, PHOTOS_MAX = 64, PHOTO_STEP = 5 };
/* Of the published photographs, in bytes. */
static const double MEAN = 160, WITHIN = 23, BETWEEN = 40;

typedef struct photo {
    int64_t h, w, at; /* where its planes begin */
} photo;

/* Drawn ice (no photographs), or photographs: colour planes behind each other. */
typedef struct frost {
    int64_t n;
    photo photo[PHOTOS_MAX];
    float ice[];
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

/* ---- the statistics of photographs ---- */

typedef struct moments {
    double mean, within, between;
} moments;

/* Over crops that begin at every fourth pixel of the torus. */
static moments measure(const float *x) {
    double n = 0, all = 0, squares = 0, within = 0;
    for (int64_t top = 0; top < SIZE; top += 4)
        for (int64_t left = 0; left < SIZE; left += 4) {
            double sum = 0, square = 0;
            for (int64_t y = top; y < top + WINDOW; y += 2)
                for (int64_t i = left; i < left + WINDOW; i += 2) {
                    const double v = (double)x[y % SIZE * SIZE + i % SIZE];
                    sum += v;
                    square += v * v;
                }
            const double count = WINDOW * WINDOW / 4.0, mean = sum / count;
            n++;
            all += mean;
            squares += mean * mean;
            within += sqrt(RT_MAX(0.0, square / count - mean * mean));
        }
    return (moments){
        .mean = all / n, .within = within / n, .between = sqrt(RT_MAX(0.0, squares / n - all / n * all / n))};
}

/* Means over WINDOW numbers around each, along one axis of the torus: steps of `along`, lines of `across`. */
static void smooth(double *dst, const double *src, int64_t along, int64_t across) {
    for (int64_t line = 0; line < SIZE; line++) {
        double sum = 0;
        for (int64_t i = 0; i < WINDOW; i++)
            sum += src[line * across + i * along];
        for (int64_t i = 0; i < SIZE; i++) {
            dst[line * across + (i + WINDOW / 2) % SIZE * along] = sum / WINDOW;
            sum += src[line * across + (i + WINDOW) % SIZE * along] - src[line * across + i * along];
        }
    }
}

/* x = offset + gain_detail detail + gain_thickness thickness, clipped, its moments brought to those of photographs. */
static void mix(float *x, const double *detail, const double *thickness) {
    double offset = MEAN / 255, fine = 0.5, broad = 0.5;
    for (int round = 0; round <= ROUNDS; round++) {
        for (int64_t i = 0; i < PLANE; i++)
            x[i] = (float)RT_MIN(1.0, RT_MAX(0.0, offset + fine * detail[i] + broad * thickness[i]));
        const moments m = measure(x);
        offset += MEAN / 255 - m.mean;
        fine *= WITHIN / 255 / RT_MAX(m.within, 1e-3);
        broad *= BETWEEN / 255 / RT_MAX(m.between, 1e-3);
    }
}

static void draw(rt_rng r, const grain grains[GRID][GRID], float *ice, double *work) {
    static const double tint[CHANNELS] = {0.97, 1.0, 1.03};
    double *detail = work, *mean = work + PLANE, *thickness = work + 2 * (int64_t)PLANE;
    for (int64_t i = 0; i < PLANE; i++)
        detail[i] = ice_at(r, grains, (double)(i % SIZE), (double)(i / SIZE));
    smooth(thickness, detail, 1, SIZE);
    smooth(mean, thickness, SIZE, 1);
    for (int64_t i = 0; i < PLANE; i++) {
        detail[i] -= mean[i];
        thickness[i] = lattice(r, 3, THICKNESS, (double)(i % SIZE), (double)(i / SIZE)) - 0.5;
    }
    float *middle = ice + PLANE; /* of a tint of 1 */
    mix(middle, detail, thickness);
    for (int64_t i = 0; i < PLANE; i++)
        for (int c = 0; c < CHANNELS; c++)
            ice[c * PLANE + i] = (float)RT_MIN(1.0, (double)middle[i] * tint[c]);
}

rt_status rt_corrupt_prepare_frost(rt_distortion *d) {
    const rt_rng r = rt_rng_make(d->seed, RT_RNG_CORRUPT, UINT64_MAX, 0);
    grain grains[GRID][GRID];
    double *work = NULL;
    RT_TRY(rt_distort_state(d, sizeof(frost), CHANNELS * PLANE));
    RT_TRY(rt_calloc(&work, 3 * (size_t)PLANE, sizeof *work));
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
    frost *s = d->state;
    draw(r, (const grain(*)[GRID])grains, s->ice, work);
    rt_free(work);
    return RT_OK;
}

/* ---- photographs ---- */

/* One pixel in PHOTO_STEP, the middle one: what a bilinear reduction to a fifth comes to. */
static rt_status take_photo(rt_distortion *d, const char *path) {
    frost *s = d->state;
    rt_picture p = {0};
    rt_status st = RT_OK;
    RT_TRY_GOTO(rt_picture_read(&p, path));
    const photo f = {
        .h = p.h / PHOTO_STEP,
        .w = p.w / PHOTO_STEP,
        .at = s->n > 0 ? s->photo[s->n - 1].at + CHANNELS * s->photo[s->n - 1].h * s->photo[s->n - 1].w : 0};
    if (f.h < d->h || f.w < d->w)
        RT_FAIL_GOTO(RT_E_INPUT,
                     "%s: %lld x %lld pixels; wanted %d times those of the images, %lld x %lld, or more",
                     path, (long long)p.w, (long long)p.h, PHOTO_STEP, (long long)d->w, (long long)d->h);
    const int64_t size = CHANNELS * f.h * f.w;
    RT_TRY_GOTO(rt_realloc(&d->state, sizeof *s + (size_t)f.at * sizeof(float),
                           sizeof *s + (size_t)(f.at + size) * sizeof(float)));
    s = d->state;
    for (int64_t i = 0; i < size; i++) {
        const int64_t c = p.c == 1 ? 0 : i / (f.h * f.w), y = i / f.w % f.h * PHOTO_STEP + PHOTO_STEP / 2,
                      x = i % f.w * PHOTO_STEP + PHOTO_STEP / 2;
        s->ice[f.at + i] = rt_pixel_table()[p.data[(c * p.h + y) * p.w + x]];
    }
    s->photo[s->n++] = f;
done:
    rt_free(p.data);
    return st;
}

rt_status rt_distortion_photographs(rt_distortion *d, const char *dir) {
    char **names = NULL, *path = NULL;
    int64_t n = 0;
    rt_status st = RT_OK;
    if (d->ops.run != rt_corrupt_run_frost)
        return RT_OK;
    rt_free(d->state);
    d->state = NULL;
    RT_TRY(rt_distort_state(d, sizeof(frost), 0));
    RT_TRY_GOTO(rt_dir_list(dir, &names, &n));
    for (int64_t i = 0; i < n; i++) {
        if (!rt_picture_is_file(names[i]) || ((frost *)d->state)->n == PHOTOS_MAX)
            continue;
        RT_TRY_GOTO(rt_path_join(&path, dir, names[i]));
        RT_TRY_GOTO(take_photo(d, path));
        rt_free(path);
        path = NULL;
    }
    if (((frost *)d->state)->n == 0)
        RT_FAIL_GOTO(RT_E_INPUT, "--frost: %s has no pictures (.png, .jpg)", dir);
done:
    rt_free(path);
    rt_names_free(names, n);
    return st;
}

/* ---- an image ---- */

rt_status rt_corrupt_run_frost(const rt_distortion *d, const rt_canvas *v) {
    const frost *s = d->state;
    const float a = (float)d->p[0], b = (float)d->p[1];
    photo f = {.h = SIZE, .w = SIZE};
    int64_t rows = SIZE, columns = SIZE; /* that a crop may begin at: all, for the drawn ice has no edge */
    if (s->n > 0) {
        f = s->photo[RT_MIN(s->n - 1, (int64_t)rt_draw_one(v->rng, 2, 0, (double)s->n))];
        rows = f.h - v->h + 1;
        columns = f.w - v->w + 1;
    }
    const int64_t left = RT_MIN(columns - 1, (int64_t)rt_draw_one(v->rng, 0, 0, (double)columns)),
                  top = RT_MIN(rows - 1, (int64_t)rt_draw_one(v->rng, 1, 0, (double)rows));
    for (int64_t c = 0; c < v->c; c++)
        for (int64_t y = 0; y < v->h; y++) {
            const float *ice = s->ice + f.at + ((v->c == 1 ? 1 : c) * f.h + (top + y) % f.h) * f.w;
            float *x = v->x + (c * v->h + y) * v->w;
            for (int64_t i = 0; i < v->w; i++)
                x[i] = a * x[i] + b * ice[(left + i) % f.w];
        }
    return RT_OK;
}
