/* Batches are pure functions of (seed, epoch, index); prefetching changes nothing and allocates nothing. */
#include "unit/data/data_support.h"

enum { N = 23, C = 2, H = 3, W = 4, ELEMS = C * H * W };

static uint8_t pixels[N * ELEMS];
static int32_t labels[N];
static rt_part part = {.n = N, .u8 = pixels, .label = labels};
static rt_subset set;

static int setup(void **state) {
    (void)state;
    for (int i = 0; i < N * ELEMS; i++)
        pixels[i] = (uint8_t)(i * 31 % 251);
    for (int i = 0; i < N; i++)
        labels[i] = i % 5;
    int64_t rows[N - 3];
    for (int i = 0; i < N - 3; i++)
        rows[i] = N - 1 - i;
    assert_ok(rt_subset_rows(&set, &part, rows, N - 3));
    return 0;
}
static int teardown(void **state) {
    (void)state;
    rt_subset_deinit(&set);
    return 0;
}

static rt_batch_spec spec_of(int64_t batch, bool shuffle, bool drop_last) {
    return (rt_batch_spec){
        .set = &set, .row = rt_shape3(C, H, W), .batch = batch, .shuffle = shuffle, .drop_last = drop_last};
}

static void test_counts(void **state) {
    (void)state;
    static const struct {
        int64_t batch;
        bool drop;
        int64_t count, last;
    } cases[] = {{1, false, 20, 1}, {7, false, 3, 6},   {7, true, 2, 7}, {20, false, 1, 20},
                 {20, true, 1, 20}, {21, false, 1, 20}, {21, true, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_batch_spec s = spec_of(cases[i].batch, false, cases[i].drop);
        assert_int_equal(rt_batch_count(&s), cases[i].count);
        if (cases[i].count)
            assert_int_equal(rt_batch_rows(&s, cases[i].count - 1), cases[i].last);
    }
}

static void test_order(void **state) {
    (void)state;
    rt_batch_spec s = spec_of(7, true, false);
    int64_t a[N], b[N], seen[N] = {0};
    rt_batch_order(&s, 1, 4, a);
    rt_batch_order(&s, 1, 4, b);
    assert_memory_equal(a, b, 20 * sizeof *a);
    for (int i = 0; i < 20; i++)
        seen[a[i]]++;
    for (int i = 0; i < 20; i++)
        assert_int_equal(seen[i], 1);
    rt_batch_order(&s, 1, 5, b);
    assert_memory_not_equal(a, b, 20 * sizeof *a);
    rt_batch_order(&s, 2, 4, b);
    assert_memory_not_equal(a, b, 20 * sizeof *a);
    s.shuffle = false;
    rt_batch_order(&s, 1, 4, a);
    for (int i = 0; i < 20; i++)
        assert_int_equal(a[i], i);
}

static void test_fill(void **state) {
    (void)state;
    rt_batch_spec s = spec_of(6, true, false);
    int64_t order[N], source[6];
    float x[6 * ELEMS], target[6];
    int32_t label[6];
    rt_batch_order(&s, 3, 0, order);
    for (int64_t i = 0; i < rt_batch_count(&s); i++) {
        rt_batch_fill(&s, 3, 0, i, order, x, label, target, source);
        for (int64_t k = 0; k < rt_batch_rows(&s, i); k++) {
            assert_int_equal(source[k], rt_subset_row(&set, order[i * 6 + k]));
            assert_int_equal(label[k], labels[source[k]]);
            for (int64_t e = 0; e < ELEMS; e++)
                assert_true(x[k * ELEMS + e] == (float)pixels[source[k] * ELEMS + e] / 255.0f);
        }
    }
}

/* The augmented image of a row must not depend on the batch it is in. */
static void test_augment_is_per_row(void **state) {
    (void)state;
    rt_batch_spec one = spec_of(1, true, false), seven = spec_of(7, false, false);
    one.augment = seven.augment = (rt_augment){.flip = true, .crop_pad = 1, .shift = 1, .rotate = 20};
    int64_t order_one[N], order_seven[N], source[7];
    static float x1[ELEMS], x7[7 * ELEMS], all[N * ELEMS];
    rt_batch_order(&one, 9, 2, order_one);
    rt_batch_order(&seven, 9, 2, order_seven);
    for (int64_t i = 0; i < rt_batch_count(&seven); i++) {
        rt_batch_fill(&seven, 9, 2, i, order_seven, x7, NULL, NULL, source);
        for (int64_t k = 0; k < rt_batch_rows(&seven, i); k++)
            memcpy(all + source[k] * ELEMS, x7 + k * ELEMS, sizeof x1);
    }
    for (int64_t i = 0; i < rt_batch_count(&one); i++) {
        rt_batch_fill(&one, 9, 2, i, order_one, x1, NULL, NULL, source);
        assert_memory_equal(x1, all + source[0] * ELEMS, sizeof x1);
    }
}

static uint64_t total_calls(void) {
    rt_alloc_stats s;
    rt_alloc_get_stats(&s);
    return s.total_calls;
}

static void test_prefetch(void **state) {
    (void)state;
    static const uint64_t seeds[] = {11, 12, 13};
    rt_batch_spec s = spec_of(7, true, false);
    s.augment = (rt_augment){.flip = true, .crop_pad = 2, .reflect = true};
    rt_prefetch *p = NULL;
    assert_ok(rt_prefetch_create(&p, &s, seeds, 3, 5, 1));
    uint64_t calls = total_calls();
    int64_t epoch = 5, index = 1, order[N], source[7];
    float x[7 * ELEMS];
    int32_t label[7];
    for (int step = 0; step < 40; step++) {
        const rt_batch *b = NULL;
        assert_ok(rt_prefetch_next(p, &b));
        assert_int_equal(b->epoch, epoch);
        assert_int_equal(b->index, index);
        assert_int_equal(b->rows, rt_batch_rows(&s, index));
        assert_null(b->target);
        for (int m = 0; m < 3; m++) {
            rt_batch_order(&s, seeds[m], epoch, order);
            rt_batch_fill(&s, seeds[m], epoch, index, order, x, label, NULL, source);
            assert_memory_equal(b->x + m * b->rows * ELEMS, x, (size_t)(b->rows * ELEMS) * sizeof *x);
            assert_memory_equal(b->label + m * b->rows, label, (size_t)b->rows * sizeof *label);
            assert_memory_equal(b->source + m * b->rows, source, (size_t)b->rows * sizeof *source);
        }
        if (++index == rt_batch_count(&s)) {
            index = 0;
            epoch++;
        }
    }
    assert_int_equal(total_calls(), calls);
    rt_prefetch_destroy(&p);
    rt_prefetch_destroy(&p);
}

static void test_prefetch_stops(void **state) {
    (void)state;
    static const uint64_t seed = 1;
    uint64_t before = live_blocks();
    rt_batch_spec s = spec_of(3, true, true);
    for (int taken = 0; taken < 6; taken++)
        for (int again = 0; again < 20; again++) {
            rt_prefetch *p = NULL;
            const rt_batch *b = NULL;
            assert_ok(rt_prefetch_create(&p, &s, &seed, 1, 0, rt_batch_count(&s)));
            for (int i = 0; i < taken; i++) {
                assert_ok(rt_prefetch_next(p, &b));
                assert_int_equal(b->epoch * rt_batch_count(&s) + b->index, rt_batch_count(&s) + i);
            }
            rt_prefetch_destroy(&p);
        }
    rt_prefetch *p = NULL;
    s.batch = 21;
    assert_int_equal(rt_prefetch_create(&p, &s, &seed, 1, 0, 0), RT_E_USAGE); /* no whole batch */
    s.batch = 5;
    s.row = rt_shape1(ELEMS);
    s.augment.flip = true;
    assert_int_equal(rt_prefetch_create(&p, &s, &seed, 1, 0, 0), RT_E_USAGE); /* a table cannot be flipped */
    assert_int_equal(live_blocks(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),   cmocka_unit_test(test_order),
        cmocka_unit_test(test_fill),     cmocka_unit_test(test_augment_is_per_row),
        cmocka_unit_test(test_prefetch), cmocka_unit_test(test_prefetch_stops),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
