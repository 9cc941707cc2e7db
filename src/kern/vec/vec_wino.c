/*
 * vec_wino.c - 3x3 convolutions, stride 1, padding 1, and their adjoints by Winograd's F(4x4, 3x3).
 *
 * An image is cut into tiles of 4x4 outputs, each of which reads 6x6 inputs (transforms: wino.h). What is
 * left between the transforms are 36 matrix products, one per position in the transform domain:
 *
 *     forward        V = B' x B    M[p] (tiles, oc) = V[p] (tiles, ic) U[p] (ic, oc)     y = A' M A
 *     backward data  the same of dy with the weights turned and transposed (layout W_WINO_T)
 *     weights        Z = A dy A'   dU[p] (ic, oc) = sum over tiles V[p]' Z[p]            dw = G' dU G
 *
 * 2.25 products per output and pair of channels instead of 9. Work goes in groups of rows of tiles, small
 * enough for V and M to stay in the second-level cache. The 36 matrices of a group are 16 floats further
 * apart than they need be: at distances of 4 KiB the stores of one tile would collide in the first level.
 *
 * Data are C8, so a vector is one block of channels: this file is for vectors of 8. Error, relative to the
 * largest element: some 1e-6 (direct: 3e-7).
 */
#include "kern/kern.h"
#include "kern/vec/wino.h"

#if V_W == 8

enum { ROWS = 6, GROUP_TILES = 64, GROUP_FLOATS = 128 * 1024, MIN_TILES = 64, MIN_ROWS = 4 };
enum { POSITION_PAD = 16, MAX_GRADIENT = 256 * 256 };

typedef struct geometry {
    int64_t rows, h, w;   /* images */
    int64_t src_c, dst_c; /* channels of what is transformed first (x; dy backwards), of the other */
    int64_t lines;        /* rows of tiles in all images */
    int64_t group;        /* of which so many at a time */
    int64_t tiles;        /* in a group */
} geometry;

/* Small groups where channels are many; at least one row of tiles. */
static geometry geometry_of(const rt_desc *src, const rt_desc *dst) {
    const int64_t *s = src->shape.d;
    geometry g = {.rows = s[0], .h = s[2], .w = s[3], .src_c = s[1], .dst_c = dst->shape.d[1]};
    const int64_t fits = GROUP_FLOATS / (WINO_POS * (g.src_c + g.dst_c));
    const int64_t tiles = RT_MAX(GROUP_TILES / 2, RT_MIN(GROUP_TILES, fits)), across = g.w / WINO_OUT;
    g.lines = g.rows * (g.h / WINO_OUT);
    g.group = RT_MIN(g.lines, RT_MAX(1, tiles / across));
    g.tiles = g.group * across;
    return g;
}

static int64_t position_floats(const geometry *g, int64_t c) {
    return g->tiles * c + POSITION_PAD;
}

/* ---- transforms of a group: lines [first, first + count) of tiles ---- */

static const float k_zeros[WINO_IN * 8]; /* what lies outside the image */

/* One 6x6 window of 8 channels; row[i] points at its second column, the first inside the image. */
RT_INLINE void input_tile(float *v, int64_t position, const float *const row[WINO_IN], bool left,
                          bool right) {
    vf half[WINO_IN][WINO_IN];
#pragma GCC unroll 6
    for (int j = 0; j < WINO_IN; j++) {
        const bool outside = (j == 0 && left) || (j == WINO_IN - 1 && right);
        vf d[WINO_IN], t[WINO_IN];
#pragma GCC unroll 6
        for (int i = 0; i < WINO_IN; i++)
            d[i] = v_load(outside ? k_zeros : row[i] + (j - 1) * 8);
        wino_input(t, d);
#pragma GCC unroll 6
        for (int i = 0; i < WINO_IN; i++)
            half[i][j] = t[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < WINO_IN; i++) {
        vf t[WINO_IN];
        wino_input(t, half[i]);
#pragma GCC unroll 6
        for (int j = 0; j < WINO_IN; j++)
            v_store(v + (i * WINO_IN + j) * position, t[j]);
    }
}

/* V[36][tiles][c] of x, C8. */
static void input_lines(float *v, int64_t position, const float *x, int64_t c, const geometry *g,
                        int64_t first, int64_t count) {
    const int64_t down = g->h / WINO_OUT, across = g->w / WINO_OUT, plane = g->h * g->w * 8;
    for (int64_t l = first; l < first + count; l++) {
        const int64_t ty = l % down;
        const float *image = x + l / down * (c / 8) * plane;
        for (int64_t tx = 0; tx < across; tx++, v += c)
            for (int64_t cb = 0; cb < c / 8; cb++) {
                const float *row[WINO_IN];
                for (int i = 0; i < WINO_IN; i++) {
                    const int64_t y = ty * WINO_OUT + i - 1;
                    const bool outside = y < 0 || y >= g->h;
                    row[i] = outside ? k_zeros + 8 : image + cb * plane + (y * g->w + tx * WINO_OUT) * 8;
                }
                input_tile(v + cb * 8, position, row, tx == 0, tx == across - 1);
            }
    }
}

RT_INLINE void output_tile(float *y, int64_t line, const float *m, int64_t position) {
    vf half[WINO_OUT][WINO_IN];
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
#pragma GCC unroll 4
    for (int i = 0; i < WINO_OUT; i++) {
        vf t[WINO_OUT];
        wino_output(t, half[i]);
#pragma GCC unroll 4
        for (int j = 0; j < WINO_OUT; j++)
            v_store(y + i * line + j * 8, t[j]);
    }
}

RT_INLINE void gradient_tile(float *z, int64_t position, const float *y, int64_t line) {
    vf half[WINO_IN][WINO_OUT];
#pragma GCC unroll 4
    for (int j = 0; j < WINO_OUT; j++) {
        vf a[WINO_OUT], t[WINO_IN];
#pragma GCC unroll 4
        for (int i = 0; i < WINO_OUT; i++)
            a[i] = v_load(y + i * line + j * 8);
        wino_output_adjoint(t, a);
#pragma GCC unroll 6
        for (int i = 0; i < WINO_IN; i++)
            half[i][j] = t[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < WINO_IN; i++) {
        vf t[WINO_IN];
        wino_output_adjoint(t, half[i]);
#pragma GCC unroll 6
        for (int j = 0; j < WINO_IN; j++)
            v_store(z + (i * WINO_IN + j) * position, t[j]);
    }
}

/* Where the 4x4 outputs of a tile begin in C8. */
RT_INLINE int64_t tile_at(const geometry *g, int64_t c, int64_t line, int64_t tx, int64_t cb) {
    const int64_t down = g->h / WINO_OUT;
    return ((line / down * (c / 8) + cb) * g->h * g->w + line % down * WINO_OUT * g->w + tx * WINO_OUT) * 8;
}

static void output_lines(float *y, const float *m, int64_t position, int64_t c, const geometry *g,
                         int64_t first, int64_t count) {
    for (int64_t l = first; l < first + count; l++)
        for (int64_t tx = 0; tx < g->w / WINO_OUT; tx++, m += c)
            for (int64_t cb = 0; cb < c / 8; cb++)
                output_tile(y + tile_at(g, c, l, tx, cb), g->w * 8, m + cb * 8, position);
}

static void gradient_lines(float *z, int64_t position, const float *y, int64_t c, const geometry *g,
                           int64_t first, int64_t count) {
    for (int64_t l = first; l < first + count; l++)
        for (int64_t tx = 0; tx < g->w / WINO_OUT; tx++, z += c)
            for (int64_t cb = 0; cb < c / 8; cb++)
                gradient_tile(z + cb * 8, position, y + tile_at(g, c, l, tx, cb), g->w * 8);
}

/* ---- products ---- */

/* `rows` x 16 of C (row stride ldc), k steps: a[r arow + l acol], 16 floats b[l bstep]. add: on top of C. */
RT_INLINE void tile(float *c, int64_t ldc, const float *a, int64_t arow, int64_t acol, const float *b,
                    int64_t bstep, int64_t k, const bool add, const int rows) {
    vf lo[ROWS], hi[ROWS];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        lo[r] = add ? v_load(c + r * ldc) : v_set(0.0f);
        hi[r] = add ? v_load(c + r * ldc + 8) : v_set(0.0f);
    }
#pragma GCC unroll 4
    for (int64_t l = 0; l < k; l++, a += acol, b += bstep) {
        const vf y0 = v_load(b), y1 = v_load(b + 8);
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            const vf x = v_set(a[r * arow]);
            lo[r] = v_fma(x, y0, lo[r]);
            hi[r] = v_fma(x, y1, hi[r]);
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        v_store(c + r * ldc, lo[r]);
        v_store(c + r * ldc + 8, hi[r]);
    }
}

/* m (tiles, dst) = v (tiles, src) u (src, 16) at one position, in equal parts of at most ROWS tiles. */
static void product(float *m, int64_t dst_c, const float *v, int64_t src_c, const float *u, int64_t tiles) {
    const int64_t parts = (tiles + ROWS - 1) / ROWS;
    for (int64_t i = 0; i < parts; i++) {
        const int64_t t = i * tiles / parts, rows = (i + 1) * tiles / parts - t;
        float *to = m + t * dst_c;
        const float *from = v + t * src_c;
#define PRODUCT_ROWS(n)                                                                                      \
    case n:                                                                                                  \
        tile(to, dst_c, from, src_c, 1, u, WINO_BLOCK, src_c, false, n);                                     \
        break
        switch (rows) {
            PRODUCT_ROWS(1);
            PRODUCT_ROWS(2);
            PRODUCT_ROWS(3);
            PRODUCT_ROWS(4);
            PRODUCT_ROWS(5);
            PRODUCT_ROWS(6);
        }
#undef PRODUCT_ROWS
    }
}

/* du (src, 16) += v (tiles, src)' z (tiles, 16) at one position, 16 channels as 6 + 5 + 5. */
static void product_adjoint(float *du, const float *v, int64_t src_c, const float *z, int64_t dst_c,
                            int64_t tiles) {
    for (int64_t i = 0; i < src_c; i += WINO_BLOCK, du += WINO_BLOCK * WINO_BLOCK, v += WINO_BLOCK) {
        tile(du, WINO_BLOCK, v, 1, src_c, z, dst_c, tiles, true, 6);
        tile(du + 6 * WINO_BLOCK, WINO_BLOCK, v + 6, 1, src_c, z, dst_c, tiles, true, 5);
        tile(du + 11 * WINO_BLOCK, WINO_BLOCK, v + 11, 1, src_c, z, dst_c, tiles, true, 5);
    }
}

/* ---- forward and backward data ---- */

static void data_run(const void *state, const rt_problem *p, void *out, const void *const *in,
                     const rt_kern_ctx *ctx) {
    (void)state;
    const geometry g = geometry_of(&p->in[0], &p->out);
    const int64_t v_position = position_floats(&g, g.src_c), m_position = position_floats(&g, g.dst_c);
    float *v = ctx->scratch, *m = v + WINO_POS * v_position;
    const float *u = in[1];
    for (int64_t first = 0; first < g.lines; first += g.group) {
        const int64_t count = RT_MIN(g.group, g.lines - first), tiles = count * (g.w / WINO_OUT);
        input_lines(v, v_position, in[0], g.src_c, &g, first, count);
        for (int64_t pos = 0; pos < WINO_POS; pos++)
            for (int64_t o = 0; o < g.dst_c; o += WINO_BLOCK)
                product(m + pos * m_position + o, g.dst_c, v + pos * v_position, g.src_c,
                        u + (pos * g.dst_c + o) * g.src_c, tiles);
        output_lines(out, m, m_position, g.dst_c, &g, first, count);
    }
}

/* ---- gradient of the weights ---- */

static int64_t gradient_position(const geometry *g) {
    return g->src_c * g->dst_c + POSITION_PAD;
}

/* dw (o, i, 3, 3) of dU [36][o/16][i][16 o], a vector of o at a time. */
static void gradient_taps(float *dw, const float *du, int64_t position, int64_t I, int64_t O) {
    for (int64_t o = 0; o < O; o += 8)
        for (int64_t i = 0; i < I; i++) {
            const float *u = du + (o / WINO_BLOCK * I + i) * WINO_BLOCK + o % WINO_BLOCK;
            vf half[WINO_TAPS][WINO_IN];
            float taps[9][8];
#pragma GCC unroll 6
            for (int b = 0; b < WINO_IN; b++) {
                vf a[WINO_IN], t[WINO_TAPS];
                for (int k = 0; k < WINO_IN; k++)
                    a[k] = v_load(u + (k * WINO_IN + b) * position);
                wino_taps_adjoint(t, a);
                for (int k = 0; k < WINO_TAPS; k++)
                    half[k][b] = t[k];
            }
#pragma GCC unroll 3
            for (int k = 0; k < WINO_TAPS; k++) {
                vf t[WINO_TAPS];
                wino_taps_adjoint(t, half[k]);
                for (int b = 0; b < WINO_TAPS; b++)
                    v_store(taps[k * WINO_TAPS + b], t[b]);
            }
            for (int64_t l = 0; l < 8; l++)
                for (int64_t k = 0; k < 9; k++)
                    dw[((o + l) * I + i) * 9 + k] = taps[k][l];
        }
}

static void weights_run(const void *state, const rt_problem *p, void *out, const void *const *in,
                        const rt_kern_ctx *ctx) {
    (void)state;
    const geometry g = geometry_of(&p->in[0], &p->in[1]);
    const int64_t v_position = position_floats(&g, g.src_c), z_position = position_floats(&g, g.dst_c);
    const int64_t u_position = gradient_position(&g);
    float *v = ctx->scratch, *z = v + WINO_POS * v_position, *du = z + WINO_POS * z_position;
    memset(du, 0, (size_t)(WINO_POS * u_position) * sizeof(float));
    for (int64_t first = 0; first < g.lines; first += g.group) {
        const int64_t count = RT_MIN(g.group, g.lines - first), tiles = count * (g.w / WINO_OUT);
        input_lines(v, v_position, in[0], g.src_c, &g, first, count);
        gradient_lines(z, z_position, in[1], g.dst_c, &g, first, count);
        for (int64_t pos = 0; pos < WINO_POS; pos++)
            for (int64_t o = 0; o < g.dst_c; o += WINO_BLOCK)
                product_adjoint(du + pos * u_position + o * g.src_c, v + pos * v_position, g.src_c,
                                z + pos * z_position + o, g.dst_c, tiles);
    }
    gradient_taps(out, du, u_position, g.src_c, g.dst_c);
}

/* ---- registration ---- */

typedef enum pass { FWD, BWD_DATA, BWD_WEIGHTS } pass;

/* Operands of a pass: what is transformed first, the weights or their gradient, the other data. */
typedef struct operands {
    const rt_desc *src, *w, *dst;
} operands;

static operands operands_of(const rt_problem *p, pass which) {
    return which == BWD_WEIGHTS ? (operands){&p->in[0], &p->out, &p->in[1]}
                                : (operands){&p->in[0], &p->in[1], &p->out};
}

static const rt_layout k_weights[] = {RT_LAYOUT_W_WINO, RT_LAYOUT_W_WINO_T, RT_LAYOUT_PLAIN};

/* Whether the sizes are ours, whatever the layouts. Few tiles do not pay for the transforms of the weights,
 * and a gradient with very many channels, four times as large here, leaves the caches. */
static bool worthwhile(const rt_problem *p, pass which) {
    if (p->nin != 2 || p->attr.stride != 1 || p->attr.pad != 1)
        return false;
    const operands x = operands_of(p, which);
    const rt_desc *all[3] = {x.src, x.w, x.dst};
    for (int i = 0; i < 3; i++)
        if (all[i]->dtype != RT_DTYPE_F32 || all[i]->shape.rank != 4)
            return false;
    const int64_t *s = x.src->shape.d, *w = x.w->shape.d, *d = x.dst->shape.d;
    return w[2] == WINO_TAPS && w[3] == WINO_TAPS && s[2] % WINO_OUT == 0 && s[3] % WINO_OUT == 0 &&
           s[1] > 0 && s[1] % WINO_BLOCK == 0 && d[1] > 0 && d[1] % WINO_BLOCK == 0 && s[0] >= MIN_ROWS &&
           s[0] * (s[2] / WINO_OUT) * (s[3] / WINO_OUT) >= MIN_TILES &&
           (which != BWD_WEIGHTS || s[1] * d[1] <= MAX_GRADIENT);
}

static bool supports(const rt_problem *p, pass which) {
    if (!worthwhile(p, which))
        return false;
    const operands x = operands_of(p, which);
    return x.src->layout == RT_LAYOUT_C8 && x.dst->layout == RT_LAYOUT_C8 && x.w->layout == k_weights[which];
}

static void layouts(const rt_problem *p, pass which, rt_layout *in, rt_layout *out) {
    if (!worthwhile(p, which))
        return;
    in[0] = RT_LAYOUT_C8;
    in[1] = which == BWD_WEIGHTS ? RT_LAYOUT_C8 : k_weights[which];
    *out = which == BWD_WEIGHTS ? k_weights[which] : RT_LAYOUT_C8;
}

static rt_status prepare(const rt_problem *p, pass which, void **state, size_t *scratch) {
    const operands x = operands_of(p, which);
    const geometry g = geometry_of(x.src, x.dst);
    const int64_t du = which == BWD_WEIGHTS ? gradient_position(&g) : 0;
    *state = NULL;
    *scratch = (size_t)(WINO_POS * (position_floats(&g, g.src_c) + position_floats(&g, g.dst_c) + du)) *
               sizeof(float);
    return RT_OK;
}

#define REGISTER(name, which, run_fn)                                                                        \
    static bool name##_supports(const rt_problem *p) {                                                       \
        return supports(p, which);                                                                           \
    }                                                                                                        \
    static void name##_layouts(const rt_problem *p, rt_layout *in, rt_layout *out) {                         \
        layouts(p, which, in, out);                                                                          \
    }                                                                                                        \
    static rt_status name##_prepare(const rt_problem *p, void **state, size_t *scratch) {                    \
        return prepare(p, which, state, scratch);                                                            \
    }                                                                                                        \
    const rt_kern RT_V(rt_k_##name##_wino_f32) = {.impl = "wino",                                            \
                                                  .supports = name##_supports,                               \
                                                  .layouts = name##_layouts,                                 \
                                                  .prepare = name##_prepare,                                 \
                                                  .run = run_fn};
REGISTER(conv2d, FWD, data_run)
REGISTER(conv2d_bwd_data, BWD_DATA, data_run)
REGISTER(conv2d_bwd_weights, BWD_WEIGHTS, weights_run)

#endif
