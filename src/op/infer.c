/*
 * infer.c - types of results: the frame around the shape rules.
 *
 * rt_op_infer checks what holds for every operation - arity, sane shapes, rows = groups x n - calls the rule
 * that op.def names, and checks that the result can be addressed. The kind of a result follows from the
 * groups alone: a batched result is ROWS, a global one is SUM if any input is batched (every such operation
 * is a plain sum over samples, see op.def) and GLOBAL otherwise.
 */
#include "op/op_int.h"
#include <stdio.h>

static rt_infer_fn *const g_rules[RT_OP_COUNT] = {
#define RT_OP(ID, name, arity, infer, grad, flags, meaning) [RT_OP_##ID] = rt_infer_##infer,
#include "op/op.def"
#undef RT_OP
};

static void print_type(const rt_type *t, rt_str *out) {
    rt_str_appendf(out, "%s ", rt_dtype_name(t->dtype));
    if (t->groups > 0)
        rt_str_appendf(out, "[%dx] ", (int)t->groups);
    rt_shape_print(&t->shape, out);
}

rt_status rt_infer_fail(const rt_infer *q, const char *file, int line, const char *fmt, ...) {
    char why[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);

    rt_str call;
    rt_str_init(&call);
    rt_str_appendf(&call, "%s(", rt_op_get(q->op)->name);
    for (int i = 0; i < q->nin; i++) {
        if (i > 0)
            rt_str_append(&call, ", ");
        print_type(&q->in[i], &call);
    }
    rt_str_append(&call, ") ");
    rt_attr_print(q->attr, &call);
    while (call.len > 0 && call.p[call.len - 1] == ' ')
        call.p[--call.len] = '\0';
    rt_status st = rt_error_set(RT_E_USAGE, file, line, "%s: %s", rt_str_text(&call), why);
    rt_str_deinit(&call);
    return st;
}

bool rt_type_is_float(const rt_type *t) {
    return t->dtype == RT_DTYPE_F32 || t->dtype == RT_DTYPE_F64;
}

rt_shape rt_type_tail(const rt_type *t) {
    rt_shape s = {0};
    for (int i = 1; i < t->shape.rank; i++)
        s.d[s.rank++] = t->shape.d[i];
    return s;
}

int64_t rt_attr_groups(const rt_attr *a) {
    return a->members > 1 ? a->members : 1;
}

rt_status rt_infer_rows(const rt_infer *q, rt_dtype t, int32_t groups, const rt_shape *inner) {
    RT_INFER_FAIL_IF(groups < 1, "the result would have %d groups, wanted at least 1", (int)groups);
    RT_INFER_FAIL_IF(inner->rank + 1 > RT_MAX_RANK, "the result would have rank %d, at most %d is possible",
                     inner->rank + 1, (int)RT_MAX_RANK);
    rt_type r = {.dtype = t, .kind = RT_KIND_ROWS, .groups = groups};
    r.shape.rank = inner->rank + 1;
    RT_INFER_FAIL_IF(!rt_i64_mul((int64_t)groups, q->n, &r.shape.d[0]), "%d groups of %lld rows are too many",
                     (int)groups, (long long)q->n);
    for (int i = 0; i < inner->rank; i++)
        r.shape.d[i + 1] = inner->d[i];
    *q->out = r;
    return RT_OK;
}

rt_status rt_infer_global(const rt_infer *q, rt_dtype t, rt_shape s) {
    bool batched = false;
    for (int i = 0; i < q->nin; i++)
        batched = batched || q->in[i].groups > 0;
    *q->out = (rt_type){.dtype = t, .kind = batched ? RT_KIND_SUM : RT_KIND_GLOBAL, .groups = 0, .shape = s};
    return RT_OK;
}

rt_status rt_infer_like(const rt_infer *q, const rt_type *t) {
    *q->out = *t;
    q->out->kind = t->groups > 0 ? RT_KIND_ROWS : RT_KIND_GLOBAL;
    return RT_OK;
}

rt_status rt_infer_need_float(const rt_infer *q) {
    for (int i = 0; i < q->nin; i++) {
        RT_INFER_FAIL_IF(!rt_type_is_float(&q->in[i]), "input %d must be f32 or f64", i);
        RT_INFER_FAIL_IF(q->in[i].dtype != q->in[0].dtype, "inputs 0 and %d must have one type", i);
    }
    return RT_OK;
}

rt_status rt_infer_need_batched(const rt_infer *q, int i) {
    RT_INFER_FAIL_IF(q->in[i].groups == 0, "input %d must be batched", i);
    return RT_OK;
}

rt_status rt_infer_need_global(const rt_infer *q, int i) {
    RT_INFER_FAIL_IF(q->in[i].groups != 0, "input %d must be global, not batched", i);
    return RT_OK;
}

rt_status rt_infer_need_same(const rt_infer *q, int i, int j) {
    const rt_type *a = &q->in[i], *b = &q->in[j];
    RT_INFER_FAIL_IF(a->dtype != b->dtype, "inputs %d and %d must have one type", i, j);
    RT_INFER_FAIL_IF(a->groups != b->groups, "inputs %d and %d must have the same groups", i, j);
    RT_INFER_FAIL_IF(!rt_shape_equal(&a->shape, &b->shape), "inputs %d and %d must have the same shape", i,
                     j);
    return RT_OK;
}

rt_status rt_infer_need_chan(const rt_infer *q, int i) {
    int rank = q->in[i].shape.rank;
    RT_INFER_FAIL_IF(rank != 2 && rank != 4, "input %d must be (rows, C) or (rows, C, h, w)", i);
    return RT_OK;
}

static rt_status check_input(const rt_infer *q, int i) {
    const rt_type *t = &q->in[i];
    RT_INFER_FAIL_IF((unsigned)t->dtype >= (unsigned)RT_DTYPE_COUNT, "input %d has no known type", i);
    RT_INFER_FAIL_IF(t->shape.rank < 0 || t->shape.rank > RT_MAX_RANK, "input %d has rank %d", i,
                     t->shape.rank);
    RT_INFER_FAIL_IF(t->groups < 0, "input %d has %d groups", i, (int)t->groups);
    RT_INFER_FAIL_IF(t->groups > 0 && (t->shape.rank < 1 || t->shape.d[0] % t->groups != 0 ||
                                       t->shape.d[0] / t->groups != q->n),
                     "input %d must have %d groups of %lld rows", i, (int)t->groups, (long long)q->n);
    return RT_OK;
}

rt_status rt_op_infer(rt_type *out, rt_op op, const rt_attr *attr, const rt_type *in, int nin, int64_t n) {
    RT_FAIL_IF(op <= RT_OP_NONE || op >= RT_OP_COUNT, RT_E_USAGE, "no operation has number %d", (int)op);
    rt_type r = {0};
    const rt_infer query = {.op = op, .attr = attr, .in = in, .nin = nin, .n = n, .out = &r};
    const rt_infer *q = &query;
    int arity = rt_op_get(op)->arity;
    RT_FAIL_IF(nin < 0 || nin > RT_OP_MAX_IN, RT_E_USAGE, "%s: %d inputs, at most %d are possible",
               rt_op_get(op)->name, nin, (int)RT_OP_MAX_IN);
    RT_INFER_FAIL_IF(arity != RT_VARIADIC && nin != arity, "%d inputs, wanted %d", nin, arity);
    RT_INFER_FAIL_IF(nin < 1, "no inputs, wanted at least 1");
    RT_INFER_FAIL_IF(n < 1, "a batch of %lld, wanted at least 1", (long long)n);
    RT_INFER_FAIL_IF(attr->shape.rank < 0 || attr->shape.rank > RT_MAX_RANK,
                     "attr.shape has rank %d, at most %d", attr->shape.rank, (int)RT_MAX_RANK);
    for (int i = 0; i < nin; i++)
        RT_TRY(check_input(q, i));
    RT_TRY(g_rules[op](q));

    /* An element count whose bytes fit, so that callers need not check again. */
    int64_t count = 0;
    bool fits = rt_shape_count(&r.shape, &count) && count <= INT64_MAX / 16;
    RT_INFER_FAIL_IF(!fits, "the result is too large");
    for (int i = 0; i < r.shape.rank; i++)
        RT_INFER_FAIL_IF(r.shape.d[i] < 1,
                         "the result would have %lld elements on axis %d, wanted at least 1",
                         (long long)r.shape.d[i], i);
    *out = r;
    return RT_OK;
}
