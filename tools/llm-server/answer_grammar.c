#include "answer_grammar.h"

#include <string.h>

#include "ggl/internal/os_thread.h"
#include "job_parts.h"

/* A grammar. It is freed when it is not in the list of kept grammars and no thread uses it. */
struct answer_grammar {
    llm_grammar *grammar;
    answer_form form;
    char *text;    /* its text */
    uint64_t used; /* the time of the last use, as a count */
    int n_users;   /* threads */
    memory_hold held;
};

struct answer_grammars {
    os_mutex lock; /* of all that follows */
    answer_grammar *kept[GRAMMARS_KEPT];
    uint64_t clock, n_compiled;
    memory *memory;
};

answer_grammars *answer_grammars_new(void) {
    answer_grammars *g = ggl_calloc(1, sizeof *g);
    if (g)
        ggl_os_mutex_init(&g->lock);
    return g;
}

static void free_kept(answer_grammar *k) {
    if (!k)
        return;
    llm_grammar_free(k->grammar);
    memory_force(&k->held, 0);
    ggl_free(k->text);
    ggl_free(k);
}

void answer_grammars_free(answer_grammars *g) {
    if (!g)
        return;
    for (int i = 0; i < GRAMMARS_KEPT; i++)
        free_kept(g->kept[i]);
    ggl_os_mutex_destroy(&g->lock);
    ggl_free(g);
}

void answer_grammars_limit(answer_grammars *g, memory *m) {
    g->memory = m;
}

uint64_t answer_grammars_n_compiled(const answer_grammars *g) {
    return g->n_compiled;
}

ggl_str answer_schema_of(ask_form form, ggl_str text) {
    static const char object[] = "{\"type\": \"object\"}";
    return form == ASK_JSON ? (ggl_str){object, sizeof object - 1} : text;
}

static ggl_status compile(llm_grammar **out, const answer_form *form, ggl_error *err) {
    const bool is_gbnf = form->form == ASK_GBNF;
    const ggl_str s = is_gbnf ? form->text : answer_schema_of(form->form, form->text);
    const llm_job_form f = {.text = s.s,
                            .n = s.n,
                            .name = is_gbnf                  ? "grammar"
                                    : form->form == ASK_JSON ? "JSON"
                                                             : "schema",
                            .is_schema = !is_gbnf,
                            .max_steps = GRAMMAR_COMPILE_STEPS,
                            .max_bytes = GRAMMAR_COMPILE_BYTES,
                            .thought = form->thought,
                            .n_thoughts = form->n_thoughts};
    return llm_job_grammar_new(out, &f, err);
}

static bool is_same(const answer_form *a, const answer_form *b) {
    return a->form == b->form && a->text.n == b->text.n && a->n_thoughts == b->n_thoughts &&
           (a->text.n == 0 || memcmp(a->text.s, b->text.s, a->text.n) == 0) &&
           memcmp(a->thought, b->thought, sizeof a->thought) == 0;
}

static answer_grammar *find(const answer_grammars *g, const answer_form *form) {
    for (int i = 0; i < GRAMMARS_KEPT; i++)
        if (g->kept[i] && is_same(&g->kept[i]->form, form))
            return g->kept[i];
    return NULL;
}

/* Takes the kept grammar of this text; NULL if none. */
static answer_grammar *take(answer_grammars *g, const answer_form *form) {
    ggl_os_mutex_lock(&g->lock);
    answer_grammar *k = find(g, form);
    if (k) {
        k->n_users++;
        k->used = ++g->clock;
    }
    ggl_os_mutex_unlock(&g->lock);
    return k;
}

/* Returns the place that is empty, or whose grammar was not used for the longest time; NULL: all are in use. */
static answer_grammar **oldest_place(answer_grammars *g) {
    answer_grammar **best = NULL;
    for (int i = 0; i < GRAMMARS_KEPT; i++) {
        answer_grammar *k = g->kept[i];
        if (!k)
            return &g->kept[i];
        if (k->n_users == 0 && (!best || k->used < (*best)->used))
            best = &g->kept[i];
    }
    return best;
}

/* Adds a grammar that this thread uses to the list. If there is no place for it, or another thread has added the same one,
 * it is freed when it is given back. */
static void keep(answer_grammars *g, answer_grammar *k) {
    answer_grammar *old = NULL;
    ggl_os_mutex_lock(&g->lock);
    g->n_compiled++;
    if (!find(g, &k->form)) {
        answer_grammar **place = oldest_place(g);
        if (place) {
            old = *place;
            *place = k;
            k->used = ++g->clock;
        }
    }
    ggl_os_mutex_unlock(&g->lock);
    free_kept(old);
}

void answer_grammars_give_back(answer_grammars *g, answer_grammar *k) {
    bool is_kept = false;
    if (!k)
        return;
    ggl_os_mutex_lock(&g->lock);
    k->n_users--;
    for (int i = 0; i < GRAMMARS_KEPT; i++)
        is_kept |= g->kept[i] == k;
    ggl_os_mutex_unlock(&g->lock);
    if (!is_kept)
        free_kept(k);
}

/* Frees the kept grammar that was not used for the longest time. False: all are in use. */
static bool drop_oldest(answer_grammars *g) {
    answer_grammar **oldest = NULL, *old;
    ggl_os_mutex_lock(&g->lock);
    for (int i = 0; i < GRAMMARS_KEPT; i++)
        if (g->kept[i] && g->kept[i]->n_users == 0 &&
            (!oldest || g->kept[i]->used < (*oldest)->used))
            oldest = &g->kept[i];
    old = oldest ? *oldest : NULL;
    if (oldest)
        *oldest = NULL;
    ggl_os_mutex_unlock(&g->lock);
    free_kept(old);
    return old != NULL;
}

/* Enters what the grammar holds; those that nobody uses make room. */
static ggl_status hold(answer_grammars *g, answer_grammar *k, ggl_error *err) {
    const size_t n = llm_grammar_size(k->grammar) + k->form.text.n;
    k->held = (memory_hold){.of = g->memory, .use = MEMORY_GRAMMARS};
    while (!memory_set(&k->held, n))
        if (!drop_oldest(g))
            return ggl_fail(err, GGL_NOMEM,
                            "no memory for the grammar: it needs %zu bytes, and grammars hold %zu "
                            "of the %zu that they may have together (--request-memory)",
                            n, memory_held(g->memory, MEMORY_GRAMMARS),
                            memory_most(g->memory, MEMORY_GRAMMARS));
    return GGL_OK;
}

static ggl_status make(answer_grammar **out, const answer_form *form, ggl_error *err) {
    const size_t n = form->text.n;
    answer_grammar *k = ggl_calloc(1, sizeof *k);
    *out = NULL;
    if (k)
        k->text = ggl_calloc(n + 1, 1);
    if (!k || !k->text) {
        free_kept(k);
        return ggl_fail(err, GGL_NOMEM, "out of memory for a grammar");
    }
    *k = (answer_grammar){.form = *form, .text = k->text, .n_users = 1};
    k->form.text.s = k->text;
    if (n > 0)
        memcpy(k->text, form->text.s, n);
    const ggl_status st = compile(&k->grammar, &k->form, err);
    if (st == GGL_OK)
        *out = k;
    else
        free_kept(k);
    return st;
}

ggl_status answer_grammars_take(answer_grammars *g, answer_grammar **out, const answer_form *given,
                                ggl_error *err) {
    answer_form form = *given;
    *out = NULL;
    if (form.form == ASK_JSON)
        form.text.n = 0;
    if (form.text.n > GRAMMAR_MAX_TEXT)
        return ggl_fail(err, GGL_LIMIT, "the %s has %zu bytes, but may have at most %d",
                        form.form == ASK_GBNF ? "grammar" : "schema", form.text.n,
                        (int)GRAMMAR_MAX_TEXT);
    *out = take(g, &form);
    if (*out)
        return GGL_OK;
    ggl_status st = make(out, &form, err);
    if (st == GGL_OK)
        st = hold(g, *out, err);
    if (st == GGL_OK) {
        keep(g, *out);
    } else {
        free_kept(*out);
        *out = NULL;
    }
    return st;
}

const llm_grammar *answer_grammar_get(const answer_grammar *k) {
    return k->grammar;
}
