/*
 * test_metrics_golden.c - every metric, AUROC and AUPR of every measure, and the temperature against the
 * numbers of NumPy and SciPy in metrics.txt (metrics.py wrote them). A key of a case that names a metric is
 * compared with it; "auroc:MEASURE" with the ranking of errors by that measure.
 */
#include "golden/golden_read.h"
#include "unit/eval/eval_case.h"

enum { ROWS = 128 };

static void to_float(float *out, const double *v, int n) {
    for (int i = 0; i < n; i++)
        out[i] = (float)v[i];
}

static void compare(const golden_case *c, const char *key, double got, double tol) {
    const double want = *golden_get(c, key, 1);
    if (!(fabs(got - want) <= tol * fmax(1, fabs(want))))
        fail_msg("case %s, line %d: %s is %.15g, wanted %.15g", c->name, c->line, key, got, want);
}

/* Keys that are names of metrics; the minimum of the NLL is flat, so the temperature and what follows from it
 * have half the digits. */
static int compare_metrics(const golden_case *c, const rt_eval_input *in) {
    int compared = 0;
    for (int k = 0; k < c->nkeys; k++) {
        const char *name = c->key[k].name;
        if (rt_metric_find(name, rt_eval_regression(in)) < 0)
            continue;
        const bool fitted = strcmp(name, "temperature") == 0 || strcmp(name, "ece_calibrated") == 0;
        compare(c, name, metric(in, name), fitted ? 1e-6 : 1e-11);
        compared++;
    }
    return compared;
}

static void compare_rankings(const golden_case *c, const rt_eval_input *in) {
    static double out[RT_MEASURES_MAX * ROWS];
    const char *why[RT_MEASURES_MAX];
    int32_t top[ROWS];
    uint8_t wrong[ROWS];
    assert_int_equal(rt_eval_measures(in, out, why), RT_OK);
    assert_int_equal(rt_eval_classes(in, top), RT_OK);
    for (int64_t i = 0; i < in->n; i++)
        wrong[i] = top[i] != in->label[i];
    const rt_measure_info *info;
    const int measures = rt_measure_list(&info);
    for (int j = 0; j < measures; j++) {
        char auroc[GOLDEN_NAME], aupr[GOLDEN_NAME];
        rt_ranking r;
        snprintf(auroc, sizeof auroc, "auroc:%s", info[j].name);
        snprintf(aupr, sizeof aupr, "aupr:%s", info[j].name);
        assert_int_equal(golden_get(c, auroc, 1) != NULL, why[j] == NULL);
        if (why[j])
            continue;
        assert_int_equal(rt_eval_ranking(out + j * in->n, wrong, in->n, &r), RT_OK);
        compare(c, auroc, r.auroc, 1e-12);
        compare(c, aupr, r.aupr, 1e-12);
    }
}

static void classification(const golden_case *c) {
    static float logits[GOLDEN_NUMBERS];
    int32_t label[ROWS];
    const char *why;
    const double *shape = golden_get(c, "shape", 4);
    const int n = (int)shape[0], m = (int)shape[1], k = (int)shape[2];
    assert_in_range(n, 1, ROWS);
    to_float(logits, golden_get(c, "logits", n * m * k), n * m * k);
    for (int i = 0; i < n; i++)
        label[i] = (int32_t)golden_get(c, "label", n)[i];
    rt_eval_input in = {.n = n, .how = {.m = m, .k = k}, .y = logits, .label = label};
    in.how.kind = shape[3] >= 0 ? RT_OUTPUT_DIRICHLET : RT_OUTPUT_LOGITS;
    in.how.offset = RT_MAX(shape[3], 0.0);
    assert_int_equal(rt_eval_temperature(&in, &in.temperature, &why), RT_OK);
    assert_null(why);
    assert_in_range(compare_metrics(c, &in), 10, 16);
    compare_rankings(c, &in);
}

static void regression(const golden_case *c) {
    static float y[2 * GOLDEN_NUMBERS], target[ROWS];
    const double *shape = golden_get(c, "shape", 4);
    const int n = (int)shape[0], m = (int)shape[1];
    double coverage[RT_INTERVAL_LEVELS];
    assert_in_range(n, 1, ROWS);
    for (int i = 0; i < n * m; i++) {
        y[2 * i] = (float)golden_get(c, "mu", n * m)[i];
        y[2 * i + 1] = (float)golden_get(c, "var", n * m)[i];
    }
    to_float(target, golden_get(c, "target", n), n);
    const rt_reading how = {.kind = RT_OUTPUT_GAUSSIAN, .m = m, .k = 2};
    const rt_eval_input in = {.how = how, .n = n, .y = y, .target = target};
    assert_int_equal(compare_metrics(c, &in), 6);
    assert_int_equal(rt_eval_coverage(&in, rt_interval_levels, RT_INTERVAL_LEVELS, coverage), RT_OK);
    for (int l = 0; l < RT_INTERVAL_LEVELS; l++)
        near(coverage[l], golden_get(c, "coverage", RT_INTERVAL_LEVELS)[l], 1e-12);
}

static void ties(const golden_case *c) {
    enum { TIES = 80 };
    uint8_t positive[TIES];
    rt_ranking r;
    for (int i = 0; i < TIES; i++)
        positive[i] = golden_get(c, "positive", TIES)[i] != 0;
    assert_int_equal(rt_eval_ranking(golden_get(c, "score", TIES), positive, TIES, &r), RT_OK);
    compare(c, "auroc", r.auroc, 1e-14);
    compare(c, "aupr", r.aupr, 1e-14);
}

static void all_cases(void **state) {
    (void)state;
    static golden_case c;
    FILE *f = golden_open("metrics.txt");
    int line = 0, cases = 0;
    while (golden_next(&c, f, &line)) {
        cases++;
        if (strcmp(c.name, "classification") == 0)
            classification(&c);
        else if (strcmp(c.name, "regression") == 0)
            regression(&c);
        else
            ties(&c);
    }
    fclose(f);
    assert_int_equal(cases, 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
