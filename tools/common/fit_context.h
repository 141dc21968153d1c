/* Computes the largest context that fits into memory, which tools use without -c. */
#ifndef TOOLS_FIT_CONTEXT_H
#define TOOLS_FIT_CONTEXT_H

#include "placement_options.h"

/* A memory (of the CPU or of a device), and how much of it a session takes, in bytes. */
typedef struct fit_memory {
    const char *name; /* "memory", or the device's */
    double available; /* before the session takes anything; 0: not known */
    double margin;    /* the part of `available` that is left free for others */
    double fixed;     /* what the session takes without the KV cache */
    double row;       /* what the KV cache takes for each token */
    double mapped;    /* weights in mapped files; the system can drop and read them again */
} fit_memory;

/* Returns the largest context, at most n_ctx, that fits into all of the memories: n_ctx itself, or a multiple of 256. 0:
 * not even 256 tokens fit. Where the mapped weights do not fit beside the context, it is at most 4096 tokens. *tightest:
 * the index of the memory that allows the least. */
int64_t fit_context_tokens(const fit_memory *m, int n, int64_t n_ctx, int *tightest);

/* Writes to buf how much memory the parts of a session take, as text for a note; returns buf. */
const char *fit_context_text(const fit_memory *m, int64_t n_ctx, char *buf, size_t size);

typedef struct fit_context {
    const char *tool;
    llm_placement *placement;
    const llm_model *model;
    llm_session_params *params;    /* n_ctx is set, and n_pool if it is not 0 */
    bool is_asked;                 /* by -c: the context is not changed */
    double draft_fixed, draft_row; /* what the draft takes of the CPU's memory */
    /* Returns the bytes that other models of this process use and the measurement takes for free: of "", weights in
     * mapped files; of a device, all. NULL: none. */
    double (*taken)(void *ctx, const char *device);
    void *taken_ctx;
} fit_context;

/* Returns the largest context, at most the session's, that fits into memory. */
int64_t fit_context_most(const fit_context *f, const llm_session *s);
/* Whether the backend computes in the memory of the CPU. */
bool fit_context_is_host(const ggl_backend *b);

/* If the context of *s, a session that is not allocated yet, does not fit: prints a note, and replaces *s by a session whose
 * context fits, or has 2048 tokens if fewer would; with is_asked it only prints the note. Returns -1, or an exit code after a message. */
int fit_context_session(const fit_context *f, llm_session **s);

/* Writes a hint to use --repack-cache to buf if loading took long and most of that time went into repacking weights;
 * else "". load_seconds includes repack_seconds. Returns buf. */
const char *repack_hint(double load_seconds, double repack_seconds, char *buf, size_t size);
/* Prints that hint on a terminal if the session repacks weights without a cache. */
void repack_hint_print(const char *tool, const llm_session *s, const llm_session_params *p,
                       double load_seconds, double repack_seconds);

#endif
