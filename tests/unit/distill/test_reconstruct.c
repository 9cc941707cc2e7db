/*
 * test_reconstruct.c - teachers rewritten as a BatchEnsemble: exact on sets that have that form, never worse
 * from one sweep to the next on others, the test of Theorem 1, degenerate weights (reconstruct.c),
 * and students filled from teachers (reconstruct_student.c).
 */
#include "unit/distill/students_support.h"

enum { MOST = 5 };

typedef struct layer {
    int members;
    int64_t out, in, window;
    float *w[MOST];
    float *w0, *r, *s;
} layer;

static int64_t entries(const layer *t) {
    return t->out * t->in * t->window;
}

/* Representable: W0 o s_m r_m^T with factors in [1 - spread/2, 1 + spread/2); otherwise unrelated weights. */
static layer layer_make(int members, int64_t out, int64_t in, int64_t window, bool representable,
                        double spread) {
    layer t = {.members = members, .out = out, .in = in, .window = window};
    for (int m = 0; m < members; m++) {
        char wn[32], rn[32], sn[32];
        snprintf(wn, sizeof wn, "w%d", representable ? 0 : m);
        snprintf(rn, sizeof rn, "r%d", m);
        snprintf(sn, sizeof sn, "s%d", m);
        OK(rt_alloc(&t.w[m], (size_t)entries(&t) * sizeof(float)));
        for (int64_t i = 0; i < entries(&t); i++) {
            double v = hash_uniform(wn, i) - 0.5;
            if (representable)
                v *= (1 + spread * (hash_uniform(rn, i / window % in) - 0.5)) *
                     (1 + spread * (hash_uniform(sn, i / window / in) - 0.5));
            t.w[m][i] = (float)v;
        }
    }
    OK(rt_calloc(&t.w0, (size_t)entries(&t), sizeof *t.w0));
    OK(rt_calloc(&t.r, (size_t)(members * in), sizeof *t.r));
    OK(rt_calloc(&t.s, (size_t)(members * out), sizeof *t.s));
    return t;
}

static void layer_drop(layer *t) {
    for (int m = 0; m < t->members; m++)
        rt_free(t->w[m]);
    rt_free(t->w0);
    rt_free(t->r);
    rt_free(t->s);
}

static double solve(layer *t, int sweeps, double tolerance) {
    double residual = -1;
    OK(rt_reconstruct_layer(t->w0, t->r, t->s, &residual, (const float *const *)t->w, t->members, t->out,
                            t->in, t->window, sweeps, tolerance));
    return residual;
}

/* Relative error of what is returned, by brute force. */
static double error_of(const layer *t) {
    double err = 0, norm = 0;
    for (int m = 0; m < t->members; m++)
        for (int64_t i = 0; i < entries(t); i++) {
            const double f = (double)t->s[m * t->out + i / t->window / t->in] *
                             (double)t->r[m * t->in + i / t->window % t->in];
            err += pow((double)t->w0[i] * f - (double)t->w[m][i], 2);
            norm += pow((double)t->w[m][i], 2);
        }
    return norm > 0 ? sqrt(err / norm) : err;
}

/* Integer factors, so that products are exact in float and the set is representable to the last bit. */
static void make_exact(layer *t) {
    for (int m = 0; m < t->members; m++) {
        char rn[32], sn[32];
        snprintf(rn, sizeof rn, "r%d", m);
        snprintf(sn, sizeof sn, "s%d", m);
        for (int64_t i = 0; i < entries(t); i++)
            t->w[m][i] = (float)(floor(200 * hash_uniform("w0", i)) - 99.5) *
                         (float)(4 + floor(5 * hash_uniform(rn, i / t->window % t->in))) *
                         (float)(4 + floor(5 * hash_uniform(sn, i / t->window / t->in)));
    }
}

static void exact_on_representable_sets(void **state) {
    (void)state;
    static const struct {
        int members;
        int64_t out, in, window;
    } row[] = {{2, 7, 5, 1}, {4, 12, 9, 1}, {3, 6, 4, 9}, {5, 8, 3, 25},
               {2, 1, 6, 1}, {3, 1, 1, 9},  {1, 5, 4, 1}};
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        layer t = layer_make(row[i].members, row[i].out, row[i].in, row[i].window, true, 0.8);
        make_exact(&t);
        const double residual = solve(&t, 3000, 1e-30);
        if (residual > 1e-10)
            fail_msg("%d x %lld x %lld x %lld: residual %g", row[i].members, (long long)row[i].out,
                     (long long)row[i].in, (long long)row[i].window, residual);
        assert_true(error_of(&t) < 1e-6);
        double rank_one = -1;
        OK(rt_reconstruct_rank_one(&rank_one, (const float *const *)t.w, t.members, t.out, t.in, t.window));
        assert_true(rank_one < 1e-12);
        layer_drop(&t);
    }
}

static void never_worse(void **state) {
    (void)state;
    static const int64_t window[] = {1, 9};
    for (int64_t k = 0; k < RT_COUNT(window); k++) {
        layer t = layer_make(4, 10, 8, window[k], false, 0);
        double last = INFINITY;
        for (int sweeps = 1; sweeps <= 40; sweeps++) {
            const double residual = solve(&t, sweeps, 1e-30);
            if (residual > last * (1 + 1e-12))
                fail_msg("sweep %d: residual rises from %.17g to %.17g", sweeps, last, residual);
            last = residual;
            assert_true(fabs(error_of(&t) - residual) < 1e-6);
        }
        assert_true(last > 0.1 && last < 1); /* unrelated weights have no such form */
        double rank_one = -1;
        OK(rt_reconstruct_rank_one(&rank_one, (const float *const *)t.w, t.members, t.out, t.in, t.window));
        assert_true(rank_one > 0.1);
        assert_true(fabs(solve(&t, 0, 0) - last) < 0.05); /* defaults */
        layer_drop(&t);
    }
}

/* ||r_m||^2 = in for every member, mean ||s_m||^2 = out: the scale is fixed. */
static void gauge(void **state) {
    (void)state;
    layer t = layer_make(3, 6, 5, 4, false, 0);
    solve(&t, 7, 1e-30);
    double all = 0;
    for (int m = 0; m < 3; m++) {
        double r = 0;
        for (int i = 0; i < 5; i++)
            r += pow((double)t.r[m * 5 + i], 2);
        assert_true(fabs(r - 5) < 1e-5);
        for (int o = 0; o < 6; o++)
            all += pow((double)t.s[m * 6 + o], 2) / 3;
    }
    assert_true(fabs(all - 6) < 1e-5);
    layer_drop(&t);
}

static void assert_finite(const layer *t) {
    for (int64_t i = 0; i < entries(t); i++)
        assert_true(isfinite(t->w0[i]));
    for (int64_t i = 0; i < t->members * t->in; i++)
        assert_true(isfinite(t->r[i]));
    for (int64_t i = 0; i < t->members * t->out; i++)
        assert_true(isfinite(t->s[i]));
}

static void zeros(void **state) {
    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        layer t = layer_make(3, 6, 5, 4, true, 0.5);
        make_exact(&t);
        for (int m = 0; m < 3; m++)
            for (int64_t i = 0; i < entries(&t); i++) {
                const int64_t o = i / 4 / 5, in = i / 4 % 5;
                const bool zero = kind == 0 || (kind == 1 && m == 1) || (kind == 2 && o == 2) ||
                                  (kind == 3 && in == 3) || (kind == 4 && i % 7 == 0);
                if (zero)
                    t.w[m][i] = 0;
            }
        const double residual = solve(&t, 3000, 1e-30);
        assert_finite(&t);
        if (residual > 1e-10) /* all of them still have the form */
            fail_msg("zeros of kind %d: residual %g", kind, residual);
        double rank_one = -1;
        OK(rt_reconstruct_rank_one(&rank_one, (const float *const *)t.w, 3, 6, 5, 4));
        assert_true(kind == 1 ? isinf(rank_one)
                              : rank_one < 1e-12); /* one teacher is zero where the others are not */
        layer_drop(&t);
    }
    layer t = layer_make(2, 2, 2, 1, false, 0);
    t.w[1][2] = NAN;
    double residual = 0;
    assert_refused(
        rt_reconstruct_layer(t.w0, t.r, t.s, &residual, (const float *const *)t.w, 2, 2, 2, 1, 0, 0),
        "not finite");
    assert_refused(
        rt_reconstruct_layer(t.w0, t.r, t.s, &residual, (const float *const *)t.w, 2, INT64_MAX, 2, 1, 0, 0),
        "addressable");
    assert_refused(rt_reconstruct_rank_one(&residual, (const float *const *)t.w, 0, 2, 2, 1), "0 weights");
    layer_drop(&t);
}

/* ---- students ---- */

static const rt_shape IMAGE = {3, {3, 8, 8}};
enum { N = 3, K = 4, M = 3 };

static learner make(const char *spec, const char *arch, bool member_bn) {
    return learner_make((rt_student_config){
        .spec = spec, .arch = {.spec = arch, .input = IMAGE, .outputs = K}, .member_bn = member_bn});
}

static void copies_are_reproduced(void **state) {
    (void)state;
    static const struct {
        const char *spec, *arch;
        bool member_bn;
    } row[] = {{"batch-ensemble:3", "mlp:8,7", false}, {"batch-ensemble:3", "wrn:10,1", false},
               {"batch-ensemble:3", "wrn:10,1", true}, {"batch-ensemble:3", "resnet20", false},
               {"latent-be:3", "resnet20", false},     {"batch-ensemble:1", "mlp:8,7", false}};
    float *x = inputs_make("x", N * 192);
    for (int64_t i = 0; i < RT_COUNT(row); i++) {
        learner be = make(row[i].spec, row[i].arch, row[i].member_bn),
                teacher = make("single", row[i].arch, false);
        const float *blocks[M] = {teacher.block, teacher.block, teacher.block};
        const int members = rt_student_members(be.student);
        rt_reconstruct_report report;
        OK(rt_reconstruct_student(be.student, be.params, be.block, teacher.params, blocks, members, &report));
        assert_true(report.layers > 1 && report.residual < 1e-7);
        for (int k = 0; k < report.layers; k++) {
            assert_true(rt_str_ends(report.line[k].name, ".weight"));
            assert_true(report.line[k].residual < 1e-7 && report.line[k].rank_one < 1e-7);
        }
        float *all = student_eval(&be, x, N, -1), *want = student_eval(&teacher, x, N, -1);
        for (int m = 0; m < members; m++)
            assert_near(all + m * N * K, want, N * K, 1e-5, row[i].arch);
        rt_free(all);
        rt_free(want);
        rt_reconstruct_report_deinit(&report);
        learner_drop(&be);
        learner_drop(&teacher);
    }
    rt_free(x);
}

/* Teachers that are the members of a BatchEnsemble, with one BN: the student is that BatchEnsemble again. */
static void members_are_recovered(void **state) {
    (void)state;
    float *x = inputs_make("x", N * 192);
    learner source = make("batch-ensemble:3", "wrn:10,1", false),
            be = make("batch-ensemble:3", "wrn:10,1", false);
    learner teacher[M];
    const float *blocks[M];
    for (int m = 0; m < M; m++) {
        teacher[m] = make("single", "wrn:10,1", false);
        blocks[m] = teacher[m].block;
        for (int slot = 0; slot < rt_params_count(teacher[m].params); slot++) {
            const rt_param *p = rt_params_get(teacher[m].params, slot);
            float *dst = teacher[m].block + p->offset;
            const float *src = learner_at(&source, p->name);
            if (p->role == RT_ROLE_WEIGHT) {
                char name[128];
                const int len = (int)(strrchr(p->name, '.') - p->name);
                const int64_t out = p->shape.d[0], in = p->shape.d[1], window = p->count / (out * in);
                snprintf(name, sizeof name, "%.*s.r", len, p->name);
                const float *r = learner_at(&source, name) + m * in;
                snprintf(name, sizeof name, "%.*s.s", len, p->name);
                const float *s = learner_at(&source, name) + m * out;
                for (int64_t i = 0; i < p->count; i++)
                    dst[i] = src[i] * s[i / window / in] * r[i / window % in];
            } else {
                memcpy(dst, src + (p->role == RT_ROLE_BIAS ? m * p->count : 0),
                       (size_t)p->count * sizeof *dst);
            }
        }
    }
    memset(be.block, 0, (size_t)rt_params_floats(be.params) * sizeof *be.block);
    rt_reconstruct_report report;
    OK(rt_reconstruct_student(be.student, be.params, be.block, teacher[0].params, blocks, M, &report));
    if (report.residual > 1e-3)
        fail_msg("residual %g", report.residual);
    float *all = student_eval(&be, x, N, -1), *want = student_eval(&source, x, N, -1);
    assert_near(all, want, M * N * K, 1e-2, "members");
    rt_free(all);
    rt_free(want);
    rt_free(x);
    rt_reconstruct_report_deinit(&report);
    for (int m = 0; m < M; m++)
        learner_drop(&teacher[m]);
    learner_drop(&source);
    learner_drop(&be);
}

static void refusals(void **state) {
    (void)state;
    learner be = make("batch-ensemble:3", "wrn:10,1", false), wide = make("single", "wrn:10,2", false);
    learner mlp = make("single", "mlp:8", false);
    const float *blocks[M] = {wide.block, wide.block, wide.block};
    assert_refused(rt_reconstruct_student(be.student, be.params, be.block, wide.params, blocks, M, NULL),
                   "layer1.0.conv1.weight|16x16x3x3|32x16x3x3");
    assert_refused(rt_reconstruct_student(be.student, be.params, be.block, mlp.params, blocks, M, NULL),
                   "conv1.weight|same");
    assert_refused(rt_reconstruct_student(be.student, be.params, be.block, be.params, blocks, 2, NULL),
                   "3 members|2 teachers");
    learner_drop(&be);
    learner_drop(&wide);
    learner_drop(&mlp);
}

static rt_status reconstruct(void *user) {
    learner *l = user; /* student, teacher */
    const float *blocks[M] = {l[1].block, l[1].block, l[1].block};
    rt_reconstruct_report report;
    const rt_status st =
        rt_reconstruct_student(l[0].student, l[0].params, l[0].block, l[1].params, blocks, M, &report);
    rt_reconstruct_report_deinit(&report);
    return st;
}

static void allocation_failures(void **state) {
    (void)state;
    learner l[2] = {make("batch-ensemble:3", "mlp:5", false), make("single", "mlp:5", false)};
    each_allocation_fails(reconstruct, l, 15);
    learner_drop(&l[0]);
    learner_drop(&l[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_on_representable_sets),
        cmocka_unit_test(never_worse),
        cmocka_unit_test(gauge),
        cmocka_unit_test(zeros),
        cmocka_unit_test(copies_are_reproduced),
        cmocka_unit_test(members_are_recovered),
        cmocka_unit_test(refusals),
        cmocka_unit_test(allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
