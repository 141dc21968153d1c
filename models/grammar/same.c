#include "same.h"

#include <string.h>

/* The digits of a number without zeros at both ends: 0.ddd * 10^power. */
typedef struct decimal {
    bool negative;
    size_t n;
    long power;
    const char *first; /* the first digit; a point may come between the digits */
} decimal;

static decimal read_decimal(ggl_str t) {
    decimal d = {.negative = t.n > 0 && t.s[0] == '-'};
    size_t end = 0, last = 0;
    long before =
        0; /* digits before the point, from the first that counts; or, below 0, zeros after it */
    bool point = false;
    for (; end < t.n && t.s[end] != 'e' && t.s[end] != 'E'; end++) {
        const char c = t.s[end];
        point = point || c == '.';
        if (c < '0' || c > '9')
            continue;
        if (d.first || c != '0') {
            d.first = d.first ? d.first : t.s + end;
            d.n++;
            last = c != '0' ? d.n : last;
            before += !point;
        } else {
            before -= point;
        }
    }
    d.n = last;
    d.power = before;
    const bool is_small = end + 1 < t.n && t.s[end + 1] == '-';
    long power = 0;
    for (size_t i = end; i < t.n; i++)
        if (t.s[i] >= '0' && t.s[i] <= '9')
            power = power < 1 << 30 ? power * 10 + (t.s[i] - '0') : power;
    d.power += is_small ? -power : power;
    return d;
}

bool llm_same_number(ggl_str a, ggl_str b) {
    const decimal x = read_decimal(a), y = read_decimal(b);
    if (x.n != y.n || (x.n > 0 && (x.negative != y.negative || x.power != y.power)))
        return false;
    const char *s = x.first, *t = y.first;
    for (size_t i = 0; i < x.n; i++) {
        s += *s == '.';
        t += *t == '.';
        if (*s++ != *t++)
            return false;
    }
    return true;
}

static const json_value *get(const json_value *object, ggl_str name, uint64_t *steps) {
    for (uint32_t i = 0; i < object->n; i++) {
        const ggl_str other = json_name(object, i);
        ++*steps;
        if (other.n == name.n && (name.n == 0 || memcmp(other.s, name.s, name.n) == 0))
            return &object->item[i];
    }
    return NULL;
}

bool llm_same_value(const json_value *a, const json_value *b, uint64_t *steps) {
    ++*steps;
    if (a->kind != b->kind)
        return false;
    if (a->kind == JSON_NUMBER)
        return llm_same_number(json_number_text(a), json_number_text(b));
    if (a->kind == JSON_BOOL || a->kind == JSON_NULL)
        return a->kind == JSON_NULL || a->flag == b->flag;
    if (a->n != b->n)
        return false;
    if (a->kind == JSON_STRING)
        return a->n == 0 || memcmp(a->s, b->s, a->n) == 0;
    for (uint32_t i = 0; i < a->n; i++) {
        const json_value *other =
            a->kind == JSON_ARRAY ? &b->item[i] : get(b, json_name(a, i), steps);
        if (!other || !llm_same_value(&a->item[i], other, steps))
            return false;
    }
    return true;
}
