/* test-rows -m MODEL --arch FILE [--backend NAME] --rows FILE N --out FILE
 * test-rows -m MODEL --arch FILE [--backend NAME] --rows FILE N --only STAGE --out FILE
 * test-rows -m MODEL --arch FILE [--backend NAME] --tokens IDS --given FILE FIRST N --out FILE
 *
 * test-rows -m MODEL --arch FILE [--backend NAME] --tokens IDS --read FILE N [--align FILE] --out FILE
 *
 * Runs stages over N rows of a file of floats, and writes the rows that come out, also if tokens would read them; or runs tokens, of which the N from FIRST on are replaced
 * by such rows, and writes the logits of all; or runs tokens that read the stages over the N rows; --align: and writes their alignments. The files are plain arrays of floats. Exit code 0, or 1 with a message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ggl/backends.h"
#include "llm/internal/stage_rows.h"

enum { MAX_TOKENS = 512 };

typedef struct run {
    const char *model, *arch, *backend, *rows, *given, *read, *tokens, *only, *out, *align;
    int64_t n, first;
    float *in; /* what the file has */
    size_t n_in;
    FILE *to, *aligned;
} run;

static bool read_words(run *r, int argc, char **argv) {
    r->backend = "cpu";
    for (int i = 1; i < argc; i++) {
        const struct {
            const char *word, **value;
        } words[] = {{"-m", &r->model},        {"--arch", &r->arch},   {"--backend", &r->backend},
                     {"--rows", &r->rows},     {"--given", &r->given}, {"--read", &r->read},
                     {"--tokens", &r->tokens}, {"--out", &r->out},     {"--only", &r->only},
                     {"--align", &r->align}};
        enum { N_WORDS = sizeof words / sizeof *words };
        size_t k = 0;
        while (k < N_WORDS && strcmp(words[k].word, argv[i]) != 0)
            k++;
        if (k == N_WORDS || ++i == argc)
            return false;
        *words[k].value = argv[i];
        if (k == 4)
            r->first = i + 1 < argc ? strtoll(argv[++i], NULL, 10) : 0;
        if (k >= 3 && k <= 5)
            r->n = i + 1 < argc ? strtoll(argv[++i], NULL, 10) : 0;
    }
    return r->model && r->arch && r->out && (r->rows || (r->tokens && (r->given || r->read)));
}

static bool read_floats(run *r) {
    FILE *f = fopen(r->rows ? r->rows : r->given ? r->given : r->read, "rb");
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

/* What each token's logits were, alone. */
typedef struct both {
    const run *r;
    const float *alone;
    bool differ;
} both;

static void compare_logits(void *ctx, int64_t i, const float *logits) {
    both *b = ctx;
    const size_t n = b->r->n_in;
    b->differ |= memcmp(b->alone + (size_t)i * n, logits, n * sizeof *logits) != 0;
    fwrite(logits, sizeof *logits, n, b->r->to);
}

static int64_t n_share;

static void write_share(void *ctx, int64_t i, const float *share) {
    const both *b = ctx;
    (void)i;
    fwrite(share, sizeof *share, (size_t)n_share, b->r->aligned);
}

static int32_t token[MAX_TOKENS];
static bool want[MAX_TOKENS];

static int64_t read_tokens(const run *r) {
    int64_t n = 0;
    for (const char *s = r->tokens; n < MAX_TOKENS && *s; s += *s == ',') {
        char *end;
        want[n] = true;
        token[n++] = (int32_t)strtol(s, &end, 10);
        s = end;
    }
    return n;
}

/* The tokens are run one after the other, and in a second slot together, which shares what the first has read. */
static ggl_status run_reading(run *r, const llm_model *m, llm_session_params *p, ggl_error *err) {
    static const int32_t slot[MAX_TOKENS] = {0};
    static int32_t other[MAX_TOKENS];
    llm_stages *s = NULL;
    bool is_found = true;
    const int64_t n = read_tokens(r);
    p->n_slots = 2;
    p->alignment = r->align != NULL;
    ggl_status st = llm_stages_new(&s, m, p, 0, err);
    if (st == GGL_OK)
        st = llm_stages_read(s, 0, r->in, r->n, &is_found, err);
    if (st == GGL_OK && is_found)
        st = ggl_fail(err, GGL_USAGE, "nothing was read before");
    if (st == GGL_OK)
        st = llm_stages_read(s, 1, r->in, r->n, &is_found, err);
    if (st == GGL_OK && !is_found)
        st = ggl_fail(err, GGL_USAGE, "the same rows are computed again");
    llm_session *session = st == GGL_OK ? llm_stages_last(s) : NULL;
    r->n_in = session ? (size_t)llm_session_n_vocab(session) : 0;
    float *first = calloc((size_t)n * r->n_in + 1, sizeof *first), *at = first;
    for (int64_t i = 0; i < n && st == GGL_OK; i++, at += r->n_in) {
        st = llm_session_eval(session, &(llm_batch){.n = 1, .token = &token[i], .slot = slot}, err);
        if (st == GGL_OK)
            memcpy(at, llm_session_logits(session), r->n_in * sizeof *at);
        other[i] = 1;
    }
    both b = {.r = r, .alone = first};
    const llm_batch all = {.n = n,
                           .token = token,
                           .slot = other,
                           .want = want,
                           .each = compare_logits,
                           .want_alignment = r->align ? want : NULL,
                           .each_alignment = write_share,
                           .ctx = &b};
    n_share =
        session ? llm_session_n_aligned_heads(session) * llm_session_n_aligned_rows(session) : 0;
    if (st == GGL_OK)
        st = llm_session_eval(session, &all, err);
    if (st == GGL_OK && b.differ)
        st = ggl_fail(err, GGL_USAGE, "other bits alone and together");
    free(first);
    llm_stages_free(s);
    return st;
}

static ggl_status run_given(run *r, const llm_model *m, llm_session_params *p, ggl_error *err) {
    const uint8_t id[LLM_MEDIA_ID] = {7};
    const int64_t n = read_tokens(r);
    int32_t begin;
    llm_session *s = NULL;
    llm_media *media = NULL;
    ggl_status st = llm_media_new(&media, 0, err);
    p->media = media;
    p->n_rows = n;
    if (st == GGL_OK)
        st = llm_session_new(&s, m, p, err);
    if (st == GGL_OK)
        st = llm_session_alloc(s, err);
    if (st == GGL_OK && (int64_t)r->n_in != r->n * llm_session_n_given(s))
        st = ggl_fail(err, GGL_USAGE, "rows of another length");
    if (st == GGL_OK && r->n > 0)
        st = llm_media_add(
            media, id,
            &(llm_media_rows){
                .row = r->in, .n = r->n, .n_row = llm_session_n_given(s), .n_pos = r->n},
            &begin, err);
    if (st == GGL_OK) {
        for (int64_t i = 0; i < r->n && r->first + i < n; i++)
            token[r->first + i] = begin - (int32_t)i;
        r->n_in = (size_t)llm_session_n_vocab(s);
        const llm_batch b = {.n = n, .token = token, .want = want, .each = write_logits, .ctx = r};
        st = llm_session_eval(s, &b, err);
    }
    llm_session_free(s);
    llm_media_free(media);
    return st;
}

int main(int argc, char **argv) {
    run r = {0};
    if (!read_words(&r, argc, argv) || !read_floats(&r) || !(r.to = fopen(r.out, "wb"))) {
        fprintf(stderr, "test-rows: wrong arguments\n");
        return 1;
    }
    if (r.align && !(r.aligned = fopen(r.align, "wb"))) {
        fprintf(stderr, "test-rows: %s cannot be written\n", r.align);
        return 1;
    }
    ggl_error err = {0};
    ggl_backend *backend = NULL, *fold = NULL;
    llm_model *m = NULL;
    const llm_model_params mp = {.size = sizeof mp, .arch_path = r.arch};
    ggl_status st = ggl_backend_open(&backend, r.backend, NULL, &err);
    if (st == GGL_OK)
        st = ggl_backend_open(&fold, "reference", NULL, &err);
    if (st == GGL_OK)
        st = llm_model_open(&m, r.model, &mp, &err);
    llm_session_params p = llm_session_default();
    p.backend = &backend;
    p.n_backends = 1;
    p.fold = fold;
    p.type_k = p.type_v = GGL_F32;
    p.only = r.only;
    if (st == GGL_OK)
        st = r.rows   ? run_rows(&r, m, &p, &err)
             : r.read ? run_reading(&r, m, &p, &err)
                      : run_given(&r, m, &p, &err);
    if (st != GGL_OK)
        fprintf(stderr, "test-rows: %s\n", err.msg);
    llm_model_free(m);
    ggl_backend_close(backend);
    ggl_backend_close(fold);
    fclose(r.to);
    if (r.aligned)
        fclose(r.aligned);
    free(r.in);
    return st == GGL_OK ? 0 : 1;
}
