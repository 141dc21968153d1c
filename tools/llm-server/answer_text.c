#include "answer_text.h"

#include <string.h>

#include "ggl/internal/show.h"

bool answer_bytes_add(answer_bytes *b, const char *s, size_t n) {
    if (!ggl_grow(&b->s, &b->cap, b->n + n + 1, 1))
        return false;
    if (n > 0)
        memcpy(b->s + b->n, s, n);
    b->n += n;
    b->s[b->n] = '\0';
    return true;
}

static void bytes_drop(answer_bytes *b, size_t n) {
    if (n > 0)
        memmove(b->s, b->s + n, b->n - n);
    b->n -= n;
}

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for an answer");
}

/* --- tokens ------------------------------------------------------------------------------------- */

/* n_shown: bytes at the end of the token's text that the answer's text has. */
static bool tokens_add(answer_text *t, const answer_token *token, size_t n_shown) {
    waiting_tokens *w = &t->tokens;
    const size_t n_top = t->p.n_top, n = w->n + 1;
    if (!ggl_grow(&w->token, &w->cap, n, sizeof *w->token) ||
        !ggl_grow(&w->begin, &w->cap_begin, n, sizeof *w->begin) ||
        !ggl_grow(&w->top, &w->cap_top, n * n_top, sizeof *w->top))
        return false;
    w->token[w->n] = *token;
    w->token[w->n].text = llm_token_text(t->p.tokenizer, token->id, true);
    w->token[w->n].n_hidden = w->token[w->n].text.n - n_shown;
    if (token->n_top > 0)
        memcpy(w->top + w->n * n_top, token->top, token->n_top * sizeof *w->top);
    w->begin[w->n++] = t->n_read;
    return true;
}

/* Returns the number of tokens whose text begins before what no stop string holds back ends. */
static size_t n_tokens_ready(const answer_text *t) {
    size_t n = 0;
    while (n < t->tokens.n && t->tokens.begin[n] < t->n_read - t->text.n_held)
        n++;
    return n;
}

/* Gives out a part with the first n tokens. */
static bool give(answer_text *t, answer_part part, size_t n) {
    waiting_tokens *w = &t->tokens;
    for (size_t i = 0; i < n; i++)
        w->token[i].top = w->token[i].n_top > 0 ? w->top + i * t->p.n_top : NULL;
    part.token = w->token;
    part.n_tokens = n;
    const bool good = t->p.take(t->p.ctx, &part);
    w->n -= n;
    if (n > 0 && w->n > 0) {
        memmove(w->token, w->token + n, w->n * sizeof *w->token);
        memmove(w->begin, w->begin + n, w->n * sizeof *w->begin);
        if (t->p.n_top > 0)
            memmove(w->top, w->top + n * t->p.n_top, w->n * t->p.n_top * sizeof *w->top);
    }
    return good;
}

/* --- parts -------------------------------------------------------------------------------------- */

static bool give_piece(answer_text *t, ggl_str arguments, bool goes_on) {
    const answer_part p = {.kind = PART_CALL,
                           .name = {"", 0},
                           .id = {"", 0},
                           .arguments = arguments,
                           .call = t->n_calls - 1,
                           .is_continued = true,
                           .goes_on = goes_on};
    t->call_is_open = goes_on;
    t->n_arguments += arguments.n;
    return give(t, p, n_tokens_ready(t));
}

/* Ends a call that is known completely. A broken call ends where it broke. */
static bool end_call(answer_text *t) {
    return !t->call_is_open || give_piece(t, (ggl_str){"", 0}, false);
}

/* Ends a call that was begun: gives out the rest of its arguments. If another call of its list has
 * begun since, it has ended already, and nothing is left. */
static bool finish_call(answer_text *t, const llm_calls_part *part) {
    const bool is_open = t->call_is_open && t->n_called == t->n_calls - 1;
    const ggl_str all = part->arguments;
    const size_t n = t->n_arguments < all.n ? t->n_arguments : all.n;
    t->n_called++;
    return !is_open || give_piece(t, (ggl_str){all.s + n, all.n - n}, false);
}

/* A whole call, or the begin of one. */
static bool begin_call(answer_text *t, const llm_calls_part *part) {
    const bool goes_on = part->kind == LLM_CALLS_BEGINS;
    const answer_part p = {.kind = PART_CALL,
                           .name = part->name,
                           .arguments = goes_on ? (ggl_str){"", 0} : part->arguments,
                           .id = part->id,
                           .goes_on = goes_on,
                           .call = t->n_calls};
    if (!end_call(t))
        return false;
    t->n_calls++;
    t->call_is_open = goes_on;
    t->n_arguments = 0;
    t->n_called = goes_on ? t->n_called : t->n_calls;
    return give(t, p, n_tokens_ready(t));
}

static bool give_part(answer_text *t, const llm_calls_part *part) {
    const bool thinks = part->kind == LLM_CALLS_REASONING;
    answer_part p = {
        .kind = thinks ? PART_REASONING : PART_CONTENT, .text = part->text, .begins = part->begins};
    if (part->kind == LLM_CALLS_CALL)
        t->is_unfinished = part->is_unfinished;
    if (part->kind == LLM_CALLS_PIECE)
        return give_piece(t, part->arguments, true);
    if (part->kind == LLM_CALLS_CALL && part->has_begun)
        return finish_call(t, part);
    if (part->kind == LLM_CALLS_BEGINS || (part->kind == LLM_CALLS_CALL && t->p.has_tools))
        return begin_call(t, part);
    if (!end_call(t))
        return false;
    t->n_called = t->n_calls;
    p.joins = p.begins && t->has_part[thinks];
    t->has_part[thinks] = true;
    return give(t, p, n_tokens_ready(t));
}

static ggl_status give_parts(answer_text *t, ggl_error *err) {
    llm_calls_part part;
    while (llm_calls_next(t->p.calls, &part))
        if (!give_part(t, &part))
            return no_memory(err);
    return GGL_OK;
}

/* Adds whole characters. */
static ggl_status add_clean(answer_text *t, const char *s, size_t n, ggl_error *err) {
    if (n == 0)
        return GGL_OK;
    if (!t->p.calls) {
        const answer_part part = {.kind = PART_CONTENT, .text = {s, n}};
        return give(t, part, n_tokens_ready(t)) ? GGL_OK : no_memory(err);
    }
    const ggl_status st = llm_calls_add(t->p.calls, s, n, err);
    return st == GGL_OK ? give_parts(t, err) : st;
}

/* --- characters --------------------------------------------------------------------------------- */

/* True if the n bytes at s begin a character and are not all of it. */
static bool is_part_of_character(const char *s, size_t n) {
    const unsigned char a = (unsigned char)s[0], b = n > 1 ? (unsigned char)s[1] : 0;
    const size_t size = a >= 0xf0 ? 4 : a >= 0xe0 ? 3 : 2;
    if (a < 0xc2 || a > 0xf4 || n >= size)
        return false;
    if (n == 1)
        return true;
    const unsigned char least = a == 0xe0 ? 0xa0 : a == 0xf0 ? 0x90 : 0x80;
    const unsigned char most = a == 0xed ? 0x9f : a == 0xf4 ? 0x8f : 0xbf;
    return b >= least && b <= most && (n == 2 || ((unsigned char)s[2] & 0xc0) == 0x80);
}

/* Replaces bytes that are no UTF-8 by U+FFFD. *n_held: bytes at the end that may become a character. */
static bool clean(answer_text *t, const char *s, size_t n, size_t *n_held) {
    t->clean.n = *n_held = 0;
    for (size_t i = 0; i < n;) {
        const size_t size = ggl_utf8_length(s + i, n - i);
        if (size == 0 && is_part_of_character(s + i, n - i)) {
            *n_held = n - i;
            return true;
        }
        if (!answer_bytes_add(&t->clean, size ? s + i : "\xef\xbf\xbd", size ? size : 3))
            return false;
        i += size ? size : 1;
    }
    return true;
}

/* Adds text, which may end within a character. */
static ggl_status add_text(answer_text *t, const char *s, size_t n, ggl_error *err) {
    size_t n_held = 0;
    if (t->raw.n == 0 && ggl_utf8_is_valid(s, n))
        return add_clean(t, s, n, err);
    if (!answer_bytes_add(&t->raw, s, n) || !clean(t, t->raw.s, t->raw.n, &n_held))
        return no_memory(err);
    bytes_drop(&t->raw, t->raw.n - n_held);
    return add_clean(t, t->clean.s, t->clean.n, err);
}

/* Ends the text: the bytes of a character that is not complete become U+FFFD. */
static ggl_status end_characters(answer_text *t, ggl_error *err) {
    t->clean.n = 0;
    for (; t->raw.n > 0; t->raw.n--)
        if (!answer_bytes_add(&t->clean, "\xef\xbf\xbd", 3))
            return no_memory(err);
    return add_clean(t, t->clean.s, t->clean.n, err);
}

/* Adds what no stop string holds back. */
static ggl_status add_ready(answer_text *t, ggl_error *err) {
    size_t n;
    const char *s = llm_stopped_text_take(&t->text, &n);
    return n > 0 ? add_text(t, s, n, err) : GGL_OK;
}

/* --- the interface ------------------------------------------------------------------------------ */

void answer_text_begin(answer_text *t, const answer_text_params *p) {
    t->p = *p;
    llm_stopped_text_begin(&t->text, p->stops);
    t->text.n_shown = p->stop_in_text ? SIZE_MAX : 0;
    t->raw.n = t->clean.n = t->tokens.n = t->n_read = 0;
    t->has_part[0] = t->has_part[1] = t->is_unfinished = false;
    t->has_begun = !p->begins_text;
    t->n_calls = t->n_called = 0;
    t->call_is_open = false;
    t->n_reasoning = 0;
}

void answer_text_fini(answer_text *t) {
    llm_stopped_text_fini(&t->text);
    ggl_free(t->raw.s);
    ggl_free(t->clean.s);
    ggl_free(t->tokens.token);
    ggl_free(t->tokens.top);
    ggl_free(t->tokens.begin);
    *t = (answer_text){0};
}

int32_t answer_text_found(const answer_text *t) {
    return t->p.stops ? t->text.found : -1;
}

bool answer_text_is_over(const answer_text *t) {
    return t->p.calls && llm_calls_is_over(t->p.calls);
}

bool answer_text_calls(const answer_text *t) {
    return t->n_calls > 0 && !t->call_is_open && !t->is_unfinished;
}

ggl_status answer_text_token(answer_text *t, const answer_token *token, ggl_error *err) {
    if (answer_text_found(t) >= 0)
        return GGL_OK;
    const bool is_special = llm_token_text(t->p.tokenizer, token->id, false).n == 0;
    const ggl_str text = llm_token_next_text(t->p.tokenizer, token->id, is_special, &t->has_begun);
    const bool hidden = is_special && !llm_calls_is_text(t->p.marks, text);
    if (t->p.keeps_tokens && !tokens_add(t, token, hidden ? 0 : text.n))
        return no_memory(err);
    t->n_read += text.n;
    ggl_status st = llm_stopped_text_put(&t->text, text, hidden, err);
    if (st == GGL_OK)
        st = add_ready(t, err);
    t->n_reasoning += t->p.calls && llm_calls_now(t->p.calls) == LLM_CALLS_REASONING;
    return st;
}

ggl_status answer_text_end(answer_text *t, bool is_cut, ggl_error *err) {
    const bool found = answer_text_found(t) >= 0;
    ggl_status st = llm_stopped_text_end(&t->text, err);
    if (st == GGL_OK)
        st = add_ready(t, err);
    if (st == GGL_OK)
        st = end_characters(t, err);
    if (st == GGL_OK && t->p.calls)
        st = is_cut && t->p.has_tools ? llm_calls_cut(t->p.calls, err)
                                      : llm_calls_finish(t->p.calls, err);
    if (st == GGL_OK && t->p.calls)
        st = give_parts(t, err);
    const size_t n = found ? n_tokens_ready(t) : t->tokens.n;
    if (st == GGL_OK && n > 0 && !give(t, (answer_part){.kind = PART_CONTENT}, n))
        st = no_memory(err);
    t->tokens.n = 0;
    return st;
}
