/* Runs a model in a few calls: open it, generate text, close it. docs/library.md shows how to build and
 * link. The calls are in three headers, which this one includes: llm/context.h (open, generate, tokens, the sequence),
 * llm/senses.h (pictures, sound) and llm/measure.h (measure, verify, describe).
 *
 *     ggl_error err;
 *     llm_context *c;
 *     if (llm_open(&c, "model.gguf", NULL, &err) != GGL_OK)       // or "builtin:stories"
 *         return fprintf(stderr, "%s\n", err.msg), 1;
 *     llm_generate_params p = llm_generate_default_of(c);
 *     p.n_max = 100;
 *     if (llm_generate(c, "Once upon a time", &p, show, stdout, &err) != GGL_OK) ...
 *     llm_close(c);
 *
 *     static bool show(void *user, const char *piece, size_t n) {
 *         return fwrite(piece, 1, n, user) == n;                  // false: stop
 *     }
 *
 * A context holds one sequence of tokens. The comment of each call says how it changes the sequence. A
 * call that takes a prompt keeps the beginning that the sequence and the prompt have in common, and runs
 * only the rest of the prompt. So a conversation that is sent again with one more message is cheap.
 *
 * Structs that begin with `size` may get more members in later versions, at their end. Set size to
 * sizeof the struct, and the others to 0, or use the function that gives the defaults, if there is one:
 *
 *     llm_embed_params e = {.size = sizeof e, .n_dims = 256};
 *     llm_open_params p = llm_open_default();
 *     p.n_ctx = 4096;
 *
 * A size of 0 is an error (GGL_USAGE). A program that was compiled with an older header still works:
 * members that it does not know have their defaults. A program that was compiled with a newer header
 * works if the members that the library does not know are 0; else calls return GGL_UNSUPPORTED.
 *
 * A pointer may be NULL only where a comment says so, if it is `err` or `user`, or if it is an array of 0
 * elements.
 *
 * Threads: different threads may use different contexts at the same time. Only one thread at a time may
 * use a context, not always the same one; but llm_cancel may be called from any thread, and from a
 * signal handler. A callback runs on the thread that made the call, and must not call a
 * function of the same context, except llm_cancel and those that take it as const.
 *
 * Tier: stable (docs/library.md says what that promises). */
#ifndef LLM_LLM_H
#define LLM_LLM_H

#include "llm/context.h"
#include "llm/measure.h"
#include "llm/senses.h"

#endif
