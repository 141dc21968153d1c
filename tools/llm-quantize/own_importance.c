/* --imatrix self: the importance of columns over a text that the model writes, as llm-imatrix -f self collects it. */
#include <inttypes.h>

#include "common/amounts.h"
#include "common/load.h"
#include "common/calibration.h"
#include "common/process.h"
#include "common/progress.h"
#include "ggl/alloc.h"
#include "ggl/internal/os_clock.h"
#include "importance.h"
#include "job.h"
#include "opening.h"

typedef struct run {
    llm_opening opening;
    llm_context *ctx;
    llm_imatrix *matrix;
    calibration text;
} run;

static int open_until(run *r, const llm_opening *o, llm_opened until) {
    ggl_error err = {0};
    const bool has_begun = !llm_opened_model(r->ctx) && tool_loading_begin(o->path, NULL);
    if (until > LLM_OPENED_MODEL)
        progress_begin(PROGRESS_BYTES, 0, "loading weights");
    const ggl_status st = llm_context_open(r->ctx, o, until, &err);
    if (has_begun || until > LLM_OPENED_MODEL)
        progress_end();
    (void)tool_load_advise(st, o->path, &err);
    return st == GGL_OK
               ? -1
               : tool_error(TOOL, 1, "--imatrix self: the model does not run: %s", err.msg);
}

static int open_model(run *r, const job *j) {
    ggl_error err = {0};
    r->opening = tool_opening(j->o.in);
    r->opening.params.n_threads = j->o.n_threads;
    r->opening.cancelled = process_is_stopped;
    return llm_context_new(&r->ctx, &err) == GGL_OK ? open_until(r, &r->opening, LLM_OPENED_MODEL)
                                                    : tool_error(TOOL, 1, "%s", err.msg);
}

static int write_text(run *r) {
    enum { TOKENS = 16384 };
    llm_opening w = r->opening;
    if (!llm_opened_tokenizer(r->ctx))
        return tool_error(TOOL, 1, "--imatrix self: the model cannot write a text: %s",
                          llm_opened_why_no_tokenizer(r->ctx)->msg);
    calibration_choose(&r->text, TOOL, llm_model_n_ctx(llm_opened_model(r->ctx)),
                       CALIBRATION_WINDOW, false);
    llm_own_text_watch(&w.session, r->text.n_ctx);
    int code = open_until(r, &w, LLM_OPENED_WEIGHTS);
    if (code < 0)
        code = calibration_write(&r->text, TOOL, r->ctx, TOKENS / r->text.n_ctx);
    (void)llm_context_return(r->ctx, LLM_OPENED_ADAPTERS, NULL);
    return code;
}

static bool on_progress(void *user, size_t done, size_t total) {
    const run *r = user;
    (void)total;
    progress_set((double)done / (double)r->text.n_ctx);
    return !process_stopped;
}

static int read_text(run *r) {
    ggl_error err = {0};
    const llm_imatrix_params p = {.size = sizeof p,
                                  .n_window = r->text.n_ctx,
                                  .id = r->text.id,
                                  .n_id = r->text.n,
                                  .no_perplexity = true,
                                  .name = "self",
                                  .progress = on_progress,
                                  .user = r};
    ggl_status st = llm_imatrix_begin(&r->matrix, &err);
    if (st == GGL_OK)
        st = llm_imatrix_watch(r->matrix, &p, r->text.n_ctx, &r->opening.session, &err);
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    const int code = open_until(r, &r->opening, LLM_OPENED_WEIGHTS);
    if (code >= 0)
        return code;
    progress_begin("chunks", (double)r->text.n_chunk, "importance");
    st = llm_imatrix_run(r->matrix, r->ctx, NULL, 0, &p, NULL, &err);
    progress_end();
    if (process_stopped)
        return tool_error(TOOL, process_stop_code(), "interrupted; nothing was written");
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "--imatrix self: %s", err.msg);
}

int collect_importance(job *j) {
    run r = {0};
    char time[AMOUNT_TEXT];
    const double begin = ggl_os_seconds();
    int code = open_model(&r, j);
    if (code < 0)
        code = write_text(&r);
    if (code < 0)
        code = read_text(&r);
    if (code < 0) {
        j->matrix = llm_imatrix_take(r.matrix);
        tool_say(TOOL,
                 "importance of %zu tokens that the model wrote, in %s; llm-imatrix -f self keeps "
                 "it in a file",
                 r.text.n, llm_amount_time(time, ggl_os_seconds() - begin));
    }
    llm_close(r.ctx);
    llm_imatrix_end(r.matrix);
    calibration_fini(&r.text);
    return code;
}
