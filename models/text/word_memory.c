#include "word_memory.h"

#include <string.h>

#include "ggl/internal/alloc.h"

enum { N_PLACES = 1 << 13, LONGEST = 128, MOST_BYTES = 1 << 20, FIRST = 64 };

struct word_place {
    uint64_t key;
    uint32_t at;       /* of its bytes, and behind them of its ids */
    uint16_t n, n_ids; /* n 0: the place is free */
};

/* Mixes the bytes of a word. Words that somebody has made alike only take each other's place. */
static uint64_t key_of(const char *s, size_t n) {
    uint64_t h = n * 0x9e3779b97f4a7c15u, word;
    for (; n >= 8; n -= 8, s += 8) {
        memcpy(&word, s, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    word = 0;
    if (n > 0)
        memcpy(&word, s, n);
    h = (h ^ word) * 0xff51afd7ed558ccdu;
    h ^= h >> 32;
    h *= 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 29;
}

int llm_word_recall(word_memory *m, const char *s, size_t n, llm_tokens *out, uint64_t *key) {
    *key = 0;
    if (n > LONGEST || (!m->place && ++m->n_asked < FIRST))
        return 0;
    if (!m->place && !(m->place = ggl_calloc(N_PLACES, sizeof *m->place)))
        return -1;
    *key = key_of(s, n) | 1;
    const struct word_place *p = &m->place[*key / 2 % N_PLACES];
    if (p->key != *key || p->n != n || memcmp(m->bytes + p->at, s, n) != 0)
        return 0;
    if (out->n + p->n_ids > out->cap &&
        !ggl_grow(&out->id, &out->cap, out->n + p->n_ids, sizeof *out->id))
        return -1;
    if (p->n_ids > 0)
        memcpy(out->id + out->n, m->bytes + p->at + n, p->n_ids * sizeof *out->id);
    out->n += p->n_ids;
    return 1;
}

bool llm_word_note(word_memory *m, const char *s, size_t n, uint64_t key, const llm_tokens *out,
                   size_t first) {
    const size_t n_ids = out->n - first, bytes = n + n_ids * sizeof *out->id;
    if (key == 0 || n_ids > UINT16_MAX)
        return true;
    if (m->n + bytes > MOST_BYTES) {
        memset(m->place, 0, N_PLACES * sizeof *m->place);
        m->n = 0;
    }
    if (m->n + bytes > m->cap && !ggl_grow(&m->bytes, &m->cap, m->n + bytes, 1))
        return false;
    memcpy(m->bytes + m->n, s, n);
    if (n_ids > 0)
        memcpy(m->bytes + m->n + n, out->id + first, n_ids * sizeof *out->id);
    m->place[key / 2 % N_PLACES] =
        (struct word_place){key, (uint32_t)m->n, (uint16_t)n, (uint16_t)n_ids};
    m->n += bytes;
    return true;
}

void llm_word_memory_fini(word_memory *m) {
    ggl_free(m->place);
    ggl_free(m->bytes);
}
