/* Prompt caches: what identifies a session, and which part of a saved sequence can be used. */
#include "ggl/internal/sched.h"
#include "llm/internal/prompt_cache.h"

#include <inttypes.h>

#include "ggl/internal/graph.h"
#include "common/digest.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/file.h"
#include "ggl/internal/params.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/show.h"
#include "ggl/version.h"
#include "prompt_cache_file.h"
#include "session_impl.h"
#include "ggl/internal/os_fs.h"

struct llm_prompt_cache {
    llm_session *session;
    int slot;
    prompt_cache_key key;
    const int32_t *text; /* [n_text]: what the model is to read (llm_prompt_cache_text) */
    size_t n_text;
    /* A copy of the slot with the first n tokens of a prompt, for models that cannot go back there.
     * data NULL: none. */
    prompt_cache_entry copy;
    uint64_t copy_of;             /* digest of these tokens */
    const llm_prompt_states *put; /* [n_put]: llm_prompt_cache_put_states */
    size_t n_put;
    void (*take)(void *ctx, const int32_t *id, const llm_prompt_states *x);
    void *take_ctx;
};

/* --- the key ---------------------------------------------------------------------------------- */

static uint64_t add_text(uint64_t h, const char *s) {
    return llm_digest(h, s ? s : "", s ? strlen(s) + 1 : 1);
}

/* The table of pages is not part of what is computed. */
static uint64_t add_node(uint64_t h, const ggl_tensor *t) {
    const int n_src = t->n_src, page = ggl_page_source(t);
    const int64_t words[] = {t->op,    t->type,  t->id,    t->n_dims, t->ne[0],
                             t->ne[1], t->ne[2], t->ne[3], n_src,     t->n_num};
    h = llm_digest(h, words, sizeof words);
    for (int i = 0; i < n_src; i++)
        h = llm_digest(h, &(int64_t){t->src[i] && i != page ? t->src[i]->id : -1}, sizeof(int64_t));
    for (int i = 0; i < t->n_num; i++)
        h = llm_digest(h, &t->num[i], sizeof t->num[i]);
    if (t->op == GGL_OP_WEIGHT || t->op == GGL_OP_INPUT)
        h = add_text(h, t->name);
    if (t->op == GGL_OP_CONST)
        h = llm_digest(h, t->data, t->size);
    return add_text(h, t->call);
}

/* A digest of what the graph computes, bodies included. */
static uint64_t add_nodes(uint64_t h, ggl_tensor *const *node, int n) {
    for (int i = 0; i < n; i++) {
        h = add_node(h, node[i]);
        if (node[i]->body)
            h = add_nodes(h, node[i]->body->node, node[i]->body->n_node);
    }
    return h;
}

static void digest_graph(llm_prompt_cache *c) {
    const llm_session *s = c->session;
    c->key.graph = c->key.rings = c->key.placement = LLM_DIGEST_START;
    for (int i = 0; i < ggl_graph_n_stores(s->graph); i++) {
        const ggl_store *st = ggl_graph_store(s->graph, i);
        const int64_t n = st->ring ? st->n_pos : 0;
        c->key.rings = llm_digest(c->key.rings, &n, sizeof n);
    }
    const bool has_table = ggl_graph_n_pages(s->graph) > 0; /* which is the first node */
    for (int i = has_table; i < ggl_graph_n_nodes(s->graph); i++) {
        ggl_tensor *t = ggl_graph_node(s->graph, i);
        const ggl_backend *b = ggl_sched_runs_on(s->sched, t);
        c->key.graph = add_nodes(c->key.graph, &t, 1);
        c->key.placement = add_text(c->key.placement, !b ? NULL : *b->alike ? b->alike : b->name);
    }
}

/* A model that is no file is small enough to read. */
static void identify(llm_prompt_cache *c, const ggl_gguf *file) {
    ggl_gguf_identity *id = &c->key.identity;
    if (ggl_gguf_identify(file, id))
        return;
    size_t n_changes;
    id->tensors = LLM_DIGEST_START;
    for (int i = 0; i < ggl_gguf_n_parts(file); i++) {
        size_t size;
        const void *data = ggl_gguf_part(file, i, &size);
        id->size += size;
        id->tensors = llm_digest(id->tensors, data, size);
    }
    const void *changes = ggl_gguf_changes(file, &n_changes);
    id->tensors = llm_digest(id->tensors, changes, n_changes);
}

/* The name of a file without its folder, at most LLM_PROMPT_CACHE_TEXT bytes. */
static ggl_str base_name(const char *path) {
    const char *slash = ggl_os_last_separator(path), *name = slash ? slash + 1 : path;
    const size_t n = strlen(name);
    return (ggl_str){name, n < LLM_PROMPT_CACHE_TEXT ? n : LLM_PROMPT_CACHE_TEXT};
}

ggl_status llm_prompt_cache_new(llm_prompt_cache **out, const llm_prompt_cache_params *params,
                                ggl_error *err) {
    llm_prompt_cache_params own = {.size = sizeof own};
    const llm_prompt_cache_params *p = &own;
    *out = NULL;
    const ggl_status is_read = GGL_READ_PARAMS(llm_prompt_cache_params, &own, params, err);
    if (is_read != GGL_OK)
        return is_read;
    const size_t n_also = p->also ? strlen(p->also) : 0;
    if (n_also > LLM_PROMPT_CACHE_TEXT)
        return ggl_fail(err, GGL_USAGE,
                        "a prompt cache's text of settings has %zu bytes; %d are allowed", n_also,
                        LLM_PROMPT_CACHE_TEXT);
    ggl_status st = llm_slots_check(&p->session->slots, p->slot, err);
    if (st != GGL_OK)
        return st;
    llm_prompt_cache *c = ggl_calloc(1, sizeof *c);
    if (!c)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a prompt cache");
    const ggl_gguf *file = llm_model_file(p->model);
    c->session = p->session;
    c->slot = p->slot;
    c->key.version = ggl_version();
    c->key.model = base_name(ggl_gguf_name(file));
    c->key.also = (ggl_str){p->also ? p->also : "", n_also};
    identify(c, file);
    digest_graph(c);
    *out = c;
    return GGL_OK;
}

static void drop_copy(llm_prompt_cache *c) {
    ggl_free((void *)c->copy.data);
    c->copy = (prompt_cache_entry){0};
}

void llm_prompt_cache_free(llm_prompt_cache *c) {
    if (!c)
        return;
    drop_copy(c);
    ggl_free(c);
}

/* True if the slot can always be cut back. */
static bool can_cut(const llm_prompt_cache *c) {
    return !c->session->slots.has_states && c->session->slots.rollback == INT64_MAX;
}

void llm_prompt_cache_text(llm_prompt_cache *c, const int32_t *id, size_t n) {
    c->text = id;
    c->n_text = n;
}

void llm_prompt_cache_put_states(llm_prompt_cache *c, const llm_prompt_states *x, size_t n) {
    c->put = x;
    c->n_put = n;
}

void llm_prompt_cache_take_states(llm_prompt_cache *c,
                                  void (*take)(void *ctx, const int32_t *id,
                                               const llm_prompt_states *x),
                                  void *ctx) {
    c->take = take;
    c->take_ctx = ctx;
}

/* --- pictures --------------------------------------------------------------------------------- */

/* Returns how many tokens from i on are consecutive rows of the picture whose n_rows begin with id `first`. */
static size_t run_of(const int32_t *id, size_t i, size_t n, int64_t first, int64_t n_rows) {
    size_t end = i + 1;
    while (end < n && id[end] == (int64_t)id[end - 1] - 1 && first - id[end] < n_rows)
        end++;
    return end - i;
}

/* Lists the pictures of the tokens, each time that rows of one begin. *out is to be freed. */
static ggl_status list_pictures(const llm_session *s, const int32_t *id, size_t n,
                                prompt_cache_picture **out, size_t *n_out, ggl_error *err) {
    size_t cap = 0, step = 1;
    prompt_cache_picture *x = NULL;
    *out = NULL;
    *n_out = 0;
    for (size_t i = 0; i < n; i += step) {
        prompt_cache_picture now = {0};
        int32_t first;
        int64_t n_rows;
        step = 1;
        if (id[i] >= 0 || !s->media)
            continue;
        if (*n_out == LLM_PROMPT_CACHE_PICTURES) {
            ggl_free(x);
            return llm_prompt_cache_many_pictures(err);
        }
        if (!llm_media_whose(s->media, id[i], now.digest, &first, &n_rows) ||
            !ggl_grow(&x, &cap, *n_out + 1, sizeof *x)) {
            ggl_free(x);
            return ggl_fail(err, GGL_NOMEM, "out of memory for the pictures of %zu tokens", n);
        }
        now.first = first;
        now.n = (uint64_t)n_rows;
        x[(*n_out)++] = now;
        step = run_of(id, i, n, first, n_rows);
    }
    *out = x;
    return GGL_OK;
}

/* Gives the rows of pictures the ids that they have in this process, or will have when they are shown again. */
static ggl_status number_rows(const llm_session *s, const prompt_cache_content *c, int32_t *id,
                              ggl_error *err) {
    size_t k = 0;
    for (size_t i = 0, step; i < c->n; i += step) {
        int32_t first = 0;
        step = 1;
        if (id[i] >= 0)
            continue;
        if (!s->media || k == c->n_pictures)
            return ggl_fail(err, GGL_FORMAT,
                            "the prompt cache has rows of a picture, but not those of which one");
        const prompt_cache_picture *p = &c->picture[k++];
        const int64_t n_rows = p->n < INT32_MAX ? (int64_t)p->n : INT32_MAX;
        if (p->first >= 0 || p->first < id[i] || p->first - id[i] >= n_rows)
            return ggl_fail(err, GGL_FORMAT, "the prompt cache is damaged");
        const int64_t at = p->first - id[i];
        const ggl_status st = llm_media_expect(s->media, p->digest, n_rows, &first, err);
        if (st != GGL_OK)
            return st;
        step = run_of(id, i, c->n, p->first, n_rows);
        for (size_t j = 0; j < step; j++)
            id[i + j] = (int32_t)(first - at - (int64_t)j);
    }
    return GGL_OK;
}

/* --- loading ---------------------------------------------------------------------------------- */

/* Sets the slot to at most the first `want` tokens of an entry. Returns false if it cannot. */
static bool restore(llm_prompt_cache *c, const prompt_cache_entry *e, int64_t want,
                    ggl_error *err) {
    llm_session *s = c->session;
    bool fits = true;
    if (s->reads_text &&
        llm_slot_has_text(s, e->data, e->size, c->text, (int64_t)c->n_text, &fits, err) != GGL_OK)
        return false;
    if (!fits || ((int64_t)e->n > want && s->slots.has_states)) {
        err->status = GGL_OK; /* the sequences differ too early; nothing is wrong */
        return false;
    }
    if (llm_session_clear(s, c->slot, err) != GGL_OK ||
        llm_session_restore(s, c->slot, e->data, e->size, err) != GGL_OK)
        return false;
    const int64_t n = llm_session_n_past(s, c->slot);
    if (n != (int64_t)e->n) {
        (void)ggl_fail(err, GGL_FORMAT, "the prompt cache is damaged");
        return false;
    }
    err->status = GGL_OK;
    return n <= want || llm_session_cut(s, c->slot, want, NULL) == GGL_OK;
}

/* Restores what the file has in common with id[0 .. n). */
static ggl_status use(llm_prompt_cache *c, const void *data, size_t size, const int32_t *id,
                      size_t n, ggl_error *err) {
    prompt_cache_content content;
    ggl_status st = llm_prompt_cache_read(&content, &c->key, data, size, err);
    if (st != GGL_OK)
        return st;
    size_t same = 0;
    while (same < n && same < content.n && id[same] == content.id[same])
        same++;
    const int64_t want = (int64_t)(same == n && n > 0 ? n - 1 : same);
    const bool is_of_use = want > 0 || c->session->reads_text;
    for (int i = 0; i < content.n_entries && is_of_use; i++) {
        ggl_error why = {0};
        if (restore(c, &content.entry[i], want, &why))
            return GGL_OK;
        st = why.status;
        if (st != GGL_OK)
            (void)ggl_pass(err, &why);
    }
    return st == GGL_OK ? llm_session_clear(c->session, c->slot, err) : st;
}

/* GGL_FORMAT: the file is empty. */
static ggl_status map_file(ggl_file_map *map, const char *path, ggl_error *err) {
    return ggl_file_exists(path) ? ggl_file_map_open(map, path, err)
                                 : ggl_fail(err, GGL_NOT_FOUND, "%s: there is no such file", path);
}

ggl_status llm_prompt_cache_load(llm_prompt_cache *c, const char *path, const int32_t *id, size_t n,
                                 int64_t *n_held, ggl_error *err) {
    ggl_file_map map;
    *n_held = 0;
    drop_copy(c);
    ggl_status st = llm_session_clear(c->session, c->slot, err);
    if (st == GGL_OK)
        st = map_file(&map, path, err);
    if (st == GGL_FORMAT) /* as mktemp makes files for the first prompt */
        return ggl_fail(err, GGL_NOT_FOUND, "%s: the file is empty", path);
    if (st != GGL_OK)
        return st;
    st = use(c, map.data, map.size, id, n, err);
    ggl_file_map_close(&map);
    if (st != GGL_OK) {
        if (llm_session_clear(c->session, c->slot, NULL) != GGL_OK)
            return st;
        return ggl_within(err, st, "%s", path);
    }
    *n_held = llm_session_n_past(c->session, c->slot);
    return GGL_OK;
}

/* Gives the owner the states that the file has besides. Those that are of no use to this session are left out. */
static ggl_status hand_out_states(llm_prompt_cache *c, const prompt_cache_content *content,
                                  const int32_t *id, ggl_error *err) {
    for (size_t i = 0; i < content->n_states && c->take; i++) {
        prompt_cache_entry e;
        int64_t n;
        const ggl_status st = llm_prompt_cache_read_state(content, i, &e, err);
        if (st != GGL_OK)
            return st;
        if (llm_slot_is_states(c->session, e.data, e.size, &n) && n == (int64_t)e.n)
            c->take(c->take_ctx, id, &(llm_prompt_states){n, e.data, e.size});
    }
    return GGL_OK;
}

/* Restores the longest sequence that the file holds. *n_all: with the tokens after it that had not run. */
static ggl_status use_all(llm_prompt_cache *c, const void *data, size_t size, int32_t **id,
                          size_t *n, size_t *n_all, ggl_error *err) {
    prompt_cache_content content;
    ggl_status st = llm_prompt_cache_read(&content, &c->key, data, size, err);
    if (st != GGL_OK)
        return st;
    const prompt_cache_entry *e = &content.entry[0];
    if (e->n > (uint64_t)llm_session_n_ctx(c->session))
        return ggl_fail(err, GGL_LIMIT,
                        "the prompt cache has %" PRIu64 " tokens, but the context only %" PRId64,
                        e->n, llm_session_n_ctx(c->session));
    if (e->n == 0)
        return ggl_fail(err, GGL_FORMAT, "the prompt cache has no tokens");
    *id = ggl_calloc(content.n, sizeof **id);
    if (!*id)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", content.n);
    memcpy(*id, content.id, content.n * sizeof **id);
    st = number_rows(c->session, &content, *id, err);
    for (size_t i = 0; i < content.n && st == GGL_OK; i++)
        if ((*id)[i] >= 0)
            st = llm_session_check_token(c->session, (*id)[i], err);
    if (st != GGL_OK) /* GGL_USAGE: none of this vocabulary */
        return st == GGL_USAGE ? GGL_FORMAT : st;
    *n = (size_t)e->n;
    *n_all = content.n;
    st = llm_session_restore(c->session, c->slot, e->data, e->size, err);
    if (st == GGL_OK && llm_session_n_past(c->session, c->slot) != (int64_t)e->n) {
        st = llm_session_clear(c->session, c->slot, err);
        return st == GGL_OK ? ggl_fail(err, GGL_FORMAT, "the prompt cache is damaged") : st;
    }
    if (st == GGL_OK)
        llm_slot_renumber(c->session, c->slot, content.id, *id, (int64_t)e->n);
    return st == GGL_OK ? hand_out_states(c, &content, *id, err) : st;
}

ggl_status llm_prompt_cache_restore_bytes(llm_prompt_cache *c, const void *data, size_t size,
                                          int32_t **id, size_t *n, size_t *n_all, ggl_error *err) {
    *id = NULL;
    *n = *n_all = 0;
    drop_copy(c);
    const ggl_status st = use_all(c, data, size, id, n, n_all, err);
    if (st == GGL_OK)
        return GGL_OK;
    ggl_free(*id);
    *id = NULL;
    return st;
}

ggl_status llm_prompt_cache_restore(llm_prompt_cache *c, const char *path, int32_t **id, size_t *n,
                                    size_t *n_all, ggl_error *err) {
    ggl_file_map map;
    *id = NULL;
    *n = *n_all = 0;
    ggl_status st = map_file(&map, path, err);
    if (st != GGL_OK)
        return st;
    st = llm_prompt_cache_restore_bytes(c, map.data, map.size, id, n, n_all, err);
    ggl_file_map_close(&map);
    return st == GGL_OK ? GGL_OK : ggl_within(err, st, "%s", path);
}

/* --- files of a folder ------------------------------------------------------------------------ */

struct llm_prompt_copy {
    const prompt_cache_key *key;
    prompt_cache_content content; /* owns its tokens and its entry */
};

void llm_prompt_cache_set_slot(llm_prompt_cache *c, int slot) {
    drop_copy(c);
    c->slot = slot;
}

uint64_t llm_prompt_cache_digest(const llm_prompt_cache *c) {
    const prompt_cache_key *k = &c->key;
    const uint64_t numbers[] = {
        k->identity.size, (uint64_t)k->identity.modified, k->identity.tensors, k->graph, k->rings,
        k->placement};
    uint64_t h = add_text(LLM_DIGEST_START, k->version);
    h = llm_digest(h, k->model.s, k->model.n);
    h = llm_digest(h, k->also.s, k->also.n);
    return llm_digest(h, numbers, sizeof numbers);
}

ggl_status llm_prompt_copy_new(llm_prompt_copy **out, llm_prompt_cache *c, const int32_t *id,
                               size_t n, ggl_error *err) {
    const int64_t n_past = llm_session_n_past(c->session, c->slot);
    *out = NULL;
    if (n == 0 || (int64_t)n > n_past || ((int64_t)n < n_past && !can_cut(c)))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the slot holds %" PRId64 " tokens, of which %zu cannot be saved", n_past,
                        n);
    llm_prompt_copy *x = ggl_calloc(1, sizeof *x);
    int32_t *copy = ggl_calloc(n, sizeof *copy);
    void *data = NULL;
    prompt_cache_entry e = {.n = n};
    ggl_status st =
        x && copy ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory for %zu tokens", n);
    if (st == GGL_OK)
        st = llm_slot_save(c->session, c->slot, (int64_t)n, false, &data, &e.size, err);
    if (st != GGL_OK) {
        ggl_free(x);
        ggl_free(copy);
        return st;
    }
    memcpy(copy, id, n * sizeof *id);
    e.data = data;
    *x = (llm_prompt_copy){.key = &c->key,
                           .content = {.id = copy, .n = n, .entry = {e}, .n_entries = 1}};
    *out = x;
    return GGL_OK;
}

ggl_status llm_prompt_copy_write(const llm_prompt_copy *x, const char *path, ggl_error *err) {
    return llm_prompt_cache_write(path, x->key, &x->content, err);
}

void llm_prompt_copy_free(llm_prompt_copy *x) {
    if (!x)
        return;
    ggl_free((void *)(uintptr_t)x->content.id);
    ggl_free((void *)(uintptr_t)x->content.entry[0].data);
    ggl_free(x);
}

/* --- copies and saving ------------------------------------------------------------------------ */

bool llm_prompt_cache_wants_copy(const llm_prompt_cache *c) {
    return !can_cut(c);
}

ggl_status llm_prompt_cache_keep_copy(llm_prompt_cache *c, const int32_t *id, ggl_error *err) {
    void *data;
    drop_copy(c);
    c->copy.n = (uint64_t)llm_session_n_past(c->session, c->slot);
    ggl_status st = llm_session_save(c->session, c->slot, false, &data, &c->copy.size, err);
    c->copy.data = data;
    c->copy_of = llm_digest(LLM_DIGEST_START, id, (size_t)c->copy.n * sizeof *id);
    return st;
}

/* True if there is a copy of an earlier state of this sequence. */
static bool has_copy(const llm_prompt_cache *c, const int32_t *id, size_t n) {
    return c->copy.data && c->copy.n <= n &&
           c->copy_of == llm_digest(LLM_DIGEST_START, id, (size_t)c->copy.n * sizeof *id);
}

ggl_status llm_prompt_cache_check(const llm_prompt_cache *c, const char *path, ggl_error *err) {
    ggl_file_map map;
    ggl_str model = {0};
    char name[256];
    if (!ggl_file_exists(path))
        return GGL_OK;
    ggl_status st = ggl_file_map_open(&map, path, err);
    if (st == GGL_FORMAT) /* it is empty */
        return GGL_OK;
    if (st != GGL_OK)
        return st;
    if (!llm_prompt_cache_is(map.data, map.size))
        st = ggl_fail(err, GGL_USAGE, "%s: this file is not a prompt cache, and is left as it is",
                      path);
    else if (llm_prompt_cache_model(map.data, map.size, &model) &&
             (model.n != c->key.model.n ||
              (model.n > 0 && memcmp(model.s, c->key.model.s, model.n) != 0))) {
        ggl_show(name, sizeof name, model.s, model.n);
        st = ggl_fail(err, GGL_USAGE,
                      "%s: this prompt cache belongs to the model %s, and is left as it is; give "
                      "another file, or remove it",
                      path, name);
    }
    ggl_file_map_close(&map);
    return st;
}

ggl_status llm_prompt_cache_save_all(llm_prompt_cache *c, const char *path, const int32_t *id,
                                     size_t n, size_t n_all, ggl_error *err) {
    const int64_t n_past = llm_session_n_past(c->session, c->slot);
    prompt_cache_content content = {.id = id, .state = c->put, .n_states = c->n_put};
    prompt_cache_picture *picture = NULL;
    void *now = NULL;
    if (n == 0 || (int64_t)n > n_past)
        return ggl_fail(err, GGL_USAGE,
                        "the slot holds %" PRId64 " tokens, of which %zu cannot be saved", n_past,
                        n);
    ggl_status st = llm_prompt_cache_check(c, path, err);
    if (st == GGL_OK && (can_cut(c) || (int64_t)n == n_past)) {
        prompt_cache_entry *e = &content.entry[content.n_entries++];
        e->n = n;
        content.n = n_all;
        st = llm_slot_save(c->session, c->slot, (int64_t)n, false, &now, &e->size, err);
        e->data = now;
    }
    if (st == GGL_OK && has_copy(c, id, n) && c->copy.n != content.entry[0].n) {
        content.entry[content.n_entries++] = c->copy;
        content.n = content.n ? content.n : (size_t)c->copy.n;
    }
    if (st == GGL_OK && content.n_entries == 0)
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "%s: this model cannot go back to token %zu, so nothing is saved", path, n);
    if (st == GGL_OK)
        st = list_pictures(c->session, id, content.n, &picture, &content.n_pictures, err);
    content.picture = picture;
    if (st == GGL_OK)
        st = llm_prompt_cache_write(path, &c->key, &content, err);
    ggl_free(picture);
    ggl_free(now);
    return st;
}

ggl_status llm_prompt_cache_save(llm_prompt_cache *c, const char *path, const int32_t *id, size_t n,
                                 ggl_error *err) {
    return llm_prompt_cache_save_all(c, path, id, n, n, err);
}

ggl_status llm_prompt_cache_save_copy(llm_prompt_cache *c, const char *path, const int32_t *id,
                                      size_t n, ggl_error *err) {
    const prompt_cache_content content = {
        .id = id, .n = (size_t)c->copy.n, .entry = {c->copy}, .n_entries = 1};
    if (!has_copy(c, id, n))
        return ggl_fail(err, GGL_NOT_FOUND, "%s: no copy of this prompt has been kept", path);
    const ggl_status st = llm_prompt_cache_check(c, path, err);
    return st == GGL_OK ? llm_prompt_cache_write(path, &c->key, &content, err) : st;
}
