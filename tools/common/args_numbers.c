/* Numbers of arguments; see args.h. */
#include <math.h>
#include <string.h>

#include "args.h"
#include "ggl/internal/number.h"

bool args_read_uint64(const char *s, uint64_t *out, bool *range) {
    uint64_t v = 0;
    *range = false;
    if (*s == '\0')
        return false;
    for (const char *c = s; *c; c++)
        if (*c < '0' || *c > '9')
            return false;
    for (; *s; s++) {
        unsigned digit = (unsigned)(*s - '0');
        if (v > (UINT64_MAX - digit) / 10) {
            *range = true;
            return false;
        }
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

bool args_read_int(const char *s, int64_t *out, bool *range) {
    bool negative = *s == '-';
    uint64_t v;
    if (!args_read_uint64(s + (negative || *s == '+'), &v, range))
        return false;
    if (v > (uint64_t)INT64_MAX + negative) {
        *range = true;
        return false;
    }
    *out = negative ? (v > 0 ? -(int64_t)(v - 1) - 1 : 0) : (int64_t)v;
    return true;
}

bool args_read_float(const char *s, double *out, bool *range) {
    const size_t n = strlen(s);
    *range = false;
    if (n == 0 || ggl_number_length(s, n) != n)
        return false;
    const double v = ggl_number_value(s, n);
    if (!isfinite(v)) {
        *range = true;
        return false;
    }
    *out = v;
    return true;
}
