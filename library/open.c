/* Opens and closes contexts, and returns facts about them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "builtin/builtin.h"
#include "context.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/params.h"
#include "place/fit.h"

enum { ROWS = 16, UBATCH = 512 }; /* rows of logits that are computed together */

/* --- opening ---------------------------------------------------------------------------------- */

static ggl_status open_model(llm_context *c, const char *path, const llm_open_params *p,
                             ggl_error *err) {
    const llm_load_params load = {.size = sizeof load,
                                  .open_backend = ggl_backend_open,
                                  .close_backend = ggl_backend_close,
                                  .n_threads = p->n_threads > 0 ? p->n_threads
                                                                : ggl_backend_default_threads(),
                                  .progress = p->progress,
                                  .ctx = p->user};
    const llm_model_params mp = {.size = sizeof mp, .arch_path = p->arch, .load = &load};
    llm_builtin built_in;
    if (!path)
        return ggl_fail(err, GGL_USAGE, "llm_open needs the path of a model");
    if (!llm_builtin_find(path, &built_in))
        return llm_model_open(&c->model, path, &mp, err);
    if (!built_in.name)
        return ggl_fail(err, GGL_NOT_FOUND,
                        "%s: the built-in models are builtin:stories and builtin:chat", path);
    return llm_model_open_memory(&c->model, built_in.data, built_in.size, built_in.name, &mp, err);
}

/* A model without a tokenizer or a template can run; the calls that need them report why they are missing. */
static ggl_status open_text(llm_context *c, const llm_open_params *p, ggl_error *err) {
    ggl_status st = llm_model_tokenizer(c->model, &c->tokenizer, &c->why_no_tokenizer);
    if (st == GGL_NOMEM)
        return ggl_fail(err, st, "%s", c->why_no_tokenizer.msg);
    llm_chat_template with = {.name = p->chat_template};
    if (p->chat_template && strpbrk(p->chat_template, "{\n"))
        with = (llm_chat_template){.name = "chat_template",
                                   .text = {p->chat_template, strlen(p->chat_template)}};
    st = llm_chat_new(&c->chat, llm_model_file(c->model), c->tokenizer,
                      p->chat_template ? &with : NULL, &c->why_no_chat);
    if (c->chat)
        llm_chat_leave_bos_out(c->chat, p->no_chat_bos);
    return st == GGL_NOMEM || (st != GGL_OK && p->chat_template)
               ? ggl_fail(err, st, "%s", c->why_no_chat.msg)
               : GGL_OK;
}

static bool is_cancelled(void *ctx) {
    return atomic_load(&((llm_context *)ctx)->cancelled);
}

static ggl_status alloc_session(llm_context *c, const llm_open_params *p, ggl_error *err) {
    const ggl_status st = llm_session_alloc(c->session, err);
    if (st == GGL_NOMEM && !p->n_ctx)
        return ggl_within(err, st,
                          "with a context of %" PRId64 " tokens (n_ctx sets a smaller one)",
                          llm_session_n_ctx(c->session));
    return st;
}

static ggl_status open_backends(llm_context *c, const llm_open_params *p, ggl_error *err) {
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = p->n_threads};
    const llm_placement_choice choice = {.names = {.device = "device",
                                                   .device_given = "device",
                                                   .split = "split",
                                                   .n_gpu_layers = "n_gpu_layers",
                                                   .context = "n_ctx"},
                                         .devices = p->device,
                                         .split = p->split,
                                         .n_gpu_layers = p->n_gpu_layers,
                                         .n_gpu_layers_given = p->n_gpu_layers > 0};
    if (p->n_threads < 0 || p->n_threads > GGL_MAX_THREADS || p->n_gpu_layers < 0)
        return ggl_fail(
            err, GGL_USAGE,
            "n_threads must be 0 to %d and n_gpu_layers 0 or more, but they are %" PRId32
            " and %" PRId32,
            GGL_MAX_THREADS, p->n_threads, p->n_gpu_layers);
    return llm_placement_new(&c->placement, &choice, &bp, err);
}

static ggl_status open_session(llm_context *c, const llm_open_params *p, ggl_error *err) {
    llm_session_params sp = llm_session_default();
    if (p->n_ctx < 0 || p->n_ubatch < 0)
        return ggl_fail(err, GGL_USAGE,
                        "n_ctx and n_ubatch must be 0 or more, but are %" PRId64 " and %" PRId64,
                        p->n_ctx, p->n_ubatch);
    sp.n_ctx = p->n_ctx;
    sp.n_ubatch = p->n_ubatch ? p->n_ubatch : UBATCH;
    sp.n_rows = ROWS;
    sp.embeddings = p->embeddings;
    sp.no_repack = p->no_repack;
    sp.progress = p->progress;
    sp.progress_ctx = p->user;
    sp.cancelled = is_cancelled;
    sp.cancelled_ctx = c;
    ggl_status st = p->embeddings || p->pooling
                        ? llm_pooling_find(&c->pooling, p->pooling, llm_model_file(c->model), err)
                        : GGL_OK;
    if (st == GGL_OK)
        st = llm_placement_session(c->placement, &c->session, c->model, &sp, err);
    if (st == GGL_OK && !p->n_ctx) {
        const int64_t n = llm_fit_measure(c->placement, c->session, NULL).n_ctx;
        if (n < llm_session_n_ctx(c->session))
            st = llm_fit_replace(c->placement, &c->session, c->model, &sp, n, err);
    }
    return st == GGL_OK ? alloc_session(c, p, err) : st;
}

static ggl_status open_generator(llm_context *c, ggl_error *err) {
    llm_sampler_params sp = llm_sampler_default();
    sp.temp = 0;
    const ggl_status st =
        llm_sampler_new(&c->sampler, &sp, (int32_t)llm_session_n_vocab(c->session),
                        (int32_t)llm_session_n_ctx(c->session), err);
    const llm_generator_params gp = {
        .size = sizeof gp, .session = c->session, .sampler = c->sampler, .tokenizer = c->tokenizer};
    return st == GGL_OK ? llm_generator_new(&c->generator, &gp, err) : st;
}

ggl_status llm_open(llm_context **out, const char *path, const llm_open_params *params,
                    ggl_error *err) {
    llm_open_params p = {.size = sizeof p};
    ggl_error own;
    err = err ? err : &own;
    *out = NULL;
    ggl_status st = GGL_READ_PARAMS(llm_open_params, &p, params, err);
    if (st != GGL_OK)
        return st;
    llm_context *c = ggl_calloc(1, sizeof *c);
    if (!c)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    c->run.stop = -1;
    st = open_model(c, path, &p, err);
    if (st == GGL_OK)
        st = open_text(c, &p, err);
    if (st == GGL_OK)
        st = open_backends(c, &p, err);
    if (st == GGL_OK)
        st = open_session(c, &p, err);
    if (st == GGL_OK)
        st = open_generator(c, err);
    if (st != GGL_OK) {
        llm_close(c);
        return st;
    }
    *out = c;
    return GGL_OK;
}

void llm_close(llm_context *c) {
    ggl_error err = {0};
    if (!c)
        return;
    context_end(c);
    llm_generator_free(c->generator);
    llm_sampler_free(c->sampler);
    llm_vocab_free(c->vocab);
    llm_session_free(c->session);
    /* nothing is returned, and a timeline ("trace:cpu") that got lost has to be reported */
    if (llm_placement_close(c->placement, &err) != GGL_OK)
        fprintf(stderr, "%s\n", err.msg);
    llm_chat_free(c->chat);
    llm_model_free(c->model);
    llm_tokens_fini(&c->ids);
    ggl_free(c->rows);
    ggl_free(c);
}

/* --- questions -------------------------------------------------------------------------------- */

const char *llm_context_placement(const llm_context *c) {
    return llm_placement_text(c->placement);
}

int64_t llm_context_n_ctx(const llm_context *c) {
    return llm_session_n_ctx(c->session);
}

int32_t llm_context_n_vocab(const llm_context *c) {
    return (int32_t)llm_session_n_vocab(c->session);
}

int32_t llm_context_n_embd(const llm_context *c) {
    return (int32_t)llm_session_n_embd(c->session);
}

bool llm_context_has_chat(const llm_context *c) {
    return c->chat != NULL;
}

ggl_status llm_context_text(const llm_context *c, const char *key, char **text, size_t *n,
                            ggl_error *err) {
    ggl_str value;
    *text = NULL;
    *n = 0;
    if (!key)
        return ggl_fail(err, GGL_USAGE, "llm_context_text needs a key");
    const int found = ggl_gguf_get_string(llm_model_file(c->model), key, &value, err);
    if (found == 0)
        return ggl_fail(err, GGL_NOT_FOUND, "the model's file has no key '%s'", key);
    if (found < 0)
        return GGL_FORMAT;
    *text = ggl_calloc(value.n + 1, 1);
    if (!*text)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    memcpy(*text, value.s, value.n);
    *n = value.n;
    return GGL_OK;
}

ggl_status llm_last_run(const llm_context *c, llm_run_info *info, ggl_error *err) {
    return GGL_WRITE_PARAMS(llm_run_info, info, &c->run, err);
}

void llm_cancel(llm_context *c) {
    atomic_store(&c->cancelled, true);
}
