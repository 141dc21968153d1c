/* The JSON of `llm-gguf show`; docs/tools.md documents it. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/gguf_text.h"
#include "common/json_text.h"
#include "show.h"

enum { LARGE = 64 }; /* arrays of more elements need --full */

static void put_text(const char *s) {
    json_put_string(stdout, s, strlen(s));
}

static void put_item(const ggl_gguf_value *v, uint64_t i) {
    ggl_str s;
    double x = 0;
    char text[NUMBER_TEXT];
    const bool number = v->type != GGL_GGUF_BOOL && ggl_gguf_number(v, i, &x);
    if (ggl_gguf_string(v, i, &s))
        json_put_string(stdout, s.s, s.n);
    else if (number && !isfinite(x)) /* JSON has no NaN and no infinity */
        printf("null");
    else
        printf("%s", number_text(v, i, 17, text));
}

static void put_key(const gguf_view *v, const ggl_gguf_value *k) {
    printf("{\"key\": ");
    json_put_string(stdout, k->key.s, k->key.n);
    printf(", \"type\": \"%s\"", ggl_gguf_type_name(k->type));
    if (k->is_array)
        printf(", \"n\": %" PRIu64, k->n);
    if (k->is_array && k->n > LARGE && !v->full) {
        printf("}");
        return;
    }
    printf(", \"value\": %s", k->is_array ? "[" : "");
    for (uint64_t i = 0; i < k->n; i++) {
        printf("%s", i ? ", " : "");
        put_item(k, i);
    }
    printf("%s}", k->is_array ? "]" : "");
}

static void put_tensor(const gguf_view *v, const ggl_gguf_tensor *t) {
    char type[32];
    const uint64_t n = tensor_elements(t);
    snprintf(type, sizeof type, "%s", tensor_type(t));
    if (type[0] == '?')
        snprintf(type, sizeof type, "%d", (int)t->type);
    printf("{\"name\": ");
    json_put_string(stdout, t->name.s, t->name.n);
    printf(", \"type\": \"%s\", \"shape\": [", type);
    for (int d = 0; d < t->n_dims; d++)
        printf("%s%" PRId64, d ? ", " : "", t->ne[d]);
    printf("], \"elements\": %" PRIu64 ", \"part\": %d, \"offset\": %" PRIu64, n, t->part,
           t->offset);
    if (ggl_type_get((int)t->type))
        printf(", \"bytes\": %zu, \"bits\": %.6g", t->size,
               n > 0 ? 8 * (double)t->size / (double)n : 0);
    printf(", \"present\": %s}", gguf_is_there(v, t) ? "true" : "false");
}

static void put_sum(const gguf_sum *s) {
    printf("\"tensors\": %zu, \"elements\": %.0f, \"bytes\": %.0f, \"bits\": %.6g}", s->n,
           s->params, s->bytes, gguf_sum_bits(s));
}

static void put_sums(const gguf_view *v) {
    printf("],\n \"types\": [");
    for (size_t i = 0; i < v->n_types; i++) {
        const ggl_gguf_tensor t = {.type = (ggl_type)v->types[i].type};
        printf("%s\n  {\"type\": ", i ? "," : "");
        if (tensor_type(&t)[0] == '?')
            printf("\"%d\", ", (int)t.type);
        else
            printf("\"%s\", ", tensor_type(&t));
        put_sum(&v->types[i]);
    }
    printf("],\n \"layers\": [");
    for (size_t i = 0; i < v->n_layers; i++) {
        printf("%s\n  {\"layer\": ", i ? "," : "");
        if (v->layers[i].type < 0)
            printf("null, ");
        else
            printf("%" PRId64 ", ", v->layers[i].type);
        put_sum(&v->layers[i]);
    }
    printf("],\n \"all\": {");
    put_sum(&v->all);
}

void gguf_show_json(const gguf_view *v) {
    const ggl_gguf *f = v->file;
    const size_t n_values = f ? ggl_gguf_n_values(f) : 0, n_tensors = f ? ggl_gguf_n_tensors(f) : 0;
    size_t n = 0;
    printf("{\"file\": ");
    put_text(f ? ggl_gguf_name(f) : v->path);
    printf(", \"version\": %" PRIu32 ", \"parts\": %d, \"bytes\": %.0f,\n \"keys\": [",
           f ? ggl_gguf_version(f) : 0, f ? ggl_gguf_n_parts(f) : 0, v->file_bytes);
    for (size_t i = 0; i < n_values && !v->only_tensors; i++) {
        const ggl_gguf_value *k = ggl_gguf_value_at(f, i);
        if (!gguf_patterns_match(&v->keys, k->key))
            continue;
        printf("%s\n  ", n++ ? "," : "");
        put_key(v, k);
    }
    printf("],\n \"tensors\": [");
    n = 0;
    for (size_t i = 0; i < n_tensors && !v->only_keys; i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(f, i);
        if (!gguf_patterns_match(&v->tensors, t->name))
            continue;
        printf("%s\n  ", n++ ? "," : "");
        put_tensor(v, t);
    }
    put_sums(v);
    printf(",\n \"defects\": [");
    for (size_t i = 0; i < v->n_defects; i++) {
        printf("%s\n  ", i ? "," : "");
        put_text(v->defect[i]);
    }
    printf("]}\n");
}
