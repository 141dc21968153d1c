/* llm-gguf show: prints keys, tensors and sizes, as text or JSON. Files that are cut off, or whose
 * types are unknown, are shown, too. */
#include "show.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/color.h"
#include "common/gguf_text.h"
#include "common/hints.h"
#include "common/load.h"
#include "common/paths.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/index.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "llm/internal/load.h"

static const char TOOL[] = "llm-gguf show";

enum { MOST_NAME = 44 };

/* --- sums ------------------------------------------------------------------------------------- */

static void add(gguf_sum *s, const ggl_gguf_tensor *t) {
    const double n = (double)tensor_elements(t);
    s->n++;
    s->params += n;
    s->bytes += (double)t->size;
    s->known += ggl_type_get((int)t->type) ? n : 0;
}

/* Adds the tensor to the sum with this number, a new one if there is none yet. */
static void add_to(gguf_sum *sums, size_t *n, ggl_index *x, int64_t number,
                   const ggl_gguf_tensor *t) {
    sums[*n] = (gguf_sum){.type = number};
    const size_t first = ggl_index_put(x, sums, *n);
    add(&sums[first], t);
    *n += first == *n;
}

static bool sum_up(gguf_view *v) {
    const size_t n = ggl_gguf_n_tensors(v->file);
    ggl_index types = {0}, layers = {0};
    v->types = calloc(n + 1, sizeof *v->types);
    v->layers = calloc(n + 1, sizeof *v->layers);
    const size_t key = sizeof v->types->type;
    const bool ok = v->types && v->layers &&
                    ggl_index_init(&types, n, sizeof *v->types, key, NULL) == GGL_OK &&
                    ggl_index_init(&layers, n, sizeof *v->layers, key, NULL) == GGL_OK;
    for (size_t i = 0; ok && i < n; i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(v->file, i);
        ggl_str rest;
        if (!gguf_patterns_match(&v->tensors, t->name))
            continue;
        add(&v->all, t);
        add_to(v->types, &v->n_types, &types, (int64_t)t->type, t);
        add_to(v->layers, &v->n_layers, &layers, tensor_layer(t->name, &rest), t);
    }
    ggl_index_fini(&types);
    ggl_index_fini(&layers);
    return ok;
}

/* --- text ------------------------------------------------------------------------------------- */

static void heading(const gguf_view *v, const char *text) {
    printf("\n%s%s%s\n", v->color ? COLOR_PROMPT : "", text, v->color ? COLOR_RESET : "");
}

static int larger(int a, size_t b) {
    return (size_t)a < b ? (int)b : a;
}

/* Prints all elements of a value. */
static void print_full(const ggl_gguf_value *v) {
    for (uint64_t i = 0; i < v->n; i++) {
        ggl_str s;
        char text[NUMBER_TEXT];
        printf("%s", !v->is_array ? "" : i == 0 ? "[" : ", ");
        if (ggl_gguf_string(v, i, &s))
            ggl_fprint(stdout, "\"%.*s\"", (int)s.n, s.s);
        else
            printf("%s", number_text(v, i, 17, text));
    }
    printf("%s", !v->is_array ? "" : v->n == 0 ? "[]" : "]");
}

static void print_key(const gguf_view *v, const ggl_gguf_value *k, int name, int width) {
    char text[1024], type[48];
    if (k->is_array)
        snprintf(type, sizeof type, "%s[%" PRIu64 "]", ggl_gguf_type_name(k->type), k->n);
    else
        snprintf(type, sizeof type, "%s", ggl_gguf_type_name(k->type));
    char shown[4 * MOST_NAME + 8];
    const bool cut = k->key.n > 2 * MOST_NAME && !v->full;
    const size_t n = ggl_show(shown, sizeof shown, k->key.s, cut ? MOST_NAME : k->key.n);
    if (v->full && n >= sizeof shown)
        ggl_fprint(stdout, "  %.*s", (int)k->key.n, k->key.s);
    else
        printf("  %-*s", name, shown);
    printf(" %-*s ", 6, type);
    const int at = 2 + larger(name, n) + 1 + larger(6, strlen(type)) + 1;
    if (v->full)
        print_full(k);
    else
        printf("%s", value_text_within(k, at + 20 < width ? (size_t)(width - at) : 20, text,
                                       sizeof text));
    putchar('\n');
}

static void print_keys(const gguf_view *v, int width) {
    int name = 0;
    bool any = false;
    for (size_t i = 0; i < ggl_gguf_n_values(v->file); i++) {
        const ggl_str key = ggl_gguf_value_at(v->file, i)->key;
        if (gguf_patterns_match(&v->keys, key))
            name = larger(name, key.n < MOST_NAME ? key.n : MOST_NAME);
    }
    for (size_t i = 0; i < ggl_gguf_n_values(v->file); i++) {
        const ggl_gguf_value *k = ggl_gguf_value_at(v->file, i);
        if (!gguf_patterns_match(&v->keys, k->key))
            continue;
        if (!any)
            heading(v, "keys");
        any = true;
        print_key(v, k, name, width);
    }
}

static void print_tensor(const gguf_view *v, const ggl_gguf_tensor *t, int name, int shape) {
    char dims[128];
    ggl_fprint(stdout, "  %-*.*s %-*s %-7s", name, (int)t->name.n, t->name.s, shape,
               tensor_shape(t, dims, sizeof dims), tensor_type(t));
    if (!ggl_type_get((int)t->type)) {
        printf("  type number %d, which is unknown here\n", (int)t->type);
        return;
    }
    const double n = (double)tensor_elements(t);
    printf(" %13zu bytes %6.3f bits%s\n", t->size, n > 0 ? 8 * (double)t->size / n : 0,
           gguf_is_there(v, t) ? "" : "  MISSING");
}

static void print_tensors(const gguf_view *v) {
    int name = 0, shape = 0;
    char dims[128];
    const size_t n = ggl_gguf_n_tensors(v->file);
    for (size_t i = 0; i < n; i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(v->file, i);
        if (!gguf_patterns_match(&v->tensors, t->name))
            continue;
        name = larger(name, t->name.n < MOST_NAME ? t->name.n : MOST_NAME);
        shape = larger(shape, strlen(tensor_shape(t, dims, sizeof dims)));
    }
    if (v->all.n > 0)
        heading(v, "tensors");
    for (size_t i = 0; i < n; i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(v->file, i);
        if (gguf_patterns_match(&v->tensors, t->name))
            print_tensor(v, t, name, shape);
    }
}

static void print_sum(const gguf_view *v, const char *name, const gguf_sum *s) {
    printf("  %-14s %7zu %16.0f %12.2f %8.3f %7.1f\n", name, s->n, s->params, s->bytes / 0x1p20,
           gguf_sum_bits(s), v->all.bytes > 0 ? 100 * s->bytes / v->all.bytes : 0);
}

static void sum_heading(const gguf_view *v, const char *text) {
    char line[96];
    snprintf(line, sizeof line, "%-16s %7s %16s %12s %8s %7s", text, "tensors", "elements", "MiB",
             "bits", "%");
    heading(v, line);
}

static bool same_sum(const gguf_sum *a, const gguf_sum *b) {
    return a->n == b->n && a->params == b->params && a->bytes == b->bytes && a->known == b->known;
}

/* Prints a line for each layer; equal layers that follow each other share one. */
static void print_layers(const gguf_view *v) {
    char name[48];
    for (size_t i = 0, next; i < v->n_layers; i = next) {
        const gguf_sum *s = &v->layers[i];
        for (next = i + 1; s->type >= 0 && next < v->n_layers; next++)
            if (v->layers[next].type != s->type + (int64_t)(next - i) ||
                !same_sum(&v->layers[next], s))
                break;
        const int64_t last = s->type + (int64_t)(next - i) - 1;
        if (s->type < 0)
            snprintf(name, sizeof name, "no layer");
        else if (last == s->type)
            snprintf(name, sizeof name, "layer %" PRId64, s->type);
        else
            snprintf(name, sizeof name, "each of %" PRId64 "-%" PRId64, s->type, last);
        print_sum(v, name, s);
    }
}

static void print_sums(const gguf_view *v) {
    char name[32];
    if (v->all.n == 0)
        return;
    sum_heading(v, "types");
    for (size_t i = 0; i < v->n_types; i++) {
        const ggl_gguf_tensor t = {.type = (ggl_type)v->types[i].type};
        snprintf(name, sizeof name, "%s", tensor_type(&t));
        if (name[0] == '?')
            snprintf(name, sizeof name, "type %d", (int)t.type);
        print_sum(v, name, &v->types[i]);
    }
    print_sum(v, "all", &v->all);
    sum_heading(v, "layers");
    print_layers(v);
}

static void print_defects(const gguf_view *v) {
    if (v->n_defects > 0)
        heading(v, "defects");
    for (size_t i = 0; i < v->n_defects && i < GGUF_PAGE; i++) {
        printf("  ");
        tool_print_line(v->defect[i], 2, 4);
    }
    if (v->n_defects > GGUF_PAGE)
        printf("  and %zu more; --json has all\n", v->n_defects - GGUF_PAGE);
}

static void show_text(const gguf_view *v) {
    const ggl_gguf *f = v->file;
    const int width = tool_width();
    ggl_fprint(stdout, "%s: GGUF version %" PRIu32 ", %zu key%s, %zu tensor%s, ", ggl_gguf_name(f),
               ggl_gguf_version(f), ggl_gguf_n_values(f), ggl_gguf_n_values(f) == 1 ? "" : "s",
               ggl_gguf_n_tensors(f), ggl_gguf_n_tensors(f) == 1 ? "" : "s");
    if (ggl_gguf_n_parts(f) > 1)
        printf("%d files, ", ggl_gguf_n_parts(f));
    printf("%.2f MiB\n", v->file_bytes / 0x1p20);
    print_defects(v);
    if (!v->only_tensors)
        print_keys(v, width);
    if (!v->only_keys) {
        print_tensors(v);
        print_sums(v);
    }
}

/* --- the command ------------------------------------------------------------------------------ */

static void on_defect(void *ctx, const char *text) {
    gguf_view *v = ctx;
    if (!ggl_grow(&v->defect, &v->cap_defects, v->n_defects + 1, sizeof *v->defect))
        return;
    v->defect[v->n_defects] = ggl_copy_text(text);
    v->n_defects += v->defect[v->n_defects] != NULL;
}

static int show(gguf_view *v, const char *path, bool json) {
    ggl_error err = {0};
    ggl_gguf *f;
    v->path = path;
    v->folder = llm_load_converts(path);
    const ggl_gguf_params p = {
        .size = sizeof p, .meta_only = v->folder, .defect = on_defect, .ctx = v};
    int code = 0;
    if (tool_load_file(&f, path, &p, false, &err) != GGL_OK) {
        code = tool_error(TOOL, 1, "%s", err.msg);
        on_defect(v, err.msg);
    }
    v->file = f;
    if (code == 0 && v->folder)
        v->file_bytes = gguf_bytes(f);
    for (int k = 0; code == 0 && !v->folder && k < ggl_gguf_n_parts(f); k++) {
        size_t size;
        (void)ggl_gguf_part(f, k, &size);
        v->file_bytes += (double)size;
    }
    if (code == 0 && !sum_up(v))
        code = tool_error(TOOL, 1, "out of memory");
    else if (json)
        gguf_show_json(v);
    else if (code == 0)
        show_text(v);
    if (code == 0 && v->n_defects > 0) { /* shown as far as it goes, but damaged */
        const char *first = v->defect[0];
        const bool named = strncmp(first, path, strlen(path)) == 0;
        code =
            v->n_defects == 1
                ? tool_error(TOOL, 1, "%s%s%s", named ? "" : path, named ? "" : ": ", first)
                : tool_error(TOOL, 1, "%s: %zu defects, the first: %s", path, v->n_defects, first);
    }
    ggl_gguf_close(f);
    free(v->types);
    free(v->layers);
    return code;
}

/* Checks that the file is there and may be read. Returns -1, or an exit code after a message, which is a defect, too. */
static int check_path(gguf_view *v, const char *path, bool json) {
    char wrong[1024] = "";
    const int code = gguf_check_path(TOOL, path, wrong, sizeof wrong);
    v->path = path;
    if (code >= 0 && json) {
        on_defect(v, wrong);
        gguf_show_json(v);
    }
    return code;
}

int gguf_show(int argc, char **argv) {
    arg_list files = {0}, keys = {0}, tensors = {0};
    gguf_view v = {0};
    bool json = false;
    const char *color = NULL;
    const arg_option options[] = {
        {"--full", ARG_FLAG, &v.full, .help = "all elements of arrays, and whole strings"},
        {"--json", ARG_FLAG, &json,
         .help = "as JSON (docs/tools.md); arrays of more than 64 elements only with --full"},
        {"--keys", ARG_LIST, &keys, .value = "PATTERN",
         .help =
             "only keys that this regular expression matches; repeatable. Without --tensors, no "
             "tensors"},
        {"--tensors", ARG_LIST, &tensors, .value = "PATTERN",
         .help = "only these tensors, also in the sums; repeatable. Without --keys, no keys"},
        {"--color", ARG_MAYBE, &color, .value = "WHEN", .choices = tool_color_choices,
         .help = "color headings: auto (default: on a terminal), always, never"},
        {0}};
    static const args_example examples[] = {
        {"llm-gguf show model.gguf", "prints everything about a model"},
        {"llm-gguf show model.gguf --keys rope --keys attention", "only some keys"},
        {"llm-gguf show model.gguf --json --full", "as JSON, with the whole vocabulary"},
        {0}};
    const args_spec spec = {
        TOOL,
        "FILE [options]",
        "Prints the keys of a GGUF file (of a split model: its first part), its "
        "tensors with shape, type and size, and the sums of each type and layer. "
        "Files that are cut off or have unknown types are shown, too, with what is wrong with "
        "them and exit code 1.",
        options,
        &files,
        &gguf_hints,
        .examples = examples};
    int code = args_parse_between(&spec, 1, 1, argc, argv);
    if (code < 0)
        code = gguf_patterns_open(TOOL, "--keys", &keys, &v.keys);
    if (code < 0)
        code = gguf_patterns_open(TOOL, "--tensors", &tensors, &v.tensors);
    v.only_keys = keys.n > 0 && tensors.n == 0;
    v.only_tensors = tensors.n > 0 && keys.n == 0;
    v.color = tool_color(color, stdout);
    if (code < 0)
        code = check_path(&v, files.s[0], json);
    if (code < 0)
        code = show(&v, files.s[0], json);
    if (code == 0) {
        gguf_patterns_warn(TOOL, "--keys ", &keys, &v.keys, "key");
        gguf_patterns_warn(TOOL, "--tensors ", &tensors, &v.tensors, "tensor");
    }
    for (size_t i = 0; i < v.n_defects; i++)
        free(v.defect[i]);
    ggl_free(v.defect);
    gguf_patterns_close(&v.keys);
    gguf_patterns_close(&v.tensors);
    args_list_fini(&files);
    args_list_fini(&keys);
    args_list_fini(&tensors);
    return code;
}
