/*
 * teams.c - runs that do not need each other, at the same time: candidates of a search, commands of a recipe.
 *
 *     7 pieces on 3 ranks:   0 1 | 2 3 | 4 5      each rank alone, two after another
 *                             6 6 6               what is left, by all
 *
 * Ranks part and meet again. While they are apart a team is a world of its own, made by nothing but an offset: ranks
 * count from its first one, which writes, and teams exchange no messages. So a piece of work does what it would do in a
 * job that has these ranks only, and gives the same bytes.
 *
 * A rank that fails or is asked to stop while they are apart would not be noticed before they meet: its watching thread
 * sends that to the others' (watchdog.c), which set the flag that a signal would set. Teams save and
 * stop.
 */
#include "base/file.h"
#include "dist/dist_int.h"

#define W (&rt_the_world)

/* A team is made of ranks of the one that this rank is in, which is returned, for `meet`. */
static rt_ranks part(rt_ranks team) {
    const rt_ranks outer = W->team;
    W->team = (rt_ranks){outer.first + team.first, team.n};
    atomic_fetch_add(&W->apart, 1);
    rt_file_only_read(rt_dist_rank() > 0);
    return outer;
}

/* Waits for all ranks of `outer`, unless this one failed: they hear of that where they wait. */
static rt_status meet(rt_ranks outer, rt_status st) {
    double interrupted = st == RT_E_INTERRUPTED;
    W->team = outer;
    rt_file_only_read(rt_dist_rank() > 0);
    if (st != RT_OK && st != RT_E_INTERRUPTED)
        return st;
    if (st == RT_E_INTERRUPTED)
        atomic_store(&W->asked_to_stop, true);
    RT_TRY(rt_dist_most(rt_dist_all(), &interrupted, 1));
    atomic_fetch_sub(&W->apart, 1);
    RT_FAIL_IF(st == RT_OK && interrupted > 0, RT_E_INTERRUPTED, "interrupted");
    return st;
}

/* Pieces from `first` on, as many as the team has. */
static rt_status work_apart(rt_team team, int64_t first, rt_dist_work work, void *user) {
    const rt_ranks outer = part(team.ranks);
    rt_status st = RT_OK;
    for (int64_t i = team.members.lo; i < team.members.hi && st == RT_OK; i++)
        st = work(user, first + i);
    return meet(outer, st);
}

rt_status rt_dist_spread(int64_t n, rt_dist_work work, void *user) {
    const rt_ranks all = rt_dist_all();
    const int64_t alone = n / all.n * all.n;
    if (alone > 0)
        RT_TRY(work_apart(rt_team_of(all, alone, rt_dist_rank()), 0, work, user));
    if (alone < n)
        RT_TRY(work_apart(rt_team_of(all, n - alone, rt_dist_rank()), alone, work, user));
    return RT_OK;
}
