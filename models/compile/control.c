/* Opens a control vector: a file whose tensors are directions, which steer.c adds to the rows that layers hand on. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adapter.h"
#include "ggl/graph.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"

static const char begin[] = "direction.";

/* A file without an architecture is known by its tensors. */
static ggl_status read_keys(llm_adapter *a, ggl_error *err) {
    ggl_str s;
    const int found = ggl_gguf_get_string(a->file, "general.type", &s, NULL);
    if (found == 1 && ggl_str_is(s, "adapter"))
        return ggl_fail(err, GGL_FORMAT, "%s is an adapter (general.type), not a control vector",
                        llm_adapter_name(a));
    const int has = ggl_gguf_get_string(a->file, "general.architecture", &s, err);
    if (has < 0)
        return GGL_FORMAT;
    if (has == 1 && !llm_file_is_control(a->file))
        return ggl_fail(err, GGL_FORMAT,
                        "%s is not a control vector: its key general.architecture is \"%.*s\"; "
                        "\"" LLM_CONTROL_KIND "\" is expected",
                        llm_adapter_name(a), (int)ggl_utf8_cut(s.s, s.n, 60), s.s);
    /* a hint that is no text is none */
    (void)ggl_gguf_get_string(a->file, "controlvector.model_hint", &a->architecture, NULL);
    (void)ggl_gguf_get_string(a->file, "general.name", &a->title, NULL);
    return GGL_OK;
}

/* Reads N of "direction.N". False: it is another name. */
static bool read_layer(ggl_str name, int64_t *layer) {
    const size_t n_begin = sizeof begin - 1;
    *layer = 0;
    if (name.n <= n_begin || name.n > n_begin + 9 || memcmp(name.s, begin, n_begin) != 0)
        return false;
    for (size_t i = n_begin; i < name.n; i++) {
        if (name.s[i] < '0' || name.s[i] > '9')
            return false;
        *layer = 10 * *layer + (name.s[i] - '0');
    }
    return true;
}

/* Refuses numbers that would make all that the model computes NaN. */
static ggl_status check_numbers(const llm_adapter *a, const ggl_gguf_tensor *t, ggl_error *err) {
    const float *x = t->data;
    for (int64_t i = 0; x && i < t->ne[0]; i++)
        if (!isfinite(x[i]))
            return ggl_fail(err, GGL_FORMAT,
                            "%s: number %" PRId64 " of %.*s, counted from 0, is %g; a finite "
                            "number is expected",
                            llm_adapter_name(a), i, (int)t->name.n, t->name.s, (double)x[i]);
    return GGL_OK;
}

static ggl_status add_direction(llm_adapter *a, const ggl_gguf_tensor *t, ggl_error *err) {
    const char *file = llm_adapter_name(a);
    const ggl_type_info *type = ggl_type_get(t->type);
    const int n = (int)ggl_utf8_cut(t->name.s, t->name.n, 100);
    int64_t layer;
    if (!read_layer(t->name, &layer))
        return ggl_fail(err, GGL_FORMAT,
                        "%s: tensor %.*s is not a direction: direction.N is expected, with the "
                        "number N of a layer, from 1 on",
                        file, n, t->name.s);
    if (layer == 0)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: tensor %.*s: nothing is added to layer 0; directions begin with "
                        "direction.1",
                        file, n, t->name.s);
    if (t->type != GGL_F32)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s: %.*s has the type %s; f32 is expected", file, n,
                        t->name.s, type ? type->name : "?");
    if (ggl_extents(t->ne, 1, GGL_MAX_DIMS, 1) != 1 || t->ne[0] < 1)
        return ggl_fail(err, GGL_SHAPE,
                        "%s: %.*s is [%" PRId64 ", %" PRId64 "%s; one row of numbers is expected",
                        file, n, t->name.s, t->ne[0], t->ne[1], t->n_dims > 2 ? ", ..]" : "]");
    if (a->n_directions > 0 && t->ne[0] != a->direction[0].t->ne[0])
        return ggl_fail(err, GGL_SHAPE,
                        "%s: %.*s has %" PRId64 " numbers, but direction.%" PRId64 " has %" PRId64,
                        file, n, t->name.s, t->ne[0], a->direction[0].layer,
                        a->direction[0].t->ne[0]);
    a->direction[a->n_directions++] = (arch_direction){t, layer};
    return check_numbers(a, t, err);
}

/* By layers, and those of one layer by their place in the file. */
static int compare(const void *p, const void *q) {
    const arch_direction *a = p, *b = q;
    if (a->layer != b->layer)
        return a->layer < b->layer ? -1 : 1;
    return a->t < b->t ? -1 : a->t > b->t;
}

static ggl_status read_all(llm_adapter *a, ggl_error *err) {
    const size_t n = ggl_gguf_n_tensors(a->file);
    ggl_status st = read_keys(a, err);
    if (st != GGL_OK)
        return st;
    if (n == 0)
        return ggl_fail(err, GGL_FORMAT,
                        "%s has no directions: tensors named direction.1, direction.2 .. are "
                        "expected",
                        llm_adapter_name(a));
    a->direction = ggl_calloc(n, sizeof *a->direction);
    if (!a->direction)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (size_t i = 0; i < n && st == GGL_OK; i++)
        st = add_direction(a, ggl_gguf_tensor_at(a->file, i), err);
    if (st == GGL_OK)
        qsort(a->direction, n, sizeof *a->direction, compare);
    return st;
}

ggl_status llm_control_open(llm_adapter **out, const char *path, const ggl_gguf_params *params,
                            ggl_error *err) {
    ggl_gguf *file = NULL;
    const ggl_status st = ggl_gguf_open(&file, path, params, err);
    return llm_adapter_of_file(out, file, st, read_all, err);
}

ggl_status llm_control_open_memory(llm_adapter **out, const void *data, size_t size,
                                   const char *name, ggl_error *err) {
    ggl_gguf *file = NULL;
    const ggl_status st = ggl_gguf_open_memory(&file, data, size, name, err);
    return llm_adapter_of_file(out, file, st, read_all, err);
}
