/* Pages from runs written by hand: escaping, missing parts, hostile names, thinning, and files that must be refused. */
#include "base/alloc.h"
#include "io/io.h"
#include "report/report_int.h"
#include "support/check.h"
#include "support/tmpdir.h"

typedef struct fixture {
    tmpdir tmp;
    rt_str page;
    rt_report_result result;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    rt_str_init(&f->page);
    return f && tmpdir_make(&f->tmp) ? 0 : -1;
}

static int teardown(void **state) {
    fixture *f = *state;
    tmpdir_remove(&f->tmp);
    rt_str_deinit(&f->page);
    rt_report_result_deinit(&f->result);
    free(f);
    return 0;
}

static void put_n(fixture *f, const char *run, const char *file, const void *data, size_t n) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", f->tmp.path, run);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/pictures", f->tmp.path, run);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/%s", f->tmp.path, run, file);
    assert_true(file_put(path, data, n));
}

static void put(fixture *f, const char *run, const char *file, const char *text) {
    put_n(f, run, file, text, strlen(text));
}

static rt_status render_titled(fixture *f, const char *a, const char *b, const char *title) {
    const char *runs[2];
    int n = 0;
    runs[n++] = tmpdir_path(&f->tmp, a);
    if (b)
        runs[n++] = tmpdir_path(&f->tmp, b);
    rt_str_clear(&f->page);
    rt_report_result_deinit(&f->result);
    return rt_report_render(&f->page, &f->result, runs, n, (rt_report_options){.title = title});
}

static rt_status render(fixture *f, const char *a, const char *b) {
    return render_titled(f, a, b, NULL);
}

static int occurrences(const char *text, const char *word) {
    int n = 0;
    for (const char *s = text; (s = strstr(s, word)) != NULL; s += strlen(word))
        n++;
    return n;
}

static bool has(const fixture *f, const char *word) {
    return strstr(rt_str_text(&f->page), word) != NULL;
}

/* The block of JSON, parsed. */
static rt_jdoc *block(const fixture *f) {
    static const char open[] = "<script type=\"application/json\" id=\"data\">";
    const char *start = strstr(rt_str_text(&f->page), open);
    assert_non_null(start);
    start += sizeof open - 1;
    const char *end = strstr(start, "</script>");
    assert_non_null(end);
    rt_jdoc *d = NULL;
    OK(rt_jdoc_parse(&d, start, (size_t)(end - start), "block"));
    return d;
}

static void test_escape(void **state) {
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"plain", "plain"},
        {"<b> & \"q\" 'a'", "&lt;b&gt; &amp; &quot;q&quot; &#39;a&#39;"},
        {"\xc3\xa9\xf0\x9f\x98\x80", "\xc3\xa9\xf0\x9f\x98\x80"},
        {"a\xff\xc3(", "a\xef\xbf\xbd\xef\xbf\xbd("},
        {"a\x01"
         "b\nc\td\x7f",
         "a\xef\xbf\xbd"
         "b\nc\td\xef\xbf\xbd"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_str s;
        rt_str_init(&s);
        rt_report_escape(&s, cases[i].in);
        assert_string_equal(rt_str_text(&s), cases[i].out);
        rt_str_deinit(&s);
    }
}

static void test_base64(void **state) {
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {{"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
                 {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xff\xfe\xfd", "//79"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_str s;
        rt_str_init(&s);
        rt_report_base64(&s, (const uint8_t *)cases[i].in, strlen(cases[i].in));
        assert_string_equal(rt_str_text(&s), cases[i].out);
        rt_str_deinit(&s);
    }
}

static void test_quote(void **state) {
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"runs/a", "runs/a"}, {"a b", "'a b'"}, {"it's", "'it'\\''s'"}, {"", "''"}, {"$(x)", "'$(x)'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_str s;
        rt_str_init(&s);
        rt_str_append_shell(&s, cases[i].in);
        assert_string_equal(rt_str_text(&s), cases[i].out);
        rt_str_deinit(&s);
    }
}

/* What is embedded must not end the script it stands in. */
static void test_assets(void **state) {
    (void)state;
    static const struct {
        const char *file, *end;
    } cases[] = {{"chart.min.js", "</script"}, {"page.js", "</script"}, {"page.css", "</style"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_null(strstr(rt_report_asset(cases[i].file)->data, cases[i].end));
    assert_non_null(strstr(rt_report_asset("chart.min.js")->data, "MIT License"));
}

static void test_paths(void **state) {
    (void)state;
    static const char text[] =
        "{\"sets\":{\"ood:a/"
        "b\":{\"auroc\":{\"entropy\":0.5}},\"ood\":1,\"test\":{\"x\":null,\"pair\":[1,2]}}}";
    rt_jdoc *d = NULL;
    double v = 0;
    OK(rt_jdoc_parse(&d, text, sizeof text - 1, "t"));
    rt_jval root = rt_jdoc_root(d);
    assert_true(rt_report_number(root, "sets/ood:a/b/auroc/entropy", &v) && v == 0.5);
    assert_true(rt_report_number(root, "sets/ood:*/auroc/entropy", &v) && v == 0.5);
    assert_true(rt_report_number(root, "sets/test/pair/1", &v) && v == 2);
    assert_null(rt_report_find(root, "sets/test/pair/2"));
    assert_null(rt_report_find(root, "sets/test/x"));
    assert_null(rt_report_find(root, "sets/te"));
    assert_null(rt_report_find(root, "sets/test/pair/first"));
    assert_null(rt_report_find(NULL, "sets"));
    rt_jdoc_destroy(&d);
}

#define EVALUATION(accuracy, hash)                                                                           \
    "{\"evaluation\":{\"arch\":\"mlp:5\",\"flops\":1000,\"parameters\":500,\"data\":\"spiral\",\"data_"      \
    "hash\":\"" hash "\",\"sets\":{\"test\":{\"rows\":100,\"accuracy\":" #accuracy                           \
    ",\"nll\":null,\"nll_reason\":\"x\",\"interval\":{"                                                      \
    "\"accuracy\":[0.5,0.75]}}},\"curves\":{}}}"

static void test_table(void **state) {
    fixture *f = *state;
    put(f, "a", "metrics.json", EVALUATION(0.625, "1"));
    put(f, "b", "metrics.json", EVALUATION(0.6875, "1"));
    OK(render(f, "a", "b"));
    assert_true(has(f, "data-v=\"0.625\" data-run=\"0\" data-path=\"evaluation/sets/test/accuracy\""));
    assert_true(has(f, "class=\"num best\" data-v=\"0.6875\" data-run=\"1\""));
    assert_false(has(f, "class=\"num best\" data-v=\"0.625\""));
    assert_true(has(f, "<small>0.5000 &ndash; 0.7500</small>"));
    assert_false(has(f, "evaluation/sets/test/nll\""));
    assert_int_equal(f->result.evaluated, 2);
    assert_int_equal((int)f->result.hint.len, 0);
    assert_true(has(f, "id=\"cost\""));
    assert_false(has(f, "id=\"reliability\""));
    assert_false(has(f, "id=\"doubtful\""));
    assert_false(has(f, "{{"));
}

static void test_different_data(void **state) {
    fixture *f = *state;
    put(f, "a", "metrics.json", EVALUATION(0.625, "1"));
    put(f, "b", "metrics.json", EVALUATION(0.6875, "2"));
    OK(render(f, "a", "b"));
    assert_false(has(f, "class=\"num best\""));
    assert_true(has(f, "evaluated on different data"));
}

static void test_missing_parts(void **state) {
    fixture *f = *state;
    put(f, "only config", "config.yaml", "# words\ndata: \"csv:a b.csv\"\nteacher: \"runs/t\"\nlr: 0.1\n");
    OK(render(f, "only config", NULL));
    assert_int_equal(f->result.evaluated, 0);
    assert_non_null(strstr(rt_str_text(&f->result.hint), "only config' --data 'csv:a b.csv'"));
    assert_true(rt_str_starts(rt_str_text(&f->result.hint), "retort eval '"));
    assert_true(has(f, "retort distill --config"));
    assert_true(has(f, "lr: 0.1"));
    put(f, "only log", "log.jsonl",
        "{\"event\":\"start\",\"time\":\"T0\"}\n{\"event\":\"epoch\",\"epoch\":1,\"train_loss\":0.5}\n{"
        "\"event\":\"ep");
    OK(render(f, "only log", "only config"));
    assert_true(has(f, "id=\"training\""));
    assert_true(has(f, "\"log\":{\"epoch\":[1],\"train_loss\":[0.5]}"));
}

static void test_hostile(void **state) {
    fixture *f = *state;
    static const char name[] = "x<img src=q onerror=alert(1)>";
    put(f, name, "metrics.json",
        "{\"evaluation\":{\"arch\":\"</script><script>alert(2)</"
        "script>\",\"method\":\"<b>\",\"classes\":[\"<i>\"],\"command\":\"<u>\","
        "\"sets\":{\"test\":{\"accuracy\":0.5},\"ood:\\\"><script>alert(3)</"
        "script>\":{\"auroc\":{\"entropy\":0.5,\"<s>\":0.25}}},"
        "\"curves\":{\"roc\":{\"ood:</ScRiPt><!--\":{\"entropy\":{\"fpr\":[0,1],\"tpr\":[0,1]}}}}},"
        "\"average\":{\"method\":\"<em>\",\"layers\":[{\"name\":\"<q>\",\"n\":3,\"row_entropy\":[0.1]}]}}");
    put(f, name, "config.yaml", "data: \"</pre><script>alert(4)</script>\"\n");
    OK(render_titled(f, name, NULL, "<title>"));
    const char *page = rt_str_text(&f->page);
    static const char *const tags[] = {"<img", "<i>alert", "<b>,",      "<u>",           "<em>", "<q>",
                                       "<s>",  "<title><", "</ScRiPt>", "<script>alert", "<!--"};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (strstr(page, tags[i]))
            fail_msg("the page holds %s", tags[i]);
    assert_int_equal(occurrences(page, "</script>"), 3);
    assert_int_equal(occurrences(page, "<script"), 3);
    rt_jdoc *d = block(f);
    assert_string_equal(rt_report_text(rt_jdoc_root(d), "runs/0/name"), name);
    assert_string_equal(rt_report_text(rt_jdoc_root(d), "runs/0/metrics/evaluation/arch"),
                        "</script><script>alert(2)</script>");
    rt_jdoc_destroy(&d);
}

static void test_names(void **state) {
    fixture *f = *state;
    char twin[1024];
    put(f, "a", "config.yaml", "lr: 1\n");
    put(f, "a/pictures", "config.yaml", "lr: 1\n");
    snprintf(twin, sizeof twin, "%s/a/pictures/a", f->tmp.path);
    mkdir(twin, 0777);
    put(f, "a/pictures/a", "config.yaml", "lr: 1\n");
    OK(render(f, "a/", "a/pictures"));
    assert_true(has(f, "</i>a</span>"));
    OK(render(f, "a", "a/pictures/a"));
    assert_false(has(f, "</i>a</span>"));
    assert_int_equal(render(f, "a", "a"), RT_E_USAGE);
}

static void test_thinned(void **state) {
    fixture *f = *state;
    rt_str log;
    rt_str_init(&log);
    for (int i = 1; i <= 20000; i++)
        rt_str_appendf(
            &log, "{\"event\":\"epoch\",\"epoch\":%d,\"train_loss\":%.17g,\"valid_loss\":%.17g,\"lr\":0.1}\n",
            i, 1.0 / i, 2.0 / i);
    put_n(f, "long", "log.jsonl", log.p, log.len);
    rt_str_deinit(&log);
    OK(render(f, "long", NULL));
    assert_true(f->page.len < 400000);
    rt_jdoc *d = block(f);
    rt_jval columns = rt_report_find(rt_jdoc_root(d), "runs/0/log");
    int64_t n = rt_jval_len(rt_jval_get(columns, "epoch"));
    double first, last, loss;
    assert_true(n > 100 && n <= 512);
    assert_int_equal(rt_jval_len(rt_jval_get(columns, "train_loss")), n);
    assert_true(rt_jval_f64(rt_jval_at(rt_jval_get(columns, "epoch"), 0), &first) && first == 1);
    assert_true(rt_jval_f64(rt_jval_at(rt_jval_get(columns, "epoch"), n - 1), &last) && last == 20000);
    for (int64_t i = 0; i < n; i++) {
        assert_true(rt_jval_f64(rt_jval_at(rt_jval_get(columns, "epoch"), i), &first));
        assert_true(rt_jval_f64(rt_jval_at(rt_jval_get(columns, "train_loss"), i), &loss));
        assert_true(loss == 1.0 / first); /* columns stay in step, values as they were */
    }
    rt_jdoc_destroy(&d);
}

static const uint8_t one_pixel[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0,
                                    13,   'I', 'H', 'D', 'R',  0,    0,    0,    6, 0, 0,
                                    0,    4,   8,   0,   0,    0,    0,    0,    0, 0, 0};

#define MONTAGE(file)                                                                                        \
    "{\"evaluation\":{\"classes\":[\"cat\",\"<dog>\"],\"pictures\":{\"least_certain\":{\"file\":\"" file     \
    "\",\"columns\":2,\"items\":[{\"row\":7,\"label\":0,\"class\":1,\"entropy\":0.69},{\"row\":8,\"label\":" \
    "1,\"class\":1},{\"label\":9}]}}}}"

static void test_pictures(void **state) {
    fixture *f = *state;
    put(f, "a", "metrics.json", MONTAGE("pictures/least.png"));
    OK(render(f, "a", NULL)); /* the file may be gone */
    assert_false(has(f, "data:image/png"));
    put_n(f, "a", "pictures/least.png", one_pixel, sizeof one_pixel);
    OK(render(f, "a", NULL));
    assert_int_equal(occurrences(rt_str_text(&f->page), "data:image/png;base64,"), 1);
    assert_int_equal(occurrences(rt_str_text(&f->page), "class=\"cut p0\""), 3);
    assert_true(has(f, "aspect-ratio:1.5000"));
    assert_true(has(f, "<b class=\"wrong\">&lt;dog&gt;</b><br>is cat"));
    assert_true(has(f, "<b class=\"right\">&lt;dog&gt;</b>"));
    put(f, "a", "pictures/least.png", "GIF89a, and a lot of bytes behind it that are no picture");
    assert_int_equal(render(f, "a", NULL), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "least.png: not a PNG file"));
    static const char *const outside[] = {MONTAGE("../secret.png"), MONTAGE("pictures/../secret.png"),
                                          MONTAGE("/etc/secret.png"), MONTAGE("pictures/a.txt")};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        put(f, "a", "metrics.json", outside[i]);
        assert_int_equal(render(f, "a", NULL), RT_E_INPUT);
        assert_non_null(strstr(rt_error_text(), "not of the form pictures/NAME.png"));
    }
}

static void test_large_pictures(void **state) {
    fixture *f = *state;
    enum { BYTES = 2000000 };
    uint8_t *data = calloc(1, BYTES);
    memcpy(data, one_pixel, sizeof one_pixel);
    for (int i = 0; i < 2; i++) {
        const char *run = i ? "b" : "a";
        put(f, run, "metrics.json", MONTAGE("pictures/least.png"));
        put_n(f, run, "pictures/least.png", data, BYTES);
    }
    free(data);
    OK(render(f, "a", "b"));
    assert_int_equal(f->result.pictures_left_out, 1);
    assert_true(f->page.len < 5000000);
    assert_true(has(f, "pictures/least.png is left out"));
}

static void test_refused(void **state) {
    fixture *f = *state;
    static const struct {
        const char *file, *text, *message;
    } cases[] = {
        {"metrics.json", "{\"a\":1,}", "metrics.json: JSON line 1 column 8"},
        {"metrics.json", "[1]", "metrics.json: expected an object"},
        {"metrics.json", "{\"evaluation\":3}", "metrics.json: evaluation: expected an object"},
        {"metrics.json", "{\"evaluation\":{\"curves\":{\"reliability\":{\"count\":[1,\"x\"]}}}}",
         "evaluation/curves/reliability/count: expected an array of numbers"},
        {"metrics.json", "{\"evaluation\":{\"curves\":{\"reliability\":{\"count\":[1,2],\"accuracy\":[1]}}}}",
         "accuracy: expected as many numbers"},
        {"metrics.json",
         "{\"evaluation\":{\"curves\":{\"histogram\":{\"entropy\":{\"edges\":[0,1],\"test\":[1,2]}}}}}",
         "at entropy/test: expected as many"},
        {"metrics.json", "{\"evaluation\":{\"sets\":{\"ood:x\":4}}}",
         "evaluation/sets/* at ood:x: expected an object"},
        {"metrics.json", "{\"evaluation\":{\"sets\":{\"test\":{\"interval\":{\"nll\":[1]}}}}}",
         "nll: expected two numbers"},
        {"metrics.json", "{\"evaluation\":{\"classes\":[1]}}",
         "evaluation/classes: expected an array of strings"},
        {"metrics.json", "{\"average\":{\"layers\":[1]}}", "average/layers: expected an array of objects"},
        {"metrics.json", "{\"average\":{\"layers\":[{\"row_entropy\":\"x\"}]}}",
         "average/layers/*/row_entropy: expected an array"},
        {"metrics.json",
         "{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
         "nested deeper"},
        {"log.jsonl", "{\"event\":\"start\"}\n{\"event\":NaN}\n", "log.jsonl: line 2"},
        {"log.jsonl", "{}\n[1]\n", "log.jsonl: line 2: expected an object"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char run[16];
        snprintf(run, sizeof run, "r%zu", i);
        put(f, run, cases[i].file, cases[i].text);
        rt_status st = render(f, run, NULL);
        if (st == RT_OK || !strstr(rt_error_text(), cases[i].message))
            fail_msg("%s: %s instead of %s", cases[i].text, st == RT_OK ? "accepted" : rt_error_text(),
                     cases[i].message);
        assert_int_equal((int)f->page.len, 0);
    }
    put(f, "none", "other.txt", "");
    assert_int_equal(render(f, "none", NULL), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "not a run"));
    assert_int_equal(render(f, "nowhere", NULL), RT_E_INPUT);
    assert_int_equal(render(f, "none/other.txt", NULL), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "run directories"));
}

/* Null, in the place of anything, is absence. */
static void test_nulls(void **state) {
    fixture *f = *state;
    put(f, "a", "metrics.json",
        "{\"evaluation\":{\"classes\":null,\"sets\":{\"test\":{\"interval\":null,\"accuracy\":null,"
        "\"misclassification\":null},\"corrupt\":null},"
        "\"curves\":{\"roc\":null,\"line\":null,\"histogram\":{\"entropy\":null}},\"pictures\":null},"
        "\"average\":null}");
    OK(render(f, "a", NULL));
    assert_false(has(f, "id=\"average\""));
    put(f, "a", "metrics.json", "{\"evaluation\":null}");
    OK(render(f, "a", NULL));
    assert_int_equal(f->result.evaluated, 0);
}

/* Every allocation fails once; nothing leaks. */
static bool fail_nth(void *user, uint64_t call, size_t bytes) {
    uint64_t *left = user;
    (void)call;
    (void)bytes;
    return (*left)-- != 0;
}

static void test_allocations(void **state) {
    fixture *f = *state;
    put(f, "a", "metrics.json", MONTAGE("pictures/least.png"));
    put_n(f, "a", "pictures/least.png", one_pixel, sizeof one_pixel);
    put(f, "a", "log.jsonl", "{\"event\":\"epoch\",\"epoch\":1,\"train_loss\":0.5}\n");
    put(f, "a", "config.yaml", "data: \"spiral\"\n");
    const char *run = tmpdir_path(&f->tmp, "a");
    rt_alloc_stats before, after;
    rt_alloc_get_stats(&before);
    for (uint64_t n = 0;; n++) {
        uint64_t left = n;
        rt_str page;
        rt_report_result result;
        rt_str_init(&page);
        rt_alloc_set_hook(fail_nth, &left);
        rt_status st = rt_report_render(&page, &result, &run, 1, (rt_report_options){0});
        rt_alloc_set_hook(NULL, NULL);
        rt_str_deinit(&page);
        rt_report_result_deinit(&result);
        rt_alloc_get_stats(&after);
        assert_int_equal(after.live_blocks, before.live_blocks);
        if (st == RT_OK)
            break;
        assert_int_equal(st, RT_E_MEMORY);
        assert_true(n < 5000);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escape),
        cmocka_unit_test(test_base64),
        cmocka_unit_test(test_quote),
        cmocka_unit_test(test_assets),
        cmocka_unit_test(test_paths),
        TEST(test_table),
        TEST(test_different_data),
        TEST(test_missing_parts),
        TEST(test_hostile),
        TEST(test_names),
        TEST(test_thinned),
        TEST(test_pictures),
        TEST(test_large_pictures),
        TEST(test_refused),
        TEST(test_nulls),
        TEST(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
