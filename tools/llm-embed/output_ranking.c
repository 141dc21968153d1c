/* The texts by their scores, best first: for each query, or for the one of a reranker. */
#include <stdlib.h>
#include <string.h>

#include "common/json_text.h"
#include "ggl/internal/alloc.h"
#include "output.h"

typedef struct ranked {
    size_t at;
    double score;
    char *text;
    size_t n;
} ranked;

typedef struct ranking {
    ranked *of;
    size_t n, cap;
} ranking;

typedef struct ranking_output {
    output base;
    output_params p;
    text_out to;
    ranking *list; /* [n_lists] */
    size_t n_lists;
} ranking_output;

static int better(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

/* Sorts the list, and leaves the best. */
static void sort_list(ranking *l, size_t most) {
    if (l->n > 1)
        qsort(l->of, l->n, sizeof *l->of, better);
    while (most > 0 && l->n > most)
        ggl_free(l->of[--l->n].text);
}

static ggl_status add(ranking *l, const result *r, double score, size_t most, ggl_error *err) {
    if (most > 0 && l->n >= 2 * most) /* seldom, so that each text costs little */
        sort_list(l, most);
    char *copy = ggl_calloc(r->n_text + 1, 1);
    if (!copy || !ggl_grow(&l->of, &l->cap, l->n + 1, sizeof *l->of)) {
        ggl_free(copy);
        return ggl_fail(err, GGL_NOMEM, "out of memory for a ranking of %zu texts", l->n + 1);
    }
    memcpy(copy, r->text, r->n_text);
    l->of[l->n++] = (ranked){r->at, score, copy, r->n_text};
    return GGL_OK;
}

static ggl_status take(output *base, const result *r, ggl_error *err) {
    ranking_output *o = (ranking_output *)base;
    ggl_status st = GGL_OK;
    for (size_t k = 0; k < o->n_lists && st == GGL_OK; k++)
        st = add(&o->list[k], r, (double)r->row[k], (size_t)o->p.o->n_top, err);
    return st;
}

/* --- printing --------------------------------------------------------------------------------- */

static void put_json(const ranking_output *o, size_t k, const ranked *r) {
    FILE *f = o->to.f;
    putc('{', f);
    if (o->p.o->query.n > 0)
        fprintf(f, "\"query\":%zu,", k);
    fprintf(f, "\"index\":%zu,\"score\":%.9g,\"text\":", r->at, r->score);
    json_put_string(f, r->text, r->n);
    fputs("}\n", f);
}

static void put_heading(const ranking_output *o, size_t k) {
    const char *query = o->p.o->rerank ? o->p.o->rerank : o->p.o->query.s[k];
    if (k > 0)
        putc('\n', o->to.f);
    (void)text_cell(&o->to, query, strlen(query), tool_width() - 1);
    fputs("\n   score   line  text\n", o->to.f);
}

static void put_row(const ranking_output *o, const ranked *r) {
    enum { BEFORE = 17 };
    fprintf(o->to.f, "%8.4f %6zu  ", r->score, r->at + 1);
    (void)text_cell(&o->to, r->text, r->n, tool_width() - BEFORE - 1);
    putc('\n', o->to.f);
}

static ggl_status end(output *base, ggl_error *err) {
    ranking_output *o = (ranking_output *)base;
    const bool is_table = o->p.o->format == FORMAT_TABLE;
    ggl_status st = GGL_OK;
    for (size_t k = 0; k < o->n_lists && st == GGL_OK; k++) {
        ranking *l = &o->list[k];
        sort_list(l, (size_t)o->p.o->n_top);
        if (is_table)
            put_heading(o, k);
        for (size_t i = 0; i < l->n && st == GGL_OK; i++) {
            if (is_table)
                put_row(o, &l->of[i]);
            else
                put_json(o, k, &l->of[i]);
            st = text_check(&o->to, err);
        }
    }
    return st == GGL_OK ? text_close(&o->to, err) : st;
}

static void close_ranking(output *base) {
    ranking_output *o = (ranking_output *)base;
    for (size_t k = 0; k < o->n_lists && o->list; k++) {
        for (size_t i = 0; i < o->list[k].n; i++)
            ggl_free(o->list[k].of[i].text);
        ggl_free(o->list[k].of);
    }
    ggl_free(o->list);
    text_abort(&o->to);
    ggl_free(o);
}

ggl_status output_ranking(output **out, const output_params *p, ggl_error *err) {
    ranking_output *o = ggl_calloc(1, sizeof *o);
    if (!o)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    o->base = (output){.take = take, .end = end, .close = close_ranking};
    o->p = *p;
    o->n_lists = p->o->rerank ? 1 : p->o->query.n;
    o->list = ggl_calloc(o->n_lists, sizeof *o->list);
    *out = &o->base;
    return o->list ? text_open(&o->to, p->o->out, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
}
