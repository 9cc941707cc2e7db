/*
 * kern_thread.h - the hooks by which thread.c reaches the vendor libraries without seeing their headers.
 */
#ifndef RT_KERN_KERN_THREAD_H
#define RT_KERN_KERN_THREAD_H

void rt_dnn_thread_init(void); /* kern/onednn: OpenMP regions of this thread get one thread */
void rt_blas_thread_init(
    void); /* kern/blas: the library computes on its caller's thread, in the whole process */

#endif
