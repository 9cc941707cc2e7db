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
#include "base/alloc.h"
#include "base/rng.h"
#include "base/timer.h"
#include "dist/dist.h"
#include "train/train_int.h"
#include <math.h>
#include <string.h>

static const double AGREE_EVERY = 0.05; /* seconds */

rt_status rt_members_open(rt_members *m, rt_progress_state *at, const rt_config *c) {
    m->all = (int)c->members;
    m->team = rt_team_of(rt_dist_all(), m->all, rt_dist_rank());
    m->own = (int)(m->team.members.hi - m->team.members.lo);
    const size_t all = (size_t)m->all, own = (size_t)m->own;
    RT_TRY(rt_calloc(&m->numbers, RT_MEMBER_NUMBERS * all, sizeof *m->numbers));
    RT_TRY(rt_calloc(&m->packed, RT_MEMBER_NUMBERS * all, sizeof *m->packed));
    RT_TRY(rt_calloc(&m->offset, (size_t)rt_dist_size() + 1, sizeof *m->offset));
    RT_TRY(rt_calloc(&m->correct, own, sizeof *m->correct));
    RT_TRY(rt_calloc(&m->seeds, own, sizeof *m->seeds));
    double **const rows[RT_MEMBER_NUMBERS] = {
        &at->loss_sum, &at->correct, &at->kept_loss, &at->kept_accuracy, &at->kept_epoch,
        &at->lowest,   &m->lr,       &m->losses,     &m->valid_loss,     &m->valid_accuracy};
    for (int64_t i = 0; i < RT_COUNT(rows); i++)
        *rows[i] = m->numbers + i * m->all + m->team.members.lo;
    for (int i = 0; i < m->own; i++) {
        at->kept_loss[i] = at->kept_accuracy[i] = m->valid_loss[i] = m->valid_accuracy[i] = NAN;
        m->seeds[i] = rt_rng_member_seed((uint64_t)c->seed, c->first_member + m->team.members.lo + i);
    }
    return RT_OK;
}

void rt_members_close(rt_members *m) {
    rt_free(m->numbers);
    rt_free(m->packed);
    rt_free(m->offset);
    rt_free(m->correct);
    rt_free(m->seeds);
}

double rt_members_mean(const rt_members *m, const double *own) {
    double sum = 0;
    for (int i = 0; i < m->all; i++)
        sum += rt_members_all(m, own)[i];
    return sum / m->all;
}

/* The first rank of a team speaks for it. */
rt_status rt_members_gather(rt_members *m) {
    const rt_ranks all = rt_dist_all();
    if (all.n < 2)
        return RT_OK;
    const size_t each = RT_MEMBER_NUMBERS * sizeof *m->packed;
    for (int i = 0; i < m->all; i++)
        for (int k = 0; k < RT_MEMBER_NUMBERS; k++)
            m->packed[i * RT_MEMBER_NUMBERS + k] = m->numbers[k * m->all + i];
    for (int i = 0; i <= all.n; i++) {
        const rt_team q = rt_team_of(all, m->all, i < all.n ? i : all.n - 1);
        m->offset[i] = (size_t)(i == all.n || i > q.ranks.first ? q.members.hi : q.members.lo) * each;
    }
    RT_TRY(rt_dist_allgather(all, m->packed, m->offset));
    for (int i = 0; i < m->all; i++)
        for (int k = 0; k < RT_MEMBER_NUMBERS; k++)
            m->numbers[k * m->all + i] = m->packed[i * RT_MEMBER_NUMBERS + k];
    return RT_OK;
}

rt_status rt_trainer_agree(rt_trainer *t, bool *stop) {
    rt_members *m = &t->members;
    const volatile sig_atomic_t *flag = rt_trainer_stop(t);
    const bool mine = flag && *flag;
    *stop = mine;
    if (rt_dist_size() < 2)
        return RT_OK;
    *stop = false;
    if (t->at.step < m->agree_at)
        return RT_OK;
    const double now = rt_time_now(), done = (double)(t->at.step - m->agreed_at);
    double steps = done > 0 && now > m->agreed ? AGREE_EVERY * done / (now - m->agreed) : 1;
    steps = rt_dist_rank() == 0 ? RT_MIN(RT_MAX(steps, 1), 1000) : 1;
    double v[2] = {mine, steps};
    RT_TRY(rt_dist_most(rt_dist_all(), v, 2));
    RT_TRY(rt_members_gather(m));
    *stop = v[0] > 0;
    m->agree_at = t->at.step + (int64_t)v[1];
    m->agreed = now;
    m->agreed_at = t->at.step;
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
    return rt_dist_same(t->data.hash, RT_E_INPUT, "data with the hash", "all ranks must read the same data");
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
