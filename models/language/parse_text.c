/* A whole text: its header, functions and statements, after the prelude (llm_arch_parse). */
#include <math.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "language.h"

/* --- functions -------------------------------------------------------------------------------- */

static bool parse_params(arch_parser *p, arch_fn *fn) {
    arch_param param[ARCH_MAX_ARGS];
    int n = 0;
    while (!llm_arch_is(p, ")")) {
        arch_target t;
        if (n == ARCH_MAX_ARGS)
            return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                          "more than %d parameters", ARCH_MAX_ARGS);
        if (!llm_arch_parse_target(p, &t))
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
    fn->param = llm_arch_parse_copy(p, param, n, sizeof *param);
    return fn->param != NULL;
}

static arch_stmt *parse_fn_body(arch_parser *p) {
    if (!llm_arch_is(p, "="))
        return llm_arch_parse_block(p, false);
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
    if (!(a->family_place = llm_arch_parse_copy(p, place, a->n_family, sizeof *place)))
        return false;
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
        } else if (llm_arch_is(p, "speech") &&
                   (llm_arch_next_is(p, TOK_STRING) || llm_arch_next_is_symbol(p, ":"))) {
            if (!llm_arch_parse_speech(p))
                return false;
        } else if (llm_arch_at_fused(p)) {
            if (!llm_arch_parse_fused(p))
                return false;
        } else {
            if (!(*end = llm_arch_parse_stmt(p, true)))
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
