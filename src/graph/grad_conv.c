/*
 * grad_conv.c - gradient rules of the convolution and its adjoints.
 *
 * The convolution is bilinear: with <.,.> the scalar product,
 *
 *     <dy, conv(x, w)> = <bwd_data(dy, w), x> = <bwd_weights(x, dy), w>
 *
 * so the gradients of each of the three are the other two.
 */
#include "graph/graph_int.h"

static rt_val conv(rt_grad_ctx *c, const rt_node *nd, rt_val x, rt_val w) {
    return rt_conv2d(c->g, x, w, nd->attr.stride, nd->attr.pad);
}

static rt_val bwd_data(rt_grad_ctx *c, const rt_node *nd, rt_val dy, rt_val w, rt_val x) {
    rt_shape s = c->g->nodes[x].type.shape;
    rt_attr a = {.stride = nd->attr.stride, .pad = nd->attr.pad, .h = s.d[2], .w = s.d[3]};
    return rt_op2(c->g, RT_OP_CONV2D_BWD_DATA, a, dy, w);
}

static rt_val bwd_weights(rt_grad_ctx *c, const rt_node *nd, rt_val x, rt_val dy, rt_val w) {
    rt_shape s = c->g->nodes[w].type.shape;
    rt_attr a = {
        .stride = nd->attr.stride, .pad = nd->attr.pad, .kh = (int32_t)s.d[2], .kw = (int32_t)s.d[3]};
    return rt_op2(c->g, RT_OP_CONV2D_BWD_WEIGHTS, a, x, dy);
}

RT_GRAD_RULE(conv2d) {
    rt_val x = nd->in[0], w = nd->in[1];
    if (rt_grad_wants(c, x))
        rt_grad_give(c, x, bwd_data(c, nd, dy, w, x));
    if (rt_grad_wants(c, w))
        rt_grad_give(c, w, bwd_weights(c, nd, x, dy, w));
}

/* y = bwd_data(e, w), of the shape of an image. */
RT_GRAD_RULE(conv2d_bwd_data) {
    rt_val e = nd->in[0], w = nd->in[1];
    if (rt_grad_wants(c, e))
        rt_grad_give(c, e, conv(c, nd, dy, w));
    if (rt_grad_wants(c, w))
        rt_grad_give(c, w, bwd_weights(c, nd, dy, e, w));
}

/* y = bwd_weights(x, e), of the shape of weights. */
RT_GRAD_RULE(conv2d_bwd_weights) {
    rt_val x = nd->in[0], e = nd->in[1];
    if (nd->attr.members > 1) {
        rt_graph_refuse(c->g, rt_error_set(RT_E_UNSUPPORTED, __FILE__, __LINE__,
                                           "conv2d_bwd_weights per member has no gradient"));
        return;
    }
    if (rt_grad_wants(c, x))
        rt_grad_give(c, x, bwd_data(c, nd, e, dy, x));
    if (rt_grad_wants(c, e))
        rt_grad_give(c, e, conv(c, nd, x, dy));
}
