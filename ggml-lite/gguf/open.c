/* Opens GGUF files: one file, or all parts of a split model.
 *
 * A split model is N files PREFIX-00001-of-0000N.gguf. Each has the keys split.no (from 0),
 * split.count (N) and split.tensors.count (of all parts together). The first part has all other
 * keys, too. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/params.h"
#include "gguf_file.h"

enum { SPLIT_SUFFIX = 20 }; /* strlen("-00001-of-00003.gguf") */
#define SPLIT_FORMAT "-%05d-of-%05d.gguf"

static void part_close(gguf_part *p) {
    ggl_gguf_head_fini(&p->head);
    ggl_os_map_close(&p->map);
    ggl_free(p->path);
    *p = (gguf_part){0};
}

static ggl_status part_read(gguf_part *p, const ggl_gguf_params *params, ggl_error *err) {
    return ggl_gguf_head_read(&p->head, p->data, p->size, params, err);
}

static ggl_status part_map(gguf_part *p, const ggl_gguf_params *params, ggl_error *err) {
    os_map_params how = {.no_mmap = params->no_mmap,
                         .populate = params->populate && !params->meta_only,
                         .willneed = params->willneed && !params->meta_only};
    ggl_status s = ggl_os_map_open(&p->map, p->path, &how, err);
    if (s != GGL_OK)
        return s;
    p->data = p->map.data;
    p->size = p->map.size;
    p->is_file = true;
    p->mapped = p->map.mapped;
    p->modified = p->map.modified;
    return part_read(p, params, err);
}

/* Sets p->path to the first n bytes of path, followed by `suffix`. */
static ggl_status part_name(gguf_part *p, const char *path, size_t n, const char *suffix,
                            ggl_error *err) {
    size_t m = strlen(suffix);
    p->path = ggl_calloc(n + m + 1, 1);
    if (!p->path)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    memcpy(p->path, path, n);
    memcpy(p->path + n, suffix, m);
    return GGL_OK;
}

/* Sets *out to the part's integer key, which must exist and be in [least, most]. */
static ggl_status split_key(const gguf_part *p, const char *key, int64_t least, int64_t most,
                            int64_t *out, ggl_error *err) {
    int found = ggl_gguf_head_get_integer(&p->head, key, out, err);
    if (found < 0)
        return GGL_FORMAT;
    if (found == 0)
        return ggl_fail(err, GGL_FORMAT, "is part of a split model, but its key '%s' is missing",
                        key);
    if (*out != least && least == most)
        return ggl_fail(err, GGL_FORMAT, "key '%s' is %" PRId64 ", %" PRId64 " is expected", key,
                        *out, least);
    if (*out < least || *out > most)
        return ggl_fail(err, GGL_FORMAT,
                        "key '%s' is %" PRId64 ", %" PRId64 " to %" PRId64 " is expected", key,
                        *out, least, most);
    return GGL_OK;
}

/* Sets *count to the number of parts: split.count, or 1 if there is no such key. */
static ggl_status split_count(const gguf_part *p, int64_t *count, ggl_error *err) {
    *count = 1;
    if (!ggl_gguf_head_find(&p->head, "split.count"))
        return GGL_OK;
    ggl_status s = split_key(p, "split.count", 0, 65535, count, err);
    if (s == GGL_OK && *count == 0)
        *count = 1;
    return s;
}

/* Fails unless p is the first part and its path ends as split models' do, so that the other parts'
 * paths follow from it. */
static ggl_status check_first(const gguf_part *p, int64_t count, ggl_error *err) {
    int64_t no;
    ggl_status s = split_key(p, "split.no", 0, count - 1, &no, err);
    if (s != GGL_OK)
        return s;
    char suffix[64], first[64];
    snprintf(suffix, sizeof suffix, SPLIT_FORMAT, (int)no + 1, (int)count);
    snprintf(first, sizeof first, SPLIT_FORMAT, 1, (int)count);
    size_t n = strlen(p->path);
    bool named = n >= SPLIT_SUFFIX && strcmp(p->path + n - SPLIT_SUFFIX, suffix) == 0;
    if (no > 0 && named)
        return ggl_fail(err, GGL_FORMAT,
                        "is part %" PRId64 " of %" PRId64
                        " of a split model, give its first part: '%.*s%s'",
                        no + 1, count, (int)(n - SPLIT_SUFFIX), p->path, first);
    if (no > 0)
        return ggl_fail(err, GGL_FORMAT,
                        "is part %" PRId64 " of %" PRId64
                        " of a split model, give its first part, whose name ends in '%s'",
                        no + 1, count, first);
    if (!named)
        return ggl_fail(err, GGL_FORMAT,
                        "is the first of %" PRId64
                        " parts; for the others to be found, its name must end in '%s'",
                        count, first);
    return GGL_OK;
}

/* Where the defects of a part go. */
typedef struct part_defects {
    const ggl_gguf_params *params;
    const char *path;
} part_defects;

static void on_part_defect(void *ctx, const char *text) {
    const part_defects *d = ctx;
    ggl_error err = {0};
    (void)ggl_fail(&err, GGL_FORMAT, "%s: %s", d->path, text);
    d->params->defect(d->params->ctx, err.msg);
}

/* Reads a part. Its defects begin with its path, because the caller knows only that of the first. */
static ggl_status split_map(gguf_part *p, const ggl_gguf_params *params, ggl_error *err) {
    part_defects to = {params, p->path};
    ggl_gguf_params own = *params;
    if (params->defect) {
        own.defect = on_part_defect;
        own.ctx = &to;
    }
    return part_map(p, &own, err);
}

/* Opens part i (from 1 on) of `count`. On failure it has no tensors. */
static ggl_status split_open_part(ggl_gguf *f, int i, int count, const ggl_gguf_params *params,
                                  ggl_error *err) {
    char suffix[64];
    const char *first = f->parts[0].path;
    gguf_part *p = &f->parts[i];
    snprintf(suffix, sizeof suffix, SPLIT_FORMAT, i + 1, count);
    ggl_status s = part_name(p, first, strlen(first) - SPLIT_SUFFIX, suffix, err);
    if (s != GGL_OK)
        return ggl_within(err, s, "%s", first);
    f->n_parts = i + 1;
    int64_t x;
    s = split_map(p, params, err);
    if (s != GGL_OK && !p->data)
        s = ggl_fail(err, s, "%s; it is part %d of the %d of this model, and all are needed",
                     err->msg, i + 1, count);
    if (s == GGL_OK)
        s = split_key(p, "split.no", i, i, &x, err);
    if (s == GGL_OK)
        s = split_key(p, "split.count", count, count, &x, err);
    if (s == GGL_OK)
        return s;
    ggl_gguf_head_fini(&p->head); /* another model's tensors may have the same names */
    return ggl_within(err, s, "%s", p->path);
}

/* Opens all parts but the first. Error messages begin with the path of the part. */
static ggl_status split_open(ggl_gguf *f, int count, const ggl_gguf_params *params,
                             ggl_error *err) {
    gguf_part *parts = ggl_calloc((size_t)count, sizeof *parts);
    if (!parts)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory for %d parts", f->parts[0].path, count);
    parts[0] = f->parts[0];
    ggl_free(f->parts);
    f->parts = parts;

    size_t n = f->parts[0].head.n_tensors;
    bool whole = true;
    for (int i = 1; i < count; i++) {
        ggl_status s = split_open_part(f, i, count, params, err);
        whole = whole && s == GGL_OK;
        s = ggl_gguf_defect(params, NULL, s, err);
        if (s != GGL_OK)
            return s;
        n += f->parts[i].head.n_tensors;
    }
    if (!whole)
        return GGL_OK; /* the count would be a second message about the same fault */
    int64_t expected;
    ggl_status s = split_key(&f->parts[0], "split.tensors.count", 0, INT64_MAX, &expected, err);
    if (s == GGL_OK && (uint64_t)expected != n)
        s = ggl_fail(err, GGL_FORMAT,
                     "split.tensors.count is %" PRId64 ", but its %d parts hold %zu tensors",
                     expected, count, n);
    s = ggl_gguf_defect(params, f->parts[0].path, s, err);
    return s == GGL_OK ? s : ggl_within(err, s, "%s", f->parts[0].path);
}

ggl_status ggl_gguf_collect_tensors(ggl_gguf *f, const ggl_gguf_params *params, ggl_error *err) {
    size_t n = 0;
    for (int i = 0; i < f->n_parts; i++)
        n += f->parts[i].head.n_tensors;
    ggl_status s = ggl_index_init(&f->by_name, n, sizeof *f->tensors, GGL_INDEX_STRINGS, err);
    if (s != GGL_OK)
        return s;
    f->tensors = ggl_calloc(n, sizeof *f->tensors);
    if (!f->tensors)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu tensors", n);
    for (int i = 0; i < f->n_parts; i++) {
        gguf_head *h = &f->parts[i].head;
        for (size_t k = 0; k < h->n_tensors; k++) {
            ggl_gguf_tensor *t = &f->tensors[f->n_tensors];
            *t = h->tensors[k];
            t->part = i;
            size_t first = ggl_index_put(&f->by_name, f->tensors, f->n_tensors);
            if (first != f->n_tensors)
                s = ggl_fail(err, GGL_FORMAT, "tensor %zu of %zu: '%s' is already tensor %zu",
                             f->n_tensors + 1, n, ggl_gguf_show(t->name).s, first + 1);
            s = ggl_gguf_defect(params, NULL, s, err);
            if (s != GGL_OK)
                return s;
            f->n_tensors++;
        }
        ggl_free(h->tensors);
        h->tensors = NULL;
    }
    return GGL_OK;
}

static ggl_status file_new(ggl_gguf **out, const char *path, ggl_error *err) {
    *out = NULL;
    ggl_gguf *f = ggl_calloc(1, sizeof *f);
    if (f)
        f->parts = ggl_calloc(1, sizeof *f->parts);
    if (!f || !f->parts || part_name(&f->parts[0], path, strlen(path), "", NULL) != GGL_OK) {
        ggl_gguf_close(f);
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", path);
    }
    f->n_parts = 1;
    *out = f;
    return GGL_OK;
}

static ggl_status file_open(ggl_gguf *f, const ggl_gguf_params *params, ggl_error *err) {
    const gguf_part *p = &f->parts[0];
    int64_t count = 1;
    ggl_status s = part_map(&f->parts[0], params, err);
    if (s == GGL_OK)
        s = split_count(p, &count, err);
    if (s == GGL_OK && count > 1) {
        s = check_first(p, count, err);
        if (s != GGL_OK && params->defect)
            count = 1; /* the part by itself */
        s = ggl_gguf_defect(params, p->path, s, err);
    }
    if (s != GGL_OK)
        return ggl_within(err, s, "%s", p->path);
    if (count > 1)
        s = split_open(f, (int)count, params, err);
    if (s != GGL_OK)
        return s;
    s = ggl_gguf_collect_tensors(f, params, err);
    if (s != GGL_OK)
        return ggl_within(err, s, "%s", f->parts[0].path);
    for (int i = 0; params->lock && !params->meta_only && i < f->n_parts; i++)
        f->lock_failed |= !ggl_os_map_lock(&f->parts[i].map);
    return GGL_OK;
}

ggl_status ggl_gguf_open(ggl_gguf **out, const char *path, const ggl_gguf_params *params,
                         ggl_error *err) {
    ggl_gguf_params own = {.size = sizeof own};
    ggl_error local = {0};
    *out = NULL;
    if (!err) /* defects are passed on in it */
        err = &local;
    ggl_status s = GGL_READ_PARAMS(ggl_gguf_params, &own, params, err);
    if (s == GGL_OK)
        s = file_new(out, path, err);
    if (s == GGL_OK)
        s = file_open(*out, &own, err);
    if (s != GGL_OK) {
        ggl_gguf_close(*out);
        *out = NULL;
    }
    return s;
}

static ggl_status memory_open(ggl_gguf *f, const void *data, size_t size, ggl_error *err) {
    const ggl_gguf_params defaults = {.size = sizeof defaults};
    int64_t count;
    f->parts[0].data = data;
    f->parts[0].size = size;
    ggl_status s = size == 0 ? ggl_fail(err, GGL_FORMAT, "the file is empty")
                             : part_read(&f->parts[0], &defaults, err);
    if (s == GGL_OK)
        s = split_count(&f->parts[0], &count, err);
    if (s == GGL_OK && count > 1)
        s = ggl_fail(err, GGL_UNSUPPORTED,
                     "is one of %" PRId64
                     " parts of a split model, which can be opened only from files",
                     count);
    return s == GGL_OK ? ggl_gguf_collect_tensors(f, &defaults, err) : s;
}

ggl_status ggl_gguf_open_memory(ggl_gguf **out, const void *data, size_t size, const char *name,
                                ggl_error *err) {
    ggl_status s = file_new(out, name, err);
    if (s != GGL_OK)
        return s;
    s = memory_open(*out, data, size, err);
    if (s != GGL_OK) {
        ggl_gguf_close(*out);
        *out = NULL;
        return ggl_within(err, s, "%s", name);
    }
    return GGL_OK;
}

void ggl_gguf_close(ggl_gguf *f) {
    if (!f)
        return;
    for (int i = 0; i < f->n_parts; i++)
        part_close(&f->parts[i]);
    ggl_free(f->parts);
    ggl_free(f->tensors);
    ggl_index_fini(&f->by_name);
    ggl_free(f->composed);
    ggl_free(f->changes);
    if (f->release)
        f->release(f->owner);
    ggl_free(f);
}

uint32_t ggl_gguf_version(const ggl_gguf *f) {
    return f->parts[0].head.version;
}

bool ggl_gguf_lock_failed(const ggl_gguf *f) {
    return f->lock_failed;
}

int ggl_gguf_n_parts(const ggl_gguf *f) {
    return f->n_parts;
}

const void *ggl_gguf_part(const ggl_gguf *f, int part, size_t *size) {
    if (part < 0 || part >= f->n_parts)
        return NULL;
    if (size)
        *size = f->parts[part].size;
    return f->parts[part].data;
}

size_t ggl_gguf_data_at(const ggl_gguf *f, int part) {
    return part >= 0 && part < f->n_parts ? f->parts[part].head.data_at : 0;
}

bool ggl_gguf_mapped(const ggl_gguf *f, int part) {
    return part >= 0 && part < f->n_parts && f->parts[part].mapped;
}

void ggl_gguf_drop(const ggl_gguf *f, const void *data, size_t size) {
    const uintptr_t at = (uintptr_t)data;
    for (int i = 0; i < f->n_parts && size > 0; i++) {
        const uintptr_t begin = (uintptr_t)f->parts[i].data;
        const size_t most = f->parts[i].size;
        if (f->parts[i].mapped && at >= begin && at - begin < most && size <= most - (at - begin))
            ggl_os_map_drop(data, size);
    }
}

/* --- identity --------------------------------------------------------------------------------- */

/* FNV-1a: detects accidental changes, not malicious ones. */
static uint64_t digest(uint64_t h, const void *data, size_t n) {
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

/* Adds some of the tensor's data to the digest h: another model with the same shapes may have the
 * same path, size and time (cp -p, archives with fixed times), but hardly the same first, middle
 * and last bytes in all tensors. */
static uint64_t digest_sample(uint64_t h, const ggl_gguf_tensor *t) {
    const char *data = t->data;
    const size_t n = t->size < 64 ? t->size : 64, at[] = {0, (t->size - n) / 2, t->size - n};
    for (int i = 0; data && i < 3; i++)
        h = digest(h, data + at[i], n);
    return h;
}

/* Returns where the tensor's data is in its part's bytes, or in its file if it has been made of what is there. */
static int64_t place_of(const gguf_part *p, const ggl_gguf_tensor *t) {
    const uintptr_t begin = (uintptr_t)p->data, at = (uintptr_t)t->data;
    return at >= begin && at - begin < p->size ? (int64_t)(at - begin) : (int64_t)t->offset;
}

static uint64_t digest_tensor(uint64_t h, const ggl_gguf *f, const ggl_gguf_tensor *t) {
    int64_t word[4 + GGL_MAX_DIMS] = {(int64_t)t->name.n, t->type, t->part, 0};
    if (t->data)
        word[3] = place_of(&f->parts[t->part], t);
    memcpy(word + 4, t->ne, sizeof t->ne);
    return digest_sample(digest(digest(h, t->name.s, t->name.n), word, sizeof word), t);
}

bool ggl_gguf_identify(const ggl_gguf *f, ggl_gguf_identity *out) {
    *out = (ggl_gguf_identity){0};
    if (!f->parts[0].is_file)
        return false;
    out->tensors = digest(0xcbf29ce484222325u, f->composed, f->composed_size);
    out->tensors = digest(out->tensors, f->changes, f->changes_size);
    for (int i = 0; i < f->n_parts; i++) {
        const gguf_part *p = &f->parts[i];
        const int64_t word[] = {(int64_t)p->size, p->modified};
        out->size += p->size;
        out->modified = p->modified > out->modified ? p->modified : out->modified;
        out->tensors = digest(out->tensors, word, sizeof word);
    }
    for (size_t i = 0; i < f->n_tensors; i++)
        out->tensors = digest_tensor(out->tensors, f, &f->tensors[i]);
    return true;
}

uint64_t ggl_gguf_digest(const ggl_gguf *f) {
    const gguf_head *head = &f->parts[0].head;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < head->n_values; i++) {
        const gguf_value *v = &head->values[i];
        const int64_t word[] = {(int64_t)v->pub.key.n, v->pub.type, (int64_t)v->size};
        h = digest(h, word, sizeof word);
        h = digest(h, v->pub.key.s, v->pub.key.n);
        h = digest(h, v->data, v->size);
    }
    for (size_t i = 0; i < f->n_tensors; i++) {
        const ggl_gguf_tensor *t = &f->tensors[i];
        const int64_t word[] = {(int64_t)t->name.n, t->type};
        h = digest(h, word, sizeof word);
        h = digest(h, t->name.s, t->name.n);
        h = digest_sample(digest(h, t->ne, sizeof t->ne), t);
    }
    return h;
}
