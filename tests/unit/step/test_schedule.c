/*
 * test_schedule.c - learning rates against numbers worked out by hand, and refused schedules.
 */
#include "step/step.h"
#include <math.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

static void test_rates(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double lr, warmup, epochs, epoch, want;
    } cases[] = {
        {"constant", 0.1, 0, 10, 0, 0.1},
        {"constant", 0.1, 0, 10, 9.9, 0.1},
        {"constant", 0.1, 2, 10, 0, 0.001},
        {"constant", 0.1, 2, 10, 1, 0.0505},
        {"constant", 0.1, 2, 10, 2, 0.1},
        {"cosine", 0.2, 0, 10, 0, 0.2},
        {"cosine", 0.2, 0, 10, 5, 0.1},
        {"cosine", 0.2, 0, 10, 2.5, 0.2 * (1 + 0.70710678118654752440) / 2},
        {"cosine", 0.2, 0, 10, 10, 0},
        {"cosine", 0.2, 0, 10, 11, 0},
        {"cosine", 0.2, 5, 15, 10, 0.1},
        {"step:4,8:0.1", 1, 0, 10, 3.999, 1},
        {"step:4,8:0.1", 1, 0, 10, 4, 0.1},
        {"step:4,8:0.1", 1, 0, 10, 8, 0.01},
        {"step:4,8:0.1", 1, 5, 10, 5, 0.1},
        {"step:80:0.5", 1, 0, 100, 99, 0.5},
        /* Malinin et al. 2020, Table 6, CIFAR-10: initial rate 1e-3, 90 epochs, cycle 60; ten times the initial
         * rate at 30, back at 60, a thousandth of it at 90 */
        {"one-cycle:60", 1e-3, 0, 90, 0, 1e-3},
        {"one-cycle:60", 1e-3, 0, 90, 15, 5.5e-3},
        {"one-cycle:60", 1e-3, 0, 90, 30, 1e-2},
        {"one-cycle:60", 1e-3, 0, 90, 45, 5.5e-3},
        {"one-cycle:60", 1e-3, 0, 90, 60, 1e-3},
        {"one-cycle:60", 1e-3, 0, 90, 75, 5.005e-4},
        {"one-cycle:60", 1e-3, 0, 90, 90, 1e-6},
        {"one-cycle", 1e-3, 0, 90, 30, 1e-2},
        {"one-cycle", 1e-3, 0, 90, 60, 1e-3},
        /* its Prior Networks: 5e-4, 45 epochs, cycle 30 */
        {"one-cycle:30", 5e-4, 0, 45, 15, 5e-3},
        {"one-cycle", 5e-4, 0, 45, 37.5, 2.5025e-4},
        {"one-cycle:30", 5e-4, 0, 45, 45, 5e-7},
        {"waves:0.5", 0.2, 0, 10, 0, 0.2},
        {"waves:0.5", 0.2, 0, 10, 0.125, 0.1},
        {"waves:0.5", 0.2, 0, 10, 7.25, 0},
        {"waves:4", 0.2, 1, 10, 5, 0.2},
    };
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        rt_schedule s;
        if (rt_schedule_parse(&s, cases[i].text, cases[i].lr, cases[i].warmup, cases[i].epochs) != RT_OK)
            fail_msg("%s: %s", cases[i].text, rt_error_text());
        double got = rt_schedule_lr(&s, cases[i].epoch);
        if (fabs(got - cases[i].want) > 1e-15)
            fail_msg("%s at %g: %.17g, wanted %.17g", cases[i].text, cases[i].epoch, got, cases[i].want);
    }
}

static void test_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "linear",
                                      "constant:1",
                                      "cosine:3",
                                      "step",
                                      "step:",
                                      "step:3",
                                      "step:3:",
                                      "step::0.1",
                                      "step:3:0",
                                      "step:3:1.5",
                                      "step:3:nan",
                                      "step:3,2:1",
                                      "step:3,3:1",
                                      "step:-1:0.1",
                                      "step:a:0.1",
                                      "step:1,:0.1",
                                      "step:,1:0.1",
                                      "one-cycle:",
                                      "one-cycle:0",
                                      "one-cycle:x",
                                      "one-cycle:100",
                                      "waves",
                                      "waves:0",
                                      "waves:-1",
                                      "step:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17:0.1"};
    for (int64_t i = 0; i < RT_COUNT(bad); i++) {
        rt_schedule s;
        if (rt_schedule_parse(&s, bad[i], 0.1, 0, 10) != RT_E_USAGE)
            fail_msg("'%s' was accepted", bad[i]);
    }
    rt_schedule s;
    assert_int_equal(rt_schedule_parse(&s, "one-cycle:5", 0.1, 1, 10), RT_E_USAGE);
    assert_int_equal(rt_schedule_parse(&s, "cosin", 0.1, 0, 10), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "did you mean 'cosine'?"));
    assert_int_equal(rt_schedule_parse(&s, "waves", 0.1, 0, 10), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "wanted waves:EPOCHS"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rates), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
