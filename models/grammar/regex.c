/* The builder: from a pattern's tree to the expression of the texts in which it matches.
 *
 * Parts without anchors and lookahead become expressions as they are. The others are built from the
 * end: build(node, rest) is the set of texts that begin with what the node matches and go on with a
 * text of `rest`, up to the end of the whole text. Then `$` is the empty text if rest has it,
 * and lookahead for X is (X and then anything) AND rest. */
#include "regex_impl.h"

#include "expr_text.h"
#include "ggl/internal/show.h"

typedef struct builder {
    regex_parser *p;
    llm_exprs *g;
    int32_t any; /* any text */
} builder;

static int32_t plain(builder *b, const regex_node *n);

static int32_t plain_list(builder *b, const regex_node *n, bool is_alt) {
    int32_t few[16], *part = few;
    size_t count = 0, i = 0;
    for (const regex_node *c = n->child; c; c = c->next)
        count++;
    if (count > 16 && !(part = ggl_calloc(count, sizeof *part))) {
        llm_regex_fail(b->p, GGL_NOMEM, n->column, "out of memory");
        return LLM_EXPR_NONE;
    }
    for (const regex_node *c = n->child; c; c = c->next)
        part[i++] = plain(b, c);
    const int32_t e = is_alt ? llm_expr_alt(b->g, part, (int32_t)count)
                             : llm_expr_seq(b->g, part, (int32_t)count);
    if (part != few)
        ggl_free(part);
    return e;
}

/* The texts of a node without anchors and lookahead. */
static int32_t plain(builder *b, const regex_node *n) {
    if (n->kind == REGEX_EXPR)
        return n->expr;
    if (n->kind == REGEX_COUNT)
        return llm_expr_repeat(b->g, plain(b, n->child), n->min, n->max);
    return plain_list(b, n, n->kind == REGEX_ALT);
}

static int32_t build(builder *b, const regex_node *n, int32_t rest, bool at_begin);

/* The rest of a sequence, from n on. */
static int32_t build_sequence(builder *b, const regex_node *n, int32_t rest, bool at_begin) {
    if (!n)
        return rest;
    bool more_begins = false;
    for (const regex_node *c = n->next; c && at_begin; c = c->next)
        more_begins |= c->has_begin;
    if (n->asserts) {
        const bool passes = n->kind == REGEX_BEGIN || n->kind == REGEX_AHEAD;
        if (more_begins && !passes) {
            llm_regex_fail(b->p, GGL_UNSUPPORTED, n->column,
                           "'^' after a group with anchors is not supported");
            return LLM_EXPR_NONE;
        }
        return build(b, n, build_sequence(b, n->next, rest, at_begin && passes), at_begin);
    }
    const int32_t e = plain(b, n);
    const int32_t later = build_sequence(b, n->next, rest, false);
    if (!more_begins || !llm_expr_nullable(b->g, e))
        return llm_expr_seq2(b->g, e, later);
    /* after an empty match `^` still holds, and (?!^) does not */
    const int32_t some = llm_expr_seq2(b->g, llm_expr_any_char(b->g), b->any);
    const int32_t longer = llm_expr_and(b->g, (int32_t[]){e, some}, 2);
    return llm_expr_alt2(b->g, llm_expr_seq2(b->g, longer, later),
                         build_sequence(b, n->next, rest, true));
}

static int32_t build_ahead(builder *b, const regex_node *n, int32_t rest, bool at_begin) {
    int32_t seen = build(b, n->child, b->any, at_begin);
    if (n->negated)
        seen = llm_expr_not(b->g, seen);
    return llm_expr_and(b->g, (int32_t[]){seen, rest}, 2);
}

static int32_t build(builder *b, const regex_node *n, int32_t rest, bool at_begin) {
    int32_t e = LLM_EXPR_NONE;
    if (!n->asserts)
        return llm_expr_seq2(b->g, plain(b, n), rest);
    switch (n->kind) {
    case REGEX_BEGIN:
        return at_begin ? rest : LLM_EXPR_NONE;
    case REGEX_END:
        return llm_expr_nullable(b->g, rest) ? LLM_EXPR_EMPTY : LLM_EXPR_NONE;
    case REGEX_AHEAD:
        return build_ahead(b, n, rest, at_begin);
    case REGEX_SEQ:
        return build_sequence(b, n->child, rest, at_begin);
    case REGEX_COUNT: /* at most once, as the parser saw to */
        e = build(b, n->child, rest, at_begin);
        return n->min == 1 ? e : llm_expr_alt2(b->g, e, rest);
    default:
        for (const regex_node *c = n->child; c; c = c->next)
            e = llm_expr_alt2(b->g, e, build(b, c, rest, at_begin));
        return e;
    }
}

ggl_status llm_regex_read(int32_t *out, llm_exprs *g, ggl_str pattern, ggl_error *err) {
    regex_parser p = {.g = g, .s = pattern.s, .n = pattern.n, .err = err};
    const regex_node *root = llm_regex_parse(&p);
    builder b = {&p, g, llm_expr_any_text(g)};
    *out = LLM_EXPR_NONE;
    if (root) {
        const int32_t later = build(&b, root, b.any, false);
        const int32_t one = llm_expr_any_char(g);
        *out = root->has_begin ? llm_expr_alt2(g, build(&b, root, b.any, true),
                                               llm_expr_seq3(g, one, b.any, later))
                               : llm_expr_seq2(g, b.any, later);
    }
    if (p.status == GGL_OK && g->status != GGL_OK)
        p.status = ggl_fail(err, g->status, "%s", ggl_status_text(g->status));
    ggl_arena_fini(&p.arena);
    return p.status;
}
