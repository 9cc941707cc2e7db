/*
 * op_problem.h - from a case of op_cases.h to a problem of kern.h, and one run of a kernel on it.
 */
#ifndef RT_TESTS_OP_PROBLEM_H
#define RT_TESTS_OP_PROBLEM_H

#include "op/op_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

typedef struct op_problem {
    rt_problem p;
    rt_desc in[OP_CASE_IN];
    int32_t groups[OP_CASE_IN];
} op_problem;

/* PLAIN layouts; p->p points into p, which therefore must not be copied. */
static inline void op_problem_init(op_problem *p, const op_case *c) {
    char text[512];
    rt_type out = c->in[0];
    if (c->op != RT_OP_CHAIN && c->op != RT_OP_FUSED_CONV && c->op != RT_OP_FUSED_MATMUL &&
        c->op != RT_OP_REORDER && rt_op_infer(&out, c->op, &c->attr, c->in, c->nin, c->n) != RT_OK) {
        op_case_print(c, text, sizeof text);
        fail_msg("%s: %s", text, rt_error_text());
    }
    for (int i = 0; i < c->nin; i++) {
        p->in[i] = rt_desc_make(c->in[i].dtype, c->in[i].shape, RT_LAYOUT_PLAIN);
        p->groups[i] = c->in[i].groups;
    }
    p->p = (rt_problem){.op = c->op,
                        .attr = c->attr,
                        .chain = c->chain,
                        .nin = c->nin,
                        .in = p->in,
                        .in_groups = p->groups,
                        .out = rt_desc_make(out.dtype, out.shape, RT_LAYOUT_PLAIN),
                        .out_groups = out.groups,
                        .n = c->n,
                        .kind = out.kind};
}

/* A buffer with guard bytes behind it. */
enum { OP_GUARD = 64 };
static inline void *op_buffer(size_t bytes) {
    char *b = NULL;
    assert_int_equal(rt_alloc(&b, bytes + OP_GUARD), RT_OK);
    memset(b, 0xA5, bytes + OP_GUARD);
    return b;
}
static inline bool op_buffer_intact(const void *b, size_t bytes) {
    for (size_t i = 0; i < OP_GUARD; i++)
        if (((const unsigned char *)b)[bytes + i] != 0xA5)
            return false;
    return true;
}

/* Prepares, runs once, releases. False: prepare refused or a guard was overwritten; the reason is printed. */
static inline bool op_run(const rt_kern *k, const rt_problem *p, void *out, const void *const *in,
                          rt_kern_ctx ctx) {
    void *state = NULL;
    size_t scratch = 0;
    if (k->prepare && k->prepare(p, &state, &scratch) != RT_OK) {
        print_error("%s: prepare: %s\n", k->impl, rt_error_text());
        return false;
    }
    bool ok = !k->attach || k->attach(state, 0) == RT_OK;
    ctx.scratch = op_buffer(scratch);
    if (ok)
        k->run(state, p, out, in, &ctx);
    else
        print_error("%s: attach: %s\n", k->impl, rt_error_text());
    if (!op_buffer_intact(ctx.scratch, scratch)) {
        print_error("%s: wrote behind its scratch\n", k->impl);
        ok = false;
    }
    rt_free(ctx.scratch);
    if (k->release)
        k->release(state);
    return ok;
}

static inline double op_load(rt_dtype t, const void *data, int64_t i) {
    return t == RT_DTYPE_F32   ? (double)((const float *)data)[i]
           : t == RT_DTYPE_F64 ? ((const double *)data)[i]
                               : ((const int32_t *)data)[i];
}

static inline void op_store(rt_dtype t, void *data, int64_t i, double v) {
    if (t == RT_DTYPE_F32)
        ((float *)data)[i] = (float)v;
    else if (t == RT_DTYPE_F64)
        ((double *)data)[i] = v;
    else
        ((int32_t *)data)[i] = (int32_t)v;
}

#endif
