/* Convert sections: turns tokens into lines. docs/architectures.md has the grammar. */
#include <string.h>

#include "language.h"

static bool parse_arrow(arch_parser *p) {
    const arch_token *t = p->tok;
    if (llm_arch_is(p, "<") && llm_arch_next_is_symbol(p, "-") && t[1].at == t->at + 1) {
        p->tok += 2;
        return true;
    }
    llm_arch_parse_fail(p, "'<-' is expected: TARGET <- SOURCE");
    return false;
}

/* The rest of "copy" STRING { "," STRING } "of" NAME. */
static bool parse_original(arch_parser *p, arch_mapping *list) {
    if (!llm_arch_is(p, "of") || !llm_arch_next_is(p, TOK_NAME))
        return llm_arch_parse_fail(p, "'of' and the name of a weight are expected: copy "
                                      "\"lm_head.weight\" of token_embd"),
               false;
    for (; list; list = list->next)
        list->other = p->tok[1].str;
    p->tok += 2;
    return true;
}

/* "ignore", "only" or "copy", item { "," item }: source tensors in quotes, or, but for "copy", values config.a.b. Returns a
 * list of lines. */
static arch_mapping *parse_listed(arch_parser *p, arch_map_kind kind) {
    arch_mapping *first = NULL, **end = &first;
    const char *word = p->tok->str;
    p->tok++;
    do {
        arch_mapping *m = *end = llm_arch_parse_alloc(p, 1, sizeof *m);
        if (!m)
            return NULL;
        end = &m->next;
        *m = (arch_mapping){.kind = kind, .place = llm_arch_token_place(p, p->tok)};
        if (p->tok->kind == TOK_STRING) {
            m->name = p->tok->str;
            p->tok++;
        } else if (kind == MAP_COPY) {
            return llm_arch_parse_fail(p, "'copy' needs names of source tensors in quotes");
        } else if (!llm_arch_is(p, "config") || !llm_arch_next_is_symbol(p, ".")) {
            return llm_arch_parse_fail(
                p, "'%s' needs names of source tensors in quotes, or values config.x", word);
        } else if (!(m->expr = llm_arch_parse_expr(p))) {
            return NULL;
        } else if (m->expr->kind != EX_FIELD) {
            return llm_arch_parse_fail_at(p, GGL_FORMAT, m->expr->place,
                                          "'%s' needs plain names of values: config.x", word);
        }
    } while (llm_arch_accept(p, ","));
    const bool whole = kind != MAP_COPY || parse_original(p, first);
    return whole && llm_arch_end_of_line(p) ? first : NULL;
}

/* "use" NAME: returns copies of the lines in the prelude's section of that name. */
static arch_mapping *parse_use(arch_parser *p) {
    arch_mapping *first = NULL, **end = &first;
    const arch_token *name = ++p->tok;
    const arch_convert *c = p->arch->prelude_convert;
    while (c && strcmp(c->name[0], name->str) != 0)
        c = c->next;
    if (!c)
        return llm_arch_parse_fail(p, "the prelude has no lines named '%s'", name->str);
    for (const arch_mapping *m = c->map; m; m = m->next) {
        arch_mapping *copy = *end = llm_arch_parse_alloc(p, 1, sizeof *copy);
        if (!copy)
            return NULL;
        *copy = *m;
        copy->next = NULL;
        end = &copy->next;
    }
    p->tok++;
    return llm_arch_end_of_line(p) ? first : NULL;
}

/* "prefix" STRING "??" STRING ..: returns a line for each string after "??". */
static arch_mapping *parse_prefix(arch_parser *p) {
    arch_mapping *first = NULL, **end = &first;
    const char *name = p->tok[1].str;
    p->tok += 2;
    while (llm_arch_accept(p, "?\?")) {
        arch_mapping *m = *end = llm_arch_parse_alloc(p, 1, sizeof *m);
        if (!m)
            return NULL;
        end = &m->next;
        *m = (arch_mapping){.kind = MAP_PREFIX,
                            .place = llm_arch_token_place(p, p->tok),
                            .name = name,
                            .other = p->tok->str};
        if (p->tok->kind != TOK_STRING)
            break;
        p->tok++;
    }
    if (!first || p->tok[-1].kind != TOK_STRING)
        return llm_arch_parse_fail(
            p,
            "'prefix' needs beginnings of names: prefix \"model.\" ?\? \"language_model.model.\"");
    return llm_arch_end_of_line(p) ? first : NULL;
}

/* "within" config.x */
static arch_mapping *parse_within(arch_parser *p, arch_mapping *m) {
    m->kind = MAP_WITHIN;
    p->tok++;
    if (!(m->expr = llm_arch_parse_expr(p)))
        return NULL;
    if (m->expr->kind != EX_FIELD)
        return llm_arch_parse_fail_at(p, GGL_FORMAT, m->expr->place,
                                      "'within' needs an object of config.json: config.x");
    return llm_arch_end_of_line(p) ? m : NULL;
}

const char *const llm_arch_sound_arguments[SOUND_ARGUMENTS] = {
    "rate", "step", "window", "fft", "seconds", "emphasis", "bands"};

/* "agree" STRING "," expr */
static arch_mapping *parse_agree(arch_parser *p, arch_mapping *m) {
    m->kind = MAP_AGREE;
    m->name = (++p->tok)->str;
    while (m->argument < SOUND_ARGUMENTS &&
           strcmp(llm_arch_sound_arguments[m->argument], m->name) != 0)
        m->argument++;
    if (m->argument == SOUND_ARGUMENTS)
        return llm_arch_parse_fail(p, "'agree' needs what sound has: \"rate\", \"step\", "
                                      "\"window\", \"fft\", \"seconds\", \"emphasis\" or "
                                      "\"bands\"");
    p->tok++;
    return llm_arch_expect(p, ",", "after the name") && (m->expr = llm_arch_parse_expr(p)) &&
                   llm_arch_end_of_line(p)
               ? m
               : NULL;
}

/* "folder" STRING: a plain name, as it begins names of values and tensors */
static arch_mapping *parse_folder(arch_parser *p, arch_mapping *m) {
    m->kind = MAP_FOLDER;
    m->name = (++p->tok)->str;
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const size_t n = strlen(m->name);
    if (n == 0 || n >= ARCH_MAX_NAME || strspn(m->name, plain) < n)
        return llm_arch_parse_fail(p, "'folder' needs the name of a folder in the folder, of "
                                      "letters, digits and '_'");
    static const char file[] = "/config.json";
    char *path = llm_arch_parse_alloc(p, n + sizeof file, 1);
    if (!path)
        return NULL;
    memcpy(path, m->name, n);
    memcpy(path + n, file, sizeof file);
    m->other = path;
    p->tok++;
    return llm_arch_end_of_line(p) ? m : NULL;
}

/* "require" or "note" expr "," STRING */
static arch_mapping *parse_condition(arch_parser *p, arch_mapping *m, arch_map_kind kind) {
    m->kind = kind;
    if (!(m->require = llm_arch_parse_require(p)))
        return NULL;
    m->expr = m->require->expr[0];
    if (kind == MAP_NOTE && !m->require->string)
        return llm_arch_parse_fail_at(p, GGL_FORMAT, m->place,
                                      "a 'note' needs a text: note condition, \"text\"");
    return m;
}

/* The rest of a weight's name after "NAME .": "bias" | NAME [ "." "bias" ]. In the second form the
 * first name is the prefix of the weight. */
static bool parse_weight(arch_parser *p, arch_mapping *m) {
    if (p->tok->kind == TOK_NAME && !llm_arch_is(p, "bias")) {
        const size_t n = strlen(m->name);
        char *prefix = llm_arch_parse_alloc(p, n + 2, 1);
        if (!prefix)
            return false;
        memcpy(prefix, m->name, n);
        prefix[n] = '.';
        m->other = prefix;
        m->name = p->tok->str;
        p->tok++;
        if (!llm_arch_accept(p, "."))
            return true;
    }
    m->bias = true;
    if (!llm_arch_is(p, "bias"))
        return llm_arch_parse_fail(p, "'bias' is expected after the weight's name and '.'");
    p->tok++;
    return true;
}

/* The left side of "<-": KEY | ( "key" | "tensor" ) "(" STRING ")" | [ NAME "." ] NAME [ ".bias" ] */
static bool parse_made(arch_parser *p, arch_mapping *m) {
    if (llm_arch_is(p, "tensor") && llm_arch_next_is_symbol(p, "(")) {
        p->tok += 2;
        if (p->tok->kind != TOK_STRING)
            return llm_arch_parse_fail(p, "'tensor' needs a full name in quotes: tensor(\"v.x\")");
        m->kind = MAP_TENSOR;
        m->name = p->tok->str;
        p->tok++;
        return llm_arch_expect(p, ")", "after the tensor's name");
    }
    if (llm_arch_is(p, "key") && llm_arch_next_is_symbol(p, "(")) {
        const arch_expr *e = llm_arch_parse_atom(p);
        m->kind = MAP_KEY;
        m->name = e ? e->name : NULL;
        m->whole = true;
        return e != NULL;
    }
    if (p->tok->kind != TOK_NAME && p->tok->kind != TOK_KEY)
        return llm_arch_parse_fail(
            p,
            "a key, a weight's name, 'require', 'note', 'ignore', 'only', 'copy', 'use', 'within', "
            "'agree', 'folder' or 'prefix' is expected");
    m->kind = p->tok->kind == TOK_KEY        ? MAP_KEY
              : strcmp(m->name, "arch") == 0 ? MAP_ARCH
                                             : MAP_WEIGHT;
    p->tok++;
    return m->kind != MAP_WEIGHT || !llm_arch_accept(p, ".") || parse_weight(p, m);
}

/* what "<-" expr | "require" .. | "note" .. | "ignore" .. | "only" .. | "copy" .. | "use" NAME | "within" config.x | "agree" STRING "," expr |
 * "folder" STRING | "prefix" .. */
static arch_mapping *parse_mapping(arch_parser *p) {
    const bool name_next = !llm_arch_next_is_symbol(p, "<") && !llm_arch_next_is_symbol(p, ".");
    if (llm_arch_is(p, "ignore") && name_next)
        return parse_listed(p, MAP_IGNORE);
    if (llm_arch_is(p, "only") && name_next)
        return parse_listed(p, MAP_ONLY);
    if (llm_arch_is(p, "copy") && llm_arch_next_is(p, TOK_STRING))
        return parse_listed(p, MAP_COPY);
    if (llm_arch_is(p, "use") && llm_arch_next_is(p, TOK_NAME))
        return parse_use(p);
    if (llm_arch_is(p, "prefix") && llm_arch_next_is(p, TOK_STRING))
        return parse_prefix(p);
    arch_mapping *m = llm_arch_parse_alloc(p, 1, sizeof *m);
    if (!m)
        return NULL;
    m->place = llm_arch_token_place(p, p->tok);
    m->name = p->tok->str;
    if (llm_arch_is(p, "require") || (llm_arch_is(p, "note") && name_next))
        return parse_condition(p, m, llm_arch_is(p, "require") ? MAP_REQUIRE : MAP_NOTE);
    if (llm_arch_is(p, "agree") && llm_arch_next_is(p, TOK_STRING))
        return parse_agree(p, m);
    if (llm_arch_is(p, "folder") && llm_arch_next_is(p, TOK_STRING))
        return parse_folder(p, m);
    if (llm_arch_is(p, "within") && name_next)
        return parse_within(p, m);
    return parse_made(p, m) && parse_arrow(p) && (m->expr = llm_arch_parse_expr(p)) &&
                   llm_arch_end_of_line(p)
               ? m
               : NULL;
}

bool llm_arch_parse_convert(arch_parser *p) {
    arch_convert *c = llm_arch_parse_alloc(p, 1, sizeof *c);
    if (!c)
        return false;
    c->place = llm_arch_token_place(p, p->tok++);
    p->in_convert = true;
    if (!(c->name = llm_arch_parse_names(p, &c->n_name, NULL)) ||
        (llm_arch_accept(p, "if") && !(c->cond = llm_arch_parse_expr(p))) ||
        !llm_arch_expect(p, ":", "after the names of a convert section"))
        return false;
    if (p->tok->kind != TOK_NEWLINE || p->tok[1].kind != TOK_INDENT)
        return llm_arch_parse_fail(p, "an indented block is expected after ':'");
    p->tok += 2;
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
