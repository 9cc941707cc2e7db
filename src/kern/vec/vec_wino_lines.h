/*
 * vec_wino_lines.h - groups of lines of tiles on their way from memory into Winograd's domain and back.
 *
 * A line is a row of tiles of one image. A group of them, small enough for the second-level cache, is transformed
 * position by position, [36][tiles][channels]; what is read (a source) or written (a sink) passes through a strip
 * with the operations fused into it. vec_wino.c says why.
 */
#ifndef RT_KERN_VEC_WINO_LINES_H
#define RT_KERN_VEC_WINO_LINES_H

#include "kern/vec/vec_wino_steps.h"

enum { MAX_TILES = 64, MIN_GROUP = 32 };
enum { GAP = 32, NEAR = 1024 + GAP, FAR = 2048 + GAP, FARTHEST = 17408 + GAP, ROW_PAD = 16 };

typedef struct geometry {
    int64_t members, h, w;
    int64_t down, across;     /* tiles of an image */
    int64_t src_c, dst_c;     /* channels of what is transformed first (x; dy backwards), of the other */
    int64_t src_p, dst_p;     /* and whole blocks of them */
    int64_t src_row, dst_row; /* floats from one tile to the next in V, in M or Z */
    int64_t lines;            /* rows of tiles in all images of a member */
    int64_t group;            /* of which so many at a time */
    int64_t tiles;            /* in a group */
    int64_t position;         /* floats from one position to the next: NEAR, FAR or FARTHEST */
} geometry;

/* Floats of a tile at one position. The products of the weights' gradient walk over tiles: a distance of
 * many whole lines would put all of them into a few sets of the first-level cache. */
static int64_t tile_row(int64_t padded) {
    return padded % 128 == 0 ? padded + ROW_PAD : padded;
}

/* Groups of MAX_TILES tiles, fewer where channels are many; at least one row of tiles. */
static geometry geometry_of(const rt_problem *p, const rt_desc *src, const rt_desc *dst) {
    const int64_t *s = src->shape.d;
    geometry g = {.members = RT_MAX(1, p->in_groups[0]), .h = s[2], .w = s[3], .src_c = s[1]};
    g.dst_c = dst->shape.d[1];
    g.src_p = (g.src_c + 7) / 8 * 8;
    g.dst_p = (g.dst_c + WINO_BLOCK - 1) / WINO_BLOCK * WINO_BLOCK;
    g.down = (g.h + WINO_OUT - 1) / WINO_OUT;
    g.across = (g.w + WINO_OUT - 1) / WINO_OUT;
    g.src_row = tile_row(g.src_p);
    g.dst_row = tile_row(g.dst_p);
    const int64_t widest = RT_MAX(g.src_row, g.dst_row), least = RT_MAX(MIN_GROUP, g.across);
    g.position = widest * least < NEAR ? NEAR : widest * least < FAR ? FAR : FARTHEST;
    const int64_t tiles = RT_MIN(MAX_TILES, (g.position - GAP) / widest);
    g.lines = s[0] / g.members * g.down;
    g.group = RT_MIN(g.lines, RT_MAX(1, tiles / g.across));
    g.tiles = g.group * g.across;
    return g;
}

/* A strip: `rows` rows of all tiles of a line and a column on either side. */
static int64_t strip_row(const geometry *g) {
    return (g->across * WINO_OUT + 2) * WINO_PIXEL;
}
static int64_t strip_floats(const geometry *g) {
    return WINO_IN * strip_row(g);
}

/* What is kept of a group of lines, c channels: the rows of its tiles, [line][vector of channels][4][pixels]. */
static int64_t kept_row(const geometry *g) {
    return g->across * WINO_OUT * WINO_PIXEL;
}
static int64_t kept_at(const geometry *g, int64_t c, int64_t line, int64_t ch) {
    return (line * ((c + WINO_PIXEL - 1) / WINO_PIXEL) + ch / WINO_PIXEL) * WINO_OUT * kept_row(g) +
           ch % WINO_PIXEL;
}

/* Of a pixel in one block of channels and the same in the next. */
static int64_t blocks_apart(const geometry *g) {
    return g->h * g->w * WINO_C8;
}

/* ---- strips ---- */

/* Lines of one member, counted from its first. */
typedef struct lines {
    int64_t member, first, count;
} lines;

/* Something that is read: data of c channels, and the steps on its way. */
typedef struct source {
    const float *x;
    int64_t c;
    const wino_steps *steps;
    const void *const *in; /* operands of the steps */
} source;

/* Where row y of a channel of the image of a line begins, c channels. */
RT_INLINE int64_t row_at(const geometry *g, int64_t c, int64_t member, int64_t line, int64_t ch, int64_t y) {
    const int64_t image = (member * g->lines + line) / g->down;
    return ((image * ((c + 7) / 8) + ch / 8) * g->h + y) * g->w * 8 + ch % 8;
}

/* Rows [4 ty - halo, 4 ty + 4 + halo) of a vector of channels. Rows outside the image become zero; columns
 * outside it are, once clear_strip has seen to them. */
static void fill_strip(float *strip, const source *s, const geometry *g, int64_t member, int64_t line,
                       int64_t ch, const wino_bound *bound, int64_t halo) {
    const int64_t width = strip_row(g), y0 = line % g->down * WINO_OUT - halo;
    for (int64_t r = 0; r < WINO_OUT + 2 * halo; r++, strip += width) {
        if (y0 + r < 0 || y0 + r >= g->h) {
            memset(strip, 0, (size_t)width * sizeof(float));
            continue;
        }
        const int64_t at = row_at(g, s->c, member, line, ch, y0 + r);
        wino_load_row(bound, s->steps->n, strip + halo * WINO_PIXEL, s->x + at, at, g->w);
    }
}

/* The same, rows [4 ty - 1, 4 ty + 5), and the first half of the transform B: that of columns, of which
 * neighbouring tiles share two. The rows of the tiles themselves are kept, if somebody wants them. */
RT_INLINE void columns_of(float *strip, const source *s, const geometry *g, int64_t member, int64_t line,
                          int64_t ch, const wino_bound *bound, float *keep, const bool keeping) {
    const int64_t width = strip_row(g), y0 = line % g->down * WINO_OUT - 1;
    wino_rows rows = {.pixel = WINO_C8};
    for (int r = 0; r < WINO_IN; r++) {
        const bool inside = y0 + r >= 0 && y0 + r < g->h;
        rows.inside[r] = vi_set(inside ? -1 : 0);
        rows.at[r] = row_at(g, s->c, member, line, ch, inside ? y0 + r : 0);
    }
    rows.edge = y0 < 0 || y0 + WINO_IN > g->h;
    const wino_bound copy = {.kind = WINO_COPY, .apart = WINO_C8};
    const float *x = s->x;
    if (s->steps->n > 1) {
        for (int r = 0; r < WINO_IN; r++)
            wino_load_row(bound, s->steps->n, strip + r * width + WINO_PIXEL, s->x + rows.at[r], rows.at[r],
                          g->w);
        for (int r = 0; r < WINO_IN; r++)
            rows.at[r] = r * width;
        rows.pixel = WINO_PIXEL;
        x = strip + WINO_PIXEL;
        bound = &copy;
    }
    wino_load_columns(bound, strip + WINO_PIXEL, width, x, &rows, g->w, keep, kept_row(g), keeping);
}

static void fill_columns(float *strip, const source *s, const geometry *g, int64_t member, int64_t line,
                         int64_t ch, const wino_bound *bound) {
    columns_of(strip, s, g, member, line, ch, bound, NULL, false);
}
static void fill_columns_keeping(float *strip, const source *s, const geometry *g, int64_t member,
                                 int64_t line, int64_t ch, const wino_bound *bound, float *keep) {
    columns_of(strip, s, g, member, line, ch, bound, keep, true);
}

static void clear_strip(float *strip, const geometry *g) {
    memset(strip, 0, (size_t)strip_floats(g) * sizeof(float));
}

/* ---- transforms of a group ---- */

static bool whole_tiles(const geometry *g) {
    return g->h % WINO_OUT == 0 && g->w % WINO_OUT == 0;
}

/* V[36][tiles][c padded] of what is read, kept or not, or Z, of what is read or was kept. */
typedef enum way { TO_V, TO_V_KEEPING, TO_Z, KEPT_TO_Z } way;

RT_INLINE void transform(float *v, int64_t padded, float *strip, float *kept, const source *s,
                         const geometry *g, lines l, const int64_t position, const way which) {
    const int64_t row = which == KEPT_TO_Z ? kept_row(g) : strip_row(g);
    const bool direct = which == TO_Z && s->steps->n == 1 && whole_tiles(g);
    wino_bound bound[WINO_STEPS_MAX];
    for (int64_t k = 0; k < l.count; k++, v += g->across * padded)
        for (int64_t ch = 0; ch < (s->c + 7) / 8 * 8; ch += V_W) {
            float *keep = which == TO_V || which == TO_Z ? NULL : kept + kept_at(g, s->c, k, ch);
            const float *from = which == KEPT_TO_Z ? keep : strip;
            if (which != KEPT_TO_Z)
                wino_bind(bound, s->steps, s->in, l.member, ch, s->c, blocks_apart(g));
            if (direct) {
                const int64_t y0 = (l.first + k) % g->down * WINO_OUT;
                wino_load_gradient(bound, v + ch, padded, position, s->x,
                                   row_at(g, s->c, l.member, l.first + k, ch, y0), g->w * 8, g->across);
                continue;
            }
            if (which == TO_V)
                fill_columns(strip, s, g, l.member, l.first + k, ch, bound);
            else if (which == TO_V_KEEPING)
                fill_columns_keeping(strip, s, g, l.member, l.first + k, ch, bound, keep);
            else if (which == TO_Z)
                fill_strip(strip, s, g, l.member, l.first + k, ch, bound, 0);
            for (int64_t tx = 0; tx < g->across; tx++)
                if (which == TO_Z || which == KEPT_TO_Z)
                    gradient_tile(v + tx * padded + ch, position, from + tx * WINO_OUT * WINO_PIXEL, row);
                else
                    input_tile(v + tx * padded + ch, position, from + tx * WINO_OUT * WINO_PIXEL, row);
        }
}

/* One body for each distance of positions. */
#define AT_POSITION(g, call)                                                                                 \
    do {                                                                                                     \
        if ((g)->position == NEAR)                                                                           \
            call(NEAR);                                                                                      \
        else if ((g)->position == FAR)                                                                       \
            call(FAR);                                                                                       \
        else                                                                                                 \
            call(FARTHEST);                                                                                  \
    } while (0)

static void input_lines(float *v, float *strip, const source *s, const geometry *g, lines l) {
#define CALL(position) transform(v, g->src_row, strip, NULL, s, g, l, position, TO_V)
    AT_POSITION(g, CALL);
#undef CALL
}
static void input_lines_keeping(float *v, float *strip, float *kept, const source *s, const geometry *g,
                                lines l) {
#define CALL(position) transform(v, g->src_row, strip, kept, s, g, l, position, TO_V_KEEPING)
    AT_POSITION(g, CALL);
#undef CALL
}
static void gradient_lines(float *z, float *strip, const source *s, const geometry *g, lines l) {
#define CALL(position) transform(z, g->dst_row, strip, NULL, s, g, l, position, TO_Z)
    AT_POSITION(g, CALL);
#undef CALL
}
static void gradient_kept(float *z, float *kept, const source *s, const geometry *g, lines l) {
#define CALL(position) transform(z, g->dst_row, NULL, kept, s, g, l, position, KEPT_TO_Z)
    AT_POSITION(g, CALL);
#undef CALL
}

/* Something that is written: the steps on its way, and sums over it. */
typedef struct sink {
    float *y;
    const wino_steps *steps;
    const void *const *in;
    rt_op stats;
    const float *x, *coef; /* BN_GSTATS */
    int64_t coef_group;
    float *sums; /* 2 x channels of a group of lines */
} sink;

/* A line of a vector of channels from its strip to memory. */
RT_INLINE void store_strip(const sink *to, float *strip, const geometry *g, int64_t member, int64_t line,
                           int64_t ch, const wino_bound *bound, const wino_sum_kind kind) {
    const int64_t y0 = line % g->down * WINO_OUT, rows = RT_MIN(WINO_OUT, g->h - y0);
    const int64_t at = row_at(g, g->dst_c, member, line, ch, y0);
    wino_sums sums = {.x = NULL};
    if (kind == WINO_PRODUCTS)
        sums.mean = v_load_part(to->coef + member * to->coef_group + ch, g->dst_c - ch);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t row = at + r * g->w * 8;
        if (kind == WINO_PRODUCTS)
            sums.x = to->x + row;
        wino_store_row(bound, to->steps->n, to->y + row, strip + r * strip_row(g), row, g->w, &sums, kind);
    }
    if (kind != WINO_NO_SUMS) {
        float *s = to->sums + ch, *q = s + (g->dst_c + 7) / 8 * 8;
        v_store(s, v_load(s) + (sums.s[0] + sums.s[1]));
        v_store(q, v_load(q) + (sums.q[0] + sums.q[1]));
    }
}

/* The same for whole tiles, one step and no sums, from M: there is no need of a strip. */
RT_INLINE void store_tiles(const sink *to, const float *m, const geometry *g, int64_t at, const wino_bound *s,
                           const int64_t position) {
    const int64_t row = g->w * 8;
    const vf a = s->a, b = s->b, c = s->c, zero = v_set(0.0f);
    const float *t = wino_operand(s, at);
    float *y = to->y + at;
    const int64_t apart = s->apart;
    switch (s->kind) {
#define STEP(name, value)                                                                                    \
    case name:                                                                                               \
        for (int64_t tx = 0; tx < g->across; tx++, m += g->dst_row) {                                        \
            vf half[WINO_OUT][WINO_IN], o[WINO_OUT];                                                         \
            output_columns(half, m, position);                                                               \
            _Pragma("GCC unroll 4") for (int r = 0; r < WINO_OUT; r++) {                                     \
                wino_output(o, half[r]);                                                                     \
                _Pragma("GCC unroll 4") for (int j = 0; j < WINO_OUT; j++) {                                 \
                    const int64_t i = r * row + (tx * WINO_OUT + j) * WINO_C8;                               \
                    const vf x = o[j];                                                                       \
                    wino_store(y + i, apart, value);                                                         \
                }                                                                                            \
            }                                                                                                \
        }                                                                                                    \
        break;
        WINO_STEPS(STEP)
#undef STEP
    }
    (void)t;
    (void)c;
    (void)zero;
}

RT_INLINE void store_lines(const sink *to, const float *m, float *strip, const geometry *g, lines l,
                           const int64_t position) {
    const int64_t row = strip_row(g), blocks = (g->dst_c + 7) / 8;
    const bool direct = to->stats == RT_OP_NONE && to->steps->n == 1 && whole_tiles(g);
    wino_bound bound[WINO_STEPS_MAX];
    memset(to->sums, 0, (size_t)(2 * blocks * 8) * sizeof(float));
    for (int64_t k = 0; k < l.count; k++, m += g->across * g->dst_row)
        for (int64_t ch = 0; ch < blocks * 8; ch += V_W) {
            wino_bind(bound, to->steps, to->in, l.member, ch, g->dst_c, blocks_apart(g));
            if (direct) {
                const int64_t y0 = (l.first + k) % g->down * WINO_OUT;
                store_tiles(to, m + ch, g, row_at(g, g->dst_c, l.member, l.first + k, ch, y0), bound,
                            position);
                continue;
            }
            for (int64_t tx = 0; tx < g->across; tx++)
                output_tile(strip + tx * WINO_OUT * WINO_PIXEL, row, m + tx * g->dst_row + ch, position);
            if (to->stats == RT_OP_BN_STATS)
                store_strip(to, strip, g, l.member, l.first + k, ch, bound, WINO_SQUARES);
            else if (to->stats == RT_OP_BN_GSTATS)
                store_strip(to, strip, g, l.member, l.first + k, ch, bound, WINO_PRODUCTS);
            else
                store_strip(to, strip, g, l.member, l.first + k, ch, bound, WINO_NO_SUMS);
        }
}

static void output_lines(const sink *to, const float *m, float *strip, const geometry *g, lines l) {
#define CALL(position) store_lines(to, m, strip, g, l, position)
    AT_POSITION(g, CALL);
#undef CALL
}

#endif
