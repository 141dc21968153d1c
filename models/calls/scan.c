#include <ctype.h>
#include <string.h>

#include "calls_impl.h"
#include "ggl/internal/steps.h"

bool llm_calls_is_white(char ch) {
    return ch == ' ' || ch == '\n' || ch == '\r' || ch == '\t';
}

ggl_str llm_calls_trimmed(ggl_str s) {
    while (s.n > 0 && llm_calls_is_white(s.s[0])) {
        s.s++;
        s.n--;
    }
    while (s.n > 0 && llm_calls_is_white(s.s[s.n - 1]))
        s.n--;
    return s;
}

ggl_str llm_calls_first_key(ggl_str keys) {
    const char *bar = memchr(keys.s, '|', keys.n);
    return bar ? (ggl_str){keys.s, (size_t)(bar - keys.s)} : keys;
}

ggl_str llm_calls_cut_name(const call_format *f, ggl_str name) {
    const ggl_str cut = f->cut;
    if (cut.n > 0 && name.n > cut.n && memcmp(name.s + name.n - cut.n, cut.s, cut.n) == 0)
        name.n -= cut.n;
    return name;
}

size_t llm_calls_skip_white(const llm_calls *c, size_t i) {
    for (; i < c->n && llm_calls_is_white(c->text[i]); i++)
        GGL_STEPS(1);
    return i;
}

progress llm_calls_compare(const llm_calls *c, size_t i, ggl_str s) {
    const size_t left = c->n - i, n = left < s.n ? left : s.n;
    if (n > 0 && memcmp(c->text + i, s.s, n) != 0)
        return STEP_FAIL;
    return n == s.n ? STEP_DONE : c->final ? STEP_FAIL : STEP_WAIT;
}

const mark *llm_calls_mark_at(const llm_calls *c, size_t i, bool *wait) {
    const mark *best = NULL;
    *wait = false;
    GGL_STEPS(1);
    if (!c->f.first[(unsigned char)c->text[i]])
        return NULL;
    for (int k = 0; k < c->f.n_marks; k++) {
        const mark *m = &c->f.mark[k];
        if (best && m->text.n <= best->text.n)
            continue;
        progress p = llm_calls_compare(c, i, m->text);
        if (p == STEP_DONE)
            best = m;
        *wait = *wait || p == STEP_WAIT;
    }
    return best;
}

static progress fail(attempt *a, const char *error) {
    a->error = error;
    return STEP_FAIL;
}

static progress wait_or(const llm_calls *c, attempt *a, const char *error) {
    return c->final ? fail(a, error) : STEP_WAIT;
}

/* The next piece, if it is a text, which ends a field. */
static ggl_str stop_after(const pattern *p, int at) {
    return at + 1 < p->n && p->piece[at + 1].kind == PIECE_TEXT ? p->piece[at + 1].text
                                                                : (ggl_str){0};
}

/* In an answer with a broken call, a field also ends, by an error, at marks: so no text is read
 * again and again. */
static progress strict_border(const llm_calls *c, attempt *a, size_t i) {
    bool wait;
    if (!c->strict)
        return STEP_DONE;
    if (c->doubtful) { /* in reasoning */
        const progress p = llm_calls_compare(c, i, c->think->close);
        if (p != STEP_FAIL)
            return p == STEP_WAIT ? p : fail(a, "the call is not complete");
    }
    const mark *m = llm_calls_mark_at(c, i, &wait);
    if (wait)
        return STEP_WAIT;
    return m ? fail(a, "the call is not complete") : STEP_DONE;
}

/* --- names and texts -------------------------------------------------------------------------- */

bool llm_calls_is_name(char ch) {
    return isalnum((unsigned char)ch) || strchr("_-.:/", ch) || (unsigned char)ch >= 0x80;
}

static progress step_name(const llm_calls *c, attempt *a, span *out) {
    const size_t begin = a->scan = llm_calls_skip_white(c, a->scan);
    size_t end = begin;
    while (end < c->n && c->text[end] && llm_calls_is_name(c->text[end]))
        if (end++ - begin == MAX_NAME)
            return fail(a, "the name is too long");
    if (end == c->n && !c->final)
        return STEP_WAIT;
    if (end == begin)
        return fail(a, "there is no name of a function");
    *out = (span){begin, end};
    a->scan = end;
    return STEP_DONE;
}

/* A field that goes on until a text. a->scan is where to look for it; *begin is set at the first
 * step. */
static progress step_until(const llm_calls *c, attempt *a, ggl_str stop, size_t most, span *out) {
    if (!a->entered) {
        a->entered = true;
        *out = (span){a->scan, a->scan};
    }
    for (; a->scan < c->n; a->scan++) {
        GGL_STEPS(1);
        if (a->scan - out->begin > most)
            return fail(a, "the name of an argument is too long");
        if (c->text[a->scan] == stop.s[0]) {
            progress p = llm_calls_compare(c, a->scan, stop);
            if (p == STEP_WAIT)
                return STEP_WAIT;
            if (p == STEP_DONE) {
                out->end = a->scan;
                a->entered = false;
                return STEP_DONE;
            }
        }
        progress p = strict_border(c, a, a->scan);
        if (p != STEP_DONE)
            return p;
    }
    return wait_or(c, a, "the call is not complete");
}

/* --- values ----------------------------------------------------------------------------------- */

static bool opens(char ch) {
    return ch == '{' || ch == '[' || ch == '(';
}
static bool closes(char ch) {
    return ch == '}' || ch == ']' || ch == ')';
}

/* Inside of a string: passes one character, or its end. */
static progress pass_string(const llm_calls *c, attempt *a) {
    const char ch = c->text[a->scan];
    if (a->quote == 1) { /* the format's own quote has no escapes */
        progress p = llm_calls_compare(c, a->scan, c->f.quote);
        if (p == STEP_WAIT)
            return p;
        a->scan += p == STEP_DONE ? c->f.quote.n : 1;
        if (p == STEP_DONE)
            a->quote = 0;
        return STEP_DONE;
    }
    if (a->escaped)
        a->escaped = false;
    else if (ch == '\\')
        a->escaped = true;
    else if (ch == a->quote)
        a->quote = 0;
    a->scan++;
    return STEP_DONE;
}

/* Outside of strings: passes one character that belongs to the value. */
static progress pass_plain(const llm_calls *c, attempt *a) {
    const char ch = c->text[a->scan];
    if (a->kind == PIECE_LOOSE && c->f.quote.n > 0) {
        progress p = llm_calls_compare(c, a->scan, c->f.quote);
        if (p == STEP_WAIT)
            return p;
        if (p == STEP_DONE) {
            a->quote = 1;
            a->scan += c->f.quote.n;
            return STEP_DONE;
        }
    }
    if (ch == '"' || (ch == '\'' && a->kind == PIECE_PYTHON))
        a->quote = ch;
    else if (opens(ch))
        a->depth++;
    else if (closes(ch) && --a->depth <= 0) {
        a->depth = 0;
        a->complete = true;
        a->last = a->scan + 1;
    }
    a->scan++;
    return STEP_DONE;
}

/* After a complete value: whether another one follows, so that the field goes on. */
static bool goes_on(const attempt *a, char ch, bool has_stop) {
    if (llm_calls_is_white(ch) || a->kind == PIECE_ARGS || a->kind == PIECE_LOOSE)
        return llm_calls_is_white(ch);
    if (!has_stop)
        return false;
    if (a->kind == PIECE_PYTHON)
        return true;
    return ch == ',' || ch == ';' || opens(ch);
}

static progress end_value(attempt *a) {
    a->value.end = a->scan = a->last;
    a->entered = false;
    return STEP_DONE;
}

static progress begin_value(const llm_calls *c, attempt *a, piece_kind kind) {
    a->scan = llm_calls_skip_white(c, a->scan);
    if (a->scan == c->n)
        return wait_or(c, a, "there are no arguments");
    if (kind != PIECE_PYTHON && !opens(c->text[a->scan]))
        return fail(a, "there is no JSON");
    a->entered = true;
    a->complete = a->escaped = false;
    a->quote = 0;
    a->depth = 0;
    a->kind = kind;
    a->value = (span){a->scan, a->scan};
    return STEP_DONE;
}

/* JSON, or what is like it: ends at `stop` outside of strings, or where it is complete and
 * something else follows. */
static progress step_value(const llm_calls *c, attempt *a, piece_kind kind, ggl_str stop) {
    if (!a->entered) {
        progress p = begin_value(c, a, kind);
        if (p != STEP_DONE)
            return p;
    }
    while (a->scan < c->n) {
        const char ch = c->text[a->scan];
        GGL_STEPS(1);
        if (a->complete && a->depth == 0 && stop.n == 0)
            return end_value(a);
        progress p = a->quote ? STEP_FAIL
                     : stop.n ? llm_calls_compare(c, a->scan, stop)
                              : STEP_FAIL;
        if (p == STEP_WAIT)
            return p;
        if (p == STEP_DONE) {
            a->last = a->scan;
            return end_value(a);
        }
        if (a->complete && a->depth == 0 && !a->quote && !goes_on(a, ch, stop.n > 0))
            return end_value(a);
        p = strict_border(c, a, a->scan);
        if (p != STEP_DONE)
            return p;
        p = a->quote ? pass_string(c, a) : pass_plain(c, a);
        if (p != STEP_DONE)
            return p;
    }
    if (a->complete && a->depth == 0 && !a->quote && (c->final || stop.n == 0))
        return end_value(a);
    return wait_or(c, a, "the call is not complete");
}

/* --- arguments in marks ----------------------------------------------------------------------- */

static progress step_arg_text(const llm_calls *c, attempt *a, ggl_str text) {
    const size_t at = a->scan = llm_calls_skip_white(c, a->scan);
    progress p = at == c->n && !c->final ? STEP_WAIT : llm_calls_compare(c, at, text);
    if (p == STEP_DONE)
        a->scan = at + text.n;
    return p == STEP_FAIL ? fail(a, "an argument is not written as expected") : p;
}

/* Whether the arguments end here, or another one begins. */
static progress step_arg_begin(const llm_calls *c, attempt *a, ggl_str stop, bool *ends) {
    const size_t at = a->scan = llm_calls_skip_white(c, a->scan);
    *ends = false;
    if (at == c->n && !c->final)
        return STEP_WAIT;
    progress end = llm_calls_compare(c, at, stop),
             p = llm_calls_compare(c, at, c->f.arg.piece[0].text);
    if (end == STEP_WAIT || p == STEP_WAIT)
        return STEP_WAIT;
    *ends = end == STEP_DONE || (at == c->n && c->final);
    return *ends || p == STEP_DONE ? STEP_DONE
                                   : fail(a, "neither an argument nor the end of the call follows");
}

/* A value, up to the text after it; between the verbatim marks, that text belongs to it. */
static progress step_arg_value(const llm_calls *c, attempt *a, argument *arg, ggl_str stop) {
    const ggl_str open = c->f.verbatim;
    if (!a->entered && open.n > 0) {
        const progress p = llm_calls_compare(c, a->scan, open);
        if (p == STEP_WAIT)
            return p;
        if (p == STEP_DONE) {
            arg->typed = arg->string = arg->verbatim = true;
            a->scan += open.n;
        }
    }
    if (!arg->verbatim)
        return step_until(c, a, stop, SIZE_MAX, &arg->value);
    const progress p = step_until(c, a, c->f.verbatim_end, SIZE_MAX, &arg->value);
    if (p == STEP_DONE)
        a->scan += c->f.verbatim_end.n;
    return p;
}

static progress step_arg_piece(const llm_calls *c, attempt *a, const piece *p) {
    argument *arg = &a->arg[a->n_args - 1];
    const ggl_str stop = stop_after(&c->f.arg, a->arg_piece);
    span said;
    progress done;
    switch (p->kind) {
    case PIECE_TEXT:
        return step_arg_text(c, a, p->text);
    case PIECE_KEY:
        return step_until(c, a, stop, MAX_NAME, &arg->key);
    case PIECE_STRING:
        done = step_name(c, a, &said);
        arg->typed = done == STEP_DONE;
        arg->string = arg->typed &&
                      ggl_str_is((ggl_str){c->text + said.begin, said.end - said.begin}, "true");
        return done;
    default:
        return step_arg_value(c, a, arg, stop);
    }
}

static progress step_params(llm_calls *c, attempt *a, ggl_str stop) {
    for (;;) {
        if (a->arg_piece == 0) {
            bool ends;
            progress p = step_arg_begin(c, a, stop, &ends);
            if (p != STEP_DONE || ends)
                return p;
            if (!ggl_grow(&a->arg, &a->cap_args, a->n_args + 1, sizeof *a->arg)) {
                a->no_memory = true;
                return STEP_FAIL;
            }
            a->arg[a->n_args++] = (argument){0};
        }
        progress p = step_arg_piece(c, a, &c->f.arg.piece[a->arg_piece]);
        if (p != STEP_DONE)
            return p;
        a->arg_piece = (a->arg_piece + 1) % c->f.arg.n;
    }
}

/* --- patterns --------------------------------------------------------------------------------- */

/* A text of the pattern. If only texts are left, they may be missing: the call is complete. */
static progress step_text(const llm_calls *c, attempt *a, const piece *t) {
    const size_t at = a->scan = llm_calls_skip_white(c, a->scan);
    progress p = at == c->n && !c->final ? STEP_WAIT : llm_calls_compare(c, at, t->text);
    if (p == STEP_DONE)
        a->scan = at + t->text.n;
    if (p != STEP_FAIL)
        return p;
    if (t->optional) {
        a->piece++; /* and the field after it */
        return STEP_DONE;
    }
    for (int i = a->piece; i < a->p->n; i++)
        if (a->p->piece[i].kind != PIECE_TEXT)
            return fail(a, "it does not go on as a call does");
    a->piece = a->p->n - 1;
    return STEP_DONE;
}

static progress step_piece(llm_calls *c, attempt *a, const piece *p) {
    const ggl_str stop = stop_after(a->p, a->piece);
    span skipped;
    switch (p->kind) {
    case PIECE_TEXT:
        return step_text(c, a, p);
    case PIECE_NAME:
    case PIECE_PATH:
        return step_name(c, a, &a->name);
    case PIECE_ID:
        return step_name(c, a, &a->id);
    case PIECE_SKIP:
        skipped = (span){a->scan, a->scan};
        return step_until(c, a, stop, SIZE_MAX, &skipped);
    case PIECE_PARAMS:
        a->kind = PIECE_PARAMS;
        return step_params(c, a, stop);
    case PIECE_TREE:
        a->kind = PIECE_TREE;
        return step_until(c, a, stop, SIZE_MAX, &a->value);
    default:
        return step_value(c, a, p->kind, stop);
    }
}

progress llm_calls_step(llm_calls *c, attempt *a) {
    if (!a->p) {
        progress p = llm_calls_choose(c, a);
        if (p != STEP_DONE)
            return p;
    }
    for (; a->piece < a->p->n; a->piece++) {
        progress p = step_piece(c, a, &a->p->piece[a->piece]);
        if (p != STEP_DONE)
            return p;
    }
    return STEP_DONE;
}

/* --- which pattern ---------------------------------------------------------------------------- */

/* Whether "[f(" or "f(" begins at i; no white space is allowed, so that little text has to be
 * looked at. */
static progress looks_python(const llm_calls *c, size_t i, bool bracket) {
    if (c->text[i] == '[')
        i++;
    else if (bracket)
        return STEP_FAIL;
    const size_t begin = i;
    while (i < c->n && i - begin <= MAX_NAME &&
           (isalnum((unsigned char)c->text[i]) || c->text[i] == '_' || c->text[i] == '.'))
        i++;
    if (i == c->n)
        return c->final ? STEP_FAIL : STEP_WAIT;
    return i > begin && !isdigit((unsigned char)c->text[begin]) && c->text[i] == '(' ? STEP_DONE
                                                                                     : STEP_FAIL;
}

/* Whether `{"` or `[{"` begins at i, or an empty list or object. */
static progress looks_json(const llm_calls *c, size_t i) {
    for (const size_t begin = i; i < c->n && i - begin < MAX_NAME; i++) {
        const char ch = c->text[i];
        if (ch == '"' || ch == '}' || ch == ']')
            return STEP_DONE;
        if (ch != '{' && ch != '[' && !llm_calls_is_white(ch))
            return STEP_FAIL;
    }
    return c->final || i < c->n ? STEP_FAIL : STEP_WAIT;
}

/* Whether the pattern may go on as the text does from i, which is no white space. */
static progress fits(const llm_calls *c, const pattern *p, size_t i) {
    const char ch = c->text[i];
    const piece *second = &p->piece[1];
    switch (second->kind) {
    case PIECE_TEXT:
        return llm_calls_compare(c, i, second->text);
    case PIECE_NAME:
    case PIECE_PATH:
        return llm_calls_is_name(ch) ? STEP_DONE : STEP_FAIL;
    case PIECE_PYTHON:
        return looks_python(c, i, p->piece[0].kind != PIECE_TEXT);
    case PIECE_JSON:
    case PIECE_MAP:
        return opens(ch) ? looks_json(c, i) : STEP_FAIL;
    default:
        return STEP_DONE;
    }
}

static bool begins_with(const pattern *p, const mark *m) {
    if (!m)
        return p->piece[0].kind != PIECE_TEXT;
    const ggl_str t = p->piece[0].text;
    return p->piece[0].kind == PIECE_TEXT && t.n == m->text.n && memcmp(t.s, m->text.s, t.n) == 0;
}

progress llm_calls_choose(llm_calls *c, attempt *a) {
    const size_t at = a->scan = llm_calls_skip_white(c, a->scan);
    if (at == c->n)
        return wait_or(c, a, "no call follows");
    for (int i = 0; i < c->f.n_calls; i++) {
        if (!begins_with(&c->f.call[i], a->mark))
            continue;
        progress p = fits(c, &c->f.call[i], at);
        if (p == STEP_WAIT)
            return p;
        if (p == STEP_DONE) {
            a->p = &c->f.call[i];
            a->piece = 1;
            return STEP_DONE;
        }
    }
    return fail(a, "no call follows");
}
