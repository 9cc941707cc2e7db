/*
 * test_kernels.c - every line of kern.def against the reference.
 *
 * Each kernel runs all problems of op_cases.h that it supports: in PLAIN, in blocked layouts, and in the
 * layouts it asks for; into a fresh buffer and, if element-wise, in place; on ordinary and on extreme values.
 * Inputs and results are converted by the reference REORDER. Padding of a blocked result must be zero and
 * nothing may be written behind it. A line that ran no problem at all, on a CPU that has its instructions,
 * fails: it is dead, or op_cases.h lacks its kind of problem.
 */
#include "op/op_problem.h"

/* ---- the lines ---- */

#define RT_KERN(OP_ID, dtype, FAMILY, isa, symbol) extern const rt_kern symbol;
#include "kern/kern.def"

typedef struct line {
    rt_op op;
    rt_dtype dtype;
    rt_isa isa;
    const char *symbol;
    const rt_kern *kern;
} line;

static const line lines[] = {
#define RT_KERN(OP_ID, dtype, FAMILY, isa, symbol)                                                           \
    {RT_OP_##OP_ID, RT_DTYPE_##dtype, RT_ISA_##isa, #symbol, &symbol},
#include "kern/kern.def"
    {RT_OP_NONE, RT_DTYPE_F32, RT_ISA_PLAIN, "", NULL},
};

/* ---- one run ---- */

typedef enum mode { MODE_FRESH, MODE_IN_PLACE, MODE_EXTREME, MODE_COUNT } mode;
static const char *const mode_names[] = {"fresh", "in place", "extreme values"};
enum { SEED = 1 };

typedef struct sweep {
    const line *l;
    int64_t runs, failures;
} sweep;

static bool is_eltwise(rt_op op) {
    return op == RT_OP_CHAIN || (rt_op_get(op)->flags & RT_OP_ELTWISE);
}

static bool has_step(const op_case *c, rt_op op) {
    if (c->op == op)
        return true;
    for (int i = 0; c->chain && i < c->chain->n; i++)
        if (c->chain->step[i].op == op)
            return true;
    return false;
}

static bool mode_applies(mode m, const op_case *c, const rt_problem *p) {
    switch (m) {
    case MODE_IN_PLACE:
        return is_eltwise(c->op) && rt_desc_equal(&p->in[0], &p->out);
    case MODE_EXTREME:
        return is_eltwise(c->op) || c->op == RT_OP_SOFTMAX || c->op == RT_OP_LOG_SOFTMAX ||
               c->op == RT_OP_CE_LABEL || c->op == RT_OP_MAXPOOL || c->op == RT_OP_ROW_MAX;
    default:
        return true;
    }
}

/* Extreme values must neither overflow on the way nor lose a NaN, on which detecting divergence relies. What
 * 0 * NaN means in a masked gradient is left open. */
static void fill_extreme(const op_case *c, rt_dtype t, void *data) {
    static const double any[] = {0,  -0.0, 1e-30, -1e-30, 1,    -1,    20, -20,
                                 88, -88,  100,   -100,   1000, -1000, NAN};
    static const double positive[] = {1e-20, 1e-6, 0.5, 1, 3, 100, 1e6, 1e20};
    const bool nan = is_eltwise(c->op) && !has_step(c, RT_OP_RELU_BWD) && !has_step(c, RT_OP_DROPOUT);
    const int64_t n = rt_shape_elems(&c->in[0].shape);
    for (int64_t i = 0; i < n; i++)
        op_store(t, data, i,
                 c->fill[0] == FILL_POS ? positive[i % RT_COUNT(positive)] : any[i % (RT_COUNT(any) - !nan)]);
}

static void convert(rt_dtype t, const rt_desc *to, void *dst, const rt_desc *from, const void *src) {
    const int32_t groups = 1;
    const rt_problem p = {.op = RT_OP_REORDER, .nin = 1, .in = from, .in_groups = &groups, .out = *to};
    rt_kern_ref(RT_OP_REORDER, t)->run(NULL, &p, dst, (const void *[]){src}, &(rt_kern_ctx){0});
}

static double tolerance(const rt_problem *p, rt_dtype t) {
    if (t == RT_DTYPE_F64)
        return 1e-11;
    switch (p->op) {
    case RT_OP_MATMUL:
    case RT_OP_BMM:
    case RT_OP_CONV2D:
    case RT_OP_CONV2D_BWD_DATA:
    case RT_OP_CONV2D_BWD_WEIGHTS:
    case RT_OP_MATINV:
    case RT_OP_SOLVE:
    case RT_OP_SINKHORN_BWD:
        return 1e-4;
    default:
        return p->kind == RT_KIND_SUM && p->out.dtype != RT_DTYPE_F64 ? 1e-4 : 1e-5;
    }
}

/* Relative to the largest element, or for extreme values to each element. */
static bool compare(const rt_problem *p, mode m, rt_dtype t, const void *got, const void *want, int64_t *at) {
    const int64_t n = rt_desc_elems(&p->out);
    double max = 0;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, fabs(op_load(p->out.dtype, want, i)));
    for (*at = 0; *at < n; ++*at) {
        const double a = op_load(p->out.dtype, got, *at), b = op_load(p->out.dtype, want, *at);
        if (m != MODE_EXTREME) {
            if (!(fabs(a - b) <= tolerance(p, t) * max))
                return false;
        } else if (isnan(b)   ? !isnan(a)
                   : isinf(b) ? !(copysign(a, b) == a && fabs(a) > 1e38)
                              : !(fabs(a - b) <= 1e-6 + 1e-5 * fabs(b))) {
            return false;
        }
    }
    return true;
}

static bool padding_is_zero(rt_dtype t, const rt_desc *plain, const void *values, const rt_desc *d,
                            const void *stored) {
    void *again = op_buffer(rt_desc_bytes(d));
    convert(t, d, again, plain, values);
    bool same = true;
    for (int64_t i = 0; i < rt_desc_elems(d); i++) {
        const double a = op_load(d->dtype, again, i), b = op_load(d->dtype, stored, i);
        same = same && (a == b || (isnan(a) && isnan(b)));
    }
    rt_free(again);
    return same;
}

static void complain(sweep *s, const op_case *c, const rt_problem *p, mode m, const char *what) {
    char text[512];
    if (s->failures++ >= 5)
        return;
    op_case_print(c, text, sizeof text);
    print_error("%s: %s, %s, layouts", s->l->symbol, text, mode_names[m]);
    for (int i = 0; i < p->nin; i++)
        print_error(" %s", rt_layout_name(p->in[i].layout));
    print_error(" -> %s, seed %d: %s\n", rt_layout_name(p->out.layout), SEED, what);
}

/* q: the problem in the layouts to test; plain: the same in PLAIN. */
static void run_mode(sweep *s, const op_case *c, const rt_problem *plain, const rt_problem *q, mode m) {
    const rt_dtype t = s->l->dtype;
    const rt_kern_ctx ctx = {.seed = 5, .step = 9, .row0 = 2, .batch = c->n + 3};
    void *in[OP_CASE_IN] = {0}, *blocked[OP_CASE_IN] = {0};
    const void *arg[OP_CASE_IN] = {0};
    for (int i = 0; i < c->nin; i++) {
        in[i] = op_buffer(rt_desc_bytes(&plain->in[i]));
        blocked[i] = op_buffer(rt_desc_bytes(&q->in[i]));
        op_case_fill(c, i, SEED, in[i]);
        if (m == MODE_EXTREME && i == 0)
            fill_extreme(c, plain->in[0].dtype, in[0]);
        if (q->in[i].layout == RT_LAYOUT_PLAIN)
            memcpy(blocked[i], in[i], rt_desc_bytes(&q->in[i]));
        else
            convert(t, &q->in[i], blocked[i], &plain->in[i], in[i]);
        arg[i] = blocked[i];
    }
    const size_t bytes = rt_desc_bytes(&q->out);
    void *want = op_buffer(rt_desc_bytes(&plain->out)), *got = op_buffer(rt_desc_bytes(&plain->out)),
         *out = op_buffer(bytes);
    assert_true(op_run(rt_kern_ref(c->op, t), plain, want, (const void *const *)in, ctx));
    if (m == MODE_IN_PLACE) {
        memcpy(out, blocked[0], bytes);
        arg[0] = out;
    }
    char text[128];
    int64_t at = 0;
    if (!op_run(s->l->kern, q, out, arg, ctx))
        complain(s, c, q, m, "did not run");
    else if (!op_buffer_intact(out, bytes))
        complain(s, c, q, m, "wrote behind its output");
    else if (rt_layout_is_wino(q->out.layout)) {
        void *transformed = op_buffer(bytes);
        convert(t, &q->out, transformed, &plain->in[0], in[0]);
        if (!compare(q, m, t, out, transformed, &at))
            complain(s, c, q, m, "not the reference's transform");
        rt_free(transformed);
    } else {
        if (q->out.layout == RT_LAYOUT_PLAIN)
            memcpy(got, out, bytes);
        else
            convert(t, &plain->out, got, &q->out, out);
        if (!compare(plain, m, t, got, want, &at)) {
            snprintf(text, sizeof text, "element %lld is %.9g, wanted %.9g", (long long)at,
                     op_load(plain->out.dtype, got, at), op_load(plain->out.dtype, want, at));
            complain(s, c, q, m, text);
        } else if (q->out.layout != RT_LAYOUT_PLAIN && !padding_is_zero(t, &plain->out, got, &q->out, out)) {
            complain(s, c, q, m, "padding is not zero");
        }
    }
    s->runs++;
    rt_free(want);
    rt_free(got);
    rt_free(out);
    for (int i = 0; i < c->nin; i++) {
        rt_free(in[i]);
        rt_free(blocked[i]);
    }
}

/* ---- layouts ---- */

typedef struct layouts {
    rt_layout in[OP_CASE_IN], out;
} layouts;

static void run_layouts(sweep *s, const op_case *c, const rt_problem *plain, const layouts *l) {
    rt_desc in[OP_CASE_IN];
    rt_problem q = *plain;
    for (int i = 0; i < c->nin; i++) {
        in[i] = plain->in[i];
        in[i].layout = l->in[i];
    }
    q.in = in;
    q.out.layout = l->out;
    if (!s->l->kern->supports(&q))
        return;
    for (int m = 0; m < MODE_COUNT; m++)
        if (mode_applies((mode)m, c, &q))
            run_mode(s, c, plain, &q, (mode)m);
}

/* All batched images in one layout, the rest PLAIN. */
static layouts uniform(const rt_problem *p, rt_layout image) {
    layouts l;
    for (int i = 0; i < p->nin; i++)
        l.in[i] = p->in[i].shape.rank == 4 && p->in_groups[i] > 0 ? image : RT_LAYOUT_PLAIN;
    l.out = p->out.shape.rank == 4 && p->out_groups > 0 ? image : RT_LAYOUT_PLAIN;
    return l;
}

static bool same_layouts(const layouts *a, const layouts *b, int nin) {
    return memcmp(a->in, b->in, (size_t)nin * sizeof a->in[0]) == 0 && a->out == b->out;
}

static void run_reorders(sweep *s, const op_case *c, const rt_problem *p) {
    for (int from = 0; from < RT_LAYOUT_COUNT; from++)
        for (int to = 0; to < RT_LAYOUT_COUNT; to++)
            run_layouts(s, c, p, &(layouts){.in = {(rt_layout)from}, .out = (rt_layout)to});
}

static void run_case(void *user, const op_case *c) {
    static const rt_layout images[] = {RT_LAYOUT_PLAIN, RT_LAYOUT_C8, RT_LAYOUT_C16};
    sweep *s = user;
    op_problem p;
    op_problem_init(&p, c);
    if (c->op == RT_OP_REORDER) {
        run_reorders(s, c, &p.p);
        return;
    }
    layouts tried[2 * RT_COUNT(images)];
    int n = 0;
    for (int i = 0; i < RT_COUNT(images); i++) {
        tried[n++] = uniform(&p.p, images[i]);
        if (!s->l->kern->layouts)
            continue;
        rt_desc in[OP_CASE_IN]; /* what it wants when that is what it would get */
        rt_problem q = p.p;
        for (int k = 0; k < c->nin; k++) {
            in[k] = p.p.in[k];
            in[k].layout = tried[n - 1].in[k];
        }
        q.in = in;
        q.out.layout = tried[n - 1].out;
        tried[n] = tried[n - 1];
        s->l->kern->layouts(&q, tried[n].in, &tried[n].out);
        n++;
    }
    for (int i = 0; i < n; i++) {
        bool seen = false;
        for (int j = 0; j < i; j++)
            seen = seen || same_layouts(&tried[i], &tried[j], c->nin);
        if (!seen)
            run_layouts(s, c, &p.p, &tried[i]);
    }
}

static void test_lines(void **state) {
    (void)state;
    int64_t failures = 0, runs = 0, skipped = 0;
    for (const line *l = lines; l->kern; l++) {
        if (l->isa > rt_cpu_isa()) {
            skipped++;
            continue;
        }
        sweep s = {.l = l};
        op_cases_each(l->op, &(op_sweep){.dtype = l->dtype, .fn = run_case, .user = &s});
        if (s.runs == 0) {
            print_error("%s: no case of %s was supported\n", l->symbol, rt_op_get(l->op)->name);
            failures++;
        }
        if (s.failures > 5)
            print_error("%s: %lld failures in all\n", l->symbol, (long long)s.failures);
        failures += s.failures;
        runs += s.runs;
    }
    print_message("%lld runs, %lld lines need another CPU\n", (long long)runs, (long long)skipped);
    assert_int_equal(failures, 0);
}

/* The list for an operation ends with the reference; a mask and the CPU leave lines out. */
static void test_list(void **state) {
    (void)state;
    const rt_kern *list[64];
    for (int op = RT_OP_NONE + 1; op < RT_OP_COUNT; op++)
        for (int t = RT_DTYPE_F32; t <= RT_DTYPE_F64; t++) {
            int n = 0, all = 0;
            assert_int_equal(rt_kern_list((rt_op)op, (rt_dtype)t, 0, list, 64, &n), RT_OK);
            assert_int_equal(n, 1);
            assert_ptr_equal(list[0], rt_kern_ref((rt_op)op, (rt_dtype)t));
            assert_int_equal(rt_kern_list((rt_op)op, (rt_dtype)t, RT_KERN_ALL, list, 64, &n), RT_OK);
            assert_ptr_equal(list[n - 1], rt_kern_ref((rt_op)op, (rt_dtype)t));
            for (const line *l = lines; l->kern; l++)
                all += l->op == (rt_op)op && l->dtype == (rt_dtype)t && l->isa <= rt_cpu_isa();
            assert_int_equal(n, all + 1);
            assert_int_equal(rt_kern_list((rt_op)op, (rt_dtype)t, RT_KERN_ALL, list, n - 1, &n), RT_E_USAGE);
        }
    int n = 0;
    assert_int_equal(rt_kern_list(RT_OP_NONE, RT_DTYPE_F32, RT_KERN_ALL, list, 64, &n), RT_E_USAGE);
}

int main(void) {
    rt_kern_thread_init();
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_list), cmocka_unit_test(test_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
