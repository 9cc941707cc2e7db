/*
 * config.c - the parameters of a run: one table, made from params.def.
 *
 * Everything that handles parameters walks this table: setting from text, writing the resolved configuration,
 * the hash that says whether two runs give the same result. There is no code per parameter. A parameter
 * remembers who set it, so that the order "default < file < command line" holds whatever comes first.
 *
 * Text goes in and out by one pair of functions (store, value_text): what rt_config_write prints,
 * rt_config_set reads back to the same bits.
 */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/sha256.h"
#include "config/config.h"
#include <stdio.h>
#include <string.h>

enum { FROM_DEFAULT, FROM_FILE, FROM_FLAG, KEY_MAX = 24 };

/* Keys are the field names with '-' for '_', converted by the compiler. */
#define KEY_CHAR(s, i)                                                                                       \
    ((i) >= sizeof(s) ? '\0' : (s)[(i) < sizeof(s) ? (i) : 0] == '_' ? '-' : (s)[(i) < sizeof(s) ? (i) : 0])
#define KEY_4(s, i) KEY_CHAR(s, i), KEY_CHAR(s, i + 1), KEY_CHAR(s, i + 2), KEY_CHAR(s, i + 3)
#define KEY(s)                                                                                               \
    {                                                                                                        \
        KEY_4(s, 0), KEY_4(s, 4), KEY_4(s, 8), KEY_4(s, 12), KEY_4(s, 16), KEY_CHAR(s, 20), KEY_CHAR(s, 21), \
            KEY_CHAR(s, 22), '\0'                                                                            \
    }

/* Row numbers of the table. */
enum {
#define RT_PARAM(field, kind, type, def, lo, hi, choices, verbs, alias, meta, help) P_##field,
#include "config/params.def"
    P_COUNT
};

static const char keys[P_COUNT][KEY_MAX] = {
#define RT_PARAM(field, kind, type, def, lo, hi, choices, verbs, alias, meta, help) KEY(#field),
#include "config/params.def"
};

static const rt_param_info params[P_COUNT] = {
#define RT_PARAM(field, kind, type, def, lo, hi, choices, verbs, alias, meta, help)                          \
    {keys[P_##field], RT_KIND_##kind, def, lo, hi, choices, verbs, alias, meta, help},
#include "config/params.def"
};

static const size_t offsets[P_COUNT] = {
#define RT_PARAM(field, kind, type, def, lo, hi, choices, verbs, alias, meta, help)                          \
    offsetof(rt_config, field),
#include "config/params.def"
};

#define RT_PARAM(field, kind, type, def, lo, hi, choices, verbs, alias, meta, help)                          \
    _Static_assert(sizeof(#field) <= KEY_MAX, "key too long: " #field);
#include "config/params.def"

struct rt_config_state {
    rt_arena text;
    uint8_t from[P_COUNT];
    bool saved; /* of a run: what its file does not have did not exist then */
};

int rt_config_list(const rt_param_info **out) {
    *out = params;
    return P_COUNT;
}

rt_status rt_config_items(const char *list, char ***out, int64_t *n) {
    int64_t want = list != NULL;
    for (const char *s = list; s && *s; s++)
        want += *s == '\n';
    *n = 0;
    RT_TRY(rt_calloc(out, (size_t)want + 1, sizeof **out));
    for (const char *s = list; *n < want; s += strcspn(s, "\n") + 1) {
        const size_t len = strcspn(s, "\n");
        const rt_status st = rt_calloc(&(*out)[*n], len + 1, 1);
        if (st != RT_OK) {
            rt_names_free(*out, *n);
            *out = NULL;
            *n = 0;
            return st;
        }
        memcpy((*out)[(*n)++], s, len);
    }
    return RT_OK;
}

/* ---- text to value ---- */

static rt_status store_enum(const rt_param_info *p, const char **field, rt_config *c, const char *value,
                            const char *origin) {
    char names[16][32];
    const char *list[16];
    int64_t n = 0;
    for (const char *s = p->choices; *s && n < 16; n++) {
        size_t len = strcspn(s, "|");
        RT_ASSERT(len < sizeof names[0]);
        memcpy(names[n], s, len);
        names[n][len] = 0;
        list[n] = names[n];
        if (strcmp(value, names[n]) == 0)
            return rt_arena_strdup(&c->state->text, field, value);
        s += len + (s[len] == '|');
    }
    RT_FAIL_UNKNOWN(RT_E_USAGE, value, list, n, "%s: unknown", origin);
}

static bool parse_bool(const char *text, bool *out) {
    static const char *const yes[] = {"true", "yes", "on", "1"}, *const no[] = {"false", "no", "off", "0"};
    for (int i = 0; i < 4; i++) {
        if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
            *out = strcmp(text, yes[i]) == 0;
            return true;
        }
    }
    return false;
}

/* One more item of a list, or several that a list already holds. */
static rt_status store_item(rt_config *c, const char **field, const char *value) {
    if (!*field)
        return rt_arena_strdup(&c->state->text, field, value);
    rt_str all;
    rt_str_init(&all);
    rt_str_appendf(&all, "%s\n%s", *field, value);
    rt_status st = rt_arena_text(&c->state->text, field, &all);
    rt_str_deinit(&all);
    return st;
}

static rt_status store(rt_config *c, int i, const char *value, const char *origin) {
    const rt_param_info *p = &params[i];
    void *field = (char *)c + offsets[i];
    char lo[40], hi[40];
    rt_format_f64(lo, p->lo);
    rt_format_f64(hi, p->hi);
    switch (p->kind) {
    case RT_KIND_STR:
        RT_FAIL_IF(*value == 0, RT_E_USAGE, "%s: the value is empty", origin);
        return rt_arena_strdup(&c->state->text, (const char **)field, value);
    case RT_KIND_I64: {
        int64_t v;
        RT_FAIL_IF(!rt_parse_i64(value, strlen(value), &v) || (double)v < p->lo || (double)v > p->hi,
                   RT_E_USAGE, "%s: '%s' is not a whole number from %s to %s", origin, value, lo, hi);
        *(int64_t *)field = v;
        return RT_OK;
    }
    case RT_KIND_F64: {
        double v;
        RT_FAIL_IF(!rt_parse_f64(value, strlen(value), false, &v) || v < p->lo || v > p->hi, RT_E_USAGE,
                   "%s: '%s' is not a number from %s to %s", origin, value, lo, hi);
        *(double *)field = v;
        return RT_OK;
    }
    case RT_KIND_BOOL:
        RT_FAIL_IF(!parse_bool(value, (bool *)field), RT_E_USAGE, "%s: '%s' is neither true nor false",
                   origin, value);
        return RT_OK;
    case RT_KIND_ENUM:
        return store_enum(p, (const char **)field, c, value, origin);
    case RT_KIND_LIST:
        RT_FAIL_IF(*value == 0, RT_E_USAGE, "%s: the value is empty", origin);
        return store_item(c, (const char **)field, value);
    }
    return RT_OK;
}

/* ---- value to text ---- */

/* NULL when the parameter has no value; `number` holds the text of one that is not text itself. */
static const char *value_text(const rt_config *c, int i, char number[40]) {
    const void *field = (const char *)c + offsets[i];
    switch (params[i].kind) {
    case RT_KIND_STR:
    case RT_KIND_ENUM:
    case RT_KIND_LIST:
        return *(const char *const *)field;
    case RT_KIND_I64:
        snprintf(number, 40, "%lld", (long long)*(const int64_t *)field);
        return number;
    case RT_KIND_F64:
        rt_format_f64(number, *(const double *)field);
        return number;
    case RT_KIND_BOOL:
        return *(const bool *)field ? "true" : "false";
    }
    return NULL;
}

rt_status rt_config_init(rt_config *c) {
    memset(c, 0, sizeof *c);
    RT_TRY(rt_calloc(&c->state, 1, sizeof *c->state));
    rt_arena_init(&c->state->text);
    for (int i = 0; i < P_COUNT; i++) {
        rt_status st = params[i].def ? store(c, i, params[i].def, params[i].key) : RT_OK;
        if (st != RT_OK) {
            rt_config_deinit(c);
            return st;
        }
    }
    return RT_OK;
}

void rt_config_deinit(rt_config *c) {
    if (c->state)
        rt_arena_deinit(&c->state->text);
    rt_free(c->state);
    memset(c, 0, sizeof *c);
}

/* ---- finding a parameter ---- */

#define VERB_NAME(ID, name) #name,
static const char *const verb_names[] = {RT_VERBS(VERB_NAME)};

static int find_key(const char *key) {
    for (int i = 0; i < P_COUNT; i++)
        if (strcmp(key, params[i].key) == 0 || (params[i].alias && strcmp(key, params[i].alias) == 0))
            return i;
    return -1;
}

static rt_status fail_unknown(unsigned verb, const char *key, const char *origin) {
    const char *names[P_COUNT];
    int64_t n = 0;
    for (int i = 0; i < P_COUNT; i++)
        if (params[i].verbs & verb)
            names[n++] = params[i].key;
    RT_FAIL_UNKNOWN(RT_E_USAGE, key, names, n, "%s: unknown parameter", origin);
}

static rt_status fail_other_verb(int i, unsigned verb, const char *origin) {
    const char *here = "this command";
    char list[16 * RT_VERB_COUNT] = "";
    for (int k = 0; k < RT_VERB_COUNT; k++) {
        if (verb == 1u << k)
            here = verb_names[k];
        if (params[i].verbs & 1u << k) {
            if (*list)
                strcat(list, ", ");
            strcat(list, verb_names[k]);
        }
    }
    RT_FAIL(RT_E_USAGE, "%s: '%s' does not apply to %s; it is a parameter of: %s", origin, params[i].key,
            here, list);
}

rt_status rt_config_set(rt_config *c, unsigned verb, const char *key, const char *value, const char *origin,
                        bool from_file) {
    char name[KEY_MAX + 3];
    size_t n = strlen(key);
    if (n >= sizeof name)
        return fail_unknown(verb, key, origin);
    for (size_t k = 0; k <= n; k++)
        name[k] = key[k] == '_' ? '-' : key[k];

    int i = find_key(name);
    if (i < 0 && rt_str_starts(name, "no-") && !from_file) {
        i = find_key(name + 3);
        if (i < 0 || params[i].kind != RT_KIND_BOOL)
            return fail_unknown(verb, name, origin);
        RT_FAIL_IF(value != NULL, RT_E_USAGE, "%s takes no value, but was given '%s'", origin, value);
        value = "false";
    }
    if (i < 0)
        return fail_unknown(verb, name, origin);
    if (!(params[i].verbs & verb))
        return fail_other_verb(i, verb, origin);
    RT_FAIL_IF(from_file && (params[i].verbs & RT_PARAM_ONCE), RT_E_USAGE,
               "%s: '%s' is for the command line only", origin, params[i].key);
    if (!value && params[i].kind == RT_KIND_BOOL)
        value = "true";
    RT_FAIL_IF(!value, RT_E_USAGE, "%s needs a value%s%s", origin, params[i].meta ? ": " : "",
               params[i].meta ? params[i].meta : "");
    uint8_t from = from_file ? FROM_FILE : FROM_FLAG;
    if (from < c->state->from[i]) {
        /* Wrong values in a file are errors even where a flag wins. */
        rt_config scratch;
        RT_TRY(rt_config_init(&scratch));
        rt_status st = store(&scratch, i, value, origin);
        rt_config_deinit(&scratch);
        return st;
    }
    if (params[i].kind == RT_KIND_LIST) {
        RT_FAIL_IF(strchr(value, '\n'), RT_E_USAGE, "%s: a line break in the value", origin);
        if (from > c->state->from[i])
            *(const char **)((char *)c + offsets[i]) = NULL; /* flags replace what the file listed */
    }
    RT_TRY(store(c, i, value, origin));
    c->state->from[i] = from;
    return RT_OK;
}

void rt_config_mark_saved(rt_config *c) {
    c->state->saved = true;
}
void rt_config_mark_new(rt_config *c) {
    c->state->saved = c->state->saved && rt_config_older(c);
}

bool rt_config_is_set(const rt_config *c, const char *key) {
    int i = find_key(key);
    return i >= 0 && c->state->from[i] != FROM_DEFAULT;
}

/* ---- the resolved configuration ---- */

static void append_quoted(rt_str *out, const char *text, size_t n) {
    rt_str_append_char(out, '"');
    for (const unsigned char *s = (const unsigned char *)text; n > 0; s++, n--) {
        if (*s == '"' || *s == '\\')
            rt_str_appendf(out, "\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f)
            rt_str_appendf(out, "\\x%02x", *s);
        else
            rt_str_append_char(out, (char)*s);
    }
    rt_str_append_char(out, '"');
}

/* One item stands alone, as it did before its parameter became a list. */
static void append_list(rt_str *out, const char *text) {
    if (!strchr(text, '\n')) {
        append_quoted(out, text, strlen(text));
        return;
    }
    rt_str_append_char(out, '[');
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, "\n");
        append_quoted(out, s, n);
        s += n;
        if (*s) {
            rt_str_append(out, ", ");
            s++;
        }
    }
    rt_str_append_char(out, ']');
}

static void write_group(const rt_config *c, unsigned verb, bool how, rt_str *out) {
    char number[40];
    for (int i = 0; i < P_COUNT; i++) {
        const char *text = value_text(c, i, number);
        if (!text || !(params[i].verbs & verb) || (params[i].verbs & RT_PARAM_ONCE) ||
            how != ((params[i].verbs & RT_PARAM_HOW) != 0))
            continue;
        rt_str_appendf(out, "%s: ", params[i].key);
        if (params[i].kind == RT_KIND_LIST)
            append_list(out, text);
        else if (params[i].kind == RT_KIND_STR)
            append_quoted(out, text, strlen(text));
        else
            rt_str_append(out, text);
        rt_str_append_char(out, '\n');
    }
}

void rt_config_write(const rt_config *c, unsigned verb, rt_str *out) {
    rt_str_append(out, "# Every parameter of this run, for retort --config.\n");
    write_group(c, verb, false, out);
    rt_str_append(out, "# How it was run; the result does not depend on these.\n");
    write_group(c, verb, true, out);
}

/* Does parameter i decide the result of this verb? */
static bool decides(int i, unsigned verb) {
    return (params[i].verbs & verb) && !(params[i].verbs & RT_PARAM_HOW);
}

bool rt_config_older(const rt_config *c) {
    return c->state->saved && !rt_config_is_set(c, "class-weights");
}

bool rt_config_v3(const rt_config *c) {
    return c->isa && strcmp(c->isa, "v3") == 0;
}

void rt_config_hash(const rt_config *c, unsigned verb, bool names, char out[65]) {
    rt_sha256 sha;
    uint8_t digest[32];
    char number[40];
    rt_sha256_init(&sha);
    for (int i = 0; i < P_COUNT; i++) {
        const char *text = value_text(c, i, number);
        if (!text || !decides(i, verb) || (c->state->saved && c->state->from[i] == FROM_DEFAULT) ||
            (!names && (params[i].verbs & RT_PARAM_NAME)))
            continue;
        rt_sha256_update(&sha, params[i].key, strlen(params[i].key) + 1);
        rt_sha256_update(&sha, text, strlen(text) + 1);
    }
    rt_sha256_final(&sha, digest);
    rt_sha256_hex(digest, out);
}

static void append_value(rt_str *out, int i, const char *text) {
    if (text && params[i].kind == RT_KIND_LIST && strchr(text, '\n'))
        append_list(out, text);
    else
        rt_str_append(out, text ? text : "unset");
}

void rt_config_diff(const rt_config *a, const rt_config *b, unsigned verb, rt_str *out) {
    char na[40], nb[40];
    for (int i = 0; i < P_COUNT; i++) {
        const char *ta = value_text(a, i, na), *tb = value_text(b, i, nb);
        if (!decides(i, verb) || (!ta && !tb) || (ta && tb && strcmp(ta, tb) == 0))
            continue;
        rt_str_appendf(out, "%s%s (", out->len ? ", " : "", params[i].key);
        append_value(out, i, ta);
        rt_str_append(out, ", now ");
        append_value(out, i, tb);
        rt_str_append_char(out, ')');
    }
}

rt_status rt_config_overlay(rt_config *dst, const rt_config *src, unsigned verb) {
    char number[40];
    for (int i = 0; i < P_COUNT; i++) {
        const char *text = value_text(src, i, number);
        bool how = (params[i].verbs & RT_PARAM_HOW) != 0;
        if (!text || !(params[i].verbs & verb) || (!how && src->state->from[i] == FROM_DEFAULT))
            continue;
        if (params[i].kind == RT_KIND_LIST)
            *(const char **)((char *)dst + offsets[i]) = NULL;
        RT_TRY(store(dst, i, text, params[i].key));
        dst->state->from[i] = src->state->from[i];
    }
    return RT_OK;
}
