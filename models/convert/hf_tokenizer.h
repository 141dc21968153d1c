/* A Hugging Face folder's tokenizer as the keys tokenizer.* of a GGUF file. From tokenizer.json, or vocab.json with
 * merges.txt; ids, flags and the chat template from tokenizer_config.json, else from config.json; tokens that end a text
 * besides eos from config.json and generation_config.json.
 *
 * BPE over bytes becomes the model "gpt2", BPE with byte fallback (as SentencePiece models are exported) "llama", whose
 * scores are made from the order of the merges. Others (Unigram, WordPiece) are refused by name. */
#ifndef LLM_HF_TOKENIZER_H
#define LLM_HF_TOKENIZER_H

#include "common/json.h"

typedef struct llm_hf_tokenizer llm_hf_tokenizer;

typedef struct llm_hf_vocab {
    /* tokens that the model has; 0: as many as the tokenizer. What the tokenizer lacks of them is
     * filled with unused ones */
    int64_t n;
    bool cut; /* tokens beyond these are left out; else they are an error */
} llm_hf_vocab;

/* *out NULL with GGL_OK: the folder has no tokenizer. */
GGL_NODISCARD ggl_status llm_hf_tokenizer_open(llm_hf_tokenizer **out, const char *folder,
                                               const json_value *config, const llm_hf_vocab *vocab,
                                               ggl_error *err);
/* hf_tokenizer_config.c: whether tokenizer_config.json's values have the types that they should have. GGL_FORMAT */
GGL_NODISCARD ggl_status llm_hf_check_config(const json_value *root, ggl_error *err);
/* hf_pretokenizer.c. A step of that type, in v or, if v is a sequence, in its steps; NULL: none. */
const json_value *llm_hf_step(const json_value *v, const char *type);
bool llm_hf_flag(const json_value *v, const char *name, bool fallback);
/* The name for a tokenizer's way to cut text into words, from tokenizer.json, whose patterns are put into found[size], or from the
 * class that tokenizer_config.json has. false: none is known. */
bool llm_hf_find_pre(const json_value *file, char *found, size_t size, ggl_str *pre);
bool llm_hf_pre_of_class(const char *class_name, ggl_str *pre);

void llm_hf_tokenizer_free(llm_hf_tokenizer *t);
const char *llm_hf_tokenizer_note(const llm_hf_tokenizer *t,
                                  int k); /* what is worth a line: the k-th; NULL past the end */
void llm_hf_tokenizer_put(const llm_hf_tokenizer *t, ggl_gguf_writer *w);

#endif
