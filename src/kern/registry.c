/*
 * registry.c - from an operation to the kernels that compute it.
 *
 * Two tables. The references come from op.def, both types, so that an operation without one does not link.
 * The others come from kern.def in its order, which is the order of preference. A list is short and asked for
 * once per node at compile time: a linear walk over kern.def is all it takes.
 */
#include "kern/kern_ref.h"

/* ---- references ---- */

static bool ref_supports(const rt_problem *p) {
    if (p->op == RT_OP_REORDER)
        return !rt_layout_is_wino(p->in[0].layout) &&
               (!rt_layout_is_wino(p->out.layout) || (p->out.shape.d[2] == 3 && p->out.shape.d[3] == 3));
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].layout != RT_LAYOUT_PLAIN)
            return false;
    return p->out.layout == RT_LAYOUT_PLAIN;
}

static void ref_layouts(const rt_problem *p, rt_layout *in, rt_layout *out) {
    if (p->op == RT_OP_REORDER)
        return;
    for (int i = 0; i < p->nin; i++)
        in[i] = RT_LAYOUT_PLAIN;
    *out = RT_LAYOUT_PLAIN;
}

static rt_status ref_prepare(const rt_problem *p, void **state, size_t *scratch) {
    *state = NULL;
    RT_FAIL_IF(!rt_ref_scratch(p, scratch), RT_E_MEMORY, "%s: matrix too large", rt_op_get(p->op)->name);
    return RT_OK;
}

#define REF_ENTRY(name, dtype)                                                                               \
    {.impl = "ref",                                                                                          \
     .supports = ref_supports,                                                                               \
     .layouts = ref_layouts,                                                                                 \
     .prepare = ref_prepare,                                                                                 \
     .run = rt_ref_##name##_##dtype},
static const rt_kern refs_f32[RT_OP_COUNT] = {
    {0},
#define RT_OP(ID, name, arity, infer, grad, flags, meaning) REF_ENTRY(name, f32)
#include "op/op.def"
#undef RT_OP
};
static const rt_kern refs_f64[RT_OP_COUNT] = {
    {0},
#define RT_OP(ID, name, arity, infer, grad, flags, meaning) REF_ENTRY(name, f64)
#include "op/op.def"
#undef RT_OP
};

const rt_kern *rt_kern_ref(rt_op op, rt_dtype dtype) {
    RT_ASSERT(op > RT_OP_NONE && op < RT_OP_COUNT);
    /* i32 values are only moved, and moving goes by element size */
    return dtype == RT_DTYPE_F64 ? &refs_f64[op] : &refs_f32[op];
}

/* ---- the others ---- */

#define RT_KERN(OP_ID, dtype, FAMILY, isa, symbol) extern const rt_kern symbol;
#include "kern/kern.def"

typedef struct entry {
    rt_op op;
    rt_dtype dtype;
    unsigned family;
    rt_isa isa;
    const rt_kern *kern;
} entry;

static const entry entries[] = {
#define RT_KERN(OP_ID, dtype, FAMILY, isa, symbol)                                                           \
    {RT_OP_##OP_ID, RT_DTYPE_##dtype, RT_KERN_##FAMILY, RT_ISA_##isa, &symbol},
#include "kern/kern.def"
    {RT_OP_NONE, RT_DTYPE_F32, 0, RT_ISA_PLAIN, NULL}, /* never matches; keeps the table non-empty */
};

rt_status rt_kern_list(rt_op op, rt_dtype dtype, unsigned mask, const rt_kern **list, int cap, int *n) {
    RT_FAIL_IF(op <= RT_OP_NONE || op >= RT_OP_COUNT, RT_E_USAGE, "operation %d does not exist", (int)op);
    rt_isa isa = rt_cpu_isa();
    if (mask & RT_KERN_V3) {
        mask = RT_KERN_VEC;
        isa = RT_MIN(isa, RT_ISA_AVX2);
    }
    if (isa == RT_ISA_NONE)
        mask &= ~(unsigned)RT_KERN_VEC;
    int count = 0;
    for (int64_t i = 0; i < RT_COUNT(entries); i++) {
        const entry *e = &entries[i];
        if (e->op != op || e->dtype != dtype || !(e->family & mask) || e->isa > RT_MAX(isa, RT_ISA_PLAIN))
            continue;
        RT_FAIL_IF(count >= cap, RT_E_USAGE, "%s: more than %d kernels", rt_op_get(op)->name, cap);
        list[count++] = e->kern;
    }
    RT_FAIL_IF(count >= cap, RT_E_USAGE, "%s: more than %d kernels", rt_op_get(op)->name, cap);
    list[count++] = rt_kern_ref(op, dtype);
    *n = count;
    return RT_OK;
}
