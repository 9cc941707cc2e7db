/*
 * dist.h - several processes (ranks) that do one piece of work, started by mpirun or srun.
 *
 * All ranks run the same program with the same words and take the same decisions in the same order. Work that can be
 * shared is: members of an ensemble, slices of a batch, batches to predict, runs that do not need each other.
 * Everything else is done by all alike. Rank 0 alone writes files and speaks; the others only read (base/file.h,
 * rt_file_only_read). A process that was not started as one of several is rank 0 of 1, and every call below returns at
 * once.
 *
 *     decisions   what depends on clocks, signals or files is decided by one and sent to all (rt_dist_lead), or
 *                 agreed on (rt_dist_most): a rank that decided for itself would leave the others waiting
 *     failures    a rank that fails tells the others (rt_dist_end); whatever they wait for then fails with its
 *                 message, and all end with one exit code
 *     freezing    each rank sends a sign of life; one that is silent for too long ends the job (watchdog.c)
 *
 *     teams       pieces of work that do not need each other go on at the same time (rt_dist_spread): for as long as
 *                 that takes the ranks of a piece are all there are, and the first of them is rank 0, which writes
 *
 * Calls come from one thread, the one that started. Sums are not here: their order is the plan's affair
 * (plan/exec_ranks.c); this module only moves bytes.
 */
#ifndef RT_DIST_DIST_H
#define RT_DIST_DIST_H

#include "base/status.h"

/* Ranks first, first + 1, ..., first + n - 1 of all. */
typedef struct rt_ranks {
    int first, n;
} rt_ranks;

int rt_dist_rank(void); /* of this process, among all; in a team: among its ranks, as everything below */
int rt_dist_size(void);
rt_ranks rt_dist_all(void);
rt_ranks rt_dist_alone(void);               /* this rank */
static inline int rt_ranks_me(rt_ranks g) { /* place of this rank among those of g */
    return rt_dist_rank() - g.first;
}

/* Share i of n things in parts that differ by one at most: things [lo, hi). */
typedef struct rt_share {
    int64_t lo, hi;
} rt_share;
rt_share rt_share_of(int64_t things, int64_t parts, int64_t i);

/* Ranks that work together on the same members of `members`, and which these are: several members to a rank, or, if
 * there are more ranks than members, several ranks to a member. */
typedef struct rt_team {
    rt_ranks ranks;
    rt_share members;
} rt_team;
rt_team rt_team_of(rt_ranks all, int64_t members, int rank);
int rt_team_leader(rt_ranks all, int64_t members, int64_t member); /* the first rank that has it */

/* Pieces of work that do not need each other, n of them, shared by ranks: each is done by one rank, as long as there are
 * as many left as ranks, and the rest by teams of several. `work` is called on the ranks of a piece, which are all
 * there are until it returns; its first rank is rank 0, and alone writes what belongs to that piece. If it fails on one
 * rank, or is interrupted, so is all of this on all ranks: others are asked to stop where they are. */
typedef rt_status (*rt_dist_work)(void *user, int64_t piece);
rt_status rt_dist_spread(int64_t n, rt_dist_work work, void *user) RT_MUST_CHECK;

/* Where the launcher's rank 0 is to be found out before anything else: does this process speak? */
bool rt_dist_speaks(void);
/* Joins the others if a launcher started this process as one of several: the environment tells. From now on a rank that
 * is silent for so many seconds ends the job: `say` gets a line that names it, on whatever thread, and then all are
 * aborted. `stop` (may be NULL) is called on a thread of its own when a rank of another team was asked to stop
 * (base/stop.h), or failed. */
rt_status rt_dist_start(double seconds, void (*say)(const char *line), void (*stop)(void)) RT_MUST_CHECK;
/* Called once, at the end, with what this rank came to: returns what all came to, with the message of the first rank
 * that failed, and leaves. `say`, called on rank 0 alone with that, comes before any rank leaves: a launcher that sees
 * one fail kills the others. */
typedef void (*rt_dist_say)(void *user, rt_status st);
rt_status rt_dist_end(rt_status st, rt_dist_say say, void *user);
/* Whether ranks for which a piece of work is too small wait for the next one, instead of that being an error: where
 * many pieces follow each other, as in a recipe. */
void rt_dist_let_idle(bool on);
bool rt_dist_may_idle(void);
/* Ranks that share the processors of this one, itself included. */
int rt_dist_neighbours(void);
/* "Open MPI 4.1.4", or "" alone. */
const char *rt_dist_library(void);

/* Fails if a peer has. What follows a failure returns at once, with whatever is in the buffers. */
rt_status rt_dist_status(void) RT_MUST_CHECK;

typedef struct rt_piece {
    void *data;
    size_t n;
    int rank; /* of all: where it goes to, or comes from */
} rt_piece;
/* Sends and receives, all at once. Pieces between two ranks meet in the order in which they are listed. */
rt_status rt_dist_exchange(const rt_piece *send, int64_t nsend, const rt_piece *receive,
                           int64_t nreceive) RT_MUST_CHECK;
/* In place: rank i of g has bytes [offset[i], offset[i + 1]) of data, and gets the rest. */
rt_status rt_dist_allgather(rt_ranks g, void *data, const size_t *offset) RT_MUST_CHECK;
/* The same for parts of one size. */
rt_status rt_dist_allgather_equal(rt_ranks g, void *data, size_t part) RT_MUST_CHECK;
/* n bytes of the first rank of g. */
rt_status rt_dist_broadcast(rt_ranks g, void *data, size_t n) RT_MUST_CHECK;
/* Each number becomes the largest that a rank of g has. */
rt_status rt_dist_most(rt_ranks g, double *values, int n) RT_MUST_CHECK;
rt_status rt_dist_barrier(rt_ranks g) RT_MUST_CHECK;

/* What rank 0 found out is what all found out: st and *flag are its own. */
rt_status rt_dist_lead(rt_status st, int *value) RT_MUST_CHECK;
/* Fails unless every rank has the same text; `what` it is, for the message, and `hint` what to do. */
rt_status rt_dist_same(const char *text, rt_status code, const char *what, const char *hint) RT_MUST_CHECK;

#endif
