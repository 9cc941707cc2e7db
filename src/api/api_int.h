/*
 * api_int.h - what the files of the public interface share.
 */
#ifndef RT_API_API_INT_H
#define RT_API_API_INT_H

#include "config/config.h"

rt_status rt_api_verb(const char *name, unsigned *bit, int *at) RT_MUST_CHECK;
/* Is the parameter one of the verb's settings, and not of the program alone? */
bool rt_api_takes(const rt_param_info *p, unsigned verb);
rt_status rt_api_settings(rt_config *c, unsigned verb, const char *const *settings, int n) RT_MUST_CHECK;

#endif
