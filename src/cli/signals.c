/*
 * signals.c - how the program is asked to stop.
 *
 * The handler does one thing: it sets a flag that training, evaluation and prediction look at. It is removed
 * by the first signal (SA_RESETHAND), so the second Ctrl-C kills at once. A signal that was ignored when the
 * program started (nohup, a background job) stays ignored. Writing to a closed pipe or beyond a file size
 * limit is an error of write(2), not the end of the process.
 */
#include "cli/cli.h"
#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t stop;

static void on_stop(int signal_number) {
    (void)signal_number;
    stop = 1;
}

static void set(int signal_number, void (*handler)(int), int flags) {
    struct sigaction old, now = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&now.sa_mask);
    if (sigaction(signal_number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        (void)sigaction(signal_number, &now, NULL);
}

void cli_signals_init(void) {
    set(SIGPIPE, SIG_IGN, 0);
    set(SIGXFSZ, SIG_IGN, 0);
}

void cli_signals_catch(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (int64_t i = 0; i < RT_COUNT(numbers); i++)
        set(numbers[i], on_stop, (int)(SA_RESTART | SA_RESETHAND));
}

const volatile sig_atomic_t *cli_stop(void) {
    return &stop;
}
