/* Questions whose answer is one of several labels (ASK_CHOOSE): each is a message, after which its labels are compared. */
#include <inttypes.h>

#include "answer_impl.h"

/* The message: what is asked about, which all questions begin with, and the question. */
static void put_message(llm_json_out *out, const ask *a, const ask_question *q) {
    llm_json_put(out, a->query.s, a->query.n);
    llm_json_put_text(out, "\n\n---\n");
    llm_json_put(out, q->text.s, q->text.n);
}

/* A model without a chat template continues the question. */
static ggl_status plain_prompt(const ask *a, const ask_question *q, job_prompt *p, ggl_error *err) {
    llm_json_out out = {0};
    put_message(&out, a, q);
    llm_json_put_text(&out, "\nAnswer:");
    if (out.failed) {
        ggl_free(out.s);
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    }
    p->owned = out.s;
    p->text = (ggl_str){out.s, out.n};
    return GGL_OK;
}

/* Reasoning would come before the answer, so there is none. */
static ggl_status chat_prompt(const llm_chat *chat, const ask *a, const ask_question *q,
                              job_prompt *p, llm_chat_made *made, ggl_error *err) {
    static const json_value never = {.kind = JSON_BOOL};
    static const char name[] = "enable_thinking";
    const llm_chat_params how = {.end = LLM_CHAT_ASKS, .made = made};
    llm_talk *talk = NULL;
    llm_json_out out = {0};
    put_message(&out, a, q);
    ggl_status st = out.failed ? ggl_fail(err, GGL_NOMEM, "out of memory for a request")
                               : llm_talk_new(&talk, err);
    if (st == GGL_OK)
        st = llm_talk_add(talk, "user", (ggl_str){out.s, out.n}, err);
    if (st == GGL_OK)
        st = llm_talk_put(talk, (ggl_str){name, sizeof name - 1}, &never, err);
    if (st == GGL_OK)
        st = llm_chat_prompt(chat, talk, &how, &p->owned, &p->text.n, err);
    p->text.s = p->owned;
    llm_talk_free(talk);
    ggl_free(out.s);
    return st;
}

/* The labels as they follow the prompt. */
static ggl_status label_texts(const ask_question *q, bool with_space, ggl_str *text, char **owned,
                              ggl_error *err) {
    llm_json_out out = {0};
    for (size_t k = 0; k < q->n_labels; k++) {
        llm_json_put_text(&out, with_space ? " " : "");
        llm_json_put(&out, q->label[k].s, q->label[k].n);
    }
    *owned = out.s;
    if (out.failed)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    const char *s = out.s;
    for (size_t k = 0; k < q->n_labels; k++) {
        text[k] = (ggl_str){s, q->label[k].n + with_space};
        s += text[k].n;
    }
    return GGL_OK;
}

static ggl_status make_labels(job *j, const ask_question *q, job_prompt *p, const llm_spans *given,
                              bool is_chat, ggl_error *err) {
    const llm_tokenizer *t = server_tokenizer(j->server);
    llm_label_tokens tokens = {0};
    char *owned = NULL;
    ggl_str *text = ggl_calloc(q->n_labels, sizeof *text);
    ggl_status st = text ? label_texts(q, !is_chat, text, &owned, err)
                         : ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    if (st == GGL_OK)
        st = llm_label_tokens_read(&tokens, t, given, p->text,
                                   LLM_TOKENIZE_SPECIAL | (is_chat ? 0u : LLM_TOKENIZE_BOS),
                                   (size_t)j->x.facts->n_ctx, text, q->n_labels, err);
    if (st == GGL_LIMIT)
        j->n_too_long = (int64_t)tokens.n_whole;
    if (st == GGL_OK)
        st = llm_labels_new(&p->labels, tokens.label, q->n_labels, false, t,
                            (int32_t)j->x.facts->n_vocab, err);
    if (st == GGL_OK && !ggl_grow(&p->ids.id, &p->ids.cap, tokens.n_prompt, sizeof *p->ids.id))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a request");
    for (size_t i = 0; st == GGL_OK && i < tokens.n_prompt; i++)
        p->ids.id[p->ids.n++] = tokens.whole[0].id[i];
    llm_label_tokens_fini(&tokens);
    ggl_free(owned);
    ggl_free(text);
    return st;
}

ggl_status job_choose_prompt(job *j, size_t i, const char **param, ggl_error *err) {
    const ask_question *q = &j->ask->question[i];
    const llm_chat *chat = server_chat(j->server);
    job_prompt *p = &j->prompt[i];
    llm_chat_made made = {0};
    llm_span all = {0};
    *param = "questions";
    ggl_status st =
        chat ? chat_prompt(chat, j->ask, q, p, &made, err) : plain_prompt(j->ask, q, p, err);
    all.to = p->text.n;
    const llm_spans given = {.at = &all, .n = 1, .cap = 1};
    if (st == GGL_OK)
        st = make_labels(j, q, p, chat ? &made.given : &given, chat != NULL, err);
    p->changes = made.changes;
    llm_chat_made_fini(&made);
    const int64_t n = (int64_t)p->ids.n + (p->labels ? llm_labels_depth(p->labels) : 0),
                  n_ctx = j->x.facts->n_ctx;
    if (st == GGL_OK && n > n_ctx) {
        j->n_too_long = n;
        st = ggl_fail(err, GGL_LIMIT,
                      "a question of %zu tokens with its input, and the longest of its labels, "
                      "exceed the context of %" PRId64 " tokens; send less, or start the server "
                      "with a larger -c",
                      p->ids.n, n_ctx);
    }
    return st;
}

void seat_choose_params(const seat *s, llm_sequence_params *p) {
    p->n_max = 0;
    p->no_guesses = true;
    p->labels = seat_prompt(s)->labels;
}

ggl_status seat_end_choose(const seat *s, ggl_error *err) {
    const job *j = s->job;
    const llm_labels *l = seat_prompt(s)->labels;
    answer_choice *c = &j->x.choice[s->choice];
    const size_t n = (size_t)c->n_vectors;
    double *logprob = ggl_calloc(n, sizeof *logprob), *share = ggl_calloc(n, sizeof *share);
    const bool ok = logprob && share;
    for (size_t k = 0; k < n && ok; k++)
        logprob[k] = llm_labels_logprob(l, k);
    if (ok)
        llm_labels_shares(logprob, NULL, n, share);
    for (size_t k = 0; k < n && ok; k++)
        j->embedding[c->first_vector + (int64_t)k] = (float)share[k];
    ggl_free(logprob);
    ggl_free(share);
    return ok ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for an answer");
}
