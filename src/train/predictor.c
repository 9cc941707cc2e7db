/*
 * predictor.c - networks in evaluation mode over many rows: validation during training, and prediction after
 * it.
 *
 * The plan is for a fixed number of rows; a last, smaller batch is padded by its last row. The work is the
 * list of pairs (batch, member), batch by batch, taken in groups of as many as there are lanes. Inputs are
 * shared by the members and filled by the pool into a ring:
 *
 *     pairs    (0,0) (0,1) (0,2) | (1,0) (1,1) (1,2) | ...          group of 4: (0,0) (0,1) (0,2) (1,0)
 *     ring     batch b is in buffer b mod (lanes + 1)
 *
 * Weights in the layouts of their kernels are made once per network and call, and shared by all lanes. With
 * small batches, where that costs as much as a prediction, every network keeps its own; otherwise there are no
 * more of them than lanes, and they take turns.
 *
 * Results are handed over on the calling thread in the order of the list, so that sums over them do not
 * depend on threads. After creation nothing is allocated.
 */
#include "base/alloc.h"
#include "base/size.h"
#include "train/train_int.h"
#include <string.h>

enum { SMALL_BATCH = 32, KEPT_MAX = 256 << 20 };

typedef struct lane {
    rt_exec *exec;
    float *out; /* (student members, batch, outputs) */
    const float *bound;
} lane;

/* Weights as the kernels want them. */
typedef struct ready {
    rt_kept *kept;
    const float *block; /* of which network; NULL: of none */
    int64_t used;       /* number of the group that used it last */
} ready;

struct rt_predictor {
    const rt_params *params;
    rt_pool *pool;
    rt_shape row;
    int64_t batch, row_floats, outputs;
    rt_graph *graph;
    rt_plan *plan;
    int nlanes, out_index;
    lane *lanes;
    int nready;
    ready *ready;
    bool keep;
    int64_t group; /* of lanes, counted over all calls */
    rt_exec **execs;
    rt_run *runs;
    float *ring; /* (lanes + 1, batch, row) */
    /* the call */
    const rt_batch_spec *spec;
    const int64_t *order;
    int64_t first;
};

/* Whether each network has its weights ready all the time. */
static bool all_ready(const rt_predictor *p, int networks) {
    return p->batch < SMALL_BATCH && rt_keep_networks(p->params, networks);
}

static rt_status predictor_lanes(rt_predictor *p, int64_t members) {
    RT_TRY(rt_calloc(&p->lanes, (size_t)p->nlanes, sizeof *p->lanes));
    RT_TRY(rt_calloc(&p->execs, (size_t)p->nlanes, sizeof(void *)));
    RT_TRY(rt_calloc(&p->runs, (size_t)p->nlanes, sizeof *p->runs));
    RT_TRY(rt_calloc(&p->ready, (size_t)p->nready, sizeof *p->ready));
    for (int i = 0; i < p->nready; i++)
        RT_TRY(rt_kept_create(&p->ready[i].kept, p->plan));
    for (int i = 0; i < p->nlanes; i++) {
        RT_TRY(rt_exec_create_sharing(&p->lanes[i].exec, p->plan, p->pool));
        RT_TRY(rt_calloc(&p->lanes[i].out, (size_t)(p->batch * p->outputs * members), sizeof(float)));
        rt_exec_bind_output(p->lanes[i].exec, p->out_index, p->lanes[i].out);
        p->execs[i] = p->lanes[i].exec;
    }
    return RT_OK;
}

static rt_status predictor_init(rt_predictor *p, const rt_student *student, rt_params *params, int networks) {
    RT_TRY(rt_graph_create(&p->graph, p->batch, RT_DTYPE_F32));
    rt_build b = {.g = p->graph, .params = params};
    rt_val x = rt_graph_input(p->graph, "x", RT_DTYPE_F32, p->row, 1);
    rt_val y = rt_student_forward(student, &b, x);
    p->out_index = rt_graph_outputs(p->graph);
    rt_graph_output(p->graph, "y", y);
    RT_TRY(rt_graph_status(p->graph));
    RT_TRY(
        rt_plan_compile(&p->plan, p->graph,
                        (rt_plan_options){.whole_batch = rt_whole_batch(rt_student_flops(student), networks),
                                          .frozen = all_ready(p, networks)}));
    p->nlanes = 2 * rt_pool_workers(p->pool);
    p->nready = all_ready(p, networks) ? networks : RT_MIN(networks, p->nlanes);

    size_t one, all, kept;
    int64_t rows = (int64_t)(p->nlanes + 1) * p->batch;
    const size_t weights = rt_plan_kept_bytes(p->plan);
    RT_FAIL_IF(!rt_size_mul((size_t)p->row_floats * 4, (size_t)rows, &one) ||
                   !rt_size_mul(rt_plan_bytes(p->plan) - weights, (size_t)p->nlanes, &all) ||
                   !rt_size_mul(weights, (size_t)p->nready, &kept) || !rt_size_add(one, all, &all) ||
                   !rt_size_add(kept, all, &all),
               RT_E_MEMORY, "workspace too large");
    RT_TRY(rt_memory_check(all, "the workspace of predictions"));
    RT_TRY(rt_alloc(&p->ring, one));
    return predictor_lanes(p, rt_student_members(student));
}

rt_status rt_predictor_create(rt_predictor **out, const rt_student *student, rt_params *params, int64_t batch,
                              int networks, rt_pool *pool) {
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
    for (int i = 0; p->lanes && i < p->nlanes; i++) {
        rt_exec_destroy(&p->lanes[i].exec);
        rt_free(p->lanes[i].out);
    }
    for (int i = 0; p->ready && i < p->nready; i++)
        rt_kept_destroy(&p->ready[i].kept);
    rt_free(p->ready);
    rt_free(p->lanes);
    rt_free(p->execs);
    rt_free(p->runs);
    rt_free(p->ring);
    rt_plan_destroy(&p->plan);
    rt_graph_destroy(&p->graph);
    rt_free(p);
}

static float *ring_at(const rt_predictor *p, int64_t batch) {
    return p->ring + (batch % (p->nlanes + 1)) * p->batch * p->row_floats;
}

static void fill_job(void *ctx, int64_t job, int worker) {
    (void)worker;
    rt_predictor *p = ctx;
    int64_t b = p->first + job, rows = rt_batch_rows(p->spec, b);
    float *x = ring_at(p, b);
    rt_batch_fill(p->spec, 0, 0, b, p->order, x, NULL, NULL, NULL);
    for (int64_t r = rows; r < p->batch; r++)
        memcpy(x + r * p->row_floats, x + (rows - 1) * p->row_floats, (size_t)p->row_floats * sizeof(float));
}

/* The weights of a block: where they are ready, or where this group of lanes needs nothing else. */
static ready *find_ready(rt_predictor *p, const float *block) {
    ready *r = NULL;
    for (int i = 0; i < p->nready; i++) {
        if (p->ready[i].block == block)
            return &p->ready[i];
        if (r == NULL || p->ready[i].used < r->used)
            r = &p->ready[i];
    }
    return r;
}

static void bind(rt_predictor *p, int i, int64_t batch, const float *block) {
    lane *l = &p->lanes[i];
    ready *r = find_ready(p, block);
    if (l->bound != block) {
        for (int k = 0; k < rt_params_count(p->params); k++)
            /* Evaluation graphs update nothing: the block is only read. */
            rt_exec_bind_param(l->exec, k, (void *)(uintptr_t)(block + rt_params_get(p->params, k)->offset));
        l->bound = block;
    }
    rt_exec_bind_kept(l->exec, r->kept);
    if (r->block != block)
        rt_exec_prepare(l->exec, p->pool);
    r->block = block;
    r->used = p->group;
    p->runs[i] = (rt_run){.params_unchanged = true};
    rt_exec_bind_input(l->exec, 0, ring_at(p, batch));
}

/* At worst all convolutions are Winograd's: four times as many floats as parameters. */
bool rt_keep_networks(const rt_params *p, int networks) {
    return networks == 1 || (double)networks * 16.0 * (double)rt_params_floats(p) <= (double)KEPT_MAX;
}

void rt_predictor_keep_blocks(rt_predictor *p) {
    p->keep = true;
}

rt_status rt_predictor_run(rt_predictor *p, const rt_subset *set, const int64_t *order,
                           const float *const *blocks, int members, rt_predictor_take take, void *user,
                           const volatile sig_atomic_t *stop) {
    rt_batch_spec spec = {.set = set, .row = p->row, .batch = p->batch};
    int64_t items = rt_batch_count(&spec) * members, filled = 0;
    RT_ASSERT(p->nready >= RT_MIN(members, p->nlanes));
    p->spec = &spec;
    p->order = order;
    for (int i = 0; i < p->nready && !p->keep; i++)
        p->ready[i].block = NULL; /* the blocks may have changed since the last call */
    for (int64_t at = 0; at < items; at += p->nlanes) {
        RT_FAIL_IF(stop && *stop, RT_E_INTERRUPTED, "interrupted while predicting");
        int n = (int)RT_MIN((int64_t)p->nlanes, items - at);
        int64_t end = (at + n - 1) / members + 1;
        p->first = filled;
        if (end > filled)
            rt_pool_run(p->pool, fill_job, p, end - filled);
        filled = RT_MAX(filled, end);
        p->group++;
        for (int i = 0; i < n; i++)
            bind(p, i, (at + i) / members, blocks[(at + i) % members]);
        rt_exec_run(p->execs, p->runs, n, p->pool);
        for (int i = 0; i < n; i++) {
            int64_t b = (at + i) / members;
            take(user, (int)((at + i) % members), b * p->batch, rt_batch_rows(&spec, b), p->lanes[i].out,
                 p->batch * p->outputs);
        }
    }
    return RT_OK;
}
