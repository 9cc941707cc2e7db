/*
 * assess_valid.c - the temperature of a run, from the rows that it held out itself.
 *
 * The temperature that minimises the likelihood loss of test rows would flatter the model, so there is no way
 * to ask for it. config.yaml of a run says which data it was trained on, how many rows were held out and how
 * they were drawn; the data's hash in the model file says whether it is still that data. If any of this is
 * missing, there is no temperature, and metrics say why.
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include "base/size.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static rt_status no_temperature(rt_subject *u, const char *why) {
    snprintf(u->temperature_reason, sizeof u->temperature_reason, "%s", why);
    return RT_OK;
}

/* Is a failure one of this program rather than a property of the run? */
static bool is_ours(rt_status st) {
    return st == RT_E_MEMORY || st == RT_E_INTERRUPTED;
}

/* Is the data hash in the model's provenance this one? */
static bool trained_on(const rt_model *m, const char *hash) {
    const char *text = rt_model_meta(m, "provenance"), *known;
    rt_jdoc *doc = NULL;
    bool same = false;
    if (text && rt_jdoc_parse(&doc, text, strlen(text), "provenance") == RT_OK)
        same = rt_jval_str(rt_jval_get(rt_jdoc_root(doc), "data_sha256"), &known) && strcmp(known, hash) == 0;
    rt_jdoc_destroy(&doc);
    return same;
}

/* Both parts of a data set, as training reads them; the last one is kept. */
static rt_status open_source(rt_assess_call *s, const char *spec, int64_t seed, int64_t limit) {
    if (s->source && strcmp(s->source_spec, spec) == 0 && s->source_seed == seed && s->source_limit == limit)
        return RT_OK;
    rt_dataset_destroy(&s->source);
    rt_free(s->source_spec);
    s->source_spec = rt_strdup(spec);
    if (!s->source_spec)
        return RT_E_MEMORY;
    s->source_seed = seed;
    s->source_limit = limit;
    return rt_dataset_open(&s->source, spec, (rt_data_options){.seed = (uint64_t)seed, .limit = limit});
}

/* The rows of a subset as a part of their own. */
static rt_status copy_rows(rt_part *out, const rt_subset *set, rt_shape row) {
    const int64_t elems = rt_shape_elems(&row);
    uint8_t *u8 = NULL;
    float *f32 = NULL;
    int32_t *label = NULL;
    size_t all;
    rt_status st = RT_OK;
    *out = (rt_part){.n = set->n};
    if (!rt_size_mul((size_t)set->n, (size_t)elems, &all))
        RT_FAIL_GOTO(RT_E_MEMORY, "validation rows are too large");
    if (set->part->u8)
        RT_TRY_GOTO(rt_calloc(&u8, all + 1, 1));
    else
        RT_TRY_GOTO(rt_calloc(&f32, all + 1, sizeof *f32));
    RT_TRY_GOTO(rt_calloc(&label, (size_t)set->n + 1, sizeof *label));
    for (int64_t i = 0; i < set->n; i++) {
        const int64_t r = set->index[i];
        if (u8)
            memcpy(u8 + i * elems, set->part->u8 + r * elems, (size_t)elems);
        else
            memcpy(f32 + i * elems, set->part->f32 + r * elems, (size_t)elems * sizeof *f32);
        label[i] = set->part->label[r];
    }
    out->u8 = u8;
    out->f32 = f32;
    out->label = label;
    return RT_OK;
done:
    rt_free(u8);
    rt_free(f32);
    return st;
}

static void free_rows(rt_part *p) {
    rt_free((void *)(uintptr_t)p->u8);
    rt_free((void *)(uintptr_t)p->f32);
    rt_free((void *)(uintptr_t)p->label);
}

static rt_status fit(rt_subject *u, const rt_subset *valid) {
    rt_shape row = rt_dataset_row(u->s->source);
    rt_part rows = {0};
    rt_answers y = {0};
    const char *reason = NULL;
    rt_status st;
    RT_TRY_GOTO(copy_rows(&rows, valid, row));
    RT_TRY_GOTO(rt_subject_answer(u, &y, &rows, row, &(rt_answer_how){.what = "validation rows"}));
    RT_TRY_GOTO(rt_eval_temperature(&y.in, &u->temperature, &reason));
    if (reason)
        st = no_temperature(u, reason);
done:
    rt_answers_free(&y);
    free_rows(&rows);
    return st;
}

static rt_status calibrate_by(rt_subject *u, const rt_config *c) {
    if (!c->data)
        return no_temperature(u, "the run's configuration names no data");
    rt_status st = open_source(u->s, c->data, c->seed, c->limit);
    /* Trained elsewhere, under another name of the same data? */
    if (st != RT_OK && !is_ours(st) && strcmp(c->data, u->s->o->data) != 0)
        st = open_source(u->s, u->s->o->data, c->seed, c->limit);
    if (st != RT_OK)
        return is_ours(st) ? st : no_temperature(u, "the data the run was trained on cannot be read");
    if (!trained_on(u->model, rt_dataset_hash(u->s->source)))
        return no_temperature(u, "the data is not what the run was trained on");
    u->source_known = true;
    rt_subset train = {0}, valid = {0};
    st = rt_split_rows(c, rt_dataset_train(u->s->source), &train, &valid);
    if (st == RT_OK)
        st = valid.n > 0 ? fit(u, &valid) : no_temperature(u, "the run held out no validation rows");
    else if (!is_ours(st))
        st = no_temperature(u, "the run's validation rows cannot be found again");
    rt_subset_deinit(&train);
    rt_subset_deinit(&valid);
    return st;
}

rt_status rt_subject_calibrate(rt_subject *u) {
    char *full = NULL, *path = NULL;
    rt_config c = {0};
    rt_status st;
    if (u->regression)
        return no_temperature(u, "regression");
    RT_TRY_GOTO(rt_path_expand(&full, u->name));
    if (!rt_dir_exists(full)) {
        st = no_temperature(u, "a model file does not say which rows were held out");
        goto done;
    }
    RT_TRY_GOTO(rt_path_join(&path, full, "config.yaml"));
    RT_TRY_GOTO(rt_config_init(&c));
    st = rt_config_load(&c, RT_VERB_ALL, path);
    if (st == RT_OK)
        st = calibrate_by(u, &c);
    else if (!is_ours(st))
        st = no_temperature(u, "the run's configuration cannot be read");
done:
    rt_config_deinit(&c);
    rt_free(path);
    rt_free(full);
    return st;
}
