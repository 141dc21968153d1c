/* What requests use of a server: facts, and its mailbox, by which they reach the engine's thread. */
#include "server_impl.h"

const char *server_other(const server *s, ask_kind kind) {
    return s->other ? s->other(s->model_row, kind) : NULL;
}

int server_n_slots(const server *s) {
    return (int)llm_opened_session_params(s->ctx)->n_slots;
}

const server_facts *server_get_facts(const server *s) {
    return &s->facts;
}

const llm_chat *server_chat(const server *s) {
    return llm_opened_chat(s->ctx);
}

ggl_status server_find_task(const server *s, const char *task, const char *prompt_name,
                            int32_t *number, char **before, size_t *n_before, const char **param,
                            ggl_error *err) {
    const char *name = prompt_name ? prompt_name : task;
    *number = llm_find_task(s->ctx, task ? task : prompt_name);
    *param = "task";
    if (task && *number == 0)
        return ggl_fail(err, GGL_USAGE,
                        "the server has no adapter for the task \"%s\" (--lora opens some)", task);
    if (*number == 0)
        *number = llm_find_task(s->ctx, NULL);
    *param = "prompt_name";
    const ggl_status st = llm_embed_prompt(s->ctx, name, before, n_before, err);
    if (st == GGL_OK)
        *param = NULL;
    return st == GGL_NOT_FOUND ? GGL_USAGE : st;
}

const llm_head *server_head(const server *s) {
    return llm_opened_head(s->ctx);
}

ggl_status server_read_text(const server *s, ggl_str text, unsigned flags, llm_tokens *ids,
                            ggl_error *err) {
    return llm_embed_tokenize(s->ctx, text, flags, ids, err);
}

ggl_status server_cut_text(const server *s, llm_tokens *ids, ggl_error *err) {
    return llm_embed_cut(s->ctx, ids, NULL, 0, err);
}

ggl_status server_count_before(const server *s, const ask *a, ggl_str prompt, int64_t *n,
                               ggl_error *err) {
    const llm_embed_how how = {.prompt = prompt, .no_parse_special = a->no_parse_special};
    return llm_embed_count_before(s->ctx, &how, n, err);
}

ggl_status server_fill_query(const server *s, llm_tokens *ids, int32_t *n_seen, ggl_error *err) {
    return llm_fill_query(s->ctx, ids, n_seen, err);
}

const llm_tokenizer *server_tokenizer(const server *s) {
    return llm_opened_tokenizer(s->ctx);
}

const char *server_model_info(const server *s) {
    return s->model_info;
}

answers *server_answers(const server *s) {
    return s->answers;
}

const llm_vocab *server_vocab(server *s) {
    ggl_error err;
    ggl_os_mutex_lock(&s->vocab_lock);
    if (!s->vocab && llm_vocab_new(&s->vocab, llm_opened_tokenizer(s->ctx), &err) != GGL_OK)
        s->vocab = NULL;
    const llm_vocab *v = s->vocab;
    ggl_os_mutex_unlock(&s->vocab_lock);
    return v;
}

/* --- the mailbox ------------------------------------------------------------------------------ */

bool server_post(server *s, void (*fn)(void *ctx, llm_engine *e), void *ctx) {
    message *m = ggl_calloc(1, sizeof *m);
    if (!m)
        return false;
    *m = (message){.fn = fn, .ctx = ctx};
    ggl_os_mutex_lock(&s->lock);
    const bool taken = s->is_ready && !s->ends;
    if (taken) {
        *s->last = m;
        s->last = &m->next;
        ggl_os_cond_signal(&s->has_message);
    }
    ggl_os_mutex_unlock(&s->lock);
    if (!taken)
        ggl_free(m);
    return taken;
}

/* A message whose sender waits. */
typedef struct call {
    void (*fn)(void *ctx, llm_engine *e);
    void *ctx;
    os_mutex lock;
    os_cond is_done;
    bool done;
} call;

static void run_call(void *ctx, llm_engine *e) {
    call *c = ctx;
    c->fn(c->ctx, e);
    ggl_os_mutex_lock(&c->lock);
    c->done = true;
    ggl_os_cond_signal(&c->is_done);
    ggl_os_mutex_unlock(&c->lock);
}

bool server_on_engine(server *s, void (*fn)(void *ctx, llm_engine *e), void *ctx) {
    call c = {.fn = fn, .ctx = ctx};
    ggl_os_mutex_init(&c.lock);
    ggl_os_cond_init(&c.is_done);
    const bool posted = server_post(s, run_call, &c);
    ggl_os_mutex_lock(&c.lock);
    while (posted && !c.done)
        ggl_os_cond_wait(&c.is_done, &c.lock);
    ggl_os_mutex_unlock(&c.lock);
    ggl_os_cond_destroy(&c.is_done);
    ggl_os_mutex_destroy(&c.lock);
    return posted;
}
