#include "trial.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "builtin/builtin.h"
#include "common/input.h"
#include "measure/log_softmax.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/report.h"
#include "common/sha256.h"
#include "common/work_share.h"
#include "common/work_threads.h"
#include "ggl/internal/alloc.h"
#include "ggl/backends.h"
#include "ggl/internal/os_clock.h"
#include "llm/internal/session.h"

enum { DEFAULT_CTX = 512, MAX_ROWS = 64, UBATCH = 512 };

typedef struct row_result {
    log_compared c;
    double nll;
    bool finite;
} row_result;

struct trial {
    const char *tool;
    trial_params params;
    trial_text text;
    int n_threads;
    llm_model *model;
    void *copy; /* of a built-in model; NULL: none */
    ggl_backend *cpu, *reference;
    llm_session *session; /* during a run */
    llm_tokens tokens;
    int32_t bos; /* -1: the model puts none before a text */
    int64_t n_vocab, n_scored;
    /* the unchanged model's log-probabilities, by position */
    uint16_t *base; /* [n_chunk * n_scored][llm_log_probs_size(n_vocab)] */
    bool has_base;  /* the base is complete; without it, a run writes it */
    float *row;     /* [MAX_ROWS][n_vocab]: logits that wait for scoring */
    row_result result[MAX_ROWS];
    int64_t n_rows, chunk, first,
        bad; /* chunk and its position of row 0; of logits that are no numbers */
    ppl_stats stats;
};

/* --- the text --------------------------------------------------------------------------------- */

/* Finds out whether the model begins texts with a token, which then begins every chunk. */
static ggl_status find_bos(trial *t, const llm_tokenizer *tok, ggl_error *err) {
    llm_tokens empty = {0};
    const int32_t bos = llm_tokenizer_bos(tok);
    ggl_status st = llm_tokenize(tok, "", 0, LLM_TOKENIZE_BOS, &empty, err);
    t->bos = empty.n > 0 && bos >= 0 && empty.id[0] == bos ? bos : -1;
    llm_tokens_fini(&empty);
    return st;
}

static int read_text(trial *t) {
    ggl_error err = {0};
    size_t n;
    sha256 digest;
    const llm_tokenizer *tok = NULL;
    ggl_status st = llm_model_tokenizer(t->model, &tok, &err);
    if (st == GGL_OK)
        st = find_bos(t, tok, &err);
    if (st != GGL_OK)
        return tool_error(t->tool, 1, "%s", err.msg);
    char *text = tool_read_any_text(t->tool, t->params.text, &n);
    if (!text)
        return process_stopped ? process_stop_code() : 1;
    llm_sha256_begin(&digest);
    llm_sha256_add(&digest, text, n);
    llm_sha256_end(&digest, t->text.sha256);
    st = llm_tokenize(tok, text, n, LLM_TOKENIZE_BOS, &t->tokens, &err);
    free(text);
    return st == GGL_OK ? -1 : tool_error(t->tool, 1, "%s: %s", t->params.text, err.msg);
}

static int cut_text(trial *t) {
    const int64_t own = llm_model_n_ctx(t->model), n_ctx = t->params.n_ctx;
    t->text.n_ctx = n_ctx ? n_ctx : own >= 4 && own < DEFAULT_CTX ? own : DEFAULT_CTX;
    t->text.n_chunk = (int64_t)t->tokens.n / t->text.n_ctx;
    if (t->text.n_chunk > t->params.n_chunk)
        t->text.n_chunk = t->params.n_chunk;
    t->n_scored = t->text.n_ctx - 1 - t->text.n_ctx / 2;
    if (t->text.n_chunk > 0)
        return -1;
    return tool_error(t->tool, 1,
                      "--calibration %s: the text has %zu token%s, and a chunk has %" PRId64
                      "; a longer text or -c N with fewer tokens is needed",
                      t->params.text, t->tokens.n, llm_amount_s((int64_t)t->tokens.n),
                      t->text.n_ctx);
}

/* --- opening ---------------------------------------------------------------------------------- */

static ggl_status open_model(trial *t, ggl_error *err) {
    const ggl_gguf_params file = {.size = sizeof file, .no_mmap = true};
    const llm_model_params mp = {.size = sizeof mp, .gguf = &file};
    const ggl_backend_params bp = {.size = sizeof bp,
                                   .n_threads = t->params.n_threads,
                                   .n_threads_batch = t->params.n_threads};
    llm_builtin b;
    ggl_status st;
    if (!llm_builtin_find(t->params.model, &b) || !b.name) {
        st = llm_model_open(&t->model, t->params.model, &mp, err);
    } else {
        t->copy = ggl_calloc(1, b.size); /* what is linked in cannot be changed */
        if (t->copy)
            memcpy(t->copy, b.data, b.size);
        st = t->copy ? llm_model_open_memory(&t->model, t->copy, b.size, b.name, &mp, err)
                     : ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    if (st == GGL_OK)
        st = ggl_backend_open(&t->cpu, "cpu", &bp, err);
    if (st == GGL_OK)
        st = ggl_backend_open(&t->reference, "reference", &bp, err);
    return st;
}

int trial_open(trial **out, const char *tool, const trial_params *params) {
    ggl_error err = {0};
    trial *t = *out = ggl_calloc(1, sizeof *t);
    if (!t)
        return tool_error(tool, 1, "out of memory");
    t->tool = tool;
    t->params = *params;
    t->n_threads = params->n_threads ? params->n_threads : work_threads();
    if (open_model(t, &err) != GGL_OK)
        return tool_error(tool, 1, "%s", err.msg);
    const int code = read_text(t);
    return code >= 0 ? code : cut_text(t);
}

void trial_free(trial *t) {
    if (!t)
        return;
    llm_session_free(t->session);
    ggl_backend_close(t->cpu);
    ggl_backend_close(t->reference);
    llm_tokens_fini(&t->tokens);
    llm_model_free(t->model);
    ggl_free(t->copy);
    ggl_free(t->base);
    ggl_free(t->row);
    ggl_free(t);
}

const trial_text *trial_text_of(const trial *t) {
    return &t->text;
}

const ggl_gguf_tensor *trial_tensor(const trial *t, const char *name) {
    return ggl_gguf_find_tensor(llm_model_file(t->model), name);
}

/* --- a run ------------------------------------------------------------------------------------ */

/* A session of its own for each run: constants that are computed from weights are then computed from
 * the changed ones, too. */
static ggl_status open_session(trial *t, ggl_error *err) {
    llm_session_params sp = llm_session_default();
    ggl_backend *const backend[] = {t->cpu};
    sp.n_ctx = t->text.n_ctx;
    sp.n_ubatch = UBATCH;
    sp.n_rows = MAX_ROWS;
    sp.type_k = sp.type_v = GGL_F16;
    sp.backend = backend;
    sp.n_backends = 1;
    sp.fold = t->reference;
    sp.no_repack = true;
    sp.cancelled = process_is_stopped;
    ggl_status st = llm_session_new(&t->session, t->model, &sp, err);
    if (st == GGL_OK)
        st = llm_session_alloc(t->session, err);
    return st;
}

static ggl_status take_memory(trial *t, ggl_error *err) {
    size_t n;
    if (t->row)
        return GGL_OK;
    t->n_vocab = llm_session_n_vocab(t->session);
    const size_t positions = (size_t)(t->text.n_chunk * t->n_scored),
                 size = (size_t)llm_log_probs_size(t->n_vocab);
    t->row = ggl_calloc((size_t)t->n_vocab * MAX_ROWS, sizeof *t->row);
    if (ggl_size_mul(positions, size, &n))
        t->base = ggl_calloc(n, sizeof *t->base);
    if (t->row && t->base)
        return GGL_OK;
    return ggl_fail(err, GGL_NOMEM,
                    "out of memory for the predictions at %zu positions; --chunks %" PRId64
                    " needs half of it",
                    positions, t->text.n_chunk > 1 ? t->text.n_chunk / 2 : 1);
}

static const int32_t *chunk_tokens(const trial *t) {
    return t->tokens.id + t->chunk * t->text.n_ctx;
}

static void score_row(void *ctx, size_t k, int thread) {
    (void)thread;
    trial *t = ctx;
    const int64_t n = t->n_vocab, at = t->first + (int64_t)k;
    const float *logits = t->row + (int64_t)k * n;
    const int32_t next = chunk_tokens(t)[at + 1];
    const int64_t position = t->chunk * t->n_scored + at - t->text.n_ctx / 2;
    uint16_t *code = t->base + position * llm_log_probs_size(n);
    const log_softmax s = llm_log_softmax_of(logits, n);
    row_result *r = &t->result[k];
    *r = (row_result){.finite = s.finite};
    if (!s.finite)
        return;
    if (t->has_base)
        r->c = llm_log_compare(&s, logits, n, code, next);
    else
        llm_log_probs_encode(&s, logits, n, code);
    r->nll = -llm_log_softmax_at(&s, logits, next);
}

static void score_rows(trial *t) {
    llm_work_share(t->n_threads, (size_t)t->n_rows, score_row, t);
    for (int64_t k = 0; k < t->n_rows && t->bad < 0; k++) {
        if (!t->result[k].finite)
            t->bad = t->first + k;
        else if (t->has_base)
            llm_ppl_add_compared(&t->stats, &t->result[k].c);
        else
            llm_ppl_add(&t->stats, t->result[k].nll);
    }
    t->n_rows = 0;
}

static void on_logits(void *ctx, int64_t i, const float *logits) {
    trial *t = ctx;
    if (t->n_rows == 0)
        t->first = i;
    memcpy(t->row + t->n_rows * t->n_vocab, logits, (size_t)t->n_vocab * sizeof *logits);
    if (++t->n_rows == MAX_ROWS)
        score_rows(t);
}

static ggl_status run_chunk(trial *t, int32_t *token, const bool *want, ggl_error *err) {
    const int64_t n_ctx = t->text.n_ctx;
    memcpy(token, chunk_tokens(t), (size_t)n_ctx * sizeof *token);
    if (t->bos >= 0)
        token[0] = t->bos;
    const llm_batch b = {.n = n_ctx - 1, .token = token, .want = want, .each = on_logits, .ctx = t};
    ggl_status st = llm_session_clear(t->session, 0, err);
    if (st == GGL_OK)
        st = llm_session_eval(t->session, &b, err);
    if (st == GGL_OK)
        score_rows(t);
    return st;
}

static int run_chunks(trial *t) {
    ggl_error err = {0};
    const size_t n = (size_t)t->text.n_ctx;
    int32_t *token = ggl_calloc(n, sizeof *token);
    bool *want = ggl_calloc(n, sizeof *want);
    ggl_status st = token && want ? GGL_OK : ggl_fail(&err, GGL_NOMEM, "out of memory");
    for (size_t i = n / 2; st == GGL_OK && i < n; i++)
        want[i] = true;
    progress_begin(NULL, (double)t->text.n_chunk, "chunks");
    for (t->chunk = 0; st == GGL_OK && t->bad < 0 && t->chunk < t->text.n_chunk; t->chunk++) {
        st = run_chunk(t, token, want, &err);
        progress_set((double)t->chunk + 1);
        if (process_stopped)
            break;
    }
    progress_end();
    ggl_free(token);
    ggl_free(want);
    if (process_stopped)
        return process_stop_code(); /* the caller says what is lost */
    if (st != GGL_OK)
        return tool_error(t->tool, 1, "%s", err.msg);
    if (t->bad >= 0)
        return tool_error(t->tool, 1,
                          "--calibration: chunk %" PRId64 ", token %" PRId64
                          ": the model's logits are not numbers",
                          t->chunk, t->bad);
    return -1;
}

static int run(trial *t) {
    ggl_error err = {0};
    t->stats = (ppl_stats){0};
    t->n_rows = 0;
    t->bad = -1;
    ggl_status st = open_session(t, &err);
    if (st == GGL_OK)
        st = take_memory(t, &err);
    int code = st == GGL_OK ? run_chunks(t) : tool_error(t->tool, 1, "%s", err.msg);
    llm_session_free(t->session);
    t->session = NULL;
    return code;
}

int trial_base(trial *t, mean *ppl, double *seconds) {
    const double begin = ggl_os_seconds();
    t->has_base = false;
    const int code = run(t);
    *seconds = ggl_os_seconds() - begin;
    *ppl = llm_ppl_value(&t->stats);
    t->has_base = code < 0;
    return code;
}

int trial_run(trial *t, mean *kl, mean *ppl) {
    const int code = run(t);
    *kl = llm_ppl_kld(&t->stats);
    if (ppl)
        *ppl = llm_ppl_value(&t->stats);
    return code;
}
