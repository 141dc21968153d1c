/* Vectors and scores of texts: llm_embed, llm_embed_texts, llm_rerank. */
#include <inttypes.h>
#include <string.h>

#include "arrays.h"
#include "context.h"
#include "copies.h"
#include "embed_task.h"
#include "embed_text.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/params.h"
#include "ggl/internal/pass.h"
#include "llm/internal/embed.h"
#include "opening.h"

/* --- tokens ----------------------------------------------------------------------------------- */

/* The tokens of several texts, one after the other. */
typedef struct token_lists {
    llm_tokens all;
    llm_tokens type; /* n 0: the types of all are 0 */
    size_t *end;     /* [n]: where each list ends */
    size_t n;
    llm_embed_text *text; /* [n]: made last, as `all` moves while it grows */
} token_lists;

static void lists_fini(token_lists *l) {
    llm_tokens_fini(&l->all);
    llm_tokens_fini(&l->type);
    ggl_free(l->end);
    ggl_free(l->text);
}

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory");
}

static ggl_status lists_init(token_lists *l, size_t n, ggl_error *err) {
    *l = (token_lists){.n = n};
    l->end = ggl_calloc(n, sizeof *l->end);
    l->text = ggl_calloc(n, sizeof *l->text);
    return l->end && l->text ? GGL_OK : no_memory(err);
}

static llm_embed_text *lists_texts(token_lists *l) {
    for (size_t i = 0, begin = 0; i < l->n; begin = l->end[i++])
        l->text[i] = (llm_embed_text){.token = l->all.id + begin,
                                      .type = l->type.n > 0 ? l->type.id + begin : NULL,
                                      .n = l->end[i] - begin};
    return l->text;
}

static ggl_status check_tokenizer(const llm_context *c, ggl_error *err) {
    return c->tokenizer ? GGL_OK : ggl_pass(err, &c->why_no_tokenizer);
}

/* --- texts on several copies of the model ------------------------------------------------------- */

/* Texts that a copy computes together: so many batches that what is lost when it waits for the next ones is little, and that a
 * faster copy can do more of them. */
enum { BATCHES = 4, PLACES = 4 /* of results, for each copy */ };

typedef struct text_rows {
    size_t text;
    int64_t n_rows, n;
    size_t at; /* in piece_rows.row */
} text_rows;

/* The results of a piece. */
typedef struct piece_rows {
    text_rows *of; /* [n] */
    float *row;
    size_t n, n_row, cap, cap_row;
    bool failed;
} piece_rows;

typedef struct pieces {
    llm_context *c;
    const llm_embedding_params *p;
    size_t *begin; /* [n + 1] */
    size_t n;
    piece_rows *place;
} pieces;

static bool keep_rows(void *ctx, size_t text, int64_t n_rows, const float *row, int64_t n) {
    piece_rows *to = ctx;
    const size_t size = (size_t)(n_rows * n);
    to->failed = !ggl_grow(&to->of, &to->cap, to->n + 1, sizeof *to->of) ||
                 !ggl_grow(&to->row, &to->cap_row, to->n_row + size, sizeof *to->row);
    if (to->failed)
        return false;
    to->of[to->n++] = (text_rows){text, n_rows, n, to->n_row};
    memcpy(to->row + to->n_row, row, size * sizeof *row);
    to->n_row += size;
    return true;
}

static ggl_status run_piece(void *ctx, int copy, size_t i, size_t place, ggl_error *err) {
    const pieces *s = ctx;
    piece_rows *to = &s->place[place];
    llm_embedding_params p = *s->p;
    p.text += s->begin[i];
    p.n_texts = s->begin[i + 1] - s->begin[i];
    p.first += s->begin[i];
    p.each = keep_rows;
    p.ctx = to;
    to->n = to->n_row = 0;
    to->failed = false;
    const ggl_status st = llm_embed_all(llm_copies_session(s->c, copy), &p, err);
    return to->failed ? no_memory(err) : st;
}

static ggl_status take_piece(void *ctx, size_t i, size_t place, ggl_error *err) {
    const pieces *s = ctx;
    const piece_rows *from = &s->place[place];
    (void)i;
    for (size_t k = 0; k < from->n; k++) {
        const text_rows *t = &from->of[k];
        if (!s->p->each(s->p->ctx, t->text, t->n_rows, from->row + t->at, t->n))
            return ggl_fail(err, GGL_CANCELLED, "stopped after %s[%zu]",
                            s->p->name ? s->p->name : "texts", t->text);
    }
    return GGL_OK;
}

static ggl_status run_pieces(pieces *s, ggl_error *err) {
    const llm_session *first = s->c->session;
    const size_t n_places = PLACES * (size_t)llm_copies_n(s->c);
    ggl_status st = llm_embed_check(first, s->p, err);
    if (st != GGL_OK)
        return st;
    s->begin = ggl_calloc(s->p->n_texts + 1, sizeof *s->begin);
    s->place = ggl_calloc(n_places, sizeof *s->place);
    if (!s->begin || !s->place)
        return no_memory(err);
    for (; s->begin[s->n] < s->p->n_texts; s->n++)
        s->begin[s->n + 1] = s->begin[s->n] + llm_embed_some(first, s->p, s->begin[s->n], BATCHES);
    st = llm_copies_run(
        s->c,
        &(llm_copies_work){
            .n = s->n, .n_places = n_places, .run = run_piece, .take = take_piece, .ctx = s},
        err);
    for (size_t k = 0; k < n_places; k++) {
        ggl_free(s->place[k].of);
        ggl_free(s->place[k].row);
    }
    return st;
}

static ggl_status run_on_copies(llm_context *c, const llm_embedding_params *p, ggl_error *err) {
    pieces s = {.c = c, .p = p};
    const ggl_status st = run_pieces(&s, err);
    ggl_free(s.begin);
    ggl_free(s.place);
    return st;
}

/* Runs the texts in slots of their own: the context's sequence is emptied. */
static ggl_status run(llm_context *c, const llm_embedding_params *p, ggl_error *err) {
    atomic_store(&c->cancelled, false);
    ggl_status st = llm_context_take(c, err);
    if (st == GGL_OK)
        st = llm_context_clear(c, err);
    if (st == GGL_OK)
        st = llm_copies_n(c) > 1 ? run_on_copies(c, p, err) : llm_embed_all(c->session, p, err);
    if (c->is_own)
        (void)llm_context_clear(c, NULL);
    return st;
}

/* Hands rows on to the caller of llm_embed_tokens. */
static bool give_rows(void *ctx, size_t text, int64_t n_rows, const float *row, int64_t n) {
    const llm_embed_params *p = ctx;
    return p->each(p->user, text, (size_t)n_rows, row, (size_t)n);
}

bool llm_limit_is_file(const llm_context *c) {
    return c->limit_is_file;
}

/* What says how long a text may be, for messages. */
static const char *limit_of(const llm_context *c) {
    return c->limit_is_file ? "the max_seq_length of the model's settings; n_ctx, or -c N, sets "
                              "another limit"
                            : "the context: n_ctx, or -c N";
}

bool llm_embeds_empty(const llm_context *c) {
    return c->no_special_tokens && c->head && c->pooling != LLM_POOL_NONE;
}

/* --- queries of ColBERT's kind ------------------------------------------------------------------ */

/* How queries are filled up. */
typedef struct expansion {
    int64_t length; /* 0: not at all */
    int32_t mask;
    bool is_seen;
} expansion;

static ggl_status find_expansion(const llm_context *c, expansion *x, ggl_error *err) {
    enum { MOST = 512 };
    const ggl_gguf *file = llm_model_file(c->model);
    int64_t mask = -1;
    *x = (expansion){0};
    if (!llm_session_sees_all(c->session))
        return GGL_OK;
    if (ggl_gguf_get_integer(file, "sentence_transformers.query_length", &x->length, err) < 0 ||
        ggl_gguf_get_integer(file, "tokenizer.ggml.mask_token_id", &mask, err) < 0 ||
        ggl_gguf_get_bool(file, "sentence_transformers.attend_to_expansion_tokens", &x->is_seen,
                          err) < 0)
        return GGL_FORMAT;
    if (x->length == 0)
        return GGL_OK;
    if (x->length < 0 || x->length > MOST || mask < 0 || mask >= llm_session_n_vocab(c->session))
        return ggl_fail(err, GGL_FORMAT,
                        "%s: queries of %" PRId64 " tokens (sentence_transformers.query_length), "
                        "filled with the token %" PRId64
                        " (tokenizer.ggml.mask_token_id): 0 to %d, "
                        "and a token of the vocabulary are expected",
                        ggl_gguf_name(file), x->length, mask, MOST);
    x->mask = (int32_t)mask;
    x->length =
        x->length < llm_session_n_ctx(c->session) ? x->length : llm_session_n_ctx(c->session);
    return GGL_OK;
}

/* Writes masks after the first n tokens of a query. Returns what others see: as llm_batch.seen. */
static int32_t fill(const expansion *x, int32_t *id, size_t n) {
    for (size_t k = n; k < (size_t)x->length; k++)
        id[k] = x->mask;
    return x->is_seen ? 0 : (int32_t)n;
}

ggl_status llm_fill_query(const llm_context *c, llm_tokens *ids, int32_t *n_seen, ggl_error *err) {
    expansion x;
    *n_seen = 0;
    const ggl_status st = find_expansion(c, &x, err);
    if (st != GGL_OK || ids->n == 0 || ids->n >= (size_t)x.length) /* long ones are not cut */
        return st;
    if (!ggl_grow(&ids->id, &ids->cap, (size_t)x.length, sizeof *ids->id))
        return no_memory(err);
    *n_seen = fill(&x, ids->id, ids->n);
    ids->n = (size_t)x.length;
    return GGL_OK;
}

/* Fills the texts up, in *all, which the caller frees. */
static ggl_status expand(const llm_context *c, llm_embed_text *text, size_t n, int32_t **all,
                         ggl_error *err) {
    expansion x = {0};
    const ggl_status st = c->pooling == LLM_POOL_NONE ? find_expansion(c, &x, err) : GGL_OK;
    *all = NULL;
    if (st != GGL_OK || x.length == 0)
        return st;
    *all = ggl_calloc(n * (size_t)x.length, sizeof **all);
    if (!*all)
        return no_memory(err);
    for (size_t i = 0; i < n; i++) {
        int32_t *to = *all + i * (size_t)x.length;
        if (text[i].n == 0 || text[i].n >= (size_t)x.length)
            continue; /* long ones are not cut */
        memcpy(to, text[i].token, text[i].n * sizeof *to);
        text[i].n_seen = fill(&x, to, text[i].n);
        text[i].token = to;
        text[i].type = NULL; /* a query is one text */
        text[i].n = (size_t)x.length;
    }
    return GGL_OK;
}

static ggl_status embed_lists(llm_context *c, llm_embed_text *text, size_t n,
                              const llm_embed_params *params, ggl_error *err) {
    llm_embed_params own = {.size = sizeof own};
    const ggl_status st = GGL_READ_PARAMS(llm_embed_params, &own, params, err);
    if (st != GGL_OK)
        return st;
    if (!own.each)
        return ggl_fail(err, GGL_USAGE, "llm_embed_params.each is NULL");
    if (llm_session_n_embd(c->session) == 0 && c->pooling != LLM_POOL_RANK)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model was opened without its rows: open it for embeddings"
                        " (llm_open_params.embeddings; Python: Model(.., embeddings=True);"
                        " JavaScript: Model.load(.., {embeddings: true}))");
    int task;
    const ggl_status chosen = llm_task_choose(c, own.task, &task, err);
    if (chosen != GGL_OK)
        return chosen;
    float share[LLM_ARCH_MAX_TASKS];
    const size_t n_tasks = (size_t)llm_session_n_tasks(c->session);
    memcpy(share, llm_session_shares(c->session), n_tasks * sizeof *share);
    if (task > 0)
        share[task - 1] = 1;
    for (size_t i = 0; i < n; i++)
        text[i].share = n_tasks > 0 ? share : NULL;
    const bool pools = c->pooling != LLM_POOL_NONE && c->pooling != LLM_POOL_RANK;
    int32_t *all = NULL;
    ggl_status made = own.query ? expand(c, text, n, &all, err) : GGL_OK;
    if (made == GGL_OK)
        made = run(c,
                   &(llm_embedding_params){.text = text,
                                           .n_texts = n,
                                           .limit = limit_of(c),
                                           .pooling = c->pooling,
                                           .head = c->head,
                                           .n_dims = own.n_dims || !pools ? own.n_dims : c->n_dims,
                                           .empty = llm_embeds_empty(c),
                                           .normalize = !own.no_normalize,
                                           .each = give_rows,
                                           .ctx = &own},
                   err);
    ggl_free(all);
    return made;
}

/* Checks that there are lists and their lengths. */
static ggl_status check_lists(const char *name, const void *list, const size_t *n, size_t n_texts,
                              ggl_error *err) {
    const ggl_status st = llm_need_array(name, list, n_texts, err);
    return st == GGL_OK ? llm_need_array("n", n, n_texts, err) : st;
}

/* Reads what the parameters say of texts. */
static ggl_status read_how(llm_embed_how *how, llm_embed_params *own,
                           const llm_embed_params *params, ggl_error *err) {
    *own = (llm_embed_params){.size = sizeof *own};
    ggl_status st = GGL_READ_PARAMS(llm_embed_params, own, params, err);
    if (st == GGL_OK)
        st = llm_need_array("llm_embed_params.prompt", own->prompt, own->n_prompt, err);
    *how = (llm_embed_how){.prompt = {own->prompt, own->n_prompt},
                           .truncate = own->truncate,
                           .no_parse_special = own->no_parse_special};
    return st;
}

/* Embeds texts that begin with the prompt. */
static ggl_status embed_after(llm_context *c, const llm_embed_how *how, token_lists *l,
                              const llm_embed_params *params, ggl_error *err) {
    int64_t n_before;
    const ggl_status st = llm_embed_count_before(c, how, &n_before, err);
    if (st != GGL_OK)
        return st;
    llm_embed_text *text = lists_texts(l);
    for (size_t i = 0; i < l->n; i++)
        text[i].n_before = n_before;
    return embed_lists(c, text, l->n, params, err);
}

static ggl_status append(llm_tokens *all, const int32_t *id, size_t n, ggl_error *err) {
    if (!ggl_grow(&all->id, &all->cap, all->n + n + 1, sizeof *all->id))
        return no_memory(err);
    if (n > 0)
        memcpy(all->id + all->n, id, n * sizeof *id);
    all->n += n;
    return GGL_OK;
}

ggl_status llm_embed_tokens(llm_context *c, const int32_t *const *id, const size_t *n,
                            size_t n_texts, const llm_embed_params *params, ggl_error *err) {
    token_lists l;
    llm_embed_how how;
    llm_embed_params own;
    ggl_status st = check_lists("id", id, n, n_texts, err);
    if (st == GGL_OK)
        st = read_how(&how, &own, params, err);
    if (st != GGL_OK)
        return st;
    st = lists_init(&l, n_texts, err);
    for (size_t i = 0; i < n_texts && st == GGL_OK; i++) {
        const size_t begin = l.all.n;
        st = llm_need_array("id[..]", id[i], n[i], err);
        if (st == GGL_OK && own.type)
            st = llm_need_array("llm_embed_params.type[..]", own.type[i], n[i], err);
        if (st == GGL_OK)
            st = append(&l.all, id[i], n[i], err);
        if (st == GGL_OK && own.type)
            st = append(&l.type, own.type[i], n[i], err);
        if (st == GGL_OK && how.truncate)
            st = llm_embed_cut(c, &l.all, own.type ? &l.type : NULL, begin, err);
        l.end[i] = l.all.n;
    }
    if (st == GGL_OK)
        st = embed_after(c, &how, &l, params, err);
    lists_fini(&l);
    return st;
}

ggl_status llm_embed_texts(llm_context *c, const char *const *text, const size_t *n, size_t n_texts,
                           const llm_embed_params *params, ggl_error *err) {
    token_lists l;
    llm_embed_how how;
    llm_embed_params own;
    ggl_status st = check_lists("text", text, n, n_texts, err);
    if (st == GGL_OK)
        st = check_tokenizer(c, err);
    if (st == GGL_OK)
        st = read_how(&how, &own, params, err);
    if (st != GGL_OK)
        return st;
    st = lists_init(&l, n_texts, err);
    for (size_t i = 0; i < n_texts && st == GGL_OK; i++) {
        st = llm_need_array("text[..]", text[i], n[i], err);
        if (st == GGL_OK)
            st = llm_embed_read(c, &how, (ggl_str){text[i], n[i]}, &l.all, err);
        l.end[i] = l.all.n;
    }
    if (st == GGL_OK)
        st = embed_after(c, &how, &l, params, err);
    lists_fini(&l);
    return st;
}

static bool copy_vector(void *user, size_t text, size_t n_rows, const float *row, size_t n) {
    (void)text;
    (void)n_rows;
    memcpy(user, row, n * sizeof *row);
    return true;
}

ggl_status llm_embed(llm_context *c, const char *text, size_t n, float *out, ggl_error *err) {
    if (c->pooling == LLM_POOL_NONE || c->pooling == LLM_POOL_RANK)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model's pooling is '%s', so a text has no single vector: open it with "
                        "another one (pooling, or --pooling), or call llm_embed_texts",
                        llm_pooling_name(c->pooling));
    const ggl_status st = llm_need_array("text", text, n, err);
    return st == GGL_OK ? llm_embed_texts(c, &text, &n, 1,
                                          &(llm_embed_params){.size = sizeof(llm_embed_params),
                                                              .each = copy_vector,
                                                              .user = out},
                                          err)
                        : st;
}

/* --- scores ----------------------------------------------------------------------------------- */

ggl_status llm_encode_pair(const llm_context *c, const char *query, size_t n_query,
                           const char *text, size_t n, int32_t **id, int32_t **type, size_t *n_id,
                           ggl_error *err) {
    llm_tokens ids = {0}, types = {0};
    *id = NULL;
    *n_id = 0;
    if (type)
        *type = NULL;
    ggl_status st = check_tokenizer(c, err);
    if (st == GGL_OK)
        st = llm_need_array("query", query, n_query, err);
    if (st == GGL_OK)
        st = llm_need_array("text", text, n, err);
    if (st == GGL_OK)
        st = llm_tokenize_pair(c->tokenizer, (ggl_str){query, n_query}, (ggl_str){text, n}, &ids,
                               type ? &types : NULL, err);
    if (st == GGL_OK && ids.n == 0 &&
        (!ggl_grow(&ids.id, &ids.cap, 1, sizeof *ids.id) ||
         (type && !ggl_grow(&types.id, &types.cap, 1, sizeof *types.id))))
        st = no_memory(err);
    if (st != GGL_OK) {
        llm_tokens_fini(&ids);
        llm_tokens_fini(&types);
        return st;
    }
    *id = ids.id;
    if (type)
        *type = types.id;
    *n_id = ids.n;
    return GGL_OK;
}

static bool keep_score(void *ctx, size_t text, int64_t n_rows, const float *row, int64_t n) {
    float *score = ctx;
    (void)n_rows;
    (void)n;
    score[text] = row[0];
    return true;
}

/* Appends the tokens of a pair, and their types. */
static ggl_status append_pair(const llm_context *c, ggl_str query, ggl_str text, bool truncate,
                              token_lists *to, ggl_error *err) {
    llm_tokens pair = {0}, type = {0};
    ggl_status st = llm_tokenize_pair(c->tokenizer, query, text, &pair, &type, err);
    if (st == GGL_OK && truncate)
        st = llm_cut_pair(c->tokenizer, query, &pair, &type, (size_t)llm_session_n_ctx(c->session),
                          err);
    if (st == GGL_OK)
        st = append(&to->all, pair.id, pair.n, err);
    if (st == GGL_OK)
        st = append(&to->type, type.id, type.n, err);
    llm_tokens_fini(&pair);
    llm_tokens_fini(&type);
    return st;
}

ggl_status llm_check_ranks(const llm_context *c, ggl_error *err) {
    const int64_t n = llm_session_n_score(c->session);
    if (n == 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model gives no scores to a query and a text: it is no reranker");
    ggl_error why;
    if (n == 1 || llm_pooling_check_ranks(llm_model_file(c->model), &why) == GGL_OK)
        return GGL_OK;
    return ggl_fail(err, why.status,
                    "%s; as vectors, with the pooling rank, texts get all %" PRId64 " scores",
                    why.msg, n);
}

ggl_status llm_rerank(llm_context *c, const char *query, size_t n_query, const char *const *text,
                      const size_t *n, size_t n_texts, bool truncate, float *score,
                      ggl_error *err) {
    token_lists l;
    ggl_status st = check_lists("text", text, n, n_texts, err);
    if (st == GGL_OK)
        st = llm_need_array("query", query, n_query, err);
    if (st == GGL_OK)
        st = llm_need_array("score", score, n_texts, err);
    if (st == GGL_OK)
        st = check_tokenizer(c, err);
    if (st == GGL_OK)
        st = llm_check_ranks(c, err);
    if (st != GGL_OK)
        return st;
    st = lists_init(&l, n_texts, err);
    for (size_t i = 0; i < n_texts && st == GGL_OK; i++) {
        st = llm_need_array("text[..]", text[i], n[i], err);
        if (st != GGL_OK)
            break;
        st = append_pair(c, (ggl_str){query, n_query}, (ggl_str){text[i], n[i]}, truncate, &l, err);
        l.end[i] = l.all.n;
    }
    if (st == GGL_OK)
        st = run(c,
                 &(llm_embedding_params){.text = lists_texts(&l),
                                         .n_texts = n_texts,
                                         .name = "documents",
                                         .limit = limit_of(c),
                                         .pooling = LLM_POOL_RANK,
                                         .each = keep_score,
                                         .ctx = score},
                 err);
    lists_fini(&l);
    return st;
}
