/* The parser of patterns. */
#include "regex_impl.h"

#include <stdio.h>

#include "ggl/internal/show.h"
#include "text/unicode.h"

static bool at_end(const regex_parser *p) {
    return p->status != GGL_OK || p->at >= p->n;
}

static bool looks_at(const regex_parser *p, const char *text) {
    const size_t n = strlen(text);
    return !at_end(p) && p->n - p->at >= n && memcmp(p->s + p->at, text, n) == 0;
}

static bool take(regex_parser *p, const char *text) {
    if (!looks_at(p, text))
        return false;
    p->at += strlen(text);
    return true;
}

static regex_node *new_node(regex_parser *p, regex_kind kind, size_t column) {
    regex_node *n = ggl_arena_alloc(&p->arena, 1, sizeof *n);
    if (!n)
        return llm_regex_fail(p, GGL_NOMEM, column, "out of memory");
    n->kind = kind;
    n->column = column;
    n->weight = 1;
    n->asserts = kind >= REGEX_BEGIN;
    n->has_begin = kind == REGEX_BEGIN;
    return n;
}

static void add_child(regex_node *parent, regex_node *child) {
    if (parent->last)
        parent->last->next = child;
    else
        parent->child = child;
    parent->last = child;
    if (child->weight > parent->weight)
        parent->weight = child->weight;
    parent->asserts |= child->asserts;
    parent->has_begin |= child->has_begin;
}

static regex_node *expr_node(regex_parser *p, size_t column, int32_t expr) {
    regex_node *n = p->status == GGL_OK ? new_node(p, REGEX_EXPR, column) : NULL;
    if (n)
        n->expr = expr;
    return n;
}

/* --- groups ----------------------------------------------------------------------------------- */

static regex_node *parse_alternatives(regex_parser *p);

/* Skips the name of a named group, up to and with '>'. */
static bool skip_name(regex_parser *p) {
    const size_t from = p->at;
    while (!at_end(p) && p->s[p->at] != '>' && p->s[p->at] != ')')
        p->at++;
    if (p->at > from && take(p, ">"))
        return true;
    llm_regex_fail(p, GGL_FORMAT, from, "the name of the group is not closed by '>'");
    return false;
}

/* After "(": whether the group captures or looks ahead. Returns the node that gets the alternatives;
 * NULL for a plain group. */
static regex_node *group_head(regex_parser *p, size_t column) {
    if (!looks_at(p, "?") || take(p, "?:"))
        return NULL;
    if (looks_at(p, "?<=") || looks_at(p, "?<!"))
        return llm_regex_fail(p, GGL_UNSUPPORTED, column, "lookbehind is not supported");
    if (take(p, "?<")) {
        (void)skip_name(p);
        return NULL;
    }
    const bool negated = looks_at(p, "?!");
    if (!take(p, "?=") && !take(p, "?!"))
        return llm_regex_fail(p, GGL_UNSUPPORTED, column,
                              "a group that begins with \"(%.3s\" is not ECMA-262's, or is not "
                              "supported",
                              p->s + p->at);
    regex_node *n = new_node(p, REGEX_AHEAD, column);
    if (n)
        n->negated = negated;
    return n;
}

static regex_node *parse_group(regex_parser *p) {
    const size_t column = p->at++;
    regex_node *head = group_head(p, column);
    if (p->status != GGL_OK)
        return NULL;
    if (++p->depth > LLM_REGEX_MAX_DEPTH)
        return llm_regex_fail(p, GGL_LIMIT, column, "groups are nested more than %d deep",
                              LLM_REGEX_MAX_DEPTH);
    regex_node *body = parse_alternatives(p);
    p->depth--;
    if (p->status != GGL_OK)
        return NULL;
    if (!take(p, ")"))
        return llm_regex_fail(p, GGL_FORMAT, column, "the group is not closed by ')'");
    if (!head)
        return body;
    add_child(head, body);
    return head;
}

/* --- quantifiers ------------------------------------------------------------------------------ */

/* Reads digits; false if none. Numbers above the limit become one more than it. */
static bool read_count(const regex_parser *p, size_t *at, int32_t *count) {
    const size_t from = *at;
    *count = 0;
    for (; *at < p->n && p->s[*at] >= '0' && p->s[*at] <= '9'; ++*at)
        if (*count <= LLM_REGEX_MAX_COUNT)
            *count = *count * 10 + (p->s[*at] - '0');
    return *at > from;
}

/* Reads {m}, {m,} or {m,n}. False: the brace is an ordinary character. */
static bool take_braces(regex_parser *p, int32_t *min, int32_t *max) {
    size_t at = p->at + 1;
    if (!read_count(p, &at, min))
        return false;
    *max = *min;
    if (at < p->n && p->s[at] == ',') {
        at++;
        if (!read_count(p, &at, max))
            *max = LLM_EXPR_MANY;
    }
    if (at >= p->n || p->s[at] != '}')
        return false;
    p->at = at + 1;
    return true;
}

static bool take_quantifier(regex_parser *p, int32_t *min, int32_t *max) {
    static const struct {
        char mark;
        int32_t min, max;
    } row[] = {{'*', 0, LLM_EXPR_MANY}, {'+', 1, LLM_EXPR_MANY}, {'?', 0, 1}};
    if (at_end(p))
        return false;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (p->s[p->at] == row[i].mark) {
            p->at++;
            *min = row[i].min;
            *max = row[i].max;
            return true;
        }
    return p->s[p->at] == '{' && take_braces(p, min, max);
}

static regex_node *quantified(regex_parser *p, regex_node *atom) {
    const size_t column = p->at;
    int32_t min, max;
    if (!atom || !take_quantifier(p, &min, &max))
        return atom;
    (void)take(p, "?"); /* lazy: the same texts */
    if (min > LLM_REGEX_MAX_COUNT || max > LLM_REGEX_MAX_COUNT)
        return llm_regex_fail(p, GGL_LIMIT, column, "a count is above %d", LLM_REGEX_MAX_COUNT);
    if (max != LLM_EXPR_MANY && max < min)
        return llm_regex_fail(p, GGL_FORMAT, column, "the counts {%d,%d} are in the wrong order",
                              (int)min, (int)max);
    if (atom->kind == REGEX_BEGIN || atom->kind == REGEX_END)
        return llm_regex_fail(p, GGL_FORMAT, column, "an anchor cannot be repeated");
    if (atom->asserts && max != 1)
        return llm_regex_fail(p, GGL_UNSUPPORTED, atom->column,
                              "an anchor or lookahead in a repeated group is not supported");
    if (looks_at(p, "*") || looks_at(p, "+") || looks_at(p, "?"))
        return llm_regex_fail(p, GGL_FORMAT, p->at, "'%c' has nothing to repeat", p->s[p->at]);
    regex_node *n = new_node(p, REGEX_COUNT, column);
    if (!n)
        return NULL;
    n->min = min;
    n->max = max;
    add_child(n, atom);
    const int32_t most = max != LLM_EXPR_MANY ? max : min > 0 ? min : 1;
    if (most > 0 && n->weight > LLM_REGEX_MAX_COUNT / most)
        return llm_regex_fail(p, GGL_LIMIT, column, "nested counts multiply to more than %d",
                              LLM_REGEX_MAX_COUNT);
    n->weight *= most > 0 ? most : 1;
    return n;
}

/* --- sequences -------------------------------------------------------------------------------- */

static regex_node *parse_dot(regex_parser *p) {
    static const llm_char_range newline[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
    const size_t column = p->at++;
    return expr_node(p, column, llm_expr_class(p->g, newline, 3, true));
}

static regex_node *parse_atom(regex_parser *p) {
    const size_t column = p->at;
    switch (p->s[p->at]) {
    case '(':
        return parse_group(p);
    case '[':
        return expr_node(p, column, llm_regex_bracket(p));
    case '.':
        return parse_dot(p);
    case '^':
        p->at++;
        return new_node(p, REGEX_BEGIN, column);
    case '$':
        p->at++;
        return new_node(p, REGEX_END, column);
    case '\\':
        return expr_node(p, column, llm_regex_escape(p));
    case '*':
    case '+':
    case '?':
        return llm_regex_fail(p, GGL_FORMAT, column, "'%c' has nothing to repeat", p->s[p->at]);
    default: {
        const uint32_t c = llm_regex_char(p);
        return expr_node(p, column, llm_expr_range(p->g, c, c));
    }
    }
}

static regex_node *parse_sequence(regex_parser *p) {
    regex_node *seq = new_node(p, REGEX_SEQ, p->at);
    while (seq && !at_end(p) && p->s[p->at] != '|' && p->s[p->at] != ')') {
        regex_node *n = quantified(p, parse_atom(p));
        if (!n)
            return NULL;
        add_child(seq, n);
    }
    return seq;
}

static regex_node *parse_alternatives(regex_parser *p) {
    regex_node *alt = new_node(p, REGEX_ALT, p->at);
    do {
        regex_node *seq = alt ? parse_sequence(p) : NULL;
        if (!seq)
            return NULL;
        add_child(alt, seq);
    } while (take(p, "|"));
    return alt;
}

regex_node *llm_regex_parse(regex_parser *p) {
    if (p->n > LLM_REGEX_MAX_SIZE)
        return llm_regex_fail(p, GGL_LIMIT, 0, "the pattern is longer than %d bytes",
                              LLM_REGEX_MAX_SIZE);
    regex_node *n = parse_alternatives(p);
    if (p->status == GGL_OK && p->at < p->n)
        return llm_regex_fail(p, GGL_FORMAT, p->at, "')' closes no group");
    return p->status == GGL_OK ? n : NULL;
}
