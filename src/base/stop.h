/*
 * stop.h - a request to stop, for loops that have no caller to ask: reading, unpacking, hashing, drawing.
 *
 * The program lends its flag (one that a signal handler sets) to the whole process; a library user lends none, and
 * nothing ever stops. A loop that can last a second asks every few milliseconds:
 *
 *     RT_TRY(rt_stop_check("reading", path));     between pieces of work
 *     if (rt_stop_wanted()) return;               in a job of a pool, whose caller then fails by rt_stop_check
 */
#ifndef RT_BASE_STOP_H
#define RT_BASE_STOP_H

#include "base/status.h"
#include <signal.h>

void rt_stop_watch(const volatile sig_atomic_t *flag); /* NULL: no stop requests */
bool rt_stop_wanted(void);
rt_status rt_stop_check(const char *doing,
                        const char *what) RT_MUST_CHECK; /* RT_E_INTERRUPTED: "interrupted while ..." */

#endif
