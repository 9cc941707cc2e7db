/*
 * onnx_run_int.h - what the interpreter and its operators share.
 */
#ifndef RT_EXPORT_ONNX_RUN_INT_H
#define RT_EXPORT_ONNX_RUN_INT_H

#include "base/compiler.h"
#include "base/str.h"
#include "export/onnx/onnx_run.h"
#include <onnx.pb-c.h>

enum { RT_ONNX_TYPE_FLOAT = 1, RT_ONNX_TYPE_INT64 = 7, RT_ONNX_TYPE_BOOL = 9, RT_ONNX_IN = 1024 };

rt_status rt_onnx_array_make(rt_onnx_array *a, int type, int rank, const int64_t *d) RT_MUST_CHECK;
/* The result of a node; fails when the operator is unknown or its inputs do not fit. */
rt_status rt_onnx_operator(const Onnx__NodeProto *n, const rt_onnx_array *const *in,
                           rt_onnx_array *out) RT_MUST_CHECK;

#endif
