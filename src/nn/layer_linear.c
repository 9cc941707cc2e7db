/*
 * layer_linear.c - the dense layer, y = x W^T + b with W (out, in) as PyTorch stores it.
 *
 * With members it is the BatchEnsemble layer y = ((x o r_m) W^T) o s_m + b_m of batch_ensemble.c.
 */
#include "nn/nn_int.h"

rt_val rt_nn_linear(rt_build *b, const char *name, rt_val x, int64_t out, rt_init init, bool bias) {
    if (!x)
        return 0;
    rt_shape row = rt_nn_row(b, x);
    if (row.rank != 1)
        RT_NN_FAIL(b, RT_E_USAGE, "layer %s: input of rank %d, a dense layer wants rows of numbers", name,
                   row.rank);
    int64_t in = row.d[0];
    rt_val w = rt_nn_field(
        b, name, "weight",
        (rt_param){
            .shape = rt_shape2(out, in), .role = RT_ROLE_WEIGHT, .init = init, .fan_in = in, .fan_out = out});
    rt_val y = rt_matmul(b->g, rt_nn_fast_in(b, name, x, in), w, false, true);
    return rt_nn_fast_out(b, name, y, out, in, init, bias);
}
