/*
 * dnn_prim.c - one oneDNN primitive as the state of a kernel.
 *
 * Binding. dnnl_memory_set_data_handle zeroes the padding of blocked tensors each time it is called. That
 * would make workers write to weights they share, and it costs; so memory objects are described without
 * padding (see dnn_conv.c), and a pointer is bound only when it differs from the last one of this worker:
 * after the first step a run binds almost nothing.
 */
#include "base/alloc.h"
#include "kern/onednn/onednn_int.h"
#include <omp.h>
#include <pthread.h>
#include <string.h>

/* Written once, under g_once: an engine must outlive every primitive, also those in the library's own cache.
 */
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static dnnl_engine_t g_engine;

static void make_engine(void) {
    /* RETORT_ISA lowers the library's choice too; refused, harmlessly, if the host program has already used
     * the library. */
    if (rt_cpu_isa() == RT_ISA_AVX2)
        (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    if (rt_cpu_isa() == RT_ISA_PLAIN)
        (void)dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41);
    if (dnnl_engine_create(&g_engine, dnnl_cpu, 0) != dnnl_success)
        g_engine = NULL;
}

dnnl_engine_t rt_dnn_engine(void) {
    pthread_once(&g_once, make_engine);
    return g_engine;
}

int rt_dnn_omp_enter(void) {
    int saved = omp_get_max_threads();
    omp_set_num_threads(1);
    return saved;
}

void rt_dnn_omp_leave(int saved) {
    omp_set_num_threads(saved);
}

dnnl_format_tag_t rt_dnn_tag(rt_layout l) {
    switch (l) {
    case RT_LAYOUT_PLAIN:
        return dnnl_abcd;
    case RT_LAYOUT_C8:
        return dnnl_nChw8c;
    case RT_LAYOUT_C16:
        return dnnl_nChw16c;
    case RT_LAYOUT_W_OIHW8I8O:
        return dnnl_OIhw8i8o;
    case RT_LAYOUT_W_OIHW8O8I:
        return dnnl_OIhw8o8i;
    case RT_LAYOUT_W_OHWI8O:
        return dnnl_Ohwi8o;
    case RT_LAYOUT_W_OIHW16I16O:
        return dnnl_OIhw16i16o;
    case RT_LAYOUT_W_OIHW16O16I:
        return dnnl_OIhw16o16i;
    case RT_LAYOUT_W_OHWI16O:
        return dnnl_Ohwi16o;
    case RT_LAYOUT_W_IOHW16O16I:
        return dnnl_IOhw16o16i;
    default:
        return dnnl_format_tag_any;
    }
}

bool rt_dnn_md(dnnl_memory_desc_t *out, const dnnl_dim_t dims[4], rt_layout l) {
    const dnnl_dims_t all = {dims[0], dims[1], dims[2], dims[3]};
    return dnnl_memory_desc_init_by_tag(out, 4, all, dnnl_f32, rt_dnn_tag(l)) == dnnl_success;
}

bool rt_dnn_weight_layout(rt_layout *out, const dnnl_memory_desc_t *md) {
    if (md->ndims != 4)
        return false;
    /* Some descriptors have two names (1x1 windows, single blocks); PLAIN comes last so that it wins only
     * when nothing else fits. */
    for (int l = RT_LAYOUT_W_OIHW8I8O; l <= RT_LAYOUT_W_WINO; l++) {
        rt_layout cand = l == RT_LAYOUT_W_WINO ? RT_LAYOUT_PLAIN : (rt_layout)l;
        dnnl_memory_desc_t named;
        if (rt_dnn_md(&named, md->dims, cand) && dnnl_memory_desc_equal(&named, md)) {
            *out = cand;
            return true;
        }
    }
    return false;
}

dnnl_primitive_attr_t rt_dnn_attr_create(void) {
    dnnl_primitive_attr_t attr;
    if (dnnl_primitive_attr_create(&attr) != dnnl_success)
        return NULL;
    if (dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) != dnnl_success) {
        dnnl_primitive_attr_destroy(attr);
        return NULL;
    }
    return attr;
}

/* The library answers with a reference loop, a thousand times slower, where it has nothing else, and calls
 * that success. */
static bool is_fast(dnnl_primitive_desc_t pd) {
    const char *name = NULL;
    if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) != dnnl_success || !name)
        return false;
    return strncmp(name, "ref", 3) != 0 && !strstr(name, "gemm:ref");
}

dnnl_primitive_desc_t rt_dnn_pd_made(dnnl_status_t made, dnnl_primitive_desc_t pd, dnnl_primitive_attr_t attr,
                                     int saved) {
    rt_dnn_omp_leave(saved);
    dnnl_primitive_attr_destroy(attr);
    if (made != dnnl_success)
        return NULL;
    if (is_fast(pd))
        return pd;
    dnnl_primitive_desc_destroy(pd);
    return NULL;
}

dnnl_primitive_desc_t rt_dnn_pd_create(const void *desc, dnnl_primitive_desc_t hint) {
    dnnl_engine_t engine = rt_dnn_engine();
    dnnl_primitive_attr_t attr = engine ? rt_dnn_attr_create() : NULL;
    if (!attr)
        return NULL;
    dnnl_primitive_desc_t pd = NULL;
    int saved = rt_dnn_omp_enter();
    dnnl_status_t made = dnnl_primitive_desc_create(&pd, desc, attr, engine, hint);
    return rt_dnn_pd_made(made, pd, attr, saved);
}

rt_status rt_dnn_prim_create(rt_dnn_prim **out, size_t *scratch, dnnl_primitive_desc_t pd,
                             const rt_dnn_arg *arg, int nargs) {
    RT_ASSERT(nargs < RT_DNN_ARGS);
    rt_dnn_prim *s;
    RT_TRY(rt_calloc(&s, 1, sizeof *s));
    memcpy(s->arg, arg, (size_t)nargs * sizeof *arg);
    s->nargs = nargs;
    *scratch = 0;
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    size_t bytes = md ? dnnl_memory_desc_get_size(md) : 0;
    if (bytes > 0) {
        s->arg[s->nargs++] = (rt_dnn_arg){DNNL_ARG_SCRATCHPAD, *md};
        s->has_scratch = true;
        *scratch = bytes;
    }
    int saved = rt_dnn_omp_enter();
    dnnl_status_t e = dnnl_primitive_create(&s->prim, pd);
    rt_dnn_omp_leave(saved);
    if (e != dnnl_success) {
        rt_free(s);
        RT_FAIL(e == dnnl_out_of_memory ? RT_E_MEMORY : RT_E_FAILED,
                "oneDNN: creating a primitive failed with status %d", (int)e);
    }
    *out = s;
    return RT_OK;
}

static void slot_destroy(rt_dnn_slot *slot) {
    if (!slot)
        return;
    for (int i = 0; i < RT_DNN_ARGS; i++)
        if (slot->exec[i].memory)
            dnnl_memory_destroy(slot->exec[i].memory);
    if (slot->stream)
        dnnl_stream_destroy(slot->stream);
    rt_free(slot);
}

void rt_dnn_prim_release(void *state) {
    rt_dnn_prim *s = state;
    if (!s)
        return;
    for (int w = 0; w < RT_POOL_MAX; w++)
        slot_destroy(s->slot[w]);
    dnnl_primitive_destroy(s->prim);
    rt_free(s);
}

rt_status rt_dnn_prim_attach(void *state, int worker) {
    rt_dnn_prim *s = state;
    RT_ASSERT(worker >= 0 && worker < RT_POOL_MAX);
    if (s->slot[worker])
        return RT_OK;
    rt_dnn_slot *slot;
    RT_TRY(rt_calloc(&slot, 1, sizeof *slot));
    dnnl_status_t e = dnnl_stream_create(&slot->stream, rt_dnn_engine(), dnnl_stream_default_flags);
    for (int i = 0; i < s->nargs && e == dnnl_success; i++) {
        slot->exec[i].arg = s->arg[i].role;
        e = dnnl_memory_create(&slot->exec[i].memory, &s->arg[i].md, rt_dnn_engine(), DNNL_MEMORY_NONE);
    }
    if (e != dnnl_success) {
        slot_destroy(slot);
        RT_FAIL(RT_E_MEMORY, "oneDNN: memory objects of worker %d failed with status %d", worker, (int)e);
    }
    s->slot[worker] = slot;
    return RT_OK;
}

/* The library takes every handle as void *, inputs too; it does not write to inputs described without
 * padding. */
static void bind(rt_dnn_slot *slot, int i, const void *p) {
    if (slot->bound[i] == p)
        return;
    union {
        const void *in;
        void *out;
    } u = {.in = p};
    dnnl_memory_set_data_handle(slot->exec[i].memory, u.out);
    slot->bound[i] = p;
}

void rt_dnn_prim_run(const rt_dnn_prim *s, const void *const *data, const rt_kern_ctx *ctx) {
    rt_dnn_slot *slot = s->slot[ctx->worker];
    int n = s->nargs;
    if (s->has_scratch)
        bind(slot, --n, ctx->scratch);
    for (int i = 0; i < n; i++)
        bind(slot, i, data[i]);
    dnnl_status_t e = dnnl_primitive_execute(s->prim, slot->stream, s->nargs, slot->exec);
    RT_ASSERT(e == dnnl_success);
    (void)e;
}
