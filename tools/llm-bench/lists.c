#include "lists.h"

#include <stdlib.h>

enum { MOST_VALUES = 10000 };

bool bench_list_add(bench_list *list, int64_t x) {
    int64_t *grown = realloc(list->v, (list->n + 1) * sizeof *grown);
    if (!grown)
        return false;
    list->v = grown;
    list->v[list->n++] = x;
    return true;
}

/* Reads a number at *s; `sign`: a '-' may precede it. */
static bool read_number(const char **s, bool sign, int64_t *x) {
    bool minus = sign && **s == '-';
    const char *p = *s + minus;
    *x = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (*x > INT64_MAX / 10 - 10)
            return false;
        *x = *x * 10 + (*p - '0');
    }
    bool any = p > *s + minus;
    *x = minus ? -*x : *x;
    *s = p;
    return any;
}

/* Reads "FIRST", "FIRST-LAST", "FIRST-LAST+STEP" or "FIRST-LAST*FACTOR". Returns NULL, or an
 * error text. */
static const char *read_item(bench_list *list, const char **s, int64_t least, int64_t most) {
    static const char form[] = "is not a list such as 1,2,4 or a range such as 1-8, 1-9+2, 1-64*2";
    int64_t first, last, step = 1;
    char by = '+';
    if (!read_number(s, true, &first))
        return form;
    last = first;
    if (**s == '-' && (++*s, !read_number(s, false, &last)))
        return form;
    if (**s == '+' || **s == '*') {
        by = *(*s)++;
        if (!read_number(s, false, &step))
            return form;
    }
    if (**s != '\0' && **s != ',')
        return form;
    if (first < least || last > most || last < first)
        return "is out of range, or a range that goes down";
    if (first < last && (step < 1 || (by == '*' && (step < 2 || first < 1))))
        return "is a range without an end";
    for (int64_t x = first; x <= last; x = by == '+' ? x + step : x * step)
        if (list->n == MOST_VALUES || !bench_list_add(list, x))
            return "has too many values";
    return NULL;
}

const char *bench_list_read(bench_list *list, const char *s, int64_t least, int64_t most) {
    const char *wrong = NULL;
    do
        wrong = read_item(list, &s, least, most);
    while (!wrong && *s++ == ',');
    return wrong;
}
