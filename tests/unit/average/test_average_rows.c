/*
 * test_average_rows.c - the rows of an average are those of its runs: what they held out judges, what disagrees
 * is refused, what nobody knows is not used; statistics see rows as the models saw them.
 */
#include "average/average_int.h"
#include "base/alloc.h"
#include "unit/average/average_support.h"
#include <math.h>

static rt_pool *pool;
static const char SPIRAL[] = "spiral:n=60,noise=0.2";

static void train(const char *name, const char *data, const char *arch, const flag *more) {
    train_run(name, data, arch, "2", "2", more);
}

/* `average` up to its rows; */
typedef struct job {
    rt_config c;
    rt_average a;
    char run[2][600];
} job;

static rt_status open_job(job *j, const char *data, const char *one, const char *two, const flag *flags) {
    const char *const runs[] = {j->run[0], j->run[1]};
    snprintf(j->run[0], sizeof j->run[0], "%s", in_root(one));
    snprintf(j->run[1], sizeof j->run[1], "%s", in_root(two ? two : one));
    configure(&j->c, RT_VERB_AVERAGE, flags);
    set_flag(&j->c, RT_VERB_AVERAGE, "data", data);
    const rt_status st = rt_average_open(&j->a, &j->c, runs, two ? 2 : 1, pool, NULL);
    if (st != RT_OK)
        rt_config_deinit(&j->c);
    return st;
}

static void close_job(job *j) {
    rt_average_close(&j->a);
    rt_config_deinit(&j->c);
}

#define REFUSED(words, ...)                                                                                  \
    do {                                                                                                     \
        job refused;                                                                                         \
        assert_int_not_equal(open_job(&refused, __VA_ARGS__), RT_OK);                                        \
        if (!strstr(rt_error_text(), words))                                                                 \
            fail_msg("%s", rt_error_text());                                                                 \
    } while (0)

static const flag NONE[] = {{NULL, NULL}};

static int setup(void **state) {
    (void)state;
    return tmpdir_make(&root) && rt_pool_create(&pool, 2) == RT_OK ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    rt_pool_destroy(&pool);
    tmpdir_remove(&root);
    return 0;
}

/* The rows that a run held out, from its files alone. */
static void held_out(const char *run, rt_dataset **d, rt_subset *train_rows, rt_subset *valid) {
    rt_config c;
    char path[700];
    OK(rt_config_init(&c));
    snprintf(path, sizeof path, "%s/config.yaml", in_root(run));
    OK(rt_config_load(&c, RT_VERB_ALL, path));
    OK(rt_dataset_open(d, c.data, rt_config_data(&c)));
    OK(rt_run_rows(&c, *d, train_rows, valid));
    rt_config_deinit(&c);
}

/* Neither the caller's seed nor its defaults decide. */
static void rows_are_those_of_the_runs(void **state) {
    (void)state;
    job j;
    rt_dataset *d;
    rt_subset trained, valid;
    train("drawn", SPIRAL, "mlp:6",
          (const flag[]){{"seed", "5"}, {"valid", "0.3"}, {"valid-shuffle", "true"}, {NULL, NULL}});
    held_out("drawn", &d, &trained, &valid);
    OK(open_job(&j, SPIRAL, "drawn", NULL, (const flag[]){{"seed", "9"}, {NULL, NULL}}));
    assert_true(valid.n > 0 && trained.n > 0);
    assert_true(rt_subset_equal(&j.a.valid, &valid) && rt_subset_equal(&j.a.train, &trained));
    assert_string_equal(rt_dataset_hash(j.a.data), rt_dataset_hash(d));
    close_job(&j);
    rt_subset_deinit(&trained);
    rt_subset_deinit(&valid);
    rt_dataset_destroy(&d);
    OK(open_job(
        &j, SPIRAL, "drawn", NULL,
        (const flag[]){{"valid", "0.3"}, {"valid-shuffle", "true"}, {NULL, NULL}})); /* saying so is fine */
    close_job(&j);
    REFUSED("--valid", SPIRAL, "drawn", NULL, ((const flag[]){{"valid", "0.1"}, {NULL, NULL}}));
    REFUSED("--limit", SPIRAL, "drawn", NULL, ((const flag[]){{"limit", "50"}, {NULL, NULL}}));
    REFUSED("--data-seed", SPIRAL, "drawn", NULL, ((const flag[]){{"data-seed", "9"}, {NULL, NULL}}));
    REFUSED("was not trained on", "spiral:n=60,noise=0.25", "drawn", NULL, NONE);
}

/* The run that is left finds them again: what eval fits its temperature on. */
static void the_average_holds_out_the_same(void **state) {
    (void)state;
    job j;
    rt_average_result r;
    rt_dataset *d[2];
    rt_subset trained[2], valid[2];
    OK(open_job(&j, SPIRAL, "drawn", NULL,
                (const flag[]){{"seed", "9"}, {"method", "match"}, {"out", in_root("mean")}, {NULL, NULL}}));
    OK(rt_average_run(&j.c, (const char *const[]){j.run[0]}, 1, pool, NULL, &r));
    close_job(&j);
    held_out("drawn", &d[0], &trained[0], &valid[0]);
    held_out("mean", &d[1], &trained[1], &valid[1]);
    assert_true(rt_subset_equal(&valid[0], &valid[1]));
    assert_string_equal(rt_dataset_hash(d[0]), rt_dataset_hash(d[1]));
    for (int i = 0; i < 2; i++) {
        rt_subset_deinit(&trained[i]);
        rt_subset_deinit(&valid[i]);
        rt_dataset_destroy(&d[i]);
    }
}

static void runs_that_disagree_are_refused(void **state) {
    (void)state;
    const flag tenth[] = {{"standardise", "false"}, {"valid", "0.1"}, {NULL, NULL}},
               fifth[] = {{"standardise", "false"}, {"valid", "0.2"}, {NULL, NULL}},
               drawn[] = {{"standardise", "false"},
                          {"valid", "0.2"},
                          {"valid-shuffle", "true"},
                          {NULL, NULL}},
               seed[] = {{"standardise", "false"}, {"seed", "3"}, {NULL, NULL}},
               same[] = {{"standardise", "false"}, {"seed", "3"}, {"data-seed", "1"}, {NULL, NULL}};
    job j;
    train("tenth", SPIRAL, "mlp:6", tenth);
    train("fifth", SPIRAL, "mlp:6", fifth);
    train("fifth-drawn", SPIRAL, "mlp:6", drawn);
    train("seed", SPIRAL, "mlp:6", seed);
    train("same", SPIRAL, "mlp:6", same);
    REFUSED("held out", SPIRAL, "tenth", "fifth", NONE);
    REFUSED("another", SPIRAL, "fifth", "fifth-drawn", NONE);
    REFUSED("was not trained on", SPIRAL, "tenth", "seed", NONE); /* other spirals */
    OK(open_job(&j, SPIRAL, "tenth", "same", NONE));
    close_job(&j);
}

/* A hyper ensemble is retrained on all rows; a file that left its run tells nothing. */
static void what_was_not_held_out_does_not_judge(void **state) {
    (void)state;
    job j;
    char from[800], to[800];
    uint8_t *bytes;
    size_t n;
    train("hyper", SPIRAL, "mlp:6", (const flag[]){{"hyper", "true"}, {"hyper-runs", "3"}, {NULL, NULL}});
    OK(rt_dir_make(in_root("lost")));
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof from, "%s/member-%03d.safetensors", in_root("drawn"), i);
        snprintf(to, sizeof to, "%s/%d.safetensors", in_root("lost"), i);
        OK(rt_file_read(from, 1 << 24, &bytes, &n));
        OK(rt_file_write_atomic(to, bytes, n));
        rt_free(bytes);
    }
    const rt_status st = open_job(&j, SPIRAL, "hyper", NULL, NONE);
    if (st == RT_OK) { /* the search may have chosen one network */
        assert_int_equal(j.a.valid.n, 0);
        close_job(&j);
    }
    OK(open_job(&j, SPIRAL, "lost/0.safetensors", "lost/1.safetensors", NONE));
    assert_int_equal(j.a.valid.n, 0);
    assert_int_equal(rt_average_by_greedy_soup(&j.a), RT_E_USAGE);
    close_job(&j);
    OK(open_job(&j, SPIRAL, "lost/0.safetensors", "lost/1.safetensors",
                (const flag[]){{"valid", "0.1"}, {NULL, NULL}}));
    assert_true(j.a.valid.n > 0);
    close_job(&j);
}

/* ---- as the models saw them ---- */

/* Images with a bright half, so that mirroring changes what a layer sees. */
static const char *image_data(void) {
    enum { N = 96 };
    static char spec[1300];
    static uint8_t x[N * 64];
    int32_t y[N];
    const rt_shape xs = rt_shape4(N, 1, 8, 8), ys = rt_shape1(N);
    for (int i = 0; i < N; i++) {
        y[i] = i % 3;
        for (int k = 0; k < 64; k++)
            x[i * 64 + k] =
                (uint8_t)(rt_rng_below(rt_rng_make(1, RT_RNG_TEST, (uint64_t)i, 0), (uint64_t)k, 100) +
                          (k % 8 < 4 ? 100 : 0) + (uint64_t)(y[i] * 20));
    }
    OK(rt_npy_write(in_root("x.npy"), RT_DTYPE_U8, &xs, x));
    OK(rt_npy_write(in_root("y.npy"), RT_DTYPE_I32, &ys, y));
    snprintf(spec, sizeof spec, "npy:%s,%s,task=classification", in_root("x.npy"), in_root("y.npy"));
    return spec;
}

static double first_mean(const rt_average *a, const float *block) {
    return (double)
        block[rt_params_get(a->params, rt_params_find(a->params, "layer1.0.bn1.running_mean"))->offset];
}

static double refreshed(const char *data, const flag *flags) {
    job j;
    OK(open_job(&j, data, "moved", NULL, flags));
    rt_average_mean(&j.a);
    OK(rt_average_refresh_bn(&j.a, j.a.out, 0));
    const double mean = first_mean(&j.a, j.a.out);
    close_job(&j);
    return mean;
}

/* Crops with a dark frame darken what the first layer sees: refreshed statistics know. */
static void statistics_see_augmented_rows(void **state) {
    (void)state;
    const char *data = image_data();
    train("moved", data, "wrn:10,1", (const flag[]){{"augment", "crop:4"}, {NULL, NULL}});
    const double by_run = refreshed(data, NONE),
                 said = refreshed(data, (const flag[]){{"augment", "crop:4"}, {NULL, NULL}}),
                 plain = refreshed(data, (const flag[]){{"augment", "none"}, {NULL, NULL}});
    assert_true(by_run == said);
    assert_true(fabs(by_run - plain) > 0.05 * fabs(plain));
    train("still", data, "wrn:10,1", NONE);
    REFUSED("--augment", data, "moved", "still", NONE);
}

/* To the bit, statistics of batch normalisation included: the other model is ruined. */
static void a_soup_of_one_is_that_model(void **state) {
    (void)state;
    job j;
    OK(open_job(&j, image_data(), "moved", NULL, NONE));
    const size_t bytes = (size_t)j.a.floats * sizeof(float);
    for (int64_t i = 0; i < j.a.floats; i++)
        rt_model_weights(j.a.loaded[0], 1)[i] = i % 2 ? NAN : -1;
    OK(rt_average_by_greedy_soup(&j.a));
    assert_int_equal(rt_average_used(&j.a), 1);
    OK(rt_average_mend(&j.a));
    assert_memory_equal(j.a.out, j.a.blocks[0], bytes);
    close_job(&j);
}

/* Strangers are warned of, relatives are not. */
static void soups_of_strangers_are_warned_of(void **state) {
    (void)state;
    job j;
    OK(open_job(&j, SPIRAL, "drawn", NULL, NONE));
    OK(rt_average_by_soup(&j.a));
    assert_non_null(strstr(j.a.warning, "initialisation"));
    close_job(&j);
    OK(open_job(&j, SPIRAL, "drawn", NULL, NONE));
    float *w = rt_model_weights(j.a.loaded[0], 1);
    for (int64_t i = 0; i < j.a.floats; i++)
        w[i] = j.a.blocks[0][i] * (1 + 0.1f * (float)(i % 3));
    OK(rt_average_by_soup(&j.a));
    assert_string_equal(j.a.warning, "");
    close_job(&j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_runs),
        cmocka_unit_test(the_average_holds_out_the_same),
        cmocka_unit_test(runs_that_disagree_are_refused),
        cmocka_unit_test(what_was_not_held_out_does_not_judge),
        cmocka_unit_test(statistics_see_augmented_rows),
        cmocka_unit_test(a_soup_of_one_is_that_model),
        cmocka_unit_test(soups_of_strangers_are_warned_of),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
