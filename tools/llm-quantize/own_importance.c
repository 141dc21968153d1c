/* --imatrix self: the importance of columns over a text that the model writes, as llm-imatrix -f self collects it. */
#include <inttypes.h>

#include "common/amounts.h"
#include "measure/collect.h"
#include "common/load.h"
#include "common/calibration.h"
#include "common/process.h"
#include "common/progress.h"
#include "ggl/alloc.h"
#include "job.h"
#include "measure/scores.h"
#include "opening.h"

typedef struct run {
    ggl_gguf_params file; /* how it is read */
    llm_opening opening;
    llm_context *ctx;
    collector *collector;
    text_chunks text;
    scores *scores;
} run;

static int open_until(run *r, const llm_opening *o, llm_opened until) {
    ggl_error err = {0};
    const bool has_begun = !r->ctx->model && tool_loading_begin(&o->loading);
    if (until > LLM_OPENED_MODEL)
        progress_begin(PROGRESS_BYTES, 0, "loading weights");
    const ggl_status st = llm_context_open(r->ctx, o, until, &err);
    if (has_begun || until > LLM_OPENED_MODEL)
        progress_end();
    (void)tool_load_advise(st, o->loading.path, &err);
    return st == GGL_OK
               ? -1
               : tool_error(TOOL, 1, "--imatrix self: the model does not run: %s", err.msg);
}

static int open_model(run *r, const job *j) {
    ggl_error err = {0};
    r->file = (ggl_gguf_params){.size = sizeof r->file, .willneed = true};
    const llm_model_params mp = {.size = sizeof mp, .gguf = &r->file};
    r->opening = (llm_opening){.loading = tool_loading(j->o.in, &mp, 0),
                               .no_chat = true,
                               .backend = {.size = sizeof r->opening.backend,
                                           .n_threads = (int)j->o.n_threads,
                                           .n_threads_batch = (int)j->o.n_threads},
                               .session = llm_session_default(),
                               .cancelled = process_is_stopped};
    r->opening.session.progress = progress_share;
    return llm_context_new(&r->ctx, &err) == GGL_OK ? open_until(r, &r->opening, LLM_OPENED_MODEL)
                                                    : tool_error(TOOL, 1, "%s", err.msg);
}

static int write_text(run *r) {
    ggl_error err = {0};
    const llm_tokenizer *t = r->ctx->tokenizer;
    llm_opening w = r->opening;
    if (!t)
        return tool_error(TOOL, 1, "--imatrix self: the model cannot write a text: %s",
                          r->ctx->why_no_tokenizer.msg);
    calibration_choose(&r->text, TOOL, r->ctx->model, TEXT_CHUNK_SIZE, false);
    if (llm_text_chunks_find_bos(&r->text, t, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    llm_own_text_session(&w.session, r->text.n_ctx);
    int code = open_until(r, &w, LLM_OPENED_WEIGHTS);
    if (code < 0)
        code =
            calibration_write(&r->text, TOOL, r->ctx->session, t, OWN_TEXT_TOKENS / r->text.n_ctx);
    (void)llm_context_return(r->ctx, LLM_OPENED_ADAPTERS, NULL);
    return code;
}

static bool on_progress(void *ctx, double n_done) {
    (void)ctx;
    progress_set(n_done);
    return !process_stopped;
}

static int read_text(run *r) {
    ggl_error err = {0};
    if (llm_collector_new(&r->collector, false, COLLECTOR_DIRECTIONS, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    r->opening.session.n_ctx = r->text.n_ctx;
    r->opening.session.watch = llm_collector_watch(r->collector);
    const int code = open_until(r, &r->opening, LLM_OPENED_WEIGHTS);
    if (code >= 0)
        return code;
    const scores_params p = {.session = r->ctx->session,
                             .token = r->text.tokens.id,
                             .bos = r->text.bos,
                             .n_ctx = r->text.n_ctx,
                             .n_chunk = r->text.n_chunk,
                             .n_threads = 1,
                             .without = true,
                             .runs_last = true,
                             .progress = on_progress};
    ggl_status st = llm_scores_new(&r->scores, &p, &err);
    progress_begin("chunks", (double)r->text.n_chunk, "importance");
    while (st == GGL_OK && r->scores->chunk < p.n_chunk) {
        st = llm_scores_next(r->scores, &err);
        if (st == GGL_OK)
            st = llm_collector_check(r->collector, &err);
    }
    progress_end();
    if (process_stopped)
        return tool_error(TOOL, process_stop_code(), "interrupted; nothing was written");
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "--imatrix self: %s", err.msg);
}

static int keep(const run *r, imatrix **out) {
    ggl_error err = {0};
    ggl_status st = llm_imatrix_new(out, r->text.n_ctx, &err);
    if (st == GGL_OK)
        st = llm_collector_put(r->collector, *out, &err);
    if (st == GGL_OK)
        st = llm_imatrix_add_dataset(*out, "self", &err);
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

int collect_importance(job *j) {
    run r = {0};
    char time[AMOUNT_TEXT];
    const double begin = process_seconds();
    int code = open_model(&r, j);
    if (code < 0)
        code = write_text(&r);
    if (code < 0)
        code = read_text(&r);
    if (code < 0)
        code = keep(&r, &j->matrix);
    if (code < 0)
        tool_say(TOOL,
                 "importance of %zu tokens that the model wrote, in %s; llm-imatrix -f self keeps "
                 "it in a file",
                 r.text.tokens.n, llm_amount_time(time, process_seconds() - begin));
    llm_close(r.ctx);
    llm_collector_free(r.collector);
    llm_scores_free(r.scores);
    llm_text_chunks_fini(&r.text);
    return code;
}
