/* Repacked weights in a file, which the next run maps instead of repacking again.
 *
 *   | magic | version u32 | 0x01020304 u32 | size of the file u64 | size of the rest u64 |
 *   | the caller's identification of the model: n u64, n bytes |
 *   | n_dev times: name, layout: strings | offset, size u64 of its regions | n_tensors u64 |
 *   |     n_tensors times: name string |
 *   |         type, ne[4], host range, offset in it, offset from the device's first region |
 *   | zeros, then the regions, each at a multiple of 4096, those of a device one after another |
 *   | XXH64 u64 of each MiB from the first region on; the last may be shorter |
 *
 *   string:  | n u64 | n bytes |      numbers: u64 unless noted, in this machine's byte order
 *
 * "The rest" is everything from there to the first region. A file is used only if its size, and
 * every byte before the regions, are what this run would write itself. So no number in the file is
 * ever trusted. Kernels read no address from the regions. To compare their digests takes as long as some tokens, so that is
 * done between runs, a part before each. */
#include "repack_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ggl/internal/xxh64.h"
#include "ggl/internal/os_fs.h"

enum { PAGE = 4096, FIXED = 32, PIECE = 1 << 20 };
enum { CHECK_RUNS = 32 }; /* runs before which a part of the file is checked */

static const char magic[8] = {'g', 'g', 'l', '-', 'r', 'p', 'k', '\n'};
static const uint32_t version = 2;

/* --- the bytes before the regions ------------------------------------------------------------- */

typedef struct bytes {
    char *at; /* NULL: bytes are only counted */
    size_t n;
} bytes;

/* Appends n bytes; or, if b->at is NULL, counts them. */
static void put(bytes *b, const void *p, size_t n) {
    if (b->at && n > 0)
        memcpy(b->at + b->n, p, n);
    b->n += n;
}

static void put_number(bytes *b, uint64_t x) {
    put(b, &x, sizeof x);
}

static void put_string(bytes *b, const char *s) {
    size_t n = s ? strlen(s) : 0;
    put_number(b, n);
    put(b, s, n);
}

/* Rounds up to a multiple of PAGE. */
static size_t round_up(size_t x) {
    return (x + PAGE - 1) / PAGE * PAGE;
}

size_t ggl_repack_file_offset(const device *d, size_t piece) {
    size_t at = 0;
    for (size_t i = 0; i < piece; i++)
        at = round_up(at + d->repack.pieces.at[i].size);
    return at;
}

/* Returns the bytes from the device's first region to the end of its last one. */
static size_t size_of_all(const device *d) {
    const size_t n = d->repack.pieces.n;
    return n > 0 ? ggl_repack_file_offset(d, n - 1) + d->repack.pieces.at[n - 1].size : 0;
}

/* Returns where the repacked copy at loc begins, from the device's first region. */
static size_t offset_of(const device *d, ggl_loc loc) {
    size_t i = 0;
    while (d->repack.pieces.at[i].region != loc.region)
        i++;
    return ggl_repack_file_offset(d, i) + loc.offset;
}

/* Appends the entry of a repacked weight of device d. */
static void put_tensor(bytes *b, const schedule *s, const device *d, const ggl_tensor *t) {
    int i;
    ggl_host_range r = ggl_sched_host_range(s, t, &i);
    put_string(b, t->name);
    put_number(b, (uint64_t)t->type);
    for (int k = 0; k < GGL_MAX_DIMS; k++)
        put_number(b, (uint64_t)t->ne[k]);
    put_number(b, (uint64_t)i);
    put_number(b, (uint64_t)((const char *)t->data - (const char *)r.data));
    put_number(b, offset_of(d, d->repack.loc[t->id]));
}

/* Writes everything before the regions. at[] are the offsets of the regions and `rest` is the size
 * of what follows the fixed part. To count bytes, at[], file_size and rest may be 0. */
static void put_all(bytes *b, const schedule *s, const size_t *at, size_t file_size, size_t rest) {
    const uint32_t order = 0x01020304;
    put(b, magic, sizeof magic);
    put(b, &version, sizeof version);
    put(b, &order, sizeof order);
    put_number(b, file_size);
    put_number(b, rest);
    put_number(b, s->params.cache_of_size);
    put(b, s->params.cache_of, s->params.cache_of_size);
    put_number(b, (uint64_t)s->n_dev);
    for (int k = 0; k < s->n_dev; k++) {
        const device *d = &s->dev[k];
        put_string(b, d->b->name);
        put_string(b, d->b->v->repack_layout);
        put_number(b, at[k]);
        put_number(b, size_of_all(d));
        put_number(b, d->repack.list.n);
        for (size_t i = 0; i < d->repack.list.n; i++)
            put_tensor(b, s, d, d->repack.list.at[i]);
    }
}

size_t ggl_repack_file_size(const schedule *s, size_t *at) {
    bytes count = {0};
    memset(at, 0, (size_t)s->n_dev * sizeof *at);
    put_all(&count, s, at, 0, 0);
    size_t size = round_up(count.n);
    for (int k = 0; k < s->n_dev; k++) {
        at[k] = size;
        size += ggl_repack_file_offset(&s->dev[k], s->dev[k].repack.pieces.n);
    }
    return size;
}

/* Returns how many digests there are of the bytes from the first region on. */
static size_t n_digests(size_t size) {
    return (size + PIECE - 1) / PIECE;
}

/* What lies where in the file: the head is before `head`, the regions before `end`, and the digests before `all`. */
typedef struct layout {
    size_t head, end, all;
} layout;

/* Returns the file's bytes up to the first region, which the caller frees; NULL: out of memory. */
static char *head_new(const schedule *s, layout *l) {
    size_t *at = ggl_calloc((size_t)s->n_dev, sizeof *at);
    bytes b = {0};
    *l = (layout){0};
    if (at) {
        l->end = ggl_repack_file_size(s, at);
        l->head = at[0];
        l->all = l->end + n_digests(l->end - l->head) * sizeof(uint64_t);
        b.at = ggl_calloc(l->head, 1);
    }
    if (b.at)
        put_all(&b, s, at, l->all, l->head - FIXED);
    ggl_free(at);
    return b.at;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* Returns why the file m cannot be used, or NULL if it can: it begins with head[], whose first
 * same_model bytes identify the model. *ours: it is a file of repacked weights, so that it may be
 * replaced. */
static const char *unfit(const os_map *m, const char *head, const layout *l, size_t same_model,
                         bool *ours) {
    const char *p = m->data;
    size_t n = m->size < sizeof magic ? m->size : sizeof magic;
    *ours = memcmp(p, magic, n) == 0;
    if (!*ours)
        return "is not a file of repacked weights, and is left as it is";
    if (m->size < FIXED)
        return "is truncated";
    if (memcmp(p, head, 16) != 0)
        return "was written by another version of this program";
    if (memcmp(p + FIXED, head + FIXED, (m->size < same_model ? m->size : same_model) - FIXED) != 0)
        return "belongs to another model, or the model's file has changed";
    if (memcmp(p, head, m->size < l->head ? m->size : l->head) != 0)
        return "has another layout, or belongs to other backends";
    return m->size != l->all ? "is truncated" : NULL;
}

/* Sets the text that ggl_sched_cache_note returns: what is wrong with the file, or with reading or writing it. */
static void note(repack_file *f, const char *path, const char *why) {
    snprintf(f->note, sizeof f->note, "%.120s %.120s", path, why);
}

static void note_error(repack_file *f, const char *path, const ggl_error *err) {
    snprintf(f->note, sizeof f->note, "%.120s: %.120s", path, err->msg);
}

void ggl_repack_file_check(repack_file *f, schedule *s) {
    ggl_error err = {0};
    const char *path = s->params.cache;
    if (!path || s->params.no_repack || ggl_os_exists(path) ||
        ggl_os_new_file_check(path, &err) == GGL_OK)
        return;
    note_error(f, path, &err);
    f->use = GGL_CACHE_FAILED;
    s->params.cache = NULL;
}

void ggl_repack_file_open(repack_file *f, const schedule *s) {
    const char *path = s->params.cache;
    const os_map_params how = {.willneed = true};
    ggl_error err = {0};
    if (!ggl_os_exists(path))
        return;
    ggl_status st = ggl_os_map_open(&f->map, path, &how, &err);
    if (st != GGL_OK) {
        note_error(f, path, &err);
        /* GGL_FORMAT: the file is empty, and is replaced */
        f->use = st == GGL_FORMAT ? GGL_CACHE_NONE : GGL_CACHE_FAILED;
        return;
    }
    layout l;
    bool ours = true;
    char *head = head_new(s, &l);
    const char *why = head ? unfit(&f->map, head, &l, FIXED + 8 + s->params.cache_of_size, &ours)
                           : "could not be read: out of memory";
    ggl_free(head);
    if (!why) {
        f->use = GGL_CACHE_READ;
        f->first = l.head;
        f->end = l.end;
        f->next = (size_t)time(NULL) * 7919; /* far from that of the start before */
        return;
    }
    note(f, path, why);
    f->use = ours ? GGL_CACHE_NONE : GGL_CACHE_FAILED;
    ggl_os_map_close(&f->map);
    if (ours && ggl_os_new_file_check(path, &err) != GGL_OK) {
        note_error(f, path, &err);
        f->use = GGL_CACHE_FAILED;
    }
}

/* --- checking --- */

/* True if the bytes of piece i have the digest that the file has of them. */
static bool is_intact(const repack_file *f, size_t i) {
    const char *data = f->map.data;
    const size_t at = f->first + i * PIECE, n = f->end - at < PIECE ? f->end - at : PIECE;
    uint64_t kept;
    ggl_xxh64 h;
    memcpy(&kept, data + f->end + i * sizeof kept, sizeof kept);
    ggl_xxh64_begin(&h);
    ggl_xxh64_add(&h, data + at, n);
    return ggl_xxh64_end(&h) == kept;
}

ggl_status ggl_repack_file_check_some(repack_file *f, ggl_error *err) {
    os_map of;
    const size_t n = f->use == GGL_CACHE_READ ? n_digests(f->end - f->first) : 0;
    /* the first results must not wait */
    for (size_t k = (n + CHECK_RUNS - 1) / CHECK_RUNS; f->has_run && k > 0 && f->n_checked < n;
         k--) {
        const size_t i = (f->next + f->n_checked) % n;
        const char *data = (const char *)f->map.data + f->first + i * PIECE;
        /* what is not in memory, such as unused experts, is not worth to be read from the disk */
        if (ggl_os_map_is_present(data) && !is_intact(f, i))
            return ggl_fail(err, GGL_IO,
                            "%s is damaged (the %zu. MiB of its weights has changed): delete it, "
                            "and it is written again; what was computed with it may be wrong",
                            ggl_os_map_path(f->map.data, &of), i + 1);
        f->n_checked++;
    }
    f->has_run = true;
    return GGL_OK;
}

/* --- writing ---------------------------------------------------------------------------------- */

/* The digests of what is written from the first region on. */
typedef struct digests {
    uint64_t *at;
    size_t n;
    ggl_xxh64 last; /* of the piece that is not complete */
} digests;

static void digests_end_piece(digests *d) {
    d->at[d->n++] = ggl_xxh64_end(&d->last);
    ggl_xxh64_begin(&d->last);
}

static void digests_add(digests *d, const char *data, size_t n) {
    while (n > 0) {
        const size_t room = PIECE - (size_t)d->last.n, now = n < room ? n : room;
        ggl_xxh64_add(&d->last, data, now);
        if (now == room)
            digests_end_piece(d);
        data += now;
        n -= now;
    }
}

/* Writes a region of the device's repacked weights, of `size` bytes, to the file, and zeros up to
 * the next page. */
static ggl_status write_region(os_new_file *f, device *d, int region, size_t size, char *piece,
                               digests *sums, ggl_error *err) {
    ggl_status st = GGL_OK;
    size_t end = round_up(size);
    for (size_t at = 0; at < end && st == GGL_OK; at += PIECE) {
        size_t n = end - at < PIECE ? end - at : PIECE;
        size_t have = size - at < n ? size - at : n;
        memset(piece + have, 0, n - have);
        st = d->b->v->download(d->b, d->region[region], at, piece, have, err);
        if (st == GGL_OK)
            st = ggl_os_new_file_write(f, piece, n, err);
        digests_add(sums, piece, n);
    }
    return st;
}

void ggl_repack_file_write(repack_file *f, const schedule *s) {
    if (f->use == GGL_CACHE_FAILED)
        return;
    os_new_file file = {.fd = -1};
    ggl_error err = {0};
    layout l;
    char *head = head_new(s, &l), *piece = ggl_calloc(PIECE, 1);
    digests sums = {.at = ggl_calloc(n_digests(l.end - l.head), sizeof *sums.at)};
    ggl_xxh64_begin(&sums.last);
    ggl_status st = head && piece && sums.at ? ggl_os_new_file_open(&file, s->params.cache, &err)
                                             : ggl_fail(&err, GGL_NOMEM, "out of memory");
    bool open = st == GGL_OK;
    if (open)
        st = ggl_os_new_file_write(&file, head, l.head, &err);
    for (int k = 0; k < s->n_dev && st == GGL_OK; k++)
        for (size_t i = 0; i < s->dev[k].repack.pieces.n && st == GGL_OK; i++)
            st = write_region(&file, &s->dev[k], s->dev[k].repack.pieces.at[i].region,
                              s->dev[k].repack.pieces.at[i].size, piece, &sums, &err);
    if (st == GGL_OK && sums.last.n > 0)
        digests_end_piece(&sums);
    if (st == GGL_OK)
        st = ggl_os_new_file_write(&file, sums.at, sums.n * sizeof *sums.at, &err);
    if (st == GGL_OK)
        st = ggl_os_new_file_commit(&file, &err);
    else if (open)
        ggl_os_new_file_discard(&file);
    ggl_free(head);
    ggl_free(piece);
    ggl_free(sums.at);
    f->use = st == GGL_OK ? GGL_CACHE_WRITTEN : GGL_CACHE_FAILED;
    if (st != GGL_OK)
        note_error(f, s->params.cache, &err);
}
