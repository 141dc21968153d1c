#include "common/text_chunks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/input.h"
#include "common/process.h"
#include "common/report.h"

void text_chunks_choose(text_chunks *c, const char *tool, const llm_model *m, int64_t n_ctx,
                        bool given) {
    const int64_t own = llm_model_n_ctx(m);
    c->n_ctx = n_ctx;
    if (!given && own >= 4 && own < n_ctx) {
        tool_note(tool, "chunks of %" PRId64 " tokens, the model's context", own);
        c->n_ctx = own;
    } else if (own > 0 && n_ctx > own) {
        tool_note(tool, "the model was trained on %" PRId64 " tokens at once", own);
    }
}

int text_chunks_find_bos(text_chunks *c, const char *tool, const llm_tokenizer *t) {
    ggl_error err = {0};
    llm_tokens empty = {0};
    if (llm_tokenize(t, "", 0, LLM_TOKENIZE_BOS, &empty, &err) != GGL_OK)
        return tool_error(tool, 1, "%s", err.msg);
    const int32_t bos = llm_tokenizer_bos(t);
    c->bos = empty.n > 0 && bos >= 0 && empty.id[0] == bos ? bos : -1;
    llm_tokens_fini(&empty);
    return -1;
}

int text_chunks_read(text_chunks *c, const char *tool, const llm_tokenizer *t, const char *path,
                     bool special) {
    ggl_error err = {0};
    size_t n;
    char *text = tool_read_any_text(tool, path, &n);
    if (!text)
        return process_stopped ? process_stop_code() : 1;
    if (n > 0 && text[n - 1] == '\n') /* llama.cpp's -f removes it, too */
        n--;
    const ggl_status st = llm_tokenize(
        t, text, n, LLM_TOKENIZE_BOS | (special ? LLM_TOKENIZE_SPECIAL : 0), &c->tokens, &err);
    free(text);
    if (st != GGL_OK)
        return tool_error(tool, 1, "%s: %s", path, err.msg);
    if ((int64_t)c->tokens.n < 2 * c->n_ctx)
        return tool_error(tool, 1,
                          "%s has %zu tokens; with -c %" PRId64 " at least %" PRId64 " are needed",
                          path, c->tokens.n, c->n_ctx, 2 * c->n_ctx);
    c->n_chunk = (int64_t)c->tokens.n / c->n_ctx;
    return -1;
}

void text_chunks_get(const text_chunks *c, int64_t chunk, int32_t *to) {
    memcpy(to, c->tokens.id + chunk * c->n_ctx, (size_t)c->n_ctx * sizeof *to);
    if (c->bos >= 0)
        to[0] = c->bos;
}

void text_chunks_fini(text_chunks *c) {
    llm_tokens_fini(&c->tokens);
}
