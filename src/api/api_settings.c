/*
 * api_settings.c - the settings of a verb, listed and checked without running it.
 */
#include "api/api_int.h"
#include <string.h>

static const char *const k_kinds[] = {
    [RT_KIND_STR] = "text",     [RT_KIND_I64] = "integer", [RT_KIND_F64] = "number",
    [RT_KIND_BOOL] = "boolean", [RT_KIND_ENUM] = "choice", [RT_KIND_LIST] = "list"};

bool rt_api_takes(const rt_param_info *p, unsigned verb) {
    /* eval's is of what it prints; its file has the format of its name */
    const bool printed = verb == RT_VERB_EVAL && strcmp(p->key, "format") == 0;
    return (p->verbs & verb) != 0 && (p->verbs & RT_PARAM_MAIN) == 0 && !printed;
}

/* Line i of the verb's parameters; NULL: there are fewer. */
static const rt_param_info *find(unsigned verb, int i) {
    const rt_param_info *all;
    const int n = rt_config_list(&all);
    for (int k = 0; k < n; k++)
        if (rt_api_takes(&all[k], verb) && i-- == 0)
            return &all[k];
    return NULL;
}

int rt_setting_count(const char *verb) {
    unsigned bit;
    int at, n = 0;
    if (rt_api_verb(verb, &bit, &at) != RT_OK)
        return -1;
    while (find(bit, n) != NULL)
        n++;
    return n;
}

rt_status rt_setting_get(const char *verb, int i, rt_setting *out) {
    unsigned bit;
    int at;
    RT_TRY(rt_api_verb(verb, &bit, &at));
    RT_FAIL_IF(out == NULL, RT_E_USAGE, "setting: nowhere to put it");
    RT_FAIL_IF(out->size < offsetof(rt_setting, help) + sizeof out->help || out->size > 4096, RT_E_USAGE,
               "setting: size %zu; initialise it with RT_SETTING_INIT", out->size);
    const rt_param_info *p = i >= 0 ? find(bit, i) : NULL;
    RT_FAIL_IF(p == NULL, RT_E_USAGE, "setting %d of %s: there are %d", i, verb, rt_setting_count(verb));
    const rt_setting s = {.size = out->size,
                          .key = p->key,
                          .kind = k_kinds[p->kind],
                          .value = p->def,
                          .lowest = p->lo,
                          .highest = p->hi,
                          .choices = p->choices,
                          .help = p->help};
    memcpy(out, &s, RT_MIN(out->size, sizeof s));
    return RT_OK;
}

rt_status rt_settings_check(const char *verb, const char *const *settings, int n) {
    unsigned bit;
    int at;
    rt_config c;
    RT_TRY(rt_api_verb(verb, &bit, &at));
    RT_TRY(rt_config_init(&c));
    const rt_status st = rt_api_settings(&c, bit, settings, n);
    rt_config_deinit(&c);
    return st;
}
