/*
 * train_int.h - what the files of this module share.
 */
#ifndef RT_TRAIN_TRAIN_INT_H
#define RT_TRAIN_TRAIN_INT_H

#include "train/train.h"

/* Appends "key (a's value, now b's value), ..." for every parameter of the verb that decides the result and differs. */
void rt_config_diff(const rt_config *a, const rt_config *b, unsigned verb, rt_str *out);

#endif
