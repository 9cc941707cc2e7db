/*
 * predictor.c - networks in evaluation mode over many rows: validation during training, and prediction after
 * it.
 *
 * The plan is for a fixed number of rows; a last, smaller batch is padded by its last row. The work is the
 * list of pairs (batch, member), batch by batch, taken in waves. Workers take the pairs of a wave one by one,
 * each in a workspace of its own, and meet only at its end; what cannot be shared out evenly is cut into
 * slices. The smaller a pair, the more of them make a wave. Inputs are shared by the members and filled by the
 * pool into a ring:
 *
 *     pairs    (0,0) (0,1) (0,2) | (1,0) (1,1) (1,2) | ...          wave of 4: (0,0) (0,1) (0,2) (1,0)
 *     ring     batch b is in buffer b mod (pairs of a wave + 1)
 *
 * Weights in the layouts of their kernels are made once per network and call, and shared by all workers. With
 * small batches, where that costs as much as a prediction, every network keeps its own; otherwise there are no
 * more of them than pairs in a wave, and they take turns.
 *
 * Ranks share a wave: each takes pairs of its own, as many as it would alone, and then all get the outputs of all.
 *
 * Results are handed over on the calling thread in the order of the list, so that sums over them do not
 * depend on threads. After creation nothing is allocated.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "model/model_int.h"
#include <string.h>

enum { SMALL_BATCH = 32, PAIRS_MIN = 2, PAIRS_MAX = 64 }; /* pairs per worker in a wave */
enum { PACKED_MAX = 256 << 20, RING_MAX = 8 << 20 };      /* bytes */
#define WAVE_FLOPS 3e9 /* per worker: some 30 ms, so that a worker that is late holds up the others rarely */

/* Weights as the kernels want them. */
typedef struct ready {
    rt_packed *packed;
    const float *block; /* of which network; NULL: of none */
    int64_t used;       /* number of the wave that used it last */
} ready;

struct rt_predictor {
    const rt_params *params;
    rt_pool *pool;
    rt_shape row;
    int64_t batch, row_floats, outputs, out_floats; /* out_floats: of a pair */
    rt_graph *graph;
    rt_plan *plan;
    int workers, out_index;
    rt_exec **execs;     /* one per worker */
    const float **bound; /* the block whose parameters it has */
    int nready;
    ready *ready;
    bool keep;
    int64_t wave;  /* pairs */
    int64_t waves; /* so far, over all calls */
    float *ring;   /* (wave + 1, batch, row) */
    float *out;    /* (ranks, wave, student members, batch, outputs) */
    rt_ranks team;
    size_t *offset;   /* (ranks + 1): bytes of out that a rank fills */
    int64_t out_from; /* place of this rank's first pair in out */
    /* the call */
    const rt_batch_spec *spec;
    const float *const *blocks;
    int64_t members, at, first; /* first pair of the wave; first batch to fill */
    rt_run run;
};

/* ---- creation ---- */

/* At worst all convolutions are Winograd's: four times as many floats as parameters. */
bool rt_keep_networks(const rt_params *p, int networks) {
    return networks == 1 || (double)networks * 16.0 * (double)rt_params_floats(p) <= (double)PACKED_MAX;
}

/* Pairs of a wave: as many as make WAVE_FLOPS per worker, if their inputs are not too large; of networks with very
 * large weights, which all pairs of a wave have ready, one per worker. */
static int64_t choose_wave(const rt_predictor *p, double flops) {
    const double rows = (double)p->batch, input = 4.0 * (double)p->row_floats * rows * p->workers;
    const double pairs = RT_MIN(WAVE_FLOPS / (flops * rows + 1), (double)RING_MAX / (input + 1));
    const int64_t least = rt_plan_packed_bytes(p->plan) > PACKED_MAX ? 1 : PAIRS_MIN;
    return p->workers * RT_MAX(least, (int64_t)RT_MIN(pairs, (double)PAIRS_MAX));
}

static rt_status predictor_memory(rt_predictor *p, int64_t members) {
    size_t ring, out, all, packed;
    const size_t weights = rt_plan_packed_bytes(p->plan), floats = sizeof(float);
    p->out_floats = p->batch * p->outputs * members;
    RT_FAIL_IF(!rt_size_mul((size_t)(p->row_floats * p->batch) * floats, (size_t)p->wave + 1, &ring) ||
                   !rt_size_mul((size_t)p->out_floats * floats, (size_t)(p->wave * p->team.n), &out) ||
                   !rt_size_mul(rt_plan_bytes(p->plan) - weights, (size_t)p->workers, &all) ||
                   !rt_size_mul(weights, (size_t)p->nready, &packed) || !rt_size_add(ring, all, &all) ||
                   !rt_size_add(packed, all, &all) || !rt_size_add(out, all, &all),
               RT_E_MEMORY, "workspace too large");
    RT_TRY(rt_memory_check(all, "the workspace of predictions"));
    RT_TRY(rt_alloc(&p->ring, ring));
    RT_TRY(rt_alloc(&p->out, out));
    RT_TRY(rt_calloc(&p->offset, (size_t)p->team.n + 1, sizeof *p->offset));
    RT_TRY(rt_calloc(&p->execs, (size_t)p->workers, sizeof(void *)));
    RT_TRY(rt_calloc(&p->bound, (size_t)p->workers, sizeof(void *)));
    RT_TRY(rt_calloc(&p->ready, (size_t)p->nready, sizeof *p->ready));
    for (int i = 0; i < p->nready; i++)
        RT_TRY(rt_packed_create(&p->ready[i].packed, p->plan));
    for (int i = 0; i < p->workers; i++)
        RT_TRY(rt_exec_create_sharing(&p->execs[i], p->plan, p->pool));
    return RT_OK;
}

static rt_status predictor_init(rt_predictor *p, const rt_student *student, rt_params *params, int networks) {
    const double flops = rt_student_flops(student);
    const bool many = p->batch >= SMALL_BATCH, all_ready = !many && rt_keep_networks(params, networks);
    RT_TRY(rt_graph_create(&p->graph, p->batch, RT_DTYPE_F32));
    rt_build b = {.g = p->graph, .params = params};
    rt_val x = rt_graph_input(p->graph, "x", RT_DTYPE_F32, p->row, 1);
    rt_val y = rt_student_forward(student, &b, x);
    p->out_index = rt_graph_outputs(p->graph);
    rt_graph_output(p->graph, "y", y);
    RT_TRY(rt_graph_status(p->graph));
    RT_TRY(rt_plan_compile(&p->plan, p->graph,
                           (rt_plan_options){.whole_batch = rt_whole_batch(flops, networks),
                                             .v3 = rt_params_v3(params),
                                             .frozen = all_ready || many}));
    p->workers = rt_pool_workers(p->pool);
    p->wave = choose_wave(p, flops);
    p->nready = all_ready ? networks : (int)RT_MIN(networks, p->wave);
    return predictor_memory(p, rt_student_members(student));
}

rt_status rt_predictor_create(rt_predictor **out, const rt_student *student, rt_params *params, int64_t batch,
                              int networks, rt_pool *pool) {
    return rt_predictor_create_team(out, student, params, batch, networks, pool, rt_dist_all());
}

rt_status rt_predictor_create_team(rt_predictor **out, const rt_student *student, rt_params *params,
                                   int64_t batch, int networks, rt_pool *pool, rt_ranks team) {
    *out = NULL;
    rt_predictor *p;
    RT_TRY(rt_calloc(&p, 1, sizeof *p));
    const rt_arch_config *a = rt_net_config(rt_student_net(student));
    p->params = params;
    p->pool = pool;
    p->row = a->input;
    p->row_floats = rt_shape_elems(&a->input);
    p->outputs = a->outputs;
    p->batch = batch;
    p->team = team;
    rt_status st = predictor_init(p, student, params, networks);
    if (st != RT_OK)
        rt_predictor_destroy(&p);
    *out = p;
    return st;
}

void rt_predictor_destroy(rt_predictor **predictor) {
    rt_predictor *p = *predictor;
    *predictor = NULL;
    if (!p)
        return;
    for (int i = 0; p->execs && i < p->workers; i++)
        rt_exec_destroy(&p->execs[i]);
    for (int i = 0; p->ready && i < p->nready; i++)
        rt_packed_destroy(&p->ready[i].packed);
    rt_free(p->ready);
    rt_free(p->execs);
    rt_free(p->bound);
    rt_free(p->ring);
    rt_free(p->out);
    rt_free(p->offset);
    rt_plan_destroy(&p->plan);
    rt_graph_destroy(&p->graph);
    rt_free(p);
}

void rt_predictor_keep_blocks(rt_predictor *p) {
    p->keep = true;
}

/* ---- a wave ---- */

static float *ring_at(const rt_predictor *p, int64_t batch) {
    return p->ring + (batch % (p->wave + 1)) * p->batch * p->row_floats;
}

static void fill_job(void *ctx, int64_t job, int worker) {
    (void)worker;
    rt_predictor *p = ctx;
    int64_t b = p->first + job, rows = rt_batch_rows(p->spec, b);
    float *x = ring_at(p, b);
    rt_batch_fill(p->spec, 0, 0, b, NULL, x, NULL, NULL, NULL);
    for (int64_t r = rows; r < p->batch; r++)
        memcpy(x + r * p->row_floats, x + (rows - 1) * p->row_floats, (size_t)p->row_floats * sizeof(float));
}

/* The weights of a block: where they are ready, or else the ones not used for longest. */
static ready *find_ready(const rt_predictor *p, const float *block) {
    ready *r = &p->ready[0];
    for (int i = 0; i < p->nready; i++) {
        if (p->ready[i].block == block)
            return &p->ready[i];
        if (p->ready[i].used < r->used)
            r = &p->ready[i];
    }
    return r;
}

static void bind_block(rt_predictor *p, int worker, const float *block, rt_packed *packed) {
    rt_exec_bind_packed(p->execs[worker], packed);
    if (p->bound[worker] == block)
        return;
    rt_exec_bind_block(p->execs[worker], 0, block, rt_params_offsets(p->params), rt_params_count(p->params));
    p->bound[worker] = block;
}

static void make_ready(rt_predictor *p, const float *block) {
    ready *r = find_ready(p, block);
    r->used = p->waves;
    if (r->block == block)
        return;
    bind_block(p, 0, block, r->packed);
    rt_exec_prepare(p->execs[0], p->pool);
    r->block = block;
}

/* Pair `at + job` in the workspace of a worker. */
static rt_exec *bind_pair(rt_predictor *p, int64_t job, int worker) {
    const int64_t pair = p->at + job;
    const float *block = p->blocks[pair % p->members];
    bind_block(p, worker, block, find_ready(p, block)->packed);
    rt_exec_bind_input(p->execs[worker], 0, ring_at(p, pair / p->members));
    rt_exec_bind_output(p->execs[worker], p->out_index, p->out + (p->out_from + job) * p->out_floats);
    return p->execs[worker];
}

static void pair_job(void *ctx, int64_t job, int worker) {
    const rt_predictor *p = ctx;
    rt_exec_run_here(bind_pair(ctx, job, worker), &p->run, worker);
}

static void run_wave(rt_predictor *p, int64_t pairs) {
    p->waves++;
    for (int64_t i = 0; i < RT_MIN(pairs, p->members); i++)
        make_ready(p, p->blocks[(p->at + i) % p->members]);
    /* whole pairs as long as there is one for every worker */
    const int64_t whole = rt_plan_slices(p->plan) > 1 ? pairs - pairs % p->workers : pairs;
    rt_pool_run(p->pool, pair_job, p, whole);
    for (int64_t i = whole; i < pairs; i++) {
        rt_exec *e = bind_pair(p, i, 0);
        rt_exec_run(&e, &p->run, 1, p->pool);
    }
}

/* Pairs [at, at + n) by all ranks; on each, those of its share. */
static rt_status run_shared(rt_predictor *p, int64_t at, int64_t n) {
    const rt_share own = rt_share_of(n, p->team.n, rt_ranks_me(p->team));
    const int64_t mine = own.hi - own.lo, end = (at + own.hi - 1) / p->members + 1;
    p->at = at + own.lo;
    p->out_from = own.lo;
    p->first = RT_MAX(p->first, p->at / p->members);
    if (mine > 0) {
        rt_pool_run(p->pool, fill_job, p, RT_MAX(end - p->first, 0));
        p->first = RT_MAX(p->first, end);
        run_wave(p, mine);
    }
    for (int i = 0; i <= p->team.n; i++)
        p->offset[i] =
            (size_t)((i < p->team.n ? rt_share_of(n, p->team.n, i).lo : n) * p->out_floats) * sizeof(float);
    return rt_dist_allgather(p->team, p->out, p->offset);
}

rt_status rt_predictor_run(rt_predictor *p, const rt_subset *set, const float *const *blocks, int members,
                           rt_predictor_take take, void *user, const volatile sig_atomic_t *stop) {
    rt_batch_spec spec = {.set = set, .row = p->row, .batch = p->batch};
    const int64_t pairs = rt_batch_count(&spec) * members;
    RT_ASSERT(p->nready >= RT_MIN(members, p->wave));
    p->spec = &spec;
    p->blocks = blocks;
    p->members = members;
    p->first = 0;
    p->run = (rt_run){.params_unchanged = true, .stop = stop};
    for (int i = 0; i < p->nready && !p->keep; i++)
        p->ready[i].block = NULL; /* the blocks may have changed since the last call */
    for (int64_t at = 0; at < pairs; at += p->wave * p->team.n) {
        const int64_t n = RT_MIN(p->wave * p->team.n, pairs - at);
        RT_TRY(run_shared(p, at, n));
        double stopped = stop && *stop;
        RT_TRY(rt_dist_most(p->team, &stopped, 1));
        RT_FAIL_IF(stopped > 0, RT_E_INTERRUPTED, "interrupted while predicting"); /* and the wave is void */
        for (int64_t i = 0; i < n; i++) {
            const int64_t b = (at + i) / members;
            take(user, (int)((at + i) % members), b * p->batch, rt_batch_rows(&spec, b),
                 p->out + i * p->out_floats, p->batch * p->outputs);
        }
    }
    return RT_OK;
}
