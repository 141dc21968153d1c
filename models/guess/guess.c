/* Guessers: follow the sequence from call to call, measure, and let a source guess as far as it
 * pays. */
#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/params.h"
#include "source.h"

struct llm_guess {
    llm_guesser guesser;
    llm_guess_params p;
    guess_source source;
    pace pace;
    int32_t *seen; /* the sequence of the last call, [n_seen] */
    size_t n_seen, cap;
    /* The proposals of the last call. The first n_used were returned. */
    int32_t out[LLM_GUESS_MOST];
    uint8_t class[LLM_GUESS_MOST];
    int64_t n_out, n_used;
    int64_t n_made;    /* tokens made since the source was asked */
    int64_t guess_ns;  /* as in pace_step, of the last call */
    int64_t source_ns; /* 0: the source was not asked */
    int64_t n_read, read_ns;
    int64_t t_end; /* of the last call; 0: there was none */
    int64_t n_steps, n_declined;
};

void llm_guess_fill_default(llm_guess_params *p, size_t size) {
    const llm_guess_params d = {.size = sizeof(llm_guess_params), .n_max = 16};
    ggl_params_fill(p, size, &d, sizeof d);
}

/* --- following the sequence ------------------------------------------------------------------- */

/* The number of tokens at the start that id[0 .. n) shares with the last call's sequence: at least
 * n_same. */
static size_t common_beginning(const llm_guess *g, const int32_t *id, size_t n, size_t n_same) {
    size_t i = n_same;
    while (i < n && i < g->n_seen && g->seen[i] == id[i])
        i++;
    return i;
}

/* Records what became of the last call's guesses: id[0 .. n) is the sequence after them. */
static void learn(llm_guess *g, const int32_t *id, size_t n, int64_t time) {
    const int64_t n_new = (int64_t)(n - g->n_seen);
    pace_step s = {.n_guessed = g->n_used,
                   .n_tokens = n_new,
                   .step_ns = time - g->t_end,
                   .guess_ns = g->guess_ns,
                   .n_source = g->source_ns && g->n_out == 0 ? 1 : g->n_out,
                   .source_ns = g->source_ns,
                   .n_read = g->n_read,
                   .read_ns = g->read_ns};
    bool is_right = true;
    for (int64_t i = 0; i < g->n_out && i < n_new && is_right; i++) {
        is_right = g->out[i] == id[g->n_seen + (size_t)i];
        llm_pace_rate(&g->pace, g->class[i], is_right);
        s.n_right += is_right && i < g->n_used;
    }
    g->n_made += n_new;
    if (g->source_ns)
        llm_pace_rate_asked(&g->pace, g->n_used, s.n_right);
    llm_pace_record(&g->pace, &s);
}

/* Learns from the difference to the last call's sequence, and takes over the new one. False: out of
 * memory. */
static bool follow(llm_guess *g, const int32_t *id, size_t n, size_t n_same, int64_t time) {
    n_same = common_beginning(g, id, n, n_same);
    /* other changes are not the work of one step: a new prompt, a shift of the context */
    const bool is_step = n_same == g->n_seen && n > n_same && n - n_same <= (size_t)g->n_used + 2;
    if (g->t_end && is_step)
        learn(g, id, n, time);
    else if (!is_step) {
        g->n_made = 0;
        llm_pace_restart(&g->pace);
    }
    if (!ggl_grow(&g->seen, &g->cap, n, sizeof *g->seen))
        return false;
    g->source.follow(g->source.self, g->seen, g->n_seen, n_same, id, n);
    memcpy(g->seen + n_same, id + n_same, (n - n_same) * sizeof *id);
    g->n_seen = n;
    return true;
}

/* --- guessing --------------------------------------------------------------------------------- */

static int64_t now(const llm_guess *g) {
    return g->p.clock(g->p.clock_ctx);
}

/* The share of a time for n_all tokens that n of them take. */
static int64_t share(int64_t ns, int64_t n, int64_t n_all) {
    return n < n_all ? (int64_t)((double)ns * (double)n / (double)n_all) : ns;
}

/* Lets the source guess, and measures it. Returns the time that is not this text's fault: a prompt has
 * to be read once, however well its text can be guessed. */
static int64_t ask(llm_guess *g, int64_t n_max) {
    const guess_source *by = &g->source;
    const int64_t begin = now(g);
    const int64_t n_read = by->catch_up ? by->catch_up(by->self, g->seen, g->n_seen) : 0;
    const int64_t read = now(g);
    g->n_out = by->propose(by->self, g->seen, g->n_seen, g->out, g->class, n_max);
    /* if it is asked at each step, a token or two are missing */
    g->source_ns = now(g) - read + share(read - begin, 2, n_read) + 1;
    const int64_t not_charged = read - begin - share(read - begin, g->n_made, n_read);
    g->n_made = 0;
    g->n_read = n_read;
    g->read_ns = read - begin;
    return not_charged;
}

/* Sets the proposals, and how many of them to use, and *declined if none is because they would not pay. Returns as `ask` does. */
static int64_t propose(llm_guess *g, int64_t n_max, bool *declined) {
    const bool always = g->p.always;
    int64_t most = n_max;
    g->n_out = g->n_used = g->source_ns = g->n_read = 0;
    *declined = n_max > 0 && !always;
    if (!always && !llm_pace_allows(&g->pace, g->n_made > 2 ? g->n_made : 0))
        return 0;
    if (!always && !g->source.is_cheap) {
        memset(g->class, PACE_ANY, (size_t)n_max);
        most = llm_pace_choose(&g->pace, g->class, n_max, false);
    }
    if (most == 0)
        return 0;
    const int64_t not_charged = ask(g, most);
    g->n_used = always ? g->n_out : llm_pace_choose(&g->pace, g->class, g->n_out, true);
    *declined = g->n_out > 0 && g->n_used == 0;
    if (g->n_used < g->p.n_min)
        g->n_used = 0;
    return not_charged;
}

static int64_t guess(void *self, const int32_t *id, size_t n, size_t n_same, int32_t *out,
                     int64_t n_max) {
    llm_guess *g = self;
    const int64_t begin = now(g);
    if (!follow(g, id, n, n_same < g->n_seen ? n_same : g->n_seen, begin)) {
        g->n_out = g->n_used = g->t_end = 0;
        return 0;
    }
    bool declined = false;
    const int64_t not_charged = propose(g, n_max < g->p.n_max ? n_max : g->p.n_max, &declined);
    g->n_steps++;
    g->n_declined += declined;
    memcpy(out, g->out, (size_t)g->n_used * sizeof *out);
    g->t_end = now(g);
    g->guess_ns = g->t_end - begin - not_charged;
    return g->n_used;
}

static void in_slot(void *self, int slot) {
    const llm_guess *g = self;
    if (g->source.in_slot)
        g->source.in_slot(g->source.self, slot);
}

/* --- creation --------------------------------------------------------------------------------- */

ggl_status llm_guess_new(llm_guess **out, const llm_guess_params *p, const guess_source *source,
                         ggl_error *err) {
    *out = NULL;
    llm_guess *g = NULL;
    llm_guess_params given = llm_guess_default();
    ggl_status st = GGL_READ_PARAMS(llm_guess_params, &given, p, err);
    if (st != GGL_OK)
        ; /* *err says it */
    else if (given.n_max < 1 || given.n_max > LLM_GUESS_MOST || given.n_min < 0)
        st = ggl_fail(err, GGL_USAGE,
                      "at most %" PRId64 " and at least %" PRId64
                      " guesses at once: 1 to %d, and 0 or more are allowed",
                      given.n_max, given.n_min, LLM_GUESS_MOST);
    else if (!(g = ggl_calloc(1, sizeof *g)))
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a guesser");
    if (st != GGL_OK) {
        source->free(source->self);
        return st;
    }
    g->p = given;
    if (!g->p.clock)
        g->p.clock = llm_clock;
    g->source = *source;
    g->guesser = (llm_guesser){.guess = guess, .in_slot = in_slot, .self = g};
    llm_pace_init(&g->pace, source->prior);
    *out = g;
    return GGL_OK;
}

void llm_guess_free(llm_guess *g) {
    if (!g)
        return;
    g->source.free(g->source.self);
    ggl_free(g->seen);
    ggl_free(g);
}

const llm_guesser *llm_guess_guesser(llm_guess *g) {
    return &g->guesser;
}

int64_t llm_guess_declined(const llm_guess *g, int64_t *n_steps) {
    *n_steps = g->n_steps;
    return g->n_declined;
}

ggl_status llm_guess_failed(const llm_guess *g, ggl_error *err) {
    return g->source.failed ? g->source.failed(g->source.self, err) : GGL_OK;
}
