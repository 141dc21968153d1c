/* Tokenizers made of GGUF files that a test writes in memory. */
#ifndef TESTS_TOKENIZER_FILE_H
#define TESTS_TOKENIZER_FILE_H

#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/tokenizer.h"
#include "test.h"

TEST_UNUSED static void put_u32(ggl_gguf_writer *w, const char *key, uint32_t u) {
    ggl_gguf_put(w, key, GGL_GGUF_U32, false, &u, 1);
}

TEST_UNUSED static void put_bool(ggl_gguf_writer *w, const char *key, bool b) {
    uint8_t u = b;
    ggl_gguf_put(w, key, GGL_GGUF_BOOL, false, &u, 1);
}

/* Writes, reads, makes the tokenizer, frees all else. */
static ggl_status from_writer(llm_tokenizer **t, ggl_gguf_writer *w, ggl_error *err) {
    void *data = NULL;
    size_t size;
    ggl_gguf *file = NULL;
    *t = NULL;
    ggl_status s = ggl_gguf_writer_write_memory(w, &data, &size, err);
    ggl_gguf_writer_free(w);
    if (s == GGL_OK)
        s = ggl_gguf_open_memory(&file, data, size, "memory", err);
    if (s == GGL_OK)
        s = llm_tokenizer_new(t, file, err);
    ggl_gguf_close(file);
    ggl_free(data);
    return s;
}

#endif
