#include "llm/internal/text_inputs.h"

#include <string.h>

#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"

void llm_text_input(const llm_text_inputs *x, const char *input, int32_t *value) {
    const char *dot = strrchr(input, '.'), *name = dot ? dot + 1 : input;
    for (int32_t i = 0; i < x->n; i++)
        value[i] = strcmp(name, "token") == 0  ? x->token[i]
                   : strcmp(name, "pos") == 0  ? x->first + i
                   : strcmp(name, "slot") == 0 ? x->slot
                                               : x->first + (int32_t)x->n; /* "end" */
}

ggl_status llm_text_inputs_set(const llm_text_inputs *x, ggl_sched *s, const ggl_graph *g,
                               int32_t *scratch, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int i = 0; i < ggl_graph_n_inputs(g) && st == GGL_OK; i++) {
        const ggl_tensor *t = ggl_graph_get_input(g, i);
        if (!ggl_is_batched(t))
            continue;
        llm_text_input(x, t->name, scratch);
        st = ggl_sched_set(s, t->name, scratch, (size_t)x->n * sizeof *scratch, x->n, err);
    }
    return st == GGL_OK && ggl_sched_has_stage(s) ? ggl_sched_run_stage(s, x->n, err) : st;
}
