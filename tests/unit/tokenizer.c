/* llm/internal/tokenizer.h: rules on small vocabularies of the test's own, a naive second implementation of
 * the merging, published strings, round trips, hostile files. */
#include "tokenizer_test.h"

#include "ggl/alloc.h"
#include "llm/internal/tokenizer.h"

/* ---- vocabularies ---- */

static int32_t add_n(vocab *v, const char *s, size_t n, float score, int32_t type) {
    char text[MAX_PIECE];
    snprintf(text, sizeof text, "%.*s", (int)n, s);
    return add(v, text, score, type);
}

/* <unk> <s> </s>, 256 bytes, then "▁" and the letters: as such files begin. */
static void add_usual(vocab *v) {
    *v = (vocab){.model = "llama"};
    add(v, "<unk>", 0, UNKNOWN);
    add(v, "<s>", 0, CONTROL);
    add(v, "</s>", 0, CONTROL);
    add_bytes(v, "<0x%02X>", BYTE);
    add(v, "▁", -100, NORMAL);
    for (char c = 'a'; c <= 'z'; c++)
        add_n(v, &c, 1, -101, NORMAL);
}

/* The ids as text, "1 2 3"; valid until the next call. */
static const char *ids_n(const llm_tokenizer *t, const char *text, size_t n, unsigned flags) {
    static char out[4096];
    ggl_error err = {0};
    llm_tokens ids = {0};
    size_t used = 0;
    out[0] = '\0';
    CHECK_OK(llm_tokenize(t, text, n, flags, &ids, &err), &err);
    for (size_t i = 0; i < ids.n && used + 12 < sizeof out; i++)
        used +=
            (size_t)snprintf(out + used, sizeof out - used, "%s%" PRId32, i ? " " : "", ids.id[i]);
    llm_tokens_fini(&ids);
    return out;
}

static const char *ids(const llm_tokenizer *t, const char *text, unsigned flags) {
    return ids_n(t, text, strlen(text), flags);
}

/* ---- rules ---- */

TEST(merging) {
    static vocab v;
    add_usual(&v);
    add(&v, "ab", -1, NORMAL);
    add(&v, "bc", -2, NORMAL);
    add(&v, "abc", -3, NORMAL);
    add(&v, "▁a", -4, NORMAL);
    add(&v, "dd", -5, NORMAL);
    add(&v, "xyz", -6, NORMAL); /* no two neighbours of it are a piece: never reached */
    llm_tokenizer *t = from_vocab(&v);
    REQUIRE(t);
    CHECK_STR(pieces(t, "abc", 0), "▁|abc");
    CHECK_STR(pieces(t, "bca", 0), "▁|bc|a");
    CHECK_STR(pieces(t, "a", 0), "▁a");
    CHECK_STR(pieces(t, "ddd", 0), "▁|dd|d"); /* of equals the leftmost */
    CHECK_STR(pieces(t, "ddddd", 0), "▁|dd|dd|d");
    CHECK_STR(pieces(t, "xyz", 0), "▁|x|y|z");
    CHECK_STR(pieces(t, " a a", 0), "▁|▁a|▁a");
    CHECK_STR(pieces(t, "", 0), "");
    llm_tokenizer_free(t);
}

TEST(bytes_and_unknown) {
    static vocab v;
    add_usual(&v);
    add(&v, "é", -1, NORMAL);
    llm_tokenizer *t = from_vocab(&v);
    REQUIRE(t);
    CHECK_STR(pieces(t, "é", 0), "▁|é");
    CHECK_STR(pieces(t, "ü\n", 0), "▁|<0xC3>|<0xBC>|<0x0A>");
    CHECK_STR(ids_n(t, "\xff\0\xc3", 3, 0), "259 258 3 198"); /* no UTF-8: byte by byte */
    CHECK_STR(pieces(t, "<0x41>", 0), "▁|<0x3C>|<0x30>|x|<0x34>|<0x31>|<0x3E>");
    ggl_str s = llm_token_text(t, 3 + 'A', false);
    CHECK(s.n == 1 && s.s[0] == 'A');
    llm_tokenizer_free(t);

    v.n = 0; /* no bytes: one unknown token for each character */
    int32_t unk = add(&v, "<unk>", 0, UNKNOWN);
    add(&v, "a", -1, NORMAL);
    add(&v, "▁", -1, NORMAL);
    CHECK_INT(unk, 0);
    t = from_vocab(&v);
    REQUIRE(t);
    CHECK_STR(ids(t,
                  "aüb\xff"
                  "a",
                  0),
              "2 1 0 0 0 1");
    const char *const broken[] = {
        "\xe0\x80\x80", "\xed\xa0\x80", "\xc3\xc3\xc3", "\xc0\x80\xc1",
        "\xe4\xb8\xff", "\x80\xbf\xf5", "\xf0\x9d\xe4"}; /* overlong, surrogates, cut off: three
                                                            stray bytes each */
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        CHECK_STR(ids(t, broken[i], 0), "2 0 0 0");
    CHECK_STR(ids(t, "\xf0\x80\x80\x80\xf4\x90\x80\x80", 0), "2 0 0 0 0 0 0 0 0");
    CHECK_STR(ids(t, "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\xed\x9f\xbf\xe0\xa0\x80", 0), "2 0 0 0 0");
    CHECK_INT(llm_token_text(t, 0, false).n, 0);
    CHECK_INT(llm_token_text(t, 0, true).n, 5);
    llm_tokenizer_free(t);
}

TEST(begin_and_end) {
    static vocab v;
    add_usual(&v);
    int32_t turn = add(&v, "<|im_end|>", 0, CONTROL), fake = add(&v, "<|eot_id|>", 0, NORMAL);
    int32_t odd = add(&v, "STOP", 0, CONTROL);
    llm_tokenizer *t = from_vocab(&v);
    REQUIRE(t);
    CHECK_INT(llm_tokenizer_n_vocab(t), v.n);
    CHECK_INT(llm_tokenizer_bos(t), 1);
    CHECK_INT(llm_tokenizer_eos(t), 2);
    CHECK(llm_tokenizer_is_eog(t, 2) && llm_tokenizer_is_eog(t, turn) &&
          !llm_tokenizer_is_eog(t, fake));
    CHECK(!llm_tokenizer_is_eog(t, odd) && !llm_tokenizer_is_eog(t, -1) &&
          !llm_tokenizer_is_eog(t, 9999));
    CHECK(llm_tokenizer_is_control(t, 1) && !llm_tokenizer_is_control(t, 0) &&
          !llm_tokenizer_is_control(t, -5));
    CHECK_STR(pieces(t, "a", LLM_TOKENIZE_BOS), "<s>|▁|a");
    CHECK_STR(pieces(t, "", LLM_TOKENIZE_BOS), "<s>");
    CHECK_STR(pieces(t, "a", 0), "▁|a");
    llm_tokenizer_free(t);

    ggl_gguf_writer *w = write_vocab(&v);
    put_u32(w, "tokenizer.ggml.bos_token_id", UINT32_MAX); /* none */
    put_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)turn);
    put_u32(w, "tokenizer.ggml.eot_token_id", (uint32_t)odd);
    put_bool(w, "tokenizer.ggml.add_eos_token", true);
    put_bool(w, "tokenizer.ggml.add_space_prefix", false);
    REQUIRE((t = opened(w)));
    CHECK_INT(llm_tokenizer_bos(t), -1);
    CHECK_STR(pieces(t, "a", LLM_TOKENIZE_BOS), "a|<|im_end|>");
    CHECK(llm_tokenizer_is_eog(t, odd) && llm_tokenizer_is_eog(t, turn) &&
          llm_tokenizer_is_eog(t, 2));
    round_trip(t, " a", 2, LLM_TOKENIZE_BOS);
    llm_tokenizer_free(t);

    w = write_vocab(&v);
    put_bool(w, "tokenizer.ggml.add_bos_token", false);
    REQUIRE((t = opened(w)));
    CHECK_STR(pieces(t, "a", LLM_TOKENIZE_BOS), "▁|a");
    llm_tokenizer_free(t);
}

/* A text that goes on after another one gets no space in front; after a special token, one comes as ever. */
TEST(texts_that_go_on) {
    static vocab v;
    add_usual(&v);
    add(&v, "▁a", -4, NORMAL);
    llm_tokenizer *t = from_vocab(&v);
    const unsigned flags = LLM_TOKENIZE_SPECIAL;
    REQUIRE(t);
    CHECK_STR(pieces_after(t, "b", "a a", flags), "a|▁a");
    CHECK_STR(pieces_after(t, "b", " a", flags), "▁a");
    CHECK_STR(pieces_after(t, "b", "", flags), "");
    CHECK_STR(pieces_after(t, "b", "a</s>a", flags), "a|</s>|▁a");
    CHECK_STR(pieces_after(t, "b", "</s>a", flags), "</s>|▁a");
    CHECK_STR(pieces_after(t, "b</s>", "a", flags), "▁a");
    CHECK_STR(pieces_after(t, "", "a", flags), "▁a");
    llm_tokenizer_free(t);

    ggl_gguf_writer *w = write_vocab(&v);
    put_bool(w, "tokenizer.ggml.remove_extra_whitespaces", true);
    REQUIRE((t = opened(w)));
    CHECK_STR(pieces(t, "  a  a ", 0), "▁a|▁a");
    CHECK_STR(pieces_after(t, "b", "a  a ", flags), "a|▁a");
    CHECK_STR(pieces_after(t, "b", "  a", flags), "▁a");
    llm_tokenizer_free(t);
}

/* 0 and 1 of any number type are false and true, as for other keys. */
TEST(flags_that_are_numbers) {
    static vocab v;
    add_usual(&v);
    llm_tokenizer *t;
    ggl_error err = {0};
    ggl_gguf_writer *w = write_vocab(&v);
    put_u32(w, "tokenizer.ggml.add_bos_token", 0);
    put_u32(w, "tokenizer.ggml.add_space_prefix", 0);
    REQUIRE((t = opened(w)));
    CHECK_STR(pieces(t, "a", LLM_TOKENIZE_BOS), "a");
    llm_tokenizer_free(t);
    w = write_vocab(&v);
    put_u32(w, "tokenizer.ggml.add_bos_token", 1);
    REQUIRE((t = opened(w)));
    CHECK_STR(pieces(t, "a", LLM_TOKENIZE_BOS), "<s>|▁|a");
    llm_tokenizer_free(t);
    w = write_vocab(&v);
    put_u32(w, "tokenizer.ggml.add_bos_token", 2);
    CHECK(from_writer(&t, w, &err) == GGL_FORMAT);
    CHECK_HAS(err.msg, "'tokenizer.ggml.add_bos_token' is u32, a bool is expected");
}

TEST(special_tokens) {
    static vocab v;
    add_usual(&v);
    add(&v, "<t>", 0, CONTROL);
    add(&v, "<t>x", 0, CONTROL);
    add(&v, "<tt", 0, USER);
    add(&v, "<t", 0, USER);
    add(&v, "", 0, CONTROL);
    add(&v, "<s", -1, NORMAL);
    add(&v, "<", -1, NORMAL);
    add(&v, ">", -1, NORMAL);
    llm_tokenizer *t = from_vocab(&v);
    REQUIRE(t);
    const unsigned special = LLM_TOKENIZE_SPECIAL;
    CHECK_STR(pieces(t, "<s>a</s>b", special),
              "<s>|▁|a|</s>|▁|b"); /* a space at the start and after specials */
    CHECK_STR(pieces(t, "a<s>", special), "▁|a|<s>");
    CHECK_STR(pieces(t, "<t>x<t>y", special), "<t>x|<t>|▁|y"); /* the longest */
    CHECK_STR(pieces(t, "<t>x", 0), "<t|▁|>|x");               /* user-defined ones always */
    CHECK_STR(pieces(t, "<tt<ttt", 0), "<tt|<tt|▁|t");
    CHECK_STR(pieces(t, "<unk>", special), "<unk>");
    /* text cannot forge a control token */
    CHECK_STR(pieces(t, "<s>", 0), "▁|<s|>");
    CHECK_STR(pieces(t, "</s>", 0), "▁|<|<0x2F>|s|>");
    CHECK_STR(pieces(t, "<s", special), "▁|<s");
    llm_tokenizer_free(t);
}

/* The types of the last pair's tokens, a digit for each. */
static char types_seen[64];

/* The pieces of a query and a document, cut to at most n_max tokens; "": they cannot be cut, and *err says why. */
static const char *cut(const llm_tokenizer *t, const char *query, const char *document,
                       size_t n_max, ggl_error *err) {
    llm_tokens ids = {0}, types = {0};
    const ggl_str q = {query, strlen(query)}, d = {document, strlen(document)};
    CHECK_OK(llm_tokenize_pair(t, q, d, &ids, &types, err), err);
    if (llm_cut_pair(t, q, &ids, &types, n_max, err) != GGL_OK)
        ids.n = types.n = 0;
    const char *out = pieces_from(t, &ids, 0);
    CHECK_INT(ids.n, types.n);
    for (size_t i = 0; i < types.n && i + 1 < sizeof types_seen; i++)
        types_seen[i] = (char)('0' + types.id[i]);
    types_seen[types.n < sizeof types_seen ? types.n : 0] = 0;
    llm_tokens_fini(&ids);
    llm_tokens_fini(&types);
    return out;
}

static const char *pair(const llm_tokenizer *t, const char *query, const char *document) {
    ggl_error err = {0};
    return cut(t, query, document, SIZE_MAX, &err);
}

static llm_tokenizer *with_pairs(const vocab *v, bool ends, const char *form) {
    llm_tokenizer *t;
    ggl_error err = {0};
    ggl_gguf_writer *w = write_vocab(v);
    put_bool(w, "tokenizer.ggml.add_bos_token", ends);
    put_bool(w, "tokenizer.ggml.add_eos_token", ends);
    if (form)
        ggl_gguf_put_string(w, "tokenizer.chat_template.rerank", form, strlen(form));
    CHECK_OK(from_writer(&t, w, &err), &err);
    return t;
}

/* The ends' spelling says how many are between the texts. tests/server/encoders.py has pairs of wordpieces. */
TEST(pairs_with_a_separator) {
    static vocab v;
    add_usual(&v);
    v.piece[1] = (ggl_str){"[CLS]", 5};
    v.piece[2] = (ggl_str){"[SEP]", 5};
    llm_tokenizer *t = with_pairs(&v, true, NULL);
    REQUIRE(t);
    CHECK_STR(pair(t, "a", "b"), "[CLS]|▁|a|[SEP]|▁|b|[SEP]");
    CHECK_STR(types_seen, "0000111");
    CHECK_STR(pair(t, "", ""), "[CLS]|[SEP]|[SEP]");
    CHECK_STR(pair(t, "a[SEP]", ""), "[CLS]|▁|a|[SEP]|[SEP]|[SEP]"); /* as CrossEncoder reads it */
    llm_tokenizer_free(t);
}

TEST(pairs) {
    static vocab v;
    add_usual(&v);
    llm_tokenizer *t = with_pairs(&v, true, NULL);
    REQUIRE(t);
    CHECK_STR(pair(t, "a", "b"), "<s>|▁|a|</s>|</s>|▁|b|</s>");
    CHECK_STR(types_seen, "00000000");
    CHECK_STR(pair(t, "", ""), "<s>|</s>|</s>|</s>");
    llm_tokenizer_free(t);
    t = with_pairs(&v, false, "");
    REQUIRE(t);
    CHECK_STR(pair(t, "a", "b"), "▁|a|▁|b");
    llm_tokenizer_free(t);
    t = with_pairs(&v, true, "<s>x{query}</s>{{document}{query{query}");
    REQUIRE(t);
    CHECK_STR(pair(t, "a", "b"), "<s>|▁|x|a|</s>|▁|<0x7B>|b|<0x7B>|q|u|e|r|y|a");
    CHECK_STR(pair(t, "{document}", ""), /* names in the texts stand for nothing */
              "<s>|▁|x|<0x7B>|d|o|c|u|m|e|n|t|<0x7D>|</"
              "s>|▁|<0x7B>|<0x7B>|q|u|e|r|y|<0x7B>|d|o|c|u|m|e|n|t|<0x7D>");
    llm_tokenizer_free(t);
}

static llm_tokenizer *with_parts(const vocab *v, const int32_t *id, size_t n, const int32_t *type,
                                 size_t n_type, ggl_error *err) {
    llm_tokenizer *t = NULL;
    ggl_gguf_writer *w = write_vocab(v);
    ggl_gguf_put(w, "tokenizer.ggl.pair", GGL_GGUF_I32, true, id, n);
    if (type)
        ggl_gguf_put(w, "tokenizer.ggl.pair_types", GGL_GGUF_I32, true, type, n_type);
    return from_writer(&t, w, err) == GGL_OK ? t : NULL;
}

TEST(pairs_by_parts) {
    static vocab v;
    ggl_error err = {0};
    add_usual(&v);
    const int32_t id[] = {1, -2, 2, 2, -1, 1}, type[] = {0, 3, 3, 0, 1, 2};
    llm_tokenizer *t = with_parts(&v, id, 6, type, 6, &err);
    REQUIRE(t);
    CHECK_STR(pair(t, "a", "bc"), "<s>|▁|b|c|</s>|</s>|▁|a|<s>");
    CHECK_STR(types_seen, "033330112");
    llm_tokenizer_free(t);
    t = with_parts(&v, id, 6, NULL, 0, &err);
    REQUIRE(t);
    CHECK_STR(pair(t, "", ""), "<s>|</s>|</s>|<s>");
    CHECK_STR(types_seen, "0000");
    llm_tokenizer_free(t);
    CHECK(!with_parts(&v, id, 6, type, 5, &err));
    CHECK_HAS(err.msg,
              "tokenizer.ggl.pair is not an array of at most 1024 numbers, with as many in "
              "tokenizer.ggl.pair_types");
    CHECK(!with_parts(&v, (int32_t[]){-3}, 1, NULL, 0, &err));
    CHECK_HAS(err.msg, "tokenizer.ggl.pair: entry 0 is not a number from -2 to ");
    CHECK(!with_parts(&v, id, 1, (int32_t[]){-1}, 1, &err));
    CHECK_HAS(err.msg, "tokenizer.ggl.pair_types: entry 0 is not a number from 0 to 65535");
}

TEST(cut_pairs) {
    static vocab v;
    ggl_error err = {0};
    add_usual(&v);
    llm_tokenizer *t = with_pairs(&v, true, NULL);
    REQUIRE(t);
    CHECK_STR(cut(t, "a", "bcd", 20, &err), "<s>|▁|a|</s>|</s>|▁|b|c|d|</s>");
    CHECK_STR(cut(t, "a", "bcd", 8, &err), "<s>|▁|a|</s>|</s>|▁|b|</s>");
    CHECK_STR(cut(t, "aaaa", "bcd", 9, &err), "");
    CHECK_HAS(err.msg, "the query has 9 tokens with those that the model adds");
    llm_tokenizer_free(t);
    t = with_pairs(&v, true, "<s>{document}: {query}</s>!");
    REQUIRE(t);
    CHECK_STR(cut(t, "a", "bcdefg", 9, &err), /* of the document, b is left */
              "<s>|▁|b|<0x3A>|▁|a|</s>|▁|<0x21>");
    llm_tokenizer_free(t);
}

TEST(of_equal_pieces_the_first) {
    static vocab v;
    add_usual(&v);
    int32_t first = add(&v, "ab", -1, NORMAL), second = add(&v, "ab", 5, NORMAL);
    llm_tokenizer *t = from_vocab(&v);
    REQUIRE(t);
    char want[16];
    snprintf(want, sizeof want, "259 %d", (int)first);
    CHECK_STR(ids(t, "ab", 0), want);
    CHECK_INT(llm_token_text(t, second, false).n, 2);
    llm_tokenizer_free(t);
}

TEST(detokenize) {
    static vocab v;
    add_usual(&v);
    int32_t hi = add(&v, "▁hi", -1, NORMAL), user = add(&v, " U", 0, USER);
    llm_tokenizer *t = from_vocab(&v);
    REQUIRE(t);
    const struct {
        int32_t id[4];
        size_t n;
        bool special;
        const char *text;
    } cases[] = {
        {{0}, 0, false, ""},
        {{hi}, 1, false, "hi"},
        {{1, hi, hi}, 3, false, "hi hi"},
        {{1, hi, 2, hi}, 4, false, "hi hi"}, /* only the first space is the tokenizer's for sure */
        {{1, hi, 2, hi}, 4, true, "<s>hi</s> hi"},
        {{user, hi}, 2, false, " U hi"},
        {{-3, 5000, hi}, 3, true, "hi"},
        {{3 + 0xc3, 3 + 0xa9, 0}, 3, false, "é"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text;
        size_t size;
        ggl_error err = {0};
        REQUIRE_OK(llm_detokenize(t, cases[i].id, cases[i].n, cases[i].special, &text, &size, &err),
                   &err);
        CHECK_STR(text, cases[i].text);
        CHECK_INT(size, strlen(cases[i].text));
        ggl_free(text);
    }
    CHECK_STR(llm_token_text(t, hi, false).s, " hi"); /* the arena's zero follows */
    llm_tokenizer_free(t);
}

/* ---- hostile files ---- */

TEST(refused) {
    static vocab v;
    add_usual(&v);
    const char *others[] = {"", "llama2", "spm", "BERT"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char words[64];
        snprintf(words, sizeof words, "'%s', which is not supported here (supported: ", others[i]);
        v.model = others[i];
        refuse(write_vocab(&v), GGL_UNSUPPORTED, words);
    }
    v.model = "llama";
    refuse(ggl_gguf_writer_new(), GGL_NOT_FOUND, "no tokenizer");

    ggl_gguf_writer *w = ggl_gguf_writer_new();
    put_u32(w, "tokenizer.ggml.model", 1);
    refuse(w, GGL_FORMAT, "tokenizer.ggml.model");

    w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "tokenizer.ggml.model", "llama", 5);
    refuse(w, GGL_FORMAT, "tokenizer.ggml.tokens is missing");

    w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "tokenizer.ggml.model", "llama", 5);
    ggl_gguf_put(w, "tokenizer.ggml.tokens", GGL_GGUF_F32, true, v.score, v.n);
    refuse(w, GGL_FORMAT, "not an array of strings");

    /* each array short by one, or of a wrong type, or away */
    for (int k = 0; k < 7; k++) {
        static const char *const words[] = {"scores has 285 entries, for 286 tokens",
                                            "scores is an array of",
                                            "scores is missing",
                                            "token_type has 285 entries, for 286 tokens",
                                            "token_type is an array of",
                                            "scores of token 7 is not a number",
                                            "token_type of token 9 is 77"};
        static float score[MAX_PIECES];
        static int32_t type[MAX_PIECES];
        memcpy(score, v.score, sizeof score);
        memcpy(type, v.type, sizeof type);
        score[7] = k == 5 ? __builtin_nanf("") : 0;
        type[9] = k == 6 ? 77 : BYTE;
        w = ggl_gguf_writer_new();
        ggl_gguf_put_string(w, "tokenizer.ggml.model", "llama", 5);
        ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", v.piece, v.n);
        if (k == 1)
            ggl_gguf_put_strings(w, "tokenizer.ggml.scores", v.piece, v.n);
        else if (k != 2)
            ggl_gguf_put(w, "tokenizer.ggml.scores", GGL_GGUF_F32, true, score, v.n - (k == 0));
        if (k == 4)
            ggl_gguf_put_strings(w, "tokenizer.ggml.token_type", v.piece, v.n);
        else
            ggl_gguf_put(w, "tokenizer.ggml.token_type", GGL_GGUF_I32, true, type, v.n - (k == 3));
        refuse(w, GGL_FORMAT, words[k]);
    }

    const char *keys[] = {"bos", "eos", "unknown", "eot", "eom"};
    for (int k = 0; k < 5; k++) {
        char key[64];
        snprintf(key, sizeof key, "tokenizer.ggml.%s_token_id", keys[k]);
        w = write_vocab(&v);
        put_u32(w, key, 286);
        refuse(w, GGL_FORMAT, "_token_id is 286, but there are 286 tokens");
        w = write_vocab(&v);
        put_bool(w, key, true);
        refuse(w, GGL_FORMAT, key);
    }
    w = write_vocab(&v);
    put_u32(w, "tokenizer.ggml.add_space_prefix", 2);
    refuse(w, GGL_FORMAT, "add_space_prefix");

    v.type[0] = NORMAL; /* no unknown token, and byte 0x00 has none */
    v.type[3] = NORMAL;
    refuse(write_vocab(&v), GGL_FORMAT, "neither a token for byte 0x00 nor an unknown token");
    v.type[260] = BYTE;
    refuse(write_vocab(&v), GGL_FORMAT, "token 260 is a byte token, but is spelled 'a'");
}

TEST(without_token_types) {
    static vocab v;
    add_usual(&v);
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "tokenizer.ggml.model", "llama", 5);
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", v.piece, v.n);
    ggl_gguf_put(w, "tokenizer.ggml.scores", GGL_GGUF_F32, true, v.score, v.n);
    llm_tokenizer *t = opened(w);
    REQUIRE(t);
    CHECK_INT(llm_tokenizer_bos(t), -1); /* token 1 is not known to be one */
    CHECK_STR(pieces(t, "aé", 0), "▁|a|<0xC3>|<0xA9>");
    llm_tokenizer_free(t);
}

TEST(failing_allocations) {
    static vocab v;
    add_usual(&v);
    ADD_ALL(&v, -1, "▁s", "ome", "om");
    fail_each_allocation(write_vocab(&v), 5);
}

/* ---- the second implementation ---- */

static int32_t naive_find(const vocab *v, const char *s, size_t n) {
    for (size_t i = 0; i < v->n; i++)
        if (v->type[i] == NORMAL && v->piece[i].n == n && memcmp(v->piece[i].s, s, n) == 0)
            return (int32_t)i;
    return -1;
}

/* Symbols are cut[i] .. cut[i + 1] of the text; joins the best pair until there is none. Characters
 * come as a list, so that this code need not know UTF-8. */
static size_t naive_encode(const vocab *v, char *text, size_t *cut, size_t n_sym, int32_t *out) {
    for (;;) {
        size_t best = 0;
        bool found = false;
        float score = 0;
        for (size_t i = 0; i + 2 <= n_sym; i++) {
            int32_t id = naive_find(v, text + cut[i], cut[i + 2] - cut[i]);
            if (id >= 0 && (!found || v->score[id] > score)) {
                found = true;
                best = i;
                score = v->score[id];
            }
        }
        if (!found)
            break;
        memmove(cut + best + 1, cut + best + 2, (n_sym - best - 1) * sizeof *cut);
        n_sym--;
    }
    size_t n = 0;
    for (size_t i = 0; i < n_sym; i++) {
        int32_t id = naive_find(v, text + cut[i], cut[i + 1] - cut[i]);
        for (size_t j = cut[i]; id < 0 && j < cut[i + 1]; j++)
            out[n++] = 3 + (unsigned char)text[j];
        if (id >= 0)
            out[n++] = id;
    }
    return n;
}

TEST(same_as_naive) {
    static const char *const alphabet[] = {"a", "b", "c", "▁", "é", "世", "𝄞", "\xff", "\xe4"};
    enum { N_LETTERS = sizeof alphabet / sizeof *alphabet, N_VOCABS = 40, N_STRINGS = 500 };
    static vocab v;
    uint64_t seed = 11;
    for (int k = 0; k < N_VOCABS; k++) {
        v = (vocab){.model = "llama"};
        add(&v, "<unk>", 0, UNKNOWN);
        add(&v, "<s>", 0, CONTROL);
        add(&v, "</s>", 0, CONTROL);
        add_bytes(&v, "<0x%02X>", BYTE);
        for (int i = 0; i < N_LETTERS; i++)
            if (i < 4 || test_random(&seed) % 4)
                add(&v, alphabet[i], -50, NORMAL);
        for (int i = 0; i < 60;
             i++) { /* many short pieces of few letters with few different scores: many ties */
            char s[32] = "";
            size_t n = 2 + test_random(&seed) % 4,
                   letters = 2 + test_random(&seed) % (N_LETTERS - 1);
            for (size_t j = 0; j < n; j++)
                strcat(s, alphabet[test_random(&seed) % letters]);
            add(&v, s, -(float)(test_random(&seed) % 8), NORMAL);
        }
        llm_tokenizer *t = from_vocab(&v);
        REQUIRE(t);
        for (int i = 0; i < N_STRINGS; i++) {
            char text[256] = "", escaped[256] = "▁";
            size_t cut[64] = {0, 3}, n_sym = 1, n = test_random(&seed) % 24;
            size_t letters = 2 + test_random(&seed) % (N_LETTERS - 1);
            for (size_t j = 0; j < n; j++) {
                const char *letter = alphabet[test_random(&seed) % letters];
                strcat(text, strcmp(letter, "▁") == 0 ? " " : letter);
                strcat(escaped, letter);
                cut[++n_sym] = strlen(escaped);
            }
            int32_t want[512];
            size_t n_want = n > 0 ? naive_encode(&v, escaped, cut, n_sym, want) : 0;
            llm_tokens got = {0};
            CHECK_OK(llm_tokenize(t, text, strlen(text), 0, &got, NULL), NULL);
            bool same = got.n == n_want &&
                        (n_want == 0 || memcmp(got.id, want, n_want * sizeof *want) == 0);
            llm_tokens_fini(&got);
            if (!CHECK_MSG(same, "vocabulary %d, string %d '%s' differs", k, i, text))
                break;
        }
        llm_tokenizer_free(t);
    }
}

/* ---- long texts, round trips ---- */

TEST(long_runs) {
    static vocab v;
    add_usual(&v);
    char run[24] = "aaaaaaaaaaaaaaaa";
    for (int n = 2; n <= 16; n *= 2)
        add_n(&v, run, (size_t)n, (float)-n, NORMAL);
    for (char c = 'a'; c <= 'z'; c++) /* words whose letters may all stand side by side */
        add_n(&v, (char[]){c, (char)(c == 'z' ? 'a' : c + 1)}, 2, -30, NORMAL);
    add(&v, "\n\n", 0, USER);
    add(&v, "\n\n\n\n", 0, USER);
    llm_tokenizer *t = from_vocab(&v);
    REQUIRE(t);
    enum { BIG = 40000 };
    static char text[BIG];
    static const char fills[] = {'a', ' ', '\n', 0, '\xff'};
    for (int k = 0; k <= 5; k++) {
        for (size_t i = 0; i < BIG; i++)
            text[i] = k < 5 ? fills[k] : (char)('a' + i % 26);
        char what[32];
        size_t n;
        snprintf(what, sizeof what, "case %d", k);
        uint64_t small = steps_of(t, text, BIG / 10, &n), whole = steps_of(t, text, BIG, &n);
        test_linear(what, small, whole, 10);
        CHECK(n >= BIG / 16 && n <= BIG + 1);
    }
    llm_tokenizer_free(t);
}

static size_t random_character(uint64_t *seed, char *s) {
    static const uint32_t ends[] = {0x80, 0x800, 0x10000, 0x110000};
    uint32_t u;
    do
        u = (uint32_t)(test_random(seed) % ends[test_random(seed) % 4]);
    while (u == 0x2581 ||
           (u >= 0xd800 && u < 0xe000)); /* U+2581 is a space in this kind; surrogates are none */
    return put_utf8(u, s);
}

static void random_round_trips(const llm_tokenizer *t, int count) {
    uint64_t seed = 12;
    char text[512];
    for (int i = 0; i < count; i++) {
        size_t n = 0, wanted = test_random(&seed) % 64;
        for (size_t j = 0; j < wanted; j++) {
            if (i % 2)
                text[n++] = (char)(test_random(&seed) % 4 ? test_random(&seed) : ' ');
            else
                n += random_character(&seed, text + n);
        }
        bool space = false; /* random bytes might make one, too */
        for (size_t j = 0; j + 3 <= n; j++)
            space = space || memcmp(text + j, "▁", 3) == 0;
        if (!space && !round_trip(t, text, n, LLM_TOKENIZE_BOS))
            return;
    }
}

TEST(round_trips) {
    static vocab v;
    add_usual(&v);
    add(&v, "é", -1, NORMAL);
    add(&v, "▁▁", -1, NORMAL);
    add(&v, "th", -1, NORMAL);
    llm_tokenizer *t = from_vocab(&v);
    REQUIRE(t);
    random_round_trips(t, 20000);
    llm_tokenizer_free(t);
}

/* ---- reference files ---- */

TEST(reference_models) {
    static const char *const names[] = {"tokenizers/ggml-vocab-llama-spm.gguf",
                                        "models/stories260K-f32.gguf",
                                        "models/stories260K-q8_0.gguf",
                                        "golden/llama.gguf",
                                        "golden/mixtral.gguf",
                                        "golden/gemma2.gguf",
                                        "golden/phi3.gguf"};
    int count = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!test_shared(names[i]))
            continue;
        llm_tokenizer *t = from_shared(names[i]);
        if (!t)
            continue;
        count++;
        round_trip(t, "Once upon a time, there was a dog.\n", 35, LLM_TOKENIZE_BOS);
        random_round_trips(t, 1000);
        llm_tokenizer_free(t);
    }
    if (count == 0)
        SKIP_NOT_SHIPPED("models of other projects");
}

/* ---- white space beside special tokens ---- */

TEST(white_space_that_belongs_to_tokens) {
    static vocab v;
    add_usual(&v);
    v.type[2] = USER;
    int32_t user = add(&v, "<|user|>", 0, CONTROL), end = add(&v, "<|endoftext|>", 0, CONTROL);
    int32_t mask = add(&v, "<mask>", 0, CONTROL);
    CHECK(user == 286 && end == 287 && mask == 288);
    for (int phi3 = 0; phi3 < 2; phi3++) {
        if (phi3)
            add(&v, "<|placeholder1|>", 0, CONTROL);
        llm_tokenizer *t = from_vocab(&v);
        REQUIRE(t);
        CHECK_STR(pieces(t, "a <|user|> \n\xe3\x80\x80\xc2\xa0 b", LLM_TOKENIZE_SPECIAL),
                  phi3 ? "▁|a|▁|<|user|>|▁|b"
                       : "▁|a|▁|<|user|>|▁|▁|<0x0A>|<0xE3>|<0x80>|<0x80>|<0xC2>|<0xA0>|▁|b");
        CHECK_STR(pieces(t, "<|user|>  <|user|>", LLM_TOKENIZE_SPECIAL),
                  phi3 ? "<|user|>|<|user|>" : "<|user|>|▁|▁|▁|<|user|>");
        CHECK_STR(pieces(t, "a</s> \xe3\x80", 0), /* user-defined: always recognized */
                  phi3 ? "▁|a|</s>|▁|<0xE3>|<0x80>" : "▁|a|</s>|▁|▁|<0xE3>|<0x80>");
        CHECK_STR(pieces(t, "<|endoftext|> b", LLM_TOKENIZE_SPECIAL), "<|endoftext|>|▁|▁|b");
        CHECK_STR(pieces(t, "a <mask> b", LLM_TOKENIZE_SPECIAL),
                  "▁|a|▁|<mask>|▁|▁|b"); /* as of Gemma */
        llm_tokenizer_free(t);
    }
}

/* RoBERTa and similar models begin with <s>, and have white space to the left of <mask> as a part of it. */
TEST(white_space_before_mask) {
    static vocab v;
    add_usual(&v);
    v.piece[0] = (ggl_str){"<s>", 3};
    v.piece[1] = (ggl_str){"<pad>", 5};
    v.type[0] = CONTROL;
    add(&v, "<mask>", 0, CONTROL);
    llm_tokenizer *t = from_vocab(&v);
    REQUIRE(t);
    CHECK_STR(pieces(t, "a \xe3\x80\x80 <mask> b", LLM_TOKENIZE_SPECIAL), "▁|a|<mask>|▁|▁|b");
    CHECK_STR(pieces(t, "  <mask>", LLM_TOKENIZE_SPECIAL), "<mask>");
    llm_tokenizer_free(t);
}
