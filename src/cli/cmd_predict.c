/*
 * cmd_predict.c - retort predict: one line per input, and arrays for programs.
 *
 *     classification   row, label, class, confidence, entropy, expected_entropy, mutual_information, probs
 *     regression       row, mean, total_variance, data_variance, knowledge_variance
 *
 * Uncertainty in nats, over the M members of an ensemble with mean probabilities p:
 *
 *     entropy H(p)  =  expected_entropy (1/M) sum_m H(p_m)  +  mutual_information
 *     (a model with Dirichlet outputs has a mutual information within each member, too)
 *     total variance  =  data: mean of the members' variances  +  knowledge: variance of their means
 *
 * The format follows the name: .csv, .jsonl, .npy (float32: probs N x K; regression N x 4); without --out,
 * CSV on standard output. --uncertainty writes the three kinds of a row as an array, N x 3. --top adds
 * columns top_1, top_1_prob, ..., --reject a column rejected: 1 where the chosen measure is above the
 * threshold (of confidence: below).
 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/size.h"
#include "cli/cli.h"
#include "eval/eval.h"
#include "io/io.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FLUSH_BYTES = 1 << 16, REGRESSION_COLUMNS = 4, KINDS = 3 };
typedef enum format { FORMAT_CSV, FORMAT_JSONL, FORMAT_NPY } format;

/* Measures of --reject: of the columns of `uncertainty` (total, data, knowledge), or confidence. */
typedef struct reject_measure {
    const char *name;
    bool regression;
    int column; /* -1: confidence */
} reject_measure;
static const reject_measure measures[] = {
    {"entropy", false, 0},           {"expected_entropy", false, 1}, {"mutual_information", false, 2},
    {"confidence", false, -1},       {"total_variance", true, 0},    {"data_variance", true, 1},
    {"knowledge_variance", true, 2},
};

typedef struct prediction {
    rt_cli *c;
    rt_model *model;
    rt_dataset *data;
    rt_pool *pool;
    const rt_part *part;
    int64_t n, m, k;
    bool regression, dirichlet;
    double dirichlet_offset;
    float *y;                      /* (n, m, k) */
    float *p;                      /* (n, k) probabilities, or (n, 4) of a regression */
    float *member_p;               /* (n, m, k) */
    int64_t top;                   /* --top, at most k */
    int64_t *order;                /* (k), classes by falling probability */
    const reject_measure *measure; /* NULL: nothing is rejected */
    int64_t rejected;
    double judged, right, kept_right; /* rows with labels; sums of 0/1, or of squared errors */
    format format;
    rt_writer *writer; /* NULL: standard output */
    rt_str line;
} prediction;

/* ---- computing ---- */

static rt_status choose_measure(prediction *q) {
    const rt_config *k = &q->c->config;
    const bool told = rt_config_is_set(k, "measure");
    const char *name = !told && q->regression ? "total_variance" : k->measure;
    if (!rt_config_is_set(k, "reject")) {
        RT_FAIL_IF(told, RT_E_USAGE, "--measure is that of --reject T");
        return RT_OK;
    }
    for (int64_t i = 0; i < RT_COUNT(measures); i++)
        if (strcmp(measures[i].name, name) == 0)
            q->measure = &measures[i];
    RT_FAIL_IF(q->measure->regression != q->regression, RT_E_USAGE, "--measure %s: this model is a %s", name,
               q->regression ? "regression; it has variances"
                             : "classification; it has entropies and confidence");
    return RT_OK;
}

static rt_status load(prediction *q) {
    rt_config *k = &q->c->config;
    const bool train = rt_config_is_set(k, "part") && strcmp(k->part, "train") == 0;
    int64_t floats;
    RT_TRY(cli_require(q->c, "data", k->data));
    RT_FAIL_IF(rt_config_is_set(k, "part") && strcmp(k->part, "valid") == 0, RT_E_USAGE,
               "--part: valid rows are for 'retort data'; predict takes train or test");
    RT_TRY(cli_pool_create(q->c, &q->pool));
    RT_TRY(rt_model_load(&q->model, q->c->args[0]));
    rt_model_set_batch(q->model, k->batch);
    RT_TRY(rt_dataset_open(
        &q->data, k->data,
        (rt_data_options){.seed = (uint64_t)k->seed, .limit = k->limit, .test_only = !train}));
    RT_TRY(rt_model_check_data(q->model, q->data));
    q->part = train ? rt_dataset_train(q->data) : rt_dataset_test(q->data);
    q->n = q->part->n;
    q->m = rt_model_members(q->model);
    q->k = rt_model_outputs(q->model);
    q->regression = rt_model_task(q->model) == RT_TASK_REGRESSION;
    q->dirichlet = rt_model_output_kind(q->model, &q->dirichlet_offset) == RT_OUTPUT_DIRICHLET;
    RT_FAIL_IF(q->regression && k->probs, RT_E_USAGE,
               "--probs: this model is a regression; --logits writes means and variances");
    RT_FAIL_IF(!rt_i64_mul(q->n, q->m * q->k, &floats), RT_E_MEMORY, "%lld predictions are too many",
               (long long)q->n);
    RT_TRY(rt_calloc(&q->y, (size_t)floats + 1, sizeof *q->y));
    RT_TRY(rt_calloc(&q->p, (size_t)(q->n * (q->regression ? REGRESSION_COLUMNS : q->k)) + 1, sizeof *q->p));
    if (!q->regression)
        RT_TRY(rt_calloc(&q->member_p, (size_t)floats + 1, sizeof *q->member_p));
    RT_FAIL_IF(q->regression && k->top > 0, RT_E_USAGE,
               "--top: this model is a regression, it has no classes");
    q->top = RT_MIN(k->top, q->k);
    if (q->top > 0)
        RT_TRY(rt_calloc(&q->order, (size_t)q->k, sizeof *q->order));
    return choose_measure(q);
}

/* Mean, total, data and knowledge variance of the mixture of the members' Gaussians. */
static void mix(const prediction *q) {
    for (int64_t i = 0; i < q->n; i++) {
        const float *y = q->y + i * q->m * 2;
        double mean = 0, data = 0, knowledge = 0;
        for (int64_t j = 0; j < q->m; j++) {
            mean += (double)y[2 * j] / (double)q->m;
            data += (double)y[2 * j + 1] / (double)q->m;
        }
        for (int64_t j = 0; j < q->m; j++) {
            double d = (double)y[2 * j] - mean;
            knowledge += d * d / (double)q->m;
        }
        float *out = q->p + i * REGRESSION_COLUMNS;
        out[0] = (float)mean;
        out[1] = (float)(data + knowledge);
        out[2] = (float)data;
        out[3] = (float)knowledge;
    }
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

/* A CSV field; quoted when it must be (RFC 4180). */
static void append_field(rt_str *s, const char *text) {
    if (!text || !strpbrk(text, ",\"\r\n")) {
        rt_str_append(s, text ? text : "");
        return;
    }
    rt_str_append_char(s, '"');
    for (; *text; text++) {
        if (*text == '"')
            rt_str_append_char(s, '"');
        rt_str_append_char(s, *text);
    }
    rt_str_append_char(s, '"');
}

typedef struct uncertainty {
    int64_t label;
    float confidence;
    double entropy, mutual_information, expected_entropy;
} uncertainty;

static uncertainty measure(const prediction *q, int64_t i) {
    const float *p = q->p + i * q->k;
    uncertainty u = {0};
    for (int64_t j = 1; j < q->k; j++)
        if (p[j] > p[u.label])
            u.label = j;
    u.confidence = p[u.label];
    u.entropy = rt_eval_entropy(p, 1, q->k);
    double own = 0; /* knowledge uncertainty of each Dirichlet */
    for (int64_t j = 0; j < q->m; j++) {
        const int64_t at = (i * q->m + j) * q->k;
        u.expected_entropy += rt_eval_entropy(q->member_p + at, 1, q->k) / (double)q->m;
        if (q->dirichlet)
            own +=
                rt_dirichlet_uncertainty(q->y + at, NULL, q->k, q->dirichlet_offset).knowledge / (double)q->m;
    }
    u.mutual_information = own + (q->m > 1 ? RT_MAX(u.entropy - u.expected_entropy, 0.0) : 0);
    u.expected_entropy -= own;
    return u;
}

/* Total, data and knowledge uncertainty of a row, and its confidence if it has one. */
static void kinds(const prediction *q, int64_t i, float out[KINDS], float *confidence) {
    if (q->regression) {
        memcpy(out, q->p + i * REGRESSION_COLUMNS + 1, KINDS * sizeof *out);
        *confidence = 0;
        return;
    }
    const uncertainty u = measure(q, i);
    out[0] = (float)u.entropy;
    out[1] = (float)u.expected_entropy;
    out[2] = (float)u.mutual_information;
    *confidence = u.confidence;
}

static bool rejects(const prediction *q, int64_t i) {
    float kind[KINDS], confidence;
    const double threshold = q->c->config.reject;
    if (!q->measure)
        return false;
    kinds(q, i, kind, &confidence);
    return q->measure->column < 0 ? (double)confidence < threshold
                                  : (double)kind[q->measure->column] > threshold;
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
    if (!q->measure)
        return;
    for (int64_t i = 0; i < q->n; i++) {
        const bool out = rejects(q, i);
        double good = 0;
        q->rejected += out;
        if (q->regression && q->part->target) {
            const double e = (double)q->p[i * REGRESSION_COLUMNS] - (double)q->part->target[i];
            good = e * e;
        } else if (q->part->label) {
            const float *p = q->p + i * q->k;
            int64_t label = 0;
            for (int64_t j = 1; j < q->k; j++)
                if (p[j] > p[label])
                    label = j;
            good = label == q->part->label[i];
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
    if (q->regression)
        rt_str_append(s, "row,mean,total_variance,data_variance,knowledge_variance");
    else
        rt_str_append(s, "row,label,class,confidence,entropy,expected_entropy,mutual_information");
    for (int64_t j = 0; j < q->k && !q->regression; j++)
        rt_str_appendf(s, ",probs_%lld", (long long)j);
    for (int64_t j = 1; j <= q->top; j++)
        rt_str_appendf(s, ",top_%lld,top_%lld_prob", (long long)j, (long long)j);
    rt_str_append(s, q->measure ? ",rejected\n" : "\n");
}

static void csv_row(prediction *q, int64_t i) {
    rt_str *s = &q->line;
    rt_str_appendf(s, "%lld", (long long)i);
    const float *p = q->p + i * (q->regression ? REGRESSION_COLUMNS : q->k);
    if (!q->regression) {
        uncertainty u = measure(q, i);
        rt_str_appendf(s, ",%lld,", (long long)u.label);
        append_field(s, rt_model_class_name(q->model, u.label));
        const float values[] = {u.confidence, (float)u.entropy, (float)u.expected_entropy,
                                (float)u.mutual_information};
        for (int64_t j = 0; j < RT_COUNT(values); j++) {
            rt_str_append_char(s, ',');
            append_f32(s, values[j]);
        }
    }
    for (int64_t j = 0; j < (q->regression ? REGRESSION_COLUMNS : q->k); j++) {
        rt_str_append_char(s, ',');
        append_f32(s, p[j]);
    }
    if (q->top > 0)
        rank_classes(q, i);
    for (int64_t j = 0; j < q->top; j++) {
        rt_str_append_char(s, ',');
        append_field(s, rt_model_class_name(q->model, q->order[j]));
        rt_str_append_char(s, ',');
        append_f32(s, p[q->order[j]]);
    }
    if (q->measure)
        rt_str_append(s, rejects(q, i) ? ",1" : ",0");
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
    rt_json j;
    const float *p = q->p + i * (q->regression ? REGRESSION_COLUMNS : q->k);
    rt_json_init(&j, &q->line, false);
    rt_json_object_begin(&j, NULL);
    rt_json_i64(&j, "row", i);
    if (q->regression) {
        for (int64_t k = 0; k < REGRESSION_COLUMNS; k++)
            json_f32(&j, names[k], p[k]);
    } else {
        uncertainty u = measure(q, i);
        rt_json_i64(&j, "label", u.label);
        rt_json_str(&j, "class", rt_model_class_name(q->model, u.label));
        json_f32(&j, "confidence", u.confidence);
        json_f32(&j, "entropy", (float)u.entropy);
        json_f32(&j, "expected_entropy", (float)u.expected_entropy);
        json_f32(&j, "mutual_information", (float)u.mutual_information);
        rt_json_array_begin(&j, "probs");
        for (int64_t k = 0; k < q->k; k++)
            json_f32(&j, NULL, p[k]);
        rt_json_array_end(&j);
    }
    if (q->top > 0)
        jsonl_top(q, &j, i);
    if (q->measure)
        rt_json_bool(&j, "rejected", rejects(q, i));
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

/* (n, 3) */
static rt_status write_uncertainty(const prediction *q, const char *path) {
    float *all = NULL, confidence;
    const rt_shape s = rt_shape2(q->n, KINDS);
    RT_TRY(rt_calloc(&all, (size_t)q->n + 1, KINDS * sizeof *all));
    for (int64_t i = 0; i < q->n; i++)
        kinds(q, i, all + i * KINDS, &confidence);
    rt_status st = rt_npy_write(path, RT_DTYPE_F32, &s, all);
    rt_free(all);
    return st;
}

/* Is there an array to write besides the lines? */
static bool any_array(const rt_config *k) {
    return k->logits || k->probs || k->uncertainty;
}

static rt_status choose_format(prediction *q) {
    const rt_config *k = &q->c->config;
    RT_FAIL_IF(k->json && !k->out && !any_array(k), RT_E_USAGE,
               "--json takes standard output, so the predictions need a file: --out, --logits, --probs or "
               "--uncertainty");
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
    if (k->logits)
        RT_TRY(write_members(q, k->logits, q->y));
    if (k->probs)
        RT_TRY(write_members(q, k->probs, q->member_p));
    if (k->uncertainty)
        RT_TRY(write_uncertainty(q, k->uncertainty));
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

static void say_rejected(prediction *q) {
    char rejected[32], rows[32], text[160] = "";
    const char *score = q->regression ? "RMSE" : "accuracy";
    if (!q->measure)
        return;
    if (q->judged > 0 && q->rejected < q->n)
        snprintf(text, sizeof text, "; %s of the rest %.4f, of all %.4f", score,
                 score_of(q, q->kept_right, q->n - q->rejected), score_of(q, q->right, q->n));
    else if (q->judged > 0)
        snprintf(text, sizeof text, "; %s of all %.4f", score, score_of(q, q->right, q->n));
    cli_say(&q->c->term, "rejected %s of %s rows (%.1f %%), %s %s %g%s", cli_count(rejected, q->rejected),
            cli_count(rows, q->n), q->n > 0 ? 100.0 * (double)q->rejected / (double)q->n : 0.0,
            q->measure->name, q->measure->column < 0 ? "below" : "above", q->c->config.reject, text);
}

static rt_status print_json(prediction *q) {
    const rt_config *k = &q->c->config;
    rt_json j;
    cli_json_begin(&j, &q->line);
    rt_json_str(&j, "run", q->c->args[0]);
    rt_json_str(&j, "data", k->data);
    rt_json_str(&j, "task", q->regression ? "regression" : "classification");
    rt_json_i64(&j, "rows", q->n);
    rt_json_i64(&j, "members", q->m);
    rt_json_i64(&j, "outputs", q->k);
    const char *const names[] = {"out", "logits", "probs", "uncertainty"};
    const char *const paths[] = {k->out, k->logits, k->probs, k->uncertainty};
    for (int i = 0; i < 4; i++)
        if (paths[i])
            rt_json_str(&j, names[i], paths[i]);
    if (q->measure) {
        rt_json_object_begin(&j, "reject");
        rt_json_str(&j, "measure", q->measure->name);
        rt_json_f64(&j, "threshold", k->reject);
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
    const rt_config *k = &q->c->config;
    const char *const paths[] = {k->out, k->logits, k->probs, k->uncertainty};
    char rows[32];
    for (int i = 0; i < 4; i++)
        if (paths[i])
            cli_say(&q->c->term, "%s: predictions for %s rows", paths[i], cli_count(rows, q->n));
}

rt_status cli_cmd_predict(rt_cli *c) {
    prediction q = {.c = c};
    rt_str_init(&q.line);
    rt_status st;
    RT_TRY_GOTO(choose_format(&q));
    RT_TRY_GOTO(load(&q));
    RT_TRY_GOTO(rt_model_predict(q.model, q.part, q.pool, q.y, cli_stop()));
    if (q.regression)
        mix(&q);
    else if (q.dirichlet)
        rt_eval_dirichlet_mean(q.y, q.p, q.member_p, q.n, q.m, q.k, q.dirichlet_offset);
    else
        rt_eval_softmax_mean(q.y, q.p, q.member_p, q.n, q.m, q.k);
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
    rt_free(q.order);
    rt_dataset_destroy(&q.data);
    rt_model_destroy(&q.model);
    rt_pool_destroy(&q.pool);
    return st;
}
