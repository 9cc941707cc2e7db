/*
 * cmd_data.c - retort data: what a data set holds; its rows, whole, divided or distorted, in another form.
 *
 * Writing is a pipe: choose a part (of the training part perhaps what train would keep or validate on),
 * distort it, write it as the form of --out says.
 */
#include "base/alloc.h"
#include "cli/cli.h"
#include "distort/distort.h"
#include "model/run.h"
#include <stdio.h>
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
    const rt_subset all = rt_subset_all(p);
    r->name = name;
    r->part = p;
    r->moments = row.d[0];
    RT_TRY(rt_calloc(&r->counts, (size_t)rt_dataset_classes(d) + 1, sizeof *r->counts));
    RT_TRY(rt_calloc(&r->mean, (size_t)r->moments, sizeof *r->mean));
    RT_TRY(rt_calloc(&r->std, (size_t)r->moments, sizeof *r->std));
    for (int64_t i = 0; p->label && i < p->n; i++)
        r->counts[p->label[i]]++;
    rt_subset_moments(&all, row, r->mean, r->std, &r->target_mean, &r->target_std);
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

static const char *task_name(const rt_dataset *d) {
    return !rt_dataset_labelled(d)                    ? "none"
           : rt_dataset_task(d) == RT_TASK_REGRESSION ? "regression"
                                                      : "classification";
}

static bool has_classes(const rt_dataset *d) {
    return rt_dataset_labelled(d) && rt_dataset_task(d) == RT_TASK_CLASSIFICATION;
}

static void json_part(rt_json *j, const part_report *r, const rt_dataset *d) {
    rt_json_object_begin(j, r->name);
    rt_json_i64(j, "rows", r->part->n);
    if (has_classes(d)) {
        rt_json_i64s(j, "class_rows", r->counts, rt_dataset_classes(d));
    } else if (rt_dataset_labelled(d)) {
        rt_json_f64(j, "target_mean", r->target_mean);
        rt_json_f64(j, "target_std", r->target_std);
    }
    rt_json_f64s(j, "mean", r->mean, r->moments);
    rt_json_f64s(j, "std", r->std, r->moments);
    rt_json_object_end(j);
}

static rt_status print_json(rt_cli *c, const rt_dataset *d, const part_report *parts, int n) {
    rt_json j;
    rt_shape row = rt_dataset_row(d);
    cli_json_begin(c, &j);
    rt_json_str(&j, "kind", "data");
    rt_json_str(&j, "data", rt_dataset_spec(d));
    rt_json_str(&j, "task", task_name(d));
    cli_json_shape(&j, "row", &row);
    if (has_classes(d)) {
        rt_json_array_begin(&j, "classes");
        for (int64_t k = 0; k < rt_dataset_classes(d); k++)
            rt_json_str(&j, NULL, rt_dataset_class_name(d, k));
        rt_json_array_end(&j);
    }
    if (rt_dataset_columns(d) > 0)
        cli_columns_json(d, &j);
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
    cli_table_init(&t, "ll", "data|");
    cli_table_cell(&t, "spec");
    cli_table_cell(&t, "%s", rt_dataset_spec(d));
    cli_table_cell(&t, "task");
    if (rt_dataset_labelled(d) && rt_dataset_classes(d) > 0)
        cli_table_cell(&t, "classification, %lld classes", (long long)rt_dataset_classes(d));
    else
        cli_table_cell(&t, "%s",
                       rt_dataset_labelled(d) ? task_name(d) : "none: rows without labels, to be predicted");
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
    if (rt_dataset_labelled(d) && !has_classes(d)) {
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
    rt_str *out = &c->out;
    rt_status st = parts_init(parts, &n, d);
    if (st == RT_OK && c->config.json) {
        st = print_json(c, d, parts, n);
    } else if (st == RT_OK) {
        text_head(d, parts, n, out, c->term.colour_out);
        if (has_classes(d) && n > 0)
            text_classes(d, parts, n, out, c->term.colour_out);
        if (n > 0 && rt_dataset_columns(d) > 0)
            cli_columns_print(d, parts[0].mean, parts[0].std, out, c->term.colour_out);
        else if (n > 0)
            text_moments(d, &parts[0], out, c->term.colour_out);
        st = cli_print(out);
    }
    part_deinit(&parts[0]);
    part_deinit(&parts[1]);
    return st;
}

/* ---- writing ---- */

typedef struct selection {
    const rt_part *part;
    const char *name;
    rt_subset train, valid; /* of --valid */
    rt_part divided;        /* rows of one of them */
    rt_part distorted;
} selection;

static void selection_deinit(selection *s) {
    rt_subset_deinit(&s->train);
    rt_subset_deinit(&s->valid);
    rt_part_free(&s->distorted);
    rt_part_free_copy(&s->divided);
}

/* The part that the flags name; the only part of a source stands for both. */
static rt_status select_part(rt_cli *c, const rt_dataset *d, selection *s) {
    const rt_config *k = &c->config;
    const rt_part *train = rt_dataset_train(d), *test = rt_dataset_test(d);
    const bool told = rt_config_is_set(k, "part"), divide = rt_config_is_set(k, "valid");
    s->name = !told && (k->corrupt || k->shift) && !divide ? "test" : k->part;
    const bool valid = strcmp(s->name, "valid") == 0, is_test = strcmp(s->name, "test") == 0;
    RT_FAIL_IF(is_test && divide, RT_E_USAGE,
               "--valid divides the training part: --part train or --part valid");
    s->part = is_test || train->n == 0 ? test : train;
    if (is_test && test == train)
        RT_TRY(cli_no_test_rows(c, d));
    RT_FAIL_IF(s->part->n < 1 || (told && !is_test && train->n == 0), RT_E_INPUT, "%s has no %s rows",
               rt_dataset_spec(d), is_test ? "test" : "training");
    if (!divide && !valid)
        return RT_OK;
    RT_TRY(rt_split_rows(k, d, &s->train, &s->valid));
    const rt_subset *chosen = valid ? &s->valid : &s->train;
    RT_FAIL_IF(chosen->n < 1, RT_E_USAGE, "--valid %g leaves no %s rows", k->valid, s->name);
    RT_TRY(rt_subset_copy(&s->divided, chosen, rt_dataset_row(d)));
    s->part = &s->divided;
    return RT_OK;
}

/* "rotate:45" */
static rt_status shift_parse(const char *text, const rt_shift **kind, double *amount) {
    char name[32];
    const char *colon = strchr(text, ':');
    RT_FAIL_IF(!colon || (size_t)(colon - text) >= sizeof name ||
                   !rt_parse_f64(colon + 1, strlen(colon + 1), false, amount),
               RT_E_USAGE, "--shift: '%s', wanted NAME:AMOUNT such as rotate:45", text);
    snprintf(name, sizeof name, "%.*s", (int)(colon - text), text);
    return rt_shift_find(kind, name);
}

static rt_status distort(rt_cli *c, const rt_dataset *d, selection *s) {
    const rt_config *k = &c->config;
    rt_distortion *how = NULL;
    rt_pool *pool = NULL;
    rt_status st = RT_OK;
    if (k->corrupt) {
        const rt_corruption *kind = NULL;
        RT_TRY(rt_corruption_find(&kind, k->corrupt));
        RT_TRY(rt_distortion_corrupt(&how, kind, (int)k->severity, rt_dataset_row(d), (uint64_t)k->seed));
        st = k->frost ? rt_distortion_photographs(how, k->frost) : RT_OK;
        if (st != RT_OK) {
            rt_distortion_destroy(&how);
            return st;
        }
    } else if (k->shift) {
        const rt_shift *kind = NULL;
        double amount = 0;
        RT_TRY(shift_parse(k->shift, &kind, &amount));
        RT_TRY(rt_distortion_shift(&how, kind, amount, rt_dataset_row(d)));
    } else {
        return RT_OK;
    }
    RT_TRY_GOTO(cli_pool_create(c, &pool));
    RT_TRY_GOTO(rt_distortion_part(how, s->part, pool, &s->distorted));
    s->part = &s->distorted;
done:
    rt_pool_destroy(&pool);
    rt_distortion_destroy(&how);
    return st;
}

static rt_status write_rows(rt_cli *c, const rt_dataset *d) {
    const rt_config *k = &c->config;
    char rows[32], more[32];
    const rt_part *train = rt_dataset_train(d), *test = rt_dataset_test(d);
    const bool one = rt_config_is_set(k, "part") || rt_config_is_set(k, "valid") || k->corrupt || k->shift;
    if (rt_dataset_write_takes_two(k->out) && !one && train->n > 0 && test->n > 0 && train != test) {
        RT_TRY(rt_dataset_write(d, train, test, k->out));
        cli_say(&c->term, "%s: %s train and %s test rows of %s", k->out, cli_count(rows, train->n),
                cli_count(more, test->n), rt_dataset_spec(d));
        return RT_OK;
    }
    selection s = {0};
    rt_status st = select_part(c, d, &s);
    if (st == RT_OK)
        st = distort(c, d, &s);
    if (st == RT_OK) {
        const bool is_test = strcmp(s.name, "test") == 0;
        st = rt_dataset_write(d, is_test ? NULL : s.part, is_test ? s.part : NULL, k->out);
    }
    if (st == RT_OK)
        cli_say(&c->term, "%s: %s rows of %s%s%s%s", k->out, cli_count(rows, s.part->n), rt_dataset_spec(d),
                k->corrupt || k->shift ? ", " : "", k->corrupt ? k->corrupt : "", k->shift ? k->shift : "");
    selection_deinit(&s);
    return st;
}

static rt_status check_flags(const rt_config *k) {
    RT_FAIL_IF(k->corrupt && k->shift, RT_E_USAGE, "--corrupt and --shift: one of them at a time");
    RT_FAIL_IF(!k->out && (k->corrupt || k->shift), RT_E_USAGE,
               "--%s makes images, which need a place: --out X.npy,Y.npy, idx:DIR or images:DIR",
               k->corrupt ? "corrupt" : "shift");
    RT_FAIL_IF(!k->out && rt_config_is_set(k, "valid"), RT_E_USAGE,
               "--valid divides rows that are written: --out is missing");
    RT_FAIL_IF(!k->corrupt && rt_config_is_set(k, "severity"), RT_E_USAGE,
               "--severity is that of --corrupt NAME");
    return RT_OK;
}

rt_status cli_describe_data(rt_cli *c, const char *spec) {
    rt_dataset *d = NULL;
    rt_status st;
    RT_TRY(check_flags(&c->config));
    rt_config_new_splits(&c->config);
    RT_TRY_GOTO(rt_dataset_open(&d, spec, rt_config_data(&c->config)));
    rt_config_name_splits(&c->config, d);
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
