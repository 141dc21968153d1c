/* Tokens of times, which speech models write: <|0.00|> to <|30.00|>, 50 in a second. Tokenizers of old folders end before them, at
 * <|notimestamps|>, and programs count on from there. */
#include <string.h>

#include "hf_tokenizer_impl.h"

ggl_status llm_hf_name_times(llm_hf_tokenizer *t, int64_t first, ggl_error *err) {
    for (int k = 0; k < LLM_HF_TIMES; k++) {
        char *text = ggl_arena_printf(&t->arena, "<|%d.%02d|>", k / 50, k % 50 * 2);
        if (!text)
            return llm_hf_no_memory(err);
        t->piece[first + k] = (ggl_str){text, strlen(text)};
        t->type[first + k] = LLM_TOKEN_CONTROL;
    }
    return GGL_OK;
}

/* Sets the token that ends a text, if no file of the folder names it. */
static void set_end(llm_hf_tokenizer *t) {
    static const char end[] = "<|endoftext|>";
    const int64_t id = llm_hf_find_piece(t, (ggl_str){end, sizeof end - 1});
    t->id[EOS] = t->id[EOS] < 0 ? id : t->id[EOS];
    t->id[BOS] = t->id[BOS] < 0 ? id : t->id[BOS];
}

ggl_status llm_hf_complete_speech(llm_hf_tokenizer *t, ggl_error *err) {
    static const char last[] = "<|notimestamps|>";
    const int64_t id = t->bytes ? llm_hf_find_piece(t, (ggl_str){last, sizeof last - 1}) : -1;
    const int64_t n = t->n - t->n_ids;
    if (t->is_alone || id < 0)
        return GGL_OK;
    set_end(t);
    if (id + 1 != t->n_ids)
        return GGL_OK;
    if (n == LLM_HF_TIMES)
        return llm_hf_name_times(t, t->n_ids, err);
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "its tokens end with %s (%lld), and the times that follow, <|0.00|> to "
                    "<|30.00|>, are missing: they are %d, but the model has rows for %lld more "
                    "tokens; take the tokenizer.json of the original model",
                    last, (long long)id, LLM_HF_TIMES, (long long)n);
}
