/*
 * methods.c - the presets by name.
 */
#include "distill/distill.h"
#include <string.h>

static const rt_method methods[] = {
#define RT_METHOD(name, paper, perturb, temperature, anneal, alpha, keep, meaning, ...)                      \
    {name, paper, perturb, temperature, anneal, alpha, keep, meaning, {__VA_ARGS__}},
#include "distill/methods.def"
#undef RT_METHOD
};

int rt_method_count(void) {
    return (int)RT_COUNT(methods);
}
const rt_method *rt_method_get(int i) {
    return &methods[i];
}

const rt_method *rt_method_find(const char *name) {
    for (int64_t i = 0; i < RT_COUNT(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

rt_status rt_method_unknown(const char *name) {
    const char *names[RT_COUNT(methods)];
    for (int64_t i = 0; i < RT_COUNT(methods); i++)
        names[i] = methods[i].name;
    RT_FAIL_UNKNOWN(RT_E_USAGE, name, names, RT_COUNT(names), "--method: unknown");
}

const rt_method *rt_method_plain(void) {
    return &methods[0];
}

const rt_objective *rt_objective_plain(void) {
    return rt_objective_find(rt_method_last(rt_method_plain())->objective);
}

int rt_method_phases(const rt_method *m) {
    int n = 0;
    while (n < RT_PHASES_MAX && m->phase[n].student != NULL)
        n++;
    return n;
}

const rt_method_phase *rt_method_last(const rt_method *m) {
    return &m->phase[rt_method_phases(m) - 1];
}

double rt_method_temperature(double t0, double anneal, double progress) {
    if (anneal <= 0)
        return t0;
    const double half = 0.5 * anneal;
    if (progress <= half)
        return t0;
    return progress >= anneal ? 1.0 : t0 + (1.0 - t0) * (progress - half) / half;
}
