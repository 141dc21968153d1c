#include "texts.h"

#include "llm/internal/embed.h"

const char *bench_cannot(const llm_arch *arch, const bench_test *t) {
    const bool sees_all = llm_arch_sees_all(arch);
    if (llm_arch_reads_rows(arch))
        return "the model reads rows of numbers, and no text";
    if (!sees_all && t->n_gen == 0 && t->n_sequences > 1)
        return ""; /* prompts run one after the other */
    if (sees_all && t->n_gen > 0)
        return "the model sees a text whole, and writes none token by token";
    if (sees_all && t->n_depth > 0)
        return "the model sees a text whole: it has nothing before it";
    if (llm_arch_reads_text(arch) && t->n_prompt > 0 && t->n_depth > 0)
        return "the model reads the prompt whole: it has nothing before it";
    return NULL;
}

void bench_texts_session(llm_opening *how, const llm_arch *arch, const bench_test *t) {
    if (!llm_arch_sees_all(arch) || llm_arch_has_output(arch, "logits"))
        return;
    how->params.embeddings = true;
    how->session.n_rows = t->n_ubatch; /* of a mean: a row for each token's embedding */
}

bool bench_embeds(const llm_session *s) {
    return llm_session_sees_all(s) && !llm_session_has_logits(s);
}

static bool forget(void *ctx, size_t text, int64_t n_rows, const float *row, int64_t n) {
    (void)ctx, (void)text, (void)n_rows, (void)row, (void)n;
    return true;
}

ggl_status bench_embed(llm_session *s, const bench_test *t, const int32_t *token, ggl_error *err) {
    llm_embed_text text[16];
    const bool ranks = llm_session_n_embd(s) == 0;
    for (int64_t k = 0; k < t->n_sequences; k++)
        text[k] = (llm_embed_text){.token = token, .n = (size_t)t->n_prompt};
    const llm_embedding_params p = {.text = text,
                                    .n_texts = (size_t)t->n_sequences,
                                    .pooling = ranks ? LLM_POOL_RANK : LLM_POOL_MEAN,
                                    .normalize = !ranks,
                                    .each = forget};
    return llm_embed_all(s, &p, err);
}

ggl_status bench_read(llm_session *s, const bench_test *t, int slot, const int32_t *token,
                      ggl_error *err) {
    const int64_t n = t->n_prompt > 0 ? t->n_prompt : t->n_depth;
    return llm_session_read(s, slot, token, n > 0 ? n : 1, err);
}
