/*
 * average_open.c - the models to average: loaded, compared, and given one network and one table of
 * parameters.
 *
 * Weights can only be averaged if they mean the same: the same architecture over the same standardised
 * inputs, the same outputs in the same order. Whatever differs is refused with both sides named. Dropout may
 * differ: it is no part of what a trained network computes, and the network used here has none.
 */
#include "average/average_int.h"
#include "base/alloc.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Training repeats the moments of equal rows to the bit; this leaves room for another machine's rounding. */
static const double ROUNDING = 1e-6;

/* ---- comparing ---- */

static rt_status check_student(const rt_model *m, const char *name) {
    RT_FAIL_IF(!rt_student_is_plain(rt_model_student(m)), RT_E_UNSUPPORTED,
               "%s is a student of kind %s; only plain networks (single) can be averaged", name,
               rt_student_spec(rt_model_student(m)));
    return RT_OK;
}

static bool same_number(double a, double b) {
    return fabs(a - b) <= ROUNDING * fmax(1, fmax(fabs(a), fabs(b)));
}

static rt_status check_architecture(const rt_model *a, const rt_model *b, const char *x, const char *y) {
    const rt_arch_config *p = rt_net_config(rt_model_net(a)), *q = rt_net_config(rt_model_net(b));
    const char *act[2] = {p->activation ? p->activation : "relu", q->activation ? q->activation : "relu"};
    RT_FAIL_IF(strcmp(p->spec, q->spec) != 0, RT_E_INPUT,
               "%s is %s and %s is %s; only networks of one architecture can be averaged", x, p->spec, y,
               q->spec);
    RT_FAIL_IF(strcmp(act[0], act[1]) != 0, RT_E_INPUT, "%s has activation %s and %s has %s", x, act[0], y,
               act[1]);
    if (!rt_shape_equal(&p->input, &q->input)) {
        rt_str s[2];
        for (int i = 0; i < 2; i++) {
            rt_str_init(&s[i]);
            rt_shape_print(i ? &q->input : &p->input, &s[i]);
        }
        rt_status st = rt_error_set(RT_E_INPUT, __FILE__, __LINE__, "%s has inputs of shape %s and %s of %s",
                                    x, rt_str_text(&s[0]), y, rt_str_text(&s[1]));
        rt_str_deinit(&s[0]);
        rt_str_deinit(&s[1]);
        return st;
    }
    RT_FAIL_IF(p->outputs != q->outputs, RT_E_INPUT, "%s has %lld outputs and %s has %lld", x,
               (long long)p->outputs, y, (long long)q->outputs);
    return RT_OK;
}

static rt_status check_preprocessing(const rt_model *a, const rt_model *b, const char *x, const char *y) {
    const char *s = rt_model_like(a).table, *t = rt_model_like(b).table;
    RT_FAIL_IF((s == NULL) != (t == NULL) || (s && strcmp(s, t) != 0), RT_E_INPUT,
               "%s and %s make different inputs of a table's columns: they were trained on different rows", x,
               y);
    const rt_arch_config *p = rt_net_config(rt_model_net(a)), *q = rt_net_config(rt_model_net(b));
    RT_FAIL_IF((p->norm == 0) != (q->norm == 0), RT_E_INPUT, "%s standardises its inputs and %s does not",
               p->norm ? x : y, p->norm ? y : x);
    for (int i = 0; i < p->norm; i++)
        RT_FAIL_IF(
            !same_number(p->mean[i], q->mean[i]) || !same_number(p->std[i], q->std[i]), RT_E_INPUT,
            "%s standardises input %d with mean %g and deviation %g, %s with %g and %g: they were trained on "
            "different rows",
            x, i, p->mean[i], p->std[i], y, q->mean[i], q->std[i]);
    return RT_OK;
}

static const char *task_name(const rt_model *m) {
    return rt_model_task(m) == RT_TASK_REGRESSION ? "regression" : "classification";
}

static rt_status check_task(const rt_model *a, const rt_model *b, const char *x, const char *y) {
    RT_FAIL_IF(rt_model_task(a) != rt_model_task(b), RT_E_INPUT, "%s is for %s and %s for %s", x,
               task_name(a), y, task_name(b));
    for (int64_t k = 0; rt_model_class_name(a, k); k++)
        RT_FAIL_IF(strcmp(rt_model_class_name(a, k), rt_model_class_name(b, k)) != 0, RT_E_INPUT,
                   "class %lld is '%s' in %s and '%s' in %s", (long long)k, rt_model_class_name(a, k), x,
                   rt_model_class_name(b, k), y);
    if (rt_model_task(a) == RT_TASK_CLASSIFICATION)
        return RT_OK;
    float unit[2][2] = {{0, 0}, {0, 0}}; /* mean and variance of the target */
    rt_target_unscale(rt_model_target(a), unit[0]);
    rt_target_unscale(rt_model_target(b), unit[1]);
    for (int i = 0; i < 2; i++)
        RT_FAIL_IF(!same_number((double)unit[0][i], (double)unit[1][i]), RT_E_INPUT,
                   "%s has a target of mean %g and variance %g, %s of %g and %g: they were trained on "
                   "different rows",
                   x, (double)unit[0][0], (double)unit[0][1], y, (double)unit[1][0], (double)unit[1][1]);
    return RT_OK;
}

static rt_status check_pair(const rt_model *a, const rt_model *b, const char *x, const char *y) {
    RT_TRY(check_architecture(a, b, x, y));
    RT_TRY(check_task(a, b, x, y));
    return check_preprocessing(a, b, x, y);
}

/* ---- loading ---- */

static rt_status load_runs(rt_average *a, const char *const *runs, int nruns) {
    RT_TRY(rt_calloc(&a->loaded, (size_t)nruns, sizeof *a->loaded));
    for (int i = 0; i < nruns; i++) {
        RT_TRY(rt_model_load(&a->loaded[i], runs[i]));
        a->nloaded = i + 1;
        RT_TRY(check_student(a->loaded[i], runs[i]));
        if (i > 0)
            RT_TRY(check_pair(a->loaded[0], a->loaded[i], runs[0], runs[i]));
        a->models += rt_model_networks(a->loaded[i]);
    }
    RT_FAIL_IF(a->models < 2, RT_E_USAGE, "%s holds one network; an average takes two or more", runs[0]);
    return RT_OK;
}

/* --first-model, --models: some of them. */
static rt_status choose_models(rt_average *a, int *first) {
    const int64_t from = a->c->first_model, n = a->c->models ? a->c->models : a->models - from;
    RT_FAIL_IF(from + n > a->models || n < 2, RT_E_USAGE,
               "--first-model %lld --models %lld: there are %d networks, and an average takes two or more",
               (long long)from, (long long)a->c->models, a->models);
    *first = (int)from;
    a->models = (int)n;
    return RT_OK;
}

static rt_status list_models(rt_average *a, const char *const *runs) {
    int first = 0;
    RT_TRY(choose_models(a, &first));
    RT_TRY(rt_calloc(&a->names, (size_t)a->models, sizeof *a->names));
    RT_TRY(rt_calloc(&a->blocks, (size_t)a->models, sizeof *a->blocks));
    for (int i = 0, m = -first; i < a->nloaded; i++) {
        const int networks = rt_model_networks(a->loaded[i]);
        for (int k = 0; k < networks; k++, m++) {
            if (m < 0 || m >= a->models)
                continue;
            rt_str name;
            rt_str_init(&name);
            rt_str_append(&name, runs[i]);
            if (networks > 1)
                rt_str_appendf(&name, ", member %d", k);
            rt_status st = rt_str_status(&name);
            a->names[m] = st == RT_OK ? rt_strdup(rt_str_text(&name)) : NULL;
            rt_str_deinit(&name);
            if (!a->names[m])
                return RT_E_MEMORY;
            a->blocks[m] = rt_model_block(a->loaded[i], k);
        }
    }
    return RT_OK;
}

static rt_status make_network(rt_average *a) {
    rt_student_config s = *rt_student_get_config(rt_model_student(a->loaded[0]));
    s.arch.dropout = 0;
    RT_TRY(rt_params_create(&a->params));
    RT_TRY(rt_student_create(&a->student, &s, a->params));
    a->floats = rt_params_floats(a->params);
    RT_TRY(rt_symmetry_find(&a->sym, rt_student_net(a->student), a->params));
    const size_t models = (size_t)a->models;
    RT_TRY(rt_calloc(&a->out, (size_t)a->floats, sizeof *a->out));
    RT_TRY(rt_calloc(&a->aligned, models, sizeof *a->aligned));
    RT_TRY(rt_calloc(&a->perms, models * (size_t)a->sym.total + 1, sizeof *a->perms));
    RT_TRY(rt_calloc(&a->matrix, models * (size_t)a->sym.bundles + 1, sizeof *a->matrix));
    RT_TRY(rt_calloc(&a->used, models, sizeof *a->used));
    for (int m = 0; m < a->models; m++) {
        rt_perm_identity(&a->sym, rt_average_perms(a, m));
        a->used[m] = true;
    }
    return RT_OK;
}

rt_status rt_average_open(rt_average *a, const rt_config *c, const char *const *runs, int nruns,
                          rt_pool *pool, const rt_average_hooks *hooks) {
    memset(a, 0, sizeof *a);
    a->config = *c;
    a->c = &a->config;
    a->pool = pool;
    a->hooks = hooks;
    rt_status st = load_runs(a, runs, nruns);
    if (st == RT_OK) {
        a->regression = rt_model_task(a->loaded[0]) == RT_TASK_REGRESSION;
        st = list_models(a, runs);
    }
    if (st == RT_OK)
        st = make_network(a);
    if (st == RT_OK)
        st = rt_average_find_rows(a, runs);
    if (st != RT_OK)
        rt_average_close(a);
    return st;
}

void rt_average_close(rt_average *a) {
    for (int m = 0; m < a->models; m++) {
        if (a->names)
            rt_free(a->names[m]);
        if (a->aligned)
            rt_free(a->aligned[m]);
        for (int g = 0; a->matrix && g < a->sym.bundles; g++)
            rt_free(*rt_average_matrix(a, m, g));
    }
    rt_free(a->names);
    rt_free(a->blocks);
    rt_free(a->out);
    rt_free(a->aligned);
    rt_free(a->perms);
    rt_free(a->matrix);
    rt_free(a->used);
    rt_symmetry_deinit(&a->sym);
    rt_student_destroy(&a->student);
    rt_params_destroy(&a->params);
    rt_subset_deinit(&a->train);
    rt_subset_deinit(&a->valid);
    rt_dataset_destroy(&a->data);
    for (int i = 0; i < a->nloaded; i++) {
        rt_model_destroy(&a->loaded[i]);
        if (a->runs)
            rt_config_deinit(&a->runs[i].config);
    }
    rt_free(a->runs);
    rt_free(a->loaded);
    memset(a, 0, sizeof *a);
}
