/*
 * report_pictures.c - pictures of runs, embedded as data: URLs.
 *
 * metrics.json names them; a name must lie in the run's own pictures/ and the file must begin as a PNG does. A montage
 * (the least certain inputs) is embedded once and shown as tiles by moving the background, so that every tile has its
 * own caption. Pictures beyond PICTURES_BYTES are left out, in words.
 */
#include "base/alloc.h"
#include "base/file.h"
#include "report/report_int.h"
#include <math.h>
#include <string.h>

enum { PICTURE_MAX = 8 << 20, PICTURES_BYTES = 3 << 20, TILES_MAX = 64 };

typedef struct picture {
    rt_str url; /* data:image/png;base64,... ; empty if left out */
    uint32_t width, height;
} picture;

static uint32_t big_endian(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static rt_status check_name(const rt_report_run *r, const char *file) {
    const char *name = file + strlen("pictures/");
    RT_FAIL_IF(!rt_str_starts(file, "pictures/") || !rt_str_ends(file, ".png") || strchr(name, '/'),
               RT_E_INPUT, "%s: picture \"%.200s\" is not of the form pictures/NAME.png", r->metrics_path,
               file);
    return RT_OK;
}

/* *there is false if the file is gone: pictures may be thrown away. */
static rt_status picture_read(rt_report *p, const rt_report_run *r, const char *file, picture *out,
                              bool *there) {
    static const uint8_t magic[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    char *path = NULL;
    uint8_t *data = NULL;
    size_t n = 0;
    bool found;
    rt_status st;
    rt_str_init(&out->url);
    *there = false;
    RT_TRY_GOTO(check_name(r, file));
    RT_TRY_GOTO(rt_path_join(&path, r->path, file));
    RT_TRY_GOTO(rt_file_find(path, &found));
    if (!found)
        goto done;
    RT_TRY_GOTO(rt_file_read(path, PICTURE_MAX, &data, &n));
    if (n < 33 || memcmp(data, magic, sizeof magic) != 0)
        RT_FAIL_GOTO(RT_E_INPUT, "%s: not a PNG file", path);
    *there = true;
    out->width = RT_MAX(big_endian(data + 16), 1);
    out->height = RT_MAX(big_endian(data + 20), 1);
    size_t bytes = (n + 2) / 3 * 4;
    if (p->picture_bytes + bytes > PICTURES_BYTES) {
        p->pictures_left_out++;
        goto done;
    }
    p->picture_bytes += bytes;
    rt_str_append(&out->url, "data:image/png;base64,");
    rt_report_base64(&out->url, data, n);
    st = rt_str_status(&out->url);
done:
    rt_free(data);
    rt_free(path);
    return st;
}

static void put_left_out(rt_str *out, const char *file) {
    rt_str_append(out, "<p class=\"note\">");
    rt_report_escape(out, file);
    rt_str_append(out, " is left out: the page would grow too large.</p>");
}

/* A picture with words above and below it. */
static rt_status put_figure(rt_report *p, const rt_report_run *r, const char *file, const char *title,
                            const char *caption, rt_str *out) {
    picture pic;
    bool there;
    rt_status st = picture_read(p, r, file, &pic, &there);
    if (st == RT_OK && there && pic.url.len == 0) {
        put_left_out(out, file);
    } else if (st == RT_OK && there) {
        rt_str_append(out, "<figure class=\"picture\"><figcaption>");
        rt_report_escape(out, title);
        rt_str_appendf(out, "</figcaption><img src=\"%s\" width=\"%u\" height=\"%u\" alt=\"",
                       rt_str_text(&pic.url), pic.width, pic.height);
        rt_report_escape(out, title);
        rt_str_append(out, "\">");
        rt_str_append(out, caption);
        rt_str_append(out, "</figure>");
    }
    rt_str_fail(out, pic.url.st);
    rt_str_deinit(&pic.url);
    return st;
}

static void put_run_heading(const rt_report *p, int run, rt_str *out) {
    rt_str_append(out, "<h3>");
    rt_report_run_tag(p, run, out);
    rt_str_append(out, "</h3>");
}

/* ---- uncertainty over the plane ---- */

rt_status rt_report_body_maps(rt_report *p, rt_str *out) {
    static const char *const kinds[] = {"total", "data", "knowledge"};
    rt_str caption;
    rt_str_init(&caption);
    rt_status st = RT_OK;
    for (int r = 0; r < p->n; r++) {
        rt_jval map = rt_report_find(p->runs[r].root, "evaluation/pictures/map");
        if (!map)
            continue;
        put_run_heading(p, r, out);
        rt_str_append(out, "<div class=\"pictures\">");
        for (int k = 0; k < 3; k++) {
            const char *file = rt_report_text(map, kinds[k]);
            double most, x0, x1, y0, y1;
            if (!file)
                continue;
            rt_str_clear(&caption);
            if (rt_jval_f64(rt_jval_at(rt_jval_get(map, "max"), k), &most))
                rt_str_appendf(&caption, "<p>from 0 (dark) to %.3g (bright)</p>", most);
            if (rt_report_number(map, "extent/0", &x0) && rt_report_number(map, "extent/1", &x1) &&
                rt_report_number(map, "extent/2", &y0) && rt_report_number(map, "extent/3", &y1))
                rt_str_appendf(&caption, "<p>x from %.3g to %.3g, y from %.3g to %.3g</p>", x0, x1, y0, y1);
            rt_str title;
            rt_str_init(&title);
            rt_str_appendf(&title, "%s uncertainty", kinds[k]);
            st = put_figure(p, &p->runs[r], file, rt_str_text(&title), rt_str_text(&caption), out);
            rt_str_fail(out, title.st);
            rt_str_fail(out, caption.st);
            rt_str_deinit(&title);
            if (st != RT_OK)
                goto done;
        }
        rt_str_append(out, "</div>\n");
    }
done:
    rt_str_deinit(&caption);
    return st;
}

/* ---- matrices of permutations ---- */

rt_status rt_report_body_matrices(rt_report *p, rt_str *out) {
    for (int r = 0; r < p->n; r++) {
        rt_jval layers = rt_report_find(p->runs[r].root, "average/layers");
        bool first = true;
        for (int64_t l = 0; l < rt_jval_len(layers); l++) {
            rt_jval layer = rt_jval_at(layers, l), files = rt_jval_get(layer, "pictures");
            const char *name = rt_report_text(layer, "name"), *file;
            for (int64_t i = 0; i < rt_jval_len(files); i++) {
                if (!rt_jval_str(rt_jval_at(files, i), &file))
                    continue;
                if (first)
                    rt_str_append(out, "<div class=\"pictures\">");
                first = false;
                rt_str title;
                rt_str_init(&title);
                rt_str_appendf(&title, "%s: permutation of %s, model %lld", p->runs[r].name,
                               name ? name : "?", (long long)i + 1);
                rt_status st = put_figure(p, &p->runs[r], file, rt_str_text(&title), "", out);
                rt_str_fail(out, title.st);
                rt_str_deinit(&title);
                RT_TRY(st);
            }
        }
        if (!first)
            rt_str_append(out, "</div>\n");
    }
    return RT_OK;
}

/* ---- inputs the models are least certain about ---- */

static const char *class_name(rt_jval root, int64_t k) {
    const char *s = NULL;
    return rt_jval_str(rt_jval_at(rt_report_find(root, "evaluation/classes"), k), &s) ? s : NULL;
}

static void put_class(rt_jval root, rt_jval item, const char *key, rt_str *out) {
    int64_t k;
    if (!rt_jval_i64(rt_jval_get(item, key), &k))
        return;
    const char *name = class_name(root, k);
    if (name)
        rt_report_escape(out, name);
    else
        rt_str_appendf(out, "%lld", (long long)k);
}

static void put_item_number(rt_jval item, const char *key, const char *label, rt_str *out) {
    double v;
    if (rt_report_number(item, key, &v))
        rt_str_appendf(out, "<br>%s %.3g", label, v);
}

static void put_tile(rt_jval root, rt_jval item, int run, int64_t i, int64_t columns, int64_t rows,
                     double aspect, rt_str *out) {
    int64_t row, label, chosen;
    bool right = rt_jval_i64(rt_jval_get(item, "label"), &label) &&
                 rt_jval_i64(rt_jval_get(item, "class"), &chosen) && label == chosen;
    double x = columns > 1 ? 100.0 * (double)(i % columns) / (double)(columns - 1) : 0;
    double y = rows > 1 ? 100.0 * (double)(i / columns) / (double)(rows - 1) : 0;
    rt_str_appendf(out,
                   "<figure class=\"tile\"><div class=\"cut p%d\" role=\"img\" aria-label=\"input\" "
                   "style=\"aspect-ratio:%.4f;background-size:%lld%% "
                   "%lld%%;background-position:%.4f%% %.4f%%\"></div><figcaption><b class=\"%s\">",
                   run, aspect, (long long)columns * 100, (long long)rows * 100, x, y,
                   right ? "right" : "wrong");
    put_class(root, item, "class", out);
    rt_str_append(out, "</b>");
    if (!right) {
        rt_str_append(out, "<br>is ");
        put_class(root, item, "label", out);
    }
    put_item_number(item, "confidence", "p", out);
    put_item_number(item, "entropy", "H", out);
    put_item_number(item, "mutual_information", "MI", out);
    if (rt_jval_i64(rt_jval_get(item, "row"), &row))
        rt_str_appendf(out, "<br><span class=\"dim\">row %lld</span>", (long long)row);
    rt_str_append(out, "</figcaption></figure>");
}

static rt_status doubtful_run(rt_report *p, int run, rt_str *out) {
    rt_jval root = p->runs[run].root, montage = rt_report_find(root, "evaluation/pictures/least_certain");
    rt_jval items = rt_jval_get(montage, "items");
    const char *file = rt_report_text(montage, "file");
    int64_t columns = 0, n = RT_MIN(rt_jval_len(items), TILES_MAX);
    bool there;
    picture pic;
    if (!file || !rt_jval_i64(rt_jval_get(montage, "columns"), &columns) || columns < 1 ||
        columns > TILES_MAX || n < 1)
        return RT_OK;
    rt_status st = picture_read(p, &p->runs[run], file, &pic, &there);
    if (st == RT_OK && there && pic.url.len == 0) {
        put_left_out(out, file);
    } else if (st == RT_OK && there) {
        int64_t rows = (rt_jval_len(items) + columns - 1) / columns;
        double aspect = (double)pic.width / (double)columns / ((double)pic.height / (double)rows);
        put_run_heading(p, run, out);
        rt_str_appendf(out, "<style>.p%d{background-image:url(%s)}</style><div class=\"tiles\">", run,
                       rt_str_text(&pic.url));
        for (int64_t i = 0; i < n; i++)
            put_tile(root, rt_jval_at(items, i), run, i, columns, rows, aspect, out);
        rt_str_append(out, "</div>\n");
    }
    rt_str_fail(out, pic.url.st);
    rt_str_deinit(&pic.url);
    return st;
}

rt_status rt_report_body_doubtful(rt_report *p, rt_str *out) {
    for (int r = 0; r < p->n; r++)
        RT_TRY(doubtful_run(p, r, out));
    return RT_OK;
}
