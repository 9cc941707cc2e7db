/*
 * watchdog.c - the end of a job one of whose ranks is frozen.
 *
 * MPI waits for ever for a rank that is stopped, or whose machine is gone. So a thread of each rank sends a sign of
 * life, five times within the time allowed: rank 0 to all, all to rank 0. Rank 0 watches all, all watch rank 0. A rank
 * that has heard nothing for too long prints which rank is silent and aborts the job; rank r > 0 waits r / 2 seconds
 * longer, so that only one of them prints. A rank that was itself asleep blames no other: after the whole job was
 * suspended, all wake up to old signs of life.
 *
 * A frozen rank can block the others inside MPI: stopped while it holds something in shared memory, it leaves them in a
 * call that never returns, and their watching threads wait for the lock. So a second thread, the guard, which calls no
 * MPI and takes no lock, watches the first, and kills this process when the first has not gone round its loop for too
 * long; the launcher ends the rest. The guard also runs while ranks join and leave, when there are no signs of life,
 * and ends the job if either takes longer than the time allowed; joining may take half a minute in any case.
 *
 * While ranks are apart (teams.c) the watching thread also passes a stop request on, from the rank that got it to all
 * others.
 *
 * A rank that dies is the launcher's affair, which ends the others within seconds. Launchers name a process, not always
 * a rank: the guard of another rank on that machine wakes up when the process ends (a pidfd), and says which rank it
 * was. MPICH's launcher kills at once and may be faster.
 */
#include "base/alloc.h"
#include "base/stop.h"
#include "base/timer.h"
#include "dist/dist_int.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define W (&rt_the_world)

typedef struct peer {
    _Atomic double heard;
    bool done; /* came to its end */
    rt_request sign, stop;
} peer;

enum { JOINING, WORKING, LEAVING };
enum { JOIN_SECONDS = 30 }; /* programs are started one after the other, from file systems far away */

static struct {
    bool on, guarded;
    pthread_t thread, guard;
    atomic_bool stop, silent, left;
    bool asked; /* the stop request has been passed on */
    atomic_int stage;
    _Atomic double turned; /* when the stage began, or the watching thread last went round its loop */
    double allowed;
    void (*say)(const char *line);
    peer *peer;
    struct pollfd *poll; /* of peers whose process can be seen */
    int *polled, npoll;  /* which they are */
    char sign[1];
} dog;

static void name(int rank, double seconds) {
    char text[512];
    snprintf(text, sizeof text,
             "retort: rank %d on %s (process %lld) has given no sign of life for %.0f seconds: it is frozen, "
             "or its "
             "machine is gone; the job ends, --resume continues from the last checkpoint\n",
             rank, W->who[rank].host, (long long)W->who[rank].pid, seconds);
    dog.say(text);
    usleep(300000); /* MPICH's launcher passes on nothing that comes with the end */
}

static void accuse(int rank, double seconds) {
    name(rank, seconds);
    W->t->abort(rt_status_exit_code(RT_E_FAILED)); /* does not return */
    (void)kill(getpid(), SIGKILL);
}

/* Under the lock. */
static void send_signs(int first, int end) {
    for (int i = first; i < end; i++) {
        int done = 1;
        peer *p = &dog.peer[i];
        if (i == W->rank || p->done)
            continue;
        if (p->sign && (W->t->test(&p->sign, &done) || !done))
            continue; /* the last one has not arrived yet */
        if (W->t->send(dog.sign, 1, i, RT_TAG_LIFE, &p->sign))
            p->sign = 0;
    }
}

static void hear_signs(double now) {
    int found = 1, source = 0, done;
    size_t n = 0;
    char sign[8];
    rt_request r;
    while (!W->t->probe(-1, RT_TAG_LIFE, &found, &source, &n) && found) {
        if (W->t->receive(sign, sizeof sign, source, RT_TAG_LIFE, &r))
            return;
        for (done = 0; !done && !W->t->test(&r, &done);)
            ;
        dog.peer[source].heard = now;
    }
}

static bool is_there(int tag) {
    int found = 0, source;
    size_t n;
    return W->t->probe(-1, tag, &found, &source, &n) == 0 && found;
}

/* A rank was asked to stop, or has failed, while ranks are apart: passes that on from this rank, or to it. Messages are
 * only looked for, not received: a stop request ends the job, and news is received by the thread that waits. */
static void pass_on_stop(void) {
    if (dog.asked || atomic_load(&W->apart) == 0)
        return;
    const bool mine = rt_stop_wanted() || atomic_load(&W->asked_to_stop);
    rt_world_lock_side();
    const bool theirs = is_there(RT_TAG_STOP) || is_there(RT_TAG_NEWS);
    for (int i = 0; i < W->size && mine && !theirs; i++)
        if (i != W->rank && W->t->send(dog.sign, 1, i, RT_TAG_STOP, &dog.peer[i].stop))
            dog.peer[i].stop = 0;
    rt_world_unlock();
    dog.asked = mine || theirs;
    if (theirs && W->stop)
        W->stop();
}

/* Rank 0 watches all, all watch rank 0. */
static int first_watched(void) {
    return W->rank == 0 ? 1 : 0;
}
static int end_watched(void) {
    return W->rank == 0 ? W->size : 1;
}
static double every_seconds(void) {
    return RT_MIN(dog.allowed / 5, 5.0);
}
static double patience_seconds(void) {
    return dog.allowed + (W->rank == 0 ? 0 : 0.5 * RT_MIN(W->rank, 20));
}

/* Joining or leaving takes too long; which rank is to blame is not known. */
static void name_stage(int stage, double seconds) {
    char text[256];
    snprintf(text, sizeof text,
             "retort: rank %d waits for the others to %s; one of them has given no sign of life for %.0f "
             "seconds: the job ends%s\n",
             W->rank, stage == JOINING ? "join" : "leave", seconds,
             stage == JOINING ? "" : ", all files are written");
    dog.say(text);
    usleep(300000);
}

/* ---- who died ---- */

static bool same_program(long long pid) {
    char path[64], mine[1024], theirs[1024];
    snprintf(path, sizeof path, "/proc/%lld/exe", pid);
    const ssize_t n = readlink("/proc/self/exe", mine, sizeof mine),
                  m = readlink(path, theirs, sizeof theirs);
    return n > 0 && n == m && memcmp(mine, theirs, (size_t)n) == 0;
}

/* Before the guard looks at them: others of this machine. A number may mean another process where ranks are kept apart. */
static rt_status see_processes(void) {
    RT_TRY(rt_calloc(&dog.poll, (size_t)W->size, sizeof *dog.poll));
    RT_TRY(rt_calloc(&dog.polled, (size_t)W->size, sizeof *dog.polled));
#ifdef SYS_pidfd_open
    for (int i = 0; i < W->size; i++) {
        const rt_who *who = &W->who[i];
        if (i == W->rank || strcmp(who->host, W->who[W->rank].host) != 0 || !same_program(who->pid))
            continue;
        const int fd = (int)syscall(SYS_pidfd_open, (pid_t)who->pid, 0);
        if (fd < 0)
            continue;
        dog.poll[dog.npoll] = (struct pollfd){.fd = fd, .events = POLLIN};
        dog.polled[dog.npoll++] = i;
    }
#endif
    return RT_OK;
}

/* The first living rank of that machine prints it. Ranks leave only after all have reported their end, so a process
 * that ends earlier has died. */
static void name_dead(int rank) {
    char text[512];
    for (int i = 0; i < W->rank; i++)
        if (i != rank && strcmp(W->who[i].host, W->who[rank].host) == 0)
            return;
    snprintf(text, sizeof text,
             "retort: rank %d on %s (process %lld) has died; the job ends, --resume continues from the last "
             "checkpoint\n",
             rank, W->who[rank].host, (long long)W->who[rank].pid);
    dog.say(text);
}

static void forget_processes(void) {
    while (dog.npoll > 0)
        close(dog.poll[--dog.npoll].fd);
}

/* Sleeps, unless a process ends. The first to do so is the one to name; if there are several, the launcher has begun to
 * kill, and which was first cannot be known. */
static void doze(double seconds) {
    if (atomic_load(&dog.stage) != WORKING || atomic_load(&dog.silent) || dog.npoll == 0) {
        usleep((useconds_t)(1e6 * seconds));
        return;
    }
    const int ended = poll(dog.poll, (nfds_t)dog.npoll, (int)(1e3 * seconds));
    if (ended <= 0)
        return;
    int first = 0;
    while (dog.poll[first].revents == 0)
        first++;
    if (ended == 1 && atomic_load(&dog.stage) == WORKING && !atomic_load(&dog.silent))
        name_dead(dog.polled[first]);
    forget_processes();
}

static void *guard(void *arg) {
    (void)arg;
    const double every = every_seconds();
    double last = rt_time_now();
    while (!atomic_load(&dog.left)) {
        doze(RT_MIN(every / 4, 0.1));
        const double now = rt_time_now();
        if (now - last > 2 * every)
            atomic_store(&dog.turned, now); /* this rank was asleep itself */
        last = now;
        const int stage = atomic_load(&dog.stage);
        const double patience =
            stage == JOINING ? RT_MAX(patience_seconds(), JOIN_SECONDS) : patience_seconds() + 2 * every;
        const double waited = now - atomic_load(&dog.turned);
        if (waited <= patience)
            continue;
        if (stage == WORKING) {
            int silent = first_watched();
            for (int i = silent; i < end_watched(); i++)
                if (!dog.peer[i].done &&
                    atomic_load(&dog.peer[i].heard) < atomic_load(&dog.peer[silent].heard))
                    silent = i;
            name(silent, now - atomic_load(&dog.peer[silent].heard));
        } else {
            name_stage(stage, waited);
        }
        (void)kill(getpid(), SIGKILL);
    }
    return NULL;
}

static void enter(int stage) {
    atomic_store(&dog.turned, rt_time_now());
    atomic_store(&dog.stage, stage);
}

static void *watch(void *arg) {
    (void)arg;
    const int first = first_watched(), end = end_watched();
    const double every = every_seconds(), patience = patience_seconds();
    double last = rt_time_now(), sent = 0;
    while (!atomic_load(&dog.stop)) {
        usleep((useconds_t)(1e6 * RT_MIN(every / 4, 0.1)));
        const double now = rt_time_now();
        for (int i = 0; now - last > 2 * every && i < W->size; i++)
            dog.peer[i].heard = now; /* this rank was asleep itself */
        last = now;
        pass_on_stop();
        if (now - sent < every)
            continue;
        sent = now;
        rt_world_lock_side();
        if (!atomic_load(&dog.silent))
            send_signs(first, end);
        hear_signs(now);
        for (int i = first; i < end; i++)
            if (!dog.peer[i].done && now - dog.peer[i].heard > patience)
                accuse(i, now - dog.peer[i].heard);
        rt_world_unlock();
        atomic_store(&dog.turned, rt_time_now());
    }
    return NULL;
}

/* A thread that gets no signals. */
static rt_status start(pthread_t *thread, void *(*run)(void *)) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    const int err = pthread_create(thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    RT_FAIL_IF(err, RT_E_FAILED, "cannot start a thread that watches other ranks: %s", strerror(err));
    return RT_OK;
}

rt_status rt_watch_join(double seconds, void (*say)(const char *line)) {
    dog.allowed = seconds;
    dog.say = say;
    enter(JOINING);
    RT_TRY(start(&dog.guard, guard));
    dog.guarded = true;
    return RT_OK;
}

rt_status rt_watch_start(void) {
    RT_TRY(rt_calloc(&dog.peer, (size_t)W->size, sizeof *dog.peer));
    for (int i = 0; i < W->size; i++)
        dog.peer[i].heard = rt_time_now();
    RT_TRY(see_processes());
    RT_TRY(start(&dog.thread, watch));
    dog.on = true;
    enter(WORKING);
    return RT_OK;
}

void rt_watch_stop_sending(void) {
    rt_world_lock();
    atomic_store(&dog.silent, true);
    rt_world_unlock();
}

void rt_watch_forget(int rank) {
    rt_world_lock();
    if (dog.on)
        dog.peer[rank].done = true;
    rt_world_unlock();
}

/* Under the lock. */
static void let_arrive(rt_request *r, int tag) {
    unsigned turns = 0;
    for (int done = 0; *r && !done && turns < 30000 && !W->t->test(r, &done);) {
        rt_world_drain(tag, -1);
        rt_world_pause(&turns);
    }
}

/* Signs on their way are received by the other side, which waits for a last word. */
void rt_watch_stop(void) {
    enter(LEAVING);
    if (!dog.on)
        return;
    atomic_store(&dog.stop, true);
    pthread_join(dog.thread, NULL);
    rt_world_lock();
    for (int i = 0; i < W->size; i++) {
        let_arrive(&dog.peer[i].sign, RT_TAG_LIFE);
        let_arrive(&dog.peer[i].stop, RT_TAG_STOP);
    }
    rt_world_unlock();
    dog.on = false;
}

void rt_watch_left(void) {
    atomic_store(&dog.left, true);
    if (dog.guarded)
        pthread_join(dog.guard, NULL);
    forget_processes();
    rt_free(dog.poll);
    rt_free(dog.polled);
    rt_free(dog.peer);
    memset(&dog, 0, sizeof dog);
}
