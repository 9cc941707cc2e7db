/*
 * root.h - the directory of a test program, as fixtures of its group of tests.
 */
#ifndef RT_TESTS_SUPPORT_ROOT_H
#define RT_TESTS_SUPPORT_ROOT_H

#include "support/tmpdir.h"

static tmpdir root;

static inline int make_root(void **state) {
    (void)state;
    return tmpdir_make(&root) ? 0 : -1;
}

static inline int remove_root(void **state) {
    (void)state;
    tmpdir_remove(&root);
    return 0;
}

/* A path in it; valid until eight more were asked for. */
static inline const char *in_root(const char *name) {
    return tmpdir_path(&root, name);
}

#endif
