/* llm-arch show: shows what is in a model file, and what the descriptor does with its keys. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/amounts.h"
#include "common/load.h"
#include "ggl/internal/index.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"
#include "ggl/internal/text.h"
#include "tensors.h"
#include "tool.h"

#define TOOL "llm-arch show"

/* --- keys ------------------------------------------------------------------------------------- */

enum { WIDTH = 80, MOST_NAME = 44, MOST_VALUE = 14 };

/* The columns of a table of keys: as wide as their contents, up to a limit. */
typedef struct key_table {
    const ggl_gguf *file;
    int name, value;
    size_t at; /* index of the next key */
} key_table;

static bool in_table(const ggl_gguf_value *v, bool tokenizer) {
    return ggl_str_begins_with(v->key, "tokenizer.") == tokenizer;
}

static int larger(int a, size_t b) {
    return (size_t)a < b ? (int)b : a;
}

static key_table table_of(const ggl_gguf *f, bool tokenizer, bool judged) {
    key_table t = {.file = f};
    char text[1024];
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(f, i);
        if (!in_table(v, tokenizer))
            continue;
        size_t n = strlen(value_text_within(v, MOST_VALUE, text, sizeof text));
        t.name = larger(t.name, v->key.n < MOST_NAME ? v->key.n : MOST_NAME);
        t.value = larger(t.value, n < MOST_VALUE ? n : MOST_VALUE);
    }
    t.value = judged ? t.value : 0;
    return t;
}

/* Prints a key. A verdict that would make the line too long gets its own line. */
static void print_key(const key_table *t, const ggl_gguf_value *v, const char *verdict) {
    char text[1024], name[512], shown[1700];
    const size_t room = (size_t)(WIDTH - 3 - t->name);
    ggl_show(name, sizeof name, v->key.s, v->key.n);
    printf("  %-*s %s", t->name, name, value_text_within(v, room, text, sizeof text));
    const size_t at = 3 + (size_t)larger(t->name, strlen(name)) + strlen(text);
    size_t column = (size_t)larger(5 + t->name + t->value, at + 2);
    if (!verdict[0]) {
        putchar('\n');
        return;
    }
    ggl_show(shown, sizeof shown, verdict, strlen(verdict));
    if (column + strlen(shown) > WIDTH) {
        printf("\n%*s", 6, "");
        column = 6;
    } else {
        printf("%*s", (int)(column - at), "");
    }
    tool_print_wrapped(shown, (int)column, 8);
}

static void print_keys(const ggl_gguf *f, bool tokenizer) {
    const key_table t = table_of(f, tokenizer, false);
    for (size_t i = 0; i < ggl_gguf_n_values(f); i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(f, i);
        if (in_table(v, tokenizer))
            print_key(&t, v, "");
    }
}

static void print_judged(void *ctx, const llm_arch_judged *k) {
    key_table *t = ctx;
    char verdict[400] = "";
    const char *reason = k->reason ? k->reason : "";
    if (k->use == LLM_ARCH_READ)
        snprintf(verdict, sizeof verdict, "read, %s:%d", k->file, k->line);
    else if (k->use == LLM_ARCH_IGNORED)
        snprintf(verdict, sizeof verdict, "ignored%s%s, %s:%d", k->reason ? " " : "", reason,
                 k->file, k->line);
    else if (k->use == LLM_ARCH_HARMLESS)
        snprintf(verdict, sizeof verdict, "harmless: %s", reason);
    else if (k->use == LLM_ARCH_UNREAD)
        snprintf(verdict, sizeof verdict, "NOT READ%s%s", k->reason ? ": " : "", reason);
    else if (k->use == LLM_ARCH_FOREIGN)
        snprintf(verdict, sizeof verdict, "not read: %s", reason);
    const ggl_gguf_value *v = ggl_gguf_value_at(t->file, t->at++);
    if (in_table(v, false))
        print_key(t, v, verdict);
}

/* Prints the keys, and what the descriptor does with each; arch NULL: only the keys. */
static bool print_model_keys(const ggl_gguf *f, const llm_arch *arch) {
    ggl_error err = {0};
    key_table t = table_of(f, false, true);
    llm_arch_source source = llm_arch_source_gguf(f);
    if (!arch)
        print_keys(f, false);
    else if (llm_arch_judge_keys(arch, &source, print_judged, &t, &err) != GGL_OK)
        return tool_error(TOOL, 1, "%s", err.msg) < 0;
    return true;
}

/* --- tensors ---------------------------------------------------------------------------------- */

enum { READ, NOT_READ, FIRST_PART, MOST_PARTS = 32, PART_NAME = 128 };

/* For each tensor of the file: READ, NOT_READ, or FIRST_PART + the index of the part it belongs
 * to. */
typedef struct tensor_marks {
    uint8_t *mark;
    char part[MOST_PARTS][PART_NAME]; /* longer names are cut */
    int n_parts;
} tensor_marks;

static void on_unread(void *ctx, size_t i, const char *part) {
    tensor_marks *m = ctx;
    int k = 0;
    while (part && k < m->n_parts && strncmp(m->part[k], part, PART_NAME - 1) != 0)
        k++;
    if (part && k == m->n_parts && k < MOST_PARTS)
        snprintf(m->part[m->n_parts++], sizeof *m->part, "%s", part);
    m->mark[i] = part && k < MOST_PARTS ? (uint8_t)(FIRST_PART + k) : NOT_READ;
}

/* Builds the model with all unread tensors ignored, to mark them. False: out of memory. */
static bool mark_tensors(const ggl_gguf *f, const llm_arch *arch, tensor_marks *m) {
    static const char *const all[] = {"*"};
    ggl_error err = {0};
    const llm_arch_source source = llm_arch_source_gguf(f);
    const llm_arch_params p = {.size = sizeof p,
                               .ignore = {.key = all, .tensor = all, .n_key = 1, .n_tensor = 1},
                               .unread = on_unread,
                               .ctx = m};
    if (!(m->mark = calloc(ggl_gguf_n_tensors(f) + 1, 1)))
        return false;
    if (!arch)
        return true;
    ggl_graph_params gp = ggl_graph_default();
    gp.n_pos = arch_context(f, gp.n_pos);
    gp.n_batch = gp.n_batch < gp.n_pos ? gp.n_batch : gp.n_pos;
    ggl_graph *g = ggl_graph_new(&gp);
    if (!g || llm_arch_build(arch, &source, &p, g, NULL, &err) != GGL_OK)
        tool_note(TOOL, "it is unknown which tensors are read: %s", g ? err.msg : "out of memory");
    ggl_graph_free(g);
    return true;
}

static void print_tensors(const tensor_row *rows, size_t n, const tensor_marks *m) {
    char shape[128], layers[48], params[24];
    int name_width = 0, shape_width = 0, params_width = 0;
    for (size_t i = 0; i < n; i++) {
        size_t name = strlen(rows[i].key.name);
        name_width = larger(name_width, name < MOST_NAME ? name : MOST_NAME);
        shape_width = larger(shape_width, strlen(tensor_shape(rows[i].one, shape, sizeof shape)));
        params_width = larger(params_width,
                              (size_t)snprintf(params, sizeof params, "%" PRIu64, rows[i].params));
    }
    for (size_t i = 0; i < n; i++) {
        const tensor_row *r = &rows[i];
        const int64_t mark = r->key.mark;
        layers[0] = '\0';
        if (r->in_layers && r->n == r->last - r->first + 1 && r->n > 1)
            snprintf(layers, sizeof layers, "  l = %d .. %d", r->first, r->last);
        else if (r->in_layers && r->n > 1)
            snprintf(layers, sizeof layers, "  %d of l = %d .. %d", r->n, r->first, r->last);
        else if (r->in_layers)
            snprintf(layers, sizeof layers, "  l = %d", r->first);
        ggl_fprint(stdout, "  %-*s %-*s %-6s %*" PRIu64 "%s%s%s\n", name_width, r->key.name,
                   shape_width, tensor_shape(r->one, shape, sizeof shape), tensor_type(r->one),
                   params_width, r->params, layers,
                   mark == NOT_READ     ? "  NOT READ"
                   : mark >= FIRST_PART ? "  not used: "
                                        : "",
                   mark >= FIRST_PART ? m->part[mark - FIRST_PART] : "");
    }
}

/* --- types ------------------------------------------------------------------------------------ */

typedef struct type_sum {
    int64_t type; /* first, as the key of the table */
    const ggl_gguf_tensor *one;
    uint64_t params, bytes;
} type_sum;

/* Prints a line for each type, in the order of first occurrence. False: out of memory. */
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
        printf("  %-6s %14" PRIu64 " parameters %14" PRIu64 " bytes %6.1f %%\n",
               tensor_type(sum[i].one), sum[i].params, sum[i].bytes,
               bytes ? 100.0 * (double)sum[i].bytes / (double)bytes : 0);
    if (ok)
        printf("  %-6s %14" PRIu64 " parameters %14" PRIu64 " bytes, %.2f bits each\n", "all",
               params, bytes, params ? 8.0 * (double)bytes / (double)params : 0);
    ggl_index_fini(&x);
    free(sum);
    return ok;
}

static void print_head(const ggl_gguf *f, const char *origin) {
    ggl_fprint(stdout,
               "%s: GGUF version %" PRIu32 ", %zu key%s, %zu tensor%s, %d file%s\n\nkeys%s%s%s\n",
               ggl_gguf_name(f), ggl_gguf_version(f), ggl_gguf_n_values(f),
               llm_amount_s((int64_t)ggl_gguf_n_values(f)), ggl_gguf_n_tensors(f),
               llm_amount_s((int64_t)ggl_gguf_n_tensors(f)), ggl_gguf_n_parts(f),
               llm_amount_s(ggl_gguf_n_parts(f)), origin ? ", and where " : "",
               origin ? origin : "", origin ? " reads them" : "");
}

static bool print_rows(const ggl_gguf *f, const tensor_marks *m) {
    tensor_row *rows;
    size_t n;
    uint64_t params = 0, bytes = 0;
    if (!tensor_rows(f, m->mark, &rows, &n))
        return false;
    for (size_t i = 0; i < n; i++) {
        params += rows[i].params;
        bytes += rows[i].bytes;
    }
    printf("\ntensors\n");
    print_tensors(rows, n, m);
    printf("\ntypes\n");
    bool ok = print_types(rows, n, params, bytes);
    free(rows);
    return ok;
}

static int show(const ggl_gguf *f, const llm_arch *arch, const char *origin) {
    tensor_marks m = {.mark = NULL};
    print_head(f, origin);
    bool judged = print_model_keys(f, arch);
    printf("\ntokenizer\n");
    print_keys(f, true);
    bool ok = mark_tensors(f, arch, &m) && print_rows(f, &m);
    free(m.mark);
    if (!ok)
        return tool_error(TOOL, 1, "out of memory");
    return judged ? 0 : 1;
}

/* Shows a model with its descriptor; the file alone if it has none and none was asked for. */
static int show_file(const char *path, const char *descriptor) {
    ggl_error err = {0};
    ggl_gguf *f = NULL;
    llm_model *m = NULL;
    const ggl_gguf_params fp = {.size = sizeof fp, .meta_only = true};
    const llm_model_params mp = {.size = sizeof mp, .arch_path = descriptor, .gguf = &fp};
    ggl_status st = tool_load_model(&m, path, &mp, 0, &err);
    if (st != GGL_OK && !descriptor) {
        ggl_error why = err;
        st = tool_load_file(&f, path, &fp, false, &err);
        if (st == GGL_OK)
            tool_note(TOOL, "it is unknown which keys are read: %s", why.msg);
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

/* Prints the text of a built-in descriptor. Returns -1 if the name is unknown, else the exit
 * code. */
static int show_descriptor(const char *name, const char *descriptor) {
    const char *file, *text;
    size_t n;
    if (ggl_os_exists(name))
        return -1;
    if (!llm_arch_builtin_named(name, &file, &text, &n)) {
        ggl_error err = {0};
        llm_arch *arch;
        if (strpbrk(name, "/.:") || llm_arch_open_given(&arch, name, NULL, &err) == GGL_OK)
            return -1; /* a path, or builtin:NAME */
        return tool_error(TOOL, 1, "%s", err.msg);
    }
    if (descriptor)
        return tool_error(TOOL, 2, "--arch is for a model, but %s is a built-in descriptor", name);
    fwrite(text, 1, n, stdout);
    return 0;
}

int arch_show(int argc, char **argv) {
    arg_list files = {0};
    const char *descriptor = NULL;
    const arg_option options[] = {{"--arch", ARG_STRING, &descriptor, .value = "FILE",
                                   .help = "the architecture descriptor to use"},
                                  {0}};
    static const args_example examples[] = {
        {"llm-arch show model.gguf", "prints keys, tensors and sizes of a model"}, {0}};
    const args_spec spec = {
        TOOL,
        "MODEL|NAME [options]",
        "Prints a model's keys, its tensors (those that are the same in all layers on "
        "one line), parameters and\nbytes; for each key of the architecture the line of "
        "the descriptor that reads it, or why it need not be read. builtin:stories and "
        "builtin:chat are models, too. Of a built-in "
        "descriptor (NAME, one of llm-arch list), prints its text.",
        options,
        &files,
        NULL,
        .examples = examples};
    int code = arch_args(&spec, 1, 1, argc, argv);
    if (code >= 0)
        return code;
    code = show_descriptor(files.s[0], descriptor);
    if (code < 0)
        code = show_file(files.s[0], descriptor);
    args_list_fini(&files);
    return code;
}
