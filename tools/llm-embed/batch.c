#include "batch.h"

#include <string.h>

#include "ggl/internal/alloc.h"

/* So many that few rows of a batch of the model stay empty, and that a run which is interrupted has lost little. Several copies of the
 * model have as many each, and as many tokens again, so that they wait little for each other at the end. */
enum { FULL = 16384, FULL_TEXTS = 4096 };

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory");
}

void batch_init(batch *b, llm_context *ctx, const llm_tokenizer *t, const options *o,
                int n_copies) {
    *b = (batch){.ctx = ctx, .tokenizer = t, .o = o};
    b->n_copies = (size_t)n_copies;
}

/* --- adding ----------------------------------------------------------------------------------- */

/* How the texts after a prompt are read. */
static llm_embed_params params_of(const batch *b, const prompt *before) {
    return (llm_embed_params){.size = sizeof(llm_embed_params),
                              .no_normalize = b->o->no_normalize,
                              .n_dims = (int32_t)b->o->n_dims,
                              .query = b->is_query,
                              .truncate = b->o->truncate,
                              .no_parse_special = b->o->no_parse_special,
                              .prompt = before->s,
                              .n_prompt = before->n};
}

static ggl_status copy_tokens(llm_tokens *ids, const source_text *t, ggl_error *err) {
    if (!ggl_grow(&ids->id, &ids->cap, t->n_id + 1, sizeof *ids->id))
        return no_memory(err);
    memcpy(ids->id, t->id, t->n_id * sizeof *t->id);
    ids->n = t->n_id;
    return GGL_OK;
}

/* Encodes a pair of the query and a text. */
static ggl_status encode_pair(const batch *b, const source_text *t, llm_tokens *ids,
                              llm_tokens *types, ggl_error *err) {
    const ggl_str query = {b->o->rerank, strlen(b->o->rerank)};
    const ggl_status st =
        llm_encode_pair(b->ctx, query.s, query.n, t->s, t->n, &ids->id, &types->id, &ids->n, err);
    ids->cap = types->n = types->cap = ids->n;
    return st == GGL_OK && b->o->truncate
               ? llm_cut_pair(b->tokenizer, query, ids, types,
                              (size_t)llm_context_facts(b->ctx)->n_ctx, err)
               : st;
}

/* Encodes a text after its prompt. */
static ggl_status encode_text(const batch *b, const source_text *t, const prompt *before,
                              llm_tokens *ids, ggl_error *err) {
    const unsigned flags = LLM_ADD_SPECIAL | (b->o->no_parse_special ? 0u : LLM_READ_SPECIAL);
    char *both = ggl_calloc(before->n + t->n + 1, 1);
    if (!both)
        return no_memory(err);
    if (before->n > 0)
        memcpy(both, before->s, before->n);
    if (t->n > 0)
        memcpy(both + before->n, t->s, t->n);
    const ggl_status st = llm_encode(b->ctx, both, before->n + t->n, flags, &ids->id, &ids->n, err);
    ggl_free(both);
    return st;
}

static ggl_status encode(const batch *b, const source_text *t, const prompt *before,
                         llm_tokens *ids, llm_tokens *types, ggl_error *err) {
    return t->id          ? copy_tokens(ids, t, err)
           : b->o->rerank ? encode_pair(b, t, ids, types, err)
                          : encode_text(b, t, before, ids, err);
}

/* Checks how many tokens a text has. */
static ggl_status check_length(const batch *b, size_t n, const char *name, ggl_error *err) {
    const size_t most = (size_t)llm_context_facts(b->ctx)->n_ctx;
    if (n == 0 && llm_embeds_empty(b->ctx))
        return GGL_OK;
    if (n == 0)
        return ggl_fail(err, GGL_USAGE,
                        "%s has no tokens: it is empty, or the vocabulary lacks all of its "
                        "characters, and the model adds no token of its own",
                        name);
    if (n <= most || (b->o->truncate && !b->o->rerank)) /* the library cuts it */
        return GGL_OK;
    return ggl_fail(err, GGL_LIMIT,
                    "%s has %zu tokens%s, but the longest text has %zu (%s): --truncate cuts it",
                    name, n, b->o->rerank ? " with the query" : "", most,
                    llm_limit_is_file(b->ctx)
                        ? "the max_seq_length of the model's settings; -c N sets another limit"
                        : "the context, -c N");
}

static ggl_status append(batch *b, size_t at, const source_text *t, const llm_tokens *ids,
                         const llm_tokens *types, ggl_error *err) {
    const size_t n = ids->n;
    if (!ggl_grow(&b->of, &b->cap, b->n + 1, sizeof *b->of) ||
        !ggl_grow(&b->id, &b->cap_id, b->n_id + n, sizeof *b->id) ||
        (b->o->rerank && !ggl_grow(&b->type, &b->cap_type, b->n_id + n, sizeof *b->type)) ||
        !ggl_grow(&b->text, &b->cap_text, b->n_text + t->n + 1, 1))
        return no_memory(err);
    memcpy(b->id + b->n_id, ids->id, n * sizeof *b->id);
    for (size_t i = 0; i < n && b->o->rerank; i++)
        b->type[b->n_id + i] = i < types->n ? types->id[i] : 0;
    memcpy(b->text + b->n_text, t->s, t->n);
    b->of[b->n++] = (batch_text){at, b->n_id, n, b->n_text, t->n};
    b->n_id += n;
    b->n_text += t->n;
    return GGL_OK;
}

ggl_status batch_add(batch *b, size_t at, const source_text *t, const prompt *before,
                     const char *name, ggl_error *err) {
    llm_tokens ids = {0}, types = {0};
    ggl_status st = encode(b, t, before, &ids, &types, err);
    if (st != GGL_OK && !t->id)
        st = ggl_within(err, st, "%s", name);
    if (st == GGL_OK)
        st = check_length(b, ids.n, name, err);
    if (st == GGL_OK)
        st = append(b, at, t, &ids, &types, err);
    b->before = before;
    llm_tokens_fini(&ids);
    llm_tokens_fini(&types);
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
    static const prompt nothing;
    llm_embed_params p = params_of(b, b->before ? b->before : &nothing);
    p.each = take;
    p.user = &t;
    p.task = task;
    const int32_t **id = ggl_calloc(b->n + 1, sizeof *id),
                  **type = ggl_calloc(b->n + 1, sizeof *id);
    size_t *n = ggl_calloc(b->n + 1, sizeof *n);
    ggl_status st = id && type && n ? GGL_OK : no_memory(err);
    p.type = b->type ? type : NULL;
    for (size_t k = 0; k < b->n && st == GGL_OK; k++) {
        id[k] = b->id + b->of[k].begin;
        type[k] = b->type ? b->type + b->of[k].begin : NULL;
        n[k] = b->of[k].n;
    }
    if (st == GGL_OK && b->n > 0)
        st = llm_embed_tokens(b->ctx, id, n, b->n, &p, err);
    if (t.st != GGL_OK)
        st = ggl_fail(err, t.st, "%s", t.err.msg);
    ggl_free(id);
    ggl_free(type);
    ggl_free(n);
    b->n = b->n_id = b->n_text = 0;
    return st;
}

void batch_fini(batch *b) {
    ggl_free(b->of);
    ggl_free(b->id);
    ggl_free(b->type);
    ggl_free(b->text);
    *b = (batch){0};
}
