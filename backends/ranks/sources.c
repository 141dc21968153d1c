#include "sources.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/cache_folder.h"
#include "ggl/internal/xxh64.h"

/* --- digests ------------------------------------------------------------------------------------ */

/* Two numbers of 64 bits, the second over a byte in front, so that equal ones mean equal weights. Nobody attacks here: whoever may
 * start ranks may do anything. */
static void digest_all(const void *data, size_t size, uint64_t out[2]) {
    for (int k = 0; k < 2; k++) {
        ggl_xxh64 h;
        ggl_xxh64_begin(&h);
        if (k)
            ggl_xxh64_add(&h, "2", 1);
        ggl_xxh64_add(&h, data, size);
        out[k] = ggl_xxh64_end(&h);
    }
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

/* Asks the rank for a file, or for a weight by its digest. */
static ggl_status ask(channel *c, enum has_what what, const source *s, bool *has, ggl_error *err) {
    ggl_reader result;
    ggl_status st = ggl_channel_begin(c, ORDER_HAS, 32 + (s->path ? strlen(s->path) : 0), err);
    if (st != GGL_OK)
        return st;
    ggl_put_u32(&c->out, what);
    ggl_put_u64(&c->out, what == HAS_FILE ? s->file_size : s->size);
    if (what == HAS_FILE)
        ggl_put_text(&c->out, s->path);
    else
        ggl_put(&c->out, s->digest, sizeof s->digest);
    ggl_channel_end(c);
    st = ggl_channel_call(c, &result, err);
    *has = st == GGL_OK && ggl_get_u32(&result) != 0;
    return st;
}

/* Sets *has: the rank has the file. Each file is asked for once. */
static ggl_status ask_file(channel *c, known_files *k, const source *s, bool *has, ggl_error *err) {
    for (size_t i = 0; i < k->n; i++)
        if (strcmp(k->path[i], s->path) == 0) {
            *has = k->has[i];
            return GGL_OK;
        }
    const ggl_status st = ask(c, HAS_FILE, s, has, err);
    if (st == GGL_OK && k->n < sizeof k->path / sizeof *k->path &&
        (k->path[k->n] = ggl_calloc(strlen(s->path) + 1, 1))) {
        strcpy(k->path[k->n], s->path);
        k->has[k->n++] = *has;
    }
    return st;
}

void ggl_known_files_fini(known_files *k) {
    for (size_t i = 0; i < k->n; i++)
        ggl_free(k->path[i]);
    k->n = 0;
}

/* True if ranks read files of their own; GGL_RANK_FILES=off: rank 0 sends all weights. */
static bool uses_files(void) {
    const char *s = getenv("GGL_RANK_FILES");
    return !s || strcmp(s, "off") != 0;
}

ggl_status ggl_source_find(source *s, channel *c, known_files *k, const void *data, size_t size,
                           ggl_error *err) {
    static _Thread_local char full[PATH_MAX * 2]; /* an order's path, until it is written */
    ggl_file_map of;
    bool has = false;
    ggl_status st = GGL_OK;
    *s = (source){.kind = SOURCE_SENT, .data = data, .size = size};
    if (size < LEAST_ASKED) {
        digest_all(data, size, s->digest);
        return GGL_OK;
    }
    const char *path = uses_files() ? ggl_file_at(data, &of) : NULL;
    if (path) {
        char here[PATH_MAX] = "";
        if (path[0] != '/' && !getcwd(here, sizeof here))
            here[0] = '\0';
        snprintf(full, sizeof full, "%s%s%s", here, here[0] ? "/" : "", path);
        s->path = full;
        s->offset = (size_t)((const char *)data - (const char *)of.data);
        s->file_size = of.size;
        /* an order must have room for it */
        if (strlen(full) < MOST_INLINE)
            st = ask_file(c, k, s, &has, err);
        if (st == GGL_OK && has) {
            s->kind = SOURCE_FILE;
            digest_samples(data, size, s->digest);
            return GGL_OK;
        }
        s->path = NULL;
    }
    if (st == GGL_OK) {
        digest_all(data, size, s->digest);
        st = ask(c, HAS_KEPT, s, &has, err);
        s->kind = has ? SOURCE_KEPT : SOURCE_SENT;
    }
    return st;
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
    return s->kind == SOURCE_SENT ? ggl_channel_send_all(c, s->data, s->size, err) : GGL_OK;
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

/* Keeps a weight for the next start. A failure is a note, once. */
static void keep(station *s, const void *data, size_t size, const uint64_t digest[2]) {
    char path[PATH_MAX];
    ggl_new_file *f = NULL;
    ggl_error err = {0};
    if (size < LEAST_ASKED || s->keeps_none || !kept_path(digest, size, path, sizeof path))
        return;
    cache_make_parents(path); /* opening the file says what is wrong */
    ggl_status st = ggl_new_file_open(&f, path, &err);
    if (st == GGL_OK) {
        if (fwrite(data, 1, size, ggl_new_file_stream(f)) != size)
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
        if (strcmp(s->file[i].path, path) == 0)
            return &s->file[i].map;
    if (!ggl_grow(&s->file, &s->cap_files, s->n_files + 1, sizeof *s->file)) {
        (void)ggl_fail(err, GGL_NOMEM, "%s: out of memory", path);
        return NULL;
    }
    held_file *f = &s->file[s->n_files];
    *f = (held_file){0};
    if (ggl_file_map_open(&f->map, path, err) != GGL_OK)
        return NULL;
    if (!(f->path = ggl_calloc(strlen(path) + 1, 1))) {
        ggl_file_map_close(&f->map);
        (void)ggl_fail(err, GGL_NOMEM, "%s: out of memory", path);
        return NULL;
    }
    strcpy(f->path, path);
    s->n_files++;
    return &f->map;
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
        (void)unlink(path);
    }
    return is_whole;
}

void ggl_source_execute_has(station *s, ggl_reader *r) {
    char path[PATH_MAX * 2];
    const uint32_t what = ggl_get_u32(r);
    const uint64_t size = ggl_get_u64(r);
    bool has = false;
    if (what == HAS_FILE) {
        has = take_path(r, path, sizeof path) && access(path, R_OK) == 0;
    } else {
        if (s->found.data)
            ggl_file_map_close(&s->found);
        ggl_get_to(r, s->found_digest, sizeof s->found_digest);
        has = kept_path(s->found_digest, (size_t)size, path, sizeof path) &&
              open_kept(path, (size_t)size, s->found_digest, &s->found);
    }
    ggl_put_u32(&s->result, has);
}

static taken take_file(station *s, ggl_reader *r, size_t size, const uint64_t digest[2]) {
    char path[PATH_MAX * 2];
    uint64_t own[2];
    ggl_error err = {0};
    taken t = {.size = size};
    const bool read = take_path(r, path, sizeof path);
    const uint64_t file_size = ggl_get_u64(r), offset = ggl_get_u64(r);
    if (!read || r->failed || s->failed.status != GGL_OK)
        return t;
    const ggl_file_map *m = own_file(s, path, &err);
    if (!m) {
        ggl_station_note(s, err.status, &err);
        return t;
    }
    bool same = m->size == file_size && offset <= m->size && size <= m->size - offset;
    if (same) {
        digest_samples((const char *)m->data + offset, size, own);
        same = own[0] == digest[0] && own[1] == digest[1];
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

static taken take_kept(station *s, size_t size, const uint64_t digest[2]) {
    char path[PATH_MAX];
    ggl_error err = {0};
    taken t = {.size = size};
    if (s->found.data && memcmp(s->found_digest, digest, sizeof s->found_digest) == 0) {
        t.file = s->found; /* the one that rank 0 has just asked for */
        s->found = (ggl_file_map){0};
    } else if (!kept_path(digest, size, path, sizeof path) ||
               !open_kept(path, size, digest, &t.file)) {
        ggl_station_note(s, ggl_fail(&err, GGL_NOT_FOUND, "a weight is not kept any more"), &err);
    }
    t.data = t.file.data;
    return t;
}

static taken take_sent(station *s, size_t size, const uint64_t digest[2]) {
    uint64_t own[2];
    ggl_error err = {0};
    taken t = {.size = size, .owned = ggl_station_receive(s, size)};
    if (!t.owned || s->is_lost)
        return t;
    digest_all(t.owned, size, own);
    if (own[0] == digest[0] && own[1] == digest[1]) {
        t.data = t.owned;
        keep(s, t.data, size, digest);
    } else {
        ggl_station_note(
            s,
            ggl_fail(&err, GGL_DEVICE, "a weight arrived with other bytes than it was sent with"),
            &err);
    }
    return t;
}

taken ggl_source_take(station *s, ggl_reader *r, size_t size) {
    uint64_t digest[2];
    const uint32_t kind = ggl_get_u32(r);
    ggl_get_to(r, digest, sizeof digest);
    return kind == SOURCE_FILE   ? take_file(s, r, size, digest)
           : kind == SOURCE_KEPT ? take_kept(s, size, digest)
                                 : take_sent(s, size, digest);
}

void ggl_source_drop(taken *t) {
    if (t->shared) /* the system reads it again if another weight or device needs it */
        ggl_file_map_drop(t->shared, t->data, t->size);
    if (t->file.data)
        ggl_file_map_close(&t->file);
    ggl_free(t->owned);
    *t = (taken){0};
}
