/*
 * student_hydra.c - Hydra (Tran et al. 2020): one body, M heads, so that the cost of members is the cost of
 * heads.
 *
 *     h = body(x) ;  z_m = head_m(h)
 *
 * The body is the network's stages before `split`; a head is a copy of the stages after it, or a small
 * perceptron of given hidden widths. Heads have parameters of their own, BN included, named heads.M.*. Growth
 * (phase two) starts all heads as copies of one trained head.
 */
#include "distill/distill_int.h"
#include <stdio.h>
#include <string.h>

static void hydra_prepare(const rt_student *s, rt_build *b) {
    (void)s;
    b->members = 1;
}

/* The last residual block, or the last stage of networks without blocks. */
static int default_split(const rt_net *n) {
    int split = rt_net_stages(n) - 1;
    for (int i = 0; i < rt_net_stages(n); i++)
        if (strncmp(rt_net_stage_name(n, i), "layer", 5) == 0 && strchr(rt_net_stage_name(n, i), '.') != NULL)
            split = i;
    return split;
}

static rt_status parse_split(rt_student *s) {
    const int stages = rt_net_stages(s->net);
    const char *text = s->config.split;
    if (text == NULL) {
        s->split = s->nhead > 0 ? stages - 1 : default_split(s->net);
        return RT_OK;
    }
    int64_t v = 0;
    s->split = -1;
    if (rt_parse_i64(text, strlen(text), &v) && v > 0 && v < stages)
        s->split = (int)v;
    for (int i = 1; i < stages; i++)
        if (strcmp(rt_net_stage_name(s->net, i), text) == 0)
            s->split = i;
    if (s->split > 0)
        return RT_OK;
    rt_str names;
    rt_str_init(&names);
    for (int i = 1; i < stages; i++)
        rt_str_appendf(&names, "%s%s", i > 1 ? ", " : "", rt_net_stage_name(s->net, i));
    const rt_status st =
        rt_error_set(RT_E_USAGE, __FILE__, __LINE__, "hydra: split \"%.40s\", wanted 1 to %d or one of %s",
                     text, stages - 1, rt_str_text(&names));
    rt_str_deinit(&names);
    return st;
}

static rt_status hydra_plan(rt_student *s) {
    const char *p = s->config.head;
    if (p != NULL && *p == '\0')
        p = NULL;
    while (p != NULL) {
        const char *comma = strchr(p, ',');
        const size_t n = comma != NULL ? (size_t)(comma - p) : strlen(p);
        int64_t v = 0;
        RT_FAIL_IF(!rt_parse_i64(p, n, &v) || v < 1 || v > 1000000 || s->nhead == 16, RT_E_USAGE,
                   "hydra: head \"%.80s\", wanted up to 16 widths such as 100,100", s->config.head);
        s->head[s->nhead++] = v;
        p = comma != NULL ? comma + 1 : NULL;
    }
    return parse_split(s);
}

static rt_val activate(const rt_student *s, rt_build *b, rt_val x) {
    const char *a = s->config.arch.activation;
    return a != NULL && strcmp(a, "softplus") == 0 ? rt_unary(b->g, RT_OP_SOFTPLUS, x) : rt_relu(b->g, x);
}

/* A perceptron of the given widths on the body's output. Like the layers of mlp it drops out before each
 * product; a map is averaged first. Its parameters count as the last stages of the network. */
static rt_val own_head(const rt_student *s, rt_build *b, rt_val h) {
    const rt_arch_config *c = &s->config.arch;
    const rt_init init = c->init != RT_INIT_DEFAULT ? c->init : RT_INIT_TORCH;
    const bool map = h != 0 && rt_graph_node(b->g, h)->type.shape.rank == 4;
    const int32_t group = b->group;
    rt_val z = map ? rt_global_avgpool(b->g, h) : h;
    for (int i = 0; i <= s->nhead; i++) {
        char name[32];
        snprintf(name, sizeof name, "layers.%d", i);
        b->group = RT_MIN(s->split + i, rt_net_stages(s->net) - 1);
        z = rt_nn_linear(b, name, rt_nn_dropout(b, z, map ? 0 : c->dropout),
                         i < s->nhead ? s->head[i] : c->outputs, init, true);
        if (i < s->nhead)
            z = activate(s, b, z);
    }
    b->group = group;
    return z;
}

static rt_val one_head(const rt_student *s, rt_build *b, int m, rt_val h) {
    char prefix[32];
    snprintf(prefix, sizeof prefix, "heads.%d.", m);
    const char *outer = b->prefix;
    b->prefix = prefix;
    const rt_val z =
        s->nhead > 0 ? own_head(s, b, h) : rt_net_range(s->net, b, h, s->split, rt_net_stages(s->net));
    b->prefix = outer;
    return z;
}

static rt_val hydra_forward(const rt_student *s, rt_build *b, rt_val x) {
    const rt_val h = rt_net_range(s->net, b, x, 0, s->split);
    rt_val z[RT_OP_MAX_IN];
    rt_val all = 0;
    /* joined in groups of RT_OP_MAX_IN: an operation has no more operands */
    for (int m = 0; m < s->members;) {
        int n = 0;
        if (all != 0)
            z[n++] = all;
        while (n < RT_OP_MAX_IN && m < s->members)
            z[n++] = one_head(s, b, m++, h);
        all = n == 1 ? z[0] : rt_concat_members(b->g, z, n);
    }
    return all;
}

/* Heads are separate parameters that no index can choose among before they are applied, so all run; the body,
 * most of the work, runs once. */
static rt_val hydra_member(const rt_student *s, rt_build *b, rt_val x, rt_val index) {
    return s->members > 1 ? rt_member_get(b->g, hydra_forward(s, b, x), index) : hydra_forward(s, b, x);
}

static rt_rule hydra_rule(const rt_student *s, rt_role role) {
    (void)s, (void)role;
    return (rt_rule){.grad_scale = 1, .lr_scale = 1, .decay = -1};
}

static rt_status hydra_grow(const rt_params *from, const float *src, const rt_params *to, float *dst) {
    for (int slot = 0; slot < rt_params_count(to); slot++) {
        const rt_param *t = rt_params_get(to, slot);
        char name[256];
        int m = 0, used = 0;
        if (sscanf(t->name, "heads.%d.%n", &m, &used) == 1 && used > 0)
            snprintf(name, sizeof name, "heads.0.%s", t->name + used);
        else
            snprintf(name, sizeof name, "%s", t->name);
        const int f = rt_params_find(from, name);
        RT_FAIL_IF(f < 0, RT_E_INPUT, "head growth: %s starts as %s, which the first phase does not have",
                   t->name, name);
        RT_FAIL_IF(rt_params_get(from, f)->count != t->count, RT_E_INPUT,
                   "head growth: %s has %lld numbers, %s of the first phase %lld", t->name,
                   (long long)t->count, name, (long long)rt_params_get(from, f)->count);
        memcpy(dst + t->offset, src + rt_params_get(from, f)->offset, (size_t)t->count * sizeof *dst);
    }
    return RT_OK;
}

const rt_student_kind rt_student_hydra = {.name = "hydra",
                                          .form = "hydra:M",
                                          .meaning = "one body, M heads",
                                          .many = true,
                                          .heads = true,
                                          .prepare = hydra_prepare,
                                          .forward = hydra_forward,
                                          .member = hydra_member,
                                          .rule = hydra_rule,
                                          .plan = hydra_plan,
                                          .grow = hydra_grow};
