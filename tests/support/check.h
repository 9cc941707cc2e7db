/*
 * check.h - cmocka, and checks that tell what went wrong: a status with its message, two numbers that should be near.
 */
#ifndef RT_TESTS_SUPPORT_CHECK_H
#define RT_TESTS_SUPPORT_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/status.h"
#include <math.h>

/* Statuses; the failure is that of the line that asks. */
#define OK(call) check_status((call), RT_OK, #call, __FILE__, __LINE__)
#define expect(call, want) check_status((call), (want), #call, __FILE__, __LINE__)

static inline void check_status(rt_status got, rt_status want, const char *call, const char *file, int line) {
    if (got == want)
        return;
    print_error("%s: %s, wanted %s: %s\n", call, rt_status_name(got), rt_status_name(want),
                got == RT_OK ? "" : rt_error_text());
    _fail(file, line);
}

#define near(got, want, tolerance) check_near((got), (want), (tolerance), __FILE__, __LINE__)

static inline void check_near(double got, double want, double tolerance, const char *file, int line) {
    if (fabs(got - want) <= tolerance)
        return;
    print_error("got %.17g, wanted %.17g +- %g\n", got, want, tolerance);
    _fail(file, line);
}

#endif
