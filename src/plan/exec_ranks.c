/*
 * exec_ranks.c - the slices of a plan shared by ranks: sums over all of them, in the order of one process.
 *
 * The tree over n slices splits at the largest power of two below n (kern/vec/vec_optim.c). A rank has the slices of a
 * range, and of these the largest whole subtrees, its nodes; what a node comes to is computed as ever. Then ranks
 * exchange nodes, and add them as the tree does:
 *
 *     7 slices on 3 ranks:  0 1 2 | 3 4 | 5 6        nodes:  (0 1) 2 | 3  4 | 5  6
 *     sum:                  ((0 1) + (2 + 3)) + ((4 + 5) + 6)
 *
 * All sums of a section travel together, one after another in one vector. A short one goes whole to every rank, and all
 * add it up. A long one (gradients) is cut into as many parts as there are ranks: each rank gets all nodes of its part,
 * adds them, and passes the result on to all; so every number crosses the network twice, however many ranks there are.
 * Which way a vector goes changes nothing: an element is the same sum in both.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "kern/kern.h"
#include "plan/exec_int.h"
#include <string.h>

enum { LINE = 64, SHORT = 16384 }; /* bytes: where parts begin; of a vector that goes whole */

typedef struct node {
    int64_t lo, n; /* slices */
    int rank;
} node;
typedef struct addition {
    int to, from; /* node `to` becomes the sum of both */
} addition;

struct rt_exec_ranks {
    rt_ranks team;
    int me;
    int64_t slices;
    node *nodes;
    int nnodes, nadd;
    int *first; /* (team + 1): node that a rank begins with */
    addition *add;
    uint8_t *mem;
    size_t bytes;
    size_t *offset; /* (team + 1) */
    rt_piece *send, *receive;
    /* the vector at hand */
    rt_exec *e;
    const rt_action *sum;
    int64_t nsum;
    size_t *begin;  /* (sums + 1) of the vector, in bytes */
    uint8_t **data; /* per node, as if it began with the vector */
    uint8_t *result;
    size_t lo, hi; /* part that is added here */
};

/* ---- the tree ---- */

static int64_t split(int64_t n) {
    int64_t half = 1;
    while (2 * half < n)
        half *= 2;
    return half;
}

static int rank_of(const rt_exec_ranks *x, int64_t slice) {
    for (int i = 0;; i++)
        if (slice < rt_share_of(x->slices, x->team.n, i).hi)
            return i;
}

/* Nodes and additions of the subtree of n slices from lo on; the number of its first node. */
static int grow(rt_exec_ranks *x, int64_t lo, int64_t n) {
    const int rank = rank_of(x, lo);
    if (rank_of(x, lo + n - 1) == rank) {
        x->nodes[x->nnodes] = (node){lo, n, rank};
        return x->nnodes++;
    }
    const int64_t half = split(n);
    const int left = grow(x, lo, half), right = grow(x, lo + half, n - half);
    x->add[x->nadd++] = (addition){left, right};
    return left;
}

static size_t line_up(size_t n) {
    return (n + LINE - 1) / LINE * LINE;
}

/* Sums from lo on that are computed together. */
static int64_t group_end(const rt_actions *l, int64_t lo) {
    while (lo < l->n && l->a[lo].kind == RT_ACT_REDUCE)
        lo++;
    return lo;
}

static size_t part_of(const rt_exec_ranks *x, size_t bytes) {
    return line_up((bytes + (size_t)x->team.n - 1) / (size_t)x->team.n);
}

/* Memory that a vector needs: its nodes; if it is long also the nodes of others for a part, and the result. */
static size_t room_for(const rt_exec_ranks *x, size_t bytes) {
    const size_t nodes = (size_t)x->nnodes, mine = (size_t)(x->first[x->me + 1] - x->first[x->me]);
    return bytes <= SHORT ? nodes * bytes : mine * bytes + nodes * part_of(x, bytes) + bytes;
}

static rt_status make_memory(rt_exec_ranks *x, const rt_plan *p) {
    int64_t most = 0;
    for (int ph = 0; ph < p->laps; ph++)
        for (int64_t lo = 0; lo < p->section[ph].n;) {
            const rt_actions *l = &p->section[ph];
            const int64_t hi = group_end(l, lo);
            size_t bytes = 0;
            for (int64_t i = lo; i < hi; i++)
                bytes += line_up(rt_desc_bytes(&l->a[i].desc));
            x->bytes = RT_MAX(x->bytes, room_for(x, bytes));
            most = RT_MAX(most, hi - lo);
            lo = RT_MAX(hi, lo + 1);
        }
    RT_TRY(rt_calloc(&x->begin, (size_t)most + 1, sizeof *x->begin));
    return rt_alloc(&x->mem, x->bytes + LINE);
}

rt_status rt_exec_ranks_create(rt_exec_ranks **out, const rt_plan *p, rt_ranks team) {
    rt_exec_ranks *x;
    rt_status st;
    *out = NULL;
    RT_TRY(rt_calloc(&x, 1, sizeof *x));
    x->team = team;
    x->me = rt_ranks_me(team);
    x->slices = p->slices;
    const size_t n = (size_t)team.n;
    RT_TRY_GOTO(rt_calloc(&x->nodes, (size_t)p->slices, sizeof *x->nodes));
    RT_TRY_GOTO(rt_calloc(&x->add, (size_t)p->slices, sizeof *x->add));
    RT_TRY_GOTO(rt_calloc(&x->first, n + 1, sizeof *x->first));
    RT_TRY_GOTO(rt_calloc(&x->offset, n + 1, sizeof *x->offset));
    grow(x, 0, p->slices);
    for (int i = 0, k = 0; i <= team.n; i++) {
        while (k < x->nnodes && x->nodes[k].rank < i)
            k++;
        x->first[i] = k;
    }
    RT_TRY_GOTO(rt_calloc(&x->data, (size_t)x->nnodes, sizeof *x->data));
    RT_TRY_GOTO(rt_calloc(&x->send, n * (size_t)x->nnodes, sizeof *x->send));
    RT_TRY_GOTO(rt_calloc(&x->receive, n * (size_t)x->nnodes, sizeof *x->receive));
    RT_TRY_GOTO(make_memory(x, p));
    *out = x;
    x = NULL;
done:
    rt_exec_ranks_destroy(&x);
    return st;
}

void rt_exec_ranks_destroy(rt_exec_ranks **xp) {
    rt_exec_ranks *x = *xp;
    *xp = NULL;
    if (!x)
        return;
    rt_free(x->nodes);
    rt_free(x->add);
    rt_free(x->first);
    rt_free(x->offset);
    rt_free(x->data);
    rt_free(x->send);
    rt_free(x->receive);
    rt_free(x->begin);
    rt_free(x->mem);
    rt_free(x);
}

/* ---- a vector ---- */

static void tree_sum(rt_dtype type, void *dst, const void *const *src, int n, int64_t count) {
    if (type == RT_DTYPE_F64)
        rt_k_tree_sum_f64(dst, (const double *const *)src, n, 0, count);
    else
        rt_k_tree_sum_f32(dst, (const float *const *)src, n, 0, count);
}

/* Calls fn for every piece of a sum within bytes [lo, hi) of the vector. */
typedef void (*on_sum)(const rt_exec_ranks *x, const rt_action *a, size_t at, size_t from, size_t bytes);
static void each_sum(const rt_exec_ranks *x, size_t lo, size_t hi, on_sum fn) {
    for (int64_t i = 0; i < x->nsum; i++) {
        const size_t begin = x->begin[i], end = begin + rt_desc_bytes(&x->sum[i].desc);
        const size_t a = RT_MAX(lo, begin), b = RT_MIN(hi, end);
        if (a < b)
            fn(x, &x->sum[i], a, a - begin, b - a);
    }
}

/* What the slices of this rank's nodes come to. */
static void sum_nodes(const rt_exec_ranks *x, const rt_action *a, size_t at, size_t from, size_t bytes) {
    const void *src[RT_SLICES_MAX];
    for (int k = x->first[x->me]; k < x->first[x->me + 1]; k++) {
        const node *d = &x->nodes[k];
        for (int64_t s = 0; s < d->n; s++)
            src[s] = (const uint8_t *)rt_exec_part(x->e, a, d->lo + s) + from;
        tree_sum(a->desc.dtype, x->data[k] + at, src, (int)d->n,
                 (int64_t)(bytes / rt_dtype_size(a->desc.dtype)));
    }
}

static void add_nodes(const rt_exec_ranks *x, const rt_action *a, size_t at, size_t from, size_t bytes) {
    (void)from;
    for (int i = 0; i < x->nadd; i++) {
        const void *const src[2] = {x->data[x->add[i].to] + at, x->data[x->add[i].from] + at};
        tree_sum(a->desc.dtype, x->data[x->add[i].to] + at, src, 2,
                 (int64_t)(bytes / rt_dtype_size(a->desc.dtype)));
    }
    if (x->result)
        memcpy(x->result + at, x->data[0] + at, bytes);
}

static void hand_over(const rt_exec_ranks *x, const rt_action *a, size_t at, size_t from, size_t bytes) {
    memcpy((uint8_t *)rt_exec_sum(x->e, a) + from, (x->result ? x->result : x->data[0]) + at, bytes);
}

/* Chunks of bytes [x->lo, x->hi), one per job. */
typedef struct chunks {
    const rt_exec_ranks *x;
    on_sum fn;
} chunks;
enum { CHUNK_BYTES = RT_REDUCE_CHUNK * 4 };

static void chunk_job(void *ctx, int64_t job, int worker) {
    const chunks *c = ctx;
    (void)worker;
    const size_t lo = c->x->lo + (size_t)job * CHUNK_BYTES;
    each_sum(c->x, lo, RT_MIN(c->x->hi, lo + CHUNK_BYTES), c->fn);
}

static void each_chunk(rt_exec_ranks *x, size_t lo, size_t hi, on_sum fn, rt_pool *pool) {
    chunks c = {x, fn};
    x->lo = lo;
    x->hi = RT_MAX(lo, hi);
    rt_pool_run(pool, chunk_job, &c, (int64_t)((x->hi - lo + CHUNK_BYTES - 1) / CHUNK_BYTES));
}

/* Everybody gets all nodes. */
static rt_status sum_short(rt_exec_ranks *x, size_t bytes) {
    for (int k = 0; k < x->nnodes; k++)
        x->data[k] = x->mem + (size_t)k * bytes;
    for (int i = 0; i <= x->team.n; i++)
        x->offset[i] = (size_t)x->first[i] * bytes;
    x->result = NULL;
    each_sum(x, 0, bytes, sum_nodes);
    RT_TRY(rt_dist_allgather(x->team, x->mem, x->offset));
    each_sum(x, 0, bytes, add_nodes);
    each_sum(x, 0, bytes, hand_over);
    return RT_OK;
}

/* Rank i adds bytes [offset[i], offset[i + 1]). */
static rt_status sum_long(rt_exec_ranks *x, size_t bytes, rt_pool *pool) {
    const int lo = x->first[x->me], hi = x->first[x->me + 1];
    const size_t part = part_of(x, bytes);
    for (int i = 0; i <= x->team.n; i++)
        x->offset[i] = RT_MIN((size_t)i * part, bytes);
    const size_t begin = x->offset[x->me], mine = x->offset[x->me + 1] - begin;
    uint8_t *at = x->mem;
    for (int k = lo; k < hi; k++, at += bytes)
        x->data[k] = at;
    for (int k = 0; k < x->nnodes; k++)
        if (k < lo || k >= hi) {
            x->data[k] = (uint8_t *)((uintptr_t)at - begin);
            at += part;
        }
    x->result = at;
    each_chunk(x, 0, bytes, sum_nodes, pool);
    int64_t ns = 0, nr = 0;
    for (int i = 0; i < x->team.n; i++) {
        for (int k = lo; k < hi && i != x->me; k++)
            x->send[ns++] =
                (rt_piece){x->data[k] + x->offset[i], x->offset[i + 1] - x->offset[i], x->team.first + i};
        for (int k = x->first[i]; k < x->first[i + 1] && i != x->me; k++)
            x->receive[nr++] = (rt_piece){x->data[k] + begin, mine, x->team.first + i};
    }
    RT_TRY(rt_dist_exchange(x->send, ns, x->receive, nr));
    each_chunk(x, begin, begin + mine, add_nodes, pool);
    RT_TRY(rt_dist_allgather(x->team, x->result, x->offset));
    each_chunk(x, 0, bytes, hand_over, pool);
    return RT_OK;
}

/* A peer that failed leaves numbers behind that will not be used: the caller asks rt_dist_status. */
void rt_exec_ranks_sum(rt_exec *e, const rt_actions *l, int64_t lo, int64_t hi, rt_pool *pool) {
    rt_exec_ranks *x = e->ranks;
    size_t bytes = 0;
    x->e = e;
    x->sum = l->a + lo;
    x->nsum = hi - lo;
    for (int64_t i = 0; i < x->nsum; i++) {
        x->begin[i] = bytes;
        bytes += line_up(rt_desc_bytes(&x->sum[i].desc));
    }
    const rt_status st = bytes <= SHORT ? sum_short(x, bytes) : sum_long(x, bytes, pool);
    if (st != RT_OK)
        atomic_store(&e->cut, true);
}

void rt_exec_ranks_rows(rt_exec *e) {
    rt_exec_ranks *x = e->ranks;
    const rt_plan *p = e->p;
    rt_status st = RT_OK;
    for (int ph = 0; ph < p->laps; ph++)
        for (int64_t i = 0; i < p->slice_actions[ph].n && st == RT_OK; i++) {
            const rt_action *a = &p->slice_actions[ph].a[i];
            if (a->kind != RT_ACT_EMIT || e->output[a->index] == NULL)
                continue;
            const size_t part = rt_desc_bytes(&a->desc) / (size_t)a->groups;
            for (int k = 0; k <= x->team.n; k++)
                x->offset[k] =
                    (size_t)(k < x->team.n ? rt_share_of(p->slices, x->team.n, k).lo : p->slices) * part;
            for (int32_t m = 0; m < a->groups && st == RT_OK; m++)
                st = rt_dist_allgather(x->team,
                                       (uint8_t *)e->output[a->index] + (size_t)m * part * (size_t)p->slices,
                                       x->offset);
        }
    if (st != RT_OK)
        atomic_store(&e->cut, true);
}
