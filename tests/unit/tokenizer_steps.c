/* Tokenizers that are described as in a tokenizer.json: what the library that defines them does not have (parts of a text that are only text,
 * texts that go on), hostile files, steps and allocations. Their ids are compared with the library's in tests/real/tokenizer_json.py. */
#include "tokenizer_test.h"

/* A tokenizer with these pieces, separated by spaces, of types by their first letter: < control, + user-defined (without the +), others normal.
 * In json, ' stands for ". */
static ggl_gguf_writer *write_steps(const char *pieces, const char *json) {
    static vocab v;
    static char steps[8192];
    memset(&v, 0, sizeof v);
    v.model = "steps";
    for (const char *s = pieces; *s;) {
        char piece[MAX_PIECE];
        const size_t n = strcspn(s, " ");
        snprintf(piece, sizeof piece, "%.*s", (int)n, s);
        add(&v, piece[0] == '+' ? piece + 1 : piece, (float)-(double)n,
            piece[0] == '<' && piece[1] != '0' ? CONTROL
            : piece[0] == '+'                  ? USER
                                               : NORMAL);
        s += n + (s[n] == ' ');
    }
    snprintf(steps, sizeof steps, "%s", json);
    for (char *c = steps; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    ggl_gguf_writer *w = write_vocab(&v);
    ggl_gguf_put_string(w, "tokenizer.ggl.steps", steps, strlen(steps));
    return w;
}

static llm_tokenizer *of(const char *pieces, const char *json) {
    return opened(write_steps(pieces, json));
}

#define LEVELS "'model': {'type': 'WordLevel', 'unk_token': '?'}"
#define WHITE  "'pre_tokenizer': {'type': 'WhitespaceSplit'}"

/* The pieces of a text of which the bytes [from, to) are only text. */
static const char *pieces_given(const llm_tokenizer *t, const char *text, size_t from, size_t to) {
    llm_span span = {from, to};
    const llm_spans given = {&span, 1, 1};
    llm_tokens list = {0};
    CHECK_OK(llm_tokenize_given(t, &given, text, strlen(text), LLM_TOKENIZE_SPECIAL, &list, NULL),
             NULL);
    const char *out = pieces_from(t, &list, 0);
    llm_tokens_fini(&list);
    return out;
}

TEST(parts_that_are_text) {
    /* <a> is found in the text as it is, <b> after the normalizer */
    llm_tokenizer *t =
        of("? <a> <b> +u x <c",
           "{'normalizer': {'type': 'Lowercase'}, " WHITE
           ", 'added_tokens': [{'id': 1, 'special': true}, "
           "{'id': 2, 'special': true, 'normalized': true}, {'id': 3}], " LEVELS "}");
    REQUIRE(t);
    CHECK_STR(pieces(t, "x<a>x<B>x u", LLM_TOKENIZE_SPECIAL), "x|<a>|x|<b>|x|u");
    CHECK_STR(pieces(t, "x <a> x <b> x u", 0), "x|?|x|?|x|u");
    CHECK_STR(pieces_given(t, "x <a> <b> x u", 2, 5), "x|?|<b>|x|u");
    CHECK_STR(pieces_given(t, "x <a> <b> x u", 6, 9), "x|<a>|?|x|u");
    CHECK_STR(pieces_given(t, "x <a> <b> x u", 4, 7), "x|?|?|x|u"); /* a byte of each */
    CHECK_STR(pieces_given(t, "x <a> <b> x u", 0, 13), "x|?|?|x|u");
    /* no piece of the model becomes a control token either */
    CHECK_STR(pieces(t, "<c", LLM_TOKENIZE_SPECIAL), "<c");
    CHECK_STR(pieces(t, "<c", 0), "?");
    llm_tokenizer_free(t);
    /* a control token is special, whatever the steps say */
    t = of("? <a> x", "{" WHITE ", 'added_tokens': [{'id': 1}], " LEVELS "}");
    REQUIRE(t);
    CHECK_STR(pieces(t, "x <a>", LLM_TOKENIZE_SPECIAL), "x|<a>");
    CHECK_STR(pieces(t, "x <a>", 0), "x|?");
    CHECK_STR(pieces_given(t, "x <a> <a>", 2, 5), "x|?|<a>");
    llm_tokenizer_free(t);
    /* white space that a token has taken is no other token that would take it */
    t = of(
        "? +_ x",
        "{'normalizer': {'type': 'Replace', 'pattern': {'String': '_'}, 'content': ' '}, "
        "'added_tokens': [{'id': 1, 'normalized': true, 'lstrip': true, 'rstrip': true}], " LEVELS
        "}");
    REQUIRE(t);
    CHECK_STR(pieces(t, "x   x", 0), "x|_|x");
    llm_tokenizer_free(t);
    /* unknown characters of a long text are one token, also where they spell a control token */
    t = of("? < x", "{'model': {'type': 'BPE', 'unk_token': '?', 'fuse_unk': true}}");
    REQUIRE(t);
    char text[101] = {0};
    memset(text, '<', 100);
    CHECK_STR(pieces(t, text, 0), "?");
    llm_tokenizer_free(t);
}

/* As llm-train --add-token puts them behind the others. */
TEST(tokens_that_the_list_does_not_have) {
    llm_tokenizer *t = of("? a <new> +more", "{" WHITE ", 'added_tokens': [], " LEVELS "}");
    REQUIRE(t);
    CHECK_STR(pieces(t, "a<new>a more amore", LLM_TOKENIZE_SPECIAL), "a|<new>|a|more|a|more");
    CHECK_STR(pieces(t, "a<new> a more", 0), "?|a|more");
    llm_tokenizer_free(t);
}

TEST(texts_that_go_on) {
    static const char *const steps[] = {"'normalizer': {'type': 'Prepend', 'prepend': '_'}",
                                        "'pre_tokenizer': {'type': 'Metaspace', 'replacement': "
                                        "'_', 'prepend_scheme': 'always', 'split': false}",
                                        "'pre_tokenizer': {'type': 'Metaspace', 'replacement': "
                                        "'_', 'prepend_scheme': 'first', 'split': false}"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char json[512];
        snprintf(json, sizeof json,
                 "{%s, 'added_tokens': [{'id': 3, 'special': true}], 'model': {'type': 'BPE'}}",
                 steps[i]);
        llm_tokenizer *t = of("_ x y <s>", json);
        REQUIRE(t);
        CHECK_STR(pieces(t, "xy", LLM_TOKENIZE_SPECIAL), "_|x|y");
        CHECK_STR(pieces_after(t, "x", "y", LLM_TOKENIZE_SPECIAL), "y");
        CHECK_STR(pieces_after(t, "x", "y<s>x", LLM_TOKENIZE_SPECIAL),
                  i < 2 ? "y|<s>|_|x" : "y|<s>|x");
        CHECK_STR(pieces(t, "x<s>y", LLM_TOKENIZE_SPECIAL), i < 2 ? "_|x|<s>|_|y" : "_|x|<s>|y");
        llm_tokenizer_free(t);
    }
}

TEST(ends) {
    ggl_gguf_writer *w = write_steps(
        "? a <s> <t>",
        "{" WHITE
        ", 'added_tokens': [{'id': 2, 'special': true}, {'id': 3, 'special': true}], " LEVELS "}");
    ggl_gguf_put(w, "tokenizer.ggl.before", GGL_GGUF_I32, true, (int32_t[]){2, 3}, 2);
    ggl_gguf_put(w, "tokenizer.ggl.after", GGL_GGUF_I32, true, (int32_t[]){3, 3}, 2);
    llm_tokenizer *t = opened(w);
    REQUIRE(t);
    CHECK_STR(pieces(t, "a", LLM_TOKENIZE_BOS), "<s>|<t>|a|<t>|<t>");
    CHECK_STR(pieces(t, "a", 0), "a");
    llm_tokenizer_free(t);
    w = write_steps("? a", "{" WHITE ", " LEVELS "}");
    ggl_gguf_put(w, "tokenizer.ggl.after", GGL_GGUF_I32, true, (int32_t[]){2}, 1);
    refuse(w, GGL_FORMAT, "tokenizer.ggl.after: entry 0 is no token");
}

/* Pieces as text while a model writes them, one by one. */
static const char *streamed(const llm_tokenizer *t, const char *text) {
    static char out[256];
    size_t used = 0;
    llm_tokens list = {0};
    bool has_begun = false;
    CHECK_OK(llm_tokenize(t, text, strlen(text), LLM_TOKENIZE_SPECIAL, &list, NULL), NULL);
    for (size_t i = 0; i < list.n; i++) {
        const ggl_str s = llm_token_next_text(t, list.id[i], false, &has_begun);
        used += (size_t)snprintf(out + used, sizeof out - used, "%.*s", (int)s.n, s.s);
    }
    llm_tokens_fini(&list);
    return out;
}

TEST(text_of_tokens) {
    llm_tokenizer *t =
        of("? _a _b <0xC3> <0xA9>",
           "{'pre_tokenizer': {'type': 'Metaspace', 'replacement': '_', 'prepend_scheme': "
           "'always'}, 'decoder': {'type': "
           "'Sequence', 'decoders': [{'type': 'Replace', 'pattern': {'String': '_'}, 'content': ' "
           "'}, {'type': 'ByteFallback'}, "
           "{'type': 'Fuse'}, {'type': 'Strip', 'content': ' ', 'start': 1, 'stop': 0}]}, " LEVELS
           "}");
    REQUIRE(t);
    CHECK_STR(streamed(t, "a b"), "a b");
    char *text;
    size_t n;
    REQUIRE_OK(llm_detokenize(t, (int32_t[]){1, 3, 4, 2}, 4, false, &text, &n, NULL), NULL);
    CHECK_STR(text, "a\xc3\xa9 b");
    ggl_free(text);
    llm_tokenizer_free(t);
    t = of("? a b ##c", "{'pre_tokenizer': {'type': 'Whitespace'}, 'decoder': {'type': "
                        "'WordPiece', 'prefix': '##', 'cleanup': true}, 'model': {'type': "
                        "'WordPiece', 'unk_token': '?', 'continuing_subword_prefix': '##', "
                        "'max_input_chars_per_word': 5}}");
    REQUIRE(t);
    CHECK_STR(pieces(t, "ac bcc acccccc", 0), "a|##c|b|##c|##c|?");
    CHECK_STR(streamed(t, "ac bcc"), "ac bcc");
    llm_tokenizer_free(t);
    t = of("a</w> b</w> c", "{'pre_tokenizer': {'type': 'WhitespaceSplit'}, 'decoder': {'type': "
                            "'BPEDecoder', 'suffix': '</w>'}, 'model': {'type': 'BPE', "
                            "'end_of_word_suffix': '</w>'}}");
    REQUIRE(t);
    CHECK_STR(streamed(t, "ca b"), "ca b "); /* whether a word is the last one is not known */
    CHECK_STR(there_and_back(t, "ca b", 0), "ca b");
    llm_tokenizer_free(t);
}

/* Decodes three ids; returns the text with . for NUL. */
static const char *shown(const llm_tokenizer *t, int32_t a, int32_t b, int32_t c) {
    static char out[64];
    char *text = NULL;
    size_t n = 0;
    CHECK_OK(llm_detokenize(t, (int32_t[]){a, b, c}, 3, true, &text, &n, NULL), NULL);
    for (size_t i = 0; i < n && i < sizeof out - 1; i++)
        out[i] = text[i] ? text[i] : '.';
    out[n < sizeof out ? n : sizeof out - 1] = '\0';
    ggl_free(text);
    return out;
}

TEST(pieces_with_nul) {
    static const char *const steps =
        "{\"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, \"decoder\": {\"type\": "
        "\"WordPiece\", \"prefix\": \"##\", \"cleanup\": false}, \"model\": {\"type\": "
        "\"WordPiece\", \"marked\": true, \"unk_token\": \"[UNK]\", "
        "\"continuing_subword_prefix\": \"##\"}}";
    static vocab v;
    for (int k = 0; k < 2; k++) {
        memset(&v, 0, sizeof v);
        v.model = k ? "bert" : "steps";
        for (int i = 0; i < 4; i++)
            add(&v, i == 0 ? "[UNK]" : "x", 0, i == 0 ? UNKNOWN : NORMAL);
        v.piece[1] = (ggl_str){"\xe2\x96\x81x", 4};
        v.piece[2] = (ggl_str){"\xe2\x96\x81y\0zzzzzzzzzzzzzz", 19};
        v.piece[3] = (ggl_str){"\0zzzzzzzzzzzzzz", 15};
        ggl_gguf_writer *w = write_vocab(&v);
        if (k == 0)
            ggl_gguf_put_string(w, "tokenizer.ggl.steps", steps, strlen(steps));
        llm_tokenizer *t = opened(w);
        REQUIRE(t);
        CHECK_STR(shown(t, 1, 2, 3), "x y.zzzzzzzzzzzzzz.zzzzzzzzzzzzzz");
        llm_tokenizer_free(t);
    }
}

TEST(refusals) {
    static const struct {
        const char *json, *words;
    } list[] = {
        {"{", "tokenizer.ggl.steps:1:2:"},
        {"{}", "model: the type 'none' is not known"},
        {"{'normalizer': {'type': 'Upper'}, " LEVELS "}",
         "normalizer: a step 'Upper' is not known"},
        {"{'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [{'type': 'Digits'}]}, " LEVELS
         "}",
         "pre_tokenizer: 'individual_digits' of a step 'Digits' is missing; it should be true or "
         "false"},
        {"{'normalizer': {'type': 'Replace', 'pattern': {'Regex': 'a*'}, 'content': ''}, " LEVELS
         "}",
         "normalizer: the pattern 'a*': it can match no character at all"},
        {"{'pre_tokenizer': {'type': 'FixedLength', 'length': 0}, " LEVELS "}",
         "'length' of a step is 0"},
        {"{'added_tokens': [{'id': 9}], " LEVELS "}", "added_tokens: entry 0 has no id of a token"},
        {"{'added_tokens': [{'id': 1}, {'id': 1}], " LEVELS "}",
         "added_tokens: entry 1 is empty, or there twice"},
        {"{'normalizer': {'type': 'Strip', 'strip_left': true, 'strip_right': true}, "
         "'added_tokens': [{'id': 2, 'normalized': true}], " LEVELS "}",
         "added_tokens: nothing is left of"},
        {"{'normalizer': {'type': 'Precompiled', 'precompiled_charsmap': '!'}, " LEVELS "}",
         "precompiled_charsmap is not base64"},
        {"{'model': {'type': 'BPE', 'dropout': 0.5}}", "a 'dropout' of 0.5"},
        {"{'model': {'type': 'Unigram', 'unk_id': 7}}", "'unk_id' is not the id of a token"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        refuse(write_steps("? a \xe3\x80\x80", list[i].json),
               i >= 1 &&
                       (strstr(list[i].words, "not known") ||
                        strstr(list[i].words, "no character") || strstr(list[i].words, "dropout") ||
                        strstr(list[i].words, "nothing is left"))
                   ? GGL_UNSUPPORTED
                   : GGL_FORMAT,
               list[i].words);
}

/* Each of 30 added tokens may become 64,000 bytes long, all of them together may not. */
TEST(long_added_tokens) {
    enum { N = 30 };
    char json[4096], pieces_[N * 4 + 8] = "?", *p = json;
    p += sprintf(p, "{'normalizer': {'type': 'Sequence', 'normalizers': [");
    for (int i = 0; i < 3; i++)
        p += sprintf(p, "%s{'type': 'Replace', 'pattern': {'String': 'a'}, 'content': '%.40s'}",
                     i ? ", " : "", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    p += sprintf(p, "]}, 'added_tokens': [");
    for (int i = 1; i <= N; i++) {
        p += sprintf(p, "%s{'id': %d, 'normalized': true}", i > 1 ? ", " : "", i);
        sprintf(pieces_ + strlen(pieces_), " a%c", 'A' + i - 1);
    }
    sprintf(p, "], " LEVELS "}");
    refuse(write_steps(pieces_, json), GGL_UNSUPPORTED,
           "added_tokens: the normalizer makes them longer than 256 times");
}

/* A text fails with these words. */
static void fails(const char *pieces_, const char *json, const char *text, ggl_status status,
                  const char *words) {
    llm_tokenizer *t = of(pieces_, json);
    llm_tokens list = {0};
    ggl_error err = {0};
    REQUIRE(t);
    CHECK_INT(llm_tokenize(t, text, strlen(text), 0, &list, &err), status);
    CHECK_HAS(err.msg, words);
    llm_tokens_fini(&list);
    llm_tokenizer_free(t);
}

TEST(texts_that_fail) {
    fails("a", "{" WHITE ", 'model': {'type': 'WordLevel', 'unk_token': '?'}}", "a b",
          GGL_UNSUPPORTED, "no token for 'b', and no unknown token");
    fails("a", "{" WHITE ", 'model': {'type': 'Unigram'}}", "ab", GGL_UNSUPPORTED,
          "no token for 'b', and no unknown token");
    /* each step makes 64 of one: 64^8 bytes */
    char json[4096] = "{'normalizer': {'type': 'Sequence', 'normalizers': [", sixty_four[65];
    memset(sixty_four, 'a', 64);
    sixty_four[64] = '\0';
    for (int i = 0; i < 8; i++)
        snprintf(json + strlen(json), sizeof json - strlen(json),
                 "%s{'type': 'Replace', 'pattern': {'String': 'a'}, 'content': '%s'}",
                 i ? ", " : "", sixty_four);
    snprintf(json + strlen(json), sizeof json - strlen(json), "]}, " LEVELS "}");
    fails("? a", json, "aaaa", GGL_NOMEM, "more than 256 times as long");
    strcpy(json, "{'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [");
    for (int i = 0; i < 40; i++)
        snprintf(json + strlen(json), sizeof json - strlen(json),
                 "%s{'type': 'ByteLevel', 'use_regex': false}", i ? ", " : "");
    snprintf(json + strlen(json), sizeof json - strlen(json), "]}, " LEVELS "}");
    fails("? a", json, "\xc3\xa9", GGL_NOMEM, "more than 256 times as long");
}

TEST(decoders_that_grow) {
    /* each step makes 64 of one: 64^8 bytes, of each token when the file is opened */
    char json[4096] = "{'decoder': {'type': 'Sequence', 'decoders': [", sixty_four[65];
    memset(sixty_four, 'a', 64);
    sixty_four[64] = '\0';
    for (int i = 0; i < 8; i++)
        snprintf(json + strlen(json), sizeof json - strlen(json),
                 "%s{'type': 'Replace', 'pattern': {'String': 'a'}, 'content': '%s'}",
                 i ? ", " : "", sixty_four);
    snprintf(json + strlen(json), sizeof json - strlen(json), "]}, " LEVELS "}");
    refuse(write_steps("? a", json), GGL_NOMEM, "");
}

/* Steps for texts and tokenizers that make a naive program quadratic. */
TEST(time) {
    static const struct {
        const char *pieces, *json, *text;
    } list[] = {
        {"? a", "{'normalizer': {'type': 'NFC'}, " WHITE ", " LEVELS "}", "\xcc\xa3\xcc\x81"},
        {"? +w",
         "{" WHITE ", 'added_tokens': [{'id': 1, 'rstrip': true, 'lstrip': true}], " LEVELS "}",
         "w                                "},
        {"? \xe2\x80\x83", "{" WHITE ", 'added_tokens': [{'id': 1, 'rstrip': true}], " LEVELS "}",
         "\xe2\x80\x83"},
        {"? a aa aaaa", "{'model': {'type': 'BPE'}}", "a"},
        {"? a aa aaaa aaaaaaaa", "{'model': {'type': 'Unigram', 'unk_id': 0}}", "a"},
        {"? a ##a ##aab",
         "{'model': {'type': 'WordPiece', 'unk_token': '?', 'continuing_subword_prefix': '##', "
         "'max_input_chars_per_word': 100000000}}",
         "a"},
        {"? a",
         "{'pre_tokenizer': {'type': 'Split', 'pattern': {'Regex': '\\\\s+(?!\\\\S)|\\\\s+$'}, "
         "'behavior': 'Isolated'}, " LEVELS "}",
         " "},
        {"? a",
         "{'pre_tokenizer': {'type': 'Split', 'pattern': {'Regex': '(a|a)*b'}, 'behavior': "
         "'Isolated'}, " LEVELS "}",
         "a"},
        {"? a",
         "{'pre_tokenizer': {'type': 'Split', 'pattern': {'Regex': '(?:ab)*c'}, 'behavior': "
         "'Isolated'}, " LEVELS "}",
         "ab"},
        {"? a",
         "{'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [{'type': 'Metaspace', "
         "'replacement': '_'}, {'type': 'FixedLength', 'length': 3}, "
         "{'type': 'UnicodeScripts'}, {'type': 'Punctuation', 'behavior': 'Contiguous'}]}, " LEVELS
         "}",
         " a"},
        {"? a",
         "{'normalizer': {'type': 'BertNormalizer'}, 'pre_tokenizer': {'type': "
         "'BertPreTokenizer'}, " LEVELS "}",
         "\xe4\xb8\xad"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        static char text[1 << 17];
        uint64_t steps[2];
        llm_tokenizer *t = of(list[i].pieces, list[i].json);
        REQUIRE(t);
        const size_t n = strlen(list[i].text);
        for (int k = 0; k < 2; k++) {
            const size_t size = ((size_t)1 << (k ? 16 : 13)) / n * n;
            for (size_t at = 0; at < size; at += n)
                memcpy(text + at, list[i].text, n);
            llm_tokens ids = {0};
            ggl_n_steps = 0;
            CHECK_OK(llm_tokenize(t, text, size, LLM_TOKENIZE_SPECIAL, &ids, NULL), NULL);
            steps[k] = ggl_n_steps;
            llm_tokens_fini(&ids);
        }
        CHECK_MSG(steps[1] < 8 * 2 * (steps[0] + 4096),
                  "case %zu: %llu steps, then %llu for 8 times the text", i,
                  (unsigned long long)steps[0], (unsigned long long)steps[1]);
        llm_tokenizer_free(t);
    }
}

TEST(out_of_memory) {
    fail_each_allocation(write_steps("? a b ab <s> +caf\xc3\xa9 _",
                                     "{'normalizer': {'type': 'Sequence', 'normalizers': [{'type': "
                                     "'NFKC'}, {'type': 'BertNormalizer'}, {'type': 'Prepend', "
                                     "'prepend': 'a'}]}, 'pre_tokenizer': {'type': 'Sequence', "
                                     "'pretokenizers': [{'type': 'Split', 'pattern': {'Regex': "
                                     "'b+'}, 'behavior': 'MergedWithNext'}, {'type': 'Metaspace', "
                                     "'replacement': '_'}]}, 'decoder': {'type': 'Sequence', "
                                     "'decoders': [{'type': 'Replace', 'pattern': {'Regex': '_'}, "
                                     "'content': ' '}, {'type': 'WordPiece', 'prefix': '##', "
                                     "'cleanup': true}]}, 'added_tokens': [{'id': 4, 'special': "
                                     "true}, {'id': 5, 'normalized': true}], 'model': {'type': "
                                     "'Unigram', 'unk_id': 0}}"),
                         40);
}
