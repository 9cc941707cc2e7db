/*
 * checkpoint.c - the state of a run between two steps, as one safetensors file.
 *
 * Batches, augmentation, dropout and learning rates are functions of counters, so the state is short: weights
 * (BN statistics among them), optimiser state, the best weights so far, a few numbers per member, and where
 * the next step is.
 *
 *     member-000.values  F32 (floats)        weights
 *     member-000.state   F32 (state floats)  of the optimiser
 *     member-000.best    F32 (floats)        absent before the first validation, or when the last are kept
 *     numbers            F64 (members, 6)    loss sum and rows right in this epoch; loss, accuracy and epoch
 *                                            of the weights to keep; lowest training loss of an epoch (absent in
 *                                            form 1, of version 0.1)
 *
 * The metadata has the counters, the hashes of configuration and data, and a SHA-256 of everything: a
 * checkpoint with one wrong bit is refused. It says nothing of ranks: rank 0 gathers and writes it, all read it, and
 * each takes what it needs. It is read as untrusted input: every name, type, shape and
 * counter is checked before anything is taken over.
 */
#include "base/alloc.h"
#include "train/train_int.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NUMBERS = 6, NAME_MAX_LEN = 32 };
static const char FORMAT[] = "retort checkpoint 2", FORMAT_1[] = "retort checkpoint 1";
static const char *const parts[] = {"values", "state", "best"};

static void tensor_name(char out[NAME_MAX_LEN], int member, int part) {
    snprintf(out, NAME_MAX_LEN, "member-%03d.%s", member, parts[part]);
}

static double *number_at(const rt_progress_state *at, int member, int i) {
    double *const rows[NUMBERS] = {at->loss_sum,      at->correct,    at->kept_loss,
                                   at->kept_accuracy, at->kept_epoch, at->lowest};
    return &rows[i][member];
}

/* NULL: another rank has it. */
static float *part_data(const rt_checkpoint *c, int member, int part, int64_t *floats) {
    float *state = rt_step_state(c->step, 0, floats);
    const int m = member - c->first;
    if (part != 1)
        *floats = c->floats;
    if (m < 0 || m >= c->members)
        return NULL;
    if (part == 0)
        return rt_step_values(c->step, m);
    return part == 1 ? state + m * *floats : rt_model_weights(c->best, m);
}

static bool has_best(const rt_checkpoint *c, double kept_epoch) {
    return c->best && kept_epoch > 0;
}

typedef struct counters {
    char text[5][40];
    rt_st_meta meta[9];
} counters;
static const char *const counter_keys[] = {"epoch", "index", "step", "log_position", "seconds"};

static void fill_meta(counters *m, const rt_checkpoint *c, const char *sha) {
    const int64_t values[] = {c->at->epoch, c->at->index, c->at->step, c->at->log_position};
    int n = 0;
    m->meta[n++] = (rt_st_meta){"format", FORMAT};
    m->meta[n++] = (rt_st_meta){"config_sha256", c->config_hash};
    m->meta[n++] = (rt_st_meta){"data_sha256", c->data_hash};
    for (int i = 0; i < 5; i++) {
        if (i < 4)
            snprintf(m->text[i], sizeof m->text[i], "%lld", (long long)values[i]);
        else
            rt_format_f64(m->text[i], c->at->seconds);
        m->meta[n++] = (rt_st_meta){counter_keys[i], m->text[i]};
    }
    m->meta[n++] = (rt_st_meta){"sha256", sha};
}

/* A part of a member as a tensor; on rank 0 those of other ranks, too, in memory that *room gets. */
static rt_status take_part(const rt_checkpoint *c, int member, int part, const char *name, rt_st_tensor *out,
                           float **room) {
    int64_t floats;
    float *data = part_data(c, member, part, &floats);
    if (data == NULL && rt_dist_rank() == 0) {
        RT_TRY(rt_alloc(room, (size_t)floats * sizeof(float)));
        data = *room;
    }
    RT_TRY(rt_member_to_first(data, data, floats, c->all, member));
    *out = (rt_st_tensor){name, "F32", rt_shape1(floats), data, (size_t)floats * sizeof(float)};
    return RT_OK;
}

rt_status rt_checkpoint_write(const rt_checkpoint *c, const char *path) {
    rt_st_tensor *t = NULL;
    char(*names)[NAME_MAX_LEN] = NULL;
    double *numbers = NULL;
    float **rooms = NULL;
    char sha[65];
    counters m;
    int64_t n = 0;
    const size_t parts_of_all = (size_t)c->all * 3;
    rt_status st;
    RT_TRY_GOTO(rt_calloc(&t, parts_of_all + 1, sizeof *t));
    RT_TRY_GOTO(rt_calloc(&names, parts_of_all, sizeof *names));
    RT_TRY_GOTO(rt_calloc(&rooms, parts_of_all, sizeof *rooms));
    RT_TRY_GOTO(rt_calloc(&numbers, (size_t)c->all * NUMBERS, sizeof *numbers));
    for (int i = 0; i < c->all; i++) {
        for (int k = 0; k < NUMBERS; k++)
            numbers[i * NUMBERS + k] = *number_at(c->at, i - c->first, k);
        for (int part = 0; part < 3; part++) {
            if (part == 2 && !has_best(c, c->at->kept_epoch[i - c->first]))
                continue;
            tensor_name(names[n], i, part);
            RT_TRY_GOTO(take_part(c, i, part, names[n], &t[n], &rooms[n]));
            n++;
        }
    }
    if (rt_dist_rank() > 0)
        goto done;
    t[n++] = (rt_st_tensor){"numbers", "F64", rt_shape2(c->all, NUMBERS), numbers,
                            (size_t)c->all * NUMBERS * sizeof(double)};
    fill_meta(&m, c, sha);
    rt_tensors_digest(t, n, m.meta, RT_COUNT(m.meta), sha);
    RT_TRY_GOTO(rt_safetensors_write(path, t, n, m.meta, RT_COUNT(m.meta)));
done:
    for (size_t i = 0; rooms && i < parts_of_all; i++)
        rt_free(rooms[i]);
    rt_free(rooms);
    rt_free(t);
    rt_free(names);
    rt_free(numbers);
    return st;
}

/* ---- reading ---- */

static rt_status find_tensor(const rt_st_tensor **out, const rt_safetensors *s, const char *path,
                             const char *name, const char *dtype, rt_shape shape) {
    const rt_st_tensor *t = rt_safetensors_find(s, name);
    RT_FAIL_IF(!t, RT_E_INPUT, "%s: '%s' is missing", path, name);
    RT_FAIL_IF(strcmp(t->dtype, dtype) != 0 || !rt_shape_equal(&t->shape, &shape), RT_E_INPUT,
               "%s: '%s' has another type or shape than this run needs", path, name);
    *out = t;
    return RT_OK;
}

rt_status rt_checkpoint_epoch(const char *path, int64_t *epoch) {
    rt_safetensors *s = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_safetensors_read(&s, path));
    const char *text = rt_safetensors_meta(s, "epoch");
    if (!text || !rt_parse_i64(text, strlen(text), epoch) || *epoch < 0)
        RT_FAIL_GOTO(RT_E_INPUT, "%s: the counter 'epoch' is missing or not a number", path);
done:
    rt_safetensors_destroy(&s);
    return st;
}

static rt_status read_counters(const rt_checkpoint *c, const rt_safetensors *s, const char *path) {
    int64_t *const values[] = {&c->at->epoch, &c->at->index, &c->at->step, &c->at->log_position};
    for (int i = 0; i < 5; i++) {
        const char *text = rt_safetensors_meta(s, counter_keys[i]);
        bool ok = text != NULL;
        if (ok && i < 4)
            ok = rt_parse_i64(text, strlen(text), values[i]) && *values[i] >= 0;
        else if (ok)
            ok = rt_parse_f64(text, strlen(text), false, &c->at->seconds) && c->at->seconds >= 0;
        RT_FAIL_IF(!ok, RT_E_INPUT, "%s: the counter '%s' is missing or not a number", path, counter_keys[i]);
    }
    return RT_OK;
}

/* Those of a file may be fewer: what it does not have is infinite, as a loss that any other is below. */
static rt_status read_numbers(const rt_checkpoint *c, const rt_safetensors *s, const char *path, double *v) {
    const int there = strcmp(rt_safetensors_meta(s, "format"), FORMAT_1) == 0 ? NUMBERS - 1 : NUMBERS;
    const rt_st_tensor *t;
    RT_TRY(find_tensor(&t, s, path, "numbers", "F64", rt_shape2(c->all, there)));
    for (int i = 0; i < c->all; i++, v += NUMBERS) {
        memcpy(v, (const uint8_t *)t->data + (size_t)(i * there) * sizeof *v, (size_t)there * sizeof *v);
        for (int k = there; k < NUMBERS; k++)
            v[k] = INFINITY;
        bool ok = isfinite(v[0]) && v[1] >= 0 && v[4] >= 0 && v[4] <= (double)c->at->epoch + 1 &&
                  v[4] == floor(v[4]);
        RT_FAIL_IF(!ok, RT_E_INPUT, "%s: the numbers of member %d are out of range", path, i);
    }
    return RT_OK;
}

static rt_status read_tensors(const rt_checkpoint *c, const rt_safetensors *s, const char *path,
                              double *numbers) {
    const rt_st_tensor *t;
    RT_TRY(read_numbers(c, s, path, numbers));
    for (int pass = 0; pass < 2; pass++) { /* look at everything, then take it */
        for (int i = 0; i < c->all; i++) {
            for (int part = 0; part < 3; part++) {
                if (part == 2 && !has_best(c, numbers[i * NUMBERS + 4]))
                    continue;
                char name[NAME_MAX_LEN];
                int64_t floats;
                float *data = part_data(c, i, part, &floats);
                tensor_name(name, i, part);
                RT_TRY(find_tensor(&t, s, path, name, "F32", rt_shape1(floats)));
                if (pass == 1 && data != NULL)
                    RT_TRY(rt_safetensors_to_f32(s, t, data, floats));
            }
        }
    }
    for (int i = 0; i < c->all; i++)
        for (int k = 0; k < NUMBERS; k++)
            *number_at(c->at, i - c->first, k) = numbers[i * NUMBERS + k];
    return RT_OK;
}

rt_status rt_checkpoint_read(const rt_checkpoint *c, const char *path) {
    rt_safetensors *s = NULL;
    double *numbers = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_safetensors_read(&s, path));
    const char *format = rt_safetensors_meta(s, "format"), *config = rt_safetensors_meta(s, "config_sha256"),
               *data = rt_safetensors_meta(s, "data_sha256");
    const bool known = format && (strcmp(format, FORMAT) == 0 || strcmp(format, FORMAT_1) == 0);
    if (!known || !config || !data || !rt_safetensors_meta(s, "sha256"))
        RT_FAIL_GOTO(RT_E_INPUT, "%s: not a checkpoint of this version of retort", path);
    RT_TRY_GOTO(rt_tensors_verify(s, path));
    if (strcmp(config, c->config_hash) != 0)
        RT_FAIL_GOTO(RT_E_USAGE, "%s: was made with another configuration than the config.yaml beside it",
                     path);
    if (strcmp(data, c->data_hash) != 0)
        RT_FAIL_GOTO(RT_E_INPUT,
                     "%s: was made with other data or another teacher: SHA-256 %.12s..., now %.12s...", path,
                     data, c->data_hash);
    RT_TRY_GOTO(read_counters(c, s, path));
    RT_TRY_GOTO(rt_calloc(&numbers, (size_t)c->all * NUMBERS, sizeof *numbers));
    RT_TRY_GOTO(read_tensors(c, s, path, numbers));
done:
    rt_free(numbers);
    rt_safetensors_destroy(&s);
    return st;
}
