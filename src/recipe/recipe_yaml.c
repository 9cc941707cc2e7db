/*
 * recipe_yaml.c - a YAML file as a document of mappings, lists and texts.
 *
 * The events of the parser are written as JSON, every scalar as a text, and read by the JSON reader, whose
 * limits and checks (depth, doubled keys) hold for recipes, too. Anchors, aliases and tags are refused.
 */
#include "base/json.h"
#include "recipe/recipe_int.h"
#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum { DEPTH_MAX = 16 };

typedef struct place {
    bool mapping, want_key;
    char *key;
} place;

typedef struct converter {
    rt_json json;
    rt_arena arena;
    place at[DEPTH_MAX];
    int depth;
} converter;

/* The key under which the next value is written; NULL in a list and at the top. */
static const char *next_key(converter *c) {
    if (c->depth == 0 || !c->at[c->depth - 1].mapping)
        return NULL;
    c->at[c->depth - 1].want_key = true;
    return c->at[c->depth - 1].key;
}

static rt_status begin(converter *c, bool mapping, const char *where) {
    const char *key = next_key(c);
    RT_FAIL_IF(c->depth == DEPTH_MAX, RT_E_INPUT, "%s: nested more than %d deep", where, DEPTH_MAX);
    if (mapping)
        rt_json_object_begin(&c->json, key);
    else
        rt_json_array_begin(&c->json, key);
    c->at[c->depth++] = (place){.mapping = mapping, .want_key = mapping};
    return RT_OK;
}

static rt_status scalar(converter *c, const yaml_event_t *e, const char *where) {
    const char *text = (const char *)e->data.scalar.value;
    RT_FAIL_IF(e->data.scalar.anchor || e->data.scalar.tag, RT_E_INPUT,
               "%s: anchors and tags are not supported", where);
    RT_FAIL_IF(memchr(text, 0, e->data.scalar.length), RT_E_INPUT, "%s: zero byte in text", where);
    place *p = c->depth ? &c->at[c->depth - 1] : NULL;
    if (p && p->mapping && p->want_key) {
        const char *copy;
        RT_TRY(rt_arena_strdup(&c->arena, &copy, text));
        p->key = (char *)copy;
        p->want_key = false;
        return RT_OK;
    }
    rt_json_str(&c->json, next_key(c), text);
    return RT_OK;
}

static rt_status take(converter *c, const yaml_event_t *e, const char *where) {
    switch (e->type) {
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT: {
        const bool mapping = e->type == YAML_MAPPING_START_EVENT;
        const bool extras = mapping ? e->data.mapping_start.anchor || e->data.mapping_start.tag
                                    : e->data.sequence_start.anchor || e->data.sequence_start.tag;
        RT_FAIL_IF(extras, RT_E_INPUT, "%s: anchors and tags are not supported", where);
        RT_FAIL_IF(c->depth && c->at[c->depth - 1].mapping && c->at[c->depth - 1].want_key, RT_E_INPUT,
                   "%s: a key must be text", where);
        return begin(c, mapping, where);
    }
    case YAML_MAPPING_END_EVENT:
        c->depth--;
        rt_json_object_end(&c->json);
        return RT_OK;
    case YAML_SEQUENCE_END_EVENT:
        c->depth--;
        rt_json_array_end(&c->json);
        return RT_OK;
    case YAML_SCALAR_EVENT:
        return scalar(c, e, where);
    case YAML_ALIAS_EVENT:
        RT_FAIL(RT_E_INPUT, "%s: aliases are not supported", where);
    default:
        return RT_OK;
    }
}

static rt_status convert(converter *c, yaml_parser_t *parser, const char *name) {
    bool end = false;
    int documents = 0;
    while (!end) {
        yaml_event_t e;
        char where[256];
        if (!yaml_parser_parse(parser, &e))
            RT_FAIL(RT_E_INPUT, "%s:%zu:%zu: %s", name, parser->problem_mark.line + 1,
                    parser->problem_mark.column + 1, parser->problem ? parser->problem : "cannot be read");
        snprintf(where, sizeof where, "%s:%zu:%zu", name, e.start_mark.line + 1, e.start_mark.column + 1);
        documents += e.type == YAML_DOCUMENT_START_EVENT;
        end = e.type == YAML_STREAM_END_EVENT;
        rt_status st = documents > 1
                           ? rt_error_set(RT_E_INPUT, __FILE__, __LINE__, "%s: a second document", where)
                           : take(c, &e, where);
        yaml_event_delete(&e);
        RT_TRY(st);
    }
    RT_FAIL_IF(documents == 0, RT_E_INPUT, "%s: empty, wanted a recipe", name);
    return RT_OK;
}

rt_status rt_recipe_yaml(rt_jdoc **out, const char *text, size_t n, const char *name) {
    rt_str json;
    converter c = {.depth = 0};
    yaml_parser_t parser;
    RT_FAIL_IF(!yaml_parser_initialize(&parser), RT_E_MEMORY, "%s: out of memory", name);
    rt_str_init(&json);
    rt_arena_init(&c.arena);
    rt_json_init(&c.json, &json, false);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    rt_status st = convert(&c, &parser, name);
    yaml_parser_delete(&parser);
    if (st == RT_OK)
        st = rt_str_status(&json);
    if (st == RT_OK)
        st = rt_jdoc_parse(out, rt_str_text(&json), json.len, name);
    rt_arena_deinit(&c.arena);
    rt_str_deinit(&json);
    return st;
}
