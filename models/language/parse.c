/* Statements. docs/architectures.md has the grammar; each of its rules is a function here or in the other
 * files parse_*.c.
 *
 * Few words are reserved. Words like `keep` and `layer` begin a statement only if the next tokens
 * fit, so they can be names elsewhere. */
#include <string.h>

#include "language.h"

/* --- names assigned to ------------------------------------------------------------------------ */

bool llm_arch_parse_target(arch_parser *p, arch_target *t) {
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
        if (!llm_arch_parse_target(p, &target[n]))
            return false;
        for (int k = 0; k < n; k++)
            if (strcmp(target[k].name, target[n].name) == 0)
                return llm_arch_parse_fail_at(p, GGL_FORMAT, target[n].place,
                                              "'%s' occurs twice on the left of '='",
                                              target[n].name);
        n++;
    } while (max > 1 && llm_arch_accept(p, ","));
    s->n_target = n;
    s->target = llm_arch_parse_copy(p, target, n, sizeof *target);
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
        if (!(arm[n].body = llm_arch_parse_block(p, top)))
            return NULL;
    }
    if (!s || !(s->arm = llm_arch_parse_copy(p, arm, n, sizeof *arm)))
        return NULL;
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
    s->arm[0].body = llm_arch_parse_block(p, false);
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

/* ( "layer" | "block" ) NAME "<" expr [ "," "first" "=" expr ], after the first word; the option is for blocks */
static bool parse_layers_over(arch_parser *p, arch_stmt *s) {
    arch_target *both = llm_arch_parse_alloc(p, 2, sizeof *both);
    arch_expr **expr = llm_arch_parse_alloc(p, 2, sizeof *expr);
    if (!both || !expr)
        return false;
    both[0] = s->target[0];
    expr[0] = s->expr[0];
    if (!llm_arch_parse_target(p, &both[1]) ||
        !llm_arch_expect(p, "<",
                         s->in_block ? "after the name that says whether an element is guessed"
                                     : "after the name of the layer's number") ||
        !(expr[1] = llm_arch_parse_expr(p)))
        return false;
    s->target = both;
    s->expr = expr;
    s->n_target = s->n_expr = 2;
    if (!s->in_block || !llm_arch_accept(p, ","))
        return true;
    return parse_option(p, "first") && (s->other = llm_arch_parse_expr(p));
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

/* NAME "=" expr, of the names below, in any order: options of a stage over rows, in s->expr[1 ..] */
static bool parse_row_options(arch_parser *p, arch_stmt *s) {
    enum { N = ARCH_ROW_OPTIONS };
    static const char *const name[N] = {"every", "from",   "count", "windows", "block", "beyond",
                                        "ends",  "filled", "step",  "asks",    "causal"};
    char buf[96];
    bool seen[N] = {false};
    if (!llm_arch_accept(p, "("))
        return true;
    do {
        int k = 0;
        while (k < N && !llm_arch_is(p, name[k]))
            k++;
        if (k == N || seen[k])
            return llm_arch_parse_fail(
                       p,
                       "options of 'over' rows are 'every = N', 'from = N', "
                       "'count = N', 'windows = N', 'block = N', 'beyond = 1', 'ends = 1', "
                       "'filled = 1', 'step = N', 'asks = 1' and 'causal = 1', "
                       "each once, not %s",
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
    s->n_expr = 1 + ARCH_ROW_OPTIONS;
    s->expr = llm_arch_parse_alloc(p, 1 + ARCH_ROW_OPTIONS, sizeof *s->expr);
    if (!s->expr || !(s->expr[0] = llm_arch_parse_name(p)))
        return false;
    for (int k = 1; k < s->n_expr; k++) /* `every` is 1 if not given, all others 0 */
        if (!(s->expr[k] = number_expr(p, k == 1)))
            return false;
    return parse_row_options(p, s);
}

/* "over" NAME "(" "ahead" "=" ( "1" | NAME "+" "1" ) [ "," "from" "=" "1" ] [ "," "stay" "=" "1" ] [ "," ( "layer" NAME "<" expr | "block" NAME "<" expr [ "," "first" "=" expr ] ) ] ")" */
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
        if (!llm_arch_parse_target(p, &counted) ||
            !llm_arch_expect(p, "+", "after the number of a layer"))
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
    s->arm[0].body = llm_arch_parse_block(p, true);
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
    if (!llm_arch_is(p, "floats") && !llm_arch_is(p, "sound") && !llm_arch_is(p, "samples") &&
        !llm_arch_is(p, "picture") && !llm_arch_is(p, "tiles"))
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
    s->expr = llm_arch_parse_copy(p, list, s->n_expr, sizeof *list);
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

arch_stmt *llm_arch_parse_stmt(arch_parser *p, bool top) {
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
arch_stmt *llm_arch_parse_block(arch_parser *p, bool top) {
    if (!llm_arch_expect(p, ":", "before a block"))
        return NULL;
    if (p->n_blocks == ARCH_MAX_NESTING)
        return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                      "blocks are nested more than %d deep", ARCH_MAX_NESTING);
    p->n_blocks++;
    if (p->tok->kind != TOK_NEWLINE) { /* a statement in the same line */
        arch_stmt *s = llm_arch_parse_stmt(p, top);
        p->n_blocks--;
        return s;
    }
    p->tok++;
    if (p->tok->kind != TOK_INDENT)
        return llm_arch_parse_fail(p, "an indented block is expected after ':'");
    p->tok++;
    arch_stmt *first = NULL, **end = &first;
    while (p->tok->kind != TOK_DEDENT) {
        if (!(*end = llm_arch_parse_stmt(p, top)))
            return NULL;
        end = &(*end)->next;
    }
    p->tok++;
    p->n_blocks--;
    return first;
}
