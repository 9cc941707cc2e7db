/* test_log.c - silence by default, formatted text with a callback. */
#include "base/log.h"
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct seen {
    int calls;
    rt_log_level level;
    char text[2048];
} seen;

static void listen(void *user, rt_log_level level, const char *text) {
    seen *s = user;
    s->calls++;
    s->level = level;
    strncpy(s->text, text, sizeof s->text - 1);
}

static void test_callback(void **state) {
    (void)state;
    seen s = {0};
    rt_log(RT_LOG_WARN, "nobody hears %d", 1);
    rt_log_set(listen, &s);
    rt_log(RT_LOG_WARN, "epoch %d", 3);
    assert_int_equal(s.calls, 1);
    assert_int_equal(s.level, RT_LOG_WARN);
    assert_string_equal(s.text, "epoch 3");
    rt_log(RT_LOG_DEBUG, "%5000d", 1); /* cut, not overrun */
    assert_int_equal(strlen(s.text), 1023);
    rt_log_set(NULL, NULL);
    rt_log(RT_LOG_INFO, "nobody hears");
    assert_int_equal(s.calls, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_callback)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
