#include "table.h"

#include <stdio.h>
#include <string.h>

#include "common/glob.h"

enum { MOST_TRIES = 400 };

/* --- selections ------------------------------------------------------------------------------- */

static bool wants_op(const conform_selection *s, const conform_case *info) {
    const char *const name = conform_op_name(info);
    return !s->op ||
           llm_glob_matches((ggl_str){s->op, strlen(s->op)}, (ggl_str){name, strlen(name)});
}

static bool is_type(ggl_type type, const char *name) {
    return strcmp(ggl_type_get(type)->name, name) == 0;
}

static bool wants_type(const conform_selection *s, const conform_case *info,
                       const conform_form *f) {
    if (!s->type)
        return true;
    return info->op == GGL_OP_ATTEND ? is_type(f->type_k, s->type) || is_type(f->type_v, s->type)
                                     : is_type(f->type, s->type);
}

/* Returns whether a quick run has the form: one form of each case and type, and one with each
 * kind of special values. */
static bool is_quick(const conform_case *info, const conform_form *f) {
    conform_form first = conform_variant(info, 0);
    return memcmp(f->size, first.size, sizeof f->size) == 0 && f->with == first.with &&
           f->view == first.view;
}

/* Calls fn for each case of the selection, in order, until fn returns false. */
typedef bool visit_fn(void *ctx, const conform_case *info, const conform_form *f);
static void visit(const conform_selection *s, visit_fn *fn, void *ctx) {
    for (int k = 0; conform_kind_at(k); k++)
        for (int i = 0; i < conform_kind_at(k)->n_cases; i++) {
            const conform_case *info = &conform_kind_at(k)->cases[i];
            for (int v = 0; wants_op(s, info) && v < conform_n_variants(info); v++) {
                const conform_form f = conform_variant(info, v);
                if (wants_type(s, info, &f) && (!s->quick || is_quick(info, &f)) &&
                    !fn(ctx, info, &f))
                    return;
            }
        }
}

static bool is_of_row(const conform_row *row, const conform_case *info, const conform_form *f) {
    char type[sizeof row->type];
    return strcmp(row->op, conform_op_name(info)) == 0 &&
           strcmp(row->type, conform_type_name(info, f, type, sizeof type)) == 0;
}

/* --- rows ------------------------------------------------------------------------------------- */

typedef struct row_list {
    conform_row *row;
    int n, most;
} row_list;

static bool add_row(void *ctx, const conform_case *info, const conform_form *f) {
    row_list *l = ctx;
    for (int i = l->n - 1; i >= 0; i--)
        if (is_of_row(&l->row[i], info, f))
            return true;
    if (l->n == l->most)
        return false;
    conform_row *row = &l->row[l->n++];
    *row = (conform_row){.op = conform_op_name(info)};
    conform_type_name(info, f, row->type, sizeof row->type);
    return true;
}

int conform_rows_of(const conform_selection *s, conform_row *row, int most) {
    row_list l = {row, 0, most};
    visit(s, add_row, &l);
    return l.n;
}

typedef struct row_run {
    const conform_selection *s;
    conform_row *row;
    ggl_backend *b;
    const conform_limits *limits;
} row_run;

/* Returns whether the form is right when only the case's operator runs on the backend; then
 * another operator of its graph, or the combination, may be at fault. */
static bool is_right_alone(const conform_case *info, const conform_result *r, ggl_backend *b) {
    conform_result alone;
    conform_form f = r->form;
    f.alone = true;
    return conform_check_form(info, &f, b, &alone) == CONFORM_RIGHT;
}

/* Counts a result in the row. Makes the first one that is wrong smaller and stores it. */
static void count(const row_run *run, const conform_case *info, conform_result *r) {
    conform_row *row = run->row;
    row->n_cases++;
    switch (r->outcome) {
    case CONFORM_RIGHT:
        row->n_right++;
        row->by_body = row->by_body || r->by_body;
        row->share = r->share > row->share ? r->share : row->share;
        return;
    case CONFORM_REFUSED:
        if (row->n_refused++ == 0)
            memcpy(row->reason, r->text, sizeof row->reason);
        return;
    case CONFORM_WRONG:
    case CONFORM_FAILED:
    case CONFORM_INVALID:
        if (row->n_wrong++ > 0)
            return;
        conform_shrink(info, run->b, r, MOST_TRIES);
        row->wrong = *r;
        row->right_alone = is_right_alone(info, r, run->b);
    }
}

static bool run_case(void *ctx, const conform_case *info, const conform_form *f) {
    row_run *run = ctx;
    conform_result r;
    ggl_error err;
    if (!is_of_row(run->row, info, f))
        return true;
    conform_check_form(info, f, run->b, &r);
    if (run->s->each)
        run->s->each(run->s->ctx, info, &r);
    count(run, info, &r);
    if (run->s->seconds > 0 && info->large && run->row->speed.ns <= 0 &&
        r.outcome == CONFORM_RIGHT &&
        conform_time(info, f, run->b, run->s->seconds, &run->row->speed, &err) != GGL_OK)
        run->row->speed.ns = 0;
    return true;
}

void conform_row_run(const conform_selection *s, conform_row *row, ggl_backend *b,
                     const conform_limits *limits) {
    row_run run = {s, row, b, limits};
    visit(s, run_case, &run);
    if (row->speed.ns > 0 && limits)
        row->percent = conform_percent(&row->speed, limits);
}
