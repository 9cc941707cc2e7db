/*
 * average_support.h - a small run to average, for the tests of this directory.
 */
#ifndef RT_TESTS_AVERAGE_SUPPORT_H
#define RT_TESTS_AVERAGE_SUPPORT_H

#include "support/flags.h"
#include "support/root.h"

static inline void train_run(const char *name, const char *data, const char *arch, const char *members,
                             const char *epochs, const flag *more) {
    rt_config c;
    configure(&c, RT_VERB_TRAIN,
              (const flag[]){{"data", data},
                             {"arch", arch},
                             {"members", members},
                             {"epochs", epochs},
                             {"batch", "16"},
                             {"optimiser", "adam"},
                             {"lr", "0.02"},
                             {"threads", "1"},
                             {"out", in_root(name)},
                             {NULL, NULL}});
    set_flags(&c, RT_VERB_TRAIN, more);
    OK(run_config(&c, RT_VERB_TRAIN, NULL));
}

#endif
