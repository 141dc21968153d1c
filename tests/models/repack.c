/* Repacked weights: no bit of a model's logits changes, for any threads, pieces, split and kind of
 * model; the file that stores them; and the memory that loading takes. */
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <time.h>

#include "alloc_fail.h"
#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/sched.h"
#include "ggl/internal/types.h"
#include "llm/internal/session.h"
#include "process_status.h"
#include "test.h"

#define N 70

/* --- models ----------------------------------------------------------------------------------- */

typedef struct shape {
    const char *name;
    ggl_type type;
    int64_t n_embd, n_ff, n_vocab, n_layer, n_expert;
    bool tied, f16_embd;
} shape;

/* Rows whose number is not a multiple of 16: the vocabulary, and the feed-forward one. */
static const shape shapes[] = {{"plain q8_0", GGL_Q8_0, 64, 96, 101, 2, 0, false, false},
                               {"plain q4_0", GGL_Q4_0, 64, 96, 101, 2, 0, false, false},
                               {"tied q8_0", GGL_Q8_0, 96, 160, 75, 2, 0, true, false},
                               {"experts q8_0", GGL_Q8_0, 64, 96, 50, 2, 5, false, false},
                               {"experts q4_0, tied", GGL_Q4_0, 96, 160, 33, 2, 4, true, false}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

/* Random blocks: codes of all kinds, small scales. Made as the file is written. */
typedef struct tensor {
    ggl_type type;
    int64_t n;
    uint64_t seed;
} tensor;

static ggl_status fill(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    const tensor *t = ctx;
    const ggl_type_info *info = ggl_type_get((int)t->type);
    uint64_t seed = t->seed;
    char block[64 * 40];
    ggl_status st = GGL_OK;
    for (int64_t i = 0; i < t->n && st == GGL_OK;) {
        size_t size = 0;
        for (; size + info->size <= sizeof block && i < t->n; i += info->block) {
            float one = 1 + test_random_float(&seed) / 4;
            uint16_t d = ggl_f32_to_f16(one / (t->type == GGL_Q4_0 ? 80 : 1200));
            uint16_t f16 = ggl_f32_to_f16((one - 1) / 3),
                     bf16 = ggl_f32_to_bf16(ggl_f16_to_f32(f16));
            uint64_t words[5];
            for (int k = 0; k < 5; k++)
                words[k] = test_random(&seed);
            if (t->type == GGL_F32) {
                memcpy(block + size, &one, 4);
            } else if (info->size == 2) { /* of one seed the same numbers, but for their rounding */
                memcpy(block + size, t->type == GGL_F16 ? &f16 : &bf16, 2);
            } else {
                memcpy(block + size, words, info->size);
                memcpy(block + size, &d, 2);
            }
            size += info->size;
        }
        st = ggl_gguf_sink_write(to, block, size, err);
    }
    return st;
}

typedef struct maker {
    ggl_gguf_writer *w;
    tensor t[256];
    int n;
} maker;

static void put(maker *m, const char *name, ggl_type type, int n_dims, const int64_t *ne) {
    tensor *t = &m->t[m->n++];
    *t = (tensor){type, 1, (uint64_t)m->n};
    for (int i = 0; i < n_dims; i++)
        t->n *= ne[i];
    ggl_gguf_put_tensor_later(m->w, name, type, n_dims, ne, fill, t);
}

static void put_layer(maker *m, const shape *s, int l) {
    char name[64];
    const int64_t e = s->n_embd, f = s->n_ff, x = s->n_expert;
#define PUT(what, type, n, ...)                                                                    \
    snprintf(name, sizeof name, "blk.%d." what ".weight", l);                                      \
    put(m, name, type, n, (int64_t[]){__VA_ARGS__})
    PUT("attn_norm", GGL_F32, 1, e);
    PUT("attn_q", s->type, 2, e, e);
    PUT("attn_k", s->type, 2, e, e / 2);
    PUT("attn_v", s->type, 2, e, e / 2);
    PUT("attn_output", s->type, 2, e, e);
    PUT("ffn_norm", GGL_F32, 1, e);
    if (x) {
        PUT("ffn_gate_inp", s->type, 2, e, x);
        PUT("ffn_gate_exps", s->type, 3, e, f, x);
        PUT("ffn_up_exps", s->type, 3, e, f, x);
        PUT("ffn_down_exps", s->type, 3, f, e, x);
    } else {
        PUT("ffn_gate", s->type, 2, e, f);
        PUT("ffn_up", s->type, 2, e, f);
        PUT("ffn_down", s->type, 2, f, e);
    }
#undef PUT
}

static bool make(const shape *s, const char *path) {
    maker *m = calloc(1, sizeof *m);
    ggl_error err = {0};
    m->w = ggl_gguf_writer_new();
    ggl_gguf_put_string(m->w, "general.architecture", "llama", 5);
    const struct {
        const char *key;
        int64_t value;
    } keys[] = {{"block_count", s->n_layer},      {"embedding_length", s->n_embd},
                {"feed_forward_length", s->n_ff}, {"attention.head_count", 4},
                {"attention.head_count_kv", 2},   {"context_length", 128},
                {"expert_count", s->n_expert},    {"expert_used_count", 2}};
    for (int i = 0; i < (s->n_expert ? 8 : 6); i++) {
        char key[64];
        uint32_t v = (uint32_t)keys[i].value;
        snprintf(key, sizeof key, "llama.%s", keys[i].key);
        ggl_gguf_put(m->w, key, GGL_GGUF_U32, false, &v, 1);
    }
    const float eps = 1e-5f;
    ggl_gguf_put(m->w, "llama.attention.layer_norm_rms_epsilon", GGL_GGUF_F32, false, &eps, 1);
    const int64_t embd[] = {s->n_embd, s->n_vocab};
    put(m, "token_embd.weight", s->f16_embd ? GGL_F16 : s->type, 2, embd);
    for (int l = 0; l < s->n_layer; l++)
        put_layer(m, s, l);
    put(m, "output_norm.weight", GGL_F32, 1, embd);
    if (!s->tied)
        put(m, "output.weight", s->type, 2, embd);
    bool ok = CHECK_OK(ggl_gguf_writer_write(m->w, path, &err), &err);
    ggl_gguf_writer_free(m->w);
    free(m);
    return ok;
}

/* --- sessions --------------------------------------------------------------------------------- */

typedef struct fixture {
    ggl_backend *cpu[2], *reference;
    llm_model *model;
    llm_session *s;
    int split;
    llm_session_params p;
    bool f16_as_bf16;
    const char *mask;
    ggl_error err;
} fixture;

static int place(void *ctx, int layer, int n_layer, const char *weight) {
    const fixture *f = ctx;
    (void)n_layer;
    (void)weight;
    return f->split >= 0 && layer >= f->split;
}

static bool start(fixture *f, const char *path, int n_threads, int split) {
    ggl_backend_params bp = {
        .size = sizeof bp, .n_threads = n_threads, .mask = f->mask, .f16_as_bf16 = f->f16_as_bf16};
    llm_session_params p = llm_session_default();
    p.no_repack = f->p.no_repack;
    p.repack_late = f->p.repack_late;
    p.repack_cache = f->p.repack_cache;
    p.progress = f->p.progress;
    p.progress_ctx = f->p.progress_ctx;
    p.n_ubatch = 32;
    p.n_rows = 32;
    p.n_slots = 2;
    p.backend = f->cpu;
    p.n_backends = 2;
    p.place = place;
    p.place_ctx = f;
    f->split = split;
    if (ggl_backend_open(&f->cpu[0], "cpu", &bp, &f->err) != GGL_OK ||
        ggl_backend_open(&f->cpu[1], "cpu", &bp, &f->err) != GGL_OK ||
        ggl_backend_open(&f->reference, "reference", NULL, &f->err) != GGL_OK ||
        llm_model_open(&f->model, path, NULL, &f->err) != GGL_OK)
        return false;
    p.fold = f->reference;
    return llm_session_new(&f->s, f->model, &p, &f->err) == GGL_OK &&
           llm_session_alloc(f->s, &f->err) == GGL_OK;
}

static void stop(fixture *f) {
    llm_session_free(f->s);
    llm_model_free(f->model);
    ggl_backend_close(f->cpu[0]);
    ggl_backend_close(f->cpu[1]);
    ggl_backend_close(f->reference);
    *f = (fixture){.p = f->p, .f16_as_bf16 = f->f16_as_bf16};
}

static ggl_memory memory_of(const fixture *f) {
    ggl_memory m = {0}, n = {0};
    ggl_sched_memory(llm_session_sched(f->s), 0, &m);
    ggl_sched_memory(llm_session_sched(f->s), 1, &n);
    m.weights_repacked += n.weights_repacked;
    m.weights_dropped += n.weights_dropped;
    m.weights_mapped += n.weights_mapped;
    return m;
}

static bool layouts(const char *path) {
    fixture f = {0};
    bool ok = start(&f, path, 1, -1) && memory_of(&f).weights_repacked > 0;
    stop(&f);
    return ok;
}

typedef struct rows {
    float *at;
    int64_t n_vocab;
} rows;

static void keep_row(void *ctx, int64_t i, const float *logits) {
    rows *r = ctx;
    memcpy(r->at + i * r->n_vocab, logits, (size_t)r->n_vocab * sizeof *logits);
}

static int32_t token_at(const fixture *f, int i) {
    return (int32_t)((unsigned)i * 7919u % (unsigned)llm_session_n_vocab(f->s));
}

/* Logits of all tokens, fed in pieces to a slot; free() them. */
static float *feed(fixture *f, int slot, int piece) {
    rows r = {.n_vocab = llm_session_n_vocab(f->s)};
    r.at = calloc((size_t)N * (size_t)r.n_vocab, sizeof *r.at);
    for (int first = 0, n; first < N; first += n) {
        int32_t token[N], slots[N];
        bool want[N];
        n = N - first < piece ? N - first : piece;
        for (int i = 0; i < n; i++) {
            token[i] = token_at(f, first + i);
            slots[i] = slot;
            want[i] = true;
        }
        rows part = {r.at + first * r.n_vocab, r.n_vocab};
        llm_batch b = {
            .n = n, .token = token, .slot = slots, .want = want, .each = keep_row, .ctx = &part};
        if (!CHECK_OK(llm_session_eval(f->s, &b, &f->err), &f->err))
            break;
    }
    return r.at;
}

static size_t logits_size(const fixture *f) {
    return (size_t)N * (size_t)llm_session_n_vocab(f->s) * sizeof(float);
}

/* In place, in one piece, by one thread. */
static float *wanted(const char *path, size_t *size) {
    fixture f = {.p.no_repack = true};
    float *want = NULL;
    if (CHECK_OK(start(&f, path, 1, -1) ? GGL_OK : GGL_USAGE, &f.err)) {
        CHECK_INT((long long)memory_of(&f).weights_repacked, 0);
        want = feed(&f, 0, N);
        *size = logits_size(&f);
    }
    stop(&f);
    return want;
}

static void same_bits(int k) {
    const shape *s = &shapes[k];
    const char *path = test_path("model.gguf");
    size_t size;
    REQUIRE(make(s, path));
    float *want = wanted(path, &size);
    REQUIRE(want);
    bool odd = false; /* logits that are all alike would prove nothing */
    for (size_t i = 1; i < size / 4; i++)
        odd |= want[i] != want[0];
    CHECK(odd && want[0] == want[0]);
    const int threads[] = {1, 2, 3, 7}, pieces[] = {1, 5, 32, N}, splits[] = {-1, 0, 1, 2};
    for (int i = 0; i < 16; i++) {
        fixture f = {.p.no_repack = i % 5 == 4};
        int t = threads[i % 4], p = pieces[i / 4], at = splits[(i + i / 4) % 4];
        if (!CHECK_OK(start(&f, path, t, at) ? GGL_OK : GGL_USAGE, &f.err))
            break;
        float *got = feed(&f, i % 2, p);
        CHECK_MSG(memcmp(got, want, size) == 0,
                  "%s: %d threads, pieces of %d, split at %d: other bits", s->name, t, p, at);
        free(got);
        stop(&f);
    }
    free(want);
}

TEST(same_bits_plain_q8_0) {
    same_bits(0);
}
TEST(same_bits_plain_q4_0) {
    same_bits(1);
}
TEST(same_bits_tied) {
    same_bits(2);
}
TEST(same_bits_experts) {
    same_bits(3);
}
TEST(same_bits_experts_tied) {
    same_bits(4);
}

/* f16 weights that are rounded at load give the bits of a file whose weights were rounded before;
 * only rows of the embedding stay f16. */
static void same_bits_as_bf16(shape f16) {
    const char *path = test_path("f16.gguf"), *rounded = test_path("bf16.gguf");
    static const char *const masks[] = {NULL, "avx512bf16,bf16", "avx512,i8mm", "all"};
    const int threads[] = {1, 2, 3, 7}, pieces[] = {1, 5, 32, N}, splits[] = {-1, 0, 1, 2};
    shape bf16 = f16;
    size_t size;
    bf16.type = GGL_BF16;
    REQUIRE(make(&f16, path) && make(&bf16, rounded));
    float *want = wanted(rounded, &size), *exact = wanted(path, &size);
    REQUIRE(want && exact && memcmp(want, exact, size) != 0);
    for (int i = 0; i < 16; i++) {
        const bool no_repack = i == 7; /* declines it */
        fixture f = {.f16_as_bf16 = true, .mask = masks[(i + i / 4) % 4], .p.no_repack = no_repack};
        int t = threads[i % 4], p = pieces[i / 4], at = splits[(i + i / 4) % 4];
        if (!CHECK_OK(start(&f, path, t, at) ? GGL_OK : GGL_USAGE, &f.err))
            break;
        CHECK((memory_of(&f).weights_repacked == 0) == no_repack);
        float *got = feed(&f, i % 2, p);
        CHECK_MSG(memcmp(got, no_repack ? exact : want, size) == 0,
                  "%s: %d threads, pieces of %d, split at %d: other bits", f16.name, t, p, at);
        free(got);
        stop(&f);
    }
    fixture f = {0};
    REQUIRE(start(&f, path, 2, -1));
    CHECK_INT((long long)memory_of(&f).weights_repacked, 0);
    float *got = feed(&f, 0, N);
    CHECK_MSG(memcmp(got, exact, size) == 0, "f16 is not exact by default");
    free(got);
    stop(&f);
    free(want);
    free(exact);
}

TEST(f16_as_bf16) {
    same_bits_as_bf16((shape){"f16", GGL_F16, 64, 96, 101, 2, 0, false, true});
}
TEST(f16_as_bf16_experts) { /* of a size that is no multiple of 64 */
    same_bits_as_bf16((shape){"f16 experts", GGL_F16, 56, 97, 50, 2, 5, false, true});
}

/* --- copies that are made between runs -------------------------------------------------------- */

static size_t left_of(fixture *f, double seconds) {
    size_t left = SIZE_MAX;
    CHECK_OK(llm_session_repack(f->s, seconds, &left, &f->err), &f->err);
    return left;
}

/* Logits of n tokens, one by one, each before the last; free() them. Before each token `each` parts
 * of weights are repacked, and before token `all` the rest. */
static float *feed_late(fixture *f, int n, int each, int all) {
    const size_t n_vocab = (size_t)llm_session_n_vocab(f->s);
    float *kept = calloc((size_t)n * n_vocab, sizeof *kept);
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < each; k++)
            left_of(f, 0);
        if (i == all)
            CHECK_INT((long long)left_of(f, INFINITY), 0);
        const int32_t token = token_at(f, i);
        if (!CHECK_OK(llm_session_eval(f->s, &(llm_batch){.n = 1, .token = &token}, &f->err),
                      &f->err))
            break;
        memcpy(kept + (size_t)i * n_vocab, llm_session_logits(f->s), n_vocab * sizeof *kept);
    }
    return kept;
}

/* A session that repacks late has the same bits whenever which weight is repacked. */
static void same_bits_late(int k, int n_ways) {
    const shape *s = &shapes[k];
    const char *path = test_path("model.gguf");
    const int threads[] = {1, 3, 2, 7}, splits[] = {-1, 1};
    size_t size;
    REQUIRE(make(s, path));
    float *want = wanted(path, &size);
    REQUIRE(want);
    for (int i = 0; i < n_ways; i++) {
        fixture f = {.p.repack_late = true};
        const int t = threads[i % 4], at = splits[i / 4 % 2], each = i % 3, all = i % 3 ? -1 : i;
        const int n = all >= 0 ? all + 3 : 16;
        if (!CHECK_OK(start(&f, path, t, at) ? GGL_OK : GGL_USAGE, &f.err))
            break;
        float *got = feed_late(&f, n, each, all);
        CHECK_MSG(memcmp(got, want, size / N * (size_t)n) == 0,
                  "%s: %d threads, split at %d, %d parts a token, the rest before token %d: other "
                  "bits",
                  s->name, t, at, each, all);
        free(got);
        stop(&f);
    }
    free(want);
}

TEST(same_bits_late_plain) {
    same_bits_late(0, 40);
    same_bits_late(1, 12);
}
TEST(same_bits_late_tied) {
    same_bits_late(2, 12);
}
TEST(same_bits_late_experts) {
    same_bits_late(3, 12);
    same_bits_late(4, 12);
}

/* Prompts in pieces, where runs alone repack. */
TEST(same_bits_late_in_pieces) {
    const char *path = test_path("model.gguf");
    size_t size;
    REQUIRE(make(&shapes[3], path));
    float *want = wanted(path, &size);
    REQUIRE(want);
    for (int piece = 1; piece <= N; piece += 1 + piece / 2) {
        fixture f = {.p.repack_late = true};
        REQUIRE(start(&f, path, 2, piece % 2 ? -1 : 1));
        float *got = feed(&f, 0, piece);
        CHECK_MSG(memcmp(got, want, size) == 0, "pieces of %d: other bits", piece);
        free(got);
        stop(&f);
    }
    free(want);
}

/* Weights that are repacked in several parts: of rows, and of experts. */
TEST(late_parts) {
    const shape s = {"large experts", GGL_Q4_0, 1024, 2048, 15000, 1, 9, false, false};
    const char *path = test_path("model.gguf");
    enum { MOST = 12 };
    REQUIRE(make(&s, path));
    fixture f = {.p.repack_late = true}, whole = {0};
    REQUIRE(start(&f, path, 2, -1) && start(&whole, path, 2, -1));
    if (memory_of(&f).weights_repacked == 0)
        SKIP("these instruction sets have no layout of their own");
    int n_parts = 0;
    for (size_t left = left_of(&f, -1), before = SIZE_MAX; left > 0; n_parts++) {
        CHECK(left < before);
        before = left;
        left = left_of(&f, 0);
    }
    /* Q, K, V and the output of attention; two parts of each matrix of experts, and of the output */
    CHECK_INT(n_parts + 1, 4 + 3 * 2 + 2);
    float *got = feed_late(&f, 4, 0, -1), *want = feed_late(&whole, 4, 0, -1);
    const size_t size = 4 * (size_t)s.n_vocab * sizeof *got;
    CHECK_MSG(memcmp(got, want, size) == 0, "repacked in parts: other bits");
    free(got);
    stop(&f);
    for (int i = 0; i < n_parts; i++) { /* and some parts are not repacked yet */
        fixture g = {.p.repack_late = true};
        REQUIRE(start(&g, path, 2, -1));
        for (int k = 0; k < i; k++)
            left_of(&g, 0);
        got = feed_late(&g, 1, 0, -1);
        CHECK_MSG(memcmp(got, want, size / 4) == 0, "after %d parts: other bits", i);
        free(got);
        stop(&g);
    }
    free(want);
    stop(&whole);
}

/* Nothing is repacked before the first run, and something before the second. What is rounded is
 * repacked at once, and so is all that goes into a file. */
TEST(late_moments) {
    const shape s = {"tied q8_0, embedding f16", GGL_Q8_0, 96, 160, 75, 2, 0, true, true};
    const char *path = test_path("model.gguf");
    const int32_t token = 1;
    size_t left, before;
    REQUIRE(make(&s, path));
    if (!layouts(path))
        SKIP("these instruction sets have no layout of their own");
    fixture f = {.p.repack_late = true};
    REQUIRE(start(&f, path, 2, -1));
    left = before = ggl_sched_late_size(llm_session_sched(f.s));
    CHECK(left > 0);
    /* a prompt of three batches, whose last one has an output */
    int32_t prompt[70];
    for (int i = 0; i < 70; i++)
        prompt[i] = token_at(&f, i);
    REQUIRE_OK(llm_session_eval(f.s, &(llm_batch){.n = 70, .token = prompt}, &f.err), &f.err);
    CHECK_INT((long long)ggl_sched_late_size(llm_session_sched(f.s)), (long long)left);
    REQUIRE_OK(llm_session_eval(f.s, &(llm_batch){.n = 1, .token = &token}, &f.err), &f.err);
    CHECK((left = ggl_sched_late_size(llm_session_sched(f.s))) < before);
    CHECK(left_of(&f, 0) < left || left == 0);
    CHECK_INT((long long)left_of(&f, INFINITY), 0);
    stop(&f);
    fixture rounded = {.p.repack_late = true, .f16_as_bf16 = true};
    REQUIRE(start(&rounded, path, 2, -1));
    CHECK_INT((long long)ggl_sched_late_size(llm_session_sched(rounded.s)), (long long)before);
    stop(&rounded);
    fixture kept = {.p = {.repack_late = true, .repack_cache = ""}};
    REQUIRE(start(&kept, path, 2, -1));
    CHECK_INT((long long)ggl_sched_late_size(llm_session_sched(kept.s)), 0);
    CHECK_HAS(llm_session_load_notes(kept.s), "keeps the repacked weights");
    stop(&kept);
    fixture none = {.p = {.repack_late = true, .no_repack = true}};
    REQUIRE(start(&none, path, 2, -1));
    CHECK_INT((long long)left_of(&none, INFINITY), 0);
    stop(&none);
}

/* Lets the system forget the file's pages, so that they are read again. */
static bool forget(const char *path) {
    const int fd = open(path, O_RDONLY);
    const bool ok = fd >= 0 && fsync(fd) == 0
#ifdef POSIX_FADV_DONTNEED
                    && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0
#endif
        ;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Files that are not in memory, which are read ahead; and sessions that end before all of it is read. */
TEST(cold_files) {
    const shape large = {"large", GGL_Q8_0, 1024, 2816, 2048, 2, 0, false, false};
    const char *path = test_path("model.gguf"), *cache = test_path("model.gguf.repack");
    size_t size;
    REQUIRE(make(&large, path));
    float *want = wanted(path, &size);
    REQUIRE(want);
    const size_t row = size / N;
    for (int way = 0; way < 8; way++) {
        const bool keeps = way / 2 % 2 == 1; /* the second time, from the file */
        fixture f = {.p = {.repack_late = way % 2 == 1, .repack_cache = keeps ? "" : NULL}};
        REQUIRE(forget(path) && (way < 4 || !keeps || !layouts(path) || forget(cache)));
        REQUIRE(start(&f, path, 2, -1));
        if (way >= 2) {
            float *got = feed_late(&f, 3, 0, -1);
            CHECK_MSG(memcmp(got, want, 3 * row) == 0, "way %d: other bits", way);
            free(got);
        }
        stop(&f);
    }
    free(want);
}

/* A model that is larger than the memory that is left gives the same bits; what is missing is read again by each run. */
static void more_than_memory(const shape *s, const char *memory) {
    static const struct {
        int threads, split, piece;
        bool late;
    } ways[] = {{1, -1, 1, false},
                {2, -1, 32, false},
                {2, 1, 5, false},
                {3, -1, 70, false},
                {2, -1, 3, true}};
    const char *path = test_path("model.gguf");
    size_t size, kept, chosen, all = 0;
    REQUIRE(make(s, path));
    float *want = wanted(path, &size);
    REQUIRE(want);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        fixture f = {.p = {.no_repack = !ways[i].late, .repack_late = ways[i].late}};
        REQUIRE(setenv("GGL_MEMORY_LEFT", memory, 1) == 0);
        const bool ok = start(&f, path, ways[i].threads, ways[i].split);
        CHECK(unsetenv("GGL_MEMORY_LEFT") == 0);
        REQUIRE_OK(ok ? GGL_OK : GGL_USAGE, &f.err);
        if (!ways[i].late)
            all = ggl_sched_streamed(llm_session_sched(f.s), &kept, &chosen);
        if (!ways[i].late && all > 0) {
            CHECK(kept < all && kept <= strtoul(memory, NULL, 10) &&
                  (chosen > 0) == (s->n_expert > 0));
            CHECK_HAS(llm_session_load_notes(f.s), "stay there, and each token");
        }
        for (int slot = 0; slot < 2; slot++) {
            float *got = feed(&f, slot, ways[i].piece);
            CHECK_MSG(memcmp(got, want, size) == 0, "%s, way %zu: other bits", s->name, i);
            free(got);
        }
        stop(&f);
    }
    free(want);
#ifdef __linux__
    CHECK(all > 0);
#else
    if (all == 0)
        SKIP("this system cannot put private memory in the place of a mapped file's pages");
#endif
}

TEST(more_than_memory_plain) {
    more_than_memory(&(shape){"large", GGL_Q8_0, 1024, 2816, 2048, 2, 0, false, false}, "15000000");
}
TEST(more_than_memory_experts) {
    more_than_memory(&(shape){"many experts", GGL_Q4_0, 512, 704, 500, 2, 16, false, false},
                     "9000000");
}
TEST(more_than_memory_little) {
    more_than_memory(&(shape){"large", GGL_Q8_0, 1024, 2816, 2048, 2, 0, false, false}, "1000000");
}

/* The sizes that --plan and --fit count are those of a session that repacks first. */
TEST(late_memory_is_the_same) {
    const char *path = test_path("model.gguf");
    for (int k = 2; k < 4; k++) {
        fixture late = {.p.repack_late = true}, first = {0};
        REQUIRE(make(&shapes[k], path));
        REQUIRE(start(&late, path, 1, -1) && start(&first, path, 1, -1));
        const ggl_memory a = memory_of(&late), b = memory_of(&first);
        CHECK_INT((long long)a.weights_repacked, (long long)b.weights_repacked);
        CHECK_INT((long long)a.weights_dropped, (long long)b.weights_dropped);
        CHECK_INT((long long)a.weights_mapped, (long long)b.weights_mapped);
        stop(&late);
        stop(&first);
    }
}

/* A slot that one kind of session saved, the other goes on from. */
TEST(slots_are_shared) {
    const char *path = test_path("model.gguf");
    fixture a = {.p.no_repack = true}, b = {0};
    void *saved;
    size_t size;
    REQUIRE(make(&shapes[3], path));
    REQUIRE(start(&a, path, 1, -1) && start(&b, path, 2, 1));
    float *want = feed(&a, 0, N), *last = want + (N - 1) * llm_session_n_vocab(a.s);
    REQUIRE_OK(llm_session_cut(a.s, 0, 40, &a.err), &a.err);
    REQUIRE_OK(llm_session_save(a.s, 0, false, &saved, &size, &a.err), &a.err);
    REQUIRE_OK(llm_session_restore(b.s, 0, saved, size, &b.err), &b.err);
    REQUIRE_OK(llm_session_copy(b.s, 1, 0, &b.err), &b.err);
    int32_t token[N], slots[N];
    for (int i = 40; i < N; i++) {
        token[i] = token_at(&b, i);
        slots[i] = 1;
    }
    REQUIRE_OK(llm_session_eval(
                   b.s, &(llm_batch){.n = N - 40, .token = token + 40, .slot = slots + 40}, &b.err),
               &b.err);
    CHECK(memcmp(llm_session_logits(b.s), last, (size_t)llm_session_n_vocab(b.s) * sizeof *last) ==
          0);
    ggl_free(saved);
    free(want);
    stop(&a);
    stop(&b);
}

TEST(memory_is_known_before) {
    const char *path = test_path("model.gguf");
    for (int k = 2; k < 4; k++) {
        fixture f = {0};
        REQUIRE(make(&shapes[k], path));
        REQUIRE(start(&f, path, 1, -1));
        ggl_memory m = memory_of(&f);
        if (m.weights_repacked == 0)
            SKIP("these instruction sets have no layout of their own");
        /* the embedding is read by rows, and norms and the experts' router as they are */
        const shape *s = &shapes[k];
        size_t embd = ggl_row_size(s->type, s->n_embd) * (size_t)s->n_vocab,
               norms = (size_t)(s->n_embd * (2 * s->n_layer + 1) * 4),
               router = ggl_row_size(s->type, s->n_embd) * (size_t)(s->n_expert * s->n_layer);
        CHECK_INT((long long)m.weights_mapped, (long long)(embd + norms + router));
        CHECK(m.weights_dropped + (s->tied ? embd : 0) <= m.weights_repacked);
        stop(&f);
    }
}

static void allocates_nothing(bool late) {
    const char *path = test_path("model.gguf");
    fixture f = {.p.repack_late = late};
    REQUIRE(make(&shapes[3], path));
    REQUIRE(start(&f, path, 3, 1));
    int32_t token[N];
    for (int i = 0; i < N; i++)
        token[i] = token_at(&f, i);
    long before = alloc_count();
    REQUIRE_OK(llm_session_eval(f.s, &(llm_batch){.n = 50, .token = token}, &f.err), &f.err);
    for (int i = 50; i < N; i++)
        REQUIRE_OK(llm_session_eval(f.s, &(llm_batch){.n = 1, .token = token + i}, &f.err), &f.err);
    CHECK_INT(left_of(&f, INFINITY), 0);
    CHECK_INT(alloc_count() - before, 0);
    stop(&f);
}

TEST(no_allocation_per_token) {
    allocates_nothing(false);
    allocates_nothing(true);
}

/* --- the file that keeps them -------------------------------------------------------------------
 */

/* A start with the cache: what it says, and the same bits as ever. */
static void check_cached(const char *path, const char *cache, const float *want, size_t size,
                         const char *words) {
    fixture f = {.p.repack_cache = cache};
    if (CHECK_OK(start(&f, path, 2, -1) ? GGL_OK : GGL_USAGE, &f.err)) {
        float *got = feed(&f, 0, 32);
        CHECK_HAS(llm_session_load_notes(f.s), words);
        CHECK_MSG(memcmp(got, want, size) == 0, "cache (%s): other bits", words);
        free(got);
    }
    stop(&f);
}

TEST(cache) {
    const char *path = test_path("model.gguf"), *cache = test_path("model.gguf.repack");
    size_t size;
    REQUIRE(make(&shapes[3], path));
    if (!layouts(path))
        SKIP("these instruction sets have no layout of their own");
    float *want = wanted(path, &size);
    check_cached(path, "", want, size, "keeps the repacked weights");
    struct stat st;
    REQUIRE(stat(cache, &st) == 0 && st.st_size > 10000);
    check_cached(path, "", want, size, "are from");
    check_cached(path, cache, want, size, "are from");
    REQUIRE(truncate(cache, st.st_size - 1) == 0);
    check_cached(path, "", want, size, "is truncated; it was written again");
    check_cached(path, "", want, size, "are from");
    /* the model is another: by its time, then by its tensors */
    const struct timespec when[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    REQUIRE(utimensat(AT_FDCWD, path, when, 0) == 0);
    check_cached(path, "", want, size, "has changed; it was written again");
    check_cached(path, "", want, size, "are from");
    free(want);
    REQUIRE(make(&shapes[1], path));
    REQUIRE(utimensat(AT_FDCWD, path, when, 0) == 0);
    want = wanted(path, &size);
    check_cached(path, "", want, size, "has changed; it was written again");
    check_cached(path, "", want, size, "are from");
    /* never over what is something else, such as the model */
    check_cached(path, path, want, size, "left as it is");
    check_cached(path, test_path("none/x"), want, size, "not saved");
    REQUIRE(test_write_file(cache, "GGUF and other things", 21));
    check_cached(path, "", want, size, "left as it is");
    free(want);
}

/* Wherever a byte of a file of several pieces has changed, it is found within some runs; the logits before that do not wait for it. */
TEST(damaged_cache) {
    const shape large = {"large", GGL_Q8_0, 1024, 2816, 2048, 1, 0, false, false};
    const char *path = test_path("model.gguf"), *cache = test_path("model.gguf.repack");
    REQUIRE(make(&large, path));
    if (!layouts(path))
        SKIP("these instruction sets have no layout of their own");
    fixture first = {.p.repack_cache = ""};
    REQUIRE(start(&first, path, 2, -1));
    stop(&first);
    struct stat st;
    REQUIRE(stat(cache, &st) == 0 && st.st_size > 5 << 20);
    for (off_t at = 8192; at < st.st_size; at += st.st_size / 6) {
        fixture f = {.p.repack_cache = ""};
        const int fd = open(cache, O_RDWR);
        char byte;
        REQUIRE(fd >= 0 && pread(fd, &byte, 1, at) == 1);
        byte ^= 1;
        REQUIRE(pwrite(fd, &byte, 1, at) == 1);
        REQUIRE(start(&f, path, 2, -1));
        CHECK_HAS(llm_session_load_notes(f.s), "are from");
        ggl_status got = GGL_OK;
        int n = 0;
        for (; n < 40 && got == GGL_OK; n++) {
            const int32_t token = 1;
            got = llm_session_eval(f.s, &(llm_batch){.n = 1, .token = &token}, &f.err);
        }
        CHECK_INT(got, GGL_IO);
        CHECK_HAS(f.err.msg, "model.gguf.repack is damaged");
        CHECK_MSG(n > 1 && n <= 33, "byte %lld: found by run %d", (long long)at, n);
        stop(&f);
        byte ^= 1;
        REQUIRE(pwrite(fd, &byte, 1, at) == 1);
        close(fd);
    }
}

/* The same model, with f16 weights rounded and as they are: two contents of the file. */
TEST(cache_of_f16_as_bf16) {
    const shape s = {"tied q8_0, embedding f16", GGL_Q8_0, 96, 160, 75, 2, 0, true, true};
    const char *path = test_path("model.gguf");
    REQUIRE(make(&s, path));
    if (!layouts(path))
        SKIP("these instruction sets have no layout of their own");
    static const struct {
        bool rounded;
        const char *words;
    } starts[] = {{true, "keeps the repacked weights"}, {true, "are from"},
                  {false, "has another layout"},        {false, "are from"},
                  {true, "has another layout"},         {true, "are from"}};
    float *first[2] = {NULL};
    size_t size = 0;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        fixture f = {.f16_as_bf16 = starts[i].rounded, .p.repack_cache = ""};
        float **as = &first[starts[i].rounded];
        REQUIRE(start(&f, path, 2, -1));
        size = logits_size(&f);
        float *got = feed(&f, 0, 32);
        CHECK_HAS(llm_session_load_notes(f.s), starts[i].words);
        CHECK_MSG(!*as || memcmp(got, *as, size) == 0, "start %zu: other bits", i);
        if (*as)
            free(got);
        else
            *as = got;
        stop(&f);
    }
    CHECK(memcmp(first[0], first[1], size) != 0);
    free(first[0]);
    free(first[1]);
}

/* --- memory that loading takes ------------------------------------------------------------------
 */

typedef struct seen {
    size_t calls, stop_at;
} seen;

static bool on_progress(void *ctx, size_t done, size_t total) {
    seen *s = ctx;
    s->calls++;
    CHECK(done <= total);
    return s->calls != s->stop_at;
}

TEST(peak_memory) {
    if (TEST_SANITIZED)
        SKIP("a sanitizer's own memory");
    const shape s = {"large", GGL_Q8_0, 1024, 2816, 2048, 5, 0, false, false};
    const char *path = test_path("model.gguf");
    fixture f = {0};
    struct stat st;
    REQUIRE(make(&s, path));
    REQUIRE(stat(path, &st) == 0);
    size_t before = (size_t)test_status("VmRSS:") * 1024, size = (size_t)st.st_size;
    REQUIRE(size > 50 << 20);
    REQUIRE(start(&f, path, 2, -1));
    if (memory_of(&f).weights_repacked == 0)
        SKIP("these instruction sets have no layout of their own");
    size_t peak = (size_t)test_status("VmHWM:") * 1024;
    printf("file %.1f MiB, before %.1f, peak %.1f\n", (double)size / 1048576,
           (double)before / 1048576, (double)peak / 1048576);
    if (peak > 0)
        CHECK_MSG(peak - before < size + size / 4, "loading %zu MiB took %zu", size >> 20,
                  (peak - before) >> 20);
    const long long huge = test_huge_bytes();
    if (huge >= 0 && access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0)
        CHECK_MSG(huge > (long long)size / 2, "%lld of %zu bytes may be in huge pages", huge, size);
    stop(&f);
}

TEST(progress_and_stop) {
    const char *path = test_path("model.gguf");
    REQUIRE(make(&shapes[0], path));
    if (!layouts(path))
        SKIP("these instruction sets have no layout of their own");
    for (size_t k = 0; k < 3; k++) {
        seen at = {.stop_at = k};
        fixture f = {.p = {.size = sizeof f.p, .progress = on_progress, .progress_ctx = &at}};
        CHECK(start(&f, path, 2, -1) == (k == 0));
        CHECK_INT(f.err.status, k == 0 ? GGL_OK : GGL_CANCELLED);
        CHECK_INT((long long)at.calls, k == 0 ? 2 * 7 + 1 : (long long)k);
        stop(&f);
    }
}

/* With a cache as well: what concerns the file alone may fail unseen. */
TEST(allocations_fail) {
    const char *path = test_path("model.gguf"), *cache = test_path("model.gguf.repack");
    REQUIRE(make(&shapes[3], path));
    bool failed = true;
    long n = 0;
    for (long k = 1; failed; k += 1 + k / 16, n++) {
        fixture f = {.p.repack_cache = ""};
        alloc_fail_at(k);
        bool ok = start(&f, path, 2, 1);
        failed = alloc_has_failed();
        alloc_fail_at(0);
        CHECK_MSG(ok || failed, "%s", f.err.msg);
        stop(&f);
        if (n % 3 == 2)
            unlink(cache);
    }
    CHECK(n > 20);
}
