/*
 * older.c - runs that version 0.1 began: continued by its rules, or refused with the reason.
 *
 * What that version meant otherwise:
 *
 *     one-cycle       lr was the highest rate: 0.01 lr -> lr -> 0.01 lr, then to lr / 1000
 *     end2            the temperature divided logits, not their differences, and fell once an epoch
 *     hydra           --keep best was by accuracy
 *     batch-ensemble  biases of members took the whole rate (rt_student_config.full_bias_rate)
 *     regression      losses were those of standardised targets: without ln(deviation of the targets); no transforms
 *     latent-be       adamw pulled the factors towards 0, which was a mistake: not continued
 */
#include "train/train_int.h"
#include <math.h>
#include <string.h>

rt_status rt_older_settings(rt_trainer *t) {
    if (!rt_config_older(&t->config))
        return RT_OK;
    RT_FAIL_IF(strncmp(t->config.student, "latent-be", 9) == 0 && strcmp(t->config.optimiser, "adamw") == 0,
               RT_E_UNSUPPORTED,
               "--resume: version 0.1, which began this run, let adamw pull LatentBE's factors towards 0 "
               "instead of 1; begin "
               "it anew (--force)");
    t->config.temperature_on = "logits";
    if (t->data.regression)
        t->config.target_transform = "none";
    if (!t->data.regression && strcmp(t->config.keep, "best") == 0)
        t->aim.keep_by_loss = false;
    return RT_OK;
}

void rt_older_schedule(rt_trainer *t) {
    if (rt_config_older(&t->config)) {
        t->net.schedule.low = 0.01;
        t->net.schedule.high = 1;
    }
}

void rt_older_kept(rt_trainer *t) {
    for (int m = 0; t->data.regression && rt_config_older(&t->config) && m < t->members.own; m++)
        t->at.kept_loss[m] += log(rt_model_target(t->net.model)->std);
}
