/* Reads a Hugging Face folder's tokenizer and writes it as tokenizer.* keys of a GGUF file. Tokens
 * come from tokenizer.json, else from vocab.json with merges.txt, else from SentencePiece's file
 * (tokenizer.model, sentencepiece.bpe.model, spiece.model, spm.model), which goes before a
 * tokenizer.json that has Unigram. Beside vocab.json, source.spm has the pieces that cut a text, and
 * vocab.json the ids (Marian). Ids, flags and the chat template come from tokenizer_config.json, else
 * from config.json; end tokens besides eos from config.json and generation_config.json.
 *
 * Byte-level BPE becomes the model "gpt2". BPE with byte fallback becomes "llama": in tokenizer.json
 * (exported from SentencePiece) its scores are made from the order of the merges; tokenizer.model has
 * them. Unigram of either file becomes "t5", WordPiece "bert". */
#ifndef LLM_HF_TOKENIZER_H
#define LLM_HF_TOKENIZER_H

#include "common/json_write.h"
#include "ggl/internal/gguf.h"
#include "text/tokenizer_table.h"

enum {
    LLM_HF_TIMES = 1501
}; /* tokens of times that speech models have: of half a minute, 50 in a second */

typedef struct llm_hf_tokenizer llm_hf_tokenizer;

typedef struct llm_hf_vocab {
    /* ids of the model; 0: as many as the tokenizer has. Ids without a token get an unused one. */
    int64_t n;
    bool cut; /* drop tokens past these; else they are an error */
} llm_hf_vocab;

/* Opens the folder's tokenizer. GGL_OK with *out NULL: the folder has none. */
GGL_NODISCARD ggl_status llm_hf_tokenizer_open(llm_hf_tokenizer **out, const char *folder,
                                               const json_value *config, const llm_hf_vocab *vocab,
                                               ggl_error *err);
/* Returns true if the file is a tokenizer.json, of whatever name. */
bool llm_hf_tokenizer_is_file(const char *path);
/* Opens a tokenizer.json alone, of whatever name; a tokenizer_config.json beside it counts, too. Ids that neither names are
 * those of the tokens that texts begin and end with. */
GGL_NODISCARD ggl_status llm_hf_tokenizer_open_file(llm_hf_tokenizer **out, const char *path,
                                                    ggl_error *err);
/* Opens llama2.c's tokenizer.bin for a model of n tokens. GGL_SHAPE: it has another number of them. */
GGL_NODISCARD ggl_status llm_hf_tokenizer_open_bin(llm_hf_tokenizer **out, const char *path,
                                                   int64_t n, ggl_error *err);
/* legacy_tokens.c: makes the tokenizer of a speech model of n tokens from those that its file has (legacy.h): byte-level BPE, whose merges
 * follow from the order of the tokens. data: a file that llm_legacy_open has opened; it must outlive the tokenizer. GGL_UNSUPPORTED: no
 * published vocabulary has n tokens. */
GGL_NODISCARD ggl_status llm_hf_tokenizer_open_legacy(llm_hf_tokenizer **out, const void *data,
                                                      int64_t n, ggl_error *err);
/* Makes the tokenizer of a model of n tokens from a folder's vocabulary.json or vocabulary.txt, which list all tokens of byte-level BPE in the order
 * of their ids: the merges follow from it. GGL_OK with *out NULL: the folder has neither. GGL_FORMAT, GGL_SHAPE: another number of tokens. */
GGL_NODISCARD ggl_status llm_hf_tokenizer_open_ordered(llm_hf_tokenizer **out, const char *folder,
                                                       int64_t n, ggl_error *err);
/* hf_tokenizer_config.c: checks the types of tokenizer_config.json's values. GGL_FORMAT: a type
 * is wrong. */
GGL_NODISCARD ggl_status llm_hf_check_config(const json_value *root, ggl_error *err);
/* hf_pretokenizer.c: returns v if it is a step of this type, else the first such step in its
 * lists, or NULL. */
const json_value *llm_hf_step(const json_value *v, const char *type);
bool llm_hf_flag(const json_value *v, const char *name, bool fallback);
/* Finds tokenizer.ggml.pre, the name for a tokenizer's way to split text into words: from
 * tokenizer.json, whose patterns are written to found[size], or from the class in
 * tokenizer_config.json. False: unknown. */
bool llm_hf_find_pre(const json_value *file, char *found, size_t size, ggl_str *pre);
/* The other way round: writes the step of a tokenizer.json that cuts texts of byte-level BPE like this pre-tokenizer. pre: what
 * tokenizers.txt says of it, which must not be raw. */
void llm_hf_put_pre(llm_json_out *out, ggl_str name, const table_pre *pre);
/* Finds the pre-tokenizer whose only step is this regex, of a tokenizer that takes words which are tokens whatever the merges say. False: there is none. */
bool llm_hf_pre_of_regex(ggl_str regex, ggl_str *pre);
/* Also sets whether the class adds both ends to a text. */
bool llm_hf_pre_of_class(const char *class_name, ggl_str *pre, bool *both_ends);
/* True if a class of a Unigram tokenizer.model converts text to lower case and drops accents, unless its flags say otherwise. */
bool llm_hf_class_folds(const char *class_name);
/* True if a class without a tokenizer.json puts texts into NFC. */
bool llm_hf_class_composes(const char *class_name);
/* True if a class gives models the types of tokens: which of two texts each is of. */
bool llm_hf_class_is_typed(const char *class_name);
/* Sets what a class adds to the ends of a text that a Unigram tokenizer.model cuts; "": no class, then by the kind of model. Returns
 * false if neither is known: then as T5 does. */
bool llm_hf_unigram_ends(const char *class_name, const char *kind, int *add_bos, int *add_eos);
/* Sets *ids to the rest of the class's line `ids`: "CUT TOKEN ..", or "-". False: its ids are those of
 * tokenizer.model. */
bool llm_hf_ids_of_class(const char *class_name, ggl_str *ids);

/* Sets *tokens to the tokens, with a space between, with which texts of the class name their language. False: it has none. */
bool llm_hf_languages_of_class(const char *class_name, ggl_str *tokens);
/* The special tokens, a space between, that a class numbers behind the pieces of its file. */
bool llm_hf_after_pieces(const char *class_name, ggl_str *tokens);

void llm_hf_tokenizer_free(llm_hf_tokenizer *t);
/* hf_alike.c: writes for each of n tokens of the folder's byte-level tokenizer the number of its kind, in the order in which kinds appear: tokens
 * that differ in case, accents or spaces alone are of one. GGL_UNSUPPORTED: another tokenizer, or none. */
GGL_NODISCARD ggl_status llm_hf_tokens_alike(const char *folder, const json_value *config,
                                             int64_t n, int32_t *kind, int64_t *n_kinds,
                                             ggl_error *err);
/* Returns the k-th note, or NULL past the end. */
const char *llm_hf_tokenizer_note(const llm_hf_tokenizer *t, int k);
#define LLM_HF_MASK_KEY "tokenizer.ggml.mask_token_id"
/* The mask is not put: a line of the section makes its key. */
void llm_hf_tokenizer_forget_mask(llm_hf_tokenizer *t);
void llm_hf_tokenizer_put(const llm_hf_tokenizer *t, ggl_gguf_writer *w);

#endif
