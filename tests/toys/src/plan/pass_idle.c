/*
 * pass_idle.c - leaves the graph as it is.
 */
#include "plan/plan_int.h"

rt_status rt_pass_idle(rt_compile *k) {
    (void)k;
    return RT_OK;
}
