/* Tables to read: the similarities of all texts with each other, or the scores of a classifier. */
#include <math.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "output.h"

enum { MOST_TEXTS = 500, NUMBER = 6, CELL = 9, LABEL = 24 };

typedef struct table_output {
    output base;
    output_params p;
    text_out to;
    float *row; /* [n_texts][n] */
    char **text;
    size_t *n_text;
    size_t n_texts, n, cap_row, cap_text, cap_n;
} table_output;

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the table");
}

static ggl_status take(output *base, const result *r, ggl_error *err) {
    table_output *o = (table_output *)base;
    if (o->n_texts == MOST_TEXTS)
        return ggl_fail(err, GGL_LIMIT,
                        "--format table shows %d texts at most: -o FILE.npy writes any number",
                        MOST_TEXTS);
    const size_t k = o->n_texts;
    o->n = r->n;
    if (!ggl_grow(&o->row, &o->cap_row, (k + 1) * r->n, sizeof *o->row) ||
        !ggl_grow(&o->text, &o->cap_text, k + 1, sizeof *o->text) ||
        !ggl_grow(&o->n_text, &o->cap_n, k + 1, sizeof *o->n_text) ||
        !(o->text[k] = ggl_calloc(r->n_text + 1, 1)))
        return no_memory(err);
    memcpy(o->row + k * r->n, r->row, r->n * sizeof *r->row);
    memcpy(o->text[k], r->text, r->n_text);
    o->n_text[k] = r->n_text;
    o->n_texts++;
    return GGL_OK;
}

/* The cosine of the angle between two vectors, which need not have length 1. */
static double similarity(const table_output *o, size_t i, size_t j) {
    const float *a = o->row + i * o->n, *b = o->row + j * o->n;
    double dot = 0, aa = 0, bb = 0;
    for (size_t k = 0; k < o->n; k++) {
        dot += (double)a[k] * (double)b[k];
        aa += (double)a[k] * (double)a[k];
        bb += (double)b[k] * (double)b[k];
    }
    return aa > 0 && bb > 0 ? dot / sqrt(aa * bb) : 0;
}

static void put_name(const table_output *o, size_t i) {
    fprintf(o->to.f, "%4zu  ", i + 1);
    const int left = text_cell(&o->to, o->text[i], o->n_text[i], LABEL);
    fprintf(o->to.f, "%*s", left, "");
}

/* Prints the columns first .. end - 1 of the similarities. */
static void put_similarities(const table_output *o, size_t first, size_t end) {
    FILE *f = o->to.f;
    fprintf(f, "%*s", NUMBER + LABEL, "");
    for (size_t j = first; j < end; j++)
        fprintf(f, " %*zu", NUMBER, j + 1);
    putc('\n', f);
    for (size_t i = 0; i < o->n_texts; i++) {
        put_name(o, i);
        for (size_t j = first; j < end; j++)
            fprintf(f, " %*.3f", NUMBER, similarity(o, i, j));
        putc('\n', f);
    }
}

/* Prints the scores first .. end - 1 of each text. */
static void put_scores(const table_output *o, size_t first, size_t end) {
    FILE *f = o->to.f;
    fprintf(f, "%*s", NUMBER + LABEL, "");
    for (size_t j = first; j < end; j++) {
        char number[24];
        const char *name = labels_of(o->p.labels, j);
        snprintf(number, sizeof number, "%zu", j);
        putc(' ', f);
        const int left =
            text_cell(&o->to, name ? name : number, strlen(name ? name : number), CELL);
        fprintf(f, "%*s", j + 1 < end ? left : 0, "");
    }
    putc('\n', f);
    for (size_t i = 0; i < o->n_texts; i++) {
        put_name(o, i);
        for (size_t j = first; j < end; j++)
            fprintf(f, " %*.4f", CELL, (double)o->row[i * o->n + j]);
        putc('\n', f);
    }
}

static ggl_status end(output *base, ggl_error *err) {
    table_output *o = (table_output *)base;
    const size_t width = o->p.scores ? CELL : NUMBER, n = o->p.scores ? o->n : o->n_texts;
    const size_t room = (size_t)tool_width() - NUMBER - LABEL, fits = room / (width + 1);
    for (size_t first = 0; first < n; first += fits) {
        const size_t last = first + fits < n ? first + fits : n;
        if (first > 0)
            putc('\n', o->to.f);
        if (o->p.scores)
            put_scores(o, first, last);
        else
            put_similarities(o, first, last);
    }
    const ggl_status st = text_check(&o->to, err);
    return st == GGL_OK ? text_close(&o->to, err) : st;
}

static void close_table(output *base) {
    table_output *o = (table_output *)base;
    for (size_t i = 0; i < o->n_texts; i++)
        ggl_free(o->text[i]);
    ggl_free(o->text);
    ggl_free(o->n_text);
    ggl_free(o->row);
    text_abort(&o->to);
    ggl_free(o);
}

ggl_status output_table(output **out, const output_params *p, ggl_error *err) {
    table_output *o = ggl_calloc(1, sizeof *o);
    if (!o)
        return no_memory(err);
    o->base = (output){.take = take, .end = end, .close = close_table};
    o->p = *p;
    *out = &o->base;
    return text_open(&o->to, p->o->out, err);
}
