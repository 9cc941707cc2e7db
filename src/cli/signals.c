/*
 * signals.c - how the program is asked to stop.
 *
 * The handler sets a flag that everything long looks at: training, evaluation, prediction, and (base/stop.h) reading
 * and resampling. It is removed by the first signal (SA_RESETHAND), so the second Ctrl-C kills at once. Whatever has
 * not ended two seconds later (on several ranks twenty, because they end a step together) is ended by the alarm, unless
 * a file is being written: a save is let through. Files are
 * replaced as a whole, so what was saved before is good either way. A signal that was ignored when the program
 * started (nohup, a background job) stays ignored. Writing to a closed pipe or beyond a file size limit is an error
 * of write(2), not the end of the process.
 *
 * Handlers run on a stack of their own: base/sigguard.h says why the one in use is no place for them.
 */
#include "base/file.h"
#include "base/sigguard.h"
#include "base/stop.h"
#include "cli/cli.h"
#include "dist/dist.h"
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

enum { PATIENCE = 2, PATIENCE_RANKS = 20 }; /* seconds; ranks stop together, after a step */

static volatile sig_atomic_t stop;
static unsigned patience = PATIENCE;

static void on_stop(int signal_number) {
    (void)signal_number;
    stop = 1;
    alarm(patience);
}

static void on_alarm(int signal_number) {
    static const char text[] =
        "retort: interrupted, and ended where it could not stop; what was saved before is good\n";
    (void)signal_number;
    if (rt_writers_open() > 0) {
        alarm(1);
        return;
    }
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(rt_status_exit_code(RT_E_INTERRUPTED));
}

static void set(int signal_number, void (*handler)(int), int flags) {
    struct sigaction old, now = {.sa_handler = handler, .sa_flags = flags | SA_ONSTACK};
    sigemptyset(&now.sa_mask);
    if (sigaction(signal_number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        (void)sigaction(signal_number, &now, NULL);
}

void cli_signals_init(void) {
    set(SIGPIPE, SIG_IGN, 0);
    set(SIGXFSZ, SIG_IGN, 0);
}

/* Without it (never seen to fail) signals are held back where they would do harm. */
static void own_stack(void) {
    static RT_ALIGNED(64) char stack[1 << 16];
    const stack_t s = {.ss_sp = stack, .ss_size = sizeof stack};
    if (sigaltstack(&s, NULL) == 0)
        rt_sigguard_unneeded();
}

void cli_signals_catch(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    own_stack();
    patience = rt_dist_size() > 1 ? PATIENCE_RANKS : PATIENCE;
    for (int64_t i = 0; i < RT_COUNT(numbers); i++)
        set(numbers[i], on_stop, (int)(SA_RESTART | SA_RESETHAND));
    set(SIGALRM, on_alarm, SA_RESTART);
    rt_stop_watch(&stop);
}

void cli_signals_stop(void) {
    stop = 1;
}

const volatile sig_atomic_t *cli_stop(void) {
    return &stop;
}
