/*
 * test_recipe_claims.c - the noise of numbers: which claims hold, which do not, and which nobody can tell; and what
 * measured.json has to do with it: commands that are known, runs that are not here, and the order they are run in.
 */
#include "recipe/recipe.h"
#include "base/alloc.h"
#include "unit/io/io_support.h"
#include <sys/stat.h>

SCRATCH_OF_GROUP(s)

static void make_dirs(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", s.dir, name);
    mkdir(path, 0777);
    strcat(path, "/quick");
    mkdir(path, 0777);
}

static void open_recipe(rt_recipe **r, const char *name) {
    char file[128];
    snprintf(file, sizeof file, "%s.yaml", name);
    assert_ok(rt_recipe_open(r, scratch_path(&s, file), (rt_recipe_options){.out = s.dir}));
}

static void results(const rt_recipe *r, rt_str *json, rt_str *markdown) {
    rt_str_init(json);
    rt_str_init(markdown);
    assert_ok(rt_recipe_results(r, json, markdown));
}

/* ---- claims, from kept means and deviations ---- */

static const char claims_yaml[] = "scales: {quick: {about: a}}\n"
                                  "stages: [{name: a, verb: train}]\n"
                                  "tables: [{id: t, columns: [{id: c, better: lower, rows: 10000}, {id: d, "
                                  "better: lower}, {id: p, scale: 100, rows: 10000}],\n"
                                  "  rows: [{id: low, runs: a}, {id: near, runs: a}, {id: high, runs: a}, "
                                  "{id: one, runs: a}], claims: [{text: claimed, holds: '%s'}]}]\n";
/* low 1.0 and near 1.1 with standard error 0.1 each (e = 0.141), high 2.0 with 0.2; of one run there is no deviation. */
static const char kept[] =
    "{\"about\": \"as it was\", \"tables\": {\"t\": {"
    "\"low\": {\"c\": {\"mean\": 1.0, \"deviation\": 0.2, \"runs\": 4}, \"d\": {\"mean\": 1.0, \"runs\": 1}, "
    "\"p\": {\"mean\": 50, \"runs\": 1}},"
    "\"near\": {\"c\": {\"mean\": 1.1, \"deviation\": 0.2, \"runs\": 4}, \"d\": {\"mean\": 2.0, \"runs\": "
    "1}, \"p\": {\"mean\": 51, \"runs\": 1}},"
    "\"high\": {\"c\": {\"mean\": 2.0, \"deviation\": 0.4, \"runs\": 4}, \"d\": {\"mean\": 3.0, "
    "\"deviation\": 0, \"runs\": 2}, \"p\": {\"mean\": 52, \"runs\": 1}},"
    "\"one\": {\"c\": {\"mean\": null, \"mean_reason\": \"not defined\", \"runs\": 0}, \"d\": {\"mean\": "
    "null, \"runs\": 0}}}}}";

static void test_claims(void **state) {
    (void)state;
    static const struct {
        const char *rule, *verdict;
    } cases[] = {
        {"low.c < high.c", "holds"},
        {"low.c > high.c", "does not hold"},
        {"low.c < near.c", "within noise"},
        {"near.c < low.c", "within noise"},
        {"near.c <= low.c", "within noise"},
        {"low.c < 1.25", "holds"},
        {"low.c < 1.15", "within noise"},
        {"low.c > 1.25", "does not hold"},
        {"1.25 > low.c", "holds"},
        {"high.d > 2.5", "holds"},
        {"high.d >= 3", "holds"},
        {"high.d > 3", "does not hold"},
        {"low.d < near.d", "noise not known"},
        {"lowest low.c", "within noise"},
        {"lowest high.c", "does not hold"},
        {"highest high.c", "holds"},
        {"lowest low.c of high", "holds"},
        {"lowest low.c of near, high", "within noise"},
        {"lowest near.c of low, high", "within noise"},
        /* 50 % against 51 % of 10,000 rows: 1 point, e = 0.71; against 52 %: 2 points */
        {"low.p < near.p", "within noise"},
        {"low.p < high.p", "holds"},
        {"one.c < low.c", "not known yet"},
    };
    make_dirs("claims");
    scratch_text(&s, "claims/quick/results.json", kept);
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        char text[2048], wanted[64];
        rt_recipe *r;
        rt_str json, markdown;
        snprintf(text, sizeof text, claims_yaml, cases[i].rule);
        scratch_text(&s, "claims.yaml", text);
        open_recipe(&r, "claims");
        results(r, &json, &markdown);
        snprintf(wanted, sizeof wanted, "\"verdict\": \"%s\"", cases[i].verdict);
        if (!strstr(rt_str_text(&json), wanted))
            fail_msg("%s: not '%s': %s", cases[i].rule, wanted, strstr(rt_str_text(&json), "\"verdict\""));
        assert_non_null(strstr(rt_str_text(&markdown), "Scale `quick`: as it was"));
        rt_str_deinit(&json);
        rt_str_deinit(&markdown);
        rt_recipe_destroy(&r);
    }
}

/* ---- measured.json ---- */

static const char measured_yaml[] = "order: seed\n"
                                    "scales: {quick: {about: a}}\n"
                                    "vars: {t_1: x, t_2: y, t_3: x}\n"
                                    "stages:\n"
                                    "  - {name: teacher, verb: train, turn: 9, each: {t: [x, y]}}\n"
                                    "  - {name: a, verb: distill, each: {seed: '1..3', t: '${t_${seed}}'}, "
                                    "with: {teacher: '@teacher', data: 'csv:${data}/a'}}\n"
                                    "  - {name: b, verb: distill, turn: 1, each: {seed: '1..3', t: "
                                    "'${t_${seed}}'}, with: {teacher: '@teacher'}}\n"
                                    "  - {name: clean, verb: eval, runs: ['@teacher', '@a', '@b']}\n"
                                    "  - {name: corrupt, verb: eval, runs: ['@a'], with: {limit: 10}}\n"
                                    "tables:\n"
                                    "  - id: t\n"
                                    "    columns: [{id: nll, value: sets.test.nll}, {id: c, value: "
                                    "sets.corrupt.nll}, {id: auroc, value: 'sets.ood:x.auroc.entropy'}]\n"
                                    "    rows: [{id: a, runs: a}, {id: b, runs: b}, {id: one, runs: a, "
                                    "where: {seed: 1}}, {id: teacher, runs: teacher, where: {t: x}},\n"
                                    "           {id: both, runs: teacher}]\n"
                                    "    claims: [{text: apart, holds: 'a.nll < b.nll'}, {text: in pairs, "
                                    "pair: seed, holds: 'a.nll < b.nll'},\n"
                                    "             {text: by interval, holds: 'one.auroc > 0.8'}, {text: not "
                                    "by interval, holds: 'one.auroc > 0.88'},\n"
                                    "             {text: of two, holds: 'both.auroc > 0.8'}]\n";

/* Lines of all commands but those whose names begin with `without`: numbers by seed, far apart, but b is 0.1 above a. */
static void write_measured(const char *without) {
    rt_recipe *r;
    rt_str out;
    open_recipe(&r, "measured");
    rt_str_init(&out);
    rt_str_append(&out, "{\"form\": 1, \"commands\": {");
    for (int i = 0, n = 0; i < rt_recipe_jobs(r); i++) {
        const rt_recipe_job *j = rt_recipe_job_get(r, i);
        const char *dot = strchr(j->name, '.'), *run = dot ? dot + 1 : j->name;
        if (*without && strstr(j->name, without))
            continue;
        const double seed = run[1] == '-' ? run[2] - '0' : 9, base = run[0] == 'b' ? 0.1 + seed / 100 : 0;
        rt_str_appendf(&out, "%s\n\"%s\": {\"key\": \"%s\", \"seconds\": 1.5", n++ ? "," : "", j->name,
                       j->key);
        if (strcmp(j->stage, "clean") == 0)
            rt_str_appendf(&out,
                           ", \"metrics\": {\"sets\": {\"test\": {\"nll\": %g}, \"ood:x\": {\"auroc\": "
                           "{\"entropy\": 0.9}, "
                           "\"interval\": {\"auroc_entropy\": [0.88, 0.92]}}}}",
                           seed + base);
        if (strcmp(j->stage, "corrupt") == 0)
            rt_str_appendf(&out,
                           ", \"metrics\": {\"sets\": {\"test\": {\"nll\": 77}, \"corrupt\": {\"nll\": %g}}}",
                           10 * seed);
        rt_str_append(&out, "}");
    }
    rt_str_append(&out, "\n}}\n");
    rt_recipe_destroy(&r);
    make_dirs("measured");
    scratch_text(&s, "measured/quick/measured.json", rt_str_text(&out));
    rt_str_deinit(&out);
}

static void test_measured(void **state) {
    (void)state;
    rt_recipe *r;
    rt_str json, markdown;
    scratch_text(&s, "measured.yaml", measured_yaml);
    write_measured("");
    open_recipe(&r, "measured");
    for (int i = 0; i < rt_recipe_jobs(r); i++)
        assert_true(rt_recipe_job_get(r, i)->done && !rt_recipe_job_get(r, i)->wanted);
    results(r, &json, &markdown);
    /* the first evaluation that has a number gives it; nll 1, 2, 3 and 1.11, 2.12, 3.13 */
    assert_non_null(
        strstr(rt_str_text(&markdown), "| 2.000 ± 1.000 | 20.000 ± 10.000 | 0.900 ± 0.000 | 3 |"));
    assert_non_null(strstr(rt_str_text(&markdown), "| 2.120 ± 1.010 |"));
    assert_non_null(strstr(rt_str_text(&markdown), "| 9.000 | - | 0.900 | 1 |"));
    assert_non_null(strstr(rt_str_text(&markdown), "**within noise:** apart (by 0.1200 ± 0.8206)"));
    assert_non_null(strstr(rt_str_text(&markdown), "**holds:** in pairs (by 0.1200 ± 0.0058)"));
    assert_non_null(strstr(rt_str_text(&markdown), "**holds:** by interval (by 0.1000 ± 0.0100, one run)"));
    assert_non_null(
        strstr(rt_str_text(&markdown), "**within noise:** not by interval (by 0.0200 ± 0.0100, one run)"));
    assert_non_null(strstr(rt_str_text(&markdown), "**holds:** of two (by 0.1000 ± 0.0000, two runs)"));
    rt_str_deinit(&json);
    rt_str_deinit(&markdown);
    rt_recipe_destroy(&r);
}

/* Runs are not here: a missing evaluation wants its run, and that its teacher, and nothing else. */
static void test_wanted(void **state) {
    (void)state;
    rt_recipe *r;
    rt_str names;
    scratch_text(&s, "measured.yaml", measured_yaml);
    write_measured("corrupt.a-2");
    open_recipe(&r, "measured");
    rt_str_init(&names);
    for (int i = 0; i < rt_recipe_jobs(r); i++)
        if (rt_recipe_job_get(r, i)->wanted)
            rt_str_appendf(&names, "%s ", rt_recipe_job_get(r, i)->name);
    assert_string_equal(rt_str_text(&names), "teacher-y a-2-y corrupt.a-2-y ");
    rt_str_deinit(&names);
    rt_recipe_destroy(&r);
}

/* By turn, evaluations behind their runs, teachers when they are needed: the second seed of a with the first of b. */
static void test_order(void **state) {
    (void)state;
    rt_recipe *r;
    rt_str names;
    scratch_text(&s, "measured.yaml", measured_yaml);
    open_recipe(&r, "measured");
    rt_str_init(&names);
    for (int i = 0; i < rt_recipe_jobs(r); i++)
        rt_str_appendf(&names, "%s ", rt_recipe_job_get(r, i)->name);
    assert_string_equal(rt_str_text(&names),
                        "teacher-x clean.teacher-x a-1-x clean.a-1-x corrupt.a-1-x "
                        "teacher-y clean.teacher-y a-2-y clean.a-2-y corrupt.a-2-y b-1-x clean.b-1-x "
                        "a-3-x clean.a-3-x corrupt.a-3-x b-2-y clean.b-2-y b-3-x clean.b-3-x ");
    rt_str_deinit(&names);
    rt_recipe_destroy(&r);
}

/* Where data and results are is no part of a key. */
static void test_keys(void **state) {
    (void)state;
    rt_recipe *a, *b;
    const char *path = scratch_path(&s, "measured.yaml");
    scratch_text(&s, "measured.yaml", measured_yaml);
    assert_ok(rt_recipe_open(&a, path, (rt_recipe_options){.out = s.dir}));
    assert_ok(rt_recipe_open(&b, path, (rt_recipe_options){.out = "elsewhere", .data_dir = "/my/data"}));
    for (int i = 0; i < rt_recipe_jobs(a); i++)
        assert_string_equal(rt_recipe_job_get(a, i)->key, rt_recipe_job_get(b, i)->key);
    const rt_recipe_job *j = rt_recipe_job_get(b, 2);
    assert_string_equal(j->argv[1], "--teacher=elsewhere/measured/quick/runs/teacher-x");
    assert_string_equal(j->argv[2], "--data=csv:/my/data/a");
    assert_string_equal(j->dir, "elsewhere/measured/quick/runs/a-1-x");
    rt_recipe_destroy(&a);
    rt_recipe_destroy(&b);
}

/* ---- without memory ---- */

static uint64_t calls, fail_at;

static bool fail_one(void *user, uint64_t call, size_t bytes) {
    (void)user;
    (void)call;
    (void)bytes;
    return calls++ != fail_at;
}

/* All that show and tables print, from a fresh start. */
static rt_status read_all(const char *path, rt_str *out) {
    rt_recipe *r = NULL;
    rt_str json;
    rt_str_init(&json);
    rt_status st = rt_recipe_open(&r, path, (rt_recipe_options){.out = s.dir});
    if (st == RT_OK) {
        for (int i = 0; i < rt_recipe_jobs(r); i++)
            for (int k = 0; k < rt_recipe_job_get(r, i)->argc; k++)
                rt_str_appendf(out, "%s ", rt_recipe_job_get(r, i)->argv[k]);
        st = rt_recipe_results(r, &json, out);
        if (st == RT_OK)
            st = rt_recipe_page(&r, 1, out);
    }
    if (st == RT_OK)
        st = rt_str_status(out);
    rt_str_deinit(&json);
    rt_recipe_destroy(&r);
    return st;
}

/* Each allocation fails once: the whole output, or a failure; nothing is lost on the way. */
static void test_memory(void **state) {
    (void)state;
    char path[512];
    rt_str whole;
    scratch_text(&s, "measured.yaml", measured_yaml);
    write_measured("corrupt.a-2");
    snprintf(path, sizeof path, "%s", scratch_path(&s, "measured.yaml"));
    rt_str_init(&whole);
    assert_ok(read_all(path, &whole));
    const uint64_t before = live_blocks();
    rt_status st = RT_E_MEMORY;
    int failed = 0;
    for (fail_at = 0; calls = 0, fail_at < 100000; fail_at++) {
        rt_str out;
        rt_str_init(&out);
        rt_alloc_set_hook(fail_one, NULL);
        st = read_all(path, &out);
        rt_alloc_set_hook(NULL, NULL);
        const bool reached = calls > fail_at;
        if (st == RT_OK && strcmp(rt_str_text(&out), rt_str_text(&whole)) != 0)
            fail_msg("allocation %llu failed, and the output is another, with success",
                     (unsigned long long)fail_at);
        rt_str_deinit(&out);
        assert_int_equal(live_blocks(), before);
        failed += st != RT_OK;
        if (!reached)
            break;
    }
    assert_ok(st);
    assert_true(failed > 100);
    rt_str_deinit(&whole);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_claims), cmocka_unit_test(test_measured),
                                       cmocka_unit_test(test_wanted), cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_keys),   cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
