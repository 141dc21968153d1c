/* A model that several threads share. */
#include "llm/internal/model.h"

#include <pthread.h>

#include "test.h"

enum { N_THREADS = 4 };

typedef struct caller {
    llm_model *m;
    pthread_barrier_t *start;
    const llm_tokenizer *t;
    ggl_status status;
} caller;

static void *ask(void *arg) {
    caller *c = arg;
    ggl_error err = {0};
    pthread_barrier_wait(c->start);
    c->status = llm_model_tokenizer(c->m, &c->t, &err);
    return NULL;
}

/* The first calls of all threads at once: all get the same tokenizer, which the thread sanitizer
 * watches being made. */
TEST(tokenizer_in_threads) {
    for (int round = 0; round < 10; round++) {
        ggl_error err = {0};
        llm_model *m;
        pthread_t thread[N_THREADS];
        pthread_barrier_t start;
        caller c[N_THREADS];
        const llm_tokenizer *again;
        REQUIRE_OK(llm_model_open(&m, BUILTIN_MODEL, NULL, &err), &err);
        REQUIRE(pthread_barrier_init(&start, NULL, N_THREADS) == 0);
        for (int i = 0; i < N_THREADS; i++) {
            c[i] = (caller){.m = m, .start = &start};
            REQUIRE(pthread_create(&thread[i], NULL, ask, &c[i]) == 0);
        }
        for (int i = 0; i < N_THREADS; i++)
            pthread_join(thread[i], NULL);
        REQUIRE_OK(llm_model_tokenizer(m, &again, &err), &err);
        for (int i = 0; i < N_THREADS; i++)
            CHECK(c[i].status == GGL_OK && c[i].t == again);
        pthread_barrier_destroy(&start);
        llm_model_free(m);
    }
}
