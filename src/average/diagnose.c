/*
 * diagnose.c - what an alignment did, as the "average" object of metrics.json (docs/formats) and pictures.
 *
 * For each bundle of units, over the rows w_i of the first weight that writes them, of model m against the
 * first model, before and after the alignment:
 *
 *     distance       mean_i |w_i - w'_i|
 *     correlation    mean_i of Pearson's, over the row
 *     std            over all models: deviation of an element between models, mean over elements
 *     row_entropy    of the matrix: mean_i H(P_i.) / ln n; a permutation has 0, the flat matrix 1
 *
 * And accuracy and loss on the segment between the first two models, as given and aligned.
 */
#include "average/average_int.h"
#include "base/alloc.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { POINTS = 11, LINE_ROWS = 5000, LINE_STAT_ROWS = 1024, PICTURE_SIDE = 512, PICTURES_MAX = 64 };

/* ---- numbers of one bundle ---- */

/* The weight whose rows are the bundle's units; -1 if there is none. */
static int writer_of(const rt_average *a, int bundle) {
    for (int slot = 0; slot < a->sym.slots; slot++)
        if (rt_params_get(a->params, slot)->role == RT_ROLE_WEIGHT &&
            rt_symmetry_axis(&a->sym, slot, 0).bundle == bundle)
            return slot;
    return -1;
}

static const float *weights(const rt_average *a, int model, int slot, bool after) {
    return (after ? rt_average_block(a, model) : a->blocks[model]) + rt_params_get(a->params, slot)->offset;
}

static double distance(const float *x, const float *y, int64_t rows, int64_t row) {
    double mean = 0;
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t k = i * row; k < (i + 1) * row; k++)
            sum += ((double)x[k] - (double)y[k]) * ((double)x[k] - (double)y[k]);
        mean += sqrt(sum) / (double)rows;
    }
    return mean;
}

static double correlation(const float *x, const float *y, int64_t rows, int64_t row) {
    double mean = 0;
    for (int64_t i = 0; i < rows; i++) {
        double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
        for (int64_t k = i * row; k < (i + 1) * row; k++) {
            mx += (double)x[k] / (double)row;
            my += (double)y[k] / (double)row;
        }
        for (int64_t k = i * row; k < (i + 1) * row; k++) {
            const double dx = (double)x[k] - mx, dy = (double)y[k] - my;
            xx += dx * dx;
            yy += dy * dy;
            xy += dx * dy;
        }
        mean += xx > 0 && yy > 0 ? xy / sqrt(xx * yy) / (double)rows : 0;
    }
    return mean;
}

static double deviation(const rt_average *a, int slot, bool after) {
    const int64_t n = rt_params_get(a->params, slot)->count;
    double total = 0;
    for (int64_t k = 0; k < n; k++) {
        double sum = 0, square = 0;
        for (int m = 0; m < a->models; m++) {
            const double w = (double)weights(a, m, slot, after)[k];
            sum += w / a->models;
            square += w * w / a->models;
        }
        total += sqrt(RT_MAX(square - sum * sum, 0.0)) / (double)n;
    }
    return total;
}

static double row_entropy(const rt_average *a, int model, int bundle) {
    const float *p = *rt_average_matrix(a, model, bundle);
    const int64_t n = a->sym.bundle[bundle].n;
    double sum = 0;
    for (int64_t k = 0; p && k < n * n; k++)
        sum -= p[k] > 0 ? (double)p[k] * log((double)p[k]) : 0;
    return sum / (double)n / log((double)n);
}

/* ---- pictures ---- */

static bool is_moved(const rt_average *a, int model, int bundle) {
    const int64_t *p = rt_average_perms(a, model) + a->sym.bundle[bundle].offset;
    if (*rt_average_matrix(a, model, bundle))
        return true;
    for (int64_t i = 0; i < a->sym.bundle[bundle].n; i++)
        if (p[i] != i)
            return true;
    return false;
}

/* Large entries are dark. A matrix larger than the picture shows the largest entry of each cell. */
static void draw(const rt_average *a, int model, int bundle, uint8_t *pixel, int64_t cell, int64_t side) {
    const float *soft = *rt_average_matrix(a, model, bundle);
    const int64_t n = a->sym.bundle[bundle].n, *p = rt_average_perms(a, model) + a->sym.bundle[bundle].offset;
    memset(pixel, 255, (size_t)(side * side));
    if (!soft) {
        for (int64_t i = 0; i < n; i++)
            pixel[i / cell * side + p[i] / cell] = 0;
        return;
    }
    float most = 1e-30f;
    for (int64_t k = 0; k < n * n; k++)
        most = soft[k] > most ? soft[k] : most;
    for (int64_t k = 0; k < n * n; k++) {
        uint8_t *at = &pixel[k / n / cell * side + k % n / cell];
        const float v = soft[k] > 0 ? soft[k] / most : 0;
        const uint8_t grey = (uint8_t)(255.0f - 255.0f * v);
        *at = grey < *at ? grey : *at;
    }
}

static rt_status write_picture(const rt_average *a, int model, int bundle, const char *dir,
                               const char *name) {
    const int64_t n = a->sym.bundle[bundle].n, cell = (n + PICTURE_SIDE - 1) / PICTURE_SIDE;
    const int64_t side = (n + cell - 1) / cell;
    uint8_t *pixel = NULL;
    char *path = NULL;
    rt_status st;
    RT_TRY_GOTO(rt_alloc(&pixel, (size_t)(side * side)));
    draw(a, model, bundle, pixel, cell, side);
    RT_TRY_GOTO(rt_path_join(&path, dir, name));
    st = rt_image_write_png(path, pixel, side, side, 1);
done:
    rt_free(pixel);
    rt_free(path);
    return st;
}

static rt_status write_pictures(const rt_average *a, rt_json *j, int bundle, const char *dir, int *left) {
    rt_status st = RT_OK;
    rt_json_array_begin(j, "pictures");
    for (int m = 1; m < a->models && st == RT_OK; m++) {
        char name[128];
        if (*left == 0 || !is_moved(a, m, bundle))
            continue;
        --*left;
        snprintf(name, sizeof name, "pictures/P-%s-%d.png", a->sym.bundle[bundle].name, m);
        st = write_picture(a, m, bundle, dir, name);
        rt_json_str(j, NULL, name);
    }
    rt_json_array_end(j);
    return st;
}

static rt_status write_bundle(const rt_average *a, rt_json *j, int bundle, const char *dir, int *left) {
    const rt_sym_bundle *g = &a->sym.bundle[bundle];
    const int slot = writer_of(a, bundle);
    rt_json_object_begin(j, NULL);
    rt_json_str(j, "name", g->name);
    rt_json_i64(j, "n", g->n);
    rt_json_array_begin(j, "row_entropy");
    for (int m = 0; m < a->models; m++)
        rt_json_f64(j, NULL, row_entropy(a, m, bundle));
    rt_json_array_end(j);
    for (int kind = 0; kind < 4 && slot >= 0; kind++) {
        static const char *const key[] = {"distance_before", "distance_after", "correlation_before",
                                          "correlation_after"};
        const int64_t row = rt_params_get(a->params, slot)->count / g->n;
        rt_json_array_begin(j, key[kind]);
        for (int m = 1; m < a->models; m++) {
            const float *x = weights(a, 0, slot, kind & 1), *y = weights(a, m, slot, kind & 1);
            rt_json_f64(j, NULL, kind < 2 ? distance(x, y, g->n, row) : correlation(x, y, g->n, row));
        }
        rt_json_array_end(j);
    }
    if (slot >= 0) {
        rt_json_f64(j, "std_before", deviation(a, slot, false));
        rt_json_f64(j, "std_after", deviation(a, slot, true));
    }
    rt_status st = write_pictures(a, j, bundle, dir, left);
    rt_json_object_end(j);
    return st;
}

/* ---- the segment between two models ---- */

static rt_status walk_line(const rt_average *a, const rt_subset *rows, bool after,
                           rt_average_score score[POINTS]) {
    float *block = NULL;
    const float *x = after ? rt_average_block(a, 0) : a->blocks[0];
    const float *y = after ? rt_average_block(a, 1) : a->blocks[1];
    rt_status st;
    RT_TRY(rt_calloc(&block, (size_t)a->floats, sizeof *block));
    for (int i = 0; i < POINTS; i++) {
        const float t = (float)i / (POINTS - 1);
        RT_TRY_GOTO(rt_average_progress(a, "interpolating", ((after ? POINTS : 0) + i) / (2.0 * POINTS)));
        for (int64_t k = 0; k < a->floats; k++)
            block[k] = (1 - t) * x[k] + t * y[k];
        RT_TRY_GOTO(rt_average_refresh_bn(a, block, LINE_STAT_ROWS));
        RT_TRY_GOTO(rt_average_measure(a, rows, (const float *const *)&block, 1, &score[i], NULL));
    }
done:
    rt_free(block);
    return st;
}

static void write_line(const rt_average *a, rt_json *j, const char *key,
                       const rt_average_score score[POINTS]) {
    rt_json_object_begin(j, key);
    for (int kind = a->regression ? 1 : 0; kind < 2; kind++) {
        rt_json_array_begin(j, kind ? "loss" : "accuracy");
        for (int i = 0; i < POINTS; i++)
            rt_json_f64(j, NULL, kind ? score[i].loss : score[i].accuracy);
        rt_json_array_end(j);
    }
    rt_json_object_end(j);
}

static rt_status write_interpolation(const rt_average *a, rt_json *j) {
    rt_subset rows = {0};
    rt_average_score naive[POINTS], permuted[POINTS];
    rt_status st;
    RT_TRY_GOTO(rt_average_rows(a, LINE_ROWS, &rows));
    RT_TRY_GOTO(walk_line(a, &rows, false, naive));
    RT_TRY_GOTO(walk_line(a, &rows, true, permuted));
    rt_json_object_begin(j, "interpolation");
    rt_json_str(j, "rows", a->valid.n > 0 ? "validation" : "training");
    rt_json_array_begin(j, "alpha");
    for (int i = 0; i < POINTS; i++)
        rt_json_f64(j, NULL, (double)i / (POINTS - 1));
    rt_json_array_end(j);
    write_line(a, j, "naive", naive);
    write_line(a, j, "permuted", permuted);
    rt_json_object_end(j);
done:
    rt_subset_deinit(&rows);
    return st;
}

/* Over layers and all models but the first, which keeps its numbers. */
static double mean_entropy(const rt_average *a) {
    double sum = 0;
    for (int m = 1; m < a->models; m++)
        for (int g = 0; g < a->sym.bundles; g++)
            sum += row_entropy(a, m, g);
    return sum / ((a->models - 1) * (double)a->sym.bundles);
}

rt_status rt_average_diagnose(rt_average *a, rt_json *j, const char *dir) {
    int left = PICTURES_MAX;
    rt_json_str(j, "method", a->c->method);
    rt_json_strs(j, "models", (const char *const *)a->names, a->models);
    rt_json_array_begin(j, "used");
    for (int m = 0; m < a->models; m++)
        rt_json_bool(j, NULL, a->used[m]);
    rt_json_array_end(j);
    rt_json_array_begin(j, "fixed");
    for (int i = 0; i < a->sym.nfixed; i++) {
        rt_json_object_begin(j, NULL);
        rt_json_str(j, "name", a->sym.fixed[i].name);
        rt_json_i64(j, "n", a->sym.fixed[i].n);
        rt_json_str(j, "reason", a->sym.fixed[i].reason);
        rt_json_object_end(j);
    }
    rt_json_array_end(j);
    rt_json_f64_or(j, "row_entropy", mean_entropy(a), "nothing can be renumbered");
    rt_json_array_begin(j, "layers");
    for (int g = 0; g < a->sym.bundles; g++) {
        RT_TRY(rt_average_progress(a, "comparing layers", (double)g / a->sym.bundles));
        RT_TRY(write_bundle(a, j, g, dir, &left));
    }
    rt_json_array_end(j);
    return write_interpolation(a, j);
}
