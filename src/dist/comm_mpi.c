/*
 * comm_mpi.c - the transport that speaks MPI: the only file that includes its header. Built once for each MPI found,
 * as libretort-mpi-NAME.so. It depends on nothing of ours but transport.h.
 */
#include "dist/transport.h"
#include <mpi.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(MPI_Request) <= sizeof(rt_request), "a request has to fit");

static MPI_Comm comm;
static rt_transport table;

static MPI_Request from_request(rt_request r) {
    MPI_Request q = MPI_REQUEST_NULL;
    if (r != 0)
        memcpy(&q, &r, sizeof q);
    return q;
}
static rt_request to_request(MPI_Request q) {
    rt_request r = 0;
    if (q != MPI_REQUEST_NULL)
        memcpy(&r, &q, sizeof q);
    return r;
}

static int mpi_start(int *rank, int *size) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int have, n, err = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &have);
    if (err)
        return err;
    if (have < MPI_THREAD_SERIALIZED)
        return MPI_ERR_OTHER;
    /* messages of other users of the library never meet ours */
    if ((err = MPI_Comm_dup(MPI_COMM_WORLD, &comm)) ||
        (err = MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)) || (err = MPI_Comm_rank(comm, rank)) ||
        (err = MPI_Comm_size(comm, size)))
        return err;
    if (MPI_Get_library_version(text, &n) == 0) {
        text[strcspn(text, ",\n")] = 0;
        for (char *c = text; *c; c++)
            if (*c == '\t')
                *c = ' ';
        snprintf(table.name, sizeof table.name, "%.60s", text);
    }
    return 0;
}

static int mpi_send(const void *data, size_t n, int to, int tag, rt_request *r) {
    MPI_Request q;
    const int err = MPI_Isend((void *)(uintptr_t)data, (int)n, MPI_BYTE, to, tag, comm, &q);
    *r = err ? 0 : to_request(q);
    return err;
}

static int mpi_receive(void *data, size_t n, int from, int tag, rt_request *r) {
    MPI_Request q;
    const int err = MPI_Irecv(data, (int)n, MPI_BYTE, from, tag, comm, &q);
    *r = err ? 0 : to_request(q);
    return err;
}

static int mpi_test(rt_request *r, int *done) {
    MPI_Request q = from_request(*r);
    const int err = MPI_Test(&q, done, MPI_STATUS_IGNORE);
    *r = to_request(q);
    return err;
}

static int mpi_probe(int from, int tag, int *found, int *source, size_t *n) {
    MPI_Status s;
    int count = 0, err = MPI_Iprobe(from < 0 ? MPI_ANY_SOURCE : from, tag, comm, found, &s);
    if (err || !*found)
        return err;
    err = MPI_Get_count(&s, MPI_BYTE, &count);
    *source = s.MPI_SOURCE;
    *n = (size_t)count;
    return err;
}

static int mpi_cancel(rt_request *r) {
    MPI_Request q = from_request(*r);
    *r = 0;
    const int err = MPI_Cancel(&q);
    return err ? err : MPI_Wait(&q, MPI_STATUS_IGNORE);
}

static int mpi_finish(void) {
    (void)MPI_Comm_free(&comm);
    return MPI_Finalize();
}

static void mpi_abort(int code) {
    (void)MPI_Abort(MPI_COMM_WORLD, code);
}

static void mpi_why(int code, char *out, size_t n) {
    char text[MPI_MAX_ERROR_STRING];
    int len = 0;
    if (MPI_Error_string(code, text, &len))
        snprintf(text, sizeof text, "error %d", code);
    snprintf(out, n, "%s", text);
}

static rt_transport table = {.abi = RT_TRANSPORT_ABI,
                             .name = "MPI",
                             .start = mpi_start,
                             .send = mpi_send,
                             .receive = mpi_receive,
                             .test = mpi_test,
                             .probe = mpi_probe,
                             .cancel = mpi_cancel,
                             .finish = mpi_finish,
                             .abort = mpi_abort,
                             .why = mpi_why};

#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const rt_transport *
rt_transport_get(void);

const rt_transport *rt_transport_get(void) {
    return &table;
}
