/*
 * assessment.c - the result of one run: its description, its tree of numbers, and paths into it.
 */
#include "assess/assess_int.h"
#include "base/alloc.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { METRICS_MAX_BYTES = 64 << 20 };

/* ---- what a run is ---- */

/* metrics.json of a run, rt_alloc'ed; *text NULL: there is none. */
static rt_status read_metrics(const char *run, char **path, uint8_t **text, size_t *n) {
    char *dir = NULL;
    bool found;
    rt_status st;
    *path = NULL;
    *text = NULL;
    RT_TRY_GOTO(rt_path_expand(&dir, run));
    RT_TRY_GOTO(rt_path_join(path, dir, "metrics.json"));
    RT_TRY_GOTO(rt_file_find(*path, &found));
    if (found)
        st = rt_file_read(*path, METRICS_MAX_BYTES, text, n);
done:
    rt_free(dir);
    return st;
}

/* It knows how long training took; NaN if it cannot be read. */
static rt_status training_seconds(const char *run, double *seconds) {
    char *path;
    uint8_t *text;
    size_t n;
    rt_jdoc *doc = NULL;
    *seconds = NAN;
    rt_status st = read_metrics(run, &path, &text, &n);
    if (st == RT_OK && text)
        st = rt_jdoc_parse(&doc, (const char *)text, n, path);
    if (doc && !rt_jval_f64(rt_jval_get(rt_jdoc_root(doc), "seconds"), seconds))
        *seconds = NAN;
    rt_jdoc_destroy(&doc);
    rt_free(text);
    rt_free(path);
    return st == RT_E_INPUT || st == RT_E_IO ? RT_OK : st;
}

/* Networks trained on labels alone were made by `train`. */
static rt_status find_method(rt_assessment *a, const rt_model *m) {
    const char *method = rt_model_meta(m, "method"), *teacher;
    RT_TRY(rt_model_meta_text(m, "provenance", "teacher_sha256", &a->text, &teacher));
    if (!method || (strcmp(method, rt_method_plain()->name) == 0 && !teacher))
        method = "train";
    return rt_arena_strdup(&a->text, &a->info.method, method);
}

static rt_status describe(rt_assessment *a, const rt_subject *u) {
    rt_assess_info *i = &a->info;
    const rt_model *m = u->model;
    const rt_assess_call *s = u->s;
    RT_TRY(rt_arena_strdup(&a->text, &i->run, u->name));
    RT_TRY(rt_arena_strdup(&a->text, &i->arch, rt_net_config(rt_model_net(m))->spec));
    RT_TRY(rt_model_meta_text(m, "student", "spec", &a->text, &i->student));
    if (!i->student)
        i->student = rt_method_last(rt_method_plain())->student;
    RT_TRY(find_method(a, m));
    RT_TRY(rt_arena_strdup(&a->text, &i->data, s->o->data));
    RT_TRY(rt_arena_strdup(&a->text, &i->data_hash, rt_dataset_hash(s->data)));
    if (s->o->command)
        RT_TRY(rt_arena_strdup(&a->text, &i->command, s->o->command));
    if (rt_model_unit(m))
        RT_TRY(rt_arena_strdup(&a->text, &i->unit, rt_model_unit(m)));
    i->regression = u->regression;
    i->members = (int)u->m;
    i->networks = rt_model_networks(m);
    i->parameters = i->networks * rt_params_trainable(rt_model_params(m));
    i->flops = i->networks * rt_student_flops(rt_model_student(m));
    RT_TRY(training_seconds(u->name, &i->training_seconds));
    if (u->regression)
        return RT_OK;
    rt_json j;
    rt_json_init(&j, &a->classes, false);
    rt_json_array_begin(&j, NULL);
    for (int64_t k = 0; k < u->k; k++)
        rt_json_str(&j, NULL, rt_model_class_name(m, k));
    rt_json_array_end(&j);
    return rt_str_status(&a->classes);
}

rt_status rt_assessment_create(rt_assessment **out, const rt_subject *u) {
    rt_assessment *a;
    *out = NULL;
    RT_TRY(rt_calloc(&a, 1, sizeof *a));
    rt_arena_init(&a->text);
    rt_str *const texts[] = {&a->classes, &a->sets, &a->curves, &a->pictures};
    for (int i = 0; i < RT_COUNT(texts); i++)
        rt_str_init(texts[i]);
    const rt_status st = describe(a, u);
    if (st != RT_OK)
        rt_assessment_destroy(&a);
    *out = a;
    return st;
}

void rt_assessment_destroy(rt_assessment **assessment) {
    rt_assessment *a = *assessment;
    *assessment = NULL;
    if (!a)
        return;
    rt_jdoc_destroy(&a->doc);
    rt_str *const texts[] = {&a->classes, &a->sets, &a->curves, &a->pictures};
    for (int i = 0; i < RT_COUNT(texts); i++)
        rt_str_deinit(texts[i]);
    for (int i = 0; i < a->npictures; i++)
        rt_free(a->picture[i].pixels);
    rt_arena_deinit(&a->text);
    rt_free(a);
}

const rt_assess_info *rt_assessment_info(const rt_assessment *a) {
    return &a->info;
}

/* ---- the tree ---- */

void rt_assessment_write(const rt_assessment *a, rt_json *j, const char *key, bool whole) {
    const rt_assess_info *i = &a->info;
    rt_json_object_begin(j, key);
    rt_json_str(j, "run", i->run);
    rt_json_str(j, "arch", i->arch);
    rt_json_str(j, "student", i->student);
    rt_json_str(j, "method", i->method);
    rt_json_str(j, "task", i->regression ? "regression" : "classification");
    if (i->unit)
        rt_json_str(j, "unit", i->unit);
    rt_json_i64(j, "members", i->members);
    rt_json_i64(j, "parameters", i->parameters);
    rt_json_f64(j, "flops", i->flops);
    rt_json_f64_or(j, "training_seconds", i->training_seconds, "the run does not say");
    rt_json_f64(j, "infer_seconds", i->infer_seconds);
    rt_json_str(j, "data", i->data);
    rt_json_str(j, "data_hash", i->data_hash);
    if (a->classes.len)
        rt_json_raw(j, "classes", a->classes.p);
    if (i->command)
        rt_json_str(j, "command", i->command);
    rt_json_raw(j, "sets", rt_str_text(&a->sets));
    const rt_str *const parts[] = {&a->classes, &a->sets, &a->curves, &a->pictures};
    for (int k = 0; k < RT_COUNT(parts); k++)
        rt_str_fail(j->out, parts[k]->st);
    if (whole && a->curves.len)
        rt_json_raw(j, "curves", a->curves.p);
    if (whole && a->pictures.len)
        rt_json_raw(j, "pictures", a->pictures.p);
    rt_json_object_end(j);
}

rt_status rt_assessment_finish(rt_assessment *a) {
    rt_str text;
    rt_json j;
    rt_str_init(&text);
    rt_json_init(&j, &text, false);
    rt_assessment_write(a, &j, NULL, false);
    rt_status st = rt_str_status(&text);
    if (st == RT_OK)
        st = rt_jdoc_parse(&a->doc, rt_str_text(&text), text.len, a->info.run);
    if (st == RT_OK)
        a->root = rt_jdoc_root(a->doc);
    rt_str_deinit(&text);
    return st;
}

/* Texts are borrowed from the document. */
static void describe_decoded(rt_assessment *a) {
    rt_assess_info *i = &a->info;
    const struct {
        const char *key, **text;
    } texts[] = {{"run", &i->run},         {"arch", &i->arch}, {"student", &i->student},
                 {"method", &i->method},   {"data", &i->data}, {"data_hash", &i->data_hash},
                 {"command", &i->command}, {"unit", &i->unit}};
    const char *task = "";
    int64_t members = 1;
    for (int k = 0; k < RT_COUNT(texts); k++)
        if (!rt_jval_str(rt_jval_get(a->root, texts[k].key), texts[k].text))
            *texts[k].text = k < 4 ? "" : NULL;
    (void)rt_jval_str(rt_jval_get(a->root, "task"), &task);
    i->regression = strcmp(task, "regression") == 0;
    (void)rt_jval_i64(rt_jval_get(a->root, "members"), &members);
    i->members = (int)members;
    (void)rt_jval_i64(rt_jval_get(a->root, "parameters"), &i->parameters);
    (void)rt_jval_f64(rt_jval_get(a->root, "flops"), &i->flops);
    if (!rt_jval_f64(rt_jval_get(a->root, "training_seconds"), &i->training_seconds))
        i->training_seconds = NAN;
    if (!rt_jval_f64(rt_jval_get(a->root, "infer_seconds"), &i->infer_seconds))
        i->infer_seconds = NAN;
}

/* Sets are found by their names: what has none is no assessment. */
static rt_status check_decoded(const rt_assessment *a, const char *name) {
    const rt_jval sets = rt_jval_get(a->root, "sets");
    RT_FAIL_IF(!rt_jval_is_object(a->root), RT_E_INPUT, "%s: 'evaluation' must be an object", name);
    RT_FAIL_IF(sets && !rt_jval_is_object(sets), RT_E_INPUT, "%s: 'sets' must be an object", name);
    return RT_OK;
}

rt_status rt_assessment_decode(rt_assessment **out, const char *text, size_t n, const char *name) {
    rt_assessment *a;
    *out = NULL;
    RT_TRY(rt_calloc(&a, 1, sizeof *a));
    rt_arena_init(&a->text);
    rt_status st = rt_jdoc_parse(&a->doc, text, n, name);
    a->root = st == RT_OK ? rt_jval_get(rt_jdoc_root(a->doc), "evaluation") : NULL;
    if (a->root)
        st = check_decoded(a, name);
    if (!a->root || st != RT_OK) {
        rt_assessment_destroy(&a);
        return st;
    }
    describe_decoded(a);
    *out = a;
    return RT_OK;
}

rt_status rt_assessment_read(rt_assessment **out, const char *run) {
    char *path;
    uint8_t *text;
    size_t n;
    *out = NULL;
    rt_status st = read_metrics(run, &path, &text, &n);
    if (st == RT_OK && text)
        st = rt_assessment_decode(out, (const char *)text, n, path);
    rt_free(text);
    rt_free(path);
    return st;
}

rt_jval rt_assessment_sets(const rt_assessment *a) {
    return rt_jval_get(a->root, "sets");
}

bool rt_assessment_value(const rt_assessment *a, const char *path, double *out, const char **reason) {
    const rt_jval v = rt_metrics_find(NULL, a->root, path);
    const char *why;
    bool b;
    *out = NAN;
    if (reason)
        *reason = NULL;
    if (!v || rt_jval_len(v) >= 0)
        return false;
    if (rt_jval_f64(v, out))
        return true;
    if (rt_jval_str(v, &why) || rt_jval_bool(v, &b))
        return false; /* a text is no number */
    char key[256];
    snprintf(key, sizeof key, "%s_reason", path);
    if (reason && rt_jval_str(rt_metrics_find(NULL, a->root, key), &why))
        *reason = why;
    return true;
}

bool rt_assessment_interval(const rt_assessment *a, const char *path, double *lo, double *hi) {
    return rt_metrics_interval(NULL, a->root, path, lo, hi);
}
