/* test_status.c - the error record: text, prefix, threads, exit codes. */
#include "base/status.h"
#include <pthread.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static rt_status fails(int n) {
    RT_FAIL_IF(n < 0, RT_E_INPUT, "%s: %d rows", "file.csv", n);
    return RT_OK;
}

static rt_status forwards(int n) {
    RT_TRY(fails(n));
    return RT_OK;
}

static void test_record(void **state) {
    (void)state;
    rt_error_clear();
    assert_int_equal(forwards(1), RT_OK);
    assert_string_equal(rt_error_text(), "");
    assert_int_equal(forwards(-2), RT_E_INPUT);
    assert_string_equal(rt_error_text(), "file.csv: -2 rows");
    assert_int_equal(rt_error_last()->code, RT_E_INPUT);
    assert_non_null(strstr(rt_error_last()->file, "test_status.c"));
    assert_int_equal(rt_error_prefix(RT_E_FAILED, "run %d", 7), RT_E_FAILED);
    assert_string_equal(rt_error_text(), "run 7: file.csv: -2 rows");
    assert_int_equal(rt_error_last()->code, RT_E_FAILED);
}

static void test_message_may_quote_the_last_one(void **state) {
    (void)state;
    rt_error_set(RT_E_IO, "f", 1, "inner");
    rt_error_set(RT_E_FAILED, "f", 2, "outer (%s)", rt_error_text());
    assert_string_equal(rt_error_text(), "outer (inner)");
}

static void test_long_texts_are_cut(void **state) {
    (void)state;
    char text[3000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    rt_error_set(RT_E_IO, "f", 1, "%s", text);
    assert_int_equal(strlen(rt_error_text()), RT_ERROR_TEXT_MAX - 1);
    rt_error_prefix(RT_E_IO, "p");
    assert_int_equal(strlen(rt_error_text()), RT_ERROR_TEXT_MAX - 1);
    assert_memory_equal(rt_error_text(), "p: xxx", 6);
    rt_error_prefix(RT_E_IO, "%s", text);
    assert_int_equal(strlen(rt_error_text()), RT_ERROR_TEXT_MAX - 1);
}

static void *fail_elsewhere(void *out) {
    rt_error_set(RT_E_NUMERIC, "f", 3, "worker");
    rt_error_save(out);
    return NULL;
}

static void test_threads_have_their_own(void **state) {
    (void)state;
    rt_error_set(RT_E_IO, "f", 1, "mine");
    rt_error theirs;
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, fail_elsewhere, &theirs), 0);
    pthread_join(t, NULL);
    assert_string_equal(rt_error_text(), "mine");
    rt_error_restore(&theirs);
    assert_string_equal(rt_error_text(), "worker");
    assert_int_equal(rt_error_last()->code, RT_E_NUMERIC);
}

static void test_exit_codes(void **state) {
    (void)state;
    static const struct {
        rt_status st;
        int exit_code;
    } table[] = {{RT_OK, 0},        {RT_E_FAILED, 1},      {RT_E_MEMORY, 1}, {RT_E_IO, 1},
                 {RT_E_NUMERIC, 1}, {RT_E_LOCKED, 1},      {RT_E_USAGE, 2},  {RT_E_UNSUPPORTED, 2},
                 {RT_E_INPUT, 3},   {RT_E_INTERRUPTED, 4}, {RT_E_GATE, 5}};
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        assert_int_equal(rt_status_exit_code(table[i].st), table[i].exit_code);
        assert_string_not_equal(rt_status_name(table[i].st), "unknown status");
    }
    assert_string_equal(rt_status_name((rt_status)99), "unknown status");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_record),
        cmocka_unit_test(test_message_may_quote_the_last_one),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_threads_have_their_own),
        cmocka_unit_test(test_exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
