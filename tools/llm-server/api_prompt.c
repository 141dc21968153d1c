/* Prompts that are lists. */
#include "api_prompt.h"

#include <math.h>

#include "llm/internal/tokenizer.h"

ggl_status prompt_of_ids(ask *a, ask_prompt *p, const int32_t *id, size_t n, ggl_error *err) {
    int32_t *copy = ggl_arena_alloc(&a->arena, n + 1, sizeof *copy);
    if (!copy)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a prompt");
    if (n > 0)
        memcpy(copy, id, n * sizeof *id);
    *p = (ask_prompt){.id = copy, .n = n};
    return GGL_OK;
}

static ggl_status read_id(const json_value *v, const server_facts *facts, int32_t *id,
                          ggl_error *err) {
    if (!(v->number >= 0 && v->number < (double)facts->n_vocab) || v->number != floor(v->number))
        return ggl_fail(err, GGL_USAGE, "%.10g is not a token; the vocabulary has 0 to %lld",
                        v->number, (long long)(facts->n_vocab - 1));
    *id = (int32_t)v->number;
    return GGL_OK;
}

static ggl_status add_text(ask *a, llm_tokens *ids, const json_value *v, unsigned flags,
                           const server_facts *facts, ggl_error *err) {
    if (!facts->tokenizer)
        return ggl_fail(err, GGL_UNSUPPORTED, "the model has no tokenizer; give ids");
    const ggl_status st = ask_hold_text(a, v->n, err);
    return st == GGL_OK ? llm_tokenize(facts->tokenizer, v->s, v->n, flags, ids, err) : st;
}

/* Appends an element of a mixed list: an id, or the ids of a text. */
static ggl_status add_element(ask *a, llm_tokens *ids, const json_value *v, bool first,
                              const server_facts *facts, ggl_error *err) {
    const unsigned flags = LLM_TOKENIZE_SPECIAL | (first ? LLM_TOKENIZE_BOS : 0);
    int32_t id = 0;
    if (v->kind == JSON_STRING)
        return add_text(a, ids, v, flags, facts, err);
    if (v->kind != JSON_NUMBER)
        return ggl_fail(err, GGL_USAGE, "a list of ids and strings cannot have %s",
                        llm_json_kind_text((json_kind)v->kind));
    const ggl_status st = read_id(v, facts, &id, err);
    if (st != GGL_OK)
        return st;
    if (!ggl_grow(&ids->id, &ids->cap, ids->n + 1, sizeof *ids->id))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a prompt");
    ids->id[ids->n++] = id;
    return GGL_OK;
}

ggl_status prompt_of_list(ask *a, const json_value *v, const server_facts *facts, ask_prompt *p,
                          ggl_error *err) {
    llm_tokens ids = {0};
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < v->n && st == GGL_OK; i++)
        st = add_element(a, &ids, &v->item[i], i == 0, facts, err);
    if (st == GGL_OK)
        st = prompt_of_ids(a, p, ids.id, ids.n, err);
    llm_tokens_fini(&ids);
    return st;
}

bool prompt_is_list(const json_value *v) {
    for (size_t i = 0; v->kind == JSON_ARRAY && i < v->n; i++)
        if (v->item[i].kind == JSON_NUMBER)
            return true;
    return false;
}
