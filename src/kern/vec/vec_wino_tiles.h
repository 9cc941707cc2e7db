/*
 * vec_wino_tiles.h - the two-dimensional transforms of Winograd's convolutions: one tile of one vector
 * of channels at a time, in registers as far as they go.
 *
 *     input_tile      V = B' d B     of 6x6 pixels in a strip whose columns are transformed already
 *     gradient_tile   Z = A y A'     of 4x4 pixels
 *     output_tile     y = A' M A
 *     gradient_taps   dg = G' dU G
 *
 * `row` is the distance of rows of pixels, `position` that of the 36 numbers of a tile.
 */
#ifndef RT_KERN_VEC_WINO_TILES_H
#define RT_KERN_VEC_WINO_TILES_H

#include "kern/vec/wino.h"

RT_INLINE void input_tile(float *v, int64_t position, const float *strip, int64_t row) {
#pragma GCC unroll 6
    for (int i = 0; i < WINO_IN; i++) {
        vf d[WINO_IN], t[WINO_IN];
#pragma GCC unroll 6
        for (int j = 0; j < WINO_IN; j++)
            d[j] = v_load(strip + i * row + j * WINO_PIXEL);
        wino_input(t, d);
#pragma GCC unroll 6
        for (int j = 0; j < WINO_IN; j++)
            v_store(v + (i * WINO_IN + j) * position, t[j]);
    }
}

/* A y A': column j of its first half, and the second. */
RT_INLINE void gradient_column(vf half[WINO_IN][WINO_OUT], int j, const vf y[WINO_OUT]) {
    vf t[WINO_IN];
    wino_output_adjoint(t, y);
#pragma GCC unroll 6
    for (int i = 0; i < WINO_IN; i++)
        half[i][j] = t[i];
}
RT_INLINE void gradient_rows(float *z, int64_t position, vf half[WINO_IN][WINO_OUT]) {
#pragma GCC unroll 6
    for (int i = 0; i < WINO_IN; i++) {
        vf t[WINO_IN];
        wino_output_adjoint(t, half[i]);
#pragma GCC unroll 6
        for (int j = 0; j < WINO_IN; j++)
            v_store(z + (i * WINO_IN + j) * position, t[j]);
    }
}

RT_INLINE void gradient_tile(float *z, int64_t position, const float *strip, int64_t row) {
    vf half[WINO_IN][WINO_OUT];
#pragma GCC unroll 4
    for (int j = 0; j < WINO_OUT; j++) {
        vf a[WINO_OUT];
#pragma GCC unroll 4
        for (int i = 0; i < WINO_OUT; i++)
            a[i] = v_load(strip + i * row + j * WINO_PIXEL);
        gradient_column(half, j, a);
    }
    gradient_rows(z, position, half);
}

/* The first half of A' M A: columns. */
RT_INLINE void output_columns(vf half[WINO_OUT][WINO_IN], const float *m, int64_t position) {
#pragma GCC unroll 6
    for (int j = 0; j < WINO_IN; j++) {
        vf a[WINO_IN], t[WINO_OUT];
#pragma GCC unroll 6
        for (int i = 0; i < WINO_IN; i++)
            a[i] = v_load(m + (i * WINO_IN + j) * position);
        wino_output(t, a);
#pragma GCC unroll 4
        for (int i = 0; i < WINO_OUT; i++)
            half[i][j] = t[i];
    }
}

RT_INLINE void output_tile(float *strip, int64_t row, const float *m, int64_t position) {
    vf half[WINO_OUT][WINO_IN];
    output_columns(half, m, position);
#pragma GCC unroll 4
    for (int i = 0; i < WINO_OUT; i++) {
        vf t[WINO_OUT];
        wino_output(t, half[i]);
#pragma GCC unroll 4
        for (int j = 0; j < WINO_OUT; j++)
            v_store(strip + i * row + j * WINO_PIXEL, t[j]);
    }
}

/* taps[k] of a vector of filters to their places, `filter` floats apart; of the first n. */
RT_INLINE void store_taps(float *dw, int64_t filter, vf *taps, int64_t n) {
    float last[V_W];
    v_store(last, taps[8]);
#pragma GCC unroll 2
    for (int k = 0; k < 8; k += V_W)
        v_transpose(&taps[k]); /* now V_W taps of one channel each */
#pragma GCC unroll 16
    for (int l = 0; l < V_W; l++)
        if (l < n) {
            float *to = dw + l * filter;
            if (V_W > 9) {
                v_store_n(to, taps[l], 9);
                continue;
            }
#pragma GCC unroll 2
            for (int k = 0; k < 8; k += V_W)
                v_store(to + k, taps[k + l]);
            to[8] = last[l];
        }
}

/* dw (o, I, 3, 3) of dU [36][i][16 o] for `count` channels o and src channels i, a vector of o at a time. */
RT_INLINE void gradient_taps(float *dw, int64_t I, const float *du, const int64_t position, int64_t src,
                             int64_t count) {
    for (int64_t o = 0; o < count; o += V_W)
        for (int64_t i = 0; i < src; i++) {
            const float *u = du + i * WINO_BLOCK + o;
            vf half[WINO_TAPS][WINO_IN], taps[V_W > 9 ? V_W : 9] = {{0}};
#pragma GCC unroll 6
            for (int b = 0; b < WINO_IN; b++) {
                vf a[WINO_IN], t[WINO_TAPS];
#pragma GCC unroll 6
                for (int k = 0; k < WINO_IN; k++)
                    a[k] = v_load(u + (k * WINO_IN + b) * position);
                wino_taps_adjoint(t, a);
#pragma GCC unroll 3
                for (int k = 0; k < WINO_TAPS; k++)
                    half[k][b] = t[k];
            }
#pragma GCC unroll 3
            for (int k = 0; k < WINO_TAPS; k++)
                wino_taps_adjoint(&taps[k * WINO_TAPS], half[k]);
            store_taps(dw + o * I * 9 + i * 9, I * 9, taps, count - o);
        }
}

#endif
