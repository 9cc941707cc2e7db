/*
 * Convolutions with images as rows against the reference kernels in double, in all three directions: images whose
 * taps are mostly padding, strides, kernels larger than the image, numbers of images around a tile, several bands
 * and groups of images. Bound: 1e-5 of the largest element.
 */
#include "op/op_problem.h"
#include <string.h>

typedef struct conv_case {
    int64_t n, ic, oc, h, w, kh, kw;
    int32_t stride, pad;
} conv_case;

static const conv_case CASES[] = {
    {16, 32, 48, 2, 2, 3, 3, 1, 1},   {5, 16, 16, 1, 1, 3, 3, 1, 1},    {7, 48, 32, 8, 8, 3, 3, 2, 1},
    {4, 16, 32, 4, 4, 3, 3, 1, 1},    {13, 32, 16, 5, 3, 3, 3, 2, 1},   {6, 16, 16, 3, 4, 5, 5, 1, 2},
    {12, 16, 16, 7, 8, 2, 3, 2, 0},   {9, 32, 32, 2, 3, 3, 1, 1, 1},    {4, 16, 16, 9, 7, 3, 3, 3, 1},
    {7, 256, 16, 16, 16, 3, 3, 2, 1}, /* bands and groups of images */
    {7, 16, 256, 16, 16, 3, 3, 2, 1}, {40, 16, 16, 16, 16, 3, 3, 2, 1},
};

static const conv_case REFUSED[] = {
    {3, 16, 16, 2, 2, 3, 3, 1, 1},   /* few images */
    {8, 24, 16, 2, 2, 3, 3, 1, 1},   /* channels that fill no block */
    {8, 16, 16, 65, 65, 3, 3, 2, 1}, /* large images */
    {8, 16, 16, 4, 4, 1, 1, 1, 0},   /* one tap */
};

enum { PASSES = 3, SEED = 5 };
static const rt_op PASS[PASSES] = {RT_OP_CONV2D, RT_OP_CONV2D_BWD_DATA, RT_OP_CONV2D_BWD_WEIGHTS};

/* The kernels of an operation that this file is about, one per instruction set the CPU has. */
static int find_rows(rt_op op, const rt_kern *rows[3]) {
    const rt_kern *list[16];
    int n = 0, found = 0;
    assert_int_equal(rt_kern_list(op, RT_DTYPE_F32, RT_KERN_VEC, list, 16, &n), RT_OK);
    for (int i = 0; i < n && found < 3; i++)
        if (strcmp(list[i]->impl, "rows") == 0)
            rows[found++] = list[i];
    assert_true(found > 0);
    return found;
}

/* All PLAIN; the problem points into q. */
static void make(op_problem *q, const conv_case *c, int pass, rt_dtype t) {
    const int64_t oh = (c->h + 2 * c->pad - c->kh) / c->stride + 1;
    const int64_t ow = (c->w + 2 * c->pad - c->kw) / c->stride + 1;
    const rt_shape x = rt_shape4(c->n, c->ic, c->h, c->w), w = rt_shape4(c->oc, c->ic, c->kh, c->kw);
    const rt_shape y = rt_shape4(c->n, c->oc, oh, ow);
    q->in[0] = rt_desc_make(t, pass == 1 ? y : x, RT_LAYOUT_PLAIN);
    q->in[1] = rt_desc_make(t, pass == 2 ? y : w, RT_LAYOUT_PLAIN);
    q->groups[0] = 1;
    q->groups[1] = pass == 2;
    q->p = (rt_problem){.op = PASS[pass],
                        .attr = {.stride = c->stride,
                                 .pad = c->pad,
                                 .h = c->h,
                                 .w = c->w,
                                 .kh = (int32_t)c->kh,
                                 .kw = (int32_t)c->kw},
                        .nin = 2,
                        .in = q->in,
                        .in_groups = q->groups,
                        .out = rt_desc_make(t,
                                            pass == 2   ? w
                                            : pass == 1 ? x
                                                        : y,
                                            RT_LAYOUT_PLAIN),
                        .out_groups = pass != 2,
                        .n = c->n,
                        .kind = pass == 2 ? RT_KIND_SUM : RT_KIND_ROWS};
}

static void reorder(const rt_desc *to, void *dst, const rt_desc *from, const void *src) {
    const int32_t groups = 0;
    const rt_problem p = {.op = RT_OP_REORDER, .nin = 1, .in = from, .in_groups = &groups, .out = *to};
    rt_kern_ref(RT_OP_REORDER, RT_DTYPE_F32)->run(NULL, &p, dst, (const void *[]){src}, &(rt_kern_ctx){0});
}

/* Asks for the layouts and takes them. */
static bool ask(const rt_kern *k, op_problem *q) {
    rt_layout in[2] = {RT_LAYOUT_PLAIN, RT_LAYOUT_PLAIN}, out = RT_LAYOUT_PLAIN;
    k->layouts(&q->p, in, &out);
    q->in[0].layout = in[0];
    q->in[1].layout = in[1];
    q->p.out.layout = out;
    return k->supports(&q->p);
}

static void check(const rt_kern *k, const conv_case *c, int pass) {
    op_problem want, plain, q;
    make(&want, c, pass, RT_DTYPE_F64);
    make(&plain, c, pass, RT_DTYPE_F32);
    make(&q, c, pass, RT_DTYPE_F32);
    assert_true(ask(k, &q));
    double *exact[3];
    void *data[2];
    for (int i = 0; i < 2; i++) {
        const int64_t n = rt_desc_elems(&plain.in[i]);
        const rt_rng r = rt_rng_make(SEED, RT_RNG_TEST, (uint64_t)i, 0);
        float *x = op_buffer((size_t)n * sizeof *x);
        exact[i] = op_buffer((size_t)n * sizeof(double));
        for (int64_t e = 0; e < n; e++) {
            x[e] = 2 * rt_rng_uniform_f32(r, (uint64_t)e) - 1;
            exact[i][e] = (double)x[e];
        }
        data[i] = op_buffer(rt_desc_bytes(&q.in[i]));
        reorder(&q.in[i], data[i], &plain.in[i], x);
        rt_free(x);
    }
    const int64_t n = rt_desc_elems(&plain.p.out);
    exact[2] = op_buffer((size_t)n * sizeof(double));
    rt_kern_ref(PASS[pass], RT_DTYPE_F64)
        ->run(NULL, &want.p, exact[2], (const void *[]){exact[0], exact[1]}, &(rt_kern_ctx){0});
    void *out = op_buffer(rt_desc_bytes(&q.p.out));
    float *got = op_buffer((size_t)n * sizeof *got);
    assert_true(op_run(k, &q.p, out, (const void *[]){data[0], data[1]}, (rt_kern_ctx){0}));
    assert_true(op_buffer_intact(out, rt_desc_bytes(&q.p.out)));
    reorder(&plain.p.out, got, &q.p.out, out);
    double largest = 0, error = 0;
    for (int64_t e = 0; e < n; e++) {
        largest = fmax(largest, fabs(exact[2][e]));
        error = fmax(error, fabs(exact[2][e] - (double)got[e]));
    }
    if (!(error <= 1e-5 * largest))
        fail_msg("%s of %dx%d images, %d > %d, stride %d: error %g of %g", rt_op_get(PASS[pass])->name,
                 (int)c->h, (int)c->w, (int)c->ic, (int)c->oc, (int)c->stride, error, largest);
    for (int i = 0; i < 3; i++)
        rt_free(exact[i]);
    rt_free(data[0]);
    rt_free(data[1]);
    rt_free(out);
    rt_free(got);
}

static void test_rows(void **state) {
    (void)state;
    const rt_kern *rows[3];
    for (int pass = 0; pass < PASSES; pass++)
        for (int k = find_rows(PASS[pass], rows) - 1; k >= 0; k--)
            for (int i = 0; i < RT_COUNT(CASES); i++)
                check(rows[k], &CASES[i], pass);
}

static void test_refused(void **state) {
    (void)state;
    const rt_kern *rows[3];
    for (int pass = 0; pass < PASSES; pass++)
        for (int k = find_rows(PASS[pass], rows) - 1; k >= 0; k--)
            for (int i = 0; i < RT_COUNT(REFUSED); i++) {
                op_problem q;
                make(&q, &REFUSED[i], pass, RT_DTYPE_F32);
                assert_false(ask(rows[k], &q));
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
