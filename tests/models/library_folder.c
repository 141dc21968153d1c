/* llm_open with a Hugging Face folder and with a checkpoint of llama2.c: the same logits, to the last bit, as with the GGUF file that
 * llm-convert makes of them. */
#include "llm/llm.h"

#include <sys/stat.h>

#include "convert_test.h"
#include "ggl/internal/gguf.h"
#include "hf_layout.h"
#include "sample.h"

enum { N_IDS = 9 };

/* Writes the logits [N_IDS, n_vocab] of a text to *out, which the caller frees; returns their number, 0 after an error. */
static size_t logits_of(const char *path, float **out) {
    static const int32_t id[N_IDS] = {3, 1, 4, 1, 5, 9, 2, 6, 255};
    const llm_open_params p = {.size = sizeof p, .n_ctx = 32, .n_threads = 2};
    llm_context *c;
    *out = NULL;
    if (!CHECK_OK(llm_open(&c, path, &p, &err), &err))
        return 0;
    const size_t n = N_IDS * (size_t)llm_context_facts(c)->n_vocab;
    const float *logits;
    if (CHECK_OK(llm_eval(c, id, N_IDS, true, &logits, &err), &err) &&
        (*out = malloc(n * sizeof **out)))
        memcpy(*out, logits, n * sizeof **out);
    llm_close(c);
    return *out ? n : 0;
}

static void check_same(const char *path, const char *file) {
    float *got, *want;
    const size_t n = logits_of(path, &got), n_want = logits_of(file, &want);
    bool differ = false;
    CHECK_INT(n, n_want);
    for (size_t i = 1; i < n; i++)
        differ |= want[i] != want[0];
    CHECK(n > 0 && differ); /* a model that computes something */
    CHECK(n == 0 || n != n_want || memcmp(got, want, n * sizeof *got) == 0);
    free(got);
    free(want);
}

/* Converts what is at the path to a file of the test's folder, whose path is written to `file`. */
static bool convert_to(const char *path, char *file, size_t size) {
    const llm_convert_params p = params_of(LLM_CONVERT_AUTO);
    llm_converter *c;
    snprintf(file, size, "%s", test_path("converted.gguf"));
    if (!CHECK_OK(llm_converter_open(&c, path, &p, &err), &err))
        return false;
    const bool ok = CHECK_OK(llm_converter_write(c, file, &err), &err);
    llm_converter_free(c);
    return ok;
}

/* Makes a folder of a small Llama. */
static bool make_folder(void) {
    char *config;
    layout l, hf;
    if (!CHECK(
            layout_make(&l, "llama",
                        "vocab_size=320 context_length=256 embedding_length=64 block_count=2 "
                        "feed_forward_length=96 attention.head_count=4 attention.head_count_kv=2 "
                        "attention.layer_norm_rms_epsilon=0.01 rope.freq_base=500000 "
                        "rope.dimension_count=16",
                        "", true)) ||
        !CHECK(layout_to_hf(&l, "LlamaForCausalLM", "", &hf, &config)))
        return false;
    const bool ok = CHECK(put_text("config.json", config)) &&
                    CHECK(layout_write(&hf, test_path("model.safetensors"), "BF16"));
    layout_free(&hf);
    layout_free(&l);
    free(config);
    return ok;
}

TEST(folder) {
    char file[512];
    if (make_folder() && convert_to(test_folder(), file, sizeof file))
        check_same(test_folder(), file);
}

static void note(void *user, const char *text) {
    char *notes = user;
    const size_t used = strlen(notes);
    snprintf(notes + used, 2000 - used, "%s\n", text);
}

static void check_json(const llm_context *c, const char *key, const char *want) {
    char *json;
    size_t n;
    if (CHECK_OK(llm_context_json(c, key, &json, &n, &err), &err))
        CHECK_STR(json, want);
    ggl_free(json);
}

/* What generation_config.json says about sampling, and which tokens it suppresses, is in the converted file, with llama.cpp's types, and the same counts in a
 * folder that is opened. Values that are none are named and left out. */
TEST(folders_have_defaults_of_sampling) {
    static const struct {
        const char *key, *json;
        ggl_gguf_type type;
    } want[] = {{"general.sampling.temp", "0.5", GGL_GGUF_F32},
                {"general.sampling.top_k", "20", GGL_GGUF_I32},
                {"general.sampling.min_p", "0", GGL_GGUF_F32},
                {"general.sampling.penalty_repeat", "1.25", GGL_GGUF_F32},
                {"general.sampling.sequence", "\"top_k;temperature\"", GGL_GGUF_STRING},
                {"tokenizer.ggml.suppress_tokens", "[3, 7]", GGL_GGUF_I32}};
    char file[512];
    REQUIRE(make_folder());
    REQUIRE(
        put_text("generation_config.json",
                 "{\"do_sample\": false, \"temperature\": 0.5, \"top_k\": 20, \"top_p\": \"much\", "
                 "\"min_p\": 0, \"repetition_penalty\": 1.25, \"penalty_repeat\": null, "
                 "\"xtc_threshold\": null, \"mirostat\": 0.5, \"typical_p\": 0.1, "
                 "\"sequence\": \"top_k;temperature\", \"suppress_tokens\": [3, 7]}"));
    REQUIRE(convert_to(test_folder(), file, sizeof file));
    for (int k = 0; k < 2; k++) {
        char notes[2000] = "";
        const llm_open_params p = {
            .size = sizeof p, .n_ctx = 32, .n_threads = 2, .note = note, .user = notes};
        llm_context *c;
        REQUIRE_OK(llm_open(&c, k == 0 ? file : test_folder(), &p, &err), &err);
        for (size_t i = 0; i < sizeof want / sizeof *want; i++)
            check_json(c, want[i].key, want[i].json);
        CHECK_HAS(notes, "the model's file sets temperature 0.5, top_k 20, min_p 0, repeat_penalty "
                         "1.25, samplers top_k;temperature; no_file_sampling ignores that");
        const llm_generate_params g = llm_generate_default_of(c);
        CHECK(g.temp == 0.5f && g.top_k == 20 && g.min_p == 0 && g.top_p == 0.95f);
        CHECK(g.repeat_penalty == 1.25f && g.mirostat == 0 && g.typical_p == 1);
        if (k == 1) {
            CHECK_HAS(notes,
                      "generation_config.json: top_p is \"much\", which is no number, so there "
                      "is no key general.sampling.top_p");
            CHECK_HAS(notes, "mirostat is 0.5, which is no integer of 32 bits, so there is no key");
        }
        llm_close(c);
    }
    ggl_gguf *f;
    REQUIRE_OK(ggl_gguf_open(&f, file, NULL, &err), &err);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const ggl_gguf_value *v = ggl_gguf_find(f, want[i].key);
        CHECK_MSG(v && v->type == want[i].type, "%s", want[i].key);
    }
    CHECK(!ggl_gguf_find(f, "general.sampling.top_p") &&
          !ggl_gguf_find(f, "general.sampling.mirostat"));
    ggl_gguf_close(f);
    REQUIRE(put_text("generation_config.json",
                     "{\"suppress_tokens\": [1, \"a\"], \"temperature\": 1e99}"));
    char notes[2000] = "";
    llm_context *c;
    const llm_open_params p = {.size = sizeof p, .n_ctx = 32, .note = note, .user = notes};
    REQUIRE_OK(llm_open(&c, test_folder(), &p, &err), &err);
    CHECK_HAS(notes,
              "suppress_tokens is [1, \"a\"], which is no list of tokens, so there is no key");
    CHECK_HAS(notes, "temperature is 1e+99, which is no number, so there is no key");
    llm_close(c);
    REQUIRE(put_text("generation_config.json", "{\"suppress_tokens\": []}"));
    REQUIRE_OK(llm_open(&c, test_folder(), NULL, &err), &err);
    char *json;
    size_t n;
    CHECK_INT(llm_context_json(c, "tokenizer.ggml.suppress_tokens", &json, &n, &err),
              GGL_NOT_FOUND);
    llm_close(c);
}

/* --- a checkpoint ----------------------------------------------------------------------------- */

enum { DIM = 32, HIDDEN = 64, LAYERS = 2, HEADS = 4, KV_HEADS = 2, VOCAB = 256, SEQ = 16 };

/* Writes n numbers around `middle` to out. */
static float *put_numbers(float *out, size_t n, float middle) {
    for (size_t i = 0; i < n; i++)
        out[i] = middle + (float)(sample_mix(i + n) >> 40) / (1 << 25) - 0.25f;
    return out + n;
}

/* Writes a checkpoint of version 0, whose output matrix is the embedding. */
static bool make_checkpoint(const char *path) {
    enum {
        KV = DIM / HEADS * KV_HEADS,
        MATRICES = LAYERS * (2 * DIM * DIM + 2 * KV * DIM),
        FEED = LAYERS * 3 * DIM * HIDDEN,
        TABLES = SEQ * (DIM / HEADS),
        ALL = VOCAB * DIM + LAYERS * DIM + MATRICES + LAYERS * DIM + FEED + DIM + TABLES
    };
    static const int32_t head[] = {DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB, SEQ};
    char *bytes = calloc(1, sizeof head + ALL * sizeof(float));
    if (!bytes)
        return false;
    memcpy(bytes, head, sizeof head);
    float *at = (float *)(void *)(bytes + sizeof head);
    at = put_numbers(at, VOCAB * DIM, 0);
    at = put_numbers(at, LAYERS * DIM, 1);
    at = put_numbers(at, MATRICES, 0);
    at = put_numbers(at, LAYERS * DIM, 1);
    at = put_numbers(at, FEED, 0);
    (void)put_numbers(at, DIM, 1);
    const bool ok = test_write_file(path, bytes, sizeof head + ALL * sizeof(float));
    free(bytes);
    return ok;
}

TEST(checkpoint) {
    char file[512], path[512];
    snprintf(path, sizeof path, "%s", test_path("small.bin"));
    REQUIRE(make_checkpoint(path));
    if (convert_to(path, file, sizeof file))
        check_same(path, file);
}

/* Opens what is no model; the message must be the words, with the folder's path before them. */
static void check_refused(const char *path, const char *words) {
    char want[600];
    llm_context *c;
    snprintf(want, sizeof want, "%s%s", path, words);
    CHECK_INT(llm_open(&c, path, NULL, &err), GGL_IO);
    CHECK_STR(err.msg, want);
}

TEST(folders_of_peft) {
    char folder[400], name[500], words[900];
    llm_context *c;
    snprintf(folder, sizeof folder, "%s", test_path("peft"));
    REQUIRE(mkdir(folder, 0777) == 0);
    static const char *const files[] = {"adapter_config.json", "adapter_model.safetensors"};
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s/%s", folder, files[i]);
        FILE *f = fopen(name, "w");
        REQUIRE(f);
        fclose(f);
    }
    snprintf(words, sizeof words,
             " of PEFT; this makes a GGUF file of it: llm-lora convert '%s' --base MODEL_FOLDER -o "
             "'peft.gguf'",
             folder);
    CHECK_INT(llm_open(&c, folder, NULL, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, words);
    CHECK_INT(llm_export_adapter(folder, folder, folder, NULL, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, words);
    CHECK_INT(llm_export_adapter(name, folder, folder, NULL, &err), GGL_FORMAT);
    CHECK_HAS(err.msg, " is part of an adapter");
    CHECK_HAS(err.msg, words);
}

TEST(folders_that_are_no_models) {
    char folder[400], name[500], words[600];
    llm_context *c;
    snprintf(folder, sizeof folder, "%s", test_path("nothing"));
    REQUIRE(mkdir(folder, 0777) == 0);
    check_refused(folder, " is a folder without a GGUF file, and without the config.json of a "
                          "Hugging Face folder");
    snprintf(name, sizeof name, "%s/params.json", folder);
    FILE *params = fopen(name, "w");
    REQUIRE(params);
    fclose(params);
    check_refused(folder, " has params.json in place of config.json: weights in the form of their "
                          "authors (consolidated.safetensors, consolidated.00.pth) are not read; "
                          "the same model as transformers reads it, with config.json and "
                          "model.safetensors, or a GGUF file is needed");
    REQUIRE(remove(name) == 0);
    static const char *const files[] = {"mmproj-a.gguf", "b-00001-of-00002.gguf", "d.gguf",
                                        "c.gguf"};
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%s/%s", folder, files[i]);
        FILE *f = fopen(name, "w");
        REQUIRE(f);
        fclose(f);
        snprintf(words, sizeof words, " is a folder, not a file; did you mean %s/%s%s?", folder,
                 i == 3 ? "c.gguf" : "d.gguf", i == 3 ? " (the first of 2)" : "");
        check_refused(folder, i == 0   ? " is a folder without a model; its mmproj-a.gguf is a "
                                         "projector or an importance matrix by its name"
                              : i == 1 ? " is a folder with only a part of a split model; "
                                         "b-00002-of-00002.gguf, part 2 of 2, is missing"
                                       : words);
    }
    CHECK_INT(llm_open(&c, "", NULL, &err), GGL_USAGE);
    CHECK_STR(err.msg, "the path of the model is empty");
}
