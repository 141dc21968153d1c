/* llm-arch show: what is in a model file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arch_tensors.h"
#include "arch_tool.h"
#include "ggl/show.h"
#include "ggl/index.h"
#include "ggl/steps.h"

#define TOOL "llm-arch show"

static bool begins(ggl_str s, const char *with) {
    size_t n = strlen(with);
    return s.n >= n && memcmp(s.s, with, n) == 0;
}

static void print_keys(const ggl_gguf *f, bool tokenizer) {
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(f, i);
        char text[1024];
        if (begins(v->key, "tokenizer.") == tokenizer)
            ggl_fprint(stdout, "  %-44.*s %s\n", (int)v->key.n, v->key.s, value_text(v, text, sizeof text));
    }
}

static void print_tensors(const tensor_row *rows, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const tensor_row *r = &rows[i];
        char shape[128], layers[48] = "";
        if (r->in_layers && r->n == r->last - r->first + 1 && r->n > 1)
            snprintf(layers, sizeof layers, "l = %d .. %d", r->first, r->last);
        else if (r->in_layers && r->n > 1)
            snprintf(layers, sizeof layers, "%d of l = %d .. %d", r->n, r->first, r->last);
        else if (r->in_layers)
            snprintf(layers, sizeof layers, "l = %d", r->first);
        ggl_fprint(stdout, "  %-34s %-20s %-6s %14" PRIu64 "  %s\n", r->key.name, tensor_shape(r->one, shape, sizeof shape),
               tensor_type(r->one), r->params, layers);
    }
}

typedef struct type_sum {
    int64_t type; /* first: the key */
    const ggl_gguf_tensor *one;
    uint64_t params, bytes;
} type_sum;

/* A line for each type, in the order of their first tensors. False: out of memory. */
static bool print_types(const tensor_row *rows, size_t n, uint64_t params, uint64_t bytes) {
    type_sum *sum = calloc(n + 1, sizeof *sum);
    ggl_index x = {0};
    size_t n_sum = 0;
    bool ok = sum && ggl_index_init(&x, n, sizeof *sum, sizeof sum->type, NULL) == GGL_OK;
    for (size_t i = 0; ok && i < n; i++) {
        GGL_STEPS(1);
        sum[n_sum] = (type_sum){.type = rows[i].key.type, .one = rows[i].one};
        size_t first = ggl_index_put(&x, sum, n_sum);
        sum[first].params += rows[i].params;
        sum[first].bytes += rows[i].bytes;
        n_sum += first == n_sum;
    }
    for (size_t i = 0; ok && i < n_sum; i++)
        printf("  %-6s %14" PRIu64 " parameters %14" PRIu64 " bytes %6.1f %%\n", tensor_type(sum[i].one), sum[i].params,
               sum[i].bytes, bytes ? 100.0 * (double)sum[i].bytes / (double)bytes : 0);
    if (ok)
        printf("  %-6s %14" PRIu64 " parameters %14" PRIu64 " bytes, %.2f bits each\n", "all", params, bytes,
               params ? 8.0 * (double)bytes / (double)params : 0);
    ggl_index_fini(&x);
    free(sum);
    return ok;
}

static int show(const ggl_gguf *f) {
    tensor_row *rows;
    size_t n;
    if (!tensor_rows(f, &rows, &n))
        return tool_error(TOOL, 1, "out of memory");
    uint64_t params = 0, bytes = 0;
    for (size_t i = 0; i < n; i++) {
        params += rows[i].params;
        bytes += rows[i].bytes;
    }
    ggl_fprint(stdout, "%s: GGUF version %" PRIu32 ", %zu keys, %zu tensor%s, %d file%s\n\nkeys\n", ggl_gguf_name(f), ggl_gguf_version(f),
           ggl_gguf_n_values(f), ggl_gguf_n_tensors(f), ggl_gguf_n_tensors(f) == 1 ? "" : "s", ggl_gguf_n_parts(f), ggl_gguf_n_parts(f) > 1 ? "s" : "");
    print_keys(f, false);
    printf("\ntokenizer\n");
    print_keys(f, true);
    printf("\ntensors\n");
    print_tensors(rows, n);
    printf("\ntypes\n");
    bool ok = print_types(rows, n, params, bytes);
    free(rows);
    return ok ? 0 : tool_error(TOOL, 1, "out of memory");
}

int arch_show(int argc, char **argv) {
    arg_list files = {0};
    int code = arch_args(TOOL, "MODEL", "Prints a model's keys, its tensors (alike ones of all layers in one line), parameters and bytes.",
                         NULL, 1, 1, argc, argv, &files);
    if (code >= 0)
        return code;
    ggl_error err = {0};
    ggl_gguf *f;
    ggl_gguf_params p = {.meta_only = true};
    code = ggl_gguf_open(&f, files.s[0], &p, &err) == GGL_OK ? show(f) : tool_error(TOOL, 1, "%s", err.msg);
    if (f)
        arch_note_truncated(files.s[0]);
    ggl_gguf_close(f);
    args_list_fini(&files);
    return code;
}
