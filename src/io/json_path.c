/*
 * json_path.c - places in a document, named by paths: how metrics.json is looked into (--require, --metrics, recipes,
 * the report).
 *
 *     sets.test.nll     sets/test/nll     shift:rotate.accuracy.0     sets/ood:a.csv/auroc/entropy     sets/ood:X/rows
 *
 * Keys of objects and numbers of elements, with '.' or '/' between them. Keys may hold both (names of data sets are
 * paths at times), so it is the key that is looked for in the path, not a segment of the path among the keys. A segment
 * that ends in '*' (for X above) stands for every key with that beginning, but for reasons of nulls, and for every
 * element of an array.
 */
#include "base/str.h"
#include "io/io.h"
#include <stdio.h>
#include <string.h>

static const char BETWEEN[] = "./";

/* Behind the first n bytes of a path and what stands between them and the rest. */
static const char *skip(const char *path, size_t n) {
    return path + n + (path[n] != 0);
}

/* The rest of the path behind `key`, or NULL. */
static const char *behind(const char *path, const char *key) {
    const size_t n = strlen(key);
    return strncmp(path, key, n) == 0 && (path[n] == 0 || strchr(BETWEEN, path[n])) ? skip(path, n) : NULL;
}

typedef struct walk {
    rt_jval_visit visit;
    void *user;
} walk;

static bool go(const walk *w, rt_jval v, const char *path, const char *star) {
    const size_t n = strcspn(path, BETWEEN);
    const bool wild = n > 0 && path[n - 1] == '*', array = rt_jval_is_array(v);
    int64_t only = -1;
    if (*path == 0)
        return v && w->visit(w->user, v, star);
    if (array && !wild && !rt_parse_i64(path, n, &only))
        return false;
    for (int64_t i = 0; i < rt_jval_len(v); i++) {
        const char *key = rt_jval_key(v, i), *rest = key ? behind(path, key) : NULL;
        const bool any = wild && key && strncmp(key, path, n - 1) == 0 && !rt_str_ends(key, "_reason");
        if (!rest && (any || (array && (wild || i == only))))
            rest = skip(path, n);
        if (rest && go(w, rt_jval_at(v, i), rest, any ? key : star))
            return true;
    }
    return false;
}

bool rt_jval_walk(rt_jval v, const char *path, rt_jval_visit visit, void *user) {
    return go(&(walk){visit, user}, v, path, NULL);
}

bool rt_jval_is_null(rt_jval v) {
    const char *s;
    double f;
    bool b;
    return !(rt_jval_len(v) >= 0 || rt_jval_str(v, &s) || rt_jval_f64(v, &f) || rt_jval_bool(v, &b));
}

/* Anything is better than a null. */
static bool take(void *user, rt_jval v, const char *star) {
    (void)star;
    rt_jval *found = user;
    if (!*found || !rt_jval_is_null(v))
        *found = v;
    return !rt_jval_is_null(v);
}

rt_jval rt_jval_find(rt_jval v, const char *path) {
    rt_jval found = NULL;
    (void)rt_jval_walk(v, path, take, &found);
    return found;
}

/* ---- metrics.json ---- */

rt_jval rt_metrics_find(rt_jval top, rt_jval evaluation, const char *path) {
    const rt_jval sets = rt_jval_get(evaluation, "sets"),
                  from[] = {sets, rt_jval_get(sets, "test"), evaluation};
    rt_jval v = NULL;
    if (*path == '/') {
        const char *rest = behind(path + 1, "evaluation");
        return rest && evaluation ? rt_jval_find(evaluation, rest) : rt_jval_find(top, path + 1);
    }
    for (int i = 0; i < RT_COUNT(from) && !v; i++)
        v = rt_jval_find(from[i], path);
    return v;
}

/* Begin of the last segment before `end`. */
static size_t last_segment(const char *path, size_t end) {
    while (end > 0 && !strchr(BETWEEN, path[end - 1]))
        end--;
    return end;
}

bool rt_metrics_interval(rt_jval top, rt_jval evaluation, const char *path, double *lo, double *hi) {
    char place[512];
    const size_t name = last_segment(path, strlen(path)), group = name > 0 ? last_segment(path, name - 1) : 0;
    for (int two = 0; two < 1 + (name > 0) && strlen(path) + 16 < sizeof place; two++) {
        if (two)
            snprintf(place, sizeof place, "%.*sinterval/%.*s_%s", (int)group, path, (int)(name - 1 - group),
                     path + group, path + name);
        else
            snprintf(place, sizeof place, "%.*sinterval/%s", (int)name, path, path + name);
        const rt_jval pair = rt_metrics_find(top, evaluation, place);
        if (rt_jval_f64(rt_jval_at(pair, 0), lo) && rt_jval_f64(rt_jval_at(pair, 1), hi))
            return true;
    }
    return false;
}
