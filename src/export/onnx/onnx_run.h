/*
 * onnx_run.h - reads an ONNX file and computes it, slowly and plainly: the check on what was written.
 *
 * It shares nothing with the writer but the format: operators are implemented from their definitions in the
 * ONNX standard, with broadcasting, on any number of rows. Numbers are doubles, rounded to float after every
 * node whose type is float, as a runtime would have them; or not, and then both runs together tell how much of an
 * answer is rounding.
 */
#ifndef RT_EXPORT_ONNX_RUN_H
#define RT_EXPORT_ONNX_RUN_H

#include "base/status.h"

enum { RT_ONNX_RANK = 6 };
typedef struct rt_onnx_array {
    int type; /* TensorProto.DataType: 1 float, 7 int64, 9 bool */
    int rank;
    int64_t d[RT_ONNX_RANK];
    double *v; /* owned */
} rt_onnx_array;
int64_t rt_onnx_array_count(const rt_onnx_array *a);

typedef struct rt_onnx_run rt_onnx_run;
/* The bytes of a file that is, or will be, at path: tensors outside it are in PATH.data. */
rt_status rt_onnx_run_open(rt_onnx_run **out, const char *path, const uint8_t *bytes, size_t n) RT_MUST_CHECK;
void rt_onnx_run_close(rt_onnx_run **r);
/* Computes all nodes for x, the input that has no default; fails naming the node and what is wrong. exact: without
 * rounding to float. */
rt_status rt_onnx_run_rows(rt_onnx_run *r, const float *x, int64_t rows, bool exact) RT_MUST_CHECK;
/* A tensor by name, after a run; NULL if there is none. */
const rt_onnx_array *rt_onnx_run_get(const rt_onnx_run *r, const char *name);
const char *rt_onnx_run_meta(const rt_onnx_run *r, const char *key); /* NULL: absent */

#endif
