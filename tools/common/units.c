#include "units.h"

#include <string.h>

#include "args.h"
#include "ggl/internal/text.h"

const tool_unit tool_unit_bytes[] = {
    {"", 1},         {"B", 1},    {"K", 1e3},      {"KB", 1e3},     {"KiB", 0x1p10},
    {"M", 1e6},      {"MB", 1e6}, {"MiB", 0x1p20}, {"G", 1e9},      {"GB", 1e9},
    {"GiB", 0x1p30}, {"T", 1e12}, {"TB", 1e12},    {"TiB", 0x1p40}, {NULL, 0}};

bool tool_read_unit(const char *s, size_t n, const tool_unit *units, double *out) {
    char number[32];
    size_t digits = strspn(s, "0123456789.");
    double x;
    bool range;
    digits = digits < n ? digits : n;
    if (digits == 0 || digits >= sizeof number)
        return false;
    memcpy(number, s, digits);
    number[digits] = '\0';
    if (!args_read_float(number, &x, &range))
        return false;
    const tool_unit *found = NULL; /* as it is written, else in upper or lower case: Gb is not GB */
    for (; units->name; units++) {
        if (strlen(units->name) != n - digits ||
            ggl_case_compare_n(s + digits, units->name, n - digits) != 0)
            continue;
        const bool same = strncmp(s + digits, units->name, n - digits) == 0;
        found = same || !found ? units : found;
        if (same)
            break;
    }
    *out = found ? x * found->times : 0;
    return *out > 0;
}
