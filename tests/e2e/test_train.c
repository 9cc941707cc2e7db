/*
 * test_train.c - whole runs on tiny problems: they learn, they can be interrupted anywhere, threads do not
 * matter, and a failed save harms nothing.
 *
 * Equality is judged by the SHA-256 of the model files.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/sha256.h"
#include "config/config.h"
#include "model/model.h"
#include "support/flags.h"
#include "support/root.h"
#include "train/train.h"
#include <errno.h>

/* ---- running ---- */

static const flag SPIRAL[] = {{"data", "spiral:n=100,noise=0.2,arms=3"},
                              {"arch", "mlp:16,16"},
                              {"dropout", "0.05"},
                              {"epochs", "4"},
                              {"batch", "32"},
                              {"valid", "60"},
                              {"lr", "0.05"},
                              {"members", "3"},
                              {"checkpoint-every", "0"},
                              {NULL, NULL}};

static rt_status train_with(const char *name, const flag *base, const flag *more, const rt_train_hooks *hooks,
                            rt_train_result *r) {
    rt_config c;
    rt_train_result ignored;
    configure(&c, RT_VERB_TRAIN, base);
    set_flag(&c, RT_VERB_TRAIN, "out", in_root(name));
    set_flags(&c, RT_VERB_TRAIN, more);
    rt_status st = rt_train_run(&c, hooks, r ? r : &ignored);
    rt_config_deinit(&c);
    return st;
}

/* SHA-256 of the model files of a run, joined. */
static void hash_run(const char *name, char hex[65]) {
    char **names;
    int64_t n;
    rt_sha256 sha;
    uint8_t digest[32];
    rt_sha256_init(&sha);
    assert_int_equal(rt_dir_list(in_root(name), &names, &n), RT_OK);
    int files = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!rt_str_ends(names[i], ".safetensors"))
            continue;
        char *path;
        uint8_t *data;
        size_t bytes;
        assert_int_equal(rt_path_join(&path, in_root(name), names[i]), RT_OK);
        assert_int_equal(rt_file_read(path, 1 << 30, &data, &bytes), RT_OK);
        rt_sha256_update(&sha, names[i], strlen(names[i]) + 1);
        rt_sha256_update(&sha, data, bytes);
        rt_free(path);
        rt_free(data);
        files++;
    }
    assert_true(files > 0);
    rt_names_free(names, n);
    rt_sha256_final(&sha, digest);
    rt_sha256_hex(digest, hex);
}

static bool has_file(const char *name, const char *file) {
    char path[1200];
    snprintf(path, sizeof path, "%s/%s", in_root(name), file);
    return rt_file_exists(path);
}

/* ---- tests ---- */

static void test_learns(void **state) {
    (void)state;
    rt_train_result r;
    static const flag more[] = {{"data", "spiral:n=300,noise=0.1"},
                                {"arch", "mlp:64,64"},
                                {"dropout", "0"},
                                {"epochs", "60"},
                                {"members", "2"},
                                {"optimiser", "adam"},
                                {"lr", "0.01"},
                                {"weight-decay", "0"},
                                {NULL, NULL}};
    expect(train_with("learns", SPIRAL, more, NULL, &r), RT_OK);
    if (!(r.valid_accuracy > 0.8))
        fail_msg("accuracy %g, loss %g", r.valid_accuracy, r.valid_loss);
    assert_int_equal(r.members, 2);
    assert_int_equal(r.steps, 60 * 27);
    assert_true(r.samples_per_s > 0 && isfinite(r.train_loss));
    assert_true(has_file("learns", "member-001.safetensors") && has_file("learns", "metrics.json"));
    assert_true(has_file("learns", "log.jsonl") && has_file("learns", "config.yaml"));
    assert_false(has_file("learns", "checkpoint.safetensors"));
}

/* A model loads from its directory, fits its data, and predicts as well as its validation said. */
static void test_model(void **state) {
    (void)state;
    rt_model *m;
    rt_dataset *d;
    rt_pool *pool;
    expect(rt_model_load(&m, in_root("learns")), RT_OK);
    assert_int_equal(rt_model_members(m), 2);
    assert_int_equal(rt_model_outputs(m), 3);
    assert_non_null(rt_model_meta(m, "provenance"));
    expect(rt_dataset_open(&d, "spiral:n=300,noise=0.1", (rt_data_options){.seed = 1}), RT_OK);
    expect(rt_model_check_data(m, d), RT_OK);
    const rt_part *p = rt_dataset_train(d);
    float *a = malloc((size_t)p->n * 6 * sizeof *a), *b = malloc((size_t)p->n * 6 * sizeof *b);
    for (int threads = 1; threads <= 3; threads++) {
        expect(rt_pool_create(&pool, threads), RT_OK);
        expect(rt_model_predict(m, p, pool, threads == 1 ? a : b, NULL), RT_OK);
        if (threads > 1)
            assert_memory_equal(a, b, (size_t)p->n * 6 * sizeof *a);
        rt_pool_destroy(&pool);
    }
    int right = 0;
    for (int64_t i = 0; i < p->n; i++) {
        const float *z = a + i * 6;
        int best = z[1] > z[0] ? 1 : 0;
        right += (z[2] > z[best] ? 2 : best) == p->label[i];
    }
    assert_true(right > 0.8 * (double)p->n);
    volatile sig_atomic_t stop = 1;
    expect(rt_pool_create(&pool, 2), RT_OK);
    expect(rt_model_predict(m, p, pool, a, &stop), RT_E_INTERRUPTED);
    rt_pool_destroy(&pool);
    rt_dataset_destroy(&d);
    expect(rt_dataset_open(&d, "spiral:n=50,arms=2", (rt_data_options){.seed = 1}), RT_OK);
    expect(rt_model_check_data(m, d), RT_E_INPUT);
    rt_dataset_destroy(&d);
    rt_model_destroy(&m);
    free(a);
    free(b);
}

static void test_threads_do_not_matter(void **state) {
    (void)state;
    char want[65], have[65];
    static const flag cases[][6] = {
        {{NULL, NULL}},
        {{"members", "1"}, {"clip-norm", "0.5"}, {"valid", "0"}, {NULL, NULL}},
        {{"members", "5"},
         {"optimiser", "adamw"},
         {"drop-last", "true"},
         {"label-smoothing", "0.1"},
         {"keep", "last"},
         {NULL, NULL}},
    };
    for (int k = 0; k < 3; k++) {
        for (int threads = 1; threads <= 4; threads++) {
            char name[32], count[8];
            snprintf(name, sizeof name, "threads-%d-%d", k, threads);
            snprintf(count, sizeof count, "%d", threads);
            flag more[8] = {{"threads", count}};
            memcpy(more + 1, cases[k], sizeof cases[k]);
            expect(train_with(name, SPIRAL, more, NULL, NULL), RT_OK);
            hash_run(name, threads == 1 ? want : have);
            if (threads > 1)
                assert_string_equal(want, have);
        }
    }
}

/* Stop after every step of the run in turn, continue with another number of threads. */
static void test_resume_is_exact(void **state) {
    (void)state;
    char want[65], have[65];
    expect(train_with("whole", SPIRAL, NULL, NULL, NULL), RT_OK);
    hash_run("whole", want);
    int64_t steps = 4 * 8;
    for (int64_t at = 1; at <= steps; at += at < 17 ? 1 : 5) {
        char name[32], count[24];
        snprintf(name, sizeof name, "stop-%d", (int)at);
        snprintf(count, sizeof count, "%d", (int)at);
        expect(train_with(name, SPIRAL, (const flag[]){{"stop-after", count}, {"threads", "2"}, {NULL, NULL}},
                          NULL, NULL),
               RT_E_INTERRUPTED);
        assert_true(has_file(name, "checkpoint.safetensors"));
        assert_false(has_file(name, "metrics.json"));
        expect(train_with(name, NULL, (const flag[]){{"resume", "true"}, {"threads", "3"}, {NULL, NULL}},
                          NULL, NULL),
               RT_OK);
        hash_run(name, have);
        if (strcmp(want, have) != 0)
            fail_msg("stopped after step %d: other weights", (int)at);
        assert_false(has_file(name, "checkpoint.safetensors"));
    }
    /* several stops in one run, which has to begin without it */
    expect(train_with("often", SPIRAL, (const flag[]){{"resume", "true"}, {NULL, NULL}}, NULL, NULL),
           RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "there is no run in"));
    for (int at = 3; at < steps; at += 7) {
        char count[24];
        snprintf(count, sizeof count, "%d", at);
        expect(train_with(
                   "often", SPIRAL,
                   (const flag[]){{"stop-after", count}, {"resume", at > 3 ? "true" : "false"}, {NULL, NULL}},
                   NULL, NULL),
               RT_E_INTERRUPTED);
    }
    expect(train_with("often", SPIRAL, (const flag[]){{"resume", "true"}, {NULL, NULL}}, NULL, NULL), RT_OK);
    hash_run("often", have);
    assert_string_equal(want, have);
}

/* The log of an interrupted run says the same about every epoch as that of a whole one. */
static void test_resumed_log(void **state) {
    (void)state;
    char *texts[2][16];
    int counts[2] = {0, 0};
    uint8_t *data[2];
    for (int k = 0; k < 2; k++) {
        char path[1200];
        size_t n;
        snprintf(path, sizeof path, "%s/log.jsonl", in_root(k ? "often" : "whole"));
        expect(rt_file_read(path, 1 << 20, &data[k], &n), RT_OK);
        char *save = NULL;
        for (char *line = strtok_r((char *)data[k], "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
            char *from = strstr(line, "\"lr\""), *to = strstr(line, "\"samples_per_s\"");
            if (!strstr(line, "\"event\":\"epoch\""))
                continue;
            assert_true(from && to && counts[k] < 16);
            *to = 0;
            texts[k][counts[k]++] = from;
        }
    }
    assert_int_equal(counts[0], 4);
    assert_int_equal(counts[1], 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(texts[0][i], texts[1][i]);
    rt_free(data[0]);
    rt_free(data[1]);
}

/* Raises the stop flag at the first progress report of the wanted kind. */
typedef struct stopper {
    volatile sig_atomic_t flag;
    int calls, at;
    char note[64];
} stopper;

static void on_progress(void *user, const rt_progress *p) {
    stopper *s = user;
    if (p->note)
        snprintf(s->note, sizeof s->note, "%s", p->note);
    if (++s->calls >= s->at && s->at > 0)
        s->flag = 1;
}

static void test_stop_flag(void **state) {
    (void)state;
    char want[65], have[65];
    hash_run("whole", want);
    stopper s = {.flag = 1};
    rt_train_hooks hooks = {.progress = on_progress, .user = &s, .stop = &s.flag};
    expect(train_with("flag", SPIRAL, NULL, &hooks, NULL), RT_E_INTERRUPTED);
    for (int turn = 0; turn < 2; turn++) {
        s = (stopper){
            .at = 2}; /* the first report of a session is its note, the second that of a step or an epoch */
        expect(train_with("flag", SPIRAL, (const flag[]){{"resume", "true"}, {NULL, NULL}}, &hooks, NULL),
               RT_E_INTERRUPTED);
        assert_true(rt_str_starts(s.note, "resumed at epoch"));
    }
    s = (stopper){.at = 0};
    expect(train_with("flag", SPIRAL, (const flag[]){{"resume", "true"}, {NULL, NULL}}, &hooks, NULL), RT_OK);
    hash_run("flag", have);
    assert_string_equal(want, have);
}

static void test_existing_runs(void **state) {
    (void)state;
    char want[65], have[65];
    rt_train_result r;
    hash_run("whole", want);
    expect(train_with("whole", SPIRAL, NULL, NULL, NULL), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "--force"));
    stopper s = {.at = 0};
    rt_train_hooks hooks = {.progress = on_progress, .user = &s};
    expect(train_with("whole", NULL, (const flag[]){{"resume", "true"}, {NULL, NULL}}, &hooks, &r), RT_OK);
    assert_string_equal(s.note, "this run is already finished");
    assert_int_equal(r.members, 3);
    assert_true(isfinite(r.valid_loss));
    expect(train_with("whole", SPIRAL,
                      (const flag[]){{"resume", "true"}, {"lr", "0.2"}, {"epochs", "5"}, {NULL, NULL}}, NULL,
                      NULL),
           RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "lr (0.05, now 0.2)"));
    assert_non_null(strstr(rt_error_text(), "epochs (4, now 5)"));
    expect(train_with("unfinished", SPIRAL, (const flag[]){{"stop-after", "3"}, {NULL, NULL}}, NULL, NULL),
           RT_E_INTERRUPTED);
    expect(train_with("unfinished", SPIRAL, NULL, NULL, NULL), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "--resume"));
    expect(train_with("unfinished", SPIRAL, (const flag[]){{"force", "true"}, {NULL, NULL}}, NULL, NULL),
           RT_OK);
    hash_run("unfinished", have);
    assert_string_equal(want, have);
    rt_model *m;
    expect(train_with("half", SPIRAL, (const flag[]){{"stop-after", "3"}, {NULL, NULL}}, NULL, NULL),
           RT_E_INTERRUPTED);
    expect(rt_model_load(&m, in_root("half")), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "not finished"));
}

static void test_lock(void **state) {
    (void)state;
    rt_lock *lock;
    expect(rt_dir_make(in_root("locked")), RT_OK);
    expect(rt_lock_take(&lock, in_root("locked")), RT_OK);
    expect(train_with("locked", SPIRAL, NULL, NULL, NULL), RT_E_LOCKED);
    rt_lock_release(&lock);
    expect(train_with("locked", SPIRAL, NULL, NULL, NULL), RT_OK);
}

static void test_usage(void **state) {
    (void)state;
    static const struct {
        flag more[4];
        rt_status want;
        const char *says;
    } cases[] = {
        {{{"valid", "300"}, {NULL, NULL}}, RT_E_USAGE, "--valid"},
        {{{"valid", "10.5"}, {NULL, NULL}}, RT_E_USAGE, "--valid"},
        {{{"schedule", "linear"}, {NULL, NULL}}, RT_E_USAGE, "schedule"},
        {{{"augment", "blur"}, {NULL, NULL}}, RT_E_USAGE, "blur"},
        {{{"arch", "mpl:3"}, {NULL, NULL}}, RT_E_USAGE, "mpl"},
    };
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        expect(train_with("usage", SPIRAL, cases[i].more, NULL, NULL), cases[i].want);
        if (!strstr(rt_error_text(), cases[i].says))
            fail_msg("'%s' does not say '%s'", rt_error_text(), cases[i].says);
        assert_false(rt_dir_exists(in_root("usage"))); /* nothing was written */
    }
    expect(train_with("usage", SPIRAL + 1, NULL, NULL, NULL), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "--data"));
}

static void test_diverging(void **state) {
    (void)state;
    expect(train_with("diverges", SPIRAL,
                      (const flag[]){{"lr", "1000"}, {"momentum", "1"}, {"epochs", "50"}, {NULL, NULL}}, NULL,
                      NULL),
           RT_E_NUMERIC);
    assert_non_null(strstr(rt_error_text(), "member"));
    assert_false(has_file("diverges", "metrics.json"));
}

/* ---- a disk that fills up ---- */

static int64_t budget; /* bytes that can still be written */
static ssize_t short_write(int fd, const void *buf, size_t n) {
    if (budget <= 0) {
        errno = ENOSPC;
        return -1;
    }
    size_t k = RT_MIN(n, (size_t)budget);
    budget -= (int64_t)k;
    return rt_io_posix.write(fd, buf, k);
}

static void test_full_disk(void **state) {
    (void)state;
    char want[65], before[65], after[65], have[65];
    hash_run("whole", want);
    expect(train_with("full", SPIRAL, (const flag[]){{"stop-after", "5"}, {NULL, NULL}}, NULL, NULL),
           RT_E_INTERRUPTED);
    hash_run("full", before); /* the checkpoint is the only file of this kind */
    rt_io io = rt_io_posix;
    io.write = short_write;
    for (int64_t bytes = 0; bytes < 12000; bytes += 3000) {
        budget = bytes;
        rt_io_set(&io);
        rt_status st =
            train_with("full", SPIRAL, (const flag[]){{"resume", "true"}, {"stop-after", "6"}, {NULL, NULL}},
                       NULL, NULL);
        rt_io_set(NULL);
        expect(st, RT_E_IO);
        hash_run("full", after);
        assert_string_equal(before, after);
    }
    expect(train_with("full", SPIRAL, (const flag[]){{"resume", "true"}, {NULL, NULL}}, NULL, NULL), RT_OK);
    hash_run("full", have);
    assert_string_equal(want, have);
}

/* ---- memory that runs out ---- */

typedef struct fault {
    uint64_t count, at;
} fault;

static bool fail_at(void *user, uint64_t call, size_t bytes) {
    fault *f = user;
    (void)call;
    (void)bytes;
    return ++f->count != f->at;
}

/* Every sampled allocation of a run fails once: an error with its message, nothing leaked, and the directory
 * can be used again. */
static void test_no_memory(void **state) {
    (void)state;
    static const flag small[] = {
        {"epochs", "1"}, {"members", "2"}, {"threads", "2"}, {"force", "true"}, {NULL, NULL}};
    fault f = {0};
    rt_alloc_stats before, after;
    rt_alloc_set_hook(fail_at, &f);
    expect(train_with("memory", SPIRAL, small, NULL, NULL), RT_OK);
    uint64_t calls = f.count;
    rt_alloc_get_stats(&before);
    int refused = 0;
    for (uint64_t at = 60; at <= calls;
         at += 1 + calls / 150) { /* the first ones set the flags of this test */
        rt_config c;
        rt_train_result r;
        rt_alloc_set_hook(NULL, NULL);
        configure(&c, RT_VERB_TRAIN, SPIRAL);
        set_flags(&c, RT_VERB_TRAIN, small);
        set_flag(&c, RT_VERB_TRAIN, "out", in_root("memory"));
        f = (fault){.at = at};
        rt_error_clear();
        rt_alloc_set_hook(fail_at, &f);
        rt_status st = rt_train_run(&c, NULL, &r);
        rt_alloc_set_hook(NULL, NULL);
        rt_config_deinit(&c);
        if (st != RT_OK && *rt_error_text() == 0)
            fail_msg("allocation %d: no message", (int)at);
        refused += st != RT_OK;
    }
    rt_alloc_get_stats(&after);
    assert_int_equal(before.live_blocks, after.live_blocks);
    assert_true(refused > 100);
    expect(train_with("memory", SPIRAL, small, NULL, NULL), RT_OK);
}

/* One wrong bit anywhere in a checkpoint or a model is noticed. */
static void test_damage(void **state) {
    (void)state;
    static const char *const files[] = {"half/checkpoint.safetensors", "learns/member-001.safetensors"};
    for (int k = 0; k < 2; k++) {
        const char *path = in_root(files[k]);
        char keep[1200];
        uint8_t *data;
        size_t n;
        strcpy(keep, path);
        expect(rt_file_read(keep, 1 << 30, &data, &n), RT_OK);
        for (size_t at = 9; at < n; at += n / 37) {
            data[at] ^= 4;
            expect(rt_file_write_atomic(keep, data, n), RT_OK);
            rt_model *m = NULL;
            rt_status st =
                k ? rt_model_load(&m, in_root("learns"))
                  : train_with("half", SPIRAL,
                               (const flag[]){{"resume", "true"}, {"stop-after", "4"}, {NULL, NULL}}, NULL,
                               NULL);
            rt_model_destroy(&m);
            if (st != RT_E_INPUT)
                fail_msg("byte %zu of %s: %s", at, keep, rt_status_name(st));
            data[at] ^= 4;
        }
        expect(rt_file_write_atomic(keep, data, n), RT_OK);
        rt_free(data);
    }
}

static void test_missing_member(void **state) {
    (void)state;
    rt_model *m;
    unlink(in_root("whole/member-002.safetensors"));
    expect(rt_model_load(&m, in_root("whole")), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "2 of 3 member files"));
    unlink(in_root("whole/member-000.safetensors"));
    expect(rt_model_load(&m, in_root("whole")), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "1 of 2 member files"));
    expect(rt_model_load(&m, in_root("nowhere")), RT_E_INPUT);
}

/* Regression learns, and predicts in the target's own units. */
static void test_regression(void **state) {
    (void)state;
    rt_str csv;
    rt_str_init(&csv);
    rt_str_append(&csv, "a,b,y\n");
    for (int i = 0; i < 200; i++) {
        double a = (i * 37 % 100) / 50.0 - 1, b = (i * 61 % 100) / 50.0 - 1;
        rt_str_appendf(&csv, "%.4f,%.4f,%.4f\n", a, b, 1000 + 30 * a - 20 * b);
    }
    const char *path = in_root("line.csv");
    char spec[1300], file[1200];
    strcpy(file, path);
    expect(rt_file_write_atomic(file, csv.p, csv.len), RT_OK);
    snprintf(spec, sizeof spec, "csv:%s,target=y,task=regression", file);
    rt_str_deinit(&csv);
    const flag more[] = {{"data", spec},        {"arch", "mlp:16"}, {"epochs", "60"}, {"members", "1"},
                         {"optimiser", "adam"}, {"lr", "0.01"},     {"valid", "0.2"}, {"weight-decay", "0"},
                         {"dropout", "0"},      {NULL, NULL}};
    rt_train_result r;
    expect(train_with("line", SPIRAL, more, NULL, &r), RT_OK);
    assert_true(isnan(r.valid_accuracy) &&
                r.valid_loss < 0.5 + log(21)); /* in units of the target, whose deviation is 21 */
    rt_model *m;
    rt_dataset *d;
    rt_pool *pool;
    expect(rt_model_load(&m, in_root("line")), RT_OK);
    expect(rt_dataset_open(&d, spec, (rt_data_options){.seed = 1}), RT_OK);
    expect(rt_model_check_data(m, d), RT_OK);
    expect(rt_pool_create(&pool, 2), RT_OK);
    const rt_part *p = rt_dataset_train(d);
    float *out = malloc((size_t)p->n * 2 * sizeof *out);
    expect(rt_model_predict(m, p, pool, out, NULL), RT_OK);
    double error = 0;
    for (int64_t i = 0; i < p->n; i++) {
        error += pow((double)out[2 * i] - (double)p->target[i], 2) / (double)p->n;
        assert_true(out[2 * i + 1] > 0);
    }
    if (!(sqrt(error) < 8))
        fail_msg("RMSE %g", sqrt(error));
    free(out);
    rt_pool_destroy(&pool);
    rt_dataset_destroy(&d);
    rt_model_destroy(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_resume_is_exact),
        cmocka_unit_test(test_resumed_log),
        cmocka_unit_test(test_stop_flag),
        cmocka_unit_test(test_existing_runs),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_usage),
        cmocka_unit_test(test_diverging),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_regression),
        cmocka_unit_test(test_missing_member),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
