/*
 * vec_members.c - groups of rows copied, placed, joined and summed.
 *
 * Rows are outermost in every data layout, so a group is one run of memory and its layout does not matter as
 * long as input and output have the same. Copies go by bytes and serve any type; only SUM_MEMBERS computes.
 */
#include "kern/kern.h"
#include "kern/vec/simd.h"

#define KERNEL(name)                                                                                         \
    static void run_##name(const void *state RT_UNUSED, const rt_problem *p RT_UNUSED, void *out,            \
                           const void *const *in, const rt_kern_ctx *ctx RT_UNUSED)

KERNEL(tile_members) {
    const size_t block = rt_desc_bytes(&p->in[0]), total = rt_desc_bytes(&p->out);
    for (size_t at = 0; at < total; at += block)
        memcpy((char *)out + at, in[0], block);
}

/* In double, as few groups as there are. */
KERNEL(sum_members) {
    const float *src = in[0];
    float *dst = out;
    const int64_t n = rt_desc_elems(&p->out), groups = rt_desc_elems(&p->in[0]) / n;
    for (int64_t i = 0; i < n; i += V_W) {
        v_wide sum = {0};
        for (int64_t g = 0; g < groups; g++)
            v_wide_add(&sum, v_load_part(src + g * n + i, n - i));
        double part[V_W];
        vd_store(part, sum.lo);
        vd_store(part + V_W / 2, sum.hi);
        for (int64_t j = 0; j < V_W && i + j < n; j++)
            dst[i + j] = (float)part[j];
    }
}

/* An index outside the groups gives zeros. */
KERNEL(member_get) {
    const size_t block = rt_desc_bytes(&p->out), groups = rt_desc_bytes(&p->in[0]) / block;
    const int32_t index = *(const int32_t *)in[1];
    if (index >= 0 && (size_t)index < groups)
        memcpy(out, (const char *)in[0] + (size_t)index * block, block);
    else
        memset(out, 0, block);
}

KERNEL(member_put) {
    const size_t block = rt_desc_bytes(&p->in[0]), groups = rt_desc_bytes(&p->out) / block;
    const int32_t index = *(const int32_t *)in[1];
    for (size_t g = 0; g < groups; g++) {
        char *to = (char *)out + g * block;
        if (index >= 0 && (size_t)index == g)
            memcpy(to, in[0], block);
        else
            memset(to, 0, block);
    }
}

KERNEL(member_range) {
    const size_t bytes = rt_desc_bytes(&p->out), block = bytes / (size_t)p->attr.count;
    memcpy(out, (const char *)in[0] + (size_t)p->attr.start * block, bytes);
}

KERNEL(member_place) {
    const size_t total = rt_desc_bytes(&p->out), block = total / (size_t)p->attr.members;
    const size_t from = (size_t)p->attr.start * block, to = from + rt_desc_bytes(&p->in[0]);
    memset(out, 0, from);
    memcpy((char *)out + from, in[0], to - from);
    memset((char *)out + to, 0, total - to);
}

KERNEL(concat_members) {
    char *dst = out;
    for (int i = 0; i < p->nin; i++) {
        const size_t bytes = rt_desc_bytes(&p->in[i]);
        memcpy(dst, in[i], bytes);
        dst += bytes;
    }
}

/* ---- registration ---- */

static bool supports_copy(const rt_problem *p) {
    const rt_layout l = p->out.layout;
    const int data = p->op == RT_OP_MEMBER_GET || p->op == RT_OP_MEMBER_PUT ? 1 : p->nin;
    if (l != RT_LAYOUT_PLAIN && l != RT_LAYOUT_C8 && l != RT_LAYOUT_C16)
        return false;
    for (int i = 0; i < data; i++)
        if (p->in[i].layout != l || p->in[i].dtype != p->out.dtype || rt_desc_elems(&p->in[i]) == 0)
            return false;
    return rt_desc_elems(&p->out) > 0;
}
static bool supports_sum(const rt_problem *p) {
    return supports_copy(p) && p->out.dtype == RT_DTYPE_F32;
}

#define REGISTER(name, which)                                                                                \
    const rt_kern RT_V(rt_k_##name##_f32) = {.impl = RT_V_IMPL, .supports = which, .run = run_##name};
REGISTER(tile_members, supports_copy)
REGISTER(sum_members, supports_sum)
REGISTER(member_get, supports_copy)
REGISTER(member_put, supports_copy)
REGISTER(member_range, supports_copy)
REGISTER(member_place, supports_copy)
REGISTER(concat_members, supports_copy)
