/* The parser of regular expressions. It writes instructions; what is repeated is written again. */
#include "pattern_impl.h"

#include <ctype.h>
#include <stdarg.h>

#include "bracket.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/show.h"
#include "utf8.h"

enum { MANY = INT32_MAX };

typedef struct reader {
    llm_pattern *p;
    ggl_str text;
    size_t at;
    int depth;
    ggl_status status;
    ggl_error *err;
} reader;

/* Reports the first fault. */
GGL_PRINTF(3, 4) static void fail(reader *r, size_t at, const char *fmt, ...) {
    const size_t n = ggl_utf8_cut(r->text.s, r->text.n, 400);
    if (r->status != GGL_OK)
        return;
    va_list args;
    va_start(args, fmt);
    r->status = ggl_failv(r->err, GGL_USAGE, fmt, args);
    va_end(args);
    (void)ggl_within(r->err, r->status, "'%.*s%s' is not a regular expression: column %zu", (int)n,
                     r->text.s, n < r->text.n ? ".." : "", at + 1);
}

static bool at_end(const reader *r) {
    return r->status != GGL_OK || r->at >= r->text.n;
}

static bool take(reader *r, const char *text) {
    const size_t n = strlen(text);
    if (at_end(r) || r->text.n - r->at < n || memcmp(r->text.s + r->at, text, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* --- instructions ----------------------------------------------------------------------------- */

/* Makes room for n more. */
static bool reserve(reader *r, size_t n) {
    llm_pattern *p = r->p;
    if (n > LLM_PATTERN_MOST - p->n)
        fail(r, r->at - 1, "with its counts written out, it is longer than %d characters and marks",
             LLM_PATTERN_MOST);
    if (r->status == GGL_OK && !ggl_grow(&p->code, &p->cap_code, p->n + n, sizeof *p->code))
        r->status = ggl_fail(r->err, GGL_NOMEM, "out of memory");
    return r->status == GGL_OK;
}

static void emit(reader *r, pattern_kind kind, int32_t value) {
    if (reserve(r, 1))
        r->p->code[r->p->n++] = (pattern_code){kind, value};
}

/* Inserts a split before the instructions from `at` on. Its other way goes on behind these and `more` that will follow
 * them. */
static void insert_split(reader *r, size_t at, int32_t more) {
    llm_pattern *p = r->p;
    if (!reserve(r, 1))
        return;
    memmove(p->code + at + 1, p->code + at, (p->n - at) * sizeof *p->code);
    p->code[at] = (pattern_code){PATTERN_SPLIT, (int32_t)(p->n - at) + 1 + more};
    p->n++;
}

static void emit_class(reader *r, ggl_str text, size_t at) {
    llm_pattern *p = r->p;
    if (!ggl_grow(&p->class, &p->cap_class, p->n_class + 1, sizeof *p->class)) {
        r->status = ggl_fail(r->err, GGL_NOMEM, "out of memory");
        return;
    }
    p->class[p->n_class] = (pattern_class){.text = text, .at = at, .last = LLM_NO_CHAR};
    emit(r, PATTERN_CLASS, (int32_t)p->n_class++);
}

/* --- counts ----------------------------------------------------------------------------------- */

/* Repeats the instructions from `begin` on, at least min and at most max times: xxx?x? or xx+. */
static void repeat(reader *r, size_t begin, int32_t min, int32_t max) {
    llm_pattern *p = r->p;
    const size_t n = p->n - begin;
    if (n == 0 || max == 0) {
        p->n = begin;
        return;
    }
    const uint64_t copies = max < MANY ? (uint64_t)max : min > 1 ? (uint64_t)min : 1;
    if (!reserve(r, copies > LLM_PATTERN_MOST ? LLM_PATTERN_MOST : (copies - 1) * n))
        return;
    if (min == 0)
        insert_split(r, begin, max == MANY);
    const size_t from = begin + (min == 0);
    for (uint64_t k = 1; k < copies && r->status == GGL_OK; k++) {
        if (k >= (uint64_t)min)
            emit(r, PATTERN_SPLIT, (int32_t)n + 1);
        if (reserve(r, n)) {
            memcpy(p->code + p->n, p->code + from, n * sizeof *p->code);
            p->n += n;
        }
    }
    if (max == MANY)
        emit(r, PATTERN_SPLIT, -(int32_t)n);
}

/* Reads digits; -1: there are none. */
static int32_t read_number(reader *r) {
    int32_t number = -1;
    for (; !at_end(r) && isdigit((unsigned char)r->text.s[r->at]); r->at++)
        if (number <= LLM_PATTERN_MOST) /* anything above is too large */
            number = 10 * (number < 0 ? 0 : number) + (r->text.s[r->at] - '0');
    return number;
}

/* Reads what follows a '{'. */
static void read_bounds(reader *r, size_t at, int32_t *min, int32_t *max) {
    *min = *max = read_number(r);
    if (take(r, ",")) {
        const int32_t number = read_number(r);
        *min = *min < 0 ? 0 : *min;
        *max = number < 0 ? MANY : number;
    }
    if (!take(r, "}") || *min < 0)
        fail(r, at, "after '{' there is a count as in {3}, {3,}, {3,5} or {,5}; '\\{' is a brace");
    else if (*min > *max)
        fail(r, at, "the first number of the count is larger than the second");
}

/* Reads the marks that repeat the instructions from `begin` on. */
static void read_counts(reader *r, size_t begin) {
    static const struct {
        const char *mark;
        int32_t min, max;
    } rows[] = {{"*", 0, MANY}, {"+", 1, MANY}, {"?", 0, 1}, {"{", 0, 0}};
    size_t k = 0, n_rows = sizeof rows / sizeof *rows;
    while (k < n_rows) {
        const size_t at = r->at;
        for (k = 0; k < n_rows && !take(r, rows[k].mark);)
            k++;
        if (k == n_rows)
            return;
        int32_t min = rows[k].min, max = rows[k].max;
        if (r->text.s[at] == '{')
            read_bounds(r, at, &min, &max);
        (void)take(r, "?"); /* lazy */
        if (r->status == GGL_OK)
            repeat(r, begin, min, max);
    }
}

/* --- the rest --------------------------------------------------------------------------------- */

static void read_alternatives(reader *r);

static void read_group(reader *r, size_t at) {
    if (take(r, "?") && !take(r, ":"))
        fail(r, at, "of groups that begin with '(?', only '(?:' is known");
    if (++r->depth > LLM_PATTERN_MOST_DEPTH)
        fail(r, at, "groups are nested more than %d deep", LLM_PATTERN_MOST_DEPTH);
    read_alternatives(r);
    r->depth--;
    if (!take(r, ")"))
        fail(r, at, "the group is not closed by ')'");
}

/* Reads what follows a '\'. Returns whether it takes a character, and can so be repeated. */
static bool read_escape(reader *r, size_t at) {
    if (at_end(r)) {
        fail(r, at, "nothing follows the '\\'");
        return false;
    }
    const char c = r->text.s[r->at];
    const char *const word = llm_bracket_named(c);
    if (word) {
        emit_class(r, (ggl_str){word, strlen(word)}, 1);
    } else if (c && strchr("bB<>`'", c)) {
        emit(r, PATTERN_IS_AT, c == '`' ? '^' : c == '\'' ? '$' : c);
    } else if (isdigit((unsigned char)c)) {
        fail(r, at, "references to groups are not known");
    } else if (isalpha((unsigned char)c)) {
        fail(r, at, "this letter has no meaning after '\\'; d, w, s, D, W, S, b and B have one");
    } else {
        ggl_str rest = {r->text.s + r->at, r->text.n - r->at};
        emit(r, PATTERN_CHAR, (int32_t)llm_take_char(&rest));
        r->at = r->text.n - rest.n;
        return true;
    }
    r->at++;
    return word != NULL;
}

static void read_bracket(reader *r, size_t at) {
    const llm_bracket b = llm_bracket_read(r->text, r->at, false, LLM_NO_CHAR);
    if (b.end == 0) {
        fail(r, b.at, "%s", b.fault);
        return;
    }
    emit_class(r, (ggl_str){r->p->text, b.end}, at + 1);
    r->at = b.end;
}

static void read_item(reader *r) {
    const size_t at = r->at, begin = r->p->n;
    bool can_repeat = true;
    if (take(r, "(")) {
        read_group(r, at);
    } else if (take(r, ")")) {
        fail(r, at, "this ')' closes no group; '\\)' is a bracket");
    } else if (take(r, "[")) {
        read_bracket(r, at);
    } else if (take(r, ".")) {
        emit(r, PATTERN_ANY, 0);
    } else if (take(r, "\\")) {
        can_repeat = read_escape(r, at);
    } else if (take(r, "^") || take(r, "$")) {
        emit(r, PATTERN_IS_AT, r->text.s[at]);
        can_repeat = false;
    } else if (r->text.s[at] && strchr("*+?{", r->text.s[at])) {
        fail(r, at, "there is nothing before it that it could repeat");
    } else {
        ggl_str rest = {r->text.s + at, r->text.n - at};
        emit(r, PATTERN_CHAR, (int32_t)llm_take_char(&rest));
        r->at = r->text.n - rest.n;
    }
    if (can_repeat)
        read_counts(r, begin);
}

/* Each alternative but the last becomes: split behind it; it; jump to the end. */
static void read_alternatives(reader *r) {
    llm_pattern *p = r->p;
    int32_t last =
        -1; /* the last jump, each of which holds the one before until its target is known */
    for (bool more = true; more;) {
        const size_t begin = p->n;
        while (!at_end(r) && r->text.s[r->at] != '|' && (r->text.s[r->at] != ')' || r->depth == 0))
            read_item(r);
        more = take(r, "|");
        if (more) {
            insert_split(r, begin, 1);
            emit(r, PATTERN_JUMP, last);
            last = (int32_t)p->n - 1;
        }
    }
    while (last >= 0 && r->status == GGL_OK) {
        const int32_t before = p->code[last].value;
        p->code[last].value = (int32_t)p->n - last;
        last = before;
    }
}

ggl_status llm_pattern_parse(llm_pattern *p, ggl_str text, ggl_error *err) {
    reader r = {.p = p, .text = text, .err = err};
    if (!(p->text = ggl_calloc(text.n + 1, 1)))
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    if (text.n > 0)
        memcpy(p->text, text.s, text.n);
    read_alternatives(&r);
    emit(&r, PATTERN_FOUND, 0);
    return r.status;
}
