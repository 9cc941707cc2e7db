/*
 * onednn_int.h - what the oneDNN kernels share: one prepared primitive and the names of layouts.
 *
 * A primitive is made once, by one thread, for one OpenMP thread (its partition is fixed at creation, and one
 * made for two threads gives wrong weight gradients when run by one), with the scratchpad in our hands. It is
 * immutable and all workers run it; what a run binds, the memory objects and the stream, belongs to one
 * worker's slot.
 */
#ifndef RT_KERN_ONEDNN_INT_H
#define RT_KERN_ONEDNN_INT_H

#include "base/pool.h"
#include "kern/kern.h"
#include <oneapi/dnnl/dnnl.h>

enum { RT_DNN_ARGS = 4 };

/* A tensor a primitive reads or writes: oneDNN's number for the role, and how the memory object describes it.
 */
typedef struct rt_dnn_arg {
    int role; /* DNNL_ARG_... */
    dnnl_memory_desc_t md;
} rt_dnn_arg;

typedef struct rt_dnn_slot {
    dnnl_stream_t stream;
    dnnl_exec_arg_t exec[RT_DNN_ARGS];
    const void *bound[RT_DNN_ARGS];
} rt_dnn_slot;

typedef struct rt_dnn_prim {
    dnnl_primitive_t prim;
    int nargs; /* the scratchpad, if any, is the last one */
    bool has_scratch;
    rt_dnn_arg arg[RT_DNN_ARGS];
    rt_dnn_slot *slot[RT_POOL_MAX];
} rt_dnn_prim;

/* The process's CPU engine; NULL if the library refuses. */
dnnl_engine_t rt_dnn_engine(void);

/* OpenMP threads of the calling thread: set to one around every creation, then given back. */
int rt_dnn_omp_enter(void);
void rt_dnn_omp_leave(int saved);

/* oneDNN's tag of a 4-D layout, and the layout among the weight layouts whose descriptor equals md; false if
 * we have no name. */
dnnl_format_tag_t rt_dnn_tag(rt_layout l);
bool rt_dnn_weight_layout(rt_layout *out, const dnnl_memory_desc_t *md);
/* Descriptor of a 4-D f32 array of these dims in layout l (tag `any` if l is RT_LAYOUT_COUNT). */
bool rt_dnn_md(dnnl_memory_desc_t *out, const dnnl_dim_t dims[4], rt_layout l);

/* Makes a primitive descriptor with a caller-owned scratchpad; NULL if there is none, or only a reference
 * implementation, which would be slower than our own. `desc` is an operation descriptor. The caller destroys
 * the result. */
dnnl_primitive_desc_t rt_dnn_pd_create(const void *desc, dnnl_primitive_desc_t hint);
dnnl_primitive_attr_t rt_dnn_attr_create(void); /* user scratchpad; NULL on failure */
/* The end of every creation: gives attr and the threads of rt_dnn_omp_enter back, and refuses references. */
dnnl_primitive_desc_t rt_dnn_pd_made(dnnl_status_t made, dnnl_primitive_desc_t pd, dnnl_primitive_attr_t attr,
                                     int saved);

/* The state of a kernel: creates the primitive of pd with nargs tensors, and tells the scratch size. */
rt_status rt_dnn_prim_create(rt_dnn_prim **out, size_t *scratch, dnnl_primitive_desc_t pd,
                             const rt_dnn_arg *arg, int nargs) RT_MUST_CHECK;
void rt_dnn_prim_release(void *state);
rt_status rt_dnn_prim_attach(void *state, int worker) RT_MUST_CHECK;
/* Runs on the slot of ctx->worker; data[i] belongs to arg[i]. */
void rt_dnn_prim_run(const rt_dnn_prim *s, const void *const *data, const rt_kern_ctx *ctx);

#endif
