/*
 * op_cases.h - problems for every operation of op.def, in one table that the tests of kernels and of
 * gradients share.
 *
 * Most operations are described by a form: one letter per operand, for dimensions (groups g, rows n, channels
 * c, h, w). The form is swept over a list of dimensions around vector widths. Products, convolutions, pooling
 * and matrices have lists of their own. Operands are filled by a rule that keeps away from kinks (0, the
 * limits of CLIP), poles and ties.
 *
 *     X  batched (g n, c[, h, w])       P  the same, positive         Q  the same, rows are distributions
 *     J  the same in i32                O  one group (n, c[, h, w])   E  batched (g n, c), with 4-D dimensions
 *     R  batched (g n)                  L  labels (g n) below c       I  index below g
 *     S  global scalar                  C  global (c)                 p  the same, positive
 *     G  global (n, c)                  M  global (g, c)              B  global (g, n, c)
 *     V  global (c[, h, w])             W  global (c, c, 3, 3)        A  global (c, c)
 *     D  f64 statistics (2, k)          K  coefficients (4, k)        k  gradient coefficients (3, k)
 *     U  gamma, beta: (c)               with k = c, or g c if the form has a set per group
 */
#ifndef RT_TESTS_OP_CASES_H
#define RT_TESTS_OP_CASES_H

#include "base/alloc.h"
#include "base/rng.h"
#include "kern/kern.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { OP_CASE_IN = 4 };
typedef enum op_fill {
    FILL_ANY,
    FILL_POS,
    FILL_DIST,
    FILL_LABEL,
    FILL_INDEX,
    FILL_STATS,
    FILL_MATRIX
} op_fill;

typedef struct op_case {
    rt_op op;
    rt_attr attr;
    int64_t n;
    int nin;
    rt_type in[OP_CASE_IN];
    op_fill fill[OP_CASE_IN];
    int64_t limit; /* of labels and indices */
    const rt_chain *chain;
} op_case;

typedef void (*op_case_fn)(void *user, const op_case *c);

typedef struct op_sweep {
    rt_dtype dtype;
    int64_t max_elems; /* leave out cases with an operand larger than this; 0: none */
    op_case_fn fn;
    void *user;
} op_sweep;

/* ---- dimensions ---- */

typedef struct op_dims {
    int64_t g, n, c, h, w; /* h = 0: 2-D */
} op_dims;

static const op_dims op_dims_list[] = {
    {1, 1, 1, 0, 0},  {1, 2, 3, 0, 0},   {2, 3, 4, 0, 0},  {1, 5, 7, 0, 0},  {1, 32, 8, 0, 0},
    {1, 5, 16, 0, 0}, {1, 2, 17, 0, 0},  {3, 5, 64, 0, 0}, {3, 2, 17, 0, 0}, {1, 1, 1, 1, 1},
    {1, 2, 3, 2, 3},  {2, 2, 3, 2, 2},   {1, 2, 3, 5, 4},  {1, 1, 8, 9, 9},  {3, 2, 16, 3, 3},
    {1, 5, 17, 4, 7}, {1, 32, 7, 1, 2},  {3, 2, 24, 6, 5}, {1, 2, 64, 8, 8}, {1, 2, 33, 1, 1},
    {3, 5, 8, 2, 1},  {1, 2, 100, 0, 0}, {2, 9, 17, 3, 3}, {2, 9, 17, 9, 7}, /* enough tiles for Winograd */
    {2, 9, 12, 9, 7}, /* and an even number of blocks */
};

/* Channel counts on, just below and just above whole blocks of 8 and 16, and half blocks that sum up to whole ones
 * when members stand one behind the other. */
static const int64_t op_channels[] = {4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40};

static int64_t op_draw(rt_rng r, uint64_t i, int64_t lo, int64_t hi) {
    return lo + (int64_t)rt_rng_below(r, i, (uint64_t)(hi - lo + 1));
}

/* Dimensions i of a sweep: those of the list, then one or more groups of drawn size for each count of channels. */
enum { OP_DRAWN_DIMS = 2 * RT_COUNT(op_channels) };
static bool op_dims_get(op_dims *d, int64_t i) {
    if (i < RT_COUNT(op_dims_list)) {
        *d = op_dims_list[i];
        return true;
    }
    i -= RT_COUNT(op_dims_list);
    if (i >= OP_DRAWN_DIMS)
        return false;
    const rt_rng r = rt_rng_make((uint64_t)i, RT_RNG_TEST, 78, 0);
    const bool image = i % 2;
    *d = (op_dims){.g = op_draw(r, 0, 2, 4), .n = op_draw(r, 1, 1, 6), .c = op_channels[i / 2]};
    if (image) {
        d->h = op_draw(r, 2, 1, 5);
        d->w = op_draw(r, 3, 1, 5);
    }
    return true;
}

/* ---- forms ---- */

enum { F_SETS = 1, F_2D = 2, F_4D = 4 };

typedef struct op_form {
    rt_op op;
    const char *in;
    unsigned flags;
    double alpha, beta;
    const rt_chain *chain;
} op_form;

#define STEP0(ID)                                                                                            \
    { .op = RT_OP_##ID }
#define STEP1(ID, a)                                                                                         \
    {                                                                                                        \
        .op = RT_OP_##ID, .arg = { a }                                                                       \
    }
static const rt_chain op_chain_bn_relu = {2, {STEP1(BN_APPLY, 1), STEP0(RELU)}};
static const rt_chain op_chain_conv = {5,
                                       {STEP1(BN_APPLY, 1),
                                        STEP0(RELU),
                                        {.op = RT_OP_CONV2D, .arg = {2}, .attr = {.stride = 1, .pad = 1}},
                                        STEP1(ADD, 3),
                                        STEP0(RELU)}};
static const rt_chain op_chain_dense = {
    3, {{.op = RT_OP_MATMUL, .arg = {1}, .attr = {.tb = true}}, STEP1(ADD_CHAN, 2), STEP0(RELU)}};
static const rt_chain op_chain_dense_bwd = {
    2, {STEP1(MATMUL, 1), {.op = RT_OP_RELU_BWD, .arg = {2}, .attr = {.alpha = 0.25}}}};
static const rt_chain op_chain_bn_add_relu = {3, {STEP1(BN_APPLY, 1), STEP1(ADD, 2), STEP0(RELU)}};
static const rt_chain op_chain_grad = {
    2, {{.op = RT_OP_RELU_BWD, .arg = {1}}, {.op = RT_OP_BN_GAPPLY, .arg = {2, 3}}}};
static const rt_chain op_chain_swap = {
    3,
    {{.op = RT_OP_SUB, .arg = {1}, .swap = true},
     STEP1(MUL_CHAN, 2),
     {.op = RT_OP_RELU_BWD, .arg = {1}, .swap = true, .attr = {.alpha = 0.25}}}};
static const rt_chain op_chain_rows = {4,
                                       {{.op = RT_OP_SCALE, .attr = {.alpha = 0.5, .beta = 0.25}},
                                        STEP0(TANH),
                                        STEP1(MUL_ROW, 1),
                                        STEP1(MUL_SCALAR, 2)}};
static const rt_chain op_chain_member = {3, {STEP1(MUL_CHAN, 1), STEP1(ADD_CHAN, 2), STEP0(SIGMOID)}};
static const rt_chain op_chain_drop = {
    2, {STEP0(RELU), {.op = RT_OP_DROPOUT, .attr = {.alpha = 0.4, .stream = 5}}}};
static const rt_chain op_chain_div = {3,
                                      {{.op = RT_OP_DIV, .arg = {1}, .swap = true},
                                       STEP0(SQRT),
                                       {.op = RT_OP_CLIP, .attr = {.alpha = 0.5, .beta = 1.5}}}};
static const rt_chain op_chain_exp = {3, {STEP0(EXP), STEP0(SQUARE), STEP0(SOFTPLUS)}};

static const op_form op_forms[] = {
    {.op = RT_OP_ADD, .in = "XX"},
    {.op = RT_OP_ADD, .in = "GG"},
    {.op = RT_OP_SUB, .in = "XX"},
    {.op = RT_OP_MUL, .in = "XX"},
    {.op = RT_OP_DIV, .in = "XP"},
    {.op = RT_OP_SCALE, .in = "X", .alpha = -1.5, .beta = 0.25},
    {.op = RT_OP_SCALE, .in = "S", .alpha = 2},
    {.op = RT_OP_RELU, .in = "X"},
    {.op = RT_OP_RELU, .in = "X", .alpha = 0.1},
    {.op = RT_OP_RELU_BWD, .in = "XX"},
    {.op = RT_OP_RELU_BWD, .in = "XX", .alpha = 0.1},
    {.op = RT_OP_EXP, .in = "X"},
    {.op = RT_OP_LOG, .in = "P"},
    {.op = RT_OP_SQRT, .in = "P"},
    {.op = RT_OP_SQUARE, .in = "X"},
    {.op = RT_OP_RECIP, .in = "P"},
    {.op = RT_OP_XLOGX, .in = "P"},
    {.op = RT_OP_SIGMOID, .in = "X"},
    {.op = RT_OP_TANH, .in = "X"},
    {.op = RT_OP_SOFTPLUS, .in = "X"},
    {.op = RT_OP_CLIP, .in = "X", .alpha = -1, .beta = 0.8},
    {.op = RT_OP_CLIP_BWD, .in = "XX", .alpha = -1, .beta = 0.8},
    {.op = RT_OP_LGAMMA, .in = "P"},
    {.op = RT_OP_DIGAMMA, .in = "P"},
    {.op = RT_OP_TRIGAMMA, .in = "P"},
    {.op = RT_OP_STOP_GRAD, .in = "X"},
    {.op = RT_OP_DROPOUT, .in = "X", .alpha = 0.3},
    {.op = RT_OP_DROPOUT, .in = "X", .alpha = 0.5},
    {.op = RT_OP_RANDOM, .in = "X"},
    {.op = RT_OP_MUL_SCALAR, .in = "XS"},
    {.op = RT_OP_MUL_SCALAR, .in = "GS"},
    {.op = RT_OP_ADD_CHAN, .in = "XC"},
    {.op = RT_OP_ADD_CHAN, .in = "XM"},
    {.op = RT_OP_MUL_CHAN, .in = "XC"},
    {.op = RT_OP_MUL_CHAN, .in = "XM"},
    {.op = RT_OP_MUL_CHAN, .in = "GC"},
    {.op = RT_OP_ADD_ROW, .in = "XR"},
    {.op = RT_OP_MUL_ROW, .in = "XR"},
    {.op = RT_OP_RESHAPE, .in = "X"},
    {.op = RT_OP_TRANSPOSE, .in = "G"},
    {.op = RT_OP_TRANSPOSE, .in = "B"},
    {.op = RT_OP_TILE_MEMBERS, .in = "O"},
    {.op = RT_OP_SUM_MEMBERS, .in = "X"},
    {.op = RT_OP_MEMBER_GET, .in = "XI"},
    {.op = RT_OP_MEMBER_GET, .in = "BI"},
    {.op = RT_OP_MEMBER_GET, .in = "JI"},
    {.op = RT_OP_MEMBER_PUT, .in = "OI"},
    {.op = RT_OP_MEMBER_RANGE, .in = "X"},
    {.op = RT_OP_MEMBER_RANGE, .in = "B"},
    {.op = RT_OP_MEMBER_RANGE, .in = "J"},
    {.op = RT_OP_MEMBER_PLACE, .in = "O"},
    {.op = RT_OP_CONCAT_MEMBERS, .in = "XOX"},
    {.op = RT_OP_CONCAT_MEMBERS, .in = "BB"},
    {.op = RT_OP_SLICE_LAST, .in = "X"},
    {.op = RT_OP_PAD_LAST, .in = "X"},
    {.op = RT_OP_ONE_HOT, .in = "L"},
    {.op = RT_OP_ROW_SUM, .in = "X"},
    {.op = RT_OP_ROW_SUM, .in = "G"},
    {.op = RT_OP_ROW_MAX, .in = "X"},
    {.op = RT_OP_ROW_DOT, .in = "XX"},
    {.op = RT_OP_EXPAND_ROW, .in = "R"},
    {.op = RT_OP_CHAN_SUM, .in = "X"},
    {.op = RT_OP_CHAN_SUM, .in = "X", .flags = F_SETS},
    {.op = RT_OP_CHAN_DOT, .in = "XX"},
    {.op = RT_OP_CHAN_DOT, .in = "XX", .flags = F_SETS},
    {.op = RT_OP_EXPAND_CHAN, .in = "C"},
    {.op = RT_OP_EXPAND_CHAN, .in = "M", .flags = F_SETS},
    {.op = RT_OP_TOTAL_SUM, .in = "X"},
    {.op = RT_OP_TOTAL_SUM, .in = "G"},
    {.op = RT_OP_TOTAL_DOT, .in = "XX"},
    {.op = RT_OP_EXPAND_TOTAL, .in = "S"},
    {.op = RT_OP_BATCH_SUM, .in = "X"},
    {.op = RT_OP_EXPAND_BATCH, .in = "V"},
    {.op = RT_OP_GLOBAL_AVGPOOL, .in = "X", .flags = F_4D},
    {.op = RT_OP_GLOBAL_AVGPOOL_BWD, .in = "E", .flags = F_4D},
    {.op = RT_OP_BN_STATS, .in = "X"},
    {.op = RT_OP_BN_STATS, .in = "X", .flags = F_SETS},
    {.op = RT_OP_BN_COEF, .in = "DUU", .alpha = 1e-5},
    {.op = RT_OP_BN_COEF, .in = "DUU", .flags = F_SETS, .alpha = 1e-5},
    {.op = RT_OP_BN_COEF, .in = "DMM", .flags = F_SETS, .alpha = 1e-5},
    {.op = RT_OP_BN_COEF_EVAL, .in = "CpUU", .alpha = 1e-5},
    {.op = RT_OP_BN_APPLY, .in = "XK"},
    {.op = RT_OP_BN_APPLY, .in = "XK", .flags = F_SETS},
    {.op = RT_OP_BN_GSTATS, .in = "XXK"},
    {.op = RT_OP_BN_GSTATS, .in = "XXK", .flags = F_SETS},
    {.op = RT_OP_BN_GCOEF, .in = "DKU"},
    {.op = RT_OP_BN_GCOEF, .in = "DKU", .flags = F_SETS},
    {.op = RT_OP_BN_GCOEF_EVAL, .in = "K"},
    {.op = RT_OP_BN_GAPPLY, .in = "XXk"},
    {.op = RT_OP_BN_GAPPLY, .in = "XXk", .flags = F_SETS},
    {.op = RT_OP_BN_RELU_BWD, .in = "XXK"},
    {.op = RT_OP_BN_RELU_BWD, .in = "XXK", .flags = F_SETS},
    {.op = RT_OP_BN_GPARAM, .in = "D"},
    {.op = RT_OP_BN_GPARAM, .in = "D", .flags = F_SETS},
    {.op = RT_OP_BN_RUNNING, .in = "DC", .alpha = 0.1},
    {.op = RT_OP_SOFTMAX, .in = "X", .flags = F_2D},
    {.op = RT_OP_SOFTMAX_BWD, .in = "XQ", .flags = F_2D},
    {.op = RT_OP_LOG_SOFTMAX, .in = "X", .flags = F_2D},
    {.op = RT_OP_LOG_SOFTMAX_BWD, .in = "XX", .flags = F_2D},
    {.op = RT_OP_CE_LABEL, .in = "XL", .flags = F_2D},
    {.op = RT_OP_CE_LABEL, .in = "XL", .flags = F_2D, .alpha = 0.1},
    {.op = RT_OP_CE_LABEL_BWD, .in = "RXL", .flags = F_2D},
    {.op = RT_OP_CE_LABEL_BWD, .in = "RXL", .flags = F_2D, .alpha = 0.1},
    {.op = RT_OP_CE_DIST, .in = "XQ", .flags = F_2D},
    {.op = RT_OP_CE_DIST_BWD, .in = "RXQ", .flags = F_2D},
    {.op = RT_OP_DIRICHLET_NLL, .in = "XX", .flags = F_2D},
    {.op = RT_OP_DIRICHLET_NLL, .in = "XX", .flags = F_2D, .alpha = 1},
    {.op = RT_OP_DIRICHLET_NLL_BWD, .in = "RXX", .flags = F_2D},
    {.op = RT_OP_DIRICHLET_KL, .in = "XP", .flags = F_2D},
    {.op = RT_OP_DIRICHLET_KL, .in = "XP", .flags = F_2D, .alpha = 1},
    {.op = RT_OP_DIRICHLET_KL_BWD, .in = "RXP", .flags = F_2D},
    {.op = RT_OP_DIRICHLET_PROXY, .in = "X", .flags = F_2D, .alpha = 1e-7},
    {.op = RT_OP_QP_SIMPLEX, .in = "X", .flags = F_2D, .alpha = 0.6},
    {.op = RT_OP_QP_SIMPLEX, .in = "G", .flags = F_2D, .alpha = 1},
    {.op = RT_OP_REORDER, .in = "X", .flags = F_4D},
    {.op = RT_OP_CHAIN, .in = "XK", .chain = &op_chain_bn_relu},
    {.op = RT_OP_CHAIN, .in = "XK", .flags = F_SETS, .chain = &op_chain_bn_relu},
    {.op = RT_OP_CHAIN, .in = "XKX", .chain = &op_chain_bn_add_relu},
    {.op = RT_OP_CHAIN, .in = "XXXk", .chain = &op_chain_grad},
    {.op = RT_OP_CHAIN, .in = "XXC", .chain = &op_chain_swap},
    {.op = RT_OP_CHAIN, .in = "XRS", .chain = &op_chain_rows},
    {.op = RT_OP_CHAIN, .in = "XMM", .chain = &op_chain_member},
    {.op = RT_OP_CHAIN, .in = "X", .chain = &op_chain_drop},
    {.op = RT_OP_CHAIN, .in = "PP", .chain = &op_chain_div},
    {.op = RT_OP_CHAIN, .in = "X", .chain = &op_chain_exp},
    {.op = RT_OP_FUSED_MATMUL, .in = "XAC", .flags = F_2D, .chain = &op_chain_dense},
    {.op = RT_OP_FUSED_MATMUL, .in = "XAX", .flags = F_2D, .chain = &op_chain_dense_bwd},
    {.op = RT_OP_FUSED_CONV, .in = "XKWX", .flags = F_4D, .chain = &op_chain_conv},
};
#undef STEP0
#undef STEP1

static rt_shape op_row_shape(op_dims d) {
    return d.h > 0 ? rt_shape3(d.c, d.h, d.w) : rt_shape1(d.c);
}

static rt_shape op_rows_shape(int64_t rows, op_dims d) {
    return d.h > 0 ? rt_shape4(rows, d.c, d.h, d.w) : rt_shape2(rows, d.c);
}

static void op_case_add(op_case *c, rt_dtype t, int64_t groups, rt_shape s, op_fill fill) {
    c->in[c->nin] = (rt_type){
        .dtype = t, .kind = groups ? RT_KIND_ROWS : RT_KIND_GLOBAL, .groups = (int32_t)groups, .shape = s};
    c->fill[c->nin++] = fill;
}

static void op_case_operand(op_case *c, char letter, op_dims d, bool sets, rt_dtype t) {
    const int64_t k = sets ? d.g * d.c : d.c;
    switch (letter) {
    case 'X':
        op_case_add(c, t, d.g, op_rows_shape(d.g * d.n, d), FILL_ANY);
        break;
    case 'P':
        op_case_add(c, t, d.g, op_rows_shape(d.g * d.n, d), FILL_POS);
        break;
    case 'Q':
        op_case_add(c, t, d.g, op_rows_shape(d.g * d.n, d), FILL_DIST);
        break;
    case 'J':
        op_case_add(c, RT_DTYPE_I32, d.g, op_rows_shape(d.g * d.n, d), FILL_LABEL);
        break;
    case 'O':
        op_case_add(c, t, 1, op_rows_shape(d.n, d), FILL_ANY);
        break;
    case 'G':
        op_case_add(c, t, 0, rt_shape2(d.n, d.c), FILL_ANY);
        break;
    case 'B':
        op_case_add(c, t, 0, rt_shape3(d.g, d.n, d.c), FILL_ANY);
        break;
    case 'S':
        op_case_add(c, t, 0, rt_shape0(), FILL_ANY);
        break;
    case 'C':
        op_case_add(c, t, 0, sets ? rt_shape2(d.g, d.c) : rt_shape1(d.c), FILL_ANY);
        break;
    case 'p':
        op_case_add(c, t, 0, rt_shape1(d.c), FILL_POS);
        break;
    case 'U':
        op_case_add(c, t, 0, rt_shape1(d.c), FILL_ANY);
        break;
    case 'M':
        op_case_add(c, t, 0, rt_shape2(d.g, d.c), FILL_ANY);
        break;
    case 'V':
        op_case_add(c, t, 0, op_row_shape(d), FILL_ANY);
        break;
    case 'R':
        op_case_add(c, t, d.g, rt_shape1(d.g * d.n), FILL_ANY);
        break;
    case 'L':
        op_case_add(c, RT_DTYPE_I32, d.g, rt_shape1(d.g * d.n), FILL_LABEL);
        break;
    case 'I':
        op_case_add(c, RT_DTYPE_I32, 0, rt_shape0(), FILL_INDEX);
        break;
    case 'E':
        op_case_add(c, t, d.g, rt_shape2(d.g * d.n, d.c), FILL_ANY);
        break;
    case 'D':
        op_case_add(c, RT_DTYPE_F64, 0, rt_shape2(2, k), FILL_STATS);
        break;
    case 'K':
        op_case_add(c, t, 0, rt_shape2(4, k), FILL_ANY);
        break;
    case 'W':
        op_case_add(c, t, 0, rt_shape4(d.c, d.c, 3, 3), FILL_ANY);
        break;
    case 'A':
        op_case_add(c, t, 0, rt_shape2(d.c, d.c), FILL_ANY);
        break;
    case 'k':
        op_case_add(c, t, 0, rt_shape2(3, k), FILL_ANY);
        break;
    default:
        break;
    }
}

/* Attributes that follow from the dimensions. */
static void op_case_attr(op_case *c, const op_form *f, op_dims d, rt_dtype t) {
    rt_attr *a = &c->attr;
    const bool sets = f->flags & F_SETS;
    *a = (rt_attr){.alpha = f->alpha, .beta = f->beta};
    if (sets)
        a->members = (int32_t)d.g;
    switch (c->op) {
    case RT_OP_DROPOUT:
        a->stream = 7;
        break;
    case RT_OP_RANDOM:
        a->stream = 7, a->index = (int32_t)(d.n % 2);
        break;
    case RT_OP_RESHAPE:
        a->shape = d.h > 0 ? rt_shape2(d.h, d.c * d.w) : rt_shape3(d.c, 1, 1);
        break;
    case RT_OP_TILE_MEMBERS:
        a->members = 3;
        break;
    case RT_OP_MEMBER_PUT:
        a->members = (int32_t)d.g;
        break;
    case RT_OP_MEMBER_RANGE:
        a->start = d.g / 2, a->count = d.g - d.g / 2;
        break;
    case RT_OP_MEMBER_PLACE:
        a->members = 3, a->start = 1;
        break;
    case RT_OP_SLICE_LAST:
        a->start = (d.h > 0 ? d.w : d.c) / 2, a->count = (d.h > 0 ? d.w : d.c) - a->start;
        break;
    case RT_OP_PAD_LAST:
        a->start = 2, a->index = (int32_t)((d.h > 0 ? d.w : d.c) + 3);
        break;
    case RT_OP_ONE_HOT:
        a->count = d.c, a->tb = t == RT_DTYPE_F64;
        break;
    case RT_OP_EXPAND_ROW:
        a->shape = op_row_shape(d);
        break;
    case RT_OP_EXPAND_CHAN:
        a->count = d.g;
        a->shape = d.h > 0 ? rt_shape2(d.h, d.w) : rt_shape0();
        break;
    case RT_OP_EXPAND_TOTAL:
        a->members = (int32_t)d.g, a->shape = op_row_shape(d);
        break;
    case RT_OP_EXPAND_BATCH:
        a->members = (int32_t)d.g;
        break;
    case RT_OP_GLOBAL_AVGPOOL_BWD:
        a->h = d.h, a->w = d.w;
        break;
    case RT_OP_BN_COEF:
    case RT_OP_BN_GCOEF:
        a->n = 4;
        break;
    case RT_OP_BN_RUNNING:
        a->n = 4, a->index = (int32_t)(d.n % 2), a->ta = d.c % 2;
        break;
    case RT_OP_BN_GPARAM:
        a->index = (int32_t)(d.n % 2), a->tb = t == RT_DTYPE_F64;
        break;
    default:
        break;
    }
}

static void op_case_emit(const op_sweep *s, const op_case *c) {
    for (int i = 0; i < c->nin; i++)
        if (s->max_elems > 0 && rt_shape_elems(&c->in[i].shape) > s->max_elems)
            return;
    s->fn(s->user, c);
}

static void op_forms_each(rt_op op, const op_sweep *s) {
    for (int64_t f = 0; f < RT_COUNT(op_forms); f++) {
        const op_form *form = &op_forms[f];
        op_dims d;
        for (int64_t i = 0; form->op == op && op_dims_get(&d, i); i++) {
            const bool sets = form->flags & F_SETS;
            if ((sets && d.g == 1) || ((form->flags & F_2D) && d.h > 0) || ((form->flags & F_4D) && d.h == 0))
                continue;
            op_case c = {
                .op = op, .n = d.n, .chain = form->chain, .limit = strchr(form->in, 'I') ? d.g : d.c};
            for (const char *letter = form->in; *letter; letter++)
                op_case_operand(&c, *letter, d, sets, s->dtype);
            op_case_attr(&c, form, d, s->dtype);
            op_case_emit(s, &c);
        }
    }
}

/* ---- chains: every element-wise operation as a single step, in both orders, and random long ones ---- */

static void op_chain_emit(const op_sweep *s, const char *in, op_dims d, bool sets, const rt_chain *chain) {
    op_case c = {.op = RT_OP_CHAIN, .n = d.n, .chain = chain, .limit = d.c, .attr = {.count = chain->n}};
    for (; *in; in++)
        op_case_operand(&c, *in, d, sets, s->dtype);
    op_case_emit(s, &c);
}

static void op_single_steps_each(const op_sweep *s) {
    for (int64_t f = 0; f < RT_COUNT(op_forms); f++) {
        const op_form *form = &op_forms[f];
        const bool sets = form->flags & F_SETS,
                   pair = strcmp(form->in, "XX") == 0 || strcmp(form->in, "XP") == 0;
        if (!(rt_op_get(form->op)->flags & RT_OP_ELTWISE) || !strchr("XP", form->in[0]))
            continue;
        op_dims d;
        for (int64_t i = 0; op_dims_get(&d, i); i++)
            for (int swap = 0; swap <= pair && (!sets || d.g > 1); swap++) {
                op_case one = {.op = form->op};
                op_case_attr(&one, form, d, s->dtype);
                const rt_chain chain = {
                    1, {{.op = form->op, .attr = one.attr, .arg = {1, 2}, .swap = swap != 0}}};
                op_chain_emit(s, swap && form->in[1] == 'P' ? "PX" : form->in, d, sets, &chain);
            }
    }
}

/* Continuous steps only, bounded so that the values neither explode nor hide rounding. */
static void op_random_chains_each(const op_sweep *s) {
    static const rt_chain_step steps[] = {
        {.op = RT_OP_ADD, .arg = {1}},
        {.op = RT_OP_SUB, .arg = {1}, .swap = true},
        {.op = RT_OP_MUL, .arg = {1}},
        {.op = RT_OP_TANH},
        {.op = RT_OP_SIGMOID},
        {.op = RT_OP_SOFTPLUS},
        {.op = RT_OP_RELU, .attr = {.alpha = 0.2}},
        {.op = RT_OP_CLIP, .attr = {.alpha = -3, .beta = 2}},
        {.op = RT_OP_SCALE, .attr = {.alpha = 0.5, .beta = -0.125}},
        {.op = RT_OP_ADD_CHAN, .arg = {2}},
        {.op = RT_OP_MUL_CHAN, .arg = {2}},
        {.op = RT_OP_ADD_ROW, .arg = {3}},
        {.op = RT_OP_MUL_ROW, .arg = {3}},
    };
    for (uint64_t k = 0; k < 24; k++) {
        const rt_rng r = rt_rng_make(k, RT_RNG_TEST, 77, 0);
        rt_chain chain = {.n = 2 + (int)rt_rng_below(r, 100, RT_CHAIN_MAX - 1)};
        for (int i = 0; i < chain.n; i++)
            chain.step[i] = steps[rt_rng_below(r, (uint64_t)i, (uint64_t)RT_COUNT(steps))];
        op_dims d;
        for (int64_t i = (int64_t)k % 2; op_dims_get(&d, i); i += 2)
            op_chain_emit(s, k % 3 == 0 ? "XXMR" : "XXCR", d, false, &chain);
    }
}

/* ---- products ---- */

static void op_products_each(rt_op op, const op_sweep *s) {
    static const struct {
        int64_t g, n, k, m;
    } list[] = {{1, 1, 1, 1},  {1, 2, 3, 4},    {2, 3, 4, 5},     {1, 5, 17, 7},
                {3, 5, 8, 16}, {1, 32, 64, 10}, {1, 33, 100, 31}, {1, 8, 129, 512}};
    for (int64_t i = 0; i < RT_COUNT(list); i++)
        for (int t = 0; t < 4; t++) {
            const bool ta = t & 1, tb = t & 2;
            const int64_t g = list[i].g, n = list[i].n, k = list[i].k, m = list[i].m;
            const op_case base = {.op = op, .n = n, .attr = {.ta = ta, .tb = tb}};
            op_case c = base;
            const bool per = op == RT_OP_BMM;
            const int64_t b0 = tb ? m : k, b1 = tb ? k : m, a0 = ta ? k : n, a1 = ta ? n : k;
            /* global x global */
            op_case_add(&c, s->dtype, 0, per ? rt_shape3(g, a0, a1) : rt_shape2(a0, a1), FILL_ANY);
            op_case_add(&c, s->dtype, 0, per ? rt_shape3(g, b0, b1) : rt_shape2(b0, b1), FILL_ANY);
            op_case_emit(s, &c);
            c = base;
            if (!ta) { /* rows x global */
                op_case_add(&c, s->dtype, g, rt_shape2(g * n, k), FILL_ANY);
                op_case_add(&c, s->dtype, 0, per ? rt_shape3(g, b0, b1) : rt_shape2(b0, b1), FILL_ANY);
                op_case_emit(s, &c);
            } else if (!tb) { /* rows^T x rows */
                op_case_add(&c, s->dtype, g, rt_shape2(g * n, k), FILL_ANY);
                op_case_add(&c, s->dtype, g, rt_shape2(g * n, m), FILL_ANY);
                op_case_emit(s, &c);
            }
        }
}

typedef struct op_conv {
    int64_t g, n, ic, h, w, oc, k, stride, pad;
} op_conv;

static void op_conv_emit(rt_op op, const op_sweep *s, op_conv v) {
    const int64_t rows = v.g * v.n;
    const int64_t oh = (v.h + 2 * v.pad - v.k) / v.stride + 1, ow = (v.w + 2 * v.pad - v.k) / v.stride + 1;
    const rt_shape x = rt_shape4(rows, v.ic, v.h, v.w), y = rt_shape4(rows, v.oc, oh, ow);
    const rt_shape w = rt_shape4(v.oc, v.ic, v.k, v.k);
    op_case c = {.op = op, .n = v.n, .attr = {.stride = (int32_t)v.stride, .pad = (int32_t)v.pad}};
    op_case_add(&c, s->dtype, v.g, op == RT_OP_CONV2D_BWD_DATA ? y : x, FILL_ANY);
    if (op == RT_OP_CONV2D_BWD_WEIGHTS)
        op_case_add(&c, s->dtype, v.g, y, FILL_ANY);
    else
        op_case_add(&c, s->dtype, 0, w, FILL_ANY);
    if (op == RT_OP_CONV2D_BWD_DATA)
        c.attr.h = v.h, c.attr.w = v.w;
    if (op == RT_OP_CONV2D_BWD_WEIGHTS)
        c.attr.kh = c.attr.kw = (int32_t)v.k;
    op_case_emit(s, &c);
    if (op == RT_OP_CONV2D_BWD_WEIGHTS && v.g > 1) {
        c.attr.members = (int32_t)v.g;
        op_case_emit(s, &c);
    }
}

static void op_convs_each(rt_op op, const op_sweep *s) {
    static const op_conv list[] = {
        {1, 1, 1, 1, 1, 1, 1, 1, 0},
        {1, 2, 2, 3, 4, 3, 3, 1, 1},
        {1, 1, 3, 5, 5, 2, 3, 2, 1},
        {1, 2, 3, 4, 4, 2, 1, 2, 0},
        {2, 2, 2, 3, 3, 2, 2, 1, 0},
        {1, 2, 3, 8, 8, 16, 3, 1, 1},
        {1, 2, 16, 8, 8, 32, 3, 2, 1},
        {1, 5, 17, 7, 9, 7, 3, 1, 1},
        {3, 2, 64, 4, 4, 64, 3, 1, 1},
        {1, 2, 32, 8, 8, 64, 1, 2, 0},
        {1, 2, 8, 6, 6, 8, 5, 1, 2},
        {1, 2, 64, 8, 8, 16, 1, 1, 0},
        {1, 2, 3, 9, 9, 8, 7, 2, 3},
        {1, 1, 16, 14, 14, 16, 3, 1, 1},
        /* enough tiles for Winograd */
        {1, 4, 16, 16, 16, 16, 3, 1, 1},
        {1, 35, 32, 8, 8, 16, 3, 1, 1},
        {2, 2, 16, 16, 20, 48, 3, 1, 1},
        {1, 67, 16, 4, 4, 64, 3, 1, 1},
        {1, 4, 80, 16, 16, 80, 3, 1, 1},
        /* and tiles or blocks of channels that are not full */
        {1, 5, 12, 14, 14, 20, 3, 1, 1},
        {2, 9, 24, 7, 7, 9, 3, 1, 1},
        /* and members of several images for products with images as rows */
        {2, 5, 16, 6, 6, 32, 3, 2, 1},
        {1, 4, 9, 30, 13, 40, 3, 1, 1},
        /* and members that fill no block of 8, of 16, and yet as many blocks as all of them together */
        {2, 3, 16, 6, 6, 5, 3, 1, 1},
        {2, 3, 16, 6, 6, 9, 1, 1, 0},
        {3, 2, 8, 5, 5, 6, 3, 1, 1}};
    for (int64_t i = 0; i < RT_COUNT(list); i++)
        op_conv_emit(op, s, list[i]);
    /* members of every count of output channels: most small, some with enough images or tiles for our kernels */
    for (int64_t i = 0; i < 4 * RT_COUNT(op_channels); i++) {
        const rt_rng r = rt_rng_make((uint64_t)i, RT_RNG_TEST, 79, 0);
        const bool many = i % 4 == 3;
        op_conv v = {.g = op_draw(r, 0, 2, 4), .n = many ? 9 : op_draw(r, 1, 1, 5), .oc = op_channels[i / 4]};
        v.ic = op_channels[op_draw(r, 2, 0, RT_COUNT(op_channels) - 1)];
        v.h = op_draw(r, 3, many ? 7 : 3, 8);
        v.w = op_draw(r, 4, many ? 7 : 3, 8);
        v.k = many ? 3 : op_draw(r, 5, 1, 3);
        v.stride = many ? 1 : op_draw(r, 6, 1, 2);
        v.pad = v.k / 2;
        op_conv_emit(op, s, v);
    }
}

static void op_fast_each(rt_op op, const op_sweep *s) {
    static const int64_t list[][4] = {
        {2, 3, 5, 1}, {1, 4, 4, 3}, {4, 16, 8, 3}, {3, 7, 19, 2}, {2, 33, 17, 3}};
    for (int64_t i = 0; i < RT_COUNT(list); i++)
        for (int32_t of = 0; of < 3; of++) {
            const int64_t m = list[i][0], oc = list[i][1], ic = list[i][2], k = list[i][3];
            op_case c = {.op = op, .n = 2, .attr = {.index = of}};
            op_case_add(&c, s->dtype, 0, rt_shape4(m * oc, ic, k, k), FILL_ANY);
            op_case_add(&c, s->dtype, 0, rt_shape4(oc, ic, k, k), FILL_ANY);
            op_case_add(&c, s->dtype, 0, rt_shape2(m, ic), FILL_ANY);
            op_case_add(&c, s->dtype, 0, rt_shape2(m, oc), FILL_ANY);
            op_case_emit(s, &c);
        }
}

static void op_pools_each(rt_op op, const op_sweep *s) {
    static const struct {
        int64_t g, n, c, h, w, k, stride, pad;
    } list[] = {{1, 1, 1, 2, 2, 2, 2, 0}, {1, 2, 3, 4, 6, 2, 2, 0},  {2, 1, 2, 5, 5, 3, 2, 1},
                {1, 2, 8, 8, 8, 2, 2, 0}, {1, 2, 17, 7, 9, 3, 2, 1}, {3, 2, 64, 4, 4, 2, 2, 0},
                {1, 5, 16, 6, 5, 3, 1, 1}};
    for (int64_t i = 0; i < RT_COUNT(list); i++) {
        const int64_t rows = list[i].g * list[i].n, k = list[i].k, st = list[i].stride, pad = list[i].pad;
        const int64_t oh = (list[i].h + 2 * pad - k) / st + 1, ow = (list[i].w + 2 * pad - k) / st + 1;
        op_case c = {
            .op = op,
            .n = list[i].n,
            .attr = {.kh = (int32_t)k, .kw = (int32_t)k, .stride = (int32_t)st, .pad = (int32_t)pad}};
        if (op == RT_OP_MAXPOOL_BWD)
            op_case_add(&c, s->dtype, list[i].g, rt_shape4(rows, list[i].c, oh, ow), FILL_ANY);
        op_case_add(&c, s->dtype, list[i].g, rt_shape4(rows, list[i].c, list[i].h, list[i].w), FILL_ANY);
        op_case_emit(s, &c);
    }
}

static void op_matrices_each(rt_op op, const op_sweep *s) {
    static const int64_t list[] = {1, 2, 4, 7, 16, 33};
    for (int64_t i = 0; i < RT_COUNT(list); i++)
        for (int v = 0; v < (op == RT_OP_SINKHORN || op == RT_OP_SINKHORN_BWD ? 6 : 2); v++) {
            const int64_t n = list[i];
            op_case c = {.op = op, .n = 2};
            if (op == RT_OP_SINKHORN || op == RT_OP_SINKHORN_BWD) /* unrolled: far from converged */
                c.attr = (rt_attr){.alpha = v / 2 == RT_SINKHORN_UNROLLED ? 0.5 : 2,
                                   .beta = v % 2 ? 0.05 : 0,
                                   .index = v / 2,
                                   .count = v / 2 == RT_SINKHORN_UNROLLED ? 3 : 400};
            else
                c.attr.ta = op == RT_OP_SOLVE && v;
            op_case_add(&c, s->dtype, 0, rt_shape2(n, n),
                        op == RT_OP_MATINV || op == RT_OP_SOLVE ? FILL_MATRIX : FILL_ANY);
            if (op == RT_OP_SOLVE)
                op_case_add(&c, s->dtype, 0, rt_shape2(n, 3), FILL_ANY);
            if (op ==
                RT_OP_SINKHORN_BWD) { /* any P with entries well inside (0, 1/n) keeps the system regular */
                op_case_add(&c, s->dtype, 0, rt_shape2(n, n), FILL_DIST);
                op_case_add(&c, s->dtype, 0, rt_shape2(n, n), FILL_ANY);
            }
            op_case_emit(s, &c);
        }
}

/* Calls s->fn for every problem of an operation; an operation without any has been forgotten here. */
static inline void op_cases_each(rt_op op, const op_sweep *s) {
    switch (op) {
    case RT_OP_MATMUL:
    case RT_OP_BMM:
        op_products_each(op, s);
        break;
    case RT_OP_CONV2D:
    case RT_OP_CONV2D_BWD_DATA:
    case RT_OP_CONV2D_BWD_WEIGHTS:
        op_convs_each(op, s);
        break;
    case RT_OP_RANK1_BWD:
        op_fast_each(op, s);
        break;
    case RT_OP_MAXPOOL:
    case RT_OP_MAXPOOL_BWD:
        op_pools_each(op, s);
        break;
    case RT_OP_MATINV:
    case RT_OP_SOLVE:
    case RT_OP_SINKHORN:
    case RT_OP_SINKHORN_BWD:
        op_matrices_each(op, s);
        break;
    case RT_OP_CHAIN:
        op_forms_each(op, s);
        op_single_steps_each(s);
        op_random_chains_each(s);
        break;
    default:
        op_forms_each(op, s);
        break;
    }
}

/* ---- values ---- */

/* In [-2, 2], at least 0.03 away from every multiple of 0.1. */
static double op_value(rt_rng r, int64_t i) {
    return 0.1 * floor(40 * rt_rng_uniform(r, (uint64_t)(2 * i))) - 2 + 0.03 +
           0.04 * rt_rng_uniform(r, (uint64_t)(2 * i + 1));
}

static double op_fill_value(const op_case *c, int k, rt_rng r, int64_t i) {
    const rt_shape *s = &c->in[k].shape;
    const int64_t last = s->rank > 0 ? s->d[s->rank - 1] : 1;
    switch (c->fill[k]) {
    case FILL_POS:
        return 0.1 + fabs(op_value(r, i)) * 1.5;
    case FILL_DIST: {
        double sum = 0;
        for (int64_t j = i - i % last; j < i - i % last + last; j++)
            sum += fabs(op_value(r, j));
        return fabs(op_value(r, i)) / sum;
    }
    case FILL_LABEL:
    case FILL_INDEX:
        return (double)rt_rng_below(r, (uint64_t)i, (uint64_t)c->limit);
    case FILL_STATS:
        return i < last ? op_value(r, i) : 4 + fabs(op_value(r, i)); /* sum x, sum x^2 of 4 elements */
    case FILL_MATRIX:
        return op_value(r, i) + (i / last == i % last ? 2.0 * (double)last : 0);
    default:
        return op_value(r, i);
    }
}

static inline void op_case_fill(const op_case *c, int k, uint64_t seed, void *data) {
    const int64_t n = rt_shape_elems(&c->in[k].shape);
    const rt_rng r = rt_rng_make(seed, RT_RNG_TEST, (uint64_t)c->op, (uint64_t)k);
    for (int64_t i = 0; i < n; i++) {
        const double v = op_fill_value(c, k, r, i);
        switch (c->in[k].dtype) {
        case RT_DTYPE_F32:
            ((float *)data)[i] = (float)v;
            break;
        case RT_DTYPE_F64:
            ((double *)data)[i] = v;
            break;
        default:
            ((int32_t *)data)[i] = (int32_t)v;
            break;
        }
    }
}

/* "conv2d(2x3x8x8, 16x3x3x3) n 2 g 1", for messages */
static inline void op_case_print(const op_case *c, char *text, size_t size) {
    size_t at = (size_t)snprintf(text, size, "%s(", rt_op_get(c->op)->name);
    for (int i = 0; i < c->nin && at < size; i++) {
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? ", " : "",
                               c->in[i].shape.rank == 0 ? "scalar" : "");
        for (int k = 0; k < c->in[i].shape.rank && at < size; k++)
            at += (size_t)snprintf(text + at, size - at, "%s%lld", k ? "x" : "",
                                   (long long)c->in[i].shape.d[k]);
    }
    if (at < size)
        snprintf(text + at, size - at,
                 ") n %lld groups %d members %d alpha %g beta %g ta %d tb %d stride %d pad %d",
                 (long long)c->n, (int)c->in[0].groups, (int)c->attr.members, c->attr.alpha, c->attr.beta,
                 c->attr.ta, c->attr.tb, (int)c->attr.stride, (int)c->attr.pad);
}

#endif
