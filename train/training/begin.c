/* Makes a training: its parameters, its data, and the trainer. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/gguf.h"
#include "ggl/internal/nearest.h"
#include "ggl/internal/params.h"
#include "ggl/internal/types.h"
#include "training.h"

enum {
    MOST_CTX = 1024,
    MOST_VALID = 64,
    LEAST_ITEMS = 20,
    FEW_ITEMS = 8,
    FEW_GROUPS = 32,
    MOST_TOKENS = 1 << 30
};

/* --- parameters ------------------------------------------------------------------------------- */

static ggl_status check_counts(const llm_training_params *p, ggl_error *err) {
    const struct {
        const char *name;
        int64_t value, least;
    } count[] = {{"n_ctx (-c)", p->n_ctx, 0},
                 {"n_batch (-b)", p->n_batch, 0},
                 {"n_seq (--sequences)", p->n_seq, 0},
                 {"n_ubatch (-ub)", p->n_ubatch, 0},
                 {"n_steps (--steps)", p->n_steps, 0},
                 {"n_warmup (--warmup)", p->n_warmup, -1},
                 {"valid_max (--valid-max)", p->valid_max, -1},
                 {"rank (--rank)", p->rank, 0},
                 {"record_top (--record-top)", p->record_top, 0},
                 {"n_parts (--parts)", p->n_parts, 0},
                 {"n_threads (-t)", p->n_threads, 0},
                 {"draft_depth (--draft-depth)", p->draft_depth, 0}};
    for (size_t i = 0; i < sizeof count / sizeof *count; i++)
        if (count[i].value < count[i].least || count[i].value > MOST_TOKENS)
            return ggl_fail(err, GGL_USAGE, "%s is %" PRId64 "; it must be from %" PRId64 " to %d",
                            count[i].name, count[i].value, count[i].least, MOST_TOKENS);
    return GGL_OK;
}

static ggl_status check_numbers(const llm_training_params *p, ggl_error *err) {
    const struct {
        const char *name;
        double value, least, most;
    } number[] = {{"n_epochs (--epochs)", p->n_epochs, 0, 1e6},
                  {"minutes (--minutes)", p->minutes, 0, 1e6},
                  {"rate (-lr)", p->rate, 0, 100},
                  {"rate_end (--lr-end)", p->rate_end, 0, 1},
                  {"rate_hold (--hold)", p->rate_hold, 0, 0.999},
                  {"decay (--decay)", p->decay, 0, 100},
                  {"beta1 (--beta1)", p->beta1, 0, 1},
                  {"beta2 (--beta2)", p->beta2, 0, 1},
                  {"eps (--eps)", p->eps, 0, 1},
                  {"max_norm (--max-norm)", p->max_norm, -INFINITY, INFINITY},
                  {"valid_share (--valid-share)", p->valid_share, -INFINITY, 0.9},
                  {"alpha (--alpha)", p->alpha, 0, 1e6},
                  {"dpo_beta (--dpo-beta)", p->dpo_beta, 0, 1e3},
                  {"teacher_share (--teacher-share)", p->teacher_share, 0, 1},
                  {"teacher_temp (--teacher-temp)", p->teacher_temp, 0, 1e3},
                  {"contrast_temp (--contrast-temp)", p->contrast_temp, 0, 1e3}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        if (!(number[i].value >= number[i].least && number[i].value <= number[i].most))
            return ggl_fail(err, GGL_USAGE, "%s is %g; it must be from %g to %g", number[i].name,
                            number[i].value, number[i].least, number[i].most);
    return GGL_OK;
}

static ggl_status check_bits(const llm_training_params *p, ggl_error *err) {
    return p->optimizer_bits == 0 || p->optimizer_bits == 8 || p->optimizer_bits == 32
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE,
                          "optimizer_bits (--optimizer-bits) is %d; it must be 8 or 32",
                          (int)p->optimizer_bits);
}

static ggl_status check(const llm_training *t, ggl_error *err) {
    const llm_training_params *p = &t->p;
    ggl_status st = check_counts(p, err);
    if (st == GGL_OK)
        st = check_numbers(p, err);
    if (st == GGL_OK)
        st = check_bits(p, err);
    if (st != GGL_OK)
        return st;
    if (p->n_files == 0)
        return ggl_fail(err, GGL_USAGE, "a training needs a file to learn from");
    if (p->loss && t->of.teach)
        return ggl_fail(err, GGL_USAGE, "either a loss or a teacher can be given, not both");
    if (p->record && !t->of.teach)
        return ggl_fail(err, GGL_USAGE,
                        "there is no teacher to record: record (--record) needs one (--teacher)");
    if (p->record && t->group)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "a teacher is recorded by one process: record without mpirun, and let all "
                        "ranks use the file");
    if (p->round_to && t->of.adapter)
        return ggl_fail(
            err, GGL_USAGE,
            "round_to (--qat) is for models that learn: an adapter's matrices stay f32");
    if (p->round_to && p->bf16)
        return ggl_fail(err, GGL_USAGE,
                        "round_to (--qat) and bf16 (--bf16) both say what products read: only one "
                        "of the two can be "
                        "given");
    if (p->draft && (t->of.adapter || t->of.teach || p->loss))
        return ggl_fail(
            err, GGL_USAGE,
            "layers that guess (draft, or --draft) learn what their own model says: without an "
            "adapter, a teacher or another loss");
    if (p->draft && p->teacher_temp > 0 && p->teacher_temp != 1)
        return ggl_fail(err, GGL_USAGE,
                        "teacher_temp (--teacher-temp) is %g; layers that guess learn what the "
                        "model says as it is",
                        p->teacher_temp);
    if (t->of.draft && !p->draft)
        return ggl_fail(err, GGL_USAGE, "a model that guesses learns only with draft (--draft)");
    if (p->draft_depth > (p->draft ? TRAIN_MOST_GUESSES : 0))
        return ggl_fail(err, GGL_USAGE, "draft_depth (--draft-depth) is %" PRId64 "; it must be %s",
                        p->draft_depth, p->draft ? "from 0 to 16" : "0 without draft");
    if (p->mmproj_out && !t->of.eye)
        return ggl_fail(err, GGL_USAGE,
                        "mmproj_out (--mmproj-out) is the file for what learned of mmproj "
                        "(--mmproj), which is not given");
    if (p->mmproj_out && t->of.adapter)
        return ggl_fail(
            err, GGL_USAGE,
            "beside an adapter the file of the eye or the ear stays as it is: leave mmproj_out "
            "(--mmproj-out) out");
    if (p->n_matrices > 0 && !p->lora)
        return ggl_fail(
            err, GGL_USAGE,
            "matrix (--matrix) says what a new adapter changes: it needs lora (--lora); learn "
            "(--learn) says which "
            "weights of a model learn");
    const struct {
        const char *name;
        bool is_given;
    } of_adapter[] = {{"rank (--rank)", p->rank != 0},
                      {"alpha (--alpha)", p->alpha != 0},
                      {"rs (--rslora)", p->rs},
                      {"dora (--dora)", p->dora}};
    for (size_t i = 0; i < sizeof of_adapter / sizeof *of_adapter && !p->lora; i++)
        if (of_adapter[i].is_given)
            return ggl_fail(err, GGL_USAGE, "%s is of a new adapter: it needs lora (--lora)",
                            of_adapter[i].name);
    return GGL_OK;
}

/* A model of a billion weights, and larger ones, learn by these; smaller ones need more. */
static double usual_rate(const llm_training *t) {
    const ggl_gguf *f = llm_model_file(t->of.draft ? t->of.draft : t->of.model);
    double n = 1;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const int64_t *ne = ggl_gguf_tensor_at(f, i)->ne;
        n += (double)ne[0] * (double)ne[1] * (double)ne[2] * (double)ne[3];
    }
    double rate = t->of.adapter ? 2e-4 * fmin(20, pow(fmax(1, 1e9 / n), 0.4))
                                : 2e-5 * fmin(50, pow(fmax(1, 1e9 / n), 0.55));
    if (t->kind == TRAIN_PAIRS)
        rate /= 10;
    /* AdamW moves each number by about the rate; a gradient of length 1 moves all of them together by it */
    return t->optimizer == LLM_TRAIN_SGD ? rate * sqrt((double)t->n_numbers) : rate;
}

static void set_if_zero(double *x, double by) {
    if (*x == 0)
        *x = by;
}

/* Puts the defaults in place of zeros. */
static void fill(llm_training *t) {
    llm_training_params *p = &t->p;
    set_if_zero(&p->n_epochs, t->kind == TRAIN_ANSWERS ? 3 : 1);
    set_if_zero(&p->max_norm, 1);
    if (p->optimizer_bits == 0)
        p->optimizer_bits = 32;
    set_if_zero(&p->dpo_beta, 0.1);
    set_if_zero(&p->teacher_share, 1);
    set_if_zero(&p->teacher_temp, 1);
    set_if_zero(&p->contrast_temp, 0.05);
    if (p->n_parts == 0)
        p->n_parts = t->group ? t->group->n_ranks : 1;
    if (p->n_batch == 0)
        p->n_batch = llm_train_is_contrast(t->kind) ? 16384 : 2048;
    if (p->n_seq == 0 && t->kind != TRAIN_TEXT)
        p->n_seq = llm_train_is_contrast(t->kind) ? FEW_GROUPS : FEW_ITEMS;
}

/* --- data ------------------------------------------------------------------------------------- */

static bool tell_read(void *user, size_t done, size_t total) {
    const llm_training *t = user;
    return !t->p.progress || t->p.progress(t->p.user, "reading", done, total);
}

static void tell_note(void *user, const char *text) {
    const llm_training *t = user;
    if (t->p.note)
        t->p.note(t->p.user, text);
}

static ggl_status read_files(llm_training *t, train_data **out, const char *const *file, size_t n,
                             ggl_error *err) {
    const train_data_params p = {.tokenizer = t->of.tokenizer,
                                 .chat = t->of.chat,
                                 .n_ctx = t->p.n_ctx,
                                 .all = t->p.all_tokens,
                                 .drop_long = t->p.drop_long,
                                 .separator = t->p.separator,
                                 .query_prompt = t->of.query_prompt,
                                 .document_prompt = t->of.document_prompt,
                                 .text_prompt = t->of.text_prompt,
                                 .scores = t->pooling == LLM_POOL_RANK,
                                 .senses = t->of.senses,
                                 .note = tell_note,
                                 .progress = tell_read,
                                 .user = t};
    ggl_status st = llm_train_data_new(out, &p, err);
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        st = llm_train_data_read(*out, file[i], err);
    return st;
}

/* How many documents, conversations or pairs are held back. */
static double n_held(const llm_training *t) {
    const double n = (double)llm_train_data_stats(t->data).n_records;
    if (t->valid || t->p.valid_share < 0)
        return 0;
    if (t->p.valid_share > 0)
        return fmax(1, floor(n * t->p.valid_share));
    return n < LEAST_ITEMS ? 0 : fmin(MOST_VALID, floor(n / 20));
}

static int64_t longest_of(const train_data *d) {
    int64_t most = 1;
    for (int64_t k = 0; d && k < llm_train_data_n(d); k++) {
        const int64_t n = llm_train_data_length(d, k);
        most = n > most ? n : most;
    }
    return most;
}

static int64_t longest_reading(const train_data *d) {
    int64_t most = 0;
    for (int64_t r = 0; d && r < llm_train_data_n_readings(d); r++) {
        const int64_t n = llm_train_data_reading_length(d, r);
        most = n > most ? n : most;
    }
    return most;
}

int64_t llm_train_n_ctx(const llm_model *m, int64_t asked) {
    const int64_t own = llm_model_n_ctx(m);
    return asked != 0 ? asked : own > 0 && own < MOST_CTX ? own : MOST_CTX;
}

/* True if a text's vector is more than the direction of a sum of its rows (llm/internal/head.h). */
static bool is_more_than_sum(const llm_training *t) {
    const ggl_gguf *file = llm_model_file(t->of.model);
    return (t->pooling > LLM_POOL_RANK && t->pooling != LLM_POOL_SQRT) ||
           ggl_gguf_find(file, "sentence_transformers.modules") ||
           ggl_gguf_find(file, "sentence_transformers.include_prompt");
}

/* Checks that the files go together, and with what is asked. */
static ggl_status check_kind(const llm_training *t, ggl_error *err) {
    const bool contrast = llm_train_is_contrast(t->kind);
    llm_pooling none;
    if (t->valid && llm_train_data_kind(t->valid) != t->kind &&
        (t->kind >= TRAIN_PAIRS || llm_train_data_kind(t->valid) >= TRAIN_PAIRS))
        return ggl_fail(err, GGL_USAGE,
                        "%s: what it learns is measured by the same kind of data, and texts by "
                        "texts",
                        t->p.valid_file[0]);
    if (!contrast && !t->p.draft && !llm_arch_has_output(llm_model_arch(t->of.model), "logits"))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: the model gives no logits, so it learns nothing from texts and "
                        "conversations; it makes vectors or scores of texts, and learns from those "
                        "that belong together ({\"query\": .., \"positive\": ..}, or "
                        "{\"sentence1\": .., \"sentence2\": .., \"score\": ..})",
                        t->p.file[0]);
    if (t->kind >= TRAIN_PAIRS && (t->p.loss || t->of.teach))
        return ggl_fail(err, GGL_USAGE, "%s has %s: these have a loss of their own, and no teacher",
                        t->p.file[0], contrast ? "texts that belong together" : "preferences");
    if (t->kind >= TRAIN_PAIRS && t->p.draft)
        return ggl_fail(err, GGL_USAGE,
                        "%s has %s: layers that guess (draft) learn from texts and conversations",
                        t->p.file[0], contrast ? "texts that belong together" : "preferences");
    if (t->reads && (contrast || t->p.draft || t->of.teach))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s has pictures, sounds or texts that are read besides: a teacher, layers "
                        "that guess (draft) and texts that belong together go by tokens alone",
                        t->p.file[0]);
    if ((t->p.n_dims > 0 || t->p.contrast_temp > 0) && (!contrast || t->pooling == LLM_POOL_RANK))
        return ggl_fail(err, GGL_USAGE,
                        "%s: dim (--dims) and contrast_temp (--contrast-temp) are for texts that "
                        "belong together, of a "
                        "model that makes vectors",
                        t->p.file[0]);
    if (contrast && t->of.why_no_prompts)
        return ggl_fail(err, GGL_FORMAT, "%s", t->of.why_no_prompts->msg);
    if (contrast && is_more_than_sum(t))
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "%s: texts that belong together train models whose vectors are the mean, the first or "
            "the last one of their tokens; this model's are pooled in another way, leave out "
            "prompts or have modules after that (sentence_transformers.*)",
            t->p.file[0]);
    if (contrast && t->pooling == LLM_POOL_NONE)
        return llm_pooling_find_vector(&none, NULL, llm_model_file(t->of.model), err) == GGL_OK
                   ? ggl_fail(err, GGL_USAGE, "with the pooling 'none', a text has no vector")
                   : GGL_UNSUPPORTED;
    return GGL_OK;
}

/* Finds how vectors are made. What a file says matters only if vectors are learned. */
static ggl_status find_pooling(llm_training *t, ggl_error *err) {
    const ggl_gguf *file = llm_model_file(t->of.model);
    const ggl_status st = llm_pooling_find(&t->pooling, t->p.pooling, file, err);
    if (st != GGL_OK && !t->p.pooling)
        t->pooling = LLM_POOL_NONE;
    return t->p.pooling ? st : GGL_OK;
}

/* Copies what outlives the call. */
static ggl_status copy_path(llm_training *t, ggl_error *err) {
    const size_t n = t->p.mmproj_out ? strlen(t->p.mmproj_out) + 1 : 0;
    if (n == 0)
        return GGL_OK;
    t->mmproj_out = ggl_calloc(n, 1);
    if (!t->mmproj_out)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a path");
    memcpy(t->mmproj_out, t->p.mmproj_out, n);
    t->p.mmproj_out = t->mmproj_out;
    return GGL_OK;
}

static ggl_status copy_dims(llm_training *t, ggl_error *err) {
    if (t->p.n_dims == 0)
        return GGL_OK;
    t->dim = ggl_calloc(t->p.n_dims, sizeof *t->dim);
    if (!t->dim)
        return ggl_fail(err, GGL_NOMEM, "out of memory for dimensions");
    memcpy(t->dim, t->p.dim, t->p.n_dims * sizeof *t->dim);
    t->p.dim = t->dim;
    return GGL_OK;
}

/* Standard input can be read once, by one process. */
static ggl_status check_stdin(const llm_training *t, ggl_error *err) {
    int n = 0;
    for (size_t i = 0; i < t->p.n_files; i++)
        n += strcmp(t->p.file[i], "-") == 0;
    for (size_t i = 0; i < t->p.n_valid_files; i++)
        n += strcmp(t->p.valid_file[i], "-") == 0;
    if (n > 1)
        return ggl_fail(err, GGL_USAGE,
                        "standard input (-) is given %d times, but it can be read only once", n);
    if (n > 0 && t->group)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "standard input (-) reaches only one of the processes that mpirun starts: give a file");
    return GGL_OK;
}

static ggl_status read_all(llm_training *t, ggl_error *err) {
    t->p.n_ctx = llm_train_n_ctx(t->of.model, t->p.n_ctx);
    ggl_status st = check_stdin(t, err);
    if (st == GGL_OK)
        st = find_pooling(t, err);
    if (st == GGL_OK)
        st = copy_dims(t, err);
    if (st == GGL_OK)
        st = copy_path(t, err);
    if (st == GGL_OK)
        st = read_files(t, &t->data, t->p.file, t->p.n_files, err);
    if (st == GGL_OK && t->p.n_valid_files > 0)
        st = read_files(t, &t->valid, t->p.valid_file, t->p.n_valid_files, err);
    if (st != GGL_OK)
        return st;
    t->kind = llm_train_data_kind(t->data);
    t->reads = longest_reading(t->data) > 0 || longest_reading(t->valid) > 0;
    st = check_kind(t, err);
    const train_order_params o = {.data = t->data, .seed = t->p.seed, .valid = n_held(t)};
    return st == GGL_OK ? llm_train_order_new(&t->order, &o, err) : st;
}

/* --- the trainer ------------------------------------------------------------------------------ */

/* Sequences that have room in a run: some more than there are of mean length. */
static int64_t n_slots(const llm_training *t) {
    enum { MOST_READ = 4096 }; /* rows or tokens, of which keys and values of all layers are kept */
    const train_data_stats s = llm_train_data_stats(t->data);
    const int64_t mean = s.n_tokens / (s.n_items > 0 ? s.n_items : 1),
                  all = t->p.n_ubatch / (mean > 0 ? mean : 1) * 3 / 2 + 1,
                  n = all < t->p.n_ubatch ? all : t->p.n_ubatch;
    if (!llm_file_senses_read_whole(t->of.senses) || t->n_read < 1)
        return n;
    const int64_t few = MOST_READ / t->n_read > 1 ? MOST_READ / t->n_read : 1;
    return n < few ? n : few;
}

static ggl_status no_type(const char *name, ggl_error *err) {
    ggl_nearest near = ggl_nearest_to(name);
    for (int k = 0; ggl_type_at(k); k++)
        ggl_nearest_try(&near, ggl_type_at(k)->name, SIZE_MAX);
    return ggl_fail(err, GGL_USAGE,
                    "numbers cannot be rounded to '%s': there is no type of this name, as q4_0, "
                    "q8_0, q4_k and q6_k are%s%s%s",
                    name, near.best ? "; did you mean '" : "", near.best ? near.best : "",
                    near.best ? "'?" : "");
}

/* Finds the optimizer and the type to which numbers are rounded. */
static ggl_status find_names(llm_training *t, ggl_error *err) {
    const char *name;
    const ggl_type_info *type = t->p.round_to ? ggl_type_find(t->p.round_to) : NULL;
    int k = 0;
    while ((name = llm_train_optimizer_name(k)) && t->p.optimizer &&
           strcmp(name, t->p.optimizer) != 0)
        k++;
    if (!name)
        return ggl_fail(err, GGL_USAGE, "the optimizer '%s': adamw, sgd and muon are known",
                        t->p.optimizer);
    if (t->p.round_to && !type)
        return no_type(t->p.round_to, err);
    t->optimizer = (llm_train_optimizer_kind)k;
    t->rounded = type ? type->type : GGL_F32;
    return GGL_OK;
}

/* If the trainer cannot be made because texts have more tokens than the model has positions, the error is about these: the compiler's names a
 * line of the descriptor. */
static ggl_status explain_positions(const llm_training *t, llm_train_params p, ggl_error *err) {
    const int64_t longest = p.n_ctx, own = llm_model_n_ctx(t->of.model);
    const ggl_status why = err->status;
    ggl_error other = {0};
    llm_trainer *shorter = NULL;
    const bool is_shape = why == GGL_SHAPE || why == GGL_FORMAT; /* of the compiler */
    if (!is_shape || own <= 0 || longest <= own || t->of.draft)
        return why;
    p.n_ctx = own;
    if (llm_trainer_new(&shorter, llm_model_arch(t->of.model), &t->source, &p, &other) == GGL_OK)
        (void)ggl_fail(err, GGL_USAGE,
                       "the longest text has %" PRId64 " tokens, but this model has only %" PRId64
                       " positions: n_ctx of %" PRId64 " (-c) or less cuts texts there",
                       longest, own, own);
    llm_trainer_free(shorter);
    return err->status;
}

static bool is_cancelled(void *ctx) {
    return atomic_load(&((llm_training *)ctx)->stops);
}

static ggl_status make_trainer(llm_training *t, ggl_error *err) {
    llm_train_params p = {.size = sizeof p,
                          .backend = t->of.backend,
                          .reference = t->of.reference,
                          .n_ctx = t->p.n_ctx,
                          .n_batch = t->p.n_ubatch,
                          .n_slots = t->load.cap_seq,
                          .learn = t->p.learn,
                          .n_learn = t->p.n_learn,
                          .keep = t->p.memory,
                          .beta1 = t->p.beta1,
                          .beta2 = t->p.beta2,
                          .eps = t->p.eps,
                          .decay = t->p.decay,
                          .max_norm = fmax(0, t->p.max_norm),
                          .loss = t->p.loss,
                          .ctx = t->p.user,
                          .optimizer = t->optimizer,
                          .rounded = t->rounded,
                          .bf16 = t->p.bf16,
                          .optimizer_bits = t->p.optimizer_bits,
                          .n_threads = t->of.n_threads,
                          .only_adapters = t->of.adapter != NULL,
                          .guess = t->p.draft,
                          .n_read = t->n_read,
                          .cancelled = is_cancelled,
                          .cancelled_ctx = t};
    if (llm_train_is_contrast(t->kind))
        p.output = t->pooling == LLM_POOL_RANK ? "score" : "embedding";
    if (t->of.eye && t->reads) {
        t->eye = llm_arch_source_gguf(llm_model_file(t->of.eye));
        p.eye = llm_model_arch(t->of.eye);
        p.eye_source = &t->eye;
        p.eye_ignore = llm_model_ignore(t->of.eye);
    }
    t->use = (llm_adapter_use){.adapter = t->of.adapter, .scale = 1, .beside = t->of.adapts_eye};
    if (t->of.adapter) {
        p.adapter = &t->use;
        p.n_adapters = 1;
    }
    if (t->of.teach || t->p.draft) {
        p.loss = llm_train_taught;
        p.ctx = t;
        p.input = llm_train_share_input;
        p.n_inputs = 1;
    }
    t->source = llm_arch_source_gguf(llm_model_file(t->of.model));
    if (t->of.draft) {
        t->other = t->source;
        t->two = (llm_arch_two){llm_arch_source_gguf(llm_model_file(t->of.draft)), t->other};
        t->source = llm_arch_source_two(&t->two);
        p.other = llm_model_arch(t->of.model);
        p.other_source = &t->other;
    }
    ggl_status st = llm_trainer_new(
        &t->trainer, llm_model_arch(t->of.draft ? t->of.draft : t->of.model), &t->source, &p, err);
    if (st != GGL_OK)
        return explain_positions(t, p, err);
    /* logits may be more than the tokenizer has tokens */
    if (st == GGL_OK && t->of.teach && t->of.n_taught != llm_trainer_n_vocab(t->trainer))
        st = ggl_fail(err, GGL_USAGE,
                      "the teacher has %" PRId64 " tokens, but the model has %" PRId64
                      ": it can only teach models with the same vocabulary",
                      t->of.n_taught, llm_trainer_n_vocab(t->trainer));
    return st == GGL_OK && p.output ? llm_train_check_output(t, err) : st;
}

/* Sizes what runs at once by what there is: no sequence is longer than n_ctx afterwards. */
static void size_runs(llm_training *t) {
    const int64_t a = longest_of(t->data), b = longest_of(t->valid), longest = a > b ? a : b;
    t->p.n_ctx = longest;
    if (t->p.n_ubatch == 0)
        t->p.n_ubatch = t->p.n_batch < 512 ? t->p.n_batch : 512;
    if (t->p.n_ubatch < longest)
        t->p.n_ubatch = longest;
    const int64_t r = longest_reading(t->data), v = longest_reading(t->valid);
    t->n_read = r > v ? r : v;
    t->load.cap_seq = n_slots(t);
}

/* Tells what a caller may not have meant. */
static void tell_sizes(llm_training *t) {
    char text[400];
    const int64_t own = llm_model_n_ctx(t->of.model);
    if (own > 0 && t->p.n_ctx > own) { /* n_ctx: of the longest sequence now */
        snprintf(text, sizeof text,
                 "the longest sequence has %" PRId64
                 " tokens, but the model was trained on %" PRId64
                 " at once: positions beyond those are new to it, and may learn badly; a smaller "
                 "n_ctx (-c) cuts there",
                 t->p.n_ctx, own);
        tell_note(t, text);
    }
    const size_t values = llm_trainer_value_bytes(t->trainer);
    if (t->p.n_batch < t->p.n_ctx) {
        snprintf(text, sizeof text,
                 "a step has %" PRId64 " tokens, fewer than the longest sequence (%" PRId64
                 "): it learns one sequence; n_seq (--sequences), not n_batch (-b), is a number of "
                 "sequences",
                 t->p.n_batch, t->p.n_ctx);
        tell_note(t, text);
    }
    if (t->p.memory > 0 && values > t->p.memory) {
        snprintf(text, sizeof text,
                 "the values need %.1f MB, more than the %.1f MB of memory: a smaller n_ubatch "
                 "(-ub) or n_ctx (-c) takes less",
                 (double)values / 1e6, (double)t->p.memory / 1e6);
        tell_note(t, text);
    }
    llm_train_note_memory(t);
}

/* A query that is alone in its step learns from its own negatives alone. */
static ggl_status check_groups(const llm_training *t, ggl_error *err) {
    bool any = t->kind != TRAIN_MATCHES || t->pooling == LLM_POOL_RANK;
    int64_t n_groups = 0;
    for (int64_t k = 0, n; k < llm_train_data_n(t->data) && !any; k += n) {
        n = llm_train_data_group(t->data, k);
        any = n > 2 || (++n_groups > 1 && t->p.n_seq > 1);
    }
    if (any)
        return GGL_OK;
    return n_groups > 1
               ? ggl_fail(
                     err, GGL_USAGE,
                     "with one query in a step (n_seq, or --sequences) and no negatives in %s, "
                     "there is nothing to compare with",
                     t->p.file[0])
               : ggl_fail(err, GGL_USAGE,
                          "there is one query to learn from, and no negatives, in %s: there is "
                          "nothing to compare with",
                          t->p.file[0]);
}

static ggl_status make(llm_training *t, ggl_error *err) {
    ggl_status st = check(t, err);
    if (st == GGL_OK)
        st = llm_train_fall_find(&t->fall, t->p.schedule, err);
    if (st == GGL_OK)
        st = find_names(t, err);
    if (st == GGL_OK)
        st = read_all(t, err);
    if (st != GGL_OK)
        return st;
    fill(t);
    st = check_groups(t, err);
    if (st != GGL_OK)
        return st;
    size_runs(t);
    if (t->of.eye && !t->reads)
        tell_note(t, "no line has a picture or a sound: nothing of mmproj (--mmproj) learns");
    t->n_steps = t->p.n_steps       ? t->p.n_steps
                 : t->p.minutes > 0 ? 0
                                    : llm_train_count_steps(t, t->p.n_epochs);
    llm_train_count_held(t);
    if (t->n_steps > 0)
        st = llm_train_choose_measured(t, llm_train_n_learned(t), err);
    llm_train_note_memory(t);
    if (st == GGL_OK)
        st = make_trainer(t, err);
    if (st == GGL_OK)
        st = llm_train_load_init(t, err);
    if (st == GGL_OK && t->p.record)
        st = llm_train_record_teacher(t, err);
    else if (st == GGL_OK && t->of.teach == llm_train_recorded_teach)
        st = llm_train_check_recorded(t, t->of.teacher, err);
    if (st == GGL_OK && t->p.draft)
        st = llm_train_guesses_new(t, err);
    if (st == GGL_OK) {
        for (int k = 0; k < llm_trainer_n_weights(t->trainer); k++) {
            const llm_train_weight w = llm_trainer_weight(t->trainer, k);
            t->n_numbers += llm_train_weight_count(&w);
        }
        t->usual_rate = usual_rate(t);
        set_if_zero(&t->p.rate, t->usual_rate);
        tell_sizes(t);
        st = llm_train_settings(t, err);
    }
    if (st == GGL_OK)
        st = llm_train_group_begin(t, err);
    return st == GGL_OK && t->kind == TRAIN_PAIRS ? llm_train_look_before(t, err) : st;
}

ggl_status llm_training_new(llm_training **out, const train_parts *of,
                            const llm_training_params *params, ggl_error *err) {
    llm_training *t = ggl_calloc(1, sizeof *t);
    *out = NULL;
    if (!t)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a training");
    t->p = *params;
    t->of = *of;
    t->group = of->group;
    atomic_init(&t->stops, false);
    ggl_status st = make(t, err);
    if (st == GGL_OK) {
        *out = t;
        return st;
    }
    llm_training_close(t);
    return st;
}

void llm_training_close(llm_training *t) {
    if (!t)
        return;
    llm_train_group_end(t);
    llm_trainer_free(t->trainer);
    llm_train_load_fini(&t->load);
    llm_train_guesses_free(t->guesses);
    llm_train_history_fini(&t->history);
    llm_train_order_free(t->order);
    llm_train_data_free(t->data);
    llm_train_data_free(t->valid);
    ggl_free(t->before);
    ggl_free(t->measured.item);
    ggl_free(t->settings);
    ggl_free(t->dim);
    ggl_free(t->mmproj_out);
    llm_train_contrast_forget(t);
    llm_train_recorded_close(t->recorded);
    ggl_free(t->all);
    ggl_free(t->part);
    if (t->close)
        t->close(t->owned);
    ggl_free(t);
}

/* --- what it is ------------------------------------------------------------------------------- */

/* True if what learns goes on with texts by itself. */
static bool writes_texts(const llm_training *t) {
    const llm_arch *arch = llm_model_arch(t->of.model);
    return llm_arch_has_output(arch, "logits") && !llm_arch_sees_all(arch) && !t->p.draft_model &&
           !(t->of.senses && t->of.senses->speech);
}

ggl_status llm_training_describe(const llm_training *t, llm_training_facts *facts, ggl_error *err) {
    static const char *const kind[] = {
        [TRAIN_NOTHING] = "nothing",   [TRAIN_TEXT] = "text",       [TRAIN_ANSWERS] = "answers",
        [TRAIN_PAIRS] = "preferences", [TRAIN_MATCHES] = "matches", [TRAIN_SCORED] = "scores"};
    llm_training_facts f = {.size = sizeof f,
                            .kind = kind[t->kind],
                            .n_weights = llm_trainer_n_weights(t->trainer),
                            .n_numbers = t->n_numbers,
                            .n_ctx = t->p.n_ctx,
                            .n_batch = t->p.n_batch,
                            .n_ubatch = t->p.n_ubatch,
                            .n_steps = t->n_steps,
                            .rate = t->p.rate,
                            .n_draws = llm_train_order_n(t->order),
                            .n_valid_items = t->measured.n,
                            .n_valid_tokens = t->measured.n_tokens,
                            .n_valid_draws = t->measured.n_draws};
    f.n_positions = llm_model_n_ctx(t->of.model);
    f.writes = writes_texts(t);
    for (int64_t k = 0; k < f.n_draws; k++) {
        const int64_t first = llm_train_order_at(t->order, k),
                      end = first + llm_train_data_group(t->data, first);
        for (int64_t i = first; i < end; i++) {
            f.n_items++;
            f.n_tokens += llm_train_data_length(t->data, i);
            f.n_counted += llm_train_data_counted(t->data, i);
        }
    }
    const train_memory m = llm_train_memory(t);
    f.learn_bytes = m.learn;
    f.value_bytes = m.values;
    f.model_bytes = m.model;
    f.teacher_bytes = m.teacher;
    f.memory_bytes = m.all;
    f.memory_left = t->of.memory_left;
    return GGL_WRITE_PARAMS(llm_training_facts, facts, &f, err);
}
