/*
 * kern_thread.h - the hooks by which thread.c reaches oneDNN without seeing its headers.
 */
#ifndef RT_KERN_KERN_THREAD_H
#define RT_KERN_KERN_THREAD_H

void rt_dnn_thread_init(void); /* kern/onednn: OpenMP regions of this thread get one thread */

#endif
