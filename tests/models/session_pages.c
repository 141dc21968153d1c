/* Slots that share the pages of a KV cache with room for fewer tokens than they may have: whatever is
 * appended, shared, cut, cleared, saved, restored and cancelled, in any order, each slot gives the
 * logits that a session of its own gives for the same tokens, bit for bit, and exactly as many pages
 * are in use as a simple model of them says. */
#include "llm/internal/session.h"

#include <stdlib.h>

#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "test.h"
#include "tiny_model.h"

#define NARROW WINDOW_OF("41") /* with a ubatch exactly a page */

enum { CTX = 400, UBATCH = 24, SLOTS = 7, POOL = 16, MOST = CTX / GGL_PAGE + 1, SAVED = 3 };

typedef struct sequence { /* what a slot has to hold */
    int32_t token[CTX];
    int n, page[MOST], n_pages; /* pages are numbered as they are taken */
    bool broken;
} sequence;

typedef struct saved {
    void *data;
    size_t size;
    sequence of;
} saved;

typedef struct fixture {
    ggl_backend *cpu, *reference;
    llm_model *model;
    llm_session *s, *fresh;
    sequence slot[SLOTS];
    saved saved[SAVED];
    uint64_t seed;
    int64_t polls_left; /* until a run is cancelled; negative: never */
    int64_t n_pool, n_vocab;
    int n_named; /* pages that have been numbered */
    bool has_states, has_ring, has_pages;
    int n_compared, n_full, n_copied; /* sequences; refusals for lack of pages; copies on write */
    ggl_error err;
} fixture;

static int below(fixture *f, int n) {
    return (int)(test_random(&f->seed) % (uint64_t)n);
}

static bool cancelled(void *ctx) {
    fixture *f = ctx;
    return f->polls_left >= 0 && f->polls_left-- == 0;
}

static bool session_open(fixture *f, llm_session **s, llm_session_params p) {
    p.n_ctx = CTX;
    p.backend = &f->cpu;
    p.n_backends = 1;
    p.fold = f->reference;
    p.cancelled = cancelled;
    p.cancelled_ctx = f;
    return CHECK_OK(llm_session_new(s, f->model, &p, &f->err), &f->err) &&
           CHECK_OK(llm_session_alloc(*s, &f->err), &f->err);
}

/* Tokens of `n_pool` for all slots. */
static bool setup(fixture *f, const char *text, int64_t n_pool, ggl_type type) {
    const char *path = test_path("tiny.gguf");
    llm_session_params p = llm_session_default(), own = p;
    *f = (fixture){.polls_left = -1, .seed = 17, .n_pool = n_pool};
    p.n_ubatch = UBATCH;
    p.n_slots = SLOTS;
    p.n_pool = n_pool;
    p.type_k = own.type_k = type;
    p.type_v = own.type_v = type;
    if (!tiny_model_write(path, text, 1) ||
        !CHECK_OK(ggl_backend_open(
                      &f->cpu, "cpu",
                      &(ggl_backend_params){.size = sizeof(ggl_backend_params), .n_threads = 1},
                      &f->err),
                  &f->err) ||
        !CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &f->err), &f->err) ||
        !CHECK_OK(llm_model_open(&f->model, path, NULL, &f->err), &f->err) ||
        !session_open(f, &f->s, p) || !session_open(f, &f->fresh, own))
        return false;
    f->n_vocab = llm_session_n_vocab(f->s);
    f->has_states = llm_session_has_states(f->s);
    f->has_ring = llm_session_cut_limit(f->s) < CTX;
    f->has_pages = llm_session_n_free(f->s) < INT64_MAX;
    return true;
}

static void teardown(fixture *f) {
    for (int i = 0; i < SAVED; i++)
        ggl_free(f->saved[i].data);
    llm_session_free(f->s);
    llm_session_free(f->fresh);
    llm_model_free(f->model);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->reference);
}

/* --- a model of the pages --------------------------------------------------------------------- */

static int n_users(const fixture *f, int page) {
    int n = 0;
    for (int k = 0; k < SLOTS; k++)
        for (int i = 0; i < f->slot[k].n_pages; i++)
            n += f->slot[k].page[i] == page;
    return n;
}

static int n_used(const fixture *f) {
    int n = 0;
    for (int k = 0; k < SLOTS; k++)
        for (int i = 0; i < f->slot[k].n_pages; i++) {
            bool first = true; /* slot with this page */
            for (int other = 0; other < k; other++)
                for (int j = 0; j < f->slot[other].n_pages; j++)
                    first = first && f->slot[other].page[j] != f->slot[k].page[i];
            n += first;
        }
    return n;
}

static int n_free(const fixture *f) {
    return (int)(f->n_pool / GGL_PAGE) - n_used(f);
}

static int pages_for(const fixture *f, int n) {
    return f->has_pages ? (n + GGL_PAGE - 1) / GGL_PAGE : 0;
}

/* Whether the next token of the slot goes into a page that others have, too. */
static bool writes_to_shared(const fixture *f, const sequence *q) {
    const int i = q->n / GGL_PAGE;
    return i < q->n_pages && n_users(f, q->page[i]) > 1;
}

/* Of one slot; all slots of a batch together may need fewer, see expected(). */
static int n_needed(const fixture *f, const sequence *q, int n_new) {
    return n_new ? pages_for(f, q->n + n_new) - q->n_pages + writes_to_shared(f, q) : 0;
}

static void resize(fixture *f, sequence *q, int n) {
    q->n = n;
    const int n_pages = pages_for(f, n);
    for (unsigned i = (unsigned)q->n_pages; i < (unsigned)n_pages; i++)
        q->page[i] = f->n_named++;
    q->n_pages = n_pages;
}

static void take(fixture *f, sequence *q, int n_new) {
    if (n_new && writes_to_shared(f, q)) {
        q->page[q->n / GGL_PAGE] = f->n_named++;
        f->n_copied++;
    }
    resize(f, q, q->n + n_new);
}

/* Returns how many more pages are in use after n_new[k] tokens for each slot k. */
static int n_taken(fixture *f, const int *n_new) {
    static fixture then;
    then = *f;
    for (int k = 0; k < SLOTS; k++)
        if (f->slot[k].n + n_new[k] > CTX)
            return 0; /* refused for another reason */
    for (int k = 0; k < SLOTS; k++)
        take(&then, &then.slot[k], n_new[k]);
    return n_used(&then) - n_used(f);
}

static bool check_pages(fixture *f, const char *after) {
    bool ok = true;
    for (int k = 0; k < SLOTS && ok; k++)
        ok = CHECK_MSG(llm_session_n_past(f->s, k) == f->slot[k].n,
                       "after %s: slot %d has %d tokens, not %d", after, k,
                       (int)llm_session_n_past(f->s, k), f->slot[k].n);
    const int64_t want = f->has_pages ? n_free(f) * GGL_PAGE : INT64_MAX;
    return ok &&
           CHECK_MSG(llm_session_n_free(f->s) == want, "after %s: room for %lld tokens, not %lld",
                     after, (long long)llm_session_n_free(f->s), (long long)want);
}

/* --- appending -------------------------------------------------------------------------------- */

typedef struct append_ctx {
    fixture *f;
    const int32_t *slot;
} append_ctx;

/* Compares the logits of a slot's last token with those of a session of its own. */
static void compare(void *ctx, int64_t i, const float *logits) {
    const append_ctx *a = ctx;
    fixture *f = a->f;
    const sequence *q = &f->slot[a->slot[i]];
    const llm_batch b = {.n = q->n, .token = q->token};
    if (CHECK_OK(llm_session_clear(f->fresh, 0, &f->err), &f->err) &&
        CHECK_OK(llm_session_eval(f->fresh, &b, &f->err), &f->err))
        CHECK_MSG(
            memcmp(logits, llm_session_logits(f->fresh), (size_t)f->n_vocab * sizeof *logits) == 0,
            "slot %d with %d tokens gives %g, a session of its own %g", (int)a->slot[i], q->n,
            (double)logits[0], (double)llm_session_logits(f->fresh)[0]);
    f->n_compared++;
}

/* A batch of random tokens: n_new[k] for slot k, in any order. */
typedef struct mixed {
    int32_t token[SLOTS * CTX], slot[SLOTS * CTX];
    bool want[SLOTS * CTX];
    int n, n_new[SLOTS];
} mixed;

static void fill(fixture *f, mixed *m) {
    int left[SLOTS], last[SLOTS], n = 0;
    memcpy(left, m->n_new, sizeof left);
    for (int k = 0; k < SLOTS; k++)
        n += left[k];
    for (m->n = 0; m->n < n; m->n++) {
        int k = below(f, SLOTS);
        while (left[k] == 0)
            k = (k + 1) % SLOTS;
        const sequence *q = &f->slot[k];
        m->slot[m->n] = k;
        m->token[m->n] = below(f, (int)f->n_vocab);
        m->want[m->n] = false;
        last[k] = m->n;
        if (q->n + m->n_new[k] <= CTX)
            f->slot[k].token[q->n + m->n_new[k] - left[k]] = m->token[m->n];
        left[k]--;
    }
    for (int k = 0; k < SLOTS; k++)
        if (m->n_new[k])
            m->want[last[k]] = true;
}

/* Returns what appending m has to return, unless it is cancelled. */
static ggl_status expected(fixture *f, const mixed *m) {
    const int needed = n_taken(f, m->n_new);
    bool broken = false, too_long = false;
    for (int k = 0; k < SLOTS; k++) {
        const int n = n_needed(f, &f->slot[k], m->n_new[k]);
        broken |= m->n_new[k] && f->slot[k].broken;
        too_long |= f->slot[k].n + m->n_new[k] > CTX;
        CHECK_INT(llm_session_n_needed(f->s, k, m->n_new[k]), n * GGL_PAGE);
    }
    const bool full = f->has_pages && needed > n_free(f);
    f->n_full += !broken && !too_long && full;
    return broken ? GGL_USAGE : too_long || full ? GGL_LIMIT : GGL_OK;
}

static void run(fixture *f, mixed *m, bool cancel) {
    append_ctx ctx = {f, m->slot};
    fill(f, m);
    const ggl_status want = expected(f, m);
    const llm_batch b = {.n = m->n,
                         .token = m->token,
                         .slot = m->slot,
                         .want = m->want,
                         .each = cancel ? NULL : compare,
                         .ctx = &ctx};
    if (want == GGL_OK)
        for (int k = 0; k < SLOTS; k++)
            take(f, &f->slot[k], m->n_new[k]);
    f->polls_left = cancel ? below(f, 40) : -1;
    const ggl_status st = llm_session_eval(f->s, &b, &f->err);
    const bool stopped = cancel && f->polls_left < 0;
    f->polls_left = -1;
    CHECK_INT(st, want == GGL_OK && stopped ? GGL_CANCELLED : want);
    for (int k = 0; k < SLOTS && st == GGL_CANCELLED; k++) {
        const int n = (int)llm_session_n_past(f->s, k);
        f->slot[k].broken |= f->has_states && n < f->slot[k].n;
        CHECK(n <= f->slot[k].n && n >= f->slot[k].n - m->n_new[k]);
        resize(f, &f->slot[k], n);
    }
}

static void do_append(fixture *f) {
    mixed *m = calloc(1, sizeof *m);
    const int n = below(f, 3) ? 1 : 1 + below(f, SLOTS);
    for (int i = 0; m && i < n; i++)
        m->n_new[below(f, SLOTS)] = 1 + below(f, n > 1 ? 9 : below(f, 2) ? 4 : 150);
    if (m)
        run(f, m, false);
    free(m);
}

static void do_cancel(fixture *f) {
    mixed *m = calloc(1, sizeof *m);
    for (int k = 0; m && k < SLOTS; k += 2)
        m->n_new[(k + below(f, 2)) % SLOTS] = 1 + below(f, 70);
    if (m)
        run(f, m, true);
    free(m);
}

/* --- other operations ------------------------------------------------------------------------- */

static void do_share(fixture *f) {
    const int dst = below(f, SLOTS), src = below(f, SLOTS);
    sequence *to = &f->slot[dst], *from = &f->slot[src];
    const int n = below(f, 2) ? from->n : below(f, from->n + 1);
    const ggl_status st = llm_session_share(f->s, dst, src, n, &f->err);
    if (from->broken || (n < from->n && n > 0 && (f->has_states || f->has_ring)))
        CHECK(st == GGL_OK || st == GGL_USAGE || st == GGL_UNSUPPORTED);
    else
        CHECK_INT(st, GGL_OK);
    if (st != GGL_OK)
        return;
    *to = *from;
    resize(f, to, n);
}

static void do_cut(fixture *f) {
    const int k = below(f, SLOTS), n = below(f, f->slot[k].n + 1);
    const ggl_status st = llm_session_cut(f->s, k, n, &f->err);
    if (!f->has_states && !f->has_ring)
        CHECK_INT(st, GGL_OK);
    if (st == GGL_OK) {
        resize(f, &f->slot[k], n);
        f->slot[k].broken = false;
    }
}

static void do_clear(fixture *f) {
    const int k = below(f, SLOTS);
    CHECK_OK(llm_session_clear(f->s, k, &f->err), &f->err);
    resize(f, &f->slot[k], 0);
    f->slot[k].broken = false;
}

static void do_save(fixture *f) {
    const int k = below(f, SLOTS);
    saved *v = &f->saved[below(f, SAVED)];
    void *data;
    size_t size;
    const ggl_status st = llm_session_save(f->s, k, false, &data, &size, &f->err);
    CHECK_INT(st, f->slot[k].broken ? GGL_USAGE : GGL_OK);
    if (st != GGL_OK)
        return;
    ggl_free(v->data);
    *v = (saved){data, size, f->slot[k]};
}

static void do_restore(fixture *f) {
    const int k = below(f, SLOTS);
    const saved *v = &f->saved[below(f, SAVED)];
    if (!v->data)
        return;
    sequence *q = &f->slot[k], old = *q;
    resize(f, q, 0);
    const bool fits = !f->has_pages || pages_for(f, v->of.n) <= n_free(f);
    const ggl_status st = llm_session_restore(f->s, k, v->data, v->size, &f->err);
    CHECK_INT(st, fits ? GGL_OK : GGL_LIMIT);
    if (st != GGL_OK) {
        *q = old;
        f->n_full++;
        return;
    }
    *q = v->of;
    q->n_pages = 0;
    resize(f, q, v->of.n);
}

/* --- all of it -------------------------------------------------------------------------------- */

static void random_operations(const char *text, int64_t n_pool, ggl_type type) {
    static const struct {
        const char *name;
        void (*run)(fixture *f);
        int weight;
    } table[] = {{"append", do_append, 10}, {"share", do_share, 5}, {"cut", do_cut, 3},
                 {"clear", do_clear, 1},    {"save", do_save, 2},   {"restore", do_restore, 2},
                 {"cancel", do_cancel, 1}};
    enum { N_STEPS = 2000, N_ACTIONS = sizeof table / sizeof *table };
    fixture *f = calloc(1, sizeof *f);
    REQUIRE(f && setup(f, text, n_pool, type));
    const int64_t all = llm_session_n_free(f->s);
    for (int i = 0; i < N_STEPS && test_failures == 0; i++) {
        int k = 0, at = below(f, 24);
        while (at >= table[k].weight)
            at -= table[k++].weight;
        table[k].run(f);
        check_pages(f, table[k].name);
    }
    CHECK(f->n_compared > N_STEPS / 4);
    if (f->has_pages)
        CHECK_MSG(f->n_full > 20 && f->n_copied > 20, "%d refusals, %d copies", f->n_full,
                  f->n_copied);
    for (int k = 0; k < SLOTS; k++)
        CHECK_OK(llm_session_clear(f->s, k, &f->err), &f->err);
    CHECK_INT(llm_session_n_free(f->s), all);
    teardown(f);
    free(f);
}

TEST(all_rows) {
    random_operations(MODEL(ALL ALL), POOL * GGL_PAGE, GGL_F16);
}

TEST(windows_as_rings) {
    random_operations(MODEL(NARROW), POOL * GGL_PAGE, GGL_F32);
}

/* Rings of two pages for each of seven slots would take more than the pool. */
TEST(windows_in_a_small_pool) {
    random_operations(MODEL(NARROW NARROW), 10 * GGL_PAGE, GGL_F16);
}

TEST(rings_and_all_rows) {
    random_operations(MODEL(NARROW ALL), POOL * GGL_PAGE, GGL_F16);
}

TEST(states_and_all_rows) {
    random_operations(MODEL(STATES ALL), POOL * GGL_PAGE, GGL_BF16);
}

TEST(states_rings_and_all_rows) {
    random_operations(MODEL(STATES NARROW ALL), POOL * GGL_PAGE, GGL_F16);
}

TEST(states_alone) {
    random_operations(MODEL(STATES), POOL * GGL_PAGE, GGL_F16);
}

/* Slots 0, 1 and 2 have the same half page, and one page is free. Two of them can go on if the third
 * is gone: one copies the page, the other is then alone with it. */
TEST(the_last_writer_needs_no_copy) {
    fixture *f = calloc(1, sizeof *f);
    REQUIRE(f && setup(f, MODEL(ALL), 2 * GGL_PAGE, GGL_F16));
    mixed *m = calloc(1, sizeof *m);
    REQUIRE(m);
    m->n_new[0] = 30;
    run(f, m, false);
    for (int k = 1; k < 3; k++)
        if (CHECK_OK(llm_session_share(f->s, k, 0, 30, &f->err), &f->err))
            f->slot[k] = f->slot[0];
    const int three[] = {1, 1, 1}, two[] = {0, 1, 1};
    memcpy(m->n_new, three, sizeof three);
    run(f, m, false); /* two copies: refused */
    CHECK_INT(f->n_full, 1);
    CHECK_OK(llm_session_clear(f->s, 0, &f->err), &f->err);
    resize(f, &f->slot[0], 0);
    memcpy(m->n_new, two, sizeof two);
    run(f, m, false);
    CHECK_INT(f->n_full, 1);
    CHECK_INT(llm_session_n_free(f->s), 0);
    CHECK_INT(f->n_compared, 3);
    free(m);
    teardown(f);
    free(f);
}
