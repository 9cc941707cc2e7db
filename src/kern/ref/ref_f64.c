/*
 * ref_f64.c - the reference kernels in double precision: what gradient checks run on.
 */
#define T double
#define T_SUFFIX f64
#define T_DTYPE RT_DTYPE_F64
#include "kern/ref/ref_template.h"
