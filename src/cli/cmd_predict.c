/*
 * cmd_predict.c - retort predict: one line per input, and arrays for programs.
 *
 *     classification   row, label, class, confidence, entropy, expected_entropy, mutual_information, probs
 *     regression       row, mean, total_variance, data_variance, knowledge_variance
 *     and              file, behind row, of pictures; true_label and true_class, or true_value, where they are known
 *
 * Every row is read as `eval` reads it (eval/row.c): total = data + knowledge uncertainty, entropies in nats.
 *
 * The format follows the name: .csv, .jsonl, .npy (float32: probs N x K; regression N x 4); without --out,
 * CSV on standard output. --uncertainty writes the three kinds of a row as an array, N x 3. --top adds
 * columns top_1, top_1_prob, ..., --reject a column rejected: 1 where the chosen measure is above the
 * threshold (of confidence: below).
 *
 * What `retort calibrate` stored in the model is used unless --raw: its temperature, its reject rule (unless
 * --reject gives another), its sets (column set) or intervals (lower, upper).
 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "cli/cli.h"
#include "eval/eval.h"
#include "io/io.h"
#include "model/model.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FLUSH_BYTES = 1 << 16, REGRESSION_COLUMNS = 4, KINDS = 3 };
typedef enum format { FORMAT_CSV, FORMAT_JSONL, FORMAT_NPY } format;

typedef struct prediction {
    rt_cli *c;
    rt_model *model;
    cli_input in;
    rt_pool *pool;
    const rt_part *part;
    rt_reading how;
    int64_t n, m, k;
    bool regression;
    float *y;             /* (n, m, k) */
    float *p;             /* (n, k) probabilities, or (n, 4) of a regression */
    float *member_p;      /* (n, m, k); NULL: not asked for */
    float *kinds;         /* (n, 3) total, data and knowledge uncertainty */
    int32_t *label;       /* (n) the predicted class */
    uint8_t *out;         /* (n) is it rejected? */
    int64_t top;          /* --top, at most k */
    int64_t *order;       /* (k), classes by falling probability */
    rt_decision decision; /* the model's, or that of the flags */
    uint8_t *set;         /* (n, k) which classes are in the set of a row; NULL: no sets */
    float *interval;      /* (n, 2); NULL: none */
    int64_t rejected;
    double judged, right, kept_right; /* rows with labels; sums of 0/1, or of squared errors */
    format format;
    rt_writer *writer; /* NULL: standard output */
    rt_str line;
} prediction;

/* ---- computing ---- */

/* The model's decision, and what the flags say instead. */
static rt_status choose_decision(prediction *q) {
    const rt_config *k = &q->c->config;
    const bool told = rt_config_is_set(k, "measure");
    const char *name = !told && q->regression ? "total_variance" : k->measure;
    rt_decision *d = &q->decision;
    *d = k->raw ? (rt_decision){.measure = -1} : *rt_model_decision(q->model);
    if (!rt_config_is_set(k, "reject")) {
        RT_FAIL_IF(told, RT_E_USAGE, "--measure is that of --reject T");
        return RT_OK;
    }
    d->measure = rt_measure_find(name, q->regression);
    RT_FAIL_IF(d->measure < 0, RT_E_USAGE, "--measure %s: this model is a %s", name,
               q->regression ? "regression; it has variances"
                             : "classification; it has entropies and confidence");
    const rt_measure_info *list;
    (void)rt_measure_list(&list);
    const char *why = rt_needs_why_not(list[d->measure].needs, &q->how);
    RT_FAIL_IF(why, RT_E_USAGE, "--measure %s: this model has none: %s", name, why);
    RT_FAIL_IF(!rt_parse_f64(k->reject, strlen(k->reject), false, &d->threshold), RT_E_USAGE,
               "--reject: \"%.40s\", wanted a number", k->reject);
    d->threshold = rt_measure_shown(d->measure, d->threshold);
    return RT_OK;
}

static bool rejects(const prediction *q) {
    return q->decision.measure >= 0;
}

/* What is kept of every row. */
static rt_status make_places(prediction *q) {
    const rt_config *k = &q->c->config;
    int64_t floats;
    RT_FAIL_IF(!rt_i64_mul(q->n, q->m * q->k, &floats), RT_E_MEMORY, "%lld predictions are too many",
               (long long)q->n);
    const size_t n = (size_t)q->n + 1;
    RT_TRY(rt_calloc(&q->y, (size_t)floats + 1, sizeof *q->y));
    RT_TRY(rt_calloc(&q->p, n * (size_t)(q->regression ? REGRESSION_COLUMNS : q->k), sizeof *q->p));
    RT_TRY(rt_calloc(&q->kinds, n, KINDS * sizeof *q->kinds));
    RT_TRY(rt_calloc(&q->label, n, sizeof *q->label));
    RT_TRY(rt_calloc(&q->out, n, sizeof *q->out));
    if (q->decision.conformal == RT_CONFORMAL_INTERVAL)
        RT_TRY(rt_calloc(&q->interval, n, 2 * sizeof *q->interval));
    else if (q->decision.conformal != RT_CONFORMAL_NONE)
        RT_TRY(rt_calloc(&q->set, n, (size_t)q->k));
    return k->probs ? rt_calloc(&q->member_p, (size_t)floats + 1, sizeof *q->member_p) : RT_OK;
}

static rt_status load(prediction *q) {
    rt_config *k = &q->c->config;
    RT_TRY(cli_pool_create(q->c, &q->pool));
    RT_TRY(rt_model_load(&q->model, q->c->args[0]));
    rt_model_set_batch(q->model, k->batch);
    if (k->isa)
        rt_model_set_v3(q->model, rt_config_v3(k));
    RT_TRY(cli_input_open(&q->in, q->c, q->model));
    q->part = q->in.part;
    q->n = q->part->n;
    q->how = k->raw ? rt_model_reading(q->model) : rt_model_answering(q->model);
    q->m = q->how.m;
    q->k = q->how.k;
    q->regression = q->how.kind == RT_OUTPUT_GAUSSIAN;
    RT_FAIL_IF(q->regression && k->probs, RT_E_USAGE,
               "--probs: this model is a regression; --logits writes means and variances");
    RT_FAIL_IF(q->regression && k->top > 0, RT_E_USAGE,
               "--top: this model is a regression, it has no classes");
    q->top = RT_MIN(k->top, q->k);
    if (q->top > 0)
        RT_TRY(rt_calloc(&q->order, (size_t)q->k, sizeof *q->order));
    RT_TRY(choose_decision(q));
    return make_places(q);
}

static void put_all(float *dst, const double *v, int64_t n, bool good) {
    for (int64_t i = 0; dst && i < n; i++)
        dst[i] = good ? (float)v[i] : NAN;
}

/* good: the numbers of r are those of row i; else they are none. */
static void keep_row(prediction *q, const rt_row *r, int64_t i, bool good) {
    const double knowledge = rt_reading_knows(&q->how) ? r->knowledge : NAN; /* one network cannot tell */
    const double kinds[KINDS] = {r->total, r->data, knowledge};
    const double gaussian[REGRESSION_COLUMNS] = {r->mean, r->total, r->data, knowledge};
    put_all(q->kinds + i * KINDS, kinds, KINDS, good);
    if (q->regression) {
        put_all(q->p + i * REGRESSION_COLUMNS, gaussian, REGRESSION_COLUMNS, good);
    } else {
        put_all(q->p + i * q->k, r->p, q->k, good);
        put_all(q->member_p ? q->member_p + i * q->m * q->k : NULL, r->member_p, q->m * q->k, good);
        q->label[i] = good ? (int32_t)r->top : 0;
    }
    if (!good)
        return;
    q->out[i] = rt_decision_rejects(&q->decision, r);
    for (int64_t c = 0; q->set && c < q->k; c++)
        q->set[i * q->k + c] = rt_decision_contains(&q->decision, r, c);
    if (q->interval) {
        double lower, upper;
        rt_decision_interval(&q->decision, r, &lower, &upper);
        q->interval[2 * i] = (float)lower;
        q->interval[2 * i + 1] = (float)upper;
    }
}

static rt_status read_rows(prediction *q) {
    rt_row r;
    RT_TRY(rt_row_init(&r, q->how));
    for (int64_t i = 0; i < q->n; i++)
        keep_row(q, &r, i, rt_row_read(&r, q->y + i * q->m * q->k));
    rt_row_deinit(&r);
    return RT_OK;
}

/* ---- writing lines ---- */

static rt_status flush(prediction *q) {
    RT_TRY(rt_str_status(&q->line));
    if (q->writer) {
        RT_TRY(rt_writer_write(q->writer, rt_str_text(&q->line), q->line.len));
        rt_str_clear(&q->line);
        return RT_OK;
    }
    return cli_print(&q->line);
}

static void append_f32(rt_str *s, float v) {
    char text[40];
    rt_format_f32(text, v);
    rt_str_append(s, text);
}

/* The last of n numbers is what the model knows: an empty field where it cannot tell. */
static void append_kinds(prediction *q, const float *v, int64_t n) {
    rt_str *s = &q->line;
    for (int64_t j = 0; j < n; j++) {
        rt_str_append_char(s, ',');
        if (j + 1 < n || rt_reading_knows(&q->how))
            append_f32(s, v[j]);
    }
}

static void append_field(const prediction *q, rt_str *s, const char *text) {
    rt_str_append_csv(s, text ? text : "", q->c->config.csv_safe);
}

static float confidence(const prediction *q, int64_t i) {
    return q->p[i * q->k + q->label[i]];
}

/* q->order begins with the q->top likeliest classes; of equal ones the first. */
static void rank_classes(const prediction *q, int64_t i) {
    const float *p = q->p + i * q->k;
    for (int64_t j = 0; j < q->k; j++)
        q->order[j] = j;
    for (int64_t t = 0; t < q->top; t++) {
        int64_t best = t;
        for (int64_t j = t + 1; j < q->k; j++)
            if (p[q->order[j]] > p[q->order[best]] ||
                (p[q->order[j]] == p[q->order[best]] && q->order[j] < q->order[best]))
                best = j;
        const int64_t swap = q->order[t];
        q->order[t] = q->order[best];
        q->order[best] = swap;
    }
}

/* How good are all rows, and those that were kept? */
static void judge(prediction *q) {
    if (!rejects(q))
        return;
    for (int64_t i = 0; i < q->n; i++) {
        const bool out = q->out[i];
        double good = 0;
        q->rejected += out;
        if (q->regression && q->part->target) {
            const double e = (double)q->p[i * REGRESSION_COLUMNS] - (double)q->part->target[i];
            good = e * e;
        } else if (q->part->label) {
            good = q->label[i] == q->part->label[i];
        } else {
            continue;
        }
        q->judged++;
        q->right += good;
        q->kept_right += out ? 0 : good;
    }
}

static void csv_heading(prediction *q) {
    rt_str *s = &q->line;
    rt_str_append(s, cli_input_named(&q->in) ? "row,file" : "row");
    if (q->regression)
        rt_str_append(s, ",mean,total_variance,data_variance,knowledge_variance");
    else
        rt_str_append(s, ",label,class,confidence,entropy,expected_entropy,mutual_information");
    for (int64_t j = 0; j < q->k && !q->regression; j++)
        rt_str_appendf(s, ",probs_%lld", (long long)j);
    for (int64_t j = 1; j <= q->top; j++)
        rt_str_appendf(s, ",top_%lld,top_%lld_prob", (long long)j, (long long)j);
    rt_str_append(s, rejects(q) ? ",rejected" : "");
    rt_str_append(s, q->set ? ",set" : q->interval ? ",lower,upper" : "");
    rt_str_append(s, !cli_input_labelled(&q->in) ? "\n"
                     : q->regression             ? ",true_value\n"
                                                 : ",true_label,true_class\n");
}

/* The classes of a set, '|' between them. */
static void csv_set(prediction *q, int64_t i) {
    rt_str names;
    rt_str_init(&names);
    for (int64_t c = 0; c < q->k; c++)
        if (q->set[i * q->k + c])
            rt_str_appendf(&names, "%s%s", names.len > 0 ? "|" : "", rt_model_class_name(q->model, c));
    rt_str_append_char(&q->line, ',');
    append_field(q, &q->line, rt_str_text(&names));
    rt_str_fail(&q->line, rt_str_status(&names));
    rt_str_deinit(&names);
}

static void csv_row(prediction *q, int64_t i) {
    rt_str *s = &q->line;
    rt_str_appendf(s, "%lld", (long long)cli_input_row(&q->in, i));
    if (cli_input_named(&q->in)) {
        rt_str_append_char(s, ',');
        append_field(q, s, cli_input_name(&q->in, i));
    }
    const float *p = q->p + i * (q->regression ? REGRESSION_COLUMNS : q->k);
    if (!q->regression) {
        rt_str_appendf(s, ",%d,", (int)q->label[i]);
        append_field(q, s, rt_model_class_name(q->model, q->label[i]));
        rt_str_append_char(s, ',');
        append_f32(s, confidence(q, i));
        append_kinds(q, q->kinds + i * KINDS, KINDS);
    } else {
        append_kinds(q, p, REGRESSION_COLUMNS);
    }
    for (int64_t j = 0; !q->regression && j < q->k; j++) {
        rt_str_append_char(s, ',');
        append_f32(s, p[j]);
    }
    if (q->top > 0)
        rank_classes(q, i);
    for (int64_t j = 0; j < q->top; j++) {
        rt_str_append_char(s, ',');
        append_field(q, s, rt_model_class_name(q->model, q->order[j]));
        rt_str_append_char(s, ',');
        append_f32(s, p[q->order[j]]);
    }
    if (rejects(q))
        rt_str_append(s, q->out[i] ? ",1" : ",0");
    if (q->set)
        csv_set(q, i);
    for (int e = 0; q->interval && e < 2; e++) {
        rt_str_append_char(s, ',');
        append_f32(s, q->interval[2 * i + e]);
    }
    if (q->part->label) {
        rt_str_appendf(s, ",%d,", q->part->label[i]);
        append_field(q, s, rt_model_class_name(q->model, q->part->label[i]));
    } else if (q->part->target) {
        rt_str_append_char(s, ',');
        append_f32(s, q->part->target[i]);
    }
    rt_str_append_char(s, '\n');
}

static void json_f32(rt_json *j, const char *key, float v) {
    char text[40];
    rt_format_f32(text, v);
    if (isfinite(v))
        rt_json_raw(j, key, text);
    else
        rt_json_f64(j, key, (double)v);
}

static void jsonl_top(const prediction *q, rt_json *j, int64_t i) {
    rank_classes(q, i);
    rt_json_array_begin(j, "top");
    for (int64_t t = 0; t < q->top; t++) {
        rt_json_object_begin(j, NULL);
        rt_json_i64(j, "label", q->order[t]);
        rt_json_str(j, "class", rt_model_class_name(q->model, q->order[t]));
        json_f32(j, "prob", q->p[i * q->k + q->order[t]]);
        rt_json_object_end(j);
    }
    rt_json_array_end(j);
}

static void jsonl_row(prediction *q, int64_t i) {
    static const char *const names[] = {"mean", "total_variance", "data_variance", "knowledge_variance"};
    static const char *const kinds[] = {"entropy", "expected_entropy", "mutual_information"};
    rt_json j;
    const float *p = q->p + i * (q->regression ? REGRESSION_COLUMNS : q->k);
    rt_json_init(&j, &q->line, false);
    rt_json_object_begin(&j, NULL);
    rt_json_i64(&j, "row", cli_input_row(&q->in, i));
    if (cli_input_named(&q->in))
        rt_json_str(&j, "file", cli_input_name(&q->in, i));
    if (q->regression) {
        for (int64_t k = 0; k < REGRESSION_COLUMNS; k++)
            json_f32(&j, names[k], p[k]);
    } else {
        rt_json_i64(&j, "label", q->label[i]);
        rt_json_str(&j, "class", rt_model_class_name(q->model, q->label[i]));
        json_f32(&j, "confidence", confidence(q, i));
        for (int64_t k = 0; k < KINDS; k++)
            json_f32(&j, kinds[k], q->kinds[i * KINDS + k]);
        rt_json_array_begin(&j, "probs");
        for (int64_t k = 0; k < q->k; k++)
            json_f32(&j, NULL, p[k]);
        rt_json_array_end(&j);
    }
    if (q->top > 0)
        jsonl_top(q, &j, i);
    if (rejects(q))
        rt_json_bool(&j, "rejected", q->out[i]);
    if (q->set) {
        rt_json_array_begin(&j, "set");
        for (int64_t c = 0; c < q->k; c++)
            if (q->set[i * q->k + c])
                rt_json_str(&j, NULL, rt_model_class_name(q->model, c));
        rt_json_array_end(&j);
    }
    if (q->interval) {
        json_f32(&j, "lower", q->interval[2 * i]);
        json_f32(&j, "upper", q->interval[2 * i + 1]);
    }
    if (q->part->label) {
        rt_json_i64(&j, "true_label", q->part->label[i]);
        rt_json_str(&j, "true_class", rt_model_class_name(q->model, q->part->label[i]));
    } else if (q->part->target) {
        json_f32(&j, "true_value", q->part->target[i]);
    }
    rt_json_object_end(&j);
    rt_str_append_char(&q->line, '\n');
}

static rt_status write_lines(prediction *q) {
    if (q->format == FORMAT_CSV)
        csv_heading(q);
    for (int64_t i = 0; i < q->n; i++) {
        if (q->format == FORMAT_CSV)
            csv_row(q, i);
        else
            jsonl_row(q, i);
        if (q->line.len >= FLUSH_BYTES)
            RT_TRY(flush(q));
    }
    return flush(q);
}

/* ---- files ---- */

/* (n, m, k), without the middle axis for a single network. */
static rt_status write_members(const prediction *q, const char *path, const float *data) {
    rt_shape s = q->m > 1 ? rt_shape3(q->n, q->m, q->k) : rt_shape2(q->n, q->k);
    return rt_npy_write(path, RT_DTYPE_F32, &s, data);
}

/* Means and variances of the members in the target's own units, whatever its transform. */
static void take_back(prediction *q) {
    for (int64_t i = 0; q->how.warp && i < q->n * q->m; i++) {
        double mean, variance;
        rt_warp_moments(q->how.warp, (double)q->y[2 * i], (double)q->y[2 * i + 1], &mean, &variance);
        q->y[2 * i] = (float)mean;
        q->y[2 * i + 1] = (float)variance;
    }
}

/* The rows themselves, as a network takes them. */
static rt_status write_inputs(const prediction *q, const char *path) {
    float *x = NULL;
    const rt_shape row = rt_dataset_row(q->in.data);
    rt_shape all = {.rank = row.rank + 1, .d = {q->n}};
    memcpy(all.d + 1, row.d, (size_t)row.rank * sizeof *row.d);
    RT_TRY(rt_part_convert(&x, q->part, row, row));
    const rt_status st = rt_npy_write(path, RT_DTYPE_F32, &all, x);
    rt_free(x);
    return st;
}

/* Where results go. */
typedef struct place {
    const char *flag, *path, *holds;
} place;
enum { PLACES = 5 };

static void find_places(place list[PLACES], const rt_config *k) {
    const place all[PLACES] = {{"out", k->out, "predictions for"},
                               {"logits", k->logits, "predictions for"},
                               {"probs", k->probs, "predictions for"},
                               {"uncertainty", k->uncertainty, "predictions for"},
                               {"inputs", k->inputs, "inputs of"}};
    memcpy(list, all, sizeof all);
}

/* Is there an array to write besides the lines? */
static bool any_array(const rt_config *k) {
    return k->logits || k->probs || k->uncertainty || k->inputs;
}

/* Files that cannot be written are known before the work. */
static rt_status check_places(const rt_config *k) {
    place list[PLACES];
    find_places(list, k);
    for (int i = 0; i < PLACES; i++) {
        const char *path = list[i].path;
        RT_FAIL_IF(path && path != k->out && !rt_str_ends(path, ".npy"), RT_E_USAGE,
                   "--%s: '%s' does not end in .npy", list[i].flag, path);
        if (path)
            RT_TRY(rt_file_may_write(path));
    }
    return RT_OK;
}

static rt_status choose_format(prediction *q) {
    const rt_config *k = &q->c->config;
    RT_FAIL_IF(k->json && !k->out && !any_array(k), RT_E_USAGE,
               "--json takes standard output, so the predictions need a file: --out, --logits, --probs, "
               "--uncertainty or --inputs");
    if (!k->out)
        return RT_OK;
    q->format = rt_str_ends(k->out, ".csv")     ? FORMAT_CSV
                : rt_str_ends(k->out, ".jsonl") ? FORMAT_JSONL
                                                : FORMAT_NPY;
    RT_FAIL_IF(q->format == FORMAT_NPY && !rt_str_ends(k->out, ".npy"), RT_E_USAGE,
               "--out: '%s' ends neither in .csv nor .jsonl nor .npy", k->out);
    RT_FAIL_IF(q->format == FORMAT_NPY && (k->top > 0 || rt_config_is_set(k, "reject")), RT_E_USAGE,
               "--%s adds columns to a table: --out FILE.csv or FILE.jsonl", k->top > 0 ? "top" : "reject");
    return RT_OK;
}

static rt_status write_out(prediction *q) {
    const rt_config *k = &q->c->config;
    if (k->logits) {
        take_back(q);
        RT_TRY(write_members(q, k->logits, q->y));
    }
    if (k->probs)
        RT_TRY(write_members(q, k->probs, q->member_p));
    const rt_shape kinds = rt_shape2(q->n, KINDS);
    if (k->uncertainty)
        RT_TRY(rt_npy_write(k->uncertainty, RT_DTYPE_F32, &kinds, q->kinds));
    if (k->inputs)
        RT_TRY(write_inputs(q, k->inputs));
    if (!k->out && any_array(k))
        return RT_OK;
    if (q->format == FORMAT_NPY) {
        rt_shape s = rt_shape2(q->n, q->regression ? REGRESSION_COLUMNS : q->k);
        return rt_npy_write(k->out, RT_DTYPE_F32, &s, q->p);
    }
    if (k->out)
        RT_TRY(rt_writer_open(&q->writer, k->out));
    RT_TRY(write_lines(q));
    return k->out ? rt_writer_commit(&q->writer) : RT_OK;
}

/* Accuracy, or RMSE. */
static double score_of(const prediction *q, double sum, int64_t n) {
    return q->regression ? sqrt(sum / (double)n) : sum / (double)n;
}

/* Measure and threshold of the reject rule as people say them. */
static const char *rule_of(const prediction *q, double *threshold, bool *below) {
    const rt_measure_info *list;
    (void)rt_measure_list(&list);
    *below = list[q->decision.measure].certainty;
    *threshold = rt_measure_shown(q->decision.measure, q->decision.threshold);
    return list[q->decision.measure].name;
}

static void say_rejected(prediction *q) {
    char rejected[32], rows[32], text[160] = "";
    const char *score = q->regression ? "RMSE" : "accuracy";
    if (!rejects(q))
        return;
    double threshold;
    bool below;
    const char *measure = rule_of(q, &threshold, &below);
    if (q->judged > 0 && q->rejected < q->n)
        snprintf(text, sizeof text, "; %s of the rest %.4f, of all %.4f", score,
                 score_of(q, q->kept_right, q->n - q->rejected), score_of(q, q->right, q->n));
    else if (q->judged > 0)
        snprintf(text, sizeof text, "; %s of all %.4f", score, score_of(q, q->right, q->n));
    cli_say(&q->c->term, "rejected %s of %s rows (%.1f %%), %s %s %g%s", cli_count(rejected, q->rejected),
            cli_count(rows, q->n), q->n > 0 ? 100.0 * (double)q->rejected / (double)q->n : 0.0, measure,
            below ? "below" : "above", threshold, text);
}

static rt_status print_json(prediction *q) {
    rt_json j;
    cli_json_begin(q->c, &j);
    rt_json_str(&j, "run", q->c->args[0]);
    rt_json_str(&j, "data", rt_dataset_spec(q->in.data));
    rt_json_str(&j, "task", q->regression ? "regression" : "classification");
    rt_json_i64(&j, "rows", q->n);
    rt_json_i64(&j, "members", q->m);
    rt_json_i64(&j, "outputs", q->k);
    place list[PLACES];
    find_places(list, &q->c->config);
    for (int i = 0; i < PLACES; i++)
        if (list[i].path)
            rt_json_str(&j, list[i].flag, list[i].path);
    if (rejects(q)) {
        double threshold;
        bool below;
        rt_json_object_begin(&j, "reject");
        rt_json_str(&j, "measure", rule_of(q, &threshold, &below));
        rt_json_f64(&j, "threshold", threshold);
        rt_json_i64(&j, "rejected", q->rejected);
        rt_json_i64(&j, "kept", q->n - q->rejected);
        const char *const score = q->regression ? "rmse" : "accuracy";
        const char *const of_kept = q->regression ? "rmse_kept" : "accuracy_kept";
        if (q->judged > 0)
            rt_json_f64(&j, score, score_of(q, q->right, q->n));
        if (q->judged > 0 && q->rejected < q->n)
            rt_json_f64(&j, of_kept, score_of(q, q->kept_right, q->n - q->rejected));
        rt_json_object_end(&j);
    }
    return cli_json_end(q->c, &j);
}

static void say_files(prediction *q) {
    place list[PLACES];
    char rows[32];
    find_places(list, &q->c->config);
    for (int i = 0; i < PLACES; i++)
        if (list[i].path)
            cli_say(&q->c->term, "%s: %s %s row%s", list[i].path, list[i].holds, cli_count(rows, q->n),
                    q->n == 1 ? "" : "s");
}

rt_status cli_cmd_predict(rt_cli *c) {
    prediction q = {.c = c};
    rt_str_init(&q.line);
    rt_status st;
    RT_TRY_GOTO(choose_format(&q));
    RT_TRY_GOTO(check_places(&c->config));
    RT_TRY_GOTO(load(&q));
    RT_TRY_GOTO(rt_model_predict(q.model, q.part, q.pool, q.y, cli_stop()));
    RT_TRY_GOTO(read_rows(&q));
    judge(&q);
    RT_TRY_GOTO(write_out(&q));
    if (c->config.json)
        RT_TRY_GOTO(print_json(&q));
    say_files(&q);
    say_rejected(&q);
done:
    rt_writer_abandon(&q.writer);
    rt_str_deinit(&q.line);
    rt_free(q.y);
    rt_free(q.p);
    rt_free(q.member_p);
    rt_free(q.kinds);
    rt_free(q.label);
    rt_free(q.out);
    rt_free(q.set);
    rt_free(q.interval);
    rt_free(q.order);
    cli_input_close(&q.in);
    rt_model_destroy(&q.model);
    rt_pool_destroy(&q.pool);
    return st;
}
