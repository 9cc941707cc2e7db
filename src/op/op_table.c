/*
 * op_table.c - the list of operations as data, and attributes as text.
 *
 * op.def is expanded once into a table indexed by rt_op. Attributes compare by their bits, so that two nodes
 * are the same exactly when they would compute the same: -0 is not 0, and a NaN equals itself.
 */
#include "op/op_int.h"
#include <string.h>

enum { E = RT_OP_ELTWISE, I = RT_OP_INTERNAL };

static const rt_op_info g_table[RT_OP_COUNT] = {
    [RT_OP_NONE] = {"none", 0, 0, "no operation"},
#define RT_OP(ID, name, arity, infer, grad, flags, meaning) [RT_OP_##ID] = {#name, arity, flags, meaning},
#include "op/op.def"
#undef RT_OP
};

const rt_op_info *rt_op_get(rt_op op) {
    return (unsigned)op < (unsigned)RT_OP_COUNT ? &g_table[op] : &g_table[RT_OP_NONE];
}

bool rt_op_find(rt_op *out, const char *name) {
    for (int i = RT_OP_NONE + 1; i < RT_OP_COUNT; i++) {
        if (strcmp(g_table[i].name, name) == 0) {
            *out = (rt_op)i;
            return true;
        }
    }
    return false;
}

static void print_key(rt_str *out, size_t start, const char *key) {
    if (out->len > start)
        rt_str_append_char(out, ' ');
    rt_str_append(out, key);
}

static void print_f64(rt_str *out, size_t start, const char *key, double v) {
    char buf[40];
    if (v == 0)
        return;
    rt_format_f64(buf, v);
    print_key(out, start, key);
    rt_str_appendf(out, "=%s", buf);
}

static void print_i64(rt_str *out, size_t start, const char *key, int64_t v) {
    if (v == 0)
        return;
    print_key(out, start, key);
    rt_str_appendf(out, "=%lld", (long long)v);
}

void rt_attr_print(const rt_attr *a, rt_str *out) {
    size_t start = out->len;
    print_f64(out, start, "alpha", a->alpha);
    print_f64(out, start, "beta", a->beta);
    if (a->ta)
        print_key(out, start, "ta");
    if (a->tb)
        print_key(out, start, "tb");
    print_i64(out, start, "members", a->members);
    print_i64(out, start, "index", a->index);
    print_i64(out, start, "start", a->start);
    print_i64(out, start, "count", a->count);
    print_i64(out, start, "n", a->n);
    print_i64(out, start, "kh", a->kh);
    print_i64(out, start, "kw", a->kw);
    print_i64(out, start, "stride", a->stride);
    print_i64(out, start, "pad", a->pad);
    print_i64(out, start, "h", a->h);
    print_i64(out, start, "w", a->w);
    if (a->stream != 0) {
        print_key(out, start, "stream");
        rt_str_appendf(out, "=%llu", (unsigned long long)a->stream);
    }
    if (a->shape.rank > 0) {
        print_key(out, start, "shape=");
        rt_shape_print(&a->shape, out);
    }
}

static bool same_bits(double a, double b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

bool rt_attr_equal(const rt_attr *a, const rt_attr *b) {
    return same_bits(a->alpha, b->alpha) && same_bits(a->beta, b->beta) && a->ta == b->ta && a->tb == b->tb &&
           a->members == b->members && a->index == b->index && a->start == b->start && a->count == b->count &&
           a->n == b->n && a->kh == b->kh && a->kw == b->kw && a->stride == b->stride && a->pad == b->pad &&
           a->h == b->h && a->w == b->w && a->stream == b->stream && rt_shape_equal(&a->shape, &b->shape);
}
