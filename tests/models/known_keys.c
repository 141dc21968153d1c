/* The table of known keys (models/compile/known_keys.arch): every row on every built-in descriptor. With a key
 * that the table calls harmless a made-up model gives the same graph and the same logits, bit for
 * bit; with a value that is not harmless it is refused. Every condition holds for some value and
 * not for another. */
#include <ctype.h>
#include <math.h>

#include "compile/compile.h"
#include "ggl/internal/fold.h"
#include "known_source.h"
#include "sample.h"
#include "test.h"
#include "toy_run.h"
#include "llm/internal/text_inputs.h"

/* --- the rows --------------------------------------------------------------------------------- */

typedef struct row {
    char name[80]; /* without the dot; '*' of a pattern replaced by something that fits */
    bool conditional, never;
    bool by_descriptor; /* the condition asks what the descriptor reads, and no value */
} row;

static row rows[400];
static int n_rows;

static void add_row(const char *name, size_t n, const char *cond) {
    row *r = &rows[n_rows];
    size_t used = 0;
    REQUIRE(n_rows < (int)(sizeof rows / sizeof *rows) && n < sizeof r->name - 8);
    for (size_t i = 0; i < n; i++)
        used += (size_t)sprintf(r->name + used, name[i] == '*' ? "some" : "%c", name[i]);
    r->conditional = cond != NULL;
    r->never = cond && strncmp(cond, " if false", 9) == 0;
    r->by_descriptor = cond && strncmp(cond, " if not reads(", 14) == 0;
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
            add_row(name, m, cond);
            s = name + m;
        }
    }
    free(text);
    CHECK_MSG(n_rows > 120, "%d rows", n_rows);
}

/* --- values to try ---------------------------------------------------------------------------- */

static double number_of(wrapped *w, const char *name, double otherwise) {
    char full[128];
    llm_arch_key k;
    llm_arch_item item;
    snprintf(full, sizeof full, "%.40s.%.80s", w->family, name);
    bool there = w->source.find_key(w, full, &k) && !k.is_list && k.type == LLM_ARCH_NUMBER &&
                 w->source.get_item(w, &k, 0, &item);
    return there ? item.number : otherwise;
}

enum { N_VALUES = 23 };

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
    out[n++] = (value){.is_list = true, .has_fourth = true, .number = 8};
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
        w_add(w, "attention.head_count", number(4));
    } else if (profile == EXPERTS) {
        w_add(w, "expert_count", number(8));
        w_add(w, "expert_group_count", number(4));
        w_add(w, "wkv.head_size", number(64));
    }
}

/* --- verdicts --------------------------------------------------------------------------------- */

/* Judges keys of `w`, whatever they are at the time. The table is parsed once. */
typedef struct asking {
    arch_eval ev;
    arch_judge *judge;
    ggl_error err;
} asking;

static void asking_init(asking *a, const llm_arch *arch, const wrapped *w) {
    *a = (asking){.ev = {.arch = arch, .src = &w->source, .layer = -1}};
    a->ev.err = &a->err;
    a->ev.arena.limit = ARCH_MAX_MEMORY;
    REQUIRE_OK((ggl_status)(llm_arch_find_family(&a->ev) && llm_arch_eval_init(&a->ev)
                                ? GGL_OK
                                : a->ev.status),
               &a->err);
    REQUIRE((a->judge = llm_arch_judge_new(&a->ev)));
}

static void asking_fini(asking *a) {
    llm_arch_judge_free(a->judge);
    llm_arch_known_free(a->ev.known);
    llm_arch_eval_fini(&a->ev);
}

static llm_arch_judged verdict(asking *a, const wrapped *w, const char *name) {
    static char full[128];
    snprintf(full, sizeof full, "%.40s.%.80s", w->family, name);
    a->ev.steps = 0;
    const llm_arch_judged k = llm_arch_judge_key(a->judge, (ggl_str){full, strlen(full)});
    CHECK_OK(a->ev.status, &a->err);
    return k;
}

/* --- all descriptors -------------------------------------------------------------------------- */

typedef struct tally {
    int n_built, n_named[400];                    /* n_named: by a descriptor or a model */
    int n_harmless[400], n_refused[400];          /* of a row: models */
    bool alone_harmless[400], alone_refused[400]; /* built with this key only */
} tally;

/* Results of try_row for a row and a model. */
typedef struct found {
    value harmless, refused;
    bool has_harmless, has_refused; /* without other keys */
} found;

/* The model runs as before with these keys. */
static void check_same(const llm_arch *arch, const wrapped *w, const ggl_graph *plain,
                       const char *what) {
    ggl_error err = {0};
    ggl_graph *g;
    ggl_status s = build(arch, &w->source, &g, &err);
    if (CHECK_MSG(s == GGL_OK, "%s: %s: %s", llm_arch_name(arch), what, err.msg))
        CHECK_MSG(same_graph(plain, g), "%s: %s: another graph", llm_arch_name(arch), what);
    ggl_graph_free(g);
}

static void check_alone(const llm_arch *arch, wrapped *w, const llm_arch_source *base,
                        const char *family, int r, const value *v, const char *reason,
                        const ggl_graph *plain) {
    ggl_error err = {0};
    ggl_graph *g;
    char text[64];
    w_init(w, base, family);
    w_add(w, rows[r].name, *v);
    if (!reason) {
        check_same(arch, w, plain, rows[r].name);
        return;
    }
    ggl_status s = build(arch, &w->source, &g, &err);
    CHECK_MSG(s == GGL_FORMAT && strstr(err.msg, rows[r].name) && strstr(err.msg, reason) &&
                  reason[0],
              "%s: .%s = %s: %s", llm_arch_name(arch), rows[r].name, value_text(v, text), err.msg);
    ggl_graph_free(g);
}

/* All values of a row beside the keys of a profile; ones that say something new are built alone.
 * False: the key is the model's or the descriptor's. */
static bool try_row(asking *a, wrapped *w, const llm_arch_source *base, const char *family, int r,
                    int profile, const ggl_graph *plain, tally *t, found *f) {
    value v[N_VALUES];
    for (int i = 0; i < N_VALUES; i++) {
        w_init(w, base, family);
        candidates(w, v);
        if (!w_add(w, rows[r].name, v[i]))
            return false;
        add_profile(w, profile);
        const llm_arch_judged k = verdict(a, w, rows[r].name);
        if (k.use != LLM_ARCH_HARMLESS && k.use != LLM_ARCH_UNREAD)
            return false;
        const bool harmless = k.use == LLM_ARCH_HARMLESS;
        t->n_harmless[r] += harmless;
        t->n_refused[r] += !harmless;
        bool *has = harmless ? &f->has_harmless : &f->has_refused;
        bool *alone = harmless ? &t->alone_harmless[r] : &t->alone_refused[r];
        if (profile != ALONE || *has)
            continue;
        *has = true;
        *(harmless ? &f->harmless : &f->refused) = v[i];
        if (*alone)
            continue;
        *alone = true;
        t->n_built++;
        check_alone(a->ev.arch, w, base, family, r, &v[i], harmless ? NULL : k.reason, plain);
    }
    return true;
}

static bool logits_of(const llm_arch *arch, const llm_arch_source *source, ggl_backend *cpu,
                      ggl_backend *fold, float *out, size_t n) {
    ggl_error err = {0};
    ggl_graph_params p = {.size = sizeof p,
                          .n_pos = TOY_CTX,
                          .n_batch = 8,
                          .n_slots = 1,
                          .type_k = GGL_F16,
                          .type_v = GGL_F16};
    ggl_graph *g = ggl_graph_new(&p);
    ggl_sched *s = NULL;
    ggl_sched_params sp = {.size = sizeof sp, .backend = &cpu, .n_backends = 1};
    const int32_t token[8] = {1, 5, 2, 7, 3, 9, 4, 6};
    const llm_text_inputs x = {.token = token, .n = 8};
    bool ok = llm_arch_build(arch, source, NULL, g, NULL, &err) == GGL_OK &&
              ggl_graph_finish(g, &err) == GGL_OK && ggl_graph_fold(g, fold, &err) == GGL_OK &&
              ggl_sched_new(&s, g, &sp, &err) == GGL_OK && ggl_sched_alloc(s, &err) == GGL_OK &&
              llm_text_inputs_set(&x, s, g, &err) == GGL_OK &&
              ggl_sched_run(s, 8, NULL, 0, &err) == GGL_OK;
    if (CHECK_MSG(ok, "%s: %s", llm_arch_name(arch), err.msg))
        memcpy(out, ggl_sched_output(s, 0), n * sizeof *out);
    ggl_sched_free(s);
    ggl_graph_free(g);
    return ok;
}

/* All harmless keys in one model, each at a value that is harmless alone: those that are not beside
 * the others are built alone. */
static void same_logits(asking *a, wrapped *w, const llm_arch_source *base, const char *family,
                        const found *f, const ggl_graph *plain) {
    static float want[8 * 64], got[8 * 64];
    static wrapped other;
    const llm_arch *arch = a->ev.arch;
    const size_t n = 8 * 52; /* the made-up models' vocabulary */
    ggl_backend *cpu = NULL, *fold = NULL;
    ggl_backend_params one = {.size = sizeof one, .n_threads = 1};
    ggl_error err = {0};
    REQUIRE_OK(ggl_backend_open(&cpu, "cpu", &one, &err), &err);
    REQUIRE_OK(ggl_backend_open(&fold, "reference", NULL, &err), &err);
    w_init(w, base, family);
    for (int r = 0; r < n_rows; r++)
        if (f[r].has_harmless && w_add(w, rows[r].name, f[r].harmless) &&
            verdict(a, w, rows[r].name).use != LLM_ARCH_HARMLESS) {
            w->n--;
            check_alone(arch, &other, base, family, r, &f[r].harmless, NULL, plain);
        }
    check_same(arch, w, plain, "all harmless keys");
    if (logits_of(arch, base, cpu, fold, want, n) && logits_of(arch, &w->source, cpu, fold, got, n))
        CHECK_MSG(memcmp(want, got, n * sizeof *want) == 0, "%s: other logits with %d more keys",
                  llm_arch_name(arch), w->n);
    ggl_backend_close(cpu);
    ggl_backend_close(fold);
}

/* All refused keys in one model: the error counts each of them. */
static void count_refused(asking *a, wrapped *w, const llm_arch_source *base, const char *family,
                          const found *f) {
    ggl_error err = {0};
    ggl_graph *g;
    char words[80];
    int n = 0;
    w_init(w, base, family);
    for (int r = 0; r < n_rows; r++)
        if (f[r].has_refused)
            w_add(w, rows[r].name, f[r].refused);
    for (int r = 0; r < n_rows; r++)
        n += f[r].has_refused && verdict(a, w, rows[r].name).use == LLM_ARCH_UNREAD;
    ggl_status s = build(a->ev.arch, &w->source, &g, &err);
    snprintf(words, sizeof words, "wrapped: error: %d keys of this file are not read by", n);
    CHECK_MSG(n > 1 && s == GGL_FORMAT && strstr(err.msg, words), "%s: %d keys: %s",
              llm_arch_name(a->ev.arch), n, err.msg);
    ggl_graph_free(g);
}

static void try_model(const llm_arch *arch, llm_arch_toy *toy, tally *t) {
    static wrapped w;
    static found f[400];
    asking a;
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
    w_init(&w, base, family);
    asking_init(&a, arch, &w);
    for (int r = 0; r < n_rows; r++) {
        f[r] = (found){.has_harmless = false};
        for (int p = ALONE; p < N_PROFILES; p++)
            if (!try_row(&a, &w, base, family, r, p, plain, t, &f[r])) {
                f[r] = (found){.has_harmless = false};
                t->n_named[r]++;
                break;
            } else if (f[r].has_harmless != rows[r].never &&
                       f[r].has_refused == rows[r].conditional)
                break; /* nothing to learn from other keys beside it */
    }
    same_logits(&a, &w, base, family, f, plain);
    count_refused(&a, &w, base, family, f);
    asking_fini(&a);
    ggl_graph_free(plain);
}

/* Each row was harmless on some descriptor if it can be, and refused on one if it can be. */
static void check_rows(const tally *t) {
    for (int r = 0; r < n_rows; r++) {
        CHECK_MSG((t->n_harmless[r] > 0) == !rows[r].never, ".%s: %d times harmless", rows[r].name,
                  t->n_harmless[r]);
        CHECK_MSG((t->n_refused[r] > 0) == rows[r].conditional, ".%s: %d times refused",
                  rows[r].name, t->n_refused[r]);
    }
}

/* Reads one key, so that the rows decide about all others. */
static const char little[] = "arch t\nlanguage 1\nn_embd = .embedding_length\n"
                             "token_embd [n_embd, n_vocab]\n"
                             "logits = linear(token_embd[token], token_embd)\n";

static void try_descriptor(const char *name, const char *text, size_t n, tally *t) {
    for (int variant = 0; variant < 2; variant++) {
        toy_model m;
        ggl_error err = {0};
        if (!CHECK_MSG(toy_open(&m, name, text, n, variant, &err), "%s: %s", name, err.msg))
            continue;
        try_model(m.arch, m.toy, t);
        toy_close(&m);
    }
}

TEST(every_row_on_every_descriptor) {
    static tally t;
    const char *name, *text;
    size_t n;
    read_rows();
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++)
        if (!TEST_SANITIZED || sampled(k, 25))
            try_descriptor(name, text, n, &t);
    try_descriptor("t.arch", little, strlen(little), &t);
    if (!TEST_SANITIZED) /* what a sample does not show */
        check_rows(&t);
    printf("%d rows; %d models with one key\n", n_rows, t.n_built);
}

/* --- tests of their own -------------------------------------------------------------------------- */

/* Families that do not rotate say so. */
TEST(no_rotation) {
    static const char *const files[] = {"bloom.arch", "gpt2.arch", "jais.arch",   "jamba.arch",
                                        "mamba.arch", "mpt.arch",  "refact.arch", "starcoder.arch"};
    static wrapped w;
    const char *name, *text;
    size_t n;
    int tried = 0;
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++)
        for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
            toy_model m;
            ggl_error err = {0};
            ggl_graph *plain;
            char family[32];
            if (strcmp(name, files[i]) != 0)
                continue;
            REQUIRE(toy_open(&m, name, text, n, 1, &err));
            llm_arch_toy_freeze(m.toy);
            snprintf(family, sizeof family, "%.*s", (int)strcspn(name, "."), name);
            REQUIRE_OK(build(m.arch, llm_arch_toy_source(m.toy), &plain, &err), &err);
            w_init(&w, llm_arch_toy_source(m.toy), family);
            w_add(&w, "rope.freq_base", number(500000));
            w_add(&w, "rope.dimension_count", number(3));
            w_add(&w, "rope.scaling.type", (value){.type = LLM_ARCH_STRING, .string = "yarn"});
            w_add(&w, "rope.scaling.factor", number(4));
            check_same(m.arch, &w, plain, "keys of the rotation");
            ggl_graph_free(plain);
            toy_close(&m);
            tried++;
        }
    CHECK(tried == (int)(sizeof files / sizeof *files));
}

/* On a descriptor that names next to nothing: with all values, alone and beside other keys. A list of
 * equal values counts as the value. */
TEST(every_condition_holds_and_fails) {
    static wrapped w;
    toy_model m;
    asking a;
    ggl_error err = {0};
    value v[N_VALUES];
    read_rows();
    REQUIRE(toy_open(&m, "t.arch", little, strlen(little), 0, &err));
    llm_arch_toy_freeze(m.toy);
    w_init(&w, llm_arch_toy_source(m.toy), "t");
    asking_init(&a, m.arch, &w);
    for (int r = 0; r < n_rows; r++) {
        int n_harmless = 0, n_refused = 0;
        for (int profile = 0; profile < N_PROFILES; profile++)
            for (int i = 0; i < N_VALUES; i++) {
                llm_arch_use use[2];
                for (int list = 0; list < 2; list++) {
                    w_init(&w, llm_arch_toy_source(m.toy), "t");
                    candidates(&w, v);
                    v[i].is_list = list || v[i].has_fourth;
                    w_add(&w, rows[r].name, v[i]);
                    add_profile(&w, profile);
                    w_add(&w, "attention.head_count", number(4));
                    use[list] = verdict(&a, &w, rows[r].name).use;
                }
                n_harmless += use[0] == LLM_ARCH_HARMLESS;
                n_refused += use[0] == LLM_ARCH_UNREAD;
                CHECK_MSG(use[0] == use[1] || v[i].type == LLM_ARCH_STRING,
                          ".%s: a list of equal values counts as another", rows[r].name);
            }
        CHECK_MSG(n_harmless > 0 || rows[r].never, "no value of .%s is harmless", rows[r].name);
        CHECK_MSG(n_refused > 0 || !rows[r].conditional || rows[r].by_descriptor,
                  "no value of .%s is refused", rows[r].name);
    }
    asking_fini(&a);
    toy_close(&m);
}

/* The name that is meant is looked for as often as it is shown: a file may have any number of unread keys. */
TEST(names_that_are_meant) {
    static wrapped w;
    toy_model m;
    asking a;
    ggl_error err = {0};
    REQUIRE(toy_open(&m, "t.arch", little, strlen(little), 0, &err));
    llm_arch_toy_freeze(m.toy);
    w_init(&w, llm_arch_toy_source(m.toy), "t");
    asking_init(&a, m.arch, &w);
    for (int i = 0; i < 30; i++) {
        const char *near = verdict(&a, &w, "pooling_typo").near;
        CHECK(i < 20 ? near && strcmp(near, "pooling_type") == 0 : !near);
    }
    asking_fini(&a);
    toy_close(&m);
}
