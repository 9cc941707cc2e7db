/*
 * recipe_check.c - lists are lists and mappings are mappings, before anything is done with them.
 *
 * YAML has no schema: where a mapping is meant, `[a, b]` parses as well, and has no keys. The form of a recipe
 * is the table below. What a place holds beside it (texts, numbers) is judged by who reads it; an empty value
 * is an absent one.
 */
#include "recipe/recipe_int.h"

typedef struct rule {
    const char *key;          /* NULL: the end */
    bool list;                /* else a mapping */
    const struct rule *items; /* of the elements, which are mappings; NULL: they are anything */
} rule;

static const rule nothing[] = {{.key = NULL}};
static const rule scale_rules[] = {{"vars", false, NULL}, {.key = NULL}};
static const rule stage_rules[] = {
    {"each", false, NULL}, {"with", false, NULL}, {"runs", true, NULL}, {.key = NULL}};
static const rule column_rules[] = {{"where", false, NULL}, {.key = NULL}};
static const rule row_rules[] = {{"where", false, NULL}, {"paper", false, NULL}, {.key = NULL}};
static const rule table_rules[] = {
    {"columns", true, column_rules}, {"rows", true, row_rules}, {"claims", true, nothing}, {.key = NULL}};
static const rule top_rules[] = {{"scales", false, scale_rules},
                                 {"vars", false, NULL},
                                 {"stages", true, stage_rules},
                                 {"tables", true, table_rules},
                                 {.key = NULL}};

static rt_status check(const rt_recipe *r, rt_jval v, const rule *rules) {
    for (; rules->key; rules++) {
        rt_jval at = rt_jval_get(v, rules->key);
        const char *text;
        if (!at || (rt_jval_str(at, &text) && !*text))
            continue;
        RT_FAIL_IF(rules->list ? !rt_jval_is_array(at) : !rt_jval_is_object(at), RT_E_INPUT,
                   "recipe %s: '%s' must be a %s", r->name, rules->key,
                   rules->list ? "list" : "mapping of keys to values");
        for (int64_t i = 0; rules->items && i < rt_jval_len(at); i++) {
            RT_FAIL_IF(!rt_jval_is_object(rt_jval_at(at, i)), RT_E_INPUT,
                       "recipe %s: element %lld of '%s' must be a mapping of keys to values", r->name,
                       (long long)i, rules->key);
            RT_TRY(check(r, rt_jval_at(at, i), rules->items));
        }
    }
    return RT_OK;
}

rt_status rt_recipe_check(const rt_recipe *r) {
    RT_FAIL_IF(!rt_jval_is_object(r->root), RT_E_INPUT, "recipe %s: wanted a mapping of keys to values",
               r->name);
    return check(r, r->root, top_rules);
}
