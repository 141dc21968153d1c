/* Generating text, piece by piece or into a callback. */
#include <inttypes.h>
#include <string.h>

#include "context.h"
#include "generation.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/params.h"
#include "ggl/internal/text.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/sched.h"

/* --- the engine ------------------------------------------------------------------------------- */

/* The statistics of the sequence. */
static llm_sequence_stats stats_of(const llm_context *c, const generation *g) {
    return g->is_over ? g->stats : llm_engine_slot(c->engine, 0).stats;
}

static void set_counts(llm_context *c, const generation *g) {
    const llm_sequence_stats now = stats_of(c, g), *before = &g->before;
    c->run.n_guessed = before->n_guessed + now.n_guessed;
    c->run.n_right = before->n_right + now.n_right;
    c->run.n_shifts = before->n_shifts + now.n_shifts;
    c->run.n_dropped = before->n_dropped + now.n_dropped;
    c->run.n_nan = now.n_nan;
    c->run.repack_seconds =
        ggl_sched_late_seconds(llm_session_sched(c->session)) - c->repack_before;
    c->run.n_generated = g->n_generated;
    c->run.stop = g->text.found;
}

/* Takes a token that was drawn. Of a text that is found as a whole, llm_next takes them. */
static bool on_token(void *ctx, int32_t id, const float *logits) {
    llm_context *c = ctx;
    generation *g = c->generation;
    if (!logits) {
        g->st = llm_tokens_append(&g->found, id, &g->err);
        return g->st == GGL_OK;
    }
    c->logits = logits;
    g->has_drawn = true;
    set_counts(c, g);
    g->st = llm_generation_take(g, c, id, logits, &g->err);
    return g->st == GGL_OK && g->finish == LLM_FINISH_NONE;
}

static void on_end(void *ctx, llm_end why, const llm_sequence_stats *stats, const ggl_error *err) {
    llm_context *c = ctx;
    generation *g = c->generation;
    g->is_over = true;
    g->why = why;
    g->stats = *stats;
    if (g->st == GGL_OK && err)
        g->st = ggl_pass(&g->err, err);
}

static void on_prompted(void *ctx, int64_t i, const float *logits) {
    const llm_context *c = ctx;
    c->generation->p.prompt_logits(c->generation->p.user, i, logits);
}

static bool on_progress(void *ctx, int64_t n_done, int64_t n) {
    const llm_context *c = ctx;
    return c->generation->p.prompt_progress(c->generation->p.user, n_done, n);
}

/* Makes the engine take a step for the generation. */
static ggl_status step_engine(llm_context *c, generation *g, ggl_error *err) {
    if (llm_context_is_cancelled(c))
        return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    const ggl_status st = llm_engine_step(c->engine, err);
    return g->st != GGL_OK ? ggl_pass(err, &g->err) : st;
}

/* True if the model does not continue the text, and only its logits are wanted. */
static bool shows_alone(const llm_context *c, const generation *g) {
    return g->p.prompt_logits && llm_session_sees_all(c->session);
}

/* True if the tokens are drawn one after the other; else the text is found as a whole. */
static bool draws(const generation *g) {
    return g->diffusion.n_length == 0 && g->parts.way.beams.n == 0;
}

/* Adds the sequence that begins with these tokens to the engine. */
static ggl_status add(llm_context *c, generation *g, const int32_t *id, size_t n, ggl_error *err) {
    const bool asked = draws(g);
    llm_sequence_params p = {.size = sizeof p,
                             .prompt = id,
                             .n_prompt = n,
                             .read = g->p.read,
                             .n_read = g->p.n_read,
                             .prompted = g->p.prompt_logits ? on_prompted : NULL,
                             .token = on_token,
                             .ended = on_end,
                             .ctx = c,
                             .in_slot = 1,
                             .asked = asked,
                             .progress = asked && g->p.prompt_progress ? on_progress : NULL,
                             .keeps = asked ? c->cache : NULL};
    llm_job_describe(&g->parts, &p);
    p.sampler = asked ? c->sampler : p.sampler;
    if (shows_alone(c, g))
        p.n_max = 0;
    else if (p.n_max > 0)
        p.n_max -= g->n_generated;
    const ggl_status st = llm_engine_add(c->engine, &p, &g->id, err);
    g->is_over = st != GGL_OK;
    return st;
}

/* Adds it, runs its first tokens, and counts them as a part of the prompt. */
static ggl_status run_tokens(llm_context *c, const int32_t *id, size_t n, ggl_error *err) {
    generation *g = c->generation;
    const double t = ggl_os_seconds();
    ggl_status st = add(c, g, id, n, err);
    const bool is_added = st == GGL_OK;
    while (st == GGL_OK && !g->is_over && llm_engine_slot(c->engine, 0).use != LLM_SLOT_GENERATES)
        st = step_engine(c, g, err);
    const llm_sequence_stats stats = stats_of(c, g);
    const int64_t n_past = llm_session_n_past(c->session, 0);
    c->run.prompt_seconds += ggl_os_seconds() - t;
    if (!is_added)
        return st;
    c->run.n_reused += stats.n_reused;
    c->run.n_prompt += st == GGL_OK              ? stats.n_prompt - stats.n_reused
                       : n_past > stats.n_reused ? n_past - stats.n_reused
                                                 : 0;
    return st;
}

/* Goes on after other tokens, if the caller gives some; else the text has ended. */
static ggl_status make_room(llm_context *c, generation *g, ggl_error *err) {
    const int32_t *id;
    int64_t n_read = 0;
    size_t n;
    if (!g->p.full || !g->p.full(g->p.user, &id, &n)) {
        g->finish = LLM_FINISH_CONTEXT;
        return GGL_OK;
    }
    g->before.n_guessed += g->stats.n_guessed;
    g->before.n_right += g->stats.n_right;
    g->before.n_shifts += g->stats.n_shifts;
    g->before.n_dropped += g->stats.n_dropped;
    g->stats = (llm_sequence_stats){0};
    g->p.prompt_logits = NULL;
    /* a text that was read stays; these tokens are the beginning of what is written */
    g->p.read = llm_session_text(c->session, 0, &n_read);
    g->p.n_read = (size_t)n_read;
    return run_tokens(c, id, n, err);
}

/* --- generating ------------------------------------------------------------------------------- */

static ggl_status force(const llm_context *c, const generation *g, ggl_error *err) {
    const int32_t *id;
    const size_t n = g->p.force ? g->p.force(g->p.user, &id) : 0;
    return n > 0 ? llm_sampler_force(c->sampler, id, n, err) : GGL_OK;
}

/* Takes the next token of a text by diffusion, once it and those before it are settled, or of what a search of beams has found. */
static ggl_status take_found(llm_context *c, generation *g, ggl_error *err) {
    ggl_status st = GGL_OK;
    while (st == GGL_OK && !g->is_over && g->n_taken == g->found.n)
        st = step_engine(c, g, err);
    if (st == GGL_OK && g->n_taken < g->found.n)
        st = llm_generation_take(g, c, g->found.id[g->n_taken++], NULL, err);
    if (st == GGL_OK && g->is_over && g->n_taken == g->found.n && g->finish == LLM_FINISH_NONE)
        g->finish = llm_generation_finish(g->why);
    set_counts(c, g);
    return st;
}

/* Searches the text that follows a prompt with beams. The sequence is empty afterwards. */
static ggl_status run_beams(llm_context *c, const int32_t *id, size_t n, ggl_error *err) {
    generation *g = c->generation;
    const double begin = ggl_os_seconds();
    double prompt = 0;
    ggl_status st = add(c, g, id, n, err);
    while (st == GGL_OK && !g->is_over) {
        st = step_engine(c, g, err);
        if (prompt == 0 && stats_of(c, g).t_prompt > 0)
            prompt = ggl_os_seconds() - begin;
    }
    if (!g->is_over)
        llm_engine_cancel(c->engine, g->id);
    const ggl_status erased = llm_context_erase(c, st == GGL_OK ? err : NULL);
    c->run.prompt_seconds += prompt;
    c->run.seconds += ggl_os_seconds() - begin - prompt;
    c->run.n_reused += g->stats.n_reused;
    c->run.n_prompt += g->stats.n_prompt - g->stats.n_reused;
    return st == GGL_OK ? erased : st;
}

/* Draws a token. If it is the last one, sets the reason. */
static ggl_status draw(llm_context *c, generation *g, ggl_error *err) {
    ggl_status st = force(c, g, err);
    if (st == GGL_OK && g->is_over && g->why == LLM_END_CONTEXT)
        return make_room(c, g, err);
    g->has_drawn = false;
    while (st == GGL_OK && !g->has_drawn && !g->is_over)
        st = step_engine(c, g, err);
    if (st == GGL_OK && !g->has_drawn && g->why != LLM_END_CONTEXT)
        g->finish = llm_generation_finish(g->why);
    set_counts(c, g);
    return st;
}

/* Generates until there are whole characters to return, or the text has ended. */
static ggl_status step(llm_context *c, generation *g, ggl_error *err) {
    while (!llm_stopped_text_has(&g->text) && g->finish == LLM_FINISH_NONE) {
        const ggl_status st = llm_context_is_cancelled(c)
                                  ? ggl_fail(err, GGL_CANCELLED, "stopped by the caller")
                              : draws(g) ? draw(c, g, err)
                                         : take_found(c, g, err);
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

/* Checks what the model reads. */
static ggl_status check_read(const llm_context *c, const generation *g, ggl_error *err) {
    if (!llm_session_reads_text(c->session))
        return g->p.read ? ggl_fail(err, GGL_USAGE,
                                    "read is set, but the model reads no text apart from its "
                                    "prompt")
                         : GGL_OK;
    return c->stages ? ggl_fail(err, GGL_UNSUPPORTED,
                                "the model writes down what it hears, and reads no text "
                                "(llm_transcribe, llm-transcribe)")
                     : GGL_OK;
}

static ggl_status run_prompt(llm_context *c, const int32_t *id, size_t n, ggl_error *err) {
    generation *g = c->generation;
    if (llm_context_is_cancelled(c)) /* while the prompt was made, or before its first step */
        return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    const bool diffuses = g->diffusion.n_length > 0;
    ggl_status st = GGL_OK;
    if (!diffuses && !shows_alone(c, g))
        st = llm_context_check_writes(c, true, err);
    if (st == GGL_OK)
        st = llm_context_give(c, err);
    if (st == GGL_OK)
        st = check_read(c, g, err);
    if (st != GGL_OK)
        return st;
    if (!diffuses)
        return g->parts.way.beams.n > 0 ? run_beams(c, id, n, err) : run_tokens(c, id, n, err);
    c->run.n_prompt = (int64_t)n;
    st = llm_context_erase(c, err); /* the text goes on from no other */
    return st == GGL_OK ? add(c, g, id, n, err) : st;
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
        llm_sampler_free(c->sampler);
        c->sampler = g->parts.sampler; /* the next generation may go on with it */
        g->parts.sampler = NULL;
    }
    if (st == GGL_OK)
        st = run_prompt(c, id, n, err);
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

/* Generates after a text, which is tokenized with `flags` (as for llm_tokenize_given). Call llm_context_start() before. */
static ggl_status generate_text(llm_context *c, const llm_spans *given, ggl_str text,
                                unsigned flags, const llm_generate_params *params,
                                llm_piece_fn *each, void *user, ggl_error *err) {
    int32_t *id;
    size_t n_id;
    ggl_status st = llm_context_tokenize(c, given, text, flags, &id, &n_id, err);
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
    return generate_text(c, NULL, (ggl_str){prompt, strlen(prompt)},
                         LLM_TOKENIZE_BOS | LLM_TOKENIZE_SPECIAL, params, each, user, err);
}

/* --- conversations ---------------------------------------------------------------------------- */

ggl_status llm_context_format(const llm_context *c, const llm_talk *talk, bool answer, char **text,
                              size_t *n, llm_chat_made *made, ggl_error *err) {
    const llm_chat_params p = {.end = answer ? LLM_CHAT_ASKS : LLM_CHAT_AS_SAID, .made = made};
    *text = NULL;
    *n = 0;
    if (!c->chat)
        return ggl_pass(err, &c->why_no_chat);
    if (llm_talk_n(talk) == 0)
        return ggl_fail(err, GGL_FORMAT, "a conversation needs \"messages\", at least one");
    return llm_chat_prompt(c->chat, talk, &p, text, n, err);
}

void llm_note_changes(const llm_chat_changes *changes, const llm_generate_params *p) {
    char text[LLM_CHAT_NOTES];
    if (p->note && llm_chat_notes(changes, "; ", text))
        p->note(p->user, text);
}

/* Gives what is known of a prompt beside its text. */
static ggl_status get_more(const llm_context *c, const llm_chat_made *made, ggl_str text,
                           llm_formatted *more, ggl_error *err) {
    char notes[LLM_CHAT_NOTES];
    (void)llm_chat_notes(&made->changes, "\n", notes);
    const ggl_status st = llm_context_tokenize(c, &made->given, text, LLM_TOKENIZE_SPECIAL,
                                               &more->id, &more->n_id, err);
    more->notes = st == GGL_OK ? ggl_copy_text(notes) : NULL;
    return st == GGL_OK && !more->notes
               ? ggl_fail(err, GGL_NOMEM, "out of memory for a conversation")
               : st;
}

ggl_status llm_chat_format(const llm_context *c, const char *json, bool answer, char **text,
                           size_t *n, llm_formatted *more, ggl_error *err) {
    llm_talk *talk = NULL;
    llm_chat_made made = {0};
    *text = NULL;
    *n = 0;
    if (more)
        *more = (llm_formatted){0};
    if (!json)
        return ggl_fail(err, GGL_USAGE, "llm_chat_format needs a conversation as JSON");
    if (!c->chat)
        return ggl_pass(err, &c->why_no_chat);
    ggl_status st = llm_context_read_talk(c, json, &talk, err);
    if (st == GGL_OK)
        st = llm_context_format(c, talk, answer, text, n, more ? &made : NULL, err);
    if (st == GGL_OK && more)
        st = get_more(c, &made, (ggl_str){*text, *n}, more, err);
    if (st != GGL_OK) {
        if (more) {
            ggl_free(more->id);
            *more = (llm_formatted){0};
        }
        ggl_free(*text);
        *text = NULL;
        *n = 0;
    }
    llm_chat_made_fini(&made);
    llm_talk_free(talk);
    return st;
}

ggl_status llm_reply(llm_context *c, const llm_message *message, size_t n,
                     const llm_generate_params *params, llm_piece_fn *each, void *user,
                     ggl_error *err) {
    llm_talk *talk = NULL;
    llm_chat_made made = {0};
    llm_generate_params p = llm_generate_default_of(c);
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
        st = llm_context_format(c, talk, true, &prompt, &n_prompt, &made, err);
    if (st == GGL_OK && params)
        st = GGL_READ_PARAMS(llm_generate_params, &p, params, err);
    if (st == GGL_OK)
        llm_note_changes(&made.changes, &p);
    if (st == GGL_OK)
        st = generate_text(c, &made.given, (ggl_str){prompt, n_prompt}, LLM_TOKENIZE_SPECIAL,
                           params, each, user, err);
    llm_chat_made_fini(&made);
    ggl_free(prompt);
    llm_talk_free(talk);
    return st;
}
