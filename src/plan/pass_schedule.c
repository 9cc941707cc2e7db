/*
 * pass_schedule.c - when each node runs.
 *
 * A slice step can run in lap p when the global values it reads were finished in a section before p. A
 * sum over the batch has its parts made in a lap and is completed in the section after it. So for a slice
 * step, and likewise for the section of a global one,
 *
 *     lap(v) = max over operands x:  batched: lap(x)    global: section(x) + 1    leaf: 0
 *
 * Global work is then moved to the latest section that still serves its readers: gradients and running
 * statistics end up together in the last section, which all workers share, and only batch statistics make
 * workers wait (switched off, everything runs as early as it can). What depends on parameters and feeds
 * alone is the prologue (section -1). Second copies made by remat run in the lap of their first reader. The
 * part of a single slice is the sum: then there is nothing to complete.
 */
#include "base/alloc.h"
#include "plan/plan_int.h"
#include <stdlib.h>

static rt_val root(const rt_vinfo *vi, rt_val v) {
    return vi[v].view_of != 0 ? vi[v].view_of : v;
}

static bool is_slice(const rt_node *d) {
    return d->leaf == RT_LEAF_NONE && d->type.kind != RT_KIND_GLOBAL;
}

static bool is_recomputed(const rt_node *d) {
    return d->op == RT_OP_CHAIN && d->chain->step[0].attr.n == 1;
}

static void earliest(const rt_graph *g, rt_vinfo *vi, int *laps) {
    for (rt_val v = 1; v < (rt_val)rt_graph_count(g); v++) {
        const rt_node *d = rt_graph_node(g, v);
        int ph = is_slice(d) ? 0 : -1;
        bool params_only = d->leaf == RT_LEAF_PARAM || d->leaf == RT_LEAF_CONST;
        if (d->leaf == RT_LEAF_NONE) {
            params_only = !is_slice(d);
            for (int i = 0; i < d->nin; i++) {
                const rt_val x = d->in[i];
                const rt_node *xd = rt_graph_node(g, x);
                params_only = params_only && vi[x].params_only;
                if (xd->leaf != RT_LEAF_NONE)
                    continue;
                const bool rows = xd->type.kind == RT_KIND_ROWS;
                const int ready = rows || !is_slice(d) ? vi[x].lap : vi[x].lap + 1;
                ph = RT_MAX(ph, ready);
            }
        } else {
            ph = -1;
        }
        vi[v].lap = ph;
        vi[v].params_only = params_only;
        if (is_slice(d))
            *laps = RT_MAX(*laps, ph + 1);
    }
}

/* Moves recomputed chains and global work (outside the prologue) as late as their readers allow. */
static rt_status latest(const rt_plan *p, rt_vinfo *vi) {
    const rt_graph *g = p->g;
    const rt_val n = (rt_val)rt_graph_count(g);
    int32_t *limit = NULL; /* last lap (slice) or section (global) that serves all readers */
    RT_TRY(rt_alloc(&limit, n * sizeof *limit));
    const bool late = rt_pass_wanted(p, RT_PASS_SCHEDULE);
    for (rt_val v = 0; v < n; v++)
        limit[v] = late ? p->laps - 1 : -1;
    for (rt_val v = n - 1; v > 0; v--) {
        const rt_node *d = rt_graph_node(g, v);
        if (d->leaf != RT_LEAF_NONE)
            continue;
        const bool sum = d->type.kind == RT_KIND_SUM;
        if ((d->type.kind == RT_KIND_GLOBAL && vi[v].lap >= 0) || vi[v].view_of != 0 || is_recomputed(d))
            vi[v].lap = RT_MAX(vi[v].lap, limit[v]);
        vi[v].section = sum ? RT_MAX(vi[v].lap, limit[v]) : vi[v].lap;
        for (int i = 0; i < d->nin; i++) {
            const rt_val x = d->in[i];
            const rt_node *xd = rt_graph_node(g, x);
            if (xd->leaf != RT_LEAF_NONE)
                continue;
            const bool x_rows = xd->type.kind == RT_KIND_ROWS;
            int32_t l = vi[v].lap;
            if (!x_rows && (d->type.kind == RT_KIND_ROWS || sum))
                l = vi[v].lap - 1;
            limit[x] = RT_MIN(limit[x], l);
        }
    }
    rt_free(limit);
    return RT_OK;
}

/* Level of a global action in its section, where sums are completed first: the longest path to it. */
static int32_t level_of(const rt_graph *g, const rt_vinfo *vi, const int32_t *level, rt_val v) {
    const rt_node *d = rt_graph_node(g, v);
    int32_t l = 0;
    for (int i = 0; i < d->nin; i++) {
        const rt_val x = root(vi, d->in[i]);
        const rt_node *xd = rt_graph_node(g, x);
        if (xd->leaf == RT_LEAF_NONE && xd->type.kind == RT_KIND_GLOBAL && vi[x].lap == vi[v].lap)
            l = RT_MAX(l, level[x] + 1);
    }
    return l;
}

static rt_status fill(rt_plan *p, rt_vinfo *vi, int32_t *level) {
    const rt_graph *g = p->g;
    for (rt_val v = 1; v < (rt_val)rt_graph_count(g); v++) {
        const rt_node *d = rt_graph_node(g, v);
        if (d->leaf == RT_LEAF_INPUT && d->type.groups > 1) {
            const rt_action a = {.kind = RT_ACT_GATHER,
                                 .index = d->slot,
                                 .groups = d->type.groups,
                                 .desc = rt_desc_make(d->type.dtype, d->type.shape, RT_LAYOUT_PLAIN),
                                 .src = {.slot = (int32_t)v}};
            RT_TRY(rt_actions_add(&p->slice_actions[0], a));
        }
        if (d->leaf != RT_LEAF_NONE || vi[v].view_of != 0)
            continue;
        const rt_action step = {.kind = RT_ACT_STEP, .index = vi[v].step, .params_only = vi[v].params_only};
        if (is_slice(d)) {
            if (!p->step[vi[v].step].rides)
                RT_TRY(rt_actions_add(&p->slice_actions[vi[v].lap], step));
            if (d->type.kind == RT_KIND_SUM && p->slices > 1) {
                const rt_action sum = {
                    .kind = RT_ACT_REDUCE, .index = vi[v].step, .desc = p->step[vi[v].step].p.out};
                RT_TRY(rt_actions_add(&p->section[vi[v].section], sum));
            }
        } else {
            rt_action a = step;
            a.level = level[v] = level_of(g, vi, level, v);
            rt_actions *l = vi[v].lap < 0 ? &p->prologue : &p->section[vi[v].lap];
            RT_TRY(rt_actions_add(l, a));
        }
    }
    return RT_OK;
}

static rt_status outputs(rt_plan *p, rt_vinfo *vi) {
    const rt_graph *g = p->g;
    for (int i = 0; i < p->noutputs; i++) {
        const rt_graph_out *o = rt_graph_get_output(g, i);
        const rt_node *d = rt_graph_node(g, o->v);
        rt_action a = {.index = i,
                       .groups = d->type.groups,
                       .level = INT32_MAX,
                       .desc = rt_desc_make(d->type.dtype, d->type.shape, d->layout),
                       .src = {.slot = (int32_t)o->v}};
        rt_actions *last = &p->section[p->laps - 1];
        if (d->type.groups > 0) {
            a.kind = RT_ACT_EMIT;
            const rt_node *rd = rt_graph_node(g, root(vi, o->v));
            const int ph = rd->leaf == RT_LEAF_NONE ? vi[root(vi, o->v)].lap : 0;
            RT_TRY(rt_actions_add(&p->slice_actions[ph], a));
        } else if (o->update_slot >= 0) {
            a.kind = RT_ACT_UPDATE;
            a.index = o->update_slot;
            RT_TRY(rt_actions_add(last, a));
        } else if (d->leaf == RT_LEAF_NONE && vi[o->v].view_of == 0 && vi[o->v].output < 0 &&
                   !vi[o->v].params_only) {
            vi[o->v].output = i; /* computed in place */
        } else {
            a.kind = RT_ACT_COPY;
            RT_TRY(rt_actions_add(last, a));
        }
    }
    return RT_OK;
}

static int by_level(const void *a, const void *b) {
    const rt_action *x = a, *y = b;
    if (x->params_only != y->params_only)
        return x->params_only ? -1 : 1;
    const int kx = x->kind == RT_ACT_REDUCE ? -1 : x->level, ky = y->kind == RT_ACT_REDUCE ? -1 : y->level;
    if (kx != ky)
        return kx < ky ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

rt_status rt_pass_schedule(rt_compile *k) {
    rt_plan *p = k->p;
    rt_vinfo *vi = k->vi;
    const rt_graph *g = p->g;
    const size_t n = (size_t)rt_graph_count(g);
    p->laps = 1;
    earliest(g, vi, &p->laps);
    RT_TRY(latest(p, vi));
    RT_TRY(rt_arena_alloc(&p->arena, &p->slice_actions, (size_t)p->laps * sizeof *p->slice_actions));
    RT_TRY(rt_arena_alloc(&p->arena, &p->section, (size_t)p->laps * sizeof *p->section));
    int32_t *level = NULL;
    RT_TRY(rt_calloc(&level, n, sizeof *level));
    rt_status st = fill(p, vi, level);
    rt_free(level);
    RT_TRY(st);
    RT_TRY(outputs(p, vi));
    if (p->prologue.n > 1) /* qsort takes no NULL, even of nothing */
        qsort(p->prologue.a, (size_t)p->prologue.n, sizeof *p->prologue.a, by_level);
    while (p->npacked < p->prologue.n && p->prologue.a[p->npacked].params_only)
        p->npacked++;
    for (int i = 0; i < p->laps; i++)
        if (p->section[i].n > 1)
            qsort(p->section[i].a, (size_t)p->section[i].n, sizeof *p->section[i].a, by_level);
    return RT_OK;
}
