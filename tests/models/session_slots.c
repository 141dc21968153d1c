/* Slots of models that keep a window of rows, states, or both: whatever is cut, copied, saved,
 * restored, cancelled or cleared, in any order, a call that succeeds leaves a slot that goes on as a
 * fresh session with the same tokens does, bit for bit. */
#include "llm/internal/session.h"

#include <math.h>

#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "ggl/gguf.h"
#include "test.h"
#include "tiny_model.h"

enum { VOCAB = TINY_VOCAB, CTX = 320, UBATCH = 16, SLOTS = 3 };

typedef struct sequence { /* what a slot has to hold */
    int32_t token[CTX];
    int n;
} sequence;

typedef struct saved {
    void *data;
    size_t size;
    sequence of;
    int slot; /* of a snapshot of the states; -1: everything is saved */
} saved;

typedef struct fixture {
    ggl_backend *cpu, *reference;
    llm_model *model;
    llm_session *s, *fresh;
    sequence slot[SLOTS];
    bool broken[SLOTS];
    saved saved;
    uint64_t seed;
    int64_t polls_left; /* until a run is cancelled; negative: never */
    bool has_states, has_window;
    ggl_error err;
} fixture;

static bool cancelled(void *ctx) {
    fixture *f = ctx;
    return f->polls_left >= 0 && f->polls_left-- == 0;
}

static bool session_open(fixture *f, llm_session **s, int64_t n_slots) {
    llm_session_params p = llm_session_default();
    p.n_ctx = CTX;
    p.n_ubatch = UBATCH;
    p.n_slots = n_slots;
    p.backend = &f->cpu;
    p.n_backends = 1;
    p.fold = f->reference;
    p.cancelled = cancelled;
    p.cancelled_ctx = f;
    return CHECK_OK(llm_session_new(s, f->model, &p, &f->err), &f->err) &&
           CHECK_OK(llm_session_alloc(*s, &f->err), &f->err);
}

static bool setup(fixture *f, const char *text) {
    *f = (fixture){.polls_left = -1, .saved = {.slot = -1}};
    const char *path = test_path("tiny.gguf");
    f->has_states = strstr(text, "recent") != NULL;
    f->has_window = strstr(text, "window") != NULL;
    return tiny_model_write(path, text, 1) &&
           CHECK_OK(ggl_backend_open(
                        &f->cpu, "cpu",
                        &(ggl_backend_params){.size = sizeof(ggl_backend_params), .n_threads = 1},
                        &f->err),
                    &f->err) &&
           CHECK_OK(ggl_backend_open(&f->reference, "reference", NULL, &f->err), &f->err) &&
           CHECK_OK(llm_model_open(&f->model, path, NULL, &f->err), &f->err) &&
           session_open(f, &f->s, SLOTS) && session_open(f, &f->fresh, 1);
}

static void teardown(fixture *f) {
    ggl_free(f->saved.data);
    llm_session_free(f->s);
    llm_session_free(f->fresh);
    llm_model_free(f->model);
    ggl_backend_close(f->cpu);
    ggl_backend_close(f->reference);
}

static int below(fixture *f, int n) {
    return (int)(test_random(&f->seed) % (uint64_t)n);
}

/* Appends n random tokens to the slot and to its sequence. */
static ggl_status append(fixture *f, int slot, int n) {
    int32_t slots[CTX];
    sequence *q = &f->slot[slot];
    for (int i = 0; i < n; i++) {
        q->token[q->n + i] = below(f, VOCAB);
        slots[i] = slot;
    }
    ggl_status st = llm_session_eval(
        f->s, &(llm_batch){.n = n, .token = q->token + q->n, .slot = slots}, &f->err);
    q->n += st == GGL_OK ? n : 0;
    return st;
}

/* One more token gives the logits that a fresh session gives for the whole sequence. */
static bool check_slot(fixture *f, int slot, const char *after) {
    sequence *q = &f->slot[slot];
    if (!CHECK_MSG(llm_session_n_past(f->s, slot) == q->n,
                   "after %s: slot %d has %d tokens, not %d", after, slot,
                   (int)llm_session_n_past(f->s, slot), q->n))
        return false;
    if (q->n == CTX)
        return true;
    float want[VOCAB];
    if (!CHECK_OK(append(f, slot, 1), &f->err) ||
        !CHECK_OK(llm_session_clear(f->fresh, 0, &f->err), &f->err) ||
        !CHECK_OK(llm_session_eval(f->fresh, &(llm_batch){.n = q->n, .token = q->token}, &f->err),
                  &f->err))
        return false;
    memcpy(want, llm_session_logits(f->fresh), sizeof want);
    return CHECK_MSG(memcmp(want, llm_session_logits(f->s), sizeof want) == 0,
                     "after %s: slot %d with %d tokens gives %g, a fresh session %g", after, slot,
                     q->n, (double)llm_session_logits(f->s)[0], (double)want[0]);
}

/* --- random operations ------------------------------------------------------------------------ */

typedef ggl_status (*action)(fixture *f, int slot);

static ggl_status do_append(fixture *f, int slot) {
    int room = CTX - 1 - f->slot[slot].n, n = 1 + below(f, below(f, 2) ? 3 : 90);
    return room < 1 ? GGL_OK : append(f, slot, n < room ? n : room);
}

static ggl_status do_cut(fixture *f, int slot) {
    int back = below(f, below(f, 2) ? 20 : f->slot[slot].n + 1), n = f->slot[slot].n - back;
    n = n < 0 ? 0 : n;
    ggl_status st = llm_session_cut(f->s, slot, n, &f->err);
    if (!f->has_states && !f->has_window && !f->broken[slot])
        CHECK_INT(st, GGL_OK);
    if (st == GGL_OK)
        f->slot[slot].n = n;
    return st;
}

static ggl_status do_copy(fixture *f, int slot) {
    int from = below(f, SLOTS);
    ggl_status st = llm_session_copy(f->s, slot, from, &f->err);
    if (st == GGL_OK)
        f->slot[slot] = f->slot[from];
    return st;
}

static ggl_status do_share(fixture *f, int slot) {
    int from = below(f, SLOTS), n = below(f, 2) ? f->slot[from].n : below(f, f->slot[from].n + 1);
    ggl_status st = llm_session_share(f->s, slot, from, n, &f->err);
    if (!f->has_states && !f->has_window && !f->broken[from])
        CHECK_INT(st, GGL_OK);
    if (st == GGL_OK) {
        f->slot[slot] = f->slot[from];
        f->slot[slot].n = n;
    }
    return st;
}

static ggl_status save(fixture *f, int slot, bool states_only) {
    void *data;
    size_t size;
    ggl_status st = llm_session_save(f->s, slot, states_only, &data, &size, &f->err);
    if (st != GGL_OK)
        return st;
    ggl_free(f->saved.data);
    f->saved = (saved){data, size, f->slot[slot], states_only ? slot : -1};
    return GGL_OK;
}

static ggl_status do_save(fixture *f, int slot) {
    return save(f, slot, false);
}

static ggl_status do_snapshot(fixture *f, int slot) {
    return save(f, slot, true);
}

static ggl_status do_restore(fixture *f, int slot) {
    const saved *v = &f->saved;
    /* a snapshot belongs to the slot that still has its tokens */
    if (!v->data || (v->slot >= 0 && (v->slot != slot || f->slot[slot].n < v->of.n ||
                                      memcmp(f->slot[slot].token, v->of.token,
                                             (size_t)v->of.n * sizeof *v->of.token) != 0)))
        return GGL_UNSUPPORTED;
    ggl_status st = llm_session_restore(f->s, slot, v->data, v->size, &f->err);
    if (v->slot < 0)
        CHECK_INT(st, GGL_OK);
    if (st == GGL_OK)
        f->slot[slot] = v->of;
    return st;
}

static ggl_status do_clear(fixture *f, int slot) {
    ggl_status st = llm_session_clear(f->s, slot, &f->err);
    CHECK_INT(st, GGL_OK);
    f->slot[slot].n = 0;
    return st;
}

/* A run that is stopped on the way: the tokens of whole ubatches stay. */
static ggl_status do_cancel(fixture *f, int slot) {
    int before = f->slot[slot].n, room = CTX - before - 1;
    if (room < 60 || f->broken[slot])
        return GGL_UNSUPPORTED;
    f->polls_left = below(f, 60);
    ggl_status st = append(f, slot, 60);
    bool was_stopped = f->polls_left < 0;
    f->polls_left = -1;
    CHECK_INT(st, was_stopped ? GGL_CANCELLED : GGL_OK);
    int now = (int)llm_session_n_past(f->s, slot);
    CHECK(now >= before && now <= before + 60 && (st == GGL_OK || (now - before) % UBATCH == 0));
    f->slot[slot].n = now;
    if (st == GGL_OK)
        return st;
    f->broken[slot] = f->has_states;
    ggl_status again = llm_session_eval(
        f->s, &(llm_batch){.n = 1, .token = (int32_t[]){1}, .slot = (int32_t[]){slot}}, &f->err);
    CHECK_INT(again, f->broken[slot] ? GGL_USAGE : GGL_OK);
    if (again == GGL_OK)
        f->slot[slot].token[f->slot[slot].n++] = 1;
    else
        CHECK_HAS(f->err.msg, "is incomplete");
    return again;
}

static void random_operations(const char *text) {
    static const struct {
        const char *name;
        action run;
        bool mends; /* success makes a broken slot whole */
    } table[] = {{"append", do_append, false},  {"append", do_append, false},
                 {"cut", do_cut, false},        {"cut", do_cut, false},
                 {"copy", do_copy, true},       {"share", do_share, true},
                 {"save", do_save, false},      {"snapshot", do_snapshot, false},
                 {"restore", do_restore, true}, {"restore", do_restore, true},
                 {"clear", do_clear, true},     {"cancel", do_cancel, false}};
    enum { N_ACTIONS = sizeof table / sizeof *table, N_STEPS = 600 };
    fixture f;
    int done[N_ACTIONS] = {0}, refused = 0;
    REQUIRE(setup(&f, text));
    f.seed = 11;
    for (int i = 0; i < N_STEPS && test_failures == 0; i++) {
        int k = below(&f, N_ACTIONS), slot = below(&f, SLOTS);
        bool was_broken = f.broken[slot];
        ggl_status st = table[k].run(&f, slot);
        done[k] += st == GGL_OK;
        refused += st == GGL_UNSUPPORTED;
        if (st == GGL_OK && (table[k].mends || f.slot[slot].n == 0))
            f.broken[slot] = false;
        CHECK_MSG(st != GGL_OK || !was_broken || !f.broken[slot], "%s of a broken slot succeeded",
                  table[k].name);
        if (!f.broken[slot])
            check_slot(&f, slot, table[k].name);
    }
    for (int k = 0; k < N_ACTIONS; k++)
        CHECK_MSG(done[k] > (table[k].run == do_cut && f.has_states ? 0 : 5),
                  "%s was done %d times", table[k].name, done[k]);
    CHECK(refused > 0);
    teardown(&f);
}

TEST(random_operations_with_all_rows) {
    random_operations(MODEL(ALL));
}

TEST(random_operations_with_a_window) {
    random_operations(MODEL(WINDOW));
}

TEST(random_operations_with_states) {
    random_operations(MODEL(STATES));
}

TEST(random_operations_with_both) {
    random_operations(MODEL(STATES WINDOW));
}

/* --- sharing ---------------------------------------------------------------------------------- */

TEST(sharing_a_beginning) {
    fixture f;
    REQUIRE(setup(&f, MODEL(ALL)));
    REQUIRE_OK(append(&f, 0, 150), &f.err);
    CHECK_INT(llm_session_share(f.s, 1, 0, 151, &f.err), GGL_USAGE);
    CHECK_INT(llm_session_share(f.s, 1, 0, -1, &f.err), GGL_USAGE);
    CHECK_INT(llm_session_share(f.s, SLOTS, 0, 1, &f.err), GGL_USAGE);
    CHECK_INT(llm_session_share(f.s, 1, -1, 1, &f.err), GGL_USAGE);
    CHECK_INT(llm_session_n_past(f.s, 1), 0);
    REQUIRE_OK(llm_session_share(f.s, 1, 0, 100, &f.err), &f.err);
    REQUIRE_OK(llm_session_share(f.s, 2, 0, 128, &f.err), &f.err);
    f.slot[1] = f.slot[2] = f.slot[0];
    f.slot[1].n = 100;
    f.slot[2].n = 128;
    for (int k = 0; k < SLOTS; k++) /* each goes on by itself */
        check_slot(&f, k, "sharing");
    REQUIRE_OK(llm_session_share(f.s, 0, 0, 70, &f.err), &f.err); /* a cut */
    REQUIRE_OK(llm_session_share(f.s, 2, 0, 0, &f.err), &f.err);  /* a clear */
    f.slot[0].n = 70;
    f.slot[2].n = 0;
    for (int k = 0; k < SLOTS; k++)
        check_slot(&f, k, "a cut and a clear");
    teardown(&f);
}

/* Nothing is left of the token that warms a session up. */
TEST(warmed_up) {
    fixture f;
    REQUIRE(setup(&f, MODEL(STATES WINDOW)));
    REQUIRE_OK(llm_session_warm_up(f.s, &f.err), &f.err);
    CHECK_INT(llm_session_n_past(f.s, 0), 0);
    check_slot(&f, 0, "warming up");
    REQUIRE_OK(append(&f, 0, 70), &f.err);
    check_slot(&f, 0, "a text after warming up");
    teardown(&f);
}

TEST(states_are_shared_whole) {
    fixture f;
    REQUIRE(setup(&f, MODEL(STATES ALL)));
    REQUIRE_OK(append(&f, 0, 70), &f.err);
    CHECK_INT(llm_session_share(f.s, 1, 0, 64, &f.err), GGL_UNSUPPORTED);
    CHECK_HAS(f.err.msg, "this model has states");
    CHECK_INT(llm_session_n_past(f.s, 1), 0);
    REQUIRE_OK(llm_session_share(f.s, 1, 0, 70, &f.err), &f.err);
    f.slot[1] = f.slot[0];
    check_slot(&f, 1, "sharing");
    check_slot(&f, 0, "sharing");
    teardown(&f);
}

TEST(tokens_that_pages_have_room_for) {
    fixture f;
    REQUIRE(setup(&f, MODEL(ALL)));
    const int64_t all = llm_session_n_free(f.s);
    CHECK_INT(all, SLOTS * CTX);
    CHECK_INT(llm_session_n_needed(f.s, 0, 0), 0);
    CHECK_INT(llm_session_n_needed(f.s, 0, 1), 64);
    CHECK_INT(llm_session_n_needed(f.s, 0, 65), 128);
    REQUIRE_OK(append(&f, 0, 60), &f.err);
    CHECK_INT(llm_session_n_free(f.s), all - 64);
    CHECK_INT(llm_session_n_needed(f.s, 0, 4), 0);
    CHECK_INT(llm_session_n_needed(f.s, 0, 5), 64);
    REQUIRE_OK(append(&f, 0, 5), &f.err);
    CHECK_INT(llm_session_n_free(f.s), all - 128);
    REQUIRE_OK(llm_session_cut(f.s, 0, 64, &f.err), &f.err);
    CHECK_INT(llm_session_n_free(f.s), all - 64);
    REQUIRE_OK(llm_session_clear(f.s, 0, &f.err), &f.err);
    CHECK_INT(llm_session_n_free(f.s), all);
    teardown(&f);
}

/* --- the limits of a ring --------------------------------------------------------------------- */

TEST(cutting_twice_counts_from_the_highest_position) {
    fixture f;
    REQUIRE(setup(&f, MODEL(WINDOW)));
    REQUIRE_OK(append(&f, 0, 256), &f.err);
    REQUIRE_OK(llm_session_cut(f.s, 0, 256 - UBATCH / 2, &f.err), &f.err);
    REQUIRE_OK(llm_session_cut(f.s, 0, 256 - UBATCH, &f.err), &f.err); /* as far as it goes */
    CHECK_INT(llm_session_cut(f.s, 0, 256 - UBATCH - 1, &f.err), GGL_UNSUPPORTED);
    CHECK_HAS(f.err.msg,
              "slot 0 has been written up to token 256, so it can be cut back to 240, not to 239");
    f.slot[0].n = 256 - UBATCH;
    check_slot(&f, 0, "two cuts");
    /* the limit is kept by copies and saved slots */
    void *data;
    size_t size;
    REQUIRE_OK(llm_session_copy(f.s, 1, 0, &f.err), &f.err);
    CHECK_INT(llm_session_cut(f.s, 1, 239, &f.err), GGL_UNSUPPORTED);
    REQUIRE_OK(llm_session_save(f.s, 0, false, &data, &size, &f.err), &f.err);
    REQUIRE_OK(llm_session_restore(f.s, 2, data, size, &f.err), &f.err);
    CHECK_INT(llm_session_cut(f.s, 2, 239, &f.err), GGL_UNSUPPORTED);
    f.slot[2] = f.slot[0];
    check_slot(&f, 2, "save and restore");
    ggl_free(data);
    teardown(&f);
}

TEST(a_header_that_lies) {
    fixture f;
    void *data;
    size_t size;
    REQUIRE(setup(&f, MODEL(WINDOW)));
    REQUIRE_OK(append(&f, 0, 100), &f.err);
    REQUIRE_OK(llm_session_save(f.s, 0, false, &data, &size, &f.err), &f.err);
    int64_t n[2]; /* n_past and n_high follow magic, version and states_only */
    memcpy(n, (char *)data + 16, sizeof n);
    CHECK_INT(n[0], 100);
    CHECK_INT(n[1], 100);
    const int64_t wrong[][2] = {{-1, 100}, {100, 99}, {100, CTX + 1}, {INT64_MAX, INT64_MAX}};
    for (int i = 0; i < 4; i++) {
        memcpy((char *)data + 16, wrong[i], sizeof n);
        CHECK_INT(llm_session_restore(f.s, 1, data, size, &f.err), GGL_LIMIT);
        CHECK_INT(llm_session_n_past(f.s, 1), 0);
    }
    const int64_t others[][2] = {{101, 101}, {99, 100}, {100, 101}}; /* in the same pages */
    for (int i = 0; i < 3; i++) {
        memcpy((char *)data + 16, others[i], sizeof n);
        CHECK_INT(llm_session_restore(f.s, 1, data, size, &f.err), GGL_FORMAT);
        CHECK_HAS(f.err.msg, "damaged");
        CHECK_INT(llm_session_n_past(f.s, 1), 0);
    }
    ggl_free(data);
    teardown(&f);
}

/* --- devices that fail ------------------------------------------------------------------------ */

static ggl_backend_vtable failing;
static int uploads_left, waits_left; /* until one fails; negative: none does */

static ggl_status (*real_upload)(ggl_backend *, ggl_buffer *, size_t, const void *, size_t,
                                 ggl_error *);

static ggl_status upload_or_fail(ggl_backend *b, ggl_buffer *dst, size_t offset, const void *src,
                                 size_t size, ggl_error *err) {
    if (uploads_left >= 0 && uploads_left-- == 0)
        return ggl_fail(err, GGL_DEVICE, "the device was lost");
    return real_upload(b, dst, offset, src, size, err);
}

static ggl_status wait_or_fail(ggl_backend *b, ggl_error *err) {
    (void)b;
    if (waits_left >= 0 && waits_left-- == 0)
        return ggl_fail(err, GGL_DEVICE, "the device was lost");
    return GGL_OK;
}

static void let_fail(fixture *f) {
    uploads_left = waits_left = -1;
    failing = *f->cpu->v;
    real_upload = failing.upload;
    failing.upload = upload_or_fail;
    failing.wait = wait_or_fail;
    f->cpu->v = &failing;
}

/* Half of the rows are another sequence's then: a snapshot of the states cannot make them whole. */
TEST(a_restore_that_fails_half_way) {
    fixture f;
    void *all, *states;
    size_t n_all, n_states;
    REQUIRE(setup(&f, MODEL(STATES ALL)));
    let_fail(&f);
    REQUIRE_OK(append(&f, 0, 20), &f.err);
    REQUIRE_OK(llm_session_save(f.s, 0, true, &states, &n_states, &f.err), &f.err);
    REQUIRE_OK(append(&f, 1, 30), &f.err);
    REQUIRE_OK(llm_session_save(f.s, 1, false, &all, &n_all, &f.err), &f.err);
    uploads_left = 1;
    CHECK_INT(llm_session_restore(f.s, 0, all, n_all, &f.err), GGL_DEVICE);
    uploads_left = -1;
    CHECK_INT(llm_session_n_past(f.s, 0), 0);
    CHECK_INT(llm_session_restore(f.s, 0, states, n_states, &f.err), GGL_USAGE);
    CHECK_INT(append(&f, 0, 1), GGL_USAGE);
    REQUIRE_OK(llm_session_restore(f.s, 0, all, n_all, &f.err), &f.err);
    f.slot[0] = f.slot[1];
    check_slot(&f, 0, "a restore after one that failed");
    ggl_free(all);
    ggl_free(states);
    teardown(&f);
}

/* A device that works by itself has done nothing for sure until it was waited for. */
TEST(a_device_fails_after_the_run_returned) {
    fixture f;
    REQUIRE(setup(&f, MODEL(ALL)));
    let_fail(&f);
    f.cpu->async = true;
    REQUIRE_OK(append(&f, 0, 4), &f.err);
    const int32_t token[2 * UBATCH] = {0};
    const bool none[2 * UBATCH] = {false};
    waits_left = 0;
    CHECK_INT(
        llm_session_eval(f.s, &(llm_batch){.n = 2 * UBATCH, .token = token, .want = none}, &f.err),
        GGL_DEVICE);
    CHECK_INT(llm_session_n_past(f.s, 0), 4);
    waits_left = -1;
    check_slot(&f, 0, "a failure that was seen late");
    teardown(&f);
}

TEST(backends_forget_whom_to_ask) {
    fixture f;
    REQUIRE(setup(&f, MODEL(ALL)));
    REQUIRE_OK(append(&f, 0, 40), &f.err);
    CHECK(!f.cpu->cancelled && !f.cpu->cancelled_ctx);
    teardown(&f);
}
