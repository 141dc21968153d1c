/* Statements, and llm_arch_parse. docs/architectures.md has the grammar; each of its rules is a
 * function here.
 *
 * Few words are reserved. Words like `keep` and `layer` begin a statement only if the next tokens
 * fit, so they can be names elsewhere. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "language.h"

static arch_stmt *parse_block(arch_parser *p, bool top);

/* --- names assigned to ------------------------------------------------------------------------ */

static bool parse_target(arch_parser *p, arch_target *t) {
    char buf[96];
    if (p->tok->kind != TOK_NAME || llm_arch_is_reserved(p->tok->str)) {
        llm_arch_parse_fail(p, "a name is expected, not %s",
                            llm_arch_describe(p->tok, buf, sizeof buf));
        return false;
    }
    *t = (arch_target){.name = p->tok->str, .place = llm_arch_token_place(p, p->tok), .slot = -1};
    for (int k = 0; k < SLOT_FIRST_FREE && !p->in_fn; k++)
        if (strcmp(t->name, llm_arch_predefined[k]) == 0)
            return llm_arch_parse_fail(p, "'%s' is predefined and cannot be assigned to", t->name);
    p->tok++;
    return true;
}

static bool parse_targets(arch_parser *p, arch_stmt *s, int max) {
    arch_target target[ARCH_MAX_ARGS];
    int n = 0;
    do {
        if (n == max)
            return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                          "more than %d names", max);
        if (!parse_target(p, &target[n]))
            return false;
        for (int k = 0; k < n; k++)
            if (strcmp(target[k].name, target[n].name) == 0)
                return llm_arch_parse_fail_at(p, GGL_FORMAT, target[n].place,
                                              "'%s' occurs twice on the left of '='",
                                              target[n].name);
        n++;
    } while (max > 1 && llm_arch_accept(p, ","));
    s->n_target = n;
    s->target = llm_arch_parse_alloc(p, (size_t)n, sizeof *s->target);
    if (s->target)
        memcpy(s->target, target, (size_t)n * sizeof *target);
    return s->target != NULL;
}

/* --- statements ------------------------------------------------------------------------------- */

static arch_stmt *parse_assign(arch_parser *p) {
    arch_stmt *s = llm_arch_new_stmt(p, ST_ASSIGN);
    if (!s || !parse_targets(p, s, ARCH_MAX_ARGS) ||
        !llm_arch_expect(p, "=", "after the names that a statement begins with"))
        return NULL;
    return llm_arch_one_expr(p, s) && llm_arch_end_of_line(p) ? s : NULL;
}

/* NAME "[" [exprs] "]" { "?" | "bias" ["?"] | "from" STRING ["??" STRING] | "??" expr } */
static arch_stmt *parse_weight(arch_parser *p) {
    arch_stmt *s = llm_arch_new_stmt(p, ST_WEIGHT);
    if (!s || !parse_targets(p, s, 1))
        return NULL;
    p->tok++;
    if (!llm_arch_is(p, "]") && !(s->expr = llm_arch_parse_exprs(p, &s->n_expr)))
        return NULL;
    if (s->n_expr > GGL_MAX_DIMS)
        return llm_arch_parse_fail_at(p, GGL_LIMIT, s->expr[GGL_MAX_DIMS]->place,
                                      "a tensor has at most %d dimensions", GGL_MAX_DIMS);
    if (!llm_arch_expect(p, "]", "after the dimensions of a weight"))
        return NULL;
    while (p->tok->kind != TOK_NEWLINE) {
        if (llm_arch_accept(p, "?")) {
            s->optional = true;
        } else if (llm_arch_accept(p, "bias")) {
            s->bias = true;
            s->bias_optional = llm_arch_accept(p, "?");
        } else if (llm_arch_is(p, "from") && llm_arch_next_is(p, TOK_STRING)) {
            s->string = p->tok[1].str;
            s->string_place = llm_arch_token_place(p, p->tok + 1);
            p->tok += 2;
            if (llm_arch_is(p, "??") && llm_arch_next_is(p, TOK_STRING)) {
                s->second = p->tok[1].str;
                p->tok += 2;
            }
        } else if (llm_arch_accept(p, "??")) {
            if (!(s->other = llm_arch_parse_expr(p)))
                return NULL;
        } else {
            return llm_arch_parse_fail(p, "after a weight's shape, only '?', 'bias', 'bias?', "
                                          "'from \"name\"' or '?? other' is allowed");
        }
    }
    if (s->optional && s->other)
        return llm_arch_parse_fail_at(
            p, GGL_FORMAT, s->other->place,
            "use either '?' or '\?\?': a weight with a substitute is never absent");
    return llm_arch_end_of_line(p) ? s : NULL;
}

static arch_stmt *parse_if(arch_parser *p, bool top) {
    arch_stmt *s = llm_arch_new_stmt(p, ST_IF);
    arch_arm arm[ARCH_MAX_ARGS];
    int n = 0;
    bool last = false;
    for (; s && !last && (n == 0 || llm_arch_is(p, "elif") || llm_arch_is(p, "else")); n++) {
        if (n == ARCH_MAX_ARGS)
            return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                          "an 'if' has more than %d arms", ARCH_MAX_ARGS);
        arm[n] = (arch_arm){.place = llm_arch_token_place(p, p->tok)};
        last = llm_arch_is(p, "else");
        p->tok++;
        if (last && llm_arch_is(p, "if"))
            return llm_arch_parse_fail_at(p, GGL_FORMAT, arm[n].place,
                                          "write 'elif' instead of 'else if'");
        if (!last && !(arm[n].cond = llm_arch_parse_expr(p)))
            return NULL;
        if (!(arm[n].body = parse_block(p, top)))
            return NULL;
    }
    if (!s || !(s->arm = llm_arch_parse_alloc(p, (size_t)n, sizeof *s->arm)))
        return NULL;
    memcpy(s->arm, arm, (size_t)n * sizeof *arm);
    s->n_arm = n;
    return s;
}

/* ( "layer" | "for" ) NAME "<" expr block */
static arch_stmt *parse_loop(arch_parser *p, arch_stmt_kind kind) {
    arch_stmt *s = llm_arch_new_stmt(p, kind);
    p->tok++;
    if (!s || !parse_targets(p, s, 1) ||
        !llm_arch_expect(p, "<",
                         kind == ST_LAYER ? "after the name of the layer's number"
                                          : "after the name that counts") ||
        !llm_arch_one_expr(p, s))
        return NULL;
    s->n_arm = 1;
    if (!(s->arm = llm_arch_parse_alloc(p, 1, sizeof *s->arm)))
        return NULL;
    s->arm[0].place = s->place;
    s->arm[0].body = parse_block(p, false);
    return s->arm[0].body ? s : NULL;
}

/* The beginning of an option of `over`: NAME "=". */
static bool parse_option(arch_parser *p, const char *name) {
    char buf[96];
    if (p->tok->kind != TOK_NAME || strcmp(p->tok->str, name) != 0)
        return llm_arch_parse_fail(p, "'%s = 1' is expected here, not %s", name,
                                   llm_arch_describe(p->tok, buf, sizeof buf)),
               false;
    p->tok++;
    return llm_arch_expect(p, "=", "after the name of an option");
}

static bool parse_one(arch_parser *p, const char *name) {
    if (p->tok->kind != TOK_NUMBER || p->tok->num != 1)
        return llm_arch_parse_fail(p, "'%s' can only be 1%s", name,
                                   strcmp(name, "ahead") == 0
                                       ? ", or that after the number of a layer: i + 1"
                                       : ""),
               false;
    p->tok++;
    return true;
}

/* ( "layer" | "block" ) NAME "<" expr, after the first word */
static bool parse_layers_over(arch_parser *p, arch_stmt *s) {
    arch_target *both = llm_arch_parse_alloc(p, 2, sizeof *both);
    arch_expr **expr = llm_arch_parse_alloc(p, 2, sizeof *expr);
    if (!both || !expr)
        return false;
    both[0] = s->target[0];
    expr[0] = s->expr[0];
    if (!parse_target(p, &both[1]) ||
        !llm_arch_expect(p, "<",
                         s->in_block ? "after the name that says whether an element is guessed"
                                     : "after the name of the layer's number") ||
        !(expr[1] = llm_arch_parse_expr(p)))
        return false;
    s->target = both;
    s->expr = expr;
    s->n_target = s->n_expr = 2;
    return true;
}

/* Checks `ahead = NAME + 1`, which counts the layers that it names. False: reported. */
static bool check_counted(arch_parser *p, const arch_stmt *s, const arch_target *counted) {
    if (!counted->name || (s->n_target == 2 && strcmp(s->target[1].name, counted->name) == 0))
        return true;
    llm_arch_parse_fail_at(p, GGL_FORMAT, counted->place,
                           "'%s' is not the number of a layer of this stage: over y(ahead = %s + "
                           "1, layer %s < n)",
                           counted->name, counted->name, counted->name);
    return false;
}

/* "every" "=" expr, "from" "=" expr, "count" "=" expr, "windows" "=" expr, in any order: options of a stage over rows, in s->expr[1 .. 4] */
static bool parse_row_options(arch_parser *p, arch_stmt *s) {
    enum { N = 4 };
    static const char *const name[N] = {"every", "from", "count", "windows"};
    char buf[96];
    bool seen[N] = {false};
    if (!llm_arch_accept(p, "("))
        return true;
    do {
        int k = 0;
        while (k < N && !llm_arch_is(p, name[k]))
            k++;
        if (k == N || seen[k])
            return llm_arch_parse_fail(p,
                                       "options of 'over' rows are 'every = N', 'from = N', "
                                       "'count = N' and 'windows = N', each once, not %s",
                                       llm_arch_describe(p->tok, buf, sizeof buf)),
                   false;
        seen[k] = true;
        p->tok++;
        if (!llm_arch_expect(p, "=", "after the name of an option") ||
            !(s->expr[1 + k] = llm_arch_parse_expr(p)))
            return false;
    } while (llm_arch_accept(p, ","));
    return llm_arch_expect(p, ")", "after the options of 'over'");
}

/* A whole number as an expression. */
static arch_expr *number_expr(arch_parser *p, double x) {
    arch_expr *e = llm_arch_parse_alloc(p, 1, sizeof *e);
    if (e)
        *e = (arch_expr){.kind = EX_NUMBER,
                         .place = llm_arch_token_place(p, p->tok),
                         .mark = llm_arch_token_place(p, p->tok),
                         .num = x,
                         .local = -1,
                         .global = -1};
    return e;
}

/* NAME [ "(" options ")" ]: the rows of an input, or of another stage */
static bool parse_over_rows(arch_parser *p, arch_stmt *s) {
    s->of_rows = true;
    s->n_expr = 5;
    s->expr = llm_arch_parse_alloc(p, 5, sizeof *s->expr);
    if (!s->expr || !(s->expr[0] = llm_arch_parse_name(p)))
        return false;
    for (int k = 1; k < s->n_expr; k++) /* `every` is 1 if not given, all others 0 */
        if (!(s->expr[k] = number_expr(p, k == 1)))
            return false;
    return parse_row_options(p, s);
}

/* "over" NAME "(" "ahead" "=" ( "1" | NAME "+" "1" ) [ "," "from" "=" "1" ] [ "," "stay" "=" "1" ] [ "," ( "layer" | "block" ) NAME "<" expr ] ")" */
static bool parse_over(arch_parser *p, arch_stmt *s) {
    arch_target counted = {0};
    p->tok++;
    if (p->tok->kind != TOK_NAME) {
        llm_arch_parse_fail(p, "'over' is followed by the name of an input or a stage, or by a "
                               "value of each token: over y(ahead = 1)");
        return false;
    }
    const bool of_tokens = llm_arch_next_is_symbol(p, "(") && p->tok[2].kind == TOK_NAME &&
                           strcmp(p->tok[2].str, "ahead") == 0;
    if (!of_tokens)
        return parse_over_rows(p, s);
    s->expr = llm_arch_parse_alloc(p, 1, sizeof *s->expr);
    if (!s->expr || !(s->expr[0] = llm_arch_parse_name(p)))
        return false;
    s->n_expr = 1;
    p->tok++;
    if (!parse_option(p, "ahead"))
        return false;
    if (p->tok->kind == TOK_NAME) {
        s->apart = true;
        if (!parse_target(p, &counted) || !llm_arch_expect(p, "+", "after the number of a layer"))
            return false;
    }
    if (!parse_one(p, "ahead"))
        return false;
    bool more = llm_arch_accept(p, ",");
    if (more && !llm_arch_is(p, "layer") && !llm_arch_is(p, "stay") && !llm_arch_is(p, "block")) {
        s->optional = true;
        if (!parse_option(p, "from") || !parse_one(p, "from"))
            return false;
        more = llm_arch_accept(p, ",");
    }
    if (more && llm_arch_is(p, "stay")) {
        s->stays = true;
        if (!parse_option(p, "stay") || !parse_one(p, "stay"))
            return false;
        more = llm_arch_accept(p, ",");
    }
    s->in_block = more && llm_arch_accept(p, "block");
    if (more && ((!s->in_block && !llm_arch_expect(p, "layer", "as the last option of 'over'")) ||
                 !parse_layers_over(p, s)))
        return false;
    return check_counted(p, s, &counted) && llm_arch_expect(p, ")", "after the options of 'over'");
}

/* "stage" NAME [ over ] [ STRING ] block */
static arch_stmt *parse_stage(arch_parser *p) {
    arch_stmt *s = llm_arch_new_stmt(p, ST_STAGE);
    p->tok++;
    if (!s || !parse_targets(p, s, 1))
        return NULL;
    const bool over = p->tok->kind == TOK_NAME && strcmp(p->tok->str, "over") == 0;
    if (over && !parse_over(p, s))
        return NULL;
    if (p->tok->kind == TOK_STRING) {
        s->string = p->tok->str;
        p->tok++;
    }
    s->n_arm = 1;
    if (!(s->arm = llm_arch_parse_alloc(p, 1, sizeof *s->arm)))
        return NULL;
    s->arm[0].place = s->place;
    if (!over || s->of_rows) {
        p->arch->n_stages++;
        p->arch->last_stage = s;
    }
    p->in_stage = true;
    s->arm[0].body = parse_block(p, true);
    p->in_stage = false;
    return s->arm[0].body ? s : NULL;
}

/* "prefix" STRING */
static arch_stmt *parse_prefix(arch_parser *p) {
    arch_stmt *s = llm_arch_new_stmt(p, ST_PREFIX);
    p->tok++;
    if (s)
        s->string = p->tok->str;
    p->tok++;
    return s && llm_arch_end_of_line(p) ? s : NULL;
}

/* A call of one of the functions that say how rows are prepared: in s->other */
static arch_stmt *parse_prepared(arch_parser *p, arch_stmt *s) {
    char buf[96];
    if (!llm_arch_is(p, "floats") && !llm_arch_is(p, "sound") && !llm_arch_is(p, "picture") &&
        !llm_arch_is(p, "tiles"))
        return llm_arch_parse_fail(p,
                                   "'layers(LIST)', 'floats()', 'sound(..)' or 'picture(..)' is "
                                   "expected here, not %s",
                                   llm_arch_describe(p->tok, buf, sizeof buf));
    s->of_rows = true;
    s->other = llm_arch_parse_expr(p);
    if (s->other && s->other->kind != EX_CALL)
        return llm_arch_parse_fail_at(p, GGL_FORMAT, s->other->place,
                                      "an input is from a call, such as floats()");
    return s->other && llm_arch_end_of_line(p) ? s : NULL;
}

/* "input" NAME "[" expr { "," expr } "]" "from" ( "layers" "(" expr ")" | call ) */
static arch_stmt *parse_input(arch_parser *p) {
    arch_stmt *s = llm_arch_new_stmt(p, ST_INPUT);
    p->tok++;
    if (!s || !parse_targets(p, s, 1))
        return NULL;
    p->tok++;
    if (!(s->expr = llm_arch_parse_exprs(p, &s->n_expr)))
        return NULL;
    if (!llm_arch_expect(p, "]", "after the shape of an input's rows") ||
        !llm_arch_expect(p, "from", "after the shape of an input's rows"))
        return NULL;
    if (!llm_arch_is(p, "layers"))
        return parse_prepared(p, s);
    if (s->n_expr != 1)
        return llm_arch_parse_fail_at(p, GGL_FORMAT, s->expr[1]->place,
                                      "rows of layers have one dimension");
    p->tok++;
    if (!llm_arch_expect(p, "(", "after 'layers'") || !(s->other = llm_arch_parse_expr(p)) ||
        !llm_arch_expect(p, ")", "after the list of layers"))
        return NULL;
    return llm_arch_end_of_line(p) ? s : NULL;
}

static arch_stmt *parse_keep(arch_parser *p) {
    arch_stmt *s = llm_arch_new_stmt(p, ST_KEEP);
    p->saw_state = true;
    p->tok++;
    if (!s || !parse_targets(p, s, 1) || !llm_arch_expect(p, "=", "after the state that is kept"))
        return NULL;
    return llm_arch_one_expr(p, s) && llm_arch_end_of_line(p) ? s : NULL;
}

static arch_stmt *parse_return(arch_parser *p) {
    arch_stmt *s = llm_arch_new_stmt(p, ST_RETURN);
    p->tok++;
    return s && (s->expr = llm_arch_parse_exprs(p, &s->n_expr)) && llm_arch_end_of_line(p) ? s
                                                                                           : NULL;
}

/* Parses one operand of `ignore` or `absent`. */
static arch_expr *parse_ignored_name(arch_parser *p, bool strings) {
    bool whole = llm_arch_is(p, "key") && llm_arch_next_is_symbol(p, "(");
    if (p->tok->kind == TOK_KEY || whole || (strings && p->tok->kind == TOK_STRING))
        return llm_arch_parse_atom(p);
    return llm_arch_parse_fail(p, "'%s' needs keys (.a.b)%s", strings ? "ignore" : "absent",
                               strings ? " and names of tensors in quotes" : "");
}

/* Parses the operands of `ignore` or `absent`, separated by commas. */
static bool parse_ignored_names(arch_parser *p, arch_stmt *s, bool strings) {
    arch_expr *list[ARCH_MAX_ARGS];
    do {
        if (s->n_expr == ARCH_MAX_ARGS)
            return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                          "more than %d of them", ARCH_MAX_ARGS);
        if (!(list[s->n_expr++] = parse_ignored_name(p, strings)))
            return false;
    } while (llm_arch_accept(p, ","));
    s->expr = llm_arch_parse_alloc(p, (size_t)s->n_expr, sizeof *s->expr);
    if (s->expr)
        memcpy(s->expr, list, (size_t)s->n_expr * sizeof(arch_expr *));
    return s->expr != NULL;
}

/* Parses the string that says what an ignored key is or does. */
static bool parse_reason(arch_parser *p, arch_stmt *s, const char *what) {
    if (p->tok->kind != TOK_STRING)
        return llm_arch_parse_fail(p, "%s must be in quotes", what);
    s->string = p->tok->str;
    p->tok++;
    return true;
}

/* "ignore" ( KEY | STRING ) { "," .. } [ "as" STRING | "if" expr [ "," STRING ] ] */
static arch_stmt *parse_ignore(arch_parser *p) {
    arch_stmt *s = llm_arch_new_stmt(p, ST_IGNORE);
    p->tok++;
    if (!s || !parse_ignored_names(p, s, true))
        return NULL;
    if (llm_arch_accept(p, "as")) {
        if (!parse_reason(p, s, "the text after 'as'"))
            return NULL;
    } else if (llm_arch_accept(p, "if")) {
        for (int k = 0; k < s->n_expr; k++)
            if (s->expr[k]->kind == EX_STRING && s->expr[k]->name[0] == '.' && !p->text->prelude)
                return llm_arch_parse_fail(
                    p, "a pattern of keys cannot have a condition: name the keys");
        if (!(s->other = llm_arch_parse_expr(p)))
            return NULL;
        if (llm_arch_accept(p, ",") && !parse_reason(p, s, "the text after the condition"))
            return NULL;
    }
    return llm_arch_end_of_line(p) ? s : NULL;
}

/* "absent" KEY { "," KEY } [ "if" expr ]: only in known_keys.arch. */
static arch_stmt *parse_absent(arch_parser *p) {
    arch_stmt *s = llm_arch_new_stmt(p, ST_ABSENT);
    p->tok++;
    if (!s || !parse_ignored_names(p, s, false))
        return NULL;
    if (llm_arch_accept(p, "if") && !(s->other = llm_arch_parse_expr(p)))
        return NULL;
    return llm_arch_end_of_line(p) ? s : NULL;
}

/* True for the operator of x += 1: an operator directly followed by '='. */
static bool is_update(const arch_token *op) {
    return op->kind == TOK_SYMBOL && strlen(op->str) <= 2 && strspn(op->str, "+-*/%?") == op->n &&
           op[1].kind == TOK_SYMBOL && strcmp(op[1].str, "=") == 0 && op[1].at == op->at + op->n;
}

/* Reports a line that is not a statement, with a hint if possible. */
static arch_stmt *unknown_stmt(arch_parser *p) {
    const char *word = p->tok->str, *meant = llm_arch_meant_statement(word);
    if (meant)
        return llm_arch_parse_fail(p, "%s", meant);
    if (is_update(p->tok + 1))
        return llm_arch_parse_fail(p, "instead of '%s %s= ..', write '%s = %s %s ..'", word,
                                   p->tok[1].str, word, word, p->tok[1].str);
    return llm_arch_parse_fail(p, "no statement begins like this; those that there are: NAME = "
                                  "value, a weight's NAME [shape], input, layer, for, if, stage, "
                                  "prefix, def, op, keep, return, require, ignore, convert");
}

static arch_stmt *parse_stmt(arch_parser *p, bool top) {
    char buf[96];
    if (p->tok->kind == TOK_INDENT)
        return llm_arch_parse_fail(p, "this line is indented, but no block begins here");
    if (p->tok->kind != TOK_NAME)
        return llm_arch_parse_fail(p, "a statement begins with a name, not with %s",
                                   llm_arch_describe(p->tok, buf, sizeof buf));
    const char *word = p->tok->str;
    bool name_next = llm_arch_next_is(p, TOK_NAME);
    if (strcmp(word, "if") == 0)
        return parse_if(p, top);
    if (strcmp(word, "require") == 0)
        return llm_arch_parse_require(p);
    if (strcmp(word, "return") == 0)
        return p->in_fn || (p->in_stage && top)
                   ? parse_return(p)
                   : llm_arch_parse_fail(p, "'return' is allowed only in a def, an op or a stage");
    if (strcmp(word, "keep") == 0 && name_next)
        return p->in_fn ? parse_keep(p)
                        : llm_arch_parse_fail(
                              p, "'keep' is allowed only in a def or op, with its state");
    bool whole_key = llm_arch_next_is(p, TOK_NAME) && strcmp(p->tok[1].str, "key") == 0;
    if (strcmp(word, "ignore") == 0 &&
        (llm_arch_next_is(p, TOK_KEY) || llm_arch_next_is(p, TOK_STRING) || whole_key))
        return parse_ignore(p);
    if (strcmp(word, "absent") == 0 && llm_arch_next_is(p, TOK_KEY) && p->text->prelude)
        return parse_absent(p);
    if (strcmp(word, "for") == 0 && name_next && p->tok[2].kind == TOK_SYMBOL &&
        strcmp(p->tok[2].str, "<") == 0)
        return parse_loop(p, ST_FOR);
    if (strcmp(word, "layer") == 0 && name_next)
        return top ? parse_loop(p, ST_LAYER)
                   : llm_arch_parse_fail(p, "a layer loop is allowed only at top level");
    if (strcmp(word, "prefix") == 0 && llm_arch_next_is(p, TOK_STRING))
        return top && !p->in_stage
                   ? parse_prefix(p)
                   : llm_arch_parse_fail(p, "'prefix' is allowed only at top level");
    if (strcmp(word, "input") == 0 && name_next && p->tok[2].kind == TOK_SYMBOL &&
        strcmp(p->tok[2].str, "[") == 0)
        return top && !p->in_stage
                   ? parse_input(p)
                   : llm_arch_parse_fail(p, "an input is allowed only at top level");
    if (strcmp(word, "stage") == 0 && name_next &&
        (p->tok[2].kind == TOK_STRING || p->tok[2].kind == TOK_NAME ||
         strcmp(p->tok[2].str ? p->tok[2].str : "", ":") == 0))
        return top && !p->in_stage
                   ? parse_stage(p)
                   : llm_arch_parse_fail(
                         p, "a stage is allowed only at top level, and not in another stage");
    if ((strcmp(word, "def") == 0 || strcmp(word, "op") == 0 || strcmp(word, "convert") == 0) &&
        name_next)
        return llm_arch_parse_fail(p, "'%s' is allowed only at top level", word);
    if (strcmp(word, "arch") == 0 && (name_next || llm_arch_next_is(p, TOK_STRING)))
        return llm_arch_parse_fail(p,
                                   "'arch' must be the first statement, and may occur only once");
    if (strcmp(word, "language") == 0 && llm_arch_next_is(p, TOK_NUMBER))
        return llm_arch_parse_fail(p, "'language' follows 'arch', once");
    if (strcmp(word, "elif") == 0 || strcmp(word, "else") == 0)
        return llm_arch_parse_fail(p, "'%s' without an 'if' of the same indentation above it",
                                   word);
    if (llm_arch_at_fused(p))
        return llm_arch_parse_fail(
            p, "names 'from' one tensor are allowed only at top level, outside of blocks");
    if (llm_arch_next_is_symbol(p, "["))
        return parse_weight(p);
    if (llm_arch_next_is_symbol(p, "=") || llm_arch_next_is_symbol(p, ","))
        return parse_assign(p);
    return unknown_stmt(p);
}

/* ":" ( statement | NEWLINE INDENT { statement } DEDENT ) */
static arch_stmt *parse_block(arch_parser *p, bool top) {
    if (!llm_arch_expect(p, ":", "before a block"))
        return NULL;
    if (p->n_blocks == ARCH_MAX_NESTING)
        return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                      "blocks are nested more than %d deep", ARCH_MAX_NESTING);
    p->n_blocks++;
    if (p->tok->kind != TOK_NEWLINE) { /* a statement in the same line */
        arch_stmt *s = parse_stmt(p, top);
        p->n_blocks--;
        return s;
    }
    p->tok++;
    if (p->tok->kind != TOK_INDENT)
        return llm_arch_parse_fail(p, "an indented block is expected after ':'");
    p->tok++;
    arch_stmt *first = NULL, **end = &first;
    while (p->tok->kind != TOK_DEDENT) {
        if (!(*end = parse_stmt(p, top)))
            return NULL;
        end = &(*end)->next;
    }
    p->tok++;
    p->n_blocks--;
    return first;
}

/* --- functions -------------------------------------------------------------------------------- */

static bool parse_params(arch_parser *p, arch_fn *fn) {
    arch_param param[ARCH_MAX_ARGS];
    int n = 0;
    while (!llm_arch_is(p, ")")) {
        arch_target t;
        if (n == ARCH_MAX_ARGS)
            return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                          "more than %d parameters", ARCH_MAX_ARGS);
        if (!parse_target(p, &t))
            return false;
        for (int k = 0; k < n; k++)
            if (strcmp(param[k].name, t.name) == 0)
                return llm_arch_parse_fail_at(p, GGL_FORMAT, t.place,
                                              "two parameters are called '%s'", t.name);
        param[n] = (arch_param){.name = t.name, .place = t.place};
        if (llm_arch_accept(p, "=") && !(param[n].fallback = llm_arch_parse_expr(p)))
            return false;
        if (n > 0 && param[n - 1].fallback && !param[n].fallback)
            return llm_arch_parse_fail_at(
                p, GGL_FORMAT, t.place,
                "parameters without a default must come before those with one");
        n++;
        if (!llm_arch_is(p, ")") && !llm_arch_expect(p, ",", "or ')' between parameters"))
            return false;
    }
    p->tok++;
    fn->n_param = n;
    fn->param = llm_arch_parse_alloc(p, (size_t)n, sizeof *fn->param);
    if (fn->param)
        memcpy(fn->param, param, (size_t)n * sizeof *param);
    return fn->param != NULL;
}

static arch_stmt *parse_fn_body(arch_parser *p) {
    if (!llm_arch_is(p, "="))
        return parse_block(p, false);
    arch_stmt *s = llm_arch_new_stmt(p, ST_RETURN);
    p->tok++;
    if (s)
        s->place = llm_arch_token_place(p, p->tok);
    return s && llm_arch_one_expr(p, s) && llm_arch_end_of_line(p) ? s : NULL;
}

static bool check_fn_name(arch_parser *p, const arch_fn *fn) {
    const char *name = fn->name;
    if (llm_arch_is_reserved(name) || strcmp(name, "key") == 0 ||
        llm_arch_find_builtin(name) < FN_BUILTIN_COUNT ||
        (ggl_op_find(name) < GGL_OP_COUNT && ggl_op_get(ggl_op_find(name)).callable))
        return llm_arch_parse_fail_at(p, GGL_FORMAT, fn->place,
                                      "'%s' is built in: the function needs another name", name);
    const arch_fn *other = llm_arch_find_fn(p->arch, p->text, name);
    if (other && other->text == p->text) {
        int line, col;
        llm_arch_line_col(other->place, &line, &col);
        return llm_arch_parse_fail_at(p, GGL_FORMAT, fn->place,
                                      "function '%s' already exists, in line %d", name, line);
    }
    return true;
}

/* ("def" | "op") NAME "(" .. ")" ("=" expr | block) */
static bool parse_fn(arch_parser *p) {
    arch_fn *fn = llm_arch_parse_alloc(p, 1, sizeof *fn);
    if (!fn)
        return false;
    if (p->n_fns++ == ARCH_MAX_NAMES)
        return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                      "more than %d functions", ARCH_MAX_NAMES);
    fn->op = llm_arch_is(p, "op");
    fn->text = p->text;
    p->tok++;
    fn->name = p->tok->str;
    fn->place = llm_arch_token_place(p, p->tok++);
    if (!check_fn_name(p, fn) || !llm_arch_expect(p, "(", "after the name of a function"))
        return false;
    p->in_fn = fn->name;
    p->saw_state = false;
    bool ok = parse_params(p, fn) && (fn->body = parse_fn_body(p)) != NULL;
    fn->recurrent = p->saw_state;
    p->in_fn = NULL;
    arch_fn **list = p->text->prelude ? &p->arch->prelude_fn : &p->arch->fn;
    fn->next = *list; /* only now: a function cannot call itself */
    *list = fn;
    return ok;
}

/* --- the text --------------------------------------------------------------------------------- */

static bool parse_families(arch_parser *p) {
    llm_arch *a = p->arch;
    arch_place place[ARCH_MAX_ARGS];
    if (!llm_arch_is(p, "arch") ||
        !(llm_arch_next_is(p, TOK_NAME) || llm_arch_next_is(p, TOK_STRING)))
        return llm_arch_parse_fail(
            p, "a descriptor must begin with 'arch NAME': its value of general.architecture");
    p->tok++;
    if (!(a->family = llm_arch_parse_names(p, &a->n_family, place)) || !llm_arch_end_of_line(p))
        return false;
    if (!(a->family_place = llm_arch_parse_alloc(p, (size_t)a->n_family, sizeof *place)))
        return false;
    memcpy(a->family_place, place, (size_t)a->n_family * sizeof *place);
    if (!(a->key_family = llm_arch_parse_alloc(p, (size_t)a->n_family, sizeof *a->key_family)))
        return false;
    for (int k = 0; k < a->n_family; k++) {
        const size_t n = strcspn(a->family[k], ":");
        char *name = llm_arch_parse_alloc(p, n + 1, 1);
        if (!name)
            return false;
        memcpy(name, a->family[k], n);
        name[n] = 0;
        a->key_family[k] = name;
    }
    return true;
}

static bool parse_header(arch_parser *p) {
    if (!parse_families(p))
        return false;
    if (!llm_arch_is(p, "language") || !llm_arch_next_is(p, TOK_NUMBER))
        return llm_arch_parse_fail(
            p, "'language %d' is expected: the version that the descriptor is written in",
            LLM_ARCH_LANGUAGE);
    double version = p->tok[1].num;
    if (version < 1 || version != floor(version))
        return llm_arch_parse_fail_at(p, GGL_FORMAT, llm_arch_token_place(p, p->tok + 1),
                                      "the version must be a whole number of at least 1");
    if (version > LLM_ARCH_LANGUAGE)
        return llm_arch_parse_fail_at(
            p, GGL_UNSUPPORTED, llm_arch_token_place(p, p->tok + 1),
            "language %.0f is newer than this engine, which knows languages 1 to %d", version,
            LLM_ARCH_LANGUAGE);
    p->arch->language = (int)version;
    p->tok += 2;
    return llm_arch_end_of_line(p);
}

static bool parse_top(arch_parser *p) {
    arch_stmt **end = &p->arch->body;
    if (!p->text->prelude && !parse_header(p))
        return false;
    while (p->tok->kind != TOK_END) {
        if ((llm_arch_is(p, "def") || llm_arch_is(p, "op")) && llm_arch_next_is(p, TOK_NAME)) {
            if (!parse_fn(p))
                return false;
        } else if (llm_arch_is(p, "convert") &&
                   (llm_arch_next_is(p, TOK_NAME) || llm_arch_next_is(p, TOK_STRING))) {
            if (!llm_arch_parse_convert(p))
                return false;
        } else if (llm_arch_at_fused(p)) {
            if (!llm_arch_parse_fused(p))
                return false;
        } else {
            if (!(*end = parse_stmt(p, true)))
                return false;
            end = &(*end)->next;
        }
    }
    return true;
}

static bool parse_all(arch_parser *p) {
    return parse_top(p) && llm_arch_resolve_text(p);
}

static ggl_status parse_with(bool (*parse)(arch_parser *p), llm_arch *arch, const arch_text *text,
                             ggl_error *err) {
    arch_parser p = {.arch = arch, .text = text, .arena = &arch->arena, .err = err};
    arch_token *tok;
    ggl_status s = llm_arch_lex(text, p.arena, &tok, err);
    if (s != GGL_OK)
        return s;
    p.tok = tok;
    if (!parse(&p))
        return p.status != GGL_OK ? p.status
                                  : ggl_fail(err, GGL_NOMEM, "%s: out of memory", text->name);
    return GGL_OK;
}

ggl_status llm_arch_parse_text(llm_arch *arch, const arch_text *text, ggl_error *err) {
    return parse_with(parse_all, arch, text, err);
}

/* Returns where the text begins: after a byte order mark, which some editors write. */
static size_t arch_begin(const char *text, size_t n) {
    return n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

static int count_lines(const char *text, size_t n) {
    int lines = n > 0 && text[n - 1] != '\n';
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

ggl_status llm_arch_parse_header(llm_arch **out, const char *text, size_t n, const char *name,
                                 ggl_error *err) {
    *out = NULL;
    size_t at = arch_begin(text, n); /* start of the line `arch NAME, ..` */
    while (at < n && (n - at < 5 || memcmp(text + at, "arch ", 5) != 0)) {
        const char *end = memchr(text + at, '\n', n - at);
        at = end ? (size_t)(end - text) + 1 : n;
    }
    const char *end = at < n ? memchr(text + at, '\n', n - at) : NULL;
    llm_arch *a = ggl_calloc(1, sizeof *a);
    if (!a)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", name);
    a->arena.limit = ARCH_MAX_MEMORY;
    a->text = (arch_text){name, text + at, end ? (size_t)(end - text) - at : n - at, false};
    ggl_status s = parse_with(parse_families, a, &a->text, err);
    if (s == GGL_OK)
        *out = a;
    else
        llm_arch_free(a);
    return s;
}

ggl_status llm_arch_parse(llm_arch **out, const char *text, size_t n, const char *name,
                          ggl_error *err) {
    *out = NULL;
    llm_arch *a = ggl_calloc(1, sizeof *a);
    if (!a)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", name);
    a->arena.limit = ARCH_MAX_MEMORY;
    const size_t begin = arch_begin(text, n);
    text += begin;
    n -= begin;
    size_t prelude_n;
    const char *prelude = llm_arch_prelude_text(&prelude_n);
    a->prelude = (arch_text){"prelude.arch", prelude, prelude_n, true};
    a->text = (arch_text){ggl_arena_strndup(&a->arena, name, strlen(name)), NULL, n, false};
    /* A text that is too long is not copied: the lexer refuses it. */
    a->text.s = n <= ARCH_MAX_TEXT ? ggl_arena_strndup(&a->arena, text, n) : text;
    ggl_status s =
        a->text.name && a->text.s ? GGL_OK : ggl_fail(err, GGL_NOMEM, "%s: out of memory", name);
    if (s == GGL_OK)
        s = llm_arch_parse_text(a, &a->prelude, err);
    if (s == GGL_OK)
        s = llm_arch_parse_text(a, &a->text, err);
    if (s != GGL_OK) {
        llm_arch_free(a);
        return s;
    }
    a->n_lines = count_lines(text, n);
    *out = a;
    return GGL_OK;
}

void llm_arch_free(llm_arch *a) {
    if (!a)
        return;
    ggl_arena_fini(&a->arena);
    ggl_free(a->global);
    ggl_free(a);
}

const char *llm_arch_name(const llm_arch *a) {
    return a->text.name;
}
const char *llm_arch_family(const llm_arch *a, int k) {
    return k >= 0 && k < a->n_family ? a->family[k] : NULL;
}
bool llm_arch_has_output(const llm_arch *a, const char *name) {
    for (int k = 0; k < OUT_COUNT; k++)
        if (strcmp(llm_arch_output_names[k], name) == 0)
            return a->output[k] >= 0;
    return false;
}
bool llm_arch_sees_all(const llm_arch *a) {
    return a->n_stages > 0 && !a->has_tokens;
}
bool llm_arch_reads_text(const llm_arch *a) {
    return a->n_stages > 0 && a->has_tokens;
}

/* A stage may stand in an `if`. */
static const char *rows_stage_in(const llm_arch *a, const arch_stmt *s, int *k) {
    const char *found = NULL;
    for (; s && !found; s = s->next) {
        if (s->kind == ST_STAGE && s->of_rows &&
            (a->has_tokens || strcmp(s->target[0].name, a->last_stage->target[0].name) != 0) &&
            (*k)-- == 0)
            return s->target[0].name;
        for (int i = 0; s->kind == ST_IF && i < s->n_arm && !found; i++)
            found = rows_stage_in(a, s->arm[i].body, k);
    }
    return found;
}

static const char *rows_input_in(const arch_stmt *s) {
    const char *found = NULL;
    for (; s && !found; s = s->next) {
        if (s->kind == ST_INPUT && s->of_rows)
            return s->target[0].name;
        for (int i = 0; s->kind == ST_IF && i < s->n_arm && !found; i++)
            found = rows_input_in(s->arm[i].body);
    }
    return found;
}

const char *llm_arch_reads_rows(const llm_arch *a) {
    return a->last_stage && a->last_stage->of_rows ? rows_input_in(a->body) : NULL;
}

const char *llm_arch_rows_stage(const llm_arch *a, int k) {
    return rows_stage_in(a, a->body, &k);
}

const char *llm_arch_last_stage(const llm_arch *a) {
    return a->last_stage ? a->last_stage->target[0].name : NULL;
}

int llm_arch_n_lines(const llm_arch *a) {
    return a->n_lines;
}

const char *llm_arch_text(const llm_arch *a, size_t *n) {
    *n = a->text.n;
    return a->text.s;
}
