/* llm-arch diff: compares two descriptors by the graphs that they make of the same model, or two
 * models by their keys and tensors. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/load.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "tensors.h"
#include "tool.h"

#define TOOL "llm-arch diff"

typedef struct lines {
    char **at;
    /* n_things: how many tensors the lines stand for; 0: each line counts as one */
    size_t n, cap, n_things;
    bool failed;
} lines;

static void add_line(lines *l, const char *text) {
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 256;
        char **grown = realloc(l->at, cap * sizeof *grown);
        if (!grown) {
            l->failed = true;
            return;
        }
        l->at = grown;
        l->cap = cap;
    }
    l->at[l->n] = ggl_copy_text(text);
    l->failed |= !l->at[l->n];
    l->n += l->at[l->n] != NULL;
}

static void lines_fini(lines *l) {
    for (size_t i = 0; i < l->n; i++)
        free(l->at[i]);
    free(l->at);
    *l = (lines){0};
}

/* --- the longest common subsequence ----------------------------------------------------------- */

#define MOST_CELLS ((size_t)1 << 28)

/* Prints lines only in a as "- ..", lines only in b as "+ ..", and with `context` lines of both
 * as " ..". Returns how many differ; -1: out of memory. */
static long print_diff(const lines *a, const lines *b, bool context) {
    size_t head = 0, tail = 0;
    while (head < a->n && head < b->n && strcmp(a->at[head], b->at[head]) == 0)
        head++;
    while (tail < a->n - head && tail < b->n - head &&
           strcmp(a->at[a->n - 1 - tail], b->at[b->n - 1 - tail]) == 0)
        tail++;
    size_t n = a->n - head - tail, m = b->n - head - tail, w = m + 1;
    if ((n + 1) * w > MOST_CELLS)
        return -1;
    uint32_t *len = calloc((n + 1) * w, sizeof *len); /* [i][j]: length for a[i..) and b[j..) */
    if (!len)
        return -1;
    for (size_t i = n; i-- > 0;)
        for (size_t j = m; j-- > 0;)
            len[i * w + j] = strcmp(a->at[head + i], b->at[head + j]) == 0
                                 ? len[(i + 1) * w + j + 1] + 1
                             : len[(i + 1) * w + j] > len[i * w + j + 1] ? len[(i + 1) * w + j]
                                                                         : len[i * w + j + 1];
    long differ = 0;
    for (size_t i = 0; i < head && context; i++)
        ggl_fprint(stdout, "  %s\n", a->at[i]);
    for (size_t i = 0, j = 0; i < n || j < m;) {
        if (i < n && j < m && strcmp(a->at[head + i], b->at[head + j]) == 0) {
            if (context)
                ggl_fprint(stdout, "  %s\n", a->at[head + i]);
            i++;
            j++;
        } else if (j == m || (i < n && len[(i + 1) * w + j] >= len[i * w + j + 1])) {
            ggl_fprint(stdout, "- %s\n", a->at[head + i++]);
            differ++;
        } else {
            ggl_fprint(stdout, "+ %s\n", b->at[head + j++]);
            differ++;
        }
    }
    for (size_t i = a->n - tail; i < a->n && context; i++)
        ggl_fprint(stdout, "  %s\n", a->at[i]);
    free(len);
    return differ;
}

static int print_and_count(const lines *a, const lines *b, bool context, const char *what) {
    if (a->failed || b->failed)
        return tool_error(TOOL, 1, "out of memory");
    long n = print_diff(a, b, context);
    if (n < 0)
        return tool_error(TOOL, 1, "too many lines to compare");
    if (n == 0 && a->n_things > a->n)
        printf("the same %s (%zu in %zu lines)\n", what, a->n_things, a->n);
    else if (n == 0)
        printf("the same %s (%zu)\n", what, a->n);
    return n > 0;
}

/* --- models ----------------------------------------------------------------------------------- */

static int compare_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns the key, without the architecture's name if it begins with it, as descriptors write
 * it: ".block_count". */
static ggl_str without_arch(const ggl_gguf *f, ggl_str key) {
    ggl_str arch;
    if (ggl_gguf_get_string(f, "general.architecture", &arch, NULL) == 1 && key.n > arch.n &&
        key.s[arch.n] == '.' && memcmp(key.s, arch.s, arch.n) == 0)
        return (ggl_str){key.s + arch.n, key.n - arch.n};
    return key;
}

/* Adds "name: value" for each key, and a line for each tensor, sorted, so that the order in the
 * file does not matter. */
static void model_lines(const ggl_gguf *f, lines *keys, lines *tensors) {
    char text[1400], value[1024];
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(f, i);
        ggl_str key = without_arch(f, v->key);
        snprintf(text, sizeof text, "%.*s = %s", (int)(key.n < 200 ? key.n : 200), key.s,
                 value_text(v, value, sizeof value));
        add_line(keys, text);
    }
    tensor_row *rows;
    size_t n;
    if (!tensor_rows(f, NULL, &rows, &n)) {
        tensors->failed = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char layers[48] = "";
        if (rows[i].in_layers)
            snprintf(layers, sizeof layers, ", %d in l = %d .. %d", rows[i].n, rows[i].first,
                     rows[i].last);
        snprintf(text, sizeof text, "%s %s %s%s", rows[i].key.name,
                 tensor_shape(rows[i].one, value, sizeof value), tensor_type(rows[i].one), layers);
        add_line(tensors, text);
    }
    tensors->n_things = ggl_gguf_n_tensors(f);
    free(rows);
    if (!keys->failed && !tensors->failed) {
        qsort(keys->at, keys->n, sizeof *keys->at, compare_text);
        qsort(tensors->at, tensors->n, sizeof *tensors->at, compare_text);
    }
}

static int diff_models(const char *a, const char *b) {
    ggl_error err = {0};
    ggl_gguf *f[2] = {NULL, NULL};
    ggl_gguf_params p = {.size = sizeof p, .meta_only = true};
    lines keys[2] = {0}, tensors[2] = {0};
    int code = 0;
    if (tool_open_gguf(&f[0], a, &p, &err) != GGL_OK ||
        tool_open_gguf(&f[1], b, &p, &err) != GGL_OK)
        code = tool_error(TOOL, 1, "%s", err.msg);
    for (int k = 0; k < 2 && f[1]; k++)
        arch_note_truncated(k ? b : a);
    for (int k = 0; k < 2 && f[1]; k++)
        model_lines(f[k], &keys[k], &tensors[k]);
    if (f[1]) {
        printf("keys\n");
        code = print_and_count(&keys[0], &keys[1], false, "keys");
        printf("\ntensors\n");
        int more = print_and_count(&tensors[0], &tensors[1], false, "tensors");
        code = more > code ? more : code;
    }
    for (int k = 0; k < 2; k++) {
        lines_fini(&keys[k]);
        lines_fini(&tensors[k]);
        ggl_gguf_close(f[k]);
    }
    return code;
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* Adds a line for each node: layer, operator, shape, weights, numbers. Line numbers of the
 * descriptor are left out, as they would always differ. */
static void graph_lines(const ggl_graph *g, lines *l) {
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        char text[512], op[256], shape[128] = "";
        if (!t->needed || t->op == GGL_OP_INPUT || t->op == GGL_OP_WEIGHT || t->op == GGL_OP_CONST)
            continue;
        size_t n = 0;
        for (int d = 0; d < t->n_dims && n < sizeof shape; d++)
            n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%" PRId64, d ? ", " : "",
                                  t->ne[d]);
        char layer[16] = "     ";
        if (t->group >= 0)
            snprintf(layer, sizeof layer, "%-5d", t->group);
        snprintf(text, sizeof text, "%s %-60s [%s]", layer, arch_node_op(t, op, sizeof op), shape);
        add_line(l, text);
    }
}

static ggl_status descriptor_lines(const llm_arch *arch, const char *model, bool first,
                                   const tool_ignore *ignore, int variant, lines *l,
                                   ggl_error *err) {
    ggl_backend *fold = NULL;
    ggl_gguf *f = NULL;
    llm_arch_toy *toy = NULL;
    llm_arch_source source;
    ggl_status st = GGL_OK;
    if (model) {
        st = tool_open_gguf(&f, model, NULL, err);
        source = llm_arch_source_gguf(f);
    } else {
        toy = llm_arch_toy_new(arch, variant, err);
        if (!toy)
            return err->status;
        source = *llm_arch_toy_source(toy);
    }
    arch_built b = {0};
    if (st == GGL_OK)
        st = ggl_backend_open(&fold, "reference", NULL, err);
    if (st == GGL_OK)
        st = arch_build(&b, arch, &source, ignore, NULL, false,
                        toy ? llm_arch_toy_n_ctx(toy) : arch_context(f, 64), 16, fold, err);
    if (first)
        arch_print_notes(&b);
    if (st == GGL_OK)
        graph_lines(b.graph, l);
    arch_built_fini(&b);
    llm_arch_toy_free(toy);
    ggl_gguf_close(f);
    ggl_backend_close(fold);
    return st;
}

static int diff_descriptors(const char *a, const char *b, const char *model,
                            const tool_ignore *ignore, bool without, bool context) {
    ggl_error err = {0};
    lines l[2] = {0};
    llm_arch *arch[2] = {arch_open(TOOL, a), NULL};
    int code = -1;
    if (arch[0])
        arch[1] = arch_open(TOOL, b);
    if (!arch[1])
        code = 1;
    for (int k = 0; k < 2 && code < 0; k++)
        if (descriptor_lines(arch[k], model, k == 0, ignore, without ? 0 : 1, &l[k], &err) !=
            GGL_OK)
            code = tool_error(TOOL, 1, "%s", err.msg);
    if (code < 0)
        code = print_and_count(&l[0], &l[1], context, "nodes");
    for (int k = 0; k < 2; k++) {
        lines_fini(&l[k]);
        llm_arch_free(arch[k]);
    }
    return code;
}

int arch_diff(int argc, char **argv) {
    arg_list files = {0};
    bool without = false, all = false;
    tool_ignore ignore = {0};
    const arg_option options[] = {{"--without", ARG_FLAG, &without,
                                   .help = "descriptors without a model: leave out everything that "
                                           "is optional, instead of including it"},
                                  {"--all", ARG_FLAG, &all, .help = "also print what is the same"},
                                  IGNORE_OPTIONS(ignore),
                                  {0}};
    static const args_example examples[] = {
        {"llm-arch diff old.arch new.arch", "what changes in the graph?"},
        {"llm-arch diff a.gguf b.gguf", "in which keys and tensors do two models differ?"},
        {0}};
    const args_spec spec = {
        TOOL,
        "A B [MODEL] [options]",
        "Compares two descriptors (the nodes of their graphs of MODEL, or of "
        "made-up models with every optional\nkey and tensor) or two models (their "
        "keys and tensors). Exit code 0: they are the same, 1: they differ.",
        options,
        &files,
        NULL,
        .examples = examples};
    int code = arch_args(&spec, 2, 3, argc, argv);
    if (code >= 0)
        return code;
    bool a = arch_is_model(files.s[0]), b = arch_is_model(files.s[1]);
    if (a != b)
        code =
            tool_error(TOOL, 2, "%s is a model, but %s is not; only two of a kind can be compared",
                       files.s[a ? 0 : 1], files.s[a ? 1 : 0]);
    else if (a && files.n > 2)
        code = tool_error(
            TOOL, 2, "two models are compared directly; a third argument is only for descriptors");
    else
        code = a ? diff_models(files.s[0], files.s[1])
                 : diff_descriptors(files.s[0], files.s[1], files.n > 2 ? files.s[2] : NULL,
                                    &ignore, without, all);
    args_list_fini(&files);
    ignore_fini(&ignore);
    return code;
}
