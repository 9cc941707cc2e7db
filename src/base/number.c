/*
 * number.c - numbers to text and back, whatever locale the host program has set (declared in str.h).
 *
 * The grammar is checked by hand, because strtod accepts spaces, hex and locale commas. Conversion then
 * takes one of two roads, both correctly rounded: an integer below 2^53 times or divided by a power of ten
 * up to 10^22 is one exact-operand operation (Clinger 1990), and covers nearly all numbers in data files;
 * anything else goes to strtod under the "C" locale.
 *
 * Printing: a decimal of at most 15 digits (6 for float) survives the way through a normal number, so if a
 * text that short reads back, "%.15g" prints it; else one or two more digits are needed. Denormals carry
 * fewer digits, hence start from one.
 */
#include "base/str.h"
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 400 };

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool rt_parse_u64(const char *s, size_t n, uint64_t *out) {
    if (n == 0)
        return false;
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(s[i]))
            return false;
        uint64_t digit = (uint64_t)(s[i] - '0');
        if (v > (UINT64_MAX - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

bool rt_parse_i64(const char *s, size_t n, int64_t *out) {
    bool negative = n > 0 && s[0] == '-';
    size_t sign = n > 0 && (s[0] == '-' || s[0] == '+');
    uint64_t magnitude;
    if (!rt_parse_u64(s + sign, n - sign, &magnitude))
        return false;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    if (negative)
        *out = magnitude == 0 ? 0 : -(int64_t)(magnitude - 1) - 1;
    else
        *out = (int64_t)magnitude;
    return true;
}

static bool same_word(const char *s, size_t n, const char *word) {
    if (strlen(word) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] - 'A' + 'a') : s[i];
        if (c != word[i])
            return false;
    }
    return true;
}

static bool parse_nonfinite(const char *s, size_t n, double *out) {
    size_t sign = n > 0 && (s[0] == '-' || s[0] == '+');
    double v;
    if (same_word(s + sign, n - sign, "inf") || same_word(s + sign, n - sign, "infinity"))
        v = (double)INFINITY;
    else if (same_word(s + sign, n - sign, "nan"))
        v = (double)NAN;
    else
        return false;
    *out = n > 0 && s[0] == '-' ? -v : v;
    return true;
}

/* What the grammar check learns about the number: digits (up to 19 of them) times 10^exponent. */
typedef struct decimal {
    uint64_t digits;
    int ndigits; /* significant digits seen, leading zeros not counted */
    int exponent;
} decimal;

static bool scan_decimal(const char *s, size_t n, decimal *d) {
    size_t i = n > 0 && (s[0] == '-' || s[0] == '+');
    bool any = false, point = false;
    memset(d, 0, sizeof *d);
    for (; i < n && (is_digit(s[i]) || (s[i] == '.' && !point)); i++) {
        if (s[i] == '.') {
            point = true;
            continue;
        }
        any = true;
        if (d->ndigits < 19)
            d->digits = d->digits * 10 + (uint64_t)(s[i] - '0');
        if (d->ndigits > 0 || s[i] != '0')
            d->ndigits++;
        if (point)
            d->exponent--;
    }
    if (!any)
        return false;
    if (i == n)
        return true;
    if (s[i] != 'e' && s[i] != 'E')
        return false;
    i++;
    bool negative = i < n && s[i] == '-';
    if (i < n && (s[i] == '-' || s[i] == '+'))
        i++;
    if (i == n)
        return false;
    int exponent = 0;
    for (; i < n; i++) {
        if (!is_digit(s[i]))
            return false;
        if (exponent < 100000)
            exponent = exponent * 10 + (s[i] - '0');
    }
    d->exponent += negative ? -exponent : exponent;
    return true;
}

static const double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool convert_slowly(const char *s, size_t n, double *out) {
    char buf[NUMBER_MAX + 1];
    memcpy(buf, s, n);
    buf[n] = 0;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c)
        return false;
    char *end;
    *out = strtod_l(buf, &end, c);
    freelocale(c);
    return end == buf + n && isfinite(*out);
}

bool rt_parse_f64(const char *s, size_t n, bool allow_nonfinite, double *out) {
    if (n == 0 || n > NUMBER_MAX)
        return false;
    decimal d;
    if (!scan_decimal(s, n, &d))
        return allow_nonfinite && parse_nonfinite(s, n, out);
    double v;
    if (d.ndigits <= 19 && d.digits <= (UINT64_C(1) << 53) && d.exponent >= -22 && d.exponent <= 22) {
        v = (double)d.digits;
        v = d.exponent < 0 ? v / exact_powers[-d.exponent] : v * exact_powers[d.exponent];
        v = s[0] == '-' ? -v : v;
    } else if (!convert_slowly(s, n, &v)) {
        return false;
    }
    *out = v;
    return true;
}

static bool format_nonfinite(char *buf, double v) {
    if (isfinite(v))
        return false;
    strcpy(buf, isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
    return true;
}

void rt_format_f64(char *buf, double v) {
    if (format_nonfinite(buf, v))
        return;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t old = uselocale(c);
    for (int digits = fabs(v) < DBL_MIN ? 1 : DBL_DIG; digits <= 17; digits++) {
        snprintf(buf, 40, "%.*g", digits, v);
        if (strtod(buf, NULL) == v)
            break;
    }
    uselocale(old);
    freelocale(c);
}

void rt_format_f32(char *buf, float v) {
    if (format_nonfinite(buf, (double)v))
        return;
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t old = uselocale(c);
    for (int digits = fabsf(v) < FLT_MIN ? 1 : FLT_DIG; digits <= 9; digits++) {
        snprintf(buf, 40, "%.*g", digits, (double)v);
        if (strtof(buf, NULL) == v)
            break;
    }
    uselocale(old);
    freelocale(c);
}
