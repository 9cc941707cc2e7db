/*
 * average_measure.c - what blocks of weights compute on rows of data: scores, and proof that renumbering a
 * network did not change it.
 *
 * Accuracy and mean negative log-likelihood as `eval` has them (eval/row.c), of each network and of all
 * together. Sums are taken in the order of the rows, whatever the threads do.
 */
#include "average/average.h"
#include "base/alloc.h"
#include "base/size.h"
#include <math.h>
#include <string.h>

enum { MEASURE_BATCH = 256, CHECK_ROWS = 64 };
static const double SAME = 1e-4;

typedef struct scoring {
    const rt_average *a;
    const rt_subset *set;
    int64_t k;
    int n;
    float *y; /* (rows, n, k): what the n networks say */
    double done;
} scoring;

static void take(void *user, int network, int64_t row, int64_t n, const float *y, int64_t stride) {
    scoring *s = user;
    s->done += (double)n / (double)(s->n * s->set->n);
    if (s->a->hooks && s->a->hooks->progress && s->a->stage)
        s->a->hooks->progress(s->a->hooks->user, s->a->stage, s->done);
    for (int64_t r = 0; r < n; r++)
        rt_model_answer(s->a->loaded[0], y + r * s->k, stride, s->y + ((row + r) * s->n + network) * s->k);
}

/* The first of m rows of logits becomes their mean. */
static void mean_logits(float *y, int m, int64_t k) {
    for (int64_t j = 0; j < k; j++) {
        double sum = 0;
        for (int i = 0; i < m; i++)
            sum += (double)y[i * k + j];
        y[j] = (float)(sum / m);
    }
}

/* Means over the rows, of networks [first, first + m) as one prediction. */
static rt_status score(const scoring *s, int first, int m, rt_average_score *out) {
    rt_reading how = rt_model_reading(s->a->loaded[0]);
    rt_row row;
    *out = (rt_average_score){0};
    const bool logits = m > 1 && rt_average_mean_logits(s->a);
    how.m = logits ? 1 : m;
    RT_TRY(rt_row_init(&row, how));
    for (int64_t r = 0; r < s->set->n; r++) {
        float *y = s->y + (r * s->n + first) * s->k;
        if (logits)
            mean_logits(y, m, s->k);
        const bool good = rt_row_read(&row, y);
        const double truth = rt_subset_truth(s->set, r, s->a->regression);
        out->loss += good ? rt_row_nll(&row, truth) : NAN;
        out->accuracy += s->a->regression ? (double)NAN : (double)row.top == truth;
    }
    out->loss /= (double)s->set->n;
    out->accuracy /= (double)s->set->n;
    rt_row_deinit(&row);
    return RT_OK;
}

static rt_status predict(scoring *s, const float *const *blocks) {
    rt_predictor *p = NULL;
    const rt_average *a = s->a;
    size_t floats;
    rt_status st;
    if (!rt_size_mul((size_t)s->set->n, (size_t)s->n * (size_t)s->k, &floats))
        RT_FAIL_GOTO(RT_E_MEMORY, "%s: predictions are too large", a->c->data);
    RT_TRY_GOTO(rt_calloc(&s->y, floats, sizeof *s->y));
    RT_TRY_GOTO(rt_predictor_create(&p, a->student, a->params, RT_MIN((int64_t)MEASURE_BATCH, s->set->n),
                                    s->n, a->pool));
    st = rt_predictor_run(p, s->set, blocks, s->n, take, s, a->hooks ? a->hooks->stop : NULL);
done:
    rt_predictor_destroy(&p);
    return st;
}

rt_status rt_average_measure(const rt_average *a, const rt_subset *set, const float *const *blocks, int n,
                             rt_average_score *each, rt_average_score *together) {
    scoring s = {.a = a, .set = set, .n = n, .k = rt_model_outputs(a->loaded[0])};
    rt_status st;
    RT_FAIL_IF(set->n < 1, RT_E_INPUT, "%s has no rows to judge by", a->c->data);
    RT_TRY_GOTO(predict(&s, blocks));
    for (int i = 0; i < n; i++)
        RT_TRY_GOTO(score(&s, i, 1, &each[i]));
    if (together)
        st = score(&s, 0, n, together);
done:
    rt_free(s.y);
    return st;
}

rt_status rt_average_rows(const rt_average *a, int64_t most, rt_subset *out) {
    const rt_subset *from = a->valid.n > 0 ? &a->valid : &a->train;
    return rt_subset_some(out, from, most);
}

/* ---- renumbering ---- */

static rt_status check_same(const rt_average *a, int model) {
    const float *blocks[2] = {a->blocks[model], a->aligned[model]};
    rt_subset rows = {0};
    scoring s = {.a = a, .set = &rows, .n = 2, .k = rt_model_outputs(a->loaded[0])};
    rt_status st;
    RT_TRY_GOTO(rt_average_rows(a, CHECK_ROWS, &rows));
    RT_TRY_GOTO(predict(&s, blocks));
    double most = 0, size = 0;
    for (int64_t i = 0; i < rows.n * s.k; i++) {
        const float *y = s.y + i / s.k * 2 * s.k + i % s.k; /* of the one, and k floats on, of the other */
        most = fmax(most, fabs((double)y[0] - (double)y[s.k]));
        size = fmax(size, fabs((double)y[0]));
    }
    if (!(most <= SAME * size))
        RT_FAIL_GOTO(
            RT_E_FAILED,
            "%s: renumbering its units changed its outputs by %g of their size %g; this is a mistake in "
            "the program",
            a->names[model], most, size);
done:
    rt_subset_deinit(&rows);
    rt_free(s.y);
    return st;
}

rt_status rt_average_align(rt_average *a, int model) {
    if (!a->aligned[model])
        RT_TRY(rt_calloc(&a->aligned[model], (size_t)a->floats, sizeof(float)));
    rt_perm_apply(&a->sym, a->params, a->aligned[model], a->blocks[model], rt_average_perms(a, model));
    return check_same(a, model);
}

void rt_average_mean(rt_average *a) {
    const int used = rt_average_used(a);
    for (int m = 0; m < a->models && used == 1; m++)
        if (a->used[m])
            memcpy(a->out, rt_average_block(a, m), (size_t)a->floats * sizeof *a->out); /* to the bit */
    if (used == 1)
        return;
    for (int64_t i = 0; i < a->floats; i++) {
        double sum = 0;
        for (int m = 0; m < a->models; m++)
            sum += a->used[m] ? (double)rt_average_block(a, m)[i] : 0;
        a->out[i] = (float)(sum / used);
    }
}

rt_status rt_average_progress(const rt_average *a, const char *what, double done) {
    const rt_average_hooks *h = a->hooks;
    if (h && h->progress)
        h->progress(h->user, what, done);
    RT_FAIL_IF(h && h->stop && *h->stop, RT_E_INTERRUPTED, "interrupted while averaging");
    return RT_OK;
}
