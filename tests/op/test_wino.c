/*
 * Fused convolutions against the composition of reference kernels in double: every direction with every step
 * of its loads and stores, statistics, edge tiles, channels that fill no block, one and several members.
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
    int32_t members; /* < 0: as many, and a gradient of each */
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
    {"data", RT_OP_CONV2D_BWD_DATA, "", "", "", 0, 1, 4, 16, 16, 16, 16, 8},
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

/* The same problem in single precision and the layouts the kernel asks for. */
static void run_kernel(const rt_kern *k, const fused *f, float *got, double *stats) {
    rt_desc plain[MAX_IN], in[MAX_IN];
    rt_layout want[MAX_IN];
    rt_problem p = f->p;
    void *data[MAX_IN];
    for (int i = 0; i < p.nin; i++) {
        plain[i] = in[i] = rt_desc_make(RT_DTYPE_F32, f->in[i].shape, RT_LAYOUT_PLAIN);
        want[i] = RT_LAYOUT_PLAIN;
    }
    p.in = in;
    const rt_desc out_plain = p.out = rt_desc_make(RT_DTYPE_F32, f->p.out.shape, RT_LAYOUT_PLAIN);
    k->layouts(&p, want, &p.out.layout);
    for (int i = 0; i < p.nin; i++) {
        in[i].layout = want[i];
        const int64_t n = rt_desc_elems(&plain[i]);
        float *x = op_buffer((size_t)n * sizeof *x);
        for (int64_t e = 0; e < n; e++)
            x[e] = (float)f->value[i][e];
        data[i] = op_buffer(rt_desc_bytes(&in[i]));
        reorder(&in[i], data[i], &plain[i], x);
        rt_free(x);
    }
    assert_true(k->supports(&p));
    const size_t bytes = rt_desc_bytes(&p.out);
    void *out = op_buffer(bytes);
    assert_true(op_run(k, &p, out, (const void *const *)data, (rt_kern_ctx){.side = stats}));
    assert_true(op_buffer_intact(out, bytes));
    reorder(&out_plain, got, &p.out, out);
    void *again = op_buffer(bytes); /* what lies between the channels is zero */
    reorder(&p.out, again, &out_plain, got);
    assert_memory_equal(out, again, bytes);
    rt_free(again);
    rt_free(out);
    for (int i = 0; i < p.nin; i++)
        rt_free(data[i]);
}

static void check(const rt_kern *k, const fused_case *c) {
    fused f;
    build(&f, c);
    const int64_t n = rt_desc_elems(&f.p.out), columns = f.p.out.shape.d[1] * f.members;
    const rt_desc stats_desc = rt_desc_make(RT_DTYPE_F64, rt_shape2(2, columns), RT_LAYOUT_PLAIN);
    double *want = op_buffer((size_t)n * sizeof *want);
    double *stats = op_buffer(rt_desc_bytes(&stats_desc)), *side = op_buffer(rt_desc_bytes(&stats_desc));
    float *got = op_buffer((size_t)n * sizeof *got);
    assert_true(op_run(rt_kern_ref(RT_OP_FUSED_CONV, RT_DTYPE_F64), &f.p, want, (const void *const *)f.value,
                       (rt_kern_ctx){0}));
    run_kernel(k, &f, got, c->stats != 0 ? side : NULL);
    const double bound = c->bound * 1e-6 * largest(want, n);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= bound))
            fail_msg("%s: element %lld is %.9g, wanted %.9g", c->name, (long long)i, (double)got[i], want[i]);
    if (c->stats != 0) {
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
    for (int i = 0; i < f.p.nin; i++)
        rt_free(f.value[i]);
}

static void test_fused(void **state) {
    (void)state;
    const rt_kern *list[8];
    int n = 0;
    assert_int_equal(rt_kern_list(RT_OP_FUSED_CONV, RT_DTYPE_F32, RT_KERN_VEC, list, 8, &n), RT_OK);
    assert_true(n > 1); /* one per instruction set the CPU has, and last the reference */
    for (int k = 0; k < n - 1; k++)
        for (int i = 0; i < RT_COUNT(CASES); i++)
            check(list[k], &CASES[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
