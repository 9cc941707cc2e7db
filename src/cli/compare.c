/*
 * compare.c - retort info --compare: what differs between two runs.
 *
 * Configuration, network and data: only what differs, side by side. Training and metrics: what metrics.json of
 * the two runs has, whether it differs or not. The models are loaded: parameters and operations are those of the
 * weights that are there.
 */
#include "assess/assess.h"
#include "base/alloc.h"
#include "base/file.h"
#include "cli/cli.h"
#include "eval/eval.h"
#include "model/model.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FILE_MAX_BYTES = 64 << 20 };

/* Pairs of texts under a key. */
typedef struct pair {
    char *key, *value[2]; /* NULL: it has none */
} pair;
typedef struct pairs {
    pair *at;
    int64_t n, cap;
} pairs;

typedef struct side {
    const char *name;
    char *dir;
    rt_model *model;
    rt_jdoc *metrics; /* of metrics.json, or NULL */
    rt_assessment *assessment;
} side;

typedef struct comparison {
    rt_cli *c;
    side run[2];
    pairs config, network, data, training;
} comparison;

static void pairs_free(pairs *p) {
    for (int64_t i = 0; i < p->n; i++) {
        rt_free(p->at[i].key);
        rt_free(p->at[i].value[0]);
        rt_free(p->at[i].value[1]);
    }
    rt_free(p->at);
}

static rt_status put(pairs *p, const char *key, int which, const char *value) {
    pair *found = NULL;
    for (int64_t i = 0; i < p->n && !found; i++)
        if (strcmp(p->at[i].key, key) == 0)
            found = &p->at[i];
    if (!found) {
        if (p->n == p->cap) {
            const int64_t cap = p->cap ? 2 * p->cap : 64;
            RT_TRY(rt_realloc(&p->at, (size_t)p->cap * sizeof *p->at, (size_t)cap * sizeof *p->at));
            p->cap = cap;
        }
        found = &p->at[p->n++];
        *found = (pair){.key = rt_strdup(key)};
        if (!found->key)
            return RT_E_MEMORY;
    }
    rt_free(found->value[which]);
    found->value[which] = value ? rt_strdup(value) : NULL;
    return value && !found->value[which] ? RT_E_MEMORY : RT_OK;
}

static bool differs(const pair *p) {
    const char *a = p->value[0], *b = p->value[1];
    return a && b ? strcmp(a, b) != 0 : a != b;
}

/* ---- collecting ---- */

/* config.yaml is a flat mapping, as rt_config_write wrote it. */
static rt_status read_config(comparison *m, int which) {
    char *path = NULL;
    uint8_t *text = NULL;
    size_t n;
    bool found;
    rt_status st;
    RT_TRY_GOTO(rt_path_join(&path, m->run[which].dir, "config.yaml"));
    RT_TRY_GOTO(rt_file_find(path, &found));
    if (!found)
        goto done;
    RT_TRY_GOTO(rt_file_read(path, FILE_MAX_BYTES, &text, &n));
    for (char *s = (char *)text; *s;) {
        char *end = s + strcspn(s, "\n"), *colon = strstr(s, ": ");
        const bool more = *end != 0;
        *end = 0;
        if (*s != '#' && colon && colon < end) {
            char *value = colon + 2;
            const size_t length = strlen(value);
            *colon = 0;
            if (length >= 2 && value[0] == '"' && value[length - 1] == '"') {
                value[length - 1] = 0;
                value++;
            }
            if (strcmp(s, "out") != 0) /* where it went differs always */
                RT_TRY_GOTO(put(&m->config, s, which, value));
        }
        s = more ? end + 1 : end;
    }
done:
    rt_free(text);
    rt_free(path);
    return st;
}

static rt_status read_metrics(side *s) {
    char *path = NULL;
    uint8_t *text = NULL;
    size_t n;
    bool found;
    rt_status st;
    RT_TRY_GOTO(rt_path_join(&path, s->dir, "metrics.json"));
    RT_TRY_GOTO(rt_file_find(path, &found));
    if (!found)
        goto done;
    RT_TRY_GOTO(rt_file_read(path, FILE_MAX_BYTES, &text, &n));
    RT_TRY_GOTO(rt_jdoc_parse(&s->metrics, (const char *)text, n, path));
    st = rt_assessment_decode(&s->assessment, (const char *)text, n, path);
done:
    rt_free(text);
    rt_free(path);
    return st;
}

/* A text inside a piece of the model's metadata, which is JSON. */
static rt_status put_meta(pairs *p, const char *key, int which, const rt_model *m, const char *meta,
                          const char *member) {
    rt_arena arena;
    const char *value;
    rt_arena_init(&arena);
    rt_status st = rt_model_meta_text(m, meta, member, &arena, &value);
    if (value)
        st = put(p, key, which, value);
    rt_arena_deinit(&arena);
    return st;
}

static rt_status read_network(comparison *m, int which) {
    const rt_model *model = m->run[which].model;
    const rt_shape input = rt_model_input(model);
    char text[32];
    rt_str classes;
    rt_str_init(&classes);
    rt_status st;
    RT_TRY_GOTO(put_meta(&m->network, "arch", which, model, "architecture", "spec"));
    RT_TRY_GOTO(put_meta(&m->network, "student", which, model, "student", "spec"));
    RT_TRY_GOTO(put(&m->network, "method", which, rt_model_meta(model, "method")));
    RT_TRY_GOTO(put(&m->network, "input", which, cli_shape(text, &input)));
    snprintf(text, sizeof text, "%d", rt_model_networks(model));
    RT_TRY_GOTO(put(&m->network, "networks", which, text));
    snprintf(text, sizeof text, "%d", rt_model_members(model));
    RT_TRY_GOTO(put(&m->network, "members", which, text));
    snprintf(text, sizeof text, "%lld",
             (long long)(rt_model_networks(model) * rt_params_trainable(rt_model_params(model))));
    RT_TRY_GOTO(put(&m->network, "parameters", which, text));
    snprintf(text, sizeof text, "%.0f", rt_model_networks(model) * rt_student_flops(rt_model_student(model)));
    RT_TRY_GOTO(put(&m->network, "flops", which, text));
    RT_TRY_GOTO(put_meta(&m->data, "data_sha256", which, model, "provenance", "data_sha256"));
    if (rt_model_task(model) == RT_TASK_CLASSIFICATION)
        for (int64_t k = 0; k < rt_model_outputs(model); k++)
            rt_str_appendf(&classes, "%s%s", k ? "," : "", rt_model_class_name(model, k));
    else
        rt_str_append(&classes, "(regression)");
    RT_TRY_GOTO(rt_str_status(&classes));
    st = put(&m->data, "classes", which, rt_str_text(&classes));
done:
    rt_str_deinit(&classes);
    return st;
}

static rt_status read_training(comparison *m, int which) {
    static const char *const keys[] = {"epochs",     "steps",      "seconds",    "train_rows",
                                       "valid_rows", "train_loss", "valid_loss", "valid_accuracy"};
    char number[40];
    double v;
    for (int i = 0; i < RT_COUNT(keys); i++) {
        if (!m->run[which].metrics ||
            !rt_jval_f64(rt_jval_get(rt_jdoc_root(m->run[which].metrics), keys[i]), &v))
            continue;
        rt_format_f64(number, v);
        RT_TRY(put(&m->training, keys[i], which, number));
    }
    return RT_OK;
}

static rt_status open_side(comparison *m, int which) {
    side *s = &m->run[which];
    s->name = m->c->args[which];
    RT_TRY(rt_path_expand(&s->dir, s->name));
    RT_TRY(rt_model_load(&s->model, s->name));
    RT_TRY(read_config(m, which));
    RT_TRY(read_metrics(s));
    RT_TRY(read_network(m, which));
    return read_training(m, which);
}

/* ---- printing ---- */

/* Of training all values, as numbers; of the rest only what differs, as text. */
static void json_pairs(rt_json *j, const char *key, const pairs *p, bool training) {
    rt_json_object_begin(j, key);
    for (int64_t i = 0; i < p->n; i++) {
        if (!training && !differs(&p->at[i]))
            continue;
        rt_json_array_begin(j, p->at[i].key);
        for (int k = 0; k < 2; k++) {
            const char *value = p->at[i].value[k];
            if (training && value)
                rt_json_raw(j, NULL, value);
            else
                rt_json_str(j, NULL, value);
        }
        rt_json_array_end(j);
    }
    rt_json_object_end(j);
}

static void json_metrics(rt_json *j, const comparison *m) {
    const rt_metric_info *list;
    const int n = rt_metric_list(&list);
    double v[2];
    rt_json_object_begin(j, "metrics");
    for (int i = 0; i < n; i++) {
        bool any = false;
        for (int k = 0; k < 2; k++) {
            const rt_assessment *a = m->run[k].assessment;
            v[k] = NAN;
            if (a && rt_assessment_info(a)->regression == list[i].regression)
                any = (rt_assessment_value(a, list[i].name, &v[k], NULL) && isfinite(v[k])) || any;
        }
        if (!any)
            continue;
        rt_json_f64s(j, list[i].name, v, 2);
    }
    rt_json_object_end(j);
}

static rt_status print_json(const comparison *m) {
    rt_json j;
    cli_json_begin(m->c, &j);
    rt_json_str(&j, "kind", "comparison");
    rt_json_array_begin(&j, "runs");
    rt_json_str(&j, NULL, m->run[0].name);
    rt_json_str(&j, NULL, m->run[1].name);
    rt_json_array_end(&j);
    json_pairs(&j, "configuration", &m->config, false);
    json_pairs(&j, "network", &m->network, false);
    json_pairs(&j, "data", &m->data, false);
    json_pairs(&j, "training", &m->training, true);
    json_metrics(&j, m);
    return cli_json_end(m->c, &j);
}

/* Long values (hashes, class names) are cut: they differ, that is what matters. */
static void cell(cli_table *t, const char *value, bool number) {
    double v;
    if (number && value && rt_parse_f64(value, strlen(value), false, &v))
        cli_table_cell(t, "%.6g", v);
    else if (value && strlen(value) > 44)
        cli_table_cell(t, "%.41s...", value);
    else
        cli_table_cell(t, "%s", value ? value : "-");
}

static void append_name(rt_str *out, const char *name) {
    const size_t at = out->len;
    rt_str_append(out, name);
    if (out->st == RT_OK)
        rt_str_clean(out->p + at, "");
}

static void text_pairs(const comparison *m, const char *title, const pairs *p, bool training, rt_str *out) {
    cli_table t;
    int64_t shown = 0;
    rt_str head;
    rt_str_init(&head);
    rt_str_appendf(&head, "%s|", title);
    for (int i = 0; i < 2; i++) { /* a '|' in a name would be a column */
        const size_t at = head.len;
        append_name(&head, m->run[i].name);
        for (size_t k = at; k < head.len; k++)
            if (head.p[k] == '|')
                head.p[k] = '?';
        rt_str_append(&head, i ? "" : "|");
    }
    cli_table_init(&t, "lll", rt_str_text(&head));
    for (int64_t i = 0; i < p->n; i++) {
        if (!training && !differs(&p->at[i]))
            continue;
        cell(&t, p->at[i].key, false);
        cell(&t, p->at[i].value[0], training);
        cell(&t, p->at[i].value[1], training);
        shown++;
    }
    if (out->len)
        rt_str_append_char(out, '\n');
    if (shown)
        cli_table_print(&t, out, m->c->term.colour_out);
    else
        rt_str_appendf(out, "%s: the same\n", title);
    rt_str_fail(out, head.st);
    cli_table_deinit(&t);
    rt_str_deinit(&head);
}

static rt_status text_metrics(const comparison *m, rt_str *out) {
    rt_assessment *with[2];
    const char *hash[2] = {NULL, NULL};
    int n = 0;
    for (int i = 0; i < 2; i++) {
        if (m->run[i].assessment) {
            hash[n] = rt_assessment_info(m->run[i].assessment)->data_hash;
            with[n++] = m->run[i].assessment;
        } else {
            rt_str_append_char(out, '\n');
            append_name(out, m->run[i].name);
            rt_str_append(out, " has not been evaluated; 'retort eval' keeps its metrics\n");
        }
    }
    if (n == 0)
        return RT_OK;
    if (n == 2 && hash[0] && hash[1] && strcmp(hash[0], hash[1]) != 0)
        rt_str_append(out, "\nmetrics are of different data\n");
    rt_str tables;
    rt_str_init(&tables);
    rt_status st =
        rt_assess_tables(with, n, &(rt_table_options){.width = RT_MAX(cli_term_width(), 100)}, &tables);
    rt_str_append_char(out, '\n');
    rt_str_append_str(out, &tables);
    rt_str_deinit(&tables);
    return st;
}

static rt_status print_text(const comparison *m) {
    rt_str *out = &m->c->out;
    text_pairs(m, "configuration", &m->config, false, out);
    text_pairs(m, "network", &m->network, false, out);
    text_pairs(m, "data", &m->data, false, out);
    text_pairs(m, "training", &m->training, true, out);
    RT_TRY(text_metrics(m, out));
    return cli_print(out);
}

rt_status cli_compare_runs(rt_cli *c) {
    comparison m = {.c = c};
    rt_status st;
    RT_TRY_GOTO(open_side(&m, 0));
    RT_TRY_GOTO(open_side(&m, 1));
    st = c->config.json ? print_json(&m) : print_text(&m);
done:
    for (int i = 0; i < 2; i++) {
        rt_free(m.run[i].dir);
        rt_model_destroy(&m.run[i].model);
        rt_jdoc_destroy(&m.run[i].metrics);
        rt_assessment_destroy(&m.run[i].assessment);
    }
    pairs *const all[] = {&m.config, &m.network, &m.data, &m.training};
    for (int i = 0; i < RT_COUNT(all); i++)
        pairs_free(all[i]);
    return st;
}
