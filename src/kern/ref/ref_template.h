/*
 * ref_template.h - the body of ref_f32.c and ref_f64.c: every reference kernel once for the element type T.
 *
 * The includer defines T (float, double), T_SUFFIX (f32, f64) and T_DTYPE (RT_DTYPE_F32, ...). REF(name)
 * opens the kernel rt_ref_<name>_<suffix>; inside, p, out, in and ctx are the arguments of rt_kern.run.
 */
#include "kern/ref/ref_int.h"

#include "base/rng.h"
#include "base/special.h"
#include "kern/kern_dropout.h"
#include <math.h>
#include <string.h>

#define REF_PASTE2(name, suffix) rt_ref_##name##_##suffix
#define REF_PASTE(name, suffix) REF_PASTE2(name, suffix)
#define REF(name) void REF_PASTE(name, T_SUFFIX)(RT_REF_ARGS)

#include "kern/ref/ref_eltwise.inc"
#include "kern/ref/ref_members.inc"
#include "kern/ref/ref_reduce.inc"
#include "kern/ref/ref_product.inc"
#include "kern/ref/ref_pool.inc"
#include "kern/ref/ref_norm.inc"
#include "kern/ref/ref_loss.inc"
#include "kern/ref/ref_dirichlet.inc"
#include "kern/ref/ref_linalg.inc"
#include "kern/ref/ref_plan.inc"
