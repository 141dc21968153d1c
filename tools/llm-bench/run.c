#include "run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/machine.h"
#include "common/open_context.h"
#include "common/placement_text.h"
#include "common/progress.h"
#include "conform/speed.h"
#include "costs.h"
#include "ggl/alloc.h"
#include "ggl/backends.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/sched.h"
#include "guesses.h"
#include "llm/internal/session.h"
#include "texts.h"

enum { MAX_SEQUENCES = 16 };

/* A session in which a test is repeated. */
typedef struct stage {
    const bench_test *t;
    llm_context *ctx;
    int32_t *token; /* random, but the same in each run */
    int64_t n_tokens;
    int32_t *slot; /* [n_batch] */
    /* states that cannot be cut back to the depth; NULL: not needed */
    void *snapshot[MAX_SEQUENCES];
    size_t snapshot_size[MAX_SEQUENCES];
    bench_collector *collector;
    bench_pair *pair; /* generates with guesses and without; NULL: nothing guesses */
    double *eval_ns;  /* for prompts and generation, if they are timed separately */
} stage;

/* --- setting up ------------------------------------------------------------------------------- */

/* Fills in ids from the whole vocabulary, always the same for a vocabulary's size. */
static void fill_tokens(stage *g, int64_t n_vocab) {
    uint64_t state = 1;
    for (int64_t i = 0; i < g->n_tokens; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        g->token[i] = (int32_t)((state >> 33) % (uint64_t)n_vocab);
    }
}

/* Frees everything; returns st, or if that is GGL_OK the error of ending the trace. */
static ggl_status stage_fini(stage *g, ggl_status st, ggl_error *err) {
    for (int i = 0; i < MAX_SEQUENCES; i++)
        ggl_free(g->snapshot[i]);
    bench_pair_close(g->pair);
    const ggl_status closed =
        llm_context_return(g->ctx, LLM_OPENED_MODEL, st == GGL_OK ? err : NULL);
    free(g->token);
    free(g->slot);
    return st == GGL_OK ? closed : st;
}

llm_opening bench_opening(bench_options *o, const bench_where *w) {
    llm_opening how = open_options_opening(&o->open);
    how.params.device = w->devices;
    how.params.split = w->split;
    how.n_gpu_layers_given = w->n_gpu_layers >= 0;
    how.params.n_gpu_layers = how.n_gpu_layers_given ? w->n_gpu_layers : 0;
    how.no_tokenizer = !o->guesses;
    how.no_advice = true;
    how.placement_note = how.measured = NULL;
    how.placed = NULL;
    how.cancelled = NULL;
    return how;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* Sets what the test needs of the session. */
static void set_session(llm_opening *how, const bench_setup *s, const bench_test *t) {
    llm_session_params *p = &how->session;
    *p = llm_session_default();
    p->n_ctx = t->n_depth + t->n_prompt + t->n_gen;
    how->params.n_ubatch = larger(t->n_ubatch, t->n_sequences);
    p->n_slots = t->n_sequences;
    p->n_rows = t->n_sequences;
    p->type_k = (ggl_type)t->type_k;
    p->type_v = (ggl_type)t->type_v;
    p->types_given = s->o->types_given;
    bench_texts_session(how, llm_model_arch(llm_opened_model(s->ctx)), t);
}

/* Says once what the session left out. */
static void print_notes(const bench_setup *s) {
    if (!*s->noted)
        tool_print_notes(llm_session_notes(llm_opened_session(s->ctx)));
    *s->noted = true;
}

/* Says once that texts of n tokens are longer than what the model was trained on. */
static void note_length(const bench_setup *s, int64_t n) {
    const llm_model *m = llm_opened_model(s->ctx);
    if (n <= *s->noted_length)
        return;
    if (*s->noted_length <= llm_model_n_ctx(m))
        tool_note_context("llm-bench", m, n);
    *s->noted_length = n;
}

static ggl_status stage_init(stage *g, const bench_setup *s, const bench_test *t,
                             bench_collector *collector, ggl_error *err) {
    *g = (stage){.t = t, .ctx = s->ctx, .collector = collector};
    llm_opening o = bench_opening(s->o, t->where);
    o.path = s->opening.path;
    o.params.progress = NULL;
    o.params.n_threads = t->n_threads;
    o.profile = collector ? bench_collect : NULL;
    o.profile_ctx = collector;
    set_session(&o, s, t);
    if (t->guesses) {
        const ggl_status opened = bench_pair_open(&g->pair, g->ctx, &o, s->o, t, err);
        if (opened == GGL_OK)
            print_notes(s);
        if (opened == GGL_OK)
            note_length(s, bench_pair_length(g->pair));
        return opened;
    }
    ggl_status st = llm_context_open(g->ctx, &o, LLM_OPENED_ADAPTERS, err);
    if (st != GGL_OK && llm_opened_step(g->ctx) == LLM_OPENED_ADAPTERS - 1)
        (void)adapters_within(&s->o->open.adapters, llm_opened_n_adapters(g->ctx), st, err);
    if (st == GGL_OK)
        st = llm_context_open(g->ctx, &o, LLM_OPENED_SESSION, err);
    if (st == GGL_OK)
        print_notes(s);
    if (st == GGL_OK)
        st = llm_context_open(g->ctx, &o, LLM_OPENED_WEIGHTS, err);
    if (st != GGL_OK)
        return st;
    g->n_tokens = o.session.n_ctx;
    g->token = malloc((size_t)g->n_tokens * sizeof *g->token);
    g->slot = calloc((size_t)larger(t->n_batch, t->n_sequences), sizeof *g->slot);
    if (!g->token || !g->slot)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    fill_tokens(g, llm_session_n_vocab(llm_opened_session(g->ctx)));
    return GGL_OK;
}

/* --- running ---------------------------------------------------------------------------------- */

static void tell_past(stage *g, double n_past) {
    if (g->collector)
        g->collector->n_past = n_past;
}

/* Runs n tokens for one sequence, n_batch at a time. */
static ggl_status run_prompt(stage *g, int32_t slot, int64_t first, int64_t n, ggl_error *err) {
    ggl_status st = GGL_OK;
    int64_t at_once = g->t->n_batch < n ? g->t->n_batch : n;
    for (int64_t i = 0; i < at_once; i++)
        g->slot[i] = slot;
    for (int64_t i = 0, k; i < n && st == GGL_OK; i += k) {
        k = at_once < n - i ? at_once : n - i;
        tell_past(g, (double)(first + i) + 0.5 * (double)(k + 1));
        st = llm_session_eval(llm_opened_session(g->ctx),
                              &(llm_batch){.n = k, .token = g->token + first + i, .slot = g->slot},
                              err);
    }
    return st;
}

static ggl_status run_prompts(stage *g, ggl_error *err) {
    llm_session *s = llm_opened_session(g->ctx);
    ggl_status st = GGL_OK;
    if (bench_embeds(s))
        return bench_embed(s, g->t, g->token, err);
    for (int32_t k = 0; k < g->t->n_sequences && st == GGL_OK && g->t->n_prompt > 0; k++)
        st = llm_session_reads_text(s) ? bench_read(s, g->t, k, g->token, err)
                                       : run_prompt(g, k, g->t->n_depth, g->t->n_prompt, err);
    return st;
}

/* Starts number i of the tokens of sequences first .. end-1. */
static ggl_status submit_next(stage *g, int64_t i, int64_t first, int64_t end, uint64_t *ticket,
                              ggl_error *err) {
    const int64_t at = g->t->n_depth + g->t->n_prompt;
    int32_t token[MAX_SEQUENCES], slot[MAX_SEQUENCES];
    bool want[MAX_SEQUENCES];
    for (int64_t k = first; k < end; k++) {
        token[k - first] = g->token[(at + i + 7 * k) % g->n_tokens];
        slot[k - first] = (int32_t)k;
        want[k - first] = true;
    }
    tell_past(g, (double)(at + i + 1));
    const llm_batch b = {.n = end - first, .token = token, .slot = slot, .want = want};
    return llm_session_submit(llm_opened_session(g->ctx), &b, ticket, err);
}

/* Generates n tokens for each sequence, all sequences at once: divided, as the engine does it, over as
 * many batches as may be under way. *first_ns: the time when the first ones were computed. */
static ggl_status run_generation(stage *g, int64_t n, int64_t *first_ns, ggl_error *err) {
    uint64_t ticket[MAX_SEQUENCES] = {0};
    const int64_t n_seq = g->t->n_sequences,
                  n_parts = llm_session_n_parts(llm_opened_session(g->ctx), n_seq);
    ggl_status st = GGL_OK;
    for (int64_t i = 0; i <= n && st == GGL_OK; i++)
        for (int64_t k = 0; k < n_parts && st == GGL_OK; k++) {
            if (i > 0)
                st = llm_session_collect(llm_opened_session(g->ctx), ticket[k], err);
            if (i == 1)
                *first_ns = ggl_os_clock();
            if (st == GGL_OK && i < n)
                st = submit_next(g, i, n_seq * k / n_parts, n_seq * (k + 1) / n_parts, &ticket[k],
                                 err);
        }
    return st;
}

/* --- going back to the depth ------------------------------------------------------------------ */

static ggl_status fill_depth(stage *g, int32_t slot, ggl_error *err) {
    if (llm_session_reads_text(llm_opened_session(g->ctx)))
        return bench_read(llm_opened_session(g->ctx), g->t, slot, g->token, err);
    ggl_status st = llm_session_clear(llm_opened_session(g->ctx), slot, err);
    return st == GGL_OK && g->t->n_depth > 0 ? run_prompt(g, slot, 0, g->t->n_depth, err) : st;
}

/* Computes the tokens up to the depth once, and saves the states that cannot be cut back. */
static ggl_status reach_depth(stage *g, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int32_t k = 0; k < g->t->n_sequences && st == GGL_OK; k++) {
        st = fill_depth(g, k, err);
        if (st == GGL_OK && g->t->n_depth > 0 &&
            ggl_sched_has_states(llm_session_sched(llm_opened_session(g->ctx))))
            st = llm_session_save(llm_opened_session(g->ctx), k, true, &g->snapshot[k],
                                  &g->snapshot_size[k], err);
    }
    return st;
}

/* Returns to the depth, between runs. */
static ggl_status go_back(stage *g, ggl_error *err) {
    ggl_status st = GGL_OK;
    for (int32_t k = 0; k < g->t->n_sequences && st == GGL_OK; k++) {
        if (llm_session_reads_text(llm_opened_session(g->ctx)))
            st = fill_depth(g, k, err);
        else if (g->t->n_depth == 0)
            st = llm_session_clear(llm_opened_session(g->ctx), k, err);
        else if (llm_session_cut(llm_opened_session(g->ctx), k, g->t->n_depth, NULL) != GGL_OK &&
                 (!g->snapshot[k] ||
                  llm_session_restore(llm_opened_session(g->ctx), k, g->snapshot[k],
                                      g->snapshot_size[k], NULL) != GGL_OK))
            st = fill_depth(g, k, err);
    }
    return st;
}

/* --- a test ----------------------------------------------------------------------------------- */

static ggl_status warm_up(stage *g, ggl_error *err) {
    int64_t first_ns;
    ggl_status st = run_prompts(g, err);
    if (st == GGL_OK && g->t->n_gen > 0)
        st = run_generation(g, 1, &first_ns, err);
    return st;
}

static double tokens_of(const bench_test *t) {
    return (double)((t->n_prompt + t->n_gen) * t->n_sequences);
}

static ggl_status take_samples(stage *g, bench_row *row, const bench_options *o, ggl_error *err) {
    double first[BENCH_MAX_SAMPLES];
    ggl_status st = reach_depth(g, err);
    if (st == GGL_OK && !o->no_warmup)
        st = warm_up(g, err);
    for (int i = 0; i < o->reps && st == GGL_OK; i++) {
        (void)progress_share(NULL, (size_t)i, (size_t)o->reps);
        st = go_back(g, err);
        if (st != GGL_OK)
            break;
        int64_t begin = ggl_os_clock(), first_ns = begin;
        st = run_prompts(g, err);
        if (g->t->n_prompt > 0)
            first_ns = ggl_os_clock();
        int64_t generated_ns = first_ns;
        if (st == GGL_OK && g->t->n_gen > 0)
            st = run_generation(g, g->t->n_gen, &generated_ns, err);
        row->ns[i] = (double)larger(ggl_os_clock() - begin, 1);
        row->ts[i] = tokens_of(g->t) / row->ns[i] * 1e9;
        first[i] = (double)((g->t->n_prompt > 0 ? first_ns : generated_ns) - begin);
    }
    if (st != GGL_OK)
        return st;
    row->n = (int)o->reps;
    row->s_ns = bench_summarize(row->ns, row->n);
    row->s_ts = bench_summarize(row->ts, row->n);
    row->first_token_ns = bench_summarize(first, row->n).median;
    return GGL_OK;
}

/* Lets the backends report the steps of batches that are over: some do so only when they are waited for. */
static ggl_status settle(const stage *g, ggl_error *err) {
    const llm_placement *p = llm_opened_placement(g->ctx);
    ggl_status st = GGL_OK;
    for (int i = 0; i < llm_placement_n_backends(p) && st == GGL_OK; i++) {
        ggl_backend *b = llm_placement_backend(p, i);
        st = b->v->wait(b, err);
    }
    return st;
}

/* Runs the test again on a backend that reports its steps, prompt and generation separately. */
static ggl_status take_profile(const bench_setup *s, const bench_test *t, bench_row *row,
                               ggl_error *err) {
    bench_collector c = {.on = false};
    stage g;
    int64_t first_ns;
    row->profile = calloc(2, sizeof *row->profile);
    ggl_status st = stage_init(&g, s, t, &c, err);
    if (st == GGL_OK && !row->profile)
        st = ggl_fail(err, GGL_NOMEM, "out of memory");
    if (st == GGL_OK)
        st = reach_depth(&g, err);
    if (st == GGL_OK)
        st = warm_up(&g, err);
    if (st == GGL_OK)
        st = go_back(&g, err);
    if (st == GGL_OK)
        st = settle(&g, err);
    for (int k = 0; k < 2 && st == GGL_OK; k++) {
        bench_collector_reset(&c);
        c.on = true;
        int64_t begin = ggl_os_clock();
        st = k == 0 ? run_prompts(&g, err) : run_generation(&g, t->n_gen, &first_ns, err);
        double wall = (double)(ggl_os_clock() - begin);
        if (st == GGL_OK)
            st = settle(&g, err);
        c.on = false;
        const ggl_sched *sched = llm_session_sched(llm_opened_session(g.ctx));
        if (st == GGL_OK && !bench_profile_make(&row->profile[k], &c, sched, wall))
            st = ggl_fail(err, GGL_NOMEM, "out of memory for the profile");
    }
    st = stage_fini(&g, st, err);
    bench_collector_fini(&c);
    return st;
}

/* Computes rates by the median. Only for tests of one kind, as the limits differ. */
static ggl_status count_rates(bench_row *row, const bench_setup *s, const bench_test *t,
                              ggl_error *err) {
    static bench_costs c;
    const llm_session *session = llm_opened_session(s->ctx);
    const char *only = llm_opened_session_params(s->ctx)->only; /* vectors or scores */
    const llm_arch_params params = {.size = sizeof params,
                                    .n_ctx = t->n_depth + t->n_prompt + t->n_gen,
                                    .only = only,
                                    .adapter = llm_opened_adapter(s->ctx),
                                    .n_adapters = llm_opened_n_adapters(s->ctx)};
    ggl_status st = bench_costs_count(&c, llm_opened_model(s->ctx), &params, t->n_ubatch,
                                      (ggl_type)t->type_k, (ggl_type)t->type_v, err);
    if (st != GGL_OK)
        return st;
    double ns = row->s_ns.median, limit = 0, rate = 0;
    snprintf(row->model_type, sizeof row->model_type, "%s", c.type);
    row->model_size = c.size;
    row->n_params = c.n_params;
    if (row->guesses) /* several tokens in a step, and another model beside this one */
        return GGL_OK;
    if (t->n_gen == 0) {
        const double n = (double)(t->n_prompt * t->n_sequences),
                     evals = (double)((t->n_prompt + t->n_batch - 1) / t->n_batch * t->n_sequences);
        const double macs = llm_session_reads_text(session) ? n * c.stage_macs
                            : only                          ? n * (c.trunk_macs + c.tail_macs)
                                   : n * c.trunk_macs + evals * c.tail_macs;
        rate = row->gmac = macs / ns;
        bool rounded = c.weight_type == GGL_F16 && s->o->open.how.params.f16_as_bf16;
        limit = bench_limit_of(&row->limit, rounded ? GGL_BF16 : c.weight_type);
    } else if (t->n_prompt == 0) {
        double past = (double)t->n_depth + 0.5 * (double)(t->n_gen + 1);
        rate = row->gb = bench_costs_bytes(&c, t->n_sequences, past) * (double)t->n_gen / ns;
        limit = row->limit.read_gb;
    }
    row->percent = limit > 0 ? 100 * rate / limit : 0;
    return GGL_OK;
}

/* Returns the backend that has all layers, or NULL if there are several. row->backend is "vulkan0"
 * or "vulkan0=5". */
static ggl_backend *only_backend(const bench_row *row, const stage *g) {
    const size_t n = strcspn(row->backend, "=,");
    for (int i = 0;
         i < llm_placement_n_backends(llm_opened_placement(g->ctx)) && !strchr(row->backend, ',');
         i++) {
        ggl_backend *b = llm_placement_backend(llm_opened_placement(g->ctx), i);
        if (strlen(b->name) == n && memcmp(b->name, row->backend, n) == 0)
            return b;
    }
    return NULL;
}

/* Sets what the only backend could do at most: for the CPU by special loops, for others by their
 * own operators. Each is measured once. */
static void take_limits(bench_row *row, const bench_setup *s, const stage *g) {
    static struct known {
        char name[32];
        conform_limits l;
    } known[16];
    static int n_known;
    ggl_backend *b = only_backend(row, g);
    row->limit = (bench_limits){.isa = ""};
    if (b && strncmp(b->name, "cpu", 3) == 0) {
        row->limit = s->limits;
        snprintf(row->limit_of, sizeof row->limit_of, "%d thread%s (%s)", (int)row->test.n_threads,
                 row->test.n_threads == 1 ? "" : "s", row->isa);
    }
    if (!b || *row->limit_of || s->o->no_limits)
        return;
    int i = 0;
    while (i < n_known && strcmp(known[i].name, b->name) != 0)
        i++;
    if (i == n_known && n_known < (int)(sizeof known / sizeof *known)) {
        snprintf(known[i].name, sizeof known[i].name, "%s", b->name);
        progress_begin(NULL, 0, "limits of %s", b->name);
        known[n_known++].l = conform_measure_limits(b, bench_brief() ? 0.001 : 1);
        progress_end();
    }
    if (i == n_known)
        return;
    const conform_limits *l = &known[i].l;
    row->limit.read_gb = l->memory_gb;
    row->limit.int8_gmac = row->limit.f32_gmac = row->limit.bf16_gmac = l->product_gmac;
    snprintf(row->limit_of, sizeof row->limit_of, "%s", b->name);
}

/* Sets what the test ran on: which layers on which backend, and the cache's types. */
static void tell_place(bench_row *row, const stage *g) {
    size_t used = 0;
    const llm_session_params *p = llm_opened_session_params(g->ctx);
    snprintf(row->types[0], sizeof row->types[0], "%s", ggl_type_get((int)p->type_k)->name);
    snprintf(row->types[1], sizeof row->types[1], "%s", ggl_type_get((int)p->type_v)->name);
    snprintf(row->backend, sizeof row->backend, "%s",
             llm_placement_text(llm_opened_placement(g->ctx)));
    row->n_gpu_layers = (double)llm_placement_n_device_layers(llm_opened_placement(g->ctx),
                                                              llm_opened_session(g->ctx));
    for (int i = 0; i < llm_placement_n_backends(llm_opened_placement(g->ctx)); i++) {
        const ggl_backend *b = llm_placement_backend(llm_opened_placement(g->ctx), i);
        if (strncmp(b->name, "cpu", 3) != 0 && used < sizeof row->device)
            used += (size_t)snprintf(row->device + used, sizeof row->device - used, "%s%s",
                                     used ? "; " : "", b->description);
    }
}

/* Returns the earlier row of the same test on the same devices with the same layers, which
 * differs only by the -ngl that was typed; NULL if none. */
static const bench_row *equal_row(const bench_row *row, const bench_setup *s) {
    const bench_where *w = row->test.where;
    for (size_t i = 0; i < s->n_rows; i++) {
        const bench_row *old = s->row[i];
        const bench_where *v = old->test.where;
        if (v->n_gpu_layers != w->n_gpu_layers && bench_where_equal(v, w) &&
            bench_test_equal(&old->test, &row->test) && strcmp(old->backend, row->backend) == 0)
            return old;
    }
    return NULL;
}

ggl_status bench_run(bench_row *row, const bench_row **equal, const bench_setup *s,
                     const bench_test *t, ggl_error *err) {
    stage g;
    *equal = NULL;
    *row = (bench_row){.test = *t};
    snprintf(row->cpu, sizeof row->cpu, "%s", s->cpu);
    snprintf(row->isa, sizeof row->isa, "%s",
             bench_peak_best(bench_features(s->o->open.how.mask))->name);
    bench_time_text(row->time, sizeof row->time);
    int64_t begin = ggl_os_clock();
    ggl_status st = stage_init(&g, s, t, NULL, err);
    row->load_ns = s->load_ns + (double)(ggl_os_clock() - begin);
    if (st == GGL_OK) {
        tell_place(row, &g);
        *equal = equal_row(row, s);
        if (*equal)
            return stage_fini(&g, st, err);
        st = g.pair ? bench_pair_run(g.pair, row, s->o, err) : take_samples(&g, row, s->o, err);
    }
    row->peak_memory = (double)bench_peak_memory();
    if (st == GGL_OK) {
        take_limits(row, s, &g);
        st = count_rates(row, s, t, err);
    }
    st = stage_fini(&g, st, err);
    return st == GGL_OK && s->o->profile ? take_profile(s, t, row, err) : st;
}

void bench_row_free(bench_row *row) {
    for (int i = 0; row && row->profile && i < 2; i++)
        bench_profile_fini(&row->profile[i]);
    if (row) {
        free(row->profile);
        free(row->guesses);
    }
    free(row);
}
