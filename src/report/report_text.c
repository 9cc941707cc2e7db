/*
 * report_text.c - text on its way into a page.
 *
 * Names of runs, data sets and classes come from files and may hold anything. Each of them passes rt_report_escape
 * (HTML) or goes into the JSON block, where rt_report_script_safe makes "</script>" impossible.
 */
#include "report/report_int.h"
#include <math.h>
#include <string.h>

void rt_report_escape(rt_str *out, const char *text) {
    static const struct {
        char c;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    while (*text) {
        size_t n = rt_utf8_length(text);
        const char *entity = NULL;
        for (int64_t i = 0; i < RT_COUNT(entities); i++)
            if (*text == entities[i].c)
                entity = entities[i].entity;
        bool control = ((unsigned char)*text < 0x20 && *text != '\n' && *text != '\t') || *text == 0x7f;
        if (n == 0 || control)
            rt_str_append(out, "\xef\xbf\xbd");
        else if (entity)
            rt_str_append(out, entity);
        else
            rt_str_append_n(out, text, n);
        text += n ? n : 1;
    }
}

void rt_report_script_safe(rt_str *out, const char *json, size_t n) {
    while (n > 0) {
        const char *hit = memchr(json, '<', n);
        size_t plain = hit ? (size_t)(hit - json) : n;
        rt_str_append_n(out, json, plain);
        if (!hit)
            return;
        rt_str_append(out, "\\u003c");
        json += plain + 1;
        n -= plain + 1;
    }
}

void rt_report_base64(rt_str *out, const uint8_t *data, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        size_t have = RT_MIN(n - i, (size_t)3);
        uint32_t v = (uint32_t)data[i] << 16;
        if (have > 1)
            v |= (uint32_t)data[i + 1] << 8;
        if (have > 2)
            v |= data[i + 2];
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], digits[v >> 6 & 63], digits[v & 63]};
        for (size_t k = have + 1; k < 4; k++)
            four[k] = '=';
        rt_str_append_n(out, four, 4);
    }
}

void rt_report_si(rt_str *out, double v) {
    static const char *const units[] = {"", "&#8239;k", "&#8239;M", "&#8239;G", "&#8239;T"};
    size_t u = 0;
    while (u + 1 < RT_COUNT(units) && fabs(v) >= 999.5) {
        v /= 1000;
        u++;
    }
    int decimals = v == floor(v) && u == 0 ? 0 : fabs(v) < 9.995 ? 2 : fabs(v) < 99.95 ? 1 : 0;
    rt_str_appendf(out, "%.*f%s", decimals, v, units[u]);
}

void rt_report_seconds(rt_str *out, double v) {
    if (v < 99.95)
        rt_str_appendf(out, "%.*f&#8239;s", v < 9.995 ? 2 : 1, v);
    else if (v < 3600)
        rt_str_appendf(out, "%.0f&#8239;min&#8239;%02.0f&#8239;s", floor(v / 60), floor(fmod(v, 60)));
    else if (v < 1e9)
        rt_str_appendf(out, "%.0f&#8239;h&#8239;%02.0f&#8239;min", floor(v / 3600),
                       floor(fmod(v, 3600) / 60));
    else
        rt_str_appendf(out, "%.3g&#8239;s", v);
}
