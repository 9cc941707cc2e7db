/*
 * plan_print.c - a plan as text: what runs when, by which kernel, in which layout, where.
 */
#include "plan/plan_int.h"
#include <string.h>

static void print_ref(rt_str *out, const rt_ref *r) {
    static const char *const NAMES[] = {"?",     "slice", "global", "packed", "param",
                                        "input", "feed",  "const",  "out"};
    if (r->place == RT_PLACE_PARAM || r->place == RT_PLACE_INPUT || r->place == RT_PLACE_FEED)
        rt_str_appendf(out, "%s#%d", NAMES[r->place], r->slot);
    else
        rt_str_appendf(out, "%s+%zu", NAMES[r->place], r->offset);
}

static void print_step(const rt_plan *p, const rt_pstep *s, rt_str *out) {
    const rt_node *d = rt_graph_node(p->g, s->v);
    rt_str_appendf(out, "  %%%-5u %s", s->v, rt_op_get(d->op)->name);
    if (d->chain != NULL) {
        rt_str_append(out, "[");
        for (int i = 0; i < d->chain->n; i++)
            rt_str_appendf(out, "%s%s%s", i > 0 ? " " : "", d->chain->step[i].second ? "'" : "",
                           rt_op_get(d->chain->step[i].op)->name);
        rt_str_append(out, d->chain->step[0].attr.n == 1 ? "] again" : "]");
    }
    rt_str_append(out, "(");
    for (int i = 0; i < d->nin; i++)
        rt_str_appendf(out, "%s%%%u", i > 0 ? ", " : "", d->in[i]);
    rt_str_append(out, ") ");
    rt_attr_print(&d->attr, out);
    rt_str_appendf(out, " : %s ", rt_dtype_name(d->type.dtype));
    rt_shape_print(&d->type.shape, out);
    rt_str_appendf(out, " %s  by %s  at ", rt_layout_name(d->layout), s->kern->impl);
    print_ref(out, &s->out);
    if (s->side > 0)
        rt_str_appendf(out, "  with %%%u", p->step[s->side].v);
    if (s->rides)
        rt_str_append(out, "  in the same sweep");
    else if (s->scratch > 0)
        rt_str_appendf(out, "  scratch %zu", s->scratch);
    if (d->name != NULL)
        rt_str_appendf(out, "  ; %s", d->name);
    rt_str_append(out, "\n");
}

static void print_actions(const rt_plan *p, const rt_actions *l, rt_str *out) {
    for (int64_t i = 0; i < l->n; i++) {
        const rt_action *a = &l->a[i];
        switch (a->kind) {
        case RT_ACT_STEP:
            print_step(p, &p->step[a->index], out);
            if (p->step[a->index].with != NULL)
                print_step(p, p->step[a->index].with, out);
            break;
        case RT_ACT_REDUCE:
            rt_str_appendf(out, "  %%%-5u sum over slices  at ", p->step[a->index].v);
            print_ref(out, &a->dst);
            rt_str_append(out, "\n");
            break;
        case RT_ACT_GATHER:
            rt_str_appendf(out, "  input #%d: rows of this slice\n", a->index);
            break;
        case RT_ACT_EMIT:
        case RT_ACT_COPY:
            rt_str_appendf(out, "  output %s\n", rt_graph_get_output(p->g, a->index)->name);
            break;
        case RT_ACT_UPDATE:
            rt_str_appendf(out, "  update of param#%d\n", a->index);
            break;
        }
    }
}

/* Kernels of one name and one rule, and the steps they run. */
typedef struct used {
    const rt_kern *kern;
    int64_t steps;
} used;

static void print_kernels(const rt_plan *p, rt_str *out) {
    enum { MOST = 32 };
    used list[MOST];
    int n = 0;
    for (int64_t i = 0; i < p->nstep; i++) {
        const rt_kern *k = p->step[i].kern;
        int at = 0;
        if (k == NULL)
            continue;
        while (at < n && (list[at].kern->rule != k->rule || strcmp(list[at].kern->impl, k->impl) != 0))
            at++;
        if (at == MOST)
            continue;
        if (at == n)
            list[n++] = (used){.kern = k};
        list[at].steps++;
    }
    rt_str_append(out, "kernels: the first of kern.def whose rule holds\n");
    for (int i = 0; i < 2 * n; i++) { /* first those with a rule */
        const used *u = &list[i % n];
        if ((i < n) != (u->kern->rule != NULL))
            continue;
        rt_str_appendf(out, "  %-7s %4lld steps  ", u->kern->impl, (long long)u->steps);
        if (u->kern->rule != NULL)
            u->kern->rule(out);
        else
            rt_str_append(out, "what is left");
        rt_str_append(out, "\n");
    }
}

void rt_plan_print(const rt_plan *p, rt_str *out) {
    rt_str_appendf(out, "plan: batch %lld in %lld slices of %lld, %d laps, %lld steps, %.1f MFLOP per run\n",
                   (long long)p->batch, (long long)p->slices, (long long)p->slice, p->laps,
                   (long long)p->nstep, p->flops * 1e-6);
    rt_str_appendf(out,
                   "memory: %zu bytes = %lld x %zu slice + %zu global + %zu packed; constants %zu\npasses:",
                   rt_plan_bytes(p), (long long)p->slices, p->slice_bytes, p->global_bytes, p->packed_bytes,
                   p->const_bytes);
    for (int i = 0; i < RT_PASS_COUNT; i++)
        rt_str_appendf(out, " %s%s", (p->opt.skip & (1u << i)) != 0 ? "-" : "", rt_pass_name((rt_pass)i));
    rt_str_append(out, "\n");
    print_kernels(p, out);
    rt_str_append(out, "prologue\n");
    print_actions(p, &p->prologue, out);
    for (int i = 0; i < p->laps; i++) {
        rt_str_appendf(out, "lap %d, every slice\n", i);
        print_actions(p, &p->slice_actions[i], out);
        if (p->section[i].n > 0)
            rt_str_appendf(out, "section %d\n", i);
        print_actions(p, &p->section[i], out);
    }
}
