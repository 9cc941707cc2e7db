/*
 * vec_wino_weights.c - weights of 3x3 convolutions into the domain of Winograd's products: U = G g G'.
 *
 *     W_WINO    [36][o/16][i][16 o]   of g[o][i]
 *     W_WINO_T  [36][i/16][o][16 i]   of g'[i][o], g turned by 180 degrees: the filter of the adjoint
 *
 * Sixteen filters go through at a time, one per lane; lanes without a filter are zero.
 */
#include "kern/kern.h"
#include "kern/vec/wino.h"

/* u: 36 vectors, `position` floats apart. */
static void transform(float *u, int64_t position, const float taps[9][WINO_BLOCK], int lane) {
    vf half[WINO_IN][WINO_TAPS];
#pragma GCC unroll 3
    for (int j = 0; j < WINO_TAPS; j++) {
        vf g[WINO_TAPS], c[WINO_IN];
        for (int i = 0; i < WINO_TAPS; i++)
            g[i] = v_load(&taps[i * WINO_TAPS + j][lane]);
        wino_taps(c, g);
        for (int i = 0; i < WINO_IN; i++)
            half[i][j] = c[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < WINO_IN; i++) {
        vf r[WINO_IN];
        wino_taps(r, half[i]);
        for (int j = 0; j < WINO_IN; j++)
            v_store(u + (i * WINO_IN + j) * position + lane, r[j]);
    }
}

static void run(const void *state, const rt_problem *p, void *out, const void *const *in,
                const rt_kern_ctx *ctx) {
    (void)state;
    (void)ctx;
    const bool turned = p->out.layout == RT_LAYOUT_W_WINO_T;
    const int64_t O = p->out.shape.d[0], I = p->out.shape.d[1];
    const int64_t wide = turned ? I : O, deep = turned ? O : I; /* over lanes, over rows of a block */
    const int64_t wide_step = turned ? 9 : I * 9, deep_step = turned ? I * 9 : 9;
    const int64_t position = rt_desc_elems(&p->out) / WINO_POS;
    for (int64_t b = 0; b < wide; b += WINO_BLOCK)
        for (int64_t k = 0; k < deep; k++) {
            float taps[9][WINO_BLOCK] = {{0}};
            const float *src = (const float *)in[0] + b * wide_step + k * deep_step;
            const int64_t real = RT_MIN(WINO_BLOCK, wide - b);
            for (int64_t l = 0; l < real; l++)
                for (int64_t t = 0; t < 9; t++)
                    taps[turned ? 8 - t : t][l] = src[l * wide_step + t];
            float *u = (float *)out + b * deep + k * WINO_BLOCK;
            for (int lane = 0; lane < WINO_BLOCK; lane += V_W)
                transform(u, position, (const float(*)[WINO_BLOCK])taps, lane);
        }
}

static bool supports(const rt_problem *p) {
    const rt_desc *w = &p->in[0];
    return w->dtype == RT_DTYPE_F32 && w->layout == RT_LAYOUT_PLAIN && rt_layout_is_wino(p->out.layout) &&
           w->shape.rank == 4 && w->shape.d[2] == WINO_TAPS && w->shape.d[3] == WINO_TAPS;
}

const rt_kern RT_V(rt_k_reorder_wino_f32) = {.impl = RT_V_IMPL, .supports = supports, .run = run};
