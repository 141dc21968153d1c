/* Random grammars against definitions that share no code with the engine: which short texts belong to a
 * grammar, and which tokens may follow. Endings are the witnesses that what a mask allows can be
 * completed. */
#include "ggl/alloc.h"
#include "grammar/grammar.h"
#include "seed.h"
#include "test.h"

/* --- characters ------------------------------------------------------------------------------- */

enum { N_CHARS = 5, MOST = 14 };
static const uint32_t chars[N_CHARS] = {'0', '7', 0xe9, 0xe8, 0x20ac};
static const char *const utf8[N_CHARS] = {"0", "7", "\xc3\xa9", "\xc3\xa8", "\xe2\x82\xac"};

/* A text as indices of characters. */
typedef struct text {
    int c[4 * MOST];
    int n;
} text;

static size_t text_bytes(const text *t, char *out) {
    size_t n = 0;
    for (int i = 0; i < t->n; i++) {
        memcpy(out + n, utf8[t->c[i]], strlen(utf8[t->c[i]]));
        n += strlen(utf8[t->c[i]]);
    }
    return n;
}

/* Reads whole characters; false: they are not of the five. */
static bool text_read(text *t, const char *s, size_t n) {
    t->n = 0;
    for (size_t i = 0; i < n;) {
        int k = 0;
        while (k < N_CHARS &&
               (strlen(utf8[k]) > n - i || memcmp(utf8[k], s + i, strlen(utf8[k])) != 0))
            k++;
        if (k == N_CHARS || t->n == 4 * MOST)
            return false;
        t->c[t->n++] = k;
        i += strlen(utf8[k]);
    }
    return true;
}

/* --- random grammars -------------------------------------------------------------------------- */

typedef struct maker {
    llm_exprs g;
    uint64_t seed;
    int n_rules;
} maker;

static int roll(maker *m, int n) {
    return (int)(test_random(&m->seed) % (unsigned)n);
}

static int32_t make_class(maker *m) {
    llm_char_range r[2];
    for (int i = 0; i < 2; i++) {
        const uint32_t c = chars[roll(m, N_CHARS)];
        r[i] = (llm_char_range){c, roll(m, 3) ? c : c + (uint32_t)roll(m, 200)};
    }
    return llm_expr_class(&m->g, r, 1 + roll(m, 2), roll(m, 6) == 0);
}

static int32_t make(maker *m, int depth, bool regular);

/* A list of members in any order. None of its parts may have the empty text. */
static int32_t make_members(maker *m, int depth) {
    int32_t part[5];
    bool required[3];
    for (int i = 0; i < 5; i++)
        part[i] = llm_expr_seq2(&m->g, make_class(m),
                                roll(m, 2) ? make(m, depth - 1, false) : LLM_EXPR_EMPTY);
    for (int i = 0; i < 3; i++)
        required[i] = roll(m, 3) == 0;
    const int min = roll(m, 3), max = roll(m, 3) ? LLM_EXPR_MANY : min + roll(m, 2);
    const llm_members list = {.member = part,
                              .required = required,
                              .n = roll(m, 4),
                              .rest = roll(m, 2) ? part[3] : LLM_EXPR_NONE,
                              .comma = part[4],
                              .min = min,
                              .max = max};
    return llm_expr_members(&m->g, &list);
}

/* Digits that are a multiple. They are intersected with a class: it knows which characters can be written. */
static int32_t make_multiple(maker *m) {
    const llm_multiple x = {.modulus = 1 + roll(m, 30), .rest = 0, .places = roll(m, 3)};
    const int32_t digits =
        llm_expr_repeat(&m->g, llm_expr_range(&m->g, '0', '9'), roll(m, 2), LLM_EXPR_MANY);
    return llm_expr_and(&m->g, (int32_t[]){digits, llm_expr_multiple(&m->g, &x)}, 2);
}

/* An expression; `regular`: without rules. */
static int32_t make(maker *m, int depth, bool regular) {
    int32_t part[3];
    const int kind = roll(m, depth > 0 ? (regular ? 8 : 10) : 3);
    if (kind == 9)
        return make_members(m, depth);
    if (kind == 8 || (kind == 2 && !regular))
        return llm_expr_rule(&m->g, roll(m, m->n_rules));
    if (kind < 2)
        return make_class(m);
    if (kind == 2)
        return LLM_EXPR_EMPTY;
    if (kind == 7 && roll(m, 3) == 0)
        return make_multiple(m);
    if (kind == 7) {
        part[0] = make(m, depth - 1, true);
        part[1] = make(m, depth - 1, true);
        return roll(m, 2) ? llm_expr_and(&m->g, part, 2) : llm_expr_not(&m->g, part[0]);
    }
    for (int i = 0; i < 3; i++)
        part[i] = make(m, depth - 1, regular);
    if (kind == 6) {
        const int min = roll(m, 3), max = roll(m, 3) ? min + roll(m, 3) : LLM_EXPR_MANY;
        return llm_expr_repeat(&m->g, part[0], min, max);
    }
    const int n = 2 + roll(m, 2);
    return kind < 5 ? llm_expr_seq(&m->g, part, n) : llm_expr_alt(&m->g, part, n);
}

static int32_t make_grammar(maker *m) {
    m->n_rules = 1 + roll(m, 4);
    for (int k = 0; k < m->n_rules; k++)
        llm_rule_new(&m->g, (ggl_str){"r", 1});
    for (int k = 0; k < m->n_rules; k++)
        llm_rule_define(&m->g, k, make(m, 3, false));
    return llm_expr_rule(&m->g, 0);
}

static void print_expr(const llm_exprs *g, int32_t id) {
    static const char *const names[] = {"none", "empty", "class",   "seq",  "alt",     "repeat",
                                        "and",  "not",   "members", "rule", "multiple"};
    const llm_expr *e = &g->node[id];
    fprintf(stderr, " (%s", names[e->kind]);
    for (int32_t i = 0; e->kind == LLM_EXPR_KIND_CLASS && i < e->n; i++)
        fprintf(stderr, " %X-%X", g->range[e->first + i].first, g->range[e->first + i].last);
    if (e->kind == LLM_EXPR_KIND_REPEAT)
        fprintf(stderr, " %d %d", e->min, e->max);
    if (e->kind == LLM_EXPR_KIND_RULE)
        fprintf(stderr, " %d", e->first);
    if (e->kind == LLM_EXPR_KIND_MEMBERS || e->kind == LLM_EXPR_KIND_MULTIPLE)
        fprintf(stderr, " %d of %d %d", e->required, e->min, e->max);
    for (int32_t i = 0;
         e->kind >= LLM_EXPR_KIND_SEQ && e->kind <= LLM_EXPR_KIND_MEMBERS && i < e->n; i++)
        print_expr(g, g->arg[e->first + i]);
    fprintf(stderr, ")");
}

static void print_grammar(const llm_exprs *g) {
    for (size_t k = 0; k < g->n_rules; k++) {
        fprintf(stderr, "rule %zu:", k);
        print_expr(g, g->rule[k].body);
        fprintf(stderr, "\n");
    }
}

/* --- texts of an expression, by definition ---------------------------------------------------- */

/* is[e][i][k]: characters i .. k of the text are a text of e. */
typedef bool spans[MOST + 1][MOST + 1];

typedef struct judge {
    const llm_exprs *g;
    spans *is; /* [n_nodes] */
    const text *t;
    bool can[N_CHARS]; /* characters that can be written */
} judge;

static bool in_class(const judge *j, const llm_expr *e, int c) {
    bool in = false;
    for (int32_t i = 0; i < e->n; i++)
        in = in || (chars[c] >= j->g->range[e->first + i].first &&
                    chars[c] <= j->g->range[e->first + i].last);
    return in && j->can[c];
}

/* `n` parts in a row from i to k; all are part[0] if `same`. */
static bool in_row(const judge *j, const int32_t *part, int n, bool same, int i, int k) {
    if (n == 0)
        return i == k;
    for (int m = i; m <= k; m++)
        if (j->is[part[0]][i][m] && in_row(j, same ? part : part + 1, n - 1, same, m, k))
            return true;
    return false;
}

static bool in_repeat(const judge *j, const llm_expr *e, int i, int k) {
    /* beyond one part for each character, more parts only add empty ones */
    const int most = e->max == LLM_EXPR_MANY ? e->min + k - i : e->max;
    for (int n = e->min; n <= most; n++)
        if (in_row(j, &j->g->arg[e->first], n, true, i, k))
            return true;
    return false;
}

/* Members from i to k; `used`: bits of those that were there, `count` in all. */
static bool in_members(const judge *j, const llm_expr *e, int i, int k, unsigned used, int count) {
    const int32_t *arg = &j->g->arg[e->first]; /* comma, rest, members */
    const unsigned needed = (1u << e->required) - 1;
    if (i == k)
        return count >= e->min && (used & needed) == needed;
    if (e->max != LLM_EXPR_MANY && count >= e->max)
        return false;
    for (int m = i; m <= k; m++) {
        if (count > 0 ? !j->is[arg[0]][i][m] : m > i)
            continue;
        for (int p = 1; p < e->n; p++) {
            const unsigned bit = p > 1 ? 1u << (p - 2) : 0;
            for (int q = m + 1; q <= k && !(used & bit); q++)
                if (j->is[arg[p]][m][q] && in_members(j, e, q, k, used | bit, count + 1))
                    return true;
        }
    }
    return false;
}

/* Multiples, by the value of their digits; there is no point among the characters. */
static bool in_multiple(const judge *j, const llm_expr *e, int i, int k) {
    const llm_multiple m = llm_expr_as_multiple(e);
    int64_t value = 0;
    for (; i < k; i++) {
        const uint32_t c = chars[j->t->c[i]];
        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (c - '0');
    }
    for (int32_t p = 0; p < m.places; p++)
        value *= 10;
    return value % m.modulus == 0;
}

static bool all_can(const judge *j, int i, int k) {
    for (; i < k; i++)
        if (!j->can[j->t->c[i]])
            return false;
    return true;
}

static bool by_definition(const judge *j, const llm_expr *e, int i, int k) {
    const int32_t *arg = j->g->arg ? j->g->arg + e->first : NULL;
    bool any = false, all = true;
    for (int32_t a = 0; (e->kind == LLM_EXPR_KIND_ALT || e->kind == LLM_EXPR_KIND_AND) && a < e->n;
         a++) {
        any = any || j->is[arg[a]][i][k];
        all = all && j->is[arg[a]][i][k];
    }
    switch (e->kind) {
    case LLM_EXPR_KIND_NONE:
        return false;
    case LLM_EXPR_KIND_EMPTY:
        return i == k;
    case LLM_EXPR_KIND_CLASS:
        return k == i + 1 && in_class(j, e, j->t->c[i]);
    case LLM_EXPR_KIND_SEQ:
        return in_row(j, arg, e->n, false, i, k);
    case LLM_EXPR_KIND_ALT:
        return any;
    case LLM_EXPR_KIND_REPEAT:
        return in_repeat(j, e, i, k);
    case LLM_EXPR_KIND_AND:
        return all;
    case LLM_EXPR_KIND_NOT:
        return !j->is[arg[0]][i][k] && all_can(j, i, k);
    case LLM_EXPR_KIND_MEMBERS:
        return in_members(j, e, i, k, 0, 0);
    case LLM_EXPR_KIND_RULE:
        return j->is[j->g->rule[e->first].body][i][k];
    case LLM_EXPR_KIND_MULTIPLE:
        return in_multiple(j, e, i, k);
    }
    return false;
}

/* True if the whole text is one of `root`. Rules are not under AND and NOT here, so that sets only
 * grow from pass to pass. */
static bool belongs(judge *j, int32_t root, const text *t) {
    j->t = t;
    memset(j->is, 0, j->g->n_nodes * sizeof *j->is);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t e = 0; e < j->g->n_nodes; e++)
            for (int i = 0; i <= t->n; i++)
                for (int k = i; k <= t->n; k++) {
                    const bool is = by_definition(j, &j->g->node[e], i, k);
                    changed = changed || is != j->is[e][i][k];
                    j->is[e][i][k] = is;
                }
    }
    return j->is[root][0][t->n];
}

/* --- all short texts -------------------------------------------------------------------------- */

enum { SHORT = 4, N_SHORT = 1 + 5 + 25 + 125 + 625 };

typedef struct texts {
    char s[N_SHORT][3 * SHORT];
    size_t n[N_SHORT];
    bool in[N_SHORT];
    int count;
} texts;

static void next_text(text *t) {
    int i = t->n - 1;
    while (i >= 0 && t->c[i] == N_CHARS - 1)
        t->c[i--] = 0;
    if (i >= 0)
        t->c[i]++;
    else
        t->c[t->n++] = 0;
}

static void list_texts(judge *j, int32_t root, texts *all) {
    text t = {.n = 0};
    for (all->count = 0; all->count < N_SHORT; all->count++, next_text(&t)) {
        all->n[all->count] = text_bytes(&t, all->s[all->count]);
        all->in[all->count] = belongs(j, root, &t);
    }
}

/* True if a short text of the grammar begins with s. */
static bool begins_one(const texts *all, const char *s, size_t n) {
    for (int i = 0; i < all->count; i++)
        if (all->in[i] && all->n[i] >= n && memcmp(all->s[i], s, n) == 0)
            return true;
    return false;
}

/* --- vocabularies ----------------------------------------------------------------------------- */

enum { N_BYTES = 256, N_EXTRA = 24, N_TOKENS = N_BYTES + N_EXTRA + 1 };

typedef struct vocabulary {
    char text[N_TOKENS][16];
    ggl_str str[N_TOKENS];
    bool eog[N_TOKENS];
    int n;
    llm_vocab *v;
} vocabulary;

static void add_token(vocabulary *v, const char *s, size_t n) {
    memcpy(v->text[v->n], s, n);
    v->str[v->n] = (ggl_str){v->text[v->n], n};
    v->n++;
}

/* Pieces of texts. With all bytes they may begin and end within characters; otherwise characters that
 * are not `can` appear only in longer tokens, and as some of their bytes, which is not enough. */
static void make_vocabulary(vocabulary *v, maker *m, bool bytes, bool can[N_CHARS]) {
    for (unsigned b = 0; bytes && b < N_BYTES; b++)
        add_token(v, (const char[]){(char)b}, 1);
    const unsigned lacking = 0x80 + (unsigned)roll(m, 0x40);
    const bool some_bytes = !bytes && roll(m, 2) > 0;
    for (unsigned b = 0x80; some_bytes && b < N_BYTES; b++)
        if (b != lacking)
            add_token(v, (const char[]){(char)b}, 1);
    for (int c = 0; c < N_CHARS; c++) {
        can[c] = bytes || roll(m, 3) > 0;
        if (can[c])
            add_token(v, utf8[c], strlen(utf8[c]));
    }
    for (int k = 0; k < N_EXTRA - N_CHARS; k++) {
        text t = {.n = (bytes ? 1 : 2) + roll(m, 3)};
        char s[16];
        for (int i = 0; i < t.n; i++)
            t.c[i] = roll(m, N_CHARS);
        const size_t n = text_bytes(&t, s);
        const size_t from = bytes ? (size_t)roll(m, 2) : 0, to = bytes ? (size_t)roll(m, 2) : 0;
        if (from + to < n)
            add_token(v, s + from, n - from - to);
    }
    v->eog[v->n] = true;
    add_token(v, "</s>", 4);
    ggl_error err = {0};
    CHECK_OK(llm_vocab_from_texts(&v->v, v->str, v->eog, v->n, &err), &err);
}

/* --- the checks ------------------------------------------------------------------------------- */

typedef struct trial {
    maker m;
    int32_t root;
    judge j;
    texts all;
    vocabulary v;
    bool bytes; /* it has all of them */
    llm_matcher *matcher;
    char s[64]; /* the text so far */
    size_t n;
} trial;

static bool bit(const uint32_t *bits, int32_t id) {
    return bits[id / 32] >> (id % 32) & 1;
}

/* The engine's judgement of all short texts. */
static void check_texts(trial *t) {
    for (int i = 0; i < t->all.count; i++) {
        size_t n;
        ggl_error err = {0};
        llm_matcher_reset(t->matcher);
        CHECK_OK(llm_matcher_accept_bytes(t->matcher, t->all.s[i], t->all.n[i], &n, &err), &err);
        const bool in = n == t->all.n[i] && llm_matcher_is_complete(t->matcher);
        CHECK_MSG(in == t->all.in[i], "'%.*s' %s", (int)t->all.n[i], t->all.s[i],
                  in ? "is accepted" : "is refused");
        CHECK_MSG(n == t->all.n[i] || !begins_one(&t->all, t->all.s[i], n + 1),
                  "'%.*s': stopped after %zu bytes", (int)t->all.n[i], t->all.s[i], n);
    }
}

/* The ending that a matcher plans completes its text, which begins with s, by definition. */
static void check_ending(trial *t, llm_matcher *m, const char *s, size_t n) {
    char whole[4 * MOST * 3];
    const int32_t *id;
    int32_t n_ids;
    ggl_error err = {0};
    text x;
    memcpy(whole, s, n);
    REQUIRE_OK(llm_matcher_ending(m, &id, &n_ids, &err), &err);
    for (int32_t i = 0; i < n_ids && n + 16 < sizeof whole; i++) {
        memcpy(whole + n, t->v.str[id[i]].s, t->v.str[id[i]].n);
        n += t->v.str[id[i]].n;
    }
    if (!text_read(&x, whole, n) || x.n > MOST)
        return; /* other characters, or too long to judge */
    CHECK_MSG(belongs(&t->j, t->root, &x), "the ending '%.*s' fits nothing", (int)n, whole);
}

static void check_token(trial *t, int32_t id, bool allowed) {
    const ggl_str s = t->v.str[id];
    ggl_error err = {0};
    llm_matcher *m;
    memcpy(t->s + t->n, s.s, s.n);
    REQUIRE_OK(llm_matcher_copy(&m, t->matcher, &err), &err);
    const bool accepted = llm_matcher_accept_token(m, id, NULL) == GGL_OK;
    CHECK_MSG(accepted == allowed, "after '%.*s' the mask %s token '%.*s', the matcher %s",
              (int)t->n, t->s, allowed ? "allows" : "forbids", (int)s.n, s.s,
              accepted ? "takes it" : "does not");
    text whole;
    if (accepted)
        check_ending(t, m, t->s, t->n + s.n);
    else if (t->bytes || text_read(&whole, s.s, s.n)) /* no others are used */
        CHECK_MSG(!begins_one(&t->all, t->s, t->n + s.n), "after '%.*s' token '%.*s' is forbidden",
                  (int)t->n, t->s, (int)s.n, s.s);
    llm_matcher_free(m);
}

/* Walks by masks at random, and looks at every token at every step. */
static void check_masks(trial *t) {
    uint32_t allowed[(N_TOKENS + 31) / 32];
    ggl_error err = {0};
    llm_matcher_reset(t->matcher);
    t->n = 0;
    for (int step = 0; step < 4 && test_failures == 0; step++) {
        int32_t found[N_TOKENS], n = 0;
        REQUIRE_OK(llm_matcher_mask(t->matcher, LLM_MATCHER_NO_BUDGET, allowed, &err), &err);
        for (int32_t id = 0; id < t->v.n - 1; id++) {
            check_token(t, id, bit(allowed, id));
            if (bit(allowed, id))
                found[n++] = id;
        }
        CHECK(bit(allowed, t->v.n - 1) == llm_matcher_is_complete(t->matcher));
        CHECK_MSG(n > 0 || llm_matcher_is_complete(t->matcher), "nothing is allowed");
        CHECK((n == 0) == llm_matcher_must_end(t->matcher));
        if (n == 0)
            return;
        const int32_t id = found[roll(&t->m, n)];
        memcpy(t->s + t->n, t->v.str[id].s, t->v.str[id].n);
        t->n += t->v.str[id].n;
        CHECK_OK(llm_matcher_accept_token(t->matcher, id, &err), &err);
    }
}

/* With a budget, at random, the text is complete when the budget is used up. */
static void check_budget(trial *t, int more) {
    uint32_t allowed[(N_TOKENS + 31) / 32];
    const int32_t *id;
    int32_t left;
    ggl_error err = {0};
    llm_matcher_reset(t->matcher);
    REQUIRE_OK(llm_matcher_ending(t->matcher, &id, &left, &err), &err);
    for (left += more; left > 0; left--) {
        int32_t found[N_TOKENS], n = 0;
        REQUIRE_OK(llm_matcher_mask(t->matcher, left, allowed, &err), &err);
        for (int32_t k = 0; k < t->v.n - 1; k++)
            if (bit(allowed, k))
                found[n++] = k;
        if (n == 0)
            break;
        CHECK_OK(llm_matcher_accept_token(t->matcher, found[roll(&t->m, n)], &err), &err);
    }
    CHECK_MSG(llm_matcher_is_complete(t->matcher), "incomplete, with %d tokens left", (int)left);
}

static void run_trial(trial *t, uint64_t seed, bool bytes) {
    ggl_error err = {0};
    llm_grammar *g = NULL;
    t->m.seed = seed;
    t->bytes = bytes;
    t->root = make_grammar(&t->m);
    make_vocabulary(&t->v, &t->m, bytes, t->j.can);
    t->j.g = &t->m.g;
    t->j.is = ggl_calloc(t->m.g.n_nodes, sizeof *t->j.is);
    list_texts(&t->j, t->root, &t->all);
    ggl_status st = llm_grammar_compile(&g, &t->m.g, t->root, &err);
    if (st == GGL_OK)
        st = llm_matcher_new(&t->matcher, g, t->v.v, &err);
    CHECK_MSG(st == GGL_OK || !begins_one(&t->all, "", 0), "refused: %s", err.msg);
    if (st == GGL_OK) {
        check_texts(t);
        check_masks(t);
        check_budget(t, 0);
        check_budget(t, roll(&t->m, 6));
    }
    if (test_failures > 0)
        print_grammar(&t->m.g);
    if (test_failures > 0)
        fprintf(stderr, "grammar %llu%s\n", (unsigned long long)seed, bytes ? " with bytes" : "");
    llm_matcher_free(t->matcher);
    llm_grammar_free(g);
    llm_vocab_free(t->v.v);
    llm_exprs_fini(&t->m.g);
    ggl_free(t->j.is);
}

static void run_trials(int n, bool bytes) {
    const char *one = getenv("GGL_TEST_GRAMMAR");
    const uint64_t first = one ? strtoull(one, NULL, 0) : sample_seed() * 1000000;
    for (int i = 0; i < (one ? 1 : TEST_SANITIZED ? n / 10 : n) && test_failures == 0; i++) {
        trial *t = ggl_calloc(1, sizeof *t);
        run_trial(t, first + (uint64_t)i, bytes);
        ggl_free(t);
    }
}

LONG_TEST(vocabularies_with_all_bytes) {
    run_trials(300, true);
}

LONG_TEST(vocabularies_that_lack_characters) {
    run_trials(300, false);
}
