/*
 * export.h - a model for other runtimes, with its uncertainty inside. Formats are lines of exports.def.
 */
#ifndef RT_EXPORT_EXPORT_H
#define RT_EXPORT_EXPORT_H

#include "base/json.h"
#include "config/config.h"
#include "model/model.h"

typedef struct rt_export_options {
    const char *format;  /* NULL: onnx */
    const char *out;     /* file */
    const char *outputs; /* names, comma between them; NULL: all that the model has */
    int opset;           /* onnx: 13 to 17; 0: 17 */
    bool no_fold;        /* onnx: keep batch normalisation apart from convolutions */
    bool raw;            /* without what `calibrate` stored */
    const char *data;    /* another name of the run's data */
    rt_pool *pool;
} rt_export_options;

typedef struct rt_export_result {
    int64_t bytes;
    int opset;
    rt_str outputs;            /* names, comma between them */
    double max_abs_difference; /* of the file and the model, over all outputs; of numbers above 1 the ratio */
    double rounding;           /* what rounding to float does to the file's answers */
    int64_t rows_checked;
    const char *rows_from; /* "held-out rows", or why they are others */
} rt_export_result;

typedef struct rt_export_format {
    const char *name, *meaning;
    rt_status (*write)(const rt_model *m, const char *run, const rt_export_options *o, rt_export_result *r);
} rt_export_format;
int rt_export_list(const rt_export_format **out);

/* Writes the file, reads it back, computes it for some rows and compares with the model; what differs too much
 * is removed again and RT_E_NUMERIC. run: where m was loaded from. */
rt_status rt_export_run(const rt_model *m, const char *run, const rt_export_options *o,
                        rt_export_result *r) RT_MUST_CHECK;
rt_export_options rt_export_options_of(const rt_config *c); /* all but the pool */
void rt_export_result_write(const rt_export_result *r, const char *out,
                            rt_json *j); /* keys of an open object */
void rt_export_result_deinit(rt_export_result *r);

#endif
