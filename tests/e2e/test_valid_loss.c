/*
 * test_valid_loss.c - what training calls the validation loss of a network is what `eval` calls its NLL on the same
 * rows, to the last digit, whatever kind of network it is; so are the losses by which a search chooses and those of
 * averages. Diversity, too, is one number.
 */
#include "average/average.h"
#include "base/alloc.h"
#include "base/file.h"
#include "config/config.h"
#include "eval/eval.h"
#include "io/io.h"
#include "model/model.h"
#include "model/run.h"
#include "support/flags.h"
#include "support/root.h"
#include "train/train.h"

enum { VALID = 40, PICTURES = 100, SIDE = 8 };
static char line_spec[1200], price_spec[1200], picture_spec[2400];
static const char SPIRAL[] = "spiral:n=60,noise=0.2,arms=3";
static rt_pool *pool;

static const flag COMMON[] = {{"arch", "mlp:12"}, {"epochs", "3"},       {"batch", "24"},
                              {"valid", "40"},    {"lr", "0.02"},        {"optimiser", "adam"},
                              {"keep", "last"},   {"weight-decay", "0"}, {NULL, NULL}};

/* ---- data ---- */

static void write_table(char spec[1200], const char *name, bool prices) {
    rt_str csv;
    rt_str_init(&csv);
    rt_str_append(&csv, "a,b,y\n");
    for (int i = 0; i < 200; i++) {
        const double a = (i * 37 % 100) / 50.0 - 1, b = (i * 61 % 100) / 50.0 - 1;
        rt_str_appendf(&csv, "%.4f,%.4f,%.4f\n", a, b, prices ? exp(5 + 3 * a - b) : 1000 + 30 * a - 20 * b);
    }
    OK(rt_file_write_atomic(in_root(name), csv.p, csv.len));
    rt_str_deinit(&csv);
    snprintf(spec, 1200, "csv:%s,target=y,task=regression", in_root(name));
}

static void write_pictures(void) {
    static uint8_t x[PICTURES * 3 * SIDE * SIDE];
    int32_t y[PICTURES];
    for (int i = 0; i < PICTURES; i++)
        y[i] = i % 3;
    for (int i = 0; i < (int)sizeof x; i++)
        x[i] = (uint8_t)((i * 7919 + i / 64 * 31) % 160 + 40 * (i / (3 * SIDE * SIDE) % 3));
    const rt_shape rows = rt_shape4(PICTURES, 3, SIDE, SIDE), labels = rt_shape1(PICTURES);
    OK(rt_npy_write(in_root("x.npy"), RT_DTYPE_U8, &rows, x));
    OK(rt_npy_write(in_root("y.npy"), RT_DTYPE_I32, &labels, y));
    snprintf(picture_spec, sizeof picture_spec, "npy:%s,%s", in_root("x.npy"), in_root("y.npy"));
}

static int set_up(void **state) {
    if (make_root(state) != 0)
        return -1;
    write_table(line_spec, "line.csv", false);
    write_table(price_spec, "price.csv", true);
    write_pictures();
    return rt_pool_create(&pool, 1) == RT_OK ? 0 : -1;
}

static int tear_down(void **state) {
    rt_pool_destroy(&pool);
    return remove_root(state);
}

/* ---- what eval says ---- */

typedef struct answers {
    rt_model *model;
    rt_eval_input in;
    float *y;
} answers;

static void answer(answers *a, const char *path, const rt_part *rows) {
    OK(rt_model_load(&a->model, path));
    const rt_reading how = rt_model_reading(a->model);
    OK(rt_calloc(&a->y, (size_t)(rows->n * how.m * how.k), sizeof *a->y));
    OK(rt_model_predict(a->model, rows, pool, a->y, NULL));
    a->in =
        (rt_eval_input){.how = how, .n = rows->n, .y = a->y, .label = rows->label, .target = rows->target};
}

static void forget(answers *a) {
    rt_free(a->y);
    rt_model_destroy(&a->model);
}

static double value_of(const rt_eval_input *in, const char *name) {
    double v[RT_METRICS_MAX];
    OK(rt_eval_all(in, v, NULL));
    return v[rt_metric_find(name, rt_eval_regression(in))];
}

/* The rows a run held out. */
static void find_rows(rt_held_out *h, const char *run) {
    rt_model *m;
    OK(rt_model_load(&m, run));
    OK(rt_held_out_find(h, run, m, NULL));
    assert_int_equal(h->rows.n, VALID);
    rt_model_destroy(&m);
}

/* NLL and accuracy of a run or of one file of it on these rows. */
static rt_average_score evaluate(const char *path, const rt_part *rows) {
    answers a;
    answer(&a, path, rows);
    const rt_average_score s = {.loss = value_of(&a.in, "nll"),
                                .accuracy = rt_eval_regression(&a.in) ? NAN : value_of(&a.in, "accuracy")};
    forget(&a);
    return s;
}

static void same(const char *name, const char *who, double got, double want) {
    if (got != want && !(isnan(got) && isnan(want)))
        fail_msg("%s: %s says %.17g, eval %.17g", name, who, got, want);
}

/* ---- what runs say ---- */

static double number(rt_jval v, const char *key) {
    double out = NAN;
    (void)rt_jval_f64(rt_jval_get(v, key), &out);
    return out;
}

/* The last line of an epoch. */
static rt_jdoc *last_epoch(const char *run) {
    static const char start[] = "{\"event\":\"epoch\"";
    char path[1200], *last = NULL;
    uint8_t *text;
    size_t n;
    rt_jdoc *doc;
    snprintf(path, sizeof path, "%s/log.jsonl", run);
    OK(rt_file_read(path, 1 << 20, &text, &n));
    for (char *p = (char *)text; (p = strstr(p, start)) != NULL; p++)
        last = p;
    assert_non_null(last);
    OK(rt_jdoc_parse(&doc, last, strcspn(last, "\n"), path));
    rt_free(text);
    return doc;
}

/* A run's networks one by one, and their mean. */
static void check_run(const char *name, const rt_train_result *r, rt_output_kind kind, int members) {
    rt_held_out h = {0};
    rt_model *m;
    char run[1100], file[48], path[1200];
    rt_average_score mean = {0};
    snprintf(run, sizeof run, "%s", in_root(name));
    OK(rt_model_load(&m, run));
    const int networks = rt_model_networks(m);
    assert_int_equal(rt_model_reading(m).kind, kind);
    assert_int_equal(rt_model_members(m), members);
    rt_model_destroy(&m);
    find_rows(&h, run);
    rt_jdoc *log = last_epoch(run);
    const rt_jval each = rt_jval_get(rt_jdoc_root(log), "members");
    assert_int_equal(rt_jval_len(each), networks);
    for (int i = 0; i < networks; i++) {
        rt_member_file(file, i, networks == 1);
        snprintf(path, sizeof path, "%s/%s", run, file);
        const rt_average_score s = evaluate(path, &h.rows);
        same(name, "the log", number(rt_jval_at(each, i), "valid_loss"), s.loss);
        same(name, "the log", number(rt_jval_at(each, i), "valid_accuracy"), s.accuracy);
        mean.loss += s.loss / networks;
        mean.accuracy += s.accuracy / networks;
    }
    near(r->valid_loss, mean.loss, networks == 1 ? 0 : 1e-15 * fabs(mean.loss));
    assert_true(kind == RT_OUTPUT_GAUSSIAN ? isnan(r->valid_accuracy)
                                           : fabs(r->valid_accuracy - mean.accuracy) < 1e-15);
    rt_jdoc_destroy(&log);
    rt_held_out_deinit(&h);
}

static void run(unsigned verb, const char *name, const char *data, const flag *more, rt_train_result *out) {
    rt_config c;
    configure(&c, verb, COMMON);
    set_flags(&c, verb, (flag[]){{"data", data}, {"out", in_root(name)}, {NULL, NULL}});
    set_flags(&c, verb, more);
    OK(run_config(&c, verb, out));
}

/* ---- networks, and students of those that were trained before them ---- */

static void networks(void **state) {
    (void)state;
    const struct {
        const char *name, *data;
        flag more[3];
        rt_output_kind kind;
        int members;
    } list[] = {
        {"single", SPIRAL, {{NULL, NULL}}, RT_OUTPUT_LOGITS, 1},
        {"teacher", SPIRAL, {{"members", "3"}}, RT_OUTPUT_LOGITS, 3},
        {"be", SPIRAL, {{"student", "batch-ensemble:3"}}, RT_OUTPUT_LOGITS, 3},
        {"bn", picture_spec, {{"arch", "wrn:10,1"}}, RT_OUTPUT_LOGITS, 1},
        {"bn-teacher", picture_spec, {{"arch", "wrn:10,1"}, {"members", "2"}}, RT_OUTPUT_LOGITS, 2},
        {"picture-teacher", picture_spec, {{"members", "3"}}, RT_OUTPUT_LOGITS, 3},
        {"line", line_spec, {{NULL, NULL}}, RT_OUTPUT_GAUSSIAN, 1},
        {"line-teacher", line_spec, {{"members", "2"}}, RT_OUTPUT_GAUSSIAN, 2},
        {"line-be", line_spec, {{"student", "batch-ensemble:3"}}, RT_OUTPUT_GAUSSIAN, 3},
        {"log", price_spec, {{"target-transform", "log"}}, RT_OUTPUT_GAUSSIAN, 1},
        {"log-teacher", price_spec, {{"target-transform", "log"}, {"members", "2"}}, RT_OUTPUT_GAUSSIAN, 2},
        {"quantile", price_spec, {{"target-transform", "quantile"}}, RT_OUTPUT_GAUSSIAN, 1},
    };
    for (int64_t i = 0; i < RT_COUNT(list); i++) {
        rt_train_result r;
        run(RT_VERB_TRAIN, list[i].name, list[i].data, list[i].more, &r);
        check_run(list[i].name, &r, list[i].kind, list[i].members);
    }
}

static void students(void **state) {
    (void)state;
    const struct {
        const char *method, *teacher, *data, *aux;
        rt_output_kind kind;
        int members;
    } list[] = {
        {"kd", "teacher", SPIRAL, NULL, RT_OUTPUT_LOGITS, 1},
        {"ae-kd", "teacher", SPIRAL, NULL, RT_OUTPUT_LOGITS, 1},
        {"be-knowledge", "teacher", SPIRAL, NULL, RT_OUTPUT_LOGITS, 3},
        {"latent-be", "teacher", SPIRAL, NULL, RT_OUTPUT_LOGITS, 1},
        {"be-head", "teacher", SPIRAL, NULL, RT_OUTPUT_LOGITS, 3},
        {"hydra", "teacher", SPIRAL, NULL, RT_OUTPUT_LOGITS, 3},
        {"end2", "teacher", SPIRAL, NULL, RT_OUTPUT_DIRICHLET, 1},
        {"proxy-end2", "teacher", SPIRAL, NULL, RT_OUTPUT_DIRICHLET, 1},
        {"prior-net", NULL, SPIRAL, "ring:n=60", RT_OUTPUT_DIRICHLET, 1},
        {"latent-be", "bn-teacher", picture_spec, NULL, RT_OUTPUT_LOGITS, 1},
        {"kd", "line-teacher", line_spec, NULL, RT_OUTPUT_GAUSSIAN, 1},
        {"hydra", "line-teacher", line_spec, NULL, RT_OUTPUT_GAUSSIAN, 2},
        {"be-knowledge", "log-teacher", price_spec, NULL, RT_OUTPUT_GAUSSIAN, 2},
    };
    for (int64_t i = 0; i < RT_COUNT(list); i++) {
        rt_train_result r;
        char name[64], teacher[1200];
        flag more[5] = {{"method", list[i].method}};
        int n = 1;
        snprintf(name, sizeof name, "%s-of-%s", list[i].method, list[i].teacher ? list[i].teacher : "none");
        snprintf(teacher, sizeof teacher, "%s", in_root(list[i].teacher ? list[i].teacher : ""));
        if (list[i].teacher)
            more[n++] = (flag){"teacher", teacher};
        if (list[i].aux)
            more[n++] = (flag){"aux", list[i].aux};
        if (list[i].data == picture_spec)
            more[n++] = (flag){"arch", "wrn:10,1"};
        run(RT_VERB_DISTILL, name, list[i].data, more, &r);
        check_run(name, &r, list[i].kind, list[i].members);
    }
}

/* Teachers are as far apart when they run inside the step as their stored outputs say. */
static void diversities(void **state) {
    (void)state;
    char teacher[1200];
    double by[2];
    snprintf(teacher, sizeof teacher, "%s", in_root("picture-teacher"));
    for (int inside = 0; inside < 2; inside++) {
        const char *name = inside ? "inside" : "stored";
        rt_train_result r;
        flag more[] = {{"method", "kd"},
                       {"teacher", teacher},
                       {"epochs", "1"},
                       {inside ? "perturb" : NULL, "gaussian"},
                       {NULL, NULL}};
        run(RT_VERB_DISTILL, name, picture_spec, more, &r);
        rt_jdoc *log = last_epoch(in_root(name));
        by[inside] = number(rt_jdoc_root(log), "teacher_diversity");
        rt_jdoc_destroy(&log);
    }
    near(by[1] / by[0], 1, 1e-10);
}

/* ---- a search ---- */

/* NLL of an ensemble of candidates on the rows they held out. */
static double chosen_nll(const answers *all, rt_jval choice, int n) {
    rt_eval_input in = all[0].in;
    const int64_t k = in.how.k;
    float *y;
    OK(rt_calloc(&y, (size_t)(in.n * n * k), sizeof *y));
    for (int j = 0; j < n; j++)
        for (int64_t i = 0; i < in.n; i++)
            memcpy(y + (i * n + j) * k, all[(int)number(rt_jval_at(choice, j), "candidate")].y + i * k,
                   (size_t)k * sizeof *y);
    in.how.m = n;
    in.y = y;
    const double nll = value_of(&in, "nll");
    rt_free(y);
    return nll;
}

/* How many were chosen. */
static int64_t check_search(const char *name, const char *data) {
    enum { RUNS = 4 };
    rt_train_result r;
    rt_held_out h = {0};
    rt_jdoc *doc;
    answers all[RUNS];
    char path[1200];
    run(RT_VERB_TRAIN, name, data,
        (flag[]){{"hyper", "true"}, {"hyper-runs", "4"}, {"members", "3"}, {"epochs", "10"}, {NULL, NULL}},
        &r);
    snprintf(path, sizeof path, "%s/hyper.json", in_root(name));
    OK(rt_jdoc_read(&doc, path));
    const rt_jval candidates = rt_jval_get(rt_jdoc_root(doc), "candidates"),
                  choice = rt_jval_get(rt_jdoc_root(doc), "choice");
    for (int i = 0; i < RUNS; i++) {
        snprintf(path, sizeof path, "%s/search/%03d", in_root(name), i);
        if (i == 0)
            find_rows(&h, path);
        answer(&all[i], path, &h.rows);
        same(name, "the search", number(rt_jval_at(candidates, i), "valid_nll"), value_of(&all[i].in, "nll"));
    }
    const int64_t chosen = rt_jval_len(choice);
    for (int n = 1; n <= (int)chosen; n++) {
        const double want = chosen_nll(all, choice, n);
        near(number(rt_jval_at(choice, n - 1), "ensemble_valid_nll"), want, 2e-15 * fmax(fabs(want), 1));
    }
    for (int i = 0; i < RUNS; i++)
        forget(&all[i]);
    rt_jdoc_destroy(&doc);
    rt_held_out_deinit(&h);
    return chosen;
}

static void searches(void **state) {
    (void)state;
    assert_true(check_search("hyper", SPIRAL) > 2);
    assert_true(check_search("line-hyper", line_spec) > 0);
}

/* ---- averages ---- */

static void averages(void **state) {
    (void)state;
    const struct {
        const char *of, *data;
    } list[] = {{"teacher", SPIRAL}, {"bn-teacher", picture_spec}, {"line-teacher", line_spec}};
    for (int64_t i = 0; i < RT_COUNT(list); i++) {
        rt_config c;
        rt_average_result r;
        rt_held_out h = {0};
        char name[64], of[1200], out[1200];
        snprintf(name, sizeof name, "average-of-%s", list[i].of);
        snprintf(of, sizeof of, "%s", in_root(list[i].of));
        snprintf(out, sizeof out, "%s", in_root(name));
        configure(
            &c, RT_VERB_AVERAGE,
            (flag[]){
                {"data", list[i].data}, {"method", "match"}, {"valid", "40"}, {"out", out}, {NULL, NULL}});
        OK(rt_average_run(&c, (const char *const[]){of}, 1, pool, NULL, &r));
        rt_config_deinit(&c);
        find_rows(&h, out);
        const rt_average_score one = evaluate(out, &h.rows), all = evaluate(of, &h.rows);
        same(name, "the average", r.valid.average.loss, one.loss);
        same(name, "the average", r.valid.average.accuracy, one.accuracy);
        same(name, "the ensemble", r.valid.ensemble.loss, all.loss);
        same(name, "the ensemble", r.valid.ensemble.accuracy, all.accuracy);
        rt_held_out_deinit(&h);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks), cmocka_unit_test(students), cmocka_unit_test(diversities),
        cmocka_unit_test(searches), cmocka_unit_test(averages),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
