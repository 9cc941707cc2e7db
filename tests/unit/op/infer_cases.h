/*
 * infer_cases.h - every operation with inputs that fit and inputs that do not, as data.
 *
 * A type is written  [d|i]<place>:<dims>  with d for f64, i for i32, else f32. The place is the number of
 * groups of a batched value, whose dims are then those of one row, or g for global, or S for a global result
 * that is a sum over the batch. Examples, for a batch of 4: "2:10" is f32 (8, 10) in two groups; "i1:" i32
 * (4); "g:" a scalar; "dS:2x5" f64 (2, 5).
 *
 * `out` is the expected result; NULL: refused, with `why` in the message.
 */
#ifndef RT_TESTS_INFER_CASES_H
#define RT_TESTS_INFER_CASES_H

#include "graph/graph.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CASE_BATCH = 4, CASE_MAX_IN = 6 };

typedef struct op_case {
    rt_op op;
    const char *in, *out, *why;
    rt_attr attr;
} op_case;

/* The grad column of op.def. */
static RT_UNUSED const char *const case_grad_rule[RT_OP_COUNT] = {
#define RT_OP(ID, name, arity, infer, grad, flags, meaning) [RT_OP_##ID] = #grad,
#include "op/op.def"
#undef RT_OP
};

/* Made by plan passes only, when gradients have been taken. */
static RT_UNUSED bool case_is_internal(const op_case *k) {
    return (rt_op_get(k->op)->flags & RT_OP_INTERNAL) != 0 ||
           (k->op == RT_OP_CONV2D_BWD_WEIGHTS && k->attr.members > 1);
}

/* Reads one type; returns the text behind it. */
static const char *case_read_type(rt_type *t, const char *s) {
    *t = (rt_type){.dtype = RT_DTYPE_F32};
    if (*s == 'd' || *s == 'i')
        t->dtype = *s++ == 'd' ? RT_DTYPE_F64 : RT_DTYPE_I32;
    if (*s == 'g' || *s == 'S') {
        t->kind = *s == 'S' ? RT_KIND_SUM : RT_KIND_GLOBAL;
        s++;
    } else {
        char *end;
        t->groups = (int32_t)strtol(s, &end, 10);
        t->kind = RT_KIND_ROWS;
        t->shape.d[t->shape.rank++] = t->groups * CASE_BATCH;
        s = end;
    }
    if (*s == ':')
        s++;
    while (isdigit((unsigned char)*s)) {
        char *end;
        t->shape.d[t->shape.rank++] = strtol(s, &end, 10);
        s = *end == 'x' ? end + 1 : end;
    }
    return s;
}

static RT_UNUSED int case_read_inputs(rt_type *in, const char *s) {
    int n = 0;
    while (*s != '\0' && n < CASE_MAX_IN) {
        s = case_read_type(&in[n++], s);
        while (*s == ' ')
            s++;
    }
    return n;
}

#define AT(...) .attr = {__VA_ARGS__}
#define SHAPE(rank_, ...) .shape = {.rank = (rank_), .d = {__VA_ARGS__}}

/* clang-format off */
static const op_case op_cases[] = {
    /* ---- element-wise ---- */
    {RT_OP_ADD, "2:5 2:5", "2:5", NULL, AT(0)},
    {RT_OP_ADD, "g: g:", "g:", NULL, AT(0)},
    {RT_OP_ADD, "d1:3x2x2 d1:3x2x2", "d1:3x2x2", NULL, AT(0)},
    {RT_OP_ADD, "2:5 1:5", NULL, "same groups", AT(0)},
    {RT_OP_ADD, "2:5 2:6", NULL, "same shape", AT(0)},
    {RT_OP_ADD, "g:5 dg:5", NULL, "one type", AT(0)},
    {RT_OP_ADD, "i1: i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_ADD, "1:5", NULL, "1 inputs, wanted 2", AT(0)},
    {RT_OP_SUB, "g:3 g:3", "g:3", NULL, AT(0)},
    {RT_OP_SUB, "1:3 g:3", NULL, "same groups", AT(0)},
    {RT_OP_MUL, "1:3 1:3", "1:3", NULL, AT(0)},
    {RT_OP_MUL, "1:3 1:3x1", NULL, "same shape", AT(0)},
    {RT_OP_DIV, "1: 1:", "1:", NULL, AT(0)},
    {RT_OP_DIV, "g: g:1", NULL, "same shape", AT(0)},
    {RT_OP_SCALE, "1:3", "1:3", NULL, AT(.alpha = 2, .beta = 1)},
    {RT_OP_SCALE, "i1:", NULL, "f32 or f64", AT(.alpha = 2)},
    {RT_OP_RELU, "1:3", "1:3", NULL, AT(.alpha = 0.1)},
    {RT_OP_RELU, "1:3", "1:3", NULL, AT(.alpha = -0.1)},
    {RT_OP_RELU, "1:3 1:3", NULL, "wanted 1", AT(0)},
    {RT_OP_RELU_BWD, "1:3 1:3", "1:3", NULL, AT(0)},
    {RT_OP_RELU_BWD, "1:3 1:4", NULL, "same shape", AT(0)},
    {RT_OP_EXP, "g:3", "g:3", NULL, AT(0)},
    {RT_OP_EXP, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_LOG, "1:3", "1:3", NULL, AT(0)},
    {RT_OP_LOG, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_SQRT, "1:3", "1:3", NULL, AT(0)},
    {RT_OP_SQRT, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_SQUARE, "1:3", "1:3", NULL, AT(0)},
    {RT_OP_SQUARE, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_RECIP, "1:3", "1:3", NULL, AT(0)},
    {RT_OP_RECIP, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_XLOGX, "1:3", "1:3", NULL, AT(0)},
    {RT_OP_XLOGX, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_SIGMOID, "1:3", "1:3", NULL, AT(0)},
    {RT_OP_SIGMOID, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_TANH, "1:3", "1:3", NULL, AT(0)},
    {RT_OP_TANH, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_SOFTPLUS, "1:3", "1:3", NULL, AT(0)},
    {RT_OP_SOFTPLUS, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_CLIP, "1:3", "1:3", NULL, AT(.alpha = -1, .beta = HUGE_VAL)},
    {RT_OP_CLIP, "1:3", NULL, "must not exceed", AT(.alpha = 2, .beta = 1)},
    {RT_OP_CLIP_BWD, "1:3 1:3", "1:3", NULL, AT(.alpha = -1, .beta = 1)},
    {RT_OP_CLIP_BWD, "1:3 g:3", NULL, "same groups", AT(.alpha = -1, .beta = 1)},
    {RT_OP_LGAMMA, "1:3", "1:3", NULL, AT(0)},
    {RT_OP_LGAMMA, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_DIGAMMA, "1:3", "1:3", NULL, AT(0)},
    {RT_OP_DIGAMMA, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_TRIGAMMA, "1:3", "1:3", NULL, AT(0)},
    {RT_OP_TRIGAMMA, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_STOP_GRAD, "1:3", "1:3", NULL, AT(0)},
    {RT_OP_STOP_GRAD, "1:3 1:3", NULL, "wanted 1", AT(0)},
    {RT_OP_DROPOUT, "3:5", "3:5", NULL, AT(.alpha = 0.5, .stream = 7)},
    {RT_OP_DROPOUT, "1:5", NULL, "[0, 1)", AT(.alpha = 1)},
    {RT_OP_DROPOUT, "1:5", NULL, "[0, 1)", AT(.alpha = NAN)},
    {RT_OP_RANDOM, "3:5", "3:5", NULL, AT(.stream = 7)},
    {RT_OP_RANDOM, "1:5x2x2", "1:5x2x2", NULL, AT(.index = 1)},
    {RT_OP_RANDOM, "1:5", NULL, "distribution", AT(.index = 2)},
    {RT_OP_RANDOM, "g:5", NULL, "batched", AT(0)},
    {RT_OP_MUL_SCALAR, "1:5 g:", "1:5", NULL, AT(0)},
    {RT_OP_MUL_SCALAR, "g:5 g:", "g:5", NULL, AT(0)},
    {RT_OP_MUL_SCALAR, "1:5 g:1", NULL, "scalar", AT(0)},
    {RT_OP_MUL_SCALAR, "1:5 1:", NULL, "global", AT(0)},
    {RT_OP_ADD_CHAN, "2:5 g:5", "2:5", NULL, AT(0)},
    {RT_OP_ADD_CHAN, "2:5x3x3 g:2x5", "2:5x3x3", NULL, AT(0)},
    {RT_OP_ADD_CHAN, "1:5 g:1x5", "1:5", NULL, AT(0)},
    {RT_OP_ADD_CHAN, "g:7x5 g:5", "g:7x5", NULL, AT(0)},
    {RT_OP_ADD_CHAN, "2:5 g:3x5", NULL, "(5) or (2, 5)", AT(0)},
    {RT_OP_ADD_CHAN, "g:7x5 g:7x5", NULL, "must be (5)", AT(0)},
    {RT_OP_ADD_CHAN, "2:5 2:5", NULL, "global", AT(0)},
    {RT_OP_ADD_CHAN, "1: g:4", NULL, "(rows, C)", AT(0)},
    {RT_OP_MUL_CHAN, "2:5 g:2x5", "2:5", NULL, AT(0)},
    {RT_OP_MUL_CHAN, "1:5x2x2 g:5", "1:5x2x2", NULL, AT(0)},
    {RT_OP_MUL_CHAN, "g:7x5 g:5", "g:7x5", NULL, AT(0)},
    {RT_OP_MUL_CHAN, "2:5 g:4", NULL, "(5) or (2, 5)", AT(0)},
    {RT_OP_ADD_ROW, "2:5 2:", "2:5", NULL, AT(0)},
    {RT_OP_ADD_ROW, "2:5 1:", NULL, "2 groups", AT(0)},
    {RT_OP_MUL_ROW, "2:5x3 2:", "2:5x3", NULL, AT(0)},
    {RT_OP_MUL_ROW, "g:7x5 g:7", NULL, "batched", AT(0)},
    /* ---- shape and members ---- */
    {RT_OP_RESHAPE, "2:6", "2:2x3", NULL, AT(SHAPE(2, 2, 3))},
    {RT_OP_RESHAPE, "1:1", "1:", NULL, AT(0)},
    {RT_OP_RESHAPE, "g:6", "g:3x2", NULL, AT(SHAPE(2, 3, 2))},
    {RT_OP_RESHAPE, "2:6", NULL, "6 elements per row", AT(SHAPE(2, 8, 6))},
    {RT_OP_RESHAPE, "g:6", NULL, "6 elements do not", AT(SHAPE(1, 7))},
    {RT_OP_RESHAPE, "g:6", NULL, "rank 6", AT(SHAPE(6, 6, 1, 1, 1, 1))},
    {RT_OP_TRANSPOSE, "g:2x3", "g:3x2", NULL, AT(0)},
    {RT_OP_TRANSPOSE, "g:5x2x3", "g:5x3x2", NULL, AT(0)},
    {RT_OP_TRANSPOSE, "1:3", NULL, "global", AT(0)},
    {RT_OP_TRANSPOSE, "g:3", NULL, "(a, b)", AT(0)},
    {RT_OP_TILE_MEMBERS, "1:5", "3:5", NULL, AT(.members = 3)},
    {RT_OP_TILE_MEMBERS, "i1:", "i3:", NULL, AT(.members = 3)},
    {RT_OP_TILE_MEMBERS, "2:5", NULL, "one group", AT(.members = 3)},
    {RT_OP_TILE_MEMBERS, "1:5", NULL, "0 members", AT(0)},
    {RT_OP_SUM_MEMBERS, "3:5", "1:5", NULL, AT(0)},
    {RT_OP_SUM_MEMBERS, "g:3x5", NULL, "batched", AT(0)},
    {RT_OP_MEMBER_GET, "3:5 ig:", "1:5", NULL, AT(0)},
    {RT_OP_MEMBER_GET, "i3: ig:", "i1:", NULL, AT(0)},
    {RT_OP_MEMBER_GET, "g:3x5 ig:", "g:5", NULL, AT(0)},
    {RT_OP_MEMBER_GET, "3:5 g:", NULL, "i32 scalar", AT(0)},
    {RT_OP_MEMBER_GET, "g: ig:", NULL, "(M, ...)", AT(0)},
    {RT_OP_MEMBER_PUT, "1:5 ig:", "3:5", NULL, AT(.members = 3)},
    {RT_OP_MEMBER_PUT, "g:5 ig:", "g:3x5", NULL, AT(.members = 3)},
    {RT_OP_MEMBER_PUT, "2:5 ig:", NULL, "one group", AT(.members = 3)},
    {RT_OP_MEMBER_PUT, "1:5 ig:", NULL, "attr.members", AT(0)},
    {RT_OP_MEMBER_RANGE, "4:5", "2:5", NULL, AT(.start = 1, .count = 2)},
    {RT_OP_MEMBER_RANGE, "g:4x5", "g:2x5", NULL, AT(.start = 2, .count = 2)},
    {RT_OP_MEMBER_RANGE, "4:5", NULL, "on do not exist in", AT(.start = 3, .count = 2)},
    {RT_OP_MEMBER_RANGE, "4:5", NULL, "on do not exist in", AT(.start = INT64_MAX, .count = 2)},
    {RT_OP_MEMBER_PLACE, "2:5", "4:5", NULL, AT(.start = 1, .members = 4)},
    {RT_OP_MEMBER_PLACE, "g:2x5", "g:4x5", NULL, AT(.start = 2, .members = 4)},
    {RT_OP_MEMBER_PLACE, "2:5", NULL, "do not fit", AT(.start = 3, .members = 4)},
    {RT_OP_CONCAT_MEMBERS, "1:5 2:5 1:5", "4:5", NULL, AT(0)},
    {RT_OP_CONCAT_MEMBERS, "g:2x5 g:1x5", "g:3x5", NULL, AT(0)},
    {RT_OP_CONCAT_MEMBERS, "1:5 2:6", NULL, "differ", AT(0)},
    {RT_OP_CONCAT_MEMBERS, "1:5 g:1x5", NULL, "all batched or all global", AT(0)},
    {RT_OP_CONCAT_MEMBERS, "", NULL, "no inputs", AT(0)},
    {RT_OP_SLICE_LAST, "2:6", "2:2", NULL, AT(.start = 3, .count = 2)},
    {RT_OP_SLICE_LAST, "g:6", "g:6", NULL, AT(.count = 6)},
    {RT_OP_SLICE_LAST, "2:6", NULL, "on do not exist in", AT(.start = 5, .count = 2)},
    {RT_OP_SLICE_LAST, "1:", NULL, "besides the rows", AT(.count = 2)},
    {RT_OP_PAD_LAST, "2:2", "2:6", NULL, AT(.start = 3, .index = 6)},
    {RT_OP_PAD_LAST, "2:2", NULL, "do not fit", AT(.start = 5, .index = 6)},
    {RT_OP_ONE_HOT, "i2:", "2:10", NULL, AT(.count = 10)},
    {RT_OP_ONE_HOT, "i1:", "d1:10", NULL, AT(.count = 10, .tb = true)},
    {RT_OP_ONE_HOT, "1:", NULL, "i32 labels", AT(.count = 10)},
    {RT_OP_ONE_HOT, "i1:", NULL, "classes", AT(0)},
    /* ---- reductions ---- */
    {RT_OP_ROW_SUM, "2:5x3", "2:", NULL, AT(0)},
    {RT_OP_ROW_SUM, "g:7x5", "g:7", NULL, AT(0)},
    {RT_OP_ROW_SUM, "g:", NULL, "(rows, ...)", AT(0)},
    {RT_OP_ROW_MAX, "2:5", "2:", NULL, AT(0)},
    {RT_OP_ROW_MAX, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_ROW_DOT, "2:5 2:5", "2:", NULL, AT(0)},
    {RT_OP_ROW_DOT, "g:7x5 g:7x5", "g:7", NULL, AT(0)},
    {RT_OP_ROW_DOT, "2:5 2:4", NULL, "same shape", AT(0)},
    {RT_OP_EXPAND_ROW, "2:", "2:5x3", NULL, AT(SHAPE(2, 5, 3))},
    {RT_OP_EXPAND_ROW, "g:7", "g:7x5", NULL, AT(SHAPE(1, 5))},
    {RT_OP_EXPAND_ROW, "2:5", NULL, "must be (rows)", AT(SHAPE(1, 5))},
    {RT_OP_EXPAND_ROW, "g:7", NULL, "at least 1", AT(SHAPE(1, 0))},
    {RT_OP_CHAN_SUM, "2:5", "S:5", NULL, AT(0)},
    {RT_OP_CHAN_SUM, "2:5x3x3", "S:2x5", NULL, AT(.members = 2)},
    {RT_OP_CHAN_SUM, "g:7x5", "g:5", NULL, AT(0)},
    {RT_OP_CHAN_SUM, "2:5", NULL, "attr.members", AT(.members = 3)},
    {RT_OP_CHAN_SUM, "1:", NULL, "(rows, C)", AT(0)},
    {RT_OP_CHAN_DOT, "2:5x3x3 2:5x3x3", "S:5", NULL, AT(0)},
    {RT_OP_CHAN_DOT, "2:5 2:5", "S:2x5", NULL, AT(.members = 2)},
    {RT_OP_CHAN_DOT, "g:7x5 g:7x5", "g:5", NULL, AT(0)},
    {RT_OP_CHAN_DOT, "2:5 2:5x3x3", NULL, "same shape", AT(0)},
    {RT_OP_EXPAND_CHAN, "g:5", "2:5x3x2", NULL, AT(.count = 2, SHAPE(2, 3, 2))},
    {RT_OP_EXPAND_CHAN, "g:2x5", "2:5", NULL, AT(.members = 2, .count = 2)},
    {RT_OP_EXPAND_CHAN, "g:5", "g:7x5", NULL, AT(.n = 7)},
    {RT_OP_EXPAND_CHAN, "g:2x5", NULL, "must agree", AT(.members = 2, .count = 3)},
    {RT_OP_EXPAND_CHAN, "g:5", NULL, "(h, w)", AT(.count = 1, SHAPE(1, 3))},
    {RT_OP_TOTAL_SUM, "2:5", "S:", NULL, AT(0)},
    {RT_OP_TOTAL_SUM, "g:5", "g:", NULL, AT(0)},
    {RT_OP_TOTAL_SUM, "i1:", NULL, "f32 or f64", AT(0)},
    {RT_OP_TOTAL_DOT, "2:5 2:5", "S:", NULL, AT(0)},
    {RT_OP_TOTAL_DOT, "g:5 g:5", "g:", NULL, AT(0)},
    {RT_OP_TOTAL_DOT, "2:5 g:5", NULL, "same groups", AT(0)},
    {RT_OP_EXPAND_TOTAL, "g:", "2:5", NULL, AT(.members = 2, SHAPE(1, 5))},
    {RT_OP_EXPAND_TOTAL, "g:", "g:5", NULL, AT(SHAPE(1, 5))},
    {RT_OP_EXPAND_TOTAL, "g:1", NULL, "scalar", AT(.members = 2)},
    {RT_OP_BATCH_SUM, "2:5x3", "S:5x3", NULL, AT(0)},
    {RT_OP_BATCH_SUM, "g:7x5", "g:5", NULL, AT(0)},
    {RT_OP_BATCH_SUM, "g:", NULL, "(rows, ...)", AT(0)},
    {RT_OP_EXPAND_BATCH, "g:5x3", "2:5x3", NULL, AT(.members = 2)},
    {RT_OP_EXPAND_BATCH, "g:5", "g:7x5", NULL, AT(.n = 7)},
    {RT_OP_EXPAND_BATCH, "1:5", NULL, "global", AT(.members = 2)},
    /* ---- products ---- */
    {RT_OP_MATMUL, "2:5 g:5x3", "2:3", NULL, AT(0)},
    {RT_OP_MATMUL, "2:5 g:3x5", "2:3", NULL, AT(.tb = true)},
    {RT_OP_MATMUL, "2:5 2:3", "S:5x3", NULL, AT(.ta = true)},
    {RT_OP_MATMUL, "g:2x5 g:5x3", "g:2x3", NULL, AT(0)},
    {RT_OP_MATMUL, "g:5x2 g:5x3", "g:2x3", NULL, AT(.ta = true)},
    {RT_OP_MATMUL, "g:2x5 g:3x5", "g:2x3", NULL, AT(.tb = true)},
    {RT_OP_MATMUL, "g:5x2 g:3x5", "g:2x3", NULL, AT(.ta = true, .tb = true)},
    {RT_OP_MATMUL, "2:5 g:4x3", NULL, "inner dimensions 5 and 4", AT(0)},
    {RT_OP_MATMUL, "2:5 2:5", NULL, "need ta", AT(0)},
    {RT_OP_MATMUL, "2:5 2:3", NULL, "need ta", AT(.ta = true, .tb = true)},
    {RT_OP_MATMUL, "2:5 1:3", NULL, "same groups", AT(.ta = true)},
    {RT_OP_MATMUL, "2:5 g:8x3", NULL, "needs a batched input 1", AT(.ta = true)},
    {RT_OP_MATMUL, "g:3x4 1:5", NULL, "rows come first", AT(0)},
    {RT_OP_MATMUL, "1:5x1 g:5x3", NULL, "rank 2", AT(0)},
    {RT_OP_BMM, "2:5 g:2x5x3", "2:3", NULL, AT(0)},
    {RT_OP_BMM, "2:5 g:2x3x5", "2:3", NULL, AT(.tb = true)},
    {RT_OP_BMM, "2:5 2:3", "S:2x5x3", NULL, AT(.ta = true)},
    {RT_OP_BMM, "g:4x2x5 g:4x5x3", "g:4x2x3", NULL, AT(0)},
    {RT_OP_BMM, "g:4x5x2 g:4x3x5", "g:4x2x3", NULL, AT(.ta = true, .tb = true)},
    {RT_OP_BMM, "2:5 g:3x5x3", NULL, "2 matrices, has 3", AT(0)},
    {RT_OP_BMM, "2:5 g:5x3", NULL, "rank 3", AT(0)},
    {RT_OP_BMM, "g:4x2x5 g:3x5x3", NULL, "same number", AT(0)},
    {RT_OP_CONV2D, "2:3x8x6 g:5x3x3x3", "2:5x8x6", NULL, AT(.stride = 1, .pad = 1)},
    {RT_OP_CONV2D, "1:3x8x7 g:5x3x3x1", "1:5x4x5", NULL, AT(.stride = 2, .pad = 1)},
    {RT_OP_CONV2D, "1:3x8x8 g:5x4x3x3", NULL, "4 input channels", AT(.stride = 1)},
    {RT_OP_CONV2D, "1:3x2x2 g:5x3x3x3", NULL, "does not fit", AT(.stride = 1)},
    {RT_OP_CONV2D, "1:3x8x8 g:5x3x3x3", NULL, "stride", AT(0)},
    {RT_OP_CONV2D, "1:3x8x8 1:5x3x3", NULL, "global", AT(.stride = 1)},
    {RT_OP_CONV2D_BWD_DATA, "1:5x4x4 g:5x3x3x3", "1:3x8x8", NULL, AT(.stride = 2, .pad = 1, .h = 8, .w = 8)},
    {RT_OP_CONV2D_BWD_DATA, "1:5x4x4 g:5x3x3x3", "1:3x7x8", NULL, AT(.stride = 2, .pad = 1, .h = 7, .w = 8)},
    {RT_OP_CONV2D_BWD_DATA, "1:5x4x4 g:5x3x3x3", NULL, "9x8 image", AT(.stride = 2, .pad = 1, .h = 9, .w = 8)},
    {RT_OP_CONV2D_BWD_WEIGHTS, "2:3x8x8 2:5x4x4", "S:5x3x3x3", NULL, AT(.stride = 2, .pad = 1, .kh = 3, .kw = 3)},
    {RT_OP_CONV2D_BWD_WEIGHTS, "2:3x8x8 2:5x4x4", NULL, "5x3 kernel", AT(.stride = 2, .pad = 1, .kh = 5, .kw = 3)},
    {RT_OP_CONV2D_BWD_WEIGHTS, "2:3x8x8 1:5x4x4", NULL, "same groups", AT(.stride = 2, .pad = 1, .kh = 3, .kw = 3)},
    {RT_OP_CONV2D_BWD_WEIGHTS, "2:3x8x8 2:5x4x4", "S:10x3x3x3", NULL,
     AT(.members = 2, .stride = 2, .pad = 1, .kh = 3, .kw = 3)},
    {RT_OP_CONV2D_BWD_WEIGHTS, "2:3x8x8 2:5x4x4", NULL, "groups of the inputs",
     AT(.members = 3, .stride = 2, .pad = 1, .kh = 3, .kw = 3)},
    {RT_OP_RANK1_BWD, "g:10x3x2x2 g:5x3x2x2 g:2x3 g:2x5", "g:5x3x2x2", NULL, AT(0)},
    {RT_OP_RANK1_BWD, "g:10x3x2x2 g:5x3x2x2 g:2x3 g:2x5", "g:2x3", NULL, AT(.index = 1)},
    {RT_OP_RANK1_BWD, "g:10x3x2x2 g:5x3x2x2 g:2x3 g:2x5", "g:2x5", NULL, AT(.index = 2)},
    {RT_OP_RANK1_BWD, "g:10x3x2x2 g:5x3x2x2 g:2x3 g:2x5", NULL, "attr.index", AT(.index = 3)},
    {RT_OP_RANK1_BWD, "g:9x3x2x2 g:5x3x2x2 g:2x3 g:2x5", NULL, "M oc", AT(0)},
    {RT_OP_RANK1_BWD, "g:10x3x2x2 g:5x3x2x2 g:2x5 g:2x3", NULL, "inputs 1 to 3", AT(0)},
    /* ---- pooling ---- */
    {RT_OP_MAXPOOL, "1:3x8x6", "1:3x4x3", NULL, AT(.kh = 2, .kw = 2, .stride = 2)},
    {RT_OP_MAXPOOL, "1:3x8x8", "1:3x4x4", NULL, AT(.kh = 3, .kw = 3, .stride = 2, .pad = 1)},
    {RT_OP_MAXPOOL, "1:3x8x8", NULL, "half the window", AT(.kh = 3, .kw = 3, .stride = 2, .pad = 2)},
    {RT_OP_MAXPOOL, "1:3x2x8", NULL, "does not fit", AT(.kh = 3, .kw = 3, .stride = 2)},
    {RT_OP_MAXPOOL_BWD, "1:3x4x3 1:3x8x6", "1:3x8x6", NULL, AT(.kh = 2, .kw = 2, .stride = 2)},
    {RT_OP_MAXPOOL_BWD, "1:3x4x4 1:3x8x6", NULL, "pooled", AT(.kh = 2, .kw = 2, .stride = 2)},
    {RT_OP_GLOBAL_AVGPOOL, "2:3x8x6", "2:3", NULL, AT(0)},
    {RT_OP_GLOBAL_AVGPOOL, "2:3", NULL, "(rows, c, h, w)", AT(0)},
    {RT_OP_GLOBAL_AVGPOOL_BWD, "2:3", "2:3x8x6", NULL, AT(.h = 8, .w = 6)},
    {RT_OP_GLOBAL_AVGPOOL_BWD, "2:3", NULL, "attr.h", AT(0)},
    /* ---- batch normalisation; attr.n is never compared with the rows ---- */
    {RT_OP_BN_STATS, "2:5x3x3", "dS:2x5", NULL, AT(0)},
    {RT_OP_BN_STATS, "2:5", "dS:2x10", NULL, AT(.members = 2)},
    {RT_OP_BN_STATS, "2:5", NULL, "attr.members", AT(.members = 3)},
    {RT_OP_BN_STATS, "g:7x5", NULL, "batched", AT(0)},
    {RT_OP_BN_COEF, "dg:2x5 g:5 g:5", "g:4x5", NULL, AT(.n = 1000)},
    {RT_OP_BN_COEF, "dg:2x10 g:2x5 g:5", "g:4x10", NULL, AT(.n = 1000, .members = 2)},
    {RT_OP_BN_COEF, "dg:2x10 g:10 g:10", NULL, "(2, 5)", AT(.n = 1000, .members = 2)},
    {RT_OP_BN_COEF, "g:2x5 g:5 g:5", NULL, "must be f64", AT(.n = 1000)},
    {RT_OP_BN_COEF, "dg:2x5 g:5 g:5", NULL, "attr.n", AT(0)},
    {RT_OP_BN_COEF_EVAL, "g:5 g:5 g:5 g:5", "g:4x5", NULL, AT(0)},
    {RT_OP_BN_COEF_EVAL, "g:2x5 g:2x5 g:5 g:2x5", "g:4x10", NULL, AT(.members = 2)},
    {RT_OP_BN_COEF_EVAL, "g:5 g:2x5 g:5 g:5", NULL, "input 0 must be (2, 5)", AT(.members = 2)},
    {RT_OP_BN_APPLY, "1:5x3x3 g:4x5", "1:5x3x3", NULL, AT(0)},
    {RT_OP_BN_APPLY, "2:5 g:4x10", "2:5", NULL, AT(.members = 2)},
    {RT_OP_BN_APPLY, "2:5 g:4x10", NULL, "(4, 5)", AT(0)},
    {RT_OP_BN_GSTATS, "1:5x3x3 1:5x3x3 g:4x5", "dS:2x5", NULL, AT(0)},
    {RT_OP_BN_GSTATS, "1:5x3x3 1:5x3x3 g:3x5", NULL, "(4, 5)", AT(0)},
    {RT_OP_BN_GCOEF, "dg:2x5 g:4x5 g:5", "g:3x5", NULL, AT(.n = 9)},
    {RT_OP_BN_GCOEF, "dg:2x5 g:4x6 g:5", NULL, "(4, 5)", AT(.n = 9)},
    {RT_OP_BN_GCOEF_EVAL, "g:4x5", "g:3x5", NULL, AT(0)},
    {RT_OP_BN_GCOEF_EVAL, "g:3x5", NULL, "(4, C)", AT(0)},
    {RT_OP_BN_GAPPLY, "1:5 1:5 g:3x5", "1:5", NULL, AT(0)},
    {RT_OP_BN_GAPPLY, "1:5 1:5 g:4x5", NULL, "(3, 5)", AT(0)},
    {RT_OP_BN_RELU_BWD, "1:5 1:5 g:4x5", "1:5", NULL, AT(0)},
    {RT_OP_BN_RELU_BWD, "1:5 1:5 g:3x5", NULL, "(4, 5)", AT(0)},
    {RT_OP_BN_GPARAM, "dg:2x10", "g:10", NULL, AT(.index = 1)},
    {RT_OP_BN_GPARAM, "dg:2x10", "g:5", NULL, AT(.members = 2)},
    {RT_OP_BN_GPARAM, "dg:2x10", "dg:2x5", NULL, AT(.members = 2, .ta = true, .tb = true)},
    {RT_OP_BN_GPARAM, "dg:2x10", NULL, "attr.index", AT(.index = 2)},
    {RT_OP_BN_RUNNING, "dg:2x5 g:5", "g:5", NULL, AT(.n = 9, .alpha = 0.1)},
    {RT_OP_BN_RUNNING, "dg:2x10 g:2x5", "g:2x5", NULL, AT(.n = 9, .alpha = 0.1, .members = 2, .index = 1)},
    {RT_OP_BN_RUNNING, "dg:2x10 g:5", NULL, "(2, 5)", AT(.n = 9, .alpha = 0.1, .members = 2)},
    /* ---- losses ---- */
    {RT_OP_SOFTMAX, "2:5", "2:5", NULL, AT(0)},
    {RT_OP_SOFTMAX, "g:5", "g:5", NULL, AT(0)},
    {RT_OP_SOFTMAX, "1:", NULL, "besides the rows", AT(0)},
    {RT_OP_SOFTMAX_BWD, "2:5 2:5", "2:5", NULL, AT(0)},
    {RT_OP_SOFTMAX_BWD, "1: 1:", NULL, "besides the rows", AT(0)},
    {RT_OP_LOG_SOFTMAX, "2:5", "2:5", NULL, AT(0)},
    {RT_OP_LOG_SOFTMAX, "g:", NULL, "besides the rows", AT(0)},
    {RT_OP_LOG_SOFTMAX_BWD, "2:5 2:5", "2:5", NULL, AT(0)},
    {RT_OP_LOG_SOFTMAX_BWD, "2:5 2:4", NULL, "same shape", AT(0)},
    {RT_OP_CE_LABEL, "2:5 i2:", "2:", NULL, AT(.alpha = 0.1)},
    {RT_OP_CE_LABEL, "2:5 i1:", NULL, "tile it", AT(0)},
    {RT_OP_CE_LABEL, "2:5 2:", NULL, "i32 labels", AT(0)},
    {RT_OP_CE_LABEL, "2:5 i2:", NULL, "smoothing", AT(.alpha = 2)},
    {RT_OP_CE_LABEL, "2:5x2 i2:", NULL, "logits", AT(0)},
    {RT_OP_CE_LABEL_BWD, "2: 2:5 i2:", "2:5", NULL, AT(0)},
    {RT_OP_CE_LABEL_BWD, "2:5 2:5 i2:", NULL, "input 0 must be (rows)", AT(0)},
    {RT_OP_CE_DIST, "2:5 2:5", "2:", NULL, AT(0)},
    {RT_OP_CE_DIST, "2:5 1:5", NULL, "same groups", AT(0)},
    {RT_OP_CE_DIST_BWD, "2: 2:5 2:5", "2:5", NULL, AT(0)},
    {RT_OP_CE_DIST_BWD, "g: 2:5 2:5", NULL, "input 0 must be (rows)", AT(0)},
    {RT_OP_DIRICHLET_NLL, "2:5 2:5", "2:", NULL, AT(.alpha = 1)},
    {RT_OP_DIRICHLET_NLL, "2:5 1:5", NULL, "same groups", AT(0)},
    {RT_OP_DIRICHLET_NLL, "2:5 2:5", NULL, "offset", AT(.alpha = -1)},
    {RT_OP_DIRICHLET_NLL_BWD, "2: 2:5 2:5", "2:5", NULL, AT(0)},
    {RT_OP_DIRICHLET_NLL_BWD, "g: 2:5 2:5", NULL, "input 0 must be (rows)", AT(0)},
    {RT_OP_DIRICHLET_KL, "2:5 2:5", "2:", NULL, AT(0)},
    {RT_OP_DIRICHLET_KL, "2:5 2:4", NULL, "same shape", AT(0)},
    {RT_OP_DIRICHLET_KL_BWD, "2: 2:5 2:5", "2:5", NULL, AT(.alpha = 1)},
    {RT_OP_DIRICHLET_KL_BWD, "2: 2:5 2:5", NULL, "offset", AT(.alpha = NAN)},
    {RT_OP_DIRICHLET_PROXY, "3:5", "1:5", NULL, AT(.alpha = 1e-7)},
    {RT_OP_DIRICHLET_PROXY, "3:5", NULL, "floor", AT(0)},
    {RT_OP_DIRICHLET_PROXY, "3:5x2", NULL, "logits", AT(.alpha = 1e-7)},
    {RT_OP_QP_SIMPLEX, "g:4x10", "g:4", NULL, AT(.alpha = 0.6)},
    {RT_OP_QP_SIMPLEX, "3:10", "3:", NULL, AT(.alpha = 0.6)},
    {RT_OP_QP_SIMPLEX, "g:4x10", NULL, "upper bound", AT(0)},
    {RT_OP_QP_SIMPLEX, "g:4", NULL, "(M, K)", AT(.alpha = 1)},
    /* ---- linear algebra ---- */
    {RT_OP_MATINV, "g:5x5", "g:5x5", NULL, AT(0)},
    {RT_OP_MATINV, "g:5x4", NULL, "square", AT(0)},
    {RT_OP_MATINV, "1:4", NULL, "global", AT(0)},
    {RT_OP_SOLVE, "g:5x5 g:5x2", "g:5x2", NULL, AT(0)},
    {RT_OP_SOLVE, "g:5x5 g:5x2", "g:5x2", NULL, AT(.ta = true)},
    {RT_OP_SOLVE, "g:5x5 g:2x5", NULL, "(5, m)", AT(0)},
    {RT_OP_SINKHORN, "g:5x5", "g:5x5", NULL, AT(.alpha = 0.1, .count = 20)},
    {RT_OP_SINKHORN, "g:5x5", NULL, "temperature", AT(.count = 20)},
    {RT_OP_SINKHORN, "g:5x5", NULL, "iteration", AT(.alpha = 1)},
    {RT_OP_SINKHORN_BWD, "g:5x5 g:5x5 g:5x5", "g:5x5", NULL, AT(.alpha = 0.1, .count = 20)},
    {RT_OP_SINKHORN_BWD, "g:5x5 g:5x5 g:4x4", NULL, "same shape", AT(.alpha = 0.1, .count = 20)},
    /* ---- made by passes ---- */
    {RT_OP_REORDER, "1:16x2x2", "1:16x2x2", NULL, AT(.index = RT_LAYOUT_C8)},
    {RT_OP_REORDER, "1:16x2x2", NULL, "layout", AT(.index = RT_LAYOUT_COUNT)},
    {RT_OP_CHAIN, "1:5 g:5", "1:5", NULL, AT(.count = 2)},
    {RT_OP_CHAIN, "i1: g:5", NULL, "f32 or f64", AT(.count = 2)},
    {RT_OP_FUSED_MATMUL, "1:5 g:5x5", "1:5", NULL, AT(.count = 1)},
    {RT_OP_FUSED_MATMUL, "g:5x5 g:5x5", NULL, "batched", AT(.count = 1)},
    {RT_OP_FUSED_CONV, "1:5x4x4 g:5x5x3x3", "1:5x4x4", NULL, AT(.count = 1)},
    {RT_OP_FUSED_CONV, "g:5 g:5x5x3x3", NULL, "batched", AT(.count = 1)},
};
/* clang-format on */

#endif
