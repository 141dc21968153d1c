#include "common/amounts.h"
#include "common/calibration.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/input.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/report.h"

int calibration_check(const char *tool, const llm_context *c) {
    ggl_error err = {0};
    int32_t *id;
    size_t n;
    const ggl_status st = llm_encode(c, "", 0, LLM_ADD_SPECIAL, &id, &n, &err);
    ggl_free(id);
    return st == GGL_OK ? -1 : tool_error(tool, 1, "%s", err.msg);
}

void calibration_choose(calibration *t, const char *tool, int64_t own, int64_t n_ctx, bool given) {
    t->n_ctx = n_ctx;
    if (!given && own >= 4 && own < n_ctx) {
        tool_note(tool, "chunks of %" PRId64 " tokens, the model's context", own);
        t->n_ctx = own;
    } else if (own > 0 && n_ctx > own) {
        tool_note(tool, "the model was trained on %" PRId64 " tokens at once", own);
    }
}

int calibration_read(calibration *t, const char *tool, const llm_context *c, const char *path,
                     bool special) {
    ggl_error err = {0};
    size_t n;
    char *text = tool_read_any_text(tool, path, &n);
    if (!text)
        return process_stopped ? process_stop_code() : 1;
    if (n > 0 && text[n - 1] == '\n') /* llama.cpp's -f removes it, too */
        n--;
    const ggl_status st = llm_encode(c, text, n, LLM_ADD_SPECIAL | (special ? LLM_READ_SPECIAL : 0),
                                     &t->id, &t->n, &err);
    free(text);
    if (st != GGL_OK)
        return tool_error(tool, 1, "%s: %s", path, err.msg);
    t->n_chunk = (int64_t)t->n / t->n_ctx;
    if (t->n_chunk < 2)
        return tool_error(tool, 1,
                          "%s has %zu token%s; with -c %" PRId64 " at least %" PRId64 " are needed",
                          path, t->n, llm_amount_s((int64_t)t->n), t->n_ctx, 2 * t->n_ctx);
    return -1;
}

bool calibration_is_own(const char *path) {
    return path && strcmp(path, "self") == 0;
}

static bool on_progress(void *user, size_t done, size_t n) {
    (void)user;
    (void)n;
    progress_set((double)done);
    return !process_stopped;
}

int calibration_write(calibration *t, const char *tool, llm_context *c, int64_t n_chunk) {
    ggl_error err = {0};
    const size_t n = (size_t)(n_chunk * t->n_ctx);
    progress_begin("tokens", (double)n, "writing a text");
    const ggl_status st = llm_own_text(c, t->n_ctx, n, on_progress, NULL, &t->id, &err);
    progress_end();
    if (process_stopped)
        return tool_error(tool, process_stop_code(), "interrupted while the model wrote a text");
    if (st != GGL_OK)
        return st == GGL_UNSUPPORTED ? tool_error(tool, 1, "%s", err.msg)
                                     : tool_error(tool, 1, "the model's own text: %s", err.msg);
    t->n = n;
    t->n_chunk = n_chunk;
    return -1;
}

void calibration_fini(calibration *t) {
    ggl_free(t->id);
}
