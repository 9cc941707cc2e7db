/*
 * model_decision.c - the decision that `retort calibrate` fitted, in a model's metadata.
 *
 *     decision   {"members":8,"temperature":1.7,"temperature_of":"mean",
 *                 "reject":{"measure":"entropy","threshold":0.9,...},
 *                 "conformal":{"kind":"lac","alpha":0.1,"quantile":0.83,...},...}
 *
 * Other keys say how it was fitted and are for people. An ensemble has it in its first file, so that storing it is
 * one atomic write; a file of it that is used alone has another number of members, and no decision. The threshold
 * of "confidence" is a confidence, below which rows are rejected; inside, measures are uncertainties.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "model/model_int.h"
#include <math.h>
#include <string.h>

static rt_status bad(const char *what) {
    RT_FAIL(RT_E_INPUT, "the model's decision has %s; 'retort calibrate' writes it anew", what);
}

static rt_status read_reject(rt_decision *d, rt_jval v, bool regression) {
    const char *name;
    if (v == NULL)
        return RT_OK;
    if (!rt_jval_str(rt_jval_get(v, "measure"), &name) ||
        !rt_jval_f64(rt_jval_get(v, "threshold"), &d->threshold) || !isfinite(d->threshold))
        return bad("a reject rule without measure and threshold");
    d->measure = rt_measure_find(name, regression);
    if (d->measure < 0)
        return bad("a reject rule by an unknown measure");
    d->threshold = rt_measure_shown(d->measure, d->threshold);
    return RT_OK;
}

static rt_status read_conformal(rt_decision *d, rt_jval v, bool regression) {
    const char *kind;
    if (v == NULL)
        return RT_OK;
    if (!rt_jval_str(rt_jval_get(v, "kind"), &kind) || !rt_jval_f64(rt_jval_get(v, "alpha"), &d->alpha) ||
        !(d->alpha > 0 && d->alpha < 1))
        return bad("a conformal rule without kind and alpha");
    d->conformal = rt_conformal_find(kind);
    if (d->conformal == RT_CONFORMAL_NONE || (d->conformal == RT_CONFORMAL_INTERVAL) != regression)
        return bad("a conformal rule of another kind of model");
    if (!rt_jval_f64(rt_jval_get(v, "quantile"), &d->quantile))
        d->quantile = INFINITY; /* null: too few rows, every class is in the set */
    return d->quantile >= 0 ? RT_OK : bad("a negative quantile");
}

static rt_status read_decision(rt_decision *d, rt_jval root, const rt_model *m) {
    const bool regression = m->task == RT_TASK_REGRESSION;
    const char *of = "mean";
    int64_t members = 0;
    *d = (rt_decision){.measure = -1};
    if (!rt_jval_i64(rt_jval_get(root, "members"), &members) || members < 1)
        return bad("no number of members");
    if (members != rt_model_members(m))
        return RT_OK;
    if (rt_jval_f64(rt_jval_get(root, "temperature"), &d->temperature) &&
        !(d->temperature > 0 && isfinite(d->temperature)))
        return bad("a temperature that is not above zero");
    if (rt_jval_str(rt_jval_get(root, "temperature_of"), &of))
        d->of_members = strcmp(of, "members") == 0;
    RT_TRY(read_reject(d, rt_jval_get(root, "reject"), regression));
    return read_conformal(d, rt_jval_get(root, "conformal"), regression);
}

rt_status rt_model_read_decision(rt_model *m) {
    const char *text = rt_model_meta(m, "decision");
    rt_jdoc *doc = NULL;
    m->decision = (rt_decision){.measure = -1};
    if (text == NULL)
        return RT_OK;
    rt_status st = rt_jdoc_parse(&doc, text, strlen(text), "decision");
    if (st == RT_OK)
        st = read_decision(&m->decision, rt_jdoc_root(doc), m);
    rt_jdoc_destroy(&doc);
    return st;
}

const rt_decision *rt_model_decision(const rt_model *m) {
    return &m->decision;
}

rt_reading rt_model_answering(const rt_model *m) {
    rt_reading how = rt_model_reading(m);
    if (m->decision.of_members)
        how.member_temperature = m->decision.temperature;
    else
        how.temperature = m->decision.temperature;
    return how;
}

/* ---- storing ---- */

static rt_status write_with(const rt_safetensors *s, const char *path, const char *text) {
    const int64_t n = rt_safetensors_count(s), nmeta = rt_safetensors_meta_count(s);
    rt_st_tensor *t = NULL;
    rt_st_meta *meta = NULL;
    char hex[65];
    int64_t k = 0;
    rt_status st;
    RT_TRY_GOTO(rt_calloc(&t, (size_t)n + 1, sizeof *t));
    RT_TRY_GOTO(rt_calloc(&meta, (size_t)nmeta + 2, sizeof *meta));
    for (int64_t i = 0; i < n; i++)
        t[i] = *rt_safetensors_get(s, i);
    for (int64_t i = 0; i < nmeta; i++) {
        const rt_st_meta *e = rt_safetensors_meta_get(s, i);
        if (strcmp(e->key, "decision") != 0 && strcmp(e->key, "sha256") != 0)
            meta[k++] = *e;
    }
    if (text != NULL)
        meta[k++] = (rt_st_meta){"decision", text};
    meta[k++] = (rt_st_meta){"sha256", hex};
    rt_tensors_digest(t, n, meta, k, hex);
    st = rt_safetensors_write(path, t, n, meta, k);
done:
    rt_free(t);
    rt_free(meta);
    return st;
}

rt_status rt_model_store_decision(const char *path, const char *text) {
    char name[48];
    char *full = NULL, *file = NULL;
    rt_safetensors *s = NULL;
    bool dir;
    rt_status st;
    RT_TRY_GOTO(rt_path_expand(&full, path));
    RT_TRY_GOTO(rt_dir_find(full, &dir));
    rt_member_file(name, 0, true);
    if (dir)
        RT_TRY_GOTO(rt_path_join(&file, full, name));
    if (dir && !rt_file_exists(file)) { /* an ensemble */
        rt_free(file);
        rt_member_file(name, 0, false);
        RT_TRY_GOTO(rt_path_join(&file, full, name));
    }
    RT_TRY_GOTO(rt_safetensors_read(&s, dir ? file : full));
    st = write_with(s, dir ? file : full, text);
done:
    rt_safetensors_destroy(&s);
    rt_free(full);
    rt_free(file);
    return st;
}
