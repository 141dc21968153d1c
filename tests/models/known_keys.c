/* The table of known keys (models/known_keys.arch): every row on every built-in descriptor. With a key
 * that the table calls harmless a made-up model gives the same graph and the same logits, bit for
 * bit; with a value that is not harmless it is refused. Every condition holds for some value and
 * not for another. */
#include <ctype.h>
#include <math.h>

#include "ggl/fold.h"
#include "test.h"
#include "toy_run.h"

/* --- the rows --------------------------------------------------------------------------------- */

typedef struct row {
    char name[80]; /* without the dot; '*' of a pattern replaced by something that fits */
    bool conditional, never;
} row;

static row rows[400];
static int n_rows;

static void add_row(const char *name, size_t n, bool conditional, bool never) {
    row *r = &rows[n_rows];
    size_t used = 0;
    REQUIRE(n_rows < (int)(sizeof rows / sizeof *rows) && n < sizeof r->name - 8);
    for (size_t i = 0; i < n; i++)
        used += (size_t)sprintf(r->name + used, name[i] == '*' ? "some" : "%c", name[i]);
    r->conditional = conditional;
    r->never = never;
    n_rows++;
}

/* Every key of every line that begins with "ignore". */
static void read_rows(void) {
    size_t n;
    char *text = (char *)test_read_file(KNOWN_KEYS, &n);
    REQUIRE(text);
    text[n] = 0;
    n_rows = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        const char *cond = strstr(line, " if "), *as = strstr(line, " as \"");
        const char *end = cond ? cond : as ? as : line + strlen(line);
        if (strncmp(line, "ignore ", 7) != 0)
            continue;
        CHECK_MSG(cond || as, "a row says what its keys are: %s", line);
        for (const char *s = line + 7; s < end; s++) {
            bool pattern = *s == '"' && s[1] == '.',
                 key = *s == '.' && !isalnum((unsigned char)s[-1]);
            if (!pattern && !key) {
                if (*s == '"') /* a tensor's */
                    s += strcspn(s + 1, "\"") + 1;
                continue;
            }
            const char *name = s + 1 + pattern;
            size_t m = strcspn(name, pattern ? "\"" : ", ");
            add_row(name, m, cond != NULL, cond && strncmp(cond, " if false", 9) == 0);
            s = name + m;
        }
    }
    free(text);
    CHECK_MSG(n_rows > 120, "%d rows", n_rows);
}

/* --- a source with more keys ------------------------------------------------------------------ */

typedef struct value {
    llm_arch_type type;
    bool is_list;
    double number;
    bool flag;
    const char *string;
} value;

typedef struct added {
    char name[128];
    value v;
} added;

typedef struct wrapped {
    llm_arch_source source;
    const llm_arch_source *base;
    const char *family;
    added key[400];
    int n;
} wrapped;

static bool w_find_key(void *ctx, const char *name, llm_arch_key *out) {
    wrapped *w = ctx;
    for (int i = 0; i < w->n; i++)
        if (strcmp(w->key[i].name, name) == 0) {
            const value *v = &w->key[i].v;
            *out = (llm_arch_key){v->type, v->is_list, v->is_list ? 3 : 1, v};
            return true;
        }
    return w->base->find_key(w->base->ctx, name, out);
}

static bool w_get_item(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out) {
    wrapped *w = ctx;
    for (int k = 0; k < w->n; k++)
        if (key->handle == &w->key[k].v) {
            const value *v = &w->key[k].v;
            *out =
                (llm_arch_item){v->number, v->flag, {v->string, v->string ? strlen(v->string) : 0}};
            return true;
        }
    return w->base->get_item(w->base->ctx, key, i, out);
}

static bool w_find_tensor(void *ctx, llm_arch_tensor *t) {
    wrapped *w = ctx;
    return w->base->find_tensor(w->base->ctx, t);
}

static bool w_key_at(void *ctx, size_t i, ggl_str *name) {
    wrapped *w = ctx;
    if (i < (size_t)w->n) {
        *name = (ggl_str){w->key[i].name, strlen(w->key[i].name)};
        return true;
    }
    return w->base->key_at(w->base->ctx, i - (size_t)w->n, name);
}

static bool w_tensor_at(void *ctx, size_t i, ggl_str *name) {
    wrapped *w = ctx;
    return w->base->tensor_at(w->base->ctx, i, name);
}

/* Adds {family}.name, unless it is there. */
static bool w_add(wrapped *w, const char *name, value v) {
    llm_arch_key k;
    added *a = &w->key[w->n];
    snprintf(a->name, sizeof a->name, "%.40s.%.80s", w->family, name);
    a->v = v;
    bool there = w_find_key(w, a->name, &k);
    w->n += !there;
    return !there;
}

static value number(double x) {
    return (value){.type = LLM_ARCH_NUMBER, .number = x};
}

/* With the context length, which the engine knows and conditions compare with. */
static void w_init(wrapped *w, const llm_arch_source *base, const char *family) {
    w->base = base;
    w->family = family;
    w->n = 0;
    w->source = (llm_arch_source){.ctx = w,
                                  .name = "wrapped",
                                  .find_key = w_find_key,
                                  .get_item = w_get_item,
                                  .find_tensor = w_find_tensor,
                                  .key_at = w_key_at,
                                  .tensor_at = w_tensor_at};
    w_add(w, "context_length", number(112));
}

static double number_of(wrapped *w, const char *name, double otherwise) {
    char full[128];
    llm_arch_key k;
    llm_arch_item item;
    snprintf(full, sizeof full, "%.40s.%.80s", w->family, name);
    bool there = w_find_key(w, full, &k) && !k.is_list && k.type == LLM_ARCH_NUMBER &&
                 w_get_item(w, &k, 0, &item);
    return there ? item.number : otherwise;
}

/* --- values to try ---------------------------------------------------------------------------- */

enum { N_VALUES = 22 };

static int candidates(wrapped *w, value out[N_VALUES]) {
    double n_embd = number_of(w, "embedding_length", 80),
           n_head = number_of(w, "attention.head_count", 4);
    double d = number_of(w, "attention.key_length", n_embd / n_head);
    const double numbers[] = {0,
                              1,
                              -1,
                              2,
                              0.5,
                              32,
                              16,
                              1.0e-5,
                              10000,
                              500.0,
                              number_of(w, "context_length", 112),
                              113,
                              n_embd / n_head,
                              d,
                              n_head,
                              number_of(w, "attention.value_length", d),
                              number_of(w, "rope.dimension_count", d),
                              number_of(w, "rope.freq_base", 10000)};
    const char *const strings[] = {"none", "yarn"};
    int n = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        out[n++] = number(numbers[i]);
    for (size_t i = 0; i < 2; i++)
        out[n++] = (value){.type = LLM_ARCH_STRING, .string = strings[i]};
    for (int i = 0; i < 2; i++)
        out[n++] = (value){.type = LLM_ARCH_BOOL, .flag = i};
    return n;
}

static const char *value_text(const value *v, char buf[64]) {
    snprintf(buf, 64, v->is_list ? "a list of %s%g" : "%s%g",
             v->type == LLM_ARCH_STRING ? v->string
             : v->type == LLM_ARCH_BOOL ? v->flag ? "true " : "false "
                                        : "",
             v->number);
    return buf;
}

/* Other keys that a file may have, which conditions look at. Whether these are harmless does not
 * matter here: the verdict about one key is asked for. */
enum { ALONE, SAVED, YARN, WINDOW, EXPERTS, N_PROFILES };

static void add_profile(wrapped *w, int profile) {
    const value no = {.type = LLM_ARCH_BOOL}, yarn = {.type = LLM_ARCH_STRING, .string = "yarn"};
    if (profile == SAVED) {
        w_add(w, "swin_norm", no);
        w_add(w, "wkv.head_size", number(0));
        w_add(w, "expert_count", number(0));
    } else if (profile == YARN) {
        w_add(w, "rope.scaling.type", yarn);
        w_add(w, "rope.scaling.factor", number(4));
    } else if (profile == WINDOW) {
        w_add(w, "attention.sliding_window", number(7));
        w_add(w, "attention.temperature_scale", number(0.1));
    } else if (profile == EXPERTS) {
        w_add(w, "expert_count", number(8));
        w_add(w, "expert_group_count", number(4));
        w_add(w, "wkv.head_size", number(64));
    }
}

/* --- verdicts --------------------------------------------------------------------------------- */

typedef struct asked {
    const char *name;
    llm_arch_use use;
    bool found;
    char reason[200];
} asked;

static void on_key(void *ctx, const llm_arch_judged *k) {
    asked *a = ctx;
    if (k->key.n == strlen(a->name) && memcmp(k->key.s, a->name, k->key.n) == 0) {
        a->use = k->use;
        a->found = true;
        snprintf(a->reason, sizeof a->reason, "%s", k->reason ? k->reason : "");
    }
}

static asked verdict(const llm_arch *arch, const wrapped *w, const char *name) {
    ggl_error err = {0};
    char full[128];
    snprintf(full, sizeof full, "%.40s.%.80s", w->family, name);
    asked a = {.name = full};
    CHECK_OK(llm_arch_judge_keys(arch, &w->source, on_key, &a, &err), &err);
    CHECK_MSG(a.found, "%s was not judged", full);
    a.name = NULL;
    return a;
}

/* --- graphs ----------------------------------------------------------------------------------- */

static ggl_status build(const llm_arch *arch, const llm_arch_source *source, ggl_graph **out,
                        ggl_error *err) {
    ggl_graph_params p = ggl_graph_default();
    p.n_pos = TOY_CTX;
    ggl_graph *g = ggl_graph_new(&p);
    ggl_status s = llm_arch_build(arch, source, NULL, g, NULL, err);
    if (s == GGL_OK)
        s = ggl_graph_finish(g, err);
    if (s != GGL_OK) {
        ggl_graph_free(g);
        g = NULL;
    }
    *out = g;
    return s;
}

/* All that the nodes compute: operators, numbers, what they read, shapes. */
static bool same_graph(const ggl_graph *a, const ggl_graph *b) {
    if (ggl_graph_n_nodes(a) != ggl_graph_n_nodes(b))
        return false;
    for (int i = 0; i < ggl_graph_n_nodes(a); i++) {
        const ggl_tensor *x = ggl_graph_node(a, i), *y = ggl_graph_node(b, i);
        if (x->op != y->op || x->id != y->id || x->n_src != y->n_src || x->n_num != y->n_num ||
            memcmp(x->ne, y->ne, sizeof x->ne) != 0 ||
            (x->n_num && memcmp(x->num, y->num, (size_t)x->n_num * sizeof *x->num) != 0))
            return false;
        for (int k = 0; k < x->n_src; k++)
            if ((x->src[k] ? x->src[k]->id : -1) != (y->src[k] ? y->src[k]->id : -1))
                return false;
    }
    return true;
}

/* --- all descriptors -------------------------------------------------------------------------- */

typedef struct tally {
    int n_harmless, n_refused; /* models built */
} tally;

static void check_build(const llm_arch *arch, const wrapped *w, const char *name, const value *v,
                        const asked *a, const ggl_graph *plain) {
    ggl_error err = {0};
    ggl_graph *g;
    char text[64];
    ggl_status s = build(arch, &w->source, &g, &err);
    if (a->use == LLM_ARCH_HARMLESS) {
        if (CHECK_MSG(s == GGL_OK, "%s: .%s = %s: %s", llm_arch_name(arch), name,
                      value_text(v, text), err.msg))
            CHECK_MSG(same_graph(plain, g), "%s: .%s = %s makes another graph", llm_arch_name(arch),
                      name, value_text(v, text));
    } else {
        CHECK_MSG(s == GGL_FORMAT && strstr(err.msg, name) && strstr(err.msg, a->reason) &&
                      a->reason[0],
                  "%s: .%s = %s: %s", llm_arch_name(arch), name, value_text(v, text), err.msg);
    }
    ggl_graph_free(g);
}

/* One row alone, on a model: builds with the first harmless value and with the first other one. *keep
 * gets the harmless one. */
static void try_row(const llm_arch *arch, const llm_arch_source *base, const char *family, int r,
                    const ggl_graph *plain, tally *t, value *keep, bool *kept) {
    static wrapped w;
    value v[N_VALUES];
    bool built[2] = {false, false};
    *kept = false;
    for (int i = 0, n = N_VALUES; i < n && !(built[0] && built[1]); i++) {
        w_init(&w, base, family);
        n = candidates(&w, v);
        if (!w_add(&w, rows[r].name, v[i]))
            return; /* the model has it */
        const asked a = verdict(arch, &w, rows[r].name);
        if (a.use != LLM_ARCH_HARMLESS && a.use != LLM_ARCH_UNREAD)
            return; /* the descriptor's */
        const bool harmless = a.use == LLM_ARCH_HARMLESS;
        if (built[harmless])
            continue;
        built[harmless] = true;
        check_build(arch, &w, rows[r].name, &v[i], &a, plain);
        t->n_harmless += harmless;
        t->n_refused += !harmless;
        if (harmless) {
            *keep = v[i];
            *kept = true;
        }
    }
}

static bool logits_of(const llm_arch *arch, const llm_arch_source *source, ggl_backend *cpu,
                      ggl_backend *fold, float *out, size_t n) {
    ggl_error err = {0};
    ggl_graph_params p = {
        .n_pos = TOY_CTX, .n_batch = 8, .n_slots = 1, .type_k = GGL_F16, .type_v = GGL_F16};
    ggl_graph *g = ggl_graph_new(&p);
    ggl_sched *s = NULL;
    ggl_sched_params sp = {.backend = &cpu, .n_backends = 1};
    const int32_t token[8] = {1, 5, 2, 7, 3, 9, 4, 6}, pos[8] = {0, 1, 2, 3, 4, 5, 6, 7},
                  slot[8] = {0};
    bool ok = llm_arch_build(arch, source, NULL, g, NULL, &err) == GGL_OK &&
              ggl_graph_finish(g, &err) == GGL_OK && ggl_graph_fold(g, fold, &err) == GGL_OK &&
              ggl_sched_new(&s, g, &sp, &err) == GGL_OK && ggl_sched_alloc(s, &err) == GGL_OK &&
              ggl_sched_set(s, "token", token, 8, &err) == GGL_OK &&
              ggl_sched_set(s, "pos", pos, 8, &err) == GGL_OK &&
              ggl_sched_set(s, "slot", slot, 8, &err) == GGL_OK &&
              ggl_sched_run(s, 8, NULL, 0, &err) == GGL_OK;
    if (CHECK_MSG(ok, "%s: %s", llm_arch_name(arch), err.msg))
        memcpy(out, ggl_sched_output(s, 0), n * sizeof *out);
    ggl_sched_free(s);
    ggl_graph_free(g);
    return ok;
}

/* All harmless keys in one model, each at a value that is harmless alone. */
static void same_logits(const llm_arch *arch, const llm_arch_source *base, const char *family,
                        const value *keep, const bool *kept) {
    static wrapped w;
    static float want[8 * 64], got[8 * 64];
    const size_t n = 8 * 52; /* the made-up models' vocabulary */
    ggl_backend *cpu = NULL, *fold = NULL;
    ggl_backend_params one = {.n_threads = 1};
    ggl_error err = {0};
    REQUIRE_OK(ggl_backend_open(&cpu, "cpu", &one, &err), &err);
    REQUIRE_OK(ggl_backend_open(&fold, "reference", NULL, &err), &err);
    w_init(&w, base, family);
    for (int r = 0; r < n_rows; r++)
        if (kept[r] && w_add(&w, rows[r].name, keep[r]) &&
            verdict(arch, &w, rows[r].name).use != LLM_ARCH_HARMLESS)
            w.n--; /* not beside the others */
    if (logits_of(arch, base, cpu, fold, want, n) && logits_of(arch, &w.source, cpu, fold, got, n))
        CHECK_MSG(memcmp(want, got, n * sizeof *want) == 0, "%s: other logits with %d more keys",
                  llm_arch_name(arch), w.n);
    CHECK_MSG(w.n > 90, "%s: only %d keys", llm_arch_name(arch), w.n);
    ggl_backend_close(cpu);
    ggl_backend_close(fold);
}

static void try_model(const llm_arch *arch, llm_arch_toy *toy, tally *t) {
    static value keep[400];
    static bool kept[400];
    ggl_error err = {0};
    ggl_graph *plain;
    llm_arch_item item = {0};
    llm_arch_key k;
    char family[65];
    llm_arch_toy_freeze(toy);
    const llm_arch_source *base = llm_arch_toy_source(toy);
    REQUIRE(base->find_key(base->ctx, "general.architecture", &k) &&
            base->get_item(base->ctx, &k, 0, &item));
    snprintf(family, sizeof family, "%.*s", (int)item.string.n, item.string.s);
    REQUIRE_OK(build(arch, base, &plain, &err), &err);
    for (int r = 0; r < n_rows; r++)
        try_row(arch, base, family, r, plain, t, &keep[r], &kept[r]);
    ggl_graph_free(plain);
    same_logits(arch, base, family, keep, kept);
}

TEST(every_row_on_every_descriptor) {
    tally t = {0};
    const char *name, *text;
    size_t n;
    read_rows();
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++)
        for (int variant = 0; variant < 2; variant++) {
            toy_model m;
            ggl_error err = {0};
            if (!CHECK_MSG(toy_open(&m, name, text, n, variant, &err), "%s: %s", name, err.msg))
                continue;
            try_model(m.arch, m.toy, &t);
            toy_close(&m);
        }
    printf("%d rows; %d models with a harmless key, %d refused\n", n_rows, t.n_harmless,
           t.n_refused);
}

/* On a descriptor that names next to nothing: with all values, alone and beside other keys. A list of
 * equal values counts as the value. */
TEST(every_condition_holds_and_fails) {
    static const char text[] =
        "arch t\nlanguage 1\nn_embd = .embedding_length\ntoken_embd [n_embd, "
        "n_vocab]\nlogits = linear(token_embd[token], token_embd)\n";
    static wrapped w;
    toy_model m;
    ggl_error err = {0};
    value v[N_VALUES];
    read_rows();
    REQUIRE(toy_open(&m, "t.arch", text, strlen(text), 0, &err));
    llm_arch_toy_freeze(m.toy);
    for (int r = 0; r < n_rows; r++) {
        int n_harmless = 0, n_refused = 0;
        for (int profile = 0; profile < N_PROFILES; profile++)
            for (int i = 0; i < N_VALUES; i++) {
                llm_arch_use use[2];
                for (int list = 0; list < 2; list++) {
                    w_init(&w, llm_arch_toy_source(m.toy), "t");
                    candidates(&w, v);
                    v[i].is_list = list;
                    w_add(&w, rows[r].name, v[i]);
                    add_profile(&w, profile);
                    w_add(&w, "attention.head_count", number(4));
                    use[list] = verdict(m.arch, &w, rows[r].name).use;
                }
                n_harmless += use[0] == LLM_ARCH_HARMLESS;
                n_refused += use[0] == LLM_ARCH_UNREAD;
                CHECK_MSG(use[0] == use[1] || v[i].type == LLM_ARCH_STRING,
                          ".%s: a list of equal values counts as another", rows[r].name);
            }
        CHECK_MSG(n_harmless > 0 || rows[r].never, "no value of .%s is harmless", rows[r].name);
        CHECK_MSG(n_refused > 0 || !rows[r].conditional, "no value of .%s is refused",
                  rows[r].name);
    }
    toy_close(&m);
}
