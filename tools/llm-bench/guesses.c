#include "guesses.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/input.h"
#include "common/load.h"
#include "common/progress.h"
#include "ggl/alloc.h"

#define TOOL "llm-bench"

enum { PLAIN, GUESSING, N_SIDES };

typedef struct prompt {
    int32_t *id; /* [n] */
    size_t n;
} prompt;

/* What a context has written after a prompt. */
typedef struct written {
    llm_tokens ids;
    llm_run_info run;
    bool lacks_memory;
} written;

struct bench_pair {
    llm_context *ctx[N_SIDES]; /* that which guesses is borrowed */
    const bench_test *t;
    const char *draft; /* path; "": none */
    prompt *prompt;    /* [n_prompts] */
    size_t n_prompts;
    int64_t n_longest; /* tokens of a text and its prompt */
};

/* What is written if no file is given: a model that chats is asked, another one goes on. */
static const char *const questions[] = {
    "Explain in simple words how a bicycle stays upright.",
    "Write a short story about an old clockmaker who lives by the sea.",
    "Write a Python function that counts the words of a text, and explain it.",
    "List ten things to pack for a week of hiking, with a reason for each."};
static const char *const beginnings[] = {
    "Once upon a time there was an old clockmaker who lived by the sea.",
    "The water cycle describes how water moves from the oceans to the sky and back.",
    "def count_words(text):\n    \"\"\"Counts how often each word is in the text.\"\"\"\n",
    "Ten things to pack for a week of hiking, with a reason for each:\n\n1. "};
enum { N_BUILTIN = sizeof questions / sizeof *questions };

/* --- texts ------------------------------------------------------------------------------------ */

static ggl_status read_question(const llm_context *c, prompt *out, const char *question,
                                ggl_error *err) {
    char talk[256], *text;
    size_t n;
    llm_formatted more;
    snprintf(talk, sizeof talk, "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}]}",
             question);
    const ggl_status st = llm_chat_format(c, talk, true, &text, &n, &more, err);
    if (st != GGL_OK)
        return st;
    *out = (prompt){more.id, more.n_id};
    ggl_free(more.notes);
    ggl_free(text);
    return GGL_OK;
}

static ggl_status read_text(const llm_context *c, prompt *out, const char *text, size_t n,
                            ggl_error *err) {
    return llm_encode(c, text, n, LLM_ADD_SPECIAL | LLM_READ_SPECIAL, &out->id, &out->n, err);
}

int bench_guesses_read(bench_options *o) {
    if (o->texts.n == 0)
        return -1;
    o->text = calloc(o->texts.n, sizeof *o->text);
    o->n_text = calloc(o->texts.n, sizeof *o->n_text);
    if (!o->text || !o->n_text)
        return tool_error(TOOL, 1, "out of memory");
    for (size_t i = 0; i < o->texts.n; i++) {
        size_t *n = &o->n_text[i];
        if (!(o->text[i] = tool_read_any_text(TOOL, o->texts.s[i], n))) /* prints errors */
            return 1;
        *n -= *n > 0 && o->text[i][*n - 1] == '\n'; /* as llm-cli -f does */
        if (*n == 0)
            return tool_error(TOOL, 1, "-f %s: it is empty", o->texts.s[i]);
    }
    return -1;
}

static ggl_status read_prompts(bench_pair *p, const llm_context *c, const bench_options *o,
                               ggl_error *err) {
    ggl_status st = GGL_OK;
    const bool asks = llm_context_facts(c)->has_chat;
    const size_t n = o->texts.n > 0 ? o->texts.n : N_BUILTIN;
    if (!llm_opened_tokenizer(c))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "guesses are measured with texts, and the model has no tokenizer: %s",
                        llm_opened_why_no_tokenizer(c)->msg);
    p->prompt = ggl_calloc(n, sizeof *p->prompt);
    if (!p->prompt)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    for (size_t i = 0; i < n && st == GGL_OK; i++, p->n_prompts++)
        st = o->texts.n > 0 ? read_text(c, &p->prompt[i], o->text[i], o->n_text[i], err)
             : asks         ? read_question(c, &p->prompt[i], questions[i], err)
                    : read_text(c, &p->prompt[i], beginnings[i], strlen(beginnings[i]), err);
    return st;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Adds the name of what could not be opened to the error. */
static ggl_status explain(const llm_context *c, const llm_opening *how, bench_options *o,
                          ggl_status st, ggl_error *err) {
    const llm_opened failed = llm_opened_step(c) + 1;
    if (failed == LLM_OPENED_ADAPTERS)
        (void)adapters_within(&o->open.adapters, llm_opened_n_adapters(c), st, err);
    if (failed == LLM_OPENED_GUESSES && how->params.draft && *how->params.draft)
        (void)tool_load_advise(st, how->params.draft, err);
    return st;
}

static ggl_status open_sides(bench_pair *p, llm_context *ctx, const llm_opening *how,
                             bench_options *o, ggl_error *err) {
    p->ctx[GUESSING] = ctx;
    ggl_status st = llm_context_open(ctx, how, LLM_OPENED_ALL, err);
    if (st != GGL_OK)
        return explain(ctx, how, o, st, err);
    llm_opening plain = *how;
    plain.path = NULL;
    plain.beside = llm_opened_model(ctx);
    plain.params.draft = NULL;
    plain.params.lookup = false;
    st = llm_context_new(&p->ctx[PLAIN], err);
    if (st == GGL_OK)
        st = llm_context_open(p->ctx[PLAIN], &plain, LLM_OPENED_ALL, err);
    return st == GGL_OK ? st : ggl_within(err, st, "without guesses");
}

ggl_status bench_pair_open(bench_pair **out, llm_context *ctx, llm_opening *how, bench_options *o,
                           const bench_test *t, ggl_error *err) {
    size_t longest = 0;
    bench_pair *p = *out = ggl_calloc(1, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    p->t = t;
    p->draft = how->params.draft ? how->params.draft : "";
    ggl_status st = read_prompts(p, ctx, o, err);
    for (size_t i = 0; i < p->n_prompts; i++)
        longest = p->prompt[i].n > longest ? p->prompt[i].n : longest;
    p->n_longest = (int64_t)longest + t->n_gen;
    how->session.n_ctx = p->n_longest + llm_open_n_guess(how);
    if (st == GGL_OK)
        st = open_sides(p, ctx, how, o, err);
    if (st == GGL_OK)
        return GGL_OK;
    bench_pair_close(p);
    *out = NULL;
    return st;
}

int64_t bench_pair_length(const bench_pair *p) {
    return p->n_longest;
}

void bench_pair_close(bench_pair *p) {
    if (!p)
        return;
    llm_close(p->ctx[PLAIN]);
    for (size_t i = 0; i < p->n_prompts; i++)
        ggl_free(p->prompt[i].id);
    ggl_free(p->prompt);
    ggl_free(p);
}

/* --- running ---------------------------------------------------------------------------------- */

static bool on_token(void *user, int32_t id, const float *logits) {
    written *w = user;
    (void)logits;
    w->lacks_memory = llm_tokens_append(&w->ids, id, NULL) != GGL_OK;
    return !w->lacks_memory;
}

/* Writes a text from its beginning, whatever was written before. */
static ggl_status write_text(llm_context *c, const prompt *x, int64_t n_gen, written *w,
                             ggl_error *err) {
    llm_generate_params p = llm_generate_default();
    const char *piece = "";
    size_t n;
    p.n_max = n_gen;
    p.temp = 0;
    p.token = on_token;
    p.user = w;
    w->ids.n = 0;
    ggl_status st = llm_truncate(c, 0, err);
    if (st == GGL_OK)
        st = llm_begin(c, x->id, x->n, &p, err);
    while (st == GGL_OK && piece)
        st = llm_next(c, &piece, &n, err);
    if (w->lacks_memory)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    w->run.size = sizeof w->run;
    return st == GGL_OK ? llm_last_run(c, &w->run, err) : st;
}

/* Tokens that were drawn, without the first, which takes no step of its own: its logits are those of the prompt. */
static int64_t n_drawn(const llm_run_info *r) {
    const int64_t n = r->n_generated + (r->finish == LLM_FINISH_END);
    return n > 0 ? n - 1 : 0;
}

/* A run of all texts in both contexts. */
typedef struct turn {
    double seconds[N_SIDES], first_seconds; /* to the first token of all texts, with guesses */
    int64_t n[N_SIDES];                     /* tokens */
} turn;

static bool are_same(const written *a, const written *b) {
    const size_t n = a->ids.n;
    return n == b->ids.n && (n == 0 || memcmp(a->ids.id, b->ids.id, n * sizeof *a->ids.id) == 0);
}

/* number: of the turn; turns and texts differ in which context is the first. */
static ggl_status run_turn(const bench_pair *p, int number, turn *r, bench_guesses *g,
                           written w[N_SIDES], ggl_error *err) {
    int n_differ = 0;
    *r = (turn){.first_seconds = 0};
    for (size_t i = 0; i < p->n_prompts; i++) {
        for (int k = 0; k < N_SIDES; k++) {
            const int side = (int)((size_t)(number + k) + i) % N_SIDES;
            const ggl_status st =
                write_text(p->ctx[side], &p->prompt[i], p->t->n_gen, &w[side], err);
            if (st != GGL_OK)
                return st;
            r->seconds[side] += w[side].run.seconds;
            r->n[side] += n_drawn(&w[side].run);
        }
        r->first_seconds += w[GUESSING].run.prompt_seconds;
        g->n_guessed += w[GUESSING].run.n_guessed;
        g->n_right += w[GUESSING].run.n_right;
        n_differ += !are_same(&w[PLAIN], &w[GUESSING]);
    }
    g->n_differ = n_differ > g->n_differ ? n_differ : g->n_differ;
    g->n_tokens += r->n[GUESSING];
    if (r->n[PLAIN] > 0 && r->n[GUESSING] > 0)
        return GGL_OK;
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "nothing is generated after the first token, as the model ends every text: "
                    "-f FILE gives it another");
}

static double rate(const turn *r, int side) {
    const double least = 1e-9;
    return (double)r->n[side] / (r->seconds[side] > least ? r->seconds[side] : least);
}

static ggl_status run_turns(const bench_pair *p, bench_row *row, const bench_options *o,
                            written w[N_SIDES], ggl_error *err) {
    bench_guesses *g = row->guesses;
    const llm_guessing *guessing = llm_opened_guessing(p->ctx[GUESSING]);
    double first[BENCH_MAX_SAMPLES];
    int64_t n_steps = 0, n_declined = 0;
    turn r;
    ggl_status st = GGL_OK;
    if (!o->no_warmup)
        st = run_turn(p, 0, &r, g, w, err);
    g->n_tokens = g->n_guessed = g->n_right = 0;
    n_declined = llm_guessing_declined(guessing, &n_steps);
    for (int i = 0; i < o->reps && st == GGL_OK; i++) {
        (void)progress_share(NULL, (size_t)i, (size_t)o->reps);
        st = run_turn(p, i, &r, g, w, err);
        row->ns[i] = r.seconds[GUESSING] * 1e9;
        row->ts[i] = rate(&r, GUESSING);
        g->plain[i] = rate(&r, PLAIN);
        g->ratio[i] = row->ts[i] / g->plain[i];
        first[i] = r.first_seconds * 1e9 / (double)p->n_prompts;
    }
    if (st == GGL_OK)
        st = llm_guessing_failed(guessing, err);
    if (st != GGL_OK)
        return st;
    g->n_declined = llm_guessing_declined(guessing, &g->n_steps) - n_declined;
    g->n_steps -= n_steps;
    row->n = (int)o->reps;
    row->s_ns = bench_summarize(row->ns, row->n);
    row->s_ts = bench_summarize(row->ts, row->n);
    row->first_token_ns = bench_summarize(first, row->n).median;
    g->s_plain = bench_summarize(g->plain, row->n);
    g->s_ratio = bench_summarize(g->ratio, row->n);
    return GGL_OK;
}

ggl_status bench_pair_run(bench_pair *p, bench_row *row, const bench_options *o, ggl_error *err) {
    written w[N_SIDES] = {0};
    row->guesses = calloc(1, sizeof *row->guesses);
    if (!row->guesses)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    row->guesses->draft = p->draft;
    row->guesses->n_texts = (int)p->n_prompts;
    const ggl_status st = run_turns(p, row, o, w, err);
    for (int side = 0; side < N_SIDES; side++)
        llm_tokens_fini(&w[side].ids);
    return st;
}
