/*
 * vec_sinkhorn.c - Sinkhorn and its gradient as passes over one matrix in cache, instead of logarithms.
 *
 * Scaling form: P = diag(u) K diag(v), K = e^(L - row maxima - column maxima), u = 1 / K v, v = 1 / K^T u.
 * Rows and columns of K each hold a 1, and an iteration changes a scaling by at most a factor n, so nothing
 * over- or underflows as long as u and v are put back into K (K = e^(L + f + g) anew, u = v = 1) before they
 * leave [1 / FAR, FAR]. Both halves of an iteration are one pass: as soon as a row's sum is known, the scaled
 * row is added to the column sums, while it is in the first-level cache. Iterations end when all row sums are
 * 1 to the precision of floats: more would not change P.
 *
 * Gradient, implicit (ref_linalg.inc has the formulas): the system S b = h - P^T (g / r) is solved by
 * conjugate gradients; S is positive semi-definite for every P, and a product with S is again one pass. The
 * residual is what the column sums of dL miss to be zero, so stopping early is harmless. Unrolled: only the
 * 2 count scalings are kept, relative to the last ones, so that K is P; with u, v, df, dg of each iteration
 * the gradient is P o (G - sum over iterations of two products of a column and a row).
 *
 * Rows are padded with zeros to a multiple of PAD.
 *
 *     scratch: K, n x ld floats | VECTORS of ld doubles | unrolled: 4 count + 1 vectors of ld floats
 */
#include "base/size.h"
#include "kern/kern.h"
#include "kern/vec/simd.h"
#include "kern/vec/vmath.h"
#include <math.h>

enum { PAD = 32, ROWS = 4, VECTORS = 16 }; /* ROWS: of a pass at a time */
static const float FAR = 1e9f, CONVERGED = 1e-6f;
static const double SOLVED = 1e-6; /* of the residual's norm, relative */

typedef struct work {
    int64_t n, ld; /* order, padded */
    float rtau, floor;
    float *k;     /* n x ld */
    double *next; /* the next free vector */
} work;

static float *vector_f32(work *w) {
    float *v = (float *)(void *)w->next;
    memset(v, 0, (size_t)w->ld * sizeof *v);
    w->next += w->ld / 2;
    return v;
}
static double *vector_f64(work *w) {
    double *v = w->next;
    memset(v, 0, (size_t)w->ld * sizeof *v);
    w->next += w->ld;
    return v;
}

static work work_begin(const rt_problem *p, void *scratch) {
    work w = {.n = p->in[0].shape.d[0], .k = scratch};
    w.ld = (w.n + PAD - 1) / PAD * PAD;
    w.rtau = (float)(1 / p->attr.alpha);
    w.floor = (float)p->attr.beta;
    w.next = (double *)(void *)(w.k + w.n * w.ld);
    return w;
}

/* ---- passes over K ---- */

/* Rows [i, i + ROWS); behind the last one it is repeated and counts for nothing. */
typedef struct rows {
    const float *r[ROWS];
    int64_t at[ROWS];
    bool real[ROWS];
} rows;
RT_INLINE rows rows_at(const work *w, int64_t i) {
    rows b;
    for (int q = 0; q < ROWS; q++) {
        b.at[q] = RT_MIN(i + q, w->n - 1);
        b.r[q] = w->k + b.at[q] * w->ld;
        b.real[q] = i + q < w->n;
    }
    return b;
}
RT_INLINE void rows_dot(const work *w, const rows *b, const float *v, float sum[ROWS]) {
    vf s[ROWS][2] = {0};
    for (int64_t j = 0; j < w->ld; j += 2 * V_W) {
        const vf v0 = v_load(v + j), v1 = v_load(v + j + V_W);
#pragma GCC unroll 4
        for (int q = 0; q < ROWS; q++) {
            s[q][0] = v_fma(v_load(b->r[q] + j), v0, s[q][0]);
            s[q][1] = v_fma(v_load(b->r[q] + j + V_W), v1, s[q][1]);
        }
    }
    for (int q = 0; q < ROWS; q++)
        sum[q] = v_sum(s[q][0] + s[q][1]);
}
RT_INLINE void rows_add(const work *w, const rows *b, const float t[ROWS], float *col) {
    vf f[ROWS];
    for (int q = 0; q < ROWS; q++)
        f[q] = v_set(b->real[q] ? t[q] : 0.0f);
    for (int64_t j = 0; j < w->ld; j += V_W) {
        vf c = v_load(col + j);
#pragma GCC unroll 4
        for (int q = 0; q < ROWS; q++)
            c = v_fma(f[q], v_load(b->r[q] + j), c);
        v_store(col + j, c);
    }
}

/* u = 1 / (K v), col = K^T u. Returns how far from 1 row sums of diag(u) K diag(v) were with the old u. */
static float half_steps(const work *w, float *u, const float *v, float *col) {
    float err = 0;
    memset(col, 0, (size_t)w->ld * sizeof *col);
    for (int64_t i = 0; i < w->n; i += ROWS) {
        const rows b = rows_at(w, i);
        float t[ROWS];
        rows_dot(w, &b, v, t);
        for (int q = 0; q < ROWS; q++) {
            err = fmaxf(err, b.real[q] ? fabsf(u[b.at[q]] * t[q] - 1) : 0);
            t[q] = 1 / t[q];
        }
        for (int q = 0; q < ROWS; q++)
            u[b.at[q]] = t[q];
        rows_add(w, &b, t, col);
    }
    return err;
}

/* ---- forward ---- */

/* Elements [j, j + V_W) of a row of L; those behind the end read as x = 0. */
RT_INLINE vf logits_at(const work *w, const float *x, int64_t j) {
    const vf l = v_load_part(x + j, w->n - j) * w->rtau;
    return w->floor > 0 ? v_log(v_exp(v_min(l, v_set(80.0f))) + w->floor) + v_max(l - 80.0f, v_set(0.0f)) : l;
}

/* f = -row maxima of L, g = -column maxima of L + f. */
static void start(const work *w, const float *x, float *f, float *g) {
    for (int64_t j = 0; j < w->ld; j++)
        g[j] = -INFINITY;
    for (int64_t i = 0; i < w->n; i++) {
        const float *row = x + i * w->n;
        vf top = v_set(-INFINITY);
        for (int64_t j = 0; j < w->n; j += V_W) {
            const vi real = v_mask_n(RT_MIN(w->n - j, (int64_t)V_W));
            top = v_max(v_select(real, logits_at(w, row, j), v_set(-INFINITY)), top);
        }
        f[i] = -v_hmax(top);
        for (int64_t j = 0; j < w->n; j += V_W)
            v_store(g + j, v_max(v_load(g + j), logits_at(w, row, j) + f[i]));
    }
    for (int64_t j = 0; j < w->ld; j++)
        g[j] = j < w->n ? -g[j] : 0;
}

/* K = e^(L + f + g) */
static void fill(const work *w, const float *x, const float *f, const float *g) {
    for (int64_t i = 0; i < w->n; i++) {
        float *k = w->k + i * w->ld;
        for (int64_t j = 0; j < w->ld; j += V_W) {
            const vi real = v_mask_n(RT_MAX(RT_MIN(w->n - j, (int64_t)V_W), (int64_t)0));
            const vf l = j < w->n ? logits_at(w, x + i * w->n, j) : v_set(0.0f);
            v_store(k + j, v_and(real, v_exp(l + f[i] + v_load(g + j))));
        }
    }
}

/* f += ln u over the padded length; u padded with zeros. */
static void absorb(const work *w, float *f, const float *u) {
    for (int64_t j = 0; j < w->ld; j += V_W)
        v_store(f + j, v_load(f + j) + v_log(v_select(v_load(u + j) == 0.0f, v_set(1.0f), v_load(u + j))));
}

static bool is_near(const work *w, const float *u) {
    bool ok = true;
    for (int64_t j = 0; j < w->n; j++)
        ok = ok && u[j] < FAR && u[j] > 1 / FAR;
    return ok;
}

/* K becomes P. way: NULL, or room for f (count rows) and g (count + 1 rows) of every iteration; those that would
 * change nothing any more repeat the last, because the way back goes through them, too: near a permutation P is
 * balanced long before its gradient is. */
static void balance(work *w, const float *x, int64_t count, float *way) {
    float *u = vector_f32(w), *v = vector_f32(w), *col = vector_f32(w);
    float *f = vector_f32(w), *g = vector_f32(w);
    float *way_g = way ? way + count * w->ld : NULL;
    start(w, x, f, g);
    fill(w, x, f, g);
    for (int64_t j = 0; j < w->n; j++) /* the first rows are summed without g */
        u[j] = 1, v[j] = expf(-g[j]);
    if (way)
        memset(way_g, 0, (size_t)w->ld * sizeof *way_g);
    int64_t t = 0;
    for (bool done = false; t < count && !done; t++) {
        done = half_steps(w, u, v, col) < CONVERGED;
        for (int64_t j = 0; j < w->n; j++)
            v[j] = 1 / col[j];
        if (way) {
            float *to_f = way + t * w->ld, *to_g = way_g + (t + 1) * w->ld;
            memcpy(to_f, f, (size_t)w->ld * sizeof *f);
            memcpy(to_g, g, (size_t)w->ld * sizeof *g);
            absorb(w, to_f, u);
            absorb(w, to_g, v);
        }
        if (!is_near(w, u) || !is_near(w, v)) {
            absorb(w, f, u);
            absorb(w, g, v);
            fill(w, x, f, g);
            for (int64_t j = 0; j < w->n; j++)
                u[j] = v[j] = 1;
        }
    }
    for (int64_t last = t - 1; way && t < count; t++) {
        memcpy(way + t * w->ld, way + last * w->ld, (size_t)w->ld * sizeof *way);
        memcpy(way_g + (t + 1) * w->ld, way_g + (last + 1) * w->ld, (size_t)w->ld * sizeof *way);
    }
    for (int64_t i = 0; i < w->n; i++)
        for (int64_t j = 0; j < w->ld; j += V_W)
            v_store(w->k + i * w->ld + j, v_load(w->k + i * w->ld + j) * u[i] * v_load(v + j));
}

static void run_sinkhorn(const void *state RT_UNUSED, const rt_problem *p, void *out, const void *const *in,
                         const rt_kern_ctx *ctx) {
    work w = work_begin(p, ctx->scratch);
    balance(&w, in[0], p->attr.count, NULL);
    for (int64_t i = 0; i < w.n; i++)
        memcpy((float *)out + i * w.n, w.k + i * w.ld, (size_t)w.n * sizeof(float));
}

/* ---- backward ---- */

/* g = (P o G) 1 and r = P 1; then c = P^T 1, h = (P o G)^T 1 - P^T (g / r), where asked for (h not NULL). */
static void marginals(const work *w, const float *dp, float *g, float *r, float *c, float *h) {
    for (int64_t i = 0; i < w->n; i++) {
        const float *k = w->k + i * w->ld, *d = dp + i * w->n;
        vf sum = {0}, dot = {0};
        for (int64_t j = 0; j < w->n; j += V_W) {
            const vf m = v_load(k + j);
            sum += m;
            dot = v_fma(m, v_load_part(d + j, w->n - j), dot);
        }
        r[i] = v_sum(sum);
        g[i] = v_sum(dot);
        const float mean = h ? g[i] / r[i] : 0;
        for (int64_t j = 0; j < w->n; j += V_W) {
            const vf m = v_load(k + j);
            v_store(c + j, v_load(c + j) + m);
            if (h)
                v_store(h + j, v_fma(m, v_load_part(d + j, w->n - j) - mean, v_load(h + j)));
        }
    }
}

static double dot(const double *a, const double *b, int64_t n) {
    vd s = {0};
    for (int64_t i = 0; i < n; i += V_W / 2)
        s += vd_load(a + i) * vd_load(b + i);
    return vd_sum(s);
}

/* q = (diag c - P^T diag(1/r) P + J / n) d */
static void apply(const work *w, double *q, const double *d, const float *r, const float *c, float *df,
                  float *col) {
    double mean = 0;
    memset(col, 0, (size_t)w->ld * sizeof *col);
    for (int64_t j = 0; j < w->n; j++) {
        df[j] = (float)d[j];
        mean += d[j];
    }
    for (int64_t i = 0; i < w->n; i += ROWS) {
        const rows b = rows_at(w, i);
        float t[ROWS];
        rows_dot(w, &b, df, t);
        for (int k = 0; k < ROWS; k++)
            t[k] /= r[b.at[k]];
        rows_add(w, &b, t, col);
    }
    for (int64_t j = 0; j < w->n; j++)
        q[j] = (double)c[j] * d[j] - (double)col[j] + mean / (double)w->n;
}

/* dx = dL = P o (G - a 1^T - 1 b^T), not yet divided by tau. */
static void implicit(work *w, float *dx, const float *dp, int64_t count) {
    float *g = vector_f32(w), *r = vector_f32(w), *c = vector_f32(w), *h = vector_f32(w);
    float *df = vector_f32(w), *col = vector_f32(w);
    double *b = vector_f64(w), *res = vector_f64(w), *dir = vector_f64(w), *q = vector_f64(w);
    marginals(w, dp, g, r, c, h);
    for (int64_t j = 0; j < w->n; j++)
        dir[j] = res[j] = (double)h[j];
    double rr = dot(res, res, w->ld);
    const double enough = SOLVED * SOLVED * rr;
    for (int64_t t = 0; t < count && rr > enough; t++) {
        apply(w, q, dir, r, c, df, col);
        const double curve = dot(dir, q, w->ld);
        if (!(curve > 0))
            break;
        const double step = rr / curve, old = rr;
        for (int64_t j = 0; j < w->n; j++) {
            b[j] += step * dir[j];
            res[j] -= step * q[j];
        }
        rr = dot(res, res, w->ld);
        for (int64_t j = 0; j < w->n; j++)
            dir[j] = res[j] + rr / old * dir[j];
    }
    for (int64_t j = 0; j < w->n; j++)
        df[j] = (float)b[j];
    for (int64_t i = 0; i < w->n; i++) {
        const float *k = w->k + i * w->ld, *d = dp + i * w->n;
        vf sum = {0};
        for (int64_t j = 0; j < w->ld; j += V_W)
            sum = v_fma(v_load(k + j), v_load(df + j), sum);
        const float a = (g[i] - v_sum(sum)) / r[i];
        for (int64_t j = 0; j < w->n; j += V_W) {
            const vf slope = v_load_part(d + j, w->n - j) - a - v_load(df + j);
            v_store_part(dx + i * w->n + j, v_load(k + j) * slope, w->n - j);
        }
    }
}

/* Rows of e^(way - last), in place: scalings relative to P's. */
static void relative(const work *w, float *way, const float *last, int64_t count) {
    for (int64_t t = 0; t < count; t++)
        for (int64_t j = 0; j < w->ld; j += V_W) {
            const vf e = v_load(way + t * w->ld + j) - v_load(last + j);
            v_store(way + t * w->ld + j, v_exp(v_min(e, v_set(60.0f))));
        }
}

/* acc += sum over t of s[t, i] row[t, j ...], in double: hundreds of terms that nearly cancel G. */
RT_INLINE void add_products(const work *w, v_wide *acc, const float *s, const float *row, int64_t i,
                            int64_t j, int64_t count) {
    for (int64_t t = 0; t < count; t++)
        v_wide_add_product(acc, v_set(s[t * w->ld + i]), v_load(row + t * w->ld + j));
}

/* The same through the iterations; way: 4 count + 1 rows. */
static void unrolled(work *w, float *dx, const float *dp, const float *x, int64_t count, float *way) {
    const int64_t ld = w->ld;
    balance(w, x, count, way);
    float *u = way, *v = way + count * ld, *udf = v + (count + 1) * ld, *vdg = udf + count * ld;
    float *df = vector_f32(w), *dg = vector_f32(w), *r = vector_f32(w), *c = vector_f32(w);
    float *acc = vector_f32(w);
    memcpy(acc, u + (count - 1) * ld, (size_t)ld * sizeof *acc);
    relative(w, u, acc, count);
    memcpy(acc, v + count * ld, (size_t)ld * sizeof *acc);
    relative(w, v, acc, count + 1);
    for (int64_t i = 0; i < w->n; i++) /* dg = (P o G)^T 1 */
        for (int64_t j = 0; j < w->n; j += V_W)
            v_store(dg + j, v_fma(v_load(w->k + i * ld + j), v_load_part(dp + i * w->n + j, w->n - j),
                                  v_load(dg + j)));
    marginals(w, dp, df, r, c, NULL);
    for (int64_t t = count - 1; t >= 0; t--) {
        float *a = udf + t * ld, *b = vdg + t * ld;
        for (int64_t j = 0; j < ld; j++)
            b[j] = v[(t + 1) * ld + j] * dg[j];
        memset(acc, 0, (size_t)ld * sizeof *acc);
        for (int64_t i = 0; i < w->n; i += ROWS) {
            const rows m = rows_at(w, i);
            float s[ROWS];
            rows_dot(w, &m, b, s);
            for (int q = 0; q < ROWS; q++)
                s[q] = u[t * ld + m.at[q]] * (df[m.at[q]] - u[t * ld + m.at[q]] * s[q]);
            for (int q = 0; q < ROWS; q++)
                a[m.at[q]] = s[q];
            rows_add(w, &m, s, acc);
        }
        for (int64_t j = 0; j < ld; j++) {
            df[j] = 0;
            dg[j] = -v[t * ld + j] * acc[j];
        }
    }
    for (int64_t i = 0; i < w->n; i++) {
        for (int64_t j = 0; j < w->n; j += V_W) {
            v_wide sum = {0};
            double less[V_W];
            add_products(w, &sum, u, vdg, i, j, count);
            add_products(w, &sum, udf, v, i, j, count);
            vd_store(less, sum.lo);
            vd_store(less + V_W / 2, sum.hi);
            for (int64_t q = 0; q < V_W && j + q < w->n; q++)
                dx[i * w->n + j + q] =
                    (float)((double)w->k[i * ld + j + q] * ((double)dp[i * w->n + j + q] - less[q]));
        }
    }
}

/* Are the row sums of P near 1? */
static bool is_balanced(const work *w) {
    for (int64_t i = 0; i < w->n; i++) {
        vf sum = {0};
        for (int64_t j = 0; j < w->ld; j += V_W)
            sum += v_load(w->k + i * w->ld + j);
        if (!(fabs((double)v_sum(sum) - 1) < RT_SINKHORN_BALANCED))
            return false;
    }
    return true;
}

static void run_sinkhorn_bwd(const void *state RT_UNUSED, const rt_problem *p, void *out,
                             const void *const *in, const rt_kern_ctx *ctx) {
    const float *dp = in[0], *pm = in[1], *x = in[2];
    float *dx = out;
    work w = work_begin(p, ctx->scratch);
    float *way = (float *)(void *)(w.next + VECTORS * w.ld);
    for (int64_t i = 0; i < w.n; i++) {
        memcpy(w.k + i * w.ld, pm + i * w.n, (size_t)w.n * sizeof *pm);
        memset(w.k + i * w.ld + w.n, 0, (size_t)(w.ld - w.n) * sizeof *pm);
    }
    if (p->attr.index == RT_SINKHORN_IMPLICIT || (p->attr.index == RT_SINKHORN_AUTO && is_balanced(&w)))
        implicit(&w, dx, dp, p->attr.count);
    else
        unrolled(&w, dx, dp, x, p->attr.count, way);
    for (int64_t i = 0; i < w.n * w.n; i += V_W) {
        const int64_t rest = w.n * w.n - i;
        vf d = v_load_part(dx + i, rest) * w.rtau;
        if (w.floor > 0)
            d = d / (1.0f + w.floor * v_exp(v_load_part(x + i, rest) * -w.rtau));
        v_store_part(dx + i, d, rest);
    }
}

/* ---- registration ---- */

static bool supports(const rt_problem *p) {
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].dtype != RT_DTYPE_F32 || p->in[i].layout != RT_LAYOUT_PLAIN)
            return false;
    return p->out.dtype == RT_DTYPE_F32 && p->out.layout == RT_LAYOUT_PLAIN && rt_desc_elems(&p->out) > 0;
}

static rt_status prepare(const rt_problem *p, void **state, size_t *scratch) {
    const bool way = p->op == RT_OP_SINKHORN_BWD && p->attr.index != RT_SINKHORN_IMPLICIT;
    const size_t n = (size_t)p->in[0].shape.d[0], ld = (n + PAD - 1) / PAD * PAD;
    size_t lines = n + 2 * VECTORS, more = 0;
    *state = NULL;
    RT_FAIL_IF(way && (!rt_size_mul((size_t)p->attr.count, 4, &more) || !rt_size_add(more, 1, &more)),
               RT_E_MEMORY, "Sinkhorn: %lld iterations are too many", (long long)p->attr.count);
    RT_FAIL_IF(!rt_size_add(lines, more, &lines) || !rt_size_mul(lines, ld * sizeof(float), scratch),
               RT_E_MEMORY, "Sinkhorn: a matrix of order %zu is too large", n);
    return RT_OK;
}

const rt_kern RT_V(rt_k_sinkhorn_f32) = {
    .impl = RT_V_IMPL, .supports = supports, .prepare = prepare, .run = run_sinkhorn};
const rt_kern RT_V(rt_k_sinkhorn_bwd_f32) = {
    .impl = RT_V_IMPL, .supports = supports, .prepare = prepare, .run = run_sinkhorn_bwd};
