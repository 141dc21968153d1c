#include "data_records.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/steps.h"

static bool is_white(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns the length of the value at the start of s: to its closing bracket, or the end of the text if it has none. */
static size_t value_length(ggl_str s) {
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < s.n; i++) {
        const char c = s.s[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && depth > 0) {
            if (--depth == 0)
                return i + 1;
        }
        if (depth == 0 && !in_string && (i + 1 == s.n || strchr(",]} \t\r\n", s.s[i + 1])))
            return i + 1;
    }
    return s.n;
}

static ggl_str rest_of(const train_records *r) {
    return (ggl_str){r->text.s + r->at, r->text.n - r->at};
}

static void skip_white(train_records *r) {
    while (r->at < r->text.n && is_white(r->text.s[r->at]))
        r->at++;
}

/* Counts the lines up to `at`: a list can be one line, which is not to be searched again for each element. */
static void count_lines(train_records *r, size_t at) {
    GGL_STEPS(at - r->counted);
    for (const char *end; (end = memchr(r->text.s + r->counted, '\n', at - r->counted));) {
        r->line++;
        r->counted = r->line_at = (size_t)(end + 1 - r->text.s);
    }
    r->counted = at;
}

void llm_train_records_begin(train_records *r, const char *name, ggl_str text) {
    *r = (train_records){.name = name, .text = text, .line = 1};
    skip_white(r);
    const ggl_str rest = rest_of(r);
    const char *newline = rest.n > 0 ? memchr(rest.s, '\n', rest.n) : NULL;
    const size_t n_line = newline ? (size_t)(newline - rest.s) : rest.n;
    r->form = rest.n > 0 && rest.s[0] == '['                                  ? RECORD_LIST
              : rest.n > 0 && rest.s[0] == '{' && value_length(rest) > n_line ? RECORD_VALUES
                                                                              : RECORD_LINES;
    /* a first line that is broken does not make values of the others */
    if (r->form == RECORD_VALUES && newline && n_line > 1) {
        const ggl_str next = {newline + 1, rest.n - n_line - 1};
        if (next.n > 0 && next.s[0] == '{')
            r->form = RECORD_LINES;
    }
    if (r->form == RECORD_LIST)
        r->at++;
}

static bool fail(train_records *r, size_t at, const char *what, ggl_error *err) {
    count_lines(r, at);
    r->status = ggl_fail(err, GGL_FORMAT, "%s:%" PRId64 ":%zu: %s", r->name, r->line,
                         at - r->line_at + 1, what);
    return false;
}

/* Passes over what stands before the next element of a list. False: there is none. */
static bool next_element(train_records *r, ggl_error *err) {
    if (r->at == r->text.n)
        return fail(r, r->at, "the list is not closed", err);
    if (r->text.s[r->at] == ']') {
        r->at++;
        skip_white(r);
        r->ended = true;
        return r->at == r->text.n ? false : fail(r, r->at, "nothing may follow the list", err);
    }
    if (r->any && r->text.s[r->at] != ',')
        return fail(r, r->at, "a comma is expected between the elements of the list", err);
    r->at += r->any;
    skip_white(r);
    r->any = true;
    return r->at < r->text.n && r->text.s[r->at] != ',' && r->text.s[r->at] != ']'
               ? true
               : fail(r, r->at, "an element of the list is missing", err);
}

bool llm_train_records_next(train_records *r, train_record *out, ggl_error *err) {
    if (r->ended || r->status != GGL_OK)
        return false;
    skip_white(r);
    if (r->form == RECORD_LIST ? !next_element(r, err) : r->at == r->text.n)
        return false;
    count_lines(r, r->at);
    ggl_str rest = rest_of(r);
    if (r->form == RECORD_LINES) {
        const char *end = memchr(rest.s, '\n', rest.n);
        rest.n = end ? (size_t)(end - rest.s) : rest.n;
    } else {
        rest.n = value_length(rest);
    }
    r->at += rest.n;
    while (rest.n > 0 && is_white(rest.s[rest.n - 1]))
        rest.n--;
    *out = (train_record){rest, r->line, (int64_t)(rest.s - r->text.s) - (int64_t)r->line_at};
    return true;
}

ggl_status llm_train_record_parse(llm_json **out, const train_records *r, const train_record *of,
                                  ggl_error *err) {
    ggl_error own = {0};
    int64_t line, column;
    int used = 0;
    ggl_status st = llm_json_parse(out, of->text.s, of->text.n, "?", &own);
    if (st != GGL_OK &&
        sscanf(own.msg, "?:%" SCNd64 ":%" SCNd64 ":%n", &line, &column, &used) == 2 && used > 0)
        return ggl_fail(err, st, "%s:%" PRId64 ":%" PRId64 ":%s", r->name, of->line + line - 1,
                        column + (line == 1 ? of->column : 0), own.msg + used);
    if (st != GGL_OK)
        return ggl_fail(err, st, "%s:%" PRId64 "%s", r->name, of->line, own.msg + 1);
    if ((*out)->root.kind == JSON_OBJECT)
        return GGL_OK;
    st = ggl_fail(err, GGL_FORMAT, "%s:%" PRId64 ": an object is expected, not %s", r->name,
                  of->line, llm_json_kind_text((json_kind)(*out)->root.kind));
    llm_json_free(*out);
    *out = NULL;
    return st;
}
