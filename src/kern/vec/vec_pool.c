/*
 * vec_pool.c - pooling. In the blocked layouts a vector holds the channels of one position, so windows are
 * walked by whole vectors. The reference's rules hold: padding never wins, the first of equal maxima does, a
 * NaN only if it comes first.
 *
 * MAXPOOL_BWD finds, per lane, which element of the window won, then adds dy there: windows may overlap. In
 * PLAIN the same walk goes one channel at a time, without vectors.
 */
#include "kern/kern.h"
#include "kern/vec/simd.h"

#define KERNEL(name)                                                                                         \
    static void run_##name(const void *state RT_UNUSED, const rt_problem *p, void *out,                      \
                           const void *const *in, const rt_kern_ctx *ctx RT_UNUSED)

/* One image of one channel block: x is h x w positions, y qh x qw. */
typedef struct pool_shape {
    int64_t images, h, w, qh, qw, kh, kw, stride, pad, B;
} pool_shape;

static pool_shape shape_of(const rt_problem *p, const rt_desc *x, const rt_desc *y) {
    const int64_t B = rt_layout_block(x->layout), blocks = (x->shape.d[1] + B - 1) / B;
    return (pool_shape){.images = x->shape.d[0] * blocks,
                        .h = x->shape.d[2],
                        .w = x->shape.d[3],
                        .qh = y->shape.d[2],
                        .qw = y->shape.d[3],
                        .kh = p->attr.kh,
                        .kw = p->attr.kw,
                        .stride = p->attr.stride > 0 ? p->attr.stride : 1,
                        .pad = p->attr.pad,
                        .B = B};
}

/* The part of a window of output (q, r) that lies inside the image. */
typedef struct window {
    int64_t top, bottom, left, right;
} window;
RT_INLINE window window_of(const pool_shape *s, int64_t q, int64_t r) {
    const int64_t top = q * s->stride - s->pad, left = r * s->stride - s->pad;
    return (window){RT_MAX(top, 0), RT_MIN(top + s->kh, s->h), RT_MAX(left, 0), RT_MIN(left + s->kw, s->w)};
}
RT_INLINE bool window_empty(const window *v) {
    return v->top >= v->bottom || v->left >= v->right;
}

/* lanes: channels at a time, V_W or the block if that is smaller. */
RT_INLINE vf window_max(const pool_shape *s, const window *v, const float *x, int64_t lanes, vi *where) {
    vf best = v_load_part(x + (v->top * s->w + v->left) * s->B, lanes);
    vi at = vi_set((int32_t)(v->top * s->w + v->left));
    for (int64_t a = v->top; a < v->bottom; a++)
        for (int64_t b = v->left; b < v->right; b++) {
            const vf e = v_load_part(x + (a * s->w + b) * s->B, lanes);
            const vi wins = e > best;
            best = v_select(wins, e, best);
            at = (wins & (int32_t)(a * s->w + b)) | (~wins & at);
        }
    *where = at;
    return best;
}

RT_INLINE void maxpool(const pool_shape *s, float *y, const float *x, int64_t lanes) {
    for (int64_t i = 0; i < s->images; i++, x += s->h * s->w * s->B)
        for (int64_t q = 0; q < s->qh; q++)
            for (int64_t r = 0; r < s->qw; r++, y += s->B) {
                const window v = window_of(s, q, r);
                for (int64_t c = 0; c < s->B; c += lanes) {
                    vi where;
                    const vf best = window_empty(&v) ? v_set(0.0f) : window_max(s, &v, x + c, lanes, &where);
                    v_store_part(y + c, best, lanes);
                }
            }
}

KERNEL(maxpool) {
    const pool_shape s = shape_of(p, &p->in[0], &p->out);
    if (s.B >= V_W)
        maxpool(&s, out, in[0], V_W);
    else
        maxpool(&s, out, in[0], s.B);
}

RT_INLINE void maxpool_bwd(const pool_shape *s, float *dx, const float *dy, const float *x, int64_t lanes) {
    const int64_t image = s->h * s->w * s->B;
    for (int64_t i = 0; i < s->images; i++, x += image, dx += image)
        for (int64_t q = 0; q < s->qh; q++)
            for (int64_t r = 0; r < s->qw; r++, dy += s->B) {
                const window v = window_of(s, q, r);
                if (window_empty(&v))
                    continue;
                for (int64_t c = 0; c < s->B; c += lanes) {
                    vi where;
                    window_max(s, &v, x + c, lanes, &where);
                    const vf g = v_load_part(dy + c, lanes);
                    for (int64_t a = v.top; a < v.bottom; a++)
                        for (int64_t b = v.left; b < v.right; b++) {
                            float *at = dx + (a * s->w + b) * s->B + c;
                            const vf add = v_and(where == (int32_t)(a * s->w + b), g);
                            v_store_part(at, v_load_part(at, lanes) + add, lanes);
                        }
                }
            }
}

KERNEL(maxpool_bwd) {
    const pool_shape s = shape_of(p, &p->in[1], &p->in[0]);
    memset(out, 0, rt_desc_bytes(&p->out));
    if (s.B >= V_W)
        maxpool_bwd(&s, out, in[0], in[1], V_W);
    else
        maxpool_bwd(&s, out, in[0], in[1], s.B);
}

/* Lane sums of B-wide positions, in double. */
KERNEL(global_avgpool) {
    const rt_shape *sh = &p->in[0].shape;
    const int64_t B = rt_layout_block(p->in[0].layout), C = sh->d[1], blocks = (C + B - 1) / B;
    const int64_t hw = sh->d[2] * sh->d[3], span = hw * B;
    const float *x = in[0];
    float *y = out;
    for (int64_t i = 0; i < sh->d[0] * blocks; i++, x += span) {
        double sum[V_GROUP] = {0};
        v_wide acc[V_U] = {0};
        int64_t j = 0;
        for (; j + V_GROUP <= span; j += V_GROUP)
            for (int u = 0; u < V_U; u++)
                v_wide_add(&acc[u], v_load(x + j + u * V_W));
        for (int u = 0; u < V_U; u++) {
            vd_store(sum + u * V_W, acc[u].lo);
            vd_store(sum + u * V_W + V_W / 2, acc[u].hi);
        }
        for (int k = 0; j < span; j++, k++)
            sum[k] += (double)x[j];
        for (int64_t w = V_GROUP / 2; w >= B; w /= 2)
            for (int64_t c = 0; c < w; c++)
                sum[c] += sum[c + w];
        const int64_t row = i / blocks, c0 = i % blocks * B;
        for (int64_t c = 0; c < RT_MIN(B, C - c0); c++)
            y[row * C + c0 + c] = (float)(sum[c] / (double)hw);
    }
}

KERNEL(global_avgpool_bwd) {
    const rt_shape *sh = &p->out.shape;
    const int64_t B = rt_layout_block(p->out.layout), C = sh->d[1], blocks = (C + B - 1) / B;
    const int64_t hw = sh->d[2] * sh->d[3], span = hw * B;
    const float *dy = in[0];
    float *dx = out;
    for (int64_t i = 0; i < sh->d[0] * blocks; i++, dx += span) {
        const int64_t row = i / blocks, c0 = i % blocks * B;
        float pattern[V_GROUP] = {0};
        for (int64_t k = 0; k < V_GROUP; k++)
            if (c0 + (k & (B - 1)) < C)
                pattern[k] = (float)((double)dy[row * C + c0 + (k & (B - 1))] / (double)hw);
        int64_t j = 0;
        for (; j + V_GROUP <= span; j += V_GROUP)
            for (int u = 0; u < V_U; u++)
                v_store(dx + j + u * V_W, v_load(pattern + u * V_W));
        memcpy(dx + j, pattern, (size_t)(span - j) * sizeof(float));
    }
}

/* ---- registration ---- */

static bool data4(const rt_desc *d) {
    return d->dtype == RT_DTYPE_F32 && d->shape.rank == 4 && rt_desc_elems(d) > 0 &&
           (d->layout == RT_LAYOUT_PLAIN || d->layout == RT_LAYOUT_C8 || d->layout == RT_LAYOUT_C16);
}
static bool data2(const rt_desc *d) {
    return d->dtype == RT_DTYPE_F32 && d->shape.rank == 2 && d->layout == RT_LAYOUT_PLAIN;
}
static bool supports_max(const rt_problem *p) {
    for (int i = 0; i < p->nin; i++)
        if (!data4(&p->in[i]) || p->in[i].layout != p->out.layout)
            return false;
    return data4(&p->out) && p->out.shape.d[2] * p->out.shape.d[3] <= INT32_MAX &&
           p->in[0].shape.d[2] * p->in[0].shape.d[3] <= INT32_MAX;
}
static bool supports_avg(const rt_problem *p) {
    return data4(&p->in[0]) && data2(&p->out);
}
static bool supports_avg_bwd(const rt_problem *p) {
    return data2(&p->in[0]) && data4(&p->out);
}

#define REGISTER(name, which)                                                                                \
    const rt_kern RT_V(rt_k_##name##_f32) = {.impl = RT_V_IMPL, .supports = which, .run = run_##name};
REGISTER(maxpool, supports_max)
REGISTER(maxpool_bwd, supports_max)
REGISTER(global_avgpool, supports_avg)
REGISTER(global_avgpool_bwd, supports_avg_bwd)
