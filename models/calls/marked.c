/* Arguments between marks, as `arg` describes them. Models forget marks and double them: after the first argument has begun, what is
 * wrong is mended. */
#include <string.h>

#include "calls_impl.h"
#include "ggl/internal/steps.h"

/* Arguments after which a missing mark is not noticed; white space between the marks that end a call. */
enum { MAX_ARGS = 64, MAX_BLANKS = 64 };

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

/* The place after white space from i on, which may go on in what is added: it is not read again. */
static size_t after_white(const llm_calls *c, attempt *a, size_t i) {
    if (a->white.begin != i)
        a->white = (span){i, i};
    return a->white.end = llm_calls_skip_white(c, a->white.end > i ? a->white.end : i);
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
    const ggl_str open = c->f.arg.piece[0].text, close = llm_calls_stop_after(&c->f.arg, 1);
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
    const ggl_str close = value_close(c), stop = llm_calls_stop_after(a->p, a->piece);
    const char ch = c->text[a->scan];
    if (ch != close.s[0] && ch != stop.s[0] && ch != c->f.arg.piece[0].text.s[0])
        return STEP_FAIL;
    const progress p = llm_calls_compare(c, a->scan, close);
    if (p == STEP_DONE)
        return at_border(c, a, after_white(c, a, a->scan + close.n));
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
            p = llm_calls_strict_border(c, a, a->scan);
            if (p == STEP_WAIT || (p == STEP_FAIL && !llm_calls_is_begun(c, a)))
                return p;
            a->unfinished = a->unfinished || p == STEP_FAIL;
            p = p == STEP_DONE ? STEP_FAIL : STEP_DONE;
        }
        if (p == STEP_DONE)
            break;
    }
    if (a->scan == c->n && !c->final)
        return STEP_WAIT;
    if (a->scan == c->n && !llm_calls_is_begun(c, a))
        return llm_calls_fail(a, "the call is not complete");
    a->unfinished = a->unfinished || a->scan == c->n;
    out->end = a->scan;
    a->entered = false;
    return STEP_DONE;
}

/* Passes what is left out between two marks, if it stands at a->scan. */
static progress step_skip(const llm_calls *c, attempt *a) {
    const ggl_str open = c->f.skip, close = c->f.skip_end;
    const size_t at = after_white(c, a, a->scan);
    if (open.n == 0)
        return STEP_FAIL;
    const progress p = at == c->n && !c->final ? STEP_WAIT : llm_calls_compare(c, at, open);
    for (size_t i = at + open.n, k = 0; p == STEP_DONE && k < MAX_NAME; i++, k++) {
        const progress q = i < c->n   ? llm_calls_compare(c, i, close)
                           : c->final ? STEP_FAIL
                                      : STEP_WAIT;
        if (q == STEP_DONE)
            a->scan = i + close.n;
        if (q != STEP_FAIL)
            return q;
    }
    return p == STEP_DONE ? STEP_FAIL : p;
}

/* A text between fields of an argument. Where it is missing, the next field begins. */
static progress step_arg_text(const llm_calls *c, attempt *a, ggl_str text) {
    const bool after_value =
        a->arg_piece > 0 && c->f.arg.piece[a->arg_piece - 1].kind == PIECE_VALUE;
    if (step_skip(c, a) == STEP_WAIT)
        return STEP_WAIT;
    const size_t at = after_white(c, a, a->scan);
    progress p = at == c->n && !c->final ? STEP_WAIT : llm_calls_compare(c, at, text);
    if (p == STEP_DONE)
        a->scan = at + text.n;
    if (p == STEP_FAIL && (after_value || llm_calls_is_begun(c, a)))
        return STEP_DONE;
    return p == STEP_FAIL ? llm_calls_fail(a, "an argument is not written as expected") : p;
}

/* Whether a mark that ends calls stands at i. */
static progress at_closing_mark(const llm_calls *c, const attempt *a, size_t i) {
    bool wait;
    const mark *m = llm_calls_mark_at(c, i, &wait);
    const progress p = at_text_of(c, a->p, a->piece + 1, i);
    if (p == STEP_DONE)
        return p;
    return wait ? STEP_WAIT : m && m->role == MARK_DROP ? STEP_DONE : p;
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
        const progress closes = llm_calls_is_begun(c, a) ? STEP_DONE : at_closing_mark(c, a, at);
        if (closes == STEP_WAIT)
            return closes;
        if (closes == STEP_FAIL)
            return llm_calls_fail(a, "neither an argument nor the end of the call follows");
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
        p = llm_calls_strict_border(c, a, a->scan);
        if (p != STEP_DONE && !(p == STEP_FAIL && llm_calls_is_begun(c, a)))
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
    const progress p = llm_calls_step_until(c, a, c->f.verbatim_end, SIZE_MAX, &arg->value);
    if (p == STEP_DONE)
        a->scan += c->f.verbatim_end.n;
    if (p != STEP_FAIL || !llm_calls_is_begun(c, a))
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
    case PIECE_TYPE:
        done = llm_calls_step_name(c, a, &said);
        arg->typed = done == STEP_DONE;
        arg->string =
            arg->typed && ggl_str_is((ggl_str){c->text + said.begin, said.end - said.begin},
                                     p->kind == PIECE_TYPE ? "string" : "true");
        return done == STEP_FAIL && llm_calls_is_begun(c, a) ? STEP_DONE : done;
    default:
        return step_arg_value(c, a, arg);
    }
}

progress llm_calls_step_params(llm_calls *c, attempt *a, ggl_str stop) {
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
