/*
 * dnn_thread.c - one OpenMP thread per worker: the setting belongs to the calling thread, so every worker
 * makes it for itself.
 */
#include "kern/kern_thread.h"
#include <omp.h>

void rt_dnn_thread_init(void) {
    omp_set_num_threads(1);
}
