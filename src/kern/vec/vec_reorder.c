/*
 * vec_reorder.c - data between PLAIN and the channel-blocked layouts.
 *
 * Per row and channel block this is a transposition of B planes of h w numbers into h w groups of B, done in
 * squares of V_W x V_W and by hand at the edges. Channels that do not exist are written as zero. Between C8
 * and C16 groups of 8 move whole.
 */
#include "kern/kern.h"
#include "kern/vec/simd.h"

/* B planes, `real` of which exist, hw apart. */
static void to_blocks(float *dst, const float *src, int64_t hw, int64_t real, int64_t B) {
    const int64_t squares = real / V_W * V_W, rows = hw / V_W * V_W;
    for (int64_t i = 0; i < rows; i += V_W)
        for (int64_t c = 0; c < squares; c += V_W)
            v_transpose_tile(dst + i * B + c, B, src + c * hw + i, hw);
    for (int64_t i = 0; i < hw; i++)
        for (int64_t c = i < rows ? squares : 0; c < B; c++)
            dst[i * B + c] = c < real ? src[c * hw + i] : 0.0f;
}

static void from_blocks(float *dst, const float *src, int64_t hw, int64_t real, int64_t B) {
    const int64_t squares = real / V_W * V_W, rows = hw / V_W * V_W;
    for (int64_t i = 0; i < rows; i += V_W)
        for (int64_t c = 0; c < squares; c += V_W)
            v_transpose_tile(dst + c * hw + i, hw, src + i * B + c, B);
    for (int64_t c = 0; c < real; c++)
        for (int64_t i = c < squares ? rows : 0; i < hw; i++)
            dst[c * hw + i] = src[i * B + c];
}

/* One row of C channels from blocks of `from` to blocks of `to`, groups of 8 at a time. */
static void reblock(float *dst, const float *src, int64_t C, int64_t hw, int64_t from, int64_t to) {
    const int64_t groups = (C + to - 1) / to * to / 8, have = (C + from - 1) / from * from / 8;
    for (int64_t g = 0; g < groups; g++)
        for (int64_t i = 0; i < hw; i++) {
            float *d = dst + (g * 8 / to * hw + i) * to + g * 8 % to;
            if (g < have)
                memcpy(d, src + (g * 8 / from * hw + i) * from + g * 8 % from, 8 * sizeof(float));
            else
                memset(d, 0, 8 * sizeof(float));
        }
}

static void run(const void *state, const rt_problem *p, void *out, const void *const *in,
                const rt_kern_ctx *ctx) {
    (void)state;
    (void)ctx;
    const rt_shape *sh = &p->out.shape;
    const int64_t from = rt_layout_block(p->in[0].layout), to = rt_layout_block(p->out.layout);
    const int64_t C = sh->d[1], hw = sh->d[2] * sh->d[3], B = RT_MAX(from, to), blocks = (C + B - 1) / B;
    const int64_t src_row = rt_desc_elems(&p->in[0]) / sh->d[0], dst_row = rt_desc_elems(&p->out) / sh->d[0];
    for (int64_t n = 0; n < sh->d[0]; n++) {
        const float *src = (const float *)in[0] + n * src_row;
        float *dst = (float *)out + n * dst_row;
        if (from > 1 && to > 1) {
            reblock(dst, src, C, hw, from, to);
            continue;
        }
        for (int64_t b = 0; b < blocks; b++) {
            const int64_t real = RT_MIN(B, C - b * B), at = b * B * hw;
            if (to > 1)
                to_blocks(dst + at, src + at, hw, real, B);
            else
                from_blocks(dst + at, src + at, hw, real, B);
        }
    }
}

static bool data(const rt_desc *d) {
    return d->dtype == RT_DTYPE_F32 && d->shape.rank == 4 && d->shape.d[0] > 0 &&
           (d->layout == RT_LAYOUT_PLAIN || d->layout == RT_LAYOUT_C8 || d->layout == RT_LAYOUT_C16);
}
static bool supports(const rt_problem *p) {
    return data(&p->in[0]) && data(&p->out) && p->in[0].layout != p->out.layout;
}

const rt_kern RT_V(rt_k_reorder_f32) = {.impl = RT_V_IMPL, .supports = supports, .run = run};
