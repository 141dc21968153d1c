/* Makes jobs of requests, on the threads of workers: prompts, samplers, matchers. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answer_impl.h"
#include "api_images.h"
#include "ggl/internal/text.h"
#include "job_rules.h"
#include "server_adapters.h"

/* --- prompts ------------------------------------------------------------------------------------ */

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for a request");
}

enum { TAG_SIZE = 24 };

/* Finds out how much of the prompt belongs to the message that is continued: all that differs from the prompt that would ask
 * for it. If the template does not render that, the whole message counts as not begun. */
static ggl_status count_begun(const llm_chat *chat, const llm_talk *talk, job_prompt *p,
                              ggl_error *err) {
    const llm_chat_params asks = {.end = LLM_CHAT_ASKS};
    llm_talk *fewer = NULL;
    char *text = NULL;
    size_t n = 0, same = 0;
    const ggl_status st = llm_talk_copy(&fewer, talk, llm_talk_n(talk) - 1, err);
    if (st == GGL_OK && llm_chat_prompt(chat, fewer, &asks, &text, &n, NULL) == GGL_OK)
        while (same < n && same < p->text.n && text[same] == p->text.s[same])
            same++;
    p->n_begun = same > 0 ? p->text.n - same : 0;
    ggl_free(text);
    llm_talk_free(fewer);
    return st;
}

/* Cuts the prompt at the tag, so that the model continues the last message. */
static ggl_status cut_at_tag(job_prompt *p, const char *tag, ggl_error *err) {
    const char *at = ggl_find_bytes(p->text.s, p->text.n, tag, TAG_SIZE);
    if (!at)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the last message cannot be continued: the chat template leaves it out");
    p->text.n = (size_t)(at - p->text.s);
    return GGL_OK;
}

static bool find_image(void *ctx, const char *text, size_t n, size_t *at, size_t *size) {
    size_t which;
    *size = IMAGE_MARK;
    return image_find_mark(ctx, text, n, at, &which);
}

static ggl_status append_image(void *ctx, const llm_tokenizer *t, const char *mark, llm_tokens *ids,
                               ggl_error *err) {
    const ask *a = ctx;
    size_t at = 0, which = 0;
    (void)t;
    (void)image_find_mark(a, mark, IMAGE_MARK, &at, &which);
    return a->append_seen ? a->append_seen(a, which, ids, err) : GGL_OK; /* nothing was looked at */
}

/* Tokenizes a text in which the request's own marks stand for its pictures and sounds. */
static ggl_status tokenize_seen(const server *s, const ask *a, const llm_spans *given, ggl_str text,
                                unsigned flags, llm_tokens *ids, ggl_error *err) {
    const llm_marks marks = {.find = find_image,
                             .append = append_image,
                             .ctx = (void *)a,
                             .most = server_get_facts(s)->most_images,
                             .what = "picture"};
    return llm_tokenize_marked(server_tokenizer(s), a->n_images > 0 ? &marks : NULL, given, text.s,
                               text.n, flags, ids, err);
}

/* Checks that the template shows all pictures. */
static ggl_status check_shown(const ask *a, ggl_str text, ggl_error *err) {
    bool shown[IMAGE_MOST] = {false};
    for (size_t at = 0, which; image_find_mark(a, text.s, text.n, &at, &which); at += IMAGE_MARK)
        shown[which] = true;
    for (size_t i = 0; i < a->n_images; i++)
        if (!shown[i])
            return ggl_fail(
                err, GGL_UNSUPPORTED,
                "the chat template leaves out %s %zu of %zu: give it in a message of the user",
                a->image[i].is_sound ? "sound" : "picture", i + 1, a->n_images);
    return GGL_OK;
}

/* Puts what people may see in place of marks in the prompt's text. */
static void hide_marks(const ask *a, job_prompt *p) {
    if (a->n_images == 0)
        return;
    char *begun = p->owned + p->text.n - p->n_begun;
    const size_t n_begun = image_hide_marks(a, begun, p->n_begun),
                 n = image_hide_marks(a, p->owned, p->text.n - p->n_begun);
    memmove(p->owned + n, begun, n_begun);
    p->text.n = n + n_begun;
    p->n_begun = n_begun;
}

/* Renders the conversation up to the end of its last message's text, after which the model continues. */
static ggl_status render_continued(const llm_chat *chat, const llm_talk *talk, job_prompt *p,
                                   const llm_chat_params *how, ggl_error *err) {
    llm_talk *tagged = NULL;
    char tag[TAG_SIZE + 1];
    random_text(tag, TAG_SIZE);
    ggl_status st = llm_talk_copy(&tagged, talk, llm_talk_n(talk), err);
    if (st == GGL_OK)
        st = llm_talk_append(tagged, (ggl_str){tag, TAG_SIZE}, err);
    if (st == GGL_OK)
        st = llm_chat_prompt(chat, tagged, how, &p->owned, &p->text.n, err);
    p->text.s = p->owned;
    if (st == GGL_OK)
        st = cut_at_tag(p, tag, err);
    if (st == GGL_OK)
        st = count_begun(chat, talk, p, err);
    llm_talk_free(tagged);
    return st;
}

/* Names of chat_template_kwargs that the template does not read, as a header may carry them. */
typedef struct unread_names {
    const json_value *kwargs;
    int n;
    char text[200];
} unread_names;

static bool has_member(const json_value *object, ggl_str name) {
    for (size_t i = 0; i < object->n; i++)
        if (ggl_str_equal(json_name(object, i), name))
            return true;
    return false;
}

static void note_unread(void *arg, ggl_str name) {
    enum { MOST = 3, MOST_BYTES = 40 };
    unread_names *u = arg;
    size_t n = strlen(u->text);
    if (u->n > MOST || !has_member(u->kwargs, name))
        return;
    if (u->n++ == MOST) {
        snprintf(u->text + n, sizeof u->text - n, " ..");
        return;
    }
    n += (size_t)snprintf(u->text + n, sizeof u->text - n, n > 0 ? ", \"" : "\"");
    for (size_t i = 0; i < name.n && i < MOST_BYTES; i++)
        u->text[n++] = (char)(name.s[i] >= ' ' && name.s[i] < 127 ? name.s[i] : '?');
    snprintf(u->text + n, sizeof u->text - n, "\"");
}

/* Finds them; false: there are none. */
static bool find_unread(const server *s, const ask *a, unread_names *u) {
    *u = (unread_names){0};
    if (a->doc)
        u->kwargs = llm_json_get_kind(&a->doc->root, "chat_template_kwargs", JSON_OBJECT);
    if (u->kwargs && a->talk && server_chat(s))
        llm_chat_unread(server_chat(s), a->talk, note_unread, u);
    return u->n > 0;
}

static ggl_status check_read(const server *s, const ask *a, const char **param, ggl_error *err) {
    unread_names u;
    if (!a->ignored.strict || !find_unread(s, a, &u))
        return GGL_OK;
    *param = "chat_template_kwargs";
    return ggl_fail(err, GGL_USAGE, "\"chat_template_kwargs\": the chat template does not read %s",
                    u.text);
}

ggl_status answer_chat_prompt(server *s, const ask *a, job_prompt *p, const char **param,
                              ggl_error *err) {
    llm_chat_made made = {0};
    const llm_chat_params how = {
        .end = a->continues || a->no_turn ? LLM_CHAT_AS_SAID : LLM_CHAT_ASKS, .made = &made};
    const llm_chat *chat = server_chat(s);
    *param = a->talk_name ? a->talk_name : "messages";
    if (!chat)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model has no chat template; start the server with --chat-template");
    ggl_status st = check_read(s, a, param, err);
    if (st != GGL_OK)
        return st;
    st = a->continues ? render_continued(chat, a->talk, p, &how, err)
                      : llm_chat_prompt(chat, a->talk, &how, &p->owned, &p->text.n, err);
    p->text.s = p->owned;
    if (st == GGL_OK)
        st = check_shown(a, p->text, err);
    if (st == GGL_OK)
        st = tokenize_seen(s, a, &made.given, p->text, LLM_TOKENIZE_SPECIAL, &p->ids, err);
    if (st == GGL_OK)
        hide_marks(a, p);
    p->changes = made.changes;
    llm_chat_made_fini(&made);
    return st;
}

void answer_say_notes(const server *s, const ask *a, const llm_chat_changes *changes,
                      http_reply *r) {
    char notes[LLM_CHAT_NOTES], text[LLM_CHAT_NOTES + 300];
    unread_names u;
    const bool has_notes = llm_chat_notes(changes, "; ", notes), has_unread = find_unread(s, a, &u);
    snprintf(text, sizeof text, "%s%s%s%s", notes, has_notes && has_unread ? "; " : "",
             has_unread ? "the chat template does not read what chat_template_kwargs sets: " : "",
             u.text);
    if (has_notes || has_unread)
        http_reply_header(r, "X-Notes", text);
}

/* Encodes a text. Vectors may be made of what looks like special tokens as of other text. */
static ggl_status read_text(const job *j, ggl_str text, llm_tokens *ids, ggl_error *err) {
    const unsigned flags =
        LLM_TOKENIZE_BOS | (j->ask->no_parse_special ? 0u : LLM_TOKENIZE_SPECIAL);
    return j->ask->kind == ASK_EMBED
               ? server_read_text(j->server, text, flags, ids, err)
               : llm_tokenize(server_tokenizer(j->server), text.s, text.n, flags, ids, err);
}

/* Encodes a text after what comes before texts of its task. */
static ggl_status text_after(job *j, const ask_prompt *from, job_prompt *p, ggl_error *err) {
    p->text.n = j->n_before + from->text.n;
    p->text.s = p->owned = ggl_calloc(p->text.n + 1, 1);
    if (!p->owned)
        return no_memory(err);
    memcpy(p->owned, j->before, j->n_before);
    memcpy(p->owned + j->n_before, from->text.s, from->text.n);
    const ggl_status st = read_text(j, p->text, &p->ids, err);
    return st == GGL_OK ? server_count_before(j->server, j->ask, (ggl_str){j->before, j->n_before},
                                              &p->n_before, err)
                        : st;
}

/* Encodes a text with pictures. */
static ggl_status seen_text(job *j, const ask_prompt *from, job_prompt *p, ggl_error *err) {
    const unsigned flags = LLM_TOKENIZE_BOS | LLM_TOKENIZE_SPECIAL;
    p->text.n = from->text.n;
    p->text.s = p->owned = ggl_calloc(p->text.n + 1, 1);
    if (!p->owned)
        return no_memory(err);
    memcpy(p->owned, from->text.s, from->text.n);
    const ggl_status st = tokenize_seen(j->server, j->ask, NULL, from->text, flags, &p->ids, err);
    hide_marks(j->ask, p);
    return st;
}

static ggl_status text_prompt(job *j, const ask_prompt *from, job_prompt *p, const char **param,
                              ggl_error *err) {
    const llm_tokenizer *t = server_tokenizer(j->server);
    *param = j->ask->compares       ? "documents"
             : j->ask->talk_name    ? j->ask->talk_name
             : ask_has_rows(j->ask) ? "input"
                                    : "prompt";
    if (from->text.s && j->n_before > 0)
        return text_after(j, from, p, err);
    if (from->text.s && j->ask->n_images > 0)
        return seen_text(j, from, p, err);
    if (from->text.s) {
        p->text = from->text;
        return read_text(j, from->text, &p->ids, err);
    }
    for (size_t i = 0; i < from->n; i++)
        if (from->id[i] < 0 || from->id[i] >= j->x.facts->n_vocab)
            return ggl_fail(err, GGL_USAGE,
                            "token %" PRId32 " of the prompt is not in the vocabulary of %" PRId64
                            " tokens",
                            from->id[i], j->x.facts->n_vocab);
    if (!ggl_grow(&p->ids.id, &p->ids.cap, from->n, sizeof *p->ids.id))
        return no_memory(err);
    if (from->n > 0)
        memcpy(p->ids.id, from->id, from->n * sizeof *p->ids.id);
    p->ids.n = from->n;
    const ggl_status st = llm_detokenize(t, from->id, from->n, true, &p->owned, &p->text.n, err);
    p->text.s = p->owned;
    return st;
}

/* A document is read with the query. */
static ggl_status rank_prompt(job *j, const ask_prompt *from, job_prompt *p, const char **param,
                              ggl_error *err) {
    *param = "documents";
    p->text = from->text;
    return llm_tokenize_pair(server_tokenizer(j->server), j->ask->query, from->text, &p->ids,
                             &p->types, err);
}

/* Cuts off the end of a text or document that is too long, but not what a query's form has after it, nor a token that
 * ends texts. */
static ggl_status cut_prompt(const job *j, job_prompt *p, ggl_error *err) {
    const size_t most = (size_t)j->x.facts->n_ctx;
    const llm_tokenizer *t = server_tokenizer(j->server);
    if (!j->ask->truncates || p->ids.n <= most)
        return GGL_OK;
    if (j->ask->kind == ASK_RANK)
        return llm_cut_pair(t, j->ask->query, &p->ids, &p->types, most, err);
    return server_cut_text(j->server, &p->ids, err);
}

static ggl_status check_length(job *j, const job_prompt *p, ggl_error *err) {
    const int64_t n_ctx = j->x.facts->n_ctx;
    if (p->ids.n == 0 && j->ask->kind == ASK_EMBED && j->x.facts->embeds_empty)
        return GGL_OK;
    if (p->ids.n == 0)
        return ggl_fail(err, GGL_USAGE, "%s",
                        p->text.n > 0 ? "the prompt becomes no token: the model's vocabulary lacks "
                                        "all of its characters"
                                      : "the prompt is empty: it has no tokens");
    if ((int64_t)p->ids.n <= n_ctx)
        return GGL_OK;
    j->n_too_long = (int64_t)p->ids.n;
    /* Programs look for the words of other servers. */
    return ggl_fail(err, GGL_LIMIT,
                    "the prompt of %zu tokens is too large: it exceeds the available context size, "
                    "the maximum context length is %" PRId64 " tokens%s; %s",
                    p->ids.n, n_ctx,
                    j->x.facts->limit_is_file
                        ? " (the max_seq_length of the model's settings; the server's -c N sets "
                          "another limit)"
                        : "",
                    ask_has_rows(j->ask)   ? "\"truncate\": true cuts it"
                    : j->x.facts->sees_all ? "cut it into parts"
                                           : "send less, or start the server with a larger -c");
}

/* The prompt's name for a text; NULL: none is given. */
static const char *prompt_name(const ask *a, bool is_last) {
    return !a->compares ? a->prompt_name : is_last ? "query" : "document";
}

/* Finds the task of a text, and what comes before it. Only the query, the last one, differs from those before. */
static ggl_status find_task(job *j, size_t i, const char **param, ggl_error *err) {
    const ask *a = j->ask;
    const bool is_last = i + 1 == j->n_prompts;
    if (i > 0 && !(a->compares && is_last)) {
        j->prompt[i].task = j->prompt[0].task;
        return GGL_OK;
    }
    ggl_free(j->before);
    j->before = NULL;
    j->n_before = 0;
    return server_find_task(j->server, a->task, prompt_name(a, a->compares && is_last),
                            &j->prompt[i].task, &j->before, &j->n_before, param, err);
}

/* As llm-embed and Python have it: the prompt of this name says that texts are queries. */
static bool is_query(const job *j, size_t i) {
    const char *name = prompt_name(j->ask, i + 1 == j->n_prompts);
    return j->ask->kind == ASK_EMBED && j->x.facts->all_vectors && name &&
           strcmp(name, "query") == 0;
}

static ggl_status make_prompts(job *j, const char **param, ggl_error *err) {
    const ask *a = j->ask;
    ggl_status st = server_request_scales(j->server, a->lora, &j->scale, err);
    if (st != GGL_OK) {
        *param = "lora";
        return st;
    }
    j->x.scale = j->scale;
    j->x.n_scales = server_n_adapters(j->server);
    j->n_shares = server_shares(j->server, j->scale, j->share);
    for (size_t i = 0; i < j->n_prompts && st == GGL_OK; i++) {
        job_prompt *p = &j->prompt[i];
        if (a->kind == ASK_EMBED && (st = find_task(j, i, param, err)) != GGL_OK)
            break;
        st = a->kind == ASK_CHAT     ? answer_chat_prompt(j->server, a, p, param, err)
             : a->kind == ASK_CHOOSE ? job_choose_prompt(j, i, param, err)
             : a->kind == ASK_RANK   ? rank_prompt(j, &a->prompt[i], p, param, err)
                                     : text_prompt(j, &a->prompt[i], p, param, err);
        if (st == GGL_OK)
            st = cut_prompt(j, p, err);
        if (st == GGL_OK && is_query(j, i))
            st = server_fill_query(j->server, &p->ids, &p->n_seen, err);
        if (st == GGL_OK)
            st = check_length(j, p, err);
        if (st != GGL_OK && ask_has_rows(a) && j->n_prompts > 1)
            st = ggl_within(err, st, "%s[%zu]", *param, i);
    }
    if (st == GGL_OK)
        *param = NULL;
    return st;
}

/* --- seats -------------------------------------------------------------------------------------- */

/* Makes the matcher of which all seats have copies. */
static ggl_status make_matcher(const job *j, llm_matcher **out, const llm_grammar *grammar,
                               ggl_error *err) {
    const llm_vocab *vocab = server_vocab(j->server);
    if (!vocab)
        return no_memory(err);
    const ggl_status st = llm_matcher_new(out, grammar, vocab, err);
    if (st == GGL_OK) {
        llm_matcher_limit(*out, GRAMMAR_MATCH_STEPS, GRAMMAR_MATCH_STEPS_BACK);
        llm_matcher_limit_bytes(*out, GRAMMAR_MATCH_BYTES);
    }
    return st;
}

static ggl_status make_seat(job *j, seat *s, const llm_matcher *matcher, ggl_error *err) {
    const server_facts *f = j->x.facts;
    const ask *a = j->ask;
    s->job = j;
    s->choice = -1;
    if (ask_has_rows(a))
        return seat_make_sum(s, err);
    const llm_job_params p = {.n_vocab = f->n_vocab,
                              .n_ctx = f->n_ctx,
                              .sampling = &a->sampling,
                              .matcher = matcher,
                              .stop = a->stop,
                              .n_stop = a->n_stops,
                              .way = {.n_max = f->diffuses ? a->n_max : job_n_most(j),
                                      .ignore_end = a->ignore_eos,
                                      .is_unsteered = !ask_is_steered(a),
                                      .shift = f->shifts,
                                      .beams = a->beams,
                                      .diffuses = f->diffuses,
                                      .diffusion = a->diffusion}};
    return llm_job_parts_new(&s->parts, &p, s != j->seat ? &j->seat->parts : NULL, err);
}

/* Makes room for the log-probabilities of the prompt's tokens, which are written in pieces while it runs. */
static ggl_status make_echo(seat *s, ggl_error *err) {
    const job *j = s->job;
    s->n_echo = s->echo_at = 0;
    s->has_echoed = !j->ask->echo;
    if (!j->ask->echo || j->ask->n_top < 0)
        return GGL_OK;
    s->echo = ggl_calloc(ANSWER_ECHO_PIECE, sizeof *s->echo);
    s->echo_top = ggl_calloc(ANSWER_ECHO_PIECE * j->n_top, sizeof *s->echo_top);
    return s->echo && s->echo_top ? GGL_OK : no_memory(err);
}

/* True if reasoning and calls are separated from content. */
static bool has_calls(const ask *a) {
    return a->kind == ASK_CHAT && !a->raw_marks;
}

static llm_calls_params calls_params(const job *j, const job_prompt *p) {
    const ask *a = j->ask;
    llm_calls_params c = llm_chat_answers(server_chat(j->server));
    c.prompt = p->text;
    c.n_begun = p->n_begun;
    c.tools = a->tools;
    c.partial = a->stream && j->dialect->takes_pieces && !a->whole_calls && a->tools &&
                a->tool_choice != ASK_TOOLS_NONE;
    c.max_steps = GRAMMAR_COMPILE_STEPS;
    c.max_bytes = GRAMMAR_COMPILE_BYTES;
    if (a->form ==
        ASK_GBNF) /* only the reader sees it: once such a text has begun, marks are text */
        c.answer = a->form_text;
    else if (a->form != ASK_ANY && a->tool_choice < ASK_TOOLS_REQUIRED)
        c.answer = answer_schema_of(a->form, a->form_text);
    c.demanded = a->kind == ASK_CHAT && a->tool_choice >= ASK_TOOLS_REQUIRED;
    c.no_calls = !a->tools || a->tool_choice == ASK_TOOLS_NONE;
    c.one_call = a->one_call;
    return c;
}

/* The control tokens that are text in the answer. */
static llm_calls_tokens answer_tokens(const job *j) {
    return j->ask->kind == ASK_CHAT
               ? llm_calls_tokens_of(llm_chat_answers(server_chat(j->server)).format)
               : LLM_CALLS_NO_TOKENS;
}

static bool take_part(void *ctx, const answer_part *part) {
    seat *s = ctx;
    char id[40] = "call_";
    answer_part p = *part;
    if (p.kind == PART_CALL && p.id.n == 0 && !p.is_continued) {
        if (llm_chat_has_short_ids(server_chat(s->job->server)))
            random_text(id, 9);
        else
            random_text(id + 5, 24);
        p.id = (ggl_str){id, strlen(id)};
    }
    return job_give(s->job, s->choice, &p);
}

ggl_status seat_limit_reasoning(seat *s, ggl_error *err) {
    const ask *a = s->job->ask;
    const ggl_str end = s->calls ? llm_calls_reasoning_end(s->calls) : (ggl_str){"", 0};
    if (end.n == 0 || a->reasoning_budget < 0 || s->text.n_reasoning < a->reasoning_budget ||
        s->ends_reasoning)
        return GGL_OK;
    s->ends_reasoning = true;
    llm_calls_force_end(s->calls);
    llm_tokens ids = {0}; /* grammars allow no control tokens */
    ggl_status st = llm_tokenize(server_tokenizer(s->job->server), end.s, end.n,
                                 s->parts.matcher ? 0 : LLM_TOKENIZE_SPECIAL, &ids, err);
    if (st == GGL_OK)
        st = llm_sampler_force(s->parts.sampler, ids.id, ids.n, err);
    llm_tokens_fini(&ids);
    return st;
}

ggl_status seat_prepare(seat *s, int choice, ggl_error *err) {
    job *j = s->job;
    const ask *a = j->ask;
    s->choice = choice;
    s->n_told = -1;
    if (ask_has_rows(a)) {
        seat_begin_sum(s);
        return GGL_OK;
    }
    llm_job_parts_begin(&s->parts, j->x.choice[choice].seed);
    ggl_status st = make_echo(s, err);
    if (st == GGL_OK && has_calls(a)) {
        const llm_calls_params calls = calls_params(j, seat_prompt(s));
        st = llm_calls_new(&s->calls, &calls, err);
    }
    const answer_text_params p = {.tokenizer = server_tokenizer(j->server),
                                  .marks = answer_tokens(j),
                                  .stops = s->parts.stop,
                                  .stop_in_text = a->stop_in_text,
                                  .calls = s->calls,
                                  .has_tools = a->tools && a->tool_choice != ASK_TOOLS_NONE,
                                  .begins_text = j->x.facts->reads_text,
                                  .keeps_tokens = a->n_top >= 0 || a->return_tokens,
                                  .n_top = j->n_top,
                                  .take = take_part,
                                  .ctx = s};
    answer_text_begin(&s->text, &p);
    s->ends_reasoning = false;
    if (st == GGL_OK)
        st = seat_limit_reasoning(s, err);
    if (st != GGL_OK)
        seat_clear(s);
    return st;
}

/* --- grammars ----------------------------------------------------------------------------------- */

/* What the answer must fit: a grammar that is kept for further requests, or one of this request alone. */
typedef struct job_grammar {
    answer_grammar *kept;
    llm_grammar *own;
} job_grammar;

/* Finds out how the answer may reason before it has the form. */
static ggl_status find_thoughts(const job *j, answer_form *form, ggl_error *err) {
    const llm_calls_params p = calls_params(j, &j->prompt[0]);
    llm_thought thought[LLM_THOUGHTS] = {0};
    const ggl_status st =
        llm_job_thoughts(thought, &form->n_thoughts, &p, server_tokenizer(j->server),
                         form->form == ASK_GBNF ? form->text : (ggl_str){"", 0}, err);
    memcpy(form->thought, thought, form->n_thoughts * sizeof *thought);
    return st;
}

static ggl_status take_grammar(job *j, job_grammar *g, const char **param, ggl_error *err) {
    const ask *a = j->ask;
    const bool is_either = ask_is_either(a);
    if (is_either && a->form_text.n > GRAMMAR_MAX_TEXT)
        return ggl_fail(err, GGL_LIMIT, "the schema has %zu bytes, but may have at most %d",
                        a->form_text.n, (int)GRAMMAR_MAX_TEXT);
    if (is_either || (a->kind == ASK_CHAT && a->tool_choice >= ASK_TOOLS_REQUIRED)) {
        const llm_calls_params p = calls_params(j, &j->prompt[0]);
        const bool named = a->tool_choice == ASK_TOOLS_NAMED;
        *param = is_either ? "response_format" : "tool_choice";
        const ggl_status st =
            llm_calls_grammar(&g->own, &p, named ? a->tool : (ggl_str){0}, a->one_call, err);
        return st == GGL_NOT_FOUND ? GGL_USAGE : st; /* the tool is missing, not the endpoint */
    }
    if (a->form == ASK_ANY)
        return GGL_OK;
    *param = a->form == ASK_GBNF ? "grammar" : "response_format";
    answer_form form = {.form = a->form, .text = a->form_text};
    const ggl_status st = has_calls(a) ? find_thoughts(j, &form, err) : GGL_OK;
    return st == GGL_OK ? answer_grammars_take(j->answers->grammars, &g->kept, &form, err) : st;
}

static size_t longest_prompt(const job *j) {
    size_t most = 0;
    for (size_t i = 0; i < j->n_prompts; i++)
        most = j->prompt[i].ids.n > most ? j->prompt[i].ids.n : most;
    return most;
}

static ggl_status too_short(const job *j, int64_t n_needed, int64_t room, ggl_error *err) {
    const ask *a = j->ask;
    if (a->n_max >= 0 && a->n_max <= room)
        return ggl_fail(err, GGL_LIMIT,
                        "the shortest answer that fits the schema takes %" PRId64
                        " tokens, but max_tokens is %" PRId64,
                        n_needed, a->n_max);
    return ggl_fail(err, GGL_LIMIT,
                    "the shortest answer that fits the schema takes %" PRId64
                    " tokens, but after the prompt the context has room for %" PRId64,
                    n_needed, room);
}

/* Refuses an answer that the grammar must complete, if its shortest text is too long. The first mask is found here, too: it
 * takes longer than most, and a hostile grammar is found on a thread that delays no other request. */
static ggl_status check_ending(const job *j, llm_matcher *m, ggl_error *err) {
    const int64_t n_ctx = j->x.facts->n_ctx, n_max = j->ask->n_max,
                  room = j->x.facts->shifts ? n_ctx : n_ctx + 1 - (int64_t)longest_prompt(j);
    const int64_t budget = n_max >= 0 && n_max < room ? n_max : room;
    const size_t n_words = ((size_t)j->x.facts->n_vocab + 31) / 32;
    uint32_t *allowed = ggl_calloc(n_words, sizeof *allowed);
    const int32_t *id;
    int32_t n = 0, n_allowed = 0;
    ggl_status st = allowed ? GGL_OK : no_memory(err);
    const bool is_steered = ask_is_steered(j->ask);
    if (st == GGL_OK && budget > 0)
        st = llm_matcher_mask(m,
                              !is_steered          ? (int32_t)LLM_MATCHER_NO_BUDGET
                              : budget < INT32_MAX ? (int32_t)budget
                                                   : INT32_MAX,
                              allowed, err);
    if (st == GGL_OK && budget > 0 && is_steered)
        st = llm_matcher_ending(m, &id, &n, err);
    for (size_t i = 0; st == GGL_OK && n > budget && i < n_words && n_allowed < 2; i++)
        for (uint32_t bits = allowed[i]; bits; bits &= bits - 1)
            n_allowed++;
    ggl_free(allowed);
    /* a second token is allowed only if it leads to another ending, which fits */
    return st == GGL_OK && n > budget && n_allowed < 2 ? too_short(j, n, room, err) : st;
}

static ggl_status make_seats(job *j, const char **param, ggl_error *err) {
    job_grammar g = {0};
    ggl_status st = take_grammar(j, &g, param, err);
    const llm_grammar *grammar = g.kept ? answer_grammar_get(g.kept) : g.own;
    llm_matcher *matcher = NULL;
    if (st == GGL_OK && grammar)
        st = make_matcher(j, &matcher, grammar, err);
    for (int i = 0; i < j->n_seats && st == GGL_OK; i++) {
        st = make_seat(j, &j->seat[i], matcher, err);
        if (st == GGL_OK)
            st = seat_prepare(&j->seat[i], i * job_n_texts(j), err);
        if (st == GGL_OK && i == 0 && grammar)
            st = check_ending(j, j->seat[0].parts.matcher, err);
    }
    llm_matcher_free(matcher);
    if (st == GGL_OK)
        *param = NULL;
    llm_grammar_free(g.own);
    answer_grammars_give_back(j->answers->grammars, g.kept);
    return st;
}

/* --- jobs --------------------------------------------------------------------------------------- */

/* what: the strings, as in "stop strings". */
static ggl_status check_strings(const ggl_str *s, size_t n, size_t most, size_t most_bytes,
                                const char *what, ggl_error *err) {
    size_t n_bytes = 0;
    for (size_t i = 0; i < n; i++)
        n_bytes += s[i].n;
    if (n <= most && n_bytes <= most_bytes)
        return GGL_OK;
    return ggl_fail(err, GGL_LIMIT,
                    "%zu %s of %zu bytes are too many: at most %zu of %zu are allowed", n, what,
                    n_bytes, most, most_bytes);
}

/* An answer with log-probabilities of the prompts' tokens takes hundreds of bytes for each. */
static ggl_status check_echo(const job *j, const char **param, ggl_error *err) {
    const size_t n_each = j->n_top > 0 ? j->n_top : 1, n_choices = (size_t)j->ask->n_choices;
    size_t n_tokens = 0;
    for (size_t i = 0; i < j->n_prompts; i++)
        n_tokens += j->prompt[i].ids.n;
    if (!j->ask->echo || j->ask->n_top < 0 || n_tokens <= ANSWER_MAX_ECHO_TOP / n_each / n_choices)
        return GGL_OK;
    *param = "echo";
    return ggl_fail(err, GGL_LIMIT,
                    "log-probabilities of %zu tokens of prompts, %zu of each, in %zu answers are "
                    "too many: at most %d are given; ask for fewer of each, or send fewer prompts",
                    n_tokens, n_each, n_choices, (int)ANSWER_MAX_ECHO_TOP);
}

ggl_status job_check_limits(const job *j, const char **param, ggl_error *err) {
    const ask *a = j->ask;
    const llm_sampler_params *p = &a->sampling;
    *param = "stop";
    ggl_status st = check_strings(a->stop, a->n_stops, ANSWER_MAX_STOPS, ANSWER_MAX_STOP_BYTES,
                                  "stop strings", err);
    if (st != GGL_OK)
        return st;
    *param = "dry_sequence_breakers";
    st = check_strings(p->dry_breakers, p->n_dry_breakers, ANSWER_MAX_BREAKERS,
                       ANSWER_MAX_BREAKER_BYTES, "breakers", err);
    if (st != GGL_OK)
        return st;
    *param = a->kind == ASK_RANK    ? "documents"
             : a->kind != ASK_EMBED ? "n"
             : a->talk_name         ? a->talk_name
                                    : "input";
    if (ask_has_rows(a) && j->n_prompts > ANSWER_MAX_CHOICES)
        return ggl_fail(err, GGL_LIMIT, "%zu texts are too many: at most %d are taken at once",
                        j->n_prompts, (int)ANSWER_MAX_CHOICES);
    if (a->n_choices < 1 || j->n_prompts > ANSWER_MAX_CHOICES / (size_t)a->n_choices)
        return ggl_fail(err, GGL_LIMIT,
                        "%zu prompts of %" PRId64 " choices each are too many: at most %d answers "
                        "are given at once",
                        j->n_prompts, a->n_choices, (int)ANSWER_MAX_CHOICES);
    *param = "n_predict";
    if (a->n_max < -1)
        return ggl_fail(err, GGL_USAGE,
                        "%" PRId64
                        " tokens cannot be generated; -1 generates as many as there is room for",
                        a->n_max);
    *param = "prompt";
    if (j->n_prompts == 0)
        return ggl_fail(err, GGL_USAGE, "there is no prompt");
    *param = "id_slot";
    const int n_slots = server_n_slots(j->server);
    if (a->only_slot >= n_slots)
        return ggl_fail(err, GGL_USAGE, "there is no slot %d: the server has slots 0 to %d",
                        a->only_slot, n_slots - 1);
    *param = NULL;
    return GGL_OK;
}

static void set_top(job *j) {
    j->n_top = j->ask->n_top <= 0 ? 0 : (size_t)j->ask->n_top;
    if (j->n_top > (size_t)j->x.facts->n_vocab)
        j->n_top = (size_t)j->x.facts->n_vocab;
}

static ggl_status alloc_choices(job *j, ggl_error *err) {
    const ask *a = j->ask;
    const size_t n = j->n_prompts * (size_t)a->n_choices,
                 n_parallel = (size_t)j->x.facts->n_parallel;
    const size_t n_sequences = n / (size_t)job_n_texts(j),
                 n_seats = n_sequences < n_parallel ? n_sequences : n_parallel;
    j->prompt = ggl_calloc(j->n_prompts, sizeof *j->prompt);
    j->x.choice = ggl_calloc(n, sizeof *j->x.choice);
    j->parts = ggl_calloc(a->stream ? 0 : n, sizeof *j->parts);
    j->seat = ggl_calloc(n_seats, sizeof *j->seat);
    j->top = ggl_calloc(j->n_top, sizeof *j->top);
    j->x.own = ggl_calloc(1, j->dialect->own_size);
    if (a->sampled_probs && a->n_top >= 0)
        j->candidate = ggl_calloc((size_t)j->x.facts->n_vocab, sizeof *j->candidate);
    if (!j->prompt || !j->x.choice || !j->parts || !j->seat || !j->top || !j->x.own ||
        (a->sampled_probs && a->n_top >= 0 && !j->candidate))
        return no_memory(err);
    j->x.n_choices = (int)n;
    j->n_seats = n_seats > 0 ? (int)n_seats : 1;
    return GGL_OK;
}

static void describe_choices(job *j) {
    const int64_t n = j->ask->n_choices;
    for (int i = 0; i < j->x.n_choices; i++) {
        const job_prompt *p = &j->prompt[i / n];
        j->x.choice[i] = (answer_choice){.index = i,
                                         .seed = j->ask->sampling.seed + (uint64_t)(i % n),
                                         .n_prompt = (int64_t)p->ids.n,
                                         .slot = j->ask->only_slot,
                                         .prompt = p->text};
    }
}

static ggl_status alloc_vectors(job *j, const char **param, ggl_error *err) {
    const int64_t n = job_count_vectors(j);
    *param = j->ask->kind == ASK_RANK ? "documents"
             : j->ask->talk_name      ? j->ask->talk_name
                                      : "input";
    const ggl_status st = job_hold_vectors(j, n, err);
    if (st != GGL_OK)
        return st;
    j->x.embedding = j->embedding =
        ggl_calloc((size_t)n, (size_t)answer_width(&j->x) * sizeof *j->embedding);
    return j->embedding ? GGL_OK : no_memory(err);
}

/* A text by diffusion is written at once, so it has a length. */
static ggl_status check_diffusion(const job *j, const char **param, ggl_error *err) {
    *param = "max_tokens";
    for (size_t i = 0; i < j->n_prompts; i++) {
        const int64_t n = job_n_diffused(j, &j->prompt[i]),
                      room = j->x.facts->n_ctx - (int64_t)j->prompt[i].ids.n;
        if (n < 1 || n > room)
            return ggl_fail(err, n < 1 ? GGL_USAGE : GGL_LIMIT,
                            "an answer of %" PRId64
                            " tokens: a text by diffusion has 1 or more, and "
                            "after the prompt the context has room for %" PRId64,
                            n, room);
    }
    *param = NULL;
    return GGL_OK;
}

static uint32_t wishes(const job *j) {
    const ask *a = j->ask;
    const server_facts *f = j->x.facts;
    const bool calls = a->tool_choice >= ASK_TOOLS_REQUIRED;
    /* A schema is one of content, and an answer that has to call has none. */
    return LLM_JOB_ASKS(DIFFUSION, f->diffuses) | LLM_JOB_ASKS(BEAMS, a->beams.n > 0) |
           LLM_JOB_ASKS(GRAMMAR, a->form == ASK_GBNF) |
           LLM_JOB_ASKS(SCHEMA, !calls && (a->form == ASK_JSON || a->form == ASK_SCHEMA)) |
           LLM_JOB_ASKS(CALL, calls) | LLM_JOB_ASKS(BIAS, a->sampling.n_bias > 0) |
           LLM_JOB_ASKS(BUDGET,
                        a->reasoning_budget >= 0 && a->reasoning_budget != f->reasoning_budget) |
           LLM_JOB_ASKS(LOGPROBS, a->n_top >= 0);
}

/* Finds out how many beams are searched, and refuses what cannot be had together. */
static ggl_status check_wishes(job *j, const char **param, ggl_error *err) {
    ask *a = j->ask;
    if (a->wants_beams && a->beams.n == 0)
        a->beams.n = (int32_t)a->n_choices;
    if (a->beams.n == 1 && !a->wants_beams)
        a->beams.n = 0;
    ggl_status st = llm_job_check(wishes(j), LLM_JOB_FIELDS, param, err);
    if (st != GGL_OK)
        return st;
    *param = "n";
    if (a->beams.n > 0 && a->n_choices > a->beams.n)
        return ggl_fail(err, GGL_USAGE,
                        "a search of %d beams gives as many texts at most, and not %" PRId64,
                        (int)a->beams.n, a->n_choices);
    *param = llm_job_word(LLM_JOB_BEAMS, LLM_JOB_FIELDS);
    st = llm_job_check_beams(a->beams.n, j->x.facts->n_parallel, LLM_JOB_FIELDS, err);
    if (st == GGL_OK)
        *param = NULL;
    return st;
}

ggl_status job_prepare(job *j, const char **param, ggl_error *err) {
    ask *a = j->ask;
    ggl_status st = job_check_limits(j, param, err);
    if (st == GGL_OK && !ask_has_rows(a))
        st = check_wishes(j, param, err);
    if (st == GGL_OK) {
        set_top(j);
        st = job_check_size(j, param, err);
    }
    if (st == GGL_OK)
        st = alloc_choices(j, err);
    if (st == GGL_OK)
        st = make_prompts(j, param, err);
    if (st == GGL_OK)
        st = check_echo(j, param, err);
    if (st == GGL_OK && j->x.facts->diffuses && !ask_has_rows(a))
        st = check_diffusion(j, param, err);
    if (st == GGL_OK)
        st = job_hold_prompts(j, err);
    if (st != GGL_OK)
        return st;
    if (!a->has_seed)
        a->sampling.seed = random_number() >> 32;
    a->sampling.tokenizer = server_tokenizer(j->server);
    describe_choices(j);
    if (ask_has_rows(a))
        st = alloc_vectors(j, param, err);
    return st == GGL_OK ? make_seats(j, param, err) : st;
}

job *job_new(server *s, const dialect *d, ask *a, const http_request *q, http_reply *r) {
    job *j = ggl_calloc(1, sizeof *j);
    if (!j)
        return NULL;
    *j = (job){.server = s,
               .answers = server_answers(s),
               .dialect = d,
               .ask = a,
               .reply = r,
               .n_prompts = a->kind == ASK_CHAT ? 1 : a->n_prompts,
               .held = {.use = MEMORY_ANSWERS},
               .matchers_held = {.use = MEMORY_GRAMMARS},
               .client = server_client(s, q),
               .x = {.ask = a, .facts = server_get_facts(s), .created = (int64_t)time(NULL)}};
    const double most = j->x.facts->max_seconds;
    const double seconds = a->seconds > 0 && !(most > 0 && most < a->seconds) ? a->seconds : most;
    j->t_start = j->t_said = answers_now(j->answers);
    if (seconds > 0 && seconds < 1e9)
        j->deadline = j->t_start + (int64_t)(seconds * 1e9);
    random_text(j->x.id, 29);
    const char *id = a->stream && j->answers->streams ? q->header(q, "X-Conversation-Id") : NULL;
    j->resume_id = id ? ggl_copy_text(id) : NULL;
    server_hold(s);
    if (a->has_keep)
        server_keep(s, a->keep_seconds);
    return j;
}
