#include "prompt_cache_file.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/digest.h"
#include "ggl/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/show.h"

enum { VERSION = 1, FIXED = 40, ALIGN = 64, BEGINNING = 256, ROW = 4 * 8 };

static const char magic[8] = {'g', 'g', 'l', '-', 'p', 'm', 't', '\n'};

typedef struct fixed {
    char magic[8];
    uint32_t version, order;
    uint64_t file_size, head_size, sum;
} fixed;
_Static_assert(sizeof(fixed) == FIXED, "without gaps");
_Static_assert(sizeof(prompt_cache_picture) == LLM_MEDIA_ID + 16, "without gaps");

static size_t round_up(size_t x, size_t to) {
    return (x + to - 1) / to * to;
}

/* A digest of the first bytes of an entry, its header among them. */
static uint64_t beginning(const void *data, size_t size) {
    return llm_digest(LLM_DIGEST_START, data, size < BEGINNING ? size : BEGINNING);
}

/* --- writing ---------------------------------------------------------------------------------- */

typedef struct bytes {
    char *at; /* NULL: bytes are only counted */
    size_t n;
} bytes;

/* Appends n bytes, and zeros up to a multiple of 8. The memory is zeroed. */
static void put(bytes *b, const void *p, size_t n) {
    if (b->at && n > 0)
        memcpy(b->at + b->n, p, n);
    b->n += round_up(n, 8);
}

static void put_number(bytes *b, uint64_t x) {
    put(b, &x, sizeof x);
}

static void put_string(bytes *b, const char *s, size_t n) {
    put_number(b, n);
    put(b, s, n);
}

static void put_key(bytes *b, const prompt_cache_key *k) {
    put_string(b, k->version, strlen(k->version));
    put_string(b, k->model.s, k->model.n);
    put_string(b, k->also.s, k->also.n);
    put_number(b, k->identity.size);
    put_number(b, (uint64_t)k->identity.modified);
    put_number(b, k->identity.tensors);
    put_number(b, k->graph);
    put_number(b, k->rings);
    put_number(b, k->placement);
}

/* Entry k of those that are written; the states come behind the others. */
static prompt_cache_entry entry_at(const prompt_cache_content *c, size_t k) {
    const size_t n = (size_t)c->n_entries;
    if (k < n)
        return c->entry[k];
    const llm_prompt_states *x = &c->state[k - n];
    return (prompt_cache_entry){(uint64_t)x->n, x->data, x->size};
}

/* Appends how many entries follow, and the rows of these n, from number `first` on; they lie at *at and behind it. */
static void put_rows(bytes *b, const prompt_cache_content *c, size_t first, size_t n, size_t *at) {
    put_number(b, n);
    for (size_t k = first; k < first + n; k++) {
        const prompt_cache_entry e = entry_at(c, k);
        put_number(b, e.n);
        put_number(b, *at);
        put_number(b, e.size);
        put_number(b, beginning(e.data, e.size));
        *at = round_up(*at + e.size, ALIGN);
    }
}

/* Appends the head without its digest. head_size 0: the bytes are only counted. */
static void put_head(bytes *b, const prompt_cache_key *k, const prompt_cache_content *c,
                     size_t head_size) {
    fixed f = {.version = VERSION, .order = 0x01020304, .head_size = head_size};
    const size_t n_entries = (size_t)c->n_entries;
    size_t at = head_size;
    memcpy(f.magic, magic, sizeof magic);
    for (size_t i = 0; i < n_entries + c->n_states; i++)
        at = round_up(at + entry_at(c, i).size, ALIGN);
    f.file_size = at;
    put(b, &f, sizeof f);
    put_key(b, k);
    put_number(b, c->n);
    put(b, c->id, c->n * sizeof *c->id);
    at = head_size;
    put_rows(b, c, 0, n_entries, &at);
    put_rows(b, c, n_entries, c->n_states, &at);
    put_number(b, c->n_pictures);
    put(b, c->picture, c->n_pictures * sizeof *c->picture);
}

void llm_prompt_cache_seal(void *data, size_t size) {
    fixed f;
    if (size < FIXED)
        return;
    memcpy(&f, data, FIXED);
    const size_t end = f.head_size < size ? (size_t)f.head_size : size;
    f.sum = llm_digest(LLM_DIGEST_START, (char *)data + FIXED, end < FIXED ? 0 : end - FIXED);
    memcpy(data, &f, FIXED);
}

static ggl_status write_all(ggl_new_file *f, const char *head, size_t head_size,
                            const prompt_cache_content *c) {
    static const char zeros[ALIGN];
    FILE *out = ggl_new_file_stream(f);
    bool ok = fwrite(head, 1, head_size, out) == head_size;
    for (size_t k = 0; k < (size_t)c->n_entries + c->n_states && ok; k++) {
        const prompt_cache_entry e = entry_at(c, k);
        const size_t n = e.size, gap = round_up(n, ALIGN) - n;
        ok = fwrite(e.data, 1, n, out) == n && fwrite(zeros, 1, gap, out) == gap;
    }
    if (!ok)
        ggl_new_file_note(f);
    return ok ? GGL_OK : GGL_IO;
}

ggl_status llm_prompt_cache_write(const char *path, const prompt_cache_key *key,
                                  const prompt_cache_content *content, ggl_error *err) {
    bytes b = {0};
    put_head(&b, key, content, 0);
    const size_t head_size = round_up(b.n, ALIGN);
    b = (bytes){.at = ggl_calloc(head_size, 1)};
    if (!b.at)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", path);
    put_head(&b, key, content, head_size);
    llm_prompt_cache_seal(b.at, head_size);
    ggl_new_file *f;
    ggl_status st = ggl_new_file_open(&f, path, err);
    if (st == GGL_OK) {
        (void)write_all(f, b.at, head_size, content); /* the commit reports a failure */
        st = ggl_new_file_commit(f, err);
    }
    ggl_free(b.at);
    return st;
}

/* --- reading ---------------------------------------------------------------------------------- */

typedef struct reader {
    const char *p;
    size_t n, at;
    bool bad; /* it went past the end; all further numbers are 0 */
} reader;

static const char *take(reader *r, uint64_t n) {
    const size_t left = r->n - r->at;
    if (r->bad || n > left || round_up((size_t)n, 8) > left) {
        r->bad = true;
        return NULL;
    }
    const char *p = r->p + r->at;
    r->at += round_up((size_t)n, 8);
    return p;
}

static uint64_t take_number(reader *r) {
    uint64_t x = 0;
    const char *p = take(r, sizeof x);
    if (p)
        memcpy(&x, p, sizeof x);
    return x;
}

static ggl_str take_string(reader *r) {
    const uint64_t n = take_number(r);
    const char *p = take(r, n);
    return p ? (ggl_str){p, (size_t)n} : (ggl_str){"", 0};
}

static ggl_status damaged(ggl_error *err) {
    return ggl_fail(err, GGL_FORMAT, "the prompt cache is damaged");
}

bool llm_prompt_cache_is(const void *data, size_t size) {
    return size == 0 || (size >= sizeof magic && memcmp(data, magic, sizeof magic) == 0);
}

static ggl_status check_fixed(const void *data, size_t size, fixed *f, ggl_error *err) {
    if (!llm_prompt_cache_is(data, size))
        return ggl_fail(err, GGL_FORMAT, "this file is not a prompt cache");
    if (size < FIXED)
        return ggl_fail(err, GGL_FORMAT, "the prompt cache is cut off after %zu bytes", size);
    memcpy(f, data, FIXED);
    if (f->order != 0x01020304 || f->version != VERSION)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the prompt cache has another format (%" PRIu32 ", not %d), or comes from "
                        "a machine with another byte order",
                        f->version, VERSION);
    if (f->file_size != size)
        return ggl_fail(err, GGL_FORMAT,
                        "the prompt cache has %zu bytes instead of %" PRIu64 ": it is damaged",
                        size, f->file_size);
    if (f->head_size < FIXED || f->head_size > size ||
        f->sum !=
            llm_digest(LLM_DIGEST_START, (const char *)data + FIXED, (size_t)f->head_size - FIXED))
        return damaged(err);
    return GGL_OK;
}

bool llm_prompt_cache_model(const void *data, size_t size, ggl_str *model) {
    fixed f;
    if (check_fixed(data, size, &f, NULL) != GGL_OK)
        return false;
    reader r = {.p = data, .n = (size_t)f.head_size, .at = FIXED};
    (void)take_string(&r); /* the program's version */
    *model = take_string(&r);
    return !r.bad;
}

/* Says what the file was made with instead of this. */
static ggl_status differs(ggl_error *err, const char *what, ggl_str theirs, ggl_str ours) {
    char a[400], b[200];
    ggl_show(a, sizeof a / 2, theirs.s, theirs.n);
    ggl_show(b, sizeof b, ours.s, ours.n);
    return ggl_fail(err, GGL_UNSUPPORTED, "the prompt cache was made with another %s: %s; now: %s",
                    what, theirs.n ? a : "none", ours.n ? b : "none");
}

static bool same_text(ggl_str a, ggl_str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.s, b.s, a.n) == 0);
}

static ggl_status check_key(reader *r, const prompt_cache_key *key, ggl_error *err) {
    const ggl_str version = take_string(r), model = take_string(r), also = take_string(r);
    ggl_gguf_identity id = {.size = take_number(r)};
    id.modified = (int64_t)take_number(r);
    id.tensors = take_number(r);
    const uint64_t graph = take_number(r), rings = take_number(r), placement = take_number(r);
    if (r->bad)
        return damaged(err);
    if (!ggl_str_is(version, key->version))
        return differs(err, "version of this program", version,
                       (ggl_str){key->version, strlen(key->version)});
    const bool same_model = id.size == key->identity.size && id.tensors == key->identity.tensors &&
                            id.modified == key->identity.modified;
    if (!same_model && same_text(model, key->model))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the prompt cache was made with another model of this name or with other "
                        "overridden keys, or the model's file has changed since");
    if (!same_model)
        return differs(err, "model", model, key->model);
    if (!same_text(also, key->also))
        return differs(err, "setting", also, key->also);
    if (graph != key->graph)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "the prompt cache was made with another descriptor, with other numbers of its control "
            "vectors, with a context (-c) for which this one makes another graph, with or without "
            "an eye or ear (--mmproj), or with rows divided otherwise (--split rows)");
    if (rings != key->rings)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "the prompt cache was made with another -ub (or -c), on which the length of "
            "this model's windows in memory depends");
    if (placement != key->placement)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the prompt cache was made on other devices, with another distribution of "
                        "the layers, or with other types of the cache (-ctk, -ctv) that run "
                        "elsewhere");
    return GGL_OK;
}

/* Reads the row of an entry, and finds its bytes. */
static ggl_status take_row(reader *r, const prompt_cache_content *c, prompt_cache_entry *e,
                           ggl_error *err) {
    e->n = take_number(r);
    const uint64_t at = take_number(r), size = take_number(r), sum = take_number(r);
    if (r->bad || e->n > c->n || at % ALIGN || at < FIXED || at > c->file_size ||
        size > c->file_size - at)
        return damaged(err);
    e->data = c->file + at;
    e->size = (size_t)size;
    return beginning(e->data, e->size) == sum ? GGL_OK : damaged(err);
}

/* Checks that the states are of ever more tokens and lie one after another, so that reading all of them takes no longer than the file is. */
static ggl_status check_states(const prompt_cache_content *c, ggl_error *err) {
    uint64_t n = 0;
    const char *end = c->file;
    for (size_t i = 0; i < c->n_states; i++) {
        prompt_cache_entry e = {0};
        const ggl_status st = llm_prompt_cache_read_state(c, i, &e, err);
        if (st != GGL_OK)
            return st;
        if (e.n <= n || (const char *)e.data < end)
            return damaged(err);
        n = e.n;
        end = (const char *)e.data + e.size;
    }
    return GGL_OK;
}

ggl_status llm_prompt_cache_many_pictures(ggl_error *err) {
    return ggl_fail(err, GGL_LIMIT, "a prompt cache has at most %d pictures and sounds",
                    (int)LLM_PROMPT_CACHE_PICTURES);
}

/* Reads what heads of older versions do not have. */
static ggl_status take_more(reader *r, prompt_cache_content *c, ggl_error *err) {
    if (r->n - r->at < sizeof(uint64_t))
        return GGL_OK;
    const uint64_t n_states = take_number(r);
    c->state_row = take(r, n_states <= r->n / ROW ? n_states * ROW : r->n);
    const uint64_t n_pictures = r->n - r->at < sizeof(uint64_t) ? 0 : take_number(r);
    c->picture = (const prompt_cache_picture *)(const void *)take(
        r, n_pictures <= r->n / sizeof *c->picture ? n_pictures * sizeof *c->picture : r->n);
    c->n_states = (size_t)n_states;
    c->n_pictures = (size_t)n_pictures;
    if (n_pictures > LLM_PROMPT_CACHE_PICTURES && !r->bad)
        return llm_prompt_cache_many_pictures(err);
    return r->bad ? damaged(err) : check_states(c, err);
}

ggl_status llm_prompt_cache_read(prompt_cache_content *out, const prompt_cache_key *key,
                                 const void *data, size_t size, ggl_error *err) {
    fixed f;
    *out = (prompt_cache_content){0};
    ggl_status st = check_fixed(data, size, &f, err);
    if (st != GGL_OK)
        return st;
    reader r = {.p = data, .n = (size_t)f.head_size, .at = FIXED};
    st = check_key(&r, key, err);
    if (st != GGL_OK)
        return st;
    const uint64_t n = take_number(&r);
    out->id = (const int32_t *)(const void *)take(&r, n <= size ? n * sizeof *out->id : size);
    out->n = (size_t)n;
    const uint64_t n_entries = take_number(&r);
    if (r.bad || n_entries < 1 || n_entries > LLM_PROMPT_CACHE_ENTRIES)
        return damaged(err);
    out->file = data;
    out->file_size = size;
    for (uint64_t i = 0; i < n_entries && st == GGL_OK; i++)
        st = take_row(&r, out, &out->entry[out->n_entries++], err);
    if (st == GGL_OK)
        st = take_more(&r, out, err);
    return st;
}

ggl_status llm_prompt_cache_read_state(const prompt_cache_content *c, size_t i,
                                       prompt_cache_entry *out, ggl_error *err) {
    reader r = {.p = c->state_row + i * ROW, .n = ROW};
    return take_row(&r, c, out, err);
}
