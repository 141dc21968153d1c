/* The context that fits into memory: what a tool takes if -c does not give one. */
#ifndef TOOLS_FIT_CONTEXT_H
#define TOOLS_FIT_CONTEXT_H

#include "placement.h"

/* A memory, and what a session takes of it. All in bytes. */
typedef struct fit_memory {
    const char *name; /* "memory", or the device's */
    double available; /* before the session takes anything; 0: not known */
    double margin;    /* of that, left to others */
    double fixed;     /* all but the KV cache */
    double row;       /* of the KV cache for a token */
} fit_memory;

/* Returns the largest context, at most n_ctx, that fits into all of the memories: n_ctx itself, or a multiple of 256. 0:
 * not even 256 tokens fit. *tightest: the index of the memory that allows the least. */
int64_t fit_context_tokens(const fit_memory *m, int n, int64_t n_ctx, int *tightest);

/* Writes what takes how much, for a note; returns buf. */
const char *fit_context_text(const fit_memory *m, int64_t n_ctx, char *buf, size_t size);

typedef struct fit_context {
    const char *tool;
    placement *placement;
    const llm_model *model;
    llm_session_params *params;    /* n_ctx is set, and n_pool if it is not 0 */
    bool is_asked;                 /* by -c: the context is not changed */
    double draft_fixed, draft_row; /* what the draft takes of the CPU's memory */
} fit_context;

/* Replaces *s, a session that is not allocated yet, by one with a context that fits, after a note; if the context was asked for, it
 * prints only the note. Returns -1, or an exit code after a message. */
int fit_context_session(const fit_context *f, llm_session **s);

/* Writes a hint at --repack-cache to buf if loading took long, and repacking weights most of it; else "". Returns buf.
 * seconds: of loading in all, and of the part that repacks. */
const char *repack_hint(double load_seconds, double repack_seconds, char *buf, size_t size);
/* Prints that hint on a terminal if the session repacks weights without a cache. */
void repack_hint_print(const char *tool, const llm_session *s, const llm_session_params *p,
                       double load_seconds, double repack_seconds);

#endif
