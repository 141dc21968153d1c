/* Tokenizers: a GGUF file with a tokenizer in it, of any kind, and a text (the file's key "fuzz.text", or its first
 * bytes). What loads turns any text into ids of the vocabulary, and ids into text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "ggl/alloc.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/tokenizer.h"

static void use(const llm_tokenizer *t, const char *text, size_t n, unsigned flags) {
    llm_tokens ids = {0};
    ggl_error err = {0};
    char *back;
    size_t size;
    const ggl_status s = llm_tokenize(t, text, n, flags, &ids, &err);
    /* tokenizers with steps may have no token for a text, or make it too long */
    require(s == GGL_OK || (strcmp(llm_tokenizer_kind_name(t), "steps") == 0 && err.msg[0]));
    for (size_t i = 0; i < ids.n; i++) {
        require(ids.id[i] >= 0 && ids.id[i] < llm_tokenizer_n_vocab(t));
        require((flags & LLM_TOKENIZE_SPECIAL) || !llm_tokenizer_is_control(t, ids.id[i]));
    }
    const ggl_status d =
        llm_detokenize(t, ids.id, ids.n, flags & LLM_TOKENIZE_SPECIAL, &back, &size, &err);
    require(d == GGL_OK ? back[size] == '\0'
                        : !back && strcmp(llm_tokenizer_kind_name(t), "steps") == 0 && err.msg[0]);
    ggl_free(back);
    llm_tokens_fini(&ids);
}

/* No part that is only text becomes a control token. */
static void use_given(const llm_tokenizer *t, const char *text, size_t n) {
    llm_span whole = {0, n};
    const llm_spans given = {&whole, 1, 1};
    llm_tokens ids = {0};
    ggl_error err = {0};
    const ggl_status s = llm_tokenize_given(t, &given, text, n, LLM_TOKENIZE_SPECIAL, &ids, &err);
    require(s == GGL_OK || err.msg[0]);
    for (size_t i = 0; i < ids.n; i++)
        require(!llm_tokenizer_is_control(t, ids.id[i]));
    llm_tokens_fini(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    ggl_gguf *f;
    ggl_error err = {0};
    llm_tokenizer *t;
    ggl_str text = {(const char *)data, size < 200 ? size : 200};
    if (ggl_gguf_open_memory(&f, data, size, "fuzz", &err) != GGL_OK)
        return 0;
    ggl_gguf_get_string(f, "fuzz.text", &text, &err);
    if (llm_tokenizer_new(&t, f, &err) == GGL_OK) {
        use(t, text.s, text.n, 0);
        use(t, text.s, text.n, LLM_TOKENIZE_BOS | LLM_TOKENIZE_SPECIAL);
        use_given(t, text.s, text.n);
        llm_tokenizer_free(t);
    } else {
        require(!t && err.status != GGL_OK && err.msg[0]);
    }
    ggl_gguf_close(f);
    return 0;
}

static const char TEXT[] = "A <mask>the <|user|> \xc3\x89 \xe4\xb8\xad<dna>acgtN</dna>Hello "
                           "<s>w\xc3\xb6rld</s>, it's 12345\n\n  \xff  <|im_end|>abab abcabc";

/* A charsmap: 'A' becomes "bc". The units not named belong to nothing. */
static void put_map(ggl_gguf_writer *w) {
    enum { N = 0x44 };
    uint8_t map[4 + 4 * N + 4] = {0};
    const uint32_t units[][2] = {
        {0, 1 << 10}, {0x40, 1 << 10 | 1 << 8 | 'A'}, {0x41, 1u << 31 | 1}};
    map[0] = 4 * N & 0xff;
    map[1] = 4 * N >> 8;
    for (int i = 0; i < 3; i++)
        for (int b = 0; b < 4; b++)
            map[4 + 4 * units[i][0] + b] = (uint8_t)(units[i][1] >> 8 * b);
    memcpy(map + 4 + 4 * N, "\0bc", 4);
    ggl_gguf_put(w, "tokenizer.ggml.precompiled_charsmap", GGL_GGUF_U8, true, map, sizeof map);
}

/* Steps of all sorts; ' stands for ". */
static void put_steps(ggl_gguf_writer *w, int k) {
    static const char
        *const normalizers
            [] = {"[{'type': 'NFC'}, {'type': 'Replace', 'pattern': {'Regex': ' {2,}|^a'}, "
                  "'content': 'x'}]",
                  "[{'type': 'BertNormalizer'}, {'type': 'Prepend', 'prepend': ' '}]",
                  "[{'type': 'NFKD'}, {'type': 'StripAccents'}, {'type': 'Lowercase'}, {'type': "
                  "'ByteLevel'}]",
                  "[{'type': 'Nmt'}, {'type': 'Strip', 'strip_left': true, 'strip_right': false}]"},
 *const cutters[] =
        {"[{'type': 'Split', 'pattern': {'Regex': '\\\\s+|\\\\p{N}{1,3}'}, 'behavior': "
         "'Contiguous'}, {'type': 'ByteLevel'}]",
         "[{'type': 'BertPreTokenizer'}, {'type': 'Digits', 'individual_digits': true}]",
         "[{'type': 'Metaspace', 'replacement': '\u2581', 'prepend_scheme': 'first'}, {'type': "
         "'UnicodeScripts'}]",
         "[{'type': 'Punctuation'}, {'type': 'FixedLength', 'length': 2}, {'type': 'Whitespace'}]"},
 *const decoders[] = {"[{'type': 'ByteLevel'}]",
                      "[{'type': 'WordPiece', 'prefix': '##', 'cleanup': true}, {'type': 'CTC', "
                      "'pad_token': 'a', "
                      "'word_delimiter_token': 'b', 'cleanup': true}]",
                      "[{'type': 'Metaspace', 'replacement': '\u2581'}, {'type': 'ByteFallback'}, "
                      "{'type': 'Fuse'}, {'type': 'Strip', 'content': "
                      "' ', 'start': 1, 'stop': 1}]",
                      "[{'type': 'BPEDecoder', 'suffix': 'o'}]"},
 *const models[] = {"'BPE', 'unk_token': '<unk>', 'fuse_unk': true, 'byte_fallback': true",
                    ("'WordPiece', 'continuing_subword_prefix': '##', "
                     "'max_input_chars_per_word': 9"),
                    "'Unigram', 'unk_id': 0, 'byte_fallback': true",
                    "'WordLevel', 'unk_token': '<unk>'"};
    char json[2048];
    snprintf(json, sizeof json,
             "{'normalizer': {'type': 'Sequence', 'normalizers': %s}, 'pre_tokenizer': {'type': "
             "'Sequence', 'pretokenizers': %s}, 'decoder': {'type': 'Sequence', "
             "'decoders': %s}, 'added_tokens': [{'id': 1, 'special': true, 'lstrip': true}, {'id': "
             "13, 'rstrip': true, 'single_word': true}, {'id': 2, 'special': true, "
             "'normalized': true}], 'model': {'type': %s}}",
             normalizers[k], cutters[k], decoders[k], models[k]);
    for (char *c = json; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    ggl_gguf_put_string(w, "tokenizer.ggl.steps", json, strlen(json));
    ggl_gguf_put(w, "tokenizer.ggl.merges", GGL_GGUF_I32, true, (int32_t[]){4, 5, 7, 6, 10, 11}, 6);
}

/* Scores and types for any kind, merges for those that have them. */
static ggl_gguf_writer *seed(const char *model, const char *pre) {
    static const char *const pieces[] = {"<unk>",    "<s>",
                                         "</s>",     "\xe2\x96\x81",
                                         "a",        "b",
                                         "c",        "ab",
                                         "abc",      "\xc4\xa0",
                                         "l",        "o",
                                         "lo",       "<|im_end|>",
                                         "1",        "2",
                                         "12",       "'",
                                         "s",        "<0x0A>",
                                         "\xc4\x8a", "\xe2\x96\x81w",
                                         "##o",      "\\x0a\\t",
                                         "<dna>",    "</dna>",
                                         "<oov>",    "ACGTAA\xee\x80\x80",
                                         "<mask>",   "<|placeholder1|>",
                                         "<|user|>"};
    static const char *const merges[] = {"a b", "ab c", "\xc4\xa0 a", "l o", "1 2", "' s", "x y"};
    enum { N = sizeof pieces / sizeof *pieces, N_MERGES = sizeof merges / sizeof *merges };
    ggl_str s[N];
    float score[N];
    int32_t type[N];
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    require(w != NULL);
    ggl_gguf_put_string(w, "tokenizer.ggml.model", model, strlen(model));
    ggl_gguf_put_string(w, "tokenizer.ggml.pre", pre, strlen(pre));
    for (int i = 0; i < N; i++) {
        s[i] = (ggl_str){pieces[i], strlen(pieces[i])};
        score[i] = (float)-i;
        type[i] = i == 0 ? 2 : i < 3 || i > N - 4 ? 3 : i == 13 ? 4 : i == 19 ? 6 : 1;
    }
    ggl_gguf_put_strings(w, "tokenizer.ggml.tokens", s, N);
    ggl_gguf_put(w, "tokenizer.ggml.scores", GGL_GGUF_F32, true, score, N);
    ggl_gguf_put(w, "tokenizer.ggml.token_type", GGL_GGUF_I32, true, type, N);
    if (strcmp(pre, "source") == 0) { /* a text is cut by these: some are tokens */
        ggl_gguf_put_strings(w, "tokenizer.ggml.source_pieces", s + 3, 5);
        ggl_gguf_put(w, "tokenizer.ggml.source_scores", GGL_GGUF_F32, true, score, 5);
    }
    for (int i = 0; i < N_MERGES; i++)
        s[i] = (ggl_str){merges[i], strlen(merges[i])};
    ggl_gguf_put_strings(w, "tokenizer.ggml.merges", s, N_MERGES);
    ggl_gguf_put(w, "tokenizer.ggml.unknown_token_id", GGL_GGUF_U32, false, &(uint32_t){0}, 1);
    ggl_gguf_put(w, "tokenizer.ggml.bos_token_id", GGL_GGUF_U32, false, &(uint32_t){1}, 1);
    ggl_gguf_put(w, "tokenizer.ggml.eos_token_id", GGL_GGUF_U32, false, &(uint32_t){2}, 1);
    ggl_gguf_put(w, "tokenizer.ggml.add_bos_token", GGL_GGUF_BOOL, false, &(uint8_t){1}, 1);
    ggl_gguf_put(w, "tokenizer.ggml.add_space_prefix", GGL_GGUF_BOOL, false, &(uint8_t){1}, 1);
    ggl_gguf_put(w, "tokenizer.ggml.remove_extra_whitespaces", GGL_GGUF_BOOL, false, &(uint8_t){1},
                 1);
    ggl_gguf_put(w, "tokenizer.ggml.normalizer.lowercase", GGL_GGUF_BOOL, false, &(uint8_t){1}, 1);
    put_map(w);
    if (strcmp(model, "steps") == 0)
        put_steps(w, atoi(pre));
    ggl_gguf_put_string(w, "fuzz.text", TEXT, sizeof TEXT - 1);
    return w;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char *const seeds[][2] = {{"llama", "default"},
                                           {"gpt2", "gpt-2"},
                                           {"gpt2", "llama-bpe"},
                                           {"gpt2", "qwen2"},
                                           {"gpt2", "deepseek-llm"},
                                           {"gpt2", "tiny_aya"},
                                           {"gpt2", "superbpe"},
                                           {"gpt2", "jais-2"},
                                           {"bert", ""},
                                           {"t5", ""},
                                           {"t5", "source"},
                                           {"rwkv", ""},
                                           {"plamo2", ""},
                                           {"gemma4", ""},
                                           {"gpt2", "sarvam-moe"},
                                           {"whitespace", "whitespace"},
                                           {"hybriddna", "gpt-2"},
                                           {"steps", "0"},
                                           {"steps", "1"},
                                           {"steps", "2"},
                                           {"steps", "3"},
                                           {"none", ""}};
    if (k >= (int)(sizeof seeds / sizeof *seeds))
        return false;
    ggl_error err = {0};
    void *bytes;
    ggl_gguf_writer *w = seed(seeds[k][0], seeds[k][1]);
    require(ggl_gguf_writer_write_memory(w, &bytes, size, &err) == GGL_OK);
    ggl_gguf_writer_free(w);
    *data = malloc(*size);
    require(*data != NULL);
    memcpy(*data, bytes, *size);
    ggl_free(bytes);
    return true;
}
