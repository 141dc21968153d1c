/* The trainer: its parameters, and the order of its work. */
#include <inttypes.h>
#include <string.h>

#include "common/amounts.h"
#include "ggl/internal/params.h"
#include "ggl/internal/show.h"
#include "trainer_impl.h"

enum { MOST_VOCAB = 1 << 24, MOST_LENGTH = 65536, MOST_SPECIAL = 1024, MOST_SEEDS = 1 << 26 };

/* The rows of llm_vocabulary_kind. */
static const struct {
    const char
        *name; /* on the `train` line of tokenizers.txt that names the default pre-tokenizer */
    const char *special[TRAIN_N_ROLES];
    int32_t max_length;
} kinds[] = {[LLM_VOCABULARY_BPE] = {"bpe", {"", "", "", ""}, 256},
             [LLM_VOCABULARY_SPM] = {"spm", {"<unk>", "<s>", "</s>", ""}, 16},
             [LLM_VOCABULARY_UNIGRAM] = {"unigram", {"<unk>", "<s>", "</s>", ""}, 16}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* --- parameters ------------------------------------------------------------------------------- */

static ggl_status check_number(const char *what, double value, double min, double max,
                               ggl_error *err) {
    return value >= min && value <= max
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE, "%s is %.10g, but has to be from %.10g to %.10g", what,
                          value, min, max);
}

/* Checks the numbers, and puts the defaults in place of zeros. */
static ggl_status read_numbers(llm_vocabulary_params *p, ggl_error *err) {
    if ((unsigned)p->kind >= N_KINDS)
        return ggl_fail(err, GGL_USAGE, "there is no kind %d of tokenizers that can be trained",
                        (int)p->kind);
    p->min_count = p->min_count ? p->min_count : 2;
    p->max_length = p->max_length ? p->max_length : kinds[p->kind].max_length;
    p->coverage = p->coverage != 0 ? p->coverage : 0.9995;
    p->n_seed = p->n_seed ? p->n_seed : 1000000;
    p->n_threads = p->n_threads ? p->n_threads : 1;
    if (p->kind == LLM_VOCABULARY_BPE)
        p->no_space_prefix = true;
    ggl_status s = check_number("n_vocab", p->n_vocab, 1, MOST_VOCAB, err);
    if (s == GGL_OK)
        s = check_number("min_count", (double)p->min_count, 1, 1e15, err);
    if (s == GGL_OK)
        s = check_number("max_length", p->max_length, 1,
                         p->kind == LLM_VOCABULARY_UNIGRAM ? 64 : MOST_LENGTH, err);
    if (s == GGL_OK)
        s = check_number("coverage", p->coverage, 1e-9, 1, err);
    if (s == GGL_OK)
        s = check_number("n_seed", p->n_seed, 1, MOST_SEEDS, err);
    return s == GGL_OK ? check_number("n_threads", p->n_threads, 1, 65536, err) : s;
}

/* Adds a special token, unless it is there, and sets *id. */
static ggl_status add_special(llm_tokenizer_trainer *t, const char *text, int32_t *id,
                              ggl_error *err) {
    const size_t n = strlen(text);
    *id = -1;
    if (n == 0)
        return GGL_OK;
    if (n > 256 || !ggl_utf8_is_valid(text, n))
        return ggl_fail(err, GGL_USAGE, "the special token '%.*s' is %s", (int)(n < 60 ? n : 60),
                        text, n > 256 ? "longer than 256 bytes" : "not UTF-8");
    for (size_t i = 0; i < t->n_special; i++)
        if (ggl_str_is(t->special[i], text)) {
            *id = (int32_t)i;
            return GGL_OK;
        }
    if (t->n_special == MOST_SPECIAL)
        return ggl_fail(err, GGL_USAGE, "there are more than %d special tokens", MOST_SPECIAL);
    char *copy = ggl_arena_strndup(&t->arena, text, n);
    if (!copy)
        return llm_vocabulary_no_memory(err);
    *id = (int32_t)t->n_special;
    t->special[t->n_special++] = (ggl_str){copy, n};
    return llm_special_add(&t->in_text, t->special[*id], *id, false, err);
}

static ggl_status read_specials(llm_tokenizer_trainer *t, ggl_error *err) {
    const char *const role[TRAIN_N_ROLES] = {t->p.unknown, t->p.bos, t->p.eos, t->p.pad};
    int32_t id;
    t->special = ggl_arena_alloc(&t->arena, MOST_SPECIAL, sizeof *t->special);
    ggl_status s = t->special ? llm_special_init(&t->in_text, err) : llm_vocabulary_no_memory(err);
    for (int k = 0; k < TRAIN_N_ROLES && s == GGL_OK; k++)
        s = add_special(t, role[k] ? role[k] : kinds[t->p.kind].special[k], &t->role[k], err);
    for (size_t i = 0; i < t->p.n_special && s == GGL_OK; i++) {
        s = add_special(t, t->p.special[i], &id, err);
        if (s == GGL_OK && id < 0)
            s = ggl_fail(err, GGL_USAGE, "a special token is empty");
    }
    if (s == GGL_OK)
        s = llm_special_finish(&t->in_text, err);
    if (s != GGL_OK)
        return s;
    if (t->p.add_bos && t->role[TRAIN_BOS] < 0)
        return ggl_fail(err, GGL_USAGE, "texts cannot begin with a token that is not there: bos");
    if (t->p.add_eos && t->role[TRAIN_EOS] < 0)
        return ggl_fail(err, GGL_USAGE, "texts cannot end with a token that is not there: eos");
    return t->role[TRAIN_UNKNOWN] < 0 && t->p.kind == LLM_VOCABULARY_UNIGRAM &&
                   t->p.no_byte_fallback
               ? ggl_fail(err, GGL_USAGE,
                          "without bytes there has to be an unknown token, which characters "
                          "become that have none")
               : GGL_OK;
}

/* Sets the name of the default pre-tokenizer, or pattern, of a kind. */
static ggl_str default_pre(llm_vocabulary_kind kind) {
    ggl_str name;
    for (int k = 0; llm_table_word("train", k, 0, &name); k++)
        if (ggl_str_is(name, kinds[kind].name) && llm_table_word("train", k, 1, &name))
            return name;
    return (ggl_str){"", 0};
}

static ggl_status read_pre(llm_tokenizer_trainer *t, ggl_error *err) {
    const ggl_str name = t->p.pre ? (ggl_str){t->p.pre, strlen(t->p.pre)} : default_pre(t->p.kind);
    ggl_status s = GGL_OK;
    if (!t->p.pre && llm_table_find_pattern(name, &t->pre.split[0]))
        t->pre.n_split = 1;
    else
        s = llm_table_find_pre(name, &t->pre, err);
    if (s != GGL_OK)
        return s;
    if (t->p.kind == LLM_VOCABULARY_BPE && t->pre.raw)
        return ggl_fail(err, GGL_USAGE,
                        "the pre-tokenizer '%.*s' is for pieces of characters, not for those of "
                        "bytes, which are trained",
                        (int)name.n, name.s);
    t->pre_name = (ggl_str){ggl_arena_strndup(&t->arena, name.s, name.n), name.n};
    if (!t->pre_name.s)
        return llm_vocabulary_no_memory(err);
    for (; s == GGL_OK && t->n_split < t->pre.n_split; t->n_split++)
        s = llm_pretok_compile(&t->split[t->n_split], &t->arena, t->pre.split[t->n_split], err);
    return s;
}

ggl_status llm_tokenizer_trainer_new(llm_tokenizer_trainer **out,
                                     const llm_vocabulary_params *params, ggl_error *err) {
    *out = NULL;
    llm_tokenizer_trainer *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return llm_vocabulary_no_memory(err);
    t->first_byte = -1;
    ggl_status s = GGL_READ_PARAMS(llm_vocabulary_params, &t->p, params, err);
    if (s == GGL_OK)
        s = read_numbers(&t->p, err);
    if (s == GGL_OK)
        s = read_specials(t, err);
    if (s == GGL_OK)
        s = read_pre(t, err);
    if (s == GGL_OK)
        s = llm_vocabulary_words_init(&t->words, err);
    if (s == GGL_OK)
        s = ggl_index_init(&t->by_text, 1024, sizeof *t->token, GGL_INDEX_STRINGS, err);
    /* the strings belong to the caller */
    t->p.pre = t->p.unknown = t->p.bos = t->p.eos = t->p.pad = NULL;
    t->p.special = NULL;
    if (s != GGL_OK) {
        llm_tokenizer_trainer_free(t);
        return s;
    }
    *out = t;
    return GGL_OK;
}

void llm_tokenizer_trainer_free(llm_tokenizer_trainer *t) {
    if (!t)
        return;
    llm_special_fini(&t->in_text);
    llm_vocabulary_words_fini(&t->words);
    ggl_index_fini(&t->by_text);
    ggl_free(t->token);
    ggl_free(t->merge);
    ggl_arena_fini(&t->arena);
    ggl_free(t);
}

/* --- training --------------------------------------------------------------------------------- */

ggl_status llm_tokenizer_trainer_train(llm_tokenizer_trainer *t, ggl_error *err) {
    train_text x = {0};
    if (t->is_trained)
        return ggl_fail(err, GGL_USAGE, "the tokenizer has been trained already");
    if (t->words.n == 0)
        return ggl_fail(err, GGL_USAGE,
                        "there is no text to learn from: no word in %" PRIu64 " text%s of %" PRIu64
                        " byte%s",
                        t->n_texts, llm_amount_s((int64_t)t->n_texts), t->n_bytes,
                        llm_amount_s((int64_t)t->n_bytes));
    t->is_trained = true;
    ggl_status s = llm_vocabulary_read_symbols(t, &x, err);
    if (s == GGL_OK)
        s = llm_vocabulary_add_base(t, &x, err);
    if (s == GGL_OK)
        s = t->p.kind == LLM_VOCABULARY_UNIGRAM ? llm_vocabulary_unigram(t, &x, err)
                                                : llm_vocabulary_merges(t, &x, err);
    t->n_tokens += x.n_rest;
    llm_vocabulary_text_fini(&x);
    return s;
}

llm_vocabulary_result llm_tokenizer_trainer_result(const llm_tokenizer_trainer *t) {
    return (llm_vocabulary_result){.n_vocab = (int32_t)t->n,
                                   .n_special = (int32_t)t->n_special,
                                   .n_base = t->n_base,
                                   .n_merges = t->n_merge,
                                   .n_texts = t->n_texts,
                                   .n_bytes = t->n_bytes,
                                   .n_words = t->words.n,
                                   .n_tokens = t->n_tokens};
}
