/*
 * distill.h - objectives as pure graph builders. A method is one file and one line of methods.def: given a network and the values of a
 * batch it returns the loss. The trainer runs the stages a method declares and knows no method by name; what varies per step is a
 * scalar feed.
 */
#ifndef RT_DISTILL_DISTILL_H
#define RT_DISTILL_DISTILL_H

#include "nn/nn.h"

typedef struct rt_loss_ctx {
    rt_build build; /* graph, parameters, train mode */
    const rt_net *net;
    bool regression;
    rt_val x;      /* (n, row...) */
    rt_val label;  /* i32 (n), classification */
    rt_val target; /* (n), regression, standardised */
    double label_smoothing;
} rt_loss_ctx;

typedef struct rt_loss {
    rt_val loss;   /* scalar to minimise, a mean over the batch */
    rt_val logits; /* (rows, outputs) in train mode, for the running accuracy */
} rt_loss;

typedef struct rt_method {
    const char *name, *meaning;
    int stages;
    rt_loss (*build)(rt_loss_ctx *c, int stage);
} rt_method;
const rt_method *rt_method_find(const char *name); /* NULL if unknown */
int rt_method_list(const rt_method *const **out);

#endif
