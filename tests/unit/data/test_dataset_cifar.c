/* CIFAR records: whole sets, single files, packing, names; and the real CIFAR-10 and SVHN when present. */
#include "unit/data/data_support.h"

enum { RECORD = 3073 };

static uint8_t *make_records(size_t rows, size_t labels, int first_label) {
    uint8_t *p = malloc(rows * (labels + 3072));
    assert_non_null(p);
    for (size_t r = 0; r < rows; r++) {
        uint8_t *at = p + r * (labels + 3072);
        at[0] = at[labels - 1] = (uint8_t)(first_label + (int)r);
        for (size_t i = 0; i < 3072; i++)
            at[labels + i] = (uint8_t)(i * 3 + r);
    }
    return p;
}

static void write_records(scratch *s, const char *name, size_t rows, size_t labels, int first_label) {
    uint8_t *p = make_records(rows, labels, first_label), *packed = NULL;
    size_t n = rows * (labels + 3072), packed_n = 0;
    if (rt_str_ends(name, ".xz"))
        packed = pack_xz(p, n, &packed_n);
    else if (rt_str_ends(name, ".gz"))
        packed = pack_gzip(p, n, &packed_n);
    scratch_write(s, name, packed ? packed : p, packed ? packed_n : n);
    free(p);
    free(packed);
}

static void test_whole_set(void **state) {
    (void)state;
    scratch s;
    scratch_make(&s);
    static const char *const train[] = {"data_batch_1.bin", "data_batch_2.bin.xz", "data_batch_3.bin.gz",
                                        "data_batch_4.bin", "data_batch_5.bin"};
    for (int i = 0; i < 5; i++)
        write_records(&s, train[i], 2, 1, 2 * i);
    write_records(&s, "test_batch.bin", 3, 1, 5);
    scratch_text(&s, "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
    rt_dataset *d = NULL;
    assert_ok(open_with(&d, "cifar10", s.dir, "", (rt_data_options){.seed = 0}));
    assert_int_equal(rt_dataset_train(d)->n, 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(rt_dataset_train(d)->label[i], i);
    assert_int_equal(rt_dataset_train(d)->u8[9 * 3072 + 5], 16);
    assert_int_equal(rt_dataset_test(d)->n, 3);
    assert_string_equal(rt_dataset_class_name(d, 9), "j");
    rt_dataset_destroy(&d);
    assert_ok(open_with(&d, "cifar10", s.dir, "", (rt_data_options){.limit = 3}));
    assert_int_equal(rt_dataset_train(d)->n, 3);
    assert_int_equal(rt_dataset_train(d)->label[2], 2);
    rt_dataset_destroy(&d);
    scratch_text(&s, "batches.meta.txt", "a\nb\n");
    assert_int_equal(open_with(&d, "cifar10", s.dir, "", (rt_data_options){.seed = 0}), RT_E_INPUT);
    unlink(scratch_path(&s, "batches.meta.txt"));
    unlink(scratch_path(&s, "data_batch_4.bin"));
    assert_int_equal(open_with(&d, "cifar10", s.dir, "", (rt_data_options){.seed = 0}), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "data_batch_4.bin is missing"));
    scratch_remove(&s);
}

static void test_one_file(void **state) {
    (void)state;
    scratch s;
    scratch_make(&s);
    write_records(&s, "other.bin.xz", 4, 1, 0);
    rt_dataset *d = NULL;
    assert_ok(open_with(&d, "cifar10", s.dir, "", (rt_data_options){.seed = 0}));
    assert_int_equal(rt_dataset_train(d)->n, 0);
    assert_int_equal(rt_dataset_test(d)->n, 4);
    rt_dataset_destroy(&d);
    assert_ok(open_with(&d, "cifar10", scratch_path(&s, "other.bin.xz"), "", (rt_data_options){.seed = 0}));
    assert_int_equal(rt_dataset_test(d)->n, 4);
    rt_dataset_destroy(&d);
    write_records(&s, "more.bin", 1, 1, 0);
    assert_int_equal(open_with(&d, "cifar10", s.dir, "", (rt_data_options){.seed = 0}), RT_E_INPUT);
    scratch_remove(&s);
}

static void test_fine_labels(void **state) {
    (void)state;
    scratch s;
    scratch_make(&s);
    write_records(&s, "train.bin", 2, 2, 98);
    write_records(&s, "test.bin", 1, 2, 7);
    rt_dataset *d = NULL;
    assert_ok(open_with(&d, "cifar100", s.dir, "", (rt_data_options){.seed = 0}));
    assert_int_equal(rt_dataset_train(d)->label[1], 99);
    assert_int_equal(rt_dataset_classes(d), 100);
    assert_int_equal(rt_dataset_test(d)->u8[4], 12);
    rt_dataset_destroy(&d);
    scratch_remove(&s);
}

static void test_sizes_and_labels(void **state) {
    (void)state;
    scratch s;
    scratch_make(&s);
    uint8_t *p = make_records(3, 1, 0);
    static const struct {
        size_t n;
        int label;
        rt_status want;
    } cases[] = {{2 * RECORD, 9, RT_OK}, {2 * RECORD - 1, 9, RT_E_INPUT}, {2 * RECORD + 1, 9, RT_E_INPUT},
                 {0, 9, RT_E_INPUT},     {2 * RECORD, 10, RT_E_INPUT},    {2 * RECORD, 255, RT_E_INPUT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        p[RECORD] = (uint8_t)cases[i].label;
        scratch_write(&s, "a.bin", p, cases[i].n);
        char spec[600];
        snprintf(spec, sizeof spec, "cifar10:%s/a.bin", s.dir);
        assert_int_equal(try_open(spec), cases[i].want);
    }
    assert_non_null(strstr(rt_error_text(), "label 255 of record 1"));
    free(p);
    scratch_remove(&s);
}

static void test_real(void **state) {
    (void)state;
    const char *dir = shared_data("cifar10");
    rt_dataset *d = NULL;
    if (dir == NULL)
        skip();
    assert_ok(open_with(&d, "cifar10", dir, "", (rt_data_options){.test_only = true}));
    assert_int_equal(rt_dataset_test(d)->n, 10000);
    assert_int_equal(rt_dataset_train(d)->n, 0);
    assert_string_equal(rt_dataset_class_name(d, 3), "cat");
    assert_int_equal(rt_dataset_test(d)->label[0], 3);
    int count[10] = {0};
    for (int i = 0; i < 10000; i++)
        count[rt_dataset_test(d)->label[i]]++;
    for (int k = 0; k < 10; k++)
        assert_int_equal(count[k], 1000);
    rt_dataset_destroy(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_set),   cmocka_unit_test(test_one_file),
        cmocka_unit_test(test_fine_labels), cmocka_unit_test(test_sizes_and_labels),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
