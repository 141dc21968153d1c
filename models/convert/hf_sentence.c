/* Tokenizers of SentencePiece: tokenizer.model in a folder, source.spm of Marian, and tokenizer.bin
 * of llama2.c. */
#include <string.h>

#include "hf_tokenizer_impl.h"
#include "ggl/internal/show.h"

/* Notes what the normalizer does that a BPE tokenizer's file cannot say. */
static bool note_normalizer(llm_hf_tokenizer *t) {
    const sentence_pieces *p = &t->pieces;
    if (p->unigram || (p->charsmap.n == 0 && !p->remove_spaces))
        return true;
    char name[4 * 60 + 1]; /* escaped, because notes are lines */
    ggl_show(name, sizeof name, p->normalizer.n ? p->normalizer.s : "",
             (size_t)llm_hf_shown(p->normalizer));
    return llm_hf_note(
        t, ggl_arena_printf(
               &t->arena,
               "SentencePiece's file normalizes text (%s%s%s), which a file of its kind, BPE, "
               "cannot say: text is not normalized",
               name, name[0] && p->remove_spaces ? ", " : "",
               p->remove_spaces ? "of several spaces one remains" : ""));
}

/* Returns the id of the first piece called so; -1 if none. */
static int64_t id_of(const sentence_pieces *p, const char *name) {
    int64_t id = 0;
    while (id < p->n && !ggl_str_is(p->piece[id], name))
        id++;
    return id < p->n ? id : -1;
}

static void add_piece(sentence_pieces *p, ggl_str text, float score, int32_t type) {
    p->piece[p->n] = text;
    p->score[p->n] = score;
    p->type[p->n++] = type;
}

/* Puts the tokens of `ids`, "CUT TOKEN ..", in place of the first CUT pieces, and the languages and <mask> at the end. */
static ggl_status reorder(sentence_pieces *p, ggl_str ids, ggl_str languages, ggl_error *err) {
    const ggl_str *piece = p->piece;
    const float *score = p->score;
    const int32_t *type = p->type;
    const int64_t n = p->n, cut = ids.s[0] - '0';
    ggl_str token;
    const ggl_status s = llm_sentence_pieces_make_room(p, n + (int64_t)(ids.n + languages.n), err);
    if (s != GGL_OK)
        return s;
    p->n = 0;
    for (ggl_str left = {ids.s + 2, ids.n - 2}; llm_hf_next_word(&left, &token);)
        add_piece(p, token, 0, ggl_str_is(token, "<unk>") ? LLM_TOKEN_UNKNOWN : LLM_TOKEN_CONTROL);
    for (int64_t id = cut; id < n; id++)
        add_piece(p, piece[id], score[id], type[id]);
    while (llm_hf_next_word(&languages, &token))
        add_piece(p, token, 0, LLM_TOKEN_CONTROL);
    add_piece(p, (ggl_str){"<mask>", 6}, 0, LLM_TOKEN_CONTROL);
    p->bos = id_of(p, "<s>");
    p->eos = id_of(p, "</s>");
    p->unknown = id_of(p, "<unk>");
    p->pad = id_of(p, "<pad>");
    return GGL_OK;
}

/* Gives pieces the ids that the folder's class gives them: the rows of the embedding are in that
 * order. */
static ggl_status use_ids_of_class(llm_hf_tokenizer *t, ggl_error *err) {
    char name[128];
    ggl_str ids;
    sentence_pieces *p = &t->pieces;
    if (!llm_hf_ids_of_class(llm_hf_class_or_kind(t, name, sizeof name), &ids))
        return GGL_OK;
    if (ggl_str_is(ids, "-"))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s gives tokens other ids than this file, in an order that is not "
                        "supported",
                        name);
    if (p->n < 3 || p->unknown != 0 || p->bos != 1 || p->eos != 2)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s takes for granted that <unk>, <s> and </s> have the ids 0, 1 and 2, "
                        "but here they have %lld, %lld and %lld",
                        name, (long long)p->unknown, (long long)p->bos, (long long)p->eos);
    return reorder(p, ids, t->languages, err);
}

/* Reads the tokens that were added to those of SentencePiece's file, and maps that file. */
static ggl_status open_model(llm_hf_tokenizer *t, const char *path, ggl_error *err) {
    const ggl_status s = llm_hf_read_optional(t, "added_tokens.json", &t->added, err);
    return s == GGL_OK ? ggl_file_map_open(&t->map, path, err) : s;
}

ggl_status llm_hf_read_sentence_model(llm_hf_tokenizer *t, const char *path,
                                      const llm_hf_vocab *size, ggl_error *err) {
    ggl_status s = open_model(t, path, err);
    if (s != GGL_OK)
        return s;
    s = llm_sentence_pieces_read_model(&t->pieces, t->map.data, t->map.size, err);
    if (s == GGL_OK)
        s = use_ids_of_class(t, err);
    if (s == GGL_OK)
        s = llm_hf_read_sentence_pieces(t, &t->pieces, size, err);
    if (s == GGL_OK)
        s = llm_hf_set_pre(t, err);
    if (s == GGL_OK && !note_normalizer(t))
        s = llm_hf_no_memory(err);
    if (s != GGL_OK)
        return ggl_within(err, s, "%s", path);
    if ((s = llm_hf_set_ids(t, err)) != GGL_OK)
        return s;
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

/* Keeps the pieces that a text can be cut into. User-defined ones always apply, so their score is
 * the best. */
static ggl_status keep_source(llm_hf_tokenizer *t) {
    const sentence_pieces *p = &t->pieces;
    t->source = ggl_arena_alloc(&t->arena, (size_t)p->n + 1, sizeof *t->source);
    t->source_score = ggl_arena_alloc(&t->arena, (size_t)p->n + 1, sizeof *t->source_score);
    if (!t->source || !t->source_score)
        return GGL_NOMEM;
    for (int64_t i = 0; i < p->n; i++) {
        if (p->type[i] != LLM_TOKEN_NORMAL && p->type[i] != LLM_TOKEN_USER_DEFINED)
            continue;
        t->source[t->n_source] = p->piece[i];
        t->source_score[t->n_source++] = p->type[i] == LLM_TOKEN_NORMAL ? p->score[i] : 0;
    }
    return GGL_OK;
}

/* Sets the ids and types of the special tokens, and makes user-defined tokens of the languages at
 * the beginning of a text, >>fra<<, so that texts may name them. */
static ggl_status set_specials_of_source(llm_hf_tokenizer *t, ggl_error *err) {
    static const struct {
        int k;
        ggl_str name;
        int32_t type;
    } own[] = {{EOS, {"</s>", 4}, LLM_TOKEN_CONTROL},
               {PAD, {"<pad>", 5}, LLM_TOKEN_CONTROL},
               {UNK, {"<unk>", 5}, LLM_TOKEN_UNKNOWN}};
    for (int64_t id = 0; id < t->n; id++) {
        const ggl_str s = t->piece[id];
        if (s.n > 4 && memcmp(s.s, ">>", 2) == 0 && memcmp(s.s + s.n - 2, "<<", 2) == 0)
            t->type[id] = LLM_TOKEN_USER_DEFINED;
    }
    const ggl_status s = llm_hf_set_ids(t, err);
    if (s != GGL_OK)
        return s;
    for (int i = 0; i < 3; i++) {
        int64_t *id = &t->id[own[i].k];
        *id = *id >= 0 ? *id : llm_hf_find_piece(t, own[i].name);
        if (*id >= 0)
            t->type[*id] = own[i].type;
    }
    if (t->id[UNK] < 0)
        return ggl_fail(err, GGL_FORMAT, "it has no token <unk>");
    t->add_bos = 0;
    t->add_eos = 1;
    t->add_space = t->pieces.add_space;
    return llm_hf_set_ends(t, err);
}

/* Of BPE: gives the tokens the scores of the pieces that are spelled like them. A token that is no piece never results from text. */
static ggl_status score_tokens(llm_hf_tokenizer *t, ggl_error *err) {
    const sentence_pieces *p = &t->pieces;
    int64_t n_lost = 0;
    for (int64_t id = 0; id < t->n; id++)
        t->type[id] = t->type[id] == LLM_TOKEN_NORMAL ? LLM_TOKEN_UNUSED : t->type[id];
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t id = llm_hf_find_piece(t, p->piece[i]);
        const bool is_text = p->type[i] != LLM_TOKEN_UNKNOWN && p->type[i] != LLM_TOKEN_CONTROL;
        n_lost += id < 0 && is_text;
        if (id < 0 || t->type[id] != LLM_TOKEN_UNUSED)
            continue;
        t->type[id] = p->type[i];
        t->score[id] = p->score[i];
    }
    return n_lost == 0 || llm_hf_note(t, ggl_arena_printf(&t->arena,
                                                          "%lld pieces of SentencePiece's file are "
                                                          "not in vocab.json, and are left out",
                                                          (long long)n_lost))
               ? GGL_OK
               : llm_hf_no_memory(err);
}

ggl_status llm_hf_read_source_model(llm_hf_tokenizer *t, const char *path, const llm_hf_vocab *size,
                                    ggl_error *err) {
    if (llm_hf_flag(t->config ? &t->config->root : NULL, "separate_vocabs", false))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s/tokenizer_config.json: \"separate_vocabs\": the text to read has other "
                        "tokens than the text to write, which is not supported",
                        t->folder);
    ggl_status s = open_model(t, path, err);
    if (s != GGL_OK)
        return s;
    s = llm_sentence_pieces_read_model(&t->pieces, t->map.data, t->map.size, err);
    if (s == GGL_OK && !t->pieces.unigram && t->languages.n == 0)
        s = ggl_fail(err, GGL_UNSUPPORTED,
                     "its kind is BPE, but beside a vocab.json only Unigram is supported");
    if (s == GGL_OK && t->pieces.unigram && keep_source(t) != GGL_OK)
        s = llm_hf_no_memory(err);
    if (s == GGL_OK && t->pieces.unigram && t->n_source == 0)
        s = ggl_fail(err, GGL_FORMAT, "it has no pieces that a text can be cut into");
    if (s != GGL_OK)
        return ggl_within(err, s, "%s", path);
    t->first_language = t->vocab->root.kind == JSON_OBJECT ? t->vocab->root.n : 0;
    s = llm_hf_read_pieces(t, t->vocab->root.kind == JSON_OBJECT ? &t->vocab->root : NULL, size,
                           err);
    if (s == GGL_OK && !t->pieces.unigram)
        s = score_tokens(t, err);
    if (s == GGL_OK)
        s = llm_hf_set_pre(t, err);
    if (s == GGL_OK)
        s = set_specials_of_source(t, err);
    if (s == GGL_OK && t->languages.n > 0)
        s = note_normalizer(t) && llm_hf_note(t, "a text begins with the token of its language")
                ? GGL_OK
                : llm_hf_no_memory(err);
    return s == GGL_OK ? s : ggl_within(err, s, "%s/vocab.json", t->folder);
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
