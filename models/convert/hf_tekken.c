/* Byte-level BPE as mistral_common has it (tekken.json): tokens with their bytes in base64 and their ranks, from which the merges follow, as of tiktoken. Ids of special tokens come
 * before them, of which those without a name are called <SPECIAL_n>. */
#include <inttypes.h>
#include <string.h>

#include "common/base64.h"
#include "hf_tokenizer_impl.h"

enum { MOST_TOKENS = 1 << 24 };

static ggl_status wrong(ggl_error *err, const char *what) {
    return ggl_fail(err, GGL_FORMAT, "%s", what);
}

/* Reads a whole number of an object, below MOST_TOKENS. */
static bool read_count(const json_value *v, const char *name, int64_t *out) {
    const json_value *x = llm_json_get_kind(v, name, JSON_NUMBER);
    const bool fits = x && x->whole && x->number >= 0 && x->number < MOST_TOKENS;
    *out = fits ? (int64_t)x->number : 0;
    return fits;
}

static ggl_status put_special(llm_hf_tokenizer *t, const json_value *list, int64_t n,
                              ggl_error *err) {
    sentence_pieces *p = &t->pieces;
    for (size_t i = 0; i < list->n; i++) {
        const json_value *text = llm_json_get_kind(&list->item[i], "token_str", JSON_STRING);
        int64_t id;
        if (!text || text->n == 0 || !read_count(&list->item[i], "rank", &id) || id >= n ||
            p->piece[id].s)
            return ggl_fail(err, GGL_FORMAT,
                            "special_tokens[%zu] needs a token_str, and a rank of its own below "
                            "%" PRId64,
                            i, n);
        p->piece[id] = json_str(text);
    }
    for (int64_t id = 0; id < n; id++) {
        char name[32];
        p->type[id] = LLM_TOKEN_CONTROL;
        if (p->piece[id].s)
            continue;
        snprintf(name, sizeof name, "<SPECIAL_%" PRId64 ">", id);
        const char *own = ggl_arena_strndup(&t->arena, name, strlen(name));
        if (!own)
            return llm_hf_no_memory(err);
        p->piece[id] = (ggl_str){own, strlen(own)};
    }
    return GGL_OK;
}

/* Reads tokens 0 .. n - 1 of the list into byte strings by rank, and their spellings into t->pieces behind the `before` special ones. */
static ggl_status put_tokens(llm_hf_tokenizer *t, const json_value *list, int64_t before, int64_t n,
                             ggl_str *token, ggl_error *err) {
    sentence_pieces *p = &t->pieces;
    for (size_t i = 0; i < list->n; i++) {
        const json_value *text = llm_json_get_kind(&list->item[i], "token_bytes", JSON_STRING);
        int64_t rank;
        size_t at, size = 0;
        if (!text || !read_count(&list->item[i], "rank", &rank))
            return ggl_fail(err, GGL_FORMAT, "vocab[%zu] needs token_bytes and a rank", i);
        if (rank >= n) /* more tokens than the model knows */
            continue;
        unsigned char *to = ggl_arena_alloc(&t->arena, llm_base64_room(text->n) + 1, 1);
        if (!to)
            return llm_hf_no_memory(err);
        if (token[rank].s || !llm_base64_decode(to, &size, json_str(text), &at) || size == 0)
            return ggl_fail(err, GGL_FORMAT, "vocab[%zu]: %s", i,
                            token[rank].s ? "its rank is another token's"
                                          : "its token_bytes are not base64");
        token[rank] = (ggl_str){(char *)to, size};
        const char *spelled = llm_hf_spell(t, token[rank]);
        if (!spelled)
            return llm_hf_no_memory(err);
        p->piece[before + rank] = (ggl_str){spelled, strlen(spelled)};
        p->type[before + rank] = LLM_TOKEN_NORMAL;
    }
    for (int64_t k = 0; k < n; k++)
        if (!token[k].s)
            return ggl_fail(err, GGL_FORMAT, "no token has the rank %" PRId64, k);
    return GGL_OK;
}

ggl_status llm_hf_read_tekken(llm_hf_tokenizer *t, const llm_hf_vocab *size, ggl_error *err) {
    const json_value *root = &t->tekken->root, *config = llm_json_get(root, "config"),
                     *pattern = llm_json_get_kind(config, "pattern", JSON_STRING),
                     *special = llm_json_get_kind(root, "special_tokens", JSON_ARRAY),
                     *vocab = llm_json_get_kind(root, "vocab", JSON_ARRAY);
    int64_t before, n;
    if (!pattern || !vocab || !read_count(config, "default_num_special_tokens", &before) ||
        !read_count(config, "default_vocab_size", &n) || n <= before)
        return wrong(err, "it needs a vocab, and in config a pattern, default_vocab_size and "
                          "default_num_special_tokens");
    if (n - before > (int64_t)vocab->n)
        return ggl_fail(err, GGL_FORMAT,
                        "default_vocab_size is %" PRId64 " with %" PRId64
                        " special tokens, but vocab has %zu",
                        n, before, (size_t)vocab->n);
    if (!special)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "it has no special_tokens, as files up to version v7: add a tokenizer.json, "
            "as transformers makes it");
    if (!llm_hf_pre_of_regex(json_str(pattern), &t->pre))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "its pattern, which cuts text into words, is not known");
    ggl_str *token = ggl_arena_alloc(&t->arena, (size_t)(n - before), sizeof *token);
    ggl_status s =
        token ? llm_sentence_pieces_make_room(&t->pieces, n, err) : llm_hf_no_memory(err);
    t->pieces.n = s == GGL_OK ? n : 0;
    if (s == GGL_OK)
        s = put_special(t, special, before, err);
    if (s == GGL_OK)
        s = put_tokens(t, vocab, before, n - before, token, err);
    t->bytes = true;
    if (s == GGL_OK)
        s = llm_hf_read_sentence_pieces(t, &t->pieces, size, err);
    return s == GGL_OK ? llm_hf_merges_by_order(t, token, n - before, err) : s;
}

void llm_hf_set_tekken_ids(llm_hf_tokenizer *t) {
    static const struct {
        int id;
        ggl_str piece;
    } known[] = {{BOS, {"<s>", 3}}, {EOS, {"</s>", 4}}, {PAD, {"<pad>", 5}}, {UNK, {"<unk>", 5}}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        t->id[known[k].id] = llm_hf_find_piece(t, known[k].piece);
    t->add_bos = 1;
    t->add_eos = 0;
}
