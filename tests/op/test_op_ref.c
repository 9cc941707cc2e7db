/*
 * test_op_ref.c - the reference kernels against numbers worked out by hand, in f32 and f64, and linear
 * operations against their adjoints: <A x, y> = <x, A^T y>.
 */
#include "op/op_examples.h"
#include "op/op_problem.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- examples ---- */

static rt_dtype type_of(char c, rt_dtype t) {
    return c == 'i' ? RT_DTYPE_I32 : c == 'd' ? RT_DTYPE_F64 : t;
}

static void run_example(const example *e, rt_dtype t) {
    rt_desc in[4];
    int32_t groups[4];
    void *data[4] = {0};
    for (int i = 0; i < e->nin; i++) {
        in[i] = rt_desc_make(type_of(e->in[i].type, t), e->in[i].s, RT_LAYOUT_PLAIN);
        groups[i] = e->in[i].groups;
        data[i] = op_buffer(rt_desc_bytes(&in[i]));
        for (int64_t k = 0; k < rt_desc_elems(&in[i]); k++)
            op_store(in[i].dtype, data[i], k, e->in[i].v[k]);
    }
    const rt_problem p = {.op = e->op,
                          .attr = e->attr,
                          .nin = e->nin,
                          .in = in,
                          .in_groups = groups,
                          .n = e->n,
                          .out = rt_desc_make(type_of(e->out.type, t), e->out.s, RT_LAYOUT_PLAIN),
                          .out_groups = e->out.groups};
    const size_t bytes = rt_desc_bytes(&p.out);
    void *out = op_buffer(bytes);
    assert_true(
        op_run(rt_kern_ref(e->op, t), &p, out, (const void *const *)data, (rt_kern_ctx){.batch = e->n}));
    if (!op_buffer_intact(out, bytes))
        fail_msg("%s: wrote behind its output", e->name);
    for (int64_t k = 0; k < rt_desc_elems(&p.out); k++) {
        const double got = op_load(p.out.dtype, out, k), want = e->out.v[k];
        if (!(fabs(got - want) <= (t == RT_DTYPE_F32 ? 2e-6 : 1e-12) * (1 + fabs(want))))
            fail_msg("%s %s: element %lld is %.17g, wanted %.17g", e->name, rt_dtype_name(t), (long long)k,
                     got, want);
    }
    rt_free(out);
    for (int i = 0; i < e->nin; i++)
        rt_free(data[i]);
}

static void test_examples(void **state) {
    (void)state;
    for (int64_t i = 0; i < RT_COUNT(examples); i++) {
        run_example(&examples[i], RT_DTYPE_F32);
        run_example(&examples[i], RT_DTYPE_F64);
    }
}

/* ---- element-wise: one number in, one number out ---- */

static void test_eltwise(void **state) {
    (void)state;
    static const struct {
        rt_op op;
        double alpha, beta, a, b, want;
    } list[] = {
        {RT_OP_ADD, 0, 0, 3, 4, 7},
        {RT_OP_SUB, 0, 0, 3, 4, -1},
        {RT_OP_MUL, 0, 0, 3, 4, 12},
        {RT_OP_DIV, 0, 0, 3, 4, 0.75},
        {RT_OP_SCALE, 2, 5, 3, 0, 11},
        {RT_OP_RELU, 0, 0, 3, 0, 3},
        {RT_OP_RELU, 0, 0, -3, 0, 0},
        {RT_OP_RELU, 0.5, 0, -3, 0, -1.5},
        {RT_OP_RELU_BWD, 0, 0, 3, 1, 3},
        {RT_OP_RELU_BWD, 0, 0, 3, -1, 0},
        {RT_OP_RELU_BWD, 0.5, 0, 3, -1, 1.5},
        {RT_OP_RELU_BWD, 0, 0, 3, 0, 0},
        {RT_OP_EXP, 0, 0, 1, 0, 2.718281828459045},
        {RT_OP_LOG, 0, 0, 2.718281828459045, 0, 1},
        {RT_OP_SQRT, 0, 0, 9, 0, 3},
        {RT_OP_SQUARE, 0, 0, -3, 0, 9},
        {RT_OP_RECIP, 0, 0, 4, 0, 0.25},
        {RT_OP_XLOGX, 0, 0, 0, 0, 0},
        {RT_OP_XLOGX, 0, 0, 2, 0, 1.3862943611198906},
        {RT_OP_SIGMOID, 0, 0, 0, 0, 0.5},
        {RT_OP_SIGMOID, 0, 0, -800, 0, 0},
        {RT_OP_SIGMOID, 0, 0, 800, 0, 1},
        {RT_OP_TANH, 0, 0, 0.5493061443340548, 0, 0.5},
        {RT_OP_SOFTPLUS, 0, 0, 0, 0, 0.6931471805599453},
        {RT_OP_SOFTPLUS, 0, 0, 800, 0, 800},
        {RT_OP_SOFTPLUS, 0, 0, -800, 0, 0},
        {RT_OP_CLIP, -1, 2, 3, 0, 2},
        {RT_OP_CLIP, -1, 2, -3, 0, -1},
        {RT_OP_CLIP, -1, 2, 1, 0, 1},
        {RT_OP_CLIP_BWD, -1, 2, 5, 2, 5},
        {RT_OP_CLIP_BWD, -1, 2, 5, 2.5, 0},
        {RT_OP_LGAMMA, 0, 0, 5, 0, 3.1780538303479458},
        {RT_OP_DIGAMMA, 0, 0, 1, 0, -0.577215664902},
        {RT_OP_DIGAMMA, 0, 0, 0.1, 0, -10.423754940411},
        {RT_OP_DIGAMMA, 0, 0, 1e-3, 0, -1000.575571931810},
        {RT_OP_TRIGAMMA, 0, 0, 1, 0, 1.644934066848},
        {RT_OP_TRIGAMMA, 0, 0, 0.1, 0, 101.433299150793},
        {RT_OP_STOP_GRAD, 0, 0, 3, 0, 3},
    };
    for (int64_t i = 0; i < RT_COUNT(list); i++) {
        example e = {.name = rt_op_get(list[i].op)->name,
                     .op = list[i].op,
                     .n = 1,
                     .nin = rt_op_get(list[i].op)->arity,
                     .attr = {.alpha = list[i].alpha, .beta = list[i].beta}};
        e.in[0] = (operand){'f', 0, S1(1), {list[i].a}};
        e.in[1] = (operand){'f', 0, S1(1), {list[i].b}};
        e.out = (operand){'f', 0, S1(1), {list[i].want}};
        run_example(&e, RT_DTYPE_F32);
        run_example(&e, RT_DTYPE_F64);
    }
}

/* ---- dropout: right share, right scale, the same for any slicing and layout ---- */

static void test_dropout(void **state) {
    (void)state;
    enum { G = 2, N = 32, C = 5, HW = 6, ROW = C * HW };
    static float x[G * N * ROW], whole[G * N * ROW], part[G * N / 4 * ROW];
    for (int i = 0; i < G * N * ROW; i++)
        x[i] = (float)(i + 1);
    int32_t groups = G;
    rt_desc d = rt_desc_make(RT_DTYPE_F32, rt_shape4(G * N, C, 2, 3), RT_LAYOUT_PLAIN);
    rt_problem p = {.op = RT_OP_DROPOUT,
                    .attr = {.alpha = 0.25, .stream = 3},
                    .nin = 1,
                    .in = &d,
                    .in_groups = &groups,
                    .out = d,
                    .out_groups = G,
                    .n = N};
    const void *in[] = {x};
    const rt_kern *k = rt_kern_ref(RT_OP_DROPOUT, RT_DTYPE_F32);
    k->run(NULL, &p, whole, in, &(rt_kern_ctx){.seed = 11, .step = 4, .batch = N});
    int kept = 0;
    for (int i = 0; i < G * N * ROW; i++) {
        kept += whole[i] != 0;
        if (whole[i] != 0)
            assert_true(fabsf(whole[i] - x[i] / 0.75f) <= 1e-3f);
    }
    assert_in_range(kept, G * N * ROW * 7 / 10, G * N * ROW * 8 / 10);
    /* the second slice of 8 samples */
    d.shape.d[0] = G * 8;
    p.out = d;
    p.n = 8;
    static float slice[G * 8 * ROW];
    for (int g = 0; g < G; g++)
        memcpy(slice + g * 8 * ROW, x + (g * N + 8) * ROW, 8 * ROW * sizeof(float));
    in[0] = slice;
    k->run(NULL, &p, part, in, &(rt_kern_ctx){.seed = 11, .step = 4, .batch = N, .row0 = 8});
    for (int g = 0; g < G; g++)
        assert_memory_equal(part + g * 8 * ROW, whole + (g * N + 8) * ROW, 8 * ROW * sizeof(float));
    /* another step draws another mask */
    k->run(NULL, &p, slice, in, &(rt_kern_ctx){.seed = 11, .step = 5, .batch = N, .row0 = 8});
    assert_memory_not_equal(part, slice, sizeof slice);
}

/* ---- chain: steps in order, swapped operands, broadcast operands ---- */

static void test_chain(void **state) {
    (void)state;
    /* op_chain_swap: acc = (b - x) r is the mask, b passes it, or a quarter of b */
    const double x[] = {1, 2, 3, 4}, b[] = {5, 5, -5, -5}, r[] = {2, 10};
    const double want[] = {5, 5, -1.25, -1.25};
    const rt_desc d = rt_desc_make(RT_DTYPE_F64, rt_shape2(2, 2), RT_LAYOUT_PLAIN);
    const rt_desc in[] = {d, d, rt_desc_make(RT_DTYPE_F64, rt_shape1(2), RT_LAYOUT_PLAIN)};
    const int32_t groups[] = {1, 1, 0};
    rt_problem p = {.op = RT_OP_CHAIN,
                    .chain = &op_chain_swap,
                    .nin = 3,
                    .in = in,
                    .in_groups = groups,
                    .out = d,
                    .out_groups = 1,
                    .n = 2};
    double out[4];
    const rt_kern *k = rt_kern_ref(RT_OP_CHAIN, RT_DTYPE_F64);
    k->run(NULL, &p, out, (const void *[]){x, b, r}, &(rt_kern_ctx){.batch = 2});
    assert_memory_equal(out, want, sizeof out);
    memcpy(out, x, sizeof out);
    k->run(NULL, &p, out, (const void *[]){out, b, r}, &(rt_kern_ctx){.batch = 2});
    assert_memory_equal(out, want, sizeof out);
    /* scale, tanh, rows, scalar: tanh(0.25 + x / 2) w s */
    const double w[] = {2, -1}, s[] = {3};
    const rt_desc rows[] = {d, rt_desc_make(RT_DTYPE_F64, rt_shape1(2), RT_LAYOUT_PLAIN),
                            rt_desc_make(RT_DTYPE_F64, rt_shape0(), RT_LAYOUT_PLAIN)};
    p.chain = &op_chain_rows;
    p.in = rows;
    p.in_groups = (const int32_t[]){1, 1, 0};
    k->run(NULL, &p, out, (const void *[]){x, w, s}, &(rt_kern_ctx){.batch = 2});
    for (int i = 0; i < 4; i++)
        assert_true(fabs(out[i] - tanh(0.25 + x[i] / 2) * w[i / 2] * 3) <= 1e-14);
}

/* ---- RETORT_ISA lowers, and only lowers, what the CPU has; asked once per process, hence the child ---- */

static rt_isa isa_of_child(const char *name) {
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("RETORT_ISA", name, 1);
        _exit((int)rt_cpu_isa());
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return (rt_isa)WEXITSTATUS(status);
}

static void test_isa(void **state) {
    (void)state;
    assert_int_equal(isa_of_child("none"), RT_ISA_NONE);
    assert_int_equal(isa_of_child("plain"), RT_ISA_PLAIN);
    const rt_isa avx2 = isa_of_child("avx2"), avx512 = isa_of_child("avx512"),
                 odd = isa_of_child("no such thing");
    assert_true(avx2 <= RT_ISA_AVX2 && avx2 <= avx512);
    assert_int_equal(odd, avx512); /* unknown names change nothing */
    assert_true(rt_cpu_isa() <= avx512);
}

/* Every file of figures has it on one line. */
static void test_cpu_name(void **state) {
    (void)state;
    char name[RT_CPU_NAME], small[8];
    rt_cpu_name(name, sizeof name);
    const size_t n = strlen(name);
    const char *isa = rt_isa_name(rt_cpu_isa()), *end = name + n - strlen(isa);
    assert_in_range(n, strlen(isa) + 8, sizeof name - 1);
    assert_string_equal(end, isa);
    assert_memory_equal(end - 2, ", ", 2);
    assert_null(strpbrk(name, "\n\t\"\\"));
    rt_cpu_name(small, sizeof small);
    assert_memory_equal(small, name, sizeof small - 1);
}

/* ---- reorder: there and back is the identity, padding is zero ---- */

static void test_reorder(void **state) {
    (void)state;
    const rt_shape s = rt_shape4(5, 17, 2, 3);
    const rt_kern *k = rt_kern_ref(RT_OP_REORDER, RT_DTYPE_F32);
    static float x[5 * 17 * 6], back[5 * 17 * 6];
    for (int i = 0; i < 5 * 17 * 6; i++)
        x[i] = (float)(i + 1);
    const rt_desc plain = rt_desc_make(RT_DTYPE_F32, s, RT_LAYOUT_PLAIN);
    for (int l = 0; l < RT_LAYOUT_W_WINO; l++) {
        const rt_desc other = rt_desc_make(RT_DTYPE_F32, s, (rt_layout)l);
        float *y = op_buffer(rt_desc_bytes(&other));
        const int32_t groups = 1;
        const rt_problem to = {
            .op = RT_OP_REORDER, .nin = 1, .in = &plain, .in_groups = &groups, .out = other};
        const rt_problem from = {
            .op = RT_OP_REORDER, .nin = 1, .in = &other, .in_groups = &groups, .out = plain};
        k->run(NULL, &to, y, (const void *[]){x}, &(rt_kern_ctx){0});
        double sum = 0, want = 0;
        for (int64_t i = 0; i < rt_desc_elems(&other); i++)
            sum += (double)y[i];
        for (int64_t i = 0; i < 5 * 17 * 6; i++)
            want += (double)x[i];
        assert_true(sum == want);
        assert_true(op_buffer_intact(y, rt_desc_bytes(&other)));
        k->run(NULL, &from, back, (const void *[]){y}, &(rt_kern_ctx){0});
        assert_memory_equal(x, back, sizeof x);
        rt_free(y);
    }
}

/* ---- random numbers: moments, range, the same for any slicing, others for another step or stream ---- */

static void random_run(double *out, int32_t index, uint64_t stream, int64_t n, rt_kern_ctx ctx) {
    enum { G = 2, ROW = 12 };
    int32_t groups = G;
    const rt_desc d = rt_desc_make(RT_DTYPE_F64, rt_shape4(G * n, 3, 2, 2), RT_LAYOUT_PLAIN);
    const rt_problem p = {.op = RT_OP_RANDOM,
                          .attr = {.index = index, .stream = stream},
                          .nin = 1,
                          .in = &d,
                          .in_groups = &groups,
                          .out = d,
                          .out_groups = G,
                          .n = n};
    rt_kern_ref(RT_OP_RANDOM, RT_DTYPE_F64)->run(NULL, &p, out, (const void *[]){out}, &ctx);
}

static void test_random(void **state) {
    (void)state;
    enum { N = 512, ROW = 12, ALL = 2 * N * ROW };
    static double whole[ALL], part[ALL / 4], other[ALL];
    static const double fourth[] = {1.0 / 5, 3}; /* of the two distributions */
    for (int32_t index = 0; index < 2; index++) {
        const rt_kern_ctx ctx = {.seed = 11, .step = 4, .batch = N};
        double m1 = 0, m2 = 0, m4 = 0;
        random_run(whole, index, 3, N, ctx);
        for (int i = 0; i < ALL; i++) {
            m1 += whole[i] / ALL;
            m2 += whole[i] * whole[i] / ALL;
            m4 += pow(whole[i], 4) / ALL;
            assert_true(index == 1 || (whole[i] >= -1 && whole[i] < 1));
        }
        assert_true(fabs(m1) < 0.04 && fabs(m2 - (index ? 1 : 1.0 / 3)) < 0.05);
        assert_true(fabs(m4 / fourth[index] - 1) < 0.15);
        for (int64_t s = 0; s < 4; s++) {
            rt_kern_ctx slice = ctx;
            slice.row0 = s * N / 4;
            random_run(part, index, 3, N / 4, slice);
            for (int64_t g = 0; g < 2; g++)
                assert_memory_equal(part + g * N / 4 * ROW, whole + (g * N + slice.row0) * ROW,
                                    sizeof(double) * N / 4 * ROW);
        }
        random_run(other, index, 4, N, ctx);
        assert_memory_not_equal(whole, other, sizeof whole);
        random_run(other, index, 3, N, (rt_kern_ctx){.seed = 11, .step = 5, .batch = N});
        assert_memory_not_equal(whole, other, sizeof whole);
    }
}

/* ---- quadratic programs: the conditions of an optimum, for many vectors ---- */

static void test_qp_simplex(void **state) {
    (void)state;
    enum { M = 40, K = 60 };
    static const double caps[] = {0.01, 1.0 / M, 0.05, 0.3, 1, 7};
    for (int64_t t = 0; t < RT_COUNT(caps); t++) {
        op_case c = {.op = RT_OP_QP_SIMPLEX, .n = 1, .attr = {.alpha = caps[t]}};
        op_case_add(&c, RT_DTYPE_F64, 0, rt_shape2(M, K), FILL_ANY);
        static double v[M * K], w[M], y[K];
        op_case_fill(&c, 0, 1, v);
        for (int i = 0; i < M; i++)
            v[i * K] += 5; /* the origin is outside their hull */
        op_problem p;
        op_problem_init(&p, &c);
        assert_true(op_run(rt_kern_ref(c.op, RT_DTYPE_F64), &p.p, w, (const void *[]){v}, (rt_kern_ctx){0}));
        const double cap = fmax(fmin(caps[t], 1), 1.0 / M);
        double sum = 0, least = HUGE_VAL, most = -HUGE_VAL;
        memset(y, 0, sizeof y);
        for (int i = 0; i < M; i++) {
            assert_true(w[i] >= 0 && w[i] <= cap);
            sum += w[i];
            for (int k = 0; k < K; k++)
                y[k] += w[i] * v[i * K + k];
        }
        assert_true(fabs(sum - 1) <= 1e-12);
        /* no member that has weight to give pulls harder than one that has room */
        for (int i = 0; i < M; i++) {
            double pull = 0;
            for (int k = 0; k < K; k++)
                pull += y[k] * v[i * K + k];
            least = w[i] < cap ? fmin(least, pull) : least;
            most = w[i] > 0 ? fmax(most, pull) : most;
        }
        assert_true(!(most - least > 1e-10));
    }
}

/* ---- sinkhorn: a large problem is doubly stochastic, the gradient of a constant shift vanishes ---- */

static void test_sinkhorn(void **state) {
    (void)state;
    enum { N = 24 };
    op_case c = {.op = RT_OP_SINKHORN, .n = 1, .attr = {.alpha = 0.5, .count = 500}};
    op_case_add(&c, RT_DTYPE_F64, 0, rt_shape2(N, N), FILL_ANY);
    static double x[N * N], pm[N * N], dp[N * N], dx[N * N];
    op_case_fill(&c, 0, 1, x);
    op_problem p;
    op_problem_init(&p, &c);
    assert_true(op_run(rt_kern_ref(c.op, RT_DTYPE_F64), &p.p, pm, (const void *[]){x}, (rt_kern_ctx){0}));
    for (int i = 0; i < N; i++) {
        double row = 0, col = 0;
        for (int j = 0; j < N; j++) {
            row += pm[i * N + j];
            col += pm[j * N + i];
            dp[i * N + j] = sin(i * 3.0 + j * j);
        }
        assert_true(fabs(row - 1) <= 1e-9);
        assert_true(fabs(col - 1) <= 1e-9);
    }
    c.op = RT_OP_SINKHORN_BWD;
    op_case_add(&c, RT_DTYPE_F64, 0, rt_shape2(N, N), FILL_ANY);
    op_case_add(&c, RT_DTYPE_F64, 0, rt_shape2(N, N), FILL_ANY);
    op_problem_init(&p, &c);
    assert_true(
        op_run(rt_kern_ref(c.op, RT_DTYPE_F64), &p.p, dx, (const void *[]){dp, pm, x}, (rt_kern_ctx){0}));
    /* adding a constant to a row or a column of x changes nothing */
    for (int i = 0; i < N; i++) {
        double row = 0, col = 0;
        for (int j = 0; j < N; j++) {
            row += dx[i * N + j];
            col += dx[j * N + i];
        }
        assert_true(fabs(row - 0) <= 1e-7);
        assert_true(fabs(col - 0) <= 1e-7);
    }
}

/* The gradient through the iterations, of every kernel in float, as exact as floats allow: permAVG follows it for
 * hundreds of steps. Near the identity, as permAVG starts (its rows leave each other slowly), and far from it. */
static void test_sinkhorn_unrolled(void **state) {
    (void)state;
    enum { N = 77 };
    static double x[N * N], pm[N * N], dp[N * N], want[N * N];
    static float x32[N * N], pm32[N * N], dp32[N * N], got[N * N];
    for (int hard = 0; hard < 3; hard++) {
        op_case c = {.op = RT_OP_SINKHORN, .n = 1, .attr = {.alpha = 1, .count = 100}};
        op_problem p;
        op_case_add(&c, RT_DTYPE_F64, 0, rt_shape2(N, N), FILL_ANY);
        op_case_fill(&c, 0, 1, x);
        for (int i = 0; i < N * N; i++) { /* what floats hold exactly, so that both have the same problem */
            x[i] = (double)(float)(x[i] * (hard == 2 ? 8 : 0.3) + (i % (N + 1) == 0 ? hard == 1 ? 6 : 1 : 0));
            dp[i] = (double)(float)sin(i * 1.7 + i % 13);
        }
        op_problem_init(&p, &c);
        assert_true(op_run(rt_kern_ref(c.op, RT_DTYPE_F64), &p.p, pm, (const void *[]){x}, (rt_kern_ctx){0}));
        for (int i = 0; i < N * N; i++) {
            x32[i] = (float)x[i];
            dp32[i] = (float)dp[i];
            pm32[i] = (float)pm[i];
        }
        c.op = RT_OP_SINKHORN_BWD;
        c.attr.index = RT_SINKHORN_UNROLLED;
        op_case_add(&c, RT_DTYPE_F64, 0, rt_shape2(N, N), FILL_ANY);
        op_case_add(&c, RT_DTYPE_F64, 0, rt_shape2(N, N), FILL_ANY);
        op_problem_init(&p, &c);
        assert_true(op_run(rt_kern_ref(c.op, RT_DTYPE_F64), &p.p, want, (const void *[]){dp, pm, x},
                           (rt_kern_ctx){0}));
        op_case f = {.op = RT_OP_SINKHORN_BWD, .n = 1, .attr = c.attr};
        for (int i = 0; i < 3; i++)
            op_case_add(&f, RT_DTYPE_F32, 0, rt_shape2(N, N), FILL_ANY);
        op_problem_init(&p, &f);
        const rt_kern *list[16];
        int n;
        assert_int_equal(rt_kern_list(f.op, RT_DTYPE_F32, RT_KERN_ALL, list, 16, &n), RT_OK);
        for (int k = 0; k < n; k++) {
            double most = 0, size = 0;
            assert_true(op_run(list[k], &p.p, got, (const void *[]){dp32, pm32, x32}, (rt_kern_ctx){0}));
            for (int i = 0; i < N * N; i++) {
                most = fmax(most, fabs((double)got[i] - want[i]));
                size = fmax(size, fabs(want[i]));
            }
            if (!(most <= 4e-6 * size))
                fail_msg("%s, case %d: off by %g of %g", list[k]->impl, hard, most / size, size);
        }
    }
}

/* ---- adjoints ---- */

/* x is operand xa of a, y operand yb of b; operand sa of a and sb of b (if not -1) are the same tensor. */
typedef struct pair {
    op_case a, b;
    int xa, yb, sa, sb;
} pair;

static void *run_case(const op_case *c, const void *const *in, op_problem *p) {
    op_problem_init(p, c);
    const size_t bytes = rt_desc_bytes(&p->p.out);
    void *out = op_buffer(bytes);
    assert_true(
        op_run(rt_kern_ref(c->op, RT_DTYPE_F64), &p->p, out, in, (rt_kern_ctx){.batch = c->n, .seed = 3}));
    assert_true(op_buffer_intact(out, bytes));
    return out;
}

static double dot(const double *a, const double *b, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void check_pair(const pair *q, const char *name) {
    void *ia[OP_CASE_IN] = {0}, *ib[OP_CASE_IN] = {0};
    for (int i = 0; i < q->a.nin; i++) {
        ia[i] = op_buffer((size_t)rt_shape_elems(&q->a.in[i].shape) * 8);
        op_case_fill(&q->a, i, 1, ia[i]);
    }
    for (int i = 0; i < q->b.nin; i++) {
        ib[i] = op_buffer((size_t)rt_shape_elems(&q->b.in[i].shape) * 8);
        op_case_fill(&q->b, i, 2, ib[i]);
    }
    if (q->sa >= 0)
        memcpy(ib[q->sb], ia[q->sa],
               (size_t)rt_shape_elems(&q->a.in[q->sa].shape) * rt_dtype_size(q->a.in[q->sa].dtype));
    op_problem pa, pb;
    double *ax = run_case(&q->a, (const void *const *)ia, &pa),
           *aty = run_case(&q->b, (const void *const *)ib, &pb);
    if (!rt_shape_equal(&pa.p.out.shape, &q->b.in[q->yb].shape) ||
        !rt_shape_equal(&pb.p.out.shape, &q->a.in[q->xa].shape))
        fail_msg("%s: shapes of the pair do not fit", name);
    const double left = dot(ax, ib[q->yb], rt_shape_elems(&pa.p.out.shape));
    const double right = dot(ia[q->xa], aty, rt_shape_elems(&pb.p.out.shape));
    if (!(fabs(left - right) <= 1e-12 * (fabs(left) + 100)))
        fail_msg("%s: <A x, y> = %.17g but <x, A^T y> = %.17g", name, left, right);
    rt_free(ax);
    rt_free(aty);
    for (int i = 0; i < OP_CASE_IN; i++) {
        rt_free(ia[i]);
        rt_free(ib[i]);
    }
}

/* Operand letters of op_cases.h for dimensions d. */
static op_case make(rt_op op, const char *in, op_dims d, rt_attr attr) {
    op_case c = {.op = op, .attr = attr, .n = d.n, .limit = d.g};
    for (; *in; in++)
        op_case_operand(&c, *in, d, false, RT_DTYPE_F64);
    return c;
}

static void test_adjoints(void **state) {
    (void)state;
    const op_dims d4 = {3, 2, 5, 3, 4}, d2 = {3, 2, 5, 0, 0}, one = {1, 2, 5, 3, 4};
    const rt_shape row = rt_shape3(5, 3, 4), space = rt_shape2(3, 4);
    const pair list[] = {
        {make(RT_OP_TILE_MEMBERS, "O", d4, (rt_attr){.members = 3}),
         make(RT_OP_SUM_MEMBERS, "X", d4, (rt_attr){0}), 0, 0, -1, -1},
        {make(RT_OP_MEMBER_GET, "XI", d4, (rt_attr){0}),
         make(RT_OP_MEMBER_PUT, "OI", d4, (rt_attr){.members = 3}), 0, 0, 1, 1},
        {make(RT_OP_MEMBER_RANGE, "X", d4, (rt_attr){.start = 1, .count = 1}),
         make(RT_OP_MEMBER_PLACE, "O", d4, (rt_attr){.start = 1, .members = 3}), 0, 0, -1, -1},
        {make(RT_OP_SLICE_LAST, "X", d2, (rt_attr){.start = 0, .count = 5}),
         make(RT_OP_PAD_LAST, "X", d2, (rt_attr){.start = 0, .index = 5}), 0, 0, -1, -1},
        {make(RT_OP_ROW_SUM, "X", d4, (rt_attr){0}), make(RT_OP_EXPAND_ROW, "R", d4, (rt_attr){.shape = row}),
         0, 0, -1, -1},
        {make(RT_OP_CHAN_SUM, "X", d4, (rt_attr){0}),
         make(RT_OP_EXPAND_CHAN, "C", d4, (rt_attr){.count = 3, .shape = space}), 0, 0, -1, -1},
        {make(RT_OP_CHAN_SUM, "X", d4, (rt_attr){.members = 3}),
         make(RT_OP_EXPAND_CHAN, "M", d4, (rt_attr){.members = 3, .count = 3, .shape = space}), 0, 0, -1, -1},
        {make(RT_OP_TOTAL_SUM, "X", d4, (rt_attr){0}),
         make(RT_OP_EXPAND_TOTAL, "S", d4, (rt_attr){.members = 3, .shape = row}), 0, 0, -1, -1},
        {make(RT_OP_BATCH_SUM, "X", d4, (rt_attr){0}),
         make(RT_OP_EXPAND_BATCH, "V", d4, (rt_attr){.members = 3}), 0, 0, -1, -1},
        {make(RT_OP_GLOBAL_AVGPOOL, "X", d4, (rt_attr){0}),
         make(RT_OP_GLOBAL_AVGPOOL_BWD, "E", d4, (rt_attr){.h = 3, .w = 4}), 0, 0, -1, -1},
        {make(RT_OP_DROPOUT, "X", d4, (rt_attr){.alpha = 0.5}),
         make(RT_OP_DROPOUT, "X", d4, (rt_attr){.alpha = 0.5}), 0, 0, -1, -1},
        {make(RT_OP_RELU_BWD, "XX", one, (rt_attr){.alpha = 0.3}),
         make(RT_OP_RELU_BWD, "XX", one, (rt_attr){.alpha = 0.3}), 0, 0, 1, 1},
        {make(RT_OP_RESHAPE, "X", one, (rt_attr){.shape = rt_shape1(60)}),
         make(RT_OP_RESHAPE, "X", (op_dims){1, 2, 60, 0, 0}, (rt_attr){.shape = row}), 0, 0, -1, -1},
        {make(RT_OP_TRANSPOSE, "G", (op_dims){1, 2, 5, 0, 0}, (rt_attr){0}),
         make(RT_OP_TRANSPOSE, "G", (op_dims){1, 5, 2, 0, 0}, (rt_attr){0}), 0, 0, -1, -1},
        {make(RT_OP_MATMUL, "GG", (op_dims){1, 4, 4, 0, 0}, (rt_attr){0}),
         make(RT_OP_MATMUL, "GG", (op_dims){1, 4, 4, 0, 0}, (rt_attr){.tb = true}), 0, 0, 1, 1},
        {make(RT_OP_MATMUL, "GG", (op_dims){1, 4, 4, 0, 0}, (rt_attr){0}),
         make(RT_OP_MATMUL, "GG", (op_dims){1, 4, 4, 0, 0}, (rt_attr){.ta = true}), 1, 1, 0, 0},
        {make(RT_OP_SOLVE, "GG", (op_dims){1, 4, 4, 0, 0}, (rt_attr){0}),
         make(RT_OP_SOLVE, "GG", (op_dims){1, 4, 4, 0, 0}, (rt_attr){.ta = true}), 1, 1, 0, 0},
    };
    for (int64_t i = 0; i < RT_COUNT(list); i++)
        check_pair(&list[i], rt_op_get(list[i].a.op)->name);
}

static void test_conv_adjoints(void **state) {
    (void)state;
    static const struct {
        int64_t h, w, k, stride, pad;
    } list[] = {{5, 6, 3, 1, 1}, {5, 6, 3, 2, 1}, {4, 4, 1, 2, 0}, {6, 5, 2, 2, 0}, {7, 7, 5, 3, 2}};
    for (int64_t i = 0; i < RT_COUNT(list); i++) {
        const int64_t k = list[i].k, st = list[i].stride, pad = list[i].pad;
        const int64_t oh = (list[i].h + 2 * pad - k) / st + 1, ow = (list[i].w + 2 * pad - k) / st + 1;
        const rt_attr attr = {.stride = (int32_t)st, .pad = (int32_t)pad};
        op_case f = {.op = RT_OP_CONV2D, .attr = attr, .n = 2};
        op_case_add(&f, RT_DTYPE_F64, 1, rt_shape4(2, 3, list[i].h, list[i].w), FILL_ANY);
        op_case_add(&f, RT_DTYPE_F64, 0, rt_shape4(4, 3, k, k), FILL_ANY);
        op_case data = {.op = RT_OP_CONV2D_BWD_DATA, .attr = attr, .n = 2},
                weights = {.op = RT_OP_CONV2D_BWD_WEIGHTS, .attr = attr, .n = 2};
        data.attr.h = list[i].h, data.attr.w = list[i].w;
        weights.attr.kh = weights.attr.kw = (int32_t)k;
        op_case_add(&data, RT_DTYPE_F64, 1, rt_shape4(2, 4, oh, ow), FILL_ANY);
        op_case_add(&data, RT_DTYPE_F64, 0, f.in[1].shape, FILL_ANY);
        op_case_add(&weights, RT_DTYPE_F64, 1, f.in[0].shape, FILL_ANY);
        op_case_add(&weights, RT_DTYPE_F64, 1, rt_shape4(2, 4, oh, ow), FILL_ANY);
        check_pair(&(pair){f, data, 0, 0, 1, 1}, "conv2d_bwd_data");
        check_pair(&(pair){f, weights, 1, 1, 0, 0}, "conv2d_bwd_weights");
    }
}

/* ---- every operation runs on every case of op_cases.h, and every operation has cases ---- */

static void run_any(void *user, const op_case *c) {
    op_problem p;
    op_problem_init(&p, c);
    void *in[OP_CASE_IN] = {0};
    for (int i = 0; i < c->nin; i++) {
        in[i] = op_buffer(rt_desc_bytes(&p.in[i]));
        op_case_fill(c, i, 1, in[i]);
    }
    const size_t bytes = rt_desc_bytes(&p.p.out);
    void *out = op_buffer(bytes);
    const rt_dtype t = *(rt_dtype *)user;
    assert_true(
        op_run(rt_kern_ref(c->op, t), &p.p, out, (const void *const *)in, (rt_kern_ctx){.batch = c->n}));
    char text[512];
    op_case_print(c, text, sizeof text);
    if (!op_buffer_intact(out, bytes))
        fail_msg("%s: wrote behind its output", text);
    for (int64_t i = 0; i < rt_desc_elems(&p.p.out); i++)
        if (!isfinite(op_load(p.p.out.dtype, out, i)))
            fail_msg("%s: element %lld is not finite", text, (long long)i);
    rt_free(out);
    for (int i = 0; i < c->nin; i++)
        rt_free(in[i]);
}

static void count_case(void *user, const op_case *c) {
    (void)c;
    ++*(int *)user;
}

static void test_all_run(void **state) {
    (void)state;
    for (int op = RT_OP_NONE + 1; op < RT_OP_COUNT; op++) {
        int cases = 0;
        op_cases_each((rt_op)op, &(op_sweep){.dtype = RT_DTYPE_F32, .fn = count_case, .user = &cases});
        if (cases == 0)
            fail_msg("%s has no cases in op_cases.h", rt_op_get((rt_op)op)->name);
        for (int t = 0; t < 2; t++) {
            rt_dtype dtype = t ? RT_DTYPE_F64 : RT_DTYPE_F32;
            op_cases_each((rt_op)op,
                          &(op_sweep){.dtype = dtype, .max_elems = 2000, .fn = run_any, .user = &dtype});
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_isa),
        cmocka_unit_test(test_cpu_name),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_qp_simplex),
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_eltwise),
        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_reorder),
        cmocka_unit_test(test_sinkhorn),
        cmocka_unit_test(test_sinkhorn_unrolled),
        cmocka_unit_test(test_adjoints),
        cmocka_unit_test(test_conv_adjoints),
        cmocka_unit_test(test_all_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
