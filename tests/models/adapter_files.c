/* Adapter files, right and wrong, on the built-in model: what is wrong is named, and what a session
 * keeps is not mixed up with that of other adapters. */
#include <math.h>

#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/sched.h"
#include "llm/internal/session.h"
#include "test.h"

/* An adapter for blk.0.attn_q.weight [128, 128] of rank 2, with some things changed; those that are
 * zero here are as they should be. */
typedef struct change {
    const char *type, *kind, *architecture; /* keys; "": left out */
    const char *add_key;                    /* a key with the value 7 */
    double alpha;                           /* NaN: a string; negative: left out */
    const char *name;                       /* of the weight */
    const char *a, *b;                      /* ends of the names; "": left out */
    int n_dims;
    int64_t ne_a[3], ne_b[3];
    ggl_type numbers;
    const char *add; /* a tensor [128] f32, or [add_n] of add_type */
    int64_t add_n;
    ggl_type add_type;
    size_t cut;  /* bytes missing at the end */
    float value; /* size of lora_b's numbers */
    bool no_tensors, no_rank;
} change;

/* Returns c with the right values for what is zero. */
static change filled(change c) {
    c.type = c.type ? c.type : "adapter";
    c.kind = c.kind ? c.kind : "lora";
    c.architecture = c.architecture ? c.architecture : "llama";
    c.alpha = c.alpha != 0 ? c.alpha : 4;
    c.name = c.name ? c.name : "blk.0.attn_q.weight";
    c.a = c.a ? c.a : ".lora_a";
    c.b = c.b ? c.b : ".lora_b";
    c.n_dims = c.n_dims ? c.n_dims : 2;
    c.value = c.value > 0 ? c.value : 0.5f;
    if (!c.ne_a[0])
        memcpy(c.ne_a, (int64_t[]){128, 2, 1}, sizeof c.ne_a);
    if (!c.ne_b[0])
        memcpy(c.ne_b, (int64_t[]){2, 128, 1}, sizeof c.ne_b);
    if (c.no_rank)
        c.ne_a[1] = c.ne_b[0] = 0;
    return c;
}

static void put_key(ggl_gguf_writer *w, const char *key, const char *value) {
    if (*value)
        ggl_gguf_put_string(w, key, value, strlen(value));
}

static void put_half(ggl_gguf_writer *w, const change *c, const char *end, const int64_t *ne,
                     float value) {
    static float x[1 << 19];
    char name[128];
    const int64_t ne4[4] = {ne[0], ne[1], ne[2], 1};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = value * (float)((i * 2654435761u >> 9 & 255) / 256.0 - 0.5);
    snprintf(name, sizeof name, "%s%s", c->name, end);
    if (*end)
        ggl_gguf_put_tensor(w, name, c->numbers, c->n_dims, ne4, x);
}

/* Writes the adapter to memory (for ggl_free) or, with a path, to a file; returns the bytes. */
static void *write_adapter(const change *given, const char *path, size_t *size) {
    const change filled_in = filled(*given), *c = &filled_in;
    static const float zeros[128];
    ggl_error err = {0};
    void *bytes = NULL;
    const float alpha = (float)c->alpha;
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    put_key(w, "general.type", c->type);
    put_key(w, "adapter.type", c->kind);
    put_key(w, "general.architecture", c->architecture);
    if (isnan(c->alpha))
        put_key(w, "adapter.lora.alpha", "four");
    else if (c->alpha > 0)
        ggl_gguf_put(w, "adapter.lora.alpha", GGL_GGUF_F32, false, &alpha, 1);
    if (c->add_key)
        ggl_gguf_put(w, c->add_key, GGL_GGUF_U32, false, &(uint32_t){7}, 1);
    if (!c->no_tensors) {
        put_half(w, c, c->a, c->ne_a, 1);
        put_half(w, c, c->b, c->ne_b, c->value);
    }
    if (c->add)
        ggl_gguf_put_tensor(w, c->add, c->add_type, 1,
                            (int64_t[]){c->add_n ? c->add_n : 128, 1, 1, 1}, zeros);
    if (path)
        CHECK_OK(ggl_gguf_writer_write(w, path, &err), &err);
    else
        CHECK_OK(ggl_gguf_writer_write_memory(w, &bytes, size, &err), &err);
    ggl_gguf_writer_free(w);
    return bytes;
}

static llm_model *open_model(void) {
    llm_model *m = NULL;
    ggl_error err = {0};
    CHECK_OK(llm_model_open(&m, BUILTIN_MODEL, NULL, &err), &err);
    return m;
}

/* Opening or checking the adapter fails with this status and these words; GGL_OK: it works. */
static void check(change c, ggl_status want, const char *words, const char *more) {
    ggl_error err = {0};
    size_t size = 0;
    llm_adapter *a = NULL;
    llm_model *m = open_model();
    void *bytes = write_adapter(&c, NULL, &size);
    REQUIRE(m && bytes);
    ggl_status st = llm_adapter_open_memory(&a, bytes, size - c.cut, "wrong.gguf", &err);
    CHECK((st == GGL_OK) == (a != NULL));
    if (st == GGL_OK)
        st = llm_adapter_check(a, m, NULL, NULL, &err);
    if (!CHECK_INT(st, want))
        printf("%s\n", err.msg);
    if (want != GGL_OK) {
        CHECK_HAS(err.msg, "wrong.gguf");
        CHECK_HAS(err.msg, words);
        CHECK_HAS(err.msg, more);
    }
    llm_adapter_free(a);
    llm_model_free(m);
    ggl_free(bytes);
}

TEST(right) {
    check((change){0}, GGL_OK, "", "");
    check((change){.alpha = -1}, GGL_OK, "", "");
    check((change){.name = "output.weight", .ne_b = {2, 2048, 1}}, GGL_OK, "", "");
    check((change){.name = "token_embd.weight", .ne_a = {2, 2048, 1}, .ne_b = {2, 128, 1}}, GGL_OK,
          "", "");
    check((change){.add_key = "general.size_label"}, GGL_OK, "", "");
}

TEST(not_an_adapter) {
    check((change){.type = ""}, GGL_FORMAT, "general.type", "missing");
    check((change){.type = "model"}, GGL_FORMAT, "general.type", "model");
    check((change){.kind = ""}, GGL_FORMAT, "adapter.type", "missing");
    check((change){.kind = "ia3"}, GGL_UNSUPPORTED, "adapter.type", "ia3");
    check((change){.architecture = ""}, GGL_FORMAT, "general.architecture", "missing");
    check((change){.architecture = "gpt2"}, GGL_FORMAT, "gpt2", "llama");
    check((change){.no_tensors = true}, GGL_FORMAT, "without tensors", "");
    check((change){.cut = 600}, GGL_FORMAT, "", "");
}

TEST(keys) {
    check((change){.alpha = NAN}, GGL_FORMAT, "adapter.lora.alpha", "");
    check((change){.alpha = INFINITY}, GGL_FORMAT, "adapter.lora.alpha", "finite");
    check((change){.add_key = "adapter.alora.invocation_tokens"}, GGL_UNSUPPORTED,
          "adapter.alora.invocation_tokens", "after certain tokens");
    check((change){.add_key = "adapter.dora"}, GGL_UNSUPPORTED, "adapter.dora", "");
}

TEST(halves) {
    check((change){.a = ""}, GGL_FORMAT, "blk.0.attn_q.weight.lora_b", "half");
    check((change){.b = ""}, GGL_FORMAT, "blk.0.attn_q.weight.lora_a", "half");
    check((change){.name = ""}, GGL_FORMAT, ".lora_a", "without the name of what it changes");
    check((change){.b = ".lora_c"}, GGL_UNSUPPORTED, "blk.0.attn_q.weight.lora_c", "");
    check((change){.add = "blk.0.attn_norm.weight"}, GGL_UNSUPPORTED, "blk.0.attn_norm.weight",
          "no effect");
}

TEST(magnitudes) {
    static const char own[] = "blk.0.attn_q.weight.lora_magnitude";
    check((change){.add = own}, GGL_OK, "", "");
    check((change){.add = own, .add_n = 64}, GGL_SHAPE, own,
          "64 numbers; .lora_b [2, 128] changes 128");
    check((change){.add = own, .add_type = GGL_F16}, GGL_UNSUPPORTED, own, "f16; f32 is expected");
    check((change){.add = own, .add_type = GGL_I32}, GGL_UNSUPPORTED, own, "i32; f32 is expected");
    check((change){.add = "blk.0.attn_k.weight.lora_magnitude"}, GGL_FORMAT,
          "blk.0.attn_k.weight.lora_magnitude", "neither .lora_a nor .lora_b");
    check((change){.add = own, .a = ""}, GGL_FORMAT, "blk.0.attn_q.weight.lora_b", "half");
    check((change){.add = own, .a = "", .b = ""}, GGL_FORMAT, own, "neither");
    check((change){.name = "token_embd.weight",
                   .ne_a = {2, 2048, 1},
                   .ne_b = {2, 128, 1},
                   .add = "token_embd.weight.lora_magnitude"},
          GGL_UNSUPPORTED, "token_embd.weight.lora_magnitude", "of the embedding");
    check((change){.add = "blk.0.attn_q.lora_magnitudes"}, GGL_UNSUPPORTED,
          "blk.0.attn_q.lora_magnitudes", "no effect");
}

TEST(shapes) {
    check((change){.ne_b = {3, 128, 1}}, GGL_SHAPE, "blk.0.attn_q.weight", "same rank");
    check((change){.ne_a = {64, 2, 1}}, GGL_SHAPE, "[64, 2]", "[128, 128]");
    check((change){.ne_b = {2, 64, 1}}, GGL_SHAPE, "[2, 64]", "[128, 128]");
    check((change){.name = "token_embd.weight", .ne_b = {2, 2048, 1}}, GGL_SHAPE,
          "token_embd.weight", "");
    check((change){.n_dims = 1, .ne_a = {128, 1, 1}, .ne_b = {128, 1, 1}}, GGL_SHAPE, "1 dimension",
          "lora_a");
    check((change){.n_dims = 3, .ne_a = {128, 2, 3}, .ne_b = {2, 128, 3}}, GGL_SHAPE, "[128, 2, 3]",
          "");
    check((change){.name = "blk.0.attn_norm.weight"}, GGL_SHAPE, "blk.0.attn_norm.weight", "[128]");
    check((change){.numbers = GGL_I32}, GGL_UNSUPPORTED, "i32", "lora_a");
}

TEST(tensors_of_other_models) {
    check((change){.name = "blk.0.attn_qq.weight"}, GGL_NOT_FOUND, "blk.0.attn_qq.weight",
          "did you mean blk.0.attn_q.weight");
    check((change){.name = "blk.7.attn_q.weight"}, GGL_NOT_FOUND, "blk.7.attn_q.weight", "");
    check((change){.name = "vision_tower"}, GGL_NOT_FOUND, "vision_tower", "another model");
    check((change){.name = "blk.0.attn_q.bias"}, GGL_NOT_FOUND, "blk.0.attn_q.bias", "");
}

TEST(rank_zero) {
    check((change){.no_rank = true}, GGL_SHAPE, "[128, 0]", "empty");
}

/* --- sessions --------------------------------------------------------------------------------- */

typedef struct fixture {
    ggl_backend *cpu, *reference;
    llm_model *m;
} fixture;

static void setup(fixture *f) {
    ggl_error err = {0};
    *f = (fixture){.m = open_model()};
    REQUIRE_OK(ggl_backend_open(&f->cpu, "cpu", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&f->reference, "reference", NULL, &err), &err);
}

static void teardown(fixture *f) {
    llm_model_free(f->m);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->reference);
}

static llm_session_params params_of(fixture *f, const llm_adapter_use *use, size_t n) {
    llm_session_params p = llm_session_default();
    p.backend = &f->cpu;
    p.n_backends = 1;
    p.fold = f->reference;
    p.adapter = use;
    p.n_adapters = n;
    return p;
}

/* Makes a session and runs some tokens; the caller frees it. NULL: a check failed. */
static llm_session *run(const fixture *f, const llm_session_params *p) {
    static const int32_t token[] = {1, 400, 500, 600, 700};
    ggl_error err = {0};
    llm_session *s = NULL;
    bool ok = CHECK_OK(llm_session_new(&s, f->m, p, &err), &err) &&
              CHECK_OK(llm_session_alloc(s, &err), &err) &&
              CHECK_OK(llm_session_eval(s, &(llm_batch){.n = 5, .token = token}, &err), &err);
    if (!ok)
        llm_session_free(s);
    return ok ? s : NULL;
}

static bool same_logits(const llm_session *a, const llm_session *b) {
    return memcmp(llm_session_logits(a), llm_session_logits(b),
                  (size_t)llm_session_n_vocab(a) * sizeof(float)) == 0;
}

static llm_adapter *open_file(const change *c, const char *path) {
    ggl_error err = {0};
    llm_adapter *a = NULL;
    (void)write_adapter(c, path, NULL);
    CHECK_OK(llm_adapter_open(&a, path, NULL, &err), &err);
    return a;
}

/* Sessions of one model with and without an adapter do not disturb each other, and the plan has the
 * adapter's bytes. */
TEST(sessions_side_by_side) {
    fixture f;
    setup(&f);
    change c = {0};
    llm_adapter *a = open_file(&c, test_path("a.gguf"));
    const llm_adapter_use use = {.adapter = a, .scale = 1};
    const llm_session_params plain = params_of(&f, NULL, 0), adapted = params_of(&f, &use, 1);
    llm_session *s = run(&f, &plain), *t = run(&f, &adapted), *u = run(&f, &plain);
    REQUIRE(s && t && u);
    CHECK(same_logits(s, u));
    CHECK(!same_logits(s, t));
    ggl_memory ms, mt;
    (void)ggl_sched_memory(llm_session_sched(s), 0, &ms);
    (void)ggl_sched_memory(llm_session_sched(t), 0, &mt);
    CHECK_INT(mt.weights_mapped + mt.weights_copied, ms.weights_mapped + ms.weights_copied + 2048);
    CHECK(ms.weights_repacked > 0 && mt.weights_repacked == 0); /* it reads those of the first */
    const llm_adapter_info info = llm_adapter_describe(a);
    CHECK_INT(info.n_pairs, 1);
    CHECK_INT(info.rank_min, 2);
    CHECK_INT(info.rank_max, 2);
    CHECK_INT(info.bytes, 2048);
    CHECK(info.alpha == 4 && ggl_str_is(info.architecture, "llama") && info.title.n == 0);
    llm_session_free(s);
    llm_session_free(t);
    llm_session_free(u);
    llm_adapter_free(a);
    teardown(&f);
}

TEST(scales_that_are_no_numbers) {
    fixture f;
    ggl_error err = {0};
    llm_session *s = NULL;
    setup(&f);
    change c = {0};
    llm_adapter *a = open_file(&c, test_path("a.gguf"));
    const double scale[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        const llm_adapter_use use = {.adapter = a, .scale = scale[i]};
        const llm_session_params p = params_of(&f, &use, 1);
        CHECK_INT(llm_session_new(&s, f.m, &p, &err), GGL_USAGE);
        CHECK_HAS(err.msg, "finite");
        CHECK(!s);
    }
    llm_adapter_free(a);
    teardown(&f);
}

/* A slot is restored only where the same adapters apply, at the same scale. */
TEST(saved_slots) {
    fixture f;
    ggl_error err = {0};
    void *data = NULL;
    size_t size;
    setup(&f);
    change c = {0};
    llm_adapter *a = open_file(&c, test_path("a.gguf"));
    c.value = 0.25f;
    llm_adapter *b = open_file(&c, test_path("b.gguf"));
    const llm_adapter_use uses[] = {{.adapter = a, .scale = 1},
                                    {.adapter = a, .scale = 0.5},
                                    {.adapter = b, .scale = 1},
                                    {.adapter = a},
                                    {.adapter = a, .scale = 1}};
    const llm_session_params p = params_of(&f, uses, 1);
    llm_session *s = run(&f, &p);
    REQUIRE(s);
    CHECK_OK(llm_session_save(s, 0, false, &data, &size, &err), &err);
    for (size_t i = 1; i < 6; i++) {
        const llm_session_params q = params_of(&f, i < 5 ? &uses[i] : NULL, i < 5);
        llm_session *t = run(&f, &q);
        REQUIRE(t);
        const ggl_status st = llm_session_restore(t, 0, data, size, &err);
        CHECK_MSG(st == (i == 4 ? GGL_OK : GGL_FORMAT), "use %zu: %s", i, err.msg);
        if (st != GGL_OK)
            CHECK_HAS(err.msg, "other adapters");
        llm_session_free(t);
    }
    ggl_free(data);
    llm_session_free(s);
    llm_adapter_free(a);
    llm_adapter_free(b);
    teardown(&f);
}

/* The file of repacked weights is used again only with the same adapters. */
TEST(repack_caches) {
    fixture f;
    char cache[512];
    setup(&f);
    snprintf(cache, sizeof cache, "%s", test_path("model.repack"));
    remove(cache);
    change c = {.value = 1};
    llm_adapter *a = open_file(&c, test_path("a.gguf"));
    const llm_adapter_use use = {.adapter = a, .scale = 1};
    llm_session_params p = params_of(&f, &use, 1), plain = params_of(&f, NULL, 0);
    p.repack_cache = plain.repack_cache = cache;
    static const int with[] = {0, 0, 1, 1, 0};
    for (int i = 0; i < 5; i++) {
        llm_session *s = run(&f, with[i] ? &p : &plain);
        REQUIRE(s);
        const ggl_cache_use used = ggl_sched_cache_use(llm_session_sched(s));
        const bool again = i > 0 && with[i] == with[i - 1];
        if (used != GGL_CACHE_NONE) /* instruction sets without a layout of their own */
            CHECK_INT(used, again ? GGL_CACHE_READ : GGL_CACHE_WRITTEN);
        llm_session_free(s);
    }
    llm_adapter_free(a);
    teardown(&f);
}

/* One weight is on backend 1; asked for a layer, or another weight: 0. */
static int place_one(void *ctx, int layer, int n_layer, const char *weight) {
    (void)ctx, (void)layer, (void)n_layer;
    return !weight ? 0 : strcmp(weight, "blk.0.attn_q.weight") == 0 ? 1 : -1;
}

/* What an adapter adds to a weight's products is computed where the weight is placed. */
TEST(placed_with_the_weight) {
    fixture f;
    ggl_error err = {0};
    setup(&f);
    ggl_backend *second = NULL;
    REQUIRE_OK(ggl_backend_open(&second, "cpu", NULL, &err), &err);
    ggl_backend *both[] = {f.cpu, second};
    change c = {0};
    llm_adapter *a = open_file(&c, test_path("a.gguf"));
    const llm_adapter_use use = {.adapter = a, .scale = 1};
    llm_session_params p = params_of(&f, &use, 1);
    llm_session *one = run(&f, &p);
    p.backend = both;
    p.n_backends = 2;
    p.place = place_one;
    p.no_repack = true;
    llm_session *s = run(&f, &p);
    ggl_memory m = {0};
    REQUIRE(one && s && ggl_sched_memory(llm_session_sched(s), 1, &m));
    const ggl_gguf_tensor *w = ggl_gguf_find_tensor(llm_model_file(f.m), "blk.0.attn_q.weight");
    CHECK_INT(m.weights_mapped, w->size + 2048);
    CHECK(same_logits(one, s));
    llm_session_free(one);
    llm_session_free(s);
    llm_adapter_free(a);
    ggl_backend_close(second);
    teardown(&f);
}
