/* Made-up models: a value for each key that the descriptor names, random weights of the shapes it declares.
 *
 * Values differ where they may, so that a mistaken dimension shows. What a key is for is guessed from its name (a table
 * below) and from the text: a default or comparison tells strings and truth values from numbers and which other values
 * there are to try; `require key == value` tells what a value has to be (the build says so and starts again).
 *
 * Variants: all optional keys and tensors absent; all present; each of them turned the other way in both of these; each
 * other value that a key is compared with; all this for each family of the header. Keys that only make sense together
 * (expert_count, expert_used_count, ..: one first word) are turned together. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arch_impl.h"

#define TOY_LAYERS 6 /* enough for every pattern of layers seen: each 2nd, 3rd, 4th, 6th */
#define MAX_REPAIRS 16

/* The end of a key's name (after a '.' or '_', or all of it) and its value. The first fit holds. */
static const struct {
    const char *end;
    double value;
} usual[] = {
    {"block_count", TOY_LAYERS},
    {"leading_dense_block_count", 1},
    {"nextn_predict_layers", 1},
    {"context_length", 112},
    {"vocab_size", 52},
    {"embedding_length", 80},
    {"expert_feed_forward_length", 40},
    {"expert_shared_feed_forward_length", 56},
    {"feed_forward_length", 96},
    {"attention.head_count", 4},
    {"attention.head_count_kv", 2},
    {"attention.key_length", 24},
    {"attention.value_length", 16},
    {"attention.q_lora_rank", 28},
    {"attention.kv_lora_rank", 20},
    {"attention.sliding_window", 7},
    {"rope.dimension_count", 8},
    {"rope.freq_base", 5000},
    {"rope.scaling.factor", 4},
    {"rope.scale_linear", 2},
    {"rope.scaling.original_context_length", 16},
    {"rope.scaling.attn_factor", 1.25},
    {"yarn_beta_fast", 32},
    {"yarn_beta_slow", 1},
    {"expert_count", 6},
    {"expert_used_count", 2},
    {"expert_shared_count", 1},
    {"expert_group_count", 3},
    {"expert_group_used_count", 2},
    {"full_attention_interval", 3},
    {"ssm.conv_kernel", 4},
    {"ssm.state_size", 12},
    {"ssm.group_count", 2},
    {"ssm.time_step_rank", 4},
    {"ssm.inner_size", 48},
    {"l_cache", 3},
    {"epsilon", 0.01},
    {"softcapping", 20},
    {"scale", 0.75},
    {"base", 5000},
    {"factor", 1.5},
    {"length", 48},
    {"window", 7},
    {"rank", 12},
    {"size", 12},
    {"interval", 3},
    {"count", 4},
};

typedef enum item_state { ABSENT, PRESENT } item_state;

typedef struct toy_value {
    llm_arch_type type;
    double number;
    bool flag;
    const char *string;
} toy_value;

typedef struct toy_key {
    const char *name; /* as in the descriptor */
    bool whole, optional, indexed;
    toy_value value;
    toy_value other[8]; /* what else it is compared with */
    int n_other;
} toy_key;

typedef struct toy_tensor { /* an optional one, without "blk.N." */
    const char *name;
} toy_tensor;

/* What the text says of keys and tensors; the same for all variants. */
typedef struct survey {
    const llm_arch *arch;
    ggl_arena *arena;
    toy_key *key;
    toy_tensor *tensor;
    int n_key, n_tensor;
    size_t cap_key, cap_tensor;
    const char **group; /* of optional items: what is turned together */
    int n_group;
    size_t cap_group;
    int n_alternatives; /* of all keys together */
    bool failed;
} survey;

typedef struct fact { /* a key as this toy has it */
    const char *name; /* in full */
    bool present, indexed;
    toy_value value, second; /* second: of every other element, if indexed */
    bool has_second;
} fact;

typedef struct made_tensor {
    const char *name;
    float *data;
    int n_dims;
    int64_t ne[GGL_MAX_DIMS];
} made_tensor;

struct llm_arch_toy {
    const llm_arch *arch;
    ggl_arena arena;
    llm_arch_source source;
    char text[160];
    survey s;
    const char *family;
    fact *fact;
    int n_fact;
    bool base_present, frozen, repaired;
    const char *turned; /* group that differs from base_present; NULL: none */
    made_tensor *made;
    size_t n_made, cap_made;
    size_t *slot; /* hash of names -> index + 1 into made */
    size_t n_slots;
    uint64_t seed;
};

/* --- the survey ----------------------------------------------------------------------------------------------------- */

static void out_of_memory(survey *s) {
    s->failed = true;
}

static toy_key *find_key(survey *s, const char *name, bool whole) {
    for (int k = 0; k < s->n_key; k++)
        if (s->key[k].whole == whole && strcmp(s->key[k].name, name) == 0)
            return &s->key[k];
    return NULL;
}

/* Whether `name` is `end`, or ends in it after '.' or '_'. */
static bool ends_in(const char *name, const char *end) {
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0 && (n == m || name[n - m - 1] == '.' || name[n - m - 1] == '_');
}

static double usual_value(const char *name) {
    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
        if (ends_in(name, usual[k].end))
            return usual[k].value;
    return 2;
}

/* Keys "expert_.." go together, dotted ones each on its own. */
static const char *group_of_key(survey *s, const char *name) {
    size_t n = strcspn(name, "_.");
    if (name[n] != '_' || strchr(name, '.'))
        n = strlen(name);
    const char *out = ggl_arena_printf(s->arena, ".%.*s", (int)n, name);
    if (!out)
        out_of_memory(s);
    return out;
}

static void add_group(survey *s, const char *name) {
    for (int k = 0; k < s->n_group; k++)
        if (name && strcmp(s->group[k], name) == 0)
            return;
    if (!name || !ggl_grow(&s->group, &s->cap_group, (size_t)s->n_group + 1, sizeof *s->group))
        out_of_memory(s);
    else
        s->group[s->n_group++] = name;
}

/* The key a value was read from: the expression is one, or a name that was given one. */
static toy_key *key_behind(survey *s, const arch_expr *e, int depth) {
    if (!e || depth > 8)
        return NULL;
    if (e->kind == EX_KEY)
        return find_key(s, e->name, e->whole);
    if (e->kind == EX_INDEX || e->kind == EX_OR_ELSE)
        return key_behind(s, e->a, depth + 1);
    return NULL;
}

typedef struct binding { /* where a name gets a value that is a key's */
    survey *s;
    const char *name;
    toy_key *key;
    const arch_expr *value;
} binding;

static void find_binding(binding *b, const arch_stmt *st) {
    for (; st && !b->key; st = st->next) {
        if (st->kind == ST_ASSIGN && st->n_target == 1 && strcmp(st->target[0].name, b->name) == 0) {
            b->key = key_behind(b->s, st->expr[0], 0);
            b->value = st->expr[0];
        }
        for (int k = 0; k < st->n_arm; k++)
            find_binding(b, st->arm[k].body);
    }
}

static toy_key *key_of(survey *s, const arch_expr *e) {
    toy_key *k = key_behind(s, e, 0);
    if (k || e->kind != EX_NAME)
        return k;
    binding b = {s, e->name, NULL, NULL};
    find_binding(&b, s->arch->body);
    for (const arch_fn *f = s->arch->fn; f && !b.key; f = f->next)
        find_binding(&b, f->used ? f->body : NULL);
    for (const arch_fn *f = s->arch->prelude_fn; f && !b.key; f = f->next)
        find_binding(&b, f->used ? f->body : NULL);
    return b.key;
}

static bool literal(const arch_expr *e, toy_value *v) {
    *v = (toy_value){.type = LLM_ARCH_NUMBER, .number = e->num, .flag = e->num != 0, .string = e->name};
    if (e->kind == EX_STRING)
        v->type = LLM_ARCH_STRING;
    if (e->kind == EX_BOOL)
        v->type = LLM_ARCH_BOOL;
    return e->kind == EX_STRING || e->kind == EX_BOOL || e->kind == EX_NUMBER;
}

static bool same_value(const toy_value *a, const toy_value *b) {
    if (a->type != b->type)
        return false;
    return a->type == LLM_ARCH_NUMBER ? a->number == b->number
           : a->type == LLM_ARCH_BOOL ? a->flag == b->flag : strcmp(a->string, b->string) == 0;
}

/* Another value the key may have; the first string or truth value tells its type. */
static void add_other(toy_key *k, toy_value v) {
    if (!k)
        return;
    if (v.type != LLM_ARCH_NUMBER && k->value.type == LLM_ARCH_NUMBER) {
        k->value = v;
        k->n_other = 0;
    }
    bool known = v.type != k->value.type || same_value(&k->value, &v);
    for (int i = 0; i < k->n_other; i++)
        known |= same_value(&k->other[i], &v);
    if (!known && k->n_other < (int)(sizeof k->other / sizeof *k->other))
        k->other[k->n_other++] = v;
}

static void add_truth(toy_key *k) {
    add_other(k, (toy_value){.type = LLM_ARCH_BOOL, .flag = true});
    add_other(k, (toy_value){.type = LLM_ARCH_BOOL, .flag = false});
}

static void survey_expr(void *ctx, arch_expr *e) {
    survey *s = ctx;
    toy_value v;
    if (e->kind == EX_INDEX && e->a->kind == EX_KEY && find_key(s, e->a->name, e->a->whole))
        find_key(s, e->a->name, e->a->whole)->indexed = true;
    if (e->kind == EX_OR_ELSE && literal(e->b, &v) && v.type != LLM_ARCH_NUMBER) {
        if (v.type == LLM_ARCH_BOOL)
            add_truth(key_of(s, e->a));
        else
            add_other(key_of(s, e->a), v);
    }
    if (e->kind == EX_BINARY && (e->op == GGL_OP_EQ || e->op == GGL_OP_NE)) {
        if (literal(e->b, &v))
            add_other(key_of(s, e->a), v);
        if (literal(e->a, &v))
            add_other(key_of(s, e->b), v);
    }
    if (e->kind == EX_IN && e->b->kind == EX_LIST)
        for (int k = 0; k < e->b->n_arg; k++)
            if (literal(e->b->arg[k].value, &v))
                add_other(key_of(s, e->a), v);
    if (e->kind == EX_NOT || e->kind == EX_AND || e->kind == EX_OR) {
        add_truth(e->a->kind == EX_KEY ? key_of(s, e->a) : NULL);
        add_truth(e->b && e->b->kind == EX_KEY ? key_of(s, e->b) : NULL);
    }
    if (e->kind == EX_IF && (e->c->kind == EX_KEY || e->c->kind == EX_NAME))
        add_truth(key_of(s, e->c));
}

static void add_tensor(survey *s, const char *name) {
    if (!name || !ggl_grow(&s->tensor, &s->cap_tensor, (size_t)s->n_tensor + 1, sizeof *s->tensor)) {
        out_of_memory(s);
        return;
    }
    s->tensor[s->n_tensor++].name = name;
    add_group(s, name);
}

/* A tensor's name without "blk.N.", or "blk.{l}." of a pattern. */
static const char *stem(const char *name) {
    if (strncmp(name, "blk.", 4) != 0)
        return name;
    const char *dot = strchr(name + 4, '.');
    return dot ? dot + 1 : name;
}

static void survey_stmts(survey *s, const arch_stmt *st) {
    for (; st; st = st->next) {
        for (int k = 0; k < st->n_arm; k++) {
            const arch_expr *c = st->arm[k].cond;
            if (c && st->kind == ST_IF && (c->kind == EX_KEY || c->kind == EX_NAME))
                add_truth(key_of(s, c));
            survey_stmts(s, st->arm[k].body);
        }
        if (st->kind != ST_WEIGHT)
            continue;
        const char *name = st->target[0].name;
        const char *from = st->string ? stem(st->string) : NULL;
        if (st->optional || st->other)
            add_tensor(s, from ? from : ggl_arena_printf(s->arena, "%s.weight", name));
        if (st->bias && st->bias_optional)
            add_tensor(s, ggl_arena_printf(s->arena, "%.*s.bias", from ? (int)strlen(from) - 7 : 64, from ? from : name));
    }
}

static void survey_keys(survey *s) {
    for (const arch_known_key *k = s->arch->key; k; k = k->next) {
        if (!ggl_grow(&s->key, &s->cap_key, (size_t)s->n_key + 1, sizeof *s->key)) {
            out_of_memory(s);
            return;
        }
        toy_key *t = &s->key[s->n_key++];
        *t = (toy_key){.name = k->name, .whole = k->whole, .optional = !k->required};
        t->value = (toy_value){.type = LLM_ARCH_NUMBER, .number = usual_value(k->name)};
    }
}

static void survey_arch(survey *s) {
    const arch_fn *list[2] = {s->arch->fn, s->arch->prelude_fn};
    survey_keys(s);
    arch_walk_stmts(s->arch->body, survey_expr, s);
    survey_stmts(s, s->arch->body);
    for (int i = 0; i < 2; i++)
        for (const arch_fn *f = list[i]; f; f = f->next)
            if (f->used) {
                arch_walk_stmts(f->body, survey_expr, s);
                survey_stmts(s, f->body);
            }
    for (int k = 0; k < s->n_key; k++) {
        if (s->key[k].optional && !s->key[k].whole)
            add_group(s, group_of_key(s, s->key[k].name));
        s->n_alternatives += s->key[k].n_other;
    }
}

static void survey_fini(survey *s) {
    ggl_free(s->key);
    ggl_free(s->tensor);
    ggl_free(s->group);
}

/* --- the source ----------------------------------------------------------------------------------------------------- */

static fact *find_fact(llm_arch_toy *t, const char *name) {
    for (int k = 0; k < t->n_fact; k++)
        if (strcmp(t->fact[k].name, name) == 0)
            return &t->fact[k];
    return NULL;
}

static bool toy_find_key(void *ctx, const char *name, llm_arch_key *out) {
    const fact *f = find_fact(ctx, name);
    if (!f || !f->present)
        return false;
    *out = (llm_arch_key){.type = f->value.type, .is_list = f->indexed, .n = f->indexed ? 64 : 1, .handle = f};
    return true;
}

static bool toy_get_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    const fact *f = key->handle;
    (void)ctx;
    const toy_value *v = f->has_second && i % 2 == 1 ? &f->second : &f->value;
    *out = (llm_arch_item){v->number, v->flag, {v->string, v->string ? strlen(v->string) : 0}};
    return true;
}

static size_t hash_of(const char *s) {
    size_t h = 5381;
    for (; *s; s++)
        h = h * 33 + (unsigned char)*s;
    return h;
}

static made_tensor *find_made(const llm_arch_toy *t, const char *name) {
    for (size_t at = hash_of(name); t->n_slots; at++) {
        size_t i = t->slot[at % t->n_slots];
        if (i == 0)
            break;
        if (strcmp(t->made[i - 1].name, name) == 0)
            return &t->made[i - 1];
    }
    return NULL;
}

static bool index_made(llm_arch_toy *t) {
    if (2 * t->n_made > t->n_slots) {
        size_t n = t->n_slots ? 4 * t->n_slots : 256;
        size_t *slot = ggl_calloc(n, sizeof *slot);
        if (!slot)
            return false;
        ggl_free(t->slot);
        t->slot = slot;
        t->n_slots = n;
        for (size_t i = 0; i + 1 < t->n_made; i++) {
            size_t at = hash_of(t->made[i].name);
            while (slot[at % n])
                at++;
            slot[at % n] = i + 1;
        }
    }
    size_t at = hash_of(t->made[t->n_made - 1].name);
    while (t->slot[at % t->n_slots])
        at++;
    t->slot[at % t->n_slots] = t->n_made;
    return true;
}

/* Seeded by the tensor's name: the same in every variant. Norm weights and the like should not be near zero, so rows of
 * one dimension lie around 1; matrices are scaled to keep the size of what they multiply. */
static void fill_random(made_tensor *m) {
    int64_t n = m->ne[0] * m->ne[1] * m->ne[2] * m->ne[3], n_in = m->ne[0];
    uint64_t x = hash_of(m->name) * 0x9e3779b97f4a7c15u + 1;
    double scale = 1;
    while (scale * scale * (double)n_in > 1)
        scale *= 0.7071;
    for (int64_t i = 0; i < n; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        double u = (double)(x >> 11) * 0x1p-52 - 1; /* -1 .. 1 */
        m->data[i] = (float)(m->n_dims < 2 ? 1 + 0.25 * u : 1.7 * scale * u);
    }
}

#define TOY_MAX_ELEMENTS (1 << 22) /* of one tensor; a toy that needs more is no toy */

static made_tensor *make_tensor(llm_arch_toy *t, const llm_arch_tensor *want) {
    double n = 1;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        n *= (double)want->ne[d];
    if (n > TOY_MAX_ELEMENTS || !ggl_grow(&t->made, &t->cap_made, t->n_made + 1, sizeof *t->made))
        return NULL;
    made_tensor *m = &t->made[t->n_made];
    *m = (made_tensor){.name = ggl_arena_strndup(&t->arena, want->name, strlen(want->name)), .n_dims = want->n_dims};
    m->data = ggl_arena_alloc(&t->arena, (size_t)n, sizeof *m->data);
    if (!m->name || !m->data)
        return NULL;
    memcpy(m->ne, want->ne, sizeof m->ne);
    fill_random(m);
    t->n_made++;
    return index_made(t) ? m : NULL;
}

static bool is_there(const llm_arch_toy *t, const char *name) {
    for (int k = 0; k < t->s.n_tensor; k++)
        if (strcmp(t->s.tensor[k].name, stem(name)) == 0)
            return t->base_present != (t->turned && strcmp(t->turned, t->s.tensor[k].name) == 0);
    return t->base_present;
}

static bool toy_find_tensor(void *ctx, llm_arch_tensor *t) {
    llm_arch_toy *toy = ctx;
    made_tensor *m = find_made(toy, t->name);
    bool again = m && !toy->frozen && memcmp(m->ne, t->ne, sizeof m->ne) != 0;
    if (!m && (toy->frozen || (t->optional && !is_there(toy, t->name))))
        return false;
    if (again) /* of an earlier build, with values that turned out not to fit */
        m->name = "";
    if (!m || again)
        m = make_tensor(toy, t);
    if (!m)
        return false;
    t->type = GGL_F32;
    t->n_dims = m->n_dims;
    memcpy(t->ne, m->ne, sizeof t->ne);
    t->data = m->data;
    return true;
}

static bool toy_key_at(void *ctx, size_t i, ggl_str *name) {
    const llm_arch_toy *t = ctx;
    for (int k = 0; k < t->n_fact; k++)
        if (t->fact[k].present && i-- == 0) {
            *name = (ggl_str){t->fact[k].name, strlen(t->fact[k].name)};
            return true;
        }
    return false;
}

static bool toy_tensor_at(void *ctx, size_t i, ggl_str *name) {
    const llm_arch_toy *t = ctx;
    if (i >= t->n_made)
        return false;
    *name = (ggl_str){t->made[i].name, strlen(t->made[i].name)};
    return true;
}

static void toy_require_key(void *ctx, const char *name, const llm_arch_item *item) {
    llm_arch_toy *t = ctx;
    fact *f = find_fact(t, name);
    if (!f || t->frozen)
        return;
    t->repaired = true;
    if (!item) {
        f->present = false;
        return;
    }
    f->value.number = item->number;
    f->value.flag = item->flag;
    f->has_second = false;
    if (item->string.s)
        f->value.string = ggl_arena_strndup(&t->arena, item->string.s, item->string.n);
    f->present = f->value.type != LLM_ARCH_STRING || f->value.string;
}

/* --- variants ------------------------------------------------------------------------------------------------------- */

/* What variant `v` of a family is: which base, what is turned, which other value. */
static int variants_of_family(const survey *s) {
    return 2 + 2 * s->n_group + 2 * s->n_alternatives;
}

static void set_fact(llm_arch_toy *t, const toy_key *k) {
    fact *f = &t->fact[t->n_fact++];
    f->name = k->whole ? k->name : ggl_arena_printf(&t->arena, "%s.%s", t->family, k->name);
    f->value = k->value;
    f->indexed = k->indexed;
    f->present = true;
    const char *group = k->optional && !k->whole ? group_of_key(&t->s, k->name) : NULL;
    if (k->optional)
        f->present = t->base_present != (group && t->turned && strcmp(t->turned, group) == 0);
    /* A list has the first of its other numbers in every other place, so that both kinds of layer are there. */
    f->has_second = k->indexed && k->n_other > 0;
    if (f->has_second)
        f->second = k->other[0];
}

static void set_facts(llm_arch_toy *t, int alternative) {
    const survey *s = &t->s;
    t->fact = ggl_arena_alloc(&t->arena, (size_t)s->n_key + 2, sizeof *t->fact);
    if (!t->fact)
        return;
    for (int k = 0; k < s->n_key; k++) {
        set_fact(t, &s->key[k]);
        if (alternative >= 0 && alternative < s->key[k].n_other) {
            fact *f = &t->fact[t->n_fact - 1];
            const toy_value *v = &s->key[k].other[alternative];
            f->present = true;
            f->has_second = f->indexed;
            *(f->indexed ? &f->second : &f->value) = *v;
            snprintf(t->text + strlen(t->text), sizeof t->text - strlen(t->text), v->type == LLM_ARCH_STRING ? ", .%s \"%s\"" : ", .%s %s%g",
                     k < s->n_key ? s->key[k].name : "", v->type == LLM_ARCH_STRING ? v->string : "", v->number);
        }
        alternative -= s->key[k].n_other;
    }
    toy_value arch = {.type = LLM_ARCH_STRING, .string = t->family}, vocab = {.type = LLM_ARCH_NUMBER, .number = usual_value("vocab_size")};
    t->fact[t->n_fact++] = (fact){.name = "general.architecture", .present = true, .value = arch};
    const char *vocab_key = ggl_arena_printf(&t->arena, "%s.vocab_size", t->family);
    if (vocab_key && !find_fact(t, vocab_key))
        t->fact[t->n_fact++] = (fact){.name = vocab_key, .present = true, .value = vocab};
}

static bool set_variant(llm_arch_toy *t, int variant) {
    const survey *s = &t->s;
    int per_family = variants_of_family(s), alternative = -1;
    t->family = t->arch->family[variant / per_family];
    variant %= per_family;
    t->base_present = variant % 2;
    int what = variant / 2 - 1;
    if (what >= s->n_group)
        alternative = what - s->n_group;
    else if (what >= 0)
        t->turned = s->group[what];
    snprintf(t->text, sizeof t->text, "%s, %s %s%s%s", t->family, t->base_present ? "all" : "no", "optional keys and tensors",
             t->turned ? t->base_present ? " but " : " besides " : "", t->turned ? t->turned : "");
    set_facts(t, alternative);
    for (int k = 0; k < t->n_fact; k++)
        if (!t->fact[k].name)
            return false;
    return t->fact != NULL;
}

int llm_arch_toy_n_variants(const llm_arch *arch) {
    ggl_arena arena = {0};
    survey s = {.arch = arch, .arena = &arena};
    survey_arch(&s);
    int n = s.failed ? 0 : arch->n_family * variants_of_family(&s);
    survey_fini(&s);
    ggl_arena_fini(&arena);
    return n;
}

/* Builds until no `require` wants another value. */
static ggl_status settle(llm_arch_toy *t, llm_arch_result *result, ggl_error *err) {
    ggl_status s = GGL_OK;
    ggl_graph_params p = ggl_graph_default();
    p.n_pos = 64;
    for (int k = 0; k < MAX_REPAIRS; k++) {
        t->repaired = false;
        ggl_graph *g = ggl_graph_new(&p);
        if (!g)
            return ggl_fail(err, GGL_NOMEM, "out of memory");
        llm_arch_result_fini(result);
        s = llm_arch_build(t->arch, &t->source, NULL, g, result, err);
        if (s == GGL_OK)
            s = ggl_graph_finish(g, err);
        ggl_graph_free(g);
        if (s == GGL_OK || !t->repaired)
            return s;
    }
    return s;
}

static llm_arch_toy *toy_new(const llm_arch *arch, int variant, llm_arch_result *result, ggl_error *err) {
    llm_arch_toy *t = ggl_calloc(1, sizeof *t);
    ggl_status status = GGL_NOMEM;
    if (t) {
        t->arch = arch;
        t->arena.limit = (size_t)1 << 29;
        t->s = (survey){.arch = arch, .arena = &t->arena};
        survey_arch(&t->s);
        t->source = (llm_arch_source){.ctx = t, .name = t->text, .find_key = toy_find_key, .get_item = toy_get_item,
                                      .find_tensor = toy_find_tensor, .require_key = toy_require_key};
        if (!t->s.failed && variant >= 0 && variant < arch->n_family * variants_of_family(&t->s) && set_variant(t, variant))
            status = settle(t, result, err);
        else
            status = ggl_fail(err, t->s.failed ? GGL_NOMEM : GGL_USAGE, "%s has no variant %d", arch->text.name, variant);
    }
    if (status == GGL_OK)
        return t;
    llm_arch_toy_free(t);
    return NULL;
}

llm_arch_toy *llm_arch_toy_new(const llm_arch *arch, int variant, ggl_error *err) {
    llm_arch_result result = {0};
    llm_arch_toy *t = toy_new(arch, variant, &result, err);
    llm_arch_result_fini(&result);
    return t;
}

void llm_arch_toy_free(llm_arch_toy *t) {
    if (!t)
        return;
    survey_fini(&t->s);
    ggl_free(t->made);
    ggl_free(t->slot);
    ggl_arena_fini(&t->arena);
    ggl_free(t);
}

const llm_arch_source *llm_arch_toy_source(const llm_arch_toy *t) {
    return &t->source;
}
const char *llm_arch_toy_text(const llm_arch_toy *t) {
    return t->text;
}

void llm_arch_toy_freeze(llm_arch_toy *t) {
    t->frozen = true;
    t->source.key_at = toy_key_at;
    t->source.tensor_at = toy_tensor_at;
    t->source.require_key = NULL;
}

/* --- the check ------------------------------------------------------------------------------------------------------ */

static ggl_status report_untaken(const llm_arch *arch, const uint8_t *ran, const arch_stmt *s, char **notes, ggl_error *err) {
    for (; s; s = s->next) {
        if (!ran[s->line - 1]) {
            size_t n = *notes ? strlen(*notes) : 0;
            char line[160];
            snprintf(line, sizeof line, "%.64s:%d: taken by no made-up model\n", arch->text.name, s->line);
            char *more = ggl_calloc(n + strlen(line) + 1, 1);
            if (!more)
                return ggl_fail(err, GGL_NOMEM, "out of memory");
            if (*notes)
                memcpy(more, *notes, n);
            strcpy(more + n, line);
            ggl_free(*notes);
            *notes = more;
        }
        for (int k = 0; k < s->n_arm; k++) {
            ggl_status status = report_untaken(arch, ran, s->arm[k].body, notes, err);
            if (status != GGL_OK)
                return status;
        }
    }
    return GGL_OK;
}

ggl_status llm_arch_check(const llm_arch *arch, char **notes, ggl_error *err) {
    int n = llm_arch_toy_n_variants(arch);
    uint8_t *ran = ggl_calloc((size_t)arch->n_lines, 1);
    ggl_status status = n > 0 && ran ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_error local;
    if (notes)
        *notes = NULL;
    for (int v = 0; v < n && status == GGL_OK; v++) {
        llm_arch_result result = {0};
        llm_arch_toy *t = toy_new(arch, v, &result, err ? err : &local);
        for (int i = 0; i < arch->n_lines && result.line_ran; i++)
            ran[i] |= result.line_ran[i];
        if (!t)
            status = (err ? err : &local)->status;
        llm_arch_result_fini(&result);
        llm_arch_toy_free(t);
    }
    if (status == GGL_OK && notes)
        status = report_untaken(arch, ran, arch->body, notes, err);
    ggl_free(ran);
    return status;
}
