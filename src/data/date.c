/*
 * date.c - dates as people write them, where there is one reading: the year first (2024-03-01, 2024/3/1) or
 * day.month.year (1.3.2024). 3/4/2024 has two readings and is none, which is told. Days of the proleptic Gregorian
 * calendar: with y' = y - (m <= 2), era = floor(y' / 400), yoe = y' - 400 era and doy counted from 1 March,
 *
 *     days = 146097 era + 365 yoe + yoe/4 - yoe/100 + doy - 719468    (since 1970-01-01)
 */
#include "data/frame.h"

#include <string.h>

static bool digits(const char **s, const char *end, int min, int max, int *out) {
    int n = 0, v = 0;
    for (; n < max && *s < end && **s >= '0' && **s <= '9'; n++)
        v = v * 10 + *(*s)++ - '0';
    *out = v;
    return n >= min;
}

static bool skip(const char **s, const char *end, char c) {
    if (*s >= end || **s != c)
        return false;
    ++*s;
    return true;
}

static int64_t days_of(int y, int m, int d) {
    const int64_t year = y - (m <= 2), era = (year >= 0 ? year : year - 399) / 400, yoe = year - era * 400,
                  doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static bool is_day(int y, int m, int d) {
    static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    return m >= 1 && m <= 12 && d >= 1 && d <= length[m - 1] + (leap && m == 2);
}

/* hh:mm[:ss[.f]] and perhaps a zone; seconds are added to *t. */
static bool parse_clock(const char **s, const char *end, double *t) {
    int h, m, sec = 0, zone_h = 0, zone_m = 0;
    double fraction = 0, unit = 0.1;
    if (!digits(s, end, 1, 2, &h) || !skip(s, end, ':') || !digits(s, end, 2, 2, &m))
        return false;
    if (skip(s, end, ':') && !digits(s, end, 2, 2, &sec))
        return false;
    if (skip(s, end, '.')) {
        for (; *s < end && **s >= '0' && **s <= '9'; ++*s, unit /= 10)
            fraction += unit * (**s - '0');
    }
    *t += h * 3600 + m * 60 + sec + fraction;
    if (h > 23 || m > 59 || sec > 60 || skip(s, end, 'Z'))
        return h <= 23 && m <= 59 && sec <= 60;
    const int sign = skip(s, end, '+') ? -1 : skip(s, end, '-') ? 1 : 0;
    if (sign == 0)
        return true;
    if (!digits(s, end, 2, 2, &zone_h))
        return false;
    if (skip(s, end, ':') || *s < end) {
        if (!digits(s, end, 2, 2, &zone_m))
            return false;
    }
    *t += sign * (zone_h * 3600 + zone_m * 60);
    return zone_h <= 15 && zone_m <= 59;
}

bool rt_parse_date(const char *s, size_t n, double *seconds) {
    const char *end = s + n;
    int y = 0, m = 0, d = 0, first;
    if (n < 8 || n > 40 || !digits(&s, end, 1, 4, &first))
        return false;
    const bool year_first = s < end && (*s == '-' || *s == '/');
    const char mark = s < end ? *s : 0;
    if (!year_first && mark != '.')
        return false;
    const char *start = end - n;
    if (year_first && s - start != 4)
        return false;
    if (!skip(&s, end, mark) || !digits(&s, end, 1, 2, &m) || !skip(&s, end, mark))
        return false;
    y = year_first ? first : 0;
    d = year_first ? 0 : first;
    const char *last = s;
    if (!digits(&s, end, year_first ? 1 : 4, year_first ? 2 : 4, year_first ? &d : &y) || s == last)
        return false;
    if (!is_day(y, m, d))
        return false;
    *seconds = 86400.0 * (double)days_of(y, m, d);
    if (s < end && (*s == 'T' || *s == ' ')) {
        s++;
        if (!parse_clock(&s, end, seconds))
            return false;
    }
    return s == end;
}

/* 12/31/2024, perhaps with more behind it. */
static bool has_two_readings(const char *s, const char *end) {
    int part;
    return digits(&s, end, 1, 2, &part) && skip(&s, end, '/') && digits(&s, end, 1, 2, &part) &&
           skip(&s, end, '/') && digits(&s, end, 2, 4, &part);
}

/* Digits, and nothing beside them but what is written around and between them: the bytes of dollar, pound, yen and euro
 * signs, of commas, points and blanks. */
static bool is_written_number(const char *s, const char *end) {
    const char *start = s;
    bool digit = false;
    for (; s < end; s++) {
        const bool here = *s >= '0' && *s <= '9';
        const bool sign = s == start && (*s == '+' || *s == '-');
        if (!here && !sign && !strchr("$%., '\xc2\xa0\xa3\xa5\xe2\x80\x82\xac\xaf", *s))
            return false;
        digit = digit || here;
    }
    return digit;
}

const char *rt_text_advice(const char *s, size_t n) {
    if (has_two_readings(s, s + n))
        return "a date with two readings, write 2024-12-31";
    if (n < 40 && is_written_number(s, s + n))
        return "a number with signs or separators, write 1007.5 rather than $1,007.50 or 1007.5%";
    return NULL;
}
