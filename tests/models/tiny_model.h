/* Writes a model of one embedding, whose descriptor is in the file, for tests of sessions: small enough to run again for every token. */
#ifndef TESTS_TINY_MODEL_H
#define TESTS_TINY_MODEL_H

#include <math.h>

#include "ggl/internal/gguf.h"
#include "test.h"

enum { TINY_WIDTH = 16, TINY_VOCAB = 8 };

/* Its descriptor, from parts. The window and a ubatch of 16 take exactly a page, so that the ring has no row to spare. */
#define WINDOW_OF(rows) "h = heads(x, 2)\nx = x + attention(h, h, h, window = " rows ")\n"
#define WINDOW          WINDOW_OF("49")
#define STATES          "x = x + flat(sum(transpose(recent(x, 3))))\n"
#define ALL             "h = heads(x, 2)\nx = x + attention(h, h, h)\n"
#define MODEL(parts)                                                                               \
    "arch tiny\nlanguage 1\ntoken_embd [16, n_vocab]\nx = token_embd[token]\n" parts               \
    "logits = linear(x, token_embd)\n"

/* The weights are up to `scale`. */
static inline bool tiny_model_write(const char *path, const char *text, float scale) {
    float embd[TINY_WIDTH * TINY_VOCAB];
    ggl_error err = {0};
    for (int i = 0; i < TINY_WIDTH * TINY_VOCAB; i++)
        embd[i] = scale * sinf((float)i * 1.7f);
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "general.architecture", "tiny", 4);
    ggl_gguf_put_string(w, "general.descriptor", text, strlen(text));
    ggl_gguf_put_tensor(w, "token_embd.weight", GGL_F32, 2, (int64_t[]){TINY_WIDTH, TINY_VOCAB},
                        embd);
    bool ok = CHECK_OK(ggl_gguf_writer_write(w, path, &err), &err);
    ggl_gguf_writer_free(w);
    return ok;
}

#endif
