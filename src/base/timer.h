/* timer.h - clocks. */
#ifndef RT_BASE_TIMER_H
#define RT_BASE_TIMER_H

#include <stdint.h>

double rt_time_now(void);        /* monotonic seconds */
double rt_time_cpu(void);        /* CPU seconds of this process */
void rt_time_iso8601(char *buf); /* UTC, 21 bytes at least: 2026-01-31T12:00:00Z */
uint64_t rt_memory_peak(void);   /* peak resident set of this process in bytes, 0 if unknown */
uint64_t rt_memory_total(void);  /* memory this process may use (cgroup limit or RAM), 0 if unknown */

#endif
