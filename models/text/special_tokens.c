/* The automaton reads the text backward, so that at each byte it finds the tokens that begin
 * there, reading each byte once. Trying tokens from left to right could read far in vain again
 * and again: tokens "a" and "aa..ab" in "aaa..". */
#include "special_tokens.h"

#include "ggl/internal/alloc.h"

ggl_status llm_special_init(special_tokens *x, ggl_error *err) {
    *x = (special_tokens){0};
    ggl_status s = llm_automaton_init(&x->all, err);
    return s == GGL_OK ? llm_automaton_init(&x->user, err) : s;
}

void llm_special_fini(special_tokens *x) {
    llm_automaton_fini(&x->all);
    llm_automaton_fini(&x->user);
}

ggl_status llm_special_add(special_tokens *x, ggl_str spelling, int32_t id, bool user_defined,
                           ggl_error *err) {
    bool added;
    ggl_status s = llm_automaton_add(&x->all, spelling, id, true, &added, err);
    if (s == GGL_OK && added && user_defined)
        s = llm_automaton_add(&x->user, spelling, id, true, NULL, err);
    return s;
}

ggl_status llm_special_finish(special_tokens *x, ggl_error *err) {
    ggl_status s = llm_automaton_finish(&x->all, err);
    return s == GGL_OK ? llm_automaton_finish(&x->user, err) : s;
}

ggl_status llm_special_find(const special_tokens *x, const char *text, size_t n, bool user_only,
                            special_match **out, size_t *n_out, ggl_error *err) {
    const automaton *tokens = user_only ? &x->user : &x->all;
    size_t cap = 0;
    int32_t state = 0;
    *out = NULL;
    *n_out = 0;
    for (size_t i = n; i-- > 0;) {
        state = llm_automaton_step(tokens, state, (unsigned char)text[i]);
        int32_t found = tokens->node[state].found;
        if (found == 0)
            continue;
        if (*n_out == cap && !ggl_grow(out, &cap, *n_out + 1, sizeof **out)) {
            ggl_free(*out);
            *out = NULL;
            return ggl_fail(err, GGL_NOMEM, "out of memory for the special tokens of a text");
        }
        (*out)[(*n_out)++] = (special_match){i, tokens->node[found].id};
    }
    return GGL_OK;
}
