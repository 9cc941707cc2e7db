/*
 * test_distill.c - whole distillations on a tiny problem: every preset runs, goes on after an interruption to
 * the same bits, and does not notice threads; teachers from runs and from files teach the same; what does not
 * fit is refused with a sentence.
 *
 * Equality is judged by the SHA-256 of the model files.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/sha256.h"
#include "config/config.h"
#include "io/io.h"
#include "model/model.h"
#include "model/run.h"
#include "support/flags.h"
#include "support/root.h"
#include "train/train.h"

static const flag COMMON[] = {{"data", "spiral:n=40,noise=0.2,arms=3"},
                              {"epochs", "2"},
                              {"batch", "24"},
                              {"valid", "20"},
                              {"lr", "0.01"},
                              {"optimiser", "adam"},
                              {"checkpoint-every", "0"},
                              {NULL, NULL}};

/* Later flags win; "@name" is a path in the test's directory, "logits:@name" too. */
static void set_places(rt_config *c, unsigned verb, const flag *f) {
    char value[1200];
    for (; f && f->key; f++) {
        snprintf(value, sizeof value, "%s", f->value);
        const char *mark = strchr(f->value, '@');
        if (mark)
            snprintf(value, sizeof value, "%.*s%s", (int)(mark - f->value), f->value, in_root(mark + 1));
        set_flag(c, verb, f->key, value);
    }
}

static rt_status run(unsigned verb, const char *name, const flag *a, const flag *b, const flag *d,
                     rt_train_result *out) {
    rt_config c;
    OK(rt_config_init(&c));
    set_places(&c, verb, COMMON);
    set_places(&c, verb, a);
    set_places(&c, verb, b);
    set_places(&c, verb, d);
    set_places(&c, verb, (flag[]){{"out", in_root(name)}, {NULL, NULL}});
    return run_config(&c, verb, out);
}

static void file_hash(const char *run_name, const char *file, char hex[65]) {
    char name[128];
    uint8_t *data, digest[32];
    size_t n;
    rt_sha256 sha;
    snprintf(name, sizeof name, "%s/%s", run_name, file);
    expect(rt_file_read(in_root(name), 1 << 24, &data, &n), RT_OK);
    rt_sha256_init(&sha);
    rt_sha256_update(&sha, data, n);
    rt_sha256_final(&sha, digest);
    rt_sha256_hex(digest, hex);
    rt_free(data);
}

static void same_file(const char *a, const char *b, const char *file) {
    char ha[65], hb[65];
    file_hash(a, file, ha);
    file_hash(b, file, hb);
    if (strcmp(ha, hb) != 0)
        fail_msg("%s and %s differ in %s", a, b, file);
}

/* Weights of two models, the largest difference. */
static double distance(const char *a, const char *b) {
    rt_model *ma, *mb;
    double worst = 0;
    expect(rt_model_load(&ma, in_root(a)), RT_OK);
    expect(rt_model_load(&mb, in_root(b)), RT_OK);
    assert_int_equal(rt_model_networks(ma), rt_model_networks(mb));
    const int64_t n = rt_params_floats(rt_model_params(ma));
    assert_int_equal(n, rt_params_floats(rt_model_params(mb)));
    for (int i = 0; i < rt_model_networks(ma); i++)
        for (int64_t k = 0; k < n; k++)
            worst = fmax(worst, fabs((double)rt_model_block(ma, i)[k] - (double)rt_model_block(mb, i)[k]));
    rt_model_destroy(&ma);
    rt_model_destroy(&mb);
    return worst;
}

static const flag TEACHER[] = {{"arch", "mlp:8"}, {"members", "3"}, {NULL, NULL}};

/* A table of numbers in [0, 1]: as good as pictures for a perturbation. */
static void write_tables(void) {
    FILE *f = fopen(in_root("unit.csv"), "w"), *g = fopen(in_root("line.csv"), "w");
    assert_true(f && g);
    fprintf(f, "a,b,c,y\n");
    fprintf(g, "a,b,y\n");
    for (int i = 0; i < 90; i++) {
        const double a = (i * 37 % 90) / 90.0, b = (i * 53 % 90) / 90.0, c = (i * 71 % 90) / 90.0;
        fprintf(f, "%.4f,%.4f,%.4f,k%d\n", a, b, c, a + b > 1 ? 2 : c > 0.5);
        fprintf(g, "%.4f,%.4f,%.4f\n", a, b, 100 + 20 * a - 10 * b + 3 * sin(20 * c));
    }
    fclose(f);
    fclose(g);
}

static const char *expand(const char *spec) {
    static char text[1200];
    snprintf(text, sizeof text, "%.*s%s", (int)(strchr(spec, '@') - spec), spec,
             in_root(strchr(spec, '@') + 1));
    return text;
}

static int set_up(void **state) {
    if (make_root(state) != 0)
        return -1;
    write_tables();
    expect(run(RT_VERB_TRAIN, "teacher", TEACHER, NULL, NULL, NULL), RT_OK);
    expect(run(RT_VERB_TRAIN, "unit-teacher", TEACHER,
               (flag[]){{"data", "csv:@unit.csv,target=y"}, {NULL, NULL}}, NULL, NULL),
           RT_OK);
    expect(run(RT_VERB_TRAIN, "line-teacher", TEACHER,
               (flag[]){{"data", "csv:@line.csv,target=y,task=regression"}, {NULL, NULL}}, NULL, NULL),
           RT_OK);
    return 0;
}

/* ---- every preset ---- */

typedef struct preset {
    const char *name;
    flag more[8];
} preset;

#define SPIRAL                                                                                               \
    { "teacher", "@teacher" }
#define UNIT                                                                                                 \
    {"teacher", "@unit-teacher"}, {                                                                          \
        "data", "csv:@unit.csv,target=y"                                                                     \
    }
#define LINE                                                                                                 \
    {"teacher", "@line-teacher"}, {                                                                          \
        "data", "csv:@line.csv,target=y,task=regression"                                                     \
    }
static const preset presets[] = {
    {"kd", {SPIRAL, {"method", "kd"}}},
    {"kd-labels", {SPIRAL, {"method", "kd"}, {"alpha", "0.7"}}},
    {"kd-aux", {SPIRAL, {"method", "kd"}, {"aux", "spiral:n=11,noise=3,arms=2"}}},
    {"ae-kd", {SPIRAL, {"method", "ae-kd"}}},
    {"be-head", {SPIRAL, {"method", "be-head"}, {"fast-init", "sign:0.7"}}},
    {"be-knowledge", {SPIRAL, {"method", "be-knowledge"}, {"student", "batch-ensemble:2"}}},
    {"be-pulled", {SPIRAL, {"method", "be-head"}, {"teacher-pull", "0.1"}, {"init-from-teacher", "true"}}},
    {"latent-be", {SPIRAL, {"method", "latent-be"}}},
    {"latent-be-tdiv", {UNIT, {"method", "latent-be"}, {"perturb", "tdiv-sdiv"}, {"perturb-size", "0.05"}}},
    {"kd-ods", {UNIT, {"method", "kd"}, {"perturb", "conf-ods"}, {"perturb-size", "0.05"}}},
    {"kd-gaussian", {UNIT, {"method", "kd"}, {"perturb", "gaussian"}}},
    {"end2", {SPIRAL, {"method", "end2"}, {"anneal", "1"}}},
    {"prior-net", {SPIRAL, {"method", "prior-net"}, {"aux", "spiral:n=7,noise=3"}}},
    {"proxy-end2", {SPIRAL, {"method", "proxy-end2"}}},
    {"hydra", {SPIRAL, {"method", "hydra"}, {"epochs", "3"}}},
    {"hydra-own-head", {SPIRAL, {"method", "hydra"}, {"head", "5"}, {"grow-fraction", "0"}}},
    {"two-students", {SPIRAL, {"method", "be-head"}, {"members", "2"}}},
    {"line-kd", {LINE, {"method", "kd"}}},
    {"line-hydra", {LINE, {"method", "hydra"}, {"epochs", "3"}}},
    {"line-latent-be", {LINE, {"method", "latent-be"}}},
};

static const char *file_of(const preset *p) {
    return strcmp(p->name, "two-students") == 0 ? "member-001.safetensors" : "model.safetensors";
}

static void test_presets_run(void **state) {
    (void)state;
    for (int64_t i = 0; i < RT_COUNT(presets); i++) {
        rt_train_result r;
        rt_model *m;
        print_message("%s\n", presets[i].name);
        expect(run(RT_VERB_DISTILL, presets[i].name, presets[i].more, NULL, NULL, &r), RT_OK);
        assert_true(isfinite(r.train_loss) && isfinite(r.valid_loss) && r.steps > 0);
        expect(rt_model_load(&m, in_root(presets[i].name)), RT_OK);
        rt_model_destroy(&m);
    }
}

static void test_threads_do_not_matter(void **state) {
    (void)state;
    for (int64_t i = 0; i < RT_COUNT(presets); i++)
        for (int threads = 1; threads <= 3; threads++) {
            char count[16];
            snprintf(count, sizeof count, "%d", threads);
            expect(run(RT_VERB_DISTILL, "threads", presets[i].more,
                       (flag[]){{"threads", count}, {"force", "true"}, {NULL, NULL}}, NULL, NULL),
                   RT_OK);
            same_file(presets[i].name, "threads", file_of(&presets[i]));
        }
}

/* Stopped after every third step, in the middle of epochs, at their ends and around the growth of heads. */
static void test_resume(void **state) {
    (void)state;
    for (int64_t i = 0; i < RT_COUNT(presets); i++) {
        rt_status st = RT_E_INTERRUPTED;
        for (int steps = 1; st == RT_E_INTERRUPTED && steps < 100; steps += steps < 3 ? 1 : 3) {
            char count[16];
            snprintf(count, sizeof count, "%d", steps);
            st = run(RT_VERB_DISTILL, "stop", presets[i].more,
                     (flag[]){{"stop-after", count}, {steps == 1 ? "force" : "resume", "true"}, {NULL, NULL}},
                     NULL, NULL);
        }
        expect(st, RT_OK);
        same_file(presets[i].name, "stop", file_of(&presets[i]));
    }
}

/* ---- teachers ---- */

static void read_logits(const char *run_name, const char *data, rt_npy *out, rt_shape *shape) {
    rt_model *m;
    rt_dataset *d;
    rt_pool *pool;
    expect(rt_model_load(&m, in_root(run_name)), RT_OK);
    expect(rt_dataset_open(&d, data, (rt_data_options){.seed = 1}), RT_OK);
    expect(rt_pool_create(&pool, 2), RT_OK);
    const rt_part *p = rt_dataset_train(d);
    *shape = rt_shape3(p->n, rt_model_members(m), rt_model_outputs(m));
    expect(rt_calloc(&out->data, (size_t)rt_shape_elems(shape), sizeof(float)), RT_OK);
    expect(rt_model_predict(m, p, pool, (float *)(void *)out->data, NULL), RT_OK);
    rt_pool_destroy(&pool);
    rt_dataset_destroy(&d);
    rt_model_destroy(&m);
}

static void store_logits(const char *run_name, const char *data, const char *file) {
    rt_npy a = {0};
    rt_shape s;
    read_logits(run_name, data, &a, &s);
    expect(rt_npy_write(in_root(file), RT_DTYPE_F32, &s, a.data), RT_OK);
    rt_npy_deinit(&a);
}

/* Outputs stored in a file teach what the run does; so does a teacher that runs in each step, up to rounding.
 */
static void test_stored_teacher(void **state) {
    (void)state;
    store_logits("teacher", "spiral:n=40,noise=0.2,arms=3", "logits.npy");
    char data[1200];
    snprintf(data, sizeof data, "%s", expand("csv:@line.csv,target=y,task=regression"));
    store_logits("line-teacher", data, "line.npy");
    static const flag arch[] = {{"arch", "mlp:8"}, {NULL, NULL}};
    static const char *const methods[] = {"kd", "latent-be", "end2", "hydra", "ae-kd"};
    for (int64_t i = 0; i < RT_COUNT(methods); i++) {
        const flag way[] = {{"method", methods[i]}, {"force", "true"}, {NULL, NULL}};
        expect(
            run(RT_VERB_DISTILL, "by-run", way, arch, (flag[]){{"teacher", "@teacher"}, {NULL, NULL}}, NULL),
            RT_OK);
        expect(run(RT_VERB_DISTILL, "by-file", way, arch,
                   (flag[]){{"teacher", "logits:@logits.npy"}, {NULL, NULL}}, NULL),
               RT_OK);
        expect(run(RT_VERB_DISTILL, "by-step", way, arch,
                   (flag[]){{"teacher", "@teacher"}, {"online-teacher", "true"}, {NULL, NULL}}, NULL),
               RT_OK);
        assert_true(distance("by-run", "by-file") == 0);
        const double d = distance("by-run", "by-step");
        if (!(d < 1e-4))
            fail_msg("%s: a teacher in the step differs by %g", methods[i], d);
    }
    const flag line[] = {{"data", "csv:@line.csv,target=y,task=regression"},
                         {"method", "kd"},
                         {"force", "true"},
                         {NULL, NULL}};
    expect(run(RT_VERB_DISTILL, "by-run", line, arch, (flag[]){{"teacher", "@line-teacher"}, {NULL, NULL}},
               NULL),
           RT_OK);
    expect(run(RT_VERB_DISTILL, "by-file", line, arch,
               (flag[]){{"teacher", "logits:@line.npy"}, {NULL, NULL}}, NULL),
           RT_OK);
    assert_true(distance("by-run", "by-file") < 1e-4);
}

/* The file is used when it is there, made anew when it is damaged, and changes nothing either way. */
static void test_cache(void **state) {
    (void)state;
    char **names, path[256];
    int64_t n;
    const flag way[] = {
        {"teacher", "@teacher"}, {"method", "kd"}, {"cache", "@cache"}, {"force", "true"}, {NULL, NULL}};
    expect(run(RT_VERB_DISTILL, "cached", way, NULL, NULL, NULL), RT_OK);
    same_file("kd", "cached", "model.safetensors");
    expect(rt_dir_list(in_root("cache"), &names, &n), RT_OK);
    assert_int_equal(n, 2);
    snprintf(path, sizeof path, "%s/%s", in_root("cache"), names[0]);
    rt_names_free(names, n);
    rt_npy a;
    expect(rt_npy_read(&a, path, 1 << 20), RT_OK);
    assert_int_equal(a.shape.d[0], 120);
    assert_int_equal(a.shape.d[1], 3);
    rt_npy_deinit(&a);
    expect(run(RT_VERB_DISTILL, "cached", way, NULL, NULL, NULL), RT_OK);
    same_file("kd", "cached", "model.safetensors");
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, 200, SEEK_SET);
    fwrite("damage", 1, 6, f);
    fclose(f);
    expect(run(RT_VERB_DISTILL, "cached", way, NULL, NULL, NULL), RT_OK);
    same_file("kd", "cached", "model.safetensors");
}

/* ---- limits ---- */

static const flag SGD[] = {{"optimiser", "sgd"}, {"keep", "last"}, {"force", "true"}, {NULL, NULL}};

/* One member has no factors to differ by, and before the first step factors are one: a collapsed student is
 * then the network it would have been. */
static void test_latent_be_is_a_network(void **state) {
    (void)state;
    static const flag teacher[] = {{"teacher", "@teacher"}, {NULL, NULL}};
    expect(run(RT_VERB_DISTILL, "plain", SGD, teacher, (flag[]){{"method", "kd"}, {NULL, NULL}}, NULL),
           RT_OK);
    expect(run(RT_VERB_DISTILL, "latent", SGD, teacher,
               (flag[]){{"method", "kd"}, {"student", "latent-be:1"}, {NULL, NULL}}, NULL),
           RT_OK);
    assert_true(distance("plain", "latent") == 0);
    expect(run(RT_VERB_DISTILL, "plain", SGD, teacher,
               (flag[]){{"method", "kd"}, {"epochs", "0"}, {NULL, NULL}}, NULL),
           RT_OK);
    expect(run(RT_VERB_DISTILL, "latent", SGD, teacher,
               (flag[]){{"method", "latent-be"}, {"epochs", "0"}, {NULL, NULL}}, NULL),
           RT_OK);
    assert_true(distance("plain", "latent") == 0);
}

/* Teachers that are all the same make members that are all the same, and equal to what they collapse to. */
static void test_equal_teachers(void **state) {
    (void)state;
    rt_npy a = {0}, b = {0};
    rt_shape s;
    read_logits("teacher", "spiral:n=40,noise=0.2,arms=3", &a, &s);
    float *v = (float *)(void *)a.data;
    for (int64_t r = 0; r < s.d[0]; r++)
        for (int m = 1; m < 3; m++)
            memcpy(v + (r * 3 + m) * 3, v + r * 3 * 3, 3 * sizeof *v);
    expect(rt_npy_write(in_root("equal.npy"), RT_DTYPE_F32, &s, v), RT_OK);
    rt_npy_deinit(&a);
    expect(
        run(RT_VERB_DISTILL, "equal", SGD,
            (flag[]){
                {"teacher", "logits:@equal.npy"}, {"arch", "mlp:8"}, {"method", "latent-be"}, {NULL, NULL}},
            NULL, NULL),
        RT_OK);
    read_logits("equal/members.safetensors", "spiral:n=40,noise=0.2,arms=3", &a, &s);
    assert_int_equal(s.d[1], 3);
    v = (float *)(void *)a.data;
    rt_shape one;
    read_logits("equal", "spiral:n=40,noise=0.2,arms=3", &b, &one);
    assert_int_equal(one.d[1], 1);
    for (int64_t r = 0; r < s.d[0]; r++) {
        for (int m = 1; m < 3; m++)
            assert_memory_equal(v + r * 9, v + r * 9 + m * 3, 3 * sizeof *v);
        for (int k = 0; k < 3; k++)
            assert_true(fabs((double)v[r * 9 + k] - (double)((float *)(void *)b.data)[r * 3 + k]) < 1e-5);
    }
    rt_npy_deinit(&a);
    rt_npy_deinit(&b);
}

/* A collapsed student is a plain network; what it was stays beside it and is near. */
static void test_collapse(void **state) {
    (void)state;
    rt_model *m, *before;
    expect(rt_model_load(&m, in_root("latent-be")), RT_OK);
    assert_string_equal(rt_student_spec(rt_model_student(m)), "single");
    assert_int_equal(rt_model_members(m), 1);
    expect(rt_model_load(&before, in_root("latent-be/members.safetensors")), RT_OK);
    assert_string_equal(rt_student_spec(rt_model_student(before)), "latent-be:3");
    assert_int_equal(rt_model_members(before), 3);
    rt_student *s;
    rt_params *params;
    float *block;
    expect(rt_student_collapse(rt_model_student(before), rt_model_params(before), rt_model_block(before, 0),
                               &s, &params, &block),
           RT_OK);
    assert_memory_equal(block, rt_model_block(m, 0), (size_t)rt_params_floats(params) * sizeof(float));
    rt_free(block);
    rt_student_destroy(&s);
    rt_params_destroy(&params);
    rt_model_destroy(&before);
    rt_model_destroy(&m);
}

/* The log has what a study of diversity needs. */
static void test_log(void **state) {
    (void)state;
    static const struct {
        const char *run, *keys[5];
    } table[] = {
        {"latent-be", {"\"student_diversity\":", "\"teacher_diversity\":", "\"temperature\":4"}},
        {"latent-be-tdiv",
         {"\"student_diversity\":", "\"teacher_diversity\":", "\"student_diversity_perturbed\":",
          "\"teacher_diversity_perturbed\":"}},
        {"hydra", {"\"phase\":1", "\"phase\":2", "\"student_diversity\":"}},
        {"end2", {"\"temperature\":10", "\"teacher_diversity\":"}},
    };
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        char name[64];
        uint8_t *text;
        size_t n;
        snprintf(name, sizeof name, "%s/log.jsonl", table[i].run);
        expect(rt_file_read(in_root(name), 1 << 20, &text, &n), RT_OK);
        for (int k = 0; k < 5 && table[i].keys[k]; k++)
            if (!strstr((const char *)text, table[i].keys[k]))
                fail_msg("%s: no %s in the log", table[i].run, table[i].keys[k]);
        rt_free(text);
    }
}

/* A Dirichlet of a high temperature is no candidate for the weights to keep, however right its classes are.
 */
static void test_keeps_cold_weights(void **state) {
    (void)state;
    for (int lr = 0; lr < 3; lr++) {
        static const char *const rates[] = {"0.001", "0.01", "0.1"};
        uint8_t *text;
        size_t n;
        rt_jdoc *doc;
        int64_t epoch;
        expect(run(RT_VERB_DISTILL, "cold",
                   (flag[]){{"teacher", "@teacher"},
                            {"method", "end2"},
                            {"epochs", "4"},
                            {"anneal", "0.5"},
                            {"force", "true"},
                            {NULL, NULL}},
                   (flag[]){{"lr", rates[lr]}, {NULL, NULL}}, NULL, NULL),
               RT_OK);
        expect(rt_file_read(in_root("cold/metrics.json"), 1 << 20, &text, &n), RT_OK);
        expect(rt_jdoc_parse(&doc, (const char *)text, n, "metrics.json"), RT_OK);
        assert_true(
            rt_jval_i64(rt_jval_get(rt_jval_at(rt_jval_get(rt_jdoc_root(doc), "kept"), 0), "epoch"), &epoch));
        assert_true(epoch >= 3);
        rt_jdoc_destroy(&doc);
        rt_free(text);
    }
}

/* ---- refusals ---- */

static void bad_logits(void) {
    rt_npy a = {0};
    rt_shape s;
    read_logits("teacher", "spiral:n=40,noise=0.2,arms=3", &a, &s);
    float *v = (float *)(void *)a.data;
    rt_shape fewer = rt_shape3(s.d[0] - 1, s.d[1], s.d[2]), wider = rt_shape3(s.d[0] / 2, s.d[1], s.d[2] * 2);
    expect(rt_npy_write(in_root("short.npy"), RT_DTYPE_F32, &fewer, v), RT_OK);
    expect(rt_npy_write(in_root("wide.npy"), RT_DTYPE_F32, &wider, v), RT_OK);
    v[(5 * 3 + 2) * 3 + 1] = NAN;
    expect(rt_npy_write(in_root("nan.npy"), RT_DTYPE_F32, &s, v), RT_OK);
    rt_npy_deinit(&a);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        flag f[6];
        rt_status status;
        const char *say;
    } table[] = {
        {{{"method", "kd"}}, RT_E_USAGE, "needs a teacher"},
        {{SPIRAL, {"method", "latent-bee"}}, RT_E_USAGE, "did you mean 'latent-be'"},
        {{SPIRAL, {"objective", "kl"}}, RT_E_USAGE, "--objective"},
        {{SPIRAL, {"perturb", "odd"}}, RT_E_USAGE, "--perturb"},
        {{SPIRAL, {"student", "triple"}}, RT_E_USAGE, "unknown"},
        {{SPIRAL, {"method", "latent-be"}, {"student", "latent-be:4"}},
         RT_E_USAGE,
         "pairs each student member with a teacher"},
        {{SPIRAL, {"method", "hydra"}, {"student", "hydra:2"}},
         RT_E_USAGE,
         "pairs each student member with a teacher"},
        {{SPIRAL, {"method", "end2"}, {"student", "single"}}, RT_E_USAGE, "fits a Dirichlet distribution"},
        {{SPIRAL, {"method", "kd"}, {"student", "dirichlet"}},
         RT_E_USAGE,
         "needs an objective that fits a Dirichlet"},
        {{SPIRAL, {"method", "prior-net"}}, RT_E_USAGE, "out-of-distribution"},
        {{SPIRAL, {"perturb", "gaussian"}}, RT_E_USAGE, "keeps inputs in [0, 1]"},
        {{UNIT, {"perturb", "tdiv-sdiv"}}, RT_E_USAGE, "compares two student members"},
        {{UNIT, {"perturb", "ods"}, {"online-teacher", "false"}}, RT_E_USAGE, "run in each step"},
        {{{"teacher", "logits:@logits.npy"}, {"arch", "mlp:8"}, {"perturb", "ods"}},
         RT_E_USAGE,
         "stored logits cannot"},
        {{{"teacher", "logits:@logits.npy"}}, RT_E_USAGE, "--arch"},
        {{{"teacher", "logits:@short.npy"}, {"arch", "mlp:8"}}, RT_E_INPUT, "119 rows"},
        {{{"teacher", "logits:@wide.npy"}, {"arch", "mlp:8"}}, RT_E_INPUT, "6 per row"},
        {{{"teacher", "logits:@nan.npy"}, {"arch", "mlp:8"}}, RT_E_INPUT, "row 5, member 2, output 1"},
        {{{"teacher", "logits:@none.npy"}, {"arch", "mlp:8"}}, RT_E_INPUT, "none.npy"},
        {{{"teacher", "@nothing"}}, RT_E_INPUT, "nothing"},
        {{SPIRAL, {"data", "spiral:n=40,arms=4"}}, RT_E_INPUT, "4 classes"},
        {{SPIRAL, {"data", "csv:@unit.csv,target=y"}}, RT_E_INPUT, "shape"},
        {{LINE, {"method", "end2"}}, RT_E_USAGE, "classification"},
        {{LINE, {"objective", "kd"}}, RT_E_USAGE, "for classification"},
        {{SPIRAL, {"alpha", "0.5"}, {"aux", "spiral:n=10"}}, RT_E_USAGE, "--alpha must be 1"},
        {{SPIRAL, {"method", "labels"}, {"aux", "spiral:n=10"}}, RT_E_USAGE, "labels"},
        {{SPIRAL, {"aux", "csv:@unit.csv,target=y"}}, RT_E_INPUT, "--aux"},
        {{SPIRAL, {"fast-init", "normal:x"}}, RT_E_USAGE, "--fast-init"},
        {{SPIRAL, {"fast-init", "sign:2"}}, RT_E_USAGE, "--fast-init"},
        {{SPIRAL, {"group-decay", "1,2,3,4,5,6,7,8"}}, RT_E_USAGE, "--group-decay"},
        {{SPIRAL, {"head", "5"}}, RT_E_USAGE, "hydra"},
        {{{"teacher", "logits:@logits.npy"},
          {"arch", "mlp:8"},
          {"method", "be-head"},
          {"init-from-teacher", "true"}},
         RT_E_USAGE,
         "no weights"},
        {{SPIRAL, {"method", "be-head"}, {"init-from-teacher", "true"}, {"arch", "mlp:9"}},
         RT_E_INPUT,
         "shape"},
        {{SPIRAL, {"arch", "mlp:100000,100000"}, {"student", "hydra:10000"}}, RT_E_MEMORY, "GiB"},
    };
    bad_logits();
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        const rt_status st = run(RT_VERB_DISTILL, "refused", table[i].f, NULL, NULL, NULL);
        if (st != table[i].status || !strstr(rt_error_text(), table[i].say))
            fail_msg("case %d: status %d, wanted %d and \"%s\": %s", (int)i, (int)st, (int)table[i].status,
                     table[i].say, st == RT_OK ? "it ran" : rt_error_text());
        assert_false(rt_dir_exists(in_root("refused")));
    }
}

/* A member that is missing is noticed; so is a teacher that changed while a run was stopped. */
static void test_teacher_changes(void **state) {
    (void)state;
    const flag way[] = {{"teacher", "@second"}, {"method", "kd"}, {NULL, NULL}};
    expect(run(RT_VERB_TRAIN, "second", TEACHER, NULL, NULL, NULL), RT_OK);
    expect(run(RT_VERB_DISTILL, "changing", way, (flag[]){{"stop-after", "3"}, {NULL, NULL}}, NULL, NULL),
           RT_E_INTERRUPTED);
    expect(run(RT_VERB_TRAIN, "second", TEACHER, (flag[]){{"force", "true"}, {"lr", "0.02"}, {NULL, NULL}},
               NULL, NULL),
           RT_OK);
    expect(run(RT_VERB_DISTILL, "changing", way, (flag[]){{"resume", "true"}, {NULL, NULL}}, NULL, NULL),
           RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "other data"));
    assert_int_equal(unlink(in_root("second/member-001.safetensors")), 0);
    expect(run(RT_VERB_DISTILL, "changing", way, (flag[]){{"force", "true"}, {NULL, NULL}}, NULL, NULL),
           RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "member files"));
}

/* Students can learn from labels as well. */
static void test_students_on_labels(void **state) {
    (void)state;
    static const char *const students[] = {"batch-ensemble:3", "hydra:3", "latent-be:2"};
    for (int64_t i = 0; i < RT_COUNT(students); i++) {
        rt_model *m;
        expect(run(RT_VERB_TRAIN, "labels",
                   (flag[]){{"arch", "mlp:8"}, {"student", students[i]}, {"force", "true"}, {NULL, NULL}},
                   NULL, NULL, NULL),
               RT_OK);
        expect(rt_model_load(&m, in_root("labels")), RT_OK);
        assert_int_equal(rt_model_members(m), i < 2 ? 3 : 1);
        rt_model_destroy(&m);
    }
    expect(run(RT_VERB_TRAIN, "labels-2", (flag[]){{"arch", "mlp:8"}, {"student", "dirichlet"}, {NULL, NULL}},
               NULL, NULL, NULL),
           RT_E_USAGE);
}

/* ---- too little memory ---- */

typedef struct failing {
    uint64_t at, calls;
} failing;

static bool fail_at(void *user, uint64_t call, size_t bytes) {
    (void)call, (void)bytes;
    failing *f = user;
    return ++f->calls != f->at;
}

/* Whichever allocation fails, the run ends with a message, and nothing stays allocated. */
static void test_failing_allocations(void **state) {
    (void)state;
    static const flag ways[][3] = {{{"teacher", "@teacher"}, {"method", "hydra"}, {NULL, NULL}},
                                   {{"teacher", "@teacher"}, {"aux", "spiral:n=9,noise=2"}, {NULL, NULL}}};
    for (int64_t i = 0; i < RT_COUNT(ways); i++) {
        failing f = {0};
        rt_alloc_stats before, after;
        const flag more[] = {{"force", "true"}, {"threads", "1"}, {NULL, NULL}};
        rt_alloc_set_hook(fail_at, &f);
        expect(run(RT_VERB_DISTILL, "starved", ways[i], more, NULL, NULL), RT_OK);
        rt_alloc_set_hook(NULL, NULL);
        const uint64_t calls = f.calls;
        for (uint64_t k = 1; k <= calls; k += RT_MAX(calls / 60, 1)) {
            rt_alloc_get_stats(&before);
            f = (failing){.at = 60 + k}; /* after the flags are set */
            rt_alloc_set_hook(fail_at, &f);
            const rt_status st = run(RT_VERB_DISTILL, "starved", ways[i], more, NULL, NULL);
            rt_alloc_set_hook(NULL, NULL);
            if (f.calls >= f.at && st != RT_E_MEMORY &&
                st != RT_OK) /* a cache that cannot be read is made again */
                fail_msg("allocation %llu: status %d: %s", (unsigned long long)f.at, (int)st,
                         rt_error_text());
            rt_alloc_get_stats(&after);
            assert_int_equal(before.live_blocks, after.live_blocks);
        }
    }
}

/* ---- hyper ensembles ---- */

static const flag HYPER[] = {{"arch", "mlp:8"}, {"hyper", "true"}, {"hyper-runs", "4"}, {"members", "2"},
                             {"lr", "0.03"},    {"epochs", "3"},   {NULL, NULL}};

static int64_t metric(const char *file, const char *key) {
    uint8_t *text;
    size_t n;
    rt_jdoc *doc;
    int64_t value = -1;
    expect(rt_file_read(in_root(file), 1 << 20, &text, &n), RT_OK);
    expect(rt_jdoc_parse(&doc, (const char *)text, n, file), RT_OK);
    assert_true(rt_jval_i64(rt_jval_get(rt_jdoc_root(doc), key), &value));
    rt_jdoc_destroy(&doc);
    rt_free(text);
    return value;
}

/* Candidates are judged on rows that they did not see; what was chosen is retrained on all, and nobody is told that
 * some were held out. */
static void check_hyper_rows(void) {
    rt_config c;
    rt_dataset *d;
    rt_subset train, valid;
    static const char *const dirs[] = {"hyper/retrain/000", "hyper/retrain/001", "hyper/retrain/002",
                                       "hyper/retrain/003"};
    char file[64];
    int retrained = 0;
    expect(rt_config_init(&c), RT_OK);
    expect(rt_config_load(&c, RT_VERB_TRAIN, in_root("hyper/config.yaml")), RT_OK);
    expect(rt_dataset_open(&d, c.data, (rt_data_options){.seed = (uint64_t)c.seed, .limit = c.limit}), RT_OK);
    const int64_t all = rt_dataset_train(d)->n;
    expect(rt_split_rows(&c, d, &train, &valid), RT_OK);
    assert_true(valid.n > 0 && train.n + valid.n == all);
    assert_int_equal(metric("hyper/search/000/metrics.json", "train_rows"), train.n);
    assert_int_equal(metric("hyper/search/000/metrics.json", "valid_rows"), valid.n);
    rt_subset_deinit(&train);
    rt_subset_deinit(&valid);
    expect(rt_run_rows(&c, d, &train, &valid), RT_OK);
    assert_int_equal(train.n, all);
    assert_int_equal(valid.n, 0);
    rt_subset_deinit(&train);
    rt_subset_deinit(&valid);
    for (int i = 0; i < 4; i++) {
        snprintf(file, sizeof file, "%s/metrics.json", dirs[i]);
        if (!rt_dir_exists(in_root(dirs[i])))
            continue;
        retrained++;
        assert_int_equal(metric(file, "train_rows"), all);
        assert_int_equal(metric(file, "valid_rows"), 0);
    }
    assert_true(retrained > 0);
    rt_dataset_destroy(&d);
    rt_config_deinit(&c);
}

/* Chosen by likelihood, a teacher like any other, and the same after interruptions in any of its runs. */
static void test_hyper(void **state) {
    (void)state;
    rt_train_result r;
    rt_model *m;
    uint8_t *text;
    size_t n;
    expect(run(RT_VERB_TRAIN, "hyper", HYPER, NULL, NULL, &r), RT_OK);
    assert_true(r.members >= 1 && isfinite(r.valid_loss));
    expect(rt_model_load(&m, in_root("hyper")), RT_OK);
    assert_int_equal(rt_model_members(m), r.members);
    rt_model_destroy(&m);
    expect(rt_file_read(in_root("hyper/hyper.json"), 1 << 20, &text, &n), RT_OK);
    rt_jdoc *doc;
    expect(rt_jdoc_parse(&doc, (const char *)text, n, "hyper.json"), RT_OK);
    rt_jval all = rt_jval_get(rt_jdoc_root(doc), "candidates"),
            choice = rt_jval_get(rt_jdoc_root(doc), "choice");
    assert_int_equal(rt_jval_len(all), 4);
    assert_int_equal(rt_jval_len(choice), r.members);
    double lowest = INFINITY, first, last;
    for (int i = 0; i < 4; i++) {
        double v;
        assert_true(rt_jval_f64(rt_jval_get(rt_jval_at(all, i), "valid_nll"), &v));
        lowest = fmin(lowest, v);
    }
    assert_true(rt_jval_f64(rt_jval_get(rt_jval_at(choice, 0), "ensemble_valid_nll"), &first));
    assert_true(rt_jval_f64(rt_jval_get(rt_jval_at(choice, r.members - 1), "ensemble_valid_nll"), &last));
    assert_true(fabs(first - lowest) < 1e-12 &&
                last <= first); /* the best one first, and never worse after */
    rt_jdoc_destroy(&doc);
    rt_free(text);
    check_hyper_rows();
    rt_status st = RT_E_INTERRUPTED;
    for (int steps = 4; st == RT_E_INTERRUPTED && steps < 40; steps += 4) {
        char count[16];
        snprintf(count, sizeof count, "%d", steps);
        st = run(RT_VERB_TRAIN, "hyper-2", HYPER,
                 (flag[]){{"stop-after", count}, {"resume", steps > 4 ? "true" : "false"}, {NULL, NULL}},
                 NULL, NULL);
    }
    expect(st, RT_OK);
    same_file("hyper", "hyper-2", r.members == 1 ? "model.safetensors" : "member-000.safetensors");
    same_file("hyper", "hyper-2", "hyper.json");
    expect(run(RT_VERB_DISTILL, "from-hyper", (flag[]){{"teacher", "@hyper"}, {"method", "kd"}, {NULL, NULL}},
               NULL, NULL, NULL),
           RT_OK);
    expect(run(RT_VERB_TRAIN, "hyper-3", HYPER, (flag[]){{"valid", "0"}, {NULL, NULL}}, NULL, NULL),
           RT_E_USAGE);
    expect(run(RT_VERB_TRAIN, "hyper-3", HYPER, (flag[]){{"members", "5"}, {NULL, NULL}}, NULL, NULL),
           RT_E_USAGE);
    assert_false(rt_dir_exists(in_root("hyper-3")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_presets_run),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_stored_teacher),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_collapse),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_latent_be_is_a_network),
        cmocka_unit_test(test_keeps_cold_weights),
        cmocka_unit_test(test_equal_teachers),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_teacher_changes),
        cmocka_unit_test(test_students_on_labels),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_hyper),
    };
    return cmocka_run_group_tests(tests, set_up, remove_root);
}
