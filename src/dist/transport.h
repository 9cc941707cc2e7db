/*
 * transport.h - what dist asks of a message-passing library. comm_mpi.c answers with MPI, as a plug-in that is loaded
 * only where a launcher started the process: Open MPI and MPICH agree on the source of a program, not on its binary,
 * and the program itself needs neither.
 *
 * All calls are made under one lock (dist.c), by whatever thread. Functions that can fail return 0, or a code that
 * `why` puts into words.
 */
#ifndef RT_DIST_TRANSPORT_H
#define RT_DIST_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

enum { RT_TRANSPORT_ABI = 1 };

typedef uint64_t rt_request; /* whatever the library calls a request; 0 is none */

typedef struct rt_transport {
    int abi;
    char name[64];
    int (*start)(int *rank, int *size);
    int (*send)(const void *data, size_t n, int to, int tag, rt_request *r);
    int (*receive)(void *data, size_t n, int from, int tag, rt_request *r);
    int (*test)(rt_request *r, int *done);
    /* Is there a message with this tag, from anybody (from < 0) or one? */
    int (*probe)(int from, int tag, int *found, int *source, size_t *n);
    int (*cancel)(rt_request *r); /* of a receive that will not be met */
    int (*finish)(void);
    void (*abort)(int code);
    void (*why)(int code, char *out, size_t n);
} rt_transport;

/* Of a plug-in. */
typedef const rt_transport *(*rt_transport_get_fn)(void);
#define RT_TRANSPORT_SYMBOL "rt_transport_get"

#endif
