/* Stop strings: an automaton whose state is the longest beginning of a stop string with which the
 * text so far ends. Only that much is held back. */
#include "llm/internal/stop.h"

#include "ggl/alloc.h"
#include "text/automaton.h"

struct llm_stop {
    automaton strings;
    int32_t state, found;
    size_t held;
};

ggl_status llm_stop_new(llm_stop **out, const ggl_str *strings, size_t n, ggl_error *err) {
    *out = NULL;
    for (size_t i = 0; i < n; i++)
        if (strings[i].n == 0)
            return ggl_fail(err, GGL_USAGE, "stop string %zu is empty", i + 1);
    llm_stop *s = ggl_calloc(1, sizeof *s);
    if (!s)
        return ggl_fail(err, GGL_NOMEM, "out of memory for stop strings");
    ggl_status st = llm_automaton_init(&s->strings, false, err);
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        st = llm_automaton_add(&s->strings, strings[i], (int32_t)i, err);
    if (st == GGL_OK)
        st = llm_automaton_finish(&s->strings, err);
    llm_stop_reset(s);
    if (st != GGL_OK)
        llm_stop_free(s);
    else
        *out = s;
    return st;
}

void llm_stop_free(llm_stop *s) {
    if (s)
        llm_automaton_fini(&s->strings);
    ggl_free(s);
}

void llm_stop_reset(llm_stop *s) {
    s->state = 0;
    s->found = -1;
    s->held = 0;
}

size_t llm_stop_read(llm_stop *s, const char *text, size_t n) {
    size_t waiting = s->held;
    for (size_t i = 0; i < n && s->found < 0; i++) {
        s->state = llm_automaton_step(&s->strings, s->state, (unsigned char)text[i]);
        waiting++;
        const automaton_node *at = &s->strings.node[s->state], *match = &s->strings.node[at->found];
        s->held = at->depth;
        if (at->found != 0) {
            s->found = match->id;
            s->held = match->depth;
        }
    }
    return waiting - s->held;
}

int32_t llm_stop_found(const llm_stop *s) {
    return s->found;
}

size_t llm_stop_held(const llm_stop *s) {
    return s->held;
}
