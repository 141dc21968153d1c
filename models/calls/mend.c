/* Reads JSON as models write it, and writes what it means as JSON, character by character: so what was given out of a call
 * that is being written is the beginning of what the whole call has. Valid JSON only loses the white space between its tokens.
 *
 * - Line breaks and other control characters in strings, and backslashes that begin no escape, are escaped.
 * - A quote ends a string only if what follows, after white space, can follow a string.
 * - Strings and names may have single quotes or none; True, False and None are Python's.
 * - A bracket closes all that was opened after its partner. Missing commas and values are added, others left out.
 * - At the end of the text, and at a mark outside of strings, all brackets are closed. */
#include <ctype.h>
#include <string.h>

#include "calls_impl.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"

enum { MAX_NUMBER = 400, MAX_VALUES = LLM_JSON_MAX_VALUES / 2 };

static bool is_list(const mender *m) {
    return m->lists >> (m->depth - 1) & 1;
}

static bool takes_key(const mender *m) {
    return m->depth > 0 && !is_list(m) && (m->next == MEND_KEY || m->next == MEND_COMMA);
}

/* Before a name, or a value. */
static void begin_token(mender *m) {
    if (m->depth > 0 && (is_list(m) || takes_key(m))) {
        const uint64_t bit = (uint64_t)1 << (m->depth - 1);
        llm_calls_put(&m->out, ",", m->filled & bit ? 1 : 0);
        m->filled |= bit;
    }
    m->n_values++;
}

static void end_token(mender *m, bool is_key) {
    llm_calls_put(&m->out, ":", is_key ? 1 : 0);
    m->next = is_key ? MEND_COLON : MEND_COMMA;
}

/* A member without a value gets one. */
static void end_member(mender *m) {
    if (m->depth > 0 && !is_list(m) && (m->next == MEND_COLON || m->next == MEND_VALUE))
        llm_calls_put(&m->out, "null", 4);
}

static bool open_bracket(mender *m, char ch) {
    if (takes_key(m)) /* one too many */
        return true;
    if (m->depth == LLM_JSON_MAX_DEPTH)
        return false;
    begin_token(m);
    llm_calls_put(&m->out, &ch, 1);
    const uint64_t bit = (uint64_t)1 << m->depth++;
    m->lists = ch == '[' ? m->lists | bit : m->lists & ~bit;
    m->filled &= ~bit;
    m->next = ch == '[' ? MEND_VALUE : MEND_KEY;
    return true;
}

/* Closes the innermost bracket. at: the end of its text. */
static bool close_one(mender *m, size_t at) {
    const bool list = is_list(m);
    end_member(m);
    llm_calls_put(&m->out, list ? "]" : "}", 1);
    m->depth--;
    m->next = MEND_COMMA;
    const bool is_element = !list && (m->depth == 0 || (m->depth == 1 && is_list(m)));
    if (!is_element)
        return true;
    if (!ggl_grow(&m->end, &m->cap_ends, m->n_ends + 1, sizeof *m->end))
        return false;
    m->end[m->n_ends++] = at;
    return true;
}

static bool close_bracket(mender *m, char ch, size_t at) {
    int level = m->depth;
    while (level > 0 && (m->lists >> (level - 1) & 1) != (ch == ']'))
        level--;
    bool good = true;
    while (level > 0 && m->depth >= level && good)
        good = close_one(m, at);
    return good;
}

/* --- words -------------------------------------------------------------------------------------- */

static size_t digits(ggl_str s, size_t i) {
    while (i < s.n && isdigit((unsigned char)s.s[i]))
        i++;
    return i;
}

static bool is_number(ggl_str s) {
    size_t i = s.n > 0 && s.s[0] == '-', k = digits(s, i);
    if (s.n > MAX_NUMBER || k == i || (k > i + 1 && s.s[i] == '0'))
        return false;
    i = k;
    if (i < s.n && s.s[i] == '.') {
        k = digits(s, i + 1);
        if (k == i + 1)
            return false;
        i = k;
    }
    if (i < s.n && (s.s[i] == 'e' || s.s[i] == 'E')) {
        i += i + 1 < s.n && (s.s[i + 1] == '+' || s.s[i + 1] == '-') ? 2 : 1;
        k = digits(s, i);
        if (k == i)
            return false;
        i = k;
    }
    return i == s.n;
}

static void put_word(mender *m, ggl_str s) {
    static const char *const names[][2] = {{"true", "true"}, {"false", "false"}, {"null", "null"},
                                           {"True", "true"}, {"False", "false"}, {"None", "null"}};
    const bool is_key = takes_key(m);
    begin_token(m);
    for (size_t k = 0; k < sizeof names / sizeof *names && !is_key; k++)
        if (ggl_str_is(s, names[k][0])) {
            llm_calls_put(&m->out, names[k][1], strlen(names[k][1]));
            end_token(m, false);
            return;
        }
    const bool quoted = is_key || !is_number(s);
    llm_calls_put(&m->out, "\"", quoted);
    if (quoted)
        llm_calls_put_string(&m->out, s);
    else
        llm_calls_put(&m->out, s.s, s.n);
    llm_calls_put(&m->out, "\"", quoted);
    end_token(m, is_key);
}

static void end_word(const llm_calls *c, mender *m, size_t at) {
    if (m->in_word)
        put_word(m, (ggl_str){c->text + m->word, at - m->word});
    m->in_word = false;
}

/* --- strings ------------------------------------------------------------------------------------ */

static void begin_string(mender *m, char quote) {
    m->quote = quote;
    m->is_key = takes_key(m);
    begin_token(m);
    llm_calls_put(&m->out, "\"", 1);
}

static void end_string(mender *m) {
    llm_calls_put(&m->out, "\"", 1);
    m->quote = 0;
    end_token(m, m->is_key);
}

/* Whether a value's string can end before i. STEP_WAIT: more text is needed. */
static progress can_follow(const llm_calls *c, attempt *a, size_t i, ggl_str stop) {
    bool wait;
    if (i < a->look)
        i = a->look;
    i = a->look = llm_calls_skip_white(c, i);
    if (i == c->n)
        return c->final ? STEP_DONE : STEP_WAIT;
    if (strchr(",]}", c->text[i]) || c->text[i] == a->mend.quote)
        return c->text[i] ? STEP_DONE : STEP_FAIL;
    const progress p = stop.n > 0 ? llm_calls_compare(c, i, stop) : STEP_FAIL;
    const mark *m = llm_calls_mark_at(c, i, &wait);
    return p == STEP_DONE || m ? STEP_DONE : p == STEP_WAIT || wait ? STEP_WAIT : STEP_FAIL;
}

static progress at_quote(const llm_calls *c, attempt *a, ggl_str stop) {
    mender *m = &a->mend;
    const progress p = m->is_key ? STEP_DONE : can_follow(c, a, a->scan + 1, stop);
    if (p == STEP_WAIT)
        return p;
    if (p == STEP_DONE)
        end_string(m);
    else
        llm_calls_put_string(&m->out, (ggl_str){&m->quote, 1});
    a->scan++;
    return STEP_DONE;
}

/* The number of \uXXXX at i; -1: it is none; -2: more text is needed. */
static long code_at(const llm_calls *c, size_t i) {
    static const char lower[] = "0123456789abcdef";
    long x = 0;
    for (size_t k = 0; k < 6; k++) {
        if (i + k >= c->n)
            return c->final ? -1 : -2;
        const char ch = c->text[i + k];
        const char *digit = ch ? strchr(lower, tolower((unsigned char)ch)) : NULL;
        if (k < 2 ? ch != "\\u"[k] : !digit)
            return -1;
        x = k < 2 ? 0 : x * 16 + (digit - lower);
    }
    return x;
}

static progress pass_code(const llm_calls *c, attempt *a) {
    call_text *out = &a->mend.out;
    const long x = code_at(c, a->scan);
    const bool high = x >= 0xd800 && x < 0xdc00, low = x >= 0xdc00 && x < 0xe000;
    const long other = high ? code_at(c, a->scan + 6) : 0;
    if (x == -2 || other == -2)
        return STEP_WAIT;
    const bool pair = other >= 0xdc00 && other < 0xe000;
    if (x < 0) {
        llm_calls_put(out, "\\\\", 2);
        a->scan++;
        return STEP_DONE;
    }
    if (low || (high && !pair))
        llm_calls_put(out, "\\ufffd", 6);
    else
        llm_calls_put(out, c->text + a->scan, pair ? 12 : 6);
    a->scan += pair ? 12 : 6;
    return STEP_DONE;
}

static progress pass_escape(const llm_calls *c, attempt *a) {
    call_text *out = &a->mend.out;
    if (a->scan + 1 == c->n && !c->final)
        return STEP_WAIT;
    const char ch = a->scan + 1 < c->n ? c->text[a->scan + 1] : 0;
    if (ch == 'u')
        return pass_code(c, a);
    if (ch && strchr("\"\\/bfnrt", ch))
        llm_calls_put(out, c->text + a->scan, 2);
    else if (ch == '\'' || ch == '\n')
        llm_calls_put_string(out, (ggl_str){&ch, 1});
    else
        llm_calls_put(out, "\\\\", 2);
    a->scan += ch && strchr("\"\\/bfnrt'\n", ch) ? 2 : 1;
    return STEP_DONE;
}

static progress pass_character(const llm_calls *c, attempt *a) {
    const char *s = c->text + a->scan;
    const size_t left = c->n - a->scan, n = ggl_utf8_length(s, left);
    if (n == 0 && left < 4 && (unsigned char)*s >= 0xc2 && !c->final)
        return STEP_WAIT;
    llm_calls_put_string(&a->mend.out, (ggl_str){s, n ? n : 1});
    a->scan += n ? n : 1;
    return STEP_DONE;
}

/* --- the interface ------------------------------------------------------------------------------ */

void llm_mend_begin(mender *m) {
    *m =
        (mender){.out = {.s = m->out.s, .cap = m->out.cap}, .end = m->end, .cap_ends = m->cap_ends};
}

/* Between roots. */
void llm_mend_next(mender *m) {
    llm_calls_put(&m->out, ",", 1);
    m->next = MEND_VALUE;
}

void llm_mend_fini(mender *m) {
    ggl_free(m->out.s);
    ggl_free(m->end);
}

bool llm_mend_close(const llm_calls *c, attempt *a) {
    mender *m = &a->mend;
    bool good = true;
    if (m->quote)
        end_string(m);
    end_word(c, m, a->scan);
    while (m->depth > 0 && good)
        good = close_one(m, a->scan);
    return good;
}

static progress pass_structure(const llm_calls *c, attempt *a) {
    mender *m = &a->mend;
    const char ch = c->text[a->scan];
    bool good = true;
    end_word(c, m, a->scan);
    if (ch == '{' || ch == '[') {
        if (!open_bracket(m, ch) || m->n_values > MAX_VALUES)
            return STEP_FAIL;
    } else if (ch == '}' || ch == ']') {
        good = close_bracket(m, ch, a->scan + 1);
    } else if (ch == '"') {
        begin_string(m, ch);
    } else if (ch == ':') {
        m->next = m->next == MEND_COLON ? MEND_VALUE : m->next;
    } else if (ch == ',') {
        end_member(m);
        m->next = m->depth > 0 && !is_list(m) ? MEND_KEY : MEND_VALUE;
    }
    a->scan++;
    a->no_memory = a->no_memory || !good || m->out.no_memory;
    return a->no_memory ? STEP_FAIL : STEP_DONE;
}

progress llm_mend_pass(const llm_calls *c, attempt *a, ggl_str stop) {
    mender *m = &a->mend;
    const char ch = c->text[a->scan];
    GGL_STEPS(1);
    if (m->quote)
        return ch == m->quote ? at_quote(c, a, stop)
               : ch == '\\'   ? pass_escape(c, a)
                              : pass_character(c, a);
    if (llm_calls_is_white(ch) || (ch && strchr("{}[]\":,", ch)))
        return pass_structure(c, a);
    if (!m->in_word && ch == '\'') {
        begin_string(m, ch);
    } else if (!m->in_word) {
        m->in_word = true;
        m->word = a->scan;
    }
    a->scan++;
    return STEP_DONE;
}

ggl_status llm_mend_text(ggl_arena *arena, ggl_str text, ggl_str *out) {
    llm_calls c = {.text = (char *)text.s, .n = text.n, .final = true}; /* without marks */
    attempt a = {.scan = 0};
    progress p = STEP_DONE;
    *out = (ggl_str){0};
    a.scan = llm_calls_skip_white(&c, 0);
    if (a.scan == c.n || (c.text[a.scan] != '{' && c.text[a.scan] != '['))
        return GGL_FORMAT;
    while (a.scan < c.n && p == STEP_DONE && !(a.mend.depth == 0 && a.mend.n_values > 0))
        p = llm_mend_pass(&c, &a, (ggl_str){0});
    if (p == STEP_DONE && !llm_mend_close(&c, &a))
        a.no_memory = true;
    a.no_memory = a.no_memory || a.mend.out.no_memory;
    if (p == STEP_DONE && !a.no_memory) {
        *out = (ggl_str){ggl_arena_strndup(arena, a.mend.out.s, a.mend.out.n), a.mend.out.n};
        a.no_memory = !out->s;
    }
    llm_mend_fini(&a.mend);
    return a.no_memory ? GGL_NOMEM : p == STEP_DONE ? GGL_OK : GGL_FORMAT;
}
