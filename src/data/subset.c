/*
 * subset.c - rows of a part, all or a list of them, and their moments.
 *
 * Deviations are of the population (divided by n), from a second pass around the mean. Bytes are counted
 * first: the moments of an image channel come from 256 exact counts. A column is constant when its smallest
 * and largest values are equal, not when a rounded deviation is small; constant columns get deviation 1, so
 * that standardising only centres them.
 */
#include "data/data_int.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

rt_status rt_subset_new(rt_subset *out, const rt_part *p, int64_t n) {
    *out = (rt_subset){.part = p, .n = n};
    return rt_calloc(&out->index, (size_t)n + 1, sizeof *out->index);
}

rt_status rt_subset_rows(rt_subset *out, const rt_part *p, const int64_t *rows, int64_t n) {
    *out = (rt_subset){.part = p};
    for (int64_t i = 0; i < n; i++)
        RT_FAIL_IF(rows[i] < 0 || rows[i] >= p->n, RT_E_USAGE, "row %lld, wanted 0 to %lld",
                   (long long)rows[i], (long long)p->n - 1);
    RT_TRY(rt_subset_new(out, p, n));
    if (n > 0)
        memcpy(out->index, rows, (size_t)n * sizeof *rows);
    return RT_OK;
}

rt_status rt_subset_some(rt_subset *out, const rt_subset *of, int64_t most) {
    RT_TRY(rt_subset_new(out, of->part, most > 0 ? RT_MIN(most, of->n) : of->n));
    for (int64_t i = 0; i < out->n; i++)
        out->index[i] = rt_subset_row(of, i * of->n / out->n);
    return RT_OK;
}

bool rt_subset_equal(const rt_subset *x, const rt_subset *y) {
    for (int64_t i = 0; x->n == y->n && i < x->n; i++)
        if (rt_subset_row(x, i) != rt_subset_row(y, i))
            return false;
    return x->n == y->n;
}

void rt_subset_deinit(rt_subset *s) {
    rt_free(s->index);
    *s = (rt_subset){.part = NULL};
}

void rt_part_free(rt_part *p) {
    rt_free((void *)(uintptr_t)p->u8);
    rt_free((void *)(uintptr_t)p->f32);
    *p = (rt_part){.n = 0};
}

void rt_part_free_copy(rt_part *p) {
    rt_free((void *)(uintptr_t)p->label);
    rt_free((void *)(uintptr_t)p->target);
    rt_part_free(p);
}

typedef struct moments {
    double mean, m2, min, max, n;
} moments;

static void moments_finish(const moments *m, double *mean, double *std) {
    *mean = m->n > 0 ? m->mean : 0;
    *std = m->n > 0 && m->min < m->max ? sqrt(m->m2 / m->n) : 1;
    if (!(*std > 0))
        *std = 1; /* a spread so small that its square vanishes */
    if (m->n > 0 && m->min == m->max)
        *mean = m->min;
}

/* Channel c of u8 images. */
static moments moments_u8(const rt_subset *s, int64_t plane, int64_t channels, int64_t c) {
    int64_t count[256] = {0};
    for (int64_t i = 0; i < s->n; i++) {
        const uint8_t *p = s->part->u8 + (rt_subset_row(s, i) * channels + c) * plane;
        for (int64_t k = 0; k < plane; k++)
            count[p[k]]++;
    }
    moments m = {.n = (double)s->n * (double)plane, .min = INFINITY, .max = -INFINITY};
    for (int v = 0; v < 256; v++) {
        m.mean += (double)count[v] * (v / 255.0);
        if (count[v] > 0) {
            m.min = RT_MIN(m.min, v / 255.0);
            m.max = RT_MAX(m.max, v / 255.0);
        }
    }
    m.mean /= m.n;
    for (int v = 0; v < 256; v++)
        m.m2 += (double)count[v] * (v / 255.0 - m.mean) * (v / 255.0 - m.mean);
    return m;
}

/* `plane` neighbouring values starting at `first` of rows of `stride` floats. */
static moments moments_f32(const rt_subset *s, const float *base, int64_t stride, int64_t first,
                           int64_t plane) {
    moments m = {.n = (double)s->n * (double)plane, .min = INFINITY, .max = -INFINITY};
    for (int64_t i = 0; i < s->n; i++) {
        const float *p = base + rt_subset_row(s, i) * stride + first;
        for (int64_t k = 0; k < plane; k++) {
            m.mean += p[k];
            m.min = RT_MIN(m.min, p[k]);
            m.max = RT_MAX(m.max, p[k]);
        }
    }
    m.mean /= m.n;
    for (int64_t i = 0; i < s->n; i++) {
        const float *p = base + rt_subset_row(s, i) * stride + first;
        for (int64_t k = 0; k < plane; k++)
            m.m2 += (p[k] - m.mean) * (p[k] - m.mean);
    }
    return m;
}

/* The same of a table, row after row, as rows may have to come from a file. Where a column is constant, std is -1 until
 * the end. */
static void moments_table(const rt_subset *s, int64_t columns, double *mean, double *std) {
    enum { PIECE = 1024 };
    float x[PIECE], first[PIECE];
    for (int64_t from = 0; from < columns; from += PIECE) {
        const int64_t some = RT_MIN(columns - from, (int64_t)PIECE);
        double *m = mean + from, *d = std + from;
        for (int64_t k = 0; k < some; k++)
            m[k] = d[k] = 0;
        for (int64_t i = 0; i < s->n; i++) {
            rt_part_values(s->part, columns, rt_subset_row(s, i), from, some, i ? x : first);
            for (int64_t k = 0; k < some; k++) {
                const float v = i ? x[k] : first[k];
                m[k] += v;
                d[k] = d[k] > 0 || v != first[k];
            }
        }
        for (int64_t k = 0; k < some; k++) {
            m[k] = d[k] > 0 ? m[k] / (double)s->n : (double)first[k];
            d[k] = d[k] > 0 ? 0 : -1;
        }
        for (int64_t i = 0; i < s->n; i++) {
            rt_part_values(s->part, columns, rt_subset_row(s, i), from, some, x);
            for (int64_t k = 0; k < some; k++)
                d[k] += d[k] < 0 ? 0 : (x[k] - m[k]) * (x[k] - m[k]);
        }
        for (int64_t k = 0; k < some; k++) {
            d[k] = d[k] < 0 ? 1 : sqrt(d[k] / (double)s->n);
            if (!(d[k] > 0))
                d[k] = 1; /* a spread so small that its square vanishes */
        }
    }
}

void rt_subset_moments(const rt_subset *s, rt_shape row, double *mean, double *std, double *target_mean,
                       double *target_std) {
    int64_t elems = rt_shape_elems(&row), groups = row.rank == 3 ? row.d[0] : elems,
            plane = elems / RT_MAX(groups, 1);
    if (row.rank == 1 && s->n > 0 && !s->part->u8)
        moments_table(s, elems, mean, std);
    else
        for (int64_t c = 0; c < groups; c++) {
            moments m = {.n = 0};
            if (s->n > 0)
                m = s->part->u8 ? moments_u8(s, plane, groups, c)
                                : moments_f32(s, s->part->f32, elems, c * plane, plane);
            moments_finish(&m, &mean[c], &std[c]);
        }
    moments t = {.n = 0};
    if (s->n > 0 && s->part->target)
        t = moments_f32(s, s->part->target, 1, 0, 1);
    double mean_y, std_y;
    moments_finish(&t, &mean_y, &std_y);
    if (target_mean)
        *target_mean = mean_y;
    if (target_std)
        *target_std = std_y;
}
