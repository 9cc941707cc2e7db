/*
 * average_run.c - the verb `average`: models in, one run out.
 *
 *     open and compare -> method (average_methods.def) -> repair -> statistics of BN
 *         -> scores, diagnostics -> files
 *
 * The run has config.yaml, model.safetensors (a plain network of the models' architecture), pictures/ and,
 * last, metrics.json. The same models, data and seed give the same bytes of weights.
 */
#include "average/average_int.h"
#include "base/alloc.h"
#include "base/sha256.h"
#include "base/timer.h"
#include <math.h>
#include <string.h>

static const rt_average_method methods[] = {
#define RT_AVERAGE_METHOD(id, name, chosen, meaning) {name, meaning, RT_CHOSEN_##chosen, rt_average_by_##id},
#include "average/average_methods.def"
#undef RT_AVERAGE_METHOD
};

int rt_average_method_list(const rt_average_method **out) {
    *out = methods;
    return (int)RT_COUNT(methods);
}

const rt_average_method *rt_average_method_find(const char *name) {
    for (int64_t i = 0; i < RT_COUNT(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

static rt_status find_method(const rt_average_method **out, const char *name) {
    const char *names[RT_COUNT(methods)];
    for (int64_t i = 0; i < RT_COUNT(methods); i++)
        names[i] = methods[i].name;
    *out = rt_average_method_find(name);
    if (!*out)
        RT_FAIL_UNKNOWN(RT_E_USAGE, name, names, RT_COUNT(names), "--method: unknown");
    return RT_OK;
}

/* ---- scores ---- */

static rt_status score(const rt_average *a, const rt_subset *set, rt_average_board *b) {
    rt_average_score *each = NULL;
    rt_status st;
    RT_TRY(rt_calloc(&each, (size_t)a->models, sizeof *each));
    RT_TRY_GOTO(rt_average_measure(a, set, a->blocks, a->models, each, &b->ensemble));
    RT_TRY_GOTO(rt_average_measure(a, set, (const float *const *)&a->out, 1, &b->average, NULL));
    b->rows = set->n;
    b->mean = (rt_average_score){0};
    b->best = each[0];
    for (int m = 0; m < a->models; m++) {
        b->mean.accuracy += each[m].accuracy / a->models;
        b->mean.loss += each[m].loss / a->models;
        if (a->regression ? each[m].loss < b->best.loss : each[m].accuracy > b->best.accuracy)
            b->best = each[m];
    }
done:
    rt_free(each);
    return st;
}

/* A source with one part has it as its test part, too: those rows were trained on. */
static rt_status score_all(rt_average *a, rt_average_result *r) {
    const rt_part *part = rt_dataset_test(a->data);
    const rt_subset test = rt_subset_all(part);
    rt_status st = RT_OK;
    a->stage = "measuring";
    if (a->valid.n > 0)
        st = score(a, &a->valid, &r->valid);
    if (st == RT_OK && part->n > 0 && part != a->train.part)
        st = score(a, &test, &r->test);
    a->stage = NULL;
    return st;
}

static void json_score(rt_json *j, const char *key, rt_average_score s, bool regression) {
    rt_json_object_begin(j, key);
    if (!regression)
        rt_json_f64(j, "accuracy", s.accuracy);
    rt_json_f64(j, "loss", s.loss);
    rt_json_object_end(j);
}

void rt_average_write_scores(rt_json *j, const rt_average_result *r) {
    rt_json_object_begin(j, "scores");
    for (int i = 0; i < 2; i++) {
        const rt_average_board *b = i ? &r->test : &r->valid;
        if (b->rows == 0)
            continue;
        rt_json_object_begin(j, i ? "test" : "valid");
        rt_json_i64(j, "rows", b->rows);
        json_score(j, "models_mean", b->mean, r->regression);
        json_score(j, "models_best", b->best, r->regression);
        json_score(j, "average", b->average, r->regression);
        json_score(j, "ensemble", b->ensemble, r->regression);
        rt_json_object_end(j);
    }
    rt_json_object_end(j);
}

/* ---- files ---- */

/* Of all that was averaged: the weights, in order. */
static void digest_models(const rt_average *a, char hex[65]) {
    rt_sha256 sha;
    uint8_t digest[32];
    rt_sha256_init(&sha);
    for (int m = 0; m < a->models; m++)
        rt_sha256_update(&sha, a->blocks[m], (size_t)a->floats * sizeof(float));
    rt_sha256_final(&sha, digest);
    rt_sha256_hex(digest, hex);
}

static rt_status save_model(rt_average *a, const rt_run_dir *dir) {
    rt_model *m = NULL;
    char *path = NULL, config_hash[65], models_hash[65];
    rt_status st;
    RT_TRY_GOTO(rt_model_create(&m, rt_student_get_config(rt_model_student(a->loaded[0])), a->data,
                                rt_model_target(a->loaded[0]), 1));
    memcpy(rt_model_weights(m, 0), a->out, (size_t)a->floats * sizeof(float));
    rt_config_hash(a->c, RT_VERB_AVERAGE, false, config_hash);
    digest_models(a, models_hash);
    RT_TRY_GOTO(rt_run_dir_file(dir, "model.safetensors", &path));
    st = rt_model_save(m, 0, path,
                       &(rt_provenance){.method = a->c->method,
                                        .data_hash = rt_dataset_hash(a->data),
                                        .config_hash = config_hash,
                                        .teacher_hash = models_hash,
                                        .seed = a->c->seed});
done:
    rt_model_destroy(&m);
    rt_free(path);
    return st;
}

static rt_status write_metrics(rt_average *a, const rt_run_dir *dir, const rt_average_result *r,
                               double started) {
    rt_str text;
    rt_json j;
    rt_str_init(&text);
    rt_run_json_begin(&j, &text);
    rt_json_str(&j, "task", a->regression ? "regression" : "classification");
    rt_json_str(&j, "method", a->c->method);
    rt_json_i64(&j, "members", 1);
    rt_json_i64(&j, "parameters", r->parameters);
    rt_json_bool(&j, "distilled", a->distilled);
    rt_json_i64(&j, "train_rows", a->train.n);
    rt_json_i64(&j, "valid_rows", a->valid.n);
    rt_json_f64_or(&j, "valid_loss", r->valid.rows ? r->valid.average.loss : NAN, "no validation");
    rt_json_f64_or(&j, "valid_accuracy", r->valid.rows ? r->valid.average.accuracy : NAN,
                   a->regression ? "regression" : "no validation");
    rt_json_object_begin(&j, "average");
    rt_status st = rt_average_diagnose(a, &j, dir->path);
    rt_average_write_scores(&j, r);
    rt_json_object_end(&j);
    if (a->warning[0])
        rt_json_str(&j, "warning", a->warning);
    rt_json_f64(&j, "seconds", rt_time_now() - started);
    if (st == RT_OK)
        st = rt_run_json_end(&j, dir, "metrics.json");
    rt_str_deinit(&text);
    return st;
}

static rt_status write_run(rt_average *a, rt_average_result *r, double started) {
    rt_run_dir dir;
    char *pictures = NULL;
    RT_TRY(rt_run_dir_open(&dir, a->c->out, false, a->c->force));
    rt_status st;
    RT_TRY_GOTO(rt_run_dir_clear(&dir));
    RT_TRY_GOTO(rt_run_dir_write_config(&dir, a->c, RT_VERB_AVERAGE));
    RT_TRY_GOTO(rt_run_dir_file(&dir, "pictures", &pictures));
    RT_TRY_GOTO(rt_dir_make(pictures));
    RT_TRY_GOTO(save_model(a, &dir));
    st = write_metrics(a, &dir, r, started);
done:
    if (st != RT_OK && rt_run_dir_clear(&dir) != RT_OK) /* half a run is none */
        st = RT_E_IO;
    rt_free(pictures);
    rt_run_dir_close(&dir);
    return st;
}

rt_status rt_average_mend(rt_average *a) {
    if (rt_average_used(a) == 1)
        return RT_OK;
    if (a->c->repair && !a->keep_scale)
        RT_TRY(rt_average_repair(a, a->out));
    return rt_average_refresh_bn(a, a->out, 0);
}

/* If no method is named. */
static void choose_method(rt_average *a) {
    const bool learn = !a->regression && a->train.n > 0 && a->sym.bundles > 0;
    for (int64_t i = 0; i < RT_COUNT(methods) && !rt_config_is_set(a->c, "method"); i++)
        if (methods[i].chosen == (learn ? RT_CHOSEN_LABELS : RT_CHOSEN_OTHERS))
            a->config.method = methods[i].name;
}

rt_status rt_average_run(const rt_config *c, const char *const *runs, int nruns, rt_pool *pool,
                         const rt_average_hooks *hooks, rt_average_result *out) {
    const double started = rt_time_now();
    const rt_average_method *method;
    rt_average a;
    memset(out, 0, sizeof *out);
    if (rt_config_is_set(c, "method"))
        RT_TRY(find_method(&method, c->method)); /* an unknown name fails before anything is read */
    RT_TRY(rt_run_dir_check(c->out, false, c->force));
    RT_TRY(rt_average_open(&a, c, runs, nruns, pool, hooks));
    rt_status st;
    choose_method(&a);
    RT_TRY_GOTO(find_method(&method, a.c->method));
    out->method = method->name;
    RT_TRY_GOTO(method->run(&a));
    RT_TRY_GOTO(rt_average_mend(&a));
    out->used = rt_average_used(&a);
    out->regression = a.regression;
    out->distilled = a.distilled;
    memcpy(out->warning, a.warning, sizeof out->warning);
    RT_TRY_GOTO(score_all(&a, out));
    out->models = a.models;
    out->parameters = rt_params_trainable(a.params);
    st = write_run(&a, out, started);
    out->seconds = rt_time_now() - started;
done:
    rt_average_close(&a);
    return st;
}

void rt_average_result_write(const rt_average_result *r, const char *run, rt_json *j) {
    rt_json_str(j, "run", run);
    rt_json_str(j, "method", r->method);
    rt_json_i64(j, "models", r->models);
    rt_json_i64(j, "used", r->used);
    rt_json_i64(j, "parameters", r->parameters);
    rt_json_bool(j, "distilled", r->distilled);
    if (r->warning[0])
        rt_json_str(j, "warning", r->warning);
    rt_average_write_scores(j, r);
}
