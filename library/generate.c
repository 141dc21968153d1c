/* Generating text, piece by piece or into a callback. */
#include <inttypes.h>
#include <string.h>

#include "beams.h"
#include "context.h"
#include "generation.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/sched.h"

/* --- generating ------------------------------------------------------------------------------- */

static void set_counts(llm_context *c, const generation *g) {
    const llm_generator_stats stats = llm_generator_get_stats(c->generator);
    c->run.n_guessed = stats.n_guessed - c->before.n_guessed;
    c->run.n_right = stats.n_right - c->before.n_right;
    c->run.n_shifts = stats.n_shifts - c->before.n_shifts;
    c->run.n_dropped = stats.n_dropped - c->before.n_dropped;
    c->run.n_nan = stats.n_nan;
    c->run.repack_seconds =
        ggl_sched_late_seconds(llm_session_sched(c->session)) - c->repack_before;
    c->run.n_generated = g->n_generated;
    c->run.stop = g->text.found;
}

/* Makes the sequence these tokens, and counts them as a part of the prompt. */
static ggl_status run_tokens(llm_context *c, const llm_prompt *p, ggl_error *err) {
    const double t = ggl_os_seconds();
    const ggl_status st = c->cache ? llm_prompt_cache_prompt(c->cache, c->generator, p, err)
                                   : llm_generator_prompt(c->generator, p, err);
    const llm_generator_stats stats = llm_generator_get_stats(c->generator);
    c->run.prompt_seconds += ggl_os_seconds() - t;
    c->run.n_reused += stats.n_reused;
    c->run.n_prompt += stats.n_prompt;
    return st;
}

/* Goes on after other tokens, if the caller gives some; else the text has ended. */
static ggl_status make_room(llm_context *c, generation *g, ggl_error *err) {
    const int32_t *id;
    size_t n;
    if (g->p.full && g->p.full(g->p.user, &id, &n))
        return run_tokens(c, &(llm_prompt){.id = id, .n = n}, err);
    g->finish = LLM_FINISH_CONTEXT;
    return GGL_OK;
}

static ggl_status force(const llm_context *c, const generation *g, ggl_error *err) {
    const int32_t *id;
    const size_t n = g->p.force ? g->p.force(g->p.user, &id) : 0;
    return n > 0 ? llm_sampler_force(c->sampler, id, n, err) : GGL_OK;
}

/* Takes the next token of a text by diffusion, once it and those before it are settled. */
static ggl_status settle(llm_context *c, generation *g, ggl_error *err) {
    bool is_done = false;
    ggl_status st = GGL_OK;
    while (st == GGL_OK && !is_done && llm_diffuser_n_settled(g->diffuser) == g->n_given)
        st = llm_context_is_cancelled(c)
                 ? ggl_fail(err, GGL_CANCELLED, "stopped by the caller")
                 : llm_diffuser_run_pass(g->diffuser, c->session, &is_done, err);
    if (st == GGL_OK && llm_diffuser_n_settled(g->diffuser) > g->n_given)
        st = llm_generation_take(g, c, llm_diffuser_text(g->diffuser)[g->n_given++], NULL, err);
    if (st == GGL_OK && g->n_given == g->diffusion.n_length && g->finish == LLM_FINISH_NONE)
        g->finish = LLM_FINISH_LENGTH;
    set_counts(c, g);
    return st;
}

/* Takes the next token of what a search of beams has found. */
static ggl_status take_found(llm_context *c, generation *g, ggl_error *err) {
    size_t n;
    int32_t end;
    const int32_t *found = llm_beams_best(g->beams, 0, &n, &end);
    ggl_status st = GGL_OK;
    if ((size_t)g->n_given < n)
        st = llm_generation_take(g, c, found[g->n_given++], NULL, err);
    if (st == GGL_OK && (size_t)g->n_given == n && g->finish == LLM_FINISH_NONE)
        g->finish = end >= 0 ? LLM_FINISH_END : LLM_FINISH_LENGTH;
    set_counts(c, g);
    return st;
}

/* Searches the text that follows a prompt with beams. */
static ggl_status begin_beams(llm_context *c, const int32_t *id, size_t n, ggl_error *err) {
    generation *g = c->generation;
    const int64_t room = llm_session_n_ctx(c->session) - (int64_t)n + 1;
    const double begin = ggl_os_seconds();
    double prompt = 0;
    if ((int64_t)n > llm_session_n_ctx(c->session) || n == 0)
        return ggl_fail(err, n == 0 ? GGL_USAGE : GGL_LIMIT,
                        "a prompt of %zu tokens; 1 to %" PRId64 " are possible", n,
                        llm_session_n_ctx(c->session));
    llm_beams_params p = g->parts.way.beams;
    p.n_max = p.n_max > 0 && p.n_max < room ? p.n_max : room;
    ggl_status st = llm_session_clear(c->session, 0, err);
    if (st == GGL_OK)
        st = llm_generator_adopt(c->generator, NULL, 0, err);
    if (st == GGL_OK)
        st = llm_beams_new(&g->beams, &p, c->tokenizer, (int32_t)llm_session_n_vocab(c->session),
                           err);
    if (st == GGL_OK)
        st = llm_context_search(c, g->beams, p.n, id, n, &prompt, err);
    c->run.prompt_seconds += prompt;
    c->run.seconds += ggl_os_seconds() - begin - prompt;
    c->run.n_prompt += (int64_t)n;
    return st;
}

/* Begins a text by diffusion. */
static ggl_status begin_diffusion(llm_context *c, generation *g, ggl_error *err) {
    ggl_status st = llm_context_give(c, err);
    if (st == GGL_OK)
        st = llm_session_clear(c->session, 0, err);
    if (st == GGL_OK)
        st = llm_generator_adopt(c->generator, NULL, 0, err);
    if (st == GGL_OK)
        st = llm_diffuser_new(&g->diffuser, c->session, &g->diffusion, err);
    g->n_given = g->diffusion.n_prompt;
    c->run.n_prompt = g->diffusion.n_prompt;
    return st;
}

/* Draws a token. If it is the last one, sets the reason. */
static ggl_status draw(llm_context *c, generation *g, ggl_error *err) {
    int32_t id;
    ggl_status st = force(c, g, err);
    if (st == GGL_OK)
        st = llm_generator_next(c->generator, &id, err);
    c->logits = llm_generator_logits(c->generator);
    if (st == GGL_LIMIT &&
        (int64_t)(llm_session_n_past(c->session, 0)) >= llm_session_n_ctx(c->session) - 1)
        return make_room(c, g, err);
    set_counts(c, g);
    if (st == GGL_OK)
        st = llm_generation_take(g, c, id, c->logits, err);
    set_counts(c, g);
    return st;
}

/* Generates until there are whole characters to return, or the text has ended. */
static ggl_status step(llm_context *c, generation *g, ggl_error *err) {
    while (!llm_stopped_text_has(&g->text) && g->finish == LLM_FINISH_NONE) {
        const ggl_status st = llm_context_is_cancelled(c)
                                  ? ggl_fail(err, GGL_CANCELLED, "stopped by the caller")
                              : g->diffuser ? settle(c, g, err)
                              : g->beams    ? take_found(c, g, err)
                                            : draw(c, g, err);
        if (st != GGL_OK)
            return st;
        if (g->finish != LLM_FINISH_NONE)
            (void)llm_stopped_text_end(&g->text, NULL); /* the end is lost if memory is */
    }
    return GGL_OK;
}

/* Ends the generation with this status. */
static ggl_status end_with(llm_context *c, ggl_status st) {
    c->run.finish = st == GGL_CANCELLED ? LLM_FINISH_CANCELLED
                    : st != GGL_OK      ? LLM_FINISH_ERROR
                                        : c->generation->finish;
    c->run.incomplete = llm_generation_is_incomplete(c->generation);
    llm_context_end(c);
    return st;
}

/* A model that reads a text reads it, and *id and *n become the beginning of what it writes. */
static ggl_status read_text(llm_context *c, const int32_t **id, size_t *n, int32_t *start,
                            ggl_error *err) {
    const llm_generate_params *p = &c->generation->p;
    if (!llm_session_reads_text(c->session))
        return p->read ? ggl_fail(err, GGL_USAGE,
                                  "read is set, but the model reads no text apart from its prompt")
                       : GGL_OK;
    if (c->stages)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model writes down what it hears, and reads no text "
                        "(llm_transcribe, llm-transcribe)");
    const double begin = ggl_os_seconds();
    bool is_found;
    const int32_t *text = p->read ? p->read : *id;
    const int64_t n_text = (int64_t)(p->read ? p->n_read : *n);
    ggl_status st = llm_session_read_once(c->session, 0, text, n_text, &is_found, err);
    c->run.prompt_seconds += ggl_os_seconds() - begin;
    if (llm_session_n_past(c->session, 0) == 0) { /* also if it could not be read after that */
        const ggl_status adopted = llm_generator_adopt(c->generator, NULL, 0, NULL);
        st = st == GGL_OK && adopted != GGL_OK ? ggl_fail(err, adopted, "out of memory") : st;
    }
    if (st != GGL_OK || p->read)
        return st;
    /* the start token is counted when it runs */
    *(is_found ? &c->run.n_reused : &c->run.n_prompt) += n_text - 1;
    *start = llm_session_start_token(c->session);
    *id = start;
    *n = 1;
    return GGL_OK;
}

static ggl_status run_prompt(llm_context *c, const int32_t *id, size_t n, ggl_error *err) {
    generation *g = c->generation;
    int32_t start;
    if (llm_context_is_cancelled(c)) /* while the prompt was made, or before its first step */
        return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    ggl_status st = GGL_OK;
    if (g->diffusion.n_length > 0)
        return begin_diffusion(c, g, err);
    if (!g->p.prompt_logits || !llm_session_sees_all(c->session)) /* else all logits are wanted */
        st = llm_context_check_writes(c, true, err);
    if (st == GGL_OK)
        st = llm_context_give(c, err);
    if (st == GGL_OK)
        st = read_text(c, &id, &n, &start, err);
    if (st != GGL_OK)
        return st;
    c->before = llm_generator_get_stats(c->generator);
    if (g->p.n_beams > 1)
        return begin_beams(c, id, n, err);
    return run_tokens(
        c, &(llm_prompt){.id = id, .n = n, .each = g->p.prompt_logits, .ctx = g->p.user}, err);
}

void llm_context_start(llm_context *c) {
    atomic_store(&c->cancelled, false);
    llm_context_end(c);
    c->logits = NULL;
    c->run = (llm_run_info){.finish = LLM_FINISH_ERROR, .stop = -1};
    c->repack_before = ggl_sched_late_seconds(llm_session_sched(c->session));
    ggl_free(c->rest);
    c->rest = NULL;
}

ggl_status llm_context_begin(llm_context *c, const int32_t *id, size_t n,
                             const llm_generate_params *params, ggl_error *err) {
    generation *g;
    ggl_status st = llm_generation_new(&c->generation, c, params, id, n, err);
    if (!c->generation) {
        c->run.finish = LLM_FINISH_ERROR;
        return st;
    }
    g = c->generation;
    if (st == GGL_OK && g->parts.sampler) {
        llm_generator_set_sampler(c->generator, g->parts.sampler);
        llm_sampler_free(c->sampler);
        c->sampler = g->parts.sampler; /* which the generator keeps after the generation */
        c->has_sampler = true;
        g->parts.sampler = NULL;
    }
    llm_generator_set_run(c->generator, g->p.shift, g->p.n_keep, g->p.prompt_progress, g->p.user);
    if (st == GGL_OK)
        st = run_prompt(c, id, n, err);
    if (st == GGL_OK)
        st = llm_generator_constrain(c->generator, g->parts.matcher, g->parts.way.n_max, err);
    if (st != GGL_OK)
        return end_with(c, st);
    c->run.incomplete = llm_generation_is_incomplete(g);
    c->run.finish = LLM_FINISH_NONE;
    return GGL_OK;
}

ggl_status llm_begin(llm_context *c, const int32_t *id, size_t n, const llm_generate_params *params,
                     ggl_error *err) {
    llm_context_start(c);
    return llm_context_begin(c, id, n, params, err);
}

/* The text that was not returned yet, which outlives the generation; NULL: none. */
static const char *take_rest(llm_context *c, generation *g, size_t *n) {
    (void)llm_stopped_text_end(&g->text, NULL); /* the end is lost if memory is */
    const char *piece = llm_stopped_text_give(&g->text, true, n);
    ggl_free(c->rest);
    c->rest = g->text.text;
    g->text.text = NULL;
    return piece;
}

ggl_status llm_next(llm_context *c, const char **piece, size_t *n, ggl_error *err) {
    generation *g = c->generation;
    *piece = NULL;
    *n = 0;
    if (!g)
        return GGL_OK;
    llm_context_go_on(c);
    const double t = ggl_os_seconds(), prompt = c->run.prompt_seconds;
    const ggl_status st = step(c, g, err);
    c->run.seconds += ggl_os_seconds() - t - (c->run.prompt_seconds - prompt);
    if (st != GGL_OK) {
        *piece = take_rest(c, g, n);
        return end_with(c, st);
    }
    *piece = llm_stopped_text_give(&g->text, g->finish != LLM_FINISH_NONE, n);
    return *piece ? GGL_OK : end_with(c, GGL_OK);
}

/* Generates after n tokens. Call llm_context_start() before. */
static ggl_status generate_tokens(llm_context *c, const int32_t *id, size_t n,
                                  const llm_generate_params *params, llm_piece_fn *each, void *user,
                                  ggl_error *err) {
    const char *piece;
    size_t n_piece;
    ggl_status st = llm_context_begin(c, id, n, params, err);
    while (st == GGL_OK && (st = llm_next(c, &piece, &n_piece, err)) == GGL_OK && piece)
        if (each && !each(user, piece, n_piece))
            st = end_with(c, ggl_fail(err, GGL_CANCELLED, "stopped by the caller"));
    return st;
}

/* Generates after a text, which is tokenized with `flags` (as for llm_encode). Call llm_context_start() before. */
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
    llm_context_start(c);
    if (!prompt)
        return ggl_fail(err, GGL_USAGE, "llm_generate needs a prompt");
    return generate_text(c, prompt, strlen(prompt), LLM_ADD_SPECIAL | LLM_READ_SPECIAL, params,
                         each, user, err);
}

/* --- conversations ---------------------------------------------------------------------------- */

ggl_status llm_context_format(const llm_context *c, const llm_talk *talk, bool answer, char **text,
                              size_t *n, ggl_error *err) {
    const llm_chat_params p = {.end = answer ? LLM_CHAT_ASKS : LLM_CHAT_AS_SAID};
    *text = NULL;
    *n = 0;
    if (!c->chat)
        return ggl_pass(err, &c->why_no_chat);
    if (llm_talk_n(talk) == 0)
        return ggl_fail(err, GGL_FORMAT, "a conversation needs \"messages\", at least one");
    return llm_chat_prompt(c->chat, talk, &p, text, n, err);
}

ggl_status llm_chat_format(const llm_context *c, const char *json, bool answer, char **text,
                           size_t *n, ggl_error *err) {
    llm_talk *talk = NULL;
    *text = NULL;
    *n = 0;
    if (!json)
        return ggl_fail(err, GGL_USAGE, "llm_chat_format needs a conversation as JSON");
    if (!c->chat)
        return ggl_pass(err, &c->why_no_chat);
    ggl_status st = llm_context_read_talk(c, json, &talk, err);
    if (st == GGL_OK)
        st = llm_context_format(c, talk, answer, text, n, err);
    llm_talk_free(talk);
    return st;
}

ggl_status llm_reply(llm_context *c, const llm_message *message, size_t n,
                     const llm_generate_params *params, llm_piece_fn *each, void *user,
                     ggl_error *err) {
    llm_talk *talk = NULL;
    char *prompt = NULL;
    size_t n_prompt;
    llm_context_start(c);
    if (!message && n > 0)
        return ggl_fail(err, GGL_USAGE, "llm_reply needs its %zu messages", n);
    ggl_status st = llm_talk_new(&talk, err);
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        st = message[i].role && message[i].content
                 ? llm_talk_add(talk, message[i].role,
                                (ggl_str){message[i].content, strlen(message[i].content)}, err)
                 : ggl_fail(err, GGL_USAGE, "message %zu needs a role and a content", i);
    if (st == GGL_OK)
        st = llm_context_format(c, talk, true, &prompt, &n_prompt, err);
    if (st == GGL_OK)
        st = generate_text(c, prompt, n_prompt, LLM_READ_SPECIAL, params, each, user, err);
    ggl_free(prompt);
    llm_talk_free(talk);
    return st;
}
