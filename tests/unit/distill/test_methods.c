/*
 * test_methods.c - the presets of methods.def against a table typed from the papers: what is distilled, at which
 * temperature, and how it is trained.
 */
#include "distill/distill.h"
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

typedef struct paper {
    const char *name, *student, *objective, *regression;
    double temperature, anneal, alpha, offset;
    bool grow; /* from a first phase of one member on the mean teacher */
    const char *keep, *optimiser;
    double lr;
    const char *schedule;
    double clip_norm, weight_decay;
} paper;

static const paper papers[] = {
    {"labels", "single", "labels", "labels", 1, 0, 1, 0, false, "accuracy", NULL, 0, NULL, 0, 0},
    /* Nam et al. 2022, section 5: tau = 4, alpha = 1 for every student by distillation */
    {"kd", "single", "kd", "gaussian-kd", 4, 0, 1, 0, false, "accuracy", NULL, 0, NULL, 0, 0},
    {"ae-kd", "single", "ae-kd", NULL, 4, 0, 1, 0, false, "accuracy", NULL, 0, NULL, 0, 0},
    {"latent-be", "latent-be", "one-to-one", "gaussian-one-to-one", 4, 0, 1, 0, false, "accuracy", NULL, 0,
     NULL, 0, 0},
    /* Mariet et al. 2021: no temperature, no labels, BatchEnsemble's own hyper-parameters */
    {"be-head", "batch-ensemble", "one-to-one", "gaussian-one-to-one", 1, 0, 1, 0, false, "accuracy", NULL, 0,
     NULL, 0, 0},
    {"be-knowledge", "batch-ensemble", "kd", "gaussian-kd", 1, 0, 1, 0, false, "accuracy", NULL, 0, NULL, 0,
     0},
    /* Malinin et al. 2020, Table 6: T0 = 10 annealed over the cycle of 60 of 90 epochs; Adam, 1-cycle, initial rates 1e-3
     * and, of the prior network, 5e-4; gradients of norm above 10 shortened (its program) */
    {"end2", "dirichlet", "end2", NULL, 10, 60.0 / 90, 1, 0, false, "accuracy", "adam", 1e-3, "one-cycle", 10,
     0},
    {"prior-net", "dirichlet", "prior-net", NULL, 1, 0, 1, 0, false, "accuracy", "adam", 5e-4, "one-cycle",
     10, 0},
    /* Ryabinin et al. 2021: alpha = e^z + 1 */
    {"proxy-end2", "dirichlet", "proxy-end2", NULL, 1, 0, 1, 1, false, "accuracy", NULL, 0, NULL, 0, 0},
    /* Tran et al. 2020: heads grow from one; weights of the best validation loss; T is not stated, 4 as third parties have it */
    {"hydra", "hydra", "one-to-one", "gaussian-one-to-one", 4, 0, 1, 0, true, "loss", NULL, 0, NULL, 0, 0},
};

static bool same(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void test_table(void **state) {
    (void)state;
    assert_int_equal(rt_method_count(), RT_COUNT(papers));
    for (int64_t i = 0; i < RT_COUNT(papers); i++) {
        const paper *p = &papers[i];
        const rt_method *m = rt_method_find(p->name);
        if (!m)
            fail_msg("there is no method %s", p->name);
        const rt_method_phase *last = rt_method_last(m);
        const rt_objective *o = rt_objective_find(last->objective);
        const bool grows = rt_method_phases(m) == 2 && same(m->phase[0].objective, "kd") &&
                           same(m->phase[0].regression, "gaussian-kd") &&
                           rt_student_grows(m->phase[0].student, "hydra:4") &&
                           !rt_student_grows(m->phase[0].student, "hydra:1") &&
                           !rt_student_grows(m->phase[0].student, "latent-be:4");
        if (!same(last->student, p->student) || !same(last->objective, p->objective) ||
            !same(last->regression, p->regression) || !same(m->perturb, "none") || !same(m->keep, p->keep) ||
            grows != p->grow)
            fail_msg("%s: another student, objective, perturbation, growth or weights than the paper's",
                     p->name);
        if (m->temperature != p->temperature || m->alpha != p->alpha || o->offset != p->offset ||
            m->anneal < p->anneal - 1e-4 || m->anneal > p->anneal + 1e-4)
            fail_msg("%s: T %g, anneal %g, alpha %g, offset %g; wanted %g, %g, %g, %g", p->name,
                     m->temperature, m->anneal, m->alpha, o->offset, p->temperature, p->anneal, p->alpha,
                     p->offset);
        const rt_optimiser_preset *by = &o->optimiser;
        if (!same(by->name, p->optimiser) || !same(by->schedule, p->schedule) || by->lr != p->lr ||
            by->clip_norm != p->clip_norm || by->weight_decay != p->weight_decay)
            fail_msg("%s: trained otherwise than in the paper", p->name);
    }
}

/* Malinin et al. 2020, A.2: constant in the first half-cycle, linear down to 1 in the second, 1 for the rest. */
static void test_annealing(void **state) {
    (void)state;
    static const struct {
        double epoch, want;
    } table[] = {{0, 10}, {29, 10}, {30, 10}, {40, 7}, {45, 5.5}, {59, 1.3}, {60, 1}, {89, 1}};
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        const double got = rt_method_temperature(10, 60.0 / 90, table[i].epoch / 90);
        if (!(got > table[i].want - 1e-9 && got < table[i].want + 1e-9))
            fail_msg("epoch %g of 90: T = %g, wanted %g", table[i].epoch, got, table[i].want);
    }
    assert_true(rt_method_temperature(4, 0, 0.9) == 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_annealing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
