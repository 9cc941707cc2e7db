/*
 * nn_int.h - what the files of nn share: how a network is a list of stages, and how a builder reports a
 * failure.
 *
 * An architecture is one function that parses its arguments and appends stages. A stage is a name, a builder
 * and the few numbers that the builder needs; all else (input, outputs, dropout, initialisation) is in the
 * network's configuration. Stages are kept by value, so a network is immutable once created and any thread
 * may build from it.
 */
#ifndef RT_NN_NN_INT_H
#define RT_NN_NN_INT_H

#include "nn/nn.h"

typedef struct rt_stage rt_stage;
typedef rt_val (*rt_stage_build)(const rt_net *net, rt_build *b, const rt_stage *s, rt_val x);

struct rt_stage {
    char name[32];
    rt_stage_build build;
    int64_t width; /* channels or units of the result */
    int stride;
    int index;       /* number of a layer inside its architecture */
    bool pool, last; /* vgg: a max-pool follows; mlp: no activation follows */
};

typedef struct rt_arch {
    const char *name;
    /* args: the text after "name:", NULL if there was none. Appends the stages of net. */
    rt_status (*plan)(rt_net *net, const char *args);
    bool no_norm; /* nothing inside normalises */
} rt_arch;

struct rt_net {
    rt_arch_config config; /* its texts and arrays are owned by the network */
    char *prefix;          /* NULL: none */
    const rt_arch *arch;
    rt_stage *stage;
    int stages, cap;
    double flops;
};

#define RT_ARCH(id, form, meaning) extern const rt_arch rt_arch_##id;
#include "nn/archs.def"
#undef RT_ARCH

rt_status rt_net_add_stage(rt_net *n, rt_stage s) RT_MUST_CHECK;
/* Comma-separated integers in [1, most] of an architecture's arguments; *n of at most cap. */
rt_status rt_arch_ints(const rt_net *net, const char *args, int64_t most, int64_t *out, int cap,
                       int *n) RT_MUST_CHECK;
rt_status rt_arch_no_args(const rt_net *net, const char *args) RT_MUST_CHECK;
/* Convolutional networks: image input, ReLU. */
rt_status rt_arch_need_image(const rt_net *net) RT_MUST_CHECK;
RT_INLINE rt_init rt_arch_init(const rt_net *net, rt_init own) {
    return net->config.init == RT_INIT_DEFAULT ? own : net->config.init;
}

/* Shape of a value without its rows; rank 0 for the invalid value. */
rt_shape rt_nn_row(const rt_build *b, rt_val x);
RT_INLINE int rt_nn_members(const rt_build *b) {
    return b->members > 1 ? b->members : 1;
}
/* Initialisation of a bias beside a weight drawn with `init`. */
RT_INLINE rt_init rt_nn_bias_init(rt_init init) {
    return init == RT_INIT_TORCH || init == RT_INIT_DEFAULT ? RT_INIT_TORCH : RT_INIT_ZERO;
}
/* "layer" + "." + "field" as the name of a parameter. */
rt_val rt_nn_field(rt_build *b, const char *layer, const char *field, rt_param spec);
/* The member-dependent half of a layer (batch_ensemble.c): x o r before the product; y o s and the bias
 * after it. With one member only the bias is left. */
rt_val rt_nn_fast_in(rt_build *b, const char *name, rt_val x, int64_t in);
rt_val rt_nn_fast_out(rt_build *b, const char *name, rt_val y, int64_t out, int64_t fan_in, rt_init init,
                      bool bias);

/* Ends a function that returns a value: the message becomes the graph's first error. */
#define RT_NN_FAIL(b, code, ...)                                                                             \
    do {                                                                                                     \
        rt_graph_set_error((b)->g, rt_error_set((code), __FILE__, __LINE__, __VA_ARGS__));                   \
        return 0;                                                                                            \
    } while (0)

#endif
