/* Continues many texts at once, which takes much less time than one after the other. Each argument is a prompt:
 *
 *     batch model.gguf "Once upon a time" "The little dog" "It was raining"
 *
 * docs/library.md says how to build it against the installed library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llm/llm.h"

/* A prompt, and the text that comes after it. */
typedef struct item {
    char *text;
    size_t n;
} item;

/* Collects the text of one job. Jobs take turns, so that printing it here would mix them. */
static bool take(void *user, const char *piece, size_t n) {
    item *t = user;
    char *text = realloc(t->text, t->n + n + 1);
    if (!text)
        return false;
    memcpy(text + t->n, piece, n);
    t->text = text;
    t->n += n;
    t->text[t->n] = 0;
    return true;
}

static int fail(const ggl_error *err) {
    fprintf(stderr, "batch: %s\n", err->msg);
    return 1;
}

static ggl_status run(llm_context *c, char **prompt, size_t n, ggl_error *err) {
    llm_generate_params p = llm_generate_default_of(c);
    llm_job *job = calloc(n, sizeof *job);
    item *result = calloc(n, sizeof *result);
    ggl_status st = job && result ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    p.n_max = 40;
    p.temp = 0; /* the likeliest token each time */
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        job[i] = (llm_job){.prompt = prompt[i], .params = &p, .each = take, .user = &result[i]};
    if (st == GGL_OK)
        st = llm_generate_jobs(c, job, n, err);
    for (size_t i = 0; i < n && st == GGL_OK; i++) {
        if (job[i].err.status != GGL_OK)
            fprintf(stderr, "batch: %s: %s\n", prompt[i], job[i].err.msg);
        printf("%s%s\n", prompt[i], result[i].text ? result[i].text : "");
    }
    for (size_t i = 0; i < n && result; i++)
        free(result[i].text);
    free(result);
    free(job);
    return st;
}

int main(int argc, char **argv) {
    ggl_error err;
    llm_context *c;
    if (argc < 3) {
        fprintf(stderr, "usage: batch MODEL PROMPT..\n");
        return 2;
    }
    llm_open_params open = llm_open_default();
    open.n_ctx = 512;
    open.n_parallel = 8;
    if (llm_open(&c, argv[1], &open, &err) != GGL_OK)
        return fail(&err);
    const ggl_status st = run(c, argv + 2, (size_t)argc - 2, &err);
    llm_close(c);
    return st == GGL_OK ? 0 : fail(&err);
}
