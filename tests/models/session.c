/* Sessions on the built-in model: the same bits for any threads and pieces, no allocation per
 * token, slots, wrong use, and every allocation of opening one failing in turn. */
#include "llm/internal/session.h"

#include <math.h>

#include "alloc_fail.h"
#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "llm/internal/sampler.h"
#include "seed.h"
#include "test.h"

#define N 100

typedef struct fixture {
    ggl_backend *cpu, *reference;
    llm_model *model;
    llm_session *s;
    ggl_error err;
} fixture;

static bool setup_cache(fixture *f, int n_threads, const char *mask, int64_t n_ubatch,
                        int64_t n_rows, int64_t n_slots, ggl_type type_k, ggl_type type_v) {
    *f = (fixture){0};
    ggl_backend_params bp = {.size = sizeof bp, .n_threads = n_threads, .mask = mask};
    if (ggl_backend_open(&f->cpu, "cpu", &bp, &f->err) != GGL_OK ||
        ggl_backend_open(&f->reference, "reference", NULL, &f->err) != GGL_OK ||
        llm_model_open(&f->model, BUILTIN_MODEL, NULL, &f->err) != GGL_OK)
        return false;
    llm_session_params p = llm_session_default();
    p.n_ubatch = n_ubatch;
    p.n_rows = n_rows;
    p.n_slots = n_slots;
    p.type_k = type_k;
    p.type_v = type_v;
    p.backend = &f->cpu;
    p.n_backends = 1;
    p.fold = f->reference;
    return llm_session_new(&f->s, f->model, &p, &f->err) == GGL_OK &&
           llm_session_alloc(f->s, &f->err) == GGL_OK;
}

static bool setup(fixture *f, int n_threads, int64_t n_ubatch, int64_t n_rows, int64_t n_slots) {
    return setup_cache(f, n_threads, NULL, n_ubatch, n_rows, n_slots, GGL_F16, GGL_F16);
}

static void teardown(fixture *f) {
    llm_session_free(f->s);
    llm_model_free(f->model);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->reference);
}

static int32_t token_at(const fixture *f, int i) {
    return i == 0 ? 1 : (int32_t)((unsigned)i * 7919u % (unsigned)llm_session_n_vocab(f->s));
}

typedef struct rows {
    float *at;
    int64_t n_vocab, n;
} rows;

static void keep_row(void *ctx, int64_t i, const float *logits) {
    rows *r = ctx;
    memcpy(r->at + i * r->n_vocab, logits, (size_t)r->n_vocab * sizeof *logits);
    r->n++;
}

/* Logits of all N tokens, fed to a slot in pieces; free() them. */
static float *feed_all(fixture *f, int slot, int piece) {
    rows r = {.n_vocab = llm_session_n_vocab(f->s)};
    r.at = malloc((size_t)N * (size_t)r.n_vocab * sizeof *r.at);
    for (int first = 0; first < N; first += piece) {
        int32_t token[N], slots[N];
        bool want[N];
        int n = N - first < piece ? N - first : piece;
        for (int i = 0; i < n; i++) {
            token[i] = token_at(f, first + i);
            slots[i] = slot;
            want[i] = true;
        }
        rows part = {.at = r.at + first * r.n_vocab, .n_vocab = r.n_vocab};
        llm_batch b = {
            .n = n, .token = token, .slot = slots, .want = want, .each = keep_row, .ctx = &part};
        if (!CHECK_OK(llm_session_eval(f->s, &b, &f->err), &f->err) || !CHECK_INT(part.n, n))
            break;
    }
    return r.at;
}

TEST(same_bits_for_threads_and_pieces) {
    fixture f;
    REQUIRE(setup(&f, 1, 512, 512, 1));
    float *want = feed_all(&f, 0, N);
    size_t size = (size_t)N * (size_t)llm_session_n_vocab(f.s) * sizeof *want;
    teardown(&f);
    const int threads[] = {1, 2, 3, 7}, pieces[] = {1, 5, 32, N}, ubatches[] = {512, 7},
              n_rows[] = {512, 1};
    for (int t = 0; t < 4; t++)
        for (int p = 0; p < 4; p++) {
            REQUIRE(setup(&f, threads[t], ubatches[p % 2], n_rows[t % 2], 1));
            float *got = feed_all(&f, 0, pieces[p]);
            CHECK_MSG(memcmp(got, want, size) == 0, "%d threads, pieces of %d: other bits",
                      threads[t], pieces[p]);
            free(got);
            teardown(&f);
        }
    free(want);
}

static const ggl_type cache_type[] = {GGL_F32, GGL_BF16, GGL_Q8_0, GGL_Q4_0};
enum { N_CACHE_TYPES = sizeof cache_type / sizeof *cache_type };

TEST(same_bits_in_every_type_of_cache) {
    const struct {
        int n_threads;
        const char *mask;
        int64_t n_ubatch;
        int piece;
    } way[] = {{2, NULL, 512, 1}, {3, NULL, 7, 32}, {7, "avx512", 512, N}, {2, "all", 512, 5}};
    for (int k = 0; k < N_CACHE_TYPES; k++) {
        ggl_type type_k = cache_type[k], type_v = cache_type[(k + 1) % N_CACHE_TYPES];
        fixture f;
        REQUIRE(setup_cache(&f, 1, NULL, 512, 512, 1, type_k, type_v));
        float *want = feed_all(&f, 0, N);
        size_t size = (size_t)N * (size_t)llm_session_n_vocab(f.s) * sizeof *want;
        teardown(&f);
        for (size_t i = 0; i < sizeof way / sizeof *way; i++) {
            if (TEST_TSAN && way[i].mask && (uint64_t)k != sample_seed() % N_CACHE_TYPES)
                continue; /* threads share the work in all kernels alike: one type a day */
            REQUIRE(setup_cache(&f, way[i].n_threads, way[i].mask, way[i].n_ubatch, 512, 1, type_k,
                                type_v));
            float *got = feed_all(&f, 0, way[i].piece);
            CHECK_MSG(memcmp(got, want, size) == 0, "keys of %s, values of %s, way %d: other bits",
                      ggl_type_get(type_k)->name, ggl_type_get(type_v)->name, (int)i);
            free(got);
            teardown(&f);
        }
        free(want);
    }
}

/* How far all logits are from those of an f32 cache, relative to their spread. */
static double cache_error(const float *want, ggl_type type_k, ggl_type type_v) {
    fixture f;
    if (!CHECK(setup_cache(&f, 2, NULL, 512, 512, 1, type_k, type_v)))
        return 1e9;
    float *got = feed_all(&f, 0, N);
    size_t n = (size_t)N * (size_t)llm_session_n_vocab(f.s);
    double error = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        error += pow((double)got[i] - (double)want[i], 2);
        sum += (double)want[i];
        squares += pow((double)want[i], 2);
    }
    free(got);
    teardown(&f);
    return sqrt(error / (squares - sum * sum / (double)n));
}

/* A stored number is off by up to half a step of its type; as a share of the row's rms (rows are
 * near to Gaussian: of 32 numbers the largest is some 2.1 of it): f16 0.01 %, bf16 0.1 %, q8_0 2.1
 * / 127 / sqrt 12 = 0.5 %, q4_0 2.1 / 8 / sqrt 12 = 8 %. Attention averages many rows, and the
 * residual stream outweighs what it adds, so the logits are off by less. But the model's weights
 * are quantized, and so are activations: the least change of a row turns some of their codes, which
 * is 0.8 % of the spread here, even with f16. The bounds are twice that, and the sum for q4_0. */
TEST(cache_types_are_as_exact_as_their_numbers) {
    const struct {
        ggl_type type;
        double bound;
    } list[] = {{GGL_F16, 0.016}, {GGL_BF16, 0.016}, {GGL_Q8_0, 0.016}, {GGL_Q4_0, 0.09}};
    fixture f;
    REQUIRE(setup_cache(&f, 2, NULL, 512, 512, 1, GGL_F32, GGL_F32));
    float *want = feed_all(&f, 0, N);
    teardown(&f);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        double both = cache_error(want, list[i].type, list[i].type);
        printf("# %s: the logits are off by %.2g of their spread\n",
               ggl_type_get(list[i].type)->name, both);
        CHECK_MSG(both > 0 && both < list[i].bound, "%s: %g", ggl_type_get(list[i].type)->name,
                  both);
    }
    free(want);
}

TEST(no_allocation_per_token) {
    fixture f;
    const llm_tokenizer *t;
    llm_sampler *s = NULL;
    llm_sampler_params sp = llm_sampler_default();
    REQUIRE(setup(&f, 3, 64, 1, 1));
    REQUIRE_OK(llm_model_tokenizer(f.model, &t, &f.err), &f.err);
    REQUIRE_OK(llm_sampler_new(&s, &sp, (int32_t)llm_session_n_vocab(f.s), 64, &f.err), &f.err);
    int32_t prompt[50], id = 1;
    for (int i = 0; i < 50; i++)
        prompt[i] = token_at(&f, i);
    long before = alloc_count();
    CHECK(before > 0); /* the count works */
    REQUIRE_OK(llm_session_eval(f.s, &(llm_batch){.n = 50, .token = prompt}, &f.err), &f.err);
    size_t n = 0;
    for (int i = 0; i < 100; i++) {
        id = llm_sampler_next(s, llm_session_logits(f.s), NULL);
        llm_sampler_accept(s, id);
        n += llm_token_text(t, id, false).n;
        REQUIRE_OK(llm_session_eval(f.s, &(llm_batch){.n = 1, .token = &id}, &f.err), &f.err);
    }
    CHECK(n > 0);
    CHECK_INT(alloc_count() - before, 0);
    llm_sampler_free(s);
    teardown(&f);
}

static bool open_and_close(void *arg) {
    (void)arg;
    fixture f;
    bool ok = setup_cache(&f, 2, ALLOC_TRIED, 16, 1, 2, GGL_F16, GGL_F16);
    if (ok) {
        int32_t id = 1;
        ok = llm_session_eval(f.s, &(llm_batch){.n = 1, .token = &id}, &f.err) == GGL_OK;
    }
    teardown(&f);
    return ok;
}

LONG_TEST(every_allocation_fails_in_turn) {
    long n = alloc_fail_each(open_and_close, NULL);
    CHECK_MSG(n > 20, "%ld allocations were failed", n);
}

static void check_slots(ggl_type type_k, ggl_type type_v) {
    fixture f;
    REQUIRE(setup_cache(&f, 2, NULL, 32, 32, 3, type_k, type_v));
    int64_t n_vocab = llm_session_n_vocab(f.s);
    float *want = feed_all(&f, 0, N);
    const float *last = want + (N - 1) * n_vocab;
    /* cut back and go on */
    REQUIRE_OK(llm_session_cut(f.s, 0, 60, &f.err), &f.err);
    CHECK_INT(llm_session_n_past(f.s, 0), 60);
    int32_t token[N];
    for (int i = 0; i < N; i++)
        token[i] = token_at(&f, i);
    REQUIRE_OK(llm_session_eval(f.s, &(llm_batch){.n = N - 60, .token = token + 60}, &f.err),
               &f.err);
    CHECK(memcmp(llm_session_logits(f.s), last, (size_t)n_vocab * 4) == 0);
    /* copy, save, restore into a third */
    void *saved;
    size_t size;
    REQUIRE_OK(llm_session_cut(f.s, 0, 70, &f.err), &f.err);
    REQUIRE_OK(llm_session_copy(f.s, 1, 0, &f.err), &f.err);
    REQUIRE_OK(llm_session_save(f.s, 1, false, &saved, &size, &f.err), &f.err);
    REQUIRE_OK(llm_session_restore(f.s, 2, saved, size, &f.err), &f.err);
    CHECK_INT(llm_session_n_past(f.s, 2), 70);
    int32_t slots[N];
    for (int i = 0; i < N; i++)
        slots[i] = 2;
    REQUIRE_OK(llm_session_eval(f.s, &(llm_batch){.n = N - 70, .token = token + 70, .slot = slots},
                                &f.err),
               &f.err);
    CHECK(memcmp(llm_session_logits(f.s), last, (size_t)n_vocab * 4) == 0);
    /* two sequences in one batch, out of step */
    REQUIRE_OK(llm_session_clear(f.s, 0, &f.err), &f.err);
    REQUIRE_OK(llm_session_clear(f.s, 2, &f.err), &f.err);
    int32_t both[2 * N], who[2 * N];
    int k = 0;
    for (int i = 0; i < N; i++) {
        both[k] = token[i];
        who[k++] = 0;
        if (i >= 10) {
            both[k] = token[i - 10];
            who[k++] = 2;
        }
    }
    who[k] = 0; /* nothing more: slot 0 has all, slot 2 all but ten */
    bool *wants = calloc(2 * N, 1);
    wants[k - 2] = true;
    REQUIRE_OK(llm_session_eval(
                   f.s, &(llm_batch){.n = k, .token = both, .slot = who, .want = wants}, &f.err),
               &f.err);
    CHECK(memcmp(llm_session_logits(f.s), last, (size_t)n_vocab * 4) == 0);
    CHECK_INT(llm_session_n_past(f.s, 2), N - 10);
    /* bytes that are not a slot */
    ((char *)saved)[size - 1] ^= 1;
    CHECK_INT(llm_session_restore(f.s, 1, saved, size, &f.err), GGL_FORMAT);
    CHECK_HAS(f.err.msg, "damaged");
    CHECK_INT(llm_session_restore(f.s, 1, saved, size - 1, &f.err), GGL_FORMAT);
    CHECK_INT(llm_session_restore(f.s, 1, saved, 20, &f.err), GGL_FORMAT);
    CHECK_INT(
        llm_session_restore(f.s, 1, "ggl-slotggl-slotggl-slotggl-slotggl-slotggl-slot", 48, &f.err),
        GGL_FORMAT);
    CHECK_INT(llm_session_n_past(f.s, 1), 70);
    free(wants);
    ggl_free(saved);
    free(want);
    teardown(&f);
}

TEST(slots) {
    check_slots(GGL_F16, GGL_F16);
}

TEST(slots_of_every_type) {
    for (int k = 0; k < N_CACHE_TYPES; k++)
        check_slots(cache_type[k], cache_type[(k + 1) % N_CACHE_TYPES]);
}

TEST(slots_of_another_type_are_refused) {
    fixture f;
    void *saved;
    size_t size;
    int32_t id = 1;
    REQUIRE(setup_cache(&f, 1, NULL, 32, 1, 1, GGL_Q8_0, GGL_F16));
    REQUIRE_OK(llm_session_eval(f.s, &(llm_batch){.n = 1, .token = &id}, &f.err), &f.err);
    REQUIRE_OK(llm_session_save(f.s, 0, false, &saved, &size, &f.err), &f.err);
    teardown(&f);
    REQUIRE(setup_cache(&f, 1, NULL, 32, 1, 1, GGL_Q8_0, GGL_Q4_0));
    CHECK_INT(llm_session_restore(f.s, 0, saved, size, &f.err), GGL_FORMAT);
    CHECK_HAS(f.err.msg,
              "keys of type q8_0 and values of f16; this session's types are q8_0 and q4_0");
    CHECK_INT(llm_session_n_past(f.s, 0), 0);
    ggl_free(saved);
    teardown(&f);
}

/* --- several backends ------------------------------------------------------------------------- */

static int runs_left; /* until the failing backend fails; negative: it does not */
static ggl_backend_vtable failing;
static ggl_status (*real_run)(ggl_backend *, ggl_plan *, ggl_buffer *const *, int64_t, ggl_error *);

static ggl_status run_or_fail(ggl_backend *b, ggl_plan *p, ggl_buffer *const *region, int64_t n,
                              ggl_error *err) {
    if (runs_left-- == 0)
        return ggl_fail(err, GGL_IO, "the device was lost");
    return real_run(b, p, region, n, err);
}

static int upper_half(void *ctx, int layer, int n_layer, const char *weight) {
    (void)ctx;
    return weight ? -1 : layer >= n_layer / 2;
}

/* Pieces of a prompt follow each other through the backends; when one of these fails the slot has
 * the tokens of before, and goes on from there as if nothing had been. */
TEST(a_device_fails_under_way) {
    enum { N_TOKENS = 24, N_FIRST = 6 };
    ggl_error err = {0};
    ggl_backend *b[2] = {0};
    llm_model *model = NULL;
    llm_session *s = NULL;
    float *want = NULL;
    int32_t token[N_TOKENS];
    REQUIRE_OK(ggl_backend_open(&b[0], "cpu", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&b[1], "reference", NULL, &err), &err);
    REQUIRE_OK(llm_model_open(&model, BUILTIN_MODEL, NULL, &err), &err);
    failing = *b[1]->v;
    real_run = failing.run;
    failing.run = run_or_fail;
    b[1]->v = &failing;
    llm_session_params p = llm_session_default();
    p.n_ubatch = 4;
    p.backend = b;
    p.n_backends = 2;
    p.fold = b[1];
    p.place = upper_half;
    for (int i = 0; i < N_TOKENS; i++)
        token[i] = i + 1;
    runs_left = -1;
    REQUIRE_OK(llm_session_new(&s, model, &p, &err), &err);
    REQUIRE_OK(llm_session_alloc(s, &err), &err);
    const size_t size = (size_t)llm_session_n_vocab(s) * sizeof *want;
    const llm_batch first = {.n = N_FIRST, .token = token},
                    rest = {.n = N_TOKENS - N_FIRST, .token = token + N_FIRST};
    for (int fail_at = -1; fail_at < 6; fail_at++) {
        runs_left = -1;
        REQUIRE_OK(llm_session_clear(s, 0, &err), &err);
        REQUIRE_OK(llm_session_eval(s, &first, &err), &err);
        runs_left = fail_at;
        ggl_status st = llm_session_eval(s, &rest, &err);
        CHECK_INT(st, fail_at < 0 ? GGL_OK : GGL_IO);
        if (st != GGL_OK) {
            CHECK_INT(llm_session_n_past(s, 0), N_FIRST);
            runs_left = -1;
            REQUIRE_OK(llm_session_eval(s, &rest, &err), &err);
        }
        CHECK_INT(llm_session_n_past(s, 0), N_TOKENS);
        if (!want) {
            REQUIRE(want = malloc(size));
            memcpy(want, llm_session_logits(s), size);
        }
        CHECK_MSG(memcmp(want, llm_session_logits(s), size) == 0,
                  "other logits after a failure of run %d", fail_at);
    }
    free(want);
    llm_session_free(s);
    llm_model_free(model);
    ggl_backend_close(b[0]);
    ggl_backend_close(b[1]);
}

TEST(wrong_use) {
    fixture f;
    REQUIRE(setup(&f, 1, 32, 1, 2));
    int32_t bad = (int32_t)llm_session_n_vocab(f.s), slot = 2, good = 1;
    CHECK_INT(llm_session_eval(f.s, &(llm_batch){.n = 1, .token = &bad}, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg, "vocabulary");
    CHECK_INT(llm_session_eval(f.s, &(llm_batch){.n = 1, .token = &good, .slot = &slot}, &f.err),
              GGL_USAGE);
    CHECK_HAS(f.err.msg, "slot 2");
    int64_t n = llm_session_n_ctx(f.s) + 1;
    int32_t *many = calloc((size_t)n, sizeof *many);
    CHECK_INT(llm_session_eval(f.s, &(llm_batch){.n = n, .token = many}, &f.err), GGL_LIMIT);
    CHECK_HAS(f.err.msg, "context");
    CHECK_INT(llm_session_n_past(f.s, 0), 0);
    free(many);
    CHECK_INT(llm_session_cut(f.s, 0, 1, &f.err), GGL_USAGE);
    CHECK_INT(llm_session_clear(f.s, -1, &f.err), GGL_USAGE);
    llm_session *s;
    llm_session_params p = llm_session_default();
    p.n_ctx = INT64_C(1) << 40;
    p.backend = &f.cpu;
    p.n_backends = 1;
    p.fold = f.reference;
    CHECK_INT(llm_session_new(&s, f.model, &p, &f.err), GGL_LIMIT);
    teardown(&f);
}

/* Calls in the wrong order, and without data, are refused in a sentence and change nothing. */
TEST(wrong_order) {
    fixture f;
    REQUIRE(setup(&f, 1, 32, 1, 2));
    llm_session *s = NULL;
    llm_session_params p = llm_session_default();
    p.n_ctx = 64;
    p.backend = &f.cpu;
    p.n_backends = 1;
    p.fold = f.reference;
    REQUIRE_OK(llm_session_new(&s, f.model, &p, &f.err), &f.err);
    int32_t token[3] = {1, 2, 3};
    void *data = NULL;
    size_t size;
    const llm_batch b = {.n = 3, .token = token};
    CHECK_INT(llm_session_clear(s, 0, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg, "call llm_session_alloc first");
    CHECK_INT(llm_session_eval(s, &b, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg, "call llm_session_alloc first");
    CHECK_INT(llm_session_save(s, 0, false, &data, &size, &f.err), GGL_USAGE);
    CHECK_OK(llm_session_alloc(s, &f.err), &f.err);
    CHECK_INT(llm_session_alloc(s, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg, "once");
    CHECK_OK(llm_session_eval(s, &b, &f.err), &f.err);
    CHECK_INT(llm_session_eval(s, &(llm_batch){.n = -5, .token = token}, &f.err), GGL_USAGE);
    CHECK_HAS(f.err.msg, "-5 tokens");
    CHECK_INT(llm_session_eval(s, &(llm_batch){.n = 1}, &f.err), GGL_USAGE);
    CHECK_OK(llm_session_eval(s, &(llm_batch){.n = 0}, &f.err), &f.err);
    CHECK_INT(llm_session_restore(s, 0, NULL, 1000, &f.err), GGL_FORMAT);
    CHECK_INT(llm_session_n_past(s, 0), 3);
    llm_session_free(s);
    teardown(&f);
}

enum { N_STREAMS = 6, N_STEPS = 12 };

/* Notes the logits of one token of each stream. */
typedef struct streams {
    float *logits; /* [N_STREAMS][n_vocab] */
    size_t size;   /* bytes of a row */
    int first;     /* the stream of the batch's first token */
} streams;

static void note_logits(void *ctx, int64_t i, const float *logits) {
    const streams *x = ctx;
    memcpy((char *)x->logits + (size_t)(x->first + (int)i) * x->size, logits, x->size);
}

/* A batch of the next tokens of streams first .. first + n-1. */
static ggl_status submit_streams(llm_session *s, streams *x, int step, int n, uint64_t *ticket,
                                 ggl_error *err) {
    int32_t token[N_STREAMS], slot[N_STREAMS];
    bool want[N_STREAMS];
    for (int k = 0; k < n; k++) {
        slot[k] = x->first + k;
        token[k] = 1 + (7 * slot[k] + step) % 40;
        want[k] = true;
    }
    const llm_batch b = {
        .n = n, .token = token, .slot = slot, .want = want, .each = note_logits, .ctx = x};
    return llm_session_submit(s, &b, ticket, err);
}

static bool open_streams(llm_session **s, const llm_model *m, ggl_backend **b, int n_backends,
                         ggl_backend *fold, ggl_error *err) {
    llm_session_params p = llm_session_default();
    p.n_ubatch = p.n_rows = p.n_slots = N_STREAMS;
    p.n_ctx = 64;
    p.backend = b;
    p.n_backends = n_backends;
    p.fold = fold;
    p.place = n_backends > 1 ? upper_half : NULL;
    return CHECK_OK(llm_session_new(s, m, &p, err), err) &&
           CHECK_OK(llm_session_alloc(*s, err), err);
}

/* The batch of slot `busy` is not collected yet: nothing touches the slot; others are free. */
static void check_under_way(llm_session *s, int busy, int idle) {
    ggl_error err = {0};
    void *saved = NULL;
    size_t size;
    CHECK_INT(llm_session_clear(s, busy, &err), GGL_USAGE);
    CHECK_INT(llm_session_cut(s, busy, 1, &err), GGL_USAGE);
    CHECK_INT(llm_session_copy(s, idle, busy, &err), GGL_USAGE);
    CHECK_INT(llm_session_copy(s, busy, idle, &err), GGL_USAGE);
    CHECK_INT(llm_session_save(s, busy, false, &saved, &size, &err), GGL_USAGE);
    REQUIRE_OK(llm_session_save(s, idle, false, &saved, &size, &err), &err);
    CHECK_INT(llm_session_restore(s, busy, saved, size, &err), GGL_USAGE);
    CHECK_HAS(err.msg, "is in a batch that is not collected yet");
    REQUIRE_OK(llm_session_restore(s, idle, saved, size, &err), &err);
    free(saved);
}

/* Two batches under way, on two backends. */
static bool open_two_and_close(void *arg) {
    const llm_model *model = arg;
    ggl_error err = {0};
    ggl_backend *b[2] = {0};
    llm_session *s = NULL;
    uint64_t ticket[2] = {0};
    float got[2];
    streams x[2] = {{got, 0, 0}, {got, 0, 2}};
    llm_session_params p = llm_session_default();
    p.n_ubatch = p.n_rows = p.n_slots = N_STREAMS;
    p.n_ctx = 64;
    p.backend = b;
    p.n_backends = 2;
    p.place = upper_half;
    const ggl_backend_params bp = {.size = sizeof bp, .mask = ALLOC_TRIED};
    bool ok = ggl_backend_open(&b[0], "cpu", &bp, &err) == GGL_OK &&
              ggl_backend_open(&b[1], "cpu1", &bp, &err) == GGL_OK &&
              llm_session_new(&s, model, &p, &err) == GGL_OK &&
              llm_session_alloc(s, &err) == GGL_OK;
    for (int k = 0; k < 2 && ok; k++)
        ok = submit_streams(s, &x[k], 0, 2, &ticket[k], &err) == GGL_OK;
    if (ok) /* the other one is not collected */
        ok = llm_session_collect(s, ticket[1], &err) == GGL_OK;
    llm_session_free(s);
    ggl_backend_close(b[0]);
    ggl_backend_close(b[1]);
    return ok;
}

TEST(every_allocation_for_two_backends_fails_in_turn) {
    ALLOC_SKIP_OPENING();
    ggl_error err = {0};
    llm_model *model = NULL;
    REQUIRE_OK(llm_model_open(&model, BUILTIN_MODEL, NULL, &err), &err);
    const long n = alloc_fail_each(open_two_and_close, model);
    CHECK_MSG(n > 20, "%ld allocations were failed", n);
    llm_model_free(model);
}

/* Two batches under way give the bits of one at a time, and what is wrong is refused. */
TEST(two_batches_under_way) {
    ggl_error err = {0};
    ggl_backend *b[4] = {0};
    llm_model *model = NULL;
    llm_session *s, *alone;
    uint64_t ticket[3], one;
    int32_t id = 1;
    REQUIRE_OK(ggl_backend_open(&b[0], "cpu", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&b[1], "cpu1", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&b[2], "cpu2", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&b[3], "reference", NULL, &err), &err);
    REQUIRE_OK(llm_model_open(&model, BUILTIN_MODEL, NULL, &err), &err);
    REQUIRE(open_streams(&s, model, b, 2, b[3], &err) &&
            open_streams(&alone, model, b + 2, 1, b[3], &err));
    CHECK_INT(llm_session_n_lanes(s), 2);
    CHECK_INT(llm_session_n_lanes(alone), 1);
    const size_t size = (size_t)llm_session_n_vocab(s) * sizeof(float);
    float *got = malloc(N_STREAMS * size), *want = malloc(N_STREAMS * size);
    streams half[2] = {{got, size, 0}, {got, size, N_STREAMS / 2}}, all = {want, size, 0};
    REQUIRE(got && want);
    for (int step = 0; step <= N_STEPS && test_failures == 0; step++) {
        for (int k = 0; k < 2; k++) {
            if (step > 0)
                REQUIRE_OK(llm_session_collect(s, ticket[k], &err), &err);
            if (step < N_STEPS)
                REQUIRE_OK(submit_streams(s, &half[k], step, N_STREAMS / 2, &ticket[k], &err),
                           &err);
        }
        if (step == N_STEPS)
            break;
        REQUIRE_OK(submit_streams(alone, &all, step, N_STREAMS, &one, &err), &err);
        REQUIRE_OK(llm_session_collect(alone, one, &err), &err);
    }
    CHECK_MSG(memcmp(got, want, N_STREAMS * size) == 0, "other logits");
    REQUIRE_OK(submit_streams(s, &half[0], 0, 2, &ticket[0], &err), &err);
    const llm_batch eval = {.n = 1, .token = &id};
    CHECK_INT(llm_session_eval(s, &eval, &err), GGL_USAGE);
    CHECK_INT(submit_streams(s, &half[0], 0, 1, &ticket[1], &err), GGL_USAGE);
    CHECK_HAS(err.msg, "slot 0 is in a batch that is not collected yet");
    check_under_way(s, 0, 2);
    REQUIRE_OK(submit_streams(s, &half[1], 0, 1, &ticket[1], &err), &err);
    half[1].first++;
    CHECK_INT(submit_streams(s, &half[1], 0, 1, &ticket[2], &err), GGL_USAGE);
    CHECK_HAS(err.msg, "2 batches are not collected yet");
    REQUIRE_OK(llm_session_collect(s, ticket[1], &err), &err);
    CHECK_INT(llm_session_collect(s, ticket[1], &err), GGL_USAGE);
    REQUIRE_OK(llm_session_collect(s, ticket[0], &err), &err);
    int32_t many[N_STREAMS + 1] = {0};
    const llm_batch too_many = {.n = N_STREAMS + 1, .token = many};
    CHECK_INT(llm_session_submit(s, &too_many, &one, &err), GGL_USAGE);
    REQUIRE_OK(llm_session_eval(s, &eval, &err), &err);
    failing = *b[1]->v; /* a batch fails, and the one behind it, too; their slots go back */
    real_run = failing.run;
    failing.run = run_or_fail;
    b[1]->v = &failing;
    const int64_t n_past = llm_session_n_past(s, 1);
    half[1].first = 4;
    runs_left = 0;
    half[0].first = 1;
    for (int k = 0; k < 2; k++)
        REQUIRE_OK(submit_streams(s, &half[k], 0, 2, &ticket[k], &err), &err);
    for (int k = 0; k < 2; k++)
        CHECK_INT(llm_session_collect(s, ticket[k], &err), GGL_IO);
    CHECK_INT(llm_session_n_past(s, 1), n_past);
    REQUIRE_OK(llm_session_eval(s, &eval, &err), &err);
    free(got);
    free(want);
    llm_session_free(s);
    llm_session_free(alone);
    llm_model_free(model);
    for (int k = 0; k < 4; k++)
        ggl_backend_close(b[k]);
}

/* Notes how many tokens of a prompt have begun, after each piece. */
typedef struct pieces {
    int64_t n[64], n_pieces, longest;
} pieces;

static bool note_piece(void *ctx, int64_t done, int64_t n) {
    pieces *p = ctx;
    const int64_t before = p->n_pieces ? p->n[p->n_pieces - 1] : 0;
    (void)n;
    if (p->n_pieces < (int64_t)(sizeof p->n / sizeof *p->n))
        p->n[p->n_pieces++] = done;
    p->longest = done - before > p->longest ? done - before : p->longest;
    return true;
}

/* A prompt is cut so that several backends are busy: into more pieces for more tokens, all about as long. One backend, or batches that
 * cost nothing, have pieces of n_ubatch. The bits are the same. */
TEST(prompts_are_cut_for_several_backends) {
    enum { UBATCH = 200, LONG = 400 };
    const struct {
        int n_backends;
        double cost;
        int64_t n, n_ubatch, n_pieces, longest;
    } want[] = {
        {1, 8, LONG, UBATCH, 2, 200},    {2, 0, LONG, UBATCH, 2, 200}, {2, 8, LONG, UBATCH, 7, 58},
        {2, 8, 200, UBATCH, 5, 40},      {2, 8, 40, UBATCH, 2, 32},    {2, 8, 20, UBATCH, 1, 20},
        {2, 1000, LONG, UBATCH, 2, 200}, {2, 8, LONG, 16, 25, 16},     {2, 8, 20, 1, 20, 1}};
    ggl_error err = {0};
    ggl_backend *b[2] = {0};
    llm_model *model = NULL;
    int32_t token[LONG];
    float *first = NULL;
    REQUIRE_OK(ggl_backend_open(&b[0], "cpu", NULL, &err), &err);
    REQUIRE_OK(ggl_backend_open(&b[1], "cpu1", NULL, &err), &err);
    REQUIRE_OK(llm_model_open(&model, BUILTIN_MODEL, NULL, &err), &err);
    for (int i = 0; i < LONG; i++)
        token[i] = 1 + (7 * i) % 40;
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        llm_session *s = NULL;
        pieces p = {0};
        llm_session_params sp = llm_session_default();
        sp.n_ubatch = want[k].n_ubatch;
        sp.n_ctx = LONG;
        sp.backend = b;
        sp.n_backends = want[k].n_backends;
        sp.place = want[k].n_backends > 1 ? upper_half : NULL;
        sp.batch_cost = want[k].cost;
        REQUIRE_OK(llm_session_new(&s, model, &sp, &err), &err);
        REQUIRE_OK(llm_session_alloc(s, &err), &err);
        const llm_batch all = {.n = want[k].n, .token = token, .progress = note_piece, .ctx = &p};
        REQUIRE_OK(llm_session_eval(s, &all, &err), &err);
        CHECK_INT(p.n_pieces, want[k].n_pieces);
        CHECK_INT(p.longest, want[k].longest);
        CHECK_INT(p.n[p.n_pieces - 1], want[k].n);
        const size_t size = (size_t)llm_session_n_vocab(s) * sizeof(float);
        if (!first && (first = malloc(size)))
            memcpy(first, llm_session_logits(s), size);
        CHECK(first && (want[k].n < LONG || memcmp(first, llm_session_logits(s), size) == 0));
        llm_session_free(s);
    }
    free(first);
    llm_model_free(model);
    ggl_backend_close(b[0]);
    ggl_backend_close(b[1]);
}
