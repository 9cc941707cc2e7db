/*
 * layer_conv.c - convolution with a square kernel, weights (out, in, k, k) as PyTorch stores them.
 *
 * fan_in = in k^2, fan_out = out k^2. With members, r scales the input channels and s the output channels
 * (batch_ensemble.c).
 */
#include "nn/nn_int.h"

rt_val rt_nn_conv(rt_build *b, const char *name, rt_val x, int64_t out, int k, int stride, int pad,
                  rt_init init, bool bias) {
    if (!x)
        return 0;
    rt_shape row = rt_nn_row(b, x);
    if (row.rank != 3)
        RT_NN_FAIL(b, RT_E_USAGE,
                   "layer %s: input of rank %d, a convolution wants images (channels, height, width)", name,
                   row.rank);
    int64_t in = row.d[0], window = (int64_t)k * k;
    rt_val w = rt_nn_field(b, name, "weight",
                           (rt_param){.shape = rt_shape4(out, in, k, k),
                                      .role = RT_ROLE_WEIGHT,
                                      .init = init,
                                      .fan_in = in * window,
                                      .fan_out = out * window});
    rt_val y = rt_conv2d(b->g, rt_nn_fast_in(b, name, x, in), w, stride, pad);
    return rt_nn_fast_out(b, name, y, out, in * window, init, bias);
}
