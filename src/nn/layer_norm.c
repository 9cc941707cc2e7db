/*
 * layer_norm.c - batch normalisation (Ioffe and Szegedy 2015), y = gamma (x - mean) / sqrt(var + eps) + beta
 * per channel.
 *
 * Training uses the statistics of the batch and moves the running ones, running = (1 - momentum) running +
 * momentum batch, as updates of the graph; otherwise the running ones are used. Members share one set of
 * statistics over the whole tiled batch unless member_bn is set, when gamma, beta and statistics are
 * (members, channels), one row each.
 */
#include "nn/nn_int.h"

rt_val rt_nn_batch_norm(rt_build *b, const char *name, rt_val x, double eps, double momentum) {
    if (!x)
        return 0;
    rt_shape row = rt_nn_row(b, x);
    if (row.rank != 1 && row.rank != 3)
        RT_NN_FAIL(b, RT_E_USAGE, "layer %s: input of rank %d, batch normalisation wants rows or images",
                   name, row.rank);
    int sets = b->member_bn ? rt_nn_members(b) : 1;
    rt_shape s = sets > 1 ? rt_shape2(sets, row.d[0]) : rt_shape1(row.d[0]);
    rt_val gamma =
        rt_nn_field(b, name, "weight", (rt_param){.shape = s, .role = RT_ROLE_NORM, .init = RT_INIT_ONE});
    rt_val beta =
        rt_nn_field(b, name, "bias", (rt_param){.shape = s, .role = RT_ROLE_NORM, .init = RT_INIT_ZERO});
    rt_val mean = rt_nn_field(b, name, "running_mean",
                              (rt_param){.shape = s, .role = RT_ROLE_STATE, .init = RT_INIT_ZERO});
    rt_val var = rt_nn_field(b, name, "running_var",
                             (rt_param){.shape = s, .role = RT_ROLE_STATE, .init = RT_INIT_ONE});
    if (b->pick != 0 && sets > 1) {
        gamma = rt_member_get(b->g, gamma, b->pick);
        beta = rt_member_get(b->g, beta, b->pick);
        mean = rt_member_get(b->g, mean, b->pick);
        var = rt_member_get(b->g, var, b->pick);
        sets = 1;
    }
    if (!b->train)
        return rt_batch_norm_eval(b->g, x, gamma, beta, mean, var, eps, sets);
    rt_bn_result r = rt_batch_norm_train(b->g, x, gamma, beta, mean, var, eps, momentum, sets);
    if (r.y) {
        rt_graph_update(b->g, mean, r.mean);
        rt_graph_update(b->g, var, r.var);
    }
    return r.y;
}
