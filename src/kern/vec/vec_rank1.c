/*
 * vec_rank1.c - gradients of a BatchEnsemble's weights (RANK1_BWD).
 *
 * Member m of a convolution has the weight w o (s_m r_m'), r on input channels, s on output channels. From the
 * gradient d_m of that product, for each member, follow those of its three factors:
 *
 *     dw[o,i,t] = sum over m of d_m[o,i,t] r_m[i] s_m[o]
 *     dr_m[i]   = sum over o and t of d_m[o,i,t] w[o,i,t] s_m[o]
 *     ds_m[o]   = sum over i and t of d_m[o,i,t] w[o,i,t] r_m[i]
 *
 * What belongs to an output channel is one run of memory, input channels times taps; r is stretched to it once.
 */
#include "kern/kern.h"
#include "kern/vec/simd.h"

typedef struct sizes {
    int64_t members, oc, ic, taps;
    int64_t run;    /* ic taps */
    int64_t padded; /* to whole vectors */
} sizes;

static sizes sizes_of(const rt_problem *p) {
    const int64_t *w = p->in[1].shape.d, run = w[1] * w[2] * w[3];
    return (sizes){.members = p->in[2].shape.d[0],
                   .oc = w[0],
                   .ic = w[1],
                   .taps = w[2] * w[3],
                   .run = run,
                   .padded = (run + V_W - 1) / V_W * V_W};
}

/* r of every member, each number as often as there are taps. */
static void stretch(float *to, const float *r, const sizes *z) {
    for (int64_t m = 0; m < z->members; m++, to += z->padded, r += z->ic)
        for (int64_t i = 0; i < z->padded; i++)
            to[i] = i < z->run ? r[i / z->taps] : 0.0f;
}

static void of_weights(float *dw, const float *d, const float *stretched, const float *s, const sizes *z) {
    for (int64_t o = 0; o < z->oc; o++, dw += z->run)
        for (int64_t i = 0; i < z->run; i += V_W) {
            vf sum = v_set(0.0f);
            for (int64_t m = 0; m < z->members; m++)
                sum = v_fma(v_set(s[m * z->oc + o]) * v_load(stretched + m * z->padded + i),
                            v_load_part(d + (m * z->oc + o) * z->run + i, z->run - i), sum);
            v_store_part(dw + i, sum, z->run - i);
        }
}

static void of_inputs(float *dr, const float *d, const float *w, float *sums, const float *s,
                      const sizes *z) {
    for (int64_t m = 0; m < z->members; m++, dr += z->ic) {
        memset(sums, 0, (size_t)z->padded * sizeof *sums);
        for (int64_t o = 0; o < z->oc; o++) {
            const vf scale = v_set(s[m * z->oc + o]);
            const float *dm = d + (m * z->oc + o) * z->run, *wo = w + o * z->run;
            for (int64_t i = 0; i < z->run; i += V_W)
                v_store(sums + i, v_fma(scale * v_load_part(wo + i, z->run - i),
                                        v_load_part(dm + i, z->run - i), v_load(sums + i)));
        }
        for (int64_t i = 0; i < z->ic; i++) {
            double sum = 0;
            for (int64_t t = 0; t < z->taps; t++)
                sum += (double)sums[i * z->taps + t];
            dr[i] = (float)sum;
        }
    }
}

static void of_outputs(float *ds, const float *d, const float *w, const float *stretched, const sizes *z) {
    for (int64_t m = 0; m < z->members; m++, stretched += z->padded)
        for (int64_t o = 0; o < z->oc; o++, d += z->run) {
            v_wide sum = {0};
            for (int64_t i = 0; i < z->run; i += V_W)
                v_wide_add_product(&sum, v_load(stretched + i) * v_load_part(d + i, z->run - i),
                                   v_load_part(w + o * z->run + i, z->run - i));
            *ds++ = (float)v_wide_sum(sum);
        }
}

static bool supports(const rt_problem *p) {
    for (int i = 0; i < p->nin; i++)
        if (p->in[i].dtype != RT_DTYPE_F32 || p->in[i].layout != RT_LAYOUT_PLAIN)
            return false;
    return p->out.layout == RT_LAYOUT_PLAIN;
}

static rt_status prepare(const rt_problem *p, void **state, size_t *scratch) {
    const sizes z = sizes_of(p);
    *state = NULL;
    *scratch = (size_t)((p->attr.index == 1 ? 1 : z.members) * z.padded) * sizeof(float);
    return RT_OK;
}

static void run(const void *state, const rt_problem *p, void *out, const void *const *in,
                const rt_kern_ctx *ctx) {
    (void)state;
    const sizes z = sizes_of(p);
    float *scratch = ctx->scratch;
    if (p->attr.index == 1) {
        of_inputs(out, in[0], in[1], scratch, in[3], &z);
        return;
    }
    stretch(scratch, in[2], &z);
    if (p->attr.index == 0)
        of_weights(out, in[0], scratch, in[3], &z);
    else
        of_outputs(out, in[0], in[1], scratch, &z);
}

const rt_kern RT_V(rt_k_rank1_bwd_f32) = {
    .impl = RT_V_IMPL, .supports = supports, .prepare = prepare, .run = run};
