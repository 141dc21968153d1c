/* test-outputs -m MODEL --tokens IDS .. --output WHAT [--backend NAME] [--arch FILE] [--pieces N] [--layer K] [--target MODEL]
 *     [--lora FILE:SCALE ..] --logits FILE.npy
 *
 * Runs a model whose tokens all see each other on some texts, all in one batch, and writes one row of floats for each
 * row of its output. WHAT: logits (of all tokens), none, mean, cls, last (embeddings, not normalized), rank
 * (scores); or, of one text, rows (what layers that guess read of each token), guess (their logits of all tokens) or guess-rows
 * (what takes the place of rows in further guesses) or guess-chance (that each guess of a block is right), --pieces: in batches of N tokens; --layer: of several layers that guess, number K;
 * of a model that guesses in blocks: the logits of a block after the text. --target: the model for which MODEL guesses, without the first token. Exit code 0, or 1 with a message. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/npy.h"
#include "ggl/backends.h"
#include "llm/internal/embed.h"

enum { MAX_TEXTS = 16, MAX_TOKENS = 4096, MAX_LAYERS = 8, MAX_ADAPTERS = 4, MAX_BLOCK = 32 };

typedef struct run {
    const char *model, *output, *backend, *arch, *file, *target;
    int32_t token[MAX_TOKENS], slot[MAX_TOKENS];
    bool want[MAX_TOKENS];
    llm_embed_text text[MAX_TEXTS];
    size_t n_texts;
    int64_t n, piece;                       /* piece 0: all tokens at once */
    int layer;                              /* that guesses */
    llm_session *layers[MAX_LAYERS], *head; /* [layer + 1]; head: the last one, of guesses */
    llm_session
        *turn; /* makes the guesses of a block, one after the other; NULL: they are made at once */
    float *told; /* what it reads */
    int64_t n_told;
    int32_t newest; /* token behind which the next guess is */
    const char *lora[MAX_ADAPTERS];
    llm_adapter_use adapter[MAX_ADAPTERS];
    size_t n_adapters;
    float *row; /* the output's rows, one after another */
    int64_t n_rows, n_columns;
} run;

static bool read_text(run *r, const char *list) {
    llm_embed_text *t = &r->text[r->n_texts];
    t->token = r->token + r->n;
    for (char *end; *list && r->n < MAX_TOKENS; list = *end ? end + 1 : end) {
        r->slot[r->n] = (int32_t)r->n_texts;
        r->want[r->n] = true;
        r->token[r->n++] = (int32_t)strtol(list, &end, 10);
        if (end == list)
            return false;
        t->n++;
    }
    r->n_texts++;
    return true;
}

static bool read_words(run *r, int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *word = argv[i], *value = argv[i + 1];
        if (strcmp(word, "-m") == 0)
            r->model = value;
        else if (strcmp(word, "--output") == 0)
            r->output = value;
        else if (strcmp(word, "--backend") == 0)
            r->backend = value;
        else if (strcmp(word, "--target") == 0)
            r->target = value;
        else if (strcmp(word, "--pieces") == 0)
            r->piece = strtol(value, NULL, 10);
        else if (strcmp(word, "--layer") == 0)
            r->layer = (int)strtol(value, NULL, 10);
        else if (strcmp(word, "--arch") == 0)
            r->arch = value;
        else if (strcmp(word, "--lora") == 0 && r->n_adapters < MAX_ADAPTERS)
            r->lora[r->n_adapters++] = value;
        else if (strcmp(word, "--logits") == 0)
            r->file = value;
        else if (strcmp(word, "--tokens") != 0 || r->n_texts == MAX_TEXTS || !read_text(r, value))
            return false;
    }
    return argc % 2 == 1 && r->model && r->file && r->output && r->n > 0 && r->layer >= 0 &&
           r->layer < MAX_LAYERS;
}

static void keep(run *r, const float *row, int64_t n_rows, int64_t n) {
    const size_t old = (size_t)(r->n_rows * n), more = (size_t)(n_rows * n);
    r->row = realloc(r->row, (old + more) * sizeof *row);
    memcpy(r->row + old, row, more * sizeof *row);
    r->n_rows += n_rows;
    r->n_columns = n;
}

static bool keep_rows(void *ctx, size_t text, int64_t n_rows, const float *row, int64_t n) {
    (void)text;
    keep(ctx, row, n_rows, n);
    return true;
}

static void keep_logits(void *ctx, int64_t i, const float *row) {
    (void)i;
    run *r = ctx;
    keep(r, row, 1, r->n_columns);
}

static ggl_status eval(run *r, llm_session *s, ggl_error *err) {
    if (strcmp(r->output, "logits") == 0) {
        r->n_columns = llm_session_n_vocab(s);
        return llm_session_eval(s,
                                &(llm_batch){.n = r->n,
                                             .token = r->token,
                                             .slot = r->slot,
                                             .want = r->want,
                                             .each = keep_logits,
                                             .ctx = r},
                                err);
    }
    llm_embedding_params p = {.text = r->text, .n_texts = r->n_texts, .each = keep_rows, .ctx = r};
    const ggl_status st = llm_pooling_find(&p.pooling, r->output, NULL, err);
    return st == GGL_OK ? llm_embed_all(s, &p, err) : st;
}

/* --- layers that guess --- */

static void keep_row(void *ctx, int64_t i, const float *row) {
    (void)i;
    run *r = ctx;
    if (strcmp(r->output, "guess-rows") == 0)
        keep(r, row, 1, r->n_columns);
}

/* Scores of all tokens; those that are not guessed have none. */
static void keep_guess(void *ctx, int64_t i, const float *row) {
    (void)i;
    run *r = ctx;
    if (strcmp(r->output, "guess") != 0)
        return;
    float *all = malloc((size_t)r->n_columns * sizeof *all);
    for (int64_t k = 0; k < r->n_columns; k++)
        all[k] = -INFINITY;
    for (int64_t k = 0; k < llm_session_n_logits(r->head); k++)
        all[llm_session_token_of(r->head, row, k)] = row[k];
    keep(r, all, 1, r->n_columns);
    free(all);
}

static void hear(void *ctx, int slot, int64_t pos, int32_t token, const float *row) {
    (void)slot, (void)pos, (void)token;
    run *r = ctx;
    keep(r, row, 1, r->n_columns);
}

static void keep_told(void *ctx, int64_t i, const float *row) {
    (void)i;
    run *r = ctx;
    const int64_t n = llm_session_n_row(r->layers[0]);
    r->told = realloc(r->told, (size_t)((r->n_told + 1) * n) * sizeof *row);
    memcpy(r->told + r->n_told++ * n, row, (size_t)n * sizeof *row);
}

/* Keeps the scores of a guess in its turn. */
static void keep_turn(void *ctx, int64_t i, const float *row) {
    run *r = ctx;
    int64_t best = 0;
    keep_guess(ctx, i, row);
    for (int64_t k = 1; k < llm_session_n_logits(r->turn); k++)
        best = row[k] > row[best] ? k : best;
    r->newest = llm_session_token_of(r->turn, row, best);
    if (strcmp(r->output, "guess-chance") == 0)
        keep(r, (float[]){llm_session_chance(r->turn, row, -1)}, 1, 1);
}

static ggl_status run_turns(run *r, ggl_error *err) {
    const int64_t n = llm_session_n_row(r->layers[0]);
    ggl_status st = GGL_OK;
    r->newest = r->token[r->n - 1];
    for (int64_t k = 0; k < r->n_told && st == GGL_OK; k++) {
        const int32_t before = r->newest;
        st = llm_session_eval(
            r->turn,
            &(llm_batch){
                .n = 1, .token = &before, .row = r->told + k * n, .each = keep_turn, .ctx = r},
            err);
    }
    free(r->told);
    return st;
}

/* Runs a block that begins with the last token, after the others' rows: the scores of its elements that are guesses are kept. */
static ggl_status run_block(run *r, int64_t n_block, ggl_error *err) {
    const int first = llm_session_built(r->layers[0])->guess_first;
    int32_t token[MAX_BLOCK];
    bool want[MAX_BLOCK];
    for (int64_t i = 0; i < n_block; i++) {
        token[i] = i ? llm_session_mask(r->layers[0]) : r->token[r->n - 1];
        want[i] = i >= first;
    }
    const ggl_status st = llm_session_eval(r->layers[0],
                                           &(llm_batch){.n = n_block,
                                                        .token = token,
                                                        .is_block = true,
                                                        .want = want,
                                                        .each = r->turn ? NULL : keep_guess,
                                                        .each_row = r->turn ? keep_told : NULL,
                                                        .ctx = r},
                                           err);
    return st == GGL_OK && r->turn ? run_turns(r, err) : st;
}

/* Runs layer k with the rows of the tokens `distance` before, row[n][n_row]. */
static ggl_status run_layer(run *r, int k, const float *row, int64_t n_row, int64_t distance,
                            ggl_error *err) {
    llm_session *head = r->layers[k];
    const int64_t n = r->n, most = r->piece ? r->piece : n;
    const int64_t n_block = llm_session_built(head)->n_guess_block;
    const bool is_other = llm_session_n_feature(head) > 0, is_last = k == r->layer && !n_block;
    float *before = calloc((size_t)(n * n_row), sizeof *before);
    if (distance < n)
        memcpy(before + distance * n_row, row, (size_t)((n - distance) * n_row) * sizeof *before);
    ggl_status st = GGL_OK;
    for (int64_t i = llm_session_from_second(head); i < n && st == GGL_OK; i += most)
        st = llm_session_eval(head,
                              &(llm_batch){.n = n - i < most ? n - i : most,
                                           .token = r->token + i,
                                           .row = is_other ? NULL : before + i * n_row,
                                           .feature = is_other ? before + i * n_row : NULL,
                                           .want = is_last   ? r->want
                                                   : n_block ? (bool[MAX_TOKENS]){false}
                                                             : NULL,
                                           .each = is_last ? keep_guess : NULL,
                                           .each_row = is_last ? keep_row : NULL,
                                           .ctx = r},
                              err);
    free(before);
    return st == GGL_OK && n_block && n_block <= MAX_BLOCK ? run_block(r, n_block, err) : st;
}

/* Runs the model, and then its layers that guess with the rows that it gave, or that the layer before them gave. */
static ggl_status guess(run *r, llm_session *s, ggl_error *err) {
    const int64_t n_row = llm_session_n_row(s);
    const bool is_apart = llm_session_built(r->layers[0])->guess_apart;
    r->n_columns = n_row;
    llm_session_hear(s, hear, r);
    ggl_status st = llm_session_eval(
        s, &(llm_batch){.n = r->n, .token = r->token, .want = (bool[MAX_TOKENS]){false}}, err);
    llm_session_hear(s, NULL, NULL);
    if (st != GGL_OK || strcmp(r->output, "rows") == 0)
        return st;
    for (int k = 0; k <= r->layer && st == GGL_OK; k++) {
        float *rows = r->row;
        r->row = NULL;
        r->n_rows = 0;
        if (k == r->layer)
            r->n_columns = strcmp(r->output, "guess-chance") == 0 ? 1
                           : strcmp(r->output, "guess") == 0      ? llm_session_n_vocab(r->head)
                                                                  : llm_session_n_row(r->head);
        else if (!is_apart)
            llm_session_hear(r->layers[k], hear, r);
        st = run_layer(r, k, rows, n_row, is_apart ? k + 1 : 1, err);
        if (is_apart && k < r->layer)
            r->row = rows;
        else
            free(rows);
    }
    return st;
}

static bool is_guess(const run *r) {
    return strncmp(r->output, "guess", 5) == 0 || strcmp(r->output, "rows") == 0;
}

/* Opens the head's session from m, and that of the model for which it guesses: the target, or m too. */
static ggl_status run_guess(run *r, const llm_model *m, const llm_model *target,
                            llm_session_params *p, ggl_error *err) {
    llm_session *s = NULL;
    p->only = "guess";
    p->other = target;
    ggl_status st = GGL_OK;
    for (int k = 0; k <= r->layer && st == GGL_OK; k++) {
        p->guess_layer = k;
        st = llm_session_new(&r->layers[k], m, p, err);
    }
    r->head = r->layers[r->layer];
    if (st == GGL_OK && llm_session_built(r->head)->guess_in_turn) {
        p->guess_layer = 1;
        st = llm_session_new(&r->turn, m, p, err);
        r->head = r->turn;
    }
    p->only = NULL;
    p->other = NULL;
    p->rows = !target;
    if (st == GGL_OK && target) {
        p->tap = llm_session_built(r->layers[0])->tap;
        p->n_taps = llm_session_built(r->layers[0])->n_taps;
    }
    if (st == GGL_OK)
        st = llm_session_new(&s, target ? target : m, p, err);
    if (st == GGL_OK)
        st = llm_session_alloc(s, err);
    for (int k = 0; k <= r->layer && st == GGL_OK; k++)
        st = llm_session_alloc(r->layers[k], err);
    if (st == GGL_OK && r->turn)
        st = llm_session_alloc(r->turn, err);
    if (st == GGL_OK)
        st = guess(r, s, err);
    llm_session_free(r->turn);
    llm_session_free(s);
    for (int k = 0; k <= r->layer; k++)
        llm_session_free(r->layers[k]);
    return st;
}

static ggl_status write_rows(const run *r, ggl_error *err) {
    npy_writer w;
    const ggl_status st = npy_open(&w, r->file, r->n_rows, r->n_columns, err);
    if (st != GGL_OK)
        return st;
    for (int64_t i = 0; i < r->n_rows; i++)
        npy_row(&w, r->row + i * r->n_columns, r->n_columns);
    return npy_close(&w, err);
}

static ggl_status run_model(run *r, const llm_model *m, const llm_model *target, ggl_backend *b,
                            ggl_backend *fold, ggl_error *err) {
    llm_session_params p = llm_session_default();
    p.backend = &b;
    p.n_backends = 1;
    p.fold = fold;
    p.n_slots = (int64_t)r->n_texts;
    p.n_ubatch = r->n;
    p.type_k = p.type_v = GGL_F32;
    p.n_rows = r->n;
    p.adapter = r->adapter;
    p.n_adapters = r->n_adapters;
    llm_session *s = NULL;
    if (is_guess(r)) {
        const ggl_status st = run_guess(r, m, target, &p, err);
        return st == GGL_OK ? write_rows(r, err) : st;
    }
    p.embeddings = strcmp(r->output, "logits") != 0;
    if (p.embeddings && strcmp(r->output, "rank") != 0)
        p.only = "embedding";
    ggl_status st = llm_session_new(&s, m, &p, err);
    if (st == GGL_OK)
        st = llm_session_alloc(s, err);
    if (st == GGL_OK)
        st = eval(r, s, err);
    if (st == GGL_OK)
        st = write_rows(r, err);
    llm_session_free(s);
    return st;
}

/* Opens FILE:SCALE, each adapter of --lora. */
static ggl_status open_adapters(run *r, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < r->n_adapters && st == GGL_OK; i++) {
        char path[4096];
        const char *colon = strrchr(r->lora[i], ':');
        if (!colon)
            return ggl_fail(err, GGL_USAGE, "--lora FILE:SCALE");
        snprintf(path, sizeof path, "%.*s", (int)(colon - r->lora[i]), r->lora[i]);
        llm_adapter *a = NULL;
        st = llm_adapter_open(&a, path, NULL, err);
        r->adapter[i] = (llm_adapter_use){.adapter = a, .scale = strtod(colon + 1, NULL)};
    }
    return st;
}

int main(int argc, char **argv) {
    static run r = {.backend = "cpu"};
    if (!read_words(&r, argc, argv)) {
        fprintf(stderr, "test-outputs: wrong arguments\n");
        return 2;
    }
    ggl_error err = {0};
    ggl_backend *backend = NULL, *fold = NULL;
    llm_model *m = NULL, *target = NULL;
    ggl_status st = ggl_backend_open(&backend, r.backend, NULL, &err);
    if (st == GGL_OK)
        st = ggl_backend_open(&fold, "reference", NULL, &err);
    llm_load_params load = {
        .size = sizeof load, .open_backend = ggl_backend_open, .close_backend = ggl_backend_close};
    llm_model_params p = {.size = sizeof p, .load = &load};
    if (st == GGL_OK && r.target)
        st = llm_model_open(&target, r.target, &p, &err);
    load.target = target ? llm_model_file(target) : NULL;
    p.arch_path = r.arch;
    if (st == GGL_OK)
        st = llm_model_open(&m, r.model, &p, &err);
    if (st == GGL_OK)
        st = open_adapters(&r, &err);
    if (st == GGL_OK)
        st = run_model(&r, m, target, backend, fold, &err);
    if (st != GGL_OK)
        fprintf(stderr, "%s\n", err.msg);
    llm_model_free(m);
    llm_model_free(target);
    for (size_t i = 0; i < r.n_adapters; i++)
        llm_adapter_free((llm_adapter *)r.adapter[i].adapter);
    ggl_backend_close(backend);
    ggl_backend_close(fold);
    free(r.row);
    return st != GGL_OK;
}
