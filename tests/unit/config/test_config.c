/*
 * test_config.c - parameters from text and files: accepted and refused values, suggestions, places,
 * precedence, round trip.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "config/config.h"
#include "eval/eval.h"
#include "export/export_int.h"
#include "support/check.h"
#include "support/root.h"

static const char *write_yaml(const char *text) {
    const char *path = in_root("c.yaml");
    assert_int_equal(rt_file_write_atomic(path, text, strlen(text)), RT_OK);
    return path;
}

/* want: NULL for success, else a part of the message. */
static void test_values(void **state) {
    (void)state;
    static const struct {
        const char *key, *value, *want;
    } cases[] = {
        {"epochs", "20", NULL},
        {"epochs", "0", NULL},
        {"epochs", "-1", "--epochs: '-1' is not a whole number from 0 to 1000000"},
        {"epochs", "1.5", "is not a whole number"},
        {"epochs", "1e3", "is not a whole number"},
        {"epochs", " 3", "is not a whole number"},
        {"epochs", "", "is not a whole number"},
        {"epochs", "99999999999999999999", "is not a whole number"},
        {"epochs", NULL, "--epochs needs a value: N"},
        {"lr", "4.638e-4", NULL},
        {"lr", "nan", "is not a number"},
        {"lr", "inf", "is not a number"},
        {"lr", "0,1", "is not a number"},
        {"lr", "0x1", "is not a number"},
        {"lr", "-0.1", "is not a number from 0 to 1000"},
        {"dropout", "1", "is not a number from 0 to 0.99"},
        {"label-smoothing", "0.1", NULL},
        {"label_smoothing", "0.1", NULL},
        {"wd", "1e-4", NULL},
        {"optimizer", "adam", NULL},
        {"optimiser", "Adam", "did you mean 'adam'?"},
        {"optimiser", "rmsprop", "unknown 'rmsprop'; wanted one of sgd, adam, adamw"},
        {"nesterov", "false", NULL},
        {"nesterov", "off", NULL},
        {"nesterov", NULL, NULL},
        {"nesterov", "maybe", "neither true nor false"},
        {"no-standardise", NULL, NULL},
        {"no-standardise", "true", "takes no value"},
        {"no-epochs", NULL, "unknown parameter"},
        {"data", "", "empty"},
        {"epoch", "3", "did you mean 'epochs'?"},
        {"leraning-rate-of-everything-here", "3", "unknown parameter"},
        {"momentun", "3", "did you mean 'momentum'?"},
        {"input", "3", "'input' does not apply to train; it is a parameter of: info, bench"},
    };
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        rt_config c;
        char origin[64];
        assert_int_equal(rt_config_init(&c), RT_OK);
        snprintf(origin, sizeof origin, "--%s", cases[i].key);
        rt_status st = rt_config_set(&c, RT_VERB_TRAIN, cases[i].key, cases[i].value, origin, false);
        if (!cases[i].want && st != RT_OK)
            fail_msg("%s=%s: %s", cases[i].key, cases[i].value, rt_error_text());
        if (cases[i].want) {
            assert_int_equal(st, RT_E_USAGE);
            if (!strstr(rt_error_text(), cases[i].want))
                fail_msg("%s=%s: '%s' does not say '%s'", cases[i].key, cases[i].value, rt_error_text(),
                         cases[i].want);
        }
        rt_config_deinit(&c);
    }
}

static void test_defaults_and_aliases(void **state) {
    (void)state;
    rt_config c;
    assert_int_equal(rt_config_init(&c), RT_OK);
    assert_int_equal(c.epochs, 10);
    assert_true(c.standardise);
    assert_null(c.data);
    assert_string_equal(c.schedule, "cosine");
    assert_true(c.weight_decay == 5e-4);
    assert_false(rt_config_is_set(&c, "epochs"));
    assert_int_equal(rt_config_set(&c, RT_VERB_TRAIN, "e", "7", "-e", false), RT_OK);
    assert_int_equal(c.epochs, 7);
    assert_true(rt_config_is_set(&c, "epochs"));
    assert_int_equal(rt_config_set(&c, RT_VERB_TRAIN, "no-standardise", NULL, "--no-standardise", false),
                     RT_OK);
    assert_false(c.standardise);
    rt_config_deinit(&c);
}

/* Every default is a legal value of its own parameter, keys and aliases are unique, nothing is without help.
 */
static void test_table(void **state) {
    (void)state;
    const rt_param_info *p;
    int n = rt_config_list(&p);
    for (int i = 0; i < n; i++) {
        assert_true(p[i].help && *p[i].help);
        assert_true(p[i].verbs & RT_VERB_ALL);
        assert_null(strchr(p[i].key, '_'));
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(p[i].key, p[k].key);
            if (p[i].alias && p[k].alias)
                assert_string_not_equal(p[i].alias, p[k].alias);
        }
    }
}

static const rt_param_info *param(const char *key) {
    const rt_param_info *p;
    const int n = rt_config_list(&p);
    for (int i = 0; i < n; i++)
        if (strcmp(p[i].key, key) == 0)
            return &p[i];
    fail_msg("no parameter %s", key);
    return NULL;
}

static int words(const char *list, const char *between, const char *word) {
    int n = 0;
    for (const char *s = list; *s; s += strspn(s, between)) {
        const size_t len = strcspn(s, between);
        n += word == NULL || (strlen(word) == len && memcmp(s, word, len) == 0);
        s += len;
    }
    return n;
}

/* Lists that a line of params.def repeats, from tables that it may not see. */
static void test_lists(void **state) {
    (void)state;
    const rt_measure_info *measure;
    const int n = rt_measure_list(&measure);
    const char *choices = param("measure")->choices;
    assert_int_equal(words(choices, "|", NULL), n);
    for (int i = 0; i < n; i++)
        if (words(choices, "|", measure[i].name) != 1)
            fail_msg("--measure: %s is missing", measure[i].name);
#if RT_WITH_ONNX
    for (int i = 0; rt_onnx_answer(i); i++)
        if (words(param("outputs")->help, " ,;:", rt_onnx_answer(i)) < 1)
            fail_msg("--outputs: %s is missing", rt_onnx_answer(i));
#endif
}

static void test_yaml(void **state) {
    (void)state;
    static const struct {
        const char *text, *want; /* want: NULL or a part of the message */
    } cases[] = {
        {"", NULL},
        {"---\n", NULL},
        {"# nothing\n", NULL},
        {"epochs: 3\nlr: 0.5\n", NULL},
        {"epochs: ~\n", NULL},
        {"{epochs: 3, nesterov: no}\n", NULL},
        {"data: \"spiral:n=10\"\n", NULL},
        {"label_smoothing: 0.1\n", NULL},
        {"epochs: 3\nepoch: 3\n", "c.yaml:2:1: unknown parameter 'epoch'; did you mean 'epochs'?"},
        {"lr: 0.1\n  \nepochs: three\n", "c.yaml:3:1: 'three' is not a whole number"},
        {"epochs: 3\nepochs: 4\n", "c.yaml:2:1: 'epochs' is given twice"},
        {"weight-decay: 3\nweight_decay: 4\n", "given twice"},
        {"epochs: [3]\n", "c.yaml:1:9: a value must be plain text"},
        {"epochs: {a: 1}\n", "a value must be plain text"},
        {"epochs: &a 3\n", "anchors and tags"},
        {"epochs: !!int 3\n", "anchors and tags"},
        {"- epochs\n", "c.yaml:1:1: wanted lines of the form"},
        {"epochs\n", "wanted lines of the form"},
        {"epochs: 3\n---\nepochs: 3\n", "a second document"},
        {"epochs: 'three\n", "c.yaml:"},
        {"resume: true\n", "is for the command line only"},
        {"config: other.yaml\n", "is for the command line only"},
        {"\xff\xfe\x01\n", "c.yaml:"},
    };
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        rt_config c;
        assert_int_equal(rt_config_init(&c), RT_OK);
        rt_status st = rt_config_load(&c, RT_VERB_TRAIN, write_yaml(cases[i].text));
        if (!cases[i].want && st != RT_OK)
            fail_msg("case %d: %s", (int)i, rt_error_text());
        if (cases[i].want) {
            assert_int_equal(st, RT_E_USAGE);
            if (!strstr(rt_error_text(), cases[i].want))
                fail_msg("case %d: '%s' does not say '%s'", (int)i, rt_error_text(), cases[i].want);
        }
        rt_config_deinit(&c);
    }
}

static void test_flags_win(void **state) {
    (void)state;
    const char *path = write_yaml("epochs: 3\nlr: 0.5\nbatch: 64\n");
    for (int order = 0; order < 2; order++) {
        rt_config c;
        assert_int_equal(rt_config_init(&c), RT_OK);
        for (int part = 0; part < 2; part++) {
            if (part == order)
                assert_int_equal(rt_config_load(&c, RT_VERB_TRAIN, path), RT_OK);
            else
                assert_int_equal(rt_config_set(&c, RT_VERB_TRAIN, "epochs", "9", "--epochs", false), RT_OK);
        }
        assert_int_equal(c.epochs, 9);
        assert_int_equal(c.batch, 64);
        assert_true(c.lr == 0.5);
        rt_config_deinit(&c);
    }
    rt_config c;
    assert_int_equal(rt_config_init(&c), RT_OK);
    assert_int_equal(rt_config_set(&c, RT_VERB_TRAIN, "epochs", "9", "--epochs", false), RT_OK);
    assert_int_equal(rt_config_load(&c, RT_VERB_TRAIN, write_yaml("epochs: many\n")), RT_E_USAGE);
    rt_config_deinit(&c);
}

static void test_round_trip(void **state) {
    (void)state;
    rt_config a, b;
    rt_str text;
    char ha[65], hb[65];
    rt_str_init(&text);
    assert_int_equal(rt_config_init(&a), RT_OK);
    assert_int_equal(rt_config_init(&b), RT_OK);
    static const char *const set[][2] = {{"data", "csv:a \"b\"\\c\t.csv,target=y: #z"},
                                         {"arch", "mlp:3,4"},
                                         {"lr", "0.1"},
                                         {"weight-decay", "4.638e-4"},
                                         {"seed", "9007199254740991"},
                                         {"nesterov", "false"},
                                         {"threads", "3"},
                                         {"resume", "true"}};
    for (int64_t i = 0; i < RT_COUNT(set); i++)
        assert_int_equal(rt_config_set(&a, RT_VERB_TRAIN, set[i][0], set[i][1], "test", false), RT_OK);
    rt_config_write(&a, RT_VERB_TRAIN, &text);
    assert_int_equal(rt_str_status(&text), RT_OK);
    if (rt_config_load(&b, RT_VERB_TRAIN, write_yaml(rt_str_text(&text))) != RT_OK)
        fail_msg("%s\n%s", rt_error_text(), rt_str_text(&text));
    assert_string_equal(a.data, b.data);
    assert_true(a.weight_decay == b.weight_decay && a.lr == b.lr && a.seed == b.seed && b.threads == 3);
    assert_false(b.resume || b.nesterov);
    rt_config_hash(&a, RT_VERB_TRAIN, true, ha);
    rt_config_hash(&b, RT_VERB_TRAIN, true, hb);
    assert_string_equal(ha, hb);
    assert_int_equal(rt_config_set(&b, RT_VERB_TRAIN, "threads", "1", "test", false), RT_OK);
    assert_int_equal(rt_config_set(&b, RT_VERB_TRAIN, "out", "elsewhere", "test", false), RT_OK);
    rt_config_hash(&b, RT_VERB_TRAIN, true, hb);
    assert_string_equal(ha, hb);
    assert_int_equal(rt_config_set(&b, RT_VERB_TRAIN, "lr", "0.2", "test", false), RT_OK);
    rt_config_hash(&b, RT_VERB_TRAIN, true, hb);
    assert_string_not_equal(ha, hb);
    rt_config_deinit(&a);
    rt_config_deinit(&b);
    rt_str_deinit(&text);
}

static void test_missing_file(void **state) {
    (void)state;
    rt_config c;
    assert_int_equal(rt_config_init(&c), RT_OK);
    assert_int_not_equal(rt_config_load(&c, RT_VERB_TRAIN, "/nonexistent/c.yaml"), RT_OK);
    assert_non_null(strstr(rt_error_text(), "/nonexistent/c.yaml"));
    rt_config_deinit(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),       cmocka_unit_test(test_defaults_and_aliases),
        cmocka_unit_test(test_table),        cmocka_unit_test(test_yaml),
        cmocka_unit_test(test_flags_win),    cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_missing_file), cmocka_unit_test(test_lists),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
