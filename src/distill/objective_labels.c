/*
 * objective_labels.c - learning from labels or targets, with no teacher.
 *
 *     classification   L = mean over rows of CE((1 - e) one-hot(y) + e / K, softmax(z))
 *     regression       L = mean over rows of 1/2 (v + (y - mu)^2 e^-v) + 1/2 ln 2 pi
 *
 * e is the label smoothing, (mu, v) the outputs of regression, v cut to [-10, 10]. Rows are those of all
 * members of the student.
 */
#include "distill/distill_int.h"

static rt_val tiled(const rt_objective_in *in, rt_val rows) {
    const int m = rt_groups(in->g, in->student);
    return m > 1 ? rt_tile_members(in->g, rows, m) : rows;
}

rt_val rt_labels_loss(const rt_objective_in *in) {
    if (in->regression)
        return rt_gaussian_loss(in->g, in->student, tiled(in, in->target), 0);
    return rt_batch_mean(in->g, rt_ce_label(in->g, in->student, tiled(in, in->label), in->label_smoothing));
}

const rt_objective rt_objective_labels = {
    "labels", "cross-entropy of labels, or Gaussian likelihood of targets",
    RT_OBJ_LABELS | RT_OBJ_CLASSIFICATION | RT_OBJ_REGRESSION, rt_labels_loss};
