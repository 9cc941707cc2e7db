/*
 * api_predict.c - predictions of include/retort.h: sessions, and many rows by many threads.
 *
 * A session is a predictor of one thread with room for its answers. What the members say is read as everywhere
 * else (eval/row.c), at the temperature and with the decision that the model carries (eval/decision.c).
 */
#include "base/alloc.h"
#include "base/size.h"
#include "eval/eval.h"
#include "model/model.h"
#include <math.h>
#include <string.h>

enum { SESSION_ROWS_MAX = 1 << 20 };

struct rt_session {
    const rt_model *m;
    rt_pool *pool;
    rt_predictor *predictor;
    int64_t rows;
    float *y; /* (rows, members, outputs) */
    rt_row read;
};

/* ---- what a model is ---- */

const char *rt_version(void) {
    return RT_VERSION;
}

int rt_version_number(void) {
    return RT_VERSION_NUMBER;
}

int64_t rt_model_row(const rt_model *m) {
    if (!rt_model_given(m, __func__))
        return 0;
    const rt_shape s = rt_model_input(m);
    return rt_shape_elems(&s);
}

int rt_model_dims(const rt_model *m, int64_t dims[3]) {
    if (!rt_model_given(m, __func__))
        return 0;
    const rt_shape s = rt_model_input(m);
    for (int i = 0; dims != NULL && i < RT_MIN(s.rank, 3); i++)
        dims[i] = s.d[i];
    return s.rank;
}

/* ---- what can be asked for ---- */

static rt_status refuse(const char *field, const char *why) {
    RT_FAIL(RT_E_USAGE, "prediction: the model has no %s: %s", field, why);
}

/* Refuses what the model cannot say. */
static rt_status check_wishes(const rt_model *m, const rt_prediction *o) {
    const rt_reading how = rt_model_reading(m);
    const rt_decision *d = rt_model_decision(m);
    const bool numbers = how.kind == RT_OUTPUT_GAUSSIAN;
    const char *no_knowledge = rt_needs_why_not(RT_NEEDS_KNOWLEDGE, &how);
    const char *no_alpha = how.kind == RT_OUTPUT_DIRICHLET ? NULL : "its outputs are no Dirichlets";
    const char *no_rule = d->measure < 0 ? "it has no reject rule; 'retort calibrate' makes one" : NULL;
    const char *no_sets =
        d->conformal == RT_CONFORMAL_NONE ? "it has no conformal rule; 'retort calibrate' makes one" : NULL;
    const char *classes = numbers ? "it is a regression" : NULL,
               *values = numbers ? NULL : "it is a classifier";
    const struct {
        const void *wanted;
        const char *name, *why, *or_why;
    } all[] = {{o->probs, "probs", classes, NULL},
               {o->member_probs, "member_probs", classes, NULL},
               {o->label, "label", classes, NULL},
               {o->confidence, "confidence", classes, NULL},
               {o->entropy, "entropy", classes, NULL},
               {o->expected_entropy, "expected_entropy", classes, NULL},
               {o->mutual_information, "mutual_information", classes, no_knowledge},
               {o->epkl, "epkl", classes, no_knowledge},
               {o->alpha, "alpha", classes, no_alpha},
               {o->set, "set", classes, no_sets},
               {o->reject, "reject", NULL, no_rule},
               {o->mean, "mean", values, NULL},
               {o->variance, "variance", values, NULL},
               {o->data_variance, "data_variance", values, NULL},
               {o->knowledge_variance, "knowledge_variance", values, NULL},
               {o->lower, "lower", values, no_sets},
               {o->upper, "upper", values, no_sets}};
    for (int i = 0; i < RT_COUNT(all); i++) {
        if (all[i].wanted != NULL && all[i].why != NULL)
            return refuse(all[i].name, all[i].why);
        if (all[i].wanted != NULL && all[i].or_why != NULL)
            return refuse(all[i].name, all[i].or_why);
    }
    return RT_OK;
}

/* ---- answers ---- */

static void put(float *dst, int64_t i, double v) {
    if (dst != NULL)
        dst[i] = (float)v;
}

static void put_all(float *dst, int64_t row, const double *v, int64_t n) {
    for (int64_t i = 0; dst != NULL && i < n; i++)
        dst[row * n + i] = (float)v[i];
}

static void give_numbers(const rt_row *row, const rt_decision *d, int64_t r, const rt_prediction *out) {
    double lower = NAN, upper = NAN;
    if (d->conformal == RT_CONFORMAL_INTERVAL)
        rt_decision_interval(d, row, &lower, &upper);
    put(out->mean, r, row->mean);
    put(out->variance, r, row->total);
    put(out->data_variance, r, row->data);
    put(out->knowledge_variance, r, row->knowledge);
    put(out->lower, r, lower);
    put(out->upper, r, upper);
}

static void give_classes(const rt_row *row, const rt_decision *d, int64_t r, const rt_prediction *out) {
    const int64_t m = row->how.m, k = row->how.k;
    put_all(out->probs, r, row->p, k);
    put_all(out->member_probs, r, row->member_p, m * k);
    put_all(out->alpha, r, row->alpha, m * k);
    put(out->confidence, r, row->p[row->top]);
    put(out->entropy, r, row->total);
    put(out->expected_entropy, r, row->data);
    put(out->mutual_information, r, row->knowledge);
    put(out->epkl, r, row->epkl);
    if (out->label != NULL)
        out->label[r] = row->top;
    for (int64_t c = 0; out->set != NULL && c < k; c++)
        out->set[r * k + c] = rt_decision_contains(d, row, c);
}

/* Can it be read? Cheaper than reading it. */
static bool is_readable(rt_row *row, const float *y, int64_t n) {
    if (row->how.kind == RT_OUTPUT_GAUSSIAN)
        return rt_row_read(row, y);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(y[i]))
            return false;
    return true;
}

/* Answers to `rows` rows from row `first` on, whose raw outputs are y: to all of them or none. */
static rt_status give(const rt_model *m, rt_row *row, const float *y, int64_t first, int64_t rows,
                      const rt_prediction *out) {
    const rt_decision *d = rt_model_decision(m);
    const int64_t each = row->how.m * row->how.k;
    for (int64_t i = 0; i < rows; i++)
        RT_FAIL_IF(!is_readable(row, y + i * each, each), RT_E_NUMERIC,
                   "the prediction of row %lld is not finite", (long long)(first + i));
    if (out->logits != NULL)
        memcpy(out->logits + first * each, y, (size_t)(rows * each) * sizeof *y);
    for (int64_t i = 0; i < rows; i++) {
        (void)rt_row_read(row, y + i * each);
        if (row->how.kind == RT_OUTPUT_GAUSSIAN)
            give_numbers(row, d, first + i, out);
        else
            give_classes(row, d, first + i, out);
        if (out->reject != NULL)
            out->reject[first + i] = rt_decision_rejects(d, row);
    }
    return RT_OK;
}

/* A prediction of an older header, which ends earlier: what it does not know is not wanted. */
static rt_status widen(rt_prediction *to, const rt_prediction *from) {
    RT_FAIL_IF(from->size < offsetof(rt_prediction, member_probs) || from->size > 4096, RT_E_USAGE,
               "prediction: size %zu; initialise it with RT_PREDICTION_INIT", from->size);
    memset(to, 0, sizeof *to);
    memcpy(to, from, RT_MIN(from->size, sizeof *to));
    return RT_OK;
}

static rt_status check_numbers(const float *x, int64_t rows, int64_t row) {
    for (int64_t i = 0; i < rows * row; i++)
        RT_FAIL_IF(!isfinite(x[i]), RT_E_INPUT, "row %lld, value %lld is not finite", (long long)(i / row),
                   (long long)(i % row));
    return RT_OK;
}

/* ---- sessions ---- */

static rt_status session_init(rt_session *s) {
    size_t floats;
    RT_FAIL_IF(
        !rt_size_mul((size_t)s->rows, (size_t)(rt_model_members(s->m) * rt_model_outputs(s->m)), &floats),
        RT_E_MEMORY, "session: %lld rows are too many", (long long)s->rows);
    RT_TRY(rt_pool_create(&s->pool, 1));
    RT_TRY(rt_model_predictor(s->m, &s->predictor, s->rows, s->pool));
    rt_predictor_keep_blocks(s->predictor);
    RT_TRY(rt_calloc(&s->y, floats, sizeof *s->y));
    return rt_row_init(&s->read, rt_model_answering(s->m));
}

rt_status rt_session_create(rt_session **out, const rt_model *m, int64_t rows) {
    rt_session *s = NULL;
    RT_FAIL_IF(out == NULL, RT_E_USAGE, "session: nowhere to put it");
    *out = NULL;
    RT_FAIL_IF(m == NULL || rows < 1 || rows > SESSION_ROWS_MAX, RT_E_USAGE,
               "session: %lld rows, wanted a model and 1 to %d", (long long)rows, SESSION_ROWS_MAX);
    RT_TRY(rt_calloc(&s, 1, sizeof *s));
    s->m = m;
    s->rows = rows;
    const rt_status st = session_init(s);
    if (st != RT_OK)
        rt_session_destroy(&s);
    *out = s;
    return st;
}

void rt_session_destroy(rt_session **sp) {
    rt_session *s = sp != NULL ? *sp : NULL;
    if (s == NULL)
        return;
    rt_predictor_destroy(&s->predictor);
    rt_pool_destroy(&s->pool);
    rt_free(s->y);
    rt_row_deinit(&s->read);
    rt_free(s);
    *sp = NULL;
}

rt_status rt_session_run(rt_session *s, const float *x, int64_t rows, const rt_prediction *out) {
    rt_prediction o;
    RT_FAIL_IF(s == NULL || x == NULL || out == NULL, RT_E_USAGE,
               "session: no session, inputs or place for results");
    RT_FAIL_IF(rows < 1 || rows > s->rows, RT_E_USAGE, "session: %lld rows, it was made for 1 to %lld",
               (long long)rows, (long long)s->rows);
    RT_TRY(widen(&o, out));
    RT_TRY(check_wishes(s->m, &o));
    RT_TRY(check_numbers(x, rows, rt_model_row(s->m)));
    RT_TRY(rt_model_predict_by(s->m, s->predictor, &(rt_part){.n = rows, .f32 = x}, s->y, NULL));
    return give(s->m, &s->read, s->y, 0, rows, &o);
}

/* ---- many rows ---- */

rt_status rt_model_run(const rt_model *m, const float *x, int64_t rows, const rt_prediction *out,
                       int threads) {
    enum { PIECE = 8192 };
    rt_prediction o;
    rt_pool *pool = NULL;
    rt_predictor *by = NULL;
    rt_row read = {0};
    float *y = NULL;
    rt_status st;
    RT_FAIL_IF(m == NULL || x == NULL || out == NULL || rows < 1 || threads < 0 || threads > 256, RT_E_USAGE,
               "predict: wanted a model, inputs, a place for results, at least one row and 0 to 256 threads");
    RT_TRY(widen(&o, out));
    RT_TRY(check_wishes(m, &o));
    const int64_t row = rt_model_row(m), piece = RT_MIN(rows, (int64_t)PIECE);
    const int64_t widest = RT_MAX(row, rt_model_members(m) * rt_model_outputs(m));
    RT_FAIL_IF(rows > PTRDIFF_MAX / (int64_t)sizeof(float) / widest, RT_E_USAGE,
               "predict: %lld rows are more than memory can hold", (long long)rows);
    RT_TRY(check_numbers(x, rows, row));
    RT_TRY_GOTO(rt_pool_create(&pool, threads > 0 ? threads : rt_cpu_count()));
    RT_TRY_GOTO(rt_model_predictor(m, &by, RT_MIN(rows, (int64_t)128), pool));
    rt_predictor_keep_blocks(by);
    RT_TRY_GOTO(rt_calloc(&y, (size_t)(piece * rt_model_members(m) * rt_model_outputs(m)), sizeof *y));
    RT_TRY_GOTO(rt_row_init(&read, rt_model_answering(m)));
    for (int64_t at = 0; at < rows; at += piece) {
        const int64_t n = RT_MIN(piece, rows - at);
        RT_TRY_GOTO(rt_model_predict_by(m, by, &(rt_part){.n = n, .f32 = x + at * row}, y, NULL));
        RT_TRY_GOTO(give(m, &read, y, at, n, &o));
    }
done:
    rt_free(y);
    rt_row_deinit(&read);
    rt_predictor_destroy(&by);
    rt_pool_destroy(&pool);
    return st;
}
