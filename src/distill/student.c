/*
 * student.c - a student by its specification, "kind" or "kind:members", and what all kinds share.
 */
#include "base/alloc.h"
#include "distill/distill_int.h"
#include <string.h>

#define RT_STUDENT(id) &rt_student_##id,
static const rt_student_kind *const kinds[] = {
#include "distill/students.def"
};
#undef RT_STUDENT

int rt_student_count(void) {
    return (int)RT_COUNT(kinds);
}
rt_student_info rt_student_get(int i) {
    return (rt_student_info){kinds[i]->name, kinds[i]->form, kinds[i]->meaning, kinds[i]->many};
}

/* The kind that a specification begins with, or NULL. */
static const rt_student_kind *kind_of(const char *spec) {
    for (int64_t i = 0; i < RT_COUNT(kinds); i++)
        if (rt_str_heads(spec, kinds[i]->name))
            return kinds[i];
    return NULL;
}

static rt_status find_kind(rt_student *s, const char *spec) {
    const char *colon = strchr(spec, ':'), *forms[RT_COUNT(kinds)];
    for (int64_t i = 0; i < RT_COUNT(kinds); i++)
        forms[i] = kinds[i]->form;
    s->kind = kind_of(spec);
    if (s->kind == NULL)
        RT_FAIL_UNKNOWN(RT_E_USAGE, spec, forms, RT_COUNT(forms), "student: unknown");
    s->members = 1;
    if (!s->kind->many) {
        RT_FAIL_IF(colon != NULL, RT_E_USAGE,
                   "student %.80s: %s is one network and takes no number of members", spec, s->kind->name);
        return RT_OK;
    }
    int64_t m = 0;
    RT_FAIL_IF(colon == NULL || !rt_parse_i64(colon + 1, strlen(colon + 1), &m) || m < 1 || m > 10000,
               RT_E_USAGE, "student %.80s: wanted %s with M from 1 to 10000", spec, s->kind->form);
    s->members = (int)m;
    return RT_OK;
}

/* A setting of another kind is refused instead of being ignored. */
static rt_status check_settings(const rt_student *s) {
    const rt_student_config *c = &s->config;
    RT_FAIL_IF((c->head != NULL || c->split != NULL) && !s->kind->heads, RT_E_USAGE,
               "student %s: has no heads; a head or a split is for hydra:M", c->spec);
    RT_FAIL_IF(c->member_bn && !s->kind->mixes, RT_E_USAGE,
               "student %s: one BN per member is for batch-ensemble:M and latent-be:M", c->spec);
    RT_FAIL_IF(c->regression && s->kind->output != RT_OUTPUT_LOGITS, RT_E_USAGE,
               "student %s: gives concentrations of classes, the data is a regression", c->spec);
    RT_FAIL_IF(c->regression && c->arch.outputs != 2, RT_E_USAGE,
               "student %s: %lld outputs, a regression wants 2 (mean, log-variance)", c->spec,
               (long long)c->arch.outputs);
    return RT_OK;
}

static rt_status own_text(const char **out, const char *text) {
    *out = NULL;
    if (text == NULL)
        return RT_OK;
    *out = rt_strdup(text);
    return *out != NULL ? RT_OK : rt_error_last()->code;
}

/* Builds everything once for a batch of one: proves shapes, declares parameters, counts the work. */
static rt_status declare(rt_student *s, rt_params *params) {
    rt_graph *g = NULL;
    RT_TRY(rt_graph_create(&g, 1, RT_DTYPE_F32));
    rt_build b = {.g = g, .params = params, .declare = true};
    rt_graph_output(g, "z",
                    rt_student_forward(s, &b, rt_graph_input(g, "x", RT_DTYPE_F32, s->config.arch.input, 1)));
    const rt_status st = rt_graph_status(g);
    for (rt_val v = 1; st == RT_OK && v < (rt_val)rt_graph_count(g); v++) {
        const rt_node *d = rt_graph_node(g, v);
        rt_type in[RT_OP_MAX_IN];
        for (int i = 0; i < d->nin; i++)
            in[i] = rt_graph_node(g, d->in[i])->type;
        double flops = 0, bytes = 0;
        if (d->leaf == RT_LEAF_NONE)
            rt_op_cost(&flops, &bytes, d->op, &d->attr, &d->type, in, d->nin);
        s->flops += flops;
    }
    rt_graph_destroy(&g);
    return st == RT_OK ? st : rt_error_prefix(st, "student %s", s->config.spec);
}

rt_status rt_student_create(rt_student **out, const rt_student_config *c, rt_params *params) {
    rt_student *s = NULL;
    rt_status st = RT_OK;
    *out = NULL;
    RT_TRY(rt_calloc(&s, 1, sizeof *s));
    s->config = *c;
    s->config.spec = c->spec != NULL ? c->spec : rt_student_single.name;
    s->config.head = s->config.split =
        NULL; /* owned below, one by one, so that a failure leaves only owned texts */
    const char *spec = s->config.spec;
    s->config.spec = NULL;
    RT_TRY_GOTO(own_text(&s->config.spec, spec));
    RT_TRY_GOTO(own_text(&s->config.head, c->head));
    RT_TRY_GOTO(own_text(&s->config.split, c->split));
    RT_TRY_GOTO(find_kind(s, s->config.spec));
    RT_TRY_GOTO(rt_net_create(&s->net, &c->arch, NULL, NULL));
    s->config.arch = *rt_net_config(s->net);
    RT_TRY_GOTO(check_settings(s));
    if (s->kind->plan != NULL)
        RT_TRY_GOTO(s->kind->plan(s));
    RT_TRY_GOTO(declare(s, params));
    rt_params_set_v3(params, c->arch.v3);
    *out = s;
    s = NULL;
done:
    rt_student_destroy(&s);
    return st;
}

void rt_student_destroy(rt_student **sp) {
    rt_student *s = *sp;
    if (s == NULL)
        return;
    rt_net_destroy(&s->net);
    rt_free((void *)(uintptr_t)s->config.spec);
    rt_free((void *)(uintptr_t)s->config.head);
    rt_free((void *)(uintptr_t)s->config.split);
    rt_free(s);
    *sp = NULL;
}

const char *rt_student_spec(const rt_student *s) {
    return s->config.spec;
}
const rt_student_config *rt_student_get_config(const rt_student *s) {
    return &s->config;
}
int rt_student_members(const rt_student *s) {
    return s->members;
}
const rt_net *rt_student_net(const rt_student *s) {
    return s->net;
}
double rt_student_flops(const rt_student *s) {
    return s->flops;
}
rt_output_kind rt_student_output(const rt_student *s) {
    return s->config.regression ? RT_OUTPUT_GAUSSIAN : s->kind->output;
}

rt_val rt_student_forward(const rt_student *s, rt_build *b, rt_val x) {
    rt_build own = *b;
    s->kind->prepare(s, &own);
    const rt_val z = s->kind->forward(s, &own, x);
    b->dropout_stream = own.dropout_stream;
    return z;
}

rt_val rt_student_member(const rt_student *s, rt_build *b, rt_val x, rt_val index) {
    rt_build own = *b;
    own.train = false;
    s->kind->prepare(s, &own);
    return s->kind->member(s, &own, x, index);
}

rt_rule rt_student_rule(const rt_student *s, rt_role role) {
    return s->kind->rule(s, role);
}

bool rt_student_is_plain(const rt_student *s) {
    return s->kind == &rt_student_single;
}

rt_student_config rt_student_plain_config(const rt_student *s) {
    rt_student_config c = s->config;
    c.spec = rt_student_single.name;
    c.member_bn = c.product_of_means = false;
    return c;
}

bool rt_student_grows(const char *from, const char *to) {
    return kind_of(to) != NULL && kind_of(to) == kind_of(from) && kind_of(to)->grow != NULL &&
           strcmp(from, to) != 0;
}

rt_status rt_student_grow(const rt_student *s, const rt_params *from, const float *src, const rt_params *to,
                          float *dst) {
    RT_ASSERT(s->kind->grow != NULL); /* rt_student_grows was asked */
    return s->kind->grow(from, src, to, dst);
}

bool rt_student_collapses(const rt_student *s) {
    return s->kind->collapse != NULL;
}

rt_status rt_student_merge(const rt_student *s, const rt_params *params, const float *block,
                           const rt_params *to, float *dst) {
    RT_FAIL_IF(s->kind->collapse == NULL, RT_E_USAGE, "student %s does not collapse to one network",
               s->config.spec);
    return s->kind->collapse(s, params, block, to, dst);
}

rt_status rt_student_collapse(const rt_student *s, const rt_params *params, const float *block,
                              rt_student **out, rt_params **out_params, float **out_block) {
    rt_status st = RT_OK;
    *out = NULL;
    *out_params = NULL;
    *out_block = NULL;
    if (s->kind->collapse == NULL)
        return RT_OK;
    const rt_student_config c = rt_student_plain_config(s);
    RT_TRY_GOTO(rt_params_create(out_params));
    RT_TRY_GOTO(rt_student_create(out, &c, *out_params));
    RT_TRY_GOTO(rt_calloc(out_block, (size_t)rt_params_floats(*out_params), sizeof **out_block));
    RT_TRY_GOTO(s->kind->collapse(s, params, block, *out_params, *out_block));
done:
    if (st != RT_OK) {
        rt_student_destroy(out);
        rt_params_destroy(out_params);
        rt_free(*out_block);
        *out_block = NULL;
    }
    return st;
}
