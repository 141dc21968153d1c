/* llm-arch graph: the graph of a descriptor and a model, as text, DOT, or a picture. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/paths.h"
#include "figure.h"
#include "ggl/file.h"
#include "ggl/show.h"
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
    int format;
    int64_t variant;
    tool_ignore ignore;
} options;

static ggl_status build(const options *o, const llm_arch *arch, const char *model, arch_built *b,
                        llm_arch_toy **toy, ggl_gguf **f, ggl_backend *fold, ggl_error *err) {
    llm_arch_source source;
    if (model) {
        ggl_status st = ggl_gguf_open(f, model, NULL, err);
        if (st != GGL_OK)
            return st;
        source = llm_arch_source_gguf(*f);
    } else {
        *toy = llm_arch_toy_new(arch, (int)o->variant, err);
        if (!*toy)
            return err->status;
        source = *llm_arch_toy_source(*toy);
    }
    return arch_build(b, arch, &source, &o->ignore, arch_context(*f, 64), 16, fold, err);
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

static int draw(const options *o, const char *file, const char *model) {
    ggl_error err = {0};
    arch_built b = {0};
    llm_arch_toy *toy = NULL;
    ggl_gguf *f = NULL;
    ggl_backend *backend = NULL, *reference = NULL;
    figure fig = {0};
    llm_arch *arch = arch_open(TOOL, file);
    if (!arch)
        return 1;
    ggl_status st = ggl_backend_open(&reference, "reference", NULL, &err);
    if (st == GGL_OK)
        st = build(o, arch, model, &b, &toy, &f, reference, &err);
    int code = 1;
    arch_print_notes(&b);
    if (st == GGL_OK)
        st = ggl_backend_open(&backend, o->backend, NULL, &err);
    if (st != GGL_OK)
        tool_error(TOOL, 1, "%s", err.msg);
    else if (!figure_make(&fig, b.graph, (int)b.result.n_layer, backend))
        tool_error(TOOL, 1, "out of memory");
    else
        code = print(o, &fig, arch, model ? model : llm_arch_toy_text(toy), backend);
    figure_fini(&fig);
    arch_built_fini(&b);
    llm_arch_toy_free(toy);
    ggl_gguf_close(f);
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
         .help = "without a model: with everything optional, instead of nothing"},
        {"--backend", ARG_STRING, &o.backend, .value = "NAME",
         .help = "mark the composites of this backend (default cpu)"},
        IGNORE_OPTIONS(o.ignore),
        {0}};
    static const args_example examples[] = {
        {"llm-arch graph my.arch", "prints the graph as text"},
        {"llm-arch graph my.arch model.gguf --format svg -o graph.svg",
         "draws the graph of a model by it"},
        {0}};
    const args_spec spec = {
        TOOL,
        "FILE [MODEL] [options]",
        "Draws the graph of a descriptor with a model, or with made-up sizes: the "
        "nodes before the layers,\none layer of each kind, the nodes after them; "
        "shapes on the edges, innermost first.",
        list,
        &files,
        NULL,
        .examples = examples};
    int code = arch_args(&spec, 1, 2, argc, argv);
    if (code >= 0)
        return code;
    o.variant = all;
    const tool_path paths[] = {{"FILE", files.s[0], .written = false},
                               {"MODEL", files.n > 1 ? files.s[1] : NULL, .written = false},
                               {"-o", o.out, .written = true}};
    code = tool_check_paths(TOOL, paths, 3);
    if (code < 0)
        code = draw(&o, files.s[0], files.n > 1 ? files.s[1] : NULL);
    args_list_fini(&files);
    ignore_fini(&o.ignore);
    return code;
}
