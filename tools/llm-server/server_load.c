/* Opens the model, its session and the engine. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/gguf_text.h"
#include "common/fit_context.h"
#include "common/load.h"
#include "common/open_context.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/reasoning.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/sched.h"
#include "ggl/internal/text.h"
#include "model_facts.h"
#include "models.h"
#include "server_adapters.h"
#include "server_impl.h"
#include "ggl/internal/os_fs.h"

#define TOOL "llm-server"

enum {
    DEFAULT_CTX = 4096,
    FEW_TOKENS = 32, /* for a prompt and its answer */
    SPEECH_ROWS =
        16,         /* tokens whose attention is looked at together, to find when words were said */
    MOST_ROWS = 64, /* of logits at a time */
    ENOUGH_CTX = 8192 /* without -c, other models are not unloaded for a longer context */
};

/* --- the model -------------------------------------------------------------------------------- */

static int open_until(server *s, llm_opened until) {
    return tool_open_context(s->ctx, TOOL, &s->opening, &s->o->open.adapters, until);
}

static int open_model(server *s) {
    s->opening.beside = s->beside ? s->beside(s->model_row, &s->opening) : NULL;
    const int code = tool_open_named(&s->ctx, TOOL, &s->opening);
    llm_model_free(s->opening.beside);
    s->opening.beside = NULL;
    if (code < 0 && !llm_opened_tokenizer(s->ctx))
        return tool_error(TOOL, 1, "%s", llm_opened_why_no_tokenizer(s->ctx)->msg);
    return code;
}

/* A model without a template serves texts only. */
static int open_template(server *s) {
    const open_options *open = &s->o->open;
    ggl_error err = {0};
    ggl_status st;
    const int code = open_options_open_chat(TOOL, open, s->ctx, s->o->reasoning, &st, &err);
    if (code >= 0 || st == GGL_OK || (st == GGL_NOT_FOUND && !open_options_names_template(open)))
        return code;
    return tool_error(TOOL, 1, "%s", err.msg);
}

/* Returns the name of --pooling; NULL: the model's own. */
static const char *pooling_name(const server_options *o) {
    const int given = o->pooling == LLM_POOL_NONE ? LLM_POOL_MEAN : o->pooling;
    return given < 0 ? NULL : llm_pooling_name((llm_pooling)given);
}

static bool only_reads(const server *s) {
    return server_only_reads(llm_model_arch(llm_opened_model(s->ctx)), s->o);
}

/* True if the model writes down sounds. */
static bool hears(const server *s) {
    return model_card_hears(llm_model_arch(llm_opened_model(s->ctx)));
}

/* --- the session ------------------------------------------------------------------------------ */

static bool on_load(void *ctx, size_t done, size_t total) {
    const server *s = ctx;
    return progress_share(NULL, done, total) && !s->aborts;
}

/* Asked between the parts of a step. The answers belong to the engine's thread: devices with threads of their own do not look at them. */
static bool is_aborted(void *ctx) {
    const server *s = ctx;
    if (s->facts.hears || s->hearing_thread == ggl_os_thread_number())
        return s->aborts || (s->hearing && turn_queue_stops(s->speech, s->hearing));
    return s->aborts || (s->engine_thread == ggl_os_thread_number() && s->n_said == 0 &&
                         answers_run_for_nobody(s->answers));
}

/* Other threads use the eye once the model is loaded. */
static bool stops_seeing(void *ctx) {
    const server *s = ctx;
    return s->looks ? looks_stops(s->looks) : s->aborts;
}

static int64_t n_ctx(const server *s) {
    const int64_t own = llm_model_n_ctx(llm_opened_model(s->ctx));
    const int64_t given = s->o->open.how.params.n_ctx;
    return given > 0 ? given : own > 0 ? own : DEFAULT_CTX;
}

/* True if texts are seen whole: each is a ubatch, of which others take what is left. */
static bool sees_all(const server *s) {
    return only_reads(s) || llm_arch_sees_all(llm_model_arch(llm_opened_model(s->ctx)));
}

static void note_context(const server *s) {
    const int64_t n = llm_session_n_ctx(llm_opened_session(s->ctx)), n_parallel = s->o->n_parallel;
    tool_note_context(TOOL, llm_opened_model(s->ctx), n);
    if (n < FEW_TOKENS * n_parallel && !sees_all(s) &&
        !llm_session_reads_text(llm_opened_session(s->ctx)))
        tool_note(TOOL,
                  "%" PRId64 " sequences at once (-np) share %" PRId64
                  " tokens (-c), %.1f each; most will wait",
                  n_parallel, n, (double)n / (double)n_parallel);
}

/* The callbacks of the opening. */

static double taken(void *ctx, const char *device) {
    const server *s = ctx;
    return s->taken ? s->taken(s->model_row, device) : 0;
}

/* True if other models are to be unloaded before this one is loaded. */
static bool lacks_room(void *ctx, const llm_fit *fit, int64_t n_ctx, bool is_asked) {
    server *s = ctx;
    const int64_t least = !is_asked && n_ctx > ENOUGH_CTX ? ENOUGH_CTX : n_ctx;
    s->lacks_room = !s->insists && fit->fits < least;
    return s->lacks_room;
}

static void on_note(void *ctx, const char *text) {
    const server *s = ctx;
    tool_load_note((void *)(uintptr_t)s->opening.path, text);
}

/* Notes what the session uses, for models that are loaded later. */
static void note_memory(server *s) {
    used_memory *m = s->used;
    for (int i = 0; i < llm_placement_n_backends(llm_opened_placement(s->ctx)); i++) {
        const ggl_backend *b = llm_placement_backend(llm_opened_placement(s->ctx), i);
        ggl_memory u;
        if (m == s->used + SERVER_MEMORIES - 1 ||
            !ggl_sched_memory(llm_session_sched(llm_opened_session(s->ctx)), i, &u))
            continue;
        const ggl_memory *r = llm_placement_reserved(llm_opened_placement(s->ctx), i);
        m->bytes = (double)u.weights_mapped + (double)r->weights_mapped;
        if (!llm_placement_is_host(b)) {
            snprintf(m->device, sizeof m->device, "%s", b->name);
            m->bytes += llm_placement_taken(&u) + llm_placement_taken(r);
        }
        m += m->bytes > 0;
    }
}

/* Sets what the options say about opening the model; all but what depends on it. */
static void set_opening(server *s) {
    const server_options *o = s->o;
    llm_opening *how = &s->opening;
    *how = open_options_opening(&s->o->open);
    if (!how->path)
        how->path = "builtin:chat";
    llm_open_params *p = &how->params;
    if (!p->mmproj)
        p->image_min_tokens = p->image_max_tokens = 0;
    p->progress = on_load;
    p->note = on_note;
    p->user = s;
    how->sees_apart = true;
    how->stops_seeing = stops_seeing;
    how->session.n_slots = o->n_parallel;
    how->n_ctx_is_most = p->n_ctx <= 0;
    how->n_kept_slots = o->n_cache_slots;
    how->n_guessers = (int)o->n_parallel;
    how->vary_adapters = true;
    how->taken = taken;
    how->refuses = lacks_room;
    how->lacks = fit_context_note;
    how->cancelled = is_aborted;
    how->ctx = s;
}

/* Takes steps that may find that there is no room. Returns -1, or an exit code. */
static int open_in_room(server *s, llm_opened until) {
    ggl_error err = {0};
    const ggl_status st = llm_context_open(s->ctx, &s->opening, until, &err);
    const bool has_session = llm_opened_step(s->ctx) >= LLM_OPENED_SESSION;
    if (st == GGL_CANCELLED && has_session)
        return 0;
    s->lacks_room |= st == GGL_NOMEM && has_session && !s->insists;
    if (s->lacks_room)
        return 1;
    return st == GGL_OK
               ? -1
               : tool_tell_opening(s->ctx, TOOL, &s->opening, &s->o->open.adapters, st, &err);
}

/* Returns the longest text of a model that sees it whole; 0: as long as the session allows. It is a ubatch, of which other texts
 * take what is left. */
static int64_t longest_text(const server *s) {
    const int64_t own = llm_model_n_ctx(llm_opened_model(s->ctx)), n = s->o->open.how.params.n_ctx;
    if (own <= 0 || n <= own)
        return n;
    tool_note(TOOL, "the model reads texts of at most %" PRId64 " tokens, fewer than -c %" PRId64,
              own, n);
    return own;
}

/* Opens the session so that it also finds when words are said. A file may name heads of attention that its decoder lacks, such as those of the
 * larger model from which it was made: then the next attempt is for texts alone. */
static void find_words(server *s) {
    ggl_error err = {0};
    llm_open_params *p = &s->opening.params;
    p->words = llm_arch_has_output(llm_model_arch(llm_opened_model(s->ctx)), "alignment");
    const ggl_status st =
        p->words ? llm_context_open(s->ctx, &s->opening, LLM_OPENED_SESSION, &err) : GGL_OK;
    if (st != GGL_FORMAT && st != GGL_UNSUPPORTED)
        return;
    tool_note(TOOL, "there are no times of words: %s", err.msg);
    p->words = false;
}

/* Names adapters that --lora-init-without-apply does not turn off; those for tasks count for none until a request names their task. */
static void note_fixed(const server *s) {
    const llm_adapter_use *use = llm_opened_adapter(s->ctx);
    if (s->o->open.how.vary_from_0 && server_n_adapters(s) == 0)
        tool_note(TOOL, "--lora-init-without-apply has no effect: --lora names no adapter");
    for (size_t i = 0; s->o->open.how.vary_from_0 && i < server_n_adapters(s); i++)
        if (!use[i].varies && use[i].task == 0)
            tool_note(TOOL,
                      "--lora-init-without-apply: %s is applied all the same, because requests "
                      "cannot choose its scale",
                      ggl_gguf_name(llm_adapter_file(use[i].adapter)));
}

static int new_session(server *s) {
    const server_options *o = s->o;
    llm_session_params *sp = &s->opening.session;
    llm_open_params *p = &s->opening.params;
    const int64_t n_guess = llm_open_n_guess(&s->opening);
    int code = open_until(s, LLM_OPENED_ADAPTERS);
    if (code >= 0)
        return code;
    note_fixed(s);
    if (o->pooling == LLM_POOL_RANK &&
        !llm_arch_has_output(llm_model_arch(llm_opened_model(s->ctx)), "score"))
        return tool_error(TOOL, 1, "--reranking: the model is no reranker: it has no score");
    if (!only_reads(s) && sees_all(s) && n_guess > 0)
        return tool_error(TOOL, 2,
                          "%s: the model writes by diffusion, where nothing is guessed ahead",
                          llm_open_name(&s->opening, p->lookup ? LLM_OPEN_lookup : LLM_OPEN_draft));
    p->embeddings |= only_reads(s);
    p->pooling = p->embeddings ? pooling_name(o) : NULL;
    p->n_ctx = 0;
    sp->n_ctx = sp->n_pool = n_ctx(s);
    if (sees_all(s)) {
        sp->n_ctx = longest_text(s);
        sp->n_pool = 0;
    }
    sp->n_rows = o->n_parallel * (n_guess + 1);
    if (sp->n_rows < LLM_FORCED_ROWS)
        sp->n_rows = LLM_FORCED_ROWS; /* text that a grammar determines runs in one batch */
    if (sp->n_rows > MOST_ROWS || p->embeddings)
        sp->n_rows = MOST_ROWS; /* of a mean: a row for each token's embedding */
    if (hears(s)) {             /* -c and -np are for texts of requests */
        sp->n_ctx = sp->n_pool = 0;
        sp->n_slots = LLM_SPEECH_TEXTS;
        sp->n_rows = SPEECH_ROWS;
        p->embeddings = false;
        p->pooling = NULL;
        find_words(s);
    }
    code = open_in_room(s, LLM_OPENED_SESSION);
    if (code >= 0)
        return code;
    tool_print_notes(llm_session_notes(llm_opened_session(s->ctx)));
    note_context(s);
    return -1;
}

static int alloc_session(server *s) {
    progress_begin(PROGRESS_BYTES, 0, "weights");
    const double begin = ggl_os_seconds();
    const int code = open_in_room(s, LLM_OPENED_WEIGHTS);
    s->repack_seconds = ggl_os_seconds() - begin;
    progress_end();
    if (code < 0)
        tool_print_notes(llm_session_load_notes(llm_opened_session(s->ctx)));
    return code;
}

/* --- the engine ------------------------------------------------------------------------------- */

static int open_speculation(server *s) {
    if (llm_open_n_guess(&s->opening) == 0)
        return open_until(s, LLM_OPENED_GUESSES);
    progress_begin(PROGRESS_BYTES, 0, "the draft model");
    const int code = open_until(s, LLM_OPENED_GUESSES);
    progress_end();
    return code;
}

/* Texts that are seen whole take their slots for one step, as many as fit. */
static int n_parallel(const server *s) {
    if (hears(s))
        return 1;
    return (int)(only_reads(s) ? llm_session_n_slots(llm_opened_session(s->ctx))
                               : s->o->n_parallel);
}

static void on_prompts(void *ctx, const char *sentence) {
    const server *s = ctx;
    char text[800];
    snprintf(text, sizeof text, "--prompt-cache-dir: %s", sentence);
    models_warn(model_table(s->model_row), text);
}

/* Opens the folder of shared beginnings, of a model that continues what it has read. */
static int open_prompts(server *s) {
    const server_options *o = s->o;
    ggl_error err = {0};
    if (!o->prompt_path)
        return -1;
    if (hears(s) || sees_all(s) || llm_session_reads_text(llm_opened_session(s->ctx))) {
        tool_note(TOOL,
                  "--prompt-cache-dir has no effect: this model does not continue what it has "
                  "read");
        return -1;
    }
    (void)llm_cache_settings(s->prompts_also, llm_opened_adapter(s->ctx),
                             llm_opened_n_adapters(s->ctx), llm_opened_placement(s->ctx));
    const llm_prompt_folder_params p = {.size = sizeof p,
                                        .path = o->prompt_path,
                                        .n_bytes = (uint64_t)o->prompt_mib << 20,
                                        .n_copy_bytes = (uint64_t)o->request_memory << 19,
                                        .cache = {.size = sizeof p.cache,
                                                  .model = llm_opened_model(s->ctx),
                                                  .session = llm_opened_session(s->ctx),
                                                  .also = s->prompts_also},
                                        .report = on_prompts,
                                        .ctx = s};
    const ggl_status st = llm_prompt_folder_new(&s->prompts, &p, &err);
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "--prompt-cache-dir: %s", err.msg);
}

static int open_engine(server *s) {
    ggl_error err = {0};
    /* a request for vectors or scores waits with as many texts as may run at once */
    const size_t n_queue = (size_t)s->o->n_queue * (only_reads(s) ? (size_t)n_parallel(s) : 1);
    s->n_queue = n_queue;
    const llm_engine_params p = {.size = sizeof p,
                                 .session = llm_opened_session(s->ctx),
                                 .tokenizer = llm_opened_tokenizer(s->ctx),
                                 .n_parallel = n_parallel(s),
                                 .n_ubatch = llm_opened_session_params(s->ctx)->n_ubatch,
                                 .n_queue = n_queue,
                                 .n_queue_each = (n_queue + 1) / 2,
                                 .step_ns = s->o->max_stall * 1000000,
                                 .guesser = llm_guessing_guessers(llm_opened_guessing(s->ctx)),
                                 .n_guess_max = llm_open_n_guess(&s->opening),
                                 .prompts = s->prompts};
    if (!only_reads(s) && !s->o->no_warmup && llm_session_warm_up(p.session, &err) != GGL_OK)
        err = (ggl_error){0}; /* what cannot run says so to its first request */
    const ggl_status st = llm_engine_new(&s->engine, &p, &err);
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

/* A model that finds speech is opened, too. Of a model such as Whisper, the context writes down sounds on the queue's thread, and the engine's keeps away from it; the texts
 * of one with an ear run in the engine. */
static int open_speech(server *s) {
    ggl_error err = {0};
    if (!hears(s) && !s->facts.listens) {
        if (s->o->vad_model)
            tool_note(TOOL, "--vad-model has no effect: the model does not hear");
        return -1;
    }
    if (s->o->vad_model && llm_context_open_voice(s->ctx, s->o->vad_model, &err) != GGL_OK)
        return tool_error(TOOL, 1, "--vad-model: %s", err.msg);
    s->speech = turn_queue_new((size_t)s->o->n_queue, 1, "sounds");
    return s->speech ? -1 : tool_error(TOOL, 1, "no thread for sounds");
}

/* --- facts ------------------------------------------------------------------------------------ */

/* Returns the last part of the path without ".gguf", or what follows the colon if the model is built in. */
static char *name_in_path(const char *path) {
    const char *slash = ggl_os_last_separator(path);
    const char *name = slash ? slash + 1 : path;
    if (strncmp(name, "builtin:", 8) == 0)
        name += 8;
    const size_t n = strlen(name);
    const bool has_end = n > 5 && strcmp(name + n - 5, ".gguf") == 0;
    return ggl_copy_text_n(name, has_end ? n - 5 : n);
}

/* Returns the model's name: that of its file. A folder or checkpoint has the name that its conversion gives it, such as that of its
 * repository in the Hugging Face cache; a path like "." has none, and gets that of the folder. The caller frees it. */
static char *name_of(const ggl_gguf *f, const char *path) {
    if (!llm_load_converts(path))
        return name_in_path(path);
    const ggl_str own = text_of_key(f, "general.name");
    if (own.n > 0 && own.s[0] != '.')
        return ggl_copy_text_n(own.s, own.n);
    char *real = ggl_os_real_path(path);
    char *name = name_in_path(real ? real : path);
    free(real);
    return name;
}

static void put_info(llm_json_out *out, const server *s) {
    const llm_model_facts m = llm_model_facts_of(llm_model_file(llm_opened_model(s->ctx)));
    char text[512];
    snprintf(text, sizeof text,
             "\"n_vocab\": %" PRId64 ", \"n_ctx\": %" PRId64 ", \"n_ctx_train\": %" PRId64
             ", \"n_embd\": %" PRId64 ", \"n_params\": %.0f, \"size\": %.0f",
             s->facts.n_vocab, s->facts.n_ctx, llm_model_n_ctx(llm_opened_model(s->ctx)), m.n_embd,
             m.n_params, m.bytes);
    llm_json_format(out, "{'architecture': %.*s, 'name': %.*s, 'tokenizer': '%s', %s}",
                    LLM_JSON_STR(m.architecture), LLM_JSON_STR(m.name),
                    llm_tokenizer_kind_name(llm_opened_tokenizer(s->ctx)), text);
}

/* Reads the marks for filling in the middle, by their names or the older ones. */
static void read_fim(server *s) {
    static const char *const key[N_FIM][2] = {[FIM_PRE] = {"fim_pre", "prefix"},
                                              [FIM_SUF] = {"fim_suf", "suffix"},
                                              [FIM_MID] = {"fim_mid", "middle"},
                                              [FIM_REP] = {"fim_rep"},
                                              [FIM_SEP] = {"fim_sep"}};
    const ggl_gguf *f = llm_model_file(llm_opened_model(s->ctx));
    for (int i = 0; i < N_FIM; i++) {
        s->fim[i] = -1;
        for (int k = 1; k >= 0; k--) {
            char name[64];
            ggl_error err;
            int64_t id = 0;
            snprintf(name, sizeof name, "tokenizer.ggml.%s_token_id", key[i][k] ? key[i][k] : "-");
            if (ggl_gguf_get_integer(f, name, &id, &err) == 1 && id >= 0 &&
                id < llm_session_n_vocab(llm_opened_session(s->ctx)))
                s->fim[i] = (int32_t)id;
        }
    }
}

/* The numbers of the vector of a text, before it is cut to those that the file keeps. */
static int64_t whole_embd(const server *s) {
    const llm_head *head = llm_opened_head(s->ctx);
    return head ? llm_head_n_out(head) : llm_context_facts(s->ctx)->n_embd;
}

/* The numbers of a vector: of a token, if each has one, else of a text. */
static int64_t n_embd(const server *s) {
    const bool of_tokens =
        s->o->pooling == LLM_POOL_NONE || llm_opened_pooling(s->ctx) == LLM_POOL_NONE;
    return of_tokens ? llm_session_n_embd(llm_opened_session(s->ctx)) : whole_embd(s);
}

static int set_facts(server *s) {
    const server_options *o = s->o;
    server_facts *f = &s->facts;
    ggl_error err = {0};
    llm_json_out info = {0};
    const llm_pooling pooling = llm_opened_pooling(s->ctx);
    const char *path = ggl_gguf_name(llm_model_file(llm_opened_model(s->ctx)));
    sampling_options sampling = o->sampling;
    sampling_options_resolve(&sampling, llm_opened_sampling(s->ctx));
    const int code = sampling_options_check_vocab(TOOL, &o->sampling,
                                                  llm_session_n_vocab(llm_opened_session(s->ctx)));
    if (code >= 0)
        return code;
    *f = (server_facts){
        .model = s->name    ? ggl_copy_text(s->name)
                 : o->alias ? ggl_copy_text_n(o->alias, strcspn(o->alias, ","))
                            : name_of(llm_model_file(llm_opened_model(s->ctx)), path),
        .model_path = path,
        .n_ctx = llm_session_n_ctx(llm_opened_session(s->ctx)),
        .n_vocab = llm_session_n_vocab(llm_opened_session(s->ctx)),
        .n_parallel = n_parallel(s),
        .writes = !only_reads(s) && !hears(s) && llm_session_has_logits(llm_opened_session(s->ctx)),
        .hears = hears(s),
        .has_words = llm_session_n_aligned_heads(llm_opened_session(s->ctx)) > 0,
        .fetches = o->image_urls,
        .n_row = llm_context_facts(s->ctx)->sees || llm_context_facts(s->ctx)->hears
                     ? llm_session_n_given(llm_opened_session(s->ctx))
                     : 0,
        .most_images = llm_model_max_images(llm_opened_model(s->ctx)),
        .looks = llm_context_facts(s->ctx)->sees,
        .listens = llm_context_facts(s->ctx)->hears,
        .n_embd = n_embd(s),
        .n_dims = llm_opened_head(s->ctx) ? llm_context_facts(s->ctx)->n_embd : 0,
        .n_score = llm_session_n_score(llm_opened_session(s->ctx)),
        .sees_all = llm_session_sees_all(llm_opened_session(s->ctx)),
        .diffuses = !only_reads(s) && sees_all(s),
        .diffusion = diffusion_schedule(&o->diffusion),
        .reads_text = llm_session_reads_text(llm_opened_session(s->ctx)),
        .pooling = pooling == LLM_POOL_NONE ? LLM_POOL_MEAN : pooling,
        .all_vectors = o->pooling == LLM_POOL_NONE || pooling == LLM_POOL_NONE,
        .limit_is_file = llm_limit_is_file(s->ctx),
        .embeds_empty = o->pooling != LLM_POOL_NONE && llm_embeds_empty(s->ctx),
        .has_chat = llm_opened_chat(s->ctx) != NULL,
        .shows_tools = llm_opened_chat(s->ctx) && llm_chat_shows_tools(llm_opened_chat(s->ctx)),
        .shares_prompts = s->prompts != NULL,
        .strict_fields = o->strict_fields,
        .t_start = (int64_t)time(NULL),
        .sampling = sampling_params(&sampling),
        .has_seed = o->seed >= 0,
        .n_predict = o->n_predict,
        .shifts = o->shifts,
        .n_keep = o->n_keep,
        .reasoning_budget = o->reasoning == TOOL_REASONING_OFF ? 0 : o->open.reasoning_budget,
        .raw_marks = o->reasoning_format == TOOL_FORMAT_NONE,
        .max_seconds = (double)o->max_seconds,
        .tokenizer = llm_opened_tokenizer(s->ctx),
        .fim = s->fim};
    snprintf(f->lack, sizeof f->lack, "%s", llm_opened_lack(s->ctx));
    if (f->diffuses && llm_diffusion_of(&f->diffusion, llm_opened_model(s->ctx), &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (f->n_score > 1 &&
        llm_pooling_check_ranks(llm_model_file(llm_opened_model(s->ctx)), &f->why_no_rank) !=
            GGL_OK &&
        o->pooling == LLM_POOL_RANK)
        return tool_error(TOOL, 1, "--reranking: %s", f->why_no_rank.msg);
    read_fim(s);
    if (f->writes)
        sampling_options_note(TOOL, &o->sampling, s->ctx, &s->opening);
    f->sampling.seed = o->seed >= 0 ? (uint64_t)o->seed : 0;
    put_info(&info, s);
    s->model_info = info.s;
    return f->model && info.s && !info.failed ? -1 : tool_error(TOOL, 1, "out of memory");
}

/* Downloads a model of a preset, and finds its eye. The only model of a server was downloaded before anything listened. */
static int get_model(server *s) {
    return open_options_get_models(TOOL, &s->o->open, false);
}

/* Starts what looks at pictures or listens to sounds, if the model does. */
static int start_looks(server *s) {
    if (s->facts.n_row == 0)
        return -1;
    s->looks = looks_new((size_t)s->o->n_queue, s->facts.fetches);
    return s->looks ? -1 : tool_error(TOOL, 1, "no thread could be started");
}

int server_load(server *s) {
    const double begin = ggl_os_seconds();
    progress_begin(NULL, 0, "loading %s", s->o->open.how.path ? s->o->open.how.path : "the model");
    int code = get_model(s);
    set_opening(s);
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
        code = open_prompts(s);
    if (code < 0)
        code = open_engine(s);
    if (code < 0)
        code = set_facts(s);
    if (code < 0)
        code = start_looks(s);
    if (code < 0)
        note_memory(s);
    if (code < 0)
        code = open_speech(s);
    progress_end();
    s->load_seconds = ggl_os_seconds() - begin;
    if (code < 0)
        repack_hint_print(TOOL, llm_opened_session(s->ctx), llm_opened_session_params(s->ctx),
                          s->load_seconds, s->repack_seconds);
    return code;
}

void server_unload(server *s) {
    looks_end(s->looks); /* unless the engine's thread did */
    looks_free(s->looks);
    turn_queue_end(s->speech);
    turn_queue_free(s->speech);
    llm_engine_free(s->engine);
    llm_prompt_folder_free(s->prompts);
    (void)tool_close_context(s->ctx, TOOL, 0);
    adapters_forget(&s->o->open.adapters);
    ggl_free(s->model_info);
    free((char *)s->facts.model);
}
