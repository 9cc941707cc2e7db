/*
 * shape.c - dimensions of an array. Unused dimensions are zero, so shapes made here are also equal bytewise.
 */
#include "base/size.h"
#include "tensor/tensor.h"
#include <stdarg.h>
#include <string.h>

rt_shape rt_shape_make(int rank, ...) {
    RT_ASSERT(rank >= 0 && rank <= RT_MAX_RANK);
    rt_shape s;
    memset(&s, 0, sizeof s);
    s.rank = rank;
    va_list ap;
    va_start(ap, rank);
    for (int i = 0; i < rank; i++)
        s.d[i] = va_arg(ap, int64_t);
    va_end(ap);
    return s;
}

rt_shape rt_shape0(void) {
    return rt_shape_make(0);
}

rt_shape rt_shape1(int64_t a) {
    return rt_shape_make(1, a);
}

rt_shape rt_shape2(int64_t a, int64_t b) {
    return rt_shape_make(2, a, b);
}

rt_shape rt_shape3(int64_t a, int64_t b, int64_t c) {
    return rt_shape_make(3, a, b, c);
}

rt_shape rt_shape4(int64_t a, int64_t b, int64_t c, int64_t d) {
    return rt_shape_make(4, a, b, c, d);
}

bool rt_shape_equal(const rt_shape *a, const rt_shape *b) {
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->d[i] != b->d[i])
            return false;
    return true;
}

bool rt_shape_count(const rt_shape *s, int64_t *out) {
    if (s->rank < 0 || s->rank > RT_MAX_RANK)
        return false;
    /* The zero is taken last: a shape with an overflowing part is refused even if another dimension is 0. */
    int64_t n = 1;
    bool empty = false;
    for (int i = 0; i < s->rank; i++) {
        if (s->d[i] < 0)
            return false;
        if (s->d[i] == 0)
            empty = true;
        else if (!rt_i64_mul(n, s->d[i], &n))
            return false;
    }
    *out = empty ? 0 : n;
    return true;
}

int64_t rt_shape_elems(const rt_shape *s) {
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n *= s->d[i];
    return n;
}

void rt_shape_print(const rt_shape *s, rt_str *out) {
    if (s->rank == 0)
        rt_str_append(out, "scalar");
    for (int i = 0; i < s->rank; i++)
        rt_str_appendf(out, i ? "x%lld" : "%lld", (long long)s->d[i]);
}
