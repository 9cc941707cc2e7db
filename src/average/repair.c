/*
 * repair.c - units of an averaged network brought back to the spread they had in the models (Jordan et al.
 * 2023).
 *
 * The mean of M imperfectly aligned units varies less than each of them, and deeper layers see ever smaller
 * signals. For a unit with pre-activation y = w x + b, let m, s be its mean and deviation over training rows
 * in the averaged network, and m', s' the means of those of the models. Then
 *
 *     w <- (s' / s) w         b <- (s' / s) (b - m) + m'
 *
 * gives it the mean m' and deviation s' exactly, and needs no extra layer. Layers are treated in order, each
 * with what the layers before it have become. Batch normalisation does the same by itself, once its running
 * statistics are estimated anew (model/norms.c), so only units without it are treated. Both look at rows that the
 * models were trained on, augmented as they were.
 */
#include "average/average_int.h"
#include "base/alloc.h"
#include <math.h>
#include <string.h>

static rt_status tell_statistics(void *average, double done) {
    return rt_average_progress(average, "estimating statistics", done);
}

static rt_status tell_repair(void *average, double done) {
    return rt_average_progress(average, "repairing", done);
}

rt_status rt_average_taps(const rt_average *a, int64_t rows, rt_taps_input *out) {
    *out = (rt_taps_input){.student = a->student,
                           .params = a->params,
                           .set = &a->train,
                           .rows = rows,
                           .seed = (uint64_t)a->c->seed,
                           .pool = a->pool,
                           .user = (void *)(uintptr_t)a};
    return rt_augment_parse(&out->augment, a->c->augment);
}

rt_status rt_average_refresh_bn(const rt_average *a, float *block, int64_t rows) {
    rt_taps_input in;
    rt_taps t;
    if (!a->c->refresh_bn || !rt_norms_any(a->params))
        return RT_OK;
    RT_TRY(rt_average_taps(a, rows > 0 ? rows : a->c->stat_rows, &in));
    in.tell = tell_statistics;
    RT_TRY(rt_taps_of_norms(&t, &in));
    const rt_status st = rt_norms_estimate(&t, block);
    rt_taps_close(&t);
    return st;
}

/* ---- units without batch normalisation ---- */

typedef struct moments {
    int64_t total; /* channels of all taps */
    double *sum;   /* (2, total) */
} moments;

static void add_batch(void *user, const rt_taps *t) {
    moments *m = user;
    int64_t at = 0;
    for (int i = 0; i < t->n; i++) {
        const rt_tap *tap = &t->tap[i];
        for (int64_t c = 0; c < tap->channels; c++, at++) {
            m->sum[at] += tap->sums[c];
            m->sum[m->total + at] += tap->sums[tap->channels + c];
        }
    }
}

/* Sums become mean and deviation. */
static rt_status measure(rt_taps *t, moments *m, const float *block) {
    memset(m->sum, 0, (size_t)m->total * 2 * sizeof *m->sum);
    RT_TRY(rt_taps_run(t, block, add_batch, m));
    int64_t at = 0;
    for (int i = 0; i < t->n; i++) {
        const double n = (double)(t->tap[i].count * t->batches);
        for (int64_t c = 0; c < t->tap[i].channels; c++, at++) {
            const double mean = m->sum[at] / n, square = m->sum[m->total + at] / n;
            m->sum[at] = mean;
            m->sum[m->total + at] = sqrt(RT_MAX(square - mean * mean, 0.0));
        }
    }
    return RT_OK;
}

static void rescale(const rt_average *a, const rt_tap *tap, float *block, const double *have,
                    const double *want, int64_t total) {
    const rt_param *w = rt_params_get(a->params, tap->first), *b = rt_params_get(a->params, tap->second);
    const int64_t row = w->count / tap->channels;
    for (int64_t c = 0; c < tap->channels; c++) {
        const double s = have[total + c] > 1e-12 ? want[total + c] / have[total + c] : 1;
        float *weight = block + w->offset + c * row, *bias = block + b->offset + c;
        for (int64_t k = 0; k < row; k++)
            weight[k] = (float)(s * (double)weight[k]);
        *bias = (float)(s * ((double)*bias - have[c]) + want[c]);
    }
}

static rt_status repair(const rt_average *a, rt_taps *t, float *block, moments *now, double *want) {
    const int used = rt_average_used(a);
    t->runs = used + t->n;
    for (int m = 0; m < a->models; m++) {
        if (!a->used[m])
            continue;
        RT_TRY(measure(t, now, rt_average_block(a, m)));
        for (int64_t k = 0; k < 2 * now->total; k++)
            want[k] += now->sum[k] / used;
    }
    for (int64_t i = 0, at = 0; i < t->n; at += t->tap[i++].channels) {
        RT_TRY(measure(t, now, block));
        rescale(a, &t->tap[i], block, now->sum + at, want + at, now->total);
    }
    return RT_OK;
}

rt_status rt_average_repair(const rt_average *a, float *block) {
    rt_taps_input in;
    rt_taps t;
    moments now = {0};
    double *want = NULL;
    rt_status st;
    RT_TRY(rt_average_taps(a, a->c->stat_rows, &in));
    in.tell = tell_repair;
    RT_TRY(rt_taps_of_units(&t, &in));
    for (int i = 0; i < t.n; i++)
        now.total += t.tap[i].channels;
    RT_TRY_GOTO(rt_calloc(&now.sum, (size_t)now.total + 1, 2 * sizeof(double)));
    RT_TRY_GOTO(rt_calloc(&want, (size_t)now.total + 1, 2 * sizeof(double)));
    st = repair(a, &t, block, &now, want);
done:
    rt_free(now.sum);
    rt_free(want);
    rt_taps_close(&t);
    return st;
}
