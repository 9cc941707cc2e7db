/*
 * predict_input.c - the rows that `retort predict` reads, and what they are called.
 *
 *     predict RUN FILE...                  all rows of the files, with labels or without
 *     predict RUN --data SPEC              its test part (the only one, with a word, where there is no other);
 *                                          --part train: its training part
 *     predict RUN --part valid             the rows that the run held out, of the data it was trained on (or --data)
 *
 * Data is opened for the model: pictures in its size and colours, classes by its names.
 */
#include "base/alloc.h"
#include "cli/cli.h"
#include "model/model.h"
#include "model/run.h"
#include <stdio.h>
#include <string.h>

static rt_status open_valid(cli_input *in, const rt_config *k, const char *run, const rt_model *m,
                            const rt_data_like *like) {
    RT_TRY(rt_run_open_valid(&in->data, &in->train, &in->valid, run, k->data, like));
    bool same;
    RT_TRY(rt_model_trained_on(m, rt_dataset_hash(in->data), &same));
    RT_FAIL_IF(!same, RT_E_INPUT,
               "%s is not what %s was trained on: there is no telling which rows it held out",
               rt_dataset_spec(in->data), run);
    RT_FAIL_IF(in->valid.n < 1, RT_E_USAGE, "%s held out no rows for validation", run);
    if (k->limit > 0)
        in->valid.n = RT_MIN(in->valid.n, k->limit);
    RT_TRY(rt_subset_copy(&in->copy, &in->valid, rt_dataset_row(in->data)));
    in->part = &in->copy;
    return RT_OK;
}

rt_status cli_no_test_rows(rt_cli *c, const rt_dataset *d) {
    char text[512], count[32];
    const char *spec = rt_dataset_spec(d);
    RT_FAIL_IF(rt_config_is_set(&c->config, "part"), RT_E_USAGE,
               "--part test: %s has no test rows; --part train takes those it has", spec);
    snprintf(text, sizeof text, "%.400s has no test rows; these are its %s training rows", spec,
             cli_count(count, rt_dataset_train(d)->n));
    cli_warn(&c->term, text);
    return RT_OK;
}

static rt_status open_part(cli_input *in, rt_cli *c, const rt_data_like *like, bool train) {
    rt_config *k = &c->config;
    rt_config_new_splits(k);
    RT_TRY(rt_config_follow_run(k, c->args[0]));
    rt_data_options o = rt_config_data(k);
    o.test_only = !train;
    o.like = like;
    if (c->nargs > 1)
        RT_TRY(rt_dataset_open_files(&in->data, c->args + 1, c->nargs - 1, o));
    else
        RT_TRY(rt_dataset_open(&in->data, k->data, o));
    in->part = train ? rt_dataset_train(in->data) : rt_dataset_test(in->data);
    if (!train && in->part == rt_dataset_train(in->data))
        RT_TRY(cli_no_test_rows(c, in->data));
    RT_FAIL_IF(in->part->n < 1, RT_E_INPUT, "%s has no %s rows", rt_dataset_spec(in->data),
               train ? "training" : "test");
    return RT_OK;
}

rt_status cli_input_open(cli_input *in, rt_cli *c, const rt_model *m) {
    const rt_config *k = &c->config;
    const char *part = rt_config_is_set(k, "part") ? k->part : "test";
    const bool valid = strcmp(part, "valid") == 0;
    const rt_data_like like = rt_model_like(m);
    memset(in, 0, sizeof *in);
    RT_FAIL_IF(c->nargs > 1 && (k->data || rt_config_is_set(k, "part")), RT_E_USAGE,
               "files are predicted whole: --data and --part are for data sets");
    RT_FAIL_IF(c->nargs < 2 && !k->data && !valid, RT_E_USAGE, "predict needs FILE... or --data SPEC");
    if (valid)
        RT_TRY(open_valid(in, k, c->args[0], m, &like));
    else
        RT_TRY(open_part(in, c, &like, strcmp(part, "train") == 0));
    return rt_model_check_data(m, in->data);
}

void cli_input_close(cli_input *in) {
    rt_subset_deinit(&in->train);
    rt_subset_deinit(&in->valid);
    rt_part_free_copy(&in->copy);
    rt_dataset_destroy(&in->data);
}

int64_t cli_input_row(const cli_input *in, int64_t i) {
    return in->part == &in->copy ? rt_subset_row(&in->valid, i) : i;
}

const char *cli_input_name(const cli_input *in, int64_t i) {
    const rt_part *p = in->part == &in->copy ? in->valid.part : in->part;
    return rt_dataset_row_name(in->data, p, cli_input_row(in, i));
}

bool cli_input_named(const cli_input *in) {
    return in->part->n > 0 && cli_input_name(in, 0);
}

bool cli_input_labelled(const cli_input *in) {
    return in->part->label || in->part->target;
}
