/*
 * trainer_valid.c - how good the networks of a run are on the rows held out: the likelihood and accuracy of
 * what would be shipped now, as `eval` would find them: rows are read by eval/row.c.
 */
#include "train/train_int.h"
#include <math.h>

/* Sums over rows in order; rt_predictor_run hands them over that way. */
static void take_valid(void *user, int network, int64_t row, int64_t n, const float *y, int64_t stride) {
    rt_trainer *t = user;
    rt_row *r = &t->valid_row;
    for (int64_t i = 0; i < n; i++, y += r->how.k) {
        rt_model_answer(t->ship, y, stride, t->valid_y);
        const bool good = rt_row_read(r, t->valid_y);
        const double truth = rt_subset_truth(&t->valid, row + i, t->regression);
        t->valid_loss[network] += good ? rt_row_nll(r, truth) : NAN;
        t->valid_accuracy[network] += good && !t->regression && (double)r->top == truth;
    }
}

/* What is shipped, of the weights of now: of a student that collapses the merged network is measured. */
static rt_status merge(rt_trainer *t) {
    for (int m = 0; m < t->members; m++) {
        t->blocks[m] = rt_step_values(t->step, m);
        if (t->ship == t->model)
            continue;
        RT_TRY(rt_student_merge(rt_model_student(t->model), rt_model_params(t->model), t->blocks[m], rt_model_params(t->ship),
                                rt_model_weights(t->ship, m)));
        t->blocks[m] = rt_model_block(t->ship, m);
    }
    return RT_OK;
}

rt_status rt_trainer_validate(rt_trainer *t) {
    for (int m = 0; m < t->members; m++)
        t->valid_loss[m] = t->valid_accuracy[m] = t->valid.n > 0 ? 0 : NAN;
    if (t->valid.n == 0)
        return RT_OK;
    RT_TRY(merge(t));
    RT_TRY(rt_predictor_run(t->predictor, &t->valid, t->blocks, t->members, take_valid, t,
                            t->hooks ? t->hooks->stop : NULL));
    for (int m = 0; m < t->members; m++) {
        t->valid_loss[m] /= (double)t->valid.n;
        t->valid_accuracy[m] = t->regression ? NAN : t->valid_accuracy[m] / (double)t->valid.n;
        RT_FAIL_IF(!isfinite(t->valid_loss[m]), RT_E_NUMERIC,
                   "member %d, epoch %lld: the validation loss is not finite", (int)t->team.members.lo + m, (long long)t->at.epoch + 1);
    }
    return RT_OK;
}
