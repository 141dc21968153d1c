#include "open_context.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/gguf.h"
#include "ggl/internal/sched.h"
#include "ggl/internal/show.h"
#include "fit_lines.h"
#include "load.h"
#include "override_options.h"
#include "process.h"
#include "progress.h"

static int tell_model(const char *tool, const llm_opening *o, ggl_status st, ggl_error *err) {
    const bool is_builtin = o->path && strncmp(o->path, "builtin:", 8) == 0;
    if (st == GGL_CANCELLED)
        return tool_error(tool, process_stop_code(), "interrupted");
    (void)tool_load_advise(st, o->path, err);
    return tool_error(tool, is_builtin && st == GGL_USAGE ? 2 : 1, "%s", err->msg); /* --type */
}

int tool_tell_opening(const llm_context *c, const char *tool, const llm_opening *o,
                      const tool_adapters *adapters, ggl_status st, ggl_error *err) {
    overrides_advise(err);
    switch (llm_opened_step(c) + 1) {
    case LLM_OPENED_MODEL:
        return tell_model(tool, o, st, err);
    case LLM_OPENED_ADAPTERS:
        if (adapters)
            (void)adapters_within(adapters, llm_opened_n_adapters(c), st, err);
        return tool_error(tool, st == GGL_USAGE ? 2 : 1, "%s", err->msg);
    case LLM_OPENED_GUESSES:
        if (o->params.draft && *o->params.draft)
            (void)tool_load_advise(st, o->params.draft, err);
        break;
    default:
        break;
    }
    if (st == GGL_CANCELLED && process_stopped)
        return process_stop_code();
    return tool_error(tool, llm_opened_misused(c) ? 2 : 1, "%s", err->msg);
}

/* Takes the steps before that of the adapters, and reads which these are. */
static int read_adapters(llm_context *c, const char *tool, llm_opening *o,
                         tool_adapters *adapters) {
    ggl_error err = {0};
    const int code = tool_open_context(c, tool, o, adapters, LLM_OPENED_ADAPTERS - 1);
    if (code >= 0)
        return code;
    const ggl_status st = adapters_read(adapters, &o->params, &err);
    return st == GGL_OK ? -1 : tool_error(tool, st == GGL_USAGE ? 2 : 1, "%s", err.msg);
}

int tool_open_context(llm_context *c, const char *tool, llm_opening *o, tool_adapters *adapters,
                      llm_opened until) {
    ggl_error err = {0};
    if (adapters && llm_opened_step(c) < LLM_OPENED_ADAPTERS && until >= LLM_OPENED_ADAPTERS) {
        const int code = read_adapters(c, tool, o, adapters);
        if (code >= 0)
            return code;
    }
    const bool is_new = llm_opened_step(c) < LLM_OPENED_MODEL;
    const bool has_begun = is_new && tool_loading_begin(o->path, o->params.type);
    const ggl_status st = llm_context_open(c, o, until, &err);
    if (has_begun)
        progress_end();
    if (is_new && llm_opened_model(c) && ggl_gguf_lock_failed(llm_model_file(llm_opened_model(c))))
        tool_warning(tool, "the model could not be locked into memory (see ulimit -l); it runs "
                           "without the lock");
    return st == GGL_OK ? -1 : tool_tell_opening(c, tool, o, adapters, st, &err);
}

int tool_open_named(llm_context **c, const char *tool, llm_opening *o) {
    ggl_error err = {0};
    const int code = o->path ? tool_check_builtin(tool, o->path) : -1;
    if (code >= 0)
        return code;
    if (!o->path)
        o->path = "builtin:stories";
    if (llm_context_new(c, &err) != GGL_OK)
        return tool_error(tool, 1, "%s", err.msg);
    progress_begin(NULL, 0, "loading %s", o->path);
    const int opened = tool_open_context(*c, tool, o, NULL, LLM_OPENED_MODEL);
    progress_end();
    return opened;
}

int tool_check_plan(const char *tool, const char *plan) {
    return !plan || !*plan || strcmp(plan, "nodes") == 0
               ? -1
               : tool_error(tool, 2, "--plan=%s is not known, only --plan and --plan=nodes", plan);
}

static void print_backends(const llm_placement *p) {
    for (int i = 0; i < llm_placement_n_backends(p); i++) {
        const ggl_backend *b = llm_placement_backend(p, i);
        printf("backend      %s: %s\n", b->name, b->description);
    }
}

int tool_print_plan(const llm_context *c, const char *plan) {
    const bool nodes = strcmp(plan, "nodes") == 0;
    const int n = llm_opened_n_copies(c);
    const char *copies = llm_opened_copies_text(c);
    ggl_fprint(stdout, "model        %s\ndescriptor   %s\ncontext      %" PRId64 "\n",
               ggl_gguf_name(llm_model_file(llm_opened_model(c))),
               llm_model_arch_origin(llm_opened_model(c)),
               llm_session_n_ctx(llm_opened_session(c)));
    adapters_print(llm_opened_adapter(c), llm_opened_n_adapters(c), "adapter      ", stdout);
    if (copies)
        ggl_fprint(stdout, "split        %s\n", copies);
    for (int k = 0; k < n; k++)
        print_backends(llm_opened_copy_placement(c, k));
    for (int k = 0; k < n; k++) {
        fit_lines lines;
        if (n > 1)
            ggl_fprint(stdout, "\ncopy %d of %d, on %s\n", k + 1, n,
                       llm_placement_backend(llm_opened_copy_placement(c, k), 0)->name);
        putchar('\n');
        FILE *const to = fit_lines_begin(&lines, stdout);
        ggl_sched_print(llm_session_sched(llm_opened_copy_session(c, k)), to, nodes);
        if (k == 0)
            llm_opened_print_stages(c, to, nodes);
        fit_lines_end(&lines);
    }
    return 0;
}

int tool_open_weights(llm_context *c, const char *tool, llm_opening *o, tool_adapters *adapters,
                      const char *plan) {
    int code = tool_open_context(c, tool, o, adapters, LLM_OPENED_SESSION);
    if (code < 0 && plan)
        return tool_print_plan(c, plan);
    if (code >= 0)
        return code;
    if (o->copies && llm_opened_copies_text(c))
        tool_say(tool, "%s", llm_opened_copies_text(c));
    progress_begin(PROGRESS_BYTES, 0, "loading weights");
    code = tool_open_context(c, tool, o, adapters, LLM_OPENED_WEIGHTS);
    progress_end();
    if (code < 0)
        tool_print_notes(llm_session_notes(llm_opened_session(c)));
    return code;
}

/* For progress_explain. */
static void say_reading(void *session, char *text, size_t size) {
    const double share = ggl_sched_present(llm_session_sched(session));
    *text = '\0';
    if (share < 1)
        snprintf(text, size, "reading weights: %.0f %%", 100 * share);
}

void tool_progress_prompt(llm_context *c) {
    progress_begin("tokens", 0, "prompt");
    progress_explain(say_reading, llm_opened_session(c));
}

int tool_close_context(llm_context *c, const char *tool, int code) {
    ggl_error err = {0};
    if (llm_context_close(c, &err) == GGL_OK)
        return code;
    (void)tool_error(tool, 1, "%s", err.msg);
    return code > 0 ? code : 1;
}

static void say_note(void *tool, const char *text) {
    tool_note(tool, "%s", text);
}

void tool_note_context(const char *tool, const llm_model *m, int64_t n_ctx) {
    llm_note_context(m, n_ctx, say_note, (char *)(uintptr_t)tool);
}
