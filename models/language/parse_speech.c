/* Speech sections: how a model that hears is asked to write down what is said. docs/architectures.md has the grammar. */
#include <string.h>

#include "language.h"

/* Each is tried, in turn, when a sound comes. */
enum { MOST_SECTIONS = 64 };

/* STRING | "(" STRING { STRING } ")": strings in brackets, which may be in several lines, are one text. */
static const char *parse_text(arch_parser *p) {
    const bool in_brackets = llm_arch_accept(p, "(");
    size_t n = 0, n_strings = 0;
    while (p->tok[n_strings].kind == TOK_STRING && (in_brackets || n_strings == 0))
        n += strlen(p->tok[n_strings++].str);
    if (n_strings == 0)
        return llm_arch_parse_fail(p, "a text in quotes is expected");
    char *text = llm_arch_parse_alloc(p, n + 1, 1), *end = text;
    for (; text && n_strings > 0; n_strings--, p->tok++) {
        const size_t more = strlen(p->tok->str);
        memcpy(end, p->tok->str, more + 1);
        end += more;
    }
    return text && in_brackets && !llm_arch_expect(p, ")", "after the strings of a text") ? NULL
                                                                                          : text;
}

/* NAME STRING .. | "longest" NUMBER | "before" STRING { "," STRING } */
static bool parse_item(arch_parser *p, llm_arch_speech *s) {
    const struct {
        const char *name;
        const char **to;
    } text[] = {{"prompt", &s->prompt}, {"system", &s->system}, {"user", &s->user},
                {"answer", &s->answer}, {"after", &s->after},   {"names", &s->names}};
    const arch_token *name = p->tok;
    if (llm_arch_is(p, "longest") && llm_arch_next_is(p, TOK_NUMBER)) {
        s->longest = p->tok[1].num;
        if (!(s->longest >= 1 && s->longest <= 7200))
            return llm_arch_parse_fail(p, "the longest sound must have 1 to 7200 seconds");
        p->tok += 2;
        return llm_arch_end_of_line(p);
    }
    if (llm_arch_is(p, "before") && llm_arch_next_is(p, TOK_STRING)) {
        p->tok++;
        s->before = llm_arch_parse_names(p, &s->n_before, NULL);
        return s->before && llm_arch_end_of_line(p);
    }
    for (size_t k = 0; name->kind == TOK_NAME && k < sizeof text / sizeof *text; k++)
        if (strcmp(name->str, text[k].name) == 0) {
            if (*text[k].to)
                return llm_arch_parse_fail(p, "'%s' stands here twice", name->str);
            p->tok++;
            return (*text[k].to = parse_text(p)) && llm_arch_end_of_line(p);
        }
    return llm_arch_parse_fail(p, "'prompt', 'system', 'user', 'answer', 'after', 'names', "
                                  "'before' or 'longest' is expected");
}

static bool check_whole(arch_parser *p, const llm_arch_speech *s, arch_place place) {
    if (!s->prompt == !s->user || (s->prompt && s->system))
        return llm_arch_parse_fail_at(p, GGL_FORMAT, place,
                                      "a speech section has either 'prompt', the whole text, or "
                                      "'user', a message, and may have 'system' beside that");
    if (s->names && !s->after)
        return llm_arch_parse_fail_at(p, GGL_FORMAT, place,
                                      "'names' is about the text before 'after', which is missing");
    return true;
}

bool llm_arch_parse_speech(arch_parser *p) {
    llm_arch_speech **end = p->text->prelude ? &p->arch->prelude_speech : &p->arch->speech;
    int n = 1;
    for (; *end; end = &(*end)->next)
        n++;
    if (n > MOST_SECTIONS)
        return llm_arch_parse_fail_at(p, GGL_LIMIT, llm_arch_token_place(p, p->tok),
                                      "more than %d speech sections", MOST_SECTIONS);
    llm_arch_speech *s = llm_arch_parse_alloc(p, 1, sizeof *s);
    if (!s)
        return false;
    const arch_place place = llm_arch_token_place(p, p->tok++);
    s->longest = LLM_ARCH_SPEECH_SECONDS;
    if (p->tok->kind == TOK_STRING && !(s->token = llm_arch_parse_names(p, &s->n_token, NULL)))
        return false;
    if (!llm_arch_expect(p, ":", "before the lines of a speech section"))
        return false;
    if (p->tok->kind != TOK_NEWLINE || p->tok[1].kind != TOK_INDENT)
        return llm_arch_parse_fail(p, "an indented block is expected after ':'");
    p->tok += 2;
    while (p->tok->kind != TOK_DEDENT)
        if (!parse_item(p, s))
            return false;
    p->tok++;
    *end = s;
    return check_whole(p, s, place);
}

const llm_arch_speech *llm_arch_speech_first(const llm_arch *a) {
    return a->speech ? a->speech : a->prelude_speech;
}

const llm_arch_speech *llm_arch_speech_next(const llm_arch *a, const llm_arch_speech *s) {
    if (s->next)
        return s->next;
    for (const llm_arch_speech *own = a->speech; own; own = own->next)
        if (own == s)
            return a->prelude_speech;
    return NULL;
}
