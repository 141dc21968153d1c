#include "llm/internal/text_inputs.h"

#include <string.h>

#include "ggl/alloc.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/sched.h"

static bool is_stage(const char *input) {
    return strncmp(input, "stage.", strlen("stage.")) == 0;
}

/* Which elements read a row that is given, and not what is made from a token or another model's rows: every second one. */
static void alternate(const llm_text_inputs *x, float *value) {
    for (int64_t i = 0; i < x->n; i++)
        value[i] = (float)((x->first + i) % 2);
}

/* Numbers from -1 to 1, the same for each run: a row that the tokens before would have given. */
static void make_up_rows(int64_t first, int64_t n, int64_t size, float *value) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < size; k++) {
            const uint32_t mixed = (uint32_t)((first + i + 1) * 40503 + k) * 2654435761u;
            value[i * size + k] = (float)((int32_t)mixed >> 8) / (float)(1 << 23);
        }
}

/* True for the number of a place, of a token or of a patch. */
static bool is_place(const char *name) {
    return strcmp(name, "pos") == 0 || strcmp(name, "begin") == 0 || strcmp(name, "line") == 0 ||
           strcmp(name, "column") == 0 || strcmp(name, "picture") == 0 ||
           (strlen(name) == 1 && strchr("tyx", *name));
}

int64_t llm_text_input(const llm_text_inputs *x, const ggl_tensor *input, void *value) {
    const char *dot = strrchr(input->name, '.'), *name = dot ? dot + 1 : input->name;
    const bool reads = x->read && is_stage(input->name), of_read = x->read && dot;
    const int64_t n = reads ? x->n_read : x->n;
    const int32_t first = reads ? 0 : x->first;
    int32_t *out = value;
    if (out && (strcmp(name, "given") == 0 || strcmp(name, "is_given") == 0))
        alternate(x, value);
    else if (out && input->type == GGL_F32)
        make_up_rows(first, n, ggl_count(input), value);
    const bool is_list =
        ggl_count(input) > 1; /* of entries of a table, whose first one all elements read */
    if (out && is_list && input->type != GGL_F32)
        memset(value, 0, (size_t)(n * ggl_count(input)) * sizeof *out);
    for (int32_t i = 0; out && !is_list && input->type != GGL_F32 && i < n; i++)
        out[i] = strcmp(name, "token") == 0  ? (reads ? x->read : x->token)[i]
                 : is_place(name)            ? first + i
                 : strcmp(name, "type") == 0 ? (first + i) % 2
                 : strcmp(name, "slot") == 0 ? x->slot
                 : of_read                   ? (int32_t)x->n_read /* "end" */
                 : x->read                   ? first + i + 1      /* wherever the text is cut */
                                             : first + (int32_t)n;
    return n;
}

static ggl_status set_input(const llm_text_inputs *x, ggl_sched *s, const ggl_tensor *t,
                            ggl_error *err) {
    const int64_t n = llm_text_input(x, t, NULL);
    const size_t size = (size_t)(n * ggl_count(t));
    int32_t *value = ggl_calloc(size, sizeof *value); /* or floats, which are as large */
    if (!value)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the input '%s'", t->name);
    llm_text_input(x, t, value);
    const ggl_status st = ggl_sched_set(s, t->name, value, size * sizeof *value, n, err);
    ggl_free(value);
    return st;
}

ggl_status llm_text_inputs_set(const llm_text_inputs *x, ggl_sched *s, const ggl_graph *g,
                               ggl_error *err) {
    const bool runs = ggl_sched_has_stage(s) && x->first == 0;
    ggl_status st = GGL_OK;
    for (int i = 0; i < ggl_graph_n_inputs(g) && st == GGL_OK; i++) {
        const ggl_tensor *t = ggl_graph_get_input(g, i);
        const bool is_read = t->needed && !(ggl_sched_has_stage(s) && is_stage(t->name) && !runs);
        if (ggl_is_batched(t) && is_read)
            st = set_input(x, s, t, err);
    }
    return st == GGL_OK && runs ? ggl_sched_run_stage(s, x->read ? x->n_read : x->n, err) : st;
}
