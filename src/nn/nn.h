/*
 * nn.h - parameters and networks, as builders of graphs.
 *
 * rt_params is the table of named parameters (PyTorch's names and shapes) and their places in one
 * contiguous block of floats. Values live in blocks that the caller allocates: an ensemble of K members is
 * one table and K blocks; gradients and optimiser state are blocks of the same form. Slots number the lines
 * of the table and are the graph's parameter slots.
 *
 * A network is a chain of *stages*, so that any prefix can serve as a body and any suffix as a head.
 * Building in `declare` mode adds the parameters to the table; building again only looks them up.
 */
#ifndef RT_NN_NN_H
#define RT_NN_NN_H

#include "graph/graph.h"

typedef enum rt_role {
    RT_ROLE_WEIGHT, /* kernels of dense and convolution layers */
    RT_ROLE_BIAS,
    RT_ROLE_NORM,  /* BN gamma, beta */
    RT_ROLE_FAST,  /* rank-one factors r, s */
    RT_ROLE_STATE, /* running statistics: no gradient, no decay */
} rt_role;

typedef enum rt_init {
    RT_INIT_DEFAULT, /* what the architecture says */
    RT_INIT_ZERO,
    RT_INIT_ONE,
    RT_INIT_TORCH,             /* U(+-1/sqrt(fan_in)), weights and biases: PyTorch's default */
    RT_INIT_HE_FAN_OUT,        /* N(0, 2 / fan_out) */
    RT_INIT_HE_FAN_IN,         /* N(0, 2 / fan_in) */
    RT_INIT_KAIMING_GAIN1,     /* N(0, 1 / fan_in) */
    RT_INIT_GLOROT,            /* U(+-sqrt(6 / (fan_in + fan_out))) */
    RT_INIT_NORMAL_AROUND_ONE, /* N(1, scale) */
    RT_INIT_RANDOM_SIGN,       /* +-1; init_scale: the probability of +1, 0: a half */
} rt_init;

typedef struct rt_param {
    const char *name;
    rt_shape shape;
    rt_role role;
    rt_init init;
    double init_scale;
    int64_t fan_in, fan_out;
    int64_t offset, count; /* floats, in the block; offsets are multiples of 16 */
    int32_t group;         /* depth group for per-group decay: 0 input layer, 1.. blocks, last: classifier */
} rt_param;

typedef struct rt_params rt_params;
rt_status rt_params_create(rt_params **out) RT_MUST_CHECK;
void rt_params_destroy(rt_params **p);
int rt_params_count(const rt_params *p);
const rt_param *rt_params_get(const rt_params *p, int slot);
const int64_t *rt_params_offsets(const rt_params *p);     /* by slot */
int rt_params_find(const rt_params *p, const char *name); /* -1 if absent */
int64_t rt_params_floats(const rt_params *p);             /* size of a block */
int64_t rt_params_trainable(const rt_params *p);          /* number of trained scalars */
bool rt_params_v3(const rt_params *p); /* rt_arch_config.v3 of the network they belong to */
void rt_params_set_v3(rt_params *p, bool v3);
rt_status rt_params_add(rt_params *p, rt_param spec,
                        int *slot) RT_MUST_CHECK; /* name copied; offset, count filled in */
void rt_params_init(const rt_params *p, float *block,
                    uint64_t seed); /* a pure function of (seed, parameter name) */

/* What every layer builder gets. */
typedef struct rt_build {
    rt_graph *g;
    rt_params *params;
    bool declare;       /* add parameters that are not there yet */
    bool train;         /* batch statistics and dropout; running statistics become updates of the graph */
    const char *prefix; /* put before parameter names ("heads.3."); NULL: none */
    int32_t group;      /* group of parameters declared now */
    uint64_t dropout_stream; /* next stream; counts up so that layers differ */
    int members;             /* > 1: BatchEnsemble layers on a batch tiled member-major */
    rt_init fast_init;       /* of r and s; DEFAULT: N(1, 0.5) */
    double fast_scale;
    bool member_bn;   /* one BN per member */
    bool shared_bias; /* members share one bias, added before s (LatentBE), instead of one each after it */
    int slot_base;    /* added to the table's slots: another network's parameters in the same graph */
    const rt_val *values; /* by slot: computed values in place of parameters (0: the parameter); or NULL */
    rt_val pick;          /* i32 scalar: build only this member, on an untiled batch; 0: all of them */
} rt_build;

rt_val rt_nn_param(rt_build *b, rt_param spec); /* prefix + name; offset, count and group are filled in */
rt_val rt_nn_linear(rt_build *b, const char *name, rt_val x, int64_t out, rt_init init, bool bias);
rt_val rt_nn_conv(rt_build *b, const char *name, rt_val x, int64_t out, int k, int stride, int pad,
                  rt_init init, bool bias);
rt_val rt_nn_batch_norm(rt_build *b, const char *name, rt_val x, double eps, double momentum);
rt_val rt_nn_dropout(rt_build *b, rt_val x, double p);

/* ---- architectures: archs.def, one line and one file each ---- */
typedef struct rt_arch_config {
    const char *spec;       /* "mlp:200,200", "wrn:28,1", "resnet20", ... */
    rt_shape input;         /* (f) or (c, h, w) */
    int64_t outputs;        /* classes; 2 (mean, log-variance) for regression */
    const char *activation; /* mlp: "relu" or "softplus"; NULL: relu */
    double dropout;         /* probability of dropping; meaning per architecture */
    bool dropout_input;     /* mlp: also before the first layer */
    bool v3;      /* computed to the same bits on every x86-64-v3 processor, by plans with that option */
    rt_init init; /* DEFAULT: the architecture's own */
    int norm; /* standardisation inside the network, (x - mean) / std: entries of mean, std: 0 (none), channels or features */
    const double *mean, *std;
} rt_arch_config;

typedef struct rt_net rt_net;
/* Parses the spec (errors name what was found and the forms allowed) and declares the parameters into
 * params (NULL: into none; a later build in declare mode does). Copies the config. prefix goes before
 * the names of parameters, NULL: none. */
rt_status rt_net_create(rt_net **out, const rt_arch_config *c, rt_params *params,
                        const char *prefix) RT_MUST_CHECK;
void rt_net_destroy(rt_net **n);
const rt_arch_config *rt_net_config(const rt_net *n);
int rt_net_stages(const rt_net *n);
const char *rt_net_stage_name(const rt_net *n, int i);
/* Output of stages [from, to) applied to x. Stage 0 includes the standardisation of the input. A prefix
 * in b replaces the network's own, so one network can be built over several sets of parameters. The
 * group of parameters declared is the number of their stage. */
rt_val rt_net_range(const rt_net *n, rt_build *b, rt_val x, int from, int to);
rt_val rt_net_forward(const rt_net *n, rt_build *b,
                      rt_val x); /* all stages: logits, or (mean, log-variance) */

typedef struct rt_layer_info {
    char name[64], kind[16];
    rt_shape out;   /* per sample */
    int64_t params; /* trained scalars */
    double flops;   /* forward, per sample */
} rt_layer_info;
rt_status rt_net_layers(const rt_net *net, rt_layer_info **out, int *n) RT_MUST_CHECK; /* rt_alloc'ed */
double rt_net_flops(const rt_net *net); /* forward, per sample */

typedef struct rt_arch_info {
    const char *name, *form, *meaning;
} rt_arch_info;
int rt_arch_list(const rt_arch_info **out);
bool rt_arch_normalises(const char *spec); /* does something inside such a network, as batch norm does? */

#endif
