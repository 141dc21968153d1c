/* Text to tokens and back. */
#include <string.h>

#include "arrays.h"
#include "context.h"
#include "opening.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/pass.h"

static ggl_status need_tokenizer(const llm_context *c, ggl_error *err) {
    return c->tokenizer ? GGL_OK : ggl_pass(err, &c->why_no_tokenizer);
}

ggl_status llm_context_tokenize(const llm_context *c, const llm_spans *given, ggl_str text,
                                unsigned flags, int32_t **id, size_t *n_id, ggl_error *err) {
    llm_tokens ids = {0};
    *id = NULL;
    *n_id = 0;
    ggl_status st = need_tokenizer(c, err);
    if (st == GGL_OK)
        st = llm_need_array("text", text.s, text.n, err);
    if (st == GGL_OK)
        st = given ? llm_tokenize_given(c->tokenizer, given, text.s, text.n, flags, &ids, err)
                   : llm_embed_tokenize(c, text, flags, &ids, err);
    if (st == GGL_OK && ids.n == 0 && !ggl_grow(&ids.id, &ids.cap, 1, sizeof *ids.id))
        st = ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st != GGL_OK) {
        llm_tokens_fini(&ids);
        return st;
    }
    *id = ids.id;
    *n_id = ids.n;
    return GGL_OK;
}

ggl_status llm_encode(const llm_context *c, const char *text, size_t n, unsigned flags,
                      int32_t **id, size_t *n_id, ggl_error *err) {
    const unsigned own = (flags & LLM_ADD_SPECIAL ? LLM_TOKENIZE_BOS : 0u) |
                         (flags & LLM_READ_SPECIAL ? LLM_TOKENIZE_SPECIAL : 0u);
    return llm_context_tokenize(c, NULL, (ggl_str){text, n}, own, id, n_id, err);
}

ggl_status llm_encode_after(const llm_context *c, const char *prompt, size_t n_prompt,
                            const char *text, size_t n, unsigned flags, int32_t **id,
                            size_t *n_begin, size_t *n_id, ggl_error *err) {
    int32_t *begin = NULL;
    *id = NULL;
    *n_begin = *n_id = 0;
    ggl_status st = llm_need_array("prompt", prompt, n_prompt, err);
    if (st == GGL_OK)
        st = llm_need_array("text", text, n, err);
    if (st != GGL_OK)
        return st;
    char *both = n_prompt < SIZE_MAX - n ? ggl_calloc(n_prompt + n + 1, 1) : NULL;
    if (!both)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a text of %zu bytes", n_prompt);
    if (n_prompt > 0)
        memcpy(both, prompt, n_prompt);
    if (n > 0)
        memcpy(both + n_prompt, text, n);
    st = llm_encode(c, prompt, n_prompt, flags, &begin, n_begin, err);
    if (st == GGL_OK)
        st = llm_encode(c, both, n_prompt + n, flags, id, n_id, err);
    if (st == GGL_OK)
        *n_begin = llm_common_beginning(begin, *n_begin, *id, *n_id);
    if (st == GGL_OK && (*n_begin == 0 || *n_begin == *n_id))
        st = ggl_fail(
            err, GGL_USAGE,
            "a prompt of %zu bytes and a text of %zu after it: one of them has no token of its own",
            n_prompt, n);
    ggl_free(begin);
    ggl_free(both);
    if (st != GGL_OK) {
        ggl_free(*id);
        *id = NULL;
        *n_begin = *n_id = 0;
    }
    return st;
}

/* Tokens that the model has and the tokenizer has no text for are none of the caller's mistakes, nor are rows of pictures and sounds,
 * which are below 0. */
static ggl_status check_decoded(const llm_context *c, const int32_t *id, size_t n, ggl_error *err) {
    const int64_t of_model = llm_session_n_vocab(c->session),
                  of_texts = llm_tokenizer_n_vocab(c->tokenizer);
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        if (id[i] >= 0 || !c->session_params.media)
            st = llm_check_tokens(&id[i], 1, of_model > of_texts ? of_model : of_texts, err);
    return st;
}

ggl_status llm_decode(const llm_context *c, const int32_t *id, size_t n_id, unsigned flags,
                      char **text, size_t *n, ggl_error *err) {
    *text = NULL;
    *n = 0;
    ggl_status st = need_tokenizer(c, err);
    if (st == GGL_OK)
        st = llm_need_array("id", id, n_id, err);
    if (st == GGL_OK)
        st = check_decoded(c, id, n_id, err);
    return st == GGL_OK
               ? llm_detokenize(c->tokenizer, id, n_id, flags & LLM_SHOW_SPECIAL, text, n, err)
               : st;
}

const char *llm_token_bytes(const llm_context *c, int32_t id, size_t *n) {
    const ggl_str text = c->tokenizer ? llm_token_text(c->tokenizer, id, true) : (ggl_str){"", 0};
    *n = text.n;
    return text.n ? text.s : "";
}

bool llm_token_is_end(const llm_context *c, int32_t id) {
    return c->tokenizer && llm_tokenizer_is_eog(c->tokenizer, id);
}
