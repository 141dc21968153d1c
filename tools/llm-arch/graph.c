/* llm-arch graph: the graph of a descriptor and a model, as text, DOT, or a picture. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/char_width.h"
#include "common/fit_lines.h"
#include "common/load.h"
#include "common/paths.h"
#include "figure.h"
#include "ggl/internal/file.h"
#include "ggl/internal/show.h"
#include "common/shape_source.h"
#include "plot.h"
#include "tool.h"

#define TOOL "llm-arch graph"

/* --- text ------------------------------------------------------------------------------------- */

enum { TEXT_COLUMNS = 44 };

static void print_text(FILE *out, const figure *f, bool first) {
    for (int k = 0; k < f->n; k++) {
        const figure_block *b = &f->block[k];
        if (k || !first)
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
            const int room = TEXT_COLUMNS - char_columns(text, strlen(text));
            ggl_fprint(out, "  %3d  %s%*s", i, text, room > 0 ? room : 0, "");
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

/* Writes a block as a cluster; number: of the block among those of all figures. */
static void print_cluster(FILE *out, const figure_block *b, int number) {
    ggl_fprint(out, "  subgraph cluster_%d {\n    label=\"", number);
    print_quoted(out, b->title);
    ggl_fprint(out, "\";\n");
    for (int i = 0; i < b->n; i++) {
        const figure_node *n = &b->node[i];
        ggl_fprint(out, "    n%d_%d [label=\"", number, i);
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
            ggl_fprint(out, "    n%d_%d -> n%d_%d [label=\"%s\"];\n", number, b->node[i].in[j],
                       number, i, b->node[i].in_shape[j]);
    ggl_fprint(out, "  }\n");
}

static bool is_exit(const figure_node *n) {
    return n->kind == FIGURE_PORT && !n->t;
}

static void print_passing(FILE *out, int from, int out_node, int to, int in_node) {
    ggl_fprint(out, "  n%d_%d -> n%d_%d [style=dashed];\n", from, out_node, to, in_node);
}

/* Writes the edges from the result of a stage to where other parts read its rows. from, to: the numbers of their first blocks. */
static void print_rows(FILE *out, const figure *f, int from, const figure *reader, int to) {
    const figure_block *last = &f->block[f->n - 1];
    for (int i = 0; i < last->n; i++)
        for (int k = 0; k < reader->n && is_exit(&last->node[i]); k++)
            for (int j = 0; j < reader->block[k].n; j++)
                if (strcmp(reader->block[k].node[j].of_stage, f->name) == 0)
                    print_passing(out, from + f->n - 1, i, to + k, j);
}

/* Returns where the values of the port end whose first one is `at`. */
static size_t end_of_port(const figure *f, size_t at) {
    const figure_passed *p = &f->passed[at];
    while (++at < f->n_passed && f->passed[at].block == p->block && f->passed[at].node == p->node)
        ;
    return at;
}

/* True if two ports have a value in common. */
static bool shares(const figure_passed *a, size_t n, const figure_passed *b, size_t n_b) {
    for (size_t i = 0, j = 0; i < n && j < n_b;) {
        if (a[i].t == b[j].t)
            return true;
        const int by = a[i].t->id - b[j].t->id;
        i += by <= 0;
        j += by >= 0;
    }
    return false;
}

/* Writes the edges of the values that leave one part and enter another; one for all layers that are drawn once. */
static void print_values(FILE *out, const figure *f, int from, const figure *reader, int to) {
    for (size_t i = 0, end; i < f->n_passed; i = end) {
        const figure_passed *p = &f->passed[i];
        end = end_of_port(f, i);
        if (!is_exit(&f->block[p->block].node[p->node]))
            continue;
        for (size_t j = 0, end_j; j < reader->n_passed; j = end_j) {
            const figure_passed *q = &reader->passed[j];
            end_j = end_of_port(reader, j);
            if (!is_exit(&reader->block[q->block].node[q->node]) &&
                shares(p, end - i, q, end_j - j))
                print_passing(out, from + p->block, p->node, to + q->block, q->node);
        }
    }
}

static void print_dot(FILE *out, const figure *f, int n, const char *name) {
    ggl_fprint(out, "digraph \"");
    print_quoted(out, name);
    ggl_fprint(out,
               "\" {\n  node [shape=box, style=rounded, fontname=\"sans-serif\", fontsize=11];\n"
               "  edge [fontname=\"sans-serif\", fontsize=9];\n");
    for (int i = 0, number = 0; i < n; i++)
        for (int k = 0; k < f[i].n; k++)
            print_cluster(out, &f[i].block[k], number++);
    for (int i = 0, from = 0; i < n; from += f[i].n, i++)
        for (int k = 0, to = 0; k < n; to += f[k].n, k++)
            if (k != i) {
                print_values(out, &f[i], from, &f[k], to);
                print_rows(out, &f[i], from, &f[k], to);
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
    llm_arch_source source;
} origin;

/* The parts of a descriptor, in the order in which they run, and their graphs. */
typedef struct parts {
    figure figure[FIGURE_MOST];
    int n;
    arch_built graph[FIGURE_MOST];
    int n_graphs;
} parts;

static void origin_fini(origin *from) {
    llm_arch_toy_free(from->toy);
    ggl_gguf_close(from->file);
}

/* Opens where keys and tensors come from. */
static ggl_status open_origin(const options *o, const llm_arch *arch, const char *model,
                              origin *from, ggl_error *err) {
    from->text = model;
    if (o->shape) {
        from->shaped = (bench_shape_source){.shape = &from->shape, .wanted = GGL_F16};
        from->source = bench_shape_source_of(&from->shaped);
        from->text = from->shape.name;
    } else if (model) {
        ggl_status st = tool_open_gguf(&from->file, model, NULL, err);
        if (st != GGL_OK)
            return st;
        from->source = llm_arch_source_gguf(from->file);
    } else {
        from->toy = llm_arch_toy_new(arch, (int)o->variant, err);
        if (!from->toy)
            return err->status;
        from->source = *llm_arch_toy_source(from->toy);
        from->text = llm_arch_toy_text(from->toy);
    }
    return GGL_OK;
}

/* Builds one graph; only: a stage over rows, or "guess"; NULL: that of the tokens, or of the last stage. */
static ggl_status build(const options *o, const llm_arch *arch, const origin *from,
                        const char *only, arch_built *b, ggl_backend *fold, ggl_error *err) {
    ggl_graph_params p = ggl_graph_default();
    p.n_pos = from->toy ? llm_arch_toy_n_ctx(from->toy) : arch_context(from->file, 64);
    p.n_batch = p.n_pos < 16 ? p.n_pos : 16;
    /* of a published shape, there are no values to fold */
    return arch_build_graph(b, arch, &from->source, &o->ignore, only, false, &p,
                            from->shape.n_vocab, o->shape ? NULL : fold, err);
}

static ggl_status print_to(FILE *out, const options *o, const parts *all, const llm_arch *arch,
                           const char *of, const ggl_backend *b, ggl_error *err) {
    fit_lines lines;
    FILE *const to = fit_lines_begin(&lines, out);
    for (int i = 0; i < all->n && o->format == 0; i++)
        print_text(to, &all->figure[i], i == 0);
    fit_lines_end(&lines);
    if (o->format == 1)
        print_dot(out, all->figure, all->n, llm_arch_name(arch));
    else if (o->format == 2)
        return figure_draw(out, all->figure, all->n, llm_arch_name(arch), of, b->name, err);
    return GGL_OK;
}

static int print(const options *o, const parts *f, const llm_arch *arch, const char *of,
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

/* Checks --stage. */
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
    return !o->stage;
}

static ggl_status add_figure(parts *all, const arch_built *b, bool of_stage, const char *name,
                             const ggl_backend *backend, ggl_error *err) {
    if (all->n == FIGURE_MOST)
        return ggl_fail(err, GGL_LIMIT, "more than %d parts", FIGURE_MOST);
    return figure_make(&all->figure[all->n++], b->graph, of_stage, name, (int)b->result.n_layer,
                       backend)
               ? GGL_OK
               : ggl_fail(err, GGL_NOMEM, "out of memory");
}

/* Builds a graph and adds its figures. name: of the part; NULL: the graph of the tokens, which may have a stage, or of the last stage. */
static ggl_status add_graph(parts *all, const options *o, const llm_arch *arch, const origin *from,
                            const char *name, bool alone, ggl_backend *backend, ggl_backend *fold,
                            ggl_error *err) {
    if (all->n_graphs == FIGURE_MOST)
        return ggl_fail(err, GGL_LIMIT, "more than %d stages", FIGURE_MOST);
    arch_built *b = &all->graph[all->n_graphs];
    ggl_status st = build(o, arch, from, name, b, fold, err);
    if (st != GGL_OK)
        return st;
    all->n_graphs++;
    const char *stage = llm_arch_last_stage(arch);
    const bool reads = figure_has_stage(b->graph) && !name;
    if (!name && !o->stage)
        arch_print_notes(b);
    if (reads)
        st = add_figure(all, b, true, stage ? stage : "stage", backend, err);
    if (st == GGL_OK)
        st = add_figure(all, b, !reads && figure_has_stage(b->graph), /* the stage alone */
                        alone && !reads           ? ""
                        : name                    ? name
                        : reads || !stage         ? "tokens"
                        : llm_arch_sees_all(arch) ? stage
                                                  : "tokens",
                        backend, err);
    return st;
}

/* Adds the parts of a descriptor: the stages that are graphs of their own, the tokens, and what guesses; or one stage alone. */
static ggl_status add_parts(parts *all, const options *o, const llm_arch *arch, const origin *from,
                            ggl_backend *backend, ggl_backend *fold, ggl_error *err) {
    ggl_status st = GGL_OK;
    const char *stage;
    if (o->stage)
        return add_graph(all, o, arch, from, o->stage, true, backend, fold, err);
    const bool guesses = llm_arch_has_output(arch, "guess") && llm_arch_has_output(arch, "logits");
    for (int k = 0; (stage = llm_arch_rows_stage(arch, k)) && st == GGL_OK; k++)
        if (strcmp(stage, llm_arch_last_stage(arch)) != 0) /* the last one's graph is the tokens' */
            st = add_graph(all, o, arch, from, stage, false, backend, fold, err);
    if (st == GGL_OK)
        st = add_graph(all, o, arch, from, NULL, all->n == 0 && !guesses, backend, fold, err);
    if (st == GGL_OK && guesses)
        st = add_graph(all, o, arch, from, "guess", false, backend, fold, err);
    return st == GGL_UNSUPPORTED && guesses && all->n > 0 ? GGL_OK : st; /* this model has none */
}

/* file: the descriptor; NULL: that of the shape. */
static int draw(const options *o, const char *file, const char *model) {
    ggl_error err = {0};
    static origin from; /* too large for the stack of some systems */
    static parts all;
    from = (origin){0};
    memset(&all, 0, sizeof all);
    ggl_backend *backend = NULL, *reference = NULL;
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
        st = ggl_backend_open(&backend, o->backend, NULL, &err);
    if (st == GGL_OK)
        st = open_origin(o, arch, model, &from, &err);
    if (st == GGL_OK)
        st = add_parts(&all, o, arch, &from, backend, reference, &err);
    const int code = st != GGL_OK ? tool_error(TOOL, 1, "%s", err.msg)
                                  : print(o, &all, arch, from.text, backend);
    for (int k = 0; k < all.n; k++)
        figure_fini(&all.figure[k]);
    for (int k = 0; k < all.n_graphs; k++)
        arch_built_fini(&all.graph[k]);
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
         .help = "draw only this stage over rows (default: all stages, and the tokens)"},
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
        "Draws the graph of a descriptor with a model, a published shape or made-up sizes: of each "
        "stage, and\nof the tokens, the nodes before the layers, one layer of each kind, the nodes "
        "after them; shapes on\nthe edges, innermost first.",
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
