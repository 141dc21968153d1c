#include "speculate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ggl/internal/sched.h"
#include "load.h"
#include "process.h"

struct speculation {
    const char *tool;
    llm_guess **guess; /* [n] */
    const llm_guesser **guesser;
    int n;
    llm_model *model; /* of the draft */
    llm_session *session;
    llm_placement *own; /* NULL: the target's runs the draft */
};

int64_t speculate_n_max(const speculate_options *o) {
    return o->lookup || o->draft ? o->n_max : 0;
}

int speculate_check(const char *tool, const speculate_options *o) {
    const bool has_draft = o->draft || o->draft_comes;
    const bool guesses = o->lookup || has_draft;
    if (!guesses && (o->max_given || o->min_given))
        return tool_error(tool, 2, "%s needs --lookup or --draft MODEL",
                          o->max_given ? "--draft-max" : "--draft-min");
    if (!has_draft && o->p_min_given)
        return tool_error(tool, 2, "--draft-p-min needs --draft MODEL");
    if (o->lookup && has_draft)
        return tool_error(tool, 2, "--lookup and --draft cannot be used together");
    if (o->n_min > o->n_max)
        return tool_error(tool, 2, "--draft-min %" PRId64 " is more than --draft-max %" PRId64,
                          o->n_min, o->n_max);
    if (o->draft && o->draft[strspn(o->draft, "0123456789")] == 0 && access(o->draft, F_OK) != 0)
        return tool_error(
            tool, 2,
            "--draft %s: this flag names the draft model; --draft-max sets the number "
            "of guesses",
            o->draft);
    if (!has_draft && (o->n_ctx || o->placement.devices || o->placement.n_gpu_layers_given))
        return tool_error(tool, 2, "-cd, -devd and -ngld need a draft model, --draft MODEL");
    return -1;
}

/* --- the draft -------------------------------------------------------------------------------- */

static ggl_status open_file(llm_model **out, const speculate_options *o, const speculate_target *t,
                            ggl_error *err) {
    const llm_model_params mp = {.size = sizeof mp, .gguf = &t->file};
    return tool_load_model(out, o->draft, &mp, 0, err);
}

/* The parameters of the draft's session: the target's adapters and pages are not for it. */
static llm_session_params session_params(const speculate_options *o, const speculate_target *t) {
    llm_session_params sp = t->session;
    sp.n_ctx = o->n_ctx ? o->n_ctx : t->n_ctx;
    sp.n_pool = 0;
    sp.n_slots = t->n_sequences;
    sp.n_rows = 1;
    sp.repack_cache = NULL;
    sp.adapter = NULL;
    sp.n_adapters = 0;
    return sp;
}

/* Opens the draft's file, and compares its vocabulary. */
static int open_draft(speculation *s, const speculate_options *o, const speculate_target *t) {
    ggl_error err = {0};
    const llm_tokenizer *own = NULL;
    ggl_status st = open_file(&s->model, o, t, &err);
    if (st == GGL_OK)
        st = llm_model_tokenizer(s->model, &own, &err);
    if (st != GGL_OK)
        return tool_error(s->tool, 1, "--draft: %s", err.msg);
    if (!t->tokenizer)
        return tool_error(s->tool, 1,
                          "--draft: there is no tokenizer for the model, so it is unknown whether "
                          "the draft model has the same tokens");
    if (llm_draft_fits(t->tokenizer, own, &err) != GGL_OK)
        return tool_error(s->tool, 1, "--draft %s: %s", o->draft, err.msg);
    return -1;
}

static int open_session(speculation *s, const speculate_options *o, const speculate_target *t) {
    llm_session_params sp = session_params(o, t);
    llm_placement *p = t->placement;
    int code = -1;
    if (!llm_placement_is_cpu_only(p) || o->placement.devices || o->placement.n_gpu_layers_given) {
        code = placement_open(&s->own, s->tool, &o->placement, llm_placement_params(p));
        p = s->own;
    }
    if (code < 0)
        code = placement_session(s->tool, p, &s->session, s->model, &sp);
    if (code >= 0)
        return code;
    ggl_error err = {0};
    const ggl_status st = llm_session_alloc(s->session, &err);
    if (st == GGL_CANCELLED)
        return process_stop_code();
    return st == GGL_OK ? -1 : tool_error(s->tool, 1, "--draft: %s", err.msg);
}

static void add_memory(const llm_session *s, bool follows, double *fixed, double *row) {
    ggl_memory m;
    for (int i = 0; ggl_sched_memory(llm_session_sched(s), i, &m); i++) {
        *(follows ? row : fixed) += (double)m.stores_rows;
        *fixed += (double)m.weights_copied + (double)m.weights_repacked + (double)m.stores_states +
                  (double)m.arena + (double)m.io;
    }
    *row /= (double)llm_session_n_ctx(s);
}

void speculate_memory(const speculate_options *o, const speculate_target *t, double *fixed,
                      double *row) {
    llm_model *m = NULL;
    llm_session *s = NULL;
    llm_placement *p = NULL;
    ggl_error ignored; /* speculate_open reports it */
    *fixed = *row = 0;
    if (!o->draft || o->placement.devices || o->placement.n_gpu_layers_given)
        return;
    llm_session_params sp = session_params(o, t);
    if (open_file(&m, o, t, &ignored) == GGL_OK &&
        placement_open_quietly(&p, &o->placement, llm_placement_params(t->placement), &ignored) ==
            GGL_OK &&
        llm_placement_session(p, &s, m, &sp, &ignored) == GGL_OK)
        add_memory(s, o->n_ctx == 0, fixed, row);
    llm_session_free(s);
    (void)llm_placement_close(p, NULL);
    llm_model_free(m);
}

/* --- both ------------------------------------------------------------------------------------- */

static ggl_status open_guessers(speculation *s, const speculate_options *o, ggl_error *err) {
    llm_guess_params gp = llm_guess_default();
    gp.n_max = o->n_max;
    gp.n_min = o->n_min;
    s->guess = calloc((size_t)s->n, sizeof *s->guess);
    s->guesser = calloc((size_t)s->n, sizeof *s->guesser);
    if (!s->guess || !s->guesser)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    ggl_status st = GGL_OK;
    for (int i = 0; i < s->n && st == GGL_OK; i++) {
        const llm_draft_params dp = {
            .size = sizeof dp, .session = s->session, .slot = i, .p_min = (float)o->p_min};
        st = o->lookup ? llm_guess_lookup(&s->guess[i], &gp, err)
                       : llm_guess_draft(&s->guess[i], &gp, &dp, err);
        if (st == GGL_OK)
            s->guesser[i] = llm_guess_guesser(s->guess[i]);
    }
    return st;
}

int speculate_open(speculation **out, const char *tool, const speculate_options *o,
                   const speculate_target *t) {
    ggl_error err = {0};
    *out = NULL;
    if (speculate_n_max(o) == 0)
        return -1;
    speculation *s = *out = calloc(1, sizeof *s);
    if (!s)
        return tool_error(tool, 1, "out of memory");
    s->tool = tool;
    s->n = t->n_sequences;
    int code = o->draft ? open_draft(s, o, t) : -1;
    if (code < 0 && o->draft)
        code = open_session(s, o, t);
    if (code >= 0)
        return code;
    return open_guessers(s, o, &err) == GGL_OK ? -1 : tool_error(tool, 1, "%s", err.msg);
}

void speculate_close(speculation *s) {
    if (!s)
        return;
    for (int i = 0; i < s->n && s->guess; i++)
        llm_guess_free(s->guess[i]);
    free(s->guess);
    free((void *)s->guesser);
    llm_session_free(s->session);
    (void)llm_placement_close(s->own, NULL); /* it writes no timeline */
    llm_model_free(s->model);
    free(s);
}

const llm_guesser *const *speculate_guessers(const speculation *s) {
    return s ? s->guesser : NULL;
}

const llm_guesser *speculate_guesser(const speculation *s) {
    return s ? s->guesser[0] : NULL;
}

void speculate_report(const speculation *s, const llm_generator_stats *stats) {
    ggl_error err = {0};
    if (!s)
        return;
    if (!tool_is_quiet())
        fprintf(stderr, "guesses                  %7" PRId64 " tokens %10" PRId64 " right\n",
                stats->n_guessed, stats->n_right);
    if (llm_guess_failed(s->guess[0], &err) != GGL_OK)
        tool_warning(s->tool, "the draft model stopped guessing: %s", err.msg);
}
