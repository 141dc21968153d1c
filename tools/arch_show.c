/* llm-arch show: what is in a model file, and what becomes of its keys. */
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

static void print_key(const ggl_gguf_value *v, const char *verdict) {
    char text[1024];
    ggl_fprint(stdout, verdict[0] ? "  %-44.*s %-20s  %s\n" : "  %-44.*s %s\n", (int)v->key.n, v->key.s,
               value_text(v, text, sizeof text), verdict);
}

static void print_keys(const ggl_gguf *f, bool tokenizer) {
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(f, i);
        if (begins(v->key, "tokenizer.") == tokenizer)
            print_key(v, "");
    }
}

typedef struct judged_keys {
    const ggl_gguf *file;
    size_t at; /* of the next key */
} judged_keys;

static void print_judged(void *ctx, const llm_arch_judged *k) {
    judged_keys *j = ctx;
    char verdict[400] = "";
    const char *reason = k->reason ? k->reason : "";
    if (k->use == LLM_ARCH_READ)
        snprintf(verdict, sizeof verdict, "read, %s:%d", k->file, k->line);
    else if (k->use == LLM_ARCH_IGNORED)
        snprintf(verdict, sizeof verdict, "ignored, %s:%d", k->file, k->line);
    else if (k->use == LLM_ARCH_HARMLESS)
        snprintf(verdict, sizeof verdict, "harmless: %s", reason);
    else if (k->use == LLM_ARCH_UNREAD)
        snprintf(verdict, sizeof verdict, "NOT READ%s%s", k->reason ? ": " : "", reason);
    else if (k->use == LLM_ARCH_FOREIGN)
        snprintf(verdict, sizeof verdict, "not read");
    const ggl_gguf_value *v = ggl_gguf_value_at(j->file, j->at++);
    if (!begins(v->key, "tokenizer."))
        print_key(v, verdict);
}

/* With what becomes of each; arch NULL: without. */
static bool print_model_keys(const ggl_gguf *f, const llm_arch *arch) {
    ggl_error err = {0};
    judged_keys j = {f, 0};
    llm_arch_source source = llm_arch_source_gguf(f);
    if (!arch)
        print_keys(f, false);
    else if (llm_arch_judge_keys(arch, &source, print_judged, &j, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg) < 0;
    return true;
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

static int show(const ggl_gguf *f, const llm_arch *arch, const char *origin) {
    tensor_row *rows;
    size_t n;
    if (!tensor_rows(f, &rows, &n))
        return tool_error(TOOL, 1, "out of memory");
    uint64_t params = 0, bytes = 0;
    for (size_t i = 0; i < n; i++) {
        params += rows[i].params;
        bytes += rows[i].bytes;
    }
    ggl_fprint(stdout, "%s: GGUF version %" PRIu32 ", %zu keys, %zu tensor%s, %d file%s\n\nkeys%s%s%s\n", ggl_gguf_name(f), ggl_gguf_version(f),
           ggl_gguf_n_values(f), ggl_gguf_n_tensors(f), ggl_gguf_n_tensors(f) == 1 ? "" : "s", ggl_gguf_n_parts(f), ggl_gguf_n_parts(f) > 1 ? "s" : "",
               arch ? ", and where " : "", arch ? origin : "", arch ? " reads them" : "");
    bool judged = print_model_keys(f, arch);
    printf("\ntokenizer\n");
    print_keys(f, true);
    printf("\ntensors\n");
    print_tensors(rows, n);
    printf("\ntypes\n");
    bool ok = print_types(rows, n, params, bytes);
    free(rows);
    if (!ok)
        return tool_error(TOOL, 1, "out of memory");
    return judged ? 0 : 1;
}

/* The model with its descriptor; without one, if none was asked for, the file alone. */
static int show_file(const char *path, const char *descriptor) {
    ggl_error err = {0};
    ggl_gguf *f = NULL;
    llm_model *m = NULL;
    llm_model_params mp = {.arch_path = descriptor, .gguf = {.meta_only = true}};
    ggl_status st = llm_model_open(&m, path, &mp, &err);
    if (st != GGL_OK && !descriptor) {
        ggl_error why = err;
        st = ggl_gguf_open(&f, path, &mp.gguf, &err);
        if (st == GGL_OK)
            fprintf(stderr, TOOL ": note: what becomes of the keys is not known: %s\n", why.msg);
    }
    int code = st != GGL_OK ? tool_error(TOOL, 1, "%s", err.msg)
               : m          ? show(llm_model_file(m), llm_model_arch(m), llm_model_arch_origin(m))
                            : show(f, NULL, NULL);
    if (st == GGL_OK)
        arch_note_truncated(path);
    ggl_gguf_close(f);
    llm_model_free(m);
    return code;
}

int arch_show(int argc, char **argv) {
    arg_list files = {0};
    const char *descriptor = NULL;
    const arg_option options[] = {
        {"--arch", ARG_STRING, &descriptor, .value = "FILE", .help = "an architecture descriptor to read the model by"},
        {0}};
    int code = arch_args(TOOL, "MODEL [options]",
                         "Prints a model's keys, its tensors (alike ones of all layers in one line), parameters and bytes;\n"
                         "for each key of the architecture the line of the descriptor that reads it, or why it need not be read.",
                         options, 1, 1, argc, argv, &files);
    if (code >= 0)
        return code;
    code = show_file(files.s[0], descriptor);
    args_list_fini(&files);
    return code;
}
