/* The operation list as data, attributes as text, and the cost of operations with known answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/op/infer_cases.h"

static void test_names(void **state) {
    (void)state;
    for (int i = RT_OP_NONE + 1; i < RT_OP_COUNT; i++) {
        rt_op found;
        assert_true(rt_op_find(&found, rt_op_get((rt_op)i)->name));
        assert_int_equal(found, i);
        assert_true(strlen(rt_op_get((rt_op)i)->meaning) > 0);
    }
    rt_op found;
    assert_false(rt_op_find(&found, "no such operation"));
    assert_string_equal(rt_op_get(RT_OP_COUNT)->name, "none");
    assert_int_equal(rt_op_get(RT_OP_CONCAT_MEMBERS)->arity, RT_VARIADIC);
    assert_true(rt_op_get(RT_OP_BN_APPLY)->flags & RT_OP_ELTWISE);
    assert_true(rt_op_get(RT_OP_CHAIN)->flags & RT_OP_INTERNAL);
}

static void check_print(rt_attr a, const char *want) {
    rt_str s;
    rt_str_init(&s);
    rt_attr_print(&a, &s);
    assert_string_equal(rt_str_text(&s), want);
    rt_str_deinit(&s);
}

static void test_attr_print(void **state) {
    (void)state;
    check_print((rt_attr){0}, "");
    check_print((rt_attr){.stride = 2, .pad = 1}, "stride=2 pad=1");
    check_print((rt_attr){.alpha = 0.5, .ta = true, .shape = rt_shape2(3, 4)}, "alpha=0.5 ta shape=3x4");
    check_print((rt_attr){.members = 4, .stream = UINT64_MAX}, "members=4 stream=18446744073709551615");
}

static void test_attr_equal(void **state) {
    (void)state;
    const rt_attr base = {0};
    const rt_attr other[] = {
        {.alpha = 1},  {.alpha = -0.0}, {.beta = 1},
        {.ta = true},  {.tb = true},    {.members = 1},
        {.index = 1},  {.start = 1},    {.count = 1},
        {.n = 1},      {.kh = 1},       {.kw = 1},
        {.stride = 1}, {.pad = 1},      {.h = 1},
        {.w = 1},      {.stream = 1},   {.shape = {.rank = 1, .d = {1}}},
    };
    for (int64_t i = 0; i < RT_COUNT(other); i++) {
        assert_false(rt_attr_equal(&base, &other[i]));
        assert_true(rt_attr_equal(&other[i], &other[i]));
    }
    const rt_attr nan = {.alpha = NAN};
    assert_true(rt_attr_equal(&nan, &nan));
}

typedef struct cost_case {
    rt_op op;
    const char *in;
    double flops, bytes;
    rt_attr attr;
} cost_case;

/* A batch of 4. */
static const cost_case costs[] = {
    {RT_OP_ADD, "1:10 1:10", 40, 3 * 160, AT(0)},
    {RT_OP_MATMUL, "1:10 g:10x3", 2.0 * 4 * 3 * 10, 160 + 120 + 48, AT(0)},
    {RT_OP_MATMUL, "2:10 2:3", 2.0 * 10 * 3 * 8, 320 + 96 + 120, AT(.ta = true)},
    {RT_OP_BMM, "2:10 2:3", 2.0 * 2 * 10 * 3 * 4, 320 + 96 + 240, AT(.ta = true)},
    {RT_OP_BMM, "2:10 g:2x3x10", 2.0 * 8 * 3 * 10, 320 + 240 + 96, AT(.tb = true)},
    {RT_OP_CONV2D, "1:3x8x8 g:5x3x3x3", 2.0 * 4 * 5 * 64 * 27, 3072 + 540 + 5120, AT(.stride = 1, .pad = 1)},
    {RT_OP_CONV2D_BWD_DATA, "1:5x8x8 g:5x3x3x3", 2.0 * 4 * 5 * 64 * 27, 5120 + 540 + 3072,
     AT(.stride = 1, .pad = 1, .h = 8, .w = 8)},
    {RT_OP_CONV2D_BWD_WEIGHTS, "1:3x8x8 1:5x8x8", 2.0 * 4 * 5 * 64 * 27, 3072 + 5120 + 540,
     AT(.stride = 1, .pad = 1, .kh = 3, .kw = 3)},
    {RT_OP_CHAIN, "1:10 g:10", 3 * 40, 160 + 40 + 160, AT(.count = 3)},
    {RT_OP_RESHAPE, "1:10", 0, 320, AT(.shape = {.rank = 2, .d = {2, 5}})},
    {RT_OP_TOTAL_SUM, "1:10", 40, 164, AT(0)},
};

static void test_cost(void **state) {
    (void)state;
    for (int64_t i = 0; i < RT_COUNT(costs); i++) {
        const cost_case *k = &costs[i];
        rt_type in[CASE_MAX_IN], out;
        double flops, bytes;
        int nin = case_read_inputs(in, k->in);
        assert_int_equal(rt_op_infer(&out, k->op, &k->attr, in, nin, CASE_BATCH), RT_OK);
        rt_op_cost(&flops, &bytes, k->op, &k->attr, &out, in, nin);
        if (flops != k->flops || bytes != k->bytes)
            fail_msg("%s(%s): %g flops, %g bytes; wanted %g, %g", rt_op_get(k->op)->name, k->in, flops, bytes,
                     k->flops, k->bytes);
    }
}

static void test_cost_is_sane_everywhere(void **state) {
    (void)state;
    for (int64_t i = 0; i < RT_COUNT(op_cases); i++) {
        const op_case *k = &op_cases[i];
        rt_type in[CASE_MAX_IN], out;
        double flops, bytes;
        int nin = case_read_inputs(in, k->in);
        if (k->out == NULL)
            continue;
        assert_int_equal(rt_op_infer(&out, k->op, &k->attr, in, nin, CASE_BATCH), RT_OK);
        rt_op_cost(&flops, &bytes, k->op, &k->attr, &out, in, nin);
        assert_true(flops >= 0 && flops < 1e9 && bytes > 0 && bytes < 1e9);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_attr_print),
        cmocka_unit_test(test_attr_equal),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_cost_is_sane_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
