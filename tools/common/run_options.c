#include "run_options.h"

#include "load.h"
#include "progress.h"

void run_options_opening(const run_options *r, const char *tool, ggl_gguf_params *file,
                         llm_opening *out) {
    *file = (ggl_gguf_params){.size = sizeof *file, .no_mmap = r->no_mmap, .willneed = true};
    const llm_model_params mp = {.size = sizeof mp,
                                 .arch_path = r->arch,
                                 .gguf = file,
                                 .ignore = ignore_of(&r->ignore),
                                 .override = r->overrides.text,
                                 .n_override = r->overrides.n};
    *out = (llm_opening){.loading = tool_loading(r->model, &mp, r->type),
                         .no_chat = true,
                         .backend = {.size = sizeof out->backend,
                                     .n_threads = (int)r->n_threads,
                                     .n_threads_batch = (int)r->n_threads,
                                     .mask = r->mask,
                                     .f16_as_bf16 = r->f16_as_bf16},
                         .placement = placement_choice(tool, &r->placement),
                         .copies = true,
                         .session = llm_session_default(),
                         .placed = placement_say,
                         .ctx = (void *)(uintptr_t)tool};
    out->session.n_ubatch = r->n_ubatch;
    out->session.progress = progress_share;
    out->session.types_given = r->types_given;
    out->session.type_k = tool_cache_type(r->type_k);
    out->session.type_v = tool_cache_type(r->type_v);
}

void run_options_fini(run_options *r) {
    placement_options_fini(&r->placement);
    adapters_fini(&r->adapters);
    ignore_fini(&r->ignore);
    overrides_fini(&r->overrides);
    tool_hub_fini(&r->hub);
}
