/* Answers in several threads, and without memory. */
#include "answer_fixture.h"

#include <sched.h>
#include <stdatomic.h>

#include "alloc_fail.h"

/* --- threads ------------------------------------------------------------------------------------ */

enum { N_WORKERS = 4, N_EACH = 6 };

/* The engine's thread: runs what is posted until it is told to end. */
static atomic_bool over;

static void *run_engine(void *ctx) {
    while (!atomic_load(&over)) {
        server_run(ctx, 100000);
        sched_yield();
    }
    server_run(ctx, 100000);
    return NULL;
}

typedef struct worker {
    server *s;
    int number;
    http_reply *reply[N_EACH];
} worker;

static ask *number_ask(server *s, int i) {
    static const char schema[] = "{\"type\": \"array\", \"items\": {\"type\": \"boolean\"}, "
                                 "\"minItems\": 1, \"maxItems\": 4}";
    ask *a = i % 2 ? ask_chat(s, "Tell me a story.") : ask_text(s, "There was a");
    a->sampling.seed = (uint64_t)i;
    a->sampling.temp = 1;
    a->stream = i % 3 == 0;
    a->n_max = 30;
    a->n_choices = 1 + i % 2;
    if (i % 4 == 1) {
        a->form = ASK_SCHEMA;
        a->form_text = (ggl_str){schema, sizeof schema - 1};
    }
    return a;
}

static void *ask_all(void *ctx) {
    worker *w = ctx;
    for (int i = 0; i < N_EACH; i++)
        w->reply[i] = start(w->s, number_ask(w->s, w->number * N_EACH + i));
    return NULL;
}

/* Workers prepare requests while the engine runs others: the answers are those of requests one by one. */
TEST(workers) {
    server s = {0};
    pthread_t engine, thread[N_WORKERS];
    worker w[N_WORKERS];
    REQUIRE(server_open(&s, 0));
    REQUIRE(pthread_create(&engine, NULL, run_engine, &s) == 0);
    for (int i = 0; i < N_WORKERS; i++) {
        w[i] = (worker){.s = &s, .number = i};
        REQUIRE(pthread_create(&thread[i], NULL, ask_all, &w[i]) == 0);
    }
    for (int i = 0; i < N_WORKERS; i++)
        pthread_join(thread[i], NULL);
    atomic_store(&over, true);
    pthread_join(engine, NULL);
    for (int i = 0; i < N_WORKERS; i++)
        for (int k = 0; k < N_EACH; k++) {
            http_reply *one = answer_alone(&s, number_ask(&s, i * N_EACH + k));
            char *want = joined(one), *got = joined(w[i].reply[k]);
            CHECK_INT(w[i].reply[k]->status, 200);
            CHECK_STR(got, want);
            free(want);
            free(got);
            reply_free(one);
            reply_free(w[i].reply[k]);
        }
    CHECK_INT(answers_n(s.answers), 0);
    server_close(&s);
}

/* --- memory ------------------------------------------------------------------------------------- */

typedef struct one {
    server *s;
    int number;
} one;

/* Answers a request. True: it was answered in full. */
static bool answer_once(void *ctx) {
    const one *o = ctx;
    server *s = o->s;
    ask *a = o->number % 2 ? ask_chat(s, "hi") : ask_text(s, "One day");
    if (!a)
        return false;
    a->stream = o->number >= 2;
    a->n_max = 12;
    a->n_choices = 5;
    a->n_top = 2;
    a->stop = &(ggl_str){"xyz", 3};
    a->n_stops = 1;
    http_reply *r = answer_alone(s, a);
    if (!r)
        return false;
    const char *body = r->body.n > 0 ? r->body.s : "";
    const bool good = r->status == 200 && !r->gone && strstr(body, "\nE ") && !strstr(body, "X ");
    CHECK_MSG(r->ended && (good || r->gone || r->body.n == 0 || strstr(body, "X 503 overloaded")),
              "%s", body);
    CHECK_INT(answers_n(s->answers), 0);
    reply_free(r);
    return good;
}

/* Whichever allocation fails, the request ends with an error, and later ones are answered. */
LONG_TEST(no_memory) {
    server s = {0};
    REQUIRE(server_open(&s, 0));
    for (int i = 0; i < 4; i++) {
        one o = {&s, i};
        CHECK(answer_once(&o)); /* what the engine keeps is there from now on */
        for (long k = 1;; k = alloc_next(k)) {
            alloc_fail_at(k);
            const bool good = answer_once(&o), failed = alloc_has_failed();
            alloc_fail_at(0);
            if (!failed) {
                CHECK_MSG(good && k > 50, "request %d fails without a reason after %ld", i, k);
                break;
            }
        }
        CHECK(answer_once(&o));
    }
    server_close(&s);
}

/* --- steady ------------------------------------------------------------------------------------- */

/* The tokens of a stream need few allocations: what grows, grows by halves. */
TEST(few_allocations) {
    server s = {0};
    long n[2];
    REQUIRE(server_open(&s, 0));
    for (int i = 0; i < 4; i++) {
        ask *a = ask_text(&s, "Once upon a time");
        a->stream = true;
        a->n_max = i % 2 ? 200 : 20;
        a->ignore_eos = true;
        http_reply *r = start(&s, a);
        server_run(&s, 10); /* the prompt, and the first tokens */
        const long before = alloc_count();
        server_run(&s, 100000);
        n[i % 2] = alloc_count() - before;
        CHECK_HAS(r->body.s, "\nE ");
        reply_free(r);
    }
    CHECK_MSG(n[1] < n[0] + 20, "%ld allocations for 20 tokens, %ld for 200", n[0], n[1]);
    server_close(&s);
}
