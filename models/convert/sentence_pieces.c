#include "sentence_pieces.h"

#include <math.h>
#include <string.h>

#include "common/little_endian.h"
#include "common/text_file.h"

#define MAX_PIECES ((int64_t)1 << 24)

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
}

bool llm_is_byte_piece(ggl_str s) {
    return s.n == 6 && memcmp(s.s, "<0x", 3) == 0 && is_hex(s.s[3]) && is_hex(s.s[4]) &&
           s.s[5] == '>';
}

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the tokenizer");
}

ggl_status llm_sentence_pieces_make_room(sentence_pieces *p, int64_t n, ggl_error *err) {
    if (n > MAX_PIECES)
        return ggl_fail(err, GGL_LIMIT, "%lld pieces, at most %lld are supported", (long long)n,
                        (long long)MAX_PIECES);
    p->piece = ggl_arena_alloc(&p->arena, (size_t)n + 1, sizeof *p->piece);
    p->score = ggl_arena_alloc(&p->arena, (size_t)n + 1, sizeof *p->score);
    p->type = ggl_arena_alloc(&p->arena, (size_t)n + 1, sizeof *p->type);
    return p->piece && p->score && p->type ? GGL_OK : no_memory(err);
}

void llm_sentence_pieces_fini(sentence_pieces *p) {
    ggl_arena_fini(&p->arena);
}

/* --- tokenizer.bin ---------------------------------------------------------------------------- */

/* The next piece of a tokenizer.bin. */
typedef struct bin_piece {
    float score;
    ggl_str text;
} bin_piece;

static uint32_t read_u32(const unsigned char *at) {
    return (uint32_t)llm_little_endian(at, 4);
}

/* Reads the piece at *at, and sets *at to the end of that piece. */
static ggl_status next_bin(const unsigned char *data, size_t size, size_t *at, int64_t id,
                           bin_piece *p, ggl_error *err) {
    if (size - *at < 8)
        return ggl_fail(err, GGL_FORMAT, "the file ends within piece %lld, at byte %zu",
                        (long long)id, size);
    const uint32_t bits = read_u32(data + *at), n = read_u32(data + *at + 4);
    memcpy(&p->score, &bits, sizeof bits);
    if (n > read_u32(data) || n > size - *at - 8)
        return ggl_fail(err, GGL_FORMAT,
                        "piece %lld, at byte %zu, has %u bytes; the longest piece has %u, and the "
                        "file %zu more",
                        (long long)id, *at, n, read_u32(data), size - *at - 8);
    if (!isfinite(p->score))
        return ggl_fail(err, GGL_FORMAT, "piece %lld, at byte %zu, has a score that is no number",
                        (long long)id, *at);
    p->text = (ggl_str){(const char *)data + *at + 8, n};
    *at += 8 + (size_t)n;
    return GGL_OK;
}

/* Copies a text with U+2581 for each space, and without the line feeds around <s> and </s>, which
 * llama2.c prints them with. */
static bool copy_text(sentence_pieces *p, ggl_str text, ggl_str *out) {
    if (text.n > 4 && text.s[0] == '\n' && text.s[1] == '<' && text.s[text.n - 1] == '\n')
        text = (ggl_str){text.s + 1, text.n - 2};
    char *to = ggl_arena_alloc(&p->arena, 3 * text.n + 1, 1);
    *out = (ggl_str){to, 0};
    for (size_t i = 0; to && i < text.n; i++) {
        if (text.s[i] == ' ') {
            memcpy(to + out->n, "\xe2\x96\x81", 3);
            out->n += 3;
        } else {
            to[out->n++] = text.s[i];
        }
    }
    return to != NULL;
}

/* llama2.c's programs take these ids for granted. */
enum { BIN_UNKNOWN, BIN_BOS, BIN_EOS, BIN_SPECIALS };

ggl_status llm_sentence_pieces_read_bin(sentence_pieces *p, const void *data, size_t size,
                                        ggl_error *err) {
    bin_piece piece = {0};
    size_t at = 4;
    int64_t n = 0;
    *p = (sentence_pieces){
        .bos = BIN_BOS, .eos = BIN_EOS, .unknown = BIN_UNKNOWN, .pad = -1, .add_space = true};
    if (llm_is_lfs_pointer(data, size))
        return ggl_fail(err, GGL_FORMAT, "%s", LLM_LFS_ADVICE);
    if (size < 4)
        return ggl_fail(err, GGL_FORMAT, "the file has %zu bytes, too few for a tokenizer", size);
    ggl_status s = GGL_OK;
    for (; s == GGL_OK && at < size; n++)
        s = next_bin(data, size, &at, n, &piece, err);
    if (s == GGL_OK && n < BIN_SPECIALS)
        s = ggl_fail(err, GGL_FORMAT, "it has %lld pieces; <unk>, <s> and </s> are the least",
                     (long long)n);
    if (s == GGL_OK)
        s = llm_sentence_pieces_make_room(p, n, err);
    at = 4;
    for (int64_t id = 0; s == GGL_OK && id < n; id++) {
        s = next_bin(data, size, &at, id, &piece, err);
        if (s == GGL_OK && !copy_text(p, piece.text, &p->piece[id]))
            s = no_memory(err);
        if (s != GGL_OK)
            break;
        p->score[id] = piece.score;
        p->type[id] = id == BIN_UNKNOWN                 ? LLM_TOKEN_UNKNOWN
                      : id < BIN_SPECIALS               ? LLM_TOKEN_CONTROL
                      : llm_is_byte_piece(p->piece[id]) ? LLM_TOKEN_BYTE
                                                        : LLM_TOKEN_NORMAL;
        p->n = id + 1;
    }
    return s;
}
