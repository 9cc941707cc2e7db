/*
 * test_step.c - the compiled training step: it learns, allocates nothing, and neither threads nor company
 * change a member.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "step/step.h"
#include "support/check.h"
#include <stdlib.h>
#include <string.h>

enum { BATCH = 24, FEATURES = 5, CLASSES = 3, MEMBERS_MAX = 9 };

typedef struct fixture {
    rt_pool *pool;
    rt_params *params;
    rt_student *student;
    rt_distill_config what;
    rt_step *step;
    float x[MEMBERS_MAX * BATCH * FEATURES], target[MEMBERS_MAX * BATCH];
    int32_t label[MEMBERS_MAX * BATCH];
    uint64_t seeds[MEMBERS_MAX];
    double lr[MEMBERS_MAX], losses[MEMBERS_MAX];
    double correct[MEMBERS_MAX];
} fixture;

/* Member m of this fixture has the data and seed of member first + m. */
static void setup(fixture *f, int threads, int first, int members, bool regression, rt_step_options o) {
    memset(f, 0, sizeof *f);
    OK(rt_pool_create(&f->pool, threads));
    OK(rt_params_create(&f->params));
    rt_arch_config a = {.spec = "mlp:16,8",
                        .input = rt_shape1(FEATURES),
                        .outputs = regression ? 2 : CLASSES,
                        .dropout = 0.1};
    OK(rt_student_create(&f->student, &(rt_student_config){.arch = a, .regression = regression}, f->params));
    o.batch = BATCH;
    o.members = members;
    f->what = (rt_distill_config){.student = f->student,
                                  .objective = rt_objective_find("labels"),
                                  .regression = regression,
                                  .options = {.alpha = 1}};
    OK(rt_step_create(&f->step, &f->what, f->params, o, f->pool));
    for (int m = 0; m < members; m++) {
        f->seeds[m] = rt_rng_member_seed(7, first + m);
        f->lr[m] = regression ? 0.005 : 0.05; /* a learned variance makes large steps unstable */
        rt_params_init(f->params, rt_step_values(f->step, m), f->seeds[m]);
        rt_rng r = rt_rng_make(f->seeds[m], RT_RNG_TEST, 0, 0);
        for (int i = 0; i < BATCH; i++) {
            float *x = f->x + (m * BATCH + i) * FEATURES;
            for (int k = 0; k < FEATURES; k++)
                x[k] = (float)rt_rng_normal(r, (uint64_t)(i * FEATURES + k));
            f->label[m * BATCH + i] = x[0] > 0.4f ? 2 : x[1] > 0;
            f->target[m * BATCH + i] = x[0] - 0.5f * x[1];
        }
    }
}

static void teardown(fixture *f) {
    rt_step_destroy(&f->step);
    rt_student_destroy(&f->student);
    rt_params_destroy(&f->params);
    rt_pool_destroy(&f->pool);
}

static rt_status run(fixture *f, int64_t t, int64_t rows, const bool *active) {
    rt_step_io io = {.x = f->x,
                     .label = f->label,
                     .target = f->target,
                     .rows = rows,
                     .t = t,
                     .lr = f->lr,
                     .seeds = f->seeds,
                     .active = active,
                     .losses = f->losses,
                     .correct = f->correct};
    return rt_step_run(f->step, &io);
}

static const rt_step_options SGD = {
    .optimiser = "sgd", .momentum = 0.9, .nesterov = true, .weight_decay = 1e-4};
static const rt_step_options ADAM = {
    .optimiser = "adam", .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .clip_norm = 0.5};

static void test_learns(void **state) {
    (void)state;
    for (int regression = 0; regression < 2; regression++) {
        fixture f;
        setup(&f, 2, 0, 2, regression, SGD);
        OK(run(&f, 0, BATCH, NULL));
        double first = f.losses[0];
        for (int64_t t = 1; t < 300; t++)
            OK(run(&f, t, BATCH, NULL));
        if (!(f.losses[0] < 0.6 * first))
            fail_msg("loss %g after %g", f.losses[0], first);
        if (!regression)
            assert_true(f.correct[0] > BATCH * 3 / 4);
        assert_true(rt_step_flops(f.step) > 0 && rt_step_bytes(f.step) > 0);
        teardown(&f);
    }
}

/* Members in one step of nine (several waves), and each alone, on 1 to 3 threads: the same bits. */
static void test_members_are_independent(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        rt_step_options o = kind ? ADAM : SGD;
        fixture all, one;
        setup(&all, 2, 0, MEMBERS_MAX, false, o);
        for (int64_t t = 0; t < 10; t++)
            OK(run(&all, t, t == 7 ? 10 : BATCH, NULL));
        for (int threads = 1; threads <= 3; threads++) {
            setup(&one, threads, 0, MEMBERS_MAX, false, o);
            for (int64_t t = 0; t < 10; t++)
                OK(run(&one, t, t == 7 ? 10 : BATCH, NULL));
            for (int m = 0; m < MEMBERS_MAX; m++)
                assert_memory_equal(rt_step_values(all.step, m), rt_step_values(one.step, m),
                                    (size_t)rt_params_floats(all.params) * sizeof(float));
            teardown(&one);
        }
        teardown(&all);
    }
}

/* Convolutions, BN and its running statistics: the same bits on 1 to 3 threads, alone and in company. */
static void test_batch_norm_network(void **state) {
    (void)state;
    enum { ROWS = 8, ROW = 3 * 8 * 8, COUNT = 3 };
    float *want = NULL;
    for (int threads = 1; threads <= 3; threads++) {
        rt_pool *pool;
        rt_params *params;
        rt_student *student;
        rt_step *step;
        rt_arch_config a = {.spec = "resnet20", .input = rt_shape3(3, 8, 8), .outputs = 4};
        OK(rt_pool_create(&pool, threads));
        OK(rt_params_create(&params));
        OK(rt_student_create(&student, &(rt_student_config){.arch = a}, params));
        const rt_distill_config what = {
            .student = student, .objective = rt_objective_find("labels"), .options = {.alpha = 1}};
        rt_step_options o = SGD;
        o.batch = ROWS;
        o.members = COUNT;
        OK(rt_step_create(&step, &what, params, o, pool));
        int64_t floats = rt_params_floats(params);
        float *x = malloc((size_t)COUNT * ROWS * ROW * sizeof *x);
        int32_t label[COUNT * ROWS];
        double lr[COUNT] = {0.1, 0.1, 0.1}, losses[COUNT];
        uint64_t seeds[COUNT] = {1, 2, 3};
        for (int64_t i = 0; i < COUNT * ROWS * ROW; i++)
            x[i] = (float)rt_rng_normal(rt_rng_make(5, RT_RNG_TEST, 0, 0), (uint64_t)i);
        for (int i = 0; i < COUNT * ROWS; i++)
            label[i] = i % 4;
        for (int m = 0; m < COUNT; m++)
            rt_params_init(params, rt_step_values(step, m), seeds[m]);
        for (int64_t t = 0; t < 3; t++)
            OK(rt_step_run(step, &(rt_step_io){.x = x,
                                               .label = label,
                                               .rows = ROWS,
                                               .t = t,
                                               .lr = lr,
                                               .seeds = seeds,
                                               .losses = losses}));
        size_t bytes = (size_t)(COUNT * floats) * sizeof(float);
        if (threads == 1) {
            want = malloc(bytes);
            memcpy(want, rt_step_values(step, 0), bytes);
            int moved = 0;
            for (int i = 0; i < rt_params_count(params); i++) {
                const rt_param *p = rt_params_get(params, i);
                if (rt_str_ends(p->name, "running_mean"))
                    moved += rt_step_values(step, 1)[p->offset] != 0;
            }
            assert_true(moved > 10);
        } else {
            assert_memory_equal(want, rt_step_values(step, 0), bytes);
        }
        free(x);
        rt_step_destroy(&step);
        rt_student_destroy(&student);
        rt_params_destroy(&params);
        rt_pool_destroy(&pool);
    }
    free(want);
}

static void test_frozen_members(void **state) {
    (void)state;
    fixture f;
    setup(&f, 2, 0, 3, false, SGD);
    size_t bytes = (size_t)rt_params_floats(f.params) * sizeof(float);
    float *before = malloc(bytes);
    memcpy(before, rt_step_values(f.step, 1), bytes);
    static const bool active[] = {true, false, true};
    OK(run(&f, 0, BATCH, active));
    assert_memory_equal(before, rt_step_values(f.step, 1), bytes);
    assert_memory_not_equal(rt_step_values(f.step, 0), rt_step_values(f.step, 2), bytes);
    free(before);
    teardown(&f);
}

static void test_no_allocation(void **state) {
    (void)state;
    fixture f;
    rt_alloc_stats before, after;
    setup(&f, 2, 0, 5, false, ADAM);
    OK(rt_step_prepare(f.step, 10));
    OK(run(&f, 0, BATCH, NULL));
    OK(run(&f, 1, 10, NULL));
    rt_alloc_get_stats(&before);
    for (int64_t t = 2; t < 40; t++)
        OK(run(&f, t, t % 5 == 4 ? 10 : BATCH, NULL));
    rt_alloc_get_stats(&after);
    assert_int_equal(before.total_calls, after.total_calls);
    teardown(&f);
}

static void test_not_finite(void **state) {
    (void)state;
    fixture f;
    setup(&f, 1, 0, 2, false, SGD);
    f.x[BATCH * FEATURES + 3] = INFINITY;
    assert_int_equal(run(&f, 4, BATCH, NULL), RT_E_NUMERIC);
    assert_non_null(strstr(rt_error_text(), "member 1, step 5"));
    teardown(&f);
}

/* With decay on weights only and no gradient (learning rate times zero input), biases keep and weights
 * shrink. */
static void test_decay_rule(void **state) {
    (void)state;
    for (int rule = 0; rule < 2; rule++) {
        fixture a, b;
        rt_step_options o = {.optimiser = "sgd", .decay_rule = rule ? "weights" : "all"};
        setup(&a, 1, 0, 1, false, o);
        o.weight_decay = 0.5;
        setup(&b, 1, 0, 1, false, o);
        OK(run(&a, 0, BATCH, NULL));
        OK(run(&b, 0, BATCH, NULL));
        for (int i = 0; i < rt_params_count(a.params); i++) {
            const rt_param *p = rt_params_get(a.params, i);
            bool decays = p->role == RT_ROLE_WEIGHT || (rule == 0 && p->role == RT_ROLE_BIAS);
            bool equal = memcmp(rt_step_values(a.step, 0) + p->offset, rt_step_values(b.step, 0) + p->offset,
                                (size_t)p->count * sizeof(float)) == 0;
            bool zero = true; /* biases start at zero in some architectures, and zero has no decay */
            float *block = calloc((size_t)rt_params_floats(a.params), sizeof(float));
            rt_params_init(a.params, block, a.seeds[0]);
            for (int64_t k = 0; k < p->count; k++)
                zero = zero && block[p->offset + k] == 0;
            free(block);
            if (equal != (!decays || zero))
                fail_msg("rule %d: %s", rule, p->name);
        }
        teardown(&a);
        teardown(&b);
    }
}

static void test_refused(void **state) {
    (void)state;
    fixture f;
    setup(&f, 1, 0, 1, false, SGD);
    rt_step *s;
    assert_int_equal(rt_step_create(&s, &f.what, f.params,
                                    (rt_step_options){.batch = 4, .members = 1, .optimiser = "lion"}, f.pool),
                     RT_E_USAGE);
    assert_null(s);
    assert_int_equal(rt_step_create(&s, &f.what, f.params, (rt_step_options){.members = 1}, f.pool),
                     RT_E_USAGE);
    assert_int_equal(run(&f, 0, BATCH + 1, NULL), RT_E_USAGE);
    teardown(&f);
}

/* Decay by depth: one step without momentum differs from one without decay by lr decay w, of that group alone. */
static void test_group_decay(void **state) {
    (void)state;
    static const double none[3] = {0, 0, 0}, middle[3] = {0, 0.5, 0};
    static fixture a, b;
    const rt_step_options o = {.optimiser = "sgd"};
    rt_step_options p = o, q = o;
    p.group_decay = none;
    q.group_decay = middle;
    setup(&a, 1, 0, 1, false, p);
    setup(&b, 1, 0, 1, false, q);
    const int64_t n = rt_params_floats(a.params);
    float *start;
    OK(rt_calloc(&start, (size_t)n, sizeof *start));
    memcpy(start, rt_step_values(a.step, 0), (size_t)n * sizeof *start);
    OK(run(&a, 0, BATCH, NULL));
    OK(run(&b, 0, BATCH, NULL));
    int seen = 0;
    for (int i = 0; i < rt_params_count(a.params); i++) {
        const rt_param *w = rt_params_get(a.params, i);
        for (int64_t k = w->offset; k < w->offset + w->count; k++) {
            const double apart = (double)rt_step_values(a.step, 0)[k] - (double)rt_step_values(b.step, 0)[k],
                         want =
                             w->group == 1 && w->role != RT_ROLE_STATE ? a.lr[0] * 0.5 * (double)start[k] : 0;
            if (!(fabs(apart - want) <= 1e-6 * (1 + fabs(want))) || (w->group != 1 && apart != 0))
                fail_msg("%s of group %d: moved by %g more, wanted %g", w->name, w->group, apart, want);
            seen += want != 0;
        }
    }
    assert_true(seen > 0);
    rt_free(start);
    teardown(&a);
    teardown(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns),
        cmocka_unit_test(test_members_are_independent),
        cmocka_unit_test(test_batch_norm_network),
        cmocka_unit_test(test_frozen_members),
        cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_decay_rule),
        cmocka_unit_test(test_group_decay),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
