#include "fields.h"

#include <math.h>
#include <string.h>

#include "common/json_text.h"

void bench_put_quoted(FILE *out, const char *s, char quote) {
    putc(quote, out);
    for (; *s; s++) {
        if (*s == quote)
            putc(quote, out);
        putc(*s, out);
    }
    putc(quote, out);
}

void bench_put_number(FILE *out, const bench_field *f, double x) {
    if (isnan(x))
        fputs("null", out);
    else if (f->kind == BENCH_INTEGER || f->kind == BENCH_INTEGERS)
        fprintf(out, "%.0f", x);
    else
        fprintf(out, "%.6f", x);
}

void bench_put_json(FILE *out, const bench_field *f) {
    if (f->kind == BENCH_TEXT) {
        json_put_string(out, f->text, strlen(f->text));
    } else if (bench_is_list(f)) {
        putc('[', out);
        for (int i = 0; i < f->n; i++) {
            fputs(i ? ", " : "", out);
            bench_put_number(out, f, f->numbers[i]);
        }
        putc(']', out);
    } else {
        bench_put_number(out, f, f->number);
    }
}

void bench_put_csv(FILE *out, const bench_field *f, int n, bool names) {
    const char *separator = "";
    for (int i = 0; i < n; i++) {
        if (bench_is_list(&f[i]))
            continue;
        fputs(separator, out);
        separator = ",";
        if (names)
            fputs(f[i].key, out);
        else if (f[i].kind == BENCH_TEXT)
            bench_put_quoted(out, f[i].text, '"');
        else if (!isnan(f[i].number))
            bench_put_number(out, &f[i], f[i].number);
    }
    putc('\n', out);
}
