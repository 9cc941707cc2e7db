/*
 * vec_chan.c - sums per channel: CHAN_SUM, CHAN_DOT and the two statistics of batch normalisation.
 *
 *     CHAN_SUM   s = sum x                CHAN_DOT    s = sum x y
 *     BN_STATS   s = sum x, q = sum x^2   BN_GSTATS   s = sum dy, q = rstd sum dy (x - mean)
 *
 * Partial sums are kept in float vectors over at most SPAN elements of one row and channel (block), or a few
 * rows if those are short, 16 lanes wide and two groups deep, then added up in double. In the blocked layouts
 * lane i holds channel i mod B; in PLAIN (rows, C, h, w) all lanes hold one channel; in PLAIN (rows, C) lanes
 * are channels and the sum runs over up to ROWS rows. The order is fixed by the shape.
 */
#include "base/size.h"
#include "kern/kern.h"
#include "kern/vec/simd.h"

enum { SPAN = 8192, SHORT = 1024, ROWS = 32 };
typedef enum sum_kind { SUM, DOT, STATS, GSTATS } sum_kind;

typedef struct sums {
    vf s[V_U], q[V_U];
} sums;

RT_INLINE void accumulate(sum_kind kind, sums *a, int u, vf x, vf y, vf mean) {
    if (kind == SUM) {
        a->s[u] += x;
    } else if (kind == DOT) {
        a->s[u] = v_fma(x, y, a->s[u]);
    } else if (kind == STATS) {
        a->s[u] += x;
        a->q[u] = v_fma(x, x, a->q[u]);
    } else {
        a->s[u] += x;
        a->q[u] = v_fma(x, y - mean, a->q[u]);
    }
}

/* Runs of n elements in `rows` rows that are `stride` apart; mean: pattern of 16. */
RT_INLINE void sum_runs(sum_kind kind, const float *x, const float *y, int64_t n, int64_t rows,
                        int64_t stride, const float *mean, float s[V_GROUP], float q[V_GROUP]) {
    sums a = {0}, b = {0};
    for (int64_t r = 0; r < rows; r++, x += stride, y += stride) {
        int64_t i = 0;
        for (; i + 2 * V_GROUP <= n; i += 2 * V_GROUP)
            for (int u = 0; u < V_U; u++) {
                const vf m = v_load(mean + u * V_W);
                const int64_t j = i + u * V_W, k = j + V_GROUP;
                accumulate(kind, &a, u, v_load(x + j), v_load(y + j), m);
                accumulate(kind, &b, u, v_load(x + k), v_load(y + k), m);
            }
        for (; i < n; i += V_GROUP)
            for (int u = 0; u < V_U; u++) {
                const int64_t j = i + u * V_W;
                if (j < n)
                    accumulate(kind, &a, u, v_load_part(x + j, n - j), v_load_part(y + j, n - j),
                               v_load(mean + u * V_W));
            }
    }
    for (int u = 0; u < V_U; u++) {
        v_store(s + u * V_W, a.s[u] + b.s[u]);
        v_store(q + u * V_W, a.q[u] + b.q[u]);
    }
}

/* Adds the lanes that hold the same channel, B apart, to `width` channels. */
RT_INLINE void flush(double *dst, const float *lanes, int64_t B, int64_t width) {
    double d[V_GROUP];
    for (int i = 0; i < V_GROUP; i++)
        d[i] = (double)lanes[i];
    for (int64_t w = V_GROUP / 2; w >= B; w /= 2)
        for (int64_t i = 0; i < w; i++)
            d[i] += d[i + w];
    for (int64_t i = 0; i < width; i++)
        dst[i] += d[i];
}

/* Columns of up to 16 channels over `rows` rows of length `stride`. */
RT_INLINE void sum_columns(sum_kind kind, const float *x, const float *y, int64_t rows, int64_t stride,
                           int64_t width, const float *mean, float s[V_GROUP], float q[V_GROUP]) {
    sums a = {0};
    if (width == V_GROUP) {
        for (int64_t r = 0; r < rows; r++, x += stride, y += stride)
            for (int u = 0; u < V_U; u++)
                accumulate(kind, &a, u, v_load(x + u * V_W), v_load(y + u * V_W), v_load(mean + u * V_W));
    } else {
        for (int64_t r = 0; r < rows; r++, x += stride, y += stride)
            for (int u = 0; u < V_U; u++) {
                const int64_t left = RT_MIN(V_W, width - u * V_W);
                if (left <= 0)
                    continue;
                const vf vx = left == V_W ? v_load(x + u * V_W) : v_load_n(x + u * V_W, left);
                const vf vy = left == V_W ? v_load(y + u * V_W) : v_load_n(y + u * V_W, left);
                accumulate(kind, &a, u, vx, vy, v_load(mean + u * V_W));
            }
    }
    for (int u = 0; u < V_U; u++) {
        v_store(s + u * V_W, a.s[u]);
        v_store(q + u * V_W, a.q[u]);
    }
}

typedef struct chan_shape {
    int64_t groups, rows, C, inner, B, blocks, row;
} chan_shape;

static chan_shape shape_of(const rt_problem *p) {
    const rt_shape *sh = &p->in[0].shape;
    chan_shape s = {.groups = p->attr.members > 1 ? p->attr.members : 1, .C = sh->d[1], .inner = 1};
    s.rows = sh->d[0] / s.groups;
    for (int i = 2; i < sh->rank; i++)
        s.inner *= sh->d[i];
    s.B = rt_layout_block(p->in[0].layout);
    s.blocks = (s.C + s.B - 1) / s.B;
    s.row = s.blocks * s.B * s.inner;
    return s;
}

/* s_out, q_out: (groups, C). mean, rstd: (groups, C), for GSTATS. */
RT_INLINE void chan_sums(sum_kind kind, const chan_shape *sh, double *s_out, double *q_out, const float *x,
                         const float *y, const float *mean, const float *rstd) {
    const bool two = kind == STATS || kind == GSTATS;
    float pattern[V_GROUP] = {0}, s[V_GROUP], q[V_GROUP];
    memset(s_out, 0, (size_t)(sh->groups * sh->C) * sizeof(double));
    if (two)
        memset(q_out, 0, (size_t)(sh->groups * sh->C) * sizeof(double));
    const int64_t span = sh->inner * sh->B;
    for (int64_t g = 0; g < sh->groups; g++) {
        double *gs = s_out + g * sh->C, *gq = two ? q_out + g * sh->C : NULL;
        const float *gx = x + g * sh->rows * sh->row, *gy = y + g * sh->rows * sh->row;
        if (sh->inner == 1 && sh->B == 1) {
            for (int64_t r = 0; r < sh->rows; r += ROWS)
                for (int64_t c = 0; c < sh->C; c += V_GROUP) {
                    const int64_t width = RT_MIN(V_GROUP, sh->C - c), at = r * sh->C + c;
                    if (kind == GSTATS)
                        memcpy(pattern, mean + g * sh->C + c, (size_t)width * sizeof(float));
                    sum_columns(kind, gx + at, gy + at, RT_MIN(ROWS, sh->rows - r), sh->C, width, pattern, s,
                                q);
                    for (int64_t i = 0; i < width; i++) {
                        gs[c + i] += (double)s[i];
                        if (two)
                            gq[c + i] += (double)q[i];
                    }
                }
        } else {
            const int64_t together =
                RT_MAX(1, SHORT / span); /* rows whose short spans share their partial sums */
            for (int64_t r = 0; r < sh->rows; r += together)
                for (int64_t b = 0; b < sh->blocks; b++) {
                    const int64_t c0 = b * sh->B, width = RT_MIN(sh->B, sh->C - c0);
                    if (kind == GSTATS)
                        for (int64_t i = 0; i < V_GROUP; i++) {
                            const int64_t c = i & (sh->B - 1);
                            pattern[i] = c < width ? mean[g * sh->C + c0 + c] : 0.0f;
                        }
                    for (int64_t j = 0; j < span; j += SPAN) {
                        const int64_t at = r * sh->row + b * span + j;
                        sum_runs(kind, gx + at, gy + at, RT_MIN(SPAN, span - j),
                                 RT_MIN(together, sh->rows - r), sh->row, pattern, s, q);
                        flush(gs + c0, s, sh->B, width);
                        if (two)
                            flush(gq + c0, q, sh->B, width);
                    }
                }
        }
    }
    if (kind == GSTATS)
        for (int64_t i = 0; i < sh->groups * sh->C; i++)
            q_out[i] *= (double)rstd[i];
}

/* ---- kernels ---- */

static bool supports(const rt_problem *p) {
    const rt_desc *x = &p->in[0];
    const bool blocked = x->layout == RT_LAYOUT_C8 || x->layout == RT_LAYOUT_C16;
    if (x->dtype != RT_DTYPE_F32 || x->shape.rank < 2 || p->out.layout != RT_LAYOUT_PLAIN ||
        !(x->layout == RT_LAYOUT_PLAIN || (blocked && x->shape.rank == 4)))
        return false;
    if (p->attr.members > 1 && x->shape.d[0] % p->attr.members != 0)
        return false;
    const bool pair = p->op == RT_OP_CHAN_DOT || p->op == RT_OP_BN_GSTATS;
    if (pair && !rt_desc_equal(x, &p->in[1]))
        return false;
    if (p->op == RT_OP_BN_GSTATS && (p->in[2].layout != RT_LAYOUT_PLAIN || p->in[2].dtype != RT_DTYPE_F32))
        return false;
    return true;
}

static rt_status prepare_double(const rt_problem *p, void **state, size_t *scratch) {
    *state = NULL;
    const chan_shape s = shape_of(p);
    *scratch = (size_t)(s.groups * s.C) * sizeof(double);
    return RT_OK;
}

static void narrow(float *dst, const double *src, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        dst[i] = (float)src[i];
}

static void run_chan_sum(const void *state, const rt_problem *p, void *out, const void *const *in,
                         const rt_kern_ctx *ctx) {
    (void)state;
    const chan_shape s = shape_of(p);
    chan_sums(SUM, &s, ctx->scratch, NULL, in[0], in[0], NULL, NULL);
    narrow(out, ctx->scratch, s.groups * s.C);
}
static void run_chan_dot(const void *state, const rt_problem *p, void *out, const void *const *in,
                         const rt_kern_ctx *ctx) {
    (void)state;
    const chan_shape s = shape_of(p);
    chan_sums(DOT, &s, ctx->scratch, NULL, in[0], in[1], NULL, NULL);
    narrow(out, ctx->scratch, s.groups * s.C);
}
static void run_bn_stats(const void *state, const rt_problem *p, void *out, const void *const *in,
                         const rt_kern_ctx *ctx) {
    (void)state;
    (void)ctx;
    const chan_shape s = shape_of(p);
    double *d = out;
    chan_sums(STATS, &s, d, d + s.groups * s.C, in[0], in[0], NULL, NULL);
}
static void run_bn_gstats(const void *state, const rt_problem *p, void *out, const void *const *in,
                          const rt_kern_ctx *ctx) {
    (void)state;
    (void)ctx;
    const chan_shape s = shape_of(p);
    double *d = out;
    const float *coef = in[2];
    chan_sums(GSTATS, &s, d, d + s.groups * s.C, in[0], in[1], coef, coef + s.groups * s.C);
}

const rt_kern RT_V(rt_k_chan_sum_f32) = {.impl = RT_V_IMPL,
                                         .supports = supports,

                                         .prepare = prepare_double,
                                         .run = run_chan_sum};
const rt_kern RT_V(rt_k_chan_dot_f32) = {.impl = RT_V_IMPL,
                                         .supports = supports,

                                         .prepare = prepare_double,
                                         .run = run_chan_dot};
const rt_kern RT_V(rt_k_bn_stats_f32) = {.impl = RT_V_IMPL, .supports = supports, .run = run_bn_stats};
const rt_kern RT_V(rt_k_bn_gstats_f32) = {.impl = RT_V_IMPL, .supports = supports, .run = run_bn_gstats};
