/*
 * test_valid_loss.c - what training calls the validation loss of a network is what `eval` calls its NLL on the
 * same rows, to the last digit, whatever kind of network it is.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "config/config.h"
#include "eval/eval.h"
#include "model/model.h"
#include "model/run.h"
#include "support/flags.h"
#include "support/root.h"
#include "train/train.h"

static char line_spec[1200]; /* a regression */

static const flag COMMON[] = {{"arch", "mlp:12"}, {"epochs", "3"},       {"batch", "24"},
                              {"valid", "40"},    {"lr", "0.02"},        {"optimiser", "adam"},
                              {"keep", "last"},   {"weight-decay", "0"}, {NULL, NULL}};
static const char SPIRAL[] = "spiral:n=60,noise=0.2,arms=3";

static int set_up(void **state) {
    if (make_root(state) != 0)
        return -1;
    rt_str csv;
    rt_str_init(&csv);
    rt_str_append(&csv, "a,b,y\n");
    for (int i = 0; i < 200; i++) {
        const double a = (i * 37 % 100) / 50.0 - 1, b = (i * 61 % 100) / 50.0 - 1;
        rt_str_appendf(&csv, "%.4f,%.4f,%.4f\n", a, b, 1000 + 30 * a - 20 * b);
    }
    expect(rt_file_write_atomic(in_root("line.csv"), csv.p, csv.len), RT_OK);
    rt_str_deinit(&csv);
    snprintf(line_spec, sizeof line_spec, "csv:%s,target=y,task=regression", in_root("line.csv"));
    return 0;
}

/* The validation rows of a run, as a part of their own. */
typedef struct rows {
    rt_dataset *data;
    rt_subset train, valid;
    rt_part part;
    float *x, *target;
    int32_t *label;
} rows;

static void rows_open(rows *r, const char *run) {
    rt_config told, *c = &told;
    char path[1200];
    memset(r, 0, sizeof *r);
    snprintf(path, sizeof path, "%s/config.yaml", run);
    expect(rt_config_init(c), RT_OK);
    expect(rt_config_load(c, RT_VERB_ALL, path), RT_OK);
    expect(rt_dataset_open(&r->data, c->data, rt_config_data(c)), RT_OK);
    expect(rt_split_rows(c, r->data, &r->train, &r->valid), RT_OK);
    const rt_shape row = rt_dataset_row(r->data);
    const int64_t w = rt_shape_elems(&row), n = r->valid.n;
    assert_int_equal(n, 40);
    expect(rt_calloc(&r->x, (size_t)(n * w), sizeof *r->x), RT_OK);
    expect(rt_calloc(&r->target, (size_t)n, sizeof *r->target), RT_OK);
    expect(rt_calloc(&r->label, (size_t)n, sizeof *r->label), RT_OK);
    for (int64_t i = 0; i < n; i++) {
        const rt_part *p = r->valid.part;
        const int64_t from = rt_subset_row(&r->valid, i);
        memcpy(r->x + i * w, p->f32 + from * w, (size_t)w * sizeof *r->x);
        if (p->target)
            r->target[i] = p->target[from];
        if (p->label)
            r->label[i] = p->label[from];
    }
    r->part = (rt_part){.n = n, .f32 = r->x};
    rt_config_deinit(c);
}

static void rows_close(rows *r) {
    rt_subset_deinit(&r->train);
    rt_subset_deinit(&r->valid);
    rt_dataset_destroy(&r->data);
    rt_free(r->x);
    rt_free(r->target);
    rt_free(r->label);
}

static double value_of(const rt_eval_input *in, const char *name) {
    double v[RT_METRICS_MAX];
    expect(rt_eval_all(in, v, NULL), RT_OK);
    return v[rt_metric_find(name, rt_eval_regression(in))];
}

/* NLL and accuracy of one model file on these rows, by eval. */
static void evaluate(const char *path, const rows *r, double *nll, double *accuracy) {
    rt_model *m;
    rt_pool *pool;
    float *y;
    expect(rt_model_load(&m, path), RT_OK);
    expect(rt_pool_create(&pool, 1), RT_OK);
    const rt_reading how = rt_model_reading(m);
    expect(rt_calloc(&y, (size_t)(r->part.n * how.m * how.k), sizeof *y), RT_OK);
    expect(rt_model_predict(m, &r->part, pool, y, NULL), RT_OK);
    const rt_eval_input in = {.how = how, .n = r->part.n, .y = y, .label = r->label, .target = r->target};
    *nll = value_of(&in, "nll");
    *accuracy = rt_eval_regression(&in) ? NAN : value_of(&in, "accuracy");
    rt_free(y);
    rt_pool_destroy(&pool);
    rt_model_destroy(&m);
}

/* Runs, and compares what the run says of its networks with what eval says of its files. */
static void check(unsigned verb, const char *name, const char *data, const flag *more, rt_output_kind kind,
                  int members) {
    rt_config c;
    rt_train_result r;
    rows v;
    char file[48], path[1200];
    double nll = 0, accuracy = 0;
    configure(&c, verb, COMMON);
    set_flags(&c, verb, (flag[]){{"data", data}, {"out", in_root(name)}, {NULL, NULL}});
    set_flags(&c, verb, more);
    OK(run_config(&c, verb, &r));
    rows_open(&v, in_root(name));
    rt_model *m;
    expect(rt_model_load(&m, in_root(name)), RT_OK);
    const int networks = rt_model_networks(m);
    assert_int_equal(rt_model_reading(m).kind, kind);
    assert_int_equal(rt_model_members(m), members);
    rt_model_destroy(&m);
    for (int i = 0; i < networks; i++) {
        double l, a;
        rt_member_file(file, i, networks == 1);
        snprintf(path, sizeof path, "%s/%s", in_root(name), file);
        evaluate(path, &v, &l, &a);
        nll += l / networks;
        accuracy += a / networks;
    }
    if (networks == 1 ? r.valid_loss != nll : fabs(r.valid_loss - nll) > 1e-15 * fabs(nll))
        fail_msg("%s: the run says %.17g, eval %.17g", name, r.valid_loss, nll);
    assert_true(kind == RT_OUTPUT_GAUSSIAN ? isnan(r.valid_accuracy)
                                           : fabs(r.valid_accuracy - accuracy) < 1e-15);
    rows_close(&v);
    rt_config_deinit(&c);
}

static void plain_networks(void **state) {
    (void)state;
    check(RT_VERB_TRAIN, "single", SPIRAL, NULL, RT_OUTPUT_LOGITS, 1);
    check(RT_VERB_TRAIN, "teacher", SPIRAL, (flag[]){{"members", "3"}, {NULL, NULL}}, RT_OUTPUT_LOGITS, 3);
    check(RT_VERB_TRAIN, "be", SPIRAL, (flag[]){{"student", "batch-ensemble:3"}, {NULL, NULL}},
          RT_OUTPUT_LOGITS, 3);
}

static void students(void **state) {
    (void)state;
    const flag teacher = {"teacher", in_root("teacher")}, end = {NULL, NULL};
    static const struct {
        const char *method;
        rt_output_kind kind;
        int members;
    } list[] = {{"latent-be", RT_OUTPUT_LOGITS, 1},
                {"be-head", RT_OUTPUT_LOGITS, 3},
                {"hydra", RT_OUTPUT_LOGITS, 3},
                {"end2", RT_OUTPUT_DIRICHLET, 1},
                {"proxy-end2", RT_OUTPUT_DIRICHLET, 1}};
    char path[1200];
    snprintf(path, sizeof path, "%s", teacher.value);
    for (int64_t i = 0; i < RT_COUNT(list); i++)
        check(RT_VERB_DISTILL, list[i].method, SPIRAL,
              (flag[]){{"teacher", path}, {"method", list[i].method}, end}, list[i].kind, list[i].members);
}

static void regressions(void **state) {
    (void)state;
    check(RT_VERB_TRAIN, "line", line_spec, NULL, RT_OUTPUT_GAUSSIAN, 1);
    check(RT_VERB_TRAIN, "lines", line_spec, (flag[]){{"members", "2"}, {NULL, NULL}}, RT_OUTPUT_GAUSSIAN, 2);
    check(RT_VERB_TRAIN, "line-be", line_spec, (flag[]){{"student", "batch-ensemble:3"}, {NULL, NULL}},
          RT_OUTPUT_GAUSSIAN, 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_networks),
        cmocka_unit_test(students),
        cmocka_unit_test(regressions),
    };
    return cmocka_run_group_tests(tests, set_up, remove_root);
}
