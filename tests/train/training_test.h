/* What the tests of llm/train.h share: files to learn from, trainings of the built-in models, and callbacks. */
#ifndef TRAINING_TEST_H
#define TRAINING_TEST_H

#include <string.h>

#include "ggl/compose.h"
#include "llm/train.h"
#include "test.h"

/* --- files ------------------------------------------------------------------------------------ */

enum { CHATS = 40 };

/* Writes a file of that name to the test's folder, and returns its path. */
static inline const char *file_of(const char *name, const char *text) {
    static char path[8][600];
    static int k;
    char *p = path[k++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", test_folder(), name);
    FILE *f = fopen(p, "w");
    if (CHECK(f)) {
        CHECK(fputs(text, f) >= 0);
        fclose(f);
    }
    return p;
}

static inline const char *path_of(const char *name) {
    static char path[8][600];
    static int k;
    char *p = path[k++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", test_folder(), name);
    return p;
}

static inline const char *chats(void) {
    static const char *const who[] = {"Tom", "Lily", "Ben", "Anna"}, *const what[] = {"ball", "dog",
                                                                                      "hat"};
    static char text[CHATS * 200];
    size_t n = 0;
    for (int i = 0; i < CHATS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"messages\": [{\"role\": \"user\", \"content\": \"Who is %s?\"}, "
                              "{\"role\": \"assistant\", \"content\": \"%s likes the %s.\"}]}\n",
                              who[i % 4], who[i % 4], what[i % 3]);
    return file_of("chats.jsonl", text);
}

static inline const char *pairs(void) {
    static char text[CHATS * 200];
    size_t n = 0;
    for (int i = 0; i < CHATS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"prompt\": \"Once upon a time %d\", \"chosen\": \", there was a "
                              "dog.\", \"rejected\": \" 7 7 7\"}\n",
                              i);
    return file_of("pairs.jsonl", text);
}

static inline const char *story(void) {
    static char text[9000];
    size_t n = 0;
    for (int i = 0; i < 60; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "Lily saw %d red birds in the tree, and she was very happy.\n\n", i);
    return file_of("story.txt", text);
}

/* Opens a training of one file, with two threads. NULL: a failure, which was reported. */
static inline llm_training *open_on(const char *model, const char *file, llm_training_params p) {
    ggl_error err = {0};
    llm_training *t = NULL;
    p.size = sizeof p;
    if (file) {
        p.file = &file;
        p.n_files = 1;
    }
    p.n_threads = p.n_threads ? p.n_threads : 2;
    CHECK_OK(llm_training_open(&t, model, &p, &err), &err);
    return t;
}

static inline llm_training_report step(llm_training *t) {
    ggl_error err = {0};
    llm_training_report r = {.size = sizeof r};
    CHECK_OK(llm_training_step(t, &r, &err), &err);
    return r;
}

static inline bool same_files(const char *a, const char *b) {
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    bool same = f && g;
    int x = 0;
    while (same && x != EOF) {
        x = getc(f);
        same = x == getc(g);
    }
    if (f)
        fclose(f);
    if (g)
        fclose(g);
    return same;
}

/* Adds the text of a file to another one. */
static inline void append(const char *from, const char *to) {
    FILE *f = fopen(from, "r"), *g = fopen(to, "a");
    for (int c; CHECK(f && g) && (c = getc(f)) != EOF;)
        putc(c, g);
    if (f)
        fclose(f);
    if (g)
        fclose(g);
}

/* --- callbacks -------------------------------------------------------------------------------- */

typedef struct watch {
    llm_training *t;
    int64_t steps, written, end_at; /* end_at: the step after which `each` ends it; 0: none */
    bool cancels;                   /* by llm_training_cancel */
} watch;

static inline bool on_step(void *user, const llm_training_report *r) {
    watch *w = user;
    w->steps = r->step;
    if (w->cancels && r->step == w->end_at)
        llm_training_cancel(w->t);
    return w->cancels || r->step != w->end_at;
}

static inline bool on_written(void *user, const llm_training_report *r) {
    (void)r;
    ((watch *)user)->written++;
    return true;
}

/* The sentences of a training. */
static inline void keep_note(void *user, const char *text) {
    strncat(user, text, 2000);
}

/* A loss of the test: twice the cross entropy. */
static inline ggl_tensor *twice(void *user, ggl_graph *g, ggl_tensor *logits, ggl_tensor *target) {
    (void)user;
    return ggl_binary(g, GGL_OP_MUL, ggl_cross_entropy(g, logits, target), ggl_graph_number(g, 2));
}

#endif
