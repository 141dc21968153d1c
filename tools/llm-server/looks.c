/* Looks at the pictures of requests, or listens to their sounds: each request is a turn of the eye's thread, and before that, if it has pictures by their address, a turn of
 * those that fetch. */
#include "answer_impl.h"
#include "common/public_file.h"
#include "models.h"
#include "server_impl.h"
#include "turn_queue.h"

enum { FETCHERS = 4, MOST_FETCHED = 20 << 20 }; /* bytes of a picture */

struct looks {
    turn_queue *eye;     /* one thread: the model looks at one picture at a time */
    turn_queue *fetcher; /* NULL: nothing is fetched */
    os_mutex lock;       /* of the eye and the ear; who has it uses them: */
    turn *at;            /* a turn, which runs; NULL: none */
    turn_queue *of;      /* of this queue */
};

/* What the server keeps of a request's pictures: ask.looked. */
typedef struct looked {
    llm_context *ctx;
    size_t n;
    char mark[][LLM_IMAGE_MARK]; /* what holds their rows */
} looked;

/* A request with pictures. */
typedef struct look {
    turn turn; /* the first member */
    server *s;
    ask *a;
    http_reply *r;
    int64_t deadline; /* 0: none */
    looked_fn *done;
    void *ctx;
    bool is_late; /* the deadline has passed */
    api_error e;  /* status 0: it went well */
    ggl_error why;
} look;

static look *look_of(turn *t) {
    return (look *)t;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* On a worker: gives the request back. */
static void give_back(void *ctx) {
    look *k = ctx;
    k->done(k->ctx, k->e.status ? &k->e : NULL);
    ggl_free(k);
}

static void end_look(look *k) {
    http_reply_later(k->r, give_back, k);
}

static void fail(look *k, ggl_status st) {
    static const api_error ends = {
        .status = 503, .type = "overloaded", .message = "the server is ending"};
    static const api_error late = {.status = 504,
                                   .type = "timeout",
                                   .message = "the time limit has passed before the answer began"};
    /* who is gone reads nothing of what is said here */
    k->e = k->is_late ? late : st == GGL_CANCELLED ? ends : api_error_of(st, &k->why, NULL);
    end_look(k);
}

static bool is_wanted(turn *t) {
    look *k = look_of(t);
    k->is_late |= k->deadline > 0 && answers_now(server_answers(k->s)) >= k->deadline;
    return !k->is_late && !http_reply_is_gone(k->r);
}

static void leave(turn *t) {
    fail(look_of(t), GGL_CANCELLED);
}

/* Puts it into a queue, where `run` is called. False: it was refused, as *e says. */
static bool queue(look *k, turn_queue *q, void (*run)(turn *t), api_error *e) {
    k->turn.run = run;
    const ggl_status st = turn_queue_add(q, &k->turn, &k->why);
    if (st == GGL_LIMIT) {
        server_count(k->s, COUNT_REJECTED);
        *e = (api_error){.status = 429,
                         .type = "rate_limit",
                         .message = "too many requests wait already; try again later"};
    } else if (st != GGL_OK) {
        *e = api_error_of(st, &k->why, NULL);
    }
    return st == GGL_OK;
}

/* --- looking ---------------------------------------------------------------------------------- */

static void unsee(ask *a) {
    looked *l = a->looked;
    for (size_t i = 0; i < l->n; i++)
        llm_unsee(l->ctx, l->mark[i]);
    ggl_free(l);
    a->looked = NULL;
    a->unsee = NULL;
    a->append_seen = NULL;
}

/* Counts n rows of a picture or sound, which the request holds from now on. */
static ggl_status hold_rows(look *k, size_t n, bool is_sound) {
    ask *a = k->a;
    const server_facts *f = server_get_facts(k->s);
    a->n_rows += n;
    a->n_sound_rows += is_sound ? n : 0;
    if ((int64_t)a->n_rows > f->n_ctx)
        return ggl_fail(&k->why, GGL_LIMIT,
                        "the pictures or sounds have more than %zu rows, each as long as a token, "
                        "but the context has "
                        "room for %lld tokens: send fewer or smaller ones",
                        a->n_rows, (long long)f->n_ctx);
    if (memory_set(&a->held, a->held.n + n * (size_t)f->n_row * sizeof(float)))
        return GGL_OK;
    return ggl_fail(
        &k->why, GGL_NOMEM,
        "no memory for the pictures or sounds: requests hold all that they may have together "
        "(--request-memory); try again later");
}

/* Looks at picture i, or listens to that sound. */
static ggl_status see(look *k, size_t i) {
    ask_image *image = &k->a->image[i];
    looked *l = k->a->looked;
    llm_context *ctx = l->ctx;
    const llm_image file = {.data = image->bytes, .n = image->n, .name = "the file"};
    const llm_audio audio = {.data = image->bytes, .n = image->n, .name = "the file"};
    ggl_status st = image->is_sound ? llm_listen(ctx, &audio, l->mark[l->n], &k->why)
                                    : llm_see(ctx, &file, l->mark[l->n], &k->why);
    if (st != GGL_OK)
        return st;
    l->n++;
    size_t n;
    st = llm_seen_rows(ctx, l->mark[l->n - 1], &n, &k->why);
    return st == GGL_OK ? hold_rows(k, n, image->is_sound) : st;
}

static ggl_status append_seen(const ask *a, size_t i, llm_tokens *ids, ggl_error *err) {
    const looked *l = a->looked;
    return llm_seen_tokens(l->ctx, l->mark[i], ids, err);
}

static void run(turn *t) {
    look *k = look_of(t);
    looks *l = k->s->looks;
    ask *a = k->a;
    ggl_status st = GGL_OK;
    looks_enter(l, l->eye, t);
    looked *kept = ggl_calloc(1, sizeof *kept + a->n_images * sizeof *kept->mark);
    if (kept) {
        kept->ctx = k->s->ctx;
        a->looked = kept;
        a->unsee = unsee;
        a->append_seen = append_seen;
    } else {
        st = ggl_fail(&k->why, GGL_NOMEM, "out of memory for pictures or sounds");
    }
    for (size_t i = 0; i < a->n_images && st == GGL_OK; i++) {
        st = turn_queue_stops(l->eye, t) ? GGL_CANCELLED : see(k, i);
        if (st != GGL_OK && st != GGL_CANCELLED)
            (void)ggl_within(&k->why, st, "%s %zu of %zu",
                             a->image[i].is_sound ? "sound" : "picture", i + 1, a->n_images);
    }
    ask_drop_files(a);
    looks_leave(l);
    if (st == GGL_OK)
        end_look(k);
    else
        fail(k, st);
}

void looks_enter(looks *l, turn_queue *of, turn *t) {
    ggl_os_mutex_lock(&l->lock);
    l->of = of;
    l->at = t;
}

void looks_leave(looks *l) {
    l->at = NULL;
    ggl_os_mutex_unlock(&l->lock);
}

bool looks_stops(const looks *l) {
    return l->at && turn_queue_stops(l->of, l->at);
}

/* --- fetching --------------------------------------------------------------------------------- */

static bool stops_fetching(void *ctx) {
    look *k = ctx;
    return turn_queue_stops(k->s->looks->fetcher, &k->turn);
}

/* Fetches a picture, for whose largest size there must be room. */
static ggl_status fetch_one(look *k, ask_image *image) {
    memory_hold *held = &k->a->held;
    const size_t n_before = held->n;
    if (!memory_set(held, n_before + MOST_FETCHED))
        return ggl_fail(&k->why, GGL_NOMEM,
                        "no memory for the picture (--request-memory); try again later");
    ggl_status st = tool_read_public(&image->bytes, &image->n, image->url, MOST_FETCHED,
                                     stops_fetching, k, &k->why);
    if (st == GGL_NOT_FOUND ||
        st == GGL_IO) /* of the picture, and not of an endpoint or a file here */
        st = GGL_FORMAT;
    memory_force(held, n_before + image->n);
    return st;
}

static void run_fetch(turn *t) {
    look *k = look_of(t);
    ask *a = k->a;
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < a->n_images && st == GGL_OK; i++) {
        if (a->image[i].bytes)
            continue;
        st = stops_fetching(k) ? GGL_CANCELLED : fetch_one(k, &a->image[i]);
        if (st != GGL_OK && st != GGL_CANCELLED)
            (void)ggl_within(&k->why, st, "picture %zu of %zu: the address", i + 1, a->n_images);
    }
    if (st != GGL_OK)
        fail(k, st);
    else if (!queue(k, k->s->looks->eye, run, &k->e))
        end_look(k);
}

/* --- all of them ------------------------------------------------------------------------------ */

void server_look(server *s, ask *a, http_reply *r, uint64_t client, int64_t deadline,
                 looked_fn *done, void *ctx) {
    look *k = ggl_calloc(1, sizeof *k);
    if (!k) {
        const api_error e = api_error_of(GGL_NOMEM, NULL, NULL);
        done(ctx, &e);
        return;
    }
    *k = (look){.turn = {.client = client, .leave = leave, .is_wanted = is_wanted},
                .s = s,
                .a = a,
                .r = r,
                .deadline = deadline,
                .done = done,
                .ctx = ctx};
    bool fetches = false;
    for (size_t i = 0; i < a->n_images; i++)
        fetches |= !a->image[i].bytes;
    const bool is_queued = fetches ? queue(k, s->looks->fetcher, run_fetch, &k->e)
                                   : queue(k, s->looks->eye, run, &k->e);
    if (is_queued)
        return;
    done(ctx, &k->e);
    ggl_free(k);
}

looks *looks_new(size_t n_most, bool fetches) {
    looks *l = ggl_calloc(1, sizeof *l);
    if (!l)
        return NULL;
    ggl_os_mutex_init(&l->lock);
    l->eye = turn_queue_new(n_most, 1, "pictures");
    l->fetcher = fetches ? turn_queue_new(n_most, FETCHERS, "pictures") : NULL;
    if (l->eye && (l->fetcher || !fetches))
        return l;
    looks_end(l);
    looks_free(l);
    return NULL;
}

void looks_end(looks *l) {
    if (!l)
        return;
    turn_queue_end(l->fetcher); /* first, because it hands on to the eye's */
    turn_queue_end(l->eye);
}

void looks_free(looks *l) {
    if (!l)
        return;
    turn_queue_free(l->fetcher);
    turn_queue_free(l->eye);
    ggl_os_mutex_destroy(&l->lock);
    ggl_free(l);
}
