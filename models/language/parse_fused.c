/* Parses `attn_q, attn_k, attn_v from "attn_qkv"`: these declared tensors may be one tensor in a
 * file. compile/fused.c uses the lines. */
#include <string.h>

#include "language.h"

bool llm_arch_at_fused(const arch_parser *p) {
    const arch_token *t = p->tok;
    while (t->kind == TOK_NAME && t[1].kind == TOK_SYMBOL && strcmp(t[1].str, ",") == 0)
        t += 2;
    return t->kind == TOK_NAME && t[1].kind == TOK_NAME && strcmp(t[1].str, "from") == 0;
}

/* True for a name like "attn_qkv": a tensor's name without "blk.{l}." and ".weight". */
static bool is_stem(const char *s) {
    const size_t n = strlen(s);
    return n > 0 && n <= ARCH_MAX_NAME && strncmp(s, "blk.", 4) != 0 && !strpbrk(s, "{}*") &&
           !(n > 7 && strcmp(s + n - 7, ".weight") == 0) &&
           !(n > 5 && strcmp(s + n - 5, ".bias") == 0);
}

static bool parse_parts(arch_parser *p, arch_fused *f) {
    const char *part[ARCH_MAX_ARGS];
    arch_place place[ARCH_MAX_ARGS];
    int n = 0;
    do {
        const arch_place here = llm_arch_token_place(p, p->tok);
        if (n == ARCH_MAX_ARGS)
            return llm_arch_parse_fail_at(p, GGL_LIMIT, here, "more than %d names", ARCH_MAX_ARGS);
        if (llm_arch_is_reserved(p->tok->str))
            return llm_arch_parse_fail(p, "a weight's name is expected, not '%s'", p->tok->str);
        for (int k = 0; k < n; k++)
            if (strcmp(part[k], p->tok->str) == 0)
                return llm_arch_parse_fail(p, "'%s' occurs twice in one tensor", p->tok->str);
        place[n] = here;
        part[n++] = p->tok++->str;
    } while (llm_arch_accept(p, ","));
    f->n_part = n;
    f->part = llm_arch_parse_copy(p, part, n, sizeof *part);
    f->part_place = llm_arch_parse_copy(p, place, n, sizeof *place);
    return f->part && f->part_place;
}

bool llm_arch_parse_fused(arch_parser *p) {
    arch_fused *f = llm_arch_parse_alloc(p, 1, sizeof *f);
    int n = 0;
    for (const arch_fused *x = p->arch->fused; x; x = x->next)
        n += x->place.text == p->text;
    if (n == ARCH_MAX_ARGS)
        return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                      "more than %d lines of this kind", ARCH_MAX_ARGS);
    const arch_token *first = p->tok;
    if (!f || !parse_parts(p, f))
        return false;
    if (f->n_part == 1)
        return llm_arch_parse_fail_at(p, GGL_FORMAT, f->part_place[0],
                                      "several names are expected before 'from': for a weight that "
                                      "is a whole tensor, write NAME [shape] from \"full.name\"");
    p->tok++;
    if (p->tok->kind != TOK_STRING)
        return llm_arch_parse_fail_at(
            p, GGL_FORMAT, llm_arch_token_place(p, p->tok - 1),
            "the name of the tensor that contains them must be in quotes: a, b from \"NAME\"");
    f->whole = p->tok->str;
    f->place = (arch_place){p->text, first->at, p->tok->at + p->tok->n - first->at};
    if (!is_stem(f->whole))
        return llm_arch_parse_fail(
            p, "write the tensor's name like a weight's, without 'blk.{l}.' and '.weight'");
    for (int k = 0; k < f->n_part; k++)
        if (strcmp(f->part[k], f->whole) == 0)
            return llm_arch_parse_fail_at(p, GGL_FORMAT, f->part_place[k],
                                          "'%s' cannot be a part of itself", f->whole);
    p->tok++;
    /* the prelude was parsed first, so the descriptor's lines come before its lines */
    f->next = p->arch->fused;
    p->arch->fused = f;
    return llm_arch_end_of_line(p);
}
