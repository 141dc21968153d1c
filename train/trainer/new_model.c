/* New models: the sizes that keys say, and random weights; and models with more tensors than they had.
 *
 * A matrix begins with a normal distribution of sigma 0.02, and one whose product is added to what passes through all layers with
 * sigma / sqrt(2 n_layer), so that their sum does not grow with the layers (Radford et al., 2019). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/compile.h"
#include "compile/key_ranges.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "ggl/internal/math.h"
#include "ggl/internal/nearest.h"
#include "ggl/internal/params.h"
#include "llm/internal/trainer.h"
#include "ggl/internal/show.h"
#include "sample/sampler_impl.h"
#include "train_impl.h"

enum { MOST_LIST = 4096, PIECE = 4096 };

/* A tensor of the new model. */
typedef struct fresh {
    const struct maker *of;
    char name[128];
    int n_dims;
    int64_t ne[GGL_MAX_DIMS];
    double mean, sigma;
    bool ends_layer; /* sigma is to be divided by sqrt(2 n_layer) */
} fresh;

/* A key that the descriptor needs, and that nobody gave. */
typedef struct lacking {
    char name[160];
    llm_arch_key key; /* that of the toy */
} lacking;

typedef struct maker {
    llm_train_new p;
    double sigma;
    ggl_gguf *keys;               /* all keys of the model, without tensors */
    llm_arch_source source, base; /* base: of the model that stays; without one nothing is in it */
    fresh **tensor;               /* each has an address of its own, which the writer keeps */
    size_t n, cap;
    llm_arch_toy *
        toy; /* whose values stand for `lacking`, to find all of these, and have the kinds of keys; or NULL */
    lacking **lacking; /* each has an address of its own, which is the handle of its key */
    size_t n_lacking, cap_lacking;
    bool is_one_more; /* the last build has added a key to `lacking` */
    size_t *hit;      /* [n_with], and then [n_init]: how many tensors each pattern fits */
    int64_t n_layer;
    bool failed;
} maker;

/* --- keys ------------------------------------------------------------------------------------- */

/* Adds a list "[1, 2]". False: it is none of whole numbers. */
static bool put_list(ggl_gguf_writer *w, const char *key, const char *s) {
    int32_t list[MOST_LIST];
    uint64_t n = 0;
    for (const char *at = s + 1; n < MOST_LIST;) {
        char *end;
        const long x = strtol(at, &end, 10);
        if (end == at || x < INT32_MIN || x > INT32_MAX)
            return false;
        list[n++] = (int32_t)x;
        end += strspn(end, " ");
        if (*end == ']' && !end[1]) {
            ggl_gguf_put(w, key, GGL_GGUF_I32, true, list, n);
            return true;
        }
        if (*end != ',')
            return false;
        at = end + 1;
    }
    return false;
}

static bool put_value(ggl_gguf_writer *w, const char *key, const char *s) {
    char *end;
    const uint8_t flag = strcmp(s, "true") == 0;
    if (flag || strcmp(s, "false") == 0) {
        ggl_gguf_put(w, key, GGL_GGUF_BOOL, false, &flag, 1);
        return true;
    }
    if (s[0] == '[')
        return put_list(w, key, s);
    const double x = strtod(s, &end);
    if (end == s || *end) {
        ggl_gguf_put_string(w, key, s, strlen(s));
        return s[0] != '\0';
    }
    const bool is_whole = !strpbrk(s, ".eE");
    if (is_whole && x >= 0 && x <= UINT32_MAX) {
        const uint32_t whole = (uint32_t)x;
        ggl_gguf_put(w, key, GGL_GGUF_U32, false, &whole, 1);
    } else if (is_whole && fabs(x) < 0x1p53) {
        const int64_t whole = (int64_t)x;
        ggl_gguf_put(w, key, GGL_GGUF_I64, false, &whole, 1);
    } else {
        const float number = (float)x;
        ggl_gguf_put(w, key, GGL_GGUF_F32, false, &number, 1);
    }
    return isfinite(x);
}

/* Writes the name of a key that is given as n characters, of which a point at the beginning stands behind the architecture's name. */
static void full_name(char *to, size_t size, const llm_train_new *p, const char *key, size_t n) {
    snprintf(to, size, "%s%.*s", key[0] == '.' ? p->name : "", (int)n, key);
}

static ggl_status put_key(ggl_gguf_writer *w, const llm_train_new *p, const char *text,
                          ggl_error *err) {
    const char *value = strchr(text, '=');
    char key[256];
    const int n = value ? (int)(value - text) : 0;
    if (!value || n == 0 || n >= 128 || strlen(p->name) >= 64)
        return ggl_fail(err, GGL_USAGE, "'%s' is no KEY=VALUE", text);
    if (!memchr(text, '.', (size_t)n))
        return ggl_fail(err, GGL_USAGE,
                        "'%s': a key of the architecture begins with a point, as .%s does", text,
                        text);
    full_name(key, sizeof key, p, text, (size_t)n);
    if (!put_value(w, key, value + 1))
        return ggl_fail(err, GGL_USAGE,
                        "'%s': the value must be a number, true, false, a text, or a list of whole "
                        "numbers such as [1,2]",
                        text);
    return GGL_OK;
}

/* Returns the first of the user's n keys, KEY=VALUE, with this name; NULL: none has it. */
static const char *find_given(const maker *m, size_t n, ggl_str name) {
    char given[256];
    for (size_t i = 0; i < n; i++) {
        full_name(given, sizeof given, &m->p, m->p.key[i], strcspn(m->p.key[i], "="));
        if (ggl_str_is(name, given))
            return m->p.key[i];
    }
    return NULL;
}

/* Refuses a key that the user gives twice. */
static ggl_status check_repeated(const maker *m, size_t i, ggl_error *err) {
    char given[256];
    full_name(given, sizeof given, &m->p, m->p.key[i], strcspn(m->p.key[i], "="));
    const char *before = find_given(m, i, (ggl_str){given, strlen(given)});
    return before
               ? ggl_fail(err, GGL_USAGE, "'%s' and '%s' are the same key: leave one of them out",
                          before, m->p.key[i])
               : GGL_OK;
}

/* True if the key of the model that stays is another one in the new model. */
static bool is_replaced(const maker *m, const ggl_gguf_value *v) {
    return ggl_str_is(v->key, "general.architecture") || ggl_str_is(v->key, "general.descriptor") ||
           llm_train_is_split_key(v) || find_given(m, m->p.n_keys, v->key);
}

/* Adds a key of the tokenizer. */
static ggl_status put_vocab(const maker *m, ggl_gguf_writer *w, const ggl_gguf_value *v,
                            ggl_error *err) {
    const char *given = find_given(m, m->p.n_keys, v->key);
    if (given)
        return ggl_fail(err, GGL_USAGE,
                        "'%s': the tokenizer, %s, has this key already: leave it out, or change it "
                        "in the new file, by llm-gguf set",
                        given, ggl_gguf_name(m->p.vocab));
    ggl_gguf_put_value(w, v);
    return GGL_OK;
}

/* Refuses a size of the vocabulary that has no room for the tokenizer's tokens. */
static ggl_status check_vocab_size(const maker *m, uint64_t n_tokens, ggl_error *err) {
    char name[128];
    snprintf(name, sizeof name, "%.64s.vocab_size", m->p.name);
    const char *given = find_given(m, m->p.n_keys, (ggl_str){name, strlen(name)});
    char *end;
    const double n = given ? strtod(strchr(given, '=') + 1, &end) : 0;
    return n >= 1 && *end == '\0' && n < (double)n_tokens
               ? ggl_fail(err, GGL_USAGE,
                          "'%s': the tokenizer, %s, has %" PRIu64
                          " tokens, and the model needs a row for each: leave the key out, or give "
                          "a larger number",
                          given, ggl_gguf_name(m->p.vocab), n_tokens)
               : GGL_OK;
}

/* Adds the keys of the model that stays, or those of the tokenizer. */
static ggl_status put_old(const maker *m, ggl_gguf_writer *w, ggl_error *err) {
    const ggl_gguf *from = m->p.base ? m->p.base : m->p.vocab;
    ggl_status st = GGL_OK;
    uint64_t n_tokens = 0;
    if (!from)
        return llm_arch_has_tokens(m->p.arch)
                   ? ggl_fail(err, GGL_USAGE, "%s reads tokens: a tokenizer is needed",
                              llm_arch_name(m->p.arch))
                   : GGL_OK;
    for (size_t i = 0; i < ggl_gguf_n_values(from) && st == GGL_OK; i++) {
        const ggl_gguf_value *v = ggl_gguf_value_at(from, i);
        const bool is_vocab = v->key.n > 10 && memcmp(v->key.s, "tokenizer.", 10) == 0;
        if (ggl_str_is(v->key, "tokenizer.ggml.tokens"))
            n_tokens = v->n;
        if (!m->p.base && is_vocab)
            st = put_vocab(m, w, v, err);
        else if (m->p.base && !is_replaced(m, v))
            ggl_gguf_put_value(w, v);
    }
    if (!m->p.base && st == GGL_OK)
        st = check_vocab_size(m, n_tokens, err);
    if (st == GGL_OK && !m->p.base && n_tokens == 0)
        return ggl_fail(err, GGL_FORMAT, "%s has no tokens: the tokenizer of a model is needed",
                        ggl_gguf_name(from));
    return st;
}

/* A model that stays keeps its architecture. */
static ggl_status check_base(const maker *m, ggl_error *err) {
    ggl_str name = {0};
    if (!m->p.base)
        return GGL_OK;
    const int found = ggl_gguf_get_string(m->p.base, "general.architecture", &name, err);
    if (found < 0)
        return GGL_FORMAT;
    return ggl_str_is(name, m->p.name)
               ? GGL_OK
               : ggl_fail(err, GGL_USAGE,
                          "%s has the architecture '%.*s', and the descriptor is for '%s': what is "
                          "added to a model is described together with it",
                          ggl_gguf_name(m->p.base), (int)ggl_utf8_cut(name.s, name.n, 64), name.s,
                          m->p.name);
}

/* Makes the keys: those given, and the tokenizer's or those of the model that stays. */
static ggl_status make_keys(maker *m, ggl_error *err) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    const ggl_gguf_memory none = {.data = "", .size = 0};
    const ggl_gguf_composition c = {
        .size = sizeof c, .name = "the new model", .part = &none, .n_parts = 1};
    if (!w)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a model");
    ggl_status st = check_base(m, err);
    ggl_gguf_put_string(w, "general.architecture", m->p.name, strlen(m->p.name));
    for (size_t i = 0; i < m->p.n_keys && st == GGL_OK; i++) {
        st = put_key(w, &m->p, m->p.key[i], err);
        if (st == GGL_OK)
            st = check_repeated(m, i, err);
    }
    if (st == GGL_OK)
        st = put_old(m, w, err);
    if (m->p.descriptor.n > 0)
        ggl_gguf_put_string(w, "general.descriptor", m->p.descriptor.s, m->p.descriptor.n);
    if (st == GGL_OK)
        st = ggl_gguf_compose(&m->keys, w, &c, err);
    ggl_gguf_writer_free(w);
    return st;
}

/* --- tensors ---------------------------------------------------------------------------------- */

static bool fits(const char *pattern, size_t n, const char *name) {
    char text[256];
    const char *const one[] = {text};
    if (n >= sizeof text)
        return false;
    memcpy(text, pattern, n);
    text[n] = '\0';
    return llm_arch_match_first(one, 1, (ggl_str){name, strlen(name)}, NULL) == 0;
}

/* Reads PATTERN=MEAN,SIGMA. False: it is none. */
static bool read_init(const char *s, size_t *n, double *mean, double *sigma) {
    const char *value = strrchr(s, '=');
    char *end;
    *n = value ? (size_t)(value - s) : 0;
    *sigma = 0;
    *mean = value ? strtod(value + 1, &end) : 0;
    if (!value || end == value + 1)
        return false;
    if (*end == ',')
        *sigma = strtod(end + 1, &end);
    return *end == '\0' && isfinite(*mean) && *sigma >= 0 && isfinite(*sigma);
}

/* Chooses how the tensor begins. */
static void choose_init(maker *m, fresh *t) {
    static const struct {
        const char *pattern;
        double mean, sigma; /* sigma < 0: that of matrices */
        bool ends_layer;
    } usual[] = {{"*.bias", 0, 0, false},
                 {"*norm*.weight", 1, 0, false},
                 {"*.ssm_d", 1, 0, false},
                 {"*.ssm_a", -1, 0.1, false},
                 {"*.attn_output.weight", 0, -1, true},
                 {"*.ffn_down*.weight", 0, -1, true},
                 {"*", 0, -1, false}};
    for (size_t i = 0; i < m->p.n_init; i++) {
        size_t n;
        double mean, sigma;
        if (read_init(m->p.init[i], &n, &mean, &sigma) && fits(m->p.init[i], n, t->name)) {
            m->hit[m->p.n_with + i]++;
            t->mean = mean;
            t->sigma = sigma;
            return;
        }
    }
    size_t k = 0;
    while (!fits(usual[k].pattern, strlen(usual[k].pattern), t->name))
        k++;
    t->mean = usual[k].mean;
    t->sigma = usual[k].sigma < 0 ? m->sigma : usual[k].sigma;
    t->ends_layer = usual[k].ends_layer;
}

/* The tensor source of the graph: it has what the descriptor demands, and of the rest what is wanted. */
static bool find_tensor(void *ctx, llm_arch_tensor *t) {
    maker *m = ctx;
    const ggl_str name = {t->name, strlen(t->name)};
    if (m->p.base && m->base.find_tensor(m->base.ctx, t))
        return true;
    if (t->optional && llm_arch_match_first(m->p.with, m->p.n_with, name, m->hit) >= m->p.n_with)
        return false;
    t->type = GGL_F32;
    t->data = NULL;
    if (llm_arch_is_of_target(t->name))
        return true;
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->tensor[i]->name, t->name) == 0)
            return true;
    fresh *own = ggl_calloc(1, sizeof *own);
    if (!own || name.n >= sizeof own->name ||
        !ggl_grow(&m->tensor, &m->cap, m->n + 1, sizeof own)) {
        ggl_free(own);
        m->failed = true;
        return true;
    }
    m->tensor[m->n++] = own;
    own->of = m;
    memcpy(own->name, t->name, name.n);
    own->n_dims = t->n_dims;
    memcpy(own->ne, t->ne, sizeof own->ne);
    choose_init(m, own);
    return true;
}

static bool find_key(void *ctx, const char *name, llm_arch_key *out) {
    const maker *m = ctx;
    for (size_t i = 0; i < m->n_lacking; i++)
        if (strcmp(m->lacking[i]->name, name) == 0) {
            *out = m->lacking[i]->key;
            out->handle = m->lacking[i];
            return true;
        }
    return m->source.find_key(m->source.ctx, name, out);
}

static bool get_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    const maker *m = ctx;
    for (size_t k = 0; k < m->n_lacking; k++)
        if (key->handle == m->lacking[k]) {
            const llm_arch_source *toy = llm_arch_toy_source(m->toy);
            return toy->get_item(toy->ctx, &m->lacking[k]->key, i, out);
        }
    return m->source.get_item(m->source.ctx, key, i, out);
}

/* Makes the toy of the model's family that has all keys. NULL: it cannot be made. */
static llm_arch_toy *make_toy(const maker *m) {
    int n = 0, k = 0;
    for (const char *name; (name = llm_arch_family(m->p.arch, n)); n++)
        k = strcmp(name, m->p.name) == 0 ? n : k;
    const int each = n > 0 ? llm_arch_toy_n_variants(m->p.arch) / n : 0;
    return each > 1 ? llm_arch_toy_new(m->p.arch, k * each + 1, NULL) : NULL;
}

/* Notes a key that the descriptor needs, for which the next build takes the toy's value. */
static void add_lacking(void *ctx, const char *name) {
    maker *m = ctx;
    llm_arch_key key;
    /* a value of 0 can mean that the key is absent: the user's is no lacking one, and the toy's is of no use */
    if (find_key(m, name, &key))
        return;
    const llm_arch_source *toy = m->toy ? llm_arch_toy_source(m->toy) : NULL;
    lacking *one = toy && toy->find_key(toy->ctx, name, &key) ? ggl_calloc(1, sizeof *one) : NULL;
    if (!one || strlen(name) >= sizeof one->name ||
        !ggl_grow(&m->lacking, &m->cap_lacking, m->n_lacking + 1, sizeof *m->lacking)) {
        ggl_free(one);
        return;
    }
    strcpy(one->name, name);
    one->key = key;
    m->lacking[m->n_lacking++] = one;
    m->is_one_more = true;
}

/* Fails with all keys that the descriptor needs and nobody gave. */
static ggl_status refuse_lacking(const maker *m, ggl_error *err) {
    char list[1024] = "", more[48] = "";
    const size_t n_own = strlen(m->p.name);
    size_t n = 0, i = 0;
    for (; i < m->n_lacking && n + sizeof m->lacking[i]->name + 2 < sizeof list; i++) {
        const char *name = m->lacking[i]->name;
        const bool own = strncmp(name, m->p.name, n_own) == 0 && name[n_own] == '.';
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "",
                              name + (own ? n_own : 0));
    }
    if (i < m->n_lacking)
        snprintf(more, sizeof more, " and %zu more", m->n_lacking - i);
    return ggl_fail(
        err, GGL_NOT_FOUND,
        "the new model lacks %s that %s needs: %s%s. Each is given as KEY=VALUE (--set), "
        "as in: --set .embedding_length=288",
        m->n_lacking == 1 ? "a key" : "keys", llm_arch_name(m->p.arch), list, more);
}

/* The key that a user gave, and that nothing reads. */
typedef struct unknown_key {
    const maker *m;
    char key[128], near[160]; /* "": none; near: as it is given */
    bool is_general;          /* it belongs to no family */
} unknown_key;

static void note_unknown(void *ctx, const llm_arch_judged *key) {
    unknown_key *u = ctx;
    const llm_train_new *p = &u->m->p;
    char given[256];
    const bool may_be_unread = key->is_foreign || key->use == LLM_ARCH_ENGINE;
    if (key->use != LLM_ARCH_UNREAD && !may_be_unread)
        return;
    for (size_t i = 0; i < p->n_keys && !u->key[0]; i++) {
        const size_t n = strcspn(p->key[i], "=");
        full_name(given, sizeof given, p, p->key[i], n);
        if (!ggl_str_is(key->key, given))
            continue;
        const char *meant = key->is_foreign ? llm_arch_meant_of_family(p->arch, p->name, given)
                            : key->use == LLM_ARCH_ENGINE ? llm_arch_meant_in_general(given)
                                                          : key->near;
        if (may_be_unread && !meant)
            continue;
        u->is_general = key->use == LLM_ARCH_ENGINE;
        snprintf(u->key, sizeof u->key, "%.*s", (int)n, p->key[i]);
        snprintf(u->near, sizeof u->near, "%s%s", meant && !u->is_general ? "." : "",
                 meant ? meant : "");
    }
}

/* Refuses keys that are given with another kind of value than the descriptor reads. What it reads, the toy has, which can be NULL. A
 * number may stand for true or false. */
static ggl_status check_kinds(const maker *m, ggl_error *err) {
    static const char *const kinds[] = {[LLM_ARCH_NUMBER] = "a number",
                                        [LLM_ARCH_BOOL] = "true or false",
                                        [LLM_ARCH_STRING] = "a text"};
    const llm_arch_source *toy = m->toy ? llm_arch_toy_source(m->toy) : NULL;
    char name[256];
    const size_t n = strlen(m->p.name);
    llm_arch_key given, read;
    for (size_t i = 0; toy && i < m->p.n_keys; i++) {
        full_name(name, sizeof name, &m->p, m->p.key[i], strcspn(m->p.key[i], "="));
        /* of what is only ignored, the kind is not known */
        const bool is_read = strncmp(name, m->p.name, n) == 0 && name[n] == '.' &&
                             llm_arch_reads_key(m->p.arch, name + n + 1);
        if (is_read && toy->find_key(toy->ctx, name, &read) &&
            m->source.find_key(m->source.ctx, name, &given) && given.type != read.type &&
            !(given.type == LLM_ARCH_NUMBER && read.type == LLM_ARCH_BOOL))
            return ggl_fail(err, GGL_USAGE, "'%s': %s reads %s here, not %s", m->p.key[i],
                            llm_arch_name(m->p.arch), kinds[read.type], kinds[given.type]);
    }
    return GGL_OK;
}

/* Refuses keys that the descriptor does not read: here, where no file that has them is to be run nevertheless. */
static ggl_status check_given(const maker *m, ggl_error *err) {
    unknown_key u = {.m = m};
    const ggl_status st = llm_arch_judge_keys(m->p.arch, &m->source, note_unknown, &u, err);
    if (st != GGL_OK || !u.key[0])
        return st == GGL_OK ? check_kinds(m, err) : st;
    ggl_nearest near = ggl_nearest_to(u.key); /* a key that is there is not suggested before */
    for (size_t i = 0; !u.near[0] && i < m->p.n_keys; i++)
        if (strncmp(m->p.key[i], u.key, strlen(u.key)) != 0)
            ggl_nearest_try(&near, m->p.key[i], strcspn(m->p.key[i], "="));
    const char *meant = u.near[0] ? u.near : near.best ? near.best : "";
    return ggl_fail(err, GGL_NOT_FOUND, "%s reads %s key %s%s%.*s%s",
                    u.is_general ? "no program" : llm_arch_name(m->p.arch),
                    u.is_general ? "the" : "no", u.key, *meant ? "; did you mean " : "",
                    (int)strcspn(meant, "="), meant,
                    u.near[0]   ? "?"
                    : near.best ? ", which is given, too?"
                                : "");
}

/* Refuses numbers that no model has. Those of a model that stays are as they are. */
static ggl_status check_ranges(const maker *m, ggl_error *err) {
    char given[256], doubt[512];
    for (size_t i = 0; i < m->p.n_keys; i++) {
        full_name(given, sizeof given, &m->p, m->p.key[i], strcspn(m->p.key[i], "="));
        const ggl_gguf_value *v = ggl_gguf_find(m->keys, given);
        if (v && llm_arch_doubts_key(v, true, doubt, sizeof doubt))
            return ggl_fail(err, GGL_USAGE, "%s", doubt);
    }
    return GGL_OK;
}

static bool key_at(void *ctx, size_t i, ggl_str *name) {
    const maker *m = ctx;
    return m->source.key_at(m->source.ctx, i, name);
}

static bool tensor_at(void *ctx, size_t i, ggl_str *name) {
    const maker *m = ctx;
    return m->base.tensor_at(m->base.ctx, i, name);
}

/* Builds the graph once. */
static ggl_status build(maker *m, const llm_arch_source *source, ggl_error *err) {
    const llm_arch_params p = {.size = sizeof p, .n_ctx = 1, .ignore = {.is_fixed = true}};
    ggl_graph *g = ggl_graph_new(NULL);
    llm_arch_result r = {0};
    const ggl_status st = g ? llm_arch_build(m->p.arch, source, &p, g, &r, err)
                            : ggl_fail(err, GGL_NOMEM, "out of memory for a model");
    m->n_layer = r.n_layer;
    llm_arch_result_fini(&r);
    ggl_graph_free(g);
    return st;
}

/* Builds the graph, to see which tensors it has, and which keys it needs. */
static ggl_status list_tensors(maker *m, ggl_error *err) {
    const llm_arch_source source = {.ctx = m,
                                    .name = "the new model",
                                    .find_key = find_key,
                                    .get_item = get_item,
                                    .find_tensor = find_tensor,
                                    .key_at = key_at,
                                    .lacks_key = add_lacking,
                                    .tensor_at = m->p.base ? tensor_at : NULL};
    m->source = llm_arch_source_gguf(m->keys);
    if (m->p.base)
        m->base = llm_arch_source_gguf(m->p.base);
    m->toy = make_toy(m);
    ggl_status st = check_given(m, err);
    if (st == GGL_OK)
        st = check_ranges(m, err);
    if (st == GGL_OK)
        do {
            m->is_one_more = false;
            st = build(m, &source, err);
        } while (m->is_one_more);
    if (m->n_lacking > 0 && st != GGL_NOMEM)
        st = refuse_lacking(m, err);
    if (st == GGL_OK && m->failed)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for the list of tensors");
    if (st == GGL_OK && m->p.base && m->n == 0)
        st = ggl_fail(err, GGL_USAGE,
                      "%s has all tensors that the descriptor asks for: nothing is to be added. "
                      "Keys, such as .block_count, may have to say that there is more",
                      ggl_gguf_name(m->p.base));
    for (size_t i = 0; i < m->p.n_with && st == GGL_OK; i++)
        if (!m->hit[i])
            st = ggl_fail(err, GGL_NOT_FOUND,
                          "'%s' fits the name of no tensor that the model may have or lack",
                          m->p.with[i]);
    for (size_t i = 0; i < m->p.n_init && st == GGL_OK; i++)
        if (!m->hit[m->p.n_with + i])
            st = ggl_fail(err, GGL_NOT_FOUND, "'%s' fits the name of no tensor of the model",
                          m->p.init[i]);
    return st;
}

/* --- weights ---------------------------------------------------------------------------------- */

double llm_train_normal(uint64_t rng[4]) {
    const double pi = 3.14159265358979323846, u = 1 - llm_rng_uniform(rng),
                 v = llm_rng_uniform(rng);
    return sqrt(-2 * ggl_log(u)) * ggl_cos(2 * pi * v);
}

void llm_train_normal_seed(uint64_t rng[4], uint64_t seed, ggl_str name) {
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < name.n; i++)
        h = (h ^ (unsigned char)name.s[i]) * UINT64_C(0x100000001b3);
    llm_rng_seed(rng, seed ^ h);
}

static ggl_status fill(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    const fresh *t = ctx;
    const double n_layer = (double)t->of->n_layer,
                 sigma = t->ends_layer && n_layer > 0 ? t->sigma / sqrt(2 * n_layer) : t->sigma;
    uint64_t rng[4];
    float piece[PIECE];
    ggl_status st = GGL_OK;
    llm_train_normal_seed(rng, t->of->p.seed, (ggl_str){t->name, strlen(t->name)});
    for (int64_t left = ggl_extents(t->ne, 0, GGL_MAX_DIMS, 1), n; left > 0 && st == GGL_OK;
         left -= n) {
        n = left < PIECE ? left : PIECE;
        for (int64_t i = 0; i < n; i++)
            piece[i] = (float)(t->mean + (sigma > 0 ? sigma * llm_train_normal(rng) : 0));
        st = ggl_gguf_sink_write(to, piece, (size_t)n * sizeof *piece, err);
    }
    return st;
}

static ggl_status write_model(const maker *m, const char *path, ggl_error *err) {
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    if (!w)
        return ggl_fail(err, GGL_NOMEM, "out of memory for %s", path);
    for (size_t i = 0; i < ggl_gguf_n_values(m->keys); i++)
        ggl_gguf_put_value(w, ggl_gguf_value_at(m->keys, i));
    for (size_t i = 0; m->p.base && i < ggl_gguf_n_tensors(m->p.base); i++) {
        const ggl_gguf_tensor *t = ggl_gguf_tensor_at(m->p.base, i);
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.s);
        ggl_gguf_put_tensor(w, name, t->type, t->n_dims, t->ne, t->data);
    }
    for (size_t i = 0; i < m->n; i++)
        ggl_gguf_put_tensor_later(w, m->tensor[i]->name, GGL_F32, m->tensor[i]->n_dims,
                                  m->tensor[i]->ne, fill, m->tensor[i]);
    const ggl_status st = ggl_gguf_writer_write(w, path, err);
    ggl_gguf_writer_free(w);
    return st;
}

ggl_status llm_train_new_model(const llm_train_new *params, const char *path, ggl_error *err) {
    maker m = {.p = {.size = sizeof m.p}};
    size_t n;
    double mean, sigma;
    ggl_status st = GGL_READ_PARAMS(llm_train_new, &m.p, params, err);
    if (st != GGL_OK)
        return st;
    m.sigma = m.p.sigma != 0 ? m.p.sigma : 0.02;
    for (size_t i = 0; i < m.p.n_init; i++)
        if (!read_init(m.p.init[i], &n, &mean, &sigma))
            return ggl_fail(err, GGL_USAGE, "'%s' is no PATTERN=MEAN or PATTERN=MEAN,SIGMA",
                            m.p.init[i]);
    if (!(m.sigma >= 0 && isfinite(m.sigma)))
        return ggl_fail(err, GGL_USAGE, "sigma is %g; it must be 0 or more", m.sigma);
    m.hit = ggl_calloc(m.p.n_with + m.p.n_init + 1, sizeof *m.hit);
    st = m.hit ? make_keys(&m, err) : ggl_fail(err, GGL_NOMEM, "out of memory for a model");
    if (st == GGL_OK)
        st = list_tensors(&m, err);
    if (st == GGL_OK)
        st = write_model(&m, path, err);
    for (size_t i = 0; i < m.n; i++)
        ggl_free(m.tensor[i]);
    ggl_free(m.tensor);
    for (size_t i = 0; i < m.n_lacking; i++)
        ggl_free(m.lacking[i]);
    ggl_free(m.lacking);
    llm_arch_toy_free(m.toy);
    ggl_free(m.hit);
    ggl_gguf_close(m.keys);
    return st;
}
