/*
 * dist_int.h - what the files of this module share: the one world a process is in.
 */
#ifndef RT_DIST_DIST_INT_H
#define RT_DIST_DIST_INT_H

#include "dist/dist.h"
#include "dist/transport.h"
#include <pthread.h>
#include <stdatomic.h>

enum {
    RT_TAG_DATA = 1,
    RT_TAG_NEWS,
    RT_TAG_END,
    RT_TAG_FINAL,
    RT_TAG_LIFE,
    RT_TAG_STOP,
    RT_TAG_LAST = RT_TAG_STOP
};
enum { RT_HOST_MAX = 64 };

/* Who a rank is. */
typedef struct rt_who {
    char host[RT_HOST_MAX];
    int64_t pid;
    uint64_t processors; /* a hash of those it may use */
} rt_who;

/* What a rank came to. */
typedef struct rt_news {
    int32_t rank; /* that failed */
    int32_t code;
    char text[RT_ERROR_TEXT_MAX];
} rt_news;

typedef struct rt_world {
    const rt_transport *t; /* NULL: alone */
    void *plugin;
    int rank, size;
    rt_ranks team;             /* what callers see as all ranks; a part of them inside rt_dist_spread */
    atomic_int apart;          /* depth of rt_dist_spread: 0, all ranks are together */
    atomic_bool asked_to_stop; /* this rank was, while they are apart */
    void (*stop)(void);
    rt_who *who; /* per rank */
    int neighbours;
    pthread_mutex_t lock; /* around every call of the transport */
    atomic_int waiting;   /* threads besides the main one that want it */
    rt_request *request;  /* of the exchange that is on */
    int64_t requests;
    uint8_t *box; /* small collectives */
    size_t box_bytes;
    rt_news failed; /* code RT_OK: no rank has */
} rt_world;
extern rt_world rt_the_world;

void rt_world_lock(void);      /* the main thread's: lets others go first */
void rt_world_lock_side(void); /* any other thread's */
void rt_world_unlock(void);
/* A while of waiting; `turns` counts. */
void rt_world_pause(unsigned *turns);
/* Under the lock: looks for news of a failure, receives it, and remembers it. */
void rt_world_hear(void);
/* Under the lock: receives and forgets messages that no call waits for any more. */
void rt_world_drain(int tag, int from);
rt_status rt_world_error(int code, const char *doing); /* the transport's word */
/* Under the lock: sends and waits, as long as it takes; news is still heard, and data drained. For the end. */
void rt_world_tell(int to, int tag, const rt_news *n);
bool rt_world_told(int from, int tag, rt_news *n); /* under the lock: receives it if it is there */

/* watchdog.c: before the ranks join, when they have, when this one has no more to say, and when it has left. */
rt_status rt_watch_join(double seconds, void (*say)(const char *line)) RT_MUST_CHECK;
rt_status rt_watch_start(void) RT_MUST_CHECK;
void rt_watch_stop_sending(void);
void rt_watch_forget(int rank); /* has come to its end */
void rt_watch_stop(void);
void rt_watch_left(void);

#endif
