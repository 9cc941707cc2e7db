/*
 * corrupt.c - distortions of images: the tables of corruptions and shifts, and running them.
 *
 *     bytes or floats -> floats in [0, 1] -> run, in place -> corruption: clip, x 255, truncate -> bytes
 *                                                          -> shift: floats as they are
 *
 * Draws are keyed by (seed, corruption and severity, row number), so rows may be done in any order and by any
 * thread, and two severities of a corruption are independent draws.
 */
#include "distort/corrupt_int.h"

#include "base/alloc.h"
#include "base/size.h"
#include "base/stop.h"

#include <math.h>
#include <string.h>

/* ---- tables ---- */

typedef struct corruption {
    rt_corruption info;
    rt_distort_ops ops;
    double p[RT_SEVERITIES][RT_CORRUPT_PARAMS];
} corruption;
#define RT_C(...)                                                                                            \
    { __VA_ARGS__ }
static const corruption corruptions[] = {
#define RT_CORRUPTION(name, benchmark, meaning, ...)                                                         \
    {{#name, meaning, benchmark}, {rt_corrupt_prepare_##name, rt_corrupt_run_##name}, {__VA_ARGS__}},
#include "distort/corruptions.def"
#undef RT_CORRUPTION
};
enum { CORRUPTIONS = sizeof corruptions / sizeof *corruptions };

typedef struct shift {
    rt_shift info;
    rt_distort_ops ops;
} shift;
static const shift shifts[] = {
#define RT_SHIFT(name, unit, first, last, step, meaning)                                                     \
    {{#name, unit, meaning}, {rt_shift_prepare_##name, rt_shift_run_##name}},
#include "distort/shifts.def"
#undef RT_SHIFT
};
enum { SHIFTS = sizeof shifts / sizeof *shifts };

int64_t rt_corruption_count(void) {
    return CORRUPTIONS;
}
const rt_corruption *rt_corruption_get(int64_t i) {
    return &corruptions[i].info;
}
int64_t rt_shift_count(void) {
    return SHIFTS;
}
const rt_shift *rt_shift_get(int64_t i) {
    return &shifts[i].info;
}

/* The place of a name, or an error that lists what there is. */
static rt_status find_name(int64_t *out, const char *what, const char *name, const char *const *names,
                           int64_t n) {
    *out = rt_str_find(name, names, n);
    if (*out < 0)
        RT_FAIL_UNKNOWN(RT_E_USAGE, name, names, n, "unknown %s", what);
    return RT_OK;
}

rt_status rt_corruption_find(const rt_corruption **out, const char *name) {
    const char *names[CORRUPTIONS];
    int64_t i = 0;
    for (; i < CORRUPTIONS; i++)
        names[i] = corruptions[i].info.name;
    RT_TRY(find_name(&i, "corruption", name, names, CORRUPTIONS));
    *out = &corruptions[i].info;
    return RT_OK;
}

rt_status rt_shift_find(const rt_shift **out, const char *name) {
    const char *names[SHIFTS];
    int64_t i = 0;
    for (; i < SHIFTS; i++)
        names[i] = shifts[i].info.name;
    RT_TRY(find_name(&i, "shift", name, names, SHIFTS));
    *out = &shifts[i].info;
    return RT_OK;
}

int64_t rt_shift_amounts(const rt_shift *s, rt_shape row, double *out) {
    const int64_t w = row.rank == 3 ? row.d[2] : 0;
    const int64_t range[SHIFTS][3] = {
#define RT_SHIFT(name, unit, first, last, step, meaning) {first, last, step},
#include "distort/shifts.def"
#undef RT_SHIFT
    };
    int64_t n = 0, at = 0;
    while (at < SHIFTS - 1 && &shifts[at].info != s)
        at++;
    if (w >= RT_IMAGE_MIN)
        for (int64_t v = range[at][0]; v <= range[at][1] && n < RT_SHIFT_AMOUNTS; v += range[at][2])
            out[n++] = (double)v;
    return n;
}

/* ---- preparing ---- */

rt_status rt_distort_state(rt_distortion *d, size_t head, int64_t n) {
    size_t bytes = 0;
    RT_FAIL_IF(n < 0 || !rt_size_mul((size_t)n, sizeof(float), &bytes) || !rt_size_add(bytes, head, &bytes),
               RT_E_USAGE, "images of %lld x %lld are too large to distort", (long long)d->w,
               (long long)d->h);
    return rt_calloc(&d->state, 1, bytes);
}

static rt_status distortion_new(rt_distortion **out, const char *name, rt_shape row) {
    rt_distortion *d = NULL;
    *out = NULL;
    RT_FAIL_IF(row.rank != 3 || (row.d[0] != 1 && row.d[0] != 3), RT_E_USAGE,
               "%s is for images, of 1 or 3 channels", name);
    RT_FAIL_IF(row.d[1] < RT_IMAGE_MIN || row.d[2] < RT_IMAGE_MIN, RT_E_USAGE,
               "%s: images of %lld x %lld, wanted at least %d x %d", name, (long long)row.d[2],
               (long long)row.d[1], RT_IMAGE_MIN, RT_IMAGE_MIN);
    RT_FAIL_IF(row.d[1] > rt_image_pixels_max / row.d[2], RT_E_USAGE, "%s: more than 64 million pixels",
               name);
    RT_TRY(rt_calloc(&d, 1, sizeof *d));
    d->c = row.d[0];
    d->h = row.d[1];
    d->w = row.d[2];
    *out = d;
    return RT_OK;
}

static rt_status distortion_prepare(rt_distortion **d) {
    rt_status st = (*d)->ops.prepare(*d);
    if (st != RT_OK)
        rt_distortion_destroy(d);
    return st;
}

rt_status rt_distortion_corrupt(rt_distortion **out, const rt_corruption *c, int severity, rt_shape row,
                                uint64_t seed) {
    int64_t i = 0;
    *out = NULL;
    while (i < CORRUPTIONS && &corruptions[i].info != c)
        i++;
    RT_FAIL_IF(i == CORRUPTIONS, RT_E_USAGE, "not a corruption of the table");
    RT_FAIL_IF(severity < 1 || severity > RT_SEVERITIES, RT_E_USAGE, "%s: severity %d, wanted 1 to %d",
               c->name, severity, RT_SEVERITIES);
    RT_TRY(distortion_new(out, c->name, row));
    rt_distortion *d = *out;
    d->ops = corruptions[i].ops;
    d->p = corruptions[i].p[severity - 1];
    d->seed = seed;
    d->stream = (uint64_t)i * 8 + (uint64_t)severity;
    return distortion_prepare(out);
}

rt_status rt_distortion_shift(rt_distortion **out, const rt_shift *s, double amount, rt_shape row) {
    int64_t i = 0;
    *out = NULL;
    while (i < SHIFTS && &shifts[i].info != s)
        i++;
    RT_FAIL_IF(i == SHIFTS, RT_E_USAGE, "not a shift of the table");
    RT_FAIL_IF(!(fabs(amount) <= 1e6), RT_E_USAGE, "%s by %g %s: wanted a million at most", s->name, amount,
               s->unit);
    RT_TRY(distortion_new(out, s->name, row));
    (*out)->ops = shifts[i].ops;
    (*out)->shift = true;
    (*out)->amount = amount;
    return distortion_prepare(out);
}

void rt_distortion_destroy(rt_distortion **d) {
    if (*d)
        rt_free((*d)->state);
    rt_free(*d);
    *d = NULL;
}

/* ---- running ---- */

size_t rt_distortion_scratch(const rt_distortion *d) {
    return (size_t)(d->c * d->h * d->w + d->scratch) * sizeof(float);
}

rt_status rt_distortion_run(const rt_distortion *d, int64_t row_number, void *scratch, const uint8_t *u8,
                            const float *f32, uint8_t *dst_u8, float *dst_f32) {
    RT_TRY(rt_stop_check("distorting", "images"));
    const int64_t n = d->c * d->h * d->w;
    const float half = d->shift ? 0.5f / 255.0f : 0.0f; /* a shift that must be bytes is rounded */
    float *x = scratch;
    if (u8)
        rt_pixels_to_f32(x, u8, n);
    else if (d->shift)
        memcpy(x, f32, (size_t)n * sizeof *x);
    else
        for (int64_t i = 0; i < n; i++)
            x[i] = rt_clip01(f32[i]);
    const rt_canvas v = {
        .c = d->c,
        .h = d->h,
        .w = d->w,
        .x = x,
        .rng = rt_rng_make(d->seed, RT_RNG_CORRUPT, d->stream, (uint64_t)row_number),
        .scratch = x + n,
    };
    RT_TRY(d->ops.run(d, &v));
    if (dst_u8)
        for (int64_t i = 0; i < n; i++)
            dst_u8[i] = (uint8_t)rt_to_byte(x[i] + half);
    if (dst_f32 && d->shift)
        memcpy(dst_f32, x, (size_t)n * sizeof *x);
    else if (dst_f32)
        for (int64_t i = 0; i < n; i++)
            dst_f32[i] = rt_pixel_table()[rt_to_byte(x[i])];
    return RT_OK;
}

/* ---- whole parts ---- */

enum { ROWS_PER_JOB = 64 };
typedef struct part_job {
    const rt_distortion *d;
    const rt_part *in;
    uint8_t *u8; /* one of the two */
    float *f32;
    int64_t elems;
    char *scratch; /* of each worker */
    size_t stride;
    rt_error *failed; /* of each job; code 0: none */
} part_job;

static void part_rows(void *ctx, int64_t job, int worker) {
    const part_job *j = ctx;
    const int64_t end = RT_MIN((job + 1) * ROWS_PER_JOB, j->in->n);
    for (int64_t i = job * ROWS_PER_JOB; i < end; i++) {
        const int64_t at = i * j->elems;
        rt_status st = rt_distortion_run(
            j->d, i, j->scratch + (size_t)worker * j->stride, j->in->u8 ? j->in->u8 + at : NULL,
            j->in->u8 ? NULL : j->in->f32 + at, j->u8 ? j->u8 + at : NULL, j->f32 ? j->f32 + at : NULL);
        if (st != RT_OK) {
            rt_error_save(&j->failed[job]);
            return;
        }
    }
}

rt_status rt_distortion_part(const rt_distortion *d, const rt_part *p, rt_pool *pool, rt_part *out) {
    part_job j = {.d = d, .in = p, .elems = d->c * d->h * d->w};
    const int64_t jobs = (p->n + ROWS_PER_JOB - 1) / ROWS_PER_JOB;
    const size_t workers = pool ? (size_t)rt_pool_workers(pool) : 1;
    int64_t total = 0;
    rt_status st = RT_OK;
    *out = (rt_part){.n = 0};
    RT_FAIL_IF(!rt_i64_mul(p->n, j.elems, &total) ||
                   !rt_size_align_up(rt_distortion_scratch(d), 64, &j.stride),
               RT_E_MEMORY, "%lld images are too many", (long long)p->n);
    RT_TRY_GOTO(rt_calloc(&j.scratch, workers, j.stride));
    RT_TRY_GOTO(rt_calloc(&j.failed, (size_t)jobs + 1, sizeof *j.failed));
    if (d->shift)
        RT_TRY_GOTO(rt_calloc(&j.f32, (size_t)total + 1, sizeof *j.f32));
    else
        RT_TRY_GOTO(rt_calloc(&j.u8, (size_t)total + 1, sizeof *j.u8));
    if (pool)
        rt_pool_run(pool, part_rows, &j, jobs);
    else
        for (int64_t i = 0; i < jobs; i++)
            part_rows(&j, i, 0);
    for (int64_t i = 0; i < jobs && st == RT_OK; i++)
        if (j.failed[i].code != RT_OK) {
            rt_error_restore(&j.failed[i]);
            st = j.failed[i].code;
        }
    if (st != RT_OK)
        goto done;
    *out = (rt_part){.n = p->n, .u8 = j.u8, .f32 = j.f32, .label = p->label, .target = p->target};
    j.u8 = NULL;
    j.f32 = NULL;
done:
    rt_free(j.u8);
    rt_free(j.f32);
    rt_free(j.scratch);
    rt_free(j.failed);
    return st;
}
