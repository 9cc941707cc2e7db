/*
 * Fused convolutions against the composition of reference kernels in double: every direction with every step
 * of its loads and stores, statistics, edge tiles, channels that fill no block, one and several members. Both
 * gradients in one sweep against two sweeps, bit by bit.
 *
 * Every shape has its bound, twice the error that was measured. Transforms of F(4x4, 3x3) lose some 1e-6 of the
 * largest element, more the more channels are summed, and least where sums run over tiles (gradients of the weights
 * with batch normalisation before them). Statistics: 2e-5 of the largest sum.
 */
#include "op/op_problem.h"
#include <stdlib.h>

enum { MAX_IN = 12, SEED = 11 };

typedef struct fused_case {
    const char *name;
    rt_op op;
    const char *load, *second, *store; /* one letter per step, see add_step */
    char stats;                        /* s: BN_STATS, g: BN_GSTATS, or 0 */
    int32_t members;                   /* < 0: as many, and a gradient of each */
    int64_t n, ic, oc, h, w;
    double bound; /* of the error, in millionths of the largest element */
} fused_case;

static const fused_case CASES[] = {
    {"plain", RT_OP_CONV2D, "", "", "", 0, 1, 4, 16, 16, 16, 16, 8},
    {"pre-activation", RT_OP_CONV2D, "br", "", "a", 's', 1, 4, 16, 32, 16, 16, 4},
    {"post-activation", RT_OP_CONV2D, "br", "", "h", 's', 1, 5, 32, 16, 14, 14, 4},
    {"inference", RT_OP_CONV2D, "", "", "bar", 0, 1, 17, 24, 40, 7, 7, 5},
    {"edges", RT_OP_CONV2D, "ba", "", "r", 's', 1, 5, 12, 20, 30, 13, 8},
    {"batch ensemble", RT_OP_CONV2D, "brm", "", "ma", 's', 3, 5, 17, 9, 9, 10, 4},
    {"wide", RT_OP_CONV2D, "br", "", "a", 's', 1, 33, 144, 80, 6, 6, 9},
    {"frozen, one image", RT_OP_CONV2D, "br", "", "a", 0, 1, 1, 16, 24, 8, 8, 4},
    {"frozen, few tiles", RT_OP_CONV2D, "br", "", "ba", 0, 1, 2, 72, 64, 6, 7, 4},
    {"many channels", RT_OP_CONV2D, "", "", "", 0, 1, 19, 256, 128, 4, 4, 28},
    {"sixteen channels, a short last group", RT_OP_CONV2D, "br", "", "a", 's', 1, 5, 16, 16, 20, 20, 4},
    {"data", RT_OP_CONV2D_BWD_DATA, "", "", "", 0, 1, 4, 16, 16, 16, 16, 8},
    {"data, sixteen channels, a short last group", RT_OP_CONV2D_BWD_DATA, "g", "", "k", 'g', 1, 5, 16, 16, 20,
     20, 5},
    {"data, masked", RT_OP_CONV2D_BWD_DATA, "g", "", "k", 'g', 1, 4, 16, 32, 16, 16, 6},
    {"data, skip", RT_OP_CONV2D_BWD_DATA, "ga", "", "am", 'g', 1, 9, 20, 12, 11, 12, 6},
    {"data, mask of a value", RT_OP_CONV2D_BWD_DATA, "", "", "ax", 'g', 1, 16, 8, 24, 7, 7, 9},
    {"data, members", RT_OP_CONV2D_BWD_DATA, "mg", "", "mk", 'g', 2, 9, 9, 17, 9, 7, 6},
    {"weights", RT_OP_CONV2D_BWD_WEIGHTS, "", "", "", 0, 1, 4, 16, 16, 16, 16, 11},
    {"weights, both loads", RT_OP_CONV2D_BWD_WEIGHTS, "br", "g", "", 0, 1, 5, 16, 32, 14, 14, 1},
    {"weights, whole tiles", RT_OP_CONV2D_BWD_WEIGHTS, "br", "g", "", 0, 1, 4, 16, 24, 32, 32, 1.2},
    {"weights, whole tiles of members", RT_OP_CONV2D_BWD_WEIGHTS, "r", "m", "", 0, 3, 5, 17, 20, 8, 12, 10},
    {"weights, edges", RT_OP_CONV2D_BWD_WEIGHTS, "br", "ga", "", 0, 1, 17, 20, 12, 7, 7, 2},
    {"weights, several groups of many channels", RT_OP_CONV2D_BWD_WEIGHTS, "", "", "", 0, 1, 9, 128, 40, 12,
     12, 12},
    {"weights, one group of many channels", RT_OP_CONV2D_BWD_WEIGHTS, "br", "g", "", 0, 1, 4, 20, 256, 8, 8,
     1},
    {"weights, members", RT_OP_CONV2D_BWD_WEIGHTS, "brm", "mg", "", 0, 3, 5, 17, 24, 9, 10, 1},
    {"weights, each member", RT_OP_CONV2D_BWD_WEIGHTS, "br", "gm", "", 0, -3, 5, 17, 24, 9, 10, 1},
    {"weights, each member at once", RT_OP_CONV2D_BWD_WEIGHTS, "", "", "", 0, -2, 4, 16, 72, 8, 8, 11},
    {"batch ensemble, no residual", RT_OP_CONV2D, "brm", "", "m", 's', 2, 5, 16, 16, 8, 12, 4},
    {"data, both scales", RT_OP_CONV2D_BWD_DATA, "gm", "", "mk", 'g', 3, 5, 24, 17, 9, 8, 6},
};

/* A problem under construction: descs, in PLAIN, and values in double. */
typedef struct fused {
    rt_problem p;
    rt_chain chain;
    rt_desc in[MAX_IN];
    int32_t groups[MAX_IN];
    double *value[MAX_IN];
    int32_t members;
} fused;

static int16_t add_input(fused *f, rt_shape s, bool rows) {
    const int i = f->p.nin++;
    assert_true(i < MAX_IN);
    f->in[i] = rt_desc_make(RT_DTYPE_F64, s, RT_LAYOUT_PLAIN);
    f->groups[i] = rows ? f->members : 0;
    const int64_t n = rt_shape_elems(&s);
    f->value[i] = op_buffer((size_t)n * sizeof(double));
    const rt_rng r = rt_rng_make(SEED, RT_RNG_TEST, (uint64_t)i, 0);
    for (int64_t k = 0; k < n; k++) /* as floats, so that both precisions see the same numbers */
        f->value[i][k] = (double)(2 * rt_rng_uniform_f32(r, (uint64_t)k) - 1);
    return (int16_t)i;
}

/* A step on a value of shape s: b BN_APPLY, r RELU, m MUL_CHAN, h ADD_CHAN, a ADD, x RELU_BWD, k BN_RELU_BWD,
 * g BN_GAPPLY. */
static void add_step(fused *f, char letter, rt_shape s, bool second) {
    const int64_t c = s.d[1], all = c * f->members;
    rt_chain_step *t = &f->chain.step[f->chain.n++];
    *t = (rt_chain_step){.arg = {-1, -1}, .second = second};
    t->attr.members = f->members > 1 ? f->members : 0;
    switch (letter) {
    case 'b':
        t->op = RT_OP_BN_APPLY;
        t->arg[0] = add_input(f, rt_shape2(4, all), false);
        break;
    case 'm':
    case 'h':
        t->op = letter == 'm' ? RT_OP_MUL_CHAN : RT_OP_ADD_CHAN;
        t->arg[0] = add_input(f, f->members > 1 ? rt_shape2(f->members, c) : rt_shape1(c), false);
        break;
    case 'a':
    case 'x':
        t->op = letter == 'a' ? RT_OP_ADD : RT_OP_RELU_BWD;
        t->arg[0] = add_input(f, s, true);
        break;
    case 'k':
    case 'g':
        t->op = letter == 'k' ? RT_OP_BN_RELU_BWD : RT_OP_BN_GAPPLY;
        t->arg[0] = add_input(f, s, true);
        t->arg[1] = add_input(f, rt_shape2(letter == 'k' ? 4 : 3, all), false);
        break;
    default:
        t->op = RT_OP_RELU;
        break;
    }
}

static void build(fused *f, const fused_case *c) {
    *f = (fused){.members = abs(c->members)};
    const int64_t rows = f->members * c->n;
    const rt_shape x = rt_shape4(rows, c->ic, c->h, c->w), y = rt_shape4(rows, c->oc, c->h, c->w);
    const rt_shape w = rt_shape4(c->oc, c->ic, 3, 3);
    const bool data = c->op == RT_OP_CONV2D_BWD_DATA, weights = c->op == RT_OP_CONV2D_BWD_WEIGHTS;
    const rt_shape first = data ? y : x, second = weights ? y : w;
    rt_shape out = weights ? w : data ? x : y;
    add_input(f, first, true);
    const int16_t other = add_input(f, second, weights);
    for (const char *l = c->load; *l != '\0'; l++)
        add_step(f, *l, first, false);
    for (const char *l = c->second; *l != '\0'; l++)
        add_step(f, *l, second, true);
    f->chain.step[f->chain.n++] =
        (rt_chain_step){.op = c->op,
                        .arg = {other, -1},
                        .attr = {.stride = 1, .pad = 1, .h = c->h, .w = c->w, .kh = 3, .kw = 3}};
    if (c->members < 0) {
        f->chain.step[f->chain.n - 1].attr.members = f->members;
        out.d[0] *= f->members;
    }
    for (const char *l = c->store; *l != '\0'; l++)
        add_step(f, *l, out, false);
    if (c->stats != 0) {
        rt_chain_step *t = &f->chain.step[f->chain.n++];
        *t = (rt_chain_step){.op = c->stats == 's' ? RT_OP_BN_STATS : RT_OP_BN_GSTATS, .arg = {-1, -1}};
        t->attr.members = f->members > 1 ? f->members : 0;
        if (c->stats == 'g') {
            t->arg[0] = add_input(f, out, true);
            t->arg[1] = add_input(f, rt_shape2(4, out.d[1] * f->members), false);
        }
    }
    f->p = (rt_problem){.op = RT_OP_FUSED_CONV,
                        .attr = {.count = f->chain.n},
                        .chain = &f->chain,
                        .nin = f->p.nin,
                        .in = f->in,
                        .in_groups = f->groups,
                        .out = rt_desc_make(RT_DTYPE_F64, out, RT_LAYOUT_PLAIN),
                        .out_groups = weights ? 0 : f->members,
                        .n = c->n,
                        .kind = weights ? RT_KIND_SUM : RT_KIND_ROWS,
                        .frozen = strncmp(c->name, "frozen", 6) == 0};
}

/* The statistics of y by their own reference. */
static void reference_stats(const fused *f, const rt_desc *out, double *stats, const double *y) {
    const rt_chain_step *t = &f->chain.step[f->chain.n - 1];
    rt_desc in[3] = {f->p.out};
    int32_t groups[3] = {f->members};
    const void *data[3] = {y};
    for (int i = 1; t->op == RT_OP_BN_GSTATS && i < 3; i++) {
        in[i] = f->in[t->arg[i - 1]];
        groups[i] = f->groups[t->arg[i - 1]];
        data[i] = f->value[t->arg[i - 1]];
    }
    const rt_problem p = {.op = t->op,
                          .attr = t->attr,
                          .nin = t->op == RT_OP_BN_GSTATS ? 3 : 1,
                          .in = in,
                          .in_groups = groups,
                          .out = *out,
                          .n = f->p.n,
                          .kind = RT_KIND_SUM};
    rt_kern_ref(t->op, RT_DTYPE_F64)->run(NULL, &p, stats, data, &(rt_kern_ctx){0});
}

static void reorder(const rt_desc *to, void *dst, const rt_desc *from, const void *src) {
    const int32_t groups = 0;
    const rt_problem p = {.op = RT_OP_REORDER, .nin = 1, .in = from, .in_groups = &groups, .out = *to};
    rt_kern_ref(RT_OP_REORDER, RT_DTYPE_F32)->run(NULL, &p, dst, (const void *[]){src}, &(rt_kern_ctx){0});
}

static double largest(const double *x, int64_t n) {
    double m = 0;
    for (int64_t i = 0; i < n; i++)
        m = fmax(m, fabs(x[i]));
    return m;
}

static void drop_values(fused *f) {
    for (int i = 0; i < f->p.nin; i++)
        rt_free(f->value[i]);
}

/* A problem in single precision, in the layouts that kernel k wants, with its data. */
typedef struct laid {
    rt_problem p;
    rt_desc in[MAX_IN];
    void *data[MAX_IN], *out;
    size_t bytes; /* of the result */
} laid;

static void lay_out(laid *l, const rt_kern *k, const fused *f) {
    rt_desc plain[MAX_IN];
    rt_layout want[MAX_IN];
    l->p = f->p;
    for (int i = 0; i < l->p.nin; i++) {
        plain[i] = l->in[i] = rt_desc_make(RT_DTYPE_F32, f->in[i].shape, RT_LAYOUT_PLAIN);
        want[i] = RT_LAYOUT_PLAIN;
    }
    l->p.in = l->in;
    l->p.out = rt_desc_make(RT_DTYPE_F32, f->p.out.shape, RT_LAYOUT_PLAIN);
    k->layouts(&l->p, want, &l->p.out.layout);
    for (int i = 0; i < l->p.nin; i++) {
        l->in[i].layout = want[i];
        const int64_t n = rt_desc_elems(&plain[i]);
        float *x = op_buffer((size_t)n * sizeof *x);
        for (int64_t e = 0; e < n; e++)
            x[e] = (float)f->value[i][e];
        l->data[i] = op_buffer(rt_desc_bytes(&l->in[i]));
        reorder(&l->in[i], l->data[i], &plain[i], x);
        rt_free(x);
    }
    l->bytes = rt_desc_bytes(&l->p.out);
    l->out = op_buffer(l->bytes);
}

static void drop_laid(laid *l) {
    rt_free(l->out);
    for (int i = 0; i < l->p.nin; i++)
        rt_free(l->data[i]);
}

/* False: not a problem of this kernel. */
static bool run_kernel(const rt_kern *k, const fused *f, float *got, double *stats) {
    laid l;
    lay_out(&l, k, f);
    if (!k->supports(&l.p)) {
        drop_laid(&l);
        return false;
    }
    assert_true(op_run(k, &l.p, l.out, (const void *const *)l.data, (rt_kern_ctx){.side = stats}));
    assert_true(op_buffer_intact(l.out, l.bytes));
    const rt_desc out_plain = rt_desc_make(RT_DTYPE_F32, f->p.out.shape, RT_LAYOUT_PLAIN);
    reorder(&out_plain, got, &l.p.out, l.out);
    void *again = op_buffer(l.bytes); /* what lies between the channels is zero */
    reorder(&l.p.out, again, &out_plain, got);
    assert_memory_equal(l.out, again, l.bytes);
    rt_free(again);
    drop_laid(&l);
    return true;
}

/* twin: a kernel that gives the same bits, or NULL. False: not a problem of kernel k. */
static bool check(const rt_kern *k, const rt_kern *twin, const fused_case *c) {
    fused f;
    build(&f, c);
    const int64_t n = rt_desc_elems(&f.p.out), columns = f.p.out.shape.d[1] * f.members;
    const rt_desc stats_desc = rt_desc_make(RT_DTYPE_F64, rt_shape2(2, columns), RT_LAYOUT_PLAIN);
    double *want = op_buffer((size_t)n * sizeof *want);
    double *stats = op_buffer(rt_desc_bytes(&stats_desc)), *side = op_buffer(rt_desc_bytes(&stats_desc));
    float *got = op_buffer((size_t)n * sizeof *got), *same = op_buffer((size_t)n * sizeof *got);
    assert_true(op_run(rt_kern_ref(RT_OP_FUSED_CONV, RT_DTYPE_F64), &f.p, want, (const void *const *)f.value,
                       (rt_kern_ctx){0}));
    const bool ours = run_kernel(k, &f, got, c->stats != 0 ? side : NULL);
    const double bound = c->bound * 1e-6 * largest(want, n);
    for (int64_t i = 0; i < n && ours; i++)
        if (!(fabs((double)got[i] - want[i]) <= bound))
            fail_msg("%s: element %lld is %.9g, wanted %.9g", c->name, (long long)i, (double)got[i], want[i]);
    if (ours && twin != NULL) {
        assert_true(run_kernel(twin, &f, same, c->stats != 0 ? stats : NULL));
        if (memcmp(got, same, (size_t)n * sizeof *got) != 0 ||
            (c->stats != 0 && memcmp(side, stats, rt_desc_bytes(&stats_desc)) != 0))
            fail_msg("%s: wide vectors give other bits", c->name);
    }
    if (ours && c->stats != 0) {
        reference_stats(&f, &stats_desc, stats, want);
        for (int64_t i = 0; i < 2 * columns; i++)
            if (!(fabs(side[i] - stats[i]) <= 2e-5 * largest(stats + i / columns * columns, columns)))
                fail_msg("%s: statistic %lld is %.9g, wanted %.9g", c->name, (long long)i, side[i], stats[i]);
        assert_true(op_buffer_intact(side, rt_desc_bytes(&stats_desc)));
    }
    rt_free(want);
    rt_free(stats);
    rt_free(side);
    rt_free(got);
    rt_free(same);
    drop_values(&f);
    return ours;
}

/* Both gradients of one convolution: steps of x's load, of dy's for the weights and for the data, of the store. */
typedef struct joined_case {
    const char *name, *x, *dy, *data, *store;
    char stats;
    int32_t members;
    int64_t n, ic, oc, h, w;
    bool joins;
} joined_case;

static const joined_case JOINED[] = {
    {"plain", "", "", "", "", 0, 1, 4, 16, 16, 16, 16, true},
    {"pre-activation", "br", "g", "g", "k", 'g', 1, 5, 16, 32, 16, 16, true},
    {"skip", "br", "", "", "ak", 'g', 1, 5, 32, 32, 16, 12, true},
    {"edges", "br", "g", "g", "k", 'g', 1, 9, 32, 16, 14, 13, true},
    {"several steps", "b", "ga", "ga", "ax", 'g', 1, 17, 16, 16, 7, 7, true},
    {"one group", "br", "g", "g", "k", 'g', 1, 4, 64, 48, 8, 8, true},
    {"members", "brm", "mg", "mg", "mk", 'g', 3, 5, 16, 32, 9, 10, true},
    {"members, each", "br", "g", "g", "mk", 'g', -3, 5, 32, 16, 12, 8, true},
    {"other loads", "br", "g", "gm", "k", 'g', -2, 5, 16, 16, 16, 16, false},
    {"other groups", "br", "g", "g", "k", 'g', 1, 9, 20, 16, 12, 12, false},
    {"channels that fill no block", "br", "g", "g", "k", 'g', 1, 9, 16, 24, 12, 12, false},
    {"many channels", "br", "g", "g", "k", 'g', 1, 4, 144, 144, 8, 8, false},
};

static int operands(const char *steps) {
    int n = 0;
    for (; *steps != '\0'; steps++)
        n += *steps == 'r' ? 0 : *steps == 'g' || *steps == 'k' ? 2 : 1;
    return n;
}

/* One sweep gives the bits of two. False: not problems of this kernel. */
static bool check_joined(const rt_kern *k, const joined_case *c) {
    fused of_w, of_x;
    laid w, d;
    build(&of_w, &(fused_case){.op = RT_OP_CONV2D_BWD_WEIGHTS,
                               .name = c->name,
                               .load = c->x,
                               .second = c->dy,
                               .store = "",
                               .members = c->members,
                               .n = c->n,
                               .ic = c->ic,
                               .oc = c->oc,
                               .h = c->h,
                               .w = c->w});
    build(&of_x, &(fused_case){.op = RT_OP_CONV2D_BWD_DATA,
                               .name = c->name,
                               .load = c->data,
                               .second = "",
                               .store = c->store,
                               .stats = c->stats,
                               .members = abs(c->members),
                               .n = c->n,
                               .ic = c->ic,
                               .oc = c->oc,
                               .h = c->h,
                               .w = c->w});
    /* dy is the first operand of the one, the second of the other; those of its steps come next, or last */
    const int shared = operands(c->dy), last = of_w.p.nin - shared;
    int same[MAX_IN];
    for (int i = 0; i < of_w.p.nin; i++) {
        same[i] = i == 1 ? 0 : i >= last ? 2 + i - last : -1;
        if (same[i] >= 0)
            memcpy(of_x.value[same[i]], of_w.value[i], (size_t)rt_desc_elems(&of_w.in[i]) * sizeof(double));
    }
    lay_out(&w, k, &of_w);
    lay_out(&d, k, &of_x);
    if (!k->supports(&w.p) || !k->supports(&d.p)) {
        drop_laid(&w);
        drop_laid(&d);
        drop_values(&of_w);
        drop_values(&of_x);
        return false;
    }
    const size_t sums = (size_t)(2 * c->ic * of_x.members) * sizeof(double);
    void *want_w = op_buffer(w.bytes), *want_d = op_buffer(d.bytes);
    double *want_side = op_buffer(sums), *side = op_buffer(sums);
    assert_true(op_run(k, &w.p, want_w, (const void *const *)w.data, (rt_kern_ctx){0}));
    assert_true(op_run(k, &d.p, want_d, (const void *const *)d.data,
                       (rt_kern_ctx){.side = c->stats != 0 ? want_side : NULL}));
    void *state_w = NULL, *state_d = NULL;
    size_t scratch = 0;
    assert_int_equal(k->prepare(&w.p, &state_w, &scratch), RT_OK);
    assert_int_equal(k->prepare(&d.p, &state_d, &scratch), RT_OK);
    const rt_kern_with with = {.p = &w.p, .state = state_w, .out = w.out, .in = (const void *const *)w.data};
    if (k->joins(&d.p, state_d, &with, same, &scratch) != c->joins)
        fail_msg("%s: is%s joined", c->name, c->joins ? " not" : "");
    if (c->joins) {
        const rt_kern_ctx ctx = {
            .scratch = op_buffer(scratch), .side = c->stats != 0 ? side : NULL, .with = &with};
        memset(ctx.scratch, 0xFF, scratch); /* NaN: what is not made must not be read */
        k->run(state_d, &d.p, d.out, (const void *const *)d.data, &ctx);
        assert_true(op_buffer_intact(ctx.scratch, scratch) && op_buffer_intact(w.out, w.bytes) &&
                    op_buffer_intact(d.out, d.bytes) && op_buffer_intact(side, sums));
        if (memcmp(w.out, want_w, w.bytes) != 0 || memcmp(d.out, want_d, d.bytes) != 0 ||
            memcmp(side, want_side, sums) != 0)
            fail_msg("%s: one sweep differs from two", c->name);
        rt_free(ctx.scratch);
    }
    k->release(state_w);
    k->release(state_d);
    rt_free(want_w);
    rt_free(want_d);
    rt_free(want_side);
    rt_free(side);
    drop_laid(&w);
    drop_laid(&d);
    drop_values(&of_w);
    drop_values(&of_x);
    return true;
}

/* One per instruction set the CPU has, and last the reference, which is not counted. Where vectors are wide there are
 * two, of which the first takes an even number of blocks only. */
static int kernels(const rt_kern **list, int cap, bool *wide) {
    int n = 0;
    assert_int_equal(rt_kern_list(RT_OP_FUSED_CONV, RT_DTYPE_F32, RT_KERN_VEC, list, cap, &n), RT_OK);
    assert_true(n > 1);
    *wide = rt_cpu_isa() == RT_ISA_AVX512;
    return n - 1;
}

static void test_fused(void **state) {
    (void)state;
    const rt_kern *list[8];
    bool wide;
    const int n = kernels(list, 8, &wide);
    for (int k = 0; k < n; k++) {
        const bool some = k == 0 && wide;
        int count = 0;
        for (int i = 0; i < RT_COUNT(CASES); i++)
            count += check(list[k], some ? list[1] : NULL, &CASES[i]);
        assert_in_range(count, some ? RT_COUNT(CASES) / 3 : RT_COUNT(CASES), RT_COUNT(CASES));
    }
}

static void test_joined(void **state) {
    (void)state;
    const rt_kern *list[8];
    bool wide;
    const int n = kernels(list, 8, &wide);
    for (int k = 0; k < n; k++) {
        int count = 0;
        for (int i = 0; i < RT_COUNT(JOINED); i++)
            count += check_joined(list[k], &JOINED[i]);
        assert_in_range(count, k == 0 && wide ? RT_COUNT(JOINED) / 2 : RT_COUNT(JOINED), RT_COUNT(JOINED));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fused), cmocka_unit_test(test_joined)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
