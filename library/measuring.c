/* How well a model predicts a text, and whether a backend computes it right. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "context.h"
#include "ggl/backends.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/params.h"
#include "measure/scores.h"
#include "measure/text_chunks.h"
#include "measure/verify.h"

/* Checks the caller's struct for the result before anything is computed for it. */
#define CHECK_RESULT(type, result, err)                                                            \
    ((result) ? GGL_WRITE_PARAMS(type, result, &(const type){.size = sizeof(type)}, err)           \
              : ggl_fail(err, GGL_USAGE, "result is NULL"))

/* --- perplexity ------------------------------------------------------------------------------- */

enum { LEAST_WINDOW = 4 };

/* What a call of llm_perplexity needs. */
typedef struct measurement {
    llm_context *c;
    llm_perplexity_params p;
    text_chunks text; /* without tokens if the base has them */
    logits_reader base;
    logits_writer save;
    int64_t n_window, n_chunks;
    const int32_t *token;
    scores *scores;
} measurement;

static ggl_status check_perplexity(const measurement *m, const char *text, ggl_error *err) {
    const llm_perplexity_params *p = &m->p;
    if (p->base ? text || p->save : !text)
        return ggl_fail(err, GGL_USAGE,
                        p->base ? "with base, which has a text, neither text nor save can be given"
                                : "llm_perplexity needs a text, or base");
    if (p->n_window != 0 && p->n_window < LEAST_WINDOW)
        return ggl_fail(err, GGL_USAGE, "n_window must be 0, or %d or more, but is %" PRId64,
                        LEAST_WINDOW, p->n_window);
    if (p->n_chunks < 0)
        return ggl_fail(err, GGL_USAGE, "n_chunks must be 0 or more, but is %" PRId64, p->n_chunks);
    if (!m->c->tokenizer)
        return ggl_fail(err, m->c->why_no_tokenizer.status, "%s", m->c->why_no_tokenizer.msg);
    return GGL_OK;
}

static ggl_status check_window(const measurement *m, ggl_error *err) {
    if (m->n_window > llm_session_n_ctx(m->c->session))
        return ggl_fail(err, GGL_LIMIT,
                        "a window has %" PRId64 " tokens, but the context only %" PRId64,
                        m->n_window, llm_session_n_ctx(m->c->session));
    return GGL_OK;
}

static ggl_status open_base(measurement *m, ggl_error *err) {
    const int64_t n_vocab = llm_session_n_vocab(m->c->session);
    const ggl_status st = llm_logits_open(&m->base, m->p.base, err);
    if (st != GGL_OK)
        return st;
    const logits_head *h = &m->base.head;
    if (h->n_vocab != n_vocab)
        return ggl_fail(err, GGL_USAGE,
                        "%s has a vocabulary of %" PRId64 ", but the model's is %" PRId64,
                        m->p.base, h->n_vocab, n_vocab);
    if (m->p.n_window != 0 && m->p.n_window != h->n_ctx)
        return ggl_fail(err, GGL_USAGE, "n_window is %" PRId64 ", but %s was written with %" PRId64,
                        m->p.n_window, m->p.base, h->n_ctx);
    m->n_window = h->n_ctx;
    m->n_chunks = h->n_chunk;
    m->token = m->base.token;
    return GGL_OK;
}

static ggl_status take_text(measurement *m, const char *text, size_t n, ggl_error *err) {
    const int64_t n_ctx = llm_session_n_ctx(m->c->session);
    m->n_window = m->p.n_window;
    if (m->n_window == 0)
        m->n_window = n_ctx < TEXT_CHUNK_SIZE ? n_ctx : TEXT_CHUNK_SIZE;
    m->text.n_ctx = m->n_window;
    const ggl_status st =
        llm_text_chunks_take(&m->text, m->c->tokenizer, (ggl_str){text, n}, false, err);
    if (st != GGL_OK)
        return st;
    if (m->text.n_chunk < 2)
        return ggl_fail(err, GGL_LIMIT,
                        "the text has %zu tokens; with windows of %" PRId64 " at least %" PRId64
                        " are needed",
                        m->text.tokens.n, m->n_window, 2 * m->n_window);
    m->n_chunks = m->text.n_chunk;
    m->token = m->text.tokens.id;
    return GGL_OK;
}

static bool on_progress(void *ctx, double n_done) {
    const measurement *m = ctx;
    return !m->p.progress || m->p.progress(m->p.user, (size_t)(n_done * (double)m->n_window),
                                           (size_t)(m->n_chunks * m->n_window));
}

static ggl_status run_windows(measurement *m, ggl_error *err) {
    const llm_perplexity_params *p = &m->p;
    const int most = llm_placement_params(m->c->placement)->n_threads;
    const logits_head head = {m->n_window, llm_session_n_vocab(m->c->session), m->n_chunks};
    const scores_params sp = {.session = m->c->session,
                              .token = m->token,
                              .bos = m->text.bos,
                              .n_ctx = m->n_window,
                              .n_chunk = m->n_chunks,
                              .n_threads = most > 0 ? most : ggl_backend_allowed_cpus(),
                              .save = p->save ? &m->save : NULL,
                              .base = p->base ? &m->base : NULL,
                              .base_path = p->base,
                              .progress = on_progress,
                              .ctx = m};
    ggl_status st = p->save ? llm_logits_begin(&m->save, p->save, &head, m->token, err) : GGL_OK;
    if (st == GGL_OK)
        st = llm_scores_new(&m->scores, &sp, err);
    while (st == GGL_OK && m->scores->chunk < m->n_chunks)
        st = llm_scores_next(m->scores, err);
    return st == GGL_OK && p->save ? llm_logits_end(&m->save, err) : st;
}

static llm_perplexity_result result_of(const measurement *m) {
    const ppl_stats *s = &m->scores->stats;
    const mean ppl = llm_ppl_value(s), kld = llm_ppl_kld(s);
    return (llm_perplexity_result){.n_window = m->n_window,
                                   .n_chunks = m->n_chunks,
                                   .n_scored = (int64_t)s->n,
                                   .nll = s->n > 0 ? s->nll / (double)s->n : 0,
                                   .ppl = ppl.value,
                                   .ppl_error = ppl.error,
                                   .kld = kld.value,
                                   .kld_error = kld.error,
                                   .same_top = llm_ppl_same_top(s).value};
}

static ggl_status measure(measurement *m, const char *text, size_t n, ggl_error *err) {
    ggl_status st = check_perplexity(m, text, err);
    if (st == GGL_OK)
        st = llm_text_chunks_find_bos(&m->text, m->c->tokenizer, err);
    if (st == GGL_OK)
        st = m->p.base ? open_base(m, err) : take_text(m, text, n, err);
    if (st == GGL_OK)
        st = check_window(m, err);
    if (st == GGL_OK && m->p.n_chunks > 0 && m->p.n_chunks < m->n_chunks)
        m->n_chunks = m->p.n_chunks;
    if (st == GGL_OK)
        st = llm_context_take(m->c, err);
    if (st == GGL_OK)
        st = llm_context_clear(m->c, err);
    if (st != GGL_OK)
        return st;
    ggl_error own;
    st = run_windows(m, err);
    const ggl_status cleared = llm_session_clear(m->c->session, 0, &own);
    return st == GGL_OK && cleared != GGL_OK ? ggl_fail(err, cleared, "%s", own.msg) : st;
}

ggl_status llm_perplexity(llm_context *c, const char *text, size_t n,
                          const llm_perplexity_params *params, llm_perplexity_result *result,
                          ggl_error *err) {
    measurement m = {.c = c, .p = {.size = sizeof m.p}, .text.bos = -1};
    llm_context_start(c);
    ggl_status st = GGL_READ_PARAMS(llm_perplexity_params, &m.p, params, err);
    if (st == GGL_OK)
        st = CHECK_RESULT(llm_perplexity_result, result, err);
    if (st == GGL_OK)
        st = measure(&m, text, n, err);
    if (st == GGL_OK) {
        const llm_perplexity_result r = result_of(&m);
        st = GGL_WRITE_PARAMS(llm_perplexity_result, result, &r, err);
    }
    llm_scores_free(m.scores);
    llm_logits_abort(&m.save);
    llm_logits_close(&m.base);
    llm_text_chunks_fini(&m.text);
    return st;
}

/* --- verification ----------------------------------------------------------------------------- */

enum { VERIFY_TOKENS = 8, MOST_VERIFY_TOKENS = 4096 };

typedef struct verification {
    llm_verify_params p;
    ggl_backend *fast, *reference;
    ggl_graph *graph;
    llm_arch_result arch;
    int32_t *token; /* [n] */
    size_t n;
    verify_result result;
} verification;

static ggl_status build(verification *v, const llm_context *c, ggl_error *err) {
    const llm_arch_source source = llm_arch_source_gguf(llm_model_file(c->model));
    const llm_arch_params ap = {.size = sizeof ap,
                                .ignore = llm_model_ignore(c->model),
                                .adapter = c->adapter,
                                .n_adapters = c->n_adapters};
    ggl_graph_params gp = ggl_graph_default();
    gp.n_pos = gp.n_batch = (int64_t)v->n;
    v->graph = ggl_graph_new(&gp);
    if (!v->graph)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = llm_arch_build(llm_model_arch(c->model), &source, &ap, v->graph, &v->arch, err);
    if (st == GGL_OK)
        st = ggl_graph_finish(v->graph, err);
    return st == GGL_OK ? ggl_graph_fold(v->graph, v->reference, err) : st;
}

static ggl_status set_tokens(verification *v, ggl_error *err) {
    for (size_t i = 0; i < v->n; i++) {
        const int64_t n_vocab = v->arch.n_vocab;
        v->token[i] =
            v->p.n > 0 ? v->p.id[i] : (int32_t)((uint32_t)i * 2654435761u % (uint64_t)n_vocab);
        if (v->token[i] < 0 || v->token[i] >= n_vocab)
            return ggl_fail(err, GGL_USAGE,
                            "token %" PRId32 " is not in the vocabulary of %" PRId64, v->token[i],
                            n_vocab);
    }
    return GGL_OK;
}

static ggl_status compare(verification *v, const llm_context *c, ggl_error *err) {
    const verify_watch watch = {v->p.progress, v->p.user};
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = v->p.n_threads};
    if (v->p.n > MOST_VERIFY_TOKENS || (v->p.n > 0 && !v->p.id))
        return ggl_fail(err, GGL_USAGE,
                        v->p.id ? "n is %zu, but at most %d tokens can be verified"
                                : "id is NULL; n is %zu",
                        v->p.n, MOST_VERIFY_TOKENS);
    v->n = v->p.n > 0 ? v->p.n : VERIFY_TOKENS;
    v->token = ggl_calloc(v->n, sizeof *v->token);
    ggl_status st = v->token
                        ? ggl_backend_open(&v->fast, v->p.device ? v->p.device : "cpu", &bp, err)
                        : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        st = ggl_backend_open(&v->reference, "reference", NULL, err);
    if (st == GGL_OK)
        st = build(v, c, err);
    if (st == GGL_OK)
        st = set_tokens(v, err);
    return st == GGL_OK ? llm_verify_graph(&v->result, v->graph, v->fast, v->reference, v->token,
                                           (int)v->n, &watch, err)
                        : st;
}

static void tell_node(const verification *v, const verify_node *n) {
    char text[160];
    const llm_verify_node node = {.text = ggl_node_text(n->node, text, sizeof text),
                                  .origin = n->node->origin ? n->node->origin : "",
                                  .what = n->what,
                                  .departure = n->departure,
                                  .token = n->token,
                                  .element = n->element,
                                  .got = n->got,
                                  .want = n->want};
    v->p.each(v->p.user, &node);
}

static llm_verify_result verified(const verification *v) {
    const verify_result *r = &v->result;
    llm_verify_result out = {.n_nodes = (int64_t)r->n,
                             .n_refused = (int64_t)r->n_refused,
                             .whole_departs = r->whole_departs,
                             .whole = r->whole,
                             .rounding = r->rounding,
                             .n_nan = (int64_t)r->n_nan_outputs};
    for (size_t i = 0; i < r->n; i++) {
        const bool departs = r->at[i].departure > 1;
        out.n_departed += departs;
        out.worst = fmax(out.worst, r->at[i].departure);
        if (v->p.each && (departs || v->p.all))
            tell_node(v, &r->at[i]);
    }
    return out;
}

ggl_status llm_verify(const llm_context *c, const llm_verify_params *params,
                      llm_verify_result *result, ggl_error *err) {
    verification v = {.p = {.size = sizeof v.p}, .result.first = -1};
    ggl_status st = GGL_READ_PARAMS(llm_verify_params, &v.p, params, err);
    if (st == GGL_OK)
        st = CHECK_RESULT(llm_verify_result, result, err);
    if (st == GGL_OK)
        st = compare(&v, c, err);
    if (st == GGL_OK) {
        const llm_verify_result r = verified(&v);
        st = GGL_WRITE_PARAMS(llm_verify_result, result, &r, err);
    }
    llm_verify_result_fini(&v.result);
    ggl_graph_free(v.graph);
    llm_arch_result_fini(&v.arch);
    ggl_backend_close(v.fast);
    ggl_backend_close(v.reference);
    ggl_free(v.token);
    return st;
}
