/* llm-gguf diff: the keys and tensors in which two files differ, and by how much. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/gguf_text.h"
#include "common/hints.h"
#include "common/load.h"
#include "common/paths.h"
#include "common/process.h"
#include "common/progress.h"
#include "ggl/alloc.h"
#include "ggl/internal/show.h"
#include "ggl/internal/types.h"
#include "tool.h"

static const char TOOL[] = "llm-gguf diff";

typedef struct diff_job {
    const ggl_gguf *a, *b;
    gguf_patterns tensors;
    bool no_data, all;
    size_t n_keys, n_tensors; /* that differ */
    float *x, *y;             /* [PIECE] */
    double done;
} diff_job;

/* --- keys ------------------------------------------------------------------------------------- */

static const ggl_gguf_value *find_key(const ggl_gguf *f, ggl_str key) {
    char text[65536]; /* keys are shorter */
    if (key.n >= sizeof text)
        return NULL;
    memcpy(text, key.s, key.n);
    text[key.n] = '\0';
    return ggl_gguf_find(f, text);
}

static void print_value(const char *before, const ggl_gguf_value *v, const char *between) {
    char text[1024];
    ggl_fprint(stdout, "%s%.*s%s", before, (int)(v->key.n < 200 ? v->key.n : 200), v->key.s,
               between);
    printf("%s%s", value_text_within(v, 60, text, sizeof text), *before == '~' ? "" : "\n");
}

static void change_of(const ggl_gguf_value *x, const ggl_gguf_value *y) {
    char from[1024], to[1024];
    print_value("~ ", x, ": ");
    value_text_within(x, 60, from, sizeof from);
    value_text_within(y, 60, to, sizeof to);
    printf(" -> %s", to);
    if (x->type != y->type || x->is_array != y->is_array)
        printf(" (%s%s -> %s%s)", ggl_gguf_type_name(x->type), x->is_array ? "[]" : "",
               ggl_gguf_type_name(y->type), y->is_array ? "[]" : "");
    else if (strcmp(from, to) == 0)
        printf(" (they differ later on)");
    putchar('\n');
}

static void diff_keys(diff_job *j) {
    size_t n_same = 0;
    printf("keys\n");
    for (size_t i = 0; i < ggl_gguf_n_values(j->a); i++) {
        const ggl_gguf_value *x = ggl_gguf_value_at(j->a, i), *y = find_key(j->b, x->key);
        if (y && ggl_gguf_same_value(x, y)) {
            n_same++;
            continue;
        }
        j->n_keys++;
        if (y)
            change_of(x, y);
        else
            print_value("- ", x, ": ");
    }
    for (size_t i = 0; i < ggl_gguf_n_values(j->b); i++) {
        const ggl_gguf_value *y = ggl_gguf_value_at(j->b, i);
        if (find_key(j->a, y->key))
            continue;
        j->n_keys++;
        print_value("+ ", y, ": ");
    }
    printf("  %zu the same, %zu different\n\ntensors\n", n_same, j->n_keys);
}

/* --- tensors ---------------------------------------------------------------------------------- */

enum { PIECE = 1 << 16 }; /* elements: whole blocks of every type */

/* The difference of two tensors with n elements, after decoding. */
typedef struct diff_sum {
    double n, max, sum2, of2; /* largest; sums of the squares of differences, and of a's elements */
    double n_other;           /* elements that differ */
    bool nan;
} diff_sum;

static void add_one(diff_sum *d, double x, double y) {
    const double e = fabs(x - y);
    d->n++;
    d->of2 += x * x;
    if (memcmp(&x, &y, sizeof x) == 0 || e == 0)
        return;
    d->n_other++;
    d->nan |= !isfinite(e);
    d->sum2 += e * e;
    d->max = e > d->max ? e : d->max;
}

static void add_piece(diff_sum *d, const float *x, const float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        add_one(d, (double)x[i], (double)y[i]);
}

/* The same for numbers of two types that f32 does not hold exactly. */
static void add_exact(diff_sum *d, ggl_type type, const char *a, const char *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        double x, y;
        int32_t v[2];
        if (type == GGL_I32) {
            memcpy(&v[0], a + 4 * i, 4);
            memcpy(&v[1], b + 4 * i, 4);
            x = v[0];
            y = v[1];
        } else {
            memcpy(&x, a + 8 * i, 8);
            memcpy(&y, b + 8 * i, 8);
        }
        add_one(d, x, y);
    }
}

/* Decodes both tensors, of n elements, and drops their pages. False: interrupted. */
static bool compare_data(diff_job *j, const ggl_gguf_tensor *t, const ggl_gguf_tensor *u, int64_t n,
                         diff_sum *d) {
    const ggl_type_info *p = ggl_type_get((int)t->type), *q = ggl_type_get((int)u->type);
    const char *a = t->data, *b = u->data;
    for (int64_t at = 0, k; at < n && !process_stopped; at += k) {
        k = n - at < PIECE ? n - at : PIECE;
        const size_t i = ggl_bytes_before(p, t->ne[0], at),
                     m = ggl_bytes_before(p, t->ne[0], at + k) - i;
        const size_t i_b = ggl_bytes_before(q, u->ne[0], at),
                     m_b = ggl_bytes_before(q, u->ne[0], at + k) - i_b;
        if (p == q && memcmp(a + i, b + i, m) == 0) {
            d->n += (double)k;
        } else if (p == q && !ggl_type_has_products(t->type)) {
            add_exact(d, t->type, a + i, b + i_b, k);
        } else {
            ggl_to_float(p, a, t->ne[0], at, k, j->x);
            ggl_to_float(q, b, u->ne[0], at, k, j->y);
            add_piece(d, j->x, j->y, k);
        }
        ggl_gguf_drop(j->a, a + i, m);
        ggl_gguf_drop(j->b, b + i_b, m_b);
        j->done += (double)m;
        progress_set(j->done);
    }
    return !process_stopped;
}

static void print_tensor(const char *sign, const ggl_gguf_tensor *t) {
    char shape[128];
    tool_begin_line();
    ggl_fprint(stdout, "%s %-28.*s %s %s", sign, (int)t->name.n, t->name.s, tensor_type(t),
               tensor_shape(t, shape, sizeof shape));
}

static void print_sum(const diff_sum *d) {
    printf("\n    %.0f of %.0f differ: max %.2e, rms %.2e, relative %.2e%s\n", d->n_other, d->n,
           d->max, sqrt(d->sum2 / (d->n > 0 ? d->n : 1)), d->of2 > 0 ? sqrt(d->sum2 / d->of2) : 0,
           d->nan ? ", some by NaN or infinities" : "");
}

static bool same_shape(const ggl_gguf_tensor *t, const ggl_gguf_tensor *u) {
    return memcmp(t->ne, u->ne, sizeof t->ne) == 0;
}

/* Compares tensors of the same name. False: interrupted. */
static bool diff_tensor(diff_job *j, const ggl_gguf_tensor *t, const ggl_gguf_tensor *u) {
    diff_sum d = {0};
    char shape[128];
    if (same_shape(t, u) && !j->no_data && !compare_data(j, t, u, (int64_t)tensor_elements(t), &d))
        return false;
    const bool same = same_shape(t, u) && t->type == u->type && d.n_other == 0;
    j->n_tensors += !same;
    if (same && !j->all)
        return true;
    print_tensor(same ? " " : "~", t);
    if (t->type != u->type || !same_shape(t, u))
        printf(" -> %s %s", tensor_type(u), tensor_shape(u, shape, sizeof shape));
    if (d.n_other > 0)
        print_sum(&d);
    else
        printf(same_shape(t, u) && !same && !j->no_data ? "\n    the same numbers\n" : "\n");
    return true;
}

static const ggl_gguf_tensor *find_tensor(const ggl_gguf *f, ggl_str name) {
    char text[256];
    snprintf(text, sizeof text, "%.*s", (int)name.n, name.s);
    return ggl_gguf_find_tensor(f, text);
}

static bool diff_tensors(diff_job *j) {
    size_t n = 0;
    for (size_t i = 0; i < ggl_gguf_n_tensors(j->a); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(j->a, i), *u = find_tensor(j->b, t->name);
        if (!gguf_patterns_match(&j->tensors, t->name))
            continue;
        n++;
        if (u && !diff_tensor(j, t, u))
            return false;
        if (u)
            continue;
        j->n_tensors++;
        print_tensor("-", t);
        putchar('\n');
    }
    for (size_t i = 0; i < ggl_gguf_n_tensors(j->b); i++) {
        const ggl_gguf_tensor *u = ggl_gguf_tensor_at(j->b, i);
        if (find_tensor(j->a, u->name) || !gguf_patterns_match(&j->tensors, u->name))
            continue;
        n++;
        j->n_tensors++;
        print_tensor("+", u);
        putchar('\n');
    }
    tool_begin_line();
    printf("  %zu the same%s, %zu different\n", n - j->n_tensors,
           j->no_data ? " in type and shape" : "", j->n_tensors);
    return true;
}

/* --- the command ------------------------------------------------------------------------------ */

static int diff(diff_job *j) {
    j->x = ggl_calloc(PIECE, sizeof *j->x);
    j->y = ggl_calloc(PIECE, sizeof *j->y);
    if (!j->x || !j->y)
        return tool_error(TOOL, 1, "out of memory");
    diff_keys(j);
    progress_begin(PROGRESS_BYTES, gguf_bytes(j->a), "comparing");
    const bool done = diff_tensors(j);
    progress_end();
    if (!done)
        return tool_error(TOOL, process_stop_code(), "interrupted");
    return j->n_keys > 0 || j->n_tensors > 0;
}

static int open_and_diff(diff_job *j, const arg_list *files) {
    ggl_error err = {0};
    ggl_gguf *f[2] = {NULL, NULL};
    int code = 0;
    const ggl_gguf_params p = {.size = sizeof p, .meta_only = j->no_data};
    for (int k = 0; k < 2 && code == 0; k++)
        if (tool_load_file(&f[k], files->s[k], &p, false, &err) != GGL_OK)
            code = tool_error(TOOL, 1, "%s", err.msg);
    j->a = f[0];
    j->b = f[1];
    if (code == 0)
        code = diff(j);
    ggl_free(j->x);
    ggl_free(j->y);
    ggl_gguf_close(f[0]);
    ggl_gguf_close(f[1]);
    return code;
}

int gguf_diff(int argc, char **argv) {
    arg_list files = {0}, tensors = {0};
    diff_job j = {0};
    const arg_option options[] = {
        {"--all", ARG_FLAG, &j.all, .help = "also print the tensors that are the same"},
        {"--no-data", ARG_FLAG, &j.no_data, .help = "compare only keys, types and shapes"},
        {"--tensors", ARG_LIST, &tensors, .value = "PATTERN",
         .help = "only tensors that this regular expression matches; repeatable"},
        {0}};
    static const args_example examples[] = {
        {"llm-gguf diff model.gguf model-q4.gguf", "what did quantization change, and how much?"},
        {"llm-gguf diff --no-data old.gguf new.gguf", "only keys, types and shapes"},
        {0}};
    const args_spec spec = {
        TOOL,
        "A B [options]",
        "Compares two GGUF files: keys that only one has or that differ; tensors "
        "that differ in type, shape or numbers (the largest difference after "
        "decoding, the root of the mean square, and that relative to A). Order "
        "does not matter. Exit code 0: they are the same, 1: they differ.",
        options,
        &files,
        &gguf_hints,
        .examples = examples};
    int code = args_parse_between(&spec, 2, 2, argc, argv);
    if (code >= 0)
        return code;
    const tool_path paths[] = {{"A", files.s[0], .needed = true, .model = true},
                               {"B", files.s[1], .needed = true, .model = true}};
    code = tool_check_paths(TOOL, paths, 2);
    if (code < 0)
        code = gguf_patterns_open(TOOL, "--tensors", &tensors, &j.tensors);
    process_wait_for_stop();
    if (code < 0)
        code = open_and_diff(&j, &files);
    if (code <= 1)
        gguf_patterns_warn(TOOL, "--tensors ", &tensors, &j.tensors, "tensor");
    gguf_patterns_close(&j.tensors);
    args_list_fini(&files);
    args_list_fini(&tensors);
    return code;
}
