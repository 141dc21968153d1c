/* llm-arch check: checks a descriptor by itself, with made-up models of every branch, and with a
 * model. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/load.h"
#include "common/progress.h"
#include "measure/verify.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "tool.h"

#define TOOL  "llm-arch check"
#define N_CTX 16
#define N_RUN 10

typedef struct tally {
    arch_backends backends;
    double worst; /* largest departure of the nodes that are right */
    size_t n_nodes;
    int n_models;
    /* runs of graphs, and those with NaN or infinite results; of the first of them, which */
    int n_runs, n_not_finite;
    char not_finite[1024];
    const tool_ignore *ignore;
} tally;

/* The first weight of the graph that has a NaN or an infinity; NULL: none, or out of memory. */
static const ggl_tensor *weight_not_finite(const ggl_graph *g) {
    const ggl_tensor *found = NULL;
    for (int i = 0; i < ggl_graph_n_nodes(g) && !found; i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        const ggl_type_info *type = ggl_type_get(t->type);
        if (t->op != GGL_OP_WEIGHT || !t->data || !type->to_float)
            continue;
        const int64_t n_rows = ggl_count(t) / t->ne[0];
        const size_t row_size = t->size / (size_t)n_rows;
        float *row = ggl_calloc((size_t)t->ne[0], sizeof *row);
        for (int64_t r = 0; row && r < n_rows && !found; r++) {
            type->to_float((const char *)t->data + (size_t)r * row_size, row, t->ne[0]);
            for (int64_t k = 0; k < t->ne[0] && !found; k++)
                found = isfinite(row[k]) ? NULL : t;
        }
        ggl_free(row);
    }
    return found;
}

/* Writes to t->not_finite which results are NaN or infinite in double precision, too, and counts such runs. Weights of the model that
 * are NaN or infinite themselves are noted instead: the descriptor cannot help that. */
static void judge_finite(tally *t, const arch_built *b, const verify_result *r, const char *file,
                         const char *what) {
    const size_t n = r->n_nan_outputs + r->n_infinite_outputs;
    const ggl_tensor *first = r->first_not_finite, *weight = n ? weight_not_finite(b->graph) : NULL;
    char text[160];
    t->n_runs++;
    if (weight)
        tool_note(TOOL, "%s: %zu of %zu results are NaN or infinite, as numbers of %s are", what, n,
                  r->n_outputs, weight->name);
    if (n == 0 || weight || !first)
        return;
    if (t->n_not_finite++ == 0)
        snprintf(
            t->not_finite, sizeof t->not_finite,
            "%s (%s): %zu of %zu results are %s in double precision, too; the first value that "
            "has %s is %s",
            first->origin ? first->origin : file, what, n, r->n_outputs,
            r->n_infinite_outputs == 0 ? "NaN"
            : r->n_nan_outputs == 0    ? "infinite"
                                       : "NaN or infinite",
            first == r->first_nan ? "a NaN" : "an infinity",
            ggl_node_text(first, text, sizeof text));
}

/* Verifies a graph on a backend. Counts only the single nodes: made-up weights make some
 * recurrent states grow without bound, until the result of the whole graph is nothing but
 * rounding. */
static int verify_on(tally *t, const arch_built *b, ggl_backend *backend, const char *file,
                     const char *what) {
    ggl_error err = {0};
    int32_t token[N_RUN];
    verify_result r;
    arch_tokens(token, N_RUN, b->result.n_vocab);
    if (llm_verify_graph(&r, b->graph, backend, t->backends.reference, token, N_RUN, NULL, &err) !=
        GGL_OK)
        return tool_error(TOOL, 1, "%s (%s) on %s: %s", file, what, backend->name, err.msg);
    int code = -1;
    char text[160];
    if (r.first >= 0)
        code = tool_error(TOOL, 1,
                          "%s (%s): %s is wrong on %s: %s is off by %g, which is %.3g times what "
                          "rounding can explain",
                          r.at[r.first].node->origin ? r.at[r.first].node->origin : file, what,
                          ggl_node_text(r.at[r.first].node, text, sizeof text), backend->name,
                          r.at[r.first].what, r.at[r.first].error, r.at[r.first].departure);
    else
        judge_finite(t, b, &r, file, what);
    for (size_t i = 0; i < r.n; i++)
        t->worst = r.at[i].departure > t->worst ? r.at[i].departure : t->worst;
    t->n_nodes += r.n;
    llm_verify_result_fini(&r);
    return code;
}

/* Checks one graph of the descriptor: the usual one, that of the output `only`, or that of texts in which rows are given in place of
 * tokens. */
static int check_graph(tally *t, const llm_arch *arch, const llm_arch_source *source,
                       const char *only, bool given, int64_t n_ctx, const char *what,
                       char **notes) {
    ggl_error err = {0};
    arch_built b;
    const ggl_status st = arch_build(&b, arch, source, t->ignore, only, given, n_ctx, N_RUN,
                                     t->backends.reference, &err);
    if ((only || given) && st == GGL_UNSUPPORTED) /* this model does not have it */
        return -1;
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s\n  with %s", err.msg, what);
    int code = -1;
    for (int i = 0; i < t->backends.n_other && code < 0; i++)
        code = verify_on(t, &b, t->backends.other[i], llm_arch_name(arch), what);
    if (notes && b.result.notes)
        *notes = ggl_copy_text(b.result.notes);
    arch_built_fini(&b);
    return code;
}

static int check_source(tally *t, const llm_arch *arch, const llm_arch_source *source,
                        int64_t n_ctx, const char *what, char **notes) {
    int code = check_graph(t, arch, source, NULL, false, n_ctx, what, notes);
    if (code < 0 && llm_arch_has_output(arch, "guess"))
        code = check_graph(t, arch, source, "guess", false, n_ctx, what, NULL);
    if (code < 0 && llm_arch_reads_text(arch))
        code = check_graph(t, arch, source, NULL, true, n_ctx, what, NULL);
    const char *stage;
    for (int k = 0; code < 0 && (stage = llm_arch_rows_stage(arch, k)); k++)
        code = check_graph(t, arch, source, stage, false, n_ctx, what, NULL);
    t->n_models++;
    return code;
}

static int check_toys(tally *t, const llm_arch *arch) {
    int n = llm_arch_toy_n_variants(arch), code = n > 0 ? -1 : tool_error(TOOL, 1, "out of memory");
    progress_begin("made-up models", n, "checking %s", llm_arch_name(arch));
    for (int k = 0; k < n && code < 0; k++) {
        ggl_error err = {0};
        progress_set(k);
        llm_arch_toy *toy = llm_arch_toy_new(arch, k, &err);
        if (!toy) {
            code = tool_error(TOOL, 1, "%s", err.msg);
            break;
        }
        llm_arch_toy_freeze(toy); /* like a file: unknown keys become an error */
        code = check_source(t, arch, llm_arch_toy_source(toy), llm_arch_toy_n_ctx(toy),
                            llm_arch_toy_text(toy), NULL);
        llm_arch_toy_free(toy);
    }
    progress_end();
    return code;
}

static int check_alone(tally *t, const llm_arch *arch) {
    ggl_error err = {0};
    char *notes = NULL;
    if (llm_arch_check(arch, &notes, &err) != GGL_OK) {
        ggl_free(notes);
        return tool_error(TOOL, 1, "%s", err.msg);
    }
    int code = check_toys(t, arch);
    /* some made-up numbers make no sense together, such as a factor of 0; all of them do not */
    if (code < 0 && t->n_runs > 0 && t->n_not_finite == t->n_runs)
        code = tool_error(TOOL, 1, "%s", t->not_finite);
    if (code < 0) {
        ggl_fprint(stdout, "%s: %d lines; %d made-up models, %zu nodes, on", llm_arch_name(arch),
                   llm_arch_n_lines(arch), t->n_models, t->n_nodes);
        for (int i = 0; i < t->backends.n_other; i++)
            printf("%s %s", i ? "," : "", t->backends.other[i]->name);
        printf(" as on the reference (at worst %.2f of what rounding explains)\n", t->worst);
        if (t->n_not_finite)
            ggl_fprint(
                stdout,
                "%d of %d runs have results that are NaN or infinite, as made-up numbers can "
                "make them: %s\n",
                t->n_not_finite, t->n_runs, t->not_finite);
        if (notes)
            printf("%s", notes);
    }
    ggl_free(notes);
    return code;
}

static int check_model(tally *t, const llm_arch *arch, const char *path) {
    ggl_error err = {0};
    ggl_gguf *file;
    char *notes = NULL;
    if (tool_open_gguf(&file, path, NULL, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    llm_arch_source source = llm_arch_source_gguf(file);
    int code = check_source(t, arch, &source, arch_context(file, N_CTX), path, &notes);
    if (code < 0 && t->n_not_finite)
        code = tool_error(TOOL, 1, "%s", t->not_finite);
    if (code < 0)
        printf(
            "%s: fits; %zu nodes as on the reference (at worst %.2f of what rounding explains)\n%s",
            path, t->n_nodes, t->worst, notes ? notes : "");
    free(notes);
    ggl_gguf_close(file);
    return code;
}

int arch_check(int argc, char **argv) {
    arg_list files = {0};
    tool_ignore ignore = {0};
    arg_list names = {0};
    bool all = false;
    const arg_option options[] = {
        {"--backend", ARG_LIST, &names, .value = "NAME",
         .help = "compare this backend with the reference (default: cpu); repeatable"},
        {"--all", ARG_FLAG, &all, .help = "compare every backend of this build"},
        IGNORE_OPTIONS(ignore),
        {0}};
    static const args_example examples[] = {
        {"llm-arch check my.arch", "checks a descriptor with made-up models"},
        {"llm-arch check my.arch model.gguf --all", "with a model, too, on every backend"},
        {0}};
    const args_spec spec = {
        TOOL,
        "FILE [MODEL] [options]",
        "Checks a descriptor with MODEL, if it is given, and with small models that are made up "
        "for the check. Those have each optional key and tensor once absent and once present, and "
        "each value that a key is compared with, so that every branch of the descriptor is "
        "reached. Each model runs on the CPU, or on the named backends, and is compared, node by "
        "node, with the reference.",
        options,
        &files,
        NULL,
        .examples = examples};
    int code = arch_args(&spec, 1, 2, argc, argv);
    if (code >= 0)
        return code;
    tally t = {0};
    llm_arch *arch = arch_open(TOOL, files.s[0]);
    code = arch && arch_backends_open(TOOL, &names, all, &t.backends) ? -1 : 1;
    t.ignore = &ignore;
    if (code < 0 &&
        files.n > 1) /* first: errors with a real model say more than those with a made-up one */
        code = check_model(&t, arch, files.s[1]);
    t = (tally){.backends = t.backends};
    if (code < 0)
        code = check_alone(&t, arch);
    arch_backends_close(&t.backends);
    llm_arch_free(arch);
    args_list_fini(&files);
    args_list_fini(&names);
    ignore_fini(&ignore);
    return code < 0 ? 0 : code;
}
