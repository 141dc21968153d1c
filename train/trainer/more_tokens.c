/* More special tokens: their entries in the tokenizer, and rows for them in the tensors that have one for each token. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/params.h"
#include "ggl/internal/show.h"
#include "ggl/types.h"
#include "llm/internal/trainer.h"
#include "text/tokenizer_impl.h"
#include "train_impl.h"

#define TOKENS "tokenizer.ggml.tokens"
#define SCORES "tokenizer.ggml.scores"
#define TYPES  "tokenizer.ggml.token_type"

/* A tensor that gets more rows. */
typedef struct grown {
    const struct adder *of;
    const ggl_gguf_tensor *t;
    int64_t n_row;            /* elements of a row */
    int64_t n_old;            /* rows that it has */
    int64_t ne[GGL_MAX_DIMS]; /* with the new ones */
} grown;

typedef struct adder {
    llm_train_tokens p;
    llm_arch_source source;
    uint64_t n_tokens;    /* of the tokenizer */
    int64_t n_old, n_new; /* rows for tokens, as the model has them and as it needs them */
    char size_key[96];    /* {arch}.vocab_size */
    ggl_str *token;       /* the tokenizer's, and then the new ones */
    grown *tensor;        /* [n] */
    size_t n;
} adder;

/* --- what is asked ---------------------------------------------------------------------------- */

static ggl_status check_special(const adder *a, ggl_error *err) {
    if (a->p.n_special == 0)
        return ggl_fail(err, GGL_USAGE, "no token is given");
    for (size_t i = 0; i < a->p.n_special; i++) {
        const char *s = a->p.special[i];
        const size_t n = strlen(s);
        if (n == 0 || !ggl_utf8_is_valid(s, n))
            return ggl_fail(err, GGL_USAGE, "a token %s",
                            n == 0 ? "is empty" : "is not valid UTF-8");
        for (size_t k = 0; k < i; k++)
            if (strcmp(a->p.special[k], s) == 0)
                return ggl_fail(err, GGL_USAGE, "the token '%s' is given twice", s);
    }
    return GGL_OK;
}

/* Reads the spellings, and adds the new ones. */
static ggl_status list_tokens(adder *a, ggl_error *err) {
    const char *file = ggl_gguf_name(a->p.of);
    const ggl_gguf_value *v = ggl_gguf_find(a->p.of, TOKENS);
    if (!v || !v->is_array || v->type != GGL_GGUF_STRING)
        return ggl_fail(err, GGL_FORMAT, "%s has no tokens: %s is %s", file, TOKENS,
                        v ? "no list of strings" : "missing");
    if (v->n > INT32_MAX || a->p.n_special > INT32_MAX - v->n)
        return ggl_fail(err, GGL_LIMIT, "%s: more than %d tokens", file, INT32_MAX);
    a->n_tokens = v->n;
    a->token = ggl_calloc((size_t)v->n + a->p.n_special, sizeof *a->token);
    if (!a->token)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokens");
    for (uint64_t i = 0; i < v->n; i++) {
        if (!ggl_gguf_string(v, i, &a->token[i]))
            return ggl_fail(err, GGL_FORMAT, "%s: %s: entry %" PRIu64 " is unreadable", file,
                            TOKENS, i);
        for (size_t k = 0; k < a->p.n_special; k++)
            if (ggl_str_is(a->token[i], a->p.special[k]))
                return ggl_fail(err, GGL_USAGE, "%s has the token '%s' already: its id is %" PRIu64,
                                file, a->p.special[k], i);
    }
    for (size_t k = 0; k < a->p.n_special; k++)
        a->token[v->n + k] = (ggl_str){a->p.special[k], strlen(a->p.special[k])};
    return GGL_OK;
}

/* Finds how many rows there are, and are to be. */
static ggl_status size_vocabulary(adder *a, ggl_error *err) {
    const uint64_t wanted = a->n_tokens + a->p.n_special;
    const ggl_gguf_value *v;
    ggl_str family;
    uint64_t rows = a->n_tokens;
    const int found = ggl_gguf_get_string(a->p.of, "general.architecture", &family, err);
    if (found != 1 || family.n > 64)
        return found < 0 ? GGL_FORMAT
                         : ggl_fail(err, GGL_FORMAT, "%s: general.architecture is missing",
                                    ggl_gguf_name(a->p.of));
    snprintf(a->size_key, sizeof a->size_key, "%.*s.vocab_size", (int)family.n, family.s);
    v = ggl_gguf_find(a->p.of, a->size_key);
    if (v && (v->is_array || !ggl_gguf_unsigned(v, 0, &rows) || rows > INT32_MAX))
        return ggl_fail(err, GGL_FORMAT, "%s: %s is not a whole number below 2^31",
                        ggl_gguf_name(a->p.of), a->size_key);
    a->n_old = (int64_t)rows;
    a->n_new = (int64_t)(rows > wanted ? rows : wanted);
    return GGL_OK;
}

/* --- which tensors grow ----------------------------------------------------------------------- */

static grown *find_grown(const adder *a, const ggl_gguf_tensor *t) {
    for (size_t i = 0; i < a->n; i++)
        if (a->tensor[i].t == t)
            return &a->tensor[i];
    return NULL;
}

/* The tensors of the model, those with a row for each token with the rows that are to come. */
static bool find_tensor(void *ctx, llm_arch_tensor *t) {
    adder *a = ctx;
    const llm_arch_tensor declared = *t;
    if (!a->source.find_tensor(a->source.ctx, t))
        return false;
    const ggl_gguf_tensor *have = ggl_gguf_find_tensor(a->p.of, t->name);
    const int last = declared.n_dims - 1;
    grown *g = have ? find_grown(a, have) : NULL;
    if (have && !g && !declared.is_asked && last >= 0 && t->n_dims == declared.n_dims &&
        declared.ne[last] == a->n_new && t->ne[last] == a->n_old && a->n_old < a->n_new &&
        memcmp(declared.ne, t->ne, (size_t)last * sizeof *t->ne) == 0) {
        g = &a->tensor[a->n++];
        *g = (grown){
            .of = a, .t = have, .n_row = ggl_extents(have->ne, 0, last, 1), .n_old = a->n_old};
        memcpy(g->ne, declared.ne, sizeof g->ne);
    }
    if (g) {
        memcpy(t->ne, g->ne, sizeof t->ne);
        t->data = NULL; /* there is less of it than the shape says */
    }
    return true;
}

static bool find_key(void *ctx, const char *name, llm_arch_key *out) {
    const adder *a = ctx;
    /* {arch}.vocab_size would be the old one */
    return strcmp(name, a->size_key) != 0 && a->source.find_key(a->source.ctx, name, out);
}

static bool get_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    const adder *a = ctx;
    return a->source.get_item(a->source.ctx, key, i, out);
}

/* Builds the graph for the larger vocabulary, to see which shapes it asks for. */
static ggl_status list_tensors(adder *a, ggl_error *err) {
    const llm_arch_params p = {.size = sizeof p, .n_ctx = 1, .n_vocab = a->n_new};
    a->source = llm_arch_source_gguf(a->p.of);
    const llm_arch_source source = {.ctx = a,
                                    .name = a->source.name,
                                    .find_key = find_key,
                                    .get_item = get_item,
                                    .find_tensor = find_tensor};
    llm_arch_result r = {0};
    ggl_graph *g = ggl_graph_new(NULL);
    a->tensor = ggl_calloc(ggl_gguf_n_tensors(a->p.of) + 1, sizeof *a->tensor);
    ggl_status st = g && a->tensor ? llm_arch_build(a->p.arch, &source, &p, g, &r, err)
                                   : ggl_fail(err, GGL_NOMEM, "out of memory for a model");
    llm_arch_result_fini(&r);
    ggl_graph_free(g);
    for (size_t i = 0; i < a->n && st == GGL_OK; i++) {
        const ggl_gguf_tensor *t = a->tensor[i].t;
        const ggl_type_info *type = ggl_type_get(t->type);
        if ((!type->from_float && !type->from_float_weighted) || a->tensor[i].n_row % type->block)
            st = ggl_fail(err, GGL_UNSUPPORTED, "%.*s is %s, of which no rows can be made",
                          (int)t->name.n, t->name.s, type->name);
    }
    return st;
}

/* --- the file --------------------------------------------------------------------------------- */

typedef struct column {
    double mean, spread;
} column;

/* Sets each column's mean and spread over the rows that there are. */
static void measure(const grown *g, column *c, float *row) {
    const ggl_type_info *type = ggl_type_get(g->t->type);
    const size_t size = (size_t)(g->n_row / type->block) * type->size;
    const double n = (double)g->n_old;
    for (int64_t i = 0; i < g->n_old; i++) {
        type->to_float((const char *)g->t->data + (size_t)i * size, row, g->n_row);
        for (int64_t k = 0; k < g->n_row; k++) {
            c[k].mean += (double)row[k];
            c[k].spread += (double)row[k] * (double)row[k];
        }
    }
    for (int64_t k = 0; k < g->n_row; k++) {
        c[k].mean /= n;
        c[k].spread = sqrt(fmax(0, c[k].spread / n - c[k].mean * c[k].mean));
    }
}

static ggl_status write_rows(const grown *g, const column *c, float *row, void *out,
                             ggl_gguf_sink *to, ggl_error *err) {
    const ggl_type_info *type = ggl_type_get(g->t->type);
    const size_t size = (size_t)(g->n_row / type->block) * type->size;
    ggl_status st = ggl_gguf_sink_write(to, g->t->data, g->t->size, err);
    uint64_t rng[4];
    llm_train_normal_seed(rng, g->of->p.seed, g->t->name);
    for (int64_t i = g->n_old; i < g->of->n_new && st == GGL_OK; i++) {
        for (int64_t k = 0; k < g->n_row; k++)
            row[k] = (float)(c[k].mean + c[k].spread * llm_train_normal(rng));
        if (type->from_float)
            type->from_float(row, out, g->n_row);
        else
            type->from_float_weighted(row, NULL, out, g->n_row);
        st = ggl_gguf_sink_write(to, out, size, err);
    }
    return st;
}

static ggl_status fill(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    const grown *g = ctx;
    const ggl_type_info *type = ggl_type_get(g->t->type);
    const size_t n = (size_t)g->n_row;
    column *c = ggl_calloc(n, sizeof *c);
    float *row = ggl_calloc(n, sizeof *row);
    void *out = ggl_calloc(n / (size_t)type->block, type->size);
    ggl_status st = c && row && out ? GGL_OK
                                    : ggl_fail(err, GGL_NOMEM, "out of memory for rows of %.*s",
                                               (int)g->t->name.n, g->t->name.s);
    if (st == GGL_OK) {
        measure(g, c, row);
        st = write_rows(g, c, row, out, to, err);
    }
    ggl_free(c);
    ggl_free(row);
    ggl_free(out);
    return st;
}

static ggl_status check_length(const adder *a, const ggl_gguf_value *v, ggl_error *err) {
    return v->is_array && v->n == a->n_tokens
               ? GGL_OK
               : ggl_fail(err, GGL_FORMAT,
                          "%s: %.*s has %" PRIu64 " entries, for %" PRIu64 " tokens",
                          ggl_gguf_name(a->p.of), (int)v->key.n, v->key.s, v->n, a->n_tokens);
}

/* Special tokens have no score. */
static ggl_status put_scores(const adder *a, ggl_gguf_writer *w, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(a->p.of, SCORES);
    const uint64_t n = a->n_tokens + a->p.n_special;
    ggl_status st = v ? check_length(a, v, err) : GGL_OK;
    if (!v || st != GGL_OK)
        return st;
    float *score = ggl_calloc((size_t)n, sizeof *score);
    if (!score)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokens");
    for (uint64_t i = 0; i < a->n_tokens; i++) {
        double x = 0;
        if (!ggl_gguf_number(v, i, &x) && st == GGL_OK)
            st = ggl_fail(err, GGL_FORMAT, "%s: %s is no list of numbers", ggl_gguf_name(a->p.of),
                          SCORES);
        score[i] = (float)x;
    }
    ggl_gguf_put(w, SCORES, GGL_GGUF_F32, true, score, n);
    ggl_free(score);
    return st;
}

static ggl_status put_types(const adder *a, ggl_gguf_writer *w, ggl_error *err) {
    const ggl_gguf_value *v = ggl_gguf_find(a->p.of, TYPES);
    const uint64_t n = a->n_tokens + a->p.n_special;
    ggl_status st = v ? check_length(a, v, err) : GGL_OK;
    if (st != GGL_OK)
        return st;
    int32_t *type = ggl_calloc((size_t)n, sizeof *type);
    if (!type)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the tokens");
    for (uint64_t i = 0; i < n; i++) {
        int64_t x = i < a->n_tokens ? TOKEN_NORMAL : TOKEN_CONTROL;
        if (v && i < a->n_tokens && !ggl_gguf_integer(v, i, &x) && st == GGL_OK)
            st = ggl_fail(err, GGL_FORMAT, "%s: %s is no list of whole numbers",
                          ggl_gguf_name(a->p.of), TYPES);
        type[i] = (int32_t)x;
    }
    ggl_gguf_put(w, TYPES, GGL_GGUF_I32, true, type, n);
    ggl_free(type);
    return st;
}

static ggl_status put_keys(const adder *a, ggl_gguf_writer *w, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < ggl_gguf_n_values(a->p.of) && st == GGL_OK; i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(a->p.of, i);
        const uint32_t rows = (uint32_t)a->n_new;
        if (ggl_str_is(v->key, TOKENS)) {
            ggl_gguf_put_strings(w, TOKENS, a->token, a->n_tokens + a->p.n_special);
            st = put_scores(a, w, err);
            st = st == GGL_OK ? put_types(a, w, err) : st;
        } else if (ggl_str_is(v->key, a->size_key)) {
            ggl_gguf_put(w, a->size_key, GGL_GGUF_U32, false, &rows, 1);
        } else if (!ggl_str_is(v->key, SCORES) && !ggl_str_is(v->key, TYPES) &&
                   !llm_train_is_split_key(v)) {
            ggl_gguf_put_value(w, v);
        }
    }
    return st;
}

static ggl_status write_file(const adder *a, const char *path, ggl_error *err) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    if (!w)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %s", path);
    ggl_status st = put_keys(a, w, err);
    for (size_t i = 0; i < ggl_gguf_n_tensors(a->p.of); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(a->p.of, i);
        grown *g = find_grown(a, t);
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
        if (g)
            ggl_gguf_put_tensor_later(w, name, t->type, t->n_dims, g->ne, fill, g);
        else
            ggl_gguf_put_tensor(w, name, t->type, t->n_dims, t->ne, t->data);
    }
    st = st == GGL_OK ? ggl_gguf_writer_write(w, path, err) : st;
    ggl_gguf_writer_free(w);
    return st;
}

ggl_status llm_train_add_tokens(const llm_train_tokens *params, const char *path, int32_t *first,
                                ggl_error *err) {
    adder a = {.p = {.size = sizeof a.p}};
    ggl_status st = GGL_READ_PARAMS(llm_train_tokens, &a.p, params, err);
    if (st == GGL_OK)
        st = check_special(&a, err);
    if (st == GGL_OK)
        st = list_tokens(&a, err);
    if (st == GGL_OK)
        st = size_vocabulary(&a, err);
    if (st == GGL_OK)
        st = list_tensors(&a, err);
    if (st == GGL_OK)
        st = write_file(&a, path, err);
    if (st == GGL_OK)
        *first = (int32_t)a.n_tokens;
    ggl_free(a.token);
    ggl_free(a.tensor);
    return st;
}
