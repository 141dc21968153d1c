/* A Hugging Face folder's tokenizer as the keys tokenizer.* of a GGUF file. From tokenizer.json, or vocab.json with
 * merges.txt; ids, flags and the chat template from tokenizer_config.json, else from config.json.
 *
 * BPE over bytes becomes the model "gpt2", BPE with byte fallback (as SentencePiece models are exported) "llama", whose
 * scores are made from the order of the merges. Others (Unigram, WordPiece) are refused by name. */
#ifndef LLM_HF_TOKENIZER_H
#define LLM_HF_TOKENIZER_H

#include "json.h"

typedef struct llm_hf_tokenizer llm_hf_tokenizer;

/* n_vocab: how many tokens the model has (0: as many as the tokenizer); what the tokenizer lacks of them is filled with unused
 * ones. *out NULL with GGL_OK: the folder has no tokenizer. */
GGL_NODISCARD ggl_status llm_hf_tokenizer_open(llm_hf_tokenizer **out, const char *folder, const json_value *config,
                                               int64_t n_vocab, ggl_error *err);
void llm_hf_tokenizer_free(llm_hf_tokenizer *t);
const char *llm_hf_tokenizer_note(const llm_hf_tokenizer *t); /* NULL: nothing to say */
void llm_hf_tokenizer_put(const llm_hf_tokenizer *t, ggl_gguf_writer *w);

#endif
