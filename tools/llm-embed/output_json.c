/* A line of JSON for each text. */
#include <string.h>

#include "common/json_text.h"
#include "ggl/internal/alloc.h"
#include "output.h"

typedef struct json_output {
    output base;
    output_params p;
    text_out to;
} json_output;

static void put_numbers(FILE *f, const float *x, size_t n) {
    putc('[', f);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s%.9g", i ? "," : "", (double)x[i]);
    putc(']', f);
}

static void put_vectors(FILE *f, const result *r, bool is_list) {
    fputs("\"embedding\":", f);
    if (is_list)
        putc('[', f);
    for (size_t i = 0; i < r->n_rows; i++) {
        if (i > 0)
            putc(',', f);
        put_numbers(f, r->row + i * r->n, r->n);
    }
    if (is_list)
        putc(']', f);
}

static void put_scores(FILE *f, const labels *l, const float *score, size_t n) {
    if (n == 1) {
        fprintf(f, "\"score\":%.9g", (double)score[0]);
        return;
    }
    fputs("\"scores\":", f);
    if (l->n == 0) {
        put_numbers(f, score, n);
        return;
    }
    for (size_t k = 0; k < n; k++) {
        const char *name = labels_of(l, k);
        fputs(k ? ",{\"label\":" : "[{\"label\":", f);
        json_put_string(f, name ? name : "", name ? strlen(name) : 0);
        fprintf(f, ",\"score\":%.9g}", (double)score[k]);
    }
    putc(']', f);
}

static ggl_status take(output *base, const result *r, ggl_error *err) {
    json_output *o = (json_output *)base;
    FILE *f = o->to.f;
    fprintf(f, "{\"index\":%zu,", r->at);
    if (o->p.scores)
        put_scores(f, o->p.labels, r->row, r->n);
    else
        put_vectors(f, r, o->p.lists);
    fputs("}\n", f);
    return text_check(&o->to, err);
}

static ggl_status flush(output *base, ggl_error *err) {
    json_output *o = (json_output *)base;
    (void)fflush(o->to.f);
    return text_check(&o->to, err);
}

static ggl_status end(output *base, ggl_error *err) {
    return text_close(&((json_output *)base)->to, err);
}

static void close_json(output *base) {
    text_abort(&((json_output *)base)->to);
    ggl_free(base);
}

ggl_status output_json(output **out, const output_params *p, ggl_error *err) {
    json_output *o = ggl_calloc(1, sizeof *o);
    if (!o)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    o->base = (output){.take = take, .flush = flush, .end = end, .close = close_json};
    o->p = *p;
    *out = &o->base;
    return text_open(&o->to, p->o->out, err);
}
