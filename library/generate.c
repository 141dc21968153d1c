/* Generating text, piece by piece or into a callback. */
#include <inttypes.h>
#include <string.h>

#include "context.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/params.h"
#include "llm/internal/stop.h"
#include "llm/internal/talk.h"

/* A generation that llm_begin has started: its objects, and the text that was not returned yet. */
struct generation {
    llm_generate_params p;
    llm_stop *stop; /* NULL: no texts stop it */
    llm_grammar *grammar;
    llm_matcher *matcher;
    llm_finish finish; /* LLM_FINISH_NONE: more tokens can be generated */
    /* [n_waiting] bytes of text. The first n_ready are whole characters and can be returned; the first
     * n_given of these were returned, and must stay until the caller's next call. */
    char *waiting;
    size_t n_waiting, n_ready, n_given, cap;
};
typedef struct generation generation;

/* --- parameters ------------------------------------------------------------------------------- */

static llm_generate_params defaults(void) {
    const llm_sampler_params s = llm_sampler_default();
    return (llm_generate_params){.size = sizeof(llm_generate_params),
                                 .temp = s.temp,
                                 .top_k = s.top_k,
                                 .top_p = s.top_p,
                                 .min_p = s.min_p,
                                 .repeat_penalty = s.repeat_penalty};
}

void llm_generate_fill_default(llm_generate_params *p, size_t size) {
    const llm_generate_params d = defaults();
    ggl_params_fill(p, size, &d, sizeof d);
}

static ggl_status set_sampler(llm_context *c, const generation *g, ggl_error *err) {
    llm_sampler_params s = llm_sampler_default();
    llm_sampler *made;
    s.temp = g->p.temp;
    s.top_k = g->p.top_k;
    s.top_p = g->p.top_p == 0 ? 1 : g->p.top_p;
    s.min_p = g->p.min_p;
    s.repeat_penalty = g->p.repeat_penalty == 0 ? 1 : g->p.repeat_penalty;
    s.seed = g->p.seed;
    const ggl_status st = llm_sampler_new(&made, &s, (int32_t)llm_session_n_vocab(c->session),
                                          (int32_t)llm_session_n_ctx(c->session), err);
    if (st != GGL_OK)
        return st;
    llm_generator_set_sampler(c->generator, made);
    llm_sampler_free(c->sampler);
    c->sampler = made;
    return GGL_OK;
}

static ggl_status set_stops(generation *g, ggl_error *err) {
    if (g->p.n_stop == 0)
        return GGL_OK;
    ggl_str *strings = ggl_calloc(g->p.n_stop, sizeof *strings);
    if (!strings)
        return ggl_fail(err, GGL_NOMEM, "out of memory for stop strings");
    for (size_t i = 0; i < g->p.n_stop; i++)
        strings[i] = (ggl_str){g->p.stop[i], strlen(g->p.stop[i])};
    const ggl_status st = llm_stop_new(&g->stop, strings, g->p.n_stop, err);
    ggl_free(strings);
    return st;
}

static ggl_status set_grammar(llm_context *c, generation *g, ggl_error *err) {
    const llm_generate_params *p = &g->p;
    const llm_schema_params compact = {.size = sizeof compact, .compact = true};
    if (!p->grammar && !p->json_schema)
        return GGL_OK;
    if (p->grammar && p->json_schema)
        return ggl_fail(err, GGL_USAGE, "grammar and json_schema cannot be used together");
    ggl_status st =
        p->grammar
            ? llm_grammar_from_gbnf(&g->grammar, p->grammar, strlen(p->grammar), "grammar", err)
            : llm_grammar_from_schema_with(&g->grammar, p->json_schema, strlen(p->json_schema),
                                           "json_schema", &compact, err);
    if (st == GGL_OK && !c->vocab)
        st = llm_vocab_new(&c->vocab, c->tokenizer, err);
    if (st == GGL_OK)
        st = llm_matcher_new(&g->matcher, g->grammar, c->vocab, err);
    return st;
}

/* --- text ------------------------------------------------------------------------------------- */

/* The length of the longest beginning of s[0 .. n) that does not end within a character of UTF-8. */
static size_t whole_characters(const char *s, size_t n) {
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned char b = (unsigned char)s[n - back];
        if ((b & 0xc0) == 0x80)
            continue;
        const size_t need = b >= 0xf0 && b < 0xf8 ? 4 : b >= 0xe0 ? 3 : b >= 0xc0 ? 2 : 1;
        return b < 0xf8 && need > back ? n - back : n;
    }
    return n;
}

/* Drops the text that was returned by the last call. */
static void drop_given(generation *g) {
    if (g->n_given == 0)
        return;
    memmove(g->waiting, g->waiting + g->n_given, g->n_waiting - g->n_given);
    g->n_waiting -= g->n_given;
    g->n_ready -= g->n_given;
    g->n_given = 0;
}

static ggl_status put(generation *g, ggl_str text, ggl_error *err) {
    if (text.n == 0)
        return GGL_OK;
    if (!ggl_grow(&g->waiting, &g->cap, g->n_waiting + text.n, 1))
        return ggl_fail(err, GGL_NOMEM, "out of memory for the text");
    memcpy(g->waiting + g->n_waiting, text.s, text.n);
    g->n_waiting += text.n;
    g->n_ready += g->stop ? llm_stop_read(g->stop, text.s, text.n) : text.n;
    return GGL_OK;
}

/* --- generating ------------------------------------------------------------------------------- */

/* Draws a token. If it is the last one, sets the reason. */
static ggl_status draw(llm_context *c, generation *g, ggl_error *err) {
    int32_t id;
    ggl_status st = llm_generator_next(c->generator, &id, err);
    c->logits = llm_generator_logits(c->generator);
    if (st == GGL_LIMIT &&
        (int64_t)(llm_session_n_past(c->session, 0)) >= llm_session_n_ctx(c->session) - 1) {
        g->finish = LLM_FINISH_CONTEXT;
        return GGL_OK;
    }
    if (st != GGL_OK)
        return st;
    if (id < 0 || (!g->p.ignore_end && llm_tokenizer_is_eog(c->tokenizer, id))) {
        g->finish = LLM_FINISH_END;
        return GGL_OK;
    }
    c->run.n_generated++;
    st = put(g, llm_token_text(c->tokenizer, id, false), err);
    c->run.stop = g->stop ? llm_stop_found(g->stop) : -1;
    if (c->run.stop >= 0)
        g->finish = LLM_FINISH_STOP;
    else if (g->p.n_max > 0 && c->run.n_generated == g->p.n_max)
        g->finish = LLM_FINISH_LENGTH;
    return st;
}

/* Generates until there are whole characters to return, or the text has ended. */
static ggl_status step(llm_context *c, generation *g, ggl_error *err) {
    while (whole_characters(g->waiting, g->n_ready) == 0 && g->finish == LLM_FINISH_NONE) {
        const ggl_status st = atomic_load(&c->cancelled)
                                  ? ggl_fail(err, GGL_CANCELLED, "stopped by the caller")
                                  : draw(c, g, err);
        if (st != GGL_OK)
            return st;
        if (g->finish != LLM_FINISH_NONE && g->finish != LLM_FINISH_STOP)
            g->n_ready = g->n_waiting;
    }
    return GGL_OK;
}

void context_end(llm_context *c) {
    generation *g = c->generation;
    if (!g)
        return;
    const ggl_status st = llm_generator_constrain(c->generator, NULL, -1, NULL);
    (void)st; /* without a matcher it cannot fail */
    llm_stop_free(g->stop);
    llm_matcher_free(g->matcher);
    llm_grammar_free(g->grammar);
    ggl_free(g->waiting);
    ggl_free(g);
    c->generation = NULL;
}

/* Ends the generation with this status. */
static ggl_status end_with(llm_context *c, ggl_status st) {
    c->run.finish = st == GGL_CANCELLED ? LLM_FINISH_CANCELLED
                    : st != GGL_OK      ? LLM_FINISH_ERROR
                                        : c->generation->finish;
    context_end(c);
    return st;
}

static ggl_status check(const llm_context *c, const llm_generate_params *p, ggl_error *err) {
    if (!c->tokenizer)
        return ggl_fail(err, c->why_no_tokenizer.status, "%s", c->why_no_tokenizer.msg);
    if (p->n_max < 0)
        return ggl_fail(err, GGL_USAGE, "n_max must be 0 or more, but is %" PRId64, p->n_max);
    for (size_t i = 0; i < p->n_stop; i++)
        if (!p->stop || !p->stop[i])
            return ggl_fail(err, GGL_USAGE, "stop[%zu] is NULL; n_stop is %zu", i, p->n_stop);
    return GGL_OK;
}

static ggl_status run_prompt(llm_context *c, const int32_t *id, size_t n, ggl_error *err) {
    if (atomic_load(&c->cancelled)) /* while the prompt was made, or before its first step */
        return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    ggl_status st = context_give(c, err);
    if (st == GGL_OK)
        st = llm_generator_prompt(c->generator, &(llm_prompt){.id = id, .n = n}, err);
    if (st != GGL_OK)
        return st;
    const llm_generator_stats stats = llm_generator_get_stats(c->generator);
    c->run.n_reused = stats.n_reused;
    c->run.n_prompt = stats.n_prompt;
    return GGL_OK;
}

/* Every call that generates begins with this: it ends what llm_begin has begun. Only here is a cancel
 * forgotten, so one that comes while the prompt is formatted or tokenized has its effect. */
static void start(llm_context *c) {
    atomic_store(&c->cancelled, false);
    context_end(c);
    c->run = (llm_run_info){.finish = LLM_FINISH_ERROR, .stop = -1};
}

/* llm_begin, after start(). */
static ggl_status begin(llm_context *c, const int32_t *id, size_t n,
                        const llm_generate_params *params, ggl_error *err) {
    generation *g = c->generation = ggl_calloc(1, sizeof *g);
    if (!g)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    g->p = defaults();
    ggl_status st = GGL_READ_PARAMS(llm_generate_params, &g->p, params, err);
    if (st == GGL_OK)
        st = check(c, &g->p, err);
    if (st == GGL_OK)
        st = set_stops(g, err);
    if (st == GGL_OK)
        st = set_grammar(c, g, err);
    if (st == GGL_OK)
        st = set_sampler(c, g, err);
    if (st == GGL_OK)
        st = run_prompt(c, id, n, err);
    if (st == GGL_OK)
        st = llm_generator_constrain(c->generator, g->matcher, g->p.n_max > 0 ? g->p.n_max : -1,
                                     err);
    if (st != GGL_OK)
        return end_with(c, st);
    c->run.finish = LLM_FINISH_NONE;
    return GGL_OK;
}

ggl_status llm_begin(llm_context *c, const int32_t *id, size_t n, const llm_generate_params *params,
                     ggl_error *err) {
    start(c);
    return begin(c, id, n, params, err);
}

ggl_status llm_next(llm_context *c, const char **piece, size_t *n, ggl_error *err) {
    generation *g = c->generation;
    *piece = NULL;
    *n = 0;
    if (!g)
        return GGL_OK;
    drop_given(g);
    const ggl_status st = step(c, g, err);
    if (st != GGL_OK)
        return end_with(c, st);
    g->n_given = whole_characters(g->waiting, g->n_ready);
    if (g->n_given == 0)
        g->n_given = g->n_ready; /* the text ends within a character */
    if (g->n_given == 0)
        return end_with(c, GGL_OK);
    *piece = g->waiting;
    *n = g->n_given;
    return GGL_OK;
}

/* llm_generate_tokens, after start(). */
static ggl_status generate_tokens(llm_context *c, const int32_t *id, size_t n,
                                  const llm_generate_params *params, llm_piece_fn *each, void *user,
                                  ggl_error *err) {
    const char *piece;
    size_t n_piece;
    ggl_status st = begin(c, id, n, params, err);
    while (st == GGL_OK && (st = llm_next(c, &piece, &n_piece, err)) == GGL_OK && piece)
        if (each && !each(user, piece, n_piece))
            st = end_with(c, ggl_fail(err, GGL_CANCELLED, "stopped by the caller"));
    return st;
}

ggl_status llm_generate_tokens(llm_context *c, const int32_t *id, size_t n,
                               const llm_generate_params *params, llm_piece_fn *each, void *user,
                               ggl_error *err) {
    start(c);
    return generate_tokens(c, id, n, params, each, user, err);
}

/* Generates after a text, which is tokenized with `flags` (as for llm_encode). Call start() before. */
static ggl_status generate_text(llm_context *c, const char *text, size_t n, unsigned flags,
                                const llm_generate_params *params, llm_piece_fn *each, void *user,
                                ggl_error *err) {
    int32_t *id;
    size_t n_id;
    ggl_status st = llm_encode(c, text, n, flags, &id, &n_id, err);
    if (st == GGL_OK)
        st = generate_tokens(c, id, n_id, params, each, user, err);
    ggl_free(id);
    return st;
}

ggl_status llm_generate(llm_context *c, const char *prompt, const llm_generate_params *params,
                        llm_piece_fn *each, void *user, ggl_error *err) {
    start(c);
    if (!prompt)
        return ggl_fail(err, GGL_USAGE, "llm_generate needs a prompt");
    return generate_text(c, prompt, strlen(prompt), LLM_ADD_SPECIAL | LLM_READ_SPECIAL, params,
                         each, user, err);
}

/* --- conversations ---------------------------------------------------------------------------- */

ggl_status llm_chat_format(const llm_context *c, const char *json, bool answer, char **text,
                           size_t *n, ggl_error *err) {
    static const char begin_answer[] = "{\"add_generation_prompt\": true}";
    char *talk;
    size_t n_talk;
    *text = NULL;
    *n = 0;
    if (!json)
        return ggl_fail(err, GGL_USAGE, "llm_chat_format needs a conversation as JSON");
    if (!c->chat)
        return ggl_fail(err, c->why_no_chat.status, "%s", c->why_no_chat.msg);
    ggl_status st =
        llm_talk_texts((ggl_str){json, strlen(json)}, "the conversation", &talk, &n_talk, err);
    if (st != GGL_OK)
        return st;
    const ggl_str vars[] = {{talk, n_talk}, {begin_answer, sizeof begin_answer - 1}};
    st = llm_chat_prompt(c->chat, vars, answer ? 2 : 1, NULL, text, n, err);
    ggl_free(talk);
    return st;
}

ggl_status llm_reply(llm_context *c, const llm_message *message, size_t n,
                     const llm_generate_params *params, llm_piece_fn *each, void *user,
                     ggl_error *err) {
    llm_talk *talk = NULL;
    char *json = NULL, *prompt = NULL;
    size_t n_prompt;
    start(c);
    if (!message && n > 0)
        return ggl_fail(err, GGL_USAGE, "llm_reply needs its %zu messages", n);
    ggl_status st = llm_talk_new(&talk, err);
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        st = message[i].role && message[i].content
                 ? llm_talk_add(talk, message[i].role,
                                (ggl_str){message[i].content, strlen(message[i].content)}, err)
                 : ggl_fail(err, GGL_USAGE, "message %zu needs a role and a content", i);
    if (st == GGL_OK)
        st = llm_talk_json(talk, 0, &json, &n_prompt, err);
    if (st == GGL_OK)
        st = llm_chat_format(c, json, true, &prompt, &n_prompt, err);
    if (st == GGL_OK)
        st = generate_text(c, prompt, n_prompt, LLM_READ_SPECIAL, params, each, user, err);
    ggl_free(prompt);
    ggl_free(json);
    llm_talk_free(talk);
    return st;
}
