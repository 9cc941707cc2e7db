/*
 * recipe_check.c - every key is known, lists are lists and mappings are mappings, before anything is done.
 *
 * YAML has no schema: where a mapping is meant, `[a, b]` parses as well, and a mistyped key would silently have no
 * effect. The form of a recipe is the table below; docs/formats/recipe.md says what each key means. Texts
 * and numbers are judged by who reads them; an empty value is an absent one.
 */
#include "recipe/recipe_int.h"
#include <stdio.h>
#include <string.h>

typedef enum form { TEXT, LIST, MAPPING } form;

typedef struct rule {
    const char *key; /* NULL: the end */
    form form;
    const struct rule *items; /* of the elements, which are mappings; NULL: they are anything */
} rule;

static const rule scale_rules[] = {
    {"about", TEXT, NULL},   {"minutes", TEXT, NULL}, {"memory", TEXT, NULL}, {"disk", TEXT, NULL},
    {"compare", TEXT, NULL}, {"vars", MAPPING, NULL}, {"title", TEXT, NULL},  {.key = NULL}};
static const rule stage_rules[] = {{"name", TEXT, NULL},   {"like", TEXT, NULL},    {"verb", TEXT, NULL},
                                   {"weight", TEXT, NULL}, {"each", MAPPING, NULL}, {"with", MAPPING, NULL},
                                   {"runs", LIST, NULL},   {"when", TEXT, NULL},    {"turn", TEXT, NULL},
                                   {.key = NULL}};
static const rule column_rules[] = {
    {"id", TEXT, NULL},        {"label", TEXT, NULL},  {"value", TEXT, NULL},  {"scale", TEXT, NULL},
    {"offset", TEXT, NULL},    {"digits", TEXT, NULL}, {"better", TEXT, NULL}, {"take", TEXT, NULL},
    {"tolerance", TEXT, NULL}, {"rows", TEXT, NULL},   {"runs", TEXT, NULL},   {"when", TEXT, NULL},
    {"where", MAPPING, NULL},  {.key = NULL}};
static const rule row_rules[] = {{"id", TEXT, NULL},    {"label", TEXT, NULL},    {"runs", TEXT, NULL},
                                 {"value", TEXT, NULL}, {"where", MAPPING, NULL}, {"paper", MAPPING, NULL},
                                 {.key = NULL}};
static const rule claim_rules[] = {
    {"text", TEXT, NULL}, {"holds", TEXT, NULL}, {"pair", TEXT, NULL}, {"when", TEXT, NULL}, {.key = NULL}};
static const rule table_rules[] = {{"id", TEXT, NULL},
                                   {"title", TEXT, NULL},
                                   {"corner", TEXT, NULL},
                                   {"note", TEXT, NULL},
                                   {"sort", TEXT, NULL},
                                   {"when", TEXT, NULL},
                                   {"lesson", MAPPING, NULL},
                                   {"columns", LIST, column_rules},
                                   {"rows", LIST, row_rules},
                                   {"claims", LIST, claim_rules},
                                   {.key = NULL}};
static const rule top_rules[] = {{"title", TEXT, NULL},
                                 {"source", TEXT, NULL},
                                 {"about", TEXT, NULL},
                                 {"scales", MAPPING, scale_rules},
                                 {"vars", MAPPING, NULL},
                                 {"stages", LIST, stage_rules},
                                 {"order", TEXT, NULL},
                                 {"tables", LIST, table_rules},
                                 {.key = NULL}};

static const rule *find_rule(const rule *rules, const char *key) {
    for (; rules->key; rules++)
        if (strcmp(rules->key, key) == 0)
            return rules;
    return NULL;
}

static rt_status refuse_key(const rt_recipe *r, const char *place, const rule *rules, const char *key) {
    const char *names[16];
    int64_t n = 0;
    for (; rules[n].key; n++)
        names[n] = rules[n].key;
    RT_FAIL_UNKNOWN(RT_E_INPUT, key, names, n, "recipe %s: %s: unknown key", r->name, place);
}

static rt_status check_form(const rt_recipe *r, rt_jval at, const rule *u) {
    static const char *const forms[] = {"one value", "a list", "a mapping of keys to values"};
    const form found = rt_jval_is_array(at) ? LIST : rt_jval_is_object(at) ? MAPPING : TEXT;
    RT_FAIL_IF(found != u->form, RT_E_INPUT, "recipe %s: '%s' must be %s", r->name, u->key, forms[u->form]);
    return RT_OK;
}

static rt_status check(const rt_recipe *r, rt_jval v, const rule *rules, const char *place) {
    for (int64_t k = 0; k < rt_jval_len(v); k++) {
        const char *key = rt_jval_key(v, k), *text;
        const rule *u = find_rule(rules, key);
        rt_jval at = rt_jval_get(v, key);
        if (!u)
            return refuse_key(r, place, rules, key);
        if (rt_jval_str(at, &text) && !*text)
            continue;
        RT_TRY(check_form(r, at, u));
        for (int64_t i = 0; u->items && i < rt_jval_len(at); i++) {
            char name[64];
            snprintf(name, sizeof name, "element %lld of '%s'", (long long)i, key);
            RT_FAIL_IF(!rt_jval_is_object(rt_jval_at(at, i)), RT_E_INPUT,
                       "recipe %s: %s must be a mapping of keys to values", r->name, name);
            RT_TRY(check(r, rt_jval_at(at, i), u->items, name));
        }
    }
    return RT_OK;
}

rt_status rt_recipe_check(const rt_recipe *r) {
    RT_FAIL_IF(!rt_jval_is_object(r->root), RT_E_INPUT, "recipe %s: wanted a mapping of keys to values",
               r->name);
    return check(r, r->root, top_rules, "top level");
}
