/* What each type costs: the error of encoding, from the weights alone, times how much an error of this
 * tensor counts, from runs on a text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "budget_impl.h"
#include "common/amounts.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/report.h"
#include "common/sha256.h"
#include "ggl/alloc.h"
#include "ggl/internal/file.h"

enum { CHUNKS = 8 };

/* --- the file of what is known ---------------------------------------------------------------- */

/* The SHA-256 of all numbers of an importance matrix that are used; without one, what is done in its place. */
static void digest_importance(const budget *b, char hex[SHA256_HEX]) {
    sha256 s;
    bool any = false;
    llm_sha256_begin(&s);
    for (size_t i = 0; i < b->n; i++) {
        const imatrix_entry *e = b->tensor[i].entry;
        if (!e)
            continue;
        any = true;
        llm_sha256_add(&s, e->name.s, e->name.n + 1);
        llm_sha256_add(&s, e->sum2, (size_t)(e->n_col * e->n_mat) * sizeof *e->sum2);
        llm_sha256_add(&s, e->count, (size_t)e->n_mat * sizeof *e->count);
        if (e->sketch)
            llm_sha256_add(&s, e->sketch,
                           (size_t)(e->n_col * (e->n_sketch + 1)) * sizeof *e->sketch);
    }
    if (!any && !b->o->no_search)
        llm_sha256_add(&s, "search", 6);
    llm_sha256_end(&s, hex);
    if (!any && b->o->no_search)
        hex[0] = '\0';
}

static int other_file(const budget *b, const char *what) {
    return tool_error(b->tool, 1,
                      "--loss %s: was measured with another %s; name another file, or remove it",
                      b->o->file, what);
}

/* Compares what the file says with this run; takes over what only the file knows. */
static int compare_heads(budget *b, const loss_head *own) {
    loss_head *h = &b->known.head;
    if (strcmp(h->model, own->model) != 0)
        return other_file(b, "model");
    if (strcmp(h->imatrix, own->imatrix) != 0)
        return other_file(b, "importance matrix, or another choice of --imatrix and --no-search");
    if (!own->text[0] || !h->text[0]) {
        if (own->text[0])
            *h = *own;
        return -1;
    }
    if (strcmp(h->text, own->text) != 0)
        return other_file(b, "text");
    if (h->n_ctx != own->n_ctx || h->n_chunk != own->n_chunk)
        return tool_error(b->tool, 1,
                          "--loss %s: was measured with -c %" PRId64 " and %" PRId64
                          " chunks, not -c %" PRId64 " and %" PRId64
                          "; name another file, or remove it",
                          b->o->file, h->n_ctx, h->n_chunk, own->n_ctx, own->n_chunk);
    return -1;
}

static int read_known(budget *b) {
    ggl_error err = {0};
    loss_head own = {0};
    snprintf(own.model, sizeof own.model, "%016" PRIx64, ggl_gguf_digest(b->s->file));
    digest_importance(b, own.imatrix);
    if (b->trial) {
        const trial_text *t = trial_text_of(b->trial);
        memcpy(own.text, t->sha256, sizeof own.text);
        own.n_ctx = t->n_ctx;
        own.n_chunk = t->n_chunk;
    }
    if (b->o->file && ggl_file_exists(b->o->file)) {
        if (loss_file_read(&b->known, b->o->file, &err) != GGL_OK)
            return tool_error(b->tool, 1, "--loss: %s", err.msg);
        return compare_heads(b, &own);
    }
    if (b->o->file && !b->trial)
        tool_note(
            b->tool,
            "--loss %s: there is no such file yet, so the choice is made by the errors of the "
            "weights, which it will keep; --calibration TEXT measures what they cause",
            b->o->file);
    b->known.head = own;
    return -1;
}

static int save_known(budget *b) {
    ggl_error err = {0};
    if (!b->o->file || loss_file_write(&b->known, b->o->file, &err) == GGL_OK)
        return -1;
    return tool_error(b->tool, 1, "--loss: %s", err.msg);
}

/* --- errors ----------------------------------------------------------------------------------- */

/* Finds the error of a type in what is known, or from the weights. */
static ggl_status find_error(const budget *b, const loss_matrix *m, loss_record *r,
                             const ggl_type_info *type, double *error, ggl_error *err) {
    const double *known = loss_record_error(r, type);
    ggl_status st = GGL_OK;
    if (type == m->from) {
        *error = 0;
    } else if (known) {
        *error = *known;
    } else {
        st = loss_error(m, type, b->n_threads, error, err);
        if (st == GGL_OK)
            loss_record_add(r, type, *error);
    }
    return st;
}

static ggl_status find_errors(budget *b, budget_tensor *t, ggl_error *err) {
    loss_matrix m;
    loss_record *r = loss_list_get(&b->known, t->name, &t->record);
    if (r && r->probe &&
        (!llm_quant_type_usable(r->probe) || t->from->ne[0] % r->probe->block != 0))
        return ggl_fail(
            err, GGL_FORMAT,
            "--loss %s: '%s' was measured in %s, which cannot hold its rows of %" PRId64,
            b->o->file, t->name, r->probe->name, t->from->ne[0]);
    ggl_status st = r ? loss_matrix_init(&m, t->from, t->entry, !b->o->no_search, err)
                      : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st != GGL_OK)
        return st;
    for (int k = 0; st == GGL_OK && k < t->n; k++)
        st = find_error(b, &m, r, t->type[k], &t->error[k], err);
    /* one type for all budgets, noisy enough for its effect to be seen above rounding */
    t->probe = r->probe ? r->probe : ggl_type_find(llm_quant_fit("q3_k", t->from->ne[0]));
    if (st == GGL_OK)
        st = find_error(b, &m, r, t->probe, &t->probe_error, err);
    loss_matrix_fini(&m);
    return st;
}

static int find_all_errors(budget *b) {
    ggl_error err = {0};
    ggl_status st = GGL_OK;
    progress_begin("tensors", (double)b->n, "encoding");
    for (size_t i = 0; st == GGL_OK && i < b->n && !process_stopped; i++) {
        st = find_errors(b, &b->tensor[i], &err);
        progress_set((double)i + 1);
    }
    progress_end();
    if (process_stopped)
        return tool_error(b->tool, process_stop_code(), "interrupted; nothing was written");
    return st == GGL_OK ? -1 : tool_error(b->tool, 1, "%s", err.msg);
}

/* --- runs on the text ------------------------------------------------------------------------- */

/* Gives the trial's model a tensor with the weights that a type makes of it; NULL: its own. */
static ggl_status replace(const budget *b, const budget_tensor *t, const ggl_type_info *type,
                          ggl_error *err) {
    loss_matrix m;
    const ggl_gguf_tensor *to = trial_tensor(b->trial, t->name);
    if (!to || to->type != t->from->type || to->size != t->from->size)
        return ggl_fail(err, GGL_FORMAT, "tensor '%s' changed while the model was measured",
                        t->name);
    void *data = (void *)(uintptr_t)to->data; /* the trial reads the model into memory of its own */
    if (!type || type->type == t->from->type) {
        memcpy(data, t->from->data, to->size);
        return GGL_OK;
    }
    ggl_status st = loss_matrix_init(&m, t->from, t->entry, !b->o->no_search, err);
    if (st == GGL_OK)
        st = loss_replace(&m, type, b->n_threads, data, err);
    loss_matrix_fini(&m);
    return st;
}

/* Makes the groups as small as --passes, the most groups, allows. Each kind of tensor has at least
 * one group. */
static bool make_groups(const budget *b, size_t *first) {
    char stem[128];
    int64_t layer, n_layer = 0;
    size_t n;
    tensor_name *t = ggl_calloc(b->n, sizeof *t);
    for (size_t i = 0; t && i < b->n; i++) {
        t[i] = (tensor_name){b->tensor[i].name, (int)b->tensor[i].probe->type};
        tensor_stem(t[i].name, stem, &layer);
        n_layer = layer >= n_layer ? layer + 1 : n_layer;
    }
    bool made = t && tensor_groups(t, b->n, 1, first, &n);
    for (int64_t band = 2; made && b->o->n_pass && n > (size_t)b->o->n_pass && band <= n_layer;
         band++)
        made = tensor_groups(t, b->n, band, first, &n);
    ggl_free(t);
    return made;
}

static loss_record *record_of(budget *b, size_t i) {
    return &b->known.record[b->tensor[i].record];
}

/* True if the whole group was measured before. */
static bool is_known(budget *b, const size_t *first, size_t g) {
    for (size_t i = g; i < b->n; i++)
        if (first[i] == g && !record_of(b, i)->probe)
            return false;
    return true;
}

/* Runs the text with a group's tensors in their probes' types, and notes what it costs: each gets the
 * part of its error. */
static int measure_group(budget *b, const size_t *first, size_t g) {
    ggl_error err = {0};
    ggl_status st = GGL_OK;
    mean kl = {0};
    double error = 0;
    for (size_t i = g; st == GGL_OK && i < b->n; i++)
        if (first[i] == g) {
            st = replace(b, &b->tensor[i], b->tensor[i].probe, &err);
            error += b->tensor[i].probe_error;
        }
    int code =
        st == GGL_OK ? trial_run(b->trial, &kl, NULL) : tool_error(b->tool, 1, "%s", err.msg);
    for (size_t i = g; code < 0 && i < b->n; i++)
        if (first[i] == g) {
            loss_record *r = record_of(b, i);
            r->probe = b->tensor[i].probe;
            /* what is below the rounding of the base may come out negative */
            r->kl = error > 0 && kl.value > 0 ? kl.value * b->tensor[i].probe_error / error : 0;
            st = replace(b, &b->tensor[i], NULL, &err);
        }
    return code < 0 && st != GGL_OK ? tool_error(b->tool, 1, "%s", err.msg) : code;
}

/* Measures the groups that are not known, and keeps each result at once. */
static int measure_groups(budget *b, const size_t *first, double seconds) {
    char time[AMOUNT_TEXT];
    size_t n = 0, done = 0;
    int code = -1;
    for (size_t g = 0; g < b->n; g++)
        n += first[g] == g && !is_known(b, first, g);
    if (n == 0)
        return -1;
    if (b->o->n_pass && n > (size_t)b->o->n_pass)
        tool_note(b->tool, "--passes %" PRId64 " is too few: %zu passes are needed, and made",
                  b->o->n_pass, n);
    tool_say(b->tool,
             "measuring %zu tensors takes %zu passes over the text of %.1f s each: about %s", b->n,
             n, seconds, llm_amount_time(time, seconds * (double)n));
    progress_begin("passes", (double)n, "measuring");
    for (size_t g = 0; code < 0 && g < b->n; g++) {
        if (first[g] != g || is_known(b, first, g))
            continue;
        code = measure_group(b, first, g);
        done += code < 0;
        progress_set((double)done);
        if (code < 0)
            code = save_known(b);
    }
    progress_end();
    if (process_stopped)
        return tool_error(b->tool, process_stop_code(),
                          "interrupted after %zu of %zu passes; nothing was written%s%s", done, n,
                          b->o->file ? ", but the passes are kept in " : "",
                          b->o->file ? b->o->file : "");
    return code;
}

static int run_text(budget *b) {
    double seconds;
    size_t *first = ggl_calloc(b->n, sizeof *first);
    if (!first)
        return tool_error(b->tool, 1, "out of memory");
    progress_begin(NULL, 0, "running the model");
    int code = make_groups(b, first) ? trial_base(b->trial, &b->ppl_base, &seconds)
                                     : tool_error(b->tool, 1, "out of memory");
    progress_end();
    if (process_stopped)
        code = tool_error(b->tool, process_stop_code(), "interrupted; nothing was written");
    if (code < 0)
        code = measure_groups(b, first, seconds);
    ggl_free(first);
    return code;
}

/* An error that changes nothing measurable still counts a little, so that of two types the better one
 * is taken if it costs nothing. */
static void set_weights(budget *b) {
    const double least = 1e-9;
    b->measured = true;
    for (size_t i = 0; i < b->n; i++)
        b->measured = b->measured && record_of(b, i)->probe;
    for (size_t i = 0; b->measured && i < b->n; i++) {
        budget_tensor *t = &b->tensor[i];
        const double kl = record_of(b, i)->kl;
        t->weight = (kl > least ? kl : least) / (t->probe_error > 0 ? t->probe_error : 1);
    }
}

int budget_measure(budget *b) {
    const budget_options *o = b->o;
    const trial_params params = {.model = b->s->path,
                                 .text = o->text,
                                 .n_ctx = o->n_ctx,
                                 .n_chunk = o->n_chunk ? o->n_chunk : CHUNKS,
                                 .n_threads = b->n_threads};
    int code = o->text ? trial_open(&b->trial, b->tool, &params) : -1;
    if (code < 0)
        code = read_known(b);
    if (code < 0)
        code = find_all_errors(b);
    if (code < 0 && b->trial)
        code = run_text(b);
    if (code < 0)
        code = save_known(b);
    if (code < 0)
        set_weights(b);
    return code;
}

int budget_run(budget *b, mean *kl, mean *ppl) {
    ggl_error err = {0};
    ggl_status st = GGL_OK;
    progress_begin(NULL, 0, "running the choice");
    for (size_t i = 0; st == GGL_OK && i < b->n && !process_stopped; i++)
        st = replace(b, &b->tensor[i], b->tensor[i].type[b->tensor[i].chosen], &err);
    int code = st == GGL_OK ? trial_run(b->trial, kl, ppl) : tool_error(b->tool, 1, "%s", err.msg);
    progress_end();
    if (process_stopped)
        code = tool_error(b->tool, process_stop_code(), "interrupted; nothing was written");
    return code;
}
