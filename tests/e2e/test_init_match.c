/*
 * test_init_match.c - a BatchEnsemble student started at renumbered copies of one network: as they are, no shared
 * kernel fits them; matched, the fit is exact, and every member is the network.
 */
#include "align/align.h"
#include "base/alloc.h"
#include "base/file.h"
#include "config/config.h"
#include "model/model.h"
#include "support/flags.h"
#include "support/root.h"
#include "train/train.h"
#include <math.h>

enum { MEMBERS = 3 };

static void run(unsigned verb, const char *name, const flag *flags) {
    rt_config c;
    configure(&c, verb, flags);
    set_flag(&c, verb, "data", "spiral:n=60,noise=0.2");
    set_flag(&c, verb, "out", in_root(name));
    OK(run_config(&c, verb, NULL));
}

/* The members of the run become renumbered copies of the first. */
static void plant(const char *name) {
    rt_model *m;
    rt_params *params;
    rt_student *student;
    rt_symmetry sym;
    int64_t *perm;
    char path[700];
    OK(rt_model_load(&m, in_root(name)));
    OK(rt_params_create(&params));
    OK(rt_student_create(&student, rt_student_get_config(rt_model_student(m)), params));
    OK(rt_symmetry_find(&sym, rt_student_net(student), params));
    OK(rt_calloc(&perm, (size_t)sym.total, sizeof *perm));
    for (int i = 1; i < MEMBERS; i++) {
        rt_perm_random(&sym, perm, rt_rng_make(3, RT_RNG_TEST, (uint64_t)i, 0));
        rt_perm_apply(&sym, params, rt_model_weights(m, i), rt_model_block(m, 0), perm);
        snprintf(path, sizeof path, "%s/member-%03d.safetensors", in_root(name), i);
        OK(rt_model_save(m, i, path, &(rt_provenance){.method = "test", .of = MEMBERS}));
    }
    rt_free(perm);
    rt_symmetry_deinit(&sym);
    rt_student_destroy(&student);
    rt_params_destroy(&params);
    rt_model_destroy(&m);
}

static double logged(const char *name, const char *key) {
    char file[64];
    uint8_t *text;
    size_t n;
    rt_jdoc *doc;
    double v = NAN;
    snprintf(file, sizeof file, "%s/log.jsonl", name);
    OK(rt_file_read(in_root(file), 1 << 20, &text, &n));
    OK(rt_jdoc_parse(&doc, (const char *)text, strcspn((const char *)text, "\n"), file));
    rt_jval_f64(rt_jval_get(rt_jdoc_root(doc), key), &v);
    rt_jdoc_destroy(&doc);
    rt_free(text);
    return v;
}

static void renumbered_copies_fit_exactly(void **state) {
    (void)state;
    run(RT_VERB_TRAIN, "teacher",
        (const flag[]){{"arch", "mlp:12,10"}, {"members", "3"}, {"epochs", "3"}, {NULL, NULL}});
    plant("teacher");
    char teacher[700];
    snprintf(teacher, sizeof teacher, "%s", in_root("teacher"));
    for (int match = 0; match < 2; match++)
        run(RT_VERB_DISTILL, match ? "matched" : "plain",
            (const flag[]){{"teacher", teacher},
                           {"method", "be-head"},
                           {"init-from-teacher", match ? "match" : "true"},
                           {"epochs", "0"},
                           {NULL, NULL}});
    const double plain = logged("plain", "reconstruction_residual"),
                 before = logged("matched", "reconstruction_residual_unmatched"),
                 after = logged("matched", "reconstruction_residual");
    assert_true(plain > 0.3 && before == plain && after < 1e-6);
    assert_true(isnan(logged("plain", "reconstruction_residual_unmatched")));

    /* untrained, every member of the student is the first teacher */
    rt_model *t, *s;
    rt_dataset *d;
    rt_pool *pool;
    float *want, *got;
    OK(rt_pool_create(&pool, 1));
    OK(rt_dataset_open(&d, "spiral:n=60,noise=0.2", (rt_data_options){.seed = 1}));
    const rt_part *rows = rt_dataset_test(d);
    OK(rt_model_load(&t, teacher));
    OK(rt_model_load(&s, in_root("matched")));
    OK(rt_calloc(&want, (size_t)(rows->n * MEMBERS * 3), sizeof *want));
    OK(rt_calloc(&got, (size_t)(rows->n * MEMBERS * 3), sizeof *got));
    OK(rt_model_predict(t, rows, pool, want, NULL));
    OK(rt_model_predict(s, rows, pool, got, NULL));
    for (int64_t i = 0; i < rows->n * MEMBERS * 3; i++)
        assert_true(fabs((double)got[i] - (double)want[i]) < 1e-3);
    rt_free(want);
    rt_free(got);
    rt_model_destroy(&t);
    rt_model_destroy(&s);
    rt_dataset_destroy(&d);
    rt_pool_destroy(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(renumbered_copies_fit_exactly)};
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
