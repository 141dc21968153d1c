/* Opens contexts by the parameters of llm_open, and returns facts about them. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "arrays.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/params.h"
#include "ggl/internal/text.h"
#include "llm/internal/guess.h"
#include "context.h"
#include "copies.h"
#include "builtin/builtin.h"
#include "opening.h"

enum {
    ROWS = 16, /* rows of logits that are computed together */
    UBATCH = 512,
    MOST_PARALLEL = 256,
    MOST_IMAGE_TOKENS = 65536
};

/* --- parameters ------------------------------------------------------------------------------- */

static ggl_status check_numbers(const llm_open_params *p, ggl_error *err) {
    const struct {
        const char *name;
        int64_t value, most;
    } number[] = {{"n_ctx", p->n_ctx, INT64_MAX},
                  {"n_ubatch", p->n_ubatch, INT64_MAX},
                  {"n_threads", p->n_threads, GGL_MAX_THREADS},
                  {"n_threads_batch", p->n_threads_batch, GGL_MAX_THREADS},
                  {"n_gpu_layers", p->n_gpu_layers, INT32_MAX},
                  {"n_parallel", p->n_parallel, MOST_PARALLEL},
                  {"n_guess", p->n_guess, LLM_GUESS_MOST},
                  {"draft_n_min", p->draft_n_min, LLM_GUESS_MOST},
                  {"draft_n_ctx", p->draft_n_ctx, INT64_MAX},
                  {"draft_n_gpu_layers", p->draft_n_gpu_layers, INT32_MAX},
                  {"n_cpu_moe", p->n_cpu_moe, INT32_MAX},
                  {"image_min_tokens", p->image_min_tokens, MOST_IMAGE_TOKENS},
                  {"image_max_tokens", p->image_max_tokens, MOST_IMAGE_TOKENS}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        const bool is_layers = strstr(number[i].name, "gpu_layers") != NULL;
        char most[40] = "or more";
        if (number[i].most < INT32_MAX)
            snprintf(most, sizeof most, "to %" PRId64, number[i].most);
        if (is_layers)
            snprintf(most, sizeof most, "or more (INT32_MAX: all)");
        if (number[i].value < 0 || number[i].value > number[i].most)
            return ggl_fail(err, GGL_USAGE, "%s must be 0 %s, but is %" PRId64, number[i].name,
                            most, number[i].value);
    }
    return GGL_OK;
}

static ggl_status check(const llm_open_params *p, ggl_error *err) {
    if (p->draft && p->lookup)
        return ggl_fail(err, GGL_USAGE, "draft and lookup cannot be used together");
    if (!(p->draft_p_min >= 0 && p->draft_p_min <= 1))
        return ggl_fail(err, GGL_USAGE, "draft_p_min must be 0 to 1, but is %g",
                        (double)p->draft_p_min);
    if (p->n_adapters > 0 && !p->adapter)
        return ggl_fail(err, GGL_USAGE, "adapter is NULL; n_adapters is %zu", p->n_adapters);
    for (size_t i = 0; i < p->n_adapters; i++) {
        if (!p->adapter[i].path)
            return ggl_fail(err, GGL_USAGE, "adapter[%zu].path is NULL", i);
        if (!isfinite((float)p->adapter[i].scale))
            return ggl_fail(err, GGL_USAGE, "adapter[%zu].scale must be finite, but is %g", i,
                            p->adapter[i].scale);
    }
    ggl_status st = llm_need_texts("place", p->place, p->n_place, err);
    if (st == GGL_OK)
        st = llm_need_texts("override", p->override, p->n_override, err);
    return st == GGL_OK ? check_numbers(p, err) : st;
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

/* --- what is said about the opening ----------------------------------------------------------- */

static llm_loading loading_of(const char *path, const llm_open_params *p,
                              const ggl_gguf_params *file) {
    return (llm_loading){.path = path,
                         .model = {.arch_path = p->arch,
                                   .gguf = file,
                                   .ignore = {.is_fixed = true},
                                   .override = p->override,
                                   .n_override = p->n_override},
                         .type = p->type,
                         .type_name = "type",
                         .n_threads = p->n_threads,
                         .hub_token = p->hub_token,
                         .offline = p->offline,
                         .progress = p->progress,
                         .note = p->note,
                         .ctx = p->user};
}

static const llm_placement_names names = {.device = "device",
                                          .device_given = "device",
                                          .split = "split",
                                          .shares = "tensor_split",
                                          .n_gpu_layers = "n_gpu_layers",
                                          .fit = "fit",
                                          .cache_types = "cache_type_k and cache_type_v",
                                          .list = "llm-cli --list-devices",
                                          .context = "n_ctx (-c)"};

static llm_placement_choice placement_of(const llm_open_params *p) {
    return (llm_placement_choice){.names = names,
                                  .devices = p->device,
                                  .split = p->split,
                                  .shares = p->tensor_split,
                                  .n_gpu_layers = p->n_gpu_layers,
                                  .n_gpu_layers_given = p->n_gpu_layers > 0,
                                  .fit = p->fit,
                                  .strict = p->strict,
                                  .rules = {.place = {p->place, p->n_place},
                                            .cpu_moe = p->cpu_moe,
                                            .n_cpu_moe = p->n_cpu_moe,
                                            .are_members = true}};
}

static llm_guessing_choice guessing_of(const llm_open_params *p) {
    const llm_draft_params d = llm_draft_default();
    llm_guessing_choice c = {.draft = p->draft && *p->draft ? p->draft : NULL,
                             .own = p->draft && !*p->draft,
                             .lookup = p->lookup,
                             .always = p->guess_always,
                             .n_max = p->n_guess > 0 ? p->n_guess : llm_guess_default().n_max,
                             .n_min = p->draft_n_min,
                             .p_min = p->draft_p_min > 0 ? p->draft_p_min : d.p_min,
                             .n_ctx = p->draft_n_ctx,
                             .placement = {.names = names,
                                           .devices = p->draft_device,
                                           .n_gpu_layers = p->draft_n_gpu_layers,
                                           .n_gpu_layers_given = p->draft_n_gpu_layers > 0},
                             .name = "draft"};
    c.placement.names.device = c.placement.names.device_given = "draft_device";
    c.placement.names.n_gpu_layers = "draft_n_gpu_layers";
    return c;
}

static ggl_status session_of(llm_session_params *sp, const llm_open_params *p, ggl_error *err) {
    *sp = llm_session_default();
    sp->n_ctx = p->n_ctx;
    sp->n_ubatch = p->n_ubatch ? p->n_ubatch : UBATCH;
    sp->embeddings = p->embeddings;
    sp->alignment = p->words;
    sp->no_repack = p->no_repack;
    sp->repack_late = p->repack_late;
    sp->n_expected = p->n_expected;
    sp->repack_cache = p->repack_cache;
    sp->progress = p->progress;
    sp->progress_ctx = p->user;
    sp->n_slots = largest(p->n_parallel, 1);
    sp->n_rows = largest(ROWS, sp->n_slots);
    sp->types_given = p->cache_type_k || p->cache_type_v;
    const ggl_status st = read_type(&sp->type_k, "cache_type_k", p->cache_type_k, err);
    return st == GGL_OK ? read_type(&sp->type_v, "cache_type_v", p->cache_type_v, err) : st;
}

/* Says what became of repack_cache, and whether all weights have room: lines, each "note: ..". */
static void tell_of_loading(const llm_context *c, const llm_open_params *p) {
    static const char before[] = "note: ";
    char text[512];
    for (const char *s = llm_session_load_notes(c->session); p->note && *s;) {
        s += strncmp(s, before, sizeof before - 1) == 0 ? sizeof before - 1 : 0;
        const size_t n = strcspn(s, "\n");
        snprintf(text, sizeof text, "%.*s", (int)n, s);
        p->note(p->user, text);
        s += n + (s[n] == '\n');
    }
}

/* What is opened: a file, or another context of a model that is open. */
typedef struct origin {
    const char *path;
    llm_model *beside; /* path is NULL */
} origin;

/* Members that say how the file is read. */
static ggl_status check_beside(const llm_open_params *p, ggl_error *err) {
    const struct {
        const char *name;
        bool is_given;
    } of_file[] = {{"arch", p->arch},
                   {"type", p->type},
                   {"hub_token", p->hub_token},
                   {"offline", p->offline},
                   {"no_mmap", p->no_mmap},
                   {"mlock", p->mlock},
                   {"n_override", p->n_override > 0}};
    for (size_t i = 0; i < sizeof of_file / sizeof *of_file; i++)
        if (of_file[i].is_given)
            return ggl_fail(err, GGL_USAGE,
                            "%s says how a file is read, and another context of an open model "
                            "reads none: leave it out, or open the file with it (llm_open)",
                            of_file[i].name);
    return GGL_OK;
}

static ggl_status open_with(llm_context *c, const origin *from, const llm_open_params *p,
                            llm_opened until, ggl_error *err) {
    const bool runs = until == LLM_OPENED_ALL;
    const ggl_gguf_params file = {.size = sizeof file,
                                  .no_mmap = p->no_mmap,
                                  .lock = runs && p->mlock,
                                  .willneed = runs && !p->no_repack};
    llm_opening o = {
        .loading = loading_of(from->path, p, &file),
        .beside = from->beside,
        .chat_template = p->chat_template,
        .no_chat_bos = p->no_chat_bos,
        .backend = {.size = sizeof o.backend,
                    .n_threads = p->n_threads,
                    .n_threads_batch = p->n_threads_batch,
                    .f16_as_bf16 = p->f16_as_bf16},
        .placement = placement_of(p),
        .copies = true,
        .mmproj = p->mmproj ? p->mmproj : llm_builtin_eye(from->path),
        .image_min_tokens = p->image_min_tokens,
        .image_max_tokens = p->image_max_tokens,
        .pooling = p->pooling,
        .adapter = p->adapter,
        .n_adapters = p->n_adapters,
        .guessing = guessing_of(p),
    };
    if (!runs) { /* a question about the model: see llm_plan */
        o.guessing.draft = NULL;
        o.guessing.own = false;
    }
    ggl_status st = session_of(&o.session, p, err);
    if (st == GGL_OK)
        st = llm_context_open(c, &o, until, err);
    if (st == GGL_OK && runs) {
        tell_of_loading(c, p);
        llm_note_context(c->model, p->n_ctx, p->note, p->user);
    }
    if (st == GGL_OK && runs && p->prompt_folder) {
        c->prompt_folder = ggl_copy_text(p->prompt_folder);
        c->prompt_folder_size = p->prompt_folder_size;
        st = c->prompt_folder ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    return st;
}

static ggl_status open_any(llm_context **out, const origin *from, const llm_open_params *params,
                           llm_opened until, ggl_error *err) {
    llm_open_params p = {.size = sizeof p};
    llm_context *c = NULL;
    ggl_error own;
    err = err ? err : &own;
    *out = NULL;
    ggl_status st = GGL_READ_PARAMS(llm_open_params, &p, params, err);
    if (st == GGL_OK)
        st = check(&p, err);
    if (st == GGL_OK && from->beside)
        st = check_beside(&p, err);
    if (st == GGL_OK)
        st = llm_context_new(&c, err);
    if (st == GGL_OK)
        st = open_with(c, from, &p, until, err);
    if (st == GGL_OK)
        *out = c;
    else
        llm_close(c);
    return st;
}

ggl_status llm_context_open_path(llm_context **out, const char *path, const llm_open_params *params,
                                 llm_opened until, ggl_error *err) {
    return open_any(out, &(origin){.path = path}, params, until, err);
}

ggl_status llm_open(llm_context **out, const char *path, const llm_open_params *params,
                    ggl_error *err) {
    return llm_context_open_path(out, path, params, LLM_OPENED_ALL, err);
}

ggl_status llm_open_beside(llm_context **out, const llm_context *c, const llm_open_params *params,
                           ggl_error *err) {
    return open_any(out, &(origin){.beside = c->model}, params, LLM_OPENED_ALL, err);
}

/* --- questions -------------------------------------------------------------------------------- */

ggl_status llm_last_run(const llm_context *c, llm_run_info *info, ggl_error *err) {
    return GGL_WRITE_PARAMS(llm_run_info, info, &c->run, err);
}
