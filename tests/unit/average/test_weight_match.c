/*
 * test_weight_match.c - a network that was renumbered and disturbed gets its numbers back.
 */
#include "average/average_int.h"
#include "base/alloc.h"
#include "support/check.h"
#include <math.h>
#include <string.h>

enum { MODELS = 4 };

typedef struct fixture {
    rt_params *params;
    rt_net *net;
    rt_symmetry sym;
    rt_pool *pool;
    float *clean, *noisy, *block[MODELS];
    int64_t floats, *hidden, *found, *tmp; /* (MODELS, total) */
} fixture;

/* Model m: the clean weights with noise of `noise` of their size, renumbered; model 0 keeps its numbers. */
static void open_fixture(fixture *f, const char *spec, double noise, int threads) {
    const rt_arch_config c = {.spec = spec, .input = rt_shape3(3, 8, 8), .outputs = 5};
    memset(f, 0, sizeof *f);
    OK(rt_params_create(&f->params));
    OK(rt_net_create(&f->net, &c, f->params, NULL));
    OK(rt_symmetry_find(&f->sym, f->net, f->params));
    OK(rt_pool_create(&f->pool, threads));
    f->floats = rt_params_floats(f->params);
    const size_t total = (size_t)(MODELS * f->sym.total);
    OK(rt_calloc(&f->clean, (size_t)f->floats, sizeof(float)));
    OK(rt_calloc(&f->noisy, (size_t)f->floats, sizeof(float)));
    OK(rt_calloc(&f->hidden, total, sizeof *f->hidden));
    OK(rt_calloc(&f->found, total, sizeof *f->found));
    OK(rt_calloc(&f->tmp, total, sizeof *f->tmp));
    rt_params_init(f->params, f->clean, 11);
    for (int m = 0; m < MODELS; m++) {
        int64_t *perm = f->hidden + m * f->sym.total;
        const rt_rng r = rt_rng_make(5, RT_RNG_TEST, (uint64_t)m, 0);
        OK(rt_calloc(&f->block[m], (size_t)f->floats, sizeof(float)));
        if (m == 0)
            rt_perm_identity(&f->sym, perm);
        else
            rt_perm_random(&f->sym, perm, rt_rng_make(6, RT_RNG_TEST, (uint64_t)m, 0));
        for (int64_t k = 0; k < f->floats; k++)
            f->noisy[k] = f->clean[k] * (float)(1 + noise * rt_rng_normal(r, (uint64_t)k));
        rt_perm_apply(&f->sym, f->params, f->block[m], f->noisy, perm);
        rt_perm_identity(&f->sym, f->found + m * f->sym.total);
    }
}

static void close_fixture(fixture *f) {
    for (int m = 0; m < MODELS; m++)
        rt_free(f->block[m]);
    rt_free(f->clean);
    rt_free(f->noisy);
    rt_free(f->hidden);
    rt_free(f->found);
    rt_free(f->tmp);
    rt_pool_destroy(&f->pool);
    rt_symmetry_deinit(&f->sym);
    rt_net_destroy(&f->net);
    rt_params_destroy(&f->params);
}

/* Units of model m that are not back in their places. */
static int64_t strays(const fixture *f, int m) {
    int64_t n = 0;
    rt_perm_compose(&f->sym, f->tmp, f->hidden + m * f->sym.total, f->found + m * f->sym.total,
                    f->tmp + f->sym.total);
    for (int g = 0; g < f->sym.bundles; g++)
        for (int64_t i = 0; i < f->sym.bundle[g].n; i++)
            n += f->tmp[f->sym.bundle[g].offset + i] != i;
    return n;
}

static const struct {
    const char *spec;
    double noise;
} cases[] = {{"mlp:512", 0}, {"mlp:512", 0.3}, {"mlp:128,64,32", 0.1}, {"wrn:10,1", 0.1}, {"resnet20", 0.05}};

static void planted_pair(void **state) {
    (void)state;
    for (int64_t i = 0; i < RT_COUNT(cases); i++) {
        fixture f;
        rt_matcher *t;
        double gain;
        open_fixture(&f, cases[i].spec, cases[i].noise, 2);
        OK(rt_matcher_create(&t, &f.sym, f.params, f.pool));
        OK(rt_matcher_run(t, f.block[0], f.block[1], f.found + f.sym.total, 1, &gain));
        assert_true(gain > 0);
        if (strays(&f, 1) != 0)
            fail_msg("%s, noise %g: %lld units are not recovered", cases[i].spec, cases[i].noise,
                     (long long)strays(&f, 1));
        OK(rt_matcher_run(t, f.block[0], f.block[1], f.found + f.sym.total, 2, &gain));
        assert_true(gain == 0); /* nothing is left to do */
        rt_matcher_destroy(&t);
        close_fixture(&f);
    }
}

static void planted_crowd(void **state) {
    (void)state;
    for (int running = 0; running < 2; running++) {
        fixture f;
        rt_matcher *t;
        open_fixture(&f, "mlp:64,48", 0.2, 1);
        OK(rt_matcher_create(&t, &f.sym, f.params, f.pool));
        OK(rt_matcher_many(t, (const float *const *)f.block, MODELS, running, f.found, 1, NULL, NULL));
        for (int m = 0; m < MODELS; m++)
            assert_int_equal(strays(&f, m), 0);
        for (int64_t k = 0; k < f.sym.bundles; k++) /* the first keeps its numbers */
            assert_int_equal(f.found[f.sym.bundle[k].offset], 0);
        rt_matcher_destroy(&t);
        close_fixture(&f);
    }
}

/* Where there is nothing to recover (strangers), the answer still depends on the seed alone. */
static void threads_do_not_matter(void **state) {
    (void)state;
    int64_t *first = NULL;
    for (int threads = 1; threads <= 3; threads += 2) {
        fixture f;
        rt_matcher *t;
        open_fixture(&f, "wrn:10,1", 5, threads);
        OK(rt_matcher_create(&t, &f.sym, f.params, f.pool));
        OK(rt_matcher_many(t, (const float *const *)f.block, 3, false, f.found, 1, NULL, NULL));
        const size_t bytes = (size_t)(3 * f.sym.total) * sizeof *first;
        if (!first) {
            OK(rt_alloc(&first, bytes));
            memcpy(first, f.found, bytes);
        }
        assert_memory_equal(first, f.found, bytes);
        rt_matcher_destroy(&t);
        close_fixture(&f);
    }
    rt_free(first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_pair),
        cmocka_unit_test(planted_crowd),
        cmocka_unit_test(threads_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
