/*
 * The public header by itself: what a program that only includes retort.h can do.
 */
#include "retort.h"
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static char dir[64], out[96];

static int setup(void **state) {
    (void)state;
    strcpy(dir, "/tmp/retort-api-XXXXXX");
    if (mkdtemp(dir) == NULL)
        return 1;
    snprintf(out, sizeof out, "out=%s/run", dir);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static void test_train_and_predict(void **state) {
    (void)state;
    const char *settings[] = {"data=spiral:n=100", "arch=mlp:16", "members=3", "epochs=3",
                              "lr=0.05",           out,           "threads=2"};
    assert_int_equal(rt_train(settings, 7, NULL), RT_OK);
    rt_model *m = NULL;
    assert_int_equal(rt_model_load(&m, out + 4), RT_OK);
    assert_int_equal(rt_model_members(m), 3);
    assert_int_equal(rt_model_outputs(m), 3);
    assert_int_equal(rt_model_row(m), 2);
    rt_session *s = NULL;
    assert_int_equal(rt_session_create(&s, m, 4), RT_OK);
    const float x[] = {10, -20, 100, 50, -300, 7};
    float p[9], mp[27], h[3], eh[3], mi[3];
    const rt_prediction r = {.size = sizeof(rt_prediction),
                             .probs = p,
                             .member_probs = mp,
                             .entropy = h,
                             .expected_entropy = eh,
                             .mutual_information = mi};
    assert_int_equal(rt_session_run(s, x, 3, &r), RT_OK);
    for (int i = 0; i < 3; i++) {
        double sum = 0, total = 0;
        for (int k = 0; k < 3; k++) {
            const double mean =
                ((double)mp[i * 9 + k] + (double)mp[i * 9 + 3 + k] + (double)mp[i * 9 + 6 + k]) / 3;
            assert_true(fabs((double)p[i * 3 + k] - mean) < 1e-6);
            sum += (double)p[i * 3 + k];
            total -= mean * log(mean);
        }
        assert_true(fabs(sum - 1) < 1e-5);
        assert_true(fabs(total - (double)h[i]) < 1e-5);
        assert_true(mi[i] >= 0 && fabsf(h[i] - eh[i] - mi[i]) < 1e-5f);
    }
    float one[3];
    assert_int_equal(
        rt_session_run(s, x + 2, 1, &(rt_prediction){.size = sizeof(rt_prediction), .probs = one}), RT_OK);
    for (int k = 0; k < 3; k++)
        assert_true(fabsf(one[k] - p[3 + k]) < 1e-6f);
    assert_int_equal(rt_session_run(s, x, 5, &r), RT_E_USAGE);
    const float bad[] = {1, NAN};
    assert_int_equal(rt_session_run(s, bad, 1, &r), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "not finite"));
    rt_session_destroy(&s);
    rt_model_destroy(&m);
    rt_model_destroy(&m);
}

/* f(d) = (1 + d) ln(1 + d) - d */
static double divergence(double d) {
    return d < -1 + 1e-12 ? 1 : fabs(d) < 1e-3 ? d * d / 2 - d * d * d / 6 : (1 + d) * log1p(d) - d;
}

/* Mutual information of a row of (3, 3) member probabilities as a sum of terms of one sign. */
static double information(const float *p, int top) {
    double sum = 0, q[3] = {0}, own[9];
    for (int m = 0; m < 3; m++) {
        double rest = 0;
        for (int k = 0; k < 3; k++)
            rest += k == top ? 0 : (double)p[m * 3 + k];
        for (int k = 0; k < 3; k++) {
            own[m * 3 + k] = k == top ? -rest : (double)p[m * 3 + k]; /* of the top: what is missing from 1 */
            q[k] += own[m * 3 + k] / 3;
        }
    }
    for (int i = 0; i < 9; i++) {
        const double base = i % 3 == top ? 1 + q[i % 3] : q[i % 3];
        sum += base > 0 ? base * divergence((own[i] - q[i % 3]) / base) / 3 : 0;
    }
    return sum;
}

/* Sure rows: a difference of entropies would have lost their mutual information to rounding. */
static void test_sure_rows(void **state) {
    (void)state;
    enum { ROWS = 2000 };
    static float x[2 * ROWS], mp[9 * ROWS], p[3 * ROWS], mi[ROWS];
    rt_model *m = NULL;
    rt_session *s = NULL;
    int sure = 0;
    char to[160];
    snprintf(to, sizeof to, "out=%s/sure", dir);
    const char *settings[] = {"data=spiral:n=100,noise=0.05",
                              "arch=mlp:32",
                              "members=3",
                              "epochs=60",
                              "optimiser=adam",
                              "lr=0.02",
                              to};
    assert_int_equal(rt_train(settings, 7, NULL), RT_OK);
    for (int i = 0; i < ROWS; i++) {
        x[2 * i] = (float)(i % 2 ? i : -i);
        x[2 * i + 1] = (float)(i % 3 ? i / 2 : -2 * i);
    }
    assert_int_equal(rt_model_load(&m, to + 4), RT_OK);
    assert_int_equal(rt_session_create(&s, m, ROWS), RT_OK);
    const rt_prediction r = {
        .size = sizeof(rt_prediction), .probs = p, .member_probs = mp, .mutual_information = mi};
    assert_int_equal(rt_session_run(s, x, ROWS, &r), RT_OK);
    for (int i = 0; i < ROWS; i++) {
        int top = 0;
        for (int k = 1; k < 3; k++)
            top = p[3 * i + k] > p[3 * i + top] ? k : top;
        const double want = information(mp + 9 * i, top);
        if (p[3 * i + top] < 0.99f || want < 1e-30)
            continue;
        sure += want < 1e-6;
        if (fabs((double)mi[i] - want) > 1e-2 * want)
            fail_msg("row %d: mutual information %g, wanted %g", i, (double)mi[i], want);
    }
    assert_true(sure > 50);
    rt_session_destroy(&s);
    rt_model_destroy(&m);
}

/* A Dirichlet says how much of its uncertainty is knowledge, without being told that it is one. */
static void test_distill(void **state) {
    (void)state;
    char teacher[160], to[160];
    snprintf(teacher, sizeof teacher, "teacher=%s", out + 4);
    snprintf(to, sizeof to, "out=%s/student", dir);
    const char *settings[] = {teacher, "data=spiral:n=100", "method=proxy-end2", "epochs=2", "lr=0.01", to};
    assert_int_equal(rt_distill(settings, 6, NULL), RT_OK);
    rt_model *m = NULL;
    rt_session *s = NULL;
    assert_int_equal(rt_model_load(&m, to + 4), RT_OK);
    assert_int_equal(rt_model_members(m), 1);
    assert_int_equal(rt_session_create(&s, m, 1), RT_OK);
    const float x[] = {10, -20};
    float p[3], h, eh, mi;
    assert_int_equal(rt_session_run(s, x, 1,
                                    &(rt_prediction){.size = sizeof(rt_prediction),
                                                     .probs = p,
                                                     .entropy = &h,
                                                     .expected_entropy = &eh,
                                                     .mutual_information = &mi}),
                     RT_OK);
    assert_true(fabsf(p[0] + p[1] + p[2] - 1) < 1e-5f);
    assert_true(mi > 0 && fabsf(h - eh - mi) < 1e-5f);
    rt_session_destroy(&s);
    rt_model_destroy(&m);
}

static void test_refusals(void **state) {
    (void)state;
    rt_model *m = NULL;
    assert_int_equal(rt_model_load(&m, "/nowhere/at/all"), RT_E_INPUT);
    assert_null(m);
    assert_non_null(strstr(rt_error_text(), "/nowhere/at/all"));
    const char *settings[] = {"epoch=3"};
    assert_int_equal(rt_train(settings, 1, NULL), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "epochs"));
    assert_string_equal(rt_status_name(RT_OK), rt_status_name((rt_status)0));
    assert_true(strlen(rt_version()) > 0);
}

/* Every function of retort.h with arguments it must not follow: no crash, RT_E_USAGE, and a text that says so. */
#define REFUSED(call)                                                                                        \
    do {                                                                                                     \
        assert_int_equal((call), RT_E_USAGE);                                                                \
        assert_string_not_equal(rt_error_text(), "");                                                        \
    } while (0)

static void test_wrong_arguments(void **state) {
    (void)state;
    char to[160], config[160];
    snprintf(to, sizeof to, "out=%s/wrong", dir);
    snprintf(config, sizeof config, "config=%s/no-such.yaml", dir);
    const char *settings[] = {"data=spiral:n=40", "arch=mlp:4", "epochs=1", to};
    assert_int_equal(rt_train(settings, 4, NULL), RT_OK);
    rt_model *m = NULL, *none = NULL;
    rt_session *s = NULL, *no_session = NULL;
    const float x[2] = {1, 2};
    float y[3];
    const rt_prediction probs = {.size = sizeof(rt_prediction), .probs = y};
    assert_int_equal(rt_model_load(&m, to + 4), RT_OK);
    assert_int_equal(rt_session_create(&s, m, 2), RT_OK);

    REFUSED(rt_model_load(NULL, to + 4));
    REFUSED(rt_model_load(&none, NULL));
    assert_null(none);
    rt_model_destroy(NULL);
    rt_model_destroy(&none);
    rt_session_destroy(NULL);
    rt_session_destroy(&no_session);
    assert_int_equal(rt_model_members(NULL), 0);
    assert_int_equal(rt_model_outputs(NULL), 0);
    assert_int_equal(rt_model_row(NULL), 0);
    assert_null(rt_model_class_name(NULL, 0));
    assert_non_null(strstr(rt_error_text(), "rt_model_class_name"));
    assert_null(rt_model_class_name(m, -1));
    assert_null(rt_model_class_name(m, 3));
    assert_non_null(rt_status_name((rt_status)12345));
    rt_log_set(NULL, NULL);
    REFUSED(rt_session_create(NULL, m, 1));
    REFUSED(rt_session_create(&no_session, NULL, 1));
    REFUSED(rt_session_create(&no_session, m, 0));
    REFUSED(rt_session_create(&no_session, m, -1));
    REFUSED(rt_session_create(&no_session, m, INT64_MAX));
    assert_null(no_session);
    REFUSED(rt_session_run(NULL, x, 1, &probs));
    REFUSED(rt_session_run(s, NULL, 1, &probs));
    REFUSED(rt_session_run(s, x, 1, NULL));
    REFUSED(rt_session_run(s, x, 0, &probs));
    REFUSED(rt_session_run(s, x, 3, &probs));
    const rt_prediction foreign[] = {{.size = sizeof(rt_prediction), .mean = y},
                                     {.size = sizeof(rt_prediction), .variance = y},
                                     {.size = sizeof(rt_prediction), .data_variance = y},
                                     {.size = sizeof(rt_prediction), .knowledge_variance = y}};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        REFUSED(rt_session_run(s, x, 1, &foreign[i]));
    assert_int_equal(rt_session_run(s, x, 1, &probs), RT_OK);

    rt_status (*const verbs[])(const char *const *, int, const volatile int *) = {rt_train, rt_distill};
    for (int v = 0; v < 2; v++) {
        const char *null[] = {"data=spiral:n=40", NULL}, *no_value[] = {"data"}, *unknown[] = {"dtaa=x"};
        REFUSED(verbs[v](NULL, 1, NULL));
        REFUSED(verbs[v](settings, -1, NULL));
        REFUSED(verbs[v](NULL, 0, NULL));
        REFUSED(verbs[v](null, 2, NULL));
        REFUSED(verbs[v](no_value, 1, NULL));
        REFUSED(verbs[v](unknown, 1, NULL));
    }
    const char *unreadable[] = {"data=spiral:n=40", "arch=mlp:4", "epochs=1", to, "force=true", config};
    assert_int_equal(rt_train(unreadable, 6, NULL), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "no-such.yaml"));
    rt_session_destroy(&s);
    rt_model_destroy(&m);
}

/* What a regression does not have is refused, too. */
static void test_wrong_outputs_of_a_regression(void **state) {
    (void)state;
    char to[160], csv[160], data[200];
    snprintf(to, sizeof to, "out=%s/regression", dir);
    snprintf(csv, sizeof csv, "%s/t.csv", dir);
    snprintf(data, sizeof data, "data=csv:%s,target=y", csv);
    FILE *f = fopen(csv, "w");
    assert_non_null(f);
    fprintf(f, "a,y\n");
    for (int i = 0; i < 80; i++)
        fprintf(f, "%d,%g\n", i, 0.37 * i + 0.25 * (i % 7));
    assert_int_equal(fclose(f), 0);
    const char *settings[] = {data, "arch=mlp:4", "epochs=1", to};
    assert_int_equal(rt_train(settings, 4, NULL), RT_OK);
    rt_model *m = NULL;
    rt_session *s = NULL;
    const float x[1] = {1};
    float y[8];
    int64_t label;
    uint8_t byte[8];
    assert_int_equal(rt_model_load(&m, to + 4), RT_OK);
    assert_int_equal(rt_session_create(&s, m, 1), RT_OK);
    const rt_prediction foreign[] = {{.size = sizeof(rt_prediction), .probs = y},
                                     {.size = sizeof(rt_prediction), .member_probs = y},
                                     {.size = sizeof(rt_prediction), .entropy = y},
                                     {.size = sizeof(rt_prediction), .expected_entropy = y},
                                     {.size = sizeof(rt_prediction), .mutual_information = y},
                                     {.size = sizeof(rt_prediction), .label = &label},
                                     {.size = sizeof(rt_prediction), .confidence = y},
                                     {.size = sizeof(rt_prediction), .epkl = y},
                                     {.size = sizeof(rt_prediction), .alpha = y},
                                     {.size = sizeof(rt_prediction), .set = byte},
                                     {.size = sizeof(rt_prediction), .reject = byte},
                                     {.size = sizeof(rt_prediction), .lower = y},
                                     {.size = sizeof(rt_prediction), .upper = y}};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        REFUSED(rt_session_run(s, x, 1, &foreign[i]));
    assert_int_equal(
        rt_session_run(s, x, 1,
                       &(rt_prediction){.size = sizeof(rt_prediction), .mean = y, .variance = y + 1}),
        RT_OK);
    rt_session_destroy(&s);
    rt_model_destroy(&m);
}

/* ---- the door: arrays in, every verb, results as JSON ---- */

enum { ROWS = 240, FEATURES = 3 };
static float rows[ROWS * FEATURES], value[ROWS];
static int32_t label[ROWS];

static rt_memory make_memory(rt_task task) {
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < FEATURES; k++)
            rows[i * FEATURES + k] = (float)((i * (7 + 4 * k) + 3 * k) % 31) / 31;
        label[i] = rows[i * FEATURES] > 0.5f;
        value[i] = 3 * rows[i * FEATURES] - rows[i * FEATURES + 1];
    }
    rt_memory m = RT_MEMORY_INIT;
    m.name = "made";
    m.task = task;
    m.rank = 1;
    m.dims[0] = FEATURES;
    m.classes = 2;
    static const char *const names[] = {"low", "high"};
    m.class_names = names;
    m.train.rows = ROWS;
    m.train.x = rows;
    m.train.label = task == RT_TASK_CLASSIFICATION ? label : NULL;
    m.train.target = task == RT_TASK_REGRESSION ? value : NULL;
    return m;
}

static int ticks, notes;
static void tick(void *user, const rt_progress *p) {
    (void)user;
    ticks += p->epochs > 0;
    notes += p->epochs == 0 && p->note != NULL && p->steps > 0 && p->step >= 0 && p->step <= p->steps;
}

static void do_verb(const char *verb, const char *const *settings, int n, const char *word,
                    const rt_memory *data, const char *wanted) {
    char *json = NULL;
    rt_job job = RT_JOB_INIT;
    job.settings = settings;
    job.nsettings = n;
    job.words = &word;
    job.nwords = word != NULL;
    job.memory = data;
    job.nmemory = data != NULL;
    job.progress = tick;
    job.json = &json;
    const rt_status st = rt_job_run(verb, &job);
    if (st != RT_OK)
        fail_msg("%s: %s", verb, rt_error_text());
    assert_non_null(json);
    if (strstr(json, wanted) == NULL)
        fail_msg("%s: no %s in %s", verb, wanted, json);
    rt_free(json);
}

static void test_every_verb(void **state) {
    (void)state;
    char t[160], s[160], a[160], r[160], e[160], g[160], teacher[160];
    snprintf(t, sizeof t, "out=%s/door", dir);
    snprintf(teacher, sizeof teacher, "teacher=%s/door", dir);
    snprintf(s, sizeof s, "out=%s/door-student", dir);
    snprintf(a, sizeof a, "out=%s/door-average", dir);
    snprintf(r, sizeof r, "out=%s/door.html", dir);
    snprintf(e, sizeof e, "out=%s/door.onnx", dir);
    snprintf(g, sizeof g, "out=%s/door-gathered", dir);
    const rt_memory data = make_memory(RT_TASK_CLASSIFICATION);
    const char *train[] = {"data=memory:made", "arch=mlp:8", "members=2", "epochs=4", t};
    ticks = 0;
    do_verb("train", train, 5, NULL, &data, "\"members\":2");
    assert_true(ticks >= 4);
    const char *distill[] = {"data=memory:made", "arch=mlp:8", "method=hydra", "epochs=4", s, teacher};
    do_verb("distill", distill, 6, NULL, &data, "\"valid_loss\":");
    const char *average[] = {"data=memory:made", "method=match", a};
    notes = 0;
    do_verb("average", average, 3, t + 4, &data, "\"method\":\"match\"");
    assert_true(notes > 0);
    const char *eval[] = {"data=memory:made", "bootstrap=0"};
    notes = 0;
    do_verb("eval", eval, 2, s + 4, &data, "\"nll\":");
    assert_true(notes > 0);
    do_verb("gather", (const char *[]){g}, 1, t + 4, NULL, "\"members\":2");
    const char *calibrate[] = {"reject=coverage=0.8", "conformal=alpha=0.2", "data=memory:made"};
    do_verb("calibrate", calibrate, 3, s + 4, &data, "\"quantile\":");
    do_verb("report", (const char *[]){r}, 1, s + 4, NULL, "\"evaluated\":1");
    const char *export[] = {e};
    char *json = NULL;
    const char *word = s + 4;
    rt_job job = {
        .size = sizeof job, .settings = export, .nsettings = 1, .words = &word, .nwords = 1, .json = &json};
    const rt_status st = rt_job_run("export", &job);
    if (st != RT_OK)
        assert_non_null(strstr(rt_error_text(), "built without ONNX"));
    rt_free(json);

    rt_model *m = NULL;
    int64_t dims[3] = {0};
    assert_int_equal(rt_model_load(&m, s + 4), RT_OK);
    assert_int_equal(rt_model_task(m), RT_TASK_CLASSIFICATION);
    assert_int_equal(rt_model_dims(m, dims), 1);
    assert_int_equal(dims[0], FEATURES);
    assert_string_equal(rt_model_class_name(m, 1), "high");
    assert_non_null(strstr(rt_model_meta(m, "decision"), "quantile"));
    assert_null(rt_model_meta(m, "nothing"));
    assert_null(rt_model_unit(m));
    static float p[ROWS * 2], z[ROWS * 4], c[ROWS], h[ROWS], k[ROWS];
    static int64_t top[ROWS];
    static uint8_t reject[ROWS], set[ROWS * 2];
    const rt_prediction all = {.size = sizeof all,
                               .probs = p,
                               .logits = z,
                               .confidence = c,
                               .entropy = h,
                               .epkl = k,
                               .label = top,
                               .reject = reject,
                               .set = set};
    assert_int_equal(rt_model_run(m, rows, ROWS, &all, 2), RT_OK);
    int answered = 0, sets = 0;
    for (int i = 0; i < ROWS; i++) {
        assert_true(p[2 * i + top[i]] == c[i] && c[i] >= 0.5f && k[i] >= 0 && h[i] >= 0);
        answered += !reject[i];
        sets += set[2 * i] + set[2 * i + 1];
    }
    assert_true(answered > ROWS / 2 && answered < ROWS && sets > 0);
    /* one session of one row says the same */
    rt_session *one = NULL;
    float p1[2];
    assert_int_equal(rt_session_create(&one, m, 1), RT_OK);
    assert_int_equal(rt_session_run(one, rows, 1, &(rt_prediction){.size = sizeof all, .probs = p1}), RT_OK);
    assert_true(fabsf(p1[0] - p[0]) < 1e-6f);
    REFUSED(rt_session_run(one, rows, 1, &(rt_prediction){.probs = p1})); /* no size */
    REFUSED(rt_session_run(one, rows, 1, &(rt_prediction){.size = sizeof all, .alpha = p1}));
    REFUSED(rt_model_run(m, rows, 0, &all, 1));
    REFUSED(rt_model_run(m, rows, 1, &all, -1));
    REFUSED(rt_model_run(NULL, rows, 1, &all, 1));
    rt_session_destroy(&one);
    /* an answer that is not finite leaves all rows unwritten */
    const float huge[2 * FEATURES] = {0, 0, 0, 3e38f, -3e38f, 3e38f};
    float raw[8] = {7}, q[4] = {7};
    assert_int_equal(rt_session_create(&one, m, 2), RT_OK);
    const rt_prediction some = {.size = sizeof some, .probs = q, .logits = raw};
    assert_int_equal(rt_session_run(one, huge, 2, &some), RT_E_NUMERIC);
    assert_non_null(strstr(rt_error_text(), "row 1"));
    assert_true(raw[0] == 7 && raw[1] == 0 && q[0] == 7 && q[1] == 0);
    assert_int_equal(rt_session_run(one, huge, 1, &some), RT_OK);
    rt_session_destroy(&one);
    rt_model_destroy(&m);
}

static void test_regression_from_memory(void **state) {
    (void)state;
    char to[160];
    snprintf(to, sizeof to, "out=%s/door-line", dir);
    const rt_memory data = make_memory(RT_TASK_REGRESSION);
    const char *train[] = {"data=memory:made", "arch=mlp:8", "members=2", "epochs=10", "unit=MPa", to};
    do_verb("train", train, 6, NULL, &data, "\"members\":2");
    do_verb("calibrate", (const char *[]){"conformal=alpha=0.2", "data=memory:made"}, 2, to + 4, &data,
            "\"interval\"");
    rt_model *m = NULL;
    float mean[2], lower[2], upper[2];
    assert_int_equal(rt_model_load(&m, to + 4), RT_OK);
    const rt_prediction all = {.size = sizeof all, .mean = mean, .lower = lower, .upper = upper};
    assert_int_equal(rt_model_run(m, rows, 2, &all, 1), RT_OK);
    assert_true(lower[0] < mean[0] && mean[0] < upper[0]);
    assert_string_equal(rt_model_unit(m), "MPa");
    rt_model_destroy(&m);
}

static void test_settings(void **state) {
    (void)state;
    rt_setting s = RT_SETTING_INIT;
    bool epochs = false;
    assert_int_equal(rt_version_number(), RT_VERSION_NUMBER);
    assert_true(rt_setting_count("train") > 20);
    assert_int_equal(rt_setting_count("sing"), -1);
    for (int i = 0; i < rt_setting_count("train"); i++) {
        assert_int_equal(rt_setting_get("train", i, &s), RT_OK);
        epochs = epochs || (strcmp(s.key, "epochs") == 0 && strcmp(s.kind, "integer") == 0 && s.lowest >= 0);
    }
    assert_true(epochs);
    REFUSED(rt_setting_get("train", 100000, &s));
    REFUSED(rt_setting_get("train", -1, &s));
    REFUSED(rt_setting_get("train", 0, NULL));
    const char *good[] = {"epochs=3", "arch=mlp:8"}, *bad[] = {"epohcs=3"}, *high[] = {"epochs=-3"};
    assert_int_equal(rt_settings_check("train", good, 2), RT_OK);
    REFUSED(rt_settings_check("train", bad, 1));
    assert_non_null(strstr(rt_error_text(), "epochs"));
    REFUSED(rt_settings_check("train", high, 1));
    REFUSED(rt_settings_check(NULL, good, 2));
    REFUSED(rt_settings_check("trian", good, 2));
    assert_non_null(strstr(rt_error_text(), "did you mean 'train'?"));
    rt_setting small = {.size = 8}, long_one[2] = {RT_SETTING_INIT, {.key = "mine"}};
    REFUSED(rt_setting_get("train", 0, &small));
    long_one[0].size = offsetof(rt_setting, help) + sizeof(char *) + sizeof(size_t) + sizeof(char *);
    assert_int_equal(rt_setting_get("train", 0, long_one), RT_OK);
    assert_string_equal(long_one[1].key, "mine"); /* of a later header: not touched */
    const char *const printed[][2] = {{"train", "quiet=true"},   {"train", "q=true"},
                                      {"train", "progress=bar"}, {"report", "json=true"},
                                      {"export", "color=false"}, {"train", "rank-timeout=5"},
                                      {"eval", "format=csv"}};
    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        REFUSED(rt_settings_check(printed[i][0], &printed[i][1], 1));
        assert_non_null(strstr(rt_error_text(), "program"));
        for (int k = 0; k < rt_setting_count(printed[i][0]); k++) {
            assert_int_equal(rt_setting_get(printed[i][0], k, &s), RT_OK);
            assert_true(strncmp(s.key, printed[i][1], strlen(s.key)) != 0 ||
                        printed[i][1][strlen(s.key)] != '=');
        }
    }
    assert_int_equal(rt_settings_check("export", (const char *[]){"format=onnx"}, 1), RT_OK);
    rt_job job = RT_JOB_INIT, none = {0};
    REFUSED(rt_job_run("train", NULL));
    REFUSED(rt_job_run(NULL, &job));
    REFUSED(rt_job_run("fly", &job));
    REFUSED(rt_job_run("train", &none));
    job.nmemory = 1;
    REFUSED(rt_job_run("train", &job));
    job.nmemory = 0;
    job.nwords = 1;
    REFUSED(rt_job_run("eval", &job));
    const char *lost[] = {"data=memory:lost", "arch=mlp:4", out};
    job = (rt_job){.size = sizeof job, .settings = lost, .nsettings = 3};
    assert_int_equal(rt_job_run("train", &job), RT_E_INPUT);
    rt_free(NULL);
}

/* Requirements, the file, columns: as the program has them. */
static void test_eval_as_the_program(void **state) {
    (void)state;
    char to[160], file[160], bad_file[160];
    snprintf(to, sizeof to, "out=%s/judged", dir);
    snprintf(file, sizeof file, "out=%s/judged.csv", dir);
    snprintf(bad_file, sizeof bad_file, "out=%s/judged.xyz", dir);
    const char *train[] = {"data=spiral:n=60", "arch=mlp:4", "epochs=1", to};
    assert_int_equal(rt_train(train, 4, NULL), RT_OK);
    const char *word = to + 4;
    char *json = NULL;
    const char *eval[] = {"data=spiral:n=60", "bootstrap=0", "require=accuracy>=1.5", file,
                          "metrics=accuracy"};
    rt_job job = {
        .size = sizeof job, .settings = eval, .nsettings = 5, .words = &word, .nwords = 1, .json = &json};
    assert_int_equal(rt_job_run("eval", &job), RT_E_GATE);
    assert_non_null(strstr(rt_error_text(), "required >= 1.5"));
    assert_non_null(strstr(json, "\"accuracy\":"));
    assert_int_equal(json[strlen(json) - 1], '}');
    rt_free(json);
    assert_int_equal(access(file + 4, R_OK), 0);
    eval[2] = "require=accuracy>=0";
    assert_int_equal(rt_job_run("eval", &job), RT_OK);
    rt_free(json);
    const char *const wrong[][2] = {
        {"require=accuracy", "no comparison"}, {"metrics=accurcy", "accuracy"}, {bad_file, "must end in"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        eval[2] = wrong[i][0];
        job.nsettings = 3;
        json = NULL;
        REFUSED(rt_job_run("eval", &job));
        assert_non_null(strstr(rt_error_text(), wrong[i][1]));
        assert_null(json);
    }
}

static void test_memory_limit(void **state) {
    (void)state;
    char to[160];
    snprintf(to, sizeof to, "out=%s/limited", dir);
    const char *train[] = {"data=spiral:n=60", "arch=mlp:4", "epochs=1", to, "max-memory=0.000001"};
    assert_int_equal(rt_train(train, 5, NULL), RT_E_MEMORY);
    assert_non_null(strstr(rt_error_text(), "max-memory"));
    assert_int_equal(rt_train(train, 4, NULL), RT_OK); /* the limit was of that call */
}

/* Data sets of a later header are longer. */
static void test_longer_memory(void **state) {
    (void)state;
    struct {
        rt_memory m;
        const void *later[2];
    } two[2] = {{.m = make_memory(RT_TASK_CLASSIFICATION)}, {.m = make_memory(RT_TASK_CLASSIFICATION)}};
    char to[160];
    snprintf(to, sizeof to, "out=%s/longer", dir);
    const char *settings[] = {"data=memory:second", "arch=mlp:4", "epochs=1", to};
    two[0].m.size = two[1].m.size = sizeof two[0];
    two[1].m.name = "second";
    rt_job job = {
        .size = sizeof job, .settings = settings, .nsettings = 4, .memory = &two[0].m, .nmemory = 2};
    assert_int_equal(rt_job_run("train", &job), RT_OK);
    two[1].m.size = sizeof(rt_memory);
    REFUSED(rt_job_run("train", &job));
    two[1].m.size = sizeof two[0];
    two[1].m.test.reserved[3] = two;
    REFUSED(rt_job_run("train", &job));
}

typedef struct worker {
    pthread_t thread;
    const rt_memory *data;
    char to[160];
    rt_status status;
} worker;

static void *work(void *user) {
    worker *w = user;
    const char *settings[] = {"data=memory:made", "arch=mlp:8", "epochs=3", "threads=1", w->to};
    const rt_job job = {
        .size = sizeof job, .settings = settings, .nsettings = 5, .memory = w->data, .nmemory = 1};
    w->status = rt_job_run("train", &job);
    return NULL;
}

/* Jobs at once do not see each other: they write the same model. */
static void test_jobs_at_once(void **state) {
    (void)state;
    const rt_memory data = make_memory(RT_TASK_CLASSIFICATION);
    worker all[3];
    rt_model *m[3] = {NULL, NULL, NULL};
    for (int i = 0; i < 3; i++) {
        all[i].data = &data;
        snprintf(all[i].to, sizeof all[i].to, "out=%s/at-once-%d", dir, i);
        assert_int_equal(pthread_create(&all[i].thread, NULL, work, &all[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(all[i].thread, NULL), 0);
        assert_int_equal(all[i].status, RT_OK);
        assert_int_equal(rt_model_load(&m[i], all[i].to + 4), RT_OK);
        assert_string_equal(rt_model_meta(m[i], "sha256"), rt_model_meta(m[0], "sha256"));
    }
    for (int i = 0; i < 3; i++)
        rt_model_destroy(&m[i]);
}

/* The rest of the header, and data sets from memory that cannot be one. */
static void test_wrong_memory(void **state) {
    (void)state;
    char to[160];
    snprintf(to, sizeof to, "out=%s/wrong-memory", dir);
    const char *settings[] = {"data=memory:made", "arch=mlp:4", "epochs=1", to};
    const rt_memory good = make_memory(RT_TASK_CLASSIFICATION);
    static int32_t high[ROWS], negative[ROWS];
    static float nan_row[ROWS * FEATURES];
    static const char *const no_name[] = {"low", NULL};
    memset(negative, 0xff, sizeof negative);
    high[3] = 2;
    memcpy(nan_row, rows, sizeof nan_row);
    nan_row[4] = NAN;
    enum { CASES = 17 };
    rt_memory bad[CASES];
    for (int i = 0; i < CASES; i++)
        bad[i] = good;
    bad[0].size = 0;
    bad[1].name = NULL;
    bad[2].task = (rt_task)77;
    bad[3].rank = 0;
    bad[4].rank = 7;
    bad[5].dims[0] = 0;
    bad[6].dims[0] = -5;
    bad[7].dims[0] = INT64_MAX;
    bad[8].classes = 0;
    bad[9].classes = INT64_MAX;
    bad[10].class_names = no_name;
    bad[11].train.rows = -1;
    bad[12].train.rows = 0;
    bad[13].train.x = NULL;
    bad[14].train.label = NULL;
    bad[15].train.label = high;
    bad[16].train.label = negative;
    rt_job job = {.size = sizeof job, .settings = settings, .nsettings = 4, .memory = bad, .nmemory = 1};
    for (int i = 0; i < CASES; i++) {
        job.memory = &bad[i];
        const rt_status st = rt_job_run("train", &job);
        if ((st != RT_E_USAGE && st != RT_E_INPUT) || !*rt_error_text())
            fail_msg("wrong data set %d: %s, \"%s\"", i, rt_status_name(st), rt_error_text());
    }
    rt_memory holes = good;
    holes.train.x = nan_row;
    job.memory = &holes;
    assert_int_equal(rt_job_run("train", &job), RT_E_INPUT);
    job.memory = &good;
    const int counts[][3] = {{-1, 0, 1}, {4, -1, 1}, {4, 0, -1}};
    for (int i = 0; i < 3; i++) {
        rt_job wrong = job;
        wrong.nsettings = counts[i][0];
        wrong.nwords = counts[i][1];
        wrong.nmemory = counts[i][2];
        REFUSED(rt_job_run("train", &wrong));
    }
    const char *no_word = NULL;
    REFUSED(rt_job_run("eval", &(rt_job){.size = sizeof job, .words = &no_word, .nwords = 1}));
    assert_int_equal(rt_job_run("train", &job), RT_OK); /* and as it should be */

    rt_model *m = NULL;
    rt_setting s = RT_SETTING_INIT;
    int64_t dims[3];
    float y[2];
    const rt_prediction probs = {.size = sizeof probs, .probs = y};
    assert_int_equal(rt_model_load(&m, to + 4), RT_OK);
    REFUSED(rt_model_run(m, NULL, 1, &probs, 1));
    REFUSED(rt_model_run(m, rows, 1, NULL, 1));
    REFUSED(rt_model_run(m, rows, INT64_MAX, &probs, 1));
    REFUSED(rt_model_run(m, rows, 1, &(rt_prediction){.size = 4, .probs = y}, 1));
    assert_int_equal(rt_model_task(NULL), 0);
    assert_int_equal(rt_model_dims(NULL, dims), 0);
    assert_int_equal(rt_model_dims(m, NULL), 1); /* only asked how many */
    assert_null(rt_model_meta(NULL, "task"));
    assert_null(rt_model_meta(m, NULL));
    assert_null(rt_model_unit(NULL));
    assert_int_equal(rt_setting_count(NULL), -1);
    REFUSED(rt_setting_get(NULL, 0, &s));
    REFUSED(rt_setting_get("sing", 0, &s));
    const char *hole[] = {NULL};
    REFUSED(rt_settings_check("train", NULL, 1));
    REFUSED(rt_settings_check("train", settings, -1));
    REFUSED(rt_settings_check("train", hole, 1));
    rt_model_destroy(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_verb),        cmocka_unit_test(test_regression_from_memory),
        cmocka_unit_test(test_settings),          cmocka_unit_test(test_eval_as_the_program),
        cmocka_unit_test(test_memory_limit),      cmocka_unit_test(test_longer_memory),
        cmocka_unit_test(test_jobs_at_once),      cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_wrong_memory),      cmocka_unit_test(test_wrong_outputs_of_a_regression),
        cmocka_unit_test(test_train_and_predict), cmocka_unit_test(test_sure_rows),
        cmocka_unit_test(test_distill),           cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
