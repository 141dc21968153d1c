/* Tokenizers of the kind Unigram in tokenizer.json: often an exported model of SentencePiece. Its pieces and scores are in "model", in the
 * order of ids; its steps are in tokenizer.ggl.steps. Other programs read GGUF's keys of SentencePiece, which say nearly the same of
 * an exported model:
 *
 *     normalizer      Precompiled                  the charsmap, in base64
 *                     Replace " {2,}"              of several spaces one remains (remove_extra_whitespaces)
 *                     Lowercase, StripAccents      before the charsmap (hf_tokenizer_keys.c sets these flags)
 *     pre_tokenizer   WhitespaceSplit              as Replace " {2,}"
 *                     Metaspace                    spaces become U+2581, and one is added in front */
#include <math.h>
#include <string.h>

#include "common/base64.h"
#include "hf_tokenizer_impl.h"

/* Sets what GGUF's keys can have of the steps. */
static ggl_status read_steps(llm_hf_tokenizer *t, ggl_error *err) {
    const json_value *root = &t->file->root, *normalizer = llm_json_get(root, "normalizer"),
                     *replace = llm_hf_step(normalizer, "Replace"),
                     *map = llm_json_get_kind(llm_hf_step(normalizer, "Precompiled"),
                                              "precompiled_charsmap", JSON_STRING);
    sentence_pieces *p = &t->pieces;
    p->remove_spaces =
        llm_hf_step(llm_json_get(root, "pre_tokenizer"), "WhitespaceSplit") ||
        llm_json_is(llm_json_get(llm_json_get(replace, "pattern"), "Regex"), " {2,}");
    if (!map || map->n == 0)
        return GGL_OK;
    unsigned char *to = ggl_arena_alloc(&p->arena, llm_base64_room(map->n) + 1, 1);
    size_t n = 0, wrong;
    if (!to)
        return llm_hf_no_memory(err);
    if (!llm_base64_decode(to, &n, json_str(map), &wrong))
        return ggl_fail(err, GGL_FORMAT, "precompiled_charsmap is not base64: %s %zu",
                        wrong < map->n ? "no digit at" : "its length is", wrong);
    p->charsmap = (ggl_str){(const char *)to, n};
    return llm_sentence_pieces_check_charsmap(p, err);
}

/* --- pieces ----------------------------------------------------------------------------------- */

/* Reads entry `id` of the vocabulary, ["piece", score]. */
static ggl_status read_piece(llm_hf_tokenizer *t, const json_value *v, int64_t id, bool bytes,
                             ggl_error *err) {
    sentence_pieces *p = &t->pieces;
    if (v->kind != JSON_ARRAY || v->n != 2 || v->item[0].kind != JSON_STRING ||
        v->item[1].kind != JSON_NUMBER || v->item[0].n == 0 || !isfinite((float)v->item[1].number))
        return ggl_fail(err, GGL_FORMAT, "entry %lld of the vocabulary is not [\"piece\", score]",
                        (long long)id);
    const ggl_str s = p->piece[id] = json_str(&v->item[0]);
    p->score[id] = (float)v->item[1].number;
    p->type[id] = id == p->unknown                ? LLM_TOKEN_UNKNOWN
                  : bytes && llm_is_byte_piece(s) ? LLM_TOKEN_BYTE
                                                  : LLM_TOKEN_NORMAL;
    return GGL_OK;
}

/* Keeps the scores as numbers of 64 bits, if one of 32 bits is not the same. */
static ggl_status keep_scores(llm_hf_tokenizer *t, const json_value *vocab, ggl_error *err) {
    bool same = true;
    for (size_t i = 0; i < vocab->n && same; i++)
        same = (double)(float)vocab->item[i].item[1].number == vocab->item[i].item[1].number;
    if (same)
        return GGL_OK;
    t->exact_score = ggl_arena_alloc(&t->arena, (size_t)t->n, sizeof *t->exact_score);
    if (!t->exact_score)
        return llm_hf_no_memory(err);
    for (int64_t i = 0; i < t->n && i < (int64_t)vocab->n; i++)
        t->exact_score[i] = vocab->item[i].item[1].number;
    return GGL_OK;
}

ggl_status llm_hf_read_unigram(llm_hf_tokenizer *t, const llm_hf_vocab *size, ggl_error *err) {
    sentence_pieces *p = &t->pieces;
    const json_value *model = llm_json_get(&t->file->root, "model"),
                     *vocab = llm_json_get_kind(model, "vocab", JSON_ARRAY),
                     *unknown = llm_json_get_kind(model, "unk_id", JSON_NUMBER);
    *p = (sentence_pieces){.bos = -1, .eos = -1, .unknown = -1, .pad = -1, .unigram = true};
    if (!vocab)
        return ggl_fail(err, GGL_FORMAT, "the array 'vocab' is missing");
    if (unknown) {
        if (!unknown->whole || unknown->number < 0 || unknown->number >= (double)vocab->n)
            return ggl_fail(err, GGL_FORMAT, "unk_id is %g, but the vocabulary has %u entries",
                            unknown->number, vocab->n);
        p->unknown = (int64_t)unknown->number;
    }
    ggl_status s = read_steps(t, err);
    if (s == GGL_OK)
        s = llm_sentence_pieces_make_room(p, (int64_t)vocab->n, err);
    const bool bytes = llm_hf_flag(model, "byte_fallback", false);
    for (; s == GGL_OK && p->n < (int64_t)vocab->n; p->n++)
        s = read_piece(t, &vocab->item[p->n], p->n, bytes, err);
    if (s == GGL_OK)
        s = llm_hf_read_sentence_pieces(t, p, size, err);
    return s == GGL_OK ? keep_scores(t, vocab, err) : s;
}

/* --- ends ------------------------------------------------------------------------------------- */

ggl_status llm_hf_set_unigram_ends(llm_hf_tokenizer *t, ggl_error *err) {
    if (t->pieces.unknown >= 0 && t->pieces.unknown < t->n) {
        t->id[UNK] = t->pieces.unknown;
        t->type[t->id[UNK]] = LLM_TOKEN_UNKNOWN;
    }
    /* a template has one language of many */
    return t->languages.n > 0 ? GGL_OK : llm_hf_set_template_ends(t, err);
}
