#include "llm/internal/text_inputs.h"

#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"

static bool is_stage(const char *input) {
    return strncmp(input, "stage.", strlen("stage.")) == 0;
}

int64_t llm_text_input(const llm_text_inputs *x, const char *input, int32_t *value) {
    const char *dot = strrchr(input, '.'), *name = dot ? dot + 1 : input;
    const bool reads = x->read && is_stage(input), of_read = x->read && dot;
    const int64_t n = reads ? x->n_read : x->n;
    const int32_t first = reads ? 0 : x->first;
    for (int32_t i = 0; i < n; i++)
        value[i] = strcmp(name, "token") == 0  ? (reads ? x->read : x->token)[i]
                   : strcmp(name, "pos") == 0  ? first + i
                   : strcmp(name, "slot") == 0 ? x->slot
                   : of_read                   ? (int32_t)x->n_read /* "end" */
                                               : first + (int32_t)n;
    return n;
}

ggl_status llm_text_inputs_set(const llm_text_inputs *x, ggl_sched *s, const ggl_graph *g,
                               int32_t *scratch, ggl_error *err) {
    const bool runs = ggl_sched_has_stage(s) && x->first == 0;
    ggl_status st = GGL_OK;
    for (int i = 0; i < ggl_graph_n_inputs(g) && st == GGL_OK; i++) {
        const ggl_tensor *t = ggl_graph_get_input(g, i);
        if (!ggl_is_batched(t) || (ggl_sched_has_stage(s) && is_stage(t->name) && !runs))
            continue;
        const int64_t n = llm_text_input(x, t->name, scratch);
        st = ggl_sched_set(s, t->name, scratch, (size_t)n * sizeof *scratch, n, err);
    }
    return st == GGL_OK && runs ? ggl_sched_run_stage(s, x->read ? x->n_read : x->n, err) : st;
}
