/* Matchers: a place in a text, and what copies of it share. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ggl/alloc.h"
#include "expected.h"
#include "grammar.h"
#include "mask.h"

enum { MANY_FRAMES = 256 };

/* What a matcher and its copies share. */
typedef struct engine {
    int n_users;
    llm_parser parser;
    const llm_vocab *vocab; /* or NULL */
    llm_masks masks;
    uint64_t most_steps, steps_back, steps_left; /* llm_matcher_limit */
} engine;

struct llm_matcher {
    engine *e;
    llm_stack stack;  /* the bottom is `set` */
    llm_item_set set; /* where the text stands */
    size_t n_bytes;   /* of the text */
    size_t n_kept;    /* frames after the last collection */
    bool has_ended;
    llm_walk walk;
    llm_ending ending;
    llm_tokens plan; /* an ending from here; its tokens before `planned` were accepted already */
    size_t planned;
    bool has_plan;
    ggl_status failed; /* GGL_OK until something has failed; then why */
    bool is_exceeded;  /* it failed because its budget was exceeded */
};

static ggl_status say_why(const llm_matcher *m, ggl_error *err) {
    const ggl_status st = m->e->parser.states.pool.status;
    if (st == GGL_NOMEM)
        return ggl_fail(err, st, "out of memory after %zu bytes of a text with a grammar",
                        m->n_bytes);
    if (st == GGL_UNSUPPORTED)
        return ggl_fail(err, st,
                        "after %zu bytes of the text, what the grammar demands next cannot be "
                        "written with the model's vocabulary",
                        m->n_bytes);
    const llm_budget *use = &m->e->parser.states.pool.use;
    if (use->is_exceeded && (use->max_steps == 0 || use->steps <= use->max_steps))
        return ggl_fail(err, st,
                        "the grammar takes too much memory: after %zu bytes of the text, it needs "
                        "more than %zu MiB",
                        m->n_bytes, use->max_bytes >> 20);
    if (use->is_exceeded)
        return ggl_fail(err, st,
                        "the grammar is too ambiguous: after %zu bytes of the text, there are too "
                        "many ways to go on (more than %" PRIu64 " steps for one token)",
                        m->n_bytes, use->max_steps);
    const bool is_long =
        m->ending.parser && llm_ending_bytes(&m->ending, m->set) > LLM_SHORTEST_MAX;
    return is_long
               ? ggl_fail(err, st,
                          "the grammar demands more than %d bytes after %zu bytes of the text: a "
                          "count such as minLength, minItems or {N,} is too large; make it smaller",
                          LLM_SHORTEST_MAX, m->n_bytes)
               : ggl_fail(err, st, "the grammar needs too many states after %zu bytes of the text",
                          m->n_bytes);
}

/* Keeps a failure with this matcher, so that copies of it, which share the engine, go on. */
static void take_failure(llm_matcher *m) {
    llm_bx_pool *pool = &m->e->parser.states.pool;
    m->failed = pool->status;
    m->is_exceeded = pool->use.is_exceeded;
    pool->status = GGL_OK;
    pool->use.is_exceeded = false;
}

/* Lets work fail as it has before. */
static void recall_failure(llm_matcher *m) {
    if (m->failed == GGL_OK)
        return;
    m->e->parser.states.pool.status = m->failed;
    m->e->parser.states.pool.use.is_exceeded = m->is_exceeded;
}

static ggl_status give_up(llm_matcher *m, ggl_error *err) {
    const ggl_status st = say_why(m, err);
    take_failure(m);
    return st;
}

/* Begins a mask, ending, token or byte, which fails again if one has failed: takes the steps of the one before from the supply, and puts steps_back
 * back (llm_matcher_limit). */
static void begin_work(llm_matcher *m) {
    engine *e = m->e;
    llm_bx_pool *pool = &e->parser.states.pool;
    recall_failure(m);
    if (pool->status != GGL_OK || e->most_steps == 0)
        return;
    e->steps_left -= pool->use.steps < e->steps_left ? pool->use.steps : e->steps_left;
    if (e->most_steps - e->steps_left < e->steps_back)
        e->steps_left = e->most_steps;
    else
        e->steps_left += e->steps_back;
    pool->use.steps = 0;
    pool->use.max_steps = e->steps_left;
}

/* --- making one ------------------------------------------------------------------------------- */

static void engine_release(engine *e) {
    if (!e || --e->n_users > 0)
        return;
    llm_masks_fini(&e->masks, &e->parser.states.pool);
    llm_parser_fini(&e->parser);
    ggl_free(e);
}

static ggl_status out_of_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for a matcher of a grammar");
}

/* The grammar as this vocabulary can write it. */
static ggl_status parser_for(llm_parser *p, const llm_grammar *g, const llm_vocab *v,
                             ggl_error *err) {
    const llm_budget of = g->pool.use;
    p->states.pool.use =
        llm_grammar_budget(of.max_steps > 0 ? of.max_steps : LLM_MATCHER_USUAL_STEPS, of.max_bytes);
    p->states.pool.use.bytes = sizeof(engine) + sizeof(llm_matcher);
    if (!v || v->spells_all)
        return llm_parser_init(p, &g->pool, g->start) ? GGL_OK : out_of_memory(err);
    llm_bx_pool pool = {.use = p->states.pool.use};
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
    begin_work(m);
    llm_stack_back(&m->stack, (llm_stack_mark){0, LLM_FRAME_FIRST, 0});
    m->n_bytes = m->n_kept = 0;
    m->has_ended = m->has_plan = false;
    m->set = llm_set_of(&m->e->parser, &m->stack, (llm_item){m->e->parser.start, LLM_FRAME_ROOT});
}

static ggl_status matcher_init(llm_matcher *m, const llm_grammar *g, const llm_vocab *v,
                               ggl_error *err) {
    m->e = ggl_calloc(1, sizeof *m->e);
    if (!m->e)
        return out_of_memory(err);
    m->e->n_users = 1;
    m->e->vocab = m->e->masks.vocab = v;
    ggl_status st = parser_for(&m->e->parser, g, v, err);
    if (st != GGL_OK)
        return st;
    if (!llm_stack_init(&m->e->parser, &m->stack))
        return out_of_memory(err);
    const uint64_t most = g->pool.use.max_steps;
    llm_matcher_limit(m, most > 0 ? most : LLM_MATCHER_USUAL_STEPS, LLM_MATCHER_USUAL_BACK);
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
    c->ending = (llm_ending){0};
    c->plan = (llm_tokens){0};
    c->has_plan = false;
    c->stack = (llm_stack){0};
    c->e->n_users++;
    c->e->parser.states.pool.use.bytes += sizeof *c;
    if (llm_stack_copy(&c->e->parser, &c->stack, &m->stack))
        return GGL_OK;
    llm_matcher_free(c);
    *out = NULL;
    return out_of_memory(err);
}

void llm_matcher_free(llm_matcher *m) {
    if (!m)
        return;
    if (m->e) {
        llm_stack_fini(&m->e->parser, &m->stack);
        llm_budget_give_back(&m->e->parser.states.pool.use, 1, sizeof *m);
    }
    llm_walk_fini(&m->walk);
    llm_ending_fini(&m->ending);
    llm_tokens_fini(&m->plan);
    engine_release(m->e);
    ggl_free(m);
}

void llm_matcher_limit(llm_matcher *m, uint64_t most, uint64_t back) {
    engine *e = m->e;
    e->most_steps = e->steps_left = most;
    e->steps_back = back > 0 ? back : 1;
    e->parser.states.pool.use.steps = 0;
    e->parser.states.pool.use.max_steps = most;
}

void llm_matcher_limit_bytes(llm_matcher *m, size_t most) {
    m->e->parser.states.pool.use.max_bytes = most;
}

size_t llm_matcher_size(const llm_matcher *m) {
    return m->e->parser.states.pool.use.bytes;
}

void llm_matcher_reset(llm_matcher *m) {
    m->failed = GGL_OK;
    m->is_exceeded = false;
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
    if (m->stack.n_frames > 2 * m->n_kept + MANY_FRAMES && llm_stack_collect(&m->stack))
        m->n_kept = m->stack.n_frames;
    llm_states_trim(&m->e->parser.states);
}

/* A plan stays good while its tokens are accepted. */
static void follow_plan(llm_matcher *m, int32_t id) {
    m->has_plan = m->has_plan && m->planned < m->plan.n && m->plan.id[m->planned] == id;
    m->planned++;
}

ggl_status llm_matcher_accept_bytes(llm_matcher *m, const char *s, size_t n, size_t *n_accepted,
                                    ggl_error *err) {
    *n_accepted = 0;
    if (m->has_ended)
        return GGL_OK;
    for (size_t i = 0; i < n; i++) { /* one by one, so that the stack stays small */
        llm_item_set set;
        begin_work(m);
        if (push_bytes(m, s + i, 1, &set) == 0)
            break;
        settle(m, set, 1);
        m->has_plan = false;
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
    begin_work(m);
    const size_t n = push_bytes(m, text.s, text.n, &set);
    const ggl_status st = m->e->parser.states.pool.status;
    if (st != GGL_OK || n < text.n || n == 0) {
        llm_stack_back(&m->stack, mark);
        return st != GGL_OK
                   ? give_up(m, err)
                   : ggl_fail(err, GGL_USAGE, "the grammar does not allow token %d here", (int)id);
    }
    settle(m, set, n);
    follow_plan(m, id);
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
int32_t llm_matcher_n_vocab(const llm_matcher *m) {
    return m->e->vocab ? llm_vocab_n(m->e->vocab) : 0;
}

bool llm_matcher_must_end(const llm_matcher *m) {
    llm_states *s = &m->e->parser.states;
    for (size_t i = 0; m->set.complete && i < m->set.n; i++)
        for (unsigned b = 0; b < 256; b++)
            if (llm_state_next(s, m->stack.item[m->set.first + i].state, b) != LLM_STATE_DEAD)
                return false;
    return m->set.complete;
}

static void begin_ending(llm_matcher *m) {
    m->ending.parser = &m->e->parser;
    m->ending.stack = &m->stack;
    m->ending.vocab = m->e->vocab;
}

/* Plans an ending, unless one is being followed: its rest is an ending, too. */
static ggl_status plan(llm_matcher *m, ggl_error *err) {
    if (m->has_plan)
        return GGL_OK;
    llm_ending_plan(&m->ending, m->set);
    if (m->e->parser.states.pool.status != GGL_OK)
        return give_up(m, err);
    const llm_spelled *s = &m->ending.spelled;
    if (!llm_bx_grow(&m->e->parser.states.pool, &m->plan.id, &m->plan.cap, s->n,
                     sizeof *m->plan.id))
        return give_up(m, err);
    if (s->n > 0)
        memcpy(m->plan.id, s->id, s->n * sizeof *s->id);
    m->plan.n = s->n;
    m->planned = 0;
    m->has_plan = true;
    return GGL_OK;
}

ggl_status llm_matcher_ending(llm_matcher *m, const int32_t **id, int32_t *n, ggl_error *err) {
    *id = NULL;
    *n = 0;
    if (!m->e->vocab)
        return ggl_fail(err, GGL_USAGE, "a matcher without a vocabulary plans no endings");
    if (m->has_ended)
        return GGL_OK;
    begin_work(m);
    begin_ending(m);
    const ggl_status st = plan(m, err);
    if (st == GGL_OK) {
        *id = m->plan.id ? m->plan.id + m->planned : NULL;
        *n = (int32_t)(m->plan.n - m->planned);
    }
    return st;
}

static void find_tokens(llm_matcher *m, int32_t limit, uint32_t *allowed) {
    const int64_t longest = m->e->vocab->trie.max_depth;
    if (limit >= 0 && llm_ending_bytes(&m->ending, m->set) > (limit + 1) * longest)
        return; /* no tokens are long enough */
    m->walk.most_bytes = limit * longest;
    m->walk.parser = &m->e->parser;
    m->walk.stack = &m->stack;
    m->walk.limit = limit;
    m->walk.ending = &m->ending;
    llm_mask(&m->e->masks, &m->walk, m->set, allowed);
}

ggl_status llm_matcher_mask(llm_matcher *m, int32_t budget, uint32_t *allowed, ggl_error *err) {
    const llm_vocab *v = m->e->vocab;
    if (!v)
        return ggl_fail(err, GGL_USAGE, "a matcher without a vocabulary has no masks");
    memset(allowed, 0, v->n_words * sizeof *allowed);
    if (m->has_ended)
        return GGL_OK;
    if (m->set.complete)
        memcpy(allowed, v->eog, v->n_words * sizeof *allowed);
    if (budget == 0)
        return GGL_OK;
    begin_work(m);
    begin_ending(m);
    /* otherwise the first token of any plan is found to fit by the bytes after it */
    const bool is_tight = budget > 0 && llm_ending_most_bytes(&m->ending, m->set) > budget;
    if (is_tight) {
        const ggl_status st = plan(m, err);
        if (st != GGL_OK)
            return st;
    }
    find_tokens(m, budget > 0 ? budget - 1 : -1, allowed);
    if (is_tight && m->planned < m->plan.n) {
        const uint32_t next = (uint32_t)m->plan.id[m->planned];
        allowed[next / 32] |= (uint32_t)1 << (next % 32);
    }
    return m->e->parser.states.pool.status == GGL_OK ? GGL_OK : give_up(m, err);
}

/* The one token that a mask allows; -1 if it allows none or several. */
static int32_t only_token(const llm_vocab *v, const uint32_t *allowed) {
    int32_t id = -1;
    for (size_t i = 0; i < v->n_words; i++) {
        const uint32_t bits = allowed[i];
        if (bits && (id >= 0 || (bits & (bits - 1))))
            return -1;
        for (int32_t k = 0; bits && id < 0; k++)
            if (bits >> k & 1)
                id = (int32_t)(32 * i) + k;
    }
    return id >= 0 && (v->eog[id / 32] >> (id % 32) & 1) ? -1 : id;
}

/* Follows the tokens that must come next with a copy of the matcher. */
static ggl_status follow_forced(llm_matcher *c, int32_t budget, uint32_t *allowed, int32_t *id,
                                int32_t most, int32_t *n) {
    ggl_status st = GGL_OK;
    while (st == GGL_OK && *n < most && budget != 0) {
        st = llm_matcher_mask(c, budget, allowed, NULL);
        const int32_t only = st == GGL_OK ? only_token(c->e->vocab, allowed) : -1;
        if (only < 0)
            break;
        st = llm_matcher_accept_token(c, only, NULL);
        if (st == GGL_OK)
            id[(*n)++] = only;
        budget -= budget > 0;
    }
    return st;
}

ggl_status llm_matcher_forced(llm_matcher *m, int32_t budget, int32_t *id, int32_t most, int32_t *n,
                              ggl_error *err) {
    llm_matcher *c = NULL;
    *n = 0;
    if (!m->e->vocab)
        return ggl_fail(err, GGL_USAGE, "a matcher without a vocabulary has no masks");
    recall_failure(m);
    if (m->has_ended || m->failed != GGL_OK)
        return m->failed == GGL_OK ? GGL_OK : give_up(m, err);
    uint32_t *allowed = ggl_calloc(m->e->vocab->n_words, sizeof *allowed);
    ggl_status st = allowed ? llm_matcher_copy(&c, m, err) : out_of_memory(err);
    if (st == GGL_OK)
        st = follow_forced(c, budget, allowed, id, most, n);
    if (st != GGL_OK && st != GGL_NOMEM) {
        /* a token that cannot be looked at may still be drawn: it has its own supply of steps then */
        st = GGL_OK;
    } else if (st == GGL_NOMEM) {
        *n = 0;
        st = out_of_memory(err);
    }
    llm_matcher_free(c);
    ggl_free(allowed);
    return st;
}

size_t llm_matcher_expected(llm_matcher *m, char *buf, size_t size) {
    if (m->has_ended) {
        if (size > 0)
            snprintf(buf, size, "nothing");
        return strlen("nothing");
    }
    begin_work(m);
    const size_t n = llm_expected(&m->e->parser, &m->stack, m->set, buf, size);
    if (m->e->parser.states.pool.status != GGL_OK)
        take_failure(m);
    return n;
}
