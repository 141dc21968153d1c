/* Vocabularies of SentencePiece: pieces with scores and kinds, from the files that programs keep them
 * in. All spaces of a piece are U+2581.
 *
 * tokenizer.bin of llama2.c has texts and scores only; the number of pieces is that of the model:
 *
 *     | u32: bytes of the longest piece | f32: score | u32: n | n bytes | f32: score | .. */
#ifndef LLM_SENTENCE_PIECES_H
#define LLM_SENTENCE_PIECES_H

#include "ggl/alloc.h"
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
} sentence_pieces;

/* Reads a tokenizer.bin. *p: freed with llm_sentence_pieces_fini, also after an error. GGL_FORMAT,
 * GGL_LIMIT or GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_sentence_pieces_read_bin(sentence_pieces *p, const void *data,
                                                      size_t size, ggl_error *err);
void llm_sentence_pieces_fini(sentence_pieces *p);
bool llm_is_byte_piece(ggl_str s); /* true for the name of a byte, like <0x0A> */

#endif
