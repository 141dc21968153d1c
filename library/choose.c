/* Which of several labels comes after a prompt. */
#include <inttypes.h>

#include "arrays.h"
#include "context.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/params.h"
#include "ggl/internal/pass.h"
#include "llm/internal/label_tokens.h"

/* The prompt as a text, and which of its stretches have no control tokens. */
typedef struct prompt {
    char *owned; /* of a conversation; NULL: it is the caller's text */
    ggl_str text;
    unsigned flags;
    llm_chat_made made;
} prompt;

static ggl_status read_prompt(prompt *p, const llm_context *c, const char *text, size_t n,
                              bool chat, ggl_error *err) {
    llm_talk *talk = NULL;
    *p = (prompt){.text = {text, n}, .flags = LLM_TOKENIZE_BOS | LLM_TOKENIZE_SPECIAL};
    if (!chat)
        return c->tokenizer ? GGL_OK : ggl_pass(err, &c->why_no_tokenizer);
    char *json = ggl_calloc(n + 1, 1);
    if (!json)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a conversation");
    for (size_t i = 0; i < n; i++)
        json[i] = text[i];
    p->flags = LLM_TOKENIZE_SPECIAL;
    ggl_status st = c->chat ? GGL_OK : ggl_pass(err, &c->why_no_chat);
    if (st == GGL_OK)
        st = llm_context_read_talk(c, json, &talk, err);
    if (st == GGL_OK)
        st = llm_context_format(c, talk, true, &p->owned, &p->text.n, &p->made, err);
    p->text.s = p->owned;
    llm_talk_free(talk);
    ggl_free(json);
    return st;
}

static ggl_status read_labels(llm_label_tokens *t, const llm_context *c, const prompt *p,
                              const char *const *label, const size_t *n_label, size_t n,
                              ggl_error *err) {
    ggl_status st = GGL_OK;
    ggl_str *text = ggl_calloc(n + 1, sizeof *text);
    if (!text)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu labels", n);
    for (size_t k = 0; k < n && st == GGL_OK; k++) {
        st = llm_need_array("label[..]", label[k], n_label[k], err);
        text[k] = (ggl_str){label[k], n_label[k]};
    }
    if (st == GGL_OK)
        st = llm_label_tokens_read(t, c->tokenizer, &p->made.given, p->text, p->flags,
                                   (size_t)llm_session_n_ctx(c->session), text, n, err);
    ggl_free(text);
    return st;
}

/* Empties all slots but the first, which runs the prompt, and lists them. */
static ggl_status free_slots(llm_context *c, int **spare, size_t *n_spare, ggl_error *err) {
    const int64_t n = llm_session_n_slots(c->session);
    ggl_status st = GGL_OK;
    *n_spare = (size_t)n - 1;
    *spare = ggl_calloc((size_t)n, sizeof **spare);
    if (!*spare)
        return ggl_fail(err, GGL_NOMEM, "out of memory for labels");
    for (int k = 1; k < n && st == GGL_OK; k++) {
        int64_t n_held;
        (*spare)[k - 1] = k;
        st = c->engine ? llm_engine_erase_slot(c->engine, k, &n_held, err)
                       : llm_session_clear(c->session, k, err);
    }
    return st;
}

static ggl_status run(llm_context *c, const llm_label_tokens *t, llm_labels *l, ggl_error *err) {
    int *spare = NULL;
    size_t n_spare = 0;
    if (t->n_prompt > (size_t)llm_session_n_ctx(c->session))
        return ggl_fail(err, GGL_LIMIT, "a prompt of %zu tokens exceeds the context of %" PRId64,
                        t->n_prompt, llm_session_n_ctx(c->session));
    ggl_status st = llm_context_take(c, err);
    if (st == GGL_OK)
        st = free_slots(c, &spare, &n_spare, err);
    if (st == GGL_OK)
        st = llm_context_run_prompt(c, t->whole[0].id, t->n_prompt, err);
    if (st == GGL_OK)
        st = llm_labels_run(l,
                            &(llm_labels_place){.session = c->session,
                                                .logits = c->rows,
                                                .spare = spare,
                                                .n_spare = n_spare,
                                                .is_cancelled = llm_context_is_cancelled,
                                                .ctx = c},
                            err);
    if (st != GGL_OK && c->is_own)
        llm_context_recover(c);
    ggl_free(spare);
    return st;
}

static ggl_status give(const llm_labels *l, size_t n, const llm_choose_params *p,
                       llm_choice *choice, ggl_error *err) {
    double *logprob = ggl_calloc(n, sizeof *logprob), *share = ggl_calloc(n, sizeof *share);
    size_t *n_tokens = ggl_calloc(n, sizeof *n_tokens);
    const bool ok = logprob && share && n_tokens;
    double mean = 0;
    for (size_t k = 0; k < n && ok; k++) {
        logprob[k] = llm_labels_logprob(l, k);
        n_tokens[k] = llm_labels_n(l, k);
    }
    if (ok)
        llm_labels_shares(logprob, p->per_token ? n_tokens : NULL, n, share);
    for (size_t k = 0; k < n && ok; k++) {
        choice[k] = (llm_choice){logprob[k], share[k], n_tokens[k]};
        mean += p->value ? p->value[k] * share[k] : 0;
    }
    if (ok && p->value && p->mean)
        *p->mean = mean;
    if (ok && p->ends)
        *p->ends = llm_labels_end(l);
    ggl_free(logprob);
    ggl_free(share);
    ggl_free(n_tokens);
    return ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for %zu labels", n);
}

ggl_status llm_choose(llm_context *c, const char *text, size_t n_text, const char *const *label,
                      const size_t *n_label, size_t n, const llm_choose_params *params,
                      llm_choice *choice, ggl_error *err) {
    llm_choose_params p = {0};
    prompt of = {0};
    llm_label_tokens t = {0};
    llm_labels *l = NULL;
    atomic_store(&c->cancelled, false);
    ggl_status st = params ? GGL_READ_PARAMS(llm_choose_params, &p, params, err) : GGL_OK;
    if (st == GGL_OK)
        st = llm_need_array("prompt", text, n_text, err);
    if (st == GGL_OK && n == 0)
        st = ggl_fail(err, GGL_USAGE, "llm_choose needs at least one label");
    if (st == GGL_OK && (!label || !n_label || !choice))
        st = ggl_fail(err, GGL_USAGE, "llm_choose needs label, n_label and choice");
    if (st == GGL_OK)
        st = llm_context_check_writes(c, false, err);
    if (st == GGL_OK)
        st = read_prompt(&of, c, text, n_text, p.chat, err);
    if (st == GGL_OK)
        st = read_labels(&t, c, &of, label, n_label, n, err);
    if (st == GGL_OK)
        st = llm_labels_new(&l, t.label, n, p.with_end, c->tokenizer,
                            (int32_t)llm_session_n_vocab(c->session), err);
    if (st == GGL_OK)
        st = run(c, &t, l, err);
    if (st == GGL_OK)
        st = give(l, n, &p, choice, err);
    llm_labels_free(l);
    llm_label_tokens_fini(&t);
    llm_chat_made_fini(&of.made);
    ggl_free(of.owned);
    return st;
}
