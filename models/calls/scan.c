#include <ctype.h>
#include <string.h>

#include "calls_impl.h"
#include "ggl/internal/steps.h"

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
    if (llm_calls_is_white(ch) || a->kind == PIECE_LOOSE)
        return llm_calls_is_white(ch);
    if (!has_stop)
        return false;
    return true;
}

static progress end_value(attempt *a) {
    a->value.end = a->scan = a->last;
    a->entered = false;
    return STEP_DONE;
}

static progress begin_value(const llm_calls *c, attempt *a, piece_kind kind) {
    a->scan = llm_calls_skip_white(c, a->scan);
    if (a->scan == c->n)
        return llm_calls_wait_or(c, a, "there are no arguments");
    if (kind != PIECE_PYTHON && c->text[a->scan] != '{' && c->text[a->scan] != '[')
        return llm_calls_fail(a, "there is no JSON");
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
        p = llm_calls_strict_border(c, a, a->scan);
        if (p != STEP_DONE)
            return p;
        p = a->quote ? pass_string(c, a) : pass_plain(c, a);
        if (p != STEP_DONE)
            return p;
    }
    if (a->complete && a->depth == 0 && !a->quote && (c->final || stop.n == 0))
        return end_value(a);
    if (c->final && a->mark && !a->quote && a->depth > 0) { /* brackets are missing */
        a->last = a->scan;
        return end_value(a);
    }
    return llm_calls_wait_or(c, a, "the call is not complete");
}

/* --- JSON ------------------------------------------------------------------------------------- */

/* Ends a value. What is still open is closed: the calls in it that have begun, and those that had ended, are calls. */
static progress end_json(llm_calls *c, attempt *a) {
    mender *m = &a->mend;
    bool good = llm_calls_track(c) == GGL_OK;
    a->value.end = a->scan;
    a->entered = false;
    a->n_whole = m->n_ends;
    a->unfinished = m->depth > 0;
    a->was_begun_there = a->part.begun_here && a->part.level > 0;
    good = good && llm_mend_close(c, a) && !m->out.no_memory;
    a->no_memory = a->no_memory || !good;
    return a->no_memory ? STEP_FAIL : STEP_DONE;
}

/* Whether a mark stands at a place outside of strings, which cannot be JSON; or in strict answers, anywhere. */
static progress json_border(const llm_calls *c, attempt *a, ggl_str stop) {
    bool wait = false;
    size_t n;
    if (a->mend.quote) {
        const progress p = llm_calls_strict_border(c, a, a->scan);
        return p == STEP_DONE ? STEP_FAIL : p == STEP_FAIL ? STEP_DONE : p;
    }
    const progress p = stop.n > 0 ? llm_calls_compare(c, a->scan, stop) : STEP_FAIL;
    const progress q = c->doubtful ? llm_calls_closes(c, a->scan, &n) : STEP_FAIL;
    const mark *m = llm_calls_mark_at(c, a->scan, &wait);
    if (p == STEP_WAIT || q == STEP_WAIT || wait)
        return STEP_WAIT;
    return p == STEP_DONE || q == STEP_DONE || m ? STEP_DONE : STEP_FAIL;
}

/* After a complete value: what follows it in the field. STEP_FAIL: nothing does. */
static progress after_json(const llm_calls *c, attempt *a, ggl_str stop) {
    const char ch = c->text[a->scan];
    size_t i = a->scan;
    if (llm_calls_is_white(ch))
        return STEP_DONE;
    if (a->kind != PIECE_ARGS && stop.n > 0 && (ch == ',' || ch == ';')) {
        return STEP_DONE;
    }
    if (a->kind != PIECE_ARGS && stop.n > 0 && opens(ch)) {
        llm_mend_next(&a->mend);
        return STEP_DONE;
    }
    if (stop.n == 0 || (ch != '}' && ch != ']'))
        return STEP_FAIL;
    if (i < a->look) /* brackets too many, if the field ends after them */
        i = a->look;
    while (i < c->n && (llm_calls_is_white(c->text[i]) || c->text[i] == '}' || c->text[i] == ']'))
        i++;
    a->look = i;
    GGL_STEPS(1);
    return i == c->n && !c->final ? STEP_WAIT
           : i == c->n            ? STEP_DONE
                                  : llm_calls_compare(c, i, stop);
}

/* The value of {json}, {map} or {args}: ends at `stop` outside of strings, where it is complete and something else follows, and at
 * any other mark. */
static progress step_json(llm_calls *c, attempt *a, piece_kind kind, ggl_str stop) {
    if (!a->entered) {
        progress p = begin_value(c, a, kind);
        if (p != STEP_DONE)
            return p;
        llm_mend_begin(&a->mend);
    }
    while (a->scan < c->n) {
        const bool done = a->mend.depth == 0 && a->mend.n_values > 0;
        if (done && stop.n == 0)
            return end_json(c, a);
        progress p = json_border(c, a, stop);
        if (p == STEP_DONE && a->mend.quote && !llm_calls_is_begun(c, a) &&
            llm_calls_track(c) == GGL_OK && !llm_calls_is_begun(c, a))
            return llm_calls_fail(a, "the call is not complete");
        if (p != STEP_FAIL)
            return p == STEP_DONE ? end_json(c, a) : p;
        if (done) {
            const size_t n = a->mend.n_values;
            p = after_json(c, a, stop);
            if (p != STEP_DONE)
                return p == STEP_WAIT ? p : end_json(c, a);
            if (n == a->mend.n_values && !opens(c->text[a->scan])) {
                a->scan++;
                continue;
            }
        }
        p = llm_mend_pass(c, a, stop);
        if (p == STEP_FAIL && !a->no_memory)
            return llm_calls_is_begun(c, a) ? end_json(c, a)
                                            : llm_calls_fail(a, "the call is nested too deeply");
        if (p != STEP_DONE)
            return p;
    }
    const bool done = a->mend.depth == 0 && a->mend.n_values > 0;
    return c->final || (done && stop.n == 0) ? end_json(c, a) : STEP_WAIT;
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
            return llm_calls_fail(a, "it does not go on as a call does");
    a->piece = a->p->n - 1;
    return STEP_DONE;
}

static progress step_piece(llm_calls *c, attempt *a, const piece *p) {
    const ggl_str stop = llm_calls_stop_after(a->p, a->piece);
    span skipped;
    switch (p->kind) {
    case PIECE_TEXT:
        return step_text(c, a, p);
    case PIECE_NAME:
    case PIECE_PATH:
        return llm_calls_step_name(c, a, &a->name);
    case PIECE_ID:
        return llm_calls_step_name(c, a, &a->id);
    case PIECE_SKIP:
        skipped = (span){a->scan, a->scan};
        return llm_calls_step_until(c, a, stop, SIZE_MAX, &skipped);
    case PIECE_PARAMS:
        a->kind = PIECE_PARAMS;
        return llm_calls_step_params(c, a, stop);
    case PIECE_TREE:
        a->kind = PIECE_TREE;
        return llm_calls_step_until(c, a, stop, SIZE_MAX, &a->value);
    case PIECE_JSON:
    case PIECE_MAP:
    case PIECE_ARGS:
        return step_json(c, a, p->kind, stop);
    default:
        return step_value(c, a, p->kind, stop);
    }
}

static progress step_pieces(llm_calls *c, attempt *a) {
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

/* Whether `{"` or `[{"` begins at i, or an empty list or object; after a mark, also a name with other quotes or none. */
static progress looks_json(const llm_calls *c, size_t i, bool after_mark) {
    char bracket = 0;
    for (const size_t begin = i; i < c->n && i - begin < MAX_NAME; i++) {
        const char ch = c->text[i];
        const bool is_name =
            after_mark && bracket == '{' && (ch == '\'' || isalpha((unsigned char)ch));
        if (ch == '"' || ch == '}' || ch == ']' || is_name)
            return STEP_DONE;
        if (ch != '{' && ch != '[' && !llm_calls_is_white(ch))
            return STEP_FAIL;
        bracket = llm_calls_is_white(ch) ? bracket : ch;
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
        return opens(ch) ? looks_json(c, i, p->piece[0].kind == PIECE_TEXT) : STEP_FAIL;
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
        return llm_calls_wait_or(c, a, "no call follows");
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
    return llm_calls_fail(a, "no call follows");
}

/* The next pattern with the same mark that fits; NULL: none, or *wait. */
static const pattern *next_pattern(const llm_calls *c, const attempt *a, size_t *at, bool *wait) {
    *at = llm_calls_skip_white(c, a->body);
    for (const pattern *p = a->p + 1; p < c->f.call + c->f.n_calls && *at < c->n; p++) {
        if (!begins_with(p, a->mark))
            continue;
        const progress is = fits(c, p, *at);
        *wait = is == STEP_WAIT;
        if (is != STEP_FAIL)
            return *wait ? NULL : p;
    }
    return NULL;
}

/* Begins again with another pattern. */
static void begin_again(llm_calls *c, attempt *a, const pattern *p, size_t at) {
    const bool was_begun = a->was_begun;
    const size_t was_shown = a->was_shown;
    llm_calls_begin(c, a->mark, a->begin);
    a->was_begun = was_begun;
    a->was_shown = was_shown;
    a->scan = at;
    a->p = p;
    a->piece = 1;
}

progress llm_calls_step(llm_calls *c, attempt *a) {
    for (;;) {
        size_t at;
        bool wait = false;
        progress p = a->p ? STEP_DONE : llm_calls_choose(c, a);
        if (p == STEP_DONE)
            p = step_pieces(c, a);
        if (p != STEP_FAIL || a->no_memory || !a->p || llm_calls_is_begun(c, a))
            return p;
        const pattern *next = next_pattern(c, a, &at, &wait);
        if (!next)
            return wait ? STEP_WAIT : p;
        begin_again(c, a, next, at);
    }
}
