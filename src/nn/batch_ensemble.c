/*
 * batch_ensemble.c - members that share a weight and differ by rank one (Wen et al. 2020).
 *
 * Member m of a layer has the weight W o (s_m r_m^T), which need never be formed:
 *
 *     x' = x o r_m      z = x' W^T      y = z o s_m + b_m
 *
 * r is (members, in), s (members, out); in a convolution they scale channels. The batch is tiled
 * member-major, so one large product serves all members. The bias is per member and added after s (edward2),
 * or shared and added before it (LatentBE: y = (z + b) o s_m). With `pick`, one member is built alone.
 * r and s have their own role: they take neither weight decay nor, usually, the full learning rate.
 */
#include "nn/nn_int.h"

/* The usual start: N(1, 0.5). */
static rt_param fast_spec(const rt_build *b, int64_t width) {
    bool own = b->fast_init != RT_INIT_DEFAULT;
    return (rt_param){.shape = rt_shape2(b->members, width),
                      .role = RT_ROLE_FAST,
                      .init = own ? b->fast_init : RT_INIT_NORMAL_AROUND_ONE,
                      .init_scale = own ? b->fast_scale : 0.5,
                      .fan_in = 1,
                      .fan_out = 1};
}

/* All members' rows, or the row of the member that is built alone. */
static rt_val picked(const rt_build *b, rt_val rows) {
    return b->pick != 0 ? rt_member_get(b->g, rows, b->pick) : rows;
}

rt_val rt_nn_fast_in(rt_build *b, const char *name, rt_val x, int64_t in) {
    if (b->members < 2)
        return x;
    return rt_mul_chan(b->g, x, picked(b, rt_nn_field(b, name, "r", fast_spec(b, in))));
}

rt_val rt_nn_fast_out(rt_build *b, const char *name, rt_val y, int64_t out, int64_t fan_in, rt_init init,
                      bool bias) {
    const bool each = b->members > 1 && !b->shared_bias;
    const rt_param spec = {.shape = each ? rt_shape2(b->members, out) : rt_shape1(out),
                           .role = RT_ROLE_BIAS,
                           .init = rt_nn_bias_init(init),
                           .fan_in = fan_in,
                           .fan_out = out};
    if (bias && !each)
        y = rt_add_chan(b->g, y, rt_nn_field(b, name, "bias", spec));
    if (b->members > 1)
        y = rt_mul_chan(b->g, y, picked(b, rt_nn_field(b, name, "s", fast_spec(b, out))));
    if (bias && each)
        y = rt_add_chan(b->g, y, picked(b, rt_nn_field(b, name, "bias", spec)));
    return y;
}
