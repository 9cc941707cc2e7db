/*
 * test_objectives.c - losses and gradients of every objective.
 *
 * Numbers of tests/golden/objectives.txt come from PyTorch (objectives.py there). Each case is computed three
 * times: by the interpreter in double, by the interpreter in float, and by a plan in float, cut into slices.
 * Values known from papers, limits in which one objective is another, and what no objective may do follow.
 *
 * So the sources behind the table are tested by name of their objective: objective_labels.c, objective_kd.c,
 * objective_one_to_one.c, objective_ae_kd.c, objective_end2.c, objective_proxy_end2.c, objective_prior_net.c,
 * objective_gaussian_kd.c and objective_gaussian_one_to_one.c with gaussian_loss.c. One without a golden case fails.
 */
#include "golden/golden_read.h"

#include "base/alloc.h"
#include "distill/distill.h"
#include "plan/plan.h"
#include <float.h>
#include <math.h>

enum { MAX_VALUES = 512 };
typedef enum engine { INTERP_F64, INTERP_F32, PLAN_F32, ENGINES } engine;
static const char *const engine_names[] = {"f64", "f32", "plan"};
static const double tolerance[] = {1e-9, 1e-5, 1e-5};

/* An objective and its inputs; options in `in`, values not yet. */
typedef struct problem {
    const char *objective;
    int64_t n, k;
    int ms, mt;
    double temperature;
    rt_objective_in in;
    const double *student, *teacher, *label, *ood;
} problem;

typedef struct answer {
    double loss, grad[MAX_VALUES], ood_grad[MAX_VALUES];
} answer;

/* ---- one run ---- */

enum { STUDENT, TEACHER, LABEL, OOD, INPUTS };

static void *converted(const double *src, int64_t n, rt_dtype t) {
    void *dst = NULL;
    assert_int_equal(rt_alloc(&dst, (size_t)n * sizeof(double)), RT_OK);
    for (int64_t i = 0; i < n; i++) {
        if (t == RT_DTYPE_F64)
            ((double *)dst)[i] = src[i];
        else if (t == RT_DTYPE_F32)
            ((float *)dst)[i] = (float)src[i];
        else
            ((int32_t *)dst)[i] = (int32_t)src[i];
    }
    return dst;
}

static void read_back(double *dst, const void *src, int64_t n, rt_dtype t) {
    for (int64_t i = 0; i < n; i++)
        dst[i] = t == RT_DTYPE_F64 ? ((const double *)src)[i] : (double)((const float *)src)[i];
}

/* Loss and gradients become outputs 0, 1 and, if there are inputs from elsewhere, 2. */
static rt_graph *build(const problem *q, rt_dtype t) {
    rt_graph *g = NULL;
    assert_int_equal(rt_graph_create(&g, q->n, t), RT_OK);
    rt_objective_in in = q->in;
    in.g = g;
    in.student = rt_graph_input(g, "student", t, rt_shape1(q->k), q->ms);
    in.teacher = rt_graph_input(g, "teacher", t, rt_shape1(q->k), q->mt);
    const rt_val y = rt_graph_input(g, "label", in.regression ? t : RT_DTYPE_I32, rt_shape0(), 1);
    *(in.regression ? &in.target : &in.label) = y;
    if (q->ood != NULL)
        in.ood_student = rt_graph_input(g, "ood", t, rt_shape1(q->k), 1);
    in.temperature = rt_graph_feed(g, "temperature", t, rt_shape0());
    const rt_objective *o = rt_objective_find(q->objective);
    if (o == NULL)
        fail_msg("there is no objective %s", q->objective);
    const rt_val loss = o->build(&in);
    rt_val grads[2] = {0};
    if (rt_graph_status(g) != RT_OK || loss == 0 ||
        rt_graph_grad(g, loss, (rt_val[]){in.student, in.ood_student}, q->ood != NULL ? 2 : 1, grads) !=
            RT_OK)
        fail_msg("%s: %s", q->objective, rt_error_text());
    assert_int_not_equal(grads[0], 0);
    rt_graph_output(g, "loss", loss);
    rt_graph_output(g, "grad", grads[0]);
    if (q->ood != NULL)
        rt_graph_output(g, "ood_grad", grads[1]);
    assert_int_equal(rt_graph_verify(g), RT_OK);
    return g;
}

static void run_plan(const rt_graph *g, void *const *inputs, int ninputs, const void *feed,
                     void *const *outputs) {
    rt_plan *plan = NULL;
    rt_exec *exec = NULL;
    rt_pool *pool = NULL;
    assert_int_equal(rt_pool_create(&pool, 1), RT_OK);
    if (rt_plan_compile(&plan, g, (rt_plan_options){.slice = 2}) != RT_OK)
        fail_msg("%s", rt_error_text());
    assert_int_equal(rt_exec_create(&exec, plan, pool), RT_OK);
    for (int i = 0; i < ninputs; i++)
        rt_exec_bind_input(exec, i, inputs[i]);
    rt_exec_bind_feed(exec, 0, feed);
    for (int i = 0; i < rt_graph_outputs(g); i++)
        rt_exec_bind_output(exec, i, outputs[i]);
    rt_exec_run(&exec, &(rt_run){.seed = 1}, 1, pool);
    rt_exec_destroy(&exec);
    rt_plan_destroy(&plan);
    rt_pool_destroy(&pool);
}

static void solve(answer *a, const problem *q, engine e) {
    const rt_dtype t = e == INTERP_F64 ? RT_DTYPE_F64 : RT_DTYPE_F32;
    const int64_t rows = q->n * q->k, counts[] = {q->ms * rows, q->mt * rows, q->n, rows};
    const double *src[] = {q->student, q->teacher, q->label, q->ood};
    const int ninputs = q->ood != NULL ? INPUTS : OOD;
    rt_graph *g = build(q, t);
    void *inputs[INPUTS] = {0}, *feed = converted(&q->temperature, 1, t);
    double loss[1], grad[MAX_VALUES], ood_grad[MAX_VALUES];
    void *const outputs[] = {loss, grad, ood_grad};
    assert_true(counts[STUDENT] <= MAX_VALUES);
    for (int i = 0; i < ninputs; i++)
        inputs[i] = converted(src[i], counts[i], i == LABEL && !q->in.regression ? RT_DTYPE_I32 : t);
    if (e == PLAN_F32) {
        run_plan(g, inputs, ninputs, feed, outputs);
    } else {
        const void *const feeds[] = {feed};
        if (rt_interp_run(g, NULL, (const void *const *)inputs, feeds, outputs, (rt_run){.seed = 1}) != RT_OK)
            fail_msg("%s: %s", q->objective, rt_error_text());
    }
    read_back(&a->loss, loss, 1, t);
    read_back(a->grad, grad, counts[STUDENT], t);
    if (q->ood != NULL)
        read_back(a->ood_grad, ood_grad, rows, t);
    for (int i = 0; i < INPUTS; i++)
        rt_free(inputs[i]);
    rt_free(feed);
    rt_graph_destroy(&g);
}

/* Relative to the largest of the numbers, of at least 1 for losses. */
static void compare(const char *text, const double *got, const double *want, int64_t n, double floor,
                    double tol) {
    double scale = floor;
    for (int64_t i = 0; i < n; i++)
        scale = fmax(scale, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(got[i] - want[i]) <= tol * scale))
            fail_msg("%s, element %lld: %.12g, wanted %.12g", text, (long long)i, got[i], want[i]);
}

/* ---- the golden table ---- */

static problem from_golden(const golden_case *c) {
    const double *shape = golden_get(c, "shape", 4), *o = golden_get(c, "options", 10);
    assert_true(shape != NULL && o != NULL);
    problem q = {.objective = c->name,
                 .n = (int64_t)shape[0],
                 .k = (int64_t)shape[1],
                 .ms = (int)shape[2],
                 .mt = (int)shape[3],
                 .temperature = o[0],
                 .in = {.alpha = o[1],
                        .label_smoothing = o[2],
                        .teacher_smoothing = o[3],
                        .ae_c = o[4],
                        .ae_per_sample = o[5] != 0,
                        .prior_beta = o[6],
                        .ood_weight = o[7],
                        .dirichlet_offset = o[8],
                        .temper_mean = true,
                        .regression = o[9] != 0}};
    const int rows = (int)(q.n * q.k);
    q.student = golden_get(c, "student", q.ms * rows);
    q.teacher = golden_get(c, "teacher", q.mt * rows);
    q.label = golden_get(c, "label", (int)q.n);
    q.ood = golden_get(c, "ood", rows);
    assert_true(q.student != NULL && q.teacher != NULL && q.label != NULL);
    return q;
}

static void test_golden(void **state) {
    (void)state;
    static golden_case c;
    static answer a;
    int seen[32] = {0}, line = 0, cases = 0;
    const rt_objective *const *list;
    const int nlist = rt_objective_list(&list);
    FILE *f = golden_open("objectives.txt");
    while (golden_next(&c, f, &line)) {
        if (rt_objective_find(c.name) == NULL)
            continue;
        const problem q = from_golden(&c);
        const int rows = (int)(q.n * q.k);
        for (engine e = 0; e < ENGINES; e++) {
            char text[128];
            solve(&a, &q, e);
            snprintf(text, sizeof text, "%s, line %d, %s: loss", c.name, c.line, engine_names[e]);
            compare(text, &a.loss, golden_get(&c, "loss", 1), 1, 1, tolerance[e]);
            snprintf(text, sizeof text, "%s, line %d, %s: gradient", c.name, c.line, engine_names[e]);
            compare(text, a.grad, golden_get(&c, "grad", q.ms * rows), q.ms * rows, DBL_MIN, tolerance[e]);
            if (q.ood != NULL)
                compare(text, a.ood_grad, golden_get(&c, "ood_grad", rows), rows, DBL_MIN, tolerance[e]);
        }
        for (int i = 0; i < nlist; i++)
            seen[i] += strcmp(list[i]->name, c.name) == 0;
        cases++;
    }
    fclose(f);
    assert_in_range(cases, 100, 1000);
    for (int i = 0; i < nlist; i++)
        if (seen[i] == 0)
            fail_msg("objective %s has no golden case", list[i]->name);
}

/* ---- values known from papers and by hand ---- */

static const double four_teachers[] = {.7, .2, .1, .5, .3, .2, .8, .1, .1, .6, .3, .1};

static void test_vectors(void **state) {
    (void)state;
    static const double z[] = {1, 0, -1}, label[] = {0};
    static const double proxy_grad[] = {-0.100554487489, 0.006641677701, 0.003656217696};
    double logits[12];
    static answer a;
    for (int i = 0; i < 12; i++)
        logits[i] = log(four_teachers[i]);
    problem q = {.objective = "end2",
                 .n = 1,
                 .k = 3,
                 .ms = 1,
                 .mt = 4,
                 .temperature = 1,
                 .in = {.alpha = 1, .teacher_smoothing = 1e-4, .temper_mean = true},
                 .student = z,
                 .teacher = logits,
                 .label = label};
    solve(&a, &q, INTERP_F64);
    assert_true(fabs(a.loss - -1.148185294069) < 1e-11);
    q.temperature = 2;
    solve(&a, &q, INTERP_F64);
    assert_true(fabs(a.loss - -3.240423808756) < 1e-11);
    q.objective = "proxy-end2";
    q.in.dirichlet_offset = 1;
    q.temperature = 1;
    solve(&a, &q, INTERP_F64);
    /* the published numbers leave out the constant of 1e-7 that keeps equal teachers finite */
    assert_true(fabs(a.loss - 0.074849169246) < 2e-6 * 0.0748);
    compare("proxy-end2 gradient", a.grad, proxy_grad, 3, 0, 2e-6);
}

/* ---- limits ---- */

enum { N = 4, K = 3, M = 4 };

/* Deterministic logits in [-2, 2]. */
static void fill(double *v, int n, int seed) {
    for (int i = 0; i < n; i++)
        v[i] = round(2048 * sin(1.7 * i * i + seed)) / 1024;
}

static void expect_equal(const problem *p, const problem *q, double scale, double tol) {
    static answer a, b;
    for (engine e = 0; e < ENGINES; e++) {
        const double t = fmax(tol, e == INTERP_F64 ? 1e-12 : 1e-6);
        char text[96];
        solve(&a, p, e);
        solve(&b, q, e);
        for (int i = 0; i < p->ms * N * K; i++)
            a.grad[i] *= scale;
        snprintf(text, sizeof text, "%s against %s, %s", p->objective, q->objective, engine_names[e]);
        compare(text, &a.loss, &b.loss, 1, 1, t);
        compare(text, a.grad, b.grad, p->ms * N * K, DBL_MIN, t);
    }
}

static void test_limits(void **state) {
    (void)state;
    double student[M * N * K], teacher[M * N * K], label[N] = {0, 1, 2, 1};
    fill(student, M * N * K, 1);
    fill(teacher, M * N * K, 2);
    const problem base = {.n = N,
                          .k = K,
                          .ms = 1,
                          .mt = 1,
                          .temperature = 3,
                          .in = {.alpha = 0.4, .ae_c = 0.6, .teacher_smoothing = 1e-4},
                          .student = student,
                          .teacher = teacher,
                          .label = label};
    /* one teacher: kd, one-to-one and ae-kd are the same */
    problem p = base, q = base;
    p.objective = "kd", q.objective = "one-to-one";
    expect_equal(&p, &q, 1, 0);
    q.objective = "ae-kd";
    expect_equal(&p, &q, 1, 0);
    /* weights that cannot move: ae-kd is kd */
    p.mt = q.mt = M;
    q.in.ae_c = 1.0 / M;
    expect_equal(&p, &q, 1, 0);
    q.in.ae_per_sample = true;
    expect_equal(&p, &q, 1, 0);
    /* equal teachers: whatever the weights */
    double same[M * N * K];
    for (int i = 0; i < M * N * K; i++)
        same[i] = teacher[i % (N * K)];
    p.teacher = q.teacher = same;
    q.in.ae_c = 0.6;
    expect_equal(&p, &q, 1, 0);
    /* the mean of logits: kd from one teacher who says it; the mean of probabilities is another */
    static answer a, b;
    double mean[N * K] = {0};
    for (int i = 0; i < M * N * K; i++)
        mean[i % (N * K)] += teacher[i] / M;
    p = q = base;
    p.objective = q.objective = "kd";
    p.mt = M;
    p.in.teacher_logits = true;
    q.teacher = mean;
    expect_equal(&p, &q, 1, 0);
    p.in.teacher_logits = false;
    solve(&a, &p, INTERP_F64);
    solve(&b, &q, INTERP_F64);
    assert_true(fabs(a.loss - b.loss) > 1e-4);
    /* alpha 0: labels alone */
    p = q = base;
    p.objective = "kd", q.objective = "labels";
    p.in.alpha = 0;
    expect_equal(&p, &q, 1, 0);
}

/* T -> infinity: the gradient of kd is that of half the squared difference of centred logits, over K */
static void test_hot(void **state) {
    (void)state;
    double student[N * K], teacher[N * K], label[N] = {0}, want[N * K];
    static answer a;
    fill(student, N * K, 1);
    fill(teacher, N * K, 2);
    const problem q = {.objective = "kd",
                       .n = N,
                       .k = K,
                       .ms = 1,
                       .mt = 1,
                       .temperature = 1e6,
                       .in = {.alpha = 1},
                       .student = student,
                       .teacher = teacher,
                       .label = label};
    for (int r = 0; r < N; r++) {
        double mean = 0;
        for (int i = 0; i < K; i++)
            mean += (student[r * K + i] - teacher[r * K + i]) / K;
        for (int i = 0; i < K; i++)
            want[r * K + i] = (student[r * K + i] - teacher[r * K + i] - mean) / K / N;
    }
    solve(&a, &q, INTERP_F64);
    compare("hot kd", a.grad, want, N * K, 0, 1e-5);
}

/* Equal teachers leave proxy-end2 finite: a target as sharp as the constant allows, and a bounded loss. */
static void test_equal_teachers(void **state) {
    (void)state;
    double student[N * K], teacher[M * N * K], label[N] = {0};
    static answer a;
    fill(student, N * K, 1);
    fill(teacher, N * K, 2);
    for (int i = N * K; i < M * N * K; i++)
        teacher[i] = teacher[i % (N * K)];
    const problem q = {.objective = "proxy-end2",
                       .n = N,
                       .k = K,
                       .ms = 1,
                       .mt = M,
                       .temperature = 1,
                       .in = {.alpha = 1, .dirichlet_offset = 1},
                       .student = student,
                       .teacher = teacher,
                       .label = label};
    for (engine e = 0; e < ENGINES; e++) {
        solve(&a, &q, e);
        assert_true(isfinite(a.loss) && a.loss > 0 && a.loss < 100);
        for (int i = 0; i < N * K; i++)
            assert_true(isfinite(a.grad[i]));
    }
}

/* end2 with a temperature on differences is the paper's of other logits, z' = (z - m) + T (m + 2 ln T); its gradient by the chain
 * rule. */
static void test_tempered_differences(void **state) {
    (void)state;
    const double temperature = 3;
    double student[N * K], other[N * K], teacher[M * N * K], label[N] = {0}, want[N * K];
    static answer a, b;
    fill(student, N * K, 1);
    fill(teacher, M * N * K, 2);
    for (int i = 0; i < N; i++) {
        double m = 0;
        for (int c = 0; c < K; c++)
            m += student[i * K + c] / K;
        for (int c = 0; c < K; c++)
            other[i * K + c] = student[i * K + c] - m + temperature * (m + 2 * log(temperature));
    }
    problem q = {.objective = "end2",
                 .n = N,
                 .k = K,
                 .ms = 1,
                 .mt = M,
                 .temperature = temperature,
                 .in = {.alpha = 1, .teacher_smoothing = 1e-4},
                 .student = student,
                 .teacher = teacher,
                 .label = label};
    problem p = q;
    p.student = other;
    p.in.temper_mean = true;
    solve(&b, &p, INTERP_F64);
    for (int i = 0; i < N; i++) {
        double m = 0;
        for (int c = 0; c < K; c++)
            m += b.grad[i * K + c] / K;
        for (int c = 0; c < K; c++)
            want[i * K + c] = b.grad[i * K + c] - m + temperature * m;
    }
    for (engine e = 0; e < ENGINES; e++) {
        solve(&a, &q, e);
        compare("loss", &a.loss, &b.loss, 1, 1, tolerance[e]);
        compare("gradient", a.grad, want, N * K, 1, tolerance[e]);
    }
}

/* Whoever distils a Dirichlet may overshoot: a row whose logits started at 60 and -60 comes home, for any target
 * (the teachers of this one ask for large logits), with a finite loss on its way; and the gradient beyond the cut is
 * that of
 * the loss. */
static void test_comes_home(void **state) {
    (void)state;
    static const char *const names[] = {"end2", "proxy-end2", "prior-net"};
    enum { STEPS = 300 };
    for (int i = 0; i < 3 * ENGINES; i++) {
        double student[3] = {60, 0, -60}, teacher[6] = {20, 0, 0, 20, 0, 0}, label[1] = {0},
               ood[3] = {0, 60, 0};
        static answer a, b;
        const engine e = (engine)(i % ENGINES);
        problem q = {.objective = names[i / ENGINES],
                     .n = 1,
                     .k = 3,
                     .ms = 1,
                     .mt = 2,
                     .temperature = 1,
                     .in = {.alpha = 1,
                            .teacher_smoothing = 1e-4,
                            .prior_beta = 100,
                            .ood_weight = 1,
                            .dirichlet_offset = i / ENGINES == 1},
                     .student = student,
                     .teacher = teacher,
                     .label = label,
                     .ood = strcmp(names[i / ENGINES], "prior-net") == 0 ? ood : NULL};
        solve(&a, &q, e);
        if (!(a.grad[0] > 0 && a.grad[2] < 0 && (q.ood == NULL || a.ood_grad[1] > 0)))
            fail_msg("%s, %s: the gradient (%g, %g, %g) does not lead back", q.objective, engine_names[e],
                     a.grad[0], a.grad[1], a.grad[2]);
        if (e == INTERP_F64 && q.ood == NULL) { /* where the loss is not too large for differences */
            student[0] = 1;
            student[2] = -59.999;
            solve(&a, &q, e);
            student[2] = -60.001;
            solve(&b, &q, e);
            student[2] = -60;
            const double slope = (a.loss - b.loss) / 2e-3;
            solve(&a, &q, e);
            if (!(a.grad[2] < 0 && fabs(slope / a.grad[2] - 1) < 1e-3))
                fail_msg("%s: slope %g, gradient %g, loss %g", q.objective, slope, a.grad[2], a.loss);
            student[0] = 60;
        }
        for (int step = 0; step < STEPS; step++) {
            solve(&a, &q, e);
            assert_true(isfinite(a.loss));
            for (int c = 0; c < 3; c++)
                student[c] -= 0.5 * fmax(fmin(a.grad[c] * 1e12, 1), -1);
            for (int c = 0; q.ood != NULL && c < 3; c++)
                ood[c] -= 0.5 * fmax(fmin(a.ood_grad[c] * 1e12, 1), -1);
        }
        for (int c = 0; c < 3; c++)
            if (!(fabs(student[c]) < 30.5 && (q.ood == NULL || fabs(ood[c]) < 30.5)))
                fail_msg("%s, %s: logit %d stays at %g, %g", q.objective, engine_names[e], c, student[c],
                         ood[c]);
    }
}

/* A student that is its teacher has no gradient; in regression its loss is the entropy. */
static void test_optimum(void **state) {
    (void)state;
    double both[M * N * 2], label[N] = {0}, zero[M * N * 2] = {0}, entropy = 0;
    static answer a;
    fill(both, M * N * 2, 5);
    for (int i = 0; i < M * N; i++)
        entropy += (0.5 * both[2 * i + 1] + 0.5 * log(2 * 3.14159265358979323846 * exp(1))) / (M * N);
    problem q = {.objective = "gaussian-one-to-one",
                 .n = N,
                 .k = 2,
                 .ms = M,
                 .mt = M,
                 .temperature = 1,
                 .in = {.alpha = 1, .regression = true},
                 .student = both,
                 .teacher = both,
                 .label = label};
    solve(&a, &q, INTERP_F64);
    assert_true(fabs(a.loss - entropy) < 1e-12);
    compare("gaussian optimum", a.grad, zero, M * N * 2, 1, 1e-12);
    q.objective = "one-to-one";
    q.in.regression = false;
    q.temperature = 4;
    solve(&a, &q, INTERP_F64);
    compare("one-to-one optimum", a.grad, zero, M * N * 2, 1, 1e-12);
}

/* ---- names ---- */

static void test_names(void **state) {
    (void)state;
    const rt_objective *const *list;
    const int n = rt_objective_list(&list);
    assert_true(n > 0);
    for (int i = 0; i < n; i++) {
        assert_ptr_equal(rt_objective_find(list[i]->name), list[i]);
        assert_true(list[i]->meaning[0] != '\0');
        assert_true((list[i]->needs & (RT_OBJ_REGRESSION | RT_OBJ_CLASSIFICATION)) != 0);
    }
    assert_null(rt_objective_find("nothing"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_hot),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_optimum),
        cmocka_unit_test(test_equal_teachers),
        cmocka_unit_test(test_comes_home),
        cmocka_unit_test(test_tempered_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
