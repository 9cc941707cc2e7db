/*
 * teacher_pull.c - a penalty that pulls the members' weights to those of their teachers (Mariet et al. 2021,
 * App. B.2):
 *
 *     (1 / (M N)) sum over kernels and members m of || W0 o s_m r_m^T - W_m ||^2
 *     N entries in all kernels
 *
 * W0 o s r^T is spelled with operations on whole parameters: r scales axis 1 as channels do, s is expanded
 * over the rows. A student without factors (one member) is pulled as it is. Teachers' weights have no
 * gradient because the trainer asks for none.
 */
#include "distill/distill_int.h"
#include <stdio.h>
#include <string.h>

const rt_param *rt_params_beside(const rt_params *p, const char *name, const char *field) {
    char full[256];
    const char *dot = strrchr(name, '.');
    const int len = (int)(dot != NULL ? dot - name : (ptrdiff_t)strlen(name));
    const int n = snprintf(full, sizeof full, "%.*s.%s", len, name, field);
    const int slot = n > 0 && (size_t)n < sizeof full ? rt_params_find(p, full) : -1;
    return slot >= 0 ? rt_params_get(p, slot) : NULL;
}

rt_status rt_teacher_param(const rt_param **out, const rt_param *student, const rt_params *teacher) {
    const int slot = rt_params_find(teacher, student->name);
    RT_FAIL_IF(slot < 0, RT_E_INPUT,
               "parameter %s of the student: the teachers have none of that name; the architectures must be "
               "the same",
               student->name);
    const rt_param *t = rt_params_get(teacher, slot);
    *out = t;
    if (student->role != RT_ROLE_WEIGHT || rt_shape_equal(&student->shape, &t->shape))
        return RT_OK;
    rt_str a, b;
    rt_str_init(&a);
    rt_str_init(&b);
    rt_shape_print(&student->shape, &a);
    rt_shape_print(&t->shape, &b);
    const rt_status st = rt_error_set(RT_E_INPUT, __FILE__, __LINE__,
                                      "parameter %s: has shape %s in the student and %s in the teachers",
                                      student->name, rt_str_text(&a), rt_str_text(&b));
    rt_str_deinit(&a);
    rt_str_deinit(&b);
    return st;
}

static rt_val leaf(rt_graph *g, const rt_params *p, const rt_param *line, int first) {
    return rt_graph_param(g, first + rt_params_find(p, line->name), line->name, line->shape);
}

/* Row m of a (M, width) parameter: (width). */
static rt_val row(rt_graph *g, const rt_params *p, const rt_param *line, int m) {
    return rt_reshape(g, rt_member_range(g, leaf(g, p, line, 0), m, 1), rt_shape1(line->shape.d[1]));
}

static rt_val member_weight(rt_graph *g, const rt_params *p, const rt_param *w, int m) {
    const rt_param *r = rt_params_beside(p, w->name, "r"), *s = rt_params_beside(p, w->name, "s");
    const rt_val w0 = leaf(g, p, w, 0);
    if (r == NULL || s == NULL)
        return w0;
    rt_shape tail = {.rank = w->shape.rank - 1};
    memcpy(tail.d, w->shape.d + 1, (size_t)tail.rank * sizeof tail.d[0]);
    return rt_mul(g, rt_mul_chan(g, w0, row(g, p, r, m)), rt_expand_row(g, row(g, p, s, m), tail));
}

rt_val rt_teacher_pull(rt_graph *g, const rt_params *student, const rt_params *teacher, const int *first,
                       int members) {
    rt_val sum = 0;
    double entries = 0;
    for (int slot = 0; slot < rt_params_count(student); slot++) {
        const rt_param *w = rt_params_get(student, slot), *t = NULL;
        if (w->role != RT_ROLE_WEIGHT)
            continue;
        const rt_status st = rt_teacher_param(&t, w, teacher);
        if (st != RT_OK) {
            rt_graph_set_error(g, st);
            return 0;
        }
        entries += (double)w->count;
        for (int m = 0; m < members; m++) {
            const rt_val apart = rt_sub(g, member_weight(g, student, w, m), leaf(g, teacher, t, first[m]));
            const rt_val square = rt_total_sum(g, rt_unary(g, RT_OP_SQUARE, apart));
            sum = sum != 0 ? rt_add(g, sum, square) : square;
        }
    }
    return rt_scale(g, sum, 1 / (members * entries), 0);
}
