/*
 * test_assess.c - merging into metrics.json, requirements, paths, tables; and an assessment of a small network,
 * saved and read again.
 */
#include "assess/assess.h"
#include "assess/calibrate.h"
#include "base/alloc.h"
#include "base/file.h"
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- merging ---- */

static void test_merge(void **state) {
    (void)state;
    static const struct {
        const char *text, *want; /* want NULL: refused */
    } cases[] = {
        {"", "{\n  \"evaluation\": {\"new\":1}\n}\n"},
        {"{}", "{\n  \"evaluation\": {\"new\":1}\n}"},
        {" { } \n", " {\n  \"evaluation\": {\"new\":1}\n} \n"},
        {"{\"a\": 1.50}", "{\"a\": 1.50,\n  \"evaluation\": {\"new\":1}\n}"},
        {"{\n  \"a\": 1e2,\n  \"b\": [1, \"}\"]\n}\n",
         "{\n  \"a\": 1e2,\n  \"b\": [1, \"}\"],\n  \"evaluation\": {\"new\":1}\n}\n"},
        {"{\"evaluation\": {\"old\": [1, {\"x\": \"\\\"}\"}]}, \"z\": null}",
         "{\"evaluation\": {\"new\":1}, \"z\": null}"},
        {"{\"a\":-0.5,\"evaluation\":3}", "{\"a\":-0.5,\"evaluation\":{\"new\":1}}"},
        {"{\"a\":{\"evaluation\":3},\"b\":true }",
         "{\"a\":{\"evaluation\":3},\"b\":true,\n  \"evaluation\": {\"new\":1} }"},
        {"{\"\\u0065valuation\":\"x\"}", "{\"\\u0065valuation\":{\"new\":1}}"},
        {"[1]", NULL},
        {"3", NULL},
        {"{\"a\":1", NULL},
        {"{\"a\":1,\"a\":2}", NULL},
    };
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        rt_str out;
        rt_str_init(&out);
        const rt_status st = rt_metrics_merge(cases[i].text, strlen(cases[i].text), "metrics.json",
                                              "evaluation", "{\"new\":1}", &out);
        if (cases[i].want) {
            assert_int_equal(st, RT_OK);
            assert_string_equal(rt_str_text(&out), cases[i].want);
        } else {
            assert_int_equal(st, RT_E_INPUT);
            assert_non_null(strstr(rt_error_text(), "metrics.json"));
        }
        rt_str_deinit(&out);
    }
}

/* ---- requirements ---- */

static void test_parse_requirement(void **state) {
    (void)state;
    static const struct {
        const char *text, *path; /* path NULL: refused */
        rt_require_op op;
        double bound;
    } cases[] = {
        {"ece<0.03", "ece", RT_REQUIRE_LT, 0.03},
        {"test.nll_calibrated<=1", "test.nll_calibrated", RT_REQUIRE_LE, 1},
        {" ood:digits.auroc.entropy >= .9 ", "ood:digits.auroc.entropy", RT_REQUIRE_GE, 0.9},
        {"accuracy>-1e-3", "accuracy", RT_REQUIRE_GT, -1e-3},
        {"ece", NULL, RT_REQUIRE_LT, 0},
        {"ece=0.1", NULL, RT_REQUIRE_LT, 0},
        {"<0.1", NULL, RT_REQUIRE_LT, 0},
        {"ece<", NULL, RT_REQUIRE_LT, 0},
        {"ece<x", NULL, RT_REQUIRE_LT, 0},
        {"ece<nan", NULL, RT_REQUIRE_LT, 0},
        {"ece<0.1<0.2", NULL, RT_REQUIRE_LT, 0},
        {"accurcy>0", NULL, RT_REQUIRE_LT, 0},
        {"flops<1e9", "flops", RT_REQUIRE_LT, 1e9},
    };
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        rt_requirement r;
        const rt_status st = rt_requirement_parse(&r, cases[i].text);
        if (!cases[i].path) {
            assert_int_equal(st, RT_E_USAGE);
            assert_non_null(strstr(rt_error_text(), "--require"));
            continue;
        }
        assert_int_equal(st, RT_OK);
        assert_string_equal(r.path, cases[i].path);
        assert_int_equal(r.op, cases[i].op);
        assert_true(r.bound == cases[i].bound);
    }
}

/* ---- trees ---- */

static const char TEACHER[] =
    "{\"epochs\":3,\"evaluation\":{\"run\":\"runs/"
    "teacher\",\"arch\":\"mlp:8\",\"student\":\"single\",\"method\":\"train\","
    "\"task\":\"classification\",\"members\":4,\"parameters\":1200000,\"flops\":2400000,\"training_seconds\":"
    "null,"
    "\"infer_seconds\":0.5,\"sets\":{\"test\":{\"rows\":100,\"accuracy\":0.9,\"nll\":0.30001,\"brier\":0.2,"
    "\"ece\":0.05,"
    "\"entropy\":0.4,\"temperature\":null,\"temperature_reason\":\"no validation rows\","
    "\"interval\":{\"accuracy\":[0.88,0.92]},\"single\":{\"accuracy\":0.85}},"
    "\"ood:far_1\":{\"rows\":50,\"auroc\":{\"entropy\":0.7,\"confidence\":0.6}},"
    "\"shift:roll\":{\"severity\":[2,4],\"accuracy\":[0.8,0.7],\"nll\":[0.5,null]}}}}";
static const char STUDENT[] =
    "{\"evaluation\":{\"run\":\"runs/a_student\",\"arch\":\"mlp:8\",\"student\":\"single\",\"method\":\"kd\","
    "\"task\":\"classification\",\"members\":1,\"parameters\":300000,\"flops\":600000,\"infer_seconds\":0.1,"
    "\"sets\":{\"test\":{\"rows\":100,\"accuracy\":0.85,\"nll\":0.30002,\"brier\":0.25,\"ece\":0.04,"
    "\"entropy\":0.3},"
    "\"ood:far_1\":{\"rows\":50,\"auroc\":{\"entropy\":0.8,\"confidence\":0.6}},"
    "\"shift:roll\":{\"severity\":[2,4],\"accuracy\":[0.7,0.75],\"nll\":[0.5,0.75]}}}}";

static rt_assessment *decode(const char *text) {
    rt_assessment *a;
    assert_int_equal(rt_assessment_decode(&a, text, strlen(text), "metrics.json"), RT_OK);
    assert_non_null(a);
    return a;
}

static void test_paths(void **state) {
    (void)state;
    static const struct {
        const char *path;
        bool found;
        double value;
        const char *reason;
    } cases[] = {
        {"accuracy", true, 0.9, NULL},
        {"test.accuracy", true, 0.9, NULL},
        {"test.single.accuracy", true, 0.85, NULL},
        {"single.accuracy", true, 0.85, NULL},
        {"ood:far_1.auroc.entropy", true, 0.7, NULL},
        {"shift:roll.accuracy.1", true, 0.7, NULL},
        {"shift:roll.nll.1", true, NAN, NULL},
        {"parameters", true, 1200000, NULL},
        {"temperature", true, NAN, "no validation rows"},
        {"shift:roll.accuracy", false, NAN, NULL},
        {"shift:roll.accuracy.2", false, NAN, NULL},
        {"ood:far_1", false, NAN, NULL},
        {"arch", false, NAN, NULL},
        {"accurcy", false, NAN, NULL},
        {"", false, NAN, NULL},
        {"test.", false, NAN, NULL},
    };
    rt_assessment *a = decode(TEACHER), *none;
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        double v;
        const char *reason;
        assert_int_equal(rt_assessment_value(a, cases[i].path, &v, &reason), cases[i].found);
        assert_true(isnan(cases[i].value) ? isnan(v) : v == cases[i].value);
        if (cases[i].reason)
            assert_string_equal(reason, cases[i].reason);
    }
    double lo, hi;
    assert_true(rt_assessment_interval(a, "test.accuracy", &lo, &hi));
    assert_true(lo == 0.88 && hi == 0.92);
    assert_false(rt_assessment_interval(a, "nll", &lo, &hi));
    rt_assessment_destroy(&a);
    assert_int_equal(rt_assessment_decode(&none, "{\"epochs\":3}", 12, "metrics.json"), RT_OK);
    assert_null(none);
    assert_int_equal(rt_assessment_decode(&none, "{", 1, "metrics.json"), RT_E_INPUT);
}

/* Assessments that are none: refused, not looked into. */
static void test_decode_form(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *says; /* says: NULL if it is fine */
    } cases[] = {
        {"without sets", "{\"evaluation\":{\"run\":\"r\"}}", NULL},
        {"a list", "{\"evaluation\":[1,2]}", "'evaluation' must be an object"},
        {"a text", "{\"evaluation\":\"none\"}", "'evaluation' must be an object"},
        {"a list of sets", "{\"evaluation\":{\"sets\":[1,2]}}", "'sets' must be an object"},
        {"sets in words", "{\"evaluation\":{\"sets\":\"test\"}}", "'sets' must be an object"},
    };
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        const rt_table_options o = {.format = RT_TABLE_TEXT};
        rt_assessment *a = NULL;
        rt_str out;
        rt_str_init(&out);
        rt_status st = rt_assessment_decode(&a, cases[i].text, strlen(cases[i].text), "metrics.json");
        if (st == RT_OK)
            st = rt_assess_tables(&a, 1, &o, &out);
        if (!cases[i].says && st != RT_OK)
            fail_msg("%s: %s", cases[i].name, rt_error_text());
        if (cases[i].says && (st != RT_E_INPUT || !strstr(rt_error_text(), cases[i].says) ||
                              !strstr(rt_error_text(), "metrics.json")))
            fail_msg("%s: %s: '%s' does not say '%s'", cases[i].name, rt_status_name(st), rt_error_text(),
                     cases[i].says);
        rt_str_deinit(&out);
        rt_assessment_destroy(&a);
    }
}

static void test_check_requirement(void **state) {
    (void)state;
    static const struct {
        const char *text, *want; /* want: part of the failure, "" if it holds, NULL for a usage error */
    } cases[] = {
        {"accuracy>=0.9", ""},
        {"accuracy>0.9", "runs/teacher: accuracy is 0.9, required > 0.9"},
        {"ece<=0.05", ""},
        {"ece<0.05", "required < 0.05"},
        {"ood:far_1.auroc.entropy>0.75", "ood:far_1.auroc.entropy is 0.7"},
        {"temperature<9", "no validation rows"},
        {"test.sharpness>0", NULL},
    };
    rt_assessment *a = decode(TEACHER);
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        rt_requirement r;
        rt_str failures;
        int failed = 0;
        rt_str_init(&failures);
        assert_int_equal(rt_requirement_parse(&r, cases[i].text), RT_OK);
        const rt_status st = rt_requirement_check(&r, a, &failures, &failed);
        assert_int_equal(st, cases[i].want ? RT_OK : RT_E_USAGE);
        if (!cases[i].want)
            assert_non_null(strstr(rt_error_text(), "no number 'test.sharpness'"));
        else
            assert_non_null(strstr(rt_str_text(&failures), cases[i].want));
        assert_int_equal(failed, cases[i].want && *cases[i].want ? 1 : 0);
        rt_str_deinit(&failures);
    }
    rt_assessment_destroy(&a);
}

/* ---- tables ---- */

static void check_table(rt_table_options o, const char *const *want, int64_t n) {
    rt_assessment *runs[] = {decode(TEACHER), decode(STUDENT)};
    rt_str out;
    rt_str_init(&out);
    assert_int_equal(rt_assess_tables(runs, 2, &o, &out), RT_OK);
    for (int64_t i = 0; i < n; i++)
        if (!strstr(rt_str_text(&out), want[i]))
            fail_msg("'%s' is not in:\n%s", want[i], rt_str_text(&out));
    rt_str_deinit(&out);
    rt_assessment_destroy(&runs[0]);
    rt_assessment_destroy(&runs[1]);
}

static void test_tables(void **state) {
    (void)state;
    static const char *const text[] = {
        "run             M", /* no column of a metric that no run has */
        "runs/teacher    4  0.9000* 0.3000  0.0500",
        "\n  each alone       0.8500\n",
        "runs/a_student  1  0.8500  0.3000  0.0400*", /* equal as printed: no mark */
        "ood:far_1, 50 rows: AUROC by measure\n",
        "shift:roll: accuracy by amount\n",
        "runs/teacher    0.800* 0.700\n",
        "runs/a_student  0.500  0.750",
    };
    static const char *const wide[] = {"runs/teacher    4  0.9000+-0.0200*"};
    static const char *const markdown[] = {"| run | M | acc |", "|:---|---:|",
                                           "| runs/teacher | 4 | **0.9000 \xc2\xb1 0.0200** |",
                                           "| runs/a\\_student | 1 | 0.8500 |", " **300k** | **600k** |"};
    static const char *const latex[] = {"\\begin{tabular}{lrr", "\\textbf{0.9000} $\\pm$ 0.0200",
                                        "runs/a\\_student & 1", "\\end{tabular}"};
    static const char *const csv[] = {"run,task,arch,student,method,members,parameters,flops,",
                                      ",test.accuracy,test.accuracy.lo,test.accuracy.hi,test.nll,",
                                      ",ood:far_1.auroc.entropy",
                                      "\nruns/a_student,classification,mlp:8,single,kd,1,300000,600000,"};
    check_table((rt_table_options){.width = 80}, text, RT_COUNT(text));
    check_table((rt_table_options){.width = 0}, wide, RT_COUNT(wide));
    check_table((rt_table_options){.format = RT_TABLE_MARKDOWN}, markdown, RT_COUNT(markdown));
    check_table((rt_table_options){.format = RT_TABLE_LATEX}, latex, RT_COUNT(latex));
    check_table((rt_table_options){.format = RT_TABLE_CSV}, csv, RT_COUNT(csv));
}

static void test_columns(void **state) {
    (void)state;
    rt_assessment *runs[] = {decode(TEACHER), decode(STUDENT)};
    rt_str out;
    rt_str_init(&out);
    rt_table_options o = {.metrics = "ece,ood:far_1.auroc.entropy,flops"};
    assert_int_equal(rt_assess_tables(runs, 2, &o, &out), RT_OK);
    assert_non_null(strstr(rt_str_text(&out), "ece"));
    assert_non_null(strstr(rt_str_text(&out), "0.8000*"));
    assert_null(strstr(rt_str_text(&out), "brier"));
    o.metrics = "ece,nlll";
    assert_int_equal(rt_assess_tables(runs, 2, &o, &out), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "did you mean 'nll'"));
    rt_str_deinit(&out);
    rt_assessment_destroy(&runs[0]);
    rt_assessment_destroy(&runs[1]);
}

/* ---- a run ---- */

static void train_tiny(const char *dir, const char *data, const char *epochs) {
    const char *const settings[][2] = {{"arch", "mlp:6"}, {"epochs", epochs}, {"members", "2"},
                                       {"batch", "16"},   {"threads", "1"},   {"valid", "20"}};
    rt_config c;
    rt_train_result r;
    assert_int_equal(rt_config_init(&c), RT_OK);
    assert_int_equal(rt_config_set(&c, RT_VERB_TRAIN, "data", data, "test", false), RT_OK);
    assert_int_equal(rt_config_set(&c, RT_VERB_TRAIN, "out", dir, "test", false), RT_OK);
    for (int64_t i = 0; i < RT_COUNT(settings); i++)
        assert_int_equal(rt_config_set(&c, RT_VERB_TRAIN, settings[i][0], settings[i][1], "test", false),
                         RT_OK);
    assert_int_equal(rt_train_run(&c, NULL, &r), RT_OK);
    rt_config_deinit(&c);
}

static void assess_tiny(const char *dir, int threads) {
    rt_pool *pool;
    rt_assessment *a = NULL, *again = NULL;
    double one, other;
    assert_int_equal(rt_pool_create(&pool, threads), RT_OK);
    rt_assess_options o = {.data = "spiral:n=40",
                           .seed = 1,
                           .ood = "far=spiral:n=20,noise=4\nring=spiral:n=10",
                           .bootstrap = 20,
                           .against = dir,
                           .curves = true,
                           .pictures = true};
    assert_int_equal(rt_assess_run(&o, &dir, 1, pool, &a), RT_OK);
    assert_int_equal(rt_assessment_save(a), RT_OK);
    assert_int_equal(rt_assessment_read(&again, dir), RT_OK);
    static const char *const paths[] = {
        "nll",        "temperature", "ood:far.auroc.entropy",
        "against.kl", "parameters",  "test.misclassification.auroc.mutual_information"};
    for (int64_t i = 0; i < RT_COUNT(paths); i++) {
        assert_true(rt_assessment_value(a, paths[i], &one, NULL) && isfinite(one));
        assert_true(rt_assessment_value(again, paths[i], &other, NULL) && one == other);
    }
    assert_true(rt_assessment_value(a, "against.agreement", &one, NULL) && one == 1);
    assert_string_equal(rt_assessment_info(again)->arch, "mlp:6");
    rt_assessment_destroy(&again);
    rt_assessment_destroy(&a);
    rt_pool_destroy(&pool);
}

static void test_run(void **state) {
    (void)state;
    char root[] = "/tmp/rt-assess-XXXXXX", dir[64], command[96];
    double values[2];
    assert_non_null(mkdtemp(root));
    snprintf(dir, sizeof dir, "%s/run", root);
    train_tiny(dir, "spiral:n=40", "1");
    for (int threads = 1; threads <= 2; threads++) {
        rt_assessment *a;
        assess_tiny(dir, threads);
        assert_int_equal(rt_assessment_read(&a, dir), RT_OK);
        double lo, hi;
        assert_true(rt_assessment_interval(a, "nll", &lo, &hi));
        values[threads - 1] = lo + hi;
        rt_assessment_destroy(&a);
    }
    assert_true(values[0] == values[1]); /* whatever the threads */
    /* training still knows the run as finished */
    rt_run_state run;
    assert_int_equal(rt_run_dir_state(dir, &run), RT_OK);
    assert_int_equal(run, RT_RUN_FINISHED);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

/* ---- a temperature ---- */

static double fitted(const char *dir, const char *data, rt_pool *pool) {
    rt_assessment *a;
    double tau;
    const rt_assess_options o = {.data = data};
    assert_int_equal(rt_assess_run(&o, &dir, 1, pool, &a), RT_OK);
    assert_true(rt_assessment_value(a, "temperature", &tau, NULL));
    rt_assessment_destroy(&a);
    return tau;
}

/* `calibrate` and `eval` fit one temperature to the rows a run held out, at a border and inside. */
static void test_one_temperature(void **state) {
    (void)state;
    static const struct {
        const char *data, *epochs;
    } cases[] = {{"spiral:n=60", "1"}, {"spiral:n=200,noise=0.5", "40"}};
    char root[] = "/tmp/rt-assess-XXXXXX", dir[64], command[96];
    rt_pool *pool;
    assert_non_null(mkdtemp(root));
    assert_int_equal(rt_pool_create(&pool, 1), RT_OK);
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        rt_calibration c;
        snprintf(dir, sizeof dir, "%s/%d", root, (int)i);
        train_tiny(dir, cases[i].data, cases[i].epochs);
        const rt_calibrate_options o = {.run = dir, .dry = true, .pool = pool};
        assert_int_equal(rt_calibrate(&c, &o), RT_OK);
        const double tau = c.decision.temperature, want = fitted(dir, cases[i].data, pool);
        rt_calibration_deinit(&c);
        if (tau != want)
            fail_msg("case %d: calibrate says %.17g, eval %.17g", (int)i, tau, want);
    }
    rt_pool_destroy(&pool);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_parse_requirement),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_decode_form),
        cmocka_unit_test(test_check_requirement),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_one_temperature),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
