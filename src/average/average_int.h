/*
 * average_int.h - what the files of this module share.
 */
#ifndef RT_AVERAGE_AVERAGE_INT_H
#define RT_AVERAGE_AVERAGE_INT_H

#include "average/average.h"
#include "base/json.h"
#include "model/taps.h"

/* The averaged network over `rows` training rows (0: all). */
rt_status rt_average_taps(const rt_average *a, int64_t rows, rt_taps_input *out) RT_MUST_CHECK;

/* Opens the data of the runs, and finds the rows that they trained on and held out. */
rt_status rt_average_find_rows(rt_average *a, const char *const *runs) RT_MUST_CHECK;

/* Repair and statistics of what a method left in out; one model needs neither. */
rt_status rt_average_mend(rt_average *a) RT_MUST_CHECK;

/* The "average" object of metrics.json; pictures go below dir. */
rt_status rt_average_diagnose(rt_average *a, rt_json *j, const char *dir) RT_MUST_CHECK;

#endif
