/*
 * average_rows.c - the rows of an average: trained on by the models, held out by all of them.
 *
 * A run's config.yaml says which rows of its data it held out. The runs must be of the same data and have held
 * out the same rows; the average holds out these, too, and is saved with the settings that lead to them again,
 * so that nothing that judges (the keep decision, greedy-soup, a temperature) ever sees a row that a model was
 * trained on. For a model file without its run this is unknown: then no rows are held out, unless --valid says
 * that some were. The runs also know how their rows were augmented.
 */
#include "average/average_int.h"
#include "base/alloc.h"
#include <string.h>

/* config.yaml of a run, or of the run that a model file lies in. */
static rt_status find_config(char **out, const char *run) {
    char *full = NULL;
    RT_TRY(rt_path_expand(&full, run));
    if (!rt_dir_exists(full)) {
        char *slash = strrchr(full, '/');
        if (slash)
            slash[slash == full] = '\0';
        else
            strcpy(full, ".");
    }
    const rt_status st = rt_path_join(out, full, "config.yaml");
    rt_free(full);
    return st;
}

static rt_status load_configs(rt_average *a, const char *const *runs) {
    RT_TRY(rt_calloc(&a->runs, (size_t)a->nloaded, sizeof *a->runs));
    for (int i = 0; i < a->nloaded; i++) {
        rt_average_origin *r = &a->runs[i];
        char *path = NULL;
        rt_status st;
        r->name = runs[i];
        RT_TRY(rt_config_init(&r->config));
        RT_TRY(find_config(&path, runs[i]));
        r->known = rt_file_exists(path);
        st = r->known ? rt_config_load(&r->config, RT_VERB_ALL, path) : RT_OK;
        rt_free(path);
        RT_TRY(st);
    }
    return RT_OK;
}

static const rt_average_origin *first_known(const rt_average *a) {
    for (int i = 0; i < a->nloaded; i++)
        if (a->runs[i].known)
            return &a->runs[i];
    return NULL;
}

static bool all_known(const rt_average *a) {
    for (int i = 0; i < a->nloaded; i++)
        if (!a->runs[i].known)
            return false;
    return true;
}

/* The settings that decide rows, from the run that is known; what was said otherwise is refused. */
static rt_status take_over(rt_average *a, const rt_average_origin *r) {
    rt_config *c = &a->config;
    const rt_config *from = &r->config;
    const int64_t seed = (int64_t)rt_config_data(from).seed;
    RT_FAIL_IF(rt_config_is_set(c, "limit") && c->limit != from->limit, RT_E_USAGE,
               "--limit %lld: %s was trained with --limit %lld; leave it out", (long long)c->limit, r->name,
               (long long)from->limit);
    RT_FAIL_IF(rt_config_is_set(c, "data-seed") && c->data_seed != seed, RT_E_USAGE,
               "--data-seed %lld: the rows of %s have seed %lld; leave it out", (long long)c->data_seed,
               r->name, (long long)seed);
    c->limit = from->limit;
    c->data_seed = seed;
    if (!rt_config_is_set(c, "test-split"))
        c->test_split = from->test_split;
    return RT_OK;
}

/* Do these settings hold out the rows that were found? who: NULL for the flags of this call. */
static rt_status check_rows(const rt_average *a, const rt_config *c, const char *who, const char *found) {
    rt_subset train = {0}, valid = {0};
    const rt_part *part = rt_dataset_train(a->data);
    rt_status st = rt_run_rows(c, a->data, &train, &valid);
    if (st == RT_OK && !rt_subset_equal(&valid, &a->valid))
        st = who ? rt_error_set(
                       RT_E_INPUT, __FILE__, __LINE__,
                       "%s held out %lld of %lld rows and %s %s%lld: an average of both would be judged by "
                       "rows that one was trained on",
                       found, (long long)a->valid.n, (long long)part->n, who,
                       valid.n == a->valid.n ? "another " : "", (long long)valid.n)
                 : rt_error_set(
                       RT_E_USAGE, __FILE__, __LINE__,
                       "--valid, --valid-split: these are not the %lld rows that %s held out; leave them "
                       "out",
                       (long long)a->valid.n, found);
    rt_subset_deinit(&train);
    rt_subset_deinit(&valid);
    return st;
}

static rt_status check_runs(const rt_average *a, const rt_average_origin *first) {
    const char *hash = rt_dataset_hash(a->data);
    for (int i = 0; i < a->nloaded; i++) {
        const rt_average_origin *r = &a->runs[i];
        if (!r->known)
            continue;
        bool same;
        RT_TRY(rt_model_trained_on(a->loaded[i], hash, &same));
        RT_FAIL_IF(!same, RT_E_INPUT,
                   "%s was not trained on %s%s: --data is what the runs were trained on, with their --limit "
                   "and seed",
                   r->name, a->c->data, i > 0 ? " as the others were" : "");
        RT_TRY(check_rows(a, &r->config, r->name, first->name));
        RT_FAIL_IF(
            !rt_config_is_set(a->c, "augment") && strcmp(r->config.augment, first->config.augment) != 0,
            RT_E_INPUT,
            "%s was trained with --augment %s and %s with %s: say which the average should see (--augment)",
            first->name, first->config.augment, r->name, r->config.augment);
    }
    return RT_OK;
}

/* The rows that all runs held out, and the settings that find them again. */
static rt_status split_as(rt_average *a, const rt_average_origin *first) {
    rt_config given = a->config;
    rt_config *c = &a->config;
    RT_TRY(rt_run_rows(&first->config, a->data, &a->train, &a->valid));
    RT_TRY(check_runs(a, first));
    if (!rt_config_is_set(c, "valid-split") && !rt_config_is_set(c, "valid-shuffle")) {
        given.valid_split = first->config.valid_split;
        given.valid_shuffle = first->config.valid_shuffle;
    }
    if (rt_config_is_set(c, "valid") || rt_config_is_set(c, "valid-split") ||
        rt_config_is_set(c, "valid-shuffle"))
        RT_TRY(check_rows(a, &given, NULL, first->name));
    c->valid = (double)a->valid.n;
    c->valid_split = first->config.valid_split;
    c->valid_shuffle = first->config.valid_shuffle;
    if (!rt_config_is_set(c, "augment"))
        c->augment = first->config.augment;
    return RT_OK;
}

rt_status rt_average_find_rows(rt_average *a, const char *const *runs) {
    rt_config *c = &a->config;
    RT_TRY(load_configs(a, runs));
    const rt_average_origin *first = first_known(a);
    if (first)
        RT_TRY(take_over(a, first));
    else
        rt_config_new_splits(c);
    const rt_data_like like = rt_model_like(a->loaded[0]);
    rt_data_options how = rt_config_data(c);
    how.like = &like;
    RT_TRY(rt_dataset_open(&a->data, c->data, how));
    RT_TRY(rt_dataset_need_labels(a->data, "average"));
    RT_TRY(rt_model_check_data(a->loaded[0], a->data));
    if (first)
        RT_TRY(split_as(a, first));
    if (first && (all_known(a) || rt_config_is_set(c, "valid")))
        return RT_OK;
    if (!rt_config_is_set(c, "valid"))
        c->valid = 0;
    rt_config_name_splits(c, a->data);
    rt_subset_deinit(&a->train);
    rt_subset_deinit(&a->valid);
    return rt_split_rows(c, a->data, &a->train, &a->valid);
}
