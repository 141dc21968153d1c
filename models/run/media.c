/* Rows that stand for tokens, by their ids. */
#include "llm/internal/media.h"

#include <assert.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/os_thread.h"

/* Caches may still have what was computed of rows that were dropped, so for long no others get their ids: else it would be taken for theirs, and who
 * asks may choose a picture for its ids. */
enum { MOST_PAST = 1 << 13, MOST_ROWS = 1 << 24 };

typedef struct entry {
    uint8_t id[LLM_MEDIA_ID];
    llm_media_rows rows; /* row and place are one allocation; row NULL: they were dropped */
    int32_t first;
    int64_t n_held;
    uint64_t used; /* when it was added or found last, as a count of these */
    bool is_late;  /* its rows came later than it: nobody will look for them again */
} entry;

struct llm_media {
    os_mutex lock;
    entry *entry;                  /* [n], by falling first: ids do not overlap */
    size_t n, cap, n_past;         /* n_past: of which the rows were dropped */
    size_t most_bytes, free_bytes; /* of rows that nobody holds: allowed, and there */
    int32_t token[2];              /* to which rows are added, as llm_media_add_to says */
    uint64_t clock;
};

ggl_status llm_media_new(llm_media **out, size_t most_bytes, ggl_error *err) {
    if (!(*out = ggl_calloc(1, sizeof **out)))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a table of rows");
    (*out)->most_bytes = most_bytes;
    ggl_os_mutex_init(&(*out)->lock);
    return GGL_OK;
}

void llm_media_free(llm_media *m) {
    if (!m)
        return;
    for (size_t i = 0; i < m->n; i++)
        ggl_free((void *)m->entry[i].rows.row);
    ggl_os_mutex_destroy(&m->lock);
    ggl_free(m->entry);
    ggl_free(m);
}

static size_t bytes_of(const entry *e) {
    return (size_t)(e->rows.n * (e->rows.n_row * (int64_t)sizeof(float) +
                                 (e->rows.place ? 3 * (int64_t)sizeof(int32_t) : 0)));
}

/* The number of entries that begin above the id: the last of them may have it. */
static size_t count_above(const llm_media *m, int32_t id) {
    size_t low = 0, high = m->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (m->entry[middle].first >= id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static entry *find_id(const llm_media *m, int32_t id) {
    const size_t n = count_above(m, id);
    entry *e = n > 0 ? &m->entry[n - 1] : NULL;
    return e && (int64_t)e->first - id < e->rows.n ? e : NULL;
}

static entry *find_digest(llm_media *m, const uint8_t id[LLM_MEDIA_ID]) {
    for (size_t i = 0; i < m->n; i++)
        if (memcmp(m->entry[i].id, id, LLM_MEDIA_ID) == 0)
            return &m->entry[i];
    return NULL;
}

static void hold(llm_media *m, entry *e) {
    if (e->n_held++ == 0)
        m->free_bytes -= bytes_of(e);
    e->used = ++m->clock;
}

/* Finds the entry that nobody holds and that was used the longest ago, with rows or without. */
static entry *find_oldest(llm_media *m, bool has_rows) {
    entry *oldest = NULL;
    for (size_t i = 0; i < m->n; i++) {
        entry *e = &m->entry[i];
        if (e->n_held == 0 && (e->rows.row != NULL) == has_rows &&
            (!oldest || e->used < oldest->used))
            oldest = e;
    }
    return oldest;
}

static void forget(llm_media *m, entry *e) {
    m->n_past--;
    m->n--;
    memmove(e, e + 1, (size_t)(m->entry + m->n - e) * sizeof *e);
}

/* One more entry has no rows. */
static void note_past(llm_media *m) {
    if (++m->n_past > MOST_PAST)
        forget(m, find_oldest(m, false));
}

/* Drops the rows of an entry that nobody holds. */
static void drop_entry(llm_media *m, entry *e) {
    m->free_bytes -= bytes_of(e);
    ggl_free((void *)e->rows.row);
    e->rows.row = NULL;
    e->rows.place = NULL;
    note_past(m);
}

/* Drops rows that nobody holds until few enough are left. */
static void drop(llm_media *m) {
    while (m->free_bytes > m->most_bytes)
        drop_entry(m, find_oldest(m, true));
}

/* Returns the first id of n that follow from the digest and are free: one that others have is passed over. 0: all are taken. */
static int32_t free_ids(const llm_media *m, const uint8_t id[LLM_MEDIA_ID], int64_t n) {
    uint32_t word;
    memcpy(&word, id, sizeof word);
    int64_t first = -1 - (int64_t)(word & 0x7fffffff);
    for (size_t tries = 0; tries <= 2 * m->n + 2; tries++) {
        if (first - n < INT32_MIN) /* not enough below it */
            first = -1;
        const size_t k = count_above(m, (int32_t)(first - n + 1));
        const entry *last =
            k > 0 ? &m->entry[k - 1] : NULL; /* the lowest that reaches above the end */
        if (!last || (int64_t)last->first - last->rows.n + 1 > first)
            return (int32_t)first;
        first = (int64_t)last->first - last->rows.n;
    }
    return 0;
}

static bool find(llm_media *m, const uint8_t id[LLM_MEDIA_ID], int32_t *first, int64_t *n) {
    entry *e = find_digest(m, id);
    if (!e || !e->rows.row)
        return false;
    hold(m, e);
    *first = e->first;
    *n = e->rows.n;
    return true;
}

bool llm_media_find(llm_media *m, const uint8_t id[LLM_MEDIA_ID], int32_t *first, int64_t *n) {
    ggl_os_mutex_lock(&m->lock);
    const bool found = find(m, id, first, n);
    ggl_os_mutex_unlock(&m->lock);
    return found;
}

/* Puts an entry into the table, whose ids, unless it has some, follow from its digest. */
static ggl_status insert(llm_media *m, entry *e, ggl_error *err) {
    if (!ggl_grow(&m->entry, &m->cap, m->n + 1, sizeof *m->entry))
        return ggl_fail(err, GGL_NOMEM, "out of memory for %lld rows", (long long)e->rows.n);
    while (e->first == 0 && (e->first = free_ids(m, e->id, e->rows.n)) == 0 && m->n_past > 0)
        forget(m, find_oldest(m, false));
    if (e->first == 0)
        return ggl_fail(err, GGL_LIMIT, "there are too many rows at once");
    const size_t at = count_above(m, e->first);
    memmove(m->entry + at + 1, m->entry + at, (m->n - at) * sizeof *m->entry);
    m->entry[at] = *e;
    m->n++;
    return GGL_OK;
}

static ggl_status add(llm_media *m, const uint8_t id[LLM_MEDIA_ID], const llm_media_rows *rows,
                      int32_t *first, ggl_error *err) {
    int64_t n;
    if (find(m, id, first, &n))
        return GGL_OK;
    if (rows->n < 1 || rows->n > MOST_ROWS || rows->n_row < 0 || rows->n_row > 1 << 24)
        return ggl_fail(err, GGL_LIMIT, "%lld rows of %lld numbers cannot stand for tokens",
                        (long long)rows->n, (long long)rows->n_row);
    entry e = {.rows = *rows, .n_held = 1, .used = ++m->clock};
    memcpy(e.id, id, LLM_MEDIA_ID);
    const size_t n_floats = (size_t)(rows->n * rows->n_row);
    float *own = ggl_calloc(bytes_of(&e) + 1, 1); /* rows without numbers are there, too */
    if (!own)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %lld rows", (long long)rows->n);
    e.is_late = n_floats > 0 && !rows->row;
    if (n_floats > 0 && rows->row)
        memcpy(own, rows->row, n_floats * sizeof *own);
    e.rows.row = own;
    if (rows->place) {
        e.rows.place = (int32_t *)(own + n_floats);
        memcpy(own + n_floats, rows->place, (size_t)rows->n * 3 * sizeof *rows->place);
    }
    entry *past = find_digest(m, id);
    if (past) {
        e.first = past->rows.n == rows->n ? past->first : 0;
        forget(m, past);
    }
    const ggl_status st = insert(m, &e, err);
    if (st != GGL_OK)
        ggl_free(own);
    *first = e.first;
    return st;
}

ggl_status llm_media_add(llm_media *m, const uint8_t id[LLM_MEDIA_ID], const llm_media_rows *rows,
                         int32_t *first, ggl_error *err) {
    ggl_os_mutex_lock(&m->lock);
    const ggl_status st = add(m, id, rows, first, err);
    ggl_os_mutex_unlock(&m->lock);
    return st;
}

static ggl_status expect(llm_media *m, const uint8_t id[LLM_MEDIA_ID], int64_t n, int32_t *first,
                         ggl_error *err) {
    entry *same = find_digest(m, id);
    if (same) {
        *first = same->first;
        same->used = ++m->clock;
        return same->rows.n == n ? GGL_OK
                                 : ggl_fail(err, GGL_FORMAT, "%lld rows, but there are %lld",
                                            (long long)n, (long long)same->rows.n);
    }
    entry e = {.rows = {.n = n}, .used = ++m->clock};
    if (n < 1 || n > MOST_ROWS)
        return ggl_fail(err, GGL_FORMAT, "%lld rows cannot stand for tokens", (long long)n);
    memcpy(e.id, id, LLM_MEDIA_ID);
    const ggl_status st = insert(m, &e, err);
    *first = e.first;
    if (st == GGL_OK)
        note_past(m);
    return st;
}

ggl_status llm_media_expect(llm_media *m, const uint8_t id[LLM_MEDIA_ID], int64_t n, int32_t *first,
                            ggl_error *err) {
    ggl_os_mutex_lock(&m->lock);
    const ggl_status st = expect(m, id, n, first, err);
    ggl_os_mutex_unlock(&m->lock);
    return st;
}

bool llm_media_whose(llm_media *m, int32_t id, uint8_t digest[LLM_MEDIA_ID], int32_t *first,
                     int64_t *n) {
    ggl_os_mutex_lock(&m->lock);
    const entry *e = find_id(m, id);
    if (e) {
        memcpy(digest, e->id, LLM_MEDIA_ID);
        *first = e->first;
        *n = e->rows.n;
    }
    ggl_os_mutex_unlock(&m->lock);
    return e != NULL;
}

void llm_media_release(llm_media *m, int32_t first) {
    if (!m)
        return;
    ggl_os_mutex_lock(&m->lock);
    entry *e = find_id(m, first);
    if (e && e->n_held > 0 && --e->n_held == 0) {
        m->free_bytes += bytes_of(e);
        if (e->is_late)
            drop_entry(m, e);
        drop(m);
    }
    ggl_os_mutex_unlock(&m->lock);
}

void llm_media_fill(llm_media *m, int32_t first, int64_t i, const float *row, int64_t n) {
    ggl_os_mutex_lock(&m->lock);
    const entry *e = find_id(m, first);
    assert(e && e->is_late && e->rows.row && i >= 0 && n <= e->rows.n - i);
    memcpy((float *)e->rows.row + i * e->rows.n_row, row,
           (size_t)(n * e->rows.n_row) * sizeof *row);
    ggl_os_mutex_unlock(&m->lock);
}

void llm_media_add_to(llm_media *m, int32_t first, int32_t others) {
    m->token[0] = first;
    m->token[1] = others;
}

bool llm_media_get(const llm_media *m, int32_t id, llm_media_row *out) {
    if (!m)
        return false;
    os_mutex *lock = &((llm_media *)m)->lock; /* what others see does not change */
    ggl_os_mutex_lock(lock);
    const entry *e = find_id(m, id);
    const bool is_there = e && e->rows.row;
    if (is_there) {
        const llm_media_rows *r = &e->rows;
        const int64_t i = (int64_t)e->first - id;
        *out = (llm_media_row){.row = r->row + i * r->n_row,
                               .n_row = r->n_row,
                               .i = i,
                               .n = r->n,
                               .n_pos = r->n_pos,
                               .token = m->token[i > 0],
                               .first = e->first,
                               .has_place = r->place != NULL};
        if (i < r->n_alone) {
            out->i = 0;
            out->n = out->n_pos = 1;
            out->has_place = false;
        } else {
            out->i -= r->n_alone;
            out->n -= r->n_alone;
        }
        for (int k = 0; k < 3; k++)
            out->place[k] = r->place ? r->place[i * 3 + k] : (int32_t)out->i;
    }
    ggl_os_mutex_unlock(lock);
    return is_there;
}
