/*
 * blas_thread.c - OpenBLAS on its caller's thread. The setting is the process's, and re-making it costs
 * nothing; other BLAS libraries behind cblas.h do not have the call, and are single-threaded or have a switch
 * of their own.
 */
#include "kern/kern_thread.h"
#include <cblas.h>

void rt_blas_thread_init(void) {
#ifdef OPENBLAS_VERSION
    if (openblas_get_num_threads() != 1)
        openblas_set_num_threads(1);
#endif
}
