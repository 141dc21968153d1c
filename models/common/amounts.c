#include "amounts.h"

#include <stdio.h>

const char *llm_amount_bytes(char buf[AMOUNT_TEXT], uint64_t n) {
    static const struct {
        double unit;
        const char *name;
    } units[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const double x = (double)n / units[i].unit;
        if (x >= 1) {
            snprintf(buf, AMOUNT_TEXT, "%.*f %s", x < 10 ? 2 : x < 100 ? 1 : 0, x, units[i].name);
            return buf;
        }
    }
    snprintf(buf, AMOUNT_TEXT, "%d bytes", (int)n);
    return buf;
}

const char *llm_amount_time(char buf[AMOUNT_TEXT], double seconds) {
    const long s = seconds < 1e7 ? (long)(seconds + 0.5) : 9999999;
    if (s >= 3600)
        snprintf(buf, AMOUNT_TEXT, "%ld h %02ld min", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(buf, AMOUNT_TEXT, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(buf, AMOUNT_TEXT, "%ld s", s);
    return buf;
}

const char *llm_amount_s(int64_t n) {
    return n == 1 ? "" : "s";
}
