/*
 * test_perturbs.c - perturbations, on networks of one hidden layer: z = B tanh(A x).
 *
 * Steps against PyTorch's autograd (tests/golden/objectives.py) in double and float and by a plan cut into
 * slices, for each of perturb_ods.c, perturb_conf_ods.c, perturb_tdiv.c and perturb_tdiv_sdiv.c; the noise of
 * perturb_gaussian.c by its moments and its keys; lengths; what equal members, the ends of the range and
 * differentiation may not do.
 */
#include "golden/golden_read.h"

#include "base/alloc.h"
#include "perturb/perturb.h"
#include "plan/plan.h"
#include <math.h>

enum { N = 4, D = 12, H = 6, K = 3, NETS = RT_WHO_COUNT, STREAM = 1, SEED = 5, STEP = 2 };
static const double SIZE = 1.0 / 255, TEMPERATURE = 2;

/* ---- the models ---- */

typedef struct models {
    rt_graph *g;
    rt_val first[NETS], second[NETS];
    int asked[NETS];
} models;

static rt_val forward(void *user, int who, rt_val x) {
    models *m = user;
    m->asked[who]++;
    const rt_val flat = rt_flatten(m->g, x);
    const rt_val h = rt_unary(m->g, RT_OP_TANH, rt_matmul(m->g, flat, m->first[who], false, true));
    return rt_matmul(m->g, h, m->second[who], false, true);
}

typedef struct problem {
    int64_t n, h;
    rt_shape row;
    const double *x, *net[2 * NETS]; /* A, B of each model */
    uint64_t stream, step;
} problem;

typedef enum engine { INTERP_F64, INTERP_F32, PLAN_F32, ENGINES } engine;
static const char *const engine_names[] = {"f64", "f32", "plan"};

static void *converted(const double *src, int64_t n, rt_dtype t) {
    void *dst = NULL;
    assert_int_equal(rt_alloc(&dst, (size_t)n * sizeof(double)), RT_OK);
    for (int64_t i = 0; i < n; i++) {
        if (t == RT_DTYPE_F64)
            ((double *)dst)[i] = src[i];
        else
            ((float *)dst)[i] = (float)src[i];
    }
    return dst;
}

static rt_val build(models *m, const rt_perturb *p, const problem *q, rt_dtype t, rt_val *x) {
    static const char *const names[] = {"a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3"};
    const int64_t d = rt_shape_elems(&q->row);
    *m = (models){0};
    assert_int_equal(rt_graph_create(&m->g, q->n, t), RT_OK);
    *x = rt_graph_input(m->g, "x", t, q->row, 1);
    for (int i = 0; i < NETS; i++) {
        m->first[i] = rt_graph_param(m->g, 2 * i, names[2 * i], rt_shape2(q->h, d));
        m->second[i] = rt_graph_param(m->g, 2 * i + 1, names[2 * i + 1], rt_shape2(K, q->h));
    }
    const rt_perturb_in in = {.g = m->g,
                              .x = *x,
                              .temperature = rt_graph_feed(m->g, "temperature", t, rt_shape0()),
                              .size = SIZE,
                              .stream = q->stream,
                              .forward = forward,
                              .user = m};
    const rt_val moved = p->build(&in);
    if (moved == 0 || rt_graph_status(m->g) != RT_OK)
        fail_msg("%s: %s", p->name, rt_graph_status(m->g) != RT_OK ? rt_error_text() : "no value");
    rt_graph_output(m->g, "moved", moved);
    return moved;
}

static void run_plan(const rt_graph *g, void *const *params, const void *x, const void *feed, void *out,
                     rt_run run) {
    rt_plan *plan = NULL;
    rt_exec *exec = NULL;
    rt_pool *pool = NULL;
    assert_int_equal(rt_pool_create(&pool, 2), RT_OK);
    if (rt_plan_compile(&plan, g, (rt_plan_options){.slice = rt_graph_batch(g) / 2}) != RT_OK)
        fail_msg("%s", rt_error_text());
    assert_int_equal(rt_plan_slices(plan), 2);
    assert_int_equal(rt_exec_create(&exec, plan, pool), RT_OK);
    for (int i = 0; i < 2 * NETS; i++)
        rt_exec_bind_param(exec, i, params[i]);
    rt_exec_bind_input(exec, 0, x);
    rt_exec_bind_feed(exec, 0, feed);
    rt_exec_bind_output(exec, 0, out);
    rt_exec_run(&exec, &run, 1, pool);
    rt_exec_destroy(&exec);
    rt_plan_destroy(&plan);
    rt_pool_destroy(&pool);
}

/* out (n, row...) gets the perturbed inputs. */
static void solve(double *out, const char *name, const problem *q, engine e) {
    const rt_dtype t = e == INTERP_F64 ? RT_DTYPE_F64 : RT_DTYPE_F32;
    const int64_t d = rt_shape_elems(&q->row), count = q->n * d;
    const rt_run run = {.seed = SEED, .step = q->step};
    models m;
    rt_val x;
    build(&m, rt_perturb_find(name), q, t, &x);
    void *params[2 * NETS], *input = converted(q->x, count, t), *feed = converted(&TEMPERATURE, 1, t);
    void *moved = converted(q->x, count, t);
    for (int i = 0; i < 2 * NETS; i++)
        params[i] = converted(q->net[i], i % 2 ? K * q->h : q->h * d, t);
    if (e == PLAN_F32) {
        run_plan(m.g, params, input, feed, moved, run);
    } else {
        const void *const inputs[] = {input}, *const feeds[] = {feed};
        if (rt_interp_run(m.g, (const void *const *)params, inputs, feeds, &moved, run) != RT_OK)
            fail_msg("%s: %s", name, rt_error_text());
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = t == RT_DTYPE_F64 ? ((double *)moved)[i] : (double)((float *)moved)[i];
    for (int i = 0; i < 2 * NETS; i++)
        rt_free(params[i]);
    rt_free(input);
    rt_free(feed);
    rt_free(moved);
    rt_graph_destroy(&m.g);
}

/* ---- steps, against PyTorch ---- */

static void read_golden(golden_case *c, problem *q) {
    int line = 0;
    FILE *f = golden_open("objectives.txt");
    while (golden_next(c, f, &line) && strcmp(c->name, "perturbations") != 0)
        ;
    fclose(f);
    assert_string_equal(c->name, "perturbations");
    *q = (problem){.n = N,
                   .h = H,
                   .row = rt_shape3(3, 2, 2),
                   .x = golden_get(c, "x", N * D),
                   .stream = STREAM,
                   .step = STEP};
    for (int i = 0; i < NETS; i++) {
        char key[GOLDEN_NAME];
        snprintf(key, sizeof key, "first%d", i);
        q->net[2 * i] = golden_get(c, key, H * D);
        snprintf(key, sizeof key, "second%d", i);
        q->net[2 * i + 1] = golden_get(c, key, K * H);
    }
}

static void test_golden(void **state) {
    (void)state;
    static golden_case c;
    static const char *const names[] = {"ods", "conf-ods", "tdiv", "tdiv-sdiv"};
    problem q;
    read_golden(&c, &q);
    for (int64_t k = 0; k < RT_COUNT(names); k++)
        for (engine e = 0; e < ENGINES; e++) {
            double moved[N * D];
            const double *want = golden_get(&c, names[k], N * D);
            assert_non_null(want);
            solve(moved, names[k], &q, e);
            for (int i = 0; i < N * D; i++) {
                const double step = moved[i] - q.x[i];
                if (!(fabs(step - want[i]) <= (e == INTERP_F64 ? 1e-12 : 2e-7)))
                    fail_msg("%s, %s: element %d moves by %.10g, wanted %.10g", names[k], engine_names[e], i,
                             step, want[i]);
            }
        }
}

/* objectives.py has the random weights of ODS as constants: those of this seed, stream and step. */
static void test_weights(void **state) {
    (void)state;
    static golden_case c;
    problem q;
    read_golden(&c, &q);
    rt_graph *g = NULL;
    double w[N * K], x[N * K] = {0};
    assert_int_equal(rt_graph_create(&g, N, RT_DTYPE_F64), RT_OK);
    const rt_val like = rt_graph_input(g, "x", RT_DTYPE_F64, rt_shape1(K), 1);
    rt_graph_output(g, "w", rt_random(g, like, false, STREAM));
    const void *const inputs[] = {x};
    void *const outputs[] = {w};
    assert_int_equal(rt_interp_run(g, NULL, inputs, NULL, outputs, (rt_run){.seed = SEED, .step = STEP}),
                     RT_OK);
    for (int i = 0; i < N * K; i++)
        if (!(fabs(w[i] - golden_get(&c, "w", N * K)[i]) < 1e-14))
            fail_msg("weight %d is %.17g", i, w[i]);
    rt_graph_destroy(&g);
}

/* ---- lengths ---- */

static void fill(double *v, int64_t n, double scale, double shift, int seed) {
    for (int64_t i = 0; i < n; i++)
        v[i] =
            shift + scale * sin(1.7 * (double)(i % 977) * (double)(i % 977) + seed + 0.1 * (double)(i / 977));
}

static void test_lengths(void **state) {
    (void)state;
    enum { IMAGES = 2, MOST = 3072 };
    static double x[IMAGES * MOST], moved[IMAGES * MOST], nets[2 * NETS][H * MOST];
    static const struct {
        rt_shape row;
        double length;
    } list[] = {{{3, {3, 32, 32}}, 0.21735}, {{3, {1, 28, 28}}, 0.10980}, {{1, {784}}, 0.10980}};
    static const char *const names[] = {"ods", "tdiv", "tdiv-sdiv"};
    for (int64_t l = 0; l < RT_COUNT(list); l++) {
        const int64_t d = rt_shape_elems(&list[l].row);
        problem q = {.n = IMAGES, .h = H, .row = list[l].row, .x = x, .stream = STREAM, .step = STEP};
        fill(x, IMAGES * d, 0.3, 0.5, 1);
        for (int i = 0; i < 2 * NETS; i++) {
            fill(nets[i], i % 2 ? K * H : H * d, i % 2 ? 1 : 0.05, 0, i);
            q.net[i] = nets[i];
        }
        for (int64_t k = 0; k < RT_COUNT(names); k++)
            for (engine e = 0; e < ENGINES; e++) {
                solve(moved, names[k], &q, e);
                for (int64_t r = 0; r < IMAGES; r++) {
                    double sum = 0;
                    for (int64_t i = r * d; i < (r + 1) * d; i++)
                        sum += (moved[i] - x[i]) * (moved[i] - x[i]);
                    const double exact = sqrt((double)d) / 255;
                    assert_true(fabs(exact - list[l].length) < 1e-5);
                    if (!(fabs(sqrt(sum) - exact) <= (e == INTERP_F64 ? 1e-12 : 2e-6)))
                        fail_msg("%s, %s, %lld elements: length %.9g, wanted %.9g", names[k], engine_names[e],
                                 (long long)d, sqrt(sum), exact);
                }
            }
    }
}

/* ---- noise ---- */

static void test_gaussian(void **state) {
    (void)state;
    enum { ROWS = 64 };
    static double x[ROWS * D], a[ROWS * D], b[ROWS * D], nets[2 * NETS][H * D];
    problem q = {.n = ROWS, .h = H, .row = rt_shape1(D), .x = x, .stream = STREAM, .step = STEP};
    for (int i = 0; i < ROWS * D; i++)
        x[i] = 0.5;
    for (int i = 0; i < 2 * NETS; i++)
        q.net[i] = nets[i];
    solve(a, "gaussian", &q, INTERP_F64);
    double m1 = 0, m2 = 0;
    for (int i = 0; i < ROWS * D; i++) {
        const double z = (a[i] - x[i]) / SIZE;
        m1 += z / (ROWS * D);
        m2 += z * z / (ROWS * D);
    }
    assert_true(fabs(m1) < 0.15 && fabs(m2 - 1) < 0.2);
    /* the same numbers in float and in slices; others for another step and another stream */
    for (engine e = INTERP_F32; e < ENGINES; e++) {
        solve(b, "gaussian", &q, e);
        for (int i = 0; i < ROWS * D; i++)
            assert_true(fabs(a[i] - b[i]) < 1e-6);
    }
    q.step++;
    solve(b, "gaussian", &q, INTERP_F64);
    assert_memory_not_equal(a, b, sizeof a);
    q.step--, q.stream++;
    solve(b, "gaussian", &q, INTERP_F64);
    assert_memory_not_equal(a, b, sizeof a);
}

/* ---- equal models, ends of the range ---- */

static void test_equal_models(void **state) {
    (void)state;
    static golden_case c;
    problem q;
    double both[N * D], teachers[N * D];
    read_golden(&c, &q);
    /* equal student members have no say, to the last bit */
    q.net[6] = q.net[4], q.net[7] = q.net[5];
    for (engine e = 0; e < ENGINES; e++) {
        solve(both, "tdiv-sdiv", &q, e);
        solve(teachers, "tdiv", &q, e);
        assert_memory_equal(both, teachers, sizeof both);
    }
    /* equal teachers give no direction: nothing moves, and nothing is divided by zero */
    q.net[2] = q.net[0], q.net[3] = q.net[1];
    for (engine e = 0; e < ENGINES; e++) {
        solve(both, "tdiv-sdiv", &q, e);
        for (int i = 0; i < N * D; i++)
            assert_true(both[i] == q.x[i]);
    }
}

static void test_range(void **state) {
    (void)state;
    static golden_case c;
    problem q;
    double x[N * D], moved[N * D];
    const rt_perturb *const *list;
    read_golden(&c, &q);
    for (int i = 0; i < N * D; i++)
        x[i] = i % 2;
    q.x = x;
    for (int k = 0; k < rt_perturb_list(&list); k++)
        for (engine e = 0; e < ENGINES; e++) {
            int inward = 0;
            solve(moved, list[k]->name, &q, e);
            for (int i = 0; i < N * D; i++) {
                assert_true(moved[i] >= 0 && moved[i] <= 1);
                inward += moved[i] != x[i];
            }
            assert_in_range(inward, 1, N * D - 1);
        }
}

/* ---- what they ask for, and that no gradient passes ---- */

static void test_graph(void **state) {
    (void)state;
    static golden_case c;
    problem q;
    const rt_perturb *const *list;
    read_golden(&c, &q);
    const int n = rt_perturb_list(&list);
    assert_true(n > 0);
    for (int k = 0; k < n; k++) {
        models m;
        rt_val x;
        const unsigned needs = list[k]->needs;
        const rt_val moved = build(&m, list[k], &q, RT_DTYPE_F32, &x);
        assert_ptr_equal(rt_perturb_find(list[k]->name), list[k]);
        assert_true(list[k]->meaning[0] != '\0');
        assert_int_equal(m.asked[RT_WHO_TEACHER_I] > 0, (needs & RT_NEEDS_TEACHER_I) != 0);
        assert_int_equal(m.asked[RT_WHO_TEACHER_J] > 0, (needs & RT_NEEDS_TEACHER_J) != 0);
        assert_int_equal(m.asked[RT_WHO_STUDENT_I] > 0, (needs & RT_NEEDS_STUDENT_PAIR) != 0);
        assert_int_equal(m.asked[RT_WHO_STUDENT_J] > 0, (needs & RT_NEEDS_STUDENT_PAIR) != 0);
        rt_val grads[3];
        const rt_val wrt[] = {x, m.first[0], m.second[2]};
        assert_int_equal(rt_graph_grad(m.g, rt_total_sum(m.g, moved), wrt, 3, grads), RT_OK);
        for (int i = 0; i < 3; i++)
            assert_int_equal(grads[i], 0);
        assert_int_equal(rt_graph_verify(m.g), RT_OK);
        rt_graph_destroy(&m.g);
    }
    assert_null(rt_perturb_find("nothing"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),   cmocka_unit_test(test_weights),      cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_gaussian), cmocka_unit_test(test_equal_models), cmocka_unit_test(test_range),
        cmocka_unit_test(test_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
