/*
 * thread.c - what a worker thread does once before its first kernel.
 *
 * A kernel computes on one thread; all parallelism is the plan's. oneDNN would split large
 * problems over threads of its own, which costs speed when every core has a worker already, and makes bits
 * depend on the number of cores.
 */
#include "kern/kern.h"
#include "kern/kern_thread.h"

void rt_kern_thread_init(void) {
#if RT_WITH_ONEDNN
    rt_dnn_thread_init();
#endif
}
