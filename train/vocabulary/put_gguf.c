/* Writes trained tokenizers: as keys of GGUF files, and to files. */
#include <stdio.h>
#include <string.h>

#include "common/model_folder.h"
#include "ggl/internal/file.h"
#include "ggl/internal/text.h"
#include "trainer_impl.h"

static const char *const kind_name[] = {[LLM_VOCABULARY_BPE] = "bpe",
                                        [LLM_VOCABULARY_SPM] = "spm",
                                        [LLM_VOCABULARY_UNIGRAM] = "unigram"};

static void put_flag(ggl_gguf_writer *w, const char *key, bool value) {
    ggl_gguf_put(w, key, GGL_GGUF_BOOL, false, &(uint8_t){value}, 1);
}

/* Strings and numbers of all tokens. */
typedef struct columns {
    ggl_str *piece, *merge;
    float *score;
    int32_t *type;
    ggl_arena arena; /* merges */
} columns;

/* "left right" */
static bool spell_merge(const llm_tokenizer_trainer *t, columns *c, size_t i) {
    const ggl_str a = t->token[t->merge[i].left].s, b = t->token[t->merge[i].right].s;
    char *s = ggl_arena_alloc(&c->arena, a.n + b.n + 1, 1);
    if (!s)
        return false;
    memcpy(s, a.s, a.n);
    s[a.n] = ' ';
    memcpy(s + a.n + 1, b.s, b.n);
    c->merge[i] = (ggl_str){s, a.n + b.n + 1};
    return true;
}

static bool make_columns(const llm_tokenizer_trainer *t, columns *c) {
    c->piece = ggl_calloc(t->n + 1, sizeof *c->piece);
    c->score = ggl_calloc(t->n + 1, sizeof *c->score);
    c->type = ggl_calloc(t->n + 1, sizeof *c->type);
    c->merge = ggl_calloc(t->n_merge + 1, sizeof *c->merge);
    bool ok = c->piece && c->score && c->type && c->merge;
    for (size_t i = 0; i < t->n && ok; i++) {
        c->piece[i] = t->token[i].s;
        c->score[i] = t->token[i].score;
        c->type[i] = t->token[i].type;
    }
    for (size_t i = 0; i < t->n_merge && ok && t->p.kind == LLM_VOCABULARY_BPE; i++)
        ok = spell_merge(t, c, i);
    return ok;
}

static void put_keys(const llm_tokenizer_trainer *t, const columns *c, ggl_gguf_writer *w) {
    static const char *const id_key[TRAIN_N_ROLES] = {
        [TRAIN_UNKNOWN] = "tokenizer.ggml.unknown_token_id",
        [TRAIN_BOS] = "tokenizer.ggml.bos_token_id",
        [TRAIN_EOS] = "tokenizer.ggml.eos_token_id",
        [TRAIN_PAD] = "tokenizer.ggml.padding_token_id"};
    const bool is_bpe = t->p.kind == LLM_VOCABULARY_BPE;
    const ggl_str model = llm_table_model_of_kind(kind_name[t->p.kind]);
    const ggl_str pre = is_bpe ? t->pre_name : (ggl_str){"default", 7};
    ggl_gguf_put_string(w, "tokenizer.ggml.model", model.s, model.n);
    ggl_gguf_put_string(w, "tokenizer.ggml.pre", pre.s, pre.n);
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", c->piece, t->n);
    if (!is_bpe)
        ggl_gguf_put(w, "tokenizer.ggml.scores", GGL_GGUF_F32, true, c->score, t->n);
    ggl_gguf_put(w, "tokenizer.ggml.token_type", GGL_GGUF_I32, true, c->type, t->n);
    if (is_bpe)
        ggl_gguf_put_strings(w, "tokenizer.ggml.merges", c->merge, t->n_merge);
    for (int k = 0; k < TRAIN_N_ROLES; k++)
        if (t->role[k] >= 0 ||
            k != TRAIN_PAD) /* -1 as a number of 32 bits: none, not the model's default */
            ggl_gguf_put(w, id_key[k], GGL_GGUF_U32, false, &(uint32_t){(uint32_t)t->role[k]}, 1);
    put_flag(w, "tokenizer.ggml.add_bos_token", t->p.add_bos);
    put_flag(w, "tokenizer.ggml.add_eos_token", t->p.add_eos);
    if (!is_bpe)
        put_flag(w, "tokenizer.ggml.add_space_prefix", !t->p.no_space_prefix);
}

ggl_status llm_tokenizer_trainer_put(const llm_tokenizer_trainer *t, ggl_gguf_writer *w,
                                     ggl_error *err) {
    columns c = {0};
    const bool ok = make_columns(t, &c);
    if (ok)
        put_keys(t, &c, w);
    ggl_free(c.piece);
    ggl_free(c.score);
    ggl_free(c.type);
    ggl_free(c.merge);
    ggl_arena_fini(&c.arena);
    return ok ? GGL_OK : llm_vocabulary_no_memory(err);
}

/* --- files ------------------------------------------------------------------------------------ */

static ggl_status write_gguf(const llm_tokenizer_trainer *t, const char *path, ggl_error *err) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    if (!w)
        return llm_vocabulary_no_memory(err);
    ggl_status s = llm_tokenizer_trainer_put(t, w, err);
    if (s == GGL_OK)
        s = ggl_gguf_writer_write(w, path, err);
    ggl_gguf_writer_free(w);
    return s;
}

typedef ggl_status make_text(const llm_tokenizer_trainer *t, char **text, size_t *n,
                             ggl_error *err);

static ggl_status write_text(const llm_tokenizer_trainer *t, const char *path, make_text *make,
                             ggl_error *err) {
    char *text = NULL;
    size_t n = 0;
    ggl_new_file *f = NULL;
    ggl_status s = make(t, &text, &n, err);
    if (s == GGL_OK)
        s = ggl_new_file_open(&f, path, err);
    if (s == GGL_OK) {
        (void)fwrite(text, 1, n, ggl_new_file_stream(f));
        ggl_new_file_note(f);
        s = ggl_new_file_commit(f, err);
    }
    ggl_free(text);
    return s;
}

static ggl_status write_in(const llm_tokenizer_trainer *t, const char *folder, const char *name,
                           make_text *make, ggl_error *err) {
    ggl_arena arena = {0};
    const char *path = ggl_arena_printf(&arena, "%s/%s", folder, name);
    const ggl_status s = path ? write_text(t, path, make, err) : llm_vocabulary_no_memory(err);
    ggl_arena_fini(&arena);
    return s;
}

ggl_status llm_tokenizer_trainer_write(const llm_tokenizer_trainer *t, const char *path,
                                       ggl_error *err) {
    if (llm_is_folder(path)) {
        const ggl_status s = write_in(t, path, "tokenizer.json", llm_tokenizer_trainer_json, err);
        return s == GGL_OK
                   ? write_in(t, path, "tokenizer_config.json", llm_tokenizer_trainer_config, err)
                   : s;
    }
    return ggl_ends_with(path, ".gguf") ? write_gguf(t, path, err)
                                        : write_text(t, path, llm_tokenizer_trainer_json, err);
}
