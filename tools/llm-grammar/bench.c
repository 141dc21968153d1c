/* llm-grammar --bench: schemas with instances, as the benchmark MaskBench has them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/input.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/json.h"
#include "ggl/alloc.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "ggl/internal/text.h"
#include "tool.h"

/* Measured times in microseconds. */
typedef struct times {
    double *us;
    size_t n, cap;
} times;

typedef struct bench {
    llm_tokenizer *tokenizer;
    llm_vocab *vocab;
    uint32_t *mask;
    bool verbose;
    size_t n_schemas, n_passing, n_refused, n_misjudged, n_instances;
    times compile, masks;
} bench;

static double now_us(void) {
    return ggl_os_seconds() * 1e6;
}

static void add_time(times *t, double us) {
    if (ggl_grow(&t->us, &t->cap, t->n + 1, sizeof *t->us))
        t->us[t->n++] = us;
}

static int compare_doubles(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *what, times *t) {
    double sum = 0;
    if (t->n == 0)
        return;
    qsort(t->us, t->n, sizeof *t->us, compare_doubles);
    for (size_t i = 0; i < t->n; i++)
        sum += t->us[i];
    printf("%-12s %8zu   mean %9.1f   median %9.1f   99 %% %9.1f   max %9.1f us\n", what, t->n,
           sum / (double)t->n, t->us[t->n / 2], t->us[(size_t)(0.99 * (double)(t->n - 1))],
           t->us[t->n - 1]);
}

/* --- JSON text -------------------------------------------------------------------------------- */

/* A text under construction. */
typedef struct text {
    char *s;
    size_t n, cap;
    bool failed;
} text;

static void put(text *t, const char *s, size_t n) {
    if (t->failed || !ggl_grow(&t->s, &t->cap, t->n + n, 1)) {
        t->failed = true;
        return;
    }
    if (n > 0)
        memcpy(t->s + t->n, s, n);
    t->n += n;
}

static void put_string(text *t, ggl_str s) {
    static const char named[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    put(t, "\"", 1);
    for (size_t i = 0; i < s.n; i++) {
        const char *escape = s.s[i] ? strchr(named, s.s[i]) : NULL;
        char code[8];
        if (escape)
            put(t, (char[]){'\\', letter[escape - named]}, 2);
        else if ((unsigned char)s.s[i] < 0x20)
            put(t, code, (size_t)snprintf(code, sizeof code, "\\u%04x", (unsigned)s.s[i]));
        else
            put(t, s.s + i, 1);
    }
    put(t, "\"", 1);
}

/* NaN and infinities have no text. */
static void put_number(text *t, const json_value *v) {
    const ggl_str s = json_number_text(v);
    const char *odd = isnan(v->number) ? "NaN" : v->number > 0 ? "Infinity" : "-Infinity";
    put(t, s.n ? s.s : odd, s.n ? s.n : strlen(odd));
}

/* Writes a value as Python's json.dumps does, names in the order they have, numbers as they
 * are written. */
static void put_value(text *t, const json_value *v) {
    const char *word = v->kind == JSON_NULL ? "null" : v->flag ? "true" : "false";
    switch (v->kind) {
    case JSON_NUMBER:
        put_number(t, v);
        return;
    case JSON_STRING:
        put_string(t, json_str(v));
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
        put(t, v->kind == JSON_ARRAY ? "[" : "{", 1);
        for (uint32_t i = 0; i < v->n; i++) {
            put(t, ", ", i > 0 ? 2 : 0);
            if (v->kind == JSON_OBJECT) {
                put_string(t, json_name(v, i));
                put(t, ": ", 2);
            }
            put_value(t, &v->item[i]);
        }
        put(t, v->kind == JSON_ARRAY ? "]" : "}", 1);
        return;
    default:
        put(t, word, strlen(word));
    }
}

/* --- judging ---------------------------------------------------------------------------------- */

/* Some tokenizers put a space before a text, which is not the grammar's: the first token's other bytes
 * are given to the matcher as bytes. Returns how many tokens that concerns. */
static size_t skip_space(const bench *b, llm_matcher *m, const text *t, const llm_tokens *ids,
                         bool *fits, ggl_error *err) {
    const ggl_str first =
        ids->n > 0 ? llm_token_text(b->tokenizer, ids->id[0], false) : (ggl_str){"", 0};
    if (first.n == 0 || first.s[0] != ' ' || (t->n > 0 && t->s[0] == ' '))
        return 0;
    size_t n = 0;
    *fits = llm_matcher_accept_bytes(m, first.s + 1, first.n - 1, &n, err) == GGL_OK &&
            n == first.n - 1;
    return 1;
}

/* Gives the text to the matcher token by token, a mask before each. Returns whether it fits. */
static bool fits_by_tokens(bench *b, llm_matcher *m, const text *t, ggl_error *err) {
    llm_tokens ids = {0};
    bool fits = llm_tokenize(b->tokenizer, t->s, t->n, 0, &ids, err) == GGL_OK;
    for (size_t i = fits ? skip_space(b, m, t, &ids, &fits, err) : 0; i < ids.n && fits; i++) {
        const double begin = now_us();
        fits = llm_matcher_mask(m, LLM_MATCHER_NO_BUDGET, b->mask, err) == GGL_OK;
        add_time(&b->masks, now_us() - begin);
        const uint32_t id = (uint32_t)ids.id[i];
        fits = fits && (b->mask[id / 32] >> (id % 32) & 1) != 0 &&
               llm_matcher_accept_token(m, ids.id[i], err) == GGL_OK;
    }
    llm_tokens_fini(&ids);
    return fits && llm_matcher_is_complete(m);
}

static bool fits_by_bytes(llm_matcher *m, const text *t, ggl_error *err) {
    size_t n = 0;
    return llm_matcher_accept_bytes(m, t->s, t->n, &n, err) == GGL_OK && n == t->n &&
           llm_matcher_is_complete(m);
}

/* Judges one instance. Returns false if that is wrong. */
static bool judge(bench *b, llm_matcher *m, ggl_str name, const json_value *data, bool valid) {
    ggl_error err = {0};
    text t = {0};
    put_value(&t, data);
    llm_matcher_reset(m);
    bool fits = fits_by_bytes(m, &t, &err);
    if (b->vocab) {
        llm_matcher_reset(m);
        const bool by_tokens = fits_by_tokens(b, m, &t, &err);
        if (by_tokens != fits) {
            progress_clear();
            ggl_fprint(stdout, "%.*s: bytes and tokens disagree\n", (int)name.n, name.s);
        }
        fits = fits && by_tokens;
    }
    b->n_instances++;
    if (fits != valid) {
        progress_clear();
        ggl_fprint(stdout, "misjudged: %.*s: %s instance is %s: %.*s%s%s\n", (int)name.n, name.s,
                   valid ? "a valid" : "an invalid", fits ? "accepted" : "rejected",
                   (int)(t.n < 200 ? t.n : 200), t.s, err.msg[0] ? ": " : "", err.msg);
    }
    ggl_free(t.s);
    return fits == valid;
}

/* The instances: "tests", or the lists "valid" and "invalid". */
static bool judge_all(bench *b, llm_matcher *m, ggl_str name, const json_value *row) {
    const json_value *tests = llm_json_get_kind(row, "tests", JSON_ARRAY);
    const json_value *valid = llm_json_get_kind(row, "valid", JSON_ARRAY);
    const json_value *invalid = llm_json_get_kind(row, "invalid", JSON_ARRAY);
    bool right = true;
    for (uint32_t i = 0; tests && i < tests->n; i++) {
        const json_value *data = llm_json_get(&tests->item[i], "data");
        const json_value *flag = llm_json_get_kind(&tests->item[i], "valid", JSON_BOOL);
        right &= !data || !flag || judge(b, m, name, data, flag->flag);
    }
    for (uint32_t i = 0; valid && i < valid->n; i++)
        right &= judge(b, m, name, &valid->item[i], true);
    for (uint32_t i = 0; invalid && i < invalid->n; i++) {
        const json_value *data = llm_json_get(&invalid->item[i], "instance");
        right &= !data || judge(b, m, name, data, false);
    }
    return right;
}

/* Compiles a schema and judges its instances. */
static void bench_schema(bench *b, const json_value *row, const char *file) {
    ggl_error err = {0};
    text schema = {0};
    llm_grammar *g = NULL;
    llm_matcher *m = NULL;
    const json_value *v = llm_json_get(row, "schema");
    const json_value *given = llm_json_get_kind(row, "name", JSON_STRING);
    const ggl_str name = given ? json_str(given) : (ggl_str){file, strlen(file)};
    if (!v) {
        progress_clear();
        ggl_fprint(stdout, "%s: no \"schema\"\n", file);
        return;
    }
    put_value(&schema, v);
    b->n_schemas++;
    progress_say("%s, %zu schemas", file, b->n_schemas);
    const double begin = now_us();
    ggl_status st = llm_grammar_from_schema(&g, schema.s, schema.n, "schema", &err);
    if (st == GGL_OK)
        add_time(&b->compile, now_us() - begin);
    if (st == GGL_OK)
        st = llm_matcher_new(&m, g, b->vocab, &err);
    if (st != GGL_OK) {
        b->n_refused++;
        progress_clear();
        if (b->verbose)
            ggl_fprint(stdout, "refused: %.*s: %s\n", (int)name.n, name.s, err.msg);
    } else if (judge_all(b, m, name, row)) {
        b->n_passing++;
    } else {
        b->n_misjudged++;
    }
    llm_matcher_free(m);
    llm_grammar_free(g);
    ggl_free(schema.s);
}

/* --- files ------------------------------------------------------------------------------------ */

/* One value, or one on each line. Returns 0, or an exit code after a message. */
static int bench_text(bench *b, const char *path, char *s, size_t n, bool lines) {
    size_t number = 0;
    for (size_t i = 0, len; i < n; i += len + 1) {
        ggl_error err = {0};
        llm_json *doc;
        char where[400];
        const char *newline = lines ? memchr(s + i, '\n', n - i) : NULL;
        len = newline ? (size_t)(newline - s) - i : n - i;
        number++;
        if (strspn(s + i, " \t\r\n") >= len)
            continue;
        snprintf(where, sizeof where, lines ? "%s:%zu" : "%s", path, number);
        s[i + len] = '\0';
        if (llm_json_parse(&doc, s + i, len, where, &err) != GGL_OK)
            return tool_error(GRAMMAR_TOOL, 1, "%s", err.msg);
        bench_schema(b, &doc->root, where);
        llm_json_free(doc);
    }
    return 0;
}

static int bench_file(bench *b, const char *path) {
    size_t n;
    char *s = tool_read_at_most(GRAMMAR_TOOL, path, GRAMMAR_MOST_TEXT, &n);
    if (!s)
        return 1;
    const int code = bench_text(b, path, s, n, ggl_ends_with(path, ".jsonl"));
    free(s);
    return code;
}

static bool is_json(const char *e) {
    return ggl_ends_with(e, ".json") || ggl_ends_with(e, ".jsonl");
}

static int bench_path(bench *b, const char *path) {
    char **entry;
    if (!ggl_os_is_folder(path))
        return bench_file(b, path);
    const int64_t n = ggl_os_folder_list(path, is_json, &entry);
    int code = n < 0    ? tool_error(GRAMMAR_TOOL, 1, "%s: the folder cannot be read", path)
               : n == 0 ? tool_error(GRAMMAR_TOOL, 1, "%s: no .json or .jsonl file", path)
                        : 0;
    for (int64_t i = 0; i < n; i++) {
        (void)progress_share(NULL, (size_t)i, (size_t)n);
        const size_t size = strlen(path) + strlen(entry[i]) + 2;
        char *file = malloc(size);
        if (file && code == 0) {
            snprintf(file, size, "%s/%s", path, entry[i]);
            code = bench_file(b, file);
        }
        free(file);
        free(entry[i]);
    }
    free(entry);
    return code;
}

static int open_model(bench *b, const char *path) {
    ggl_error err = {0};
    ggl_gguf *file;
    const ggl_gguf_params params = {.size = sizeof params, .meta_only = true};
    ggl_status st = ggl_gguf_open(&file, path, &params, &err);
    if (st == GGL_OK) {
        st = llm_tokenizer_new(&b->tokenizer, file, &err);
        ggl_gguf_close(file);
    }
    if (st == GGL_OK)
        st = llm_vocab_new(&b->vocab, b->tokenizer, &err);
    if (st != GGL_OK)
        return tool_error(GRAMMAR_TOOL, 1, "%s", err.msg);
    b->mask = ggl_calloc(((size_t)llm_vocab_n(b->vocab) + 31) / 32, sizeof *b->mask);
    return b->mask ? 0 : tool_error(GRAMMAR_TOOL, 1, "out of memory");
}

static void print_counts(const bench *b) {
    const double percent = b->n_schemas ? 100.0 / (double)b->n_schemas : 0;
    printf("%-12s %8zu   with %zu instances\n", "schemas", b->n_schemas, b->n_instances);
    printf("%-12s %8zu   %5.1f %%\n", "passing", b->n_passing, percent * (double)b->n_passing);
    printf("%-12s %8zu   %5.1f %%\n", "refused", b->n_refused, percent * (double)b->n_refused);
    printf("%-12s %8zu   %5.1f %%\n", "misjudged", b->n_misjudged,
           percent * (double)b->n_misjudged);
}

int grammar_bench(const arg_list *paths, const char *model, bool verbose) {
    bench b = {.verbose = verbose};
    progress_begin(NULL, 0, "reading %s", model ? model : paths->n > 0 ? paths->s[0] : "");
    int code = model ? open_model(&b, model) : 0;
    for (size_t i = 0; i < paths->n && code == 0; i++)
        code = bench_path(&b, paths->s[i]);
    progress_end();
    if (code == 0) {
        print_counts(&b);
        print_times("compilations", &b.compile);
        print_times("masks", &b.masks);
        code = b.n_misjudged > 0;
    }
    ggl_free(b.compile.us);
    ggl_free(b.masks.us);
    ggl_free(b.mask);
    llm_vocab_free(b.vocab);
    llm_tokenizer_free(b.tokenizer);
    return code;
}
