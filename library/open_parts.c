/* Reads and checks the options of open_params.def. */
#include "opening_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapter_list.h"
#include "arrays.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/os_fs.h"
#include "llm/internal/guess.h"
#include "llm/internal/mtp.h"

/* --- names ------------------------------------------------------------------------------------ */

static const struct {
    const char *member, *flag;
} names[] = {
#define OPEN_PARAM(kind, member, part, least, most, beside, unset, python, otherwise, what, theme, \
                   programs, flag, ...)                                                            \
    {#member, flag},
#define OPEN_OWN(kind, id, place, theme, programs, flag, ...) {#id, flag},
#include "open_params.def"
};

static bool is_typed(const llm_opening *o, llm_open_param k) {
    return o->typed && *o->typed[k];
}

const char *llm_open_name(const llm_opening *o, llm_open_param k) {
    return is_typed(o, k)               ? o->typed[k]
           : o->typed && *names[k].flag ? names[k].flag
                                        : names[k].member;
}

/* --- checks ----------------------------------------------------------------------------------- */

static ggl_status check_numbers(const llm_opening *o, ggl_error *err) {
    const llm_open_params *p = &o->params;
    const struct {
        llm_open_param k;
        double value, least, most, unset;
        const char *beside;
    } number[] = {
#define NUMBER(member, least, most, unset, beside)                                                 \
    {LLM_OPEN_##member, (double)p->member, (double)(least),                                        \
     (double)(most),    (double)(unset),   beside},
#define NUMBER_INT   NUMBER
#define NUMBER_FLOAT NUMBER
#define NUMBER_BOOL(...)
#define NUMBER_TEXT(...)
#define NUMBER_PATH(...)
#define NUMBER_MAYBE(...)
#define NUMBER_WORD(...)
#define NUMBER_TEXTS(...)
#define NUMBER_LORAS(...)
#define NUMBER_CALL(...)
#define OPEN_PARAM(kind, member, part, least, most, beside, unset, ...)                            \
    NUMBER_##kind(member, least, most, unset, beside)
#include "open_params.def"
    };
    for (size_t i = 0; i < sizeof number / sizeof *number; i++) {
        const double v = number[i].value, most = number[i].most,
                     least = number[i].least < number[i].unset ? number[i].least : number[i].unset;
        if (v >= least && v <= most)
            continue;
        char range[80];
        snprintf(range, sizeof range, most < INT32_MAX ? "%.15g to %.15g" : "%.15g or more", least,
                 most);
        return ggl_fail(err, GGL_USAGE, "%s must be %s%s, but is %.15g",
                        llm_open_name(o, number[i].k), range, number[i].beside, v);
    }
    return GGL_OK;
}

/* What cannot be used together. */
static ggl_status check_pairs(const llm_opening *o, ggl_error *err) {
    const llm_open_params *p = &o->params;
    const int64_t n_guess = p->n_guess > 0 ? p->n_guess : llm_guess_default().n_max;
    const struct {
        bool are_both;
        llm_open_param a, b;
    } pair[] = {{p->draft && p->lookup, LLM_OPEN_lookup, LLM_OPEN_draft},
                {p->repack_cache && p->no_repack, LLM_OPEN_repack_cache, LLM_OPEN_no_repack},
                {p->f16_as_bf16 && p->no_repack, LLM_OPEN_f16_as_bf16, LLM_OPEN_no_repack}};
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
        if (pair[i].are_both)
            return ggl_fail(err, GGL_USAGE, "%s and %s cannot be used together",
                            llm_open_name(o, pair[i].a), llm_open_name(o, pair[i].b));
    const llm_open_param size =
        p->image_min_tokens > 0 ? LLM_OPEN_image_min_tokens : LLM_OPEN_image_max_tokens;
    if ((p->image_min_tokens > 0 || p->image_max_tokens > 0) && !p->mmproj)
        return ggl_fail(err, GGL_USAGE, "%s needs the model's eye: %s", llm_open_name(o, size),
                        llm_open_name(o, LLM_OPEN_mmproj));
    if (p->image_max_tokens > 0 && p->image_min_tokens > p->image_max_tokens)
        return ggl_fail(err, GGL_USAGE, "%s %" PRId64 " is more than %s %" PRId64,
                        llm_open_name(o, LLM_OPEN_image_min_tokens), p->image_min_tokens,
                        llm_open_name(o, LLM_OPEN_image_max_tokens), p->image_max_tokens);
    if (p->draft_n_min > n_guess)
        return ggl_fail(err, GGL_USAGE, "%s %" PRId64 " is more than %s %" PRId64,
                        llm_open_name(o, LLM_OPEN_draft_n_min), p->draft_n_min,
                        llm_open_name(o, LLM_OPEN_n_guess), n_guess);
    return GGL_OK;
}

/* True if the member is a list of nothing. */
static bool is_empty_list(const llm_open_params *p, llm_open_param k) {
    const struct {
        llm_open_param k;
        size_t n;
    } list[] = {{LLM_OPEN_override, p->n_override},
                {LLM_OPEN_ignore_key, p->n_ignore_key},
                {LLM_OPEN_ignore_tensor, p->n_ignore_tensor}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].k == k)
            return list[i].n == 0;
    return false;
}

/* The first members, up to that of conversations, say how the file is read. A program opens beside a model that was read in the same way. */
static ggl_status check_beside(const llm_opening *o, ggl_error *err) {
    const llm_open_params *p = &o->params;
    const bool is_given[LLM_N_OPEN_PARAMS] = {
#define OPEN_PARAM(kind, member, ...) [LLM_OPEN_##member] = p->member != 0,
#include "open_params.def"
    };
    for (llm_open_param k = 0; o->beside && !o->typed && k < LLM_OPEN_chat_template; k++)
        if (is_given[k] && !is_empty_list(p, k))
            return ggl_fail(err, GGL_USAGE,
                            "%s says how a file is read, and another context of an open model "
                            "reads none: leave it out, or open the file with it (llm_open)",
                            llm_open_name(o, k));
    return GGL_OK;
}

ggl_status llm_open_check(const llm_opening *o, ggl_error *err) {
    const llm_open_params *p = &o->params;
    ggl_status st = check_numbers(o, err);
    if (st == GGL_OK)
        st = check_pairs(o, err);
    if (st == GGL_OK)
        st = check_beside(o, err);
    if (st == GGL_OK)
        st = llm_adapter_list_check(p, err);
    if (st == GGL_OK && p->prompt_folder && !ggl_os_is_folder(p->prompt_folder))
        st = ggl_fail(err, GGL_USAGE, "%s: %s is not a folder",
                      llm_open_name(o, LLM_OPEN_prompt_folder), p->prompt_folder);
    if (st == GGL_OK)
        st = llm_need_texts("place", p->place, p->n_place, err);
    if (st == GGL_OK)
        st = llm_need_texts("ignore_key", p->ignore_key, p->n_ignore_key, err);
    if (st == GGL_OK)
        st = llm_need_texts("ignore_tensor", p->ignore_tensor, p->n_ignore_tensor, err);
    return st == GGL_OK ? llm_need_texts("override", p->override, p->n_override, err) : st;
}

/* --- parts ------------------------------------------------------------------------------------ */

int64_t llm_open_n_guess(const llm_opening *o) {
    const llm_open_params *p = &o->params;
    return !p->lookup && !p->draft ? 0 : p->n_guess > 0 ? p->n_guess : llm_guess_default().n_max;
}

/* Sets *to to the type that `name` names; NULL: it stays. */
static ggl_status read_type(ggl_type *to, const llm_opening *o, llm_open_param k, const char *name,
                            ggl_error *err) {
    const ggl_type_info *type = name ? ggl_type_find(name) : NULL;
    if (!name)
        return GGL_OK;
    if (!type || !ggl_store_can_keep(type->type))
        return ggl_fail(err, GGL_USAGE,
                        "%s is '%s'; the KV cache can be f32, f16, bf16, q8_0 or q4_0",
                        llm_open_name(o, k), name);
    *to = type->type;
    return GGL_OK;
}

static llm_placement_names placement_names(const llm_opening *o) {
    const bool are_flags = o->typed != NULL;
    return (llm_placement_names){.device = llm_open_name(o, LLM_OPEN_device),
                                 .split = llm_open_name(o, LLM_OPEN_split),
                                 .shares = llm_open_name(o, LLM_OPEN_tensor_split),
                                 .n_gpu_layers = llm_open_name(o, LLM_OPEN_n_gpu_layers),
                                 .fit = llm_open_name(o, LLM_OPEN_fit),
                                 .shadow = llm_open_name(o, LLM_OPEN_shadow),
                                 .cache_types =
                                     are_flags ? "-ctk and -ctv" : "cache_type_k and cache_type_v",
                                 .list = are_flags ? "--list-devices" : "llm-cli --list-devices",
                                 .context = o->no_advice ? NULL
                                            : are_flags  ? "-c"
                                                         : "n_ctx (-c)"};
}

/* Layers of the model itself, in a file, are of the model that is open, if it was opened with them. */
static ggl_status check_mtp(const llm_opening *o, const char *mtp, ggl_error *err) {
    if (!o->beside || !mtp || llm_is_same_path(mtp, llm_model_mtp(o->beside)))
        return GGL_OK;
    return ggl_fail(err, GGL_USAGE,
                    "%s %s has layers of the model itself, and another context of an open model "
                    "reads no file: open the model with it (llm_open)",
                    llm_open_name(o, LLM_OPEN_draft), mtp);
}

ggl_status llm_open_parts_of(llm_open_parts *parts, const llm_opening *o, ggl_error *err) {
    const llm_open_params *p = &o->params;
    *parts = (llm_open_parts){.how = o,
                              .file.size = sizeof parts->file,
                              .backend.size = sizeof parts->backend,
                              .session = o->session.size ? o->session : llm_session_default()};
#define PART(member)                        parts->member =
#define OWN                                 (void)
#define OPEN_PARAM(kind, member, part, ...) part p->member;
#define OPEN_COUNT(member, part)            part p->member;
#include "open_params.def"
    parts->file.lock = p->mlock && !o->is_question;
    parts->file.willneed = !o->is_question && (o->typed || !p->no_repack);
    parts->loading.path = o->path;
    parts->loading.model.gguf = &parts->file;
    parts->loading.model.ignore.are_members = !o->typed;
    parts->loading.type_name = llm_open_name(o, LLM_OPEN_type);
    parts->loading.n_threads = o->n_load_threads > 0 ? o->n_load_threads : (int)p->n_threads;
    parts->loading.progress = parts->session.progress = p->progress;
    parts->session.progress_ctx = p->user;
    parts->backend.mask = o->mask;
    parts->backend.profile = o->profile;
    parts->backend.profile_ctx = o->profile_ctx;
    parts->placement.names = placement_names(o);
    parts->placement.n_gpu_layers_given =
        p->n_gpu_layers > 0 || o->n_gpu_layers_given || is_typed(o, LLM_OPEN_n_gpu_layers);
    parts->placement.rules.override = o->place_regex;
    parts->placement.rules.are_members = !o->typed;
    parts->placement.trace = o->trace;
    parts->placement.shadow = o->shadow;
    parts->placement.shadow_seed = o->shadow_seed;
    parts->placement.note = o->placement_note;
    parts->placement.measured = o->measured;
    if (p->n_ubatch > 0)
        parts->session.n_ubatch = p->n_ubatch;
    if (p->n_ctx == 0)
        parts->session.n_ctx = o->session.n_ctx;
    parts->session.types_given |= p->cache_type_k || p->cache_type_v;
    const bool has_draft = p->draft && *p->draft && !o->is_question;
    if (has_draft && llm_mtp_is(p->draft))
        parts->loading.model.mtp = p->draft;
    parts->guessing.draft = has_draft && !parts->loading.model.mtp ? p->draft : NULL;
    parts->guessing.own = parts->loading.model.mtp || (p->draft && !*p->draft && !o->is_question);
    parts->guessing.n_max = p->n_guess > 0 ? p->n_guess : llm_guess_default().n_max;
    parts->guessing.name = llm_open_name(o, LLM_OPEN_draft);
    parts->guessing.placement.n_gpu_layers_given =
        p->draft_n_gpu_layers > 0 || is_typed(o, LLM_OPEN_draft_n_gpu_layers);
    parts->guessing.placement.names = parts->placement.names;
    parts->guessing.placement.names.device = llm_open_name(o, LLM_OPEN_draft_device);
    parts->guessing.placement.names.n_gpu_layers = llm_open_name(o, LLM_OPEN_draft_n_gpu_layers);
    ggl_status st = check_mtp(o, parts->loading.model.mtp, err);
    if (st == GGL_OK)
        st = read_type(&parts->session.type_k, o, LLM_OPEN_cache_type_k, p->cache_type_k, err);
    return st == GGL_OK
               ? read_type(&parts->session.type_v, o, LLM_OPEN_cache_type_v, p->cache_type_v, err)
               : st;
}

ggl_status llm_open_placement(llm_placement **out, const llm_opening *o, ggl_error *err) {
    llm_open_parts parts;
    *out = NULL;
    const ggl_status st = llm_open_parts_of(&parts, o, err);
    return st == GGL_OK ? llm_placement_new(out, &parts.placement, &parts.backend, err) : st;
}

bool llm_opening_reads_same(const llm_opening *a, const llm_opening *b) {
    llm_open_parts p, q;
    return llm_open_parts_of(&p, a, NULL) == GGL_OK && llm_open_parts_of(&q, b, NULL) == GGL_OK &&
           llm_loading_is_same(&p.loading, &q.loading);
}
