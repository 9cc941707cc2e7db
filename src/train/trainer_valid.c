/*
 * trainer_valid.c - how good the networks of a run are on the rows held out: the likelihood and accuracy of
 * what would be shipped now, as `eval` would find them: rows are read by eval/row.c.
 */
#include "train/train_int.h"
#include <math.h>

bool rt_networks_read(rt_networks *n, const float *y, int64_t stride) {
    rt_model_answer(n->ship, y, stride, n->y);
    return rt_row_read(&n->row, n->y);
}

rt_status rt_networks_merge(const rt_networks *n, const float *block, int m) {
    return rt_student_merge(rt_model_student(n->model), rt_model_params(n->model), block,
                            rt_model_params(n->ship), rt_model_weights(n->ship, m));
}

/* Sums over rows in order; rt_predictor_run hands them over that way. */
static void take_valid(void *user, int network, int64_t row, int64_t n, const float *y, int64_t stride) {
    rt_trainer *t = user;
    rt_row *r = &t->net.row;
    for (int64_t i = 0; i < n; i++, y += r->how.k) {
        const bool good = rt_networks_read(&t->net, y, stride);
        const double truth = rt_subset_truth(&t->data.valid, row + i, t->data.regression);
        t->members.valid_loss[network] += good ? rt_row_nll(r, truth) : NAN;
        t->members.valid_accuracy[network] += good && !t->data.regression && (double)r->top == truth;
    }
}

/* What is shipped, of the weights of now: of a student that collapses the merged network is measured. */
static rt_status merge(rt_networks *n, int members) {
    for (int m = 0; m < members; m++) {
        n->blocks[m] = rt_step_values(n->step, m);
        if (n->ship == n->model)
            continue;
        RT_TRY(rt_networks_merge(n, n->blocks[m], m));
        n->blocks[m] = rt_model_block(n->ship, m);
    }
    return RT_OK;
}

rt_status rt_trainer_validate(rt_trainer *t) {
    rt_members *of = &t->members;
    const double rows = (double)t->data.valid.n;
    for (int m = 0; m < of->own; m++)
        of->valid_loss[m] = of->valid_accuracy[m] = rows > 0 ? 0 : NAN;
    if (t->data.valid.n == 0)
        return RT_OK;
    RT_TRY(merge(&t->net, of->own));
    RT_TRY(rt_predictor_run(t->net.predictor, &t->data.valid, t->net.blocks, of->own, take_valid, t,
                            rt_trainer_stop(t)));
    for (int m = 0; m < of->own; m++) {
        of->valid_loss[m] /= rows;
        of->valid_accuracy[m] = t->data.regression ? NAN : of->valid_accuracy[m] / rows;
        RT_FAIL_IF(!isfinite(of->valid_loss[m]), RT_E_NUMERIC,
                   "member %d, epoch %lld: the validation loss is not finite", (int)of->team.members.lo + m,
                   (long long)t->at.epoch + 1);
    }
    return RT_OK;
}
