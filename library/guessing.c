#include "guessing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"
#include "ggl/internal/show.h"

struct llm_guessing {
    llm_guess **guess; /* [n] */
    const llm_guesser **guesser;
    int n;
    llm_model *draft;      /* NULL: the text is looked up, or the model's own layers guess */
    llm_session *session;  /* of the draft, or of the first of these layers */
    llm_heard *heard;      /* what it reads */
    llm_draft_layer *more; /* [n_more]: the layers after it */
    int n_more;
    llm_placement *own; /* of the draft; NULL: the target's */
};

int64_t llm_guessing_n_max(const llm_guessing_choice *choice) {
    return choice->lookup || choice->draft || choice->own ? choice->n_max : 0;
}

/* --- the draft -------------------------------------------------------------------------------- */

static bool is_placed(const llm_guessing_choice *c) {
    return c->placement.devices || c->placement.n_gpu_layers_given;
}

static ggl_status open_file(llm_model **out, const llm_guessing_choice *c, const llm_model *target,
                            const llm_loading *loading, ggl_error *err) {
    llm_loading l = *loading;
    l.path = c->draft;
    l.target = llm_model_file(target);
    l.type = NULL;
    l.model.arch_path = NULL;
    l.model.ignore = (llm_arch_ignore){.is_fixed = true};
    l.model.n_override = 0;
    l.model.mtp = NULL;
    return llm_load_named(out, &l, err);
}

/* Opens the file without the data of its tensors, silently. */
static ggl_status open_sizes(llm_model **out, const llm_guessing_choice *c, const llm_model *target,
                             const llm_loading *loading, ggl_error *err) {
    ggl_gguf_params how = {.size = sizeof how};
    llm_loading l = *loading;
    if (l.model.gguf)
        how = *l.model.gguf;
    how.meta_only = true;
    l.model.gguf = &how;
    l.note = NULL;
    l.progress = NULL;
    return open_file(out, c, target, &l, err);
}

/* True if the model guesses from rows of another one. */
static bool reads_rows(const llm_model *draft) {
    return draft && llm_arch_is_draft(llm_model_arch(draft));
}

static void missing(void *ctx, const char *name) {
    (void)ctx, (void)name;
}

/* Returns which layers of another model a descriptor's input is from. Tensors of that model are missing here. */
static int taps_of(const llm_model *m, int32_t *tap) {
    ggl_graph_params gp = ggl_graph_default();
    const llm_arch_params ap = {.size = sizeof ap,
                                .only = "guess",
                                .n_ctx = 64,
                                .ignore = {.is_fixed = true},
                                .missing = missing};
    const llm_arch_source source = llm_arch_source_gguf(llm_model_file(m));
    llm_arch_result r;
    ggl_error ignored;
    gp.n_pos = 64;
    gp.n_batch = 1;
    ggl_graph *g = ggl_graph_new(&gp);
    const ggl_status st =
        g ? llm_arch_build(llm_model_arch(m), &source, &ap, g, &r, &ignored) : GGL_NOMEM;
    const int n = st == GGL_OK ? r.n_taps : 0;
    if (n > 0)
        memcpy(tap, r.tap, (size_t)n * sizeof *tap);
    if (g)
        llm_arch_result_fini(&r);
    ggl_graph_free(g);
    return n;
}

int llm_guessing_taps(const llm_guessing_choice *c, const llm_model *target,
                      const llm_loading *loading, int32_t *tap) {
    llm_model *m = NULL;
    ggl_error ignored;
    if (!c->draft)
        return 0;
    const bool is_open = open_sizes(&m, c, target, loading, &ignored) == GGL_OK;
    const int n = is_open && reads_rows(m) ? taps_of(m, tap) : 0;
    llm_model_free(m);
    return n;
}

static llm_session_params session_params(const llm_guessing_choice *c, const llm_model *draft,
                                         const llm_guessing_target *t) {
    llm_session_params sp = t->session;
    sp.n_ctx = c->n_ctx ? c->n_ctx : t->n_ctx;
    sp.n_pool = 0;
    sp.n_slots = t->n_sequences;
    sp.n_rows = reads_rows(draft) ? c->n_max : 1; /* it may guess in blocks */
    sp.embeddings = sp.rows = false;
    sp.tap = NULL;
    sp.n_taps = 0;
    sp.only = c->own || reads_rows(draft) ? "guess" : NULL;
    sp.other = reads_rows(draft) ? t->model : NULL;
    sp.repack_cache = NULL;
    sp.adapter = NULL;
    sp.n_adapters = 0;
    return sp;
}

/* How many sessions guess: that one, and one for each further layer. */
static int n_guess_sessions(const llm_guessing_choice *c, const llm_model *draft,
                            const llm_session *s) {
    return c->own || reads_rows(draft) ? llm_session_built(s)->n_guess_layers : 1;
}

/* Checks a draft without a tokenizer, which reads the model's tokens: both have as many, if the draft's file tells that. */
static ggl_status check_n_tokens(const llm_guessing *g, const llm_guessing_choice *c,
                                 const llm_guessing_target *t, ggl_error *err) {
    const ggl_gguf *file = llm_model_file(g->draft);
    char key[256];
    ggl_str arch;
    int64_t n = 0;
    if (ggl_gguf_get_string(file, "general.architecture", &arch, err) != 1)
        return GGL_FORMAT; /* it is there, as the model is open */
    snprintf(key, sizeof key, "%.*s.vocab_size", (int)ggl_utf8_cut(arch.s, arch.n, 200), arch.s);
    const int found = ggl_gguf_get_integer(file, key, &n, err);
    if (found < 0)
        return GGL_FORMAT;
    const int64_t n_model = t->tokenizer ? llm_tokenizer_n_vocab(t->tokenizer) : n;
    return found == 0 || n == n_model
               ? GGL_OK
               : ggl_fail(err, GGL_UNSUPPORTED,
                          "%s %s: it guesses for a model of %" PRId64
                          " tokens, and this one has %" PRId64 ": it is for another model",
                          c->name, c->draft, n, n_model);
}

/* Opens the draft's file, and compares its vocabulary. */
static ggl_status open_draft(llm_guessing *g, const llm_guessing_choice *c,
                             const llm_guessing_target *t, ggl_error *err) {
    const llm_tokenizer *own = NULL;
    ggl_status st = open_file(&g->draft, c, t->model, &t->loading, err);
    if (st == GGL_OK && reads_rows(g->draft) &&
        !ggl_gguf_find(llm_model_file(g->draft), "tokenizer.ggml.tokens"))
        return check_n_tokens(g, c, t, err);
    if (st == GGL_OK)
        st = llm_model_tokenizer(g->draft, &own, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", c->name);
    if (!t->tokenizer)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: there is no tokenizer for the model, so it is unknown whether "
                        "the draft model has the same tokens",
                        c->name);
    st = llm_draft_fits(t->tokenizer, own, err);
    return st == GGL_OK ? st : ggl_within(err, st, "%s %s", c->name, c->draft);
}

/* A draft has no text to read apart from the prompt, and knows nothing of one that the model has read. */
static ggl_status check_reads_no_text(const llm_guessing *g, const llm_guessing_choice *c,
                                      const llm_guessing_target *t, ggl_error *err) {
    if (!llm_arch_reads_text(llm_model_arch(t->model)) &&
        !(g->draft && llm_arch_reads_text(llm_model_arch(g->draft))))
        return GGL_OK;
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s: models that read a text and write another are not guessed for by a "
                    "model; guesses from the text work (lookup)",
                    c->name);
}

/* Makes and allocates a session of the draft, or of a layer that guesses. */
static ggl_status make_session(llm_session **out, llm_placement *p, const llm_guessing_choice *c,
                               const llm_guessing_target *t, const llm_model *m,
                               llm_session_params *sp, ggl_error *err) {
    ggl_status st = llm_placement_session(p, out, m, sp, err);
    if (st != GGL_OK)
        return st;
    if (t->placed)
        t->placed(t->ctx, p, *out);
    st = llm_session_alloc(*out, err);
    return st == GGL_OK ? st : ggl_within(err, st, "%s", c->name);
}

/* Opens the layers that guess after the first one, or what reads the places of a block in turn. */
static ggl_status open_more(llm_guessing *g, const llm_guessing_choice *c,
                            const llm_guessing_target *t, ggl_error *err) {
    const int n = n_guess_sessions(c, g->draft, g->session) - 1;
    llm_session_params sp = session_params(c, g->draft, t);
    const bool in_turn = llm_session_built(g->session)->guess_in_turn;
    ggl_status st = GGL_OK;
    g->more = ggl_calloc((size_t)n + 1, sizeof *g->more);
    if (!g->more)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int k = 0; k < n && g->n_more < LLM_GUESS_MOST - 1 && st == GGL_OK; k++) {
        llm_draft_layer *l = &g->more[g->n_more++];
        llm_session *before = k ? g->more[k - 1].session : g->session;
        sp.guess_layer = k + 1;
        st = make_session(&l->session, g->own ? g->own : t->placement, c, t,
                          c->own ? t->model : g->draft, &sp, err);
        if (st == GGL_OK && llm_session_built(l->session)->guess_apart)
            l->heard = g->heard;
        else if (st == GGL_OK && !in_turn)
            st = llm_heard_new(&l->heard, before, err);
    }
    return st;
}

static ggl_status open_session(llm_guessing *g, const llm_guessing_choice *c,
                               const llm_guessing_target *t, bool *misused, ggl_error *err) {
    llm_session_params sp = session_params(c, g->draft, t);
    llm_placement *p = t->placement;
    ggl_status st = GGL_OK;
    if (!llm_placement_is_cpu_only(p) || is_placed(c)) {
        st = llm_placement_new(&g->own, &c->placement, llm_placement_params(p), err);
        p = g->own;
    }
    if (st == GGL_OK)
        st = make_session(&g->session, p, c, t, c->own ? t->model : g->draft, &sp, err);
    *misused = !g->session && (st == GGL_USAGE || st == GGL_NOT_FOUND);
    return st;
}

static void add_memory(const llm_session *s, bool follows, double *fixed, double *row) {
    ggl_memory m;
    for (int i = 0; ggl_sched_memory(llm_session_sched(s), i, &m); i++) {
        *(follows ? row : fixed) += (double)m.stores_rows;
        *fixed += (double)m.weights_copied + (double)m.weights_repacked + (double)m.stores_states +
                  (double)m.arena + (double)m.io;
    }
}

/* Bytes that are kept of a token of the target until the draft has read it. */
static double heard_row(const llm_session *s) {
    const int64_t n = llm_session_n_feature(s) ? llm_session_n_feature(s) : llm_session_n_row(s);
    return n > 0 ? (double)n * sizeof(float) + sizeof(int32_t) : 0;
}

void llm_guessing_memory(const llm_guessing_choice *c, const llm_guessing_target *t, double *fixed,
                         double *row) {
    llm_model *m = NULL;
    llm_session *s = NULL;
    llm_placement *p = NULL;
    ggl_error ignored; /* llm_guessing_open reports it */
    *fixed = *row = 0;
    if ((!c->draft && !c->own) || is_placed(c))
        return;
    llm_session_params sp;
    llm_placement_choice quiet = c->placement;
    quiet.note = quiet.measured = NULL;
    const bool is_open = c->own || open_file(&m, c, t->model, &t->loading, &ignored) == GGL_OK;
    sp = session_params(c, m, t);
    int n_layers = is_open && llm_placement_new(&p, &quiet, llm_placement_params(t->placement),
                                                &ignored) == GGL_OK;
    int64_t n_ctx = 1;
    double heard = 0;
    for (sp.guess_layer = 0; sp.guess_layer < n_layers; sp.guess_layer++) {
        if (llm_placement_session(p, &s, c->own ? t->model : m, &sp, &ignored) != GGL_OK)
            break;
        add_memory(s, c->n_ctx == 0, fixed, row);
        n_ctx = llm_session_n_ctx(s);
        if (sp.guess_layer == 0)
            heard = heard_row(s) * t->n_sequences;
        n_layers = n_guess_sessions(c, m, s);
        llm_session_free(s);
    }
    *row = *row / (double)n_ctx + heard;
    (void)llm_placement_close(p, NULL);
    llm_model_free(m);
}

/* --- both ------------------------------------------------------------------------------------- */

static ggl_status open_guessers(llm_guessing *g, const llm_guessing_choice *c, ggl_error *err) {
    llm_guess_params gp = llm_guess_default();
    gp.n_max = c->n_max;
    gp.n_min = c->n_min;
    gp.always = c->always;
    g->guess = ggl_calloc((size_t)g->n, sizeof *g->guess);
    g->guesser = ggl_calloc((size_t)g->n, sizeof *g->guesser);
    if (!g->guess || !g->guesser)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = GGL_OK;
    for (int i = 0; i < g->n && st == GGL_OK; i++) {
        const llm_draft_params dp = {.size = sizeof dp,
                                     .session = g->session,
                                     .slot = i,
                                     .p_min = c->p_min,
                                     .heard = g->heard,
                                     .more = g->more,
                                     .n_more = g->n_more};
        st = c->lookup ? llm_guess_lookup(&g->guess[i], &gp, err)
                       : llm_guess_draft(&g->guess[i], &gp, &dp, err);
        if (st == GGL_OK)
            g->guesser[i] = llm_guess_guesser(g->guess[i]);
    }
    return st;
}

ggl_status llm_guessing_open(llm_guessing **out, const llm_guessing_choice *c,
                             const llm_guessing_target *t, bool *misused, ggl_error *err) {
    bool unused;
    misused = misused ? misused : &unused;
    *misused = false;
    *out = NULL;
    if (llm_guessing_n_max(c) == 0)
        return GGL_OK;
    llm_guessing *g = ggl_calloc(1, sizeof *g);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    g->n = t->n_sequences;
    ggl_status st = c->draft ? open_draft(g, c, t, err) : GGL_OK;
    if (st == GGL_OK && (c->draft || c->own))
        st = check_reads_no_text(g, c, t, err);
    if (st == GGL_OK && (c->draft || c->own))
        st = open_session(g, c, t, misused, err);
    if (st == GGL_OK && (c->own || reads_rows(g->draft)))
        st = llm_heard_new(&g->heard, t->running, err);
    if (st == GGL_OK && (c->draft || c->own))
        st = open_more(g, c, t, err);
    if (st == GGL_OK)
        st = open_guessers(g, c, err);
    if (st == GGL_USAGE && g->heard && c->draft) /* its rows are of another length */
        st = ggl_within(err, GGL_UNSUPPORTED, "%s %s", c->name, c->draft);
    if (st == GGL_OK)
        *out = g;
    else
        llm_guessing_close(g);
    return st;
}

void llm_guessing_follow(llm_guessing *g, llm_session *running) {
    if (g && g->heard)
        llm_heard_follow(g->heard, running);
}

void llm_guessing_pause(llm_guessing *g, bool is_paused) {
    if (g && g->heard)
        llm_heard_pause(g->heard, is_paused);
}

void llm_guessing_close(llm_guessing *g) {
    if (!g)
        return;
    for (int i = 0; i < g->n && g->guess; i++)
        llm_guess_free(g->guess[i]);
    ggl_free(g->guess);
    ggl_free((void *)g->guesser);
    for (int k = g->n_more - 1; k >= 0; k--) {
        if (g->more[k].heard != g->heard)
            llm_heard_free(g->more[k].heard);
        llm_session_free(g->more[k].session);
    }
    ggl_free(g->more);
    llm_heard_free(g->heard);
    llm_session_free(g->session);
    (void)llm_placement_close(g->own, NULL); /* it writes no timeline */
    llm_model_free(g->draft);
    ggl_free(g);
}

const llm_guesser *const *llm_guessing_guessers(const llm_guessing *g) {
    return g ? g->guesser : NULL;
}

ggl_status llm_guessing_failed(const llm_guessing *g, ggl_error *err) {
    return g ? llm_guess_failed(g->guess[0], err) : GGL_OK;
}

int64_t llm_guessing_declined(const llm_guessing *g, int64_t *n_steps) {
    *n_steps = 0;
    return g ? llm_guess_declined(g->guess[0], n_steps) : 0;
}
