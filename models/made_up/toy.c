/* Made-up models: a value for each key that a descriptor mentions, and random weights of the
 * declared shapes.
 *
 * Sizes differ from each other as far as possible, so that a mixed-up dimension is noticed.
 * survey.c guesses the values from names and text. A `require key == value` that fails reports the
 * value it needs, and the build starts again with it.
 *
 * Variants: all optional keys and tensors absent; all present; both of these with one group
 * toggled; both with one key set to another value that it is compared with. All this for each
 * family of the header. Keys that make sense only together (expert_count, expert_used_count, ..:
 * the same first word) are one group. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "survey.h"

#define MAX_REPAIRS     16
#define TOY_CONTEXT     64
#define TOY_MAX_CONTEXT (1 << 17)

typedef struct fact { /* a key of this toy */
    ggl_str name;     /* the full name; s ends in NUL */
    bool present, indexed;
    toy_value value, second; /* second: of each `every`-th element, if indexed */
    bool has_second;
    uint64_t every;
} fact;

typedef struct made_tensor {
    ggl_str name; /* s ends in NUL */
    float *data;
    int n_dims;
    int64_t ne[GGL_MAX_DIMS];
} made_tensor;

struct llm_arch_toy {
    const llm_arch *arch;
    ggl_arena arena;
    llm_arch_source source;
    char text[160];
    arch_survey s;
    const char *family;
    fact *fact;
    int64_t n_ctx;
    int n_fact, n_lists; /* n_lists: facts that have a second value */
    bool base_present, frozen, repaired;
    bool is_aligned;    /* built with the output "alignment", which is made on request */
    bool filled;        /* tensors have values; before that only shapes */
    const char *turned; /* the group that differs from base_present, or NULL */
    made_tensor *made;
    size_t n_made, cap_made;
    ggl_index made_index, fact_index;
    ggl_status status; /* why a tensor could not be made */
};

/* --- the source ------------------------------------------------------------------------------- */

static ggl_str str_of(const char *s) {
    return (ggl_str){s, s ? strlen(s) : 0};
}

static fact *find_fact(llm_arch_toy *t, const char *name) {
    size_t i = ggl_index_find(&t->fact_index, t->fact, str_of(name));
    return i == SIZE_MAX ? NULL : &t->fact[i];
}

static bool toy_find_key(void *ctx, const char *name, llm_arch_key *out) {
    const fact *f = find_fact(ctx, name);
    if (!f || !f->present)
        return false;
    *out = (llm_arch_key){
        .type = f->value.type, .is_list = f->indexed, .n = f->indexed ? 64 : 1, .handle = f};
    return true;
}

static bool toy_get_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    const fact *f = key->handle;
    (void)ctx;
    const toy_value *v = f->has_second && i % f->every == f->every - 1 ? &f->second : &f->value;
    *out = (llm_arch_item){v->number, v->flag, {v->string, v->string ? strlen(v->string) : 0}};
    return true;
}

static made_tensor *find_made(const llm_arch_toy *t, const char *name) {
    size_t i = ggl_index_find(&t->made_index, t->made, str_of(name));
    return i == SIZE_MAX ? NULL : &t->made[i];
}

/* Adds the last made tensor to the index. False: out of memory. */
static bool index_made(llm_arch_toy *t) {
    ggl_index *x = &t->made_index;
    if (arch_index_room(x, t->made, t->n_made, sizeof *t->made, NULL) != GGL_OK)
        return false;
    ggl_index_put(x, t->made, t->n_made - 1);
    return true;
}

/* Fills a tensor with random values, seeded by its name so that every variant has the same.
 * Values of vectors lie around 1, because norm weights should not be near 0. Matrices are scaled
 * to keep the magnitude of their inputs. */
static void fill_random(made_tensor *m) {
    int64_t n = ggl_extents(m->ne, 0, GGL_MAX_DIMS, 1), n_in = m->ne[0];
    uint64_t h = 5381;
    for (size_t i = 0; i < m->name.n; i++)
        h = h * 33 + (unsigned char)m->name.s[i];
    uint64_t x = h * 0x9e3779b97f4a7c15u + 1;
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

#define TOY_MAX_ELEMENTS (1 << 22) /* of a tensor; a toy should not need more */

/* Gives m its data, in the shape of `want`. False: t->status. */
static bool shape_tensor(llm_arch_toy *t, made_tensor *m, const llm_arch_tensor *want) {
    double n = 1;
    for (int d = 0; d < GGL_MAX_DIMS; d++)
        n *= (double)want->ne[d];
    t->status = n > TOY_MAX_ELEMENTS ? GGL_LIMIT : GGL_NOMEM;
    m->data = n > TOY_MAX_ELEMENTS ? NULL : ggl_arena_alloc(&t->arena, (size_t)n, sizeof *m->data);
    if (!m->data)
        return false;
    m->n_dims = want->n_dims;
    memcpy(m->ne, want->ne, sizeof m->ne);
    if (t->filled)
        fill_random(m);
    t->status = GGL_OK;
    return true;
}

static made_tensor *make_tensor(llm_arch_toy *t, const llm_arch_tensor *want) {
    t->status = GGL_NOMEM;
    if (!ggl_grow(&t->made, &t->cap_made, t->n_made + 1, sizeof *t->made))
        return NULL;
    made_tensor *m = &t->made[t->n_made];
    *m =
        (made_tensor){.name = str_of(ggl_arena_strndup(&t->arena, want->name, strlen(want->name)))};
    if (!m->name.s || !shape_tensor(t, m, want))
        return NULL;
    t->n_made++;
    if (index_made(t))
        return m;
    t->status = GGL_NOMEM;
    return NULL;
}

/* True if the variant has this optional tensor. */
static bool is_there(const llm_arch_toy *t, const char *name) {
    for (int k = 0; k < t->s.n_tensor; k++)
        if (strcmp(t->s.tensor[k].name, llm_arch_survey_stem(name)) == 0)
            return t->base_present != (t->turned && strcmp(t->turned, t->s.tensor[k].name) == 0);
    return t->base_present;
}

static bool toy_find_tensor(void *ctx, llm_arch_tensor *t) {
    llm_arch_toy *toy = ctx;
    if (toy->status != GGL_OK) /* a tensor before could not be made, even if it is optional */
        return false;
    made_tensor *m = find_made(toy, t->name);
    /* The shape of a weight is what the descriptor declares, so a question before that has no answer. */
    const bool no_answer = t->is_asked && strstr(t->name, ".weight") != NULL;
    bool again = m && !toy->frozen && !no_answer && memcmp(m->ne, t->ne, sizeof m->ne) != 0;
    if (!m && (toy->frozen || no_answer || t->is_extra || (t->optional && !is_there(toy, t->name))))
        return false;
    /* again: made by an earlier build, whose keys were changed since */
    if (again && !shape_tensor(toy, m, t))
        return false;
    if (!m && !(m = make_tensor(toy, t)))
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
            *name = t->fact[k].name;
            return true;
        }
    return false;
}

static bool toy_tensor_at(void *ctx, size_t i, ggl_str *name) {
    const llm_arch_toy *t = ctx;
    if (i >= t->n_made)
        return false;
    *name = t->made[i].name;
    return true;
}

static void toy_require_key(void *ctx, const char *name, const llm_arch_item *item) {
    llm_arch_toy *t = ctx;
    fact *f = find_fact(t, name);
    if (strcmp(name, "n_ctx") == 0 && item && item->number >= 1 &&
        item->number <= TOY_MAX_CONTEXT && !t->frozen) {
        t->repaired = true;
        t->n_ctx = (int64_t)item->number;
    }
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

/* --- variants --------------------------------------------------------------------------------- */

/* Returns the number of variants of a family: two bases, each with one group toggled or one
 * value replaced. */
static int variants_of_family(const arch_survey *s) {
    return 2 + 2 * s->n_group + 2 * s->n_alternatives;
}

/* Adds a key of the survey as this variant has it. */
static void set_fact(llm_arch_toy *t, const toy_key *k) {
    fact *f = &t->fact[t->n_fact++];
    f->name = str_of(k->whole ? k->name : ggl_arena_printf(&t->arena, "%s.%s", t->family, k->name));
    f->value = k->value;
    f->indexed = k->indexed;
    f->present = true;
    const char *group = k->optional && !k->whole ? llm_arch_survey_group(&t->s, k->name) : NULL;
    if (k->optional)
        f->present = t->base_present != (group && t->turned && strcmp(t->turned, group) == 0);
    /* A list has its first other number at every 2nd element, the next list at every 3rd, and so
     * on in turn. So layers of both kinds occur, and in all combinations of two lists. */
    f->has_second = k->indexed && k->n_other > 0;
    if (f->has_second) {
        f->second = k->other[0];
        f->every = 2 + (uint64_t)(t->n_lists++ % 2);
    }
}

/* Sets a key that every toy has, even if the descriptor does not mention it. */
static void add_fact(llm_arch_toy *t, const char *name, toy_value value) {
    fact *known = find_fact(t, name);
    if (known) {
        *known = (fact){.name = known->name, .present = true, .value = value};
        return;
    }
    t->fact[t->n_fact] = (fact){.name = str_of(name), .present = true, .value = value};
    ggl_index_put(&t->fact_index, t->fact, (size_t)t->n_fact++);
}

static void append_value(llm_arch_toy *t, const char *key, const toy_value *v) {
    size_t n = strlen(t->text);
    if (v->type == LLM_ARCH_STRING)
        snprintf(t->text + n, sizeof t->text - n, ", .%s \"%s\"", key, v->string);
    else if (v->type == LLM_ARCH_BOOL)
        snprintf(t->text + n, sizeof t->text - n, ", .%s %s", key, v->flag ? "true" : "false");
    else
        snprintf(t->text + n, sizeof t->text - n, ", .%s %g", key, v->number);
}

/* Makes the variant's keys. alternative: index of the other value to use, counted over all keys;
 * -1: none. */
static void set_facts(llm_arch_toy *t, int alternative) {
    const arch_survey *s = &t->s;
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
            append_value(t, s->key[k].name, v);
        }
        alternative -= s->key[k].n_other;
    }
    if (ggl_index_init(&t->fact_index, (size_t)t->n_fact + 2, sizeof *t->fact, GGL_INDEX_STRINGS,
                       NULL) != GGL_OK) {
        t->fact = NULL;
        return;
    }
    for (int k = 0; k < t->n_fact; k++)
        if (t->fact[k].name.s)
            ggl_index_put(&t->fact_index, t->fact, (size_t)k);
    toy_value arch = {.type = LLM_ARCH_STRING, .string = t->family},
              vocab = {.type = LLM_ARCH_NUMBER, .number = llm_arch_survey_usual("vocab_size")};
    add_fact(t, "general.architecture", arch);
    const char *vocab_key = ggl_arena_printf(&t->arena, "%s.vocab_size", t->family);
    if (vocab_key)
        add_fact(t, vocab_key, vocab);
}

static bool set_variant(llm_arch_toy *t, int variant) {
    const arch_survey *s = &t->s;
    int per_family = variants_of_family(s), alternative = -1;
    t->family = t->arch->key_family[variant / per_family];
    variant %= per_family;
    t->base_present = variant % 2;
    t->is_aligned = variant != 0 && llm_arch_has_output(t->arch, "alignment");
    int what = variant / 2 - 1;
    if (what >= s->n_group)
        alternative = what - s->n_group;
    else if (what >= 0)
        t->turned = s->group[what];
    snprintf(t->text, sizeof t->text, "%s, %s %s%s%s", t->family, t->base_present ? "all" : "no",
             "optional keys and tensors", t->turned ? t->base_present ? " but " : " besides " : "",
             t->turned ? t->turned : "");
    set_facts(t, alternative);
    for (int k = 0; t->fact && k < t->n_fact; k++)
        if (!t->fact[k].name.s)
            return false;
    return t->fact != NULL;
}

int llm_arch_toy_n_variants(const llm_arch *arch) {
    ggl_arena arena = {0};
    arch_survey s = {.arch = arch, .arena = &arena};
    llm_arch_survey_run(&s);
    int n = s.failed ? 0 : arch->n_family * variants_of_family(&s);
    llm_arch_survey_fini(&s);
    ggl_arena_fini(&arena);
    return n;
}

/* True if the message contains ".name" as a whole name. */
static bool mentions(const char *msg, const char *name) {
    const size_t n = strlen(name);
    for (const char *s = strstr(msg, name); s; s = strstr(s + 1, name)) {
        const char end = s[n];
        const bool longer = end == '_' || end == '.' || (end >= '0' && end <= '9') ||
                            (end >= 'a' && end <= 'z') || (end >= 'A' && end <= 'Z');
        if (s > msg && s[-1] == '.' && !longer)
            return true;
    }
    return false;
}

static void value_text(const toy_value *v, char *buf, size_t size) {
    if (v->type == LLM_ARCH_STRING)
        snprintf(buf, size, "\"%s\"", v->string);
    else if (v->type == LLM_ARCH_BOOL)
        snprintf(buf, size, "%s", v->flag ? "true" : "false");
    else
        snprintf(buf, size, "%g", v->number);
}

/* Appends to an error the made-up values of the keys that it mentions. */
static void say_made_up(const llm_arch_toy *t, ggl_error *err) {
    char text[400] = "", one[80], two[80];
    size_t n = 0, used = strlen(err->msg);
    for (int k = 0; k < t->n_fact; k++) {
        const fact *f = &t->fact[k];
        const size_t m = strlen(t->family);
        const bool own = strncmp(f->name.s, t->family, m) == 0 && f->name.s[m] == '.';
        if (!f->present || n + 200 > sizeof text ||
            !mentions(err->msg, f->name.s + (own ? m + 1 : 0)))
            continue;
        value_text(&f->value, one, sizeof one);
        if (f->has_second)
            value_text(&f->second, two, sizeof two);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%.80s = %s%s%s%s", n ? ", " : ": ",
                              f->name.s, f->has_second ? "[" : "", one, f->has_second ? " or " : "",
                              f->has_second ? two : "");
        if (f->has_second && n + 1 < sizeof text)
            n += (size_t)snprintf(text + n, sizeof text - n, "]");
    }
    snprintf(err->msg + used, sizeof err->msg - used, "\n  This model is made up (%s)%s.%s",
             t->text, text, *text ? " A 'require' in the descriptor can restrict its values." : "");
}

/* Builds, and changes keys, until no `require` asks for another value. */
static ggl_status settle(llm_arch_toy *t, llm_arch_result *result, ggl_error *err) {
    ggl_status s = GGL_OK;
    ggl_graph_params p = ggl_graph_default();
    for (int k = 0; k < MAX_REPAIRS; k++) {
        p.n_pos = t->n_ctx;
        t->repaired = false;
        ggl_graph *g = ggl_graph_new(&p);
        if (!g)
            return ggl_fail(err, GGL_NOMEM, "out of memory");
        llm_arch_result_fini(result);
        const llm_arch_params ap = {.size = sizeof ap, .alignment = t->is_aligned};
        s = llm_arch_build(t->arch, &t->source, &ap, g, result, err);
        if (s == GGL_OK)
            s = ggl_graph_finish(g, err);
        ggl_graph_free(g);
        if (t->status != GGL_OK)
            return ggl_fail(err, t->status, "%s: %s", t->arch->text.name,
                            t->status == GGL_NOMEM
                                ? "out of memory"
                                : "a made-up tensor would have more than 4 million elements");
        if (s == GGL_OK || !t->repaired)
            break;
    }
    if (err && (s == GGL_FORMAT || s == GGL_SHAPE || s == GGL_LIMIT))
        say_made_up(t, err);
    return s;
}

static ggl_status toy_init(llm_arch_toy *t, const llm_arch *arch, int variant,
                           llm_arch_result *result, ggl_error *err) {
    t->arch = arch;
    t->n_ctx = TOY_CONTEXT;
    t->arena.limit = (size_t)1 << 29;
    t->s = (arch_survey){.arch = arch, .arena = &t->arena};
    llm_arch_survey_run(&t->s);
    t->source = (llm_arch_source){.ctx = t,
                                  .name = t->text,
                                  .find_key = toy_find_key,
                                  .get_item = toy_get_item,
                                  .find_tensor = toy_find_tensor,
                                  .require_key = toy_require_key};
    if (!t->s.failed && (variant < 0 || variant >= arch->n_family * variants_of_family(&t->s)))
        return ggl_fail(err, GGL_USAGE, "%s has no variant %d", arch->text.name, variant);
    if (t->s.failed || !set_variant(t, variant))
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", arch->text.name);
    return settle(t, result, err);
}

static ggl_status toy_new(llm_arch_toy **out, const llm_arch *arch, int variant,
                          llm_arch_result *result, ggl_error *err) {
    *out = ggl_calloc(1, sizeof **out);
    if (!*out)
        return ggl_fail(err, GGL_NOMEM, "%s: out of memory", arch->text.name);
    ggl_status s = toy_init(*out, arch, variant, result, err);
    if (s != GGL_OK) {
        llm_arch_toy_free(*out);
        *out = NULL;
    }
    return s;
}

llm_arch_toy *llm_arch_toy_new(const llm_arch *arch, int variant, ggl_error *err) {
    llm_arch_result result = {0};
    llm_arch_toy *t;
    ggl_status s = toy_new(&t, arch, variant, &result, err);
    llm_arch_result_fini(&result);
    if (s != GGL_OK)
        return NULL;
    t->filled = true;
    for (size_t i = 0; i < t->n_made; i++)
        fill_random(&t->made[i]);
    return t;
}

void llm_arch_toy_free(llm_arch_toy *t) {
    if (!t)
        return;
    llm_arch_survey_fini(&t->s);
    ggl_free(t->made);
    ggl_index_fini(&t->made_index);
    ggl_index_fini(&t->fact_index);
    ggl_arena_fini(&t->arena);
    ggl_free(t);
}

const llm_arch_source *llm_arch_toy_source(const llm_arch_toy *t) {
    return &t->source;
}
int64_t llm_arch_toy_n_ctx(const llm_arch_toy *t) {
    return t->n_ctx;
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

/* --- the check -------------------------------------------------------------------------------- */

typedef struct report {
    const llm_arch *arch;
    const uint8_t *ran; /* bits of llm_arch_line for each line */
    char *notes;        /* grown as needed */
    bool failed;
} report;

static void add_note(report *r, int line, const char *what) {
    const size_t n = r->notes ? strlen(r->notes) : 0;
    char *more = ggl_calloc(n + 200, 1);
    if (!more) {
        r->failed = true;
        return;
    }
    snprintf(more, n + 200, "%s%.64s:%d: %s\n", r->notes ? r->notes : "", r->arch->text.name, line,
             what);
    ggl_free(r->notes);
    r->notes = more;
}

/* Notes statements that no made-up model runs, and conditions that are the same in all of them. */
static void report_untaken(report *r, const arch_stmt *s) {
    for (; s && !r->failed; s = s->next) {
        const uint8_t ran = r->ran[s->line - 1];
        const bool one_line = s->n_arm > 0 && s->arm[0].body && s->arm[0].body->line == s->line;
        const bool has_else = s->n_arm > 0 && !s->arm[s->n_arm - 1].cond;
        if (!ran)
            add_note(r, s->line, "no made-up model reaches this line");
        else if (s->kind == ST_IF && one_line && !(ran & LLM_ARCH_LINE_TAKEN))
            add_note(r, s->line, "this condition is true in no made-up model");
        else if (s->kind == ST_IF && !has_else && !(ran & LLM_ARCH_LINE_PASSED))
            add_note(r, s->line,
                     s->n_arm > 1 ? "one of the conditions is true in every made-up model"
                                  : "this condition is true in every made-up model");
        for (int k = 0; k < s->n_arm; k++)
            report_untaken(r, s->arm[k].body);
    }
}

static void report_all(report *r) {
    report_untaken(r, r->arch->body);
    for (const arch_fn *f = r->arch->fn; f; f = f->next)
        report_untaken(r, f->used ? f->body : NULL);
}

/* Builds the graph of texts in which rows are given in place of tokens, if the model takes any, for the lines that only this one runs. */
static ggl_status run_given(const llm_arch_toy *t, uint8_t *ran, ggl_error *err) {
    const llm_arch_params p = {.size = sizeof p, .given = true};
    ggl_graph_params size = ggl_graph_default();
    llm_arch_result result = {0};
    size.n_pos = t->n_ctx;
    ggl_graph *g = ggl_graph_new(&size);
    ggl_status st = g ? llm_arch_build(t->arch, &t->source, &p, g, &result, err)
                      : ggl_fail(err, GGL_NOMEM, "out of memory");
    for (int i = 0; i < t->arch->n_lines && result.line_ran; i++)
        ran[i] |= result.line_ran[i];
    llm_arch_result_fini(&result);
    ggl_graph_free(g);
    return st;
}

ggl_status llm_arch_check(const llm_arch *arch, char **notes, ggl_error *err) {
    int n = llm_arch_toy_n_variants(arch);
    uint8_t *ran = ggl_calloc((size_t)arch->n_lines, 1);
    ggl_status status = n > 0 && ran ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    if (notes)
        *notes = NULL;
    for (int v = 0; v < n && status == GGL_OK; v++) {
        llm_arch_result result = {0};
        llm_arch_toy *t;
        status = toy_new(&t, arch, v, &result, err);
        for (int i = 0; i < arch->n_lines && result.line_ran; i++)
            ran[i] |= result.line_ran[i];
        if (status == GGL_OK && result.n_given > 0)
            status = run_given(t, ran, err);
        llm_arch_result_fini(&result);
        llm_arch_toy_free(t);
    }
    report r = {.arch = arch, .ran = ran};
    if (status == GGL_OK && notes)
        report_all(&r);
    if (r.failed) {
        ggl_free(r.notes);
        status = ggl_fail(err, GGL_NOMEM, "out of memory");
    } else if (notes)
        *notes = r.notes;
    ggl_free(ran);
    return status;
}
