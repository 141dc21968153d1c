/* OpenAI's /v1/completions. */
#include <math.h>
#include <stdio.h>

#include "api_openai.h"
#include "api_prompt.h"
#include "api_pieces.h"
#include "ggl/internal/show.h"
#include "llm/internal/tokenizer.h"
#include "server.h"

enum { MOST_CHOICES = 128, MOST_LOGPROBS = 20 };

/* --- requests ----------------------------------------------------------------------------------- */

static ggl_status read_logprobs(ask *a, const json_value *v, const server_facts *facts,
                                ggl_error *err) {
    (void)facts;
    if (v->kind == JSON_BOOL && !v->flag)
        return GGL_OK;
    if (v->kind != JSON_NUMBER || !v->whole || v->number < 0 || v->number > MOST_LOGPROBS)
        return ggl_fail(err, GGL_USAGE,
                        "\"logprobs\" must be a number of tokens, from 0 to %d, which are given "
                        "besides each token",
                        MOST_LOGPROBS);
    a->n_top = (int)v->number;
    return GGL_OK;
}

static ggl_status read_best_of(ask *a, const json_value *v, const server_facts *facts,
                               ggl_error *err) {
    (void)facts;
    if (v->kind == JSON_NUMBER && v->number == (double)a->n_choices)
        return GGL_OK;
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "\"best_of\" is not supported unless it equals \"n\"; ask for \"n\" choices "
                    "and choose one");
}

static ggl_status read_prompt(ask *a, const json_value *v, const server_facts *facts,
                              ggl_error *err) {
    return prompt_read_all(a, v, "prompt", facts, err);
}

static const field fields[] = {
    {"model", FIELD_FN, .fn = openai_field_model},
    {"prompt", FIELD_FN, .fn = read_prompt},
    {"stream", FIELD_BOOL, .at = FIELD_AT(stream)},
    {"stream_options", FIELD_FN, .fn = openai_field_stream_options},
    {"max_tokens", FIELD_FN, .fn = openai_field_max_tokens},
    {"n_predict", FIELD_FN, .fn = openai_field_n_predict},
    {"n", FIELD_INT, .at = FIELD_AT(n_choices), .min = 1, .max = MOST_CHOICES},
    {"best_of", FIELD_FN, .fn = read_best_of}, /* after n */
    {"echo", FIELD_BOOL, .at = FIELD_AT(echo)},
    {"stop", .kind = FIELD_STOPS},
    {"response_format", FIELD_FN, .fn = openai_field_format},
#include "fields_sampling.def"
#include "fields_llamacpp.def"
    {"logprobs", FIELD_FN, .fn = read_logprobs},
    {"timings_per_token", FIELD_FN, .fn = openai_field_timings_per_token},
    {"suffix", FIELD_REFUSED, .fn = field_is_empty,
     .why = "text is written only after a prompt; POST /infill fills gaps"},
    {"user", .kind = FIELD_IGNORED},
    {0}};

/* Streams count characters for text_offset, so each choice has a counter. */
static ggl_status make_offsets(ask *a, ggl_error *err) {
    openai_own *own = openai_own_of(a);
    const size_t n = a->n_prompts * (size_t)a->n_choices;
    if (a->n_top >= 0)
        own->offset = ggl_arena_alloc(&a->arena, n, sizeof *own->offset);
    return own->offset || a->n_top < 0 ? GGL_OK
                                       : ggl_fail(err, GGL_NOMEM, "out of memory for a request");
}

static ggl_status read_completions(ask *a, const server_facts *facts, const char **param,
                                   ggl_error *err) {
    *param = NULL;
    ggl_status st = openai_begin(a, ASK_TEXT, err);
    if (st == GGL_OK)
        st = read_fields(a, &a->doc->root, fields, facts, param, err);
    if (st == GGL_OK && a->n_prompts == 0) {
        *param = "prompt";
        st = ggl_fail(err, GGL_USAGE, "\"prompt\" is missing: the text to be continued");
    }
    return st == GGL_OK ? make_offsets(a, err) : st;
}

/* --- log-probabilities -------------------------------------------------------------------------- */

/* Writes a token as a string; one whose bytes are no UTF-8 by themselves as "bytes:\xe2\x82". */
static void put_text(ggl_str s, llm_json_out *out) {
    size_t i = 0;
    while (i < s.n) {
        const size_t n = ggl_utf8_length(s.s + i, s.n - i);
        if (n == 0)
            break;
        i += n;
    }
    if (i == s.n) {
        llm_json_put_string(out, s);
        return;
    }
    llm_json_put_text(out, "\"bytes:");
    for (i = 0; i < s.n; i++) {
        char text[8];
        snprintf(text, sizeof text, "\\\\x%02x", (unsigned)(unsigned char)s.s[i]);
        llm_json_put_text(out, text);
    }
    llm_json_put_text(out, "\"");
}

static bool continues_character(char byte) {
    return ((unsigned char)byte & 0xc0) == 0x80;
}

/* Returns how many characters of the answer's text begin in a token, if `at` begin before it. A space before the whole text
 * does not count unless the text has it. */
static int64_t n_chars(const answer_part *p, const answer_token *t, int64_t at) {
    const bool starts = at == 0 && t->n_hidden == 0 && t->text.n > 0 && t->text.s[0] == ' ' &&
                        (p->text.n == 0 || p->text.s[0] != ' ');
    int64_t n = -(int64_t)starts;
    for (size_t i = t->n_hidden; i < t->text.n; i++)
        n += !continues_character(t->text.s[i]);
    return n;
}

/* Returns where a token is in the text: the number of characters before the one that its first byte belongs to. */
static int64_t offset_of(const answer_token *t, int64_t at) {
    const bool is_within = t->n_hidden < t->text.n && continues_character(t->text.s[t->n_hidden]);
    return at - (is_within && at > 0);
}

/* Writes log-probabilities as an object by texts; of tokens with the same text, that of the likeliest. */
static void put_top(const answer *x, const answer_token *t, llm_json_out *out) {
    const char *before = "";
    if (isnan(t->logprob)) { /* the first token of a prompt has no probability */
        llm_json_put_text(out, "null");
        return;
    }
    llm_json_put_text(out, "{");
    for (size_t k = 0; k < t->n_top; k++) {
        const ggl_str s = token_text(x->facts, t->top[k].id);
        bool again = false;
        for (size_t j = 0; j < k && !again; j++) {
            const ggl_str other = token_text(x->facts, t->top[j].id);
            again = ggl_str_equal(other, s);
        }
        if (again)
            continue;
        llm_json_put_text(out, before);
        put_text(s, out);
        llm_json_put_text(out, ":");
        openai_put_double(out, t->top[k].logprob);
        before = ",";
    }
    llm_json_put_text(out, "}");
}

typedef enum column { TEXTS, LOGPROBS, TOPS, OFFSETS } column;

static void put_cell(const answer *x, const answer_token *t, column k, int64_t offset,
                     llm_json_out *out) {
    if (k == TEXTS)
        put_text(t->text, out);
    else if (k == LOGPROBS)
        openai_put_double(out, t->logprob);
    else if (k == TOPS)
        put_top(x, t, out);
    else
        openai_put_int(out, offset_of(t, offset));
}

/* Four lists with an element for each token; *offset: characters before the first one, and then after the last. */
static void put_logprobs(const answer *x, const answer_part *p, size_t n, int64_t *offset,
                         llm_json_out *out) {
    static const char *const name[] = {",\"logprobs\":{\"tokens\":[", "],\"token_logprobs\":[",
                                       "],\"top_logprobs\":[", "],\"text_offset\":["};
    int64_t at = *offset;
    for (column k = TEXTS; k <= OFFSETS; k++) {
        bool first = true;
        llm_json_put_text(out, name[k]);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < p[i].n_tokens; j++) {
                const answer_token *t = &p[i].token[j];
                llm_json_put_text(out, first ? "" : ",");
                put_cell(x, t, k, at, out);
                at += k == OFFSETS ? n_chars(&p[i], t, at) : 0;
                first = false;
            }
    }
    llm_json_put_text(out, "]}");
    *offset = at;
}

/* --- answers ------------------------------------------------------------------------------------ */

static void put_choice(const answer *x, const answer_choice *c, llm_json_out *out) {
    int64_t offset = 0;
    llm_json_format(out, "{'index':%d,'text':", c->index);
    openai_put_texts(c->part, c->n_parts, PART_CONTENT, out);
    if (x->ask->n_top >= 0)
        put_logprobs(x, c->part, c->n_parts, &offset, out);
    else
        llm_json_put_text(out, ",\"logprobs\":null");
    openai_put_ids(x, c->part, c->n_parts, out);
    llm_json_put_text(out, ",\"finish_reason\":");
    openai_put_finish(c, out);
    llm_json_put_text(out, "}");
}

static void text_whole(const answer *x, llm_json_out *out) {
    openai_put_whole(x, put_choice, out);
    llm_json_put_text(out, "}");
}

static void text_part(const answer *x, const answer_choice *c, const answer_part *p,
                      llm_json_out *out) {
    const openai_own *own = openai_own_of(x->ask);
    openai_begin_chunk(x, c->index, out);
    llm_json_put_string(out, p->text);
    if (x->ask->n_top >= 0)
        put_logprobs(x, p, 1, &own->offset[c->index], out);
    else
        llm_json_put_text(out, ",\"logprobs\":null");
    openai_put_ids(x, p, 1, out);
    llm_json_put_text(out, ",\"finish_reason\":null");
    openai_end_chunk(x, own->timings_per_token ? c : NULL, out);
}

const dialect api_openai_completions = {.name = "openai_completions",
                                        .fields = fields,
                                        .stream_type = "text/event-stream",
                                        .read = read_completions,
                                        .whole = text_whole,
                                        .part = text_part,
                                        .end_choice = openai_end_choice,
                                        .end = openai_end,
                                        .progress = openai_progress,
                                        .alive = openai_alive,
                                        .error = openai_error};
