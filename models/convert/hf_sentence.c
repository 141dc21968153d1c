/* Tokenizers of SentencePiece: tokenizer.model in a folder, and tokenizer.bin of llama2.c. */
#include <string.h>
#include <unistd.h>

#include "hf_tokenizer_impl.h"
#include "ggl/show.h"

/* Notes what the normalizer does that a BPE tokenizer's file cannot say. */
static bool note_normalizer(llm_hf_tokenizer *t) {
    const sentence_pieces *p = &t->pieces;
    if (p->unigram || (p->charsmap.n == 0 && !p->remove_spaces))
        return true;
    char name[4 * 60 + 1]; /* escaped, because notes are lines */
    ggl_show(name, sizeof name, p->normalizer.n ? p->normalizer.s : "",
             (size_t)llm_hf_shown(p->normalizer));
    return llm_hf_note(
        t,
        ggl_arena_printf(&t->arena,
                         "tokenizer.model normalizes text (%s%s%s), which a file of its kind, BPE, "
                         "cannot say: text is not normalized",
                         name, name[0] && p->remove_spaces ? ", " : "",
                         p->remove_spaces ? "of several spaces one remains" : ""));
}

ggl_status llm_hf_read_sentence_model(llm_hf_tokenizer *t, const char *path,
                                      const llm_hf_vocab *size, ggl_error *err) {
    ggl_status s = llm_hf_read_optional(t, "added_tokens.json", &t->added, err);
    if (s == GGL_OK)
        s = ggl_file_map_open(&t->map, path, err);
    if (s != GGL_OK)
        return s;
    s = llm_sentence_pieces_read_model(&t->pieces, t->map.data, t->map.size, err);
    if (s == GGL_OK)
        s = llm_hf_read_sentence_pieces(t, &t->pieces, size, err);
    if (s == GGL_OK)
        s = llm_hf_set_pre(t, err);
    if (s == GGL_OK && !note_normalizer(t))
        s = llm_hf_no_memory(err);
    if (s != GGL_OK)
        return ggl_within(err, s, "%s", path);
    llm_hf_set_ids(t);
    llm_hf_set_flags(t);
    t->add_space = t->pieces.add_space;
    const int64_t own[] = {[BOS] = t->pieces.bos,
                           [EOS] = t->pieces.eos,
                           [UNK] = t->pieces.unknown,
                           [PAD] = t->pieces.pad};
    for (int k = BOS; k <= PAD; k++)
        if (t->id[k] < 0 && own[k] < t->n)
            t->id[k] = own[k];
    if (t->id[UNK] >= 0)
        t->type[t->id[UNK]] = LLM_TOKEN_UNKNOWN;
    return llm_hf_set_ends(t, err);
}

static ggl_status read_bin(llm_hf_tokenizer *t, const char *path, int64_t n, ggl_error *err) {
    ggl_status s = ggl_file_map_open(&t->map, path, err);
    if (s != GGL_OK)
        return s;
    s = llm_sentence_pieces_read_bin(&t->pieces, t->map.data, t->map.size, err);
    if (s == GGL_OK && t->pieces.n != n)
        s = ggl_fail(err, GGL_SHAPE,
                     "it has %lld tokens, but the checkpoint has rows for %lld, so it belongs to "
                     "another model",
                     (long long)t->pieces.n, (long long)n);
    if (s == GGL_OK)
        s = llm_hf_read_sentence_pieces(t, &t->pieces, &(llm_hf_vocab){.n = n}, err);
    return s == GGL_OK ? llm_hf_set_pre(t, err) : ggl_within(err, s, "%s", path);
}

ggl_status llm_hf_tokenizer_open_bin(llm_hf_tokenizer **out, const char *path, int64_t n,
                                     ggl_error *err) {
    *out = NULL;
    llm_hf_tokenizer *t = ggl_calloc(1, sizeof *t);
    if (!t)
        return llm_hf_no_memory(err);
    ggl_status s = read_bin(t, path, n, err);
    if (s != GGL_OK) {
        llm_hf_tokenizer_free(t);
        return s;
    }
    for (int k = 0; k < N_ID; k++)
        t->id[k] = -1;
    t->id[BOS] = t->pieces.bos;
    t->id[EOS] = t->pieces.eos;
    t->id[UNK] = t->pieces.unknown;
    t->add_bos = t->add_space = 1; /* as llama2.c's programs do */
    *out = t;
    return GGL_OK;
}
