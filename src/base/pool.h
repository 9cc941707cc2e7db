/*
 * pool.h - worker threads.
 *
 * A pool of n workers is the calling thread (worker 0) and n-1 others. rt_pool_run hands out jobs
 * 0..njobs-1 in order and returns when all are done. What a job computes must depend on its number alone,
 * never on the worker that runs it; then results do not depend on n. Workers spin briefly, then sleep. Each
 * worker runs with denormals flushed to zero and with OpenMP restricted to one thread (base knows nothing
 * of OpenMP: an init callback does that).
 */
#ifndef RT_BASE_POOL_H
#define RT_BASE_POOL_H

#include "base/status.h"

typedef struct rt_pool rt_pool;
typedef void (*rt_pool_job)(void *ctx, int64_t job, int worker);
typedef void (*rt_pool_init)(void *ctx, int worker);

enum { RT_POOL_MAX = 256 };

rt_status rt_pool_create(rt_pool **out, int workers) RT_MUST_CHECK; /* workers >= 1 */
void rt_pool_destroy(rt_pool **p);
int rt_pool_workers(const rt_pool *p);
/* Runs fn once on every worker (to set thread-local modes). */
void rt_pool_each(rt_pool *p, rt_pool_init fn, void *ctx);
void rt_pool_run(rt_pool *p, rt_pool_job fn, void *ctx, int64_t njobs); /* not re-entrant */
/* Processors this process may use: affinity mask, cgroup quota, and its share if others use the same. */
int rt_cpu_count(void);
void rt_cpu_share(int processes); /* so many use them, this one included */
/* Flush denormals to zero on this thread; returns the old mode for rt_denormals_restore. */
unsigned rt_denormals_flush(void);
void rt_denormals_restore(unsigned mode);

#endif
