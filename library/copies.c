#include "copies.h"

#include <stdio.h>
#include <string.h>

#include "context.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_thread.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/text.h"

enum { MOST_NAME = 512 };

typedef struct copy {
    llm_context *c;
    char name[MOST_NAME];
    llm_placement *placement; /* of copy 0: NULL, as the session */
    llm_session *session;
    atomic_bool stops; /* what it computes is not wanted any more; of copy 0: c->stops */
} copy;

struct llm_copies {
    copy *of; /* [n] */
    int n;
    char *text;
    bool (*progress)(void *ctx, size_t done, size_t total); /* of who opens the context */
    void *progress_ctx;
};

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for copies of the model");
}

/* Puts the name of the device before a message. */
static ggl_status within(const copy *x, ggl_status st, ggl_error *err) {
    return ggl_within(err, st, "the copy on %s", x->name);
}

/* --- devices ---------------------------------------------------------------------------------- */

bool llm_copies_are_chosen(const llm_placement_choice *choice) {
    return choice->split && strcmp(choice->split, "copies") == 0;
}

static ggl_status check(const llm_placement_choice *p, bool has_eye, ggl_error *err) {
    const char *other =
        p->n_gpu_layers_given                                     ? p->names.n_gpu_layers
        : p->shares                                               ? p->names.shares
        : p->fit                                                  ? p->names.fit
        : p->trace || (p->devices && strstr(p->devices, "trace")) ? "a timeline (trace)"
        : p->shadow                                               ? p->names.shadow
        : llm_place_rules_name_backends(&p->rules) || p->rules.cpu_moe || p->rules.n_cpu_moe > 0
            ? "places of single weights"
        : has_eye ? "an eye or ear (mmproj)"
                  : NULL;
    return other ? ggl_fail(err, GGL_USAGE,
                            "%s copies and %s cannot be used together: each device has the whole "
                            "model",
                            p->names.split, other)
                 : GGL_OK;
}

static ggl_status add_name(llm_copies *l, size_t *cap, llm_context *c, const char *name, size_t n,
                           const llm_placement_names *names, ggl_error *err) {
    if (n == 0 || n >= MOST_NAME)
        return ggl_fail(err, GGL_USAGE, "%s: %s", names->device,
                        n == 0 ? "the name of a backend is empty; one comma divides two names"
                               : "the name of a backend is too long");
    for (int k = 0; k < l->n; k++)
        if (strlen(l->of[k].name) == n && ggl_case_compare_n(l->of[k].name, name, n) == 0)
            return ggl_fail(err, GGL_USAGE, "%s: '%s' is named twice", names->device,
                            l->of[k].name);
    if (!ggl_grow(&l->of, cap, (size_t)l->n + 1, sizeof *l->of))
        return no_memory(err);
    copy *x = &l->of[l->n++];
    memset(x, 0, sizeof *x);
    x->c = c;
    memcpy(x->name, name, n);
    return GGL_OK;
}

/* Lists the devices: those that are named, else the CPU of each rank of the job. */
static ggl_status list_devices(llm_copies *l, llm_context *c, const llm_placement_choice *p,
                               ggl_error *err) {
    const char *s = p->devices && *p->devices ? p->devices : NULL;
    const bool none = s && ggl_case_compare(s, "none") == 0;
    size_t cap = 0;
    char rank[32];
    ggl_status st = !s || none ? add_name(l, &cap, c, "cpu", 3, &p->names, err) : GGL_OK;
    for (int r = 1; st == GGL_OK && !s && r < ggl_ranks_count(); r++) {
        const int n = snprintf(rank, sizeof rank, "rank%d", r);
        st = add_name(l, &cap, c, rank, (size_t)n, &p->names, err);
    }
    while (st == GGL_OK && s && !none) {
        const size_t n = strcspn(s, ",");
        st = add_name(l, &cap, c, s, n, &p->names, err);
        s = s[n] ? s + n + 1 : NULL;
    }
    return st;
}

static ggl_status make_text(llm_copies *l, ggl_error *err) {
    static const char before[] = "copies on ";
    size_t size = sizeof before, used;
    for (int k = 0; k < l->n; k++)
        size += strlen(l->of[k].name) + 1;
    l->text = ggl_calloc(size, 1);
    if (!l->text)
        return no_memory(err);
    used = (size_t)snprintf(l->text, size, "%s", before);
    for (int k = 0; k < l->n; k++)
        used += (size_t)snprintf(l->text + used, size - used, "%s%s", k ? "," : "", l->of[k].name);
    return GGL_OK;
}

/* One copy is as good as none. */
static ggl_status note_single(const llm_copies *l, const llm_placement_choice *p, ggl_error *err) {
    char text[256];
    if (l->n > 1 || p->devices)
        return GGL_OK;
    snprintf(text, sizeof text,
             "%s copies has no effect: %s names no devices, and this program was not started by "
             "mpirun, so that the CPU has the only copy",
             p->names.split, p->names.device);
    if (p->strict)
        return ggl_fail(err, GGL_USAGE, "%s", text);
    if (p->note)
        p->note(p->ctx, text);
    return GGL_OK;
}

/* True if both give the same bits. */
static bool are_alike(const ggl_backend *a, const ggl_backend *b) {
    return strcmp(a->alike, b->alike) == 0 &&
           (*a->alike || strcmp(a->description, b->description) == 0);
}

/* Notes that results depend on which copy computes them. */
static void note_kinds(const llm_context *c, const llm_placement_choice *p) {
    const llm_copies *l = c->copies;
    int k = 1;
    while (k < l->n && are_alike(llm_placement_backend(llm_copies_placement(c, k), 0),
                                 llm_placement_backend(c->placement, 0)))
        k++;
    char text[320];
    if (k == l->n || !p->note)
        return;
    snprintf(text, sizeof text,
             "%.80s and %.80s may compute other last digits, so a result depends on which of them "
             "was free for its input",
             l->of[0].name, l->of[k].name);
    p->note(p->ctx, text);
}

ggl_status llm_copies_open(llm_context *c, const llm_placement_choice *choice,
                           const ggl_backend_params *params, bool has_eye, ggl_error *err) {
    llm_placement_choice one = *choice;
    one.split = NULL;
    ggl_status st = check(choice, has_eye, err);
    if (st != GGL_OK)
        return st;
    llm_copies *l = c->copies = ggl_calloc(1, sizeof *l);
    st = l ? list_devices(l, c, choice, err) : no_memory(err);
    if (st == GGL_OK)
        st = note_single(l, choice, err);
    if (st == GGL_OK)
        st = make_text(l, err);
    for (int k = 0; st == GGL_OK && k < l->n; k++) {
        one.devices = l->of[k].name;
        st = llm_placement_new(k == 0 ? &c->placement : &l->of[k].placement, &one, params, err);
    }
    if (st == GGL_OK)
        note_kinds(c, choice);
    return st;
}

void llm_copies_close(llm_context *c) {
    llm_copies *l = c->copies;
    if (!l)
        return;
    for (int k = 1; k < l->n; k++)
        (void)llm_placement_close(l->of[k].placement,
                                  NULL); /* without a trace, whose file could fail */
    ggl_free(l->of);
    ggl_free(l->text);
    ggl_free(l);
    c->copies = NULL;
}

int llm_copies_n(const llm_context *c) {
    return c->copies ? c->copies->n : 1;
}

const char *llm_copies_text(const llm_context *c) {
    return c->copies ? c->copies->text : NULL;
}

const char *llm_copies_name(const llm_context *c, int k) {
    return c->copies->of[k].name;
}

llm_placement *llm_copies_placement(const llm_context *c, int k) {
    return k == 0 ? c->placement : c->copies->of[k].placement;
}

llm_session *llm_copies_session(const llm_context *c, int k) {
    return k == 0 ? c->session : c->copies->of[k].session;
}

/* --- sessions --------------------------------------------------------------------------------- */

/* llm_session_params.cancelled of the copies from 1 on. */
static bool is_stopped(void *ctx) {
    const copy *x = ctx;
    return atomic_load(&x->stops) || llm_context_is_asked_to_end(x->c);
}

/* While weights are prepared, which only copy 0 reports. */
static bool goes_on(void *ctx, size_t done, size_t total) {
    (void)done;
    (void)total;
    return !is_stopped(ctx);
}

/* The same of copy 0, which ends, too, if another one has failed. */
static bool first_goes_on(void *ctx, size_t done, size_t total) {
    const llm_context *c = ctx;
    const llm_copies *l = c->copies;
    return !atomic_load(&c->stops) && (!l->progress || l->progress(l->progress_ctx, done, total));
}

void llm_copies_watch_loading(llm_context *c, llm_session_params *sp) {
    if (!c->copies)
        return;
    c->copies->progress = sp->progress;
    c->copies->progress_ctx = sp->progress_ctx;
    sp->progress = first_goes_on;
    sp->progress_ctx = c;
}

ggl_status llm_copies_make(llm_context *c, const llm_session_params *sp, llm_copy_fn *own,
                           void *ctx, llm_session **session, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int k = 1; k < llm_copies_n(c) && st == GGL_OK; k++) {
        copy *x = &c->copies->of[k];
        llm_session_params p = *sp;
        p.progress = goes_on;
        p.progress_ctx = p.cancelled_ctx = x;
        p.cancelled = is_stopped;
        p.repack_cache = NULL; /* the file has one writer */
        st = own ? own(ctx, k, &p, err) : GGL_OK;
        if (st == GGL_OK)
            st = llm_placement_session(x->placement, &session[k], c->model, &p, err);
        if (st != GGL_OK)
            st = within(x, st, err);
    }
    if (st != GGL_OK)
        llm_copies_free(c, session);
    return st;
}

void llm_copies_free(const llm_context *c, llm_session **session) {
    for (int k = 1; k < llm_copies_n(c); k++) {
        llm_session_free(session[k]);
        session[k] = NULL;
    }
}

void llm_copies_take(llm_context *c, llm_session **session) {
    for (int k = 1; k < llm_copies_n(c); k++) {
        llm_session_free(c->copies->of[k].session);
        c->copies->of[k].session = session ? session[k] : NULL;
    }
}

ggl_status llm_copies_list(const llm_context *c, llm_session ***session, ggl_error *err) {
    *session = ggl_calloc((size_t)llm_copies_n(c), sizeof **session);
    for (int k = 0; *session && k < llm_copies_n(c); k++)
        (*session)[k] = llm_copies_session(c, k);
    return *session ? GGL_OK : no_memory(err);
}

/* The largest context that fits into the memory of all copies, as planned. */
static int64_t context_of_all(const llm_context *c, llm_session *const *session) {
    int64_t n = llm_session_n_ctx(c->session);
    for (int k = 1; k < llm_copies_n(c); k++) {
        const int64_t fits = llm_fit_measure(llm_copies_placement(c, k), session[k], NULL).n_ctx;
        n = fits < n ? fits : n;
    }
    return n;
}

/* Makes all sessions again, with a context of n tokens. */
static ggl_status make_again(llm_context *c, llm_copy_fn *own, void *ctx, int64_t n,
                             llm_session **session, ggl_error *err) {
    llm_session_params *sp = &c->session_params;
    llm_copies_free(c, session);
    llm_session_free(c->session);
    c->session = NULL;
    sp->n_ctx = n;
    sp->n_pool = sp->n_pool > 0 ? n : 0;
    const ggl_status st = llm_placement_session(c->placement, &c->session, c->model, sp, err);
    return st == GGL_OK ? llm_copies_make(c, sp, own, ctx, session, err) : st;
}

ggl_status llm_copies_plan(llm_context *c, llm_copy_fn *own, void *ctx, bool n_ctx_asked,
                           ggl_error *err) {
    llm_session **session = ggl_calloc((size_t)llm_copies_n(c), sizeof *session);
    if (!session)
        return no_memory(err);
    llm_session_params sp = c->session_params;
    sp.n_ctx = llm_session_n_ctx(c->session);
    ggl_status st = llm_copies_make(c, &sp, own, ctx, session, err);
    const int64_t n = st == GGL_OK ? context_of_all(c, session) : 0;
    if (st == GGL_OK && !n_ctx_asked && n < llm_session_n_ctx(c->session))
        st = make_again(c, own, ctx, n, session, err);
    if (st == GGL_OK)
        llm_copies_take(c, session);
    ggl_free(session);
    return st;
}

/* --- all at the same time --------------------------------------------------------------------- */

typedef struct allocation {
    llm_context *c;
    int k;
    llm_session *session;
    os_thread thread;
    bool has_thread;
    ggl_status st;
    ggl_error err;
} allocation;

static void set_stops(llm_context *c, int k, bool stops) {
    atomic_store(k == 0 ? &c->stops : &c->copies->of[k].stops, stops);
}

static void stop_all(llm_context *c, bool stops) {
    for (int k = 0; k < llm_copies_n(c); k++)
        set_stops(c, k, stops);
}

/* Bytes of the stack of a thread that runs a model: some systems give threads much less. */
enum { STACK = 1 << 20 };

static void *allocate(void *arg) {
    allocation *a = arg;
    a->st = llm_session_alloc(a->session, &a->err);
    if (a->st != GGL_OK)
        stop_all(a->c, true);
    return NULL;
}

/* The status of all: that of the first one which failed, but not because another one did. */
static ggl_status first_failure(llm_context *c, const allocation *a, bool *is_own, ggl_error *err) {
    const allocation *first = NULL;
    for (int k = 0; k < llm_copies_n(c); k++)
        if (a[k].st != GGL_OK && (!first || first->st == GGL_CANCELLED))
            first = &a[k];
    if (!first)
        return GGL_OK;
    (void)ggl_pass(err, &first->err);
    *is_own = first->k == 0;
    if (first->k == 0 || first->st == GGL_CANCELLED)
        return first->st;
    char advice[128];
    llm_session_params sp = c->session_params;
    (void)llm_placement_advice(llm_copies_placement(c, first->k), c->model, &sp, first->st, advice,
                               sizeof advice);
    return ggl_fail(err, first->st, "the copy on %s: %s%s", llm_copies_name(c, first->k),
                    first->err.msg, advice);
}

ggl_status llm_copies_alloc(llm_context *c, llm_session *const *session, bool *is_own,
                            ggl_error *err) {
    const int n = llm_copies_n(c);
    *is_own = false;
    allocation *a = ggl_calloc((size_t)n, sizeof *a);
    if (!a)
        return no_memory(err);
    for (int k = 0; k < n; k++)
        a[k] = (allocation){.c = c, .k = k, .session = session[k]};
    for (int k = 1; k < n; k++)
        a[k].has_thread = ggl_os_thread_start(&a[k].thread, allocate, &a[k], STACK);
    allocate(&a[0]);
    for (int k = 1; k < n; k++)
        if (a[k].has_thread)
            ggl_os_thread_join(a[k].thread);
        else
            allocate(&a[k]);
    stop_all(c, false);
    const ggl_status st = first_failure(c, a, is_own, err);
    ggl_free(a);
    return st;
}

/* --- the queue -------------------------------------------------------------------------------- */

/* What a place has. */
typedef struct result {
    bool is_done;
    ggl_status st;
    ggl_error err;
} result;

typedef struct queue {
    llm_context *c;
    const llm_copies_work *w;
    os_mutex lock;
    os_cond done, room;   /* a result is there; a place is free */
    size_t next, n_taken; /* inputs */
    size_t end;           /* no input from here on is begun: one before it has failed */
    bool ends;
    result *place; /* [w->n_places] */
    size_t *runs;  /* [copies]: the input that it computes; SIZE_MAX: none */
} queue;

typedef struct worker {
    queue *q;
    int k;
    os_thread thread;
} worker;

/* Takes an input for a copy; SIZE_MAX: there is none left. */
static size_t take_input(queue *q) {
    while (!q->ends && q->next < q->end && q->next >= q->n_taken + q->w->n_places)
        ggl_os_cond_wait(&q->room, &q->lock);
    return q->ends || q->next >= q->end ? SIZE_MAX : q->next++;
}

/* An input has failed: those after it are not wanted. */
static void end_after(queue *q, size_t i) {
    if (i + 1 < q->end)
        q->end = i + 1;
    for (int k = 0; k < llm_copies_n(q->c); k++)
        if (q->runs[k] != SIZE_MAX && q->runs[k] > i)
            set_stops(q->c, k, true);
    ggl_os_cond_broadcast(&q->room);
}

static void *work(void *arg) {
    const worker *x = arg;
    queue *q = x->q;
    ggl_os_mutex_lock(&q->lock);
    for (size_t i; (i = take_input(q)) != SIZE_MAX;) {
        const size_t at = i % q->w->n_places;
        result r = {.is_done = true};
        q->runs[x->k] = i;
        ggl_os_mutex_unlock(&q->lock);
        r.st = q->w->run(q->w->ctx, x->k, i, at, &r.err);
        ggl_os_mutex_lock(&q->lock);
        q->runs[x->k] = SIZE_MAX;
        q->place[at] = r;
        if (r.st != GGL_OK)
            end_after(q, i);
        ggl_os_cond_signal(&q->done);
    }
    ggl_os_mutex_unlock(&q->lock);
    return NULL;
}

static ggl_status tell_progress(const queue *q, ggl_error *err) {
    return !q->w->progress || q->w->progress(q->w->ctx) ? GGL_OK
                                                        : ggl_fail(err, GGL_CANCELLED, "cancelled");
}

/* Waits a moment for a result, or until there is one if nobody wants to know the progress. */
static ggl_status wait_for_result(queue *q, ggl_error *err) {
    enum { MOMENT = 50000000 }; /* nanoseconds */
    if (!q->w->progress) {
        ggl_os_cond_wait(&q->done, &q->lock);
        return GGL_OK;
    }
    (void)ggl_os_cond_wait_until(&q->done, &q->lock, ggl_os_clock() + MOMENT);
    ggl_os_mutex_unlock(&q->lock);
    const ggl_status st = tell_progress(q, err);
    ggl_os_mutex_lock(&q->lock);
    return st;
}

/* Takes the results in their order. */
static ggl_status take_results(queue *q, ggl_error *err) {
    ggl_status st = GGL_OK;
    ggl_os_mutex_lock(&q->lock);
    while (st == GGL_OK && q->n_taken < q->w->n) {
        const size_t i = q->n_taken, at = i % q->w->n_places;
        const result r = q->place[at];
        if (!r.is_done) {
            st = wait_for_result(q, err);
            continue;
        }
        st = r.st == GGL_OK ? GGL_OK : ggl_pass(err, &r.err);
        ggl_os_mutex_unlock(&q->lock);
        if (st == GGL_OK)
            st = q->w->take(q->w->ctx, i, at, err);
        if (st == GGL_OK)
            st = tell_progress(q, err);
        ggl_os_mutex_lock(&q->lock);
        q->place[at].is_done = false;
        q->n_taken++;
        ggl_os_cond_broadcast(&q->room);
    }
    q->ends = true;
    ggl_os_cond_broadcast(&q->room);
    ggl_os_mutex_unlock(&q->lock);
    return st;
}

/* Starts the threads of the copies. Returns how many there are; fewer than copies if no more can be started. */
static int start(queue *q, worker *x) {
    int n = 0;
    for (; n < llm_copies_n(q->c); n++) {
        x[n] = (worker){.q = q, .k = n};
        if (!ggl_os_thread_start(&x[n].thread, work, &x[n], STACK))
            break;
    }
    return n;
}

static ggl_status run_queue(queue *q, ggl_error *err) {
    const int n = llm_copies_n(q->c);
    worker *x = ggl_calloc((size_t)n, sizeof *x);
    q->place = ggl_calloc(q->w->n_places, sizeof *q->place);
    q->runs = ggl_calloc((size_t)n, sizeof *q->runs);
    ggl_status st = x && q->place && q->runs ? GGL_OK : no_memory(err);
    for (int k = 0; st == GGL_OK && k < n; k++)
        q->runs[k] = SIZE_MAX;
    const int n_started = st == GGL_OK ? start(q, x) : 0;
    if (st == GGL_OK)
        st = n_started > 0 ? take_results(q, err)
                           : ggl_fail(err, GGL_NOMEM, "no thread can be started");
    if (st != GGL_OK)
        stop_all(q->c, true);
    for (int k = 0; k < n_started; k++)
        ggl_os_thread_join(x[k].thread);
    stop_all(q->c, false);
    ggl_free(x);
    ggl_free(q->place);
    ggl_free(q->runs);
    return st;
}

/* With one copy, all is done here. */
static ggl_status run_alone(const llm_copies_work *w, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < w->n && st == GGL_OK; i++) {
        st = w->run(w->ctx, 0, i, i % w->n_places, err);
        if (st == GGL_OK)
            st = w->take(w->ctx, i, i % w->n_places, err);
    }
    return st;
}

ggl_status llm_copies_run(llm_context *c, const llm_copies_work *w, ggl_error *err) {
    queue q = {.c = c, .w = w, .end = w->n};
    if (llm_copies_n(c) == 1)
        return run_alone(w, err);
    ggl_os_mutex_init(&q.lock);
    ggl_os_cond_init(&q.done);
    ggl_os_cond_init(&q.room);
    const ggl_status st = run_queue(&q, err);
    ggl_os_cond_destroy(&q.room);
    ggl_os_cond_destroy(&q.done);
    ggl_os_mutex_destroy(&q.lock);
    return st;
}
