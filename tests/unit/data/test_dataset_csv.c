/* CSV: forms accepted, tasks, targets, splits, writing back; the UCI tables when present. */
#include "unit/data/data_support.h"

#include <math.h>

SCRATCH_OF_GROUP(s)

static rt_status open_text(rt_dataset **d, const char *text, const char *tail) {
    scratch_text(&s, "t.csv", text);
    return open_with(d, "csv", scratch_path(&s, "t.csv"), tail, (rt_data_options){.seed = 5});
}

static void test_forms(void **state) {
    (void)state;
    static const char *const forms[] = {
        "x0,x1,y\n1,2,3\n-4.5,5e1,6\n",
        "x0,x1,y\n1,2,3\n-4.5,5e1,6",
        "x0,x1,y\r\n1,2,3\r\n-4.5,5e1,6\r\n",
        "\xef\xbb\xbfx0,x1,y\n1,2,3\n-4.5,5e1,6\n\n",
        "\"x0\",\"x\"\"1\", y\n\"1\", 2 ,3\n -4.5,\"5e1\" ,6\n\r\n",
        "y,x0,x1\n3,1,2\n6,-4.5,5e1\n",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        rt_dataset *d = NULL;
        assert_ok(open_text(&d, forms[i], ",test=0"));
        const rt_part *p = rt_dataset_train(d);
        static const float x[] = {1, 2, -4.5f, 50}, y[] = {3, 6};
        assert_int_equal(p->n, 2);
        assert_int_equal(rt_dataset_task(d), RT_TASK_REGRESSION);
        assert_memory_equal(p->f32, x, sizeof x);
        assert_memory_equal(p->target, y, sizeof y);
        rt_dataset_destroy(&d);
    }
}

static void test_targets(void **state) {
    (void)state;
    rt_dataset *d = NULL;
    assert_ok(open_text(&d, "a,kind,b\n1,red,2\n3,\"blue, dark\",4\n5,red,6\n", ",target=kind,test=0"));
    assert_int_equal(rt_dataset_task(d), RT_TASK_CLASSIFICATION);
    assert_int_equal(rt_dataset_classes(d), 2);
    assert_string_equal(rt_dataset_class_name(d, 0), "blue, dark");
    assert_int_equal(rt_dataset_train(d)->label[0], 1);
    assert_int_equal(rt_dataset_train(d)->label[1], 0);
    assert_true(rt_dataset_train(d)->f32[5] == 6);
    /* out and in again */
    assert_ok(rt_dataset_write_csv(d, rt_dataset_train(d), scratch_path(&s, "back.csv")));
    rt_dataset *back = NULL;
    assert_ok(open_with(&back, "csv", scratch_path(&s, "back.csv"), ",test=0", (rt_data_options){.seed = 0}));
    assert_string_equal(rt_dataset_hash(back), rt_dataset_hash(d));
    rt_dataset_destroy(&back);
    rt_dataset_destroy(&d);

    assert_ok(open_text(&d, "a,b,c\n1,2,10\n3,4,9\n5,6,10\n", ",task=classification,test=0"));
    assert_int_equal(rt_dataset_classes(d), 2);
    assert_string_equal(rt_dataset_class_name(d, 0), "9"); /* 9 before 10: by number */
    assert_int_equal(rt_dataset_train(d)->label[0], 1);
    rt_dataset_destroy(&d);

    assert_ok(open_text(&d, "1,2,10\n3,4,9\n", ",header=no,test=0"));
    assert_int_equal(rt_dataset_train(d)->n, 2);
    assert_true(rt_dataset_train(d)->target[1] == 9);
    rt_dataset_destroy(&d);

    assert_ok(open_text(&d, "a,b\n1,2\n3,4\n", ",target=none"));
    assert_int_equal(rt_dataset_row(d).d[0], 2);
    assert_int_equal(rt_dataset_test(d)->n, 2);
    assert_null(rt_dataset_test(d)->target);
    rt_dataset_destroy(&d);
}

static void test_split(void **state) {
    (void)state;
    rt_str t;
    rt_str_init(&t);
    rt_str_append(&t, "x,y\n");
    for (int i = 0; i < 100; i++)
        rt_str_appendf(&t, "%d,%d\n", i, i * 2);
    scratch_text(&s, "t.splits", "0 5 99\n7\n\n");
    char tail[600];
    snprintf(tail, sizeof tail, ",splits=%s/t.splits,split=0", s.dir);
    rt_dataset *d = NULL, *e = NULL;
    assert_ok(open_text(&d, rt_str_text(&t), tail));
    assert_int_equal(rt_dataset_train(d)->n, 97);
    assert_int_equal(rt_dataset_test(d)->n, 3);
    assert_true(rt_dataset_test(d)->target[2] == 198 && rt_dataset_train(d)->f32[0] == 1);
    rt_dataset_destroy(&d);
    static const struct {
        int split;
        rt_status want;
    } cases[] = {{1, RT_OK}, {2, RT_E_INPUT}, {3, RT_E_USAGE}};
    for (size_t i = 0; i < 3; i++) {
        snprintf(tail, sizeof tail, ",splits=%s/t.splits,split=%d", s.dir, cases[i].split);
        assert_int_equal(open_text(&d, rt_str_text(&t), tail), cases[i].want);
        rt_dataset_destroy(&d);
    }
    static const char *const bad[] = {"0 0\n", "100\n", "-1\n", "a\n", "1.5\n", "99999999999999999999\n"};
    snprintf(tail, sizeof tail, ",splits=%s/t.splits", s.dir);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        scratch_text(&s, "t.splits", bad[i]);
        assert_int_equal(open_text(&d, rt_str_text(&t), tail), RT_E_INPUT);
    }
    /* the hold-out does not depend on the seed of the run */
    assert_ok(open_text(&d, rt_str_text(&t), ""));
    assert_int_equal(rt_dataset_test(d)->n, 10);
    assert_ok(open_with(&e, "csv", scratch_path(&s, "t.csv"), "", (rt_data_options){.seed = 77}));
    assert_string_equal(rt_dataset_hash(d), rt_dataset_hash(e));
    rt_dataset_destroy(&e);
    assert_ok(open_with(&e, "csv", scratch_path(&s, "t.csv"), ",seed=1", (rt_data_options){.seed = 77}));
    assert_string_not_equal(rt_dataset_hash(d), rt_dataset_hash(e));
    rt_dataset_destroy(&e);
    rt_dataset_destroy(&d);
    rt_str_deinit(&t);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *tail;
        rt_status want;
        const char *word; /* in the message */
    } cases[] = {
        {"", "", RT_E_INPUT, "empty"},
        {"\n\n", "", RT_E_INPUT, "empty"},
        {"x,y\n", "", RT_E_INPUT, "no rows"},
        {"y\n1\n", "", RT_E_INPUT, "column"},
        {"x,y\n1,2\n3\n", "", RT_E_INPUT, "line 3 has 1 columns, wanted 2"},
        {"x,y\n1,2,3\n", "", RT_E_INPUT, "line 2 has 3 columns"},
        {"x,y\n1,2\n\n3,4\n", "", RT_E_INPUT, "line 3"},
        {"x,y\n,2\n", "", RT_E_INPUT, "no column to predict from"},
        {"x,y\n1,\n", "", RT_E_INPUT, "line 2, column 2 (y) has no value"},
        {"x,y\nnan,2\n", "", RT_E_INPUT, "no column to predict from"},
        {"x,y\ninf,2\n", "", RT_E_INPUT, "not a number"},
        {"x,y\n1,2\n0x1p4,2\n", "", RT_E_INPUT, "line 3, column 1"},
        {"x,y\nabc,2\n4,2\n", "", RT_E_INPUT,
         "line 2, column 1 (x): 'abc' is not a number, but 1 rows have one"},
        {"x,y\n1e39,2\n", "", RT_E_INPUT, "single precision"},
        {"x,y\n1,2\n1e999,2\n", "", RT_E_INPUT, "'1e999' is not a number"},
        {"x,y\n\"1,5\",2\n2,2\n", "", RT_E_INPUT, "'1,5' is not a number"},
        {"x,y\n1,2\n", ",decimal=dot", RT_E_USAGE, "wanted point or comma"},
        {"x,y\n1,2\n", ",sep=space", RT_E_USAGE, "wanted auto, comma, semicolon or tab"},
        {"x,y\n1,2\n", ",drop=z", RT_E_USAGE, "no column is called 'z'"},
        {"xa,y\n1,2\n", ",use=xb", RT_E_USAGE, "did you mean 'xa'?"},
        {"x,y\n1,2\n", ",drop=x,use=x", RT_E_USAGE, "one of them"},
        {"x,y\n1,2\n", ",drop=x", RT_E_INPUT, "no column to predict from"},
        {"x,y\n1,2024-01-01\n", "", RT_E_INPUT, "holds dates"},
        {"x,y\n1,\xe9t\xe9\n", "", RT_E_INPUT, "not UTF-8"},
        {"x,x,y\n1,2,3\n", "", RT_E_INPUT, "2 columns are called x"},
        {"x,y\n1,2\n3,abc\n", "", RT_E_INPUT, "line 3"},
        {"x,y\n1,nan\n", ",task=regression", RT_E_INPUT, "line 2, column 2 (y)"},
        {"x,y\n1,red\n", ",task=regression", RT_E_INPUT, "'red' is not a number"},
        {"x,y\r1,2\r", "", RT_E_INPUT, "carriage return"},
        {"x,y\n\"1,2\n", "", RT_E_INPUT, "never closed"},
        {"x,y\n\"1\"5,2\n", "", RT_E_INPUT, "behind the closing quote"},
        {"1,2\n3,4\n", "", RT_E_INPUT, "header=no"},
        {"x,weight\n1,2\n", ",target=wieght", RT_E_USAGE, "did you mean 'weight'?"},
        {"x,x,z\n1,2,3\n", ",target=x", RT_E_INPUT, "2 columns are called x"},
        {"x,y\n1,2\n", ",taget=y", RT_E_USAGE, "did you mean 'target'?"},
        {"x,y\n1,2\n", ",task=cluster", RT_E_USAGE, "task=cluster"},
        {"x,y\n1,2\n", ",test=2", RT_E_USAGE, "test=2"},
        {"x,y\n1,2\n", ",split=1", RT_E_USAGE, "splits"},
        {"x,y\n1,2\n", ",header=maybe", RT_E_USAGE, "header"},
        {"x,y\n1,2\n", ",test=0,test=0", RT_E_USAGE, "twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_dataset *d = NULL;
        rt_status st = open_text(&d, cases[i].text, cases[i].tail);
        if (st != cases[i].want || strstr(rt_error_text(), cases[i].word) == NULL)
            fail_msg("case %zu: %s: %s", i, rt_status_name(st), rt_error_text());
    }
    rt_dataset *d = NULL; /* a NUL inside */
    scratch_write(&s, "t.csv", "x,y\n1\0,2\n", 9);
    assert_int_equal(open_with(&d, "csv", scratch_path(&s, "t.csv"), "", (rt_data_options){.seed = 0}),
                     RT_E_INPUT);
}

static void test_quotes_count_lines(void **state) {
    (void)state;
    rt_dataset *d = NULL;
    assert_int_equal(open_text(&d, "\"x\n1\",y\n1,2\nbad,2\n", ""), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "line 4"));
}

static void test_wide(void **state) {
    (void)state;
    rt_str t;
    rt_str_init(&t);
    for (int i = 0; i < 100000; i++)
        rt_str_appendf(&t, "c%d,", i);
    rt_str_append(&t, "y\n");
    for (int i = 0; i < 100000; i++)
        rt_str_append(&t, "1,");
    rt_str_append(&t, "2\n");
    rt_dataset *d = NULL;
    assert_ok(open_text(&d, rt_str_text(&t), ",test=0"));
    assert_int_equal(rt_dataset_row(d).d[0], 100000);
    rt_dataset_destroy(&d);
    rt_str_deinit(&t);
}

static void test_uci(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t rows, test, features;
    } sets[] = {{"yacht", 308, 31, 6},
                {"bostonHousing", 506, 51, 13},
                {"kin8nm", 8192, 819, 8},
                {"naval-propulsion-plant", 11934, 1193, 16}};
    const char *dir = shared_data("uci");
    if (dir == NULL)
        skip();
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        char spec[1400];
        snprintf(spec, sizeof spec, "csv:%s/%s.csv,splits=%s/%s.splits,split=19", dir, sets[i].name, dir,
                 sets[i].name);
        rt_dataset *d = NULL;
        assert_ok(rt_dataset_open(&d, spec, (rt_data_options){.seed = 0}));
        assert_int_equal(rt_dataset_test(d)->n, sets[i].test);
        assert_int_equal(rt_dataset_train(d)->n, sets[i].rows - sets[i].test);
        assert_int_equal(rt_dataset_row(d).d[0], sets[i].features);
        if (i == 3) { /* columns 8 and 11 are constant */
            const rt_subset all = rt_subset_all(rt_dataset_train(d));
            double mean[16], std[16], ty, sy;
            rt_subset_moments(&all, rt_dataset_row(d), mean, std, &ty, &sy);
            assert_true(std[8] == 1 && std[11] == 1);
            assert_close(sy, 0.01472, 2e-4);
        }
        rt_dataset_destroy(&d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_quotes_count_lines),
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_uci),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
