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
 * 2.25 products per output and pair of channels instead of 9. Work goes in groups of rows of tiles ("lines"),
 * small enough for V and M to stay in the second-level cache. The 36 matrices of a group lie at one of three
 * constant distances, so that a tile's 36 vectors are at fixed places behind one pointer; 32 floats more than a
 * power of two, or the stores of one tile, or (16 more) of neighbouring ones, would collide in the first level.
 *
 * On its way into a transform, or out of one (vec_wino_lines.h), a line of a vector of channels passes a *strip*:
 * 6 (or 4) rows of pixels with zeros around the image, in the first-level cache. There images of any size
 * become whole tiles, and there the element-wise operations of a fused convolution are applied
 * (vec_wino_steps.h), and the sums of batch normalisation taken: what stands around a convolution costs no
 * pass over memory. A single operation is done between a load and the first half of the transform, and, behind
 * whole tiles that nobody sums up, between the transform and the store; whole tiles of dy go without a strip.
 *
 * Data are C8: a vector is one block of channels, or half of one, or two of them (vec_wino_wide.c, to the same bits);
 * products take 16 channels (v16.h). Error, relative to the largest element: some 1e-6 (direct: 3e-7);
 * tests/op/test_wino.c has bounds by shape.
 */
#ifdef WINO_WIDE
#define V_MOST 16
#define WINO_KERN(name) RT_V(rt_k_##name##_wino_wide_f32)
#else
#define V_MOST 8
#define WINO_KERN(name) RT_V(rt_k_##name##_wino_f32)
#endif
#include "base/alloc.h"
#include "kern/vec/v16.h"
#include "kern/vec/vec_wino_fetch.h"
#include "kern/vec/vec_wino_lines.h"

enum { MIN_TILES = 16, MIN_ROWS = 4, MIN_FROZEN_TILES = 4, MIN_CHANNELS = 8, MAX_GRADIENT = 256 * 256 };
enum { MAX_JOINED = 128 * 128 }; /* pairs of channels: with more, weights take the cache */
enum { AT_HAND = 256 << 10 };    /* bytes that are in the second-level cache as they are: not fetched */

typedef enum pass { FWD, BWD_DATA, BWD_WEIGHTS } pass;

/* What is to be done: the operands, as numbers of inputs, and what is fused with them. */
typedef struct job {
    pass which;
    rt_attr attr;
    int w, dy; /* weights; BWD_WEIGHTS: dy. in[0] is what is transformed by B */
    wino_steps load[2], store;
    rt_op stats; /* of the result: BN_STATS, BN_GSTATS, or none */
    int stats_x, stats_coef;
    int stats_members;
} job;

/* ---- products ---- */

/* `rows` x `blocks` of 16 columns of C (row stride ldc), k steps: a[r arow + l acol], 16 floats b[l bstep] and, of the
 * second block, those bblock further on. add: on top of C. With every step a line of each block is fetched at `next`,
 * which then moves by `fetch` bytes (NULL: none): weights of many channels come from afar, and the processor does
 * not look far enough ahead. */
RT_INLINE void tile(float *c, int64_t ldc, const float *a, int64_t arow, int64_t acol, const float *b,
                    int64_t bstep, int64_t bblock, int64_t k, bool add, const char *next, int64_t fetch,
                    const int rows, const int blocks) {
    v16 sum[V16_LONG_ROWS][V16_BLOCKS];
    if (add) {
#pragma GCC unroll 24
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int n = 0; n < blocks; n++)
                sum[r][n] = v16_load(c + r * ldc + n * WINO_BLOCK);
    } else { /* a twelfth faster than sums that begin with zero, at 16 channels */
#pragma GCC unroll 2
        for (int n = 0; n < blocks; n++) {
            const v16 y = v16_load(b + n * bblock);
#pragma GCC unroll 24
            for (int r = 0; r < rows; r++)
                sum[r][n] = v16_scale(a[r * arow], y);
        }
        a += acol;
        b += bstep;
        k--;
    }
#pragma GCC unroll 4
    for (int64_t l = 0; l < k; l++, a += acol, b += bstep) {
        v16 y[V16_BLOCKS];
#pragma GCC unroll 2
        for (int n = 0; n < blocks; n++)
            y[n] = v16_load(b + n * bblock);
        if (next != NULL) {
#pragma GCC unroll 2
            for (int n = 0; n < blocks; n++)
                __builtin_prefetch(next + n * bblock * (int64_t)sizeof(float), 0, 2);
            next += fetch;
        }
#pragma GCC unroll 24
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
            for (int n = 0; n < blocks; n++)
                sum[r][n] = v16_fma(a[r * arow], y[n], sum[r][n]);
    }
#pragma GCC unroll 24
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (int n = 0; n < blocks; n++)
            v16_store(c + r * ldc + n * WINO_BLOCK, sum[r][n]);
}

/* How many blocks a product takes of those from column o on; whether its rows are long ones; its parts. */
static int blocks_at(const geometry *g, int64_t o) {
    return RT_MIN(V16_BLOCKS, (int)((g->dst_p - o) / WINO_BLOCK));
}
static bool all_of_16(const geometry *g, int64_t rows) {
    return V_W == WINO_BLOCK && rows >= V16_ROWS && g->src_c == WINO_BLOCK && g->src_row == WINO_BLOCK &&
           g->dst_row == WINO_BLOCK;
}
static int64_t parts_of(const geometry *g, int64_t rows, int blocks) {
    return V16_PARTS_OF(rows, blocks > 1 ? V16_WIDE_ROWS : all_of_16(g, rows) ? V16_LONG_ROWS : V16_ROWS);
}

/* m (tiles, 16 blocks) = v (tiles, src) u (src, 16 blocks) at one position. Each part of the tiles fetches its share
 * of f and, unless those are at hand, of the blocks of u behind these. */
RT_INLINE void product_of(float *m, const float *v, const float *u, const geometry *g, int64_t tiles,
                          int blocks, wino_fetch *f, const bool at_hand) {
    const int64_t block = WINO_BLOCK * g->src_c;
    const char *next = (const char *)(u + blocks * block);
#define PART(n, wide)                                                                                        \
    tile(m + t * g->dst_row, g->dst_row, v + t * g->src_row, g->src_row, 1, u, WINO_BLOCK, block, g->src_c,  \
         false, at_hand ? NULL : next + t * g->src_c * WINO_LINE / tiles, n * WINO_LINE / tiles, n, wide);   \
    wino_fetch_some(f)
#define ONE(n) PART(n, 1)
#define WIDE(n) PART(n, V16_BLOCKS)
#define LONG(n)                                                                                              \
    tile(m + t * WINO_BLOCK, WINO_BLOCK, v + t * WINO_BLOCK, WINO_BLOCK, 1, u, WINO_BLOCK, 0, WINO_BLOCK,    \
         false, NULL, 0, n, 1);                                                                              \
    wino_fetch_some(f)
    if (V16_BLOCKS > 1 && blocks > 1)
        V16_SPLIT(tiles, V16_WIDE_ROWS, t, V16_WIDE_CASES, WIDE);
    else if (all_of_16(g, tiles))
        V16_SPLIT(tiles, V16_LONG_ROWS, t, V16_LONG_CASES, LONG);
    else
        V16_PARTS(tiles, t, ONE);
#undef LONG
#undef WIDE
#undef ONE
#undef PART
}

static void product(float *m, const float *v, const float *u, const geometry *g, int64_t tiles, int blocks,
                    wino_fetch *f, bool at_hand) {
    if (at_hand)
        product_of(m, v, u, g, tiles, blocks, f, true);
    else
        product_of(m, v, u, g, tiles, blocks, f, false);
}

/* du (src, 16) = v (tiles, src)' z (tiles, 16) at one position; add: on top of what it is. */
static void product_adjoint(float *du, const float *v, const float *z, const geometry *g, int64_t src,
                            int64_t tiles, bool add, wino_fetch *f) {
    if (all_of_16(g, src)) {
        enum { ROWS = (int)V16_LONG_ROWS < (int)WINO_BLOCK ? (int)V16_LONG_ROWS : (int)WINO_BLOCK };
        tile(du, WINO_BLOCK, v, 1, WINO_BLOCK, z, WINO_BLOCK, 0, tiles, add, NULL, 0, ROWS, 1);
        wino_fetch_some(f);
        return;
    }
#define CALL(n)                                                                                              \
    tile(du + i * WINO_BLOCK, WINO_BLOCK, v + i, 1, g->src_row, z, g->dst_row, 0, tiles, add, NULL, 0, n,    \
         1);                                                                                                 \
    wino_fetch_some(f)
    V16_PARTS(src, i, CALL);
#undef CALL
}

/* ---- what is fetched meanwhile ---- */

/* Lines l of an array of c channels, if they are whole images or all of one image. */
static wino_stream stream_of(const float *x, int64_t c, const geometry *g, lines l) {
    const int64_t blocks = (c + 7) / 8, row = g->w * 8 * (int64_t)sizeof(float);
    const int64_t y0 = l.first % g->down * WINO_OUT;
    const char *at = (const char *)(x + row_at(g, c, l.member, l.first, 0, y0));
    if (l.first % g->down == 0 && l.count % g->down == 0)
        return (wino_stream){at, l.count / g->down * blocks * g->h * row, 0, 1};
    if (l.first % g->down + l.count > g->down)
        return (wino_stream){0};
    return (wino_stream){at, RT_MIN(l.count * WINO_OUT, g->h - y0) * row, g->h * row, blocks};
}

static void fetch_steps(wino_fetch *f, const wino_steps *s, const void *const *in, int64_t c,
                        const geometry *g, lines l) {
    for (int k = 0; k < s->n; k++)
        if (s->step[k].tensor >= 0)
            wino_fetch_add(f, stream_of(in[s->step[k].tensor], c, g, l));
}

static void fetch_source(wino_fetch *f, const source *s, const geometry *g, lines l) {
    if (l.count <= 0)
        return;
    wino_fetch_add(f, stream_of(s->x, s->c, g, l));
    fetch_steps(f, s->steps, s->in, s->c, g, l);
}

static void fetch_sink(wino_fetch *f, const sink *s, const geometry *g, lines l) {
    fetch_steps(f, s->steps, s->in, g->dst_c, g, l);
    if (s->x != NULL)
        wino_fetch_add(f, stream_of(s->x, g->dst_c, g, l));
    wino_fetch_add(f, stream_of(s->y, g->dst_c, g, l));
}

/* The group of the same member behind l; none: of no lines. */
static lines lines_behind(const geometry *g, lines l) {
    const int64_t first = l.first + l.count;
    return (lines){l.member, first, RT_MIN(g->group, g->lines - first)};
}

/* ---- forward and backward data ---- */

/* Adds the sums of a group of lines to those of the slice, in double. */
static void flush_sums(double *side, const sink *to, const geometry *g, int64_t member, int64_t sets) {
    const int64_t padded = (g->dst_c + 7) / 8 * 8, columns = sets * g->dst_c;
    double *s = side + (sets > 1 ? member * g->dst_c : 0), *q = s + columns;
    for (int64_t c = 0; c < g->dst_c; c++) {
        s[c] += (double)to->sums[c];
        q[c] += (double)to->sums[padded + c];
    }
}

/* Forward or backward data under way, in scratch that lies as prepare says. */
typedef struct data_work {
    geometry g;
    source x;
    sink to;
    const float *u;
    double *side;
    int64_t sets; /* of statistics */
    bool far;     /* data do not stay in the second-level cache; */
    bool fetch;   /* neither do these or the weights */
    float *strip, *out_strip, *v, *m;
} data_work;

static data_work data_begin(const job *j, const rt_problem *p, void *out, const void *const *in,
                            const rt_kern_ctx *ctx) {
    const geometry g = geometry_of(p, &p->in[0], &p->out);
    float *strip = ctx->scratch, *out_strip = strip + strip_floats(&g), *sums = out_strip + strip_floats(&g);
    float *v = sums + 2 * g.dst_p;
    const bool far = rt_desc_bytes(&p->in[0]) + rt_desc_bytes(&p->out) > AT_HAND;
    data_work d = {.g = g,
                   .x = {.x = in[0], .c = g.src_c, .steps = &j->load[0], .in = in},
                   .to = {.y = out, .steps = &j->store, .in = in, .sums = sums},
                   .u = in[j->w],
                   .side = ctx->side,
                   .sets = RT_MAX(1, j->stats_members),
                   .far = far,
                   .fetch = far || rt_desc_bytes(&p->in[j->w]) > AT_HAND,
                   .strip = strip,
                   .out_strip = out_strip,
                   .v = v,
                   .m = v + WINO_POS * g.position};
    if (ctx->side != NULL) {
        d.to.stats = j->stats;
        memset(ctx->side, 0, (size_t)(2 * d.sets * g.dst_c) * sizeof(double));
    }
    if (d.to.stats == RT_OP_BN_GSTATS) {
        d.to.x = in[j->stats_x];
        d.to.coef = in[j->stats_coef];
        d.to.coef_group = d.sets > 1 ? g.dst_c : 0;
    }
    clear_strip(strip, &g);
    return d;
}

/* From V of a group of lines to the result and its sums. */
static void data_lines(const data_work *d, lines l, wino_fetch *f) {
    const geometry *g = &d->g;
    const int64_t tiles = l.count * g->across;
    for (int64_t pos = 0; pos < WINO_POS; pos++)
        for (int64_t o = 0; o < g->dst_p; o += blocks_at(g, o) * WINO_BLOCK)
            product(d->m + pos * g->position + o, d->v + pos * g->position,
                    d->u + (pos * g->dst_p + o) * g->src_c, g, tiles, blocks_at(g, o), f, !d->fetch);
    output_lines(&d->to, d->m, d->out_strip, g, l);
    if (d->to.stats != RT_OP_NONE)
        flush_sums(d->side, &d->to, g, l.member, d->sets);
}

static void data_end(const data_work *d) {
    const int64_t columns = d->sets * d->g.dst_c;
    if (d->to.stats == RT_OP_BN_GSTATS) /* sum dy (x - mean), times rstd */
        for (int64_t c = 0; c < columns; c++)
            d->side[columns + c] *= (double)d->to.coef[columns + c];
}

/* Into how many tiles the products of a group of lines are cut. */
static int64_t data_tiles(const data_work *d, lines l) {
    int64_t count = 0;
    for (int64_t o = 0; o < d->g.dst_p; o += blocks_at(&d->g, o) * WINO_BLOCK)
        count += parts_of(&d->g, l.count * d->g.across, blocks_at(&d->g, o));
    return WINO_POS * count;
}

static void data_alone(const job *j, const rt_problem *p, void *out, const void *const *in,
                       const rt_kern_ctx *ctx) {
    const data_work d = data_begin(j, p, out, in, ctx);
    const geometry *g = &d.g;
    for (int64_t member = 0; member < g->members; member++)
        for (int64_t first = 0; first < g->lines; first += g->group) {
            const lines l = {member, first, RT_MIN(g->group, g->lines - first)};
            wino_fetch f = {.streams = 0};
            if (d.far)
                fetch_sink(&f, &d.to, g, l);
            if (d.far && j->which == FWD) /* what backward data load, the weights' gradient has just loaded */
                fetch_source(&f, &d.x, g, lines_behind(g, l));
            wino_fetch_begin(&f, data_tiles(&d, l));
            input_lines(d.v, d.strip, &d.x, g, l);
            data_lines(&d, l, &f);
        }
    data_end(&d);
}

/* ---- gradient of the weights ---- */

/* dU lies in pieces of 16 output by PIECE input channels, [36][i][16 o]. */
enum { PIECE = 64, PIECE_PAD = 16, PIECE_POSITION = PIECE * WINO_BLOCK + PIECE_PAD };

typedef struct pieces {
    bool at_once; /* one group of lines is the whole slice: a piece is final when it is made */
    int64_t count;
    int64_t position; /* floats from one position to the next */
} pieces;

/* each: every member has a gradient of its own. */
static pieces pieces_of(const geometry *g, bool each) {
    return (pieces){.at_once = (each || g->members == 1) && g->group == g->lines,
                    .count = g->dst_p / WINO_BLOCK * ((g->src_c + PIECE - 1) / PIECE),
                    .position = RT_MIN(PIECE, g->src_c) * WINO_BLOCK + PIECE_PAD};
}

static int64_t gradient_floats(const geometry *g, bool each) {
    const pieces s = pieces_of(g, each);
    return (s.at_once ? 1 : s.count) * WINO_POS * s.position;
}

/* The piece of output channels from o and input channels from i on, at one position, of a group of tiles. */
RT_INLINE void piece_product(float *du, const float *v, const float *z, const geometry *g, int64_t o,
                             int64_t i, int64_t tiles, bool add, wino_fetch *f) {
    product_adjoint(du, v + i, z + o, g, RT_MIN(PIECE, g->src_c - i), tiles, add, f);
}

/* That piece transformed back; one body for a distance that is known. */
static void piece_taps(float *dw, const float *du, const geometry *g, int64_t position, int64_t o,
                       int64_t i) {
    const int64_t src = RT_MIN(PIECE, g->src_c - i), dst = RT_MIN(WINO_BLOCK, g->dst_c - o);
    float *to = dw + (o * g->src_c + i) * 9;
    if (position == PIECE_POSITION)
        gradient_taps(to, g->src_c, du, PIECE_POSITION, src, dst);
    else
        gradient_taps(to, g->src_c, du, position, src, dst);
}

static void all_taps(float *dw, const float *du, const geometry *g, const pieces *s) {
    for (int64_t o = 0; o < g->dst_p; o += WINO_BLOCK)
        for (int64_t i = 0; i < g->src_c; i += PIECE, du += WINO_POS * s->position)
            piece_taps(dw, du, g, s->position, o, i);
}

/* Under way; scratch as prepare says. */
typedef struct weights_work {
    geometry g;
    source x, dy;
    bool each; /* member has a gradient of its own */
    pieces s;
    float *strip, *dy_strip, *v, *z, *du, *dw;
} weights_work;

static weights_work weights_begin(const job *j, const rt_problem *p, void *out, const void *const *in,
                                  void *scratch) {
    const geometry g = geometry_of(p, &p->in[0], &p->in[j->dy]);
    const bool each = j->attr.members > 1;
    float *strip = scratch, *dy_strip = strip + strip_floats(&g), *v = dy_strip + strip_floats(&g);
    float *z = v + WINO_POS * g.position;
    return (weights_work){.g = g,
                          .x = {.x = in[0], .c = g.src_c, .steps = &j->load[0], .in = in},
                          .dy = {.x = in[j->dy], .c = g.dst_c, .steps = &j->load[1], .in = in},
                          .each = each,
                          .s = pieces_of(&g, each),
                          .strip = strip,
                          .dy_strip = dy_strip,
                          .v = v,
                          .z = z,
                          .du = z + WINO_POS * g.position,
                          .dw = out};
}

static float *weights_of(const weights_work *w, int64_t member) {
    return w->dw + (w->each ? member * w->g.dst_c * w->g.src_c * 9 : 0);
}

/* From V and Z of a group of lines to dU. It is summed over groups, of all members or of each, before it is
 * transformed back, one position after the other: V and Z of a position stay near while all pieces are made. Where
 * one group is all there is, each piece is transformed as soon as it is made: dU of many channels would leave the
 * caches. */
static void weights_lines(const weights_work *w, lines l, wino_fetch *f) {
    const geometry *g = &w->g;
    const pieces *s = &w->s;
    const bool begun = (l.member > 0 && !w->each) || l.first > 0;
    const int64_t tiles = l.count * g->across;
    for (int64_t o = 0; o < g->dst_p && s->at_once; o += WINO_BLOCK)
        for (int64_t i = 0; i < g->src_c; i += PIECE) {
            for (int64_t pos = 0; pos < WINO_POS; pos++)
                piece_product(w->du + pos * s->position, w->v + pos * g->position, w->z + pos * g->position,
                              g, o, i, tiles, false, f);
            piece_taps(weights_of(w, l.member), w->du, g, s->position, o, i);
        }
    for (int64_t pos = 0; pos < WINO_POS && !s->at_once; pos++) {
        float *to = w->du + pos * s->position;
        for (int64_t o = 0; o < g->dst_p; o += WINO_BLOCK)
            for (int64_t i = 0; i < g->src_c; i += PIECE, to += WINO_POS * s->position)
                piece_product(to, w->v + pos * g->position, w->z + pos * g->position, g, o, i, tiles, begun,
                              f);
    }
}

/* After the last lines of a member. */
static void weights_end(const weights_work *w, int64_t member) {
    if (!w->s.at_once && (w->each || member == w->g.members - 1))
        all_taps(weights_of(w, member), w->du, &w->g, &w->s);
}

static int64_t weights_tiles(const weights_work *w) {
    return WINO_POS * (w->g.dst_p / WINO_BLOCK) * parts_of(&w->g, w->g.src_c, 1);
}

static void weights_run(const void *state, const rt_problem *p, void *out, const void *const *in,
                        const rt_kern_ctx *ctx) {
    const weights_work w = weights_begin(state, p, out, in, ctx->scratch);
    const geometry *g = &w.g;
    if ((g->dst_c + 7) / 8 * 8 < g->dst_p) /* data come in blocks of 8, products take 16 */
        memset(w.z, 0, (size_t)(WINO_POS * g->position) * sizeof(float));
    clear_strip(w.strip, g);
    clear_strip(w.dy_strip, g);
    for (int64_t member = 0; member < g->members; member++) {
        for (int64_t first = 0; first < g->lines; first += g->group) {
            const lines l = {member, first, RT_MIN(g->group, g->lines - first)};
            wino_fetch f = {.streams = 0};
            fetch_source(&f, &w.x, g, lines_behind(g, l));
            fetch_source(&f, &w.dy, g, lines_behind(g, l));
            wino_fetch_begin(&f, weights_tiles(&w));
            input_lines(w.v, w.strip, &w.x, g, l);
            gradient_lines(w.z, w.dy_strip, &w.dy, g, l);
            weights_lines(&w, l, &f);
        }
        weights_end(&w, member);
    }
}

/* ---- both gradients in one sweep ---- */

/* dy is read once: on its way into backward data's V the tiles' rows are kept, with the operations done, and Z is made
 * of those when V and M have served, in their place. Then x is near, too: the store of backward data has
 * just read it for its mask and its sums. Sums run in the same order as in two sweeps. */
static void both_run(const job *j, const rt_problem *p, void *out, const void *const *in,
                     const rt_kern_ctx *ctx) {
    const rt_kern_with *other = ctx->with;
    const data_work d = data_begin(j, p, out, in, ctx);
    weights_work w = weights_begin(other->state, other->p, other->out, other->in, ctx->scratch);
    const geometry *g = &d.g;
    const int64_t matrices = WINO_POS * g->position, kept_floats = kept_at(g, g->src_c, g->group, 0);
    float *kept = d.m + matrices;
    memset(kept, 0, (size_t)kept_floats * sizeof(float)); /* columns outside the image */
    w.v = d.v;
    w.z = d.m;
    w.du = kept + kept_floats;
    for (int64_t member = 0; member < g->members; member++) {
        for (int64_t first = 0; first < g->lines; first += g->group) {
            const lines l = {member, first, RT_MIN(g->group, g->lines - first)};
            wino_fetch now = {.streams = 0}, next = {.streams = 0};
            if (d.far) {
                fetch_sink(&now, &d.to, g, l);
                fetch_source(&now, &w.x, &w.g, l);
            }
            wino_fetch_begin(&now, data_tiles(&d, l));
            fetch_source(&next, &d.x, g, lines_behind(g, l));
            wino_fetch_begin(&next, weights_tiles(&w));
            input_lines_keeping(d.v, d.strip, kept, &d.x, g, l);
            data_lines(&d, l, &now);
            input_lines(w.v, d.strip, &w.x, &w.g, l);
            gradient_kept(w.z, kept, &w.dy, &w.g, l);
            weights_lines(&w, l, &next);
        }
        weights_end(&w, member);
    }
    data_end(&d);
}

static void data_run(const void *state, const rt_problem *p, void *out, const void *const *in,
                     const rt_kern_ctx *ctx) {
    (ctx->with != NULL ? both_run : data_alone)(state, p, out, in, ctx);
}

/* ---- what a problem asks for ---- */

static bool pass_of(rt_op op, pass *which) {
    *which = op == RT_OP_CONV2D ? FWD : op == RT_OP_CONV2D_BWD_DATA ? BWD_DATA : BWD_WEIGHTS;
    return op == RT_OP_CONV2D || op == RT_OP_CONV2D_BWD_DATA || op == RT_OP_CONV2D_BWD_WEIGHTS;
}

static void seal(job *j) {
    wino_seal(&j->load[0]);
    wino_seal(&j->load[1]);
    wino_seal(&j->store);
}

/* The convolution alone, or a chain: steps of the loads, the convolution, steps of the store, statistics. */
static bool job_of(const rt_problem *p, job *j) {
    *j = (job){.attr = p->attr, .w = 1, .dy = 1};
    if (p->op != RT_OP_FUSED_CONV) {
        seal(j);
        return p->nin == 2 && pass_of(p->op, &j->which);
    }
    int at = 0;
    while (at < p->chain->n && !pass_of(p->chain->step[at].op, &j->which))
        at++;
    if (at == p->chain->n)
        return false;
    j->attr = p->chain->step[at].attr;
    j->w = j->dy = p->chain->step[at].arg[0];
    for (int i = 0; i < p->chain->n; i++) {
        const rt_chain_step *s = &p->chain->step[i];
        const int second = s->second ? 1 : 0;
        if (s->op == RT_OP_BN_STATS || s->op == RT_OP_BN_GSTATS) {
            j->stats = s->op;
            j->stats_x = s->arg[0];
            j->stats_coef = s->arg[1];
            j->stats_members = s->attr.members;
        } else if (i < at ? !wino_add_step(&j->load[second], p, s, &p->in[second ? j->dy : 0])
                          : i > at && !wino_add_step(&j->store, p, s, &p->out)) {
            return false;
        }
    }
    seal(j);
    return true;
}

/* Operands of a pass: what is transformed first, the weights or their gradient, the other data. */
typedef struct operands {
    const rt_desc *src, *w, *dst;
} operands;

static operands operands_of(const rt_problem *p, const job *j) {
    return j->which == BWD_WEIGHTS ? (operands){&p->in[0], &p->out, &p->in[j->dy]}
                                   : (operands){&p->in[0], &p->in[j->w], &p->out};
}

static const rt_layout k_weights[] = {RT_LAYOUT_W_WINO, RT_LAYOUT_W_WINO_T, RT_LAYOUT_PLAIN};

/* Whether the tiles are enough for the transforms of the weights, or, if those are frozen, for reading four times
 * as many of them. */
static bool enough(const rt_problem *p, int64_t rows, int64_t tiles) {
    return p->frozen ? rows * tiles >= MIN_FROZEN_TILES : rows >= MIN_ROWS && rows * tiles >= MIN_TILES;
}

static bool odd_blocks(int64_t channels) {
    return (channels + 7) / 8 % 2 != 0;
}

/* Whether the sizes are ours, whatever the layouts. Few tiles do not pay for the weights, tiles that are mostly
 * outside the image and few channels not for the transforms of the data, and a gradient with very many channels,
 * four times as large here, leaves the caches. */
static bool worthwhile(const rt_problem *p, const job *j) {
    if (j->attr.stride != 1 || j->attr.pad != 1)
        return false;
    const operands x = operands_of(p, j);
    const rt_desc *all[3] = {x.src, x.w, x.dst};
    for (int i = 0; i < 3; i++)
        if (all[i]->dtype != RT_DTYPE_F32 || all[i]->shape.rank != 4)
            return false;
    const int64_t *s = x.src->shape.d, *w = x.w->shape.d, *d = x.dst->shape.d;
    if (w[2] != WINO_TAPS || w[3] != WINO_TAPS)
        return false;
    if (WINO_PIXEL > WINO_C8 && (odd_blocks(s[1]) || odd_blocks(d[1])))
        return false;
    const int64_t tiles = ((s[2] + WINO_OUT - 1) / WINO_OUT) * ((s[3] + WINO_OUT - 1) / WINO_OUT);
    if (s[1] < MIN_CHANNELS || d[1] < MIN_CHANNELS || !enough(p, s[0], tiles) ||
        2 * s[2] * s[3] < tiles * WINO_OUT * WINO_OUT)
        return false;
    const geometry g = geometry_of(p, x.src, x.dst);
    if (g.across * RT_MAX(g.src_row, g.dst_row) > FARTHEST - GAP)
        return false;
    return j->which != BWD_WEIGHTS || pieces_of(&g, j->attr.members > 1).at_once ||
           s[1] * d[1] <= MAX_GRADIENT;
}

static void rule(rt_str *out) {
    rt_str_appendf(
        out,
        "3x3 convolutions of stride 1 with %d channels or more; %d images and %d tiles of %dx%d or more "
        "in a slice (%d tiles if weights are frozen), half of them image; weights' gradients of "
        "several groups of tiles up to %d pairs of channels",
        MIN_CHANNELS, MIN_ROWS, MIN_TILES, WINO_OUT, WINO_OUT, MIN_FROZEN_TILES, MAX_GRADIENT);
}

static bool supports(const rt_problem *p) {
    job j;
    if (!job_of(p, &j) || !worthwhile(p, &j))
        return false;
    const operands x = operands_of(p, &j);
    return x.src->layout == RT_LAYOUT_C8 && x.dst->layout == RT_LAYOUT_C8 &&
           x.w->layout == k_weights[j.which];
}

/* Steps are checked with all data as they should be: blocked. */
static void layouts(const rt_problem *p, rt_layout *in, rt_layout *out) {
    rt_desc blocked[RT_OP_MAX_IN];
    rt_problem q = *p;
    job j;
    for (int i = 0; i < p->nin; i++) {
        blocked[i] = p->in[i];
        if (p->in[i].shape.rank == 4 && p->in_groups[i] > 0)
            blocked[i].layout = RT_LAYOUT_C8;
    }
    q.in = blocked;
    if (p->out_groups > 0)
        q.out.layout = RT_LAYOUT_C8;
    if (!job_of(&q, &j) || !worthwhile(&q, &j))
        return;
    for (int i = 0; i < p->nin; i++)
        in[i] = blocked[i].layout;
    *out = q.out.layout;
    if (j.which == BWD_WEIGHTS)
        *out = k_weights[j.which];
    else
        in[j.w] = k_weights[j.which];
}

static rt_status prepare(const rt_problem *p, void **state, size_t *scratch) {
    job *j = NULL;
    RT_TRY(rt_alloc(&j, sizeof *j));
    if (!job_of(p, j)) {
        rt_free(j);
        RT_FAIL(RT_E_UNSUPPORTED, "wino: not a problem this kernel supports");
    }
    const operands x = operands_of(p, j);
    const geometry g = geometry_of(p, x.src, x.dst);
    const int64_t du = j->which == BWD_WEIGHTS ? gradient_floats(&g, j->attr.members > 1) : 0;
    const int64_t floats = 2 * strip_floats(&g) + 2 * g.dst_p + WINO_POS * 2 * g.position + du;
    *state = j;
    *scratch = (size_t)floats * sizeof(float);
    return RT_OK;
}

/* Backward data take the gradient of the weights along if both load the same dy. */
static bool joins(const rt_problem *p, const void *state, const rt_kern_with *other, const int *same,
                  size_t *scratch) {
    const job *d = state, *w = other->state;
    if (d->which != BWD_DATA || w->which != BWD_WEIGHTS || same[w->dy] != 0 ||
        !wino_same_steps(&d->load[0], &w->load[1], same))
        return false;
    const geometry g = geometry_of(p, &p->in[0], &p->out),
                   gw = geometry_of(other->p, &other->p->in[0], &other->p->in[w->dy]);
    if (g.members != gw.members || g.lines != gw.lines || g.group != gw.group || g.position != gw.position ||
        g.dst_c != gw.src_c || gw.dst_c != gw.dst_p || gw.src_c * gw.dst_c > MAX_JOINED)
        return false;
    const int64_t floats = 2 * strip_floats(&g) + 2 * g.dst_p + WINO_POS * 2 * g.position +
                           kept_at(&g, g.src_c, g.group, 0) + gradient_floats(&gw, w->attr.members > 1);
    *scratch = (size_t)floats * sizeof(float);
    return true;
}

static void release(void *state) {
    rt_free(state);
}

static void fused_run(const void *state, const rt_problem *p, void *out, const void *const *in,
                      const rt_kern_ctx *ctx) {
    const job *j = state;
    (j->which == BWD_WEIGHTS ? weights_run : data_run)(state, p, out, in, ctx);
}

#define REGISTER(name, run_fn)                                                                               \
    const rt_kern WINO_KERN(name) = {.impl = "wino",                                                         \
                                     .supports = supports,                                                   \
                                     .rule = rule,                                                           \
                                     .layouts = layouts,                                                     \
                                     .prepare = prepare,                                                     \
                                     .release = release,                                                     \
                                     .sides = true,                                                          \
                                     .joins = joins,                                                         \
                                     .run = run_fn};
REGISTER(conv2d, data_run)
REGISTER(conv2d_bwd_data, data_run)
REGISTER(conv2d_bwd_weights, weights_run)
REGISTER(fused_conv, fused_run)
