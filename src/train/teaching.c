/*
 * teaching.c - what a run learns from besides labels: a teacher, whose outputs are stored once or computed in each
 * step, and inputs besides those of the data.
 */
#include "base/alloc.h"
#include "base/rng.h"
#include "base/size.h"
#include "train/train_int.h"
#include <math.h>
#include <string.h>

enum { DIVERSITY_ROWS = 128 };

rt_status rt_teaching_open(rt_trainer *t) {
    const rt_config *c = t->c;
    rt_teaching *g = &t->teach;
    const bool outside = (t->aim.phases[t->aim.nphases - 1].objective->needs & RT_OBJ_OOD) != 0;
    if (c->aux)
        RT_TRY(rt_aux_open(&g->aux, t->data.set, c, outside, RT_MIN(c->batch, t->data.train.n)));
    if (c->aux && !outside)
        RT_TRY(rt_aux_extend(&g->aux, &t->data.train));
    g->diversity = NAN;
    return g->teacher ? rt_teacher_check(g->teacher, t->data.set, t->data.train.part->n) : RT_OK;
}

rt_status rt_teaching_make_room(rt_teaching *g, int members, int64_t batch) {
    size_t rows, floats;
    if (!g->teacher)
        return RT_OK;
    RT_FAIL_IF(!rt_size_mul((size_t)members, (size_t)batch, &rows) ||
                   !rt_size_mul(rows, (size_t)g->teacher->members * (size_t)g->teacher->outputs, &floats),
               RT_E_MEMORY, "the batch is too large");
    return rt_calloc(&g->rows, floats, sizeof *g->rows);
}

rt_status rt_teaching_ask(rt_trainer *t) {
    rt_teacher *teacher = t->teach.teacher;
    char *dir = NULL;
    rt_status st = RT_OK;
    if (!teacher || t->c->online_teacher)
        return RT_OK;
    if (strcmp(t->c->cache, "auto") == 0)
        RT_TRY_GOTO(rt_run_dir_file(&t->dir, "predictions", &dir));
    else
        RT_TRY_GOTO(rt_path_expand(&dir, t->c->cache));
    rt_trainer_start_clocks(t);
    rt_trainer_progress(t, false, "asking the teacher");
    RT_TRY_GOTO(
        rt_teacher_compute(teacher, t->data.train.part, t->data.hash, dir, t->pool, rt_trainer_stop(t)));
    if (t->data.regression)
        rt_teacher_standardise(teacher, rt_model_target(t->net.model));
    else
        st = rt_teacher_diversity(teacher, rt_train_data_judges(&t->data), DIVERSITY_ROWS,
                                  &t->teach.diversity);
done:
    rt_free(dir);
    return st;
}

/* i != j, the same for teachers and student; of a single teacher both are it. */
void rt_teaching_pair(const rt_teaching *g, int64_t seed, int64_t step, uint64_t purpose, int32_t pair[2]) {
    const uint64_t n = g->teacher ? (uint64_t)g->teacher->members : 1;
    const rt_rng r = rt_rng_make((uint64_t)seed, RT_RNG_PAIR, (uint64_t)step, purpose);
    pair[0] = pair[1] = (int32_t)rt_rng_below(r, 0, n);
    if (n > 1) {
        pair[1] = (int32_t)rt_rng_below(r, 1, n - 1);
        pair[1] += pair[1] >= pair[0];
    }
}

rt_status rt_teaching_next(rt_teaching *g, const rt_batch *b, int members, rt_step_io *io) {
    const rt_teacher *teacher = g->teacher;
    for (int m = 0; g->rows && m < members; m++)
        rt_teacher_gather(teacher, b->source + m * b->rows, b->rows,
                          g->rows + m * b->rows * teacher->members * teacher->outputs);
    io->teacher = g->rows;
    io->teacher_blocks = teacher ? teacher->blocks : NULL;
    return g->aux.outside ? rt_aux_next(&g->aux, members, b->rows, &io->ood) : RT_OK;
}

void rt_teaching_close(rt_teaching *g) {
    rt_reconstruct_report_deinit(&g->reconstruction);
    rt_reconstruct_report_deinit(&g->unmatched);
    rt_aux_close(&g->aux);
    rt_teacher_destroy(&g->teacher);
    rt_free(g->rows);
}
