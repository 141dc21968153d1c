/* Tokenizers of the kind WordPiece, BERT's: tokenizer.json, or vocab.txt with a piece in each line. Both spell a piece that
 * continues a word "##ing"; files spell it "ing", and one that begins a word "\u2581the". */
#include <string.h>

#include "hf_tokenizer_impl.h"
#include "ggl/internal/gguf.h"
#include "text/steps.h"

ggl_status llm_hf_read_words(llm_hf_tokenizer *t, const llm_hf_vocab *size, ggl_error *err) {
    const json_value *model = llm_json_get(&t->file->root, "model");
    t->words = true;
    t->is_odd = !llm_json_is(llm_json_get(model, "continuing_subword_prefix"), "##");
    return llm_hf_read_pieces(t, llm_json_get_kind(model, "vocab", JSON_OBJECT), size, err);
}

ggl_status llm_hf_read_levels(llm_hf_tokenizer *t, const llm_hf_vocab *size, ggl_error *err) {
    t->is_odd = true;
    return llm_hf_read_pieces(
        t, llm_json_get_kind(llm_json_get(&t->file->root, "model"), "vocab", JSON_OBJECT), size,
        err);
}

/* --- vocab.txt -------------------------------------------------------------------------------- */

static bool same(ggl_str a, ggl_str b) {
    return a.n == b.n && memcmp(a.s, b.s, a.n) == 0;
}

/* True if tokenizer_config.json names the piece as one of its tokens, or a token of BERT is called so. */
static bool is_special(const llm_hf_tokenizer *t, ggl_str piece) {
    static const char *const names[][2] = {{"unk_token", "[UNK]"},
                                           {"pad_token", "[PAD]"},
                                           {"cls_token", "[CLS]"},
                                           {"sep_token", "[SEP]"},
                                           {"mask_token", "[MASK]"}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const json_value *v = llm_json_get(t->config ? &t->config->root : NULL, names[k][0]);
        if (v && v->kind == JSON_OBJECT)
            v = llm_json_get(v, "content");
        if (v && v->kind == JSON_STRING ? same(json_str(v), piece) : ggl_str_is(piece, names[k][1]))
            return true;
    }
    return false;
}

ggl_status llm_hf_read_word_list(llm_hf_tokenizer *t, const char *text, size_t n,
                                 const llm_hf_vocab *size, ggl_error *err) {
    sentence_pieces *p = &t->pieces;
    const char *end = text + n, *stop;
    int64_t n_lines = 0;
    for (const char *at = text; at < end; at = stop + 1, n_lines++)
        if (!(stop = memchr(at, '\n', (size_t)(end - at))))
            stop = end;
    ggl_status s = llm_sentence_pieces_make_room(p, n_lines, err);
    if (s != GGL_OK)
        return s;
    for (const char *at = text; at < end; at = stop + 1, p->n++) {
        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        const size_t tail = stop > at && stop[-1] == '\r';
        p->piece[p->n] = (ggl_str){at, (size_t)(stop - at) - tail};
        p->score[p->n] = 0;
        p->type[p->n] = is_special(t, p->piece[p->n]) ? LLM_TOKEN_CONTROL : LLM_TOKEN_NORMAL;
    }
    t->words = true;
    return llm_hf_read_sentence_pieces(t, p, size, err);
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Returns a flag of the normalizer: of tokenizer.json, else of tokenizer_config.json. -1: neither has it. */
static int normalizer_flag(const llm_hf_tokenizer *t, const char *name, const char *in_config) {
    const json_value *v =
        t->file ? llm_hf_step(llm_json_get(&t->file->root, "normalizer"), "BertNormalizer") : NULL;
    v = v ? llm_json_get_kind(v, name, JSON_BOOL)
          : llm_json_get_kind(t->config ? &t->config->root : NULL, in_config, JSON_BOOL);
    return v ? v->flag : -1;
}

void llm_hf_set_words(llm_hf_tokenizer *t) {
    t->lower = normalizer_flag(t, "lowercase", "do_lower_case");
    t->strip = normalizer_flag(t, "strip_accents", "strip_accents");
    if (t->lower < 0 && !t->file)
        t->lower = 1;                                  /* the default of the class */
    t->add_bos = t->add_eos = t->needs_steps ? 1 : -1; /* the kind "bert" says it */
    t->add_space = -1;
    const json_value *model = t->file ? llm_json_get(&t->file->root, "model") : NULL,
                     *unknown = llm_json_get_kind(model, "unk_token", JSON_STRING);
    if (unknown && t->id[UNK] < 0)
        t->id[UNK] = llm_hf_find_piece(t, json_str(unknown));
}

/* True if a piece that continues a word would be taken for one that begins one. */
static bool is_ambiguous(const llm_hf_tokenizer *t) {
    bool found = false;
    for (int64_t id = 0; id < t->n && !found; id++)
        found = t->type[id] == LLM_TOKEN_NORMAL && t->piece[id].n >= 5 &&
                memcmp(t->piece[id].s, "##\u2581", 5) == 0;
    return found;
}

ggl_status llm_hf_spell_words(llm_hf_tokenizer *t, ggl_error *err) {
    if (t->needs_steps && is_ambiguous(t))
        return GGL_OK;
    t->is_marked = true;
    for (int64_t id = 0; id < t->n; id++) {
        ggl_str *p = &t->piece[id];
        if (t->type[id] != LLM_TOKEN_NORMAL)
            continue;
        if (p->n > 2 && memcmp(p->s, "##", 2) == 0) {
            *p = (ggl_str){p->s + 2, p->n - 2};
            continue;
        }
        *p = llm_step_joined(&t->arena, (ggl_str){"\u2581", 3}, *p);
        if (!p->s)
            return llm_hf_no_memory(err);
    }
    return GGL_OK;
}
