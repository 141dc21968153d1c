/* Tokenizers of Hugging Face folders as GGUF keys: small ones written here, and real ones compared with the vocabularies that
 * others made of them. */
#include "convert/hf_tokenizer_impl.h"
#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/convert.h"
#include "llm/internal/tokenizer.h"
#include "steps.h"

static ggl_error err;

/* A file of the test's folder. In JSON, ' stands for ". */
static bool put_text(const char *name, const char *text) {
    char *own = strdup(text);
    for (char *c = strstr(name, ".json") ? own : ""; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    const bool ok = own && test_write_file(test_path(name), own, strlen(own));
    free(own);
    return ok;
}

/* A configuration that some descriptor converts, of so many tokens. */
static bool put_config(int n_vocab) {
    char text[512];
    snprintf(text, sizeof text,
             "{'architectures': ['GPT2LMHeadModel'], 'vocab_size': %d, 'n_layer': 1, "
             "'n_positions': 8, 'n_embd': 8, 'n_head': 1, 'layer_norm_epsilon': 0.1, "
             "'bos_token_id': 1, 'eos_token_id': [2, 3]}",
             n_vocab);
    return put_text("config.json", text);
}

static char notes[2048];

static llm_convert_extra extra;
static const char *advice;

static ggl_gguf *convert(void) {
    llm_convert_params params = llm_convert_default();
    params.extra_tokens = extra;
    params.tokenizer_advice = advice;
    llm_converter *c;
    ggl_gguf *f = NULL;
    params.vocab_only = true;
    err = (ggl_error){0};
    if (llm_converter_open(&c, test_folder(), &params, &err) != GGL_OK)
        return NULL;
    snprintf(notes, sizeof notes, "%s", llm_converter_notes(c));
    const char *out = test_path("out.gguf");
    if (llm_converter_write(c, out, &err) == GGL_OK && ggl_gguf_open(&f, out, NULL, &err) != GGL_OK)
        f = NULL;
    llm_converter_free(c);
    return f;
}

static bool is_string(const ggl_gguf *f, const char *key, uint64_t i, const char *want) {
    const ggl_gguf_value *v = ggl_gguf_find(f, key);
    ggl_str s;
    return v && i < v->n && ggl_gguf_string(v, i, &s) && s.n == strlen(want) &&
           memcmp(s.s, want, s.n) == 0;
}

static double number(const ggl_gguf *f, const char *key, uint64_t i) {
    const ggl_gguf_value *v = ggl_gguf_find(f, key);
    double x = -12345;
    bool flag;
    if (v && i < v->n && ggl_gguf_bool(v, i, &flag))
        return flag;
    return v && i < v->n && ggl_gguf_number(v, i, &x) ? x : -12345;
}

/* Checks keys, as in "model=gpt2 token_type=1,1,3 scores=-": all values, in order; "-": there is no such key. They begin with
 * tokenizer.ggml, or tokenizer if the name begins with "ggl.". */
static void has_keys(const ggl_gguf *f, const char *want) {
    char text[1024], key[64], *next, *more;
    snprintf(text, sizeof text, "%s", want);
    for (char *s = strtok_r(text, " ", &next); s; s = strtok_r(NULL, " ", &next)) {
        char *value = strchr(s, '=');
        uint64_t n = 0;
        snprintf(key, sizeof key, "tokenizer.%s%.*s", strncmp(s, "ggl.", 4) == 0 ? "" : "ggml.",
                 (int)(value - s), s);
        const ggl_gguf_value *v = ggl_gguf_find(f, key);
        if (strcmp(++value, "-") == 0) {
            CHECK_MSG(!v, "there is a key %s", key);
            continue;
        }
        for (char *x = strtok_r(value, ",", &more); x; x = strtok_r(NULL, ",", &more), n++)
            CHECK_MSG(v && (v->type == GGL_GGUF_STRING ? is_string(f, key, n, x)
                                                       : number(f, key, n) == atof(x)),
                      "%s: element %d is not %s", key, (int)n, x);
        CHECK_MSG(v && v->n == n, "%s has not %d elements", key, (int)n);
    }
}

/* The folder, converted, with these keys; NULL: a check failed. */
static ggl_gguf *converted(const char *keys) {
    ggl_gguf *f = convert();
    if (CHECK_MSG(f, "%s", err.msg))
        has_keys(f, keys);
    return f;
}

static void converts(const char *keys) {
    ggl_gguf_close(converted(keys));
}

static void is_refused(const char *words) {
    ggl_gguf *f = convert();
    CHECK_MSG(!f, "converted, but should not be");
    CHECK_HAS(err.msg, words);
    ggl_gguf_close(f);
}

#define BYTE_LEVEL                                                                                 \
    "'pre_tokenizer': {'type': 'ByteLevel', 'add_prefix_space': false, 'use_regex': true}"

/* Writes the vocabulary of all bytes, as GPT-2 spells them: "'!': 0, .."; returns how many. */
static int put_bytes(char *out) {
    int more = 0;
    for (int b = 0; b < 256; b++) {
        const bool own = (b > ' ' && b < 0x7f) || (b >= 0xa1 && b != 0xad);
        out += sprintf(out, "%s'\\u%04x': %d", b ? ", " : "", own ? b : 0x100 + more, b);
        more += !own;
    }
    return 256;
}

/* GGUF has a key for NFC, which other programs read, too; what it has no key for needs steps beside it. */
TEST(composed) {
    static const char form[] =
        "{'added_tokens': [{'id': %d, 'content': '<end>', 'special': true, 'normalized': %s}], "
        "'normalizer': %s, " BYTE_LEVEL ", 'decoder': {'type': 'ByteLevel'}, 'model': {'type': "
        "'BPE', 'vocab': {%s}, 'merges': []}}";
    static const struct {
        const char *normalizer, *normalized, *keys;
        bool steps;
    } c[] = {{"{'type': 'NFC'}", "false", "model=gpt2 pre=gpt-2 normalizer.nfc=1", false},
             {"{'type': 'Sequence', 'normalizers': [{'type': 'NFC'}]}", "false", "normalizer.nfc=1",
              false},
             {"{'type': 'NFC'}", "true", "normalizer.nfc=1", true},
             {"{'type': 'NFKC'}", "false", "normalizer.nfc=-", true},
             {"null", "false", "normalizer.nfc=-", false}};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char text[8000], bytes[6000];
        const int n = put_bytes(bytes);
        snprintf(text, sizeof text, form, n, c[i].normalized, c[i].normalizer, bytes);
        REQUIRE(put_config(n + 1) && put_text("tokenizer.json", text) &&
                put_text("tokenizer_config.json", "{'eos_token': '<end>'}"));
        ggl_gguf *f = converted(c[i].keys);
        REQUIRE(f);
        CHECK_MSG(!ggl_gguf_find(f, "tokenizer.ggl.steps") == !c[i].steps, "%s, %s",
                  c[i].normalizer, c[i].normalized);
        ggl_gguf_close(f);
    }
    /* without a tokenizer.json, as the class does */
    (void)remove(test_path("tokenizer.json"));
    REQUIRE(put_config(4) && put_text("vocab.json", "{'a': 0, 'b': 1, 'ab': 2, '<end>': 3}") &&
            put_text("merges.txt", "a b\n") &&
            put_text("tokenizer_config.json", "{'tokenizer_class': 'Qwen2Tokenizer'}"));
    converts("pre=qwen2 normalizer.nfc=1");
    REQUIRE(put_text("tokenizer_config.json", "{'tokenizer_class': 'GPT2Tokenizer'}"));
    converts("pre=gpt-2 normalizer.nfc=-");
}

TEST(bytes) {
    REQUIRE(put_config(8));
    REQUIRE(put_text("tokenizer.json",
                     "{'added_tokens': [{'id': 5, 'content': '<end>', 'special': true}, {'id': 6, "
                     "'content': '<x>', 'special': false}], 'normalizer': null, " BYTE_LEVEL
                     ", 'post_processor': null, 'decoder': {'type': 'ByteLevel'}, 'model': "
                     "{'type': 'BPE', 'vocab': {'a': 0, 'b': 1, 'ab': 2, '\\u0120': 3, '\\u0120a': "
                     "4}, 'merges': ['a b', ['\\u0120', 'a']]}}"));
    REQUIRE(put_text("tokenizer_config.json",
                     "{'eos_token': {'content': '<end>'}, 'add_bos_token': false, 'chat_template': "
                     "'{{ x }}', 'model_max_length': 1000000000000000019884624838656}"));
    /* the name of the end goes before config.json's number */
    ggl_gguf *f =
        converted("model=gpt2 pre=gpt-2 tokens=a,b,ab,\xc4\xa0,\xc4\xa0"
                  "a,<end>,<x>,[PAD7] token_type=1,1,1,1,1,3,4,5 eos_token_id=5 bos_token_id=1 "
                  "add_bos_token=0 scores=- add_space_prefix=-");
    REQUIRE(f);
    CHECK(is_string(f, "tokenizer.ggml.merges", 0, "a b") &&
          is_string(f, "tokenizer.ggml.merges", 1, "\xc4\xa0 a"));
    CHECK(is_string(f, "tokenizer.chat_template", 0, "{{ x }}"));
    CHECK_STR(notes, "");
    ggl_gguf_close(f);
}

/* BART's class, and folders of its kind that name no class: both ends, and special tokens by the ids
 * of config.json. */
TEST(both_ends) {
    static const char *const config[] = {
        "{'tokenizer_class': 'BartTokenizer'}", "{'tokenizer_class': 'BartTokenizerFast'}",
        "{'model_max_length': 1024}", "{'tokenizer_class': 'GPT2Tokenizer'}"};
    REQUIRE(put_text("vocab.json", "{'<s>': 0, '<pad>': 1, '</s>': 2, 'a': 3}") &&
            put_text("merges.txt", "#version: 0.2\n"));
    REQUIRE(
        put_text("config.json",
                 "{'architectures': ['GPT2LMHeadModel'], 'vocab_size': 4, 'n_layer': 1, 'n_head': "
                 "2, 'n_embd': 8, 'n_positions': 8, 'model_type': 'bart', 'layer_norm_epsilon': "
                 "1e-5, 'bos_token_id': 0, 'eos_token_id': 2, 'pad_token_id': 1}"));
    for (int k = 0; k < 4; k++) {
        REQUIRE(put_text("tokenizer_config.json", config[k]));
        ggl_gguf *f = converted("pre=gpt-2 token_type=3,3,3,1 bos_token_id=0 eos_token_id=2");
        REQUIRE(f);
        has_keys(f, k < 3 ? "add_bos_token=1 add_eos_token=1" : "add_bos_token=- add_eos_token=-");
        ggl_gguf_close(f);
    }
}

TEST(bytes_from_two_files) {
    REQUIRE(put_config(5));
    REQUIRE(put_text("vocab.json", "{'a': 0, 'b': 1, 'ab': 2, '</s>': 4}"));
    is_refused("there is a vocab.json but no merges.txt");
    REQUIRE(put_text("merges.txt", "#version: 0.2\na b\n"));
    REQUIRE(put_text("added_tokens.json", "{'<e>': 3}"));
    ggl_gguf *f =
        converted("tokens=a,b,ab,<e>,</s> token_type=1,3,3,3,1 pre=-"); /* </s> as any other */
    REQUIRE(f);
    CHECK(is_string(f, "tokenizer.ggml.merges", 0, "a b") &&
          ggl_gguf_find(f, "tokenizer.ggml.merges")->n == 1);
    CHECK_HAS(notes, "tokenizer.ggml.pre is not written");
    ggl_gguf_close(f);
    REQUIRE(put_text(
        "tokenizer_config.json",
        "{'tokenizer_class': 'Qwen2Tokenizer', 'added_tokens_decoder': {'3': {'content': '<e>', "
        "'special': false}}, 'pad_token': '<e>', 'eos_token': {'content': '</s>'}}"));
    converts("pre=qwen2 token_type=1,3,1,4,3");
}

#define WORDS                                                                                      \
    "'model': {'type': 'WordPiece', 'unk_token': '[UNK]', 'continuing_subword_prefix': '%s', "     \
    "'max_input_chars_per_word': %d, 'vocab': {'[PAD]': 0, '[UNK]': 1, '[CLS]': 2, '[SEP]': 3, "   \
    "'the': 4, '##ing': 5, 'th': 6, '##e': 7}}}"

static bool put_words(const char *mark, int most) {
    char text[2048];
    snprintf(text, sizeof text,
             "{'added_tokens': [{'id': 0, 'content': '[PAD]', 'special': true}, {'id': 1, "
             "'content': '[UNK]', 'special': true}, {'id': 2, 'content': '[CLS]', 'special': "
             "true}, {'id': 3, 'content': '[SEP]', 'special': true}], 'normalizer': {'type': "
             "'BertNormalizer', 'lowercase': true, 'strip_accents': null}, 'pre_tokenizer': "
             "{'type': 'BertPreTokenizer'}, " WORDS,
             mark, most);
    return put_text("tokenizer.json", text);
}

/* What a text becomes, as "2 4 3". */
static const char *ids_of(const ggl_gguf *f, const char *text) {
    static char out[256];
    llm_tokenizer *t;
    llm_tokens ids = {0};
    out[0] = 0;
    if (llm_tokenizer_new(&t, f, &err) != GGL_OK)
        return err.msg;
    if (llm_tokenize(t, text, strlen(text), LLM_TOKENIZE_BOS, &ids, &err) == GGL_OK)
        for (size_t i = 0; i < ids.n; i++)
            snprintf(out + strlen(out), sizeof out - strlen(out), "%s%d", i ? " " : "", ids.id[i]);
    llm_tokens_fini(&ids);
    llm_tokenizer_free(t);
    return out;
}

/* Tokens of bytes that are listed among the added ones still stand for bytes that nothing else does. */
TEST(byte_tokens_that_are_special) {
    for (int special = 0; special < 2; special++) {
        char added[20000] = "", vocab[8000] = "", text[30000];
        for (int b = 0, n = 0, m = 0; b < 256; b++) {
            n += sprintf(added + n, "%s{'id': %d, 'content': '<0x%02X>', 'special': %s}",
                         b ? ", " : "", b, b, special ? "true" : "false");
            m += sprintf(vocab + m, "'<0x%02X>': %d, ", b, b);
        }
        snprintf(text, sizeof text,
                 "{'added_tokens': [%s], 'normalizer': {'type': 'Replace', 'pattern': {'String': "
                 "' '}, 'content': '\u2581'}, 'decoder': {'type': 'ByteFallback'}, 'model': "
                 "{'type': 'BPE', 'byte_fallback': true, 'vocab': {%s'a': 256, '\u2581': 257}, "
                 "'merges': []}}",
                 added, vocab);
        REQUIRE(put_config(258) && put_text("tokenizer.json", text));
        ggl_gguf *f = convert();
        REQUIRE(f);
        CHECK_STR(ids_of(f, "a \xc3\xa9"
                            "a<0x41>"), /* texts hold no special token here */
                  special ? "256 257 195 169 256 60 48 120 52 49 62" : "256 257 195 169 256 65");
        ggl_gguf_close(f);
    }
}

static const char bert_config[] =
    "{'architectures': ['BertModel'], 'model_type': 'bert', 'vocab_size': 8, "
    "'num_hidden_layers': 1, 'hidden_size': 8, 'num_attention_heads': 1, 'intermediate_size': 8, "
    "'max_position_embeddings': 8}";

/* What Git LFS leaves in place of a file is named once, and as that. */
static void pointer_is_refused(const char *name) {
    REQUIRE(put_text(name, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"));
    is_refused("this is a Git LFS pointer");
    const char *first = strstr(err.msg, name);
    CHECK_MSG(first && !strstr(first + 1, name), "%s", err.msg);
}

/* A file of tiktoken: the base64 of each token, and its rank. */
TEST(ranks) {
    static const char config[] =
        "{'tokenizer_class': '%s', 'eos_token': '<e>', 'added_tokens_decoder': {'4': {'content': "
        "'<e>', 'special': true}}}";
    static const char ranks[] = "YQ== 0\nYg== 1\r\nYWJhYg== 3\nYWI= 2\n";
    static const char keys[] = "model=gpt2 pre=%s tokens=a,b,ab,abab,<e>,[PAD5] "
                               "token_type=1,1,1,1,3,5 eos_token_id=4 scores=-";
    static const struct {
        const char *name, *class_name, *pre;
    } files[] = {{"tiktoken.model", "TikTokenTokenizer", "kimi-k2"},
                 {"tokenizer.tiktoken", "TikTokenTokenizer", "kimi-k2"},
                 {"tokenizer.model", "ChatGLM4Tokenizer", "chatglm-bpe"}};
    char text[512], want[512];
    REQUIRE(put_config(6));
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        snprintf(text, sizeof text, config, files[k].class_name);
        snprintf(want, sizeof want, keys, files[k].pre);
        REQUIRE(put_text("tokenizer_config.json", text) && put_text(files[k].name, ranks));
        ggl_gguf *f = converted(want);
        if (f) {
            CHECK(is_string(f, "tokenizer.ggml.merges", 0, "a b"));
            CHECK(is_string(f, "tokenizer.ggml.merges", 1, "ab ab"));
        }
        ggl_gguf_close(f);
        (void)remove(test_path(files[k].name));
    }
    /* special tokens that are in the class's code */
    REQUIRE(put_config(213) && put_text("qwen.tiktoken", ranks) &&
            put_text("tokenizer_config.json", "{'tokenizer_class': 'QWenTokenizer'}"));
    ggl_gguf *f = converted("pre=qwen2 normalizer.nfc=1");
    static const struct {
        uint64_t id;
        const char *text;
    } after[] = {{3, "abab"},        {4, "<|endoftext|>"},   {5, "<|im_start|>"}, {6, "<|im_end|>"},
                 {7, "<|extra_0|>"}, {211, "<|extra_204|>"}, {212, "[PAD212]"}};
    for (size_t k = 0; f && k < sizeof after / sizeof *after; k++) {
        CHECK(is_string(f, "tokenizer.ggml.tokens", after[k].id, after[k].text));
        CHECK(number(f, "tokenizer.ggml.token_type", after[k].id) == (k == 0 ? 1 : k < 6 ? 3 : 5));
    }
    ggl_gguf_close(f);
    (void)remove(test_path("qwen.tiktoken"));
    static const struct {
        const char *ranks, *words;
    } wrong[] = {{"YQ== 0\nYg== 2\n", "line 2 has the rank 2, but each of 2 lines"},
                 {"YQ== 0\nYg== 0\n", "line 2 has the rank 0"},
                 {"YQ== 0\nY!== 1\n", "line 2: 'Y!==' is not base64"},
                 {"YQ== 0\n\nYg== 1\n", "line 2 is not the base64 of a token and its rank"},
                 {"YQ== 0\nYg==1\n", "line 2 is not the base64"},
                 {"YQ== 99999999999999999999\n", "line 1 is not the base64"},
                 {"", "it has no tokens"}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        REQUIRE(put_text("tiktoken.model", wrong[k].ranks) &&
                put_text("tokenizer_config.json", "{'tokenizer_class': 'TikTokenTokenizer'}"));
        is_refused(wrong[k].words);
    }
    REQUIRE(put_text("tiktoken.model", ranks) &&
            put_text("tokenizer_config.json", "{'tokenizer_class': 'HerTokenizer'}"));
    is_refused("'HerTokenizer' is not known here");
    REQUIRE(put_text("tokenizer_config.json", "{}"));
    is_refused("the folder names none");
    REQUIRE(put_text("tokenizer_config.json", "{'tokenizer_class': 'TikTokenTokenizer'}"));
    pointer_is_refused("tiktoken.model");
}

/* RWKV's file of words. */
TEST(world) {
    static const char name[] = "rwkv_vocab_v20230424.txt";
    REQUIRE(put_config(9) &&
            put_text(name, "1 'a' 1\n2 b'\\xff' 1\n3 '\\x80' 2\n4 \"it's\" 4\n5 '\\n\\n' 2\r\n6 "
                           "'\\'\"' 2\n7 '\u00e9\\u3042\\\\' 6\n"));
    ggl_gguf *f = converted("model=rwkv token_type=3,1,1,1,1,1,1,1,5 bos_token_id=0 eos_token_id=0 "
                            "eot_token_id=5 scores=- pre=- unknown_token_id=-");
    static const char *const pieces[] = {
        "<s>",  "a",      "\\xff", "\\xc2\\x80",
        "it's", "\\n\\n", "\\'\"", "\\xc3\\xa9\\xe3\\x81\\x82\\\\"};
    for (uint64_t k = 0; f && k < sizeof pieces / sizeof *pieces; k++)
        CHECK_MSG(is_string(f, "tokenizer.ggml.tokens", k, pieces[k]), "token %d", (int)k);
    ggl_gguf_close(f);
    /* transformers' files name id 0, and a token of the file's bytes a second time; others are added */
    REQUIRE(put_text("tokenizer_config.json",
                     "{'tokenizer_class': 'RwkvTokenizer', 'bos_token': '<|end|>', 'eos_token': "
                     "'\\n\\n', 'added_tokens_decoder': {'0': {'content': '<|end|>', 'special': "
                     "true}, '8': {'content': '\\n\\n', 'special': true}, '9': {'content': "
                     "'<x>\\n', 'special': true}}}") &&
            put_config(10));
    f = converted("token_type=3,1,1,1,1,1,1,1,5,3 bos_token_id=0 eos_token_id=0 eot_token_id=5");
    CHECK(f && is_string(f, "tokenizer.ggml.tokens", 0, "<|end|>"));
    CHECK(f && is_string(f, "tokenizer.ggml.tokens", 9, "<x>\\n"));
    ggl_gguf_close(f);
    (void)remove(test_path("tokenizer_config.json"));
    static const char *const wrong[] = {"1 'a' 2\n",
                                        "1 'a 1\n",
                                        "1 a 1\n",
                                        "2 'a' 1\n",
                                        "1 'a' 1\n1 'b' 1\n",
                                        "1 '\\q' 1\n",
                                        "1 b'\\u0041' 1\n",
                                        "1 '\\x4' 1\n",
                                        "1 '' 0\n",
                                        "1 'a'\n",
                                        "99999999999 'a' 1\n",
                                        "1 'a' 1 \n",
                                        "\n"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        REQUIRE(put_text(name, wrong[k]));
        is_refused("is not an id of its own");
    }
    REQUIRE(put_text(name, ""));
    is_refused("it has no tokens");
    pointer_is_refused(name);
}

/* BERT's kind, of tokenizer.json and of vocab.txt. */
TEST(words) {
    static const char tokens[] =
        "'cls_token': '[CLS]', 'sep_token': '[SEP]', 'pad_token': '[PAD]', 'unk_token': '[UNK]'";
    char text[512];
    REQUIRE(put_text("config.json", bert_config) && put_words("##", 100));
    snprintf(text, sizeof text, "{%s}", tokens);
    REQUIRE(put_text("tokenizer_config.json", text));
    /* encoders have no other bos and eos than these */
    ggl_gguf *f = converted("model=bert tokens=[PAD],[UNK],[CLS],[SEP],\u2581the,ing,\u2581th,e "
                            "token_type=3,3,3,3,1,1,1,1 cls_token_id=2 seperator_token_id=3 "
                            "padding_token_id=0 unknown_token_id=1 bos_token_id=2 eos_token_id=3 "
                            "scores=- merges=- normalizer.lowercase=1 normalizer.strip_accents=-");
    REQUIRE(f);
    CHECK_STR(ids_of(f, "The theing x"), "2 4 4 5 1 3");
    ggl_gguf_close(f);
    REQUIRE(put_words("@@", 100)); /* other programs know no such model */
    converts("model=steps tokens=[PAD],[UNK],[CLS],[SEP],the,##ing,th,##e");
    REQUIRE(put_words("##", 4));
    f = converted("model=bert");
    REQUIRE(f);
    CHECK_STR(ids_of(f, "the theing"), "2 4 1 3");
    ggl_gguf_close(f);

    static const char *const wrong[][2] = {
        {"'normalizer': {'type': 'BertNormalizer', 'lowercase': 'true'}",
         "'lowercase' of a step 'BertNormalizer' is a string; it should be true or false"},
        {"'normalizer': {'type': 'Sequence', 'normalizers': [{'type': 'BertNormalizer', "
         "'clean_text': 1}]}",
         "'clean_text' of a step 'BertNormalizer' is a number"},
        {"'added_tokens': [{'id': 0, 'content': '[PAD]', 'special': 'yes'}]",
         "'special' of an added token is a string"},
        {"'version': '9.0'", "'version' is a string '9.0'; only '1.0' is known"},
        {"'version': 1", "'version' is a number; only '1.0' is known"}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        snprintf(text, sizeof text, "{%s, 'model': {'type': 'WordPiece', 'vocab': {'[PAD]': 0}}}",
                 wrong[k][0]);
        REQUIRE(put_text("tokenizer.json", text));
        is_refused(wrong[k][1]);
    }
    REQUIRE(remove(test_path("tokenizer.json")) == 0);
    REQUIRE(put_text("vocab.txt", "[PAD]\n[UNK]\r\n[CLS]\n[SEP]\nthe\n##ing\nth\n##e"));
    snprintf(text, sizeof text, "{%s, 'do_lower_case': false, 'strip_accents': true}", tokens);
    REQUIRE(put_text("tokenizer_config.json", text));
    f = converted("normalizer.lowercase=0 normalizer.strip_accents=1");
    REQUIRE(f);
    CHECK_STR(ids_of(f, "the The"), "2 4 1 3");
    ggl_gguf_close(f);
    REQUIRE(put_text("tokenizer_config.json", "{}")); /* its tokens are BERT's, its case lower */
    converts("normalizer.lowercase=1 token_type=3,3,3,3,1,1,1,1");
    REQUIRE(put_text("tokenizer_config.json", "{'do_lower_case': 1}"));
    is_refused("do_lower_case is a number");
}

/* RoBERTa's: bytes, whose texts have a token at both ends. */
TEST(bytes_with_ends) {
    REQUIRE(put_config(7));
    REQUIRE(put_text(
        "tokenizer.json",
        "{'added_tokens': [{'id': 0, 'content': '<s>', 'special': true}, {'id': 2, 'content': "
        "'</s>', 'special': true}, {'id': 6, 'content': '<mask>', 'special': true}], " BYTE_LEVEL
        ", 'post_processor': {'type': 'RobertaProcessing', 'sep': ['</s>', 2], 'cls': ['<s>', 0]}, "
        "'model': {'type': 'BPE', 'vocab': {'<s>': 0, '<pad>': 1, '</s>': 2, 'a': 3, 'b': 4, 'ab': "
        "5}, 'merges': ['a b']}}"));
    REQUIRE(
        put_text("tokenizer_config.json",
                 "{'cls_token': '<s>', 'sep_token': '</s>', 'mask_token': {'content': '<mask>'}}"));
    converts("mask_token_id=6 add_bos_token=1 add_eos_token=1");
}

#define PART_OF(what, name, type) "{'" what "': {'id': '" name "', 'type_id': " #type "}}"
#define SINGLE                                                                                     \
    "{'type': 'TemplateProcessing', 'single': [" PART_OF("SpecialToken", "[CLS]", 0) ", " PART_OF( \
        "Sequence", "A", 0) ", " PART_OF("SpecialToken", "[SEP]", 0) "], 'special_tokens': {}, "   \
                                                                     "'pair': "

/* What texts side by side become. */
TEST(pairs) {
    static const char usual[] = "ggl.pair=- ggl.pair_types=-", bert[] = "BertTokenizer";
    static const struct {
        const char *post, *class, *keys;
    } list[] = {
        {"null", bert, usual},
        {SINGLE "[]}", bert, usual},
        {SINGLE
         "[" PART_OF("SpecialToken", "[CLS]", 0) ", " PART_OF("Sequence", "A", 0) ", " PART_OF(
             "SpecialToken", "[SEP]",
             0) ", " PART_OF("Sequence", "B", 1) ", " PART_OF("SpecialToken", "[SEP]", 1) "]}",
         bert, usual},
        {SINGLE
         "[" PART_OF("SpecialToken", "[SEP]", 1) ", " PART_OF("Sequence", "B", 3) ", " PART_OF(
             "SpecialToken", "[CLS]", 0) ", " PART_OF("Sequence", "A", 2) "]}",
         bert, "ggl.pair=3,-2,2,-1 ggl.pair_types=1,3,0,2"},
        {"{'type': 'BertProcessing', 'sep': ['[SEP]', 3], 'cls': ['[CLS]', 2]}", bert, usual},
        {"{'type': 'RobertaProcessing', 'sep': ['[SEP]', 3], 'cls': ['[CLS]', 2]}", bert,
         "ggl.pair=2,-1,3,3,-2,3 ggl.pair_types=0,0,0,0,0,0"},
        /* models of this class get no types */
        {"{'type': 'BertProcessing', 'sep': ['[SEP]', 3], 'cls': ['[CLS]', 2]}",
         "DistilBertTokenizer", "ggl.pair=2,-1,3,-2,3 ggl.pair_types=0,0,0,0,0"},
        {"null", "DistilBertTokenizer', 'model_input_names': ['token_type_ids'], 'x': '", usual},
        {"null", "BertTokenizer', 'model_input_names': ['input_ids'], 'x': '",
         "ggl.pair=-1,-2 ggl.pair_types=0,0"},
    };
    char text[2048];
    REQUIRE(put_text("config.json", bert_config));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        snprintf(text, sizeof text,
                 "{'cls_token': '[CLS]', 'sep_token': '[SEP]', 'unk_token': '[UNK]', "
                 "'tokenizer_class': '%s'}",
                 list[k].class);
        REQUIRE(put_text("tokenizer_config.json", text));
        snprintf(text, sizeof text,
                 "{'added_tokens': [{'id': 0, 'content': '[PAD]', 'special': true}, {'id': 1, "
                 "'content': '[UNK]', 'special': true}, {'id': 2, 'content': '[CLS]', 'special': "
                 "true}, {'id': 3, 'content': '[SEP]', 'special': true}], 'normalizer': {'type': "
                 "'BertNormalizer', 'lowercase': true, 'strip_accents': null}, 'pre_tokenizer': "
                 "{'type': 'BertPreTokenizer'}, 'post_processor': %s, " WORDS,
                 list[k].post, "##", 100);
        REQUIRE(put_text("tokenizer.json", text));
        converts(list[k].keys);
    }
    static const struct {
        const char *post, *words;
    } wrong[] = {
        {SINGLE "[" PART_OF("Sequence", "A", 0) ", " PART_OF("SpecialToken", "[X]", 0) "]}",
         "post_processor adds '[X]', which is no token"},
        {SINGLE "[" PART_OF("Sequence", "A", -1) "]}",
         "post_processor: a \"type_id\" is no number from 0 to 65535"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        snprintf(text, sizeof text, "{'post_processor': %s, " WORDS, wrong[k].post, "##", 100);
        REQUIRE(put_text("tokenizer.json", text));
        is_refused(wrong[k].words);
    }
}

/* SentencePiece's kind: the tokenizer of the result gives what the merges say. */
TEST(sentencepiece) {
    REQUIRE(put_config(11));
    REQUIRE(put_text(
        "tokenizer.json",
        "{'added_tokens': [{'id': 0, 'content': '<unk>', 'special': true}, {'id': 1, 'content': "
        "'<s>', 'special': true}], 'normalizer': {'type': 'Sequence', 'normalizers': [{'type': "
        "'Prepend', 'prepend': '\\u2581'}]}, 'pre_tokenizer': null, 'post_processor': {'type': "
        "'TemplateProcessing', 'single': [{'SpecialToken': {'id': '<s>'}}, {'Sequence': {'id': "
        "'A'}}]}, 'model': {'type': 'BPE', 'byte_fallback': true, 'unk_token': '<unk>', 'vocab': "
        "{'<unk>': 0, '<s>': 1, '<0x0A>': 2, 'a': 3, 'b': 4, 'c': 5, '\\u2581': 6, 'bc': 7, 'ab': "
        "8, '\\u2581a': 9, 'abc': 10}, 'merges': ['b c', '\\u2581 a', 'a b', 'ab c', 'a bc']}}"));
    REQUIRE(put_text("tokenizer_config.json", "{'unk_token': '<unk>', 'bos_token': '<s>'}"));
    ggl_gguf *f = converted("model=llama pre=default token_type=2,3,6,1,1,1,1,1,1,1,1 "
                            "add_bos_token=1 add_eos_token=0 add_space_prefix=1");
    REQUIRE(f);
    CHECK(number(f, "tokenizer.ggml.scores", 7) == 0 &&
          number(f, "tokenizer.ggml.scores", 9) == -1 &&
          number(f, "tokenizer.ggml.scores", 10) == -3);
    CHECK_STR(ids_of(f, "abc"), "1 9 7");
    ggl_gguf_close(f);
}

TEST(broken) {
    static const struct {
        const char *text, *words;
    } list[] = {
        {"{}", "tokenizer.json: the tokenizer's type 'none' is not supported, only BPE, Unigram, "
               "WordLevel and WordPiece are; ADVICE"},
        {"{'model': {'type': 'Unigram', 'vocab': {}}}", "the array 'vocab' is missing"},
        {"{'normalizer': {'type': 'NFX'}, 'model': {'type': 'WordLevel', 'vocab': {'a': 0}}}",
         "normalizer: a step 'NFX' is not known; ADVICE"},
        {"{'pre_tokenizer': {'type': 'Split', 'pattern': {'Regex': '(?<=a)b'}, 'behavior': "
         "'Isolated', 'invert': false}, 'model': {'type': 'WordLevel', 'vocab': {'a': 0}}}",
         "pre_tokenizer: the pattern '(?<=a)b': at byte 0 of the pattern: the group (?<=a) is of a "
         "kind that is unknown; (x), (?:x), (?i:x), (?=x) and (?!x) are known; ADVICE"},
        {"{'pre_tokenizer': {'type': 'Split', 'pattern': {'Regex': "
         "'b|(?<name>aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)'}, 'behavior': 'Isolated', 'invert': "
         "false}, 'model': {'type': 'WordLevel', 'vocab': {'a': 0}}}",
         "at byte 2 of the pattern: the group (?<name>aaaaaaaaaaaaaaaaaaaaaa.. is of a kind"},
        {"{'decoder': {'type': 'Strip', 'content': 'ab', 'start': 1, 'stop': 0}, 'model': {'type': "
         "'WordLevel', 'vocab': {'a': 0}}}",
         "decoder: 'content' of a step 'Strip' is a string; it should be a string of one "
         "character"},
        {"{'post_processor': {'type': 'X'}, 'model': {'type': 'WordLevel', 'vocab': {'a': 0}}}",
         "post_processor: a step 'X' is not known"},
        {"{" BYTE_LEVEL ", 'model': {'vocab': {'a': 0}, 'merges': [], 'dropout': 0.1}}",
         "model: a 'dropout' of 0.1"},
        {"{" BYTE_LEVEL ", 'added_tokens': [{'id': 3, 'content': '<a>'}], 'model': {'vocab': {'a': "
         "0, 'b': 2}, 'merges': []}}",
         "added_tokens: '<a>' is listed with the id 3, but the library that defines this file "
         "gives "
         "it 2"},
        {"{" BYTE_LEVEL ", 'model': {'vocab': [], 'merges': []}}", "the object 'vocab' is missing"},
        {"{" BYTE_LEVEL ", 'model': {'vocab': {'a': -1}, 'merges': []}}",
         "the id of token 'a' is not a whole number"},
        {"{" BYTE_LEVEL ", 'model': {'vocab': {'a': 16777216}, 'merges': []}}",
         "the id of token 'a' is not a whole number"},
        {"{" BYTE_LEVEL ", 'model': {'vocab': {'a': 1, 'b': 1}, 'merges': []}}",
         "two tokens have the id 1"},
        {"{" BYTE_LEVEL ", 'model': {'vocab': {'a': 1, 'a': 2}, 'merges': []}}",
         "the name 'a' occurs twice in one object"},
        {"{" BYTE_LEVEL ", 'added_tokens': [{'id': 2, 'content': 'a'}], 'model': {'vocab': {'a': "
         "1}, 'merges': []}}",
         "token 'a' has the ids 1 and 2"},
        {"{" BYTE_LEVEL ", 'model': {'vocab': {'a': 5}, 'merges': []}}",
         "the tokenizer has 6 tokens, but the model has rows for 5"},
        {"{" BYTE_LEVEL ", 'model': {'vocab': {'a': 0}, 'merges': ['ab']}}",
         "merge 0, 'ab', is not two tokens"},
        {"{" BYTE_LEVEL ", 'model': {'vocab': {'a': 0}, 'merges': [['a', 'b c']]}}",
         "merge 0: the vocabulary has no token 'b c'"},
        {"{" BYTE_LEVEL ", 'model': {'vocab': {'a': 0}, 'merges': [3]}}",
         "merge 0, '', is not two tokens"},
        {"{" BYTE_LEVEL ", 'added_tokens': [{}], 'model': {'vocab': {'a': 0}, 'merges': []}}",
         "an added token has no string 'content'"},
        {"{", "tokenizer.json:1:2:"},
        {"{" BYTE_LEVEL ", 'added_tokens': {}, 'model': {'vocab': {'a': 0}, 'merges': []}}",
         "added_tokens is an object, not an array"},
        {"{" BYTE_LEVEL ", 'model': {'vocab': {'a': 0, 'aa': 1}, 'merges': ['a a', 'aa a']}}",
         "merge 1, 'aa a': the vocabulary has no token 'aaa'"},
        {"{" BYTE_LEVEL ", 'model': {'vocab': {'a': 0, 'ab': 1}, 'merges': ['a b']}}",
         "merge 0, 'a b': the vocabulary has no token 'b'"},
        {"{" BYTE_LEVEL ", 'model': {'vocab': {'[PAD3]': 0}, 'merges': []}}",
         "id 3 has no token, and another token already has the name of an unused one, '[PAD3]'"},
    };
    REQUIRE(put_config(5));
    advice = "ADVICE";
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        REQUIRE(put_text("tokenizer.json", list[k].text));
        is_refused(list[k].words);
    }
    advice = NULL;
    REQUIRE(put_text("tokenizer.json", list[0].text));
    is_refused("WordLevel and WordPiece are");
    CHECK(!strstr(err.msg, "WordPiece are;") && !strstr(err.msg, "--no-tokenizer"));
}

/* Values of tokenizer_config.json whose type says that they mean something else. */
TEST(types_of_configuration) {
    static const struct {
        const char *text, *words; /* words NULL: it is accepted */
    } list[] = {
        {"[]", "tokenizer_config.json: it is an array, not an object"},
        {"{'eos_token': 5}", "eos_token is a number; it should be a string, or an object"},
        {"{'bos_token': {'content': 5}}", "bos_token is an object; it should be a string"},
        {"{'pad_token': ['a']}", "pad_token is an array; it should be a string"},
        {"{'add_bos_token': 'true'}", "add_bos_token is a string; it should be true or false"},
        {"{'add_eos_token': 1}", "add_eos_token is a number; it should be true or false"},
        {"{'tokenizer_class': true}", "tokenizer_class is true or false; it should be a string"},
        {"{'added_tokens_decoder': []}",
         "added_tokens_decoder is an array; it should be an object"},
        {"{'chat_template': 3}", "chat_template is a number; it should be a string, or a list"},
        {"{'chat_template': [{'name': 'default'}]}", "chat_template is an array; it should be"},
        {"{'eos_token': null, 'add_bos_token': null, 'chat_template': [{'name': 'x', 'template': "
         "'y'}]}",
         NULL},
    };
    REQUIRE(put_config(1));
    REQUIRE(
        put_text("tokenizer.json", "{" BYTE_LEVEL ", 'model': {'vocab': {'a': 0}, 'merges': []}}"));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        REQUIRE(put_text("tokenizer_config.json", list[k].text));
        ggl_gguf *f = convert();
        CHECK_MSG(!f == (list[k].words != NULL), "%s: %s", list[k].text, err.msg);
        CHECK_HAS(err.msg, list[k].words ? list[k].words : "");
        ggl_gguf_close(f);
    }
}

/* Ids that no token has, below the last one: unused tokens, and a note. */
TEST(holes) {
    REQUIRE(put_config(7));
    REQUIRE(put_text("tokenizer.json",
                     "{" BYTE_LEVEL
                     ", 'model': {'vocab': {'a': 0, 'b': 2, 'c': 5}, 'merges': []}}"));
    converts("tokens=a,[PAD1],b,[PAD3],[PAD4],c,[PAD6] token_type=1,5,1,5,5,1,5");
    CHECK_HAS(notes, "3 ids below the tokenizer's last one have no token (the first is 1");
}

/* tokenizer.json with 2^bits entries whose names all hashed alike by h * 33 + c. */
static uint64_t steps_of_colliding(int bits) {
    size_t cap = ((size_t)1 << bits) * 64 + 512, n = 0, count = (size_t)1 << bits;
    char *text = ggl_calloc(cap, 1);
    n += (size_t)snprintf(text + n, cap - n,
                          "{%s, 'model': {'type': 'BPE', 'merges': [], 'vocab': {", BYTE_LEVEL);
    for (size_t i = 0; i < count; i++) {
        n += (size_t)snprintf(text + n, cap - n, "%s'", i ? "," : "");
        for (int b = 0; b < bits; b++)
            n += (size_t)snprintf(text + n, cap - n, "%s", i >> b & 1 ? "Ez" : "FY");
        n += (size_t)snprintf(text + n, cap - n, "':%zu", i);
    }
    snprintf(text + n, cap - n, "}}}");
    CHECK(put_config((int)count) && put_text("tokenizer.json", text));
    ggl_free(text);
    ggl_n_steps = 0;
    converts("");
    return ggl_n_steps;
}

TEST(entries_made_to_collide) {
    test_linear("entries that collide", steps_of_colliding(9), steps_of_colliding(12), 8);
}

/* Tokens without merges: "a", "aa", "aaaa", .., the last of 2^k bytes. */
static uint64_t steps_of_joins(int k) {
    llm_hf_tokenizer t = {0};
    ggl_str token[20];
    char *text = malloc((size_t)1 << k);
    if (!CHECK(text && k < 20))
        return 0;
    memset(text, 'a', (size_t)1 << k);
    for (int i = 0; i <= k; i++)
        token[i] = (ggl_str){text, (size_t)1 << i};
    ggl_n_steps = 0;
    CHECK_OK(llm_hf_merges_by_order(&t, token, k + 1, &err), &err);
    CHECK_INT(t.n_merge, k);
    CHECK_INT(t.n_note, 0);
    ggl_arena_fini(&t.arena);
    free(text);
    return ggl_n_steps;
}

TEST(long_tokens_without_merges_take_no_quadratic_time) { /* n log n */
    test_linear("a long token", steps_of_joins(12), steps_of_joins(16), 16 * 16 / 12);
}

TEST(unknown_words) {
    REQUIRE(put_config(1));
    REQUIRE(put_text("tokenizer.json",
                     "{'pre_tokenizer': {'type': 'Sequence', 'pretokenizers': [{'type': 'Split', "
                     "'pattern': {'Regex': 'x+'}}, {'type': 'ByteLevel', 'use_regex': false}]}, "
                     "'model': {'vocab': {'a': 0}, 'merges': []}}"));
    converts("");
    CHECK_HAS(
        notes,
        "no tokenizer.ggml.pre is known for the way this tokenizer cuts text into words, /x+/");
}

/* --- real ones -------------------------------------------------------------------------------- */

/* hf/NAME/FILE or FILE.xz, into the test's folder. false: not there. */
static bool unpack(const char *folder, const char *file) {
    char path[256], command[2048];
    snprintf(path, sizeof path, "hf/%s/%s.xz", folder, file);
    const char *full = test_shared(path);
    snprintf(command, sizeof command, "xz -dc '%s' > '%s'", full ? full : "", test_path(file));
    if (full)
        return system(command) == 0;
    snprintf(path, sizeof path, "hf/%s/%s", folder, file);
    size_t n;
    unsigned char *text = test_shared(path) ? test_read_file(test_shared(path), &n) : NULL;
    bool ok = text && test_write_file(test_path(file), text, n);
    free(text);
    return ok;
}

static void same_strings(const ggl_gguf *a, const ggl_gguf *b, const char *key) {
    const ggl_gguf_value *x = ggl_gguf_find(a, key), *y = ggl_gguf_find(b, key);
    ggl_str s, t;
    uint64_t n_bad = 0, first = 0;
    if (!CHECK_MSG(x && y, "no %s", key))
        return;
    for (uint64_t i = 0; i < y->n; i++) {
        bool same = i < x->n && ggl_gguf_string(x, i, &s) && ggl_gguf_string(y, i, &t) &&
                    s.n == t.n && memcmp(s.s, t.s, s.n) == 0;
        first = !same && n_bad++ == 0 ? i : first;
    }
    CHECK_MSG(n_bad == 0 && x->n == y->n, "%s: %llu of %llu differ (%llu here), first %llu", key,
              (unsigned long long)n_bad, (unsigned long long)y->n, (unsigned long long)x->n,
              (unsigned long long)first);
}

static void same_numbers(const ggl_gguf *a, const ggl_gguf *b, const char *key) {
    const ggl_gguf_value *y = ggl_gguf_find(b, key);
    uint64_t n_bad = 0, first = 0;
    for (uint64_t i = 0; y && i < y->n; i++)
        first = number(a, key, i) != number(b, key, i) && n_bad++ == 0 ? i : first;
    CHECK_MSG(n_bad == 0, "%s: %llu differ, first %llu: %g, not %g", key, (unsigned long long)n_bad,
              (unsigned long long)first, number(a, key, first), number(b, key, first));
}

static void real(const char *folder, const char *vocab, const char *pre, bool bytes) {
    static const char *const files[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                        "vocab.json",  "merges.txt",     "added_tokens.json"};
    char path[128];
    int n = 0;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++)
        n += unpack(folder, files[k]);
    snprintf(path, sizeof path, "tokenizers/%s", vocab);
    const char *full = test_shared(path);
    if (n < 2 || !full)
        SKIP_NOT_SHIPPED("published Hugging Face folders");
    const ggl_gguf_params params = {.size = sizeof params, .meta_only = true};
    ggl_gguf *want, *f;
    REQUIRE_OK(ggl_gguf_open(&want, full, &params, &err), &err);
    REQUIRE((f = convert()) || !fprintf(stderr, "%s\n", err.msg));
    CHECK(is_string(f, "tokenizer.ggml.pre", 0, pre));
    same_strings(f, want, "tokenizer.ggml.tokens");
    same_strings(f, want, "tokenizer.ggml.model");
    if (bytes)
        same_strings(f, want, "tokenizer.ggml.merges");
    same_numbers(f, want, "tokenizer.ggml.bos_token_id");
    same_numbers(f, want, "tokenizer.ggml.eos_token_id");
    llm_tokenizer *t = NULL, *u = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "tokenizers/%s.inp", vocab);
    char *text = (char *)test_read_file(test_shared(path), &size);
    if (!bytes && CHECK_OK(llm_tokenizer_new(&t, f, &err), &err) &&
        CHECK_OK(llm_tokenizer_new(&u, want, &err), &err)) {
        int n_text = 0;
        text[size] = 0;
        for (char *s = text, *end; s < text + size;
             s = end + strlen("\n__ggml_vocab_test__\n"), n_text++) {
            llm_tokens a = {0}, b = {0};
            end = strstr(s, "\n__ggml_vocab_test__\n");
            end = end ? end : text + size;
            REQUIRE_OK(llm_tokenize(t, s, (size_t)(end - s), 0, &a, &err), &err);
            REQUIRE_OK(llm_tokenize(u, s, (size_t)(end - s), 0, &b, &err), &err);
            CHECK_MSG(a.n == b.n && (a.n == 0 || memcmp(a.id, b.id, a.n * sizeof *a.id) == 0),
                      "text %d: other tokens", n_text);
            llm_tokens_fini(&a);
            llm_tokens_fini(&b);
        }
        CHECK(n_text > 30);
    }
    llm_tokenizer_free(t);
    llm_tokenizer_free(u);
    free(text);
    ggl_gguf_close(f);
    ggl_gguf_close(want);
}

TEST(real_gpt2) {
    real("gpt2", "ggml-vocab-gpt-2.gguf", "gpt-2", true);
}

TEST(real_qwen2_5) {
    real("qwen2.5-0.5b", "ggml-vocab-qwen2.gguf", "qwen2", true);
}

TEST(real_tinyllama) {
    real("tinyllama-1.1b", "ggml-vocab-llama-spm.gguf", "default", false);
}

#define ADDED(id, name) "{'id': " #id ", 'content': '" name "', 'special': true}"
static const char
    twelve
        [] =
            "{'added_tokens': [" ADDED(4, "<end>") ", " ADDED(5, "<stop>") ", " ADDED(6, "<halt>") ", " ADDED(7, "<|im_end|>") ", " ADDED(
                8,
                "<|eom_id|>") ", " ADDED(9,
                                         "<fin>") ", " ADDED(10,
                                                             "<more>") ", " ADDED(11,
                                                                                  "<last>") "],"
                                                                                            " " BYTE_LEVEL
                                                                                            ", "
                                                                                            "'model"
                                                                                            "': "
                                                                                            "{'"
                                                                                            "type':"
                                                                                            " 'BPE'"
                                                                                            ", "
                                                                                            "'vocab"
                                                                                            "': "
                                                                                            "{'a': "
                                                                                            "0, "
                                                                                            "'b': "
                                                                                            "1, "
                                                                                            "'ab': "
                                                                                            "2, "
                                                                                            "'c': "
                                                                                            "3}, "
                                                                                            "'merge"
                                                                                            "s': "
                                                                                            "['a "
                                                                                            "b']}}";

/* Tokens that end a text: eos is the first, the others have the keys eot and eom; those that readers do not know by name come first. */
TEST(ends) {
    static const struct {
        const char *generation, *keys, *note;
    } list[] = {
        {"{}", "eot_token_id=3 eom_token_id=-", ""}, /* config.json's [2, 3] */
        {"{'eos_token_id': 2}", "eot_token_id=3 eom_token_id=-", ""},
        {"{'eos_token_id': [2, 7, 4]}", "eot_token_id=3 eom_token_id=4", ""},
        {"{'eos_token_id': [7, 8]}", "eot_token_id=3 eom_token_id=8", ""},
        {"{'eos_token_id': [4, 5, 6]}", "eot_token_id=3 eom_token_id=4",
         "'<stop>' also ends a text, but files have no key for it (2 such tokens)"},
        {"{'eos_token_id': [-1, null, 99, 'x', 2.5]}", "eot_token_id=3 eom_token_id=-",
         "generation_config.json: eos_token_id = 99 and 2 more of the list are no tokens: there "
         "are 12, from 0 on; they are left out"},
        {"{'eos_token_id': ['x']}", "eot_token_id=3 eom_token_id=-",
         "generation_config.json: eos_token_id = \"x\" is no token"},
    };
    REQUIRE(put_config(12));
    REQUIRE(put_text("tokenizer.json", twelve));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        REQUIRE(put_text("generation_config.json", list[k].generation));
        ggl_gguf *f = converted("eos_token_id=2");
        if (!f)
            continue;
        has_keys(f, list[k].keys);
        CHECK_HAS(notes, list[k].note);
        llm_tokenizer *t;
        if (CHECK_OK(llm_tokenizer_new(&t, f, &err), &err)) {
            CHECK(llm_tokenizer_is_eog(t, 2) && llm_tokenizer_is_eog(t, 3) &&
                  llm_tokenizer_is_eog(t, 7) && !llm_tokenizer_is_eog(t, 9));
            llm_tokenizer_free(t);
        }
        ggl_gguf_close(f);
    }
    REQUIRE(put_text("generation_config.json", "{"));
    is_refused("generation_config.json:1:2");
}

/* Ids of config.json that are no tokens are left out with a note, whether or not the tokenizer names the token, too. */
TEST(ids_of_no_token) {
    static const struct {
        const char *ids, *tokenizer, *keys, *note;
    } list[] = {
        {"'eos_token_id': 12", "{}", "eos_token_id=-",
         "config.json: eos_token_id = 12 is no token: there are 12, from 0 on; it is left out"},
        {"'eos_token_id': 12", "{'eos_token': '<end>'}", "eos_token_id=4",
         "config.json: eos_token_id = 12 is no token: there are 12"},
        {"'eos_token_id': [4, 99]", "{'eos_token': '<end>'}", "eos_token_id=4",
         "config.json: eos_token_id = 99 is no token"},
        {"'bos_token_id': 5000000000", "{'bos_token': '<stop>'}", "bos_token_id=5",
         "config.json: bos_token_id = 5000000000 is no token"},
        {"'pad_token_id': -2", "{}", "padding_token_id=-",
         "config.json: pad_token_id = -2 is no token"},
        {"'pad_token_id': 1.5", "{}", "padding_token_id=-",
         "config.json: pad_token_id = 1.5 is no token"},
        {"'mask_token_id': 12, 'sep_token_id': 13", "{}", "mask_token_id=-",
         "config.json: mask_token_id = 12 is no token"},
        {"'pad_token_id': -1, 'eos_token_id': null, 'sep_token_id': 11", "{}",
         "padding_token_id=- eos_token_id=11 seperator_token_id=11", NULL},
        {"'bos_token_id': 5, 'pad_token_id': 5", "{'bos_token': '<end>', 'pad_token': '<end>'}",
         "bos_token_id=4 padding_token_id=4",
         "config.json: bos_token_id = 5, but tokenizer_config.json: bos_token = '<end>', which is "
         "4: the latter is taken"},
    };
    REQUIRE(put_text("tokenizer.json", twelve));
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{'architectures': ['GPT2LMHeadModel'], 'vocab_size': 12, 'n_layer': 1, "
                 "'n_positions': 8, 'n_embd': 8, 'n_head': 1, 'layer_norm_epsilon': 0.1, %s}",
                 list[k].ids);
        REQUIRE(put_text("config.json", text));
        REQUIRE(put_text("tokenizer_config.json", list[k].tokenizer));
        ggl_gguf *f = converted(list[k].keys);
        if (!f)
            continue;
        if (list[k].note)
            CHECK_HAS(notes, list[k].note);
        else
            CHECK(!strstr(notes, "_token_id"));
        ggl_gguf_close(f);
    }
}

/* Tokens that the model has no rows for. */
TEST(extra_tokens) {
    REQUIRE(put_config(10));
    REQUIRE(put_text("tokenizer.json", twelve));
    is_refused("the tokenizer has 12 tokens, but the model has rows for 10; --extra-tokens cut "
               "leaves out the last 2");
    extra = LLM_CONVERT_CUT_EXTRA;
    converts("tokens=a,b,ab,c,<end>,<stop>,<halt>,<|im_end|>,<|eom_id|>,<fin>");
    CHECK_HAS(notes,
              "the tokenizer's last 2 tokens, for which the model has no rows, are left out");
    CHECK(put_config(2)); /* of the vocabulary itself */
    ggl_gguf *f = converted("tokens=a,b");
    CHECK(f && ggl_gguf_find(f, "tokenizer.ggml.merges")->n == 0);
    ggl_gguf_close(f);
    extra = LLM_CONVERT_REFUSE_EXTRA;
}
