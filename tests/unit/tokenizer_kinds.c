/* The kinds bert, t5, rwkv, plamo2, gemma4 and hybriddna: rules by hand, a megabyte without a space,
 * hostile files. tests/numpy/tokenizers.py compares them with second implementations. */
#include "tokenizer_test.h"

#include "ggl/alloc.h"
#include "llm/internal/tokenizer.h"

/* ---- vocabularies ---- */

static void make_bert(vocab *v) {
    *v = (vocab){.model = "bert"};
    add(v, "[PAD]", 0, CONTROL);
    add(v, "[UNK]", 0, CONTROL);
    add(v, "[CLS]", 0, CONTROL);
    add(v, "[SEP]", 0, CONTROL);
    ADD_ALL(v, 0, "▁the", "▁cafe", "▁un", "aff", "able", "▁.", "▁,", "▁中", "▁don", "▁'", "▁t", "s",
            "▁i", "▁straße", "▁a", "a", "▁$", "▁가");
}

static ggl_gguf_writer *write_bert(const vocab *v) {
    const uint32_t cls = 2, sep = 3;
    ggl_gguf_writer *w = write_vocab(v);
    ggl_gguf_put(w, "tokenizer.ggml.cls_token_id", GGL_GGUF_U32, false, &cls, 1);
    ggl_gguf_put(w, "tokenizer.ggml.seperator_token_id", GGL_GGUF_U32, false, &sep, 1);
    put_bool(w, "tokenizer.ggml.add_eos_token", false); /* some files say so; it holds anyway */
    return w;
}

static void make_t5(vocab *v) {
    *v = (vocab){.model = "t5"};
    add(v, "<pad>", 0, CONTROL);
    add(v, "</s>", 0, CONTROL);
    add(v, "<unk>", 0, UNKNOWN);
    static const char *const words[] = {"▁", "a", "b", "ab", "▁a", "abc", "c"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add(v, words[i], i == 4 ? -2.5f : -(float)(i + 1), NORMAL);
}

static void make_rwkv(vocab *v) {
    *v = (vocab){.model = "rwkv"};
    add(v, "<s>", 0, CONTROL);
    add_bytes(v, "\\x%02x", NORMAL);
    ADD_ALL(v, 0, "\\t\\n\\r", "ab", "abc", "\\\\n", "\\'\"", "\\xe4\\xb8");
}

static void make_plamo2(vocab *v) {
    *v = (vocab){.model = "plamo2"};
    add(v, "<|plamo:unk|>", 0, UNKNOWN);
    add(v, "<|plamo:bos|>", 0, CONTROL);
    add_bytes(v, "<0x%02X>", BYTE);
    static const char *const words[] = {"a", "b", "ab", "ba", "bab", "日"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add(v, words[i], i == 4 ? -100 : -1, NORMAL);
}

static void make_gemma4(vocab *v) {
    *v = (vocab){.model = "gemma4"};
    add(v, "<pad>", 0, CONTROL);
    add(v, "<bos>", 0, CONTROL);
    add_bytes(v, "<0x%02X>", BYTE);
    ADD_ALL(v, 0, "▁", "a", "b", "▁a", "ab", "\n", "\n\n", "▁a▁");
    add_merge(v, "▁", "a");
    add_merge(v, "a", "b");
    add_merge(v, "▁a", "▁");
}

static void make_llama(vocab *v) {
    *v = (vocab){.model = "llama"};
    add(v, "<unk>", 0, UNKNOWN);
    add(v, "<s>", 0, CONTROL);
    add_bytes(v, "<0x%02X>", BYTE);
    static const char *const words[] = {"▁", "a", "b", "ab", "▁a", "日"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add(v, words[i], -(float)i, NORMAL);
}

/* Of the bytes only those of ASCII, which spell themselves. */
static void make_gpt2(vocab *v) {
    *v = (vocab){.model = "gpt2"};
    for (char c = '!'; c <= '~'; c++)
        add(v, (char[]){c, '\0'}, 0, NORMAL);
    add(v, "ab", 0, NORMAL);
    add_merge(v, "a", "b");
}

static void (*const makers[])(vocab *) = {make_bert,   make_t5,    make_rwkv, make_plamo2,
                                          make_gemma4, make_llama, make_gpt2};
enum { N_MAKERS = sizeof makers / sizeof *makers };

/* ---- rules ---- */

TEST(bert) {
    static vocab v;
    make_bert(&v);
    llm_tokenizer *t = opened(write_bert(&v));
    REQUIRE(t);
    CHECK_STR(pieces(t, "The CAFÉ, unaffable.", LLM_TOKENIZE_BOS),
              "[CLS]|▁the|▁cafe|▁,|▁un|aff|able|▁.|[SEP]");
    CHECK_STR(pieces(t, "", LLM_TOKENIZE_BOS), "[CLS]|[SEP]");
    CHECK_STR(pieces(t, "unafable 日 the中the", 0), "[UNK]|[UNK]|▁the|▁中|▁the");
    CHECK_STR(pieces(t, "don't$ Straße i\u0307 \u0130", 0), "▁don|▁'|▁t|▁$|▁straße|▁i|▁i");
    CHECK_STR(pieces(t,
                     "t\x01h\xff\u200d"
                     "e",
                     0),
              "▁the"); /* these characters are dropped */
    CHECK_STR(pieces(t, "a[SEP]a", 0), "▁a|[UNK]|[UNK]|[UNK]|▁a");
    CHECK_STR(pieces(t, "a [SEP] a", LLM_TOKENIZE_SPECIAL), "▁a|[SEP]|▁a");
    CHECK_STR(there_and_back(t, "The cafe, unaffable.", LLM_TOKENIZE_BOS), "the cafe, unaffable.");
    CHECK(llm_tokenizer_is_control(t, 3) && !llm_tokenizer_is_control(t, 1));
    llm_tokenizer_free(t);
}

/* Keys that only bert reads may hold anything elsewhere. */
TEST(ids_that_only_bert_reads) {
    static vocab v;
    const uint32_t wild = 1 << 20;
    for (int k = 0; k < 2; k++) {
        makers[k](&v);
        ggl_gguf_writer *w = write_vocab(&v);
        ggl_gguf_put(w, "tokenizer.ggml.seperator_token_id", GGL_GGUF_U32, false, &wild, 1);
        llm_tokenizer *t = NULL;
        ggl_error err = {0};
        if (k == 0) {
            refuse(w, GGL_FORMAT, "tokenizer.ggml.seperator_token_id is 1048576");
            continue;
        }
        CHECK_OK(from_writer(&t, w, &err), &err);
        llm_tokenizer_free(t);
    }
}

TEST(words_of_bert_have_100_characters) {
    static vocab v;
    char text[3 * 101 + 1] = "";
    make_bert(&v);
    llm_tokenizer *t = from_vocab(&v);
    REQUIRE(t);
    memset(text, 'a', 100);
    CHECK_INT((long)strlen(pieces(t, text, 0)), 4 + 99 * 2);
    memset(text, 'a', 101);
    CHECK_STR(pieces(t, text, 0), "[UNK]");
    llm_tokenizer_free(t);
}

TEST(case_where_the_file_is_silent) {
    static vocab v;
    make_bert(&v);
    for (int cased = 0; cased < 2; cased++) {
        if (cased)
            add(&v, "▁The", 0, NORMAL);
        llm_tokenizer *t = from_vocab(&v);
        REQUIRE(t);
        CHECK_STR(pieces(t, "The cafe café", 0), cased ? "▁The|▁cafe|[UNK]" : "▁the|▁cafe|▁cafe");
        llm_tokenizer_free(t);
    }
}

TEST(t5) {
    static vocab v;
    make_t5(&v);
    for (int prefix = 0; prefix < 2; prefix++) {
        ggl_gguf_writer *w = write_vocab(&v);
        put_bool(w, "tokenizer.ggml.add_space_prefix", prefix);
        put_bool(w, "tokenizer.ggml.remove_extra_whitespaces", true);
        llm_tokenizer *t = opened(w);
        REQUIRE(t);
        CHECK_STR(pieces(t, "  a   abc ", 0), prefix ? "▁a|▁|abc" : "a|▁|abc");
        CHECK_STR(pieces(t, "a", LLM_TOKENIZE_BOS), prefix ? "▁a|</s>" : "a|</s>");
        CHECK_STR(pieces(t,
                         "b日本 \xff"
                         "b",
                         0),
                  prefix ? "▁|b|<unk>|▁|<unk>|b" : "b|<unk>|▁|<unk>|b");
        CHECK_STR(pieces(t, "   ", 0), "");
        CHECK_STR(there_and_back(t, "a abc", LLM_TOKENIZE_BOS), "a abc");
        CHECK_STR(pieces_after(t, "b", "a  abc", 0), "a|▁|abc");
        CHECK_STR(pieces_after(t, "b", "  a", 0), "▁a");
        llm_tokenizer_free(t);
    }
}

static void put_source(ggl_gguf_writer *w, const char *const *piece, const float *score, size_t n,
                       size_t n_scores) {
    ggl_str s[8];
    for (size_t i = 0; i < n; i++)
        s[i] = (ggl_str){piece[i], strlen(piece[i])};
    if (n > 0)
        ggl_gguf_put_strings(w, "tokenizer.ggml.source_pieces", s, n);
    if (n_scores > 0)
        ggl_gguf_put(w, "tokenizer.ggml.source_scores", GGL_GGUF_F32, true, score, n_scores);
}

/* A text is cut by the source's pieces, whatever the tokens are; each becomes the token of its
 * spelling. "abc" and "c" are tokens, but no pieces; "ac" is a piece, but no token. */
TEST(source) {
    static const char *const piece[] = {"▁", "b", "a", "▁a", "ab", "ac", ""};
    static const float score[] = {-3, -3, -3, -2, -1, -1, 0};
    static vocab v;
    make_t5(&v);
    add(&v, "日本", 0, NORMAL);
    add(&v, ">>de<<", 0, USER);
    ggl_gguf_writer *w = write_vocab(&v);
    put_source(w, piece, score, 7, 7);
    put_bool(w, "tokenizer.ggml.add_space_prefix", true);
    put_bool(w, "tokenizer.ggml.remove_extra_whitespaces", true);
    llm_tokenizer *t = opened(w);
    REQUIRE(t);
    CHECK_STR(pieces(t, "aab", LLM_TOKENIZE_BOS), "▁a|ab|</s>");
    CHECK_STR(pieces(t, "abc", 0), "▁|ab|c");    /* c: an unknown character with a token */
    CHECK_STR(pieces(t, "bac", 0), "▁|b|<unk>"); /* ac: a piece without a token */
    CHECK_STR(pieces(t, "acac", 0), "▁|<unk>|<unk>");
    CHECK_STR(pieces(t, "日本 日 本b日本", 0), "▁|日本|▁|<unk>|▁|<unk>|b|日本"); /* runs */
    CHECK_STR(pieces(t, ">>de<< a", 0), ">>de<<|▁a");
    CHECK_STR(there_and_back(t, "abc b日本", 0), "abc b日本");
    llm_tokenizer_free(t);

    static const float none[] = {-1, __builtin_nanf("")};
    w = write_vocab(&v);
    put_source(w, piece, none, 2, 2);
    refuse(w, GGL_FORMAT, "source_scores of piece 1 is not a number");
    w = write_vocab(&v);
    put_source(w, piece, score, 3, 2);
    refuse(w, GGL_FORMAT, "source_scores has 2 entries, for 3 pieces");
    w = write_vocab(&v);
    put_source(w, piece, score, 0, 2);
    refuse(w, GGL_FORMAT, "source_pieces is missing, but tokenizer.ggml.source_scores is there");
    w = write_vocab(&v);
    put_source(w, piece, score, 2, 0);
    refuse(w, GGL_FORMAT, "source_scores is missing, but tokenizer.ggml.source_pieces is there");
    w = write_vocab(&v);
    ggl_gguf_put_string(w, "tokenizer.ggml.source_pieces", "a", 1);
    put_source(w, piece, score, 0, 1);
    refuse(w, GGL_FORMAT, "source_pieces is not an array of 1 to");
    make_t5(&v);
    v.type[2] = NORMAL;
    w = write_vocab(&v);
    put_source(w, piece, score, 2, 2);
    refuse(w, GGL_FORMAT, "there is no unknown token, which pieces of");
}

TEST(rwkv) {
    static vocab v;
    make_rwkv(&v);
    llm_tokenizer *t = from_vocab(&v);
    REQUIRE(t);
    CHECK_STR(pieces(t, "\t\n\rabcabx\\n'\"<s>", 0),
              "\\t\\n\\r|abc|ab|\\x78|\\\\n|\\'\"|\\x3c|\\x73|\\x3e");
    CHECK_STR(there_and_back(t, "\t\n\r日本 中\\n", 0), "\t\n\r日本 中\\n");
    llm_tokens ids = {0};
    CHECK_OK(llm_tokenize(t, "\0\xff", 2, 0, &ids, NULL), NULL);
    CHECK(ids.n == 2 && ids.id[0] == 1 && ids.id[1] == 256);
    llm_tokens_fini(&ids);
    llm_tokenizer_free(t);
}

TEST(plamo2) {
    static vocab v;
    make_plamo2(&v);
    llm_tokenizer *t = from_vocab(&v);
    REQUIRE(t);
    CHECK_STR(pieces(t, "aba", 0), "ab|a"); /* of equals the longest that comes first */
    CHECK_STR(pieces(t, "bab", 0), "ba|b");
    CHECK_STR(pieces(t, "日本\xff", 0), "日|<0xE6>|<0x9C>|<0xAC>|<0xFF>");
    CHECK_STR(pieces(t, "<|plamo:bos|>", LLM_TOKENIZE_SPECIAL), "<|plamo:bos|>");
    CHECK_STR(there_and_back(t, " ab 日本\xff\n", 0), " ab 日本\xff\n");
    llm_tokenizer_free(t);
}

TEST(gemma4) {
    static vocab v;
    make_gemma4(&v);
    const uint32_t bos = 1;
    ggl_gguf_writer *w = write_vocab(&v);
    ggl_gguf_put(w, "tokenizer.ggml.bos_token_id", GGL_GGUF_U32, false, &bos, 1);
    put_bool(w, "tokenizer.ggml.add_bos_token", false);
    llm_tokenizer *t = opened(w);
    REQUIRE(t);
    CHECK_STR(pieces(t, "a a ab\n\nb", LLM_TOKENIZE_BOS), "<bos>|a|▁a|▁a|b|\n\n|b");
    CHECK_STR(pieces(t, "\n\n\n", 0), "\n|\n|\n"); /* no such token, and no merge of newlines */
    CHECK_STR(pieces(t, "é\xff", 0), "<0xC3>|<0xA9>|<0xFF>");
    CHECK_STR(there_and_back(t, "  a ab\n\n\té", LLM_TOKENIZE_BOS), "  a ab\n\n\té");
    llm_tokenizer_free(t);
}

/* A file without types: <0xNN> are the bytes' tokens, and no text becomes them by merges. */
TEST(bytes_without_types) {
    static vocab v;
    make_gemma4(&v);
    static const char *const words[] = {"<", "0", "x", "6", "1", ">", "<0", "<0x", "<0x6", "<0x61"},
                             *const merges[] = {"< 0", "<0 x", "<0x 6", "<0x6 1", "<0x61 >"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        add(&v, words[i], 0, NORMAL);
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_str merge[5];
    for (int k = 0; k < 5; k++)
        merge[k] = (ggl_str){merges[k], strlen(merges[k])};
    ggl_gguf_put_string(w, "tokenizer.ggml.model", v.model, strlen(v.model));
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", v.piece, v.n);
    ggl_gguf_put_strings(w, "tokenizer.ggml.merges", merge, 5);
    llm_tokenizer *t = opened(w);
    REQUIRE(t);
    CHECK_STR(there_and_back(t, "<0x61>", 0), "<0x61>");
    CHECK_STR(there_and_back(t, "a\xc3\xa9", 0), "a\xc3\xa9");
    llm_tokenizer_free(t);
}

TEST(hybriddna) {
    static vocab v = {.model = "hybriddna"};
    ADD_ALL(&v, 0, "A", "C", "G", "T", "N", "a", "<", ">", "/", "d", "n", "x", "<dna>", "</dna>",
            "<oov>", "ACGTAC\uE000", "AAAAAA\uE000");
    llm_tokenizer *t = from_vocab(&v);
    REQUIRE(t);
    CHECK_STR(pieces(t, "AC<dna>acgtacNNNNNNA</dna>x", 0),
              "A|C|<dna>|ACGTAC\uE000|<oov>|AAAAAA\uE000|</dna>|x");
    CHECK_STR(pieces(t, "<dna>", 0), "<dna>");
    CHECK_STR(pieces(t, "<dna>ACGTAC", 0), "<dna>|ACGTAC\uE000");
    CHECK_STR(there_and_back(t, "A<dna>ACGTAC</dna>", 0), "A<dna>ACGTAC</dna>");
    llm_tokenizer_free(t);
}

TEST(no_tokenizer) {
    static vocab v = {.model = "none"};
    add(&v, "a", 0, NORMAL);
    refuse(write_vocab(&v), GGL_NOT_FOUND, "tokenizer.ggml.model is 'none'");
    v.model = "no_vocab";
    refuse(write_vocab(&v), GGL_NOT_FOUND, "the model accepts only token ids");
}

/* A script that no vocabulary here has, bytes that are no UTF-8, NUL: ids of the vocabulary come of
 * them, and where there are tokens for bytes, the text comes back. */
TEST(texts_that_no_vocabulary_knows) {
    static const struct {
        const char *text;
        size_t n;
    } texts[] = {{"ᚠᚢᚦ नमस्ते", 28}, {"\xff\xc3(\xed\xa0\x80\xf8", 7}, {"a\0b\0", 4}, {"\0", 1},
                 {"\xe6\x97", 2},  {"\xf0\x9f\x98\x81", 4}};
    static vocab v;
    for (int k = 0; k < N_MAKERS; k++) {
        makers[k](&v);
        llm_tokenizer *t = from_vocab(&v);
        REQUIRE(t);
        const char *kind = llm_tokenizer_kind_name(t);
        bool back =
            strcmp(kind, "wordpiece") != 0 && strcmp(kind, "unigram") != 0 && k < N_MAKERS - 1;
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            llm_tokens ids = {0};
            char *text = NULL;
            size_t size = 0;
            CHECK_OK(llm_tokenize(t, texts[i].text, texts[i].n, 0, &ids, NULL), NULL);
            for (size_t j = 0; j < ids.n; j++)
                CHECK(ids.id[j] >= 0 && ids.id[j] < llm_tokenizer_n_vocab(t));
            CHECK_OK(llm_detokenize(t, ids.id, ids.n, false, &text, &size, NULL), NULL);
            bool same = size == texts[i].n && memcmp(text, texts[i].text, size) == 0;
            CHECK_MSG(same || !back, "%s: text %zu does not come back", v.model, i);
            ggl_free(text);
            llm_tokens_fini(&ids);
        }
        llm_tokenizer_free(t);
    }
}

/* ---- running time ---- */

/* The steps are counted, so a longer text would show nothing more. */
TEST(long_texts_without_a_space) {
    enum { BIG = 1 << 17 };
    static const char *const fills[] = {"a", "\xff", "日", "abcx"};
    static char text[BIG];
    static vocab v;
    for (int k = 0; k < N_MAKERS; k++) {
        makers[k](&v);
        llm_tokenizer *t = from_vocab(&v);
        REQUIRE(t);
        for (size_t f = 0; f < sizeof fills / sizeof *fills; f++) {
            char what[64];
            for (size_t i = 0; i < BIG; i++)
                text[i] = fills[f][i % strlen(fills[f])];
            snprintf(what, sizeof what, "%s, '%s'", v.model, fills[f]);
            test_linear(what, steps_of(t, text, BIG / 8, NULL), steps_of(t, text, BIG, NULL), 8);
        }
        llm_tokenizer_free(t);
    }
}

/* Tokens x, xx, xxx, .., of which each place of the text has many, and one that never quite fits. */
TEST(tokens_that_almost_fit) {
    enum { BIG = 200000, LONG = 2000 };
    static char text[BIG], spelling[LONG];
    static vocab v;
    memset(text, 'x', BIG);
    memset(spelling, 'x', LONG);
    for (int last = 0; last < 2; last++)
        for (int k = 0; k < N_MAKERS; k++) {
            makers[k](&v);
            spelling[LONG - 1] = last ? 'y' : 'x';
            spelling[0] = last ? 'x' : 'y';
            v.piece[v.n] = (ggl_str){spelling, LONG};
            v.type[v.n] = NORMAL;
            v.score[v.n++] = -1;
            llm_tokenizer *t = from_vocab(&v);
            REQUIRE(t);
            uint64_t steps = steps_of(t, text, BIG, NULL);
            CHECK_MSG(steps < 100 * BIG, "%s: %" PRIu64 " steps", v.model, steps);
            llm_tokenizer_free(t);
        }
}

/* Each place of the text has as many tokens that end (plamo2: begin) there as a vocabulary may have; one more is refused. */
TEST(tokens_within_tokens) {
    enum { MOST = 512, TEXT = 20000 };
    static char x[TEXT];
    static vocab v;
    memset(x, 'x', sizeof x);
    for (int k = 1; k < 4; k += 2) { /* t5 and plamo2 */
        uint64_t steps[2];
        makers[k](&v);
        int n_x = 0; /* those that it has already */
        for (size_t i = 0; i < v.n; i++)
            n_x += v.piece[i].n > 0 && strspn(v.piece[i].s, "x") >= v.piece[i].n;
        for (int n = n_x; n < MOST; n++) {
            v.piece[v.n] = (ggl_str){x, (size_t)n + 1};
            v.type[v.n] = NORMAL;
            v.score[v.n++] = -1;
        }
        llm_tokenizer *t = from_vocab(&v);
        REQUIRE(t);
        steps[0] = steps_of(t, x, TEXT / 8, NULL);
        steps[1] = steps_of(t, x, TEXT, NULL);
        CHECK_MSG(steps[1] < (MOST + 16) * (uint64_t)TEXT, "%s: %" PRIu64 " steps", v.model,
                  steps[1]);
        test_linear(v.model, steps[0], steps[1], 8);
        llm_tokenizer_free(t);
        v.piece[v.n] = (ggl_str){x, MOST + 1};
        v.type[v.n] = NORMAL;
        v.score[v.n++] = -1;
        refuse(write_vocab(&v), GGL_LIMIT,
               "is the last of 513 tokens that are each at the end of the next one, at most 512");
    }
}

/* ---- hostile files ---- */

TEST(scores_that_are_none) {
    static vocab v;
    for (int k = 1; k < 4; k += 2) { /* t5 and plamo2 */
        makers[k](&v);
        v.score[5] = __builtin_nanf("");
        refuse(write_vocab(&v), GGL_FORMAT, "scores of token 5 is not a number");
        v.score[5] = -__builtin_inff();
        refuse(write_vocab(&v), GGL_FORMAT, "scores of token 5 is infinite");
        v.score[5] = -3.4e38f; /* lies, but is harmless */
        llm_tokenizer *t = from_vocab(&v);
        REQUIRE(t);
        CHECK(steps_of(t, "abcab", 5, NULL) > 0);
        llm_tokenizer_free(t);
    }
}

TEST(equal_and_empty_tokens) {
    static vocab v;
    for (int k = 0; k < N_MAKERS; k++) {
        makers[k](&v);
        add(&v, "", 0, NORMAL);
        add(&v, "", 0, CONTROL);
        add(&v, "▁", -1, NORMAL);
        add(&v, "a", -100, NORMAL);
        add(&v, "a", 100, NORMAL);
        llm_tokenizer *t = from_vocab(&v);
        REQUIRE(t);
        llm_tokens ids = {0};
        CHECK_OK(llm_tokenize(t, "a", 1, 0, &ids, NULL), NULL);
        CHECK(ids.n >= 1 && ids.id[0] != (int32_t)v.n - 1);
        llm_tokens_fini(&ids);
        llm_tokenizer_free(t);
    }
}

TEST(missing_unknown_and_bytes) {
    static vocab v;
    make_t5(&v);
    v.type[2] = NORMAL;
    refuse(write_vocab(&v), GGL_FORMAT, "neither a token for byte 0x00 nor an unknown token");
    make_rwkv(&v);
    v.type[11] = UNUSED;
    refuse(write_vocab(&v), GGL_FORMAT, "neither a token for byte 0x0A nor an unknown token");
    make_plamo2(&v);
    v.type[0] = CONTROL;
    v.type[2] = UNUSED;
    refuse(write_vocab(&v), GGL_FORMAT, "neither a token for byte 0x00 nor an unknown token");
    make_bert(&v);
    v.text[1][1] = 'V';
    refuse(write_vocab(&v), GGL_FORMAT, "there is no unknown token");
}

TEST(escapes_that_are_none) {
    static const char *const wrong[] = {"\\", "a\\", "\\x", "\\x1", "\\xg1", "\\x1g", "ab\\x"};
    static vocab v;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        make_rwkv(&v);
        add(&v, wrong[i], 0, NORMAL);
        refuse(write_vocab(&v), GGL_FORMAT, "token 263 is spelled");
    }
}

static void put_map(ggl_gguf_writer *w, const uint8_t *bytes, size_t n) {
    ggl_gguf_put(w, "tokenizer.ggml.precompiled_charsmap", GGL_GGUF_U8, true, bytes, n);
}

static ggl_error map_error;

TEST(charsmaps) {
    static vocab v;
    make_t5(&v);
    /* the root's child by 'A' (0x41 ^ 1) has a value (its offset is 1), the place of "bc" */
    uint8_t map[4 + 4 * 80 + 4] = {0};
    const struct {
        int unit;
        uint32_t value;
    } units[] = {{0, 1 << 10}, {0x40, 1 << 10 | 1 << 8 | 'A'}, {0x41, 1u << 31 | 1}};
    map[0] = (4 * 80) & 0xff;
    map[1] = (4 * 80) >> 8;
    for (int i = 0; i < 3; i++)
        for (int b = 0; b < 4; b++)
            map[4 + 4 * units[i].unit + b] = (uint8_t)(units[i].value >> 8 * b);
    memcpy(map + 4 + 4 * 80, "\0bc", 4);
    ggl_gguf_writer *w = write_vocab(&v);
    put_map(w, map, sizeof map);
    llm_tokenizer *t = opened(w);
    REQUIRE(t);
    CHECK_STR(pieces(t, "aAA", 0), "abc|b|c");
    llm_tokenizer_free(t);

    for (size_t n = 1; n < sizeof map; n += 13) { /* cut off */
        w = write_vocab(&v);
        put_map(w, map, n);
        refuse(w, GGL_FORMAT, "tokenizer.ggml.precompiled_charsmap has");
    }
    w = write_vocab(&v);
    ggl_gguf_put_string(w, "tokenizer.ggml.precompiled_charsmap", "abc", 3);
    refuse(w, GGL_FORMAT, "not an array of bytes");

    uint64_t seed = 5;
    for (int round = 0; round < 2000; round++) { /* units that lead anywhere */
        uint8_t wild[sizeof map];
        memcpy(wild, map, sizeof map);
        for (int i = 0; i < 8; i++)
            wild[4 + test_random(&seed) % (4 * 80)] = (uint8_t)test_random(&seed);
        w = write_vocab(&v);
        put_map(w, wild, sizeof wild);
        REQUIRE((t = opened(w)));
        char text[64];
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (char)(test_random(&seed) % 2 ? 'A' : test_random(&seed));
        (void)steps_of(t, text, 0, NULL);
        llm_tokens ids = {0};
        ggl_error err = (ggl_error){0};
        ggl_status s = llm_tokenize(t, text, sizeof text, 0, &ids, &err);
        CHECK_MSG(s == GGL_OK || (s == GGL_FORMAT && strstr(err.msg, "precompiled_charsmap")), "%s",
                  err.msg);
        llm_tokens_fini(&ids);
        llm_tokenizer_free(t);
    }
}

/* A map of one string of 'A's, whose last unit leads back to the first if `circle`; what replaces it has n_to bytes. */
static ggl_status tokenize_by_map(bool circle, size_t n_to, size_t n_text) {
    static vocab v;
    static uint8_t map[4 + 4 * 512 + 300];
    static char text[1000];
    const uint32_t leaf = 1u << 31;
    /* root: offset 1; 'A' (0x41 ^ 1 = 0x40): ends a string, offset 0x100 (its value at 0x140), or back to 0x40 by its own byte */
    const struct {
        int unit;
        uint32_t value;
    } units[] = {{0, 1 << 10},
                 {0x40, (circle ? 0x41 : 0x100) << 10 | (circle ? 0 : 1 << 8) | 'A'},
                 {0x140, leaf}};
    memset(map, 0, sizeof map);
    make_t5(&v);
    map[1] = 4 * 512 >> 8;
    for (int i = 0; i < 3; i++)
        for (int b = 0; b < 4; b++)
            map[4 + 4 * units[i].unit + b] = (uint8_t)(units[i].value >> 8 * b);
    memset(map + 4 + 4 * 512, 'b', n_to);
    ggl_gguf_writer *w = write_vocab(&v);
    put_map(w, map, 4 + 4 * 512 + n_to + 1);
    llm_tokenizer *t;
    llm_tokens ids = {0};
    map_error = (ggl_error){0};
    ggl_status s = from_writer(&t, w, &map_error);
    memset(text, 'A', n_text);
    if (s == GGL_OK)
        s = llm_tokenize(t, text, n_text, 0, &ids, &map_error);
    llm_tokens_fini(&ids);
    llm_tokenizer_free(t);
    return s;
}

TEST(charsmaps_that_grow_the_text) {
    CHECK_OK(tokenize_by_map(false, 16, 100), &map_error);
    CHECK_INT(tokenize_by_map(false, 17, 100), GGL_FORMAT);
    CHECK_HAS(map_error.msg,
              "precompiled_charsmap replaces 1 bytes by 17, at most 16 times as many");
    CHECK_OK(tokenize_by_map(true, 1, 256), &map_error);
    CHECK_INT(tokenize_by_map(true, 1, 257), GGL_FORMAT);
    CHECK_HAS(map_error.msg, "has a string of more than 256 bytes");
}

TEST(failing_allocations) {
    static vocab v;
    static const char *const source[] = {"▁", "a", "b"};
    static const float score[] = {-1, -2, -3};
    for (int k = 0; k <= N_MAKERS; k++) {
        (k < N_MAKERS ? makers[k] : make_t5)(&v);
        ggl_gguf_writer *w = write_vocab(&v);
        if (k == N_MAKERS)
            put_source(w, source, score, 3, 3);
        fail_each_allocation(w, 10);
    }
}
