/* llm-arch graph: the graph of a descriptor and a model, as text, DOT, or a picture. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/load.h"
#include "common/paths.h"
#include "figure.h"
#include "ggl/internal/file.h"
#include "ggl/internal/show.h"
#include "common/shape_source.h"
#include "svg.h"
#include "tool.h"

#define TOOL "llm-arch graph"

/* --- text ------------------------------------------------------------------------------------- */

static void print_text(FILE *out, const figure *f) {
    for (int k = 0; k < f->n; k++) {
        const figure_block *b = &f->block[k];
        if (k)
            fputc('\n', out);
        ggl_fprint(out, "%s (%" PRIu64 " parameters%s)\n", b->title, b->params,
                   b->n_layers > 1 ? " each" : "");
        for (int i = 0; i < b->n; i++) {
            const figure_node *n = &b->node[i];
            char text[512];
            size_t at = (size_t)snprintf(text, sizeof text, "%s",
                                         n->kind == FIGURE_PORT && !n->t ? "-> " : "");
            at += (size_t)snprintf(text + at, sizeof text - at, "%s", n->title);
            for (int j = 0; j < n->n_in && at < sizeof text; j++)
                at += (size_t)snprintf(text + at, sizeof text - at, "%s%d [%s]", j ? ", " : " <- ",
                                       n->in[j], n->in_shape[j]);
            ggl_fprint(out, "  %3d  %-44s", i, text);
            for (int j = 0; j < n->n_lines; j++)
                ggl_fprint(out, "%s%s", j ? "; " : " ", n->line[j]);
            ggl_fprint(out, "%s%s%s\n", n->origin[0] ? "  :" : "", n->origin,
                       n->by_body ? "  (by its body)" : "");
        }
    }
}

/* --- DOT -------------------------------------------------------------------------------------- */

static void print_quoted(FILE *out, const char *s) {
    for (; *s; s++)
        ggl_fprint(out, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
}

static void print_dot(FILE *out, const figure *f, const char *name) {
    ggl_fprint(out, "digraph \"");
    print_quoted(out, name);
    ggl_fprint(out,
               "\" {\n  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n"
               "  edge [fontname=\"sans-serif\", fontsize=9];\n");
    for (int k = 0; k < f->n; k++) {
        const figure_block *b = &f->block[k];
        ggl_fprint(out, "  subgraph cluster_%d {\n    label=\"", k);
        print_quoted(out, b->title);
        ggl_fprint(out, "\";\n");
        for (int i = 0; i < b->n; i++) {
            const figure_node *n = &b->node[i];
            ggl_fprint(out, "    n%d_%d [label=\"", k, i);
            print_quoted(out, n->title);
            for (int j = 0; j < n->n_lines; j++) {
                ggl_fprint(out, "\\n");
                print_quoted(out, n->line[j]);
            }
            ggl_fprint(out, "\"%s];\n",
                       n->kind == FIGURE_PORT   ? ", shape=plaintext"
                       : n->kind == FIGURE_PLUS ? ", shape=circle"
                                                : "");
        }
        for (int i = 0; i < b->n; i++)
            for (int j = 0; j < b->node[i].n_in; j++)
                ggl_fprint(out, "    n%d_%d -> n%d_%d [label=\"%s\"];\n", k, b->node[i].in[j], k, i,
                           b->node[i].in_shape[j]);
        ggl_fprint(out, "  }\n");
    }
    ggl_fprint(out, "}\n");
}

/* --- the command ------------------------------------------------------------------------------ */

typedef struct options {
    const char *backend, *out;
    const char *shape; /* NULL: not given */
    const char *stage; /* NULL: not given */
    int format;
    int64_t variant;
    tool_ignore ignore;
} options;

/* Where a graph's keys and tensors come from: a model, a published shape, or made-up sizes. */
typedef struct origin {
    const char *text; /* for the head of a picture */
    ggl_gguf *file;
    llm_arch_toy *toy;
    bench_shape shape;
    bench_shape_source shaped;
} origin;

static void origin_fini(origin *from) {
    llm_arch_toy_free(from->toy);
    ggl_gguf_close(from->file);
}

static ggl_status build(const options *o, const llm_arch *arch, const char *model, origin *from,
                        arch_built *b, ggl_backend *fold, ggl_error *err) {
    llm_arch_source source;
    from->text = model;
    if (o->shape) {
        from->shaped = (bench_shape_source){.shape = &from->shape, .wanted = GGL_F16};
        source = bench_shape_source_of(&from->shaped);
        from->text = from->shape.name;
        fold = NULL; /* there are no values to fold */
    } else if (model) {
        ggl_status st = tool_open_gguf(&from->file, model, NULL, err);
        if (st != GGL_OK)
            return st;
        source = llm_arch_source_gguf(from->file);
    } else {
        from->toy = llm_arch_toy_new(arch, (int)o->variant, err);
        if (!from->toy)
            return err->status;
        source = *llm_arch_toy_source(from->toy);
        from->text = llm_arch_toy_text(from->toy);
    }
    ggl_graph_params p = ggl_graph_default();
    p.n_pos = from->toy ? llm_arch_toy_n_ctx(from->toy) : arch_context(from->file, 64);
    p.n_batch = p.n_pos < 16 ? p.n_pos : 16;
    return arch_build_graph(b, arch, &source, &o->ignore, o->stage, false, &p, from->shape.n_vocab,
                            fold, err);
}

static ggl_status print_to(FILE *out, const options *o, const figure *f, const llm_arch *arch,
                           const char *of, const ggl_backend *b, ggl_error *err) {
    if (o->format == 0)
        print_text(out, f);
    else if (o->format == 1)
        print_dot(out, f, llm_arch_name(arch));
    else
        return svg_draw(out, f, llm_arch_name(arch), of, b->name, err);
    return GGL_OK;
}

static int print(const options *o, const figure *f, const llm_arch *arch, const char *of,
                 const ggl_backend *b) {
    ggl_error err = {0};
    ggl_new_file *file = NULL;
    if (o->out && ggl_new_file_open(&file, o->out, &err) != GGL_OK)
        return tool_error(TOOL, 1, "-o: %s", err.msg);
    FILE *out = file ? ggl_new_file_stream(file) : stdout;
    if (print_to(out, o, f, arch, of, b, &err) != GGL_OK) {
        ggl_new_file_discard(file);
        return tool_error(TOOL, 1, "%s", err.msg);
    }
    if (file && ggl_new_file_commit(file, &err) != GGL_OK)
        return tool_error(TOOL, 1, "-o: %s", err.msg);
    return 0;
}

/* Checks --stage, and says which stages are graphs of their own. */
static bool check_stage(const options *o, const llm_arch *arch) {
    char names[256] = "";
    const char *stage;
    for (int k = 0; (stage = llm_arch_rows_stage(arch, k)); k++) {
        const size_t n = strlen(names);
        if (o->stage && strcmp(o->stage, stage) == 0)
            return true;
        snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", stage);
    }
    if (o->stage)
        tool_error(TOOL, 2, "--stage: %s has no stage '%s' of its own%s%s", llm_arch_name(arch),
                   o->stage, *names ? "; it has " : "", names);
    else if (*names)
        tool_note(TOOL, "stages before this one are graphs of their own: --stage NAME draws %s",
                  names);
    return !o->stage;
}

/* file: the descriptor; NULL: that of the shape. */
static int draw(const options *o, const char *file, const char *model) {
    ggl_error err = {0};
    arch_built b = {0};
    static origin from; /* too large for the stack of some systems */
    from = (origin){0};
    ggl_backend *backend = NULL, *reference = NULL;
    figure fig = {0};
    if (o->shape && bench_shape_find(&from.shape, BENCH_SHAPES, o->shape, &err) != GGL_OK)
        return tool_error(TOOL, 2, "--shape: %s", err.msg);
    llm_arch *arch = NULL;
    if (file)
        arch = arch_open(TOOL, file);
    else if (llm_arch_open(&arch, from.shape.arch, &err) != GGL_OK)
        tool_error(TOOL, 1, "%s", err.msg);
    if (!arch)
        return 1;
    if (!check_stage(o, arch)) {
        llm_arch_free(arch);
        return 2;
    }
    ggl_status st = ggl_backend_open(&reference, "reference", NULL, &err);
    if (st == GGL_OK)
        st = build(o, arch, model, &from, &b, reference, &err);
    int code = 1;
    arch_print_notes(&b);
    if (st == GGL_OK)
        st = ggl_backend_open(&backend, o->backend, NULL, &err);
    if (st != GGL_OK)
        tool_error(TOOL, 1, "%s", err.msg);
    else if (!figure_make(&fig, b.graph, (int)b.result.n_layer, backend))
        tool_error(TOOL, 1, "out of memory");
    else
        code = print(o, &fig, arch, from.text, backend);
    figure_fini(&fig);
    arch_built_fini(&b);
    origin_fini(&from);
    ggl_backend_close(backend);
    ggl_backend_close(reference);
    llm_arch_free(arch);
    return code;
}

int arch_graph(int argc, char **argv) {
    static const char *const formats[] = {"text", "dot", "svg", NULL};
    options o = {.backend = "cpu", .variant = 0};
    arg_list files = {0};
    bool all = false;
    const arg_option list[] = {
        {"--format", ARG_CHOICE, &o.format, .value = "F", .help = "text (default), dot or svg",
         .choices = formats},
        {"-o --output", ARG_STRING, &o.out, .value = "FILE",
         .help = "the file to write (default: standard output)"},
        {"--all", ARG_FLAG, &all,
         .help = "without a model: draw everything that is optional, instead of nothing"},
        {"--shape", ARG_STRING, &o.shape, .value = "NAME",
         .help = "without a model: use the sizes of a published model ('llm-bench make --list')"},
        {"--stage", ARG_STRING, &o.stage, .value = "NAME",
         .help = "draw this stage over rows, which is a graph of its own (default: the last one, "
                 "and the tokens)"},
        {"--backend", ARG_STRING, &o.backend, .value = "NAME",
         .help = "mark the composites of this backend (default cpu)"},
        IGNORE_OPTIONS(o.ignore),
        {0}};
    static const args_example examples[] = {
        {"llm-arch graph my.arch", "prints the graph as text"},
        {"llm-arch graph my.arch model.gguf --format svg -o graph.svg",
         "draws the graph of a model by it"},
        {"llm-arch graph --shape tinyllama-1.1b --format svg -o tiny.svg",
         "draws a published model without its file"},
        {0}};
    const args_spec spec = {
        TOOL,
        "FILE [MODEL] | [FILE] --shape NAME [options]",
        "Draws the graph of a descriptor with a model, a published shape or made-up sizes: the "
        "nodes before\nthe layers, one layer of each kind, the nodes after them; shapes on the "
        "edges, innermost first.",
        list,
        &files,
        NULL,
        .examples = examples};
    int code = arch_args(&spec, 0, 2, argc, argv);
    if (code >= 0)
        return code;
    o.variant = all;
    if (!o.shape && files.n == 0)
        code = tool_error(TOOL, 2,
                          "FILE is missing: a descriptor, or the name of a built-in one; "
                          "or --shape NAME draws a published model");
    else if (o.shape && (all || files.n > 1))
        code = tool_error(TOOL, 2, "--shape gives the sizes: %s cannot be given with it",
                          all ? "--all" : "a model");
    const tool_path paths[] = {{"FILE", files.n > 0 ? files.s[0] : NULL, .written = false},
                               {"MODEL", files.n > 1 ? files.s[1] : NULL, .written = false},
                               {"-o", o.out, .written = true}};
    if (code < 0)
        code = tool_check_paths(TOOL, paths, 3);
    if (code < 0)
        code = draw(&o, files.n > 0 ? files.s[0] : NULL, files.n > 1 ? files.s[1] : NULL);
    args_list_fini(&files);
    ignore_fini(&o.ignore);
    return code;
}
