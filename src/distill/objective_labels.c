/*
 * objective_labels.c - learning from labels or targets, with no teacher.
 *
 *     classification   L = mean over rows of w_y CE((1 - e) one-hot(y) + e / K, softmax(z))
 *     regression       L = mean over rows of 1/2 (v + (y - mu)^2 e^-v) + 1/2 ln 2 pi
 *
 * w are the weights of classes (default: 1), e is the label smoothing, (mu, v) the outputs of regression, v cut to
 * [-10, 10]. Rows are those of all members of the student.
 */
#include "distill/distill_int.h"

static rt_val tiled(const rt_objective_in *in, rt_val rows) {
    const int m = rt_groups(in->g, in->student);
    return m > 1 ? rt_tile_members(in->g, rows, m) : rows;
}

/* loss (rows) times the weight of each row's class. */
static rt_val weighted(const rt_objective_in *in, rt_val loss, rt_val label) {
    if (!in->class_weight)
        return loss;
    const int64_t k = rt_graph_node(in->g, in->student)->type.shape.d[1];
    const rt_val w = rt_graph_const(in->g, rt_shape1(k), in->class_weight);
    return rt_mul(in->g, loss, rt_row_sum(in->g, rt_mul_chan(in->g, rt_one_hot(in->g, label, k), w)));
}

rt_val rt_labels_loss(const rt_objective_in *in) {
    if (in->regression)
        return rt_gaussian_loss(in->g, in->student, tiled(in, in->target), 0);
    const rt_val label = tiled(in, in->label);
    return rt_batch_mean(in->g,
                         weighted(in, rt_ce_label(in->g, in->student, label, in->label_smoothing), label));
}

const rt_objective rt_objective_labels = {
    .name = "labels",
    .meaning = "cross-entropy of labels, or Gaussian likelihood of targets",
    .needs = RT_OBJ_LABELS | RT_OBJ_WEIGHTED | RT_OBJ_CLASSIFICATION | RT_OBJ_REGRESSION,
    .build = rt_labels_loss};
