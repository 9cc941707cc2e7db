/*
 * match.c - the method `match`: units renumbered by weight matching (align/weight_match.c), then the mean.
 */
#include "average/average_int.h"
#include <string.h>

static rt_status tell(void *user, int round, int model) {
    const rt_average *a = user;
    return rt_average_progress(a, round ? "matching again" : "matching", (double)model / a->models);
}

rt_status rt_average_by_match(rt_average *a) {
    rt_matcher *t = NULL;
    rt_status st;
    RT_TRY(rt_matcher_create(&t, &a->sym, a->params, a->pool));
    RT_TRY_GOTO(rt_matcher_many(t, a->blocks, a->models, strcmp(a->c->match_to, "running") == 0, a->perms,
                                (uint64_t)a->c->seed, tell, a));
    for (int m = 1; m < a->models; m++)
        RT_TRY_GOTO(rt_average_align(a, m));
    rt_average_mean(a);
done:
    rt_matcher_destroy(&t);
    return st;
}
