#include "run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/amounts.h"
#include "common/cache_types.h"
#include "common/collect.h"
#include "common/log_softmax.h"
#include "common/load.h"
#include "common/open_context.h"
#include "common/own_text.h"
#include "common/ppl_stats.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/text_chunks.h"
#include "common/work_share.h"
#include "common/work_threads.h"

enum { MAX_ROWS = 64, MAX_ROWS_SIZE = 64 << 20 };

typedef struct run {
    options *o;
    const imatrix *base;
    ggl_gguf_params file; /* how it is read */
    llm_opening opening;
    llm_context *ctx;
    collector *collector;
    text_chunks text;
    int64_t chunk; /* the one that runs */
    int32_t *token;
    bool *want;
    /* rows of logits that wait for scoring */
    float *row;                               /* [max_rows][n_vocab] */
    double *nll;                              /* [max_rows]; NaN: the logits are not finite */
    int64_t n_vocab, max_rows, n_rows, first; /* first: the position of row 0 in its chunk */
    bool is_bad;                              /* logits that are no numbers were seen */
    bool shows_values;                        /* the values are on the terminal's last line */
    int n_threads;
    ppl_stats stats;
} run;

/* --- loading ---------------------------------------------------------------------------------- */

static int open_model(run *r) {
    const options *o = r->o;
    r->file = (ggl_gguf_params){.size = sizeof r->file, .no_mmap = o->no_mmap, .willneed = true};
    const llm_model_params mp = {
        .size = sizeof mp, .arch_path = o->arch, .gguf = &r->file, .ignore = ignore_of(&o->ignore)};
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
    for (size_t i = 0; r->base && i < imatrix_n(r->base); i++) {
        const imatrix_entry *e = imatrix_at(r->base, i);
        const ggl_gguf_tensor *t = ggl_gguf_find_tensor(llm_model_file(r->ctx->model), e->name.s);
        if (t && imatrix_fits(e, t->ne[0], t->ne[2]))
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
    own_text_session(&w.session, c->n_ctx);
    w.cancelled = process_is_stopped;
    if (n < 1)
        return -1; /* the caller says that no chunk is left */
    int code = tool_open_weights(r->ctx, TOOL, &w, &r->o->adapters);
    if (code < 0)
        code = own_text_write(c, TOOL, r->ctx->session, r->ctx->tokenizer, n);
    (void)llm_context_return(r->ctx, LLM_OPENED_ADAPTERS, NULL);
    return code;
}

static int read_text(run *r) {
    const options *o = r->o;
    const llm_tokenizer *t = r->ctx->tokenizer;
    text_chunks *c = &r->text;
    int code = tool_open_context(r->ctx, TOOL, &r->opening, &r->o->adapters, LLM_OPENED_ADAPTERS);
    if (code >= 0)
        return code;
    if (!t)
        return tool_error(TOOL, 1, "%s", r->ctx->why_no_tokenizer.msg);
    text_chunks_choose(c, TOOL, r->ctx->model, o->n_ctx, o->ctx_given);
    code = text_chunks_find_bos(c, TOOL, t);
    if (code < 0)
        code = own_text_is(o->text) ? write_text(r)
                                    : text_chunks_read(c, TOOL, t, o->text, o->parse_special);
    if (code >= 0)
        return code;
    if (o->first_chunk >= c->n_chunk && o->n_chunk != 0)
        return tool_error(TOOL, 2, "--chunk %" PRId64 ": %s has only %" PRId64 " chunk%s",
                          o->first_chunk, o->text, c->n_chunk, llm_amount_s(c->n_chunk));
    r->chunk = o->first_chunk;
    if (o->n_chunk >= 0 && o->n_chunk < c->n_chunk - o->first_chunk)
        c->n_chunk = o->first_chunk + o->n_chunk;
    return c->n_chunk > r->chunk ? -1 : tool_error(TOOL, 2, "--chunks 0 leaves nothing to do");
}

static int open_session(run *r) {
    ggl_error err = {0};
    const options *o = r->o;
    if (collector_new(&r->collector, o->output, (int)o->n_sketch, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    llm_session_params *sp = &r->opening.session;
    sp->n_ctx = r->text.n_ctx;
    sp->n_rows = o->n_ubatch < MAX_ROWS ? o->n_ubatch : MAX_ROWS;
    sp->watch = collector_watch(r->collector);
    return tool_open_weights(r->ctx, TOOL, &r->opening, NULL);
}

static int take_memory(run *r) {
    r->n_vocab = llm_session_n_vocab(r->ctx->session);
    const int64_t rows = MAX_ROWS_SIZE / (4 * r->n_vocab);
    r->max_rows = rows < 1 ? 1 : rows < MAX_ROWS ? rows : MAX_ROWS;
    r->row = calloc((size_t)(r->max_rows * r->n_vocab), sizeof *r->row);
    r->nll = calloc((size_t)r->max_rows, sizeof *r->nll);
    r->token = calloc((size_t)r->text.n_ctx, sizeof *r->token);
    r->want = calloc((size_t)r->text.n_ctx, sizeof *r->want);
    r->n_threads = r->o->n_threads ? (int)r->o->n_threads : work_threads();
    if (!r->row || !r->nll || !r->token || !r->want)
        return tool_error(TOOL, 1, "out of memory");
    for (int64_t i = r->text.n_ctx / 2; i + 1 < r->text.n_ctx; i++) /* the last predicts nothing */
        r->want[i] = !r->o->no_ppl;
    return -1;
}

/* Notes weights that were left out. */
static void note_missed(const run *r) {
    const char *name;
    const size_t n = collector_n_missed(r->collector, &name);
    if (n > 0)
        tool_note(TOOL,
                  "%zu weights get no importance, such as %s: they are multiplied within an "
                  "operation, or in parts",
                  n, name);
}

/* --- scoring ---------------------------------------------------------------------------------- */

static void score_row(void *ctx, size_t k, int thread) {
    (void)thread;
    run *r = ctx;
    const float *logits = r->row + (int64_t)k * r->n_vocab;
    const log_softmax s = log_softmax_of(logits, r->n_vocab);
    const int32_t next = r->token[r->first + (int64_t)k + 1];
    r->nll[k] = s.finite ? -log_softmax_at(&s, logits, next) : -1;
}

/* Scores the waiting rows with all threads, and adds the results in order. */
static void score_rows(run *r) {
    llm_work_share(r->n_threads, (size_t)r->n_rows, score_row, r);
    for (int64_t k = 0; k < r->n_rows; k++) {
        r->is_bad |= r->nll[k] < 0;
        ppl_add(&r->stats, r->nll[k]);
    }
    r->n_rows = 0;
}

static void on_logits(void *ctx, int64_t i, const float *logits) {
    run *r = ctx;
    if (r->n_rows == 0)
        r->first = i;
    memcpy(r->row + r->n_rows * r->n_vocab, logits, (size_t)r->n_vocab * sizeof *logits);
    if (++r->n_rows == r->max_rows)
        score_rows(r);
}

static bool on_progress(void *ctx, int64_t done, int64_t n) {
    const run *r = ctx;
    progress_set((double)(r->chunk - r->o->first_chunk) + (double)done / (double)n);
    return !r->is_bad;
}

static int run_chunk(run *r) {
    ggl_error err = {0};
    text_chunks_get(&r->text, r->chunk, r->token);
    const llm_batch b = {.n = r->text.n_ctx,
                         .token = r->token,
                         .want = r->want,
                         .each = on_logits,
                         .progress = on_progress,
                         .ctx = r};
    ggl_status st = llm_session_clear(r->ctx->session, 0, &err);
    if (st == GGL_OK)
        st = llm_session_eval(r->ctx->session, &b, &err);
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    score_rows(r);
    if (r->is_bad)
        return tool_error(TOOL, 1, "chunk %" PRId64 ": the model's logits are not numbers",
                          r->chunk + 1);
    if (collector_check(r->collector, &err) != GGL_OK)
        return tool_error(TOOL, 1, "chunk %" PRId64 ": %s", r->chunk + 1, err.msg);
    return -1;
}

static void print_chunk(const run *r) {
    if (r->o->no_ppl || tool_is_quiet())
        return;
    const double value = ppl_value(&r->stats).value;
    progress_say("perplexity %.4f", value);
    progress_clear();
    printf("[%" PRId64 "]%.4f,", r->chunk + 1 - r->o->first_chunk, value);
    if (r->shows_values) /* they are the progress from now on */
        tool_set_line(TOOL_LINE_TEXT);
    fflush(stdout);
}

static void print_result(const run *r) {
    const mean q = ppl_value(&r->stats);
    if (r->stats.n == 0)
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
    ggl_status st = imatrix_new(&m, r->text.n_ctx, &err);
    if (st == GGL_OK)
        st = collector_put(r->collector, m, &err);
    if (st == GGL_OK)
        st = imatrix_add_dataset(m, r->o->text, &err);
    const int code = st == GGL_OK ? save(ctx, m, r->chunk - r->o->first_chunk, last)
                                  : tool_error(TOOL, 1, "%s", err.msg);
    imatrix_free(m);
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
    progress_begin("chunks", (double)(n - r->chunk), "%s", o->no_ppl ? "importance" : "perplexity");
    while (code < 0 && !process_stopped && r->chunk < n) {
        code = run_chunk(r);
        if (code >= 0)
            break;
        print_chunk(r);
        const int64_t done = ++r->chunk - o->first_chunk;
        if (r->chunk < n && (is_due(done, o->write_every) || is_due(done, o->keep_every)))
            code = save_now(r, save, ctx, false);
    }
    progress_end();
    if (code < 0) {
        print_result(r);
        code = r->chunk > o->first_chunk ? save_now(r, save, ctx, true) : -1;
    } else if (r->stats.n > 0 && !tool_is_quiet()) {
        putchar('\n'); /* ends the line of values */
    }
    if (code < 0 && process_stopped)
        return tool_error(
            TOOL, process_stop_code(), "interrupted after %" PRId64 " of %" PRId64 " chunk%s",
            r->chunk - o->first_chunk, n - o->first_chunk, llm_amount_s(n - o->first_chunk));
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
        code = take_memory(r);
    if (code < 0)
        note_missed(r);
    if (code < 0 && !tool_is_quiet())
        fprintf(stderr, "%" PRId64 " chunk%s of %" PRId64 " tokens\n", r->text.n_chunk - r->chunk,
                llm_amount_s(r->text.n_chunk - r->chunk), r->text.n_ctx);
    return code < 0 ? run_chunks(r, save, ctx) : code;
}

int run_text(options *o, const imatrix *base, int (*save)(void *, const imatrix *, int64_t, bool),
             void *ctx) {
    run r = {.o = o, .base = base, .shows_values = isatty(STDOUT_FILENO) == 1};
    int code = run_all(&r, save, ctx);
    if (code < 0 && !llm_placement_report(r.ctx->placement, stderr))
        code = 1;
    code = tool_close_context(r.ctx, TOOL, code);
    collector_free(r.collector);
    text_chunks_fini(&r.text);
    free(r.row);
    free(r.nll);
    free(r.token);
    free(r.want);
    return code;
}
