/*
 * grad_shape.c - gradient rules of operations that move elements: each is the adjoint movement.
 */
#include "graph/graph_int.h"

/* Members of a value: groups of rows, or axis 0 of a global value. */
static int32_t members_in(const rt_grad_ctx *c, const rt_node *nd, int i) {
    rt_type t = rt_grad_type(c, nd, i);
    return t.groups > 0 ? t.groups : (int32_t)t.shape.d[0];
}

RT_GRAD_RULE(reshape) {
    rt_type x = rt_grad_type(c, nd, 0);
    rt_grad_give(c, nd->in[0], rt_op1(c->g, RT_OP_RESHAPE, (rt_attr){.shape = rt_type_row(&x)}, dy));
}

RT_GRAD_RULE(transpose) {
    rt_grad_give(c, nd->in[0], rt_transpose(c->g, dy));
}

RT_GRAD_RULE(tile_members) {
    rt_grad_give(c, nd->in[0], rt_sum_members(c->g, dy));
}

RT_GRAD_RULE(sum_members) {
    rt_grad_give(c, nd->in[0], rt_tile_members(c->g, dy, members_in(c, nd, 0)));
}

RT_GRAD_RULE(member_get) {
    rt_attr a = {.members = members_in(c, nd, 0)};
    rt_grad_give(c, nd->in[0], rt_op2(c->g, RT_OP_MEMBER_PUT, a, dy, nd->in[1]));
}

RT_GRAD_RULE(member_put) {
    rt_grad_give(c, nd->in[0], rt_member_get(c->g, dy, nd->in[1]));
}

RT_GRAD_RULE(member_range) {
    rt_attr a = {.start = nd->attr.start, .members = members_in(c, nd, 0)};
    rt_grad_give(c, nd->in[0], rt_op1(c->g, RT_OP_MEMBER_PLACE, a, dy));
}

RT_GRAD_RULE(member_place) {
    rt_attr a = {.start = nd->attr.start, .count = members_in(c, nd, 0)};
    rt_grad_give(c, nd->in[0], rt_op1(c->g, RT_OP_MEMBER_RANGE, a, dy));
}

RT_GRAD_RULE(concat_members) {
    int32_t start = 0;
    for (int i = 0; i < nd->nin; i++) {
        int32_t m = members_in(c, nd, i);
        if (rt_grad_wants(c, nd->in[i]))
            rt_grad_give(c, nd->in[i], rt_member_range(c->g, dy, start, m));
        start += m;
    }
}

RT_GRAD_RULE(slice_last) {
    rt_type x = rt_grad_type(c, nd, 0);
    rt_attr a = {.start = nd->attr.start, .index = (int32_t)x.shape.d[x.shape.rank - 1]};
    rt_grad_give(c, nd->in[0], rt_op1(c->g, RT_OP_PAD_LAST, a, dy));
}

RT_GRAD_RULE(pad_last) {
    rt_type x = rt_grad_type(c, nd, 0);
    rt_grad_give(c, nd->in[0], rt_slice_last(c->g, dy, nd->attr.start, x.shape.d[x.shape.rank - 1]));
}
