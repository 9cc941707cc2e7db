/*
 * args.c - the command line of a verb.
 *
 *     retort VERB [WORD...] [--flag VALUE | --flag=VALUE | -f VALUE | -fVALUE | --[no-]switch] [-- WORD...]
 *
 * Which flags exist and what they mean is params.def's business: this file only cuts the words and hands them
 * to rt_config_set, which refuses what it does not know and names the nearest it does.
 */
#include "base/alloc.h"
#include "cli/cli.h"
#include <stdio.h>
#include <string.h>

static const rt_param_info *find_param(const char *key, size_t n) {
    const rt_param_info *list;
    int count = rt_config_list(&list);
    for (int i = 0; i < count; i++) {
        size_t k = 0;
        while (k < n && list[i].key[k] &&
               (key[k] == list[i].key[k] || (key[k] == '_' && list[i].key[k] == '-')))
            k++;
        if (k == n && !list[i].key[k])
            return &list[i];
        if (list[i].alias && strlen(list[i].alias) == n && memcmp(list[i].alias, key, n) == 0)
            return &list[i];
    }
    return NULL;
}

void cli_append_quoted(rt_str *out, const char *word) {
    if (out->len)
        rt_str_append_char(out, ' ');
    rt_str_append_shell(out, word);
}

/* One flag beginning at argv[*at]; key has n characters and `glued` is the value written in the same word, or
 * NULL. */
static rt_status take_flag(rt_cli *c, int argc, char **argv, int *at, const char *key, size_t n,
                           const char *glued) {
    const rt_param_info *p = find_param(key, n);
    const char *value = glued;
    char name[64], origin[66];
    snprintf(name, sizeof name, "%.*s", (int)RT_MIN(n, sizeof name - 1), key);
    snprintf(origin, sizeof origin, "%s%s", argv[*at][1] == '-' ? "--" : "-", name);
    const bool alone = *at + 1 >= argc || argv[*at + 1][0] == '-';
    if (!value && p && p->kind == RT_KIND_ENUM && alone && rt_str_starts(p->choices, "false|true|"))
        value = "true"; /* a switch with more than two positions */
    if (!value && p && p->kind != RT_KIND_BOOL && *at + 1 < argc) {
        const char *next = argv[*at + 1];
        RT_FAIL_IF(rt_str_starts(next, "--"), RT_E_USAGE,
                   "%s needs a value%s%s, but '%s' follows (write %s=%s if that is the value)", origin,
                   p->meta ? ": " : "", p->meta ? p->meta : "", next, origin, next);
        value = next;
        ++*at;
    }
    RT_TRY(rt_config_set(&c->config, c->verb->bit, name, value, origin, false));
    return RT_OK;
}

static rt_status take_word(rt_cli *c, const char *word) {
    RT_FAIL_IF(c->nargs >= c->verb->max_args && c->verb->max_args == 0, RT_E_USAGE,
               "%s takes flags only, but was given '%s'", c->verb->name, word);
    RT_FAIL_IF(c->nargs >= c->verb->max_args, RT_E_USAGE, "%s takes %s%s; '%s' is one too many",
               c->verb->name, c->verb->max_args == 1 ? "one " : "", c->verb->args, word);
    c->args[c->nargs++] = word;
    return RT_OK;
}

static rt_status take(rt_cli *c, int argc, char **argv, int *at, bool *help) {
    const char *word = argv[*at];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        *help = true;
        return RT_OK;
    }
    if (word[0] != '-' || word[1] == 0)
        return take_word(c, word);
    if (word[1] == '-') {
        size_t n = strcspn(word + 2, "=");
        return take_flag(c, argc, argv, at, word + 2, n, word[2 + n] ? word + 3 + n : NULL);
    }
    const rt_param_info *p = find_param(word + 1, 1);
    RT_FAIL_IF(p && p->kind == RT_KIND_BOOL && word[2] && word[2] != '=', RT_E_USAGE,
               "%s: one letter per dash; write -%c and the rest apart", word, word[1]);
    RT_FAIL_IF(!p && word[2], RT_E_USAGE, "%s: unknown flag; long flags begin with two dashes", word);
    return take_flag(c, argc, argv, at, word + 1, 1,
                     word[2] == 0     ? NULL
                     : word[2] == '=' ? word + 3
                                      : word + 2);
}

rt_status cli_parse(rt_cli *c, int argc, char **argv, bool *help) {
    *help = false;
    c->argc = argc;
    c->argv = argv;
    RT_TRY(rt_calloc(&c->args, (size_t)argc + 1, sizeof *c->args));
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            while (++i < argc)
                RT_TRY(take_word(c, argv[i]));
            break;
        }
        RT_TRY(take(c, argc, argv, &i, help));
        if (*help)
            return RT_OK;
    }
    RT_FAIL_IF(c->nargs < c->verb->min_args, RT_E_USAGE, "%s needs %s", c->verb->name, c->verb->args);
    if (c->config.config)
        RT_TRY(rt_config_load(&c->config, c->verb->bit, c->config.config));
    return RT_OK;
}

rt_status cli_require(const rt_cli *c, const char *key, const char *value) {
    if (value)
        return RT_OK;
    const rt_param_info *p = find_param(key, strlen(key));
    RT_FAIL(RT_E_USAGE, "%s needs --%s %s", c->verb->name, key, p && p->meta ? p->meta : "VALUE");
}

rt_status cli_parse_shape(rt_shape *out, const char *text, const char *origin) {
    memset(out, 0, sizeof *out);
    for (const char *s = text;; s++) {
        size_t n = strcspn(s, "x");
        int64_t d;
        RT_FAIL_IF(out->rank == 3 || !rt_parse_i64(s, n, &d) || d < 1 || d > 1000000, RT_E_USAGE,
                   "%s: '%s' is not a shape such as 3x32x32 or 784", origin, text);
        out->d[out->rank++] = d;
        s += n;
        if (!*s)
            break;
    }
    RT_FAIL_IF(out->rank == 2, RT_E_USAGE,
               "%s: '%s' has two numbers; images are channels x height x width, such as 1x%s", origin, text,
               text);
    return RT_OK;
}
