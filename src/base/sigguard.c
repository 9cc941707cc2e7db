/*
 * sigguard.c - holds signals back; sigguard.h says when and why. Signals that a fault of the thread itself raises stay
 * deliverable: blocked, they would end the process without a word.
 */
#include "base/sigguard.h"

#include "base/status.h"

static _Thread_local bool unneeded;

void rt_sigguard_unneeded(void) {
    unneeded = true;
}

rt_sigguard rt_sigguard_begin(void) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};
    rt_sigguard g = {.held = !unneeded};
    if (g.held) {
        sigset_t all;
        sigfillset(&all);
        for (int64_t i = 0; i < RT_COUNT(faults); i++)
            sigdelset(&all, faults[i]);
        g.held = pthread_sigmask(SIG_BLOCK, &all, &g.old) == 0;
    }
    return g;
}

void rt_sigguard_end(const rt_sigguard *g) {
    if (g->held)
        pthread_sigmask(SIG_SETMASK, &g->old, NULL);
}
