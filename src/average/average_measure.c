/*
 * average_measure.c - what blocks of weights compute on rows of data: scores, and proof that renumbering a
 * network did not change it.
 *
 * Classification: accuracy and mean -ln p_y; together: of the mean of the probabilities. Regression: the
 * Gaussian's mean negative log-likelihood in the target's own units; together: of the mixture. Sums are taken
 * in the order of the rows, whatever the threads do.
 */
#include "average/average.h"
#include "base/alloc.h"
#include <math.h>
#include <string.h>

enum { MEASURE_BATCH = 256, CHECK_ROWS = 64 };
static const double SAME = 1e-4, FLOOR = 1e-12;

typedef struct scoring {
    const rt_average *a;
    const rt_subset *set;
    int64_t k;
    int n;
    rt_average_score *each;
    double *mean; /* (rows, k) probabilities, or (rows) densities; NULL: not asked for */
    float *all;   /* (n, rows, k): every output; NULL: not asked for */
} scoring;

static double density(const rt_average *a, const float *y, double target) {
    float unit[2] = {y[0], y[1]};
    rt_model_unscale(a->loaded[0], unit);
    const double d = target - (double)unit[0], v = (double)unit[1];
    return exp(-0.5 * d * d / v) / sqrt(2 * M_PI * v);
}

/* Adds one row's probabilities to `mean` (may be NULL) and its score to s. */
static void score_classes(const float *y, int64_t k, int32_t label, int n, rt_average_score *s,
                          double *mean) {
    double top = (double)y[0], sum = 0;
    int64_t best = 0;
    for (int64_t j = 1; j < k; j++)
        if (y[j] > y[best])
            best = j;
    top = (double)y[best];
    for (int64_t j = 0; j < k; j++)
        sum += exp((double)y[j] - top);
    s->accuracy += best == label;
    s->loss += log(sum) + top - (double)y[label];
    for (int64_t j = 0; mean && j < k; j++)
        mean[j] += exp((double)y[j] - top) / sum / n;
}

static void take(void *user, int network, int64_t row, int64_t n, const float *y, int64_t stride) {
    (void)stride;
    scoring *s = user;
    if (s->all)
        memcpy(s->all + (network * s->set->n + row) * s->k, y, (size_t)(n * s->k) * sizeof *y);
    for (int64_t r = 0; s->each && r < n; r++) {
        const int64_t i = s->set->index[row + r];
        if (s->a->regression) {
            const double p = density(s->a, y + r * s->k, (double)s->set->part->target[i]);
            s->each[network].loss += -log(fmax(p, FLOOR));
            if (s->mean)
                s->mean[row + r] += p / s->n;
        } else {
            score_classes(y + r * s->k, s->k, s->set->part->label[i], s->n, &s->each[network],
                          s->mean ? s->mean + (row + r) * s->k : NULL);
        }
    }
}

static rt_average_score score_together(const scoring *s) {
    rt_average_score t = {0};
    for (int64_t r = 0; r < s->set->n; r++) {
        const int64_t i = s->set->index[r];
        if (s->a->regression) {
            t.loss += -log(fmax(s->mean[r], FLOOR));
            continue;
        }
        const double *p = s->mean + r * s->k;
        int64_t best = 0;
        for (int64_t j = 1; j < s->k; j++)
            if (p[j] > p[best])
                best = j;
        t.accuracy += best == s->set->part->label[i];
        t.loss += -log(fmax(p[s->set->part->label[i]], FLOOR));
    }
    return t;
}

static rt_status predict(scoring *s, const float *const *blocks) {
    rt_predictor *p = NULL;
    int64_t *order = NULL;
    const rt_average *a = s->a;
    rt_status st;
    RT_TRY_GOTO(rt_calloc(&order, (size_t)s->set->n, sizeof *order));
    for (int64_t i = 0; i < s->set->n; i++)
        order[i] = i;
    RT_TRY_GOTO(rt_predictor_create(&p, a->student, a->params, RT_MIN((int64_t)MEASURE_BATCH, s->set->n),
                                    s->n, a->pool));
    st = rt_predictor_run(p, s->set, order, blocks, s->n, take, s, a->hooks ? a->hooks->stop : NULL);
done:
    rt_predictor_destroy(&p);
    rt_free(order);
    return st;
}

static rt_average_score mean_of(rt_average_score s, int64_t rows, bool regression) {
    return (rt_average_score){regression ? NAN : s.accuracy / (double)rows, s.loss / (double)rows};
}

rt_status rt_average_measure(const rt_average *a, const rt_subset *set, const float *const *blocks, int n,
                             rt_average_score *each, rt_average_score *together) {
    scoring s = {.a = a, .set = set, .n = n, .k = rt_model_outputs(a->loaded[0]), .each = each};
    rt_status st;
    RT_FAIL_IF(set->n < 1, RT_E_INPUT, "%s has no rows to judge by", a->c->data);
    for (int i = 0; i < n; i++)
        each[i] = (rt_average_score){0};
    if (together)
        RT_TRY(rt_calloc(&s.mean, (size_t)(set->n * s.k), sizeof *s.mean));
    RT_TRY_GOTO(predict(&s, blocks));
    for (int i = 0; i < n; i++)
        each[i] = mean_of(each[i], set->n, a->regression);
    if (together)
        *together = mean_of(score_together(&s), set->n, a->regression);
done:
    rt_free(s.mean);
    return st;
}

rt_status rt_average_rows(const rt_average *a, int64_t most, rt_subset *out) {
    const rt_subset *from = a->valid.n > 0 ? &a->valid : &a->train;
    const int64_t n = most > 0 ? RT_MIN(most, from->n) : from->n;
    RT_TRY(rt_subset_rows(out, from->part, from->index, n));
    for (int64_t i = 0; i < n; i++)
        out->index[i] = from->index[i * from->n / n];
    return RT_OK;
}

/* ---- renumbering ---- */

static rt_status check_same(const rt_average *a, int model) {
    const float *blocks[2] = {a->blocks[model], a->aligned[model]};
    rt_subset rows = {0};
    scoring s = {.a = a, .set = &rows, .n = 2, .k = rt_model_outputs(a->loaded[0])};
    rt_status st;
    RT_TRY_GOTO(rt_average_rows(a, CHECK_ROWS, &rows));
    RT_TRY_GOTO(rt_calloc(&s.all, (size_t)(2 * rows.n * s.k), sizeof *s.all));
    RT_TRY_GOTO(predict(&s, blocks));
    double most = 0, size = 0;
    for (int64_t i = 0; i < rows.n * s.k; i++) {
        most = fmax(most, fabs((double)s.all[i] - (double)s.all[rows.n * s.k + i]));
        size = fmax(size, fabs((double)s.all[i]));
    }
    if (!(most <= SAME * size))
        RT_FAIL_GOTO(
            RT_E_FAILED,
            "%s: renumbering its units changed its outputs by %g of their size %g; this is a mistake in "
            "the program",
            a->names[model], most, size);
done:
    rt_subset_deinit(&rows);
    rt_free(s.all);
    return st;
}

rt_status rt_average_align(rt_average *a, int model) {
    if (!a->aligned[model])
        RT_TRY(rt_calloc(&a->aligned[model], (size_t)a->floats, sizeof(float)));
    rt_perm_apply(&a->sym, a->params, a->aligned[model], a->blocks[model], rt_average_perms(a, model));
    return check_same(a, model);
}

void rt_average_mean(rt_average *a) {
    int used = 0;
    for (int m = 0; m < a->models; m++)
        used += a->used[m];
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
