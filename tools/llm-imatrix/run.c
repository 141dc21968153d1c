#include "run.h"

#include <inttypes.h>
#include <string.h>

#include "common/amounts.h"
#include "common/calibration.h"
#include "common/open_context.h"
#include "common/process.h"
#include "common/progress.h"
#include "ggl/alloc.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"
#include "importance.h"

typedef struct run {
    options *o;
    llm_imatrix *matrix;
    llm_opening opening;
    llm_context *ctx;
    calibration text;
    llm_imatrix_params params;
    llm_imatrix_result so_far;
    bool begun;
    bool shows_values; /* the values are on the terminal's last line */
} run;

/* --- loading ---------------------------------------------------------------------------------- */

static int open_model(run *r) {
    r->opening = open_options_opening(&r->o->open);
    r->opening.cancelled = NULL; /* a chunk that runs is completed */
    r->opening.copies = true;
    return tool_open_named(&r->ctx, TOOL, &r->opening);
}

/* Compares what the files of --in-file have with the model, before hours of work are in vain. */
static int check_base(const run *r) {
    ggl_error err = {0};
    return llm_imatrix_check(r->matrix, r->ctx, "the files of --in-file", &err) == GGL_OK
               ? -1
               : tool_error(TOOL, 1, "%s", err.msg);
}

/* -f self: lets the model write as many chunks as are wanted. */
static int write_text(run *r) {
    enum { TOKENS = 16384 };
    const options *o = r->o;
    const int64_t n = o->n_chunk >= 0 ? o->first_chunk + o->n_chunk : TOKENS / r->text.n_ctx;
    llm_opening w = r->opening;
    llm_own_text_watch(&w.session, r->text.n_ctx);
    w.cancelled = process_is_stopped;
    w.copies = false; /* a token needs those before it */
    if (n < 1)
        return -1; /* the caller says that no chunk is left */
    int code = tool_open_weights(r->ctx, TOOL, &w, &r->o->open.adapters, NULL);
    if (code < 0)
        code = calibration_write(&r->text, TOOL, r->ctx, n);
    (void)llm_context_return(r->ctx, LLM_OPENED_ADAPTERS, NULL);
    return code;
}

static int read_text(run *r) {
    const options *o = r->o;
    calibration *t = &r->text;
    int code =
        tool_open_context(r->ctx, TOOL, &r->opening, &r->o->open.adapters, LLM_OPENED_ADAPTERS);
    if (code < 0)
        code = calibration_check(TOOL, r->ctx);
    if (code >= 0)
        return code;
    calibration_choose(t, TOOL, llm_model_n_ctx(llm_opened_model(r->ctx)), o->n_ctx, o->ctx_given);
    if (o->open.plan && calibration_is_own(o->text))
        return -1; /* the plan needs no text */
    code = calibration_is_own(o->text)
               ? write_text(r)
               : calibration_read(t, TOOL, r->ctx, o->text, o->parse_special);
    if (code >= 0)
        return code;
    if (o->first_chunk >= t->n_chunk && o->n_chunk != 0)
        return tool_error(TOOL, 2, "--chunk %" PRId64 ": %s has only %" PRId64 " chunk%s",
                          o->first_chunk, o->text, t->n_chunk, llm_amount_s(t->n_chunk));
    return o->n_chunk != 0 ? -1 : tool_error(TOOL, 2, "--chunks 0 leaves nothing to do");
}

static int open_session(run *r) {
    ggl_error err = {0};
    llm_session_params *sp = &r->opening.session;
    if (llm_imatrix_watch(r->matrix, &r->params, r->text.n_ctx, sp, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    r->opening.copy = llm_imatrix_watch_copy;
    r->opening.copy_ctx = r->matrix;
    return tool_open_weights(r->ctx, TOOL, &r->opening, NULL, r->o->open.plan);
}

/* --- the chunks ------------------------------------------------------------------------------- */

static bool on_progress(void *user, size_t done, size_t total) {
    const run *r = user;
    (void)total;
    progress_set((double)done / (double)r->text.n_ctx);
    return true;
}

static void begin(run *r, const llm_imatrix_result *so_far) {
    const int64_t n = so_far->n_wanted;
    r->begun = true;
    if (so_far->n_missed > 0) /* weights that are left out */
        tool_note(
            TOOL,
            "no importance for %zu weight%s, such as %s: multiplied within an operation, or in "
            "parts",
            so_far->n_missed, llm_amount_s((int64_t)so_far->n_missed), so_far->missed);
    if (!tool_is_quiet())
        fprintf(stderr, "%" PRId64 " chunk%s of %" PRId64 " tokens\n", n, llm_amount_s(n),
                so_far->n_window);
    progress_begin("chunks", (double)n, "%s",
                   r->params.no_perplexity ? "importance" : "perplexity");
}

static void print_chunk(const run *r) {
    if (r->params.no_perplexity || tool_is_quiet())
        return;
    progress_say("perplexity %.4f", r->so_far.ppl);
    progress_clear();
    printf("[%" PRId64 "]%.4f,", r->so_far.n_chunks, r->so_far.ppl);
    if (r->shows_values) /* they are the progress from now on */
        tool_set_line(TOOL_LINE_TEXT);
    fflush(stdout);
}

static void print_result(const run *r) {
    if (r->so_far.n_scored == 0)
        return;
    if (!tool_is_quiet())
        putchar('\n');
    tool_set_line(TOOL_LINE_EMPTY);
    printf("Final estimate: PPL = %.4f +/- %.5f\n", r->so_far.ppl, r->so_far.ppl_error);
}

/* Saves the matrix on the way. If that fails, the run goes on: the last file decides. */
static void save_copy(const run *r, const char *path) {
    ggl_error err = {0};
    if (llm_imatrix_save(r->matrix, path, &err) != GGL_OK)
        tool_note(TOOL, "a copy on the way could not be written: %s; the run goes on", err.msg);
}

/* Keeps the copy FILE.at_CHUNK. False: out of memory. */
static bool keep_copy(const run *r) {
    const size_t size = strlen(r->o->out) + 32;
    char *path = ggl_calloc(size, 1);
    if (!path)
        return false;
    snprintf(path, size, "%s.at_%" PRId64, r->o->out, r->so_far.n_chunks);
    save_copy(r, path);
    ggl_free(path);
    return true;
}

static bool is_due(int64_t n_done, int64_t every) {
    return every > 0 && n_done % every == 0;
}

/* After a signal, the chunk that runs is completed, so that all sums are of the same rows. */
static bool on_chunk(void *user, const llm_imatrix_result *so_far) {
    run *r = user;
    r->so_far = *so_far;
    if (so_far->n_chunks == 0) {
        begin(r, so_far);
        return !process_stopped;
    }
    print_chunk(r);
    if (so_far->n_chunks < so_far->n_wanted && is_due(so_far->n_chunks, r->o->write_every))
        save_copy(r, r->o->out);
    if (is_due(so_far->n_chunks, r->o->keep_every) && !keep_copy(r))
        tool_note(TOOL, "a copy on the way could not be written: out of memory; the run goes on");
    return !process_stopped;
}

static int collect(run *r) {
    ggl_error err = {0};
    const ggl_status st = llm_imatrix_run(r->matrix, r->ctx, NULL, 0, &r->params, NULL, &err);
    if (r->begun)
        progress_end();
    if (st == GGL_OK)
        return -1;
    const int code = tool_error(TOOL, 1, "%s%s", err.msg,
                                st == GGL_USAGE && r->so_far.n_chunks == r->so_far.n_wanted
                                    ? ": the files of --in-file are not of this model"
                                    : "");
    if (r->so_far.n_scored > 0 && !tool_is_quiet())
        putchar('\n'); /* ends the line of values */
    return code;
}

/* Runs the chunks. */
static int run_chunks(run *r, int (*save)(void *), void *ctx) {
    int code = collect(r);
    if (code >= 0)
        return code;
    print_result(r);
    code = r->so_far.n_chunks > 0 ? save(ctx) : -1;
    if (code < 0 && process_stopped)
        return tool_error(TOOL, process_stop_code(),
                          "interrupted after %" PRId64 " of %" PRId64 " chunk%s",
                          r->so_far.n_chunks, r->so_far.n_wanted, llm_amount_s(r->so_far.n_wanted));
    return code;
}

/* --- all of it -------------------------------------------------------------------------------- */

static void choose_params(run *r) {
    const options *o = r->o;
    const llm_arch *arch = llm_model_arch(llm_opened_model(r->ctx));
    r->params = (llm_imatrix_params){.size = sizeof r->params,
                                     .n_window = r->text.n_ctx,
                                     .first_chunk = o->first_chunk,
                                     .n_chunks = o->n_chunk < 0 ? 0 : o->n_chunk,
                                     .id = r->text.id,
                                     .n_id = r->text.n,
                                     .output = o->output,
                                     .n_directions = o->n_sketch > 0 ? (int32_t)o->n_sketch : -1,
                                     .no_perplexity = o->no_ppl || llm_arch_sees_all(arch),
                                     .name = o->text,
                                     .progress = on_progress,
                                     .each = on_chunk,
                                     .user = r};
}

static int run_all(run *r, int (*save)(void *), void *ctx) {
    int code = open_model(r);
    if (code < 0)
        code = check_base(r);
    if (code < 0)
        code = read_text(r);
    if (code >= 0)
        return code;
    choose_params(r);
    code = open_session(r);
    return code < 0 ? run_chunks(r, save, ctx) : code;
}

int run_text(options *o, llm_imatrix *m, int (*save)(void *), void *ctx) {
    run r = {.o = o, .matrix = m, .shows_values = ggl_os_is_terminal(OS_STDOUT)};
    int code = run_all(&r, save, ctx);
    if (code < 0 && !llm_placement_report(llm_opened_placement(r.ctx), stderr))
        code = 1;
    code = tool_close_context(r.ctx, TOOL, code);
    calibration_fini(&r.text);
    return code;
}
