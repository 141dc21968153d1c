#include "text_chunks.h"

ggl_status llm_text_chunks_find_bos(text_chunks *c, const llm_tokenizer *t, ggl_error *err) {
    llm_tokens empty = {0};
    const ggl_status st = llm_tokenize(t, "", 0, LLM_TOKENIZE_BOS, &empty, err);
    const int32_t bos = llm_tokenizer_bos(t);
    c->bos = empty.n > 0 && bos >= 0 && empty.id[0] == bos ? bos : -1;
    llm_tokens_fini(&empty);
    return st;
}

ggl_status llm_text_chunks_take(text_chunks *c, const llm_tokenizer *t, ggl_str text, bool special,
                                ggl_error *err) {
    if (text.n > 0 && text.s[text.n - 1] == '\n') /* llama.cpp's -f removes it, too */
        text.n--;
    const ggl_status st =
        llm_tokenize(t, text.s, text.n, LLM_TOKENIZE_BOS | (special ? LLM_TOKENIZE_SPECIAL : 0),
                     &c->tokens, err);
    c->n_chunk = st == GGL_OK ? (int64_t)c->tokens.n / c->n_ctx : 0;
    return st;
}

void llm_text_chunks_fini(text_chunks *c) {
    llm_tokens_fini(&c->tokens);
}
