/*
 * pool.c - worker threads that share out numbered jobs.
 *
 * A training step runs about a hundred parallel sections, so starting one must cost a few microseconds, and
 * a worker that the operating system does not schedule must not hold up the others. Hence the caller waits
 * for jobs, never for workers: when all jobs are claimed and finished the section is over, whether or not
 * every worker woke up.
 *
 *     ticket:  | 32 bits: number of the section | 32 bits: jobs not yet claimed |
 *
 * A job is claimed by a compare-and-swap that decrements the ticket. Since the section's number is in the
 * same word, a late worker cannot claim a job of a later section with the function of an earlier one: if
 * its swap succeeds the section is still open, thus fn, ctx and njobs are still the ones it read.
 * `unfinished` counts jobs that are not done; the caller leaves at zero.
 *
 * Idle workers spin a few tens of microseconds, then sleep on a condition variable. The sleeper announces
 * itself before its last look at the ticket and the caller publishes the ticket before its look at
 * `sleepers` (all sequentially consistent), so no wake-up is lost. With more workers than processors a
 * spinning thread would steal the time of a working one; then it yields.
 */
#include "base/pool.h"
#include "base/alloc.h"
#include "base/sigguard.h"
#include "base/timer.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#define SPIN_SECONDS 40e-6
#define JOBS_PER_SECTION (INT64_C(1) << 31)

typedef struct worker {
    rt_pool *pool;
    int number;
    pthread_t thread;
} worker;

struct rt_pool {
    RT_ALIGNED(64) _Atomic(uint64_t) ticket;
    RT_ALIGNED(64) _Atomic(int64_t) unfinished;
    RT_ALIGNED(64) _Atomic(rt_pool_job) fn; /* what the open section runs */
    _Atomic(void *) ctx;
    _Atomic(int64_t) njobs, first;
    RT_ALIGNED(64) _Atomic(int) sleepers;
    _Atomic(int) caller_sleeps;
    _Atomic(unsigned) each_number; /* rt_pool_each: bumped once per call */
    _Atomic(int) each_left;        /* workers that have not run it yet */
    _Atomic(int) stop;
    pthread_mutex_t mutex;
    pthread_cond_t wake, done;
    rt_pool_init each_fn;
    void *each_ctx;
    int workers;
    bool crowded; /* more workers than processors */
    worker *w;
};

unsigned rt_denormals_flush(void) {
#if defined(__x86_64__)
    unsigned old = _mm_getcsr();
    _mm_setcsr(old | 0x8000u | 0x0040u); /* flush results to zero, treat inputs as zero */
    return old;
#else
    return 0;
#endif
}

void rt_denormals_restore(unsigned mode) {
#if defined(__x86_64__)
    _mm_setcsr(mode);
#else
    (void)mode;
#endif
}

typedef struct spinner {
    double deadline;
    unsigned turns;
    bool crowded;
} spinner;

static spinner spin_begin(const rt_pool *p) {
    return (spinner){.crowded = p->crowded};
}

/* One turn of a waiting loop; false when it is time to sleep. The clock costs more than a turn. */
static bool spin(spinner *s) {
    s->turns++;
    if (s->crowded) {
        sched_yield();
    } else {
#if defined(__x86_64__)
        _mm_pause();
#endif
        if (s->turns % 16 != 0)
            return true;
    }
    double now = rt_time_now();
    if (s->deadline == 0.0)
        s->deadline = now + SPIN_SECONDS;
    return now < s->deadline;
}

/* Claims and runs jobs until none is left in the open section. */
static void work(rt_pool *p, int number) {
    int64_t finished = 0;
    uint64_t ticket = atomic_load(&p->ticket);
    while ((uint32_t)ticket != 0) {
        rt_pool_job fn = atomic_load_explicit(&p->fn, memory_order_relaxed);
        void *ctx = atomic_load_explicit(&p->ctx, memory_order_relaxed);
        int64_t njobs = atomic_load_explicit(&p->njobs, memory_order_relaxed);
        int64_t first = atomic_load_explicit(&p->first, memory_order_relaxed);
        if (!atomic_compare_exchange_weak(&p->ticket, &ticket, ticket - 1))
            continue;
        fn(ctx, first + njobs - (int64_t)(uint32_t)ticket, number);
        finished++;
        ticket = atomic_load(&p->ticket);
        /* `finished` holds jobs of one section only: while they are uncounted no other section can open. */
    }
    if (finished == 0)
        return;
    bool last = atomic_fetch_sub(&p->unfinished, finished) == finished;
    if (last && atomic_load(&p->caller_sleeps)) {
        pthread_mutex_lock(&p->mutex);
        pthread_cond_signal(&p->done);
        pthread_mutex_unlock(&p->mutex);
    }
}

static bool something_to_do(rt_pool *p, unsigned each_seen) {
    return (uint32_t)atomic_load(&p->ticket) != 0 || atomic_load(&p->each_number) != each_seen ||
           atomic_load(&p->stop);
}

static void run_each(rt_pool *p, int number) {
    p->each_fn(p->each_ctx, number);
    if (atomic_fetch_sub(&p->each_left, 1) == 1) {
        pthread_mutex_lock(&p->mutex);
        pthread_cond_signal(&p->done);
        pthread_mutex_unlock(&p->mutex);
    }
}

static void *worker_main(void *arg) {
    worker *w = arg;
    rt_pool *p = w->pool;
    unsigned each_seen = 0;
    rt_denormals_flush();
    rt_sigguard_unneeded(); /* all signals are blocked here */
    while (!atomic_load(&p->stop)) {
        spinner s = spin_begin(p);
        while (!something_to_do(p, each_seen) && spin(&s))
            ;
        if (!something_to_do(p, each_seen)) {
            pthread_mutex_lock(&p->mutex);
            atomic_fetch_add(&p->sleepers, 1);
            while (!something_to_do(p, each_seen))
                pthread_cond_wait(&p->wake, &p->mutex);
            atomic_fetch_sub(&p->sleepers, 1);
            pthread_mutex_unlock(&p->mutex);
        }
        unsigned each_number = atomic_load(&p->each_number);
        if (each_number != each_seen) {
            each_seen = each_number;
            run_each(p, w->number);
        }
        work(p, w->number);
    }
    return NULL;
}

static void wake_workers(rt_pool *p, int64_t wanted) {
    int sleepers = atomic_load(&p->sleepers);
    if (sleepers == 0)
        return;
    pthread_mutex_lock(&p->mutex);
    if (wanted >= sleepers)
        pthread_cond_broadcast(&p->wake);
    else
        for (int64_t i = 0; i < wanted; i++)
            pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->mutex);
}

static void run_section(rt_pool *p, rt_pool_job fn, void *ctx, int64_t first, int64_t njobs) {
    atomic_store_explicit(&p->fn, fn, memory_order_relaxed);
    atomic_store_explicit(&p->ctx, ctx, memory_order_relaxed);
    atomic_store_explicit(&p->first, first, memory_order_relaxed);
    atomic_store_explicit(&p->njobs, njobs, memory_order_relaxed);
    atomic_store(&p->unfinished, njobs);
    uint64_t section = (atomic_load_explicit(&p->ticket, memory_order_relaxed) >> 32) + 1;
    atomic_store(&p->ticket, section << 32 | (uint64_t)njobs);
    wake_workers(p, njobs - 1);
    work(p, 0);

    spinner s = spin_begin(p);
    while (atomic_load(&p->unfinished) != 0 && spin(&s))
        ;
    if (atomic_load(&p->unfinished) != 0) {
        pthread_mutex_lock(&p->mutex);
        atomic_store(&p->caller_sleeps, 1);
        while (atomic_load(&p->unfinished) != 0)
            pthread_cond_wait(&p->done, &p->mutex);
        atomic_store(&p->caller_sleeps, 0);
        pthread_mutex_unlock(&p->mutex);
    }
}

void rt_pool_run(rt_pool *p, rt_pool_job fn, void *ctx, int64_t njobs) {
    unsigned mode = rt_denormals_flush();
    if (p->workers == 1 || njobs <= 1) {
        for (int64_t i = 0; i < njobs; i++)
            fn(ctx, i, 0);
    } else {
        for (int64_t first = 0; first < njobs; first += JOBS_PER_SECTION)
            run_section(p, fn, ctx, first, RT_MIN(njobs - first, JOBS_PER_SECTION));
    }
    rt_denormals_restore(mode);
}

void rt_pool_each(rt_pool *p, rt_pool_init fn, void *ctx) {
    if (p->workers > 1) {
        p->each_fn = fn;
        p->each_ctx = ctx;
        atomic_store(&p->each_left, p->workers - 1);
        atomic_fetch_add(&p->each_number, 1);
        wake_workers(p, p->workers);
    }
    fn(ctx, 0);
    pthread_mutex_lock(&p->mutex);
    while (atomic_load(&p->each_left) != 0)
        pthread_cond_wait(&p->done, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
}

int rt_pool_workers(const rt_pool *p) {
    return p->workers;
}

/* Threads start with all signals blocked: signals belong to the program's own threads. */
static rt_status start_workers(rt_pool *p, int workers) {
    sigset_t all, old;
    sigfillset(&all);
    int err = pthread_sigmask(SIG_SETMASK, &all, &old);
    RT_FAIL_IF(err, RT_E_FAILED, "cannot block signals for worker threads: %s", strerror(err));
    while (!err && p->workers < workers) {
        worker *w = &p->w[p->workers];
        *w = (worker){.pool = p, .number = p->workers};
        err = pthread_create(&w->thread, NULL, worker_main, w);
        if (!err)
            p->workers++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    RT_FAIL_IF(err, RT_E_FAILED, "cannot start worker thread %d of %d: %s", p->workers, workers,
               strerror(err));
    return RT_OK;
}

rt_status rt_pool_create(rt_pool **out, int workers) {
    *out = NULL;
    RT_FAIL_IF(workers < 1 || workers > RT_POOL_MAX, RT_E_USAGE, "%d worker threads, wanted 1 to %d", workers,
               RT_POOL_MAX);
    rt_pool *p;
    RT_TRY(rt_calloc(&p, 1, sizeof *p));
    rt_status st = rt_calloc(&p->w, (size_t)workers, sizeof *p->w);
    if (st != RT_OK) {
        rt_free(p);
        return st;
    }
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    p->workers = 1;
    p->crowded = workers > rt_cpu_count();
    st = start_workers(p, workers);
    if (st != RT_OK)
        rt_pool_destroy(&p);
    *out = p;
    return st;
}

void rt_pool_destroy(rt_pool **pool) {
    rt_pool *p = *pool;
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    atomic_store(&p->stop, 1);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->mutex);
    for (int i = 1; i < p->workers; i++)
        pthread_join(p->w[i].thread, NULL);
    pthread_cond_destroy(&p->done);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->mutex);
    rt_free(p->w);
    rt_free(p);
    *pool = NULL;
}
