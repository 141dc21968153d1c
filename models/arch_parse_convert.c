/* Convert sections: tokens to lines. The grammar stands in docs/architectures.md. */
#include <string.h>

#include "arch_impl.h"

static bool parse_arrow(arch_parser *p) {
    const arch_token *t = p->tok;
    if (arch_is(p, "<") && arch_next_is_symbol(p, "-") && t[1].at == t->at + 1) {
        p->tok += 2;
        return true;
    }
    arch_parse_fail(p, "'<-' is expected: what is written <- what it comes from");
    return false;
}

/* "ignore" what "," ..: names of source tensors in quotes, values config.a.b */
static arch_mapping *parse_ignored(arch_parser *p) {
    arch_mapping *first = NULL, **end = &first;
    p->tok++;
    do {
        arch_mapping *m = *end = arch_parse_alloc(p, 1, sizeof *m);
        if (!m)
            return NULL;
        end = &m->next;
        *m = (arch_mapping){.kind = MAP_IGNORE, .place = arch_token_place(p, p->tok)};
        if (p->tok->kind == TOK_STRING) {
            m->name = p->tok->str;
            p->tok++;
        } else if (!arch_is(p, "config") || !arch_next_is_symbol(p, ".")) {
            return arch_parse_fail(
                p, "'ignore' takes names of source tensors in quotes, and values config.x");
        } else if (!(m->expr = arch_parse_expr(p))) {
            return NULL;
        } else if (m->expr->kind != EX_FIELD) {
            return arch_parse_fail_at(p, GGL_FORMAT, m->expr->place,
                                      "'ignore' takes values by their names alone: config.x");
        }
    } while (arch_accept(p, ","));
    return arch_end_of_line(p) ? first : NULL;
}

/* "use" NAME: the lines of the prelude's section of that name. */
static arch_mapping *parse_use(arch_parser *p) {
    arch_mapping *first = NULL, **end = &first;
    const arch_token *name = ++p->tok;
    const arch_convert *c = p->arch->prelude_convert;
    while (c && strcmp(c->name[0], name->str) != 0)
        c = c->next;
    if (!c)
        return arch_parse_fail(p, "the prelude has no lines '%s' to use", name->str);
    for (const arch_mapping *m = c->map; m; m = m->next) {
        arch_mapping *copy = *end = arch_parse_alloc(p, 1, sizeof *copy);
        if (!copy)
            return NULL;
        *copy = *m;
        copy->next = NULL;
        end = &copy->next;
    }
    p->tok++;
    return arch_end_of_line(p) ? first : NULL;
}

/* KEY "<-" expr | NAME "<-" expr | "require" expr ["," STRING] | "ignore" .. | "use" NAME */
static arch_mapping *parse_mapping(arch_parser *p) {
    if (arch_is(p, "ignore") && !arch_next_is_symbol(p, "<"))
        return parse_ignored(p);
    if (arch_is(p, "use") && arch_next_is(p, TOK_NAME))
        return parse_use(p);
    arch_mapping *m = arch_parse_alloc(p, 1, sizeof *m);
    if (!m)
        return NULL;
    m->place = arch_token_place(p, p->tok);
    m->name = p->tok->str;
    if (arch_is(p, "require")) {
        m->kind = MAP_REQUIRE;
        if ((m->require = arch_parse_require(p)))
            m->expr = m->require->expr[0];
        return m->expr ? m : NULL;
    }
    if (p->tok->kind != TOK_NAME && p->tok->kind != TOK_KEY)
        return arch_parse_fail(p,
                               "a key, a weight's name, 'require', 'ignore' or 'use' is expected");
    m->kind = p->tok->kind == TOK_KEY        ? MAP_KEY
              : strcmp(m->name, "arch") == 0 ? MAP_ARCH
                                             : MAP_WEIGHT;
    p->tok++;
    return parse_arrow(p) && (m->expr = arch_parse_expr(p)) && arch_end_of_line(p) ? m : NULL;
}

bool arch_parse_convert(arch_parser *p) {
    arch_convert *c = arch_parse_alloc(p, 1, sizeof *c);
    if (!c)
        return false;
    c->place = arch_token_place(p, p->tok++);
    if (!(c->name = arch_parse_names(p, &c->n_name, NULL)) ||
        !arch_expect(p, ":", "after the names of a convert section"))
        return false;
    if (p->tok->kind != TOK_NEWLINE || p->tok[1].kind != TOK_INDENT)
        return arch_parse_fail(p, "an indented block is expected after ':'");
    p->tok += 2;
    p->in_convert = true;
    arch_mapping **end = &c->map;
    while (p->tok->kind != TOK_DEDENT) {
        if (!(*end = parse_mapping(p)))
            return false;
        while (*end)
            end = &(*end)->next;
    }
    p->tok++;
    p->in_convert = false;
    arch_convert **list = p->text->prelude ? &p->arch->prelude_convert : &p->arch->convert;
    c->next = *list;
    *list = c;
    return true;
}
