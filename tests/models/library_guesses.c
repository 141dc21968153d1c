/* Layers of a model that guess, beside what else a context can do: adapters, embeddings, plans; and embeddings of lists of tokens. */
#include "library_test.h"
#include "tiny_model.h"

/* The row that the guesses read is what the last product reads, as in published models. */
static const char guesses[] =
    "arch tiny\nlanguage 2\ntoken_embd [16, 8]\nx = token_embd[token]\nh = heads(x, 2)\n"
    "x = rms(x + attention(h, h, h), 1e-6)\nlogits = linear(x, token_embd)\n"
    "stage draft over x(ahead = 1):\n  h = heads(token_embd[token], 2)\n"
    "  return token_embd[token] + attention(h, h, h) + x * 0.03\n"
    "guess = linear(draft, token_embd)\n";

static bool write_adapter(const char *path) {
    float a[16 * 2], b[2 * 8];
    const float alpha = 2;
    ggl_error err;
    for (int i = 0; i < 16 * 2; i++)
        a[i] = 0.3f * cosf((float)i);
    for (int i = 0; i < 2 * 8; i++)
        b[i] = 0.4f * sinf((float)i + 1);
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_gguf_put_string(w, "general.type", "adapter", 7);
    ggl_gguf_put_string(w, "general.architecture", "tiny", 4);
    ggl_gguf_put_string(w, "adapter.type", "lora", 4);
    ggl_gguf_put(w, "adapter.lora.alpha", GGL_GGUF_F32, false, &alpha, 1);
    ggl_gguf_put_tensor(w, "token_embd.weight.lora_a", GGL_F32, 2, (int64_t[]){2, 8}, b);
    ggl_gguf_put_tensor(w, "token_embd.weight.lora_b", GGL_F32, 2, (int64_t[]){2, 16}, a);
    const bool ok = CHECK_OK(ggl_gguf_writer_write(w, path, &err), &err);
    ggl_gguf_writer_free(w);
    return ok;
}

static drawn draw(llm_context *c) {
    static const int32_t prompt[] = {3, 1, 4, 1, 5};
    drawn d = {.n = 0};
    ggl_error err;
    llm_generate_params p = greedy(30);
    p.token = keep_token;
    p.user = &d;
    CHECK_OK(generate_ids(c, prompt, 5, &p, NULL, NULL, &err), &err);
    return d;
}

static void same(const drawn *a, const drawn *b) {
    CHECK_INT(a->n, 30);
    CHECK(memcmp(a, b, sizeof *a) == 0);
}

/* Another scale means another session, whose rows the guesses hear then; the sanitizer sees whether the old one is still used. */
TEST(scales_of_adapters) {
    ggl_error err;
    char path[1024];
    snprintf(path, sizeof path, "%s", test_path("adapter.gguf"));
    REQUIRE(tiny_model_write(test_path("tiny.gguf"), guesses, 0.7f) && write_adapter(path));
    const llm_lora lora = {path, 1};
    llm_open_params p = {.adapter = &lora, .n_adapters = 1};
    llm_context *plain = open_with(test_path("tiny.gguf"), p);
    p.draft = "";
    p.draft_p_min = 1e-6f;
    llm_context *ahead = open_with(test_path("tiny.gguf"), p);
    REQUIRE(plain && ahead);
    for (double scale = 0; scale < 3; scale += 1.5) {
        CHECK_OK(llm_set_adapter_scale(plain, 0, scale, &err), &err);
        CHECK_OK(llm_set_adapter_scale(ahead, 0, scale, &err), &err);
        const drawn want = draw(plain), got = draw(ahead);
        same(&want, &got);
    }
    llm_close(plain);
    llm_close(ahead);
}

static bool keep_row(void *user, size_t text, size_t n_rows, const float *row, size_t n) {
    (void)text;
    if (CHECK(n_rows == 1 && n == 16))
        memcpy(user, row, n * sizeof *row);
    return true;
}

/* One row is what guesses read, and the embedding. */
TEST(embeddings) {
    static const int32_t id[] = {3, 1, 4};
    const int32_t *texts[] = {id};
    const size_t n[] = {3};
    float rows[2][16];
    drawn text[2];
    ggl_error err;
    REQUIRE(tiny_model_write(test_path("tiny.gguf"), guesses, 0.7f));
    for (int k = 0; k < 2; k++) {
        llm_context *c = open_with(test_path("tiny.gguf"),
                                   (llm_open_params){.embeddings = true, .draft = k ? "" : NULL});
        REQUIRE(c);
        text[k] = draw(c);
        const llm_embed_params p = {.size = sizeof p, .each = keep_row, .user = rows[k]};
        CHECK_OK(llm_embed_tokens(c, texts, n, 1, &p, &err), &err);
        llm_close(c);
    }
    same(&text[0], &text[1]);
    CHECK(memcmp(rows[0], rows[1], sizeof rows[0]) == 0);
}

/* The last token of a list that is cut keeps its type. */
TEST(types_of_tokens_that_are_cut) {
    enum { CTX = 16, MORE = 5 };
    int32_t id[CTX + MORE], type[CTX + MORE];
    const int32_t *const ids[] = {id}, *const types[] = {type};
    float vector[3][TINY_WIDTH];
    ggl_error err;
    REQUIRE(tiny_model_write(test_path("tiny.gguf"),
                             MODEL("x = x + token_embd[token_type(3)]\n" ALL), 0.7f));
    llm_context *c =
        open_with(test_path("tiny.gguf"),
                  (llm_open_params){.n_ctx = CTX, .embeddings = true, .pooling = "last"});
    REQUIRE(c);
    for (int i = 0; i < CTX + MORE; i++) {
        id[i] = i % TINY_VOCAB;
        type[i] = i < CTX ? 1 : 2;
    }
    for (int k = 0; k < 3; k++) {
        const size_t n[] = {k == 0 ? CTX + MORE : CTX};
        type[CTX - 1] = k == 2 ? 2 : 1;
        const llm_embed_params p = {
            .size = sizeof p, .truncate = true, .type = types, .each = keep_row, .user = vector[k]};
        CHECK_OK(llm_embed_tokens(c, ids, n, 1, &p, &err), &err);
    }
    CHECK(memcmp(vector[0], vector[1], sizeof vector[0]) == 0);
    CHECK(memcmp(vector[1], vector[2], sizeof vector[1]) != 0);
    llm_close(c);
}

/* A question about the model does not count what guesses. */
TEST(plans) {
    ggl_error err;
    char *json = NULL;
    size_t n;
    const llm_open_params p = {.size = sizeof p, .n_ctx = 64, .draft = ""};
    CHECK_OK(llm_plan("builtin:stories", &p, &json, &n, &err), &err);
    ggl_free(json);
}
