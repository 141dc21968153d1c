#include <ctype.h>
#include <string.h>

#include "calls_impl.h"
#include "ggl/internal/steps.h"

/* Arguments after which a missing mark is not noticed; white space between the marks that end a call. */
enum { MAX_ARGS = 64, MAX_BLANKS = 64 };

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

/* What has begun as a call ends where the text does, or at a mark where marks count; in reasoning nothing has begun. */
static bool is_begun(const llm_calls *c, const attempt *a) {
    return !c->doubtful && (a->sure || a->part.n_begun > 0);
}

/* --- names and texts -------------------------------------------------------------------------- */

bool llm_calls_is_name(char ch) {
    return isalnum((unsigned char)ch) || strchr("_-.:/", ch) || (unsigned char)ch >= 0x80;
}

bool llm_calls_can_name(const llm_calls *c, ggl_str name) {
    if (name.n == 0 || llm_calls_function_named(c, name))
        return name.n > 0;
    for (size_t i = 0; i < name.n; i++)
        if (!name.s[i] || !llm_calls_is_name(name.s[i]))
            return false;
    return name.n <= MAX_NAME;
}

/* The name without a number at its end, such as :0 or _0. */
static ggl_str without_number(ggl_str name) {
    size_t n = name.n;
    while (n > 0 && isdigit((unsigned char)name.s[n - 1]))
        n--;
    return n < name.n && n > 1 && strchr(":_.-", name.s[n - 1]) ? (ggl_str){name.s, n - 1} : name;
}

ggl_str llm_calls_tool_name(const llm_calls *c, ggl_str name) {
    static const char prefix[] = "functions";
    enum { N = sizeof prefix - 1 };
    const bool has_prefix =
        name.n > N + 1 && memcmp(name.s, prefix, N) == 0 && name.s[N] && strchr("._:/-", name.s[N]);
    const ggl_str inner = has_prefix ? (ggl_str){name.s + N + 1, name.n - N - 1} : name,
                  tries[] = {name, inner, without_number(inner), without_number(name)};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++)
        if (llm_calls_function_named(c, tries[i]))
            return tries[i];
    return name;
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
        return wait_or(c, a, "there are no arguments");
    if (kind != PIECE_PYTHON && c->text[a->scan] != '{' && c->text[a->scan] != '[')
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
    if (a->mend.quote) {
        const progress p = strict_border(c, a, a->scan);
        return p == STEP_DONE ? STEP_FAIL : p == STEP_FAIL ? STEP_DONE : p;
    }
    const progress p = stop.n > 0 ? llm_calls_compare(c, a->scan, stop) : STEP_FAIL;
    const progress q = c->doubtful ? llm_calls_compare(c, a->scan, c->think->close) : STEP_FAIL;
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
        if (p == STEP_DONE && a->mend.quote && !is_begun(c, a) && llm_calls_track(c) == GGL_OK &&
            !is_begun(c, a))
            return fail(a, "the call is not complete");
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
            return is_begun(c, a) ? end_json(c, a) : fail(a, "the call is nested too deeply");
        if (p != STEP_DONE)
            return p;
    }
    const bool done = a->mend.depth == 0 && a->mend.n_values > 0;
    return c->final || (done && stop.n == 0) ? end_json(c, a) : STEP_WAIT;
}

/* --- arguments in marks ----------------------------------------------------------------------- */

/* The text that ends a value. */
static ggl_str value_close(const llm_calls *c) {
    for (int i = 0; i + 1 < c->f.arg.n; i++)
        if (c->f.arg.piece[i].kind == PIECE_VALUE)
            return c->f.arg.piece[i + 1].text;
    return (ggl_str){0};
}

/* Whether one of the pattern's texts from piece `from` on stands at i. */
static progress at_text_of(const llm_calls *c, const pattern *p, int from, size_t i) {
    progress most = STEP_FAIL;
    for (int k = from; k < p->n && most != STEP_DONE; k++) {
        const progress is =
            p->piece[k].kind == PIECE_TEXT ? llm_calls_compare(c, i, p->piece[k].text) : STEP_FAIL;
        most = is == STEP_FAIL ? most : is;
    }
    return most;
}

static progress at_any_mark(const llm_calls *c, size_t i) {
    bool wait;
    const mark *m = llm_calls_mark_at(c, i, &wait);
    return m ? STEP_DONE : wait ? STEP_WAIT : STEP_FAIL;
}

/* Whether the arguments, or the call, can go on at i: at the begin of an argument, a closing mark, any other mark of the format, or
 * the end of the answer. */
static progress at_border(const llm_calls *c, const attempt *a, size_t i) {
    if (i == c->n)
        return c->final ? STEP_DONE : STEP_WAIT;
    const progress is[] = {llm_calls_compare(c, i, c->f.arg.piece[0].text),
                           llm_calls_compare(c, i, value_close(c)),
                           at_text_of(c, a->p, a->piece + 1, i), at_any_mark(c, i)};
    progress most = STEP_FAIL;
    for (size_t k = 0; k < sizeof is / sizeof *is; k++)
        if (is[k] == STEP_DONE || (is[k] == STEP_WAIT && most == STEP_FAIL))
            most = is[k];
    return most;
}

/* The place after white space from i on; what was skipped is not skipped again. */
static size_t look_after(const llm_calls *c, attempt *a, size_t i) {
    return a->look = llm_calls_skip_white(c, i < a->look ? a->look : i);
}

/* True if a function has a parameter, or its parameters are not known, and the call has none of this name yet. */
static bool can_be_next(const llm_calls *c, const attempt *a, ggl_str key) {
    const ggl_str function = llm_calls_tool_name(c, llm_calls_slice(c, a->name));
    for (size_t i = 0; i < a->n_args && i < MAX_ARGS; i++) {
        const ggl_str own = llm_calls_trimmed(llm_calls_slice(c, a->arg[i].key));
        if (own.n == key.n && memcmp(own.s, key.s, key.n) == 0)
            return false;
    }
    return key.n > 0 && a->n_args < MAX_ARGS &&
           (!llm_calls_function_named(c, function) || llm_calls_schema(c, function, key));
}

/* Whether an argument begins at i, which its mark and its name show. */
static progress at_next_argument(const llm_calls *c, const attempt *a, size_t i) {
    const ggl_str open = c->f.arg.piece[0].text, close = stop_after(&c->f.arg, 1);
    const progress p = llm_calls_compare(c, i, open);
    if (p != STEP_DONE || (c->f.lines && c->text[i - 1] != '\n'))
        return p == STEP_WAIT && !(c->f.lines && c->text[i - 1] != '\n') ? p : STEP_FAIL;
    const size_t begin = i + open.n;
    size_t end = begin;
    while (end < c->n && end - begin < MAX_NAME && c->text[end] && c->text[end] != close.s[0] &&
           c->text[end] != '\n')
        end++;
    const progress q = end == c->n && !c->final ? STEP_WAIT : llm_calls_compare(c, end, close);
    if (q != STEP_DONE)
        return q;
    const ggl_str key = llm_calls_trimmed((ggl_str){c->text + begin, end - begin});
    return can_be_next(c, a, key) ? STEP_DONE : STEP_FAIL;
}

/* Whether the texts that end the call stand at i, and then another mark, or the end of the answer. The first must be there. */
static progress at_end_of_call(const llm_calls *c, attempt *a, size_t i) {
    for (int k = a->piece + 1; k < a->p->n; k++) {
        const progress p = llm_calls_compare(c, i, a->p->piece[k].text);
        if (p == STEP_WAIT || (p == STEP_FAIL && k == a->piece + 1))
            return p;
        if (p == STEP_DONE)
            i += a->p->piece[k].text.n;
        for (int n = 0; n < MAX_BLANKS && i < c->n && llm_calls_is_white(c->text[i]); n++)
            i++;
    }
    return i == c->n ? (c->final ? STEP_DONE : STEP_WAIT) : at_any_mark(c, i);
}

/* Whether a value ends at a->scan. Its closing mark ends it if the arguments or the call can go on after it, else it is text. Models
 * forget it: then the next argument ends it, or the end of the call. */
static progress at_end_of_value(const llm_calls *c, attempt *a) {
    const ggl_str close = value_close(c), stop = stop_after(a->p, a->piece);
    const char ch = c->text[a->scan];
    if (ch != close.s[0] && ch != stop.s[0] && ch != c->f.arg.piece[0].text.s[0])
        return STEP_FAIL;
    const progress p = llm_calls_compare(c, a->scan, close);
    if (p == STEP_DONE)
        return at_border(c, a, look_after(c, a, a->scan + close.n));
    const progress q = at_next_argument(c, a, a->scan), r = at_end_of_call(c, a, a->scan);
    return q == STEP_DONE || r == STEP_DONE                     ? STEP_DONE
           : p == STEP_WAIT || q == STEP_WAIT || r == STEP_WAIT ? STEP_WAIT
                                                                : STEP_FAIL;
}

static progress step_value_text(const llm_calls *c, attempt *a, span *out) {
    if (!a->entered) {
        a->entered = true;
        *out = (span){a->scan, a->scan};
    }
    for (; a->scan < c->n; a->scan++) {
        GGL_STEPS(1);
        progress p = at_end_of_value(c, a);
        if (p == STEP_WAIT)
            return p;
        if (p == STEP_FAIL) {
            p = strict_border(c, a, a->scan);
            if (p == STEP_WAIT || (p == STEP_FAIL && !is_begun(c, a)))
                return p;
            a->unfinished = a->unfinished || p == STEP_FAIL;
            p = p == STEP_DONE ? STEP_FAIL : STEP_DONE;
        }
        if (p == STEP_DONE)
            break;
    }
    if (a->scan == c->n && !c->final)
        return STEP_WAIT;
    if (a->scan == c->n && !is_begun(c, a))
        return fail(a, "the call is not complete");
    a->unfinished = a->unfinished || a->scan == c->n;
    out->end = a->scan;
    a->entered = false;
    return STEP_DONE;
}

/* A text between fields of an argument. Where it is missing, the next field begins. */
static progress step_arg_text(const llm_calls *c, attempt *a, ggl_str text) {
    const bool after_value =
        a->arg_piece > 0 && c->f.arg.piece[a->arg_piece - 1].kind == PIECE_VALUE;
    const size_t at = llm_calls_skip_white(c, a->scan);
    progress p = at == c->n && !c->final ? STEP_WAIT : llm_calls_compare(c, at, text);
    if (p == STEP_DONE)
        a->scan = at + text.n;
    if (p == STEP_FAIL && (after_value || is_begun(c, a)))
        return STEP_DONE;
    return p == STEP_FAIL ? fail(a, "an argument is not written as expected") : p;
}

/* Whether the arguments end here, or another one begins. What is neither belongs to a call that has begun, up to what is. */
static progress step_arg_begin(const llm_calls *c, attempt *a, ggl_str stop, bool *ends) {
    const ggl_str close = value_close(c);
    for (;;) {
        const size_t at = a->scan = llm_calls_skip_white(c, a->scan);
        *ends = false;
        if (at == c->n && !c->final)
            return STEP_WAIT;
        const progress end = llm_calls_compare(c, at, stop),
                       p = llm_calls_compare(c, at, c->f.arg.piece[0].text);
        *ends = end == STEP_DONE || at == c->n;
        if (*ends || p == STEP_DONE)
            break;
        const progress again = llm_calls_compare(c, at, close), border = at_border(c, a, at);
        if (end == STEP_WAIT || p == STEP_WAIT || again == STEP_WAIT || border == STEP_WAIT)
            return STEP_WAIT;
        if (!is_begun(c, a))
            return fail(a, "neither an argument nor the end of the call follows");
        *ends = border == STEP_DONE && again != STEP_DONE;
        if (*ends)
            break;
        a->scan += again == STEP_DONE ? close.n : 1;
    }
    a->sure = true;
    return STEP_DONE;
}

static bool has_text(const llm_calls *c, size_t begin, size_t end) {
    return llm_calls_trimmed((ggl_str){c->text + begin, end - begin}).n > 0;
}

/* The name of an argument. In a call that has begun, it ends with its line, too, and at later texts of the argument. */
static progress step_key(const llm_calls *c, attempt *a, argument *arg) {
    if (!a->entered)
        arg->key = (span){a->scan, a->scan};
    a->entered = true;
    for (; a->scan < c->n; a->scan++) {
        GGL_STEPS(1);
        progress p = at_text_of(c, &c->f.arg, a->arg_piece + 1, a->scan);
        if (p == STEP_FAIL)
            p = at_text_of(c, a->p, a->piece + 1, a->scan);
        if (p == STEP_WAIT)
            return p;
        const bool line_ends = c->text[a->scan] == '\n' && has_text(c, arg->key.begin, a->scan);
        if (p == STEP_DONE || line_ends || a->scan - arg->key.begin == MAX_NAME)
            break;
        p = strict_border(c, a, a->scan);
        if (p != STEP_DONE && !(p == STEP_FAIL && is_begun(c, a)))
            return p;
        if (p == STEP_FAIL)
            break;
    }
    if (a->scan == c->n && !c->final)
        return STEP_WAIT;
    arg->key.end = a->scan;
    a->entered = false;
    return STEP_DONE;
}

/* A value, up to the text after it; between the verbatim marks, that text belongs to it. */
static progress step_arg_value(const llm_calls *c, attempt *a, argument *arg) {
    const ggl_str open = c->f.verbatim;
    if (!a->entered && open.n > 0) {
        const progress p = a->scan < c->n ? llm_calls_compare(c, a->scan, open)
                           : c->final     ? STEP_FAIL
                                          : STEP_WAIT;
        if (p == STEP_WAIT)
            return p;
        if (p == STEP_DONE) {
            arg->typed = arg->string = arg->verbatim = true;
            a->scan += open.n;
        }
    }
    if (!arg->verbatim)
        return step_value_text(c, a, &arg->value);
    const progress p = step_until(c, a, c->f.verbatim_end, SIZE_MAX, &arg->value);
    if (p == STEP_DONE)
        a->scan += c->f.verbatim_end.n;
    if (p != STEP_FAIL || !is_begun(c, a))
        return p;
    arg->value.end = a->scan;
    a->entered = false;
    a->unfinished = true;
    return STEP_DONE;
}

static progress step_arg_piece(const llm_calls *c, attempt *a, const piece *p) {
    argument *arg = &a->arg[a->n_args - 1];
    span said;
    progress done;
    switch (p->kind) {
    case PIECE_TEXT:
        return step_arg_text(c, a, p->text);
    case PIECE_KEY:
        return step_key(c, a, arg);
    case PIECE_STRING:
        done = step_name(c, a, &said);
        arg->typed = done == STEP_DONE;
        arg->string = arg->typed &&
                      ggl_str_is((ggl_str){c->text + said.begin, said.end - said.begin}, "true");
        return done == STEP_FAIL && is_begun(c, a) ? STEP_DONE : done;
    default:
        return step_arg_value(c, a, arg);
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
    case PIECE_JSON:
    case PIECE_MAP:
    case PIECE_ARGS:
        return step_json(c, a, p->kind, stop);
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
