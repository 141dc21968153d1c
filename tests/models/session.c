/* Sessions on the built-in model: the same bits for any threads and pieces, no allocation per
 * token, slots, wrong use, and every allocation of opening one failing in turn. */
#include "llm/session.h"

#include "alloc_fail.h"
#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "llm/sampler.h"
#include "test.h"

#define N 100

typedef struct fixture {
    ggl_backend *cpu, *reference;
    llm_model *model;
    llm_session *s;
    ggl_error err;
} fixture;

static bool setup(fixture *f, int n_threads, int64_t n_ubatch, int64_t n_rows, int64_t n_slots) {
    *f = (fixture){0};
    ggl_backend_params bp = {.n_threads = n_threads};
    if (ggl_backend_open(&f->cpu, "cpu", &bp, &f->err) != GGL_OK ||
        ggl_backend_open(&f->reference, "reference", NULL, &f->err) != GGL_OK ||
        llm_model_open(&f->model, BUILTIN_MODEL, NULL, &f->err) != GGL_OK)
        return false;
    llm_session_params p = llm_session_default();
    p.n_ubatch = n_ubatch;
    p.n_rows = n_rows;
    p.n_slots = n_slots;
    p.backend = &f->cpu;
    p.n_backends = 1;
    p.fold = f->reference;
    return llm_session_new(&f->s, f->model, &p, &f->err) == GGL_OK &&
           llm_session_alloc(f->s, &f->err) == GGL_OK;
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
        id = llm_sampler_next(s, llm_session_logits(f.s));
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
    bool ok = setup(&f, 2, 16, 1, 2);
    if (ok) {
        int32_t id = 1;
        ok = llm_session_eval(f.s, &(llm_batch){.n = 1, .token = &id}, &f.err) == GGL_OK;
    }
    teardown(&f);
    return ok;
}

TEST(every_allocation_fails_in_turn) {
    long n = alloc_fail_each(open_and_close, NULL);
    CHECK_MSG(n > 20, "%ld allocations were failed", n);
}

TEST(slots) {
    fixture f;
    REQUIRE(setup(&f, 2, 32, 32, 3));
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
    /* what is no slot */
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
