/* Readers of other formats' files, with each of their allocations failing in turn: a llama2.c checkpoint, its tokenizer.bin, a
 * speech model in ggml's format before GGUF, and SentencePiece's tokenizer.model. tests/models/convert_packed.c does the same with the converter. */
#include "alloc_fail.h"
#include "convert/checkpoint.h"
#include "convert/hf_tokenizer.h"
#include "convert/legacy.h"
#include "convert/sentence_pieces.h"
#include "test.h"

enum { DIM = 4, HIDDEN = 8, VOCAB = 2, SEQ = 2, GROUP = 4 };
enum { MATRICES = VOCAB * DIM + 4 * DIM * DIM + 3 * DIM * HIDDEN, VECTORS = 3 * DIM };

static unsigned char bytes[256 + 4 * VECTORS + MATRICES + MATRICES / GROUP * 4];

static void put_i32(size_t at, int x) {
    for (int k = 0; k < 4; k++)
        bytes[at + (size_t)k] = (unsigned char)(x >> 8 * k);
}

static bool open_checkpoint(void *arg) {
    llm_safetensors *st;
    llm_json *config;
    ggl_error err = {0};
    const ggl_str file = {(const char *)bytes, sizeof bytes};
    const ggl_status s = llm_checkpoint_open(&st, &config, "checkpoint", NULL, &file, &err);
    CHECK_MSG(s == GGL_OK || s == GGL_NOMEM, "%s", err.msg);
    CHECK((s == GGL_OK) == (st != NULL) && (s == GGL_OK) == (config != NULL));
    *(size_t *)arg = st ? st->n_tensor : 0;
    llm_safetensors_close(st);
    llm_json_free(config);
    return s == GGL_OK;
}

/* Version 2, whose matrices are pairs of tensors. */
TEST(checkpoint) {
    const int head[] = {DIM, HIDDEN, 1, 1, 1, VOCAB, SEQ};
    size_t n_tensor = 0;
    memcpy(bytes, "24ka", 4);
    put_i32(4, 2);
    for (int k = 0; k < 7; k++)
        put_i32(8 + 4 * (size_t)k, head[k]);
    bytes[36] = 1;
    put_i32(37, GROUP);
    CHECK(alloc_fail_each(open_checkpoint, &n_tensor) > 5);
    CHECK_INT(n_tensor, 3 + 2 * 8);
}

/* --- a speech model: a header, one band, three tokens, a tensor ------------------------------- */

static unsigned char speech[1000];
static size_t n_speech;

static void put_speech(const void *x, size_t n) {
    memcpy(speech + n_speech, x, n);
    n_speech += n;
}

static bool open_speech(void *arg) {
    llm_safetensors *st;
    llm_json *config;
    llm_hf_tokenizer *t = NULL;
    ggl_error err = {0};
    const ggl_str file = {(const char *)speech, n_speech};
    ggl_status s = llm_legacy_open(&st, &config, "speech", NULL, &file, &err);
    CHECK_MSG(s == GGL_OK || s == GGL_NOMEM, "%s", err.msg);
    CHECK((s == GGL_OK) == (st != NULL) && (s == GGL_OK) == (config != NULL));
    *(size_t *)arg = st ? st->n_tensor : 0;
    if (s == GGL_OK)
        s = llm_hf_tokenizer_open_legacy(&t, speech, 3 + 1608, &err);
    CHECK_MSG(s == GGL_OK || s == GGL_NOMEM, "%s", err.msg);
    CHECK((s == GGL_OK) == (t != NULL));
    llm_hf_tokenizer_free(t);
    llm_safetensors_close(st);
    llm_json_free(config);
    return s == GGL_OK;
}

TEST(speech) {
    static const int head[] = {3 + 1608, 4, 2, 1, 1, 4, 2, 1, 1, 1, 0, 1, 201},
                     tensor[] = {1, 1, 0, 2};
    static const char bands[4 * 201] = {0}, tokens[] = "\3\0\0\0"
                                                       "\1\0\0\0a"
                                                       "\1\0\0\0b"
                                                       "\2\0\0\0ab";
    size_t n_tensor = 0;
    put_speech("lmgg", 4);
    put_speech(head, sizeof head);
    put_speech(bands, sizeof bands);
    put_speech(tokens, sizeof tokens - 1);
    put_speech(tensor, sizeof tensor);
    put_speech("x", 1);
    put_speech(bands, 8);
    CHECK(alloc_fail_each(open_speech, &n_tensor) > 10);
    CHECK_INT(n_tensor, 2); /* the bands are not the usual ones */
}

typedef ggl_status read_pieces(sentence_pieces *p, const void *data, size_t size, ggl_error *err);

typedef struct tokenizer_file {
    read_pieces *read;
    const char *data;
    size_t size;
} tokenizer_file;

static bool read_tokenizer(void *arg) {
    const tokenizer_file *t = arg;
    sentence_pieces p;
    ggl_error err = {0};
    const ggl_status s = t->read(&p, t->data, t->size, &err);
    CHECK_MSG(s == GGL_OK || s == GGL_NOMEM, "%s", err.msg);
    CHECK(s != GGL_OK || (p.n == 3 && p.piece[1].n > 0));
    llm_sentence_pieces_fini(&p);
    return s == GGL_OK;
}

TEST(tokenizers) {
    static const char bin[] = "\5\0\0\0"
                              "\0\0\0\0\5\0\0\0<unk>"
                              "\0\0\0\0\5\0\0\0\n<s>\n"
                              "\0\0\200\277\1\0\0\0 ";
    static const char model[] = "\n\016\n\005<unk>\025\0\0\0\0\030\002"
                                "\n\010\n\001a\025\0\0\200\277"
                                "\n\017\n\006<0x41>\025\0\0\0\0\030\006";
    tokenizer_file of_llama2c = {llm_sentence_pieces_read_bin, bin, sizeof bin - 1},
                   of_sentencepiece = {llm_sentence_pieces_read_model, model, sizeof model - 1};
    CHECK(alloc_fail_each(read_tokenizer, &of_llama2c) > 0);
    CHECK(alloc_fail_each(read_tokenizer, &of_sentencepiece) > 0);
}
