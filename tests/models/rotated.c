/* Weights that are stored rotated, by prism.hadamard.*: made-up models of the built-in descriptors compute the same with them as
 * before, in double precision and on the processor; what is not known of the keys is refused. */
#include <math.h>

#include "ggl/internal/graph.h"
#include "known_source.h"
#include "llm/internal/adapter.h"
#include "sample.h"
#include "test.h"
#include "toy_adapter.h"
#include "toy_run.h"

#define KEYS "prism.hadamard."
enum { BLOCK = 4, MOST = 800, N_LISTS = 4, N_TOKENS = 6, MOST_VALUES = 1 << 16 };

/* --- a source with the keys ------------------------------------------------------------------------- */

/* A key below KEYS: one value, or a list. */
typedef struct rotated_key {
    const char *name;
    llm_arch_type type;
    bool is_list, is_absent;
    uint64_t n;
    double number;
    bool flag;
    const char *string;
    const double *numbers;
    char (*strings)[80];
} rotated_key;

typedef struct rotated {
    const llm_arch_source *base;
    llm_arch_source source;
    rotated_key key[16];
    int n_keys;
    char name[MOST][80], table[1][80];
    int n_names;
    int64_t width[64];
    double widths[64], signs[MOST_VALUES];
    int n_widths;
    bool tied, grouped, has_table, has_tokens;
    int64_t heads, groups;
} rotated;

static rotated_key *key_of(rotated *r, const char *name) {
    for (int i = 0; i < r->n_keys; i++)
        if (strcmp(r->key[i].name, name) == 0)
            return &r->key[i];
    return NULL;
}

static bool r_find_key(void *ctx, const char *name, llm_arch_key *out) {
    rotated *r = ctx;
    const size_t n = strlen(KEYS);
    if (strncmp(name, KEYS, n) != 0)
        return r->base->find_key(r->base->ctx, name, out);
    const rotated_key *k = key_of(r, name + n);
    if (!k || k->is_absent)
        return false;
    *out = (llm_arch_key){k->type, k->is_list, k->is_list ? k->n : 1, k};
    return true;
}

static bool r_get_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    rotated *r = ctx;
    for (int j = 0; j < r->n_keys; j++)
        if (key->handle == &r->key[j]) {
            const rotated_key *k = &r->key[j];
            const char *s = k->is_list && k->strings ? k->strings[i] : k->string;
            *out = (llm_arch_item){k->is_list && k->numbers ? k->numbers[i] : k->number,
                                   k->flag,
                                   {s, s ? strlen(s) : 0}};
            return true;
        }
    return r->base->get_item(r->base->ctx, key, i, out);
}

static bool r_find_tensor(void *ctx, llm_arch_tensor *t) {
    rotated *r = ctx;
    for (int i = 0; i < r->n_names; i++) /* the toy has every tensor that is asked for */
        if (strcmp(t->name, r->name[i]) == 0)
            return r->base->find_tensor(r->base->ctx, t);
    if (strcmp(t->name, "output.weight") == 0 && r->tied)
        return false;
    return strstr(t->name, "nowhere") ? false : r->base->find_tensor(r->base->ctx, t);
}

/* --- which weights are rotated ---------------------------------------------------------------------- */

static bool is_named(const rotated *r, const char *name) {
    for (int i = 0; i < r->n_names; i++)
        if (strcmp(r->name[i], name) == 0)
            return true;
    return false;
}

static const ggl_tensor *weight_under(const ggl_tensor *t) {
    while (t && (t->op == GGL_OP_SPLIT || t->op == GGL_OP_RESHAPE ||
                 (t->op == GGL_OP_PICK && t->gather)))
        t = t->ne[0] == t->src[0]->ne[0] ? t->src[0] : NULL;
    return t && t->op == GGL_OP_WEIGHT ? t : NULL;
}

static bool is_cut(const ggl_tensor *t) {
    return t->op == GGL_OP_SPLIT || t->op == GGL_OP_RESHAPE || (t->op == GGL_OP_PICK && t->gather);
}

/* How a weight is used: in products, in lookups, in other ways. */
typedef struct uses {
    int products, lookups, others;
} uses;

static uses uses_of(const ggl_graph *g, const ggl_tensor *w) {
    uses u = {0};
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *t = ggl_graph_node(g, i);
        for (int k = 0; k < t->n_src; k++) {
            const ggl_tensor *s = t->src[k];
            const ggl_tensor *from = s;
            while (from && is_cut(from))
                from = from->src[0];
            if (from != w)
                continue;
            const bool whole = weight_under(s) == w;
            if (is_cut(t) && k == 0)
                u.others += t->ne[0] != t->src[0]->ne[0];
            else if (t->op == GGL_OP_LINEAR && k == 1 && whole)
                u.products++;
            else if (t->op == GGL_OP_PICK && k == 0)
                u.lookups++;
            else
                u.others++;
        }
    }
    return u;
}

static double key_number(const llm_arch_source *s, const char *name) {
    char full[160];
    llm_arch_key k;
    llm_arch_item item = {0};
    if (!s->find_key(s->ctx, "general.architecture", &k) || !s->get_item(s->ctx, &k, 0, &item))
        return 0;
    snprintf(full, sizeof full, "%.*s.%s", (int)item.string.n, item.string.s, name);
    return s->find_key(s->ctx, full, &k) && !k.is_list && s->get_item(s->ctx, &k, 0, &item)
               ? item.number
               : 0;
}

static void add_width(rotated *r, int64_t n, int *used) {
    for (int i = 0; i < r->n_widths; i++)
        if (r->width[i] == n)
            return;
    REQUIRE(r->n_widths < 64 && *used + n <= MOST_VALUES);
    r->width[r->n_widths] = n;
    r->widths[r->n_widths++] = (double)n;
    for (int64_t i = 0; i < n; i++)
        r->signs[(*used)++] = ((uint64_t)(i + 3 * n) * 2654435761u >> 9) & 1 ? -1 : 1;
}

static void choose_weights(rotated *r, const ggl_graph *g) {
    int used = 0;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
        const ggl_tensor *w = ggl_graph_node(g, i);
        if (w->op != GGL_OP_WEIGHT || w->n_dims < 2 || w->ne[0] % BLOCK != 0 || w->type != GGL_F32)
            continue;
        const uses u = uses_of(g, w);
        const bool is_table = strcmp(w->name, "token_embd.weight") == 0;
        r->has_tokens |= is_table;
        if (u.others > 0 || (!is_table && u.lookups > 0) || u.products + u.lookups == 0)
            continue;
        if (is_table) {
            r->has_table = u.lookups > 0;
            r->tied = r->has_table && u.products > 0;
            if (!r->has_table)
                continue;
            strcpy(r->table[0], w->name);
        } else if (!is_named(r, w->name)) {
            REQUIRE(r->n_names < MOST);
            snprintf(r->name[r->n_names++], sizeof r->name[0], "%s", w->name);
        }
        add_width(r, w->ne[0], &used);
    }
}

static void put(rotated *r, rotated_key k) {
    REQUIRE(r->n_keys < 16);
    r->key[r->n_keys++] = k;
}

static uint64_t n_signs(const rotated *r) {
    uint64_t n = 0;
    for (int i = 0; i < r->n_widths; i++)
        n += (uint64_t)r->width[i];
    return n;
}

/* Rotates all weights of the model of that graph that can be. */
static void rotated_init(rotated *r, const llm_arch_source *base, const ggl_graph *g, bool signs) {
    memset(r, 0, sizeof *r);
    r->base = base;
    r->source = (llm_arch_source){.ctx = r,
                                  .name = "rotated",
                                  .find_key = r_find_key,
                                  .get_item = r_get_item,
                                  .find_tensor = r_find_tensor};
    choose_weights(r, g);
    r->heads = (int64_t)key_number(base, "ssm.time_step_rank");
    r->groups = (int64_t)key_number(base, "ssm.group_count");
    for (int i = 0; i < r->n_names; i++)
        r->grouped |= strstr(r->name[i], ".ssm_out.") && r->groups > 0 && r->heads > r->groups &&
                      r->heads % r->groups == 0;
    put(r, (rotated_key){"version", LLM_ARCH_NUMBER, .number = r->tied ? 2 : 1});
    put(r, (rotated_key){"block_size", LLM_ARCH_NUMBER, .number = BLOCK});
    put(r, (rotated_key){"transform", LLM_ARCH_STRING,
                         .string = "normalized-sylvester-walsh-hadamard"});
    put(r, (rotated_key){"axis", LLM_ARCH_STRING, .string = "input-last-dimension"});
    put(r, (rotated_key){"sign_mode", LLM_ARCH_STRING, .string = signs ? "explicit" : "identity"});
    put(r, (rotated_key){"sign_widths", LLM_ARCH_NUMBER, true, !signs, (uint64_t)r->n_widths,
                         .numbers = r->widths});
    put(r, (rotated_key){"sign_values", LLM_ARCH_NUMBER, true, !signs, n_signs(r),
                         .numbers = r->signs});
    put(r, (rotated_key){"weight_names", LLM_ARCH_STRING, true, false, (uint64_t)r->n_names,
                         .strings = r->name});
    put(r, (rotated_key){"inverse_weight_names", LLM_ARCH_STRING, true, !r->has_table, 1,
                         .strings = r->table});
    put(r, (rotated_key){"tied_output", LLM_ARCH_BOOL, .is_absent = !r->tied, .flag = true});
    put(r, (rotated_key){"gdn_v_grouped", LLM_ARCH_BOOL, .is_absent = !r->grouped, .flag = true});
    if (!signs)
        r->n_widths = 0;
}

/* --- the stored weights, by the text of the format, not of the library -------------------------------- */

static void rotate_row(const rotated *r, float *x, int64_t n) {
    static double y[MOST_VALUES];
    int64_t first = 0;
    for (int i = 0; i < r->n_widths && r->width[i] != n; i++)
        first += r->width[i];
    for (int64_t i = 0; i < n; i++) {
        y[i] = 0;
        for (int64_t k = i / BLOCK * BLOCK; k < i / BLOCK * BLOCK + BLOCK; k++) {
            const double s = r->n_widths ? r->signs[first + k] : 1;
            y[i] += (__builtin_parityll((unsigned long long)((i & k) % BLOCK)) ? -1 : 1) * s *
                    (double)x[k] / sqrt(BLOCK);
        }
    }
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)y[i];
}

static void order_row(const rotated *r, float *x, int64_t n) {
    static float y[MOST_VALUES];
    const int64_t d = n / r->heads, g = r->groups, m = r->heads / g;
    for (int64_t k = 0; k < g; k++)
        for (int64_t j = 0; j < m; j++)
            memcpy(y + d * (j + m * k), x + d * (k + g * j), (size_t)d * sizeof *y);
    memcpy(x, y, (size_t)n * sizeof *x);
}

static void store_rotated(void *ctx, const ggl_tensor *w, float *data) {
    const rotated *r = ctx;
    const bool is_table = r->has_table && strcmp(w->name, "token_embd.weight") == 0;
    if (!is_table && !is_named(r, w->name))
        return;
    const int64_t n = w->ne[0], rows = ggl_count(w) / n;
    for (int64_t i = 0; i < rows; i++) {
        if (r->grouped && strstr(w->name, ".ssm_out."))
            order_row(r, data + i * n, n);
        rotate_row(r, data + i * n, n);
    }
}

/* --- comparing ------------------------------------------------------------------------------------------ */

/* The logits of the first tokens; NULL: reported. */
static float *logits(toy_model *m, const llm_arch_source *source, rotated *stored,
                     const char *backend, int64_t *n, ggl_error *err) {
    ggl_backend *b = NULL, *fold = NULL;
    toy_run run;
    float *x = NULL;
    m->source = source;
    m->change = stored ? store_rotated : NULL;
    m->change_ctx = stored;
    if (ggl_backend_open(&b, backend, NULL, err) == GGL_OK &&
        ggl_backend_open(&fold, "reference", NULL, err) == GGL_OK &&
        toy_start(&run, m, &b, 1, fold, -1, GGL_F32, err)) {
        *n = N_TOKENS * run.n_vocab;
        x = malloc((size_t)*n * sizeof *x);
        if (x && !toy_prompt(&run, 0, N_TOKENS, N_TOKENS, x, err)) {
            free(x);
            x = NULL;
        }
        toy_stop(&run);
    }
    ggl_backend_close(b);
    ggl_backend_close(fold);
    m->source = NULL;
    m->change = NULL;
    return x;
}

/* The largest difference as a share of the largest logit. */
static double distance(const float *a, const float *b, int64_t n) {
    double worst = 0, size = 1e-30;
    for (int64_t i = 0; i < n; i++) {
        if (a[i] < -1e37f && b[i] < -1e37f)
            continue;
        const double d = fabs((double)a[i] - (double)b[i]);
        worst = d > worst || isnan(d) ? d : worst;
        size = fmax(size, fabs((double)a[i]));
    }
    return worst / size;
}

typedef struct tally {
    int models, weights, tied, grouped;
} tally;

static void compare(toy_model *m, const char *name, const char *backend, bool signs, tally *t) {
    static rotated r;
    ggl_error err = {0};
    ggl_graph *g = NULL;
    int64_t n = 0, n_other = 0;
    const llm_arch_source *base = llm_arch_toy_source(m->toy);
    if (!CHECK_OK(build(m->arch, base, &g, &err), &err))
        return;
    rotated_init(&r, base, g, signs);
    ggl_graph_free(g);
    if (r.n_names == 0 || !r.has_tokens) /* eyes and ears */
        return;
    float *want = logits(m, NULL, NULL, backend, &n, &err);
    float *got = want ? logits(m, &r.source, &r, backend, &n_other, &err) : NULL;
    float *wrong = got ? logits(m, NULL, &r, backend, &n_other, &err) : NULL;
    if (CHECK_MSG(wrong && n == n_other, "%s: %s", name, err.msg)) {
        const double d = distance(want, got, n), other = distance(want, wrong, n);
        CHECK_MSG(d <= 1e-3, "%s (%s): %d rotated weights: %g from the plain model", name,
                  llm_arch_toy_text(m->toy), r.n_names, d);
        CHECK_MSG(other > 10 * d && other > 1e-3, "%s: %g without the keys", name, other);
        t->models++;
        t->weights += r.n_names;
        t->tied += r.tied;
        t->grouped += r.grouped;
    }
    free(want);
    free(got);
    free(wrong);
}

static void try_descriptor(const char *name, const char *text, size_t n, int variant,
                           const char *backend, bool signs, tally *t) {
    toy_model m;
    ggl_error err = {0};
    if (!toy_open(&m, name, text, n, variant, &err))
        return;
    if (toy_settle(&m, N_TOKENS, &err)) {
        llm_arch_toy_freeze(m.toy);
        compare(&m, name, backend, signs, t);
    }
    toy_close(&m);
}

static bool is_one_of(const char *name, const char *const *list) {
    for (; *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

TEST(same_as_before) {
    static const char *const few[] = {"llama.arch", "qwen35.arch", "qwen3.arch", "gemma3.arch",
                                      NULL};
    const char *name, *text;
    size_t n;
    tally t = {0};
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++)
        for (int variant = 0; is_one_of(name, few) && variant < 2; variant++) {
            try_descriptor(name, text, n, variant, "reference", true, &t);
            try_descriptor(name, text, n, variant, "cpu", variant == 0, &t);
        }
    CHECK_MSG(t.models >= 12 && t.weights > 60 && t.tied > 0 && t.grouped > 0,
              "%d models, %d weights, %d tied, %d in groups", t.models, t.weights, t.tied,
              t.grouped);
}

LONG_TEST(same_as_before_on_every_descriptor) {
    const char *name, *text;
    size_t n;
    tally t = {0};
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++)
        try_descriptor(name, text, n, k % 2, "reference", true, &t);
    printf("%d models, %d weights, %d tied, %d in groups\n", t.models, t.weights, t.tied,
           t.grouped);
    CHECK(t.models > 60);
}

/* An adapter changes the weights as they are meant, not as they are stored: for all of them, and the table. */
TEST(adapters) {
    static const char *const few[] = {"llama.arch", "gemma.arch", "qwen35.arch", NULL};
    static rotated r;
    const char *name, *text;
    size_t n;
    tally t = {0};
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++) {
        toy_model m;
        ggl_error err = {0};
        ggl_graph *g;
        toy_adapter x = {.alpha = 3};
        char family[64];
        if (!is_one_of(name, few) || !CHECK(toy_open(&m, name, text, n, 0, &err)))
            continue;
        REQUIRE(toy_settle(&m, N_TOKENS, &err));
        llm_arch_toy_freeze(m.toy);
        REQUIRE_OK(build(m.arch, llm_arch_toy_source(m.toy), &g, &err), &err);
        rotated_init(&r, llm_arch_toy_source(m.toy), g, true);
        for (int i = 0; i < ggl_graph_n_nodes(g); i++) {
            const ggl_tensor *w = ggl_graph_node(g, i);
            if (w->op == GGL_OP_WEIGHT && w->n_dims <= 3 &&
                (is_named(&r, w->name) || strcmp(w->name, "token_embd.weight") == 0))
                toy_adapter_add(&x, w->name, w->n_dims, w->ne, 7, false);
        }
        ggl_graph_free(g);
        snprintf(family, sizeof family, "%.*s", (int)(strlen(name) - 5), name);
        if (CHECK_MSG(toy_adapter_open(&x, family, &err), "%s", err.msg)) {
            const llm_adapter_use use = {.adapter = x.adapter, .scale = 0.1};
            m.adapter = &use;
            m.n_adapters = 1;
            compare(&m, name, "reference", true, &t);
        }
        toy_adapter_free(&x);
        toy_close(&m);
    }
    CHECK_INT(t.models, 3);
}

/* --- a table of another model ------------------------------------------------------------------------ */

static bool lacks_table(void *ctx, llm_arch_tensor *t) {
    const llm_arch_source *base = ctx;
    return strcmp(t->name, "token_embd.weight") != 0 && base->find_tensor(base->ctx, t);
}
static bool base_key(void *ctx, const char *name, llm_arch_key *out) {
    const llm_arch_source *base = ctx;
    return base->find_key(base->ctx, name, out);
}
static bool base_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    const llm_arch_source *base = ctx;
    return base->get_item(base->ctx, key, i, out);
}

static int n_turned(const ggl_graph *g) {
    int n = 0;
    for (int i = 0; i < ggl_graph_n_nodes(g); i++)
        n += ggl_graph_node(g, i)->call && strcmp(ggl_graph_node(g, i)->call, "hadamard") == 0;
    return n;
}

/* Opens a made-up gemma, and builds its graph. False: err. */
static bool gemma_open(toy_model *m, int variant, ggl_graph **g, ggl_error *err) {
    const char *name, *text;
    size_t n;
    int k = 0;
    while (llm_arch_builtin(k, &name, &text, &n) && strcmp(name, "gemma.arch") != 0)
        k++;
    return toy_open(m, name, text, n, variant, err) &&
           build(m->arch, llm_arch_toy_source(m->toy), g, err) == GGL_OK;
}

/* A model that guesses has no keys of its own for the table that the other model lends it. */
TEST(lent_table) {
    static rotated r;
    toy_model m;
    ggl_error err = {0};
    ggl_graph *g;
    REQUIRE(gemma_open(&m, 0, &g, &err));
    const llm_arch_source *base = llm_arch_toy_source(m.toy);
    rotated_init(&r, base, g, true);
    CHECK_INT(n_turned(g), 0);
    ggl_graph_free(g);
    llm_arch_two two = {.own = {.ctx = (void *)base,
                                .name = "own",
                                .find_key = base_key,
                                .get_item = base_item,
                                .find_tensor = lacks_table},
                        .other = r.source};
    llm_arch_source both = llm_arch_source_two(&two);
    both.key_at = NULL; /* keys and tensors that nothing reads are not looked for */
    both.tensor_at = NULL;
    both.is_changed = NULL;
    REQUIRE_OK(build(m.arch, &both, &g, &err), &err);
    CHECK_INT(n_turned(g), 2); /* a lookup, and the output, which is tied */
    ggl_graph_free(g);
    toy_close(&m);
}

/* --- what is not known ---------------------------------------------------------------------------------- */

/* Changes one key of a rotated model; the error holds `words`. NULL: it is built. */
typedef struct mistake {
    const char *key;
    rotated_key v; /* name: NULL leaves the key out */
    const char *words;
} mistake;

static const double odd_widths[] = {6}, short_widths[] = {4}, odd_sign[] = {1, 1, 0.5, 1};
static char no_tensor[][80] = {"blk.0.nowhere.weight"}, other_table[][80] = {"output.weight"},
            norm[][80] = {"output_norm.weight"};

#define NUMBER(x)                                                                                  \
    { "", LLM_ARCH_NUMBER, .number = (x) }
#define STRING(x)                                                                                  \
    { "", LLM_ARCH_STRING, .string = (x) }
#define FLAG(x)                                                                                    \
    { "", LLM_ARCH_BOOL, .flag = (x) }
#define NUMBERS(x)                                                                                 \
    { "", LLM_ARCH_NUMBER, true, false, sizeof(x) / sizeof *(x), .numbers = (x) }
#define STRINGS(x)                                                                                 \
    { "", LLM_ARCH_STRING, true, false, sizeof(x) / sizeof *(x), .strings = (x) }
#define EMPTY(type_)                                                                               \
    { .name = "", .type = LLM_ARCH_##type_, .is_list = true }
static const mistake mistakes[] = {
    {"version", NUMBER(3), "prism.hadamard.version is 3, but only 1 and 2 are known"},
    {"version", STRING("1"), "prism.hadamard.version is not a number"},
    {"version", {0}, "prism.hadamard.version is missing"},
    {"block_size", NUMBER(3), "prism.hadamard.block_size is 3, but a power of two"},
    {"block_size", NUMBER(0), "block_size is 0"},
    {"block_size", NUMBER(NAN), "block_size is nan"},
    {"block_size", NUMBER(1 << 20), "block_size is 1.04858e+06"},
    {"block_size", NUMBER(64), "sign_widths[0] is"},
    {"block_size", {0}, "prism.hadamard.block_size is missing"},
    {"transform", STRING("dct"),
     "prism.hadamard.transform is 'dct', but only 'normalized-sylvester"},
    {"transform", {0}, "prism.hadamard.transform is missing"},
    {"axis", STRING("output"), "prism.hadamard.axis is 'output', but only 'input-last-dimension'"},
    {"sign_mode", STRING("seeded"), "'seeded', but only 'identity' and 'explicit' are known"},
    {"sign_mode", NUMBER(1), "prism.hadamard.sign_mode is not a string"},
    {"sign_widths", NUMBERS(odd_widths), "sign_widths[0] is 6, but a multiple of the block size 4"},
    {"sign_widths", NUMBERS(short_widths), "signs, but the widths are 4 together"},
    {"sign_widths", EMPTY(NUMBER), "sign_widths has 0 widths"},
    {"sign_widths", {0}, "prism.hadamard.sign_widths is missing"},
    {"sign_values", {0}, "prism.hadamard.sign_values is missing"},
    {"sign_values", NUMBERS(odd_sign), "sign_widths[0] is"},
    {"weight_names", EMPTY(STRING), "prism.hadamard.weight_names is empty"},
    {"weight_names", {0}, "prism.hadamard.weight_names is missing"},
    {"weight_names", STRING("x"), "prism.hadamard.weight_names is not a list of strings"},
    {"weight_names", STRINGS(no_tensor), "'blk.0.nowhere.weight', but the file has no such tensor"},
    {"weight_names", STRINGS(norm), "output_norm.weight is stored rotated (prism.hadamard.*)"},
    {"inverse_weight_names", STRINGS(other_table),
     "has 'output.weight', but only lookups in token_embd.weight"},
    {"inverse_weight_names", {0}, "inverse_weight_names does not have token_embd.weight"},
    {"tied_output", FLAG(false), "version 2 has tied_output true"},
    {"tied_output", NUMBER(1), "prism.hadamard.tied_output is not true or false"},
    {"gdn_v_grouped", NUMBER(1), "prism.hadamard.gdn_v_grouped is not true or false"},
    {"gdn_v_grouped", FLAG(true), NULL},
};

TEST(unknown_values_are_refused) {
    static rotated r;
    toy_model m;
    ggl_error err = {0};
    ggl_graph *g;
    REQUIRE(gemma_open(&m, 1, &g, &err));
    const llm_arch_source *base = llm_arch_toy_source(m.toy);
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const mistake *x = &mistakes[i];
        ggl_graph *other = NULL;
        rotated_init(&r, base, g, true);
        REQUIRE(r.tied);
        rotated_key *v = key_of(&r, x->key);
        const char *own = v->name;
        if (x->v.name)
            *v = x->v;
        v->is_absent = !x->v.name;
        v->name = own;
        err = (ggl_error){0};
        const ggl_status s = build(m.arch, &r.source, &other, &err);
        if (x->words)
            CHECK_MSG(s != GGL_OK && strstr(err.msg, x->words), "%s: %s, expected is %s", x->key,
                      err.msg, x->words);
        else
            CHECK_OK(s, &err);
        ggl_graph_free(other);
    }
    ggl_graph_free(g);
    toy_close(&m);
}
