/*
 * exec.c - running plans.
 *
 * A run is: prologue, then for each lap all slices (in any order, on any worker) and the section that
 * completes their sums. When there are at least as many members as workers, each worker takes whole members
 * and no worker waits for another; otherwise workers share the slices of a lap and meet at its end. Both
 * ways give the same bits: a slice is computed by one thread, sums over slices follow a fixed tree. So they do if
 * ranks share the slices (exec_ranks.c).
 */
#include "base/alloc.h"
#include "base/size.h"
#include "base/timer.h"
#include "kern/kern.h"
#include "plan/exec_int.h"
#include <string.h>

enum { SMALL_SECTION = 65536 };

/* Vendor libraries keep their number of threads per thread: each worker sets its own to one, once. */
static void init_worker(void *ctx, int worker) {
    (void)ctx;
    (void)worker;
    rt_kern_thread_init();
}

rt_status rt_packed_create(rt_packed **out, const rt_plan *p) {
    rt_packed *k = NULL;
    *out = NULL;
    RT_TRY(rt_calloc(&k, 1, sizeof *k));
    pthread_mutex_init(&k->lock, NULL);
    const rt_status st = rt_alloc(&k->mem, p->packed_bytes);
    if (st != RT_OK)
        rt_packed_destroy(&k);
    *out = k;
    return st;
}

void rt_packed_destroy(rt_packed **kp) {
    rt_packed *k = *kp;
    if (k == NULL)
        return;
    pthread_mutex_destroy(&k->lock);
    rt_free(k->mem);
    rt_free(k);
    *kp = NULL;
}

static rt_status create(rt_exec **out, const rt_plan *p, rt_pool *pool, rt_ranks team) {
    rt_exec *e = NULL;
    rt_status st = RT_OK;
    size_t slices = 0, bytes = 0;
    *out = NULL;
    RT_TRY(rt_calloc(&e, 1, sizeof *e));
    e->p = p;
    if (p->slices == 1) /* what is computed is the sum: all ranks do */
        team = rt_dist_alone();
    e->slices = rt_share_of(p->slices, team.n, rt_ranks_me(team));
    const int64_t own = e->slices.hi - e->slices.lo;
    e->rooms = p->independent ? RT_MIN(own, rt_pool_workers(pool)) : own;
    if (!rt_size_mul(p->slice_bytes, (size_t)e->rooms, &slices) ||
        !rt_size_add(slices, p->global_bytes, &bytes))
        RT_FAIL_GOTO(RT_E_MEMORY, "plan: %lld slices of %zu bytes are too large", (long long)p->slices,
                     p->slice_bytes);
    if (p->slices > RT_SLICES_MAX)
        RT_FAIL_GOTO(RT_E_USAGE, "plan: %lld slices, at most %d; use larger slices", (long long)p->slices,
                     RT_SLICES_MAX);
    if (team.n > 1)
        RT_TRY_GOTO(rt_exec_ranks_create(&e->ranks, p, team));
    RT_TRY_GOTO(rt_alloc(&e->block, bytes));
    e->slice_mem = e->block;
    e->global_mem = e->block + slices;
    RT_TRY_GOTO(rt_calloc(&e->param, (size_t)p->nslots + 1, sizeof *e->param));
    RT_TRY_GOTO(rt_calloc(&e->input, (size_t)p->ninputs + 1, sizeof *e->input));
    RT_TRY_GOTO(rt_calloc(&e->feed, (size_t)p->nfeeds + 1, sizeof *e->feed));
    RT_TRY_GOTO(rt_calloc(&e->output, (size_t)p->noutputs + 1, sizeof *e->output));
    for (int64_t i = 0; i < p->nstep; i++)
        for (int w = 0;
             p->step[i].kern != NULL && p->step[i].kern->attach != NULL && w < rt_pool_workers(pool); w++)
            RT_TRY_GOTO(p->step[i].kern->attach(p->step[i].state, w));
    rt_pool_each(pool, init_worker, NULL);
    *out = e;
    e = NULL;
done:
    rt_exec_destroy(&e);
    return st;
}

rt_status rt_exec_create_sharing(rt_exec **out, const rt_plan *p, rt_pool *pool) {
    return create(out, p, pool, rt_dist_alone());
}

rt_status rt_exec_create(rt_exec **out, const rt_plan *p, rt_pool *pool) {
    return rt_exec_create_team(out, p, pool, rt_dist_alone());
}

rt_status rt_exec_create_team(rt_exec **out, const rt_plan *p, rt_pool *pool, rt_ranks team) {
    RT_TRY(create(out, p, pool, team));
    const rt_status st = rt_packed_create(&(*out)->own, p);
    if (st != RT_OK)
        rt_exec_destroy(out);
    else
        (*out)->packed = (*out)->own;
    return st;
}

void rt_exec_destroy(rt_exec **ep) {
    rt_exec *e = *ep;
    if (e == NULL)
        return;
    rt_packed_destroy(&e->own);
    rt_exec_ranks_destroy(&e->ranks);
    rt_free(e->block);
    rt_free(e->param);
    rt_free(e->input);
    rt_free(e->feed);
    rt_free(e->output);
    rt_free(e);
    *ep = NULL;
}

void rt_exec_bind_packed(rt_exec *e, rt_packed *k) {
    e->packed = k;
}
void rt_exec_bind_own_block(rt_exec *e, int first, float *block, const int64_t *offset, int n) {
    for (int i = 0; i < n; i++)
        rt_exec_bind_param(e, first + i, block + offset[i]);
}
RT_UNUSED static bool updates(const rt_plan *p, int first, int n) {
    for (int i = 0; i < p->noutputs; i++) {
        const int slot = rt_graph_get_output(p->g, i)->update_slot;
        if (slot >= first && slot < first + n)
            return true;
    }
    return false;
}
void rt_exec_bind_block(rt_exec *e, int first, const float *block, const int64_t *offset, int n) {
    RT_ASSERT(!updates(e->p, first, n));
    rt_exec_bind_own_block(e, first, (float *)(uintptr_t)block, offset, n);
}
void rt_exec_bind_param(rt_exec *e, int slot, void *data) {
    if (slot < e->p->nslots)
        e->param[slot] = data;
}
void rt_exec_bind_input(rt_exec *e, int slot, const void *data) {
    if (slot < e->p->ninputs)
        e->input[slot] = data;
}
void rt_exec_bind_feed(rt_exec *e, int slot, const void *data) {
    if (slot < e->p->nfeeds)
        e->feed[slot] = data;
}
void rt_exec_bind_output(rt_exec *e, int i, void *data) {
    e->output[i] = data;
}

/* Where something runs: which slice, in which workspace. */
typedef struct spot {
    int64_t slice, room;
} spot;
static const spot k_global;

static spot spot_of(const rt_exec *e, int64_t slice, int64_t room) {
    const int64_t own = e->slices.hi - e->slices.lo;
    return (spot){slice, e->rooms < own ? room : slice - e->slices.lo};
}

static void *resolve(const rt_exec *e, const rt_ref *r, spot at) {
    switch (r->place) {
    case RT_PLACE_SLICE:
        return e->slice_mem + (size_t)at.room * e->p->slice_bytes + r->offset;
    case RT_PLACE_GLOBAL:
        return e->global_mem + r->offset;
    case RT_PLACE_PACKED:
        return e->packed->mem + r->offset;
    case RT_PLACE_PARAM:
        return e->param[r->slot];
    case RT_PLACE_INPUT:
        return (uint8_t *)(uintptr_t)e->input[r->slot] + (size_t)(at.slice * e->p->slice) * r->row_bytes;
    case RT_PLACE_FEED:
        return (void *)(uintptr_t)e->feed[r->slot];
    case RT_PLACE_CONST:
        return e->p->consts + r->offset;
    case RT_PLACE_OUTPUT:
        return e->output[r->slot] != NULL ? e->output[r->slot] : e->global_mem + r->offset;
    case RT_PLACE_NONE:
        break;
    }
    return NULL;
}

static void resolve_operands(const rt_exec *e, const rt_pstep *s, spot at, const void **in) {
    for (int i = 0; i < s->p.nin; i++)
        in[i] = resolve(e, &s->in[i], at);
}

static void run_step(const rt_exec *e, const rt_pstep *s, spot at, const rt_run *run, int worker) {
    const void *in[RT_OP_MAX_IN], *with_in[RT_OP_MAX_IN];
    rt_kern_with with;
    resolve_operands(e, s, at, in);
    if (s->with != NULL) {
        resolve_operands(e, s->with, at, with_in);
        with = (rt_kern_with){
            .p = &s->with->p, .state = s->with->state, .out = resolve(e, &s->with->out, at), .in = with_in};
    }
    const rt_kern_ctx ctx = {.worker = worker,
                             .scratch = s->scratch > 0 ? resolve(e, &s->scratch_ref, at) : NULL,
                             .seed = run->seed,
                             .step = run->step,
                             .row0 = at.slice * e->p->slice,
                             .batch = e->p->batch,
                             .side = s->side > 0 ? resolve(e, &e->p->step[s->side].out, at) : NULL,
                             .with = s->with != NULL ? &with : NULL};
    s->kern->run(s->state, &s->p, resolve(e, &s->out, at), in, &ctx);
}

/* Rows of a slice between its own block (groups x slice rows) and a buffer of the whole batch (groups x
 * batch rows). */
static void copy_rows(const rt_exec *e, const rt_action *a, uint8_t *slice_data, uint8_t *batch_data,
                      int64_t slice, bool out) {
    const size_t row = rt_desc_bytes(&a->desc) / (size_t)(a->groups * e->p->slice);
    const size_t part = row * (size_t)e->p->slice, whole = row * (size_t)e->p->batch;
    for (int32_t m = 0; m < a->groups; m++) {
        uint8_t *s = slice_data + (size_t)m * part,
                *b = batch_data + (size_t)m * whole + (size_t)slice * part;
        memcpy(out ? b : s, out ? s : b, part);
    }
}

/* Around every action; without a profile no more than a branch. */
static double clock_start(const rt_run *run) {
    return run->profile != NULL ? rt_time_now() : 0;
}
static void clock_stop(const rt_run *run, const rt_action *a, double start) {
    if (run->profile != NULL)
        run->profile[a->id] += rt_time_now() - start;
}

/* In parts, one before each of n actions: all at once they would wait for each other, and the first action for
 * them. */
static void prefetch_part(const rt_run *run, int64_t i, int64_t n) {
    enum { LINE = 16, MOST = 32768 };
    const int64_t lines = run->soon_floats <= MOST ? (run->soon_floats + LINE - 1) / LINE : 0;
    for (int64_t k = lines * i / n; k < lines * (i + 1) / n; k++)
        __builtin_prefetch(run->soon + k * LINE, 1, 2);
}

/* What workers have not begun when one sees the flag is not done; nor are sections, and so no parameter changes. A
 * run whose slices are all through is finished: its last section is short. */
static bool is_cut(rt_exec *e, const rt_run *run) {
    if (run->stop != NULL && *run->stop)
        atomic_store_explicit(&e->cut, true, memory_order_relaxed);
    return rt_exec_is_cut(e);
}

bool rt_exec_is_cut(const rt_exec *e) {
    return atomic_load_explicit(&e->cut, memory_order_relaxed);
}

static void run_lap(rt_exec *e, int lap, spot at, const rt_run *run, int worker) {
    const rt_actions *l = &e->p->slice_actions[lap];
    for (int64_t i = 0; i < l->n && !is_cut(e, run); i++) {
        const rt_action *a = &l->a[i];
        const double start = clock_start(run);
        if (run->soon != NULL)
            prefetch_part(run, i, l->n);
        if (a->kind == RT_ACT_STEP)
            run_step(e, &e->p->step[a->index], at, run, worker);
        else if (a->kind == RT_ACT_GATHER)
            copy_rows(e, a, resolve(e, &a->dst, at), (uint8_t *)(uintptr_t)e->input[a->index], at.slice,
                      false);
        else if (e->output[a->index] != NULL)
            copy_rows(e, a, resolve(e, &a->src, at), e->output[a->index], at.slice, true);
        clock_stop(run, a, start);
    }
}

void *rt_exec_part(const rt_exec *e, const rt_action *a, int64_t slice) {
    return resolve(e, &a->src, (spot){slice, slice - e->slices.lo});
}
void *rt_exec_sum(const rt_exec *e, const rt_action *a) {
    return resolve(e, &a->dst, k_global);
}

static void reduce(const rt_exec *e, const rt_action *a, int64_t lo, int64_t hi) {
    const void *src[RT_SLICES_MAX];
    const int n = (int)e->p->slices;
    for (int s = 0; s < n; s++)
        src[s] = rt_exec_part(e, a, s);
    void *dst = rt_exec_sum(e, a);
    if (a->desc.dtype == RT_DTYPE_F64)
        rt_k_tree_sum_f64(dst, (const double *const *)src, n, lo, hi);
    else
        rt_k_tree_sum_f32(dst, (const float *const *)src, n, lo, hi);
}

static void run_global(const rt_exec *e, const rt_action *a, const rt_run *run, int worker) {
    const double start = clock_start(run);
    switch (a->kind) {
    case RT_ACT_STEP:
        run_step(e, &e->p->step[a->index], k_global, run, worker);
        break;
    case RT_ACT_REDUCE:
        reduce(e, a, 0, rt_desc_elems(&a->desc));
        break;
    case RT_ACT_COPY:
        if (e->output[a->index] != NULL)
            memcpy(e->output[a->index], resolve(e, &a->src, k_global), rt_desc_bytes(&a->desc));
        break;
    case RT_ACT_UPDATE:
        memcpy(e->param[a->index], resolve(e, &a->src, k_global), rt_desc_bytes(&a->desc));
        break;
    case RT_ACT_GATHER:
    case RT_ACT_EMIT:
        break;
    }
    clock_stop(run, a, start);
}

/* True, with the lock taken, if the first npacked actions of the prologue have to run: packed_end follows. */
static bool packed_begin(rt_exec *e, const rt_run *run) {
    rt_packed *k = e->packed;
    if (e->p->npacked == 0 || (run->params_unchanged && atomic_load_explicit(&k->made, memory_order_acquire)))
        return false;
    pthread_mutex_lock(&k->lock);
    if (!run->params_unchanged || !atomic_load_explicit(&k->made, memory_order_relaxed))
        return true;
    pthread_mutex_unlock(&k->lock);
    return false;
}
static void packed_end(rt_exec *e) {
    atomic_store_explicit(&e->packed->made, true, memory_order_release);
    pthread_mutex_unlock(&e->packed->lock);
}

/* ---- a whole member on one worker ---- */
typedef struct runs {
    rt_exec *const *e;
    const rt_run *run;
    int n, lap;
    /* sharing a section */
    const rt_actions *list;
    int64_t lo, hi;
} runs;

void rt_exec_run_here(rt_exec *e, const rt_run *run, int worker) {
    const rt_plan *p = e->p;
    atomic_store(&e->cut, false);
    if (packed_begin(e, run)) {
        for (int64_t i = 0; i < p->npacked; i++)
            run_global(e, &p->prologue.a[i], run, worker);
        packed_end(e);
    }
    for (int64_t i = p->npacked; i < p->prologue.n; i++)
        run_global(e, &p->prologue.a[i], run, worker);
    for (int ph = 0; ph < p->laps; ph++) {
        for (int64_t s = 0; s < p->slices; s++)
            run_lap(e, ph, spot_of(e, s, 0), run, worker);
        for (int64_t i = 0; i < p->section[ph].n && !rt_exec_is_cut(e); i++)
            run_global(e, &p->section[ph].a[i], run, worker);
    }
}

static void whole_member(void *ctx, int64_t job, int worker) {
    const runs *r = ctx;
    rt_exec_run_here(r->e[job], &r->run[job], worker);
}

/* ---- members whose slices are shared by all workers ---- */
static void one_slice(void *ctx, int64_t job, int worker) {
    const runs *r = ctx;
    run_lap(r->e[0], r->lap, spot_of(r->e[0], r->e[0]->slices.lo + job, worker), r->run, worker);
}

static void one_action(void *ctx, int64_t job, int worker) {
    const runs *r = ctx;
    run_global(r->e[0], &r->list->a[r->lo + job], r->run, worker);
}

/* Chunks of all sums of a section, numbered through. */
static void one_chunk(void *ctx, int64_t job, int worker) {
    const runs *r = ctx;
    (void)worker;
    for (int64_t i = r->lo; i < r->hi; i++) {
        const int64_t n = rt_desc_elems(&r->list->a[i].desc),
                      chunks = (n + RT_REDUCE_CHUNK - 1) / RT_REDUCE_CHUNK;
        if (job < chunks) {
            reduce(r->e[0], &r->list->a[i], job * RT_REDUCE_CHUNK, RT_MIN(n, (job + 1) * RT_REDUCE_CHUNK));
            return;
        }
        job -= chunks;
    }
}

static size_t action_bytes(const rt_plan *p, const rt_action *a) {
    return a->kind == RT_ACT_STEP ? rt_desc_bytes(&p->step[a->index].p.out) : rt_desc_bytes(&a->desc);
}

/* Runs a list of global actions, sorted by level; large levels are shared by all workers. */
static void shared_section(runs *r, const rt_actions *l, rt_pool *pool) {
    const rt_plan *p = r->e[0]->p;
    r->list = l;
    for (int64_t lo = 0, hi; lo < l->n; lo = hi) {
        const bool sums = l->a[lo].kind == RT_ACT_REDUCE;
        size_t bytes = 0;
        int64_t chunks = 0;
        for (hi = lo; hi < l->n && (sums ? l->a[hi].kind == RT_ACT_REDUCE : l->a[hi].level == l->a[lo].level);
             hi++) {
            bytes += action_bytes(p, &l->a[hi]);
            if (sums)
                chunks += (rt_desc_elems(&l->a[hi].desc) + RT_REDUCE_CHUNK - 1) / RT_REDUCE_CHUNK;
        }
        r->lo = lo;
        r->hi = hi;
        if (sums && r->e[0]->ranks)
            rt_exec_ranks_sum(r->e[0], l, lo, hi, pool);
        else if (bytes < SMALL_SECTION)
            for (int64_t i = lo; i < hi; i++)
                run_global(r->e[0], &l->a[i], r->run, 0);
        else if (sums)
            rt_pool_run(pool, one_chunk, r, chunks);
        else
            rt_pool_run(pool, one_action, r, hi - lo);
    }
}

/* Actions [first, end) of the prologue. */
static void shared_prologue(rt_exec *e, const rt_run *run, int64_t first, int64_t end, rt_pool *pool) {
    const rt_actions part = {.a = e->p->prologue.a + first, .n = end - first};
    runs r = {.e = &e, .run = run, .n = 1};
    shared_section(&r, &part, pool);
}

static void shared_packing(rt_exec *e, const rt_run *run, rt_pool *pool) {
    if (!packed_begin(e, run))
        return;
    shared_prologue(e, run, 0, e->p->npacked, pool);
    packed_end(e);
}

void rt_exec_prepare(rt_exec *e, rt_pool *pool) {
    const rt_run run = {0};
    shared_packing(e, &run, pool);
}

static void shared_member(rt_exec *e, const rt_run *run, rt_pool *pool) {
    const rt_plan *p = e->p;
    runs r = {.e = &e, .run = run, .n = 1};
    atomic_store(&e->cut, false);
    shared_packing(e, run, pool);
    shared_prologue(e, run, p->npacked, p->prologue.n, pool);
    for (r.lap = 0; r.lap < p->laps; r.lap++) {
        rt_pool_run(pool, one_slice, &r, e->slices.hi - e->slices.lo);
        if (rt_exec_is_cut(e))
            return;
        shared_section(&r, &p->section[r.lap], pool);
    }
    if (e->ranks)
        rt_exec_ranks_rows(e);
}

void rt_exec_run(rt_exec *const *e, const rt_run *run, int n, rt_pool *pool) {
    const int workers = rt_pool_workers(pool);
    int i = 0;
    const unsigned mode = rt_denormals_flush();
    RT_ASSERT(workers == 1 || n == 0 || run[0].profile == NULL);
    if ((n >= workers || n > 1) && !e[0]->ranks) {
        /* whole members while there are enough for every worker; the rest is shared */
        const int whole = workers > 1 ? n - n % workers : n;
        runs r = {.e = e, .run = run, .n = whole};
        if (whole > 0)
            rt_pool_run(pool, whole_member, &r, whole);
        i = whole;
    }
    for (; i < n; i++)
        shared_member(e[i], &run[i], pool);
    rt_denormals_restore(mode);
}
