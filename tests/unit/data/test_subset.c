/* Subsets, splits and moments; conversion between input shapes; the spiral. */
#include "unit/data/data_support.h"

#include <math.h>

static void test_split(void **state) {
    (void)state;
    float x[10] = {0};
    rt_part p = {.n = 10, .f32 = x};
    rt_subset a, b;
    assert_ok(rt_subset_split(&a, &b, &p, 3, RT_SPLIT_LAST, 0));
    assert_int_equal(a.n, 7);
    for (int i = 0; i < 3; i++)
        assert_int_equal(b.index[i], 7 + i);
    rt_subset_deinit(&a);
    rt_subset_deinit(&b);
    int64_t drawn[2] = {0, 0};
    for (uint64_t seed = 0; seed < 2; seed++) {
        assert_ok(rt_subset_split(&a, &b, &p, 4, RT_SPLIT_RANDOM, seed));
        int seen[10] = {0};
        for (int i = 0; i < 6; i++)
            seen[a.index[i]]++;
        for (int i = 0; i < 4; i++) {
            seen[b.index[i]]++;
            drawn[seed] |= (int64_t)1 << b.index[i];
            assert_true(i == 0 || b.index[i] > b.index[i - 1]);
        }
        for (int i = 0; i < 10; i++)
            assert_int_equal(seen[i], 1);
        rt_subset_deinit(&a);
        rt_subset_deinit(&b);
    }
    assert_true(drawn[0] != drawn[1]);
    assert_ok(rt_subset_split(&a, &b, &p, 0, RT_SPLIT_RANDOM, 1));
    assert_int_equal(a.n, 10);
    rt_subset_deinit(&a);
    rt_subset_deinit(&b);
    assert_int_equal(rt_subset_split(&a, &b, &p, 10, RT_SPLIT_RANDOM, 1), RT_E_USAGE);
    assert_int_equal(rt_subset_split(&a, &b, &p, -1, RT_SPLIT_RANDOM, 1), RT_E_USAGE);
    static const int64_t outside[] = {0, 10};
    assert_int_equal(rt_subset_rows(&a, &p, outside, 2), RT_E_USAGE);
}

/* All rows need no list, and mean the same as a list of all. */
static void test_rows(void **state) {
    (void)state;
    float x[10];
    for (int i = 0; i < 10; i++)
        x[i] = (float)(i * i);
    const rt_part p = {.n = 10, .f32 = x, .target = x};
    const rt_subset all = rt_subset_all(&p);
    rt_subset some, listed, none, rest;
    double mean[2], std[2], of[2], spread[2];
    assert_ok(rt_subset_some(&listed, &all, 0));
    assert_true(rt_subset_equal(&all, &listed) && listed.index && !all.index);
    rt_subset_moments(&all, rt_shape1(1), &mean[0], &std[0], &of[0], &spread[0]);
    rt_subset_moments(&listed, rt_shape1(1), &mean[1], &std[1], &of[1], &spread[1]);
    assert_true(mean[0] == mean[1] && std[0] == std[1] && of[0] == of[1] && spread[0] == spread[1]);
    assert_close(mean[0], 28.5, 1e-12);
    assert_ok(rt_subset_some(&some, &all, 4)); /* 0, 2, 5, 7 */
    assert_true(some.n == 4 && rt_subset_row(&some, 1) == 2 && rt_subset_target(&some, 3) == 49);
    assert_false(rt_subset_equal(&some, &all));
    listed.index[3] = 4; /* a list is the subset's own */
    assert_false(rt_subset_equal(&listed, &all));
    assert_int_equal(rt_subset_row(&all, 3), 3);
    assert_ok(rt_subset_split(&rest, &none, &p, 0, RT_SPLIT_STRATIFIED, 1));
    assert_true(rt_subset_equal(&rest, &all) && none.n == 0);
    rt_subset_deinit(&some);
    rt_subset_deinit(&listed);
    rt_subset_deinit(&rest);
    rt_subset_deinit(&none);
}

/* Rows of a class in a subset. */
static int64_t count_class(const rt_subset *s, int32_t k) {
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i++)
        n += rt_subset_label(s, i) == k;
    return n;
}

static void test_stratified(void **state) {
    (void)state;
    enum { N = 107 };
    /* sorted by class: 60, 30, 15, 1 and 1 rows */
    int32_t label[N];
    float x[N] = {0};
    for (int i = 0; i < N; i++)
        label[i] = i < 60 ? 0 : i < 90 ? 1 : i < 105 ? 2 : i < 106 ? 3 : 4;
    rt_part p = {.n = N, .f32 = x, .label = label};
    rt_subset a, b, c;
    /* 20 of 107: 11.2, 5.6, 2.8, 0.2, 0.2; two are left for the largest remainders */
    assert_ok(rt_subset_split(&a, &b, &p, 20, RT_SPLIT_STRATIFIED, 7));
    static const int64_t want[] = {11, 6, 3, 0, 0};
    for (int32_t k = 0; k < 5; k++) {
        assert_int_equal(count_class(&b, k), want[k]);
        assert_true(count_class(&a, k) > 0);
    }
    assert_int_equal(a.n + b.n, N);
    rt_subset_deinit(&a);
    assert_ok(rt_subset_split(&a, &c, &p, 20, RT_SPLIT_STRATIFIED, 8));
    int64_t same = 0;
    for (int64_t i = 0; i < 20; i++)
        same += b.index[i] == c.index[i];
    assert_true(same < 20); /* by the seed, and not the first rows of a class */
    rt_subset_deinit(&a);
    rt_subset_deinit(&b);
    rt_subset_deinit(&c);
    /* nearly all: a row of each class stays, as long as there is one */
    assert_ok(rt_subset_split(&a, &b, &p, N - 5, RT_SPLIT_STRATIFIED, 7));
    for (int32_t k = 0; k < 5; k++)
        assert_int_equal(count_class(&a, k), 1);
    rt_subset_deinit(&a);
    rt_subset_deinit(&b);
    assert_ok(rt_subset_split(&a, &b, &p, N - 2, RT_SPLIT_STRATIFIED, 7));
    assert_int_equal(b.n, N - 2);
    rt_subset_deinit(&a);
    rt_subset_deinit(&b);
    /* without classes it is the random draw */
    p.label = NULL;
    assert_ok(rt_subset_split(&a, &b, &p, 20, RT_SPLIT_STRATIFIED, 7));
    rt_subset_deinit(&a);
    assert_ok(rt_subset_split(&a, &c, &p, 20, RT_SPLIT_RANDOM, 7));
    assert_memory_equal(b.index, c.index, 20 * sizeof *b.index);
    rt_subset_deinit(&a);
    rt_subset_deinit(&b);
    rt_subset_deinit(&c);
}

static void test_moments(void **state) {
    (void)state;
    const float x[] = {1, 7, 0.1f, 3, 7, 0.1f, 100, 9, 9}, y[] = {10, 20, 30};
    rt_part p = {.n = 3, .f32 = x, .target = y};
    const int64_t rows[] = {0, 1};
    rt_subset s;
    double mean[3], std[3], my, sy;
    assert_ok(rt_subset_rows(&s, &p, rows, 2));
    rt_subset_moments(&s, rt_shape1(3), mean, std, &my, &sy);
    assert_true(mean[0] == 2 && std[0] == 1 && mean[1] == 7 && std[1] == 1 && mean[2] == (double)0.1f &&
                std[2] == 1);
    assert_true(my == 15 && sy == 5);
    rt_subset_deinit(&s);
    const uint8_t u8[] = {0, 255, 10, 10, 255, 0, 10, 10};
    rt_part q = {.n = 2, .u8 = u8};
    s = rt_subset_all(&q);
    rt_subset_moments(&s, rt_shape3(2, 1, 2), mean, std, NULL, NULL);
    assert_close(mean[0], 0.5, 1e-15);
    assert_close(std[0], 0.5, 1e-15);
    assert_close(mean[1], 10 / 255.0, 1e-15);
    assert_true(std[1] == 1);
}

static void test_convert(void **state) {
    (void)state;
    const uint8_t grey[] = {0, 51, 102, 153, 204, 255, 0, 255};
    rt_part p = {.n = 2, .u8 = grey};
    float *out = NULL;
    assert_ok(rt_part_convert(&out, &p, rt_shape3(1, 2, 2), rt_shape3(3, 2, 2)));
    for (int i = 0; i < 2; i++)
        for (int c = 0; c < 3; c++)
            for (int k = 0; k < 4; k++)
                assert_true(out[(i * 3 + c) * 4 + k] == (float)grey[i * 4 + k] / 255.0f);
    rt_free(out);
    assert_ok(rt_part_convert(&out, &p, rt_shape3(1, 2, 2), rt_shape3(1, 1, 1))); /* box mean */
    assert_close(out[0], 0.3, 1e-6);
    assert_close(out[1], 0.7, 1e-6);
    rt_free(out);
    assert_ok(rt_part_convert(&out, &p, rt_shape3(1, 2, 2), rt_shape3(1, 4, 4))); /* bilinear, by hand */
    static const float row[] = {0, 0.05f, 0.15f, 0.2f};
    for (int k = 0; k < 4; k++) {
        assert_close(out[k], row[k], 1e-6);
        assert_close(out[4 + k], 0.1 + row[k], 1e-6);
    }
    rt_free(out);
    const float colour[] = {1, 0.5f, 0.25f};
    rt_part q = {.n = 1, .f32 = colour};
    assert_ok(rt_part_convert(&out, &q, rt_shape3(3, 1, 1), rt_shape3(1, 1, 1)));
    assert_close(out[0], 0.299 + 0.587 * 0.5 + 0.114 * 0.25, 1e-6);
    rt_free(out);
    assert_ok(rt_part_convert(&out, &q, rt_shape1(3), rt_shape1(3)));
    assert_memory_equal(out, colour, sizeof colour);
    rt_free(out);
    assert_int_equal(rt_part_convert(&out, &q, rt_shape1(3), rt_shape1(4)), RT_E_INPUT);
    assert_int_equal(rt_part_convert(&out, &q, rt_shape1(3), rt_shape3(3, 1, 1)), RT_E_INPUT);
    assert_int_equal(rt_part_convert(&out, &q, rt_shape3(3, 1, 1), rt_shape3(2, 1, 1)), RT_E_INPUT);
    assert_int_equal(rt_part_convert(&out, &q, rt_shape3(3, 1, 1), rt_shape3(3, 0, 1)), RT_E_INPUT);
    assert_null(out);
}

static void test_spiral(void **state) {
    (void)state;
    rt_dataset *d = NULL, *e = NULL;
    assert_ok(rt_dataset_open(&d, "spiral", (rt_data_options){.seed = 1}));
    assert_int_equal(rt_dataset_train(d)->n, 3000);
    assert_int_equal(rt_dataset_test(d)->n, 3000);
    assert_memory_not_equal(rt_dataset_train(d)->f32, rt_dataset_test(d)->f32, 64);
    int count[3] = {0};
    for (int i = 0; i < 3000; i++) {
        const float *x = rt_dataset_train(d)->f32 + 2 * i;
        count[rt_dataset_train(d)->label[i]]++;
        assert_true(hypot(x[0], x[1]) < 1000);
    }
    assert_true(count[0] == 1000 && count[1] == 1000 && count[2] == 1000);
    assert_ok(rt_dataset_open(&e, "spiral:seed=1", (rt_data_options){.seed = 9}));
    assert_string_equal(rt_dataset_hash(d), rt_dataset_hash(e));
    rt_dataset_destroy(&e);
    assert_ok(rt_dataset_open(&e, "spiral", (rt_data_options){.seed = 9}));
    assert_string_not_equal(rt_dataset_hash(d), rt_dataset_hash(e));
    rt_dataset_destroy(&e);
    rt_dataset_destroy(&d);
    /* without noise: radius t^2, angle (of (-x, y)) = t + phi */
    assert_ok(rt_dataset_open(&d, "spiral:n=50,noise=0,arms=4", (rt_data_options){.seed = 1}));
    assert_int_equal(rt_dataset_classes(d), 4);
    for (int i = 0; i < 200; i++) {
        const float *x = rt_dataset_train(d)->f32 + 2 * i;
        double t = sqrt(hypot(x[0], x[1])), phi = 2 * 3.14159265358979 * rt_dataset_train(d)->label[i] / 4;
        assert_true(t < 6 * 3.14159266);
        assert_close(-cos(t + phi) * t * t, x[0], 1e-2);
        assert_close(sin(t + phi) * t * t, x[1], 1e-2);
    }
    rt_dataset_destroy(&d);
    assert_int_equal(rt_dataset_open(&d, "spiral:nose=0.3", (rt_data_options){.seed = 1}), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "did you mean 'noise'?"));
    assert_int_equal(rt_dataset_open(&d, "spiral:n=0", (rt_data_options){.seed = 1}), RT_E_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),   cmocka_unit_test(test_rows),    cmocka_unit_test(test_stratified),
        cmocka_unit_test(test_moments), cmocka_unit_test(test_convert), cmocka_unit_test(test_spiral),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
