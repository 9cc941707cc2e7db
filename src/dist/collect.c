/*
 * collect.c - exchanges among ranks, built of sends and receives.
 *
 * Gathering goes by doubling: in round k each rank has 2^k parts, its own and those before it, and passes them on to
 * the rank 2^k behind it. After log2(n) rounds all have all, each part has been received once, and n need be no power
 * of two:
 *
 *     n = 5, rank 0 has   0 | 4 0 | 2 3 4 0 | all          (from ranks 4, 3, 1)
 */
#include "base/alloc.h"
#include "dist/dist_int.h"
#include <stdio.h>
#include <string.h>

#define W (&rt_the_world)
enum { PIECE_MAX = 1 << 30 }; /* bytes of a message: MPI counts with an int */

static rt_status grow(void *inout, size_t *have, size_t want) {
    if (want <= *have)
        return RT_OK;
    RT_TRY(rt_realloc(inout, *have, want));
    *have = want;
    return RT_OK;
}

static int64_t count_messages(const rt_piece *p, int64_t n) {
    int64_t all = 0;
    for (int64_t i = 0; i < n; i++)
        all += (int64_t)((p[i].n + PIECE_MAX - 1) / PIECE_MAX);
    return all;
}

/* Posts the messages of the pieces; *at counts them. */
static int post(const rt_piece *p, int64_t n, bool receive, int64_t *at) {
    for (int64_t i = 0; i < n; i++)
        for (size_t done = 0; done < p[i].n; done += PIECE_MAX) {
            uint8_t *data = (uint8_t *)p[i].data + done;
            const size_t bytes = RT_MIN(p[i].n - done, (size_t)PIECE_MAX);
            rt_request *r = &W->request[(*at)++];
            const int peer = W->team.first + p[i].rank;
            const int err = receive ? W->t->receive(data, bytes, peer, RT_TAG_DATA, r)
                                    : W->t->send(data, bytes, peer, RT_TAG_DATA, r);
            if (err) {
                *r = 0;
                return err;
            }
        }
    return 0;
}

/* Tests requests [*lo, hi) in order, past those that are done. */
static int test_some(int64_t *lo, int64_t hi) {
    int err = 0, done = 1;
    while (!err && done && *lo < hi) {
        err = W->request[*lo] ? W->t->test(&W->request[*lo], &done) : 0;
        if (!err && done)
            W->request[(*lo)++] = 0;
    }
    return err;
}

/* Somebody has failed: what was to be received never comes, what was sent is drained by whom it was sent to. */
static void give_up(int64_t nreceive, int64_t n) {
    for (int64_t i = 0; i < nreceive; i++)
        if (W->request[i])
            (void)W->t->cancel(&W->request[i]);
    unsigned turns = 0;
    for (int64_t lo = nreceive; lo < n;) {
        if (test_some(&lo, n))
            return;
        rt_world_hear();
        rt_world_drain(RT_TAG_DATA, -1);
        rt_world_unlock();
        rt_world_pause(&turns);
        rt_world_lock();
    }
}

rt_status rt_dist_exchange(const rt_piece *send, int64_t nsend, const rt_piece *receive, int64_t nreceive) {
    enum { LISTEN = 32 }; /* turns between two looks for news */
    RT_TRY(rt_dist_status());
    const int64_t nr = count_messages(receive, nreceive), n = nr + count_messages(send, nsend);
    if (n == 0)
        return RT_OK;
    size_t have = (size_t)W->requests * sizeof *W->request;
    RT_TRY(grow(&W->request, &have, (size_t)n * sizeof *W->request));
    W->requests = RT_MAX(W->requests, n);
    memset(W->request, 0, (size_t)n * sizeof *W->request);
    rt_world_lock();
    int64_t at = 0, lo = 0;
    int err = post(receive, nreceive, true, &at);
    err = err ? err : post(send, nsend, false, &at);
    for (unsigned turns = 0; !err;) {
        err = test_some(&lo, n);
        if (err || lo == n)
            break;
        if (turns % LISTEN == LISTEN - 1)
            rt_world_hear();
        if (W->failed.code != RT_OK) {
            give_up(nr, n);
            break;
        }
        rt_world_unlock();
        rt_world_pause(&turns);
        rt_world_lock();
    }
    rt_world_unlock();
    return err ? rt_world_error(err, "exchange messages") : rt_dist_status();
}

/* Parts [from, from + count) of a ring of n, as pieces of data: one, or two where the ring closes. */
static int64_t ring_pieces(rt_piece *out, uint8_t *data, const size_t *offset, int from, int count, int n,
                           int rank) {
    from = ((from % n) + n) % n;
    const int first = RT_MIN(count, n - from);
    out[0] = (rt_piece){data + offset[from], offset[from + first] - offset[from], rank};
    out[1] = (rt_piece){data, offset[count - first], rank};
    return first < count ? 2 : 1;
}

rt_status rt_dist_allgather(rt_ranks g, void *data, const size_t *offset) {
    const int me = rt_ranks_me(g);
    for (int have = 1; have < g.n; have *= 2) {
        const int count = RT_MIN(have, g.n - have);
        const int to = (me + have) % g.n, from = (me - have + g.n) % g.n;
        rt_piece send[2], receive[2];
        /* the newest `count` parts that the receiver lacks: those that end with this rank's own */
        const int64_t ns = ring_pieces(send, data, offset, me - count + 1, count, g.n, g.first + to);
        const int64_t nr = ring_pieces(receive, data, offset, from - count + 1, count, g.n, g.first + from);
        RT_TRY(rt_dist_exchange(send, ns, receive, nr));
    }
    return rt_dist_status();
}

rt_status rt_dist_allgather_equal(rt_ranks g, void *data, size_t part) {
    size_t *offset;
    if (g.n < 2)
        return RT_OK;
    RT_TRY(rt_calloc(&offset, (size_t)g.n + 1, sizeof *offset));
    for (int i = 0; i <= g.n; i++)
        offset[i] = (size_t)i * part;
    const rt_status st = rt_dist_allgather(g, data, offset);
    rt_free(offset);
    return st;
}

/* Up a tree of powers of two: a rank that has it passes it on to one that lacks it, twice as many each round. */
rt_status rt_dist_broadcast(rt_ranks g, void *data, size_t n) {
    const int me = rt_ranks_me(g);
    for (int have = 1; have < g.n; have *= 2) {
        const rt_piece to = {data, n, g.first + me + have}, from = {data, n, g.first + me - have};
        if (me < have && me + have < g.n)
            RT_TRY(rt_dist_exchange(&to, 1, NULL, 0));
        else if (me >= have && me < 2 * have)
            RT_TRY(rt_dist_exchange(NULL, 0, &from, 1));
    }
    return rt_dist_status();
}

rt_status rt_dist_most(rt_ranks g, double *values, int n) {
    if (g.n < 2)
        return RT_OK;
    const size_t part = (size_t)n * sizeof *values;
    RT_TRY(grow(&W->box, &W->box_bytes, part * (size_t)g.n));
    memcpy(W->box + part * (size_t)rt_ranks_me(g), values, part);
    RT_TRY(rt_dist_allgather_equal(g, W->box, part));
    const double *all = (const double *)(const void *)W->box;
    for (int i = 0; i < g.n; i++)
        for (int k = 0; k < n; k++)
            values[k] = RT_MAX(values[k], all[i * n + k]);
    return RT_OK;
}

rt_status rt_dist_barrier(rt_ranks g) {
    double nothing = 0;
    return rt_dist_most(g, &nothing, 1);
}

rt_status rt_dist_lead(rt_status st, int *value) {
    if (rt_dist_size() < 2)
        return st;
    if (rt_dist_rank() == 0 && st != RT_OK)
        return st; /* the others hear of it where they wait */
    return rt_dist_broadcast(rt_dist_all(), value, sizeof *value);
}

rt_status rt_dist_same(const char *text, rt_status code, const char *what, const char *hint) {
    enum { TEXT = 128 };
    const int first = W->team.first;
    if (rt_dist_size() < 2)
        return RT_OK;
    RT_TRY(grow(&W->box, &W->box_bytes, (size_t)rt_dist_size() * TEXT));
    char *all = (char *)W->box;
    snprintf(all + rt_dist_rank() * TEXT, TEXT, "%s", text);
    RT_TRY(rt_dist_allgather_equal(rt_dist_all(), all, TEXT));
    for (int i = 1; i < rt_dist_size(); i++) {
        if (strncmp(all, all + i * TEXT, TEXT) == 0)
            continue;
        rt_news n = {.rank = first, .code = (int32_t)code};
        snprintf(n.text, sizeof n.text, "rank %d on %s has %s %.60s, rank %d on %s has %.60s; %s", first + i,
                 W->who[first + i].host, what, all + i * TEXT, first, W->who[first].host, all, hint);
        if (rt_dist_size() < W->size && rt_dist_rank() == 0)
            return rt_error_set(code, __FILE__, __LINE__, "%s", n.text); /* other teams are to hear of it */
        W->failed = n; /* all say the same, and need not tell each other */
        return rt_dist_status();
    }
    return RT_OK;
}
