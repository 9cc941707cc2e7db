/*
 * bootstrap.c - percentile intervals (Efron 1979): n rows are drawn from the n with replacement, the metric
 * is computed, a thousand times over; the interval holds the middle 95 % of the results.
 *
 * A draw is a count per row, and statistics are computed under these counts from what each row contributes
 * (rows.c, ranking.c), so a draw costs a few passes over the rows and no sorting. Counts are functions of
 * (seed, draw) alone; workers take draws as they come.
 *
 * Percentiles are interpolated between neighbours. Draws that leave a metric undefined (no error drawn) do
 * not count; if they are most of them, there is no interval.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "base/size.h"
#include "base/stop.h"
#include "eval/eval_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DRAWS_DEFAULT = 1000, DRAWS_MAX = 1000000 };

typedef struct plan {
    int64_t n;
    int draws, values, workers; /* values: statistics of one draw */
    uint64_t seed;
    double *value;          /* (draws, values) */
    uint16_t *count;        /* (workers, n) */
    const int32_t *part[2]; /* rows drawn from apart; NULL: all rows */
    int64_t part_n[2];
    const rt_rows *rows;   /* either these ... */
    const rt_order *order; /* ... or these, values / 3 of them */
} plan;

/* n draws of 0..n-1, mapped by `rows`. Four 32-bit numbers a block, scaled by a product: the bias is n /
 * 2^32. */
static void draw_rows(uint16_t *count, rt_rng r, const int32_t *rows, int64_t n) {
    uint32_t u[4];
    for (int64_t i = 0; i < n; i++) {
        if (i % 4 == 0)
            rt_rng_block(r, (uint64_t)(i / 4), u);
        const int64_t at = (int64_t)(((uint64_t)u[i % 4] * (uint64_t)n) >> 32);
        uint16_t *c = &count[rows ? rows[at] : at];
        *c = (uint16_t)(*c + (*c < UINT16_MAX));
    }
}

static void run_draw(void *ctx, int64_t draw, int worker) {
    const plan *p = ctx;
    if (rt_stop_wanted())
        return;
    uint16_t *count = p->count + worker * p->n;
    double *value = p->value + draw * p->values;
    memset(count, 0, (size_t)p->n * sizeof *count);
    if (p->part[0]) {
        for (int i = 0; i < 2; i++)
            draw_rows(count, rt_rng_make(p->seed, RT_RNG_BOOTSTRAP, (uint64_t)draw, (uint64_t)i), p->part[i],
                      p->part_n[i]);
    } else {
        draw_rows(count, rt_rng_make(p->seed, RT_RNG_BOOTSTRAP, (uint64_t)draw, 0), NULL, p->n);
    }
    if (p->rows) {
        rt_rows_metrics(p->rows, count, value);
        return;
    }
    for (int s = 0; s < p->values / 3; s++) {
        const rt_ranking r = rt_order_ranking(&p->order[s], count);
        value[3 * s] = r.auroc;
        value[3 * s + 1] = r.aupr;
        value[3 * s + 2] = r.prr;
    }
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, int64_t n, double q) {
    const double at = q * (double)(n - 1);
    const int64_t i = RT_MIN((int64_t)at, n - 2);
    return n < 2 ? sorted[0] : sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

static rt_interval interval_of(const plan *p, int value, double level, double *scratch) {
    int64_t n = 0;
    for (int64_t d = 0; d < p->draws; d++)
        if (isfinite(p->value[d * p->values + value]))
            scratch[n++] = p->value[d * p->values + value];
    if (2 * n < p->draws || n == 0)
        return (rt_interval){NAN, NAN};
    qsort(scratch, (size_t)n, sizeof *scratch, by_value);
    return (rt_interval){quantile(scratch, n, (1 - level) / 2), quantile(scratch, n, (1 + level) / 2)};
}

/* Runs the draws; the intervals of all values go to out. */
static rt_status run_plan(plan *p, rt_bootstrap o, rt_interval *out) {
    const double level = o.level > 0 ? o.level : 0.95;
    double *scratch = NULL;
    rt_status st;
    size_t values;
    p->draws = o.draws > 0 ? o.draws : DRAWS_DEFAULT;
    p->seed = o.seed;
    p->workers = o.pool ? rt_pool_workers(o.pool) : 1;
    RT_FAIL_IF(p->draws > DRAWS_MAX || !(level < 1), RT_E_USAGE,
               "bootstrap: %d draws and level %g, wanted at most %d and less than 1", p->draws, level,
               DRAWS_MAX);
    RT_FAIL_IF(!rt_size_mul((size_t)p->draws, (size_t)p->values, &values), RT_E_MEMORY,
               "bootstrap: too many draws");
    RT_TRY_GOTO(rt_calloc(&p->value, values, sizeof *p->value));
    RT_TRY_GOTO(rt_calloc(&p->count, (size_t)p->workers * sizeof *p->count, (size_t)p->n));
    RT_TRY_GOTO(rt_calloc(&scratch, (size_t)p->draws, sizeof *scratch));
    if (o.pool)
        rt_pool_run(o.pool, run_draw, p, p->draws);
    else
        for (int64_t d = 0; d < p->draws; d++)
            run_draw(p, d, 0);
    for (int v = 0; v < p->values; v++) {
        RT_TRY_GOTO(rt_stop_check("computing", "intervals"));
        out[v] = interval_of(p, v, level, scratch);
    }
done:
    rt_free(scratch);
    rt_free(p->value);
    rt_free(p->count);
    return st;
}

rt_status rt_eval_bootstrap(const rt_eval_input *in, rt_bootstrap options, rt_interval *out) {
    const rt_metric_info *info;
    rt_rows rows;
    RT_TRY(rt_rows_init(&rows, in));
    plan p = {.n = in->n, .values = rt_metric_list(&info), .rows = &rows};
    const rt_status st = run_plan(&p, options, out);
    for (int i = 0; st == RT_OK && i < p.values; i++)
        if (rt_metric_defs[i].kind == RT_KIND_GIVEN)
            out[i] = (rt_interval){NAN, NAN};
    rt_rows_deinit(&rows);
    return st;
}

/* ---- rankings ---- */

/* The rows of either kind, one after the other in `rows`. */
static void split(plan *p, int32_t *rows, const uint8_t *positive, int64_t n) {
    int64_t at = 0;
    for (int kind = 0; kind < 2; kind++) {
        p->part[kind] = rows + at;
        for (int64_t i = 0; i < n; i++)
            if ((positive[i] != 0) == (kind == 1))
                rows[at++] = (int32_t)i;
        p->part_n[kind] = at - (p->part[kind] - rows);
    }
}

rt_status rt_eval_ranking_bootstrap(const double *score, int nscores, const uint8_t *positive, int64_t n,
                                    bool two_samples, rt_bootstrap options, rt_ranking_interval *out) {
    rt_order *order = NULL;
    int32_t *rows = NULL;
    rt_interval *interval = NULL;
    int used = 0;
    rt_status st;
    plan p = {.n = n};
    const rt_interval none = {NAN, NAN};
    for (int s = 0; s < nscores; s++)
        out[s] = (rt_ranking_interval){none, none, none};
    if (n < 1 || nscores < 1)
        return RT_OK;
    RT_TRY_GOTO(rt_calloc(&order, (size_t)nscores, sizeof *order));
    RT_TRY_GOTO(rt_calloc(&interval, 3 * (size_t)nscores, sizeof *interval));
    RT_TRY_GOTO(rt_calloc(&rows, (size_t)n, sizeof *rows));
    for (int s = 0; s < nscores; s++) {
        if (rt_any_nan(score + s * n, n))
            continue;
        RT_TRY_GOTO(rt_order_init(&order[used], score + s * n, positive, n));
        used++;
    }
    p.order = order;
    p.values = 3 * used;
    if (two_samples)
        split(&p, rows, positive, n);
    if (used > 0)
        RT_TRY_GOTO(run_plan(&p, options, interval));
    for (int s = 0, u = 0; s < nscores; s++) {
        if (rt_any_nan(score + s * n, n))
            continue;
        out[s] = (rt_ranking_interval){interval[3 * u], interval[3 * u + 1], interval[3 * u + 2]};
        u++;
    }
done:
    for (int s = 0; order && s < nscores; s++)
        rt_order_deinit(&order[s]);
    rt_free(order);
    rt_free(interval);
    rt_free(rows);
    return st;
}
