/*
 * held_out.c - the rows that a run held out itself, found again.
 *
 * config.yaml of a run says which data it was trained on, how many rows were held out and how they were drawn;
 * the data's hash in the model file says whether it is still that data. If any of this is missing there are no
 * such rows, and the reason says why: what is fitted to a run's predictions is fitted to these rows or not at
 * all.
 */
#include "base/alloc.h"
#include "model/model_int.h"
#include <string.h>

/* Is a failure one of this program rather than a property of the run? */
static bool is_ours(rt_status st) {
    return st == RT_E_MEMORY || st == RT_E_INTERRUPTED;
}

static rt_status none(rt_held_out *h, const char *why) {
    h->reason = why;
    return RT_OK;
}

/* Both parts of a data set, as training reads them. Many runs are of the same data: it is read once. */
static rt_status open_data(rt_held_out *h, const char *spec, rt_data_options o) {
    const rt_data_options *k = &h->options;
    if (h->data && strcmp(h->spec, spec) == 0 && k->seed == o.seed && k->limit == o.limit &&
        k->split == o.split)
        return RT_OK;
    rt_dataset_destroy(&h->data);
    rt_free(h->spec);
    h->spec = rt_strdup(spec);
    if (!h->spec)
        return RT_E_MEMORY;
    h->options = o;
    return rt_dataset_open(&h->data, spec, o);
}

static rt_status find_rows(rt_held_out *h, const rt_config *c, const rt_model *m, const char *other) {
    if (!c->data)
        return none(h, "the run's configuration names no data");
    rt_status st = open_data(h, c->data, rt_config_data(c));
    /* Trained elsewhere, under another name of the same data? */
    if (st != RT_OK && !is_ours(st) && other && strcmp(c->data, other) != 0)
        st = open_data(h, other, rt_config_data(c));
    if (st != RT_OK)
        return is_ours(st) ? st : none(h, "the data the run was trained on cannot be read");
    st = rt_dataset_encode_as(h->data, rt_model_like(m).table);
    if (is_ours(st))
        return st;
    bool same = false;
    if (st == RT_OK)
        RT_TRY(rt_model_trained_on(m, rt_dataset_hash(h->data), &same));
    if (!same)
        return none(h, "the data is not what the run was trained on");
    h->known = true;
    rt_subset train = {0}, valid = {0};
    st = rt_run_rows(c, h->data, &train, &valid);
    if (st == RT_OK && valid.n > 0)
        st = rt_subset_copy(&h->rows, &valid, rt_dataset_row(h->data));
    else if (st == RT_OK)
        st = none(h, c->hyper ? "no held-out rows: a hyper ensemble is retrained on all rows"
                              : "the run held out no validation rows");
    else if (!is_ours(st))
        st = none(h, "the run's validation rows cannot be found again");
    rt_subset_deinit(&train);
    rt_subset_deinit(&valid);
    return st;
}

rt_status rt_held_out_find(rt_held_out *h, const char *run, const rt_model *m, const char *other) {
    char *full = NULL, *path = NULL;
    rt_config c = {0};
    bool dir;
    rt_status st;
    rt_part_free_copy(&h->rows);
    h->known = false;
    h->reason = NULL;
    RT_TRY_GOTO(rt_path_expand(&full, run));
    RT_TRY_GOTO(rt_dir_find(full, &dir));
    if (!dir) {
        st = none(h, "a model file does not say which rows were held out");
        goto done;
    }
    RT_TRY_GOTO(rt_path_join(&path, full, "config.yaml"));
    RT_TRY_GOTO(rt_config_init(&c));
    st = rt_config_load(&c, RT_VERB_ALL, path);
    if (st == RT_OK)
        st = find_rows(h, &c, m, other);
    else if (!is_ours(st))
        st = none(h, "the run's configuration cannot be read");
done:
    rt_config_deinit(&c);
    rt_free(path);
    rt_free(full);
    return st;
}

void rt_held_out_deinit(rt_held_out *h) {
    rt_part_free_copy(&h->rows);
    rt_dataset_destroy(&h->data);
    rt_free(h->spec);
    *h = (rt_held_out){0};
}
