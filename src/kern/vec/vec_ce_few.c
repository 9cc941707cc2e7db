/*
 * vec_ce_few.c - cross-entropy with labels and its gradient for few classes, a row per lane.
 *
 * A row of three or ten classes leaves most of a vector empty and ends in sums across it. Here V_W rows go side
 * by side: class j of all of them is one vector. With d = z - max z, and R the sum of e^d but for one greatest
 * class, whose term is 1,
 *     CE_LABEL = (1 - alpha) (ln(1 + R) - d_y) + alpha (ln(1 + R) - mean d)
 *     its gradient = dl (e^d / (1 + R) sum t - t), t the target
 * in floats: ln(1 + R) keeps the digits of a small R, so that a small loss is as accurate as a large one.
 * Last rows that do not fill the lanes are copied to where they do.
 */
#include "kern/kern.h"
#include "kern/vec/vmath.h"
#include <math.h>

enum { FEW = 32 };

/* Every k-th number of p: class 0 of V_W rows. */
RT_INLINE vf column_load(const float *p, int64_t k) {
    vf x = {0};
#pragma GCC unroll 16
    for (int i = 0; i < V_W; i++)
        x[i] = p[i * k];
    return x;
}
RT_INLINE void column_store(float *p, int64_t k, vf x) {
#pragma GCC unroll 16
    for (int i = 0; i < V_W; i++)
        p[i * k] = x[i];
}

/* d = z - max z. */
RT_INLINE void shifted(vf *d, const float *z, int64_t k) {
    vf max = v_set(-INFINITY);
    for (int64_t j = 0; j < k; j++) {
        d[j] = column_load(z + j, k);
        max = v_max(max, d[j]);
    }
    for (int64_t j = 0; j < k; j++)
        d[j] -= max;
}

/* R; e, which may be d, gets e^d. */
RT_INLINE vf exponentials(vf *e, const vf *d, int64_t k) {
    const vf one = v_set(1.0f);
    vi found = {0};
    vf rest = {0};
    for (int64_t j = 0; j < k; j++) {
        const vi top = (d[j] == 0.0f) & ~found;
        e[j] = v_exp(d[j]);
        rest += e[j] - v_and(top, one); /* not left out: a NaN must show */
        found |= top;
    }
    return rest;
}

static vf block_loss(const float *z, vi label, int64_t k, float alpha) {
    vf d[FEW], e[FEW], picked = {0}, sum = {0};
    shifted(d, z, k);
    const vf rest = exponentials(e, d, k), s = rest + 1.0f;
    const vf ln = v_log(s) + (rest - (s - 1.0f)) / s;
    for (int64_t j = 0; j < k; j++) {
        picked = v_select(label == (int32_t)j, d[j], picked);
        sum += d[j];
    }
    const vi known = (label >= 0) & (label < (int32_t)k);
    vf loss = v_and(known, (1 - alpha) * (ln - picked));
    if (alpha > 0)
        loss += alpha * (ln - sum / (float)k);
    return loss;
}

static void block_grad(float *dz, vf dl, const float *z, vi label, int64_t k, double alpha) {
    vf e[FEW];
    shifted(e, z, k);
    const vf s = exponentials(e, e, k) + 1.0f;
    const vi known = (label >= 0) & (label < (int32_t)k);
    const vf scale = v_select(known, v_set(1.0f), v_set((float)alpha)) / s;
    const vf other = v_set((float)(alpha / (double)k)), own = v_set((float)(1 - alpha + alpha / (double)k));
    for (int64_t j = 0; j < k; j++)
        column_store(dz + j, k, dl * v_fma(e[j], scale, -v_select(label == (int32_t)j, own, other)));
}

RT_INLINE vi labels_load(const int32_t *p) {
    return *(const vi_any *)p;
}

#define KERNEL(name)                                                                                         \
    static void run_##name(const void *state RT_UNUSED, const rt_problem *p, void *out,                      \
                           const void *const *in, const rt_kern_ctx *ctx RT_UNUSED)

KERNEL(ce_label) {
    const float *z = in[0];
    const int32_t *label = in[1];
    float *loss = out;
    const int64_t k = p->in[0].shape.d[1], rows = p->in[0].shape.d[0];
    const float alpha = (float)p->attr.alpha;
    int64_t r = 0;
    for (; r + V_W <= rows; r += V_W)
        v_store(loss + r, block_loss(z + r * k, labels_load(label + r), k, alpha));
    if (r < rows) {
        float last[FEW * V_W] = {0};
        int32_t y[V_W] = {0};
        memcpy(last, z + r * k, (size_t)((rows - r) * k) * sizeof *z);
        memcpy(y, label + r, (size_t)(rows - r) * sizeof *y);
        v_store_n(loss + r, block_loss(last, labels_load(y), k, alpha), rows - r);
    }
}

KERNEL(ce_label_bwd) {
    const float *dl = in[0], *z = in[1];
    const int32_t *label = in[2];
    float *dz = out;
    const int64_t k = p->out.shape.d[1], rows = p->out.shape.d[0];
    const double alpha = p->attr.alpha;
    int64_t r = 0;
    for (; r + V_W <= rows; r += V_W)
        block_grad(dz + r * k, v_load(dl + r), z + r * k, labels_load(label + r), k, alpha);
    if (r < rows) {
        float last[FEW * V_W] = {0};
        int32_t y[V_W] = {0};
        memcpy(last, z + r * k, (size_t)((rows - r) * k) * sizeof *z);
        memcpy(y, label + r, (size_t)(rows - r) * sizeof *y);
        block_grad(last, v_load_n(dl + r, rows - r), last, labels_load(y), k, alpha);
        memcpy(dz + r * k, last, (size_t)((rows - r) * k) * sizeof *z);
    }
}

static bool is_few(const rt_desc *z) {
    return z->dtype == RT_DTYPE_F32 && z->layout == RT_LAYOUT_PLAIN && z->shape.rank == 2 &&
           z->shape.d[1] <= FEW;
}
static bool supports(const rt_problem *p) {
    return is_few(&p->in[p->op == RT_OP_CE_LABEL ? 0 : 1]);
}

static void rule(rt_str *out) {
    rt_str_appendf(out, "cross-entropy of at most %d classes", FEW);
}

#define REGISTER(name)                                                                                       \
    const rt_kern RT_V(rt_k_##name##_few_f32) = {                                                            \
        .impl = RT_V_IMPL, .supports = supports, .rule = rule, .run = run_##name};
REGISTER(ce_label)
REGISTER(ce_label_bwd)
