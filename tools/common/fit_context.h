/* Makes the context as large as fits into memory, for tools without -c, and says so. */
#ifndef TOOLS_FIT_CONTEXT_H
#define TOOLS_FIT_CONTEXT_H

#include "args.h"
#include "place/fit.h"

/* Writes to buf how much memory the parts of a session take, as text for a note; returns buf. */
const char *fit_context_text(const llm_fit_memory *m, int64_t n_ctx, char *buf, size_t size);

typedef struct fit_context {
    const char *tool;
    llm_placement *placement;
    const llm_model *model;
    llm_session_params *params; /* n_ctx is set, and n_pool if it is not 0 */
    bool is_asked;              /* by -c: the context is not changed */
    llm_fit_others others;
} fit_context;

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
