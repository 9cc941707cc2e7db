/*
 * vec_softmax.c - softmax, cross-entropies and their gradients, row by row over the last axis.
 *
 * With M = max z and S = sum e^(z - M):
 *     softmax = e^(z - M) / S                    ln softmax = (z - M) - ln S
 *     CE_LABEL = (1 - alpha) (ln S - (z_y - M)) + alpha / K sum (ln S - (z - M))
 *     CE_DIST = sum q (ln S - (z - M))           d CE = dl (softmax sum t - t), t the target
 * Exponentials are floats, sums over a row are doubles. A gradient keeps e^(z - M) in its output until S is
 * known.
 */
#include "kern/kern.h"
#include "kern/vec/vmath.h"
#include <math.h>

RT_INLINE float row_max(const float *z, int64_t k) {
    const vf low = v_set(-INFINITY);
    vf m = low;
    int64_t i = 0;
    for (; i + V_W <= k; i += V_W)
        m = v_max(m, v_load(z + i));
    if (i < k)
        m = v_max(m, v_select(v_mask_n(k - i), v_load_n(z + i, k - i), low));
    return v_hmax(m);
}

/* S; with e, also stores the exponentials. */
RT_INLINE double row_exp(const float *z, float max, int64_t k, float *e) {
    v_wide sum = {0};
    int64_t i = 0;
    for (; i + V_W <= k; i += V_W) {
        const vf x = v_exp(v_load(z + i) - max);
        if (e)
            v_store(e + i, x);
        v_wide_add(&sum, x);
    }
    if (i < k) {
        const vf x = v_and(v_mask_n(k - i), v_exp(v_load_n(z + i, k - i) - max));
        if (e)
            v_store_n(e + i, x, k - i);
        v_wide_add(&sum, x);
    }
    return v_wide_sum(sum);
}

RT_INLINE double row_sum(const float *x, int64_t k) {
    v_wide sum = {0};
    for (int64_t i = 0; i < k; i += V_W)
        v_wide_add(&sum, v_load_part(x + i, k - i));
    return v_wide_sum(sum);
}

RT_INLINE double row_dot(const float *x, const float *y, int64_t k) {
    v_wide sum = {0};
    for (int64_t i = 0; i < k; i += V_W)
        v_wide_add_product(&sum, v_load_part(x + i, k - i), v_load_part(y + i, k - i));
    return v_wide_sum(sum);
}

#define KERNEL(name)                                                                                         \
    static void run_##name(const void *state RT_UNUSED, const rt_problem *p, void *out,                      \
                           const void *const *in, const rt_kern_ctx *ctx RT_UNUSED)

/* Length of the last axis. */
RT_INLINE int64_t last(const rt_desc *d) {
    return d->shape.d[d->shape.rank - 1];
}

KERNEL(softmax) {
    const float *z = in[0];
    float *y = out;
    const int64_t k = last(&p->out), rows = rt_desc_elems(&p->out) / k;
    for (int64_t r = 0; r < rows; r++, z += k, y += k) {
        const float scale = (float)(1.0 / row_exp(z, row_max(z, k), k, y));
        for (int64_t i = 0; i < k; i += V_W)
            v_store_part(y + i, v_load_part(y + i, k - i) * scale, k - i);
    }
}

KERNEL(softmax_bwd) {
    const float *dy = in[0], *y = in[1];
    float *dz = out;
    const int64_t k = last(&p->out), rows = rt_desc_elems(&p->out) / k;
    for (int64_t r = 0; r < rows; r++, dy += k, y += k, dz += k) {
        const float dot = (float)row_dot(dy, y, k);
        for (int64_t i = 0; i < k; i += V_W)
            v_store_part(dz + i, v_load_part(y + i, k - i) * (v_load_part(dy + i, k - i) - dot), k - i);
    }
}

KERNEL(log_softmax) {
    const float *z = in[0];
    float *y = out;
    const int64_t k = last(&p->out), rows = rt_desc_elems(&p->out) / k;
    for (int64_t r = 0; r < rows; r++, z += k, y += k) {
        const float max = row_max(z, k), lns = (float)log(row_exp(z, max, k, NULL));
        for (int64_t i = 0; i < k; i += V_W)
            v_store_part(y + i, (v_load_part(z + i, k - i) - max) - lns, k - i);
    }
}

KERNEL(log_softmax_bwd) {
    const float *dy = in[0], *y = in[1];
    float *dz = out;
    const int64_t k = last(&p->out), rows = rt_desc_elems(&p->out) / k;
    for (int64_t r = 0; r < rows; r++, dy += k, y += k, dz += k) {
        const vf sum = v_set((float)-row_sum(dy, k));
        for (int64_t i = 0; i < k; i += V_W)
            v_store_part(dz + i, v_fma(v_exp(v_load_part(y + i, k - i)), sum, v_load_part(dy + i, k - i)),
                         k - i);
    }
}

/* A label outside 0 .. K - 1 belongs to no class: its one-hot part is zero, as in the reference. */
KERNEL(ce_label) {
    const float *z = in[0];
    const int32_t *labels = in[1];
    float *loss = out;
    const int64_t k = last(&p->in[0]), rows = rt_desc_elems(&p->out);
    const double alpha = p->attr.alpha;
    for (int64_t r = 0; r < rows; r++, z += k) {
        const float max = row_max(z, k);
        const double norm = (double)max + log(row_exp(z, max, k, NULL));
        double sum = 0;
        if (labels[r] >= 0 && labels[r] < k)
            sum = (1 - alpha) * (norm - (double)z[labels[r]]);
        if (alpha > 0)
            sum += alpha * (norm - row_sum(z, k) / (double)k);
        loss[r] = (float)sum;
    }
}

KERNEL(ce_label_bwd) {
    const float *dl = in[0], *z = in[1];
    const int32_t *labels = in[2];
    float *dz = out;
    const int64_t k = last(&p->out), rows = rt_desc_elems(&p->out) / k;
    const double alpha = p->attr.alpha;
    for (int64_t r = 0; r < rows; r++, z += k, dz += k) {
        const bool known = labels[r] >= 0 && labels[r] < k;
        const double sum = row_exp(z, row_max(z, k), k, dz), g = (double)dl[r];
        const vf scale = v_set((float)(g * (known ? 1 : alpha) / sum));
        const vf base = v_set((float)(-g * alpha / (double)k));
        for (int64_t i = 0; i < k; i += V_W)
            v_store_part(dz + i, v_fma(v_load_part(dz + i, k - i), scale, base), k - i);
        if (known)
            dz[labels[r]] -= (float)(g * (1 - alpha));
    }
}

KERNEL(ce_dist) {
    const float *z = in[0], *q = in[1];
    float *loss = out;
    const int64_t k = last(&p->in[0]), rows = rt_desc_elems(&p->out);
    for (int64_t r = 0; r < rows; r++, z += k, q += k) {
        const float max = row_max(z, k), lns = (float)log(row_exp(z, max, k, NULL));
        v_wide sum = {0};
        for (int64_t i = 0; i < k; i += V_W) /* absent lanes of q are zero, those of z finite */
            v_wide_add_product(&sum, v_load_part(q + i, k - i), lns - (v_load_part(z + i, k - i) - max));
        loss[r] = (float)v_wide_sum(sum);
    }
}

KERNEL(ce_dist_bwd) {
    const float *dl = in[0], *z = in[1], *q = in[2];
    float *dz = out;
    const int64_t k = last(&p->out), rows = rt_desc_elems(&p->out) / k;
    for (int64_t r = 0; r < rows; r++, z += k, q += k, dz += k) {
        const double sum = row_exp(z, row_max(z, k), k, dz);
        const vf scale = v_set((float)(row_sum(q, k) / sum));
        for (int64_t i = 0; i < k; i += V_W) {
            const vf e = v_load_part(dz + i, k - i);
            v_store_part(dz + i, dl[r] * v_fma(e, scale, -v_load_part(q + i, k - i)), k - i);
        }
    }
}

/* ---- registration ---- */

static bool supports(const rt_problem *p) {
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].layout != RT_LAYOUT_PLAIN ||
            (p->in[i].dtype != RT_DTYPE_F32 && p->in[i].dtype != RT_DTYPE_I32))
            return false;
    return p->out.layout == RT_LAYOUT_PLAIN && p->out.dtype == RT_DTYPE_F32 && p->out.shape.rank > 0 &&
           p->in[0].shape.rank > 0 && rt_desc_elems(&p->out) > 0;
}

#define REGISTER(name)                                                                                       \
    const rt_kern RT_V(rt_k_##name##_f32) = {.impl = RT_V_IMPL, .supports = supports, .run = run_##name};
REGISTER(softmax)
REGISTER(softmax_bwd)
REGISTER(log_softmax)
REGISTER(log_softmax_bwd)
REGISTER(ce_label)
REGISTER(ce_label_bwd)
REGISTER(ce_dist)
REGISTER(ce_dist_bwd)
