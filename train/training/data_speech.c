#include "data_speech.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data_members.h"
#include "data_reads.h"
#include "data_text.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "speech/word_split.h"

/* --- members ---------------------------------------------------------------------------------- */

/* Returns the first member of these names; NULL: there is none. */
static const json_value *first_of(const json_value *o, const char *const *name, size_t n,
                                  const char **which) {
    const json_value *v = NULL;
    for (size_t i = 0; i < n && !v; i++) {
        v = llm_train_member(o, name[i]);
        *which = v ? name[i] : *which;
    }
    return v;
}

/* Gets a number of seconds. */
static ggl_status seconds_of(const json_value *o, const char *name, double *out, ggl_error *err) {
    const json_value *v = llm_train_member(o, name);
    *out = v && v->kind == JSON_NUMBER ? v->number : 0;
    return !v || (v->kind == JSON_NUMBER && v->number >= 0 && v->number <= 1e8)
               ? GGL_OK
               : ggl_fail(err, GGL_FORMAT, "\"%s\" must be a number of seconds, 0 or more", name);
}

static ggl_str stripped(ggl_str s) {
    while (s.n > 0 && memchr(" \t\r\n", s.s[0], 4))
        s = (ggl_str){s.s + 1, s.n - 1};
    while (s.n > 0 && memchr(" \t\r\n", s.s[s.n - 1], 4))
        s.n--;
    return s;
}

/* --- what the model is told ------------------------------------------------------------------- */

static ggl_status find_language(const speech_tokens *k, const json_value *o, int32_t *out,
                                ggl_error *err) {
    static const char *const name[] = {"language", "lang"};
    const char *which = name[0];
    const json_value *v = first_of(o, name, 2, &which);
    char text[64];
    *out = -1;
    if (v && v->kind != JSON_STRING)
        return ggl_fail(err, GGL_FORMAT, "\"%s\" must be a string, not %s", which,
                        llm_json_kind_text((json_kind)v->kind));
    snprintf(text, sizeof text, "%.*s", v ? (int)(v->n < 60 ? v->n : 60) : 0, v ? v->s : "");
    const bool is_english =
        ggl_case_compare(text, "en") == 0 || ggl_case_compare(text, "english") == 0;
    if (k->n_languages == 0)
        return !v || is_english
                   ? GGL_OK
                   : ggl_fail(err, GGL_FORMAT,
                              "\"%s\": the model knows English alone, and not '%s'", which, text);
    if (!v)
        return ggl_fail(err, GGL_FORMAT,
                        "the model knows %d languages: say which one is spoken, such as "
                        "\"language\": \"en\"",
                        (int)k->n_languages);
    *out = llm_speech_find_language(k, text);
    return *out >= 0 ? GGL_OK
                     : ggl_fail(err, GGL_FORMAT,
                                "\"%s\": the model does not know the language '%s'; a code or an "
                                "English name is expected",
                                which, text);
}

static ggl_status find_task(const speech_tokens *k, const json_value *o, int32_t *out,
                            ggl_error *err) {
    const json_value *translate = llm_train_member(o, "translate"),
                     *task = llm_train_member(o, "task");
    if (translate && translate->kind != JSON_BOOL)
        return ggl_fail(err, GGL_FORMAT, "\"translate\" must be true or false, not %s",
                        llm_json_kind_text((json_kind)translate->kind));
    if (task && !llm_json_is(task, "transcribe") && !llm_json_is(task, "translate"))
        return ggl_fail(err, GGL_FORMAT, "\"task\" must be \"transcribe\" or \"translate\"");
    const bool is = (translate && translate->flag) || llm_json_is(task, "translate");
    *out = is ? k->translate : k->transcribe;
    return !is || (k->n_languages > 0 && k->translate >= 0)
               ? GGL_OK
               : ggl_fail(err, GGL_FORMAT, "the model does not translate: leave \"%s\" out",
                          task ? "task" : "translate");
}

/* Appends the tokens with which llm_transcribe begins a window. */
static ggl_status append_orders(const speech_tokens *k, const json_value *o, bool times,
                                int32_t *language, llm_tokens *t, ggl_error *err) {
    int32_t task = -1;
    ggl_status st = find_language(k, o, language, err);
    if (st == GGL_OK)
        st = find_task(k, o, &task, err);
    if (st == GGL_OK)
        st = llm_tokens_append(t, k->start, err);
    if (st == GGL_OK && *language >= 0)
        st = llm_tokens_append(t, *language, err);
    if (st == GGL_OK && *language >= 0)
        st = llm_tokens_append(t, task, err);
    return st == GGL_OK && !times ? llm_tokens_append(t, k->no_times, err) : st;
}

/* --- what is said ----------------------------------------------------------------------------- */

/* Fails if the tokens do not stand for all of the text: a vocabulary of few words drops the others without a word. */
static ggl_status check_known(const train_data *d, ggl_str text, const int32_t *id, size_t n,
                              ggl_error *err) {
    char *back = NULL;
    size_t size = 0;
    ggl_status st = llm_detokenize(d->p.tokenizer, id, n, false, &back, &size, err);
    const ggl_str a = stripped(text), b = stripped((ggl_str){back ? back : "", size});
    if (st == GGL_OK && (a.n != b.n || memcmp(a.s, b.s, a.n) != 0))
        st = ggl_fail(err, GGL_FORMAT,
                      "'%.*s': the vocabulary lacks a part of it, and would make it '%.*s'",
                      (int)ggl_utf8_cut(a.s, a.n, 40), a.s, (int)ggl_utf8_cut(b.s, b.n, 40), b.s);
    ggl_free(back);
    return st;
}

/* Appends words as the model writes them: behind a space, if the language has spaces. */
static ggl_status append_words(const train_data *d, ggl_str words, int32_t language, llm_tokens *t,
                               ggl_error *err) {
    const speech_tokens *k = d->p.senses->speech;
    size_t n_code = 0;
    const char *code = language >= 0 ? llm_speech_language_code(k, language, &n_code) : "";
    char name[16];
    words = stripped(words);
    snprintf(name, sizeof name, "%.*s", (int)(n_code < 15 ? n_code : 15), code);
    const size_t gap = llm_word_has_no_spaces(name) ? 0 : 1;
    char *text = ggl_calloc(words.n + gap + 1, 1);
    if (!text)
        return ggl_fail(err, GGL_NOMEM, "out of memory for what is said");
    memset(text, ' ', gap);
    if (words.n > 0)
        memcpy(text + gap, words.s, words.n);
    const size_t before = t->n;
    ggl_status st = llm_tokenize(d->p.tokenizer, text, words.n + gap, 0, t, err);
    if (st == GGL_OK && words.n > 0)
        st = check_known(d, (ggl_str){text, words.n + gap}, t->id + before, t->n - before, err);
    ggl_free(text);
    return st;
}

/* Appends a time of a segment, which is not before `least` tokens. */
static ggl_status append_time(const speech_tokens *k, const json_value *segment, const char *name,
                              double offset, int32_t *least, llm_tokens *t, ggl_error *err) {
    const json_value *v = llm_json_get_kind(segment, name, JSON_NUMBER);
    const double at = v ? rint((v->number - offset) * 1000 / SPEECH_MS_PER_TOKEN) : NAN;
    if (!(at >= *least && at < k->n_times))
        return ggl_fail(err, GGL_FORMAT,
                        "\"%s\" must be a number of seconds, from %g to %g here: times do not go "
                        "back, and are within a window",
                        name, offset + 0.001 * SPEECH_MS_PER_TOKEN * *least,
                        offset + 0.001 * SPEECH_MS_PER_TOKEN * (k->n_times - 1));
    *least = (int32_t)at;
    return llm_tokens_append(t, k->first_time + *least, err);
}

static ggl_status append_segments(const train_data *d, const json_value *list, double offset,
                                  int32_t language, llm_tokens *t, ggl_error *err) {
    const speech_tokens *k = d->p.senses->speech;
    int32_t at = 0;
    ggl_status st = GGL_OK;
    for (uint32_t i = 0; i < list->n && st == GGL_OK; i++) {
        const json_value *segment = &list->item[i];
        ggl_str words = {"", 0};
        st = append_time(k, segment, "start", offset, &at, t, err);
        if (st == GGL_OK)
            st = llm_train_text_of(segment, "text", false, &words, err);
        if (st == GGL_OK)
            st = append_words(d, words, language, t, err);
        if (st == GGL_OK)
            st = append_time(k, segment, "end", offset, &at, t, err);
        if (st != GGL_OK)
            return ggl_within(err, st, "segments[%" PRIu32 "]", i);
    }
    return st;
}

/* The keys of a line with speech. */
static const char *const audio_name[] = {"audio", "audio_filepath", "audio_path"},
                         *const text_name[] = {"text", "sentence", "transcription", "transcript"};

static ggl_status read_line(train_data *d, const json_value *o, train_draft *s, ggl_error *err) {
    const speech_tokens *k = d->p.senses->speech;
    const char *which = "audio", *said = "text";
    const json_value *audio = first_of(o, audio_name, 3, &which),
                     *text = first_of(o, text_name, 4, &said),
                     *segments = llm_train_member(o, "segments");
    double offset = 0, duration = 0;
    int32_t language = -1;
    uint32_t reading = 0;
    if (!audio || (!text && !segments))
        return ggl_fail(err, GGL_FORMAT,
                        "the model writes down speech, and learns from lines with \"audio\", the "
                        "path of a sound, and \"text\", what is said in it");
    if (segments && segments->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_FORMAT, "\"segments\" must be a list, not %s",
                        llm_json_kind_text((json_kind)segments->kind));
    if (!segments && text->kind != JSON_STRING)
        return ggl_fail(err, GGL_FORMAT, "\"%s\" must be a string, not %s", said,
                        llm_json_kind_text((json_kind)text->kind));
    const bool is_silent = segments && segments->n == 0 && k->no_speech >= 0;
    if (!is_silent && (segments ? segments->n == 0 : llm_train_is_blank(json_str(text))))
        return GGL_OK;
    ggl_status st = seconds_of(o, "offset", &offset, err);
    if (st == GGL_OK)
        st = seconds_of(o, "duration", &duration, err);
    if (st == GGL_OK)
        st = append_orders(k, o, segments != NULL, &language, &s->tokens, err);
    const size_t first = s->tokens.n;
    if (st == GGL_OK)
        st = is_silent  ? llm_tokens_append(&s->tokens, k->no_speech, err)
             : segments ? append_segments(d, segments, offset, language, &s->tokens, err)
                        : append_words(d, json_str(text), language, &s->tokens, err);
    if (st == GGL_OK)
        st = llm_tokens_append(&s->tokens, k->end, err);
    if (st == GGL_OK)
        st = llm_train_draft_count(s, d->p.all ? 0 : first, s->tokens.n, 1, err);
    if (st == GGL_OK)
        st = llm_train_hear(d, audio, offset, duration, &reading, err);
    s->reading = reading + 1;
    return st;
}

/* Adds the draft, and frees it. */
static ggl_status finish(train_data *d, train_draft *s, ggl_status st, ggl_error *err) {
    bool added;
    if (st == GGL_OK)
        st = llm_train_set_kind(d, TRAIN_ANSWERS, err);
    if (st == GGL_OK)
        st = llm_train_add(d, s, true, &added, err);
    llm_train_draft_fini(s);
    return st;
}

ggl_status llm_train_speech(train_data *d, const json_value *o, ggl_error *err) {
    train_draft s = {0};
    return finish(d, &s, read_line(d, o, &s, err), err);
}

/* --- texts that are answered ------------------------------------------------------------------ */

/* Appends a text as the model reads and writes them, with the tokens that its tokenizer puts around texts. */
static ggl_status append_text(const train_data *d, ggl_str text, llm_tokens *t, ggl_error *err) {
    return llm_tokenize(d->p.tokenizer, text.s ? text.s : "", text.n,
                        LLM_TOKENIZE_BOS | (d->p.plain ? 0 : LLM_TOKENIZE_SPECIAL), t, err);
}

/* *is_long: the text is to be left out. */
static ggl_status draft_answer(train_data *d, train_draft *s, ggl_str text, ggl_str answer,
                               bool *is_long, ggl_error *err) {
    const int32_t end = llm_tokenizer_eos(d->p.tokenizer);
    llm_tokens read = {0};
    uint32_t reading = 0;
    if (llm_train_is_blank(answer))
        return GGL_OK;
    ggl_status st = append_text(d, text, &read, err);
    if (st == GGL_OK && read.n == 0) {
        llm_tokens_fini(&read);
        return GGL_OK;
    }
    if (st == GGL_OK)
        st = llm_tokens_append(&s->tokens, d->p.senses->start, err);
    if (st == GGL_OK)
        st = append_text(d, answer, &s->tokens, err);
    for (size_t i = 1; i < s->tokens.n && st == GGL_OK; i++)
        if (s->tokens.id[i] == d->p.senses->start)
            st = ggl_fail(err, GGL_FORMAT,
                          "the answer contains the token with which answers begin, %s, which the "
                          "model never writes",
                          llm_token_piece(d->p.tokenizer, d->p.senses->start).s);
    if (st == GGL_OK && end >= 0 &&
        !llm_tokenizer_is_eog(d->p.tokenizer, s->tokens.id[s->tokens.n - 1]))
        st = llm_tokens_append(&s->tokens, end, err);
    if (st == GGL_OK)
        st = llm_train_draft_count(s, 1, s->tokens.n, 1, err);
    *is_long = d->p.drop_long && read.n > (size_t)d->p.n_ctx;
    if (st == GGL_OK && !*is_long) {
        st = llm_train_add_read(d, &read, &reading, &s->is_cut, err);
        s->reading = reading + 1;
    }
    llm_tokens_fini(&read);
    return st;
}

ggl_status llm_train_answered(train_data *d, ggl_str text, ggl_str answer, ggl_error *err) {
    train_draft s = {0};
    bool is_long = false;
    const ggl_status st = draft_answer(d, &s, text, answer, &is_long, err);
    if (st != GGL_OK || !is_long)
        return finish(d, &s, st, err);
    d->stats.n_long++;
    llm_train_draft_fini(&s);
    return GGL_OK;
}
