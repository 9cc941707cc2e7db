/*
 * trainer_ranks.c - a run on several ranks.
 *
 * Members are shared out: a rank has the values, the optimiser's state and the batches of its own and of no others.
 * Where there are more ranks than members, several have the same one, and share the slices of its batches
 * (plan/exec_ranks.c). Between two agreements members never meet, so ranks neither; they agree on whether to stop some
 * twenty times a second, and tell each other their losses then, which rank 0 shows.
 *
 * What is written is written by rank 0: numbers of all members are gathered for the log, weights one member at a time.
 */
#include "base/timer.h"
#include "dist/dist.h"
#include "train/train_int.h"
#include <string.h>

static const double AGREE_EVERY = 0.05; /* seconds */

/* The first rank of a team speaks for it. */
rt_status rt_trainer_gather(rt_trainer *t) {
    const rt_ranks all = rt_dist_all();
    if (all.n < 2)
        return RT_OK;
    const size_t each = RT_TRAINER_ROWS * sizeof *t->packed;
    for (int m = 0; m < t->all; m++)
        for (int k = 0; k < RT_TRAINER_ROWS; k++)
            t->packed[m * RT_TRAINER_ROWS + k] = t->numbers[k * t->all + m];
    for (int i = 0; i <= all.n; i++) {
        const rt_team q = rt_team_of(all, t->all, i < all.n ? i : all.n - 1);
        t->offset[i] = (size_t)(i == all.n || i > q.ranks.first ? q.members.hi : q.members.lo) * each;
    }
    RT_TRY(rt_dist_allgather(all, t->packed, t->offset));
    for (int m = 0; m < t->all; m++)
        for (int k = 0; k < RT_TRAINER_ROWS; k++)
            t->numbers[k * t->all + m] = t->packed[m * RT_TRAINER_ROWS + k];
    return RT_OK;
}

rt_status rt_trainer_agree(rt_trainer *t, bool *stop) {
    const bool mine = t->hooks && t->hooks->stop && *t->hooks->stop;
    *stop = mine;
    if (rt_dist_size() < 2)
        return RT_OK;
    *stop = false;
    if (t->at.step < t->agree_at)
        return RT_OK;
    const double now = rt_time_now(), done = (double)(t->at.step - t->agreed_at);
    double steps = done > 0 && now > t->agreed ? AGREE_EVERY * done / (now - t->agreed) : 1;
    steps = rt_dist_rank() == 0 ? RT_MIN(RT_MAX(steps, 1), 1000) : 1;
    double v[2] = {mine, steps};
    RT_TRY(rt_dist_most(rt_dist_all(), v, 2));
    RT_TRY(rt_trainer_gather(t));
    *stop = v[0] > 0;
    t->agree_at = t->at.step + (int64_t)v[1];
    t->agreed = now;
    t->agreed_at = t->at.step;
    return RT_OK;
}

rt_status rt_trainer_together(rt_status st) {
    double interrupted = st == RT_E_INTERRUPTED;
    if (rt_dist_size() < 2 || (st != RT_OK && st != RT_E_INTERRUPTED))
        return st;
    RT_TRY(rt_dist_most(rt_dist_all(), &interrupted, 1));
    RT_FAIL_IF(interrupted > 0, RT_E_INTERRUPTED, "interrupted");
    return RT_OK;
}

rt_status rt_trainer_check_ranks(const rt_trainer *t) {
    RT_TRY(rt_dist_same(t->config_hash, RT_E_USAGE, "the configuration",
                        "give all ranks the same flags and files"));
    return rt_dist_same(t->data_hash, RT_E_INPUT, "data with the hash", "all ranks must read the same data");
}

rt_status rt_member_to_first(const float *from, float *to, int64_t floats, int all, int member) {
    const int owner = rt_team_leader(rt_dist_all(), all, member), me = rt_dist_rank();
    const size_t bytes = (size_t)floats * sizeof(float);
    const rt_piece out = {(void *)(uintptr_t)from, bytes, 0}, in = {to, bytes, owner};
    if (me == 0 && owner == 0 && from != to)
        memcpy(to, from, bytes);
    if (owner == 0 || (me != 0 && me != owner))
        return RT_OK;
    return me == 0 ? rt_dist_exchange(NULL, 0, &in, 1) : rt_dist_exchange(&out, 1, NULL, 0);
}
