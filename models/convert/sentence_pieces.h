/* Vocabularies of SentencePiece: pieces with scores and kinds, from the files that programs keep them
 * in. All spaces of a piece are U+2581.
 *
 * tokenizer.model is a message in the encoding of Protocol Buffers (ModelProto in SentencePiece's
 * sentencepiece_model.proto). A field begins with a varint, 8 * number + form; unknown fields are passed
 * over. The fields that count, with their defaults:
 *
 *     1  a piece, in the order of ids:  1 text  2 score  3 type (1), as in tokenizer.ggml.token_type
 *     2  how it was trained:  3 model_type (1): 1 Unigram, 2 BPE  24 treat_whitespace_as_suffix (false)
 *        40 unk_id (0)  41 bos_id (1)  42 eos_id (2)  43 pad_id (-1)
 *     3  normalizer:  1 name  2 precompiled_charsmap  3 add_dummy_prefix (true)
 *        4 remove_extra_whitespaces (true)  5 escape_whitespaces (true)
 *
 * tokenizer.bin of llama2.c has texts and scores only; the number of pieces is that of the model:
 *
 *     | u32: bytes of the longest piece | f32: score | u32: n | n bytes | f32: score | .. */
#ifndef LLM_SENTENCE_PIECES_H
#define LLM_SENTENCE_PIECES_H

#include "ggl/internal/alloc.h"
#include "ggl/gguf.h"

/* tokenizer.ggml.token_type */
enum {
    LLM_TOKEN_NORMAL = 1,
    LLM_TOKEN_UNKNOWN,
    LLM_TOKEN_CONTROL,
    LLM_TOKEN_USER_DEFINED,
    LLM_TOKEN_UNUSED,
    LLM_TOKEN_BYTE
};

typedef struct sentence_pieces {
    ggl_arena arena; /* has all of the following */
    ggl_str *piece;  /* [n] */
    float *score;    /* [n] */
    int32_t *type;   /* [n]: LLM_TOKEN_.. */
    int64_t n;
    int64_t bos, eos, unknown, pad; /* ids; -1: none */
    bool unigram;                   /* else BPE */
    bool add_space;                 /* a text begins with a space */
    bool remove_spaces;             /* of several spaces one remains, of those at the end none */
    ggl_str charsmap;               /* in the file; see text/charsmap.h */
    ggl_str normalizer;             /* its name, in the file; n 0: none */
} sentence_pieces;

/* Reads a tokenizer.bin. *p: freed with llm_sentence_pieces_fini, also after an error. GGL_FORMAT,
 * GGL_LIMIT or GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_sentence_pieces_read_bin(sentence_pieces *p, const void *data,
                                                      size_t size, ggl_error *err);
/* Reads a tokenizer.model, in the same way. The data must outlive *p. Also GGL_UNSUPPORTED: another
 * kind of tokenizer. */
GGL_NODISCARD ggl_status llm_sentence_pieces_read_model(sentence_pieces *p, const void *data,
                                                        size_t size, ggl_error *err);
/* Checks p->charsmap, if it is not empty. GGL_FORMAT, GGL_LIMIT or GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_sentence_pieces_check_charsmap(sentence_pieces *p, ggl_error *err);
void llm_sentence_pieces_fini(sentence_pieces *p);
/* Makes room for n pieces, for the readers. GGL_LIMIT, GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_sentence_pieces_make_room(sentence_pieces *p, int64_t n,
                                                       ggl_error *err);
bool llm_is_byte_piece(ggl_str s); /* true for the name of a byte, like <0x0A> */

#endif
