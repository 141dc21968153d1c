#include "batch.h"

#include <inttypes.h>
#include <string.h>

#include "ggl/internal/alloc.h"

/* So many that few rows of a batch of the model stay empty, and that a run which is interrupted has lost little. Several copies of the
 * model have as many each, and as many tokens again, so that they wait little for each other at the end. */
enum { FULL = 16384, FULL_TEXTS = 4096 };

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory");
}

/* Finds the token that the tokenizer puts after a text. An empty text has it, perhaps after one that begins it. */
static int find_end(batch *b) {
    ggl_error err = {0};
    int32_t *id = NULL;
    size_t n;
    const ggl_status st = llm_encode(b->ctx, "", 0, LLM_ADD_SPECIAL, &id, &n, &err);
    b->end = st == GGL_OK && n > 0 && (n > 1 || id[0] != llm_context_facts(b->ctx)->bos) ? id[n - 1]
                                                                                         : -1;
    ggl_free(id);
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s", err.msg);
}

int batch_init(batch *b, llm_context *ctx, const llm_tokenizer *t, const options *o, int n_copies) {
    *b = (batch){.ctx = ctx, .tokenizer = t, .o = o, .end = -1};
    b->n_copies = (size_t)n_copies;
    return o->tokens.n > 0 && o->query.n == 0 ? -1 : find_end(b);
}

/* --- adding ----------------------------------------------------------------------------------- */

/* Encodes a text after its prompt. */
static ggl_status encode(const batch *b, const source_text *t, const prompt *before, int32_t **id,
                         size_t *n, ggl_error *err) {
    if (b->o->rerank)
        return llm_encode_pair(b->ctx, b->o->rerank, strlen(b->o->rerank), t->s, t->n, id, n, err);
    if (before->n == 0)
        return llm_encode(b->ctx, t->s, t->n, LLM_ADD_SPECIAL, id, n, err);
    char *both = ggl_calloc(before->n + t->n + 1, 1);
    if (!both)
        return no_memory(err);
    memcpy(both, before->s, before->n);
    memcpy(both + before->n, t->s, t->n);
    const ggl_status st = llm_encode(b->ctx, both, before->n + t->n, LLM_ADD_SPECIAL, id, n, err);
    ggl_free(both);
    return st;
}

/* Checks how many tokens a text has, and cuts it if it may be cut: the token that ends it stays. */
static ggl_status check_length(const batch *b, int32_t *id, size_t *n, const char *name,
                               ggl_error *err) {
    const size_t most = (size_t)llm_context_facts(b->ctx)->n_ctx;
    if (*n == 0)
        return ggl_fail(err, GGL_USAGE,
                        "%s has no tokens: it is empty, or the vocabulary lacks all of its "
                        "characters, and the model adds no token of its own",
                        name);
    if (*n <= most)
        return GGL_OK;
    if (!b->o->truncate)
        return ggl_fail(err, GGL_LIMIT,
                        "%s has %zu tokens%s, but the longest text has %zu (the context, -c N): "
                        "--truncate cuts it",
                        name, *n, b->o->rerank ? " with the query" : "", most);
    if (b->o->rerank) {
        llm_tokens pair = {.id = id, .n = *n};
        const ggl_status st = llm_cut_pair(
            b->tokenizer, (ggl_str){b->o->rerank, strlen(b->o->rerank)}, &pair, most, err);
        *n = pair.n;
        return st;
    }
    if (b->end >= 0 && id[*n - 1] == b->end)
        id[most - 1] = b->end;
    *n = most;
    return GGL_OK;
}

static ggl_status append(batch *b, size_t at, const source_text *t, const int32_t *id, size_t n,
                         ggl_error *err) {
    if (!ggl_grow(&b->of, &b->cap, b->n + 1, sizeof *b->of) ||
        !ggl_grow(&b->id, &b->cap_id, b->n_id + n, sizeof *b->id) ||
        !ggl_grow(&b->text, &b->cap_text, b->n_text + t->n + 1, 1))
        return no_memory(err);
    memcpy(b->id + b->n_id, id, n * sizeof *id);
    memcpy(b->text + b->n_text, t->s, t->n);
    b->of[b->n++] = (batch_text){at, b->n_id, n, b->n_text, t->n};
    b->n_id += n;
    b->n_text += t->n;
    return GGL_OK;
}

ggl_status batch_add(batch *b, size_t at, const source_text *t, const prompt *before,
                     const char *name, ggl_error *err) {
    int32_t *id = NULL;
    size_t n = t->n_id;
    ggl_status st;
    if (t->id) {
        id = ggl_calloc(n, sizeof *id);
        st = id ? GGL_OK : no_memory(err);
        if (id)
            memcpy(id, t->id, n * sizeof *id);
    } else {
        st = encode(b, t, before, &id, &n, err);
        if (st != GGL_OK)
            st = ggl_within(err, st, "%s", name);
    }
    if (st == GGL_OK)
        st = check_length(b, id, &n, name, err);
    if (st == GGL_OK)
        st = append(b, at, t, id, n, err);
    ggl_free(id);
    return st;
}

bool batch_is_full(const batch *b) {
    const size_t more = b->n_copies == 1 ? 1 : 2;
    return b->n >= FULL_TEXTS * b->n_copies || b->n_id >= FULL * more * b->n_copies;
}

/* --- running ---------------------------------------------------------------------------------- */

typedef struct taker {
    const batch *b;
    result_fn *each;
    void *user;
    ggl_status st;
    ggl_error err;
} taker;

static bool take(void *user, size_t k, size_t n_rows, const float *row, size_t n) {
    taker *t = user;
    const batch_text *of = &t->b->of[k];
    const result r = {.at = of->at,
                      .text = t->b->text + of->text,
                      .n_text = of->n_text,
                      .n_rows = n_rows,
                      .n = n,
                      .row = row};
    t->st = t->each(t->user, &r, &t->err);
    return t->st == GGL_OK;
}

ggl_status batch_run(batch *b, const char *task, result_fn *each, void *user, ggl_error *err) {
    taker t = {.b = b, .each = each, .user = user};
    const llm_embed_params p = {.size = sizeof p,
                                .no_normalize = b->o->no_normalize,
                                .n_dims = (int32_t)b->o->n_dims,
                                .each = take,
                                .user = &t,
                                .task = task,
                                .query = b->is_query};
    const int32_t **id = ggl_calloc(b->n + 1, sizeof *id);
    size_t *n = ggl_calloc(b->n + 1, sizeof *n);
    ggl_status st = id && n ? GGL_OK : no_memory(err);
    for (size_t k = 0; k < b->n && st == GGL_OK; k++) {
        id[k] = b->id + b->of[k].begin;
        n[k] = b->of[k].n;
    }
    if (st == GGL_OK && b->n > 0)
        st = llm_embed_tokens(b->ctx, id, n, b->n, &p, err);
    if (t.st != GGL_OK)
        st = ggl_fail(err, t.st, "%s", t.err.msg);
    ggl_free(id);
    ggl_free(n);
    b->n = b->n_id = b->n_text = 0;
    return st;
}

void batch_fini(batch *b) {
    ggl_free(b->of);
    ggl_free(b->id);
    ggl_free(b->text);
    *b = (batch){0};
}
