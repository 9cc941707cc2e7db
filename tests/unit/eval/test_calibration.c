/*
 * test_calibration.c - the temperature against a search by thirds and at its limits, bins of confidence at
 * their borders, agreement of two predictors.
 */
#include "unit/eval/eval_case.h"

static double nll_at(rt_eval_input in, double ln_tau) {
    in.temperature = exp(ln_tau);
    return metric(&in, "nll_calibrated");
}

static double temperature(const rt_eval_input *in) {
    double tau;
    const char *why;
    assert_int_equal(rt_eval_temperature(in, &tau, &why), RT_OK);
    if (why)
        fail_msg("%s", why);
    return tau;
}

static void temperature_minimises(void **state) {
    (void)state;
    static random_case c;
    for (uint64_t seed = 0; seed < 6; seed++) {
        make_case(&c, seed, seed % 2 ? 0.4 : 2.5);
        rt_eval_input in = classes_of(&c);
        in.how.m = seed < 2 ? 1 : M;
        in.how.kind = seed > 3 ? RT_OUTPUT_DIRICHLET : RT_OUTPUT_LOGITS;
        double lo = -4, hi = 4;
        while (hi - lo > 1e-9) {
            const double a = lo + (hi - lo) / 3, b = hi - (hi - lo) / 3;
            *(nll_at(in, a) < nll_at(in, b) ? &hi : &lo) = nll_at(in, a) < nll_at(in, b) ? b : a;
        }
        near(log(temperature(&in)), lo, 1e-6); /* the minimum is flat: half the digits */
    }
}

static double member_temperature(const rt_eval_input *in) {
    double tau;
    const char *why;
    assert_int_equal(rt_eval_member_temperature(in, &tau, &why), RT_OK);
    assert_null(why);
    return tau;
}

static double member_nll_at(rt_eval_input in, double ln_tau) {
    in.how.member_temperature = exp(ln_tau);
    return metric(&in, "nll");
}

/* That of members before their mean: against a grid, as f need not be convex. One member is its own mean. */
static void member_temperature_minimises(void **state) {
    (void)state;
    static random_case c;
    for (uint64_t seed = 0; seed < 6; seed++) {
        make_case(&c, seed, seed % 2 ? 0.4 : 2.5);
        rt_eval_input in = classes_of(&c);
        const double tau = member_temperature(&in), least = member_nll_at(in, log(tau));
        assert_true(tau > exp(-4) && tau < exp(4));
        for (double at = -4; at <= 4; at += 1.0 / 64)
            assert_true(least <= member_nll_at(in, at));
        assert_true(least <= member_nll_at(in, log(tau) - 1e-4) &&
                    least <= member_nll_at(in, log(tau) + 1e-4));
        in.how.m = 1;
        near(member_temperature(&in), temperature(&in), 0);
    }
    const float right[] = {900, 0, 800, 0}, flat[] = {1, 1, 2, 2};
    const int32_t y = 0;
    rt_eval_input in = {.n = 1, .how = {.m = 2, .k = 2}, .y = right, .label = &y};
    near(member_temperature(&in), exp(-4), 1e-12);
    in.y = flat;
    near(member_temperature(&in), 1, 0);
    in.y = right;
    in.label = (const int32_t[]){1};
    near(member_temperature(&in), exp(4), 1e-9);
}

/* Labels drawn from softmax(z / 2) by their expected counts: the temperature is 2, exactly. */
static void temperature_known(void **state) {
    (void)state;
    enum { ODDS = 9, ROWS = ODDS + 1 };
    float z[ROWS * 2];
    int32_t y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        z[2 * i] = (float)(2 * log(ODDS));
        z[2 * i + 1] = 0;
        y[i] = i == 0;
    }
    const rt_eval_input in = {.n = ROWS, .how = {.m = 1, .k = 2}, .y = z, .label = y};
    near(temperature(&in), 2, 1e-6);
}

static void temperature_at_its_limits(void **state) {
    (void)state;
    const float z[] = {1, 0, 2, 0}, flat[] = {1, 1, 2, 2};
    const int32_t right[] = {0, 0}, wrong[] = {1, 1};
    rt_eval_input in = {.n = 2, .how = {.m = 1, .k = 2}, .y = z, .label = right};
    near(temperature(&in), exp(-4), 1e-12);
    in.label = wrong;
    near(temperature(&in), exp(4), 1e-9);
    in.y = flat;
    near(temperature(&in), 1, 0);
    double tau;
    const char *why;
    in.n = 0;
    assert_int_equal(rt_eval_temperature(&in, &tau, &why), RT_OK);
    assert_true(isnan(tau));
    assert_string_equal(why, "no validation rows");
    const float bad[] = {NAN, 0, 1, 0};
    in = (rt_eval_input){.n = 2, .how = {.m = 1, .k = 2}, .y = bad, .label = right};
    assert_int_equal(rt_eval_temperature(&in, &tau, &why), RT_OK);
    assert_string_equal(why, "a prediction is not finite");
    in.label = NULL;
    assert_int_equal(rt_eval_temperature(&in, &tau, &why), RT_OK);
    assert_string_equal(why, "no labels");
}

static void bins_and_their_gaps(void **state) {
    (void)state;
    static random_case c;
    make_case(&c, 4, 1);
    const rt_eval_input in = classes_of(&c);
    rt_reliability r;
    assert_int_equal(rt_eval_reliability(&in, &r), RT_OK);
    int64_t rows = 0;
    double ece = 0, right = 0;
    for (int b = 0; b < RT_ECE_BINS; b++) {
        rows += r.count[b];
        if (r.count[b] == 0) {
            assert_true(isnan(r.confidence[b]) && isnan(r.accuracy[b]));
            continue;
        }
        assert_true(r.confidence[b] > (double)b / RT_ECE_BINS &&
                    r.confidence[b] <= (double)(b + 1) / RT_ECE_BINS);
        ece += (double)r.count[b] * fabs(r.accuracy[b] - r.confidence[b]) / N;
        right += (double)r.count[b] * r.accuracy[b] / N;
    }
    assert_int_equal(rows, N);
    near(ece, metric(&in, "ece"), 1e-12);
    near(right, metric(&in, "accuracy"), 1e-12);
}

/* Bins are closed on the right: three equal classes have 1/3 = 5/15, one sure class is in the last. */
static void borders(void **state) {
    (void)state;
    const float third[] = {0, 0, 0}, sure[] = {500, 0, 0};
    const int32_t y = 0;
    rt_reliability r;
    rt_eval_input in = {.n = 1, .how = {.m = 1, .k = 3}, .y = third, .label = &y};
    assert_int_equal(rt_eval_reliability(&in, &r), RT_OK);
    assert_int_equal(r.count[4], 1);
    in.y = sure;
    assert_int_equal(rt_eval_reliability(&in, &r), RT_OK);
    assert_int_equal(r.count[RT_ECE_BINS - 1], 1);
    near(r.confidence[RT_ECE_BINS - 1], 1, 0);
}

/* ---- agreement ---- */

static void agreement_by_hand(void **state) {
    (void)state;
    /* teacher: members (.9 .1) and (.5 .5), mean (.7 .3); student (.4 .6) */
    const float t[] = {2.1972246f, 0, 0, 0}, s[] = {0, 0.4054651f};
    const rt_eval_input teacher = {.n = 1, .how = {.m = 2, .k = 2}, .y = t};
    const rt_eval_input student = {.n = 1, .how = {.m = 1, .k = 2}, .y = s};
    rt_agreement a;
    assert_int_equal(rt_eval_agreement(&student, &teacher, &a), RT_OK);
    near(a.kl, .7 * log(.7 / .4) + .3 * log(.3 / .6), 1e-7);
    near(a.entropy_difference, fabs(-.7 * log(.7) - .3 * log(.3) + .4 * log(.4) + .6 * log(.6)), 1e-7);
    near(a.agreement, 0, 0);
    assert_true(isnan(a.mutual_information_difference));
    assert_string_equal(a.mutual_information_difference_reason, "the student has no knowledge uncertainty");
    assert_int_equal(rt_eval_agreement(&teacher, &teacher, &a), RT_OK);
    near(a.kl, 0, 1e-16);
    near(a.mutual_information_difference, 0, 0);
    near(a.agreement, 1, 0);
    rt_eval_input dirichlet = student;
    dirichlet.how.kind = RT_OUTPUT_DIRICHLET;
    assert_int_equal(rt_eval_agreement(&dirichlet, &teacher, &a), RT_OK);
    near(a.mutual_information_difference,
         fabs(metric(&dirichlet, "mutual_information") - metric(&teacher, "mutual_information")), 1e-15);
}

static void agreement_of_gaussians(void **state) {
    (void)state;
    const float t[] = {1, 1, 3, 1}, s[] = {1, 4}; /* teacher N(2, 1 + 1) */
    const rt_reading one = {.kind = RT_OUTPUT_GAUSSIAN, .m = 1, .k = 2},
                     two = {.kind = RT_OUTPUT_GAUSSIAN, .m = 2, .k = 2};
    const rt_eval_input teacher = {.n = 1, .how = two, .y = t}, student = {.n = 1, .how = one, .y = s};
    rt_agreement a;
    assert_int_equal(rt_eval_agreement(&student, &teacher, &a), RT_OK);
    near(a.kl, log(2 / sqrt(2)) + (2 + 1.0) / 8 - 0.5, 1e-12);
    near(a.entropy_difference, 2, 1e-15);
    assert_non_null(a.agreement_reason);
    assert_non_null(a.mutual_information_difference_reason);
}

static void agreement_refuses(void **state) {
    (void)state;
    static random_case c;
    make_case(&c, 2, 1);
    rt_eval_input a = classes_of(&c), b = a;
    rt_agreement out;
    b.n--;
    assert_int_equal(rt_eval_agreement(&a, &b, &out), RT_E_INPUT);
    b = gaussians_of(&c);
    assert_int_equal(rt_eval_agreement(&a, &b, &out), RT_E_INPUT);
    c.logits[0] = NAN;
    assert_int_equal(rt_eval_agreement(&a, &a, &out), RT_OK);
    assert_true(isnan(out.kl) && out.kl_reason && isnan(out.agreement) && out.agreement_reason);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(temperature_minimises), cmocka_unit_test(member_temperature_minimises),
        cmocka_unit_test(temperature_known),     cmocka_unit_test(temperature_at_its_limits),
        cmocka_unit_test(bins_and_their_gaps),   cmocka_unit_test(borders),
        cmocka_unit_test(agreement_by_hand),     cmocka_unit_test(agreement_of_gaussians),
        cmocka_unit_test(agreement_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
