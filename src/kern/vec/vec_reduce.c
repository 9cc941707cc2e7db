/*
 * vec_reduce.c - sums and maxima of rows, sums of everything, sums over the batch, and the adjoints of these,
 * which repeat.
 *
 * Sums are kept in double vectors. Blocked layouts need no care where rows or everything are summed: their
 * padding is zero. Adjoints write blocked results too, as long as there is no padding to keep zero (or, per
 * channel, with it).
 */
#include "kern/kern.h"
#include "kern/vec/simd.h"
#include <math.h>

RT_INLINE double sum_of(const float *x, int64_t n) {
    v_wide a = {0}, b = {0};
    int64_t i = 0;
    for (; i + 2 * V_W <= n; i += 2 * V_W) {
        v_wide_add(&a, v_load(x + i));
        v_wide_add(&b, v_load(x + i + V_W));
    }
    for (; i < n; i += V_W)
        v_wide_add(&a, v_load_part(x + i, n - i));
    return v_wide_sum(a) + v_wide_sum(b);
}

RT_INLINE double dot_of(const float *x, const float *y, int64_t n) {
    v_wide a = {0}, b = {0};
    int64_t i = 0;
    for (; i + 2 * V_W <= n; i += 2 * V_W) {
        v_wide_add_product(&a, v_load(x + i), v_load(y + i));
        v_wide_add_product(&b, v_load(x + i + V_W), v_load(y + i + V_W));
    }
    for (; i < n; i += V_W)
        v_wide_add_product(&a, v_load_part(x + i, n - i), v_load_part(y + i, n - i));
    return v_wide_sum(a) + v_wide_sum(b);
}

/* A NaN in front stays, one behind it is passed over: what comparing one by one does. */
RT_INLINE float max_of(const float *x, int64_t n) {
    float best = x[0];
    int64_t i = 1;
    if (n >= 2 * V_W) {
        vf m = v_set(best);
        for (; i + V_W <= n; i += V_W)
            m = v_max(v_load(x + i), m);
        best = isnan(best) ? best : v_hmax(m);
    }
    for (; i < n; i++)
        best = x[i] > best ? x[i] : best;
    return best;
}

RT_INLINE void fill(float *dst, float x, int64_t n) {
    const vf v = v_set(x);
    for (int64_t i = 0; i < n; i += V_W)
        v_store_part(dst + i, v, n - i);
}

#define KERNEL(name)                                                                                         \
    static void run_##name(const void *state RT_UNUSED, const rt_problem *p, void *out,                      \
                           const void *const *in, const rt_kern_ctx *ctx RT_UNUSED)

KERNEL(row_sum) {
    float *dst = out;
    const int64_t rows = rt_desc_elems(&p->out), n = rt_desc_elems(&p->in[0]) / rows;
    for (int64_t r = 0; r < rows; r++)
        dst[r] = (float)sum_of((const float *)in[0] + r * n, n);
}

KERNEL(row_dot) {
    float *dst = out;
    const int64_t rows = rt_desc_elems(&p->out), n = rt_desc_elems(&p->in[0]) / rows;
    for (int64_t r = 0; r < rows; r++)
        dst[r] = (float)dot_of((const float *)in[0] + r * n, (const float *)in[1] + r * n, n);
}

KERNEL(row_max) {
    float *dst = out;
    const int64_t rows = rt_desc_elems(&p->out), n = rt_desc_elems(&p->in[0]) / rows;
    for (int64_t r = 0; r < rows; r++)
        dst[r] = max_of((const float *)in[0] + r * n, n);
}

KERNEL(total_sum) {
    *(float *)out = (float)sum_of(in[0], rt_desc_elems(&p->in[0]));
}

KERNEL(total_dot) {
    *(float *)out = (float)dot_of(in[0], in[1], rt_desc_elems(&p->in[0]));
}

/* Columns of V_GROUP elements at a time, all rows. */
KERNEL(batch_sum) {
    const float *src = in[0];
    float *dst = out;
    const int64_t n = rt_desc_elems(&p->out), rows = rt_desc_elems(&p->in[0]) / n;
    for (int64_t c = 0; c < n; c += V_GROUP) {
        v_wide sum[V_U] = {0};
        for (int64_t r = 0; r < rows; r++)
            for (int u = 0; u < V_U; u++)
                if (c + u * V_W < n)
                    v_wide_add(&sum[u], v_load_part(src + r * n + c + u * V_W, n - c - u * V_W));
        for (int u = 0; u < V_U; u++) {
            double part[V_W];
            vd_store(part, sum[u].lo);
            vd_store(part + V_W / 2, sum[u].hi);
            for (int64_t i = 0; i < V_W && c + u * V_W + i < n; i++)
                dst[c + u * V_W + i] = (float)part[i];
        }
    }
}

KERNEL(expand_row) {
    const float *src = in[0];
    const int64_t rows = rt_desc_elems(&p->in[0]), n = rt_desc_elems(&p->out) / rows;
    for (int64_t r = 0; r < rows; r++)
        fill((float *)out + r * n, src[r], n);
}

KERNEL(expand_total) {
    fill(out, *(const float *)in[0], rt_desc_elems(&p->out));
}

KERNEL(expand_batch) {
    const size_t row = rt_desc_bytes(&p->in[0]), total = rt_desc_bytes(&p->out);
    for (size_t at = 0; at < total; at += row)
        memcpy((char *)out + at, in[0], row);
}

KERNEL(expand_chan) {
    const rt_shape *sh = &p->out.shape;
    const int64_t C = sh->d[1], B = rt_layout_block(p->out.layout), blocks = (C + B - 1) / B;
    const int64_t sets = rt_desc_elems(&p->in[0]) / C, rows = sh->d[0];
    const int64_t span = rt_desc_elems(&p->out) / rows / blocks;
    float *dst = out;
    for (int64_t r = 0; r < rows; r++) {
        const float *src = (const float *)in[0] + r / (rows / sets) * C;
        if (span == 1) {
            memcpy(dst + r * C, src, (size_t)C * sizeof(float));
            continue;
        }
        for (int64_t b = 0; b < blocks; b++) {
            float *to = dst + (r * blocks + b) * span;
            if (B == 1) {
                fill(to, src[b], span);
                continue;
            }
            const size_t real = (size_t)RT_MIN(B, C - b * B) * sizeof(float);
            float pattern[16] = {0};
            memcpy(pattern, src + b * B, real);
            for (int64_t i = 0; i < span; i += B)
                memcpy(to + i, pattern, (size_t)B * sizeof(float));
        }
    }
}

/* ---- registration ---- */

static bool f32_in(const rt_problem *p, bool blocked) {
    for (int i = 0; i < p->nin; i++) {
        const rt_layout l = p->in[i].layout;
        const bool ok = l == RT_LAYOUT_PLAIN || (blocked && (l == RT_LAYOUT_C8 || l == RT_LAYOUT_C16));
        if (p->in[i].dtype != RT_DTYPE_F32 || !ok || p->in[i].layout != p->in[0].layout ||
            rt_desc_elems(&p->in[i]) == 0)
            return false;
    }
    return p->out.dtype == RT_DTYPE_F32 && rt_desc_elems(&p->out) > 0;
}
static bool supports_sum(const rt_problem *p) {
    return f32_in(p, true) && p->out.layout == RT_LAYOUT_PLAIN;
}
static bool supports_plain(const rt_problem *p) {
    return f32_in(p, false) && p->out.layout == RT_LAYOUT_PLAIN;
}
static bool supports_expand(const rt_problem *p) {
    const rt_layout l = p->out.layout;
    const bool blocked = (l == RT_LAYOUT_C8 || l == RT_LAYOUT_C16) && p->out.shape.rank == 4;
    if (!f32_in(p, false) || !(l == RT_LAYOUT_PLAIN || blocked))
        return false;
    if (p->op == RT_OP_EXPAND_CHAN)
        return p->out.shape.rank >= 2;
    return !blocked || p->out.shape.d[1] % rt_layout_block(l) == 0;
}

#define REGISTER(name, which)                                                                                \
    const rt_kern RT_V(rt_k_##name##_f32) = {.impl = RT_V_IMPL, .supports = which, .run = run_##name};
REGISTER(row_sum, supports_sum)
REGISTER(row_dot, supports_sum)
REGISTER(row_max, supports_plain)
REGISTER(total_sum, supports_sum)
REGISTER(total_dot, supports_sum)
REGISTER(batch_sum, supports_plain)
REGISTER(expand_row, supports_expand)
REGISTER(expand_total, supports_expand)
REGISTER(expand_batch, supports_plain)
REGISTER(expand_chan, supports_expand)
