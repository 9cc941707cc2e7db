/*
 * test_pairs.c - the pair of teachers (and student members) that a step draws: ordered, never twice the same one, each
 * as likely as the others, and a function of seed and step alone (teaching.c).
 */
#include "train/train_int.h"
#include <math.h>
#include <setjmp.h>
#include <cmocka.h>

enum { TEACHERS = 4, STEPS = 12000 };

static void test_drawing(void **state) {
    (void)state;
    rt_teacher teacher = {.members = TEACHERS};
    const rt_teaching t = {.teacher = &teacher};
    int count[TEACHERS][TEACHERS] = {{0}}, moved = 0;
    for (int step = 0; step < STEPS; step++) {
        int32_t a[2], again[2], other[2];
        rt_teaching_pair(&t, 3, step, 0, a);
        rt_teaching_pair(&t, 3, step, 0, again);
        rt_teaching_pair(&t, 4, step, 0, other);
        assert_true(a[0] >= 0 && a[0] < TEACHERS && a[1] >= 0 && a[1] < TEACHERS);
        assert_true(a[0] == again[0] && a[1] == again[1]);
        moved += a[0] != other[0] || a[1] != other[1];
        count[a[0]][a[1]]++;
    }
    const double mean = (double)STEPS / (TEACHERS * (TEACHERS - 1)); /* 1000, deviation 30 */
    for (int i = 0; i < TEACHERS; i++)
        for (int j = 0; j < TEACHERS; j++)
            if (i == j ? count[i][j] != 0 : !(fabs(count[i][j] - mean) < 5 * sqrt(mean)))
                fail_msg("the pair (%d, %d) was drawn %d times of %d", i, j, count[i][j], STEPS);
    assert_true(moved > STEPS / 2);
}

static void test_alone(void **state) {
    (void)state;
    rt_teacher teacher = {.members = 1};
    const rt_teaching t = {.teacher = &teacher};
    int32_t pair[2];
    rt_teaching_pair(&t, 3, 7, 0, pair);
    assert_true(pair[0] == 0 && pair[1] == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drawing), cmocka_unit_test(test_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
