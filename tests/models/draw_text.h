/* Texts that are drawn at random from a grammar, byte by byte. */
#ifndef DRAW_TEXT_H
#define DRAW_TEXT_H

#include "llm/internal/grammar.h"
#include "test.h"

static ggl_error err;

static inline void must(bool ok) {
    if (!ok) {
        fprintf(stderr, "failed: %s\n", err.msg);
        exit(1);
    }
}

static inline ggl_str str(const char *s) {
    return (ggl_str){s, strlen(s)};
}

enum { N_BYTES = 256, N_VOCAB = N_BYTES + 1, BUDGET = 600 };

static inline llm_vocab *byte_vocab(void) {
    static char byte[N_BYTES];
    ggl_str text[N_VOCAB] = {0};
    bool eog[N_VOCAB] = {0};
    llm_vocab *v = NULL;
    for (int i = 0; i < N_BYTES; i++) {
        byte[i] = (char)i;
        text[i] = (ggl_str){&byte[i], 1};
    }
    text[N_BYTES] = str("<eos>");
    eog[N_BYTES] = true;
    must(llm_vocab_from_texts(&v, text, eog, N_VOCAB, &err) == GGL_OK);
    return v;
}

static uint64_t state;
static inline uint32_t rnd(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}

static inline int32_t draw(const uint32_t *allowed) {
    int32_t id[N_VOCAB], n = 0;
    for (int32_t i = 0; i < N_VOCAB; i++)
        if (allowed[i / 32] >> i % 32 & 1)
            id[n++] = i;
    must(n > 0);
    return id[rnd((uint32_t)n)];
}

static inline llm_matcher *matcher(const llm_grammar *g, const llm_vocab *v) {
    llm_matcher *m = NULL;
    must(llm_matcher_new(&m, g, v, &err) == GGL_OK);
    return m;
}

/* Draws a text; returns its length. */
static inline size_t random_text(llm_matcher *m, char *s) {
    uint32_t allowed[(N_VOCAB + 31) / 32];
    size_t n = 0;
    llm_matcher_reset(m);
    for (int32_t left = BUDGET; left > 0 && !llm_matcher_must_end(m); left--) {
        must(llm_matcher_mask(m, left, allowed, &err) == GGL_OK);
        const int32_t id = draw(allowed);
        must(llm_matcher_accept_token(m, id, &err) == GGL_OK);
        if (id == N_BYTES)
            break;
        s[n++] = (char)id;
    }
    CHECK_MSG(llm_matcher_is_complete(m) || llm_matcher_has_ended(m), "incomplete: %.*s", (int)n,
              s);
    return n;
}

#endif
