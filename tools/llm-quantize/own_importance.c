/* --imatrix self: the importance of columns over a text that the model writes, as llm-imatrix -f self collects it. */
#include <inttypes.h>

#include "common/amounts.h"
#include "common/load.h"
#include "common/own_text.h"
#include "common/process.h"
#include "common/progress.h"
#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "job.h"
#include "common/collect.h"

typedef struct run {
    llm_model *model;
    ggl_backend *cpu, *reference;
    llm_session *session;
    collector *collector;
    text_chunks text;
    int32_t *token; /* [text.n_ctx] */
} run;

static int open_model(run *r, const job *j) {
    ggl_error err = {0};
    const ggl_gguf_params file = {.size = sizeof file, .willneed = true};
    const llm_model_params mp = {.size = sizeof mp, .gguf = &file};
    const ggl_backend_params bp = {.size = sizeof bp,
                                   .n_threads = (int)j->o.n_threads,
                                   .n_threads_batch = (int)j->o.n_threads};
    ggl_status st = tool_load_model(&r->model, j->o.in, &mp, 0, &err);
    if (st == GGL_OK)
        st = ggl_backend_open(&r->cpu, "cpu", &bp, &err);
    if (st == GGL_OK)
        st = ggl_backend_open(&r->reference, "reference", &bp, &err);
    return st == GGL_OK
               ? -1
               : tool_error(TOOL, 1, "--imatrix self: the model does not run: %s", err.msg);
}

/* Makes r->session; watch NULL: for writing. */
static int make_session(run *r, const ggl_watch *watch) {
    ggl_error err = {0};
    llm_session_params sp = llm_session_default();
    ggl_backend *const backend[] = {r->cpu};
    if (watch)
        sp.n_ctx = r->text.n_ctx;
    else
        own_text_session(&sp, r->text.n_ctx);
    sp.watch = watch;
    sp.backend = backend;
    sp.n_backends = 1;
    sp.fold = r->reference;
    sp.progress = progress_share;
    sp.cancelled = process_is_stopped;
    progress_begin(PROGRESS_BYTES, 0, "loading weights");
    ggl_status st = llm_session_new(&r->session, r->model, &sp, &err);
    if (st == GGL_OK)
        st = llm_session_alloc(r->session, &err);
    progress_end();
    return st == GGL_OK
               ? -1
               : tool_error(TOOL, 1, "--imatrix self: the model does not run: %s", err.msg);
}

static int write_text(run *r) {
    ggl_error err = {0};
    const llm_tokenizer *t = NULL;
    if (llm_model_tokenizer(r->model, &t, &err) != GGL_OK)
        return tool_error(TOOL, 1, "--imatrix self: the model cannot write a text: %s", err.msg);
    text_chunks_choose(&r->text, TOOL, r->model, TEXT_CHUNK_SIZE, false);
    int code = text_chunks_find_bos(&r->text, TOOL, t);
    if (code < 0)
        code = make_session(r, NULL);
    if (code < 0)
        code = own_text_write(&r->text, TOOL, r->session, t, OWN_TEXT_TOKENS / r->text.n_ctx);
    llm_session_free(r->session);
    r->session = NULL;
    return code;
}

static ggl_status read_chunk(run *r, int64_t chunk, ggl_error *err) {
    text_chunks_get(&r->text, chunk, r->token);
    bool *none = ggl_calloc((size_t)r->text.n_ctx, sizeof *none); /* no logits are wanted */
    const llm_batch b = {.n = r->text.n_ctx, .token = r->token, .want = none};
    ggl_status st =
        none ? llm_session_clear(r->session, 0, err) : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        st = llm_session_eval(r->session, &b, err);
    if (st == GGL_OK)
        st = collector_check(r->collector, err);
    ggl_free(none);
    return st;
}

static int read_text(run *r) {
    ggl_error err = {0};
    if (collector_new(&r->collector, false, COLLECTOR_DIRECTIONS, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    const int code = make_session(r, collector_watch(r->collector));
    if (code >= 0)
        return code;
    r->token = ggl_calloc((size_t)r->text.n_ctx, sizeof *r->token);
    ggl_status st = r->token ? GGL_OK : ggl_fail(&err, GGL_NOMEM, "out of memory");
    progress_begin("chunks", (double)r->text.n_chunk, "importance");
    for (int64_t i = 0; st == GGL_OK && !process_stopped && i < r->text.n_chunk; i++) {
        st = read_chunk(r, i, &err);
        progress_set((double)i + 1);
    }
    progress_end();
    if (process_stopped)
        return tool_error(TOOL, process_stop_code(), "interrupted; nothing was written");
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "--imatrix self: %s", err.msg);
}

static int keep(const run *r, imatrix **out) {
    ggl_error err = {0};
    ggl_status st = imatrix_new(out, r->text.n_ctx, &err);
    if (st == GGL_OK)
        st = collector_put(r->collector, *out, &err);
    if (st == GGL_OK)
        st = imatrix_add_dataset(*out, "self", &err);
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
    llm_session_free(r.session);
    collector_free(r.collector);
    ggl_backend_close(r.cpu);
    ggl_backend_close(r.reference);
    llm_model_free(r.model);
    text_chunks_fini(&r.text);
    ggl_free(r.token);
    return code;
}
