/* test_timer.c - clocks move forward; limits of the machine are plausible. */
#include "base/pool.h"
#include "base/timer.h"
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_clocks(void **state) {
    (void)state;
    double t = rt_time_now(), cpu = rt_time_cpu();
    usleep(20000);
    double slept = rt_time_now() - t;
    assert_true(slept >= 0.0199 && slept < 5.0);
    volatile double x = 1.0;
    for (int i = 0; i < 3000000; i++)
        x = x * 1.0000001;
    assert_true(rt_time_cpu() > cpu);
}

static void test_iso8601(void **state) {
    (void)state;
    char buf[21];
    rt_time_iso8601(buf);
    assert_int_equal(strlen(buf), 20);
    const char *shape = "0000-00-00T00:00:00Z";
    for (int i = 0; i < 20; i++)
        assert_true(shape[i] == '0' ? buf[i] >= '0' && buf[i] <= '9' : buf[i] == shape[i]);
    assert_true(strcmp(buf, "2024") > 0);
}

static void test_memory(void **state) {
    (void)state;
    uint64_t before = rt_memory_peak(), total = rt_memory_total();
    assert_true(before > 100000 && before < total);
    size_t n = 32u << 20;
    char *p = malloc(n);
    assert_non_null(p);
    memset(p, 1, n);
    assert_true(p[n / 2] == 1);
    free(p);
    assert_true(rt_memory_peak() >= before + n / 2); /* the peak stays after the memory is gone */
}

static void test_processors(void **state) {
    (void)state;
    int n = rt_cpu_count();
    assert_in_range(n, 1, sysconf(_SC_NPROCESSORS_CONF));
    cpu_set_t old, one;
    assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &old)) {
            CPU_SET(i, &one);
            break;
        }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(rt_cpu_count(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof old, &old), 0);
    assert_int_equal(rt_cpu_count(), n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_iso8601),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
