/*
 * cmd_data.c - retort data: what a data set holds, and its rows as CSV.
 */
#include "base/alloc.h"
#include "cli/cli.h"
#include <string.h>

enum { MOMENTS_SHOWN = 16 };

typedef struct part_report {
    const char *name;
    const rt_part *part;
    int64_t *counts; /* per class */
    double *mean, *std;
    int64_t moments;
    double target_mean, target_std;
} part_report;

static rt_status part_init(part_report *r, const char *name, const rt_part *p, const rt_dataset *d) {
    rt_shape row = rt_dataset_row(d);
    rt_subset all = {0};
    r->name = name;
    r->part = p;
    r->moments = row.d[0];
    RT_TRY(rt_calloc(&r->counts, (size_t)rt_dataset_classes(d) + 1, sizeof *r->counts));
    RT_TRY(rt_calloc(&r->mean, (size_t)r->moments, sizeof *r->mean));
    RT_TRY(rt_calloc(&r->std, (size_t)r->moments, sizeof *r->std));
    for (int64_t i = 0; p->label && i < p->n; i++)
        r->counts[p->label[i]]++;
    RT_TRY(rt_subset_all(&all, p));
    rt_subset_moments(&all, row, r->mean, r->std, &r->target_mean, &r->target_std);
    rt_subset_deinit(&all);
    return RT_OK;
}

static void part_deinit(part_report *r) {
    rt_free(r->counts);
    rt_free(r->mean);
    rt_free(r->std);
}

/* The parts that have rows; the only part of a source is its test part. */
static rt_status parts_init(part_report out[2], int *n, const rt_dataset *d) {
    const rt_part *train = rt_dataset_train(d), *test = rt_dataset_test(d);
    int count = 0;
    if (train->n > 0) {
        RT_TRY(part_init(&out[0], "train", train, d));
        count = 1;
    }
    if (test->n > 0 && test != train) {
        RT_TRY(part_init(&out[count], count ? "test" : "all", test, d));
        count++;
    }
    *n = count;
    return RT_OK;
}

static void json_part(rt_json *j, const part_report *r, const rt_dataset *d) {
    rt_json_object_begin(j, r->name);
    rt_json_i64(j, "rows", r->part->n);
    if (rt_dataset_task(d) == RT_TASK_CLASSIFICATION) {
        rt_json_array_begin(j, "class_rows");
        for (int64_t k = 0; k < rt_dataset_classes(d); k++)
            rt_json_i64(j, NULL, r->counts[k]);
        rt_json_array_end(j);
    } else {
        rt_json_f64(j, "target_mean", r->target_mean);
        rt_json_f64(j, "target_std", r->target_std);
    }
    rt_json_array_begin(j, "mean");
    for (int64_t i = 0; i < r->moments; i++)
        rt_json_f64(j, NULL, r->mean[i]);
    rt_json_array_end(j);
    rt_json_array_begin(j, "std");
    for (int64_t i = 0; i < r->moments; i++)
        rt_json_f64(j, NULL, r->std[i]);
    rt_json_array_end(j);
    rt_json_object_end(j);
}

static rt_status print_json(rt_cli *c, const rt_dataset *d, const part_report *parts, int n, rt_str *out) {
    rt_json j;
    rt_shape row = rt_dataset_row(d);
    cli_json_begin(&j, out);
    rt_json_str(&j, "kind", "data");
    rt_json_str(&j, "data", rt_dataset_spec(d));
    rt_json_str(&j, "task", rt_dataset_task(d) == RT_TASK_REGRESSION ? "regression" : "classification");
    cli_json_shape(&j, "row", &row);
    if (rt_dataset_task(d) == RT_TASK_CLASSIFICATION) {
        rt_json_array_begin(&j, "classes");
        for (int64_t k = 0; k < rt_dataset_classes(d); k++)
            rt_json_str(&j, NULL, rt_dataset_class_name(d, k));
        rt_json_array_end(&j);
    }
    rt_json_object_begin(&j, "parts");
    for (int i = 0; i < n; i++)
        json_part(&j, &parts[i], d);
    rt_json_object_end(&j);
    rt_json_str(&j, "sha256", rt_dataset_hash(d));
    if (c->config.out)
        rt_json_str(&j, "out", c->config.out);
    return cli_json_end(c, &j);
}

static void text_head(const rt_dataset *d, const part_report *parts, int n, rt_str *out, bool colour) {
    cli_table t;
    char number[32], shape[32];
    rt_shape row = rt_dataset_row(d);
    bool regression = rt_dataset_task(d) == RT_TASK_REGRESSION;
    cli_table_init(&t, "ll", "data|");
    cli_table_cell(&t, "spec");
    cli_table_cell(&t, "%s", rt_dataset_spec(d));
    cli_table_cell(&t, "task");
    if (regression)
        cli_table_cell(&t, "regression");
    else
        cli_table_cell(&t, "classification, %lld classes", (long long)rt_dataset_classes(d));
    cli_table_cell(&t, "row");
    cli_table_cell(&t, "%s%s", cli_shape(shape, &row),
                   row.rank == 3 ? " (channels x height x width)" : " features");
    for (int i = 0; i < n; i++) {
        cli_table_cell(&t, "%s rows", parts[i].name);
        cli_table_cell(&t, "%s", cli_count(number, parts[i].part->n));
    }
    cli_table_cell(&t, "sha256");
    cli_table_cell(&t, "%s", rt_dataset_hash(d));
    cli_table_print(&t, out, colour);
    cli_table_deinit(&t);
}

static void text_classes(const rt_dataset *d, const part_report *parts, int n, rt_str *out, bool colour) {
    cli_table t;
    char number[32], heads[64] = "class|name";
    for (int i = 0; i < n; i++) {
        strcat(heads, "|");
        strcat(heads, parts[i].name);
    }
    cli_table_init(&t, n == 2 ? "rlrr" : "rlr", heads);
    for (int64_t k = 0; k < rt_dataset_classes(d); k++) {
        cli_table_cell(&t, "%lld", (long long)k);
        cli_table_cell(&t, "%s", rt_dataset_class_name(d, k));
        for (int i = 0; i < n; i++)
            cli_table_cell(&t, "%s", cli_count(number, parts[i].counts[k]));
    }
    rt_str_append_char(out, '\n');
    cli_table_print(&t, out, colour);
    cli_table_deinit(&t);
}

static void text_moments(const rt_dataset *d, const part_report *p, rt_str *out, bool colour) {
    cli_table t;
    rt_shape row = rt_dataset_row(d);
    int64_t shown = RT_MIN(p->moments, MOMENTS_SHOWN);
    cli_table_init(&t, "lrr", row.rank == 3 ? "channel|mean|deviation" : "feature|mean|deviation");
    for (int64_t i = 0; i < shown; i++) {
        cli_table_cell(&t, "%lld", (long long)i);
        cli_table_cell(&t, "%.5g", p->mean[i]);
        cli_table_cell(&t, "%.5g", p->std[i]);
    }
    if (rt_dataset_task(d) == RT_TASK_REGRESSION) {
        cli_table_cell(&t, "target");
        cli_table_cell(&t, "%.5g", p->target_mean);
        cli_table_cell(&t, "%.5g", p->target_std);
    }
    rt_str_append_char(out, '\n');
    cli_table_print(&t, out, colour);
    cli_table_deinit(&t);
    if (shown < p->moments)
        rt_str_appendf(out, "... and %lld more\n", (long long)(p->moments - shown));
}

static rt_status describe(rt_cli *c, const rt_dataset *d) {
    part_report parts[2] = {{0}};
    int n = 0;
    rt_str out;
    rt_str_init(&out);
    rt_status st = parts_init(parts, &n, d);
    if (st == RT_OK && c->config.json) {
        st = print_json(c, d, parts, n, &out);
    } else if (st == RT_OK) {
        text_head(d, parts, n, &out, c->term.colour_out);
        if (rt_dataset_task(d) == RT_TASK_CLASSIFICATION && n > 0)
            text_classes(d, parts, n, &out, c->term.colour_out);
        if (n > 0)
            text_moments(d, &parts[0], &out, c->term.colour_out);
        st = cli_print(&out);
    }
    part_deinit(&parts[0]);
    part_deinit(&parts[1]);
    rt_str_deinit(&out);
    return st;
}

static rt_status write_rows(rt_cli *c, const rt_dataset *d) {
    char rows[32];
    RT_FAIL_IF(!rt_str_ends(c->config.out, ".csv"), RT_E_USAGE,
               "--out: '%s' does not end in .csv, the one format written", c->config.out);
    const rt_part *train = rt_dataset_train(d),
                  *p = strcmp(c->config.part, "train") == 0 && train->n > 0 ? train : rt_dataset_test(d);
    RT_FAIL_IF(p->n < 1, RT_E_INPUT, "%s has no %s rows", rt_dataset_spec(d), c->config.part);
    RT_TRY(rt_dataset_write_csv(d, p, c->config.out));
    cli_say(&c->term, "%s: %s rows of %s", c->config.out, cli_count(rows, p->n), rt_dataset_spec(d));
    return RT_OK;
}

rt_status cli_describe_data(rt_cli *c, const char *spec) {
    rt_dataset *d = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_dataset_open(
        &d, spec, (rt_data_options){.seed = (uint64_t)c->config.seed, .limit = c->config.limit}));
    if (c->config.out)
        RT_TRY_GOTO(write_rows(c, d));
    if (!c->config.out || c->config.json)
        st = describe(c, d);
done:
    rt_dataset_destroy(&d);
    return st;
}

rt_status cli_cmd_data(rt_cli *c) {
    return cli_describe_data(c, c->args[0]);
}
