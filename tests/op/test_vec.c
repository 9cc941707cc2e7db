/*
 * test_vec.c - vector kernels against the reference: every instruction set this CPU has, every layout, sizes
 * around the vector and tile lengths, in place, special values, members; and the kernels outside the graph
 * against loops in double.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "kern/kern_vec.h"

enum { MAX_IN = 6, MAX_KERN = 16 };

/* ---- tensors ---- */

static void *grab(size_t bytes) {
    void *p = NULL;
    assert_int_equal(rt_alloc(&p, bytes + 64), RT_OK);
    memset(p, 0, bytes + 64);
    return p;
}

/* Copies between PLAIN and the layout of d, a 4-D value; back = true: d's layout to PLAIN. */
static void convert(const rt_desc *d, float *stored, float *plain, bool back) {
    const int64_t *s = d->shape.d;
    int64_t l = 0;
    if (d->layout == RT_LAYOUT_PLAIN) {
        memcpy(back ? plain : stored, back ? stored : plain, rt_desc_bytes(d));
        return;
    }
    for (int64_t a = 0; a < s[0]; a++)
        for (int64_t b = 0; b < s[1]; b++)
            for (int64_t c = 0; c < s[2]; c++)
                for (int64_t e = 0; e < s[3]; e++, l++) {
                    float *at = stored + rt_desc_index4(d, a, b, c, e);
                    if (back)
                        plain[l] = *at;
                    else
                        *at = plain[l];
                }
}

static void check_padding(const rt_desc *d, const float *stored) {
    const int64_t B = rt_layout_block(d->layout), C = B > 1 ? d->shape.d[1] : 0;
    if (B == 1 || C % B == 0)
        return;
    const int64_t blocks = (C + B - 1) / B, span = d->shape.d[2] * d->shape.d[3] * B;
    for (int64_t n = 0; n < d->shape.d[0]; n++)
        for (int64_t i = 0; i < span; i++)
            if (i % B >= C % B)
                assert_true(stored[(n * blocks + blocks - 1) * span + i] == 0.0f);
}

static void fill(float *x, int64_t n, uint64_t key, bool positive) {
    const rt_rng r = rt_rng_make(key, RT_RNG_TEST, 0, 0);
    for (int64_t i = 0; i < n; i++) {
        const float u = (float)rt_rng_normal(r, (uint64_t)i);
        x[i] = positive ? fabsf(u) + 0.05f : u;
    }
}

/* ---- one problem by all kernels ---- */

typedef struct problem {
    rt_problem p;
    rt_desc in[MAX_IN];
    int32_t groups[MAX_IN];
    rt_chain chain;
    bool positive;
    double tol,
        floor;    /* relative to the element, but at least to `floor` times the largest one: cancellation */
    int in_place; /* 1 + input whose memory the output takes, 0: its own */
    void (*patch)(float *const *in, const struct problem *q); /* special values */
} problem;

static void run_kernel(const rt_kern *k, const rt_problem *p, void *out, const void *const *in,
                       rt_kern_ctx ctx) {
    void *state = NULL;
    size_t bytes = 0;
    if (k->prepare)
        assert_int_equal(k->prepare(p, &state, &bytes), RT_OK);
    ctx.scratch = grab(bytes);
    if (k->attach)
        assert_int_equal(k->attach(state, 0), RT_OK);
    k->run(state, p, out, in, &ctx);
    rt_free(ctx.scratch);
    if (k->release)
        k->release(state);
}

static double value_at(const rt_desc *d, const void *data, int64_t i) {
    return d->dtype == RT_DTYPE_F64   ? ((const double *)data)[i]
           : d->dtype == RT_DTYPE_I32 ? (double)((const int32_t *)data)[i]
                                      : (double)((const float *)data)[i];
}

static void compare(const rt_desc *d, const void *got, const void *want, double tol, double low,
                    const char *what) {
    double peak = 0;
    const int64_t n = rt_shape_elems(&d->shape);
    for (int64_t i = 0; i < n; i++) {
        const double w = fabs(value_at(d, want, i));
        if (isfinite(w))
            peak = fmax(peak, w);
    }
    for (int64_t i = 0; i < n; i++) {
        const double g = value_at(d, got, i), w = value_at(d, want, i);
        if (isnan(w) ? !isnan(g) : !(g == w || fabs(g - w) <= tol * fmax(fabs(w), low * peak)))
            fail_msg("%s: element %lld of %lld is %.9g, wanted %.9g", what, (long long)i, (long long)n, g, w);
    }
}

/* q's descs are PLAIN; in_layout, out_layout: of 4-D f32 operands of the run under test. Returns how many
 * kernels ran. */
static int check(problem *q, rt_layout in_layout, rt_layout out_layout) {
    rt_kern_ctx ctx = {.seed = 7, .step = 3, .row0 = 5, .batch = 64};
    void *plain[MAX_IN], *stored[MAX_IN];
    rt_problem p = q->p;
    rt_desc in[MAX_IN];
    q->p.in = q->in;
    q->p.in_groups = p.in_groups = q->groups;
    q->p.chain = p.chain = q->p.op == RT_OP_CHAIN ? &q->chain : NULL;
    p.in = in;
    for (int i = 0; i < p.nin; i++) {
        plain[i] = grab(rt_desc_bytes(&q->in[i]));
        if (q->in[i].dtype == RT_DTYPE_F32)
            fill(plain[i], rt_desc_elems(&q->in[i]), (uint64_t)(100 + i), q->positive);
        else
            for (int64_t j = 0; j < rt_desc_elems(&q->in[i]); j++)
                ((int32_t *)plain[i])[j] =
                    (int32_t)(j * 7 % (q->in[0].shape.rank > 1 ? RT_MAX(1, q->in[0].shape.d[1]) : 2));
    }
    if (q->patch)
        q->patch((float *const *)(void *)plain, q);
    void *want = grab(rt_desc_bytes(&q->p.out));
    run_kernel(rt_kern_ref(p.op, RT_DTYPE_F32), &q->p, want, (const void *const *)plain, ctx);
    for (int i = 0; i < p.nin; i++) {
        in[i] = q->in[i];
        if (in[i].dtype == RT_DTYPE_F32 && in[i].shape.rank == 4)
            in[i].layout = in_layout;
        stored[i] = grab(rt_desc_bytes(&in[i]));
    }
    if (p.out.shape.rank == 4)
        p.out.layout = out_layout;
    void *out = grab(rt_desc_bytes(&p.out)), *got = grab(rt_desc_bytes(&q->p.out));

    const rt_kern *list[MAX_KERN];
    int n = 0, ran = 0;
    assert_int_equal(rt_kern_list(p.op, RT_DTYPE_F32, RT_KERN_VEC, list, MAX_KERN, &n), RT_OK);
    for (int k = 0; k < n - 1; k++) {
        if (!list[k]->supports(&p))
            continue;
        for (int i = 0; i < p.nin; i++)
            if (in[i].dtype == RT_DTYPE_F32)
                convert(&in[i], stored[i], plain[i], false);
            else
                memcpy(stored[i], plain[i], rt_desc_bytes(&in[i]));
        void *dst = q->in_place ? stored[q->in_place - 1] : out;
        if (!q->in_place)
            memset(out, 0x7f, rt_desc_bytes(&p.out));
        run_kernel(list[k], &p, dst, (const void *const *)stored, ctx);
        if (p.out.dtype == RT_DTYPE_F32) {
            check_padding(&p.out, dst);
            convert(&p.out, dst, got, true);
        } else {
            memcpy(got, dst, rt_desc_bytes(&p.out));
        }
        rt_str what = {0};
        char text[128], shape[64];
        rt_shape_print(&q->in[0].shape, &what);
        snprintf(shape, sizeof(shape), "%s", rt_str_text(&what));
        rt_str_deinit(&what);
        snprintf(text, sizeof(text), "%s %s %s->%s %s step0 %s", rt_op_get(p.op)->name, list[k]->impl,
                 rt_layout_name(in_layout), rt_layout_name(out_layout), shape,
                 p.chain ? rt_op_get(p.chain->step[0].op)->name : "");
        compare(&q->p.out, got, want, q->tol, q->floor, text);
        ran++;
    }
    for (int i = 0; i < p.nin; i++) {
        rt_free(plain[i]);
        rt_free(stored[i]);
    }
    rt_free(want);
    rt_free(out);
    rt_free(got);
    return ran;
}

/* ---- chains ---- */

static const rt_layout data_layouts[] = {RT_LAYOUT_PLAIN, RT_LAYOUT_C8, RT_LAYOUT_C16};

typedef struct shape_case {
    int32_t groups;
    int64_t n; /* rows per group */
    int rank;
    int64_t c, h, w;
} shape_case;
static const shape_case shapes[] = {
    {1, 5, 2, 3, 0, 0},   {1, 33, 2, 100, 0, 0}, {3, 4, 2, 16, 0, 0}, {1, 2, 2, 1500, 0, 0},
    {2, 3, 4, 16, 4, 4},  {1, 2, 4, 24, 5, 3},   {2, 2, 4, 6, 3, 3},  {1, 2, 4, 16, 17, 9},
    {1, 1, 4, 3, 40, 40}, {1, 3, 4, 20, 1, 1},
};

static rt_shape shape_of(const shape_case *s) {
    const int64_t rows = s->groups * s->n;
    return s->rank == 2 ? rt_shape2(rows, s->c) : rt_shape4(rows, s->c, s->h, s->w);
}

/* How an operand of a step looks. */
typedef enum second { SAME, CHAN, CHAN_MEMBERS, COEF, COEF_MEMBERS, GCOEF, ROW, SCALAR, NO } second;

static rt_desc operand(second kind, const shape_case *s) {
    rt_shape sh = shape_of(s);
    switch (kind) {
    case CHAN:
        sh = rt_shape1(s->c);
        break;
    case CHAN_MEMBERS:
        sh = rt_shape2(s->groups, s->c);
        break;
    case COEF:
        sh = rt_shape2(4, s->c);
        break;
    case COEF_MEMBERS:
        sh = rt_shape2(4, s->groups * s->c);
        break;
    case GCOEF:
        sh = rt_shape2(3, s->c);
        break;
    case ROW:
        sh = rt_shape1(s->groups * s->n);
        break;
    case SCALAR:
        sh = rt_shape0();
        break;
    default:
        break;
    }
    return rt_desc_make(RT_DTYPE_F32, sh, RT_LAYOUT_PLAIN);
}

typedef struct step_case {
    rt_op op;
    second a, b;
    bool swap;
    double alpha, beta;
} step_case;

static void append(problem *q, const shape_case *s, const step_case *c) {
    rt_chain_step *st = &q->chain.step[q->chain.n++];
    *st = (rt_chain_step){
        .op = c->op, .swap = c->swap, .attr = {.alpha = c->alpha, .beta = c->beta, .stream = 11}};
    const second kinds[2] = {c->a, c->b};
    for (int i = 0; i < 2; i++) {
        st->arg[i] = -1;
        if (kinds[i] == NO)
            continue;
        st->arg[i] = (int16_t)q->p.nin;
        q->groups[q->p.nin] = kinds[i] == SAME || kinds[i] == ROW ? s->groups : 0;
        q->in[q->p.nin++] = operand(kinds[i], s);
    }
    if (c->a == COEF_MEMBERS)
        st->attr.members = s->groups;
}

static problem chain_problem(const shape_case *s) {
    problem q = {.tol = 4e-7, .floor = 0.01};
    q.in[0] = operand(SAME, s);
    q.groups[0] = s->groups;
    q.p = (rt_problem){.op = RT_OP_CHAIN,
                       .nin = 1,
                       .out = q.in[0],
                       .out_groups = s->groups,
                       .n = s->n,
                       .kind = RT_KIND_ROWS};
    return q;
}

static void check_layouts(problem *q, const shape_case *s) {
    for (int64_t l = 0; l < (s->rank == 4 ? RT_COUNT(data_layouts) : 1); l++)
        assert_true(check(q, data_layouts[l], data_layouts[l]) > 0);
}

static const step_case single[] = {
    {RT_OP_ADD, SAME, NO, false, 0, 0},
    {RT_OP_SUB, SAME, NO, false, 0, 0},
    {RT_OP_SUB, SAME, NO, true, 0, 0},
    {RT_OP_MUL, SAME, NO, false, 0, 0},
    {RT_OP_DIV, SAME, NO, false, 0, 0},
    {RT_OP_DIV, SAME, NO, true, 0, 0},
    {RT_OP_SCALE, NO, NO, false, 1.5, -0.25},
    {RT_OP_RELU, NO, NO, false, 0, 0},
    {RT_OP_RELU, NO, NO, false, 0.1, 0},
    {RT_OP_RELU_BWD, SAME, NO, false, 0, 0},
    {RT_OP_RELU_BWD, SAME, NO, true, 0.2, 0},
    {RT_OP_EXP, NO, NO, false, 0, 0},
    {RT_OP_LOG, NO, NO, false, 0, 0},
    {RT_OP_SQRT, NO, NO, false, 0, 0},
    {RT_OP_SQUARE, NO, NO, false, 0, 0},
    {RT_OP_RECIP, NO, NO, false, 0, 0},
    {RT_OP_XLOGX, NO, NO, false, 0, 0},
    {RT_OP_SIGMOID, NO, NO, false, 0, 0},
    {RT_OP_TANH, NO, NO, false, 0, 0},
    {RT_OP_SOFTPLUS, NO, NO, false, 0, 0},
    {RT_OP_CLIP, NO, NO, false, 0.2, 0.9},
    {RT_OP_CLIP_BWD, SAME, NO, false, 0.2, 0.9},
    {RT_OP_CLIP_BWD, SAME, NO, true, 0.2, 0.9},
    {RT_OP_LGAMMA, NO, NO, false, 0, 0},
    {RT_OP_DIGAMMA, NO, NO, false, 0, 0},
    {RT_OP_TRIGAMMA, NO, NO, false, 0, 0},
    {RT_OP_STOP_GRAD, NO, NO, false, 0, 0},
    {RT_OP_DROPOUT, NO, NO, false, 0.3, 0},
    {RT_OP_MUL_SCALAR, SCALAR, NO, false, 0, 0},
    {RT_OP_ADD_CHAN, CHAN, NO, false, 0, 0},
    {RT_OP_ADD_CHAN, CHAN_MEMBERS, NO, false, 0, 0},
    {RT_OP_MUL_CHAN, CHAN, NO, false, 0, 0},
    {RT_OP_MUL_CHAN, CHAN_MEMBERS, NO, false, 0, 0},
    {RT_OP_ADD_ROW, ROW, NO, false, 0, 0},
    {RT_OP_MUL_ROW, ROW, NO, false, 0, 0},
    {RT_OP_BN_APPLY, COEF, NO, false, 0, 0},
    {RT_OP_BN_APPLY, COEF_MEMBERS, NO, false, 0, 0},
    {RT_OP_BN_GAPPLY, SAME, GCOEF, false, 0, 0},
    {RT_OP_BN_GAPPLY, SAME, GCOEF, true, 0, 0},
};

static void every_step_equals_the_reference(void **unused) {
    (void)unused;
    for (int64_t s = 0; s < RT_COUNT(shapes); s++)
        for (int64_t i = 0; i < RT_COUNT(single); i++) {
            problem q = chain_problem(&shapes[s]);
            append(&q, &shapes[s], &single[i]);
            if (single[i].a != NO)
                q.floor = 1;
            q.positive = i % 2 == 0 || single[i].op == RT_OP_LOG || single[i].op == RT_OP_SQRT ||
                         single[i].op == RT_OP_LGAMMA || single[i].op == RT_OP_DIGAMMA ||
                         single[i].op == RT_OP_TRIGAMMA;
            check_layouts(&q, &shapes[s]);
        }
}

/* Chains that have loops of their own, and long ones that do not. */
static const struct {
    int n;
    step_case step[5];
} chains[] = {
    {2, {{RT_OP_BN_APPLY, COEF, NO, false, 0, 0}, {RT_OP_RELU, NO, NO, false, 0, 0}}},
    {3,
     {{RT_OP_BN_APPLY, COEF, NO, false, 0, 0},
      {RT_OP_RELU, NO, NO, false, 0.1, 0},
      {RT_OP_MUL_CHAN, CHAN_MEMBERS, NO, false, 0, 0}}},
    {2, {{RT_OP_BN_GAPPLY, SAME, GCOEF, false, 0, 0}, {RT_OP_ADD, SAME, NO, false, 0, 0}}},
    {2, {{RT_OP_ADD_CHAN, CHAN, NO, false, 0, 0}, {RT_OP_RELU, NO, NO, false, 0, 0}}},
    {2, {{RT_OP_ADD, SAME, NO, false, 0, 0}, {RT_OP_RELU, NO, NO, false, 0, 0}}},
    {2, {{RT_OP_STOP_GRAD, NO, NO, false, 0, 0}, {RT_OP_SQUARE, NO, NO, false, 0, 0}}},
    {4,
     {{RT_OP_RELU, NO, NO, false, 0, 0},
      {RT_OP_DROPOUT, NO, NO, false, 0.5, 0},
      {RT_OP_MUL_ROW, ROW, NO, false, 0, 0},
      {RT_OP_SCALE, NO, NO, false, 2, 1}}},
    {5,
     {{RT_OP_MUL_SCALAR, SCALAR, NO, false, 0, 0},
      {RT_OP_ADD_CHAN, CHAN, NO, false, 0, 0},
      {RT_OP_SIGMOID, NO, NO, false, 0, 0},
      {RT_OP_SUB, SAME, NO, true, 0, 0},
      {RT_OP_ADD_ROW, ROW, NO, false, 0, 0}}},
};

static void chains_equal_the_reference_also_in_place(void **unused) {
    (void)unused;
    for (int64_t s = 0; s < RT_COUNT(shapes); s++)
        for (int64_t i = 0; i < RT_COUNT(chains); i++) {
            problem q = chain_problem(&shapes[s]);
            for (int k = 0; k < chains[i].n; k++)
                append(&q, &shapes[s], &chains[i].step[k]);
            q.tol = 1e-6;
            q.floor = 1;
            for (q.in_place = 0; q.in_place <= q.p.nin; q.in_place++)
                if (q.in_place == 0 || rt_desc_equal(&q.in[q.in_place - 1], &q.p.out))
                    check_layouts(&q, &shapes[s]);
        }
}

static void patch_special(float *const *in, const problem *q) {
    static const float special[] = {0.0f,    -0.0f, INFINITY, -INFINITY, NAN,   1e-42f,
                                    -1e-42f, 88.8f, -103.0f,  -200.0f,   1e30f, 0.5f};
    for (int64_t i = 0; i < rt_desc_elems(&q->in[0]); i++)
        in[0][i] = special[i % RT_COUNT(special)];
}

static void special_values_behave_as_in_the_reference(void **unused) {
    (void)unused;
    static const rt_op ops[] = {RT_OP_RELU,     RT_OP_EXP,   RT_OP_LOG,     RT_OP_SQRT,
                                RT_OP_SQUARE,   RT_OP_RECIP, RT_OP_SIGMOID, RT_OP_TANH,
                                RT_OP_SOFTPLUS, RT_OP_CLIP,  RT_OP_XLOGX,   RT_OP_SCALE};
    for (int64_t i = 0; i < RT_COUNT(ops); i++) {
        problem q = chain_problem(&shapes[1]);
        append(&q, &shapes[1], &(step_case){ops[i], NO, NO, false, 0.5, 2});
        q.patch = patch_special;
        q.tol = 1e-6;
        check_layouts(&q, &shapes[1]);
    }
}

/* ---- sums per channel ---- */

static void channel_sums_equal_the_reference(void **unused) {
    (void)unused;
    static const rt_op ops[] = {RT_OP_CHAN_SUM, RT_OP_CHAN_DOT, RT_OP_BN_STATS, RT_OP_BN_GSTATS};
    for (int64_t s = 0; s < RT_COUNT(shapes); s++)
        for (int64_t i = 0; i < RT_COUNT(ops); i++)
            for (int members = 0; members < 2; members++) {
                const shape_case *sc = &shapes[s];
                const int32_t M = members && sc->groups > 1 ? sc->groups : 1;
                const bool stats = ops[i] == RT_OP_BN_STATS || ops[i] == RT_OP_BN_GSTATS;
                problem q = {.tol = 3e-6, .floor = 1};
                q.in[0] = q.in[1] = operand(SAME, sc);
                q.in[2] = rt_desc_make(RT_DTYPE_F32, rt_shape2(4, M * sc->c), RT_LAYOUT_PLAIN);
                q.groups[0] = q.groups[1] = sc->groups;
                const rt_shape out = stats   ? rt_shape2(2, M * sc->c)
                                     : M > 1 ? rt_shape2(M, sc->c)
                                             : rt_shape1(sc->c);
                q.p = (rt_problem){
                    .op = ops[i],
                    .attr = {.members = M},
                    .nin = ops[i] == RT_OP_BN_GSTATS  ? 3
                           : ops[i] == RT_OP_CHAN_DOT ? 2
                                                      : 1,
                    .out = rt_desc_make(stats ? RT_DTYPE_F64 : RT_DTYPE_F32, out, RT_LAYOUT_PLAIN),
                    .n = sc->n,
                    .kind = RT_KIND_SUM};
                check_layouts(&q, sc);
            }
}

/* ---- losses ---- */

/* A few certain rows, whose losses are small, and labels that belong to no class. */
static void patch_loss(float *const *in, const problem *q) {
    const bool grad = q->p.op == RT_OP_CE_LABEL_BWD;
    const int64_t *d = q->in[grad].shape.d;
    int32_t *label = (int32_t *)(void *)in[grad + 1];
    for (int64_t r = 0; r < d[0]; r++) {
        label[r] = (int32_t)(r * 7 % d[1]);
        if (r % 3 == 1)
            in[grad][r * d[1] + label[r]] += 12;
        if (r % 5 == 4)
            label[r] = r % 2 ? -1 : (int32_t)d[1];
    }
}

static void cross_entropy_equals_the_reference(void **unused) {
    (void)unused;
    static const int64_t rows[] = {1, 7, 8, 9, 33}, classes[] = {1, 2, 3, 10, 32, 33};
    for (size_t i = 0; i < RT_COUNT(rows); i++)
        for (size_t j = 0; j < RT_COUNT(classes); j++)
            for (int grad = 0; grad < 2; grad++)
                for (int smooth = 0; smooth < 2; smooth++) {
                    const rt_desc z = rt_desc_make(RT_DTYPE_F32, rt_shape2(rows[i], classes[j]),
                                                   RT_LAYOUT_PLAIN),
                                  row = rt_desc_make(RT_DTYPE_F32, rt_shape1(rows[i]), RT_LAYOUT_PLAIN),
                                  label = rt_desc_make(RT_DTYPE_I32, rt_shape1(rows[i]), RT_LAYOUT_PLAIN);
                    problem q = {.p = {.op = grad ? RT_OP_CE_LABEL_BWD : RT_OP_CE_LABEL,
                                       .nin = 2 + grad,
                                       .attr = {.alpha = 0.1 * smooth},
                                       .out = grad ? z : row,
                                       .n = rows[i]},
                                 .tol = 3e-6,
                                 .floor = grad ? 0.2 : 0,
                                 .patch = patch_loss};
                    q.in[0] = grad ? row : z;
                    q.in[1] = grad ? z : label;
                    q.in[2] = label;
                    assert_true(check(&q, RT_LAYOUT_PLAIN, RT_LAYOUT_PLAIN) > 0);
                }
}

/* ---- outside the graph ---- */

static float tree_oracle(const float *const *src, int lo, int n, int64_t i) {
    if (n == 1)
        return src[lo][i];
    int half = 1;
    while (half * 2 < n)
        half *= 2;
    return tree_oracle(src, lo, half, i) + tree_oracle(src, lo + half, n - half, i);
}

static void tree_sums_are_the_tree_whatever_the_range(void **unused) {
    (void)unused;
    enum { N = 77, S = 13 };
    static float data[S][N], dst[N];
    static double wide[S][N], dst64[N];
    const float *src[S];
    const double *src64[S];
    for (int s = 0; s < S; s++) {
        fill(data[s], N, (uint64_t)s, false);
        for (int i = 0; i < N; i++)
            wide[s][i] = (double)data[s][i];
        src[s] = data[s];
        src64[s] = wide[s];
    }
    for (int n = 1; n <= S; n++)
        for (int cut = 0; cut <= N; cut += 11) {
            rt_k_tree_sum_f32(dst, src, n, 0, cut);
            rt_k_tree_sum_f32(dst, src, n, cut, N);
            rt_k_tree_sum_f64(dst64, src64, n, 0, cut);
            rt_k_tree_sum_f64(dst64, src64, n, cut, N);
            for (int i = 0; i < N; i++) {
                double sum = 0;
                for (int s = 0; s < n; s++)
                    sum += wide[s][i];
                assert_true(dst[i] == tree_oracle(src, 0, n, i));
                assert_true(fabs(dst64[i] - sum) < 1e-14);
            }
        }
    float want[N];
    for (int i = 0; i < N; i++)
        want[i] = tree_oracle(src, 0, S, i);
    rt_k_tree_sum_f32(data[0], src, S, 0, N); /* onto the first source */
    assert_memory_equal(data[0], want, sizeof(want));
}

/* The optimisers of every instruction set that this CPU has. */
typedef struct optimisers {
    rt_isa isa;
    void (*sgd)(float *w, const float *g, float *m, int64_t n, rt_k_sgd o);
    void (*adam)(float *w, const float *g, float *m, float *v, int64_t n, rt_k_adam o);
} optimisers;
static const optimisers optimisers_of[] = {
    {RT_ISA_PLAIN, rt_k_sgd_f32__plain, rt_k_adam_f32__plain},
#if defined(RT_WITH_X86) && RT_WITH_X86
    {RT_ISA_AVX2, rt_k_sgd_f32__avx2, rt_k_adam_f32__avx2},
    {RT_ISA_AVX512, rt_k_sgd_f32__avx512, rt_k_adam_f32__avx512},
#endif
};

static void sgd_of(const optimisers *k) {
    enum { N = 37 };
    for (int c = 0; c < 3; c++) {
        const rt_k_sgd o = {.lr = 0.1f,
                            .momentum = c ? 0.9f : 0.0f,
                            .lambda = 0.01f,
                            .gscale = 0.5f,
                            .centre = 0.3f,
                            .nesterov = c == 2};
        float w[N], g[N], m[N], w2[N], m2[N];
        fill(w, N, 1, false);
        fill(g, N, 2, false);
        fill(m, N, 3, false);
        memcpy(w2, w, sizeof(w));
        memcpy(m2, m, sizeof(m));
        double ww[N];
        for (int i = 0; i < N; i++) {
            const double d = 0.5 * (double)g[i] + 0.01 * ((double)w[i] - 0.3),
                         mm = (double)o.momentum * (double)m[i] + d;
            ww[i] = (double)w[i] - 0.1 * (c == 0 ? d : o.nesterov ? d + (double)o.momentum * mm : mm);
        }
        k->sgd(w, g, m, N, o);
        for (int i = 0; i < N; i++)
            assert_true(fabs((double)w[i] - ww[i]) < 1e-6);
        k->sgd(w2, g, m2, 5, o); /* shared between workers: the same bits */
        k->sgd(w2 + 5, g + 5, m2 + 5, N - 5, o);
        assert_memory_equal(w, w2, sizeof(w));
        assert_memory_equal(m, m2, sizeof(m));
    }
}

static void adam_of(const optimisers *k) {
    enum { N = 37 };
    const rt_k_adam o = {.lr = 0.01f,
                         .beta1 = 0.9f,
                         .beta2 = 0.99f,
                         .eps = 1e-6f,
                         .lambda = 0.02f,
                         .decoupled = 0.1f,
                         .gscale = 2.0f,
                         .centre = 0.1f,
                         .bias1 = 0.19f,
                         .bias2 = 0.0199f};
    float w[N], g[N], m[N], v[N], w2[N], m2[N], v2[N];
    fill(w, N, 1, false);
    fill(g, N, 2, false);
    fill(m, N, 3, false);
    fill(v, N, 4, true);
    memcpy(w2, w, sizeof(w));
    memcpy(m2, m, sizeof(m));
    memcpy(v2, v, sizeof(v));
    double ww[N];
    for (int i = 0; i < N; i++) {
        const double d = 2.0 * (double)g[i] + 0.02 * ((double)w[i] - 0.1);
        const double mm = 0.9 * (double)m[i] + 0.1 * d, vv = 0.99 * (double)v[i] + 0.01 * d * d;
        ww[i] = (double)w[i] - 0.01 * 0.1 * ((double)w[i] - 0.1) -
                0.01 * (mm / 0.19) / (sqrt(vv / 0.0199) + 1e-6);
    }
    k->adam(w, g, m, v, N, o);
    for (int i = 0; i < N; i++)
        assert_true(fabs((double)w[i] - ww[i]) < 1e-6);
    k->adam(w2, g, m2, v2, 5, o);
    k->adam(w2 + 5, g + 5, m2 + 5, v2 + 5, N - 5, o);
    assert_memory_equal(w, w2, sizeof(w));
    assert_memory_equal(v, v2, sizeof(v));
}

/* Decay leads to the centre, in whatever instructions. */
static void optimisers_follow_their_formulas(void **unused) {
    (void)unused;
    for (int64_t i = 0;
         i < RT_COUNT(optimisers_of) && optimisers_of[i].isa <= RT_MAX(rt_cpu_isa(), RT_ISA_PLAIN); i++) {
        sgd_of(&optimisers_of[i]);
        adam_of(&optimisers_of[i]);
    }
}

static void sum_of_squares_is_exact_enough(void **unused) {
    (void)unused;
    float x[1003];
    fill(x, 1003, 9, false);
    for (int64_t n = 0; n < 1003; n += 59) {
        double want = 0;
        for (int64_t i = 0; i < n; i++)
            want += (double)x[i] * (double)x[i];
        assert_true(fabs(rt_k_sum_squares_f32(x, n, false) - want) <= 1e-13 * want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_equals_the_reference),
        cmocka_unit_test(chains_equal_the_reference_also_in_place),
        cmocka_unit_test(special_values_behave_as_in_the_reference),
        cmocka_unit_test(channel_sums_equal_the_reference),
        cmocka_unit_test(cross_entropy_equals_the_reference),
        cmocka_unit_test(tree_sums_are_the_tree_whatever_the_range),
        cmocka_unit_test(optimisers_follow_their_formulas),
        cmocka_unit_test(sum_of_squares_is_exact_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
