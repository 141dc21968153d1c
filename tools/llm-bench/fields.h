/* Results as lists of named values, and their printing as JSON, CSV and SQL. */
#ifndef TOOLS_BENCH_FIELDS_H
#define TOOLS_BENCH_FIELDS_H

#include <stdbool.h>
#include <stdio.h>

typedef enum bench_field_kind {
    BENCH_TEXT,
    BENCH_INTEGER,
    BENCH_NUMBER,  /* in `number`, like BENCH_INTEGER */
    BENCH_NUMBERS, /* `n` of them, in `numbers` */
    BENCH_INTEGERS /* the same */
} bench_field_kind;

typedef struct bench_field {
    const char *key;
    bench_field_kind kind;
    const char *text;
    double number; /* NaN: not known, or does not apply */
    const double *numbers;
    int n;
} bench_field;

static inline bench_field bench_text(const char *key, const char *s) {
    return (bench_field){.key = key, .kind = BENCH_TEXT, .text = s};
}

static inline bench_field bench_whole(const char *key, double x) {
    return (bench_field){.key = key, .kind = BENCH_INTEGER, .number = x};
}

static inline bench_field bench_number(const char *key, double x) {
    return (bench_field){.key = key, .kind = BENCH_NUMBER, .number = x};
}

static inline bench_field bench_wholes(const char *key, const double *x, int n) {
    return (bench_field){.key = key, .kind = BENCH_INTEGERS, .numbers = x, .n = n};
}

static inline bool bench_is_list(const bench_field *f) {
    return f->kind == BENCH_NUMBERS || f->kind == BENCH_INTEGERS;
}

static inline bench_field bench_numbers(const char *key, const double *x, int n) {
    return (bench_field){.key = key, .kind = BENCH_NUMBERS, .numbers = x, .n = n};
}

/* Prints a string in quotes, with the quotes in it doubled. */
void bench_put_quoted(FILE *out, const char *s, char quote);
/* Prints a number of the field; "null" if it is not known. */
void bench_put_number(FILE *out, const bench_field *f, double x);
/* Prints the value as JSON. */
void bench_put_json(FILE *out, const bench_field *f);
/* Prints a line of CSV: the names, or the values. Lists of numbers are left out. */
void bench_put_csv(FILE *out, const bench_field *f, int n, bool names);

#endif
