#include "common/calibration.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/input.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/report.h"

void calibration_choose(text_chunks *c, const char *tool, const llm_model *m, int64_t n_ctx,
                        bool given) {
    const int64_t own = llm_model_n_ctx(m);
    c->n_ctx = n_ctx;
    if (!given && own >= 4 && own < n_ctx) {
        tool_note(tool, "chunks of %" PRId64 " tokens, the model's context", own);
        c->n_ctx = own;
    } else if (own > 0 && n_ctx > own) {
        tool_note(tool, "the model was trained on %" PRId64 " tokens at once", own);
    }
}

int calibration_read(text_chunks *c, const char *tool, const llm_tokenizer *t, const char *path,
                     bool special) {
    ggl_error err = {0};
    size_t n;
    char *text = tool_read_any_text(tool, path, &n);
    if (!text)
        return process_stopped ? process_stop_code() : 1;
    const ggl_status st = llm_text_chunks_take(c, t, (ggl_str){text, n}, special, &err);
    free(text);
    if (st != GGL_OK)
        return tool_error(tool, 1, "%s: %s", path, err.msg);
    if (c->n_chunk < 2)
        return tool_error(tool, 1,
                          "%s has %zu tokens; with -c %" PRId64 " at least %" PRId64 " are needed",
                          path, c->tokens.n, c->n_ctx, 2 * c->n_ctx);
    return -1;
}

bool calibration_is_own(const char *path) {
    return path && strcmp(path, "self") == 0;
}

static bool on_progress(void *ctx, size_t done, size_t n) {
    (void)ctx;
    (void)n;
    progress_set((double)done);
    return !process_stopped;
}

int calibration_write(text_chunks *c, const char *tool, llm_session *s, const llm_tokenizer *t,
                      int64_t n_chunk) {
    ggl_error err = {0};
    progress_begin("tokens", (double)(n_chunk * c->n_ctx), "writing a text");
    const ggl_status st = llm_own_text_write(c, s, t, n_chunk, on_progress, NULL, &err);
    progress_end();
    if (process_stopped)
        return tool_error(tool, process_stop_code(), "interrupted while the model wrote a text");
    return st == GGL_OK            ? -1
           : st == GGL_UNSUPPORTED ? tool_error(tool, 1, "%s", err.msg)
                                   : tool_error(tool, 1, "the model's own text: %s", err.msg);
}
