/* Opens trainings: the model, the adapter that learns, and the teacher. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "file_senses.h"
#include "ggl/backends.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/memory_left.h"
#include "ggl/internal/params.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/sched.h"
#include "ggl/internal/show.h"
#include "llm/internal/guess.h"
#include "opening.h"
#include "training/training.h"

/* What is opened for a training, and closed after it. */
typedef struct opened {
    llm_context *model, *teacher, *draft;
    const llm_file_senses *senses;
    ggl_backend *cpu, *reference;
    llm_adapter *adapter;
    llm_adapter_parts adapter_parts;
    void *new_adapter; /* the file of a new one */
    bool has_no_prompts;
    ggl_error why_no_prompts;
    char *prompt[3]; /* of queries, of documents, and of other texts */
    size_t n_prompt[3];
    train_recorded *recorded; /* in place of the teacher; NULL: none */
    double temp;              /* of the teacher */
    float *share;             /* where it writes, while it is asked */
    int64_t n_vocab;
} opened;

static void close_all(void *owned) {
    opened *o = owned;
    llm_file_senses_close(o->senses);
    llm_close(o->model);
    llm_close(o->teacher);
    llm_train_recorded_close(o->recorded);
    llm_close(o->draft);
    llm_adapter_free(o->adapter);
    ggl_free(o->new_adapter);
    for (int i = 0; i < 3; i++)
        ggl_free(o->prompt[i]);
    ggl_backend_close(o->cpu);
    ggl_backend_close(o->reference);
    ggl_free(o);
}

/* --- the teacher ------------------------------------------------------------------------------ */

/* Sets the probabilities of a token's logits at the temperature. */
static void tell(void *ctx, int64_t i, const float *logits) {
    const opened *o = ctx;
    float *to = o->share + i * o->n_vocab;
    float top = -INFINITY;
    double sum = 0;
    for (int64_t k = 0; k < o->n_vocab; k++)
        top = logits[k] > top ? logits[k] : top;
    for (int64_t k = 0; k < o->n_vocab; k++)
        sum += exp(((double)logits[k] - (double)top) / o->temp);
    for (int64_t k = 0; k < o->n_vocab; k++)
        to[k] = (float)(exp(((double)logits[k] - (double)top) / o->temp) / sum);
}

static ggl_status teach(void *ctx, const int32_t *token, const int64_t *length, int64_t n_seq,
                        float *share, ggl_error *err) {
    opened *o = ctx;
    llm_session *s = o->teacher->session;
    ggl_status st = GGL_OK;
    for (int64_t i = 0, at = 0; i < n_seq && st == GGL_OK; at += length[i++]) {
        bool *want = ggl_calloc((size_t)length[i], sizeof *want);
        if (!want)
            return ggl_fail(err, GGL_NOMEM, "out of memory for the teacher");
        memset(want, true, (size_t)length[i]);
        o->share = share + at * o->n_vocab;
        const llm_batch b = {
            .n = length[i], .token = token + at, .want = want, .each = tell, .ctx = o};
        st = llm_session_clear(s, 0, err);
        if (st == GGL_OK)
            st = llm_session_eval(s, &b, err);
        ggl_free(want);
    }
    return st;
}

/* Fails if the tokens are others. A few may be: models name tokens that nobody uses as they like. */
static ggl_status check_tokens(const opened *o, const char *path, ggl_error *err) {
    const llm_tokenizer *own = o->model->tokenizer, *its = o->teacher->tokenizer;
    const int32_t n = its ? llm_tokenizer_n_vocab(own) : 0,
                  n_its = its ? llm_tokenizer_n_vocab(its) : 0;
    int32_t n_other = 0, first = 0;
    for (int32_t i = 0; i < n && i < n_its; i++) {
        const ggl_str a = llm_token_piece(own, i), b = llm_token_piece(its, i);
        const bool same = ggl_str_equal(a, b);
        first = same || n_other > 0 ? first : i;
        n_other += !same;
    }
    if (n_other <= n / 100)
        return GGL_OK;
    const ggl_str a = llm_token_piece(own, first), b = llm_token_piece(its, first);
    return ggl_fail(
        err, GGL_USAGE,
        "the teacher %s has other tokens: token %d is '%.*s', and the model's '%.*s'; it "
        "can only teach models with the same vocabulary",
        path, (int)first, (int)ggl_utf8_cut(b.s, b.n, 40), b.s, (int)ggl_utf8_cut(a.s, a.n, 40),
        a.s);
}

static ggl_status open_recorded(opened *o, const llm_training_params *p, ggl_error *err) {
    if (p->record)
        return ggl_fail(err, GGL_USAGE, "the teacher %s is recorded already", p->teacher);
    return llm_train_recorded_open(&o->recorded, p->teacher, o->model->tokenizer,
                                   p->teacher_temp > 0 ? p->teacher_temp : 1, err);
}

static ggl_status open_teacher(opened *o, const llm_training_params *p, int64_t n_ctx,
                               ggl_error *err) {
    const llm_open_params of = {.size = sizeof of,
                                .n_ctx = n_ctx,
                                .n_threads = p->n_threads,
                                .note = p->note,
                                .user = p->user,
                                .cache_type_k = "f32",
                                .cache_type_v = "f32"};
    ggl_status st = llm_open(&o->teacher, p->teacher, &of, err);
    if (st != GGL_OK) /* such as that n_ctx is more than it can have, which names no file */
        return strstr(err->msg, p->teacher) ? st
                                            : ggl_within(err, st, "the teacher %s", p->teacher);
    o->n_vocab = llm_context_facts(o->teacher)->n_vocab;
    o->temp = p->teacher_temp > 0 ? p->teacher_temp : 1;
    st = llm_context_check_writes(o->teacher, false, err);
    if (st != GGL_OK)
        return ggl_within(err, st, "the teacher %s", p->teacher);
    return check_tokens(o, p->teacher, err);
}

/* The memory of a context, with the pages of its file. */
static size_t bytes_of(const llm_context *c) {
    double sum = 0;
    ggl_memory m;
    for (int i = 0; i < llm_placement_n_backends(c->placement); i++)
        if (ggl_sched_memory(llm_session_sched(c->session), i, &m))
            sum += llm_placement_taken(&m) + (double)m.weights_mapped;
    return (size_t)sum;
}

/* --- a model that guesses ---------------------------------------------------------------------- */

static ggl_status open_draft(opened *o, const llm_training_params *p, ggl_error *err) {
    const llm_open_params of = {
        .size = sizeof of, .n_threads = p->n_threads, .note = p->note, .user = p->user};
    const ggl_status st =
        llm_context_open_path(&o->draft, p->draft_model, &of, LLM_OPENED_MODEL, err);
    if (st != GGL_OK || !o->draft->tokenizer)
        return st;
    return ggl_within(err, llm_draft_fits(o->model->tokenizer, o->draft->tokenizer, err), "%s",
                      p->draft_model);
}

/* --- the adapter ------------------------------------------------------------------------------ */

static ggl_status open_adapter(opened *o, const llm_training_params *p, ggl_error *err) {
    const llm_model *m = o->model->model, *eye = o->senses ? o->senses->eye : NULL;
    const llm_arch_source source = llm_arch_source_gguf(llm_model_file(m)),
                          seen = eye ? llm_arch_source_gguf(llm_model_file(eye)) : source;
    const double rank = p->rank > 0 ? (double)p->rank : 16,
                 alpha = p->alpha != 0 ? p->alpha : 2 * rank;
    const llm_train_pairs pairs = {.size = sizeof pairs,
                                   .rank = p->rank,
                                   .alpha = p->rs ? alpha * sqrt(rank) : p->alpha,
                                   .matrix = p->matrix,
                                   .n_matrices = p->n_matrices,
                                   .seed = p->seed,
                                   .magnitudes = p->dora,
                                   .eye = eye ? llm_model_arch(eye) : NULL,
                                   .eye_source = &seen,
                                   .eye_ignore =
                                       eye ? llm_model_ignore(eye) : (llm_arch_ignore){0}};
    size_t n;
    ggl_status st = GGL_OK;
    if (p->adapter) {
        st = llm_adapter_open(&o->adapter, p->adapter, NULL, err);
    } else {
        st = llm_train_new_adapter(llm_model_arch(m), &source, &pairs, &o->new_adapter, &n, err);
        if (st == GGL_OK)
            st = llm_adapter_open_memory(&o->adapter, o->new_adapter, n, "the new adapter", err);
    }
    return st == GGL_OK ? llm_adapter_check(o->adapter, m, eye, &o->adapter_parts, err) : st;
}

/* --- several processes ------------------------------------------------------------------------ */

static ggl_status send_to(void *ctx, int rank, const void *data, size_t size, ggl_error *err) {
    (void)ctx;
    return ggl_ranks_send(rank, data, size, err);
}

static ggl_status receive(void *ctx, int rank, void *data, size_t size, ggl_error *err) {
    (void)ctx;
    return ggl_ranks_receive(rank, data, size, err);
}

/* That of llm_training_join; n_ranks 0: it was not called, or there is one process. */
static train_group joined;
static bool has_opened; /* a training: it tells the others how it ends */

/* Rank 0 ends before it has opened a training: the others wait for it. */
static void end_others(void) {
    if (!has_opened)
        llm_train_group_fail(&joined, "");
}

ggl_status llm_training_join(int *rank, ggl_error *err) {
    int n_ranks;
    ggl_error own;
    const ggl_status st = ggl_ranks_begin_peers(rank, &n_ranks, err ? err : &own);
    if (st == GGL_OK && n_ranks > 1)
        joined =
            (train_group){.rank = *rank, .n_ranks = n_ranks, .send = send_to, .receive = receive};
    if (st == GGL_OK && n_ranks > 1 && *rank == 0)
        atexit(end_others);
    return st;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Gets what the model expects before texts of which it makes vectors. */
static ggl_status get_prompts(opened *o, ggl_error *err) {
    static const char *const name[3] = {"query", "document", NULL};
    ggl_status st = GGL_OK;
    for (int i = 0; i < 3 && st == GGL_OK; i++)
        st = llm_embed_prompt(o->model, name[i], &o->prompt[i], &o->n_prompt[i], err);
    return st;
}

static ggl_status open_senses(opened *o, const llm_training_params *p, ggl_error *err) {
    const llm_loading of = {.n_threads = p->n_threads, .note = p->note, .ctx = p->user};
    return llm_file_senses_open(&o->senses, o->model, p->mmproj, &of,
                                llm_train_n_ctx(o->model->model, p->n_ctx), err);
}

static ggl_status open_all(opened *o, const char *path, const llm_training_params *p,
                           ggl_error *err) {
    const llm_open_params of = {.size = sizeof of,
                                .arch = p->arch,
                                .chat_template = p->chat_template,
                                .n_threads = p->n_threads,
                                .note = p->note,
                                .user = p->user};
    const ggl_backend_params threads = {
        .size = sizeof threads, .n_threads = p->n_threads, .n_threads_batch = p->n_threads};
    ggl_status st = llm_context_open_path(&o->model, path, &of, LLM_OPENED_MODEL, err);
    if (st == GGL_OK && !o->model->tokenizer)
        return ggl_pass(err, &o->model->why_no_tokenizer);
    if (st == GGL_OK)
        st = open_senses(o, p, err);
    if (st == GGL_OK)
        st = ggl_backend_open(&o->cpu, "cpu", &threads, err);
    if (st == GGL_OK)
        st = ggl_backend_open(&o->reference, "reference", NULL, err);
    if (st == GGL_OK && (p->lora || p->adapter))
        st = open_adapter(o, p, err);
    if (st == GGL_OK && get_prompts(o, &o->why_no_prompts) != GGL_OK)
        o->has_no_prompts = true; /* which matters if vectors are learned */
    if (st == GGL_OK && p->draft_model)
        st = open_draft(o, p, err);
    if (st == GGL_OK && p->teacher)
        st = llm_train_is_recorded(p->teacher)
                 ? open_recorded(o, p, err)
                 : open_teacher(o, p, llm_train_n_ctx(o->model->model, p->n_ctx), err);
    return st;
}

ggl_status llm_training_open(llm_training **out, const char *path,
                             const llm_training_params *params, ggl_error *err) {
    llm_training_params p = {.size = sizeof p};
    ggl_error own;
    err = err ? err : &own;
    *out = NULL;
    ggl_status st = GGL_READ_PARAMS(llm_training_params, &p, params, err);
    if (st != GGL_OK)
        return st;
    const size_t left = ggl_memory_left("");
    if (p.lora && p.adapter)
        return ggl_fail(err, GGL_USAGE, "either a new adapter (lora) or that of a file can learn");
    p.draft |= p.draft_model != NULL;
    opened *o = ggl_calloc(1, sizeof *o);
    st = o ? open_all(o, path, &p, err) : ggl_fail(err, GGL_NOMEM, "out of memory for a training");
    if (st == GGL_OK) {
        const train_parts parts = {
            .model = o->model->model,
            .draft = o->draft ? o->draft->model : NULL,
            .tokenizer = o->model->tokenizer,
            .chat = o->model->chat,
            .adapter = o->adapter,
            .adapts_eye = o->adapter_parts.n_eye > 0,
            .backend = o->cpu,
            .reference = o->reference,
            .n_threads = p.n_threads > 0 ? p.n_threads : ggl_backend_default_threads_batch(),
            .teach = o->recorded ? llm_train_recorded_teach
                     : p.teacher ? teach
                                 : NULL,
            .teacher = o->recorded ? (void *)o->recorded : o,
            .group = joined.n_ranks > 0 ? &joined : NULL,
            .query_prompt = {o->prompt[0], o->n_prompt[0]},
            .document_prompt = {o->prompt[1], o->n_prompt[1]},
            .text_prompt = {o->prompt[2], o->n_prompt[2]},
            .why_no_prompts = o->has_no_prompts ? &o->why_no_prompts : NULL,
            .n_taught = o->recorded ? llm_train_recorded_n_vocab(o->recorded) : o->n_vocab,
            .memory_left = left,
            .eye = o->senses ? o->senses->eye : NULL,
            .senses = o->senses,
            .teacher_bytes = o->teacher ? bytes_of(o->teacher) : 0,
            .teacher_file = o->recorded  ? llm_train_recorded_file(o->recorded)
                            : o->teacher ? llm_model_file(o->teacher->model)
                                         : NULL};
        st = llm_training_new(out, &parts, &p, err);
    }
    if (st == GGL_OK) {
        (*out)->close = close_all;
        (*out)->owned = o;
    } else if (o) {
        close_all(o);
    }
    if (st != GGL_OK && joined.n_ranks > 0)
        llm_train_group_fail(&joined, err->msg);
    has_opened = true;
    return st;
}
