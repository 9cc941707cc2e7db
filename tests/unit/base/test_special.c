/* test_special.c - gamma functions against 20-digit values (mpmath), and their recurrences. */
#include "base/compiler.h"
#include "base/special.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_near(double got, double want) {
    if (!(fabs(got - want) <= 2e-14 + 1e-13 * fabs(want)))
        fail_msg("got %.17g, wanted %.17g", got, want);
}

static void test_values(void **state) {
    (void)state;
    static const struct {
        double x, lgamma, digamma, trigamma;
    } table[] = {
        {1e-10, 23.025850929882735237, -10000000000.5772153, 99999999999999992715.0},
        {1e-3, 6.9071788853838536617, -1000.5755719318102797, 1000001.6425331958273},
        {0.1, 2.252712651734205902, -10.423754940411076232, 101.4332991507927477},
        {0.5, 0.57236494292470008707, -1.9635100260214234794, 4.9348022005446793094},
        {0.95, 0.030968795237972926467, -0.66260961620532541493, 1.7738094443762760996},
        {1, 0.0, -0.57721566490153286061, 1.6449340668482264365},
        {1.05, -0.026853072502260190189, -0.49784499129987030301, 1.5323573421151192149},
        {1.5, -0.12078223763524522235, 0.036489973978576520559, 0.93480220054467930942},
        {1.95, -0.020324499149577653705, 0.39002196274204305532, 0.66577620337904607914},
        {2, 0.0, 0.42278433509846713939, 0.64493406684822643647},
        {2.05, 0.021937091667171754244, 0.45453596108108189881, 0.62532786365706948946},
        {3, 0.69314718055994530942, 0.92278433509846713939, 0.39493406684822643647},
        {5.5, 3.9578139676187162939, 1.6110931485817511237, 0.19934238698962765913},
        {9.999, 12.799575780077413715, 2.2516474172057353142, 0.10517738667672886215},
        {10, 12.801827480081469611, 2.2517525890667211076, 0.10516633568168574612},
        {33.25, 82.429238345909042294, 3.4889418035209386936, 0.030531979535421604308},
        {1234.5, 7550.5509010778948957, 7.1180162318279978433, 0.0008103727271269666527},
        {1e6, 12815504.56914761166, 13.815510057964190771, 1.0000005000001666667e-6},
    };
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        assert_near(rt_lgamma(table[i].x), table[i].lgamma);
        assert_near(rt_digamma(table[i].x), table[i].digamma);
        assert_near(rt_trigamma(table[i].x), table[i].trigamma);
    }
}

static void test_rests(void **state) {
    (void)state;
    static const struct {
        double x, lgamma, trigamma;
    } table[] = {
        {1e-13, 30.933606208922693892, 9999999999999.0},
        {0.001, 7.908754457315663983, 999.00164253319586898},
        {0.5, 2.0541199559354118268, 1.4674011002723396547},
        {1, 1.5772156649015328606, 0.64493406684822643647},
        {3, 0.92479417526454389124, 0.18480220054467930942},
        {9.99, 0.28481848976649389608, 0.051716731980935449591},
        {10, 0.28430158941425853473, 0.051663356816857461222},
        {25, -0.18383342318703102311, 0.020266581430639479684},
        {1000, -2.0347724396308402239, 0.00050016666663333335714},
        {1e6, -5.4888165791107976436, 5.0000016666666666663e-7},
        {1e11, -11.245279478260911854, 5.0000000000166666667e-12},
        {1e13, -13.547864571256607538, 5.0000000000001666667e-14},
    };
    for (int64_t i = 0; i < RT_COUNT(table); i++) {
        assert_near(rt_lgamma_rest(table[i].x), table[i].lgamma);
        assert_near(rt_trigamma_rest(table[i].x), table[i].trigamma);
        /* the small one also to a relative measure where it is a series */
        if (table[i].x >= 10)
            assert_true(fabs(rt_trigamma_rest(table[i].x) / table[i].trigamma - 1) < 1e-13);
    }
}

/* f(x+1) - f(x) is elementary; a seam between two formulas would show here. */
static void test_recurrences(void **state) {
    (void)state;
    for (int i = 1; i < 2000; i++) {
        double x = i * 0.01;
        assert_near(rt_lgamma(x + 1), rt_lgamma(x) + log(x));
        assert_near(rt_digamma(x + 1), rt_digamma(x) + 1 / x);
        assert_near(rt_trigamma(x + 1) + 1 / (x * x), rt_trigamma(x));
    }
}

/* KL(Dir(a) || Dir(b)) uses all of ln Gamma and psi; values worked out independently. */
static double dirichlet_kl(const double *a, const double *b, int k) {
    double a0 = 0, b0 = 0, kl = 0;
    for (int i = 0; i < k; i++) {
        a0 += a[i];
        b0 += b[i];
    }
    kl = rt_lgamma(a0) - rt_lgamma(b0);
    for (int i = 0; i < k; i++)
        kl += rt_lgamma(b[i]) - rt_lgamma(a[i]) + (a[i] - b[i]) * (rt_digamma(a[i]) - rt_digamma(a0));
    return kl;
}

static void test_dirichlet(void **state) {
    (void)state;
    const double a[] = {1, 1, 1}, b[] = {2, 3, 4};
    assert_true(fabs(dirichlet_kl(a, b, 3) - 1.573450927603) < 1e-12);
    assert_true(fabs(dirichlet_kl(b, a, 3) - 0.619406215254) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_rests),
        cmocka_unit_test(test_recurrences),
        cmocka_unit_test(test_dirichlet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
