/* Opens the model, its session and the engine. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cache_types.h"
#include "common/fit_context.h"
#include "common/load.h"
#include "common/open_model.h"
#include "common/open_template.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/reasoning.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/sched.h"
#include "server_impl.h"

#define TOOL "llm-server"

enum {
    MOST_TEMPLATE = 1 << 20, /* bytes */
    CACHE_SLOTS = 64,
    CACHE_SLOTS_WITH_STATES = 4,
    DEFAULT_CTX = 4096,
    FEW_TOKENS = 32,  /* for a prompt and its answer */
    MOST_ROWS = 64,   /* of logits at a time */
    ENOUGH_CTX = 8192 /* without -c, other models are not unloaded for a longer context */
};

/* --- the model -------------------------------------------------------------------------------- */

static ggl_gguf_params file_params(const server_options *o) {
    return (ggl_gguf_params){
        .size = sizeof(ggl_gguf_params), .no_mmap = o->no_mmap, .lock = o->mlock, .willneed = true};
}

static int open_model(server *s) {
    const server_options *o = s->o;
    ggl_error err = {0};
    const ggl_gguf_params file = file_params(o);
    const llm_model_params p = {
        .size = sizeof p, .arch_path = o->arch, .gguf = &file, .ignore = ignore_of(&o->ignore)};
    const int code =
        tool_open_model(&s->model, TOOL, o->model ? o->model : "builtin:chat", &p, o->type);
    if (code >= 0)
        return code;
    if (llm_model_tokenizer(s->model, &s->tokenizer, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    return -1;
}

/* A model without a template serves texts only. */
static int open_template(server *s) {
    const server_options *o = s->o;
    const template_choice choice = {o->template_file, o->template_name, MOST_TEMPLATE};
    const bool is_named = o->template_file || o->template_name;
    ggl_error err = {0};
    ggl_status st;
    const int code = tool_open_template(&s->chat, TOOL, &choice, llm_model_file(s->model),
                                        s->tokenizer, &st, &err);
    const template_settings settings = {.reasoning = o->reasoning,
                                        .budget = o->reasoning_budget,
                                        .variables = o->template_vars,
                                        .no_bos = o->no_chat_bos};
    if (st == GGL_OK && code < 0)
        return tool_set_template(s->chat, TOOL, &settings);
    if (code >= 0 || (st == GGL_NOT_FOUND && !is_named))
        return code;
    return tool_error(TOOL, 1, "%s", err.msg);
}

static int64_t file_integer(const ggl_gguf *f, const char *key) {
    ggl_error err;
    int64_t x = 0;
    return ggl_gguf_get_integer(f, key, &x, &err) == 1 ? x : 0;
}

static ggl_str file_string(const ggl_gguf *f, const char *key) {
    ggl_error err;
    ggl_str x = {"", 0};
    (void)ggl_gguf_get_string(f, key, &x, &err);
    return x;
}

/* An integer of the model's own keys, such as embedding_length; 0 if none. */
static int64_t own_integer(const server *s, const char *name) {
    const ggl_gguf *f = llm_model_file(s->model);
    const ggl_str arch = file_string(f, "general.architecture");
    char key[128];
    snprintf(key, sizeof key, "%.*s.%.40s", (int)(arch.n < 64 ? arch.n : 64), arch.s, name);
    return file_integer(f, key);
}

/* Finds the pooling of embeddings. Returns -1, or an exit code. */
static int find_pooling(server *s) {
    ggl_error err = {0};
    const int given = s->o->pooling;
    const char *name =
        given < 0 ? NULL
                  : llm_pooling_name(given == LLM_POOL_COUNT ? LLM_POOL_MEAN : (llm_pooling)given);
    if (!s->o->embeddings ||
        llm_pooling_find(&s->pooling, name, llm_model_file(s->model), &err) == GGL_OK)
        return -1;
    return tool_error(TOOL, 1, "--embeddings: %s (--pooling)", err.msg);
}

/* --- the session ------------------------------------------------------------------------------ */

static bool on_load(void *ctx, size_t done, size_t total) {
    const server *s = ctx;
    return progress_share(NULL, done, total) && !s->aborts;
}

static bool is_aborted(void *ctx) {
    const server *s = ctx;
    return s->aborts;
}

static int64_t n_ctx(const server *s) {
    const int64_t own = llm_model_n_ctx(s->model);
    return s->o->n_ctx > 0 ? s->o->n_ctx : own > 0 ? own : DEFAULT_CTX;
}

/* Makes the session. Its slots share the context; those beyond n_parallel keep sequences that have ended. */
static int make_session(server *s, int64_t n_kept) {
    s->params.n_slots = s->o->n_parallel + n_kept;
    return placement_session(TOOL, s->placement, &s->session, s->model, &s->params);
}

/* Makes a session with as many slots for ended sequences as are cheap: many if all slots share the pages of one cache, few
 * if the model has states or windows, for which each slot takes memory. */
static int make_default_session(server *s) {
    const int code = make_session(s, CACHE_SLOTS);
    if (code >= 0 ||
        (!llm_session_has_states(s->session) && llm_session_cut_limit(s->session) == INT64_MAX))
        return code;
    llm_session_free(s->session);
    s->session = NULL;
    return make_session(s, CACHE_SLOTS_WITH_STATES);
}

static void note_context(const server *s) {
    const int64_t n = llm_session_n_ctx(s->session), n_parallel = s->o->n_parallel;
    tool_note_context(TOOL, s->model, n);
    if (n < FEW_TOKENS * n_parallel)
        tool_note(TOOL,
                  "%" PRId64 " sequences at once (-np) share %" PRId64
                  " tokens (-c), %.1f each; most will wait",
                  n_parallel, n, (double)n / (double)n_parallel);
}

/* What the draft guesses for. file: how its file is read; borrowed. */
static llm_guessing_target target(const server *s, const ggl_gguf_params *file) {
    const llm_model_params mp = {.size = sizeof mp, .gguf = file};
    return (llm_guessing_target){.tokenizer = s->tokenizer,
                                 .placement = s->placement,
                                 .session = s->params,
                                 .n_sequences = (int)s->o->n_parallel,
                                 .n_ctx = llm_session_n_ctx(s->session),
                                 .loading = tool_loading(s->o->speculate.draft, &mp, 0),
                                 .placed = placement_say,
                                 .ctx = (void *)(uintptr_t)TOOL};
}

/* True if other models are to be unloaded before this one is loaded. */
static bool lacks_room(const server *s, const llm_fitting *f) {
    int64_t least = llm_session_n_ctx(s->session);
    if (!f->is_asked && least > ENOUGH_CTX)
        least = ENOUGH_CTX;
    return !s->insists && llm_fit_measure(f->placement, s->session, &f->others).fits < least;
}

/* Notes what the session uses, for models that are loaded later. */
static void note_memory(server *s) {
    used_memory *m = s->used;
    for (int i = 0; i < llm_placement_n_backends(s->placement); i++) {
        const ggl_backend *b = llm_placement_backend(s->placement, i);
        ggl_memory u;
        if (m == s->used + SERVER_MEMORIES - 1 ||
            !ggl_sched_memory(llm_session_sched(s->session), i, &u))
            continue;
        if (llm_fit_is_host(b)) {
            m->bytes = (double)u.weights_mapped;
        } else {
            snprintf(m->device, sizeof m->device, "%s", b->name);
            m->bytes = (double)u.weights_mapped + (double)u.weights_copied +
                       (double)u.weights_repacked + (double)u.stores_rows +
                       (double)u.stores_states + (double)u.arena + (double)u.io;
        }
        m += m->bytes > 0;
    }
}

/* Makes the context smaller if it does not fit into memory. */
static int fit_session(server *s) {
    ggl_error err = {0};
    llm_fitting f = {.placement = s->placement,
                     .model = s->model,
                     .params = &s->params,
                     .is_asked = s->o->n_ctx > 0,
                     .others = {.taken = s->taken, .taken_ctx = s->model_row},
                     .lacks = fit_context_note,
                     .ctx = (void *)(uintptr_t)TOOL};
    const ggl_gguf_params file = file_params(s->o);
    const llm_guessing_target t = target(s, &file);
    const llm_guessing_choice choice = speculate_choice(TOOL, &s->o->speculate);
    llm_guessing_memory(&choice, &t, &f.others.draft_fixed, &f.others.draft_row);
    s->lacks_room = lacks_room(s, &f);
    if (s->lacks_room)
        return 1;
    return llm_fit_session(&f, &s->session, &err) == GGL_OK ? -1
                                                            : tool_error(TOOL, 1, "%s", err.msg);
}

static int new_session(server *s) {
    const server_options *o = s->o;
    const ggl_backend_params bp = {.size = sizeof bp,
                                   .n_threads = (int)o->n_threads,
                                   .n_threads_batch = (int)o->n_threads_batch,
                                   .mask = o->mask,
                                   .f16_as_bf16 = o->f16_as_bf16};
    int code = placement_open(&s->placement, TOOL, &o->placement, &bp);
    if (code >= 0)
        return code;
    llm_session_params *p = &s->params;
    *p = llm_session_default();
    p->n_ctx = p->n_pool = n_ctx(s);
    p->n_ubatch = o->n_ubatch;
    p->n_rows = o->n_parallel * (speculate_n_max(&o->speculate) + 1);
    if (p->n_rows < LLM_FORCED_ROWS)
        p->n_rows = LLM_FORCED_ROWS; /* text that a grammar determines runs in one batch */
    if (p->n_rows > MOST_ROWS)
        p->n_rows = MOST_ROWS;
    p->embeddings = o->embeddings;
    if ((code = find_pooling(s)) >= 0)
        return code;
    if (o->embeddings && s->pooling == LLM_POOL_MEAN && p->n_rows < MOST_ROWS)
        p->n_rows = MOST_ROWS; /* a row for each token's embedding */
    p->type_k = tool_cache_type(o->type_k);
    p->type_v = tool_cache_type(o->type_v);
    p->no_repack = o->no_repack;
    p->repack_cache = o->repack_cache;
    p->progress = on_load;
    p->progress_ctx = s;
    p->cancelled = is_aborted;
    p->cancelled_ctx = s;
    code = adapters_open(&s->o->adapters, TOOL, s->model, p);
    if (code < 0)
        code = o->n_cache_slots < 0 ? make_default_session(s) : make_session(s, o->n_cache_slots);
    if (code < 0)
        code = fit_session(s);
    if (code >= 0)
        return code;
    tool_print_notes(llm_session_notes(s->session));
    note_context(s);
    return -1;
}

static int alloc_session(server *s) {
    ggl_error err = {0};
    char advice[128];
    progress_begin(PROGRESS_BYTES, 0, "weights");
    const double begin = process_seconds();
    const ggl_status st = llm_session_alloc(s->session, &err);
    s->repack_seconds = process_seconds() - begin;
    progress_end();
    if (st == GGL_CANCELLED)
        return 0;
    s->lacks_room = st == GGL_NOMEM && !s->insists;
    if (s->lacks_room)
        return 1;
    if (st != GGL_OK)
        return tool_error(
            TOOL, 1, "%s%s", err.msg,
            llm_placement_advice(s->placement, s->model, &s->params, st, advice, sizeof advice));
    tool_print_notes(llm_session_load_notes(s->session));
    return -1;
}

/* --- the engine ------------------------------------------------------------------------------- */

static int open_speculation(server *s) {
    const server_options *o = s->o;
    if (speculate_n_max(&o->speculate) == 0)
        return -1;
    progress_begin(PROGRESS_BYTES, 0, "the draft model");
    const ggl_gguf_params file = file_params(o);
    const llm_guessing_target t = target(s, &file);
    const int code = speculate_open(&s->guessing, TOOL, &o->speculate, &t);
    progress_end();
    return code;
}

static int open_engine(server *s) {
    ggl_error err = {0};
    const llm_engine_params p = {.size = sizeof p,
                                 .session = s->session,
                                 .tokenizer = s->tokenizer,
                                 .n_parallel = (int)s->o->n_parallel,
                                 .n_queue = (size_t)s->o->n_queue,
                                 .n_queue_each = ((size_t)s->o->n_queue + 1) / 2,
                                 .step_ns = s->o->max_stall * 1000000,
                                 .guesser = llm_guessing_guessers(s->guessing),
                                 .n_guess_max = speculate_n_max(&s->o->speculate)};
    const ggl_status st = llm_engine_new(&s->engine, &p, &err);
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

/* --- facts ------------------------------------------------------------------------------------ */

/* Returns the last part of the path without ".gguf", or what follows the colon if the model is built in. */
static char *name_in_path(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (strncmp(name, "builtin:", 8) == 0)
        name += 8;
    const size_t n = strlen(name);
    const bool has_end = n > 5 && strcmp(name + n - 5, ".gguf") == 0;
    return strndup(name, has_end ? n - 5 : n);
}

/* Returns the model's name: that of its file. A folder or checkpoint has the name that its conversion gives it, such as that of its
 * repository in the Hugging Face cache; a path like "." has none, and gets that of the folder. The caller frees it. */
static char *name_of(const ggl_gguf *f, const char *path) {
    if (!llm_load_converts(path))
        return name_in_path(path);
    const ggl_str own = file_string(f, "general.name");
    if (own.n > 0 && own.s[0] != '.')
        return strndup(own.s, own.n);
    char *real = realpath(path, NULL);
    char *name = name_in_path(real ? real : path);
    free(real);
    return name;
}

static void put_info(llm_json_out *out, const server *s) {
    const ggl_gguf *f = llm_model_file(s->model);
    const ggl_str arch = file_string(f, "general.architecture");
    char text[512];
    double n_params = 0, size = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        double n = 1;
        for (int d = 0; d < t->n_dims; d++)
            n *= (double)t->ne[d];
        n_params += n;
        size += (double)t->size;
    }
    snprintf(text, sizeof text,
             "\"n_vocab\": %" PRId64 ", \"n_ctx\": %" PRId64 ", \"n_ctx_train\": %" PRId64
             ", \"n_embd\": %" PRId64 ", \"n_params\": %.0f, \"size\": %.0f",
             s->facts.n_vocab, s->facts.n_ctx, llm_model_n_ctx(s->model),
             own_integer(s, "embedding_length"), n_params, size);
    llm_json_put_text(out, "{\"architecture\": ");
    llm_json_put_string(out, arch);
    llm_json_put_text(out, ", \"name\": ");
    llm_json_put_string(out, file_string(f, "general.name"));
    llm_json_put_text(out, ", \"tokenizer\": \"");
    llm_json_put_text(out, llm_tokenizer_kind_name(s->tokenizer));
    llm_json_put_text(out, "\", ");
    llm_json_put_text(out, text);
    llm_json_put_text(out, "}");
}

static bool shows_tools(const llm_template *t) {
    return llm_template_mentions(t, "tools") || llm_template_mentions(t, "functions");
}

/* Reads the marks for filling in the middle, by their names or the older ones. */
static void read_fim(server *s) {
    static const char *const key[N_FIM][2] = {[FIM_PRE] = {"fim_pre", "prefix"},
                                              [FIM_SUF] = {"fim_suf", "suffix"},
                                              [FIM_MID] = {"fim_mid", "middle"},
                                              [FIM_REP] = {"fim_rep"},
                                              [FIM_SEP] = {"fim_sep"}};
    const ggl_gguf *f = llm_model_file(s->model);
    for (int i = 0; i < N_FIM; i++) {
        s->fim[i] = -1;
        for (int k = 1; k >= 0; k--) {
            char name[64];
            ggl_error err;
            int64_t id = 0;
            snprintf(name, sizeof name, "tokenizer.ggml.%s_token_id", key[i][k] ? key[i][k] : "-");
            if (ggl_gguf_get_integer(f, name, &id, &err) == 1 && id >= 0 &&
                id < llm_session_n_vocab(s->session))
                s->fim[i] = (int32_t)id;
        }
    }
}

static int set_facts(server *s) {
    const server_options *o = s->o;
    server_facts *f = &s->facts;
    llm_json_out info = {0};
    const char *path = ggl_gguf_name(llm_model_file(s->model));
    const int code =
        sampling_options_check_vocab(TOOL, &o->sampling, llm_session_n_vocab(s->session));
    if (code >= 0)
        return code;
    *f = (server_facts){.model = s->name    ? strdup(s->name)
                                 : o->alias ? strndup(o->alias, strcspn(o->alias, ","))
                                            : name_of(llm_model_file(s->model), path),
                        .model_path = path,
                        .n_ctx = llm_session_n_ctx(s->session),
                        .n_vocab = llm_session_n_vocab(s->session),
                        .n_parallel = o->n_parallel,
                        .n_embd = llm_session_n_embd(s->session),
                        .pooling = s->pooling,
                        .all_vectors = o->pooling == LLM_POOL_COUNT,
                        .has_chat = s->chat != NULL,
                        .shows_tools = s->chat && shows_tools(llm_chat_get_template(s->chat)),
                        .strict_fields = o->strict_fields,
                        .t_start = (int64_t)time(NULL),
                        .sampling = sampling_params(&o->sampling),
                        .has_seed = o->seed >= 0,
                        .n_predict = o->n_predict,
                        .shifts = o->shifts,
                        .n_keep = o->n_keep,
                        .reasoning_budget =
                            o->reasoning == TOOL_REASONING_OFF ? 0 : o->reasoning_budget,
                        .raw_marks = o->reasoning_format == TOOL_FORMAT_NONE,
                        .max_seconds = (double)o->max_seconds,
                        .tokenizer = s->tokenizer,
                        .fim = s->fim};
    read_fim(s);
    f->sampling.seed = o->seed >= 0 ? (uint64_t)o->seed : 0;
    put_info(&info, s);
    s->model_info = info.s;
    return f->model && info.s && !info.failed ? -1 : tool_error(TOOL, 1, "out of memory");
}

/* Downloads a model of a preset. The only model of a server was downloaded before anything listened. */
static int get_model(server *s) {
    server_options *o = s->o;
    int code = -1;
    o->hub.arch = o->arch;
    if (!o->hub.path[0] && !o->model)
        code = tool_hub_get(TOOL, &o->hub, &o->model);
    if (code < 0 && !o->hub.path[1] && !o->speculate.draft)
        code = tool_hub_get_draft(TOOL, &o->hub, &o->speculate.draft);
    return code;
}

int server_load(server *s) {
    const double begin = process_seconds();
    progress_begin(NULL, 0, "loading %s", s->o->model ? s->o->model : "the model");
    int code = get_model(s);
    if (code < 0)
        code = open_model(s);
    if (code < 0)
        code = open_template(s);
    if (code < 0)
        code = new_session(s);
    if (code < 0)
        code = open_speculation(s);
    if (code < 0)
        code = alloc_session(s);
    if (code < 0)
        code = open_engine(s);
    if (code < 0)
        code = set_facts(s);
    if (code < 0)
        note_memory(s);
    progress_end();
    s->load_seconds = process_seconds() - begin;
    if (code < 0)
        repack_hint_print(TOOL, s->session, &s->params, s->load_seconds, s->repack_seconds);
    return code;
}

void server_unload(server *s) {
    ggl_error err;
    llm_engine_free(s->engine);
    llm_guessing_close(s->guessing);
    llm_session_free(s->session);
    if (llm_placement_close(s->placement, &err) != GGL_OK)
        (void)tool_error(TOOL, 1, "%s", err.msg);
    adapters_close(&s->o->adapters);
    llm_chat_free(s->chat);
    llm_model_free(s->model);
    ggl_free(s->model_info);
    free((char *)s->facts.model);
}
