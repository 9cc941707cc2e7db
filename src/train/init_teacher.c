/*
 * init_teacher.c - a BatchEnsemble student that starts at its teachers (--init-from-teacher).
 *
 *     true    W0 o s_m r_m^T nearest to the teachers' kernels as they are (distill/reconstruct_student.c)
 *     match   the same after every teacher was renumbered by weight matching (align/weight_match.c)
 *
 * Teachers trained apart have their units in different orders, and a product of rank one cannot reorder: the
 * shared W0 is then a mean of unlike units. Renumbering changes nothing of what a teacher computes, and the
 * residual, logged before and after, says what it brings. Teachers that answer keep their numbers, so a pull
 * towards their weights (--teacher-pull) does not go with it.
 */
#include "align/align.h"
#include "base/alloc.h"
#include "train/train_int.h"
#include <string.h>

bool rt_trainer_reconstructs(const rt_trainer *t) {
    return strcmp(t->config.init_from_teacher, "false") != 0;
}

static rt_status reconstruct(rt_trainer *t, float *block, const float *const *teachers,
                             rt_reconstruct_report *report) {
    const rt_model *model = t->net.model;
    const rt_teacher *from = t->teach.teacher;
    rt_reconstruct_report_deinit(report);
    return rt_reconstruct_student(rt_model_student(model), rt_model_params(model), block,
                                  rt_model_params(from->model), teachers, from->members, report);
}

/* Renumbered copies of the teachers, one after the other in `out`. */
static rt_status match(const rt_trainer *t, rt_params *params, const rt_net *net, float *out) {
    const float *const *teachers = t->teach.teacher->blocks;
    const int n = t->teach.teacher->members;
    const int64_t floats = rt_params_floats(params);
    rt_symmetry sym = {0};
    rt_matcher *m = NULL;
    int64_t *perms = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_symmetry_find(&sym, net, params));
    RT_TRY_GOTO(rt_calloc(&perms, (size_t)n * (size_t)sym.total + 1, sizeof *perms));
    for (int i = 0; i < n; i++)
        rt_perm_identity(&sym, perms + i * sym.total);
    RT_TRY_GOTO(rt_matcher_create(&m, &sym, params, t->pool));
    RT_TRY_GOTO(rt_matcher_many(m, teachers, n, false, perms, (uint64_t)t->c->seed, NULL, NULL));
    for (int i = 0; i < n; i++)
        rt_perm_apply(&sym, params, out + i * floats, teachers[i], perms + i * sym.total);
done:
    rt_matcher_destroy(&m);
    rt_free(perms);
    rt_symmetry_deinit(&sym);
    return st;
}

static rt_status reconstruct_matched(rt_trainer *t, float *block) {
    const int n = t->teach.teacher->members;
    rt_student_config s = *rt_student_get_config(rt_model_student(t->teach.teacher->model));
    rt_params *params = NULL;
    rt_student *student = NULL;
    float *renumbered = NULL;
    const float **blocks = NULL;
    rt_status st;
    s.arch.dropout = 0; /* no part of what is renumbered */
    RT_TRY_GOTO(reconstruct(t, block, t->teach.teacher->blocks, &t->teach.unmatched));
    RT_TRY_GOTO(rt_params_create(&params));
    RT_TRY_GOTO(rt_student_create(&student, &s, params));
    const int64_t floats = rt_params_floats(params);
    RT_TRY_GOTO(rt_calloc(&renumbered, (size_t)n * (size_t)floats, sizeof *renumbered));
    RT_TRY_GOTO(rt_calloc(&blocks, (size_t)n, sizeof *blocks));
    RT_TRY_GOTO(match(t, params, rt_student_net(student), renumbered));
    for (int i = 0; i < n; i++)
        blocks[i] = renumbered + i * floats;
    st = reconstruct(t, block, blocks, &t->teach.reconstruction);
done:
    rt_free(blocks);
    rt_free(renumbered);
    rt_student_destroy(&student);
    rt_params_destroy(&params);
    return st;
}

rt_status rt_trainer_reconstruct(rt_trainer *t, float *block) {
    return strcmp(t->config.init_from_teacher, "match") == 0
               ? reconstruct_matched(t, block)
               : reconstruct(t, block, t->teach.teacher->blocks, &t->teach.reconstruction);
}
