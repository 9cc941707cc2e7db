/*
 * methods.c - the methods by name.
 */
#include "distill/distill_int.h"
#include <string.h>

#define RT_METHOD(id) &rt_method_##id,
static const rt_method *const methods[] = {
#include "distill/methods.def"
};
#undef RT_METHOD

int rt_method_list(const rt_method *const **out) {
    *out = methods;
    return (int)RT_COUNT(methods);
}

const rt_method *rt_method_find(const char *name) {
    for (int64_t i = 0; i < RT_COUNT(methods); i++)
        if (strcmp(methods[i]->name, name) == 0)
            return methods[i];
    return NULL;
}
