/*
 * status.c - the thread-local record of the last failure.
 *
 * One record per thread, of fixed size, so that reporting "out of memory" needs no memory. Text is formatted
 * into a local buffer first: a message may quote the record it replaces (rt_error_text() as an argument).
 */
#include "base/status.h"
#include <stdio.h>
#include <string.h>

static _Thread_local rt_error last_error;

rt_status rt_error_set(rt_status code, const char *file, int line, const char *fmt, ...) {
    char text[RT_ERROR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    if (vsnprintf(text, sizeof text, fmt, ap) < 0)
        text[0] = 0;
    va_end(ap);
    last_error.code = code;
    last_error.file = file;
    last_error.line = line;
    memcpy(last_error.text, text, sizeof text);
    return code;
}

rt_status rt_error_prefix(rt_status code, const char *fmt, ...) {
    char text[RT_ERROR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    size_t at = n < 0 ? 0 : RT_MIN((size_t)n, sizeof text - 1);
    const char *parts[] = {": ", last_error.text};
    for (int i = 0; i < 2; i++) {
        size_t len = RT_MIN(strlen(parts[i]), sizeof text - 1 - at); /* too long: the tail is lost */
        memcpy(text + at, parts[i], len);
        at += len;
    }
    text[at] = 0;
    memcpy(last_error.text, text, sizeof text);
    last_error.code = code;
    return code;
}

const rt_error *rt_error_last(void) {
    return &last_error;
}

const char *rt_error_text(void) {
    return last_error.text;
}

void rt_error_clear(void) {
    last_error.code = RT_OK;
    last_error.file = NULL;
    last_error.line = 0;
    last_error.text[0] = 0;
}

void rt_error_save(rt_error *dst) {
    *dst = last_error;
}

void rt_error_restore(const rt_error *src) {
    last_error = *src;
}

const char *rt_status_name(rt_status s) {
    switch (s) {
    case RT_OK:
        return "RT_OK";
    case RT_E_FAILED:
        return "RT_E_FAILED";
    case RT_E_MEMORY:
        return "RT_E_MEMORY";
    case RT_E_IO:
        return "RT_E_IO";
    case RT_E_NUMERIC:
        return "RT_E_NUMERIC";
    case RT_E_LOCKED:
        return "RT_E_LOCKED";
    case RT_E_UNSUPPORTED:
        return "RT_E_UNSUPPORTED";
    case RT_E_USAGE:
        return "RT_E_USAGE";
    case RT_E_INPUT:
        return "RT_E_INPUT";
    case RT_E_INTERRUPTED:
        return "RT_E_INTERRUPTED";
    case RT_E_GATE:
        return "RT_E_GATE";
    }
    return "unknown status";
}

int rt_status_exit_code(rt_status s) {
    switch (s) {
    case RT_OK:
        return 0;
    case RT_E_UNSUPPORTED:
    case RT_E_USAGE:
        return 2;
    case RT_E_INPUT:
        return 3;
    case RT_E_INTERRUPTED:
        return 4;
    case RT_E_GATE:
        return 5;
    case RT_E_FAILED:
    case RT_E_MEMORY:
    case RT_E_IO:
    case RT_E_NUMERIC:
    case RT_E_LOCKED:
        return 1;
    }
    return 1;
}
