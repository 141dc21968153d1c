#include "store.h"

#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_thread.h"
#include "ggl/internal/xxh64.h"
#include "owner_shares.h"

enum { N_BUCKETS = 1024 };

typedef struct entry {
    stored x;           /* first, so that a pointer to it is one to the entry */
    struct entry *next; /* in its bucket */
    int n_users;        /* of store_find, and the table itself */
    int64_t used;       /* of the clock */
    memory_hold held;
    char text[]; /* of x.sent, x.fixed and x.answer */
} entry;

struct answer_store {
    os_mutex lock;
    memory *memory;
    int64_t ns;
    int64_t swept; /* when all of it was last searched for what is over */
    int n;
    entry *bucket[N_BUCKETS];
    owner_share share[STORE_KEPT]; /* of find_largest: threads may have small stacks (musl) */
};

answer_store *store_new(memory *m, int64_t seconds) {
    answer_store *s = ggl_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->memory = m;
    s->ns = seconds * 1000000000;
    ggl_os_mutex_init(&s->lock);
    return s;
}

size_t store_most(const answer_store *s) {
    enum { PART = 8 };
    return memory_most(s->memory, MEMORY_STORE) / PART;
}

/* --- entries, with the lock ------------------------------------------------------------------------- */

/* The ids that are put are random, so that no client can choose their bucket. */
static entry **bucket_of(answer_store *s, ggl_str id) {
    ggl_xxh64 h;
    ggl_xxh64_begin(&h);
    ggl_xxh64_add(&h, id.s, id.n);
    return &s->bucket[ggl_xxh64_end(&h) % N_BUCKETS];
}

static entry **find(answer_store *s, ggl_str id, uint64_t owner) {
    entry **at = bucket_of(s, id);
    while (*at && !((*at)->x.owner == owner && ggl_str_is(id, (*at)->x.id)))
        at = &(*at)->next;
    return at;
}

static void drop(entry *e) {
    if (--e->n_users > 0)
        return;
    memory_force(&e->held, 0);
    ggl_free(e);
}

static void forget(answer_store *s, entry **at) {
    entry *e = *at;
    *at = e->next;
    s->n--;
    drop(e);
}

static bool is_over(const answer_store *s, const entry *e, int64_t now) {
    return now - e->used >= s->ns;
}

/* Not for each of many ids. */
static void expire(answer_store *s) {
    enum { SWEEP_NS = 250000000 };
    const int64_t now = ggl_os_clock();
    if (s->ns > SWEEP_NS && now - s->swept < SWEEP_NS)
        return;
    s->swept = now;
    for (size_t i = 0; s->n > 0 && i < N_BUCKETS; i++)
        for (entry **at = &s->bucket[i]; *at;) {
            if (is_over(s, *at, now))
                forget(s, at);
            else
                at = &(*at)->next;
        }
}

/* Returns the client that has most, in bytes or by number. */
static uint64_t find_largest(answer_store *s, uint64_t own, bool in_bytes) {
    size_t n = 0;
    for (size_t i = 0; i < N_BUCKETS; i++)
        for (const entry *e = s->bucket[i]; e && n < STORE_KEPT; e = e->next)
            s->share[n++] = (owner_share){e->x.owner, in_bytes ? e->held.n : 1};
    return owner_of_most(s->share, n, own);
}

/* Makes room for an entry of `own`. False: there is nothing to forget. */
static bool forget_oldest(answer_store *s, uint64_t own, bool in_bytes) {
    const uint64_t owner = find_largest(s, own, in_bytes);
    entry **oldest = NULL;
    for (size_t i = 0; i < N_BUCKETS; i++)
        for (entry **at = &s->bucket[i]; *at; at = &(*at)->next)
            if ((*at)->x.owner == owner && (!oldest || (*at)->used < (*oldest)->used))
                oldest = at;
    if (oldest)
        forget(s, oldest);
    return oldest;
}

static ggl_str copy_text(char **at, ggl_str s) {
    const ggl_str copy = {*at, s.n};
    if (s.n > 0)
        memcpy(*at, s.s, s.n);
    *at += s.n;
    return copy;
}

/* Makes an entry that is not in the table yet; NULL: it does not fit. */
static entry *make(answer_store *s, const stored *x) {
    const size_t n = x->sent.n + x->fixed.n + x->answer.n;
    memory_hold held = {.of = s->memory, .use = MEMORY_STORE};
    if (n > store_most(s))
        return NULL;
    while (!memory_set(&held, sizeof(entry) + n))
        if (!forget_oldest(s, x->owner, true))
            return NULL;
    entry *e = ggl_calloc(1, sizeof *e + n);
    if (!e) {
        memory_force(&held, 0);
        return NULL;
    }
    char *at = e->text;
    e->x = *x;
    e->x.sent = copy_text(&at, x->sent);
    e->x.fixed = copy_text(&at, x->fixed);
    e->x.answer = copy_text(&at, x->answer);
    e->n_users = 1;
    e->used = ggl_os_clock();
    e->held = held;
    return e;
}

/* Keeps an entry, which may be NULL, in place of one of its id. */
static bool keep(answer_store *s, entry *e) {
    if (!e)
        return false;
    const ggl_str id = {e->x.id, strlen(e->x.id)};
    entry **old = find(s, id, e->x.owner);
    if (*old)
        forget(s, old);
    while (s->n >= STORE_KEPT)
        (void)forget_oldest(s, e->x.owner, false);
    entry **at = bucket_of(s, id);
    e->next = *at;
    *at = e;
    s->n++;
    return true;
}

/* --- calls ------------------------------------------------------------------------------------------ */

bool store_put(answer_store *s, const stored *x) {
    ggl_os_mutex_lock(&s->lock);
    expire(s);
    const bool is_kept = keep(s, make(s, x));
    ggl_os_mutex_unlock(&s->lock);
    return is_kept;
}

bool store_replace(answer_store *s, const stored *held, const stored *x) {
    ggl_os_mutex_lock(&s->lock);
    const entry *now = *find(s, (ggl_str){held->id, strlen(held->id)}, held->owner);
    const bool is_kept = now && &now->x == held && keep(s, make(s, x));
    ggl_os_mutex_unlock(&s->lock);
    return is_kept;
}

const stored *store_find(answer_store *s, ggl_str id, uint64_t owner) {
    ggl_os_mutex_lock(&s->lock);
    expire(s);
    entry *e = *find(s, id, owner);
    const int64_t now = ggl_os_clock();
    const bool is_there = e && !is_over(s, e, now);
    if (is_there) {
        e->n_users++;
        e->used = now;
    }
    ggl_os_mutex_unlock(&s->lock);
    return is_there ? &e->x : NULL;
}

void store_release(answer_store *s, const stored *x) {
    if (!x)
        return;
    ggl_os_mutex_lock(&s->lock);
    drop((entry *)x);
    ggl_os_mutex_unlock(&s->lock);
}

/* Appends the elements of a list to one without its last bracket. */
static size_t add_list(char *text, size_t n, ggl_str list) {
    const size_t n_inner = list.n > 2 ? list.n - 2 : 0;
    if (n_inner == 0)
        return n;
    if (n > 1)
        text[n++] = ',';
    memcpy(text + n, list.s + 1, n_inner);
    return n + n_inner;
}

/* Makes an entry with the elements of two lists behind those of another. */
static entry *make_longer(answer_store *s, const stored *x, ggl_str first, ggl_str second) {
    char *text = ggl_calloc(x->sent.n + first.n + second.n + 4, 1);
    if (!text)
        return NULL;
    size_t n = 1;
    text[0] = '[';
    n = add_list(text, n, x->sent);
    n = add_list(text, n, first);
    n = add_list(text, n, second);
    text[n++] = ']';
    stored longer = *x;
    longer.sent = (ggl_str){text, n};
    entry *e = make(s, &longer);
    ggl_free(text);
    return e;
}

bool store_append(answer_store *s, ggl_str id, uint64_t owner, ggl_str first, ggl_str second) {
    ggl_os_mutex_lock(&s->lock);
    expire(s);
    entry *old = *find(s, id, owner);
    bool is_kept = false;
    if (old) {
        old->n_users++; /* to make room may forget it */
        is_kept = keep(s, make_longer(s, &old->x, first, second));
        drop(old);
    }
    ggl_os_mutex_unlock(&s->lock);
    return is_kept;
}

bool store_set_fixed(answer_store *s, ggl_str id, uint64_t owner, ggl_str fixed) {
    ggl_os_mutex_lock(&s->lock);
    expire(s);
    entry *old = *find(s, id, owner);
    bool is_kept = false;
    if (old) {
        stored other = old->x;
        other.fixed = fixed;
        old->n_users++; /* to make room may forget it */
        is_kept = keep(s, make(s, &other));
        drop(old);
    }
    ggl_os_mutex_unlock(&s->lock);
    return is_kept;
}

bool store_remove(answer_store *s, ggl_str id, uint64_t owner) {
    ggl_os_mutex_lock(&s->lock);
    expire(s);
    entry **at = find(s, id, owner);
    const bool found = *at;
    if (found)
        forget(s, at);
    ggl_os_mutex_unlock(&s->lock);
    return found;
}

void store_expire(answer_store *s) {
    ggl_os_mutex_lock(&s->lock);
    expire(s);
    ggl_os_mutex_unlock(&s->lock);
}

void store_free(answer_store *s) {
    if (!s)
        return;
    for (size_t i = 0; i < N_BUCKETS; i++)
        while (s->bucket[i])
            forget(s, &s->bucket[i]);
    ggl_os_mutex_destroy(&s->lock);
    ggl_free(s);
}
