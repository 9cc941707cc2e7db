/*
 * vec_chain.c - a chain of element-wise operations in one pass over memory.
 *
 * prepare() compiles the chain into steps (vec_chain_step.c), joining the pairs that matter into one loop,
 * and decides how to walk the value so that every operand of a tile is either contiguous or a repeating
 * pattern of 16 floats:
 *
 *     FLAT    no operand depends on channel or row: the memory of a group is one run
 *     MATRIX  (rows, C): a tile is a few whole rows, channel operands are laid out once for that many
 *             rows; or, if rows are longer than a tile, a piece of one row
 *     SPANS   (rows, C, h, w) in any layout: a tile lies within one row and one channel (PLAIN) or channel
 *             block (C8, C16), where channel operands are patterns
 *
 * A tile passes through all steps while it is in the first-level cache; a chain of one step has no buffer at
 * all. Reads of a tile come before its writes, so out may be any of the same-shape inputs. The last elements
 * of a run, fewer than 16, are computed on padded copies. In blocked layouts the padding of a last block that
 * is not full is set to zero again after its tile.
 */
#include "base/alloc.h"
#include "kern/kern_dropout.h"
#include "kern/vec/vec_chain.h"

enum { SHORT_SPAN = 128, SHORT_ROW = 8192 };

typedef enum src_kind { FROM_SAME, FROM_CHAN, FROM_ROW, FROM_SCALAR, FROM_RANDOM } src_kind;

typedef struct chain_src {
    src_kind kind;
    int in;
    int64_t offset;  /* CHAN: first element of the table's row */
    int64_t gstride; /* CHAN: elements from one group to the next, 0 if all share */
    int64_t slot;    /* floats into scratch */
} chain_src;

typedef struct chain_op {
    chain_step_id id;
    chain_fn *fn;
    chain_par par;
    rt_attr attr; /* DROPOUT: its stream */
    int nsrc;
    chain_src src[CHAIN_STREAMS];
} chain_op;

typedef enum chain_walk { WALK_FLAT, WALK_MATRIX, WALK_SPANS } chain_walk;

typedef struct chain_state {
    int n;
    chain_op op[RT_CHAIN_MAX];
    chain_walk walk;
    int64_t groups, rows; /* rows per group */
    int64_t row;          /* stored elements per row */
    int64_t C, B, blocks, inner;
    int64_t tile_rows; /* MATRIX: rows per tile; 0: rows longer than a tile */
    bool spread;       /* MATRIX of a 4-D value: channel operands laid out over a whole row */
    bool partial;      /* last channel block is padded */
} chain_state;

/* ---- compiling ---- */

/* How an operation becomes a step: the step, the one with operands exchanged (NONE: no such thing), the kind
 * of in[arg[0]], and the number of streams. No streams and STEP_COPY: nothing. */
typedef struct step_rule {
    chain_step_id id, swapped;
    src_kind second;
    int nsrc;
    bool known;
} step_rule;

#define NONE STEP_COUNT
static const step_rule rules[RT_OP_COUNT] = {
    [RT_OP_ADD] = {STEP_ADD, STEP_ADD, FROM_SAME, 1, true},
    [RT_OP_SUB] = {STEP_SUB, STEP_RSUB, FROM_SAME, 1, true},
    [RT_OP_MUL] = {STEP_MUL, STEP_MUL, FROM_SAME, 1, true},
    [RT_OP_DIV] = {STEP_DIV, STEP_RDIV, FROM_SAME, 1, true},
    [RT_OP_RELU_BWD] = {STEP_RELU_BWD, STEP_RRELU_BWD, FROM_SAME, 1, true},
    [RT_OP_CLIP_BWD] = {STEP_CLIP_BWD, STEP_RCLIP_BWD, FROM_SAME, 1, true},
    [RT_OP_BN_GAPPLY] = {STEP_GAPPLY, STEP_GAPPLY, FROM_SAME, 4, true},
    [RT_OP_BN_APPLY] = {STEP_AFFINE, NONE, FROM_CHAN, 2, true},
    [RT_OP_ADD_CHAN] = {STEP_ADD, NONE, FROM_CHAN, 1, true},
    [RT_OP_MUL_CHAN] = {STEP_MUL, NONE, FROM_CHAN, 1, true},
    [RT_OP_ADD_ROW] = {STEP_ADD, NONE, FROM_ROW, 1, true},
    [RT_OP_MUL_ROW] = {STEP_MUL, NONE, FROM_ROW, 1, true},
    [RT_OP_MUL_SCALAR] = {STEP_MUL, NONE, FROM_SCALAR, 1, true},
    [RT_OP_DROPOUT] = {STEP_DROPOUT, NONE, FROM_RANDOM, 1, true},
    [RT_OP_STOP_GRAD] = {STEP_COPY, NONE, FROM_SAME, 0, true},
    [RT_OP_SCALE] = {STEP_SCALE, NONE, FROM_SAME, 0, true},
    [RT_OP_RELU] = {STEP_RELU, NONE, FROM_SAME, 0, true},
    [RT_OP_EXP] = {STEP_EXP, NONE, FROM_SAME, 0, true},
    [RT_OP_LOG] = {STEP_LOG, NONE, FROM_SAME, 0, true},
    [RT_OP_SQRT] = {STEP_SQRT, NONE, FROM_SAME, 0, true},
    [RT_OP_SQUARE] = {STEP_SQUARE, NONE, FROM_SAME, 0, true},
    [RT_OP_RECIP] = {STEP_RECIP, NONE, FROM_SAME, 0, true},
    [RT_OP_XLOGX] = {STEP_XLOGX, NONE, FROM_SAME, 0, true},
    [RT_OP_SIGMOID] = {STEP_SIGMOID, NONE, FROM_SAME, 0, true},
    [RT_OP_TANH] = {STEP_TANH, NONE, FROM_SAME, 0, true},
    [RT_OP_SOFTPLUS] = {STEP_SOFTPLUS, NONE, FROM_SAME, 0, true},
    [RT_OP_CLIP] = {STEP_CLIP, NONE, FROM_SAME, 0, true},
    [RT_OP_LGAMMA] = {STEP_LGAMMA, NONE, FROM_SAME, 0, true},
    [RT_OP_DIGAMMA] = {STEP_DIGAMMA, NONE, FROM_SAME, 0, true},
    [RT_OP_TRIGAMMA] = {STEP_TRIGAMMA, NONE, FROM_SAME, 0, true},
};
#undef NONE

/* A channel operand: `k` rows of C numbers per group, laid out (k, M C) for tables or (C) / (M, C) for
 * vectors. */
static bool chan_src(const rt_problem *p, int in, int64_t C, bool table, chain_src *out) {
    const rt_shape *s = &p->in[in].shape;
    const int64_t M = p->out_groups;
    int64_t width = s->rank > 0 ? s->d[s->rank - 1] : 0; /* numbers per row of the table */
    if (!table && s->rank == 2)
        width *= s->d[0];
    if (p->in[in].layout != RT_LAYOUT_PLAIN || C <= 0 || (width != C && (M < 1 || width != M * C)))
        return false;
    *out = (chain_src){.kind = FROM_CHAN, .in = in, .gstride = width == C ? 0 : C};
    return true;
}

static bool compile_step(const rt_problem *p, const rt_chain_step *st, int64_t C, chain_op *op) {
    if (st->op <= RT_OP_NONE || st->op >= RT_OP_COUNT || !rules[st->op].known)
        return false;
    const step_rule rule = rules[st->op];
    const chain_step_id id = st->swap ? rule.swapped : rule.id;
    if (id == STEP_COUNT)
        return false;
    *op = (chain_op){.id = id,
                     .attr = st->attr,
                     .nsrc = rule.nsrc,
                     .par = {.alpha = (float)st->attr.alpha, .beta = (float)st->attr.beta}};
    if (rule.nsrc == 0)
        return true;
    const int in = st->arg[0];
    if (rule.second != FROM_RANDOM && (in < 0 || in >= p->nin || p->in[in].dtype != RT_DTYPE_F32))
        return false;
    switch (rule.second) {
    case FROM_SAME:
        if (!rt_desc_equal(&p->in[in], &p->out))
            return false;
        op->src[0] = (chain_src){.kind = FROM_SAME, .in = in};
        break;
    case FROM_CHAN:
        if (!chan_src(p, in, C, st->op == RT_OP_BN_APPLY, &op->src[0]))
            return false;
        break;
    case FROM_ROW:
        if (rt_desc_elems(&p->in[in]) != p->out.shape.d[0])
            return false;
        op->src[0] = (chain_src){.kind = FROM_ROW, .in = in};
        break;
    case FROM_SCALAR:
        if (rt_desc_elems(&p->in[in]) != 1)
            return false;
        op->src[0] = (chain_src){.kind = FROM_SCALAR, .in = in};
        break;
    case FROM_RANDOM:
        op->src[0] = (chain_src){.kind = FROM_RANDOM, .in = -1};
        op->par.alpha = (float)(1.0 / (1.0 - st->attr.alpha));
        const uint64_t threshold = rt_dropout_threshold(st->attr.alpha);
        if (threshold > UINT32_MAX)
            return false;
        op->par.threshold = (uint32_t)threshold;
        break;
    }
    if (id == STEP_AFFINE) { /* coef rows: mean, rstd, a, b */
        const int64_t width = p->in[in].shape.d[1];
        op->src[1] = op->src[0];
        op->src[0].offset = 2 * width;
        op->src[1].offset = 3 * width;
    } else if (id == STEP_GAPPLY) { /* with swap the running value is x, not dy */
        const int t = st->arg[1];
        if (t < 0 || t >= p->nin || p->in[t].dtype != RT_DTYPE_F32 || !chan_src(p, t, C, true, &op->src[1]))
            return false;
        const int64_t width = p->in[t].shape.d[1];
        op->src[2] = op->src[3] = op->src[1];
        op->src[st->swap ? 1 : 2].offset = width;
        op->src[3].offset = 2 * width;
    }
    return true;
}

/* The pairs worth one loop. Returns true if `next` went into `op`. */
static bool join(chain_op *op, const chain_op *next) {
    if (next->id == STEP_COPY)
        return true;
    if (next->id == STEP_RELU && (op->id == STEP_AFFINE || op->id == STEP_ADD)) {
        op->id = op->id == STEP_ADD ? STEP_ADD_RELU : STEP_AFFINE_RELU;
        op->par.alpha = next->par.alpha;
        return true;
    }
    if (next->id == STEP_MUL && op->id == STEP_AFFINE_RELU && next->src[0].kind == FROM_CHAN) {
        op->id = STEP_AFFINE_RELU_MUL;
        op->src[op->nsrc++] = next->src[0];
        return true;
    }
    if (next->id == STEP_ADD && op->id == STEP_GAPPLY && next->src[0].kind == FROM_SAME) {
        op->id = STEP_GAPPLY_ADD;
        op->src[op->nsrc++] = next->src[0];
        return true;
    }
    return false;
}

static bool compile(const rt_problem *p, chain_state *s) {
    const rt_shape *sh = &p->out.shape;
    const rt_layout l = p->out.layout;
    if (!p->chain || p->chain->n < 1 || p->chain->n > RT_CHAIN_MAX || p->out.dtype != RT_DTYPE_F32 ||
        p->nin < 1 || !rt_desc_equal(&p->in[0], &p->out))
        return false;
    if (l != RT_LAYOUT_PLAIN && ((l != RT_LAYOUT_C8 && l != RT_LAYOUT_C16) || sh->rank != 4))
        return false;
    const int64_t rows = sh->rank > 0 ? sh->d[0] : 1;
    *s = (chain_state){.groups = p->out_groups > 0 ? p->out_groups : 1, .B = rt_layout_block(l)};
    s->rows = rows / s->groups;
    s->C = sh->rank > 1 ? sh->d[1] : 0;
    s->inner = 1;
    for (int i = 2; i < sh->rank; i++)
        s->inner *= sh->d[i];
    s->row = rows > 0 ? rt_desc_elems(&p->out) / rows : 0;
    s->blocks = (s->C + s->B - 1) / s->B;
    s->partial = s->B > 1 && s->C % s->B != 0;
    for (int i = 0; i < p->chain->n; i++) {
        chain_op op;
        if (!compile_step(p, &p->chain->step[i], s->C, &op))
            return false;
        if (s->n == 0 || !join(&s->op[s->n - 1], &op))
            s->op[s->n++] = op;
    }
    if (s->n > 1 && s->op[0].id == STEP_COPY) { /* a leading copy is nothing once something follows */
        memmove(&s->op[0], &s->op[1], (size_t)(s->n - 1) * sizeof(s->op[0]));
        s->n--;
    }
    return true;
}

/* Which walk, and where in scratch each operand is laid out. Returns floats of scratch. */
static int64_t place(chain_state *s) {
    bool by_channel = s->partial, by_position = false;
    for (int k = 0; k < s->n; k++) {
        s->op[k].fn = RT_V(rt_k_chain_fns)[s->op[k].id];
        for (int j = 0; j < s->op[k].nsrc; j++) {
            const src_kind kind = s->op[k].src[j].kind;
            by_channel = by_channel || kind == FROM_CHAN || kind == FROM_ROW;
            by_position = by_position || kind == FROM_RANDOM;
        }
    }
    const bool matrix = s->inner == 1 && s->B == 1;
    if (matrix)
        s->walk = by_channel ? WALK_MATRIX : WALK_FLAT;
    else
        s->walk = by_channel || by_position ? WALK_SPANS : WALK_FLAT;
    s->spread = s->walk == WALK_SPANS && !by_position && !s->partial && s->inner * s->B < SHORT_SPAN &&
                s->row <= SHORT_ROW && s->rows > 1;
    if (s->spread)
        s->walk = WALK_MATRIX;
    s->tile_rows = s->row > 0 ? CHAIN_TILE / s->row : 0;
    int64_t used = CHAIN_TILE + V_GROUP;
    for (int k = 0; k < s->n; k++)
        for (int j = 0; j < s->op[k].nsrc; j++) {
            chain_src *src = &s->op[k].src[j];
            src->slot = used;
            if (src->kind == FROM_SCALAR)
                used += V_GROUP;
            else if (src->kind == FROM_RANDOM)
                used += CHAIN_TILE + 8 * V_GROUP;
            else if (src->kind == FROM_CHAN && s->spread)
                used += RT_MAX(CHAIN_TILE, s->row) + V_GROUP;
            else if (src->kind == FROM_CHAN && s->B > 1)
                used += s->blocks * V_GROUP;
            else if (src->kind == FROM_CHAN || src->kind == FROM_ROW)
                used += s->walk == WALK_MATRIX ? CHAIN_TILE + V_GROUP : V_GROUP;
        }
    return used;
}

static bool supports(const rt_problem *p) {
    chain_state s;
    return compile(p, &s);
}

static rt_status prepare(const rt_problem *p, void **state, size_t *scratch) {
    chain_state *s;
    RT_TRY(rt_alloc(&s, sizeof(*s)));
    if (!compile(p, s)) {
        rt_free(s);
        RT_FAIL(RT_E_UNSUPPORTED, "chain: not a problem this kernel supports");
    }
    *scratch = (size_t)place(s) * sizeof(float);
    *state = s;
    return RT_OK;
}

/* ---- running ---- */

typedef struct chain_run {
    const chain_state *s;
    const rt_problem *p;
    const rt_kern_ctx *ctx;
    const float *const *in;
    float *out, *scratch;
    chain_stream stream[RT_CHAIN_MAX][CHAIN_STREAMS];
} chain_run;

/* Which part of the value a tile is. */
typedef struct chain_tile {
    int64_t at, n;      /* stored elements */
    int64_t group, row; /* of its first element; row within the whole value */
    int64_t block,
        pos; /* SPANS: channel block (PLAIN: channel) and element within the span. MATRIX: channel in `pos` */
} chain_tile;

RT_INLINE void splat(float *dst, float x) {
    for (int u = 0; u < V_GROUP; u += V_W)
        v_store(dst + u, v_set(x));
}

/* Scalars once per run. */
static void set_scalars(chain_run *r) {
    for (int k = 0; k < r->s->n; k++)
        for (int j = 0; j < r->s->op[k].nsrc; j++) {
            const chain_src *src = &r->s->op[k].src[j];
            float *slot = r->scratch + src->slot;
            r->stream[k][j] = (chain_stream){slot, 0};
            if (src->kind == FROM_SCALAR)
                splat(slot, r->in[src->in][0]);
        }
}

/* A channel vector laid out like one stored row. */
static void spread_row(float *dst, const float *table, const chain_state *s) {
    for (int64_t b = 0; b < s->blocks; b++)
        for (int64_t i = 0; i < s->inner; i++)
            for (int64_t c = 0; c < s->B; c++)
                *dst++ = table[b * s->B + c];
}

/* Channel operands once per group: repeated over the rows of a tile, or as one pattern per channel block. */
static void set_group(chain_run *r, int64_t group) {
    const chain_state *s = r->s;
    for (int k = 0; k < s->n; k++)
        for (int j = 0; j < s->op[k].nsrc; j++) {
            const chain_src *src = &s->op[k].src[j];
            if (src->kind != FROM_CHAN)
                continue;
            const float *table = r->in[src->in] + src->offset + group * src->gstride;
            float *slot = r->scratch + src->slot;
            if (s->walk == WALK_MATRIX) {
                const int64_t copies = RT_MIN(s->tile_rows, s->rows);
                const float *row = table;
                if (s->spread) {
                    spread_row(slot, table, s);
                    row = slot;
                }
                for (int64_t i = s->spread ? 1 : 0; i < copies; i++)
                    memcpy(slot + i * s->row, row, (size_t)s->row * sizeof(float));
            } else if (s->B > 1) {
                for (int64_t b = 0; b < s->blocks; b++)
                    for (int64_t i = 0; i < V_GROUP; i++) {
                        const int64_t c = b * s->B + i % s->B;
                        slot[b * V_GROUP + i] = c < s->C ? table[c] : 0.0f;
                    }
            }
        }
}

/* Random bits for a tile; returns where they begin. */
static const float *draw(const chain_run *r, const chain_op *op, float *slot, const chain_tile *t) {
    const chain_state *s = r->s;
    const rt_rng rng = rt_dropout_rng(&op->attr, r->ctx);
    uint32_t *bits = (uint32_t *)(void *)slot;
    const int64_t R = rt_dropout_row(r->p, r->ctx, t->row);
    if (s->walk != WALK_SPANS) {
        const uint64_t index = (uint64_t)(R * s->row + (t->at - t->row * s->row));
        const int64_t count = (t->n + (int64_t)(index % 4) + 3) / 4;
        RT_V(rt_k_dropout_blocks)(bits, rng, index / 4, count, 0, count);
        return slot + index % 4;
    }
    const int64_t hw0 = t->pos / s->B, c0 = t->block * s->B;
    const uint64_t index = rt_dropout_index(R, s->inner, hw0, s->C, c0);
    if (s->B > 1 && s->C % 4 == 0) {
        RT_V(rt_k_dropout_blocks)(bits, rng, index / 4, s->B / 4, s->C / 4, t->n / 4);
        return slot;
    }
    if (s->B == 1 && s->C % 4 == 0) { /* one channel: a word of every block */
        enum { PIECE = 64 };
        uint32_t words[4 * (PIECE + V_W)];
        for (int64_t i = 0; i < t->n; i += PIECE) {
            const int64_t count = RT_MIN(PIECE, t->n - i);
            const uint64_t first = index + (uint64_t)(i * s->C);
            RT_V(rt_k_dropout_blocks)(words, rng, first / 4, 1, s->C / 4, count);
            for (int64_t j = 0; j < count; j++)
                bits[i + j] = words[4 * j + (int64_t)(index % 4)];
        }
        return slot;
    }
    for (int64_t i = 0; i < t->n; i++) {
        const uint64_t e = index + (uint64_t)(i / s->B * s->C + i % s->B);
        uint32_t block[4];
        rt_rng_block(rng, e / 4, block);
        bits[i] = block[e % 4];
    }
    return slot;
}

/* Points every stream at the operands of tile t. */
static void set_tile(chain_run *r, const chain_tile *t) {
    const chain_state *s = r->s;
    for (int k = 0; k < s->n; k++)
        for (int j = 0; j < s->op[k].nsrc; j++) {
            const chain_src *src = &s->op[k].src[j];
            chain_stream *st = &r->stream[k][j];
            float *slot = r->scratch + src->slot;
            if (src->kind == FROM_SAME) {
                *st = (chain_stream){r->in[src->in] + t->at, V_GROUP};
            } else if (src->kind == FROM_RANDOM) {
                *st = (chain_stream){draw(r, &s->op[k], slot, t), V_GROUP};
            } else if (src->kind == FROM_CHAN) {
                const float *table = r->in[src->in] + src->offset + t->group * src->gstride;
                if (s->walk == WALK_MATRIX)
                    *st = (chain_stream){s->tile_rows > 0 ? slot : (s->spread ? slot : table) + t->pos,
                                         V_GROUP};
                else if (s->B > 1)
                    *st = (chain_stream){slot + t->block * V_GROUP, 0};
                else
                    splat(slot, table[t->block]);
            } else if (src->kind == FROM_ROW) {
                const float *w = r->in[src->in] + t->row;
                if (s->walk == WALK_MATRIX && s->tile_rows > 0) {
                    for (int64_t i = 0; i < t->n / s->row; i++)
                        for (int64_t c = 0; c < s->row; c++)
                            slot[i * s->row + c] = w[i];
                    *st = (chain_stream){slot, V_GROUP};
                } else {
                    splat(slot, w[0]);
                }
            }
        }
}

static void steps(const chain_run *r, const chain_stream (*stream)[CHAIN_STREAMS], float *dst, const float *x,
                  int64_t groups) {
    const chain_state *s = r->s;
    for (int k = 0; k < s->n; k++) {
        float *to = k == s->n - 1 ? dst : r->scratch;
        s->op[k].fn(to, x, stream[k], groups, &s->op[k].par);
        x = to;
    }
}

/* The last n < 16 elements, on copies: nothing is read or written past the end. */
static void run_tail(const chain_run *r, float *dst, const float *x, int64_t done, int64_t n) {
    float pad[RT_CHAIN_MAX][CHAIN_STREAMS][V_GROUP] RT_ALIGNED(64), acc[V_GROUP] = {0};
    chain_stream stream[RT_CHAIN_MAX][CHAIN_STREAMS];
    const size_t bytes = (size_t)n * sizeof(float);
    for (int k = 0; k < r->s->n; k++)
        for (int j = 0; j < r->s->op[k].nsrc; j++) {
            stream[k][j] = r->stream[k][j];
            if (stream[k][j].step == 0)
                continue;
            memset(pad[k][j], 0, sizeof(pad[k][j]));
            memcpy(pad[k][j], stream[k][j].p + done, bytes);
            stream[k][j].p = pad[k][j];
        }
    memcpy(acc, x + done, bytes);
    steps(r, (const chain_stream(*)[CHAIN_STREAMS])stream, acc, acc, 1);
    memcpy(dst + done, acc, bytes);
}

static void run_tile(chain_run *r, const chain_tile *t) {
    set_tile(r, t);
    float *dst = r->out + t->at;
    const float *x = r->in[0] + t->at;
    const int64_t groups = t->n / V_GROUP, done = groups * V_GROUP;
    if (groups > 0)
        steps(r, (const chain_stream(*)[CHAIN_STREAMS])r->stream, dst, x, groups);
    if (done < t->n)
        run_tail(r, dst, x, done, t->n - done);
    if (r->s->partial && t->block == r->s->blocks - 1) {
        const int64_t B = r->s->B, real = r->s->C % B;
        for (int64_t i = 0; i < t->n; i += B)
            for (int64_t c = real; c < B; c++)
                dst[i + c] = 0.0f;
    }
}

static void walk_flat(chain_run *r, int64_t group) {
    const int64_t first = group * r->s->rows * r->s->row, count = r->s->rows * r->s->row;
    for (int64_t i = 0; i < count; i += CHAIN_TILE)
        run_tile(r, &(chain_tile){.at = first + i,
                                  .n = RT_MIN(CHAIN_TILE, count - i),
                                  .group = group,
                                  .row = group * r->s->rows + i / r->s->row});
}

static void walk_matrix(chain_run *r, int64_t group) {
    const chain_state *s = r->s;
    const int64_t row0 = group * s->rows;
    if (s->tile_rows > 0) {
        for (int64_t i = 0; i < s->rows; i += s->tile_rows)
            run_tile(r, &(chain_tile){.at = (row0 + i) * s->row,
                                      .n = RT_MIN(s->tile_rows, s->rows - i) * s->row,
                                      .group = group,
                                      .row = row0 + i});
        return;
    }
    for (int64_t i = 0; i < s->rows; i++)
        for (int64_t c = 0; c < s->row; c += CHAIN_TILE)
            run_tile(r, &(chain_tile){.at = (row0 + i) * s->row + c,
                                      .n = RT_MIN(CHAIN_TILE, s->row - c),
                                      .group = group,
                                      .row = row0 + i,
                                      .pos = c});
}

static void walk_spans(chain_run *r, int64_t group) {
    const chain_state *s = r->s;
    const int64_t span = s->inner * s->B;
    for (int64_t i = 0; i < s->rows; i++) {
        const int64_t row = group * s->rows + i;
        for (int64_t b = 0; b < s->blocks; b++)
            for (int64_t j = 0; j < span; j += CHAIN_TILE)
                run_tile(r, &(chain_tile){.at = row * s->row + b * span + j,
                                          .n = RT_MIN(CHAIN_TILE, span - j),
                                          .group = group,
                                          .row = row,
                                          .block = b,
                                          .pos = j});
    }
}

static void run(const void *state, const rt_problem *p, void *out, const void *const *in,
                const rt_kern_ctx *ctx) {
    chain_run r = {
        .s = state, .p = p, .ctx = ctx, .in = (const float *const *)in, .out = out, .scratch = ctx->scratch};
    set_scalars(&r);
    for (int64_t g = 0; g < r.s->groups; g++) {
        if (g == 0 || r.s->walk != WALK_FLAT)
            set_group(&r, g);
        if (r.s->walk == WALK_FLAT)
            walk_flat(&r, g);
        else if (r.s->walk == WALK_MATRIX)
            walk_matrix(&r, g);
        else
            walk_spans(&r, g);
    }
}

const rt_kern RT_V(rt_k_chain_f32) = {
    .impl = RT_V_IMPL, .supports = supports, .prepare = prepare, .release = rt_free, .run = run};
