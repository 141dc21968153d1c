/* How an embedder reads a text. */
#include "embed_text.h"

#include <string.h>

#include "context.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/pass.h"

static unsigned flags_of(const llm_embed_how *how) {
    return LLM_TOKENIZE_BOS | (how->no_parse_special ? 0u : LLM_TOKENIZE_SPECIAL);
}

static ggl_status need_tokenizer(const llm_context *c, ggl_error *err) {
    return c->tokenizer ? GGL_OK : ggl_pass(err, &c->why_no_tokenizer);
}

ggl_status llm_embed_tokenize(const llm_context *c, ggl_str text, unsigned flags, llm_tokens *ids,
                              ggl_error *err) {
    const size_t begin = ids->n;
    size_t kept = begin;
    if (c->no_special_tokens)
        flags &= ~(unsigned)LLM_TOKENIZE_BOS;
    const ggl_status st = llm_tokenize(c->tokenizer, text.s, text.n, flags, ids, err);
    if (st != GGL_OK || c->dropped < 0)
        return st;
    for (size_t i = begin; i < ids->n; i++)
        if (ids->id[i] != c->dropped)
            ids->id[kept++] = ids->id[i];
    ids->n = kept;
    return GGL_OK;
}

/* Finds the token that the tokenizer puts after a text: an empty text has it, perhaps after one that begins it. -1: there is none. */
static ggl_status find_end(const llm_context *c, int32_t *end, ggl_error *err) {
    llm_tokens none = {0};
    const ggl_status st = llm_embed_tokenize(c, (ggl_str){"", 0}, LLM_TOKENIZE_BOS, &none, err);
    const bool has = none.n > 1 || (none.n == 1 && none.id[0] != llm_tokenizer_bos(c->tokenizer));
    *end = has ? none.id[none.n - 1] : -1;
    llm_tokens_fini(&none);
    return st;
}

ggl_status llm_embed_cut(const llm_context *c, llm_tokens *ids, llm_tokens *types, size_t begin,
                         ggl_error *err) {
    const size_t most = (size_t)llm_session_n_ctx(c->session);
    int32_t end = -1;
    if (ids->n - begin <= most)
        return GGL_OK;
    const ggl_status st = c->tokenizer ? find_end(c, &end, err) : GGL_OK;
    if (st != GGL_OK)
        return st;
    const bool keeps_end = end >= 0 && ids->id[ids->n - 1] == end;
    llm_tokens *const both[] = {ids, types};
    for (int k = 0; k < (types ? 2 : 1); k++) {
        if (keeps_end)
            both[k]->id[begin + most - 1] = both[k]->id[both[k]->n - 1];
        both[k]->n = begin + most;
    }
    return GGL_OK;
}

/* Appends the tokens of two texts that follow each other. */
static ggl_status tokenize_both(const llm_context *c, ggl_str a, ggl_str b, unsigned flags,
                                llm_tokens *ids, ggl_error *err) {
    if (a.n == 0)
        return llm_embed_tokenize(c, b, flags, ids, err);
    char *both = a.n < SIZE_MAX - b.n ? ggl_calloc(a.n + b.n + 1, 1) : NULL;
    if (!both)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a text");
    memcpy(both, a.s, a.n);
    if (b.n > 0)
        memcpy(both + a.n, b.s, b.n);
    const ggl_status st = llm_embed_tokenize(c, (ggl_str){both, a.n + b.n}, flags, ids, err);
    ggl_free(both);
    return st;
}

ggl_status llm_embed_read(const llm_context *c, const llm_embed_how *how, ggl_str text,
                          llm_tokens *ids, ggl_error *err) {
    const size_t begin = ids->n;
    ggl_status st = need_tokenizer(c, err);
    if (st == GGL_OK)
        st = tokenize_both(c, how->prompt, text, flags_of(how), ids, err);
    return st == GGL_OK && how->truncate ? llm_embed_cut(c, ids, NULL, begin, err) : st;
}

ggl_status llm_embed_count_before(const llm_context *c, const llm_embed_how *how, int64_t *n,
                                  ggl_error *err) {
    llm_tokens ids = {0};
    int32_t end = -1;
    *n = 0;
    if (how->prompt.n == 0 || !c->head || !llm_head_skips_prompt(c->head))
        return GGL_OK;
    ggl_status st = need_tokenizer(c, err);
    if (st == GGL_OK)
        st = find_end(c, &end, err);
    if (st == GGL_OK)
        st = llm_embed_tokenize(c, how->prompt, flags_of(how), &ids, err);
    if (st == GGL_OK) /* what ends texts comes after the text */
        *n = (int64_t)ids.n - (ids.n > 0 && ids.id[ids.n - 1] == end);
    llm_tokens_fini(&ids);
    return st;
}
