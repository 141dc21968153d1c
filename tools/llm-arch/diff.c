/* llm-arch diff: compares two descriptors by the graphs that they make of the same model, or two
 * models by their keys and tensors. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/load.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/number.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "ggl/internal/xxh64.h"
#include "ggl/program.h"
#include "tensors.h"
#include "tool.h"

#define TOOL "llm-arch diff"

typedef struct lines {
    char **at;
    /* n_things: how many tensors the lines stand for; 0: each line counts as one */
    size_t n, cap, n_things;
    /* of nodes: from[i] says which lines line i reads; node: each line's, while the graph is there. Others have neither. */
    char **from;
    const ggl_tensor **node;
    size_t n_node, cap_node;
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
    for (size_t i = 0; l->from && i < l->n; i++)
        free(l->from[i]);
    free(l->at);
    free(l->from);
    ggl_free(l->node);
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

GGL_PRINTF(3, 4)
static void append(char *buf, size_t size, const char *fmt, ...) {
    const size_t n = strlen(buf);
    va_list args;
    va_start(args, fmt);
    vsnprintf(buf + n, size - n, fmt, args);
    va_end(args);
}

static double const_at(const ggl_tensor *x, int64_t i) {
    return x->type == GGL_F64   ? ((const double *)x->data)[i]
           : x->type == GGL_F32 ? (double)((const float *)x->data)[i]
                                : (double)((const int32_t *)x->data)[i];
}

/* Writes a number with the fewest digits that tell it from others; a file's f32 as such. */
static const char *number(char text[GGL_NUMBER_TEXT], double x) {
    return ggl_number_shortest(text, x, (double)(float)x == x);
}

/* Appends a constant: a number; or the extents of several, and a digest of them as f32, because two ways to compute a number may differ
 * in the last digits of a double. */
static void append_const(char *buf, size_t size, const ggl_tensor *x) {
    char text[GGL_NUMBER_TEXT];
    const int64_t n = ggl_count(x);
    if (n == 1) {
        append(buf, size, " %s", number(text, const_at(x, 0)));
        return;
    }
    ggl_xxh64 h;
    ggl_xxh64_begin(&h);
    for (int64_t i = 0; i < n; i++) {
        const float value = (float)const_at(x, i);
        ggl_xxh64_add(&h, &value, sizeof value);
    }
    for (int d = 0; d < x->n_dims; d++)
        append(buf, size, "%s%" PRId64, d ? "," : " constants ", x->ne[d]);
    append(buf, size, " %016" PRIx64, ggl_xxh64_end(&h));
}

/* Appends an operand: a weight with its type, an input, a constant, or ".." for the value of another node. */
static void append_operand(char *buf, size_t size, const ggl_tensor *x) {
    const ggl_tensor *w = !x           ? NULL
                          : x->view_of ? x->view_of
                          : x->gather  ? x->src[0]->view_of
                                       : NULL;
    if (w && w->op == GGL_OP_WEIGHT)
        append(buf, size, " %s:%s", w->name, ggl_type_get(w->type)->name);
    else if (x && x->op == GGL_OP_CONST)
        append_const(buf, size, x);
    else if (x)
        append(buf, size, " %s", x->op == GGL_OP_INPUT ? x->name : "..");
}

/* Writes the operator, its operands and its numbers: "linear .. blk.0.attn_q.weight:q8_0", "- 1 ..", "attend .. .. scale 0.25"; returns buf. */
static const char *node_op(const ggl_tensor *t, char *buf, size_t size) {
    const ggl_op_info info = ggl_op_get(t->op);
    const char *name = t->call ? t->call : t->op == GGL_OP_CALL ? "body" : info.name;
    const size_t n = strlen(name);
    char text[GGL_NUMBER_TEXT];
    if (name[0] == '<' && n > 2) /* a name like "<split>" cannot be called */
        snprintf(buf, size, "%.*s", (int)n - 2, name + 1);
    else
        snprintf(buf, size, "%s", name);
    for (int i = 0; i < t->n_src; i++)
        append_operand(buf, size, t->src[i]);
    for (int i = 0; t->op == GGL_OP_CALL && i < t->n_num; i++)
        append(buf, size, " (%s)", number(text, t->num[i]));
    for (int i = 0, k = 0; k < info.n_params && i < t->n_num; k++) {
        const ggl_param p = ggl_op_param(t->op, k);
        if (p.kind != GGL_PARAM_NUMBER || p.variadic)
            continue;
        if (!isnan(t->num[i]) && t->num[i] != p.fallback)
            append(buf, size, " %s %s", p.name, number(text, t->num[i]));
        i++;
    }
    return buf;
}

/* Returns the line of the node that has this value; -1: it is no node's. */
static long line_of(const lines *l, const ggl_tensor *x) {
    for (size_t i = l->n_node; x && i-- > 0;)
        if (l->node[i] == x)
            return (long)i;
    return x && x->view_of && x->view_of != x ? line_of(l, x->view_of) : -1;
}

/* Sets l->from: the numbers of the lines that are operands of each line, p1 for the second parameter of a body. */
static void add_wires(lines *l) {
    l->from = l->failed ? NULL : calloc(l->n + 1, sizeof *l->from);
    l->failed |= !l->from;
    for (size_t i = 0; i < l->n && !l->failed; i++) {
        char text[512] = "";
        for (int k = 0; k < l->node[i]->n_src; k++) {
            const ggl_tensor *x = l->node[i]->src[k];
            const bool is_param = x && x->op == GGL_OP_PARAM;
            append(text, sizeof text, " %s%ld", is_param ? "p" : "",
                   is_param ? (long)x->id : line_of(l, x));
        }
        l->from[i] = ggl_copy_text(text);
        l->failed |= !l->from[i];
    }
}

static void node_line(const ggl_tensor *t, int depth, lines *l) {
    char text[5120], op[4096], shape[128] = "", layer[16] = "     ";
    size_t n = 0;
    if (!t->needed || ggl_is_leaf(t) || t->op == GGL_OP_PARAM)
        return;
    for (int d = 0; d < t->n_dims && n < sizeof shape; d++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%" PRId64, d ? ", " : "", t->ne[d]);
    if (t->group >= 0)
        snprintf(layer, sizeof layer, "%-5d", t->group);
    snprintf(text, sizeof text, "%s %*s%-*s [%s]", layer, 2 * depth, "", 60 - 2 * depth,
             node_op(t, op, sizeof op), shape);
    l->failed |= !ggl_grow(&l->node, &l->cap_node, l->n_node + 1, sizeof *l->node);
    if (l->failed)
        return;
    l->node[l->n_node++] = t;
    add_line(l, text);
    /* the name of a composite of the prelude, and its numbers, say all of its body */
    for (int i = 0; t->body && ggl_composite_of(t) == GGL_COMPOSITE_NONE && i < t->body->n_node;
         i++)
        node_line(t->body->node[i], depth + 1, l);
}

/* Opens what both graphs are made of: the model, or (model NULL) one that is made up for the descriptor. */
typedef struct origin {
    ggl_gguf *file;
    llm_arch_toy *toy;
    llm_arch_source source;
    int64_t n_ctx;
} origin;

static ggl_status origin_open(origin *o, const llm_arch *arch, const char *model, int variant,
                              ggl_error *err) {
    *o = (origin){0};
    if (model) {
        if (tool_open_gguf(&o->file, model, NULL, err) != GGL_OK)
            return err->status;
        o->source = llm_arch_source_gguf(o->file);
        o->n_ctx = arch_context(o->file, 64);
        return GGL_OK;
    }
    o->toy = llm_arch_toy_new(arch, variant, err);
    if (!o->toy)
        return err->status;
    o->source = *llm_arch_toy_source(o->toy);
    o->n_ctx = llm_arch_toy_n_ctx(o->toy);
    return GGL_OK;
}

/* Adds a line for each node: layer, operator, operands, shape. Line numbers of the descriptor are left out, as they would always differ.
 * fold: computes what depends on no token, so that these nodes have no lines, and their results are operands; NULL: they stay nodes. */
static ggl_status descriptor_lines(const llm_arch *arch, const char *model, bool notes,
                                   const tool_ignore *ignore, int variant, ggl_backend *fold,
                                   lines *l, ggl_error *err) {
    origin o;
    arch_built b = {0};
    ggl_status st = origin_open(&o, arch, model, variant, err);
    if (st == GGL_OK)
        st = arch_build(&b, arch, &o.source, ignore, NULL, false, o.n_ctx, 16, fold, err);
    if (notes)
        arch_print_notes(&b);
    for (int i = 0; st == GGL_OK && i < ggl_graph_n_nodes(b.graph); i++)
        node_line(ggl_graph_node(b.graph, i), 0, l);
    if (st == GGL_OK)
        add_wires(l);
    arch_built_fini(&b);
    llm_arch_toy_free(o.toy);
    ggl_gguf_close(o.file);
    return st;
}

static bool is_same(const lines *a, const lines *b) {
    bool same = a->n == b->n && !a->failed && !b->failed;
    for (size_t i = 0; same && i < a->n; i++)
        same = strcmp(a->at[i], b->at[i]) == 0;
    return same;
}

/* Compares graphs whose lines are the same. Prints each line that reads other lines in b than in a, and which lines it reads in both.
 * Returns how many lines do so. */
static long print_wires(const lines *a, const lines *b) {
    long n = 0;
    for (size_t i = 0; i < a->n; i++) {
        if (strcmp(a->from[i], b->from[i]) == 0)
            continue;
        ggl_fprint(stdout, "  line %zu: %s\n", i + 1, a->at[i]);
        char *of[2] = {a->from[i], b->from[i]};
        for (int k = 0; k < 2; k++)
            for (char *next, *at = of[k]; *at; at = next) {
                next = at + 1 + strcspn(at + 1, " ");
                const long line = at[1] == 'p' ? -1 : strtol(at, NULL, 10);
                if (line >= 0)
                    ggl_fprint(stdout, "%c     of line %ld: %s\n", k ? '+' : '-', line + 1,
                               a->at[line]);
            }
        n++;
    }
    return n;
}

/* Prints how graphs differ; what: what is the same if nothing does. Returns an exit code. */
static int print_graphs(const lines *a, const lines *b, bool context, const char *what) {
    return is_same(a, b) && print_wires(a, b) > 0 ? 1 : print_and_count(a, b, context, what);
}

/* Compares the graphs node by node. Where they differ, but not after everything that depends on no token has been computed, the descriptors
 * compute the same constants in two ways, and are the same. */
static int diff_graphs(llm_arch *const arch[2], const char *model, const tool_ignore *ignore,
                       int variant, bool context, ggl_error *err) {
    lines nodes[2] = {0}, folded[2] = {0};
    ggl_backend *fold = NULL;
    ggl_status st = GGL_OK;
    int code = 1;
    for (int k = 0; k < 2 && st == GGL_OK; k++)
        st = descriptor_lines(arch[k], model, k == 0, ignore, variant, NULL, &nodes[k], err);
    const bool same = st == GGL_OK && is_same(&nodes[0], &nodes[1]);
    if (st == GGL_OK && !same)
        st = ggl_backend_open(&fold, "reference", NULL, err);
    for (int k = 0; k < 2 && fold && st == GGL_OK; k++)
        st = descriptor_lines(arch[k], model, false, ignore, variant, fold, &folded[k], err);
    if (st != GGL_OK)
        tool_error(TOOL, 1, "%s", err->msg);
    else if (!same && is_same(&folded[0], &folded[1]))
        code = print_graphs(&folded[0], &folded[1], context,
                            "nodes and constants, which are computed in other ways");
    else
        code = print_graphs(&nodes[0], &nodes[1], context, "nodes");
    for (int k = 0; k < 2; k++) {
        lines_fini(&nodes[k]);
        lines_fini(&folded[k]);
    }
    ggl_backend_close(fold);
    return code;
}

static int diff_descriptors(const char *a, const char *b, const char *model,
                            const tool_ignore *ignore, bool without, bool context) {
    ggl_error err = {0};
    llm_arch *arch[2] = {arch_open(TOOL, a), NULL};
    if (arch[0])
        arch[1] = arch_open(TOOL, b);
    const int code = arch[1] ? diff_graphs(arch, model, ignore, without ? 0 : 1, context, &err) : 1;
    for (int k = 0; k < 2; k++)
        llm_arch_free(arch[k]);
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
