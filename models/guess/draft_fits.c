/* Whether the ids of two models mean the same tokens. */
#include <inttypes.h>
#include <stdio.h>

#include "ggl/internal/show.h"
#include "llm/internal/guess.h"

/* Files of one family differ by this much: padding, and special tokens that are never used. */
enum { SIZE_TOLERANCE = 128 };

static ggl_status different_ids(const char *what, int32_t a, int32_t b, ggl_error *err) {
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "the draft has another vocabulary: its %s token is %" PRId32
                    ", the model's is %" PRId32 ". A draft must share the model's tokenizer",
                    what, b, a);
}

static ggl_status different_token(int32_t id, ggl_str a, ggl_str b, ggl_error *err) {
    char text_a[64], text_b[64];
    ggl_show(text_a, sizeof text_a, a.s, a.n);
    ggl_show(text_b, sizeof text_b, b.s, b.n);
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "the draft has another vocabulary: its token %" PRId32
                    " is '%s', the model's is '%s'. A draft must share the model's tokenizer",
                    id, text_b, text_a);
}

ggl_status llm_draft_fits(const llm_tokenizer *model, const llm_tokenizer *draft, ggl_error *err) {
    const int32_t n_a = llm_tokenizer_n_vocab(model), n_b = llm_tokenizer_n_vocab(draft);
    const int32_t n = n_a < n_b ? n_a : n_b;
    if (n_a - n > SIZE_TOLERANCE || n_b - n > SIZE_TOLERANCE)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the draft has another vocabulary: %" PRId32 " tokens, the model %" PRId32
                        ". A draft must share the model's tokenizer (up to %d tokens)",
                        n_b, n_a, SIZE_TOLERANCE);
    if (llm_tokenizer_bos(model) != llm_tokenizer_bos(draft))
        return different_ids("begin (BOS)", llm_tokenizer_bos(model), llm_tokenizer_bos(draft),
                             err);
    if (llm_tokenizer_eos(model) != llm_tokenizer_eos(draft))
        return different_ids("end (EOS)", llm_tokenizer_eos(model), llm_tokenizer_eos(draft), err);
    for (int32_t id = 0; id < n; id++) {
        const ggl_str a = llm_token_piece(model, id), b = llm_token_piece(draft, id);
        if (a.n != b.n || (a.n > 0 && memcmp(a.s, b.s, a.n) != 0))
            return different_token(id, a, b, err);
    }
    return GGL_OK;
}
