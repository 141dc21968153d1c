/* Opens and closes contexts, and returns facts about them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters.h"
#include "context.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/params.h"
#include "guessing.h"
#include "place/fit.h"

enum {
    ROWS = 16, /* rows of logits that are computed together */
    UBATCH = 512,
    MOST_PARALLEL = 256
};

/* --- opening ---------------------------------------------------------------------------------- */

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

/* Sets *to to the type that `name` names; NULL: it stays. */
static ggl_status read_type(ggl_type *to, const char *member, const char *name, ggl_error *err) {
    const ggl_type_info *type = name ? ggl_type_find(name) : NULL;
    if (!name)
        return GGL_OK;
    if (!type || !ggl_store_can_keep(type->type))
        return ggl_fail(err, GGL_USAGE,
                        "%s is '%s'; the KV cache can be f32, f16, bf16, q8_0 or q4_0", member,
                        name);
    *to = type->type;
    return GGL_OK;
}

static int64_t largest(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Sets what follows from the members that are not about the context's size. */
static ggl_status set_session(llm_session_params *sp, llm_context *c, const llm_open_params *p,
                              ggl_error *err) {
    if (p->n_parallel < 0 || p->n_parallel > MOST_PARALLEL)
        return ggl_fail(err, GGL_USAGE, "n_parallel must be 0 to %d, but is %" PRId64,
                        (int)MOST_PARALLEL, p->n_parallel);
    sp->n_slots = largest(p->n_parallel, 1);
    sp->n_rows = largest(largest(ROWS, sp->n_slots), llm_guessing_n_max(p) + 1);
    sp->adapter = c->adapter;
    sp->n_adapters = c->n_adapters;
    const ggl_status st = read_type(&sp->type_k, "cache_type_k", p->cache_type_k, err);
    return st == GGL_OK ? read_type(&sp->type_v, "cache_type_v", p->cache_type_v, err) : st;
}

static ggl_status open_session(llm_context *c, const llm_open_params *p, ggl_error *err) {
    llm_session_params sp = llm_session_default();
    if (p->n_ctx < 0 || p->n_ubatch < 0)
        return ggl_fail(err, GGL_USAGE,
                        "n_ctx and n_ubatch must be 0 or more, but are %" PRId64 " and %" PRId64,
                        p->n_ctx, p->n_ubatch);
    sp.n_ctx = p->n_ctx;
    sp.n_ubatch = p->n_ubatch ? p->n_ubatch : UBATCH;
    sp.embeddings = p->embeddings;
    sp.no_repack = p->no_repack;
    sp.progress = p->progress;
    sp.progress_ctx = p->user;
    sp.cancelled = is_cancelled;
    sp.cancelled_ctx = c;
    ggl_status st = set_session(&sp, c, p, err);
    if (st == GGL_OK && (p->embeddings || p->pooling))
        st = llm_pooling_find(&c->pooling, p->pooling, llm_model_file(c->model), err);
    if (st == GGL_OK)
        st = llm_placement_session(c->placement, &c->session, c->model, &sp, err);
    if (st == GGL_OK && !p->n_ctx) {
        const int64_t n = llm_fit_measure(c->placement, c->session, NULL).n_ctx;
        if (n < llm_session_n_ctx(c->session))
            st = llm_fit_replace(c->placement, &c->session, c->model, &sp, n, err);
    }
    if (st != GGL_OK)
        return st;
    sp.n_ctx = llm_session_n_ctx(c->session);
    sp.progress = NULL;
    c->session_params = sp; /* for another one, with other scales of adapters */
    return alloc_session(c, p, err);
}

static ggl_status open_generator(llm_context *c, ggl_error *err) {
    llm_sampler_params sp = llm_sampler_default();
    sp.temp = 0;
    const ggl_status st =
        llm_sampler_new(&c->sampler, &sp, (int32_t)llm_session_n_vocab(c->session),
                        (int32_t)llm_session_n_ctx(c->session), err);
    return st == GGL_OK ? llm_context_make_generator(&c->generator, c, c->session, err) : st;
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
    st = llm_context_load(&c->model, path, p.arch, &p, err);
    if (st == GGL_OK)
        st = open_text(c, &p, err);
    if (st == GGL_OK)
        st = llm_adapters_open(c, &p, err);
    if (st == GGL_OK)
        st = open_backends(c, &p, err);
    if (st == GGL_OK)
        st = open_session(c, &p, err);
    if (st == GGL_OK)
        st = llm_guessing_open(&c->guessing, c, &p, err);
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
    llm_context_end(c);
    llm_generator_free(c->generator);
    llm_sampler_free(c->sampler);
    llm_vocab_free(c->vocab);
    llm_session_free(c->session);
    llm_guessing_close(c->guessing);
    /* nothing is returned, and a timeline ("trace:cpu") that got lost has to be reported */
    if (llm_placement_close(c->placement, &err) != GGL_OK)
        fprintf(stderr, "%s\n", err.msg);
    llm_adapters_close(c);
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

ggl_status llm_last_run(const llm_context *c, llm_run_info *info, ggl_error *err) {
    return GGL_WRITE_PARAMS(llm_run_info, info, &c->run, err);
}

void llm_cancel(llm_context *c) {
    atomic_store(&c->cancelled, true);
}
