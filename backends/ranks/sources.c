#include "sources.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/cache_folder.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/xxh64.h"

/* --- digests ------------------------------------------------------------------------------------ */

/* Two numbers of 64 bits, the second over a byte in front, so that equal ones mean equal weights. Nobody attacks here: whoever may
 * start ranks may do anything. The bytes are read once, in pieces that stay in the processor's cache. */
static void digest_all(const void *data, size_t size, uint64_t out[2]) {
    enum { PIECE = 16 << 10 };
    ggl_xxh64 h[2];
    ggl_xxh64_begin(&h[0]);
    ggl_xxh64_begin(&h[1]);
    ggl_xxh64_add(&h[1], "2", 1);
    for (size_t at = 0; at < size; at += PIECE)
        for (int k = 0; k < 2; k++)
            ggl_xxh64_add(&h[k], (const char *)data + at, size - at < PIECE ? size - at : PIECE);
    out[0] = ggl_xxh64_end(&h[0]);
    out[1] = ggl_xxh64_end(&h[1]);
}

/* Of the first, the middle and the last bytes: so no weight is read on rank 0 only to see that another rank has it, too. */
static void digest_samples(const void *data, size_t size, uint64_t out[2]) {
    enum { SAMPLE = 4096 };
    const char *p = data;
    const size_t n = size < SAMPLE ? size : SAMPLE;
    ggl_xxh64 h;
    ggl_xxh64_begin(&h);
    ggl_xxh64_add(&h, p, n);
    ggl_xxh64_add(&h, p + (size - n) / 2, n);
    ggl_xxh64_add(&h, p + (size - n), n);
    out[0] = ggl_xxh64_end(&h);
    out[1] = size;
}

/* --- rank 0 ------------------------------------------------------------------------------------- */

enum has_what { HAS_FILE, HAS_KEPT };
enum { MOST_FOUND = 128 }; /* by a rank at a time */

ggl_status ggl_source_ask_file(const source *s, channel *c, known_files *k, ggl_error *err) {
    ggl_reader result;
    bool has = false;
    const size_t n = strlen(s->path);
    if (n < MOST_INLINE) { /* an order must have room for it */
        ggl_status st = ggl_channel_begin(c, ORDER_HAS, 32 + n, err);
        if (st != GGL_OK)
            return st;
        ggl_put_u32(&c->out, HAS_FILE);
        ggl_put_text(&c->out, s->path);
        ggl_channel_end(c);
        st = ggl_channel_call(c, &result, err);
        if (st != GGL_OK)
            return st;
        has = ggl_get_u32(&result) != 0;
    }
    char *path = ggl_calloc(n + 1, 1);
    if (!path || !ggl_grow(&k->at, &k->cap, k->n + 1, sizeof *k->at)) {
        ggl_free(path);
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", s->path);
    }
    memcpy(path, s->path, n);
    k->at[k->n++] = (known_file){path, has};
    return GGL_OK;
}

void ggl_known_files_fini(known_files *k) {
    for (size_t i = 0; i < k->n; i++)
        ggl_free(k->at[i].path);
    ggl_free(k->at);
    *k = (known_files){0};
}

/* True if ranks read files of their own; GGL_RANK_FILES=off: rank 0 sends all weights. */
static bool uses_files(void) {
    const char *s = getenv("GGL_RANK_FILES");
    return !s || strcmp(s, "off") != 0;
}

bool ggl_source_find(source *s, const known_files *k, const void *data, size_t size) {
    static _Thread_local char full[OS_MOST_PATH * 2]; /* until the rank is asked */
    ggl_file_map of;
    *s = (source){.kind = SOURCE_SENT, .data = data, .size = size};
    const char *path = size >= LEAST_ASKED && uses_files() ? ggl_file_at(data, &of) : NULL;
    if (path) {
        char here[OS_MOST_PATH] = "";
        if (!ggl_os_is_absolute(path) && !ggl_os_current_folder(here, sizeof here))
            here[0] = '\0';
        snprintf(full, sizeof full, "%s%s%s", here, here[0] ? "/" : "", path);
        s->path = full;
        s->offset = (size_t)((const char *)data - (const char *)of.data);
        s->file_size = of.size;
        const known_file *f = k->at, *end = k->at + k->n;
        while (f != end && strcmp(f->path, full) != 0)
            f++;
        if (f == end)
            return false;
        s->path = f->path;
        s->kind = f->has ? SOURCE_FILE : SOURCE_SENT;
    }
    if (s->kind == SOURCE_FILE)
        digest_samples(data, size, s->digest);
    else
        digest_all(data, size, s->digest);
    return true;
}

static bool is_asked(const source *s) {
    return s->kind == SOURCE_SENT && s->size >= LEAST_ASKED;
}

ggl_status ggl_source_ask(const source *s, size_t n, channel *c, uint64_t *number, ggl_error *err) {
    const ggl_status st = ggl_channel_begin(c, ORDER_HAS, 8 + MOST_ASKED * 24, err);
    uint32_t n_asked = 0;
    if (st != GGL_OK)
        return st;
    for (size_t i = 0; i < n; i++)
        n_asked += is_asked(&s[i]);
    ggl_put_u32(&c->out, HAS_KEPT);
    ggl_put_u32(&c->out, n_asked);
    for (size_t i = 0; i < n; i++)
        if (is_asked(&s[i])) {
            ggl_put_u64(&c->out, s[i].size);
            ggl_put(&c->out, s[i].digest, sizeof s[i].digest);
        }
    ggl_channel_end(c);
    return ggl_channel_flush(c, true, number, err);
}

ggl_status ggl_source_hear(source *s, size_t n, channel *c, uint64_t number, ggl_error *err) {
    const ggl_status st = ggl_channel_wait(c, number, err);
    ggl_reader result = {c->result, c->result + c->n_result, false};
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        if (is_asked(&s[i]) && ggl_get_u32(&result))
            s[i].kind = SOURCE_KEPT;
    return st == GGL_OK && result.failed
               ? ggl_fail(err, GGL_DEVICE, "%s: an answer that does not fit its orders", c->name)
               : st;
}

size_t ggl_source_size(const source *s) {
    return 48 + (s->path ? strlen(s->path) : 0);
}

void ggl_source_put(const source *s, ggl_bytes *out) {
    ggl_put_u32(out, s->kind);
    ggl_put(out, s->digest, sizeof s->digest);
    if (s->kind == SOURCE_FILE) {
        ggl_put_text(out, s->path);
        ggl_put_u64(out, s->file_size);
        ggl_put_u64(out, s->offset);
    }
}

ggl_status ggl_source_send(const source *s, channel *c, ggl_error *err) {
    ggl_file_map of;
    if (s->kind != SOURCE_SENT)
        return GGL_OK;
    const ggl_status st = ggl_channel_send_all(c, s->data, s->size, err);
    if (ggl_file_at(s->data, &of)) /* if rank 0 reads it, too, the system has it in memory */
        ggl_file_map_drop(&of, s->data, s->size);
    return st;
}

/* --- the other ranks: weights that are kept ------------------------------------------------------ */

/* Writes the path of a weight that is kept; false: none is. */
static bool kept_path(const uint64_t digest[2], size_t size, char *path, size_t n_path) {
    if (!cache_folder("GGL_RANK_CACHE", "/weights", path, n_path))
        return false;
    const size_t n = strlen(path);
    if (n + 80 > n_path)
        return false;
    snprintf(path + n, n_path - n, "/%016" PRIx64 "%016" PRIx64 "-%zu", digest[0], digest[1], size);
    return true;
}

void ggl_source_keep(station *s, const taken *t) {
    char path[OS_MOST_PATH];
    ggl_new_file *f = NULL;
    ggl_error err = {0};
    if (t->size < LEAST_ASKED || s->keeps_none || !kept_path(t->digest, t->size, path, sizeof path))
        return;
    ggl_os_make_parents(path, false); /* opening the file says what is wrong */
    ggl_status st = ggl_new_file_open(&f, path, &err);
    if (st == GGL_OK) {
        if (fwrite(t->data, 1, t->size, ggl_new_file_stream(f)) != t->size)
            ggl_new_file_note(f);
        st = ggl_new_file_commit(f, &err);
    }
    if (st == GGL_OK)
        return;
    s->keeps_none = true;
    if (s->note) {
        char text[sizeof err.msg + 128];
        snprintf(
            text, sizeof text,
            "weights are not kept for the next start: %s (GGL_RANK_CACHE names another folder, or "
            "is off)",
            err.msg);
        s->note(text);
    }
}

/* --- the other ranks: getting the bytes ---------------------------------------------------------- */

/* Returns the file, mapped; NULL: *err. It stays mapped until the station ends. */
static const ggl_file_map *own_file(station *s, const char *path, ggl_error *err) {
    for (size_t i = 0; i < s->n_files; i++)
        if (strcmp(s->file[i]->path, path) == 0)
            return &s->file[i]->map;
    held_file *f = ggl_calloc(1, sizeof *f);
    if (!f || !(f->path = ggl_calloc(strlen(path) + 1, 1)) ||
        !ggl_grow(&s->file, &s->cap_files, s->n_files + 1, sizeof *s->file))
        (void)ggl_fail(err, GGL_NOMEM, "%s: out of memory", path);
    else if (ggl_file_map_open(&f->map, path, err) == GGL_OK) {
        strcpy(f->path, path);
        s->file[s->n_files++] = f;
        return &f->map;
    }
    if (f)
        ggl_free(f->path);
    ggl_free(f);
    return NULL;
}

/* Copies a text of an order; false: it is too long. */
static bool take_path(ggl_reader *r, char *to, size_t size) {
    const ggl_str t = ggl_get_text(r);
    if (!t.s || t.n >= size || memchr(t.s, 0, t.n))
        return false;
    memcpy(to, t.s, t.n);
    to[t.n] = '\0';
    return true;
}

/* Maps a kept weight if it is whole; a damaged one is removed, so that rank 0 sends it again. */
static bool open_kept(const char *path, size_t size, const uint64_t digest[2], ggl_file_map *out) {
    uint64_t own[2];
    if (ggl_file_map_open(out, path, NULL) != GGL_OK)
        return false;
    bool is_whole = out->size == size;
    if (is_whole) {
        digest_all(out->data, size, own);
        is_whole = own[0] == digest[0] && own[1] == digest[1];
    }
    if (!is_whole) {
        ggl_file_map_close(out);
        (void)ggl_os_remove(path);
    }
    return is_whole;
}

/* Looks for a kept weight, which stays open until it is ordered. */
static bool find_kept(station *s, size_t size, const uint64_t digest[2]) {
    char path[OS_MOST_PATH];
    found_weight f = {.digest = {digest[0], digest[1]}};
    if (size < LEAST_ASKED || !kept_path(digest, size, path, sizeof path) ||
        !open_kept(path, size, digest, &f.map))
        return false;
    if (s->n_found < MOST_FOUND && ggl_grow(&s->found, &s->cap_found, s->n_found + 1, sizeof f))
        s->found[s->n_found++] = f;
    else /* it is opened again */
        ggl_file_map_close(&f.map);
    return true;
}

void ggl_source_execute_has(station *s, ggl_reader *r) {
    char path[OS_MOST_PATH * 2];
    uint64_t digest[2];
    const uint32_t what = ggl_get_u32(r);
    if (what == HAS_FILE) {
        ggl_put_u32(&s->result, take_path(r, path, sizeof path) && ggl_os_may_read(path));
        return;
    }
    const uint32_t n = ggl_get_u32(r);
    for (uint32_t i = 0; i < n && i < MOST_ASKED && !r->failed; i++) {
        const uint64_t size = ggl_get_u64(r);
        ggl_get_to(r, digest, sizeof digest);
        ggl_put_u32(&s->result, !r->failed && find_kept(s, (size_t)size, digest));
    }
}

void ggl_source_forget(station *s) {
    while (s->n_found > 0)
        ggl_file_map_close(&s->found[--s->n_found].map);
}

static taken take_file(station *s, ggl_reader *r, taken t) {
    char path[OS_MOST_PATH * 2];
    uint64_t own[2];
    ggl_error err = {0};
    const bool read = take_path(r, path, sizeof path);
    const uint64_t file_size = ggl_get_u64(r), offset = ggl_get_u64(r);
    if (!read || r->failed || s->failed.status != GGL_OK)
        return t;
    const ggl_file_map *m = own_file(s, path, &err);
    if (!m) {
        ggl_station_note(s, err.status, &err);
        return t;
    }
    bool same = m->size == file_size && offset <= m->size && t.size <= m->size - offset;
    if (same) {
        digest_samples((const char *)m->data + offset, t.size, own);
        same = own[0] == t.digest[0] && own[1] == t.digest[1];
    }
    if (!same) {
        ggl_station_note(
            s,
            ggl_fail(&err, GGL_FORMAT,
                     "%s is another file on %s than on rank 0 (%zu bytes here, %" PRIu64
                     " there): copy it, or take it away, so that rank 0 sends the weights",
                     path, s->j->t->host, m->size, file_size),
            &err);
        return t;
    }
    t.shared = m;
    t.data = (const char *)m->data + offset;
    return t;
}

static taken take_kept(station *s, taken t) {
    char path[OS_MOST_PATH];
    ggl_error err = {0};
    for (size_t i = 0; i < s->n_found; i++)
        if (s->found[i].map.size == t.size &&
            memcmp(s->found[i].digest, t.digest, sizeof t.digest) == 0) {
            t.file = s->found[i].map;
            s->found[i] = s->found[--s->n_found];
            break;
        }
    if (!t.file.data && (!kept_path(t.digest, t.size, path, sizeof path) ||
                         !open_kept(path, t.size, t.digest, &t.file)))
        ggl_station_note(s, ggl_fail(&err, GGL_NOT_FOUND, "a weight is not kept any more"), &err);
    t.data = t.file.data;
    return t;
}

taken ggl_source_take(station *s, ggl_reader *r, size_t size) {
    taken t = {.size = size};
    const uint32_t kind = ggl_get_u32(r);
    ggl_get_to(r, t.digest, sizeof t.digest);
    if (kind == SOURCE_FILE)
        return take_file(s, r, t);
    if (kind == SOURCE_KEPT)
        return take_kept(s, t);
    t.data = t.owned = ggl_station_receive(s, size);
    return t;
}

ggl_status ggl_source_check(const taken *t, const char *what, ggl_error *err) {
    uint64_t own[2];
    if (!t->owned)
        return GGL_OK;
    digest_all(t->owned, t->size, own);
    return own[0] == t->digest[0] && own[1] == t->digest[1]
               ? GGL_OK
               : ggl_fail(err, GGL_DEVICE, "%s arrived with other bytes than it was sent with",
                          what);
}

void ggl_source_drop(taken *t) {
    if (t->shared) /* the system reads it again if another weight or device needs it */
        ggl_file_map_drop(t->shared, t->data, t->size);
    if (t->file.data)
        ggl_file_map_close(&t->file);
    ggl_free(t->owned);
    *t = (taken){0};
}
