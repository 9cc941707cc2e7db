/*
 * onnx_run_ops.c - ONNX operators from their definitions: loops over indices, nothing clever.
 */
#include "export/onnx/onnx_run_int.h"
#include "base/stop.h"
#include <math.h>
#include <string.h>

typedef const rt_onnx_array *const *inputs;
typedef rt_status (*operator_fn)(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out);

/* ---- attributes ---- */

static const Onnx__AttributeProto *attribute(const Onnx__NodeProto *n, const char *name) {
    for (size_t i = 0; i < n->n_attribute; i++)
        if (strcmp(n->attribute[i]->name, name) == 0)
            return n->attribute[i];
    return NULL;
}

static int64_t int_of(const Onnx__NodeProto *n, const char *name, int64_t otherwise) {
    const Onnx__AttributeProto *a = attribute(n, name);
    return a != NULL ? a->i : otherwise;
}

static double float_of(const Onnx__NodeProto *n, const char *name, double otherwise) {
    const Onnx__AttributeProto *a = attribute(n, name);
    return a != NULL ? (double)a->f : otherwise;
}

static int64_t ints_of(const Onnx__NodeProto *n, const char *name, size_t i, int64_t otherwise) {
    const Onnx__AttributeProto *a = attribute(n, name);
    return a != NULL && i < a->n_ints ? a->ints[i] : otherwise;
}

static rt_status axis_of(int64_t axis, int rank, int *out) {
    RT_FAIL_IF(axis < -rank || axis >= rank, RT_E_INPUT, "axis %lld of rank %d", (long long)axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return RT_OK;
}

/* Elements before, along and behind an axis. */
static void around(const rt_onnx_array *a, int axis, int64_t *outer, int64_t *inner) {
    *outer = *inner = 1;
    for (int i = 0; i < a->rank; i++)
        if (i < axis)
            *outer *= a->d[i];
        else if (i > axis)
            *inner *= a->d[i];
}

/* ---- element-wise ---- */

static double softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double negate(double x) {
    return -x;
}
static double relu(double x) {
    return x > 0 ? x : 0;
}
static double reciprocal(double x) {
    return 1 / x;
}
static double same(double x) {
    return x;
}
static double no(double x) {
    return x == 0;
}

static const struct {
    const char *name;
    double (*f)(double);
} k_unary[] = {
    {"Exp", exp},   {"Log", log},           {"Abs", fabs},      {"Neg", negate}, {"Relu", relu},
    {"Sqrt", sqrt}, {"Softplus", softplus}, {"Identity", same}, {"Not", no},     {"Reciprocal", reciprocal}};

static double plus(double a, double b) {
    return a + b;
}
static double minus(double a, double b) {
    return a - b;
}
static double times(double a, double b) {
    return a * b;
}
static double over(double a, double b) {
    return a / b;
}
static double less(double a, double b) {
    return a < b;
}
static double less_equal(double a, double b) {
    return a <= b;
}
static double greater(double a, double b) {
    return a > b;
}
static double equal(double a, double b) {
    return a == b;
}
static double both(double a, double b) {
    return a != 0 && b != 0;
}
static double either(double a, double b) {
    return a != 0 || b != 0;
}

static const struct {
    const char *name;
    double (*f)(double, double);
    bool truth; /* the result is bool */
} k_binary[] = {{"Add", plus, false},       {"Sub", minus, false},  {"Mul", times, false},
                {"Div", over, false},       {"Max", fmax, false},   {"Min", fmin, false},
                {"Pow", pow, false},        {"Less", less, true},   {"LessOrEqual", less_equal, true},
                {"Greater", greater, true}, {"Equal", equal, true}, {"And", both, true},
                {"Or", either, true}};

/* Shape of a broadcast, aligned at the last axis. */
static rt_status broadcast(int *rank, int64_t *d, inputs in, int n) {
    *rank = 0;
    for (int i = 0; i < n; i++)
        *rank = RT_MAX(*rank, in[i]->rank);
    for (int k = 0; k < *rank; k++)
        d[k] = 1;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < in[i]->rank; k++) {
            int64_t *to = &d[*rank - in[i]->rank + k];
            RT_FAIL_IF(*to != 1 && in[i]->d[k] != 1 && *to != in[i]->d[k], RT_E_INPUT,
                       "axes of %lld and %lld elements do not fit", (long long)*to, (long long)in[i]->d[k]);
            *to = in[i]->d[k] != 1 ? in[i]->d[k] : *to;
        }
    return RT_OK;
}

/* The element of a that element `at` of a broadcast result reads. */
static double element(const rt_onnx_array *a, const rt_onnx_array *result, int64_t at) {
    int64_t index = 0, step = 1;
    for (int k = result->rank - 1; k >= 0; k--) {
        const int own = k - (result->rank - a->rank);
        if (own >= 0) {
            index += a->d[own] != 1 ? at % result->d[k] * step : 0;
            step *= a->d[own];
        }
        at /= result->d[k];
    }
    return a->v[index];
}

static rt_status op_where(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    int rank;
    int64_t d[RT_ONNX_RANK];
    (void)n;
    RT_TRY(broadcast(&rank, d, in, 3));
    RT_TRY(rt_onnx_array_make(out, in[1]->type, rank, d));
    for (int64_t i = 0, count = rt_onnx_array_count(out); i < count; i++)
        out->v[i] = element(in[element(in[0], out, i) != 0 ? 1 : 2], out, i);
    return RT_OK;
}

static rt_status op_clip(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    (void)n;
    RT_TRY(rt_onnx_array_make(out, in[0]->type, in[0]->rank, in[0]->d));
    for (int64_t i = 0, count = rt_onnx_array_count(out); i < count; i++)
        out->v[i] = fmin(fmax(in[0]->v[i], in[1]->v[0]), in[2]->v[0]);
    return RT_OK;
}

static rt_status op_leaky(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    const double slope = float_of(n, "alpha", 0.01);
    RT_TRY(rt_onnx_array_make(out, in[0]->type, in[0]->rank, in[0]->d));
    for (int64_t i = 0, count = rt_onnx_array_count(out); i < count; i++)
        out->v[i] = in[0]->v[i] > 0 ? in[0]->v[i] : slope * in[0]->v[i];
    return RT_OK;
}

static rt_status op_cast(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    const int to = (int)int_of(n, "to", RT_ONNX_TYPE_FLOAT);
    RT_TRY(rt_onnx_array_make(out, to, in[0]->rank, in[0]->d));
    for (int64_t i = 0, count = rt_onnx_array_count(out); i < count; i++)
        out->v[i] = to == RT_ONNX_TYPE_BOOL    ? in[0]->v[i] != 0
                    : to == RT_ONNX_TYPE_INT64 ? trunc(in[0]->v[i])
                                               : in[0]->v[i];
    return RT_OK;
}

/* ---- reductions ---- */

typedef enum fold_kind { FOLD_SUM, FOLD_MEAN, FOLD_MAX, FOLD_ARGMAX } fold_kind;

static double fold(const double *v, int64_t n, int64_t step, fold_kind kind) {
    double sum = 0;
    int64_t top = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += v[i * step];
        if (v[i * step] > v[top * step])
            top = i;
    }
    if (kind == FOLD_ARGMAX)
        return (double)top;
    return kind == FOLD_MAX ? v[top * step] : kind == FOLD_MEAN ? sum / (double)n : sum;
}

static rt_status reduce(const rt_onnx_array *x, int64_t axis, bool keep, fold_kind kind, rt_onnx_array *out) {
    int a = 0, rank = 0;
    int64_t d[RT_ONNX_RANK], outer, inner;
    RT_TRY(axis_of(axis, x->rank, &a));
    for (int i = 0; i < x->rank; i++)
        if (i != a)
            d[rank++] = x->d[i];
        else if (keep)
            d[rank++] = 1;
    RT_TRY(rt_onnx_array_make(out, kind == FOLD_ARGMAX ? RT_ONNX_TYPE_INT64 : x->type, rank, d));
    around(x, a, &outer, &inner);
    for (int64_t i = 0; i < outer; i++)
        for (int64_t k = 0; k < inner; k++)
            out->v[i * inner + k] = fold(x->v + i * x->d[a] * inner + k, x->d[a], inner, kind);
    return RT_OK;
}

static rt_status op_reduce_sum(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    return reduce(in[0], (int64_t)in[1]->v[0], int_of(n, "keepdims", 1) != 0, FOLD_SUM, out);
}

static rt_status op_reduce_mean(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    return reduce(in[0], ints_of(n, "axes", 0, 0), int_of(n, "keepdims", 1) != 0, FOLD_MEAN, out);
}

static rt_status op_reduce_max(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    return reduce(in[0], ints_of(n, "axes", 0, 0), int_of(n, "keepdims", 1) != 0, FOLD_MAX, out);
}

static rt_status op_argmax(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    return reduce(in[0], int_of(n, "axis", 0), int_of(n, "keepdims", 1) != 0, FOLD_ARGMAX, out);
}

static rt_status softmax(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out, bool log_form) {
    int a = 0;
    int64_t outer, inner;
    const rt_onnx_array *x = in[0];
    RT_TRY(axis_of(int_of(n, "axis", -1), x->rank, &a));
    RT_TRY(rt_onnx_array_make(out, x->type, x->rank, x->d));
    around(x, a, &outer, &inner);
    for (int64_t i = 0; i < outer * inner; i++) {
        const int64_t at = i / inner * x->d[a] * inner + i % inner;
        const double top = fold(x->v + at, x->d[a], inner, FOLD_MAX);
        double sum = 0;
        for (int64_t k = 0; k < x->d[a]; k++)
            sum += exp(x->v[at + k * inner] - top);
        for (int64_t k = 0; k < x->d[a]; k++) {
            const double l = x->v[at + k * inner] - top - log(sum);
            out->v[at + k * inner] = log_form ? l : exp(l);
        }
    }
    return RT_OK;
}

static rt_status op_softmax(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    return softmax(n, in, out, false);
}

static rt_status op_log_softmax(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    return softmax(n, in, out, true);
}

/* ---- shapes ---- */

static rt_status op_reshape(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    const int rank = (int)rt_onnx_array_count(in[1]);
    const int64_t count = rt_onnx_array_count(in[0]);
    int64_t d[RT_ONNX_RANK], known = 1;
    int open = -1;
    (void)n;
    RT_FAIL_IF(rank > RT_ONNX_RANK, RT_E_INPUT, "rank %d", rank);
    for (int i = 0; i < rank; i++) {
        d[i] = (int64_t)in[1]->v[i];
        if (d[i] < 0)
            open = i;
        else
            known *= d[i];
    }
    if (open >= 0)
        d[open] = known > 0 ? count / known : 0;
    RT_FAIL_IF(known * (open >= 0 ? d[open] : 1) != count, RT_E_INPUT, "%lld elements do not fit",
               (long long)count);
    RT_TRY(rt_onnx_array_make(out, in[0]->type, rank, d));
    memcpy(out->v, in[0]->v, (size_t)count * sizeof *out->v);
    return RT_OK;
}

static rt_status op_squeeze(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    int a = 0, rank = 0;
    int64_t d[RT_ONNX_RANK];
    (void)n;
    RT_TRY(axis_of((int64_t)in[1]->v[0], in[0]->rank, &a));
    RT_FAIL_IF(in[0]->d[a] != 1, RT_E_INPUT, "axis %d has %lld elements", a, (long long)in[0]->d[a]);
    for (int i = 0; i < in[0]->rank; i++)
        if (i != a)
            d[rank++] = in[0]->d[i];
    RT_TRY(rt_onnx_array_make(out, in[0]->type, rank, d));
    memcpy(out->v, in[0]->v, (size_t)rt_onnx_array_count(out) * sizeof *out->v);
    return RT_OK;
}

static rt_status op_transpose(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    const rt_onnx_array *x = in[0];
    int64_t d[RT_ONNX_RANK], step[RT_ONNX_RANK], s = 1;
    for (int i = x->rank - 1; i >= 0; i--) {
        step[i] = s;
        s *= x->d[i];
    }
    for (int i = 0; i < x->rank; i++)
        d[i] = x->d[ints_of(n, "perm", (size_t)i, x->rank - 1 - i)];
    RT_TRY(rt_onnx_array_make(out, x->type, x->rank, d));
    for (int64_t i = 0, count = rt_onnx_array_count(out); i < count; i++) {
        int64_t rest = i, from = 0;
        for (int k = x->rank - 1; k >= 0; k--) {
            from += rest % d[k] * step[ints_of(n, "perm", (size_t)k, x->rank - 1 - k)];
            rest /= d[k];
        }
        out->v[i] = x->v[from];
    }
    return RT_OK;
}

static rt_status op_gather(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    int a = 0;
    int64_t d[RT_ONNX_RANK], outer, inner;
    const rt_onnx_array *x = in[0];
    RT_TRY(axis_of(int_of(n, "axis", 0), x->rank, &a));
    RT_FAIL_IF(in[1]->rank != 1, RT_E_INPUT, "indices of rank %d", in[1]->rank);
    memcpy(d, x->d, sizeof d);
    d[a] = in[1]->d[0];
    RT_TRY(rt_onnx_array_make(out, x->type, x->rank, d));
    around(x, a, &outer, &inner);
    for (int64_t i = 0; i < outer; i++)
        for (int64_t k = 0; k < d[a]; k++) {
            const int64_t at = (int64_t)in[1]->v[k];
            RT_FAIL_IF(at < 0 || at >= x->d[a], RT_E_INPUT, "index %lld of %lld", (long long)at,
                       (long long)x->d[a]);
            memcpy(out->v + (i * d[a] + k) * inner, x->v + (i * x->d[a] + at) * inner,
                   (size_t)inner * sizeof *out->v);
        }
    return RT_OK;
}

static rt_status op_concat(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    int a = 0;
    int64_t d[RT_ONNX_RANK], outer, inner, at = 0;
    RT_TRY(axis_of(int_of(n, "axis", 0), in[0]->rank, &a));
    memcpy(d, in[0]->d, sizeof d);
    for (size_t i = 1; i < n->n_input; i++)
        d[a] += in[i]->d[a];
    RT_TRY(rt_onnx_array_make(out, in[0]->type, in[0]->rank, d));
    around(out, a, &outer, &inner);
    for (size_t i = 0; i < n->n_input; i++) {
        const int64_t each = in[i]->d[a] * inner;
        RT_FAIL_IF(rt_onnx_array_count(in[i]) != outer * each, RT_E_INPUT, "input %zu does not fit", i);
        for (int64_t k = 0; k < outer; k++)
            memcpy(out->v + k * d[a] * inner + at, in[i]->v + k * each, (size_t)each * sizeof *out->v);
        at += each;
    }
    return RT_OK;
}

static rt_status op_tile(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    const rt_onnx_array *x = in[0];
    int64_t d[RT_ONNX_RANK];
    (void)n;
    RT_FAIL_IF(rt_onnx_array_count(in[1]) != x->rank, RT_E_INPUT, "repeats do not fit rank %d", x->rank);
    for (int i = 0; i < x->rank; i++)
        d[i] = x->d[i] * (int64_t)in[1]->v[i];
    RT_TRY(rt_onnx_array_make(out, x->type, x->rank, d));
    for (int64_t i = 0, count = rt_onnx_array_count(out); i < count; i++) {
        int64_t rest = i, from = 0, step = 1;
        for (int k = x->rank - 1; k >= 0; k--) {
            from += rest % d[k] % x->d[k] * step;
            step *= x->d[k];
            rest /= d[k];
        }
        out->v[i] = x->v[from];
    }
    return RT_OK;
}

/* ---- layers ---- */

static rt_status op_gemm(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    const bool ta = int_of(n, "transA", 0) != 0, tb = int_of(n, "transB", 0) != 0;
    const rt_onnx_array *a = in[0], *b = in[1], *c = n->n_input > 2 ? in[2] : NULL;
    RT_FAIL_IF(a->rank != 2 || b->rank != 2, RT_E_INPUT, "ranks %d and %d", a->rank, b->rank);
    const int64_t m = a->d[ta], k = a->d[!ta], f = b->d[!tb];
    RT_FAIL_IF(b->d[tb] != k, RT_E_INPUT, "inner axes of %lld and %lld", (long long)k, (long long)b->d[tb]);
    RT_TRY(rt_onnx_array_make(out, a->type, 2, (int64_t[]){m, f}));
    for (int64_t i = 0; i < m; i++) {
        RT_TRY(rt_stop_check("computing", "the file"));
        for (int64_t j = 0; j < f; j++) {
            double sum = 0;
            for (int64_t q = 0; q < k; q++)
                sum += a->v[ta ? q * m + i : i * k + q] * b->v[tb ? j * k + q : q * f + j];
            out->v[i * f + j] = sum + (c != NULL ? element(c, out, i * f + j) : 0);
        }
    }
    return RT_OK;
}

static rt_status op_norm(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    const double eps = float_of(n, "epsilon", 1e-5);
    const rt_onnx_array *x = in[0];
    int64_t outer, inner;
    RT_FAIL_IF(x->rank < 2 || in[1]->d[0] != x->d[1], RT_E_INPUT, "channels do not fit");
    RT_TRY(rt_onnx_array_make(out, x->type, x->rank, x->d));
    around(x, 1, &outer, &inner);
    for (int64_t i = 0, count = outer * x->d[1] * inner; i < count; i++) {
        const int64_t c = i / inner % x->d[1];
        out->v[i] = in[1]->v[c] * (x->v[i] - in[3]->v[c]) / sqrt(in[4]->v[c] + eps) + in[2]->v[c];
    }
    return RT_OK;
}

/* A window over an image: the output's size, and where the window starts. */
typedef struct window {
    int64_t k[2], stride[2], pad[2], out[2];
} window;

static rt_status window_of(const Onnx__NodeProto *n, const rt_onnx_array *x, window *w) {
    RT_FAIL_IF(x->rank != 4, RT_E_INPUT, "rank %d, wanted images", x->rank);
    for (size_t i = 0; i < 2; i++) {
        w->k[i] = ints_of(n, "kernel_shape", i, 0);
        w->stride[i] = ints_of(n, "strides", i, 1);
        w->pad[i] = ints_of(n, "pads", i, 0);
        RT_FAIL_IF(w->k[i] < 1 || w->stride[i] < 1 || w->pad[i] != ints_of(n, "pads", i + 2, 0) ||
                       ints_of(n, "dilations", i, 1) != 1 || int_of(n, "group", 1) != 1,
                   RT_E_INPUT, "a window that is not known here");
        w->out[i] = (x->d[2 + i] + 2 * w->pad[i] - w->k[i]) / w->stride[i] + 1;
    }
    return RT_OK;
}

/* The rows of a window that lie in the image: [*from, *to) of its k. */
static void inside(const window *w, int axis, int64_t at, int64_t size, int64_t *from, int64_t *to) {
    const int64_t start = at * w->stride[axis] - w->pad[axis];
    *from = RT_MAX(-start, 0);
    *to = RT_MIN(w->k[axis], size - start);
}

/* One output map += one input map filtered by one kernel. */
static void correlate(const window *w, const double *x, const int64_t *size, const double *k, double *y) {
    for (int64_t r = 0; r < w->out[0]; r++)
        for (int64_t c = 0; c < w->out[1]; c++) {
            int64_t r0, r1, c0, c1;
            double sum = 0;
            inside(w, 0, r, size[0], &r0, &r1);
            inside(w, 1, c, size[1], &c0, &c1);
            const double *at = x + (r * w->stride[0] - w->pad[0]) * size[1] + c * w->stride[1] - w->pad[1];
            for (int64_t i = r0; i < r1; i++)
                for (int64_t j = c0; j < c1; j++)
                    sum += at[i * size[1] + j] * k[i * w->k[1] + j];
            y[r * w->out[1] + c] += sum;
        }
}

static rt_status op_conv(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    const rt_onnx_array *x = in[0], *k = in[1], *b = n->n_input > 2 ? in[2] : NULL;
    window w;
    RT_TRY(window_of(n, x, &w));
    RT_FAIL_IF(k->rank != 4 || k->d[1] != x->d[1] || k->d[2] != w.k[0] || k->d[3] != w.k[1], RT_E_INPUT,
               "the kernel does not fit");
    RT_TRY(rt_onnx_array_make(out, x->type, 4, (int64_t[]){x->d[0], k->d[0], w.out[0], w.out[1]}));
    const int64_t map = x->d[2] * x->d[3], to = w.out[0] * w.out[1], kernel = w.k[0] * w.k[1];
    for (int64_t i = 0; i < x->d[0] * k->d[0]; i++) {
        RT_TRY(rt_stop_check("computing", "the file"));
        const int64_t row = i / k->d[0], o = i % k->d[0];
        double *y = out->v + i * to;
        for (int64_t p = 0; p < to; p++)
            y[p] = b != NULL ? b->v[o] : 0;
        for (int64_t c = 0; c < x->d[1]; c++)
            correlate(&w, x->v + (row * x->d[1] + c) * map, x->d + 2, k->v + (o * x->d[1] + c) * kernel, y);
    }
    return RT_OK;
}

static rt_status op_maxpool(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    const rt_onnx_array *x = in[0];
    window w;
    RT_TRY(window_of(n, x, &w));
    RT_TRY(rt_onnx_array_make(out, x->type, 4, (int64_t[]){x->d[0], x->d[1], w.out[0], w.out[1]}));
    for (int64_t i = 0, count = rt_onnx_array_count(out); i < count; i++) {
        const int64_t map = i / (w.out[0] * w.out[1]), r = i / w.out[1] % w.out[0], c = i % w.out[1];
        int64_t r0, r1, c0, c1;
        double top = -INFINITY;
        inside(&w, 0, r, x->d[2], &r0, &r1);
        inside(&w, 1, c, x->d[3], &c0, &c1);
        for (int64_t p = r0; p < r1; p++)
            for (int64_t q = c0; q < c1; q++)
                top = fmax(top, x->v[(map * x->d[2] + r * w.stride[0] - w.pad[0] + p) * x->d[3] +
                                     c * w.stride[1] - w.pad[1] + q]);
        out->v[i] = top;
    }
    return RT_OK;
}

static rt_status op_global_mean(const Onnx__NodeProto *n, inputs in, rt_onnx_array *out) {
    const rt_onnx_array *x = in[0];
    (void)n;
    RT_FAIL_IF(x->rank != 4, RT_E_INPUT, "rank %d, wanted images", x->rank);
    RT_TRY(rt_onnx_array_make(out, x->type, 4, (int64_t[]){x->d[0], x->d[1], 1, 1}));
    for (int64_t i = 0; i < x->d[0] * x->d[1]; i++)
        out->v[i] = fold(x->v + i * x->d[2] * x->d[3], x->d[2] * x->d[3], 1, FOLD_MEAN);
    return RT_OK;
}

/* ---- the table ---- */

static const struct {
    const char *name;
    operator_fn f;
    size_t least; /* inputs */
} k_operators[] = {{"Where", op_where, 3},
                   {"Clip", op_clip, 3},
                   {"LeakyRelu", op_leaky, 1},
                   {"Cast", op_cast, 1},
                   {"ReduceSum", op_reduce_sum, 2},
                   {"ReduceMean", op_reduce_mean, 1},
                   {"ReduceMax", op_reduce_max, 1},
                   {"ArgMax", op_argmax, 1},
                   {"Softmax", op_softmax, 1},
                   {"LogSoftmax", op_log_softmax, 1},
                   {"Reshape", op_reshape, 2},
                   {"Squeeze", op_squeeze, 2},
                   {"Transpose", op_transpose, 1},
                   {"Gather", op_gather, 2},
                   {"Concat", op_concat, 1},
                   {"Tile", op_tile, 2},
                   {"Gemm", op_gemm, 2},
                   {"BatchNormalization", op_norm, 5},
                   {"Conv", op_conv, 2},
                   {"MaxPool", op_maxpool, 1},
                   {"GlobalAveragePool", op_global_mean, 1}};

static rt_status need(const Onnx__NodeProto *n, inputs in, size_t least) {
    RT_FAIL_IF(n->n_input < least, RT_E_INPUT, "%zu inputs, wanted %zu", n->n_input, least);
    for (size_t i = 0; i < least; i++)
        RT_FAIL_IF(in[i] == NULL, RT_E_INPUT, "input %zu is left out", i);
    return RT_OK;
}

rt_status rt_onnx_operator(const Onnx__NodeProto *n, const rt_onnx_array *const *in, rt_onnx_array *out) {
    for (size_t i = 0; i < RT_COUNT(k_operators); i++)
        if (strcmp(n->op_type, k_operators[i].name) == 0) {
            RT_TRY(need(n, in, k_operators[i].least));
            return k_operators[i].f(n, in, out);
        }
    for (size_t i = 0; i < RT_COUNT(k_unary); i++)
        if (strcmp(n->op_type, k_unary[i].name) == 0) {
            RT_TRY(need(n, in, 1));
            RT_TRY(rt_onnx_array_make(out, in[0]->type, in[0]->rank, in[0]->d));
            for (int64_t k = 0, count = rt_onnx_array_count(out); k < count; k++)
                out->v[k] = k_unary[i].f(in[0]->v[k]);
            return RT_OK;
        }
    for (size_t i = 0; i < RT_COUNT(k_binary); i++)
        if (strcmp(n->op_type, k_binary[i].name) == 0) {
            int rank;
            int64_t d[RT_ONNX_RANK];
            RT_TRY(need(n, in, 2));
            RT_TRY(broadcast(&rank, d, in, 2));
            RT_TRY(rt_onnx_array_make(out, k_binary[i].truth ? RT_ONNX_TYPE_BOOL : in[0]->type, rank, d));
            for (int64_t k = 0, count = rt_onnx_array_count(out); k < count; k++)
                out->v[k] = k_binary[i].f(element(in[0], out, k), element(in[1], out, k));
            return RT_OK;
        }
    RT_FAIL(RT_E_UNSUPPORTED, "operator %s is not known here", n->op_type);
}
