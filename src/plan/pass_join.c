/*
 * pass_join.c - two steps of a lap that share operands become one action.
 *
 * Both gradients of a convolution, bwd_weights(x, dy) and bwd_data(dy, w), load dy through the same chain, and the
 * second reads x, too, for its mask and its sums. A kernel that can solve two such problems in one sweep says so
 * (rt_kern.joins). The earlier step is then put off until the later one, which is allowed if its result is a sum
 * over the batch: those are read when the lap is over. Both have their kernels and their states; no number
 * changes.
 */
#include "plan/plan_int.h"

/* same[i]: the operand of d that is operand i of the other, or -1; whether there is any. */
static bool shared(const rt_node *d, const rt_node *other, int *same) {
    bool any = false;
    for (int i = 0; i < other->nin; i++) {
        same[i] = -1;
        for (int k = 0; k < d->nin && same[i] < 0; k++)
            if (d->in[k] == other->in[i])
                same[i] = k;
        any = any || same[i] >= 0;
    }
    return any;
}

static rt_pstep *step_of(const rt_plan *p, const rt_action *a) {
    rt_pstep *s = a->kind == RT_ACT_STEP ? &p->step[a->index] : NULL;
    return s != NULL && s->kern->joins != NULL && s->with == NULL && !s->rides ? s : NULL;
}

/* Gives s a step of the list before it to solve along. */
static void join(const rt_plan *p, rt_pstep *s, const rt_actions *l, int64_t before) {
    int same[RT_OP_MAX_IN];
    for (int64_t i = before - 1; i >= 0; i--) {
        rt_pstep *other = step_of(p, &l->a[i]);
        if (other == NULL || other->kern->joins != s->kern->joins || other->p.kind != RT_KIND_SUM ||
            !shared(rt_graph_node(p->g, s->v), rt_graph_node(p->g, other->v), same))
            continue;
        const rt_kern_with with = {.p = &other->p, .state = other->state};
        if (!s->kern->joins(&s->p, s->state, &with, same, &s->scratch))
            continue;
        s->with = other;
        other->rides = true;
        return;
    }
}

rt_status rt_pass_join(rt_compile *k) {
    rt_plan *p = k->p;
    for (int ph = 0; ph < p->laps; ph++) {
        rt_actions *l = &p->slice_actions[ph];
        for (int64_t i = 0; i < l->n; i++) {
            rt_pstep *s = step_of(p, &l->a[i]);
            if (s != NULL)
                join(p, s, l, i);
        }
        int64_t n = 0;
        for (int64_t i = 0; i < l->n; i++)
            if (l->a[i].kind != RT_ACT_STEP || !p->step[l->a[i].index].rides)
                l->a[n++] = l->a[i];
        l->n = n;
    }
    return RT_OK;
}
