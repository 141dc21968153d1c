#include "fit_context.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/amounts.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/os_terminal.h"
#include "ggl/internal/sched.h"

const char *fit_context_text(const llm_fit_memory *m, int64_t n_ctx, char *buf, size_t size) {
    char cache[AMOUNT_TEXT], all[AMOUNT_TEXT], other[AMOUNT_TEXT], margin[AMOUNT_TEXT];
    snprintf(buf, size,
             "the KV cache of %" PRId64 " tokens takes %s, but %s has %s available; the rest of "
             "the model takes %s, and %s are left free",
             n_ctx, llm_amount_bytes(cache, (uint64_t)(m->row * (double)n_ctx)), m->name,
             llm_amount_bytes(all, (uint64_t)m->available),
             llm_amount_bytes(other, (uint64_t)(m->fixed + m->mapped)),
             llm_amount_bytes(margin, (uint64_t)m->margin));
    return buf;
}

/* Returns what to do if a memory allows too few tokens. */
static const char *advice(const llm_fit_memory *m) {
    if (m->available - m->margin <= m->fixed)
        return "this model needs more memory; a file with smaller weights (llm-quantize) needs "
               "less";
    return "-ctk q8_0 -ctv q8_0 halves the KV cache";
}

void fit_context_note(void *unused, const llm_fit *fit, int64_t n_ctx, bool is_asked) {
    (void)unused;
    char text[320], would[48] = "";
    fit_context_text(&fit->tightest, n_ctx, text, sizeof text);
    if (!is_asked && fit->n_ctx < n_ctx) {
        tool_note(NULL, "%s; so the context is %" PRId64 " tokens (-c N sets another; %s)", text,
                  fit->n_ctx, advice(&fit->tightest));
        return;
    }
    if (fit->fits > 0)
        snprintf(would, sizeof would, "; -c %" PRId64 " would fit", fit->fits);
    tool_note(NULL, "%s%s; %s", text, would, advice(&fit->tightest));
}

/* --- the hint at --repack-cache ---------------------------------------------------------------------- */

const char *repack_hint(double load_seconds, double repack_seconds, char *buf, size_t size) {
    *buf = '\0';
    if (load_seconds > 3 && repack_seconds > load_seconds / 2)
        snprintf(buf, size,
                 "repacking the weights took %.0f of the %.0f s of loading; --repack-cache "
                 "keeps them in a file for the next time",
                 repack_seconds, load_seconds);
    return buf;
}

void repack_hint_print(const char *tool, const llm_session *s, const llm_session_params *p,
                       double load_seconds, double repack_seconds) {
    char text[192];
    size_t repacked = 0, copied = 0;
    ggl_memory m;
    for (int i = 0; ggl_sched_memory(llm_session_sched(s), i, &m); i++) {
        repacked += m.weights_repacked;
        copied += m.weights_copied;
    }
    if (p->repack_cache || repacked <= copied || ggl_os_is_terminal(OS_STDERR) != 1)
        return;
    if (*repack_hint(load_seconds, repack_seconds, text, sizeof text))
        tool_note(tool, "%s", text);
}
