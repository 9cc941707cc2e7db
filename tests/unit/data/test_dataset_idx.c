/* IDX directories: parts, packing, labels, classes; and the real MNIST and Fashion-MNIST when present. */
#include "unit/data/data_support.h"

static void test_parts(void **state) {
    (void)state;
    scratch s;
    scratch_make(&s);
    make_idx_part(&s, "t10k", 5);
    rt_dataset *d = NULL;
    assert_ok(open_with(&d, "idx", s.dir, "", (rt_data_options){.seed = 0}));
    assert_int_equal(rt_dataset_train(d)->n, 0);
    assert_int_equal(rt_dataset_test(d)->n, 5);
    assert_int_equal(rt_dataset_row(d).rank, 3);
    assert_int_equal(rt_dataset_row(d).d[1], 3);
    assert_int_equal(rt_dataset_test(d)->u8[1], 8);
    assert_int_equal(rt_dataset_test(d)->label[1], 8);
    assert_int_equal(rt_dataset_classes(d), 10); /* labels 1 8 5 2 9 */
    assert_string_equal(rt_dataset_class_name(d, 9), "9");
    assert_null(rt_dataset_class_name(d, 10));
    char hash[65];
    strcpy(hash, rt_dataset_hash(d));
    rt_dataset_destroy(&d);

    make_idx_part(&s, "train", 2);
    assert_ok(open_with(&d, "mnist", s.dir, "", (rt_data_options){.seed = 0}));
    assert_int_equal(rt_dataset_train(d)->n, 2);
    assert_int_equal(rt_dataset_test(d)->n, 5);
    assert_string_not_equal(hash, rt_dataset_hash(d));
    rt_dataset_destroy(&d);

    assert_ok(open_with(&d, "idx", s.dir, "", (rt_data_options){.test_only = true}));
    assert_int_equal(rt_dataset_train(d)->n, 0);
    assert_int_equal(rt_dataset_classes(d), 10);
    assert_string_equal(hash, rt_dataset_hash(d));
    rt_dataset_destroy(&d);

    assert_ok(open_with(&d, "idx", s.dir, ",classes=12", (rt_data_options){.limit = 1}));
    assert_int_equal(rt_dataset_train(d)->n, 1);
    assert_int_equal(rt_dataset_test(d)->n, 1);
    assert_int_equal(rt_dataset_classes(d), 12);
    rt_dataset_destroy(&d);

    unlink(scratch_path(&s, "t10k-images-idx3-ubyte"));
    assert_int_equal(open_with(&d, "idx", s.dir, "", (rt_data_options){.seed = 0}), RT_E_INPUT);
    unlink(scratch_path(&s, "t10k-labels-idx1-ubyte"));
    assert_ok(
        open_with(&d, "idx", s.dir, "",
                  (rt_data_options){.test_only = true})); /* only a training pair: it is the only part */
    assert_int_equal(rt_dataset_test(d)->n, 2);
    rt_dataset_destroy(&d);
    scratch_remove(&s);
}

static void test_packed(void **state) {
    (void)state;
    scratch s;
    scratch_make(&s);
    const uint32_t dims[] = {3, 2, 2, 2}, label_dims[] = {3};
    size_t n = 0, packed_n = 0;
    uint8_t *p = make_idx(dims, 4, 200, &n), *packed = pack_gzip(p, n, &packed_n);
    scratch_write(&s, "train-images-idx3-ubyte.gz", packed, packed_n);
    free(p);
    free(packed);
    p = make_idx(label_dims, 1, 3, &n);
    packed = pack_xz(p, n, &packed_n);
    scratch_write(&s, "train-labels-idx1-ubyte.xz", packed, packed_n);
    free(p);
    free(packed);
    rt_dataset *d = NULL;
    assert_ok(open_with(&d, "idx", s.dir, "", (rt_data_options){.seed = 0}));
    const rt_shape row = rt_dataset_row(d), want = rt_shape3(2, 2, 2);
    assert_true(rt_shape_equal(&row, &want));
    assert_int_equal(rt_dataset_train(d)->n, 3);
    assert_int_equal(rt_dataset_train(d)->u8[23], (23 * 7 + 1) % 200);
    assert_int_equal(rt_dataset_classes(d), 3);
    rt_dataset_destroy(&d);
    scratch_remove(&s);
}

static void test_mnist(void **state) {
    (void)state;
    const char *dir = shared_data("mnist");
    rt_dataset *d = NULL;
    if (dir == NULL)
        skip();
    assert_ok(open_with(&d, "mnist", dir, "", (rt_data_options){.seed = 0}));
    assert_int_equal(rt_dataset_train(d)->n, 60000);
    assert_int_equal(rt_dataset_test(d)->n, 10000);
    static const int first[] = {5, 0, 4, 1, 9, 2, 1, 3, 1, 4}, first_test[] = {7, 2, 1, 0, 4};
    for (int i = 0; i < 10; i++)
        assert_int_equal(rt_dataset_train(d)->label[i], first[i]);
    for (int i = 0; i < 5; i++)
        assert_int_equal(rt_dataset_test(d)->label[i], first_test[i]);
    const rt_subset all = rt_subset_all(rt_dataset_train(d));
    double mean, std;
    rt_subset_moments(&all, rt_dataset_row(d), &mean, &std, NULL, NULL);
    assert_close(mean, 0.1307, 1e-4);
    assert_close(std, 0.3081, 1e-4);
    rt_dataset_destroy(&d);
    dir = shared_data("ood/notmnist");
    assert_ok(open_with(&d, "idx", dir, "", (rt_data_options){.seed = 0}));
    assert_int_equal(rt_dataset_train(d)->n, 0);
    assert_int_equal(rt_dataset_test(d)->n, 10000);
    assert_int_equal(rt_dataset_classes(d), 10);
    rt_dataset_destroy(&d);
}

static void test_fashion(void **state) {
    (void)state;
    rt_dataset *d = NULL;
    if (!rt_dir_exists("/usr/share/datasets/fashion-mnist")) {
        assert_int_equal(try_open("fashion-mnist"), RT_E_INPUT);
        assert_non_null(strstr(rt_error_text(), "dataset-fashion-mnist"));
        print_message("skipped: package dataset-fashion-mnist is not installed\n");
        skip();
    }
    assert_ok(rt_dataset_open(&d, "fashion-mnist", (rt_data_options){.test_only = true}));
    assert_int_equal(rt_dataset_test(d)->n, 10000);
    assert_int_equal(rt_dataset_test(d)->label[0], 9);
    assert_string_equal(rt_dataset_class_name(d, 9), "Ankle boot");
    rt_dataset_destroy(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_mnist),
        cmocka_unit_test(test_fashion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
