/*
 * splits.c - which rows of a data set a run tests and validates on, and how others find the same rows again.
 *
 * Two parameters name the way (data/split.c has the ways): test-split for sources that have no test part of their own,
 * valid-split for the validation rows. Rows are drawn by the seed of the SPEC, not of the run: whatever is trained on
 * one SPEC holds out the same rows, and members of several runs can be averaged, distilled and compared.
 *
 *     not set   runs of older versions: test rows at random; the last rows for validation (or random by the seed of the
 *               run, with valid-shuffle)
 *     auto      stratified; for validation the last rows where they stand in a published order, and those the source
 *               itself has for it (val/ of pictures), unless --valid asks for others. A run that begins writes down in
 *               its configuration which it was, and nothing where it could only be the old way
 */
#include "base/alloc.h"
#include "model/model_int.h"
#include <math.h>
#include <string.h>

static const char AUTO[] = "auto";

static bool is_auto(const char *split) {
    return split && strcmp(split, AUTO) == 0;
}

void rt_config_new_splits(rt_config *c) {
    if (!c->test_split)
        c->test_split = AUTO;
    if (!c->valid_split)
        c->valid_split = AUTO;
}

static rt_split test_split(const rt_config *c) {
    return !c->test_split           ? RT_SPLIT_RANDOM
           : is_auto(c->test_split) ? RT_SPLIT_STRATIFIED
                                    : rt_split_find(c->test_split);
}

rt_data_options rt_config_data(const rt_config *c) {
    const int64_t seed = c->data_seed >= 0 ? c->data_seed : c->seed;
    return (rt_data_options){.seed = (uint64_t)seed,
                             .limit = c->limit,
                             .split = test_split(c),
                             .older = rt_config_older(c),
                             .skip_broken = c->skip_broken};
}

/* Whether the source's own validation rows are taken: nobody asked for others, or for none. */
static bool takes_own(const rt_config *c, const rt_dataset *d) {
    return rt_dataset_valid_rows(d) > 0 && c->valid > 0 && is_auto(c->valid_split) &&
           !rt_config_is_set(c, "valid") && !rt_config_is_set(c, "valid-shuffle");
}

/* How validation rows are chosen, and by which seed. */
static rt_split valid_split(const rt_config *c, const rt_dataset *d, uint64_t *seed) {
    const bool old = !c->valid_split || (is_auto(c->valid_split) && rt_config_is_set(c, "valid-shuffle"));
    *seed = old ? rt_config_data(c).seed : rt_dataset_split_seed(d);
    if (old)
        return c->valid_shuffle ? RT_SPLIT_RANDOM : RT_SPLIT_LAST;
    if (is_auto(c->valid_split))
        return rt_dataset_ordered(d) ? RT_SPLIT_LAST : RT_SPLIT_STRATIFIED;
    return rt_split_find(c->valid_split);
}

void rt_config_name_splits(rt_config *c, const rt_dataset *d) {
    uint64_t seed;
    if (!c->valid_split && !c->test_split)
        return;
    const bool old = rt_dataset_ordered(d) || rt_config_is_set(c, "valid-shuffle");
    if (takes_own(c, d)) {
        c->valid = (double)rt_dataset_valid_rows(d);
        c->valid_split = rt_split_name(RT_SPLIT_LAST);
    } else if (!rt_config_is_set(c, "valid-split")) {
        c->valid_split = old ? NULL : rt_split_name(valid_split(c, d, &seed));
    }
    if (!rt_config_is_set(c, "test-split"))
        c->test_split = rt_dataset_drawn(d) ? rt_split_name(test_split(c)) : NULL;
}

/* The configuration of a run; *found is false if it has none (a model file). */
static rt_status load_run(rt_config *out, bool *found, const char *run) {
    char *dir = NULL, *path = NULL;
    rt_status st = RT_OK;
    *found = false;
    RT_TRY_GOTO(rt_path_expand(&dir, run));
    RT_TRY_GOTO(rt_path_join(&path, dir, "config.yaml"));
    *found = rt_file_exists(path);
    if (*found)
        st = rt_config_load(out, RT_VERB_ALL, path);
done:
    rt_free(path);
    rt_free(dir);
    return st;
}

rt_status rt_run_compare_data(const char *run, const char *data, rt_spec_relation *out, char **own) {
    rt_config c;
    bool found = false;
    *own = NULL;
    *out = RT_SPEC_OTHER;
    RT_TRY(rt_config_init(&c));
    char *dir = rt_strdup(run);
    rt_status st = dir ? load_run(&c, &found, dir) : RT_E_MEMORY;
    char *slash = dir ? strrchr(dir, '/') : NULL;
    if (st == RT_OK && !found && slash) { /* a file of it */
        *slash = 0;
        st = load_run(&c, &found, dir);
    }
    if (st == RT_OK && found && c.data)
        st = rt_spec_compare(out, c.data, data);
    if (st == RT_OK && *out != RT_SPEC_OTHER && !(*own = rt_strdup(c.data)))
        st = RT_E_MEMORY;
    rt_config_deinit(&c);
    rt_free(dir);
    return st;
}

rt_status rt_run_test_split(const char *run, rt_split *out, bool *known) {
    rt_config c;
    RT_TRY(rt_config_init(&c));
    rt_status st = load_run(&c, known, run);
    *out = test_split(&c);
    rt_config_deinit(&c);
    return st;
}

rt_status rt_config_follow_run(rt_config *c, const char *run) {
    rt_split split;
    bool known;
    RT_TRY(rt_run_test_split(run, &split, &known));
    if (known && !rt_config_is_set(c, "test-split"))
        c->test_split = rt_split_name(split);
    return RT_OK;
}

rt_status rt_split_rows(const rt_config *c, const rt_dataset *d, rt_subset *train, rt_subset *valid) {
    const rt_part *p = rt_dataset_train(d);
    uint64_t seed;
    RT_FAIL_IF(p->n == 0, RT_E_INPUT, "%s has no rows to train on", rt_dataset_spec(d));
    double want = c->valid < 1 ? floor(c->valid * (double)p->n + 0.5) : c->valid;
    RT_FAIL_IF(want >= (double)p->n, RT_E_USAGE,
               "--valid: %g validation rows leave nothing of %lld rows to train on", want, (long long)p->n);
    RT_FAIL_IF(want != floor(want), RT_E_USAGE,
               "--valid: %g is neither a fraction below 1 nor a whole number", want);
    const rt_split how = valid_split(c, d, &seed);
    return rt_subset_split(train, valid, p, (int64_t)want, how, seed);
}

rt_status rt_run_rows(const rt_config *c, const rt_dataset *d, rt_subset *train, rt_subset *valid) {
    rt_config as = *c;
    if (c->hyper)
        as.valid = 0;
    return rt_split_rows(&as, d, train, valid);
}

rt_status rt_run_open_valid(rt_dataset **d, rt_subset *train, rt_subset *valid, const char *run,
                            const char *data, const rt_data_like *like) {
    rt_config c;
    bool found;
    *d = NULL;
    RT_TRY(rt_config_init(&c));
    rt_status st;
    RT_TRY_GOTO(load_run(&c, &found, run));
    if (!found || !(data || c.data))
        RT_FAIL_GOTO(RT_E_USAGE, "%s: which rows were held out for validation is known of a run only", run);
    rt_data_options o = rt_config_data(&c);
    o.like = like;
    RT_TRY_GOTO(rt_dataset_open(d, data ? data : c.data, o));
    st = rt_run_rows(&c, *d, train, valid);
done:
    rt_config_deinit(&c);
    return st;
}
