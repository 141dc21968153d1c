/* test-rows -m MODEL --arch FILE [--backend NAME] --rows FILE N --out FILE
 * test-rows -m MODEL --arch FILE [--backend NAME] --tokens IDS --given FILE FIRST N --out FILE
 *
 * Runs stages over N rows of a file of floats, and writes the rows that come out; or runs tokens, of which the N from FIRST on are replaced
 * by such rows, and writes the logits of all. The files are plain arrays of floats. Exit code 0, or 1 with a message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/backends.h"
#include "llm/internal/stage_rows.h"

enum { MAX_TOKENS = 512 };

typedef struct run {
    const char *model, *arch, *backend, *rows, *tokens, *given, *out;
    int64_t n, first;
    float *in; /* what the file has */
    size_t n_in;
    FILE *to;
} run;

static bool read_words(run *r, int argc, char **argv) {
    r->backend = "cpu";
    for (int i = 1; i < argc; i++) {
        const struct {
            const char *word, **value;
        } words[] = {{"-m", &r->model},    {"--arch", &r->arch},   {"--backend", &r->backend},
                     {"--rows", &r->rows}, {"--given", &r->given}, {"--tokens", &r->tokens},
                     {"--out", &r->out}};
        size_t k = 0;
        while (k < 7 && strcmp(words[k].word, argv[i]) != 0)
            k++;
        if (k == 7 || ++i == argc)
            return false;
        *words[k].value = argv[i];
        if (k == 4)
            r->first = i + 1 < argc ? strtoll(argv[++i], NULL, 10) : 0;
        if (k == 3 || k == 4)
            r->n = i + 1 < argc ? strtoll(argv[++i], NULL, 10) : 0;
    }
    return r->model && r->arch && r->out && (r->rows || (r->tokens && r->given));
}

static bool read_floats(run *r) {
    FILE *f = fopen(r->rows ? r->rows : r->given, "rb");
    r->in = calloc(1 << 20, sizeof *r->in);
    if (!f || !r->in)
        return false;
    r->n_in = fread(r->in, sizeof *r->in, 1 << 20, f);
    fclose(f);
    return true;
}

static ggl_status run_rows(run *r, const llm_model *m, const llm_session_params *p,
                           ggl_error *err) {
    llm_stages *s = NULL;
    const float *rows;
    int64_t n;
    ggl_status st = llm_stages_new(&s, m, p, r->n, err);
    if (st == GGL_OK && (int64_t)r->n_in != r->n * llm_stages_n_input(s))
        st = ggl_fail(err, GGL_USAGE, "the file has %zu numbers, not %lld rows of %lld", r->n_in,
                      (long long)r->n, (long long)llm_stages_n_input(s));
    for (int turn = 0; turn < 2 && st == GGL_OK; turn++) /* the second time with what is left */
        st = llm_stages_run(s, r->in, r->n, &rows, &n, err);
    if (st == GGL_OK)
        fwrite(rows, sizeof *rows, (size_t)(n * llm_stages_n_row(s)), r->to);
    llm_stages_free(s);
    return st;
}

static void write_logits(void *ctx, int64_t i, const float *logits) {
    const run *r = ctx;
    (void)i;
    fwrite(logits, sizeof *logits, (size_t)r->n_in, r->to);
}

static ggl_status run_given(run *r, const llm_model *m, llm_session_params *p, ggl_error *err) {
    static int32_t token[MAX_TOKENS];
    static bool is_given[MAX_TOKENS], want[MAX_TOKENS];
    int64_t n = 0, n_given;
    for (const char *s = r->tokens; n < MAX_TOKENS && *s; s += *s == ',') {
        char *end;
        is_given[n] = n >= r->first && n < r->first + r->n;
        want[n] = true;
        token[n++] = (int32_t)strtol(s, &end, 10);
        s = end;
    }
    llm_session *s = NULL;
    p->given = true;
    p->n_rows = n;
    ggl_status st = llm_session_new(&s, m, p, err);
    if (st == GGL_OK)
        st = llm_session_alloc(s, err);
    n_given = st == GGL_OK ? llm_session_n_given(s) : 0;
    float *row = calloc((size_t)(n * n_given) + 1, sizeof *row);
    if (st == GGL_OK && row && (int64_t)r->n_in == r->n * n_given) {
        memcpy(row + r->first * n_given, r->in, r->n_in * sizeof *row);
        r->n_in = (size_t)llm_session_n_vocab(s);
        const llm_batch b = {.n = n,
                             .token = token,
                             .given = row,
                             .is_given = is_given,
                             .want = want,
                             .each = write_logits,
                             .ctx = r};
        st = llm_session_eval(s, &b, err);
    } else if (st == GGL_OK) {
        st = ggl_fail(err, GGL_USAGE, "rows of another length");
    }
    free(row);
    llm_session_free(s);
    return st;
}

int main(int argc, char **argv) {
    run r = {0};
    if (!read_words(&r, argc, argv) || !read_floats(&r) || !(r.to = fopen(r.out, "wb"))) {
        fprintf(stderr, "test-rows: wrong arguments\n");
        return 1;
    }
    ggl_error err = {0};
    ggl_backend *backend = NULL;
    llm_model *m = NULL;
    const llm_model_params mp = {.size = sizeof mp, .arch_path = r.arch};
    ggl_status st = ggl_backend_open(&backend, r.backend, NULL, &err);
    if (st == GGL_OK)
        st = llm_model_open(&m, r.model, &mp, &err);
    llm_session_params p = llm_session_default();
    p.backend = &backend;
    p.n_backends = 1;
    p.type_k = p.type_v = GGL_F32;
    if (st == GGL_OK)
        st = r.rows ? run_rows(&r, m, &p, &err) : run_given(&r, m, &p, &err);
    if (st != GGL_OK)
        fprintf(stderr, "test-rows: %s\n", err.msg);
    llm_model_free(m);
    ggl_backend_close(backend);
    fclose(r.to);
    free(r.in);
    return st == GGL_OK ? 0 : 1;
}
