/*
 * vec_wino_steps.h - element-wise operations inside the loads and stores of Winograd's convolutions.
 *
 * What stands before or behind a convolution (batch normalisation, ReLU, a residual, their adjoints) is
 * applied to one row of pixels of one vector of channels at a time, while that row passes through the
 * first-level cache on its way into, or out of, the transforms. x is the running value, t an operand of the
 * same shape, a, b, c numbers per channel:
 */
#ifndef RT_KERN_VEC_WINO_STEPS_H
#define RT_KERN_VEC_WINO_STEPS_H

#include "kern/kern.h"
#include "kern/vec/simd.h"
#include "kern/vec/vec_wino_tiles.h"

#define WINO_STEPS(STEP)                                                                                     \
    STEP(WINO_COPY, x)                                                                                       \
    STEP(WINO_AFFINE, v_fma(a, x, b))                            /* batch normalisation */                   \
    STEP(WINO_AFFINE_RELU, v_max(zero, v_fma(a, x, b)))          /* and ReLU; NaN stays NaN */               \
    STEP(WINO_AFFINE_RELU_SCALE, c *v_max(zero, v_fma(a, x, b))) /* and BatchEnsemble's r */                 \
    STEP(WINO_SCALE, c *x)                                                                                   \
    STEP(WINO_SHIFT, x + a)                                                                                  \
    STEP(WINO_RELU, v_max(zero, x))                                                                          \
    STEP(WINO_ADD, x + wino_load(t + i, apart))                                                              \
    STEP(WINO_SCALE_ADD, v_fma(c, x, wino_load(t + i, apart)))                                               \
    STEP(WINO_MASK, v_and(wino_load(t + i, apart) > zero, x))                                                \
    STEP(WINO_AFFINE_MASK, v_and(v_fma(a, wino_load(t + i, apart), b) > zero, x))                            \
    STEP(WINO_SCALE_AFFINE_MASK, v_and(v_fma(a, wino_load(t + i, apart), b) > zero, c * x))                  \
    STEP(WINO_GRADIENT, v_fma(a, x, v_fma(b, wino_load(t + i, apart), c))) /* of batch normalisation */

typedef enum wino_kind {
#define STEP(kind, value) kind,
    WINO_STEPS(STEP)
#undef STEP
} wino_kind;

/* One step of a problem: its operands among the inputs (-1: none), where the rows of its table begin, and how many
 * floats lie between one group's numbers and the next one's. The scale is c; in a WINO_GRADIENT it multiplies all
 * three numbers. */
typedef struct wino_step {
    wino_kind kind;
    int tensor, table, scale;
    int64_t row[3];
    int64_t group, scale_group;
} wino_step;

enum { WINO_STEPS_MAX = 6 };
typedef struct wino_steps {
    int n;
    wino_step step[WINO_STEPS_MAX];
} wino_steps;

/* The same for one block of channels of one group, at run time. */
typedef struct wino_bound {
    wino_kind kind;
    const float *t;
    int64_t apart; /* of the two blocks of a wide vector, in the operand and where data are read or written */
    vf a, b, c;
} wino_bound;

RT_INLINE void wino_bind(wino_bound *to, const wino_steps *s, const void *const *in, int64_t group,
                         int64_t channel, int64_t channels, int64_t apart) {
    for (int k = 0; k < s->n; k++) {
        const wino_step *step = &s->step[k];
        to[k] = (wino_bound){
            .kind = step->kind, .t = step->tensor >= 0 ? in[step->tensor] : NULL, .apart = apart};
        if (step->table >= 0) {
            const float *table = (const float *)in[step->table] + group * step->group + channel;
            to[k].a = v_load_part(table + step->row[0], channels - channel);
            to[k].b = v_load_part(table + step->row[1], channels - channel);
            to[k].c = v_load_part(table + step->row[2], channels - channel);
        }
        if (step->scale >= 0) {
            const vf scale = v_load_part((const float *)in[step->scale] + group * step->scale_group + channel,
                                         channels - channel);
            const bool all = step->kind == WINO_GRADIENT;
            to[k].a = all ? scale * to[k].a : to[k].a;
            to[k].b = all ? scale * to[k].b : to[k].b;
            to[k].c = all ? scale * to[k].c : scale;
        }
    }
}

/* Sums over what is stored: s = sum y and q = sum y^2 (WINO_SQUARES), or q = sum y (x - mean) (WINO_PRODUCTS).
 * Even and odd pixels apart, or each sum would wait for the one before. */
typedef enum wino_sum_kind { WINO_NO_SUMS, WINO_SQUARES, WINO_PRODUCTS } wino_sum_kind;
typedef struct wino_sums {
    vf s[2], q[2], mean;
    const float *x;
} wino_sums;

RT_INLINE void wino_add(const wino_sum_kind kind, wino_sums *to, int odd, vf y, int64_t i, int64_t apart) {
    if (kind == WINO_NO_SUMS)
        return;
    to->s[odd] += y;
    to->q[odd] = v_fma(y, kind == WINO_SQUARES ? y : wino_load(to->x + i, apart) - to->mean, to->q[odd]);
}

/* dst = step of src and its sums, n pixels; t: the operand's first pixel; which of the two are strips. */
RT_INLINE void wino_step_row(const wino_bound *s, float *dst, const bool to_strip, const float *src,
                             const bool from_strip, const float *t, int64_t n, wino_sums *sums,
                             const wino_sum_kind kind) {
    const vf a = s->a, b = s->b, c = s->c, zero = v_set(0.0f);
    const int64_t apart = s->apart;
    const int64_t src_pixel = from_strip ? WINO_PIXEL : WINO_C8, dst_pixel = to_strip ? WINO_PIXEL : WINO_C8;
    wino_sums local = kind == WINO_NO_SUMS ? (wino_sums){.x = NULL} : *sums;
    switch (s->kind) {
#define PIXEL(value, odd)                                                                                    \
    const vf x = from_strip ? v_load(src) : wino_load(src, apart), y = value;                                \
    if (to_strip)                                                                                            \
        v_store(dst, y);                                                                                     \
    else                                                                                                     \
        wino_store(dst, apart, y);                                                                           \
    wino_add(kind, &local, odd, y, i, apart);                                                                \
    src += src_pixel;                                                                                        \
    dst += dst_pixel;                                                                                        \
    i += WINO_C8
#define STEP(name, value)                                                                                    \
    case name: {                                                                                             \
        int64_t i = 0;                                                                                       \
        while (i + WINO_C8 < WINO_C8 * n) {                                                                  \
            { PIXEL(value, 0); }                                                                             \
            { PIXEL(value, 1); }                                                                             \
        }                                                                                                    \
        if (i < WINO_C8 * n) {                                                                               \
            PIXEL(value, 0);                                                                                 \
        }                                                                                                    \
        break;                                                                                               \
    }
        WINO_STEPS(STEP)
#undef STEP
#undef PIXEL
    }
    (void)c;
    (void)zero;
    if (kind != WINO_NO_SUMS)
        *sums = local;
}

RT_INLINE const float *wino_operand(const wino_bound *s, int64_t at) {
    return s->t != NULL ? s->t + at : NULL;
}

/* dst = all steps of src; at: where this row begins in the operands. There is at least one step: wino_seal. */
static inline void wino_load_row(const wino_bound *s, int steps, float *dst, const float *src, int64_t at,
                                 int64_t n) {
    wino_step_row(&s[0], dst, true, src, false, wino_operand(&s[0], at), n, NULL, WINO_NO_SUMS);
    for (int k = 1; k < steps; k++)
        wino_step_row(&s[k], dst, true, dst, true, wino_operand(&s[k], at), n, NULL, WINO_NO_SUMS);
}

/* Six rows, where they begin, of pixels of so many floats; those outside the image are zero. */
typedef struct wino_rows {
    int64_t at[WINO_IN], pixel;
    vi inside[WINO_IN];
    bool edge; /* there are such */
} wino_rows;

/* The first half of the transform B of one step of six rows, n pixels: B' of every column. If `keeping`, the four
 * rows in the middle are stored in keep as well, `distance` floats apart, as the step made them. */
RT_INLINE void wino_load_columns(const wino_bound *s, float *dst, int64_t width, const float *src,
                                 const wino_rows *rows, int64_t n, float *keep, int64_t distance,
                                 const bool keeping) {
    const vf a = s->a, b = s->b, c = s->c, zero = v_set(0.0f);
    const int64_t apart = s->apart, pixel = WINO_PIXEL > WINO_C8 ? rows->pixel : WINO_C8;
    const float *row[WINO_IN], *operand[WINO_IN];
    for (int r = 0; r < WINO_IN; r++) {
        row[r] = src + rows->at[r];
        operand[r] = wino_operand(s, rows->at[r]);
    }
    switch (s->kind) {
#define COLUMN(value, part)                                                                                  \
    for (int64_t i = 0, o = 0; o < WINO_PIXEL * n; i += pixel, o += WINO_PIXEL) {                            \
        vf d[WINO_IN], y[WINO_IN];                                                                           \
        _Pragma("GCC unroll 6") for (int r = 0; r < WINO_IN; r++) {                                          \
            const vf x = wino_load(row[r] + i, apart);                                                       \
            const float *t = operand[r];                                                                     \
            (void)t;                                                                                         \
            d[r] = part(value);                                                                              \
        }                                                                                                    \
        if (keeping)                                                                                         \
            _Pragma("GCC unroll 4") for (int r = 0; r < WINO_OUT; r++)                                       \
                v_store(keep + r * distance + o, d[r + 1]);                                                  \
        wino_input(y, d);                                                                                    \
        _Pragma("GCC unroll 6") for (int r = 0; r < WINO_IN; r++) v_store(dst + r * width + o, y[r]);        \
    }
#define ALL(value) value
#define INSIDE(value) v_and(rows->inside[r], value)
#define STEP(name, value)                                                                                    \
    case name:                                                                                               \
        if (rows->edge)                                                                                      \
            COLUMN(value, INSIDE)                                                                            \
        else                                                                                                 \
            COLUMN(value, ALL)                                                                               \
        break;
        WINO_STEPS(STEP)
#undef STEP
#undef INSIDE
#undef ALL
#undef COLUMN
    }
    (void)c;
    (void)zero;
}

/* The transform A of one step of `tiles` whole tiles in a row, of which the first begins at `at`; row: floats from
 * one row of pixels to the next. */
RT_INLINE void wino_load_gradient(const wino_bound *s, float *z, int64_t padded, const int64_t position,
                                  const float *src, int64_t at, int64_t row, int64_t tiles) {
    const vf a = s->a, b = s->b, c = s->c, zero = v_set(0.0f);
    const int64_t apart = s->apart;
    const float *y = src + at, *t = wino_operand(s, at);
    switch (s->kind) {
#define STEP(name, value)                                                                                    \
    case name:                                                                                               \
        for (int64_t tx = 0; tx < tiles; tx++, z += padded) {                                                \
            vf half[WINO_IN][WINO_OUT];                                                                      \
            _Pragma("GCC unroll 4") for (int j = 0; j < WINO_OUT; j++) {                                     \
                vf d[WINO_OUT];                                                                              \
                _Pragma("GCC unroll 4") for (int r = 0; r < WINO_OUT; r++) {                                 \
                    const int64_t i = r * row + (tx * WINO_OUT + j) * WINO_C8;                               \
                    const vf x = wino_load(y + i, apart);                                                    \
                    d[r] = value;                                                                            \
                }                                                                                            \
                gradient_column(half, j, d);                                                                 \
            }                                                                                                \
            gradient_rows(z, position, half);                                                                \
        }                                                                                                    \
        break;
        WINO_STEPS(STEP)
#undef STEP
    }
    (void)t;
    (void)c;
    (void)zero;
}

/* Rows on their way out, where src may be used up, with sums over dst. */
RT_INLINE void wino_store_row(const wino_bound *s, int steps, float *dst, float *src, int64_t at, int64_t n,
                              wino_sums *sums, const wino_sum_kind kind) {
    for (int k = 0; k < steps - 1; k++)
        wino_step_row(&s[k], src, true, src, true, wino_operand(&s[k], at), n, NULL, WINO_NO_SUMS);
    wino_step_row(&s[steps - 1], dst, false, src, true, wino_operand(&s[steps - 1], at), n, sums, kind);
}

/* Two steps that are one: `next` behind a scale, or a scale behind something. */
static inline bool wino_merge(wino_step *last, const wino_step *next) {
    if (next->kind == WINO_SCALE && last->scale < 0 &&
        (last->kind == WINO_AFFINE_RELU || last->kind == WINO_GRADIENT)) {
        last->kind = last->kind == WINO_GRADIENT ? WINO_GRADIENT : WINO_AFFINE_RELU_SCALE;
        last->scale = next->scale;
        last->scale_group = next->scale_group;
        return true;
    }
    if (last->kind == WINO_SCALE && (next->kind == WINO_ADD || next->kind == WINO_AFFINE_MASK)) {
        const wino_step scale = *last;
        *last = *next;
        last->kind = next->kind == WINO_ADD ? WINO_SCALE_ADD : WINO_SCALE_AFFINE_MASK;
        last->scale = scale.scale;
        last->scale_group = scale.scale_group;
        return true;
    }
    return false;
}

/* The steps of a chain that the kernels know; false for any other. shape: of the value they act on. */
static inline bool wino_add_step(wino_steps *to, const rt_problem *p, const rt_chain_step *s,
                                 const rt_desc *value) {
    static const struct {
        rt_op op;
        wino_kind kind;
        int tensor, table; /* which operand is the one and the other; -1: none */
        int first;         /* row of the table */
    } RULES[] = {
        {RT_OP_BN_APPLY, WINO_AFFINE, -1, 0, 2},
        {RT_OP_MUL_CHAN, WINO_SCALE, -1, 0, 0},
        {RT_OP_ADD_CHAN, WINO_SHIFT, -1, 0, 0},
        {RT_OP_RELU, WINO_RELU, -1, -1, 0},
        {RT_OP_ADD, WINO_ADD, 0, -1, 0},
        {RT_OP_RELU_BWD, WINO_MASK, 0, -1, 0},
        {RT_OP_BN_RELU_BWD, WINO_AFFINE_MASK, 0, 1, 2},
        {RT_OP_BN_GAPPLY, WINO_GRADIENT, 0, 1, 0},
    };
    if (s->op == RT_OP_RELU && s->attr.alpha == 0 && to->n > 0 && to->step[to->n - 1].kind == WINO_AFFINE) {
        to->step[to->n - 1].kind = WINO_AFFINE_RELU;
        return true;
    }
    for (int i = 0; i < RT_COUNT(RULES); i++) {
        if (RULES[i].op != s->op)
            continue;
        if (to->n == WINO_STEPS_MAX || (s->swap && s->op != RT_OP_ADD) || s->attr.alpha != 0)
            return false;
        const int table = RULES[i].table >= 0 ? s->arg[RULES[i].table] : -1;
        const bool scale = RULES[i].kind == WINO_SCALE;
        wino_step r = {.kind = RULES[i].kind,
                       .tensor = RULES[i].tensor >= 0 ? s->arg[RULES[i].tensor] : -1,
                       .table = scale ? -1 : table,
                       .scale = scale ? table : -1};
        if (r.tensor >= 0 && !rt_desc_equal(&p->in[r.tensor], value))
            return false;
        if (table >= 0) {
            /* rows of C, or M C, numbers; one row: (C), or (M, C) */
            const rt_shape *t = &p->in[table].shape;
            const int64_t C = value->shape.d[1], all = rt_shape_elems(t);
            const bool rows = s->op != RT_OP_MUL_CHAN && s->op != RT_OP_ADD_CHAN;
            const int64_t width = rows ? t->d[1] : all;
            if (p->in[table].dtype != RT_DTYPE_F32 || p->in[table].layout != RT_LAYOUT_PLAIN || t->rank < 1 ||
                width % C != 0)
                return false;
            r.group = r.scale_group = width == C ? 0 : C;
            for (int64_t k = 0; k < 3; k++) /* rows that do not exist are not used, but read */
                r.row[k] = RT_MIN((RULES[i].first + k) * width, all - width);
        }
        if (to->n > 0 && wino_merge(&to->step[to->n - 1], &r))
            return true;
        to->step[to->n++] = r;
        return true;
    }
    return false;
}

/* Whether steps of two problems do the same to the same operands; same[i]: the input of the one that is input i of the
 * other, or -1. */
static inline bool wino_same_steps(const wino_steps *one, const wino_steps *other, const int *same) {
    bool yes = one->n == other->n;
    for (int k = 0; k < one->n && yes; k++) {
        wino_step s = other->step[k];
        int *const operand[] = {&s.tensor, &s.table, &s.scale};
        for (int i = 0; i < RT_COUNT(operand); i++) {
            yes = yes && (*operand[i] < 0 || same[*operand[i]] >= 0);
            *operand[i] = *operand[i] < 0 ? -1 : same[*operand[i]];
        }
        yes = yes && memcmp(&s, &one->step[k], sizeof s) == 0;
    }
    return yes;
}
_Static_assert(sizeof(wino_step) == 4 * sizeof(int) + 5 * sizeof(int64_t), "padding has no value to compare");

/* No steps are a copy. */
static inline void wino_seal(wino_steps *s) {
    if (s->n == 0)
        s->step[s->n++] = (wino_step){.kind = WINO_COPY, .tensor = -1, .table = -1, .scale = -1};
}

#endif
