/*
 * cmd_eval.c - retort eval: metrics of runs on the test part of a data set.
 *
 * An ensemble is judged as one predictor (the mean of its members' probabilities, or the mixture of their
 * Gaussians), and beside it stand its members judged alone: their mean, least and greatest value. Parameters
 * and FLOP are those of the whole ensemble.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "cli/cli.h"
#include "eval/eval.h"
#include <math.h>
#include <string.h>

enum { METRICS_MAX = 32 };

typedef struct scores {
    double value[METRICS_MAX];
    const char *reason[METRICS_MAX];
} scores;

typedef struct run_report {
    const char *name;
    int members;
    int64_t rows, parameters;
    double flops;
    bool regression, dirichlet;
    double dirichlet_offset;
    scores all, mean, least, greatest; /* the ensemble; its members alone */
} run_report;

typedef struct report {
    run_report *runs;
    int nruns;
    const rt_metric_info *metrics;
    int nmetrics;
} report;

/* ---- computing ---- */

/* Columns [first, first + count) of the members of the predictions (n, m, k), as the evaluator wants them. */
static rt_status score(scores *out, const rt_part *p, const float *y, int64_t m, int64_t k,
                       const run_report *r, int64_t first, int64_t count) {
    float *part = NULL;
    size_t floats;
    int64_t n = p->n;
    rt_status st;
    RT_FAIL_IF(!rt_size_mul((size_t)(n * count), (size_t)k, &floats), RT_E_MEMORY,
               "predictions are too large");
    RT_TRY_GOTO(rt_calloc(&part, floats + 1, sizeof(float)));
    const bool regression = r->regression;
    rt_eval_input in = {.regression = regression,
                        .n = n,
                        .m = count,
                        .k = k,
                        .dirichlet = r->dirichlet,
                        .dirichlet_offset = r->dirichlet_offset,
                        .label = p->label,
                        .target = p->target};
    if (regression) {
        in.mu = part;
        in.var = part + n * count;
    } else {
        in.logits = part;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < count; j++) {
            const float *src = y + (i * m + first + j) * k;
            if (!regression) {
                memcpy(part + (i * count + j) * k, src, (size_t)k * sizeof(float));
                continue;
            }
            part[i * count + j] = src[0];
            part[n * count + i * count + j] = src[1];
        }
    }
    st = rt_eval_all(&in, out->value, out->reason);
done:
    rt_free(part);
    return st;
}

static rt_status score_members(run_report *r, const rt_part *p, const float *y, int64_t k, int nmetrics) {
    for (int i = 0; i < nmetrics; i++) {
        r->mean.value[i] = 0;
        r->least.value[i] = INFINITY;
        r->greatest.value[i] = -INFINITY;
    }
    for (int m = 0; m < r->members; m++) {
        scores one;
        RT_TRY(score(&one, p, y, r->members, k, r, m, 1));
        for (int i = 0; i < nmetrics; i++) {
            r->mean.value[i] += one.value[i] / r->members;
            r->least.value[i] = one.value[i] < r->least.value[i] ? one.value[i] : r->least.value[i];
            r->greatest.value[i] = one.value[i] > r->greatest.value[i] ? one.value[i] : r->greatest.value[i];
            r->mean.reason[i] = r->least.reason[i] = r->greatest.reason[i] = one.reason[i];
        }
    }
    return RT_OK;
}

static rt_status evaluate(run_report *r, rt_cli *c, const rt_dataset *d, rt_pool *pool, int nmetrics) {
    rt_model *model = NULL;
    float *y = NULL;
    rt_status st;
    const rt_part *part = rt_dataset_test(d);
    RT_TRY_GOTO(rt_model_load(&model, r->name));
    rt_model_set_batch(model, c->config.batch);
    st = rt_model_check_data(model, d);
    if (st != RT_OK) {
        st = rt_error_prefix(st, "%s", r->name);
        goto done;
    }
    if (part->n < 1)
        RT_FAIL_GOTO(RT_E_INPUT, "%s has no rows to evaluate on", c->config.data);
    r->members = rt_model_members(model);
    r->rows = part->n;
    r->regression = rt_model_task(model) == RT_TASK_REGRESSION;
    r->dirichlet = rt_model_output_kind(model, &r->dirichlet_offset) == RT_OUTPUT_DIRICHLET;
    r->parameters = rt_model_networks(model) * rt_params_trainable(rt_model_params(model));
    r->flops = rt_model_networks(model) * rt_student_flops(rt_model_student(model));
    int64_t k = rt_model_outputs(model), outputs;
    if (!rt_i64_mul(part->n, r->members * k, &outputs))
        RT_FAIL_GOTO(RT_E_MEMORY, "predictions of %s are too large", r->name);
    RT_TRY_GOTO(rt_calloc(&y, (size_t)outputs, sizeof(float)));
    RT_TRY_GOTO(rt_model_predict(model, part, pool, y, cli_stop()));
    RT_TRY_GOTO(score(&r->all, part, y, r->members, k, r, 0, r->members));
    if (r->members > 1)
        RT_TRY_GOTO(score_members(r, part, y, k, nmetrics));
done:
    rt_free(y);
    rt_model_destroy(&model);
    return st;
}

/* ---- printing ---- */

/* Of single members, what is not defined (their disagreement) is left out. */
static void json_scores(rt_json *j, const report *t, const run_report *r, const scores *s, bool single) {
    for (int i = 0; i < t->nmetrics; i++)
        if (t->metrics[i].regression == r->regression && !(single && !isfinite(s->value[i])))
            rt_json_f64_or(j, t->metrics[i].name, s->value[i], s->reason[i] ? s->reason[i] : "not finite");
}

static void json_single(rt_json *j, const report *t, const run_report *r, const char *key, const scores *s) {
    rt_json_object_begin(j, key);
    json_scores(j, t, r, s, true);
    rt_json_object_end(j);
}

static rt_status print_json(rt_cli *c, const report *t, rt_str *out) {
    rt_json j;
    cli_json_begin(&j, out);
    rt_json_str(&j, "data", c->config.data);
    rt_json_array_begin(&j, "runs");
    for (int i = 0; i < t->nruns; i++) {
        const run_report *r = &t->runs[i];
        rt_json_object_begin(&j, NULL);
        rt_json_str(&j, "run", r->name);
        rt_json_i64(&j, "parameters", r->parameters);
        rt_json_f64(&j, "flops", r->flops);
        rt_json_i64(&j, "members", r->members);
        rt_json_object_begin(&j, "sets");
        rt_json_object_begin(&j, "test");
        rt_json_i64(&j, "rows", r->rows);
        json_scores(&j, t, r, &r->all, false);
        if (r->members > 1) {
            json_single(&j, t, r, "single", &r->mean);
            json_single(&j, t, r, "single_min", &r->least);
            json_single(&j, t, r, "single_max", &r->greatest);
        }
        rt_json_object_end(&j);
        rt_json_object_end(&j);
        rt_json_object_end(&j);
    }
    rt_json_array_end(&j);
    return cli_json_end(c, &j);
}

static void text_row(cli_table *t, const report *r, const run_report *run, const char *name,
                     const char *members, const scores *s, bool cost) {
    char number[32];
    cli_table_cell(t, "%s", name);
    cli_table_cell(t, "%s", members);
    cli_table_cell(t, "%s", cost ? cli_si(number, (double)run->parameters) : "");
    cli_table_cell(t, "%s", cost ? cli_si(number, run->flops) : "");
    for (int i = 0, column = 4; i < r->nmetrics && column < CLI_TABLE_COLUMNS; i++) {
        if (r->metrics[i].regression != run->regression)
            continue;
        column++;
        if (isfinite(s->value[i]))
            cli_table_cell(t, "%.4f", s->value[i]);
        else
            cli_table_cell(t, "-");
    }
}

/* Names that would make a column wider than its numbers. */
static const char *short_name(const char *name) {
    return strcmp(name, "mutual_information") == 0 ? "mut.inf"
           : strcmp(name, "disagreement") == 0     ? "disagree"
                                                   : name;
}

/* Runs of the same task share a table, of as many metrics as it has columns for. */
static void text_task(rt_cli *c, const report *r, bool regression, rt_str *out) {
    cli_table t;
    char align[CLI_TABLE_COLUMNS + 1] = "lrrr", members[32];
    rt_str heads;
    bool any = false;
    rt_str_init(&heads);
    rt_str_append(&heads, "run|members|params|FLOP");
    for (int i = 0; i < r->nmetrics; i++) {
        size_t n = strlen(align);
        if (r->metrics[i].regression != regression || n >= CLI_TABLE_COLUMNS)
            continue;
        rt_str_appendf(&heads, "|%s", short_name(r->metrics[i].name));
        align[n] = 'r';
        align[n + 1] = 0;
    }
    cli_table_init(&t, align, rt_str_text(&heads));
    for (int i = 0; i < r->nruns; i++) {
        const run_report *run = &r->runs[i];
        if (run->regression != regression)
            continue;
        any = true;
        text_row(&t, r, run, run->name, cli_count(members, run->members), &run->all, true);
        if (run->members == 1)
            continue;
        text_row(&t, r, run, "  alone: mean", "", &run->mean, false);
        text_row(&t, r, run, "         least", "", &run->least, false);
        text_row(&t, r, run, "         greatest", "", &run->greatest, false);
    }
    if (any)
        cli_table_print(&t, out, c->term.colour_out);
    cli_table_deinit(&t);
    rt_str_deinit(&heads);
}

rt_status cli_cmd_eval(rt_cli *c) {
    report r = {.nruns = c->nargs};
    rt_dataset *d = NULL;
    rt_pool *pool = NULL;
    rt_str out;
    rt_str_init(&out);
    rt_status st;
    RT_TRY_GOTO(cli_require(c, "data", c->config.data));
    r.nmetrics = rt_metric_list(&r.metrics);
    RT_ASSERT(r.nmetrics <= METRICS_MAX);
    RT_TRY_GOTO(rt_calloc(&r.runs, (size_t)r.nruns, sizeof *r.runs));
    RT_TRY_GOTO(cli_pool_create(c, &pool));
    RT_TRY_GOTO(rt_dataset_open(
        &d, c->config.data,
        (rt_data_options){.seed = (uint64_t)c->config.seed, .limit = c->config.limit, .test_only = true}));
    for (int i = 0; i < r.nruns; i++) {
        r.runs[i].name = c->args[i];
        RT_TRY_GOTO(evaluate(&r.runs[i], c, d, pool, r.nmetrics));
    }
    if (c->config.json) {
        st = print_json(c, &r, &out);
    } else {
        text_task(c, &r, false, &out);
        text_task(c, &r, true, &out);
        st = cli_print(&out);
    }
done:
    rt_str_deinit(&out);
    rt_dataset_destroy(&d);
    rt_pool_destroy(&pool);
    rt_free(r.runs);
    return st;
}
