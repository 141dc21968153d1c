#include "speculate.h"

#include <inttypes.h>
#include <string.h>

#include "ggl/internal/os_fs.h"
#include "load.h"
#include "process.h"

int64_t speculate_n_max(const speculate_options *o) {
    return o->lookup || o->draft || o->own ? o->n_max : 0;
}

const char speculate_own[] = "the model's own layers";

int speculate_check(const char *tool, speculate_options *o) {
    o->own = o->own || o->draft == speculate_own;
    if (o->own)
        o->draft = NULL;
    if (o->own && o->draft_comes)
        return tool_error(tool, 2, "--draft without a model and -hfd cannot be used together");
    const bool has_draft = o->draft || o->draft_comes || o->own;
    const bool guesses = o->lookup || has_draft;
    if (!guesses && (o->max_given || o->min_given || o->always))
        return tool_error(tool, 2, "%s needs --lookup or --draft",
                          o->max_given   ? "--draft-max"
                          : o->min_given ? "--draft-min"
                                         : "--guess-always");
    if (!has_draft && o->p_min_given)
        return tool_error(tool, 2, "--draft-p-min needs --draft");
    if (o->lookup && has_draft)
        return tool_error(tool, 2, "--lookup and --draft cannot be used together");
    if (o->n_min > o->n_max)
        return tool_error(tool, 2, "--draft-min %" PRId64 " is more than --draft-max %" PRId64,
                          o->n_min, o->n_max);
    if (o->draft && o->draft[strspn(o->draft, "0123456789")] == 0 && !ggl_os_exists(o->draft))
        return tool_error(
            tool, 2,
            "--draft %s: this flag names the draft model; --draft-max sets the number "
            "of guesses",
            o->draft);
    if (!has_draft && (o->n_ctx || o->placement.devices || o->placement.n_gpu_layers_given))
        return tool_error(tool, 2, "-cd, -devd and -ngld need a draft model, --draft");
    return -1;
}

llm_guessing_choice speculate_choice(const char *tool, const speculate_options *o) {
    return (llm_guessing_choice){.draft = o->draft,
                                 .own = o->own,
                                 .lookup = o->lookup,
                                 .always = o->always,
                                 .n_max = o->n_max,
                                 .n_min = o->n_min,
                                 .p_min = (float)o->p_min,
                                 .n_ctx = o->n_ctx,
                                 .placement = placement_choice(tool, &o->placement),
                                 .name = "--draft"};
}

int speculate_tell(const char *tool, const char *draft, ggl_status st, bool misused,
                   ggl_error *err) {
    if (st == GGL_CANCELLED && process_stopped)
        return process_stop_code();
    (void)tool_load_advise(st, draft, err);
    return tool_error(tool, misused ? 2 : 1, "%s", err->msg);
}
