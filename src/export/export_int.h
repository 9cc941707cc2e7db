/*
 * export_int.h - what the files of this module share.
 */
#ifndef RT_EXPORT_EXPORT_INT_H
#define RT_EXPORT_EXPORT_INT_H

#include "export/export.h"
#include "export/onnx/onnx.h"
#include "model/run.h"

/* Raw outputs of all members for raw rows x (N, row...): (members, N, outputs). */
rt_onnx_val rt_onnx_network(rt_onnx *o, const rt_model *m, rt_onnx_val x, bool fold);
/* The answers by name, or all that the model has (chosen NULL), as outputs of the file; list gets their names.
 * raw: without the decision of `calibrate`. */
rt_status rt_onnx_answers(rt_onnx *o, const rt_model *m, rt_onnx_val z, const char *chosen, bool raw,
                          rt_str *list) RT_MUST_CHECK;
const char *rt_onnx_answer(int i); /* names of the table of answers; NULL: no more */
/* Mean and variance (members, N) of a transformed target become those of the target itself; and u (N) such a target. */
void rt_onnx_warp_moments(rt_onnx *o, const rt_warp *w, int members, rt_onnx_val *mean,
                          rt_onnx_val *variance);
rt_onnx_val rt_onnx_warp_invert(rt_onnx *o, const rt_warp *w, rt_onnx_val u);

#endif
