#include "generation.h"

#include <stdlib.h>
#include <string.h>

#include "common/process.h"
#include "common/texts.h"
#include "ggl/alloc.h"

#define TOOL "llm-cli"

/* --- parameters ------------------------------------------------------------------------------- */

static int read_stops(cli_generation *g, const stops_options *o, bool escape) {
    const size_t n = o->reverse.n + o->stop.n;
    g->stop = ggl_calloc(n + 1, sizeof *g->stop);
    for (size_t i = 0; i < n && g->stop; i++)
        g->stop[i] = i < o->reverse.n ? o->reverse.s[i] : o->stop.s[i - o->reverse.n];
    g->texts = g->stop ? read_texts(g->stop, n, escape) : NULL;
    if (!g->texts)
        return tool_error(TOOL, 1, "out of memory for stop strings");
    for (size_t i = 0; i < n; i++)
        g->stop[i] = g->texts[i].s;
    g->p.stop = g->stop;
    g->p.n_stop = n;
    g->p.n_stop_shown = o->reverse.n;
    return -1;
}

static int read_constraint(cli_generation *g, const constraint_options *o, const llm_context *c) {
    if (!constraint_is_given(o))
        return -1;
    if (!llm_opened_tokenizer(c))
        return tool_error(TOOL, 1,
                          "a grammar is about text, but this model's file has no tokenizer that "
                          "could write it");
    const int code = grammar_find(&g->grammar, TOOL, o);
    *(g->grammar.is_schema ? &g->p.json_schema : &g->p.grammar) = g->grammar.text;
    g->p.grammar_name = g->grammar.name;
    return code;
}

static bool any_token(void *user, int32_t id, const float *logits) {
    (void)user, (void)id, (void)logits;
    return true;
}

int cli_generation_set_sampling(cli_generation *g, const cli_options *o, llm_context *c) {
    ggl_error err = {0};
    const int code = sampling_options_check_vocab(TOOL, &o->sampling,
                                                  llm_session_n_vocab(llm_opened_session(c)));
    if (code >= 0)
        return code;
    const llm_sampler_params before = g->sampling;
    g->sampling = sampling_params(&o->sampling);
    g->sampling.seed = (uint64_t)o->seed;
    llm_opened_set_sampling(c, &g->sampling);
    llm_generate_params p = g->p;
    p.token = any_token; /* without a tokenizer, too */
    p.same_sampler = false;
    p.user = &g->notes;
    p.note = grammar_note;
    const ggl_status st = llm_check_params(c, &p, &err);
    if (st == GGL_OK)
        return -1;
    g->sampling = before;
    return tool_error(TOOL, st == GGL_NOMEM ? 1 : 2, "%s", err.msg);
}

int cli_generation_open(cli_generation *g, const cli_options *o, llm_context *c) {
    *g = (cli_generation){.p = llm_generate_default_of(c), .notes = {.tool = TOOL}};
    g->p.n_max = o->n_predict > 0 ? o->n_predict : 0;
    g->p.ignore_end = o->ignore_eos;
    if (!llm_opened_tokenizer(c) && o->stops.reverse.n + o->stops.stop.n > 0)
        return tool_error(TOOL, 1,
                          "-r and --stop need a tokenizer, which this model does not have");
    int code = read_stops(g, &o->stops, o->escape);
    if (code < 0)
        code = read_constraint(g, &o->constraint, c);
    if (code < 0)
        code = cli_generation_set_sampling(g, o, c);
    grammar_notes_end(&g->notes);
    return code;
}

void cli_generation_close(cli_generation *g) {
    ggl_free(g->texts);
    ggl_free(g->stop);
    free(g->grammar.read);
}

const char *cli_finish(llm_finish finish) {
    static const char *const names[] = {[LLM_FINISH_END] = "stop",
                                        [LLM_FINISH_STOP] = "stop_string",
                                        [LLM_FINISH_CONTEXT] = "context"};
    const size_t n = sizeof names / sizeof *names;
    if (process_stopped)
        return "cancelled";
    return (size_t)finish < n && names[finish] ? names[finish] : "length";
}
