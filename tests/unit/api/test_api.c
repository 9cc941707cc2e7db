/*
 * The public header by itself: what a program that only includes retort.h can do.
 */
#include "retort.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
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
    const rt_prediction r = {
        .probs = p, .member_probs = mp, .entropy = h, .expected_entropy = eh, .mutual_information = mi};
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
    assert_int_equal(rt_session_run(s, x + 2, 1, &(rt_prediction){.probs = one}), RT_OK);
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
    assert_int_equal(
        rt_session_run(
            s, x, 1,
            &(rt_prediction){.probs = p, .entropy = &h, .expected_entropy = &eh, .mutual_information = &mi}),
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

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_train_and_predict),
                                       cmocka_unit_test(test_distill), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
