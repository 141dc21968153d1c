#include "completion.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/color.h"
#include "common/npy.h"
#include "common/process.h"
#include "common/progress.h"
#include "ggl/alloc.h"

#define TOOL "llm-cli"

typedef struct completion {
    const completion_setup *s;
    llm_sampler *sampler;
    llm_generator *generator;
    saved_prompt *saved_prompt; /* NULL: there is no prompt cache */
    text_stream out;
    stops stops;
    npy_writer logits;
    record record;       /* for --json-output */
    const char *finish;  /* why the generation ended, as in the record */
    int64_t n_generated; /* tokens */
    bool told_nan, told_shift;
    double t_prompt, t_generate; /* seconds */
} completion;

static void each_logits(void *ctx, int64_t i, const float *logits) {
    (void)i;
    completion *c = ctx;
    npy_row(&c->logits, logits, llm_session_n_vocab(c->s->ctx->session));
}

static int open_saved_prompt(completion *c) {
    return saved_prompt_open(&c->saved_prompt, TOOL, &c->s->o->saved_prompt, c->s->ctx);
}

/* Makes the sampler and the generator. */
static int open_generator(completion *c) {
    ggl_error err = {0};
    const int code = sampling_open(
        &c->sampler, "llm-cli", &c->s->o->sampling, (uint64_t)c->s->o->seed, c->s->ctx->tokenizer,
        llm_session_n_vocab(c->s->ctx->session), llm_session_n_ctx(c->s->ctx->session));
    if (code >= 0)
        return code;
    const llm_generator_params p = {.size = sizeof p,
                                    .session = c->s->ctx->session,
                                    .sampler = c->sampler,
                                    .tokenizer = c->s->ctx->tokenizer,
                                    .shift = c->s->o->shift,
                                    .n_keep = c->s->o->n_keep,
                                    .guesser = c->s->guesser,
                                    .n_guess_max = speculate_n_max(&c->s->o->speculate),
                                    .progress = c->s->progress};
    return llm_generator_new(&c->generator, &p, &err) == GGL_OK
               ? -1
               : tool_error(TOOL, 1, "%s", err.msg);
}

static int run_prompt(completion *c) {
    ggl_error err = {0};
    const size_t n = c->s->prompt->n;
    llm_prompt p = {.id = c->s->prompt->id, .n = n, .ctx = c};
    if (c->s->o->logits) {
        /* opening a pipe waits for its reader */
        if (npy_open(&c->logits, c->s->o->logits, (int64_t)n,
                     llm_session_n_vocab(c->s->ctx->session), &err) != GGL_OK)
            return process_stopped ? process_stop_code()
                                   : tool_error(TOOL, 1, "--logits: %s", err.msg);
        p.each = each_logits;
    }
    const double t = process_seconds();
    progress_begin("tokens", 0, "prompt");
    ggl_status st = saved_prompt_run(c->saved_prompt, c->generator, &p, &err);
    progress_end();
    c->t_prompt = process_seconds() - t;
    if (process_stopped)
        tool_begin_line();
    if (st != GGL_OK && st != GGL_CANCELLED)
        return tool_error(TOOL, 1, "%s", err.msg);
    if (c->s->o->logits && !process_stopped && npy_close(&c->logits, &err) != GGL_OK)
        return tool_error(TOOL, 1, "--logits: %s", err.msg);
    return -1;
}

/* Prints a token, unless it may be part of a stop string. */
static ggl_status print_token(completion *c, int32_t id, ggl_error *err) {
    char number[16];
    ggl_str text;
    bool hidden = false;
    if (c->s->ctx->tokenizer) {
        text = llm_token_text(c->s->ctx->tokenizer, id, false);
        hidden = text.n == 0; /* a control token */
        if (hidden)
            text = llm_token_text(c->s->ctx->tokenizer, id, true);
    } else {
        text.s = number;
        text.n =
            (size_t)snprintf(number, sizeof number, "%s%" PRId32, c->n_generated ? "," : "", id);
    }
    return stops_put(&c->stops, &c->out, text, hidden, err);
}

/* Says once that some logits are NaN. */
static void note_nan(completion *c) {
    const int64_t n_nan = llm_generator_get_stats(c->generator).n_nan;
    if (n_nan == 0 || c->told_nan)
        return;
    c->told_nan = true;
    tool_warning(TOOL,
                 "after %" PRId64 " tokens %" PRId64 " of %" PRId64
                 " logits are NaN; such tokens are never chosen",
                 llm_session_n_past(c->s->ctx->session, 0), n_nan,
                 llm_session_n_vocab(c->s->ctx->session));
}

/* Says once that the context was shifted. */
static void note_shift(completion *c) {
    const llm_generator_stats stats = llm_generator_get_stats(c->generator);
    if (stats.n_shifts == 0 || c->told_shift)
        return;
    c->told_shift = true;
    tool_note(TOOL,
              "the context of %" PRId64 " tokens was full: %" PRId64
              " older ones were dropped, which repeats whenever it is full",
              llm_session_n_ctx(c->s->ctx->session), stats.n_dropped);
}

/* Returns an exit code after an error; -1: the generation ended as it should. */
static int end_of_generation(completion *c, ggl_status st, const ggl_error *err) {
    if (st != GGL_OK && st != GGL_CANCELLED && st != GGL_LIMIT)
        return tool_error(TOOL, 1, "%s%s", err->msg,
                          st == GGL_FORMAT ? "; llm-arch verify names the first node with a NaN, "
                                             "llm-arch doctor tries other readings"
                                           : "");
    if (st == GGL_LIMIT)
        tool_note(TOOL, "%s", err->msg);
    if (constraint_is_met(c->s->constraint) || process_stopped || c->stops.found)
        return -1;
    return tool_error(TOOL, 1,
                      "the text is not complete by its grammar after %" PRId64
                      " tokens: -n, or the context (-c), is too small for its shortest ending",
                      c->n_generated);
}

/* Draws a token and shows it. *ends: it was the last one. */
static ggl_status generate_token(completion *c, bool *ends, ggl_error *err) {
    int32_t id;
    ggl_status st = llm_generator_next(c->generator, &id, err);
    if (st != GGL_OK)
        return st;
    note_nan(c);
    note_shift(c);
    *ends = id < 0 || (c->s->ctx->tokenizer && !c->s->o->ignore_eos &&
                       llm_tokenizer_is_eog(c->s->ctx->tokenizer, id));
    if (*ends) {
        c->finish = "stop";
        return GGL_OK;
    }
    if (c->s->o->json_output && !record_token(&c->record, id, llm_generator_logits(c->generator),
                                              (int32_t)llm_session_n_vocab(c->s->ctx->session)))
        return ggl_fail(err, GGL_NOMEM, "out of memory for --json-output");
    st = print_token(c, id, err);
    c->n_generated++;
    *ends = c->stops.found;
    if (*ends)
        c->finish = "stop_string";
    return st;
}

static int generate(completion *c) {
    ggl_error err = {0};
    bool ends = false;
    if (!c->s->ctx->tokenizer && c->s->o->n_predict != 0)
        tool_note(TOOL, "there is no tokenizer for this model, so ids are printed");
    const double t = process_seconds();
    ggl_status st = constraint_begin(c->s->constraint, c->generator, c->s->o->n_predict, &err);
    c->finish = "length";
    while (st == GGL_OK && !ends && !process_stopped && !c->out.failed &&
           (c->s->o->n_predict < 0 || c->n_generated < c->s->o->n_predict))
        st = generate_token(c, &ends, &err);
    if (st == GGL_LIMIT)
        c->finish = "context";
    if (process_stopped)
        c->finish = "cancelled";
    stops_end(&c->stops, &c->out);
    c->t_generate = process_seconds() - t;
    return end_of_generation(c, st, &err);
}

/* Prints a line of the timings, and why guessing ended early. */
static void print_guesses(const completion *c, const llm_generator_stats *stats) {
    ggl_error err = {0};
    if (!c->s->ctx->guessing)
        return;
    if (!tool_is_quiet())
        fprintf(stderr, "guesses                  %7" PRId64 " tokens %10" PRId64 " right\n",
                stats->n_guessed, stats->n_right);
    if (llm_guessing_failed(c->s->ctx->guessing, &err) != GGL_OK)
        tool_warning(TOOL, "the draft model stopped guessing: %s", err.msg);
}

static void print_times(const completion *c) {
    const llm_generator_stats stats =
        c->generator ? llm_generator_get_stats(c->generator) : (llm_generator_stats){0};
    if (tool_is_quiet()) {
        print_guesses(c, &stats); /* warnings only */
        tool_begin_line();
        return;
    }
    const int64_t n_saved = saved_prompt_n_held(c->saved_prompt);
    double n_prompt = (double)(n_saved ? (int64_t)c->s->prompt->n - n_saved : stats.n_prompt),
           n_gen = (double)(c->n_generated > 1 ? c->n_generated - 1 : 0);
    fprintf(stderr, "\nload        %9.1f ms\n", c->s->facts->load * 1e3);
    fprintf(stderr, "prompt      %9.1f ms %7.0f tokens %10.1f t/s\n", c->t_prompt * 1e3, n_prompt,
            c->t_prompt > 0 ? n_prompt / c->t_prompt : 0);
    if (n_saved > 0)
        fprintf(stderr, "from cache               %7" PRId64 " tokens\n", n_saved);
    fprintf(stderr, "generation  %9.1f ms %7.0f tokens %10.1f t/s\n", c->t_generate * 1e3, n_gen,
            c->t_generate > 0 ? n_gen / c->t_generate : 0);
    print_guesses(c, &stats);
    fprintf(stderr, "peak memory %9.1f MiB\n", (double)process_peak_memory() / 1048576);
    fprintf(stderr, "descriptor  %s\n", llm_model_arch_origin(c->s->ctx->model));
}

static bool take_text(void *ctx, const char *text, size_t n) {
    return record_text(ctx, text, n);
}

/* Prepares where the text goes, and where it ends. */
static int open_output(completion *c) {
    ggl_error err = {0};
    if (!c->s->ctx->tokenizer && c->s->o->stops.reverse.n + c->s->o->stops.stop.n > 0)
        return tool_error(TOOL, 1,
                          "-r and --stop need a tokenizer, which this model does not have");
    if (c->s->o->json_output) {
        c->out.take = take_text;
        c->out.ctx = &c->record;
    }
    ggl_status st = stops_init(&c->stops, &c->s->o->stops, c->s->o->escape, &err);
    if (st == GGL_OK && c->s->o->output)
        st = ggl_new_file_open(&c->out.file, c->s->o->output, &err);
    if (st != GGL_OK && process_stopped) /* opening a pipe waits for its reader */
        return process_stop_code();
    return st == GGL_OK ? -1 : tool_error(TOOL, 1, "%s%s", st == GGL_NOMEM ? "" : "-o: ", err.msg);
}

/* Writes the line of --json-output. */
static int write_record(completion *c) {
    size_t n;
    record_run run = *c->s->facts;
    run.prompt_ids = c->s->prompt;
    run.prompt_text = c->s->text.s;
    run.n_prompt_text = c->s->text.n;
    run.finish = c->finish;
    run.n_reused = saved_prompt_n_held(c->saved_prompt);
    run.prompt = c->t_prompt;
    run.generation = c->t_generate;
    char *line = record_line(&c->record, &run, &n);
    if (!line)
        return tool_error(TOOL, 1, "out of memory for --json-output");
    c->out.take = NULL;
    text_stream_put(&c->out, line, n);
    free(line);
    return -1;
}

/* Ends the text. code: -1, or an exit code after an error; a file gets its name unless there was
 * an error before the first token. Returns the same, or an exit code. */
static int close_output(completion *c, int code) {
    ggl_error err = {0};
    text_stream_end(&c->out);
    if (c->s->o->json_output && c->finish) {
        const int wrong = write_record(c);
        code = code < 0 ? wrong : code;
    } else if (code < 0 && (c->n_generated > 0 || (c->s->o->display_prompt && !c->s->o->tokens)))
        text_stream_put(&c->out, "\n", 1);
    ggl_new_file *file = c->out.file;
    if (!file || (code >= 0 && c->n_generated == 0))
        return code;
    c->out.file = NULL;
    if (ggl_new_file_commit(file, &err) != GGL_OK)
        return tool_error(TOOL, 1, "-o: %s", err.msg);
    return code;
}

static void show_prompt(completion *c) {
    const bool colored =
        tool_color(c->s->o->color, c->out.file ? ggl_new_file_stream(c->out.file) : stdout);
    if (!c->s->text.s || !c->s->o->display_prompt || c->s->o->json_output)
        return;
    if (colored)
        text_stream_put(&c->out, COLOR_PROMPT, strlen(COLOR_PROMPT));
    text_stream_put(&c->out, c->s->text.s, c->s->text.n);
    if (colored)
        text_stream_put(&c->out, COLOR_RESET, strlen(COLOR_RESET));
}

static int run(completion *c) {
    int code = open_generator(c);
    if (code < 0)
        code = open_saved_prompt(c);
    if (code < 0)
        code = open_output(c);
    if (code < 0)
        show_prompt(c);
    if (code < 0 && c->s->prompt->n)
        code = run_prompt(c);
    if (code < 0 && !process_stopped && c->s->prompt->n)
        code = generate(c);
    code = close_output(c, code);
    if (code >= 0)
        return code;
    const bool saved = !c->s->prompt->n || saved_prompt_write(c->saved_prompt, c->generator,
                                                              c->s->prompt->id, c->s->prompt->n);
    print_times(c);
    return saved ? -1 : 1;
}

int completion_run(const completion_setup *s) {
    completion c = {.s = s};
    const int code = run(&c);
    npy_abort(&c.logits);
    ggl_new_file_discard(c.out.file);
    stops_fini(&c.stops);
    saved_prompt_close(c.saved_prompt);
    llm_generator_free(c.generator);
    record_fini(&c.record);
    llm_sampler_free(c.sampler);
    return code;
}
