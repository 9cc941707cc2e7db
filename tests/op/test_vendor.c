/*
 * test_vendor.c - what oneDNN's kernels promise, and those of ours that take its place: layouts they ask for, padding
 * they leave zero, and the same bits from several threads that share one prepared state. Values are checked against
 * loops in double written here, not against other kernels.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/pool.h"
#include "base/sigguard.h"
#include "kern/kern.h"

enum { MAX_KERN = 16 };

/* The most general kernel of a family: those for special cases stand before it. */
static const rt_kern *find(rt_op op, rt_dtype t, unsigned family) {
    const rt_kern *list[MAX_KERN];
    int n = 0;
    assert_int_equal(rt_kern_list(op, t, family, list, MAX_KERN, &n), RT_OK);
    return n > 1 ? list[n - 2] : NULL;
}

/* Deterministic noise in [-1, 1) with all the bits an f32 has: sums in another order give other bits. */
static double noise(uint64_t key) {
    uint64_t z = (key + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 31)) * 0xBF58476D1CE4E5B9u;
    return (double)((float)((z >> 33) & 0xffffff) / 8388608.0f - 1.0f);
}

/* ---- 4-D tensors: logical values in double, and the stored array of a layout ---- */

typedef struct tensor {
    rt_desc d;
    double *v;
    float *store;
} tensor;

static int64_t count4(const rt_desc *d) {
    return d->shape.d[0] * d->shape.d[1] * d->shape.d[2] * d->shape.d[3];
}

static tensor make(rt_shape s, uint64_t key) {
    tensor t = {.d = rt_desc_make(RT_DTYPE_F32, s, RT_LAYOUT_PLAIN)};
    int64_t n = count4(&t.d);
    assert_int_equal(rt_alloc(&t.v, (size_t)n * sizeof(double)), RT_OK);
    for (int64_t i = 0; i < n; i++)
        t.v[i] = noise(key + (uint64_t)i);
    return t;
}

typedef void (*visit)(tensor *t, int64_t logical, int64_t stored);

static void each(tensor *t, visit f) {
    const int64_t *d = t->d.shape.d;
    int64_t l = 0;
    for (int64_t a = 0; a < d[0]; a++)
        for (int64_t b = 0; b < d[1]; b++)
            for (int64_t c = 0; c < d[2]; c++)
                for (int64_t e = 0; e < d[3]; e++, l++)
                    f(t, l, rt_desc_index4(&t->d, a, b, c, e));
}

static void visit_store(tensor *t, int64_t l, int64_t s) {
    t->store[s] = (float)t->v[l];
}
static void visit_load(tensor *t, int64_t l, int64_t s) {
    t->v[l] = (double)t->store[s];
    t->store[s] = 0; /* what remains afterwards is padding */
}

static void alloc_store(tensor *t, rt_layout l, unsigned char fill) {
    t->d.layout = l;
    rt_free(t->store);
    assert_int_equal(rt_alloc(&t->store, rt_desc_bytes(&t->d)), RT_OK);
    memset(t->store, fill, rt_desc_bytes(&t->d));
}
static void store(tensor *t, rt_layout l) {
    alloc_store(t, l, 0);
    each(t, visit_store);
}
/* Reads the logical values back and demands zero padding. */
static void load(tensor *t) {
    each(t, visit_load);
    for (int64_t i = 0; i < rt_desc_elems(&t->d); i++)
        assert_true(t->store[i] == 0.0f);
}
static void drop(tensor *t) {
    rt_free(t->v);
    rt_free(t->store);
}

static void assert_close(const tensor *got, const tensor *want, const char *what) {
    double peak = 0, err = 0;
    for (int64_t i = 0; i < count4(&got->d); i++) {
        peak = fmax(peak, fabs(want->v[i]));
        err = fmax(err, fabs(got->v[i] - want->v[i]));
    }
    if (!(err <= 1e-5 * peak))
        fail_msg("%s: error %g of %g", what, err, peak);
}

/* ---- running one kernel ---- */

typedef struct prepared {
    const rt_kern *k;
    rt_problem p;
    void *state;
    size_t scratch_bytes;
} prepared;

static void open_kernel(prepared *r) {
    if (r->k->prepare)
        assert_int_equal(r->k->prepare(&r->p, &r->state, &r->scratch_bytes), RT_OK);
}
static void run_kernel(const prepared *r, int worker, void *out, const void *const *in) {
    rt_kern_ctx ctx = {.worker = worker};
    assert_int_equal(rt_alloc(&ctx.scratch, r->scratch_bytes + 64), RT_OK);
    memset(ctx.scratch, 0xff, r->scratch_bytes + 64);
    if (r->k->attach)
        assert_int_equal(r->k->attach(r->state, worker), RT_OK);
    r->k->run(r->state, &r->p, out, in, &ctx);
    rt_free(ctx.scratch);
}
static void close_kernel(prepared *r) {
    if (r->k->release)
        r->k->release(r->state);
}

/* ---- convolution ---- */

typedef struct conv_case {
    int64_t n, ic, h, w, oc, k;
    int32_t stride, pad;
} conv_case;

static const conv_case k_conv[] = {
    {2, 3, 9, 7, 16, 3, 1, 1},  {2, 16, 8, 8, 16, 3, 1, 1},  {2, 16, 15, 13, 32, 3, 2, 1},
    {3, 16, 8, 8, 32, 1, 2, 0}, {2, 32, 5, 5, 24, 3, 1, 1},  {2, 5, 7, 7, 10, 3, 1, 1},
    {2, 10, 6, 6, 12, 3, 1, 1}, {1, 3, 17, 17, 16, 7, 2, 3}, {2, 1, 12, 12, 8, 5, 1, 0},
    {2, 12, 5, 4, 20, 1, 1, 0}, {1, 64, 8, 8, 64, 3, 1, 1},  {2, 8, 1, 1, 16, 1, 1, 0},
    {1, 9, 3, 3, 7, 3, 1, 1},   {2, 4, 6, 6, 16, 3, 1, 1},   {2, 16, 9, 9, 8, 2, 2, 0},
};

static const rt_op k_pass[3] = {RT_OP_CONV2D, RT_OP_CONV2D_BWD_DATA, RT_OP_CONV2D_BWD_WEIGHTS};
/* where x, w, y stand; -1: output */
static const int k_place[3][3] = {{0, 1, -1}, {-1, 1, 0}, {0, -1, 1}};

typedef struct conv_data {
    tensor t[3]; /* x, w, y */
    tensor want; /* of the output */
} conv_data;

static conv_data conv_make(const conv_case *c, int pass, uint64_t key) {
    int64_t oh = (c->h + 2 * c->pad - c->k) / c->stride + 1, ow = (c->w + 2 * c->pad - c->k) / c->stride + 1;
    conv_data d = {.t = {make(rt_shape4(c->n, c->ic, c->h, c->w), key + 1),
                         make(rt_shape4(c->oc, c->ic, c->k, c->k), key + 100000),
                         make(rt_shape4(c->n, c->oc, oh, ow), key + 200000)}};
    int target = pass == 0 ? 2 : pass == 1 ? 0 : 1;
    d.want = make(d.t[target].d.shape, 0);
    memset(d.want.v, 0, (size_t)count4(&d.want.d) * sizeof(double));
    for (int64_t n = 0; n < c->n; n++)
        for (int64_t o = 0; o < c->oc; o++)
            for (int64_t p = 0; p < oh; p++)
                for (int64_t q = 0; q < ow; q++)
                    for (int64_t i = 0; i < c->ic; i++)
                        for (int64_t r = 0; r < c->k; r++)
                            for (int64_t s = 0; s < c->k; s++) {
                                int64_t a = p * c->stride + r - c->pad, b = q * c->stride + s - c->pad;
                                if (a < 0 || a >= c->h || b < 0 || b >= c->w)
                                    continue;
                                const int64_t at[3] = {((n * c->ic + i) * c->h + a) * c->w + b,
                                                       ((o * c->ic + i) * c->k + r) * c->k + s,
                                                       ((n * c->oc + o) * oh + p) * ow + q};
                                int u = (target + 1) % 3, v = (target + 2) % 3;
                                d.want.v[at[target]] += d.t[u].v[at[u]] * d.t[v].v[at[v]];
                            }
    return d;
}

static void conv_drop(conv_data *d) {
    for (int i = 0; i < 3; i++)
        drop(&d->t[i]);
    drop(&d->want);
}

/* A prepared convolution; the problem points into `in`. */
typedef struct conv_run {
    prepared r;
    rt_desc in[2];
    int32_t groups[2];
    rt_layout layout[3]; /* of x, w, y */
} conv_run;

static const rt_desc *place_desc(const conv_run *c, int place) {
    return place < 0 ? &c->r.p.out : &c->in[place];
}

/* Fills the problem with the layouts of c->layout. */
static void conv_problem(conv_run *c, const conv_case *k, int pass, const conv_data *d) {
    c->r.p = (rt_problem){.op = k_pass[pass], .nin = 2, .in = c->in, .in_groups = c->groups, .n = k->n};
    c->r.p.attr = (rt_attr){
        .stride = k->stride, .pad = k->pad, .kh = (int32_t)k->k, .kw = (int32_t)k->k, .h = k->h, .w = k->w};
    c->groups[0] = 1;
    c->groups[1] = pass == 2;
    c->r.p.out_groups = pass != 2;
    c->r.p.kind = pass == 2 ? RT_KIND_SUM : RT_KIND_ROWS;
    for (int i = 0; i < 3; i++) {
        rt_desc desc = d->t[i].d;
        desc.layout = c->layout[i];
        if (k_place[pass][i] < 0)
            c->r.p.out = desc;
        else
            c->in[k_place[pass][i]] = desc;
    }
}

/* Asks the kernel for its layouts, starting from PLAIN. */
static void conv_open(conv_run *c, const conv_case *k, int pass, const conv_data *d) {
    memset(c, 0, sizeof *c);
    c->r.k = find(k_pass[pass], RT_DTYPE_F32, RT_KERN_ONEDNN);
    conv_problem(c, k, pass, d);
    rt_layout in[2] = {RT_LAYOUT_PLAIN, RT_LAYOUT_PLAIN}, out = RT_LAYOUT_PLAIN;
    c->r.k->layouts(&c->r.p, in, &out);
    for (int i = 0; i < 3; i++)
        c->layout[i] = k_place[pass][i] < 0 ? out : in[k_place[pass][i]];
    conv_problem(c, k, pass, d);
    if (!c->r.k->supports(&c->r.p))
        fail_msg("conv pass %d ic %d oc %d k %d: its own layouts are not supported", pass, (int)k->ic,
                 (int)k->oc, (int)k->k);
    open_kernel(&c->r);
}

static void conv_execute(const conv_run *c, int pass, conv_data *d, int worker) {
    const void *in[2];
    tensor *out = NULL;
    for (int i = 0; i < 3; i++) {
        tensor *t = &d->t[i];
        if (k_place[pass][i] < 0) {
            alloc_store(t, c->layout[i], 0xff);
            out = t;
        } else {
            store(t, c->layout[i]);
            in[k_place[pass][i]] = t->store;
        }
    }
    assert_int_equal(rt_desc_bytes(&out->d), rt_desc_bytes(place_desc(c, -1)));
    run_kernel(&c->r, worker, out->store, in);
}

/* A build without a library has none of its kernels; a build with it must have them. */
static bool absent(bool there, int built_with) {
    assert_int_equal(there, built_with != 0);
    return !there;
}

static void test_conv(void **state) {
    (void)state;
    if (absent(find(RT_OP_CONV2D, RT_DTYPE_F32, RT_KERN_ONEDNN) != NULL, RT_WITH_ONEDNN))
        return;
    for (int64_t i = 0; i < RT_COUNT(k_conv); i++)
        for (int pass = 0; pass < 3; pass++) {
            const conv_case *k = &k_conv[i];
            conv_data d = conv_make(k, pass, (uint64_t)i * 7919);
            conv_run c;
            conv_open(&c, k, pass, &d);
            if (rt_cpu_isa() >= RT_ISA_AVX2) {
                /* blocked activations; only a narrow input of the forward-like passes may stay PLAIN */
                assert_int_not_equal(c.layout[2], RT_LAYOUT_PLAIN);
                assert_true(c.layout[0] != RT_LAYOUT_PLAIN || (pass != 1 && k->ic < 16));
            }
            conv_execute(&c, pass, &d, 3);
            int target = pass == 0 ? 2 : pass == 1 ? 0 : 1;
            load(&d.t[target]);
            char what[96];
            snprintf(what, sizeof what, "conv case %d pass %d", (int)i, pass);
            assert_close(&d.t[target], &d.want, what);
            close_kernel(&c.r);
            conv_drop(&d);
        }
}

/* Exactly PLAIN tensors: either refused, or right. Unnameable mixtures are refused. */
static void test_conv_given_layouts(void **state) {
    (void)state;
    if (absent(find(RT_OP_CONV2D, RT_DTYPE_F32, RT_KERN_ONEDNN) != NULL, RT_WITH_ONEDNN))
        return;
    const conv_case k = {2, 16, 6, 6, 16, 3, 1, 1};
    for (int pass = 0; pass < 3; pass++) {
        conv_data d = conv_make(&k, pass, 5);
        conv_run c = {.r.k = find(k_pass[pass], RT_DTYPE_F32, RT_KERN_ONEDNN)};
        conv_problem(&c, &k, pass, &d);
        if (c.r.k->supports(&c.r.p)) {
            open_kernel(&c.r);
            conv_execute(&c, pass, &d, 0);
            int target = pass == 0 ? 2 : pass == 1 ? 0 : 1;
            load(&d.t[target]);
            assert_close(&d.t[target], &d.want, "plain conv");
            close_kernel(&c.r);
        }
        c.layout[0] = c.layout[2] = RT_LAYOUT_C8; /* plain weights: the library has only its reference loop */
        conv_problem(&c, &k, pass, &d);
        assert_false(c.r.k->supports(&c.r.p));
        conv_drop(&d);
    }
}

/* ---- several threads, one state ---- */

enum { THREADS = 4, ROUNDS = 40 };

typedef struct shared_run {
    const conv_run *c;
    int pass, worker;
    conv_data d;
    const tensor *serial;
    size_t bytes;
    void *scratch;
    int differ;
} shared_run;

static void *run_shared(void *arg) {
    shared_run *s = arg;
    rt_kern_thread_init();
    tensor *out = &s->d.t[s->pass == 0 ? 2 : s->pass == 1 ? 0 : 1];
    conv_execute(s->c, s->pass, &s->d, s->worker);
    rt_kern_ctx ctx = {.worker = s->worker, .scratch = s->scratch};
    for (int i = 0; i < ROUNDS; i++) { /* nothing between the runs: the threads are in the library together */
        const void *in[2] = {NULL, NULL};
        for (int k = 0; k < 3; k++)
            if (k_place[s->pass][k] >= 0)
                in[k_place[s->pass][k]] = s->d.t[k].store;
        s->c->r.k->run(s->c->r.state, &s->c->r.p, out->store, in, &ctx);
        s->differ += memcmp(out->store, s->serial->store, s->bytes) != 0;
        memset(out->store, 0xff, s->bytes);
    }
    return NULL;
}

/* A plan may be compiled on a thread that never called rt_kern_thread_init; its primitives must be for one
 * thread all the same. */
typedef struct open_call {
    conv_run *c;
    const conv_case *k;
    int pass;
    const conv_data *d;
} open_call;

static void *open_unprepared(void *arg) {
    const open_call *o = arg;
    conv_open(o->c, o->k, o->pass, o->d);
    return NULL;
}

static void test_conv_threads(void **state) {
    (void)state;
    if (absent(find(RT_OP_CONV2D, RT_DTYPE_F32, RT_KERN_ONEDNN) != NULL, RT_WITH_ONEDNN))
        return;
    static const conv_case k_shared[] = {
        {4, 16, 16, 16, 16, 3, 1, 1},
        {4, 3, 16, 16, 16, 3, 1, 1},
        {4, 12, 9, 9, 20, 1, 2, 0},
        {8, 8, 12, 12, 8, 3, 1,
         1}, /* one block each way: a partition over threads would have to cut the batch */
    };
    for (int64_t i = 0; i < RT_COUNT(k_shared); i++)
        for (int pass = 0; pass < 3; pass++) {
            const conv_case *k = &k_shared[i];
            const int target = pass == 0 ? 2 : pass == 1 ? 0 : 1;
            conv_data serial[THREADS];
            shared_run s[THREADS];
            conv_run alone, c;
            pthread_t opener;
            serial[0] = conv_make(k, pass, 0);
            conv_open(&alone, k, pass, &serial[0]);
            open_call call = {&c, k, pass, &serial[0]};
            assert_int_equal(pthread_create(&opener, NULL, open_unprepared, &call), 0);
            pthread_join(opener, NULL);
            for (int t = 0; t < THREADS; t++) {
                if (t > 0)
                    serial[t] = conv_make(k, pass, (uint64_t)t * 31337);
                conv_execute(&alone, pass, &serial[t], 0);
                s[t] = (shared_run){.c = &c, .pass = pass, .worker = t, .serial = &serial[t].t[target]};
                s[t].d = conv_make(k, pass, (uint64_t)t * 31337);
                s[t].bytes = rt_desc_bytes(&serial[t].t[target].d);
                assert_int_equal(rt_alloc(&s[t].scratch, c.r.scratch_bytes + 64), RT_OK);
            }
            pthread_t id[THREADS];
            for (int t = 0; t < THREADS; t++)
                assert_int_equal(pthread_create(&id[t], NULL, run_shared, &s[t]), 0);
            for (int t = 0; t < THREADS; t++) {
                pthread_join(id[t], NULL);
                if (s[t].differ)
                    fail_msg("case %d pass %d thread %d: %d of %d runs differ from the serial one", (int)i,
                             pass, t, s[t].differ, ROUNDS);
                conv_drop(&s[t].d);
                conv_drop(&serial[t]);
                rt_free(s[t].scratch);
            }
            close_kernel(&alone.r);
            close_kernel(&c.r);
        }
}

/* ---- reorders ---- */

static void check_reorder(const rt_kern *k, rt_shape s, rt_layout from, rt_layout to) {
    tensor a = make(s, 77), b = make(s, 0);
    rt_desc in = rt_desc_make(RT_DTYPE_F32, s, from);
    const int32_t groups = 0;
    prepared r = {.k = k, .p = {.op = RT_OP_REORDER, .nin = 1, .in = &in, .in_groups = &groups, .n = 1}};
    r.p.out = rt_desc_make(RT_DTYPE_F32, s, to);
    if (k->supports(&r.p)) {
        open_kernel(&r);
        store(&a, from);
        alloc_store(&b, to, 0xff);
        run_kernel(&r, 1, b.store, (const void *const[1]){a.store});
        load(&b);
        for (int64_t i = 0; i < count4(&a.d); i++)
            if (a.v[i] != b.v[i])
                fail_msg("reorder %s -> %s: element %d is %g, not %g", rt_layout_name(from),
                         rt_layout_name(to), (int)i, b.v[i], a.v[i]);
        close_kernel(&r);
    } else {
        fail_msg("reorder %s -> %s is not supported", rt_layout_name(from), rt_layout_name(to));
    }
    drop(&a);
    drop(&b);
}

static void test_reorder(void **state) {
    (void)state;
    const rt_kern *k = find(RT_OP_REORDER, RT_DTYPE_F32, RT_KERN_ONEDNN);
    if (absent(k != NULL, RT_WITH_ONEDNN))
        return;
    static const int64_t k_shape[][4] = {{16, 16, 3, 3}, {16, 3, 3, 3}, {10, 5, 1, 1},
                                         {7, 20, 3, 3},  {32, 9, 2, 5}, {1, 1, 1, 1}};
    for (int64_t i = 0; i < RT_COUNT(k_shape); i++) {
        rt_shape s = rt_shape4(k_shape[i][0], k_shape[i][1], k_shape[i][2], k_shape[i][3]);
        for (int a = 0; a < RT_LAYOUT_W_WINO; a++)
            for (int b = 0; b < RT_LAYOUT_W_WINO; b++) {
                bool data_a = a <= RT_LAYOUT_C16, data_b = b <= RT_LAYOUT_C16;
                if (a != b && (data_a == data_b || a == RT_LAYOUT_PLAIN || b == RT_LAYOUT_PLAIN))
                    check_reorder(k, s, (rt_layout)a, (rt_layout)b);
            }
    }
}

/* ---- products ---- */

typedef struct gemm_case {
    rt_op op;
    int64_t count, m, n, k;
    bool ta, tb;
    int ga, gb, gc; /* batched operands: 1 */
} gemm_case;

static rt_shape gemm_shape(const gemm_case *c, int64_t rows, int64_t cols, int batched) {
    if (c->op == RT_OP_MATMUL)
        return rt_shape2(rows, cols);
    return batched ? rt_shape2(c->count * rows, cols) : rt_shape3(c->count, rows, cols);
}

static double value_at(const void *x, rt_dtype t, int64_t i) {
    return t == RT_DTYPE_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}
static void *values(rt_dtype t, int64_t n, uint64_t key) {
    void *x;
    assert_int_equal(rt_alloc(&x, (size_t)n * rt_dtype_size(t)), RT_OK);
    for (int64_t i = 0; i < n; i++) {
        double v = noise(key + (uint64_t)i);
        if (t == RT_DTYPE_F32)
            ((float *)x)[i] = (float)v;
        else
            ((double *)x)[i] = v;
    }
    return x;
}

static void check_gemm(const rt_kern *k, const gemm_case *c, rt_dtype t) {
    const int64_t count = c->op == RT_OP_MATMUL ? 1 : c->count;
    const int64_t ar = c->ta ? c->k : c->m, ac = c->ta ? c->m : c->k, br = c->tb ? c->n : c->k,
                  bc = c->tb ? c->k : c->n;
    const int32_t m = (int32_t)c->count, groups[2] = {c->ga ? m : 0, c->gb ? m : 0};
    const rt_desc in[2] = {rt_desc_make(t, gemm_shape(c, ar, ac, c->ga), RT_LAYOUT_PLAIN),
                           rt_desc_make(t, gemm_shape(c, br, bc, c->gb), RT_LAYOUT_PLAIN)};
    prepared r = {
        .k = k,
        .p = {.op = c->op, .nin = 2, .in = in, .in_groups = groups, .out_groups = c->gc ? m : 0, .n = 1}};
    r.p.attr.ta = c->ta;
    r.p.attr.tb = c->tb;
    r.p.out = rt_desc_make(t, gemm_shape(c, c->m, c->n, c->gc), RT_LAYOUT_PLAIN);
    assert_true(k->supports(&r.p));
    void *a = values(t, count * ar * ac, 1), *b = values(t, count * br * bc, 5000),
         *y = values(t, count * c->m * c->n, 9);
    memset(y, 0xff, (size_t)(count * c->m * c->n) * rt_dtype_size(t));
    open_kernel(&r);
    run_kernel(&r, 0, y, (const void *const[2]){a, b});
    for (int64_t g = 0; g < count; g++)
        for (int64_t i = 0; i < c->m; i++)
            for (int64_t j = 0; j < c->n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < c->k; l++)
                    sum += value_at(a, t, g * ar * ac + (c->ta ? l * ac + i : i * ac + l)) *
                           value_at(b, t, g * br * bc + (c->tb ? j * bc + l : l * bc + j));
                double got = value_at(y, t, (g * c->m + i) * c->n + j);
                if (!(fabs(got - sum) <= 1e-6 * (double)c->k))
                    fail_msg("%s %s: (%d, %d) of matrix %d is %g, not %g", k->impl, rt_op_get(c->op)->name,
                             (int)i, (int)j, (int)g, got, sum);
            }
    close_kernel(&r);
    rt_free(a);
    rt_free(b);
    rt_free(y);
}

static void test_gemm(void **state) {
    (void)state;
    static const unsigned k_family[] = {RT_KERN_ONEDNN, RT_KERN_VEC};
    for (int64_t f = 0; f < RT_COUNT(k_family); f++)
        for (int bits = 0; bits < 4; bits++) {
            const bool ta = bits & 1, tb = bits & 2;
            const gemm_case cases[] = {
                {RT_OP_MATMUL, 1, 5, 7, 3, ta, tb, 0, 0, 0}, {RT_OP_MATMUL, 2, 32, 10, 200, ta, tb, 0, 0, 0},
                {RT_OP_MATMUL, 1, 1, 1, 1, ta, tb, 0, 0, 0}, {RT_OP_BMM, 3, 4, 6, 5, ta, tb, 0, 0, 0},
                {RT_OP_BMM, 3, 4, 6, 5, false, tb, 1, 0, 1}, {RT_OP_BMM, 3, 4, 6, 5, true, false, 1, 1, 0},
                {RT_OP_BMM, 1, 16, 17, 33, ta, tb, 0, 0, 0},
            };
            for (int64_t i = 0; i < RT_COUNT(cases); i++) {
                const rt_kern *k = find(cases[i].op, RT_DTYPE_F32, k_family[f]);
                if (k)
                    check_gemm(k, &cases[i], RT_DTYPE_F32);
            }
        }
}

/* The same product on several threads at once, bit for bit; m is what one library call would split over
 * threads. */
enum { GEMM_M = 96, GEMM_N = 80, GEMM_K = 300 };

typedef struct gemm_run {
    prepared r;
    const void *in[2];
    float y[GEMM_M * GEMM_N];
    bool own_stack; /* for signals */
} gemm_run;

static void *run_gemm(void *arg) {
    gemm_run *g = arg;
    rt_kern_thread_init();
    for (int i = 0; i < ROUNDS; i++)
        run_kernel(&g->r, 0, g->y, g->in);
    return NULL;
}

static void test_gemm_threads(void **state) {
    (void)state;
    static const unsigned k_family[] = {RT_KERN_ONEDNN}; /* those without state or scratch */
    static gemm_run g[THREADS];
    const int32_t groups[2] = {0, 0};
    const rt_desc in[2] = {rt_desc_make(RT_DTYPE_F32, rt_shape2(GEMM_M, GEMM_K), RT_LAYOUT_PLAIN),
                           rt_desc_make(RT_DTYPE_F32, rt_shape2(GEMM_K, GEMM_N), RT_LAYOUT_PLAIN)};
    float *a = values(RT_DTYPE_F32, GEMM_M * GEMM_K, 1), *b = values(RT_DTYPE_F32, GEMM_K * GEMM_N, 2);
    for (int64_t f = 0; f < RT_COUNT(k_family); f++) {
        const rt_kern *k = find(RT_OP_MATMUL, RT_DTYPE_F32, k_family[f]);
        if (!k)
            continue;
        pthread_t id[THREADS];
        for (int t = 0; t < THREADS; t++) {
            g[t].r = (prepared){.k = k,
                                .p = {.op = RT_OP_MATMUL, .nin = 2, .in = in, .in_groups = groups, .n = 1}};
            g[t].r.p.out = rt_desc_make(RT_DTYPE_F32, rt_shape2(GEMM_M, GEMM_N), RT_LAYOUT_PLAIN);
            g[t].in[0] = a;
            g[t].in[1] = b;
            if (t == 0)
                run_gemm(&g[0]); /* alone, before the others */
            else
                assert_int_equal(pthread_create(&id[t], NULL, run_gemm, &g[t]), 0);
        }
        for (int t = 1; t < THREADS; t++) {
            pthread_join(id[t], NULL);
            assert_memory_equal(g[t].y, g[0].y, sizeof g[0].y);
        }
    }
    rt_free(a);
    rt_free(b);
}

/* ---- signals: their frames must not land in the heap, where oneDNN's product has the stack pointer ---- */

enum { SIGNALS = 2000 };
static uintptr_t stack_lo, stack_hi;
static _Atomic int ready, delivered, astray, over;
static char own_stack[1 << 16];

static void on_signal(int number) {
    (void)number;
    const char here = 0;
    const uintptr_t at = (uintptr_t)&here, own = (uintptr_t)own_stack;
    if ((at < stack_lo || at >= stack_hi) && (at < own || at >= own + sizeof own_stack))
        astray++;
    delivered++;
}

static void *run_until_over(void *arg) {
    pthread_attr_t attr;
    void *lo;
    size_t size;
    assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
    assert_int_equal(pthread_attr_getstack(&attr, &lo, &size), 0);
    pthread_attr_destroy(&attr);
    stack_lo = (uintptr_t)lo;
    stack_hi = stack_lo + size;
    stack_t before;
    if (((gemm_run *)arg)->own_stack) { /* as the program does */
        assert_int_equal(sigaltstack(&(stack_t){.ss_sp = own_stack, .ss_size = sizeof own_stack}, &before),
                         0);
        rt_sigguard_unneeded();
    }
    ready = 1;
    while (!over)
        run_gemm(arg);
    if (((gemm_run *)arg)->own_stack)
        sigaltstack(&before, NULL); /* sanitizers give threads one, and take it back */
    return NULL;
}

static void test_gemm_signals(void **state) {
    (void)state;
    static gemm_run g;
    const rt_kern *k = find(RT_OP_MATMUL, RT_DTYPE_F32, RT_KERN_ONEDNN);
    if (absent(k != NULL, RT_WITH_ONEDNN))
        return;
    const int32_t groups[2] = {0, 0};
    const rt_desc in[2] = {rt_desc_make(RT_DTYPE_F32, rt_shape2(GEMM_M, GEMM_K), RT_LAYOUT_PLAIN),
                           rt_desc_make(RT_DTYPE_F32, rt_shape2(GEMM_K, GEMM_N), RT_LAYOUT_PLAIN)};
    float *a = values(RT_DTYPE_F32, GEMM_M * GEMM_K, 1), *b = values(RT_DTYPE_F32, GEMM_K * GEMM_N, 2);
    for (int own = 0; own < 2; own++) {
        g = (gemm_run){.in = {a, b}, .own_stack = own};
        g.r = (prepared){.k = k, .p = {.op = RT_OP_MATMUL, .nin = 2, .in = in, .in_groups = groups, .n = 1}};
        g.r.p.out = rt_desc_make(RT_DTYPE_F32, rt_shape2(GEMM_M, GEMM_N), RT_LAYOUT_PLAIN);
        const struct sigaction act = {.sa_handler = on_signal, .sa_flags = own ? SA_ONSTACK : 0};
        assert_int_equal(sigaction(SIGUSR1, &act, NULL), 0);
        pthread_t id;
        ready = over = delivered = astray = 0;
        assert_int_equal(pthread_create(&id, NULL, run_until_over, &g), 0);
        while (!ready)
            sched_yield();
        for (int i = 0; i < SIGNALS; i++) {
            pthread_kill(id, SIGUSR1);
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        }
        over = 1;
        pthread_join(id, NULL);
        assert_true(delivered > 0);
        assert_int_equal(astray, 0);
    }
    rt_free(a);
    rt_free(b);
}

/* Rows of B 2 KiB apart: ours is the first choice, and its product right. */
static void test_gemm_strided(void **state) {
    (void)state;
    const rt_kern *list[MAX_KERN];
    int n = 0;
    assert_int_equal(rt_kern_list(RT_OP_MATMUL, RT_DTYPE_F32, RT_KERN_VEC, list, MAX_KERN, &n), RT_OK);
    if (absent(n >= 2, rt_cpu_isa() > RT_ISA_NONE))
        return;
    const gemm_case c = {RT_OP_MATMUL, 1, 9, 512, 130, false, false, 0, 0, 0};
    check_gemm(list[0], &c, RT_DTYPE_F32);
}

/* Shapes that do not fit, blocked operands and empty products are refused, not computed. */
static void test_gemm_refuses(void **state) {
    (void)state;
    static const unsigned k_family[] = {RT_KERN_ONEDNN, RT_KERN_VEC};
    for (int64_t f = 0; f < RT_COUNT(k_family); f++) {
        const rt_kern *k = find(RT_OP_MATMUL, RT_DTYPE_F32, k_family[f]);
        if (!k)
            continue;
        const int64_t dims[][6] = {
            {4, 3, 2, 5, 4, 5}, {4, 3, 3, 5, 5, 5}, {0, 3, 3, 5, 0, 5}, {4, 0, 0, 5, 4, 5}};
        for (int64_t i = 0; i < RT_COUNT(dims); i++) {
            const int32_t groups[2] = {0, 0};
            const rt_desc in[2] = {
                rt_desc_make(RT_DTYPE_F32, rt_shape2(dims[i][0], dims[i][1]), RT_LAYOUT_PLAIN),
                rt_desc_make(RT_DTYPE_F32, rt_shape2(dims[i][2], dims[i][3]), RT_LAYOUT_PLAIN)};
            rt_problem p = {.op = RT_OP_MATMUL, .nin = 2, .in = in, .in_groups = groups, .n = 1};
            p.out = rt_desc_make(RT_DTYPE_F32, rt_shape2(dims[i][4], dims[i][5]), RT_LAYOUT_PLAIN);
            assert_false(k->supports(&p));
        }
    }
}

/* ---- linear algebra ---- */

static void check_solve(const rt_kern *k, rt_op op, rt_dtype t, int64_t n, int64_t m, bool ta,
                        bool singular) {
    void *a = values(t, n * n, 3), *b = values(t, n * m, 4), *x = values(t, n * m, 5);
    for (int64_t i = 0; i < n; i++) { /* well conditioned, or of rank n - 1 */
        if (t == RT_DTYPE_F32)
            ((float *)a)[i * n + i] += (float)n;
        else
            ((double *)a)[i * n + i] += (double)n;
        if (singular)
            memset((char *)a + (size_t)(i * n) * rt_dtype_size(t), 0, rt_dtype_size(t));
    }
    const int32_t groups[2] = {0, 0};
    const rt_desc in[2] = {rt_desc_make(t, rt_shape2(n, n), RT_LAYOUT_PLAIN),
                           rt_desc_make(t, rt_shape2(n, m), RT_LAYOUT_PLAIN)};
    prepared r = {.k = k,
                  .p = {.op = op, .nin = op == RT_OP_SOLVE ? 2 : 1, .in = in, .in_groups = groups, .n = 1}};
    r.p.attr.ta = ta;
    r.p.out = rt_desc_make(t, rt_shape2(n, m), RT_LAYOUT_PLAIN);
    assert_true(k->supports(&r.p));
    open_kernel(&r);
    run_kernel(&r, 0, x, (const void *const[2]){a, b});
    const double tol = t == RT_DTYPE_F32 ? 1e-5 : 1e-12;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < m; j++) {
            if (singular) {
                assert_true(isnan(value_at(x, t, i * m + j)));
                continue;
            }
            double sum = 0, want = op == RT_OP_SOLVE ? value_at(b, t, i * m + j) : (double)(i == j);
            for (int64_t l = 0; l < n; l++)
                sum += value_at(a, t, ta ? l * n + i : i * n + l) * value_at(x, t, l * m + j);
            if (!(fabs(sum - want) <= tol))
                fail_msg("%s: residual %g at (%d, %d) of order %d", rt_op_get(op)->name, sum - want, (int)i,
                         (int)j, (int)n);
        }
    close_kernel(&r);
    rt_free(a);
    rt_free(b);
    rt_free(x);
}

static void test_linear_algebra(void **state) {
    (void)state;
    const rt_dtype t = RT_DTYPE_F32;
    const rt_kern *inv = find(RT_OP_MATINV, t, RT_KERN_VEC), *solve = find(RT_OP_SOLVE, t, RT_KERN_VEC);
    if (absent(inv && solve, rt_cpu_isa() > RT_ISA_NONE))
        return;
    for (int64_t n = 1; n <= 65; n += n < 20 ? 1 : 15) {
        check_solve(inv, RT_OP_MATINV, t, n, n, false, false);
        for (int ta = 0; ta < 2; ta++)
            check_solve(solve, RT_OP_SOLVE, t, n, n + 3, ta, false);
    }
    check_solve(inv, RT_OP_MATINV, t, 4, 4, false, true);
    check_solve(solve, RT_OP_SOLVE, t, 4, 2, true, true);
}

int main(void) {
    rt_kern_thread_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),         cmocka_unit_test(test_conv_given_layouts),
        cmocka_unit_test(test_conv_threads), cmocka_unit_test(test_reorder),
        cmocka_unit_test(test_gemm),         cmocka_unit_test(test_gemm_threads),
        cmocka_unit_test(test_gemm_signals), cmocka_unit_test(test_gemm_strided),
        cmocka_unit_test(test_gemm_refuses), cmocka_unit_test(test_linear_algebra),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
