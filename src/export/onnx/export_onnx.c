/*
 * export_onnx.c - a model as one ONNX file: network, answers, what it is; then read back and checked.
 *
 * The check computes the file with an interpreter that shares no code with the writer, on rows the run held out (or,
 * where they cannot be found, on rows drawn from the moments of the inputs), and compares every output with what
 * `retort predict` says of the same rows. Probabilities, entropies and means must agree to 1e-5 (of the largest value
 * where that is above 1), knowledge to a thousandth of itself above 1e-6. Where a network magnifies the rounding of
 * floats beyond that, no two programs agree so well; so the file is computed with and without rounding, and some
 * hundred times the largest difference of both is allowed, too (the interpreter sums in double, kernels do not). A
 * wrong file is not excused by this: it is wrong in both. Nothing is written before it has passed; then the file is
 * read back and its bytes are compared.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "eval/eval.h"
#include "export/export_int.h"
#include "export/onnx/onnx_run.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OPSET = 17, OPSET_LEAST = 13, ROWS_MAX = 64, ROWS_LEAST = 2 };
static const double k_check_flops = 4e9; /* seconds at most, not minutes */
static const double k_slack = 300;

rt_status rt_export_onnx(const rt_model *m, const char *run, const rt_export_options *o, rt_export_result *r);

/* ---- what it is ---- */

static void describe(rt_onnx *o, const rt_model *m) {
    static const char *const keys[] = {"architecture", "student",    "preprocessing", "task",
                                       "method",       "provenance", "decision",      "sha256"};
    rt_str names;
    for (size_t i = 0; i < RT_COUNT(keys); i++)
        if (rt_model_meta(m, keys[i]) != NULL)
            rt_onnx_meta(o, keys[i], rt_model_meta(m, keys[i]));
    rt_onnx_meta(o, "retort", RT_VERSION);
    rt_str_init(&names);
    for (int64_t k = 0; rt_model_task(m) == RT_TASK_CLASSIFICATION && k < rt_model_outputs(m); k++)
        rt_str_appendf(&names, "%s%s", k > 0 ? "\n" : "", rt_model_class_name(m, k));
    if (names.len > 0)
        rt_onnx_meta(o, "classes", rt_str_text(&names));
    rt_onnx_fail(o, rt_str_status(&names));
    rt_str_deinit(&names);
}

/* A file in memory. */
typedef struct packed {
    uint8_t *bytes;
    size_t n;
    int64_t outside;
} packed;

static rt_status make_file(rt_onnx *x, const rt_model *m, const rt_export_options *o, rt_export_result *r,
                           packed *out) {
    const rt_shape row = rt_model_input(m);
    const rt_onnx_val in = rt_onnx_input(x, "x", &row);
    const rt_onnx_val z = rt_onnx_network(x, m, in, !o->no_fold);
    RT_TRY(rt_onnx_status(x));
    RT_TRY(rt_onnx_answers(x, m, z, o->outputs, o->raw, &r->outputs));
    describe(x, m);
    return rt_onnx_pack(x, o->out, &out->bytes, &out->n, &out->outside);
}

/* How the check went, in the file that was checked. */
static rt_status add_check(rt_onnx *x, const rt_export_result *r, packed *f) {
    char text[256];
    snprintf(text, sizeof text,
             "{\"max_abs_difference\":%.2g,\"rounding\":%.2g,\"rows\":%lld,\"rows_from\":\"%s\"}",
             r->max_abs_difference, r->rounding, (long long)r->rows_checked, r->rows_from);
    rt_onnx_meta(x, "check", text);
    rt_free(f->bytes);
    f->bytes = NULL;
    return rt_onnx_pack(x, NULL, &f->bytes, &f->n, &f->outside);
}

static rt_status write_file(const rt_export_options *o, const packed *f, rt_export_result *r) {
    uint8_t *back = NULL;
    size_t n = 0;
    RT_TRY(rt_file_write_atomic(o->out, f->bytes, f->n));
    RT_TRY(rt_file_read(o->out, f->n + 1, &back, &n));
    const bool same = n == f->n && memcmp(back, f->bytes, n) == 0;
    rt_free(back);
    RT_FAIL_IF(!same, RT_E_IO, "%s: what was written is not what is read back", o->out);
    r->bytes = (int64_t)f->n + f->outside;
    return RT_OK;
}

/* ---- rows to check with ---- */

/* Normal numbers with the moments the network standardises by. */
static void draw_rows(const rt_model *m, float *x, int64_t rows) {
    const rt_arch_config *a = rt_net_config(rt_model_net(m));
    const int64_t floats = rt_shape_elems(&a->input), each = a->norm > 0 ? floats / a->norm : 1;
    const rt_rng g = rt_rng_make(1, RT_RNG_TEST, 0, 0);
    for (int64_t i = 0; i < rows * floats; i++) {
        const int64_t c = a->norm > 0 ? i % floats / each : 0;
        const double mean = a->norm > 0 ? a->mean[c] : 0, std = a->norm > 0 ? a->std[c] : 1;
        x[i] = (float)(mean + std * rt_rng_normal(g, (uint64_t)i));
    }
}

static rt_status check_rows(const rt_model *m, const char *run, const rt_export_options *o,
                            rt_export_result *r, float **x) {
    rt_held_out h = {0};
    const rt_shape row = rt_model_input(m);
    const int64_t floats = rt_shape_elems(&row);
    rt_status st;
    RT_TRY_GOTO(rt_held_out_find(&h, run, m, o->data));
    r->rows_checked = RT_MIN(r->rows_checked, h.reason == NULL ? h.rows.n : (int64_t)ROWS_MAX);
    RT_TRY_GOTO(rt_calloc(x, (size_t)(r->rows_checked * floats), sizeof **x));
    r->rows_from = h.reason != NULL ? h.reason : "held-out rows";
    if (h.reason != NULL)
        draw_rows(m, *x, r->rows_checked);
    for (int64_t i = 0; h.reason == NULL && i < r->rows_checked * floats; i++)
        (*x)[i] = h.rows.u8 != NULL ? (float)h.rows.u8[i] / 255.0f : h.rows.f32[i];
done:
    rt_held_out_deinit(&h);
    return st;
}

/* ---- what the model says ---- */

/* The same answer from the row function; index: class, or member * classes + class. Concentrations end at e^80 in
 * the file: floats have no room for more. */
static double native(const rt_row *row, const rt_decision *d, const char *name, int64_t index) {
    double lower = NAN, upper = NAN;
    if (strcmp(name, "set") == 0)
        return rt_decision_contains(d, row, index);
    if (d->conformal == RT_CONFORMAL_INTERVAL)
        rt_decision_interval(d, row, &lower, &upper);
    const struct {
        const char *name;
        double one;
        const double *many;
    } all[] = {{"probs", 0, row->p},
               {"label", (double)row->top, NULL},
               {"confidence", 1 - row->rest, NULL},
               {"entropy", row->total, NULL},
               {"expected_entropy", row->data, NULL},
               {"mutual_information", row->knowledge, NULL},
               {"epkl", row->epkl, NULL},
               {"alpha", 0, row->alpha},
               {"member_probs", 0, row->member_p},
               {"mean", row->mean, NULL},
               {"variance", row->total, NULL},
               {"data_variance", row->data, NULL},
               {"knowledge_variance", row->knowledge, NULL},
               {"reject", rt_decision_rejects(d, row), NULL},
               {"lower", lower, NULL},
               {"upper", upper, NULL}};
    for (size_t i = 0; i < RT_COUNT(all); i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].many != NULL ? fmin(all[i].many[index], exp(RT_ONNX_EXP) + row->how.offset)
                                       : fmin(all[i].one, FLT_MAX);
    RT_ASSERT(!"an answer without a twin");
    return NAN;
}

/* Answers that are compared by ratio: small ones matter. */
static bool by_ratio(const char *name) {
    return strcmp(name, "mutual_information") == 0 || strcmp(name, "epkl") == 0 ||
           strstr(name, "variance") != NULL || strcmp(name, "alpha") == 0;
}

/* How far apart two numbers may be. rounding: of such answers, by ratio or absolute. Knowledge variance is of differences
 * between members' means, each with the rounding of a float: the more so, the nearer they are to each other. */
static double allowed(const char *name, double want, double rounding, const rt_row *row) {
    const double size = by_ratio(name) ? fabs(want) : fmax(1, fabs(want)), slack = k_slack * rounding * size;
    if (strcmp(name, "knowledge_variance") == 0) {
        const double each = 1e-5 * (fabs(row->mean) + sqrt(row->data));
        return 1e-3 * size + 1e-9 + 2 * each * sqrt(size) + each * each + slack;
    }
    return (by_ratio(name) ? 1e-3 * size + 1e-9 : 2e-5 * size) + slack;
}

/* The largest difference of an answer with and without rounding, by its kind of size. */
static double rounding_of(const rt_onnx_array *a, const rt_onnx_array *exact, const char *name) {
    double most = 0;
    for (int64_t i = 0, n = rt_onnx_array_count(a); a->type == RT_ONNX_F32 && i < n; i++) {
        const double v = fabs(exact->v[i]), off = fabs(a->v[i] - exact->v[i]);
        if (!by_ratio(name) || v > 1e-6)
            most = fmax(most, off / (by_ratio(name) ? v : fmax(1, v)));
    }
    return most;
}

/* A class that wins by less than the rounding of a float may be another one; so may a decision at its limit. */
static bool tie(const rt_row *row, const rt_decision *d, const char *name, double got, int64_t index,
                double near) {
    const int64_t k = (int64_t)got;
    rt_decision looser = *d, stricter = *d;
    if (strcmp(name, "label") == 0)
        return k >= 0 && k < row->how.k && row->p[row->top] - row->p[k] < near;
    looser.quantile += near;
    stricter.quantile -= near;
    looser.threshold += near * fmax(1, fabs(d->threshold));
    stricter.threshold -= near * fmax(1, fabs(d->threshold));
    if (strcmp(name, "set") == 0)
        return rt_decision_contains(&looser, row, index) != rt_decision_contains(&stricter, row, index);
    return strcmp(name, "reject") == 0 &&
           rt_decision_rejects(&looser, row) != rt_decision_rejects(&stricter, row);
}

/* A file that was computed, with rounding and without, and what it should say. */
typedef struct checking {
    rt_onnx_run *file, *exact;
    rt_row row;
    const rt_decision *d;
    rt_export_result *r;
    double near; /* what rounding does to probabilities */
} checking;

static rt_status compare_row(const checking *c, const char *name, int64_t i, double rounding) {
    const rt_onnx_array *a = rt_onnx_run_get(c->file, name);
    const int64_t each = rt_onnx_array_count(a) / c->r->rows_checked;
    for (int64_t k = 0; k < each; k++) {
        const double got = a->v[i * each + k], want = native(&c->row, c->d, name, k);
        if (tie(&c->row, c->d, name, got, k, c->near))
            continue;
        if (fabs(want) > 1e30 && got > 1e30)
            continue; /* both beyond what concentrations can tell: e^80 is where they end in the file */
        const double off = fabs(got - want);
        RT_FAIL_IF(!(off <= allowed(name, want, rounding, &c->row)) && off > 1e-6, RT_E_NUMERIC,
                   "%s of row %lld is %.9g in the file and %.9g in the model", name, (long long)i, got, want);
        if (strcmp(name, "label") != 0)
            c->r->max_abs_difference = fmax(c->r->max_abs_difference, off / fmax(1, fabs(want)));
    }
    return RT_OK;
}

static rt_status compare_output(checking *c, const char *name, const float *y) {
    const rt_onnx_array *a = rt_onnx_run_get(c->file, name);
    RT_FAIL_IF(a == NULL, RT_E_NUMERIC, "the file has no output %s", name);
    const double rounding = rounding_of(a, rt_onnx_run_get(c->exact, name), name);
    if (!by_ratio(name))
        c->r->rounding = fmax(c->r->rounding, rounding);
    c->near = fmax(1e-5, k_slack * c->r->rounding);
    for (int64_t i = 0; i < c->r->rows_checked; i++) {
        RT_FAIL_IF(!rt_row_read(&c->row, y + i * c->row.how.m * c->row.how.k), RT_E_NUMERIC,
                   "the model's answer to row %lld is not finite", (long long)i);
        RT_TRY(compare_row(c, name, i, rounding));
    }
    return RT_OK;
}

static rt_status compare(checking *c, const float *y) {
    char name[64];
    const char *list = rt_str_text(&c->r->outputs);
    for (const char *p = list; *p != '\0'; p += strcspn(p, ",") + (strchr(p, ',') != NULL)) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p, ","), p);
        RT_TRY(compare_output(c, name, y));
    }
    return RT_OK;
}

static rt_status check_file(const rt_model *m, const char *run, const rt_export_options *o, const packed *f,
                            rt_export_result *r) {
    const rt_decision none = {.measure = -1};
    checking c = {.d = o->raw ? &none : rt_model_decision(m), .r = r};
    float *x = NULL, *y = NULL;
    const rt_reading how = o->raw ? rt_model_reading(m) : rt_model_answering(m);
    const double flops = 2 * rt_student_flops(rt_model_student(m)) * rt_model_networks(m);
    rt_status st;
    r->rows_checked = (int64_t)RT_MIN(RT_MAX(k_check_flops / flops, (double)ROWS_LEAST), (double)ROWS_MAX);
    RT_TRY_GOTO(check_rows(m, run, o, r, &x));
    RT_TRY_GOTO(rt_calloc(&y, (size_t)(r->rows_checked * how.m * how.k), sizeof *y));
    RT_TRY_GOTO(rt_model_predict(m, &(rt_part){.n = r->rows_checked, .f32 = x}, o->pool, y, NULL));
    RT_TRY_GOTO(rt_row_init(&c.row, how));
    RT_TRY_GOTO(rt_onnx_run_open(&c.file, o->out, f->bytes, f->n));
    RT_TRY_GOTO(rt_onnx_run_rows(c.file, x, r->rows_checked, false));
    RT_TRY_GOTO(rt_onnx_run_open(&c.exact, o->out, f->bytes, f->n));
    RT_TRY_GOTO(rt_onnx_run_rows(c.exact, x, r->rows_checked, true));
    st = compare(&c, y);
done:
    rt_onnx_run_close(&c.file);
    rt_onnx_run_close(&c.exact);
    rt_row_deinit(&c.row);
    rt_free(x);
    rt_free(y);
    return st;
}

/* Tensors outside are written before the check: without a file they are nothing. */
static void remove_outside(const char *path) {
    rt_str data;
    rt_str_init(&data);
    rt_str_appendf(&data, "%s.data", path);
    if (rt_str_status(&data) == RT_OK)
        (void)!rt_file_remove(rt_str_text(&data));
    rt_str_deinit(&data);
}

rt_status rt_export_onnx(const rt_model *m, const char *run, const rt_export_options *o,
                         rt_export_result *r) {
    r->opset = o->opset != 0 ? o->opset : OPSET;
    RT_FAIL_IF(r->opset < OPSET_LEAST || r->opset > OPSET, RT_E_USAGE, "--opset: %d, wanted %d to %d",
               r->opset, (int)OPSET_LEAST, (int)OPSET);
    packed f = {0};
    rt_onnx *x = NULL;
    RT_TRY(rt_onnx_create(&x, r->opset));
    rt_status st = make_file(x, m, o, r, &f);
    if (st == RT_OK) {
        st = check_file(m, run, o, &f, r);
        if (st == RT_E_NUMERIC)
            st = rt_error_prefix(st, "%s is not written: it would not agree with the model", o->out);
    }
    if (st == RT_OK)
        st = add_check(x, r, &f);
    if (st == RT_OK)
        st = write_file(o, &f, r);
    if (st != RT_OK && f.outside > 0)
        remove_outside(o->out);
    rt_onnx_destroy(&x);
    rt_free(f.bytes);
    return st;
}
