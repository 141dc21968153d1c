/* What the tools print about a context that does not fit into memory, and about repacked weights. */
#ifndef TOOLS_FIT_CONTEXT_H
#define TOOLS_FIT_CONTEXT_H

#include "args.h"
#include "place/fit.h"

/* Writes to buf how much memory the parts of a session take, as text for a note; returns buf. */
const char *fit_context_text(const llm_fit_memory *m, int64_t n_ctx, char *buf, size_t size);

/* llm_opening.lacks: prints a note. */
void fit_context_note(void *unused, const llm_fit *fit, int64_t n_ctx, bool is_asked);

/* Writes a hint to use --repack-cache to buf if loading took long and most of that time went into repacking weights;
 * else "". load_seconds includes repack_seconds. Returns buf. */
const char *repack_hint(double load_seconds, double repack_seconds, char *buf, size_t size);
/* Prints that hint on a terminal if the session repacks weights without a cache. */
void repack_hint_print(const char *tool, const llm_session *s, const llm_session_params *p,
                       double load_seconds, double repack_seconds);

#endif
