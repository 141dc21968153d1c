#include "placement_text.h"

#include "ggl/internal/backends.h"
#include "ggl/internal/sched.h"
#include "report.h"

void placement_say(void *unused, const llm_placement *p, const llm_session *s) {
    (void)unused;
    if (llm_placement_counts_layers(p))
        tool_say(NULL, "layers: %s", llm_placement_text(p));
    const char *idle = llm_placement_unused(p);
    if (idle)
        tool_note(NULL, "%s has no effect: the model has no experts", idle);
    const size_t n = ggl_sched_n_fallbacks(llm_session_sched(s));
    if (n > 0)
        tool_note(NULL,
                  "%zu node%s elsewhere than placed, because a backend refuses %s; --plan shows "
                  "%s, --strict makes this an error",
                  n, n == 1 ? " runs" : "s run", n == 1 ? "it" : "them", n == 1 ? "it" : "them");
}

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
