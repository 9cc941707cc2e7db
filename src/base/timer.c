/* timer.c - clocks of the process. Memory and processor limits are in limits.c. */
#include "base/timer.h"
#include <stdio.h>
#include <time.h>

static double read_clock(clockid_t id) {
    struct timespec t;
    if (clock_gettime(id, &t) != 0)
        return 0.0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double rt_time_now(void) {
    return read_clock(CLOCK_MONOTONIC);
}

double rt_time_cpu(void) {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

void rt_time_iso8601(char *buf) {
    time_t now = time(NULL);
    struct tm tm;
    if (!gmtime_r(&now, &tm) || strftime(buf, 21, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
        snprintf(buf, 21, "1970-01-01T00:00:00Z");
}
