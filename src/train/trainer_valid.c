/*
 * trainer_valid.c - how good the networks of a run are on the rows held out: the likelihood and accuracy of
 * what would be shipped now, as `eval` would find them: rows are read by eval/row.c.
 */
#include "train/train_int.h"
#include <math.h>

/* Sums over rows in order; rt_predictor_run hands them over that way. */
static void take_valid(void *user, int network, int64_t row, int64_t n, const float *y, int64_t stride) {
    rt_trainer *t = user;
    rt_row *r = &t->net.row;
    for (int64_t i = 0; i < n; i++, y += r->how.k) {
        rt_model_answer(t->net.ship, y, stride, t->net.y);
        const bool good = rt_row_read(r, t->net.y);
        const double truth = rt_subset_truth(&t->data.valid, row + i, t->data.regression);
        t->members.valid_loss[network] += good ? rt_row_nll(r, truth) : NAN;
        t->members.valid_accuracy[network] += good && !t->data.regression && (double)r->top == truth;
    }
}

/* What is shipped, of the weights of now: of a student that collapses the merged network is measured. */
static rt_status merge(rt_trainer *t) {
    for (int m = 0; m < t->members.own; m++) {
        t->net.blocks[m] = rt_step_values(t->net.step, m);
        if (t->net.ship == t->net.model)
            continue;
        RT_TRY(rt_student_merge(rt_model_student(t->net.model), rt_model_params(t->net.model), t->net.blocks[m], rt_model_params(t->net.ship),
                                rt_model_weights(t->net.ship, m)));
        t->net.blocks[m] = rt_model_block(t->net.ship, m);
    }
    return RT_OK;
}

rt_status rt_trainer_validate(rt_trainer *t) {
    for (int m = 0; m < t->members.own; m++)
        t->members.valid_loss[m] = t->members.valid_accuracy[m] = t->data.valid.n > 0 ? 0 : NAN;
    if (t->data.valid.n == 0)
        return RT_OK;
    RT_TRY(merge(t));
    RT_TRY(rt_predictor_run(t->net.predictor, &t->data.valid, t->net.blocks, t->members.own, take_valid, t,
                            rt_trainer_stop(t)));
    for (int m = 0; m < t->members.own; m++) {
        t->members.valid_loss[m] /= (double)t->data.valid.n;
        t->members.valid_accuracy[m] = t->data.regression ? NAN : t->members.valid_accuracy[m] / (double)t->data.valid.n;
        RT_FAIL_IF(!isfinite(t->members.valid_loss[m]), RT_E_NUMERIC,
                   "member %d, epoch %lld: the validation loss is not finite", (int)t->members.team.members.lo + m, (long long)t->at.epoch + 1);
    }
    return RT_OK;
}
