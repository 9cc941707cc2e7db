/*
 * vec_lu.c - MATINV and SOLVE of global square matrices by LU with partial pivoting, always in double.
 *
 *     P A = L U,  L unit lower, U upper, both in A's place.   A X = B: L Y = P B, U X = Y.   A^-1: B = I
 *
 * Columns are eliminated BLOCK at a time: inside a block one by one, everything right of it in one pass,
 *
 *     C -= L U,  L (rows, depth <= BLOCK), U (depth, columns)
 *
 * which is where the time goes, in the solution too. Products are not fused, so that every instruction set gives the
 * same bits. A singular matrix gives NaN: a kernel cannot fail, and the trap for numbers that are not finite finds it.
 *
 *     scratch: A, n x n doubles | B, n x m doubles | n pivots
 */
#include "base/size.h"
#include "kern/kern.h"
#include "kern/vec/simd.h"
#include <math.h>

enum { BLOCK = 8, VD = V_W / 2 };

typedef struct system_size {
    int64_t n, m; /* order, columns of B */
    size_t a_bytes, b_bytes, bytes;
} system_size;

/* A matrix within a larger one. */
typedef struct part {
    double *p;
    int64_t row;
} part;

static part at(part x, int64_t i, int64_t j) {
    return (part){x.p + i * x.row + j, x.row};
}

static void eliminate(part c, part l, part u, int64_t rows, int64_t cols, int64_t depth) {
    for (int64_t i = 0; i < rows; i++) {
        double *to = c.p + i * c.row;
        const double *factor = l.p + i * l.row;
        int64_t j = 0;
        for (; j + VD <= cols; j += VD) {
            vd x = vd_load(to + j);
            for (int64_t k = 0; k < depth; k++)
                x -= factor[k] * vd_load(u.p + k * u.row + j);
            vd_store(to + j, x);
        }
        for (; j < cols; j++)
            for (int64_t k = 0; k < depth; k++)
                to[j] -= factor[k] * u.p[k * u.row + j];
    }
}

static void exchange(part x, int64_t i, int64_t j, int64_t cols) {
    double *a = x.p + i * x.row, *b = x.p + j * x.row;
    for (int64_t c = 0; i != j && c < cols; c++) {
        const double t = a[c];
        a[c] = b[c];
        b[c] = t;
    }
}

/* Column k within the block that ends before `end`; false if nothing is left to divide by. */
static bool column(part a, int64_t n, int64_t k, int64_t end, int64_t *pivot) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; i++)
        if (fabs(at(a, i, k).p[0]) > fabs(at(a, best, k).p[0]))
            best = i;
    *pivot = best;
    exchange(a, k, best, n);
    const double divisor = at(a, k, k).p[0];
    if (divisor == 0)
        return false;
    for (int64_t i = k + 1; i < n; i++) {
        at(a, i, k).p[0] /= divisor;
        eliminate(at(a, i, k + 1), at(a, i, k), at(a, k, k + 1), 1, end - k - 1, 1);
    }
    return true;
}

static bool factorise(part a, int64_t n, int64_t *pivot) {
    for (int64_t k0 = 0, end; k0 < n; k0 = end) {
        end = RT_MIN(n, k0 + BLOCK);
        for (int64_t k = k0; k < end; k++)
            if (!column(a, n, k, end, &pivot[k]))
                return false;
        for (int64_t i = k0 + 1; i < end; i++)
            eliminate(at(a, i, end), at(a, i, k0), at(a, k0, end), 1, n - end, i - k0);
        eliminate(at(a, end, end), at(a, end, k0), at(a, k0, end), n - end, n - end, end - k0);
    }
    return true;
}

static void substitute(part a, part b, int64_t n, int64_t m, const int64_t *pivot) {
    for (int64_t i = 0; i < n; i++)
        exchange(b, i, pivot[i], m);
    for (int64_t k0 = 0, end; k0 < n; k0 = end) {
        end = RT_MIN(n, k0 + BLOCK);
        for (int64_t i = k0 + 1; i < end; i++)
            eliminate(at(b, i, 0), at(a, i, k0), at(b, k0, 0), 1, m, i - k0);
        eliminate(at(b, end, 0), at(a, end, k0), at(b, k0, 0), n - end, m, end - k0);
    }
    for (int64_t end = n, k0; end > 0; end = k0) {
        k0 = RT_MAX(0, end - BLOCK);
        for (int64_t i = end - 1; i >= k0; i--) {
            eliminate(at(b, i, 0), at(a, i, i + 1), at(b, i + 1, 0), 1, m, end - i - 1);
            for (int64_t j = 0; j < m; j++)
                at(b, i, j).p[0] /= at(a, i, i).p[0];
        }
        eliminate(b, at(a, 0, k0), at(b, k0, 0), k0, m, end - k0);
    }
}

static bool size_of(system_size *s, const rt_problem *p) {
    const bool solve = p->op == RT_OP_SOLVE;
    if (p->nin != (solve ? 2 : 1) || p->out.dtype != RT_DTYPE_F32 || p->out.layout != RT_LAYOUT_PLAIN ||
        p->out.shape.rank != 2)
        return false;
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].dtype != RT_DTYPE_F32 || p->in[i].layout != RT_LAYOUT_PLAIN || p->in[i].shape.rank != 2)
            return false;
    s->n = p->in[0].shape.d[0];
    s->m = p->out.shape.d[1];
    if (s->n <= 0 || s->m <= 0 || p->in[0].shape.d[1] != s->n ||
        !rt_shape_equal(&p->out.shape, &p->in[p->nin - 1].shape) || p->out.shape.d[0] != s->n)
        return false;
    const size_t n = (size_t)s->n, m = (size_t)s->m;
    return rt_size_mul(n * sizeof(double), n, &s->a_bytes) &&
           rt_size_mul(n * sizeof(double), m, &s->b_bytes) &&
           rt_size_add(s->a_bytes, s->b_bytes, &s->bytes) &&
           rt_size_add(s->bytes, n * sizeof(int64_t), &s->bytes);
}

static bool supports(const rt_problem *p) {
    system_size s;
    return size_of(&s, p);
}

static void layouts(const rt_problem *p, rt_layout *in, rt_layout *out) {
    for (int i = 0; i < p->nin; i++)
        in[i] = RT_LAYOUT_PLAIN;
    *out = RT_LAYOUT_PLAIN;
}

static rt_status prepare(const rt_problem *p, void **state, size_t *scratch) {
    system_size s;
    *state = NULL;
    RT_FAIL_IF(!size_of(&s, p), RT_E_UNSUPPORTED, "%s: not a problem this kernel supports",
               rt_op_get(p->op)->name);
    *scratch = s.bytes;
    return RT_OK;
}

static void run(const void *state, const rt_problem *p, void *out, const void *const *in,
                const rt_kern_ctx *ctx) {
    (void)state;
    system_size s;
    if (!size_of(&s, p))
        return;
    char *mem = ctx->scratch;
    const part a = {(double *)(void *)mem, s.n}, b = {(double *)(void *)(mem + s.a_bytes), s.m};
    int64_t *pivot = (int64_t *)(void *)(mem + s.a_bytes + s.b_bytes);
    const float *from = in[0], *right = p->op == RT_OP_SOLVE ? in[1] : NULL;
    for (int64_t i = 0; i < s.n; i++)
        for (int64_t j = 0; j < s.n; j++)
            at(a, i, j).p[0] = (double)(p->attr.ta ? from[j * s.n + i] : from[i * s.n + j]);
    for (int64_t i = 0; i < s.n; i++)
        for (int64_t j = 0; j < s.m; j++)
            at(b, i, j).p[0] = right ? (double)right[i * s.m + j] : i == j;
    const bool regular = factorise(a, s.n, pivot);
    if (regular)
        substitute(a, b, s.n, s.m, pivot);
    for (int64_t i = 0; i < s.n * s.m; i++)
        ((float *)out)[i] = regular ? (float)b.p[i] : NAN;
}

#define REGISTER(name)                                                                                       \
    const rt_kern RT_V(rt_k_##name##_f32) = {                                                                \
        .impl = RT_V_IMPL, .supports = supports, .layouts = layouts, .prepare = prepare, .run = run};
REGISTER(matinv)
REGISTER(solve)
