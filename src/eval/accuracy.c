/*
 * accuracy.c - how often the largest probability is the label's: (1/n) sum 1[argmax p = y]. Ties go to the
 * lower class.
 */
#include "eval/eval_int.h"

double rt_eval_accuracy(const float *p, const int32_t *y, int64_t n, int64_t k) {
    int64_t right = 0;
    for (int64_t i = 0; i < n; i++)
        right += rt_argmax(p + i * k, k) == y[i];
    return (double)right / (double)n;
}
