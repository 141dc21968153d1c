/* The turns of the model: the conversation as a prompt, the answer, and a context that is full. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat_impl.h"
#include "common/amounts.h"
#include "common/json_write.h"
#include "common/open_context.h"
#include "common/process.h"
#include "common/progress.h"
#include "ggl/internal/alloc.h"

bool chat_text_add(chat_text *t, const char *s, size_t n) {
    if (!ggl_grow(&t->s, &t->cap, t->n + n + 1, 1))
        return false;
    if (n > 0)
        memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = '\0';
    return true;
}

/* After an answer: the last token of a full context is not in it. */
static void set_used(chat *c) {
    const size_t n_ctx = (size_t)llm_context_facts(c->ctx)->n_ctx;
    (void)llm_sequence(c->ctx, &c->n_used);
    c->n_used = c->n_used < n_ctx ? c->n_used : n_ctx;
}

/* --- the prompt ------------------------------------------------------------------------------- */

ggl_status chat_render(const chat *c, const llm_talk *talk, size_t first, bool asks,
                       llm_chat_made *made, char **text, size_t *n, ggl_error *err) {
    const llm_chat_params p = {
        .end = asks ? LLM_CHAT_ASKS : LLM_CHAT_AS_SAID, .first = first, .made = made};
    return llm_chat_prompt(llm_opened_chat(c->ctx), talk, &p, text, n, err);
}

/* The prompt for the messages from c->first on, as text and tokens. */
typedef struct prompt {
    char *text;
    size_t n_text;
    llm_chat_made made;
    llm_tokens ids;
    bool too_long; /* for the context */
} prompt;

static void prompt_fini(prompt *p) {
    ggl_free(p->text);
    llm_chat_made_fini(&p->made);
    llm_tokens_fini(&p->ids);
    *p = (prompt){0};
}

/* asks: with the beginning of an answer. */
static ggl_status make(const chat *c, bool asks, prompt *p, ggl_error *err) {
    prompt_fini(p);
    ggl_status st = chat_render(c, c->talk, c->first, asks, &p->made, &p->text, &p->n_text, err);
    if (st == GGL_OK)
        st = llm_tokenize_given(llm_opened_tokenizer(c->ctx), &p->made.given, p->text, p->n_text,
                                LLM_TOKENIZE_SPECIAL, &p->ids, err);
    return st;
}

static ggl_status make_prompt(const chat *c, prompt *p, ggl_error *err) {
    return make(c, true, p, err);
}

void chat_count_used(chat *c) {
    ggl_error none = {0}; /* a template may refuse what is left, such as a lone system message */
    prompt p = {0};
    c->n_used = 0;
    if (llm_talk_n(c->talk) > 0 && make(c, false, &p, &none) == GGL_OK)
        c->n_used = p.ids.n;
    prompt_fini(&p);
}

/* Leaves n turns from c->first on out. */
static void drop_turns(chat *c, size_t n) {
    while (n-- > 0)
        c->first = llm_talk_next_turn(c->talk, c->first);
}

/* Returns the number of turns that can be left out: all but the last one. */
static size_t n_droppable(const chat *c) {
    size_t n = 0;
    for (size_t i = c->first; c->shifts; n++)
        if ((i = llm_talk_next_turn(c->talk, i)) >= llm_talk_n(c->talk))
            break;
    return n;
}

/* Leaves out the fewest turns with which the prompt and the answer so far have at most n_most tokens,
 * by bisection: each try renders the conversation. If nothing helps, only the last turn is left. */
static ggl_status drop_oldest(chat *c, prompt *p, size_t n_most, ggl_error *err) {
    const size_t first = c->first;
    size_t low = 1, high = n_droppable(c);
    ggl_status st = GGL_OK;
    while (low <= high && high > 0 && st == GGL_OK) {
        const size_t middle = low + (high - low) / 2;
        c->first = first;
        drop_turns(c, middle);
        st = process_stopped ? GGL_CANCELLED : make_prompt(c, p, err);
        if (low == high)
            break;
        if (p->ids.n + c->drawn.n <= n_most)
            high = middle;
        else
            low = middle + 1;
    }
    if (st != GGL_OK)
        c->first = first;
    return st;
}

/* Says what of the conversation the prompt does not show as it was given, if there is more of it than before. */
static void note_changes(chat *c, const llm_chat_changes *now) {
    llm_chat_changes *told = &c->told_changes;
    char text[LLM_CHAT_NOTES];
    if (llm_chat_has_more(now, told) && llm_chat_notes(now, "; ", text))
        tool_note(TOOL, "%s", text);
    *told = *now;
}

/* Makes the prompt, and leaves out the oldest turns if it and the answer so far do not fit: then
 * until half of the context is free, because what remains has to run again. is_full: the context is
 * full already. */
static ggl_status fit_prompt(chat *c, prompt *p, bool is_full, ggl_error *err) {
    const size_t n_ctx = (size_t)llm_context_facts(c->ctx)->n_ctx, first = c->first;
    ggl_status st = make_prompt(c, p, err);
    if (st == GGL_OK && p->ids.n + c->drawn.n > (is_full ? n_ctx / 2 : n_ctx - 1))
        st = drop_oldest(c, p, n_ctx / 2, err);
    if (st == GGL_OK && p->ids.n + c->drawn.n >= n_ctx) {
        c->first = first;
        p->too_long = true;
        return ggl_fail(err, GGL_LIMIT, "the prompt does not fit into the context");
    }
    if (st == GGL_OK)
        note_changes(c, &p->made.changes);
    if (st == GGL_OK && c->first > first && !c->told_shift) {
        c->told_shift = true;
        chat_say(c,
                 "(the context of %zu tokens is full: from now on the oldest messages are left "
                 "out; /save keeps them)",
                 n_ctx);
    }
    return st;
}

/* Adds the tokens of the answer so far to the prompt. */
static ggl_status add_drawn(const chat *c, prompt *p, ggl_error *err) {
    const size_t n = p->ids.n + c->drawn.n;
    if (!ggl_grow(&p->ids.id, &p->ids.cap, n, sizeof *p->ids.id))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a prompt");
    if (c->drawn.n > 0)
        memcpy(p->ids.id + p->ids.n, c->drawn.id, c->drawn.n * sizeof *p->ids.id);
    p->ids.n = n;
    return GGL_OK;
}

/* --- the answer ------------------------------------------------------------------------------- */

static llm_run_info last_run(const chat *c) {
    llm_run_info run = {.size = sizeof run};
    (void)!llm_last_run(c->ctx, &run, NULL); /* fails only if the size is wrong */
    return run;
}

static void note_nan(chat *c) {
    const int64_t n_nan = last_run(c).n_nan;
    if (n_nan == 0 || c->told_nan)
        return;
    c->told_nan = true;
    tool_warning(TOOL, "%" PRId64 " of %" PRId32 " logits are NaN; such tokens are never chosen",
                 n_nan, llm_context_facts(c->ctx)->n_vocab);
}

/* True for a token with text for the conversation: no control token, or a mark of reasoning. */
static bool has_text(const chat *c, int32_t id) {
    const llm_tokenizer *t = llm_opened_tokenizer(c->ctx);
    return llm_token_text(t, id, false).n > 0 ||
           llm_calls_is_text(LLM_CALLS_THINK_TOKENS, llm_token_text(t, id, true));
}

/* Adds a token to the answer. */
static bool on_token(void *user, int32_t id, const float *logits) {
    chat *c = user;
    const llm_tokenizer *t = llm_opened_tokenizer(c->ctx);
    const ggl_str text = llm_token_next_text(t, id, has_text(c, id), &c->has_begun);
    note_nan(c);
    c->lacks_memory = !ggl_grow(&c->drawn.id, &c->drawn.cap, c->drawn.n + 1, sizeof *c->drawn.id) ||
                      !chat_text_add(&c->answer, text.s, text.n) ||
                      (c->o.json_output &&
                       !record_token(&c->record, id, logits, llm_context_facts(c->ctx)->n_vocab));
    if (c->lacks_memory)
        return false;
    c->drawn.id[c->drawn.n++] = id;
    c->n_read += text.n;
    return !c->out.failed;
}

/* True if a control token is a part of what is shown: as a mark of calls or reasoning. */
static bool shows(void *user, int32_t id) {
    chat *c = user;
    const ggl_str mark = llm_token_text(llm_opened_tokenizer(c->ctx), id, true);
    const bool is_text = has_text(c, id), differs = c->has_marks && !is_text && mark.n > 0;
    c->marked |= differs;
    c->n_read += differs ? mark.n : 0;
    return is_text || differs;
}

/* Forces the end of reasoning that has taken the tokens of --reasoning-budget. */
static size_t limit_reasoning(void *user, const int32_t **id) {
    chat *c = user;
    const ggl_str end = llm_calls_reasoning_end(c->show->calls);
    const int64_t most = c->o.chat.thinks == TOOL_REASONING_OFF ? 0 : c->o.open.reasoning_budget;
    ggl_error none = {0};
    if (end.n == 0 || most < 0 || c->ends_reasoning || (int64_t)c->drawn.n < most)
        return 0;
    c->ends_reasoning = true;
    llm_calls_force_end(c->show->calls);
    c->forced.n = 0; /* grammars allow no control tokens */
    *id = NULL;
    if (llm_tokenize(llm_opened_tokenizer(c->ctx), end.s, end.n,
                     constraint_is_given(&c->o.constraint) ? 0 : LLM_TOKENIZE_SPECIAL, &c->forced,
                     &none) != GGL_OK)
        return 0;
    *id = c->forced.id;
    return c->forced.n;
}

/* When the context is full, goes on with fewer turns. */
static bool make_room(void *user, const int32_t **id, size_t *n) {
    chat *c = user;
    c->full = fit_prompt(c, c->prompt, true, &c->full_err);
    if (c->full == GGL_OK)
        c->full = add_drawn(c, c->prompt, &c->full_err);
    *id = c->prompt->ids.id;
    *n = c->prompt->ids.n;
    return c->full == GGL_OK;
}

/* How the answer to a prompt is read. */
static llm_calls_params answer_params(const chat *c, const prompt *p) {
    const llm_generate_params *g = &c->setup->generation->p;
    const char *form = g->json_schema || c->tools ? g->json_schema : g->grammar;
    llm_calls_params calls = llm_chat_answers(llm_opened_chat(c->ctx));
    calls.prompt = (ggl_str){p->text, p->n_text};
    calls.tools = c->tools ? &c->tools->root : NULL;
    calls.no_calls = !c->tools;
    calls.answer = (ggl_str){form ? form : "", form ? strlen(form) : 0};
    return calls;
}

/* Runs the prompt. */
static ggl_status run_prompt(chat *c, prompt *p, ggl_error *err) {
    llm_generate_params g = c->setup->generation->p;
    g.n_max = c->o.n_predict > 0 ? c->o.n_predict : 0;
    g.same_sampler = !c->is_fresh;
    g.user = c;
    g.token = on_token;
    g.shows = shows;
    g.force = limit_reasoning;
    g.full = make_room;
    g.prompt_progress = c->setup->progress;
    tool_progress_prompt(c->ctx);
    const llm_calls_params calls = answer_params(c, p);
    llm_opened_read_as(c->ctx, &calls);
    const ggl_status st = llm_begin(c->ctx, p->ids.id, p->ids.n, &g, err);
    llm_opened_read_as(c->ctx, NULL);
    progress_end();
    c->is_fresh = false;
    c->prompt = p;
    return st;
}

/* Ends the answer where a stop string begins, or after it if that is one of -r. */
static void cut_answer(chat *c) {
    const size_t n = c->n_read - c->n_shown;
    c->answer.n -= n < c->answer.n ? n : c->answer.n;
}

/* Draws tokens until the answer ends, and shows them. GGL_OK: it has ended; GGL_LIMIT: the context is full. */
static ggl_status draw_all(chat *c, chat_show *show, ggl_error *err) {
    ggl_status st = GGL_OK, shown = GGL_OK;
    const char *piece = "";
    size_t n;
    c->show = show;
    c->full = GGL_LIMIT;
    while (c->o.n_predict != 0 && st == GGL_OK && shown == GGL_OK && piece) {
        st = llm_next(c->ctx, &piece, &n, err);
        if (n > 0)
            shown = chat_show_put(show, piece, n, st == GGL_OK ? err : NULL);
        c->n_shown += n;
    }
    llm_opened_end(c->ctx);
    note_nan(c);
    const llm_run_info run = last_run(c);
    c->finish = cli_finish(c->o.n_predict != 0 ? run.finish : LLM_FINISH_LENGTH);
    c->last.n_prompt = run.n_prompt;
    c->last.n_reused = run.n_reused;
    c->last.t_prompt = run.prompt_seconds;
    c->last.t_draw = run.seconds;
    c->last.t_repack = run.repack_seconds;
    c->is_incomplete = run.incomplete;
    if (run.finish == LLM_FINISH_STOP)
        cut_answer(c);
    if (c->lacks_memory)
        return ggl_fail(err, GGL_NOMEM, "out of memory for an answer");
    if (run.finish == LLM_FINISH_CONTEXT && c->full != GGL_LIMIT)
        *err = c->full_err;
    if (st == GGL_CANCELLED && c->out.failed && !process_stopped)
        st = GGL_OK; /* nobody reads on */
    return run.finish == LLM_FINISH_CONTEXT ? c->full : st == GGL_OK ? shown : st;
}

static void say_full(const chat *c) {
    const int64_t n_ctx = llm_context_facts(c->ctx)->n_ctx;
    if (!c->in.is_terminal || c->o.chat.single) /* where no command can be typed */
        (void)tool_error(TOOL, 0,
                         "the context of %" PRId64
                         " tokens is full: -c N gives a larger one, -n N ends earlier",
                         n_ctx);
    else
        (void)tool_error(
            TOOL, 0,
            "the context of %" PRId64 " tokens is full: /clear begins again, /undo takes a "
            "turn back%s; -c sets a larger one",
            n_ctx, c->shifts ? "" : ", '/set on-full shift' leaves the oldest turns out");
}

static void say_too_long(const chat *c, const prompt *p) {
    if (llm_talk_next_turn(c->talk, llm_talk_begin(c->talk)) < llm_talk_n(c->talk) && !c->shifts) {
        say_full(c);
        return;
    }
    (void)tool_error(TOOL, 0,
                     "the message does not fit: with it the prompt has %zu tokens, and the context "
                     "%" PRId64 "; -c sets a larger one",
                     p->ids.n, llm_context_facts(c->ctx)->n_ctx);
}

/* Ends the line after an answer, and says how it ended. */
static void end_line(chat *c, ggl_status st) {
    if (c->answer.n > 0 || st == GGL_OK) {
        const bool open = c->answer.n == 0 || c->answer.s[c->answer.n - 1] != '\n';
        if (open && !c->out.failed)
            text_stream_put(&c->out, "\n", 1);
        tool_set_line(TOOL_LINE_EMPTY);
    }
    if (st == GGL_CANCELLED)
        chat_say(c, "(stopped)");
    else if (st == GGL_OK && c->in.is_terminal && c->o.n_predict >= 0 &&
             (int64_t)c->drawn.n >= c->o.n_predict)
        chat_say(c, "(ended after %" PRId64 " token%s: -n)", c->o.n_predict,
                 llm_amount_s(c->o.n_predict));
    else if (st == GGL_LIMIT)
        say_full(c);
}

/* Explains an answer that shows nothing, which would look like a fault. */
static void note_hidden(const chat *c, const chat_show *show) {
    if (show->hid && show->n_content == 0 && show->n_found == 0 && !c->o.json_output)
        tool_note(TOOL, "the answer has only reasoning, which is hidden; --reasoning show "
                        "prints it");
}

static void count(chat *c) {
    chat_times *a = &c->all, *b = &c->last;
    b->n_answers = 1;
    b->n_drawn = (int64_t)c->drawn.n;
    a->n_answers += b->n_answers;
    a->n_prompt += b->n_prompt;
    a->n_reused += b->n_reused;
    a->n_drawn += b->n_drawn;
    a->t_prompt += b->t_prompt;
    a->t_draw += b->t_draw;
    a->t_repack += b->t_repack;
    if (c->o.chat.show_timings)
        chat_say_times(c, "this answer", b);
}

/* Adds an answer with calls of tools to the conversation. */
static ggl_status add_calls(chat *c, const chat_show *show, ggl_error *err) {
    const ggl_str content = {show->content ? show->content : "", show->n_content};
    llm_json_out json = {0};
    llm_json_format(&json, "{'role': 'assistant', 'content': %.*s, 'tool_calls': [",
                    LLM_JSON_STR(content));
    llm_json_put(&json, show->found, show->n_found);
    llm_json_put_text(&json, "]}");
    const ggl_status st =
        json.failed ? ggl_fail(err, GGL_NOMEM, "out of memory for an answer")
                    : llm_talk_add_json(c->talk, (ggl_str){json.s, json.n}, "the answer", err);
    ggl_free(json.s);
    return st;
}

/* Removes the last message. True if the prompt would be the same with a shorter text in its place. */
static bool renders_alike(chat *c, ggl_str shorter) {
    const size_t at = llm_talk_n(c->talk) - 1;
    char *text[2] = {NULL, NULL};
    size_t n[2] = {0, 0};
    ggl_error none = {0}; /* a template that refuses it does so at the next message */
    bool good = chat_render(c, c->talk, c->first, true, NULL, &text[0], &n[0], &none) == GGL_OK;
    llm_talk_cut(c->talk, at);
    good = good && llm_talk_add(c->talk, "assistant", shorter, &none) == GGL_OK &&
           chat_render(c, c->talk, c->first, true, NULL, &text[1], &n[1], &none) == GGL_OK &&
           n[0] == n[1] && memcmp(text[0], text[1], n[0]) == 0;
    llm_talk_cut(c->talk, at);
    ggl_free(text[0]);
    ggl_free(text[1]);
    return good;
}

/* Adds the answer without white space at its start, which the first token of an answer often has. It stays
 * only where the template copies it into the prompt: there the tokens must be those that were drawn. */
static ggl_status add_text(chat *c, ggl_str text, ggl_error *err) {
    ggl_str shorter = text;
    while (shorter.n > 0 && memchr(" \t\r\n", *shorter.s, 4)) {
        shorter.s++;
        shorter.n--;
    }
    const ggl_status st = llm_talk_add(c->talk, "assistant", text, err);
    if (st != GGL_OK || shorter.n == text.n)
        return st;
    const bool alike = renders_alike(c, shorter);
    return llm_talk_add(c->talk, "assistant", alike ? shorter : text, err);
}

/* Adds the answer to the conversation: with reasoning between <think> and </think>, which templates know;
 * without reasoning if it stands between control tokens. */
static ggl_status keep_answer(chat *c, const chat_show *show, ggl_error *err) {
    if (show->n_found > 0)
        return add_calls(c, show, err);
    const ggl_str text =
        c->marked ? (ggl_str){show->content, show->n_content} : (ggl_str){c->answer.s, c->answer.n};
    return add_text(c, text, err);
}

/* Writes the line of --json-output in place of the answer. */
static ggl_status write_record(chat *c, const prompt *p, const chat_show *show, ggl_error *err) {
    size_t n;
    record_run run = *c->setup->facts;
    run.prompt_ids = &p->ids;
    run.prompt_text = p->text;
    run.n_prompt_text = p->n_text;
    run.finish = c->finish;
    run.content = (ggl_str){show->content ? show->content : "", show->n_content};
    run.calls = (ggl_str){show->found, show->n_found};
    run.n_reused = c->last.n_reused;
    run.prompt = c->last.t_prompt;
    run.generation = c->last.t_draw;
    run.repacking = c->last.t_repack;
    if (!record_text(&c->record, c->answer.s ? c->answer.s : "", c->answer.n))
        return ggl_fail(err, GGL_NOMEM, "out of memory for --json-output");
    char *line = record_line(&c->record, &run, &n);
    if (!line)
        return ggl_fail(err, GGL_NOMEM, "out of memory for --json-output");
    c->out.take = NULL;
    text_stream_put(&c->out, line, n);
    free(line);
    return GGL_OK;
}

static bool drop_text(void *ctx, const char *text, size_t n) {
    (void)ctx, (void)text, (void)n;
    return true;
}

/* After the prompt has run: draws, shows and keeps the answer. */
static ggl_status give_answer(chat *c, prompt *p, ggl_error *err) {
    chat_show show;
    const llm_calls_params calls = answer_params(c, p);
    const chat_show_params params = {.out = &c->out,
                                     .reasoning = c->o.chat.reasoning,
                                     .has_looks = c->has_looks,
                                     .has_tools = c->tools != NULL,
                                     .calls = calls};
    c->wrap.column = 0;
    c->wrap.n = 0;
    if (c->o.json_output)
        c->out.take = drop_text;
    record_clear(&c->record);
    ggl_status st = chat_show_begin(&show, &params, err);
    if (st == GGL_OK)
        st = draw_all(c, &show, err);
    ggl_error late = {0};
    const bool is_cut =
        c->finish && (!strcmp(c->finish, "length") || !strcmp(c->finish, "context"));
    const ggl_status shown = st == GGL_NOMEM ? st : chat_show_end(&show, is_cut, &late);
    end_line(c, st);
    note_hidden(c, &show);
    count(c);
    ggl_status kept = GGL_OK;
    if (c->o.json_output && shown == GGL_OK)
        kept = write_record(c, p, &show, &late);
    if (kept == GGL_OK && (c->drawn.n > 0 || st != GGL_CANCELLED))
        kept = keep_answer(c, &show, &late);
    if (kept == GGL_OK && st == GGL_OK && c->is_incomplete)
        kept =
            ggl_fail(&late, GGL_LIMIT,
                     "the answer is not complete by its grammar: -n, or the context (-c), is too "
                     "small for its shortest ending");
    chat_show_fini(&show);
    if (shown == GGL_OK && kept == GGL_OK)
        return st == GGL_LIMIT ? GGL_OK : st;
    *err = late;
    return shown == GGL_OK ? kept : shown;
}

int chat_answer(chat *c, size_t keep) {
    ggl_error err = {0};
    prompt p = {0};
    const size_t n_before = llm_talk_n(c->talk);
    process_spare(c->in.is_terminal); /* until after_answer */
    c->answer.n = c->n_read = c->n_shown = 0;
    c->marked = c->ends_reasoning = c->lacks_memory = c->is_incomplete = false;
    c->has_begun = !llm_session_reads_text(llm_opened_session(c->ctx));
    c->drawn.n = 0;
    const chat_times last = c->last;
    c->last = (chat_times){0};
    ggl_status st = fit_prompt(c, &p, false, &err);
    if (p.too_long)
        say_too_long(c, &p);
    else if (st == GGL_OK)
        st = run_prompt(c, &p, &err);
    const bool runs = st == GGL_OK;
    if (runs)
        st = give_answer(c, &p, &err);
    else if (st == GGL_CANCELLED)
        chat_say(c, "(stopped; the message is taken back)");
    if (runs)
        set_used(c);
    else
        c->last = last;
    const bool told = p.too_long;
    prompt_fini(&p);
    if (llm_talk_n(c->talk) == n_before && st != GGL_OK)
        llm_talk_cut(c->talk, keep);
    if (st == GGL_OK || st == GGL_CANCELLED)
        return -1;
    if (!told)
        (void)tool_error(TOOL, 1, "%s", err.msg);
    return 1;
}
