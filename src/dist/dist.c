/*
 * dist.c - the world of this process: who started it, joining, failing together, leaving.
 *
 * Messages carry one of six tags. DATA is what callers exchange. NEWS goes from a rank that fails to all others, and
 * every call that waits looks for it. After that no rank waits for data any more, so each receives and drops what
 * comes until its own sends are done: buffers are never given back while a message is on its way from them. At the END
 * each rank reports to rank 0; when all have, the FINAL word goes to all. LIFE and STOP belong to watchdog.c.
 */
#include "dist/dist.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/timer.h"
#include "dist/dist_int.h"
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef RT_LIBDIR /* where libraries are installed, from the prefix and from the root */
#define RT_LIBDIR "lib"
#define RT_FULL_LIBDIR "/usr/local/lib"
#endif

rt_world rt_the_world = {.size = 1, .team = {0, 1}, .neighbours = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
#define W (&rt_the_world)

int rt_dist_rank(void) {
    return W->rank - W->team.first;
}
int rt_dist_size(void) {
    return W->team.n;
}
rt_ranks rt_dist_all(void) {
    return (rt_ranks){0, W->team.n};
}
rt_ranks rt_dist_alone(void) {
    return (rt_ranks){rt_dist_rank(), 1};
}
int rt_dist_neighbours(void) {
    return W->neighbours;
}
static bool may_idle;

void rt_dist_let_idle(bool on) {
    may_idle = on;
}
bool rt_dist_may_idle(void) {
    return may_idle;
}

const char *rt_dist_library(void) {
    return W->t ? W->t->name : "";
}

rt_share rt_share_of(int64_t things, int64_t parts, int64_t i) {
    const int64_t each = things / parts, more = things % parts;
    const int64_t lo = i * each + RT_MIN(i, more);
    return (rt_share){lo, lo + each + (i < more)};
}

rt_team rt_team_of(rt_ranks all, int64_t members, int rank) {
    const int me = rank - all.first;
    if (members >= all.n)
        return (rt_team){{rank, 1}, rt_share_of(members, all.n, me)};
    for (int64_t m = 0;; m++) {
        const rt_share s = rt_share_of(all.n, members, m);
        if (me < s.hi)
            return (rt_team){{all.first + (int)s.lo, (int)(s.hi - s.lo)}, {m, m + 1}};
    }
}

int rt_team_leader(rt_ranks all, int64_t members, int64_t member) {
    if (members < all.n)
        return all.first + (int)rt_share_of(all.n, members, member).lo;
    int i = 0;
    while (rt_share_of(members, all.n, i).hi <= member)
        i++;
    return all.first + i;
}

/* ---- the lock, and waiting ---- */

void rt_world_lock(void) {
    for (int i = 0; i < 1000 && atomic_load_explicit(&W->waiting, memory_order_relaxed) > 0; i++)
        sched_yield();
    pthread_mutex_lock(&W->lock);
}
void rt_world_lock_side(void) {
    atomic_fetch_add(&W->waiting, 1);
    pthread_mutex_lock(&W->lock);
    atomic_fetch_sub(&W->waiting, 1);
}
void rt_world_unlock(void) {
    pthread_mutex_unlock(&W->lock);
}

/* Others on this machine may be what is waited for: after some microseconds they get the processor. */
void rt_world_pause(unsigned *turns) {
    const unsigned n = (*turns)++;
    if (n > 20000)
        usleep(100);
    else if (n > 50)
        sched_yield();
}

/* ---- failing together ---- */

rt_status rt_world_error(int code, const char *doing) {
    char text[512];
    W->t->why(code, text, sizeof text);
    RT_FAIL(RT_E_FAILED, "rank %d of %d cannot %s: %s", W->rank, W->size, doing, text);
}

rt_status rt_dist_status(void) {
    if (W->failed.code == RT_OK)
        return RT_OK;
    return rt_error_set((rt_status)W->failed.code, __FILE__, __LINE__, "%s", W->failed.text);
}

bool rt_world_told(int from, int tag, rt_news *n) {
    int found = 0, source = 0, done = 0;
    size_t bytes = 0;
    rt_request r;
    if (W->t->probe(from, tag, &found, &source, &bytes) || !found)
        return false;
    memset(n, 0, sizeof *n);
    if (bytes > sizeof *n || W->t->receive(n, sizeof *n, source, tag, &r))
        return false;
    while (!done)
        if (W->t->test(&r, &done))
            return false;
    n->text[sizeof n->text - 1] = 0;
    return true;
}

void rt_world_hear(void) {
    rt_news n;
    while (rt_world_told(-1, RT_TAG_NEWS, &n))
        if (W->failed.code == RT_OK)
            W->failed = n;
}

void rt_world_drain(int tag, int from) {
    int found = 0, source = 0, done = 0;
    size_t bytes = 0;
    while (!W->t->probe(from, tag, &found, &source, &bytes) && found) {
        rt_request r;
        void *sink = malloc(
            bytes + 1); /* not rt_alloc: memory may be what ran out, and the limit is not to be heard */
        if (!sink)
            return;
        if (!W->t->receive(sink, bytes, source, tag, &r))
            for (done = 0; !done && !W->t->test(&r, &done);)
                ;
        free(sink);
    }
}

void rt_world_tell(int to, int tag, const rt_news *n) {
    rt_request r;
    int done = 0;
    unsigned turns = 0;
    if (W->t->send(n, sizeof *n, to, tag, &r))
        return;
    while (!W->t->test(&r, &done) && !done) {
        rt_world_hear();
        rt_world_drain(RT_TAG_DATA, -1);
        rt_world_unlock();
        rt_world_pause(&turns);
        rt_world_lock();
    }
}

/* ---- joining ---- */

static const char *text_of(const char *name) {
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

static int number_of(const char *name, int otherwise) {
    const char *v = text_of(name);
    return v ? atoi(v) : otherwise;
}

/* Whose launcher started this process, as which of how many? */
typedef struct launch {
    const char *library; /* NULL: none did */
    int rank, size;
} launch;

static launch find_launch(void) {
    static const struct {
        const char *library, *rank, *size;
    } table[] = {{"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                 {"mpich", "PMI_RANK", "PMI_SIZE"},
                 {"openmpi", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"}};
    const char *forced = text_of("RETORT_MPI");
    launch l = {.size = 1};
    if (forced && strcmp(forced, "none") == 0)
        return l;
    for (int64_t i = 0; i < RT_COUNT(table) && !l.library; i++)
        if (text_of(table[i].size) && text_of(table[i].rank))
            l = (launch){table[i].library, number_of(table[i].rank, 0), number_of(table[i].size, 1)};
    if (forced && !l.library)
        l = (launch){forced, number_of("SLURM_PROCID", 0), number_of("SLURM_STEP_NUM_TASKS", 2)};
    if (forced)
        l.library = forced;
    return l.size > 1 ? l : (launch){.size = 1};
}

bool rt_dist_speaks(void) {
    return W->t ? W->rank == 0 : find_launch().rank == 0;
}

/* Beside the program, where it is installed beside it, or where it was to be installed. */
static rt_status load(const char *library) {
    enum { PLACES = 3 };
    char path[PLACES][4096], self[3000], why[512] = "";
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    snprintf(path[0], sizeof path[0], "%s/libretort-mpi-%.200s.so", self, library);
    snprintf(path[1], sizeof path[1], "%s/../%s/retort/libretort-mpi-%.200s.so", self, RT_LIBDIR, library);
    snprintf(path[2], sizeof path[2], "%s/retort/libretort-mpi-%.200s.so", RT_FULL_LIBDIR, library);
    for (int i = 0; i < PLACES && !W->plugin; i++) {
        W->plugin = access(path[i], R_OK) == 0 ? dlopen(path[i], RTLD_NOW | RTLD_GLOBAL) : NULL;
        const char *word = W->plugin || access(path[i], R_OK) != 0 ? NULL : dlerror();
        if (word)
            snprintf(why, sizeof why, " (%.500s)", word);
    }
    RT_FAIL_IF(!W->plugin, RT_E_USAGE,
               "a launcher of %s started several ranks, and this program cannot speak to it: there is no "
               "%s%s; build "
               "with its compiler at hand, or say RETORT_MPI=openmpi, mpich or none",
               library, path[0], why);
    rt_transport_get_fn get;
    *(void **)&get = dlsym(W->plugin, RT_TRANSPORT_SYMBOL);
    RT_FAIL_IF(!get || get()->abi != RT_TRANSPORT_ABI, RT_E_USAGE, "%s: not of this version of retort",
               path[0]);
    W->t = get();
    return RT_OK;
}

static uint64_t hash_processors(void) {
    cpu_set_t set;
    uint64_t h = 1469598103934665603u;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 0;
    for (size_t i = 0; i < sizeof set; i++)
        h = (h ^ ((const uint8_t *)&set)[i]) * 1099511628211u;
    return h;
}

/* Everybody's host, process and processors. */
static rt_status introduce(void) {
    W->team = (rt_ranks){0, W->size};
    RT_TRY(rt_calloc(&W->who, (size_t)W->size, sizeof *W->who));
    rt_who *me = &W->who[W->rank];
    if (gethostname(me->host, sizeof me->host - 1) != 0)
        strcpy(me->host, "unknown");
    me->pid = getpid();
    me->processors = hash_processors();
    RT_TRY(rt_dist_allgather_equal(rt_dist_all(), W->who, sizeof *W->who));
    W->neighbours = 0;
    for (int i = 0; i < W->size; i++)
        W->neighbours += strcmp(W->who[i].host, me->host) == 0 && W->who[i].processors == me->processors;
    return RT_OK;
}

rt_status rt_dist_start(double seconds, void (*say)(const char *line), void (*stop)(void)) {
    const launch l = find_launch();
    if (!l.library)
        return RT_OK;
    W->rank = l.rank;
    W->stop = stop;
    RT_TRY(load(l.library));
    RT_TRY(rt_watch_join(seconds, say));
    const int err = W->t->start(&W->rank, &W->size);
    if (err)
        return rt_world_error(err, "start");
    RT_FAIL_IF(W->size != l.size, RT_E_USAGE,
               "the launcher started %d ranks, and %s knows of %d: it is not the one that belongs to it; say "
               "RETORT_MPI=openmpi "
               "or mpich",
               l.size, W->t->name, W->size);
    if (W->rank > 0)
        rt_file_only_read(true);
    RT_TRY(introduce());
    rt_cpu_share(W->neighbours);
    return rt_watch_start();
}

/* ---- leaving ---- */

static rt_news news_of(rt_status st) {
    if (W->failed.code != RT_OK)
        return W->failed;
    rt_news n = {.rank = W->rank, .code = (int32_t)st};
    if (st != RT_OK)
        snprintf(n.text, sizeof n.text, "%s", rt_error_text());
    return n;
}

/* What to say of n at the end: who it was, unless it was rank 0, which speaks. */
static rt_status take_over(rt_status st, const rt_news *n) {
    if (n->code == RT_OK || (st != RT_OK && n->rank == W->rank))
        return st;
    return n->rank == 0 || n->code == RT_E_INTERRUPTED || n->text[0] == 0
               ? rt_error_set((rt_status)n->code, __FILE__, __LINE__, "%s", n->text)
               : rt_error_set((rt_status)n->code, __FILE__, __LINE__, "rank %d on %s: %.900s", (int)n->rank,
                              W->who ? W->who[n->rank].host : "?", n->text);
}

static void tell_all(int tag, const rt_news *n) {
    rt_world_lock();
    for (int i = 0; i < W->size; i++)
        if (i != W->rank)
            rt_world_tell(i, tag, n);
    rt_world_unlock();
}

static void wait_word(int from, int tag, rt_news *out) {
    unsigned turns = 0;
    bool here = false;
    while (!here) {
        rt_world_lock();
        here = rt_world_told(from, tag, out);
        if (!here) {
            rt_world_hear();
            rt_world_drain(RT_TAG_DATA, -1);
        }
        rt_world_unlock();
        if (!here)
            rt_world_pause(&turns);
    }
}

/* Rank 0: collects how each rank ended and decides how the job did. The first failure counts; one of being asked to
 * stop only if there is no other. */
static rt_status conclude(rt_news mine, rt_status st, rt_dist_say say, void *user) {
    rt_news n, all = mine;
    for (int i = 1; i < W->size; i++) {
        wait_word(i, RT_TAG_END, &n);
        rt_watch_forget(i);
        if (n.code != RT_OK &&
            (all.code == RT_OK || (all.code == RT_E_INTERRUPTED && n.code != RT_E_INTERRUPTED)))
            all = n;
    }
    st = take_over(st, &all);
    say(user, st);
    rt_watch_stop();
    tell_all(RT_TAG_FINAL, &all);
    return st;
}

rt_status rt_dist_end(rt_status st, rt_dist_say say, void *user) {
    if (!W->t || W->size < 2) {
        if (rt_dist_speaks())
            say(user, st);
        return st;
    }
    rt_news mine = news_of(st);
    if (st != RT_OK && W->failed.code == RT_OK)
        tell_all(RT_TAG_NEWS, &mine);
    if (W->rank == 0) {
        st = conclude(mine, st, say, user);
    } else {
        rt_news all;
        rt_watch_stop_sending();
        rt_world_lock();
        rt_world_tell(0, RT_TAG_END, &mine);
        rt_world_unlock();
        wait_word(0, RT_TAG_FINAL, &all);
        st = take_over(st, &all);
        rt_watch_stop();
    }
    rt_world_lock();
    for (int tag = RT_TAG_DATA; tag <= RT_TAG_LAST; tag++)
        rt_world_drain(tag, -1);
    (void)W->t->finish();
    rt_world_unlock();
    rt_watch_left();
    rt_free(W->who);
    rt_free(W->request);
    rt_free(W->box);
    *W = (rt_world){
        .rank = W->rank, .size = 1, .team = {0, 1}, .neighbours = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
    return st;
}
