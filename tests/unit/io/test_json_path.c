/* Paths into a document: both spellings, keys that hold what stands between keys, elements, '*', nulls; and what is
 * meant by a path in metrics.json. */
#include "io/io.h"
#include "unit/io/io_support.h"

#include <string.h>

static const char text[] =
    "{\"seconds\": 7, \"average\": {\"scores\": {\"test\": {\"accuracy\": 0.5, \"interval\": {\"accuracy\": "
    "[0.4, 0.6]}}}},"
    " \"evaluation\": {\"flops\": 12, \"sets\": {"
    "   \"test\": {\"nll\": 0.25, \"nll_reason\": \"no\", \"temperature\": null, \"temperature_reason\": "
    "\"why\","
    "            \"interval\": {\"nll\": [0.2, 0.3]}, \"confusion\": [[1, 2], [3, 4]]},"
    "   \"ood:a\": {\"auroc\": {\"entropy\": null}},"
    "   \"ood:a.csv\": {\"auroc\": {\"entropy\": 0.75}, \"interval\": {\"auroc_entropy\": [0.7, 0.8]}},"
    "   \"ood:x/y*.npy\": {\"rows\": 9, \"rows_reason\": 1}}}}";

static rt_jdoc *doc;

static int setup(void **state) {
    (void)state;
    return rt_jdoc_parse(&doc, text, strlen(text), "t.json") != RT_OK;
}

static int teardown(void **state) {
    (void)state;
    rt_jdoc_destroy(&doc);
    return 0;
}

static double at(const char *path) {
    double v = -1;
    return rt_jval_f64(rt_jval_find(rt_jdoc_root(doc), path), &v) ? v : -1;
}

static void test_places(void **state) {
    (void)state;
    const rt_jval root = rt_jdoc_root(doc);
    assert_true(at("seconds") == 7);
    assert_true(at("evaluation/sets/test/nll") == 0.25 && at("evaluation.sets.test.nll") == 0.25);
    assert_true(at("evaluation.sets/test.nll") == 0.25);
    assert_true(at("evaluation.sets.test.confusion.1.0") == 3);
    assert_true(at("evaluation/sets/ood:a.csv/auroc/entropy") == 0.75);
    assert_true(at("evaluation.sets.ood:x/y*.npy.rows") == 9);
    assert_true(at("evaluation/sets/ood:a*/auroc/entropy") == 0.75); /* the other is null */
    assert_ptr_equal(rt_jval_find(root, ""), root);
    const rt_jval null = rt_jval_find(root, "evaluation/sets/ood:a/auroc/entropy");
    assert_true(null && rt_jval_is_null(null) && rt_jval_is_null(NULL) && !rt_jval_is_null(root));
    static const char *const absent[] = {"second",
                                         "seconds.0",
                                         "evaluation/sets/te",
                                         "evaluation.sets.test.confusion.2",
                                         "/seconds",
                                         "evaluation.sets.test.confusion.x",
                                         "evaluation.sets.test.confusion.-1"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        assert_null(rt_jval_find(root, absent[i]));
    assert_null(rt_jval_find(NULL, "seconds"));
}

typedef struct seen {
    int n;
    char keys[128];
} seen;

static bool look(void *user, rt_jval v, const char *star) {
    (void)v;
    seen *s = user;
    strcat(strcat(s->keys, star ? star : "-"), " ");
    return ++s->n == 3;
}

static void test_every_place(void **state) {
    (void)state;
    const rt_jval root = rt_jdoc_root(doc);
    seen s = {0};
    assert_false(rt_jval_walk(root, "evaluation/sets/ood:*/auroc/entropy", look, &s));
    assert_string_equal(s.keys, "ood:a ood:a.csv ");
    s = (seen){0};
    assert_false(rt_jval_walk(root, "evaluation/sets/ood:x/y*.npy/*", look, &s)); /* no reasons */
    assert_string_equal(s.keys, "rows ");
    s = (seen){0};
    assert_true(rt_jval_walk(root, "evaluation/sets/test/confusion/*/*", look, &s)); /* the third ends it */
    assert_string_equal(s.keys, "- - - ");
}

static void test_metrics(void **state) {
    (void)state;
    const rt_jval top = rt_jdoc_root(doc), evaluation = rt_jval_get(top, "evaluation");
    static const char *const nll[] = {"nll",
                                      "test.nll",
                                      "test/nll",
                                      "sets.test.nll",
                                      "/evaluation.sets.test.nll",
                                      "/evaluation/sets/test/nll"};
    double v, lo, hi;
    for (size_t i = 0; i < sizeof nll / sizeof *nll; i++) {
        assert_true(rt_jval_f64(rt_metrics_find(NULL, evaluation, nll[i]), &v) && v == 0.25);
        assert_true(rt_metrics_interval(NULL, evaluation, nll[i], &lo, &hi) && lo == 0.2 && hi == 0.3);
    }
    assert_true(rt_jval_f64(rt_metrics_find(top, evaluation, "flops"), &v) && v == 12);
    assert_true(rt_jval_f64(rt_metrics_find(top, NULL, "/seconds"), &v) && v == 7);
    assert_null(rt_metrics_find(top, evaluation, "seconds"));
    assert_null(rt_metrics_find(NULL, evaluation, "/seconds"));
    assert_true(rt_metrics_interval(top, NULL, "/average.scores.test.accuracy", &lo, &hi) && hi == 0.6);
    assert_true(rt_metrics_interval(top, evaluation, "ood:a.csv.auroc.entropy", &lo, &hi) && lo == 0.7);
    assert_false(rt_metrics_interval(top, evaluation, "flops", &lo, &hi));
    assert_false(rt_metrics_interval(top, evaluation, "ood:a.auroc.entropy", &lo, &hi));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_every_place),
                                       cmocka_unit_test(test_metrics)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
