/* Sessions: makes a running graph from a model. */
#include "ggl/internal/sched.h"
#include "llm/internal/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/alloc.h"
#include "ggl/internal/divide.h"
#include "ggl/internal/fold.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/params.h"
#include "host_ranges.h"
#include "session_impl.h"

#define DEFAULT_CTX 4096
#define MAX_CTX     ((int64_t)1 << 30)
/* The longest text of a stage, if none is asked for: it needs memory as a ubatch; and if each token has logits. */
enum { MAX_WHOLE = 8192, MAX_WHOLE_LOGITS = 2048 };

void llm_session_fill_default(llm_session_params *p, size_t size) {
    const llm_session_params d = {.size = sizeof(llm_session_params),
                                  .n_ubatch = 512,
                                  .n_slots = 1,
                                  .n_rows = 1,
                                  .type_k = GGL_F16,
                                  .type_v = GGL_F16};
    ggl_params_fill(p, size, &d, sizeof d);
}

/* --- creation --------------------------------------------------------------------------------- */

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for the session");
}

static bool is_rows_stage(const llm_arch *arch, const char *name) {
    const char *stage;
    for (int k = 0; (stage = llm_arch_rows_stage(arch, k)); k++)
        if (strcmp(stage, name) == 0)
            return true;
    return false;
}

/* True if a text is all that the session computes, and it is seen whole. */
static bool is_whole(const llm_model *m, const llm_session_params *p) {
    const llm_arch *arch = llm_model_arch(m);
    return llm_arch_sees_all(arch) ||
           (llm_arch_reads_text(arch) && p->only &&
            (strcmp(p->only, "embedding") == 0 || is_rows_stage(arch, p->only)));
}

static int64_t in_pages(int64_t n) {
    return (n + GGL_PAGE - 1) / GGL_PAGE * GGL_PAGE;
}

/* Returns how many tokens all slots share; 0: n_ctx each. What is seen whole is read in the same batch only. */
static int64_t pool_of(const llm_session *s, const llm_model *m, const llm_session_params *p) {
    if (is_whole(m, p) && p->n_pool == 0)
        return s->n_ubatch + s->n_slots * GGL_PAGE;
    return p->n_pool || !s->reads_text ? p->n_pool : s->n_slots * in_pages(s->n_ctx);
}

/* Returns how many tokens or rows that others read all slots share. */
static int64_t pool_read(const llm_session *s, const llm_model *m, const llm_session_params *p) {
    if (p->n_pool && !llm_arch_reads_rows(llm_model_arch(m)))
        return p->n_pool;
    return (p->n_inputs > 0 ? p->n_inputs : s->n_slots) * in_pages(s->n_read);
}

static ggl_status build_graph(llm_session *s, const llm_model *m, const llm_session_params *p,
                              ggl_error *err) {
    ggl_graph_params gp = {.size = sizeof gp,
                           .n_pos = s->n_ctx > s->n_read ? s->n_ctx : s->n_read,
                           .n_batch = s->n_ubatch,
                           .n_slots = p->n_slots * (s->reads_text ? 2 : 1),
                           .n_pool = pool_of(s, m, p),
                           .n_stage_slots = s->reads_text ? p->n_slots : 0,
                           .n_stage_pool = s->reads_text ? pool_read(s, m, p) : 0,
                           .type_k = p->type_k,
                           .type_v = p->type_v};
    s->graph = ggl_graph_new(&gp);
    if (!s->graph)
        return no_memory(err);
    llm_arch_source source = llm_arch_source_gguf(llm_model_file(m));
    llm_arch_two two;
    if (p->other) {
        two = (llm_arch_two){source, llm_arch_source_gguf(llm_model_file(p->other))};
        source = llm_arch_source_two(&two);
    }
    llm_arch_params ap = {.size = sizeof ap,
                          .n_ctx = s->n_ctx,
                          .n_read = s->n_read,
                          .ignore = llm_model_ignore(m),
                          .adapter = p->adapter,
                          .n_adapters = p->n_adapters,
                          .embedding = p->embeddings,
                          .alignment = p->alignment,
                          .rows = p->rows,
                          .given = p->media != NULL,
                          .tap = p->tap,
                          .n_taps = p->n_taps,
                          .guess_layer = p->guess_layer,
                          .only = p->only};
    ggl_status st = llm_arch_build(llm_model_arch(m), &source, &ap, s->graph, &s->built, err);
    if (st == GGL_OK && is_whole(m, p) && !s->built.sees_all && !s->built.is_causal)
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "%s: the embedding is that of the tokens that are written, and not of the "
                      "text that is read",
                      s->built.family);
    if (st == GGL_OK && p->media && s->built.n_given == 0)
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "%s: the model takes no rows of pictures or sound in place of tokens",
                      s->built.family);
    if (st == GGL_OK)
        st = ggl_graph_finish(s->graph, err);
    if (st == GGL_OK && p->fold)
        st = ggl_graph_fold_by(s->graph, p->fold, p->fold_products, err);
    return st;
}

/* False for a control vector, with which the repacked weights stay the same. */
static bool changes_weights(const llm_adapter_use *use) {
    return llm_adapter_describe(use->adapter).n_directions == 0;
}

/* Sets s->cache, the file of repacked weights, if it is wanted. Notes it if the model is not
 * from a file. */
static ggl_status name_cache(llm_session *s, const ggl_gguf *file, const llm_session_params *p,
                             ggl_error *err) {
    const char *path = p->repack_cache;
    if (!path || p->no_repack)
        return GGL_OK;
    bool files = ggl_gguf_identify(file, &s->identity[0]);
    s->n_identities = 1;
    for (size_t i = 0; i < p->n_adapters && files; i++)
        if (changes_weights(&p->adapter[i]))
            files = ggl_gguf_identify(llm_adapter_file(p->adapter[i].adapter),
                                      &s->identity[s->n_identities++]);
    if (!files) {
        snprintf(s->load_notes, sizeof s->load_notes,
                 "note: repacked weights are not saved: this model%s is not a file\n",
                 p->n_adapters ? " or an adapter" : "");
        return GGL_OK;
    }
    const char *base = *path ? path : ggl_gguf_name(file), *end = *path ? "" : ".repack";
    size_t n = strlen(base) + strlen(end) + 1;
    s->cache = ggl_calloc(n, 1);
    if (!s->cache)
        return no_memory(err);
    snprintf(s->cache, n, "%s%s", base, end);
    return GGL_OK;
}

/* The scheduler's callback: adds the number of layers and asks the user's. What an adapter adds to a
 * weight's products goes where these are, unless it is placed by a name of its own. */
static int place(void *ctx, int layer, const char *weight) {
    const llm_session *s = ctx;
    const int n_layer = (int)s->built.n_layer, k = s->place(s->place_ctx, layer, n_layer, weight);
    const size_t n = weight ? strlen(weight) : 0, end = strlen(".lora_a");
    char adapted[256];
    if (k >= 0 || n <= end || n - end >= sizeof adapted ||
        strncmp(weight + n - end, ".lora_", end - 1) != 0)
        return k;
    snprintf(adapted, sizeof adapted, "%.*s", (int)(n - end), weight);
    return s->place(s->place_ctx, layer, n_layer, adapted);
}

/* Sets s->host to all files that hold weights, and *n to the number of ranges. */
static ggl_status find_host(llm_session *s, const ggl_gguf *file, const llm_session_params *p,
                            int *n, ggl_error *err) {
    size_t count = (size_t)ggl_gguf_n_parts(file) +
                   (p->other ? (size_t)ggl_gguf_n_parts(llm_model_file(p->other)) : 0);
    for (size_t i = 0; i < p->n_adapters; i++)
        count += (size_t)ggl_gguf_n_parts(llm_adapter_file(p->adapter[i].adapter));
    s->host = ggl_calloc(count, sizeof *s->host);
    s->identity = ggl_calloc(1 + p->n_adapters, sizeof *s->identity);
    if (!s->host || !s->identity)
        return no_memory(err);
    *n = llm_host_ranges(s->host, file);
    for (size_t i = 0; i < p->n_adapters; i++)
        *n += llm_host_ranges(s->host + *n, llm_adapter_file(p->adapter[i].adapter));
    if (p->other)
        *n += llm_host_ranges(s->host + *n, llm_model_file(p->other));
    return GGL_OK;
}

static ggl_status build_sched(llm_session *s, const llm_model *m, const llm_session_params *p,
                              ggl_error *err) {
    const ggl_gguf *file = llm_model_file(m);
    int n_host = 0;
    ggl_status st = find_host(s, file, p, &n_host, err);
    s->place = p->place;
    s->place_ctx = p->place_ctx;
    s->batch_cost = p->batch_cost;
    if (st == GGL_OK)
        st = name_cache(s, file, p, err);
    if (st != GGL_OK)
        return st;
    int n_divided = 0;
    if (p->n_divided > 0 && !p->watch)
        st = ggl_graph_divide(s->graph, p->divided, p->n_divided, GGL_LEAST_DIVIDED,
                              GGL_DIVIDED_UNIT, &n_divided, err);
    if (st != GGL_OK)
        return st;
    ggl_sched_params sp = {.size = sizeof sp,
                           .backend = p->backend,
                           .n_backends = p->n_backends,
                           .place = p->place ? place : NULL,
                           .ctx = s,
                           .strict = p->strict,
                           .n_rows = s->n_rows,
                           .host = s->host,
                           .n_host = n_host,
                           .no_repack = p->no_repack,
                           .repack_late = p->repack_late,
                           .n_expected = p->n_expected,
                           .progress = p->progress,
                           .progress_ctx = p->progress_ctx,
                           .cancelled = p->cancelled,
                           .cancelled_ctx = p->cancelled_ctx,
                           .cache = s->cache,
                           .cache_of = s->identity,
                           .cache_of_size = s->n_identities * sizeof *s->identity,
                           .whole = s->tells ? "rows" : NULL,
                           .forgets = s->built.sees_all,
                           .early = s->early == 0                    ? NULL
                                    : s->early >> LLM_OUT_LOGITS & 1 ? "logits"
                                                                     : "embedding",
                           .watch = p->watch,
                           .side_by_side = n_divided > 0,
                           .repacked = llm_model_repacked(m),
                           .element_word = "token",
                           .group_word = "layer"};
    return ggl_sched_new(&s->sched, s->graph, &sp, err);
}

/* Sets how many rows tokens read at most. They run in one ubatch. */
static ggl_status count_rows(llm_session *s, const llm_model *m, const llm_session_params *p,
                             ggl_error *err) {
    llm_arch_rows_of rows[LLM_ARCH_MAX_SOURCES];
    int n = 0;
    ggl_status st = GGL_OK;
    if (p->n_read < 0 || p->n_read > MAX_CTX)
        return ggl_fail(err, GGL_LIMIT, "n_read must be 0 to 2^30, but is %" PRId64, p->n_read);
    if (p->n_read == 0)
        st = llm_model_rows(m, rows, &n, err);
    const int64_t own = st == GGL_OK && n > 0 ? rows[n - 1].most : 0;
    s->n_read = p->n_read ? p->n_read : own ? own : s->n_ctx;
    s->n_ubatch = s->n_ubatch < s->n_read ? s->n_read : s->n_ubatch;
    return st;
}

/* Sets the session's sizes from the parameters. */
static ggl_status set_sizes(llm_session *s, const llm_model *m, const llm_session_params *p,
                            ggl_error *err) {
    const int64_t own = llm_model_n_ctx(m);
    const int64_t n_ctx = p->n_ctx > 0 ? p->n_ctx : own > 0 ? own : DEFAULT_CTX;
    if (p->n_ctx <= 0 && own > MAX_CTX)
        return ggl_fail(err, GGL_LIMIT,
                        "%s: the model's own context (its key *.context_length) is %" PRId64
                        " tokens, at most 2^30 are supported: set a smaller one (n_ctx, or -c N)",
                        ggl_gguf_name(llm_model_file(m)), own);
    if (n_ctx > MAX_CTX)
        return ggl_fail(err, GGL_LIMIT,
                        "the context must have 1 to 2^30 tokens, or 0 for the model's own, but not"
                        " %" PRId64 " (n_ctx, or -c N)",
                        n_ctx);
    if (p->n_ubatch < 1)
        return ggl_fail(err, GGL_LIMIT, "n_ubatch must be 1 or more, but is %" PRId64, p->n_ubatch);
    if (p->n_slots < 1 || p->n_slots > 4096)
        return ggl_fail(err, GGL_LIMIT, "there can be 1 to 4096 slots, but not %" PRId64,
                        p->n_slots);
    if (p->n_pool < 0)
        return ggl_fail(err, GGL_LIMIT, "slots cannot share %" PRId64 " tokens", p->n_pool);
    s->n_ctx = n_ctx;
    s->n_slots = p->n_slots;
    s->n_ubatch = p->n_ubatch < n_ctx * p->n_slots ? p->n_ubatch : n_ctx * p->n_slots;
    s->reads_text = llm_arch_reads_text(llm_model_arch(m)) && !is_whole(m, p);
    s->prefix = llm_arch_reads_text(llm_model_arch(m)) && !s->reads_text ? "stage." : "";
    const bool reads_rows = s->reads_text && llm_arch_reads_rows(llm_model_arch(m));
    if (reads_rows) {
        const ggl_status st = count_rows(s, m, p, err);
        if (st != GGL_OK)
            return st;
    } else if (is_whole(m, p) || s->reads_text) {
        /* a text is never cut, so the longest one is a ubatch */
        const int64_t most = is_whole(m, p) && llm_arch_sees_all(llm_model_arch(m)) &&
                                     llm_arch_has_output(llm_model_arch(m), "logits")
                                 ? MAX_WHOLE_LOGITS
                                 : MAX_WHOLE;
        s->n_ctx = p->n_ctx <= 0 && n_ctx > most ? most : n_ctx;
        s->n_ubatch = s->n_ubatch < s->n_ctx && !p->in_pieces ? s->n_ctx : s->n_ubatch;
        s->n_read = s->reads_text ? s->n_ctx : 0;
    }
    s->n_id = reads_rows ? LLM_ROWS_ID : s->n_read;
    s->n_rows = p->n_rows < 1 ? 1 : p->n_rows < s->n_ubatch ? p->n_rows : s->n_ubatch;
    return GGL_OK;
}

/* Checks that the alignment has a number for each row that tokens read at most. */
static ggl_status check_alignment(const llm_session *s, ggl_error *err) {
    return !llm_has_output(s, LLM_OUT_ALIGNMENT) ||
                   (s->n_read > 0 && s->built.alignment.n % s->n_read == 0)
               ? GGL_OK
               : ggl_fail(err, GGL_UNSUPPORTED,
                          "%s: the output 'alignment' has %" PRId64
                          " numbers, which are not some for each of %" PRId64
                          " rows that tokens read",
                          s->built.family, s->built.alignment.n, s->n_read);
}

/* Reads which token each guess is for. */
static ggl_status find_guess_tokens(llm_session *s, const llm_model *m, ggl_error *err) {
    const ggl_tensor *t = s->built.guess_token;
    const ggl_status st =
        t ? llm_arch_guess_tokens(&s->guess_token, t, s->built.n_vocab, err) : GGL_OK;
    return st == GGL_OK ? st : ggl_within(err, st, "%s", ggl_gguf_name(llm_model_file(m)));
}

/* Finds the token of masks, which a model that guesses in blocks needs. */
static ggl_status find_mask(llm_session *s, const llm_model *m, ggl_error *err) {
    int64_t id = -1;
    const char *file = ggl_gguf_name(llm_model_file(m)), *key = "tokenizer.ggml.mask_token_id";
    const int found = ggl_gguf_get_integer(llm_model_file(m), key, &id, err);
    if (found < 0)
        return GGL_FORMAT;
    if (id < 0 || id >= s->built.n_vocab)
        return ggl_fail(
            err, GGL_FORMAT,
            "%s: key %s is %s, but the model guesses in blocks, and needs the token that "
            "stands where one is guessed",
            file, key, found ? "no token" : "missing");
    s->mask = (int32_t)id;
    return GGL_OK;
}

static ggl_status alloc_arrays(llm_session *s, const llm_session_params *p, ggl_error *err) {
    const ggl_tensor *task = ggl_graph_find_input(s->graph, "task");
    const int n_lanes = ggl_sched_n_lanes(s->sched);
    s->media = p->media;
    s->n_tasks = task ? task->ne[0] : 0;
    s->share = ggl_calloc((size_t)s->n_tasks, sizeof *s->share);
    s->flight = ggl_calloc((size_t)n_lanes, sizeof *s->flight);
    bool ok = s->share && s->flight;
    if (s->reads_text)
        ok = (s->read_id = ggl_calloc((size_t)(s->n_slots * s->n_id), sizeof *s->read_id)) && ok;
    if (p->media && (s->built.has_places || s->built.given_added))
        ok = (s->places = ggl_calloc((size_t)(s->n_slots * s->n_ctx), sizeof *s->places)) && ok;
    for (; ok && s->n_lanes < n_lanes; s->n_lanes++) {
        session_flight *f = &s->flight[s->n_lanes];
        f->row = ggl_calloc((size_t)s->n_rows, sizeof *f->row);
        f->element = ggl_calloc((size_t)s->n_ubatch, sizeof *f->element);
        ok = f->row && f->element;
    }
    for (size_t i = 0; i < p->n_adapters && ok; i++)
        if (p->adapter[i].varies)
            s->share[p->adapter[i].task - 1] = (float)p->adapter[i].scale;
    return ok ? GGL_OK : no_memory(err);
}

/* Adds an adapter and its scale to the text for messages. */
static void name_adapter(llm_session *s, const llm_adapter_use *use) {
    const size_t used = strlen(s->adapters_text), room = sizeof s->adapters_text - used;
    const char *path = ggl_gguf_name(llm_adapter_file(use->adapter)),
               *slash = ggl_os_last_separator(path);
    const char *before = used ? "," : " with", *name = slash ? slash + 1 : path;
    if (use->task > 0)
        snprintf(s->adapters_text + used, room, "%s %.80s at the scale of the request", before,
                 name);
    else if (use->scale != 0)
        snprintf(s->adapters_text + used, room, "%s %.80s at scale %g", before, name, use->scale);
}

const char *llm_session_adapters_text(const llm_session *s) {
    return s->adapters_text;
}

static bool init_slots(llm_session *s) {
    const slot_limits limits = {.n_slots = ggl_graph_get_params(s->graph)->n_slots,
                                .n_first = s->n_slots,
                                .n_ctx = s->n_ctx,
                                .n_read = s->n_read};
    if (!llm_slots_init(&s->slots, s->graph, s->sched, &limits))
        return false;
    if (s->built.n_guess_block > 0) /* states last for a block, and no cut has to bring one back */
        s->slots.has_states = false;
    return true;
}

ggl_status llm_session_new(llm_session **out, const llm_model *m, const llm_session_params *params,
                           ggl_error *err) {
    llm_session_params own = llm_session_default();
    const llm_session_params *p = &own;
    *out = NULL;
    const ggl_status is_read = GGL_READ_PARAMS(llm_session_params, &own, params, err);
    if (is_read != GGL_OK)
        return is_read;
    llm_session *s = ggl_calloc(1, sizeof *s);
    if (!s)
        return no_memory(err);
    ggl_status st = set_sizes(s, m, p, err);
    if (st == GGL_OK)
        st = build_graph(s, m, p, err);
    if (st == GGL_OK) {
        llm_inputs_find(s);
        llm_outputs_find(s, p);
        if (s->built.sees_all) /* any tokens of a text may be wanted, and it runs once */
            s->n_rows = s->n_ubatch;
        st = (s->n_inputs = llm_rows_inputs(s->graph, &s->built, s->input)) >= 0
                 ? GGL_OK
                 : ggl_fail(err, GGL_LIMIT, "%s: a stage reads more than %d inputs",
                            s->built.family, LLM_MAX_ROWS_INPUTS);
        if (st == GGL_OK)
            st = check_alignment(s, err);
    }
    if (st == GGL_OK && s->guesses)
        st = find_guess_tokens(s, m, err);
    if (st == GGL_OK && s->guesses && s->built.n_guess_block > 0)
        st = find_mask(s, m, err);
    if (st == GGL_OK)
        st = llm_session_find_suppressed(s, llm_model_file(m), err);
    if (st == GGL_OK && s->reads_text)
        st = llm_model_start_token(m, s->built.family, s->built.n_vocab, &s->start, err);
    for (size_t i = 0; i < p->n_adapters && st == GGL_OK; i++) {
        s->adapters = llm_adapter_digest(p->adapter[i], s->adapters);
        name_adapter(s, &p->adapter[i]);
    }
    if (st == GGL_OK)
        st = build_sched(s, m, p, err);
    if (st == GGL_OK && !init_slots(s))
        st = no_memory(err);
    if (st == GGL_OK)
        st = alloc_arrays(s, p, err);
    if (st != GGL_OK) {
        llm_session_free(s);
        return st;
    }
    *out = s;
    return GGL_OK;
}

/* Notes whether the cache file was used, and if not, why. */
static void note_cache(llm_session *s) {
    const char *why = ggl_sched_cache_note(s->sched);
    ggl_cache_use use = ggl_sched_cache_use(s->sched);
    if (use == GGL_CACHE_READ)
        snprintf(s->load_notes, sizeof s->load_notes, "note: repacked weights are from %.300s\n",
                 s->cache);
    else if (use == GGL_CACHE_WRITTEN)
        snprintf(s->load_notes, sizeof s->load_notes, "note: %.300s%s\n", *why ? why : s->cache,
                 *why ? "; it was written again" : " keeps the repacked weights");
    else if (use == GGL_CACHE_FAILED)
        snprintf(s->load_notes, sizeof s->load_notes,
                 "note: repacked weights are not saved: %.300s\n", why);
}

/* Notes that not all weights stay in memory. */
static void note_streamed(llm_session *s) {
    size_t kept, chosen;
    const size_t size = ggl_sched_streamed(s->sched, &kept, &chosen), n = strlen(s->load_notes);
    const double unit = size < 1000000000 ? 1e6 : 1e9;
    if (size > 0)
        snprintf(
            s->load_notes + n, sizeof s->load_notes - n,
            "note: not all weights have room in memory: %.2f of %.2f %s stay there, and each token "
            "reads %s%.2f %s from the file\n",
            (double)kept / unit, (double)size / unit, unit < 1e9 ? "MB" : "GB",
            chosen > 0 ? "what it needs of the other " : "the other ", (double)(size - kept) / unit,
            unit < 1e9 ? "MB" : "GB");
}

ggl_status llm_session_alloc(llm_session *s, ggl_error *err) {
    if (s->slots.has_memory)
        return ggl_fail(err, GGL_USAGE,
                        "the session has its memory already: call llm_session_alloc once");
    ggl_status st = ggl_sched_alloc(s->sched, err);
    if (st == GGL_OK)
        st = llm_slots_ready(&s->slots, err);
    if (st != GGL_OK)
        return st;
    note_cache(s);
    note_streamed(s);
    llm_session_note_suppressed(s);
    return GGL_OK;
}

ggl_status llm_session_repack(llm_session *s, double seconds, size_t *left, ggl_error *err) {
    return ggl_sched_repack_some(s->sched, seconds, left, err);
}

void llm_session_free(llm_session *s) {
    if (!s)
        return;
    ggl_sched_free(s->sched);
    ggl_graph_free(s->graph);
    llm_arch_result_fini(&s->built);
    llm_slots_fini(&s->slots);
    ggl_free(s->host);
    ggl_free(s->identity);
    ggl_free(s->cache);
    ggl_free(s->read_id);
    for (int i = 0; i < s->n_lanes; i++)
        ggl_free(s->flight[i].row), ggl_free(s->flight[i].element);
    ggl_free(s->flight);
    ggl_free(s->places);
    ggl_free(s->share);
    ggl_free(s->guess_token);
    ggl_free(s->writable);
    ggl_free(s);
}

const ggl_graph *llm_session_graph(const llm_session *s) {
    return s->graph;
}

const ggl_sched *llm_session_sched(const llm_session *s) {
    return s->sched;
}

const char *llm_session_notes(const llm_session *s) {
    return s->built.notes ? s->built.notes : "";
}

const char *llm_session_load_notes(const llm_session *s) {
    return s->load_notes;
}

int64_t llm_session_n_ctx(const llm_session *s) {
    return s->n_ctx;
}

int64_t llm_session_n_vocab(const llm_session *s) {
    return s->built.n_vocab;
}

int64_t llm_session_n_embd(const llm_session *s) {
    return s->built.n_embd;
}

int64_t llm_session_n_score(const llm_session *s) {
    return s->built.score.n;
}

int64_t llm_session_n_aligned_heads(const llm_session *s) {
    return llm_has_output(s, LLM_OUT_ALIGNMENT) ? s->built.alignment.n / s->n_read : 0;
}

int64_t llm_session_n_aligned_rows(const llm_session *s) {
    return llm_has_output(s, LLM_OUT_ALIGNMENT) ? s->n_read : 0;
}

int64_t llm_session_n_row(const llm_session *s) {
    return llm_has_output(s, LLM_OUT_ROWS) ? s->built.n_row : 0;
}

int64_t llm_session_n_feature(const llm_session *s) {
    return s->guesses ? s->built.n_feature : 0;
}

int64_t llm_session_n_given(const llm_session *s) {
    return s->media ? s->built.n_given + s->built.n_given_more : 0;
}

int llm_session_n_rows_inputs(const llm_session *s) {
    return s->n_inputs;
}

const llm_rows_input *llm_session_rows_input(const llm_session *s, int k) {
    return &s->input[k];
}

float *llm_session_input_place(llm_session *s, int k) {
    return ggl_sched_input_place(s->sched, s->input[k].name);
}

bool llm_session_is_by_row(const llm_session *s) {
    const ggl_tensor *pos = ggl_graph_find_input(s->graph, "pos"),
                     *stage = ggl_graph_find_input(s->graph, "stage.pos");
    return ggl_graph_n_stores(s->graph) == 0 && !(pos && pos->needed) && !(stage && stage->needed);
}

bool llm_session_from_second(const llm_session *s) {
    return s->guesses && s->built.from_second;
}

int32_t llm_session_mask(const llm_session *s) {
    return s->mask;
}

int64_t llm_session_n_logits(const llm_session *s) {
    return s->guesses ? s->built.guess.n : s->built.n_vocab;
}

int32_t llm_session_token_of(const llm_session *s, const float *logits, int64_t i) {
    if (!s->guesses || !s->built.guess_names)
        return s->guess_token ? s->guess_token[i] : (int32_t)i;
    const float id = logits[s->built.guess.n + i];
    return id >= 0 && id < (float)s->built.n_vocab ? (int32_t)id : -1;
}

float llm_session_chance(const llm_session *s, const float *logits, float share) {
    const int64_t n = s->built.guess.n;
    return s->guesses && s->built.guess_chance ? logits[s->built.guess_names ? 2 * n : n] : share;
}

bool llm_session_tells(const llm_session *s) {
    return s->tells;
}

void llm_session_hear(llm_session *s,
                      void (*hear)(void *ctx, int slot, int64_t pos, int32_t token,
                                   const float *row),
                      void *ctx) {
    s->hear = hear;
    s->hear_ctx = ctx;
}

int64_t llm_session_n_tasks(const llm_session *s) {
    return s->n_tasks;
}

const float *llm_session_shares(const llm_session *s) {
    return s->share;
}

bool llm_session_sees_all(const llm_session *s) {
    return s->built.sees_all;
}

bool llm_session_reads_text(const llm_session *s) {
    return s->reads_text;
}

int32_t llm_session_start_token(const llm_session *s) {
    return s->start;
}

bool llm_session_has_logits(const llm_session *s) {
    return llm_has_output(s, LLM_OUT_LOGITS);
}

const llm_arch_result *llm_session_built(const llm_session *s) {
    return &s->built;
}

int64_t llm_session_n_layer(const llm_session *s) {
    return s->built.n_layer;
}

int64_t llm_session_n_rows(const llm_session *s) {
    return s->n_rows;
}

int64_t llm_session_n_ubatch(const llm_session *s) {
    return s->n_ubatch;
}

int64_t llm_session_n_slots(const llm_session *s) {
    return s->n_slots;
}

int llm_session_n_lanes(const llm_session *s) {
    return s->n_lanes;
}
