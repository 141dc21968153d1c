/* Generates text with any model, or answers a question if the model is made for conversations:
 *
 *     generate model.gguf "Once upon a time"
 *     generate builtin:chat --chat "Who are you?"
 *
 * docs/library.md says how to build it against the installed library. */
#include <stdio.h>
#include <string.h>

#include "llm/llm.h"

/* Shows the text as it comes. Returning false would stop the generation. */
static bool show(void *user, const char *piece, size_t n) {
    FILE *out = user;
    return fwrite(piece, 1, n, out) == n && fflush(out) == 0;
}

static int fail(const ggl_error *err) {
    fprintf(stderr, "generate: %s\n", err->msg);
    return 1;
}

int main(int argc, char **argv) {
    const bool is_chat = argc == 4 && strcmp(argv[2], "--chat") == 0;
    ggl_error err;
    llm_context *c;
    if (argc != 3 && !is_chat) {
        fprintf(stderr, "usage: generate MODEL [--chat] TEXT\n");
        return 2;
    }
    llm_open_params open = llm_open_default();
    open.n_ctx = 512;
    if (llm_open(&c, argv[1], &open, &err) != GGL_OK)
        return fail(&err);

    llm_generate_params p = llm_generate_default_of(c);
    p.n_max = 60;
    p.temp = 0; /* the likeliest token each time */
    const llm_message message = {"user", argv[argc - 1]};
    const ggl_status st = is_chat ? llm_reply(c, &message, 1, &p, show, stdout, &err)
                                  : llm_generate(c, argv[2], &p, show, stdout, &err);
    printf("\n");

    llm_run_info run = {.size = sizeof run};
    if (st == GGL_OK && llm_last_run(c, &run, &err) == GGL_OK)
        fprintf(stderr, "%lld tokens in, %lld out\n", (long long)run.n_prompt,
                (long long)run.n_generated);
    llm_close(c);
    return st == GGL_OK ? 0 : fail(&err);
}
