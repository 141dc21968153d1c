#include "llm/internal/prompt_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/digest.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_thread.h"
#include "ggl/internal/params.h"
#include "ggl/internal/text.h"

enum {
    MOST_FILES = 1 << 16, /* that are looked at */
    OLD_SECONDS = 3600,   /* after which an unfinished file is left by a writer that was killed */
    RECENT_SECONDS =
        2, /* a change of the folder that is not older may be followed by one of the same time */
    DIGITS = 16
};

static const int64_t SECOND = 1000000000; /* in ns */
static const char ending[] = ".prompt";

/* A cache: the name says which model made it, how many tokens it has, and their digest. */
typedef struct known {
    int64_t n;
    uint64_t tokens;
} known;

struct llm_prompt_folder {
    llm_prompt_folder_params p; /* path is owned */
    llm_prompt_cache *cache;
    uint64_t made_by;

    /* On the engine's thread: the files of this model, in order. */
    known *file;
    size_t n_files, cap;
    int64_t changed; /* of the folder, in ns, when it was listed */
    bool is_listed;
    bool has_told; /* that a beginning is too large to be saved */

    os_mutex lock; /* of all below */
    os_cond has_news;
    os_thread writer;
    bool has_writer, ends;
    llm_prompt_copy *copy; /* to be written; NULL: the writer is idle */
    known writes;          /* what it is */
    llm_prompt_folder_stats stats;
};

/* --- names ------------------------------------------------------------------------------------ */

/* Returns the path of a name in the folder; NULL: out of memory. */
static char *path_of(const llm_prompt_folder *f, const char *name) {
    const size_t size = strlen(f->p.path) + strlen(name) + 2;
    char *path = ggl_calloc(size, 1);
    if (path)
        snprintf(path, size, "%s/%s", f->p.path, name);
    return path;
}

static char *path_of_cache(const llm_prompt_folder *f, known k) {
    char name[96];
    snprintf(name, sizeof name, "%016" PRIx64 "-%" PRId64 "-%016" PRIx64 "%s", f->made_by, k.n,
             k.tokens, ending);
    return path_of(f, name);
}

/* Reads 16 hexadecimal digits and what follows them. False: it is something else. */
static bool read_digits(const char **s, char then, uint64_t *out) {
    char *end;
    if (strspn(*s, "0123456789abcdef") != DIGITS || (*s)[DIGITS] != then)
        return false;
    *out = strtoull(*s, &end, 16);
    *s = end;
    return true;
}

/* Reads a name. False: it is no cache's. */
static bool read_name(const char *name, uint64_t *made_by, known *k) {
    char *end;
    if (!read_digits(&name, '-', made_by))
        return false;
    name++;
    const size_t n = strspn(name, "0123456789");
    if (n == 0 || n > 12 || name[n] != '-')
        return false;
    k->n = (int64_t)strtoull(name, &end, 10);
    name = end + 1;
    return read_digits(&name, '.', &k->tokens) && strcmp(name, ending) == 0;
}

/* True for the name of a cache that is being written (ggl/internal/file.h). */
static bool is_unfinished(const char *name) {
    char whole[128];
    uint64_t made_by;
    known k;
    const char *at = strstr(name, ".tmp-");
    if (!at || (size_t)(at - name) >= sizeof whole)
        return false;
    memcpy(whole, name, (size_t)(at - name));
    whole[at - name] = '\0';
    return read_name(whole, &made_by, &k);
}

/* --- what is there ---------------------------------------------------------------------------- */

static int in_order(const void *a, const void *b) {
    const known *x = a, *y = b;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return (x->tokens > y->tokens) - (x->tokens < y->tokens);
}

static void list(llm_prompt_folder *f) {
    os_folder *d = ggl_os_folder_open(f->p.path);
    f->n_files = 0;
    for (const char *e; d && f->n_files < MOST_FILES && (e = ggl_os_folder_next(d));) {
        uint64_t made_by;
        known k;
        if (read_name(e, &made_by, &k) && made_by == f->made_by &&
            ggl_grow(&f->file, &f->cap, f->n_files + 1, sizeof *f->file))
            f->file[f->n_files++] = k;
    }
    if (d)
        ggl_os_folder_close(d);
    if (f->n_files > 0)
        qsort(f->file, f->n_files, sizeof *f->file, in_order);
}

/* Lists the files again if the folder may have changed. */
static void look(llm_prompt_folder *f) {
    os_stat s;
    if (!ggl_os_stat(f->p.path, &s)) {
        f->n_files = 0;
        f->is_listed = false;
        return;
    }
    if (f->is_listed && f->changed == s.modified)
        return;
    f->changed = s.modified;
    f->is_listed = (ggl_os_time() - s.modified) / SECOND > RECENT_SECONDS;
    list(f);
}

static bool is_known(const llm_prompt_folder *f, known k) {
    return f->n_files > 0 && bsearch(&k, f->file, f->n_files, sizeof k, in_order);
}

/* Goes on with a digest by a page of tokens. *ok becomes false if one of them stands for a row of a picture, which only this process
 * knows: caches end before it. */
static uint64_t add_page(uint64_t h, const int32_t *token, int64_t n_vocab, bool *ok) {
    for (int i = 0; i < GGL_PAGE; i++)
        *ok &= token[i] >= 0 && token[i] < n_vocab;
    return llm_digest(h, token, GGL_PAGE * sizeof *token);
}

int64_t llm_prompt_folder_find(llm_prompt_folder *f, const int32_t *token, int64_t n,
                               int64_t n_least) {
    const int64_t n_vocab = llm_session_n_vocab(f->p.cache.session);
    known k = {.tokens = LLM_DIGEST_START};
    int64_t best = 0;
    bool ok = true;
    if (n < n_least || n < LLM_PROMPT_FOLDER_LEAST)
        return 0;
    look(f);
    for (k.n = GGL_PAGE; k.n <= n && f->n_files > 0; k.n += GGL_PAGE) {
        k.tokens = add_page(k.tokens, token + k.n - GGL_PAGE, n_vocab, &ok);
        if (!ok)
            break;
        if (k.n >= n_least && is_known(f, k))
            best = k.n;
    }
    return best;
}

static known name_tokens(const int32_t *token, int64_t n) {
    known k = {.n = n, .tokens = LLM_DIGEST_START};
    bool ok = true;
    for (int64_t i = 0; i < n; i += GGL_PAGE)
        k.tokens = add_page(k.tokens, token + i, INT32_MAX, &ok);
    return k;
}

/* --- loading ---------------------------------------------------------------------------------- */

static void report(const llm_prompt_folder *f, const char *sentence) {
    if (f->p.report)
        f->p.report(f->p.ctx, sentence);
}

/* Counts a failure, and reports it. */
static void fail(llm_prompt_folder *f, const ggl_error *err) {
    ggl_os_mutex_lock(&f->lock);
    f->stats.n_failed++;
    ggl_os_mutex_unlock(&f->lock);
    report(f, err->msg);
}

/* Forgets a cache that is of no use. One that is damaged is removed, so that it can be written again. */
static void forget(llm_prompt_folder *f, known k, const char *path, ggl_status why) {
    known *at = bsearch(&k, f->file, f->n_files, sizeof k, in_order);
    if (at) {
        memmove(at, at + 1, (size_t)(f->file + f->n_files - at - 1) * sizeof *at);
        f->n_files--;
    }
    if (why == GGL_FORMAT || why == GGL_UNSUPPORTED)
        (void)ggl_os_remove(path);
}

/* Reads a file into memory. */
static ggl_status read_file(const llm_prompt_folder *f, const char *path, ggl_file_map *map,
                            ggl_error *err) {
    const ggl_file_how how = {.no_mmap = true};
    os_stat s;
    if (!ggl_os_stat(path, &s))
        return ggl_fail(err, GGL_NOT_FOUND, "%s: %s", path, strerror(errno));
    if (s.kind != OS_FILE)
        return ggl_fail(err, GGL_IO, "%s: this is no file", path);
    if ((uint64_t)s.size > f->p.n_copy_bytes)
        return ggl_fail(err, GGL_IO, "%s: it has %" PRIu64 " bytes; at most %" PRIu64 " are read",
                        path, (uint64_t)s.size, f->p.n_copy_bytes);
    return ggl_file_map_open_how(map, path, &how, err);
}

static ggl_status restore(llm_prompt_folder *f, int slot, const char *path, const int32_t *token,
                          int64_t n, int32_t **id, ggl_error *err) {
    ggl_file_map map;
    size_t n_id, n_all;
    ggl_status st = read_file(f, path, &map, err);
    if (st != GGL_OK)
        return st;
    llm_prompt_cache_set_slot(f->cache, slot);
    st = llm_prompt_cache_restore_bytes(f->cache, map.data, map.size, id, &n_id, &n_all, err);
    ggl_file_map_close(&map);
    if (st != GGL_OK)
        return ggl_within(err, st, "%s", path);
    if ((int64_t)n_id == n && memcmp(*id, token, n_id * sizeof *token) == 0)
        return GGL_OK;
    ggl_free(*id);
    *id = NULL;
    st = llm_session_clear(f->p.cache.session, slot, err);
    return st != GGL_OK
               ? st
               : ggl_fail(err, GGL_FORMAT, "%s: its tokens are not those of its name", path);
}

ggl_status llm_prompt_folder_load(llm_prompt_folder *f, int slot, const int32_t *token, int64_t n,
                                  int32_t **id, ggl_error *err) {
    const known k = name_tokens(token, n);
    char *path = path_of_cache(f, k);
    *id = NULL;
    if (!path)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    const ggl_status st = restore(f, slot, path, token, n, id, err);
    if (st == GGL_OK) {
        (void)ggl_os_touch(path); /* now: its last use */
        ggl_os_mutex_lock(&f->lock);
        f->stats.n_loaded++;
        f->stats.n_loaded_tokens += n;
        ggl_os_mutex_unlock(&f->lock);
    } else if (st != GGL_LIMIT) {
        forget(f, k, path, st);
        if (st != GGL_NOT_FOUND) /* another program has removed it */
            fail(f, err);
    }
    ggl_free(path);
    return st;
}

/* --- saving ----------------------------------------------------------------------------------- */

int64_t llm_prompt_folder_wants(llm_prompt_folder *f, const int32_t *token, int64_t n) {
    const int64_t n_vocab = llm_session_n_vocab(f->p.cache.session);
    known k = {.tokens = LLM_DIGEST_START};
    bool ok = n >= LLM_PROMPT_FOLDER_LEAST, more = ok;
    while (more && k.n + GGL_PAGE <= n) {
        const uint64_t h = add_page(k.tokens, token + k.n, n_vocab, &more);
        if (more)
            k = (known){k.n + GGL_PAGE, h};
    }
    ok &= k.n >= LLM_PROMPT_FOLDER_LEAST;
    if (!ok)
        return 0;
    ggl_os_mutex_lock(&f->lock);
    ok = !f->copy && !f->ends;
    ggl_os_mutex_unlock(&f->lock);
    if (!ok)
        return 0;
    look(f);
    return is_known(f, k) ? 0 : k.n;
}

/* Says once that a beginning is too large to be saved. */
static void tell_too_large(llm_prompt_folder *f, int64_t n, size_t size) {
    const double mib = 1048576, all = (double)f->p.n_bytes / mib,
                 one = (double)f->p.n_copy_bytes / mib;
    char text[512];
    if (f->has_told)
        return;
    f->has_told = true;
    snprintf(text, sizeof text,
             "%s: %" PRId64 " tokens that prompts share need %.2f MiB, so they are not saved: a "
             "file may have %.2f MiB (of %.2f MiB for all)",
             f->p.path, n, (double)size / mib, one, all);
    report(f, text);
}

void llm_prompt_folder_save(llm_prompt_folder *f, int slot, const int32_t *token, int64_t n) {
    ggl_error err;
    llm_prompt_copy *copy;
    ggl_os_mutex_lock(&f->lock);
    const bool is_idle = !f->copy && !f->ends;
    ggl_os_mutex_unlock(&f->lock);
    if (!is_idle)
        return;
    const size_t size = llm_session_save_size(f->p.cache.session, slot);
    if (size > f->p.n_copy_bytes) {
        tell_too_large(f, n, size);
        return;
    }
    llm_prompt_cache_set_slot(f->cache, slot);
    const ggl_status st = llm_prompt_copy_new(&copy, f->cache, token, (size_t)n, &err);
    if (st == GGL_UNSUPPORTED)
        return; /* the slot went past the place, and cannot be cut */
    if (st != GGL_OK) {
        fail(f, &err);
        return;
    }
    ggl_os_mutex_lock(&f->lock);
    f->copy = copy;
    f->writes = name_tokens(token, n);
    ggl_os_cond_broadcast(&f->has_news);
    ggl_os_mutex_unlock(&f->lock);
}

/* --- the writer's thread ---------------------------------------------------------------------- */

typedef struct old_file {
    char *path;
    uint64_t size;
    int64_t used; /* ns since 1970 */
} old_file;

static int by_use(const void *a, const void *b) {
    const int64_t x = ((const old_file *)a)->used, y = ((const old_file *)b)->used;
    return (x > y) - (x < y);
}

/* Looks at a file of the folder; removes one that was left unfinished. False: it is no cache, or is gone. */
static bool examine(llm_prompt_folder *f, const char *name, time_t now, old_file *out) {
    uint64_t made_by;
    known k;
    os_stat s;
    const bool is_cache = read_name(name, &made_by, &k);
    if (!is_cache && !is_unfinished(name))
        return false;
    char *path = path_of(f, name);
    bool ok = path && ggl_os_stat_link(path, &s) && s.kind == OS_FILE;
    if (ok && !is_cache && now - s.modified / SECOND > OLD_SECONDS)
        ok = !ggl_os_remove(path);
    if (ok && is_cache) {
        *out = (old_file){path, s.size, s.modified};
        return true;
    }
    ggl_free(path);
    return false;
}

/* Removes the caches, of all models, that were not used for the longest time, until the others fit. */
static void remove_old(llm_prompt_folder *f) {
    old_file *file = NULL;
    size_t n = 0, cap = 0;
    uint64_t sum = 0;
    int64_t n_removed = 0;
    const time_t now = time(NULL);
    os_folder *d = ggl_os_folder_open(f->p.path);
    for (const char *e; d && n < MOST_FILES && (e = ggl_os_folder_next(d));)
        if (ggl_grow(&file, &cap, n + 1, sizeof *file) && examine(f, e, now, &file[n]))
            sum += file[n++].size;
    if (d)
        ggl_os_folder_close(d);
    if (n > 0)
        qsort(file, n, sizeof *file, by_use);
    for (size_t i = 0; i < n; i++) {
        if (sum > f->p.n_bytes) {
            n_removed += ggl_os_remove(file[i].path);
            sum -= file[i].size;
        }
        ggl_free(file[i].path);
    }
    ggl_free(file);
    ggl_os_mutex_lock(&f->lock);
    f->stats.n_removed += n_removed;
    ggl_os_mutex_unlock(&f->lock);
}

static void write_one(llm_prompt_folder *f, const llm_prompt_copy *copy, known k) {
    ggl_error err;
    char *path = path_of_cache(f, k);
    const ggl_status st =
        path ? llm_prompt_copy_write(copy, path, &err) : ggl_fail(&err, GGL_NOMEM, "out of memory");
    ggl_free(path);
    if (st != GGL_OK) {
        fail(f, &err);
        return;
    }
    ggl_os_mutex_lock(&f->lock);
    f->stats.n_saved++;
    ggl_os_mutex_unlock(&f->lock);
    remove_old(f);
}

static void *run_writer(void *arg) {
    llm_prompt_folder *f = arg;
    ggl_os_mutex_lock(&f->lock);
    while (!f->ends || f->copy) {
        llm_prompt_copy *copy = f->copy;
        const known k = f->writes;
        if (!copy) {
            ggl_os_cond_wait(&f->has_news, &f->lock);
            continue;
        }
        ggl_os_mutex_unlock(&f->lock);
        write_one(f, copy, k);
        llm_prompt_copy_free(copy);
        ggl_os_mutex_lock(&f->lock);
        f->copy = NULL;
        ggl_os_cond_broadcast(&f->has_news);
    }
    ggl_os_mutex_unlock(&f->lock);
    return NULL;
}

/* --- beginning and end ------------------------------------------------------------------------ */

static ggl_status check(const llm_prompt_folder_params *p, ggl_error *err) {
    os_stat s;
    if (!p->path || !ggl_os_stat(p->path, &s))
        return ggl_fail(err, GGL_USAGE, "%s: %s", p->path ? p->path : "no path of a folder",
                        strerror(p->path ? errno : EINVAL));
    if (s.kind != OS_FOLDER)
        return ggl_fail(err, GGL_USAGE, "%s is not a folder", p->path);
    return ggl_os_may_use_folder(p->path)
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "%s cannot be read and written: %s", p->path,
                          strerror(errno));
}

static ggl_status init(llm_prompt_folder *f, const llm_prompt_folder_params *p, ggl_error *err) {
    enum { DEFAULT_GIB = 4, SHARE = 8 };
    f->p = *p;
    f->p.path = ggl_copy_text(p->path);
    f->p.n_bytes = p->n_bytes > 0 ? p->n_bytes : (uint64_t)DEFAULT_GIB << 30;
    f->p.n_copy_bytes = p->n_copy_bytes > 0 ? p->n_copy_bytes : f->p.n_bytes / SHARE;
    if (f->p.n_copy_bytes > f->p.n_bytes)
        f->p.n_copy_bytes = f->p.n_bytes;
    if (!f->p.path)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    llm_prompt_cache_params own = p->cache;
    own.slot = 0;
    const ggl_status st = llm_prompt_cache_new(&f->cache, &own, err);
    if (st != GGL_OK)
        return st;
    f->made_by = llm_prompt_cache_digest(f->cache);
    f->has_writer = ggl_os_thread_start(&f->writer, run_writer, f, 0);
    return f->has_writer ? GGL_OK : ggl_fail(err, GGL_NOMEM, "no thread could be started");
}

ggl_status llm_prompt_folder_new(llm_prompt_folder **out, const llm_prompt_folder_params *params,
                                 ggl_error *err) {
    llm_prompt_folder_params own = {.size = sizeof own};
    *out = NULL;
    ggl_status st = GGL_READ_PARAMS(llm_prompt_folder_params, &own, params, err);
    if (st == GGL_OK)
        st = check(&own, err);
    if (st != GGL_OK)
        return st;
    llm_prompt_folder *f = ggl_calloc(1, sizeof *f);
    if (!f)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_os_mutex_init(&f->lock);
    ggl_os_cond_init(&f->has_news);
    st = init(f, &own, err);
    if (st == GGL_OK)
        *out = f;
    else
        llm_prompt_folder_free(f);
    return st;
}

void llm_prompt_folder_settle(llm_prompt_folder *f) {
    ggl_os_mutex_lock(&f->lock);
    while (f->copy)
        ggl_os_cond_wait(&f->has_news, &f->lock);
    ggl_os_mutex_unlock(&f->lock);
}

void llm_prompt_folder_free(llm_prompt_folder *f) {
    if (!f)
        return;
    ggl_os_mutex_lock(&f->lock);
    f->ends = true;
    ggl_os_cond_broadcast(&f->has_news);
    ggl_os_mutex_unlock(&f->lock);
    if (f->has_writer)
        ggl_os_thread_join(f->writer);
    llm_prompt_cache_free(f->cache);
    ggl_os_cond_destroy(&f->has_news);
    ggl_os_mutex_destroy(&f->lock);
    ggl_free(f->file);
    free((char *)(uintptr_t)f->p.path);
    ggl_free(f);
}

llm_prompt_folder_stats llm_prompt_folder_get_stats(llm_prompt_folder *f) {
    ggl_os_mutex_lock(&f->lock);
    const llm_prompt_folder_stats s = f->stats;
    ggl_os_mutex_unlock(&f->lock);
    return s;
}
