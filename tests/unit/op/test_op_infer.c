/* Shape rules: every operation, with inputs that fit and inputs that do not (infer_cases.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/op/infer_cases.h"

static bool same_type(const rt_type *a, const rt_type *b) {
    return a->dtype == b->dtype && a->kind == b->kind && a->groups == b->groups &&
           rt_shape_equal(&a->shape, &b->shape);
}

static void test_table(void **state) {
    (void)state;
    for (int64_t i = 0; i < RT_COUNT(op_cases); i++) {
        const op_case *k = &op_cases[i];
        const char *name = rt_op_get(k->op)->name;
        rt_type in[CASE_MAX_IN], out, want;
        int nin = case_read_inputs(in, k->in);
        rt_status st = rt_op_infer(&out, k->op, &k->attr, in, nin, CASE_BATCH);
        if (k->out == NULL) {
            if (st != RT_E_USAGE)
                fail_msg("%s(%s): accepted, wanted an error about '%s'", name, k->in, k->why);
            if (strstr(rt_error_text(), k->why) == NULL || strstr(rt_error_text(), name) != rt_error_text())
                fail_msg("%s(%s): message '%s', wanted '%s' in it", name, k->in, rt_error_text(), k->why);
            continue;
        }
        if (st != RT_OK)
            fail_msg("%s(%s): %s", name, k->in, rt_error_text());
        case_read_type(&want, k->out);
        if (!same_type(&out, &want)) {
            rt_str s;
            rt_str_init(&s);
            rt_shape_print(&out.shape, &s);
            fail_msg("%s(%s): groups %d, kind %d, %s; wanted %s", name, k->in, (int)out.groups, (int)out.kind,
                     rt_str_text(&s), k->out);
        }
    }
}

static void test_table_is_complete(void **state) {
    (void)state;
    int good[RT_OP_COUNT] = {0}, bad[RT_OP_COUNT] = {0};
    for (int64_t i = 0; i < RT_COUNT(op_cases); i++)
        (op_cases[i].out != NULL ? good : bad)[op_cases[i].op]++;
    for (int op = RT_OP_NONE + 1; op < RT_OP_COUNT; op++)
        if (good[op] == 0 || bad[op] == 0)
            fail_msg("%s: %d good and %d bad cases", rt_op_get((rt_op)op)->name, good[op], bad[op]);
}

/* Every operation with any one input taken away or its rows miscounted is refused, and never crashes. */
static void test_wrong_rows_and_arity(void **state) {
    (void)state;
    for (int64_t i = 0; i < RT_COUNT(op_cases); i++) {
        const op_case *k = &op_cases[i];
        rt_type in[CASE_MAX_IN], out;
        int nin = case_read_inputs(in, k->in);
        if (k->out == NULL)
            continue;
        if (rt_op_get(k->op)->arity != RT_VARIADIC)
            assert_int_equal(rt_op_infer(&out, k->op, &k->attr, in, nin - 1, CASE_BATCH), RT_E_USAGE);
        for (int j = 0; j < nin; j++) {
            if (in[j].groups == 0)
                continue;
            in[j].shape.d[0]++;
            assert_int_equal(rt_op_infer(&out, k->op, &k->attr, in, nin, CASE_BATCH), RT_E_USAGE);
            in[j].shape.d[0]--;
        }
    }
}

static void test_limits(void **state) {
    (void)state;
    rt_type out, big = {.dtype = RT_DTYPE_F32, .shape = rt_shape1(INT64_C(1) << 40)};
    rt_attr a = {.n = INT64_C(1) << 40};
    assert_int_equal(rt_op_infer(&out, RT_OP_EXPAND_BATCH, &a, &big, 1, 4), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "too large"));
    rt_type x = {.dtype = RT_DTYPE_F32, .shape = rt_shape1(4)};
    a = (rt_attr){0};
    assert_int_equal(rt_op_infer(&out, RT_OP_EXP, &a, &x, 1, 0), RT_E_USAGE);
    assert_int_equal(rt_op_infer(&out, RT_OP_NONE, &a, &x, 1, 4), RT_E_USAGE);
    assert_int_equal(rt_op_infer(&out, RT_OP_COUNT, &a, &x, 1, 4), RT_E_USAGE);
    assert_int_equal(rt_op_infer(&out, RT_OP_CHAIN, &a, &x, RT_OP_MAX_IN + 1, 4), RT_E_USAGE);
}

static void test_message_shows_the_call(void **state) {
    (void)state;
    rt_type in[2], out;
    rt_attr a = {.stride = 1, .pad = 1};
    case_read_inputs(in, "2:3x8x8 g:5x4x3x3");
    assert_int_equal(rt_op_infer(&out, RT_OP_CONV2D, &a, in, 2, CASE_BATCH), RT_E_USAGE);
    assert_string_equal(rt_error_text(), "conv2d(f32 [2x] 8x3x8x8, f32 5x4x3x3) stride=1 pad=1: "
                                         "the weights want 4 input channels, input 0 has 3");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_table_is_complete),
        cmocka_unit_test(test_wrong_rows_and_arity),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_message_shows_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
