/*
 * bench_layers.c - retort bench --layers: where the time of a training step goes, and how far from the limit
 * of this machine each part of it is.
 *
 * One thread runs the step again and again with the executor's clock on; the fastest step counts, so that all
 * times are of one and the same step and their shares add up to one. What the plan's actions leave of it is
 * the update of the parameters. Actions of the same kind and kernel are added up, once over everything and
 * once per shape of the result.
 *
 *     of limit = max(flops / FMA peak, bytes / bandwidth of a triad) / time
 *
 * Peak and bandwidth are measured on the spot, with the same thread. The fraction may pass one: Winograd
 * convolutions need fewer operations than are counted, and values that stay in a cache do not wait for memory.
 */
#include "base/alloc.h"
#include "base/timer.h"
#include "cli/cli.h"
#include <stdlib.h>
#include <string.h>

enum { STEPS_MIN = 3, STEPS_WARM_UP = 2 };
#define SHARE_SHOWN 0.01 /* of a line of the table by shape */

/* SGD reads weight, gradient and momentum, writes two of them; decay, momentum, Nesterov's look ahead and the
 * step itself are a multiplication and an addition each. */
enum { UPDATE_FLOPS = 8, UPDATE_BYTES = 5 * sizeof(float) };

typedef struct row {
    const char *kind, *kernel;
    rt_shape shape;
    int64_t count;
    double seconds, flops, bytes;
    double least; /* seconds at the limit */
} row;

typedef struct table {
    row *row;
    int n;
} table;

typedef struct layers {
    const cli_bench_step *what;
    rt_cli *c;
    const rt_plan *plan;
    double peak, bandwidth; /* FLOP/s, byte/s */
    double *now, *best;     /* seconds per action: of this step, of the fastest */
    double seconds;         /* the fastest step */
    table kinds, shapes;
} layers;

static rt_status measure(layers *l) {
    const size_t bytes = (size_t)rt_plan_actions(l->plan) * sizeof *l->now;
    rt_step_io io = l->what->io;
    double end = 0;
    for (int64_t i = -STEPS_WARM_UP; i < STEPS_MIN || rt_time_now() < end; i++) {
        RT_FAIL_IF(*cli_stop(), RT_E_INTERRUPTED, "interrupted; nothing to save");
        memset(l->now, 0, bytes);
        io.t = i + STEPS_WARM_UP;
        io.profile = l->now;
        double t = rt_time_now();
        if (i == 0)
            end = t + l->c->config.budget;
        RT_TRY(rt_step_run(l->what->step, &io));
        t = rt_time_now() - t;
        if (i < 0 || (i > 0 && t >= l->seconds))
            continue;
        l->seconds = t;
        memcpy(l->best, l->now, bytes);
    }
    return RT_OK;
}

/* ---- adding up ---- */

static void add(table *t, row r, bool by_shape) {
    for (int i = 0; i < t->n; i++) {
        row *o = &t->row[i];
        if (strcmp(o->kind, r.kind) == 0 && strcmp(o->kernel, r.kernel) == 0 &&
            (!by_shape || rt_shape_equal(&o->shape, &r.shape))) {
            o->count += r.count;
            o->seconds += r.seconds;
            o->flops += r.flops;
            o->bytes += r.bytes;
            o->least += r.least;
            return;
        }
    }
    t->row[t->n++] = r;
}

static int compare(const void *a, const void *b) {
    const row *x = a, *y = b;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static void add_to_both(layers *l, row r) {
    r.least = RT_MAX(r.flops / l->peak, r.bytes / l->bandwidth);
    add(&l->kinds, r, false);
    add(&l->shapes, r, true);
}

static rt_status add_up(layers *l) {
    const int64_t n = rt_plan_actions(l->plan);
    const double members = l->what->members;
    double rest = l->seconds;
    RT_TRY(rt_calloc(&l->kinds.row, (size_t)n + 1, sizeof *l->kinds.row));
    RT_TRY(rt_calloc(&l->shapes.row, (size_t)n + 1, sizeof *l->shapes.row));
    for (int64_t i = 0; i < n; i++) {
        const rt_action_cost c = rt_plan_action_cost(l->plan, i);
        add_to_both(l, (row){.kind = c.kind,
                             .kernel = c.kernel,
                             .shape = c.shape,
                             .count = l->what->members,
                             .seconds = l->best[i],
                             .flops = c.flops * members,
                             .bytes = c.bytes * members});
        rest -= l->best[i];
    }
    const int64_t weights = rt_params_trainable(l->what->params);
    add_to_both(l, (row){.kind = "update",
                         .kernel = "-",
                         .shape = rt_shape1(weights),
                         .count = l->what->members,
                         .seconds = rest,
                         .flops = UPDATE_FLOPS * (double)weights * members,
                         .bytes = UPDATE_BYTES * (double)weights * members});
    qsort(l->kinds.row, (size_t)l->kinds.n, sizeof *l->kinds.row, compare);
    qsort(l->shapes.row, (size_t)l->shapes.n, sizeof *l->shapes.row, compare);
    return RT_OK;
}

/* ---- reporting ---- */

static double rate(double amount, double seconds) {
    return seconds > 0 ? amount / seconds : 0;
}

static void json_rows(const layers *l, rt_json *j, const char *key, const table *t, bool by_shape) {
    rt_json_array_begin(j, key);
    for (const row *r = t->row; r < t->row + t->n; r++) {
        rt_json_object_begin(j, NULL);
        rt_json_str(j, "kind", r->kind);
        rt_json_str(j, "kernel", r->kernel);
        if (by_shape)
            cli_json_shape(j, "shape", &r->shape);
        rt_json_i64(j, "count", r->count);
        rt_json_f64(j, "seconds", r->seconds);
        rt_json_f64(j, "share", r->seconds / l->seconds);
        rt_json_f64(j, "flops", r->flops);
        rt_json_f64(j, "gflop_per_s", rate(r->flops, r->seconds) * 1e-9);
        rt_json_f64(j, "bytes", r->bytes);
        rt_json_f64(j, "gb_per_s", rate(r->bytes, r->seconds) * 1e-9);
        rt_json_f64(j, "limit_fraction", rate(r->least, r->seconds));
        rt_json_object_end(j);
    }
    rt_json_array_end(j);
}

static rt_status print_json(const layers *l) {
    const rt_config *k = &l->c->config;
    rt_json j;
    cli_json_begin(l->c, &j);
    rt_json_str(&j, "arch", k->arch);
    rt_json_str(&j, "input", k->input);
    rt_json_i64(&j, "classes", k->classes);
    rt_json_i64(&j, "batch", k->batch);
    rt_json_i64(&j, "members", l->what->members);
    rt_json_str(&j, "student", k->student ? k->student : "single");
    cli_json_cpu(&j);
    rt_json_i64(&j, "threads", 1);
    rt_json_i64(&j, "slices", rt_plan_slices(l->plan));
    rt_json_f64(&j, "step_seconds", l->seconds);
    rt_json_f64(&j, "peak_gflops", l->peak * 1e-9);
    rt_json_f64(&j, "bandwidth_gb_per_s", l->bandwidth * 1e-9);
    json_rows(l, &j, "kinds", &l->kinds, false);
    json_rows(l, &j, "layers", &l->shapes, true);
    return cli_json_end(l->c, &j);
}

static void text_row(const layers *l, cli_table *t, const row *r, bool by_shape) {
    char text[32];
    cli_table_cell(t, "%s", r->kind);
    cli_table_cell(t, "%s", r->kernel);
    if (by_shape)
        cli_table_cell(t, "%s", r->shape.rank > 0 ? cli_shape(text, &r->shape) : "scalar");
    cli_table_cell(t, "%lld", (long long)r->count);
    cli_table_cell(t, "%.3f", 1e3 * r->seconds);
    cli_table_cell(t, "%.1f %%", 100 * r->seconds / l->seconds);
    cli_table_cell(t, "%.1f", rate(r->flops, r->seconds) * 1e-9);
    cli_table_cell(t, "%.2f", r->bytes * 1e-6);
    cli_table_cell(t, "%.1f", rate(r->bytes, r->seconds) * 1e-9);
    cli_table_cell(t, "%.0f %%", 100 * rate(r->least, r->seconds));
}

static void text_rows(const layers *l, rt_str *out, const table *rows, bool by_shape) {
    cli_table t;
    cli_table_init(&t, by_shape ? "lllrrrrrrr" : "llrrrrrrr",
                   by_shape ? "kind|kernel|result|count|ms|share|GFLOP/s|MB|GB/s|of limit"
                            : "kind|kernel|count|ms|share|GFLOP/s|MB|GB/s|of limit");
    row sum = {.kind = "the step", .kernel = ""};
    for (const row *r = rows->row; r < rows->row + rows->n; r++) {
        if (!by_shape || r->seconds >= SHARE_SHOWN * l->seconds)
            text_row(l, &t, r, by_shape);
        sum.count += r->count;
        sum.seconds += r->seconds;
        sum.flops += r->flops;
        sum.bytes += r->bytes;
        sum.least += r->least;
    }
    if (!by_shape) {
        cli_table_rule(&t);
        text_row(l, &t, &sum, false);
    }
    cli_table_print(&t, out, l->c->term.colour_out);
    cli_table_deinit(&t);
}

static rt_status print_text(const layers *l) {
    rt_str *out = &l->c->out;
    const rt_config *k = &l->c->config;
    rt_str_appendf(out,
                   "%s, input %s, batch %lld, %d member%s, one thread; FMA peak %.0f GFLOP/s, memory %.1f "
                   "GB/s\n\n",
                   k->arch, k->input, (long long)k->batch, l->what->members, l->what->members == 1 ? "" : "s",
                   l->peak * 1e-9, l->bandwidth * 1e-9);
    text_rows(l, out, &l->kinds, false);
    rt_str_appendf(out, "\nBy shape of the result in one of %lld slices; shares of %.0f %% and more:\n\n",
                   (long long)rt_plan_slices(l->plan), 100 * SHARE_SHOWN);
    text_rows(l, out, &l->shapes, true);
    return cli_print(out);
}

rt_status cli_bench_layers(rt_cli *c, const cli_bench_step *what, rt_pool *pool, double peak) {
    layers l = {.what = what, .c = c, .plan = rt_step_plan(what->step), .peak = peak};
    const size_t n = (size_t)rt_plan_actions(l.plan);
    rt_status st;
    RT_TRY_GOTO(cli_peak_bandwidth(&l.bandwidth, pool, 0.2));
    RT_TRY_GOTO(rt_calloc(&l.now, n, sizeof *l.now));
    RT_TRY_GOTO(rt_calloc(&l.best, n, sizeof *l.best));
    RT_TRY_GOTO(measure(&l));
    RT_TRY_GOTO(add_up(&l));
    st = c->config.json ? print_json(&l) : print_text(&l);
done:
    rt_free(l.now);
    rt_free(l.best);
    rt_free(l.kinds.row);
    rt_free(l.shapes.row);
    return st;
}
