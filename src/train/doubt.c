/*
 * doubt.c - says plainly when training was in vain.
 *
 *     worse than nothing   on held-out rows the kept weights are worse than someone who saw the training targets only:
 *                          of a regression, NLL above that of N(mean, deviation^2), or squared error above that of the mean;
 *                          of a classification, NLL above that of frequencies (n_c + 1) / (n + K)
 *     lost                 the training loss of the last epoch is tenfold its lowest: above it by more than
 *                          9 max(|lowest|, 0.1)
 *
 * A fall of the temperature changes the scale of the loss: the lowest is that since then.
 */
#include "base/alloc.h"
#include "train/train_int.h"
#include <math.h>
#include <stdio.h>

/* Mean NLL of the held-out rows under one Gaussian, of the target as the networks see it. */
static double gaussian_baseline(const rt_subset *valid, const rt_target *a) {
    double sum = 0;
    for (int64_t i = 0; i < valid->n; i++)
        sum += rt_gaussian_nll(a->mean, a->std * a->std, &a->warp, rt_subset_target(valid, i));
    return sum / (double)valid->n;
}

/* Squares of the distances to the mean of the training rows. */
static double squared_baseline(const rt_train_data *d, const rt_target *a) {
    double mean = a->warp.kind == RT_WARP_NONE ? a->mean : 0, sum = 0;
    for (int64_t i = 0; a->warp.kind != RT_WARP_NONE && i < d->labelled.n; i++)
        mean += rt_subset_target(&d->labelled, i) / (double)d->labelled.n;
    for (int64_t i = 0; i < d->valid.n; i++) {
        const double far = rt_subset_target(&d->valid, i) - mean;
        sum += far * far;
    }
    return sum;
}

/* Sums of squared errors go where the accuracies of a classification would. */
static void take_errors(void *user, int network, int64_t row, int64_t n, const float *y, int64_t stride) {
    rt_trainer *t = user;
    for (int64_t i = 0; i < n; i++, y += t->net.row.how.k) {
        const bool good = rt_networks_read(&t->net, y, stride);
        const double far = good ? t->net.row.mean - rt_subset_target(&t->data.valid, row + i) : NAN;
        t->members.valid_accuracy[network] += far * far;
    }
}

static rt_status count_errors(rt_trainer *t, bool *worse) {
    for (int m = 0; m < t->members.own; m++) {
        t->net.blocks[m] = rt_model_block(t->net.ship, m);
        t->members.valid_accuracy[m] = 0;
    }
    RT_TRY(rt_predictor_run(t->net.predictor, &t->data.valid, t->net.blocks, t->members.own, take_errors, t,
                            NULL));
    const double nothing = squared_baseline(&t->data, rt_model_target(t->net.model));
    for (int m = 0; m < t->members.own; m++) {
        worse[m] = worse[m] || !(t->members.valid_accuracy[m] <= nothing);
        t->members.valid_accuracy[m] = NAN;
    }
    return RT_OK;
}

static rt_status class_baseline(const rt_train_data *d, double *out) {
    const int64_t k = rt_dataset_classes(d->set), n = d->labelled.n;
    double *count, sum = 0;
    RT_TRY(rt_calloc(&count, (size_t)k, sizeof *count));
    for (int64_t i = 0; i < n; i++)
        count[rt_subset_label(&d->labelled, i)]++;
    for (int64_t i = 0; i < d->valid.n; i++)
        sum -= log((count[rt_subset_label(&d->valid, i)] + 1) / (double)(n + k));
    *out = sum / (double)d->valid.n;
    rt_free(count);
    return RT_OK;
}

void rt_trainer_lowest(rt_trainer *t) {
    rt_progress_state *at = &t->at;
    const bool anew =
        at->epoch == rt_aim_phase(&t->aim)->first ||
        rt_trainer_last_temperature(t, at->epoch - 1) > rt_trainer_last_temperature(t, at->epoch);
    for (int m = 0; m < t->members.own; m++) {
        const double loss = at->loss_sum[m] / (double)t->data.epoch_rows;
        if (anew || loss < at->lowest[m])
            at->lowest[m] = loss;
    }
}

/* Which networks are worse than nothing; baseline: the NLL of that. */
static rt_status judge(rt_trainer *t, bool *worse, double *baseline) {
    *baseline = NAN;
    if (t->data.valid.n == 0 || t->at.step == 0)
        return RT_OK;
    if (t->data.regression)
        *baseline = gaussian_baseline(&t->data.valid, rt_model_target(t->net.model));
    else
        RT_TRY(class_baseline(&t->data, baseline));
    for (int m = 0; m < t->members.own; m++)
        worse[m] = t->at.kept_loss[m] > *baseline;
    return t->data.regression ? count_errors(t, worse) : RT_OK;
}

rt_status rt_trainer_doubt(rt_trainer *t, char out[RT_DOUBT_MAX]) {
    rt_members *of = &t->members;
    bool *worse;
    int nworse = 0, lost = 0, n = 0;
    double baseline;
    out[0] = 0;
    RT_TRY(rt_calloc(&worse, (size_t)of->own, sizeof *worse));
    const rt_status st = judge(t, worse, &baseline);
    for (int m = 0; m < of->own; m++) /* the losses of the last step have been told: their place is free */
        of->losses[m] = worse[m];
    rt_free(worse);
    RT_TRY(st);
    RT_TRY(rt_members_gather(of));
    for (int m = 0; m < of->all && t->at.step > 0; m++) {
        const double last = rt_members_all(of, t->at.loss_sum)[m] / (double)t->data.epoch_rows;
        const double lowest = rt_members_all(of, t->at.lowest)[m];
        nworse += rt_members_all(of, of->losses)[m] > 0;
        lost += last > lowest + 9 * fmax(fabs(lowest), 0.1);
    }
    const char *many = of->all == 1 ? "" : "s";
    if (nworse > 0)
        n = snprintf(out, RT_DOUBT_MAX,
                     "%d of %d network%s answer%s held-out rows worse than the %s of the training rows alone "
                     "(NLL of all %.4g, without a network %.4g)",
                     nworse, of->all, many, of->all == 1 ? "s" : "",
                     t->data.regression ? "mean and deviation" : "class frequencies",
                     rt_members_mean(of, t->at.kept_loss), baseline);
    if (lost > 0)
        n += snprintf(out + n, (size_t)(RT_DOUBT_MAX - n),
                      "%sthe training loss of %d of %d network%s rose more than tenfold", n > 0 ? "; " : "",
                      lost, of->all, many);
    if (n > 0)
        snprintf(out + n, (size_t)(RT_DOUBT_MAX - n), "%s",
                 t->c->lr == 0 ? "; --lr 0 trains nothing"
                               : "; try a lower --lr, --clip-norm 1 or more --epochs");
    return RT_OK;
}
