/* Matchers: a place in a text, and what copies of it share. */
#include <string.h>

#include "ggl/alloc.h"
#include "machine.h"
#include "walk.h"

/* What a matcher and its copies share. */
typedef struct engine {
    int n_users;
    llm_parser parser;
    const llm_vocab *vocab; /* or NULL */
} engine;

struct llm_matcher {
    engine *e;
    llm_stack stack;  /* the bottom is `set` */
    llm_item_set set; /* where the text stands */
    size_t n_bytes;   /* of the text */
    size_t n_kept;    /* frames after the last collection */
    bool has_ended;
    llm_walk walk;
};

static ggl_status give_up(const llm_matcher *m, ggl_error *err) {
    const ggl_status st = m->e->parser.states.pool.status;
    if (st == GGL_NOMEM)
        return ggl_fail(err, st, "out of memory after %zu bytes of a text with a grammar",
                        m->n_bytes);
    return ggl_fail(err, st, "the grammar needs too many states after %zu bytes of the text",
                    m->n_bytes);
}

/* --- making one ------------------------------------------------------------------------------- */

static void engine_release(engine *e) {
    if (!e || --e->n_users > 0)
        return;
    llm_parser_fini(&e->parser);
    ggl_free(e);
}

static ggl_status out_of_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for a matcher of a grammar");
}

/* The grammar as this vocabulary can write it. */
static ggl_status parser_for(llm_parser *p, const llm_grammar *g, const llm_vocab *v,
                             ggl_error *err) {
    if (!v || v->spells_all)
        return llm_parser_init(p, &g->pool, g->start) ? GGL_OK : out_of_memory(err);
    llm_bx_pool pool = {0};
    int32_t start;
    ggl_status st = llm_translate(&pool, &g->exprs, g->root, &v->spelling, &start, err);
    if (st == GGL_OK && start == LLM_BX_NONE)
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "no text of the grammar can be written with the model's vocabulary, which "
                      "has no tokens for some characters");
    if (st == GGL_OK && !llm_parser_init(p, &pool, start))
        st = out_of_memory(err);
    llm_bx_pool_fini(&pool);
    return st;
}

static void begin(llm_matcher *m) {
    llm_stack_back(&m->stack, (llm_stack_mark){0, LLM_FRAME_FIRST, 0});
    m->n_bytes = m->n_kept = 0;
    m->has_ended = false;
    m->set = llm_set_of(&m->e->parser, &m->stack, (llm_item){m->e->parser.start, LLM_FRAME_ROOT});
}

static ggl_status matcher_init(llm_matcher *m, const llm_grammar *g, const llm_vocab *v,
                               ggl_error *err) {
    m->e = ggl_calloc(1, sizeof *m->e);
    if (!m->e || !llm_stack_init(&m->stack))
        return out_of_memory(err);
    m->e->n_users = 1;
    m->e->vocab = v;
    ggl_status st = parser_for(&m->e->parser, g, v, err);
    if (st != GGL_OK)
        return st;
    begin(m);
    return m->e->parser.states.pool.status == GGL_OK ? GGL_OK : give_up(m, err);
}

ggl_status llm_matcher_new(llm_matcher **out, const llm_grammar *g, const llm_vocab *v,
                           ggl_error *err) {
    *out = ggl_calloc(1, sizeof **out);
    const ggl_status st = *out ? matcher_init(*out, g, v, err) : out_of_memory(err);
    if (st != GGL_OK) {
        llm_matcher_free(*out);
        *out = NULL;
    }
    return st;
}

ggl_status llm_matcher_copy(llm_matcher **out, const llm_matcher *m, ggl_error *err) {
    llm_matcher *c = *out = ggl_calloc(1, sizeof *c);
    if (!c)
        return out_of_memory(err);
    *c = *m;
    c->walk = (llm_walk){0};
    c->stack = (llm_stack){0};
    c->e->n_users++;
    if (llm_stack_copy(&c->stack, &m->stack))
        return GGL_OK;
    llm_matcher_free(c);
    *out = NULL;
    return out_of_memory(err);
}

void llm_matcher_free(llm_matcher *m) {
    if (!m)
        return;
    engine_release(m->e);
    llm_stack_fini(&m->stack);
    llm_walk_fini(&m->walk);
    ggl_free(m);
}

void llm_matcher_reset(llm_matcher *m) {
    m->e->parser.states.pool.status = GGL_OK;
    begin(m);
}

/* --- going on --------------------------------------------------------------------------------- */

/* Appends bytes; returns how many were accepted. The stack keeps the sets of all, from the old one
 * at the bottom. */
static size_t push_bytes(llm_matcher *m, const char *s, size_t n, llm_item_set *last) {
    llm_parser *p = &m->e->parser;
    size_t i = 0;
    *last = m->set;
    for (; i < n && p->states.pool.status == GGL_OK; i++) {
        const llm_item_set next = llm_set_step(p, &m->stack, *last, (unsigned char)s[i]);
        if (next.n == 0)
            break;
        *last = next;
    }
    return i;
}

/* Makes `set` the bottom of the stack. */
static void settle(llm_matcher *m, llm_item_set set, size_t n_bytes) {
    memmove(m->stack.item, m->stack.item + set.first, set.n * sizeof *m->stack.item);
    m->stack.n_items = set.n;
    set.first = 0;
    m->set = set;
    m->n_bytes += n_bytes;
}

ggl_status llm_matcher_accept_bytes(llm_matcher *m, const char *s, size_t n, size_t *n_accepted,
                                    ggl_error *err) {
    *n_accepted = 0;
    if (m->has_ended)
        return GGL_OK;
    for (size_t i = 0; i < n; i++) { /* one by one, so that the stack stays small */
        llm_item_set set;
        if (push_bytes(m, s + i, 1, &set) == 0)
            break;
        settle(m, set, 1);
        *n_accepted = i + 1;
    }
    return m->e->parser.states.pool.status == GGL_OK ? GGL_OK : give_up(m, err);
}

ggl_status llm_matcher_accept_token(llm_matcher *m, int32_t id, ggl_error *err) {
    const llm_vocab *v = m->e->vocab;
    if (m->has_ended || !v || id < 0 || id >= v->n)
        return ggl_fail(err, GGL_USAGE, "token %d cannot follow: %s", (int)id,
                        m->has_ended ? "the text has ended" : "it is not in the vocabulary");
    if (v->eog[id / 32] >> (id % 32) & 1) {
        if (!m->set.complete)
            return ggl_fail(err, GGL_USAGE, "token %d ends a text that is not complete", (int)id);
        m->has_ended = true;
        return GGL_OK;
    }
    const ggl_str text = v->text[id];
    const llm_stack_mark mark = llm_stack_here(&m->stack);
    llm_item_set set;
    const size_t n = push_bytes(m, text.s, text.n, &set);
    const ggl_status st = m->e->parser.states.pool.status;
    if (st != GGL_OK || n < text.n || n == 0) {
        llm_stack_back(&m->stack, mark);
        return st != GGL_OK
                   ? give_up(m, err)
                   : ggl_fail(err, GGL_USAGE, "the grammar does not allow token %d here", (int)id);
    }
    settle(m, set, n);
    return GGL_OK;
}

/* --- questions -------------------------------------------------------------------------------- */

bool llm_matcher_is_complete(const llm_matcher *m) {
    return m->set.complete;
}

bool llm_matcher_has_ended(const llm_matcher *m) {
    return m->has_ended;
}

/* Items in frames that were called are in the set, too: nothing can follow if no byte leads on from
 * any item. */
bool llm_matcher_must_end(const llm_matcher *m) {
    llm_states *s = &m->e->parser.states;
    for (size_t i = 0; m->set.complete && i < m->set.n; i++)
        for (unsigned b = 0; b < 256; b++)
            if (llm_state_next(s, m->stack.item[m->set.first + i].state, b) != LLM_STATE_DEAD)
                return false;
    return m->set.complete;
}

ggl_status llm_matcher_mask(llm_matcher *m, int32_t budget, uint32_t *allowed, ggl_error *err) {
    const llm_vocab *v = m->e->vocab;
    (void)budget;
    if (!v)
        return ggl_fail(err, GGL_USAGE, "a matcher without a vocabulary has no masks");
    memset(allowed, 0, v->n_words * sizeof *allowed);
    if (m->has_ended)
        return GGL_OK;
    if (m->set.complete)
        memcpy(allowed, v->eog, v->n_words * sizeof *allowed);
    m->walk.parser = &m->e->parser;
    m->walk.stack = &m->stack;
    m->walk.allowed = allowed;
    llm_walk_trie(&m->walk, &v->trie, m->set);
    return m->e->parser.states.pool.status == GGL_OK ? GGL_OK : give_up(m, err);
}
