/*
 * sigguard.h - signals and code that borrows the stack pointer.
 *
 * oneDNN's sgemm computes with the stack pointer inside a block of the heap. A signal that arrives meanwhile makes the
 * operating system write its frame, up to 12 KB with today's registers, below that: into whatever the heap holds there.
 * So signals are held back around such calls, unless they cannot do harm on this thread: all are blocked (our workers),
 * or all handlers have a stack of their own (the program: sigaltstack, SA_ONSTACK).
 */
#ifndef RT_BASE_SIGGUARD_H
#define RT_BASE_SIGGUARD_H

#include <signal.h>
#include <stdbool.h>

typedef struct rt_sigguard {
    bool held;
    sigset_t old;
} rt_sigguard;

void rt_sigguard_unneeded(void); /* on the calling thread, from now on */
rt_sigguard rt_sigguard_begin(void);
void rt_sigguard_end(const rt_sigguard *g);

#endif
