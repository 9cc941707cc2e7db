/*
 * test_metrics.c - every metric against a hand-computed example and against a brute-force twin: the
 * definition written a second time, without the shortcuts, on random predictions. Then what is not defined,
 * and what is refused.
 */
#include "unit/eval/eval_case.h"

/* ---- by hand ---- */

/* Rows of probabilities as the logits of one member. */
static rt_eval_input from_p(float *logits, const double *p, const int32_t *y, int64_t n, int64_t m,
                            int64_t k) {
    for (int64_t i = 0; i < n * m * k; i++)
        logits[i] = (float)log(p[i]);
    return (rt_eval_input){.n = n, .how = {.m = m, .k = k}, .y = logits, .label = y};
}

static void classes_by_hand(void **state) {
    (void)state;
    const double p[] = {0.7, 0.2, 0.1, 0.1, 0.8, 0.1, 0.4, 0.4, 0.2};
    const int32_t y[] = {0, 2, 1};
    float z[9];
    rt_eval_input in = from_p(z, p, y, 3, 1, 3);
    near(metric(&in, "accuracy"), 1.0 / 3, 1e-15); /* the tie of row 2 goes to class 0 */
    near(metric(&in, "nll"), -(log(0.7) + log(0.1) + log(0.4)) / 3, 1e-7);
    near(metric(&in, "brier"), ((0.09 + 0.04 + 0.01) + (0.01 + 0.64 + 0.81) + (0.16 + 0.36 + 0.04)) / 3,
         1e-7);
    near(metric(&in, "ece"), (0.3 + 0.8 + 0.4) / 3, 1e-7); /* each alone in its bin */
    /* wrong are the first and the last by 1 - p: .6 wrong, .3 right, .2 wrong */
    near(metric(&in, "prr"), 0, 1e-12);
    in.temperature = 1;
    near(metric(&in, "temperature"), 1, 0);
    near(metric(&in, "nll_calibrated"), metric(&in, "nll"), 1e-12);
    near(metric(&in, "ece_calibrated"), metric(&in, "ece"), 1e-12);
    in.temperature = 0.5; /* squares: .49/.54, .64/.66, 1/2.25 */
    near(metric(&in, "nll_calibrated"), -(log(.49 / .54) + log(.01 / .66) + log(.16 / .36)) / 3, 1e-6);
}

/* No floor: a confident mistake costs what the logits say, and of members the mean of the exponentials. */
static void likelihood_has_no_floor(void **state) {
    (void)state;
    const float z[] = {0, -2000, 0, -1999, 0, -3000};
    const int32_t y = 1;
    const rt_eval_input in = {.n = 1, .how = {.m = 1, .k = 2}, .y = z, .label = &y, .temperature = 1};
    near(metric(&in, "nll"), 2000, 1e-9);
    near(metric(&in, "nll_calibrated"), 2000, 1e-9);
    const rt_eval_input three = {.n = 1, .how = {.m = 3, .k = 2}, .y = z, .label = &y, .temperature = 2};
    const double want = 1999 + log(3) - log1p(exp(-1));
    near(metric(&three, "nll"), want, 1e-9);
    near(metric(&three, "nll_calibrated"), want / 2, 1e-9);
}

static void members_by_hand(void **state) {
    (void)state;
    /* the teachers of METHODS: MKL = sum_c pbar (ln pbar - mean ln p) = EPKL - MI */
    const double p[] = {.7, .2, .1, .5, .3, .2, .8, .1, .1, .6, .3, .1};
    float z[12];
    const rt_eval_input in = from_p(z, p, NULL, 1, 4, 3);
    near(metric(&in, "epkl") - metric(&in, "mutual_information"), 0.035965172510, 1e-7);
    near(metric(&in, "disagreement"), 0, 0);
    near(metric(&in, "diversity"), metric(&in, "epkl") * 4 / 3, 1e-15);
    near(metric(&in, "entropy"), metric(&in, "expected_entropy") + metric(&in, "mutual_information"), 1e-15);
    /* members that are sure of different classes: all uncertainty is knowledge; pairs 01, 02 differ */
    const float sure[] = {100, 0, 0, 100, 0, 100};
    const rt_eval_input three = {.n = 1, .how = {.m = 3, .k = 2}, .y = sure};
    near(metric(&three, "mutual_information"), log(3) - 2 * log(2) / 3, 1e-15);
    near(metric(&three, "expected_entropy"), 0, 1e-40);
    near(metric(&three, "disagreement"), 2.0 / 3, 1e-15);
    near(metric(&three, "diversity"), 100 * 2.0 / 3,
         1e-12); /* KL of sure and opposite is the gap of logits */
}

/* Knowledge of sure rows, far below the rounding of an entropy: with rests e1, e2 it is mean e ln(e / mean). */
static void sure_rows_keep_their_digits(void **state) {
    (void)state;
    for (int gap = 10; gap <= 80; gap += 10) {
        const float z[] = {(float)gap, 0, (float)(gap + 1), 0};
        const rt_eval_input in = {.n = 1, .how = {.m = 2, .k = 2}, .y = z};
        const double e1 = 1 / (1 + exp(gap)), e2 = 1 / (1 + exp(gap + 1)), e = (e1 + e2) / 2;
        const double want = (e1 * log(e1 / e) + e2 * log(e2 / e)) / 2;
        double measure[RT_MEASURES_MAX];
        const char *why[RT_MEASURES_MAX];
        near(metric(&in, "mutual_information") / want, 1, 2 * exp(-gap) + 1e-10);
        assert_int_equal(rt_eval_measures(&in, measure, why), RT_OK);
        near(measure[rt_measure_find("confidence", false)] / e, 1, 1e-10);
    }
}

/* A mixture that grows member by member has the likelihood of all of them read at once. */
static void mixture_as_rows(void **state) {
    (void)state;
    static random_case c;
    for (uint64_t seed = 0; seed < 4; seed++) {
        make_case(&c, seed, seed % 2 ? 1 : 30);
        rt_eval_input in = seed < 2 ? classes_of(&c) : gaussians_of(&c);
        const bool regression = rt_eval_regression(&in);
        double sum[N], nll[N], all = 0;
        for (int i = 0; i < N; i++)
            sum[i] = INFINITY;
        for (int m = 0; m < M; m++) {
            rt_row r;
            rt_reading one = in.how;
            one.m = 1;
            assert_int_equal(rt_row_init(&r, one), RT_OK);
            for (int i = 0; i < N; i++) {
                assert_true(rt_row_read(&r, in.y + (i * M + m) * one.k));
                nll[i] = rt_row_nll(&r, regression ? (double)c.target[i] : c.y[i]);
            }
            rt_row_deinit(&r);
            all = rt_mixture_nll(sum, m, nll, N);
            for (int i = 0; i < N; i++)
                sum[i] = rt_mixture_add(sum[i], nll[i]);
        }
        near(all, metric(&in, "nll"), 1e-14 * fabs(all));
    }
}

static void regression_by_hand(void **state) {
    (void)state;
    const float z[] = {1, 1, 3, 1, 0, 4, 0, 4}, y[] = {1, 2};
    const rt_reading two = {.kind = RT_OUTPUT_GAUSSIAN, .m = 2, .k = 2};
    const rt_eval_input in = {.how = two, .n = 2, .y = z, .target = y};
    near(metric(&in, "rmse"), sqrt((1.0 + 4.0) / 2), 1e-12);
    double half_ln_2pi = 0.91893853320467274;
    double row0 = -log(0.5 * (exp(-half_ln_2pi) + exp(-half_ln_2pi - 2)));
    double row1 = half_ln_2pi + 0.5 * log(4) + 0.5;
    near(metric(&in, "nll"), (row0 + row1) / 2, 1e-12);
    near(metric(&in, "data_variance"), 2.5, 1e-15);
    near(metric(&in, "knowledge_variance"), 0.5, 1e-15);
    near(metric(&in, "total_variance"), 3, 1e-15);
    /* F(1) = (1/2 + Phi(-2)) / 2 = .2614, inside from level .4773; F(2) = Phi(1) = .8413, from .6827 */
    near(metric(&in, "interval_error"), (.1 + .2 + .3 + .4 + 0 + .1 + .3 + .2 + .1 + .05) / 10, 1e-12);
    double coverage[4];
    const double level[] = {0.47, 0.48, 0.68, 0.69};
    assert_int_equal(rt_eval_coverage(&in, level, 4, coverage), RT_OK);
    near(coverage[0], 0, 0);
    near(coverage[1], 0.5, 0);
    near(coverage[2], 0.5, 0);
    near(coverage[3], 1, 0);
    const float unit[] = {0, 1}, far = 1000; /* the density underflows, its logarithm does not */
    const rt_reading one = {.kind = RT_OUTPUT_GAUSSIAN, .m = 1, .k = 2};
    const rt_eval_input off = {.how = one, .n = 1, .y = unit, .target = &far};
    near(metric(&off, "nll"), half_ln_2pi + 500000, 1e-6);
}

static void row_by_hand(void **state) {
    (void)state;
    const float z[] = {0, 0, 1000, 998.613705639f}; /* (2, 2): 1/2, 1/2 and 4/5, 1/5 */
    rt_reading how = {.m = 2, .k = 2};
    rt_row r;
    assert_int_equal(rt_row_init(&r, how), RT_OK);
    assert_true(rt_row_read(&r, z));
    near(r.member_p[0], 0.5, 1e-15);
    near(r.member_p[2], 0.8, 1e-5);
    near(r.p[0], 0.65, 1e-5);
    near(r.rest, 0.35, 1e-5);
    near(rt_row_nll(&r, 1), -log(r.p[1]), 1e-15);
    const double total = r.total, data = r.data;
    rt_row_deinit(&r);
    how.temperature = 0.5; /* of the prediction; what the members do not know stays */
    assert_int_equal(rt_row_init(&r, how), RT_OK);
    assert_true(rt_row_read(&r, z));
    near(r.p[0], 0.65 * 0.65 / (0.65 * 0.65 + 0.35 * 0.35), 1e-5);
    near(r.ln_p[1], log(r.p[1]), 1e-15);
    near(r.rest, r.p[1], 1e-15);
    near(r.total, total, 0);
    near(r.data, data, 0);
    rt_row_deinit(&r);
}

/* ---- twins ---- */

static double twin_entropy(const double *p) {
    double h = 0;
    for (int c = 0; c < K; c++)
        h -= p[c] > 0 ? p[c] * log(p[c]) : 0;
    return h;
}

static double twin_kl(const double *p, const double *q) {
    double sum = 0;
    for (int c = 0; c < K; c++)
        sum += p[c] * log(p[c] / q[c]);
    return sum;
}

static int twin_top(const double *p) {
    int best = K - 1;
    for (int c = K - 1; c >= 0; c--)
        best = p[c] >= p[best] ? c : best;
    return best;
}

static double twin_ece(double p[N][K], const int32_t *y) {
    double total = 0;
    for (int b = 0; b < RT_ECE_BINS; b++) {
        double right = 0, conf = 0, count = 0;
        for (int i = 0; i < N; i++) {
            const int top = twin_top(p[i]);
            if (p[i][top] > (double)b / RT_ECE_BINS && p[i][top] <= (double)(b + 1) / RT_ECE_BINS)
                count += 1, right += top == y[i], conf += p[i][top];
        }
        if (count > 0)
            total += count / N * fabs(right / count - conf / count);
    }
    return total;
}

static void temper(double *out, const double *p, double tau) {
    double sum = 0;
    for (int c = 0; c < K; c++)
        sum += out[c] = pow(p[c], 1 / tau);
    for (int c = 0; c < K; c++)
        out[c] /= sum;
}

static void classification_twins(void **state) {
    (void)state;
    static random_case c;
    static double mean[N][K], calibrated[N][K];
    for (uint64_t seed = 0; seed < 8; seed++) {
        make_case(&c, seed, seed % 2 ? 0.3 : 4);
        rt_eval_input in = classes_of(&c);
        in.temperature = 0.5 + (double)seed / 4;
        double right = 0, nll = 0, tempered = 0, brier = 0, entropy = 0, own = 0, differ = 0, kl = 0;
        double of_class[K] = {0}, right_of[K] = {0}, balanced = 0;
        memset(mean, 0, sizeof mean);
        for (int i = 0; i < N; i++) {
            double q[M][K];
            for (int m = 0; m < M; m++) {
                double sum = 0;
                for (int j = 0; j < K; j++)
                    sum += q[m][j] = exp((double)c.logits[(i * M + m) * K + j]);
                for (int j = 0; j < K; j++)
                    mean[i][j] += (q[m][j] /= sum) / M;
                own += twin_entropy(q[m]) / M;
            }
            for (int a = 0; a < M; a++)
                for (int b = 0; b < M; b++) {
                    differ += a != b && twin_top(q[a]) != twin_top(q[b]);
                    kl += twin_kl(q[a], q[b]);
                }
            temper(calibrated[i], mean[i], in.temperature);
            right += twin_top(mean[i]) == c.y[i];
            of_class[c.y[i]]++;
            right_of[c.y[i]] += twin_top(mean[i]) == c.y[i];
            nll -= log(mean[i][c.y[i]]);
            tempered -= log(calibrated[i][c.y[i]]);
            entropy += twin_entropy(mean[i]);
            for (int j = 0; j < K; j++)
                brier += j == c.y[i] ? (mean[i][j] - 1) * (mean[i][j] - 1) : mean[i][j] * mean[i][j];
        }
        for (int j = 0; j < K; j++)
            balanced += right_of[j] / of_class[j] / K; /* every class has rows */
        const struct {
            const char *name;
            double want;
        } table[] = {
            {"accuracy", right / N},
            {"balanced_accuracy", balanced},
            {"nll", nll / N},
            {"brier", brier / N},
            {"ece", twin_ece(mean, c.y)},
            {"entropy", entropy / N},
            {"expected_entropy", own / N},
            {"mutual_information", (entropy - own) / N},
            {"epkl", kl / (N * M * M)},
            {"diversity", kl / (N * M * (M - 1))},
            {"disagreement", differ / (N * M * (M - 1))},
            {"nll_calibrated", tempered / N},
            {"ece_calibrated", twin_ece(calibrated, c.y)},
        };
        for (int64_t i = 0; i < RT_COUNT(table); i++)
            near(metric(&in, table[i].name), table[i].want, 1e-12);
    }
}

static void regression_twins(void **state) {
    (void)state;
    static random_case c;
    for (uint64_t seed = 0; seed < 4; seed++) {
        make_case(&c, seed, 1);
        const rt_eval_input in = gaussians_of(&c);
        double nll = 0, square = 0, total = 0, inside[RT_INTERVAL_LEVELS] = {0}, error = 0;
        for (int i = 0; i < N; i++) {
            double density = 0, mean = 0, moment = 0, below = 0, y = (double)c.target[i];
            for (int m = 0; m < M; m++) {
                double mu = (double)c.gaussian[2 * (i * M + m)], v = (double)c.gaussian[2 * (i * M + m) + 1];
                density += exp(-(y - mu) * (y - mu) / (2 * v)) / sqrt(2 * 3.14159265358979323846 * v);
                mean += mu / M;
                moment += (v + mu * mu) / M;
                below += 0.5 * (1 + erf((y - mu) / sqrt(2 * v))) / M;
            }
            nll -= log(density / M);
            square += (mean - y) * (mean - y);
            total += moment - mean * mean;
            for (int l = 0; l < RT_INTERVAL_LEVELS; l++) {
                const double half = rt_interval_levels[l] / 2;
                inside[l] += below >= 0.5 - half && below <= 0.5 + half;
            }
        }
        for (int l = 0; l < RT_INTERVAL_LEVELS; l++)
            error += fabs(inside[l] / N - rt_interval_levels[l]) / RT_INTERVAL_LEVELS;
        near(metric(&in, "nll"), nll / N, 1e-12);
        near(metric(&in, "rmse"), sqrt(square / N), 1e-12);
        near(metric(&in, "total_variance"), total / N, 1e-12);
        near(metric(&in, "interval_error"), error, 1e-12);
        near(metric(&in, "data_variance") + metric(&in, "knowledge_variance"), total / N, 1e-12);
        double coverage[RT_INTERVAL_LEVELS];
        assert_int_equal(rt_eval_coverage(&in, rt_interval_levels, RT_INTERVAL_LEVELS, coverage), RT_OK);
        for (int l = 0; l < RT_INTERVAL_LEVELS; l++)
            near(coverage[l], inside[l] / N, 1e-12);
    }
}

/* The draws of two members taken at random from Dirichlets, by the digamma form of both terms. */
static void dirichlet_members(void **state) {
    (void)state;
    const float z[] = {0.5f, 1, -1, 2, 0, 0}; /* (1, 2, 3) */
    const rt_eval_input in = {.n = 1, .how = {RT_OUTPUT_DIRICHLET, 2, 3, .offset = 1}, .y = z};
    double mi = 0, own_epkl = 0, pi[2][3], mean_ln[2][3], epkl = 0, p[3] = {0};
    for (int m = 0; m < 2; m++) {
        rt_row d;
        double sum = 0;
        assert_int_equal(rt_row_init(&d, (rt_reading){RT_OUTPUT_DIRICHLET, 1, 3, .offset = 1}), RT_OK);
        assert_true(rt_row_read(&d, z + 3 * m));
        mi += d.knowledge / 2;
        own_epkl += d.epkl / 2;
        for (int c = 0; c < 3; c++)
            sum += d.alpha[c];
        rt_row_deinit(&d);
        for (int c = 0; c < 3; c++) {
            const double a = exp((double)z[3 * m + c]) + 1, h = 1e-5;
            pi[m][c] = a / sum;
            p[c] += pi[m][c] / 2;
            mean_ln[m][c] =
                (lgamma(a + h) - lgamma(a - h)) / (2 * h) - (lgamma(sum + h) - lgamma(sum - h)) / (2 * h);
        }
    }
    for (int c = 0; c < 3; c++) {
        mi -= p[c] * log(p[c]);
        for (int m = 0; m < 2; m++)
            mi += pi[m][c] * log(pi[m][c]) / 2;
        epkl += (pi[0][c] - pi[1][c]) * (mean_ln[0][c] - mean_ln[1][c]) / 4;
    }
    near(metric(&in, "mutual_information"), mi, 1e-12);
    near(metric(&in, "epkl"), own_epkl + epkl, 1e-9);
    near(metric(&in, "entropy"), metric(&in, "expected_entropy") + mi, 1e-12);
    const rt_eval_input one = {.n = 2, .how = {RT_OUTPUT_DIRICHLET, 1, 3, .offset = 1}, .y = z};
    near(metric(&one, "epkl"), own_epkl, 1e-15);
}

/* A Dirichlet with an offset also says something by the softmax of its outputs; one without says the same. */
static void softmax_reading(void **state) {
    (void)state;
    static random_case c;
    make_case(&c, 4, 2);
    rt_eval_input in = classes_of(&c), logits = in;
    in.how.kind = RT_OUTPUT_DIRICHLET;
    assert_non_null(strstr(undefined_metric(&in, "nll_softmax"), "offset"));
    assert_non_null(strstr(undefined_metric(&logits, "ece_softmax"), "offset"));
    in.how.offset = 1;
    near(metric(&in, "nll_softmax"), metric(&logits, "nll"), 0);
    near(metric(&in, "ece_softmax"), metric(&logits, "ece"), 0);
    assert_true(fabs(metric(&in, "nll") - metric(&logits, "nll")) > 0.01);
}

/* ---- measures ---- */

static void measures_average_to_metrics(void **state) {
    (void)state;
    static random_case c;
    static double out[RT_MEASURES_MAX * N];
    const char *why[RT_MEASURES_MAX];
    const rt_measure_info *info;
    const int measures = rt_measure_list(&info);
    for (int task = 0; task < 3; task++) { /* classes, Dirichlets, Gaussians */
        make_case(&c, 11, 2);
        rt_eval_input in = task == 2 ? gaussians_of(&c) : classes_of(&c);
        if (task == 1)
            in.how.kind = RT_OUTPUT_DIRICHLET;
        assert_int_equal(rt_eval_measures(&in, out, why), RT_OK);
        for (int j = 0; j < measures; j++) {
            if (info[j].regression != rt_eval_regression(&in) || rt_needs_why_not(info[j].needs, &in.how)) {
                assert_non_null(why[j]);
                assert_true(isnan(out[j * N]) && isnan(out[j * N + N - 1]));
                continue;
            }
            double mean = 0;
            for (int i = 0; i < N; i++)
                mean += out[j * N + i] / N;
            assert_null(why[j]);
            if (rt_metric_find(info[j].name, rt_eval_regression(&in)) >= 0)
                near(mean, metric(&in, info[j].name), 1e-12);
        }
    }
}

/* ---- class by class ---- */

static void classes_one_by_one(void **state) {
    (void)state;
    /* labels 0 0 0 1, called 0 0 1 1, and nobody is of class 2 or called so */
    const double p[] = {.8, .1, .1, .6, .3, .1, .2, .7, .1, .0625, .875, .0625};
    const int32_t y[] = {0, 0, 0, 1};
    float z[12];
    rt_class_stats s[3];
    int64_t confusion[9];
    const rt_eval_input in = from_p(z, p, y, 4, 1, 3);
    assert_int_equal(rt_eval_per_class(&in, s, confusion), RT_OK);
    const int64_t want[] = {2, 1, 0, 0, 1, 0, 0, 0, 0};
    assert_memory_equal(confusion, want, sizeof want);
    assert_true(s[0].rows == 3 && s[0].predicted == 2 && s[1].rows == 1 && s[1].predicted == 2 &&
                s[2].rows == 0);
    near(s[0].recall, 2.0 / 3, 1e-15);
    near(s[0].precision, 1, 0);
    near(s[0].confidence, 0.7, 1e-7);
    near(s[0].ece, 0.3, 1e-7); /* .2 and .4, each in its bin */
    near(s[1].recall, 1, 0);
    near(s[1].precision, 0.5, 0);
    near(s[1].ece, (0.7 + 0.125) / 2, 1e-7);
    assert_true(isnan(s[2].recall) && isnan(s[2].precision) && isnan(s[2].ece));
    near(metric(&in, "balanced_accuracy"), (2.0 / 3 + 1) / 2, 1e-15); /* of the classes that have rows */
    assert_int_equal(rt_eval_per_class(&in, s, NULL), RT_OK);
    const rt_eval_input unlabelled = from_p(z, p, NULL, 4, 1, 3);
    assert_int_equal(rt_eval_per_class(&unlabelled, s, NULL), RT_E_USAGE);
}

/* ---- the table, and what is not defined ---- */

static void table_is_sound(void **state) {
    (void)state;
    static random_case c;
    make_case(&c, 5, 2);
    const rt_metric_info *info;
    const int n = rt_metric_list(&info);
    double v[RT_METRICS_MAX];
    const char *why[RT_METRICS_MAX];
    for (int task = 0; task < 2; task++) {
        rt_eval_input in = task ? gaussians_of(&c) : classes_of(&c);
        in.temperature = 1.5;
        assert_int_equal(rt_eval_all(&in, v, why), RT_OK);
        for (int i = 0; i < n; i++) {
            const bool none =
                info[i].regression != rt_eval_regression(&in) || rt_needs_why_not(info[i].needs, &in.how);
            assert_int_equal(isnan(v[i]) != 0, none);
            assert_int_equal(why[i] != NULL, none);
            assert_int_equal(rt_metric_find(info[i].name, info[i].regression), i);
        }
    }
    assert_true(info[rt_metric_find("accuracy", false)].better == 1);
    assert_false(info[rt_metric_find("rmse", true)].better == 1);
    assert_int_equal(rt_metric_find("rmse", false), -1);
    assert_int_equal(rt_measure_find("total_variance", false), -1);
    assert_true(rt_measure_shown(rt_measure_find("confidence", false), 0.25) == 0.75);
    assert_true(rt_measure_shown(rt_measure_find("entropy", false), 0.25) == 0.25);
}

static void undefined_has_a_reason(void **state) {
    (void)state;
    static random_case c;
    make_case(&c, 6, 2);
    const rt_eval_input full = classes_of(&c), regression = gaussians_of(&c);
    rt_eval_input in = full;
    assert_string_equal(undefined_metric(&in, "temperature"), "no validation rows");
    assert_string_equal(undefined_metric(&in, "nll_calibrated"), "no validation rows");
    in.temperature = NAN;
    in.temperature_reason = "why not";
    assert_string_equal(undefined_metric(&in, "ece_calibrated"), "why not");

    in = full;
    in.how.m = 1;
    static const char *const of_members[] = {"mutual_information", "epkl", "diversity", "disagreement"};
    for (int64_t i = 0; i < RT_COUNT(of_members); i++)
        assert_string_equal(undefined_metric(&in, of_members[i]), "needs at least two members");
    near(metric(&in, "expected_entropy"), metric(&in, "entropy"), 0);
    in.how.kind = RT_OUTPUT_DIRICHLET;
    assert_true(metric(&in, "mutual_information") > 0 && metric(&in, "epkl") > 0);
    assert_string_equal(undefined_metric(&in, "disagreement"), "needs at least two members");
    rt_eval_input single = regression;
    single.how.m = 1;
    assert_string_equal(undefined_metric(&single, "knowledge_variance"), "needs at least two members");

    in = full;
    in.label = NULL; /* a foreign set */
    assert_string_equal(undefined_metric(&in, "accuracy"), "no labels");
    assert_string_equal(undefined_metric(&in, "prr"), "no labels");
    assert_true(metric(&in, "entropy") > 0);
    single = regression;
    single.target = NULL;
    assert_string_equal(undefined_metric(&single, "nll"), "no labels");
    assert_true(metric(&single, "total_variance") > 0);
}

static void errors_none_or_all(void **state) {
    (void)state;
    const float z[] = {3, 0, 2, 0, 1, 0};
    const int32_t right[] = {0, 0, 0}, wrong[] = {1, 1, 1};
    rt_eval_input in = {.n = 3, .how = {.m = 1, .k = 2}, .y = z, .label = right};
    assert_string_equal(undefined_metric(&in, "prr"), "no errors");
    near(metric(&in, "accuracy"), 1, 0);
    in.label = wrong;
    assert_string_equal(undefined_metric(&in, "prr"), "nothing but errors");
    near(metric(&in, "accuracy"), 0, 0);
    const float one[] = {5, -5, 0};
    rt_eval_input single = {.n = 3, .how = {.m = 1, .k = 1}, .y = one, .label = right};
    near(metric(&single, "nll"), 0, 0);
    near(metric(&single, "entropy"), 0, 0);
}

static void predictions_that_are_no_numbers(void **state) {
    (void)state;
    static random_case c;
    static double out[RT_MEASURES_MAX * N];
    const char *why[RT_MEASURES_MAX];
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int b = 0; b < 3; b++) {
        make_case(&c, 6, 2);
        rt_eval_input in = classes_of(&c), reg = gaussians_of(&c);
        assert_int_equal(rt_eval_bad_rows(&in), 0);
        assert_int_equal(rt_eval_bad_rows(&reg), 0);
        c.logits[3] = c.logits[4] = c.logits[(N - 1) * M * K] = bad[b];
        c.gaussian[2 * 7] = c.gaussian[2 * N * M - 1] = bad[b];
        assert_int_equal(rt_eval_bad_rows(&in), 2);
        assert_int_equal(rt_eval_bad_rows(&reg), 2);
        static const char *const names[] = {"accuracy", "nll", "ece", "entropy", "prr", "epkl"};
        for (int64_t i = 0; i < RT_COUNT(names); i++)
            assert_string_equal(undefined_metric(&in, names[i]), "a prediction is not finite");
        assert_string_equal(undefined_metric(&reg, "interval_error"), "a prediction is not finite");
        assert_int_equal(rt_eval_measures(&in, out, why), RT_OK);
        const int entropy = rt_measure_find("entropy", false);
        assert_true(why[entropy] && isnan(out[entropy * N + 5]));
        int32_t top[N];
        assert_int_equal(rt_eval_classes(&in, top), RT_OK);
        assert_int_equal(top[0], -1);
        assert_in_range(top[1], 0, K - 1);
    }
    make_case(&c, 6, 2);
    rt_eval_input reg = gaussians_of(&c);
    c.gaussian[1] = 0;
    assert_string_equal(undefined_metric(&reg, "nll"), "a prediction is not finite");
    c.gaussian[1] = 1;
    c.target[2] = NAN;
    assert_string_equal(undefined_metric(&reg, "nll"), "a target is not a number");
}

static void bad_input_is_refused(void **state) {
    (void)state;
    static random_case c;
    make_case(&c, 7, 2);
    double v[RT_METRICS_MAX];
    rt_eval_input in = classes_of(&c);
    c.y[11] = K;
    assert_int_equal(rt_eval_all(&in, v, NULL), RT_E_INPUT);
    assert_non_null(strstr(rt_error_text(), "row 11 has label 7"));
    c.y[11] = -1;
    assert_int_equal(rt_eval_all(&in, v, NULL), RT_E_INPUT);
    in.n = 0;
    assert_int_equal(rt_eval_all(&in, v, NULL), RT_E_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_by_hand),
        cmocka_unit_test(likelihood_has_no_floor),
        cmocka_unit_test(members_by_hand),
        cmocka_unit_test(sure_rows_keep_their_digits),
        cmocka_unit_test(mixture_as_rows),
        cmocka_unit_test(regression_by_hand),
        cmocka_unit_test(row_by_hand),
        cmocka_unit_test(classification_twins),
        cmocka_unit_test(regression_twins),
        cmocka_unit_test(dirichlet_members),
        cmocka_unit_test(softmax_reading),
        cmocka_unit_test(measures_average_to_metrics),
        cmocka_unit_test(classes_one_by_one),
        cmocka_unit_test(table_is_sound),
        cmocka_unit_test(undefined_has_a_reason),
        cmocka_unit_test(errors_none_or_all),
        cmocka_unit_test(predictions_that_are_no_numbers),
        cmocka_unit_test(bad_input_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
