/* Runs forms and compares the results with the reference. */
#include "build.h"

#include <assert.h>
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/fold.h"
#include "ggl/internal/graph.h"
#include "ggl/sched.h"

/* --- running ---------------------------------------------------------------------------------- */

static void count_ops(const ggl_graph *g, int *covers) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        covers[t->op]++;
        for (int k = 0; t->body && k < t->body->n_node; k++)
            covers[t->body->node[k]->op]++;
        for (int k = 0; t->body && k < t->body->n_param; k++)
            covers[t->body->param[k]->op]++;
    }
}

/* Returns how many tokens the next run has. */
static int64_t next_chunk(const conform_form *f, int64_t done) {
    int64_t left = f->n - done, batch = f->n_batch, take = f->chunk > 0 ? f->chunk : batch;
    if (f->chunk < 0)
        take = left <= -f->chunk ? 1 : left + f->chunk < batch ? left + f->chunk : batch;
    take = take < batch ? take : batch;
    return take < left ? take : left;
}

static ggl_status set_input(ggl_sched *s, const conform_input *in, const char *data, int64_t n,
                            ggl_error *err) {
    return ggl_sched_set(s, in->name, data, (size_t)(n * in->count) * 4, n, err);
}

/* Runs the batch in pieces, and collects the outputs. */
static ggl_status run_chunks(const conform_build *c, ggl_sched *s, conform_output *out,
                             ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int64_t done = 0, n; done < c->f.n && st == GGL_OK; done += n) {
        n = next_chunk(&c->f, done);
        for (int i = 0; i < c->n_inputs && st == GGL_OK; i++) {
            const conform_input *in = &c->input[i];
            const char *data =
                (const char *)in->data + (in->batched ? (size_t)(done * in->count) * 4 : 0);
            if (ggl_graph_find_input(c->g, in->name)->needed)
                st = set_input(s, in, data, in->batched ? n : 1, err);
        }
        if (st == GGL_OK)
            st = ggl_sched_run(s, n, NULL, 0, err);
        if (st == GGL_OK)
            memcpy(out->y + done * out->row, ggl_sched_output(s, 0),
                   (size_t)(n * out->row) * sizeof *out->y);
    }
    return st;
}

/* Returns the index of the backend for a group: 1 is the reference. */
static int place_alone(void *ctx, int group, const char *weight) {
    (void)ctx;
    (void)weight;
    return group == CASE_OWN ? 0 : 1;
}

/* Lets the caches' rows lie in pages in the form's random order. */
static ggl_status mix_pages(const conform_build *c, ggl_sched *s, ggl_error *err) {
    const int64_t n = ggl_graph_n_pages(c->g);
    uint64_t seed = c->f.pages;
    assert(ggl_graph_get_params(c->g)->n_stage_slots ==
           0); /* whose pages have numbers of their own */
    int32_t *page = calloc((size_t)n + 1, sizeof *page);
    if (!page)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = (int64_t)(conform_draw(&seed) % (uint64_t)(i + 1));
        page[i] = page[k];
        page[k] = (int32_t)i;
    }
    ggl_status st =
        n && c->f.pages ? ggl_sched_set(s, "page", page, (size_t)n * sizeof *page, 1, err) : GGL_OK;
    free(page);
    return st;
}

static ggl_status run_graph(conform_build *c, ggl_backend *b, ggl_backend *reference,
                            conform_output *out, ggl_error *err) {
    ggl_backend *both[2] = {b, reference};
    ggl_sched *s = NULL;
    const ggl_sched_params p = {.size = sizeof p,
                                .backend = both,
                                .n_backends = b == reference ? 1 : 2,
                                .place = c->f.alone && b != reference ? place_alone : NULL};
    ggl_status st = ggl_sched_new(&s, c->g, &p, err);
    if (st == GGL_OK)
        st = ggl_sched_alloc(s, err);
    if (st == GGL_OK)
        st = mix_pages(c, s, err);
    if (st == GGL_OK && !(out->y = calloc((size_t)(out->n * out->row) + 1, sizeof *out->y)))
        st = ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        st = run_chunks(c, s, out, err);
    ggl_sched_free(s);
    return st;
}

/* Builds and runs a form on b; NULL: on the reference itself. */
static ggl_status run_form(const conform_case *info, const conform_form *form, ggl_backend *b,
                           ggl_backend *reference, bool flush, conform_output *out,
                           ggl_error *err) {
    conform_build c;
    *out = (conform_output){.n = form->n};
    ggl_status st = conform_build_graph(&c, info, form, flush, err);
    if (st == GGL_OK) {
        const ggl_tensor *y = ggl_graph_get_output(c.g, 0);
        out->row = ggl_count(y);
        out->about = c.about;
        memcpy(out->ne, y->ne, sizeof out->ne);
        count_ops(c.g, out->covers);
        conform_say(info, &c, out->text, sizeof out->text);
        st = ggl_graph_fold(c.g, reference, err);
    }
    out->built = st == GGL_OK;
    out->halves = b && strstr(b->description, " matrix");
    if (out->built && b)
        out->refused = conform_refusal(info, c.g, b, &out->refused_op, &out->by_body);
    if (out->built && !out->refused)
        st = run_graph(&c, b ? b : reference, reference, out, err);
    conform_build_fini(&c);
    if (st != GGL_OK)
        conform_output_fini(out);
    return st;
}

ggl_status conform_run(const conform_case *info, const conform_form *form, ggl_backend *b,
                       conform_output *out, ggl_error *err) {
    ggl_backend *reference = NULL;
    *out = (conform_output){0};
    ggl_status st = ggl_backend_open(&reference, "reference", NULL, err);
    if (st == GGL_OK)
        st = run_form(info, form, b, reference, false, out, err);
    ggl_backend_close(reference);
    return st;
}

ggl_status conform_run_on(const conform_case *info, const conform_form *form, const char *backend,
                          const ggl_backend_params *params, conform_output *out, ggl_error *err) {
    ggl_backend *b = NULL;
    *out = (conform_output){0};
    ggl_status st = ggl_backend_open(&b, backend, params, err);
    if (st == GGL_OK)
        st = conform_run(info, form, b, out, err);
    ggl_backend_close(b);
    return st;
}

void conform_output_fini(conform_output *out) {
    free(out->y);
    out->y = NULL;
}

/* --- comparing -------------------------------------------------------------------------------- */

static double largest_of(const conform_output *o) {
    double largest = 0;
    for (int64_t i = 0; i < o->n * o->row; i++)
        largest = isfinite(o->y[i]) ? fmax(largest, fabs((double)o->y[i])) : largest;
    return largest;
}

/* How an error is measured: relative to `scale`, or, with by_element, to the expected value. The
 * latter is for values of very different orders, where each result depends only on its own few
 * operands. */
typedef struct measure {
    double bound, scale, least;
    bool by_element;
} measure;

static measure measure_of(const conform_case *info, const conform_form *form,
                          const conform_output *got, const conform_output *want) {
    bool tiny = form->values == CONFORM_TINY;
    return (measure){.bound = conform_bound(info, form, got->halves),
                     .scale = fmax(largest_of(want), want->about),
                     .least = tiny ? (double)FLT_MIN : 0,
                     .by_element = want->about <= 0 && (tiny || form->values == CONFORM_HUGE)};
}

/* Returns the error as a share of what is allowed. */
static double share_of(const measure *m, float got, float want) {
    if (got == want || (isnan(got) && isnan(want)))
        return 0;
    double may = m->bound * (m->by_element ? fabs((double)want) : m->scale);
    may = m->bound > 0 ? may + m->least : 0;
    double off = fabs((double)got - (double)want);
    return isfinite(off) && may > 0 && isfinite(may) ? off / may : INFINITY;
}

/* Writes "element [5, 1] of the third", the place of r->at. */
static void say_where(const conform_result *r, const conform_output *o, char *buf, size_t size) {
    int64_t in_row = r->at % o->row, at[3];
    for (int d = 0; d < 3; d++) {
        at[d] = in_row % o->ne[d];
        in_row /= o->ne[d];
    }
    int n_dims = o->ne[2] > 1 ? 3 : o->ne[1] > 1 ? 2 : 1;
    int n = snprintf(buf, size, "[%" PRId64, at[0]);
    for (int d = 1; d < n_dims && n > 0 && (size_t)n < size; d++)
        n += snprintf(buf + n, size - (size_t)n, ", %" PRId64, at[d]);
    if (n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, "] of item %" PRId64, r->at / o->row);
}

/* Sets r->text for a wrong result. */
static void say_wrong(conform_result *r, const conform_output *want) {
    char where[96];
    say_where(r, want, where, sizeof where);
    snprintf(r->text, sizeof r->text,
             "%" PRId64 " of %" PRId64
             " elements; element %s is %.9g, the reference has %.9g (seed %" PRIu64 ")",
             r->n_wrong, r->count, where, (double)r->got, (double)r->want, r->form.seed);
}

conform_outcome conform_compare(const conform_case *info, const conform_form *form,
                                const conform_output *got, const conform_output *want,
                                const conform_output *flushed, conform_result *r) {
    const measure m = measure_of(info, form, got, want);
    *r = (conform_result){.form = *form, .count = want->n * want->row, .by_body = got->by_body};
    for (int64_t i = 0; i < r->count; i++) {
        double share = share_of(&m, got->y[i], want->y[i]);
        if (flushed)
            share = fmin(share, share_of(&m, got->y[i], flushed->y[i]));
        r->n_wrong += share > 1;
        if (share <= r->share)
            continue;
        r->share = share;
        r->at = i;
        r->got = got->y[i];
        r->want = want->y[i];
    }
    memcpy(r->form_text, want->text, sizeof r->form_text);
    if (r->share > 1)
        say_wrong(r, want);
    return r->outcome = r->share > 1 ? CONFORM_WRONG : CONFORM_RIGHT;
}

/* conform_check_form with the output left in *got. Where rows lie is a matter of the backend only,
 * so those of b are mixed and those of the reference are not. */
static conform_outcome check(const conform_case *info, const conform_form *form, ggl_backend *b,
                             ggl_backend *reference, conform_result *r, conform_output *got) {
    conform_output want = {0}, flushed = {0};
    ggl_error err = {0};
    bool tiny = form->values == CONFORM_TINY;
    conform_form mixed = *form;
    mixed.pages = form->seed;
    *r = (conform_result){.form = *form, .outcome = CONFORM_INVALID};
    ggl_status st = run_form(info, &mixed, b, reference, false, got, &err);
    memcpy(r->form_text, got->text, sizeof r->form_text);
    if (got->refused) {
        r->outcome = CONFORM_REFUSED;
        snprintf(r->text, sizeof r->text, "%s%s%s",
                 strcmp(got->refused_op, conform_op_name(info)) ? got->refused_op : "",
                 strcmp(got->refused_op, conform_op_name(info)) ? ": " : "", got->refused);
        return r->outcome;
    }
    if (st != GGL_OK && got->built && st != GGL_NOMEM)
        r->outcome = CONFORM_FAILED;
    if (st == GGL_OK)
        st = run_form(info, form, NULL, reference, false, &want, &err);
    if (st == GGL_OK && tiny)
        st = run_form(info, form, NULL, reference, true, &flushed, &err);
    if (st == GGL_OK)
        conform_compare(info, form, got, &want, tiny ? &flushed : NULL, r);
    else
        snprintf(r->text, sizeof r->text, "%.*s", CONFORM_TEXT - 1, err.msg);
    conform_output_fini(&want);
    conform_output_fini(&flushed);
    return r->outcome;
}

conform_outcome conform_check_keep(const conform_case *info, const conform_form *form,
                                   ggl_backend *b, conform_result *r, conform_output *got) {
    ggl_backend *reference = NULL;
    ggl_error err = {0};
    *got = (conform_output){0};
    *r = (conform_result){.form = *form, .outcome = CONFORM_INVALID};
    if (ggl_backend_open(&reference, "reference", NULL, &err) == GGL_OK)
        check(info, form, b, reference, r, got);
    else
        snprintf(r->text, sizeof r->text, "%.*s", CONFORM_TEXT - 1, err.msg);
    ggl_backend_close(reference);
    return r->outcome;
}

conform_outcome conform_check_form(const conform_case *info, const conform_form *form,
                                   ggl_backend *b, conform_result *r) {
    conform_output got;
    conform_outcome outcome = conform_check_keep(info, form, b, r, &got);
    conform_output_fini(&got);
    return outcome;
}

conform_outcome conform_check(const conform_case *info, int variant, ggl_backend *b,
                              conform_result *r) {
    conform_form f = conform_variant(info, variant);
    return conform_check_form(info, &f, b, r);
}
