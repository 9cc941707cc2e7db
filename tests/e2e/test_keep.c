/*
 * test_keep.c - which weights of a run are kept: of the epoch with the lowest validation loss, with the highest
 * validation accuracy, or the last; told in metrics.json and the log, and really those in the model file.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "config/config.h"
#include "model/model.h"
#include "support/flags.h"
#include "support/root.h"
#include "train/train.h"
#include <math.h>
#include <stdlib.h>

enum { EPOCHS = 14 };

/* A constant rate, so that a shorter run is the beginning of a longer one. */
static void run(unsigned verb, const char *name, const char *keep, int epochs, const flag *more) {
    rt_config c;
    char count[16];
    snprintf(count, sizeof count, "%d", epochs);
    const flag base[] = {{"data", "spiral:n=150,noise=0.4"},
                         {"arch", "mlp:32"},
                         {"epochs", count},
                         {"batch", "16"},
                         {"optimiser", "adam"},
                         {"lr", "0.05"},
                         {"schedule", "constant"},
                         {"valid", "0.4"},
                         {"threads", "1"},
                         {"keep", keep},
                         {"out", in_root(name)},
                         {NULL, NULL}};
    configure(&c, verb, base);
    set_flags(&c, verb, more);
    OK(run_config(&c, verb, NULL));
}

static rt_jdoc *read_json(const char *file, uint8_t **text) {
    size_t n;
    rt_jdoc *doc;
    OK(rt_file_read(in_root(file), 1 << 20, text, &n));
    OK(rt_jdoc_parse(&doc, (const char *)*text, n, file));
    return doc;
}

/* The epoch that metrics.json says was kept, and by what. */
static int kept(const char *name, char how[16]) {
    char file[64];
    uint8_t *text;
    const char *keep;
    int64_t epoch;
    snprintf(file, sizeof file, "%s/metrics.json", name);
    rt_jdoc *doc = read_json(file, &text);
    const rt_jval root_value = rt_jdoc_root(doc);
    assert_true(rt_jval_str(rt_jval_get(root_value, "keep"), &keep));
    snprintf(how, 16, "%s", keep);
    assert_true(rt_jval_i64(rt_jval_get(rt_jval_at(rt_jval_get(root_value, "kept"), 0), "epoch"), &epoch));
    rt_jdoc_destroy(&doc);
    rt_free(text);
    return (int)epoch;
}

/* The epochs with the lowest loss and the highest accuracy (of equals the lower loss), from the log. */
static void best_epochs(const char *name, int *by_loss, int *by_accuracy, char keep[16]) {
    char file[64], *line;
    uint8_t *text;
    size_t n;
    double loss, accuracy, lowest = INFINITY, highest = -1, its_loss = INFINITY;
    snprintf(file, sizeof file, "%s/log.jsonl", name);
    OK(rt_file_read(in_root(file), 1 << 20, &text, &n));
    char *end = (char *)text + n;
    for (line = (char *)text; line < end; line += strcspn(line, "\n") + 1) {
        rt_jdoc *doc;
        const char *event, *how;
        int64_t epoch;
        OK(rt_jdoc_parse(&doc, line, strcspn(line, "\n"), file));
        const rt_jval v = rt_jdoc_root(doc);
        assert_true(rt_jval_str(rt_jval_get(v, "event"), &event));
        if (strcmp(event, "finished") == 0) {
            assert_true(rt_jval_str(rt_jval_get(v, "keep"), &how));
            snprintf(keep, 16, "%s", how);
        }
        if (strcmp(event, "epoch") == 0) {
            assert_true(rt_jval_i64(rt_jval_get(v, "epoch"), &epoch) &&
                        rt_jval_f64(rt_jval_get(v, "valid_loss"), &loss) &&
                        rt_jval_f64(rt_jval_get(v, "valid_accuracy"), &accuracy));
            if (loss < lowest) {
                lowest = loss;
                *by_loss = (int)epoch;
            }
            if (accuracy > highest || (accuracy == highest && loss < its_loss)) {
                highest = accuracy;
                its_loss = loss;
                *by_accuracy = (int)epoch;
            }
        }
        rt_jdoc_destroy(&doc);
    }
    rt_free(text);
}

static void same_weights(const char *one, const char *two) {
    rt_model *a, *b;
    OK(rt_model_load(&a, in_root(one)));
    OK(rt_model_load(&b, in_root(two)));
    assert_memory_equal(rt_model_block(a, 0), rt_model_block(b, 0),
                        (size_t)rt_params_floats(rt_model_params(a)) * sizeof(float));
    rt_model_destroy(&a);
    rt_model_destroy(&b);
}

static void each_keeps_its_epoch(void **state) {
    (void)state;
    static const char *const keeps[] = {"loss", "accuracy", "last", "best"};
    int want[4] = {0, 0, EPOCHS, 0};
    char how[16], logged[16], part[32];
    for (int i = 0; i < 4; i++) {
        run(RT_VERB_TRAIN, keeps[i], keeps[i], EPOCHS, NULL);
        best_epochs(keeps[i], &want[0], &want[1], logged);
        want[3] = want[1];
        assert_int_equal(kept(keeps[i], how), want[i]);
        assert_string_equal(how, i == 3 ? "accuracy" : keeps[i]);
        assert_string_equal(logged, how);
        snprintf(part, sizeof part, "first-%d", i);
        run(RT_VERB_TRAIN, part, "last", want[i], NULL);
        same_weights(keeps[i], part);
    }
    assert_true(want[0] != want[1] && want[0] != EPOCHS && want[1] != EPOCHS); /* else this shows little */
}

/* Hydra by loss, as its paper; the other presets by accuracy; what the flag says wins. */
static void presets(void **state) {
    (void)state;
    char how[16];
    for (int i = 0; i < rt_method_count(); i++) {
        const char *name = rt_method_get(i)->name;
        assert_string_equal(rt_method_get(i)->keep, strcmp(name, "hydra") == 0 ? "loss" : "accuracy");
    }
    run(RT_VERB_TRAIN, "teacher", "last", 2, (const flag[]){{"members", "2"}, {NULL, NULL}});
    const flag hydra[] = {{"teacher", in_root("teacher")}, {"method", "hydra"}, {NULL, NULL}},
               kd[] = {{"teacher", in_root("teacher")}, {"method", "kd"}, {NULL, NULL}};
    run(RT_VERB_DISTILL, "hydra", "best", 3, hydra);
    kept("hydra", how);
    assert_string_equal(how, "loss");
    run(RT_VERB_DISTILL, "hydra-accuracy", "accuracy", 3, hydra);
    kept("hydra-accuracy", how);
    assert_string_equal(how, "accuracy");
    run(RT_VERB_DISTILL, "kd", "best", 3, kd);
    kept("kd", how);
    assert_string_equal(how, "accuracy");
    run(RT_VERB_TRAIN, "none", "loss", 2, (const flag[]){{"valid", "0"}, {NULL, NULL}});
    assert_int_equal(kept("none", how), 2);
    assert_string_equal(how, "last"); /* nothing to judge by */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_keeps_its_epoch), cmocka_unit_test(presets)};
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
