#include "compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* the library's own parser, as these files are trusted no less than those it reads */
#include "../../models/common/json.h"
#include "common/args.h"
#include "common/input.h"
#include "ggl/internal/os_fs.h"

#define MOST_BYTES ((size_t)256 << 20)

/* --- reading ---------------------------------------------------------------------------------- */

static const char *base_name(const char *path) {
    const char *slash = ggl_os_last_separator(path);
    return slash ? slash + 1 : path;
}

static void get_text(const json_value *v, const char *key, char *buf, size_t size) {
    const json_value *s = llm_json_get_kind(v, key, JSON_STRING);
    snprintf(buf, size, "%.*s", s ? (int)(s->n < size ? s->n : size - 1) : 0, s ? s->s : "");
}

static double get_number(const json_value *v, const char *key, double fallback) {
    const json_value *n = llm_json_get_kind(v, key, JSON_NUMBER);
    return n ? n->number : fallback;
}

/* Sets the name of the model, with that of what guesses for it. */
static void put_file(bench_result *r, const char *model, const char *draft) {
    snprintf(r->file, sizeof r->file, "%.150s%s%.150s", base_name(model), *draft ? " " : "",
             *draft ? base_name(draft) : "");
}

static const char *read_row(bench_result *r, const json_value *v) {
    const json_value *ts = llm_json_get_kind(v, "samples_ts", JSON_ARRAY);
    char path[1024], draft[1024], k[16], w[16], guesses[16];
    if (v->kind != JSON_OBJECT)
        return "is not an object";
    if (!llm_json_get(v, "model_type") || !ts || ts->n == 0)
        return "has no model_type or no samples_ts: was it written by -o json?";
    get_text(v, "model_type", r->model, sizeof r->model);
    get_text(v, "model_filename", path, sizeof path);
    get_text(v, "draft_filename", draft, sizeof draft);
    put_file(r, path, draft);
    get_text(v, "alternation", r->alternation, sizeof r->alternation);
    get_text(v, "backends", r->backend, sizeof r->backend);
    /* results from before there were other backends have an empty name */
    if (strcmp(r->backend, "CPU") == 0 || !*r->backend)
        snprintf(r->backend, sizeof r->backend, "cpu");
    get_text(v, "type_k", k, sizeof k);
    get_text(v, "type_v", w, sizeof w);
    snprintf(r->cache, sizeof r->cache, "%s %s", k, w);
    bench_test t = {.n_prompt = (int64_t)get_number(v, "n_prompt", 0),
                    .n_gen = (int64_t)get_number(v, "n_gen", 0),
                    .n_depth = (int64_t)get_number(v, "n_depth", 0),
                    .n_sequences = (int64_t)get_number(v, "n_sequences", 1)};
    get_text(v, "guesses", guesses, sizeof guesses);
    t.guesses = *guesses ? guesses : NULL;
    bench_test_text(&t, r->test, sizeof r->test);
    r->n_threads = get_number(v, "n_threads", 0);
    r->n_batch = get_number(v, "n_batch", 0);
    r->n_ubatch = get_number(v, "n_ubatch", 0);
    for (size_t i = 0; i < ts->n && i < BENCH_MAX_SAMPLES; i++) {
        const json_value *x = &ts->item[i];
        if (x->kind != JSON_NUMBER || x->number <= 0)
            return "has samples_ts that are not positive numbers";
        r->ts[r->n++] = x->number;
    }
    return NULL;
}

static ggl_status add_row(bench_results *out, const json_value *v, const char *path,
                          ggl_error *err) {
    bench_result *grown = realloc(out->row, (out->n + 1) * sizeof *grown);
    if (!grown)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    out->row = grown;
    out->row[out->n] = (bench_result){.n = 0};
    const char *wrong = read_row(&out->row[out->n], v);
    if (wrong)
        return ggl_fail(err, GGL_FORMAT, "%s: result %zu %s", path, out->n + 1, wrong);
    out->n++;
    return GGL_OK;
}

/* Adds the rows of one JSON value: an array of rows, or a row. */
static ggl_status add_text(bench_results *out, const char *text, size_t n, const char *path,
                           ggl_error *err) {
    llm_json *doc;
    ggl_status st = llm_json_parse(&doc, text, n, path, err);
    if (st != GGL_OK)
        return st;
    const json_value *v = &doc->root;
    if (v->kind != JSON_ARRAY)
        st = add_row(out, v, path, err);
    for (size_t i = 0; v->kind == JSON_ARRAY && i < v->n && st == GGL_OK; i++)
        st = add_row(out, &v->item[i], path, err);
    llm_json_free(doc);
    return st;
}

ggl_status bench_results_read(bench_results *out, const char *path, ggl_error *err) {
    size_t size;
    *out = (bench_results){.n = 0};
    char *text = tool_read_file("llm-bench", path, &size); /* prints errors */
    if (!text)
        return ggl_fail(err, GGL_IO, "%s: cannot be read", path);
    ggl_status st = size > MOST_BYTES ? ggl_fail(err, GGL_LIMIT, "%s: too large", path) : GGL_OK;
    size_t first = strspn(text, " \t\r\n");
    bool lines = text[first] == '{';
    if (st == GGL_OK && !lines)
        st = add_text(out, text, size, path, err);
    for (const char *s = text + first; lines && *s && st == GGL_OK; s += strspn(s, "\r\n \t")) {
        size_t n = strcspn(s, "\n");
        st = add_text(out, s, n, path, err);
        s += n;
    }
    free(text);
    if (st != GGL_OK)
        bench_results_fini(out);
    return st;
}

ggl_status bench_results_take(bench_results *out, bench_row *const *rows, size_t n,
                              const char *alternation, ggl_error *err) {
    *out = (bench_results){.row = calloc(n + 1, sizeof *out->row), .n = n};
    if (!out->row)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++) {
        bench_result *r = &out->row[i];
        const bench_test *t = &rows[i]->test;
        snprintf(r->model, sizeof r->model, "%s", rows[i]->model_type);
        put_file(r, t->model, rows[i]->guesses ? rows[i]->guesses->draft : "");
        snprintf(r->alternation, sizeof r->alternation, "%.60s", alternation ? alternation : "");
        snprintf(r->cache, sizeof r->cache, "%s %s", rows[i]->types[0], rows[i]->types[1]);
        snprintf(r->backend, sizeof r->backend, "%s", rows[i]->backend);
        bench_test_text(t, r->test, sizeof r->test);
        r->n_threads = (double)t->n_threads;
        r->n_batch = (double)t->n_batch;
        r->n_ubatch = (double)t->n_ubatch;
        r->n = rows[i]->n;
        memcpy(r->ts, rows[i]->ts, sizeof r->ts);
    }
    return GGL_OK;
}

void bench_results_fini(bench_results *r) {
    free(r->row);
    *r = (bench_results){.row = NULL};
}

/* --- comparing -------------------------------------------------------------------------------- */

static bool same_test(const bench_result *a, const bench_result *b) {
    return strcmp(a->model, b->model) == 0 && strcmp(a->file, b->file) == 0 &&
           strcmp(a->test, b->test) == 0 && strcmp(a->cache, b->cache) == 0 &&
           strcmp(a->backend, b->backend) == 0 && a->n_threads == b->n_threads &&
           a->n_batch == b->n_batch && a->n_ubatch == b->n_ubatch;
}

/* Returns the row of the same test, or NULL. */
static const bench_result *find(const bench_results *in, const bench_result *r) {
    for (size_t i = 0; i < in->n; i++)
        if (same_test(&in->row[i], r))
            return &in->row[i];
    return NULL;
}

/* Returns the smallest p that ranks of n and m values can give: 2 out of all (n + m)! / n! m!
 * orders. */
static double least_p(int n, int m) {
    return 2 * exp(lgamma(n + 1.0) + lgamma(m + 1.0) - lgamma(n + m + 1.0));
}

/* True if the samples of both rows were taken in turn, one by one. */
static bool paired(const bench_result *a, const bench_result *b) {
    return a->alternation[0] && strcmp(a->alternation, b->alternation) == 0 && a->n == b->n &&
           a->n >= 2;
}

static bool print_row(FILE *out, const bench_result *a, const bench_result *b, double confidence,
                      double tolerance) {
    bool pairs = paired(a, b);
    bench_change c = pairs ? bench_compare_paired(a->ts, b->ts, a->n, confidence)
                           : bench_compare_unpaired(a->ts, a->n, b->ts, b->n, confidence);
    bool sure = c.p<1 - confidence, large = fabs(c.ratio - 1)> tolerance;
    bool slower = sure && large && c.ratio < 1, faster = sure && large && c.ratio > 1;
    bool few = !pairs && least_p(a->n, b->n) >= 1 - confidence;
    char p[16];
    snprintf(p, sizeof p, c.p < 0.0001 ? "< 0.0001" : "%.4f", c.p);
    fprintf(out,
            "| %-24s | %7.0f | %16s | %10.2f | %10.2f | %6.3f | %6.3f .. %6.3f | %8s | %s%s |\n",
            b->model, b->n_threads, b->test, bench_summarize(a->ts, a->n).median,
            bench_summarize(b->ts, b->n).median, c.ratio, c.low, c.high, p,
            slower   ? "slower"
            : faster ? "faster"
                     : "within noise",
            few     ? " (too few samples)"
            : pairs ? " (paired)"
                    : "");
    return slower;
}

int bench_compare_print(FILE *out, const bench_results *old, const bench_results *new_,
                        double confidence, double tolerance) {
    size_t n = 0;
    bool slower = false;
    for (size_t i = 0; i < new_->n; i++) {
        const bench_result *b = &new_->row[i], *a = find(old, b);
        if (!a) {
            fprintf(stderr, "only new: %s, %s, %.0f threads\n", b->model, b->test, b->n_threads);
            continue;
        }
        if (n++ == 0)
            fprintf(out,
                    "| model                    | threads |             test |    old t/s |    new "
                    "t/s |  ratio |  %4.3g %% interval |        p |     |\n"
                    "| ------------------------ | ------: | ---------------: | ---------: | "
                    "---------: | -----: | ---------------: | -------: | --- |\n",
                    100 * confidence);
        slower = print_row(out, a, b, confidence, tolerance) || slower;
    }
    for (size_t i = 0; i < old->n; i++)
        if (!find(new_, &old->row[i]))
            fprintf(stderr, "only old: %s, %s, %.0f threads\n", old->row[i].model, old->row[i].test,
                    old->row[i].n_threads);
    return n == 0 ? -1 : slower;
}
