/*
 * log.h - the library never prints; it calls back. The default is silence.
 */
#ifndef RT_BASE_LOG_H
#define RT_BASE_LOG_H

#include "base/compiler.h"
#include <retort.h> /* rt_log_set */

void rt_log(rt_log_level level, const char *fmt, ...) RT_PRINTF(2, 3);

#endif
