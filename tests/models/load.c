/* Folders that are opened directly: the same keys, tensors and logits, to the last bit, as the file that llm-convert makes of
 * them; what the conversion does not change is used where the folder's files have it. */
#include "llm/internal/load.h"

#include <math.h>
#include <unistd.h>

#include "convert_test.h"
#include "ggl/alloc.h"
#include "hf_layout.h"
#include "llm/internal/session.h"
#include "quant/keys.h"

typedef struct kind {
    const char *family, *class_name, *keys, *optional;
} kind;

#define COMMON "vocab_size=320 context_length=256 embedding_length=64 block_count=2 "

static const kind llama = {"llama", "LlamaForCausalLM",
                           COMMON "feed_forward_length=96 attention.head_count=4 "
                                  "attention.head_count_kv=2 attention.layer_norm_rms_epsilon=0.01 "
                                  "rope.freq_base=500000 rope.dimension_count=16",
                           "rope_freqs.weight"};
static const kind qwen3 = {
    "qwen3", "Qwen3ForCausalLM",
    COMMON "feed_forward_length=96 attention.head_count=4 attention.head_count_kv=2 "
           "attention.key_length=32 attention.value_length=32 "
           "attention.layer_norm_rms_epsilon=0.002 rope.freq_base=1000000",
    ""};
static const kind qwen3moe = {
    "qwen3moe", "Qwen3MoeForCausalLM",
    COMMON "feed_forward_length=160 attention.head_count=4 attention.head_count_kv=2 "
           "attention.key_length=32 attention.value_length=32 "
           "attention.layer_norm_rms_epsilon=0.002 rope.freq_base=1000000 expert_count=8 "
           "expert_used_count=2 expert_feed_forward_length=32",
    "output.weight"};
static const kind gpt2 = {"gpt2", "GPT2LMHeadModel",
                          COMMON "feed_forward_length=128 attention.head_count=4 "
                                 "attention.layer_norm_epsilon=0.02",
                          "output.weight"};

static llm_load_params params_for(int n_threads) {
    return (llm_load_params){.size = sizeof(llm_load_params),
                             .open_backend = ggl_backend_open,
                             .close_backend = ggl_backend_close,
                             .n_threads = n_threads};
}

static bool make_folder(const kind *k, const char *dtype) {
    layout l, hf;
    char *config;
    if (!CHECK(layout_make(&l, k->family, k->keys, k->optional, true)))
        return false;
    for (int i = 0; i < l.n; i++) /* factors are above zero */
        for (int64_t n = 0; strstr(l.tensor[i].name, "rope_f") && n < l.tensor[i].ne[0]; n++)
            l.tensor[i].data[n] = l.tensor[i].data[n] * l.tensor[i].data[n] + 1;
    const bool ok = CHECK(layout_to_hf(&l, k->class_name, "", &hf, &config)) &&
                    CHECK(put_text("config.json", config)) &&
                    CHECK(layout_write(&hf, test_path("model.safetensors"), dtype));
    layout_free(&hf);
    layout_free(&l);
    free(config);
    return ok;
}

/* The file that llm-convert makes of the folder. */
static ggl_gguf *converted(llm_convert_type type) {
    const llm_convert_params p = params_of(type);
    return convert(&p);
}

static bool same_key(const ggl_gguf_value *a, const ggl_gguf_value *b) {
    bool same = a && b && a->type == b->type && a->is_array == b->is_array && a->n == b->n;
    for (uint64_t i = 0; same && i < a->n; i++) {
        double x = 0, y = 0;
        bool p = false, q = false;
        ggl_str s = {"", 0}, t = {"", 0};
        if (ggl_gguf_number(a, i, &x))
            same = ggl_gguf_number(b, i, &y) && memcmp(&x, &y, sizeof x) == 0;
        else if (ggl_gguf_string(a, i, &s))
            same = ggl_gguf_string(b, i, &t) && s.n == t.n && memcmp(s.s, t.s, s.n) == 0;
        else
            same = ggl_gguf_bool(a, i, &p) && ggl_gguf_bool(b, i, &q) && p == q;
    }
    return same;
}

/* The same keys and tensors in the same order, each bit of them. */
static void check_same(const ggl_gguf *a, const ggl_gguf *b) {
    CHECK_INT(ggl_gguf_n_values(a), ggl_gguf_n_values(b));
    for (size_t i = 0; i < ggl_gguf_n_values(a) && i < ggl_gguf_n_values(b); i++) {
        const ggl_gguf_value *x = ggl_gguf_value_at(a, i), *y = ggl_gguf_value_at(b, i);
        CHECK_MSG(x->key.n == y->key.n && memcmp(x->key.s, y->key.s, x->key.n) == 0 &&
                      same_key(x, y),
                  "key %.*s differs", (int)x->key.n, x->key.s);
    }
    CHECK_INT(ggl_gguf_n_tensors(a), ggl_gguf_n_tensors(b));
    for (size_t i = 0; i < ggl_gguf_n_tensors(a) && i < ggl_gguf_n_tensors(b); i++) {
        const ggl_gguf_tensor *x = ggl_gguf_tensor_at(a, i), *y = ggl_gguf_tensor_at(b, i);
        CHECK_MSG(x->name.n == y->name.n && memcmp(x->name.s, y->name.s, x->name.n) == 0 &&
                      x->type == y->type && x->n_dims == y->n_dims &&
                      memcmp(x->ne, y->ne, sizeof x->ne) == 0 && x->size == y->size &&
                      memcmp(x->data, y->data, x->size) == 0,
                  "tensor %.*s differs", (int)x->name.n, x->name.s);
    }
    CHECK(ggl_gguf_digest(a) == ggl_gguf_digest(b));
}

/* Bytes of tensors that were made, and those of all. A made one is in no file. */
static size_t made_bytes(const ggl_gguf *f, size_t *all) {
    size_t made = 0;
    *all = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        *all += t->size;
        made += ggl_gguf_mapped(f, t->part) ? 0 : t->size;
    }
    return made;
}

static void same_as_converted(const kind *k, const char *dtype) {
    REQUIRE(make_folder(k, dtype));
    ggl_gguf *want = converted(LLM_CONVERT_AUTO);
    REQUIRE(want);
    for (int n_threads = 1; n_threads <= 3; n_threads += 2) {
        const llm_load_params p = params_for(n_threads);
        ggl_gguf *got;
        if (CHECK_OK(llm_load(&got, test_folder(), NULL, &p, &err), &err))
            check_same(got, want);
        ggl_gguf_close(got);
    }
    ggl_gguf_close(want);
}

TEST(same_as_converted) {
    static const kind *const kinds[] = {&llama, &qwen3, &qwen3moe, &gpt2};
    static const char *const dtypes[] = {"F32", "F16", "BF16"};
    for (int k = 0; k < 4; k++)
        for (int d = 0; d < 3; d++)
            same_as_converted(kinds[k], dtypes[d]);
}

/* --- in place --------------------------------------------------------------------------------- */

TEST(unchanged_tensors_are_not_copied) {
    const llm_load_params p = params_for(1);
    ggl_gguf *f;
    size_t all = 0;
    REQUIRE(make_folder(&qwen3, "F32"));
    REQUIRE_OK(llm_load(&f, test_folder(), NULL, &p, &err), &err);
    CHECK_INT(made_bytes(f, &all), 0); /* a Qwen's tensors are a GGUF file's */
    CHECK(all > 0);
    CHECK_INT(ggl_gguf_n_parts(f), 1);
    ggl_gguf_close(f);

    REQUIRE(make_folder(&qwen3, "BF16")); /* norms become f32, and nothing else */
    REQUIRE_OK(llm_load(&f, test_folder(), NULL, &p, &err), &err);
    size_t norms = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++)
        norms += ggl_gguf_tensor_at(f, i)->n_dims == 1 ? (size_t)ggl_gguf_tensor_at(f, i)->size : 0;
    CHECK_INT(made_bytes(f, &all), norms);
    ggl_gguf_close(f);

    REQUIRE(make_folder(&llama, "F16")); /* two of three attention matrices are permuted */
    REQUIRE_OK(llm_load(&f, test_folder(), NULL, &p, &err), &err);
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        const bool permuted = ggl_str_is(t->name, "blk.0.attn_q.weight") ||
                              ggl_str_is(t->name, "blk.1.attn_q.weight") ||
                              ggl_str_is(t->name, "blk.0.attn_k.weight") ||
                              ggl_str_is(t->name, "blk.1.attn_k.weight");
        CHECK_MSG(ggl_gguf_mapped(f, t->part) == (t->n_dims == 2 && !permuted), "%.*s is %s",
                  (int)t->name.n, t->name.s, permuted ? "in place" : "made");
    }
    size_t size;
    const void *made = ggl_gguf_part(f, 1, &size);
    CHECK_INT((uintptr_t)made % 4096, 0); /* backends import whole pages */
    ggl_gguf_close(f);
}

/* The tensors of a file whose data begins at an odd byte are copied, as numbers must be aligned. */
TEST(unaligned_data_is_copied) {
    const llm_load_params p = params_for(2);
    ggl_gguf *f, *want;
    size_t n, all = 0;
    REQUIRE(make_folder(&qwen3, "F32"));
    want = converted(LLM_CONVERT_AUTO);
    unsigned char *bytes = test_read_file(test_path("model.safetensors"), &n);
    REQUIRE(bytes && want);
    uint64_t n_head;
    memcpy(&n_head, bytes, 8);
    unsigned char *odd = malloc(n + 1);
    memcpy(odd, bytes, 8 + n_head);
    odd[8 + n_head] = ' ';
    memcpy(odd + 8 + n_head + 1, bytes + 8 + n_head, n - 8 - n_head);
    n_head++;
    memcpy(odd, &n_head, 8);
    REQUIRE(test_write_file(test_path("model.safetensors"), odd, n + 1));
    free(bytes);
    free(odd);
    if (CHECK_OK(llm_load(&f, test_folder(), NULL, &p, &err), &err)) {
        check_same(f, want);
        const size_t made = made_bytes(f, &all);
        CHECK_INT(made, all);
        ggl_gguf_close(f);
    }
    ggl_gguf_close(want);
}

/* A model in two files: both are parts, and identify it. */
TEST(shards) {
    const llm_load_params p = params_for(2);
    ggl_gguf *f, *want;
    layout l, hf, half;
    char *config;
    size_t all = 0;
    REQUIRE(make_folder(&qwen3, "BF16"));
    want = converted(LLM_CONVERT_AUTO);
    REQUIRE(want && layout_make(&l, qwen3.family, qwen3.keys, "", true));
    REQUIRE(layout_to_hf(&l, qwen3.class_name, "", &hf, &config));
    REQUIRE(unlink(test_path("model.safetensors")) == 0);
    half = hf;
    half.n = hf.n / 2;
    REQUIRE(layout_write(&half, test_path("model-00001-of-00002.safetensors"), "BF16"));
    half.tensor += half.n;
    half.n = hf.n - half.n;
    REQUIRE(layout_write(&half, test_path("model-00002-of-00002.safetensors"), "BF16"));
    layout_free(&hf);
    layout_free(&l);
    free(config);
    if (CHECK_OK(llm_load(&f, test_folder(), NULL, &p, &err), &err)) {
        CHECK_INT(ggl_gguf_n_parts(f), 3); /* two files, and the norms as f32 */
        CHECK(ggl_gguf_mapped(f, 0) && ggl_gguf_mapped(f, 1) && !ggl_gguf_mapped(f, 2));
        check_same(f, want);
        CHECK(made_bytes(f, &all) < all / 10);
        ggl_gguf_close(f);
    }
    ggl_gguf_close(want);
}

TEST(meta_only_makes_nothing) {
    const llm_load_params p = params_for(1);
    const ggl_gguf_params meta = {.size = sizeof meta, .meta_only = true};
    ggl_gguf *f;
    REQUIRE(make_folder(&llama, "F16"));
    REQUIRE_OK(llm_load(&f, test_folder(), &meta, &p, &err), &err);
    CHECK(ggl_gguf_n_tensors(f) > 10);
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++)
        CHECK(!ggl_gguf_tensor_at(f, i)->data && ggl_gguf_tensor_at(f, i)->size > 0);
    CHECK_INT(ggl_gguf_n_parts(f), 1);
    ggl_gguf_close(f);
}

/* --- what the file is called, and identified by ----------------------------------------------- */

TEST(names_and_identities) {
    const llm_load_params p = params_for(1);
    char path[600];
    ggl_gguf *f;
    ggl_gguf_identity first, again, other;
    REQUIRE(make_folder(&llama, "F16"));
    snprintf(path, sizeof path, "%s//", test_folder());
    CHECK(llm_load_converts(path));
    CHECK(!llm_load_converts(test_path("model.safetensors")) && !llm_load_converts("no such"));
    REQUIRE_OK(llm_load(&f, path, NULL, &p, &err), &err);
    CHECK_STR(ggl_gguf_name(f), test_folder());
    CHECK(ggl_gguf_identify(f, &first));
    ggl_gguf_close(f);
    REQUIRE_OK(llm_load(&f, test_folder(), NULL, &p, &err), &err);
    CHECK(ggl_gguf_identify(f, &again));
    ggl_gguf_close(f);
    CHECK(memcmp(&first, &again, sizeof first) == 0);

    /* a key that only config.json has */
    size_t n;
    char *config = (char *)test_read_file(test_path("config.json"), &n);
    REQUIRE(config && (config = realloc(config, n + 1)));
    config[n] = '\0';
    char *theta = strstr(config, "500000");
    REQUIRE(theta);
    theta[0] = '6';
    REQUIRE(put_text("config.json", config));
    free(config);
    REQUIRE_OK(llm_load(&f, test_folder(), NULL, &p, &err), &err);
    CHECK(ggl_gguf_identify(f, &other));
    ggl_gguf_close(f);
    CHECK(other.tensors != first.tensors);
}

/* --- logits ----------------------------------------------------------------------------------- */

enum { N = 9 };

static float *logits_of(const char *path, size_t *n) {
    const llm_load_params load = params_for(2);
    const llm_model_params mp = {.size = sizeof mp, .load = &load};
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = 2, .n_threads_batch = 2};
    ggl_backend *cpu = NULL;
    llm_model *m = NULL;
    llm_session *s = NULL;
    float *copy = NULL;
    llm_session_params sp = llm_session_default();
    int32_t token[N];
    bool want[N] = {[N - 1] = true};
    sp.backend = &cpu;
    sp.n_backends = 1;
    for (int i = 0; i < N; i++)
        token[i] = i * 31 % 320;
    const llm_batch b = {.n = N, .token = token, .want = want};
    if (CHECK_OK(ggl_backend_open(&cpu, "cpu", &bp, &err), &err) &&
        CHECK_OK(llm_model_open(&m, path, &mp, &err), &err) &&
        CHECK_OK(llm_session_new(&s, m, &sp, &err), &err) &&
        CHECK_OK(llm_session_alloc(s, &err), &err) &&
        CHECK_OK(llm_session_eval(s, &b, &err), &err)) {
        *n = (size_t)llm_session_n_vocab(s) * sizeof *copy;
        copy = malloc(*n);
        memcpy(copy, llm_session_logits(s), *n);
    }
    llm_session_free(s);
    llm_model_free(m);
    ggl_backend_close(cpu);
    return copy;
}

TEST(same_logits) {
    static const kind *const kinds[] = {&llama, &qwen3moe, &gpt2};
    for (int k = 0; k < 3; k++) {
        size_t n = 0, n_want = 0;
        REQUIRE(make_folder(kinds[k], "BF16"));
        ggl_gguf_close(converted(LLM_CONVERT_AUTO));
        float *got = logits_of(test_folder(), &n),
              *want = logits_of(test_path("out.gguf"), &n_want);
        CHECK(got && want && n == n_want && memcmp(got, want, n) == 0);
        free(got);
        free(want);
    }
}

/* --- quantizing --------------------------------------------------------------------------------- */

/* The file that llm-quantize would make of `f`, by the quantizer's plan and the types' own encoders, row by row. */
static ggl_gguf *quantized(const ggl_gguf *f, const char *type, void **bytes) {
    quant_choice choice;
    quant_plan plan;
    size_t size;
    ggl_gguf *out = NULL;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    ggl_arena arena = {0};
    if (!CHECK_OK(llm_quant_choice_read(&choice, type, &err), &err) ||
        !CHECK_OK(llm_quant_plan_make(&plan, f, &choice, &err), &err))
        return NULL;
    CHECK_OK(llm_quant_put_keys(w, f, &choice, plan.n_layer, NULL, 0, &err), &err);
    for (size_t i = 0; i < plan.n; i++) {
        const quant_tensor *t = &plan.tensor[i];
        const ggl_gguf_tensor *from = t->from;
        const ggl_type_info *old = ggl_type_get((int)from->type);
        const size_t n = from->size / old->size, row = (size_t)from->ne[0];
        char *to = ggl_arena_alloc(&arena, t->size + 1, 1);
        float *x = ggl_arena_alloc(&arena, row, sizeof *x);
        for (size_t k = 0; k < n && t->type != old; k += row) {
            old->to_float((const char *)from->data + k * old->size, x, (int64_t)row);
            t->type->from_float(x, to + ggl_row_size(t->type->type, (int64_t)k), (int64_t)row);
        }
        ggl_gguf_put_tensor(w, t->name, t->type->type, from->n_dims, from->ne,
                            t->type == old ? from->data : to);
    }
    if (CHECK_OK(ggl_gguf_writer_write_memory(w, bytes, &size, &err), &err))
        CHECK_OK(ggl_gguf_open_memory(&out, *bytes, size, "quantized", &err), &err);
    ggl_gguf_writer_free(w);
    llm_quant_plan_fini(&plan);
    ggl_arena_fini(&arena);
    return out;
}

/* A folder, and a file of it, quantized while they are loaded: the bytes of the quantized file. */
static void same_as_quantized(const kind *k, const char *dtype, const char *type) {
    REQUIRE(make_folder(k, dtype));
    ggl_gguf *file = converted(LLM_CONVERT_AUTO), *got;
    void *bytes = NULL;
    REQUIRE(file);
    ggl_gguf *want = quantized(file, type, &bytes);
    REQUIRE(want);
    for (int n_threads = 1; n_threads <= 3; n_threads += 2)
        for (int of_file = 0; of_file < 2; of_file++) {
            llm_load_params p = params_for(n_threads);
            p.type = type;
            const char *path = of_file ? test_path("out.gguf") : test_folder();
            if (!CHECK_OK(llm_load(&got, path, NULL, &p, &err), &err))
                continue;
            check_same(got, want);
            ggl_gguf_identity id;
            CHECK(ggl_gguf_identify(got, &id) && id.modified > 0);
            CHECK_INT(ggl_gguf_n_parts(got), 1); /* the source is not kept */
            ggl_gguf_close(got);
        }
    ggl_gguf_close(want);
    ggl_free(bytes);
    ggl_gguf_close(file);
}

TEST(same_as_quantized) {
    same_as_quantized(&llama, "BF16", "q4_k_m");
    same_as_quantized(&llama, "F16", "Q8_0");
    same_as_quantized(&qwen3moe, "BF16", "Q5_K_S");
    same_as_quantized(&qwen3, "F32", "iq4_nl");
    same_as_quantized(&gpt2, "F32", "Q4_0"); /* transposed */
}

/* A file with a matrix of f64 numbers, which are those of f32: the same when it is quantized. */
TEST(f64_weights) {
    static const char name[] = "blk.0.ffn_up.weight";
    static double numbers[64 * 96];
    REQUIRE(make_folder(&llama, "F32"));
    ggl_gguf *f = converted(LLM_CONVERT_AUTO), *got, *want;
    REQUIRE(f);
    const ggl_gguf_tensor *up = ggl_gguf_find_tensor(f, name);
    REQUIRE(up && up->type == GGL_F32 && up->size == 64 * 96 * sizeof(float));
    for (int i = 0; i < 64 * 96; i++)
        numbers[i] = (double)((const float *)up->data)[i];
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++)
        ggl_gguf_put_value(w, ggl_gguf_value_at(f, i));
    for (size_t i = 0; i < ggl_gguf_n_tensors(f); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        char text[64];
        snprintf(text, sizeof text, "%.*s", (int)t->name.n, t->name.s);
        ggl_gguf_put_tensor(w, text, t == up ? GGL_F64 : t->type, t->n_dims, t->ne,
                            t == up ? numbers : t->data);
    }
    const bool written = CHECK_OK(ggl_gguf_writer_write(w, test_path("f64.gguf"), &err), &err);
    ggl_gguf_writer_free(w);
    llm_load_params p = params_for(2);
    p.type = "q4_0";
    if (written && CHECK_OK(llm_load(&got, test_path("f64.gguf"), NULL, &p, &err), &err)) {
        if (CHECK_OK(llm_load(&want, test_path("out.gguf"), NULL, &p, &err), &err))
            check_same(got, want);
        ggl_gguf_close(want);
        ggl_gguf_close(got);
    }
    ggl_gguf_close(f);
}

TEST(types_of_conversion) {
    static const llm_convert_type types[] = {LLM_CONVERT_F32, LLM_CONVERT_F16, LLM_CONVERT_BF16};
    static const char *const names[] = {"f32", "F16", "bf16"};
    REQUIRE(make_folder(&llama, "F16"));
    for (int k = 0; k < 3; k++) {
        llm_load_params p = params_for(2);
        ggl_gguf *want = converted(types[k]), *got = NULL;
        p.type = names[k];
        if (CHECK(want) && CHECK_OK(llm_load(&got, test_folder(), NULL, &p, &err), &err))
            check_same(got, want);
        ggl_gguf_close(got);
        ggl_gguf_close(want);
    }
}

/* A file that has these types already stays where it is. */
TEST(a_type_that_changes_nothing) {
    llm_load_params p = params_for(2);
    ggl_gguf *f;
    size_t all = 0;
    REQUIRE(make_folder(&qwen3, "F16"));
    ggl_gguf_close(converted(LLM_CONVERT_AUTO));
    p.type = "f16";
    REQUIRE_OK(llm_load(&f, test_path("out.gguf"), NULL, &p, &err), &err);
    CHECK_INT(made_bytes(f, &all), 0);
    ggl_gguf_close(f);
}

TEST(types_that_cannot_be) {
    llm_load_params p = params_for(1);
    ggl_gguf *f;
    REQUIRE(make_folder(&qwen3, "F16"));
    p.type = "q4_k_x";
    CHECK_INT(llm_load(&f, test_folder(), NULL, &p, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "'q4_k_x' is not a type; did you mean 'Q4_K_M'?");
    p.type = "q4_0";
    CHECK_INT(llm_load(&f, BUILTIN_MODEL, NULL, &p, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "is quantized already");
    CHECK_HAS(err.msg, BUILTIN_MODEL);
}

/* --- what is wrong ---------------------------------------------------------------------------- */

static void check_fails(ggl_status status, const char *message) {
    const llm_load_params p = params_for(2);
    ggl_gguf *f;
    err = (ggl_error){0};
    CHECK_INT(llm_load(&f, test_folder(), NULL, &p, &err), status);
    CHECK(!f);
    CHECK_HAS(err.msg, message);
}

TEST(wrong_folders) {
    REQUIRE(make_folder(&llama, "F32"));
    layout l, hf;
    char *config;
    REQUIRE(layout_make(&l, llama.family, llama.keys, "", true));
    layout_find(&l, "blk.1.attn_k.weight")->data[77] = INFINITY;
    REQUIRE(layout_to_hf(&l, llama.class_name, "", &hf, &config));
    REQUIRE(layout_write(&hf, test_path("model.safetensors"), "F32"));
    layout_free(&hf);
    layout_free(&l);
    free(config);
    check_fails(GGL_FORMAT, "tensor 'blk.1.attn_k.weight': 1 of its");
    CHECK_HAS(err.msg, test_folder());

    REQUIRE(put_text("config.json", "{\"architectures\": [\"NoSuchForCausalLM\"]}"));
    check_fails(GGL_NOT_FOUND, "NoSuchForCausalLM");
    REQUIRE(put_text("config.json", "{"));
    check_fails(GGL_FORMAT, "config.json");
    REQUIRE(unlink(test_path("config.json")) == 0);
    check_fails(GGL_IO, "config.json");
}

/* Two numbers are too large for f16: the last of a matrix that is made in pieces by one thread, and the first
 * of a later matrix, which another thread finds sooner. The error is always that of the first matrix. */
TEST(the_first_error) {
    static const kind large = {
        "gpt2", "GPT2LMHeadModel",
        "vocab_size=320 context_length=64 embedding_length=256 block_count=1 "
        "feed_forward_length=6144 attention.head_count=4 "
        "attention.layer_norm_epsilon=0.02",
        "output.weight"};
    layout l, hf;
    char *config;
    REQUIRE(make_folder(&large, "F32"));
    REQUIRE(layout_make(&l, large.family, large.keys, large.optional, true));
    layout_find(&l, "blk.0.ffn_up.weight")->data[256 * 6144 - 1] = 1e9F;
    layout_find(&l, "blk.0.ffn_down.weight")->data[0] = 1e9F;
    REQUIRE(layout_to_hf(&l, large.class_name, "", &hf, &config));
    REQUIRE(layout_write(&hf, test_path("model.safetensors"), "F32"));
    layout_free(&hf);
    layout_free(&l);
    free(config);
    for (int n_threads = 1; n_threads <= 4; n_threads++) {
        llm_load_params p = params_for(n_threads);
        ggl_gguf *f;
        p.type = "f16";
        CHECK_INT(llm_load(&f, test_folder(), NULL, &p, &err), GGL_LIMIT);
        CHECK_HAS(err.msg, "'blk.0.ffn_up.weight'");
    }
}

/* A folder whose constants need a backend is refused without one. */
TEST(constants_need_a_backend) {
    llm_load_params p = params_for(1);
    ggl_gguf *f;
    p.open_backend = NULL;
    REQUIRE(make_folder(&llama, "F32"));
    CHECK(llm_load(&f, test_folder(), NULL, &p, &err) != GGL_OK);
    CHECK_HAS(err.msg, "no backend");
    REQUIRE(make_folder(&qwen3, "F32"));
    REQUIRE_OK(llm_load(&f, test_folder(), NULL, &p, &err), &err);
    ggl_gguf_close(f);
}

static bool stop_at_once(void *ctx, size_t done, size_t total) {
    ++*(int *)ctx;
    return total < done;
}

TEST(progress_can_stop_it) {
    llm_load_params p = params_for(1);
    int n_calls = 0;
    ggl_gguf *f;
    p.progress = stop_at_once;
    p.ctx = &n_calls;
    REQUIRE(make_folder(&llama, "F16"));
    CHECK_INT(llm_load(&f, test_folder(), NULL, &p, &err), GGL_CANCELLED);
    CHECK(!f);
    CHECK_INT(n_calls, 1);
}
