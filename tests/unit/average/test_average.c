/*
 * test_average.c - whole averages of tiny runs: what is refused, what a method keeps, that the function of
 * renumbered models survives, statistics and repair against numbers computed here.
 */
#include "average/average_int.h"
#include "base/alloc.h"
#include "unit/average/average_support.h"
#include <math.h>

static rt_pool *pool;
static const char SPIRAL[] = "spiral:n=60,noise=0.2";

static void train(const char *name, const char *data, const char *arch, const char *members,
                  const flag *more) {
    train_run(name, data, arch, members, "3", more);
}

static void config_of(rt_config *c, const char *data, const char *method, const char *out) {
    configure(c, RT_VERB_AVERAGE,
              (const flag[]){{"data", data}, {"method", method}, {"out", out}, {NULL, NULL}});
}

/* Images of noise with a bright corner of their class, as npy files. */
static const char *image_data(void) {
    enum { N = 96 };
    static char spec[1200];
    static uint8_t x[N * 64];
    int32_t y[N];
    const rt_shape xs = rt_shape4(N, 1, 8, 8), ys = rt_shape1(N);
    for (int i = 0; i < N; i++) {
        y[i] = i % 3;
        for (int k = 0; k < 64; k++)
            x[i * 64 + k] =
                (uint8_t)rt_rng_below(rt_rng_make(1, RT_RNG_TEST, (uint64_t)i, 0), (uint64_t)k, 100);
        for (int k = 0; k < 8; k++)
            x[i * 64 + y[i] * 16 + k] = (uint8_t)(x[i * 64 + y[i] * 16 + k] + 90);
    }
    OK(rt_npy_write(in_root("x.npy"), RT_DTYPE_U8, &xs, x));
    OK(rt_npy_write(in_root("y.npy"), RT_DTYPE_I32, &ys, y));
    snprintf(spec, sizeof spec, "npy:%s,%s,task=classification", in_root("x.npy"), in_root("y.npy"));
    return spec;
}

static int setup(void **state) {
    (void)state;
    if (!tmpdir_make(&root) || rt_pool_create(&pool, 2) != RT_OK)
        return -1;
    train("teacher", SPIRAL, "mlp:12,10", "3", NULL);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    rt_pool_destroy(&pool);
    tmpdir_remove(&root);
    return 0;
}

/* ---- what cannot be averaged ---- */

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *data, *arch;
        flag more[2];
        rt_status status;
        const char *left, *right; /* both sides are named */
    } row[] = {
        {SPIRAL, "mlp:12,11", {{0}}, RT_E_INPUT, "mlp:12,10", "mlp:12,11"},
        {SPIRAL, "mlp:12,10", {{"activation", "softplus"}}, RT_E_INPUT, "relu", "softplus"},
        {"spiral:n=60,noise=0.2,arms=2", "mlp:12,10", {{0}}, RT_E_INPUT, "3 outputs", "2"},
        {"spiral:n=60,noise=0.3", "mlp:12,10", {{0}}, RT_E_INPUT, "teacher standardises", "other with"},
        {SPIRAL,
         "mlp:12,10",
         {{"standardise", "false"}},
         RT_E_INPUT,
         "teacher standardises",
         "other does not"},
        {SPIRAL,
         "mlp:12,10",
         {{"student", "batch-ensemble:2"}},
         RT_E_UNSUPPORTED,
         "batch-ensemble:2",
         "single"},
    };
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        rt_config c;
        rt_average_result r;
        const flag more[] = {row[i].more[0], {NULL, NULL}};
        char teacher[1024], other[1024], name[32];
        snprintf(name, sizeof name, "r%lld-other", (long long)i);
        train(name, row[i].data, row[i].arch, "1", more);
        snprintf(other, sizeof other, "%s", in_root(name));
        snprintf(teacher, sizeof teacher, "%s", in_root("teacher"));
        config_of(&c, SPIRAL, "naive", in_root("refused"));
        const rt_status st = rt_average_run(&c, (const char *const[]){teacher, other}, 2, pool, NULL, &r);
        if (st != row[i].status || !strstr(rt_error_text(), row[i].left) ||
            !strstr(rt_error_text(), row[i].right))
            fail_msg("case %lld: status %d, \"%s\"", (long long)i, (int)st, rt_error_text());
        assert_false(rt_dir_exists(in_root("refused")));
        rt_config_deinit(&c);
    }
}

static void one_network_and_unknown_methods(void **state) {
    (void)state;
    rt_config c;
    rt_average_result r;
    char file[1024], teacher[1024];
    snprintf(file, sizeof file, "%s/member-000.safetensors", in_root("teacher"));
    snprintf(teacher, sizeof teacher, "%s", in_root("teacher"));
    config_of(&c, SPIRAL, "naive", in_root("none"));
    assert_int_equal(rt_average_run(&c, (const char *const[]){file}, 1, pool, NULL, &r), RT_E_USAGE);
    set_flag(&c, RT_VERB_AVERAGE, "method", "mtach");
    assert_int_equal(rt_average_run(&c, (const char *const[]){teacher}, 1, pool, NULL, &r), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "'match'"));
    set_flag(&c, RT_VERB_AVERAGE, "method", "greedy-soup");
    set_flag(&c, RT_VERB_AVERAGE, "valid", "0");
    assert_int_equal(rt_average_run(&c, (const char *const[]){teacher}, 1, pool, NULL, &r), RT_E_USAGE);
    assert_non_null(strstr(rt_error_text(), "--valid"));
    rt_config_deinit(&c);
}

/* ---- methods ---- */

typedef struct job {
    rt_config c;
    rt_average a;
    char run[1024];
} job;

static void open_job(job *j, const char *data, const char *run) {
    snprintf(j->run, sizeof j->run, "%s", in_root(run));
    config_of(&j->c, data, "match", in_root("out"));
    OK(rt_average_open(&j->a, &j->c, (const char *const[]){j->run}, 1, pool, NULL));
}

static void close_job(job *j) {
    rt_average_close(&j->a);
    rt_config_deinit(&j->c);
}

/* Model m becomes model 0 renumbered. */
static void plant(rt_average *a, int m) {
    int64_t *perm = NULL;
    OK(rt_calloc(&perm, (size_t)a->sym.total, sizeof *perm));
    rt_perm_random(&a->sym, perm, rt_rng_make(4, RT_RNG_TEST, (uint64_t)m, 0));
    rt_perm_apply(&a->sym, a->params, rt_model_weights(a->loaded[0], m), a->blocks[0], perm);
    rt_free(perm);
}

static void naive_is_the_mean(void **state) {
    (void)state;
    job j;
    open_job(&j, SPIRAL, "teacher");
    assert_int_equal(j.a.models, 3);
    OK(rt_average_by_naive(&j.a));
    for (int64_t k = 0; k < j.a.floats; k++)
        assert_float_equal(j.a.out[k], (j.a.blocks[0][k] + j.a.blocks[1][k] + j.a.blocks[2][k]) / 3, 1e-6);
    close_job(&j);
}

/* Renumbered copies of one network: their plain mean is another network, their matched mean is the network.
 */
static void match_undoes_renumbering(void **state) {
    (void)state;
    job j;
    rt_average_score one, naive, match;
    open_job(&j, SPIRAL, "teacher");
    plant(&j.a, 1);
    plant(&j.a, 2);
    OK(rt_average_measure(&j.a, &j.a.train, j.a.blocks, 1, &one, NULL));
    OK(rt_average_by_naive(&j.a));
    OK(rt_average_measure(&j.a, &j.a.train, (const float *const *)&j.a.out, 1, &naive, NULL));
    OK(rt_average_by_match(&j.a));
    OK(rt_average_measure(&j.a, &j.a.train, (const float *const *)&j.a.out, 1, &match, NULL));
    assert_true(fabs(naive.loss - one.loss) > 1e-3);
    assert_true(fabs(match.loss - one.loss) < 1e-5);
    for (int64_t k = 0; k < j.a.floats; k++)
        assert_float_equal(j.a.out[k], j.a.blocks[0][k], 1e-6);
    close_job(&j);
}

/* Renumbering that does not keep the function is noticed. */
static void a_wrong_symmetry_is_noticed(void **state) {
    (void)state;
    job j;
    open_job(&j, SPIRAL, "teacher");
    for (int k = 0; k < j.a.sym.slots * RT_MAX_RANK; k++)
        if (j.a.sym.axis[k].bundle == 0) {
            j.a.sym.axis[k].bundle = -1;
            break;
        }
    rt_perm_random(&j.a.sym, rt_average_perms(&j.a, 1), rt_rng_make(4, RT_RNG_TEST, 0, 0));
    assert_int_equal(rt_average_align(&j.a, 1), RT_E_FAILED);
    close_job(&j);
}

/* Equal models add nothing, a ruined one harms: one model is left. A model that makes the mean right is kept.
 */
static void greedy_soup_keeps_what_improves(void **state) {
    (void)state;
    job j;
    open_job(&j, SPIRAL, "teacher");
    rt_model *m = j.a.loaded[0];
    memcpy(rt_model_weights(m, 1), j.a.blocks[0], (size_t)j.a.floats * sizeof(float));
    for (int64_t k = 0; k < j.a.floats; k++)
        rt_model_weights(m, 2)[k] = -5 * j.a.blocks[0][k];
    OK(rt_average_by_greedy_soup(&j.a));
    assert_true(j.a.used[0]);
    assert_false(j.a.used[1]);
    assert_false(j.a.used[2]);
    assert_memory_equal(j.a.out, j.a.blocks[0], (size_t)j.a.floats * sizeof(float));

    /* good + d and good - d, with d large enough to harm each: their mean is good */
    rt_average_score each[3], soup;
    float *good = NULL;
    OK(rt_calloc(&good, (size_t)j.a.floats, sizeof *good));
    memcpy(good, j.a.blocks[0], (size_t)j.a.floats * sizeof(float));
    const rt_param *last =
        rt_params_get(j.a.params, rt_params_count(j.a.params) - 1); /* bias of the outputs */
    for (int sign = -1; sign <= 1; sign += 2) {
        float *w = rt_model_weights(m, sign < 0 ? 0 : 1);
        memcpy(w, good, (size_t)j.a.floats * sizeof(float));
        w[last->offset] += 20.0f * (float)sign;
    }
    OK(rt_average_measure(&j.a, &j.a.valid, j.a.blocks, 3, each, NULL));
    OK(rt_average_by_greedy_soup(&j.a));
    OK(rt_average_measure(&j.a, &j.a.valid, (const float *const *)&j.a.out, 1, &soup, NULL));
    assert_true(j.a.used[0] && j.a.used[1]);
    for (int k = 0; k < 3; k++)
        assert_true(soup.accuracy > each[k].accuracy);
    rt_free(good);
    close_job(&j);
}

/* Models that differ in their last layer alone: the mean of their logits is the network of its mean. */
static void ensembles_by_logits(void **state) {
    (void)state;
    job j;
    rt_average_score each[2], by[2], mean;
    open_job(&j, SPIRAL, "teacher");
    const rt_param *last = rt_params_get(j.a.params, rt_params_count(j.a.params) - 2);
    float *w = rt_model_weights(j.a.loaded[0], 1);
    memcpy(w, j.a.blocks[0], (size_t)j.a.floats * sizeof *w);
    for (int64_t i = 0; i < last->count; i++)
        w[last->offset + i] += 3 * (float)sin((double)i);
    j.a.used[2] = false;
    rt_average_mean(&j.a);
    for (int logits = 0; logits < 2; logits++) {
        j.a.config.teacher_mean = logits ? "logits" : "probs";
        OK(rt_average_measure(&j.a, &j.a.train, j.a.blocks, 2, each, &by[logits]));
    }
    OK(rt_average_measure(&j.a, &j.a.train, (const float *const *)&j.a.out, 1, &mean, NULL));
    assert_true(fabs(by[1].loss - mean.loss) < 1e-6 && by[1].accuracy == mean.accuracy);
    assert_true(fabs(by[0].loss - by[1].loss) > 1e-3);
    close_job(&j);
}

/* ---- statistics ---- */

/* A batch normalisation's new running statistics are those of the values it sees: here of the first one,
 * whose input is computed by the interpreter in double. */
static void running_statistics(void **state) {
    (void)state;
    const char *data = image_data();
    job j;
    train("images", data, "wrn:10,1", "2", NULL);
    open_job(&j, data, "images");
    rt_average *a = &j.a;
    assert_true(rt_norms_any(a->params));
    rt_average_mean(a);
    OK(rt_average_refresh_bn(a, a->out, 0));
    const rt_param *w = rt_params_get(a->params, rt_params_find(a->params, "conv1.weight"));
    const float *mean =
        a->out + rt_params_get(a->params, rt_params_find(a->params, "layer1.0.bn1.running_mean"))->offset;
    const float *var =
        a->out + rt_params_get(a->params, rt_params_find(a->params, "layer1.0.bn1.running_var"))->offset;

    rt_graph *g;
    const int64_t n = a->train.n; /* all rows are one batch */
    OK(rt_graph_create(&g, n, RT_DTYPE_F32));
    rt_build b = {.g = g, .params = a->params};
    rt_val x = rt_graph_input(g, "x", RT_DTYPE_F32, rt_shape3(1, 8, 8), 1);
    rt_graph_output(g, "y", rt_net_range(rt_student_net(a->student), &b, x, 0, 1));
    float *in = NULL, *out = NULL;
    const void **params = NULL;
    OK(rt_calloc(&in, (size_t)n * 64, sizeof *in));
    OK(rt_calloc(&out, (size_t)n * 64 * 16, sizeof *out));
    OK(rt_calloc(&params, (size_t)rt_params_count(a->params), sizeof *params));
    params[rt_params_find(a->params, "conv1.weight")] = a->out + w->offset;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 64; k++)
            in[i * 64 + k] = (float)a->train.part->u8[rt_subset_row(&a->train, i) * 64 + k] / 255;
    OK(rt_interp_run(g, params, (const void *const[]){in}, NULL, (void *const[]){out}, (rt_run){0}));
    for (int c = 0; c < 16; c++) {
        double sum = 0, square = 0, count = (double)n * 64;
        for (int64_t i = 0; i < n; i++)
            for (int k = 0; k < 64; k++) {
                const double v = (double)out[(i * 16 + c) * 64 + k];
                sum += v;
                square += v * v;
            }
        assert_true(fabs((double)mean[c] - sum / count) < 1e-4);
        const double want = (square / count - sum / count * sum / count) * count / (count - 1);
        assert_true(want > 0 && fabs((double)var[c] - want) < 1e-3 * want);
    }
    rt_free(in);
    rt_free(out);
    rt_free((void *)params);
    rt_graph_destroy(&g);
    close_job(&j);
}

typedef struct unit_sums {
    double sum[32], square[32], n;
} unit_sums;

static void add_sums(void *user, const rt_taps *t) {
    unit_sums *s = user;
    int at = 0;
    s->n += (double)t->tap[0].count;
    for (int i = 0; i < t->n; i++)
        for (int64_t c = 0; c < t->tap[i].channels; c++, at++) {
            s->sum[at] += t->tap[i].sums[c];
            s->square[at] += t->tap[i].sums[t->tap[i].channels + c];
        }
}

static void measure_units(const rt_average *a, const float *block, double *mean, double *std) {
    rt_taps_input in;
    rt_taps t;
    unit_sums s = {0};
    OK(rt_average_taps(a, 0, &in));
    OK(rt_taps_of_units(&t, &in));
    assert_int_equal(t.n, 2);
    OK(rt_taps_run(&t, block, add_sums, &s));
    for (int i = 0; i < 22; i++) {
        mean[i] = s.sum[i] / s.n;
        std[i] = sqrt(fmax(s.square[i] / s.n - mean[i] * mean[i], 0));
    }
    rt_taps_close(&t);
}

static void repair_restores_moments(void **state) {
    (void)state;
    job j;
    double mean[4][32], std[4][32];
    open_job(&j, SPIRAL, "teacher");
    OK(rt_average_by_naive(&j.a));
    OK(rt_average_repair(&j.a, j.a.out));
    for (int m = 0; m < 3; m++)
        measure_units(&j.a, j.a.blocks[m], mean[m], std[m]);
    measure_units(&j.a, j.a.out, mean[3], std[3]);
    for (int i = 0; i < 22; i++) {
        assert_true(fabs(mean[3][i] - (mean[0][i] + mean[1][i] + mean[2][i]) / 3) < 1e-4);
        if (std[3][i] > 1e-6)
            assert_true(fabs(std[3][i] - (std[0][i] + std[1][i] + std[2][i]) / 3) < 1e-4);
    }
    close_job(&j);
}

/* ---- the run that is left ---- */

static void the_run(void **state) {
    (void)state;
    job j;
    rt_average_result r, again;
    rt_model *m;
    rt_dataset *d;
    open_job(&j, SPIRAL, "teacher");
    OK(rt_average_run(&j.c, (const char *const[]){j.run}, 1, pool, NULL, &r));
    assert_int_equal(rt_average_run(&j.c, (const char *const[]){j.run}, 1, pool, NULL, &again), RT_E_USAGE);
    OK(rt_model_load(&m, in_root("out")));
    assert_int_equal(rt_model_networks(m), 1);
    assert_string_equal(rt_net_config(rt_model_net(m))->spec, "mlp:12,10");
    assert_string_equal(rt_model_meta(m, "method"), "match");
    OK(rt_dataset_open(&d, SPIRAL, (rt_data_options){.seed = 1}));
    const rt_part *test = rt_dataset_test(d);
    float *y = NULL;
    int64_t right = 0;
    OK(rt_calloc(&y, (size_t)test->n * 3, sizeof *y));
    OK(rt_model_predict(m, test, pool, y, NULL));
    for (int64_t i = 0; i < test->n; i++) {
        int best = 0;
        for (int k = 1; k < 3; k++)
            best = y[i * 3 + k] > y[i * 3 + best] ? k : best;
        right += best == test->label[i];
    }
    assert_true(fabs(r.test.average.accuracy - (double)right / (double)test->n) < 1e-9);
    assert_true(rt_file_exists(in_root("out/pictures/P-layers.0-1.png")));
    rt_free(y);
    rt_dataset_destroy(&d);
    rt_model_destroy(&m);
    close_job(&j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals),
        cmocka_unit_test(one_network_and_unknown_methods),
        cmocka_unit_test(naive_is_the_mean),
        cmocka_unit_test(match_undoes_renumbering),
        cmocka_unit_test(a_wrong_symmetry_is_noticed),
        cmocka_unit_test(greedy_soup_keeps_what_improves),
        cmocka_unit_test(ensembles_by_logits),
        cmocka_unit_test(running_statistics),
        cmocka_unit_test(repair_restores_moments),
        cmocka_unit_test(the_run),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
