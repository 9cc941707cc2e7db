/*
 * test_schedule.c - learning rates against numbers worked out by hand, and refused schedules.
 */
#include "train/train.h"
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
        {"one-cycle:8", 0.1, 0, 10, 0, 0.001},
        {"one-cycle:8", 0.1, 0, 10, 2, 0.0505},
        {"one-cycle:8", 0.1, 0, 10, 4, 0.1},
        {"one-cycle:8", 0.1, 0, 10, 6, 0.0505},
        {"one-cycle:8", 0.1, 0, 10, 8, 0.001},
        {"one-cycle:8", 0.1, 0, 10, 9, 0.00055},
        {"one-cycle:8", 0.1, 0, 10, 10, 0.0001},
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
                                      "one-cycle",
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
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rates), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
