/* llm-arch verify: runs a model on a backend and on the reference, and compares them node by
 * node. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fit_lines.h"
#include "common/input.h"
#include "common/load.h"
#include "common/progress.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "gradients.h"
#include "opening.h"
#include "tool.h"

#define TOOL "llm-arch verify"

enum { MAX_TOKENS = 4096 };

/* A node's results, with its texts. */
typedef struct node {
    char text[160], shape[160];
    char *origin;
    llm_verify_node of;
} node;

typedef struct run {
    tool_ignore ignore;
    const char *arch, *backend, *mask, *text, *text_file, *ids;
    int64_t n, n_worst, n_threads;
    bool n_given;
    llm_opening opening;
    llm_context *ctx;
    int32_t *id; /* [n_id]; NULL: a fixed sequence */
    size_t n_id;
    node *node; /* [n_nodes]: in the order of the graph */
    size_t n_nodes, cap_nodes;
    bool lacks_memory;
    llm_verify_result result;
} run;

static int compare_departure(const void *a, const void *b) {
    const node *x = *(const node *const *)a, *y = *(const node *const *)b;
    return x->of.departure > y->of.departure ? -1 : x->of.departure < y->of.departure;
}

static void print_node(FILE *out, const node *n) {
    const bool is_cache = strcmp(n->of.what, "value") != 0;
    ggl_fprint(out, "  %8.3g  %-44s %-28s %s\n", n->of.departure, n->text,
               is_cache ? n->of.what : n->shape, n->origin);
}

static int print_worst(const run *r) {
    const node **order = malloc((r->n_nodes + 1) * sizeof *order);
    if (!order)
        return tool_error(TOOL, 1, "out of memory");
    for (size_t i = 0; i < r->n_nodes; i++)
        order[i] = &r->node[i];
    qsort(order, r->n_nodes, sizeof *order, compare_departure);
    printf("\nthe worst nodes; 1 is the limit\n");
    fit_lines lines;
    FILE *const to = fit_lines_begin(&lines, stdout);
    for (size_t i = 0; i < r->n_nodes && (int64_t)i < r->n_worst; i++)
        print_node(to, order[i]);
    fit_lines_end(&lines);
    free(order);
    return 0;
}

static void print_first(const run *r) {
    const node *f = r->node;
    while (!(f->of.departure > 1))
        f++;
    printf("\n%" PRId64 " of %" PRId64
           " nodes depart from the reference; the first is\n  %s%s%s\n  token %" PRId64
           ", element %" PRId64
           " of its %s: %.9g, not %.9g (off by %.3g; rounding explains about %.2g)\n",
           r->result.n_departed, r->result.n_nodes, f->text, *f->origin ? ", " : "", f->origin,
           f->of.token, f->of.element, f->of.what, f->of.got, f->of.want, f->of.error, f->of.unit);
}

/* What the model's last numbers are. */
static const char *last_numbers(const run *r) {
    const llm_arch *arch = llm_model_arch(llm_opened_model(r->ctx));
    return llm_arch_has_output(arch, "logits")      ? "logits"
           : llm_arch_has_output(arch, "embedding") ? "vectors"
                                                    : "scores";
}

static int report(const run *r) {
    const llm_verify_result *v = &r->result;
    const char *numbers = last_numbers(r);
    if (print_worst(r) != 0)
        return 1;
    printf("\n%s, up to %.4g: rounding is %.3g; the whole run differs from its single nodes by "
           "%.3g%s\n",
           numbers, v->largest, v->rounding, v->whole,
           v->whole_departs ? ": too much"
           : v->whole == 0  ? ": the same bits"
                            : "");
    if (v->n_departed > 0) {
        print_first(r);
        return 1;
    }
    if (v->whole_departs) {
        printf("\nevery node is right by itself, but the whole is not: a fault of the planner or "
               "of fused steps\n");
        return 1;
    }
    if (v->n_nan) {
        printf("\n%" PRId64 " of %" PRId64
               " %s are NaN on the reference, too: the model's numbers or its "
               "descriptor are wrong, not the backend;\n"
               "the first value with a NaN is\n  %s\n",
               v->n_nan, v->n_logits, numbers, v->first_nan);
        return 1;
    }
    printf("\n%" PRId64 " nodes agree with the reference\n", v->n_nodes);
    if (v->n_refused)
        printf("%" PRId64
               " nodes were not verified, because the backend refuses them (llm-cli --plan "
               "prints why)\n",
               v->n_refused);
    return 0;
}

static int open_model(run *r, const char *path) {
    ggl_error err = {0};
    r->opening = tool_opening(path);
    r->opening.params.arch = r->arch;
    ignore_give(&r->ignore, &r->opening.params);
    ggl_status st = llm_context_new(&r->ctx, &err);
    const bool has_begun = st == GGL_OK && tool_loading_begin(path, NULL);
    if (st == GGL_OK)
        st = llm_context_open(r->ctx, &r->opening, LLM_OPENED_MODEL, &err);
    if (has_begun)
        progress_end();
    return tool_load_advise(st, path, &err) == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

/* Reads the ids of --tokens: all of them, or the first -n. */
static int read_ids(run *r) {
    if ((r->text != NULL) + (r->text_file != NULL) + (r->ids != NULL) > 1)
        return tool_error(TOOL, 2, "-p, -f and --tokens cannot be used together");
    if (!r->ids)
        return -1;
    int code = tool_read_ids(TOOL, "--tokens", r->ids, &r->id, &r->n_id);
    if (code < 0 && !r->n_given && r->n_id > MAX_TOKENS)
        return tool_error(TOOL, 2, "--tokens has %zu ids, but at most %d can be run", r->n_id,
                          MAX_TOKENS);
    if (code < 0 && r->n_given && r->n_id > (size_t)r->n)
        r->n_id = (size_t)r->n;
    return code;
}

/* Sets the tokens of a text, if there is one: the first of it. */
static int read_text(run *r) {
    ggl_error err = {0};
    if (!r->text && !r->text_file)
        return -1;
    size_t n = r->text ? strlen(r->text) : 0;
    char *from_file = r->text ? NULL : tool_read_any_text(TOOL, r->text_file, &n);
    if (!r->text && !from_file)
        return 1;
    const ggl_status st = llm_encode(r->ctx, r->text ? r->text : from_file, n, LLM_ADD_SPECIAL,
                                     &r->id, &r->n_id, &err);
    free(from_file);
    if (st != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (r->n_id > (size_t)r->n)
        r->n_id = (size_t)r->n;
    return r->n_id ? -1 : tool_error(TOOL, 2, "the text has no tokens");
}

static bool on_progress(void *user, size_t done, size_t n) {
    (void)user;
    if (done == n) {
        progress_end();
        progress_begin(NULL, 0, "comparing the whole run");
    } else {
        if (done == 0) {
            progress_end();
            progress_begin("nodes", (double)n, "comparing");
        }
        progress_set((double)done);
    }
    return true;
}

static void on_node(void *user, const llm_verify_node *of) {
    run *r = user;
    char *origin = ggl_copy_text(of->origin);
    r->lacks_memory = r->lacks_memory || !origin ||
                      !ggl_grow(&r->node, &r->cap_nodes, r->n_nodes + 1, sizeof *r->node);
    if (r->lacks_memory) {
        free(origin);
        return;
    }
    node *n = &r->node[r->n_nodes++];
    *n = (node){.origin = origin, .of = *of};
    n->of.what = strcmp(of->what, "value") == 0  ? "value"
                 : strcmp(of->what, "keys") == 0 ? "keys"
                                                 : "values";
    snprintf(n->text, sizeof n->text, "%s", of->text);
    snprintf(n->shape, sizeof n->shape, "%s", of->shape);
}

static void on_note(void *user, const char *text) {
    (void)user;
    progress_end();
    tool_print_notes(text);
}

/* Reports why nothing could be verified. Returns an exit code. */
static int tell_failure(const run *r, ggl_status st, const ggl_error *err) {
    if (st == GGL_USAGE && r->ids && strncmp(err->msg, "token ", 6) == 0) /* one is unknown */
        return tool_error(TOOL, 2, "--tokens: %s", err->msg);
    return tool_error(TOOL, st == GGL_NOT_FOUND ? 2 : 1, "%s", err->msg);
}

static int compare(run *r, const char *path) {
    ggl_error err = {0};
    const llm_verify_params p = {.size = sizeof p,
                                 .device = r->backend,
                                 .device_name = "--backend",
                                 .mask = r->mask,
                                 .n_threads = (int32_t)r->n_threads,
                                 .id = r->id,
                                 .n = r->id ? r->n_id : (size_t)r->n,
                                 .all = true,
                                 .each = on_node,
                                 .note = on_note,
                                 .progress = on_progress,
                                 .user = r};
    r->result.size = sizeof r->result;
    progress_begin(NULL, 0, "building the graph");
    const ggl_status st = llm_verify(r->ctx, &p, &r->result, &err);
    progress_end();
    if (r->lacks_memory)
        return tool_error(TOOL, 1, "out of memory");
    if (st != GGL_OK && r->n_nodes == 0)
        return tell_failure(r, st, &err);
    ggl_fprint(stdout, "model        %s\ndescriptor   %s\nbackend      %s\ntokens       %zu\n",
               path, llm_model_arch_origin(llm_opened_model(r->ctx)), r->result.device, p.n);
    const int code = report(r);
    return st == GGL_OK ? code : tool_error(TOOL, 1, "%s", err.msg); /* of a trace */
}

static int verify_model(run *r, const char *path) {
    int code = read_ids(r);
    if (code < 0)
        code = open_model(r, path);
    if (code < 0)
        code = read_text(r);
    return code < 0 ? compare(r, path) : code;
}

int arch_verify(int argc, char **argv) {
    run r = {.backend = "cpu", .n = 8, .n_worst = 10};
    bool gradients = false;
    int64_t n_numbers = 64;
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
        {"--gradients", ARG_FLAG, &gradients,
         .help = "compare gradients with differences of the loss, as training needs them"},
        {"--numbers", ARG_INT, &n_numbers, .value = "N",
         .help = "with --gradients: how many numbers, of all weights in turn (default 64)",
         .min = 1, .max = 1 << 20},
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
    code = gradients ? arch_verify_gradients(TOOL, files.s[0], r.arch, n_numbers,
                                             r.n_given ? r.n : 0, r.n_worst)
                     : verify_model(&r, files.s[0]);
    llm_close(r.ctx);
    for (size_t i = 0; i < r.n_nodes; i++)
        free(r.node[i].origin);
    ggl_free(r.node);
    ggl_free(r.id);
    args_list_fini(&files);
    ignore_fini(&r.ignore);
    return code;
}
