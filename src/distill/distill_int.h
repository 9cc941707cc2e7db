/*
 * distill_int.h - the methods of methods.def, one symbol each.
 */
#ifndef RT_DISTILL_DISTILL_INT_H
#define RT_DISTILL_DISTILL_INT_H

#include "distill/distill.h"

#define RT_METHOD(id) extern const rt_method rt_method_##id;
#include "distill/methods.def"
#undef RT_METHOD

#endif
