/*
 * log.h - the library never prints; it calls back. The default is silence.
 */
#ifndef RT_BASE_LOG_H
#define RT_BASE_LOG_H

#include "base/compiler.h"

typedef enum rt_log_level { RT_LOG_DEBUG, RT_LOG_INFO, RT_LOG_WARN } rt_log_level;
typedef void (*rt_log_fn)(void *user, rt_log_level level, const char *text);
void rt_log_set(rt_log_fn fn, void *user);
void rt_log(rt_log_level level, const char *fmt, ...) RT_PRINTF(2, 3);

#endif
