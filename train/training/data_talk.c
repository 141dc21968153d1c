#include "data_talk.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "llm/internal/calls.h"
#include "data_members.h"
#include "data_text.h"
#include "data_thought.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "common/json_make.h"
#include "template/parts.h"

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for a conversation");
}

/* The least weight above 0, and the largest. */
static const double weights[2] = {0.001, 1000};

/* --- messages --------------------------------------------------------------------------------- */

void llm_train_talk_fini(train_talk *t) {
    llm_talk_free(t->talk);
    ggl_arena_fini(&t->arena);
    llm_json_free(t->tools);
    ggl_free(t->text.s);
    ggl_free(t->weight);
    *t = (train_talk){0};
}

static ggl_status begin_talk(train_talk *t, ggl_error *err) {
    return t->talk ? GGL_OK : llm_talk_new(&t->talk, err);
}

/* How much the tokens of an answer count, by its "train" or "weight". *to: as it is without them. */
static ggl_status read_weight(const json_value *message, float *to, ggl_error *err) {
    const json_value *train = llm_json_get(message, "train"),
                     *weight = llm_json_get(message, "weight");
    if (train && train->kind != JSON_BOOL && train->kind != JSON_NULL)
        return ggl_fail(err, GGL_FORMAT, "\"train\" must be true or false, not %s",
                        llm_json_kind_text((json_kind)train->kind));
    if (weight && weight->kind != JSON_NULL &&
        (weight->kind != JSON_NUMBER || !(weight->number == 0 || (weight->number >= weights[0] &&
                                                                  weight->number <= weights[1])))) {
        ggl_str found = {llm_json_kind_text((json_kind)weight->kind), 0};
        if (weight->kind == JSON_NUMBER) /* Python's NaN and Infinity have no text */
            found = isfinite(weight->number) ? json_number_text(weight)
                                             : (ggl_str){"NaN or Infinity", 0};
        return ggl_fail(err, GGL_FORMAT,
                        "\"weight\" must be 0, or a number from %g to %g, not %.*s", weights[0],
                        weights[1], (int)(found.n ? found.n : strlen(found.s)), found.s);
    }
    if (weight && weight->kind == JSON_NUMBER)
        *to *= (float)weight->number;
    if (train && train->kind == JSON_BOOL && !train->flag)
        *to = 0;
    return GGL_OK;
}

/* True if an answer says nothing: no text, no calls, no reasoning. */
static bool is_empty(const llm_talk_message *m) {
    return m->n_calls == 0 && llm_train_is_blank(m->reasoning) && llm_train_is_blank(m->content);
}

/* --- pictures and sounds ---------------------------------------------------------------------- */

/* Of each kind: its list beside the messages, or one alone; what names the next of them in a text; and where a part has its own. */
static const struct {
    const char *many, *one, *mark, *part[5];
} files[TRAIN_FILE_KINDS] = {
    [TRAIN_PICTURE] = {"images", "image", "<image>", {"image_url", "image", "url", "path", NULL}},
    [TRAIN_SOUND] = {"audios",
                     "audio",
                     "<audio>",
                     {"input_audio", "audio_url", "audio", "url", "path"}},
};

void llm_train_talk_files(train_talk *t, train_data *d, const json_value *object) {
    t->d = d;
    for (int k = 0; k < TRAIN_FILE_KINDS; k++) {
        const json_value *many = llm_train_member(object, files[k].many);
        t->file[k] = many ? many : llm_train_member(object, files[k].one);
    }
}

static uint32_t n_files(const train_talk *t, int kind) {
    const json_value *v = t->file[kind];
    return !v ? 0 : v->kind == JSON_ARRAY ? v->n : 1;
}

/* Shows the next file that stands beside the messages. */
static ggl_status show_next(train_talk *t, int kind, ggl_str *mark, ggl_error *err) {
    const json_value *v = t->file[kind];
    const uint32_t k = t->n_named[kind], n = n_files(t, kind);
    if (k == n)
        return ggl_fail(err, GGL_FORMAT, "the messages name more %s than the %" PRIu32 " of \"%s\"",
                        kind == TRAIN_SOUND ? "sounds" : "pictures", n, files[kind].many);
    t->n_named[kind]++;
    const ggl_status st = llm_train_show(t->d, (train_file_kind)kind,
                                         v->kind == JSON_ARRAY ? &v->item[k] : v, mark, err);
    return st == GGL_OK ? st : ggl_within(err, st, "%s[%" PRIu32 "]", files[kind].many, k);
}

/* All files must be named. */
static ggl_status check_files(const train_talk *t, ggl_error *err) {
    for (int k = 0; k < TRAIN_FILE_KINDS; k++)
        if (t->n_named[k] < n_files(t, k))
            return ggl_fail(err, GGL_FORMAT,
                            "\"%s\" has %" PRIu32 ", of which the messages name %" PRIu32
                            ": write %s where one stands",
                            files[k].many, n_files(t, k), t->n_named[k], files[k].mark);
    return GGL_OK;
}

/* Finds the first name of a file in a text. Returns its kind; TRAIN_FILE_KINDS: there is none. */
static int find_name(const train_talk *t, ggl_str text, size_t *at) {
    int found = TRAIN_FILE_KINDS;
    for (int k = 0; k < TRAIN_FILE_KINDS; k++) {
        const char *p = t->file[k] && text.n > 0
                            ? ggl_find_bytes(text.s, text.n, files[k].mark, strlen(files[k].mark))
                            : NULL;
        if (p && (found == TRAIN_FILE_KINDS || (size_t)(p - text.s) < *at)) {
            found = k;
            *at = (size_t)(p - text.s);
        }
    }
    return found;
}

/* Puts marks in place of names into a text. As between parts of a content, no line break stands beside a mark. */
static ggl_status read_text(void *ctx, ggl_str text, ggl_str *out, ggl_error *err) {
    train_talk *t = ctx;
    ggl_status st = GGL_OK;
    size_t at = 0;
    *out = text;
    t->text.n = 0;
    for (int k; st == GGL_OK && (k = find_name(t, text, &at)) < TRAIN_FILE_KINDS;) {
        const size_t size = at + strlen(files[k].mark),
                     skipped = size + (size < text.n && text.s[size] == '\n');
        ggl_str mark = {"", 0};
        llm_json_put(&t->text, text.s, at - (at > 0 && text.s[at - 1] == '\n'));
        st = show_next(t, k, &mark, err);
        if (st == GGL_OK)
            llm_json_put(&t->text, mark.s, mark.n);
        text = (ggl_str){text.s + skipped, text.n - skipped};
    }
    if (t->text.n == 0 && !t->text.failed)
        return st;
    llm_json_put(&t->text, text.s, text.n);
    *out = (ggl_str){t->text.s, t->text.n};
    return st == GGL_OK && t->text.failed ? no_memory(err) : st;
}

/* Returns the kind of file that the part is; TRAIN_FILE_KINDS: none. */
static int kind_of(const json_value *part) {
    const json_value *type = llm_json_get(part, "type");
    if (llm_part_is_picture(part))
        return TRAIN_PICTURE;
    return llm_part_is_sound(part) || llm_json_is(type, "audio") || llm_json_is(type, "audio_url")
               ? TRAIN_SOUND
               : TRAIN_FILE_KINDS;
}

static ggl_status show_part(train_talk *t, int kind, const json_value *part, ggl_str *mark,
                            ggl_error *err) {
    const json_value *v = NULL, *digits;
    for (int i = 0; i < 5 && files[kind].part[i] && !v; i++)
        v = llm_train_member(part, files[kind].part[i]);
    if (!v && t->file[kind])
        return show_next(t, kind, mark, err);
    digits = llm_json_get_kind(v, "data", JSON_STRING);
    return digits ? llm_train_show_digits(t->d, (train_file_kind)kind, json_str(digits), mark, err)
                  : llm_train_show(t->d, (train_file_kind)kind, v, mark, err);
}

/* Reads a part of a content: a file becomes its mark, unless it is a result's that, as in use, is left out. */
static ggl_status read_part(void *ctx, const json_value *part, bool in_result, ggl_str *text,
                            bool *stands, ggl_error *err) {
    train_talk *t = ctx;
    const llm_file_senses *s = t->d ? t->d->p.senses : NULL;
    const bool can[] = {[TRAIN_PICTURE] = s && s->pictures, [TRAIN_SOUND] = s && s->sounds};
    const int kind = t->d ? kind_of(part) : TRAIN_FILE_KINDS;
    const llm_part_marks marks = {.in_text = s ? s->marks : NULL};
    const llm_part_reader usual = llm_part_marks_reader(&marks);
    *stands = kind < TRAIN_FILE_KINDS && (!in_result || can[kind]);
    return *stands ? show_part(t, kind, part, text, err)
                   : usual.part(usual.ctx, part, in_result, text, stands, err);
}

/* --- putting them together -------------------------------------------------------------------- */

static ggl_status end_message(train_talk *t, float weight, bool empty, ggl_error *err) {
    if (!ggl_grow(&t->weight, &t->cap, t->n + 1, sizeof *t->weight))
        return no_memory(err);
    const bool counts = t->n > 0 && weight > 0; /* what follows nothing is no answer */
    t->n_empty += counts && empty;
    t->weight[t->n++] = counts && !empty ? weight : 0;
    return GGL_OK;
}

/* Refuses a role that is likely to be misspelled: its message would be shown under that name, and an answer would not count. */
static ggl_status check_role(const train_talk *t, const json_value *role, ggl_error *err) {
    if (!t->d || !t->d->p.chat || llm_chat_knows_role(t->d->p.chat, json_str(role)))
        return GGL_OK;
    return ggl_fail(
        err, GGL_FORMAT,
        "\"role\" is \"%.*s\"; \"system\", \"developer\", \"user\", \"assistant\", "
        "\"tool\", \"function\" or another one that the chat template names is expected",
        (int)ggl_utf8_cut(role->s, role->n, 40), role->s);
}

ggl_status llm_train_talk_add(train_talk *t, const json_value *message, bool counts,
                              ggl_error *err) {
    const json_value *role = llm_json_get(message, "role");
    if (message->kind != JSON_OBJECT || !role || role->kind != JSON_STRING)
        return ggl_fail(err, GGL_FORMAT,
                        "a message must be an object with a \"role\" and a \"content\", such as "
                        "{\"role\": \"user\", \"content\": \"Hi\"}, not %s",
                        message->kind == JSON_OBJECT
                            ? "one without a \"role\" that is a string"
                            : llm_json_kind_text((json_kind)message->kind));
    float weight = counts && llm_json_is(role, "assistant");
    ggl_status st = check_role(t, role, err);
    if (st == GGL_OK)
        st = read_weight(message, &weight, err);
    if (st != GGL_OK)
        return st;
    const llm_part_reader reader = {.part = read_part, .text = read_text, .ctx = t};
    llm_json_member *member = ggl_arena_alloc(&t->arena, message->n, sizeof *member);
    json_value *without = ggl_arena_alloc(&t->arena, 1, sizeof *without);
    size_t n = 0;
    for (uint32_t i = 0; member && i < message->n; i++)
        if (!ggl_str_is(json_name(message, i), "weight") &&
            !ggl_str_is(json_name(message, i), "train"))
            member[n++] = (llm_json_member){json_name(message, i), message->item[i]};
    if (!member || !without || !llm_json_make_object(without, &t->arena, member, n))
        return no_memory(err);
    st = begin_talk(t, err);
    if (st == GGL_OK)
        st = llm_talk_add_value(t->talk, without, &reader, err);
    return st == GGL_OK ? end_message(t, weight, is_empty(llm_talk_at(t->talk, t->n)), err) : st;
}

ggl_status llm_train_talk_say(train_talk *t, const char *role, ggl_str content,
                              const json_value *of, ggl_error *err) {
    float weight = strcmp(role, "assistant") == 0;
    ggl_status st = read_weight(of, &weight, err);
    if (st == GGL_OK)
        st = begin_talk(t, err);
    if (st == GGL_OK)
        st = read_text(t, content, &content, err);
    if (st == GGL_OK)
        st = llm_talk_add(t->talk, role, content, err);
    return st == GGL_OK ? end_message(t, weight, llm_train_is_blank(content), err) : st;
}

ggl_status llm_train_talk_set(train_talk *t, const char *name, const json_value *value,
                              ggl_error *err) {
    const bool is_tools = strcmp(name, "tools") == 0;
    const char *kept = ggl_arena_strndup(&t->arena, name, strlen(name));
    ggl_status st = kept ? begin_talk(t, err) : no_memory(err);
    if (st == GGL_OK && is_tools && value->kind == JSON_STRING) { /* in tables of fixed columns */
        st = llm_json_parse(&t->tools, value->s, value->n, "\"tools\"", err);
        value = st == GGL_OK ? &t->tools->root : value;
    }
    if (st == GGL_OK && is_tools)
        st = llm_calls_check_tools(value, err);
    t->has_tools |= is_tools && value->n > 0;
    return st == GGL_OK ? llm_talk_put(t->talk, (ggl_str){kept, strlen(kept)}, value, err) : st;
}

/* --- what the template writes ----------------------------------------------------------------- */

/* A conversation of which the first messages can be rendered. */
typedef struct stage {
    train_data *d;
    const train_talk *talk;
    size_t too_long; /* bytes of prompts that have more than n_ctx tokens */
} stage;

/* Says once that the template shows no tools, though a conversation has some. */
static void note_tools(train_data *d, const train_talk *t) {
    if (!t->has_tools || d->told_no_tools || !d->p.note || llm_chat_shows_tools(d->p.chat))
        return;
    d->told_no_tools = true;
    d->p.note(d->p.user, "conversations have \"tools\", which the chat template does not show");
}

static ggl_status stage_init(stage *g, train_data *d, train_talk *t, ggl_error *err) {
    *g = (stage){.d = d, .talk = t};
    if (!d->p.chat)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "a conversation needs a chat template, and the model has none: name one "
            "(chat_template, or "
            "--chat-template), such as chatml, or write \"prompt\" and \"completion\" as texts");
    if (t->n == 0)
        return ggl_fail(err, GGL_FORMAT, "the conversation has no messages");
    t->now = llm_json_of_text(d->p.now ? d->p.now : TRAIN_NOW);
    ggl_status st = check_files(t, err);
    if (st == GGL_OK && !llm_talk_get(t->talk, "now"))
        st = llm_talk_put(t->talk, (ggl_str){"now", 3}, &t->now, err);
    if (st == GGL_OK)
        note_tools(d, t);
    return st;
}

/* A prompt. */
typedef struct rendered {
    char *text;
    size_t n;
    llm_chat_made made;
} rendered;

static void rendered_fini(rendered *r) {
    ggl_free(r->text);
    llm_chat_made_fini(&r->made);
}

static ggl_str text_of(const rendered *r) {
    return (ggl_str){r->text, r->n};
}

/* Renders the first n messages; asks: for an answer. */
static ggl_status render(const stage *g, size_t n, bool asks, rendered *r, ggl_error *err) {
    const llm_chat_params p = {
        .end = asks ? LLM_CHAT_ASKS : LLM_CHAT_ENDS, .n = n, .made = &r->made};
    return llm_chat_prompt(g->d->p.chat, g->talk->talk, &p, &r->text, &r->n, err);
}

/* An answer cannot be told from its prompt. */
static ggl_status not_found(size_t message, ggl_str prompt, ggl_str whole, ggl_error *err) {
    enum { SHOWN = 40 };
    size_t same = 0;
    while (same < prompt.n && same < whole.n && prompt.s[same] == whole.s[same])
        same++;
    if (same == whole.n)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "messages[%zu]: the chat template leaves this answer out", message);
    size_t from = same;
    while (from > 0 && same - from < SHOWN / 2 && (from == same || prompt.s[from] != '\n'))
        from--;
    while (from < same && ((unsigned char)prompt.s[from] & 0xc0) == 0x80) /* within a character */
        from++;
    const size_t n_asks = ggl_utf8_cut(prompt.s + from, prompt.n - from, SHOWN),
                 n_shows = ggl_utf8_cut(whole.s + from, whole.n - from, SHOWN);
    return ggl_fail(
        err, GGL_UNSUPPORTED,
        "messages[%zu]: the chat template asks for an answer with '..%.*s', but shows the answer "
        "as '..%.*s': so it does not say what the model shall write. Give a reasoning, as "
        "\"reasoning_content\", if it asks for one. Variables of the template in "
        "\"chat_template_kwargs\" may change that; else use another template, or \"prompt\" and "
        "\"completion\" as texts",
        message, (int)n_asks, prompt.s + from, (int)n_shows, whole.s + from);
}

/* Appends the tokens of an answer, to the one that ends it. */
static ggl_status append_answer(train_data *d, ggl_str answer, const llm_spans *given,
                                llm_tokens *t, ggl_error *err) {
    const size_t first = t->n;
    const ggl_status st = llm_tokenize_given(d->p.tokenizer, given, answer.s, answer.n,
                                             LLM_TOKENIZE_SPECIAL | LLM_TOKENIZE_GOES_ON, t, err);
    for (size_t i = first; i < t->n && st == GGL_OK; i++)
        if (llm_tokenizer_is_eog(d->p.tokenizer, t->id[i])) {
            t->n = i + 1;
            return GGL_OK;
        }
    if (st == GGL_OK && !d->told_no_end && d->p.note) {
        d->told_no_end = true;
        d->p.note(d->p.user, "the chat template ends answers with no token that ends generation: "
                             "the model does not learn when to stop");
    }
    return st;
}

/* --- items ------------------------------------------------------------------------------------ */

/* What becomes of the items of a conversation. */
typedef struct sink {
    train_draft s; /* the item with the answers so far */
    bool any;      /* an item was added */
    bool last;     /* only the last item is wanted, which is not added */
} sink;

static ggl_status emit(stage *g, sink *k, ggl_error *err) {
    bool added = false;
    ggl_status st = GGL_OK;
    if (k->s.n_runs > 0 && !k->last)
        st = llm_train_add(g->d, &k->s, !k->any, &added, err);
    k->any |= added;
    return st;
}

/* Begins another item, unless the prompt goes on where the item ends. */
static ggl_status go_on(stage *g, sink *k, const rendered *prompt, ggl_error *err) {
    llm_tokens t = {0}, *was = &k->s.tokens;
    ggl_status st = llm_tokenize_given(g->d->p.tokenizer, &prompt->made.given, prompt->text,
                                       prompt->n, LLM_TOKENIZE_SPECIAL, &t, err);
    const bool same =
        was->n > 0 && t.n >= was->n && memcmp(t.id, was->id, was->n * sizeof *t.id) == 0;
    if (st == GGL_OK && was->n > 0 && !same) {
        st = emit(g, k, err);
        llm_train_draft_clear(&k->s);
    }
    if (st == GGL_OK) {
        llm_tokens_fini(was);
        *was = t;
    } else {
        llm_tokens_fini(&t);
    }
    return st;
}

/* Finds what the model shall write after the prompt. *made: its text, if it is no part of what the template shows. */
static ggl_status find_answer(const stage *g, size_t m, ggl_str prompt, ggl_str whole,
                              ggl_str *answer, llm_json_out *made, ggl_error *err) {
    *answer = (ggl_str){whole.s + prompt.n, whole.n - prompt.n};
    if (prompt.n < whole.n && memcmp(prompt.s, whole.s, prompt.n) == 0)
        return GGL_OK;
    if (!llm_train_thought(made, prompt, whole, llm_talk_at(g->talk->talk, m)))
        return not_found(m, prompt, whole, err);
    *answer = (ggl_str){made->s, made->n};
    return made->failed ? no_memory(err) : GGL_OK;
}

/* Moves what stems from messages to where it is in an answer, which ends as the whole does. */
static void move_given(rendered *whole, size_t n_answer) {
    llm_spans *s = &whole->made.given;
    size_t k = 0;
    for (size_t i = 0; i < s->n; i++) {
        const llm_span x = s->at[i];
        if (x.to + n_answer > whole->n)
            s->at[k++] = (llm_span){x.from + n_answer > whole->n ? x.from + n_answer - whole->n : 0,
                                    x.to + n_answer - whole->n};
    }
    s->n = k;
}

/* Adds the answer that message m is. */
static ggl_status add_answer(stage *g, sink *k, size_t m, ggl_error *err) {
    rendered prompt = {0}, whole = {0};
    llm_json_out made = {0};
    ggl_str answer = {0};
    ggl_status st = render(g, m, true, &prompt, err);
    if (st == GGL_OK)
        st = render(g, m + 1, false, &whole, err);
    if (st == GGL_OK)
        st = find_answer(g, m, text_of(&prompt), text_of(&whole), &answer, &made, err);
    if (st == GGL_OK)
        st = go_on(g, k, &prompt, err);
    const size_t first = k->s.tokens.n;
    g->too_long += first > (size_t)g->d->p.n_ctx ? prompt.n : 0;
    if (st == GGL_OK)
        move_given(&whole, answer.n);
    if (st == GGL_OK)
        st = append_answer(g->d, answer, &whole.made.given, &k->s.tokens, err);
    if (st == GGL_OK)
        st = llm_train_draft_count(&k->s, first, k->s.tokens.n, g->talk->weight[m], err);
    rendered_fini(&prompt);
    rendered_fini(&whole);
    ggl_free(made.s);
    return st;
}

/* True if no later answer has room: the one before was beyond n_ctx, and its prompt has only grown; or so many prompts were too long
 * that trying the others would take a time without bounds. */
static bool is_full(const stage *g, const train_draft *s) {
    enum { MOST = 1 << 22 }; /* bytes */
    return g->too_long > MOST || (s->n_runs > 1 && s->run[s->n_runs - 1].first > g->d->p.n_ctx);
}

static ggl_status add_answers(stage *g, sink *k, ggl_error *err) {
    ggl_status st = GGL_OK;
    size_t m = 1;
    for (; m < g->talk->n && st == GGL_OK && !is_full(g, &k->s); m++)
        if (g->talk->weight[m] > 0)
            st = add_answer(g, k, m, err);
    for (; m < g->talk->n && k->s.n_runs == 1; m++) /* each would have been an item */
        g->d->stats.n_long += g->talk->weight[m] > 0;
    return st == GGL_OK ? emit(g, k, err) : st;
}

/* The whole conversation counts. */
static ggl_status add_all(stage *g, sink *k, ggl_error *err) {
    rendered all = {0};
    ggl_status st = render(g, g->talk->n, false, &all, err);
    if (st == GGL_OK)
        st = llm_tokenize_given(g->d->p.tokenizer, &all.made.given, all.text, all.n,
                                LLM_TOKENIZE_SPECIAL, &k->s.tokens, err);
    if (st == GGL_OK)
        st = llm_train_draft_count(&k->s, 0, k->s.tokens.n, 1, err);
    rendered_fini(&all);
    return st == GGL_OK ? emit(g, k, err) : st;
}

static bool any_counts(const train_talk *t) {
    for (size_t i = 0; i < t->n; i++)
        if (t->weight[i] > 0)
            return true;
    return false;
}

static ggl_status make_items(train_data *d, train_talk *t, sink *k, ggl_error *err) {
    stage g;
    ggl_status st = stage_init(&g, d, t, err);
    if (!k->last)
        d->stats.n_empty += t->n_empty;
    if (st == GGL_OK && d->p.all && !k->last)
        st = add_all(&g, k, err);
    else if (st == GGL_OK && any_counts(t))
        st = add_answers(&g, k, err);
    else if (st == GGL_OK && !k->last)
        d->stats.n_silent += t->n_empty == 0;
    return st;
}

ggl_status llm_train_talk_items(train_data *d, train_talk *t, ggl_error *err) {
    sink k = {.last = false};
    const ggl_status st = make_items(d, t, &k, err);
    llm_train_draft_fini(&k.s);
    return st;
}

ggl_status llm_train_talk_draft(train_data *d, train_talk *t, train_draft *s, ggl_error *err) {
    sink k = {.s = *s, .last = true};
    const ggl_status st = make_items(d, t, &k, err);
    *s = k.s;
    return st;
}
