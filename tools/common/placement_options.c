#include "ggl/internal/sched.h"
#include "placement_options.h"

#include <stdlib.h>
#include <string.h>

#include "ggl/internal/backends.h"

_Static_assert(TOOL_MAX_THREADS == GGL_MAX_THREADS, "-t takes what backends take");

/* --- the choice ------------------------------------------------------------------------------- */

static void print_note(void *ctx, const char *text) {
    tool_note(ctx, "%s", text);
}

static void print_measured(void *ctx, const char *text) {
    tool_say(ctx, "%s", text);
}

static place_rule_texts texts_of(arg_list list) {
    return (place_rule_texts){list.s, list.n};
}

static llm_placement_choice choice_of(const placement_options *o) {
    return (llm_placement_choice){
        .names = {.device = "--device",
                  .device_given = *o->devices_flag ? o->devices_flag : "--device",
                  .split = "--split",
                  .shares = "-ts",
                  .n_gpu_layers = "-ngl",
                  .fit = "--fit",
                  .shadow = "--shadow",
                  .cache_types = "-ctk and -ctv",
                  .list = "--list-devices"},
        .devices = o->devices,
        .split = o->split,
        .shares = o->shares,
        .n_gpu_layers = o->n_gpu_layers,
        .n_gpu_layers_given = o->n_gpu_layers_given,
        .fit = o->fit,
        .strict = o->strict,
        .rules = {.place = texts_of(o->rules.place),
                  .override = texts_of(o->rules.override),
                  .cpu_moe = o->rules.cpu_moe,
                  .n_cpu_moe = o->rules.n_cpu_moe},
        .trace = o->trace,
        .shadow = o->shadow,
        .shadow_seed = o->shadow_seed};
}

llm_placement_choice placement_choice(const char *tool, const placement_options *o) {
    llm_placement_choice choice = choice_of(o);
    if (!tool)
        return choice;
    choice.names.context = "-c";
    choice.note = print_note;
    choice.measured = print_measured;
    choice.ctx = (void *)(uintptr_t)tool;
    return choice;
}

int placement_open(llm_placement **out, const char *tool, const placement_options *o,
                   const ggl_backend_params *params) {
    ggl_error err = {0};
    const llm_placement_choice choice = placement_choice(tool, o);
    const ggl_status st = llm_placement_new(out, &choice, params, &err);
    const bool misused = st == GGL_USAGE || st == GGL_NOT_FOUND; /* as misspelled flags */
    return st == GGL_OK ? -1 : tool_error(tool, misused ? 2 : 1, "%s", err.msg);
}

void placement_say(void *tool, const llm_placement *p, const llm_session *s) {
    if (llm_placement_counts_layers(p))
        tool_say(tool, "layers: %s", llm_placement_text(p));
    const char *unused = llm_placement_unused(p);
    if (unused)
        tool_note(tool, "%s has no effect: the model has no experts", unused);
    const size_t n = ggl_sched_n_fallbacks(llm_session_sched(s));
    if (n > 0)
        tool_note(tool,
                  "%zu node%s elsewhere than placed, because a backend refuses %s; --plan shows "
                  "%s, --strict makes this an error",
                  n, n == 1 ? " runs" : "s run", n == 1 ? "it" : "them", n == 1 ? "it" : "them");
}

const char *placement_trace(const placement_options *o) {
    const char *path = getenv("GGL_TRACE");
    if (o->trace || !o->devices || !strstr(o->devices, "trace"))
        return o->trace;
    return path && *path ? path : "trace.json";
}

void placement_options_fini(placement_options *o) {
    args_list_fini(&o->rules.place);
    args_list_fini(&o->rules.override);
}

/* --- lists ------------------------------------------------------------------------------------ */

/* Prints a backend's line if it opens; `must`: also if it does not, with the reason. */
static bool list_one(FILE *out, const char *name, const char *text, bool must) {
    ggl_error err = {0};
    ggl_backend *b = NULL;
    if (ggl_backend_open(&b, name, NULL, &err) != GGL_OK) {
        if (must)
            fprintf(out, "%-12s not available: %s\n", name, err.msg);
        return false;
    }
    fprintf(out, "%-12s %s%s", name, b->software ? "(software) " : "",
            *b->description ? b->description : text);
    if (b->memory)
        fprintf(out, "; %.0f MiB", (double)b->memory / 1048576);
    fputc('\n', out);
    ggl_backend_close(b);
    return true;
}

void placement_list(FILE *out) {
    const char *name;
    for (int k = 0; (name = ggl_backend_name(k)); k++) {
        char numbered[64];
        if (ggl_backend_kind(k) != GGL_BACKEND_DEVICE) {
            list_one(out, name, ggl_backend_text(k), true);
            continue;
        }
        for (int i = 0; i < 1000; i++) {
            snprintf(numbered, sizeof numbered, "%.50s%d", name, i);
            if (!list_one(out, numbered, ggl_backend_text(k), i == 0))
                break;
        }
    }
    for (int r = 1; r < ggl_ranks_count(); r++) {
        char there[64];
        snprintf(there, sizeof there, "rank%d", r);
        list_one(out, there, "", true);
        for (int k = 0; (name = ggl_backend_name(k)); k++)
            for (int i = 0; ggl_backend_kind(k) == GGL_BACKEND_DEVICE && i < 1000; i++) {
                snprintf(there, sizeof there, "rank%d:%.40s%d", r, name, i);
                if (!list_one(out, there, "", false))
                    break;
            }
    }
}
