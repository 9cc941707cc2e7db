/*
 * pass_memory.c - where each value lives.
 *
 * Every value, every part of a sum and every kernel's scratch is a block with a first and a last moment.
 * Blocks whose times do not meet share memory: the largest first, each at the lowest offset where nothing
 * alive is in the way. An element-wise step may write over an operand that dies there. Slice blocks get
 * offsets in the slice workspace (the same in every slice), global ones in the global workspace. What the
 * prologue makes from parameters alone lies apart, each value for itself: it is kept, so that inference need not
 * make it again, and several execs can share it.
 *
 *     moments: prologue 0 | lap 0: one per action | section 0: one | lap 1 ...
 */
#include "base/alloc.h"
#include "base/size.h"
#include "plan/plan_int.h"
#include <stdlib.h>
#include <string.h>

typedef struct block {
    size_t bytes, offset;
    int64_t first, last;
    rt_place place; /* SLICE, GLOBAL or KEPT */
    bool used;
} block;

typedef struct mem {
    rt_plan *p;
    rt_vinfo *vi;
    block *
        b; /* 0 .. nval-1: values (and parts of sums); then scratch per step; then completed sums per value */
    int64_t nval, nblk;
    int32_t *owner; /* value -> block it lives in (itself, or the operand it writes over) */
} mem;

static rt_val root(const rt_vinfo *vi, rt_val v) {
    return vi[v].view_of != 0 ? vi[v].view_of : v;
}

static int64_t scratch_block(const mem *m, int64_t step) {
    return m->nval + step;
}
static int64_t sum_block(const mem *m, rt_val v) {
    return m->nval + m->p->nstep + v;
}

static void touch(block *b, int64_t t) {
    if (!b->used) {
        b->first = b->last = t;
        b->used = true;
        return;
    }
    b->first = RT_MIN(b->first, t);
    b->last = RT_MAX(b->last, t);
}

/* The only slice's part is the sum itself, made where its readers look for it. */
static bool is_whole_sum(const rt_plan *p, const rt_node *d) {
    return d->type.kind == RT_KIND_SUM && p->slices == 1;
}

/* The block a reader sees: the completed sum for global readers of a SUM, else the value's own. */
static block *read_block(mem *m, rt_val v) {
    const rt_val r = root(m->vi, v);
    const rt_node *d = rt_graph_node(m->p->g, r);
    if (d->leaf != RT_LEAF_NONE)
        return d->leaf == RT_LEAF_INPUT && d->type.groups > 1 ? &m->b[r] : NULL;
    if (d->type.kind == RT_KIND_SUM)
        return &m->b[sum_block(m, r)];
    return &m->b[r];
}

static void set_bytes(block *b, const rt_desc *d, bool global) {
    b->bytes = rt_desc_bytes(d);
    b->place = global ? RT_PLACE_GLOBAL : RT_PLACE_SLICE;
}

/* A step makes its result at t. */
static void make(mem *m, const rt_pstep *s, int64_t t, bool in_section) {
    const bool whole = is_whole_sum(m->p, rt_graph_node(m->p->g, s->v));
    block *b = whole ? &m->b[sum_block(m, s->v)] : &m->b[s->v];
    set_bytes(b, &s->p.out, in_section || whole);
    touch(b, t);
}

static void read_operands(mem *m, const rt_node *d, int64_t t) {
    for (int i = 0; i < d->nin; i++) {
        block *b = read_block(m, d->in[i]);
        if (b != NULL)
            touch(b, t);
    }
}

static void visit(mem *m, const rt_action *a, int64_t t, bool in_section) {
    rt_plan *p = m->p;
    switch (a->kind) {
    case RT_ACT_STEP: {
        const rt_pstep *s = &p->step[a->index];
        const rt_node *d = rt_graph_node(p->g, s->v);
        read_operands(m, d, t);
        make(m, s, t, in_section);
        if (a->params_only) {
            m->b[s->v].place = RT_PLACE_PACKED;
            touch(&m->b[s->v], 0);
            touch(&m->b[s->v], INT64_MAX / 2);
        }
        if (s->side > 0)
            make(m, &p->step[s->side], t, in_section);
        if (s->with != NULL) {
            read_operands(m, rt_graph_node(p->g, s->with->v), t);
            make(m, s->with, t, in_section);
        }
        if (s->scratch > 0) {
            block *c = &m->b[scratch_block(m, a->index)];
            c->bytes = s->scratch;
            c->place = in_section ? RT_PLACE_GLOBAL : RT_PLACE_SLICE;
            touch(c, t);
        }
        break;
    }
    case RT_ACT_REDUCE: {
        const rt_pstep *s = &p->step[a->index];
        touch(&m->b[s->v], t);
        block *b = &m->b[sum_block(m, s->v)];
        set_bytes(b, &s->p.out, true);
        touch(b, t);
        break;
    }
    case RT_ACT_GATHER:
        set_bytes(&m->b[a->src.slot], &a->desc, false);
        touch(&m->b[a->src.slot], t);
        break;
    case RT_ACT_EMIT:
    case RT_ACT_COPY:
    case RT_ACT_UPDATE: {
        block *b = read_block(m, (rt_val)a->src.slot);
        if (b != NULL)
            touch(b, t);
        break;
    }
    }
}

static void lifetimes(mem *m) {
    rt_plan *p = m->p;
    int64_t t = 1;
    for (int64_t i = 0; i < p->prologue.n; i++)
        visit(m, &p->prologue.a[i], 0, true);
    for (int ph = 0; ph < p->laps; ph++) {
        for (int64_t i = 0; i < p->slice_actions[ph].n; i++)
            visit(m, &p->slice_actions[ph].a[i], t++, false);
        for (int64_t i = 0; i < p->section[ph].n; i++)
            visit(m, &p->section[ph].a[i], t, true);
        t++;
    }
}

/* Lets an element-wise slice step write over an operand of equal size that no later step reads. The
 * reference of a chain builds its result in place and must find its operands untouched. */
static void in_place(mem *m) {
    rt_plan *p = m->p;
    int64_t t = 1;
    for (int ph = 0; ph < p->laps; ph++, t++)
        for (int64_t i = 0; i < p->slice_actions[ph].n; i++, t++) {
            const rt_action *a = &p->slice_actions[ph].a[i];
            if (a->kind != RT_ACT_STEP)
                continue;
            const rt_pstep *s = &p->step[a->index];
            const rt_node *d = rt_graph_node(p->g, s->v);
            if (d->type.kind != RT_KIND_ROWS ||
                !(d->op == RT_OP_CHAIN || (rt_op_get(d->op)->flags & RT_OP_ELTWISE) != 0))
                continue;
            if (d->op == RT_OP_CHAIN && s->kern == rt_kern_ref(RT_OP_CHAIN, rt_graph_dtype(p->g)))
                continue;
            for (int k = 0; k < d->nin; k++) {
                const rt_val x = root(m->vi, d->in[k]);
                const rt_node *xd = rt_graph_node(p->g, x);
                const rt_desc *xdesc = &s->p.in[k];
                if (xd->leaf != RT_LEAF_NONE || xd->type.kind != RT_KIND_ROWS ||
                    !rt_desc_equal(xdesc, &s->p.out))
                    continue;
                block *b = &m->b[m->owner[x]];
                block *o = &m->b[s->v];
                if (b->last != t || b->bytes != o->bytes)
                    continue;
                b->last = RT_MAX(b->last, o->last);
                m->owner[s->v] = m->owner[x];
                o->used = false;
                break;
            }
        }
}

typedef struct candidate {
    size_t bytes;
    int64_t index;
} candidate;
static int larger_first(const void *x, const void *y) {
    const candidate *a = x, *b = y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

typedef struct span {
    size_t lo, hi;
} span;
static int by_lo(const void *x, const void *y) {
    const span *a = x, *b = y;
    return a->lo < b->lo ? -1 : a->lo > b->lo;
}

static rt_status place(mem *m, rt_place where, bool reuse, size_t *total) {
    candidate *order = NULL;
    int64_t n = 0;
    span *busy = NULL;
    rt_status st = RT_OK;
    *total = 0;
    RT_TRY_GOTO(rt_alloc(&order, (size_t)m->nblk * sizeof *order));
    RT_TRY_GOTO(rt_alloc(&busy, (size_t)m->nblk * sizeof *busy));
    for (int64_t i = 0; i < m->nblk; i++)
        if (m->b[i].used && m->b[i].place == where && m->b[i].bytes > 0)
            order[n++] = (candidate){m->b[i].bytes, i};
    qsort(order, (size_t)n, sizeof *order, larger_first);
    for (int64_t k = 0; k < n; k++) {
        block *b = &m->b[order[k].index];
        size_t bytes = 0, at = 0;
        if (!rt_size_align_up(b->bytes, 64, &bytes))
            RT_FAIL_GOTO(RT_E_MEMORY, "plan: a value of %zu bytes is too large", b->bytes);
        if (reuse) {
            int64_t nb = 0;
            for (int64_t j = 0; j < k; j++) {
                const block *c = &m->b[order[j].index];
                if (c->first <= b->last && b->first <= c->last)
                    busy[nb++] = (span){c->offset, c->offset + ((c->bytes + 63) & ~(size_t)63)};
            }
            qsort(busy, (size_t)nb, sizeof *busy, by_lo);
            for (int64_t j = 0; j < nb && busy[j].lo < at + bytes; j++)
                at = RT_MAX(at, busy[j].hi);
        } else {
            at = *total;
        }
        b->offset = at;
        size_t end = 0;
        if (!rt_size_add(at, bytes, &end))
            RT_FAIL_GOTO(RT_E_MEMORY, "plan: the workspace is too large");
        *total = RT_MAX(*total, end);
    }
done:
    rt_free(order);
    rt_free(busy);
    return st;
}

/* The place of value v for a reader (or, with `part`, of the slice's part of a sum). */
static rt_ref ref_of(const mem *m, rt_val v, bool part) {
    const rt_val r = root(m->vi, v);
    const rt_node *d = rt_graph_node(m->p->g, r);
    switch (d->leaf) {
    case RT_LEAF_PARAM:
        return (rt_ref){.place = RT_PLACE_PARAM, .slot = d->slot};
    case RT_LEAF_FEED:
        return (rt_ref){.place = RT_PLACE_FEED, .slot = d->slot};
    case RT_LEAF_CONST:
        return (rt_ref){.place = RT_PLACE_CONST, .offset = m->b[r].offset};
    case RT_LEAF_INPUT:
        if (d->type.groups == 1) {
            const int64_t rows = d->type.shape.d[0];
            const rt_desc desc = rt_desc_make(d->type.dtype, d->type.shape, RT_LAYOUT_PLAIN);
            return (rt_ref){
                .place = RT_PLACE_INPUT, .slot = d->slot, .row_bytes = rt_desc_bytes(&desc) / (size_t)rows};
        }
        return (rt_ref){.place = RT_PLACE_SLICE, .offset = m->b[r].offset};
    case RT_LEAF_NONE:
        break;
    }
    if (d->type.kind == RT_KIND_ROWS || part)
        return (rt_ref){.place = RT_PLACE_SLICE, .offset = m->b[m->owner[r]].offset};
    const size_t offset = d->type.kind == RT_KIND_SUM ? m->b[sum_block(m, r)].offset : m->b[r].offset;
    if (m->vi[r].output >= 0)
        return (rt_ref){.place = RT_PLACE_OUTPUT, .slot = m->vi[r].output, .offset = offset};
    return (rt_ref){.place = m->vi[r].params_only ? RT_PLACE_PACKED : RT_PLACE_GLOBAL, .offset = offset};
}

/* Where the step of v puts its result. */
static rt_ref made_ref(const mem *m, rt_val v) {
    const rt_node *d = rt_graph_node(m->p->g, v);
    return ref_of(m, v, d->type.kind != RT_KIND_GLOBAL && !is_whole_sum(m->p, d));
}

static rt_status constants(mem *m) {
    rt_plan *p = m->p;
    size_t total = 0;
    for (rt_val v = 1; v < (rt_val)m->nval; v++) {
        const rt_node *d = rt_graph_node(p->g, v);
        if (d->leaf != RT_LEAF_CONST)
            continue;
        const rt_desc desc = rt_desc_make(d->type.dtype, d->type.shape, RT_LAYOUT_PLAIN);
        m->b[v].offset = total;
        total += (rt_desc_bytes(&desc) + 63) & ~(size_t)63;
    }
    p->const_bytes = total;
    RT_TRY(rt_alloc(&p->consts, total));
    for (rt_val v = 1; v < (rt_val)m->nval; v++) {
        const rt_node *d = rt_graph_node(p->g, v);
        if (d->leaf != RT_LEAF_CONST)
            continue;
        const int64_t n = rt_shape_elems(&d->type.shape);
        void *dst = p->consts + m->b[v].offset;
        for (int64_t i = 0; i < n; i++) {
            if (d->type.dtype == RT_DTYPE_F64)
                ((double *)dst)[i] = d->data[i];
            else if (d->type.dtype == RT_DTYPE_F32)
                ((float *)dst)[i] = (float)d->data[i];
            else
                ((int32_t *)dst)[i] = (int32_t)d->data[i];
        }
    }
    return RT_OK;
}

static void resolve_step(const mem *m, rt_pstep *s) {
    const rt_node *d = rt_graph_node(m->p->g, s->v);
    for (int k = 0; k < d->nin; k++)
        s->in[k] = ref_of(m, d->in[k], false);
    s->out = made_ref(m, s->v);
}

static void resolve(mem *m, rt_actions *l) {
    rt_plan *p = m->p;
    for (int64_t i = 0; i < l->n; i++) {
        rt_action *a = &l->a[i];
        switch (a->kind) {
        case RT_ACT_STEP: {
            rt_pstep *s = &p->step[a->index];
            resolve_step(m, s);
            if (s->with != NULL)
                resolve_step(m, s->with);
            if (s->side > 0)
                p->step[s->side].out = made_ref(m, p->step[s->side].v);
            if (s->scratch > 0) {
                const block *b = &m->b[scratch_block(m, a->index)];
                s->scratch_ref = (rt_ref){.place = b->place, .offset = b->offset};
            }
            break;
        }
        case RT_ACT_REDUCE:
            a->src = ref_of(m, p->step[a->index].v, true);
            a->dst = ref_of(m, p->step[a->index].v, false);
            break;
        case RT_ACT_GATHER:
            a->dst = ref_of(m, (rt_val)a->src.slot, false);
            break;
        case RT_ACT_EMIT:
        case RT_ACT_COPY:
        case RT_ACT_UPDATE:
            a->src = ref_of(m, (rt_val)a->src.slot, false);
            break;
        }
    }
}

rt_status rt_pass_memory(rt_compile *k) {
    rt_plan *p = k->p;
    const bool reuse = rt_pass_wanted(p, RT_PASS_MEMORY);
    rt_status st = RT_OK;
    mem m = {.p = p, .vi = k->vi, .nval = rt_graph_count(p->g)};
    m.nblk = 2 * m.nval + p->nstep;
    RT_TRY_GOTO(rt_calloc(&m.b, (size_t)m.nblk, sizeof *m.b));
    RT_TRY_GOTO(rt_alloc(&m.owner, (size_t)m.nval * sizeof *m.owner));
    for (int64_t v = 0; v < m.nval; v++)
        m.owner[v] = (int32_t)v;
    lifetimes(&m);
    if (reuse)
        in_place(&m);
    RT_TRY_GOTO(place(&m, RT_PLACE_SLICE, reuse, &p->slice_bytes));
    RT_TRY_GOTO(place(&m, RT_PLACE_GLOBAL, reuse, &p->global_bytes));
    RT_TRY_GOTO(place(&m, RT_PLACE_PACKED, reuse, &p->packed_bytes));
    RT_TRY_GOTO(constants(&m));
    resolve(&m, &p->prologue);
    for (int i = 0; i < p->laps; i++) {
        resolve(&m, &p->slice_actions[i]);
        resolve(&m, &p->section[i]);
    }
done:
    rt_free(m.b);
    rt_free(m.owner);
    return st;
}
