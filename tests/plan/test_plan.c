/*
 * Optimised plans against the interpreter, on random networks: every pass alone and together, any number of
 * slices, kernels of every family; and the same bits for any number of workers.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "kern/kern.h"
#include "plan/plan.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { BATCH = 8, MAX_PARAMS = 64, MAX_OUT = 160 };

typedef struct net {
    rt_graph *g;
    uint64_t seed, draws;
    int nparam;
    rt_shape shape[MAX_PARAMS];
    rt_val leaf[MAX_PARAMS];
    bool trained[MAX_PARAMS];
    double around[MAX_PARAMS]; /* parameters are drawn around this */
    float *param[MAX_PARAMS];
    float *x;
    int32_t *y;
    float *mix;
    rt_shape row;
} net;

static uint64_t draw(net *t, uint64_t n) {
    return rt_rng_below(rt_rng_make(t->seed, RT_RNG_TEST, 1, 0), t->draws++, n);
}

static rt_val param(net *t, rt_shape s, double around, bool trained) {
    const int k = t->nparam++;
    assert_true(k < MAX_PARAMS);
    char name[32];
    snprintf(name, sizeof name, "p%d", k);
    t->shape[k] = s;
    t->around[k] = around;
    t->trained[k] = trained;
    return t->leaf[k] = rt_graph_param(t->g, k, name, s);
}

static int64_t dim(const net *t, rt_val v, int i) {
    return rt_graph_node(t->g, v)->type.shape.d[i];
}
static int groups(const net *t, rt_val v) {
    return rt_graph_node(t->g, v)->type.groups;
}

static rt_val random_conv(net *t, rt_val x) {
    static const int64_t OUT[] = {3, 8, 16, 24};
    const int64_t oc = OUT[draw(t, 4)], ic = dim(t, x, 1);
    const int k = draw(t, 3) == 0 ? 1 : 3;
    const int stride = dim(t, x, 2) > 3 && draw(t, 3) == 0 ? 2 : 1;
    const rt_val w = param(t, rt_shape4(oc, ic, k, k), 0, true);
    return rt_conv2d(t->g, x, w, stride, k / 2);
}

static rt_val random_norm(net *t, rt_val x, bool train) {
    const int64_t c = dim(t, x, 1);
    const rt_val gamma = param(t, rt_shape1(c), 1, true), beta = param(t, rt_shape1(c), 0, true);
    const rt_val mean = param(t, rt_shape1(c), 0, false), var = param(t, rt_shape1(c), 2, false);
    if (!train)
        return rt_batch_norm_eval(t->g, x, gamma, beta, mean, var, 1e-5, 1);
    const rt_bn_result r = rt_batch_norm_train(t->g, x, gamma, beta, mean, var, 1e-5, 0.1, 1);
    rt_graph_update(t->g, mean, r.mean);
    rt_graph_update(t->g, var, r.var);
    return r.y;
}

/* Outputs: loss, logits, and the gradients of all trained parameters and of the inputs. */
static void add_outputs(net *t, rt_val x, rt_val z, rt_val y) {
    const rt_val loss = rt_batch_mean(t->g, rt_ce_label(t->g, z, y, 0.1));
    rt_graph_output(t->g, "loss", loss);
    rt_graph_output(t->g, "z", z);
    rt_val wrt[MAX_PARAMS + 1], grad[MAX_PARAMS + 1];
    int n = 0;
    for (int i = 0; i < t->nparam; i++)
        if (t->trained[i])
            wrt[n++] = t->leaf[i];
    wrt[n++] = x;
    assert_int_equal(rt_graph_grad(t->g, loss, wrt, n, grad), RT_OK);
    for (int i = 0; i < n; i++)
        if (grad[i] != 0) {
            char name[32];
            snprintf(name, sizeof name, "g%d", i);
            rt_graph_output(t->g, name, grad[i]);
        }
    if (rt_graph_status(t->g) != RT_OK)
        fail_msg("seed %llu: %s", (unsigned long long)t->seed, rt_error_text());
}

/* Networks large enough for the Winograd kernels, in the orders that passes fuse: normalisation before the
 * convolution (0), behind it with a bias and sizes that fill neither tiles nor blocks (1), with fixed
 * statistics (2), and with members that scale inputs and outputs (3). */
enum { LARGE = 1 << 20, LARGE_KINDS = 4 };
static rt_val large_conv(net *t, rt_val x, int64_t oc) {
    return rt_conv2d(t->g, x, param(t, rt_shape4(oc, dim(t, x, 1), 3, 3), 0, true), 1, 1);
}
static rt_val large_scale(net *t, rt_val x) {
    return rt_mul_chan(t->g, x, param(t, rt_shape2(groups(t, x), dim(t, x, 1)), 1, true));
}
/* A convolution of a BatchEnsemble. */
static rt_val large_fast(net *t, rt_val x, int64_t oc, int k, int stride) {
    const rt_val w = param(t, rt_shape4(oc, dim(t, x, 1), k, k), 0, true);
    return large_scale(t, rt_conv2d(t->g, large_scale(t, x), w, stride, k / 2));
}
static void build_large(net *t, rt_dtype dtype) {
    const int kind = (int)(t->seed - LARGE) % LARGE_KINDS;
    const int64_t c = kind == 1 ? 12 : 16, size = kind == 1 ? 14 : 16;
    t->row = rt_shape3(c, size, size);
    const rt_val x = rt_graph_input(t->g, "x", dtype, t->row, 1);
    rt_val y = rt_graph_input(t->g, "y", RT_DTYPE_I32, rt_shape0(), 1);
    rt_graph_feed(t->g, "mix", dtype, rt_shape0());
    rt_val h = large_conv(t, x, 2 * c);
    switch (kind) {
    case 1: { /* post-activation */
        const rt_val bias = param(t, rt_shape1(2 * c), 0, true);
        h = rt_relu(t->g, random_norm(t, rt_add_chan(t->g, h, bias), true));
        const rt_val u = rt_relu(t->g, random_norm(t, large_conv(t, h, 2 * c), true));
        h = rt_relu(t->g, rt_add(t->g, random_norm(t, large_conv(t, u, 2 * c), true), h));
        h = large_conv(t, h, c);
        break;
    }
    case 3: { /* BatchEnsemble */
        h = rt_tile_members(t->g, h, 2);
        y = rt_tile_members(t->g, y, 2);
        h = rt_add(t->g, large_fast(t, rt_relu(t->g, random_norm(t, h, true)), 2 * c, 3, 1), h);
        const rt_val u = large_fast(t, rt_relu(t->g, random_norm(t, h, true)), 2 * c, 3, 1);
        const rt_val v = large_fast(t, rt_relu(t->g, random_norm(t, u, true)), 2 * c, 3, 2);
        h = rt_add(t->g, v, large_fast(t, h, 2 * c, 1, 2));
        break;
    }
    default: { /* pre-activation, twice */
        const bool train = kind == 0;
        for (int i = 0; i < 2; i++) {
            const rt_val u = large_conv(t, rt_relu(t->g, random_norm(t, h, train)), 2 * c);
            h = rt_add(t->g, h, large_conv(t, rt_relu(t->g, random_norm(t, u, train)), 2 * c));
        }
    }
    }
    const rt_val p = rt_global_avgpool(t->g, rt_relu(t->g, random_norm(t, h, true)));
    add_outputs(t, x, rt_matmul(t->g, p, param(t, rt_shape2(5, dim(t, h, 1)), 0, true), false, true), y);
}

static void build_as(net *t, uint64_t seed, rt_dtype dtype) {
    *t = (net){.seed = seed};
    assert_int_equal(rt_graph_create(&t->g, BATCH, dtype), RT_OK);
    if (seed >= LARGE) {
        build_large(t, dtype);
        return;
    }
    static const int64_t CH[] = {1, 3, 8, 16};
    const int64_t w = 4 + (int64_t)draw(t, 5),
                  h0 = 4 + (int64_t)draw(t, 5); /* one by one: compilers order arguments */
    t->row = rt_shape3(CH[draw(t, 4)], h0, w);
    const rt_val x = rt_graph_input(t->g, "x", dtype, t->row, 1);
    rt_val y = rt_graph_input(t->g, "y", RT_DTYPE_I32, rt_shape0(), 1);
    const rt_val mix = rt_graph_feed(t->g, "mix", dtype, rt_shape0());
    rt_val h = random_conv(t, x), skip = h;
    const int depth = 3 + (int)draw(t, 8);
    for (int i = 0; i < depth; i++) {
        switch (draw(t, 12)) {
        case 0:
        case 1:
            h = random_conv(t, h);
            break;
        case 2:
        case 3:
            h = random_norm(t, h, true);
            break;
        case 4:
            h = random_norm(t, h, false);
            break;
        case 5:
            h = rt_relu(t->g, h);
            break;
        case 6:
            h = rt_dropout(t->g, h, 0.25, (uint64_t)i + 1);
            break;
        case 7:
            if (rt_shape_equal(&rt_graph_node(t->g, h)->type.shape, &rt_graph_node(t->g, skip)->type.shape))
                h = rt_add(t->g, h, skip);
            skip = h;
            break;
        case 8:
            if (groups(t, h) == 1)
                h = rt_tile_members(t->g, h, 3);
            else
                h = rt_mul_chan(t->g, h, param(t, rt_shape2(3, dim(t, h, 1)), 1, true));
            break;
        case 9:
            if (dim(t, h, 2) >= 4 && dim(t, h, 3) >= 4)
                h = rt_maxpool(t->g, h, 2, 2, 0);
            break;
        case 10:
            h = rt_unary(t->g, RT_OP_SOFTPLUS, rt_mul_scalar(t->g, h, mix));
            break;
        default:
            h = rt_leaky_relu(t->g, rt_add_chan(t->g, h, param(t, rt_shape1(dim(t, h, 1)), 0, true)), 0.2);
            break;
        }
    }
    h = draw(t, 2) == 0 ? rt_global_avgpool(t->g, h) : rt_flatten(t->g, h);
    h = rt_relu(t->g, rt_matmul(t->g, h, param(t, rt_shape2(20, dim(t, h, 1)), 0, true), false, true));
    rt_val z = rt_matmul(t->g, h, param(t, rt_shape2(5, 20), 0, true), false, true);
    if (groups(t, z) > 1)
        y = rt_tile_members(t->g, y, groups(t, z));
    rt_graph_output(t->g, "p", rt_softmax(t->g, z));
    add_outputs(t, x, z, y);
}

static void build(net *t, uint64_t seed) {
    build_as(t, seed, RT_DTYPE_F32);
}

static void fill(net *t) {
    const rt_rng r = rt_rng_make(t->seed, RT_RNG_TEST, 2, 0);
    uint64_t at = 0;
    for (int i = 0; i < t->nparam; i++) {
        const int64_t n = rt_shape_elems(&t->shape[i]);
        assert_int_equal(rt_alloc(&t->param[i], (size_t)n * sizeof(float)), RT_OK);
        for (int64_t k = 0; k < n; k++)
            t->param[i][k] = (float)(t->around[i] + 0.3 * rt_rng_normal(r, at++));
    }
    const int64_t n = BATCH * rt_shape_elems(&t->row);
    assert_int_equal(rt_alloc(&t->x, (size_t)n * sizeof(float)), RT_OK);
    assert_int_equal(rt_alloc(&t->y, BATCH * sizeof(int32_t)), RT_OK);
    assert_int_equal(rt_alloc(&t->mix, sizeof(float)), RT_OK);
    *t->mix = 0.7f;
    for (int64_t k = 0; k < n; k++)
        t->x[k] = (float)rt_rng_normal(r, at++);
    for (int k = 0; k < BATCH; k++)
        t->y[k] = (int32_t)rt_rng_below(r, at++, 5);
}

static void drop(net *t) {
    for (int i = 0; i < t->nparam; i++)
        rt_free(t->param[i]);
    rt_free(t->x);
    rt_free(t->y);
    rt_free(t->mix);
    rt_graph_destroy(&t->g);
}

typedef struct results {
    int n;
    int64_t count[MAX_OUT];
    float *v[MAX_OUT];
} results;

static void results_make(results *r, const rt_graph *g) {
    r->n = rt_graph_outputs(g);
    assert_true(r->n < MAX_OUT);
    for (int i = 0; i < r->n; i++) {
        r->count[i] = rt_shape_elems(&rt_graph_node(g, rt_graph_get_output(g, i)->v)->type.shape);
        assert_int_equal(rt_calloc(&r->v[i], (size_t)r->count[i], sizeof(float)), RT_OK);
    }
}
static void results_drop(results *r) {
    for (int i = 0; i < r->n; i++)
        rt_free(r->v[i]);
}

static const rt_run RUN = {.seed = 11, .step = 3};

static double *widen(const float *x, int64_t n) {
    double *d = NULL;
    assert_int_equal(rt_alloc(&d, (size_t)n * sizeof *d), RT_OK);
    for (int64_t i = 0; i < n; i++)
        d[i] = (double)x[i];
    return d;
}

/* The oracle: the same network built in f64, run by the interpreter. */
static void by_interpreter(const net *t, results *r) {
    net d;
    build_as(&d, t->seed, RT_DTYPE_F64);
    double *params[MAX_PARAMS], *out[MAX_OUT];
    for (int i = 0; i < t->nparam; i++)
        params[i] = widen(t->param[i], rt_shape_elems(&t->shape[i]));
    double *x = widen(t->x, BATCH * rt_shape_elems(&t->row)), *mix = widen(t->mix, 1);
    results_make(r, t->g);
    for (int i = 0; i < r->n; i++)
        assert_int_equal(rt_alloc(&out[i], (size_t)r->count[i] * sizeof(double)), RT_OK);
    const void *inputs[] = {x, t->y}, *feeds[] = {mix};
    assert_int_equal(rt_interp_run(d.g, (const void *const *)params, inputs, feeds, (void *const *)out, RUN),
                     RT_OK);
    for (int i = 0; i < r->n; i++) {
        for (int64_t k = 0; k < r->count[i]; k++)
            r->v[i][k] = (float)out[i][k];
        rt_free(out[i]);
    }
    for (int i = 0; i < t->nparam; i++)
        rt_free(params[i]);
    rt_free(x);
    rt_free(mix);
    rt_graph_destroy(&d.g);
}

/* Updates of parameters are read back from the parameters, which are then restored. */
static void by_plan(const net *t, rt_plan_options o, int workers, results *r) {
    rt_plan *p = NULL;
    rt_pool *pool = NULL;
    rt_exec *e = NULL;
    results_make(r, t->g);
    if (rt_plan_compile(&p, t->g, o) != RT_OK)
        fail_msg("seed %llu: %s", (unsigned long long)t->seed, rt_error_text());
    assert_int_equal(rt_pool_create(&pool, workers), RT_OK);
    assert_int_equal(rt_exec_create(&e, p, pool), RT_OK);
    float *keep[MAX_PARAMS];
    for (int i = 0; i < t->nparam; i++) {
        const size_t bytes = (size_t)rt_shape_elems(&t->shape[i]) * sizeof(float);
        assert_int_equal(rt_alloc(&keep[i], bytes), RT_OK);
        memcpy(keep[i], t->param[i], bytes);
        rt_exec_bind_param(e, i, t->param[i]);
    }
    rt_exec_bind_input(e, 0, t->x);
    rt_exec_bind_input(e, 1, t->y);
    rt_exec_bind_feed(e, 0, t->mix);
    for (int i = 0; i < r->n; i++)
        if (rt_graph_get_output(t->g, i)->update_slot < 0)
            rt_exec_bind_output(e, i, r->v[i]);
    rt_exec_run(&e, &RUN, 1, pool);
    for (int i = 0; i < r->n; i++) {
        const int slot = rt_graph_get_output(t->g, i)->update_slot;
        if (slot >= 0)
            memcpy(r->v[i], t->param[slot], (size_t)r->count[i] * sizeof(float));
    }
    for (int i = 0; i < t->nparam; i++) {
        memcpy(t->param[i], keep[i], (size_t)rt_shape_elems(&t->shape[i]) * sizeof(float));
        rt_free(keep[i]);
    }
    rt_exec_destroy(&e);
    rt_plan_destroy(&p);
    rt_pool_destroy(&pool);
}

static void compare(const net *t, const results *a, const results *b, double tolerance, const char *what) {
    for (int i = 0; i < a->n; i++) {
        double top = 1e-2, err = 0;
        for (int64_t k = 0; k < a->count[i]; k++) {
            top = fmax(top, fabs((double)a->v[i][k]));
            err = fmax(err, fabs((double)a->v[i][k] - (double)b->v[i][k]));
            if (isnan(a->v[i][k]) != isnan(b->v[i][k]))
                err = INFINITY;
        }
        if (!(err <= tolerance * top)) {
            rt_str s;
            rt_str_init(&s);
            rt_graph_print(t->g, &s);
            print_message("%s", rt_str_text(&s));
            rt_str_deinit(&s);
            fail_msg("seed %llu, %s: output %s differs by %g of %g", (unsigned long long)t->seed, what,
                     rt_graph_get_output(t->g, i)->name, err, top);
        }
    }
}

static void test_random_networks(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        net t;
        build(&t, seed);
        fill(&t);
        results want;
        by_interpreter(&t, &want);
        for (int variant = 0; variant < RT_PASS_COUNT + 6; variant++) {
            rt_plan_options o = {.slice = (int64_t)1 << (variant % 4)};
            char what[64];
            snprintf(what, sizeof what, "slice %lld", (long long)o.slice);
            if (variant < RT_PASS_COUNT) {
                o.skip = 1u << variant;
                snprintf(what, sizeof what, "without %s", rt_pass_name((rt_pass)variant));
            } else if (variant == RT_PASS_COUNT) {
                o.forbid = RT_KERN_VEC;
                snprintf(what, sizeof what, "without vector kernels");
            } else if (variant == RT_PASS_COUNT + 1) {
                o.forbid = RT_KERN_ONEDNN;
                snprintf(what, sizeof what, "without oneDNN");
            }
            results got;
            by_plan(&t, o, 1 + variant % 3, &got);
            compare(&t, &want, &got, 1e-3, what); /* stacked BN cancels gradients almost wholly */
            results_drop(&got);
        }
        results_drop(&want);
        drop(&t);
    }
}

/* Convolutions by Winograd inside a plan: transformed weights, fused loads, stores and statistics, slices, sums
 * of gradients; every pass switched off, and the same bits for any number of workers. */
static void test_large_network(void **state) {
    (void)state;
    for (uint64_t seed = LARGE; seed < LARGE + LARGE_KINDS; seed++) {
        net t;
        build(&t, seed);
        fill(&t);
        results want, one;
        by_interpreter(&t, &want);
        by_plan(&t, (rt_plan_options){.slice = 4}, 1, &one);
        compare(&t, &want, &one, 1e-3, "large network");
        for (int workers = 2; workers <= 4; workers++) {
            results many;
            by_plan(&t, (rt_plan_options){.slice = 4}, workers, &many);
            for (int i = 0; i < one.n; i++)
                assert_memory_equal(one.v[i], many.v[i], (size_t)one.count[i] * sizeof(float));
            results_drop(&many);
        }
        for (int pass = 0; pass < RT_PASS_COUNT; pass++) {
            results got;
            by_plan(&t, (rt_plan_options){.slice = 8, .skip = 1u << pass}, 2, &got);
            compare(&t, &want, &got, 1e-3, rt_pass_name((rt_pass)pass));
            results_drop(&got);
        }
        results_drop(&want);
        results_drop(&one);
        drop(&t);
    }
}

/* How often text occurs in the plan of a network. */
static int count_in_plan(const rt_graph *g, rt_plan_options o, const char *text) {
    rt_plan *p = NULL;
    rt_str s;
    int n = 0;
    rt_str_init(&s);
    assert_int_equal(rt_plan_compile(&p, g, o), RT_OK);
    rt_plan_print(p, &s);
    for (const char *at = rt_str_text(&s); (at = strstr(at, text)) != NULL; at++)
        n++;
    rt_str_deinit(&s);
    rt_plan_destroy(&p);
    return n;
}

/* Nothing normalised, masked or summed in passes of its own where convolutions can do it. */
static void test_fused_convolutions(void **state) {
    (void)state;
    net t;
    build(&t, LARGE);
    const rt_plan_options on = {.slice = 4}, off = {.slice = 4, .skip = 1u << RT_PASS_FUSE_CONV};
    assert_int_equal(count_in_plan(t.g, on, "steps  3x3 convolutions of stride 1"),
                     1); /* the rule they run by */
    assert_int_equal(count_in_plan(t.g, off, "fused_conv["), 0);
    assert_int_equal(count_in_plan(t.g, on, "fused_conv[bn_apply relu conv2d "), 4);
    assert_int_equal(count_in_plan(t.g, on, "fused_conv[bn_apply relu conv2d add bn_stats]"), 2);
    assert_int_equal(count_in_plan(t.g, on, "conv2d_bwd_data bn_relu_bwd bn_gstats]"), 4);
    assert_int_equal(count_in_plan(t.g, on, "conv2d_bwd_weights]"), 5);
    assert_int_equal(count_in_plan(t.g, on, "  with %"), 4 + 4 + 1);
    assert_int_equal(count_in_plan(t.g, on, "chain[bn_apply relu]"), 2); /* before the pool, and again */
    drop(&t);
}

/* Both gradients of a convolution in one sweep, where they load the same: the same bits as in two. */
static void test_joined_gradients(void **state) {
    (void)state;
    static const int JOINED[LARGE_KINDS] = {4, 0, 4, 0};
    for (int kind = 0; kind < LARGE_KINDS; kind++) {
        net t;
        results one, two;
        build(&t, LARGE + (uint64_t)kind);
        fill(&t);
        for (int64_t slice = 4; slice <= BATCH; slice += BATCH - 4) {
            const rt_plan_options on = {.slice = slice}, off = {.slice = slice, .skip = 1u << RT_PASS_JOIN};
            assert_int_equal(count_in_plan(t.g, on, "  in the same sweep"), JOINED[kind]);
            assert_int_equal(count_in_plan(t.g, off, "  in the same sweep"), 0);
            by_plan(&t, on, 2, &one);
            by_plan(&t, off, 1, &two);
            for (int i = 0; i < one.n; i++)
                assert_memory_equal(one.v[i], two.v[i], (size_t)one.count[i] * sizeof(float));
            results_drop(&one);
            results_drop(&two);
        }
        drop(&t);
    }
}

/* A BatchEnsemble's r and s are in loads and stores, and nothing is read again for their gradients. */
static void test_fused_fast(void **state) {
    (void)state;
    net t;
    build(&t, LARGE + 3);
    const rt_plan_options on = {.slice = 4}, off = {.slice = 4, .skip = 1u << RT_PASS_RANK1};
    assert_int_equal(count_in_plan(t.g, off, "rank1_bwd("), 0);
    assert_int_equal(count_in_plan(t.g, off, "chan_dot("), 8);
    /* without oneDNN the layer of one tap has but the reference, and stays as it is */
    assert_int_equal(count_in_plan(t.g, on, "rank1_bwd("), RT_WITH_ONEDNN ? 12 : 9);
    assert_int_equal(count_in_plan(t.g, on, "chan_dot("), RT_WITH_ONEDNN ? 0 : 2);
    assert_int_equal(count_in_plan(t.g, on, "fused_conv[bn_apply relu mul_chan conv2d mul_chan "), 2);
    assert_int_equal(count_in_plan(t.g, on, "conv2d_bwd_data mul_chan bn_relu_bwd bn_gstats]"), 2);
    assert_int_equal(count_in_plan(t.g, on, "fused_conv[bn_gapply mul_chan conv2d_bwd_data "), 1);
    drop(&t);
}

/* Gradients per member that are larger than the data of a slice are left alone. */
static void test_large_fast(void **state) {
    (void)state;
    for (int64_t size = 4; size <= 8; size += 4) {
        net t = {0};
        assert_int_equal(rt_graph_create(&t.g, BATCH, RT_DTYPE_F32), RT_OK);
        const rt_val x = rt_graph_input(t.g, "x", RT_DTYPE_F32, rt_shape3(64, size, size), 1),
                     y = rt_graph_input(t.g, "y", RT_DTYPE_I32, rt_shape0(), 1);
        const rt_val z = large_fast(&t, rt_tile_members(t.g, x, 2), 64, 3, 1);
        add_outputs(&t, x, rt_global_avgpool(t.g, z), rt_tile_members(t.g, y, 2));
        assert_int_equal(count_in_plan(t.g, (rt_plan_options){.slice = 8}, "rank1_bwd("), size == 4 ? 0 : 3);
        drop(&t);
    }
}

/* No pass over the results of small layers: biases, ReLUs and their masks are in the stores of products. */
static void test_fused_products(void **state) {
    (void)state;
    net t = {0};
    assert_int_equal(rt_graph_create(&t.g, 8, RT_DTYPE_F32), RT_OK);
    const rt_val x = rt_graph_input(t.g, "x", RT_DTYPE_F32, rt_shape1(5), 1),
                 y = rt_graph_input(t.g, "y", RT_DTYPE_I32, rt_shape0(), 1);
    rt_val z = x;
    static const int64_t widths[] = {20, 12, 3};
    for (int i = 0; i < 3; i++) {
        const rt_val w = param(&t, rt_shape2(widths[i], dim(&t, z, 1)), 0, true),
                     b = param(&t, rt_shape1(widths[i]), 0, true);
        z = rt_add_chan(t.g, rt_matmul(t.g, z, w, false, true), b);
        z = i < 2 ? rt_relu(t.g, z) : z;
    }
    add_outputs(&t, x, z, y);
    const rt_plan_options on = {0}, off = {.skip = 1u << RT_PASS_FUSE_DENSE};
    assert_int_equal(count_in_plan(t.g, off, "fused_matmul["), 0);
    assert_int_equal(count_in_plan(t.g, on, "fused_matmul[matmul add_chan relu]"), 2);
    assert_int_equal(count_in_plan(t.g, on, "fused_matmul[matmul add_chan]"), 1);
    assert_int_equal(count_in_plan(t.g, on, "fused_matmul[matmul relu_bwd]"), 2);
    assert_int_equal(count_in_plan(t.g, on, "relu_bwd](") - count_in_plan(t.g, on, "[matmul relu_bwd]("), 0);
    drop(&t);
}

static void test_same_bits_for_any_workers(void **state) {
    (void)state;
    for (uint64_t seed = 100; seed < 120; seed++) {
        net t;
        build(&t, seed);
        fill(&t);
        results one;
        by_plan(&t, (rt_plan_options){.slice = 2}, 1, &one);
        for (int workers = 2; workers <= 4; workers++) {
            results many;
            by_plan(&t, (rt_plan_options){.slice = 2}, workers, &many);
            for (int i = 0; i < one.n; i++)
                if (memcmp(one.v[i], many.v[i], (size_t)one.count[i] * sizeof(float)) != 0)
                    fail_msg("seed %llu: output %d differs between 1 and %d workers",
                             (unsigned long long)seed, i, workers);
            results_drop(&many);
        }
        results_drop(&one);
        drop(&t);
    }
}

/* Members: several execs of one plan at once give what each gives alone, and running allocates nothing. */
static void test_members_and_allocation(void **state) {
    (void)state;
    net t;
    build(&t, 200);
    fill(&t);
    results one;
    by_plan(&t, (rt_plan_options){.slice = 2}, 2, &one);
    rt_plan *p = NULL;
    rt_pool *pool = NULL;
    rt_exec *e[5];
    float *loss[5];
    rt_run runs[5];
    assert_int_equal(rt_plan_compile(&p, t.g, (rt_plan_options){.slice = 2}), RT_OK);
    assert_int_equal(rt_pool_create(&pool, 2), RT_OK);
    float *params[5][MAX_PARAMS];
    for (int m = 0; m < 5; m++) {
        assert_int_equal(rt_exec_create(&e[m], p, pool), RT_OK);
        assert_int_equal(rt_calloc(&loss[m], 1, sizeof(float)), RT_OK);
        for (int i = 0; i < t.nparam; i++) {
            const size_t bytes = (size_t)rt_shape_elems(&t.shape[i]) * sizeof(float);
            assert_int_equal(rt_alloc(&params[m][i], bytes), RT_OK);
            memcpy(params[m][i], t.param[i], bytes);
            rt_exec_bind_param(e[m], i, params[m][i]);
        }
        rt_exec_bind_input(e[m], 0, t.x);
        rt_exec_bind_input(e[m], 1, t.y);
        rt_exec_bind_feed(e[m], 0, t.mix);
        for (int i = 0; i < one.n; i++)
            if (strcmp(rt_graph_get_output(t.g, i)->name, "loss") == 0)
                rt_exec_bind_output(e[m], i, loss[m]);
        runs[m] = RUN;
    }
    rt_alloc_stats before, after;
    rt_alloc_get_stats(&before);
    for (int step = 0; step < 3; step++)
        rt_exec_run(e, runs, 5, pool);
    rt_alloc_get_stats(&after);
    assert_int_equal(before.total_calls, after.total_calls);
    for (int m = 0; m < 5; m++) {
        assert_memory_equal(loss[m], loss[0], sizeof(float));
        rt_exec_destroy(&e[m]);
        rt_free(loss[m]);
        for (int i = 0; i < t.nparam; i++)
            rt_free(params[m][i]);
    }
    rt_pool_destroy(&pool);
    rt_plan_destroy(&p);
    results_drop(&one);
    drop(&t);
}

static void test_print_and_errors(void **state) {
    (void)state;
    net t;
    build(&t, 7);
    rt_plan *p = NULL;
    for (int whole = 0; whole < 2; whole++) { /* sums are completed only where there are several slices */
        const rt_plan_options o = {.slice = 1, .whole_batch = whole};
        assert_int_equal(rt_plan_compile(&p, t.g, o), RT_OK);
        rt_str s;
        rt_str_init(&s);
        rt_plan_print(p, &s);
        assert_non_null(strstr(rt_str_text(&s), "lap 0"));
        assert_non_null(strstr(rt_str_text(&s), "steps  what is left"));
        assert_int_equal(strstr(rt_str_text(&s), "sum over slices") == NULL, rt_plan_slices(p) == 1);
        assert_true(whole == (rt_plan_slices(p) == 1));
        rt_str_deinit(&s);
        rt_plan_destroy(&p);
    }
    rt_graph_output(t.g, "bad", rt_add(t.g, t.leaf[0], rt_graph_scalar(t.g, 1.0)));
    assert_int_not_equal(rt_plan_compile(&p, t.g, (rt_plan_options){0}), RT_OK);
    assert_null(p);
    drop(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_networks),
        cmocka_unit_test(test_large_network),
        cmocka_unit_test(test_fused_convolutions),
        cmocka_unit_test(test_joined_gradients),
        cmocka_unit_test(test_fused_fast),
        cmocka_unit_test(test_large_fast),
        cmocka_unit_test(test_fused_products),
        cmocka_unit_test(test_same_bits_for_any_workers),
        cmocka_unit_test(test_members_and_allocation),
        cmocka_unit_test(test_print_and_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
