/*
 * test_defaults.c - regressions train as they come, on tables like those people have: a target far from zero, heavy
 * tails, few rows. And a run that came to nothing says so (doubt.c), in its result, metrics.json and log.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "support/flags.h"
#include "support/root.h"
#include "train/train_int.h"

static char far[600], heavy[600], few[600];

static rt_train_result run(const char *name, const flag *f) {
    rt_config c;
    rt_train_result r;
    configure(&c, RT_VERB_TRAIN, f);
    set_flag(&c, RT_VERB_TRAIN, "out", in_root(name));
    set_flag(&c, RT_VERB_TRAIN, "threads", "1");
    OK(run_config(&c, RT_VERB_TRAIN, &r));
    return r;
}

/* y = centre + spread (a linear part, a bend and noise); heavy: its exponential. */
static void write_table(char spec[600], const char *name, int rows, double centre, double spread, bool tail) {
    const rt_rng r = rt_rng_make(5, RT_RNG_TEST, (uint64_t)rows, 0);
    FILE *f = fopen(in_root(name), "w");
    assert_non_null(f);
    fprintf(f, "a,b,c,y\n");
    for (int i = 0; i < rows; i++) {
        double x[3];
        for (int k = 0; k < 3; k++)
            x[k] = rt_rng_normal(r, (uint64_t)(4 * i + k));
        const double y = x[0] - 0.5 * x[1] * x[1] + 0.1 * rt_rng_normal(r, (uint64_t)(4 * i + 3));
        fprintf(f, "%.5f,%.5f,%.5f,%.6f\n", x[0], 1000 + 50 * x[1], x[2],
                centre + spread * (tail ? exp(2 * y) : y));
    }
    fclose(f);
    snprintf(spec, 600, "csv:%s,target=y,task=regression", in_root(name));
}

static int set_up(void **state) {
    if (make_root(state) != 0)
        return -1;
    write_table(far, "far.csv", 3000, 450, 17, false);
    write_table(heavy, "heavy.csv", 1500, 0, 1, true);
    write_table(few, "few.csv", 150, 3, 2, false);
    return 0;
}

/* Error of the mean over members, over that of the best constant, on the rows set aside for testing. */
static double share_of_error(const char *name, const char *data) {
    rt_model *m;
    rt_dataset *d;
    rt_pool *pool;
    float *y;
    double error = 0, sum = 0, square = 0;
    expect(rt_model_load(&m, in_root(name)), RT_OK);
    expect(rt_dataset_open(&d, data, (rt_data_options){.seed = 1}), RT_OK);
    expect(rt_pool_create(&pool, 1), RT_OK);
    const rt_part *p = rt_dataset_test(d);
    const int members = rt_model_members(m);
    expect(rt_calloc(&y, (size_t)(p->n * members * 2), sizeof *y), RT_OK);
    expect(rt_model_predict(m, p, pool, y, NULL), RT_OK);
    rt_row r;
    expect(rt_row_init(&r, rt_model_reading(m)), RT_OK);
    for (int64_t i = 0; i < p->n; i++) {
        const double target = (double)p->target[i];
        assert_true(rt_row_read(&r, y + i * members * 2));
        error += (r.mean - target) * (r.mean - target);
        sum += target;
        square += target * target;
    }
    const double n = (double)p->n, share = sqrt(error / (square - sum * sum / n));
    rt_row_deinit(&r);
    rt_free(y);
    rt_pool_destroy(&pool);
    rt_dataset_destroy(&d);
    rt_model_destroy(&m);
    return share;
}

static void test_regressions(void **state) {
    (void)state;
    const struct {
        const char *name, *data;
        double share;
    } table[] = {{"far", far, 0.25}, {"heavy", heavy, 0.6}, {"few", few, 0.5}};
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        const rt_train_result r =
            run(table[i].name,
                (flag[]){{"data", table[i].data}, {"arch", "mlp:50"}, {"members", "5"}, {NULL, NULL}});
        const double share = share_of_error(table[i].name, table[i].data);
        if (!(share < table[i].share) || r.doubt[0])
            fail_msg("%s: the error is %.3f of that of the mean, wanted below %.2f; doubt '%s'",
                     table[i].name, share, table[i].share, r.doubt);
    }
}

static bool holds(const char *name, const char *file, const char *words) {
    char path[64];
    uint8_t *text;
    size_t n;
    snprintf(path, sizeof path, "%s/%s", name, file);
    expect(rt_file_read(in_root(path), 1 << 22, &text, &n), RT_OK);
    const bool found = strstr((const char *)text, words) != NULL;
    rt_free(text);
    return found;
}

/* A rate that throws weights about: of a regression and of a classification. */
static void test_doubts(void **state) {
    (void)state;
    rt_train_result r = run("lost", (flag[]){{"data", far},
                                             {"arch", "mlp:50"},
                                             {"members", "2"},
                                             {"optimiser", "adam"},
                                             {"lr", "10"},
                                             {"epochs", "2"},
                                             {"schedule", "constant"},
                                             {"clip-norm", "0"},
                                             {NULL, NULL}});
    if (!strstr(r.doubt, "mean and deviation"))
        fail_msg("doubt: '%s', NLL %g", r.doubt, r.valid_loss);
    assert_true(holds("lost", "metrics.json", "\"doubt\"") && holds("lost", "log.jsonl", "\"doubt\""));
    /* the likelihood of a wide Gaussian may still be as good as that of the mean, but its mean is not */
    r = run("wild", (flag[]){{"data", far},
                             {"arch", "mlp:50"},
                             {"members", "5"},
                             {"optimiser", "sgd"},
                             {"lr", "0.1"},
                             {"epochs", "10"},
                             {"clip-norm", "0"},
                             {NULL, NULL}});
    if (!strstr(r.doubt, "mean and deviation"))
        fail_msg("doubt: '%s', NLL %g", r.doubt, r.valid_loss);
    r = run("classes", (flag[]){{"data", "spiral:n=200,noise=0.2,arms=3"},
                                {"arch", "mlp:16"},
                                {"optimiser", "adam"},
                                {"lr", "30"},
                                {"epochs", "3"},
                                {"schedule", "constant"},
                                {NULL, NULL}});
    if (!strstr(r.doubt, "class frequencies"))
        fail_msg("doubt: '%s', NLL %g", r.doubt, r.valid_loss);
    r = run("good", (flag[]){{"data", "spiral:n=200,noise=0.2,arms=3"},
                             {"arch", "mlp:16"},
                             {"optimiser", "adam"},
                             {"lr", "0.01"},
                             {NULL, NULL}});
    if (r.doubt[0] || holds("good", "metrics.json", "\"doubt\""))
        fail_msg("doubt: '%s'", r.doubt);
}

/* A training loss that ends tenfold its lowest; losses below zero count by their distance. */
static void test_rises(void **state) {
    (void)state;
    static const struct {
        double epochs[3];
        bool lost;
    } table[] = {{{1, 0.5, 4.9}, false}, {{1, 0.5, 5.1}, true}, {{5.1, 0.5, 0.6}, false},
                 {{1, -2, 15}, false},   {{1, -2, 17}, true},   {{1, 0.01, 0.8}, false},
                 {{1, 0.01, 1.2}, true}};
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        double loss[1], lowest[1] = {0}, kept[1] = {NAN}, last[1] = {0};
        char text[RT_DOUBT_MAX];
        rt_config c = {.seed = 1};
        rt_trainer t = {.verb = RT_VERB_TRAIN,
                        .c = &c,
                        .aim.nphases = 1,
                        .data = {.nbatches = 4, .epoch_rows = 100},
                        .members = {.all = 1, .own = 1, .losses = last}};
        t.at = (rt_progress_state){.step = 4, .loss_sum = loss, .lowest = lowest, .kept_loss = kept};
        for (int e = 0; e < 3; e++) {
            t.at.epoch = e;
            loss[0] = 100 * table[i].epochs[e];
            rt_trainer_lowest(&t);
        }
        expect(rt_trainer_doubt(&t, text), RT_OK);
        if ((strstr(text, "tenfold") != NULL) != table[i].lost)
            fail_msg("%g, %g, %g: '%s'", table[i].epochs[0], table[i].epochs[1], table[i].epochs[2], text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_regressions), cmocka_unit_test(test_doubts),
                                       cmocka_unit_test(test_rises)};
    return cmocka_run_group_tests(tests, set_up, remove_root);
}
