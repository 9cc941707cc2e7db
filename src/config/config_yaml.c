/*
 * config_yaml.c - a configuration file: a flat YAML mapping from parameter to value.
 *
 *     epochs: 10            # '-' or '_' in keys
 *     arch: "mlp:200,200"
 *     data: spiral:n=1000
 *     ood: [digits=mnist:digits, noise=npy:noise.npy]     # parameters that may be repeated
 *
 * Only this much of YAML is accepted: one document, one block or flow mapping, plain or quoted scalars, and sequences
 * of them where the parameter is a list. Anchors, tags, nested mappings, doubled keys and a second document are errors
 * that name line and column. Values reach rt_config_set as the text that is written, so YAML's own typing (no, 012,
 * 1:30) changes nothing. `~` and `null` leave a parameter as it is.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "config/config.h"
#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum { CONFIG_MAX_BYTES = 1 << 20, ORIGIN_MAX = 512 };

typedef struct reader {
    yaml_parser_t parser;
    yaml_event_t event;
    bool have_event;
    const char *path;
} reader;

static rt_status fail_at(const reader *r, yaml_mark_t at, const char *text) {
    RT_FAIL(RT_E_USAGE, "%s:%zu:%zu: %s", r->path, at.line + 1, at.column + 1, text);
}

static rt_status next(reader *r) {
    if (r->have_event)
        yaml_event_delete(&r->event);
    r->have_event = yaml_parser_parse(&r->parser, &r->event) != 0;
    if (r->have_event)
        return RT_OK;
    if (r->parser.error == YAML_MEMORY_ERROR)
        RT_FAIL(RT_E_MEMORY, "%s: out of memory", r->path);
    return fail_at(r, r->parser.problem_mark, r->parser.problem ? r->parser.problem : "cannot be read");
}

/* Checks that the event is a scalar without YAML extras, and without a zero byte. */
static rt_status check_scalar(const reader *r, const char *what) {
    const yaml_event_t *e = &r->event;
    char text[96];
    if (e->type != YAML_SCALAR_EVENT) {
        snprintf(text, sizeof text, "%s must be plain text, not a list, a mapping or an alias", what);
        return fail_at(r, e->start_mark, text);
    }
    if (e->data.scalar.anchor || e->data.scalar.tag)
        return fail_at(r, e->start_mark, "anchors and tags are not supported");
    if (memchr(e->data.scalar.value, 0, e->data.scalar.length))
        return fail_at(r, e->start_mark, "zero byte in text");
    return RT_OK;
}

static bool is_null(const yaml_event_t *e) {
    const char *v = (const char *)e->data.scalar.value;
    return e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (*v == 0 || strcmp(v, "~") == 0 || strcmp(v, "null") == 0);
}

static bool is_list(const char *key) {
    const rt_param_info *list;
    int n = rt_config_list(&list);
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].key, key) == 0)
            return list[i].kind == RT_KIND_LIST;
    return false;
}

/* The items behind the beginning of a sequence. */
static rt_status read_items(reader *r, rt_config *c, unsigned verb, const char *key, const char *origin) {
    if (r->event.data.sequence_start.anchor || r->event.data.sequence_start.tag)
        return fail_at(r, r->event.start_mark, "anchors and tags are not supported");
    for (;;) {
        RT_TRY(next(r));
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            return RT_OK;
        RT_TRY(check_scalar(r, "an item"));
        RT_TRY(rt_config_set(c, verb, key, (const char *)r->event.data.scalar.value, origin, true));
    }
}

static rt_status read_pair(reader *r, rt_config *c, unsigned verb, rt_map *seen) {
    rt_status st = RT_OK;
    char origin[ORIGIN_MAX];
    char *key = NULL;
    RT_TRY(check_scalar(r, "a key"));
    yaml_mark_t at = r->event.start_mark;
    key = rt_strdup((const char *)r->event.data.scalar.value);
    if (!key)
        return RT_E_MEMORY;
    for (char *s = key; *s; s++)
        if (*s == '_')
            *s = '-';
    snprintf(origin, sizeof origin, "%s:%zu:%zu", r->path, at.line + 1, at.column + 1);
    bool existed;
    RT_TRY_GOTO(rt_map_put(seen, key, 1, &existed));
    if (existed)
        RT_FAIL_GOTO(RT_E_USAGE, "%s: '%s' is given twice", origin, key);
    RT_TRY_GOTO(next(r));
    if (r->event.type == YAML_SEQUENCE_START_EVENT && is_list(key)) {
        st = read_items(r, c, verb, key, origin);
        goto done;
    }
    RT_TRY_GOTO(check_scalar(r, "a value"));
    if (!is_null(&r->event))
        RT_TRY_GOTO(rt_config_set(c, verb, key, (const char *)r->event.data.scalar.value, origin, true));
done:
    rt_free(key);
    return st;
}

static rt_status read_document(reader *r, rt_config *c, unsigned verb, rt_map *seen) {
    RT_TRY(next(r)); /* start of the stream */
    RT_TRY(next(r));
    if (r->event.type == YAML_STREAM_END_EVENT)
        return RT_OK;
    RT_TRY(next(r));
    if (r->event.type == YAML_SCALAR_EVENT && is_null(&r->event)) {
        RT_TRY(next(r));
    } else {
        if (r->event.type != YAML_MAPPING_START_EVENT)
            return fail_at(r, r->event.start_mark, "wanted lines of the form 'key: value'");
        for (;;) {
            RT_TRY(next(r));
            if (r->event.type == YAML_MAPPING_END_EVENT)
                break;
            RT_TRY(read_pair(r, c, verb, seen));
        }
        RT_TRY(next(r));
    }
    RT_TRY(next(r));
    if (r->event.type != YAML_STREAM_END_EVENT)
        return fail_at(r, r->event.start_mark, "a second document; one is wanted");
    return RT_OK;
}

rt_status rt_config_load(rt_config *c, unsigned verb, const char *path) {
    uint8_t *data = NULL;
    size_t n = 0;
    RT_TRY(rt_file_read(path, CONFIG_MAX_BYTES, &data, &n));
    rt_map seen;
    reader r = {.path = path};
    rt_map_init(&seen);
    rt_status st;
    if (yaml_parser_initialize(&r.parser)) {
        yaml_parser_set_input_string(&r.parser, data, n);
        st = read_document(&r, c, verb, &seen);
        if (r.have_event)
            yaml_event_delete(&r.event);
        yaml_parser_delete(&r.parser);
    } else {
        st = rt_error_set(RT_E_MEMORY, __FILE__, __LINE__, "%s: out of memory", path);
    }
    rt_map_deinit(&seen);
    rt_free(data);
    return st;
}
