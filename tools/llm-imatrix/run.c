#include "run.h"

#include <inttypes.h>
#include <unistd.h>

#include "common/amounts.h"
#include "common/cache_types.h"
#include "common/calibration.h"
#include "common/load.h"
#include "common/open_context.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/work_threads.h"
#include "measure/collect.h"
#include "measure/scores.h"

typedef struct run {
    options *o;
    const imatrix *base;
    ggl_gguf_params file; /* how it is read */
    llm_opening opening;
    llm_context *ctx;
    collector *collector;
    text_chunks text;
    int64_t first; /* chunk */
    scores *scores;
    bool shows_values; /* the values are on the terminal's last line */
} run;

/* --- loading ---------------------------------------------------------------------------------- */

static int open_model(run *r) {
    const options *o = r->o;
    r->file = (ggl_gguf_params){.size = sizeof r->file, .no_mmap = o->no_mmap, .willneed = true};
    const llm_model_params mp = {.size = sizeof mp,
                                 .arch_path = o->arch,
                                 .gguf = &r->file,
                                 .ignore = ignore_of(&o->ignore),
                                 .override = o->overrides.text,
                                 .n_override = o->overrides.n};
    r->opening = (llm_opening){.loading = tool_loading(o->model, &mp, 0),
                               .no_chat = true,
                               .backend = {.size = sizeof r->opening.backend,
                                           .n_threads = (int)o->n_threads,
                                           .n_threads_batch = (int)o->n_threads,
                                           .mask = o->mask,
                                           .f16_as_bf16 = o->f16_as_bf16},
                               .placement = placement_choice(TOOL, &o->placement),
                               .session = llm_session_default(),
                               .placed = placement_say,
                               .ctx = (void *)(uintptr_t)TOOL};
    llm_session_params *sp = &r->opening.session;
    sp->n_ubatch = o->n_ubatch;
    sp->progress = progress_share;
    sp->type_k = tool_cache_type(o->type_k);
    sp->type_v = tool_cache_type(o->type_v);
    progress_begin(NULL, 0, "loading %s", o->model ? o->model : "the model");
    const int code = tool_open_named(&r->ctx, TOOL, &r->opening);
    progress_end();
    return code;
}

/* Compares what the files of --in-file have with the model, before hours of work are in vain. */
static int check_base(const run *r) {
    for (size_t i = 0; r->base && i < llm_imatrix_n(r->base); i++) {
        const imatrix_entry *e = llm_imatrix_at(r->base, i);
        const ggl_gguf_tensor *t = ggl_gguf_find_tensor(llm_model_file(r->ctx->model), e->name.s);
        if (t && llm_imatrix_fits(e, t->ne[0], t->ne[2]))
            continue;
        if (!t && ggl_str_is(e->name, "output.weight")) /* it may be token_embd.weight here */
            continue;
        if (!t)
            return tool_error(TOOL, 1,
                              "the files of --in-file are not of this model, which has no '%s'",
                              e->name.s);
        return tool_error(TOOL, 1,
                          "the files of --in-file are not of this model: '%s' has %" PRId64
                          " columns there, and %" PRId64 " in the model",
                          e->name.s, e->n_col, t->ne[0]);
    }
    return -1;
}

/* -f self: lets the model write as many chunks as are wanted. */
static int write_text(run *r) {
    const options *o = r->o;
    text_chunks *c = &r->text;
    const int64_t n = o->n_chunk >= 0 ? o->first_chunk + o->n_chunk : OWN_TEXT_TOKENS / c->n_ctx;
    llm_opening w = r->opening;
    llm_own_text_session(&w.session, c->n_ctx);
    w.cancelled = process_is_stopped;
    if (n < 1)
        return -1; /* the caller says that no chunk is left */
    int code = tool_open_weights(r->ctx, TOOL, &w, &r->o->adapters);
    if (code < 0)
        code = calibration_write(c, TOOL, r->ctx->session, r->ctx->tokenizer, n);
    (void)llm_context_return(r->ctx, LLM_OPENED_ADAPTERS, NULL);
    return code;
}

static int read_text(run *r) {
    ggl_error err = {0};
    const options *o = r->o;
    const llm_tokenizer *t = r->ctx->tokenizer;
    text_chunks *c = &r->text;
    int code = tool_open_context(r->ctx, TOOL, &r->opening, &r->o->adapters, LLM_OPENED_ADAPTERS);
    if (code >= 0)
        return code;
    if (!t)
        return tool_error(TOOL, 1, "%s", r->ctx->why_no_tokenizer.msg);
    calibration_choose(c, TOOL, r->ctx->model, o->n_ctx, o->ctx_given);
    if (llm_text_chunks_find_bos(c, t, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    code = calibration_is_own(o->text) ? write_text(r)
                                       : calibration_read(c, TOOL, t, o->text, o->parse_special);
    if (code >= 0)
        return code;
    if (o->first_chunk >= c->n_chunk && o->n_chunk != 0)
        return tool_error(TOOL, 2, "--chunk %" PRId64 ": %s has only %" PRId64 " chunk%s",
                          o->first_chunk, o->text, c->n_chunk, llm_amount_s(c->n_chunk));
    r->first = o->first_chunk;
    if (o->n_chunk >= 0 && o->n_chunk < c->n_chunk - o->first_chunk)
        c->n_chunk = o->first_chunk + o->n_chunk;
    return c->n_chunk > r->first ? -1 : tool_error(TOOL, 2, "--chunks 0 leaves nothing to do");
}

static int open_session(run *r) {
    ggl_error err = {0};
    const options *o = r->o;
    if (llm_collector_new(&r->collector, o->output, (int)o->n_sketch, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    llm_session_params *sp = &r->opening.session;
    sp->n_ctx = r->text.n_ctx;
    sp->n_rows = o->n_ubatch < SCORES_ROWS ? o->n_ubatch : SCORES_ROWS;
    sp->watch = llm_collector_watch(r->collector);
    return tool_open_weights(r->ctx, TOOL, &r->opening, NULL);
}

static bool on_progress(void *ctx, double n_done) {
    (void)ctx;
    progress_set(n_done);
    return true;
}

static int make_scores(run *r) {
    ggl_error err = {0};
    const options *o = r->o;
    const scores_params p = {.session = r->ctx->session,
                             .token = r->text.tokens.id,
                             .bos = r->text.bos,
                             .n_ctx = r->text.n_ctx,
                             .first_chunk = r->first,
                             .n_chunk = r->text.n_chunk,
                             .n_threads = o->n_threads ? (int)o->n_threads : work_threads(),
                             .without = o->no_ppl,
                             .runs_last = true,
                             .progress = on_progress};
    return llm_scores_new(&r->scores, &p, &err) == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

/* Notes weights that were left out. */
static void note_missed(const run *r) {
    const char *name;
    const size_t n = llm_collector_n_missed(r->collector, &name);
    if (n > 0)
        tool_note(TOOL,
                  "%zu weights get no importance, such as %s: they are multiplied within an "
                  "operation, or in parts",
                  n, name);
}

/* --- the chunks ------------------------------------------------------------------------------- */

static int run_chunk(run *r) {
    ggl_error err = {0};
    ggl_status st = llm_scores_next(r->scores, &err);
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    st = llm_collector_check(r->collector, &err);
    return st == GGL_OK ? -1
                        : tool_error(TOOL, 1, "chunk %" PRId64 ": %s", r->scores->chunk, err.msg);
}

static void print_chunk(const run *r) {
    if (r->o->no_ppl || tool_is_quiet())
        return;
    const double value = llm_ppl_value(&r->scores->stats).value;
    progress_say("perplexity %.4f", value);
    progress_clear();
    printf("[%" PRId64 "]%.4f,", r->scores->chunk - r->first, value);
    if (r->shows_values) /* they are the progress from now on */
        tool_set_line(TOOL_LINE_TEXT);
    fflush(stdout);
}

static void print_result(const run *r) {
    const mean q = llm_ppl_value(&r->scores->stats);
    if (r->scores->stats.n == 0)
        return;
    if (!tool_is_quiet())
        putchar('\n');
    tool_set_line(TOOL_LINE_EMPTY);
    printf("Final estimate: PPL = %.4f +/- %.5f\n", q.value, q.error);
}

/* --- all of it -------------------------------------------------------------------------------- */

static int save_now(run *r, int (*save)(void *, const imatrix *, int64_t, bool), void *ctx,
                    bool last) {
    ggl_error err = {0};
    imatrix *m = NULL;
    ggl_status st = llm_imatrix_new(&m, r->text.n_ctx, &err);
    if (st == GGL_OK)
        st = llm_collector_put(r->collector, m, &err);
    if (st == GGL_OK)
        st = llm_imatrix_add_dataset(m, r->o->text, &err);
    const int code = st == GGL_OK ? save(ctx, m, r->scores->chunk - r->first, last)
                                  : tool_error(TOOL, 1, "%s", err.msg);
    llm_imatrix_free(m);
    return code;
}

static bool is_due(int64_t n_done, int64_t every) {
    return every > 0 && n_done % every == 0;
}

/* Runs the chunks. After a signal, the one that runs is completed, so that all sums are of the same rows. */
static int run_chunks(run *r, int (*save)(void *, const imatrix *, int64_t, bool), void *ctx) {
    const options *o = r->o;
    const int64_t n = r->text.n_chunk;
    int code = -1;
    progress_begin("chunks", (double)(n - r->first), "%s", o->no_ppl ? "importance" : "perplexity");
    while (code < 0 && !process_stopped && r->scores->chunk < n) {
        code = run_chunk(r);
        if (code >= 0)
            break;
        print_chunk(r);
        const int64_t done = r->scores->chunk - r->first;
        if (r->scores->chunk < n && (is_due(done, o->write_every) || is_due(done, o->keep_every)))
            code = save_now(r, save, ctx, false);
    }
    progress_end();
    if (code < 0) {
        print_result(r);
        code = r->scores->chunk > r->first ? save_now(r, save, ctx, true) : -1;
    } else if (r->scores->stats.n > 0 && !tool_is_quiet()) {
        putchar('\n'); /* ends the line of values */
    }
    if (code < 0 && process_stopped)
        return tool_error(TOOL, process_stop_code(),
                          "interrupted after %" PRId64 " of %" PRId64 " chunk%s",
                          r->scores->chunk - r->first, n - r->first, llm_amount_s(n - r->first));
    return code;
}

static int run_all(run *r, int (*save)(void *, const imatrix *, int64_t, bool), void *ctx) {
    int code = open_model(r);
    if (code < 0)
        code = check_base(r);
    if (code < 0)
        code = read_text(r);
    if (code < 0)
        code = open_session(r);
    if (code < 0)
        code = make_scores(r);
    if (code < 0)
        note_missed(r);
    if (code < 0 && !tool_is_quiet())
        fprintf(stderr, "%" PRId64 " chunk%s of %" PRId64 " tokens\n", r->text.n_chunk - r->first,
                llm_amount_s(r->text.n_chunk - r->first), r->text.n_ctx);
    return code < 0 ? run_chunks(r, save, ctx) : code;
}

int run_text(options *o, const imatrix *base, int (*save)(void *, const imatrix *, int64_t, bool),
             void *ctx) {
    run r = {.o = o, .base = base, .shows_values = isatty(STDOUT_FILENO) == 1};
    int code = run_all(&r, save, ctx);
    if (code < 0 && !llm_placement_report(r.ctx->placement, stderr))
        code = 1;
    code = tool_close_context(r.ctx, TOOL, code);
    llm_collector_free(r.collector);
    llm_scores_free(r.scores);
    llm_text_chunks_fini(&r.text);
    return code;
}
