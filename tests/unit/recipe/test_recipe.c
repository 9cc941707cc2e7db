/*
 * test_recipe.c - recipes that are not what they should be: each is refused with a message that says why, or
 * does what it says and no more.
 */
#include "recipe/recipe.h"
#include "unit/io/io_support.h"

SCRATCH_OF_GROUP(s)

static rt_status read_recipe(const char *text, rt_recipe_options o) {
    rt_recipe *r = NULL;
    rt_str json, markdown;
    rt_str_init(&json);
    rt_str_init(&markdown);
    scratch_text(&s, "bad.yaml", text);
    o.out = s.dir;
    rt_status st = rt_recipe_open(&r, scratch_path(&s, "bad.yaml"), o);
    if (st == RT_OK)
        st = rt_recipe_results(r, &json, &markdown);
    rt_str_deinit(&json);
    rt_str_deinit(&markdown);
    rt_recipe_destroy(&r);
    return st;
}

#define SCALES "scales: {quick: {about: a}}\n"
#define STAGES "stages: [{name: a, verb: train, with: {data: spiral}}]\n"
#define TABLE(columns, rows) "tables: [{id: t, columns: " columns ", rows: " rows "}]\n"

static void test_form(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *says; /* says: NULL if it is fine */
    } cases[] = {
        {"a small one", SCALES STAGES TABLE("[{id: c}]", "[{id: r, runs: a}]"), NULL},
        {"empty values", SCALES "vars:\nstages: [{name: a, verb: train, each: , with: }]\ntables:\n", NULL},
        {"a list", "[a, b]\n", "wanted a mapping"},
        {"a list of scales", "scales: [quick, paper]\n" STAGES, "'scales' must be a mapping"},
        {"a scale that is text", "scales: {quick: tiny}\n" STAGES, "element 0 of 'scales'"},
        {"variables in a list", SCALES "vars: [a]\n" STAGES, "'vars' must be a mapping"},
        {"stages by name", SCALES "stages: {a: {name: a, verb: train}}\n", "'stages' must be a list"},
        {"a stage that is text", SCALES "stages: [a]\n", "element 0 of 'stages'"},
        {"a loop without a name", SCALES "stages: [{name: a, verb: train, each: [1, 2]}]\n",
         "'each' must be a mapping"},
        {"flags in a list", SCALES "stages: [{name: a, verb: train, with: [data]}]\n",
         "'with' must be a mapping"},
        {"runs as text", SCALES "stages: [{name: a, verb: train, runs: '@a'}]\n", "'runs' must be a list"},
        {"rows by name", SCALES STAGES TABLE("[{id: c}]", "{r: {runs: a}}"), "'rows' must be a list"},
        {"a condition in a list", SCALES STAGES TABLE("[{id: c}]", "[{id: r, runs: a, where: [1]}]"),
         "'where' must be a mapping"},
        {"a paper's number alone", SCALES STAGES TABLE("[{id: c}]", "[{id: r, runs: a, paper: 3}]"),
         "'paper' must be a mapping"},
        {"an anchor of a mapping", "scales: &a {quick: {about: a}}\n" STAGES,
         "bad.yaml:1:9: anchors and tags"},
        {"a tag of a list", SCALES "stages: !!seq [{name: a, verb: train}]\n",
         "bad.yaml:2:9: anchors and tags"},
        {"another comparison", "scales: {quick: {about: a, compare: order}}\n" STAGES, "compares 'order'"},
        {"an unknown key", SCALES STAGES "tabels: []\n",
         "top level: unknown key 'tabels'; did you mean 'tables'"},
        {"an unknown key of a column", SCALES STAGES TABLE("[{id: c, tolerence: 1}]", "[{id: r, runs: a}]"),
         "element 0 of 'columns': unknown key 'tolerence'; did you mean 'tolerance'"},
        {"an unknown key of a scale", "scales: {quick: {minuets: 3}}\n" STAGES, "unknown key 'minuets'"},
        {"a list of titles", SCALES STAGES "title: [a, b]\n", "'title' must be one value"},
        {"sorted by nothing",
         SCALES STAGES "tables: [{id: t, sort: d, columns: [{id: c, better: lower}], rows: [{id: r}]}]\n",
         "sorted by 'd'"},
        {"sorted by a column without an order",
         SCALES STAGES "tables: [{id: t, sort: c, columns: [{id: c}], rows: [{id: r}]}]\n", "sorted by 'c'"},
        {"like nothing", SCALES "stages: [{name: a, like: b}, {name: b, verb: train}]\n",
         "like 'b', which is no earlier"},
        {"like one that is like another",
         SCALES "stages: [{name: a, verb: train}, {name: b, like: a}, {name: c, like: b}]\n", NULL},
        {"like one that is like one, and so on",
         SCALES
         "stages: [{name: a, verb: train}, {name: b, like: a}, {name: c, like: b}, {name: d, like: c}, "
         "{name: e, like: d}]\n",
         "stage 'e' is like one that is like one, and so on, more than 4"},
        {"no stages", SCALES, "no stages"},
        {"no scales", STAGES, "no scales"},
    };
    for (int64_t i = 0; i < RT_COUNT(cases); i++)
        for (int given = 0; given < 2; given++) {
            const uint64_t before = live_blocks();
            rt_status st = read_recipe(cases[i].text, (rt_recipe_options){.scale = given ? "quick" : NULL});
            if (!cases[i].says && st != RT_OK)
                fail_msg("%s: %s", cases[i].name, rt_error_text());
            if (cases[i].says && (st != RT_E_INPUT || !strstr(rt_error_text(), cases[i].says) ||
                                  !strstr(rt_error_text(), "bad")))
                fail_msg("%s: %s: '%s' does not say '%s'", cases[i].name, rt_status_name(st), rt_error_text(),
                         cases[i].says);
            assert_int_equal(live_blocks(), before);
        }
}

/* Sizes that only a hostile recipe has; each within a few megabytes. */
static bool few_megabytes(void *user, uint64_t call, size_t bytes) {
    (void)user;
    (void)call;
    rt_alloc_stats a;
    rt_alloc_get_stats(&a);
    return a.live_bytes + bytes < (size_t)128 << 20;
}

static void repeat(rt_str *out, const char *text, int n) {
    for (int i = 0; i < n; i++)
        rt_str_append(out, text);
}

static void test_sizes(void **state) {
    (void)state;
    enum { MANY = 4000 };
    static const struct {
        const char *name, *head, *part; /* head, part MANY times, middle, part `again` times, tail */
        const char *middle;
        int parts, again;
        const char *tail, *says;
    } cases[] = {
        {"thousands of rows and columns", SCALES STAGES "tables: [{id: t, columns: [", "{id: c},",
         "], rows: [", MANY, MANY, "]}]\n", "table 't' has 4000 rows of 4000 columns"},
        {"an id of thousands of bytes", SCALES STAGES "tables: [{id: t, columns: [{id: c}], rows: [{id: ",
         "r", "}], claims: [{text: x, holds: ", MANY, MANY, ".d < 1}]}]\n", "table 't': claim 'rrr"},
        {"a claim on such an id", SCALES STAGES "tables: [{id: t, columns: [{id: c}], rows: [{id: ", "r",
         "}], claims: [{text: x, holds: ", MANY, MANY, ".c < 1}]}]\n", NULL},
        {"stages of one name",
         SCALES "stages: [{name: a, verb: train}, {name: a, verb: average, runs: ['@a'], each: {i: [", "1,",
         "1]}}]\n", 200, 0, "", "two stages are called 'a'"},
        {"a loop to the largest number",
         SCALES "stages: [{name: a, verb: train, each: {i: '9223372036854775800..9223372036854775807'}}]\n",
         "", "", 0, 0, "", NULL},
        {"many commands that need one",
         SCALES
         "stages: [{name: t, verb: train}, {name: a, verb: distill, each: {i: '1..4000', j: '1..2'}, with: "
         "{teacher: '@t'}}]\n",
         "", "", 0, 0, "", NULL},
    };
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        rt_str text;
        rt_str_init(&text);
        rt_str_append(&text, cases[i].head);
        repeat(&text, cases[i].part, cases[i].parts);
        rt_str_append(&text, cases[i].middle);
        repeat(&text, cases[i].part, cases[i].again);
        rt_str_append(&text, cases[i].tail);
        assert_ok(rt_str_status(&text));
        rt_alloc_set_hook(few_megabytes, NULL);
        rt_status st = read_recipe(rt_str_text(&text), (rt_recipe_options){.scale = NULL});
        rt_alloc_set_hook(NULL, NULL);
        if (!cases[i].says && st != RT_OK)
            fail_msg("%s: %.200s", cases[i].name, rt_error_text());
        if (cases[i].says && (st != RT_E_INPUT || !strstr(rt_error_text(), cases[i].says)))
            fail_msg("%s: %s: '%.200s' does not say '%s'", cases[i].name, rt_status_name(st), rt_error_text(),
                     cases[i].says);
        rt_str_deinit(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_form), cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
