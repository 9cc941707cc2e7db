/*
 * perturb.h - perturbations of a batch of images, as pure graph builders. One file and one line of
 * perturbs.def each.
 *
 * A perturbation sees models only through rt_forward: logits of one model, in eval mode, for given inputs.
 * An input gradient is a call to rt_graph_grad. The result carries no gradient (rt_stop_grad) and stays in
 * [0, 1].
 */
#ifndef RT_PERTURB_PERTURB_H
#define RT_PERTURB_PERTURB_H

#include "graph/graph.h"

/* (n, row...) -> logits (n, K); `who` is one of the numbers below. */
typedef rt_val (*rt_forward)(void *user, int who, rt_val x);
enum { RT_WHO_TEACHER_I, RT_WHO_TEACHER_J, RT_WHO_STUDENT_I, RT_WHO_STUDENT_J, RT_WHO_COUNT };

typedef struct rt_perturb_in {
    rt_graph *g;
    rt_val x;           /* (n, row...) in [0, 1] */
    rt_val temperature; /* scalar */
    double size;     /* per element: the step has the L2 norm size * sqrt(elements of a row); papers: 1/255 */
    uint64_t stream; /* of randomness */
    rt_forward forward;
    void *user;
} rt_perturb_in;

enum { RT_NEEDS_TEACHER_I = 1, RT_NEEDS_TEACHER_J = 2, RT_NEEDS_STUDENT_PAIR = 4, RT_NEEDS_CLASSES = 8 };

typedef struct rt_perturb {
    const char *name, *meaning;
    unsigned needs; /* what it asks of forward; a student pair needs a student with members */
    rt_val (*build)(const rt_perturb_in *in);
} rt_perturb;
const rt_perturb *rt_perturb_find(const char *name);                                /* NULL if unknown */
rt_status rt_perturb_parse(const rt_perturb **out, const char *name) RT_MUST_CHECK; /* "none": NULL */
int rt_perturb_list(const rt_perturb *const **out);

#endif
