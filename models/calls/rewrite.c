/* Calls as in Python, and JSON with other quotes, rewritten as JSON. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "calls_impl.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"

enum { MAX_DEPTH = LLM_JSON_MAX_DEPTH };

typedef struct reader {
    const char *s;
    size_t n, i;
    ggl_str quote; /* n > 0: the quotes of strings, and names have none */
    call_text out;
    const char *error;
} reader;

void llm_calls_put(call_text *t, const char *s, size_t n) {
    if (t->no_memory || (t->n + n > t->cap && !ggl_grow(&t->s, &t->cap, 2 * (t->n + n), 1))) {
        t->no_memory = true;
        return;
    }
    if (n > 0)
        memcpy(t->s + t->n, s, n);
    t->n += n;
}

bool llm_calls_put_line(call_text *t, ggl_str s) {
    bool quoted = false, is_json = true;
    for (size_t i = 0; i < s.n; i++) {
        if (!quoted && llm_calls_is_white(s.s[i]))
            continue;
        const size_t n = quoted && s.s[i] == '\\' && i + 1 < s.n ? 2 : 1;
        if (n == 1 && s.s[i] == '"')
            quoted = !quoted;
        else if (!quoted && (s.s[i] == 'N' || s.s[i] == 'I'))
            is_json = false;
        if (t)
            llm_calls_put(t, s.s + i, n);
        i += n - 1;
    }
    return is_json;
}

/* A character, or a byte that is no UTF-8: it becomes U+FFFD. */
static void put_character(call_text *t, const char *s, size_t n) {
    static const char plain[] = "\"\\\n\r\t", escaped[] = "\"\\nrt";
    const char ch = *s, *special = ch ? strchr(plain, ch) : NULL;
    char code[8];
    if (special)
        llm_calls_put(t, (char[2]){'\\', escaped[special - plain]}, 2);
    else if ((unsigned char)ch < 0x20)
        llm_calls_put(t, code, (size_t)snprintf(code, sizeof code, "\\u%04x", (unsigned)ch));
    else
        llm_calls_put(t, n ? s : "\xef\xbf\xbd", n ? n : 3);
}

void llm_calls_put_string(call_text *t, ggl_str s) {
    for (size_t i = 0, n; i < s.n; i += n ? n : 1) {
        n = (unsigned char)s.s[i] < 0x80 ? 1 : ggl_utf8_length(s.s + i, s.n - i);
        put_character(t, s.s + i, n);
    }
}

static void put(reader *r, const char *s, size_t n) {
    llm_calls_put(&r->out, s, n);
}

static bool error(reader *r, const char *what) {
    r->error = what;
    return false;
}

static void white(reader *r) {
    while (r->i < r->n && llm_calls_is_white(r->s[r->i]))
        r->i++;
}

/* Passes a character, after white space, if it is the next one. */
static bool pass(reader *r, char ch) {
    white(r);
    if (r->i == r->n || r->s[r->i] != ch)
        return false;
    r->i++;
    return true;
}

static void put_char(reader *r, char ch) {
    llm_calls_put_string(&r->out, (ggl_str){&ch, 1});
}

/* After a backslash in a string of Python. */
static bool escape(reader *r) {
    static const char plain[] = "\"'\\\n", named[] = "ntrbf/";
    const char ch = r->s[r->i++];
    if (strchr(plain, ch) && ch) {
        if (ch != '\n') /* a line that goes on */
            put_char(r, ch);
        return true;
    }
    if ((ch && strchr(named, ch)) || ch == 'u') {
        put(r, (char[2]){'\\', ch}, 2);
        return true; /* of \u, the four digits follow as they are; JSON is checked afterwards */
    }
    if (ch != 'x' || r->i + 2 > r->n)
        return error(r, "an escape in a string that Python's JSON lacks");
    put(r, "\\u00", 4);
    put(r, r->s + r->i, 2);
    r->i += 2;
    return true;
}

static bool string(reader *r, char quote) {
    put(r, "\"", 1);
    while (r->i < r->n && r->s[r->i] != quote) {
        const char *at = r->s + r->i;
        const size_t n = ggl_utf8_length(at, r->n - r->i);
        r->i += n ? n : 1;
        if (*at != '\\')
            put_character(&r->out, at, n);
        else if (r->i == r->n || !escape(r))
            return error(r, r->error ? r->error : "a string does not end");
    }
    if (r->i++ == r->n)
        return error(r, "a string does not end");
    put(r, "\"", 1);
    return true;
}

/* A string between the format's quotes, without escapes. */
static bool quoted(reader *r) {
    const char *begin = r->s + r->i,
               *end = ggl_find_bytes(begin, r->n - r->i, r->quote.s, r->quote.n);
    if (!end)
        return error(r, "a string does not end");
    put(r, "\"", 1);
    llm_calls_put_string(&r->out, (ggl_str){begin, (size_t)(end - begin)});
    put(r, "\"", 1);
    r->i = (size_t)(end - r->s) + r->quote.n;
    return true;
}

static bool at_quote(const reader *r) {
    return r->quote.n > 0 && r->n - r->i >= r->quote.n &&
           memcmp(r->s + r->i, r->quote.s, r->quote.n) == 0;
}

static size_t word_length(const reader *r) {
    size_t k = r->i;
    while (k < r->n && (isalnum((unsigned char)r->s[k]) || strchr("_+-.$", r->s[k])) && r->s[k])
        k++;
    return k - r->i;
}

/* A number or a name such as None. JSON is checked afterwards. */
static bool word(reader *r) {
    static const char *const names[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    const ggl_str w = {r->s + r->i, word_length(r)};
    if (w.n == 0)
        return error(r, "a value is missing");
    r->i += w.n;
    for (int k = 0; k < 3; k++)
        if (ggl_str_is(w, names[k][0])) {
            put(r, names[k][1], strlen(names[k][1]));
            return true;
        }
    put(r, w.s, w.n);
    return true;
}

static bool value(reader *r, int depth);

/* The name in front of a value: quoted, or, with the format's quotes, a word. */
static bool key(reader *r) {
    white(r);
    if (at_quote(r)) {
        r->i += r->quote.n;
        return quoted(r);
    }
    if (r->i < r->n && (r->s[r->i] == '"' || r->s[r->i] == '\'')) {
        r->i++;
        return string(r, r->s[r->i - 1]);
    }
    const size_t n = word_length(r);
    if (n == 0 || r->quote.n == 0)
        return error(r, "a name is missing");
    put(r, "\"", 1);
    put(r, r->s + r->i, n);
    put(r, "\"", 1);
    r->i += n;
    return true;
}

/* Passes a bracket that closes, or it is missing at the end of the text or before another one: then that one closes both. */
static bool closes(reader *r, char end) {
    if (pass(r, end))
        return true;
    return r->i == r->n || strchr(")]}", r->s[r->i]);
}

/* The elements of a list (end is ']' or ')') or of a dict. */
static bool elements(reader *r, char end, int depth) {
    put(r, end == '}' ? "{" : "[", 1);
    for (bool first = true; !closes(r, end); first = false) {
        if (!first && !pass(r, ','))
            return error(r, "a comma is missing");
        if (!first && closes(r, end)) /* a comma after the last one */
            break;
        if (!first)
            put(r, ",", 1);
        if (end == '}') {
            if (!key(r))
                return false;
            if (!pass(r, ':'))
                return error(r, "a colon is missing");
            put(r, ":", 1);
        }
        if (!value(r, depth + 1))
            return false;
    }
    put(r, end == '}' ? "}" : "]", 1);
    return true;
}

static bool value(reader *r, int depth) {
    white(r);
    if (depth > MAX_DEPTH)
        return error(r, "the arguments are nested too deeply");
    if (at_quote(r)) {
        r->i += r->quote.n;
        return quoted(r);
    }
    const char ch = r->i < r->n ? r->s[r->i] : 0;
    if (ch == '"' || ch == '\'') {
        r->i++;
        return string(r, ch);
    }
    if (ch == '[' || ch == '(' || ch == '{') {
        r->i++;
        return elements(r, ch == '[' ? ']' : ch == '(' ? ')' : '}', depth);
    }
    return word(r);
}

/* f(a=1, b="x") after the bracket: an object. */
static bool keywords(reader *r) {
    put(r, "{", 1);
    for (bool first = true; !closes(r, ')'); first = false) {
        if (!first && !pass(r, ','))
            return error(r, "a comma is missing");
        if (!first && closes(r, ')'))
            break;
        white(r);
        const size_t n = word_length(r);
        if (n == 0)
            return error(r, "an argument has no name");
        put(r, first ? "\"" : ",\"", first ? 1 : 2);
        put(r, r->s + r->i, n);
        put(r, "\":", 2);
        r->i += n;
        if (!pass(r, '='))
            return error(r, "an argument has no name");
        if (!value(r, 0))
            return false;
    }
    put(r, "}", 1);
    return true;
}

/* Moves the text that was written to the arena. */
static ggl_status result(reader *r, ggl_arena *arena, bool ok, ggl_str *out, const char **why) {
    ggl_status st = r->out.no_memory ? GGL_NOMEM : ok ? GGL_OK : GGL_FORMAT;
    *out = (ggl_str){0};
    *why = r->error;
    if (st == GGL_OK) {
        *out = (ggl_str){ggl_arena_strndup(arena, r->out.s ? r->out.s : "", r->out.n), r->out.n};
        st = out->s ? GGL_OK : GGL_NOMEM;
    }
    ggl_free(r->out.s);
    return st;
}

ggl_status llm_calls_python(ggl_arena *arena, ggl_str *text, py_call *out, const char **why) {
    reader r = {.s = text->s, .n = text->n};
    *out = (py_call){0};
    white(&r);
    while (r.i < r.n && strchr("[],;", r.s[r.i])) { /* between calls */
        r.i++;
        white(&r);
    }
    if (r.i == r.n)
        return GGL_OK;
    const size_t begin = r.i;
    while (r.i < r.n && (isalnum((unsigned char)r.s[r.i]) || r.s[r.i] == '_' || r.s[r.i] == '.'))
        r.i++;
    out->name = (ggl_str){r.s + begin, r.i - begin};
    bool ok = out->name.n > 0 && pass(&r, '(');
    if (!ok)
        error(&r, "there is no call such as f(a=1)");
    ok = ok && keywords(&r);
    *text = (ggl_str){r.s + r.i, r.n - r.i};
    return result(&r, arena, ok, &out->arguments, why);
}

ggl_status llm_calls_loose(ggl_arena *arena, ggl_str text, ggl_str quote, ggl_str *out,
                           const char **why) {
    reader r = {.s = text.s, .n = text.n, .quote = quote};
    bool ok = value(&r, 0);
    white(&r);
    if (ok && r.i < r.n)
        ok = error(&r, "something follows the arguments");
    return result(&r, arena, ok, out, why);
}
