/* llm-arch verify: runs a model on a backend and on the reference, and compares them node by
 * node. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/input.h"
#include "common/load.h"
#include "common/progress.h"
#include "measure/verify.h"
#include "ggl/alloc.h"
#include "ggl/internal/backends.h"
#include "ggl/internal/graph.h"
#include "ggl/internal/show.h"
#include "tool.h"

#define TOOL "llm-arch verify"

enum { MAX_TOKENS = 4096 };

typedef struct run {
    tool_ignore ignore;
    const char *arch, *backend, *mask, *text, *text_file, *ids;
    int64_t n, n_worst, n_threads;
    bool n_given;
    ggl_backend *fast, *reference;
    llm_model *model;
    arch_built built;
    llm_tokens tokens;
    verify_result result;
} run;

static int compare_departure(const void *a, const void *b) {
    const verify_node *x = *(const verify_node *const *)a, *y = *(const verify_node *const *)b;
    return x->departure > y->departure ? -1 : x->departure < y->departure;
}

static void print_node(const verify_node *r) {
    char text[160], shape[160];
    ggl_fprint(stdout, "  %8.3g  %-44s %-28s %s\n", r->departure,
               ggl_node_text(r->node, text, sizeof text),
               r->node->op == GGL_OP_CACHE ? r->what : ggl_shape_text(r->node, shape, sizeof shape),
               r->node->origin ? r->node->origin : "");
}

static int print_worst(const run *r) {
    const verify_node **order = malloc((r->result.n + 1) * sizeof *order);
    if (!order)
        return tool_error(TOOL, 1, "out of memory");
    for (size_t i = 0; i < r->result.n; i++)
        order[i] = &r->result.at[i];
    qsort(order, r->result.n, sizeof *order, compare_departure);
    printf("\nthe worst nodes; 1 is the limit\n");
    for (size_t i = 0; i < r->result.n && (int64_t)i < r->n_worst; i++)
        print_node(order[i]);
    free(order);
    return 0;
}

static int report(const run *r) {
    const verify_result *v = &r->result;
    if (print_worst(r) != 0)
        return 1;
    size_t n_bad = 0;
    for (size_t i = 0; i < v->n; i++)
        n_bad += v->at[i].departure > 1;
    printf("\nlogits, up to %.4g: rounding is %.3g; the whole run differs from its single nodes by "
           "%.3g%s\n",
           v->size, v->rounding, v->whole,
           v->whole_departs ? ": too much"
           : v->whole == 0  ? ": the same bits"
                            : "");
    if (v->first >= 0) {
        const verify_node *f = &v->at[v->first];
        char text[160];
        printf(
            "\n%zu of %zu nodes depart from the reference; the first is\n  %s%s%s\n  token %" PRId64
            ", element %" PRId64
            " of its %s: %.9g, not %.9g (off by %.3g; rounding explains about %.2g)\n",
            n_bad, v->n, ggl_node_text(f->node, text, sizeof text), f->node->origin ? ", " : "",
            f->node->origin ? f->node->origin : "", f->token, f->element, f->what, f->got, f->want,
            f->error, f->unit);
        return 1;
    }
    if (v->whole_departs) {
        printf("\nevery node is right by itself, but the whole is not: a fault of the planner or "
               "of fused steps\n");
        return 1;
    }
    if (v->n_nan_outputs) {
        char text[160];
        printf("\n%zu of %zu logits are NaN on the reference, too: the model's numbers or its "
               "descriptor are wrong, not the backend;\n"
               "the first value with a NaN is\n  %s%s%s\n",
               v->n_nan_outputs, v->n_outputs, ggl_node_text(v->first_nan, text, sizeof text),
               v->first_nan->origin ? ", " : "", v->first_nan->origin ? v->first_nan->origin : "");
        return 1;
    }
    printf("\n%zu nodes agree with the reference\n", v->n);
    if (v->n_refused)
        printf("%zu nodes were not verified, because the backend refuses them (llm-cli --plan "
               "prints why)\n",
               v->n_refused);
    return 0;
}

static int open_all(run *r, const char *path) {
    ggl_error err = {0};
    llm_model_params mp = {
        .size = sizeof mp, .arch_path = r->arch, .ignore = ignore_of(&r->ignore)};
    ggl_backend_params bp = {.size = sizeof bp, .n_threads = (int)r->n_threads, .mask = r->mask};
    if (tool_load_model(&r->model, path, &mp, 0, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (ggl_backend_open(&r->fast, r->backend, &bp, &err) != GGL_OK)
        return tool_error(TOOL, err.status == GGL_NOT_FOUND ? 2 : 1, "--backend: %s", err.msg);
    if (ggl_backend_open(&r->reference, "reference", NULL, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    return -1;
}

/* Reads the ids of --tokens: all of them, or the first -n. */
static int read_ids(run *r) {
    if ((r->text != NULL) + (r->text_file != NULL) + (r->ids != NULL) > 1)
        return tool_error(TOOL, 2, "-p, -f and --tokens cannot be used together");
    if (!r->ids)
        return -1;
    int code = tool_read_ids(TOOL, "--tokens", r->ids, &r->tokens.id, &r->tokens.n);
    if (code < 0 && !r->n_given && r->tokens.n > MAX_TOKENS)
        return tool_error(TOOL, 2, "--tokens has %zu ids, but at most %d can be run", r->tokens.n,
                          MAX_TOKENS);
    if (code < 0 && r->n_given && r->tokens.n > (size_t)r->n)
        r->tokens.n = (size_t)r->n;
    if (code < 0)
        r->n = (int64_t)r->tokens.n;
    return code;
}

/* Sets the tokens: the given ids, the first tokens of the text, or a fixed sequence if there is
 * neither. */
static int get_tokens(run *r) {
    ggl_error err = {0};
    for (size_t i = 0; r->ids && i < r->tokens.n; i++)
        if (r->tokens.id[i] >= r->built.result.n_vocab)
            return tool_error(TOOL, 2,
                              "--tokens: token %" PRId32 " is not in the vocabulary of %" PRId64,
                              r->tokens.id[i], r->built.result.n_vocab);
    if (r->ids)
        return -1;
    if (!r->text && !r->text_file) {
        r->tokens.id = ggl_calloc((size_t)r->n, sizeof *r->tokens.id);
        r->tokens.n = r->tokens.id ? (size_t)r->n : 0;
        arch_tokens(r->tokens.id, (int)r->tokens.n, r->built.result.n_vocab);
        return r->tokens.id ? -1 : tool_error(TOOL, 1, "out of memory");
    }
    const llm_tokenizer *t;
    size_t n = r->text ? strlen(r->text) : 0;
    char *from_file = r->text ? NULL : tool_read_any_text(TOOL, r->text_file, &n);
    if (!r->text && !from_file)
        return 1;
    ggl_status st = llm_model_tokenizer(r->model, &t, &err);
    if (st == GGL_OK)
        st = llm_tokenize(t, r->text ? r->text : from_file, n, LLM_TOKENIZE_BOS, &r->tokens, &err);
    free(from_file);
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (r->tokens.n > (size_t)r->n)
        r->tokens.n = (size_t)r->n;
    for (size_t i = 0; i < r->tokens.n; i++)
        if (r->tokens.id[i] >= r->built.result.n_vocab)
            return tool_error(
                TOOL, 1, "the tokenizer gives token %" PRId32 ", but the model has only %" PRId64,
                r->tokens.id[i], r->built.result.n_vocab);
    return r->tokens.n ? -1 : tool_error(TOOL, 2, "the text has no tokens");
}

static bool on_progress(void *ctx, size_t done, size_t n) {
    (void)ctx;
    if (done == n) {
        progress_end();
        progress_begin(NULL, 0, "comparing the whole run");
    } else {
        if (done == 0)
            progress_begin("nodes", (double)n, "comparing");
        progress_set((double)done);
    }
    return true;
}

static ggl_status compare(run *r, ggl_error *err) {
    const verify_watch watch = {.progress = on_progress};
    const ggl_status st = llm_verify_graph(&r->result, r->built.graph, r->fast, r->reference,
                                           r->tokens.id, (int)r->tokens.n, &watch, err);
    progress_end();
    return st;
}

static int verify_model(run *r, const char *path) {
    int code = read_ids(r);
    if (code < 0)
        code = open_all(r, path);
    if (code >= 0)
        return code;
    ggl_error err = {0};
    llm_arch_source source = llm_arch_source_gguf(llm_model_file(r->model));
    progress_begin(NULL, 0, "building the graph");
    const ggl_status built = arch_build(&r->built, llm_model_arch(r->model), &source, &r->ignore,
                                        r->n, r->n, r->reference, &err);
    progress_end();
    if (built != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    arch_print_notes(&r->built);
    code = get_tokens(r);
    if (code >= 0)
        return code;
    if (compare(r, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    ggl_fprint(stdout, "model        %s\ndescriptor   %s\nbackend      %s: %s\ntokens       %zu\n",
               path, llm_model_arch_origin(r->model), r->fast->name, r->fast->description,
               r->tokens.n);
    return report(r);
}

int arch_verify(int argc, char **argv) {
    run r = {.backend = "cpu", .n = 8, .n_worst = 10};
    arg_list files = {0};
    const arg_option options[] = {
        {"--arch", ARG_STRING, &r.arch, .value = "FILE",
         .help = "the architecture descriptor to use"},
        IGNORE_OPTIONS(r.ignore),
        {"--backend", ARG_STRING, &r.backend, .value = "NAME",
         .help = "the backend to verify (default cpu)"},
        {"-n", ARG_INT, &r.n, .value = "N",
         .help = "tokens to run (default 8, or all of --tokens); the reference is slow", .min = 1,
         .max = MAX_TOKENS, .given = &r.n_given},
        {"-p --prompt", ARG_STRING, &r.text, .value = "TEXT", .may_be_empty = true,
         .help = "run the tokens of this text (default: a fixed sequence)"},
        {"-f --file", ARG_STRING, &r.text_file, .value = "FILE",
         .help = "run the tokens of a file"},
        {"--tokens", ARG_STRING, &r.ids, .value = "IDS",
         .help = "run these tokens: 1,2,3; needs no tokenizer"},
        {"--worst", ARG_INT, &r.n_worst, .value = "N",
         .help = "number of nodes to list (default 10)", .min = 0, .max = 1 << 20},
        {"-t --threads", ARG_INT, &r.n_threads, .value = "N", .help = "threads of the backend",
         .min = 1, .max = TOOL_MAX_THREADS},
        {"--cpu-mask-isa", ARG_STRING, &r.mask, .value = "LIST",
         .help = "instruction sets not to use: avx512,avx2; all"},
        {0}};
    static const args_example examples[] = {
        {"llm-arch verify model.gguf", "which nodes differ from double precision?"},
        {"llm-arch verify model.gguf -p \"Once upon a time\" --backend vulkan0",
         "on a GPU, for the tokens of a text"},
        {0}};
    const args_spec spec = {
        TOOL,
        "MODEL [options]",
        "Runs tokens on a backend and, node by node on the same inputs, on the "
        "reference in double precision;\n"
        "lists the nodes that differ most and names the first that differs more "
        "than rounding can explain\n"
        "(exit code 1), with the line of the descriptor it comes from. Then "
        "compares the run as a whole.",
        options,
        &files,
        NULL,
        .examples = examples};
    int code = arch_args(&spec, 1, 1, argc, argv);
    if (code >= 0)
        return code;
    code = verify_model(&r, files.s[0]);
    llm_verify_result_fini(&r.result);
    arch_built_fini(&r.built);
    llm_model_free(r.model);
    ggl_error err = {0};
    if (r.fast && ggl_trace_end(r.fast, &err) != GGL_OK)
        code = tool_error(TOOL, 1, "%s", err.msg);
    ggl_backend_close(r.fast);
    ggl_backend_close(r.reference);
    llm_tokens_fini(&r.tokens);
    args_list_fini(&files);
    ignore_fini(&r.ignore);
    return code;
}
