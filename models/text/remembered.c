#include "remembered.h"

#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/os_thread.h"
#include "ggl/internal/xxh64.h"

enum { N_PLACES = 4096, LEAST = 32 /* bytes: shorter ones are encoded as fast */ };

/* A text has one place, where it takes that of another. */
typedef struct place {
    uint64_t hash;
    int32_t *id; /* [n_ids], then the text; owned; NULL: the place is free */
    size_t n, n_ids, lost;
    unsigned how;
} place;

struct remembered {
    os_mutex lock;
    size_t most, used;
    place place[N_PLACES];
};

remembered *llm_remembered_new(size_t most) {
    remembered *r = ggl_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    ggl_os_mutex_init(&r->lock);
    r->most = most;
    return r;
}

static size_t size_of(const place *p) {
    return p->id ? p->n_ids * sizeof *p->id + p->n : 0;
}

static void clear(remembered *r, place *p) {
    r->used -= size_of(p);
    ggl_free(p->id);
    *p = (place){0};
}

void llm_remembered_free(remembered *r) {
    if (!r)
        return;
    for (int i = 0; i < N_PLACES; i++)
        clear(r, &r->place[i]);
    ggl_os_mutex_destroy(&r->lock);
    ggl_free(r);
}

size_t llm_remembered_bytes(remembered *r) {
    ggl_os_mutex_lock(&r->lock);
    const size_t n = r->used;
    ggl_os_mutex_unlock(&r->lock);
    return n;
}

static uint64_t hash_of(const char *text, size_t n) {
    ggl_xxh64 h;
    ggl_xxh64_begin(&h);
    ggl_xxh64_add(&h, text, n);
    return ggl_xxh64_end(&h);
}

bool llm_remembered_find(remembered *r, const char *text, size_t n, unsigned how, llm_tokens *out) {
    if (n < LEAST)
        return false;
    const uint64_t hash = hash_of(text, n);
    const place *p = &r->place[hash % N_PLACES];
    ggl_os_mutex_lock(&r->lock);
    const bool found = p->id && p->hash == hash && p->n == n && p->how == how &&
                       memcmp(p->id + p->n_ids, text, n) == 0 &&
                       ggl_grow(&out->id, &out->cap, out->n + p->n_ids, sizeof *out->id);
    if (found) {
        if (p->n_ids > 0)
            memcpy(out->id + out->n, p->id, p->n_ids * sizeof *p->id);
        out->n += p->n_ids;
        out->lost += p->lost;
    }
    ggl_os_mutex_unlock(&r->lock);
    return found;
}

void llm_remembered_put(remembered *r, const char *text, size_t n, unsigned how,
                        const llm_tokens *ids, size_t first, size_t lost) {
    place new = {.n = n, .n_ids = ids->n - first, .lost = lost, .how = how};
    const size_t size = new.n_ids * sizeof *new.id + n;
    if (n < LEAST || size > r->most / 4 || !(new.id = ggl_calloc(size, 1)))
        return;
    if (new.n_ids > 0)
        memcpy(new.id, ids->id + first, new.n_ids * sizeof *new.id);
    memcpy(new.id + new.n_ids, text, n);
    new.hash = hash_of(text, n);
    ggl_os_mutex_lock(&r->lock);
    place *p = &r->place[new.hash % N_PLACES];
    clear(r, p);
    for (int i = 0; r->used + size > r->most && i < N_PLACES; i++)
        clear(r, &r->place[i]);
    r->used += size;
    *p = new;
    ggl_os_mutex_unlock(&r->lock);
}
