/* Reads GBNF, llama.cpp's language of grammars (docs/grammars.md), into expressions.
 *
 *     root ::= item+                      rules; the text has to fit "root"
 *     item ::= "- " [^\n]{1,80} "\n"      # a comment
 */
#include <string.h>

#include "common/place.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/index.h"
#include "ggl/internal/params.h"
#include "ggl/internal/show.h"
#include "grammar.h"
#include "thoughts.h"
#include "text/unicode.h"

enum {
    MAX_TEXT = 16 << 20,
    MAX_NESTING = 400,     /* groups within groups */
    MAX_TIMES = 100000000, /* in {m,n} */
    LAST_CHAR = 0x10ffff
};

typedef struct named_rule {
    ggl_str name; /* in the text */
    size_t used;  /* where the name stands first in a rule; SIZE_MAX: nowhere */
    size_t defined;
} named_rule;

/* Parts of a sequence, or of alternatives, under construction. Groups share the stack. */
typedef struct reader {
    const char *name; /* of the text */
    ggl_str text;
    size_t at;
    int depth; /* of groups */
    llm_exprs g;
    named_rule *rule; /* as g.rule */
    size_t cap_rules;
    ggl_index index;
    int32_t *part;
    size_t n_parts, cap_parts;
    llm_char_range *range; /* of a class */
    size_t n_ranges, cap_ranges;
    const llm_thought *thought;
    size_t n_thoughts;
    ggl_error *err;
    ggl_status status;
} reader;

/* Sets the first error: n bytes from `at`. */
static void fail_at(reader *r, size_t at, size_t n, const char *fmt, ...) GGL_PRINTF(4, 5);
static void fail_at(reader *r, size_t at, size_t n, const char *fmt, ...) {
    if (r->status != GGL_OK)
        return;
    va_list args;
    va_start(args, fmt);
    r->status = llm_place_failv(r->err, GGL_FORMAT, (llm_place){r->name, r->text, at, n}, NULL,
                                NULL, fmt, args);
    va_end(args);
}

static void out_of_memory(reader *r) {
    if (r->status == GGL_OK)
        r->status = ggl_fail(r->err, GGL_NOMEM, "out of memory for a grammar");
}

/* --- characters ------------------------------------------------------------------------------- */

/* The byte at `at`; 0 at the end (there is no NUL in the text). */
static char peek(const reader *r) {
    return r->at < r->text.n ? r->text.s[r->at] : '\0';
}

static bool stands_here(const reader *r, const char *s) {
    const size_t n = strlen(s);
    return r->at + n <= r->text.n && memcmp(r->text.s + r->at, s, n) == 0;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_';
}

/* Skips blanks and comments, and line ends if `lines`. */
static void skip(reader *r, bool lines) {
    for (;;) {
        const char c = peek(r);
        if (c == '#')
            while (r->at < r->text.n && peek(r) != '\n' && peek(r) != '\r')
                r->at++;
        else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))
            r->at++;
        else
            return;
    }
}

static int hex_value(char c) {
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The digits of \x41, \u0041 or \U00000041; `at` is at the letter. */
static uint32_t hex_escape(reader *r, int n_digits) {
    const size_t begin = r->at - 1;
    uint32_t c = 0;
    r->at++;
    for (int i = 0; i < n_digits; i++, r->at++) {
        const int v = hex_value(peek(r));
        if (v < 0) {
            fail_at(r, begin, r->at - begin, "\\%c needs %d hexadecimal digits",
                    r->text.s[begin + 1], n_digits);
            return 0;
        }
        c = c << 4 | (uint32_t)v;
    }
    if (c > LAST_CHAR || (c >= 0xd800 && c < 0xe000))
        fail_at(r, begin, r->at - begin, "U+%04X is no character", (unsigned)c);
    return c;
}

static uint32_t escape(reader *r) {
    static const struct {
        char letter;
        char value;
    } plain[] = {{'n', '\n'}, {'r', '\r'}, {'t', '\t'}, {'\\', '\\'}, {'"', '"'},
                 {'[', '['},  {']', ']'},  {'-', '-'},  {'^', '^'}};
    const size_t begin = r->at++;
    const char c = peek(r);
    if (c == 'x' || c == 'u' || c == 'U')
        return hex_escape(r, c == 'x' ? 2 : c == 'u' ? 4 : 8);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (c == plain[i].letter) {
            r->at++;
            return (uint32_t)(unsigned char)plain[i].value;
        }
    fail_at(r, begin, 2,
            "unknown escape; there are \\n \\r \\t \\\\ \\\" \\[ \\] \\- \\^ \\x41 \\u0041 "
            "\\U00000041");
    return 0;
}

/* Reads a character of a literal or class that ends with `end` and began at `begin`. */
static uint32_t character(reader *r, char end, size_t begin) {
    const char c = peek(r);
    if (r->at >= r->text.n || c == '\n' || c == '\r') {
        fail_at(r, begin, r->at - begin, "'%c' is missing at the end of %s", end,
                end == '"' ? "the literal" : "the class");
        return 0;
    }
    if (c == '\\')
        return escape(r);
    const size_t n = ggl_utf8_length(r->text.s + r->at, r->text.n - r->at);
    if (n == 0) {
        fail_at(r, r->at, 1, "the byte 0x%02x is not valid UTF-8", (unsigned)(unsigned char)c);
        return 0;
    }
    const uint32_t x = llm_unicode_decode(r->text.s + r->at, n);
    r->at += n;
    return x;
}

/* --- parts of a sequence ---------------------------------------------------------------------- */

static void push(reader *r, int32_t e) {
    llm_exprs_count(&r->g, 1);
    if (llm_exprs_grow(&r->g, &r->part, &r->cap_parts, r->n_parts + 1, sizeof *r->part))
        r->part[r->n_parts++] = e;
}

/* Replaces the parts from `base` on by their sequence, or alternatives. */
static int32_t pop_list(reader *r, size_t base, bool alternatives) {
    const int32_t n = (int32_t)(r->n_parts - base), *part = r->part ? r->part + base : NULL;
    r->n_parts = base;
    if (r->status != GGL_OK || r->g.status != GGL_OK || (n == 0 && !alternatives))
        return LLM_EXPR_EMPTY;
    return n == 1         ? part[0]
           : alternatives ? llm_expr_alt(&r->g, part, n)
                          : llm_expr_seq(&r->g, part, n);
}

static int32_t literal(reader *r) {
    const size_t begin = r->at++, base = r->n_parts;
    while (r->status == GGL_OK && r->g.status == GGL_OK && peek(r) != '"') {
        const uint32_t c = character(r, '"', begin);
        push(r, llm_expr_range(&r->g, c, c));
    }
    r->at++;
    return pop_list(r, base, false);
}

static void add_range(reader *r, uint32_t first, uint32_t last) {
    if (llm_exprs_grow(&r->g, &r->range, &r->cap_ranges, r->n_ranges + 1, sizeof *r->range))
        r->range[r->n_ranges++] = (llm_char_range){first, last};
}

static int32_t class(reader *r) {
    const size_t begin = r->at++;
    const bool negated = peek(r) == '^';
    r->at += negated;
    r->n_ranges = 0;
    while (r->status == GGL_OK && peek(r) != ']') {
        const size_t from = r->at;
        const uint32_t first = character(r, ']', begin);
        uint32_t last = first;
        if (peek(r) == '-' && r->at + 1 < r->text.n && r->text.s[r->at + 1] != ']') {
            r->at++;
            last = character(r, ']', begin);
        }
        if (last < first)
            fail_at(r, from, r->at - from, "the range ends before it begins");
        add_range(r, first, last);
    }
    r->at++;
    if (r->n_ranges == 0)
        fail_at(r, begin, r->at - begin, "the class has no characters");
    const int32_t n = (int32_t)r->n_ranges;
    const int32_t e =
        r->status == GGL_OK ? llm_expr_class(&r->g, r->range, n, negated) : LLM_EXPR_NONE;
    if (e == LLM_EXPR_NONE && r->g.status == GGL_OK)
        fail_at(r, begin, r->at - begin, "the class excludes every character");
    return e;
}

/* --- rules ------------------------------------------------------------------------------------ */

static ggl_str name(reader *r) {
    const size_t begin = r->at;
    while (is_name(peek(r)))
        r->at++;
    return (ggl_str){r->text.s + begin, r->at - begin};
}

/* The number of a rule; a new one is neither used nor defined. */
static size_t find_rule(reader *r, ggl_str s) {
    const size_t known = ggl_index_find(&r->index, r->rule, s), n = r->g.n_rules;
    if (known != SIZE_MAX || r->status != GGL_OK)
        return known;
    if (!ggl_grow(&r->rule, &r->cap_rules, n + 1, sizeof *r->rule) ||
        ggl_index_reserve(&r->index, r->rule, n + 1, NULL) != GGL_OK) {
        out_of_memory(r);
        return SIZE_MAX;
    }
    if (llm_rule_new(&r->g, s) < 0)
        return SIZE_MAX;
    r->rule[n] = (named_rule){s, SIZE_MAX, SIZE_MAX};
    ggl_index_put(&r->index, r->rule, n);
    return n;
}

static int32_t reference(reader *r) {
    const size_t begin = r->at, k = find_rule(r, name(r));
    if (k == SIZE_MAX)
        return LLM_EXPR_NONE;
    if (r->rule[k].used == SIZE_MAX)
        r->rule[k].used = begin;
    return llm_expr_rule(&r->g, (int32_t)k);
}

/* A number of repetitions. */
static int32_t times(reader *r) {
    const size_t begin = r->at;
    int32_t n = 0;
    while (is_digit(peek(r))) {
        n = n > MAX_TIMES ? n : n * 10 + (peek(r) - '0');
        r->at++;
    }
    if (r->at == begin)
        fail_at(r, begin, 1, "expected a number of repetitions, as in {2,5}");
    else if (n > MAX_TIMES)
        fail_at(r, begin, r->at - begin, "at most %d repetitions are supported", (int)MAX_TIMES);
    return n;
}

/* {m} {m,} {m,n} */
static void braces(reader *r, int32_t *min, int32_t *max) {
    const size_t begin = r->at++;
    skip(r, true);
    *min = *max = times(r);
    skip(r, true);
    if (peek(r) == ',') {
        r->at++;
        skip(r, true);
        *max = is_digit(peek(r)) ? times(r) : LLM_EXPR_MANY;
        skip(r, true);
    }
    if (peek(r) != '}')
        fail_at(r, begin, r->at - begin, "'}' is missing after the numbers of repetitions");
    r->at++;
    if (*max != LLM_EXPR_MANY && *max < *min)
        fail_at(r, begin, r->at - begin, "at most %d repetitions are fewer than at least %d",
                (int)*max, (int)*min);
}

/* Applies the operators after a part: * + ? {m,n}. */
static int32_t repeated(reader *r, int32_t e, bool nested) {
    for (skip(r, nested); r->status == GGL_OK; skip(r, nested)) {
        const char c = peek(r);
        int32_t min = c == '+', max = c == '?' ? 1 : LLM_EXPR_MANY;
        if (c == '{')
            braces(r, &min, &max);
        else if (c == '*' || c == '+' || c == '?')
            r->at++;
        else
            break;
        e = llm_expr_repeat(&r->g, e, min, max);
    }
    return e;
}

static int32_t alternatives(reader *r, bool nested);

static int32_t group(reader *r) {
    const size_t begin = r->at++;
    if (++r->depth > MAX_NESTING) {
        fail_at(r, begin, 1, "groups are nested more than %d deep", (int)MAX_NESTING);
        return LLM_EXPR_NONE;
    }
    skip(r, true);
    const int32_t e = alternatives(r, true);
    if (peek(r) != ')')
        fail_at(r, r->at < r->text.n ? r->at : begin, 1,
                r->at < r->text.n ? "expected ')', or a part of the group" : "')' is missing");
    r->at++;
    r->depth--;
    return e;
}

static int32_t any_char(reader *r) {
    r->at++;
    return llm_expr_range(&r->g, 0, LAST_CHAR);
}

/* Reads a part of a sequence; false if no part begins here. */
static bool read_part(reader *r, int32_t *e) {
    const char c = peek(r);
    if (stands_here(r, "<") || stands_here(r, "!<")) {
        fail_at(r, r->at, 1, "tokens of a vocabulary, as in <[1]> or <think>, are not supported");
        return false;
    }
    if (strchr("*+?{", c) && c) {
        fail_at(r, r->at, 1, "there is nothing before '%c' that could be repeated", c);
        return false;
    }
    if (c == '"')
        *e = literal(r);
    else if (c == '[')
        *e = class(r);
    else if (c == '(')
        *e = group(r);
    else if (c == '.')
        *e = any_char(r);
    else if (is_name(c))
        *e = reference(r);
    else
        return false;
    return r->status == GGL_OK;
}

/* True if "name ::=" stands here: the next rule. */
static bool begins_rule(reader *r) {
    const size_t at = r->at;
    name(r);
    skip(r, false);
    const bool is = r->at > at && stands_here(r, "::=");
    r->at = at;
    return is;
}

static int32_t sequence(reader *r, bool nested) {
    const size_t base = r->n_parts;
    int32_t e;
    while (r->status == GGL_OK && read_part(r, &e))
        push(r, repeated(r, e, nested));
    return pop_list(r, base, false);
}

/* Within groups, line ends are blanks; elsewhere they end the rule, unless '|' follows. */
static bool next_alternative(reader *r, bool nested) {
    const size_t at = r->at;
    skip(r, true);
    if (r->status == GGL_OK && peek(r) == '|') {
        r->at++;
        skip(r, true);
        return true;
    }
    if (!nested)
        r->at = at;
    return false;
}

static int32_t alternatives(reader *r, bool nested) {
    const size_t base = r->n_parts;
    do {
        if (!nested && begins_rule(r))
            push(r, LLM_EXPR_EMPTY);
        else
            push(r, sequence(r, nested));
    } while (next_alternative(r, nested));
    return pop_list(r, base, true);
}

static void rule(reader *r) {
    const size_t begin = r->at, k = find_rule(r, name(r));
    if (r->at == begin)
        fail_at(r, begin, 1, "expected the name of a rule, as in: root ::= \"yes\" | \"no\"");
    const size_t n = r->at - begin;
    skip(r, false);
    if (!stands_here(r, "::="))
        fail_at(r, r->at, 1, "expected '::=' after the name of a rule");
    if (r->status != GGL_OK || k == SIZE_MAX)
        return;
    if (r->rule[k].defined != SIZE_MAX) {
        int line, column;
        llm_place_line_col((llm_place){r->name, r->text, r->rule[k].defined, 1}, &line, &column);
        fail_at(r, begin, n, "rule '%.*s' is already defined in line %d", (int)n, r->text.s + begin,
                line);
        return;
    }
    r->rule[k].defined = begin;
    r->at += 3;
    skip(r, true);
    const int32_t body = alternatives(r, false);
    skip(r, false);
    const bool ends = r->at >= r->text.n || peek(r) == '\n' || peek(r) == '\r';
    if (!ends && !begins_rule(r))
        fail_at(r, r->at, 1,
                "expected a literal, a class, a group, a rule, '|' or the end of line");
    llm_rule_define(&r->g, (int32_t)k, body);
}

/* --- the grammar ------------------------------------------------------------------------------ */

static void check_defined(reader *r) {
    for (size_t k = 0; k < r->g.n_rules && r->status == GGL_OK; k++) {
        if (r->rule[k].defined != SIZE_MAX)
            continue;
        const ggl_str s = r->rule[k].name;
        fail_at(r, r->rule[k].used, s.n, "rule '%.*s' is not defined", (int)(s.n < 80 ? s.n : 80),
                s.s);
    }
}

static ggl_status read_rules(reader *r, llm_grammar **out) {
    const char *nul = r->text.n ? memchr(r->text.s, 0, r->text.n) : NULL;
    if (r->text.n > MAX_TEXT)
        return ggl_fail(r->err, GGL_LIMIT,
                        "%s: the grammar has %zu bytes; at most %d are supported", r->name,
                        r->text.n, (int)MAX_TEXT);
    if (nul)
        fail_at(r, (size_t)(nul - r->text.s), 1, "a NUL byte stands here; a grammar is a text");
    for (skip(r, true); r->at < r->text.n && r->status == GGL_OK && r->g.status == GGL_OK;
         skip(r, true))
        rule(r);
    if (r->g.status == GGL_OK)
        check_defined(r);
    const size_t root = ggl_index_find(&r->index, r->rule, (ggl_str){"root", 4});
    if (root == SIZE_MAX && r->g.status == GGL_OK)
        fail_at(r, r->text.n, 1, "there is no rule 'root', which the text has to fit");
    if (r->status != GGL_OK)
        return r->status;
    const int32_t text = llm_expr_after_thoughts(&r->g, r->thought, r->n_thoughts,
                                                 llm_expr_rule(&r->g, (int32_t)root));
    const ggl_status st = llm_grammar_compile(out, &r->g, text, r->err);
    return st == GGL_OK ? st : ggl_within(r->err, st, "%s", r->name);
}

ggl_status llm_grammar_from_gbnf(llm_grammar **out, const char *text, size_t n, const char *name,
                                 ggl_error *err) {
    return llm_grammar_from_gbnf_with(out, text, n, name, NULL, err);
}

ggl_status llm_grammar_from_gbnf_with(llm_grammar **out, const char *text, size_t n,
                                      const char *name, const llm_gbnf_params *params,
                                      ggl_error *err) {
    llm_gbnf_params own = {.size = sizeof own};
    *out = NULL;
    const ggl_status is_read = GGL_READ_PARAMS(llm_gbnf_params, &own, params, err);
    if (is_read != GGL_OK)
        return is_read;
    reader r = {.name = name,
                .text = {text, n},
                .thought = own.thought,
                .n_thoughts = own.n_thoughts,
                .err = err};
    r.g.use = llm_grammar_budget(own.max_steps, own.max_bytes);
    ggl_status st = ggl_index_init(&r.index, 64, sizeof *r.rule, GGL_INDEX_STRINGS, err);
    if (st == GGL_OK)
        st = read_rules(&r, out);
    llm_exprs_fini(&r.g);
    ggl_index_fini(&r.index);
    ggl_free(r.rule);
    ggl_free(r.part);
    ggl_free(r.range);
    return st;
}
