/* Tables of more than numbers: what columns become, by values worked out by hand (dates and hashes by Python); fitted
 * to training rows only; read for a model by name. */
#include "data/frame.h"
#include "unit/data/data_support.h"

#include <math.h>

SCRATCH_OF_GROUP(s)

static rt_status open_for(rt_dataset **d, const char *text, const char *tail, const rt_data_like *like) {
    scratch_text(&s, "t.csv", text);
    return open_with(d, "csv", scratch_path(&s, "t.csv"), tail, (rt_data_options){.like = like});
}

static rt_dataset *opened(const char *text, const char *tail) {
    rt_dataset *d = NULL;
    if (open_for(&d, text, tail, NULL) != RT_OK)
        fail_msg("%s", rt_error_text());
    return d;
}

static void refused(const char *text, const char *tail, const rt_data_like *like, const char *word) {
    rt_dataset *d = NULL;
    const rt_status st = open_for(&d, text, tail, like);
    if (st == RT_OK || strstr(rt_error_text(), word) == NULL)
        fail_msg("wanted '%s', got %s: %s", word, rt_status_name(st), rt_error_text());
}

static void check_row(const rt_dataset *d, int64_t row, const float *want) {
    const int64_t width = rt_dataset_row(d).d[0];
    const float *x = rt_dataset_train(d)->f32 + row * width;
    for (int64_t k = 0; k < width; k++)
        if (!(fabsf(x[k] - want[k]) < 1e-5F))
            fail_msg("row %lld, feature %lld: %g, wanted %g", (long long)row, (long long)k, (double)x[k],
                     (double)want[k]);
}

/* red 4 times, blue 3, green 2 (rare) and a gap; numbers 1, 3, ..., 15 and two gaps: the median is 8. */
static const char mixed[] = "n, colour ,when,y\n"
                            "1,red,2024-02-29,1\n"
                            ",red,2024-03-01 06:00,2\n"
                            "3,\"red\",2024-02-29,3\n"
                            "5,red,2024-02-29,4\n"
                            "7,blue,2024-02-29,5\n"
                            "9,blue,2024-02-29,6\n"
                            "11,blue,2024-02-29,7\n"
                            "13,green,2024-02-29,8\n"
                            "15,green,2024-02-29,9\n"
                            "NA,?,,10\n";

static void test_features(void **state) {
    (void)state;
    rt_dataset *d = opened(mixed, ",test=0");
    /* n, n missing; blue, red, other, missing; date: years, sin, cos, Monday..Sunday, sin, cos, missing */
    assert_int_equal(rt_dataset_row(d).d[0], 2 + 4 + 13);
    static const float first[] = {1, 0, 0, 1, 0, 0, 54.161276F, 0.848598F, 0.529038F, 0,
                                  0, 0, 1, 0, 0, 0, 0,          1,         0};
    static const float second[] = {8, 1, 0, 1, 0, 0, 54.164699F, 0.859777F, 0.510669F, 0,
                                   0, 0, 0, 1, 0, 0, 1,          0,         0};
    static const float green[] = {13, 0, 0, 0, 1, 0, 54.161276F, 0.848598F, 0.529038F, 0,
                                  0,  0, 1, 0, 0, 0, 0,          1,         0};
    static const float last[] = {8, 1, 0, 0, 0, 1, 54.161276F, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    check_row(d, 0, first);
    check_row(d, 1, second);
    check_row(d, 7, green);
    check_row(d, 9, last);
    rt_str text;
    rt_str_init(&text);
    assert_int_equal(rt_dataset_columns(d), 3);
    const rt_column_info c = rt_dataset_column(d, 1, &text);
    assert_string_equal(c.name, "colour");
    assert_true(c.first == 2 && c.width == 4);
    assert_string_equal(rt_str_text(&text), "one-hot: blue, red, (other); marked where missing");
    rt_str_clear(&text);
    for (int k = 0; k < 4; k++)
        rt_dataset_feature(d, 1, k, &text);
    assert_string_equal(rt_str_text(&text), "colour=bluecolour=redcolour=(other)colour missing");
    rt_str_deinit(&text);
    rt_dataset_destroy(&d);
}

/* Rows that are not trained on change nothing, whatever they hold. */
static void test_fit_rows(void **state) {
    (void)state;
    char *table[2] = {NULL, NULL};
    for (int k = 0; k < 2; k++) {
        rt_str t;
        rt_str_init(&t);
        rt_str_append(&t, "n,c,y\n");
        for (int i = 0; i < 12; i++)
            rt_str_appendf(&t, "%d,%s,%d\n", i, i % 2 ? "odd" : "even", i);
        rt_str_append(&t, k ? ",strange,1\n1e9,strange,1\n1e9,strange,1\n" : "1,odd,1\n2,odd,1\n3,odd,1\n");
        rt_dataset *d = opened(rt_str_text(&t), ",test=0");
        rt_subset rows;
        int64_t index[12];
        for (int i = 0; i < 12; i++)
            index[i] = i;
        assert_ok(rt_subset_rows(&rows, rt_dataset_train(d), index, 12));
        assert_ok(rt_dataset_fit(d, &rows));
        table[k] = strdup(rt_dataset_table(d));
        static const float first[] = {0, 1, 0}, strange[] = {5.5, 0, 0};
        check_row(d, 0, first);
        if (k)
            check_row(d, 12, strange);
        rt_subset_deinit(&rows);
        rt_dataset_destroy(&d);
        rt_str_deinit(&t);
    }
    assert_string_equal(table[0], table[1]);
    assert_string_equal(table[0],
                        "{\"target\":\"y\",\"columns\":[{\"name\":\"n\",\"as\":\"number\",\"gaps\":false,"
                        "\"median\":5.5},{\"name\":\"c\",\"as\":\"one-hot\",\"gaps\":false,\"other\":false,"
                        "\"categories\":[\"even\",\"odd\"]}]}");
    free(table[0]);
    free(table[1]);
}

static void test_hashed(void **state) {
    (void)state;
    rt_str t;
    rt_str_init(&t);
    rt_str_append(&t, "shop,y\n");
    for (int i = 0; i < 1000; i++)
        rt_str_appendf(&t, "shop %d,%d\n", i % 100, i);
    rt_dataset *d = opened(rt_str_text(&t), ",test=0");
    assert_int_equal(rt_dataset_row(d).d[0], RT_HASH_WIDTH);
    float seven[RT_HASH_WIDTH] = {[6] = -1, [46] = -1, [53] = -1, [60] = 1};
    float ninety_nine[RT_HASH_WIDTH] = {[7] = 1, [8] = 1, [25] = 1, [28] = 1};
    check_row(d, 7, seven);
    check_row(d, 107, seven);
    check_row(d, 99, ninety_nine);
    rt_dataset_destroy(&d);
    rt_str_deinit(&t);
}

/* Many rows: the median without sorting, of negative and positive numbers, an even and an odd count. */
static void test_large_median(void **state) {
    (void)state;
    enum { N = 70000 };
    for (int odd = 0; odd < 2; odd++) {
        rt_str t;
        rt_str_init(&t);
        rt_str_append(&t, "x,z,y\n");
        for (int64_t i = 0; i < N + odd; i++)
            rt_str_appendf(&t, "%lld,%s,1\n", (long long)(i * 7919 % (N + odd)) - 35002, i % 3 ? "" : "-0.5");
        rt_dataset *d = opened(rt_str_text(&t), ",test=0");
        /* -35002 to 34997: the middle two are -3 and -2; with one more, to 34998: -2 */
        const char *want = odd ? "\"median\":-2}" : "\"median\":-2.5}";
        assert_non_null(strstr(rt_dataset_table(d), want));
        assert_non_null(strstr(rt_dataset_table(d), "\"median\":-0.5}"));
        rt_dataset_destroy(&d);
        rt_str_deinit(&t);
    }
}

static void test_kinds(void **state) {
    (void)state;
    rt_str t;
    rt_str_init(&t);
    rt_str_append(&t, "id,zip,y\n");
    for (int i = 0; i < 60; i++)
        rt_str_appendf(&t, "user-%d,%d,%d\n", i, 8000 + i % 3, i);
    refused(rt_str_text(&t), ",test=0", NULL, "60 different ones in 60 rows");
    refused(rt_str_text(&t), "", NULL, "drop=id");
    rt_dataset *d = opened(rt_str_text(&t), ",drop=id,category=zip,test=0");
    static const float first[] = {1, 0, 0}, second[] = {0, 1, 0};
    check_row(d, 0, first);
    check_row(d, 1, second);
    rt_dataset_destroy(&d);
    d = opened(rt_str_text(&t), ",use=zip,test=0"); /* a number by default */
    assert_int_equal(rt_dataset_row(d).d[0], 1);
    assert_true(rt_dataset_train(d)->f32[1] == 8001);
    rt_dataset_destroy(&d);
    d = opened(rt_str_text(&t), ",category=id,test=0"); /* told: hashed */
    assert_int_equal(rt_dataset_row(d).d[0], RT_HASH_WIDTH + 1);
    rt_dataset_destroy(&d);
    rt_str_deinit(&t);
    /* a category that is a number now and then; 2 texts of 3 */
    d = opened("c,y\n12,1\n3a,2\n3b,3\n", ",test=0");
    rt_dataset_destroy(&d);
    d = opened("c,e,y\n1,,1\n2,,2\n", ",test=0"); /* nothing in e */
    assert_int_equal(rt_dataset_row(d).d[0], 1);
    rt_dataset_destroy(&d);
}

static int64_t width_of(const char *text, const char *tail) {
    rt_dataset *d = opened(text, tail);
    const int64_t width = rt_dataset_row(d).d[0];
    rt_dataset_destroy(&d);
    return width;
}

/* The number of a row is no feature, whatever its name and wherever it begins, unless it is asked for. */
static void test_row_numbers(void **state) {
    (void)state;
    rt_str t;
    rt_str_init(&t);
    rt_str_append(&t, "x,Id,gaps,late,y\n");
    for (int i = 0; i < 30; i++)
        rt_str_appendf(&t, "%d,%lld,%.0d,%d,%d\n", i * 7 % 30, 5000000000LL + i, i, i < 29 ? i : 30, i);
    const char *text = rt_str_text(&t); /* gaps: nothing for the first 0 */
    rt_dataset *d = opened(text, ",test=0");
    rt_str becomes;
    rt_str_init(&becomes);
    assert_int_equal(rt_dataset_row(d).d[0], 1 + 2 + 1);
    rt_dataset_column(d, 1, &becomes);
    assert_string_equal(rt_str_text(&becomes), "nothing (it counts the rows)");
    rt_str_deinit(&becomes);
    const rt_data_like like = rt_dataset_like(d);
    rt_dataset *e = NULL; /* for the model it may be there or not, and count or not */
    assert_ok(open_for(&e, "x,gaps,late\n1,2,3\n", "", &like));
    rt_dataset_destroy(&e);
    assert_ok(open_for(&e, "x,Id,gaps,late\n1,77,2,3\n", "", &like));
    assert_int_equal(rt_dataset_row(e).d[0], 4);
    rt_dataset_destroy(&e);
    rt_dataset_destroy(&d);
    assert_int_equal(width_of(text, ",use=x+Id"), 2);
    assert_int_equal(width_of(text, ",use=x"), 1);
    assert_ok(open_with(&d, "csv", scratch_path(&s, "t.csv"), "", (rt_data_options){.older = true}));
    assert_int_equal(rt_dataset_row(d).d[0], 5);
    rt_dataset_destroy(&d);
    assert_int_equal(width_of("n,x,y\n1,5,1\n2,7,2\n3,6,3\n", ",test=0"), 2); /* too few to be sure */
    rt_str_deinit(&t);
    rt_str_init(&t);
    rt_str_append(&t, "x,y\n");
    for (int i = 0; i < 30; i++)
        rt_str_appendf(&t, "%d,%d\n", i, i % 4);
    assert_int_equal(width_of(rt_str_text(&t), ",test=0"), 1); /* there is nothing else */
    rt_str_deinit(&t);
}

/* Numbers and dates in a dress are refused with advice, or told about. */
static void test_written(void **state) {
    (void)state;
    static const char *const forms[][2] = {
        {"$", ".50"}, {"", "%"}, {"\"1,0", ".5\""}, {"", "/31/2024"}, {"\xe2\x82\xac ", ""}};
    for (int k = 0; k < 5; k++) {
        rt_str t;
        rt_str_init(&t);
        rt_str_append(&t, "a,y\n");
        for (int i = 0; i < 60; i++)
            rt_str_appendf(&t, "%s%02d%s,%d\n", forms[k][0], i, forms[k][1], i % 4);
        refused(rt_str_text(&t), "", NULL, k == 3 ? "write 2024-12-31" : "a number with signs or separators");
        rt_str_deinit(&t);
    }
    refused("a,y\n1,1\n2,2\n$3,3\n", "", NULL,
            "line 4, column 1 (a): '$3' is not a number, but 2 rows have one (a number");
    refused("a,y\n1,5\n2,$3\n", ",task=regression", NULL, "'$3' is not a number (a number with signs");
    assert_null(rt_text_advice("A-1", 3));
    assert_null(rt_text_advice("-", 1));
    assert_null(rt_text_advice("20-29", 5)); /* ages */
    rt_str t;
    rt_str_init(&t);
    rt_str_append(&t, "a,b,y\n1,2,3\n");
    for (int i = 0; i < 7000; i++)
        rt_str_append(&t, "1234567890");
    rt_str_append(&t, ",5,6\n");
    refused(rt_str_text(&t), "", NULL, "line 3, column 1 (a): 70000 bytes, wanted at most 65536");
    assert_int_equal(width_of(rt_str_text(&t), ",drop=a,test=0"), 1);
    rt_str_deinit(&t);
}

/* Rows without an answer: refused with the way out, or left out. */
static void test_unlabelled_rows(void **state) {
    (void)state;
    static const char text[] = "x,c,y\n1,u,10\n2,v,\n3,u,30\n4,v,NA\n5,u,50\n";
    refused(text, "", NULL,
            "line 3, column 3 (y) has no value, and it is the target (2 rows: unlabelled=skip");
    rt_dataset *d = opened(text, ",unlabelled=skip,test=0");
    static const float x[] = {1, 1, 3, 1, 5, 1}, y[] = {10, 30, 50};
    assert_int_equal(rt_dataset_train(d)->n, 3);
    assert_memory_equal(rt_dataset_train(d)->f32, x, sizeof x);
    assert_memory_equal(rt_dataset_train(d)->target, y, sizeof y);
    assert_ok(rt_dataset_encode_as(d, "{\"columns\":[{\"name\":\"x\",\"as\":\"hashed\",\"gaps\":false}]}"));
    assert_int_equal(rt_dataset_row(d).d[0], RT_HASH_WIDTH); /* read again: the same rows */
    rt_dataset_destroy(&d);
    d = opened("x,y\n1,a\n2,\n3,b\n", ",unlabelled=skip,test=0");
    assert_true(rt_dataset_train(d)->n == 2 && rt_dataset_train(d)->label[1] == 1);
    rt_dataset_destroy(&d);
    refused("x,y\n1,\n2,\n", ",unlabelled=skip", NULL, "has no value");
    refused(text, ",unlabelled=keep", NULL, "wanted refuse or skip");
    refused(text, ",unlabelled=skip,splits=s.txt", NULL, "row numbers of the whole file");
}

static void test_forms(void **state) {
    (void)state;
    static const float x[] = {1.5F, 2, -4.5F, 50};
    static const struct {
        const char *text, *tail;
    } forms[] = {
        {"a;b;y\n1.5;2;3\n-4.5;50;6\n", ",test=0"},
        {"a\tb\ty\r\n1.5\t2\t3\r\n-4.5\t50\t6\r\n", ",test=0"},
        {"a;b;y\n1,5;2;3\n-4,5;5e1;6\n", ",test=0,decimal=comma"},
        {"a;\"b,c\";y\n1.5;2;3\n-4.5;50;6\n", ",test=0"},
        {"a,b;c,y\n1.5,2,3\n-4.5,50,6\n", ",test=0"},
        {"\xef\xbb\xbf,a, b b ,y\n0,1.5,2,3\n1,-4.5,50,6\n", ",test=0"}, /* rows counted, as pandas does */
        {"a,\"b\n\"\"c\"\"\",y\n1.5,2,3\n-4.5,50,6\n", ",test=0"},
        {"x,a,b,y\nfoo,1.5,2,3\nbar,-4.5,50,6\n", ",test=0,use=a+b"},
        {"a+b,a,b,y\nfoo,1.5,2,3\nbar,-4.5,50,6\n", ",test=0,drop=a+b"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        rt_dataset *d = opened(forms[i].text, forms[i].tail);
        assert_int_equal(rt_dataset_row(d).d[0], 2);
        assert_memory_equal(rt_dataset_train(d)->f32, x, sizeof x);
        assert_true(rt_dataset_train(d)->target[1] == 6);
        rt_dataset_destroy(&d);
    }
}

static void test_for_a_model(void **state) {
    (void)state;
    rt_dataset *d = opened("a,c,id,kind\n1,u,x,yes\n2,v,x,no\n3,u,x,maybe\n4,v,x,no\n5,u,x,no\n6,v,x,yes\n",
                           ",drop=id,test=0");
    const rt_data_like like = rt_dataset_like(d);
    static const char *const other_order[] = {
        "c,kind,a\nv,no,7\nw,yes,\n", "a,c\n7,v\n,w\n", "id,c,a,kind\nq,v,7,\nq,w,?,\n",
        ",c,a\n0,v,7\n1,w,\n", /* an index column */
    };
    for (int i = 0; i < 4; i++) {
        rt_dataset *e = NULL;
        if (open_for(&e, other_order[i], i ? "" : ",test=1", &like) != RT_OK)
            fail_msg("case %d: %s", i, rt_error_text());
        const rt_part *p = rt_dataset_test(e);
        static const float x[] = {7,   0, 1,
                                  3.5, 0, 0}; /* a: median for the gap; c=u, c=v: 0 for the unseen w */
        assert_int_equal(p->n, 2);
        assert_memory_equal(p->f32, x, sizeof x);
        assert_int_equal(rt_dataset_task(e), RT_TASK_CLASSIFICATION);
        assert_int_equal(rt_dataset_classes(e), 3);
        assert_true(i == 0 ? p->label[0] == 1 && p->label[1] == 2 : p->label == NULL);
        rt_dataset_destroy(&e);
    }
    refused("c\nu\n", "", &like, "missing: a");
    refused("a,b,c\n1,2,u\n", "", &like, "unknown: b (drop=NAME");
    refused("A,c\n1,u\n", "", &like, "missing: a; unknown: A");
    refused("a,c\nred,u\n", "", &like, "line 2, column 1 (a): 'red' is not a number");
    refused("a,c,kind\n1,u,perhaps\n", "", &like, "the model has no class 'perhaps'");
    refused("a,c,kind\n1,u,yes\n1,u,\n", "", &like, "line 3, column 3 (kind) has no value");
    rt_dataset *e = NULL;
    assert_ok(open_for(&e, "b,a,c\n1,1,u\n", ",drop=b", &like));
    rt_dataset_destroy(&e);
    rt_dataset_destroy(&d);
}

/* One table, encoded as two models want it in turn. */
static void test_encode_as(void **state) {
    (void)state;
    rt_dataset *d = opened(mixed, ",test=0");
    char *full = strdup(rt_dataset_table(d)), *before = strdup(rt_dataset_hash(d));
    assert_ok(rt_dataset_encode_as(
        d, "{\"target\":\"y\",\"columns\":[{\"name\":\"colour\",\"as\":\"one-hot\",\"gaps\":false,\"other\":"
           "false,"
           "\"categories\":[\"green\"]},{\"name\":\"n\",\"as\":\"number\",\"gaps\":false,\"median\":-1}]}"));
    static const float last[] = {0, -1}, green[] = {1, 13};
    assert_int_equal(rt_dataset_row(d).d[0], 2);
    check_row(d, 9, last);
    check_row(d, 7, green);
    assert_string_not_equal(rt_dataset_hash(d), before);
    assert_ok(rt_dataset_encode_as(d, full));
    assert_string_equal(rt_dataset_hash(d), before);
    /* numbers as categories, and back: the file is read again, by the model's kinds */
    assert_ok(rt_dataset_encode_as(
        d, "{\"columns\":[{\"name\":\"n\",\"as\":\"one-hot\",\"gaps\":true,\"other\":true,"
           "\"categories\":[\"1\",\"3\"]}]}"));
    static const float one[] = {1, 0, 0, 0}, gap[] = {0, 0, 0, 1}, other[] = {0, 0, 1, 0};
    check_row(d, 0, one);
    check_row(d, 1, gap);
    check_row(d, 3, other);
    assert_true(rt_dataset_train(d)->target[3] == 4);
    assert_ok(rt_dataset_encode_as(d, full));
    assert_string_equal(rt_dataset_hash(d), before);
    static const char *const bad[] = {
        "{\"columns\":[{\"name\":\"colour\",\"as\":\"number\",\"gaps\":false,\"median\":1}]}",
        "",
        "{}",
        "[]",
        "{\"columns\":[]}",
        "{\"columns\":[{\"name\":\"n\"}]}",
        "{\"columns\":[{\"name\":\"n\",\"as\":\"number\",\"gaps\":false}]}",
        "{\"columns\":[{\"name\":\"n\",\"as\":\"word\",\"gaps\":false,\"median\":1}]}",
        "{\"columns\":[{\"name\":\"n\",\"as\":\"number\",\"gaps\":false,\"median\":1e300}]}",
        "{\"columns\":[{\"name\":\"n\",\"as\":\"nothing\",\"why\":\"dropped\"}]}",
        "{\"columns\":[{\"name\":\"n\",\"as\":\"date\",\"gaps\":false,\"clock\":true,\"median\":1}]}",
        "{\"columns\":[{\"name\":\"m\",\"as\":\"number\",\"gaps\":false,\"median\":1}]}",
        "{\"columns\":[{\"name\":\"y\",\"as\":\"number\",\"gaps\":false,\"median\":1}]}",
        "{\"columns\":[{\"name\":\"n\",\"as\":\"number\",\"gaps\":false,\"median\":1},{\"name\":\"n\",\"as\":"
        "\"hashed\","
        "\"gaps\":false}]}",
        "{\"columns\":[{\"name\":\"colour\",\"as\":\"one-hot\",\"gaps\":false,\"other\":false,\"categories\":"
        "[\"b\","
        "\"a\"]}]}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (rt_dataset_encode_as(d, bad[i]) != RT_E_INPUT)
            fail_msg("case %zu was taken", i);
    assert_string_equal(rt_dataset_hash(d), before);
    free(full);
    free(before);
    rt_dataset_destroy(&d);
}

static void test_dates(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double seconds;
    } good[] = {
        {"2024-02-29", 1709164800},       {"2024-2-29", 1709164800},
        {"2024/02/29", 1709164800},       {"29.2.2024", 1709164800},
        {"2024-03-01 06:00", 1709272800}, {"2024-03-01T06:00:00", 1709272800},
        {"1969-12-31T23:59:30Z", -30},    {"2000-01-01T00:00:00.25+01:00", 946681200.25},
        {"1900-01-01", -2208988800},
    };
    static const char *const bad[] = {"2023-02-29",       "2024-13-01",   "2024-00-10",      "2024-1-32",
                                      "3/4/2024",         "24-03-2001",   "2024-03",         "2024-03-01T",
                                      "2024-03-01 24:00", "2024-03-01x",  "20240301",        "2024-03/01",
                                      "1.3.24",           "2024-03-01 6", "1900-02-29 10:00"};
    double v;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!rt_parse_date(good[i].text, strlen(good[i].text), &v) || fabs(v - good[i].seconds) > 1e-6)
            fail_msg("%s: %.3f", good[i].text, v);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (rt_parse_date(bad[i], strlen(bad[i]), &v))
            fail_msg("%s was taken for a date", bad[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),        cmocka_unit_test(test_fit_rows),
        cmocka_unit_test(test_hashed),          cmocka_unit_test(test_large_median),
        cmocka_unit_test(test_kinds),           cmocka_unit_test(test_forms),
        cmocka_unit_test(test_row_numbers),     cmocka_unit_test(test_written),
        cmocka_unit_test(test_unlabelled_rows), cmocka_unit_test(test_for_a_model),
        cmocka_unit_test(test_encode_as),       cmocka_unit_test(test_dates),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
