/*
 * ref_f32.c - the reference kernels in single precision (arithmetic in double, rounded once).
 */
#define T float
#define T_SUFFIX f32
#define T_DTYPE RT_DTYPE_F32
#include "kern/ref/ref_template.h"
