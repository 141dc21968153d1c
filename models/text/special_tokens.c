/* The automaton reads the text backward, so that at each byte it finds the tokens that begin
 * there, reading each byte once. Trying tokens from left to right could read far in vain again
 * and again: tokens "a" and "aa..ab" in "aaa..". */
#include "special_tokens.h"

#include "ggl/internal/alloc.h"

ggl_status llm_special_init(special_tokens *x, ggl_error *err) {
    *x = (special_tokens){0};
    ggl_status s = llm_automaton_init(&x->all, true, err);
    return s == GGL_OK ? llm_automaton_init(&x->user, true, err) : s;
}

void llm_special_fini(special_tokens *x) {
    llm_automaton_fini(&x->all);
    llm_automaton_fini(&x->user);
}

ggl_status llm_special_add(special_tokens *x, ggl_str spelling, int32_t id, bool user_defined,
                           ggl_error *err) {
    const ggl_status s = llm_automaton_add(&x->all, spelling, id, err);
    return s == GGL_OK && user_defined ? llm_automaton_add(&x->user, spelling, id, err) : s;
}

ggl_status llm_special_finish(special_tokens *x, ggl_error *err) {
    const ggl_status s = llm_automaton_finish(&x->all, err);
    size_t n = 0; /* of tokens that are spelled alike the first counts, whatever it is */
    for (size_t i = 0; i < x->user.n_keys && s == GGL_OK; i++)
        if (llm_automaton_id(&x->all, (ggl_str){x->user.key[i].s, x->user.key[i].n}) ==
            x->user.key[i].id)
            x->user.key[n++] = x->user.key[i];
    x->user.n_keys = n;
    return s == GGL_OK ? llm_automaton_finish(&x->user, err) : s;
}

/* A search in progress, from the end of the text. */
typedef struct search {
    const automaton *tokens, *anywhere; /* anywhere: also in stretches that others do not touch */
    int32_t state, state_anywhere;
    special_match *out;
    size_t n, cap;
} search;

/* Reads a byte, at which tokens may begin. is_given: none but those of `anywhere` has it. */
static bool step(search *s, size_t at, unsigned char byte, bool is_given) {
    s->state = is_given ? 0 : llm_automaton_step(s->tokens, s->state, byte);
    const automaton_node *found = &s->tokens->node[s->tokens->node[s->state].found];
    if (s->anywhere) {
        s->state_anywhere = llm_automaton_step(s->anywhere, s->state_anywhere, byte);
        const automaton_node *other =
            &s->anywhere->node[s->anywhere->node[s->state_anywhere].found];
        found = other->depth > found->depth ? other : found;
    }
    if (found->depth == 0)
        return true;
    if (s->n == s->cap && !ggl_grow(&s->out, &s->cap, s->n + 1, sizeof *s->out))
        return false;
    s->out[s->n++] = (special_match){at, found->id};
    return true;
}

static ggl_status end(search *s, bool has_memory, special_match **out, size_t *n_out,
                      ggl_error *err) {
    *out = s->out;
    *n_out = s->n;
    if (has_memory)
        return GGL_OK;
    ggl_free(s->out);
    *out = NULL;
    *n_out = 0;
    return ggl_fail(err, GGL_NOMEM, "out of memory for the special tokens of a text");
}

ggl_status llm_special_find(const special_tokens *x, const char *text, size_t n, bool user_only,
                            special_match **out, size_t *n_out, ggl_error *err) {
    search s = {.tokens = user_only ? &x->user : &x->all};
    bool has_memory = true;
    for (size_t i = n; has_memory && i-- > 0;)
        has_memory = step(&s, i, (unsigned char)text[i], false);
    return end(&s, has_memory, out, n_out, err);
}

ggl_status llm_special_find_between(const special_tokens *x, const char *text, size_t n,
                                    const llm_spans *given, size_t offset, special_match **out,
                                    size_t *n_out, ggl_error *err) {
    search s = {.tokens = &x->all, .anywhere = &x->user};
    bool has_memory = true;
    size_t k = given->n; /* stretches from here on are behind the byte */
    for (size_t i = n; has_memory && i-- > 0;) {
        while (k > 0 && given->at[k - 1].from > offset + i)
            k--;
        has_memory = step(&s, i, (unsigned char)text[i], k > 0 && given->at[k - 1].to > offset + i);
    }
    return end(&s, has_memory, out, n_out, err);
}
