/* What is known of a model's file without loading the model. */
#ifndef LLM_SERVER_MODEL_CARD_H
#define LLM_SERVER_MODEL_CARD_H

#include "ggl/gguf.h"
#include "llm/internal/arch.h"
#include "opening.h"

typedef struct model_card {
    bool
        is_known; /* else all below but `has` is empty: it is not a GGUF file, or not downloaded yet */
    char family[64];                  /* general.architecture */
    const char *weight_type;          /* static: the type that has most of the bytes */
    bool hears;                       /* its architecture writes down sounds */
    llm_senses has;                   /* by the eye or ear with which it comes; also if !is_known */
    bool scores;                      /* by its file, its vectors are scores */
    bool ranks;                       /* such a score would rank documents */
    bool shows_tools, shows_thinking; /* its chat template mentions them */
    int64_t n_ctx, n_embd;            /* as it was trained; 0: not known */
    double n_params, size;            /* size: bytes of the weights */
    uint64_t digest;
    int64_t modified; /* seconds since 1970 */
} model_card;

/* True if models of this kind write down sounds, and nothing else. */
static inline bool model_card_hears(const llm_arch *arch) {
    return llm_arch_reads_rows(arch) && llm_arch_reads_text(arch);
}

model_card model_card_of(const ggl_gguf *f);
/* The same for a path, which is opened for that. GGL_UNSUPPORTED: a GGUF file that is not a model's, such as an
 * adapter or a projector. */
GGL_NODISCARD ggl_status model_card_read(model_card *out, const char *path, ggl_error *err);

#endif
