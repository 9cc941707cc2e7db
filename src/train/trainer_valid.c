/*
 * trainer_valid.c - how good the networks of a run are on the rows held out: the likelihood and accuracy of
 * what would be shipped now.
 *
 * Members inside a student are averaged in probability; a Dirichlet is judged by its mean; a regression by
 * the mixture of its Gaussians.
 */
#include "train/train_int.h"
#include <math.h>

/* -ln of the mean over members of softmax(z)_y, in double; p (k) takes the mean. right: is y its largest?
 * offset: that of a Dirichlet. */
static double mean_nll(const float *z, int64_t stride, int members, int64_t k, int32_t y, double offset,
                       double *p, bool *right) {
    for (int64_t j = 0; j < k; j++)
        p[j] = 0;
    for (int m = 0; m < members; m++, z += stride) {
        double top = (double)z[0], sum = 0;
        for (int64_t j = 1; j < k; j++)
            top = RT_MAX(top, (double)z[j]);
        const double more = offset > 0 ? offset * exp(-RT_MAX(top, -600.0)) : 0;
        for (int64_t j = 0; j < k; j++)
            sum += exp((double)z[j] - top) + more;
        for (int64_t j = 0; j < k; j++)
            p[j] += (exp((double)z[j] - top) + more) / (sum * members);
    }
    int64_t best = 0;
    for (int64_t j = 1; j < k; j++)
        if (p[j] > p[best])
            best = j;
    *right = best == y;
    return -log(RT_MAX(p[y], 1e-300));
}

/* -ln of the mean over members of N(target; mu, e^v), by the largest term. */
static double mixture_nll(const float *z, int64_t stride, int members, double target) {
    const double half_ln_2pi = 0.91893853320467274178;
    double top = 0, sum = 0;
    for (int m = 0; m < members; m++) {
        const float *y = z + m * stride;
        const double v = RT_MIN(RT_MAX((double)y[1], -10.0), 10.0), d = target - (double)y[0];
        const double nll = 0.5 * (v + d * d * exp(-v)) + half_ln_2pi;
        if (m == 0 || nll < top) {
            sum = m == 0 ? 1 : sum * exp(nll - top) + 1;
            top = nll;
        } else {
            sum += exp(top - nll);
        }
    }
    return top - log(sum / members);
}

/* Sums over rows in order; rt_predictor_run hands them over that way. */
static void take_valid(void *user, int network, int64_t row, int64_t n, const float *y, int64_t stride) {
    rt_trainer *t = user;
    const int64_t k = rt_model_outputs(t->ship);
    const int members = rt_student_members(t->ship->student);
    double offset;
    rt_model_output_kind(t->ship, &offset);
    for (int64_t r = 0; r < n; r++, y += k) {
        const int64_t at = t->valid.index[row + r];
        if (t->regression) {
            const double target =
                ((double)t->valid.part->target[at] - t->model->target_mean) / t->model->target_std;
            t->valid_loss[network] += mixture_nll(y, stride, members, target);
        } else {
            bool right = false;
            t->valid_loss[network] +=
                mean_nll(y, stride, members, k, t->valid.part->label[at], offset, t->mean_p, &right);
            t->valid_accuracy[network] += right;
        }
    }
}

/* What is shipped, of the weights of now: of a student that collapses the merged network is measured. */
static rt_status merge(rt_trainer *t) {
    for (int m = 0; m < t->members; m++) {
        t->blocks[m] = rt_step_values(t->step, m);
        if (t->ship == t->model)
            continue;
        RT_TRY(rt_student_merge(t->model->student, t->model->params, t->blocks[m], t->ship->params,
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
    RT_TRY(rt_predictor_run(t->predictor, &t->valid, t->valid_order, t->blocks, t->members, take_valid, t,
                            t->hooks ? t->hooks->stop : NULL));
    for (int m = 0; m < t->members; m++) {
        t->valid_loss[m] /= (double)t->valid.n;
        t->valid_accuracy[m] = t->regression ? NAN : t->valid_accuracy[m] / (double)t->valid.n;
        RT_FAIL_IF(!isfinite(t->valid_loss[m]), RT_E_NUMERIC,
                   "member %d, epoch %lld: the validation loss is not finite", m, (long long)t->at.epoch + 1);
    }
    return RT_OK;
}
